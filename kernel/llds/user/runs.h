/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Runs of random operations, with the answers that the model gives.
 */
#ifndef LLDS_USER_RUNS_H
#define LLDS_USER_RUNS_H

#include "../request.h"
#include "test.h"

#define VALUE_BYTES_MAX 60000
#define OPS_ROOM (1 << 20)
#define ANSWERS_ROOM (1 << 20)

/* The operations, the room for answers, and the model's answers. */
extern u8 ops[OPS_ROOM], answers[ANSWERS_ROOM], wanted[ANSWERS_ROOM];

/* The access of a user with all permissions. */
#define ALL LLDS_ALL

static inline u32 padded(u32 bytes)
{
	return (bytes + 7) & ~7U;
}

/*
 * Makes @n operations, applies them to the model, and records the answers.
 * Returns the bytes of the operations; @wanted_bytes is those of the answers.
 */
u32 some_ops(struct model *model, enum kind kind, u32 n, u32 *wanted_bytes);

/*
 * The same for an atomic run. If it cannot be applied, the model stays as it
 * was, and the only answer is that of the operation that failed. The last
 * parameter returns that operation's index, or the number of operations.
 */
u32 ops_as_one(struct model *model, enum kind kind, u32 n, u32 *wanted_bytes,
	       u32 *done);

/* A run of the operations from @from to @to; @room is that for answers. */
struct llds_run a_run(u32 from, u32 to, u32 room);

/*
 * Compares @bytes of answers to the wanted ones from @from on. Returns the
 * place after those that were compared. A scan may return fewer pairs than
 * wanted, if its status says so.
 */
u32 check_answers(u32 bytes, u32 from);

#endif /* LLDS_USER_RUNS_H */

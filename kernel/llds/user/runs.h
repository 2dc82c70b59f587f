/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Runs of random operations, made beside what the model says of them.
 */
#ifndef LLDS_USER_RUNS_H
#define LLDS_USER_RUNS_H

#include "../request.h"
#include "test.h"

#define VALUE_BYTES_MAX 60000
#define OPS_ROOM (1 << 20)
#define ANSWERS_ROOM (1 << 20)

/* The operations, the room for answers, and what the model answers. */
extern u8 ops[OPS_ROOM], answers[ANSWERS_ROOM], wanted[ANSWERS_ROOM];

/* Of a user who may do everything. */
#define ALL LLDS_ALL

static inline u32 padded(u32 bytes)
{
	return (bytes + 7) & ~7U;
}

/*
 * Makes operations, does them to the model, and writes the answers down: the
 * bytes of operations, and those of answers.
 */
u32 some_ops(struct model *model, enum kind kind, u32 n, u32 *wanted_bytes);

/*
 * The same of operations that take place as one: if they do not, the model
 * stays as it was, and the only answer is that of the one where they failed,
 * whose number is told; otherwise it is their number.
 */
u32 ops_as_one(struct model *model, enum kind kind, u32 n, u32 *wanted_bytes,
	       u32 *done);

/* A run of what lies between, with so much room for answers. */
struct llds_run a_run(u32 from, u32 to, u32 room);

/*
 * Checks so many bytes of answers against those that are wanted from there
 * on; the place behind the ones that they stand for. A scan may bring fewer
 * pairs than it might, and says so.
 */
u32 check_answers(u32 bytes, u32 from);

#endif /* LLDS_USER_RUNS_H */

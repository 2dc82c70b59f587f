/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * What the operations of the ABI do to a store.
 *
 * Works on memory of its own alone: the operations were copied before, the
 * answers are copied afterwards.
 */
#ifndef LLDS_OPS_H
#define LLDS_OPS_H

#include "store.h"

/**
 * struct llds_parsed - an operation that makes sense
 * @op: how it begins
 * @key: the key
 * @value: the value
 * @other: the other
 * @bytes: bytes of all of it
 */
struct llds_parsed {
	struct llds_op op;
	struct llds_key key;
	const u8 *value;
	const u8 *other;
	u32 bytes;
};

/**
 * struct llds_room - room for answers
 * @at: where it is
 * @bytes: how much there is
 * @used: how much is used
 */
struct llds_room {
	u8 *at;
	u32 bytes;
	u32 used;
};

/*
 * The operation at the beginning of so many bytes. 0; -EINVAL if it makes no
 * sense; -E2BIG if a value is too long; -EAGAIN if it needs more bytes,
 * 'parsed->bytes' of them. REQUIRES: no value may be longer than
 * LLDS_VALUE_BYTES_LIMIT.
 */
int llds_parse(const struct llds_store *store, const u8 *at, u32 bytes,
	       u32 value_bytes_max, struct llds_parsed *parsed);

/* What an operation does, and what a user may have done. */
#define LLDS_READS 1
#define LLDS_CHANGES 2

/*
 * What an operation does. One that only changes tells no value, but perhaps
 * whether the key was there.
 */
static inline u32 llds_does(const struct llds_parsed *parsed)
{
	switch (parsed->op.code) {
	case LLDS_GET:
	case LLDS_SCAN:
		return LLDS_READS;
	case LLDS_SET:
	case LLDS_DELETE:
	case LLDS_DELETE_RANGE:
		return LLDS_CHANGES;
	default:
		return LLDS_READS | LLDS_CHANGES;
	}
}

/*
 * Does an operation and puts its answer behind the others. 0, or how many
 * bytes of room the answer needs if there are not as many; then nothing was
 * done. REQUIRES: the store's lock, shared if it only reads.
 */
u32 llds_do(struct llds_store *store, const struct llds_parsed *parsed,
	    struct llds_room *room);

/* Whether an answer means that nothing of a run as one is to be done. */
bool llds_fails_as_one(const struct llds_parsed *parsed, s32 status);

#endif /* LLDS_OPS_H */

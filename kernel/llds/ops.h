/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Implements the operations of the ABI on a store.
 *
 * This code accesses no user memory: the caller has copied the operations, and
 * copies the answers afterwards.
 */
#ifndef LLDS_OPS_H
#define LLDS_OPS_H

#include "store.h"

/**
 * struct llds_parsed - a valid operation
 * @op: its head
 * @key: the key
 * @value: the value
 * @other: the other
 * @bytes: bytes of the whole operation
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
 * @at: the address
 * @bytes: the capacity
 * @used: the bytes in use
 */
struct llds_room {
	u8 *at;
	u32 bytes;
	u32 used;
};

/* Rounds up to a multiple of 8. */
static inline u64 llds_padded(u64 bytes)
{
	return (bytes + 7) & ~7ULL;
}

/* Whether there is room for an answer of @bytes bytes. */
static inline bool llds_fits(const struct llds_room *room, u64 bytes)
{
	return sizeof(struct llds_answer) + llds_padded(bytes) <=
	       room->bytes - room->used;
}

/* Appends an answer. REQUIRES: llds_fits(). */
static inline void llds_answer(struct llds_room *room, s32 status,
			       const void *from, u32 bytes)
{
	const struct llds_answer answer = { status, bytes };
	u8 *at = room->at + room->used;

	memcpy(at, &answer, sizeof(answer));
	at += sizeof(answer);
	room->used += sizeof(answer) + llds_padded(bytes);
	/* Many values have 8 bytes; this avoids a call of memcpy(). */
	if (bytes == 8) {
		memcpy(at, from, 8);
	} else if (bytes) {
		/* The padding must not leak earlier content. */
		if (bytes & 7)
			memset(at + (bytes & ~7U), 0, 8);
		memcpy(at, from, bytes);
	}
}

/* Maximum number of operations that are parsed and prefetched together. */
#define LLDS_TOGETHER 16

/*
 * Parses the operation at @at. Returns 0; -EINVAL if it is invalid; -E2BIG if a
 * value is too long; -EAGAIN if it is longer than @bytes, and then
 * @parsed->bytes is the length that is needed. REQUIRES: @value_bytes_max is at
 * most LLDS_VALUE_BYTES_LIMIT.
 */
int llds_parse_one(const struct llds_store *store, const u8 *at, u32 bytes,
		   u32 value_bytes_max, struct llds_parsed *parsed);

/*
 * Parses the operations at @at, at most LLDS_TOGETHER, and returns their
 * number. Sets @error to 0 at the end of the bytes or at LLDS_TOGETHER
 * operations, and otherwise to the error of llds_parse_one() for the next
 * operation.
 */
u32 llds_parse(const struct llds_store *store, const u8 *at, u32 bytes,
	       u32 value_bytes_max, struct llds_parsed *parsed, int *error);

/*
 * Prefetches the buckets and entries of operations, so that their cache misses
 * overlap. REQUIRES: the store's lock; n <= LLDS_TOGETHER.
 */
void llds_fetch(const struct llds_store *store,
		const struct llds_parsed *parsed, u32 n);

/* The kinds of access: what an operation needs, and what a device permits. */
#define LLDS_READS 1
#define LLDS_CHANGES 2
#define LLDS_ALL (LLDS_READS | LLDS_CHANGES)

/*
 * The access that an operation needs. An operation that needs only
 * LLDS_CHANGES returns no value, but may return whether the key existed.
 */
static inline u32 llds_does(const struct llds_parsed *parsed)
{
	switch (parsed->op.code) {
	case LLDS_GET:
	case LLDS_SCAN:
	case LLDS_COMPARE:
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
 * Does an operation and appends its answer. Returns 0; or, if the room is too
 * small, the bytes that the answer needs, and then nothing was done. REQUIRES:
 * the store's lock, exclusive if the operation needs LLDS_CHANGES.
 */
u32 llds_do(struct llds_store *store, const struct llds_parsed *parsed,
	    struct llds_room *room);

/* Whether an operation with this status prevents its atomic run. */
bool llds_fails_as_one(const struct llds_parsed *parsed, s32 status);

#endif /* LLDS_OPS_H */

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

/* Bytes of what fills them up to a multiple of 8. */
static inline u64 llds_padded(u64 bytes)
{
	return (bytes + 7) & ~7ULL;
}

/* Whether there is room for an answer of so many bytes. */
static inline bool llds_fits(const struct llds_room *room, u64 bytes)
{
	return sizeof(struct llds_answer) + llds_padded(bytes) <=
	       room->bytes - room->used;
}

/* Puts an answer behind the others. REQUIRES: it fits. */
static inline void llds_answer(struct llds_room *room, s32 status,
			       const void *from, u32 bytes)
{
	const struct llds_answer answer = { status, bytes };
	u8 *at = room->at + room->used;

	memcpy(at, &answer, sizeof(answer));
	at += sizeof(answer);
	room->used += sizeof(answer) + llds_padded(bytes);
	/* Most values are a word, and then nothing is called. */
	if (bytes == 8) {
		memcpy(at, from, 8);
	} else if (bytes) {
		/* No byte of what was there before goes along. */
		if (bytes & 7)
			memset(at + (bytes & ~7U), 0, 8);
		memcpy(at, from, bytes);
	}
}

/* So many operations at most are done together. */
#define LLDS_TOGETHER 16

/*
 * The operation at the beginning of so many bytes. 0; -EINVAL, it makes no
 * sense; -E2BIG, one of its values is too long; -EAGAIN, it needs more bytes,
 * as many as 'bytes' says. REQUIRES: no value may be longer than
 * LLDS_VALUE_BYTES_LIMIT.
 */
int llds_parse_one(const struct llds_store *store, const u8 *at, u32 bytes,
		   u32 value_bytes_max, struct llds_parsed *parsed);

/*
 * The operations at the beginning of so many bytes, at most LLDS_TOGETHER; how
 * many there are. 'error' says why it is not more: 0, there are no more bytes,
 * or enough of them; or what llds_parse_one() says of the one behind the last.
 */
u32 llds_parse(const struct llds_store *store, const u8 *at, u32 bytes,
	       u32 value_bytes_max, struct llds_parsed *parsed, int *error);

/*
 * Asks for what operations will touch first, so that their waits overlap.
 * REQUIRES: the store's lock; there are no more than LLDS_TOGETHER.
 */
void llds_fetch(const struct llds_store *store,
		const struct llds_parsed *parsed, u32 n);

/* What an operation does, and what a user may have done. */
#define LLDS_READS 1
#define LLDS_CHANGES 2
#define LLDS_ALL (LLDS_READS | LLDS_CHANGES)

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

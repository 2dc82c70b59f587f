/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Seqlock reads of a mapped store, as buckets.h and order.h describe them, in
 * C, for the tests. Programs use those of crates/llds, in Rust.
 */
#ifndef LLDS_USER_MAPPED_H
#define LLDS_USER_MAPPED_H

#include "../order.h"
#include "../buckets.h"

/**
 * struct mapped - a mapped store
 * @header: LLDS_MAP_HEADER
 * @blocks: LLDS_MAP_BLOCKS
 * @buckets: LLDS_MAP_BUCKETS
 */
struct mapped {
	const struct llds_header *header;
	const char *blocks;
	const char *buckets;
};

enum mapped_found {
	MAPPED_FOUND,
	MAPPED_ABSENT,
	/* All tries met a concurrent change. */
	MAPPED_BUSY,
	/* The value is stored apart, and not mapped. */
	MAPPED_APART,
	/* The bucket is crowded: the key may be in the order alone. */
	MAPPED_CROWDED,
};

/* Room for the longest entry with its value. */
#define MAPPED_ROOM (1 << 18)

/* Looks a key up, and copies the value to @to, which has MAPPED_ROOM bytes. */
enum mapped_found mapped_get(const struct mapped *mapped, const u8 *key,
			     u32 key_bytes, u8 *to, u32 *bytes);

/*
 * Finds the first pair whose key is above this one, or not below it if @above
 * is false. Copies the entry without its first 8 bytes to @to.
 */
enum mapped_found mapped_next(const struct mapped *mapped, const u8 *key,
			      u32 key_bytes, bool above, u8 *to, u32 *found_key,
			      u32 *found_bytes);

#endif /* LLDS_USER_MAPPED_H */

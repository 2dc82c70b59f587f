/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Reading a store that is in sight, without its lock: what buckets.h and
 * order.h say of such readers, in C, for the tests. What programs use is in
 * Rust, in forrest-machine.
 */
#ifndef LLDS_USER_MAPPED_H
#define LLDS_USER_MAPPED_H

#include "../order.h"
#include "../buckets.h"

/**
 * struct mapped - a store in sight
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
	/* It is being changed too much. */
	MAPPED_BUSY,
	/* The value lies by itself, where it cannot be seen. */
	MAPPED_APART,
};

/* Room for the longest entry whose value does not lie by itself. */
#define MAPPED_ROOM (1 << 18)

/* Looks a key up; the value goes to 'to', which has MAPPED_ROOM. */
enum mapped_found mapped_get(const struct mapped *mapped, const u8 *key,
			     u32 key_bytes, u8 *to, u32 *bytes);

/*
 * The first pair whose key is above this one, or not below it: the whole entry,
 * without its first 8 bytes, goes to 'to'.
 */
enum mapped_found mapped_next(const struct mapped *mapped, const u8 *key,
			      u32 key_bytes, bool above, u8 *to, u32 *found_key,
			      u32 *found_bytes);

#endif /* LLDS_USER_MAPPED_H */

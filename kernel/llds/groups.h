/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Groups of gets, or of sets, done together.
 */
#ifndef LLDS_GROUPS_H
#define LLDS_GROUPS_H

#include "ops.h"

/* Whether the store's index supports groups. */
static inline bool llds_has_groups(const struct llds_store *store)
{
	return store->index == LLDS_INDEX_DEFAULT;
}

/*
 * Does the gets at the beginning of @at, until an operation is no valid get or
 * its answer has no room. Returns their number, and their bytes in @taken. The
 * caller finds out by llds_parse() and llds_do() why the next operation was not
 * done. REQUIRES: the store's lock, shared; llds_has_groups().
 */
u32 llds_gets(const struct llds_store *store, const u8 *at, u32 bytes,
	      struct llds_room *room, u32 *taken);

/*
 * Does a get whose operation has exactly these bytes. Returns false, and has
 * done nothing, if it is no such get, if it has a flag, or if its answer has no
 * room. REQUIRES: as llds_gets(); @bytes is at least the head of an operation.
 */
bool llds_get_one(const struct llds_store *store, const u8 *at, u32 bytes,
		  struct llds_room *room);

/*
 * The same as llds_gets() for sets without a condition. REQUIRES: the store's lock, exclusive;
 * llds_has_groups(); no atomic run is in progress (llds_begin()).
 */
u32 llds_sets(struct llds_store *store, const u8 *at, u32 bytes,
	      u32 value_bytes_max, struct llds_room *room, u32 *taken);

#endif /* LLDS_GROUPS_H */

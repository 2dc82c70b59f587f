/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Many gets at once, or many sets.
 */
#ifndef LLDS_GROUPS_H
#define LLDS_GROUPS_H

#include "ops.h"

/* Whether a store's gets and sets are done in groups. */
static inline bool llds_has_groups(const struct llds_store *store)
{
	return store->index == LLDS_INDEX_DEFAULT;
}

/*
 * Does the gets at the beginning of so many bytes, one behind another, as far
 * as each of them makes sense and its answer has room; how many there were,
 * and in 'taken' their bytes. What stopped it is llds_parse()'s to say, and
 * llds_do()'s. REQUIRES: the store's lock, shared; llds_has_groups().
 */
u32 llds_gets(const struct llds_store *store, const u8 *at, u32 bytes,
	      struct llds_room *room, u32 *taken);

/*
 * The same for sets that depend on nothing. REQUIRES: the store's lock, alone;
 * llds_has_groups(); not between llds_begin() and its end.
 */
u32 llds_sets(struct llds_store *store, const u8 *at, u32 bytes,
	      u32 value_bytes_max, struct llds_room *room, u32 *taken);

#endif /* LLDS_GROUPS_H */

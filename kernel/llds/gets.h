/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Many gets at once.
 */
#ifndef LLDS_GETS_H
#define LLDS_GETS_H

#include "ops.h"

/* Whether an operation is one for llds_gets(), as far as its first byte says. */
static inline bool llds_is_get(const struct llds_store *store, u8 code)
{
	return code == LLDS_GET && store->index == LLDS_INDEX_DEFAULT;
}

/*
 * Does the gets at the beginning of so many bytes, one behind another, as far
 * as each of them makes sense and its answer has room; how many there were,
 * and in 'taken' their bytes. What stopped it is llds_parse()'s to say, and
 * llds_do()'s. REQUIRES: the store's lock, shared; llds_is_get() of the first.
 */
u32 llds_gets(const struct llds_store *store, const u8 *at, u32 bytes,
	      struct llds_room *room, u32 *taken);

#endif /* LLDS_GETS_H */

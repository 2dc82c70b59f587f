/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Runs of operations: copies them from the user, does them, copies the answers
 * back.
 *
 * Only this code reads or writes user memory for a run. It copies each byte
 * once, and then uses only the copy. It copies without the store's lock, so a
 * user who delays a copy delays no other user.
 */
#ifndef LLDS_REQUEST_H
#define LLDS_REQUEST_H

#include "ops.h"

/**
 * struct llds_shared - a store that several processes share
 * @lock: shared for reads, exclusive for changes
 * @value_bytes_max: maximum value length
 * @maps: number of mappings of the store; atomic. The first one is added under
 *	the exclusive lock, others and removals need none: a fork or an exit
 *	waits for no writer
 * @store: the store
 */
struct llds_shared {
	struct llds_os_lock lock;
	u32 value_bytes_max;
	u64 maps;
	struct llds_store store;
};

/* Returns 0, or -ENOMEM. */
int llds_shared_init(struct llds_shared *shared, enum llds_index index,
		     u64 bytes_max, u32 value_bytes_max, u64 salt);

void llds_shared_drop(struct llds_shared *shared);

/* Adds to the number of mappings, and returns the new one. */
u64 llds_maps_add(struct llds_shared *shared, s64 n);

/* Adds one if there is another; returns whether there was. */
bool llds_maps_add_another(struct llds_shared *shared);

/*
 * Frees what only mappings kept, if there are none left. REQUIRES: the
 * exclusive lock. Each change does this, and the end of a mapping if the lock
 * is free.
 */
void llds_hide_unmapped(struct llds_shared *shared);

/*
 * Does a run of operations. @run is a copy of the user's; the caller copies it
 * back if this returns 0 or -EMSGSIZE. @may is the access of the user:
 * LLDS_READS, LLDS_CHANGES, or both. Copies longer than some hundred bytes count
 * for @quota, unless it is NULL; those longer than 16 KiB do not exceed it.
 */
int llds_request(struct llds_shared *shared, struct llds_run *run, u32 may,
		 struct llds_quota *quota);

#endif /* LLDS_REQUEST_H */

/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * A run of operations, from a user and back.
 *
 * The only place where memory of a user is read or written. Each byte of it is
 * copied once, and what was copied is looked at, never the user's memory
 * again. Copies are made without the store's lock: who holds up a copy holds
 * up nobody but himself.
 */
#ifndef LLDS_REQUEST_H
#define LLDS_REQUEST_H

#include "ops.h"

/**
 * struct llds_shared - a store that several share
 * @lock: shared to read, alone to change
 * @value_bytes_max: the longest value that it takes
 * @maps: how many mappings may have it in sight
 * @store: the store
 */
struct llds_shared {
	struct llds_os_lock lock;
	u32 value_bytes_max;
	u32 maps;
	struct llds_store store;
};

/* 0, or -ENOMEM. */
int llds_shared_init(struct llds_shared *shared, enum llds_index index,
		     u64 bytes_max, u32 value_bytes_max, u64 salt);

void llds_shared_drop(struct llds_shared *shared);

/*
 * Does a run of operations as struct llds_run says, which has been copied, and
 * is to be copied back if this returns 0 or -EMSGSIZE. What the user may do is
 * LLDS_READS, LLDS_CHANGES, or both.
 */
int llds_request(struct llds_shared *shared, struct llds_run *run, u32 may);

#endif /* LLDS_REQUEST_H */

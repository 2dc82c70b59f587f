// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The engine of kernel/llds as a user-space library for user.rs, which creates,
 * uses and drops stores by pointer.
 */
#include <stdlib.h>

#include "request.h"

/* Returns NULL without memory. */
struct llds_shared *forrest_llds_make(u64 bytes_max, u32 value_bytes_max,
				      u64 salt)
{
	struct llds_shared *shared = calloc(1, sizeof(*shared));

	if (shared && llds_shared_init(shared, LLDS_INDEX_DEFAULT, bytes_max,
				       value_bytes_max, salt)) {
		free(shared);
		return NULL;
	}
	return shared;
}

/* REQUIRES: no thread uses the store, now or later. */
void forrest_llds_drop(struct llds_shared *shared)
{
	llds_shared_drop(shared);
	free(shared);
}

/* Returns 0, or a negative error number. */
int forrest_llds_run(struct llds_shared *shared, struct llds_run *run,
		     bool may_change)
{
	return llds_request(shared, run, may_change ? LLDS_READS | LLDS_CHANGES :
						      LLDS_READS, NULL);
}

/*
 * Sets `at` to the addresses of header, blocks and buckets. Seqlock reads there
 * are valid until the store is dropped.
 */
int forrest_llds_show(struct llds_shared *shared, const void *at[3])
{
	const int error = llds_os_lock_alone(&shared->lock);

	if (error)
		return error;
	llds_maps_add(shared, 1);
	llds_show(&shared->store, true);
	llds_os_unlock_alone(&shared->lock);
	at[0] = shared->store.header;
	at[1] = shared->store.memory.base;
	at[2] = shared->store.buckets.base;
	return 0;
}

/* Returns 0, or a negative error number. */
int forrest_llds_stats(struct llds_shared *shared, u64 figures[4])
{
	const int error = llds_os_lock_shared(&shared->lock);

	if (error)
		return error;
	figures[0] = llds_store_keys(&shared->store);
	figures[1] = shared->store.pair_bytes;
	figures[2] = shared->store.budget.bytes;
	figures[3] = shared->store.budget.bytes_max;
	llds_os_unlock_shared(&shared->lock);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0
/*
 * An ordered store: pairs, found by their keys and in their order.
 */
#include "store.h"

int llds_store_init(struct llds_store *store, enum llds_index index,
		    u64 bytes_max, u64 salt)
{
	BUILD_BUG_ON(LLDS_KEY_BYTES_LIMIT >> LLDS_ENTRY_KEY_BITS);
	BUILD_BUG_ON(LLDS_VALUE_BYTES_INLINE >> LLDS_ENTRY_VALUE_BITS);
	BUILD_BUG_ON(sizeof(struct llds_entry) + LLDS_KEY_BYTES_LIMIT +
		     LLDS_VALUE_BYTES_INLINE > LLDS_BLOCK_BYTES_MAX);
	memset(store, 0, sizeof(*store));
	store->index = index;
	store->budget.bytes_max = bytes_max;
	store->budget.node = LLDS_ANY_NODE;
	if (llds_budget_take(&store->budget, LLDS_PAGE_BYTES))
		store->header = llds_os_page();
	if (!store->header)
		goto no_memory;
	store->header->abi = LLDS_ABI;
	store->header->salt = salt;
	llds_memory_init(&store->memory, &store->budget);
	llds_order_init(&store->order, &store->memory, store->header);
	llds_tree_init(&store->tree, &store->memory);
	if (index != LLDS_INDEX_DEFAULT)
		return 0;
	if (llds_buckets_init(&store->buckets, &store->memory, store->header)) {
		store->header->flags = LLDS_MAPPABLE;
		return 0;
	}
	llds_memory_drop(&store->memory);
	llds_os_page_free(store->header);
no_memory:
	llds_budget_give(&store->budget, store->budget.bytes);
	return -ENOMEM;
}

void llds_store_drop(struct llds_store *store)
{
	u32 number;

	for (number = 0; number < store->aparts.room; number++) {
		void *value = store->aparts.values[number];

		if ((uintptr_t)value & 1)
			continue;
		llds_os_table_free(value);
		llds_os_relax();
	}
	llds_os_table_free(store->aparts.values);
	if (store->index == LLDS_INDEX_DEFAULT)
		llds_buckets_drop(&store->buckets);
	llds_tree_drop(&store->tree);
	llds_memory_drop(&store->memory);
	llds_os_page_free(store->header);
	/* The rest belongs to values that were stored apart. */
	llds_budget_give(&store->budget, store->budget.bytes);
	memset(store, 0, sizeof(*store));
}

void llds_show(struct llds_store *store, bool is_shown)
{
	store->memory.is_shown = is_shown;
	if (is_shown || store->index != LLDS_INDEX_DEFAULT)
		return;
	llds_memory_trim(&store->memory);
	llds_buckets_trim(&store->buckets);
}

void *llds_shown_at(const struct llds_store *store, u64 offset)
{
	const u64 number = (offset & (LLDS_MAP_BLOCKS - 1)) >> LLDS_PIECE_SHIFT;
	char *piece = NULL;

	if (offset < LLDS_MAP_HEADER + LLDS_PAGE_BYTES)
		return store->header;
	if (store->index != LLDS_INDEX_DEFAULT)
		return NULL;
	if (offset - LLDS_MAP_BLOCKS < LLDS_MAP_BYTES)
		piece = llds_piece_shown(&store->memory.pieces,
					 &store->memory.end, number);
	else if (offset - LLDS_MAP_BUCKETS < LLDS_MAP_BYTES)
		piece = llds_piece_shown((void **const *)&store->buckets.pieces,
					 &store->buckets.end, number);
	offset &= LLDS_PIECE_BYTES - 1;
	return piece ? piece + (offset & ~(LLDS_PAGE_BYTES - 1)) : NULL;
}

/* The content of an unused number: the next unused one. */
static void *free_then(u32 number)
{
	return (void *)((uintptr_t)number << 1 | 1);
}

/* Stores a value apart; returns false without memory. */
static bool keep_apart(struct llds_store *store, const void *value, u32 bytes,
		       u32 *number)
{
	struct llds_aparts *aparts = &store->aparts;
	void **values, *copy;
	u32 i = aparts->room;

	if (aparts->free == aparts->room) {
		values = llds_table_grow(&store->budget, aparts->values,
					 &aparts->room, i ? 2 * i : 64,
					 sizeof(*values));
		if (!values)
			return false;
		for (; i < aparts->room; i++)
			values[i] = free_then(i + 1);
		aparts->values = values;
	}
	copy = llds_take(&store->budget, bytes);
	if (!copy)
		return false;
	memcpy(copy, value, bytes);
	*number = aparts->free;
	aparts->free = (uintptr_t)aparts->values[*number] >> 1;
	aparts->values[*number] = copy;
	return true;
}

static void drop_apart(struct llds_store *store, struct llds_apart apart)
{
	struct llds_aparts *aparts = &store->aparts;

	llds_give(&store->budget, aparts->values[apart.number], apart.bytes);
	aparts->values[apart.number] = free_then(aparts->free);
	aparts->free = apart.number;
}

/**
 * struct found - the result of looking a key up in the indexes
 * @handle: the entry, or 0
 * @home: its bucket
 * @node: its node, if the tree is the index
 */
struct found {
	u32 handle;
	struct llds_bucket *home;
	struct llds_tree_node *node;
};

static inline struct found find(const struct llds_store *store,
				const struct llds_key *key)
{
	struct found found = { 0 };

	if (likely(store->index == LLDS_INDEX_DEFAULT)) {
		found.home = llds_buckets_home(&store->buckets, key->hash);
		found.handle = llds_buckets_find(&store->buckets, found.home,
						 key->hash, key->at,
						 key->bytes);
		if (unlikely(!found.handle && found.home->is_crowded &&
			     store->buckets.beyond))
			found.handle = llds_order_find(&store->order, key->at,
						       key->bytes);
	} else {
		found.node = llds_tree_find(&store->tree, key->at, key->bytes);
		found.handle = found.node ? found.node->handle : 0;
	}
	return found;
}

const struct llds_entry *llds_find(const struct llds_store *store,
				   const struct llds_key *key)
{
	const struct found found = find(store, key);
	const struct llds_entry *entry;

	if (!found.handle)
		return NULL;
	entry = llds_block(&store->memory, found.handle);
	return likely(!(entry->sizes & LLDS_ENTRY_GONE)) ? entry : NULL;
}

/* Frees an entry that no index names, with its value. */
static void free_entry(struct llds_store *store, u32 handle)
{
	const struct llds_entry *entry = llds_block(&store->memory, handle);

	if (entry->sizes & LLDS_ENTRY_APART)
		drop_apart(store, llds_apart_of(entry));
	llds_block_free(&store->memory, handle);
}

/* Most keys and many values have 8 bytes; this avoids a call of memcpy(). */
static inline void copy(u8 *to, const void *from, u32 bytes)
{
	if (likely(bytes == 8))
		llds_os_copy(to, from, 8);
	else
		llds_os_copy(to, from, bytes);
}

/* Makes an entry that no index names yet; returns 0 without memory. */
static u32 new_entry(struct llds_store *store, const struct llds_key *key,
		     const void *value, u32 bytes)
{
	const bool is_apart = bytes > LLDS_VALUE_BYTES_INLINE;
	const u32 body_bytes = is_apart ? sizeof(struct llds_apart) : bytes;
	struct llds_apart apart = { .bytes = bytes };
	struct llds_entry *entry;
	u32 handle;

	handle = llds_block_alloc(&store->memory,
				  llds_entry_bytes(key->bytes, body_bytes));
	if (!handle)
		return 0;
	if (is_apart) {
		if (!keep_apart(store, value, bytes, &apart.number)) {
			llds_block_free(&store->memory, handle);
			return 0;
		}
		value = &apart;
	}
	entry = llds_block(&store->memory, handle);
	/* So that seqlock scans of an earlier entry here retry. */
	WRITE_ONCE(entry->version, (entry->version + 2) & ~1U);
	WRITE_ONCE(entry->sizes, llds_sizes(key->bytes, body_bytes) |
				 (is_apart ? LLDS_ENTRY_APART : 0));
	copy(entry->bytes, key->at, key->bytes);
	copy(entry->bytes + key->bytes, value, body_bytes);
	return handle;
}

/* Overwrites a value in place; returns false if the new one does not fit. */
static bool change_in_place(struct llds_store *store,
			    const struct llds_key *key, struct found found,
			    struct llds_entry *entry, const void *value,
			    u32 bytes)
{
	const u32 old = llds_body_bytes(entry->sizes);

	if (entry->sizes & LLDS_ENTRY_APART || bytes > LLDS_VALUE_BYTES_INLINE)
		return false;
	/* The block must have the size that a new entry would get. */
	if (bytes != old &&
	    llds_block_bytes(llds_entry_bytes(key->bytes, bytes)) !=
	    llds_block_bytes(llds_entry_bytes(key->bytes, old)))
		return false;
	if (found.home)
		llds_bucket_begin(found.home);
	llds_entry_begin(entry);
	if (bytes != old)
		WRITE_ONCE(entry->sizes, llds_sizes(key->bytes, bytes));
	copy(entry->bytes + key->bytes, value, bytes);
	if (bytes < old)
		llds_os_clear(entry->bytes + key->bytes + bytes, old - bytes);
	llds_entry_end(entry);
	if (found.home)
		llds_bucket_end(found.home);
	store->pair_bytes += (u64)bytes - old;
	return true;
}

/* Adds an entry; returns false without memory. REQUIRES: the key is absent. */
static bool add(struct llds_store *store, const struct llds_key *key,
		struct found found, u32 handle)
{
	bool is_added;

	store->moves++;
	if (!found.home)
		return llds_tree_add(&store->tree, handle);
	if (!llds_buckets_prepare(&store->buckets, found.home))
		return false;
	llds_bucket_begin(found.home);
	is_added = llds_order_add(&store->order, handle);
	if (likely(is_added))
		llds_buckets_add(&store->buckets, found.home, key->hash,
				 handle);
	llds_bucket_end(found.home);
	llds_buckets_fit(&store->buckets);
	return is_added;
}

/* Replaces an entry in the indexes by one with the same key. */
static void replace(struct llds_store *store, struct found found, u32 handle)
{
	store->moves++;
	if (!found.home) {
		found.node->handle = handle;
		return;
	}
	llds_bucket_begin(found.home);
	llds_order_replace(&store->order, found.handle, handle);
	llds_buckets_replace(&store->buckets, found.home, found.handle, handle);
	llds_bucket_end(found.home);
}

/* Removes an entry from the indexes, and frees it. */
static void remove(struct llds_store *store, struct found found)
{
	store->moves++;
	if (found.home) {
		llds_bucket_begin(found.home);
		llds_order_remove(&store->order, found.handle);
		llds_buckets_remove(&store->buckets, found.home, found.handle);
		llds_bucket_end(found.home);
		llds_buckets_fit(&store->buckets);
	} else {
		llds_tree_remove(&store->tree, found.node);
	}
	free_entry(store, found.handle);
}

/* Makes sure that a change can be journalled; returns false without memory. */
static bool may_note(struct llds_store *store)
{
	struct llds_journal *journal = &store->journal;
	struct llds_change *changes;

	if (likely(!journal->is_open) || journal->n < journal->room)
		return true;
	changes = llds_table_grow(&store->budget, journal->changes,
				  &journal->room, max_t(u32, 2 * journal->n, 64),
				  sizeof(*changes));
	if (!changes)
		return false;
	journal->changes = changes;
	return true;
}

/* Journals a change; outside of an atomic run frees the old entry instead. */
static void note(struct llds_store *store, u32 old, u32 new)
{
	struct llds_journal *journal = &store->journal;

	if (unlikely(journal->is_open))
		journal->changes[journal->n++] =
			(struct llds_change){ old, new };
	else if (old)
		free_entry(store, old);
}

static int no_memory(const struct llds_store *store)
{
	return store->budget.is_refused ? -ENOSPC : -ENOMEM;
}

int llds_set(struct llds_store *store, const struct llds_key *key,
	     const void *value, u32 bytes)
{
	const struct found found = find(store, key);
	struct llds_entry *entry = NULL;
	u32 handle;

	if (found.handle) {
		entry = llds_block(&store->memory, found.handle);
		if (likely(!store->journal.is_open) &&
		    change_in_place(store, key, found, entry, value, bytes))
			return 0;
	}
	store->budget.is_refused = false;
	if (!may_note(store))
		return no_memory(store);
	handle = new_entry(store, key, value, bytes);
	if (!handle)
		return no_memory(store);
	if (!found.handle) {
		if (!add(store, key, found, handle)) {
			free_entry(store, handle);
			return no_memory(store);
		}
		store->pair_bytes += key->bytes + bytes;
	} else {
		replace(store, found, handle);
		store->pair_bytes += bytes;
		if (likely(!(entry->sizes & LLDS_ENTRY_GONE)))
			store->pair_bytes -= llds_value_of(store, entry).bytes;
		else
			store->pair_bytes += key->bytes;
	}
	note(store, found.handle, handle);
	return 0;
}

int llds_delete(struct llds_store *store, const struct llds_key *key)
{
	const struct found found = find(store, key);
	struct llds_entry *entry;

	if (!found.handle)
		return 0;
	entry = llds_block(&store->memory, found.handle);
	if (unlikely(entry->sizes & LLDS_ENTRY_GONE))
		return 0;
	store->budget.is_refused = false;
	if (!may_note(store))
		return no_memory(store);
	store->pair_bytes -= key->bytes + llds_value_of(store, entry).bytes;
	if (likely(!store->journal.is_open)) {
		remove(store, found);
		return 1;
	}
	/* It stays in the indexes, so that undoing needs no memory. */
	WRITE_ONCE(entry->sizes, entry->sizes | LLDS_ENTRY_GONE);
	note(store, found.handle, 0);
	return 1;
}

/* Looks up the key of an entry. */
static struct found find_like(const struct llds_store *store, u32 handle)
{
	const struct llds_entry *entry = llds_block(&store->memory, handle);
	const struct llds_key key = llds_key(store, entry->bytes,
					     llds_key_bytes(entry->sizes));

	return find(store, &key);
}

void llds_begin(struct llds_store *store)
{
	llds_as_one_begin(store);
	store->journal.is_open = true;
	store->journal.pair_bytes = store->pair_bytes;
}

static void end(struct llds_store *store)
{
	struct llds_journal *journal = &store->journal;

	llds_give(&store->budget, journal->changes,
		  (u64)journal->room * sizeof(*journal->changes));
	memset(journal, 0, sizeof(*journal));
	llds_as_one_end(store);
}

void llds_commit(struct llds_store *store)
{
	const struct llds_journal *journal = &store->journal;
	const struct llds_change *change;
	u32 i;

	/* Deleted entries are still in the indexes, unless replaced. */
	for (i = 0; i < journal->n; i++) {
		change = &journal->changes[i];
		if (!change->new) {
			const struct found found =
				find_like(store, change->old);

			if (found.handle == change->old)
				remove(store, found);
		}
		llds_os_relax();
	}
	/* Only now: the first pass may have read replaced entries. */
	for (i = 0; i < journal->n; i++) {
		change = &journal->changes[i];
		if (change->old && change->new)
			free_entry(store, change->old);
		llds_os_relax();
	}
	end(store);
}

void llds_abort(struct llds_store *store)
{
	struct llds_journal *journal = &store->journal;

	while (journal->n > 0) {
		const struct llds_change change =
			journal->changes[--journal->n];

		if (!change.new) {
			struct llds_entry *entry =
				llds_block(&store->memory, change.old);

			WRITE_ONCE(entry->sizes,
				   entry->sizes & ~LLDS_ENTRY_GONE);
		} else if (!change.old) {
			remove(store, find_like(store, change.new));
		} else {
			replace(store, find_like(store, change.new),
				change.old);
			free_entry(store, change.new);
		}
		llds_os_relax();
	}
	store->pair_bytes = journal->pair_bytes;
	end(store);
}

/* The pair at a cursor, or NULL. */
static const struct llds_entry *at(const struct llds_store *store,
				   const union llds_cursor *cursor)
{
	u32 handle;

	if (store->index == LLDS_INDEX_DEFAULT)
		handle = llds_order_at(&store->order, cursor->place);
	else
		handle = cursor->node ? cursor->node->handle : 0;
	return handle ? llds_block(&store->memory, handle) : NULL;
}

/* Whether the current atomic run has deleted an entry. */
static inline bool is_gone(const struct llds_store *store,
			   const struct llds_entry *entry)
{
	return unlikely(store->journal.is_open) && entry &&
	       entry->sizes & LLDS_ENTRY_GONE;
}

static const struct llds_entry *next(const struct llds_store *store,
				     union llds_cursor *cursor)
{
	if (store->index == LLDS_INDEX_DEFAULT)
		llds_order_next(&store->order, &cursor->place);
	else
		cursor->node = llds_tree_next(cursor->node);
	return at(store, cursor);
}

static const struct llds_entry *prev(const struct llds_store *store,
				     union llds_cursor *cursor)
{
	if (store->index == LLDS_INDEX_DEFAULT)
		llds_order_prev(&store->order, &cursor->place);
	else
		cursor->node = llds_tree_prev(cursor->node);
	return at(store, cursor);
}

/* Entries that are passed over between two looks at what else there is to do. */
#define GONE_AT_ONCE 256

/*
 * From an entry on, the first that the current atomic run has not deleted. Many
 * may lie before it. If the process is killed there is none: the run is undone,
 * and nobody reads its answers.
 */
static __always_inline const struct llds_entry *
not_gone(const struct llds_store *store, union llds_cursor *cursor,
	 const struct llds_entry *entry,
	 const struct llds_entry *(*step)(const struct llds_store *store,
					  union llds_cursor *cursor))
{
	u32 passed = 0;

	while (is_gone(store, entry)) {
		if (++passed % GONE_AT_ONCE == 0) {
			if (llds_os_is_killed())
				return NULL;
			llds_os_relax();
		}
		entry = step(store, cursor);
	}
	return entry;
}

const struct llds_entry *llds_seek(const struct llds_store *store,
				   union llds_cursor *cursor,
				   const void *key, u32 key_bytes)
{
	if (store->index == LLDS_INDEX_DEFAULT)
		cursor->place = llds_order_seek(&store->order, key, key_bytes);
	else
		cursor->node = llds_tree_seek(&store->tree, key, key_bytes);
	return not_gone(store, cursor, at(store, cursor), next);
}

const struct llds_entry *llds_seek_before(const struct llds_store *store,
					  union llds_cursor *cursor,
					  const void *key, u32 key_bytes)
{
	if (store->index == LLDS_INDEX_DEFAULT)
		cursor->place = llds_order_seek_before(&store->order, key,
						       key_bytes);
	else
		cursor->node = llds_tree_seek_before(&store->tree, key,
						     key_bytes);
	return not_gone(store, cursor, at(store, cursor), prev);
}

const struct llds_entry *llds_next(const struct llds_store *store,
				   union llds_cursor *cursor)
{
	return not_gone(store, cursor, next(store, cursor), next);
}

const struct llds_entry *llds_prev(const struct llds_store *store,
				   union llds_cursor *cursor)
{
	return not_gone(store, cursor, prev(store, cursor), prev);
}

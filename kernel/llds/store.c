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
	llds_memory_init(&store->memory, &store->budget);
	llds_order_init(&store->order, &store->memory);
	llds_tree_init(&store->tree, &store->memory);
	store->buckets.salt = salt;
	if (index == LLDS_INDEX_DEFAULT &&
	    !llds_buckets_init(&store->buckets, &store->memory, salt))
		return -ENOMEM;
	return 0;
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
	memset(store, 0, sizeof(*store));
}

/* What a number that is free says: which one is free next. */
static void *free_then(u32 number)
{
	return (void *)((uintptr_t)number << 1 | 1);
}

/* Keeps a value by itself; false if there is no memory. */
static bool keep_apart(struct llds_store *store, const void *value, u32 bytes,
		       u32 *number)
{
	struct llds_aparts *aparts = &store->aparts;
	const u32 room = aparts->room ? 2 * aparts->room : 64;
	void **values, *copy;
	u32 i;

	if (aparts->free == aparts->room) {
		const u64 more = (room - aparts->room) * sizeof(*values);

		if (!llds_budget_take(&store->budget, more))
			return false;
		values = llds_os_table(room * sizeof(*values));
		if (!values) {
			store->budget.bytes -= more;
			return false;
		}
		if (aparts->room)
			memcpy(values, aparts->values,
			       aparts->room * sizeof(*values));
		for (i = aparts->room; i < room; i++)
			values[i] = free_then(i + 1);
		llds_os_table_free(aparts->values);
		aparts->values = values;
		aparts->room = room;
	}
	if (!llds_budget_take(&store->budget, bytes))
		return false;
	copy = llds_os_table(bytes);
	if (!copy) {
		store->budget.bytes -= bytes;
		return false;
	}
	memcpy(copy, value, bytes);
	*number = aparts->free;
	aparts->free = (uintptr_t)aparts->values[*number] >> 1;
	aparts->values[*number] = copy;
	return true;
}

static void drop_apart(struct llds_store *store, struct llds_apart apart)
{
	struct llds_aparts *aparts = &store->aparts;

	llds_os_table_free(aparts->values[apart.number]);
	store->budget.bytes -= apart.bytes;
	aparts->values[apart.number] = free_then(aparts->free);
	aparts->free = apart.number;
}

static const u8 *body_of(const struct llds_entry *entry)
{
	return entry->bytes + llds_key_bytes(entry->sizes);
}

static struct llds_apart apart_of(const struct llds_entry *entry)
{
	struct llds_apart apart;

	memcpy(&apart, body_of(entry), sizeof(apart));
	return apart;
}

struct llds_value llds_value_of(const struct llds_store *store,
				const struct llds_entry *entry)
{
	struct llds_apart apart;

	if (likely(!(entry->sizes & LLDS_ENTRY_APART)))
		return (struct llds_value){ body_of(entry),
					    llds_body_bytes(entry->sizes) };
	apart = apart_of(entry);
	return (struct llds_value){ store->aparts.values[apart.number],
				    apart.bytes };
}

/**
 * struct found - where the indexes have a key
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

	return found.handle ? llds_block(&store->memory, found.handle) : NULL;
}

/* Frees an entry that nothing names, with its value. */
static void free_entry(struct llds_store *store, u32 handle)
{
	const struct llds_entry *entry = llds_block(&store->memory, handle);

	if (entry->sizes & LLDS_ENTRY_APART)
		drop_apart(store, apart_of(entry));
	llds_block_free(&store->memory, handle);
}

/* Makes an entry that nothing names yet; 0 if there is no memory. */
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
	/* Readers of what was here before find out. */
	WRITE_ONCE(entry->version, (entry->version + 2) & ~1U);
	WRITE_ONCE(entry->sizes, llds_sizes(key->bytes, body_bytes) |
				 (is_apart ? LLDS_ENTRY_APART : 0));
	llds_os_copy(entry->bytes, key->at, key->bytes);
	llds_os_copy(entry->bytes + key->bytes, value, body_bytes);
	return handle;
}

/* Puts a new value in the place of the old one; false if it does not fit. */
static bool change_in_place(struct llds_store *store,
			    const struct llds_key *key, struct found found,
			    struct llds_entry *entry, const void *value,
			    u32 bytes)
{
	const u32 old = llds_body_bytes(entry->sizes);

	if (entry->sizes & LLDS_ENTRY_APART || bytes > LLDS_VALUE_BYTES_INLINE)
		return false;
	/* Of about the same size: then the block is the one that it would get. */
	if (bytes != old &&
	    llds_block_bytes(llds_entry_bytes(key->bytes, bytes)) !=
	    llds_block_bytes(llds_entry_bytes(key->bytes, old)))
		return false;
	if (found.home)
		llds_bucket_begin(found.home);
	WRITE_ONCE(entry->version, entry->version + 1);
	/* Pairs with what a scan does before it looks at the version again. */
	smp_wmb();
	if (bytes != old)
		WRITE_ONCE(entry->sizes, llds_sizes(key->bytes, bytes));
	llds_os_copy(entry->bytes + key->bytes, value, bytes);
	/* Pairs with the acquire of its first look. */
	smp_store_release(&entry->version, entry->version + 1);
	if (found.home)
		llds_bucket_end(found.home);
	store->pair_bytes += (u64)bytes - old;
	return true;
}

/* Puts an entry in whose key is not there; false if there is no memory. */
static bool add(struct llds_store *store, const struct llds_key *key,
		struct found found, u32 handle)
{
	if (!found.home)
		return llds_tree_add(&store->tree, handle);
	if (!llds_buckets_prepare(&store->buckets, found.home) ||
	    !llds_order_add(&store->order, handle))
		return false;
	llds_buckets_add(&store->buckets, found.home, key->hash, handle);
	return true;
}

int llds_set(struct llds_store *store, const struct llds_key *key,
	     const void *value, u32 bytes)
{
	const struct found found = find(store, key);
	struct llds_entry *entry;
	u32 handle, old_bytes = 0;

	if (found.handle) {
		entry = llds_block(&store->memory, found.handle);
		if (change_in_place(store, key, found, entry, value, bytes))
			return 0;
		old_bytes = llds_value_of(store, entry).bytes;
	}
	store->budget.is_refused = false;
	handle = new_entry(store, key, value, bytes);
	if (!handle)
		goto no_memory;
	if (!found.handle) {
		if (!add(store, key, found, handle)) {
			free_entry(store, handle);
			goto no_memory;
		}
		store->pair_bytes += key->bytes + bytes;
		return 0;
	}
	if (found.home) {
		llds_order_replace(&store->order, found.handle, handle);
		llds_buckets_replace(&store->buckets, found.home, found.handle,
				     handle);
	} else {
		found.node->handle = handle;
	}
	free_entry(store, found.handle);
	store->pair_bytes += (u64)bytes - old_bytes;
	return 0;

no_memory:
	return store->budget.is_refused ? -ENOSPC : -ENOMEM;
}

bool llds_delete(struct llds_store *store, const struct llds_key *key)
{
	const struct found found = find(store, key);
	const struct llds_entry *entry;

	if (!found.handle)
		return false;
	entry = llds_block(&store->memory, found.handle);
	store->pair_bytes -= key->bytes + llds_value_of(store, entry).bytes;
	if (found.home) {
		llds_order_remove(&store->order, found.handle);
		llds_buckets_remove(&store->buckets, found.home, found.handle);
	} else {
		llds_tree_remove(&store->tree, found.node);
	}
	free_entry(store, found.handle);
	return true;
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

const struct llds_entry *llds_seek(const struct llds_store *store,
				   union llds_cursor *cursor,
				   const void *key, u32 key_bytes)
{
	if (store->index == LLDS_INDEX_DEFAULT)
		cursor->place = llds_order_seek(&store->order, key, key_bytes);
	else
		cursor->node = llds_tree_seek(&store->tree, key, key_bytes);
	return at(store, cursor);
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
	return at(store, cursor);
}

const struct llds_entry *llds_next(const struct llds_store *store,
				   union llds_cursor *cursor)
{
	if (store->index == LLDS_INDEX_DEFAULT)
		llds_order_next(&store->order, &cursor->place);
	else
		cursor->node = llds_tree_next(cursor->node);
	return at(store, cursor);
}

const struct llds_entry *llds_prev(const struct llds_store *store,
				   union llds_cursor *cursor)
{
	if (store->index == LLDS_INDEX_DEFAULT)
		llds_order_prev(&store->order, &cursor->place);
	else
		cursor->node = llds_tree_prev(cursor->node);
	return at(store, cursor);
}

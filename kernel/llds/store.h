/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * An ordered store: pairs, found by their keys and in their order.
 *
 * The caller holds the store's lock: shared for reads, exclusive for changes.
 * This code does not access user memory. A function that fails, without memory
 * or because the budget is exceeded, leaves the store as it was.
 */
#ifndef LLDS_STORE_H
#define LLDS_STORE_H

#include "buckets.h"
#include "order.h"
#include "tree.h"

#define LLDS_KEY_BYTES_LIMIT 4096
#define LLDS_VALUE_BYTES_LIMIT 0x40000000U

/* The index structures of a store. */
enum llds_index {
	/* A hash index for lookups, a B+-tree for the order. */
	LLDS_INDEX_DEFAULT,
	/* The kernel's red-black tree for both, for comparison. */
	LLDS_INDEX_TREE,
};

/**
 * struct llds_aparts - values that are stored apart
 * @values: the values by number; an unused number has the next unused one,
 *	times two plus one
 * @room: capacity of @values
 * @free: the first unused number
 */
struct llds_aparts {
	void **values;
	u32 room;
	u32 free;
};

/**
 * struct llds_change - a change that can be undone
 * @old: the previous entry, or 0
 * @new: the entry that replaced it, or 0
 */
struct llds_change {
	u32 old;
	u32 new;
};

/**
 * struct llds_journal - the changes of an atomic run
 * @is_open: whether an atomic run is in progress
 * @changes: the changes, in order
 * @room: capacity of @changes
 * @n: number of changes
 * @pair_bytes: the store's value before the run
 */
struct llds_journal {
	bool is_open;
	struct llds_change *changes;
	u32 room;
	u32 n;
	u64 pair_bytes;
};

/**
 * struct llds_store - a store
 * @index: its index structures
 * @budget: its allocated bytes, and their limit
 * @memory: its blocks
 * @buckets: the hash index
 * @order: the order of the keys
 * @tree: the index for comparison
 * @aparts: values too long for a block
 * @journal: the changes of an atomic run
 * @header: the page that a mapping shows first
 * @pair_bytes: bytes of keys and values
 * @moves: changes whenever an entry is added, replaced or removed
 */
struct llds_store {
	enum llds_index index;
	struct llds_budget budget;
	struct llds_memory memory;
	struct llds_buckets buckets;
	struct llds_order order;
	struct llds_tree tree;
	struct llds_aparts aparts;
	struct llds_journal journal;
	struct llds_header *header;
	u64 pair_bytes;
	u64 moves;
};

/* A value in place; valid until the lock is released. */
struct llds_value {
	const void *at;
	u32 bytes;
};

/* A key with its hash. */
struct llds_key {
	const u8 *at;
	u32 bytes;
	u64 hash;
};

/* Returns 0, or -ENOMEM. */
int llds_store_init(struct llds_store *store, enum llds_index index,
		    u64 bytes_max, u64 salt);

/* Frees everything; yields the processor now and then. */
void llds_store_drop(struct llds_store *store);

/* Number of pairs. */
static inline u64 llds_store_keys(const struct llds_store *store)
{
	return store->buckets.keys + store->tree.keys;
}

static inline struct llds_key llds_key(const struct llds_store *store,
				       const void *at, u32 bytes)
{
	const u64 salt = store->header->salt;

	/* Most keys have 8 bytes; this avoids the loop. */
	return (struct llds_key){
		at, bytes, likely(bytes == 8) ? llds_hash(salt, at, 8) :
						llds_hash(salt, at, bytes)
	};
}

/* Sets whether mappings of the store may exist. */
void llds_show(struct llds_store *store, bool is_shown);

/*
 * The page of a mapping at an offset, or NULL. Needs no lock, so that no page
 * fault waits for a writer, but see llds_piece_shown().
 */
void *llds_shown_at(const struct llds_store *store, u64 offset);

/* Finds a pair, or NULL. */
const struct llds_entry *llds_find(const struct llds_store *store,
				   const struct llds_key *key);

/* The value of a pair. */
static inline struct llds_value
llds_value_of(const struct llds_store *store, const struct llds_entry *entry)
{
	struct llds_apart apart;

	if (likely(!(entry->sizes & LLDS_ENTRY_APART)))
		return (struct llds_value){ llds_body(entry),
					    llds_body_bytes(entry->sizes) };
	apart = llds_apart_of(entry);
	return (struct llds_value){ store->aparts.values[apart.number],
				    apart.bytes };
}

/*
 * Sets a key to a value, which must not lie in the store's memory. Returns 0,
 * -ENOMEM, or -ENOSPC if that exceeds the budget.
 */
int llds_set(struct llds_store *store, const struct llds_key *key,
	     const void *value, u32 bytes);

/* Seqlock reads see the changes between these two together, or not at all. */
static inline void llds_as_one_begin(struct llds_store *store)
{
	WRITE_ONCE(store->header->sequence, store->header->sequence + 1);
	/* Pairs with the fence of a seqlock read before its second load. */
	smp_wmb();
}

static inline void llds_as_one_end(struct llds_store *store)
{
	/* Pairs with the acquire of a seqlock read's first load. */
	smp_store_release(&store->header->sequence,
			  store->header->sequence + 1);
}

/*
 * Removes a pair. Returns 1, or 0 if there is none; in an atomic run also
 * -ENOMEM or -ENOSPC.
 */
int llds_delete(struct llds_store *store, const struct llds_key *key);

/*
 * An atomic run: llds_commit() keeps the changes since llds_begin(),
 * llds_abort() undoes them; neither can fail. Until then replaced entries are
 * not freed, and each change takes memory in the journal.
 */
void llds_begin(struct llds_store *store);
void llds_commit(struct llds_store *store);
void llds_abort(struct llds_store *store);

/*
 * A position in the order of keys. Any change invalidates it, except
 * llds_delete() in an atomic run.
 */
union llds_cursor {
	struct llds_place place;
	struct llds_tree_node *node;
};

/* The pair at the first key that is not below this one, or NULL. */
const struct llds_entry *llds_seek(const struct llds_store *store,
				   union llds_cursor *cursor,
				   const void *key, u32 key_bytes);

/* The pair at the last key below this one; the last of all without a key. */
const struct llds_entry *llds_seek_before(const struct llds_store *store,
					  union llds_cursor *cursor,
					  const void *key, u32 key_bytes);

/* The next pair, or the previous one. REQUIRES: the last move found one. */
const struct llds_entry *llds_next(const struct llds_store *store,
				   union llds_cursor *cursor);
const struct llds_entry *llds_prev(const struct llds_store *store,
				   union llds_cursor *cursor);

#endif /* LLDS_STORE_H */

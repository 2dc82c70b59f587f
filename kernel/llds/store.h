/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * An ordered store: pairs, found by their keys and in their order.
 *
 * Everything here is guarded by a lock that the caller has: shared to read,
 * alone to change. Nothing here touches memory of a user. What fails for want
 * of memory, or of room in the budget, leaves the store as it was.
 */
#ifndef LLDS_STORE_H
#define LLDS_STORE_H

#include "buckets.h"
#include "order.h"
#include "tree.h"

#define LLDS_KEY_BYTES_LIMIT 4096
#define LLDS_VALUE_BYTES_LIMIT 0x40000000U

/* Which structure keeps the order. */
enum llds_index {
	/* Buckets for points, a B+-tree for order. */
	LLDS_INDEX_DEFAULT,
	/* The kernel's red-black tree for both: to compare with. */
	LLDS_INDEX_TREE,
};

/**
 * struct llds_aparts - values that lie by themselves
 * @values: where they are, by number; a number that is free is odd and says,
 *	times two, which is free next
 * @room: how many there is room for
 * @free: the first number that is free
 */
struct llds_aparts {
	void **values;
	u32 room;
	u32 free;
};

/**
 * struct llds_change - a change that can be undone
 * @old: the entry that was there, or 0
 * @new: the entry that is there instead, or 0
 */
struct llds_change {
	u32 old;
	u32 new;
};

/**
 * struct llds_journal - changes that are being made as one
 * @is_open: whether there are any to come
 * @changes: what was changed, in order
 * @room: how many there is room for
 * @n: how many there are
 * @pair_bytes: what the store had before
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
 * @index: which structure it has
 * @budget: what it has taken, and may take
 * @memory: its blocks
 * @buckets: the index for points
 * @order: the index for order
 * @tree: the index for both, to compare with
 * @aparts: values too long for a block
 * @journal: changes that are being made as one
 * @header: what a mapping begins with
 * @pair_bytes: bytes of keys and values
 * @moves: until it changes, entries stay where they are, and what names them
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

/* A value, where it lies, until the lock is given back. */
struct llds_value {
	const void *at;
	u32 bytes;
};

/* A key, with its hash once it is known. */
struct llds_key {
	const u8 *at;
	u32 bytes;
	u64 hash;
};

/* 0, or -ENOMEM. */
int llds_store_init(struct llds_store *store, enum llds_index index,
		    u64 bytes_max, u64 salt);

/* Gives everything back, and the processor up now and then. */
void llds_store_drop(struct llds_store *store);

/* How many pairs there are. */
static inline u64 llds_store_keys(const struct llds_store *store)
{
	return store->buckets.keys + store->tree.keys;
}

static inline struct llds_key llds_key(const struct llds_store *store,
				       const void *at, u32 bytes)
{
	const u64 salt = store->header->salt;

	/* Most keys are a word, and then there is no loop. */
	return (struct llds_key){
		at, bytes, likely(bytes == 8) ? llds_hash(salt, at, 8) :
						llds_hash(salt, at, bytes)
	};
}

/* Whether somebody may have the store in sight from now on. */
void llds_show(struct llds_store *store, bool is_shown);

/* The page that a mapping shows at an offset; NULL if there is none. */
void *llds_shown_at(const struct llds_store *store, u64 offset);

/* Finds a pair; NULL if there is none. */
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
 * Makes a key mean a value, which does not lie in the store; 0, -ENOMEM, or
 * -ENOSPC if the budget does not allow it.
 */
int llds_set(struct llds_store *store, const struct llds_key *key,
	     const void *value, u32 bytes);

/* What is changed between these two, readers without the lock see as one. */
static inline void llds_as_one_begin(struct llds_store *store)
{
	WRITE_ONCE(store->header->sequence, store->header->sequence + 1);
	/* Pairs with what they do before they look at it once more. */
	smp_wmb();
}

static inline void llds_as_one_end(struct llds_store *store)
{
	/* Pairs with the acquire of their first look. */
	smp_store_release(&store->header->sequence,
			  store->header->sequence + 1);
}

/*
 * Removes a pair; 1, or 0 if there is none; between llds_begin() and its end
 * also -ENOMEM or -ENOSPC.
 */
int llds_delete(struct llds_store *store, const struct llds_key *key);

/*
 * What is changed from llds_begin() on is kept by llds_commit(), or undone by
 * llds_abort(); neither of them can fail. Until then no memory goes back, and
 * a change takes some for itself.
 */
void llds_begin(struct llds_store *store);
void llds_commit(struct llds_store *store);
void llds_abort(struct llds_store *store);

/*
 * A place in the order of keys; void after any change, but for llds_delete()
 * between llds_begin() and its end.
 */
union llds_cursor {
	struct llds_place place;
	struct llds_tree_node *node;
};

/* The pair at the first key that is not below this one; NULL if none is. */
const struct llds_entry *llds_seek(const struct llds_store *store,
				   union llds_cursor *cursor,
				   const void *key, u32 key_bytes);

/* The pair at the last key below this one, or of all if there is no key. */
const struct llds_entry *llds_seek_before(const struct llds_store *store,
					  union llds_cursor *cursor,
					  const void *key, u32 key_bytes);

/* The next pair, or the one before. REQUIRES: the last move found one. */
const struct llds_entry *llds_next(const struct llds_store *store,
				   union llds_cursor *cursor);
const struct llds_entry *llds_prev(const struct llds_store *store,
				   union llds_cursor *cursor);

#endif /* LLDS_STORE_H */

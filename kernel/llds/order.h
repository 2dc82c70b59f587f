/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * The entries of a store in the order of their keys: a B+-tree of
 * handles.
 *
 * Leaves of 256 bytes name up to 30 entries, inner nodes of 1024 bytes up to
 * 84 children, each with the 4 bytes of its key, or of the separator before
 * it, that follow what all keys below the node have in common. So a search
 * hardly ever looks at a key outside the node. What they have in common is
 * known without looking at them: it is what the separators at both ends of
 * the node have in common, as every key between two shares that. Separators
 * are as short as they can be.
 *
 * Changes are guarded by the store's lock. A reader without it trusts what it
 * has read if 'order_sequence' of the header and the sequence of the leaf are
 * even, and have not moved since it began: the first moves when nodes are
 * made, merged or freed, the second when entries of the leaf come, go or are
 * replaced. It looks at them before it goes where something leads, and at the
 * version of an entry before and after its value. What the store's sequence
 * is for, buckets.h says.
 */
#ifndef LLDS_ORDER_H
#define LLDS_ORDER_H

#include "entry.h"

#define LLDS_LEAF_SLOTS 30
#define LLDS_INNER_SLOTS 84
/* Levels of a tree of 2^32 entries, if nodes were all but empty. */
#define LLDS_LEVELS_MAX 16

/**
 * struct llds_node - how a leaf and an inner node begin
 * @sequence: of a leaf: odd while it is being changed
 * @level: 0 for a leaf
 * @count: how many slots are used
 * @skip: bytes that all keys below have in common
 */
struct llds_node {
	u32 sequence;
	u8 level;
	u8 count;
	u16 skip;
};

/**
 * struct llds_leaf - a leaf
 * @node: how it begins
 * @next: the leaf behind it, or 0
 * @prev: the leaf before it, or 0
 * @heads: of each key the 4 bytes behind 'skip', the first byte highest,
 *	filled up with zeros; in slots that are not used, the highest there is
 * @handles: the entries
 */
struct llds_leaf {
	struct llds_node node;
	u32 next;
	u32 prev;
	u32 heads[LLDS_LEAF_SLOTS];
	u32 handles[LLDS_LEAF_SLOTS];
};

/**
 * struct llds_inner - an inner node
 * @node: how it begins
 * @reserved: nothing
 * @heads: of each separator, as in a leaf; nothing in slot 0
 * @separators: no key of a child is below its separator, and none of the
 *	child before is not; nothing in slot 0
 * @children: the children
 */
struct llds_inner {
	struct llds_node node;
	u32 reserved[2];
	u32 heads[LLDS_INNER_SLOTS];
	u32 separators[LLDS_INNER_SLOTS];
	u32 children[LLDS_INNER_SLOTS];
};

/**
 * struct llds_separator - a separator
 * @bytes: its length
 * @text: what it is
 */
struct llds_separator {
	u16 bytes;
	u8 text[];
};

/**
 * struct llds_order - the tree
 * @memory: where its nodes are, and the entries
 * @header: where it says which node is the root, how many levels there are
 *	above the leaves, and whether nodes are made, merged or freed
 */
struct llds_order {
	struct llds_memory *memory;
	struct llds_header *header;
};

/**
 * struct llds_place - where an entry is; void after any change
 * @leaf: the leaf, or 0 if it is at no entry
 * @slot: which of its entries
 */
struct llds_place {
	u32 leaf;
	u32 slot;
};

void llds_order_init(struct llds_order *order, struct llds_memory *memory,
		     struct llds_header *header);

/* Puts an entry in whose key is not there; false if there is no memory. */
bool llds_order_add(struct llds_order *order, u32 handle);

/* Puts an entry in the place of one with the same key. */
void llds_order_replace(struct llds_order *order, u32 old, u32 handle);

/* Takes an entry out that is there. */
void llds_order_remove(struct llds_order *order, u32 handle);

/* The first entry whose key is not below this one. */
struct llds_place llds_order_seek(const struct llds_order *order,
				  const u8 *key, u32 key_bytes);

/* The last entry whose key is below this one; of all if there is no key. */
struct llds_place llds_order_seek_before(const struct llds_order *order,
					 const u8 *key, u32 key_bytes);

/* Go on. REQUIRES: there is an entry at the place. */
void llds_order_next(const struct llds_order *order, struct llds_place *at);
void llds_order_prev(const struct llds_order *order, struct llds_place *at);

/* The entry at a place, or 0. */
static inline u32 llds_order_at(const struct llds_order *order,
				struct llds_place at)
{
	const struct llds_leaf *leaf;

	if (!at.leaf)
		return 0;
	leaf = llds_block(order->memory, at.leaf);
	return leaf->handles[at.slot];
}

#endif /* LLDS_ORDER_H */

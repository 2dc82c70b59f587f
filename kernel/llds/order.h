/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * The entries of a store in the order of their keys: a B+-tree of
 * handles.
 *
 * A leaf has 256 bytes and names up to 30 entries. An inner node has 1024 bytes
 * and names up to 84 children. For each key, or for the separator before each
 * child, a node has a head: the 4 bytes after the prefix that all keys below
 * the node share. So a search rarely compares keys outside of the node. The
 * shared prefix is that of the separators at both ends of the node, because
 * every key between two keys has their common prefix. Separators are as short
 * as possible.
 *
 * The store's lock guards changes. A seqlock scan takes no lock. It accepts
 * what it has read if 'order_sequence' of the header and the sequence of the
 * leaf were even, and have not changed since it began. The first changes when
 * nodes are made, split, merged or freed; the second when entries of the leaf
 * are added, removed or replaced. The scan checks them before it follows a
 * handle, and the version of an entry before and after it reads the value.
 * buckets.h explains the store's sequence.
 */
#ifndef LLDS_ORDER_H
#define LLDS_ORDER_H

#include "entry.h"

#define LLDS_LEAF_SLOTS 30
#define LLDS_INNER_SLOTS 84
/* Enough levels for 2^32 entries even if nodes are almost empty. */
#define LLDS_LEVELS_MAX 16

/**
 * struct llds_node - the head of a leaf or an inner node
 * @sequence: of a leaf: odd while it is being changed
 * @level: 0 for a leaf
 * @count: number of used slots
 * @skip: bytes of the prefix that all keys below share
 */
struct llds_node {
	u32 sequence;
	u8 level;
	u8 count;
	u16 skip;
};

/**
 * struct llds_leaf - a leaf
 * @node: its head
 * @next: the next leaf, or 0
 * @prev: the previous leaf, or 0
 * @heads: the 4 bytes of each key after the first @node.skip, as a big-endian
 *	number, padded with zeros; ~0 in unused slots
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
 * @node: its head
 * @reserved: unused
 * @heads: the heads of the separators, as in a leaf; slot 0 is unused
 * @separators: the keys of a child are not below its separator, and those of
 *	the previous child are; slot 0 is unused
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
 * @text: its bytes
 */
struct llds_separator {
	u16 bytes;
	u8 text[];
};

/**
 * struct llds_order - the tree
 * @memory: its nodes, and the entries
 * @header: has the root, the number of levels above the leaves, and the
 *	sequence of the nodes
 */
struct llds_order {
	struct llds_memory *memory;
	struct llds_header *header;
};

/**
 * struct llds_place - a position in the order; any change invalidates it
 * @leaf: the leaf, or 0 for no entry
 * @slot: the slot of the entry
 */
struct llds_place {
	u32 leaf;
	u32 slot;
};

void llds_order_init(struct llds_order *order, struct llds_memory *memory,
		     struct llds_header *header);

/* Adds an entry; returns false without memory. REQUIRES: the key is absent. */
bool llds_order_add(struct llds_order *order, u32 handle);

/* Replaces an entry by one with the same key. */
void llds_order_replace(struct llds_order *order, u32 old, u32 handle);

/* Removes an entry. REQUIRES: it is in the order. */
void llds_order_remove(struct llds_order *order, u32 handle);

/* The entry of a key, or 0. */
u32 llds_order_find(const struct llds_order *order, const u8 *key,
		    u32 key_bytes);

/* The first entry whose key is not below this one. */
struct llds_place llds_order_seek(const struct llds_order *order,
				  const u8 *key, u32 key_bytes);

/* The last entry whose key is below this one; the last of all without a key. */
struct llds_place llds_order_seek_before(const struct llds_order *order,
					 const u8 *key, u32 key_bytes);

/* Move to the neighbour. REQUIRES: there is an entry at the place. */
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

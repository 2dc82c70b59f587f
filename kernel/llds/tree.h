/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * A red-black tree of entries, as kernel code usually keeps ordered data: the
 * index that the other indexes are compared with.
 *
 * In the kernel it is the kernel's tree; in user space one with its interface.
 */
#ifndef LLDS_TREE_H
#define LLDS_TREE_H

#include "entry.h"

#ifdef __KERNEL__
#include <linux/rbtree.h>
#else
#include "user/rbtree.h"
#endif

/**
 * struct llds_tree_node - a node
 * @node: its links
 * @handle: the entry
 */
struct llds_tree_node {
	struct rb_node node;
	u32 handle;
};

/**
 * struct llds_tree - the tree
 * @root: the root
 * @memory: the entries
 * @keys: number of entries
 */
struct llds_tree {
	struct rb_root root;
	struct llds_memory *memory;
	u64 keys;
};

void llds_tree_init(struct llds_tree *tree, struct llds_memory *memory);

/* Frees the nodes; yields the processor now and then. */
void llds_tree_drop(struct llds_tree *tree);

/* The node of a key, or NULL. */
struct llds_tree_node *llds_tree_find(const struct llds_tree *tree,
				      const u8 *key, u32 key_bytes);

/* Adds an entry; returns false without memory. REQUIRES: the key is absent. */
bool llds_tree_add(struct llds_tree *tree, u32 handle);

/* Removes a node. */
void llds_tree_remove(struct llds_tree *tree, struct llds_tree_node *node);

/* The first node whose key is not below this one, or NULL. */
struct llds_tree_node *llds_tree_seek(const struct llds_tree *tree,
				      const u8 *key, u32 key_bytes);

/* The last node whose key is below this one; the last of all without a key. */
struct llds_tree_node *llds_tree_seek_before(const struct llds_tree *tree,
					     const u8 *key, u32 key_bytes);

struct llds_tree_node *llds_tree_next(struct llds_tree_node *node);
struct llds_tree_node *llds_tree_prev(struct llds_tree_node *node);

#endif /* LLDS_TREE_H */

/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * A red-black tree of entries, as stores in the kernel use to have
 * it: what the other index is compared with.
 *
 * In the kernel it is the kernel's own; in user space one with its interface.
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
 * @node: its place in the tree
 * @handle: the entry
 */
struct llds_tree_node {
	struct rb_node node;
	u32 handle;
};

/**
 * struct llds_tree - the tree
 * @root: the root
 * @memory: where entries are
 * @keys: how many there are
 */
struct llds_tree {
	struct rb_root root;
	struct llds_memory *memory;
	u64 keys;
};

void llds_tree_init(struct llds_tree *tree, struct llds_memory *memory);

/* Gives the nodes back, and the processor up now and then. */
void llds_tree_drop(struct llds_tree *tree);

/* The node of a key, or NULL. */
struct llds_tree_node *llds_tree_find(const struct llds_tree *tree,
				      const u8 *key, u32 key_bytes);

/* Puts an entry in whose key is not there; false if there is no memory. */
bool llds_tree_add(struct llds_tree *tree, u32 handle);

/* Takes a node out. */
void llds_tree_remove(struct llds_tree *tree, struct llds_tree_node *node);

/* The first node whose key is not below this one, or NULL. */
struct llds_tree_node *llds_tree_seek(const struct llds_tree *tree,
				      const u8 *key, u32 key_bytes);

/* The last node whose key is below this one; of all if there is no key. */
struct llds_tree_node *llds_tree_seek_before(const struct llds_tree *tree,
					     const u8 *key, u32 key_bytes);

struct llds_tree_node *llds_tree_next(struct llds_tree_node *node);
struct llds_tree_node *llds_tree_prev(struct llds_tree_node *node);

#endif /* LLDS_TREE_H */

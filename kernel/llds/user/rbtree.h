/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A red-black tree for user space, with the part of the kernel's interface that
 * the engine uses.
 */
#ifndef LLDS_USER_RBTREE_H
#define LLDS_USER_RBTREE_H

#include <stddef.h>
#include <stdint.h>

/* The lowest bit of the parent is the colour: 1 is black. */
struct rb_node {
	uintptr_t parent_and_color;
	struct rb_node *rb_right;
	struct rb_node *rb_left;
};

struct rb_root {
	struct rb_node *rb_node;
};

#define RB_ROOT ((struct rb_root){ NULL })
#define rb_entry(pointer, type, member) \
	((type *)((char *)(pointer) - offsetof(type, member)))

static inline struct rb_node *rb_parent(const struct rb_node *node)
{
	return (struct rb_node *)(node->parent_and_color & ~(uintptr_t)1);
}

/* Links a node as a red leaf. */
static inline void rb_link_node(struct rb_node *node, struct rb_node *parent,
				struct rb_node **link)
{
	node->parent_and_color = (uintptr_t)parent;
	node->rb_left = NULL;
	node->rb_right = NULL;
	*link = node;
}

/* Balances the tree after a leaf was linked. */
void rb_insert_color(struct rb_node *node, struct rb_root *root);

/* Removes a node. */
void rb_erase(struct rb_node *node, struct rb_root *root);

struct rb_node *rb_next(const struct rb_node *node);
struct rb_node *rb_prev(const struct rb_node *node);

#endif /* LLDS_USER_RBTREE_H */

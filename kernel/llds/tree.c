// SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0
/*
 * A red-black tree of entries, for comparison.
 */
#include "tree.h"

void llds_tree_init(struct llds_tree *tree, struct llds_memory *memory)
{
	tree->root = RB_ROOT;
	tree->memory = memory;
	tree->keys = 0;
}

static struct llds_tree_node *of(struct rb_node *node)
{
	return node ? rb_entry(node, struct llds_tree_node, node) : NULL;
}

static void free_node(struct llds_tree *tree, struct llds_tree_node *node)
{
	llds_give(tree->memory->budget, node, sizeof(*node));
}

void llds_tree_drop(struct llds_tree *tree)
{
	struct rb_node *node = tree->root.rb_node, *parent;

	/* From the leaves upwards, without rebalancing. */
	while (node) {
		if (node->rb_left) {
			node = node->rb_left;
		} else if (node->rb_right) {
			node = node->rb_right;
		} else {
			parent = rb_parent(node);
			if (parent && parent->rb_left == node)
				parent->rb_left = NULL;
			else if (parent)
				parent->rb_right = NULL;
			free_node(tree, of(node));
			node = parent;
			llds_os_relax();
		}
	}
	llds_tree_init(tree, tree->memory);
}

/* Compares a key with that of a node. */
static int order_to(const struct llds_tree *tree, const u8 *key,
		    u32 key_bytes, struct rb_node *node)
{
	const struct llds_entry *entry =
		llds_block(tree->memory, of(node)->handle);

	return llds_key_order(key, key_bytes, entry->bytes,
			      llds_key_bytes(entry->sizes));
}

struct llds_tree_node *llds_tree_find(const struct llds_tree *tree,
				      const u8 *key, u32 key_bytes)
{
	struct rb_node *node = tree->root.rb_node;

	while (node) {
		const int order = order_to(tree, key, key_bytes, node);

		if (!order)
			return of(node);
		node = order < 0 ? node->rb_left : node->rb_right;
	}
	return NULL;
}

bool llds_tree_add(struct llds_tree *tree, u32 handle)
{
	const struct llds_entry *entry = llds_block(tree->memory, handle);
	const u32 key_bytes = llds_key_bytes(entry->sizes);
	struct rb_node **link = &tree->root.rb_node, *parent = NULL;
	struct llds_tree_node *new;

	new = llds_take(tree->memory->budget, sizeof(*new));
	if (!new)
		return false;
	new->handle = handle;
	while (*link) {
		parent = *link;
		if (order_to(tree, entry->bytes, key_bytes, parent) < 0)
			link = &parent->rb_left;
		else
			link = &parent->rb_right;
	}
	rb_link_node(&new->node, parent, link);
	rb_insert_color(&new->node, &tree->root);
	tree->keys++;
	return true;
}

void llds_tree_remove(struct llds_tree *tree, struct llds_tree_node *node)
{
	rb_erase(&node->node, &tree->root);
	free_node(tree, node);
	tree->keys--;
}

struct llds_tree_node *llds_tree_seek(const struct llds_tree *tree,
				      const u8 *key, u32 key_bytes)
{
	struct rb_node *node = tree->root.rb_node, *best = NULL;

	while (node) {
		if (order_to(tree, key, key_bytes, node) <= 0) {
			best = node;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return of(best);
}

struct llds_tree_node *llds_tree_seek_before(const struct llds_tree *tree,
					     const u8 *key, u32 key_bytes)
{
	struct rb_node *node = tree->root.rb_node, *best = NULL;

	while (node) {
		if (!key || order_to(tree, key, key_bytes, node) > 0) {
			best = node;
			node = node->rb_right;
		} else {
			node = node->rb_left;
		}
	}
	return of(best);
}

struct llds_tree_node *llds_tree_next(struct llds_tree_node *node)
{
	return of(rb_next(&node->node));
}

struct llds_tree_node *llds_tree_prev(struct llds_tree_node *node)
{
	return of(rb_prev(&node->node));
}

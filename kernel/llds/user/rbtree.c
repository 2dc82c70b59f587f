// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A red-black tree with the interface of the kernel's.
 *
 * Insertion and removal are the textbook's (Cormen, Leiserson, Rivest, Stein,
 * chapter 13), with null pointers for leaves, so that removal carries the
 * parent of the place that it repairs.
 */
#include <stdbool.h>

#include "rbtree.h"

static bool is_black(const struct rb_node *node)
{
	return !node || node->parent_and_color & 1;
}

static void set_black(struct rb_node *node, bool black)
{
	node->parent_and_color = (node->parent_and_color & ~(uintptr_t)1) |
				 black;
}

static void set_parent(struct rb_node *node, struct rb_node *parent)
{
	node->parent_and_color = (uintptr_t)parent |
				 (node->parent_and_color & 1);
}

/* The link that points to a node. */
static struct rb_node **link_of(const struct rb_node *node,
				struct rb_root *root)
{
	struct rb_node *parent = rb_parent(node);

	if (!parent)
		return &root->rb_node;
	return parent->rb_left == node ? &parent->rb_left : &parent->rb_right;
}

/* The link to the left or right child. */
static struct rb_node **side(struct rb_node *node, bool left)
{
	return left ? &node->rb_left : &node->rb_right;
}

/* Rotates a node to one side; its child on the other side replaces it. */
static void rotate(struct rb_node *node, bool left, struct rb_root *root)
{
	struct rb_node *child = *side(node, !left);
	struct rb_node *inner = *side(child, left);

	*link_of(node, root) = child;
	set_parent(child, rb_parent(node));
	*side(child, left) = node;
	set_parent(node, child);
	*side(node, !left) = inner;
	if (inner)
		set_parent(inner, node);
}

void rb_insert_color(struct rb_node *node, struct rb_root *root)
{
	struct rb_node *parent, *grand, *uncle;
	bool left;

	while ((parent = rb_parent(node)) && !is_black(parent)) {
		grand = rb_parent(parent);
		left = grand->rb_left == parent;
		uncle = *side(grand, !left);
		if (!is_black(uncle)) {
			set_black(parent, true);
			set_black(uncle, true);
			set_black(grand, false);
			node = grand;
			continue;
		}
		if (*side(parent, !left) == node) {
			rotate(parent, left, root);
			parent = node;
		}
		set_black(parent, true);
		set_black(grand, false);
		rotate(grand, !left, root);
		break;
	}
	set_black(root->rb_node, true);
}

/* Rebalances after one side of 'parent' has lost a black node. */
static void repair(struct rb_node *node, struct rb_node *parent,
		   struct rb_root *root)
{
	struct rb_node *other;
	bool left;

	while (parent && is_black(node)) {
		left = parent->rb_left == node;
		other = *side(parent, !left);
		if (!is_black(other)) {
			set_black(other, true);
			set_black(parent, false);
			rotate(parent, left, root);
			other = *side(parent, !left);
		}
		if (is_black(other->rb_left) && is_black(other->rb_right)) {
			set_black(other, false);
			node = parent;
			parent = rb_parent(node);
			continue;
		}
		if (is_black(*side(other, !left))) {
			set_black(*side(other, left), true);
			set_black(other, false);
			rotate(other, !left, root);
			other = *side(parent, !left);
		}
		set_black(other, is_black(parent));
		set_black(parent, true);
		set_black(*side(other, !left), true);
		rotate(parent, left, root);
		return;
	}
	if (node)
		set_black(node, true);
}

void rb_erase(struct rb_node *node, struct rb_root *root)
{
	struct rb_node *child, *parent, *next;
	bool black;

	if (node->rb_left && node->rb_right) {
		/* The successor has no left child; it replaces the node. */
		next = node->rb_right;
		while (next->rb_left)
			next = next->rb_left;
		child = next->rb_right;
		black = is_black(next);
		parent = rb_parent(next);
		*link_of(next, root) = child;
		if (child)
			set_parent(child, parent);
		if (parent == node)
			parent = next;
		next->parent_and_color = node->parent_and_color;
		next->rb_left = node->rb_left;
		next->rb_right = node->rb_right;
		*link_of(node, root) = next;
		if (next->rb_left)
			set_parent(next->rb_left, next);
		if (next->rb_right)
			set_parent(next->rb_right, next);
	} else {
		child = node->rb_left ? node->rb_left : node->rb_right;
		parent = rb_parent(node);
		black = is_black(node);
		*link_of(node, root) = child;
		if (child)
			set_parent(child, parent);
	}
	if (black)
		repair(child, parent, root);
}

/* The next node to one side. */
static struct rb_node *step(const struct rb_node *node, bool left)
{
	struct rb_node *at = left ? node->rb_left : node->rb_right;

	if (at) {
		while (*side(at, !left))
			at = *side(at, !left);
		return at;
	}
	while ((at = rb_parent(node)) && *side(at, left) == node)
		node = at;
	return at;
}

struct rb_node *rb_next(const struct rb_node *node)
{
	return step(node, false);
}

struct rb_node *rb_prev(const struct rb_node *node)
{
	return step(node, true);
}

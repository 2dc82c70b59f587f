// SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0
/*
 * The entries of a store in the order of their keys.
 */
#include "order.h"

/*
 * A leaf or inner node with fewer than FEW used slots is merged with a
 * neighbour if they use at most BOTH together.
 */
#define LEAF_FEW 8
#define LEAF_BOTH 22
#define INNER_FEW 20
#define INNER_BOTH 64

/* A key, or a separator. */
struct text {
	const u8 *at;
	u32 bytes;
};

/* The path from the root to a leaf: nodes, and the slots of the children. */
struct llds_path {
	u32 nodes[LLDS_LEVELS_MAX];
	u32 slots[LLDS_LEVELS_MAX];
	u32 depth;
};

void llds_order_init(struct llds_order *order, struct llds_memory *memory,
		     struct llds_header *header)
{
	BUILD_BUG_ON(sizeof(struct llds_leaf) != 256);
	BUILD_BUG_ON(sizeof(struct llds_inner) != 1024);
	order->memory = memory;
	order->header = header;
}

static inline struct llds_leaf *leaf_at(const struct llds_order *order,
					u32 handle)
{
	return llds_block(order->memory, handle);
}

static inline struct llds_inner *inner_at(const struct llds_order *order,
					  u32 handle)
{
	return llds_block(order->memory, handle);
}

static inline struct text key_of(const struct llds_order *order, u32 handle)
{
	const struct llds_entry *entry = llds_block(order->memory, handle);

	return (struct text){ entry->bytes, llds_key_bytes(entry->sizes) };
}

static inline struct text text_of(const struct llds_order *order, u32 handle)
{
	const struct llds_separator *separator =
		llds_block(order->memory, handle);

	return (struct text){ separator->text, separator->bytes };
}

static inline int order_of(struct text a, struct text b)
{
	return llds_key_order(a.at, a.bytes, b.at, b.bytes);
}

/* The 4 bytes of a key after the first @skip. */
static inline u32 head(struct text key, u32 skip)
{
	u32 i, head = 0;

	if (likely(skip + 4 <= key.bytes))
		return get_unaligned_be32(key.at + skip);
	for (i = 0; i < 4; i++)
		head = head << 8 |
		       (skip + i < key.bytes ? key.at[skip + i] : 0);
	return head;
}

/* The head of unused slots. */
#define UNUSED (~0U)

/* Advances by @slots if the last of them is below @head, without a branch. */
static inline const u32 *step(const u32 *base, u32 slots, u32 head)
{
	return base + (slots & -(u32)(base[slots - 1] < head));
}

/* Counts the heads of a leaf below @head: a binary search of 30 slots. */
static inline u32 below_in_leaf(const u32 *heads, u32 head)
{
	const u32 *base = heads;

	BUILD_BUG_ON(LLDS_LEAF_SLOTS != 30);
	base = step(base, 15, head);
	base = step(base, 7, head);
	base = step(base, 4, head);
	base = step(base, 2, head);
	base = step(base, 1, head);
	return (u32)(base - heads) + (*base < head);
}

/* The same for an inner node: 83 slots, because slot 0 has no head. */
static inline u32 below_in_inner(const u32 *heads, u32 head)
{
	const u32 *base = heads + 1;

	BUILD_BUG_ON(LLDS_INNER_SLOTS != 84);
	base = step(base, 41, head);
	base = step(base, 21, head);
	base = step(base, 10, head);
	base = step(base, 5, head);
	base = step(base, 3, head);
	base = step(base, 1, head);
	base = step(base, 1, head);
	return (u32)(base - heads) + (*base < head);
}

/* The child of an inner node to which a key belongs. */
static u32 child_for(const struct llds_order *order,
		     const struct llds_inner *inner, struct text key)
{
	const u32 count = inner->node.count;
	const u32 wanted = head(key, inner->node.skip);
	u32 low, high;

	low = below_in_inner(inner->heads, wanted);

	if (likely(low >= count || inner->heads[low] != wanted))
		return low - 1;
	/* Separators with the same head are compared in full. */
	for (high = low + 1; high < count && inner->heads[high] == wanted;)
		high++;
	while (low < high) {
		const u32 middle = (low + high) / 2;

		if (order_of(text_of(order, inner->separators[middle]), key) > 0)
			high = middle;
		else
			low = middle + 1;
	}
	return low - 1;
}

/* The first slot of a leaf whose key is not below this one. */
static u32 slot_for(const struct llds_order *order,
		    const struct llds_leaf *leaf, struct text key)
{
	const u32 count = leaf->node.count;
	const u32 wanted = head(key, leaf->node.skip);
	u32 low, high;

	low = below_in_leaf(leaf->heads, wanted);

	if (likely(low >= count || leaf->heads[low] != wanted))
		return low;
	for (high = low + 1; high < count && leaf->heads[high] == wanted;)
		high++;
	while (low < high) {
		const u32 middle = (low + high) / 2;

		if (order_of(key_of(order, leaf->handles[middle]), key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The leaf to which a key belongs. REQUIRES: there is a root. */
static u32 descend(const struct llds_order *order, struct text key,
		   struct llds_path *path)
{
	const u32 height = order->header->height;
	const struct llds_inner *inner;
	u32 handle = order->header->root, level, slot, at;
	const char *leaf;

	for (level = 0; level < height; level++) {
		inner = inner_at(order, handle);
		slot = child_for(order, inner, key);
		path->nodes[level] = handle;
		path->slots[level] = slot;
		handle = inner->children[slot];
	}
	path->depth = height;
	/* The whole leaf is needed: heads to search, handles to move. */
	leaf = (const char *)leaf_at(order, handle);
	for (at = 0; at < sizeof(struct llds_leaf); at += LLDS_LINE_BYTES)
		prefetch(leaf + at);
	return handle;
}

/* The length of the common prefix of two keys. */
static u32 common(struct text a, struct text b)
{
	const u32 most = min(a.bytes, b.bytes);
	u32 i = 0;

	while (i < most && a.at[i] == b.at[i])
		i++;
	return i;
}

/*
 * The separator at an end of the node at the end of a path: the lower one if
 * @side is 0, the upper one if it is 1. Returns false if there is none.
 */
static bool end_of(const struct llds_order *order,
		   const struct llds_path *path, u32 depth, u32 side,
		   struct text *text)
{
	while (depth-- > 0) {
		const struct llds_inner *inner =
			inner_at(order, path->nodes[depth]);
		const u32 slot = path->slots[depth] + side;

		if (slot > 0 && slot < inner->node.count) {
			*text = text_of(order, inner->separators[slot]);
			return true;
		}
	}
	return false;
}

/*
 * The length of the prefix that all keys between the two ends of a node share.
 * The node is at the end of a path; @low and @high, if not NULL, are ends that
 * are not in the path.
 */
static u32 skip_between(const struct llds_order *order,
			const struct llds_path *path, u32 depth,
			const struct text *low, const struct text *high)
{
	struct text at_low, at_high;

	if (!low && end_of(order, path, depth, 0, &at_low))
		low = &at_low;
	if (!high && end_of(order, path, depth, 1, &at_high))
		high = &at_high;
	return low && high ? common(*low, *high) : 0;
}

/* Sets the skip of a leaf, and updates its heads. */
static void set_leaf_skip(struct llds_order *order, struct llds_leaf *leaf,
			  u32 skip)
{
	u32 i;

	if (leaf->node.skip == skip)
		return;
	WRITE_ONCE(leaf->node.skip, skip);
	for (i = 0; i < leaf->node.count; i++)
		WRITE_ONCE(leaf->heads[i],
			   head(key_of(order, leaf->handles[i]), skip));
}

static void set_inner_skip(struct llds_order *order, struct llds_inner *inner,
			   u32 skip)
{
	u32 i;

	if (inner->node.skip == skip)
		return;
	WRITE_ONCE(inner->node.skip, skip);
	for (i = 1; i < inner->node.count; i++)
		WRITE_ONCE(inner->heads[i],
			   head(text_of(order, inner->separators[i]), skip));
}

static void begin(u32 *sequence)
{
	WRITE_ONCE(*sequence, *sequence + 1);
	/* Pairs with a scan's fence before its second load. */
	smp_wmb();
}

static void end(u32 *sequence)
{
	/* Pairs with the acquire of a scan's first load. */
	smp_store_release(sequence, *sequence + 1);
}

/* Inserts a slot into an array. */
static inline void open_slot(u32 *array, u32 slot, u32 count, u32 value)
{
	llds_os_move(&array[slot + 1], &array[slot],
		     (count - slot) * sizeof(*array));
	WRITE_ONCE(array[slot], value);
}

static inline void close_slot(u32 *array, u32 slot, u32 count)
{
	llds_os_move(&array[slot], &array[slot + 1],
		     (count - slot - 1) * sizeof(*array));
}

/* Removes a head, and marks the last slot unused. */
static inline void close_head(u32 *heads, u32 slot, u32 count)
{
	close_slot(heads, slot, count);
	WRITE_ONCE(heads[count - 1], UNUSED);
}

/* Marks heads as unused. */
static void unuse(u32 *heads, u32 from, u32 to)
{
	while (from < to)
		WRITE_ONCE(heads[from++], UNUSED);
}

static void put_entry(struct llds_leaf *leaf, u32 slot, u32 head, u32 handle)
{
	const u32 count = leaf->node.count;

	open_slot(leaf->heads, slot, count, head);
	open_slot(leaf->handles, slot, count, handle);
	WRITE_ONCE(leaf->node.count, count + 1);
}

static void put_child(struct llds_inner *inner, u32 slot, u32 head,
		      u32 separator, u32 child)
{
	const u32 count = inner->node.count;

	open_slot(inner->heads, slot, count, head);
	open_slot(inner->separators, slot, count, separator);
	open_slot(inner->children, slot, count, child);
	WRITE_ONCE(inner->node.count, count + 1);
}

/* The blocks for splitting a leaf, allocated before anything changes. */
struct supply {
	u32 leaf;
	u32 separator;
	u32 inners[LLDS_LEVELS_MAX];
	u32 n;
};

static void give_back(struct llds_order *order, struct supply *supply)
{
	if (supply->leaf)
		llds_block_free(order->memory, supply->leaf);
	if (supply->separator)
		llds_block_free(order->memory, supply->separator);
	while (supply->n > 0)
		llds_block_free(order->memory, supply->inners[--supply->n]);
}

/* Allocates a leaf, a separator, and an inner node for each full one. */
static bool get_supply(struct llds_order *order, const struct llds_path *path,
		       u32 separator_bytes, struct supply *supply)
{
	u32 level = path->depth, inners = 0, handle;

	while (level > 0 && inner_at(order, path->nodes[level - 1])->node.count ==
			    LLDS_INNER_SLOTS) {
		inners++;
		level--;
	}
	/* All are full, so there will be a new root. */
	if (level == 0)
		inners++;
	supply->n = 0;
	supply->leaf = llds_block_alloc(order->memory, sizeof(struct llds_leaf));
	separator_bytes += sizeof(struct llds_separator);
	supply->separator = llds_block_alloc(order->memory, separator_bytes);
	if (!supply->leaf || !supply->separator)
		goto no_memory;
	while (supply->n < inners) {
		handle = llds_block_alloc(order->memory,
					  sizeof(struct llds_inner));
		if (!handle)
			goto no_memory;
		supply->inners[supply->n++] = handle;
	}
	return true;

no_memory:
	give_back(order, supply);
	return false;
}

static struct llds_inner *new_inner(struct llds_order *order,
				    struct supply *supply, u32 level,
				    u32 *handle)
{
	struct llds_inner *inner;

	*handle = supply->inners[--supply->n];
	inner = inner_at(order, *handle);
	WRITE_ONCE(inner->node.level, level);
	WRITE_ONCE(inner->node.count, 0);
	WRITE_ONCE(inner->node.skip, 0);
	unuse(inner->heads, 0, LLDS_INNER_SLOTS);
	return inner;
}

/* Moves the slots of an inner node from @from on to an empty one. */
static void cut_inner(struct llds_inner *left, struct llds_inner *right,
		      u32 from)
{
	const u32 count = left->node.count - from;

	llds_os_copy(right->heads, &left->heads[from],
		     count * sizeof(u32));
	llds_os_copy(right->separators, &left->separators[from],
		     count * sizeof(u32));
	llds_os_copy(right->children, &left->children[from],
		     count * sizeof(u32));
	WRITE_ONCE(right->node.skip, left->node.skip);
	WRITE_ONCE(right->node.count, count);
	WRITE_ONCE(left->node.count, from);
	unuse(left->heads, from, from + count);
}

/*
 * Inserts a child after the one on the path, and splits full nodes from the
 * bottom up. A split after the last key leaves the full node full, and the new
 * node gets only the child, because keys that are inserted in order fill it.
 */
static void put_up(struct llds_order *order, struct llds_path *path,
		   struct supply *supply, u32 separator, u32 child,
		   bool is_last)
{
	u32 level = path->depth, right_handle, up;
	struct llds_inner *inner, *right;
	struct text text;

	while (level-- > 0) {
		const u32 slot = path->slots[level] + 1;
		u32 middle = LLDS_INNER_SLOTS / 2;

		inner = inner_at(order, path->nodes[level]);
		text = text_of(order, separator);
		if (inner->node.count < LLDS_INNER_SLOTS) {
			put_child(inner, slot, head(text, inner->node.skip),
				  separator, child);
			return;
		}
		right = new_inner(order, supply, inner->node.level,
				  &right_handle);
		if (is_last && slot == LLDS_INNER_SLOTS) {
			put_child(right, 0, 0, 0, child);
			up = separator;
		} else {
			up = inner->separators[middle];
			cut_inner(inner, right, middle);
			if (slot <= middle)
				put_child(inner, slot,
					  head(text, inner->node.skip),
					  separator, child);
			else
				put_child(right, slot - middle,
					  head(text, right->node.skip),
					  separator, child);
		}
		text = text_of(order, up);
		set_inner_skip(order, inner,
			       skip_between(order, path, level, NULL, &text));
		set_inner_skip(order, right,
			       skip_between(order, path, level, &text, NULL));
		separator = up;
		child = right_handle;
	}
	text = text_of(order, separator);
	inner = llds_block(order->memory, order->header->root);
	right = new_inner(order, supply, inner->node.level + 1, &right_handle);
	put_child(right, 0, 0, 0, order->header->root);
	put_child(right, 1, head(text, 0), separator, child);
	WRITE_ONCE(order->header->root, right_handle);
	WRITE_ONCE(order->header->height, order->header->height + 1);
}

/* Initializes a block as a leaf. */
static struct llds_leaf *new_leaf(struct llds_order *order, u32 handle)
{
	struct llds_leaf *leaf = leaf_at(order, handle);

	WRITE_ONCE(leaf->node.sequence, (leaf->node.sequence + 1) & ~1U);
	WRITE_ONCE(leaf->node.level, 0);
	WRITE_ONCE(leaf->node.count, 0);
	WRITE_ONCE(leaf->node.skip, 0);
	WRITE_ONCE(leaf->next, 0);
	WRITE_ONCE(leaf->prev, 0);
	unuse(leaf->heads, 0, LLDS_LEAF_SLOTS);
	return leaf;
}

/* Adds an entry to a full leaf by splitting it. */
static bool add_to_full(struct llds_order *order, struct llds_path *path,
			u32 left_handle, u32 slot, struct text key, u32 handle)
{
	struct llds_leaf *left = leaf_at(order, left_handle), *right;
	const bool is_last = slot == LLDS_LEAF_SLOTS && !left->next;
	const u32 middle = is_last ? LLDS_LEAF_SLOTS : LLDS_LEAF_SLOTS / 2;
	struct llds_separator *separator;
	struct text last = key, first = key, text;
	struct supply supply;

	/* The last key of the left leaf, and the first of the right one. */
	if (slot != middle || is_last)
		last = key_of(order, left->handles[middle - 1]);
	if (!is_last)
		first = key_of(order, left->handles[middle]);
	text = (struct text){ first.at, common(last, first) + 1 };
	if (!get_supply(order, path, text.bytes, &supply))
		return false;

	begin(&order->header->order_sequence);
	begin(&left->node.sequence);
	separator = llds_block(order->memory, supply.separator);
	WRITE_ONCE(separator->bytes, text.bytes);
	llds_os_copy(separator->text, text.at, text.bytes);
	right = new_leaf(order, supply.leaf);
	WRITE_ONCE(right->node.skip, left->node.skip);
	WRITE_ONCE(right->node.count, LLDS_LEAF_SLOTS - middle);
	llds_os_copy(right->heads, &left->heads[middle],
		     right->node.count * sizeof(u32));
	llds_os_copy(right->handles, &left->handles[middle],
		     right->node.count * sizeof(u32));
	WRITE_ONCE(left->node.count, middle);
	unuse(left->heads, middle, LLDS_LEAF_SLOTS);
	WRITE_ONCE(right->next, left->next);
	WRITE_ONCE(right->prev, left_handle);
	if (left->next)
		WRITE_ONCE(leaf_at(order, left->next)->prev, supply.leaf);
	WRITE_ONCE(left->next, supply.leaf);
	if (slot <= middle && !is_last)
		put_entry(left, slot, head(key, left->node.skip), handle);
	else
		put_entry(right, slot - middle, head(key, right->node.skip),
			  handle);
	set_leaf_skip(order, left,
		      skip_between(order, path, path->depth, NULL, &text));
	set_leaf_skip(order, right,
		      skip_between(order, path, path->depth, &text, NULL));
	put_up(order, path, &supply, supply.separator, supply.leaf, is_last);
	end(&left->node.sequence);
	end(&order->header->order_sequence);
	return true;
}

bool llds_order_add(struct llds_order *order, u32 handle)
{
	const struct text key = key_of(order, handle);
	struct llds_leaf *leaf;
	struct llds_path path __uninitialized;
	u32 at, slot;

	if (unlikely(!order->header->root)) {
		at = llds_block_alloc(order->memory, sizeof(*leaf));
		if (!at)
			return false;
		begin(&order->header->order_sequence);
		new_leaf(order, at);
		WRITE_ONCE(order->header->root, at);
		end(&order->header->order_sequence);
	}
	at = descend(order, key, &path);
	leaf = leaf_at(order, at);
	slot = slot_for(order, leaf, key);
	if (unlikely(leaf->node.count == LLDS_LEAF_SLOTS))
		return add_to_full(order, &path, at, slot, key, handle);
	begin(&leaf->node.sequence);
	put_entry(leaf, slot, head(key, leaf->node.skip), handle);
	end(&leaf->node.sequence);
	return true;
}

void llds_order_replace(struct llds_order *order, u32 old, u32 handle)
{
	const struct text key = key_of(order, old);
	struct llds_path path __uninitialized;
	struct llds_leaf *leaf = leaf_at(order, descend(order, key, &path));
	const u32 slot = slot_for(order, leaf, key);

	begin(&leaf->node.sequence);
	WRITE_ONCE(leaf->handles[slot], handle);
	end(&leaf->node.sequence);
}

/*
 * Removes the child after @slot from an inner node, and returns the separator
 * between the two. The child at @slot takes over its keys.
 */
static u32 close_child(struct llds_inner *inner, u32 slot)
{
	const u32 count = inner->node.count;
	const u32 separator = inner->separators[slot + 1];

	close_head(inner->heads, slot + 1, count);
	close_slot(inner->separators, slot + 1, count);
	close_slot(inner->children, slot + 1, count);
	WRITE_ONCE(inner->node.count, count - 1);
	return separator;
}

/* Appends a leaf's entries to the previous leaf, and frees it. */
static void merge_leaves(struct llds_order *order, struct llds_path *path)
{
	const u32 level = path->depth - 1, slot = path->slots[level];
	struct llds_inner *parent = inner_at(order, path->nodes[level]);
	const u32 left_handle = parent->children[slot];
	const u32 right_handle = parent->children[slot + 1];
	struct llds_leaf *left = leaf_at(order, left_handle);
	struct llds_leaf *right = leaf_at(order, right_handle);
	const u32 separator = close_child(parent, slot);
	const u32 count = left->node.count;
	u32 i;

	begin(&left->node.sequence);
	begin(&right->node.sequence);
	set_leaf_skip(order, left,
		      skip_between(order, path, path->depth, NULL, NULL));
	set_leaf_skip(order, right, left->node.skip);
	for (i = 0; i < right->node.count; i++) {
		WRITE_ONCE(left->heads[count + i], right->heads[i]);
		WRITE_ONCE(left->handles[count + i], right->handles[i]);
	}
	WRITE_ONCE(left->node.count, count + right->node.count);
	WRITE_ONCE(left->next, right->next);
	if (right->next)
		WRITE_ONCE(leaf_at(order, right->next)->prev, left_handle);
	end(&right->node.sequence);
	end(&left->node.sequence);
	llds_block_free(order->memory, right_handle);
	llds_block_free(order->memory, separator);
}

/* The same for inner nodes; the separator between them moves down. */
static void merge_inners(struct llds_order *order, struct llds_path *path, u32 level)
{
	const u32 slot = path->slots[level];
	struct llds_inner *parent = inner_at(order, path->nodes[level]);
	const u32 right_handle = parent->children[slot + 1];
	struct llds_inner *left = inner_at(order, parent->children[slot]);
	struct llds_inner *right = inner_at(order, right_handle);
	const u32 separator = close_child(parent, slot);
	const u32 count = left->node.count;
	u32 i;

	WRITE_ONCE(right->separators[0], separator);
	for (i = 0; i < right->node.count; i++) {
		WRITE_ONCE(left->separators[count + i], right->separators[i]);
		WRITE_ONCE(left->children[count + i], right->children[i]);
		WRITE_ONCE(left->heads[count + i],
			   head(text_of(order, right->separators[i]),
				left->node.skip));
	}
	WRITE_ONCE(left->node.count, count + right->node.count);
	set_inner_skip(order, left,
		       skip_between(order, path, level + 1, NULL, NULL));
	llds_block_free(order->memory, right_handle);
}

/*
 * Chooses a neighbour to merge with the child on the path, and sets the path to
 * the left one of the two. Returns false if with either neighbour more than
 * @most slots would be used.
 */
static bool choose(struct llds_order *order, struct llds_path *path, u32 level,
		   u32 most)
{
	const struct llds_inner *parent = inner_at(order, path->nodes[level]);
	const u32 slot = path->slots[level];
	u32 counts[2];
	u32 left, i;

	for (left = slot - !!slot; left <= slot; left++) {
		if (left + 1 == parent->node.count)
			break;
		for (i = 0; i < 2; i++) {
			const struct llds_node *node =
				llds_block(order->memory,
					   parent->children[left + i]);

			counts[i] = node->count;
		}
		if (counts[0] + counts[1] <= most) {
			path->slots[level] = left;
			return true;
		}
	}
	return false;
}

/* Merges nodes with few used slots, from the leaf of the path upwards. */
static void shrink(struct llds_order *order, struct llds_path *path)
{
	u32 level = path->depth;
	struct llds_inner *inner;

	if (level == 0) {
		const u32 root = order->header->root;

		if (!leaf_at(order, root)->node.count) {
			WRITE_ONCE(order->header->root, 0);
			llds_block_free(order->memory, root);
		}
		return;
	}
	if (!choose(order, path, --level, LEAF_BOTH))
		return;
	merge_leaves(order, path);
	while (level > 0) {
		inner = inner_at(order, path->nodes[level]);
		if (inner->node.count >= INNER_FEW ||
		    !choose(order, path, level - 1, INNER_BOTH))
			return;
		merge_inners(order, path, --level);
	}
	inner = inner_at(order, order->header->root);
	if (inner->node.count == 1) {
		const u32 root = order->header->root;

		WRITE_ONCE(order->header->root, inner->children[0]);
		WRITE_ONCE(order->header->height, order->header->height - 1);
		llds_block_free(order->memory, root);
	}
}

void llds_order_remove(struct llds_order *order, u32 handle)
{
	const struct text key = key_of(order, handle);
	struct llds_path path __uninitialized;
	struct llds_leaf *leaf = leaf_at(order, descend(order, key, &path));
	const u32 slot = slot_for(order, leaf, key);
	const u32 count = leaf->node.count;

	begin(&leaf->node.sequence);
	close_head(leaf->heads, slot, count);
	close_slot(leaf->handles, slot, count);
	WRITE_ONCE(leaf->node.count, count - 1);
	end(&leaf->node.sequence);
	if (count > LEAF_FEW)
		return;
	begin(&order->header->order_sequence);
	shrink(order, &path);
	end(&order->header->order_sequence);
}

/* The first entry at or after the beginning of a leaf. */
static struct llds_place first_from(const struct llds_order *order, u32 leaf)
{
	while (leaf && !leaf_at(order, leaf)->node.count)
		leaf = leaf_at(order, leaf)->next;
	return (struct llds_place){ leaf, 0 };
}

/* The last entry at or before the end of a leaf. */
static struct llds_place last_upto(const struct llds_order *order, u32 leaf)
{
	while (leaf && !leaf_at(order, leaf)->node.count)
		leaf = leaf_at(order, leaf)->prev;
	return (struct llds_place){
		leaf, leaf ? leaf_at(order, leaf)->node.count - 1U : 0
	};
}

u32 llds_order_find(const struct llds_order *order, const u8 *key,
		    u32 key_bytes)
{
	const u32 handle = llds_order_at(order, llds_order_seek(order, key,
								key_bytes));

	if (!handle || !llds_entry_is(llds_block(order->memory, handle), key,
				      key_bytes))
		return 0;
	return handle;
}

struct llds_place llds_order_seek(const struct llds_order *order,
				  const u8 *key, u32 key_bytes)
{
	const struct text text = { key, key_bytes };
	struct llds_place at = { 0, 0 };
	const struct llds_leaf *leaf;
	struct llds_path path __uninitialized;

	if (!order->header->root)
		return at;
	at.leaf = descend(order, text, &path);
	leaf = leaf_at(order, at.leaf);
	at.slot = slot_for(order, leaf, text);
	return at.slot < leaf->node.count ? at : first_from(order, leaf->next);
}

struct llds_place llds_order_seek_before(const struct llds_order *order,
					 const u8 *key, u32 key_bytes)
{
	const struct text text = { key, key_bytes };
	struct llds_place at = { 0, 0 };
	const struct llds_leaf *leaf;
	struct llds_path path __uninitialized;
	u32 level;

	if (!order->header->root)
		return at;
	if (key) {
		at.leaf = descend(order, text, &path);
		leaf = leaf_at(order, at.leaf);
		at.slot = slot_for(order, leaf, text);
		if (at.slot == 0)
			return last_upto(order, leaf->prev);
		at.slot--;
		return at;
	}
	at.leaf = order->header->root;
	for (level = 0; level < order->header->height; level++) {
		const struct llds_inner *inner = inner_at(order, at.leaf);

		at.leaf = inner->children[inner->node.count - 1];
	}
	return last_upto(order, at.leaf);
}

void llds_order_next(const struct llds_order *order, struct llds_place *at)
{
	const struct llds_leaf *leaf = leaf_at(order, at->leaf);

	if (++at->slot == leaf->node.count)
		*at = first_from(order, leaf->next);
}

void llds_order_prev(const struct llds_order *order, struct llds_place *at)
{
	if (at->slot == 0)
		*at = last_upto(order, leaf_at(order, at->leaf)->prev);
	else
		at->slot--;
}

// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Seqlock reads of a mapped store.
 */
#include "mapped.h"

#define TRIES 1000

/* Copies bytes that a writer may change at the same time. */
static void copy(u8 *to, const u8 *from, u32 bytes)
{
	while (bytes-- > 0)
		*to++ = READ_ONCE(*from++);
}

static const void *block_at(const struct mapped *mapped, u32 handle)
{
	return mapped->blocks + ((size_t)handle << LLDS_UNIT_SHIFT);
}

/* Loads a sequence after all earlier loads. */
static u32 again(const u32 *sequence)
{
	smp_rmb();
	return READ_ONCE(*sequence);
}

/*
 * Copies an entry. Only its position in a slab is known to be valid. Returns
 * false if it is being changed, or has impossible lengths.
 */
static bool read_entry(const struct mapped *mapped, u32 handle, u32 *sizes,
		       u8 *to)
{
	const struct llds_entry *entry = block_at(mapped, handle);
	const u32 version = smp_load_acquire(&entry->version);
	/* From the offset, because the mapping may not be aligned to slabs. */
	const u32 in_slab = ((const char *)entry - mapped->blocks) &
			    (LLDS_SLAB_BYTES - 1);
	u32 bytes;

	*sizes = READ_ONCE(entry->sizes);
	bytes = llds_key_bytes(*sizes) + llds_body_bytes(*sizes);
	if (version & 1 || in_slab + sizeof(*entry) + bytes > LLDS_SLAB_BYTES)
		return false;
	copy(to, entry->bytes, bytes);
	return again(&entry->version) == version;
}

/* Attempts one lookup; returns MAPPED_BUSY if it has to be retried. */
static enum mapped_found try_get(const struct mapped *mapped, const u8 *key,
				 u32 key_bytes, u8 *to, u32 *bytes)
{
	const struct llds_header *header = mapped->header;
	const u32 as_one = smp_load_acquire(&header->sequence);
	const u64 hash = llds_hash(header->salt, key, key_bytes);
	const u64 buckets = READ_ONCE(header->buckets);
	const struct llds_bucket *home = (const void *)
		(mapped->buckets + ((size_t)llds_bucket_of(hash, buckets) <<
				    LLDS_BUCKET_SHIFT));
	const struct llds_bucket *bucket = home;
	const u32 sequence = smp_load_acquire(&home->sequence);
	const u8 tag = llds_tag_of(hash);
	u32 slot, handle, sizes;
	bool is_crowded;

	if (as_one & 1 || sequence & 1)
		return MAPPED_BUSY;
	for (;;) {
		for (slot = 0; slot < LLDS_BUCKET_SLOTS; slot++) {
			if (READ_ONCE(bucket->tags[slot]) != tag)
				continue;
			handle = READ_ONCE(bucket->handles[slot]);
			if (again(&home->sequence) != sequence)
				return MAPPED_BUSY;
			if (!read_entry(mapped, handle, &sizes, to))
				return MAPPED_BUSY;
			if (llds_key_bytes(sizes) != key_bytes ||
			    memcmp(to, key, key_bytes))
				continue;
			if (again(&home->sequence) != sequence ||
			    again(&header->sequence) != as_one)
				return MAPPED_BUSY;
			*bytes = llds_body_bytes(sizes);
			memmove(to, to + key_bytes, *bytes);
			return sizes & LLDS_ENTRY_APART ? MAPPED_APART :
							  MAPPED_FOUND;
		}
		handle = READ_ONCE(bucket->next);
		if (again(&home->sequence) != sequence)
			return MAPPED_BUSY;
		if (!handle)
			break;
		bucket = block_at(mapped, handle);
	}
	is_crowded = READ_ONCE(home->is_crowded);
	if (READ_ONCE(header->buckets) != buckets ||
	    again(&home->sequence) != sequence ||
	    again(&header->sequence) != as_one)
		return MAPPED_BUSY;
	return is_crowded ? MAPPED_CROWDED : MAPPED_ABSENT;
}

enum mapped_found mapped_get(const struct mapped *mapped, const u8 *key,
			     u32 key_bytes, u8 *to, u32 *bytes)
{
	enum mapped_found found = MAPPED_BUSY;
	u32 tries;

	for (tries = 0; tries < TRIES && found == MAPPED_BUSY; tries++)
		found = try_get(mapped, key, key_bytes, to, bytes);
	return found;
}

/* Compares a key with a separator; returns 2 if its length is impossible. */
static int order_to(const struct mapped *mapped, u32 handle, const u8 *key,
		    u32 key_bytes, u8 *to)
{
	const struct llds_separator *separator = block_at(mapped, handle);
	const u32 bytes = READ_ONCE(separator->bytes);

	if (bytes > LLDS_KEY_BYTES_MAX)
		return 2;
	copy(to, separator->text, bytes);
	return llds_key_order(key, key_bytes, to, bytes);
}

/*
 * The leaf for a key and its sequence, which is even; 0 if the order is empty,
 * ~0 if the lookup has to be retried.
 */
static u32 leaf_for(const struct mapped *mapped, u32 order, const u8 *key,
		    u32 key_bytes, u8 *to, u32 *sequence)
{
	const struct llds_header *header = mapped->header;
	u32 height = READ_ONCE(header->height), handle = READ_ONCE(header->root);
	u32 slot, count, separator;

	for (; height > 0; height--) {
		const struct llds_inner *inner = block_at(mapped, handle);

		if (again(&header->order_sequence) != order)
			return ~0U;
		count = READ_ONCE(inner->node.count);
		for (slot = 0; slot + 1 < count; slot++) {
			int how;

			separator = READ_ONCE(inner->separators[slot + 1]);
			if (again(&header->order_sequence) != order)
				return ~0U;
			how = order_to(mapped, separator, key, key_bytes, to);
			if (again(&header->order_sequence) != order)
				return ~0U;
			if (how < 0)
				break;
		}
		handle = READ_ONCE(inner->children[slot]);
	}
	if (again(&header->order_sequence) != order)
		return ~0U;
	if (handle) {
		const struct llds_leaf *leaf = block_at(mapped, handle);

		*sequence = smp_load_acquire(&leaf->node.sequence);
		if (*sequence & 1 || again(&header->order_sequence) != order)
			return ~0U;
	}
	return handle;
}

static enum mapped_found try_next(const struct mapped *mapped, const u8 *key,
				  u32 key_bytes, bool above, u8 *to,
				  u32 *found_key, u32 *found_bytes)
{
	const struct llds_header *header = mapped->header;
	const u32 as_one = smp_load_acquire(&header->sequence);
	const u32 order = smp_load_acquire(&header->order_sequence);
	u32 sequence, handle, slot, sizes;

	if (as_one & 1 || order & 1)
		return MAPPED_BUSY;
	handle = leaf_for(mapped, order, key, key_bytes, to, &sequence);
	while (handle && handle != ~0U) {
		const struct llds_leaf *leaf = block_at(mapped, handle);
		const u32 count = READ_ONCE(leaf->node.count);
		u32 next;

		for (slot = 0; slot < count && slot < LLDS_LEAF_SLOTS; slot++) {
			const u32 entry = READ_ONCE(leaf->handles[slot]);
			int how;

			if (again(&leaf->node.sequence) != sequence ||
			    again(&header->order_sequence) != order)
				return MAPPED_BUSY;
			if (!read_entry(mapped, entry, &sizes, to))
				return MAPPED_BUSY;
			*found_key = llds_key_bytes(sizes);
			*found_bytes = llds_body_bytes(sizes);
			how = llds_key_order(to, *found_key, key, key_bytes);
			if (how < 0 || (above && !how))
				continue;
			if (again(&leaf->node.sequence) != sequence ||
			    again(&header->order_sequence) != order ||
			    again(&header->sequence) != as_one)
				return MAPPED_BUSY;
			return sizes & LLDS_ENTRY_APART ? MAPPED_APART :
							  MAPPED_FOUND;
		}
		next = READ_ONCE(leaf->next);
		if (again(&leaf->node.sequence) != sequence ||
		    again(&header->order_sequence) != order)
			return MAPPED_BUSY;
		handle = next;
		if (!handle)
			break;
		leaf = block_at(mapped, handle);
		sequence = smp_load_acquire(&leaf->node.sequence);
		if (sequence & 1 || again(&header->order_sequence) != order)
			return MAPPED_BUSY;
	}
	if (handle || again(&header->sequence) != as_one)
		return MAPPED_BUSY;
	return MAPPED_ABSENT;
}

enum mapped_found mapped_next(const struct mapped *mapped, const u8 *key,
			      u32 key_bytes, bool above, u8 *to, u32 *found_key,
			      u32 *found_bytes)
{
	enum mapped_found found = MAPPED_BUSY;
	u32 tries;

	for (tries = 0; tries < TRIES && found == MAPPED_BUSY; tries++)
		found = try_next(mapped, key, key_bytes, above, to, found_key,
				 found_bytes);
	return found;
}

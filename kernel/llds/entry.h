/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * The layout of a pair in memory.
 *
 *   version    4 bytes   odd while the value is being changed in place
 *   sizes      4 bytes   bits 0 to 12: bytes of the key; 13 to 29: bytes of
 *                        the value; bit 30: the value is stored apart;
 *                        bit 31: an atomic run has deleted the entry, and has
 *                        not yet committed
 *   key
 *   value                or, if it is stored apart, its length and number
 *
 * An entry is written before any index names it. Afterwards only its value
 * changes, to one that fits the block; a longer value makes a new entry. The
 * version only increases, as long as the memory is used for entries. A reader
 * without a lock loads it before and after the value.
 *
 * A value too long for a block is stored apart, in memory of its own, which is
 * not mapped.
 */
#ifndef LLDS_ENTRY_H
#define LLDS_ENTRY_H

#include "memory.h"
#include "uapi/llds.h"

#define LLDS_ENTRY_KEY_BITS 13
#define LLDS_ENTRY_VALUE_BITS 17
#define LLDS_ENTRY_APART 0x40000000U
#define LLDS_ENTRY_GONE 0x80000000U

/* Maximum value length in an entry's block. */
#define LLDS_VALUE_BYTES_INLINE 16384

struct llds_entry {
	u32 version;
	u32 sizes;
	u8 bytes[];
};

/* An entry's reference to a value that is stored apart. */
struct llds_apart {
	u32 bytes;
	u32 number;
};

static inline u32 llds_key_bytes(u32 sizes)
{
	return sizes & ((1U << LLDS_ENTRY_KEY_BITS) - 1);
}

/* Bytes after the key: of the value, or of the reference to it. */
static inline u32 llds_body_bytes(u32 sizes)
{
	return (sizes >> LLDS_ENTRY_KEY_BITS) &
	       ((1U << LLDS_ENTRY_VALUE_BITS) - 1);
}

/* The bytes after the key. */
static inline const u8 *llds_body(const struct llds_entry *entry)
{
	return entry->bytes + llds_key_bytes(entry->sizes);
}

/* The reference to a value that is stored apart. */
static inline struct llds_apart llds_apart_of(const struct llds_entry *entry)
{
	struct llds_apart apart;

	memcpy(&apart, llds_body(entry), sizeof(apart));
	return apart;
}

static inline u32 llds_sizes(u32 key_bytes, u32 body_bytes)
{
	return key_bytes | body_bytes << LLDS_ENTRY_KEY_BITS;
}

static inline u32 llds_entry_bytes(u32 key_bytes, u32 body_bytes)
{
	return sizeof(struct llds_entry) + key_bytes + body_bytes;
}

/* Whether the entry has this key. */
static inline bool llds_entry_is(const struct llds_entry *entry,
				 const u8 *key, u32 key_bytes)
{
	if (llds_key_bytes(entry->sizes) != key_bytes)
		return false;
	if (key_bytes == 8)
		return llds_unaligned_u64(entry->bytes) ==
		       llds_unaligned_u64(key);
	return !memcmp(entry->bytes, key, key_bytes);
}

/* Between these two, seqlock reads reject the entry's value. */
static inline void llds_entry_begin(struct llds_entry *entry)
{
	WRITE_ONCE(entry->version, entry->version + 1);
	/* Pairs with a scan's fence before its second load of the version. */
	smp_wmb();
}

static inline void llds_entry_end(struct llds_entry *entry)
{
	/* Pairs with the acquire of a scan's first load. */
	smp_store_release(&entry->version, entry->version + 1);
}

/* Compares two keys by their bytes; a prefix comes before the longer key. */
static inline int llds_key_order(const u8 *a, u32 a_bytes,
				 const u8 *b, u32 b_bytes)
{
	const int order = memcmp(a, b, min(a_bytes, b_bytes));

	if (order)
		return order;
	return a_bytes < b_bytes ? -1 : a_bytes > b_bytes;
}

#endif /* LLDS_ENTRY_H */

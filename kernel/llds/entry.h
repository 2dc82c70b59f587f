/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * A pair as it lies in memory.
 *
 *   version    4 bytes   odd while the value is being changed in place
 *   sizes      4 bytes   bits 0 to 12 bytes of the key, 13 to 29 bytes of
 *                        the value, bit 30: the value lies by itself,
 *                        bit 31: it is to be gone, if what is being done
 *                        as one succeeds
 *   key
 *   value                or 8 bytes: its length, and its number
 *
 * An entry is written before anything names it. Later only its value changes,
 * to one that fits the block; a longer one makes another entry. The version
 * only ever rises, while the memory is entries: a reader without a lock looks
 * at it before and after.
 *
 * A value too long for a block lies by itself, and only the store knows where.
 */
#ifndef LLDS_ENTRY_H
#define LLDS_ENTRY_H

#include "memory.h"
#include "uapi/llds.h"

#define LLDS_ENTRY_KEY_BITS 13
#define LLDS_ENTRY_VALUE_BITS 17
#define LLDS_ENTRY_APART 0x40000000U
#define LLDS_ENTRY_GONE 0x80000000U

/* The longest value that lies in the block of its entry. */
#define LLDS_VALUE_BYTES_INLINE 16384

struct llds_entry {
	u32 version;
	u32 sizes;
	u8 bytes[];
};

/* A value that lies by itself, as the entry says it. */
struct llds_apart {
	u32 bytes;
	u32 number;
};

static inline u32 llds_key_bytes(u32 sizes)
{
	return sizes & ((1U << LLDS_ENTRY_KEY_BITS) - 1);
}

/* Bytes of what lies behind the key. */
static inline u32 llds_body_bytes(u32 sizes)
{
	return (sizes >> LLDS_ENTRY_KEY_BITS) &
	       ((1U << LLDS_ENTRY_VALUE_BITS) - 1);
}

/* What lies behind the key. */
static inline const u8 *llds_body(const struct llds_entry *entry)
{
	return entry->bytes + llds_key_bytes(entry->sizes);
}

/* Where a value is that lies by itself. */
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

/*
 * Between these two, readers without the lock do not trust the value that they
 * read.
 */
static inline void llds_entry_begin(struct llds_entry *entry)
{
	WRITE_ONCE(entry->version, entry->version + 1);
	/* Pairs with what a scan does before it looks at the version again. */
	smp_wmb();
}

static inline void llds_entry_end(struct llds_entry *entry)
{
	/* Pairs with the acquire of its first look. */
	smp_store_release(&entry->version, entry->version + 1);
}

/* How two keys are ordered: by their bytes, a beginning before the whole. */
static inline int llds_key_order(const u8 *a, u32 a_bytes,
				 const u8 *b, u32 b_bytes)
{
	const int order = memcmp(a, b, min(a_bytes, b_bytes));

	if (order)
		return order;
	return a_bytes < b_bytes ? -1 : a_bytes > b_bytes;
}

#endif /* LLDS_ENTRY_H */

/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * The hash index: finds a key's entry.
 *
 * A bucket is one cache line, with a tag (a byte of the hash) and a handle for
 * each of up to 11 entries. An overflow block of the same layout holds more.
 * There are enough buckets for six entries each on average. As keys come and
 * go, buckets are split and merged one at a time (linear hashing; Litwin 1980),
 * so no operation waits for a rehash of the table. The number of buckets alone
 * determines the bucket of a hash, and which bucket is split next.
 *
 * The hash is salted, by the store: see llds_hash(). But a mapping shows the
 * salt, so anybody who may read a store can make keys that collide. Therefore a
 * bucket has at most LLDS_CHAIN_BLOCKS overflow blocks. Entries beyond them are
 * only in the order of keys, and the bucket is marked as crowded: a key that is
 * not found there is searched in the order. The mark stays until no bucket of
 * the store has such entries, and the bucket is changed.
 *
 * The store's lock guards changes. A seqlock read takes no lock. It
 *
 *   0. loads the store's sequence; if odd, it retries; 1. loads the number of
 *   buckets, which determines the hash's bucket, and
 *      that bucket's sequence; if odd, it retries;
 *   2. loads a tag and its handle, or the handle of the overflow block. It
 *      does 3 before it follows the handle, and again after it has copied
 *      what is there;
 *   3. loads the bucket's sequence again; if changed, it retries;
 *   4. if nothing was found: loads whether the bucket is crowded, and the
 *      number of buckets again; if that has changed, it retries; then it does
 *      3. If the bucket is crowded, it asks the module;
 *   5. loads the store's sequence again; if changed, it retries.
 *
 * A found entry is right by 3, because an entry is freed only after it was
 * removed from its bucket. A key that was not found is absent by 3 and 4:
 * entries move to a new bucket while the sequence of their old bucket is odd,
 * and the number of buckets is updated before that sequence is even again. (3
 * comes after 4: the number may have changed and changed back, but then the
 * sequence has changed.) By 3 a handle is followed only while it is valid, so
 * it leads to mapped memory. By 0 and 5 a reader sees all changes that are made
 * together, or none.
 *
 * The sequence is odd also while the order is changed for an entry. So a reader
 * that saw a change in the order does not find the bucket's previous state.
 */
#ifndef LLDS_BUCKETS_H
#define LLDS_BUCKETS_H

#include "entry.h"

#define LLDS_BUCKET_SLOTS 11
/* With the bucket 55 entries; there are six on average. */
#define LLDS_CHAIN_BLOCKS 4
#define LLDS_BUCKET_SHIFT 6
/* Buckets in a piece. */
#define LLDS_BUCKETS_SHIFT (LLDS_PIECE_SHIFT - LLDS_BUCKET_SHIFT)

/**
 * struct llds_bucket - a bucket, or an overflow block
 * @sequence: odd while the bucket or an overflow block of it is being changed
 * @next: the next overflow block, or 0
 * @tags: a byte of each entry's hash, 2 or more; 0 in a free slot
 * @is_crowded: of a bucket: whether entries of it may be in the order alone
 * @handles: the entries
 */
struct llds_bucket {
	u32 sequence;
	u32 next;
	u8 tags[LLDS_BUCKET_SLOTS];
	u8 is_crowded;
	u32 handles[LLDS_BUCKET_SLOTS];
};

/**
 * struct llds_buckets - the buckets of a store
 * @memory: the entries and overflow blocks
 * @pieces: the buckets
 * @header: has the number of buckets and the salt of the hash
 * @base: the address of the first piece, if they are contiguous; NULL if not
 * @room: capacity of @pieces
 * @end: number of pieces
 * @keys: number of entries
 * @beyond: number of entries that are in the order alone
 */
struct llds_buckets {
	struct llds_memory *memory;
	struct llds_bucket **pieces;
	struct llds_header *header;
	char *base;
	u32 room;
	u32 end;
	u64 keys;
	u64 beyond;
};

/* Returns false without memory. */
bool llds_buckets_init(struct llds_buckets *buckets,
		       struct llds_memory *memory, struct llds_header *header);

/* Frees the buckets, but not the overflow blocks. */
void llds_buckets_drop(struct llds_buckets *buckets);

/* The handle of a key's entry, or 0. @home is the bucket of @hash. */
u32 llds_buckets_find(const struct llds_buckets *buckets,
		      const struct llds_bucket *home, u64 hash,
		      const u8 *key, u32 key_bytes);

/* Prefetches the first entry whose tag is that of the hash. */
void llds_buckets_fetch_entry(const struct llds_buckets *buckets,
			      const struct llds_bucket *home, u64 hash);

/* Frees pieces that were kept only because they may have been mapped. */
void llds_buckets_trim(struct llds_buckets *buckets);

/*
 * Reserves a slot for an entry, or marks the bucket as crowded; returns false
 * without memory.
 */
bool llds_buckets_prepare(struct llds_buckets *buckets,
			  struct llds_bucket *home);

/*
 * Call the next three functions between llds_bucket_begin() and
 * llds_bucket_end(), and llds_buckets_fit() afterwards.
 *
 * Adds an entry, unless no slot is left in a crowded bucket. REQUIRES:
 * llds_buckets_prepare(); the key is absent.
 */
void llds_buckets_add(struct llds_buckets *buckets, struct llds_bucket *home,
		      u64 hash, u32 handle);

/* Replaces an entry, if it is there, by another with the same key. */
void llds_buckets_replace(struct llds_buckets *buckets,
			  struct llds_bucket *home, u32 old, u32 handle);

/* Removes an entry, if it is there. */
void llds_buckets_remove(struct llds_buckets *buckets,
			 struct llds_bucket *home, u32 handle);

/* Splits or merges a bucket if there are too many or too few entries. */
void llds_buckets_fit(struct llds_buckets *buckets);

/* Between these two, seqlock reads of the bucket retry. */
static inline void llds_bucket_begin(struct llds_bucket *home)
{
	WRITE_ONCE(home->sequence, home->sequence + 1);
	/* Pairs with the fence of a seqlock read before 3 above. */
	smp_wmb();
}

static inline void llds_bucket_end(struct llds_bucket *home)
{
	/* Pairs with the acquire of a seqlock read: 1 above. */
	smp_store_release(&home->sequence, home->sequence + 1);
}

/*
 * The hash of a key. Each 8 bytes are mixed in by a multiplication of 64 by 64
 * bits, whose halves are XORed; the last bytes are padded with zeros. The
 * length is mixed in first.
 */
static inline u64 llds_fold(u64 a, u64 b)
{
	const unsigned __int128 product = (unsigned __int128)a * b;

	return (u64)product ^ (u64)(product >> 64);
}

static inline u64 llds_hash(u64 salt, const u8 *key, u32 bytes)
{
	u64 hash = salt ^ bytes, last = 0;

	for (; bytes >= 8; key += 8, bytes -= 8)
		hash = llds_fold(hash ^ llds_unaligned_u64(key),
				 0x9e3779b97f4a7c15ULL);
	if (bytes) {
		memcpy(&last, key, bytes);
		hash = llds_fold(hash ^ last, 0x9e3779b97f4a7c15ULL);
	}
	return llds_fold(hash, 0xd6e8feb86659fd93ULL);
}

/*
 * The header's word for @count buckets: their number, and above it the mask of
 * the bits that number them. REQUIRES: count > 1.
 */
static inline u64 llds_buckets_word(u32 count)
{
	return (u64)(~0U >> (32 - fls64(count - 1))) << 32 | count;
}

/* The number of buckets. */
static inline u32 llds_buckets_count(const struct llds_buckets *buckets)
{
	return buckets->header->buckets;
}

/* The bucket of a hash, by the header's word. */
static inline u32 llds_bucket_of(u64 hash, u64 buckets)
{
	const u32 mask = buckets >> 32, at = (u32)hash & mask;

	return at < (u32)buckets ? at : at & (mask >> 1);
}

static inline struct llds_bucket *
llds_bucket(const struct llds_buckets *buckets, u32 at)
{
	return &buckets->pieces[at >> LLDS_BUCKETS_SHIFT]
			       [at & ((1U << LLDS_BUCKETS_SHIFT) - 1)];
}

/* The bucket of a hash. */
static inline struct llds_bucket *
llds_buckets_home(const struct llds_buckets *buckets, u64 hash)
{
	return llds_bucket(buckets, llds_bucket_of(hash, buckets->header->buckets));
}

#define LLDS_ONES 0x0101010101010101ULL
#define LLDS_HIGHS 0x8080808080808080ULL

/*
 * A set of slots is a word: bit 8 i stands for slot i below 8, and bit 8 i + 4
 * for slot 8 + i. Comparing the tags as two words gives this form.
 */
static inline u32 llds_slot_of(u64 slots)
{
	const u32 bit = __ffs64(slots);

	return (bit >> 3) + ((bit & 4) << 1);
}

/* The tags of the first eight slots, and of the others as a word. */
static inline u64 llds_tags_first(const struct llds_bucket *bucket)
{
	return *(const u64 *)&bucket->tags[0];
}

static inline u32 llds_tags_last(const struct llds_bucket *bucket)
{
	const u8 *const at = (const u8 *)bucket;

	return *(const u32 *)(at + offsetof(struct llds_bucket, tags) + 8);
}

/*
 * The slots that have a tag, among the first eight; and among all. @tags has
 * the tag in each of its eight bytes. After the first match in a word, a tag
 * that differs only in its lowest bit may be a false positive.
 */
static inline u64 llds_slots_with_first(const struct llds_bucket *bucket,
					u64 tags)
{
	const u64 first = llds_tags_first(bucket) ^ tags;

	return ((first - LLDS_ONES) & ~first & LLDS_HIGHS) >> 7;
}

static inline u64 llds_slots_with(const struct llds_bucket *bucket, u64 tags)
{
	const u32 last = llds_tags_last(bucket) ^ (u32)tags;

	return llds_slots_with_first(bucket, tags) |
	       (u64)((last - 0x01010101) & ~last & 0x808080) >> 3;
}

/*
 * Never 0, which marks a free slot. Never 1, because llds_slots_with() may take
 * a free slot for one with the tag 1, and the handle in it may be stale.
 */
static inline u8 llds_tag_of(u64 hash)
{
	const u8 tag = hash >> 56;

	return tag < 2 ? 2 : tag;
}

#endif /* LLDS_BUCKETS_H */

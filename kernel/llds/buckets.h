/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Where a key's entry is, by a hash.
 *
 * Buckets of one cache line, with a byte of hash and a handle for each of up
 * to 11 entries, and a block of the same shape where there are more. There
 * are so many that a bucket has six entries on average. One more is made, or
 * one less, as keys come and go (linear hashing; Litwin 1980), so nothing
 * ever stops for a table to be made anew: which bucket a hash belongs to says
 * the number of buckets alone, and the next one to be cut in two is known.
 *
 * The hash is salted, by the store: see llds_hash().
 *
 * Changes are guarded by the store's lock. Readers without it:
 *
 *   0. read the store's sequence; odd: again;
 *   1. read the number of buckets, by which the hash belongs to one of them,
 *      and that one's sequence; odd: again;
 *   2. read a tag and its handle, or what continues the bucket; before going
 *      where that leads, and once it has been read, 3;
 *   3. read the bucket's sequence once more; it has moved: again;
 *   4. if nothing was found: read the number of buckets once more; it has
 *      moved: again; and then 3;
 *   5. read the store's sequence once more; it has moved: again.
 *
 * What is found is right by 3, as an entry is freed only after it was taken
 * out of its bucket. What is not found is not there by 3 and 4: entries go to
 * a new bucket while the sequence of the one that they come from is odd, and
 * the number of buckets is told before it is even again. (3 comes behind 4:
 * the number may have moved on and back, but not without the sequence.) By 3
 * a handle is followed only while it is one, so it leads to memory that is
 * there. By 0 and 5 of several changes that are one all are seen or none.
 *
 * The sequence is odd while the order is changed for an entry as well, so who
 * saw a change in the order does not find the bucket as it was before.
 */
#ifndef LLDS_BUCKETS_H
#define LLDS_BUCKETS_H

#include "entry.h"

#define LLDS_BUCKET_SLOTS 11
#define LLDS_BUCKET_SHIFT 6
/* Buckets of a piece. */
#define LLDS_BUCKETS_SHIFT (LLDS_PIECE_SHIFT - LLDS_BUCKET_SHIFT)

/**
 * struct llds_bucket - a bucket, or what continues one
 * @sequence: odd while it, or what continues it, is being changed
 * @next: the block that continues it, or 0
 * @tags: a byte of the hash for each entry, 2 or more; 0 where there is none
 * @handles: where the entries are
 */
struct llds_bucket {
	u32 sequence;
	u32 next;
	u8 tags[12];
	u32 handles[LLDS_BUCKET_SLOTS];
};

/**
 * struct llds_buckets - the buckets of a store
 * @memory: where entries are, and what continues buckets
 * @pieces: where buckets are
 * @header: where it says how many buckets there are, and the salt of the hash
 * @base: where the pieces lie one behind another; NULL: anywhere
 * @room: pieces for which there is room
 * @end: how many pieces there are
 * @keys: how many entries there are
 */
struct llds_buckets {
	struct llds_memory *memory;
	struct llds_bucket **pieces;
	struct llds_header *header;
	char *base;
	u32 room;
	u32 end;
	u64 keys;
};

/* False if there is no memory. */
bool llds_buckets_init(struct llds_buckets *buckets,
		       struct llds_memory *memory, struct llds_header *header);

/* Gives the buckets back, not what continues them. */
void llds_buckets_drop(struct llds_buckets *buckets);

/* The handle of a key's entry; 0 if there is none. Its hash has this home. */
u32 llds_buckets_find(const struct llds_buckets *buckets,
		      const struct llds_bucket *home, u64 hash,
		      const u8 *key, u32 key_bytes);

/* Asks for the line of an entry whose tag is that of the hash, if any is. */
void llds_buckets_fetch_entry(const struct llds_buckets *buckets,
			      const struct llds_bucket *home, u64 hash);

/* Gives back what is there only because it may have been in sight. */
void llds_buckets_trim(struct llds_buckets *buckets);

/* Makes sure that an entry can be put in; false if there is no memory. */
bool llds_buckets_prepare(struct llds_buckets *buckets,
			  struct llds_bucket *home);

/*
 * The three that follow are for between llds_bucket_begin() and its end; and
 * then llds_buckets_fit().
 *
 * Puts an entry in. REQUIRES: it was prepared, and the key is not there.
 */
void llds_buckets_add(struct llds_buckets *buckets, struct llds_bucket *home,
		      u64 hash, u32 handle);

/* Puts an entry in the place of another with the same key. */
void llds_buckets_replace(struct llds_buckets *buckets,
			  struct llds_bucket *home, u32 old, u32 handle);

/* Takes an entry out. */
void llds_buckets_remove(struct llds_buckets *buckets,
			 struct llds_bucket *home, u32 handle);

/* Makes one bucket more or less, if there are too many entries or too few. */
void llds_buckets_fit(struct llds_buckets *buckets);

/* Between these two, readers without the lock do not trust what they read. */
static inline void llds_bucket_begin(struct llds_bucket *home)
{
	WRITE_ONCE(home->sequence, home->sequence + 1);
	/* Pairs with what they do before they look at it once more: 3 above. */
	smp_wmb();
}

static inline void llds_bucket_end(struct llds_bucket *home)
{
	/* Pairs with the acquire of the first look: 1 above. */
	smp_store_release(&home->sequence, home->sequence + 1);
}

/*
 * The hash of a key: the halves of 64 by 64 bit products folded, for each 8
 * bytes, the last ones filled up with zeros; the length is mixed in first.
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

/* The bits that number so many buckets, of which there is more than one. */
static inline u32 llds_buckets_mask(u32 count)
{
	return ~0U >> (32 - fls64(count - 1));
}

/* Which of so many buckets a hash belongs to, with that mask. */
static inline u32 llds_bucket_in(u64 hash, u32 count, u32 mask)
{
	const u32 at = (u32)hash & mask;

	return at < count ? at : at & (mask >> 1);
}

/* Which of so many. */
static inline u32 llds_bucket_of(u64 hash, u32 count)
{
	return llds_bucket_in(hash, count, llds_buckets_mask(count));
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
 * Sets of slots are words with bit 8 i set for slot i below 8, and bit 8 i + 4
 * for slot 8 + i: what is left of comparing the tags as two words.
 */
static inline u32 llds_slot_of(u64 slots)
{
	const u32 bit = __ffs64(slots);

	return (bit >> 3) + ((bit & 4) << 1);
}

/*
 * The slots with a tag, which is given eight times, of the first eight; and of
 * all. Above the first one in each word, one that differs in its lowest bit
 * alone may look so as well.
 */
static inline u64 llds_slots_with_first(const struct llds_bucket *bucket,
					u64 tags)
{
	const u64 first = *(const u64 *)&bucket->tags[0] ^ tags;

	return ((first - LLDS_ONES) & ~first & LLDS_HIGHS) >> 7;
}

static inline u64 llds_slots_with(const struct llds_bucket *bucket, u64 tags)
{
	const u32 last = *(const u32 *)&bucket->tags[8] ^ (u32)tags;

	return llds_slots_with_first(bucket, tags) |
	       (u64)((last - 0x01010101) & ~last & 0x808080) >> 3;
}

/*
 * Never 0, which is a free slot, and never 1, as which llds_slots_with() may take
 * a free slot: what its handle names may be gone.
 */
static inline u8 llds_tag_of(u64 hash)
{
	const u8 tag = hash >> 56;

	return tag < 2 ? tag + 2 : tag;
}

#endif /* LLDS_BUCKETS_H */

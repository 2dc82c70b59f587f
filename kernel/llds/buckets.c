// SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0
/*
 * The hash index: finds a key's entry.
 */
#include "buckets.h"

#define FIRST 16
/* Maximum and minimum of the average number of entries in a bucket. */
#define MANY 6
#define FEW 3
#define BUCKETS_MAX 0x40000000

/* The slots that hold an entry. */
static inline u64 slots_used(const struct llds_bucket *bucket)
{
	const u64 first = llds_tags_first(bucket);
	const u32 last = llds_tags_last(bucket);

	return ((((first & ~LLDS_HIGHS) + ~LLDS_HIGHS) | first) >> 7 & LLDS_ONES) |
	       (u64)((((last & 0x7f7f7f) + 0x7f7f7f) | last) & 0x808080) >> 3;
}

static inline struct llds_bucket *next(const struct llds_buckets *buckets,
				       const struct llds_bucket *bucket)
{
	return bucket->next ? llds_block(buckets->memory, bucket->next) : NULL;
}

/* Allocates more pieces for buckets. */
static bool grow(struct llds_buckets *buckets)
{
	struct llds_budget *budget = buckets->memory->budget;
	/* So that the table has room for all pieces of one allocation. */
	const u32 wanted = buckets->end + LLDS_PIECES_AT_ONCE;
	char *pieces;
	u32 i, many;

	if (wanted > buckets->room &&
	    !llds_pieces_grow(buckets->memory, (void ***)&buckets->pieces,
			      &buckets->room, 2 * wanted))
		return false;
	many = llds_pieces_at_once(buckets->end);
	pieces = llds_pieces(budget, llds_piece_at(buckets->base, buckets->end),
			     &many);
	if (!pieces)
		return false;
	for (i = 0; i < many; i++) {
		/* Its zeros before it. Pairs with llds_piece_shown(). */
		smp_store_release(&buckets->pieces[buckets->end],
				  (void *)(pieces + i * LLDS_PIECE_BYTES));
		/* Likewise. */
		smp_store_release(&buckets->end, buckets->end + 1);
	}
	return true;
}

bool llds_buckets_init(struct llds_buckets *buckets,
		       struct llds_memory *memory, struct llds_header *header)
{
	BUILD_BUG_ON(sizeof(struct llds_bucket) != 1 << LLDS_BUCKET_SHIFT);
	memset(buckets, 0, sizeof(*buckets));
	buckets->memory = memory;
	buckets->header = header;
	buckets->header->buckets = llds_buckets_word(FIRST);
	buckets->base = llds_os_base();
	if (grow(buckets))
		return true;
	llds_buckets_drop(buckets);
	return false;
}

void llds_buckets_drop(struct llds_buckets *buckets)
{
	struct llds_budget *budget = buckets->memory->budget;

	while (buckets->end > 0) {
		llds_os_piece_free(buckets->pieces[--buckets->end]);
		llds_budget_give(budget, LLDS_PIECE_BYTES);
		llds_os_relax();
	}
	llds_give(budget, buckets->pieces,
		  buckets->room * sizeof(*buckets->pieces));
	llds_os_base_free(buckets->base);
	buckets->pieces = NULL;
	buckets->room = 0;
}

static __always_inline u32 find(const struct llds_buckets *buckets,
				const struct llds_bucket *bucket, u8 tag,
				const u8 *key, u32 key_bytes)
{
	const u64 tags = LLDS_ONES * tag;
	u32 handle;
	u64 slots;

	do {
		for (slots = llds_slots_with(bucket, tags); slots;
		     slots &= slots - 1) {
			handle = bucket->handles[llds_slot_of(slots)];
			if (likely(llds_entry_is(llds_block(buckets->memory,
							    handle),
						 key, key_bytes)))
				return handle;
		}
		bucket = next(buckets, bucket);
	} while (unlikely(bucket));
	return 0;
}

u32 llds_buckets_find(const struct llds_buckets *buckets,
		      const struct llds_bucket *home, u64 hash,
		      const u8 *key, u32 key_bytes)
{
	/* Most keys have 8 bytes; this avoids the call of memcmp(). */
	if (likely(key_bytes == 8))
		return find(buckets, home, llds_tag_of(hash), key, 8);
	return find(buckets, home, llds_tag_of(hash), key, key_bytes);
}

void llds_buckets_fetch_entry(const struct llds_buckets *buckets,
			      const struct llds_bucket *home, u64 hash)
{
	const u64 slots = llds_slots_with(home, LLDS_ONES * llds_tag_of(hash));

	if (likely(slots))
		prefetch(llds_block(buckets->memory,
				    home->handles[llds_slot_of(slots)]));
}

/* Counts entries and free slots of a bucket with its overflow blocks. */
static void count(const struct llds_buckets *buckets,
		  const struct llds_bucket *bucket, u32 *entries, u32 *free)
{
	u32 used;

	*entries = 0;
	*free = 0;
	for (; bucket; bucket = next(buckets, bucket)) {
		used = hweight64(slots_used(bucket));
		*entries += used;
		*free += LLDS_BUCKET_SLOTS - used;
	}
}

/* Frees the empty overflow blocks of a bucket. */
static void trim(struct llds_buckets *buckets, struct llds_bucket *bucket)
{
	while (bucket->next) {
		const u32 handle = bucket->next;
		struct llds_bucket *more = next(buckets, bucket);

		if (slots_used(more)) {
			bucket = more;
			continue;
		}
		WRITE_ONCE(bucket->next, more->next);
		llds_block_free(buckets->memory, handle);
	}
}

/*
 * Makes sure that @slots slots are free, or that the bucket has as many blocks
 * as it may have; returns false without memory.
 * REQUIRES: llds_bucket_begin() of the bucket.
 */
static bool reserve(struct llds_buckets *buckets, struct llds_bucket *first,
		    u32 slots)
{
	struct llds_bucket *more, *last = first;
	u32 entries, there, handle, i, blocks = 0;

	count(buckets, first, &entries, &there);
	while (last->next) {
		last = next(buckets, last);
		blocks++;
	}
	for (; there < slots && blocks < LLDS_CHAIN_BLOCKS; blocks++) {
		handle = llds_block_alloc(buckets->memory, sizeof(*more));
		if (!handle) {
			trim(buckets, first);
			return false;
		}
		more = llds_block(buckets->memory, handle);
		WRITE_ONCE(more->next, 0);
		for (i = 0; i < ARRAY_SIZE(more->tags); i++)
			WRITE_ONCE(more->tags[i], 0);
		WRITE_ONCE(more->is_crowded, 0);
		WRITE_ONCE(last->next, handle);
		last = more;
		there += LLDS_BUCKET_SLOTS;
	}
	return true;
}

bool llds_buckets_prepare(struct llds_buckets *buckets,
			  struct llds_bucket *home)
{
	bool is_there;

	if (likely(llds_slots_with(home, 0)))
		return true;
	llds_bucket_begin(home);
	is_there = reserve(buckets, home, 1);
	llds_bucket_end(home);
	return is_there;
}

/*
 * Puts an entry into the first free slot. If there is none, the entry is only
 * in the order, and the bucket is crowded.
 */
static void put(struct llds_buckets *buckets, struct llds_bucket *home,
		u8 tag, u32 handle)
{
	struct llds_bucket *bucket = home;
	u64 free;
	u32 slot;

	while (unlikely(!(free = llds_slots_with(bucket, 0)))) {
		bucket = next(buckets, bucket);
		if (unlikely(!bucket)) {
			WRITE_ONCE(home->is_crowded, 1);
			buckets->beyond++;
			return;
		}
	}
	slot = llds_slot_of(free);
	WRITE_ONCE(bucket->handles[slot], handle);
	WRITE_ONCE(bucket->tags[slot], tag);
}

/* Removes the mark if it is not needed. REQUIRES: llds_bucket_begin(). */
static void uncrowd(const struct llds_buckets *buckets,
		    struct llds_bucket *home)
{
	if (unlikely(home->is_crowded) && !buckets->beyond)
		WRITE_ONCE(home->is_crowded, 0);
}

static u64 hash_of(const struct llds_buckets *buckets, u32 handle)
{
	const struct llds_entry *entry = llds_block(buckets->memory, handle);

	return llds_hash(buckets->header->salt, entry->bytes,
			 llds_key_bytes(entry->sizes));
}

/*
 * Moves entries to another bucket: those whose hash has @bit, or all if @bit is
 * 0. REQUIRES: llds_bucket_begin() of both; enough free slots in @to.
 */
static void move(struct llds_buckets *buckets, struct llds_bucket *from,
		 struct llds_bucket *to, u32 bit)
{
	u32 slot, handle;
	u64 slots;

	for (; from; from = next(buckets, from)) {
		for (slots = slots_used(from); slots; slots &= slots - 1) {
			slot = llds_slot_of(slots);
			handle = from->handles[slot];
			if (bit && !(hash_of(buckets, handle) & bit))
				continue;
			put(buckets, to, from->tags[slot], handle);
			WRITE_ONCE(from->tags[slot], 0);
		}
	}
}

/*
 * Prefetches for the splits of the next buckets: first the buckets, later the
 * entries that they name.
 */
static void fetch_for_split(struct llds_buckets *buckets, u32 at)
{
	const struct llds_bucket *bucket;
	u64 slots;

	if (at + 4 >= llds_buckets_count(buckets))
		return;
	prefetch(llds_bucket(buckets, at + 4));
	bucket = llds_bucket(buckets, at + 2);
	for (slots = slots_used(bucket); slots; slots &= slots - 1)
		prefetch(llds_block(buckets->memory,
				    bucket->handles[llds_slot_of(slots)]));
}

/* The hash bit that selects the entries of the last of @count buckets. */
static u32 half_of(u32 count)
{
	return 1U << (fls64(count - 1) - 1);
}

/* Splits a bucket, if there is memory. */
static void split(struct llds_buckets *buckets)
{
	const u32 last = llds_buckets_count(buckets);
	const u32 half = half_of(last + 1);
	struct llds_bucket *from, *to;
	u32 entries, free;

	if (last == BUCKETS_MAX)
		return;
	if (last >> LLDS_BUCKETS_SHIFT == buckets->end && !grow(buckets))
		return;
	from = llds_bucket(buckets, last - half);
	to = llds_bucket(buckets, last);
	fetch_for_split(buckets, last - half);
	llds_bucket_begin(from);
	llds_bucket_begin(to);
	count(buckets, from, &entries, &free);
	if (entries <= LLDS_BUCKET_SLOTS || reserve(buckets, to, entries)) {
		move(buckets, from, to, half);
		uncrowd(buckets, from);
		/* Some of the entries that are in the order alone are now its. */
		WRITE_ONCE(to->is_crowded, from->is_crowded);
		WRITE_ONCE(buckets->header->buckets,
			   llds_buckets_word(last + 1));
		trim(buckets, to);
		trim(buckets, from);
	}
	llds_bucket_end(to);
	llds_bucket_end(from);
}

/* Merges the last bucket into another, if there is memory. */
static void merge(struct llds_buckets *buckets)
{
	const u32 last = llds_buckets_count(buckets) - 1;
	struct llds_bucket *from, *to;
	u32 entries, free;

	from = llds_bucket(buckets, last);
	to = llds_bucket(buckets, last - half_of(last + 1));
	llds_bucket_begin(to);
	llds_bucket_begin(from);
	count(buckets, from, &entries, &free);
	if (reserve(buckets, to, entries)) {
		move(buckets, from, to, 0);
		if (unlikely(from->is_crowded))
			WRITE_ONCE(to->is_crowded, 1);
		WRITE_ONCE(buckets->header->buckets, llds_buckets_word(last));
		trim(buckets, from);
	}
	llds_bucket_end(from);
	llds_bucket_end(to);
	llds_buckets_trim(buckets);
}

void llds_buckets_trim(struct llds_buckets *buckets)
{
	/* Keeps the pieces of one allocation, against repeated freeing. */
	const u32 most = ((llds_buckets_count(buckets) - 1) >>
			  LLDS_BUCKETS_SHIFT) + LLDS_PIECES_AT_ONCE + 1;

	while (most < buckets->end && !buckets->memory->is_shown) {
		llds_os_piece_free(buckets->pieces[--buckets->end]);
		llds_budget_give(buckets->memory->budget, LLDS_PIECE_BYTES);
		llds_os_relax();
	}
}

void llds_buckets_fit(struct llds_buckets *buckets)
{
	const u64 count = llds_buckets_count(buckets);

	if (buckets->keys > count * MANY)
		split(buckets);
	else if (buckets->keys < count * FEW && count > FIRST)
		merge(buckets);
}

void llds_buckets_add(struct llds_buckets *buckets, struct llds_bucket *home,
		      u64 hash, u32 handle)
{
	uncrowd(buckets, home);
	put(buckets, home, llds_tag_of(hash), handle);
	buckets->keys++;
}

/* The bucket or overflow block that names an entry, and the slot; or NULL. */
static struct llds_bucket *named(struct llds_buckets *buckets,
				 struct llds_bucket *bucket, u32 handle,
				 u32 *slot)
{
	u64 slots;

	for (; bucket; bucket = next(buckets, bucket)) {
		for (slots = slots_used(bucket); slots; slots &= slots - 1) {
			*slot = llds_slot_of(slots);
			if (bucket->handles[*slot] == handle)
				return bucket;
		}
	}
	return NULL;
}

void llds_buckets_replace(struct llds_buckets *buckets,
			  struct llds_bucket *home, u32 old, u32 handle)
{
	u32 slot;
	struct llds_bucket *bucket = named(buckets, home, old, &slot);

	if (likely(bucket))
		WRITE_ONCE(bucket->handles[slot], handle);
}

void llds_buckets_remove(struct llds_buckets *buckets,
			 struct llds_bucket *home, u32 handle)
{
	u32 slot;
	struct llds_bucket *bucket = named(buckets, home, handle, &slot);

	buckets->keys--;
	if (unlikely(!bucket)) {
		buckets->beyond--;
		return;
	}
	WRITE_ONCE(bucket->tags[slot], 0);
	if (bucket != home)
		trim(buckets, home);
}

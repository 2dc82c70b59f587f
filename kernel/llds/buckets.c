// SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0
/*
 * buckets.c - where a key's entry is, by a hash.
 */
#include "buckets.h"

#define FIRST 16
/* Entries of a bucket on average, at most, and at least. */
#define MANY 6
#define FEW 3
#define BUCKETS_MAX (1UL << 30)

#define ONES 0x0101010101010101ULL
#define HIGHS 0x8080808080808080ULL

/*
 * Which bytes of a word are this one, as the high bits of bytes. Above one that
 * is, another that differs in its lowest bit alone may look so as well.
 */
static inline u64 alike(u64 word, u8 byte)
{
	const u64 differences = word ^ ONES * byte;

	return (differences - ONES) & ~differences & HIGHS;
}

/* The first slots and the last ones, in two words. */
static inline u64 alike_first(const struct llds_bucket *bucket, u8 tag)
{
	return alike(*(const u64 *)&bucket->tags[0], tag);
}

static inline u64 alike_last(const struct llds_bucket *bucket, u8 tag)
{
	return alike(*(const u32 *)&bucket->tags[8], tag) & 0x808080;
}

static inline u8 tag_of(u64 hash)
{
	const u8 tag = hash >> 56;

	return tag + !tag;
}

static inline struct llds_bucket *home(const struct llds_buckets *buckets,
				       u64 hash)
{
	return llds_bucket(buckets, llds_bucket_of(hash, buckets->count));
}

static inline struct llds_bucket *next(const struct llds_buckets *buckets,
				       const struct llds_bucket *bucket)
{
	return bucket->next ? llds_block(buckets->memory, bucket->next) : NULL;
}

static void begin(struct llds_bucket *bucket)
{
	WRITE_ONCE(bucket->sequence, bucket->sequence + 1);
	smp_wmb();
}

static void end(struct llds_bucket *bucket)
{
	smp_store_release(&bucket->sequence, bucket->sequence + 1);
}

void llds_buckets_begin(struct llds_buckets *buckets, u64 hash)
{
	begin(home(buckets, hash));
}

void llds_buckets_end(struct llds_buckets *buckets, u64 hash)
{
	end(home(buckets, hash));
}

/* Takes another piece for buckets. */
static bool grow(struct llds_buckets *buckets)
{
	struct llds_budget *budget = buckets->memory->budget;
	struct llds_bucket **pieces;
	void *piece;
	u32 room;

	if (buckets->end == buckets->room) {
		const size_t each = sizeof(*pieces);

		room = buckets->room ? 2 * buckets->room : 16;
		if (!llds_budget_take(budget, (room - buckets->room) * each))
			return false;
		pieces = llds_os_table(room * each);
		if (!pieces) {
			budget->bytes -= (room - buckets->room) * each;
			return false;
		}
		if (buckets->end)
			memcpy(pieces, buckets->pieces, buckets->end * each);
		llds_os_table_free(buckets->pieces);
		buckets->pieces = pieces;
		buckets->room = room;
	}
	if (!llds_budget_take(budget, LLDS_PIECE_BYTES))
		return false;
	piece = llds_os_pieces(1);
	if (!piece) {
		budget->bytes -= LLDS_PIECE_BYTES;
		return false;
	}
	buckets->pieces[buckets->end++] = piece;
	return true;
}

bool llds_buckets_init(struct llds_buckets *buckets,
		       struct llds_memory *memory, u64 salt)
{
	BUILD_BUG_ON(sizeof(struct llds_bucket) != 1 << LLDS_BUCKET_SHIFT);
	memset(buckets, 0, sizeof(*buckets));
	buckets->memory = memory;
	buckets->salt = salt;
	buckets->count = FIRST;
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
		budget->bytes -= LLDS_PIECE_BYTES;
		llds_os_relax();
	}
	budget->bytes -= buckets->room * sizeof(*buckets->pieces);
	llds_os_table_free(buckets->pieces);
	buckets->pieces = NULL;
	buckets->room = 0;
}

u32 llds_buckets_find(const struct llds_buckets *buckets, u64 hash,
		      const u8 *key, u32 key_bytes)
{
	const struct llds_bucket *bucket = home(buckets, hash);
	const u8 tag = tag_of(hash);
	u32 handle;
	u64 slots;

	do {
		for (slots = alike_first(bucket, tag); slots;
		     slots &= slots - 1) {
			handle = bucket->handles[__ffs64(slots) >> 3];
			if (llds_entry_is(llds_block(buckets->memory, handle),
					  key, key_bytes))
				return handle;
		}
		for (slots = alike_last(bucket, tag); slots;
		     slots &= slots - 1) {
			handle = bucket->handles[8 + (__ffs64(slots) >> 3)];
			if (llds_entry_is(llds_block(buckets->memory, handle),
					  key, key_bytes))
				return handle;
		}
		bucket = next(buckets, bucket);
	} while (unlikely(bucket));
	return 0;
}

/* A free slot, or LLDS_BUCKET_SLOTS. */
static u32 free_slot(const struct llds_bucket *bucket)
{
	u64 slots = alike_first(bucket, 0);

	if (slots)
		return __ffs64(slots) >> 3;
	slots = alike_last(bucket, 0);
	return slots ? 8 + (__ffs64(slots) >> 3) : LLDS_BUCKET_SLOTS;
}

/* How many slots of a bucket, and of what continues it, are free. */
static u32 free_slots(const struct llds_buckets *buckets,
		      const struct llds_bucket *bucket)
{
	u32 slot, slots = 0;

	for (; bucket; bucket = next(buckets, bucket)) {
		for (slot = 0; slot < LLDS_BUCKET_SLOTS; slot++)
			slots += !bucket->tags[slot];
	}
	return slots;
}

/* Gives back what continues a bucket and is empty. */
static void trim(struct llds_buckets *buckets, struct llds_bucket *bucket)
{
	while (bucket->next) {
		const u32 handle = bucket->next;
		struct llds_bucket *more = next(buckets, bucket);
		u32 slot, used = 0;

		for (slot = 0; slot < LLDS_BUCKET_SLOTS; slot++)
			used += more->tags[slot] != 0;
		if (used) {
			bucket = more;
			continue;
		}
		WRITE_ONCE(bucket->next, more->next);
		llds_block_free(buckets->memory, handle);
	}
}

/*
 * Makes sure that so many slots are free; false if there is no memory.
 * REQUIRES: begin() of the bucket.
 */
static bool reserve(struct llds_buckets *buckets, struct llds_bucket *first,
		    u32 slots)
{
	u32 there = free_slots(buckets, first), handle, i;
	struct llds_bucket *more, *last = first;

	while (last->next)
		last = next(buckets, last);
	for (; there < slots; there += LLDS_BUCKET_SLOTS) {
		handle = llds_block_alloc(buckets->memory, sizeof(*more));
		if (!handle) {
			trim(buckets, first);
			return false;
		}
		more = llds_block(buckets->memory, handle);
		WRITE_ONCE(more->next, 0);
		for (i = 0; i < ARRAY_SIZE(more->tags); i++)
			WRITE_ONCE(more->tags[i], 0);
		WRITE_ONCE(last->next, handle);
		last = more;
	}
	return true;
}

bool llds_buckets_prepare(struct llds_buckets *buckets, u64 hash)
{
	struct llds_bucket *bucket = home(buckets, hash);
	bool is_there;

	if (likely(free_slot(bucket) < LLDS_BUCKET_SLOTS))
		return true;
	begin(bucket);
	is_there = reserve(buckets, bucket, 1);
	end(bucket);
	return is_there;
}

/* Puts an entry into the first free slot. REQUIRES: there is one. */
static void put(struct llds_buckets *buckets, struct llds_bucket *bucket,
		u8 tag, u32 handle)
{
	u32 slot;

	while ((slot = free_slot(bucket)) == LLDS_BUCKET_SLOTS)
		bucket = next(buckets, bucket);
	WRITE_ONCE(bucket->handles[slot], handle);
	WRITE_ONCE(bucket->tags[slot], tag);
}

static u64 hash_of(const struct llds_buckets *buckets, u32 handle)
{
	const struct llds_entry *entry = llds_block(buckets->memory, handle);

	return llds_hash(buckets->salt, entry->bytes,
			 llds_key_bytes(entry->sizes));
}

/*
 * Moves entries to another bucket: those with a bit in their hash, or all if
 * there is none. REQUIRES: begin() of both, and slots for as many as are there.
 */
static void move(struct llds_buckets *buckets, struct llds_bucket *from,
		 struct llds_bucket *to, u32 bit)
{
	u32 slot, handle;

	for (; from; from = next(buckets, from)) {
		for (slot = 0; slot < LLDS_BUCKET_SLOTS; slot++) {
			if (!from->tags[slot])
				continue;
			handle = from->handles[slot];
			if (bit && !(hash_of(buckets, handle) & bit))
				continue;
			put(buckets, to, from->tags[slot], handle);
			WRITE_ONCE(from->tags[slot], 0);
		}
	}
}

/* How many entries a bucket and what continues it have. */
static u32 entries(const struct llds_buckets *buckets,
		   const struct llds_bucket *bucket)
{
	u32 slots = 0, empty = free_slots(buckets, bucket);

	for (; bucket; bucket = next(buckets, bucket))
		slots += LLDS_BUCKET_SLOTS;
	return slots - empty;
}

/*
 * Asks for what will be needed when the buckets behind this one are cut in
 * two: lines of buckets early, what their handles name later.
 */
static void fetch_for_split(struct llds_buckets *buckets, u32 at)
{
	const struct llds_bucket *bucket;
	u32 slot;

	if (at + 4 >= buckets->count)
		return;
	prefetch(llds_bucket(buckets, at + 4));
	bucket = llds_bucket(buckets, at + 2);
	for (slot = 0; slot < LLDS_BUCKET_SLOTS; slot++) {
		if (bucket->tags[slot])
			prefetch(llds_block(buckets->memory,
					    bucket->handles[slot]));
	}
}

/* The bit that tells the entries of the last of so many buckets from others. */
static u32 half_of(u32 count)
{
	return 1U << (fls64(count - 1) - 1);
}

/* Makes one bucket more, if there is memory. */
static void split(struct llds_buckets *buckets)
{
	const u32 count = buckets->count + 1;
	const u32 half = half_of(count);
	struct llds_bucket *from, *to;
	bool is_room;

	if (count > BUCKETS_MAX)
		return;
	if ((count - 1) >> LLDS_BUCKETS_SHIFT == buckets->end && !grow(buckets))
		return;
	from = llds_bucket(buckets, count - 1 - half);
	to = llds_bucket(buckets, count - 1);
	fetch_for_split(buckets, count - 1 - half);
	begin(from);
	begin(to);
	is_room = reserve(buckets, to, entries(buckets, from));
	if (is_room) {
		move(buckets, from, to, half);
		WRITE_ONCE(buckets->count, count);
		trim(buckets, to);
		trim(buckets, from);
	}
	end(to);
	end(from);
}

/* Makes one bucket less, if there is memory. */
static void merge(struct llds_buckets *buckets)
{
	const u32 count = buckets->count;
	struct llds_bucket *from, *to;
	bool is_room;

	from = llds_bucket(buckets, count - 1);
	to = llds_bucket(buckets, count - 1 - half_of(count));
	begin(to);
	begin(from);
	is_room = reserve(buckets, to, entries(buckets, from));
	if (is_room) {
		move(buckets, from, to, 0);
		WRITE_ONCE(buckets->count, count - 1);
		trim(buckets, from);
	}
	end(from);
	end(to);
	/* One that is not used is kept, so that nothing comes and goes. */
	if (((buckets->count - 1) >> LLDS_BUCKETS_SHIFT) + 2 < buckets->end) {
		llds_os_piece_free(buckets->pieces[--buckets->end]);
		buckets->memory->budget->bytes -= LLDS_PIECE_BYTES;
	}
}

void llds_buckets_add(struct llds_buckets *buckets, u64 hash, u32 handle)
{
	struct llds_bucket *bucket = home(buckets, hash);

	begin(bucket);
	put(buckets, bucket, tag_of(hash), handle);
	end(bucket);
	if (++buckets->keys > (u64)buckets->count * MANY)
		split(buckets);
}

/* The bucket, or what continues it, that names an entry, and where. */
static struct llds_bucket *named(struct llds_buckets *buckets, u64 hash,
				 u32 handle, u32 *slot)
{
	struct llds_bucket *bucket = home(buckets, hash);

	for (; bucket; bucket = next(buckets, bucket)) {
		for (*slot = 0; *slot < LLDS_BUCKET_SLOTS; ++*slot) {
			if (bucket->handles[*slot] == handle &&
			    bucket->tags[*slot])
				return bucket;
		}
	}
	return NULL;
}

void llds_buckets_replace(struct llds_buckets *buckets, u64 hash, u32 old,
			  u32 handle)
{
	struct llds_bucket *first = home(buckets, hash);
	u32 slot;
	struct llds_bucket *bucket = named(buckets, hash, old, &slot);

	begin(first);
	WRITE_ONCE(bucket->handles[slot], handle);
	end(first);
}

void llds_buckets_remove(struct llds_buckets *buckets, u64 hash, u32 handle)
{
	struct llds_bucket *first = home(buckets, hash);
	u32 slot;
	struct llds_bucket *bucket = named(buckets, hash, handle, &slot);

	begin(first);
	WRITE_ONCE(bucket->tags[slot], 0);
	if (bucket != first)
		trim(buckets, first);
	end(first);
	if (--buckets->keys < (u64)buckets->count * FEW &&
	    buckets->count > FIRST)
		merge(buckets);
}

// SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0
/*
 * Many gets at once: what llds_parse() and llds_do() do for one, for a group of
 * them in three passes, so that each finds in the cache what the one before has
 * asked for: the bucket, then the entry. No entry that is to be gone is met:
 * there are such only while somebody has the lock alone.
 */
#include "gets.h"

#define GROUP 32
/* Bytes of a get, but for its key. */
#define GET_BYTES ((long)sizeof(struct llds_op))

/**
 * struct get - a get of a group
 * @at: where it is
 * @home: the bucket of its key
 * @tags: the tag of its hash, eight times
 * @entry: the first entry with that tag, or one that no key has
 */
struct get {
	const u8 *at;
	const struct llds_bucket *home;
	u64 tags;
	const struct llds_entry *entry;
};

/* The entry of no key: none is so long. */
static const struct llds_entry nobodys = { .sizes = ~0U };

/* The beginning of an operation, to be compared. */
struct words {
	u64 first, last;
};

static __always_inline struct words words_of(const void *op)
{
	struct words words;

	BUILD_BUG_ON(sizeof(words) != sizeof(struct llds_op));
	memcpy(&words, op, sizeof(words));
	return words;
}

static __always_inline u32 key_bytes_of(const u8 *at)
{
	u16 bytes;

	memcpy(&bytes, at + offsetof(struct llds_op, key_bytes), sizeof(bytes));
	return bytes;
}

static __always_inline bool is(const u8 *at, const struct llds_op *op)
{
	const struct words is = words_of(at), wanted = words_of(op);

	return is.first == wanted.first && is.last == wanted.last;
}

/*
 * The length of any get at the beginning of so many bytes, with the hash of its
 * key; 0 if it is not one.
 */
static noinline u32 measure(u64 salt, const u8 *at, u64 bytes, u64 *hash)
{
	struct llds_op op;
	u32 whole;

	if (bytes < sizeof(op))
		return 0;
	memcpy(&op, at, sizeof(op));
	whole = sizeof(op) + llds_padded(op.key_bytes);
	if (op.code != LLDS_GET || op.flags & ~LLDS_NO_VALUE ||
	    op.key_bytes > LLDS_KEY_BYTES_MAX || op.value_bytes ||
	    op.other_bytes || op.limit || bytes < whole)
		return 0;
	*hash = llds_hash(salt, at + sizeof(op), op.key_bytes);
	return whole;
}

/* Takes a group, with the buckets of the keys; how many there are. */
static noinline u32 take(const struct llds_store *store, const u8 **from,
			 const u8 *end, struct get *gets)
{
	/* Most keys are a word. */
	static const struct llds_op of_a_word = { .code = LLDS_GET,
						  .key_bytes = 8 };
	const u32 count = store->header->buckets;
	const u32 mask = llds_buckets_mask(count);
	const u64 salt = store->header->salt;
	const u8 *const last = end - (GET_BYTES + 8);
	const u8 *at = *from;
	struct get *get;
	u32 whole;
	u64 hash;

	for (get = gets; get < gets + GROUP; get++) {
		get->at = at;
		if (likely(at <= last && is(at, &of_a_word))) {
			hash = llds_hash(salt, at + GET_BYTES, 8);
			at += GET_BYTES + 8;
		} else {
			whole = measure(salt, at, end - at, &hash);
			if (!whole)
				break;
			at += whole;
		}
		get->home = llds_bucket(&store->buckets,
					llds_bucket_in(hash, count, mask));
		get->tags = LLDS_ONES * llds_tag_of(hash);
		prefetch(get->home);
	}
	*from = at;
	return get - gets;
}

/* Finds what are likely the entries. */
static noinline void aim(const struct llds_store *store, struct get *gets,
			 u32 n)
{
	const struct get *end = gets + n;
	struct get *get;

	for (get = gets; get < end; get++) {
		u64 slots = llds_slots_with_first(get->home, get->tags);

		/* Slots are filled from the first on: most are in these. */
		if (unlikely(!slots))
			slots = llds_slots_with(get->home, get->tags);
		get->entry = &nobodys;
		if (likely(slots)) {
			const u32 slot = llds_slot_of(slots);

			get->entry = llds_block(&store->memory,
						get->home->handles[slot]);
			prefetch(get->entry);
		}
	}
}

static noinline const struct llds_entry *find(const struct llds_store *store,
					      const u8 *key, u32 key_bytes)
{
	const struct llds_key whole = llds_key(store, key, key_bytes);

	return llds_find(store, &whole);
}

/* Answers with an entry, or NULL; false if there is no room. */
static noinline bool answer_any(const struct llds_store *store,
				const struct llds_entry *entry, u32 flags,
				struct llds_room *room)
{
	struct llds_value value = { 0 };

	if (entry && !(flags & LLDS_NO_VALUE))
		value = llds_value_of(store, entry);
	if (!llds_fits(room, value.bytes))
		return false;
	llds_answer(room, entry ? LLDS_DONE : LLDS_ABSENT, value.at,
		    value.bytes);
	return true;
}

/* Whether an entry has a value of a word, in its block. */
static __always_inline bool has_word(const struct llds_entry *entry)
{
	return entry->sizes >> LLDS_ENTRY_KEY_BITS == 8;
}

/* Answers them, as far as there is room; how many. */
static noinline u32 answer(const struct llds_store *store,
			   const struct get *gets, u32 n,
			   struct llds_room *room)
{
	const struct get *end = gets + n;
	const struct llds_entry *entry;
	const struct get *get;
	const u8 *key;
	u32 key_bytes, flags;
	bool is_it;

	for (get = gets; get < end; get++) {
		key = get->at + GET_BYTES;
		key_bytes = key_bytes_of(get->at);
		flags = get->at[offsetof(struct llds_op, flags)];
		entry = get->entry;
		is_it = llds_entry_is(entry, key, key_bytes);
		/* Many values are a word. */
		if (likely(is_it && has_word(entry) && !flags &&
			   llds_fits(room, 8))) {
			llds_answer(room, LLDS_DONE, llds_body(entry), 8);
			continue;
		}
		if (!is_it)
			entry = find(store, key, key_bytes);
		if (!answer_any(store, entry, flags, room))
			break;
	}
	return get - gets;
}

u32 llds_gets(const struct llds_store *store, const u8 *at, u32 bytes,
	      struct llds_room *room, u32 *taken)
{
	struct get gets[GROUP] __uninitialized;
	const u8 *const end = at + bytes, *to = at;
	u32 n, answered, done = 0;

	do {
		n = take(store, &to, end, gets);
		aim(store, gets, n);
		answered = answer(store, gets, n, room);
		done += answered;
	} while (answered == GROUP);
	if (answered < n)
		to = gets[answered].at;
	*taken = to - at;
	return done;
}

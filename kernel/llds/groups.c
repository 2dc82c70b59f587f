// SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0
/*
 * Groups of gets, or of sets, done together: the work of llds_parse() and
 * llds_do() in three passes over a group. Each pass prefetches for the next
 * one: first the buckets, then the entries. LLDS_ENTRY_GONE needs no check:
 * entries have it only during an atomic run, which does not use groups.
 */
#include "groups.h"

#define GROUP 32
/* Bytes of an operation without its key and values. */
#define OP_BYTES ((long)sizeof(struct llds_op))

/**
 * struct kind - a kind of operation that is done in groups
 * @of_words: the head of an operation with a key, and for a set a value, of 8
 *	bytes
 * @bytes: bytes of such an operation
 * @flags: the flags that are allowed
 */
struct kind {
	struct llds_op of_words;
	u32 bytes;
	u32 flags;
};

static const struct kind gets = {
	.of_words = { .code = LLDS_GET, .key_bytes = 8 },
	.bytes = OP_BYTES + 8,
	.flags = LLDS_NO_VALUE,
};

static const struct kind sets = {
	.of_words = { .code = LLDS_SET, .key_bytes = 8, .value_bytes = 8 },
	.bytes = OP_BYTES + 16,
};

/**
 * struct member - an operation of a group
 * @at: its encoded bytes
 * @home: the bucket of its key
 * @hash: the hash of its key
 * @entry: the first entry with the tag of @hash, or &nobodys
 */
struct member {
	const u8 *at;
	struct llds_bucket *home;
	u64 hash;
	struct llds_entry *entry;
};

/* An entry that no key matches, because its key is too long. Never written. */
static struct llds_entry nobodys = { .sizes = ~0U };

/* The head of an operation as two words, for comparing. */
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

static __always_inline u32 value_bytes_of(const u8 *at)
{
	u32 bytes;

	memcpy(&bytes, at + offsetof(struct llds_op, value_bytes),
	       sizeof(bytes));
	return bytes;
}

static __always_inline bool is(const u8 *at, const struct llds_op *op)
{
	const struct words is = words_of(at), wanted = words_of(op);

	return is.first == wanted.first && is.last == wanted.last;
}

/*
 * The length of the operation at @at, and the hash of its key; 0 if it is not a
 * valid operation of the kind.
 */
static noinline u32 measure(const struct llds_store *store,
			    const struct kind *kind, const u8 *at, u64 bytes,
			    u32 value_bytes_max, u64 *hash)
{
	struct llds_parsed parsed;

	if (llds_parse_one(store, at, bytes, value_bytes_max, &parsed) ||
	    parsed.op.code != kind->of_words.code ||
	    parsed.op.flags & ~kind->flags)
		return 0;
	*hash = parsed.key.hash;
	return parsed.bytes;
}

/* Reads a group, and prefetches the buckets; returns the number of members. */
static __always_inline u32 take(const struct llds_store *store,
				const struct kind *kind, const u8 **from,
				const u8 *end, u32 value_bytes_max,
				struct member *group)
{
	const u64 buckets = store->header->buckets;
	const u64 salt = store->header->salt;
	const u8 *const last = end - kind->bytes;
	struct member *member;
	const u8 *at = *from;
	u32 whole;
	u64 hash;

	for (member = group; member < group + GROUP; member++) {
		member->at = at;
		/* Most keys have 8 bytes. */
		if (likely(at <= last && is(at, &kind->of_words))) {
			hash = llds_hash(salt, at + OP_BYTES, 8);
			at += kind->bytes;
		} else {
			whole = measure(store, kind, at, end - at,
					value_bytes_max, &hash);
			if (!whole)
				break;
			at += whole;
		}
		member->home = llds_bucket(&store->buckets,
					   llds_bucket_of(hash, buckets));
		member->hash = hash;
		prefetch(member->home);
	}
	*from = at;
	return member - group;
}

static noinline u32 take_gets(const struct llds_store *store, const u8 **from,
			      const u8 *end, struct member *group)
{
	return take(store, &gets, from, end, 0, group);
}

static noinline u32 take_sets(const struct llds_store *store, const u8 **from,
			      const u8 *end, u32 value_bytes_max,
			      struct member *group)
{
	return take(store, &sets, from, end, value_bytes_max, group);
}

/* Finds and prefetches the likely entries, by their tags. */
static noinline void aim(const struct llds_store *store, struct member *group,
			 u32 n)
{
	const struct member *end = group + n;
	struct member *member;

	for (member = group; member < end; member++) {
		const u64 tags = LLDS_ONES * llds_tag_of(member->hash);
		u64 slots = llds_slots_with_first(member->home, tags);

		/* Slots fill in order, so most entries are in the first 8. */
		if (unlikely(!slots))
			slots = llds_slots_with(member->home, tags);
		member->entry = &nobodys;
		if (likely(slots)) {
			const u32 slot = llds_slot_of(slots);

			member->entry = llds_block(&store->memory,
						   member->home->handles[slot]);
			prefetch(member->entry);
		}
	}
}

static __always_inline struct llds_key key_of(const struct member *member)
{
	return (struct llds_key){ member->at + OP_BYTES,
				  key_bytes_of(member->at), member->hash };
}

static noinline const struct llds_entry *find(const struct llds_store *store,
					      const struct member *member)
{
	const struct llds_key key = key_of(member);

	return llds_find(store, &key);
}

/* Writes the answer for an entry, or for NULL; false without room. */
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

/* Whether an entry has a value of 8 bytes, in its block. */
static __always_inline bool has_word(const struct llds_entry *entry)
{
	return entry->sizes >> LLDS_ENTRY_KEY_BITS == 8;
}

/* Answers gets until the room is used up; returns their number. */
static noinline u32 answer(const struct llds_store *store,
			   const struct member *group, u32 n,
			   struct llds_room *room)
{
	const struct member *end = group + n, *member;
	const struct llds_entry *entry;
	u32 flags;
	bool is_it;

	for (member = group; member < end; member++) {
		flags = member->at[offsetof(struct llds_op, flags)];
		entry = member->entry;
		is_it = llds_entry_is(entry, member->at + OP_BYTES,
				      key_bytes_of(member->at));
		/* Many values have 8 bytes. */
		if (likely(is_it && has_word(entry) && !flags &&
			   llds_fits(room, 8))) {
			llds_answer(room, LLDS_DONE, llds_body(entry), 8);
			continue;
		}
		if (!is_it)
			entry = find(store, member);
		if (!answer_any(store, entry, flags, room))
			break;
	}
	return member - group;
}

/* Does one set by the general path. */
static noinline s32 set(struct llds_store *store, const struct member *member)
{
	const struct llds_key key = key_of(member);

	return llds_set(store, &key, key.at + key.bytes,
			value_bytes_of(member->at));
}

/* Does sets until the room for answers is used up; returns their number. */
static noinline u32 change(struct llds_store *store,
			   const struct member *group, u32 n,
			   struct llds_room *room)
{
	const struct member *end = group + n, *member;
	/* While this is unchanged, entries are where aim() found them. */
	const u64 moves = store->moves;
	struct llds_entry *entry;
	const u8 *key;
	u32 key_bytes;
	s32 status;

	for (member = group; member < end && llds_fits(room, 0); member++) {
		key = member->at + OP_BYTES;
		key_bytes = key_bytes_of(member->at);
		entry = member->entry;
		status = LLDS_DONE;
		if (likely(store->moves == moves &&
			   value_bytes_of(member->at) == 8 &&
			   llds_entry_is(entry, key, key_bytes) &&
			   has_word(entry))) {
			llds_bucket_begin(member->home);
			llds_entry_begin(entry);
			llds_os_copy(entry->bytes + key_bytes, key + key_bytes,
				     8);
			llds_entry_end(entry);
			llds_bucket_end(member->home);
		} else {
			status = set(store, member);
		}
		llds_answer(room, status, NULL, 0);
	}
	return member - group;
}

u32 llds_gets(const struct llds_store *store, const u8 *at, u32 bytes,
	      struct llds_room *room, u32 *taken)
{
	struct member group[GROUP] __uninitialized;
	const u8 *const end = at + bytes, *to = at;
	u32 n, answered, done = 0;

	do {
		n = take_gets(store, &to, end, group);
		aim(store, group, n);
		answered = answer(store, group, n, room);
		done += answered;
	} while (answered == GROUP);
	if (answered < n)
		to = group[answered].at;
	*taken = to - at;
	return done;
}

u32 llds_sets(struct llds_store *store, const u8 *at, u32 bytes,
	      u32 value_bytes_max, struct llds_room *room, u32 *taken)
{
	struct member group[GROUP] __uninitialized;
	const u8 *const end = at + bytes, *to = at;
	u32 n, changed, done = 0;

	do {
		n = take_sets(store, &to, end, value_bytes_max, group);
		aim(store, group, n);
		changed = change(store, group, n, room);
		done += changed;
	} while (changed == GROUP);
	if (changed < n)
		to = group[changed].at;
	*taken = to - at;
	return done;
}

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

/* The first 8 bytes of an operation: all that differs in valid ones. */
static __always_inline u64 first_of(const void *op)
{
	return llds_unaligned_u64(op);
}

static __always_inline bool is(const u8 *at, const struct llds_op *op)
{
	BUILD_BUG_ON(sizeof(*op) != 16);
	return first_of(at) == first_of(op) &&
	       llds_unaligned_u64(at + 8) == llds_unaligned_u64((u8 *)op + 8);
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
			if (at == end)
				break;
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

/* The first entry in the bucket that has the hash's tag, or &nobodys. */
static __always_inline struct llds_entry *
likely_entry(const struct llds_store *store, const struct llds_bucket *home,
	     u64 hash)
{
	const u64 tags = LLDS_ONES * llds_tag_of(hash);
	const u64 first = llds_tags_first(home) ^ tags;
	/* As llds_slots_with_first(), each at the highest bit of its byte. */
	const u64 highs = (first - LLDS_ONES) & ~first & LLDS_HIGHS;
	u64 slots;

	/* Slots fill in order, so most entries are in the first 8. */
	if (likely(highs))
		return llds_block(&store->memory,
				  home->handles[__ffs64(highs) >> 3]);
	slots = llds_slots_with(home, tags);
	if (unlikely(!slots))
		return &nobodys;
	return llds_block(&store->memory, home->handles[llds_slot_of(slots)]);
}

/* Finds and prefetches the likely entries, by their tags. */
static noinline void aim(const struct llds_store *store, struct member *group,
			 u32 n)
{
	const struct member *end = group + n;
	struct member *member;

	for (member = group; member < end; member++) {
		member->entry = likely_entry(store, member->home, member->hash);
		prefetch(member->entry);
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

/* Whether an entry has a key and a value of 8 bytes, in its block. */
static __always_inline bool has_words(const struct llds_entry *entry)
{
	return entry->sizes == (8 << LLDS_ENTRY_KEY_BITS | 8);
}

/* Answers gets until the room is used up; returns their number. */
static noinline u32 answer(const struct llds_store *store,
			   const struct member *group, u32 n,
			   struct llds_room *to)
{
	const struct member *end = group + n, *member;
	const struct llds_entry *entry;
	struct llds_room room = *to;
	const u8 *at;

	for (member = group; member < end; member++) {
		at = member->at;
		entry = member->entry;
		/* Most keys and many values have 8 bytes. */
		if (likely(first_of(at) == first_of(&gets.of_words) &&
			   has_words(entry) &&
			   llds_entry_is(entry, at + OP_BYTES, 8) &&
			   llds_fits(&room, 8))) {
			llds_answer(&room, LLDS_DONE, entry->bytes + 8, 8);
			continue;
		}
		if (!llds_entry_is(entry, at + OP_BYTES, key_bytes_of(at)))
			entry = find(store, member);
		*to = room;
		if (!answer_any(store, entry,
				at[offsetof(struct llds_op, flags)], to))
			break;
		room = *to;
	}
	*to = room;
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
			   struct llds_room *to)
{
	const struct member *end = group + n, *member;
	/* While this is unchanged, entries are where aim() found them. */
	const u64 moves = store->moves;
	struct llds_room room = *to;
	struct llds_entry *entry;
	const u8 *at;
	s32 status;

	for (member = group; member < end && llds_fits(&room, 0); member++) {
		at = member->at;
		entry = member->entry;
		status = LLDS_DONE;
		if (likely(store->moves == moves &&
			   first_of(at) == first_of(&sets.of_words) &&
			   has_words(entry) &&
			   llds_entry_is(entry, at + OP_BYTES, 8))) {
			llds_bucket_begin(member->home);
			llds_entry_begin(entry);
			llds_os_copy(entry->bytes + 8, at + OP_BYTES + 8, 8);
			llds_entry_end(entry);
			llds_bucket_end(member->home);
		} else {
			status = set(store, member);
		}
		llds_answer(&room, status, NULL, 0);
	}
	*to = room;
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

/* Does one get by the general path; false without room for its answer. */
static noinline bool get_any(const struct llds_store *store, const u8 *at,
			     struct llds_room *room)
{
	const struct llds_key key = llds_key(store, at + OP_BYTES,
					     key_bytes_of(at));

	return answer_any(store, llds_find(store, &key), 0, room);
}

bool llds_get_one(const struct llds_store *store, const u8 *at, u32 bytes,
		  struct llds_room *room)
{
	const u32 key_bytes = key_bytes_of(at);
	const struct llds_op plain = { .code = LLDS_GET,
				       .key_bytes = key_bytes };
	const struct llds_entry *entry;
	u64 hash;

	if (unlikely(!is(at, &plain) || key_bytes > LLDS_KEY_BYTES_MAX ||
		     llds_padded(OP_BYTES + key_bytes) != bytes))
		return false;
	/* Most keys and many values have 8 bytes. */
	if (unlikely(key_bytes != 8 || !llds_fits(room, 8)))
		return get_any(store, at, room);
	hash = llds_hash(store->header->salt, at + OP_BYTES, 8);
	entry = likely_entry(store, llds_buckets_home(&store->buckets, hash),
			     hash);
	if (unlikely(!has_words(entry) ||
		     !llds_entry_is(entry, at + OP_BYTES, 8)))
		return get_any(store, at, room);
	llds_answer(room, LLDS_DONE, entry->bytes + 8, 8);
	return true;
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

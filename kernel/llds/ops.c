// SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0
/*
 * Implements the operations of the ABI on a store.
 */
#include "ops.h"

#define COUNTER_BYTES 8
/* Keys of a range after which the processor is yielded. */
#define KEYS_AT_ONCE 256

#define RANGE_FLAGS (LLDS_NO_OTHER | LLDS_BEHIND_KEY | LLDS_WITH_OTHER)

/**
 * struct zeros - the bits of an operation that must be zero
 * @flags: those of the flags
 * @value: those of the value's length, all or none
 * @other: those of the other's length, all or none
 * @limit: those of the limit, all or none
 */
struct zeros {
	u32 flags, value, other, limit;
};

static const struct zeros zeros[] = {
	[LLDS_GET] = { ~LLDS_NO_VALUE, ~0U, ~0U, ~0U },
	[LLDS_SET] = { ~(LLDS_IF_ABSENT | LLDS_IF_PRESENT), 0, ~0U, ~0U },
	[LLDS_DELETE] = { ~0U, ~0U, ~0U, ~0U },
	[LLDS_ADD] = { ~0U, 0, ~0U, ~0U },
	[LLDS_SWAP] = { ~(LLDS_NO_VALUE | LLDS_NO_OTHER), 0, 0, ~0U },
	[LLDS_DELETE_RANGE] = { ~RANGE_FLAGS, ~0U, 0, 0 },
	[LLDS_SCAN] = { ~(RANGE_FLAGS | LLDS_DOWN), ~0U, 0, 0 },
	[LLDS_COMPARE] = { ~RANGE_FLAGS, 0, 0, ~0U },
};

/* Whether a length is zero, if it must be. */
static inline bool is_zero_if(bool has_to, u32 length)
{
	return !has_to || !length;
}

static inline bool makes_sense(const struct llds_op *op)
{
	const struct zeros *zero;

	if (unlikely(op->code == 0 || op->code >= ARRAY_SIZE(zeros)))
		return false;
	zero = &zeros[array_index_nospec(op->code, ARRAY_SIZE(zeros))];
	if (unlikely((op->flags & zero->flags) |
		     (op->value_bytes & zero->value) |
		     (op->other_bytes & zero->other) |
		     (op->limit & zero->limit)) ||
	    op->key_bytes > LLDS_KEY_BYTES_MAX)
		return false;
	switch (op->code) {
	case LLDS_SET:
		return op->flags != (LLDS_IF_ABSENT | LLDS_IF_PRESENT);
	case LLDS_ADD:
		return op->value_bytes == sizeof(s64);
	case LLDS_SWAP:
		return is_zero_if(op->flags & LLDS_NO_VALUE, op->value_bytes) &&
		       is_zero_if(op->flags & LLDS_NO_OTHER, op->other_bytes);
	case LLDS_DELETE_RANGE:
	case LLDS_SCAN:
	case LLDS_COMPARE:
		return op->other_bytes <= LLDS_KEY_BYTES_MAX &&
		       is_zero_if(op->flags & LLDS_NO_OTHER, op->other_bytes);
	default:
		return true;
	}
}

static __always_inline int parse(const struct llds_store *store, const u8 *at,
				 u32 bytes, u32 value_bytes_max,
				 struct llds_parsed *parsed)
{
	struct llds_op *op = &parsed->op;
	u64 whole;

	parsed->bytes = sizeof(*op);
	if (unlikely(bytes < sizeof(*op)))
		return -EAGAIN;
	memcpy(op, at, sizeof(*op));
	if (unlikely(!makes_sense(op)))
		return -EINVAL;
	if (unlikely(op->value_bytes > value_bytes_max ||
		     op->other_bytes > max_t(u32, value_bytes_max,
					     LLDS_KEY_BYTES_MAX)))
		return -E2BIG;
	/* No length is above LLDS_VALUE_BYTES_LIMIT, so 32 bits suffice. */
	whole = llds_padded(sizeof(*op) + (u64)op->key_bytes + op->value_bytes +
			    op->other_bytes);
	parsed->bytes = whole;
	if (unlikely(bytes < whole))
		return -EAGAIN;
	at += sizeof(*op);
	parsed->key = llds_key(store, at, op->key_bytes);
	parsed->value = at + op->key_bytes;
	parsed->other = parsed->value + op->value_bytes;
	return 0;
}

int llds_parse_one(const struct llds_store *store, const u8 *at, u32 bytes,
		   u32 value_bytes_max, struct llds_parsed *parsed)
{
	return parse(store, at, bytes, value_bytes_max, parsed);
}

u32 llds_parse(const struct llds_store *store, const u8 *at, u32 bytes,
	       u32 value_bytes_max, struct llds_parsed *parsed, int *error)
{
	u32 n;

	*error = 0;
	for (n = 0; n < LLDS_TOGETHER && bytes; n++) {
		*error = parse(store, at, bytes, value_bytes_max, &parsed[n]);
		if (*error)
			break;
		at += parsed[n].bytes;
		bytes -= parsed[n].bytes;
	}
	return n;
}

void llds_fetch(const struct llds_store *store,
		const struct llds_parsed *parsed, u32 n)
{
	const struct llds_bucket *homes[LLDS_TOGETHER] __uninitialized;
	u32 i;

	if (n < 2 || store->index != LLDS_INDEX_DEFAULT)
		return;
	for (i = 0; i < n; i++) {
		homes[i] = llds_buckets_home(&store->buckets,
					     parsed[i].key.hash);
		prefetch(homes[i]);
	}
	for (i = 0; i < n; i++)
		llds_buckets_fetch_entry(&store->buckets, homes[i],
					 parsed[i].key.hash);
}

static u32 wants(u64 bytes)
{
	return sizeof(struct llds_answer) + llds_padded(bytes);
}

/* Does a get; the answer has the value unless LLDS_NO_VALUE is set. */
static u32 get(const struct llds_store *store,
	       const struct llds_parsed *parsed, struct llds_room *room)
{
	const struct llds_entry *entry = llds_find(store, &parsed->key);
	struct llds_value value;

	if (!entry || parsed->op.flags & LLDS_NO_VALUE) {
		if (!llds_fits(room, 0))
			return wants(0);
		llds_answer(room, entry ? LLDS_DONE : LLDS_ABSENT, NULL, 0);
		return 0;
	}
	value = llds_value_of(store, entry);
	if (!llds_fits(room, value.bytes))
		return wants(value.bytes);
	llds_answer(room, LLDS_DONE, value.at, value.bytes);
	return 0;
}

static u32 set(struct llds_store *store, const struct llds_parsed *parsed,
	       struct llds_room *room)
{
	const u8 flags = parsed->op.flags;
	s32 status = LLDS_DONE;

	if (!llds_fits(room, 0))
		return wants(0);
	if (flags & (LLDS_IF_ABSENT | LLDS_IF_PRESENT)) {
		const bool is_there = llds_find(store, &parsed->key);

		if (is_there && flags & LLDS_IF_ABSENT)
			status = LLDS_DIFFERS;
		else if (!is_there && flags & LLDS_IF_PRESENT)
			status = LLDS_ABSENT;
	}
	if (status == LLDS_DONE)
		status = llds_set(store, &parsed->key, parsed->value,
				  parsed->op.value_bytes);
	llds_answer(room, status, NULL, 0);
	return 0;
}

/* The status for a result of llds_delete(). */
static s32 delete_status(int deleted)
{
	if (deleted < 0)
		return deleted;
	return deleted ? LLDS_DONE : LLDS_ABSENT;
}

static u32 delete(struct llds_store *store, const struct llds_parsed *parsed,
		  struct llds_room *room)
{
	if (!llds_fits(room, 0))
		return wants(0);
	llds_answer(room, delete_status(llds_delete(store, &parsed->key)),
		    NULL, 0);
	return 0;
}

/* The number of a counter, which is big endian. */
static s64 counter_of(const u8 *at)
{
	return (s64)((u64)get_unaligned_be32(at) << 32 |
		     get_unaligned_be32(at + 4));
}

/* Computes the new value of a counter; returns 0 or an error. */
static int sum_of(const struct llds_store *store,
		  const struct llds_parsed *parsed, s64 *sum)
{
	const struct llds_entry *entry = llds_find(store, &parsed->key);
	struct llds_value value;
	s64 delta;

	*sum = 0;
	if (entry) {
		value = llds_value_of(store, entry);
		if (value.bytes != COUNTER_BYTES)
			return -EINVAL;
		*sum = counter_of(value.at);
	}
	memcpy(&delta, parsed->value, sizeof(delta));
	return __builtin_add_overflow(*sum, delta, sum) ? -ERANGE : 0;
}

static u32 add(struct llds_store *store, const struct llds_parsed *parsed,
	       struct llds_room *room)
{
	u8 bytes[COUNTER_BYTES];
	s32 status;
	s64 sum;
	u32 i;

	status = sum_of(store, parsed, &sum);
	if (!llds_fits(room, status ? 0 : sizeof(sum)))
		return wants(status ? 0 : sizeof(sum));
	for (i = 0; i < COUNTER_BYTES; i++)
		bytes[i] = (u64)sum >> (56 - 8 * i);
	if (!status)
		status = llds_set(store, &parsed->key, bytes, COUNTER_BYTES);
	if (status)
		llds_answer(room, status, NULL, 0);
	else
		llds_answer(room, LLDS_DONE, &sum, sizeof(sum));
	return 0;
}

static u32 compare_swap(struct llds_store *store,
			const struct llds_parsed *parsed,
			struct llds_room *room)
{
	const struct llds_op *op = &parsed->op;
	const struct llds_entry *entry = llds_find(store, &parsed->key);
	const bool wants_one = !(op->flags & LLDS_NO_OTHER);
	struct llds_value value = { 0 };
	s32 status = LLDS_DONE;

	if (entry)
		value = llds_value_of(store, entry);
	if (!entry != !wants_one ||
	    (entry && (value.bytes != op->other_bytes ||
		       memcmp(value.at, parsed->other, value.bytes)))) {
		if (!llds_fits(room, value.bytes))
			return wants(value.bytes);
		llds_answer(room, entry ? LLDS_DIFFERS : LLDS_ABSENT, value.at,
			    value.bytes);
		return 0;
	}
	if (!llds_fits(room, 0))
		return wants(0);
	if (!(op->flags & LLDS_NO_VALUE))
		status = llds_set(store, &parsed->key, parsed->value,
				  op->value_bytes);
	else if (entry)
		status = delete_status(llds_delete(store, &parsed->key));
	llds_answer(room, status, NULL, 0);
	return 0;
}

/* Whether a key is above the upper bound of a range. */
static bool is_above(const struct llds_parsed *parsed,
		     const struct llds_entry *entry)
{
	int order;

	if (parsed->op.flags & LLDS_NO_OTHER)
		return false;
	order = llds_key_order(entry->bytes, llds_key_bytes(entry->sizes),
			       parsed->other, parsed->op.other_bytes);
	return parsed->op.flags & LLDS_WITH_OTHER ? order > 0 : order >= 0;
}

/* Whether a key is below the lower bound. */
static bool is_below(const struct llds_parsed *parsed,
		     const struct llds_entry *entry)
{
	const int order = llds_key_order(entry->bytes,
					 llds_key_bytes(entry->sizes),
					 parsed->key.at, parsed->key.bytes);

	return parsed->op.flags & LLDS_BEHIND_KEY ? order <= 0 : order < 0;
}

/* The first pair of a range in its direction, or NULL. */
static const struct llds_entry *first_of(const struct llds_store *store,
					 const struct llds_parsed *parsed,
					 union llds_cursor *cursor)
{
	const struct llds_entry *entry;

	if (!(parsed->op.flags & LLDS_DOWN)) {
		entry = llds_seek(store, cursor, parsed->key.at,
				  parsed->key.bytes);
		/* Only the bound itself may be outside of the range. */
		if (entry && is_below(parsed, entry))
			entry = llds_next(store, cursor);
		return entry && !is_above(parsed, entry) ? entry : NULL;
	}
	if (parsed->op.flags & LLDS_NO_OTHER) {
		entry = llds_seek_before(store, cursor, NULL, 0);
	} else {
		entry = llds_seek(store, cursor, parsed->other,
				  parsed->op.other_bytes);
		if (!entry || is_above(parsed, entry))
			entry = llds_seek_before(store, cursor, parsed->other,
						 parsed->op.other_bytes);
	}
	return entry && !is_below(parsed, entry) ? entry : NULL;
}

/* The next pair of a range in its direction, or NULL. */
static const struct llds_entry *next_of(const struct llds_store *store,
					const struct llds_parsed *parsed,
					union llds_cursor *cursor)
{
	const bool down = parsed->op.flags & LLDS_DOWN;
	const struct llds_entry *entry = down ? llds_prev(store, cursor) :
						llds_next(store, cursor);

	if (!entry || (down ? is_below(parsed, entry) :
			      is_above(parsed, entry)))
		return NULL;
	return entry;
}

static u32 scan(const struct llds_store *store,
		const struct llds_parsed *parsed, struct llds_room *room)
{
	const u32 start = room->used;
	const struct llds_entry *entry;
	union llds_cursor cursor;
	struct llds_value value;
	struct llds_pair pair;
	struct llds_answer end = { LLDS_DONE, 0 };
	u32 pairs = 0;
	u64 bytes;
	u8 *at;

	if (!llds_fits(room, 0))
		return wants(0);
	room->used += sizeof(end);
	entry = first_of(store, parsed, &cursor);
	while (entry) {
		if (pairs == parsed->op.limit && parsed->op.limit) {
			end.status = LLDS_MORE;
			break;
		}
		value = llds_value_of(store, entry);
		pair.key_bytes = llds_key_bytes(entry->sizes);
		pair.value_bytes = value.bytes;
		bytes = llds_padded(sizeof(pair) + (u64)pair.key_bytes +
			       value.bytes);
		if (bytes > room->bytes - room->used) {
			if (!pairs) {
				room->used = start;
				return wants(bytes);
			}
			end.status = LLDS_MORE;
			break;
		}
		at = room->at + room->used;
		memset(at + bytes - 8, 0, 8);
		memcpy(at, &pair, sizeof(pair));
		at += sizeof(pair);
		memcpy(at, entry->bytes, pair.key_bytes);
		memcpy(at + pair.key_bytes, value.at, value.bytes);
		room->used += bytes;
		pairs++;
		if (pairs % KEYS_AT_ONCE == 0)
			llds_os_relax();
		entry = next_of(store, parsed, &cursor);
	}
	end.bytes = room->used - start - sizeof(end);
	memcpy(room->at + start, &end, sizeof(end));
	return 0;
}

/*
 * Reads the head of the pair at @at, of which there are @bytes bytes. Returns
 * the bytes of the pair, or 0 if it is malformed.
 */
static u32 expected_at(const u8 *at, u32 bytes, struct llds_pair *pair)
{
	u64 whole;

	if (bytes < sizeof(*pair))
		return 0;
	memcpy(pair, at, sizeof(*pair));
	whole = llds_padded(sizeof(*pair) + (u64)pair->key_bytes +
			    pair->value_bytes);
	if (whole > bytes || pair->key_bytes > LLDS_KEY_BYTES_MAX)
		return 0;
	return whole;
}

static u32 compare(const struct llds_store *store,
		   const struct llds_parsed *parsed, struct llds_room *room)
{
	const u8 *expected = parsed->value, *key = NULL;
	u32 left = parsed->op.value_bytes, bytes = 0, key_bytes = 0;
	u32 keys = 0;
	const struct llds_entry *entry;
	union llds_cursor cursor;
	struct llds_value value;
	struct llds_pair pair;
	s32 status = LLDS_DONE;
	int order;

	entry = first_of(store, parsed, &cursor);
	while (entry || left) {
		/* The order of the pair that is there and the expected one. */
		order = entry ? -1 : 1;
		if (left) {
			bytes = expected_at(expected, left, &pair);
			if (!bytes) {
				status = -EINVAL;
				break;
			}
			key = expected + sizeof(pair);
			key_bytes = pair.key_bytes;
			if (entry)
				order = llds_key_order(
					entry->bytes,
					llds_key_bytes(entry->sizes), key,
					key_bytes);
		}
		if (!order) {
			value = llds_value_of(store, entry);
			if (value.bytes != pair.value_bytes ||
			    memcmp(value.at, key + key_bytes, value.bytes))
				order = -1;
		}
		if (order < 0) {
			key = entry->bytes;
			key_bytes = llds_key_bytes(entry->sizes);
		}
		if (order) {
			status = LLDS_DIFFERS;
			break;
		}
		expected += bytes;
		left -= bytes;
		if (++keys % KEYS_AT_ONCE == 0)
			llds_os_relax();
		entry = next_of(store, parsed, &cursor);
	}
	if (status != LLDS_DIFFERS)
		key_bytes = 0;
	if (!llds_fits(room, key_bytes))
		return wants(key_bytes);
	llds_answer(room, status, key, key_bytes);
	return 0;
}

static u32 delete_range(struct llds_store *store,
			const struct llds_parsed *parsed,
			struct llds_room *room)
{
	const struct llds_entry *entry;
	union llds_cursor cursor;
	struct llds_key key;
	int deleted = 1;
	u64 keys = 0;

	if (!llds_fits(room, sizeof(keys)))
		return wants(sizeof(keys));
	if (!store->journal.is_open)
		llds_as_one_begin(store);
	entry = first_of(store, parsed, &cursor);
	while (entry) {
		if (keys == parsed->op.limit && parsed->op.limit)
			break;
		key = llds_key(store, entry->bytes,
			       llds_key_bytes(entry->sizes));
		deleted = llds_delete(store, &key);
		if (deleted < 0)
			break;
		if (++keys % KEYS_AT_ONCE == 0) {
			/* A killed process never reads the number. */
			if (llds_os_is_killed())
				break;
			llds_os_relax();
		}
		entry = store->journal.is_open ?
			next_of(store, parsed, &cursor) :
			first_of(store, parsed, &cursor);
	}
	if (!store->journal.is_open)
		llds_as_one_end(store);
	if (deleted < 0)
		llds_answer(room, deleted, NULL, 0);
	else
		llds_answer(room, entry ? LLDS_MORE : LLDS_DONE, &keys,
			    sizeof(keys));
	return 0;
}

u32 llds_do(struct llds_store *store, const struct llds_parsed *parsed,
	    struct llds_room *room)
{
	switch (parsed->op.code) {
	case LLDS_GET:
		return get(store, parsed, room);
	case LLDS_SET:
		return set(store, parsed, room);
	case LLDS_DELETE:
		return delete(store, parsed, room);
	case LLDS_ADD:
		return add(store, parsed, room);
	case LLDS_SWAP:
		return compare_swap(store, parsed, room);
	case LLDS_DELETE_RANGE:
		return delete_range(store, parsed, room);
	case LLDS_COMPARE:
		return compare(store, parsed, room);
	default:
		return scan(store, parsed, room);
	}
}

bool llds_fails_as_one(const struct llds_parsed *parsed, s32 status)
{
	if (status < 0)
		return true;
	return status != LLDS_DONE && (parsed->op.code == LLDS_SET ||
				       parsed->op.code == LLDS_SWAP ||
				       parsed->op.code == LLDS_COMPARE);
}

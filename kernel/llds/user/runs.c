// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Random operations, their effect on the model, and their expected answers.
 */
#include "runs.h"

u8 ops[OPS_ROOM], answers[ANSWERS_ROOM], wanted[ANSWERS_ROOM];
static u8 key[KEY_ROOM], value[VALUE_ROOM], other[VALUE_ROOM];

/* Appends an operation; returns the place of the next one. */
static u32 put_op(u32 at, struct llds_op op)
{
	u8 *to = ops + at;
	const u32 bytes = padded(sizeof(op) + op.key_bytes + op.value_bytes +
				 op.other_bytes);

	memset(to + bytes - 8, 0, 8);
	memcpy(to, &op, sizeof(op));
	to += sizeof(op);
	memcpy(to, key, op.key_bytes);
	to += op.key_bytes;
	memcpy(to, value, op.value_bytes);
	to += op.value_bytes;
	memcpy(to, other, op.other_bytes);
	return at + bytes;
}

static u32 put_answer(u32 at, s32 status, const void *bytes, u32 n)
{
	const struct llds_answer answer = { status, n };

	memset(wanted + at, 0, sizeof(answer) + padded(n));
	memcpy(wanted + at, &answer, sizeof(answer));
	memcpy(wanted + at + sizeof(answer), bytes, n);
	return at + sizeof(answer) + padded(n);
}

/* Writes a pair, and returns its bytes. */
static u32 put_expected(u8 *to, const struct pair *pair)
{
	const struct llds_pair head = { pair->key_bytes, pair->value_bytes };
	const u32 bytes = padded(sizeof(head) + pair->key_bytes +
				 pair->value_bytes);

	memset(to, 0, bytes);
	memcpy(to, &head, sizeof(head));
	memcpy(to + sizeof(head), pair->key, pair->key_bytes);
	memcpy(to + sizeof(head) + pair->key_bytes, pair->value,
	       pair->value_bytes);
	return bytes;
}

static u32 put_pair(u32 at, const struct pair *pair)
{
	return at + put_expected(wanted + at, pair);
}

static s64 counter(const u8 *at)
{
	u64 x = 0;
	u32 i;

	for (i = 0; i < 8; i++)
		x = x << 8 | at[i];
	return x;
}

/* Makes a random operation with key, value and other. */
static struct llds_op an_op(enum kind kind)
{
	static const u8 codes[] = { LLDS_GET, LLDS_GET, LLDS_SET, LLDS_SET,
				    LLDS_SET, LLDS_DELETE, LLDS_ADD, LLDS_SWAP,
				    LLDS_DELETE_RANGE, LLDS_SCAN, LLDS_COMPARE };
	struct llds_op op = { .code = codes[below(ARRAY_SIZE(codes))] };
	s64 delta;

	op.key_bytes = a_key(kind, key);
	switch (op.code) {
	case LLDS_GET:
		op.flags = below(4) ? 0 : LLDS_NO_VALUE;
		break;
	case LLDS_SET:
		op.flags = below(2) ? 0 : below(2) ? LLDS_IF_ABSENT :
						     LLDS_IF_PRESENT;
		op.value_bytes = min(a_value(value), (u32)VALUE_BYTES_MAX);
		break;
	case LLDS_ADD:
		delta = below(8) ? (s64)random64() : (s64)below(3) - 1;
		memcpy(value, &delta, 8);
		op.value_bytes = 8;
		/* Few keys, so that several operations add to each. */
		op.key_bytes = min((u32)op.key_bytes, 2U);
		break;
	case LLDS_SWAP:
		op.flags = (below(3) ? 0 : LLDS_NO_VALUE) |
			   (below(3) ? 0 : LLDS_NO_OTHER);
		if (!(op.flags & LLDS_NO_VALUE))
			op.value_bytes = below(20);
		if (!(op.flags & LLDS_NO_OTHER))
			op.other_bytes = below(3);
		memset(value, random64(), op.value_bytes);
		memset(other, random64(), op.other_bytes);
		break;
	case LLDS_SCAN:
	case LLDS_DELETE_RANGE:
	case LLDS_COMPARE:
		op.flags = (below(2) ? LLDS_BEHIND_KEY : 0) |
			   (below(2) ? LLDS_WITH_OTHER : 0) |
			   (below(8) ? 0 : LLDS_NO_OTHER);
		if (op.code == LLDS_SCAN && below(2))
			op.flags |= LLDS_DOWN;
		op.other_bytes = a_key(kind, other);
		if (op.flags & LLDS_NO_OTHER)
			op.other_bytes = 0;
		if (op.code != LLDS_COMPARE)
			op.limit = below(op.code == LLDS_SCAN ? 20 : 4);
		break;
	}
	return op;
}

/* The pairs of a range: the first one, and the one after the last. */
static void range_of(const struct model *model, struct llds_op op, u32 *from,
		     u32 *to)
{
	const struct pair *pair;

	*from = model_seek(model, key, op.key_bytes);
	*from += op.flags & LLDS_BEHIND_KEY &&
		 model_find(model, key, op.key_bytes);
	*to = model->n;
	if (!(op.flags & LLDS_NO_OTHER)) {
		*to = model_seek(model, other, op.other_bytes);
		pair = model_find(model, other, op.other_bytes);
		*to += op.flags & LLDS_WITH_OTHER && pair;
	}
	*to = max(*from, *to);
}

/*
 * Makes the value of a comparison: the pairs that the range has, always or
 * mostly. If they are too long, the operation becomes a get. REQUIRES: key and
 * other are those of the operation.
 */
static void expect(const struct model *model, bool always, struct llds_op *op)
{
	struct pair pair;
	u32 from, to, bytes, at = 0;

	range_of(model, *op, &from, &to);
	for (; from < to && (always || below(40)); from++) {
		pair = model->pairs[from];
		bytes = padded(sizeof(struct llds_pair) + pair.key_bytes +
			       pair.value_bytes);
		if (at + bytes > VALUE_BYTES_MAX) {
			*op = (struct llds_op){ .code = LLDS_GET,
						.key_bytes = op->key_bytes };
			return;
		}
		put_expected(value + at, &pair);
		at += bytes;
	}
	/* The lengths are the first bytes, and may make no sense. */
	if (at && !always && !below(10))
		value[below(at)] ^= 1 << below(8);
	op->value_bytes = at;
}

/* Compares a range of the model; returns the place of the next answer. */
static u32 compare_model(const struct model *model, struct llds_op op, u32 at)
{
	const struct pair *pair;
	struct llds_pair head;
	u32 from, to, place = 0;
	u64 whole;
	u8 *expected;
	int order;

	range_of(model, op, &from, &to);
	while (from < to || place < op.value_bytes) {
		pair = &model->pairs[from];
		if (place == op.value_bytes)
			return put_answer(at, LLDS_DIFFERS, pair->key,
					  pair->key_bytes);
		if (op.value_bytes - place < sizeof(head))
			return put_answer(at, -EINVAL, "", 0);
		memcpy(&head, value + place, sizeof(head));
		expected = value + place + sizeof(head);
		whole = (sizeof(head) + (u64)head.key_bytes +
			 head.value_bytes + 7) & ~7ULL;
		if (whole > op.value_bytes - place ||
		    head.key_bytes > LLDS_KEY_BYTES_MAX)
			return put_answer(at, -EINVAL, "", 0);
		order = 1;
		if (from < to) {
			order = memcmp(pair->key, expected,
				       min((u32)pair->key_bytes,
					   head.key_bytes));
			if (!order)
				order = (int)pair->key_bytes -
					(int)head.key_bytes;
		}
		if (order > 0)
			return put_answer(at, LLDS_DIFFERS, expected,
					  head.key_bytes);
		if (order < 0 || pair->value_bytes != head.value_bytes ||
		    memcmp(pair->value, expected + head.key_bytes,
			   head.value_bytes))
			return put_answer(at, LLDS_DIFFERS, pair->key,
					  pair->key_bytes);
		place += whole;
		from++;
	}
	return put_answer(at, LLDS_DONE, "", 0);
}

/*
 * Applies an operation to the model; returns the place of the next answer.
 */
static u32 do_to_model(struct model *model, struct llds_op op, u32 at)
{
	struct pair *pair = model_find(model, key, op.key_bytes);
	u32 from, to, i, start, n;
	s64 sum, delta;
	u64 keys;
	u8 bytes[8];

	switch (op.code) {
	case LLDS_GET:
		if (pair && !(op.flags & LLDS_NO_VALUE))
			return put_answer(at, LLDS_DONE, pair->value,
					  pair->value_bytes);
		return put_answer(at, pair ? LLDS_DONE : LLDS_ABSENT, "", 0);
	case LLDS_SET:
		if (pair && op.flags & LLDS_IF_ABSENT)
			return put_answer(at, LLDS_DIFFERS, "", 0);
		if (!pair && op.flags & LLDS_IF_PRESENT)
			return put_answer(at, LLDS_ABSENT, "", 0);
		model_set(model, key, op.key_bytes, value, op.value_bytes);
		return put_answer(at, LLDS_DONE, "", 0);
	case LLDS_DELETE:
		return put_answer(at, model_delete(model, key, op.key_bytes) ?
				  LLDS_DONE : LLDS_ABSENT, "", 0);
	case LLDS_ADD:
		if (pair && pair->value_bytes != 8)
			return put_answer(at, -EINVAL, "", 0);
		sum = pair ? counter(pair->value) : 0;
		memcpy(&delta, value, 8);
		if (delta > 0 ? sum > INT64_MAX - delta :
				sum < INT64_MIN - delta)
			return put_answer(at, -ERANGE, "", 0);
		sum += delta;
		for (i = 0; i < 8; i++)
			bytes[i] = (u64)sum >> (56 - 8 * i);
		model_set(model, key, op.key_bytes, bytes, 8);
		return put_answer(at, LLDS_DONE, &sum, 8);
	case LLDS_SWAP:
		if (!pair != !!(op.flags & LLDS_NO_OTHER) ||
		    (pair && (pair->value_bytes != op.other_bytes ||
			      memcmp(pair->value, other, op.other_bytes))))
			return pair ? put_answer(at, LLDS_DIFFERS, pair->value,
						 pair->value_bytes) :
				      put_answer(at, LLDS_ABSENT, "", 0);
		if (op.flags & LLDS_NO_VALUE)
			model_delete(model, key, op.key_bytes);
		else
			model_set(model, key, op.key_bytes, value,
				  op.value_bytes);
		return put_answer(at, LLDS_DONE, "", 0);
	case LLDS_COMPARE:
		return compare_model(model, op, at);
	case LLDS_DELETE_RANGE:
		range_of(model, op, &from, &to);
		for (keys = 0; from < to && (!op.limit || keys < op.limit);
		     keys++, to--)
			model_delete(model, model->pairs[from].key,
				     model->pairs[from].key_bytes);
		return put_answer(at, from < to ? LLDS_MORE : LLDS_DONE, &keys,
				  8);
	default:
		range_of(model, op, &from, &to);
		n = op.limit ? min(op.limit, to - from) : to - from;
		start = at;
		at = put_answer(at, n < to - from ? LLDS_MORE : LLDS_DONE, "",
				0);
		for (i = 0; i < n; i++)
			at = put_pair(at, &model->pairs[op.flags & LLDS_DOWN ?
							to - 1 - i : from + i]);
		n = at - start - sizeof(struct llds_answer);
		memcpy(wanted + start + 4, &n, 4);
		return at;
	}
}

struct llds_run a_run(u32 from, u32 to, u32 room)
{
	/* Exactly this length, so that a sanitizer sees an overrun. */
	return (struct llds_run){ .ops = (uintptr_t)(ops + from),
				  .ops_bytes = to - from,
				  .answers = (uintptr_t)answers,
				  .answers_bytes = room };
}

u32 check_answers(u32 bytes, u32 from)
{
	struct llds_answer got, want;
	u32 at = 0, n;

	while (at < bytes) {
		memcpy(&got, answers + at, sizeof(got));
		memcpy(&want, wanted + from, sizeof(want));
		n = sizeof(got) + padded(got.bytes);
		if (got.bytes < want.bytes) {
			CHECK(got.status == LLDS_MORE && got.bytes);
			n = sizeof(got) + got.bytes;
		} else {
			CHECK(got.status == want.status);
			CHECK(got.bytes == want.bytes);
		}
		CHECK(!memcmp(answers + at + sizeof(got),
			      wanted + from + sizeof(got), n - sizeof(got)));
		at += n;
		from += sizeof(want) + padded(want.bytes);
	}
	CHECK(at == bytes);
	return from;
}

u32 some_ops(struct model *model, enum kind kind, u32 n,
		    u32 *wanted_bytes)
{
	u32 end = 0, i;

	*wanted_bytes = 0;
	for (i = 0; i < n && end < OPS_ROOM - 200000 &&
	     *wanted_bytes < ANSWERS_ROOM / 2; i++) {
		struct llds_op op = an_op(kind);

		if (op.code == LLDS_SCAN)
			op.limit = op.limit % 9 + 1;
		if (op.code == LLDS_COMPARE)
			expect(model, below(2), &op);
		end = put_op(end, op);
		*wanted_bytes = do_to_model(model, op, *wanted_bytes);
	}
	return end;
}

u32 ops_as_one(struct model *model, enum kind kind, u32 n, u32 *wanted_bytes,
	       u32 *done)
{
	const bool is_plain = below(3);
	struct llds_answer answer;
	struct model trial;
	bool fails = false;
	u32 end = 0, i, start;

	*wanted_bytes = 0;
	*done = 0;
	model_copy(&trial, model);
	for (i = 0; i < n && end < OPS_ROOM - 200000 &&
	     *wanted_bytes < ANSWERS_ROOM / 2; i++) {
		struct llds_op op = an_op(kind);

		/* Most conditions would be false. */
		if (is_plain && op.code == LLDS_SET)
			op.flags = 0;
		if (is_plain && op.code == LLDS_SWAP)
			op = (struct llds_op){ .code = LLDS_DELETE,
					       .key_bytes = op.key_bytes };
		if (op.code == LLDS_SCAN)
			op.limit = op.limit % 9 + 1;
		if (op.code == LLDS_COMPARE)
			expect(&trial, is_plain, &op);
		end = put_op(end, op);
		if (fails)
			continue;
		start = *wanted_bytes;
		*wanted_bytes = do_to_model(&trial, op, start);
		memcpy(&answer, wanted + start, sizeof(answer));
		fails = answer.status < 0 ||
			(answer.status != LLDS_DONE &&
			 (op.code == LLDS_SET || op.code == LLDS_SWAP ||
			  op.code == LLDS_COMPARE));
		if (fails) {
			*wanted_bytes -= start;
			memmove(wanted, wanted + start, *wanted_bytes);
		} else {
			++*done;
		}
	}
	if (fails) {
		model_drop(&trial);
	} else {
		model_drop(model);
		*model = trial;
	}
	return end;
}

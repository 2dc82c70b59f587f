// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Runs of operations against the model, with rooms of all
 * sizes, with copies that fail, and with bytes that are no operations.
 */
#include "../request.h"
#include "test.h"

#define VALUE_BYTES_MAX 60000
#define OPS_ROOM (1 << 20)
#define ANSWERS_ROOM (1 << 20)

static u8 ops[OPS_ROOM], answers[ANSWERS_ROOM], wanted[ANSWERS_ROOM];
static u8 key[KEY_ROOM], value[VALUE_ROOM], other[VALUE_ROOM];

static u32 padded(u32 bytes)
{
	return (bytes + 7) & ~7U;
}

/* Puts an operation behind the others; where the next one goes. */
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

static u32 put_pair(u32 at, const struct pair *pair)
{
	const struct llds_pair head = { pair->key_bytes, pair->value_bytes };
	const u32 bytes = padded(sizeof(head) + pair->key_bytes +
				 pair->value_bytes);

	memset(wanted + at, 0, bytes);
	memcpy(wanted + at, &head, sizeof(head));
	memcpy(wanted + at + sizeof(head), pair->key, pair->key_bytes);
	memcpy(wanted + at + sizeof(head) + pair->key_bytes, pair->value,
	       pair->value_bytes);
	return at + bytes;
}

static s64 counter(const u8 *at)
{
	u64 x = 0;
	u32 i;

	for (i = 0; i < 8; i++)
		x = x << 8 | at[i];
	return x;
}

/* A random operation for which key, value and other are made. */
static struct llds_op an_op(enum kind kind)
{
	static const u8 codes[] = { LLDS_GET, LLDS_GET, LLDS_SET, LLDS_SET,
				    LLDS_SET, LLDS_DELETE, LLDS_ADD, LLDS_SWAP,
				    LLDS_DELETE_RANGE, LLDS_SCAN };
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
		/* Few keys are counters. */
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
		op.flags = (below(2) ? LLDS_BEHIND_KEY : 0) |
			   (below(2) ? LLDS_WITH_OTHER : 0) |
			   (below(8) ? 0 : LLDS_NO_OTHER);
		if (op.code == LLDS_SCAN && below(2))
			op.flags |= LLDS_DOWN;
		op.other_bytes = a_key(kind, other);
		if (op.flags & LLDS_NO_OTHER)
			op.other_bytes = 0;
		op.limit = below(op.code == LLDS_SCAN ? 20 : 4);
		break;
	}
	return op;
}

/* The pairs of a range, from the first to the one behind the last. */
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
 * Does an operation to the model; where the next answer goes. Of a scan that
 * is longer than 'pairs' only so many are answered.
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

/* What a run begins with. */
static struct llds_run a_run(u32 from, u32 to, u32 room)
{
	/* Exactly as much as is said, so that the sanitizer sees one more. */
	return (struct llds_run){ .ops = (uintptr_t)(ops + from),
				  .ops_bytes = to - from,
				  .answers = (uintptr_t)answers,
				  .answers_bytes = room };
}

/*
 * Checks answers against those that are wanted; how many bytes of these they
 * stand for. A scan may bring fewer pairs than it might, and says so.
 */
static u32 check_answers(u32 bytes, u32 from)
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

/* Makes operations, does them to the model, and writes down the answers. */
static u32 some_ops(struct model *model, enum kind kind, u32 n,
		    u32 *wanted_bytes)
{
	u32 end = 0, i;

	*wanted_bytes = 0;
	for (i = 0; i < n && end < OPS_ROOM - 200000 &&
	     *wanted_bytes < ANSWERS_ROOM / 2; i++) {
		struct llds_op op = an_op(kind);

		if (op.code == LLDS_SCAN)
			op.limit = op.limit % 9 + 1;
		end = put_op(end, op);
		*wanted_bytes = do_to_model(model, op, *wanted_bytes);
	}
	return end;
}

/* Random runs have the answers that the model has, whatever room they get. */
static void runs_against_the_model(enum llds_index index, enum kind kind,
				   u32 steps)
{
	struct llds_shared shared;
	struct model model = { 0 };
	u32 runs, short_ones = 0;

	CHECK(!llds_shared_init(&shared, index, 1ULL << 40, VALUE_BYTES_MAX,
				random64()));
	for (runs = 0; runs < steps / 20; runs++) {
		u32 room = below(2) ? ANSWERS_ROOM : below(below(2) ? 40 : 4000);
		u32 from = 0, got = 0, wanted_bytes;
		const u32 end = some_ops(&model, kind,
					 1 + below(below(2) ? 3 : 60),
					 &wanted_bytes);

		while (from < end) {
			struct llds_run run = a_run(from, end, room);
			const int error = llds_request(&shared, &run, true);

			if (error == -EMSGSIZE) {
				CHECK(!run.done && run.answers_bytes > room);
				CHECK(run.answers_bytes <= wanted_bytes - got);
				room = run.answers_bytes;
				short_ones++;
				continue;
			}
			CHECK(!error && run.done && run.done_bytes);
			got = check_answers(run.answers_bytes, got);
			from += run.done_bytes;
		}
		CHECK(got == wanted_bytes);
	}
	check(&shared.store, &model);
	CHECK(short_ones);
	model_drop(&model);
	llds_shared_drop(&shared);
	printf("ok: runs, %s: %u, of which %u lacked room\n", kinds[kind], runs,
	       short_ones);
}

/* Whether a store has what the model has. */
static bool is_same(const struct llds_store *store, const struct model *model)
{
	union llds_cursor cursor;
	const struct llds_entry *entry = llds_seek(store, &cursor, "", 0);
	u32 i;

	for (i = 0; i < model->n; i++) {
		if (!entry || !is_pair(store, entry, &model->pairs[i]))
			return false;
		entry = llds_next(store, &cursor);
	}
	return !entry;
}

/* Each copy from and to the user fails once: a beginning was done. */
static void copies_that_fail(enum kind kind)
{
	const u64 start = where();
	u32 n, failures = 0, cut = 0;

	for (n = 1;; n++) {
		struct llds_shared shared;
		struct model model = { 0 };
		u32 wanted_bytes, end, done;
		bool found = false;
		struct llds_run run;
		int error;

		replay(start);
		CHECK(!llds_shared_init(&shared, LLDS_INDEX_DEFAULT,
					1ULL << 40, VALUE_BYTES_MAX, 7));
		end = some_ops(&model, kind, 100, &wanted_bytes);
		model_drop(&model);
		run = a_run(0, end, ANSWERS_ROOM);
		llds_os_faulting = n;
		error = llds_request(&shared, &run, true);
		llds_os_faulting = 0;
		CHECK(error == 0 || error == -EFAULT);
		/* What was done is what a beginning does to the model. */
		for (done = 0; done <= 100 && !found; done++) {
			model_drop(&model);
			replay(start);
			some_ops(&model, kind, done, &wanted_bytes);
			found = is_same(&shared.store, &model);
		}
		CHECK(found);
		check(&shared.store, &model);
		cut += done > 1 && error;
		failures += error == -EFAULT;
		model_drop(&model);
		llds_shared_drop(&shared);
		if (!error)
			break;
	}
	CHECK(failures > 1 && cut);
	printf("ok: copies, %s: each of %u failed once\n", kinds[kind],
	       failures);
}

/* Each allocation of a run fails once: nothing is lost, nothing leaks. */
static void runs_without_memory(enum kind kind)
{
	const u64 start = where();
	u32 n, failures = 0;

	for (n = 1; n < 3000; n++) {
		struct llds_shared shared;
		struct model model = { 0 };
		u32 wanted_bytes, end, from = 0;
		bool failed = false;

		replay(start);
		CHECK(!llds_shared_init(&shared, LLDS_INDEX_DEFAULT,
					1ULL << 40, VALUE_BYTES_MAX, 7));
		end = some_ops(&model, kind, 40, &wanted_bytes);
		llds_os_failing = n;
		while (from < end) {
			struct llds_run run = a_run(from, end, ANSWERS_ROOM);
			const int error = llds_request(&shared, &run, true);

			CHECK(error == 0 || error == -ENOMEM);
			failed |= error == -ENOMEM;
			from += run.done_bytes;
		}
		failed |= llds_os_failing == 0;
		llds_os_failing = 0;
		model_drop(&model);
		llds_shared_drop(&shared);
		failures += failed;
		if (!failed)
			break;
	}
	CHECK(failures > 3);
	printf("ok: runs, %s: each of %u allocations failed once\n",
	       kinds[kind], failures);
}

/* A model of what a store has. */
static void take(const struct llds_store *store, struct model *model)
{
	const struct llds_entry *entry;
	union llds_cursor cursor;
	struct llds_value found;

	for (entry = llds_seek(store, &cursor, "", 0); entry;
	     entry = llds_next(store, &cursor)) {
		found = llds_value_of(store, entry);
		model_set(model, entry->bytes, llds_key_bytes(entry->sizes),
			  found.at, found.bytes);
	}
}

/* What makes no sense is refused, and does nothing. */
static void nonsense(u32 runs)
{
	static const u32 lengths[] = { 0, 1, 7, 8, 9, 4096, 4097, 65535, 65536,
				       1 << 30, 0x7fffffff, 0x80000000,
				       0xfffffff0, 0xffffffff };
	struct llds_shared shared;
	struct model model = { 0 };
	u32 i, j, refused = 0, done = 0;

	CHECK(!llds_shared_init(&shared, LLDS_INDEX_DEFAULT, 8 << 20,
				VALUE_BYTES_MAX, 7));
	for (i = 0; i < runs; i++) {
		const u32 bytes = below(300);
		u8 *exact = malloc(bytes + 1);
		const u32 room = below(4) ? below(600) : lengths[below(6)];
		u8 *exact_room = malloc(room + 1);
		struct llds_run run = { .ops = (uintptr_t)exact,
					.ops_bytes = bytes,
					.answers = (uintptr_t)exact_room,
					.answers_bytes = room };
		int error;

		for (j = 0; j < bytes; j++)
			exact[j] = below(3) ? 0 : random64();
		for (j = 0; j + sizeof(struct llds_op) <= bytes;) {
			struct llds_op op = { 0 };

			op.code = below(9);
			op.flags = below(4) ? 0 : random64();
			op.key_bytes = below(8) ? below(9) : lengths[below(14)];
			if (op.code == LLDS_ADD)
				op.value_bytes = 8;
			else if (op.code == LLDS_SET)
				op.value_bytes = below(20);
			if (!below(8))
				op.value_bytes = lengths[below(14)];
			if (!below(8))
				op.other_bytes = lengths[below(14)];
			if (!below(8))
				op.limit = lengths[below(14)];
			memcpy(exact + j, &op, sizeof(op));
			j += padded(sizeof(op) + op.key_bytes % 32 +
				    op.value_bytes % 32);
		}
		if (!below(50))
			run.flags = 1U << below(32);
		if (!below(50))
			run.reserved = 1;
		error = llds_request(&shared, &run, true);
		CHECK(error == 0 || error == -EINVAL || error == -E2BIG ||
		      error == -EMSGSIZE);
		CHECK(run.done_bytes <= bytes);
		CHECK(error || run.answers_bytes <= room);
		refused += error != 0;
		done += run.done;
		free(exact);
		free(exact_room);
	}
	CHECK(refused > runs / 10 && done > runs / 10);
	take(&shared.store, &model);
	check(&shared.store, &model);
	model_drop(&model);
	llds_shared_drop(&shared);
	printf("ok: nonsense: %u of %u runs refused, %u operations done\n",
	       refused, runs, done);
}

/* A device that is open to be read changes nothing. */
static void only_to_be_read(void)
{
	struct llds_shared shared;
	struct model model = { 0 };
	u32 i, refused = 0, wanted_bytes;

	CHECK(!llds_shared_init(&shared, LLDS_INDEX_DEFAULT, 8 << 20,
				VALUE_BYTES_MAX, 7));
	for (i = 0; i < 200; i++) {
		const u32 end = some_ops(&model, SHORT, 1, &wanted_bytes);
		struct llds_run run = a_run(0, end, ANSWERS_ROOM);
		const bool reads = ops[0] == LLDS_GET || ops[0] == LLDS_SCAN;
		const int error = llds_request(&shared, &run, false);

		CHECK(error == (reads ? 0 : -EBADF));
		refused += !reads;
	}
	CHECK(refused && refused < 200);
	CHECK(!llds_store_keys(&shared.store));
	model_drop(&model);
	llds_shared_drop(&shared);
	printf("ok: %u changes refused where one may only read\n", refused);
}

void test_requests(u32 steps)
{
	enum kind kind;

	for (kind = 0; kind < KINDS; kind++) {
		runs_against_the_model(LLDS_INDEX_DEFAULT, kind, steps);
		copies_that_fail(kind);
		runs_without_memory(kind);
	}
	runs_against_the_model(LLDS_INDEX_TREE, NUMBERS, steps);
	nonsense(10 * steps);
	only_to_be_read();
}

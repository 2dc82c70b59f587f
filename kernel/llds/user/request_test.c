// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Runs of operations compared with the model: with room of all sizes, with
 * copies that fail, and with invalid operations.
 */
#include "runs.h"

/* Random runs give the model's answers for any amount of room. */
static void runs_against_the_model(enum llds_index index, enum kind kind,
				   u32 steps)
{
	struct llds_shared shared;
	struct model model = { 0 };
	u32 runs, short_ones = 0;

	CHECK(!llds_shared_init(&shared, index, 1ULL << 40, VALUE_BYTES_MAX,
				salt_of(kind)));
	for (runs = 0; runs < steps / 20; runs++) {
		u32 room = below(2) ? ANSWERS_ROOM : below(below(2) ? 40 : 4000);
		u32 from = 0, got = 0, wanted_bytes;
		const u32 end = some_ops(&model, kind,
					 1 + below(below(2) ? 3 : 60),
					 &wanted_bytes);

		while (from < end) {
			struct llds_run run = a_run(from, end, room);
			const int error = llds_request(&shared, &run, ALL, NULL);

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

/* Each copy from and to the user fails once: a prefix of the run was done. */
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
		error = llds_request(&shared, &run, ALL, NULL);
		llds_os_faulting = 0;
		CHECK(error == 0 || error == -EFAULT);
		/* The store is as after some prefix of the run. */
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

/* Each allocation of a run fails once: no change is lost, no memory leaks. */
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
			const int error = llds_request(&shared, &run, ALL, NULL);

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

/* Invalid operations are refused, and change nothing. */
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
		error = llds_request(&shared, &run, ALL, NULL);
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
	model_take(&model, &shared.store);
	check(&shared.store, &model);
	model_drop(&model);
	llds_shared_drop(&shared);
	printf("ok: invalid: %u of %u runs refused, %u operations done\n",
	       refused, runs, done);
}

#define GET_KEYS 600

/* The key of a number: of 8 bytes, or of another length. */
static u32 key_of(u32 number, u8 *key)
{
	const u32 bytes = number % 3 ? 8 : number % 40;

	memset(key, 7, 48);
	memcpy(key, &number, sizeof(number));
	return bytes < 4 ? 4 : bytes;
}

static u32 put_op(u8 *to, const struct llds_op *op, const u8 *key)
{
	memset(to, 0, sizeof(*op) + padded(op->key_bytes + op->value_bytes));
	memcpy(to, op, sizeof(*op));
	memcpy(to + sizeof(*op), key, op->key_bytes);
	return sizeof(*op) + padded(op->key_bytes + op->value_bytes);
}

/*
 * Many gets in a run give the same answers as single gets, until the room is
 * used up, or up to an invalid operation.
 */
static void many_gets(u32 runs)
{
	static const u32 lengths[] = { 0, 1, 8, 8, 8, 9, 100, 20000 };
	u32 i, j, at, n, end, wanted_bytes, cut = 0, spoiled = 0, done = 0;
	struct llds_shared shared;
	u8 key[48];

	CHECK(!llds_shared_init(&shared, LLDS_INDEX_DEFAULT, 64 << 20,
				VALUE_BYTES_MAX, 7));
	/* Every other key exists. */
	for (i = 0; i < GET_KEYS; i += 2) {
		const struct llds_op op = { .code = LLDS_SET,
					    .key_bytes = key_of(i, key),
					    .value_bytes = lengths[below(8)] };
		struct llds_run run = a_run(0, put_op(ops, &op, key), 8);

		for (j = 0; j < op.value_bytes; j++)
			ops[sizeof(op) + op.key_bytes + j] = random64();
		CHECK(!llds_request(&shared, &run, ALL, NULL) && run.done == 1);
	}
	for (i = 0; i < runs; i++) {
		const u32 many = 1 + below(200);
		const u32 spoil = below(4) ? many : below(many);
		u32 ends[200], op_ends[200];
		struct llds_run run;
		int error;

		for (n = at = wanted_bytes = 0; n < many; n++) {
			struct llds_op op = { .code = LLDS_GET,
					      .flags = !below(8) *
						       LLDS_NO_VALUE };

			op.key_bytes = key_of(below(GET_KEYS), key);
			end = at + put_op(ops + at, &op, key);
			run = a_run(at, end, ANSWERS_ROOM);
			CHECK(!llds_request(&shared, &run, ALL, NULL));
			if (wanted_bytes + run.answers_bytes > ANSWERS_ROOM)
				break;
			memcpy(wanted + wanted_bytes, answers,
			       run.answers_bytes);
			wanted_bytes += run.answers_bytes;
			ends[n] = wanted_bytes;
			op_ends[n] = at = end;
		}
		if (spoil < n) {
			at = spoil ? op_ends[spoil - 1] : 0;
			ops[at + 4 + below(12)] = 1;
			at = op_ends[n - 1];
			n = spoil;
		}
		end = below(3) ? wanted_bytes : below(wanted_bytes + 1);
		memset(answers, 0xa5, wanted_bytes);
		run = a_run(0, at, end);
		error = llds_request(&shared, &run, ALL, NULL);
		/* The next operation has no room, or is invalid. */
		CHECK(run.done <= n);
		CHECK(error || run.answers_bytes ==
				       (run.done ? ends[run.done - 1] : 0));
		CHECK(error || run.done_bytes ==
				       (run.done ? op_ends[run.done - 1] : 0));
		CHECK(!run.done || !memcmp(answers, wanted,
					   ends[run.done - 1]));
		CHECK(run.done == n || ends[run.done] > end);
		CHECK(error == 0 || error == -EINVAL || error == -E2BIG ||
		      error == -EMSGSIZE || error == -EAGAIN);
		CHECK(!error || !run.done);
		cut += run.done < n;
		spoiled += spoil < many;
		done += run.done;
	}
	CHECK(cut && spoiled && done > 20 * runs);
	llds_shared_drop(&shared);
	printf("ok: %u runs of %u gets in all, %u cut short, %u with an invalid one\n",
	       runs, done, cut, spoiled);
}

/*
 * Checks that both stores changed the same buckets equally often, so that
 * seqlock reads retry alike.
 */
static void check_buckets(const struct llds_buckets *a,
			  const struct llds_buckets *b)
{
	u32 i;

	CHECK(a->header->buckets == b->header->buckets);
	for (i = 0; i < llds_buckets_count(a); i++)
		CHECK(llds_bucket(a, i)->sequence ==
		      llds_bucket(b, i)->sequence);
}

/*
 * Many sets in a run, with deletes among them, do the same as single
 * operations, for any amount of room for the answers.
 */
static void many_sets(u32 runs)
{
	static const u32 lengths[] = { 0, 7, 8, 8, 8, 8, 100, 20000 };
	u32 i, n, at, from, got, wanted_bytes, cut = 0, differing = 0, done = 0;
	struct llds_shared one, many;
	struct model model = { 0 };
	struct llds_answer answer;
	u8 key[48];

	CHECK(!llds_shared_init(&one, LLDS_INDEX_DEFAULT, 64 << 20,
				VALUE_BYTES_MAX, 7));
	CHECK(!llds_shared_init(&many, LLDS_INDEX_DEFAULT, 64 << 20,
				VALUE_BYTES_MAX, 7));
	for (i = 0; i < runs; i++) {
		const u32 ops_wanted = 1 + below(200);
		/* With few keys, a group has a key several times. */
		const u32 keys = below(2) ? 10 : GET_KEYS;
		/* With equal lengths, entries stay in place. */
		const bool only_words = below(2);

		for (n = at = wanted_bytes = 0;
		     n < ops_wanted && at < OPS_ROOM - 20200; n++) {
			struct llds_op op = { .code = LLDS_SET };
			struct llds_run run;

			op.key_bytes = key_of(below(keys), key);
			/* Sometimes few buckets are left, and grow again. */
			if (!below(500))
				op = (struct llds_op){
					.code = LLDS_DELETE_RANGE,
					.flags = LLDS_NO_OTHER,
				};
			else if (!below(20))
				op.code = LLDS_DELETE;
			else
				op.value_bytes =
					only_words ? 8 : lengths[below(8)];
			if (op.code == LLDS_SET && !below(10))
				op.flags = below(2) ? LLDS_IF_ABSENT :
						      LLDS_IF_PRESENT;
			put_op(ops + at, &op, key);
			for (from = 0; from < op.value_bytes; from++)
				ops[at + sizeof(op) + op.key_bytes + from] =
					random64();
			run = a_run(at, at + sizeof(op) +
					padded(op.key_bytes + op.value_bytes),
				    ANSWERS_ROOM);
			at += sizeof(op) +
			      padded(op.key_bytes + op.value_bytes);
			CHECK(!llds_request(&one, &run, ALL, NULL));
			memcpy(&answer, answers, sizeof(answer));
			differing += answer.status != LLDS_DONE;
			memcpy(wanted + wanted_bytes, answers,
			       run.answers_bytes);
			wanted_bytes += run.answers_bytes;
		}
		for (from = got = 0; from < at;) {
			/* The longest answer is that of a range delete. */
			struct llds_run run = a_run(from, at, 16 + below(900));

			CHECK(!llds_request(&many, &run, ALL, NULL) && run.done);
			CHECK(!memcmp(wanted + got, answers,
				      run.answers_bytes));
			got += run.answers_bytes;
			from += run.done_bytes;
			cut += from < at;
			done += run.done;
		}
		CHECK(got == wanted_bytes);
		check_buckets(&one.store.buckets, &many.store.buckets);
	}
	CHECK(cut && differing && done > 20 * runs);
	model_take(&model, &one.store);
	check(&many.store, &model);
	model_drop(&model);
	llds_shared_drop(&one);
	llds_shared_drop(&many);
	printf("ok: %u runs of %u sets in all, %u times cut short, %u that did nothing\n",
	       runs, done, cut, differing);
}

/* The access that an operation needs. */
static u32 does(u8 code)
{
	switch (code) {
	case LLDS_GET:
	case LLDS_SCAN:
	case LLDS_COMPARE:
		return LLDS_READS;
	case LLDS_ADD:
	case LLDS_SWAP:
		return ALL;
	default:
		return LLDS_CHANGES;
	}
}

/* Operations without the required access are refused. */
static void as_one_may(u32 may)
{
	struct llds_shared shared;
	struct model model = { 0 };
	u32 i, refused = 0, wanted_bytes;

	CHECK(!llds_shared_init(&shared, LLDS_INDEX_DEFAULT, 8 << 20,
				VALUE_BYTES_MAX, 7));
	for (i = 0; i < 200; i++) {
		const u32 end = some_ops(&model, SHORT, 1, &wanted_bytes);
		struct llds_run run = a_run(0, end, ANSWERS_ROOM);
		const bool refuses = does(ops[0]) & ~may;
		int error;

		run.flags = below(2) ? LLDS_RUN_ATOMIC : 0;
		memset(answers, 0xa5, sizeof(struct llds_answer));
		error = llds_request(&shared, &run, may, NULL);
		CHECK(error == (refuses ? -EBADF : 0));
		CHECK(!refuses || answers[0] == 0xa5);
		refused += refuses;
	}
	CHECK((refused == 0) == (may == ALL) && (refused == 200) == !may);
	CHECK(may & LLDS_CHANGES || !llds_store_keys(&shared.store));
	model_drop(&model);
	llds_shared_drop(&shared);
	printf("ok: %u of 200 operations refused with access to%s%s\n",
	       refused, may & LLDS_READS ? " read" : "",
	       may & LLDS_CHANGES ? " change" : "");
}

/*
 * Does one set of a long value and many gets in one run. Returns its error, and
 * how often it was ready to yield the processor.
 */
static int a_long_run(struct llds_shared *shared, struct llds_quota *quota,
		      u32 gets, long *rests)
{
	struct llds_op op = { .code = LLDS_SET, .key_bytes = 8,
			      .value_bytes = VALUE_BYTES_MAX };
	struct llds_run run;
	u8 key[8] = "12345678";
	u32 at = put_op(ops, &op, key), i;
	int error;

	op = (struct llds_op){ .code = LLDS_GET, .key_bytes = 8 };
	key[0] = '0';
	for (i = 0; i < gets; i++)
		at += put_op(ops + at, &op, key);
	run = a_run(0, at, ANSWERS_ROOM);
	*rests = llds_os_rests;
	error = llds_request(shared, &run, ALL, quota);
	*rests = llds_os_rests - *rests;
	CHECK(error || run.done == gets + 1);
	return error;
}

/* A long value makes the buffer large, and not what is done without a rest. */
static void a_buffer_is_no_slice(void)
{
	const u32 gets = 20000;
	struct llds_shared shared;
	long rests;

	CHECK(!llds_shared_init(&shared, LLDS_INDEX_DEFAULT, 64 << 20,
				VALUE_BYTES_MAX, 7));
	CHECK(!a_long_run(&shared, NULL, gets, &rests));
	CHECK(rests >= gets * 24 / 4096);
	llds_shared_drop(&shared);
	printf("ok: %u gets after a long value, with %ld rests\n", gets, rests);
}

static int many_deletes(struct llds_shared *shared, struct llds_quota *quota)
{
	const struct llds_op op = { .code = LLDS_DELETE, .key_bytes = 8 };
	struct llds_run run;
	u32 at = 0, i;

	for (i = 0; i < 1000; i++)
		at += put_op(ops + at, &op, (const u8 *)"12345678");
	run = a_run(0, at, ANSWERS_ROOM);
	return llds_request(shared, &run, ALL, quota);
}

/* The copies of a run count while it lasts, and are refused beyond the limit. */
static void copies_count(void)
{
	struct llds_quota quota = { .bytes_max = VALUE_BYTES_MAX / 2 };
	struct llds_shared shared;
	long rests;

	CHECK(!llds_shared_init(&shared, LLDS_INDEX_DEFAULT, 64 << 20,
				VALUE_BYTES_MAX, 7));
	CHECK(a_long_run(&shared, &quota, 1, &rests) == -EDQUOT);
	CHECK(!quota.bytes && !llds_store_keys(&shared.store));
	/* Many short operations can be done at the limit. */
	quota.bytes = quota.bytes_max;
	CHECK(!many_deletes(&shared, &quota));
	CHECK(quota.bytes == quota.bytes_max);
	quota.bytes = 0;
	/* Both copies: of the value, and of some operations before it. */
	quota.bytes_max = 2 * VALUE_BYTES_MAX;
	CHECK(!a_long_run(&shared, &quota, 1, &rests));
	CHECK(!quota.bytes && llds_store_keys(&shared.store) == 1);
	llds_shared_drop(&shared);
	printf("ok: copies of runs count\n");
}

void test_requests(u32 steps)
{
	enum kind kind;
	u32 may;

	for (kind = 0; kind < KINDS; kind++) {
		runs_against_the_model(LLDS_INDEX_DEFAULT, kind, steps);
		copies_that_fail(kind);
		runs_without_memory(kind);
	}
	runs_against_the_model(LLDS_INDEX_TREE, NUMBERS, steps);
	nonsense(10 * steps);
	many_gets(steps);
	many_sets(steps);
	a_buffer_is_no_slice();
	copies_count();
	for (may = 0; may <= ALL; may++)
		as_one_may(may);
}

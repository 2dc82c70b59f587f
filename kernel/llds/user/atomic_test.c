// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Atomic runs, compared with the model: applied as a whole or not at all, even
 * if an allocation or a copy fails.
 */
#include "runs.h"

static struct llds_run as_one(u32 end, u32 room)
{
	struct llds_run run = a_run(0, end, room);

	run.flags = LLDS_RUN_ATOMIC;
	return run;
}

/* Some runs succeed, some fail, some need more room than they first get. */
static void as_the_model(enum llds_index index, enum kind kind, u32 steps)
{
	struct llds_shared shared;
	struct model model = { 0 };
	u32 runs, failed = 0, short_ones = 0;

	CHECK(!llds_shared_init(&shared, index, 1ULL << 40, VALUE_BYTES_MAX,
				salt_of(kind)));
	for (runs = 0; runs < steps / 20; runs++) {
		u32 room = below(2) ? ANSWERS_ROOM : below(below(2) ? 40 : 4000);
		u32 wanted_bytes, done;
		const u32 end = ops_as_one(&model, kind,
					   1 + below(below(2) ? 3 : 60),
					   &wanted_bytes, &done);
		const u64 keys = llds_store_keys(&shared.store);

		for (;;) {
			struct llds_run run = as_one(end, room);
			const int error = llds_request(&shared, &run, ALL, NULL);

			if (error == -EMSGSIZE) {
				CHECK(llds_store_keys(&shared.store) == keys);
				CHECK(!run.done && run.answers_bytes > room);
				room = run.answers_bytes;
				short_ones++;
				continue;
			}
			CHECK(!error && run.done == done);
			failed += run.done_bytes != end;
			CHECK(check_answers(run.answers_bytes, 0) ==
			      wanted_bytes);
			break;
		}
		if (runs % 16 == 0)
			check(&shared.store, &model);
	}
	check(&shared.store, &model);
	CHECK(short_ones && failed && failed < runs);
	/* Undone changes must leave no trace. Delete all pairs one by one. */
	while (model.n) {
		const struct pair *pair = &model.pairs[model.n - 1];
		const struct llds_key key = llds_key(&shared.store, pair->key,
						     pair->key_bytes);

		CHECK(llds_delete(&shared.store, &key) == 1);
		model_delete(&model, pair->key, pair->key_bytes);
	}
	CHECK(shared.store.memory.used == 0);
	model_drop(&model);
	llds_shared_drop(&shared);
	printf("ok: atomic runs, %s, %s: %u, of which %u changed nothing\n",
	       index == LLDS_INDEX_DEFAULT ? "buckets and order" : "tree",
	       kinds[kind], runs, failed);
}

/*
 * Each allocation of a run fails once, or each copy. Then the store is
 * unchanged, except after a failed copy of the answers: then the run was
 * applied.
 */
static void that_fail(enum llds_index index, enum kind kind, long *failing)
{
	const u64 start = where();
	u32 n, failures = 0, kept = 0;

	for (n = 1;; n++) {
		struct llds_shared shared;
		struct model before = { 0 }, model;
		u32 wanted_bytes, end, done;
		struct llds_answer answer;
		struct llds_run run;
		bool failed;
		int error;

		replay(start);
		CHECK(!llds_shared_init(&shared, index, 1ULL << 40,
					VALUE_BYTES_MAX, 7));
		end = some_ops(&before, kind, 60, &wanted_bytes);
		for (u32 from = 0; from < end; from += run.done_bytes) {
			run = a_run(from, end, ANSWERS_ROOM);
			CHECK(!llds_request(&shared, &run, ALL, NULL));
		}
		/* A run that would succeed. */
		do {
			model_copy(&model, &before);
			end = ops_as_one(&model, kind, 60, &wanted_bytes,
					 &done);
			run = as_one(end, ANSWERS_ROOM);
			if (done == 60)
				break;
			model_drop(&model);
		} while (true);
		*failing = n;
		error = llds_request(&shared, &run, ALL, NULL);
		failed = *failing == 0;
		*failing = 0;
		memcpy(&answer, answers, sizeof(answer));
		if (error || run.done_bytes != end) {
			CHECK(failed);
			CHECK(error == -ENOMEM || error == -EFAULT ||
			      answer.status == -ENOMEM);
		}
		if (!error && run.done_bytes == end) {
			check(&shared.store, &model);
		} else if (error == -EFAULT && is_same(&shared.store, &model)) {
			check(&shared.store, &model);
			kept++;
		} else {
			check(&shared.store, &before);
			failures++;
		}
		model_drop(&before);
		model_drop(&model);
		llds_shared_drop(&shared);
		if (!failed)
			break;
	}
	CHECK(failures);
	CHECK(kept == (failing == &llds_os_faulting));
	printf("ok: atomic runs, %s, %s: each of %u %s failed once\n",
	       index == LLDS_INDEX_DEFAULT ? "buckets and order" : "tree",
	       kinds[kind], n - 1,
	       failing == &llds_os_faulting ? "copies" : "allocations");
}

/* Runs that exceed a budget change nothing; others still succeed. */
static void within_a_budget(void)
{
	struct llds_shared shared;
	struct model model = { 0 }, before;
	u32 runs, refused = 0;

	CHECK(!llds_shared_init(&shared, LLDS_INDEX_DEFAULT, 3 << 18,
				VALUE_BYTES_MAX, 7));
	for (runs = 0; runs < 2000 && refused < 200; runs++) {
		u32 wanted_bytes, end, done;
		struct llds_answer answer;
		struct llds_run run;

		model_copy(&before, &model);
		end = ops_as_one(&model, IN_ORDER, 20, &wanted_bytes, &done);
		run = as_one(end, ANSWERS_ROOM);
		CHECK(!llds_request(&shared, &run, ALL, NULL));
		memcpy(&answer, answers, sizeof(answer));
		if (run.done_bytes != end && answer.status == -ENOSPC) {
			refused++;
			model_drop(&model);
			model = before;
		} else {
			model_drop(&before);
		}
		CHECK(is_same(&shared.store, &model));
	}
	check(&shared.store, &model);
	CHECK(refused == 200 && runs > refused);
	model_drop(&model);
	llds_shared_drop(&shared);
	printf("ok: atomic runs: %u of %u exceeded a budget\n", refused,
	       runs);
}

/* One invalid operation prevents the whole run. */
static void nonsense(void)
{
	struct llds_shared shared;
	struct model model = { 0 };
	u32 wanted_bytes, done, end, i, bytes;
	struct llds_run run;

	CHECK(!llds_shared_init(&shared, LLDS_INDEX_DEFAULT, 8 << 20,
				VALUE_BYTES_MAX, 7));
	for (i = 0; i < 200; i++) {
		end = ops_as_one(&model, SHORT, 40, &wanted_bytes, &done);
		/* The last operation is truncated, or has an unknown code. */
		bytes = end - 8;
		if (below(2)) {
			memset(ops + end, 0, sizeof(struct llds_op));
			ops[end] = 99;
			bytes = end + sizeof(struct llds_op);
		}
		run = as_one(bytes, ANSWERS_ROOM);
		CHECK(llds_request(&shared, &run, ALL, NULL) == -EINVAL);
	}
	CHECK(!llds_store_keys(&shared.store));
	run = as_one(0, ANSWERS_ROOM);
	run.ops_bytes = LLDS_ATOMIC_BYTES_MAX + 1;
	CHECK(llds_request(&shared, &run, ALL, NULL) == -E2BIG);
	run = as_one(0, 0);
	CHECK(!llds_request(&shared, &run, LLDS_READS, NULL));
	end = ops_as_one(&model, SHORT, 40, &wanted_bytes, &done);
	run = as_one(end, ANSWERS_ROOM);
	CHECK(llds_request(&shared, &run, LLDS_READS, NULL) == -EBADF);
	CHECK(!llds_store_keys(&shared.store));
	model_drop(&model);
	llds_shared_drop(&shared);
	printf("ok: atomic runs: an invalid operation prevents the whole run\n");
}

/* Appends an operation without a value or another; returns the next place. */
static u32 an_op(u32 at, u8 code, u8 flags, u32 limit)
{
	const struct llds_op op = {
		.code = code,
		.flags = flags,
		.limit = limit,
	};

	memcpy(ops + at, &op, sizeof(op));
	return at + sizeof(op);
}

/* A store with numbers as keys, from 0 on, and values of 8 bytes. */
static void numbered(struct llds_shared *shared, enum llds_index index, u32 n)
{
	const u64 value = 0;
	u64 number;

	CHECK(!llds_shared_init(shared, index, 1ULL << 40, VALUE_BYTES_MAX, 7));
	for (number = 0; number < n; number++) {
		const u64 bytes = __builtin_bswap64(number);
		const struct llds_key key = llds_key(&shared->store, &bytes, 8);

		CHECK(!llds_set(&shared->store, &key, &value, sizeof(value)));
	}
}

/*
 * Deletes all keys and scans a number of times, in one run. Returns how often
 * it was ready to yield the processor.
 */
static long rests_of_scans(enum llds_index index, u32 keys, u32 scans)
{
	struct llds_shared shared;
	struct llds_answer answer;
	struct llds_run run;
	u32 at, i;
	long rests;

	numbered(&shared, index, keys);
	at = an_op(0, LLDS_DELETE_RANGE, LLDS_NO_OTHER, 0);
	for (i = 0; i < scans; i++)
		at = an_op(at, LLDS_SCAN,
			   LLDS_NO_OTHER | (i % 2 ? LLDS_DOWN : 0), 1);
	run = as_one(at, ANSWERS_ROOM);
	rests = llds_os_rests;
	CHECK(!llds_request(&shared, &run, ALL, NULL));
	rests = llds_os_rests - rests;
	CHECK(run.done == 1 + scans && !llds_store_keys(&shared.store));
	/* After the answer with the number of keys: nothing is left. */
	for (i = 0, at = sizeof(answer) + 8; i < scans;
	     i++, at += sizeof(answer)) {
		memcpy(&answer, answers + at, sizeof(answer));
		CHECK(answer.status == LLDS_DONE && !answer.bytes);
	}
	llds_shared_drop(&shared);
	return rests;
}

/* Scans over many keys that the run has deleted let others have the processor. */
static void scans_of_nothing(enum llds_index index)
{
	const u32 keys = 20000;
	const long one = rests_of_scans(index, keys, 1);
	const long many = rests_of_scans(index, keys, 15);

	CHECK(many - one >= 14 * (long)keys / 256 - 14);
	printf("ok: atomic runs, %s: 14 scans of %u deleted keys, %ld rests\n",
	       index == LLDS_INDEX_DEFAULT ? "buckets and order" : "tree",
	       keys, many - one);
}

/* A scan uses the room that its run has. */
static void a_scan_with_room(void)
{
	const u32 keys = 100, bytes = keys * (sizeof(struct llds_pair) + 16);
	struct llds_shared shared;
	struct llds_answer answer;
	struct llds_run run;

	numbered(&shared, LLDS_INDEX_DEFAULT, keys);
	run = as_one(an_op(0, LLDS_SCAN, LLDS_NO_OTHER, 0), 65536);
	CHECK(!llds_request(&shared, &run, ALL, NULL));
	memcpy(&answer, answers, sizeof(answer));
	CHECK(answer.status == LLDS_DONE && answer.bytes == bytes);
	/* Half of it: as many pairs as fit, and no error. */
	run = as_one(an_op(0, LLDS_SCAN, LLDS_NO_OTHER, 0), bytes / 2);
	CHECK(!llds_request(&shared, &run, ALL, NULL));
	memcpy(&answer, answers, sizeof(answer));
	CHECK(answer.status == LLDS_MORE && answer.bytes > bytes / 2 - 64);
	llds_shared_drop(&shared);
	printf("ok: atomic runs: a scan of %u pairs uses its room\n", keys);
}

void test_runs_as_one(u32 steps)
{
	enum kind kind;

	for (kind = 0; kind < KINDS; kind++) {
		as_the_model(LLDS_INDEX_DEFAULT, kind, steps);
		that_fail(LLDS_INDEX_DEFAULT, kind, &llds_os_failing);
	}
	as_the_model(LLDS_INDEX_TREE, NUMBERS, steps);
	that_fail(LLDS_INDEX_TREE, SHORT, &llds_os_failing);
	that_fail(LLDS_INDEX_DEFAULT, SHORT, &llds_os_faulting);
	within_a_budget();
	nonsense();
	scans_of_nothing(LLDS_INDEX_DEFAULT);
	scans_of_nothing(LLDS_INDEX_TREE);
	a_scan_with_room();
}

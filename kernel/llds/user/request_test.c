// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Runs of operations against the model, with rooms of all
 * sizes, with copies that fail, and with bytes that are no operations.
 */
#include "runs.h"

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
			const int error = llds_request(&shared, &run, ALL);

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
		error = llds_request(&shared, &run, ALL);
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
			const int error = llds_request(&shared, &run, ALL);

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
		error = llds_request(&shared, &run, ALL);
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

/* What one operation does. */
static u32 does(u8 code)
{
	switch (code) {
	case LLDS_GET:
	case LLDS_SCAN:
		return LLDS_READS;
	case LLDS_ADD:
	case LLDS_SWAP:
		return ALL;
	default:
		return LLDS_CHANGES;
	}
}

/* A device that is open to be read changes nothing, and so on. */
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
		error = llds_request(&shared, &run, may);
		CHECK(error == (refuses ? -EBADF : 0));
		CHECK(!refuses || answers[0] == 0xa5);
		refused += refuses;
	}
	CHECK((refused == 0) == (may == ALL) && (refused == 200) == !may);
	CHECK(may & LLDS_CHANGES || !llds_store_keys(&shared.store));
	model_drop(&model);
	llds_shared_drop(&shared);
	printf("ok: %u of 200 operations refused to one who may%s%s\n",
	       refused, may & LLDS_READS ? " read" : "",
	       may & LLDS_CHANGES ? " change" : "");
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
	for (may = 0; may <= ALL; may++)
		as_one_may(may);
}

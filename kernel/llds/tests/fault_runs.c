// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Each failure point of these runs fails once.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "faults.h"
#include "line.h"

/* All pairs of a store in order. */
struct state {
	size_t bytes;
	unsigned char at[1 << 20];
};

static struct state before, after, now;
static struct line asked, scans;
static int mine = -1;

/* The run to test: the function that puts its operations, and its flags. */
static struct run {
	void (*build)(struct line *line);
	uint32_t flags;
} doing;

/* Reads all of the store of 'mine'. */
static const char *look(struct state *state)
{
	struct llds_answer answer = { .status = LLDS_MORE };
	char key[64] = "";
	int error;

	if (!scans.ops)
		scans = line();
	state->bytes = 0;
	while (answer.status == LLDS_MORE) {
		unsigned char *pair, *end;

		put(&scans, (struct llds_op){ .code = LLDS_SCAN,
					      .flags = LLDS_NO_OTHER |
						       LLDS_BEHIND_KEY,
					      .key_bytes = strlen(key) },
		    key, NULL, NULL);
		error = go(mine, &scans);
		DEMAND(!error, "a scan gave %d", error);
		memcpy(&answer, scans.answers, sizeof(answer));
		DEMAND(answer.status == LLDS_DONE ||
		       answer.status == LLDS_MORE, "a scan came to %d",
		       answer.status);
		DEMAND(state->bytes + answer.bytes <= sizeof(state->at),
		       "more than was put in");
		pair = state->at + state->bytes;
		memcpy(pair, scans.answers + sizeof(answer), answer.bytes);
		state->bytes += answer.bytes;
		end = state->at + state->bytes;
		while (pair < end) {
			struct llds_pair lengths;

			memcpy(&lengths, pair, sizeof(lengths));
			DEMAND(lengths.key_bytes < sizeof(key), "a long key");
			memset(key, 0, sizeof(key));
			memcpy(key, pair + sizeof(lengths), lengths.key_bytes);
			pair += padded(sizeof(lengths) + lengths.key_bytes +
				       lengths.value_bytes);
		}
	}
	return NULL;
}

static bool is_same(const struct state *a, const struct state *b)
{
	return a->bytes == b->bytes && !memcmp(a->at, b->at, a->bytes);
}

/* A pair of a state; without bytes at the end. */
struct pair {
	const unsigned char *at;
	struct llds_pair lengths;
	size_t bytes;
};

static struct pair pair_at(const struct state *state, size_t at)
{
	struct pair pair = { 0 };

	if (at >= state->bytes)
		return pair;
	pair.at = state->at + at;
	memcpy(&pair.lengths, pair.at, sizeof(pair.lengths));
	pair.bytes = padded(sizeof(pair.lengths) + pair.lengths.key_bytes +
			    pair.lengths.value_bytes);
	return pair;
}

/* Orders pairs by key; the end is after all pairs. */
static int order(const struct pair *a, const struct pair *b)
{
	const size_t key_a = a->lengths.key_bytes, key_b = b->lengths.key_bytes;
	int order;

	if (!a->at || !b->at)
		return !a->at - !b->at;
	order = memcmp(a->at + sizeof(a->lengths), b->at + sizeof(b->lengths),
		       key_a < key_b ? key_a : key_b);
	return order ? order : (int)key_a - (int)key_b;
}

static bool is_like(const struct pair *a, const struct pair *b)
{
	return a->bytes == b->bytes && !memcmp(a->at, b->at, a->bytes);
}

/* Whether each key is as before the run, or as after it. */
static bool is_between(void)
{
	size_t at_now = 0, at_before = 0, at_after = 0;

	for (;;) {
		struct pair is = pair_at(&now, at_now);
		struct pair was = pair_at(&before, at_before);
		struct pair will = pair_at(&after, at_after);
		struct pair first = order(&was, &will) <= 0 ? was : will;

		if (!first.at)
			return !is.at;
		if (order(&is, &first) < 0)
			return false;
		if (order(&is, &first) > 0) {
			/* Absent: as before the run, or as after it. */
			if (!order(&was, &will))
				return false;
		} else {
			bool old = !order(&was, &first) && is_like(&is, &was);
			bool new = !order(&will, &first) && is_like(&is, &will);

			if (!old && !new)
				return false;
			at_now += is.bytes;
		}
		at_before += order(&was, &first) ? 0 : was.bytes;
		at_after += order(&will, &first) ? 0 : will.bytes;
	}
}

static char long_value[40000];

/* Five short pairs, and a long one. */
static const char *fill_one(void)
{
	static const char *const keys[] = { "a", "b", "c", "d", "e" };
	int error = 0;
	size_t i;

	mine = device();
	for (i = 0; !error && i < sizeof(keys) / sizeof(*keys); i++)
		error = set(mine, keys[i], "12345678");
	if (!error)
		error = set_bytes(mine, "long", long_value, sizeof(long_value));
	DEMAND(!error, "filling it: %d", error);
	return NULL;
}

static void build(void)
{
	if (!asked.ops)
		asked = line();
	asked.bytes = 0;
	doing.build(&asked);
	asked.run = (struct llds_run){ .ops = (uintptr_t)asked.ops,
				       .ops_bytes = asked.bytes,
				       .answers = (uintptr_t)asked.answers,
				       .answers_bytes = ROOM,
				       .flags = doing.flags };
}

static int run(void)
{
	return command(mine, LLDS_IOC_RUN, (uintptr_t)&asked.run);
}

/* Records the store before the run, and after a run without failures. */
static const char *fill_and_build(void)
{
	static bool is_known;
	const char *wrong;
	int error;

	if (!is_known) {
		wrong = fill_one();
		if (!wrong)
			wrong = look(&before);
		if (wrong)
			return wrong;
		build();
		error = run();
		DEMAND(!error && asked.run.done_bytes == asked.bytes,
		       "the run without a failure gave %d", error);
		wrong = look(&after);
		if (wrong)
			return wrong;
		close(mine);
		is_known = true;
	}
	wrong = fill_one();
	if (!wrong)
		build();
	return wrong;
}

/* The number of operations done, and whether one of them failed. */
static unsigned int count_done(bool *is_refused)
{
	unsigned int done = 0;
	size_t at = 0;

	*is_refused = false;
	while (at < asked.run.answers_bytes) {
		struct llds_answer answer;

		memcpy(&answer, asked.answers + at, sizeof(answer));
		at += sizeof(answer) + padded(answer.bytes);
		*is_refused |= answer.status < 0;
		done++;
	}
	return done;
}

static const char *judge_run(int error)
{
	const bool as_one = doing.flags & LLDS_RUN_ATOMIC;
	const char *wrong = look(&now);
	bool is_refused = false, is_all;
	unsigned int done;

	if (wrong)
		return wrong;
	DEMAND(is_usual(error), "another error");
	DEMAND(is_between(), "the store is wrong");
	if (error == ENOMEM)
		DEMAND(is_same(&now, &before), "it failed and did something");
	if (as_one)
		DEMAND(is_same(&now, &before) || is_same(&now, &after),
		       "it did a half");
	if (!error) {
		done = count_done(&is_refused);
		is_all = asked.run.done_bytes == asked.bytes && !is_refused;
		DEMAND(as_one || done == asked.run.done,
		       "%u answers of %u operations", done, asked.run.done);
		DEMAND(!is_all || is_same(&now, &after),
		       "it succeeded, and something is missing");
		DEMAND(!as_one || is_all || is_same(&now, &before),
		       "it did not take place, and something did");
	}
	error = set(mine, "z", "one more");
	if (!error)
		error = means(mine, "z", "one more");
	DEMAND(!error, "using it afterwards: %d", error);
	close(mine);
	return NULL;
}

static const char *a_run_survives(void (*build_it)(struct line *line),
				  uint32_t flags, bool is_long)
{
	const struct act act = { fill_and_build, run, judge_run, is_long };

	doing = (struct run){ build_it, flags };
	return survives(&act);
}

static void build_set(struct line *line)
{
	char value[700] = { 1 };

	put(line, (struct llds_op){ .code = LLDS_SET, .key_bytes = 3,
				    .value_bytes = sizeof(value) },
	    "new", value, NULL);
}

static const char *a_set_survives(void)
{
	return a_run_survives(build_set, 0, false);
}

static void build_replace(struct line *line)
{
	put_set(line, "c", "a value that does not fit in the place of the old");
}

static const char *a_set_of_a_key_that_is_there_survives(void)
{
	return a_run_survives(build_replace, 0, false);
}

static void build_long(struct line *line)
{
	static char value[100000] = { 1 };

	put(line, (struct llds_op){ .code = LLDS_SET, .key_bytes = 4,
				    .value_bytes = sizeof(value) },
	    "long", value, NULL);
}

static const char *a_set_of_a_long_value_survives(void)
{
	return a_run_survives(build_long, 0, false);
}

static void build_get(struct line *line)
{
	put_get(line, "c");
}

static const char *a_get_survives(void)
{
	return a_run_survives(build_get, 0, false);
}

static void build_get_long(struct line *line)
{
	put_get(line, "long");
}

static const char *a_get_of_a_long_value_survives(void)
{
	return a_run_survives(build_get_long, 0, false);
}

static void build_delete(struct line *line)
{
	put(line, (struct llds_op){ .code = LLDS_DELETE, .key_bytes = 1 }, "c",
	    NULL, NULL);
}

static const char *a_delete_survives(void)
{
	return a_run_survives(build_delete, 0, false);
}

static void build_add(struct line *line)
{
	const int64_t delta = 7;

	put(line, (struct llds_op){ .code = LLDS_ADD, .key_bytes = 7,
				    .value_bytes = sizeof(delta) },
	    "counter", &delta, NULL);
}

static const char *an_add_survives(void)
{
	return a_run_survives(build_add, 0, false);
}

static void build_swap(struct line *line)
{
	put(line, (struct llds_op){ .code = LLDS_SWAP, .key_bytes = 1,
				    .value_bytes = 300, .other_bytes = 8 },
	    "c", long_value, "12345678");
}

static const char *a_compare_and_swap_survives(void)
{
	return a_run_survives(build_swap, 0, false);
}

static void build_delete_range(struct line *line)
{
	put(line, (struct llds_op){ .code = LLDS_DELETE_RANGE, .key_bytes = 1,
				    .flags = LLDS_NO_OTHER },
	    "b", NULL, NULL);
}

static const char *a_delete_of_a_range_survives(void)
{
	return a_run_survives(build_delete_range, 0, false);
}

static void build_scan(struct line *line)
{
	put(line, (struct llds_op){ .code = LLDS_SCAN,
				    .flags = LLDS_NO_OTHER }, "", NULL, NULL);
}

static const char *a_scan_survives(void)
{
	return a_run_survives(build_scan, 0, false);
}

/* One operation of each kind, on different keys, enough for two slices. */
static void build_all(struct line *line)
{
	char key[16];
	int i;

	build_set(line);
	build_replace(line);
	build_long(line);
	build_add(line);
	put(line, (struct llds_op){ .code = LLDS_DELETE, .key_bytes = 1 }, "b",
	    NULL, NULL);
	put(line, (struct llds_op){ .code = LLDS_SWAP, .key_bytes = 1,
				    .value_bytes = 300, .other_bytes = 8 },
	    "d", long_value, "12345678");
	put_get(line, "a");
	for (i = 0; i < 40; i++) {
		snprintf(key, sizeof(key), "more %02d", i);
		put(line, (struct llds_op){ .code = LLDS_SET, .key_bytes = 7,
					    .value_bytes = 20 * i + 1 },
		    key, long_value, NULL);
	}
	put_get(line, "a");
}

static const char *a_run_of_all_survives(void)
{
	return a_run_survives(build_all, 0, false);
}

static const char *a_run_as_one_survives(void)
{
	return a_run_survives(build_all, LLDS_RUN_ATOMIC, false);
}

static void build_as_one(struct line *line)
{
	build_set(line);
	build_replace(line);
	build_add(line);
	build_delete(line);
	put_get(line, "a");
}

static const char *a_short_run_as_one_survives(void)
{
	return a_run_survives(build_as_one, LLDS_RUN_ATOMIC, false);
}

#define KEYS_MAX (ROOM / 256)

/* Many pieces of memory, growing tables, splits of buckets and nodes. */
static void build_many(struct line *line)
{
	unsigned long i, keys = number("fault_keys", 3000);
	char key[16];

	/* All keys must fit in one run. */
	if (keys > KEYS_MAX)
		keys = KEYS_MAX;
	for (i = 0; i < keys; i++) {
		snprintf(key, sizeof(key), "%08lx", i * 2654435761UL & 0xffffffff);
		put(line, (struct llds_op){ .code = LLDS_SET, .key_bytes = 8,
					    .value_bytes = 200 },
		    key, long_value, NULL);
	}
}

static const char *growing_survives(void)
{
	return a_run_survives(build_many, 0, true);
}

static const char *growing_as_one_survives(void)
{
	return a_run_survives(build_many, LLDS_RUN_ATOMIC, true);
}

/* The same with the other index, which allocates memory for each key. */
static const char *in_a_tree(void (*build_it)(struct line *line),
			     uint32_t flags)
{
	const char *wrong = reload("tree=1");

	if (wrong)
		return wrong;
	wrong = a_run_survives(build_it, flags, true);
	/* survives() has reloaded the module if it succeeded. */
	if (wrong)
		reload("");
	return wrong;
}

static const char *a_run_of_all_in_a_tree_survives(void)
{
	return in_a_tree(build_all, 0);
}

static const char *a_run_as_one_in_a_tree_survives(void)
{
	return in_a_tree(build_all, LLDS_RUN_ATOMIC);
}

/* The first run also makes the store. */
static const char *open_and_build(void)
{
	int error;

	mine = device();
	build();
	error = run();
	DEMAND(!error, "the run without a failure gave %d", error);
	before.bytes = 0;
	if (look(&after))
		return why("looking");
	close(mine);
	mine = device();
	build();
	return NULL;
}

static const char *the_first_run_survives(void)
{
	static const struct act act = { open_and_build, run, judge_run };

	doing = (struct run){ build_set, 0 };
	return survives(&act);
}

const struct check fault_run_checks[] = {
	{ "the_first_run_survives", the_first_run_survives },
	{ "a_set_survives", a_set_survives },
	{ "a_set_of_a_key_that_is_there_survives",
	  a_set_of_a_key_that_is_there_survives },
	{ "a_set_of_a_long_value_survives", a_set_of_a_long_value_survives },
	{ "a_get_survives", a_get_survives },
	{ "a_get_of_a_long_value_survives", a_get_of_a_long_value_survives },
	{ "a_delete_survives", a_delete_survives },
	{ "an_add_survives", an_add_survives },
	{ "a_compare_and_swap_survives", a_compare_and_swap_survives },
	{ "a_delete_of_a_range_survives", a_delete_of_a_range_survives },
	{ "a_scan_survives", a_scan_survives },
	{ "a_run_of_all_survives", a_run_of_all_survives },
	{ "a_short_run_as_one_survives", a_short_run_as_one_survives },
	{ "a_run_as_one_survives", a_run_as_one_survives },
	{ "a_run_of_all_in_a_tree_survives", a_run_of_all_in_a_tree_survives },
	{ "a_run_as_one_in_a_tree_survives", a_run_as_one_in_a_tree_survives },
	{ "growing_survives", growing_survives },
	{ "growing_as_one_survives", growing_as_one_survives },
	{}
};

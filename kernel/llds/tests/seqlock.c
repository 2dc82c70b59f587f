// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Several processes read a mapped store while others change it. Without a lock
 * and without a system call, each read returns the value that a key had at some
 * instant during the read.
 *
 * The effect of each change is a function of its number: change_of(). A writer
 * records in shared memory which change of a pair it begins, and which it has
 * completed. A read must return a change that is not older than the last one
 * completed before the read began, and not older than one that was read
 * earlier; and not newer than the last one begun before the read ended. The
 * bytes of a value name its key and its change. Scans are checked in the same
 * way, also for the keys that they do not return.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "../user/mapped.h"
#include "line.h"
#include "named.h"

/*
 * Keys form pairs, which one run changes; for every second pair, that run is
 * atomic. Numbers of keys have five digits.
 */
#define PAIRS 4000U
#define KEYS (2 * PAIRS)
#define KEY_ROOM 64
#define WRITERS 2U
#define READERS 2U
/* How often readers start and end; the changes differ each time. */
#define SESSIONS 8U
/* The last change of all, which gives most keys large values. */
#define LAST_CHANGE 0x40000002U
/* Maximum value length, in words. */
#define WORDS_MAX 200U
/* The first pairs are hot: every run changes one, and readers prefer them. */
#define HOT 8U
#define HOT_WORDS 64U
/* Maximum number of other pairs that a run changes. */
#define TOGETHER 8U
/* Number of keys after another that a scan checks. */
#define AHEAD 16U

/* The memory that all processes share. */
struct test {
	/* For each pair: the last change begun, and the last one completed. */
	uint32_t begun[PAIRS], done[PAIRS];
	/* For each writer: how often it has changed all of its pairs. */
	uint32_t rounds[WRITERS];
	/* For each writer: the pair that it changes now. */
	uint32_t at[WRITERS];
	bool stops;
	/*
	 * The number of writers that are active. The last one, whose runs are
	 * atomic, pauses in some sessions: otherwise long reads would always
	 * have to retry.
	 */
	uint32_t writing;
	/* Counts of the readers' results, and the first error. */
	unsigned long there, gone, busy;
	char wrong[256];
};

/* Rarely lets a writer run, in the middle of a read; see ../user/os_user.h. */
void llds_os_pause(void)
{
	static uint64_t state = 1;

	if (next_random(&state) >> 54 == 0)
		sched_yield();
}

/* The effect of a change on the keys of a pair: words of the value, or 0. */
static uint32_t change_of(uint32_t pair, uint32_t change)
{
	uint64_t state = (uint64_t)pair << 32 | change;
	const uint64_t random = next_random(&state);
	/* Almost all small, almost all large, half of them, few; each twice. */
	static const struct {
		uint32_t there, words;
	} phases[] = { { 7, 12 }, { 7, WORDS_MAX }, { 4, 12 }, { 1, 12 } };
	const uint32_t phase = change / 2 % 4;

	/* Before the first change, no key exists. */
	if (!change || (random & 7) >= phases[phase].there)
		return 0;
	/* Hot values keep their length, so they are changed in place. */
	if (pair < HOT)
		return HOT_WORDS;
	/* And so are most small values. */
	if (phases[phase].words < WORDS_MAX && random >> 3 & 7)
		return pair & 2 ? 1 : 4;
	return 1 + (random >> 8) % phases[phase].words;
}

static bool is_atomic(uint32_t pair)
{
	return pair & 1;
}

/* Keys of three lengths, ordered as their numbers. */
static uint32_t key_for(u8 *key, uint32_t number)
{
	return sprintf((char *)key, "%05u%.*s", number, (int)(number % 3) * 20,
		       "a beginning that goes on and on, and on");
}

static uint32_t value_for(uint64_t *value, uint32_t number, uint32_t change)
{
	const uint32_t words = change_of(number / 2, change);
	uint32_t i;

	for (i = 0; i < words; i++)
		value[i] = (uint64_t)change << 32 | number;
	return 8 * words;
}

/* Puts the change of a key; one delete-range removes both keys of a pair. */
static void put_change(struct line *l, uint32_t number, uint32_t change)
{
	struct llds_op op = { .code = LLDS_SET };
	uint64_t value[WORDS_MAX];
	u8 key[KEY_ROOM], end[KEY_ROOM];

	op.key_bytes = key_for(key, number);
	op.value_bytes = value_for(value, number, change);
	if (!op.value_bytes)
		op.code = change & 1 ? LLDS_DELETE : LLDS_DELETE_RANGE;
	if (op.code == LLDS_DELETE_RANGE) {
		op.other_bytes = key_for(end, (number | 1) + 1);
		if (number & 1)
			return;
	}
	put(l, op, key, value, end);
}

/* Does the operations, atomically if is_one; returns whether all succeeded. */
static bool do_changes(int fd, struct line *l, bool is_one)
{
	struct llds_run *run = whole(l);
	struct llds_answer answer;
	size_t at;

	run->flags = is_one ? LLDS_RUN_ATOMIC : 0;
	if (command(fd, LLDS_IOC_RUN, (uintptr_t)run) ||
	    run->done_bytes != run->ops_bytes)
		return false;
	for (at = 0; at < run->answers_bytes;
	     at += sizeof(answer) + padded(answer.bytes)) {
		memcpy(&answer, l->answers + at, sizeof(answer));
		if (answer.status != LLDS_DONE && answer.status != LLDS_ABSENT)
			return false;
	}
	return true;
}

/*
 * Changes each of a writer's pairs once, in one of several orders, in runs of
 * several pairs and a hot one. Returns whether all runs succeeded.
 */
static bool change_once(struct test *test, int fd, struct line *l,
			uint32_t writer, uint32_t change, uint64_t *state)
{
	/* Each is coprime to the number of pairs. */
	static const uint32_t strides[] = { 1, 997, 1999, 7 };
	const uint32_t own = PAIRS / WRITERS, stride = strides[change % 4];
	uint32_t pairs[1 + TOGETHER], at = 0, n, i;

	while (at < own && !__atomic_load_n(&test->stops, __ATOMIC_RELAXED)) {
		if (writer >= __atomic_load_n(&test->writing,
					      __ATOMIC_RELAXED)) {
			sched_yield();
			continue;
		}
		pairs[0] = next_random(state) % (HOT / WRITERS) * WRITERS +
			   writer;
		n = 1 + next_random(state) % TOGETHER;
		for (i = 1; i < 1 + n && at < own; at++) {
			pairs[i] = at * stride % own * WRITERS + writer;
			i += pairs[i] >= HOT;
		}
		__atomic_store_n(&test->at[writer], pairs[i - 1],
				 __ATOMIC_RELAXED);
		for (n = i, i = 0; i < n; i++) {
			const uint32_t next = i ? change :
						  test->done[pairs[i]] + 1;

			__atomic_store_n(&test->begun[pairs[i]], next,
					 __ATOMIC_SEQ_CST);
			put_change(l, 2 * pairs[i], next);
		}
		/* The second keys come last, far from the first ones. */
		for (i = 0; i < n; i++)
			put_change(l, 2 * pairs[i] + 1, test->begun[pairs[i]]);
		if (!do_changes(fd, l, is_atomic(writer)))
			return false;
		for (i = 0; i < n; i++)
			__atomic_store_n(&test->done[pairs[i]],
					 test->begun[pairs[i]],
					 __ATOMIC_SEQ_CST);
	}
	return true;
}

/* A writer process. */
static int change_all(struct test *test, int fd, uint32_t writer)
{
	uint64_t state = writer;
	struct line l = line();
	uint32_t change;

	for (change = 1; !__atomic_load_n(&test->stops, __ATOMIC_RELAXED);
	     change++) {
		if (!change_once(test, fd, &l, writer, change, &state))
			return 1;
		__atomic_add_fetch(&test->rounds[writer], 1, __ATOMIC_RELAXED);
	}
	return 0;
}

/* A process that maps the store. */
struct reader {
	struct test *test;
	struct mapped mapped;
	/* For each key: the last change that was read. */
	uint32_t seen[KEYS];
	unsigned long there, gone, busy;
	u8 got[MAPPED_ROOM];
};

/* The oldest change of a key that a read from now on may return. */
static uint32_t oldest(const struct reader *reader, uint32_t number)
{
	const uint32_t done = __atomic_load_n(&reader->test->done[number / 2],
					      __ATOMIC_SEQ_CST);
	const uint32_t seen = reader->seen[number];

	return seen > done ? seen : done;
}

/* The newest change that a read up to now may have returned. */
static uint32_t newest(const struct reader *reader, uint32_t number)
{
	/* The read comes first. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&reader->test->begun[number / 2],
			       __ATOMIC_SEQ_CST);
}

/*
 * Records the change that was read of a key; in an atomic pair, of both keys.
 */
static void saw(struct reader *reader, uint32_t number, uint32_t change)
{
	uint32_t *other = &reader->seen[number ^ 1];

	reader->seen[number] = change;
	if (is_atomic(number / 2) && *other < change)
		*other = change;
}

/* Checks a value that was found: that of a change that may be read. */
static const char *check_there(struct reader *reader, uint32_t number,
			       const u8 *value, uint32_t bytes, uint32_t since)
{
	const uint32_t until = newest(reader, number);
	uint64_t wanted[WORDS_MAX];
	uint32_t change;

	DEMAND(bytes >= 8, "key %u: a value of %u bytes", number, bytes);
	memcpy(&change, value + 4, 4);
	DEMAND(change >= since && change <= until,
	       "key %u: change %u, expected %u to %u", number, change,
	       since, until);
	DEMAND(value_for(wanted, number, change) == bytes &&
	       !memcmp(wanted, value, bytes),
	       "key %u: wrong bytes for change %u", number, change);
	saw(reader, number, change);
	reader->there++;
	return NULL;
}

/* Checks a key that was not found: a change that may be read removed it. */
static const char *check_gone(struct reader *reader, uint32_t number,
			      uint32_t since)
{
	const uint32_t until = newest(reader, number);
	uint32_t change = since;

	while (change < until && change_of(number / 2, change))
		change++;
	DEMAND(!change_of(number / 2, change),
	       "key %u is missing, but changes %u to %u all set it", number,
	       since, until);
	saw(reader, number, change);
	reader->gone++;
	return NULL;
}

static const char *look_up(struct reader *reader, uint32_t number)
{
	const uint32_t since = oldest(reader, number);
	u8 key[KEY_ROOM];
	uint32_t bytes;

	switch (mapped_get(&reader->mapped, key, key_for(key, number),
			   reader->got, &bytes)) {
	case MAPPED_FOUND:
		return check_there(reader, number, reader->got, bytes, since);
	case MAPPED_ABSENT:
		return check_gone(reader, number, since);
	case MAPPED_BUSY:
		reader->busy++;
		return NULL;
	default:
		return why("key %u: a value that is stored apart", number);
	}
}

/* Reads the next key; *NUMBER becomes its number, or KEYS at the end. */
static const char *look_after(struct reader *reader, uint32_t *number)
{
	uint32_t since[AHEAD], key_bytes, bytes, last, i;
	const uint32_t first = *number + 1;
	const char *wrong = NULL;
	u8 key[KEY_ROOM], wanted[KEY_ROOM];
	enum mapped_found found;
	char digits[6] = { 0 };

	for (i = 0; i < AHEAD && first + i < KEYS; i++)
		since[i] = oldest(reader, first + i);
	found = mapped_next(&reader->mapped, key, key_for(key, *number), true,
			    reader->got, &key_bytes, &bytes);
	if (found == MAPPED_BUSY) {
		reader->busy++;
		*number = KEYS;
		return NULL;
	}
	last = KEYS;
	if (found == MAPPED_FOUND) {
		DEMAND(key_bytes >= 5, "a key of %u bytes after %u", key_bytes,
		       *number);
		memcpy(digits, reader->got, 5);
		last = strtoul(digits, NULL, 10);
		DEMAND(last >= first && last < KEYS &&
		       key_for(wanted, last) == key_bytes &&
		       !memcmp(wanted, reader->got, key_bytes),
		       "a key \"%s\" after %u", digits, *number);
	}
	for (i = 0; !wrong && i < AHEAD && first + i < last; i++)
		wrong = check_gone(reader, first + i, since[i]);
	if (!wrong && last < KEYS)
		wrong = check_there(reader, last, reader->got + key_bytes,
				    bytes, last - first < AHEAD ?
						    since[last - first] :
						    reader->seen[last]);
	*number = last;
	return wrong;
}

/* Maps the three parts of the store; the last is NULL if that fails. */
static struct mapped show(int fd)
{
	static const struct {
		uint64_t at, bytes;
	} parts[] = { { LLDS_MAP_HEADER, LLDS_PAGE_BYTES },
		      { LLDS_MAP_BLOCKS, LLDS_MAP_BYTES },
		      { LLDS_MAP_BUCKETS, LLDS_MAP_BYTES } };
	void *at[3];
	int i;

	for (i = 0; i < 3; i++) {
		at[i] = mmap(NULL, parts[i].bytes, PROT_READ, MAP_SHARED, fd,
			     parts[i].at);
		if (at[i] == MAP_FAILED)
			return (struct mapped){ 0 };
	}
	return (struct mapped){ at[0], at[1], at[2] };
}

static void hide(const struct mapped *mapped)
{
	munmap((void *)mapped->header, LLDS_PAGE_BYTES);
	munmap((void *)mapped->blocks, LLDS_MAP_BYTES);
	munmap((void *)mapped->buckets, LLDS_MAP_BYTES);
}

/* Picks a hot key, one near a pair that a writer changes, or any key. */
static uint32_t pick(struct test *test, uint64_t *state)
{
	const uint64_t random = next_random(state);
	uint32_t pair;

	if (random & 1)
		return (random >> 8) % (2 * HOT);
	if (random & 2)
		return (random >> 8) % KEYS;
	pair = __atomic_load_n(&test->at[random >> 2 & (WRITERS - 1)],
			       __ATOMIC_RELAXED);
	return (2 * pair + (random >> 8) % 32) % KEYS;
}

/*
 * Reads @looks times or more, until the writers have changed all pairs again.
 */
static const char *look_around(struct reader *reader, uint64_t state,
			       unsigned long looks)
{
	struct test *test = reader->test;
	uint32_t rounds[WRITERS], writer = 0, number, more, i;
	const char *wrong = NULL;

	for (i = 0; i < WRITERS; i++)
		rounds[i] = __atomic_load_n(&test->rounds[i],
					    __ATOMIC_RELAXED);
	while (!wrong) {
		while (writer < test->writing &&
		       __atomic_load_n(&test->rounds[writer],
				       __ATOMIC_RELAXED) > rounds[writer] + 1)
			writer++;
		if (writer == test->writing && looks == 0)
			break;
		looks -= looks > 0;
		number = pick(test, &state);
		/* A key, the other key of its pair, and some keys after. */
		wrong = look_up(reader, number);
		if (!wrong)
			wrong = look_up(reader, number ^ 1);
		more = number < 2 * HOT ? 2 * HOT : 4;
		for (i = 0; !wrong && number < KEYS && i < more; i++)
			wrong = look_after(reader, &number);
	}
	return wrong;
}

/* A reader process; adds its counts to the shared memory. */
static int read_all(struct reader *reader, uint64_t seed, unsigned long looks)
{
	struct test *test = reader->test;
	const char *wrong = look_around(reader, seed, looks);

	if (wrong)
		snprintf(test->wrong, sizeof(test->wrong), "%s", wrong);
	__atomic_add_fetch(&test->there, reader->there, __ATOMIC_RELAXED);
	__atomic_add_fetch(&test->gone, reader->gone, __ATOMIC_RELAXED);
	__atomic_add_fetch(&test->busy, reader->busy, __ATOMIC_RELAXED);
	return wrong != NULL;
}

/*
 * Runs the readers at the same time. The first one inherits a mapping that its
 * parent then unmaps. Before the first and after the last reader, no mapping
 * exists, so the store frees memory.
 */
static const char *read_once(struct reader *reader, int fd, uint32_t session,
			     unsigned long looks)
{
	int pids[READERS], failed = 0;
	uint32_t i;

	reader->mapped = show(fd);
	DEMAND(reader->mapped.buckets, "mmap: %s", strerror(errno));
	for (i = 0; i < READERS; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (i > 0)
				reader->mapped = show(fd);
			_exit(!reader->mapped.buckets ||
			      read_all(reader, session * READERS + i, looks));
		}
		if (i == 0)
			hide(&reader->mapped);
	}
	for (i = 0; i < READERS; i++)
		failed |= reap(pids[i]);
	DEMAND(!reader->test->wrong[0], "%s", reader->test->wrong);
	DEMAND(!failed, "a reader ended with status %#x", failed);
	return NULL;
}

/*
 * Without concurrent changes, lookups and scans return exactly the keys that
 * exist.
 */
static const char *check_all(struct reader *reader, int fd)
{
	struct test *test = reader->test;
	const char *wrong = NULL;
	uint64_t state = WRITERS;
	struct line l = line();
	uint32_t number, writer;

	test->stops = false;
	test->writing = WRITERS;
	for (writer = 0; writer < WRITERS; writer++)
		DEMAND(change_once(test, fd, &l, writer, LAST_CHANGE, &state),
		       "the last changes");

	for (number = 0; !wrong && number < KEYS; number++)
		wrong = look_up(reader, number);
	for (number = 0; !wrong && number < KEYS;)
		wrong = look_after(reader, &number);
	DEMAND(wrong || !reader->busy, "a read had to retry without a concurrent change");
	return wrong;
}

/*
 * Freed memory stays mapped, empty, and is returned after the last unmapping.
 */
static const char *give_all_back(struct reader *reader, int fd)
{
	struct llds_stats full, empty, unmapped;
	struct line l = line();
	uint32_t number;
	int error;

	error = stats(fd, &full);
	put(&l, (struct llds_op){ .code = LLDS_DELETE_RANGE,
				  .flags = LLDS_NO_OTHER }, "", NULL, NULL);
	if (!error)
		error = go(fd, &l);
	if (!error)
		error = stats(fd, &empty);
	DEMAND(!error, "removing all: %s", strerror(error));
	for (number = 0; number < KEYS; number++) {
		u8 key[KEY_ROOM];
		uint32_t bytes;

		DEMAND(mapped_get(&reader->mapped, key, key_for(key, number),
				  reader->got, &bytes) == MAPPED_ABSENT,
		       "key %u is still found", number);
	}
	hide(&reader->mapped);
	error = stats(fd, &unmapped);
	DEMAND(!error, "afterwards: %s", strerror(error));
	DEMAND(!empty.keys && empty.bytes >= full.bytes &&
	       unmapped.bytes < full.bytes,
	       "%llu bytes, empty %llu, unmapped %llu",
	       (unsigned long long)full.bytes, (unsigned long long)empty.bytes,
	       (unsigned long long)unmapped.bytes);
	return NULL;
}

static const char *mapped_reads_are_right_while_others_change_it(void)
{
	const unsigned long looks = number("together", 20000) / 40;
	struct test *test = mmap(NULL, sizeof(*test), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct reader *reader = calloc(1, sizeof(*reader));
	const char *wrong = NULL;
	int pids[WRITERS], fd = device(), failed = 0;
	uint32_t i;

	DEMAND(test != MAP_FAILED && reader, "no memory");
	reader->test = test;
	for (i = 0; i < WRITERS; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			_exit(change_all(test, fd, i));
		}
	}
	for (i = 0; !wrong && i < SESSIONS; i++) {
		__atomic_store_n(&test->writing, WRITERS - i % 2,
				 __ATOMIC_RELAXED);
		wrong = read_once(reader, fd, i, looks);
	}
	__atomic_store_n(&test->stops, true, __ATOMIC_RELAXED);
	for (i = 0; i < WRITERS; i++)
		failed |= reap(pids[i]);
	if (wrong)
		return wrong;
	DEMAND(!failed, "a writer ended with status %#x", failed);
	note("%lu found, %lu absent, %lu busy, %u changes",
	     test->there, test->gone, test->busy,
	     test->rounds[0] + test->rounds[1]);
	DEMAND(test->there > SESSIONS * looks && test->gone > looks,
	       "%lu found, %lu absent", test->there, test->gone);
	reader->mapped = show(fd);
	DEMAND(reader->mapped.buckets, "mmap: %s", strerror(errno));
	wrong = check_all(reader, fd);
	return wrong ? wrong : give_all_back(reader, fd);
}

const struct check seqlock_checks[] = {
	{ "mapped_reads_are_right_while_others_change_it",
	  mapped_reads_are_right_while_others_change_it },
	{}
};

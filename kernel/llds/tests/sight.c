// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A store in sight of several processes while several change it: without a lock
 * and without a call, each sees what a key means at some instant of its look.
 *
 * What a change makes of a key is known beforehand: change_of(). A writer tells
 * in memory that all share which change it begins, and which it has done. So a
 * key that is looked at has been changed at least as often as was done before,
 * at most as often as was begun behind, and no less often than it was seen to
 * be; and the bytes of a value say whose it is and of which change. Scans are
 * held to the same, also for the keys that they do not find.
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
 * Keys come in pairs, which are changed by the same run, and each second pair
 * by one that takes place as one. Numbers of keys are of five digits.
 */
#define PAIRS 4000U
#define KEYS (2 * PAIRS)
#define KEY_ROOM 64
#define WRITERS 2U
#define READERS 2U
/* Readers come and go so often; the changes are other ones each time. */
#define SESSIONS 8U
/* One by which most keys have large values, and later than all others. */
#define LAST_CHANGE 0x40000002U
/* The longest value, in words. */
#define WORDS_MAX 200U
/* The first pairs, which are changed by a run each, and looked at all the time. */
#define HOT 8U
#define HOT_WORDS 64U
/* A run changes so many others at most. */
#define TOGETHER 8U
/* So many keys behind another are looked for in a scan. */
#define AHEAD 16U

/* What all processes share. */
struct sight {
	/* By pairs: the change that is begun, and the one that is done. */
	uint32_t begun[PAIRS], done[PAIRS];
	/* By writers: how often all of its pairs were changed. */
	uint32_t rounds[WRITERS];
	/* And the pair that one is at. */
	uint32_t at[WRITERS];
	bool stops;
	/*
	 * How many of them write: the last one, whose runs take place as one,
	 * not always, or no look that takes longer would come to an end.
	 */
	uint32_t writing;
	/* What the readers came to, and what was wrong. */
	unsigned long there, gone, busy;
	char wrong[256];
};

/* What a change makes of the keys of a pair: a value of so many words, or 0. */
static uint32_t change_of(uint32_t pair, uint32_t change)
{
	uint64_t state = (uint64_t)pair << 32 | change;
	const uint64_t random = next_random(&state);
	/* All small, all large, a half of them, few; each twice. */
	static const struct {
		uint32_t there, words;
	} phases[] = { { 7, 12 }, { 7, WORDS_MAX }, { 4, 12 }, { 1, 12 } };
	const uint32_t phase = change / 2 % 4;

	/* What never was changed is not there. */
	if (!change || (random & 7) >= phases[phase].there)
		return 0;
	/* Those stay as long as they are: changed where they are. */
	if (pair < HOT)
		return HOT_WORDS;
	/* And so do most that are small. */
	if (phases[phase].words < WORDS_MAX && random >> 3 & 7)
		return pair & 2 ? 1 : 4;
	return 1 + (random >> 8) % phases[phase].words;
}

static bool is_as_one(uint32_t pair)
{
	return pair & 1;
}

/* Keys of three lengths, in the order of their numbers. */
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

/* The change of a key; of a pair that goes by a range, that of the first. */
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

/* Does what was put, perhaps as one; whether all of it could be done. */
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
 * Changes each of a writer's pairs once, in one of several orders, by runs of a
 * few and a hot one; whether all could be done that was begun.
 */
static bool change_once(struct sight *sight, int fd, struct line *l,
			uint32_t writer, uint32_t change, uint64_t *state)
{
	/* None has a divisor with the number of pairs. */
	static const uint32_t strides[] = { 1, 997, 1999, 7 };
	const uint32_t own = PAIRS / WRITERS, stride = strides[change % 4];
	uint32_t pairs[1 + TOGETHER], at = 0, n, i;

	while (at < own && !__atomic_load_n(&sight->stops, __ATOMIC_RELAXED)) {
		if (writer >= __atomic_load_n(&sight->writing,
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
		__atomic_store_n(&sight->at[writer], pairs[i - 1],
				 __ATOMIC_RELAXED);
		for (n = i, i = 0; i < n; i++) {
			const uint32_t next = i ? change :
						  sight->done[pairs[i]] + 1;

			__atomic_store_n(&sight->begun[pairs[i]], next,
					 __ATOMIC_SEQ_CST);
			put_change(l, 2 * pairs[i], next);
		}
		/* Long after the first of a pair comes the second. */
		for (i = 0; i < n; i++)
			put_change(l, 2 * pairs[i] + 1, sight->begun[pairs[i]]);
		if (!do_changes(fd, l, is_as_one(writer)))
			return false;
		for (i = 0; i < n; i++)
			__atomic_store_n(&sight->done[pairs[i]],
					 sight->begun[pairs[i]],
					 __ATOMIC_SEQ_CST);
	}
	return true;
}

/* A process that writes. */
static int change_all(struct sight *sight, int fd, uint32_t writer)
{
	uint64_t state = writer;
	struct line l = line();
	uint32_t change;

	for (change = 1; !__atomic_load_n(&sight->stops, __ATOMIC_RELAXED);
	     change++) {
		if (!change_once(sight, fd, &l, writer, change, &state))
			return 1;
		__atomic_add_fetch(&sight->rounds[writer], 1, __ATOMIC_RELAXED);
	}
	return 0;
}

/* One who has the store in sight. */
struct reader {
	struct sight *sight;
	struct mapped mapped;
	/* By keys: the change that was seen last. */
	uint32_t seen[KEYS];
	unsigned long there, gone, busy;
	u8 got[MAPPED_ROOM];
};

/* What a key cannot be older than, before it is looked at. */
static uint32_t oldest(const struct reader *reader, uint32_t number)
{
	const uint32_t done = __atomic_load_n(&reader->sight->done[number / 2],
					      __ATOMIC_SEQ_CST);
	const uint32_t seen = reader->seen[number];

	return seen > done ? seen : done;
}

/* And what it cannot be newer than, behind. */
static uint32_t newest(const struct reader *reader, uint32_t number)
{
	/* The look comes first. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&reader->sight->begun[number / 2],
			       __ATOMIC_SEQ_CST);
}

/* A key is as this change made it; what that says of the other of its pair. */
static void saw(struct reader *reader, uint32_t number, uint32_t change)
{
	uint32_t *other = &reader->seen[number ^ 1];

	reader->seen[number] = change;
	if (is_as_one(number / 2) && *other < change)
		*other = change;
}

/* A value was found: it is the one of a change that may be seen. */
static const char *check_there(struct reader *reader, uint32_t number,
			       const u8 *value, uint32_t bytes, uint32_t since)
{
	const uint32_t until = newest(reader, number);
	uint64_t wanted[WORDS_MAX];
	uint32_t change;

	DEMAND(bytes >= 8, "key %u: a value of %u bytes", number, bytes);
	memcpy(&change, value + 4, 4);
	DEMAND(change >= since && change <= until,
	       "key %u: change %u, where %u to %u may be seen", number, change,
	       since, until);
	DEMAND(value_for(wanted, number, change) == bytes &&
	       !memcmp(wanted, value, bytes),
	       "key %u: a mixture of change %u", number, change);
	saw(reader, number, change);
	reader->there++;
	return NULL;
}

/* A key was not found: one of the changes that may be seen has removed it. */
static const char *check_gone(struct reader *reader, uint32_t number,
			      uint32_t since)
{
	const uint32_t until = newest(reader, number);
	uint32_t change = since;

	while (change < until && change_of(number / 2, change))
		change++;
	DEMAND(!change_of(number / 2, change),
	       "key %u is missing, which changes %u to %u have set", number,
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
		return why("key %u: a value by itself", number);
	}
}

/* The key behind one; *NUMBER becomes its number, KEYS if there is none. */
static const char *look_behind(struct reader *reader, uint32_t *number)
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
		DEMAND(key_bytes >= 5, "a key of %u bytes behind %u", key_bytes,
		       *number);
		memcpy(digits, reader->got, 5);
		last = strtoul(digits, NULL, 10);
		DEMAND(last >= first && last < KEYS &&
		       key_for(wanted, last) == key_bytes &&
		       !memcmp(wanted, reader->got, key_bytes),
		       "a key \"%s\" behind %u", digits, *number);
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

/* A mapping of each of the three parts; the last is NULL if that fails. */
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

/* A hot key, one where somebody writes, or any. */
static uint32_t pick(struct sight *sight, uint64_t *state)
{
	const uint64_t random = next_random(state);
	uint32_t pair;

	if (random & 1)
		return (random >> 8) % (2 * HOT);
	if (random & 2)
		return (random >> 8) % KEYS;
	pair = __atomic_load_n(&sight->at[random >> 2 & (WRITERS - 1)],
			       __ATOMIC_RELAXED);
	return (2 * pair + (random >> 8) % 32) % KEYS;
}

/* Looks so often at least, and until who writes has changed all once more. */
static const char *look_around(struct reader *reader, uint64_t state,
			       unsigned long looks)
{
	struct sight *sight = reader->sight;
	uint32_t rounds[WRITERS], writer = 0, number, more, i;
	const char *wrong = NULL;

	for (i = 0; i < WRITERS; i++)
		rounds[i] = __atomic_load_n(&sight->rounds[i],
					    __ATOMIC_RELAXED);
	while (!wrong) {
		while (writer < sight->writing &&
		       __atomic_load_n(&sight->rounds[writer],
				       __ATOMIC_RELAXED) > rounds[writer] + 1)
			writer++;
		if (writer == sight->writing && looks == 0)
			break;
		looks -= looks > 0;
		number = pick(sight, &state);
		/* One of a pair, then the other; and some that follow. */
		wrong = look_up(reader, number);
		if (!wrong)
			wrong = look_up(reader, number ^ 1);
		more = number < 2 * HOT ? 2 * HOT : 4;
		for (i = 0; !wrong && number < KEYS && i < more; i++)
			wrong = look_behind(reader, &number);
	}
	return wrong;
}

/* A process that reads; what it came to is in what all share. */
static int read_all(struct reader *reader, uint64_t seed, unsigned long looks)
{
	struct sight *sight = reader->sight;
	const char *wrong = look_around(reader, seed, looks);

	if (wrong)
		snprintf(sight->wrong, sizeof(sight->wrong), "%s", wrong);
	__atomic_add_fetch(&sight->there, reader->there, __ATOMIC_RELAXED);
	__atomic_add_fetch(&sight->gone, reader->gone, __ATOMIC_RELAXED);
	__atomic_add_fetch(&sight->busy, reader->busy, __ATOMIC_RELAXED);
	return wrong != NULL;
}

/*
 * Readers at once, of which the first has inherited a mapping that its parent
 * has no more. Before the first and behind the last of them nobody looks, and
 * memory goes back.
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
	DEMAND(!reader->sight->wrong[0], "%s", reader->sight->wrong);
	DEMAND(!failed, "a reader ended with status %#x", failed);
	return NULL;
}

/*
 * When nobody changes anything any more, all is there, also in order, and
 * nothing else.
 */
static const char *check_all(struct reader *reader, int fd)
{
	struct sight *sight = reader->sight;
	const char *wrong = NULL;
	uint64_t state = WRITERS;
	struct line l = line();
	uint32_t number, writer;

	sight->stops = false;
	sight->writing = WRITERS;
	for (writer = 0; writer < WRITERS; writer++)
		DEMAND(change_once(sight, fd, &l, writer, LAST_CHANGE, &state),
		       "the last changes");

	for (number = 0; !wrong && number < KEYS; number++)
		wrong = look_up(reader, number);
	for (number = 0; !wrong && number < KEYS;)
		wrong = look_behind(reader, &number);
	DEMAND(wrong || !reader->busy, "nobody changes it, and it is busy");
	return wrong;
}

/* What was in sight stays, empty, and goes back when nobody looks any more. */
static const char *give_all_back(struct reader *reader, int fd)
{
	struct llds_stats full, empty, unseen;
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
		       "key %u is still in sight", number);
	}
	hide(&reader->mapped);
	error = stats(fd, &unseen);
	DEMAND(!error, "afterwards: %s", strerror(error));
	DEMAND(!empty.keys && empty.bytes >= full.bytes &&
	       unseen.bytes < full.bytes,
	       "%llu bytes, empty %llu, out of sight %llu",
	       (unsigned long long)full.bytes, (unsigned long long)empty.bytes,
	       (unsigned long long)unseen.bytes);
	return NULL;
}

static const char *what_is_in_sight_is_right_while_others_change_it(void)
{
	const unsigned long looks = number("together", 20000) / 40;
	struct sight *sight = mmap(NULL, sizeof(*sight), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct reader *reader = calloc(1, sizeof(*reader));
	const char *wrong = NULL;
	int pids[WRITERS], fd = device(), failed = 0;
	uint32_t i;

	DEMAND(sight != MAP_FAILED && reader, "no memory");
	reader->sight = sight;
	for (i = 0; i < WRITERS; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			_exit(change_all(sight, fd, i));
		}
	}
	for (i = 0; !wrong && i < SESSIONS; i++) {
		__atomic_store_n(&sight->writing, WRITERS - i % 2,
				 __ATOMIC_RELAXED);
		wrong = read_once(reader, fd, i, looks);
	}
	__atomic_store_n(&sight->stops, true, __ATOMIC_RELAXED);
	for (i = 0; i < WRITERS; i++)
		failed |= reap(pids[i]);
	if (wrong)
		return wrong;
	DEMAND(!failed, "a writer ended with status %#x", failed);
	note("%lu there, %lu not there, %lu not to be seen, %u changes",
	     sight->there, sight->gone, sight->busy,
	     sight->rounds[0] + sight->rounds[1]);
	DEMAND(sight->there > SESSIONS * looks && sight->gone > looks,
	       "%lu were there, %lu not", sight->there, sight->gone);
	reader->mapped = show(fd);
	DEMAND(reader->mapped.buckets, "mmap: %s", strerror(errno));
	wrong = check_all(reader, fd);
	return wrong ? wrong : give_all_back(reader, fd);
}

const struct check sight_checks[] = {
	{ "what_is_in_sight_is_right_while_others_change_it",
	  what_is_in_sight_is_right_while_others_change_it },
	{}
};

// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Stores through the device: reads return what was written, only with
 * permission, and nothing else. User-space tests check the engine itself, at
 * full speed (../user); these check the kernel's part: copies, locks, files.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "line.h"

static const char *what_is_put_in_comes_out(void)
{
	const uint64_t one = 1, sum = 1;
	struct line l = line();
	int error, fd = device();
	size_t at = 0;

	put_get(&l, "oak");
	put_set(&l, "oak", "Quercus");
	put_get(&l, "oak");
	put_set(&l, "", "of no bytes");
	put_get(&l, "");
	put(&l, (struct llds_op){ .code = LLDS_ADD, .key_bytes = 1,
				  .value_bytes = 8 }, "n", &one, NULL);
	put(&l, (struct llds_op){ .code = LLDS_SWAP, .key_bytes = 3,
				  .value_bytes = 5, .other_bytes = 7 },
	    "oak", "robur", "Quercus");
	put(&l, (struct llds_op){ .code = LLDS_SWAP, .key_bytes = 3,
				  .flags = LLDS_NO_VALUE, .other_bytes = 7 },
	    "oak", NULL, "Quercus");
	put(&l, (struct llds_op){ .code = LLDS_DELETE, .key_bytes = 3 }, "oak",
	    NULL, NULL);
	put(&l, (struct llds_op){ .code = LLDS_DELETE, .key_bytes = 3 }, "oak",
	    NULL, NULL);
	error = go(fd, &l);
	DEMAND(!error, "%s", strerror(error));
	ANSWER(LLDS_ABSENT, "");
	ANSWER(LLDS_DONE, "");
	ANSWER(LLDS_DONE, "Quercus");
	ANSWER(LLDS_DONE, "");
	ANSWER(LLDS_DONE, "of no bytes");
	DEMAND(is_answer(&l, &at, LLDS_DONE, &sum, 8), "another sum");
	ANSWER(LLDS_DONE, "");
	ANSWER(LLDS_DIFFERS, "robur");
	ANSWER(LLDS_DONE, "");
	ANSWER(LLDS_ABSENT, "");
	DEMAND(at == l.run.answers_bytes, "%u bytes", l.run.answers_bytes);
	return NULL;
}

static const char *set_of_a_key_that_is_there_changes_it(void)
{
	struct line l = line();
	int error, fd = device();
	size_t at = 0;

	put_set(&l, "key", "old");
	put_set(&l, "key", "another, and longer than the one before");
	put_get(&l, "key");
	error = go(fd, &l);
	DEMAND(!error, "%s", strerror(error));
	ANSWER(LLDS_DONE, "");
	ANSWER(LLDS_DONE, "");
	ANSWER(LLDS_DONE, "another, and longer than the one before");
	return NULL;
}

static uint64_t key_of(uint64_t i)
{
	return __builtin_bswap64(next_random(&i));
}

/* Sets keys from 0 on, each to its number. */
static const char *fill(int fd, struct line *l, uint64_t keys)
{
	uint64_t i;
	int error;

	for (i = 0; i < keys; i++) {
		uint64_t key = key_of(i);

		put(l, (struct llds_op){ .code = LLDS_SET, .key_bytes = 8,
					 .value_bytes = 8 }, &key, &i, NULL);
		if (l->bytes < ROOM / 2 && i + 1 < keys)
			continue;
		error = go(fd, l);
		DEMAND(!error, "filling: %s", strerror(error));
	}
	return NULL;
}

static const char *a_hash_is_not_taken_for_the_key(void)
{
	const uint64_t keys = number("keys", 200000);
	struct llds_pair pair;
	unsigned char last[8] = { 0 };
	struct line l = line();
	uint64_t i, found = 0;
	int error, fd = device();
	const char *wrong = fill(fd, &l, keys);
	size_t at;

	if (wrong)
		return wrong;
	/* Each key has its value, and no other key exists. */
	for (i = 0; i < 2 * keys; i++) {
		uint64_t key = key_of(i);

		put(&l, (struct llds_op){ .code = LLDS_GET, .key_bytes = 8 },
		    &key, NULL, NULL);
		if ((i + 1) % 1000)
			continue;
		error = go(fd, &l);
		DEMAND(!error, "gets: %s", strerror(error));
		for (at = 0; at < l.run.answers_bytes; found++)
			DEMAND(is_answer(&l, &at,
					 found < keys ? LLDS_DONE : LLDS_ABSENT,
					 &found, found < keys ? 8 : 0),
			       "key %llu", (unsigned long long)found);
	}
	/* All pairs in order, by scans that continue each other. */
	for (found = 0;;) {
		struct llds_answer answer;

		put(&l, (struct llds_op){ .code = LLDS_SCAN, .key_bytes = 8,
					  .flags = LLDS_NO_OTHER |
						   LLDS_BEHIND_KEY },
		    last, NULL, NULL);
		error = go(fd, &l);
		DEMAND(!error, "a scan: %s", strerror(error));
		memcpy(&answer, l.answers, sizeof(answer));
		for (at = 0; at < answer.bytes; at += padded(sizeof(pair) + 16),
		     found++) {
			unsigned char *from = l.answers + sizeof(answer) + at;
			uint64_t value;

			memcpy(&pair, from, sizeof(pair));
			from += sizeof(pair);
			DEMAND(pair.key_bytes == 8 && pair.value_bytes == 8 &&
			       memcmp(last, from, 8) < 0, "no order");
			memcpy(last, from, 8);
			memcpy(&value, from + 8, 8);
			DEMAND(value < keys && key_of(value) ==
			       *(uint64_t *)last, "another's value");
		}
		if (answer.status == LLDS_DONE)
			break;
		DEMAND(answer.status == LLDS_MORE, "status %d", answer.status);
	}
	DEMAND(found == keys, "%llu pairs", (unsigned long long)found);
	return NULL;
}

static const char *a_range_goes_and_the_memory_with_it(void)
{
	const uint64_t keys = number("keys", 200000);
	struct line l = line();
	int error, fd = device();
	const char *wrong = fill(fd, &l, keys);
	size_t at = 0;

	if (wrong)
		return wrong;
	put(&l, (struct llds_op){ .code = LLDS_DELETE_RANGE,
				  .flags = LLDS_NO_OTHER }, "", NULL, NULL);
	error = go(fd, &l);
	DEMAND(!error, "%s", strerror(error));
	DEMAND(is_answer(&l, &at, LLDS_DONE, &keys, 8), "another number");
	return fill(fd, &l, 1000);
}

/* Deletes nine of ten keys one by one, which frees memory. */
static const char *deleted_keys_are_not_found(void)
{
	const uint64_t keys = number("keys", 200000) / 2, left = keys / 10 * 9;
	uint64_t value[25] = { 0 };
	struct line l = line();
	uint64_t i, found = 0;
	int error, fd = device();
	size_t at;

	/* Long values, so that most slabs hold nothing else. */
	for (i = 0; i < keys; i++) {
		uint64_t key = key_of(i);

		value[0] = i;
		put(&l, (struct llds_op){ .code = LLDS_SET, .key_bytes = 8,
					  .value_bytes = sizeof(value) },
		    &key, value, NULL);
		if (l.bytes < ROOM / 2 && i + 1 < keys)
			continue;
		error = go(fd, &l);
		DEMAND(!error, "sets: %d", error);
	}
	for (i = 0; i < left; i++) {
		uint64_t key = key_of(i);

		put(&l, (struct llds_op){ .code = LLDS_DELETE, .key_bytes = 8 },
		    &key, NULL, NULL);
		if (l.bytes < ROOM / 2 && i + 1 < left)
			continue;
		error = go(fd, &l);
		DEMAND(!error, "deletes: %d", error);
	}
	for (i = 0; i < keys; i++) {
		uint64_t key = key_of(i);

		put(&l, (struct llds_op){ .code = LLDS_GET, .key_bytes = 8 },
		    &key, NULL, NULL);
		if ((i + 1) % 1000 && i + 1 < keys)
			continue;
		error = go(fd, &l);
		DEMAND(!error, "gets: %d", error);
		for (at = 0; at < l.run.answers_bytes; found++) {
			value[0] = found;
			DEMAND(is_answer(&l, &at,
					 found < left ? LLDS_ABSENT : LLDS_DONE,
					 value,
					 found < left ? 0 : sizeof(value)),
			       "key %llu", (unsigned long long)found);
		}
	}
	DEMAND(found == keys, "%llu answers", (unsigned long long)found);
	return NULL;
}

static const char *who_may_only_read_changes_nothing(void)
{
	struct line l = line();
	int error, fd = open(DEVICE, O_RDONLY);
	size_t at = 0;

	DEMAND(fd >= 0, "open: %s", strerror(errno));
	put_set(&l, "key", "value");
	error = go(fd, &l);
	DEMAND(error == EBADF, "a set: %d", error);
	put(&l, (struct llds_op){ .code = LLDS_DELETE_RANGE,
				  .flags = LLDS_NO_OTHER }, "", NULL, NULL);
	error = go(fd, &l);
	DEMAND(error == EBADF, "a range: %d", error);
	put_get(&l, "key");
	error = go(fd, &l);
	DEMAND(!error, "a get: %s", strerror(error));
	ANSWER(LLDS_ABSENT, "");
	return NULL;
}

static const char *stores_are_private(void)
{
	struct line l = line();
	int error, fd = device(), other = device(), copy = dup(fd);
	size_t at = 0;

	put_set(&l, "key", "value");
	error = go(fd, &l);
	DEMAND(!error, "%s", strerror(error));
	put_get(&l, "key");
	error = go(other, &l);
	DEMAND(!error, "%s", strerror(error));
	ANSWER(LLDS_ABSENT, "");
	close(fd);
	at = 0;
	put_get(&l, "key");
	error = go(copy, &l);
	DEMAND(!error, "%s", strerror(error));
	ANSWER(LLDS_DONE, "value");
	return NULL;
}

static const char *lengths_of_a_gigabyte_and_of_minus_one_are_refused(void)
{
	static const uint32_t lengths[] = { 1u << 30, 0x7fffffff, 0x80000000,
					    0xfffffff8, 0xffffffff };
	struct llds_op op = { .code = LLDS_SET, .key_bytes = 1 };
	struct line l = line();
	int fd = device(), error;
	unsigned int i;

	for (i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		op.value_bytes = lengths[i];
		memcpy(l.ops, &op, sizeof(op));
		l.bytes = 24;
		error = go(fd, &l);
		DEMAND(error == E2BIG, "%#x: %d", lengths[i], error);
		/* And without the bytes that the length promises. */
		op.value_bytes = 1000;
		memcpy(l.ops, &op, sizeof(op));
		l.bytes = 24;
		error = go(fd, &l);
		DEMAND(error == EINVAL, "cut short: %d", error);
		l.run = (struct llds_run){ .ops = (uintptr_t)l.ops,
					   .ops_bytes = lengths[i],
					   .answers = (uintptr_t)l.answers,
					   .answers_bytes = lengths[i] };
		error = command(fd, LLDS_IOC_RUN, (uintptr_t)&l.run);
		/* With more bytes, the run begins with a valid operation. */
		DEMAND(error || l.run.done == 1, "a run of %#x: %u done",
		       lengths[i], l.run.done);
		l.bytes = 0;
	}
	op.value_bytes = 0;
	op.key_bytes = LLDS_KEY_BYTES_MAX + 1;
	memcpy(l.ops, &op, sizeof(op));
	l.bytes = 8192;
	error = go(fd, &l);
	DEMAND(error == EINVAL, "a long key: %d", error);
	/* A get alone in its run, with too few bytes for its key. */
	op = (struct llds_op){ .code = LLDS_GET, .key_bytes = 16 };
	memcpy(l.ops, &op, sizeof(op));
	l.bytes = 24;
	error = go(fd, &l);
	DEMAND(error == EINVAL, "a get that is cut short: %d", error);
	return NULL;
}

static const char *no_more_is_copied_than_there_is_room(void)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned int room, wanted = 8 + 104;
	struct line l = line();
	char value[101];
	int error, fd = device();

	DEMAND(page != MAP_FAILED && !munmap(page + 4096, 4096), "mmap");
	memset(value, 'v', 100);
	value[100] = 0;
	put_set(&l, "key", value);
	error = go(fd, &l);
	DEMAND(!error, "%s", strerror(error));
	for (room = 0; room < 200; room++) {
		memset(page, 0x5a, 4096);
		put_get(&l, "key");
		l.run = (struct llds_run){
			.ops = (uintptr_t)l.ops, .ops_bytes = l.bytes,
			.answers = (uintptr_t)page + 4096 - room,
			.answers_bytes = room };
		error = command(fd, LLDS_IOC_RUN, (uintptr_t)&l.run);
		l.bytes = 0;
		DEMAND(page[4095 - room] == 0x5a, "a byte before the room");
		if (room < wanted) {
			DEMAND(error == EMSGSIZE, "room %u: %d", room, error);
			DEMAND(l.run.answers_bytes == wanted, "wants %u",
			       l.run.answers_bytes);
			DEMAND(room == 0 || page[4095] == 0x5a, "written");
		} else {
			DEMAND(!error && l.run.answers_bytes == wanted,
			       "room %u: %d", room, error);
		}
	}
	return NULL;
}

static const char *bad_pointers_are_refused(void)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uint64_t bad[] = { 0, 8, 0xffff888000000000, 0xffffffff81000000,
				 ~0ULL, 1ULL << 63, (uintptr_t)page + 4096,
				 (uintptr_t)page + 4096 - 8 };
	struct line l = line();
	int error, fd = device();
	unsigned int i;

	DEMAND(page != MAP_FAILED && !munmap(page + 4096, 4096), "mmap");
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		put_get(&l, "key");
		l.run = (struct llds_run){ .ops = bad[i], .ops_bytes = l.bytes,
					   .answers = (uintptr_t)l.answers,
					   .answers_bytes = 100 };
		error = command(fd, LLDS_IOC_RUN, (uintptr_t)&l.run);
		DEMAND(error == EFAULT, "operations at %#llx: %d",
		       (unsigned long long)bad[i], error);
		/* Two answers of 8 bytes; the last address has room for one. */
		put_get(&l, "key");
		l.run = (struct llds_run){ .ops = (uintptr_t)l.ops,
					   .ops_bytes = l.bytes,
					   .answers = bad[i],
					   .answers_bytes = 100 };
		error = command(fd, LLDS_IOC_RUN, (uintptr_t)&l.run);
		DEMAND(error == EFAULT, "answers at %#llx: %d",
		       (unsigned long long)bad[i], error);
		error = command(fd, LLDS_IOC_RUN, bad[i]);
		DEMAND(error == EFAULT, "a run at %#llx: %d",
		       (unsigned long long)bad[i], error);
		l.bytes = 0;
	}
	/* Answers to a read-only page. */
	DEMAND(!mprotect(page, 4096, PROT_READ), "mprotect");
	put_get(&l, "key");
	l.run = (struct llds_run){ .ops = (uintptr_t)l.ops,
				   .ops_bytes = l.bytes,
				   .answers = (uintptr_t)page,
				   .answers_bytes = 100 };
	error = command(fd, LLDS_IOC_RUN, (uintptr_t)&l.run);
	DEMAND(error == EFAULT, "answers where one may read: %d", error);
	return NULL;
}

/* The shared state of the threads. */
struct together {
	int fd;
	volatile bool stop;
	volatile unsigned long wrong, right;
	unsigned char *ops;
	size_t bytes;
};

static void *change(void *argument)
{
	struct together *all = argument;
	struct line l = line();
	char value[3000];
	unsigned int i;

	for (i = 0; !all->stop; i++) {
		size_t bytes = 1 + i * 37 % (sizeof(value) - 1);

		memset(value, 'a' + i % 26, bytes);
		value[bytes] = 0;
		put_set(&l, "key", value);
		if (i % 7 == 0)
			put(&l, (struct llds_op){ .code = LLDS_DELETE,
						  .key_bytes = 3 },
			    "key", NULL, NULL);
		if (go(all->fd, &l))
			all->wrong++;
	}
	return NULL;
}

static const char *a_value_is_whole_while_others_change_it(void)
{
	struct together all = { .fd = device() };
	struct line l = line();
	struct llds_answer answer;
	pthread_t thread;
	unsigned long i, j, found = 0;

	DEMAND(!pthread_create(&thread, NULL, change, &all), "no thread");
	for (i = 0; i < number("together", 20000); i++) {
		int error;

		put_get(&l, "key");
		error = go(all.fd, &l);
		DEMAND(!error, "%s", strerror(error));
		memcpy(&answer, l.answers, sizeof(answer));
		if (answer.status == LLDS_ABSENT)
			continue;
		found++;
		DEMAND(answer.status == LLDS_DONE && answer.bytes, "status %d",
		       answer.status);
		for (j = 1; j < answer.bytes; j++)
			DEMAND(l.answers[8 + j] == l.answers[8],
			       "a mixture of two values after %lu", i);
	}
	all.stop = true;
	pthread_join(thread, NULL);
	DEMAND(!all.wrong && found > 100, "%lu failed, %lu found", all.wrong,
	       found);
	return NULL;
}

/* Changes the lengths of operations while the kernel does them. */
static void *meddle(void *argument)
{
	struct together *all = argument;
	uint64_t state = 1;

	while (!all->stop) {
		uint64_t random = next_random(&state);
		struct llds_op *op = (void *)(all->ops + random % 64 * 40);

		/* Sometimes restores the length of the other thread. */
		if (random % 16 == 0)
			continue;
		op->key_bytes = random >> 8 & 1 ? 8 : random >> 16;
		op->value_bytes = random >> 9 & 1 ? 16 : random >> 32;
	}
	return NULL;
}

static const char *a_length_is_looked_at_once(void)
{
	/* Both operations have the same length. */
	const struct llds_op op = { .code = LLDS_SET, .key_bytes = 8,
				    .value_bytes = 16 },
			     other = { .code = LLDS_DELETE, .key_bytes = 24 };
	struct together all = { .fd = device() };
	struct line l = line();
	struct llds_answer answer;
	unsigned long i, done = 0, refused = 0;
	pthread_t thread;
	size_t at;

	for (i = 0; i < 64; i++)
		memcpy(l.ops + i * 40, &op, sizeof(op));
	all.ops = l.ops;
	DEMAND(!pthread_create(&thread, NULL, meddle, &all), "no thread");
	for (i = 0; i < number("together", 20000); i++) {
		struct llds_run run = { .ops = (uintptr_t)l.ops,
					.ops_bytes = 64 * 40,
					.answers = (uintptr_t)l.answers,
					.answers_bytes = ROOM };
		int error;

		/* Only adjacent sets form a group; this mixes both paths. */
		for (at = 0; at < 64; at += 16)
			memcpy(l.ops + at * 40, i % 2 ? &other : &op,
			       sizeof(op));
		error = command(all.fd, LLDS_IOC_RUN, (uintptr_t)&run);
		DEMAND(!error || error == EINVAL || error == E2BIG, "%s",
		       strerror(error));
		done += run.done;
		refused += error || run.done_bytes < 64 * 40;
		/*
		 * A length that the kernel did not check must not be used.
		 * A longer set may include the next operations.
		 */
		for (at = 0; !error && at < run.answers_bytes;
		     at += sizeof(answer)) {
			memcpy(&answer, l.answers + at, sizeof(answer));
			DEMAND((answer.status == LLDS_DONE ||
				(i % 2 && answer.status == LLDS_ABSENT)) &&
				       !answer.bytes,
			       "a checked operation failed: %d",
			       answer.status);
		}
	}
	all.stop = true;
	pthread_join(thread, NULL);
	DEMAND(done && refused, "%lu done, %lu refused", done, refused);
	return NULL;
}

static const char *a_store_takes_no_more_than_it_may(void)
{
	unsigned long megabytes = 0;
	struct line l = line();
	struct llds_answer answer;
	char *value = malloc(500001);
	int error, fd;
	char key[32];

	DEMAND(!unload("llds"), "rmmod");
	error = load(MODULE, "store_bytes_max=8388608");
	DEMAND(!error, "insmod: %s", strerror(error));
	fd = device();
	memset(value, 'v', 500000);
	value[500000] = 0;
	for (;; megabytes++) {
		DEMAND(megabytes < 100, "100 half megabytes in eight");
		snprintf(key, sizeof(key), "%lu", megabytes);
		put_set(&l, key, value);
		error = go(fd, &l);
		DEMAND(!error, "%s", strerror(error));
		memcpy(&answer, l.answers, sizeof(answer));
		if (answer.status)
			break;
	}
	DEMAND(answer.status == -ENOSPC && megabytes > 10, "%d after %lu",
	       answer.status, megabytes);
	put(&l, (struct llds_op){ .code = LLDS_DELETE_RANGE,
				  .flags = LLDS_NO_OTHER }, "", NULL, NULL);
	put_set(&l, "key", value);
	error = go(fd, &l);
	DEMAND(!error, "%s", strerror(error));
	memcpy(&answer, l.answers + 16, sizeof(answer));
	DEMAND(!answer.status, "afterwards: %d", answer.status);
	close(fd);
	DEMAND(!unload("llds"), "rmmod");
	error = load(MODULE, "");
	DEMAND(!error, "insmod: %s", strerror(error));
	return NULL;
}

const struct check data_checks[] = {
	{ "what_is_put_in_comes_out", what_is_put_in_comes_out },
	{ "set_of_a_key_that_is_there_changes_it",
	  set_of_a_key_that_is_there_changes_it },
	{ "a_hash_is_not_taken_for_the_key", a_hash_is_not_taken_for_the_key },
	{ "a_range_goes_and_the_memory_with_it",
	  a_range_goes_and_the_memory_with_it },
	{ "deleted_keys_are_not_found", deleted_keys_are_not_found },
	{ "who_may_only_read_changes_nothing",
	  who_may_only_read_changes_nothing },
	{ "stores_are_private", stores_are_private },
	{ "lengths_of_a_gigabyte_and_of_minus_one_are_refused",
	  lengths_of_a_gigabyte_and_of_minus_one_are_refused },
	{ "no_more_is_copied_than_there_is_room",
	  no_more_is_copied_than_there_is_room },
	{ "bad_pointers_are_refused", bad_pointers_are_refused },
	{ "a_value_is_whole_while_others_change_it",
	  a_value_is_whole_while_others_change_it },
	{ "a_length_is_looked_at_once", a_length_is_looked_at_once },
	{ "a_store_takes_no_more_than_it_may",
	  a_store_takes_no_more_than_it_may },
	{}
};

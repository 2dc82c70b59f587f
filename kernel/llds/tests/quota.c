// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Limits: bytes of a user, number of names, charges of control groups; the
 * module stays loaded while a store has a name. Also many processes that create
 * and destroy stores at the same time.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "named.h"

#define QUOTA (4 << 20)

/* The number of stores that can be made; closes them again. */
static int count_stores(void *ignored)
{
	struct llds_stats found;
	int fds[64], n;

	(void)ignored;
	for (n = 0; n < 64; n++) {
		int error;

		fds[n] = device_for(O_RDWR);
		error = stats(fds[n], &found);
		if (error) {
			/* Other calls must fail in the same way. */
			if (error != EDQUOT ||
			    attach(fds[n], "one more", LLDS_CREATE, 0600) !=
				    EDQUOT ||
			    set(fds[n], "key", "value") != EDQUOT)
				return 255;
			break;
		}
	}
	return n;
}

/* Fills a store with a name and one without, until the limit. */
static int fill_two(void *ignored)
{
	int error, fds[2] = { device_for(O_RDWR), device_for(O_RDWR) };
	struct llds_stats found;
	char key[16], value[50000] = { 0 };
	uint64_t bytes = 0;
	unsigned int i, j;

	(void)ignored;
	if (attach(fds[0], "filled", LLDS_CREATE, 0600))
		return 1;
	for (i = 0;; i++) {
		snprintf(key, sizeof(key), "%u", i);
		error = set_bytes(fds[i & 1], key, value, sizeof(value));
		if (error)
			break;
	}
	if (error != -ENOSPC)
		return 2;
	for (j = 0; j < 2; j++) {
		if (stats(fds[j], &found) || found.bytes_max < 2 * QUOTA)
			return 3;
		bytes += found.bytes;
	}
	if (bytes > QUOTA || bytes < QUOTA * 3 / 4)
		return 4;
	/* One store can take what the other one has freed. */
	close(fds[1]);
	return set_bytes(fds[0], key, value, sizeof(value)) ? 5 : 0;
}

static int destroy_filled(void *ignored)
{
	(void)ignored;
	return destroy("filled");
}

static const char *a_user_takes_no_more_than_he_may(void)
{
	const char *wrong = reload("user_bytes_max=4194304");
	int error, free_count, left;

	if (wrong)
		return wrong;
	free_count = as(OWNER, count_stores, NULL);
	DEMAND(free_count > 2 && free_count < 17, "%d stores in 4 MiB",
	       free_count);
	/* Closed and refused stores are freed to the last byte. */
	left = as(OWNER, count_stores, NULL);
	DEMAND(left == free_count, "%d stores, and then %d", free_count, left);
	error = as(OWNER, fill_two, NULL);
	DEMAND(!error, "filling two: %d", error);
	left = as(OWNER, count_stores, NULL);
	DEMAND(left < free_count, "%d stores beside one that is full", left);
	/* It does not count for other users, and root has no limit. */
	left = as(OTHER, count_stores, NULL);
	DEMAND(left == free_count, "another has %d stores", left);
	left = as(ROOT, count_stores, NULL);
	DEMAND(left == 64, "root has %d stores", left);
	error = as(OWNER, destroy_filled, NULL);
	DEMAND(!error, "destroying it: %d", error);
	left = as(OWNER, count_stores, NULL);
	DEMAND(left == free_count, "%d stores afterwards", left);
	return reload("");
}

struct meeting {
	int to_root[2], to_user[2];
};

/* Counts as another id of the user's own namespace. */
static int count_as_another(void *argument)
{
	struct meeting *meeting = argument;
	char byte;

	if (unshare(CLONE_NEWUSER) || write(meeting->to_root[1], "x", 1) != 1 ||
	    read(meeting->to_user[0], &byte, 1) != 1)
		return 254;
	if (setresgid(1, 1, 1) || setresuid(1, 1, 1))
		return 253;
	return count_stores(NULL);
}

static const char *who_makes_a_namespace_pays_for_it(void)
{
	const char *wrong = reload("user_bytes_max=4194304");
	struct meeting meeting;
	int error, pid, left, before;
	char path[64], byte;

	if (wrong)
		return wrong;
	error = as(OWNER, fill_two, NULL);
	DEMAND(!error, "filling two: %d", error);
	before = as(OWNER, count_stores, NULL);
	DEMAND(!pipe(meeting.to_root) && !pipe(meeting.to_user), "pipe");
	pid = fork();
	if (!pid) {
		if (setresgid(1000, 1000, 1000) || setresuid(1000, 1000, 1000))
			_exit(255);
		_exit(count_as_another(&meeting));
	}
	DEMAND(read(meeting.to_root[0], &byte, 1) == 1, "no namespace");
	snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
	DEMAND(tell(path, "0 100000 10\n"), "%s: %s", path, strerror(errno));
	snprintf(path, sizeof(path), "/proc/%d/gid_map", pid);
	DEMAND(tell(path, "0 100000 10\n"), "%s: %s", path, strerror(errno));
	DEMAND(write(meeting.to_user[1], "x", 1) == 1, "pipe");
	left = reap(pid) >> 8;
	DEMAND(left == before, "another id has %d stores, his own %d", left,
	       before);
	error = destroy("filled");
	DEMAND(!error, "destroying it: %d", error);
	return reload("");
}

static int make_by_number(void *number)
{
	int error, fd = device_for(O_RDWR);
	char name[24];

	snprintf(name, sizeof(name), "number-%d", *(int *)number);
	error = attach(fd, name, LLDS_CREATE, 0600);
	close(fd);
	return error;
}

static const char *there_are_so_many_names(void)
{
	const char *wrong = reload("stores_max=3");
	int error, i;
	char name[24];

	if (wrong)
		return wrong;
	for (i = 0; i < 3; i++) {
		error = as(i % 2 ? OWNER : OTHER, make_by_number, &i);
		DEMAND(!error, "number %d: %d", i, error);
	}
	error = as(OWNER, make_by_number, &i);
	DEMAND(error == ENFILE, "the fourth: %d", error);
	/* A refused call leaves no store; root is not refused. */
	error = make_by_number(&i);
	DEMAND(!error, "the fourth by root: %d", error);
	for (i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "number-%d", i);
		error = destroy(name);
		DEMAND(!error, "destroying %s: %d", name, error);
	}
	i = 0;
	error = as(OWNER, make_by_number, &i);
	DEMAND(!error, "when there were none: %d", error);
	error = destroy("number-0");
	DEMAND(!error, "destroying it: %d", error);
	return reload("");
}

static const char *unload_is_refused_while_there_is_a_name(void)
{
	int error, fd = device(), i;

	error = attach(fd, "stays", LLDS_CREATE, 0600);
	DEMAND(!error, "making it: %d", error);
	close(fd);
	for (i = 0; i < 3; i++) {
		error = unload("llds");
		DEMAND(error == EAGAIN, "unloading gave %d", error);
	}
	error = destroy("stays");
	DEMAND(!error, "destroying it: %d", error);
	return reload("");
}

/* A thread that creates, uses and destroys a few names. */
static void *make_and_destroy(void *seed)
{
	static const char *const names[] = { "one", "two", "three" };
	uint64_t state = (uintptr_t)seed;
	unsigned long i, rounds = number("attaches", 1000);
	char room[1024];
	struct llds_list found;

	for (i = 0; i < rounds; i++) {
		const uint64_t random = next_random(&state);
		const char *name = names[random % 3];
		int error, fd = device();

		switch (random >> 8 & 3) {
		case 0:
			error = destroy_bytes(fd, name, strlen(name));
			if (error == ENOENT)
				error = 0;
			break;
		case 1:
			error = list(fd, room, sizeof(room), NULL, 0, &found);
			if (found.count > 3 || found.more)
				error = EPROTO;
			break;
		default:
			error = attach(fd, name, LLDS_CREATE, 0600);
			/* Other threads write the same pair. */
			if (!error)
				error = set(fd, "name", name);
			if (!error)
				error = means(fd, "name", name);
		}
		close(fd);
		if (error) {
			note("round %lu, %s: %d", i, name, error);
			return seed;
		}
	}
	return NULL;
}

static const char *many_make_and_destroy_at_once(void)
{
	enum { THREADS = 4 };
	pthread_t threads[THREADS];
	uintptr_t i;
	void *failed;

	for (i = 0; i < THREADS; i++)
		DEMAND(!pthread_create(&threads[i], NULL, make_and_destroy,
				       (void *)(i + 1)),
		       "pthread_create");
	for (i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &failed);
		DEMAND(!failed, "thread %lu", (unsigned long)i);
	}
	destroy("one");
	destroy("two");
	destroy("three");
	/* Reloading succeeds only if no store has a name or is open. */
	return reload("");
}

/* Two threads, a barrier, and the number of stores that the user can make. */
struct race {
	pthread_barrier_t barrier;
	unsigned long rounds;
	int free_count;
};

static void *create_the_same(void *given)
{
	struct race *race = given;
	unsigned long i;
	int error = 0;

	for (i = 0; i < race->rounds; i++) {
		int fd = device_for(O_RDWR);

		pthread_barrier_wait(&race->barrier);
		if (!error)
			error = attach(fd, "raced", LLDS_CREATE, 0600);
		close(fd);
		/* Also after an error, so that the other one does not wait. */
		pthread_barrier_wait(&race->barrier);
		destroy("raced");
	}
	return (void *)(intptr_t)error;
}

/* The user has memory for one more store, and two threads create it. */
static int race_for_the_last(void *given)
{
	struct llds_stats found;
	struct race *race = given;
	pthread_t other;
	void *failed;
	int i;

	for (i = 1; i < race->free_count; i++)
		if (stats(device_for(O_RDWR), &found))
			return 254;
	if (pthread_barrier_init(&race->barrier, NULL, 2) ||
	    pthread_create(&other, NULL, create_the_same, race))
		return 255;
	i = (intptr_t)create_the_same(race);
	pthread_join(other, &failed);
	return i ? i : (intptr_t)failed;
}

static const char *two_who_create_one_store_both_get_it(void)
{
	const char *wrong = reload("user_bytes_max=4194304");
	struct race race = { .rounds = number("attaches", 1000) };
	int error;

	if (wrong)
		return wrong;
	race.free_count = as(OWNER, count_stores, NULL);
	DEMAND(race.free_count > 2 && race.free_count < 17,
	       "%d stores in 4 MiB", race.free_count);
	error = as(OWNER, race_for_the_last, &race);
	DEMAND(!error, "%d", error);
	return reload("");
}

#define GROUPS "/tmp/groups"
#define GROUP GROUPS "/llds"
#define GROUP_BYTES (12 << 20)

static long of_group(const char *file)
{
	char path[64];

	snprintf(path, sizeof(path), GROUP "/%s", file);
	return strtol(content(path), NULL, 10);
}

/* Fills a store, which the root group has created, in the group. */
static int fill_in_the_group(void)
{
	char key[16], value[100] = { 0 };
	int error, fd = device();
	unsigned long i;

	if (attach(fd, "grouped", 0, 0) ||
	    !tell(GROUP "/cgroup.procs", "0"))
		return 255;
	/* Short runs, which allocate no memory for buffers. */
	for (i = 0; i < 1000000; i++) {
		snprintf(key, sizeof(key), "%lu", i);
		error = set_bytes(fd, key, value, sizeof(value));
		if (error)
			return error == -ENOMEM ? 0 : 1;
	}
	return 2;
}

static const char *a_control_group_pays_and_refuses(void)
{
	int error, fd = device(), status, pid;
	long before, charged;
	char limit[32];

	mkdir(GROUPS, 0755);
	if (mount("cgroup2", GROUPS, "cgroup2", 0, NULL))
		return skip("no control groups: %s", strerror(errno));
	if (!tell(GROUPS "/cgroup.subtree_control", "+memory")) {
		umount(GROUPS);
		return skip("no control groups for memory");
	}
	snprintf(limit, sizeof(limit), "%u", GROUP_BYTES);
	DEMAND(!mkdir(GROUP, 0755) && tell(GROUP "/memory.max", limit),
	       "no group: %s", strerror(errno));
	error = attach(fd, "grouped", LLDS_CREATE, 0600);
	if (!error)
		error = set(fd, "by whom", "root");
	DEMAND(!error, "making it: %d", error);
	before = of_group("memory.current");
	pid = fork();
	if (!pid)
		_exit(fill_in_the_group());
	status = reap(pid);
	DEMAND(!status, "the process that filled it ended with %#x", status);
	/* After its end, the group is still charged for its pairs. */
	charged = of_group("memory.current") - before;
	DEMAND(charged > GROUP_BYTES / 2, "the group pays for %ld bytes",
	       charged);
	DEMAND(!means(fd, "by whom", "root"), "what was there is gone");
	error = set(fd, "afterwards", "more, outside of the group");
	DEMAND(!error, "outside of the group: %d", error);
	error = destroy("grouped");
	DEMAND(!error, "destroying it: %d", error);
	close(fd);
	charged = of_group("memory.current") - before;
	DEMAND(charged < GROUP_BYTES / 4, "it still pays for %ld bytes",
	       charged);
	DEMAND(!rmdir(GROUP) && !umount(GROUPS), "%s", strerror(errno));
	return NULL;
}

const struct check quota_checks[] = {
	{ "a_user_takes_no_more_than_he_may",
	  a_user_takes_no_more_than_he_may },
	{ "who_makes_a_namespace_pays_for_it",
	  who_makes_a_namespace_pays_for_it },
	{ "there_are_so_many_names", there_are_so_many_names },
	{ "unload_is_refused_while_there_is_a_name",
	  unload_is_refused_while_there_is_a_name },
	{ "many_make_and_destroy_at_once", many_make_and_destroy_at_once },
	{ "two_who_create_one_store_both_get_it",
	  two_who_create_one_store_both_get_it },
	{ "a_control_group_pays_and_refuses",
	  a_control_group_pays_and_refuses },
	{}
};

// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Stores with names: sharing, permissions, valid names, and their lifetime.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "named.h"

#define EXCLUSIVELY (LLDS_CREATE | LLDS_EXCLUSIVE)

static int find_and_answer(void *name)
{
	int error, fd = device_for(O_RDWR);

	error = attach(fd, name, 0, 0);
	if (!error)
		error = means(fd, "question", "6 times 9");
	return error ? error : set(fd, "answer", "42");
}

static const char *a_store_outlives_its_processes(void)
{
	const char *wrong = let_all_in();
	int error, fd = device();

	if (wrong)
		return wrong;
	error = attach(fd, "outlives", EXCLUSIVELY, 0666);
	DEMAND(!error, "making it: %d", error);
	error = set(fd, "question", "6 times 9");
	DEMAND(!error, "a set: %d", error);
	error = as(OTHER, find_and_answer, "outlives");
	DEMAND(!error, "while it is open, another got %d", error);
	error = means(fd, "answer", "42");
	DEMAND(!error, "what another has set: %d", error);
	close(fd);
	/* It is open nowhere now. */
	error = as(MEMBER, find_and_answer, "outlives");
	DEMAND(!error, "when it was open nowhere: %d", error);
	error = destroy("outlives");
	DEMAND(!error, "destroying it: %d", error);
	error = as(OTHER, find_and_answer, "outlives");
	DEMAND(error == ENOENT, "when it was gone: %d", error);
	return NULL;
}

static const char *an_attached_device_is_inherited(void)
{
	int error, pid, fd = device();

	error = attach(fd, "inherited", EXCLUSIVELY, 0600);
	DEMAND(!error, "making it: %d", error);
	pid = fork();
	if (!pid) {
		error = set(fd, "from", "the child");
		close(fd);
		_exit(error != 0);
	}
	DEMAND(!reap(pid), "the child could not set");
	error = means(fd, "from", "the child");
	DEMAND(!error, "what the child has set: %d", error);
	error = destroy("inherited");
	DEMAND(!error, "destroying it: %d", error);
	pid = fork();
	if (!pid)
		_exit(means(fd, "from", "the child") != 0);
	close(fd);
	DEMAND(!reap(pid), "it went before the child had closed it");
	return NULL;
}

static const char *a_device_is_about_one_store(void)
{
	struct llds_stats found;
	int error, fd = device();

	error = attach(fd, "one", EXCLUSIVELY, 0600);
	DEMAND(!error, "making it: %d", error);
	error = attach(fd, "one", 0, 0);
	DEMAND(error == EBUSY, "once more: %d", error);
	error = attach(fd, "other", LLDS_CREATE, 0600);
	DEMAND(error == EBUSY, "another: %d", error);
	error = destroy("other");
	DEMAND(error == ENOENT, "but it was made: %d", error);
	close(fd);
	fd = device();
	error = set(fd, "key", "value");
	DEMAND(!error, "a set: %d", error);
	error = attach(fd, "one", 0, 0);
	DEMAND(error == EBUSY, "after a run: %d", error);
	close(fd);
	fd = device();
	error = stats(fd, &found);
	DEMAND(!error, "the statistics: %d", error);
	error = attach(fd, "one", 0, 0);
	DEMAND(error == EBUSY, "after the statistics: %d", error);
	close(fd);
	/* A failed attach leaves the device free. */
	fd = device();
	error = attach(fd, "none", 0, 0);
	DEMAND(error == ENOENT, "none: %d", error);
	error = attach(fd, "one", EXCLUSIVELY, 0600);
	DEMAND(error == EEXIST, "exclusively: %d", error);
	error = attach(fd, "one", LLDS_CREATE, 0);
	DEMAND(!error, "the existing store: %d", error);
	error = means(fd, "key", "value");
	DEMAND(error == -1, "it has the pairs of another store: %d", error);
	error = destroy("one");
	DEMAND(!error, "destroying it: %d", error);
	return NULL;
}

static int make_exclusively(void *argument)
{
	int *pipes = argument, fd = device_for(O_RDWR);
	char go;

	/* All begin when the other end of the pipe is closed. */
	close(pipes[1]);
	if (read(pipes[0], &go, 1))
		return 255;
	return attach(fd, "raced", EXCLUSIVELY, 0666);
}

static const char *one_of_many_makes_it(void)
{
	unsigned long i, rounds = number("races", 100);
	enum { RACERS = 3 };

	for (i = 0; i < rounds; i++) {
		int pids[RACERS], pipes[2], j, error, made = 0;

		DEMAND(!pipe(pipes), "pipe");
		for (j = 0; j < RACERS; j++) {
			pids[j] = fork();
			if (!pids[j])
				_exit(make_exclusively(pipes));
		}
		close(pipes[0]);
		close(pipes[1]);
		for (j = 0; j < RACERS; j++) {
			error = reap(pids[j]) >> 8;
			DEMAND(!error || error == EEXIST, "one got %d", error);
			made += !error;
		}
		DEMAND(made == 1, "%d have made it", made);
		error = destroy("raced");
		DEMAND(!error, "destroying it: %d", error);
	}
	return NULL;
}

/* Creates the store of a name, opens it, and destroys it. */
static const char *is_a_name(const void *name, uint32_t bytes)
{
	int error, fd = device(), other = device();

	error = attach_bytes(fd, name, bytes, EXCLUSIVELY, 0600, 0);
	DEMAND(!error, "making it: %d", error);
	error = attach_bytes(other, name, bytes, 0, 0, 0);
	DEMAND(!error, "finding it: %d", error);
	error = destroy_bytes(fd, name, bytes);
	DEMAND(!error, "destroying it: %d", error);
	error = destroy_bytes(fd, name, bytes);
	DEMAND(error == ENOENT, "destroying it twice: %d", error);
	close(fd);
	close(other);
	return NULL;
}

/* Checks that all commands refuse a name. */
static const char *is_no_name(const void *name, uint32_t bytes)
{
	struct llds_list found;
	int error, fd = device();

	error = attach_bytes(fd, name, bytes, LLDS_CREATE, 0600, 0);
	DEMAND(error == EINVAL, "%u bytes: attaching gave %d", bytes, error);
	error = destroy_bytes(fd, name, bytes);
	DEMAND(error == EINVAL, "%u bytes: destroying gave %d", bytes, error);
	if (bytes) {
		error = list(fd, &found, 0, name, bytes, &found);
		DEMAND(error == EINVAL, "%u bytes: a list gave %d", bytes,
		       error);
	}
	close(fd);
	return NULL;
}

static const char *names_have_any_byte_but_0(void)
{
	unsigned char name[LLDS_NAME_BYTES_MAX + 1];
	const char *wrong = NULL;
	unsigned int byte, i;

	for (byte = 1; !wrong && byte < 256; byte++) {
		name[0] = byte;
		wrong = is_a_name(name, 1);
	}
	memset(name, 0xff, sizeof(name));
	if (!wrong)
		wrong = is_a_name(name, LLDS_NAME_BYTES_MAX);
	if (!wrong)
		wrong = is_a_name("/", 1);
	if (!wrong)
		wrong = is_a_name("../\n\x01 \xc3\x28", 8);
	if (!wrong)
		wrong = is_no_name(name, 0);
	if (!wrong)
		wrong = is_no_name(name, LLDS_NAME_BYTES_MAX + 1);
	if (!wrong)
		wrong = is_no_name(name, ~0U);
	for (i = 0; !wrong && i < LLDS_NAME_BYTES_MAX; i += 127) {
		memset(name, 'n', sizeof(name));
		name[i] = 0;
		wrong = is_no_name(name, LLDS_NAME_BYTES_MAX);
	}
	return wrong;
}

static const char *names_are_told_apart(void)
{
	static const char *const names[] = { "a", "aa", "aaa", "ab", "a\xff",
					     "A", "b", "a " };
	enum { NAMES = sizeof(names) / sizeof(*names) };
	int fds[NAMES], error;
	unsigned int i;

	for (i = 0; i < NAMES; i++) {
		fds[i] = device();
		error = attach(fds[i], names[i], EXCLUSIVELY, 0600);
		DEMAND(!error, "'%s': %d", names[i], error);
		error = set(fds[i], "name", names[i]);
		DEMAND(!error, "a set in '%s': %d", names[i], error);
		close(fds[i]);
	}
	for (i = 0; i < NAMES; i++) {
		fds[i] = device();
		error = attach(fds[i], names[i], 0, 0);
		DEMAND(!error && !means(fds[i], "name", names[i]),
		       "'%s' is another: %d", names[i], error);
		error = destroy(names[i]);
		DEMAND(!error, "destroying '%s': %d", names[i], error);
	}
	return NULL;
}

/* As who restores a store does, whose device keeps it when its name has gone. */
static const char *a_name_is_removed_for_one_store(void)
{
	struct llds_destroy destroyed = { .name = (uintptr_t)"one-store",
					  .name_bytes = 9,
					  .flags = LLDS_ATTACHED };
	int error, fd = device(), other = device(), private = device();

	error = attach(fd, "one-store", EXCLUSIVELY, 0666);
	DEMAND(!error, "making it: %d", error);
	error = set(private, "key", "value");
	DEMAND(!error, "a set: %d", error);
	error = command(private, LLDS_IOC_DESTROY, (uintptr_t)&destroyed);
	DEMAND(error == ENOENT, "by a device of another store: %d", error);
	error = destroy("one-store");
	DEMAND(!error, "destroying it: %d", error);
	error = attach(other, "one-store", EXCLUSIVELY, 0666);
	DEMAND(!error, "making another: %d", error);
	error = command(fd, LLDS_IOC_DESTROY, (uintptr_t)&destroyed);
	DEMAND(error == ENOENT, "the name of another store: %d", error);
	error = command(other, LLDS_IOC_DESTROY, (uintptr_t)&destroyed);
	DEMAND(!error, "its own name: %d", error);
	error = command(other, LLDS_IOC_DESTROY, (uintptr_t)&destroyed);
	DEMAND(error == ENOENT, "twice: %d", error);
	close(private);
	close(other);
	close(fd);
	return NULL;
}

static const char *what_is_not_known_is_refused(void)
{
	struct llds_attach asked = { .name = (uintptr_t)"unknown",
				     .name_bytes = 7,
				     .flags = LLDS_CREATE };
	struct llds_destroy destroyed = { .name = (uintptr_t)"unknown",
					  .name_bytes = 7 };
	const struct llds_attach good = asked;
	unsigned int bit;
	int error, fd = device();

	for (bit = 0; bit < 32; bit++) {
		asked.flags = LLDS_CREATE | 1U << bit;
		if (bit > 2) {
			error = command(fd, LLDS_IOC_ATTACH, (uintptr_t)&asked);
			DEMAND(error == EINVAL, "flag %u: %d", bit, error);
		}
		asked = good;
		asked.mode = 1U << bit;
		if (!(asked.mode & 0666)) {
			error = command(fd, LLDS_IOC_ATTACH, (uintptr_t)&asked);
			DEMAND(error == EINVAL, "mode %#x: %d", asked.mode,
			       error);
		}
		asked = good;
		asked.uid = 1U << bit;
		error = command(fd, LLDS_IOC_ATTACH, (uintptr_t)&asked);
		DEMAND(error == EINVAL, "user %u: %d", bit, error);
		asked = good;
		destroyed.flags = 1U << bit;
		error = command(fd, LLDS_IOC_DESTROY, (uintptr_t)&destroyed);
		DEMAND(error == (bit == 2 || bit == 3 ? ENOENT : EINVAL),
		       "destroying, flag %u: %d", bit, error);
		destroyed.flags = 0;
		destroyed.uid = 1U << bit;
		error = command(fd, LLDS_IOC_DESTROY, (uintptr_t)&destroyed);
		DEMAND(error == EINVAL, "destroying, user %u: %d", bit, error);
		destroyed.uid = 0;
		destroyed.reserved = 1U << bit;
		error = command(fd, LLDS_IOC_DESTROY, (uintptr_t)&destroyed);
		DEMAND(error == EINVAL, "reserved %u: %d", bit, error);
		destroyed.reserved = 0;
	}
	error = attach(fd, "unknown", LLDS_EXCLUSIVE, 0600);
	DEMAND(error == EINVAL, "exclusive alone: %d", error);
	error = attach(fd, "unknown", 0, 0);
	DEMAND(error == ENOENT, "something was made: %d", error);
	return NULL;
}

/* Makes "payroll", as a shared name, and tries it as a name of the owner. */
static int squat(void *unused)
{
	int error, fd = device_for(O_RDWR);

	(void)unused;
	error = attach(fd, "payroll", EXCLUSIVELY, 0666);
	if (error)
		return error;
	error = set(fd, "whose", "another's");
	if (error)
		return error;
	close(fd);
	error = attach_of(device_for(O_RDWR), OWNER.uid, "payroll", LLDS_CREATE,
			  0666, NULL);
	return error == EPERM ? 0 : 200;
}

/* Opens the own "payroll": nobody else can have made it. */
static int make_own(void *unused)
{
	unsigned int owner = 7;
	int error, fd = device_for(O_RDWR);

	(void)unused;
	error = attach_of(fd, OWNER.uid, "payroll", 0, 0, NULL);
	if (error != ENOENT)
		return 200;
	error = attach_of(fd, OWNER.uid, "payroll", EXCLUSIVELY, 0644, &owner);
	if (!error)
		error = set(fd, "whose", "mine");
	return error ? error : owner == OWNER.uid ? 0 : 201;
}

/* Reads the owner's "payroll", and tries to take its name away. */
static int look_at_it(void *unused)
{
	unsigned int owner = 7;
	int error, fd = device_for(O_RDONLY);

	(void)unused;
	error = attach_of(fd, OWNER.uid, "payroll", LLDS_CREATE, 0666, &owner);
	if (error)
		return error;
	if (owner != OWNER.uid || means(fd, "whose", "mine"))
		return 200;
	error = destroy_of(device_for(O_RDWR), OWNER.uid, "payroll");
	return error == EACCES ? 0 : 201;
}

static const char *nobody_takes_the_name_of_another(void)
{
	struct {
		struct llds_listed listed;
		char name[8];
	} room[4];
	const char *wrong = let_all_in();
	struct llds_list found;
	unsigned int owner = 7;
	int error, fd;

	if (wrong)
		return wrong;
	error = as(OTHER, squat, NULL);
	DEMAND(!error, "another user: %d", error);
	error = as(OWNER, make_own, NULL);
	DEMAND(!error, "the user: %d", error);
	error = as(OTHER, look_at_it, NULL);
	DEMAND(!error, "another user, who may read it: %d", error);
	/* The shared name is the other store, of another owner. */
	fd = device();
	error = attach_of(fd, OTHER.uid, "payroll", 0, 0, NULL);
	DEMAND(error == ENOENT, "a name of the other user: %d", error);
	error = attach(fd, "payroll", 0, 0);
	DEMAND(!error && !means(fd, "whose", "another's"),
	       "the shared name: %d", error);
	fd = device();
	error = list(fd, room, sizeof(room), NULL, 0, &found);
	DEMAND(!error && found.count == 2, "%u in the list: %d", found.count,
	       error);
	DEMAND(room[0].listed.uid == OTHER.uid && !room[0].listed.flags,
	       "the shared name is of %u", room[0].listed.uid);
	DEMAND(room[1].listed.uid == OWNER.uid &&
		       room[1].listed.flags == LLDS_OF_USER,
	       "the other name is of %u", room[1].listed.uid);
	found = (struct llds_list){ .room = (uintptr_t)room,
				    .room_bytes = sizeof(room),
				    .after = (uintptr_t)"payroll",
				    .after_bytes = 7,
				    .after_flags = LLDS_OF_USER,
				    .after_uid = OWNER.uid - 1 };
	error = command(fd, LLDS_IOC_LIST, (uintptr_t)&found);
	DEMAND(!error && found.count == 1, "%u after a user before: %d",
	       found.count, error);
	found.room_bytes = sizeof(room);
	found.after_uid = OWNER.uid;
	error = command(fd, LLDS_IOC_LIST, (uintptr_t)&found);
	DEMAND(!error && !found.count, "%u after the last: %d", found.count,
	       error);
	found.after_flags = 0;
	error = command(fd, LLDS_IOC_LIST, (uintptr_t)&found);
	DEMAND(error == EINVAL, "a user without the flag: %d", error);
	/* Not even root makes a name of another. */
	error = attach_of(fd, OTHER.uid, "payroll", LLDS_CREATE, 0600, &owner);
	DEMAND(error == EPERM && owner == OTHER.uid, "as root: %d", error);
	error = destroy_of(fd, OWNER.uid, "payroll");
	if (!error)
		error = destroy("payroll");
	DEMAND(!error, "destroying: %d", error);
	return NULL;
}

/* One store for each mode: read and write bits of owner, group, others. */
#define MODES 64

static unsigned int mode_of(unsigned int i)
{
	return (i >> 4 & 3) << 7 | (i >> 2 & 3) << 4 | (i & 3) << 1;
}

static char *name_of(unsigned int mode)
{
	static char name[16];

	snprintf(name, sizeof(name), "mode-%03o", mode);
	return name;
}

static int make_modes(void *ignored)
{
	unsigned int i;

	(void)ignored;
	for (i = 0; i < MODES; i++) {
		int error, fd = device_for(O_RDWR);

		/* Its creator may use it, with any mode. */
		error = attach(fd, name_of(mode_of(i)), EXCLUSIVELY,
			       mode_of(i));
		if (!error)
			error = set(fd, "key", "value");
		if (!error)
			error = means(fd, "key", "value");
		if (error)
			return error;
		close(fd);
	}
	return 0;
}

static int destroy_modes(void *ignored)
{
	unsigned int i;
	int error;

	(void)ignored;
	for (i = 0; i < MODES; i++) {
		error = destroy(name_of(mode_of(i)));
		if (error)
			return error;
	}
	return 0;
}

/* Instead of a shift: any mode permits everything. */
#define ANYTHING -1

/* Opens each store for reading, for writing and for both. */
static int try_modes(void *argument)
{
	static const struct {
		int opened, wants;
	} ways[] = { { O_RDONLY, 4 }, { O_WRONLY, 2 }, { O_RDWR, 6 } };
	const int shift = *(int *)argument;
	unsigned int i, way;

	for (i = 0; i < 3 * MODES; i++) {
		const unsigned int mode = mode_of(i / 3);
		int error, expected = 0, fd;

		way = i % 3;
		if (shift != ANYTHING && ways[way].wants & ~(mode >> shift))
			expected = EACCES;
		fd = device_for(ways[way].opened);
		error = attach(fd, name_of(mode), 0, 0);
		if (error != expected) {
			note("mode %03o opened for %o gave %d, not %d", mode,
			     ways[way].wants, error, expected);
			return 1;
		}
		/* After attaching, only the access of the device matters. */
		if (!error &&
		    (set(fd, "key", "value") !=
			     (ways[way].wants & 2 ? 0 : EBADF) ||
		     means(fd, "key", "value") !=
			     (ways[way].wants & 4 ? 0 : EBADF))) {
			note("mode %03o opened for %o does something else",
			     mode, ways[way].wants);
			return 2;
		}
		close(fd);
	}
	return 0;
}

/* Root without CAP_DAC_OVERRIDE: only the ids decide. */
static int try_modes_without_power(void *argument)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3,
						 0 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data))
		return 255;
	data[0].effective &= ~(1U << CAP_DAC_OVERRIDE);
	if (syscall(SYS_capset, &head, data))
		return 255;
	return try_modes(argument);
}

/* All capabilities, but only in the user's own namespace. */
static int try_modes_in_a_namespace(void *argument)
{
	if (unshare(CLONE_NEWUSER))
		return 254;
	return try_modes(argument);
}

static const char *mode_decides_who_may(void)
{
	static const struct {
		const char *who;
		struct user user;
		int (*act)(void *);
		int shift;
	} tries[] = {
		{ "the owner", { 1000, 1000, 1000 }, try_modes, 6 },
		{ "the owner elsewhere", { 1000, 7, 7 }, try_modes, 6 },
		{ "a member", { 1001, 1001, 1000 }, try_modes, 3 },
		{ "one of the group", { 1001, 1000, 7 }, try_modes, 3 },
		{ "another", { 1002, 1002, 1002 }, try_modes, 0 },
		{ "root", { 0, 0, 0 }, try_modes, ANYTHING },
		{ "root without power", { 0, 0, 0 }, try_modes_without_power,
		  0 },
		{ "another in a namespace", { 1002, 1002, 1002 },
		  try_modes_in_a_namespace, 0 },
		{ "the owner in a namespace", { 1000, 1000, 1000 },
		  try_modes_in_a_namespace, 6 },
	};
	const char *wrong = let_all_in();
	unsigned int i;
	int error;

	if (wrong)
		return wrong;
	error = as(OWNER, make_modes, NULL);
	DEMAND(!error, "making them: %d", error);
	for (i = 0; i < sizeof(tries) / sizeof(*tries); i++) {
		int shift = tries[i].shift;

		error = as(tries[i].user, tries[i].act, &shift);
		DEMAND(!error, "%s: %d", tries[i].who, error);
	}
	error = as(OWNER, destroy_modes, NULL);
	DEMAND(!error, "destroying them: %d", error);
	return NULL;
}

static int destroy_in_a_namespace(void *name)
{
	return unshare(CLONE_NEWUSER) ? 254 : destroy(name);
}

static int destroy_by_name(void *name)
{
	return destroy(name);
}

static int destroy_without_writing(void *name)
{
	return destroy_bytes(device_for(O_RDONLY), name, strlen(name));
}

static const char *its_owner_destroys_a_store(void)
{
	const char *wrong = let_all_in();
	int error, fd = device();

	if (wrong)
		return wrong;
	error = as(OWNER, make_modes, NULL);
	DEMAND(!error, "making them: %d", error);
	/* Every user may write to it. */
	error = as(OTHER, destroy_by_name, "mode-666");
	DEMAND(error == EACCES, "another: %d", error);
	error = as(MEMBER, destroy_by_name, "mode-666");
	DEMAND(error == EACCES, "a member: %d", error);
	error = as(OTHER, destroy_in_a_namespace, "mode-666");
	DEMAND(error == EACCES, "in a namespace: %d", error);
	error = as(OWNER, destroy_without_writing, "mode-666");
	DEMAND(error == EBADF, "through a device to be read: %d", error);
	error = attach(fd, "mode-666", 0, 0);
	DEMAND(!error, "it is gone: %d", error);
	error = as(OWNER, destroy_by_name, "mode-000");
	DEMAND(!error, "the owner: %d", error);
	error = destroy("mode-666");
	DEMAND(!error, "root: %d", error);
	close(fd);
	fd = device();
	error = attach(fd, "mode-000", EXCLUSIVELY, 0600);
	DEMAND(!error, "the name is not free: %d", error);
	close(fd);
	fd = device();
	error = attach(fd, "mode-666", EXCLUSIVELY, 0600);
	DEMAND(!error, "the name is not free: %d", error);
	error = destroy_modes(NULL);
	DEMAND(!error, "destroying them: %d", error);
	return NULL;
}

/* Access mode 3 of open(): neither reads nor writes, but requires both. */
#define O_NEITHER 3

static const char *a_device_open_for_nothing_tells_nothing(void)
{
	struct llds_stats found;
	int error, fd = device(), other = device_for(O_NEITHER);

	error = attach(fd, "nothing", EXCLUSIVELY, 0600);
	DEMAND(!error, "making it: %d", error);
	error = attach(other, "nothing", 0, 0);
	DEMAND(error == EBADF, "attaching gave %d", error);
	error = means(other, "key", "value");
	DEMAND(error == EBADF, "a get gave %d", error);
	error = set(other, "key", "value");
	DEMAND(error == EBADF, "a set gave %d", error);
	error = stats(other, &found);
	DEMAND(!error && !found.keys, "its own store: %d", error);
	error = destroy("nothing");
	DEMAND(!error, "destroying it: %d", error);
	return NULL;
}

static const char *what_is_destroyed_stays_for_who_has_it(void)
{
	char value[20000] = { 0 };
	int error, fd = device(), late = device(), next = device(), i;
	char key[16];

	error = attach(fd, "destroyed", EXCLUSIVELY, 0600);
	DEMAND(!error, "making it: %d", error);
	error = set(fd, "key", "old");
	DEMAND(!error, "a set: %d", error);
	error = destroy("destroyed");
	DEMAND(!error, "destroying it: %d", error);
	error = attach(late, "destroyed", 0, 0);
	DEMAND(error == ENOENT, "it has its name: %d", error);
	error = attach(next, "destroyed", EXCLUSIVELY, 0600);
	DEMAND(!error, "the name is not free: %d", error);
	error = set(next, "key", "new");
	DEMAND(!error, "a set in the next one: %d", error);
	/* The old store still works, and keeps its pairs. */
	for (i = 0; i < 200; i++) {
		snprintf(key, sizeof(key), "%d", i);
		error = set_bytes(fd, key, value, sizeof(value));
		DEMAND(!error, "a set in the old one: %d", error);
	}
	error = means(fd, "key", "old");
	DEMAND(!error, "the old one: %d", error);
	close(fd);
	error = means(next, "key", "new");
	DEMAND(!error, "the next one: %d", error);
	error = attach(late, "destroyed", 0, 0);
	DEMAND(!error && !means(late, "key", "new"), "another: %d", error);
	error = destroy("destroyed");
	DEMAND(!error, "destroying it: %d", error);
	return NULL;
}

static int use_what_was_given(void *fd)
{
	int error = means(*(int *)fd, "key", "value");

	return error ? error : set(*(int *)fd, "from", "another");
}

/* A descriptor permits access in any process; a name does not. */
static const char *who_is_given_a_descriptor_may(void)
{
	const char *wrong = let_all_in();
	int error, fd = device(), again;
	char path[32];

	if (wrong)
		return wrong;
	error = attach(fd, "given", EXCLUSIVELY, 0600);
	if (!error)
		error = set(fd, "key", "value");
	DEMAND(!error, "making it: %d", error);
	error = as(OTHER, use_what_was_given, &fd);
	DEMAND(!error, "another: %d", error);
	error = means(fd, "from", "another");
	DEMAND(!error, "what another has set: %d", error);
	/* Opening it again makes another device. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDWR);
	DEMAND(again >= 0, "%s: %s", path, strerror(errno));
	error = means(again, "key", "value");
	DEMAND(error == -1, "opened once more: %d", error);
	error = destroy("given");
	DEMAND(!error, "destroying it: %d", error);
	return NULL;
}

static int map_and_look(void *name)
{
	int reads = device_for(O_RDONLY), writes = device_for(O_WRONLY);
	const struct llds_header *header;

	if (attach(reads, name, 0, 0) || attach(writes, name, 0, 0))
		return 1;
	if (mmap(NULL, 4096, PROT_READ, MAP_SHARED, writes, LLDS_MAP_HEADER) !=
		    MAP_FAILED || errno != EACCES)
		return 2;
	header = mmap(NULL, 4096, PROT_READ, MAP_SHARED, reads,
		      LLDS_MAP_HEADER);
	if (header == MAP_FAILED)
		return errno;
	if (header->root)
		return 3;
	if (set(writes, "key", "value") || !header->root)
		return 4;
	/* The mapping works without the name and the device. */
	close(reads);
	close(writes);
	if (destroy(name) || !header->root)
		return 5;
	return munmap((void *)header, 4096) ? 6 : 0;
}

static const char *a_store_with_a_name_is_mapped(void)
{
	int error, fd = device();

	error = attach(fd, "mapped", EXCLUSIVELY, 0600);
	DEMAND(!error, "making it: %d", error);
	close(fd);
	error = map_and_look("mapped");
	DEMAND(!error, "looking at it: %d", error);
	return reload("");
}

/* 32-bit programs use the same structs. */
static const char *names_are_for_32_bit_programs_too(void)
{
	struct {
		struct llds_attach attach;
		struct llds_destroy destroy;
		struct llds_list list;
		struct llds_stats stats;
		char name[8], room[256];
	} *page = low_page();
	int error, fd = device();

	if (is_user_mode())
		return skip(NO_COMPAT);
	strcpy(page->name, "narrow");
	page->attach = (struct llds_attach){ .name = (uintptr_t)page->name,
					     .name_bytes = 6,
					     .mode = 0600,
					     .flags = EXCLUSIVELY };
	page->destroy = (struct llds_destroy){ .name = (uintptr_t)page->name,
					       .name_bytes = 6 };
	page->list = (struct llds_list){ .room = (uintptr_t)page->room,
					 .room_bytes = sizeof(page->room) };
	error = command_compat(fd, LLDS_IOC_ATTACH, (uintptr_t)&page->attach);
	DEMAND(!error, "attaching: %d", error);
	error = command_compat(fd, LLDS_IOC_STATS, (uintptr_t)&page->stats);
	DEMAND(!error && page->stats.value_bytes_max == 16 << 20,
	       "statistics: %d", error);
	error = command_compat(fd, LLDS_IOC_LIST, (uintptr_t)&page->list);
	DEMAND(!error && page->list.count == 1 &&
		       !memcmp(page->room + sizeof(struct llds_listed),
			       "narrow", 6),
	       "a list: %d", error);
	error = command_compat(fd, LLDS_IOC_DESTROY,
			       (uintptr_t)&page->destroy);
	DEMAND(!error, "destroying: %d", error);
	return NULL;
}

static const char *statistics_tell_what_there_is(void)
{
	struct llds_stats found, before;
	int error, fd = device(), other = device();

	error = attach_bytes(fd, "counted", 7, EXCLUSIVELY, 0600, 8 << 20);
	DEMAND(!error, "making it: %d", error);
	error = stats(fd, &before);
	DEMAND(!error && !before.keys && !before.pair_bytes && before.bytes &&
		       before.bytes_max == 8 << 20 &&
		       before.value_bytes_max == 16 << 20 &&
		       !before.reserved[0] && !before.reserved[1] &&
		       !before.reserved[2],
	       "of a store without pairs: %d", error);
	error = set(fd, "key", "value");
	if (!error)
		error = set(fd, "one", "");
	DEMAND(!error, "a set: %d", error);
	error = attach(other, "counted", 0, 0);
	DEMAND(!error, "attaching: %d", error);
	error = stats(other, &found);
	DEMAND(!error && found.keys == 2 && found.pair_bytes == 11 &&
		       found.bytes >= before.bytes,
	       "%llu keys, %llu bytes: %d", (unsigned long long)found.keys,
	       (unsigned long long)found.pair_bytes, error);
	error = attach_bytes(device(), "tiny", 4, EXCLUSIVELY, 0600, 1000);
	DEMAND(error == ENOSPC, "a store of 1,000 bytes: %d", error);
	close(other);
	other = device();
	error = attach_bytes(other, "huge", 4, EXCLUSIVELY, 0600, ~0ULL);
	DEMAND(!error, "a store of more than there may be: %d", error);
	error = stats(other, &found);
	DEMAND(!error && found.bytes_max < 1ULL << 40, "it may take all");
	error = destroy("huge");
	DEMAND(!error, "destroying it: %d", error);
	error = destroy("counted");
	DEMAND(!error, "destroying it: %d", error);
	return NULL;
}

const struct check store_checks[] = {
	{ "a_store_outlives_its_processes", a_store_outlives_its_processes },
	{ "an_attached_device_is_inherited", an_attached_device_is_inherited },
	{ "a_device_is_about_one_store", a_device_is_about_one_store },
	{ "one_of_many_makes_it", one_of_many_makes_it },
	{ "names_have_any_byte_but_0", names_have_any_byte_but_0 },
	{ "names_are_told_apart", names_are_told_apart },
	{ "a_name_is_removed_for_one_store", a_name_is_removed_for_one_store },
	{ "what_is_not_known_is_refused", what_is_not_known_is_refused },
	{ "nobody_takes_the_name_of_another",
	  nobody_takes_the_name_of_another },
	{ "mode_decides_who_may", mode_decides_who_may },
	{ "its_owner_destroys_a_store", its_owner_destroys_a_store },
	{ "a_device_open_for_nothing_tells_nothing",
	  a_device_open_for_nothing_tells_nothing },
	{ "what_is_destroyed_stays_for_who_has_it",
	  what_is_destroyed_stays_for_who_has_it },
	{ "who_is_given_a_descriptor_may", who_is_given_a_descriptor_may },
	{ "a_store_with_a_name_is_mapped", a_store_with_a_name_is_mapped },
	{ "names_are_for_32_bit_programs_too",
	  names_are_for_32_bit_programs_too },
	{ "statistics_tell_what_there_is", statistics_tell_what_there_is },
	{}
};

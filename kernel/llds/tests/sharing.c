// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Sharing a device: inherited and duplicated descriptors, threads, and calls
 * that block inside their copy.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "paused.h"
#include "named.h"

static const char *descriptors_are_inherited(void)
{
	const char *wrong;
	int pid, status, fd = device();

	pid = fork();
	if (!pid) {
		/* The child closes its descriptor; the parent's must stay. */
		wrong = ask_version(fd);
		close(fd);
		_exit(wrong != NULL);
	}
	status = reap(pid);
	DEMAND(!status, "the child could not ask: status %#x", status);
	wrong = ask_version(fd);
	if (wrong)
		return wrong;
	pid = fork();
	if (!pid) {
		/* The end of the parent closes its descriptor. */
		pid = fork();
		if (!pid)
			_exit(ask_version(fd) != NULL);
		close(fd);
		_exit(reap(pid) != 0);
	}
	close(fd);
	status = reap(pid);
	DEMAND(!status, "a grandchild could not ask: status %#x", status);
	return NULL;
}

static const char *descriptors_are_duplicated(void)
{
	int fd = device(), other = dup(fd);
	const char *wrong;

	DEMAND(other >= 0, "dup: %s", strerror(errno));
	close(fd);
	DEMAND(command(fd, LLDS_IOC_VERSION, 0) == EBADF, "closed, but answers");
	wrong = ask_version(other);
	DEMAND(dup2(other, fd) == fd, "dup2: %s", strerror(errno));
	close(other);
	return wrong ? wrong : ask_version(fd);
}

static const char *many_descriptors_are_open(void)
{
	enum { MANY = 1000 };
	const char *wrong = NULL;
	int fds[MANY], i;

	for (i = 0; i < MANY; i++)
		fds[i] = device();
	for (i = MANY - 1; !wrong && i >= 0; i--)
		wrong = ask_version(fds[i]);
	return wrong;
}

static void *ask_often(void *fd)
{
	unsigned long i, asks = number("asks", 5000);

	for (i = 0; i < asks; i++)
		if (ask_version(*(int *)fd))
			return fd;
	return NULL;
}

static const char *threads_ask_at_once(void)
{
	enum { THREADS = 4 };
	pthread_t threads[THREADS];
	int i, fd = device();
	void *failed;

	for (i = 0; i < THREADS; i++)
		DEMAND(!pthread_create(&threads[i], NULL, ask_often, &fd),
		       "pthread_create");
	for (i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &failed);
		DEMAND(!failed, "thread %d got no answer or a wrong one", i);
	}
	return NULL;
}

/*
 * A call that blocks inside its copy from or to PAGE: for the version by
 * default.
 */
struct held {
	int fd, error;
	struct paused paused;
	char *page;
	pthread_t thread;
	unsigned int number;
	const void *argument;
};

static void *call(void *argument)
{
	struct held *held = argument;

	held->error = command(held->fd, held->number,
			      (uintptr_t)held->argument);
	return NULL;
}

/* Prepares a page whose first access blocks. */
static const char *prepare(struct held *held)
{
	const char *wrong = pause_prepare(&held->paused);

	held->fd = device();
	held->page = held->paused.page;
	held->number = LLDS_IOC_VERSION;
	held->argument = held->page;
	return wrong;
}

/* Starts the call, and returns when it is blocked. */
static const char *begin(struct held *held)
{
	DEMAND(!pthread_create(&held->thread, NULL, call, held),
	       "pthread_create");
	return pause_arrive(&held->paused);
}

/* Releases the call, with a page of zeros, and waits for its end. */
static const char *let_go(struct held *held)
{
	const char *wrong = pause_end(&held->paused);

	if (!wrong)
		pthread_join(held->thread, NULL);
	return wrong;
}

static const char *descriptor_is_closed_during_a_call(void)
{
	struct llds_version version;
	struct held held;
	const char *wrong;
	int error, other;

	wrong = prepare(&held);
	if (wrong)
		return wrong;
	wrong = begin(&held);
	if (wrong)
		return wrong;
	DEMAND(!close(held.fd), "close: %s", strerror(errno));
	/* A blocked call must not block others, or this alarm fires. */
	alarm(10);
	other = device();
	wrong = ask_version(other);
	if (wrong)
		return wrong;
	close(other);
	/* Only the call itself keeps the device open now. */
	error = unload("llds");
	DEMAND(error == EAGAIN, "unloading under a call gave %d", error);
	wrong = let_go(&held);
	if (wrong)
		return wrong;
	DEMAND(!held.error, "the call gave %d", held.error);
	memcpy(&version, held.page, sizeof(version));
	DEMAND(version_is_right(&version), "the call returned another version");
	error = unload("llds");
	DEMAND(!error, "unloading afterwards gave %d", error);
	error = load(MODULE, "");
	DEMAND(!error, "loading again gave %d", error);
	return NULL;
}

static const char *process_is_killed_during_a_call(void)
{
	int pipes[2], pid, status, error;
	const char *wrong;
	char arrived = 0;

	DEMAND(!pipe(pipes), "pipe");
	pid = fork();
	if (!pid) {
		struct held held;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (prepare(&held) || begin(&held) ||
		    write(pipes[1], "x", 1) != 1)
			_exit(1);
		pthread_join(held.thread, NULL);
		_exit(2);
	}
	close(pipes[1]);
	DEMAND(read(pipes[0], &arrived, 1) == 1, "the call did not arrive");
	error = unload("llds");
	DEMAND(error == EAGAIN, "unloading under a call gave %d", error);
	kill(pid, SIGKILL);
	status = reap(pid);
	DEMAND(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
	       "the process ended with %#x", status);
	status = device();
	wrong = ask_version(status);
	close(status);
	if (wrong)
		return wrong;
	/* A killed process holds no reference. */
	error = unload("llds");
	DEMAND(!error, "unloading afterwards gave %d", error);
	error = load(MODULE, "");
	DEMAND(!error, "loading again gave %d", error);
	return NULL;
}

/* A list blocks while it is copied to a page, and so does a name. */
static const char *who_is_held_in_a_list_holds_nobody(void)
{
	struct llds_list mine = { .room_bytes = 4096 }, found;
	struct held held;
	const char *wrong = prepare(&held);
	char room[4096];
	int error, fd = device();

	if (wrong)
		return wrong;
	error = attach(fd, "held", LLDS_CREATE, 0600);
	DEMAND(!error, "making it: %d", error);
	mine.room = (uintptr_t)held.page;
	held.number = LLDS_IOC_LIST;
	held.argument = &mine;
	wrong = begin(&held);
	if (wrong)
		return wrong;
	/* Others must not block, or this alarm fires. */
	alarm(20);
	error = destroy("held");
	DEMAND(!error, "destroying: %d", error);
	error = list(fd, room, sizeof(room), NULL, 0, &found);
	DEMAND(!error && !found.count, "another list: %d", error);
	close(fd);
	fd = device();
	error = attach(fd, "held", LLDS_CREATE, 0600);
	DEMAND(!error, "making another: %d", error);
	wrong = let_go(&held);
	if (wrong)
		return wrong;
	DEMAND(!held.error && mine.count == 1, "%u in the list: %d", mine.count,
	       held.error);
	error = destroy("held");
	DEMAND(!error, "destroying: %d", error);
	return NULL;
}

static const char *a_store_is_destroyed_during_a_run(void)
{
	const struct {
		struct llds_op op;
		char key[8];
	} get = { { .code = LLDS_GET, .key_bytes = 3 }, "key" };
	struct llds_run run = { .ops = (uintptr_t)&get,
				.ops_bytes = sizeof(get),
				.answers_bytes = 4096 };
	struct held held;
	const char *wrong = prepare(&held);
	int error;

	if (wrong)
		return wrong;
	error = attach(held.fd, "held", LLDS_CREATE, 0600);
	if (!error)
		error = set(held.fd, "key", "value");
	DEMAND(!error, "making it: %d", error);
	run.answers = (uintptr_t)held.page;
	held.number = LLDS_IOC_RUN;
	held.argument = &run;
	wrong = begin(&held);
	if (wrong)
		return wrong;
	alarm(20);
	error = destroy("held");
	DEMAND(!error, "destroying: %d", error);
	close(held.fd);
	error = unload("llds");
	DEMAND(error == EAGAIN, "unloading under a run gave %d", error);
	wrong = let_go(&held);
	if (wrong)
		return wrong;
	DEMAND(!held.error && !memcmp(held.page + 8, "value", 5),
	       "the run gave %d", held.error);
	return reload("");
}

static const char *process_is_killed_while_it_attaches(void)
{
	struct llds_attach asked = { .name_bytes = 9, .flags = LLDS_CREATE };
	int pipes[2], pid, status, error;
	struct llds_list found;
	char arrived = 0;

	DEMAND(!pipe(pipes), "pipe");
	pid = fork();
	if (!pid) {
		struct held held;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (prepare(&held))
			_exit(1);
		asked.name = (uintptr_t)held.page;
		held.number = LLDS_IOC_ATTACH;
		held.argument = &asked;
		if (begin(&held) || write(pipes[1], "x", 1) != 1)
			_exit(1);
		pthread_join(held.thread, NULL);
		_exit(2);
	}
	close(pipes[1]);
	DEMAND(read(pipes[0], &arrived, 1) == 1, "the call did not arrive");
	kill(pid, SIGKILL);
	status = reap(pid);
	DEMAND(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
	       "the process ended with %#x", status);
	status = device();
	error = list(status, &arrived, 0, NULL, 0, &found);
	close(status);
	DEMAND(!error, "something was made: %d", error);
	return reload("");
}

/* Creates and fills stores in a loop, until it is killed. */
static void make_always(void)
{
	char value[100000] = { 0 };
	unsigned int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		int fd = device();

		if (attach(fd, "killed", LLDS_CREATE, 0600))
			_exit(1);
		for (i = 0; i < 4; i++)
			if (set_bytes(fd, "key", value, sizeof(value) - i))
				_exit(2);
		destroy("killed");
		close(fd);
	}
}

/* A process that is killed at any moment leaves at most the name. */
static const char *process_is_killed_while_it_makes_stores(void)
{
	unsigned long i, kills = number("races", 100);
	uint64_t state = 1;
	volatile int spin;

	for (i = 0; i < kills; i++) {
		int pid = fork(), status, error;
		const char *wrong;

		if (!pid)
			make_always();
		for (spin = next_random(&state) & 0xfffff; spin; spin--)
			;
		kill(pid, SIGKILL);
		status = reap(pid);
		DEMAND(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
		       "it ended with %#x", status);
		error = destroy("killed");
		DEMAND(!error || error == ENOENT, "destroying: %d", error);
		if (i % 10)
			continue;
		wrong = reload("");
		if (wrong)
			return wrong;
	}
	return reload("");
}

const struct check sharing_checks[] = {
	{ "descriptors_are_inherited", descriptors_are_inherited },
	{ "descriptors_are_duplicated", descriptors_are_duplicated },
	{ "many_descriptors_are_open", many_descriptors_are_open },
	{ "threads_ask_at_once", threads_ask_at_once },
	{ "descriptor_is_closed_during_a_call",
	  descriptor_is_closed_during_a_call },
	{ "process_is_killed_during_a_call", process_is_killed_during_a_call },
	{ "who_is_held_in_a_list_holds_nobody",
	  who_is_held_in_a_list_holds_nobody },
	{ "a_store_is_destroyed_during_a_run",
	  a_store_is_destroyed_during_a_run },
	{ "process_is_killed_while_it_attaches",
	  process_is_killed_while_it_attaches },
	{ "process_is_killed_while_it_makes_stores",
	  process_is_killed_while_it_makes_stores },
	{}
};

// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Runs by io_uring: that they do what the others do, from any thread of the
 * kernel that they get to, and that no command means harm. Where there is no
 * io_uring, all of this is skipped.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "paused.h"
#include "line.h"
#include "named.h"
#include "ring.h"

/* Ends the check with the reason why there is no ring, if there is none. */
#define OPEN(ring, entries, flags)                                             \
	do {                                                                   \
		const char *none = ring_open(ring, entries, flags);            \
									       \
		if (none)                                                      \
			return none;                                           \
	} while (0)

/* As they come; and by a worker, whatever they are. */
static const unsigned char ways[] = { 0, IOSQE_ASYNC };
#define WAYS (sizeof(ways) / sizeof(*ways))

/* A set or a get of 8 bytes, its answer, and its run. */
struct one {
	struct llds_op op;
	uint64_t key, value;
	struct llds_answer answer;
	uint64_t found;
	struct llds_run run;
};

static uint64_t key_of(uint64_t i)
{
	return __builtin_bswap64(next_random(&i));
}

static struct llds_run *make_set(struct one *one, uint64_t i)
{
	*one = (struct one){ .op = { .code = LLDS_SET, .key_bytes = 8,
				     .value_bytes = 8 },
			     .key = key_of(i), .value = i };
	one->run = (struct llds_run){ .ops = (uintptr_t)&one->op,
				      .ops_bytes = 32,
				      .answers = (uintptr_t)&one->answer,
				      .answers_bytes = 8 };
	return &one->run;
}

static struct llds_run *make_get(struct one *one, uint64_t i)
{
	*one = (struct one){ .op = { .code = LLDS_GET, .key_bytes = 8 },
			     .key = key_of(i) };
	one->run = (struct llds_run){ .ops = (uintptr_t)&one->op,
				      .ops_bytes = 24,
				      .answers = (uintptr_t)&one->answer,
				      .answers_bytes = 16 };
	return &one->run;
}

/* Whether the operation was done, and a get found that. */
static bool is_done(const struct one *one, uint64_t i)
{
	const bool gets = one->op.code == LLDS_GET;

	return one->run.done == 1 && one->run.done_bytes == one->run.ops_bytes &&
	       one->run.answers_bytes == (gets ? 16 : 8) &&
	       one->answer.status == LLDS_DONE &&
	       one->answer.bytes == (gets ? 8 : 0) && (!gets || one->found == i);
}

static const char *a_command_does_a_run(void)
{
	const uint64_t keys = 2000;
	struct ring ring;
	struct one one;
	int error, fd = device();
	uint64_t i;

	OPEN(&ring, 8, 0);
	for (i = 0; i < 2 * keys; i++) {
		if (i < keys)
			make_set(&one, i);
		else
			make_get(&one, i - keys);
		error = ring_run(&ring, fd, &one.run, ways[i & 1]);
		DEMAND(!error, "%llu: %d", (unsigned long long)i, error);
		DEMAND(is_done(&one, i - keys), "%llu: another answer",
		       (unsigned long long)i);
	}
	/* It is the same store. */
	for (i = 0; i < keys; i++) {
		error = command(fd, LLDS_IOC_RUN,
				(uintptr_t)make_get(&one, i));
		DEMAND(!error && is_done(&one, i), "by ioctl, %llu: %d",
		       (unsigned long long)i, error);
	}
	ring_close(&ring);
	return NULL;
}

static const char *many_commands_are_in_flight(void)
{
	enum { MANY = 64, ROUNDS = 50 };
	struct one *all = calloc(MANY, sizeof(*all));
	struct ring ring;
	struct io_uring_cqe cqe;
	int error, fd = device();
	uint64_t i, round;

	OPEN(&ring, MANY, 0);
	for (round = 0; round < 2 * ROUNDS; round++) {
		/* First all are set, then all are looked for. */
		const uint64_t from = round % ROUNDS * MANY;
		uint64_t seen = 0;

		for (i = 0; i < MANY; i++) {
			if (round < ROUNDS)
				make_set(&all[i], from + i);
			else
				make_get(&all[i], from + i);
			ring_put(&ring, fd, LLDS_URING_RUN,
				 (struct llds_uring){
					 .run = (uintptr_t)&all[i].run },
				 i)->flags = ways[(i ^ round) % 8 == 0];
		}
		error = ring_go(&ring, MANY);
		DEMAND(!error, "%s", strerror(error));
		while (ring_take(&ring, &cqe)) {
			DEMAND(cqe.user_data < MANY && !cqe.res,
			       "command %llu gave %d",
			       (unsigned long long)cqe.user_data, cqe.res);
			seen |= 1ULL << cqe.user_data;
		}
		DEMAND(!~seen, "only %#llx came back",
		       (unsigned long long)seen);
		for (i = 0; i < MANY; i++)
			DEMAND(is_done(&all[i], from + i),
			       "round %llu, %llu: another answer",
			       (unsigned long long)round,
			       (unsigned long long)i);
	}
	return NULL;
}

/* Runs of half a megabyte, several of which are in flight. */
static const char *long_runs_are_done_by_workers(void)
{
	enum { LINES = 4, KEYS = 10000 };
	struct line lines[LINES];
	struct ring ring;
	struct io_uring_cqe cqe;
	int error, fd = device();
	unsigned int i, n, gets;

	OPEN(&ring, LINES, 0);
	for (i = 0; i < LINES; i++)
		lines[i] = line();
	for (gets = 0; gets < 2; gets++) {
		for (n = 0; n < LINES * KEYS; n++) {
			const uint64_t value = n, key = key_of(n);
			const struct llds_op op = {
				.code = gets ? LLDS_GET : LLDS_SET,
				.key_bytes = 8, .value_bytes = gets ? 0 : 8 };

			put(&lines[n / KEYS], op, &key, &value, NULL);
		}
		for (i = 0; i < LINES; i++)
			ring_put(&ring, fd, LLDS_URING_RUN,
				 (struct llds_uring){
					 .run = (uintptr_t)whole(&lines[i]) },
				 i);
		error = ring_go(&ring, LINES);
		DEMAND(!error, "%s", strerror(error));
		for (i = 0; i < LINES; i++)
			DEMAND(ring_take(&ring, &cqe) && !cqe.res,
			       "a long run gave %d", cqe.res);
		for (i = 0; i < LINES; i++) {
			struct line *l = &lines[i];
			uint64_t value = (uint64_t)i * KEYS;
			size_t at = 0;

			DEMAND(l->run.done == KEYS, "%u done", l->run.done);
			for (n = 0; n < KEYS; n++, value++)
				DEMAND(is_answer(l, &at, LLDS_DONE, &value,
						 gets ? 8 : 0),
				       "line %u, %u: another answer", i, n);
		}
	}
	return NULL;
}

/* With a byte less than in hold(), and then when the submission returns. */
static const char *a_short_run_is_done_at_once(void)
{
	struct io_uring_cqe cqe;
	struct ring ring;
	struct one one;
	char *room = malloc(LLDS_URING_AT_ONCE);
	int error, fd = device();

	OPEN(&ring, 4, 0);
	make_get(&one, 0);
	one.run.answers = (uintptr_t)room;
	one.run.answers_bytes = LLDS_URING_AT_ONCE - one.run.ops_bytes;
	ring_put(&ring, fd, LLDS_URING_RUN,
		 (struct llds_uring){ .run = (uintptr_t)&one.run }, 7);
	error = ring_go(&ring, 0);
	DEMAND(!error && ring_take(&ring, &cqe) && cqe.user_data == 7 &&
	       !cqe.res, "not done at once: %d", error);
	return NULL;
}

/* A command whose run is held on its way to a page. */
struct held {
	int fd;
	struct ring ring;
	struct paused paused;
	struct one one;
};

/* A run that is too long, by a byte, to be done when it is submitted. */
static const char *hold(struct held *held)
{
	const char *wrong;
	int error;

	held->fd = device();
	wrong = ring_open(&held->ring, 4, 0);
	if (!wrong)
		wrong = pause_prepare(&held->paused);
	if (wrong)
		return wrong;
	error = command(held->fd, LLDS_IOC_RUN,
			(uintptr_t)make_set(&held->one, 5));
	DEMAND(!error, "a set: %d", error);
	make_get(&held->one, 5);
	held->one.run.answers = (uintptr_t)held->paused.page;
	held->one.run.answers_bytes = LLDS_URING_AT_ONCE + 1 -
				      held->one.run.ops_bytes;
	ring_put(&held->ring, held->fd, LLDS_URING_RUN,
		 (struct llds_uring){ .run = (uintptr_t)&held->one.run }, 9);
	/* Who is held himself would never come back. */
	alarm(20);
	error = ring_go(&held->ring, 0);
	DEMAND(!error, "submitting: %s", strerror(error));
	return pause_arrive(&held->paused);
}

/* Whether what was held came to what it should. */
static const char *is_right(struct held *held)
{
	uint64_t value;

	DEMAND(held->one.run.done == 1, "nothing was done");
	memcpy(&value, held->paused.page + 8, sizeof(value));
	DEMAND(value == 5, "another value: %llu", (unsigned long long)value);
	return NULL;
}

/* The last who holds the module is let go a moment after its completion. */
static const char *unload_at_last(void)
{
	int error;

	while ((error = unload("llds")) == EAGAIN)
		sched_yield();
	DEMAND(!error, "unloading gave %d", error);
	error = load(MODULE, "");
	DEMAND(!error, "loading again gave %d", error);
	return NULL;
}

static const char *a_long_run_leaves_its_submitter_alone(void)
{
	struct io_uring_cqe cqe;
	struct held held;
	struct one one;
	const char *wrong = hold(&held);
	int error;

	if (wrong)
		return wrong;
	DEMAND(!ring_take(&held.ring, &cqe), "done, and was held");
	/* The same device and the same ring serve others. */
	error = command(held.fd, LLDS_IOC_RUN, (uintptr_t)make_set(&one, 6));
	DEMAND(!error && is_done(&one, 6), "a set by ioctl: %d", error);
	error = ring_run(&held.ring, held.fd, make_get(&one, 6), 0);
	DEMAND(!error && is_done(&one, 6), "a get by the ring: %d", error);
	wrong = pause_end(&held.paused);
	if (wrong)
		return wrong;
	error = ring_go(&held.ring, 1);
	DEMAND(!error && ring_take(&held.ring, &cqe) && cqe.user_data == 9 &&
	       !cqe.res, "it came to %d, %d", error, cqe.res);
	return is_right(&held);
}

static const char *the_device_is_closed_under_a_command(void)
{
	struct io_uring_cqe cqe;
	struct held held;
	const char *wrong = hold(&held);
	int error;

	if (wrong)
		return wrong;
	DEMAND(!close(held.fd), "close: %s", strerror(errno));
	error = unload("llds");
	DEMAND(error == EAGAIN, "unloading under a command gave %d", error);
	wrong = pause_end(&held.paused);
	if (wrong)
		return wrong;
	error = ring_go(&held.ring, 1);
	DEMAND(!error && ring_take(&held.ring, &cqe) && !cqe.res,
	       "it came to %d, %d", error, cqe.res);
	wrong = is_right(&held);
	return wrong ? wrong : unload_at_last();
}

static const char *the_ring_is_closed_under_a_command(void)
{
	struct held held;
	const char *wrong = hold(&held);
	int error;

	if (wrong)
		return wrong;
	ring_close(&held.ring);
	close(held.fd);
	error = unload("llds");
	DEMAND(error == EAGAIN, "unloading under a command gave %d", error);
	wrong = pause_end(&held.paused);
	if (wrong)
		return wrong;
	wrong = unload_at_last();
	return wrong ? wrong : is_right(&held);
}

static const char *process_is_killed_under_a_command(void)
{
	int pipes[2], pid, status, error;
	struct ring ring;
	char arrived = 0;

	OPEN(&ring, 1, 0);
	DEMAND(!pipe(pipes), "pipe");
	pid = fork();
	if (!pid) {
		struct held held;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (hold(&held) || write(pipes[1], "x", 1) != 1)
			_exit(1);
		ring_go(&held.ring, 1);
		_exit(2);
	}
	close(pipes[1]);
	DEMAND(read(pipes[0], &arrived, 1) == 1, "it did not arrive");
	error = unload("llds");
	DEMAND(error == EAGAIN, "unloading under a command gave %d", error);
	kill(pid, SIGKILL);
	status = reap(pid);
	DEMAND(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
	       "the process ended with %#x", status);
	return unload_at_last();
}

/* That a command comes to that, both ways. */
static const char *comes_to(struct ring *ring, int fd, unsigned int number,
			    struct llds_uring uring, int error)
{
	unsigned int i;
	int found;

	for (i = 0; i < WAYS; i++) {
		found = ring_do(ring, fd, number, uring, ways[i]);
		DEMAND(found == -error, "%#x of %#llx, %#llx gave %d", number,
		       (unsigned long long)uring.run,
		       (unsigned long long)uring.reserved, found);
	}
	return NULL;
}

static const char *unknown_commands_of_a_ring_are_refused(void)
{
	static const unsigned int others[] = {
		0, 1, ~0U, LLDS_IOC_VERSION, LLDS_IOC_RUN, LLDS_IOC_ATTACH,
		LLDS_IOC_DESTROY, LLDS_IOC_LIST, LLDS_IOC_STATS,
	};
	const unsigned int all = sizeof(others) / sizeof(*others);
	struct llds_uring uring = { 0 };
	const char *wrong = NULL;
	struct ring ring;
	struct one one;
	int error, fd = device();
	unsigned int i;

	OPEN(&ring, 4, 0);
	uring.run = (uintptr_t)make_set(&one, 1);
	for (i = 0; !wrong && i < all; i++)
		wrong = comes_to(&ring, fd, others[i], uring, ENOTTY);
	for (i = 0; !wrong && i < 32; i++)
		wrong = comes_to(&ring, fd, LLDS_URING_RUN ^ 1U << i, uring,
				 ENOTTY);
	if (wrong)
		return wrong;
	DEMAND(!one.run.done, "it says that it was done");
	error = ring_run(&ring, fd, make_get(&one, 1), 0);
	DEMAND(!error && one.answer.status == LLDS_ABSENT,
	       "a command that is none was done: %d", error);
	/* And that number is none of ioctl's. */
	error = command(fd, LLDS_URING_RUN, (uintptr_t)&uring);
	DEMAND(error == ENOTTY, "ioctl gave %d", error);
	return NULL;
}

static const char *what_is_reserved_is_zero(void)
{
	struct llds_uring uring = { 0 };
	const char *wrong;
	struct ring ring;
	struct one one;
	int error, fd = device();
	unsigned int i;

	OPEN(&ring, 4, 0);
	uring.run = (uintptr_t)make_set(&one, 1);
	for (i = 0; i < 64; i++) {
		uring.reserved = 1ULL << i;
		wrong = comes_to(&ring, fd, LLDS_URING_RUN, uring, EINVAL);
		if (wrong)
			return wrong;
	}
	error = ring_run(&ring, fd, make_get(&one, 1), 0);
	DEMAND(!error && one.answer.status == LLDS_ABSENT,
	       "a command with more was done: %d", error);
	/* The run's own, too. */
	make_set(&one, 1)->reserved = 1;
	uring.reserved = 0;
	wrong = comes_to(&ring, fd, LLDS_URING_RUN, uring, EINVAL);
	return wrong;
}

static const char *bad_pointers_of_commands_are_refused(void)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *fixed = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uint64_t bad[] = { 0, 8, 0x00007ffffffff000, 0x0000800000000000,
				 0xffff888000000000, 0xffffffff81000000,
				 ~0ULL, 1ULL << 63, (uintptr_t)page + 4096,
				 (uintptr_t)page + 4096 - 8 };
	struct llds_uring uring;
	const char *wrong = NULL;
	struct ring ring;
	struct one one;
	int fd = device();
	unsigned int i, more;

	OPEN(&ring, 4, 0);
	DEMAND(page != MAP_FAILED && fixed != MAP_FAILED &&
	       !munmap(page + 4096, 4096), "mmap");
	for (i = 0; !wrong && i < sizeof(bad) / sizeof(*bad); i++) {
		uring = (struct llds_uring){ .run = bad[i] };
		wrong = comes_to(&ring, fd, LLDS_URING_RUN, uring, EFAULT);
		/* Short ones, and those that a worker does anyway. */
		for (more = 0; !wrong && more <= 8192; more += 8192) {
			uring.run = (uintptr_t)make_get(&one, 0);
			one.run.ops = bad[i];
			one.run.answers_bytes += more;
			wrong = comes_to(&ring, fd, LLDS_URING_RUN, uring,
					 EFAULT);
			if (wrong)
				break;
			make_get(&one, 0)->answers_bytes += more;
			one.op.key_bytes = 0;
			one.run.ops_bytes = 16;
			one.op.code = LLDS_SCAN;
			one.op.flags = LLDS_NO_OTHER;
			one.run.answers = bad[i];
			/* An answer of 8 bytes has room at the last one. */
			if (i + 1 < sizeof(bad) / sizeof(*bad))
				wrong = comes_to(&ring, fd, LLDS_URING_RUN,
						 uring, EFAULT);
		}
	}
	if (wrong)
		return wrong;
	/* Where nothing may be written: the answers, and then the run. */
	uring.run = (uintptr_t)make_get(&one, 0);
	memcpy(fixed, &one.run, sizeof(one.run));
	DEMAND(!mprotect(fixed, 4096, PROT_READ), "mprotect");
	one.run.answers = (uintptr_t)fixed;
	wrong = comes_to(&ring, fd, LLDS_URING_RUN, uring, EFAULT);
	if (wrong)
		return wrong;
	uring.run = (uintptr_t)fixed;
	wrong = comes_to(&ring, fd, LLDS_URING_RUN, uring, EFAULT);
	DEMAND(wrong || one.answer.status == LLDS_ABSENT, "not done before");
	return wrong;
}

static const char *a_ring_may_what_the_device_may(void)
{
	int reads = device_for(O_RDONLY), writes = device_for(O_WRONLY);
	struct ring ring;
	struct one one;
	unsigned int i;
	int error;

	OPEN(&ring, 4, 0);
	for (i = 0; i < WAYS; i++) {
		error = ring_run(&ring, reads, make_set(&one, 1), ways[i]);
		DEMAND(error == EBADF, "a set by who may read: %d", error);
		error = ring_run(&ring, reads, make_get(&one, 1), ways[i]);
		DEMAND(!error && one.answer.status == LLDS_ABSENT,
		       "a get by who may read: %d", error);
		error = ring_run(&ring, writes, make_get(&one, 1), ways[i]);
		DEMAND(error == EBADF, "a get by who may write: %d", error);
		error = ring_run(&ring, writes, make_set(&one, 1), ways[i]);
		DEMAND(!error && is_done(&one, 1), "a set by who may write: %d",
		       error);
	}
	return NULL;
}

/* What a run says of itself comes back as by ioctl. */
static const char *a_command_tells_what_it_lacks(void)
{
	struct line l = line();
	struct ring ring;
	struct one one;
	unsigned int i;
	int error, fd = device();
	size_t at = 0;

	OPEN(&ring, 4, 0);
	error = ring_run(&ring, fd, make_set(&one, 3), 0);
	DEMAND(!error, "a set: %d", error);
	for (i = 0; i < WAYS; i++) {
		make_get(&one, 3)->answers_bytes = 8;
		error = ring_run(&ring, fd, &one.run, ways[i]);
		DEMAND(error == EMSGSIZE && one.run.answers_bytes == 16,
		       "without room: %d, wants %u", error,
		       one.run.answers_bytes);
	}
	/* As one, and one of them does not hold. */
	put_set(&l, "key", "value");
	put(&l, (struct llds_op){ .code = LLDS_SET, .key_bytes = 3,
				  .flags = LLDS_IF_ABSENT }, "key", NULL, NULL);
	whole(&l)->flags = LLDS_RUN_ATOMIC;
	error = ring_run(&ring, fd, &l.run, 0);
	DEMAND(!error && l.run.done == 1, "as one: %d, %u done", error,
	       l.run.done);
	ANSWER(LLDS_DIFFERS, "");
	put_get(&l, "key");
	error = go(fd, &l);
	DEMAND(!error, "a get: %d", error);
	at = 0;
	ANSWER(LLDS_ABSENT, "");
	return NULL;
}

static const char *linked_commands_follow_each_other(void)
{
	static const int ends[][2] = { { 0, 0 }, { -EINVAL, -ECANCELED } };
	struct line l = line();
	struct io_uring_cqe cqe;
	struct ring ring;
	struct one one;
	unsigned int i, fails;
	int error, fd = device();

	OPEN(&ring, 4, 0);
	for (fails = 0; fails < 2; fails++) {
		const uint64_t value = 4 + fails, key = key_of(value);
		struct llds_uring set = { .run = (uintptr_t)&l.run };
		struct llds_uring get = { .run = (uintptr_t)&one.run };

		/* A long run, and a short one that is to be done behind it. */
		for (i = 0; i < 1000; i++)
			put(&l, (struct llds_op){ .code = LLDS_SET,
						  .key_bytes = 8,
						  .value_bytes = 8 },
			    &key, &value, NULL);
		whole(&l)->reserved = fails;
		make_get(&one, value);
		ring_put(&ring, fd, LLDS_URING_RUN, set, 0)->flags =
			IOSQE_IO_LINK;
		ring_put(&ring, fd, LLDS_URING_RUN, get, 1);
		error = ring_go(&ring, 2);
		DEMAND(!error, "%s", strerror(error));
		for (i = 0; i < 2; i++)
			DEMAND(ring_take(&ring, &cqe) && cqe.user_data == i &&
			       cqe.res == ends[fails][i],
			       "the completion of %u is %d", i, cqe.res);
		DEMAND(fails || is_done(&one, value), "not behind it");
		DEMAND(!fails || !one.run.done, "done all the same");
	}
	return NULL;
}

static const char *rings_of_all_kinds_are_served(void)
{
	static const struct {
		unsigned int flags;
		int error;
	} kinds[] = {
		{ IORING_SETUP_SQE128 | IORING_SETUP_CQE32, 0 },
		{ IORING_SETUP_SQPOLL, 0 },
		{ IORING_SETUP_COOP_TASKRUN, 0 },
		/* The device has nothing to poll for. */
		{ IORING_SETUP_IOPOLL, EOPNOTSUPP },
	};
	struct ring ring;
	struct one one;
	unsigned int i, j, way;
	int error, fd = device();

	error = command(fd, LLDS_IOC_RUN, (uintptr_t)make_set(&one, 2));
	DEMAND(!error, "a set: %d", error);
	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		OPEN(&ring, 4, kinds[i].flags);
		for (j = 0; j < 20; j++) {
			/* Long ones are tried again for ever where one polls. */
			way = kinds[i].error ? 0 : j % WAYS;
			error = ring_run(&ring, fd, make_get(&one, 2),
					 ways[way]);
			DEMAND(error == kinds[i].error, "kind %u: %d", i,
			       error);
			DEMAND(error || is_done(&one, 2),
			       "kind %u: another answer", i);
		}
		ring_close(&ring);
	}
	return NULL;
}

/* What one changes in commands that another hands over. */
struct meddled {
	volatile bool stop;
	struct ring *ring;
	uint64_t runs[4];
};

static void *meddle(void *argument)
{
	struct meddled *all = argument;
	uint64_t state = 1;

	while (!all->stop) {
		uint64_t random = next_random(&state);
		volatile struct llds_uring *uring =
			bytes_of((void *)(all->ring->sqes +
					  (random & 1) * all->ring->sqe_bytes));

		uring->run = all->runs[random >> 1 & 3];
		uring->reserved = !(random >> 3 & 7);
	}
	return NULL;
}

static const char *a_command_that_changes_is_one_or_the_other(void)
{
	struct one ones[2], set;
	struct ring ring;
	struct meddled all = { .ring = &ring };
	unsigned long i, ends[3] = { 0 };
	pthread_t thread;
	int error, fd = device();

	OPEN(&ring, 2, 0);
	for (i = 0; i < 2; i++) {
		error = command(fd, LLDS_IOC_RUN, (uintptr_t)make_set(&set, i));
		DEMAND(!error, "a set: %d", error);
		all.runs[i] = (uintptr_t)&ones[i].run;
	}
	all.runs[2] = 8;
	all.runs[3] = 0xffff888000000000;
	DEMAND(!pthread_create(&thread, NULL, meddle, &all), "no thread");
	for (i = 0; i < number("together", 20000) / 2; i++) {
		/* Each is tried, also where there is one processor. */
		struct llds_uring uring = { .run = all.runs[i & 3],
					    .reserved = !(i >> 2 & 7) };
		struct io_uring_cqe cqe;

		make_get(&ones[0], 0);
		make_get(&ones[1], 1);
		/* One is too long, so that it is copied for a worker. */
		ones[1].run.answers_bytes = 8192;
		ring_put(&ring, fd, LLDS_URING_RUN, uring, 0)->flags =
			ways[i % 16 == 0];
		error = ring_go(&ring, 1);
		DEMAND(!error && ring_take(&ring, &cqe), "%s", strerror(error));
		DEMAND(!cqe.res || cqe.res == -EFAULT || cqe.res == -EINVAL,
		       "%lu gave %d", i, cqe.res);
		DEMAND(cqe.res || is_done(&ones[0], 0) ||
		       (ones[1].run.done == 1 && ones[1].found == 1),
		       "%lu: neither was done", i);
		ends[cqe.res == -EFAULT ? 1 : cqe.res ? 2 : 0]++;
	}
	all.stop = true;
	pthread_join(thread, NULL);
	DEMAND(ends[0] && ends[1] && ends[2], "%lu done, %lu faults, %lu not",
	       ends[0], ends[1], ends[2]);
	return NULL;
}

const struct check uring_checks[] = {
	{ "a_command_does_a_run", a_command_does_a_run },
	{ "many_commands_are_in_flight", many_commands_are_in_flight },
	{ "long_runs_are_done_by_workers", long_runs_are_done_by_workers },
	{ "a_short_run_is_done_at_once", a_short_run_is_done_at_once },
	{ "a_long_run_leaves_its_submitter_alone",
	  a_long_run_leaves_its_submitter_alone },
	{ "the_device_is_closed_under_a_command",
	  the_device_is_closed_under_a_command },
	{ "the_ring_is_closed_under_a_command",
	  the_ring_is_closed_under_a_command },
	{ "process_is_killed_under_a_command",
	  process_is_killed_under_a_command },
	{ "unknown_commands_of_a_ring_are_refused",
	  unknown_commands_of_a_ring_are_refused },
	{ "what_is_reserved_is_zero", what_is_reserved_is_zero },
	{ "bad_pointers_of_commands_are_refused",
	  bad_pointers_of_commands_are_refused },
	{ "a_ring_may_what_the_device_may", a_ring_may_what_the_device_may },
	{ "a_command_tells_what_it_lacks", a_command_tells_what_it_lacks },
	{ "linked_commands_follow_each_other",
	  linked_commands_follow_each_other },
	{ "rings_of_all_kinds_are_served", rings_of_all_kinds_are_served },
	{ "a_command_that_changes_is_one_or_the_other",
	  a_command_that_changes_is_one_or_the_other },
	{}
};

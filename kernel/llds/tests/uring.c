// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Runs by io_uring: that they do what the others do, from any thread of the
 * kernel that they get to, and that no command means harm. Where there is no
 * io_uring, all of this is skipped.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

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

const struct check uring_checks[] = {
	{ "a_command_does_a_run", a_command_does_a_run },
	{}
};

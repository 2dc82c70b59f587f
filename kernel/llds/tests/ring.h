/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A ring of io_uring as the checks have it: by its system calls alone.
 */
#ifndef _LLDS_RING_H
#define _LLDS_RING_H

#include <linux/io_uring.h>

#include "check.h"

struct ring {
	int fd;
	size_t sqe_bytes, cqe_bytes;
	char *rings, *sqes;
	size_t rings_bytes, sqes_bytes;
	struct io_uring_params params;
	/* Commands that were made and not handed over yet. */
	unsigned int made;
};

/* Makes a ring; NULL, or the reason why there is none: skip(), if it may be. */
const char *ring_open(struct ring *ring, unsigned int entries,
		      unsigned int flags);
void ring_close(struct ring *ring);

/* The next command, all zeros; there are as many as the ring has entries. */
struct io_uring_sqe *ring_next(struct ring *ring);
/*
 * Makes the next command one of the device; 'user_data' comes back with its
 * completion.
 */
struct io_uring_sqe *ring_put(struct ring *ring, int fd, unsigned int number,
			      struct llds_uring uring, uint64_t user_data);
/* The 16 bytes of a command. */
void *bytes_of(struct io_uring_sqe *sqe);
/* Hands all of them over and waits for WAIT completions; 0, or the errno. */
int ring_go(struct ring *ring, unsigned int wait);
/* Takes a completion off the ring, if there is one. */
bool ring_take(struct ring *ring, struct io_uring_cqe *cqe);

/* One command, from submission to completion: what it came to. */
int ring_do(struct ring *ring, int fd, unsigned int number,
	    struct llds_uring uring, unsigned char flags);
/* Does that run; positive: the errno, or 0. */
int ring_run(struct ring *ring, int fd, const struct llds_run *run,
	     unsigned char flags);

#endif /* _LLDS_RING_H */

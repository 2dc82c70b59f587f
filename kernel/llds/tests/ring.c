// SPDX-License-Identifier: MIT OR Apache-2.0
/* A ring of io_uring as the checks have it: by its system calls alone. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ring.h"

const char *ring_open(struct ring *ring, unsigned int entries,
		      unsigned int flags)
{
	struct io_uring_params *params = &ring->params;
	size_t completions;

	*ring = (struct ring){ .params.flags = flags };
	ring->fd = syscall(SYS_io_uring_setup, entries, params);
	if (ring->fd < 0 && (errno == ENOSYS || errno == EPERM))
		return skip("the kernel gives no ring: %s", strerror(errno));
	DEMAND(ring->fd >= 0, "io_uring_setup: %s", strerror(errno));
	/* Linux 5.4 and newer have both rings in one mapping. */
	DEMAND(params->features & IORING_FEAT_SINGLE_MMAP, "an old io_uring");
	ring->sqe_bytes = flags & IORING_SETUP_SQE128 ? 128 : 64;
	ring->cqe_bytes = flags & IORING_SETUP_CQE32 ? 32 : 16;
	completions = params->cq_off.cqes +
		      params->cq_entries * ring->cqe_bytes;
	ring->rings_bytes = params->sq_off.array +
			    params->sq_entries * sizeof(uint32_t);
	if (ring->rings_bytes < completions)
		ring->rings_bytes = completions;
	ring->sqes_bytes = params->sq_entries * ring->sqe_bytes;
	ring->rings = mmap(NULL, ring->rings_bytes, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_POPULATE, ring->fd,
			   IORING_OFF_SQ_RING);
	ring->sqes = mmap(NULL, ring->sqes_bytes, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_POPULATE, ring->fd, IORING_OFF_SQES);
	DEMAND(ring->rings != MAP_FAILED && ring->sqes != MAP_FAILED,
	       "mapping a ring: %s", strerror(errno));
	return NULL;
}

void ring_close(struct ring *ring)
{
	munmap(ring->rings, ring->rings_bytes);
	munmap(ring->sqes, ring->sqes_bytes);
	close(ring->fd);
}

static uint32_t *word(const struct ring *ring, uint32_t offset)
{
	return (uint32_t *)(ring->rings + offset);
}

struct io_uring_sqe *ring_next(struct ring *ring)
{
	uint32_t tail = *word(ring, ring->params.sq_off.tail) + ring->made++;
	uint32_t at = tail & (ring->params.sq_entries - 1);
	char *sqe = ring->sqes + at * ring->sqe_bytes;

	memset(sqe, 0, ring->sqe_bytes);
	word(ring, ring->params.sq_off.array)[at] = at;
	return (struct io_uring_sqe *)sqe;
}

void *bytes_of(struct io_uring_sqe *sqe)
{
	return (char *)sqe + offsetof(struct io_uring_sqe, cmd);
}

struct io_uring_sqe *ring_put(struct ring *ring, int fd, unsigned int number,
			      struct llds_uring uring, uint64_t user_data)
{
	struct io_uring_sqe *sqe = ring_next(ring);

	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	sqe->cmd_op = number;
	sqe->user_data = user_data;
	memcpy(bytes_of(sqe), &uring, sizeof(uring));
	return sqe;
}

int ring_go(struct ring *ring, unsigned int wait)
{
	uint32_t *tail = word(ring, ring->params.sq_off.tail);
	const unsigned int made = ring->made;
	unsigned int flags = IORING_ENTER_GETEVENTS;
	long done;

	/* The tail is this process's alone; the kernel reads it. */
	__atomic_store_n(tail, *tail + made, __ATOMIC_RELEASE);
	ring->made = 0;
	if (ring->params.flags & IORING_SETUP_SQPOLL)
		flags |= IORING_ENTER_SQ_WAKEUP;
	done = syscall(SYS_io_uring_enter, ring->fd, made, wait, flags, NULL,
		       0);
	if (done < 0)
		return errno;
	return done == made ? 0 : EPROTO;
}

bool ring_take(struct ring *ring, struct io_uring_cqe *cqe)
{
	uint32_t *head = word(ring, ring->params.cq_off.head);
	uint32_t *tail = word(ring, ring->params.cq_off.tail);
	uint32_t at = *head & (ring->params.cq_entries - 1);

	if (*head == __atomic_load_n(tail, __ATOMIC_ACQUIRE))
		return false;
	memcpy(cqe,
	       ring->rings + ring->params.cq_off.cqes + at * ring->cqe_bytes,
	       sizeof(*cqe));
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return true;
}

int ring_do(struct ring *ring, int fd, unsigned int number,
	    struct llds_uring uring, unsigned char flags)
{
	struct io_uring_cqe cqe;
	int error;

	ring_put(ring, fd, number, uring, uring.run)->flags = flags;
	error = ring_go(ring, 1);
	if (error || !ring_take(ring, &cqe) || cqe.user_data != uring.run) {
		note("no completion: %s", strerror(error));
		_exit(1);
	}
	return cqe.res;
}

int ring_run(struct ring *ring, int fd, const struct llds_run *run,
	     unsigned char flags)
{
	return -ring_do(ring, fd, LLDS_URING_RUN,
			(struct llds_uring){ .run = (uintptr_t)run }, flags);
}

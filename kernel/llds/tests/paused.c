// SPDX-License-Identifier: MIT OR Apache-2.0
/* A page whose first access blocks (userfaultfd). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "paused.h"

const char *pause_prepare(struct paused *paused)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	paused->page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	paused->fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	range.range.start = (uintptr_t)paused->page;
	range.range.len = 4096;
	DEMAND(paused->page != MAP_FAILED && paused->fd >= 0 &&
		       !ioctl(paused->fd, UFFDIO_API, &api) &&
		       !ioctl(paused->fd, UFFDIO_REGISTER, &range),
	       "userfaultfd: %s", strerror(errno));
	return NULL;
}

const char *pause_arrive(struct paused *paused)
{
	struct uffd_msg message;

	DEMAND(read(paused->fd, &message, sizeof(message)) == sizeof(message) &&
		       message.event == UFFD_EVENT_PAGEFAULT,
	       "no fault: %s", strerror(errno));
	return NULL;
}

const char *pause_end(struct paused *paused)
{
	struct uffdio_zeropage zero = { 0 };

	zero.range.start = (uintptr_t)paused->page;
	zero.range.len = 4096;
	DEMAND(!ioctl(paused->fd, UFFDIO_ZEROPAGE, &zero), "zeropage: %s",
	       strerror(errno));
	return NULL;
}

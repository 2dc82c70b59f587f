// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Mapping a store: read-only, with read permission only, at valid offsets only;
 * and the lifetime of a mapping.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define PAGE 4096UL

/* Maps @bytes for reading. */
static void *map(int fd, uint64_t offset, size_t bytes)
{
	return mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, offset);
}

static sigjmp_buf stumbled;

static void stumble(int number)
{
	siglongjmp(stumbled, number);
}

/* Reads a byte; returns the signal that this raises, or 0. */
static int touch(const volatile char *at)
{
	int number;

	signal(SIGBUS, stumble);
	signal(SIGSEGV, stumble);
	number = sigsetjmp(stumbled, 1);
	if (!number)
		(void)*at;
	return number;
}

static const char *a_mapping_is_only_to_be_read(void)
{
	static const int more[] = { PROT_WRITE, PROT_READ | PROT_WRITE,
				    PROT_EXEC, PROT_READ | PROT_EXEC };
	int fd = device(), only_writes = open(DEVICE, O_WRONLY);
	void *page;
	size_t i;

	DEMAND(only_writes >= 0, "%s", strerror(errno));
	DEMAND(map(only_writes, 0, PAGE) == MAP_FAILED && errno == EACCES,
	       "mapped without read access: %s", strerror(errno));
	for (i = 0; i < sizeof(more) / sizeof(*more); i++) {
		page = mmap(NULL, PAGE, more[i], MAP_SHARED, fd, 0);
		DEMAND(page == MAP_FAILED && errno == EACCES, "%d: %s", more[i],
		       strerror(errno));
		page = map(fd, 0, PAGE);
		DEMAND(page != MAP_FAILED, "%s", strerror(errno));
		DEMAND(mprotect(page, PAGE, more[i]) && errno == EACCES,
		       "mprotect, %d: %s", more[i], strerror(errno));
		munmap(page, PAGE);
	}
	DEMAND(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED &&
	       errno == EINVAL, "private: %s", strerror(errno));
	return NULL;
}

static const char *a_mapping_has_three_parts(void)
{
	static const struct {
		uint64_t from, bytes;
	} others[] = {
		{ LLDS_MAP_HEADER, 2 * PAGE },
		{ LLDS_MAP_HEADER + PAGE, PAGE },
		{ LLDS_MAP_BLOCKS - PAGE, 2 * PAGE },
		{ LLDS_MAP_BLOCKS, LLDS_MAP_BYTES + PAGE },
		{ LLDS_MAP_BLOCKS + LLDS_MAP_BYTES, PAGE },
		{ LLDS_MAP_BLOCKS + PAGE, LLDS_MAP_BYTES },
		{ LLDS_MAP_BUCKETS - PAGE, PAGE },
		{ LLDS_MAP_BUCKETS + LLDS_MAP_BYTES, PAGE },
		{ 2 * LLDS_MAP_BUCKETS, PAGE },
		{ 0x7ffffffffffff000, PAGE },
	};
	const struct llds_header *header;
	const char *blocks, *buckets;
	int fd = device();
	size_t i;

	for (i = 0; i < sizeof(others) / sizeof(*others); i++)
		DEMAND(map(fd, others[i].from, others[i].bytes) == MAP_FAILED,
		       "%zu: %#llx from %#llx on", i,
		       (unsigned long long)others[i].bytes,
		       (unsigned long long)others[i].from);
	header = map(fd, LLDS_MAP_HEADER, PAGE);
	blocks = map(fd, LLDS_MAP_BLOCKS, LLDS_MAP_BYTES);
	buckets = map(fd, LLDS_MAP_BUCKETS, LLDS_MAP_BYTES);
	DEMAND(header != MAP_FAILED && blocks != MAP_FAILED &&
	       buckets != MAP_FAILED, "%s", strerror(errno));
	DEMAND(header->abi == LLDS_ABI && header->flags == LLDS_MAPPABLE &&
	       header->salt && header->buckets && !header->root, "header");
	/* Existing memory can be read; other offsets raise SIGBUS. */
	DEMAND(!touch(buckets), "no buckets");
	DEMAND(touch(blocks) == SIGBUS, "blocks of an empty store");
	DEMAND(touch(blocks + LLDS_MAP_BYTES - 1) == SIGBUS, "the last block");
	DEMAND(touch(buckets + (1 << 30)) == SIGBUS, "a bucket far away");
	return NULL;
}

/* A mapping works after the device is closed, and in a child process. */
static const char *a_mapping_outlives_its_descriptor(void)
{
	const struct llds_header *header, *other;
	int i, fd = device();

	header = map(fd, LLDS_MAP_HEADER, PAGE);
	other = map(fd, LLDS_MAP_HEADER, PAGE);
	DEMAND(header != MAP_FAILED && other != MAP_FAILED, "%s",
	       strerror(errno));
	close(fd);
	DEMAND(unload("llds") == EBUSY || unload("llds") == EAGAIN,
	       "unloaded while a mapping exists");
	for (i = 0; i < 20; i++) {
		int child = fork();

		if (!child) {
			munmap((void *)other, PAGE);
			_exit(header->abi != LLDS_ABI);
		}
		DEMAND(!reap(child), "a child sees another header");
	}
	munmap((void *)other, PAGE);
	DEMAND(header->abi == LLDS_ABI, "the header has gone");
	return NULL;
}

const struct check mapping_checks[] = {
	{ "a_mapping_is_only_to_be_read", a_mapping_is_only_to_be_read },
	{ "a_mapping_has_three_parts", a_mapping_has_three_parts },
	{ "a_mapping_outlives_its_descriptor",
	  a_mapping_outlives_its_descriptor },
	{}
};

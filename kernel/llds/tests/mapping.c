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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "named.h"

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
		{ LLDS_MAP_HEADER + 2 * PAGE, PAGE },
		{ LLDS_MAP_HEADER + 3 * PAGE, 2ULL << 40 },
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

#define SECRET "a password that was deleted"

/* Whether these bytes are somewhere in the blocks that a mapping shows. */
static bool shows(const char *blocks, const char *text)
{
	size_t bytes = 0;

	while (bytes < LLDS_MAP_BYTES && !touch(blocks + bytes))
		bytes += PAGE;
	return memmem(blocks, bytes, text, strlen(text));
}

/* Deleted, replaced by a longer value, and by a shorter one. */
static const char *a_mapping_shows_nothing_deleted(void)
{
	static const char *const others[] = { "deleted", "longer", "shorter" };
	const struct llds_op one = { .code = LLDS_DELETE };
	char longer[200] = { 0 };
	const char *blocks;
	int fd = device();
	size_t i;

	for (i = 0; i < sizeof(others) / sizeof(*others); i++)
		DEMAND(!set(fd, others[i], SECRET), "set");
	DEMAND(!set(fd, "kept", "this is kept"), "set");
	memset(longer, 'x', sizeof(longer) - 1);
	DEMAND(!change(fd, one, "deleted"), "delete");
	DEMAND(!set(fd, "longer", longer) && !set(fd, "shorter", "a"), "set");
	blocks = map(fd, LLDS_MAP_BLOCKS, LLDS_MAP_BYTES);
	DEMAND(blocks != MAP_FAILED, "%s", strerror(errno));
	DEMAND(shows(blocks, "this is kept"), "nothing is shown");
	/* The end of it suffices: a block that is free has a link. */
	DEMAND(!shows(blocks, SECRET + 9), "a deleted value is shown");
	/* While it is mapped, too. */
	DEMAND(!set(fd, "again", SECRET), "set");
	DEMAND(shows(blocks, SECRET + 9), "a value is not shown");
	DEMAND(!change(fd, one, "again"), "delete");
	DEMAND(!shows(blocks, SECRET + 9), "a value is shown after all");
	munmap((void *)blocks, LLDS_MAP_BYTES);
	return NULL;
}

#define MANY_KEYS 60000

/*
 * Whether a child that inherits the mapping reads it and gives it up. So the
 * mapping was copied, met a page fault, and was removed.
 */
static bool forks(const char *blocks)
{
	int child = fork();

	if (!child) {
		const bool is_there = !touch(blocks);

		munmap((void *)blocks, LLDS_MAP_BYTES);
		_exit(!is_there);
	}
	return !reap(child);
}

/* While one operation holds the lock for long. */
static const char *a_fork_waits_for_no_writer(void)
{
	const struct llds_op all = { .code = LLDS_DELETE_RANGE,
				     .flags = LLDS_NO_OTHER };
	int fd = device(), writer, status, done = 0;
	const char *blocks;
	char key[16];
	uint32_t n;

	for (n = 0; n < MANY_KEYS; n++) {
		snprintf(key, sizeof(key), "%07u", n);
		DEMAND(!set(fd, key, "value"), "set");
	}
	blocks = map(fd, LLDS_MAP_BLOCKS, LLDS_MAP_BYTES);
	DEMAND(blocks != MAP_FAILED, "%s", strerror(errno));
	writer = fork();
	if (!writer)
		_exit(change(fd, all, ""));
	while (waitpid(writer, &status, WNOHANG) == 0) {
		DEMAND(forks(blocks), "a child did not read the mapping");
		done++;
	}
	DEMAND(!status, "the writer failed: %d", status);
	/* If each waited for the writer, there would be one or two. */
	DEMAND(done > 5, "%d forks beside a long operation", done);
	munmap((void *)blocks, LLDS_MAP_BYTES);
	return NULL;
}

const struct check mapping_checks[] = {
	{ "a_mapping_is_only_to_be_read", a_mapping_is_only_to_be_read },
	{ "a_mapping_has_three_parts", a_mapping_has_three_parts },
	{ "a_mapping_outlives_its_descriptor",
	  a_mapping_outlives_its_descriptor },
	{ "a_mapping_shows_nothing_deleted", a_mapping_shows_nothing_deleted },
	{ "a_fork_waits_for_no_writer", a_fork_waits_for_no_writer },
	{}
};

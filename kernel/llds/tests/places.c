// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Where the memory of a store lies: on the memory nodes that its creator asks
 * for, and in single pages if the free memory is fragmented.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "named.h"

#define PAGE 4096
#define VALUE_BYTES 4000

static int attach_on(int fd, const char *name, uint32_t numa, uint32_t node)
{
	struct llds_attach attach = { .name = (uintptr_t)name,
				      .name_bytes = strlen(name),
				      .mode = 0600,
				      .flags = LLDS_CREATE,
				      .numa = numa,
				      .node = node };

	return command(fd, LLDS_IOC_ATTACH, (uintptr_t)&attach);
}

/* Sets @n pairs; returns 0, the errno, or the status. */
static int fill(int fd, unsigned int n)
{
	char key[16], value[VALUE_BYTES];
	unsigned int i;
	int error;

	for (i = 0; i < n; i++) {
		snprintf(key, sizeof(key), "%08u", i);
		memset(value, i, sizeof(value));
		error = set_bytes(fd, key, value, sizeof(value));
		if (error)
			return error;
	}
	return 0;
}

/* The kilobytes after a word of a file; -1 if there are none. */
static long kilobytes(const char *path, const char *word)
{
	const char *at = strstr(content(path), word);

	return at ? strtol(at + strlen(word), NULL, 10) : -1;
}

static const char *a_node_that_is_not_there_is_refused(void)
{
	static const struct {
		uint32_t numa, node;
	} wrong[] = { { LLDS_NUMA_NODE, 63 },	  { LLDS_NUMA_NODE, 0x7fffffff },
		      { LLDS_NUMA_NODE, 1 << 31 }, { LLDS_NUMA_NODE, ~0U },
		      { LLDS_NUMA_LOCAL, 1 },	  { LLDS_NUMA_INTERLEAVE, 1 },
		      { 3, 0 },			  { ~0U, 0 } };
	unsigned int i;
	int error, fd;

	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		fd = device();
		error = attach_on(fd, "placed", wrong[i].numa, wrong[i].node);
		DEMAND(error == EINVAL, "%#x, %#x: %d", wrong[i].numa,
		       wrong[i].node, error);
		close(fd);
	}
	fd = device();
	error = attach_on(fd, "placed", LLDS_NUMA_NODE, 0);
	DEMAND(!error, "the first node: %d", error);
	error = set(fd, "key", "value");
	DEMAND(!error, "setting a key there: %d", error);
	close(fd);
	error = destroy("placed");
	DEMAND(!error, "destroying it: %d", error);
	return NULL;
}

#define PLACED_BYTES (16UL << 20)
#define PIECE_BYTES 262144UL

/* Whether there is a second memory node. */
static bool are_there_nodes(void)
{
	return content("/sys/devices/system/node/node1/meminfo")[0];
}

/* Fills a store, and counts its pieces on each of two nodes. */
static const char *place(uint32_t numa, uint32_t node, unsigned int on[2])
{
	const unsigned long flags = 3; /* MPOL_F_NODE | MPOL_F_ADDR */
	int error, found, fd = device();
	unsigned long i;
	char *blocks;

	error = attach_on(fd, "placed", numa, node);
	DEMAND(!error, "creating it: %d", error);
	error = fill(fd, PLACED_BYTES / PAGE);
	DEMAND(!error, "filling it: %d", error);
	blocks = mmap(NULL, LLDS_MAP_BYTES, PROT_READ, MAP_SHARED, fd,
		      LLDS_MAP_BLOCKS);
	DEMAND(blocks != MAP_FAILED, "mapping it: %s", strerror(errno));
	on[0] = 0;
	on[1] = 0;
	for (i = 0; i < PLACED_BYTES; i += PIECE_BYTES) {
		/* Otherwise the page is in no table yet. */
		(void)*(volatile char *)(blocks + i);
		DEMAND(!syscall(SYS_get_mempolicy, &found, NULL, 0UL,
				blocks + i, flags),
		       "the node at %#lx: %s", i, strerror(errno));
		DEMAND(found == 0 || found == 1, "node %d", found);
		on[found]++;
	}
	munmap(blocks, LLDS_MAP_BYTES);
	close(fd);
	error = destroy("placed");
	DEMAND(!error, "destroying it: %d", error);
	return NULL;
}

static const char *a_store_lies_on_the_nodes_that_were_asked_for(void)
{
	const char *wrong;
	unsigned int on[2];
	uint32_t node;

	if (!are_there_nodes())
		return skip("there is one memory node");
	for (node = 0; node < 2; node++) {
		wrong = place(LLDS_NUMA_NODE, node, on);
		if (wrong)
			return wrong;
		DEMAND(!on[!node], "node %u: %u and %u pieces", node, on[0],
		       on[1]);
	}
	wrong = place(LLDS_NUMA_INTERLEAVE, 0, on);
	if (wrong)
		return wrong;
	/* Larger stores take 16 pieces at once. */
	DEMAND(on[0] >= 16 && on[1] >= 16, "in turn: %u and %u pieces", on[0],
	       on[1]);
	return NULL;
}

#define PIPES 1200
#define PIPE_BYTES (1 << 20)
/* Left to the rest of the machine. */
#define SPARE_KB (24 << 10)

/*
 * Takes almost all memory by the pages of pipes, which cannot be moved, and
 * frees every other one. Returns their number, or 0.
 */
static unsigned int fragment(void)
{
	static int pipes[PIPES][2];
	static char page[PAGE];
	const struct rlimit files = { 2 * PIPES + 64, 2 * PIPES + 64 };
	unsigned int i, j, n;

	if (setrlimit(RLIMIT_NOFILE, &files))
		return 0;
	/* Those with odd numbers are freed. */
	for (n = 0; n + 1 < PIPES; n += 2) {
		if (kilobytes("/proc/meminfo", "MemAvailable:") < SPARE_KB)
			break;
		for (i = n; i < n + 2; i++) {
			if (pipe(pipes[i]) ||
			    fcntl(pipes[i][1], F_SETPIPE_SZ, PIPE_BYTES) < 0)
				return 0;
		}
		for (j = 0; j < PIPE_BYTES / PAGE; j++) {
			for (i = n; i < n + 2; i++)
				if (write(pipes[i][1], page, PAGE) != PAGE)
					return 0;
		}
	}
	for (i = 1; i < n; i += 2) {
		close(pipes[i][0]);
		close(pipes[i][1]);
	}
	return n / 2 * (PIPE_BYTES / PAGE);
}

/* Free blocks of 256 KiB or more, of any node. */
static unsigned long large_blocks(void)
{
	const char *at = content("/proc/buddyinfo");
	unsigned long sum = 0;

	while ((at = strstr(at, "zone"))) {
		unsigned int order;

		at += 4;
		while (*at == ' ')
			at++;
		at += strcspn(at, " ");
		for (order = 0; *at && *at != '\n'; order++) {
			char *end;
			const unsigned long n = strtoul(at, &end, 10);

			if (end == at)
				break;
			at = end;
			sum += order >= 6 ? n << (order - 6) : 0;
		}
	}
	return sum;
}

/* What the store takes beside the blocks that are large. */
#define SCATTERED_KB (32 << 10)

/* It is mapped, too: a page at a time, as it lies. */
static const char *see_scattered(int fd, unsigned long kb)
{
	const size_t bytes = LLDS_MAP_BYTES;
	unsigned char *blocks;
	unsigned long i, seen = 0;

	blocks = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, LLDS_MAP_BLOCKS);
	DEMAND(blocks != MAP_FAILED, "mapping it: %s", strerror(errno));
	for (i = 0; i < kb / 4; i++)
		seen += blocks[i * PAGE + PAGE / 2] != 0;
	DEMAND(seen > kb / 8, "%lu pages are not empty", seen);
	munmap(blocks, bytes);
	return NULL;
}

static const char *fragmented_memory_is_enough(void)
{
	int error, fd = device();
	unsigned long pages, large, kb;
	char key[16], value[VALUE_BYTES + 1] = { 0 };
	const char *wrong;

	error = attach_on(fd, "scattered", LLDS_NUMA_LOCAL, 0);
	DEMAND(!error, "creating it: %d", error);
	pages = fragment();
	DEMAND(pages, "the memory cannot be fragmented: %s", strerror(errno));
	large = large_blocks();
	kb = large * 256 + SCATTERED_KB;
	note("%lu pages were freed one by one, and %lu blocks are large", pages,
	     large);
	if (pages * 4 < kb + SCATTERED_KB)
		return skip("too little memory is fragmented");
	error = fill(fd, kb / 4);
	DEMAND(!error, "filling it: %d", error);
	memset(value, 77, VALUE_BYTES);
	snprintf(key, sizeof(key), "%08u", 77 + 256 * 7);
	DEMAND(!means(fd, key, value), "a value is not what was set");
	wrong = see_scattered(fd, kb);
	if (wrong)
		return wrong;
	close(fd);
	error = destroy("scattered");
	DEMAND(!error, "destroying it: %d", error);
	return NULL;
}

const struct check place_checks[] = {
	{ "a_node_that_is_not_there_is_refused",
	  a_node_that_is_not_there_is_refused },
	{ "a_store_lies_on_the_nodes_that_were_asked_for",
	  a_store_lies_on_the_nodes_that_were_asked_for },
	{ "fragmented_memory_is_enough", fragmented_memory_is_enough },
	{}
};

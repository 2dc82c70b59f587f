// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Compares the kernel's memory statistics before and after many repetitions of
 * the same act. This detects a leak of one object of any slab cache each time,
 * or of a page in a few times. Smaller leaks drown in other activity of the
 * kernel.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "named.h"

#define CACHES 512

struct memory {
	unsigned int caches;
	struct {
		char name[48];
		long objects;
	} cache[CACHES];
	long free_kilobytes, vmalloc_kilobytes;
};

static long field(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtol(at + strlen(name), NULL, 10) : -1;
}

/*
 * Opens the files that shrink slab caches, and returns their number. Alias
 * names of caches are symbolic links, which are skipped.
 */
static unsigned int open_shrinking(int fds[CACHES])
{
	DIR *caches = opendir("/sys/kernel/slab");
	struct dirent *cache;
	unsigned int many = 0;
	char path[300];

	while (caches && many < CACHES && (cache = readdir(caches))) {
		if (cache->d_type != DT_DIR || cache->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/sys/kernel/slab/%s/shrink",
			 cache->d_name);
		fds[many] = open(path, O_WRONLY);
		if (fds[many++] < 0)
			_exit(1);
	}
	closedir(caches);
	return many;
}

static void write_and_close(int fd, const char *what)
{
	if (fd < 0 || write(fd, what, 1) != 1)
		_exit(1);
	close(fd);
}

/*
 * Reads the statistics after all RCU grace periods have passed. Slab caches
 * count objects that processors cache as in use; shrinking the caches makes the
 * counts exact. Their files stay open while unused inodes are dropped, so that
 * their own inodes are not dropped, which would be freed a grace period later.
 */
static void measure(struct memory *memory)
{
	static int shrinking[CACHES];
	unsigned int i, many = open_shrinking(shrinking);
	const char *text, *line;

	syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
	write_and_close(open("/proc/sys/vm/drop_caches", O_WRONLY), "3");
	syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
	for (i = 0; i < many; i++)
		write_and_close(shrinking[i], "1");
	memory->caches = 0;
	text = content("/proc/slabinfo");
	for (line = strchr(text, '\n'); line; line = strchr(line + 1, '\n'))
		if (memory->caches < CACHES &&
		    sscanf(line + 1, "%47s %ld",
			   memory->cache[memory->caches].name,
			   &memory->cache[memory->caches].objects) == 2)
			memory->caches++;
	text = content("/proc/meminfo");
	memory->free_kilobytes = field(text, "\nMemFree:");
	memory->vmalloc_kilobytes = field(text, "\nVmallocUsed:");
	/* Add the free pages that processors cache. */
	text = content("/proc/zoneinfo");
	while ((text = strstr(text, " count:")))
		memory->free_kilobytes += 4 * field(text++, " count:");
}

/* Pages that may be missing for unrelated reasons. */
#define PAGES_AT_HAND 512

/* Returns NULL if fewer than TIMES objects or pages are missing. */
static const char *compare(const struct memory *before,
			   const struct memory *after, long times)
{
	long pages = times > PAGES_AT_HAND ? times : PAGES_AT_HAND;
	unsigned int i, j;
	long lost;

	for (i = 0; i < after->caches; i++)
		for (j = 0; j < before->caches; j++) {
			if (strcmp(after->cache[i].name, before->cache[j].name))
				continue;
			lost = after->cache[i].objects -
			       before->cache[j].objects;
			DEMAND(lost < times, "%ld more objects of %s", lost,
			       after->cache[i].name);
		}
	lost = before->free_kilobytes - after->free_kilobytes;
	DEMAND(lost < 4 * pages, "%ld KiB less are free", lost);
	lost = after->vmalloc_kilobytes - before->vmalloc_kilobytes;
	DEMAND(lost < 4 * pages, "%ld KiB more of vmalloc", lost);
	return NULL;
}

/*
 * Some memory is freed late, so failed comparisons are repeated for
 * SECONDS_LATE seconds.
 */
#define SECONDS_LATE 5
#define TIMES_MIN 100

const char *leaks(const char *(*once)(void), unsigned long warm,
		  unsigned long times)
{
	static struct memory before, after;
	const char *wrong = NULL;
	unsigned long i;
	time_t begin;

	/* The first calls allocate memory that is kept. */
	for (i = 0; !wrong && i < warm; i++)
		wrong = once();
	measure(&before);
	DEMAND(before.caches > 50 && before.free_kilobytes > 0 &&
		       before.vmalloc_kilobytes >= 0,
	       "the statistics cannot be read: %u caches", before.caches);
	for (i = 0; !wrong && i < times; i++)
		wrong = once();
	if (wrong)
		return wrong;
	if (times < TIMES_MIN)
		return skip("%lu times are too few to detect a leak", times);
	begin = time(NULL);
	do {
		measure(&after);
		wrong = compare(&before, &after, times / 2);
	} while (wrong && time(NULL) < begin + SECONDS_LATE);
	if (!wrong)
		return NULL;
	/* Slabs at hand do not grow with the number of times; a leak does. */
	for (i = 0; i < 2 * times; i++) {
		const char *failed = once();

		if (failed)
			return failed;
	}
	measure(&after);
	return compare(&before, &after, 2 * times);
}

static const char *open_and_close(void)
{
	int error, fd = device();
	const char *wrong = ask_version(fd);

	error = command(fd, LLDS_IOC_VERSION, 0);
	DEMAND(error == EFAULT, "null gave %d", error);
	close(fd);
	return wrong;
}

static const char *opens_leak_nothing(void)
{
	return leaks(open_and_close, 1000, number("opens", 10000));
}

/* Makes a store with a long value, and an answer that cannot be copied. */
static const char *make_a_store(void)
{
	static struct {
		struct llds_op op;
		unsigned char bytes[40000];
	} set = { { .code = LLDS_SET, .key_bytes = 8, .value_bytes = 39992 } };
	struct llds_answer answer;
	struct llds_run run = { .ops = (uintptr_t)&set,
				.ops_bytes = sizeof(set),
				.answers = (uintptr_t)&answer,
				.answers_bytes = sizeof(answer) };
	int error, fd = device();

	error = command(fd, LLDS_IOC_RUN, (uintptr_t)&run);
	DEMAND(!error && !answer.status, "a set gave %d", error);
	run.done = run.done_bytes = 0;
	run.answers = 8;
	error = command(fd, LLDS_IOC_RUN, (uintptr_t)&run);
	DEMAND(error == EFAULT, "an answer to nowhere gave %d", error);
	close(fd);
	return NULL;
}

static const char *stores_leak_nothing(void)
{
	return leaks(make_a_store, 200, number("stores", 1000));
}

/* Makes a store with a name, lets calls on it fail, and destroys it. */
static const char *name_a_store(void)
{
	static char value[40000];
	int error, fd = device(), other = device(), last = device();

	error = attach(fd, "leaks", LLDS_CREATE, 0600);
	DEMAND(!error, "making it: %d", error);
	error = set_bytes(fd, "key", value, sizeof(value));
	DEMAND(!error, "a set: %d", error);
	error = attach(other, "leaks", LLDS_CREATE | LLDS_EXCLUSIVE, 0600);
	DEMAND(error == EEXIST, "exclusively: %d", error);
	error = attach_bytes(other, "tiny", 4, LLDS_CREATE, 0600, 100000);
	DEMAND(error == ENOSPC, "a store of 100,000 bytes: %d", error);
	error = attach(other, "leaks", 0, 0);
	DEMAND(!error, "attaching: %d", error);
	error = attach(last, "none", 0, 0);
	DEMAND(error == ENOENT, "one that is not there: %d", error);
	close(fd);
	error = destroy("leaks");
	DEMAND(!error, "destroying it: %d", error);
	error = means(other, "key", "value");
	DEMAND(error == -1, "a get afterwards: %d", error);
	close(other);
	/* And a store that is not open. */
	error = attach(last, "leaks", LLDS_CREATE, 0600);
	DEMAND(!error, "making another: %d", error);
	close(last);
	error = destroy("leaks");
	DEMAND(!error, "destroying it: %d", error);
	return NULL;
}

/* The same as changing users, for whom it counts. */
static const char *name_a_store_as_another(void)
{
	static unsigned int times;
	const char *wrong;

	DEMAND(!seteuid(2000 + times++ % 50), "seteuid: %s", strerror(errno));
	wrong = name_a_store();
	DEMAND(!seteuid(0), "seteuid: %s", strerror(errno));
	return wrong;
}

static const char *names_leak_nothing(void)
{
	const char *wrong = let_all_in();

	return wrong ? wrong :
		       leaks(name_a_store_as_another, 100,
			     number("stores", 1000) / 2);
}

static const char *unload_and_load(void)
{
	const char *wrong;
	int error, fd;

	error = unload("llds");
	DEMAND(!error, "unloading gave %d", error);
	DEMAND(access(DEVICE, F_OK), "unloaded, but %s is there", DEVICE);
	error = load(MODULE, "");
	DEMAND(!error, "loading gave %d", error);
	fd = device();
	wrong = ask_version(fd);
	close(fd);
	return wrong;
}

static const char *loads_leak_nothing(void)
{
	unsigned long loads = number("loads", 1000);

	note("%lu loads", loads + loads / 10);
	return leaks(unload_and_load, loads / 10, loads);
}

const struct check leak_checks[] = {
	{ "opens_leak_nothing", opens_leak_nothing },
	{ "stores_leak_nothing", stores_leak_nothing },
	{ "names_leak_nothing", names_leak_nothing },
	{ "loads_leak_nothing", loads_leak_nothing },
	{}
};

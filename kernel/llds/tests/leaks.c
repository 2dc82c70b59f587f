// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What the kernel's statistics of memory say before and after doing the same
 * thing very often: a loss of one object each time, of any slab cache, or of
 * a page in a few times, shows. Less than that drowns in what the kernel does
 * meanwhile.
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
 * The files by which caches are shrunk. Others' names for a cache are links.
 * How many there are.
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
 * After all that was freed after a grace period has been freed. Caches count
 * what processors keep at hand as in use. Shrunk, they give it back, and the
 * counts are exact. Their files are open while the inodes that nobody uses
 * are dropped, so that these are none of the dropped ones, which go a grace
 * period later.
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
	/* Processors keep free pages at hand, which do not count as free. */
	text = content("/proc/zoneinfo");
	while ((text = strstr(text, " count:")))
		memory->free_kilobytes += 4 * field(text++, " count:");
}

/* Pages that may be missing for other reasons. */
#define PAGES_AT_HAND 512

/* NULL if less is missing than TIMES objects or pages. */
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
 * Some memory comes back late: the verdict is that of the best of looks for
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

	/* First what is allocated once and kept. */
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
		return skip("%lu times are too few to tell", times);
	begin = time(NULL);
	do {
		measure(&after);
		wrong = compare(&before, &after, times / 2);
	} while (wrong && time(NULL) < begin + SECONDS_LATE);
	return wrong;
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

/* A store, with a long value, and an answer that could not be told. */
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

/* A store with a name, all that may fail with it, and its end. */
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
	DEMAND(error == -1, "a get of the rest: %d", error);
	close(other);
	/* And one that nobody has open. */
	error = attach(last, "leaks", LLDS_CREATE, 0600);
	DEMAND(!error, "making another: %d", error);
	close(last);
	error = destroy("leaks");
	DEMAND(!error, "destroying it: %d", error);
	return NULL;
}

/* By users who come and go, for whom it is counted. */
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

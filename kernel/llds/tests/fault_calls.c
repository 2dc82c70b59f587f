// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Each failure point of these calls fails once: open, version, names, lists,
 * statistics, mapping.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "faults.h"

static int mine = -1, opened = -1;

/* Opens a device. */
static const char *open_one(void)
{
	mine = device();
	return NULL;
}

static const char *nothing(void)
{
	return NULL;
}

static int open_device(void)
{
	opened = open(DEVICE, O_RDWR | O_CLOEXEC);
	return opened < 0 ? errno : 0;
}

static const char *judge_open(int error)
{
	const char *wrong = NULL;

	DEMAND(is_usual(error), "another error");
	if (!error) {
		wrong = ask_version(opened);
		close(opened);
	}
	return wrong;
}

static const char *opening_survives(void)
{
	static const struct act act = { nothing, open_device, judge_open };

	return survives(&act);
}

static struct llds_version version;

static int ask(void)
{
	return command(mine, LLDS_IOC_VERSION, (uintptr_t)&version);
}

static const char *judge_version(int error)
{
	DEMAND(!error || error == EFAULT, "another error");
	DEMAND(error || version_is_right(&version), "another version");
	close(mine);
	return NULL;
}

static const char *the_version_survives(void)
{
	static const struct act act = { open_one, ask, judge_version };

	return survives(&act);
}

static int make_named(void)
{
	return attach(mine, "faults", LLDS_CREATE | LLDS_EXCLUSIVE, 0600);
}

/*
 * Tries again to attach a device after an error. Returns 0 if it is attached
 * then: after EFAULT it may have been, if only the answer was not copied.
 */
static int again(int error, int (*attaches)(void))
{
	const int now = attaches();

	return error == EFAULT && now == EBUSY ? 0 : now;
}

/*
 * Either the name has a store that works, to which the device is attached, or
 * the name is free.
 */
static const char *judge_made(int error)
{
	DEMAND(is_usual(error), "another error");
	if (error) {
		error = again(error, make_named);
		DEMAND(!error, "trying again: %d", error);
	}
	error = set(mine, "key", "value");
	if (!error)
		error = means(mine, "key", "value");
	DEMAND(!error, "using it: %d", error);
	DEMAND(!seteuid(0), "seteuid: %s", strerror(errno));
	error = destroy("faults");
	DEMAND(!error, "destroying it: %d", error);
	close(mine);
	return NULL;
}

static const char *making_a_name_survives(void)
{
	static const struct act act = { open_one, make_named, judge_made };

	return survives(&act);
}

/* As a user whose stores count. */
static const char *open_one_as_another(void)
{
	mine = device();
	DEMAND(!seteuid(2000), "seteuid: %s", strerror(errno));
	return NULL;
}

static const char *making_a_name_that_counts_survives(void)
{
	static const struct act act = { open_one_as_another, make_named,
					judge_made };

	return survives(&act);
}

/* Makes a store with a name and a pair, open in another device. */
static const char *name_one(void)
{
	int error;

	mine = device();
	opened = device();
	error = make_named();
	if (!error)
		error = set(mine, "key", "value");
	DEMAND(!error, "making it: %d", error);
	return NULL;
}

static const char *unname(void)
{
	close(mine);
	close(opened);
	return destroy("faults") ? why("the name has gone") : NULL;
}

static int attach_other(void)
{
	return attach(opened, "faults", 0, 0);
}

static const char *judge_attached(int error)
{
	DEMAND(!error || error == EFAULT, "another error");
	if (error)
		error = again(error, attach_other);
	DEMAND(!error, "trying again: %d", error);
	DEMAND(!means(opened, "key", "value"), "another store");
	return unname();
}

static const char *attaching_survives(void)
{
	static const struct act act = { name_one, attach_other,
					judge_attached };

	return survives(&act);
}

static int destroy_named(void)
{
	return destroy_bytes(opened, "faults", 6);
}

static const char *judge_destroyed(int error)
{
	DEMAND(!error || error == EFAULT, "another error");
	DEMAND(!means(mine, "key", "value"), "what was there has gone");
	if (!error) {
		error = attach_other();
		DEMAND(error == ENOENT, "destroyed, attaching gave %d", error);
	} else {
		error = destroy_named();
		DEMAND(!error, "trying again: %d", error);
	}
	close(mine);
	close(opened);
	return NULL;
}

static const char *destroying_survives(void)
{
	static const struct act act = { name_one, destroy_named,
					judge_destroyed };

	return survives(&act);
}

static struct llds_list listed;
static unsigned char room[4096];

static int list_all(void)
{
	return list(mine, room, sizeof(room), "a", 1, &listed);
}

static const char *judge_list(int error)
{
	DEMAND(is_usual(error), "another error");
	DEMAND(error || (listed.count == 1 && !listed.more &&
			 !memcmp(room + sizeof(struct llds_listed), "faults",
				 6)), "another list");
	return unname();
}

static const char *a_list_survives(void)
{
	static const struct act act = { name_one, list_all, judge_list };

	return survives(&act);
}

static struct llds_stats counted;

static int ask_statistics(void)
{
	return stats(mine, &counted);
}

static const char *judge_named_statistics(int error)
{
	DEMAND(!error || error == EFAULT, "another error");
	DEMAND(error || (counted.keys == 1 && counted.pair_bytes == 8),
	       "other statistics");
	return unname();
}

static const char *statistics_survive(void)
{
	static const struct act act = { name_one, ask_statistics,
					judge_named_statistics };

	return survives(&act);
}

/* The first statistics make the device's private store. */
static const char *judge_first_statistics(int error)
{
	DEMAND(is_usual(error), "another error");
	if (error)
		error = ask_statistics();
	DEMAND(!error && !counted.keys, "trying again: %d", error);
	close(mine);
	return NULL;
}

static const char *the_first_statistics_survive(void)
{
	static const struct act act = { open_one, ask_statistics,
					judge_first_statistics };

	return survives(&act);
}

#define PAGE 4096UL
static const struct llds_header *header;
static const volatile char *blocks, *buckets;

/* Maps all three parts of a store and touches them. */
static int map_and_touch(void)
{
	header = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, mine, LLDS_MAP_HEADER);
	if (header == MAP_FAILED)
		return errno;
	blocks = mmap(NULL, LLDS_MAP_BYTES, PROT_READ, MAP_SHARED, mine,
		      LLDS_MAP_BLOCKS);
	if (blocks == MAP_FAILED)
		return errno;
	buckets = mmap(NULL, LLDS_MAP_BYTES, PROT_READ, MAP_SHARED, mine,
		       LLDS_MAP_BUCKETS);
	if (buckets == MAP_FAILED)
		return errno;
	/* After a failed page fault, the processor repeats the access. */
	return header->abi == LLDS_ABI && (blocks[0] | 1) &&
			       (buckets[0] | 1) ? 0 : EPROTO;
}

static const char *fill_to_map(void)
{
	header = MAP_FAILED;
	blocks = buckets = MAP_FAILED;
	mine = device();
	DEMAND(!set(mine, "key", "value"), "filling it");
	return NULL;
}

static const char *judge_map(int error)
{
	DEMAND(!error || error == ENOMEM, "another error");
	DEMAND(!means(mine, "key", "value"), "what was there has gone");
	if (header != MAP_FAILED)
		munmap((void *)header, PAGE);
	if (blocks != MAP_FAILED)
		munmap((void *)blocks, LLDS_MAP_BYTES);
	if (buckets != MAP_FAILED)
		munmap((void *)buckets, LLDS_MAP_BYTES);
	close(mine);
	return NULL;
}

static const char *mapping_survives(void)
{
	static const struct act act = { fill_to_map, map_and_touch, judge_map };

	return survives(&act);
}

const struct check fault_call_checks[] = {
	{ "opening_survives", opening_survives },
	{ "the_version_survives", the_version_survives },
	{ "making_a_name_survives", making_a_name_survives },
	{ "making_a_name_that_counts_survives",
	  making_a_name_that_counts_survives },
	{ "attaching_survives", attaching_survives },
	{ "destroying_survives", destroying_survives },
	{ "a_list_survives", a_list_survives },
	{ "statistics_survive", statistics_survive },
	{ "the_first_statistics_survive", the_first_statistics_survive },
	{ "mapping_survives", mapping_survives },
	{}
};

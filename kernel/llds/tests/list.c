// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Lists of stores: complete, in order, in pieces of any size, and only those
 * that the user may see. Also bad pointers in all commands with names.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "named.h"

#define NAMES 40
/* Maximum bytes of a record. */
#define RECORD_MAX (sizeof(struct llds_listed) + 256)

struct name {
	unsigned int bytes;
	unsigned char at[LLDS_NAME_BYTES_MAX];
};

static int compare(const void *a, const void *b)
{
	const struct name *x = a, *y = b;
	const unsigned int least = x->bytes < y->bytes ? x->bytes : y->bytes;
	const int order = memcmp(x->at, y->at, least);

	return order ? order : (int)x->bytes - (int)y->bytes;
}

/* Random names of all lengths, not sorted; some are prefixes of others. */
static void make_names(struct name *names)
{
	uint64_t state = 7;
	unsigned int i, j;

	for (i = 0; i < NAMES; i++) {
		names[i].bytes = 1 + i * 37 % LLDS_NAME_BYTES_MAX;
		for (j = 0; j < names[i].bytes; j++)
			names[i].at[j] = i % 4 ? next_random(&state) % 255 + 1 :
						 'n';
	}
}

static uint32_t record_bytes(const struct llds_listed *listed)
{
	return sizeof(*listed) + ((listed->name_bytes + 7) & ~7U);
}

/* Checks that a list has these names, and that nothing is written after it. */
static const char *are_named(const unsigned char *room, uint32_t room_bytes,
			     const struct llds_list *list,
			     const struct name *names)
{
	struct llds_listed listed;
	uint32_t at = 0, i, j;

	DEMAND(list->room_bytes <= room_bytes, "more than there is room for");
	for (i = 0; i < list->count; i++) {
		memcpy(&listed, room + at, sizeof(listed));
		DEMAND(listed.name_bytes == names[i].bytes &&
			       !memcmp(room + at + sizeof(listed), names[i].at,
				       names[i].bytes),
		       "number %u is another", i);
		for (j = sizeof(listed) + names[i].bytes;
		     j < record_bytes(&listed); j++)
			DEMAND(!room[at + j], "byte %u after a name", j);
		DEMAND(listed.mode == 0640 && !listed.uid && !listed.gid &&
			       !listed.opens && !listed.flags,
		       "mode %o, of %u:%u, %u opens", listed.mode, listed.uid,
		       listed.gid, listed.opens);
		DEMAND(listed.keys == 1 && listed.pair_bytes == 8 &&
			       listed.bytes && listed.bytes_max == 8 << 20,
		       "%llu keys", (unsigned long long)listed.keys);
		at += record_bytes(&listed);
	}
	DEMAND(at == list->room_bytes, "%u bytes, not %u", list->room_bytes,
	       at);
	for (; at < room_bytes; at++)
		DEMAND(room[at] == 0xa5, "byte %u after the list was written", at);
	return NULL;
}

/* Lists all names, with @room_bytes for each piece. */
static const char *in_pieces(int fd, uint32_t room_bytes,
			     const struct name *names)
{
	unsigned char *room = malloc(room_bytes);
	struct llds_list found = { 0 };
	unsigned int got;
	const char *wrong;
	int error;

	for (got = 0;; got += found.count) {
		const struct name *last = got ? &names[got - 1] : NULL;

		memset(room, 0xa5, room_bytes);
		error = list(fd, room, room_bytes, last ? last->at : NULL,
			     last ? last->bytes : 0, &found);
		DEMAND(!error, "room %u: %d", room_bytes, error);
		DEMAND(got + found.count <= NAMES, "too many");
		wrong = are_named(room, room_bytes, &found, names + got);
		if (wrong)
			return wrong;
		if (!found.more)
			break;
		DEMAND(found.more == 1 && found.count, "none, but more");
	}
	DEMAND(got + found.count == NAMES, "%u of them", got + found.count);
	free(room);
	return NULL;
}

static const char *a_list_has_all_in_order(void)
{
	static const uint32_t rooms[] = { RECORD_MAX, RECORD_MAX + 1, 500, 4096,
					  65536, 1 << 20 };
	static struct name names[NAMES];
	unsigned char room[RECORD_MAX];
	struct llds_list found;
	const char *wrong = NULL;
	unsigned int i;
	int error, fd = device_for(O_RDONLY), other;

	error = list(fd, room, 0, NULL, 0, &found);
	DEMAND(!error && !found.count && !found.more && !found.room_bytes,
	       "where there are none: %d", error);
	make_names(names);
	for (i = 0; i < NAMES; i++) {
		other = device();
		error = attach_bytes(other, names[i].at, names[i].bytes,
				     LLDS_CREATE | LLDS_EXCLUSIVE, 0640,
				     8 << 20);
		if (!error)
			error = set(other, "key", "value");
		DEMAND(!error, "making number %u: %d", i, error);
		close(other);
	}
	qsort(names, NAMES, sizeof(*names), compare);
	for (i = 0; !wrong && i < sizeof(rooms) / sizeof(*rooms); i++)
		wrong = in_pieces(fd, rooms[i], names);
	if (wrong)
		return wrong;
	/* Room for nothing, up to one byte less than the first record. */
	for (i = 0; i < sizeof(struct llds_listed) + 1; i++) {
		memset(room, 0xa5, sizeof(room));
		error = list(fd, room, i, NULL, 0, &found);
		DEMAND(error == EMSGSIZE && room[0] == 0xa5, "room %u: %d", i,
		       error);
	}
	/* After the last name, and after a string that is no store's name. */
	error = list(fd, room, sizeof(room), "\xff\xff\xff\xff", 4, &found);
	DEMAND(!error && !found.count && !found.more, "after the last: %d", error);
	error = list(fd, room, sizeof(room), "\x01", 1, &found);
	DEMAND(!error && found.count, "after the lowest: %d", error);
	for (i = 0; i < NAMES; i++) {
		error = destroy_bytes(device(), names[i].at, names[i].bytes);
		DEMAND(!error, "destroying number %u: %d", i, error);
	}
	return NULL;
}

/* The modes of the stores, and who may see them in a list. */
static const unsigned int modes[] = { 0600, 0640, 0620, 0604, 0602, 0000,
				      0040, 0666 };
#define MODES (sizeof(modes) / sizeof(*modes))

static int make_modes(void *ignored)
{
	char name[16];
	unsigned int i;

	(void)ignored;
	for (i = 0; i < MODES; i++) {
		int error, fd = device_for(O_RDWR);

		snprintf(name, sizeof(name), "shown-%03o", modes[i]);
		error = attach(fd, name, LLDS_CREATE, modes[i]);
		if (error)
			return error;
		close(fd);
	}
	return 0;
}

#define ALL -1

/* Checks that a list shows the stores whose bits from SHIFT on are not 0. */
static int see(void *shift)
{
	const int by = *(int *)shift;
	unsigned int expected = 0, shown = 0, i;
	unsigned char room[MODES * RECORD_MAX];
	struct llds_list found;
	uint32_t at;

	if (list(device_for(O_RDONLY), room, sizeof(room), NULL, 0, &found) ||
	    found.more)
		return 255;
	for (i = 0; i < MODES; i++)
		if (by == ALL || modes[i] >> by & 6)
			expected |= 1 << i;
	for (at = 0; at < found.room_bytes;) {
		const struct llds_listed *listed = (void *)(room + at);

		for (i = 0; i < MODES; i++)
			if (listed->mode == modes[i])
				shown |= 1 << i;
		at += record_bytes(listed);
	}
	if (shown != expected)
		note("shown %#x, not %#x", shown, expected);
	return shown != expected;
}

static int see_in_a_namespace(void *shift)
{
	return unshare(CLONE_NEWUSER) ? 254 : see(shift);
}

static const char *a_list_shows_what_one_may_open(void)
{
	static const struct {
		const char *who;
		struct user user;
		int shift;
		bool in_a_namespace;
	} users[] = {
		{ "its owner", { 1000, 7, 7 }, ALL, false },
		{ "a member", { 1001, 1001, 1000 }, 3, false },
		{ "another", { 1002, 1002, 1002 }, 0, false },
		{ "root", { 0, 0, 0 }, ALL, false },
		{ "another in a namespace", { 1002, 1002, 1002 }, 0, true },
	};
	const char *wrong = let_all_in();
	unsigned int i;
	char name[16];
	int error;

	if (wrong)
		return wrong;
	error = as(OWNER, make_modes, NULL);
	DEMAND(!error, "making them: %d", error);
	for (i = 0; i < sizeof(users) / sizeof(*users); i++) {
		int shift = users[i].shift;

		error = as(users[i].user, users[i].in_a_namespace ?
						  see_in_a_namespace : see,
			   &shift);
		DEMAND(!error, "%s: %d", users[i].who, error);
	}
	for (i = 0; i < MODES; i++) {
		snprintf(name, sizeof(name), "shown-%03o", modes[i]);
		error = destroy(name);
		DEMAND(!error, "destroying %s: %d", name, error);
	}
	return NULL;
}

static const char *a_list_tells_of_owners_and_opens(void)
{
	const char *wrong = let_all_in();
	unsigned char room[MODES * RECORD_MAX];
	const struct llds_listed *listed = (void *)room;
	struct llds_list found;
	int error, fds[3];
	unsigned int i;

	if (wrong)
		return wrong;
	error = as(MEMBER, make_modes, NULL);
	DEMAND(!error, "making them: %d", error);
	for (i = 0; i < 3; i++) {
		fds[i] = device();
		error = attach(fds[i], "shown-000", 0, 0);
		DEMAND(!error, "attaching: %d", error);
		error = list(fds[i], room, sizeof(room), NULL, 0, &found);
		DEMAND(!error && found.count == MODES, "a list: %d", error);
		DEMAND(listed->uid == 1001 && listed->gid == 1001 &&
			       !listed->mode && listed->opens == i + 1,
		       "%u:%u, %u opens", listed->uid, listed->gid,
		       listed->opens);
	}
	close(fds[1]);
	error = list(fds[0], room, sizeof(room), NULL, 0, &found);
	DEMAND(!error && listed->opens == 2, "%u opens: %d", listed->opens,
	       error);
	for (i = 0; i < MODES; i++) {
		char name[16];

		snprintf(name, sizeof(name), "shown-%03o", modes[i]);
		error = destroy(name);
		DEMAND(!error, "destroying %s: %d", name, error);
	}
	return NULL;
}

/* Addresses that cannot be accessed, or only in part. */
static const char *bad_pointers_of_names_are_refused(void)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uint64_t bad[] = { 0, 8, 0xffff888000000000, 0xffffffff81000000,
				 ~0ULL, 1ULL << 63, (uintptr_t)page + 4096,
				 (uintptr_t)page + 4096 - 8 };
	static const unsigned int numbers[] = { LLDS_IOC_ATTACH,
						LLDS_IOC_DESTROY, LLDS_IOC_LIST,
						LLDS_IOC_STATS };
	unsigned char room[4096];
	struct llds_list found;
	unsigned int i, j;
	int error, fd = device(), other = device();

	DEMAND(page != MAP_FAILED && !munmap(page + 4096, 4096), "mmap");
	memset(page, 'p', 4096);
	error = attach(other, "ppp", LLDS_CREATE, 0600);
	DEMAND(!error, "making one: %d", error);
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		const void *at = (void *)(uintptr_t)bad[i];

		for (j = 0; j < 4; j++) {
			error = command(fd, numbers[j], bad[i]);
			DEMAND(error == EFAULT, "%#x with %p: %d", numbers[j],
			       at, error);
		}
		error = attach_bytes(device(), at, 9, LLDS_CREATE, 0600, 0);
		DEMAND(error == EFAULT, "a name at %p: %d", at, error);
		error = destroy_bytes(fd, at, 9);
		DEMAND(error == EFAULT, "destroying, at %p: %d", at, error);
		error = list(fd, room, sizeof(room), at, 9, &found);
		DEMAND(error == EFAULT, "a list after a name at %p: %d", at, error);
		error = list(fd, (void *)at, 4096, NULL, 0, &found);
		DEMAND(error == EFAULT, "a list to %p: %d", at, error);
	}
	/* A name that ends at the end of readable memory is valid. */
	memset(page, 'p', 4096);
	error = attach_bytes(device(), page + 4091, 5, LLDS_CREATE, 0600, 0);
	DEMAND(!error, "a name at the end: %d", error);
	error = destroy("ppppp");
	if (!error)
		error = destroy("ppp");
	DEMAND(!error, "destroying it: %d", error);
	error = list(fd, room, sizeof(room), NULL, 0, &found);
	DEMAND(!error && !found.count, "%u are left", found.count);
	/* Read-only memory is not written. */
	DEMAND(!mprotect(page, 4096, PROT_READ), "mprotect");
	error = command(fd, LLDS_IOC_STATS, (uintptr_t)page);
	DEMAND(error == EFAULT, "statistics where one may read: %d", error);
	memset(&found, 0, sizeof(found));
	error = command(fd, LLDS_IOC_LIST, (uintptr_t)page);
	DEMAND(error == EINVAL || error == EFAULT,
	       "a list where one may read: %d", error);
	return NULL;
}

const struct check list_checks[] = {
	{ "a_list_has_all_in_order", a_list_has_all_in_order },
	{ "a_list_shows_what_one_may_open", a_list_shows_what_one_may_open },
	{ "a_list_tells_of_owners_and_opens",
	  a_list_tells_of_owners_and_opens },
	{ "bad_pointers_of_names_are_refused",
	  bad_pointers_of_names_are_refused },
	{}
};

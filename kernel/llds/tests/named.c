// SPDX-License-Identifier: MIT OR Apache-2.0
/* Helpers of the checks for stores with names, and for users. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "line.h"
#include "named.h"

int as(struct user user, int (*act)(void *), void *argument)
{
	int status, pid = fork();

	if (!pid) {
		if (setgroups(1, &user.group) ||
		    setresgid(user.gid, user.gid, user.gid) ||
		    setresuid(user.uid, user.uid, user.uid))
			_exit(255);
		_exit(act(argument));
	}
	status = reap(pid);
	return status & 255 ? 255 : status >> 8;
}

const char *let_all_in(void)
{
	DEMAND(!chmod(DEVICE, 0666), "chmod: %s", strerror(errno));
	return NULL;
}

const char *reload(const char *parameters)
{
	int error = unload("llds");

	DEMAND(!error, "unloading gave %d", error);
	error = load(MODULE, parameters);
	DEMAND(!error, "loading with '%s' gave %d", parameters, error);
	return let_all_in();
}

int device_for(int mode)
{
	int fd = open(DEVICE, mode | O_CLOEXEC);

	if (fd < 0) {
		note("cannot open %s: %s", DEVICE, strerror(errno));
		_exit(255);
	}
	return fd;
}

int attach_bytes(int fd, const void *name, uint32_t bytes, uint32_t flags,
		 uint32_t mode, uint64_t bytes_max)
{
	struct llds_attach attach = { .name = (uintptr_t)name,
				      .bytes_max = bytes_max,
				      .name_bytes = bytes,
				      .mode = mode,
				      .flags = flags };

	return command(fd, LLDS_IOC_ATTACH, (uintptr_t)&attach);
}

int attach_of(int fd, unsigned int uid, const char *name, uint32_t flags,
	      uint32_t mode, unsigned int *owner)
{
	struct llds_attach attach = { .name = (uintptr_t)name,
				      .name_bytes = strlen(name),
				      .mode = mode,
				      .flags = flags | LLDS_OF_USER,
				      .uid = uid };
	const int error = command(fd, LLDS_IOC_ATTACH, (uintptr_t)&attach);

	if (owner)
		*owner = attach.uid;
	return error;
}

int destroy_of(int fd, unsigned int uid, const char *name)
{
	struct llds_destroy destroy = { .name = (uintptr_t)name,
					.name_bytes = strlen(name),
					.flags = LLDS_OF_USER,
					.uid = uid };

	return command(fd, LLDS_IOC_DESTROY, (uintptr_t)&destroy);
}

int attach(int fd, const char *name, uint32_t flags, uint32_t mode)
{
	return attach_bytes(fd, name, strlen(name), flags, mode, 0);
}

int destroy_bytes(int fd, const void *name, uint32_t bytes)
{
	struct llds_destroy destroy = { .name = (uintptr_t)name,
					.name_bytes = bytes };

	return command(fd, LLDS_IOC_DESTROY, (uintptr_t)&destroy);
}

int destroy(const char *name)
{
	int error, fd = device();

	error = destroy_bytes(fd, name, strlen(name));
	close(fd);
	return error;
}

int list(int fd, void *room, uint32_t room_bytes, const void *after,
	 uint32_t after_bytes, struct llds_list *list)
{
	*list = (struct llds_list){ .room = (uintptr_t)room,
				    .after = (uintptr_t)after,
				    .room_bytes = room_bytes,
				    .after_bytes = after_bytes };
	return command(fd, LLDS_IOC_LIST, (uintptr_t)list);
}

int destroy_all(void)
{
	struct {
		struct llds_listed listed;
		char name[256];
	} room;
	struct llds_list found;
	int error, fd = open(DEVICE, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return errno;
	do {
		error = list(fd, &room, sizeof(room), NULL, 0, &found);
		if (!error && found.count) {
			const struct llds_listed *listed = &room.listed;
			const int is_of_user = listed->flags & LLDS_OF_USER;
			struct llds_destroy destroy = {
				.name = (uintptr_t)room.name,
				.name_bytes = listed->name_bytes,
				.flags = listed->flags,
				.uid = is_of_user ? listed->uid : 0,
			};

			error = command(fd, LLDS_IOC_DESTROY,
					(uintptr_t)&destroy);
		}
	} while (!error && found.count);
	close(fd);
	return error;
}

int stats(int fd, struct llds_stats *stats)
{
	memset(stats, 0xff, sizeof(*stats));
	return command(fd, LLDS_IOC_STATS, (uintptr_t)stats);
}

static struct line *only_line(void)
{
	static __thread struct line l;

	if (!l.ops)
		l = line();
	return &l;
}

/* Does an operation; returns 0, the errno, or the status. */
static int once(int fd, struct llds_op op, const char *key, const void *value)
{
	struct line *l = only_line();
	struct llds_answer answer;
	int error;

	op.key_bytes = strlen(key);
	put(l, op, key, value, NULL);
	error = go(fd, l);
	if (error)
		return error;
	memcpy(&answer, l->answers, sizeof(answer));
	return answer.status;
}

int change(int fd, struct llds_op op, const char *key)
{
	return once(fd, op, key, NULL);
}

int set_bytes(int fd, const char *key, const void *value, uint32_t bytes)
{
	return once(fd, (struct llds_op){ .code = LLDS_SET,
					  .value_bytes = bytes }, key, value);
}

int set(int fd, const char *key, const char *value)
{
	return set_bytes(fd, key, value, strlen(value));
}

int means(int fd, const char *key, const char *value)
{
	struct line *l = only_line();
	size_t at = 0;
	int error;

	put_get(l, key);
	error = go(fd, l);
	if (error)
		return error;
	return is_answer(l, &at, LLDS_DONE, value, strlen(value)) ? 0 : -1;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Helpers of the checks for stores with names, and for users.
 */
#ifndef _LLDS_NAMED_H
#define _LLDS_NAMED_H

#include "check.h"

/* An unprivileged user: ids, and one more group. */
struct user {
	unsigned int uid, gid, group;
};

#define ROOT ((struct user){ 0, 0, 0 })
#define OWNER ((struct user){ 1000, 1000, 1000 })
/* Is in the owner's group by its additional group. */
#define MEMBER ((struct user){ 1001, 1001, 1000 })
#define OTHER ((struct user){ 1002, 1002, 1002 })

/*
 * Runs ACT as that user in a child process; returns its result, 255 if it
 * crashed.
 */
int as(struct user user, int (*act)(void *), void *argument);

/* Lets every user open the device, until the module is reloaded. */
const char *let_all_in(void);
/* Reloads the module; every user may open the device. */
const char *reload(const char *parameters);

/* Opens the device with this access mode; ends the process if that fails. */
int device_for(int mode);

/* The commands; they return 0, or the errno. */
int attach_bytes(int fd, const void *name, uint32_t bytes, uint32_t flags,
		 uint32_t mode, uint64_t bytes_max);
int attach(int fd, const char *name, uint32_t flags, uint32_t mode);
/* The same with names of a user. */
int attach_of(int fd, unsigned int uid, const char *name, uint32_t flags,
	      uint32_t mode, unsigned int *owner);
int destroy_of(int fd, unsigned int uid, const char *name);
int destroy_bytes(int fd, const void *name, uint32_t bytes);
int destroy(const char *name);
/* Destroys all stores. */
int destroy_all(void);
int list(int fd, void *room, uint32_t room_bytes, const void *after,
	 uint32_t after_bytes, struct llds_list *list);
int stats(int fd, struct llds_stats *stats);

/* Sets a key; returns 0, the errno, or the status. */
int set_bytes(int fd, const char *key, const void *value, uint32_t bytes);
int set(int fd, const char *key, const char *value);
/* Does an operation without a value; returns 0, the errno, or the status. */
int change(int fd, struct llds_op op, const char *key);
/* Gets a key; returns 0 if it has VALUE, -1 if not, or the errno. */
int means(int fd, const char *key, const char *value);

#endif /* _LLDS_NAMED_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Stores with names, and users, as the checks have them.
 */
#ifndef _LLDS_NAMED_H
#define _LLDS_NAMED_H

#include "check.h"

/* A user without rights: ids, and one more group. */
struct user {
	unsigned int uid, gid, group;
};

#define ROOT ((struct user){ 0, 0, 0 })
#define OWNER ((struct user){ 1000, 1000, 1000 })
/* Of the owner's group by the one more that they have. */
#define MEMBER ((struct user){ 1001, 1001, 1000 })
#define OTHER ((struct user){ 1002, 1002, 1002 })

/* What ACT returns as that user, in a process of its own; 255 if it crashed. */
int as(struct user user, int (*act)(void *), void *argument);

/* Lets every user open the device, until it is loaded again. */
const char *let_all_in(void);
/* Unloads the module, and loads it again; all may open the device. */
const char *reload(const char *parameters);

/* Opens the device, as O_RDWR and so on say; ends the process if that fails. */
int device_for(int mode);

/* The commands; 0, or the errno. */
int attach_bytes(int fd, const void *name, uint32_t bytes, uint32_t flags,
		 uint32_t mode, uint64_t bytes_max);
int attach(int fd, const char *name, uint32_t flags, uint32_t mode);
int destroy_bytes(int fd, const void *name, uint32_t bytes);
int destroy(const char *name);
/* Takes all names away that there are. */
int destroy_all(void);
int list(int fd, void *room, uint32_t room_bytes, const void *after,
	 uint32_t after_bytes, struct llds_list *list);
int stats(int fd, struct llds_stats *stats);

/* A set of a key; 0, the errno, or the status that it came to. */
int set_bytes(int fd, const char *key, const void *value, uint32_t bytes);
int set(int fd, const char *key, const char *value);
/* A get of a key; 0 if it means VALUE, -1 if not, or the errno. */
int means(int fd, const char *key, const char *value);

#endif /* _LLDS_NAMED_H */

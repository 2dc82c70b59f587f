/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stores and their references: open devices, and names.
 *
 * A store without a name belongs to one open device and is freed with it. A
 * store with a name has an owner, a group and a mode, and outlives its
 * processes. It is freed when its name was removed and its last open device is
 * closed.
 *
 * A quota counts the memory of all stores of a user, with a name or without. A
 * store counts for the user who created it, no matter who fills it. Another
 * quota, half as large, counts the copies that runs make, while they last, for
 * the user who opened the device.
 * What was created or opened with CAP_SYS_RESOURCE counts for no user.
 *
 * This code does not access user memory.
 */
#ifndef LLDS_STORES_H
#define LLDS_STORES_H

#include <linux/rbtree.h>
#include <linux/uidgid.h>

#include "request.h"
#include "uapi/llds.h"

/**
 * struct llds_limits - the module's limits, fixed when it is loaded
 * @store_bytes_max: maximum bytes of a store
 * @user_bytes_max: maximum bytes of all stores of a user together; half as much
 *	is the maximum of the copies that runs make
 * @value_bytes_max: maximum value length
 * @stores_max: maximum number of names
 * @index: the index structures of stores
 */
struct llds_limits {
	u64 store_bytes_max;
	u64 user_bytes_max;
	u32 value_bytes_max;
	u32 stores_max;
	enum llds_index index;
};

/**
 * struct llds_name - the name of a store
 * @is_of_user: whether it is one of a user, or else shared
 * @user: the user
 * @bytes: its length
 * @at: its bytes
 */
struct llds_name {
	bool is_of_user;
	kuid_t user;
	u32 bytes;
	u8 at[LLDS_NAME_BYTES_MAX];
};

struct llds_user;

/**
 * struct llds_held - a store and its references
 * @shared: the store
 * @user: the user for whom it counts, or NULL
 * @opens: number of open devices that are attached to it
 * @node: its node in the tree of names; empty without a name
 * @name: its name
 * @uid: its owner
 * @gid: its group
 * @mode: its permissions
 */
struct llds_held {
	struct llds_shared shared;
	struct llds_user *user;
	u64 opens;
	struct rb_node node;
	struct llds_name name;
	kuid_t uid;
	kgid_t gid;
	umode_t mode;
};

/**
 * struct llds_wanted - a request to attach an open device to a store
 * @name: the name of the store
 * @may: the access of the device: LLDS_READS, LLDS_CHANGES
 * @flags: LLDS_CREATE, LLDS_EXCLUSIVE
 * @mode: the permissions of a new store
 * @bytes_max: the limit of a new store; 0, or more than the module's limit, is
 *	the module's limit
 * @takes_turns: whether a new store lies on all memory nodes in turn
 * @node: the memory node of a new store, or LLDS_ANY_NODE
 */
struct llds_wanted {
	struct llds_name name;
	u32 may;
	u32 flags;
	umode_t mode;
	u64 bytes_max;
	bool takes_turns;
	int node;
};

/* Sets the limits. Call this before all others. */
void llds_stores_begin(const struct llds_limits *limits);

/*
 * The user for whom the current process's memory counts. Returns it, NULL if it
 * counts for no user, or an ERR_PTR().
 */
struct llds_user *llds_user_get(void);

/* Returns such a user, who may be NULL. */
void llds_user_put(struct llds_user *user);

/* The limit of the copies that a user's runs make, or NULL. */
struct llds_quota *llds_user_copies(struct llds_user *user);

/* Makes a store without a name. Returns it or an ERR_PTR(), never NULL. */
struct llds_held *llds_stores_make(void);

/* Opens the store of a name. Returns it or an ERR_PTR(), never NULL. */
struct llds_held *llds_stores_attach(const struct llds_wanted *wanted);

/* Drops the reference of an open device. */
void llds_stores_close(struct llds_held *held);

/*
 * Removes a name, unless @only is not NULL and not the store of that name.
 * Returns 0, -ENOENT, -EACCES, or -EINTR.
 */
int llds_stores_destroy(const struct llds_name *name,
			const struct llds_held *only);

/*
 * Writes records of the stores after a name to @room, and their numbers to
 * @list. Returns 0, -EMSGSIZE, or -EINTR.
 */
int llds_stores_list(const struct llds_name *after, void *room,
		     struct llds_list *list);

/* The statistics of a store at one moment; returns 0, or -EINTR. */
int llds_stores_stats(struct llds_held *held, struct llds_stats *stats);

#endif /* LLDS_STORES_H */

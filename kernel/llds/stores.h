/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stores, and what holds them: open devices, and names.
 *
 * A store without a name belongs to one open device and goes with it. A store
 * with a name has an owner, a group and a mode, outlives its processes, and
 * goes when its name has been taken away and the last open device is closed.
 *
 * What the stores of a user take counts together, with a name or without.
 * A store counts for who makes it, whoever fills it; what is made with
 * CAP_SYS_RESOURCE counts for nobody.
 *
 * Nothing here touches memory of a user.
 */
#ifndef LLDS_STORES_H
#define LLDS_STORES_H

#include <linux/rbtree.h>
#include <linux/uidgid.h>

#include "request.h"
#include "uapi/llds.h"

/**
 * struct llds_limits - what there may be, fixed once the module is loaded
 * @store_bytes_max: what a store may take
 * @user_bytes_max: what all stores of a user may take together
 * @value_bytes_max: the longest value
 * @stores_max: how many names there may be
 * @index: which structure a store has
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
 * @bytes: how many
 * @at: the bytes
 */
struct llds_name {
	u32 bytes;
	u8 at[LLDS_NAME_BYTES_MAX];
};

struct llds_user;

/**
 * struct llds_held - a store, and what holds it
 * @shared: the store
 * @user: for whom it counts, or NULL
 * @opens: how many open devices are about it
 * @node: its place among the names; empty if it has none
 * @name: its name
 * @uid: its owner
 * @gid: its group
 * @mode: who may read and write
 */
struct llds_held {
	struct llds_shared shared;
	struct llds_user *user;
	u32 opens;
	struct rb_node node;
	struct llds_name name;
	kuid_t uid;
	kgid_t gid;
	umode_t mode;
};

/**
 * struct llds_wanted - what an open device is to be about
 * @name: the name of the store
 * @may: what the device is open for: LLDS_READS, LLDS_CHANGES
 * @flags: LLDS_CREATE, LLDS_EXCLUSIVE
 * @mode: of a store that is made
 * @bytes_max: likewise; 0 or too much is what any may take
 */
struct llds_wanted {
	struct llds_name name;
	u32 may;
	u32 flags;
	umode_t mode;
	u64 bytes_max;
};

/* Before all others. */
void llds_stores_begin(const struct llds_limits *limits);

/* Makes a store without a name for an open device; never NULL, maybe an error. */
struct llds_held *llds_stores_make(void);

/* The store of a name, for one more open device; never NULL, maybe an error. */
struct llds_held *llds_stores_attach(const struct llds_wanted *wanted);

/* An open device is closed. */
void llds_stores_close(struct llds_held *held);

/* Takes a name away; 0, -ENOENT, -EACCES, or -EINTR. */
int llds_stores_destroy(const struct llds_name *name);

/*
 * Puts records of the stores behind a name into a room, as struct llds_list
 * says, and says there what was put; 0, -EMSGSIZE, or -EINTR.
 */
int llds_stores_list(const struct llds_name *after, void *room,
		     struct llds_list *list);

/* What a store has and takes, at one moment; 0, or -EINTR. */
int llds_stores_stats(struct llds_held *held, struct llds_stats *stats);

#endif /* LLDS_STORES_H */

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stores and their references: open devices, and names.
 *
 * One mutex guards names, users and counts of opens. It is taken under the lock
 * of an open device and that of a user's creations at most. Its holder takes no
 * other lock, allocates nothing and frees nothing, so it is held only briefly. A
 * store is made before its name is looked up, and dropped after it was removed.
 *
 * No thread waits for a store's lock while it holds the mutex. So a listing
 * reads the numbers of each store without the store's lock, each at some
 * moment.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/hashtable.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/user_namespace.h>

#include "stores.h"

/**
 * struct llds_user - the memory of all stores and runs of a user
 * @node: its node in the table of users
 * @uid: the user
 * @references: number of stores and open devices that count here; freed with
 *	the last one
 * @quota: the bytes that the stores have allocated, and their limit
 * @copies: the bytes of copies that runs make, and their limit. By itself, so
 *	that stores that are full can be read and emptied.
 * @creating: held while a store with a name is created. Of two processes that
 *	create the same one, neither takes the memory that the other needs.
 */
struct llds_user {
	struct hlist_node node;
	kuid_t uid;
	u64 references;
	struct llds_quota quota;
	struct llds_quota copies;
	/* See above. */
	struct mutex creating;
};

static struct llds_limits limits;

/* Guards the variables below, and 'opens' and 'node' of each store. */
static DEFINE_MUTEX(lock);
static struct rb_root names = RB_ROOT;
static u32 names_count;
static DEFINE_HASHTABLE(users, 8);

void llds_stores_begin(const struct llds_limits *given)
{
	limits = *given;
}

/* Whether the process has a capability in the initial user namespace. */
static bool has(int capability)
{
	return ns_capable_noaudit(&init_user_ns, capability);
}

static struct llds_user *user_of(kuid_t uid)
{
	struct llds_user *user;

	hash_for_each_possible(users, user, node, __kuid_val(uid)) {
		if (uid_eq(user->uid, uid))
			return user;
	}
	return NULL;
}

/*
 * The user for whom a store of the current process counts. In a user namespace,
 * a user may have many ids: all of them count for the namespace's owner.
 */
static kuid_t payer(void)
{
	const struct user_namespace *ns = current_user_ns();

	if (ns == &init_user_ns)
		return current_fsuid();
	while (ns->parent != &init_user_ns)
		ns = ns->parent;
	return ns->owner;
}

struct llds_user *llds_user_get(void)
{
	const kuid_t uid = payer();
	struct llds_user *fresh, *user;

	if (has(CAP_SYS_RESOURCE))
		return NULL;
	fresh = kzalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT);
	if (!fresh)
		return ERR_PTR(-ENOMEM);
	fresh->uid = uid;
	fresh->quota.bytes_max = limits.user_bytes_max;
	fresh->copies.bytes_max = limits.user_bytes_max / 2;
	mutex_init(&fresh->creating);
	mutex_lock(&lock);
	user = user_of(uid);
	if (!user) {
		user = fresh;
		fresh = NULL;
		hash_add(users, &user->node, __kuid_val(uid));
	}
	user->references++;
	mutex_unlock(&lock);
	if (fresh)
		mutex_destroy(&fresh->creating);
	kfree(fresh);
	return user;
}

void llds_user_put(struct llds_user *user)
{
	bool is_last;

	if (!user)
		return;
	mutex_lock(&lock);
	is_last = !--user->references;
	if (is_last)
		hash_del(&user->node);
	mutex_unlock(&lock);
	if (!is_last)
		return;
	mutex_destroy(&user->creating);
	kfree(user);
}

struct llds_quota *llds_user_copies(struct llds_user *user)
{
	return user ? &user->copies : NULL;
}

/* Frees a store. REQUIRES: it has no references. */
static void drop(struct llds_held *held)
{
	llds_shared_drop(&held->shared);
	llds_user_put(held->user);
	kfree(held);
}

/* Counts a store for the user of the current process. */
static int charge(struct llds_held *held)
{
	struct llds_user *user = llds_user_get();

	if (IS_ERR_OR_NULL(user))
		return PTR_ERR_OR_ZERO(user);
	held->user = user;
	return llds_budget_join(&held->shared.store.budget, &user->quota) ?
		       0 : -EDQUOT;
}

/* Makes a store without a name, open once. */
static struct llds_held *make(u64 bytes_max)
{
	struct llds_held *held = kzalloc(sizeof(*held), GFP_KERNEL_ACCOUNT);
	int error;

	if (!held)
		return ERR_PTR(-ENOMEM);
	if (!bytes_max || bytes_max > limits.store_bytes_max)
		bytes_max = limits.store_bytes_max;
	held->opens = 1;
	RB_CLEAR_NODE(&held->node);
	error = llds_shared_init(&held->shared, limits.index, bytes_max,
				 limits.value_bytes_max, get_random_u64());
	if (error) {
		if (held->shared.store.budget.is_refused)
			error = -ENOSPC;
		kfree(held);
		return ERR_PTR(error);
	}
	error = charge(held);
	if (error) {
		drop(held);
		return ERR_PTR(error);
	}
	return held;
}

struct llds_held *llds_stores_make(void)
{
	return make(0);
}

static int compare_bytes(const struct llds_name *a, const struct llds_name *b)
{
	const int order = memcmp(a->at, b->at, min(a->bytes, b->bytes));

	return order ? order : (int)a->bytes - (int)b->bytes;
}

/* Compares names: by whose they are, and then by their bytes. */
static int compare(const struct llds_name *a, const struct llds_name *b)
{
	if (a->is_of_user != b->is_of_user)
		return a->is_of_user ? 1 : -1;
	if (a->is_of_user && !uid_eq(a->user, b->user))
		return uid_lt(a->user, b->user) ? -1 : 1;
	return compare_bytes(a, b);
}

static struct llds_held *held_of(struct rb_node *node)
{
	return rb_entry(node, struct llds_held, node);
}

static struct llds_held *find(const struct llds_name *name)
{
	struct rb_node *node = names.rb_node;

	while (node) {
		const int order = compare(name, &held_of(node)->name);

		if (!order)
			return held_of(node);
		node = order < 0 ? node->rb_left : node->rb_right;
	}
	return NULL;
}

/* The first store after a name. */
static struct rb_node *behind(const struct llds_name *name)
{
	struct rb_node *node = names.rb_node, *found = NULL;

	while (node) {
		if (compare(name, &held_of(node)->name) < 0) {
			found = node;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return found;
}

/* Whether the mode permits this access, as that of a file. */
static bool mode_lets(const struct llds_held *held, u32 may)
{
	const umode_t wanted = (may & LLDS_READS ? 0004 : 0) |
			       (may & LLDS_CHANGES ? 0002 : 0);
	umode_t mode = held->mode;

	if (uid_eq(current_fsuid(), held->uid))
		mode >>= 6;
	else if (in_group_p(held->gid))
		mode >>= 3;
	return !(wanted & ~mode);
}

/* Gives a store a name. REQUIRES: no store has it. */
static int give_name(struct llds_held *held, const struct llds_wanted *wanted)
{
	struct rb_node **at = &names.rb_node, *parent = NULL;

	if (names_count >= limits.stores_max && !has(CAP_SYS_RESOURCE))
		return -ENFILE;
	held->name = wanted->name;
	held->mode = wanted->mode;
	held->uid = current_fsuid();
	held->gid = current_fsgid();
	while (*at) {
		parent = *at;
		at = compare(&held->name, &held_of(parent)->name) < 0 ?
			     &parent->rb_left : &parent->rb_right;
	}
	rb_link_node(&held->node, parent, at);
	rb_insert_color(&held->node, &names);
	names_count++;
	/* A store with a name keeps the module loaded. */
	__module_get(THIS_MODULE);
	return 0;
}

/*
 * The store of a name. If no store has it: gives @made the name and returns it,
 * or returns @made if that is an error.
 */
static struct llds_held *open_name(const struct llds_wanted *wanted,
				   struct llds_held *made)
{
	struct llds_held *held;
	int error = 0;

	if (mutex_lock_killable(&lock))
		return ERR_PTR(-EINTR);
	held = find(&wanted->name);
	if (held) {
		if (wanted->flags & LLDS_EXCLUSIVE)
			error = -EEXIST;
		else if (!mode_lets(held, wanted->may) &&
			 !has(CAP_DAC_OVERRIDE))
			error = -EACCES;
		else
			held->opens++;
	} else {
		held = made;
		if (!IS_ERR(made))
			error = give_name(made, wanted);
	}
	mutex_unlock(&lock);
	return error ? ERR_PTR(error) : held;
}

/* Creates the store of a name, or opens it if it was created meanwhile. */
static struct llds_held *create(const struct llds_wanted *wanted)
{
	struct llds_held *held, *made;

	held = open_name(wanted, ERR_PTR(-ENOENT));
	if (held != ERR_PTR(-ENOENT))
		return held;
	/* A process of another user may create it now; then use that. */
	made = make(wanted->bytes_max);
	if (!IS_ERR(made)) {
		made->shared.store.budget.takes_turns = wanted->takes_turns;
		made->shared.store.budget.node = wanted->node;
	}
	held = open_name(wanted, made);
	if (!IS_ERR(made) && held != made)
		drop(made);
	return held;
}

struct llds_held *llds_stores_attach(const struct llds_wanted *wanted)
{
	struct llds_held *held = open_name(wanted, ERR_PTR(-ENOENT));
	struct llds_user *user;

	if (held != ERR_PTR(-ENOENT) || !(wanted->flags & LLDS_CREATE))
		return held;
	if (wanted->name.is_of_user &&
	    !uid_eq(wanted->name.user, current_fsuid()))
		return ERR_PTR(-EPERM);
	user = llds_user_get();
	if (!user)
		return create(wanted);
	if (IS_ERR(user))
		return ERR_CAST(user);
	held = ERR_PTR(-EINTR);
	if (!mutex_lock_killable(&user->creating)) {
		held = create(wanted);
		mutex_unlock(&user->creating);
	}
	llds_user_put(user);
	return held;
}

void llds_stores_close(struct llds_held *held)
{
	bool is_last;

	mutex_lock(&lock);
	is_last = !--held->opens && RB_EMPTY_NODE(&held->node);
	mutex_unlock(&lock);
	if (is_last)
		drop(held);
}

/* Removes a name; returns the store if it has no references left, or NULL. */
static struct llds_held *take_name(struct llds_held *held)
{
	rb_erase(&held->node, &names);
	RB_CLEAR_NODE(&held->node);
	names_count--;
	/* The module stays: the caller's open device refers to it too. */
	module_put(THIS_MODULE);
	return held->opens ? NULL : held;
}

int llds_stores_destroy(const struct llds_name *name,
			const struct llds_held *only)
{
	struct llds_held *held, *rest = NULL;
	int error = 0;

	if (mutex_lock_killable(&lock))
		return -EINTR;
	held = find(name);
	if (!held || (only && held != only))
		error = -ENOENT;
	else if (!uid_eq(current_fsuid(), held->uid) && !has(CAP_FOWNER))
		error = -EACCES;
	else
		rest = take_name(held);
	mutex_unlock(&lock);
	if (rest)
		drop(rest);
	return error;
}

static bool is_shown(const struct llds_held *held)
{
	/* A user without an id there cannot be named. */
	if (held->name.is_of_user &&
	    !kuid_has_mapping(current_user_ns(), held->name.user))
		return false;
	return uid_eq(current_fsuid(), held->uid) ||
	       mode_lets(held, LLDS_READS) || mode_lets(held, LLDS_CHANGES) ||
	       has(CAP_DAC_OVERRIDE);
}

/* Bytes of a store's record in a list. */
static u32 record_bytes(const struct llds_held *held)
{
	return sizeof(struct llds_listed) + ALIGN(held->name.bytes, 8);
}

static void put_record(const struct llds_held *held, void *to)
{
	const struct llds_store *store = &held->shared.store;
	struct user_namespace *ns = current_user_ns();
	struct llds_listed listed = {
		.bytes_max = store->budget.bytes_max,
		.uid = from_kuid_munged(ns, held->uid),
		.gid = from_kgid_munged(ns, held->gid),
		.mode = held->mode,
		.opens = min_t(u64, held->opens, U32_MAX),
		.name_bytes = held->name.bytes,
		.flags = held->name.is_of_user ? LLDS_OF_USER : 0,
	};

	/* Read without the store's lock, which may be held for long. */
	listed.keys = data_race(llds_store_keys(store));
	/* Likewise. */
	listed.pair_bytes = data_race(store->pair_bytes);
	/* Likewise. */
	listed.bytes = data_race(store->budget.bytes);
	memset(to, 0, record_bytes(held));
	memcpy(to, &listed, sizeof(listed));
	memcpy(to + sizeof(listed), held->name.at, held->name.bytes);
}

int llds_stores_list(const struct llds_name *after, void *room,
		     struct llds_list *list)
{
	const u32 room_bytes = list->room_bytes;
	struct rb_node *node;

	list->room_bytes = 0;
	list->count = 0;
	list->more = 0;
	if (mutex_lock_killable(&lock))
		return -EINTR;
	for (node = behind(after); node; node = rb_next(node)) {
		const struct llds_held *held = held_of(node);

		if (!is_shown(held))
			continue;
		if (record_bytes(held) > room_bytes - list->room_bytes) {
			list->more = 1;
			break;
		}
		put_record(held, room + list->room_bytes);
		list->room_bytes += record_bytes(held);
		list->count++;
		cond_resched();
	}
	mutex_unlock(&lock);
	return list->more && !list->count ? -EMSGSIZE : 0;
}

int llds_stores_stats(struct llds_held *held, struct llds_stats *stats)
{
	struct llds_shared *shared = &held->shared;
	const struct llds_store *store = &shared->store;
	const int error = llds_os_lock_shared(&shared->lock);

	if (error)
		return error;
	*stats = (struct llds_stats){
		.keys = llds_store_keys(store),
		.pair_bytes = store->pair_bytes,
		.bytes = store->budget.bytes,
		.bytes_max = store->budget.bytes_max,
		.value_bytes_max = shared->value_bytes_max,
	};
	llds_os_unlock_shared(&shared->lock);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device /dev/llds: open, ioctl commands, mmap.
 *
 * uapi/llds.h documents the commands. This file copies each argument from user
 * space once, checks every pointer, size and number, and copies the result
 * back. Any user who may open the device may ask for the version.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/nodemask.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/user_namespace.h>

#include "map.h"
#include "stores.h"

#define VALUE_BYTES_MAX_DEFAULT SZ_16M
/* So that the sum of two lengths fits in 32 bits. */
#define VALUE_BYTES_MAX_LIMIT SZ_1G

static unsigned int value_bytes_max = VALUE_BYTES_MAX_DEFAULT;

static int value_bytes_max_set(const char *text, const struct kernel_param *kp)
{
	return param_set_uint_minmax(text, kp, 1, VALUE_BYTES_MAX_LIMIT);
}

static const struct kernel_param_ops value_bytes_max_ops = {
	.set = value_bytes_max_set,
	.get = param_get_uint,
};

/* Fixed when the module is loaded, because existing stores rely on it. */
module_param_cb(value_bytes_max, &value_bytes_max_ops, &value_bytes_max, 0444);
MODULE_PARM_DESC(value_bytes_max,
		 "Maximum value length in bytes, 1 to 1 GiB (default 16 MiB)");

/* Maximum bytes of a store; 0 is a quarter of the machine's memory. */
static unsigned long store_bytes_max;

module_param(store_bytes_max, ulong, 0444);
MODULE_PARM_DESC(store_bytes_max,
		 "Maximum size of a store in bytes (default 0: a quarter of the memory)");

/* Maximum bytes of all stores of a user; 0 is half of the machine's memory. */
static unsigned long user_bytes_max;

module_param(user_bytes_max, ulong, 0444);
MODULE_PARM_DESC(user_bytes_max,
		 "Maximum size of all stores of a user in bytes (default 0: half of the memory)");

#define STORES_MAX_DEFAULT 1024

static unsigned int stores_max = STORES_MAX_DEFAULT;

module_param(stores_max, uint, 0444);
MODULE_PARM_DESC(stores_max,
		 "Maximum number of stores with a name (default 1024)");

static bool tree;

module_param(tree, bool, 0444);
MODULE_PARM_DESC(tree,
		 "Keep keys in a red-black tree, for comparison (default: no)");

/* Maximum bytes of one piece of a list: over 200 of the longest names. */
#define LIST_BYTES_MAX SZ_64K

/**
 * struct llds_file - an open device
 * @lock: guards setting @held
 * @held: its store: the one that it was attached to, or from the first run on a
 *	private one; set once, and lives as long as the file
 * @user: who opened the device; or NULL
 * @copies: the user's limit of the copies that runs make, or NULL
 */
struct llds_file {
	struct mutex lock; /* guards setting held */
	struct llds_held *held;
	struct llds_user *user;
	struct llds_quota *copies;
};

/* The store of an open device; makes a private one if it has none yet. */
static struct llds_held *store_of(struct llds_file *own)
{
	struct llds_held *held;

	/* Pairs with the release below, so that the store is initialized. */
	held = smp_load_acquire(&own->held);
	if (likely(held))
		return held;
	if (mutex_lock_killable(&own->lock))
		return ERR_PTR(-EINTR);
	held = own->held;
	if (!held) {
		held = llds_stores_make();
		if (!IS_ERR(held)) {
			/* Pairs with the acquire above. */
			smp_store_release(&own->held, held);
		}
	}
	mutex_unlock(&own->lock);
	return held;
}

/* The access that an open device permits. */
static u32 may_of(const struct file *file)
{
	return (file->f_mode & FMODE_READ ? LLDS_READS : 0) |
	       (file->f_mode & FMODE_WRITE ? LLDS_CHANGES : 0);
}

/* Does a run, and copies the result back. */
static long llds_run(struct file *file, u64 at)
{
	struct llds_file *own = file->private_data;
	/* What changes lies together, in these words. */
	const u64 changed = offsetof(struct llds_run, ops_bytes);
	const size_t bytes = offsetof(struct llds_run, flags) - changed;
	struct llds_run run __uninitialized;
	struct llds_held *held;
	int error;

	BUILD_BUG_ON(sizeof(run) != 40 || changed != 16 || bytes != 16);
	if (llds_os_from_user(&run, at, sizeof(run)))
		return -EFAULT;
	held = store_of(own);
	if (IS_ERR(held))
		return PTR_ERR(held);
	error = llds_request(&held->shared, &run, may_of(file), own->copies);
	if (error && error != -EMSGSIZE)
		return error;
	if (llds_os_to_user(at + changed, &run.ops_bytes, bytes))
		return -EFAULT;
	return error;
}

static int llds_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct llds_held *held = store_of(file->private_data);

	return IS_ERR(held) ? PTR_ERR(held) : llds_map(&held->shared, vma);
}

/*
 * Copies a name from user space, and checks it; with LLDS_OF_USER it is one of
 * the user @uid.
 */
static int copy_name(struct llds_name *name, u64 at, u32 bytes, u32 flags,
		     u32 uid)
{
	if (!bytes || bytes > sizeof(name->at))
		return -EINVAL;
	name->is_of_user = flags & LLDS_OF_USER;
	name->user = INVALID_UID;
	if (name->is_of_user) {
		name->user = make_kuid(current_user_ns(), uid);
		if (!uid_valid(name->user))
			return -EINVAL;
	} else if (uid) {
		return -EINVAL;
	}
	name->bytes = bytes;
	if (copy_from_user(name->at, u64_to_user_ptr(at), bytes))
		return -EFAULT;
	return memchr(name->at, 0, bytes) ? -EINVAL : 0;
}

/* Reads on which memory nodes a new store lies. */
static int copy_nodes(struct llds_wanted *wanted, u32 numa, u32 node)
{
	wanted->takes_turns = numa == LLDS_NUMA_INTERLEAVE;
	wanted->node = LLDS_ANY_NODE;
	if (numa == LLDS_NUMA_NODE) {
		if (node >= MAX_NUMNODES || !node_state(node, N_MEMORY))
			return -EINVAL;
		wanted->node = node;
		return 0;
	}
	return numa > LLDS_NUMA_NODE || node ? -EINVAL : 0;
}

static long llds_attach(struct file *file, void __user *at)
{
	struct llds_file *own = file->private_data;
	struct llds_wanted wanted;
	struct llds_attach attach;
	struct llds_held *held;
	int error;

	BUILD_BUG_ON(sizeof(attach) != 40);
	if (copy_from_user(&attach, at, sizeof(attach)))
		return -EFAULT;
	if (attach.mode & ~0666 ||
	    attach.flags & ~(LLDS_CREATE | LLDS_EXCLUSIVE | LLDS_OF_USER) ||
	    (attach.flags & (LLDS_CREATE | LLDS_EXCLUSIVE)) == LLDS_EXCLUSIVE)
		return -EINVAL;
	error = copy_name(&wanted.name, attach.name, attach.name_bytes,
			  attach.flags, attach.uid);
	if (error)
		return error;
	error = copy_nodes(&wanted, attach.numa, attach.node);
	if (error)
		return error;
	wanted.may = may_of(file);
	if (!wanted.may)
		return -EBADF;
	wanted.flags = attach.flags;
	wanted.mode = attach.mode;
	wanted.bytes_max = attach.bytes_max;
	if (mutex_lock_killable(&own->lock))
		return -EINTR;
	if (own->held) {
		error = -EBUSY;
	} else {
		held = llds_stores_attach(&wanted);
		error = PTR_ERR_OR_ZERO(held);
		if (!error) {
			attach.uid = from_kuid_munged(current_user_ns(),
						      held->uid);
			/* Pairs with the acquire of store_of(). */
			smp_store_release(&own->held, held);
		}
	}
	mutex_unlock(&own->lock);
	if (error)
		return error;
	return copy_to_user(at, &attach, sizeof(attach)) ? -EFAULT : 0;
}

static long llds_destroy(struct file *file, void __user *from)
{
	struct llds_file *own = file->private_data;
	struct llds_held *only = NULL;
	struct llds_destroy destroy;
	struct llds_name name;
	int error;

	BUILD_BUG_ON(sizeof(destroy) != 24);
	if (copy_from_user(&destroy, from, sizeof(destroy)))
		return -EFAULT;
	if (destroy.flags & ~(LLDS_OF_USER | LLDS_ATTACHED) || destroy.reserved)
		return -EINVAL;
	error = copy_name(&name, destroy.name, destroy.name_bytes,
			  destroy.flags, destroy.uid);
	if (error)
		return error;
	if (!(file->f_mode & FMODE_WRITE))
		return -EBADF;
	if (destroy.flags & LLDS_ATTACHED) {
		/* Pairs with the release where it is set. */
		only = smp_load_acquire(&own->held);
		if (!only)
			return -ENOENT;
	}
	return llds_stores_destroy(&name, only);
}

static long llds_list(void __user *at)
{
	struct llds_name after = { 0 };
	struct llds_list list;
	long error = 0;
	void *room;

	BUILD_BUG_ON(sizeof(list) != 40);
	BUILD_BUG_ON(sizeof(struct llds_listed) != 56);
	if (copy_from_user(&list, at, sizeof(list)))
		return -EFAULT;
	if (list.after_flags & ~LLDS_OF_USER)
		return -EINVAL;
	if (list.after_bytes)
		error = copy_name(&after, list.after, list.after_bytes,
				  list.after_flags, list.after_uid);
	else if (list.after_flags || list.after_uid)
		error = -EINVAL;
	if (error)
		return error;
	list.room_bytes = min_t(u32, list.room_bytes, LIST_BYTES_MAX);
	room = kvmalloc(list.room_bytes, GFP_KERNEL_ACCOUNT);
	if (!room)
		return -ENOMEM;
	error = llds_stores_list(&after, room, &list);
	if (!error && (copy_to_user(u64_to_user_ptr(list.room), room,
				    list.room_bytes) ||
		       copy_to_user(at, &list, sizeof(list))))
		error = -EFAULT;
	kvfree(room);
	return error;
}

static long llds_stats(struct file *file, void __user *to)
{
	struct llds_stats stats;
	struct llds_held *held;
	int error;

	BUILD_BUG_ON(sizeof(stats) != 64);
	held = store_of(file->private_data);
	if (IS_ERR(held))
		return PTR_ERR(held);
	error = llds_stores_stats(held, &stats);
	if (error)
		return error;
	return copy_to_user(to, &stats, sizeof(stats)) ? -EFAULT : 0;
}

static long llds_version(void __user *to)
{
	struct llds_version version = {
		.abi = LLDS_ABI,
		.key_bytes_max = LLDS_KEY_BYTES_MAX,
		.value_bytes_max = value_bytes_max,
	};

	/* There is no padding, so no bytes of the stack leak. */
	BUILD_BUG_ON(sizeof(version) != 32);
	return copy_to_user(to, &version, sizeof(version)) ? -EFAULT : 0;
}

static long llds_ioctl(struct file *file, unsigned int command,
		       unsigned long argument)
{
	/* The command's number contains the argument's size and direction. */
	switch (command) {
	case LLDS_IOC_VERSION:
		return llds_version((void __user *)argument);
	case LLDS_IOC_RUN:
		return llds_run(file, argument);
	case LLDS_IOC_ATTACH:
		return llds_attach(file, (void __user *)argument);
	case LLDS_IOC_DESTROY:
		return llds_destroy(file, (void __user *)argument);
	case LLDS_IOC_LIST:
		return llds_list((void __user *)argument);
	case LLDS_IOC_STATS:
		return llds_stats(file, (void __user *)argument);
	default:
		return -ENOTTY;
	}
}

static int llds_open(struct inode *inode, struct file *file)
{
	struct llds_file *own = kzalloc(sizeof(*own), GFP_KERNEL_ACCOUNT);

	int error;

	if (!own)
		return -ENOMEM;
	own->user = llds_user_get();
	if (IS_ERR(own->user)) {
		error = PTR_ERR(own->user);
		kfree(own);
		return error;
	}
	own->copies = llds_user_copies(own->user);
	mutex_init(&own->lock);
	file->private_data = own;
	return nonseekable_open(inode, file);
}

/* Called when no call on the file is in progress any more. */
static int llds_release(struct inode *inode, struct file *file)
{
	struct llds_file *own = file->private_data;

	if (own->held)
		llds_stores_close(own->held);
	llds_user_put(own->user);
	mutex_destroy(&own->lock);
	kfree(own);
	return 0;
}

static const struct file_operations llds_fops = {
	.owner = THIS_MODULE,
	.open = llds_open,
	.release = llds_release,
	.unlocked_ioctl = llds_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = llds_mmap,
};

/* For root only, unless a udev rule says otherwise. */
static struct miscdevice llds_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "llds",
	.fops = &llds_fops,
	.mode = 0600,
};

static int __init llds_init(void)
{
	const u64 machine_bytes = (u64)totalram_pages() << PAGE_SHIFT;
	const struct llds_limits limits = {
		.store_bytes_max = store_bytes_max ?: machine_bytes / 4,
		.user_bytes_max = user_bytes_max ?: machine_bytes / 2,
		.value_bytes_max = value_bytes_max,
		.stores_max = stores_max,
		.index = tree ? LLDS_INDEX_TREE : LLDS_INDEX_DEFAULT,
	};
	int error;

	llds_stores_begin(&limits);
	error = misc_register(&llds_device);
	if (error)
		pr_err("no device could be made: error %d\n", error);
	return error;
}

static void __exit llds_exit(void)
{
	misc_deregister(&llds_device);
}

module_init(llds_init);
module_exit(llds_exit);

MODULE_AUTHOR("The authors of Forrest");
MODULE_DESCRIPTION("Ordered key-value stores in kernel memory");
MODULE_VERSION("0.1.0");
MODULE_LICENSE("GPL");

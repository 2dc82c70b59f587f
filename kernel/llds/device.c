// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device /dev/llds: opening it, and what may be asked of it.
 *
 * What is asked is written in uapi/llds.h. This file takes the question from
 * user space, once, and brings back the answer; it believes no pointer, no
 * size and no number. Whoever may open the device may ask for the version.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "map.h"

#define VALUE_BYTES_MAX_DEFAULT SZ_16M
/* An entry has 32 bits for its lengths; sums of two of these never overflow. */
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

/* Fixed when the module is loaded: stores that are there rely on it. */
module_param_cb(value_bytes_max, &value_bytes_max_ops, &value_bytes_max, 0444);
MODULE_PARM_DESC(value_bytes_max,
		 "The longest value in bytes, 1 to 1 GiB (default 16 MiB)");

/* A store has at most so many bytes; 0 is a quarter of what the machine has. */
static unsigned long store_bytes_max;

module_param(store_bytes_max, ulong, 0444);
MODULE_PARM_DESC(store_bytes_max,
		 "What a store may take, in bytes (default 0: a quarter of the memory)");

/**
 * struct llds_file - an open device
 * @lock: guards the making of the store
 * @store: the store of its own, from the first run on; lives as long as it
 */
struct llds_file {
	struct mutex lock; /* to make the store */
	struct llds_shared *store;
};

static u64 store_limit(void)
{
	if (store_bytes_max)
		return store_bytes_max;
	return (u64)totalram_pages() << PAGE_SHIFT >> 2;
}

/* The store of an open device, which is made if there is none yet. */
static struct llds_shared *store_of(struct llds_file *own)
{
	struct llds_shared *store;
	int error;

	/* Pairs with the release below: what is seen is whole. */
	store = smp_load_acquire(&own->store);
	if (likely(store))
		return store;
	if (mutex_lock_killable(&own->lock))
		return ERR_PTR(-EINTR);
	store = own->store;
	if (store)
		goto out;
	store = kzalloc(sizeof(*store), GFP_KERNEL_ACCOUNT);
	if (!store) {
		store = ERR_PTR(-ENOMEM);
		goto out;
	}
	error = llds_shared_init(store, LLDS_INDEX_DEFAULT, store_limit(),
				 value_bytes_max, get_random_u64());
	if (error) {
		kfree(store);
		store = ERR_PTR(error);
		goto out;
	}
	/* Pairs with the acquire above. */
	smp_store_release(&own->store, store);
out:
	mutex_unlock(&own->lock);
	return store;
}

static long llds_run(struct file *file, void __user *at)
{
	struct llds_shared *store;
	struct llds_run run;
	int error;

	BUILD_BUG_ON(sizeof(run) != 40);
	if (copy_from_user(&run, at, sizeof(run)))
		return -EFAULT;
	store = store_of(file->private_data);
	if (IS_ERR(store))
		return PTR_ERR(store);
	error = llds_request(store, &run, file->f_mode & FMODE_WRITE);
	if (error && error != -EMSGSIZE)
		return error;
	return copy_to_user(at, &run, sizeof(run)) ? -EFAULT : error;
}

static int llds_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct llds_shared *store = store_of(file->private_data);

	return IS_ERR(store) ? PTR_ERR(store) : llds_map(store, vma);
}

static long llds_version(void __user *to)
{
	struct llds_version version = {
		.abi = LLDS_ABI,
		.key_bytes_max = LLDS_KEY_BYTES_MAX,
		.value_bytes_max = value_bytes_max,
	};

	/* Nothing is padded, so no byte of the stack goes along. */
	BUILD_BUG_ON(sizeof(version) != 32);
	return copy_to_user(to, &version, sizeof(version)) ? -EFAULT : 0;
}

static long llds_ioctl(struct file *file, unsigned int command,
		       unsigned long argument)
{
	/* The size and the direction are part of the command's number. */
	switch (command) {
	case LLDS_IOC_VERSION:
		return llds_version((void __user *)argument);
	case LLDS_IOC_RUN:
		return llds_run(file, (void __user *)argument);
	default:
		return -ENOTTY;
	}
}

static int llds_open(struct inode *inode, struct file *file)
{
	struct llds_file *own = kzalloc(sizeof(*own), GFP_KERNEL_ACCOUNT);

	if (!own)
		return -ENOMEM;
	mutex_init(&own->lock);
	file->private_data = own;
	return nonseekable_open(inode, file);
}

/* Nobody is in a call any more. */
static int llds_release(struct inode *inode, struct file *file)
{
	struct llds_file *own = file->private_data;

	if (own->store)
		llds_shared_drop(own->store);
	kfree(own->store);
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

/* Root alone, until a rule of udev says otherwise. */
static struct miscdevice llds_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "llds",
	.fops = &llds_fops,
	.mode = 0600,
};

static int __init llds_init(void)
{
	int error = misc_register(&llds_device);

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
MODULE_LICENSE("GPL");

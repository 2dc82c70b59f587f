// SPDX-License-Identifier: GPL-2.0-only
/*
 * Only for the checks: registers misc devices until no minor number is left, so
 * that the next device cannot be created. In a kernel that does not run out of
 * minors, loading this module fails with E2BIG.
 */
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>

#define MANY 1024

static struct miscdevice devices[MANY];
static char names[MANY][16];
static unsigned int taken;

static void give_back(void)
{
	while (taken)
		misc_deregister(&devices[--taken]);
}

static int __init blocker_init(void)
{
	static const struct file_operations nothing = { .owner = THIS_MODULE };

	for (; taken < MANY; taken++) {
		snprintf(names[taken], sizeof(names[taken]), "blocker%u", taken);
		devices[taken].minor = MISC_DYNAMIC_MINOR;
		devices[taken].name = names[taken];
		devices[taken].fops = &nothing;
		if (misc_register(&devices[taken]))
			return 0;
	}
	give_back();
	return -E2BIG;
}

static void __exit blocker_exit(void)
{
	give_back();
}

module_init(blocker_init);
module_exit(blocker_exit);

MODULE_DESCRIPTION("Takes every minor of misc devices");
MODULE_LICENSE("GPL");

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What differs between the versions of the kernel, so that no other file asks
 * for the version. What is older than the oldest kernel that this was ever
 * built for is refused, and what has 32 bits: a store would not fit.
 */
#ifndef _LLDS_COMPAT_H
#define _LLDS_COMPAT_H

#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "llds needs Linux 6.1 or newer"
#endif

#ifndef CONFIG_64BIT
#error "llds needs a kernel of 64 bits"
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
#include <linux/unaligned.h>
#else
#include <asm/unaligned.h>
#endif

#include <linux/mm.h>

/* Sets flags of a mapping that is being made, and takes others away. */
static inline void llds_vm_flags(struct vm_area_struct *vma,
				 unsigned long set, unsigned long clear)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	vm_flags_mod(vma, set, clear);
#else
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
#endif
}

#endif /* _LLDS_COMPAT_H */

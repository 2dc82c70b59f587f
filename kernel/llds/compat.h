/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The differences between kernel versions. No other file checks the version.
 * Kernels older than the oldest one that this was built for are refused, and so
 * are kernels of 32 bits, which lack address space for a store, and those of a
 * big-endian machine, where sets of slots would be in the wrong order.
 */
#ifndef _LLDS_COMPAT_H
#define _LLDS_COMPAT_H

#include <asm/byteorder.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "llds needs Linux 6.1 or newer"
#endif

#ifndef CONFIG_64BIT
#error "llds needs a kernel of 64 bits"
#endif

#ifndef __LITTLE_ENDIAN
#error "llds needs a little-endian machine"
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
#include <linux/unaligned.h>
#else
#include <asm/unaligned.h>
#endif

#include <linux/mm.h>

/* Sets and clears flags of a mapping that is being made. */
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

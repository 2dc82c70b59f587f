/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT OR Apache-2.0 */
/*
 * llds - ordered key-value stores in kernel memory: what user space and the
 * module agree on. This is the only place where it is written.
 *
 * Every field has a fixed width, nothing is padded, pointers are 64 bits,
 * and reserved fields and unknown flags must be zero.
 */
#ifndef _UAPI_LLDS_H
#define _UAPI_LLDS_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Changes whenever something here changes its meaning. */
#define LLDS_ABI 1

/* The longest key, in bytes. The shortest has none. */
#define LLDS_KEY_BYTES_MAX 4096

/**
 * struct llds_version - what the module is
 * @abi: LLDS_ABI of the module
 * @key_bytes_max: the longest key that it takes
 * @value_bytes_max: the longest value that any of its stores takes
 * @reserved: zeros
 */
struct llds_version {
	__u32 abi;
	__u32 key_bytes_max;
	__u64 value_bytes_max;
	__u64 reserved[2];
};

#define LLDS_IOC_MAGIC 0xec

/* Tells the version. Needs no more than an open device. */
#define LLDS_IOC_VERSION _IOR(LLDS_IOC_MAGIC, 0, struct llds_version)

#endif /* _UAPI_LLDS_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What differs between the versions of the kernel, so that no other file asks
 * for the version. So far nothing that is used does; what is older than the
 * oldest kernel that this was ever built for is refused.
 */
#ifndef _LLDS_COMPAT_H
#define _LLDS_COMPAT_H

#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "llds needs Linux 6.1 or newer"
#endif

#endif /* _LLDS_COMPAT_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A store in the memory of a process, to be read only.
 */
#ifndef LLDS_MAP_H
#define LLDS_MAP_H

#include "request.h"

struct vm_area_struct;

/*
 * Shows a store as uapi/llds.h says. The store lives as long as the file that
 * is mapped. 0; -EACCES if more is asked for than to read; -EINVAL if there is
 * nothing to be seen there; -EINTR.
 */
int llds_map(struct llds_shared *shared, struct vm_area_struct *vma);

#endif /* LLDS_MAP_H */

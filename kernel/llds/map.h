/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Maps a store read-only into a process.
 */
#ifndef LLDS_MAP_H
#define LLDS_MAP_H

#include "request.h"

struct vm_area_struct;

/*
 * Maps a store as uapi/llds.h describes. The store lives as long as the file
 * that is mapped. Returns 0; -EACCES for a mapping that is not read-only;
 * -EINVAL if the store has nothing at these offsets; -EINTR.
 */
int llds_map(struct llds_shared *shared, struct vm_area_struct *vma);

#endif /* LLDS_MAP_H */

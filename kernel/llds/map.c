// SPDX-License-Identifier: GPL-2.0-only
/*
 * A store in the memory of a process, to be read only.
 *
 * Pages appear as they are touched, each by a reference of its own, so that
 * what a process has in sight is never given to anybody else. While there is
 * a mapping, the store gives no page back: a page that came for its number
 * later would not be the one in sight.
 */
#include <linux/fs.h>
#include <linux/mm.h>

#include "map.h"

/*
 * The store's lock may be waited for here, with the lock of the process's
 * memory held: who has the store's lock touches no memory of a user.
 */
static vm_fault_t llds_map_fault(struct vm_fault *vmf)
{
	struct llds_shared *shared = vmf->vma->vm_private_data;
	void *at;

	if (llds_os_lock_shared(&shared->lock))
		return VM_FAULT_SIGBUS;
	at = llds_shown_at(&shared->store, (u64)vmf->pgoff << PAGE_SHIFT);
	if (at) {
		vmf->page = virt_to_page(at);
		get_page(vmf->page);
	}
	llds_os_unlock_shared(&shared->lock);
	return at ? 0 : VM_FAULT_SIGBUS;
}

/* A mapping was copied, or cut in two. */
static void llds_map_open(struct vm_area_struct *vma)
{
	struct llds_shared *shared = vma->vm_private_data;

	llds_os_lock_alone_always(&shared->lock);
	shared->maps++;
	llds_os_unlock_alone(&shared->lock);
}

static void llds_map_close(struct vm_area_struct *vma)
{
	struct llds_shared *shared = vma->vm_private_data;

	llds_os_lock_alone_always(&shared->lock);
	if (--shared->maps == 0)
		llds_show(&shared->store, false);
	llds_os_unlock_alone(&shared->lock);
}

static const struct vm_operations_struct llds_map_ops = {
	.open = llds_map_open,
	.close = llds_map_close,
	.fault = llds_map_fault,
};

int llds_map(struct llds_shared *shared, struct vm_area_struct *vma)
{
	const u64 from = (u64)vma->vm_pgoff << PAGE_SHIFT;
	const u64 bytes = vma->vm_end - vma->vm_start;
	const u64 area = from & ~(LLDS_MAP_BLOCKS - 1);
	int error;

	if (vma->vm_flags & (VM_WRITE | VM_EXEC))
		return -EACCES;
	/* Of a device that is open to be read alone, VM_SHARED does not tell. */
	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	/* All of it lies in one of the three. */
	BUILD_BUG_ON(LLDS_MAP_BUCKETS != 2 * LLDS_MAP_BLOCKS);
	if (vma->vm_pgoff > LLDS_MAP_BUCKETS >> PAGE_SHIFT << 1 ||
	    area > LLDS_MAP_BUCKETS ||
	    from - area > LLDS_MAP_BYTES ||
	    bytes > (area ? LLDS_MAP_BYTES : PAGE_SIZE) - (from - area))
		return -EINVAL;
	error = llds_os_lock_alone(&shared->lock);
	if (error)
		return error;
	if (shared->maps++ == 0)
		llds_show(&shared->store, true);
	llds_os_unlock_alone(&shared->lock);
	/* It stays so: no mprotect() makes it more than to be read. */
	llds_vm_flags(vma, VM_DONTEXPAND | VM_DONTDUMP, VM_MAYWRITE | VM_MAYEXEC);
	vma->vm_private_data = shared;
	vma->vm_ops = &llds_map_ops;
	return 0;
}

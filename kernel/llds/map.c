// SPDX-License-Identifier: GPL-2.0-only
/*
 * Maps a store read-only into a process.
 *
 * Page faults insert the pages, each with a reference, so that a mapped page is
 * never given to another user. While a mapping exists, the store frees no page:
 * a page that took its number later would not be the mapped one.
 */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/vmalloc.h>

#include "map.h"

/*
 * Waits for no lock of the store. Its pieces are not freed, because the mapping
 * exists; a table of them that was replaced is freed after an RCU grace period.
 */
static vm_fault_t llds_map_fault(struct vm_fault *vmf)
{
	struct llds_shared *shared = vmf->vma->vm_private_data;
	void *at;

	rcu_read_lock();
	at = llds_shown_at(&shared->store, (u64)vmf->pgoff << PAGE_SHIFT);
	rcu_read_unlock();
	if (!at)
		return VM_FAULT_SIGBUS;
	vmf->page = is_vmalloc_addr(at) ? vmalloc_to_page(at) :
					  virt_to_page(at);
	get_page(vmf->page);
	return 0;
}

/* Called when a mapping is copied or split. */
static void llds_map_open(struct vm_area_struct *vma)
{
	llds_maps_add(vma->vm_private_data, 1);
}

static void llds_map_close(struct vm_area_struct *vma)
{
	struct llds_shared *shared = vma->vm_private_data;

	/* If somebody holds the lock, the next change frees the memory. */
	if (llds_maps_add(shared, -1) ||
	    !llds_os_lock_alone_if_free(&shared->lock))
		return;
	llds_hide_unmapped(shared);
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
	const u64 room = area ? LLDS_MAP_BYTES : PAGE_SIZE;
	int error;

	if (vma->vm_flags & (VM_WRITE | VM_EXEC))
		return -EACCES;
	/* If the device is open read-only, VM_SHARED is not set. */
	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	/* The mapping lies within one of the three areas. */
	BUILD_BUG_ON(LLDS_MAP_BUCKETS != 2 * LLDS_MAP_BLOCKS);
	if (vma->vm_pgoff > LLDS_MAP_BUCKETS >> PAGE_SHIFT << 1 ||
	    area > LLDS_MAP_BUCKETS || from - area > room ||
	    bytes > room - (from - area))
		return -EINVAL;
	if (!llds_maps_add_another(shared)) {
		/* The first one waits for a writer. */
		error = llds_os_lock_alone(&shared->lock);
		if (error)
			return error;
		llds_maps_add(shared, 1);
		llds_show(&shared->store, true);
		llds_os_unlock_alone(&shared->lock);
	}
	/* So that mprotect() cannot make it writable or executable. */
	llds_vm_flags(vma, VM_DONTEXPAND | VM_DONTDUMP, VM_MAYWRITE | VM_MAYEXEC);
	vma->vm_private_data = shared;
	vma->vm_ops = &llds_map_ops;
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The environment of the engine in the kernel (see os.h).
 */
#ifndef LLDS_OS_KERNEL_H
#define LLDS_OS_KERNEL_H

#include <linux/bitops.h>
#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/fault-inject-usercopy.h>
#include <linux/gfp.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/nodemask.h>
#include <linux/nospec.h>
#include <linux/prefetch.h>
#include <linux/rcupdate.h>
#include <linux/rwsem.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/types.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <asm/barrier.h>

#include "compat.h"

static inline u64 llds_unaligned_u64(const void *p)
{
	return get_unaligned((const u64 *)p);
}

/* Without __GFP_NOWARN the kernel warns of a size that any user may ask for. */
#define LLDS_GFP (GFP_KERNEL_ACCOUNT | __GFP_NOWARN)

static inline size_t llds_os_table_bytes(size_t bytes)
{
	return bytes > PAGE_SIZE ? PAGE_ALIGN(bytes) :
				   roundup_pow_of_two(bytes);
}

/* kvzalloc() would round all sizes up to a power of two. */
static inline void *llds_os_table(size_t bytes)
{
	return bytes > PAGE_SIZE ? __vmalloc(bytes, LLDS_GFP | __GFP_ZERO) :
				   kzalloc(bytes, LLDS_GFP);
}

static inline void llds_os_table_free(void *table)
{
	kvfree(table);
}

/* REQUIRES: @bytes is not 0. */
static inline size_t llds_os_buffer_bytes(size_t bytes)
{
	return bytes > KMALLOC_MAX_SIZE ? PAGE_ALIGN(bytes) :
					  roundup_pow_of_two(bytes);
}

static inline void *llds_os_buffer(size_t bytes)
{
	return kvmalloc(bytes, LLDS_GFP);
}

static inline void llds_os_buffer_free(void *buffer)
{
	kvfree(buffer);
}

static inline void *llds_os_page(void)
{
	BUILD_BUG_ON(PAGE_SIZE != LLDS_PAGE_BYTES);
	return (void *)get_zeroed_page(GFP_KERNEL_ACCOUNT);
}

static inline void llds_os_page_free(void *page)
{
	free_page((unsigned long)page);
}

/* Pieces may lie anywhere, because page faults map them one by one. */
static inline char *llds_os_base(void)
{
	return NULL;
}

static inline void llds_os_base_free(char *base)
{
}

static inline int llds_os_next_node(int node)
{
	return next_node_in(node, node_states[N_MEMORY]);
}

static inline struct page *llds_os_pages(int node, gfp_t flags,
					 unsigned int order)
{
	/* A node may have been taken away since. */
	if (node >= 0 && node_state(node, N_MEMORY))
		return alloc_pages_node(node, flags, order);
	return alloc_pages(flags, order);
}

/*
 * Splits the allocated pages, so that each can be freed separately. If memory
 * is fragmented, a piece consists of single pages, on any node.
 */
static inline void *llds_os_pieces(char *at, unsigned int n, int node)
{
	const gfp_t flags = LLDS_GFP | __GFP_ZERO | __GFP_RETRY_MAYFAIL;
	/* One piece on the node is better than many on another one. */
	const gfp_t only = n > 1 && node >= 0 ? __GFP_THISNODE : 0;
	unsigned int order = get_order(n * LLDS_PIECE_BYTES);
	struct page *page = llds_os_pages(node, flags | only, order);

	if (!page)
		return n == 1 ? __vmalloc(LLDS_PIECE_BYTES, flags) : NULL;
	split_page(page, order);
	return page_address(page);
}

static inline void llds_os_piece_free(void *piece)
{
	unsigned long at;

	if (is_vmalloc_addr(piece)) {
		vfree(piece);
		return;
	}
	for (at = 0; at < LLDS_PIECE_BYTES; at += PAGE_SIZE)
		free_page((unsigned long)piece + at);
}

/* Blocks come from allocated pieces; only tests refuse one. */
static inline bool llds_os_refuses(void)
{
	return false;
}

/* Page faults read tables without the store's lock. */
static inline void llds_os_wait_for_faults(void)
{
	synchronize_rcu();
}

static inline void llds_os_relax(void)
{
	cond_resched();
}

static inline bool llds_os_is_killed(void)
{
	return fatal_signal_pending(current);
}

/* Maximum length that is copied word by word, without a call. */
#define LLDS_OS_FEW_BYTES 64

static inline bool llds_os_are_few(size_t bytes)
{
	return bytes <= LLDS_OS_FEW_BYTES && !(bytes & 7);
}

static __always_inline int llds_os_from_user(void *to, u64 address, size_t bytes)
{
	const u64 __user *from = u64_to_user_ptr(address);
	u64 *words = to;

	if (!llds_os_are_few(bytes))
		return copy_from_user(to, from, bytes) ? -EFAULT : 0;
	might_fault();
	/* For fault injection; copy_from_user() asks this itself. */
	if (should_fail_usercopy() || !user_read_access_begin(from, bytes))
		return -EFAULT;
#pragma GCC unroll 8
	for (; bytes; bytes -= 8)
		unsafe_get_user(*words++, from++, fault);
	user_read_access_end();
	return 0;
fault:
	user_read_access_end();
	return -EFAULT;
}

static __always_inline int llds_os_to_user(u64 address, const void *from, size_t bytes)
{
	u64 __user *to = u64_to_user_ptr(address);
	const u64 *words = from;

	if (!llds_os_are_few(bytes))
		return copy_to_user(to, from, bytes) ? -EFAULT : 0;
	might_fault();
	if (should_fail_usercopy() || !user_write_access_begin(to, bytes))
		return -EFAULT;
#pragma GCC unroll 8
	for (; bytes; bytes -= 8)
		unsafe_put_user(*words++, to++, fault);
	user_write_access_end();
	return 0;
fault:
	user_write_access_end();
	return -EFAULT;
}

struct llds_os_lock {
	struct rw_semaphore semaphore;
};

/* A macro, so that each caller has a separate lockdep class. */
#define llds_os_lock_init(lock) init_rwsem(&(lock)->semaphore)

static inline int llds_os_lock_shared(struct llds_os_lock *lock)
{
	return down_read_killable(&lock->semaphore);
}

static inline void llds_os_unlock_shared(struct llds_os_lock *lock)
{
	up_read(&lock->semaphore);
}

static inline int llds_os_lock_alone(struct llds_os_lock *lock)
{
	return down_write_killable(&lock->semaphore);
}

/* Does not wait; returns false if another holds it. */
static inline bool llds_os_lock_alone_if_free(struct llds_os_lock *lock)
{
	return down_write_trylock(&lock->semaphore);
}

static inline void llds_os_unlock_alone(struct llds_os_lock *lock)
{
	up_write(&lock->semaphore);
}

#define llds_os_copy(to, from, bytes) memcpy(to, from, bytes)
#define llds_os_move(to, from, bytes) memmove(to, from, bytes)
#define llds_os_clear(to, bytes) memset(to, 0, bytes)

#endif /* LLDS_OS_KERNEL_H */

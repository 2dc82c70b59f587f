// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Memory for the engine in user space (see os.h).
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "../os.h"

/* The allocation that fails, counted from now; 0 or less is none. */
long llds_os_failing;

/* The copy that fails, counted likewise. */
long llds_os_faulting;

long llds_os_rests;

/* Large tables use huge pages, if available. */
#define HUGE_BYTES (2UL << 20)

void *llds_os_table(size_t bytes)
{
	return llds_os_refuses() ? NULL : calloc(1, bytes);
}

void llds_os_table_free(void *table)
{
	free(table);
}

/* Filled with a pattern, so that uninitialized bytes in an answer are seen. */
void *llds_os_buffer(size_t bytes)
{
	void *buffer = llds_os_refuses() ? NULL : malloc(bytes);

	return buffer ? memset(buffer, 0xa5, bytes) : NULL;
}

void llds_os_buffer_free(void *buffer)
{
	free(buffer);
}

void *llds_os_page(void)
{
	void *page = llds_os_refuses() ? NULL :
			aligned_alloc(LLDS_PAGE_BYTES, LLDS_PAGE_BYTES);

	return page ? memset(page, 0, LLDS_PAGE_BYTES) : NULL;
}

void llds_os_page_free(void *page)
{
	free(page);
}

/* Reserves addresses for the maximum of pieces, aligned to a huge page. */
#define BASE_BYTES (LLDS_PIECES_MAX * LLDS_PIECE_BYTES)
#define NOTHING (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

char *llds_os_base(void)
{
	char *all = mmap(NULL, BASE_BYTES + HUGE_BYTES, PROT_NONE, NOTHING, -1,
			 0);
	const size_t before = -(uintptr_t)all & (HUGE_BYTES - 1);

	if (all == MAP_FAILED)
		return NULL;
	if (before)
		munmap(all, before);
	munmap(all + before + BASE_BYTES, HUGE_BYTES - before);
	return all + before;
}

void llds_os_base_free(char *base)
{
	if (base)
		munmap(base, BASE_BYTES);
}

void *llds_os_pieces(char *at, unsigned int n, int node)
{
	const size_t bytes = n * LLDS_PIECE_BYTES;

	(void)node;
	/* Without a reserved range, no piece can be allocated. */
	if (!at || llds_os_refuses() ||
	    mmap(at, bytes, PROT_READ | PROT_WRITE, NOTHING | MAP_FIXED, -1,
		 0) == MAP_FAILED)
		return NULL;
	if (bytes >= HUGE_BYTES)
		madvise(at, bytes, MADV_HUGEPAGE);
	return at;
}

/* The addresses stay reserved. */
void llds_os_piece_free(void *piece)
{
	mmap(piece, LLDS_PIECE_BYTES, PROT_NONE, NOTHING | MAP_FIXED, -1, 0);
}

#ifdef LLDS_OS_PAUSES
void llds_os_pause(void)
{
	static __thread u32 state;
	static u32 threads;

	if (!state)
		state = 1 + __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
	state = state * 1664525 + 1013904223;
	if (state >> 22 == 0)
		sched_yield();
}
#endif

/* A copy that fails copies a part, as in the kernel. */
static int copy(void *to, const void *from, size_t bytes)
{
	const bool fails = llds_os_faulting > 0 && --llds_os_faulting == 0;

	memcpy(to, from, fails ? bytes / 2 : bytes);
	return fails ? -EFAULT : 0;
}

int llds_os_from_user(void *to, u64 from, size_t bytes)
{
	return copy(to, (const void *)(uintptr_t)from, bytes);
}

int llds_os_to_user(u64 to, const void *from, size_t bytes)
{
	return copy((void *)(uintptr_t)to, from, bytes);
}

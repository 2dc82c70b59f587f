// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Memory for the engine in user space.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>

#include "../os.h"

/* Which allocation from now on fails; 0 or less if none does. */
long llds_os_failing;

/* Which copy from now on fails. */
long llds_os_faulting;

/* Large tables lie on huge pages if there are any. */
#define HUGE_BYTES (2UL << 20)

void *llds_os_table(size_t bytes)
{
	return llds_os_refuses() ? NULL : calloc(1, bytes);
}

void llds_os_table_free(void *table)
{
	free(table);
}

/* What nobody wrote is seen in an answer that has it. */
void *llds_os_buffer(size_t bytes)
{
	void *buffer = llds_os_refuses() ? NULL : malloc(bytes);

	return buffer ? memset(buffer, 0xa5, bytes) : NULL;
}

void llds_os_buffer_free(void *buffer)
{
	free(buffer);
}

void *llds_os_pieces(unsigned int n)
{
	size_t bytes = n * LLDS_PIECE_BYTES;
	size_t align = bytes < HUGE_BYTES ? LLDS_PIECE_BYTES : HUGE_BYTES;
	size_t before, behind;
	char *all, *piece;

	if (llds_os_refuses())
		return NULL;
	all = mmap(NULL, bytes + align, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (all == MAP_FAILED)
		return NULL;
	before = -(uintptr_t)all & (align - 1);
	behind = align - before;
	piece = all + before;
	if (before)
		munmap(all, before);
	munmap(piece + bytes, behind);
	if (bytes >= HUGE_BYTES)
		madvise(piece, bytes, MADV_HUGEPAGE);
	return piece;
}

void llds_os_piece_free(void *piece)
{
	munmap(piece, LLDS_PIECE_BYTES);
}

/* What cannot be copied is copied in part, as the kernel does. */
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

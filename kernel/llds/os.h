/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * The environment that the engine needs.
 *
 * The engine has one source for the kernel and for user space. It is built on
 * one of two headers, which provide
 *
 * - the kernel's names for what the compiler offers: u8 to u64, bool,
 *   READ_ONCE(), WRITE_ONCE(), smp_wmb(), try_cmpxchg(), prefetch(), likely(),
 *   min(), memcpy(), memmove(), memcmp(), BUILD_BUG_ON(), fls64(), __ffs64(),
 *   array_index_nospec(),
 *   and __uninitialized, for large variables on the stack that are written
 *   before they are read: kernels may be built to zero such variables first;
 * - llds_os_table(bytes), llds_os_table_free(table): zeroed memory of any size
 *   for the engine itself; llds_os_table_bytes(bytes): what it takes;
 * - llds_os_buffer(bytes), llds_os_buffer_free(buffer): temporary memory, not
 *   initialized; llds_os_buffer_bytes(bytes): what it takes, at most;
 * - llds_os_pieces(at, n, node), llds_os_piece_free(piece): n contiguous zeroed
 *   pieces of LLDS_PIECE_BYTES, which can be mapped, at any address if 'at' is
 *   NULL, on a memory node or, with LLDS_ANY_NODE, where the policy of the
 *   process says. They are freed one by one;
 * - llds_os_next_node(node): the memory node after one, round and round;
 * - llds_os_page(), llds_os_page_free(page): a zeroed page of LLDS_PAGE_BYTES,
 *   which can be mapped;
 * - llds_os_base(), llds_os_base_free(base): in user space, the address range
 *   of LLDS_PIECES_MAX contiguous pieces; in the kernel NULL;
 * - llds_os_refuses(): whether a test lets the allocation of a block fail;
 * - llds_os_relax(): yields the processor;
 * - llds_os_wait_for_faults(): returns when all page faults that were in progress
 *   have ended;
 * - llds_os_copy(to, from, bytes), llds_os_move(to, from, bytes): memcpy() and
 *   memmove() for bytes that a seqlock read may load at the same time;
 *   llds_os_clear(to, bytes): sets such bytes to zero;
 * - llds_os_is_killed(): whether the process was killed;
 * - llds_os_from_user(to, address, bytes), llds_os_to_user(address, from,
 *   bytes): return 0 or -EFAULT; the user can let them sleep for any time. The
 *   kernel's side of the copy is aligned to 8 bytes;
 * - struct llds_os_lock: a lock, shared or exclusive, whose wait fails with
 *   -EINTR if the process is killed.
 *
 * Functions that allocate return NULL without memory, and may sleep.
 */
#ifndef LLDS_OS_H
#define LLDS_OS_H

/* Memory that can be mapped is allocated in pieces of this size. */
#define LLDS_PIECE_SHIFT 18
#define LLDS_PIECE_BYTES 262144UL
/* Maximum number of pieces of blocks, and of buckets; tests have a smaller one. */
#ifndef LLDS_PIECES_MAX
#define LLDS_PIECES_MAX 262144UL
#endif
#define LLDS_PAGE_BYTES 4096UL

#ifdef __KERNEL__
#include "os_kernel.h"
#else
#include "user/os_user.h"
#endif

#endif /* LLDS_OS_H */

/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * All that the engine needs of its surroundings.
 *
 * The engine is the same source in the kernel and in user space. It is built
 * over one of two headers that bring
 *
 * - the kernel's names for what the compiler gives: u8 to u64, bool,
 *   READ_ONCE(), WRITE_ONCE(), smp_wmb(), try_cmpxchg(), prefetch(), likely(),
 *   min(), memcpy(), memmove(), memcmp(), BUILD_BUG_ON(), fls64(), __ffs64(), and
 *   __uninitialized, for what is large, lies on the stack, and is written before
 *   it is read: kernels are built so that it would be zeroed first;
 * - llds_os_table(bytes), llds_os_table_free(table): zeroed memory for the
 *   engine alone, of any size;
 * - llds_os_buffer(bytes), llds_os_buffer_free(buffer): memory for a while, with
 *   any content;
 * - llds_os_pieces(at, n), llds_os_piece_free(piece): n zeroed pieces of
 *   LLDS_PIECE_BYTES one behind another, which a user may be shown, anywhere
 *   if 'at' is NULL. They are given back one by one;
 * - llds_os_page(), llds_os_page_free(page): a zeroed page of LLDS_PAGE_BYTES,
 *   which a user may be shown;
 * - llds_os_base(), llds_os_base_free(base): where LLDS_PIECES_MAX pieces of
 *   a user's lie one behind another, or NULL if he maps them himself;
 * - llds_os_refuses(): whether a test wants that there is no block;
 * - llds_os_relax(): a place to give up the processor;
 * - llds_os_copy(to, from, bytes), llds_os_move(to, from, bytes): memcpy() and
 *   memmove() of what a reader without a lock may look at meanwhile;
 *   llds_os_clear(to, bytes): zeros there.
 *
 * - llds_os_is_killed(): whether the process is to end;
 * - llds_os_from_user(to, address, bytes), llds_os_to_user(address, from,
 *   bytes): 0 or -EFAULT; they may sleep for as long as the user likes. What
 *   is not the user's begins at a multiple of 8 bytes;
 * - struct llds_os_lock: a lock to be shared or to be had alone, which says -EINTR to
 *   a process that is to end.
 *
 * What allocates returns NULL when there is no memory, and may sleep.
 */
#ifndef LLDS_OS_H
#define LLDS_OS_H

/* Memory that a user may be shown comes in pieces of so many bytes. */
#define LLDS_PIECE_SHIFT 18
#define LLDS_PIECE_BYTES 262144UL
/* So many at most, of blocks and of buckets. */
#define LLDS_PIECES_MAX 262144UL
#define LLDS_PAGE_BYTES 4096UL

#ifdef __KERNEL__
#include "os_kernel.h"
#else
#include "user/os_user.h"
#endif

#endif /* LLDS_OS_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The environment of the engine in user space (see os.h): the kernel's names
 * that it uses, and memory from mmap().
 *
 * If a test sets llds_os_failing to n, the n-th allocation from then on fails;
 * with llds_os_faulting, the n-th copy from or to the user.
 *
 * With LLDS_OS_PAUSES, threads sometimes yield the processor at accesses that
 * other threads observe, which makes rare interleavings frequent.
 */
#ifndef LLDS_OS_USER_H
#define LLDS_OS_USER_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "llds needs a little-endian machine");

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#ifdef LLDS_OS_PAUSES
void llds_os_pause(void);
#else
#define llds_os_pause() ((void)0)
#endif

#define READ_ONCE(x)                                                          \
	(llds_os_pause(), __atomic_load_n(&(x), __ATOMIC_RELAXED))
#define WRITE_ONCE(x, value)                                                  \
	(llds_os_pause(), __atomic_store_n(&(x), (value), __ATOMIC_RELAXED))
#define smp_wmb() __atomic_thread_fence(__ATOMIC_RELEASE)
#define smp_rmb() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define smp_load_acquire(p)                                                   \
	(llds_os_pause(), __atomic_load_n(p, __ATOMIC_ACQUIRE))
#define smp_store_release(p, value)                                           \
	(llds_os_pause(), __atomic_store_n(p, (value), __ATOMIC_RELEASE))
#define try_cmpxchg(p, old, value)                                            \
	(llds_os_pause(),                                                     \
	 __atomic_compare_exchange_n(p, old, value, false, __ATOMIC_SEQ_CST,  \
				     __ATOMIC_SEQ_CST))
#define prefetch(p) __builtin_prefetch(p)
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define BUILD_BUG_ON(condition) _Static_assert(!(condition), #condition)
#define array_index_nospec(index, size) (index)
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define min(a, b)                                                             \
	({                                                                    \
		const __typeof__(a) min_a = (a);                              \
		const __typeof__(b) min_b = (b);                              \
		min_a < min_b ? min_a : min_b;                                \
	})
#define min_t(type, a, b) min((type)(a), (type)(b))
#define max_t(type, a, b) max((type)(a), (type)(b))
#define max(a, b)                                                             \
	({                                                                    \
		const __typeof__(a) max_a = (a);                              \
		const __typeof__(b) max_b = (b);                              \
		max_a > max_b ? max_a : max_b;                                \
	})

#if defined(__has_attribute)
#if __has_attribute(__uninitialized__)
#define __uninitialized __attribute__((__uninitialized__))
#endif
#endif
#ifndef __uninitialized
#define __uninitialized
#endif

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#ifndef __aligned
#define __aligned(bytes) __attribute__((__aligned__(bytes)))
#endif
#ifndef noinline
#define noinline __attribute__((__noinline__))
#endif

static inline u32 hweight64(u64 x)
{
	return __builtin_popcountll(x);
}

static inline int fls64(u64 x)
{
	return x ? 64 - __builtin_clzll(x) : 0;
}

static inline unsigned long __ffs64(u64 x)
{
	return __builtin_ctzll(x);
}

static inline u32 get_unaligned_be32(const void *p)
{
	u32 x;

	memcpy(&x, p, sizeof(x));
	return __builtin_bswap32(x);
}

static inline u64 llds_unaligned_u64(const void *p)
{
	u64 x;

	memcpy(&x, p, sizeof(x));
	return x;
}

extern long llds_os_failing;
extern long llds_os_faulting;

/* As in the kernel: to the page. */
static inline size_t llds_os_table_bytes(size_t bytes)
{
	return bytes > LLDS_PAGE_BYTES ?
		       (bytes + LLDS_PAGE_BYTES - 1) & ~(LLDS_PAGE_BYTES - 1) :
		       bytes;
}

static inline size_t llds_os_buffer_bytes(size_t bytes)
{
	return llds_os_table_bytes(bytes);
}

/* There are no page faults. */
static inline void llds_os_wait_for_faults(void)
{
}

void *llds_os_table(size_t bytes);
void llds_os_table_free(void *table);
void *llds_os_buffer(size_t bytes);
void llds_os_buffer_free(void *buffer);
void *llds_os_page(void);
void llds_os_page_free(void *page);
char *llds_os_base(void);
void llds_os_base_free(char *base);
/* Memory nodes are the kernel's matter. */
static inline int llds_os_next_node(int node)
{
	return node;
}

void *llds_os_pieces(char *at, unsigned int n, int node);
void llds_os_piece_free(void *piece);

/* Whether the allocation of a block fails. */
static inline bool llds_os_refuses(void)
{
	return unlikely(llds_os_failing > 0) && --llds_os_failing == 0;
}

/* How often the engine was ready to yield the processor. */
extern long llds_os_rests;

static inline void llds_os_relax(void)
{
	__atomic_fetch_add(&llds_os_rests, 1, __ATOMIC_RELAXED);
}

static inline bool llds_os_is_killed(void)
{
	return false;
}

/* The user is the process itself; llds_os_faulting lets a copy fail. */
int llds_os_from_user(void *to, u64 from, size_t bytes);
int llds_os_to_user(u64 to, const void *from, size_t bytes);

struct llds_os_lock {
	pthread_rwlock_t lock;
};

static inline void llds_os_lock_init(struct llds_os_lock *lock)
{
	pthread_rwlockattr_t kind;

	pthread_rwlockattr_init(&kind);
#ifdef __GLIBC__
	/* As in the kernel: a stream of readers does not starve a writer. */
	pthread_rwlockattr_setkind_np(
		&kind, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
#endif
	pthread_rwlock_init(&lock->lock, &kind);
	pthread_rwlockattr_destroy(&kind);
}

static inline int llds_os_lock_shared(struct llds_os_lock *lock)
{
	return pthread_rwlock_rdlock(&lock->lock) ? -EINTR : 0;
}

static inline void llds_os_unlock_shared(struct llds_os_lock *lock)
{
	pthread_rwlock_unlock(&lock->lock);
}

static inline int llds_os_lock_alone(struct llds_os_lock *lock)
{
	return pthread_rwlock_wrlock(&lock->lock) ? -EINTR : 0;
}

static inline void llds_os_unlock_alone(struct llds_os_lock *lock)
{
	pthread_rwlock_unlock(&lock->lock);
}

#if defined(__SANITIZE_THREAD__) || defined(LLDS_OS_PAUSES)
/* Atomic stores: seqlock reads may load these bytes, and reject them later. */
static inline void llds_os_copy(void *to, const void *from, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		WRITE_ONCE(((u8 *)to)[i], READ_ONCE(((const u8 *)from)[i]));
}

static inline void llds_os_move(void *to, const void *from, size_t bytes)
{
	u8 copy[512];

	llds_os_copy(copy, from, bytes);
	llds_os_copy(to, copy, bytes);
}

static inline void llds_os_clear(void *to, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		WRITE_ONCE(((u8 *)to)[i], 0);
}
#else
#define llds_os_copy(to, from, bytes) memcpy(to, from, bytes)
#define llds_os_move(to, from, bytes) memmove(to, from, bytes)
#define llds_os_clear(to, bytes) memset(to, 0, bytes)
#endif

#endif /* LLDS_OS_USER_H */

/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * The blocks of a store, named by handles.
 *
 * Blocks lie in pieces of 256 KiB, which together form the store's address
 * space. A handle is an address there in units of 16 bytes, with 32 bits, so a
 * store has at most 64 GiB of blocks. It is valid in the kernel, where the
 * pieces are scattered, and in a mapping, where they are contiguous. Handle 0
 * is no block.
 *
 * A piece is divided into slabs of 64 KiB, and a slab into blocks of one size.
 * A slab without used blocks can serve another size. Pieces without used slabs
 * are returned to the system, except a few.
 *
 * Guarded by the store's lock. Seqlock reads may load from a block while it is
 * freed, and check afterwards: freeing a block keeps its first 4 bytes, its
 * sequence or version. The others are cleared, so that a mapping does not show
 * what was deleted, except for a link in the next 4.
 */
#ifndef LLDS_MEMORY_H
#define LLDS_MEMORY_H

#include "os.h"

/* Bytes of a cache line. */
#define LLDS_LINE_BYTES 64

#define LLDS_UNIT_SHIFT 4
#define LLDS_UNIT_BYTES 16UL
#define LLDS_SLAB_SHIFT 16
#define LLDS_SLAB_BYTES 65536UL
/* The largest block is a slab. */
#define LLDS_BLOCK_BYTES_MAX LLDS_SLAB_BYTES
/* 16 to 128 bytes in steps of 16, then four sizes for each power of two. */
#define LLDS_CLASSES 44
#define LLDS_UNITS_SHIFT (LLDS_PIECE_SHIFT - LLDS_UNIT_SHIFT)

/* Pieces that a large structure allocates at once. */
#define LLDS_PIECES_AT_ONCE 16

/* Pieces lie where the policy of the process says. */
#define LLDS_ANY_NODE (-1)

struct llds_slab;

/**
 * struct llds_quota - a limit that several stores share
 * @bytes: allocated bytes; atomic, not guarded by the stores' locks
 * @bytes_max: maximum
 */
struct llds_quota {
	u64 bytes;
	u64 bytes_max;
};

/**
 * struct llds_budget - the limit of a store
 * @bytes: allocated bytes: pieces, tables, values that are stored apart
 * @bytes_max: maximum
 * @is_refused: whether an allocation was refused since this was set to false
 * @takes_turns: whether pieces are allocated on all memory nodes in turn
 * @node: the memory node of pieces, or LLDS_ANY_NODE; if they take turns, that
 *	of the last piece
 * @quota: a shared limit that also counts these bytes, or NULL
 */
struct llds_budget {
	u64 bytes;
	u64 bytes_max;
	bool is_refused;
	bool takes_turns;
	int node;
	struct llds_quota *quota;
};

/**
 * struct llds_memory - the blocks of a store
 * @pieces: the pieces by number; NULL where one is missing
 * @slabs: the state of each slab, by number
 * @room: capacity of @pieces
 * @slabs_room: capacity of @slabs
 * @end: one more than the highest number that a piece ever had
 * @hole: no piece below this number is missing
 * @idle: the first slab that serves no size
 * @idles: number of slabs that serve no size
 * @partial: for each size, the first slab with a free block
 * @is_shown: whether the pieces may be mapped: then no piece is freed, and a
 *	slab that serves no size is zeroed
 * @base: the address of the first piece, if they are contiguous; NULL if not
 * @used: bytes of used blocks
 * @budget: the limit of the store
 */
struct llds_memory {
	void **pieces;
	struct llds_slab *slabs;
	u32 room;
	u32 slabs_room;
	u32 end;
	u32 hole;
	u32 idle;
	u32 idles;
	u32 partial[LLDS_CLASSES];
	bool is_shown;
	char *base;
	u64 used;
	struct llds_budget *budget;
};

void llds_memory_init(struct llds_memory *memory, struct llds_budget *budget);

/* Frees everything; yields the processor now and then. */
void llds_memory_drop(struct llds_memory *memory);

/*
 * Takes @bytes of a quota, or returns them, while others may do the same.
 * Taking returns false if that exceeds it, unless it @has_to.
 */
bool llds_quota_take(struct llds_quota *quota, u64 bytes, bool has_to);
void llds_quota_give(struct llds_quota *quota, u64 bytes);

/*
 * Counts all allocations of a store, those up to now included, in a quota.
 * Returns false, and counts nothing, if that exceeds the quota.
 * REQUIRES: the budget has no quota yet.
 */
bool llds_budget_join(struct llds_budget *budget, struct llds_quota *quota);

/* Takes @bytes of the budget; returns false if that exceeds it. */
bool llds_budget_take(struct llds_budget *budget, u64 bytes);

/* Returns @bytes to the budget. */
void llds_budget_give(struct llds_budget *budget, u64 bytes);

/*
 * Allocates zeroed memory for the engine itself, within the budget. Returns
 * NULL without memory, or if the budget is exceeded.
 */
void *llds_take(struct llds_budget *budget, u64 bytes);

/* Frees such memory; @memory may be NULL. */
void llds_give(struct llds_budget *budget, void *memory, u64 bytes);

/*
 * Grows a table of pieces, which page faults may read at the same time. Returns
 * false without memory.
 */
bool llds_pieces_grow(struct llds_memory *memory, void ***table, u32 *room,
		      u32 wanted);

/*
 * The piece of a number, or NULL. REQUIRES: the store is shown, or its lock is
 * held; the table is not freed before the caller is done.
 */
static inline void *llds_piece_shown(void **const *table, const u32 *end,
				     u64 number)
{
	/* Pairs with the release of a new end: the table has room for it. */
	if (number >= smp_load_acquire(end))
		return NULL;
	return READ_ONCE(READ_ONCE(*table)[number]);
}

/*
 * Grows a table to @wanted elements of @each bytes; the new ones are zeros.
 * Returns NULL without memory, and then leaves the old table as it was.
 */
void *llds_table_grow(struct llds_budget *budget, void *table, u32 *room,
		      u32 wanted, u32 each);

/*
 * Allocates a block of at least @bytes bytes, not initialized; returns 0
 * without memory. REQUIRES: 0 < bytes <= LLDS_BLOCK_BYTES_MAX.
 */
u32 llds_block_alloc(struct llds_memory *memory, u32 bytes);

/* Frees a block. */
void llds_block_free(struct llds_memory *memory, u32 handle);

/* Frees pieces that were kept only because they may have been mapped. */
void llds_memory_trim(struct llds_memory *memory);

/* The number of pieces that a structure of @have pieces allocates at once. */
static inline u32 llds_pieces_at_once(u32 have)
{
	return have < LLDS_PIECES_AT_ONCE ? 1 : LLDS_PIECES_AT_ONCE;
}

/* The address for a piece, or NULL if any will do. */
static inline char *llds_piece_at(char *base, u32 number)
{
	return base ? base + number * LLDS_PIECE_BYTES : NULL;
}

/*
 * Allocates @many pieces, or one if that fails, and sets @many to the number.
 * They lie at @at unless that is NULL. Returns NULL without memory.
 */
void *llds_pieces(struct llds_budget *budget, char *at, u32 *many);

/* The size of a block that is allocated for @bytes bytes. */
u32 llds_block_bytes(u32 bytes);

/* The address of a block. */
static inline void *llds_block(const struct llds_memory *memory, u32 handle)
{
	char *piece = memory->pieces[handle >> LLDS_UNITS_SHIFT];

	return piece + ((size_t)(handle & ((1U << LLDS_UNITS_SHIFT) - 1))
			<< LLDS_UNIT_SHIFT);
}

#endif /* LLDS_MEMORY_H */

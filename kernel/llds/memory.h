/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * The blocks of a store, named by handles.
 *
 * Blocks lie in pieces of 256 KiB, a number of which make the store's
 * address space. A handle counts 16 bytes of it and has 32 bits, so a store
 * has at most 64 GiB of blocks; it means the same in the kernel, where the
 * pieces lie anywhere, and in a mapping, where they lie one behind another.
 * 0 is no block.
 *
 * A piece is cut into slabs of 64 KiB, a slab into blocks of one size. A slab
 * without a block that is used serves another size, and pieces without a slab
 * that is used go back to the system, but for a few.
 *
 * Guarded by the store's lock. What a block has said to readers without the
 * lock is theirs to check: a block that is freed changes at offset 4 only, and
 * keeps the 4 bytes before that.
 */
#ifndef LLDS_MEMORY_H
#define LLDS_MEMORY_H

#include "os.h"

/* What the processor fetches at once. */
#define LLDS_LINE_BYTES 64

#define LLDS_UNIT_SHIFT 4
#define LLDS_UNIT_BYTES 16UL
#define LLDS_SLAB_SHIFT 16
#define LLDS_SLAB_BYTES 65536UL
/* The largest block is a slab. */
#define LLDS_BLOCK_BYTES_MAX LLDS_SLAB_BYTES
/* 16 to 128 bytes by 16, then four sizes for each doubling. */
#define LLDS_CLASSES 44
#define LLDS_UNITS_SHIFT (LLDS_PIECE_SHIFT - LLDS_UNIT_SHIFT)

/* So many pieces come at once, where a structure is large. */
#define LLDS_PIECES_AT_ONCE 16

struct llds_slab;

/**
 * struct llds_quota - how much several stores may take together
 * @bytes: what they have taken; their locks do not guard it
 * @bytes_max: what they may take
 */
struct llds_quota {
	u64 bytes;
	u64 bytes_max;
};

/**
 * struct llds_budget - how much a store may take
 * @bytes: what it has taken: pieces, tables, values by themselves
 * @bytes_max: what it may take
 * @is_refused: whether something was refused since somebody set it to false
 * @quota: where all that it takes counts as well, or NULL
 */
struct llds_budget {
	u64 bytes;
	u64 bytes_max;
	bool is_refused;
	struct llds_quota *quota;
};

/**
 * struct llds_memory - the blocks of a store
 * @pieces: where they are, by number; NULL where there is none
 * @slabs: what is known of each slab, by number
 * @room: pieces for which there is room
 * @slabs_room: slabs for which there is
 * @end: number behind the last piece that there ever was
 * @hole: no piece below this number is missing
 * @idle: the first slab that serves no size
 * @idles: how many do
 * @partial: by size, the first slab with a block that is free
 * @is_shown: whether somebody may have the pieces in sight: then none goes
 *	back, and a slab that serves no size is zeros
 * @base: where the pieces lie one behind another; NULL: anywhere
 * @used: bytes of blocks that are used
 * @budget: what the store may take
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

/* Gives everything back, and the processor up now and then. */
void llds_memory_drop(struct llds_memory *memory);

/*
 * Lets all that a store has taken, and takes from now on, count in a quota;
 * false, and nothing counts there, if that is too much.
 * REQUIRES: it counts in none yet.
 */
bool llds_budget_join(struct llds_budget *budget, struct llds_quota *quota);

/* Takes so many bytes of what the store may have; false if it may not. */
bool llds_budget_take(struct llds_budget *budget, u64 bytes);

/* Gives them back. */
void llds_budget_give(struct llds_budget *budget, u64 bytes);

/*
 * Memory for the engine alone, zeroed, within the budget; NULL if there is
 * none, or the store may not.
 */
void *llds_take(struct llds_budget *budget, u64 bytes);

/* Gives it back; NULL is none. */
void llds_give(struct llds_budget *budget, void *memory, u64 bytes);

/*
 * A table with room for so many, each of so many bytes, in the place of one
 * with less room; what is new is zeros. NULL if there is no memory: then the
 * old one is as it was.
 */
void *llds_table_grow(struct llds_budget *budget, void *table, u32 *room,
		      u32 wanted, u32 each);

/*
 * A block of at least so many bytes, with any content; 0 if there is no
 * memory. REQUIRES: 0 < bytes <= LLDS_BLOCK_BYTES_MAX.
 */
u32 llds_block_alloc(struct llds_memory *memory, u32 bytes);

/* Gives a block back. */
void llds_block_free(struct llds_memory *memory, u32 handle);

/* Gives back what is there only because it may have been in sight. */
void llds_memory_trim(struct llds_memory *memory);

/* How many pieces what has so many gets at once: many if it is large. */
static inline u32 llds_pieces_at_once(u32 have)
{
	return have < LLDS_PIECES_AT_ONCE ? 1 : LLDS_PIECES_AT_ONCE;
}

/* Where a piece is to lie, if anywhere. */
static inline char *llds_piece_at(char *base, u32 number)
{
	return base ? base + number * LLDS_PIECE_BYTES : NULL;
}

/*
 * So many pieces, or one if there are not as many; 'many' says it. They lie
 * there if it is not NULL. NULL if there is no memory.
 */
void *llds_pieces(struct llds_budget *budget, char *at, u32 *many);

/* How many bytes a block has that is made for so many. */
u32 llds_block_bytes(u32 bytes);

/* Where a block is. */
static inline void *llds_block(const struct llds_memory *memory, u32 handle)
{
	char *piece = memory->pieces[handle >> LLDS_UNITS_SHIFT];

	return piece + ((size_t)(handle & ((1U << LLDS_UNITS_SHIFT) - 1))
			<< LLDS_UNIT_SHIFT);
}

#endif /* LLDS_MEMORY_H */

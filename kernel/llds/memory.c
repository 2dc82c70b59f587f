// SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0
/*
 * The blocks of a store, named by handles.
 */
#include "memory.h"

#define NONE (~0U)
#define SLABS_OF_PIECE (LLDS_PIECE_BYTES / LLDS_SLAB_BYTES)
/*
 * Maximum number of slabs that are kept although they serve no size: 8 pieces.
 */
#define IDLES_MAX (8 * SLABS_OF_PIECE)

/* The class of a slab that serves no size, and of one in a missing piece. */
#define IDLE 0xff
#define MISSING 0xfe

/**
 * struct llds_slab - the state of a slab
 * @next: the next slab of its list
 * @prev: the previous one
 * @free: the block that was freed last, in units from the slab's start
 * @used: number of used blocks
 * @fresh: the first block that was never used; no later one was either
 * @class: the size that it serves, IDLE, or MISSING
 *
 * A slab that serves a size is in that size's list while it has a free block.
 */
struct llds_slab {
	u32 next;
	u32 prev;
	u16 free;
	u16 used;
	u16 fresh;
	u8 class;
};

/* What a free block keeps of an entry's version, and its link. */
#define HEAD_BYTES 8
#define NO_BLOCK 0xffff
#define SLAB_UNITS_SHIFT (LLDS_SLAB_SHIFT - LLDS_UNIT_SHIFT)
#define SLAB_UNITS (LLDS_SLAB_BYTES / LLDS_UNIT_BYTES)

/* The size of a class, in units. */
static u32 units_of(u32 class)
{
	if (class < 8)
		return class + 1;
	return (5 + (class & 3)) << ((class >> 2) - 1);
}

/* The smallest class whose blocks have at least @units units. */
static u32 class_of(u32 units)
{
	u32 shift;

	if (units <= 8)
		return units - 1;
	/* 9 to 16 units are 5 to 8 times 2, 17 to 32 are 5 to 8 times 4. */
	shift = fls64(units - 1) - 3;
	return ((shift + 1) << 2) + ((units - 1) >> shift) - 4;
}

static u32 units_for(u32 bytes)
{
	return (bytes + LLDS_UNIT_BYTES - 1) >> LLDS_UNIT_SHIFT;
}

u32 llds_block_bytes(u32 bytes)
{
	return units_of(class_of(units_for(bytes))) << LLDS_UNIT_SHIFT;
}

bool llds_quota_take(struct llds_quota *quota, u64 bytes, bool has_to)
{
	u64 taken = READ_ONCE(quota->bytes);

	do {
		if (!has_to && (taken > quota->bytes_max ||
				bytes > quota->bytes_max - taken))
			return false;
	} while (!try_cmpxchg(&quota->bytes, &taken, taken + bytes));
	return true;
}

void llds_quota_give(struct llds_quota *quota, u64 bytes)
{
	u64 taken = READ_ONCE(quota->bytes);

	while (!try_cmpxchg(&quota->bytes, &taken, taken - bytes))
		;
}

bool llds_budget_join(struct llds_budget *budget, struct llds_quota *quota)
{
	if (!llds_quota_take(quota, budget->bytes, false))
		return false;
	budget->quota = quota;
	return true;
}

bool llds_budget_take(struct llds_budget *budget, u64 bytes)
{
	if (bytes > budget->bytes_max - budget->bytes ||
	    (budget->quota && !llds_quota_take(budget->quota, bytes, false))) {
		budget->is_refused = true;
		return false;
	}
	budget->bytes += bytes;
	return true;
}

void llds_budget_give(struct llds_budget *budget, u64 bytes)
{
	budget->bytes -= bytes;
	if (budget->quota)
		llds_quota_give(budget->quota, bytes);
}

void *llds_take(struct llds_budget *budget, u64 bytes)
{
	void *memory;

	if (!llds_budget_take(budget, llds_os_table_bytes(bytes)))
		return NULL;
	memory = llds_os_table(bytes);
	if (!memory)
		llds_budget_give(budget, llds_os_table_bytes(bytes));
	return memory;
}

void llds_give(struct llds_budget *budget, void *memory, u64 bytes)
{
	if (!memory)
		return;
	llds_os_table_free(memory);
	llds_budget_give(budget, llds_os_table_bytes(bytes));
}

/* A copy of a table with room for @wanted elements; NULL without memory. */
static void *larger_than(struct llds_budget *budget, const void *table,
			 u32 room, u32 wanted, u32 each)
{
	void *larger = llds_take(budget, (u64)wanted * each);

	if (larger && table)
		memcpy(larger, table, (u64)room * each);
	return larger;
}

void *llds_table_grow(struct llds_budget *budget, void *table, u32 *room,
		      u32 wanted, u32 each)
{
	void *larger;

	if (wanted <= *room)
		return table;
	larger = larger_than(budget, table, *room, wanted, each);
	if (!larger)
		return NULL;
	llds_give(budget, table, (u64)*room * each);
	*room = wanted;
	return larger;
}

bool llds_pieces_grow(struct llds_memory *memory, void ***table, u32 *room,
		      u32 wanted)
{
	void **const old = *table;
	void **larger;

	if (wanted <= *room)
		return true;
	larger = larger_than(memory->budget, old, *room, wanted, sizeof(*old));
	if (!larger)
		return false;
	/* Pairs with the address dependency of llds_piece_shown(). */
	smp_store_release(table, larger);
	if (old && memory->is_shown)
		llds_os_wait_for_faults();
	llds_give(memory->budget, old, (u64)*room * sizeof(*old));
	*room = wanted;
	return true;
}

void llds_memory_init(struct llds_memory *memory, struct llds_budget *budget)
{
	u32 class;

	BUILD_BUG_ON(SLAB_UNITS >= NO_BLOCK);
	BUILD_BUG_ON(LLDS_UNIT_BYTES >> LLDS_UNIT_SHIFT != 1);
	BUILD_BUG_ON(LLDS_SLAB_BYTES >> LLDS_SLAB_SHIFT != 1);
	BUILD_BUG_ON(LLDS_PIECE_BYTES >> LLDS_PIECE_SHIFT != 1);
	BUILD_BUG_ON(LLDS_PIECES_MAX > 1UL << (32 - LLDS_UNITS_SHIFT));
	memset(memory, 0, sizeof(*memory));
	memory->idle = NONE;
	for (class = 0; class < LLDS_CLASSES; class++)
		memory->partial[class] = NONE;
	memory->budget = budget;
	memory->base = llds_os_base();
}

void llds_memory_drop(struct llds_memory *memory)
{
	u32 piece;

	for (piece = 0; piece < memory->end; piece++) {
		if (!memory->pieces[piece])
			continue;
		llds_os_piece_free(memory->pieces[piece]);
		llds_budget_give(memory->budget, LLDS_PIECE_BYTES);
		llds_os_relax();
	}
	llds_give(memory->budget, memory->pieces,
		  memory->room * sizeof(*memory->pieces));
	llds_give(memory->budget, memory->slabs,
		  memory->slabs_room * sizeof(*memory->slabs));
	llds_os_base_free(memory->base);
	memory->pieces = NULL;
	memory->slabs = NULL;
	memory->end = 0;
}

static void enter(struct llds_memory *memory, u32 *list, u32 slab)
{
	struct llds_slab *at = &memory->slabs[slab];

	at->next = *list;
	at->prev = NONE;
	if (*list != NONE)
		memory->slabs[*list].prev = slab;
	*list = slab;
}

static void leave(struct llds_memory *memory, u32 *list, u32 slab)
{
	struct llds_slab *at = &memory->slabs[slab];

	if (at->prev != NONE)
		memory->slabs[at->prev].next = at->next;
	else
		*list = at->next;
	if (at->next != NONE)
		memory->slabs[at->next].prev = at->prev;
}

/* Makes room for @wanted pieces in the tables. */
static bool make_room(struct llds_memory *memory, u32 wanted)
{
	struct llds_slab *slabs;

	/* The slabs' table grows last, so the other one is never smaller. */
	if (wanted * SLABS_OF_PIECE <= memory->slabs_room)
		return true;
	wanted = max_t(u32, 2 * wanted, 2 * LLDS_PIECES_AT_ONCE);
	if (!llds_pieces_grow(memory, &memory->pieces, &memory->room, wanted))
		return false;
	slabs = llds_table_grow(memory->budget, memory->slabs,
				&memory->slabs_room, wanted * SLABS_OF_PIECE,
				sizeof(*slabs));
	if (!slabs)
		return false;
	memory->slabs = slabs;
	return true;
}

/* The number of a missing piece, or of the next new one. */
static u32 missing(struct llds_memory *memory)
{
	while (memory->hole < memory->end && memory->pieces[memory->hole])
		memory->hole++;
	return memory->hole;
}

void *llds_pieces(struct llds_budget *budget, char *at, u32 *many)
{
	void *pieces;

	for (;; *many = 1) {
		const u64 bytes = *many * LLDS_PIECE_BYTES;

		if (llds_budget_take(budget, bytes)) {
			if (budget->takes_turns)
				budget->node = llds_os_next_node(budget->node);
			pieces = llds_os_pieces(at, *many, budget->node);
			if (pieces)
				return pieces;
			llds_budget_give(budget, bytes);
		}
		if (*many == 1)
			return NULL;
	}
}

/* Allocates pieces. */
static bool grow(struct llds_memory *memory)
{
	const u32 first = missing(memory);
	u32 many = first < memory->end ? 1 : llds_pieces_at_once(memory->end);
	char *pieces;
	u32 i, slab;

	/* So that the tables have room for all pieces of one allocation. */
	if (first == memory->end &&
	    memory->end + LLDS_PIECES_AT_ONCE > LLDS_PIECES_MAX) {
		memory->budget->is_refused = true;
		return false;
	}
	if (first == memory->end &&
	    !make_room(memory, memory->end + LLDS_PIECES_AT_ONCE))
		return false;
	pieces = llds_pieces(memory->budget, llds_piece_at(memory->base, first),
			     &many);
	if (!pieces)
		return false;
	for (i = 0; i < many; i++) {
		const u32 piece = first + i;

		/* Its zeros before it. Pairs with llds_piece_shown(). */
		smp_store_release(&memory->pieces[piece],
				  pieces + i * LLDS_PIECE_BYTES);
		/* Backwards, so that the list hands them out in order. */
		for (slab = SLABS_OF_PIECE; slab-- > 0;) {
			const u32 number = piece * SLABS_OF_PIECE + slab;

			memory->slabs[number].class = IDLE;
			enter(memory, &memory->idle, number);
			memory->idles++;
		}
	}
	/* Pairs with llds_piece_shown(). */
	smp_store_release(&memory->end, max_t(u32, memory->end, first + many));
	return true;
}

/* Frees a piece if none of its slabs is used. */
static void give_back(struct llds_memory *memory, u32 piece)
{
	u32 slab;

	for (slab = piece * SLABS_OF_PIECE;
	     slab < (piece + 1) * SLABS_OF_PIECE; slab++) {
		if (memory->slabs[slab].class != IDLE)
			return;
	}
	for (slab = piece * SLABS_OF_PIECE;
	     slab < (piece + 1) * SLABS_OF_PIECE; slab++) {
		leave(memory, &memory->idle, slab);
		memory->slabs[slab].class = MISSING;
		memory->idles--;
	}
	llds_os_piece_free(memory->pieces[piece]);
	memory->pieces[piece] = NULL;
	llds_budget_give(memory->budget, LLDS_PIECE_BYTES);
	memory->hole = min(memory->hole, piece);
}

/* Lets a slab serve a size, and returns it; NONE without memory. */
static u32 begin_slab(struct llds_memory *memory, u32 class)
{
	struct llds_slab *at;
	u32 slab;

	if (memory->idle == NONE && !grow(memory))
		return NONE;
	slab = memory->idle;
	at = &memory->slabs[slab];
	leave(memory, &memory->idle, slab);
	memory->idles--;
	at->class = class;
	at->free = NO_BLOCK;
	at->used = 0;
	/* The handle 0 is no block. */
	at->fresh = slab == 0 ? units_of(class) : 0;
	enter(memory, &memory->partial[class], slab);
	return slab;
}

/* Whether a slab that serves a size has no free block. */
static bool is_full(const struct llds_slab *slab, u32 units)
{
	return slab->free == NO_BLOCK && slab->fresh + units > SLAB_UNITS;
}

/* Where a free block stores the position of the next free one. */
static u32 *link_of(struct llds_memory *memory, u32 handle)
{
	return (u32 *)llds_block(memory, handle) + 1;
}

u32 llds_block_alloc(struct llds_memory *memory, u32 bytes)
{
	const u32 class = class_of(units_for(bytes));
	const u32 units = units_of(class);
	u32 slab = memory->partial[class];
	struct llds_slab *at;
	u32 handle;

	if (llds_os_refuses())
		return 0;
	while (unlikely(slab == NONE)) {
		slab = begin_slab(memory, class);
		if (slab == NONE)
			return 0;
		/* The first slab lacks one block, which may be its only one. */
		if (unlikely(is_full(&memory->slabs[slab], units))) {
			leave(memory, &memory->partial[class], slab);
			memory->slabs[slab].used = 1;
			slab = NONE;
		}
	}
	at = &memory->slabs[slab];
	handle = slab << SLAB_UNITS_SHIFT;
	if (at->free != NO_BLOCK) {
		handle += at->free;
		at->free = READ_ONCE(*link_of(memory, handle));
	} else {
		handle += at->fresh;
		at->fresh += units;
	}
	at->used++;
	if (is_full(at, units))
		leave(memory, &memory->partial[class], slab);
	memory->used += units << LLDS_UNIT_SHIFT;
	return handle;
}

void llds_block_free(struct llds_memory *memory, u32 handle)
{
	const u32 slab = handle >> SLAB_UNITS_SHIFT;
	struct llds_slab *at = &memory->slabs[slab];
	const u32 class = at->class;
	const u32 units = units_of(class);

	memory->used -= units << LLDS_UNIT_SHIFT;
	if (is_full(at, units))
		enter(memory, &memory->partial[class], slab);
	WRITE_ONCE(*link_of(memory, handle), at->free);
	/* Nobody who maps the store later reads what was deleted. */
	llds_os_clear((char *)llds_block(memory, handle) + HEAD_BYTES,
		      (units << LLDS_UNIT_SHIFT) - HEAD_BYTES);
	at->free = handle & (SLAB_UNITS - 1);
	if (--at->used > 0)
		return;
	leave(memory, &memory->partial[class], slab);
	at->class = IDLE;
	enter(memory, &memory->idle, slab);
	memory->idles++;
	if (unlikely(memory->is_shown))
		llds_os_clear(llds_block(memory, slab << SLAB_UNITS_SHIFT),
			      LLDS_SLAB_BYTES);
	else if (memory->idles > IDLES_MAX)
		give_back(memory, slab / SLABS_OF_PIECE);
}

void llds_memory_trim(struct llds_memory *memory)
{
	u32 piece;

	for (piece = 0; piece < memory->end && memory->idles > IDLES_MAX;
	     piece++) {
		if (memory->pieces[piece])
			give_back(memory, piece);
		llds_os_relax();
	}
}

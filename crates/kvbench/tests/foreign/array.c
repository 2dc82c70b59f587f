/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The smallest library of structures: a sorted array, of numbers and of strings.
 *
 *     cc -O2 -shared -fPIC -I include -o libarray.so tests/foreign/array.c
 *     kvbench memory -n 20K --subjects ./libarray.so,btreemap
 *
 * FAULT selects a bug that the tests expect kvbench to find.
 */
#include "kvbench_subject.h"

#include <stdlib.h>
#include <string.h>

#ifndef FAULT
#define FAULT 0
#endif
/* The faults. */
enum { NONE, OTHER_ABI, NO_GET, BAD_NAME, NO_KINDS, UNKNOWN_FLAG, EMPTY_LIST, NO_SCAN, TWICE, LOSES_LAST_BYTE, NO_UPDATE, CRASHES, SCANS_NOTHING, LOSES_SCANS };

/* More pairs than the conformance kit inserts. */
#define MANY 20480

static void *room(void *old, size_t size)
{
	void *memory = realloc(old, size);

	if (!memory)
		abort();
	return memory;
}

/* Keys are compared as the kind has them; a copy is what the array keeps. */
static int compare_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static uint64_t own_u64(uint64_t cell)
{
	return cell;
}

static void give_u64(uint64_t cell)
{
	(void)cell;
}

static size_t compared_size(struct kvbench_bytes key)
{
	return FAULT == LOSES_LAST_BYTE && key.size > 0 ? key.size - 1 : key.size;
}

static int compare_bytes(struct kvbench_bytes a, struct kvbench_bytes b)
{
	size_t a_size = compared_size(a), b_size = compared_size(b);
	size_t shorter = a_size < b_size ? a_size : b_size;
	int order = shorter ? memcmp(a.data, b.data, shorter) : 0;

	return order ? order : a_size < b_size ? -1 : a_size > b_size;
}

static struct kvbench_bytes own_bytes(struct kvbench_bytes cell)
{
	struct kvbench_bytes own = { cell.size ? memcpy(room(NULL, cell.size), cell.data, cell.size) : NULL, cell.size };

	return own;
}

static void give_bytes(struct kvbench_bytes cell)
{
	free((void *)cell.data);
}

/* The structure for a kind. */
#define ARRAY(KIND, CELL, CALLS)                                                                                       \
	struct array_##KIND {                                                                                          \
		CELL *keys, *values;                                                                                   \
		size_t pairs, room;                                                                                    \
	};                                                                                                             \
                                                                                                                       \
	static void *create_##KIND(void)                                                                               \
	{                                                                                                              \
		return calloc(1, sizeof(struct array_##KIND));                                                         \
	}                                                                                                              \
                                                                                                                       \
	static void destroy_##KIND(void *map)                                                                          \
	{                                                                                                              \
		struct array_##KIND *array = map;                                                                      \
                                                                                                                       \
		for (size_t at = 0; at < array->pairs; at++) {                                                         \
			give_##KIND(array->keys[at]);                                                                  \
			give_##KIND(array->values[at]);                                                                \
		}                                                                                                      \
		free(array->keys);                                                                                     \
		free(array->values);                                                                                   \
		free(array);                                                                                           \
	}                                                                                                              \
                                                                                                                       \
	static void reserve_##KIND(void *map, size_t pairs)                                                            \
	{                                                                                                              \
		struct array_##KIND *array = map;                                                                      \
                                                                                                                       \
		if (pairs > array->room) {                                                                             \
			array->keys = room(array->keys, pairs * sizeof(CELL));                                         \
			array->values = room(array->values, pairs * sizeof(CELL));                                     \
			array->room = pairs;                                                                           \
		}                                                                                                      \
	}                                                                                                              \
                                                                                                                       \
	/* The first place whose key is not smaller. */                                                                \
	static size_t place_##KIND(const struct array_##KIND *array, CELL key)                                         \
	{                                                                                                              \
		size_t low = 0, high = array->pairs;                                                                   \
                                                                                                                       \
		while (low < high) {                                                                                   \
			size_t middle = low + (high - low) / 2;                                                        \
                                                                                                                       \
			if (compare_##KIND(array->keys[middle], key) < 0)                                              \
				low = middle + 1;                                                                      \
			else                                                                                           \
				high = middle;                                                                         \
		}                                                                                                      \
		return low;                                                                                            \
	}                                                                                                              \
                                                                                                                       \
	static bool is_at_##KIND(const struct array_##KIND *array, size_t at, CELL key)                                \
	{                                                                                                              \
		return at < array->pairs && compare_##KIND(array->keys[at], key) == 0;                                 \
	}                                                                                                              \
                                                                                                                       \
	static void insert_##KIND(void *map, CELL key, CELL value)                                                     \
	{                                                                                                              \
		struct array_##KIND *array = map;                                                                      \
		size_t at = place_##KIND(array, key), behind = array->pairs - at;                                      \
                                                                                                                       \
		if (FAULT == CRASHES)                                                                                  \
			abort();                                                                                       \
		if (is_at_##KIND(array, at, key)) {                                                                    \
			if (FAULT == NO_UPDATE)                                                                        \
				return;                                                                                \
			give_##KIND(array->values[at]);                                                                \
			array->values[at] = own_##KIND(value);                                                         \
			return;                                                                                        \
		}                                                                                                      \
		if (array->pairs == array->room)                                                                       \
			reserve_##KIND(array, array->room * 2 + 64);                                                   \
		memmove(array->keys + at + 1, array->keys + at, behind * sizeof(CELL));                                \
		memmove(array->values + at + 1, array->values + at, behind * sizeof(CELL));                            \
		array->keys[at] = own_##KIND(key);                                                                     \
		array->values[at] = own_##KIND(value);                                                                 \
		array->pairs++;                                                                                        \
	}                                                                                                              \
                                                                                                                       \
	static bool get_##KIND(const void *map, CELL key, CELL *value)                                                 \
	{                                                                                                              \
		const struct array_##KIND *array = map;                                                                \
		size_t at = place_##KIND(array, key);                                                                  \
                                                                                                                       \
		if (!is_at_##KIND(array, at, key))                                                                     \
			return false;                                                                                  \
		*value = array->values[at];                                                                            \
		return true;                                                                                           \
	}                                                                                                              \
                                                                                                                       \
	static bool remove_##KIND(void *map, CELL key)                                                                 \
	{                                                                                                              \
		struct array_##KIND *array = map;                                                                      \
		size_t at = place_##KIND(array, key), behind = array->pairs - at - 1;                                  \
                                                                                                                       \
		if (!is_at_##KIND(array, at, key))                                                                     \
			return false;                                                                                  \
		give_##KIND(array->keys[at]);                                                                          \
		give_##KIND(array->values[at]);                                                                        \
		memmove(array->keys + at, array->keys + at + 1, behind * sizeof(CELL));                                \
		memmove(array->values + at, array->values + at + 1, behind * sizeof(CELL));                            \
		array->pairs--;                                                                                        \
		return true;                                                                                           \
	}                                                                                                              \
                                                                                                                       \
	static void each_##KIND(const void *map, kvbench_see_##KIND see, void *context)                                \
	{                                                                                                              \
		const struct array_##KIND *array = map;                                                                \
                                                                                                                       \
		see(context, array->keys, array->values, array->pairs);                                                \
	}                                                                                                              \
                                                                                                                       \
	static void scan_##KIND(const void *map, CELL from, size_t pairs, kvbench_see_##KIND see, void *context)       \
	{                                                                                                              \
		const struct array_##KIND *array = map;                                                                \
		size_t at = place_##KIND(array, from), behind = array->pairs - at;                                     \
                                                                                                                       \
		if (FAULT == SCANS_NOTHING || (FAULT == LOSES_SCANS && array->pairs > MANY))                           \
			return;                                                                                        \
		see(context, array->keys + at, array->values + at, pairs < behind ? pairs : behind);                   \
	}                                                                                                              \
                                                                                                                       \
	static const struct CALLS calls_##KIND = {                                                                     \
		create_##KIND,                                                                                         \
		destroy_##KIND,                                                                                        \
		reserve_##KIND,                                                                                        \
		insert_##KIND,                                                                                         \
		FAULT == NO_GET ? NULL : get_##KIND,                                                                   \
		remove_##KIND,                                                                                         \
		each_##KIND,                                                                                           \
		FAULT == NO_SCAN ? NULL : scan_##KIND,                                                                 \
		NULL,                                                                                                  \
	}

ARRAY(u64, uint64_t, kvbench_u64);
ARRAY(bytes, struct kvbench_bytes, kvbench_strings);

static const struct kvbench_subject array = {
	FAULT == OTHER_ABI ? KVBENCH_ABI + 1 : KVBENCH_ABI,
	FAULT == UNKNOWN_FLAG ? 1u << 31 : KVBENCH_ORDERED,
	FAULT == BAD_NAME ? "Array, sorted" : "array",
	"a sorted array in C",
	FAULT == NO_KINDS ? NULL : &calls_u64,
	FAULT == NO_KINDS ? NULL : &calls_bytes,
};

const struct kvbench_subject *const *kvbench_subjects(void)
{
	static const struct kvbench_subject *const all[] = {
		FAULT == EMPTY_LIST ? NULL : &array,
		FAULT == TWICE ? &array : NULL,
		NULL,
	};

	return all;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Structures of other languages, for kvbench.
 *
 * A library offers structures by one function, kvbench_subjects(), and is named where a structure is:
 *
 *     kvbench memory --subjects ./libmine.so:mine,btreemap
 *
 * ("./libmine.so" alone, if it offers one.) It is held against a model before it is timed: insertion over a value, removal,
 * misses, order, keys that others were found wrong at.
 *
 * Every operation is a call through a pointer, made by the same loops as all others; that costs some nanosecond more than
 * a structure in Rust has, which is compiled into the loop. A call must not let a C++ exception out, and ends the process
 * (abort()) if it cannot do what it is asked. tests/foreign/array.c is a whole library.
 *
 * Bytes that a call is given are the caller's and only there while it runs. Bytes that it shows are the structure's, and
 * need only be there until the same thread's next call (get) or until see() returns (each, scan).
 *
 * Readers may be several at once, without a writer. With KVBENCH_SHARED writers may be as well, beside each other and
 * beside readers.
 */
#ifndef KVBENCH_SUBJECT_H
#define KVBENCH_SUBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this file, which a subject tells. */
#define KVBENCH_ABI 1

/* Pairs are shown in the order of their keys: numbers by size, bytes as memcmp() has it, the shorter first. */
#define KVBENCH_ORDERED 1u
/* Several threads may write at once. */
#define KVBENCH_SHARED 2u

/* Bytes, among them zeros; not terminated. */
struct kvbench_bytes {
	const void *data;
	size_t size;
};

/* Shows pairs, one or more. They may be shown in as many pieces as suits the structure. */
typedef void (*kvbench_see_u64)(void *context, const uint64_t *keys, const uint64_t *values, size_t pairs);
typedef void (*kvbench_see_bytes)(void *context, const struct kvbench_bytes *keys,
				  const struct kvbench_bytes *values, size_t pairs);

/*
 * What a structure does with numbers as keys and values, and with bytes. All that is not "or null" must be there.
 *
 * create:  makes an empty one, or returns null where there is no room
 * destroy: gives everything back
 * reserve: makes room for so many pairs in all; or null
 * insert:  maps the key to the value, whether or not it was there
 * get:     true if the key is there, and then its value
 * remove:  true if the key was there
 * each:    shows all pairs
 * scan:    shows up to so many pairs from a key on; only called of ordered ones, else null
 * bytes:   bytes in use that are not malloc's; or null where there are none
 */
struct kvbench_u64 {
	void *(*create)(void);
	void (*destroy)(void *map);
	void (*reserve)(void *map, size_t pairs);
	void (*insert)(void *map, uint64_t key, uint64_t value);
	bool (*get)(const void *map, uint64_t key, uint64_t *value);
	bool (*remove)(void *map, uint64_t key);
	void (*each)(const void *map, kvbench_see_u64 see, void *context);
	void (*scan)(const void *map, uint64_t from, size_t pairs, kvbench_see_u64 see, void *context);
	uint64_t (*bytes)(const void *map);
};

struct kvbench_strings {
	void *(*create)(void);
	void (*destroy)(void *map);
	void (*reserve)(void *map, size_t pairs);
	void (*insert)(void *map, struct kvbench_bytes key, struct kvbench_bytes value);
	bool (*get)(const void *map, struct kvbench_bytes key, struct kvbench_bytes *value);
	bool (*remove)(void *map, struct kvbench_bytes key);
	void (*each)(const void *map, kvbench_see_bytes see, void *context);
	void (*scan)(const void *map, struct kvbench_bytes from, size_t pairs, kvbench_see_bytes see,
		     void *context);
	uint64_t (*bytes)(const void *map);
};

/* A structure. */
struct kvbench_subject {
	/* KVBENCH_ABI */
	uint32_t abi;
	/* KVBENCH_ORDERED, KVBENCH_SHARED */
	uint32_t flags;
	/* Lower-case letters, digits and "-"; its own in this library. */
	const char *name;
	/* One line: what it is, and of which version. */
	const char *about;
	/* Null where it cannot hold such pairs. */
	const struct kvbench_u64 *u64;
	const struct kvbench_strings *strings;
};

/* What a library offers; ends with null. */
const struct kvbench_subject *const *kvbench_subjects(void);

#ifdef __cplusplus
}
#endif

#endif

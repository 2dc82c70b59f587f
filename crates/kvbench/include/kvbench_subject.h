/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Structures of other languages, for kvbench.
 *
 * A library exports one function, kvbench_subjects(), which lists its structures. Name the library instead of a
 * structure:
 *
 *     kvbench memory --subjects ./libmine.so:mine,btreemap
 *
 * ("./libmine.so" alone, if it has only one.) kvbench compares a structure with a model before it measures it:
 * insertion over a value, removal, misses, order, and keys that revealed bugs in other structures.
 *
 * Every operation is a call through a pointer, from the same loops as for all other structures. That costs about a
 * nanosecond more than a structure in Rust, which is compiled into the loop. A C++ exception must not leave a call. A
 * call that fails ends the process (abort()). tests/foreign/array.c is a complete library.
 *
 * Bytes passed to a call belong to the caller and are valid only during the call. Bytes that a call returns or shows
 * belong to the structure, and must stay valid until the same thread's next call (get) or until see() returns (each,
 * scan).
 *
 * Readers may run concurrently with each other, but not with a writer. With KVBENCH_SHARED, writers may run
 * concurrently with each other and with readers.
 */
#ifndef KVBENCH_SUBJECT_H
#define KVBENCH_SUBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this file; a subject states the version that it was compiled with. */
#define KVBENCH_ABI 1

/* Pairs are shown in the order of their keys: numbers by size, bytes by memcmp(), a prefix before longer keys. */
#define KVBENCH_ORDERED 1u
/* Several threads may write at once. */
#define KVBENCH_SHARED 2u

/* A string of any bytes, zeros included; not terminated. */
struct kvbench_bytes {
	const void *data;
	size_t size;
};

/* Receives one or more pairs. A structure may show its pairs in any number of calls. */
typedef void (*kvbench_see_u64)(void *context, const uint64_t *keys, const uint64_t *values, size_t pairs);
typedef void (*kvbench_see_bytes)(void *context, const struct kvbench_bytes *keys,
				  const struct kvbench_bytes *values, size_t pairs);

/*
 * The operations of a structure, with numbers as keys and values, and with bytes. A function pointer may be null only
 * where that is stated.
 *
 * create:  returns an empty structure, or null if there is no memory
 * destroy: frees everything
 * reserve: makes room for this number of pairs in total; may be null
 * insert:  maps the key to the value, whether or not the key is present
 * get:     returns true and stores the value if the key is present
 * remove:  returns true if the key was present
 * each:    passes all pairs to the callback
 * scan:    passes up to this number of pairs to the callback, from a key on; null if the structure is not ordered
 * bytes:   returns the bytes in use that malloc did not allocate; null if there are none
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
	/* Lower-case letters, digits and "-"; unique in this library. */
	const char *name;
	/* A description of one line, with the version. */
	const char *about;
	/* Null if it cannot hold such pairs. */
	const struct kvbench_u64 *u64;
	const struct kvbench_strings *strings;
};

/* The structures of a library; the list ends with null. */
const struct kvbench_subject *const *kvbench_subjects(void);

#ifdef __cplusplus
}
#endif

#endif

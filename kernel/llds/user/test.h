/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Shared code of the engine's tests: random numbers, keys and values, a model
 * of a store, and checks of a real one.
 */
#ifndef LLDS_USER_TEST_H
#define LLDS_USER_TEST_H

#include <stdio.h>
#include <stdlib.h>

#include "../store.h"

#define CHECK(condition)                                                      \
	do {                                                                  \
		if (!(condition)) {                                           \
			printf("not ok: %s:%d: %s (seed %llu)\n", __FILE__,   \
			       __LINE__, #condition,                          \
			       (unsigned long long)seed);                     \
			exit(1);                                              \
		}                                                             \
	} while (0)

/* The seed of the run. */
extern u64 seed;

u64 random64(void);
/* The state of the random numbers; replay() returns to it. */
u64 where(void);
void replay(u64 from);
u32 below(u32 n);

/* The model: pairs in the order of their keys. */
struct pair {
	u8 *key, *value;
	u32 key_bytes, value_bytes;
};

struct model {
	struct pair *pairs;
	u32 n, room;
};

/* The index of the first pair whose key is not below this one, or 'n'. */
u32 model_seek(const struct model *model, const u8 *key, u32 bytes);
/* A pair, or NULL. */
struct pair *model_find(const struct model *model, const u8 *key, u32 bytes);
void model_set(struct model *model, const u8 *key, u32 key_bytes,
	       const u8 *value, u32 value_bytes);
/* Returns false if the key is absent. */
bool model_delete(struct model *model, const u8 *key, u32 bytes);
void model_copy(struct model *to, const struct model *from);
/* Copies all pairs of a store. */
void model_take(struct model *model, const struct llds_store *store);
void model_drop(struct model *model);

bool is_pair(const struct llds_store *store, const struct llds_entry *entry,
	     const struct pair *pair);

/* Whether a store has the pairs of the model. */
bool is_same(const struct llds_store *store, const struct model *model);

/* Checks that a store has the model's pairs, and its headers' invariants. */
void check(const struct llds_store *store, const struct model *model);

/* Kinds of keys. */
enum kind { NUMBERS, SHORT, ALIKE, LONG, IN_ORDER, COLLIDING, KINDS };
extern const char *const kinds[];
/* The salt of a store for keys of a kind: the colliding ones are made for it. */
u64 salt_of(enum kind kind);
#define KEY_ROOM 4104
#define VALUE_ROOM 70000

/* Make a key, or a value; return its length. */
u32 a_key(enum kind kind, u8 *key);
u32 a_value(u8 *value);

/* The tests. */
void test_stores(u32 steps);
void test_full_stores(void);
void test_requests(u32 steps);
void test_runs_as_one(u32 steps);
void test_mapped(u32 steps);

#endif /* LLDS_USER_TEST_H */

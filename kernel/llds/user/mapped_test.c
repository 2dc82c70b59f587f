// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Seqlock reads, compared with the model, and while other threads change the
 * store.
 */
#include <pthread.h>

#include "mapped.h"
#include "runs.h"

static struct mapped mapping_of(const struct llds_store *store)
{
	return (struct mapped){ store->header, store->memory.base,
				store->buckets.base };
}

/* Checks that a mapping would show the pages that the reader uses. */
static void check_shown(const struct llds_store *store)
{
	CHECK(llds_shown_at(store, LLDS_MAP_HEADER) == store->header);
	CHECK(!llds_shown_at(store, LLDS_MAP_HEADER + LLDS_PAGE_BYTES));
	CHECK(llds_shown_at(store, LLDS_MAP_BLOCKS + 5 * LLDS_PAGE_BYTES) ==
	      store->memory.base + 5 * LLDS_PAGE_BYTES);
	CHECK(!llds_shown_at(store, LLDS_MAP_BLOCKS +
				    store->memory.end * LLDS_PIECE_BYTES));
	CHECK(llds_shown_at(store, LLDS_MAP_BUCKETS) == store->buckets.base);
	CHECK(!llds_shown_at(store, LLDS_MAP_BUCKETS +
				    store->buckets.end * LLDS_PIECE_BYTES));
	CHECK(!llds_shown_at(store, LLDS_MAP_BUCKETS + LLDS_MAP_BYTES));
	CHECK(!llds_shown_at(store, ~0ULL));
}

static bool is_value(enum kind kind, enum mapped_found found, const u8 *at,
		     u32 bytes, const struct pair *pair)
{
	if (found == MAPPED_APART)
		return pair->value_bytes > LLDS_VALUE_BYTES_INLINE;
	if (found == MAPPED_CROWDED)
		return kind == COLLIDING;
	return found == MAPPED_FOUND && bytes == pair->value_bytes &&
	       !memcmp(at, pair->value, bytes);
}

/* Without concurrency: reads return what the model has. */
static void as_the_model(enum kind kind, u32 steps)
{
	static u8 got[MAPPED_ROOM], key[KEY_ROOM], value[VALUE_ROOM];
	struct llds_shared shared;
	struct model model = { 0 };
	struct mapped mapped;
	enum mapped_found found;
	u32 i, j, at, key_bytes, bytes, found_key;

	CHECK(!llds_shared_init(&shared, LLDS_INDEX_DEFAULT, 1ULL << 40,
				VALUE_BYTES_MAX, salt_of(kind)));
	mapped = mapping_of(&shared.store);
	shared.maps = 1;
	llds_show(&shared.store, true);
	for (i = 0; i < steps; i++) {
		key_bytes = a_key(kind, key);
		if (below(3)) {
			const struct llds_key set = llds_key(&shared.store, key,
							     key_bytes);

			bytes = a_value(value);
			CHECK(!llds_set(&shared.store, &set, value, bytes));
			model_set(&model, key, key_bytes, value, bytes);
		}
		key_bytes = a_key(kind, key);
		found = mapped_get(&mapped, key, key_bytes, got, &bytes);
		at = model_seek(&model, key, key_bytes);
		if (model_find(&model, key, key_bytes))
			CHECK(is_value(kind, found, got, bytes,
				       &model.pairs[at]));
		else
			CHECK(found == MAPPED_ABSENT ||
			      (found == MAPPED_CROWDED && kind == COLLIDING));
		/* And some pairs after the key. */
		for (j = 0; j < 4; j++, at++) {
			found = mapped_next(&mapped, key, key_bytes, j > 0, got,
					    &found_key, &bytes);
			if (at == model.n) {
				CHECK(found == MAPPED_ABSENT);
				break;
			}
			CHECK(found_key == model.pairs[at].key_bytes);
			CHECK(!memcmp(got, model.pairs[at].key, found_key));
			CHECK(is_value(kind, found, got + found_key, bytes,
				       &model.pairs[at]));
			key_bytes = found_key;
			memcpy(key, got, key_bytes);
		}
		if (i % 64 == 63)
			check_shown(&shared.store);
	}
	check(&shared.store, &model);
	model_drop(&model);
	llds_shared_drop(&shared);
	printf("ok: seqlock, %s: %u reads as the model\n", kinds[kind], steps);
}

/* Freed memory stays mapped as zeros; the last unmapping returns it. */
static void goes_back_when_nobody_looks(u32 keys)
{
	struct llds_store store;
	struct llds_key key;
	u64 i, full;

	CHECK(!llds_store_init(&store, LLDS_INDEX_DEFAULT, 1ULL << 40, 7));
	llds_show(&store, true);
	for (i = 0; i < keys; i++) {
		key = llds_key(&store, &i, 8);
		CHECK(!llds_set(&store, &key, &i, 8));
	}
	full = store.budget.bytes;
	for (i = 0; i < keys; i++) {
		key = llds_key(&store, &i, 8);
		CHECK(llds_delete(&store, &key) == 1);
	}
	CHECK(store.memory.used == 0 && store.budget.bytes == full);
	/* All memory is zeros; the first unit is never a block. */
	for (i = 0; i < store.memory.end * LLDS_PIECE_BYTES / 8; i++)
		CHECK(((u64 *)store.memory.base)[i] == 0);
	llds_show(&store, false);
	CHECK(store.budget.bytes < (8 << 20) && store.budget.bytes < full);
	key = llds_key(&store, &i, 8);
	CHECK(!llds_set(&store, &key, &i, 8));
	llds_store_drop(&store);
	printf("ok: seqlock: %.1f MiB stayed mapped, then went back\n",
	       full / 1048576.0);
}

/*
 * Keys that one thread changes and others read. The value of a key repeats its
 * number and a stamp. Stamps only increase. In pairs that are changed
 * atomically, both keys have the same stamp.
 */
#define PAIRS 400
#define READERS 3

struct race {
	struct llds_shared shared;
	u32 reads;
	u32 reading;
	u32 rounds;
	u64 seed;
};

static u32 key_of(u8 *key, u32 number)
{
	return sprintf((char *)key, "%s%05u", number & 2 ? "k" : "a long key ",
		       number);
}

static u32 value_for(u8 *value, u32 number, u32 stamp)
{
	/* Most values have one length, so they are changed in place. */
	const u32 words = stamp % 8 ? 4 : 1 + stamp % (stamp % 256 ? 12 : 300);
	u32 i;

	for (i = 0; i < words; i++) {
		memcpy(value + 8 * i, &number, 4);
		memcpy(value + 8 * i + 4, &stamp, 4);
	}
	return 8 * words;
}

/* Checks a value, and returns its stamp. */
static u32 stamp_of(const u8 *value, u32 bytes, u32 number)
{
	static __thread u8 wanted[8 * 300];
	u32 stamp;

	CHECK(bytes >= 8);
	memcpy(&stamp, value + 4, 4);
	CHECK(bytes <= sizeof(wanted));
	CHECK(value_for(wanted, number, stamp) == bytes);
	CHECK(!memcmp(value, wanted, bytes));
	return stamp;
}

/* Whether a key is changed together with the other of its pair: half are. */
static bool is_paired(u32 number)
{
	return number >= PAIRS;
}

/* Records a stamp: later reads must not return an older one. */
static void saw(u32 *newest, u32 number, u32 stamp)
{
	newest[number] = stamp;
	if (is_paired(number))
		newest[number ^ 1] = max(newest[number ^ 1], stamp);
}

static u64 step(u64 *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 33;
}

/* The number of a key that was found. */
static u32 number_of(const u8 *key, u32 bytes)
{
	char text[16] = { 0 };

	CHECK(bytes > 5 && bytes < 32);
	memcpy(text, key + bytes - 5, 5);
	return atoi(text);
}

static void *reader(void *of)
{
	static __thread u8 got[MAPPED_ROOM], key[64];
	static __thread u32 newest[2 * PAIRS];
	struct race *race = of;
	const struct mapped mapped = mapping_of(&race->shared.store);
	u64 state = __atomic_add_fetch(&race->seed, 77, __ATOMIC_RELAXED);
	u32 reads = 0, bytes, key_bytes, found_key, number, stamp, i;
	enum mapped_found found;

	while (reads < race->reads) {
		__atomic_add_fetch(&race->rounds, 1, __ATOMIC_RELAXED);
		number = step(&state) % (2 * PAIRS);
		key_bytes = key_of(key, number);
		/* A key, then the other key of its pair. */
		for (i = 0; i < 2; i++, number ^= 1) {
			key_bytes = key_of(key, number);
			found = mapped_get(&mapped, key, key_bytes, got, &bytes);
			/* Keys that are not paired are never deleted. */
			CHECK(found != MAPPED_ABSENT || is_paired(number) ||
			      !newest[number]);
			if (found != MAPPED_FOUND)
				continue;
			stamp = stamp_of(got, bytes, number);
			CHECK(stamp >= newest[number]);
			saw(newest, number, stamp);
			reads++;
		}
		/* And some pairs in order. */
		for (i = 0; i < 8; i++) {
			if (mapped_next(&mapped, key, key_bytes, true, got,
					&found_key, &bytes) != MAPPED_FOUND)
				break;
			CHECK(llds_key_order(got, found_key, key,
					     key_bytes) > 0);
			number = number_of(got, found_key);
			stamp = stamp_of(got + found_key, bytes, number);
			CHECK(stamp >= newest[number]);
			saw(newest, number, stamp);
			key_bytes = found_key;
			memcpy(key, got, key_bytes);
			reads++;
		}
	}
	__atomic_sub_fetch(&race->reading, 1, __ATOMIC_RELAXED);
	return NULL;
}

/* Sets or deletes both keys of a pair; or sets a key that is not paired. */
static u32 change_pair(u8 *to, u32 pair, u32 stamp, bool deletes)
{
	u8 *at = to;
	u32 i;

	for (i = 0; i < (is_paired(2 * pair) ? 2 : 1); i++) {
		struct llds_op op = { .code = deletes ? LLDS_DELETE : LLDS_SET };
		u8 *start = at;

		at += sizeof(op);
		op.key_bytes = key_of(at, 2 * pair + i);
		at += op.key_bytes;
		if (!deletes)
			op.value_bytes = value_for(at, 2 * pair + i, stamp);
		memcpy(start, &op, sizeof(op));
		at = start + padded(sizeof(op) + op.key_bytes + op.value_bytes);
	}
	return at - to;
}

static void while_others_change_it(u32 reads)
{
	static struct race race;
	pthread_t readers[READERS];
	u64 state = seed;
	u32 i, stamp;

	race = (struct race){ .reads = reads, .reading = READERS,
			      .seed = seed };
	CHECK(!llds_shared_init(&race.shared, LLDS_INDEX_DEFAULT, 1ULL << 40,
				VALUE_BYTES_MAX, 7));
	race.shared.maps = 1;
	llds_show(&race.shared.store, true);
	for (i = 0; i < READERS; i++)
		CHECK(!pthread_create(&readers[i], NULL, reader, &race));
	for (stamp = 1; __atomic_load_n(&race.reading, __ATOMIC_RELAXED);
	     stamp++) {
		/* Alternates between many keys and few. */
		const bool few = stamp / 512 % 2;
		struct llds_run run;
		const u32 pair = step(&state) % PAIRS;
		u32 end = change_pair(ops, pair, stamp,
				      is_paired(2 * pair) &&
				      step(&state) % 8 < (few ? 6 : 2));

		if (few && step(&state) % 64 == 0) {
			struct llds_op op = { .code = LLDS_DELETE_RANGE,
					      .flags = LLDS_NO_OTHER };

			op.key_bytes = key_of(ops + sizeof(op), 2 +
					      PAIRS + step(&state) % PAIRS / 4 * 4);
			end = padded(sizeof(op) + op.key_bytes);
			memcpy(ops, &op, sizeof(op));
		}
		run = a_run(0, end, ANSWERS_ROOM);
		run.flags = is_paired(2 * pair) ? LLDS_RUN_ATOMIC : 0;
		CHECK(!llds_request(&race.shared, &run, ALL, NULL));
		CHECK(run.done_bytes == end);
		/* Waits for readers, so that many reads overlap a change. */
		while (__atomic_load_n(&race.reading, __ATOMIC_RELAXED) &&
		       __atomic_load_n(&race.rounds, __ATOMIC_RELAXED) < stamp)
			sched_yield();
	}
	for (i = 0; i < READERS; i++)
		CHECK(!pthread_join(readers[i], NULL));
	llds_shared_drop(&race.shared);
	printf("ok: seqlock: %u changes, %u reads by each of %u threads\n",
	       stamp, reads, READERS);
}

void test_mapped(u32 steps)
{
	enum kind kind;

	for (kind = 0; kind < KINDS; kind++)
		as_the_model(kind, steps);
	goes_back_when_nobody_looks(200000);
	while_others_change_it(30 * steps);
}

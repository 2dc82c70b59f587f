// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Stores compared with the model, without memory, and within a budget.
 */
#include "test.h"

static u8 a_buffer[KEY_ROOM], another[VALUE_ROOM];

/* Makes a change; returns false if there was no memory for it. */
static bool change(struct llds_store *store, struct model *model,
		   enum kind kind, u32 deletes)
{
	const u32 key_bytes = a_key(kind, a_buffer);
	const u32 value_bytes = a_value(another);
	const struct llds_key key = llds_key(store, a_buffer, key_bytes);
	int error;

	if (below(100) < deletes) {
		CHECK(llds_delete(store, &key) ==
		      model_delete(model, a_buffer, key_bytes));
		return true;
	}
	error = llds_set(store, &key, another, value_bytes);
	if (error) {
		CHECK(error == -ENOMEM || error == -ENOSPC);
		return false;
	}
	model_set(model, a_buffer, key_bytes, another, value_bytes);
	return true;
}

/* Looks a key up, and its neighbours. */
static void look(const struct llds_store *store, const struct model *model,
		 enum kind kind)
{
	const u32 bytes = a_key(kind, a_buffer);
	const struct llds_key key = llds_key(store, a_buffer, bytes);
	const u32 at = model_seek(model, a_buffer, bytes);
	const struct pair *pair = model_find(model, a_buffer, bytes);
	const struct llds_entry *entry = llds_find(store, &key);
	union llds_cursor cursor;

	CHECK(!entry == !pair);
	CHECK(!pair || is_pair(store, entry, pair));
	entry = llds_seek(store, &cursor, a_buffer, bytes);
	CHECK(!entry == (at == model->n));
	CHECK(!entry || is_pair(store, entry, &model->pairs[at]));
	entry = llds_seek_before(store, &cursor, a_buffer, bytes);
	CHECK(!entry == (at == 0));
	CHECK(!entry || is_pair(store, entry, &model->pairs[at - 1]));
}

/* Adds keys, and deletes them again, down to the last one. */
static void against_the_model(enum llds_index index, enum kind kind, u32 steps)
{
	struct llds_store store;
	struct model model = { 0 };
	u64 most;
	u32 i;

	CHECK(!llds_store_init(&store, index, 1ULL << 40, salt_of(kind)));
	for (i = 0; i < steps; i++) {
		const u32 deletes = 4 * i < 3 * steps ? 20 : 70;

		CHECK(change(&store, &model, kind, deletes));
		look(&store, &model, kind);
		if (i % (1 + steps / 20) == 0)
			check(&store, &model);
	}
	most = store.budget.bytes;
	while (model.n) {
		const u32 at = below(model.n);
		struct llds_key key = llds_key(&store, model.pairs[at].key,
					       model.pairs[at].key_bytes);

		CHECK(llds_delete(&store, &key));
		model_delete(&model, key.at, key.bytes);
		if (model.n % 200 == 0)
			check(&store, &model);
	}
	check(&store, &model);
	CHECK(store.memory.used == 0);
	CHECK(store.pair_bytes == 0);
	CHECK(store.budget.bytes <= most);
	model_drop(&model);
	llds_store_drop(&store);
	printf("ok: %s, %s: %u changes as the model\n",
	       index == LLDS_INDEX_DEFAULT ? "buckets and order" : "tree",
	       kinds[kind], steps);
}

/* Each allocation of a run fails once. */
static void without_memory(enum llds_index index, enum kind kind, u32 steps)
{
	const u64 start = where();
	struct llds_store store;
	struct model model = { 0 };
	u32 n, i, failures = 0;

	for (n = 1;; n++) {
		bool failed = false;

		replay(start);
		llds_os_failing = n;
		if (llds_store_init(&store, index, 1ULL << 40, 7)) {
			failures++;
			CHECK(store.budget.bytes == 0);
			continue;
		}
		for (i = 0; i < steps; i++) {
			if (!change(&store, &model, kind, 10)) {
				failed = true;
				check(&store, &model);
			}
		}
		/* Optional allocations may fail without an error. */
		failed |= llds_os_failing == 0;
		llds_os_failing = 0;
		check(&store, &model);
		model_drop(&model);
		llds_store_drop(&store);
		failures += failed;
		if (!failed)
			break;
	}
	CHECK(failures > 3);
	printf("ok: %s, %s: each of %u allocations failed once\n",
	       index == LLDS_INDEX_DEFAULT ? "buckets and order" : "tree",
	       kinds[kind], failures);
}

/* A budget is kept; refused changes succeed after memory was freed. */
static void within_a_budget(enum llds_index index)
{
	const u64 most = 3 << 20;
	struct llds_store store;
	struct model model = { 0 };
	u32 refused = 0, i;

	CHECK(!llds_store_init(&store, index, most, 7));
	for (i = 0; i < 200000; i++) {
		if (!change(&store, &model, IN_ORDER, 0))
			refused++;
		CHECK(store.budget.bytes <= most);
		if (refused == 1000)
			break;
	}
	CHECK(refused == 1000);
	check(&store, &model);
	for (i = 0; model.n > 10; i++) {
		struct llds_key key = llds_key(&store, model.pairs[0].key,
					       model.pairs[0].key_bytes);

		CHECK(llds_delete(&store, &key));
		model_delete(&model, key.at, key.bytes);
	}
	for (i = 0; i < 100; i++)
		CHECK(change(&store, &model, NUMBERS, 0));
	check(&store, &model);
	model_drop(&model);
	llds_store_drop(&store);
	printf("ok: %s: a budget is kept\n",
	       index == LLDS_INDEX_DEFAULT ? "buckets and order" : "tree");
}

/* A quota counts all bytes of its stores exactly, even after failures. */
static void within_a_quota(enum llds_index index, u32 steps)
{
	struct llds_quota quota = { .bytes_max = 5 << 20 };
	struct llds_store stores[2], third;
	struct model models[2] = { 0 };
	u32 i, refused = 0;

	for (i = 0; i < 2; i++) {
		CHECK(!llds_store_init(&stores[i], index, 4 << 20, 7));
		CHECK(llds_budget_join(&stores[i].budget, &quota));
	}
	for (i = 0; i < steps; i++) {
		const u32 at = below(2);
		/* First more sets than deletes, then the other way round. */
		const u32 deletes = i / (steps / 4) % 2 ? 80 : 10;

		llds_os_failing = below(20) ? 0 : below(4);
		stores[at].budget.is_refused = false;
		if (!change(&stores[at], &models[at], LONG, deletes))
			refused += stores[at].budget.is_refused &&
				   stores[at].budget.bytes + (1 << 20) <
				   stores[at].budget.bytes_max;
		llds_os_failing = 0;
		CHECK(quota.bytes == stores[0].budget.bytes +
				     stores[1].budget.bytes);
		CHECK(quota.bytes <= quota.bytes_max);
	}
	/* Refused by the quota; the store's budget would have allowed it. */
	CHECK(refused);
	/* A store that exceeds the quota cannot join, and does not count. */
	CHECK(!llds_store_init(&third, index, 1ULL << 40, 7));
	for (i = 0; third.budget.bytes + quota.bytes <= quota.bytes_max; i++) {
		const struct llds_key key = llds_key(&third, (u8 *)&i, 4);

		CHECK(!llds_set(&third, &key, another, VALUE_ROOM));
	}
	CHECK(!llds_budget_join(&third.budget, &quota) && !third.budget.quota);
	llds_store_drop(&third);
	CHECK(quota.bytes == stores[0].budget.bytes + stores[1].budget.bytes);
	llds_store_drop(&stores[0]);
	CHECK(quota.bytes == stores[1].budget.bytes);
	check(&stores[1], &models[1]);
	llds_store_drop(&stores[1]);
	CHECK(!quota.bytes);
	model_drop(&models[0]);
	model_drop(&models[1]);
	printf("ok: %s: a quota is kept, %u refused\n",
	       index == LLDS_INDEX_DEFAULT ? "buckets and order" : "tree",
	       refused);
}

#define TAKERS 4

static void *take_and_give(void *quota)
{
	struct llds_budget budget = { .bytes_max = 1ULL << 40 };
	u64 i, taken = 0;

	CHECK(llds_budget_join(&budget, quota));
	for (i = 0; i < 100000; i++) {
		/* In total up to 1.5 times the quota. */
		if (i % 10 < 5)
			taken += llds_budget_take(&budget, 300);
		else if (budget.bytes)
			llds_budget_give(&budget, 300);
		CHECK(READ_ONCE(budget.quota->bytes) <=
		      budget.quota->bytes_max);
	}
	llds_budget_give(&budget, budget.bytes);
	return (void *)(uintptr_t)taken;
}

/* Threads share one quota: the count stays exact and within the limit. */
static void a_quota_for_many(void)
{
	struct llds_quota quota = { .bytes_max = TAKERS * 5 * 200 };
	pthread_t threads[TAKERS];
	void *taken;
	u32 i;

	for (i = 0; i < TAKERS; i++)
		CHECK(!pthread_create(&threads[i], NULL, take_and_give,
				      &quota));
	for (i = 0; i < TAKERS; i++) {
		CHECK(!pthread_join(threads[i], &taken));
		CHECK(taken);
	}
	CHECK(!quota.bytes);
	printf("ok: %u threads take from a quota and return it\n", TAKERS);
}

static struct llds_key numbered(const struct llds_store *store, u64 *number,
				u64 i)
{
	*number = __builtin_bswap64(i * 0x9e3779b97f4a7c15ULL);
	return llds_key(store, number, 8);
}

/* Deleting pairs frees memory, and nothing refers to it afterwards. */
static void gives_memory_back(u32 keys)
{
	struct llds_store store;
	union llds_cursor cursor;
	const struct llds_entry *entry;
	struct llds_key key;
	u64 full, i, number;

	CHECK(!llds_store_init(&store, LLDS_INDEX_DEFAULT, 1ULL << 40, 7));
	for (i = 0; i < keys; i++) {
		key = numbered(&store, &number, i);
		CHECK(!llds_set(&store, &key, &i, 8));
	}
	full = store.budget.bytes;
	printf("    %.1f bytes a pair of 8 + 8\n", (double)full / keys);
	for (i = 0; i < keys; i++) {
		key = numbered(&store, &number, i);
		CHECK(llds_delete(&store, &key));
		/* In the second half, keys of the first half are gone. */
		key = numbered(&store, &number, keys - 1 - i);
		CHECK(!llds_find(&store, &key) == (i >= keys - 1 - i));
	}
	CHECK(store.memory.used == 0);
	CHECK(store.budget.bytes < (8 << 20));
	/* Fill it again, then delete from the first key to the last. */
	for (i = 0; i < keys; i++) {
		key = numbered(&store, &number, i);
		CHECK(!llds_find(&store, &key));
		CHECK(!llds_set(&store, &key, &i, 8));
	}
	while ((entry = llds_seek(&store, &cursor, "", 0))) {
		key = llds_key(&store, entry->bytes,
			       llds_key_bytes(entry->sizes));
		CHECK(llds_delete(&store, &key));
	}
	for (i = 0; i < keys; i++) {
		key = numbered(&store, &number, i);
		CHECK(!llds_find(&store, &key));
	}
	CHECK(store.memory.used == 0);
	CHECK(store.budget.bytes < (8 << 20));
	llds_store_drop(&store);
	printf("ok: of %.1f MiB all but a few were freed, twice\n",
	       full / 1048576.0);
}

/* Adds pairs until the store is full; returns their number. */
static u32 fill(struct llds_store *store)
{
	u32 n;

	for (n = 0;; n++) {
		const struct llds_key key = llds_key(store, &n, sizeof(n));
		const int error = llds_set(store, &key, another, 4000);

		if (error) {
			/* Not out of memory: the store is as large as it can be. */
			CHECK(error == -ENOSPC);
			return n;
		}
	}
}

/* A store that had all pieces that there can be takes as many pairs again. */
void test_full_stores(void)
{
	struct llds_store store;
	u32 first, again, n, round;

	CHECK(!llds_store_init(&store, LLDS_INDEX_DEFAULT, 1ULL << 40, 7));
	first = again = fill(&store);
	for (round = 0; round < 3; round++) {
		for (n = 0; n < again; n++) {
			const struct llds_key key =
				llds_key(&store, &n, sizeof(n));

			CHECK(llds_delete(&store, &key) == 1);
		}
		CHECK(!llds_store_keys(&store));
		again = fill(&store);
		CHECK(again >= first - first / 16);
	}
	llds_store_drop(&store);
	printf("ok: %u pairs fill a store of %lu pieces, and again %u\n", first,
	       LLDS_PIECES_MAX, again);
}

void test_stores(u32 steps)
{
	enum kind kind;
	int index;

	for (index = LLDS_INDEX_DEFAULT; index <= LLDS_INDEX_TREE; index++) {
		for (kind = 0; kind < KINDS; kind++)
			against_the_model(index, kind, steps);
		for (kind = 0; kind < KINDS; kind++)
			without_memory(index, kind, min(steps / 10, 200U));
		within_a_budget(index);
		within_a_quota(index, 4 * steps);
	}
	a_quota_for_many();
	gives_memory_back(100 * steps);
}

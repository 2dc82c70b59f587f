// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Random numbers, keys and values, a model of a store, and checks of a real
 * one.
 */
#include "test.h"

u64 seed = 1;
static u64 state;
/* Number of keys that were made in order. */
static u32 counter;

u64 where(void)
{
	return state;
}

void replay(u64 from)
{
	state = from;
	counter = 0;
}

u64 random64(void)
{
	u64 x = (state += 0x9e3779b97f4a7c15ULL);

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

u32 below(u32 n)
{
	return random64() % n;
}

u32 model_seek(const struct model *model, const u8 *key, u32 bytes)
{
	u32 low = 0, high = model->n;

	while (low < high) {
		const u32 middle = (low + high) / 2;
		const struct pair *pair = &model->pairs[middle];

		if (llds_key_order(pair->key, pair->key_bytes, key, bytes) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct pair *model_find(const struct model *model, const u8 *key,
			       u32 bytes)
{
	const u32 at = model_seek(model, key, bytes);
	struct pair *pair;

	/* The array is NULL if the model is empty. */
	if (at == model->n)
		return NULL;
	pair = &model->pairs[at];
	if (pair->key_bytes != bytes || memcmp(pair->key, key, bytes))
		return NULL;
	return pair;
}

static u8 *copy(const void *bytes, u32 n)
{
	u8 *to = malloc(n ? n : 1);

	memcpy(to, bytes, n);
	return to;
}

void model_set(struct model *model, const u8 *key, u32 key_bytes,
		      const u8 *value, u32 value_bytes)
{
	struct pair *pair = model_find(model, key, key_bytes);
	u32 at;

	if (pair) {
		free(pair->value);
		pair->value = copy(value, value_bytes);
		pair->value_bytes = value_bytes;
		return;
	}
	if (model->n == model->room) {
		model->room = model->room ? 2 * model->room : 64;
		model->pairs = realloc(model->pairs,
				       model->room * sizeof(*pair));
	}
	at = model_seek(model, key, key_bytes);
	pair = &model->pairs[at];
	memmove(pair + 1, pair, (model->n++ - at) * sizeof(*pair));
	*pair = (struct pair){ copy(key, key_bytes), copy(value, value_bytes),
			       key_bytes, value_bytes };
}

bool model_delete(struct model *model, const u8 *key, u32 bytes)
{
	struct pair *pair = model_find(model, key, bytes);

	if (!pair)
		return false;
	free(pair->key);
	free(pair->value);
	memmove(pair, pair + 1,
		(&model->pairs[--model->n] - pair) * sizeof(*pair));
	return true;
}

void model_take(struct model *model, const struct llds_store *store)
{
	const struct llds_entry *entry;
	union llds_cursor cursor;
	struct llds_value found;

	for (entry = llds_seek(store, &cursor, "", 0); entry;
	     entry = llds_next(store, &cursor)) {
		found = llds_value_of(store, entry);
		model_set(model, entry->bytes, llds_key_bytes(entry->sizes),
			  found.at, found.bytes);
	}
}

void model_drop(struct model *model)
{
	while (model->n) {
		free(model->pairs[--model->n].key);
		free(model->pairs[model->n].value);
	}
	free(model->pairs);
	memset(model, 0, sizeof(*model));
}

void model_copy(struct model *to, const struct model *from)
{
	u32 i;

	*to = (struct model){ malloc((from->n + 1) * sizeof(*to->pairs)),
			      from->n, from->n + 1 };
	for (i = 0; i < from->n; i++) {
		const struct pair *pair = &from->pairs[i];

		to->pairs[i] = (struct pair){
			copy(pair->key, pair->key_bytes),
			copy(pair->value, pair->value_bytes),
			pair->key_bytes, pair->value_bytes };
	}
}

bool is_pair(const struct llds_store *store,
		    const struct llds_entry *entry, const struct pair *pair)
{
	struct llds_value value;

	if (!llds_entry_is(entry, pair->key, pair->key_bytes))
		return false;
	value = llds_value_of(store, entry);
	return value.bytes == pair->value_bytes &&
	       !memcmp(value.at, pair->value, value.bytes);
}

/* A key or a separator. */
static const u8 *separator_at(const struct llds_store *store, u32 handle,
			      u32 *bytes)
{
	const struct llds_separator *separator =
		llds_block(&store->memory, handle);

	*bytes = separator->bytes;
	return separator->text;
}

/*
 * Checks a node and all nodes below: the keys are in order, and between the
 * separators at its ends, and the heads are right. Returns the number of
 * entries below it, and its level in @level.
 */
static u64 check_node(const struct llds_store *store, u32 handle, u32 low,
		      u32 high, u32 *level)
{
	const struct llds_node *node = llds_block(&store->memory, handle);
	const struct llds_leaf *leaf = (const void *)node;
	const struct llds_inner *inner = (const void *)node;
	const u8 *low_key = NULL, *high_key = NULL, *key, *last = NULL;
	u32 low_bytes = 0, high_bytes = 0, bytes, last_bytes = 0, i, j, head;
	u32 skip = 0, child_level;
	u64 entries = 0;

	if (low)
		low_key = separator_at(store, low, &low_bytes);
	if (high)
		high_key = separator_at(store, high, &high_bytes);
	while (low && high && skip < min(low_bytes, high_bytes) &&
	       low_key[skip] == high_key[skip])
		skip++;
	CHECK(node->skip == skip);
	*level = node->level;
	CHECK(node->level ? node->count > 0 : !(node->sequence & 1));
	CHECK(node->count <= (node->level ? LLDS_INNER_SLOTS :
					    LLDS_LEAF_SLOTS));
	for (i = 0; i < node->count; i++) {
		if (node->level) {
			entries += check_node(store, inner->children[i],
				i ? inner->separators[i] : low,
				i + 1 < node->count ?
				inner->separators[i + 1] : high,
				&child_level);
			CHECK(child_level + 1 == node->level);
			if (i == 0)
				continue;
			key = separator_at(store, inner->separators[i],
					   &bytes);
		} else {
			const struct llds_entry *entry =
				llds_block(&store->memory, leaf->handles[i]);

			CHECK(!(entry->version & 1));
			key = entry->bytes;
			bytes = llds_key_bytes(entry->sizes);
			entries++;
		}
		for (head = 0, j = skip; j < skip + 4; j++)
			head = head << 8 | (j < bytes ? key[j] : 0);
		CHECK((node->level ? inner->heads[i] : leaf->heads[i]) == head);
		CHECK(!low || llds_key_order(low_key, low_bytes, key,
					     bytes) <= 0);
		CHECK(!high || llds_key_order(key, bytes, high_key,
					      high_bytes) < 0);
		CHECK(!last || llds_key_order(last, last_bytes, key,
					      bytes) < 0);
		last = key;
		last_bytes = bytes;
	}
	for (; i < (node->level ? LLDS_INNER_SLOTS : LLDS_LEAF_SLOTS); i++)
		CHECK((node->level ? inner->heads[i] : leaf->heads[i]) == ~0U);
	return entries;
}

/*
 * Checks that each entry is in its bucket, or that buckets are crowded: then
 * some may be in the order alone.
 */
static void check_buckets(const struct llds_store *store, u64 n)
{
	const struct llds_buckets *buckets = &store->buckets;
	u64 entries = 0, crowded = 0;
	u32 at, slot, blocks;

	for (at = 0; at < llds_buckets_count(buckets); at++) {
		const struct llds_bucket *bucket = llds_bucket(buckets, at);

		CHECK(!(bucket->sequence & 1));
		crowded += bucket->is_crowded;
		for (blocks = 0;; blocks++) {
			CHECK(blocks <= LLDS_CHAIN_BLOCKS);
			for (slot = 0; slot < LLDS_BUCKET_SLOTS; slot++) {
				const struct llds_entry *entry;
				struct llds_key key;

				if (!bucket->tags[slot])
					continue;
				entry = llds_block(&store->memory,
						   bucket->handles[slot]);
				key = llds_key(store, entry->bytes,
					       llds_key_bytes(entry->sizes));
				CHECK(llds_bucket_of(key.hash,
						     buckets->header->buckets) == at);
				CHECK(llds_find(store, &key) == entry);
				entries++;
			}
			if (!bucket->next)
				break;
			bucket = llds_block(&store->memory, bucket->next);
		}
	}
	CHECK(crowded || !buckets->beyond);
	CHECK(entries + buckets->beyond == n);
}

/* Checks everything against the model. */
void check(const struct llds_store *store, const struct model *model)
{
	const struct llds_entry *entry;
	union llds_cursor cursor;
	u64 pair_bytes = 0;
	u32 i, level;

	CHECK(llds_store_keys(store) == model->n);
	entry = llds_seek(store, &cursor, "", 0);
	for (i = 0; i < model->n; i++) {
		CHECK(entry && is_pair(store, entry, &model->pairs[i]));
		pair_bytes += model->pairs[i].key_bytes +
			      model->pairs[i].value_bytes;
		entry = llds_next(store, &cursor);
	}
	CHECK(!entry);
	CHECK(store->pair_bytes == pair_bytes);
	entry = llds_seek_before(store, &cursor, NULL, 0);
	for (i = model->n; i-- > 0;) {
		CHECK(entry && is_pair(store, entry, &model->pairs[i]));
		entry = llds_prev(store, &cursor);
	}
	CHECK(!entry);
	if (store->index != LLDS_INDEX_DEFAULT)
		return;
	check_buckets(store, model->n);
	/* Those too that are in the order alone. */
	for (i = 0; i < model->n; i++) {
		const struct pair *pair = &model->pairs[i];
		const struct llds_key key = llds_key(store, pair->key,
						     pair->key_bytes);

		entry = llds_find(store, &key);
		CHECK(entry && is_pair(store, entry, pair));
	}
	if (store->header->root)
		CHECK(check_node(store, store->header->root, 0, 0, &level) ==
		      model->n);
	else
		CHECK(!model->n);
	CHECK(!(store->header->order_sequence & 1));
}

bool is_same(const struct llds_store *store, const struct model *model)
{
	union llds_cursor cursor;
	const struct llds_entry *entry = llds_seek(store, &cursor, "", 0);
	u32 i;

	for (i = 0; i < model->n; i++) {
		if (!entry || !is_pair(store, entry, &model->pairs[i]))
			return false;
		entry = llds_next(store, &cursor);
	}
	return !entry;
}

const char *const kinds[] = { "numbers", "short", "alike", "long",
				     "in order", "colliding" };

#define COLLIDING_SALT 7
#define COLLIDING_KEYS 600

u64 salt_of(enum kind kind)
{
	return kind == COLLIDING ? COLLIDING_SALT : random64();
}

/*
 * One of the keys whose hashes end with 7 zero bits: all are in one bucket,
 * until there are more than 128, and then in two.
 */
static u64 a_colliding_key(void)
{
	static u64 keys[COLLIDING_KEYS];
	u64 key;
	u32 n = 0;

	for (key = 0; !keys[COLLIDING_KEYS - 1]; key++) {
		if (!(llds_hash(COLLIDING_SALT, (const u8 *)&key, 8) & 127))
			keys[n++] = key;
	}
	return keys[below(COLLIDING_KEYS)];
}

u32 a_key(enum kind kind, u8 *key)
{
	u64 number;
	u32 bytes, i;

	switch (kind) {
	case NUMBERS:
		number = below(5000) * 0x9e3779b97f4a7c15ULL;
		memcpy(key, &number, 8);
		return 8;
	case SHORT:
		bytes = below(7);
		for (i = 0; i < bytes; i++)
			key[i] = below(3) * 127;
		return bytes;
	case ALIKE:
		return sprintf((char *)key, "a:common/beginning:%05u",
			       below(3000));
	case LONG:
		bytes = below(4) ? 4000 + below(97) : below(4097);
		memset(key, 'x', bytes);
		for (i = 0; i < 3 && bytes; i++)
			key[below(bytes)] = 'a' + below(3);
		return bytes;
	case COLLIDING:
		number = below(8) ? a_colliding_key() : below(400);
		memcpy(key, &number, 8);
		return 8;
	default:
		return sprintf((char *)key, "%010u",
			       below(4) ? counter++ : below(counter + 1));
	}
}

u32 a_value(u8 *value)
{
	const u32 most[] = { 1, 9, 9, 40, 200, 3000, 20000, 70000 };
	const u32 bytes = below(most[below(below(16) ? 5 : 8)]);

	memset(value, random64(), bytes);
	return bytes;
}


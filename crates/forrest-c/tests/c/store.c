/* Calls the functions for options, ranges, comparisons, keyspaces, snapshots and whole stores, correctly and incorrectly: store URL,
 * where URL names a new store of any home. */

#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <pthread.h>
#include <unistd.h>

/* The capabilities of this home. */
static uint64_t can;

static void setting_options(const char *url) {
    static const struct {
        int32_t option;
        uint64_t right, wrong; /* a value that the library accepts, and one that it refuses */
    } OPTIONS[] = {
        {FORREST_CAPACITY_BYTES, 1 << 30, 0},
        {FORREST_PAGES, FORREST_PAGES_PLAIN, FORREST_PAGES_PLAIN + 1},
        {FORREST_PAGES, FORREST_PAGES_TRANSPARENT, 0},
        {FORREST_PAGES, FORREST_PAGES_HUGE_2M, 0},
        {FORREST_PAGES, FORREST_PAGES_HUGE_1G, 0},
        {FORREST_PAGES, FORREST_PAGES_AUTO, 0},
        {FORREST_NUMA, FORREST_NUMA_INTERLEAVE, FORREST_NUMA_INTERLEAVE + 1},
        {FORREST_NUMA, FORREST_NUMA_LOCAL, 0},
        {FORREST_DURABILITY, FORREST_DURABILITY_MEMORY, FORREST_DURABILITY_SYNC + 1},
        {FORREST_BATCH_OPS_MAX, 3, 0},
        {FORREST_BATCH_BYTES_MAX, 1000, 0},
        {FORREST_MEMTABLE_BYTES, 1 << 20, 0},
        {FORREST_CACHE_BYTES, 1 << 22, 0},
        {FORREST_TABLE_BYTES, 1 << 21, 0},
        {FORREST_TAGS, 0, 2},
        {FORREST_WORKERS, 2, 0},
        {FORREST_OPEN_FILES, 100, 0},
        {FORREST_WAIT_MS, 100, 0},
        {FORREST_BACKGROUND_BYTES_PER_SECOND, 1 << 30, 0},
        {FORREST_MEMORY_BYTES, 1 << 30, 0},
        {FORREST_COMPRESSION, FORREST_COMPRESSION_NONE, FORREST_COMPRESSION_ZSTD + 1},
        {FORREST_HISTORY, 1, 2},
        {FORREST_HISTORY_BYTES, 1 << 20, 0},
        {FORREST_HISTORY_AGE_MS, 1000, 0},
        {FORREST_LATENCIES, 1, 2},
        {FORREST_LARGE_VALUES, 4096, 0},
        {FORREST_CREATE, 1, 2},
        {FORREST_MODE, 0640, (uint64_t)1 << 32},
    };
    forrest_options *options;
    ANSWERS(FORREST_OK, forrest_options_create(&options));
    for (size_t at = 0; at < sizeof OPTIONS / sizeof OPTIONS[0]; at++) {
        if (OPTIONS[at].wrong != 0)
            ANSWERS(FORREST_INVALID_ARGUMENT, forrest_options_set(options, OPTIONS[at].option, OPTIONS[at].wrong));
        ANSWERS(FORREST_OK, forrest_options_set(options, OPTIONS[at].option, OPTIONS[at].right));
    }
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_options_set(options, FORREST_DURABILITY, FORREST_DURABILITY_DEFAULT));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_options_set(options, FORREST_READ_ONLY, 2));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_options_set(options, 0, 1));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_options_set(options, 1000000, 1));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_options_set(options, -1, 1));

    /* The options take effect. */
    forrest_db *db;
    forrest_batch *batch;
    ANSWERS(FORREST_OK, forrest_open_with(url, options, &db));
    ANSWERS(FORREST_OK, forrest_batch_create(&batch));
    for (int at = 0; at < 4; at++)
        ANSWERS(FORREST_OK, forrest_batch_set(batch, T("key"), T("value")));
    ANSWERS(FORREST_LIMIT, forrest_write(db, batch));
    CHECK(strstr(forrest_error_message(), "at most 3") != NULL);
    ANSWERS(FORREST_OK, forrest_batch_destroy(batch));

    /* Values outside their limits are refused when a store is opened; there is nothing to close then. */
    forrest_db *none = JUNK;
    static const int32_t FROM_1[] = {FORREST_CAPACITY_BYTES, FORREST_BATCH_OPS_MAX, FORREST_WORKERS, FORREST_OPEN_FILES};
    for (size_t at = 0; at < sizeof FROM_1 / sizeof FROM_1[0]; at++) {
        forrest_options *wrong;
        ANSWERS(FORREST_OK, forrest_options_create(&wrong));
        ANSWERS(FORREST_OK, forrest_options_set(wrong, FROM_1[at], 0));
        none = JUNK;
        ANSWERS(FORREST_INVALID_ARGUMENT, forrest_open_with(url, wrong, &none));
        CHECK(none == NULL);
        ANSWERS(FORREST_OK, forrest_options_destroy(wrong));
    }
    ANSWERS(FORREST_OK, forrest_options_destroy(options));

    ANSWERS(FORREST_OK, forrest_capabilities(db, &can));
    ANSWERS(FORREST_OK, forrest_options_create(&options));
    ANSWERS(FORREST_OK, forrest_options_set(options, FORREST_READ_ONLY, 1));
    if (can & FORREST_CAN_READ_ONLY) {
        forrest_db *reader;
        ANSWERS(FORREST_OK, forrest_set(db, T("key"), T("value")));
        ANSWERS(FORREST_OK, forrest_sync(db));
        ANSWERS(FORREST_OK, forrest_open_with(url, options, &reader));
        CHECK(has(reader, T("key"), T("value")));
        ANSWERS(FORREST_UNSUPPORTED, forrest_set(reader, T("key"), T("other")));
        ANSWERS(FORREST_OK, forrest_set(db, T("key"), T("later")));
        ANSWERS(FORREST_OK, forrest_sync(db));
        ANSWERS(FORREST_OK, forrest_refresh(reader));
        CHECK(has(reader, T("key"), T("later")));
        ANSWERS(FORREST_OK, forrest_close(reader));
        ANSWERS(FORREST_OK, forrest_delete(db, T("key")));
    } else {
        ANSWERS(FORREST_UNSUPPORTED, forrest_open_with(url, options, &none));
    }
    ANSWERS(FORREST_OK, forrest_options_set(options, FORREST_READ_ONLY, 0));
    ANSWERS(FORREST_OK, forrest_options_set(options, FORREST_CREATE, 0));
    ANSWERS(FORREST_OK, forrest_close(db));
    /* A processor that no machine has. */
    ANSWERS(FORREST_OK, forrest_options_set(options, FORREST_WORKER_CPU, 0));
    ANSWERS(FORREST_OK, forrest_options_set(options, FORREST_WORKER_CPU, 1000000));
    if (strchr(url, ':') == NULL)
        CHECK(forrest_open_with(url, options, &none) < 0 && none == NULL);
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_open_with(NULL, options, &none));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_open_with(url, NULL, &none));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_open_with(url, options, NULL));
    ANSWERS(FORREST_OK, forrest_options_destroy(options));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_options_create(NULL));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_options_set(NULL, FORREST_TAGS, 1));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_options_set_metrics_file(NULL, "file"));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_options_set_listener(NULL, NULL, NULL));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_options_set_log_directory(NULL, "log"));
    /* A store that is there has its log in its own directory, and keeps it. */
    if (strchr(url, ':') == NULL) {
        ANSWERS(FORREST_OK, forrest_options_create(&options));
        ANSWERS(FORREST_INVALID_ARGUMENT, forrest_options_set_log_directory(options, NULL));
        ANSWERS(FORREST_OK, forrest_options_set_log_directory(options, "/nowhere/at/all"));
        ANSWERS(FORREST_INVALID_ARGUMENT, forrest_open_with(url, options, &none));
        CHECK(strstr(forrest_error_message(), "/nowhere/at/all") != NULL);
        ANSWERS(FORREST_OK, forrest_options_destroy(options));
    }
    ANSWERS(FORREST_OK, forrest_options_destroy(NULL));
}

/* The pairs that a scan has passed. */
struct shown {
    char keys[20];
    size_t count, most;
    forrest_db *db;
};

static bool show(void *context, const void *key, size_t key_bytes, const void *value, size_t value_bytes) {
    struct shown *shown = context;
    CHECK(key_bytes == 1 && value_bytes == 1 && *(const char *)value == 'v');
    shown->keys[shown->count++] = *(const char *)key;
    if (shown->db != NULL) /* it may use the store, and close the handle */
        ANSWERS(FORREST_OK, forrest_contains(shown->db, key, key_bytes));
    return shown->count < shown->most;
}

static bool close_it(void *context, const void *key, size_t key_bytes, const void *value, size_t value_bytes) {
    forrest_db **db = context;
    (void)key, (void)key_bytes, (void)value, (void)value_bytes;
    if (*db != NULL)
        ANSWERS(FORREST_OK, forrest_close(*db));
    *db = NULL;
    return true;
}

static void scanning(forrest_db *db) {
    for (char key = 'a'; key <= 'j'; key++)
        ANSWERS(FORREST_OK, forrest_set(db, &key, 1, T("v")));
    struct shown shown = {"", 0, 20, db};
    ANSWERS(FORREST_OK, forrest_scan(db, NULL, 0, NULL, FORREST_ABSENT, show, &shown));
    CHECK(shown.count == 10 && memcmp(shown.keys, "abcdefghij", 10) == 0);
    shown = (struct shown){"", 0, 20, NULL};
    ANSWERS(FORREST_OK, forrest_scan_back(db, T("b"), T("e"), show, &shown));
    CHECK(shown.count == 3 && memcmp(shown.keys, "dcb", 3) == 0);
    shown = (struct shown){"", 0, 2, NULL};
    ANSWERS(FORREST_OK, forrest_scan(db, T("b"), T("j"), show, &shown));
    CHECK(shown.count == 2 && memcmp(shown.keys, "bc", 2) == 0);
    shown.count = 0;
    ANSWERS(FORREST_OK, forrest_scan_back(db, T("b"), NULL, FORREST_ABSENT, show, &shown));
    CHECK(shown.count == 2 && memcmp(shown.keys, "ji", 2) == 0);
    shown.count = 0;
    ANSWERS(FORREST_OK, forrest_scan(db, T("d"), T("b"), show, &shown));
    CHECK(shown.count == 0);
    forrest_db *same;
    ANSWERS(FORREST_OK, forrest_keyspace(db, "default", &same));
    ANSWERS(FORREST_OK, forrest_scan(same, T(""), NULL, FORREST_ABSENT, close_it, &same));
    CHECK(same == NULL);

    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_scan(NULL, T("a"), T("b"), show, &shown));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_scan(db, T("a"), T("b"), NULL, NULL));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_scan_back(db, T("a"), T("b"), NULL, NULL));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_scan(db, NULL, 1, T("b"), show, &shown));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_scan_back(db, T("a"), NULL, 1, show, &shown));
    ANSWERS(FORREST_LIMIT, forrest_scan(db, "a", SIZE_MAX, T("b"), show, &shown));
    CHECK(shown.count == 0);
    ANSWERS(FORREST_OK, forrest_delete_range(db, NULL, 0, NULL, FORREST_ABSENT));
}

static void counting_and_deleting_ranges(forrest_db *db) {
    uint64_t keys = 77;
    for (char key = 'a'; key <= 'j'; key++)
        ANSWERS(FORREST_OK, forrest_set(db, &key, 1, T("v")));
    ANSWERS(FORREST_OK, forrest_count(db, NULL, 0, NULL, FORREST_ABSENT, &keys));
    CHECK(keys == 10);
    /* A null end is no end, with either length; the empty key is a non-null pointer with the length 0. */
    ANSWERS(FORREST_OK, forrest_count(db, NULL, 0, NULL, 0, &keys));
    CHECK(keys == 10);
    ANSWERS(FORREST_OK, forrest_count(db, NULL, 0, T(""), &keys));
    CHECK(keys == 0);
    ANSWERS(FORREST_OK, forrest_count(db, T("b"), T("d"), &keys));
    CHECK(keys == 2);
    ANSWERS(FORREST_OK, forrest_count(db, T("b"), T(""), &keys)); /* no key is less than the empty one */
    CHECK(keys == 0);
    ANSWERS(FORREST_OK, forrest_count(db, T("d"), T("b"), &keys));
    CHECK(keys == 0);
    ANSWERS(FORREST_OK, forrest_contains(db, T("a")));
    ANSWERS(FORREST_NOT_FOUND, forrest_contains(db, T("aa")));

    ANSWERS(FORREST_OK, forrest_delete_range(db, T("b"), T("d")));
    CHECK(has(db, T("a"), T("v")) && has_not(db, T("b")) && has_not(db, T("c")) && has(db, T("d"), T("v")));
    ANSWERS(FORREST_OK, forrest_delete_range(db, T("d"), T("d")));
    CHECK(has(db, T("d"), T("v")));
    ANSWERS(FORREST_OK, forrest_delete_range(db, T("h"), NULL, FORREST_ABSENT));
    CHECK(has(db, T("g"), T("v")) && has_not(db, T("h")) && has_not(db, T("j")));
    ANSWERS(FORREST_OK, forrest_set(db, T("ga"), T("v")));
    ANSWERS(FORREST_OK, forrest_delete_prefix(db, T("g")));
    CHECK(has(db, T("f"), T("v")) && has_not(db, T("g")) && has_not(db, T("ga")));
    ANSWERS(FORREST_OK, forrest_clear(db));
    CHECK(has_not(db, T("a")) && has_not(db, T("f")));
    ANSWERS(FORREST_OK, forrest_set(db, T("a"), T("v")));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_delete_prefix(NULL, T("a")));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_clear(NULL));
    ANSWERS(FORREST_OK, forrest_delete_range(db, NULL, 0, NULL, FORREST_ABSENT));
    ANSWERS(FORREST_OK, forrest_count(db, NULL, 0, NULL, FORREST_ABSENT, &keys));
    CHECK(keys == 0);

    keys = 77;
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_count(NULL, T("a"), T("b"), &keys));
    CHECK(keys == 0);
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_count(db, T("a"), T("b"), NULL));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_count(db, NULL, 1, T("b"), &keys));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_count(db, T("a"), NULL, 1, &keys));
    ANSWERS(FORREST_LIMIT, forrest_count(db, T("a"), "b", FORREST_ABSENT, &keys)); /* not null, so the length counts */
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_count(db, T("a"), NULL, FORREST_ABSENT - 1, &keys));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_count(db, NULL, FORREST_ABSENT, T("b"), &keys)); /* a start is never absent */
    ANSWERS(FORREST_LIMIT, forrest_count(db, "a", FORREST_ABSENT, T("b"), &keys));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_delete_range(NULL, T("a"), T("b")));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_delete_range(db, NULL, FORREST_ABSENT, T("b")));
    ANSWERS(FORREST_LIMIT, forrest_delete_range(db, T("a"), "b", SIZE_MAX));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_contains(NULL, T("a")));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_contains(db, NULL, 1));
    ANSWERS(FORREST_LIMIT, forrest_contains(db, "a", 65536));
}

static bool count_seen(void *context, const void *key, size_t key_bytes, const void *value, size_t value_bytes) {
    (void)key, (void)key_bytes, (void)value, (void)value_bytes;
    ++*(size_t *)context;
    return true;
}

static bool count_seen_in(void *context, size_t range, const void *key, size_t key_bytes, const void *value,
                          size_t value_bytes) {
    CHECK(range == 0);
    return count_seen(context, key, key_bytes, value, value_bytes);
}

/* A bound may be longer than the longest key. An iteration that goes on after a key of the greatest length has one. */
static void bounds_of_any_length(forrest_db *db, const char *url) {
    static char first[70000];
    const size_t longest = strncmp(url, "llds", 4) == 0 ? 4096 : 65535;
    const size_t lengths[] = {longest + 1, 65536, sizeof first};
    memset(first, 1, sizeof first);
    for (size_t at = 0; at < sizeof lengths / sizeof *lengths; at++) {
        const size_t bytes = lengths[at];
        const void *const bound = first, *key;
        const char *const values[] = {"v"};
        const void *const keys[] = {"\2"}, *const none = NULL;
        const size_t ones[] = {1}, zero = 0;
        uint64_t count, more;
        size_t seen = 0, key_bytes;
        first[longest] = at == 0 ? 0 : 1; /* the successor of the longest key, and other ones */
        ANSWERS(FORREST_OK, forrest_set(db, first, longest, T("v")));
        ANSWERS(FORREST_OK, forrest_set(db, T("\2"), T("v")));

        ANSWERS(FORREST_OK, forrest_scan(db, bound, bytes, NULL, 0, count_seen, &seen));
        ANSWERS(FORREST_OK, forrest_scan_back(db, NULL, 0, bound, bytes, count_seen, &seen));
        ANSWERS(FORREST_OK, forrest_multi_scan(db, &bound, &bytes, &none, &zero, 1, 9, false, count_seen_in, &seen));
        CHECK(seen == 3);
        ANSWERS(FORREST_OK, forrest_count(db, bound, bytes, NULL, 0, &count));
        CHECK(count == 1);
        ANSWERS(FORREST_OK, forrest_count(db, NULL, 0, bound, bytes, &count));
        CHECK(count == 1);
        if (can & FORREST_CAN_APPROXIMATE)
            ANSWERS(FORREST_OK, forrest_approximate(db, bound, bytes, NULL, 0, &count, &more));
        if (can & FORREST_CAN_COMPACT)
            ANSWERS(FORREST_OK, forrest_compact_range(db, bound, bytes, bound, bytes));
        bool exists = true;
        ANSWERS(FORREST_OK, forrest_prefixes_exist(db, &bound, &bytes, 1, &exists));
        CHECK(!exists);

        forrest_iter *iter;
        ANSWERS(FORREST_OK, forrest_iter_create(db, &iter));
        ANSWERS(FORREST_OK, forrest_iter_seek(iter, bound, bytes));
        CHECK(is_at(iter, "\2", "v"));
        ANSWERS(FORREST_OK, forrest_iter_seek_for_prev(iter, bound, bytes));
        ANSWERS(FORREST_OK, forrest_iter_key(iter, &key, &key_bytes));
        CHECK(key_bytes == longest);
        forrest_iter_destroy(iter);

        forrest_transaction *it;
        ANSWERS(FORREST_OK, forrest_transaction_begin(db, &it));
        ANSWERS(FORREST_OK, forrest_transaction_range(it, bound, bytes, NULL, 0));
        ANSWERS(FORREST_OK, forrest_transaction_next(it, NULL, NULL));
        ANSWERS(FORREST_NOT_FOUND, forrest_transaction_next(it, NULL, NULL));
        ANSWERS(FORREST_OK, forrest_transaction_delete_range(it, bound, bytes, NULL, 0));
        ANSWERS(FORREST_OK, forrest_transaction_commit(it));
        ANSWERS(FORREST_OK, forrest_transaction_destroy(it));
        CHECK(has(db, first, longest, T("v")) && has_not(db, T("\2")));

        forrest_batch *batch;
        ANSWERS(FORREST_OK, forrest_set(db, T("\2"), T("v")));
        ANSWERS(FORREST_OK, forrest_batch_create(&batch));
        ANSWERS(FORREST_OK, forrest_batch_compare_range(batch, bound, bytes, NULL, 0, keys, ones, (const void *const *)values, ones, 1));
        ANSWERS(FORREST_OK, forrest_batch_delete_range(batch, bound, bytes, NULL, 0));
        ANSWERS(FORREST_OK, forrest_write(db, batch));
        ANSWERS(FORREST_OK, forrest_batch_destroy(batch));
        CHECK(has(db, first, longest, T("v")) && has_not(db, T("\2")));
        ANSWERS(FORREST_OK, forrest_delete_prefix(db, bound, bytes));
        ANSWERS(FORREST_OK, forrest_delete_range(db, bound, bytes, NULL, 0));
        CHECK(has(db, first, longest, T("v")));
        ANSWERS(FORREST_OK, forrest_delete_range(db, NULL, 0, bound, bytes));
        CHECK(has_not(db, first, longest));
    }
}

static void reading_many(forrest_db *db) {
    const void *keys[] = {"oak", NULL, "ash", "fir", "oak"};
    size_t bytes[] = {3, 0, 3, 3, 3};
    forrest_value *values[5];
    ANSWERS(FORREST_OK, forrest_set(db, T("oak"), T("Quercus")));
    ANSWERS(FORREST_OK, forrest_set(db, T(""), T("of nothing")));
    ANSWERS(FORREST_OK, forrest_set(db, T("fir"), T("")));
    for (size_t at = 0; at < 5; at++)
        values[at] = JUNK;
    ANSWERS(FORREST_OK, forrest_multi_get(db, keys, bytes, 5, values));
    static const char *const EXPECTED[] = {"Quercus", "of nothing", NULL, "", "Quercus"};
    for (size_t at = 0; at < 5; at++) {
        const void *data;
        size_t length;
        CHECK((values[at] == NULL) == (EXPECTED[at] == NULL));
        if (values[at] == NULL)
            continue;
        ANSWERS(FORREST_OK, forrest_value_data(values[at], &data, &length));
        CHECK(length == strlen(EXPECTED[at]) && memcmp(data, EXPECTED[at], length) == 0);
        ANSWERS(FORREST_OK, forrest_value_release(values[at]));
    }
    ANSWERS(FORREST_OK, forrest_multi_get(db, NULL, NULL, 0, NULL));
    for (size_t at = 0; at < 5; at++)
        values[at] = JUNK;
    bytes[4] = 65536;
    ANSWERS(FORREST_LIMIT, forrest_multi_get(db, keys, bytes, 5, values));
    for (size_t at = 0; at < 5; at++)
        CHECK(values[at] == NULL);
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_multi_get(NULL, keys, bytes, 4, values));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_multi_get(NULL, NULL, NULL, 0, NULL));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_multi_get(db, NULL, bytes, 4, values));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_multi_get(db, keys, NULL, 4, values));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_multi_get(db, keys, bytes, 4, NULL));
    ANSWERS(FORREST_LIMIT, forrest_multi_get(db, keys, bytes, SIZE_MAX, values));
    ANSWERS(FORREST_OK, forrest_delete_range(db, NULL, 0, NULL, FORREST_ABSENT));
}

static bool is_value(forrest_value *value, const char *expected) {
    const void *data;
    size_t bytes;
    bool is = forrest_value_data(value, &data, &bytes) == FORREST_OK && bytes == strlen(expected) &&
              memcmp(data, expected, bytes) == 0;
    return forrest_value_release(value) == FORREST_OK && is;
}

static void adding_and_comparing(forrest_db *db) {
    int64_t sum = 77;
    ANSWERS(FORREST_OK, forrest_add(db, T("n"), 3, &sum));
    CHECK(sum == 3);
    ANSWERS(FORREST_OK, forrest_add(db, T("n"), -5, &sum));
    CHECK(sum == -2 && has(db, T("n"), T("\xff\xff\xff\xff\xff\xff\xff\xfe")));
    ANSWERS(FORREST_OK, forrest_add(db, T("n"), 2, NULL));
    CHECK(has(db, T("n"), T("\0\0\0\0\0\0\0\0")));
    ANSWERS(FORREST_OK, forrest_add(db, T("n"), INT64_MAX, NULL));
    sum = 77;
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_add(db, T("n"), 1, &sum));
    CHECK(sum == 0);
    ANSWERS(FORREST_OK, forrest_set(db, T("n"), T("no counter")));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_add(db, T("n"), 1, &sum));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_add(NULL, T("n"), 1, &sum));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_add(db, NULL, 1, 1, &sum));
    ANSWERS(FORREST_LIMIT, forrest_add(db, "n", SIZE_MAX, 1, &sum));
    CHECK(has(db, T("n"), T("no counter")));

    forrest_value *found = JUNK;
    ANSWERS(FORREST_OK, forrest_compare_and_swap(db, T("door"), NULL, FORREST_ABSENT, T("open"), &found));
    CHECK(found == NULL && has(db, T("door"), T("open")));
    ANSWERS(FORREST_MISMATCH, forrest_compare_and_swap(db, T("door"), NULL, FORREST_ABSENT, T("shut"), &found));
    CHECK(found != NULL && is_value(found, "open"));
    ANSWERS(FORREST_MISMATCH, forrest_compare_and_swap(db, T("door"), NULL, 0, T("shut"), NULL)); /* the empty value, not absence */
    CHECK(has(db, T("door"), T("open")));
    ANSWERS(FORREST_OK, forrest_compare_and_swap(db, T("door"), T("open"), NULL, 0, &found));
    CHECK(found == NULL && has(db, T("door"), T("")));
    ANSWERS(FORREST_OK, forrest_compare_and_swap(db, T("door"), NULL, 0, NULL, FORREST_ABSENT, NULL));
    CHECK(has_not(db, T("door")));
    found = JUNK;
    ANSWERS(FORREST_MISMATCH, forrest_compare_and_swap(db, T("door"), T("open"), T("shut"), &found));
    CHECK(found == NULL && has_not(db, T("door")));
    found = JUNK;
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_compare_and_swap(NULL, T("door"), T("open"), T("shut"), &found));
    CHECK(found == NULL);
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_compare_and_swap(db, NULL, 1, T("open"), T("shut"), NULL));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_compare_and_swap(db, T("door"), NULL, 1, T("shut"), NULL));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_compare_and_swap(db, T("door"), T("open"), NULL, 1, NULL));
    ANSWERS(FORREST_LIMIT, forrest_compare_and_swap(db, T("door"), "open", FORREST_ABSENT, T("shut"), NULL));
    ANSWERS(FORREST_LIMIT, forrest_compare_and_swap(db, T("door"), T("open"), "shut", FORREST_ABSENT, NULL));
    ANSWERS(FORREST_OK, forrest_delete(db, T("n")));
}

static void batches_of_all_kinds(forrest_db *db) {
    forrest_batch *batch;
    size_t changes = 77, bytes = 77;
    ANSWERS(FORREST_OK, forrest_batch_create(&batch));
    ANSWERS(FORREST_OK, forrest_batch_size(batch, &changes, &bytes));
    CHECK(changes == 0 && bytes == 0);
    ANSWERS(FORREST_OK, forrest_set(db, T("b"), T("1")));
    ANSWERS(FORREST_OK, forrest_set(db, T("d"), T("2")));
    ANSWERS(FORREST_OK, forrest_batch_delete_range(batch, T("c"), NULL, FORREST_ABSENT));
    ANSWERS(FORREST_OK, forrest_batch_add(batch, T("n"), 7));
    ANSWERS(FORREST_OK, forrest_batch_add(batch, T("n"), -6));
    ANSWERS(FORREST_OK, forrest_batch_compare_and_swap(batch, T("b"), T("1"), T("2")));
    ANSWERS(FORREST_OK, forrest_batch_compare_and_swap(batch, T("e"), NULL, FORREST_ABSENT, T("5")));
    ANSWERS(FORREST_OK, forrest_batch_size(batch, &changes, &bytes));
    CHECK(changes == 5 && bytes == 1 + 1 + 1 + 3 + 2);
    ANSWERS(FORREST_OK, forrest_write(db, batch));
    CHECK(has(db, T("b"), T("2")) && has_not(db, T("d")) && has(db, T("e"), T("5")));
    CHECK(has(db, T("n"), T("\0\0\0\0\0\0\0\1")));
    /* Written again: b is no longer 1, so nothing is changed. */
    forrest_value *found = JUNK;
    ANSWERS(FORREST_CONDITION_FAILED, forrest_write(db, batch));
    CHECK(forrest_error_op() == 3 && strstr(forrest_error_message(), "operation 3 of the batch") != NULL);
    ANSWERS(FORREST_CONDITION_FAILED, forrest_write_with(db, batch, FORREST_DURABILITY_MEMORY));
    ANSWERS(FORREST_MISMATCH, forrest_try_write(db, batch, FORREST_DURABILITY_MEMORY, NULL, NULL));
    ANSWERS(FORREST_MISMATCH, forrest_try_write(db, batch, FORREST_DURABILITY_DEFAULT, &changes, &found));
    CHECK(changes == 3 && is_value(found, "2"));
    CHECK(has(db, T("n"), T("\0\0\0\0\0\0\0\1")) && has(db, T("e"), T("5")));

    /* The pairs of a range, compared before all changes. */
    const void *pairs[] = {"b", "e", "2", "5"};
    const size_t ones[] = {1, 1};
    ANSWERS(FORREST_OK, forrest_batch_clear(batch));
    ANSWERS(FORREST_OK, forrest_batch_compare_range(batch, T("b"), T("f"), pairs, ones, pairs + 2, ones, 2));
    ANSWERS(FORREST_OK, forrest_batch_compare_range(batch, T("f"), T("g"), NULL, NULL, NULL, NULL, 0));
    ANSWERS(FORREST_OK, forrest_batch_set(batch, T("ee"), T("6")));
    ANSWERS(FORREST_OK, forrest_write(db, batch));
    CHECK(has(db, T("ee"), T("6")));
    size_t differs = 77;
    forrest_value *other;
    ANSWERS(FORREST_MISMATCH, forrest_try_write(db, batch, FORREST_DURABILITY_DEFAULT, &differs, &other));
    const void *key;
    size_t key_bytes;
    ANSWERS(FORREST_OK, forrest_value_data(other, &key, &key_bytes));
    CHECK(differs == 0 && key_bytes == 2 && memcmp(key, "ee", 2) == 0);
    forrest_value_release(other);
    ANSWERS(FORREST_CONDITION_FAILED, forrest_write(db, batch));
    ANSWERS(FORREST_OK, forrest_delete(db, T("ee")));
    ANSWERS(FORREST_OK, forrest_batch_clear(batch));
    ANSWERS(FORREST_OK, forrest_batch_set(batch, T("ee"), T("6")));
    ANSWERS(FORREST_OK, forrest_batch_compare_range(batch, T("b"), NULL, 0, pairs, ones, pairs + 2, ones, 2));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_write(db, batch)); /* it does not stand before all changes */

    ANSWERS(FORREST_OK, forrest_batch_clear(batch));
    ANSWERS(FORREST_OK, forrest_batch_set(batch, T("s"), T("survives")));
    ANSWERS(can & FORREST_CAN_SYNC ? FORREST_OK : FORREST_UNSUPPORTED,
            forrest_try_write(db, batch, FORREST_DURABILITY_SYNC, &changes, &found));
    CHECK(changes == 0 && found == NULL);
    CHECK(can & FORREST_CAN_SYNC ? has(db, T("s"), T("survives")) : has_not(db, T("s")));
    if (can & FORREST_CAN_SYNC)
        ANSWERS(FORREST_OK, forrest_write_with(db, batch, FORREST_DURABILITY_BUFFERED));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_write_with(db, batch, 4));
    CHECK(forrest_error_op() == FORREST_ABSENT);
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_write_with(NULL, batch, 0));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_write_with(db, NULL, 0));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_try_write(db, batch, 4, NULL, NULL));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_try_write(NULL, batch, 0, NULL, NULL));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_try_write(db, NULL, 0, NULL, NULL));

    /* An addition to a value that is not a counter; the error names its number. */
    ANSWERS(FORREST_OK, forrest_batch_clear(batch));
    ANSWERS(FORREST_OK, forrest_batch_set(batch, T("z"), T("1")));
    ANSWERS(FORREST_OK, forrest_batch_add(batch, T("z"), 1));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_write(db, batch));
    CHECK(forrest_error_op() == 1 && strstr(forrest_error_message(), "operation 1") != NULL);
    CHECK(has_not(db, T("z")));

    ANSWERS(FORREST_OK, forrest_batch_clear(batch));
    ANSWERS(FORREST_LIMIT, forrest_batch_add(batch, "n", 65536, 1));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_batch_add(batch, NULL, 1, 1));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_batch_add(NULL, T("n"), 1));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_batch_delete_range(NULL, T("a"), T("b")));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_batch_delete_range(batch, NULL, 1, T("b")));
    ANSWERS(FORREST_LIMIT, forrest_batch_delete_range(batch, T("a"), "b", FORREST_ABSENT));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_batch_compare_and_swap(NULL, T("a"), T("b"), T("c")));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_batch_compare_and_swap(batch, T("a"), NULL, 1, T("c")));
    ANSWERS(FORREST_LIMIT, forrest_batch_compare_and_swap(batch, T("a"), T("b"), "c", FORREST_ABSENT));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_batch_compare_range(NULL, T("a"), T("b"), NULL, NULL, NULL, NULL, 0));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_batch_compare_range(batch, NULL, 1, T("b"), NULL, NULL, NULL, NULL, 0));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_batch_compare_range(batch, T("a"), T("b"), pairs, NULL, pairs, ones, 1));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_batch_compare_range(batch, T("a"), T("b"), pairs, ones, NULL, ones, 1));
    ANSWERS(FORREST_LIMIT, forrest_batch_compare_range(batch, T("a"), "b", FORREST_ABSENT, pairs, ones, pairs, ones, 1));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_batch_size(NULL, &changes, &bytes));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_batch_size(batch, NULL, &bytes));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_batch_size(batch, &changes, NULL));
    ANSWERS(FORREST_OK, forrest_batch_size(batch, &changes, &bytes));
    CHECK(changes == 0); /* a change that was refused is not in it */
    ANSWERS(FORREST_OK, forrest_batch_destroy(batch));
    ANSWERS(FORREST_OK, forrest_delete_range(db, NULL, 0, NULL, FORREST_ABSENT));
}

static void skipping_and_parking(forrest_db *db) {
    forrest_iter *iter;
    for (char key = 'a'; key <= 'j'; key++)
        ANSWERS(FORREST_OK, forrest_set(db, &key, 1, &key, 1));
    ANSWERS(FORREST_OK, forrest_iter_create(db, &iter));
    ANSWERS(FORREST_OK, forrest_iter_park(iter));
    ANSWERS(FORREST_OK, forrest_iter_first(iter));
    ANSWERS(FORREST_OK, forrest_iter_skip(iter, 4));
    CHECK(is_at(iter, "e", "e"));
    ANSWERS(FORREST_OK, forrest_iter_park(iter));
    CHECK(is_at(iter, "e", "e"));
    ANSWERS(FORREST_OK, forrest_iter_skip(iter, 0));
    CHECK(is_at(iter, "e", "e"));
    ANSWERS(FORREST_OK, forrest_iter_next(iter));
    CHECK(is_at(iter, "f", "f"));
    ANSWERS(FORREST_NOT_FOUND, forrest_iter_skip(iter, UINT64_MAX));
    CHECK(is_nowhere(iter));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_iter_skip(NULL, 1));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_iter_park(NULL));
    ANSWERS(FORREST_OK, forrest_iter_destroy(iter));
    ANSWERS(FORREST_OK, forrest_delete_range(db, NULL, 0, NULL, FORREST_ABSENT));
}

static void keyspaces(forrest_db *db) {
    forrest_db *people = JUNK, *again, *same;
    char **names;
    size_t count;
    ANSWERS(FORREST_OK, forrest_keyspaces(db, &names, &count));
    CHECK(count == 1 && strcmp(names[0], "default") == 0);
    forrest_free(names);
    ANSWERS(FORREST_OK, forrest_keyspace(db, "default", &same));
    ANSWERS(FORREST_OK, forrest_set(same, T("key"), T("value")));
    CHECK(has(db, T("key"), T("value")));
    ANSWERS(FORREST_OK, forrest_close(same));
    ANSWERS(FORREST_OK, forrest_delete(db, T("key")));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_keyspace(NULL, "people", &people));
    CHECK(people == NULL);
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_keyspace(db, NULL, &people));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_keyspace(db, "people", NULL));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_keyspace(db, "", &people));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_keyspace(db, "\xff", &people));
    names = JUNK;
    count = 77;
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_keyspaces(NULL, &names, &count));
    CHECK(names == NULL && count == 0);
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_keyspaces(db, NULL, &count));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_keyspaces(db, &names, NULL));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_drop_keyspace(NULL, "people"));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_drop_keyspace(db, NULL));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_drop_keyspace(db, "default"));
    if (!(can & FORREST_CAN_KEYSPACES)) {
        ANSWERS(FORREST_UNSUPPORTED, forrest_keyspace(db, "people", &people));
        CHECK(people == NULL);
        return;
    }
    char name[300];
    memset(name, 'n', sizeof name);
    name[256] = 0;
    ANSWERS(FORREST_LIMIT, forrest_keyspace(db, name, &people));
    name[255] = 0;
    ANSWERS(FORREST_OK, forrest_keyspace(db, name, &people));
    ANSWERS(FORREST_OK, forrest_close(people));
    ANSWERS(FORREST_OK, forrest_drop_keyspace(db, name));

    ANSWERS(FORREST_OK, forrest_keyspace(db, "people", &people));
    ANSWERS(FORREST_OK, forrest_set(people, T("ada"), T("1815")));
    CHECK(has(people, T("ada"), T("1815")) && has_not(db, T("ada")));
    ANSWERS(FORREST_OK, forrest_keyspaces(people, &names, &count));
    CHECK(count == 2 && strcmp(names[0], "default") == 0 && strcmp(names[1], "people") == 0);
    forrest_free(names);

    /* A batch on several keyspaces. Changes without a keyspace get that of the handle. */
    forrest_batch *batch;
    ANSWERS(FORREST_OK, forrest_batch_create(&batch));
    ANSWERS(FORREST_OK, forrest_batch_set(batch, T("emmy"), T("1")));
    ANSWERS(FORREST_OK, forrest_batch_on(batch, people));
    ANSWERS(FORREST_OK, forrest_batch_set(batch, T("emmy"), T("1882")));
    ANSWERS(FORREST_OK, forrest_batch_on(batch, NULL));
    ANSWERS(FORREST_OK, forrest_batch_set(batch, T("last"), T("2")));
    ANSWERS(FORREST_OK, forrest_write(db, batch));
    CHECK(has(db, T("emmy"), T("1")) && has(people, T("emmy"), T("1882")) && has(db, T("last"), T("2")));
    CHECK(has_not(people, T("last")));
    ANSWERS(FORREST_OK, forrest_write(people, batch));
    CHECK(has(people, T("last"), T("2")) && has(people, T("emmy"), T("1882")));
    ANSWERS(FORREST_OK, forrest_batch_clear(batch));
    ANSWERS(FORREST_OK, forrest_batch_on(batch, people));
    ANSWERS(FORREST_OK, forrest_batch_clear(batch)); /* resets the keyspace, too */
    ANSWERS(FORREST_OK, forrest_batch_set(batch, T("here"), T("3")));
    ANSWERS(FORREST_OK, forrest_write(db, batch));
    CHECK(has(db, T("here"), T("3")) && has_not(people, T("here")));
    forrest_db *other;
    ANSWERS(FORREST_OK, forrest_open("memory:", &other));
    ANSWERS(FORREST_OK, forrest_batch_on(batch, other));
    ANSWERS(FORREST_OK, forrest_batch_set(batch, T("there"), T("4")));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_write(db, batch)); /* the keyspace belongs to another store */
    ANSWERS(FORREST_OK, forrest_close(other));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_batch_on(NULL, people));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_batch_on(batch, other));
    ANSWERS(FORREST_OK, forrest_batch_destroy(batch));

    /* The handle of a keyspace keeps its store open. */
    ANSWERS(FORREST_OK, forrest_keyspace(people, "people", &again));
    ANSWERS(FORREST_OK, forrest_delete_range(db, NULL, 0, NULL, FORREST_ABSENT));
    CHECK(has(again, T("ada"), T("1815")));
    ANSWERS(FORREST_OK, forrest_drop_keyspace(again, "people"));
    ANSWERS(FORREST_NOT_FOUND, forrest_drop_keyspace(db, "people"));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_set(people, T("ada"), T("1816")));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_contains(again, T("ada")));
    ANSWERS(FORREST_OK, forrest_close(again));
    ANSWERS(FORREST_OK, forrest_keyspace(db, "people", &again)); /* a new keyspace of that name */
    CHECK(has_not(again, T("ada")));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_set(people, T("ada"), T("1816")));
    ANSWERS(FORREST_OK, forrest_close(people));
    ANSWERS(FORREST_OK, forrest_close(again));
    ANSWERS(FORREST_OK, forrest_drop_keyspace(db, "people"));
}

/* Sets a key for an hour, and removes it, again and again. */
static void *set_and_remove(void *db) {
    for (int at = 0; at < 5000; at++) {
        CHECK(forrest_set_with_ttl(db, T("brief"), T("value"), 3600000) == FORREST_OK);
        CHECK(forrest_delete(db, T("brief")) == FORREST_OK);
    }
    return NULL;
}

/* The key is not there, or its value expires: it never stays. */
static void expiring(forrest_db *db) {
    if (!(can & FORREST_CAN_TTL))
        return;
    uint64_t expires_ms = 1;
    ANSWERS(FORREST_NOT_FOUND, forrest_expires(db, T("brief"), &expires_ms));
    ANSWERS(FORREST_OK, forrest_set(db, T("long"), T("value")));
    ANSWERS(FORREST_OK, forrest_expires(db, T("long"), &expires_ms));
    CHECK(expires_ms == 0);
    ANSWERS(FORREST_OK, forrest_delete(db, T("long")));
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, set_and_remove, db) == 0);
    for (int at = 0; at < 5000; at++) {
        int32_t code = forrest_expires(db, T("brief"), &expires_ms);
        CHECK(code == FORREST_NOT_FOUND || (code == FORREST_OK && expires_ms > 0));
    }
    CHECK(pthread_join(thread, NULL) == 0);
}

static void snapshots(forrest_db *db) {
    forrest_db *snapshot = JUNK, *people, *past;
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_snapshot(NULL, &snapshot));
    CHECK(snapshot == NULL);
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_snapshot(db, NULL));
    if (!(can & FORREST_CAN_SNAPSHOT)) {
        ANSWERS(FORREST_UNSUPPORTED, forrest_snapshot(db, &snapshot));
        CHECK(snapshot == NULL);
        return;
    }
    ANSWERS(FORREST_OK, forrest_keyspace(db, "people", &people));
    ANSWERS(FORREST_OK, forrest_set(people, T("ada"), T("1815")));
    ANSWERS(FORREST_OK, forrest_set(db, T("a"), T("old")));
    ANSWERS(FORREST_OK, forrest_set(db, T("b"), T("gone")));
    ANSWERS(FORREST_OK, forrest_snapshot(db, &snapshot));
    ANSWERS(FORREST_OK, forrest_set(db, T("a"), T("new")));
    ANSWERS(FORREST_OK, forrest_delete(db, T("b")));
    ANSWERS(FORREST_OK, forrest_set(db, T("c"), T("came")));

    CHECK(has(snapshot, T("a"), T("old")) && has(snapshot, T("b"), T("gone")) && has_not(snapshot, T("c")));
    CHECK(has(db, T("a"), T("new")) && has_not(db, T("b")));
    uint64_t keys;
    ANSWERS(FORREST_OK, forrest_count(snapshot, NULL, 0, NULL, FORREST_ABSENT, &keys));
    CHECK(keys == 2);
    forrest_iter *iter;
    ANSWERS(FORREST_OK, forrest_iter_create(snapshot, &iter));
    ANSWERS(FORREST_OK, forrest_iter_last(iter));
    CHECK(is_at(iter, "b", "gone"));
    ANSWERS(FORREST_OK, forrest_iter_prev(iter));
    CHECK(is_at(iter, "a", "old"));
    ANSWERS(FORREST_NOT_FOUND, forrest_iter_prev(iter));

    /* Its other keyspaces, and one that was created later. */
    ANSWERS(FORREST_OK, forrest_drop_keyspace(db, "people"));
    ANSWERS(FORREST_OK, forrest_keyspace(snapshot, "people", &past));
    CHECK(has(past, T("ada"), T("1815")));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_set(past, T("ada"), T("1816")));
    ANSWERS(FORREST_OK, forrest_close(past));
    ANSWERS(FORREST_OK, forrest_keyspace(snapshot, "later", &past));
    CHECK(has_not(past, T("ada")));
    ANSWERS(FORREST_OK, forrest_close(past));
    char **names;
    size_t count;
    ANSWERS(FORREST_OK, forrest_keyspaces(snapshot, &names, &count));
    CHECK(count == 2 && strcmp(names[1], "people") == 0);
    forrest_free(names);

    /* A snapshot is read-only. */
    forrest_batch *batch;
    forrest_stats stats;
    ANSWERS(FORREST_OK, forrest_batch_create(&batch));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_set(snapshot, T("a"), T("newer")));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_delete(snapshot, T("a")));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_add(snapshot, T("a"), 1, NULL));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_delete_range(snapshot, T("a"), T("z")));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_compare_and_swap(snapshot, T("a"), T("old"), T("newer"), NULL));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_write(snapshot, batch));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_batch_on(batch, snapshot));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_snapshot(snapshot, &past));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_drop_keyspace(snapshot, "people"));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_sync(snapshot));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_get_stats(snapshot, &stats, sizeof stats));
    ANSWERS(FORREST_OK, forrest_batch_destroy(batch));

    ANSWERS(FORREST_OK, forrest_get_stats(db, &stats, sizeof stats));
    CHECK(stats.snapshots >= 1);
    ANSWERS(FORREST_OK, forrest_close(snapshot));
    ANSWERS(FORREST_OK, forrest_iter_first(iter)); /* the iterator outlives the handle */
    CHECK(is_at(iter, "a", "old"));
    ANSWERS(FORREST_OK, forrest_iter_destroy(iter));
    ANSWERS(FORREST_OK, forrest_close(people));
    ANSWERS(FORREST_OK, forrest_get_stats(db, &stats, sizeof stats));
    CHECK(stats.snapshots == 0);
    ANSWERS(FORREST_OK, forrest_delete_range(db, NULL, 0, NULL, FORREST_ABSENT));
}

/* A checkpoint has the store's content, and both change independently. */
static void a_checkpoint(forrest_db *db) {
    char directory[] = "/tmp/forrest-checkpoint-XXXXXX", path[sizeof directory + 5], command[sizeof directory + 7];
    CHECK(mkdtemp(directory) != NULL);
    snprintf(path, sizeof path, "%s/copy", directory);
    snprintf(command, sizeof command, "rm -r %s", directory);
    ANSWERS(FORREST_OK, forrest_checkpoint(db, path));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_checkpoint(db, path)); /* the path exists */
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_checkpoint(db, "memory:"));
    ANSWERS(FORREST_IO, forrest_checkpoint(db, "/nowhere/at/all"));
    forrest_db *copy;
    ANSWERS(FORREST_OK, forrest_open(path, &copy));
    CHECK(has(copy, T("key"), T("value")));
    ANSWERS(FORREST_OK, forrest_set(copy, T("key"), T("other")));
    CHECK(has(db, T("key"), T("value")));
    ANSWERS(FORREST_OK, forrest_close(copy));
    CHECK(system(command) == 0);
}

static void the_store_as_a_whole(forrest_db *db) {
    ANSWERS(FORREST_OK, forrest_set(db, T("key"), T("value")));
    ANSWERS(FORREST_OK, forrest_sync(db));
    ANSWERS(can & FORREST_CAN_VERIFY ? FORREST_OK : FORREST_UNSUPPORTED, forrest_verify(db));
    ANSWERS(FORREST_OK, forrest_flush(db));
    ANSWERS(FORREST_OK, forrest_trim(db));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_trim(NULL));
    ANSWERS(FORREST_OK, forrest_settle(db));
    ANSWERS(FORREST_OK, forrest_resume(db));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_resume(NULL));
    ANSWERS(can & FORREST_CAN_COMPACT ? FORREST_OK : FORREST_UNSUPPORTED, forrest_compact(db));
    ANSWERS(can & FORREST_CAN_COMPACT ? FORREST_OK : FORREST_UNSUPPORTED,
            forrest_compact_range(db, T("key"), NULL, 0));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_compact_range(NULL, T("a"), T("b")));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_compact_range(db, NULL, 1, T("b")));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_flush(NULL));

    static const int32_t ON_DISK[] = {FORREST_MEMTABLE_BYTES, FORREST_CACHE_BYTES, FORREST_TABLE_BYTES,
                                      FORREST_OPEN_FILES,     FORREST_WAIT_MS,     FORREST_BACKGROUND_BYTES_PER_SECOND};
    for (size_t at = 0; at < sizeof ON_DISK / sizeof ON_DISK[0]; at++)
        ANSWERS(can & FORREST_CAN_COMPACT ? FORREST_OK : FORREST_UNSUPPORTED,
                forrest_set_option(db, ON_DISK[at], 1 << 20));
    if (can & FORREST_CAN_COMPACT)
        ANSWERS(FORREST_OK, forrest_set_option(db, FORREST_BACKGROUND_BYTES_PER_SECOND, 0));
    ANSWERS(FORREST_OK, forrest_set_option(db, FORREST_BATCH_OPS_MAX, 1 << 20));
    ANSWERS(FORREST_OK, forrest_set_option(db, FORREST_BATCH_BYTES_MAX, 1 << 20));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_set_option(db, FORREST_BATCH_OPS_MAX, 0));
    ANSWERS(can & FORREST_CAN_COMPACT ? FORREST_OK : FORREST_UNSUPPORTED, forrest_set_option(db, FORREST_WORKERS, 1));
    ANSWERS(can & FORREST_CAN_COMPACT ? FORREST_OK : FORREST_UNSUPPORTED,
            forrest_set_option(db, FORREST_MEMORY_BYTES, 64 << 20));
    if (can & FORREST_CAN_COMPACT) {
        ANSWERS(FORREST_INVALID_ARGUMENT, forrest_set_option(db, FORREST_MEMORY_BYTES, 1 << 20));
        CHECK(strstr(forrest_error_message(), "memtable_bytes (1048576)") != NULL);
    }
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_set_option(db, FORREST_TAGS, 1));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_set_option(NULL, FORREST_BATCH_OPS_MAX, 1));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_settle(NULL));
    if (can & FORREST_CAN_CHECKPOINT)
        a_checkpoint(db);
    else
        ANSWERS(FORREST_UNSUPPORTED, forrest_checkpoint(db, "/nowhere/at/all"));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_sync(NULL));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_verify(NULL));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_compact(NULL));
    ANSWERS(FORREST_OK, forrest_refresh(db));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_refresh(NULL));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_checkpoint(NULL, "/nowhere/at/all"));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_checkpoint(db, NULL));

    /* A program that was compiled for a later library, and one for an earlier one. */
    struct {
        forrest_stats known;
        uint64_t later[2];
    } stats;
    memset(&stats, 0x77, sizeof stats);
    ANSWERS(FORREST_OK, forrest_get_stats(db, &stats.known, sizeof stats));
    CHECK(stats.known.keys == 1 && stats.known.keyspaces == 1 && stats.known.snapshots == 0);
    CHECK(stats.later[0] == 0 && stats.later[1] == 0);
    CHECK(can & FORREST_CAN_COMPACT ? stats.known.tables == 1 && stats.known.table_bytes > 0 : stats.known.tables == 0);
    CHECK(stats.known.table_plain_bytes == stats.known.table_bytes);
    CHECK(stats.known.table_live_bytes == stats.known.table_bytes);
    CHECK(stats.known.value_log_bytes == 0 && stats.known.value_log_live_bytes == 0 && stats.known.expiring == 0);
    memset(&stats, 0x77, sizeof stats);
    ANSWERS(FORREST_OK, forrest_get_stats(db, &stats.known, sizeof stats.known.keys));
    CHECK(stats.known.keys == 1 && stats.known.keyspaces == 0x7777777777777777);
    ANSWERS(FORREST_OK, forrest_get_stats(db, &stats.known, 0));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_get_stats(NULL, &stats.known, sizeof stats));
    CHECK(stats.known.keys == 0);
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_get_stats(db, NULL, sizeof stats));

    uint64_t capabilities = 77;
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_capabilities(NULL, &capabilities));
    CHECK(capabilities == 0);
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_capabilities(db, NULL));
    CHECK((can & FORREST_CAN_ITERATE) && (can & FORREST_CAN_BATCH));
}

/* The losses of a salvage. */
struct losses {
    const char *suffix; /* of the names of the damaged files */
    size_t count, most;
    bool bounded;  /* each range has a first key and an end */
    forrest_db *copy; /* the losses are deleted here */
};

static bool note_loss(void *context, const forrest_loss *loss) {
    struct losses *losses = context;
    CHECK(losses->count < losses->most && strcmp(loss->keyspace, "default") == 0 && strlen(loss->reason) > 0);
    CHECK(strcmp(strrchr(loss->file, '.'), losses->suffix) == 0 && loss->start != NULL);
    CHECK(losses->bounded == (loss->start_bytes > 0) && losses->bounded == (loss->end_bytes != FORREST_ABSENT));
    CHECK((loss->end == NULL) == (loss->end_bytes == FORREST_ABSENT));
    if (losses->copy != NULL) /* the range is one for the other functions */
        ANSWERS(FORREST_OK, forrest_delete_range(losses->copy, loss->start, loss->start_bytes, loss->end, loss->end_bytes));
    return ++losses->count < losses->most;
}

/* Counts its calls, and ends the salvage at the one that brings the count to zero. */
static bool count_down(void *context, uint64_t done, uint64_t whole) {
    int *left = context;
    CHECK(whole > 0 && done <= 2 * whole);
    return --*left != 0;
}

static uint64_t pairs_of(const char *path) {
    forrest_db *db;
    uint64_t pairs;
    ANSWERS(FORREST_OK, forrest_open(path, &db));
    ANSWERS(FORREST_OK, forrest_count(db, NULL, 0, NULL, FORREST_ABSENT, &pairs));
    ANSWERS(FORREST_OK, forrest_close(db));
    return pairs;
}

/* The log of a closed store moves to another directory, and back. */
/* What is in memory is read without waiting, and what is only in a table is not. */
static void reading_what_is_cached(void) {
    char directory[] = "/tmp/forrest-cached-XXXXXX";
    CHECK(mkdtemp(directory) != NULL);
    forrest_db *db;
    forrest_value *value = JUNK;
    ANSWERS(FORREST_OK, forrest_open(directory, &db));
    ANSWERS(FORREST_OK, forrest_set(db, T("oak"), T("Quercus")));
    ANSWERS(FORREST_NOT_FOUND, forrest_get_cached(db, T("ash"), &value));
    CHECK(value == NULL);
    ANSWERS(FORREST_OK, forrest_get_cached(db, T("oak"), &value));
    const void *data;
    size_t bytes;
    ANSWERS(FORREST_OK, forrest_value_data(value, &data, &bytes));
    CHECK(bytes == 7 && memcmp(data, "Quercus", 7) == 0);
    forrest_value_release(value);
    ANSWERS(FORREST_OK, forrest_flush(db));
    ANSWERS(FORREST_OK, forrest_close(db));
    ANSWERS(FORREST_OK, forrest_open(directory, &db));
    ANSWERS(FORREST_NOT_CACHED, forrest_get_cached(db, T("oak"), &value));
    CHECK(value == NULL);
    ANSWERS(FORREST_OK, forrest_get(db, T("oak"), &value));
    forrest_value_release(value);
    ANSWERS(FORREST_OK, forrest_get_cached(db, T("oak"), &value));
    forrest_value_release(value);
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_get_cached(db, NULL, 1, &value));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_get_cached(db, T("oak"), NULL));
    ANSWERS(FORREST_LIMIT, forrest_get_cached(db, "oak", SIZE_MAX, &value));
    ANSWERS(FORREST_OK, forrest_close(db));
    char command[sizeof directory + 16];
    snprintf(command, sizeof command, "rm -r %s", directory);
    CHECK(system(command) == 0);
}

static void moving_the_log(void) {
    char directory[] = "/tmp/forrest-log-XXXXXX";
    CHECK(mkdtemp(directory) != NULL);
    char store[sizeof directory + 8], log[sizeof store];
    snprintf(store, sizeof store, "%s/store", directory);
    snprintf(log, sizeof log, "%s/log", directory);
    forrest_db *db;
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_move_log(NULL, log));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_move_log("memory:", log));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_move_log("\xff", log));
    CHECK(forrest_move_log(store, log) != FORREST_OK);
    ANSWERS(FORREST_OK, forrest_open(store, &db));
    ANSWERS(FORREST_OK, forrest_set(db, T("oak"), T("Quercus")));
    ANSWERS(FORREST_BUSY, forrest_move_log(store, log));
    ANSWERS(FORREST_OK, forrest_close(db));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_move_log(store, "llds:log"));
    ANSWERS(FORREST_OK, forrest_move_log(store, log));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_open(store, &db));
    forrest_options *options;
    ANSWERS(FORREST_OK, forrest_options_create(&options));
    ANSWERS(FORREST_OK, forrest_options_set_log_directory(options, log));
    ANSWERS(FORREST_OK, forrest_open_with(store, options, &db));
    CHECK(has(db, T("oak"), T("Quercus")));
    ANSWERS(FORREST_OK, forrest_close(db));
    ANSWERS(FORREST_OK, forrest_options_destroy(options));
    ANSWERS(FORREST_OK, forrest_move_log(store, NULL));
    ANSWERS(FORREST_OK, forrest_open(store, &db));
    CHECK(has(db, T("oak"), T("Quercus")));
    ANSWERS(FORREST_OK, forrest_close(db));
    char command[sizeof directory + 16];
    snprintf(command, sizeof command, "rm -r %s", directory);
    CHECK(system(command) == 0);
}

struct listed {
    uint64_t ids[4];
    size_t count, damaged, most;
};

static bool list_backup(void *context, const forrest_backup *backup) {
    struct listed *const listed = context;
    CHECK(listed->count < listed->most);
    listed->ids[listed->count++] = backup->id;
    listed->damaged += backup->damage != NULL && strlen(backup->damage) > 10 && backup->bytes == 0;
    return listed->count < listed->most;
}

/* An encrypted store opens with its key only, which is replaced. */
static void encrypting(void) {
    char directory[] = "/tmp/forrest-key-XXXXXX";
    CHECK(mkdtemp(directory) != NULL);
    char store[sizeof directory + 8], backups[sizeof directory + 8], to[sizeof directory + 8];
    char command[sizeof directory + 16];
    snprintf(store, sizeof store, "%s/store", directory);
    snprintf(backups, sizeof backups, "%s/backups", directory);
    snprintf(to, sizeof to, "%s/to", directory);
    forrest_backup backup;
    forrest_pruned pruned;
    forrest_salvaged salvaged;
    struct listed listed = {{0}, 0, 0, 4};
    const char *const first = "0123456789abcdef0123456789abcdef", *const second = "the second key, also of 32 bytes";
    forrest_options *options;
    forrest_db *db;
    ANSWERS(FORREST_OK, forrest_options_create(&options));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_options_set_encryption_key(options, first, 31));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_options_set_encryption_key(options, NULL, 0));
    ANSWERS(FORREST_OK, forrest_options_set_encryption_key(options, first, 32));
    ANSWERS(FORREST_UNSUPPORTED, forrest_open_with("memory:", options, &db));
    ANSWERS(FORREST_OK, forrest_open_with(store, options, &db));
    ANSWERS(FORREST_OK, forrest_set(db, T("oak"), T("Quercus")));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_rotate_key(db, second, 33));
    ANSWERS(FORREST_OK, forrest_rotate_key(db, second, 32));
    ANSWERS(FORREST_OK, forrest_rotate_data_key(db));
    ANSWERS(FORREST_OK, forrest_close(db));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_open(store, &db));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_open_with(store, options, &db));
    CHECK(strstr(forrest_error_message(), "wrong key") != NULL);
    ANSWERS(FORREST_OK, forrest_options_set_encryption_key(options, second, 32));
    ANSWERS(FORREST_OK, forrest_open_with(store, options, &db));
    CHECK(has(db, T("oak"), T("Quercus")));
    ANSWERS(FORREST_OK, forrest_backup_create(db, backups, false, NULL, NULL, &backup, sizeof backup));
    ANSWERS(FORREST_OK, forrest_close(db));

    /* The key of the store is that of its backups, and of what is made of them. */
    const char *const keys[] = {first, NULL, second};
    for (size_t at = 0; at < 3; at++) {
        const int32_t code = at == 2 ? FORREST_OK : FORREST_INVALID_ARGUMENT;
        const char *const key = keys[at];
        const size_t bytes = key == NULL ? 0 : 32;
        ANSWERS(code, forrest_backup_list(backups, key, bytes, list_backup, &listed));
        ANSWERS(code, forrest_backup_verify(backups, key, bytes, 0, NULL, NULL, &backup, sizeof backup));
        ANSWERS(code, forrest_backup_prune(backups, key, bytes, FORREST_KEEP_NEWEST, 1, &pruned, sizeof pruned));
        ANSWERS(code, forrest_backup_restore(backups, key, bytes, 0, to, NULL, NULL, &backup, sizeof backup));
        if (code != FORREST_OK)
            ANSWERS(code, forrest_salvage(store, key, bytes, to, NULL, NULL, NULL, &salvaged, sizeof salvaged));
    }
    CHECK(listed.count == 1 && listed.damaged == 0);
    ANSWERS(FORREST_OK, forrest_open_with(to, options, &db));
    CHECK(has(db, T("oak"), T("Quercus")));
    ANSWERS(FORREST_OK, forrest_close(db));
    snprintf(command, sizeof command, "rm -r %s", to);
    CHECK(system(command) == 0);
    ANSWERS(FORREST_OK, forrest_salvage(store, second, 32, to, NULL, NULL, NULL, &salvaged, sizeof salvaged));
    CHECK(salvaged.pairs == 1 && salvaged.lost == 0);
    ANSWERS(FORREST_OK, forrest_open_with(to, options, &db));
    CHECK(has(db, T("oak"), T("Quercus")));
    ANSWERS(FORREST_OK, forrest_close(db));
    ANSWERS(FORREST_OK, forrest_options_destroy(options));
    ANSWERS(FORREST_OK, forrest_open("memory:", &db));
    ANSWERS(FORREST_UNSUPPORTED, forrest_rotate_key(db, first, 32));
    ANSWERS(FORREST_UNSUPPORTED, forrest_rotate_data_key(db));
    ANSWERS(FORREST_OK, forrest_close(db));
    snprintf(command, sizeof command, "rm -r %s", directory);
    CHECK(system(command) == 0);
}

struct heard {
    size_t began, ended, others;
};

static void hear(void *context, const forrest_event *event) {
    struct heard *const heard = context;
    CHECK(strlen(event->text) > 5);
    heard->began += event->kind == FORREST_EVENT_BEGAN && strcmp(event->job, "flush") == 0;
    heard->ended += event->kind == FORREST_EVENT_ENDED && strcmp(event->job, "flush") == 0 && event->bytes > 0;
    heard->others += event->kind > FORREST_EVENT_RESUMED || event->kind < 0;
}

/* A listener hears of a flush, and figures are in a file. */
static void listening(void) {
    char directory[] = "/tmp/forrest-listen-XXXXXX", command[200], text[64] = "";
    CHECK(mkdtemp(directory) != NULL);
    char store[sizeof directory + 8], metrics[sizeof directory + 16];
    snprintf(store, sizeof store, "%s/store", directory);
    snprintf(metrics, sizeof metrics, "%s/metrics.prom", directory);
    struct heard heard = {0, 0, 0};
    forrest_options *options;
    forrest_db *db;
    ANSWERS(FORREST_OK, forrest_options_create(&options));
    ANSWERS(FORREST_OK, forrest_options_set_listener(options, hear, &heard));
    ANSWERS(FORREST_OK, forrest_options_set_metrics_file(options, metrics));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_options_set_metrics_file(options, NULL));
    ANSWERS(FORREST_OK, forrest_open_with(store, options, &db));
    ANSWERS(FORREST_OK, forrest_set(db, T("oak"), T("Quercus")));
    ANSWERS(FORREST_OK, forrest_flush(db));
    FILE *file = fopen(metrics, "r");
    CHECK(file != NULL && fgets(text, sizeof text, file) != NULL && strncmp(text, "# HELP forrest_", 15) == 0);
    CHECK(fclose(file) == 0);
    ANSWERS(FORREST_OK, forrest_close(db));
    CHECK(heard.began == 1 && heard.ended == 1 && heard.others == 0 && access(metrics, F_OK) != 0);
    ANSWERS(FORREST_OK, forrest_options_set_listener(options, NULL, NULL));
    ANSWERS(FORREST_OK, forrest_open_with(store, options, &db));
    ANSWERS(FORREST_OK, forrest_set(db, T("oak"), T("Quercus robur")));
    ANSWERS(FORREST_OK, forrest_flush(db));
    ANSWERS(FORREST_OK, forrest_close(db));
    ANSWERS(FORREST_OK, forrest_options_destroy(options));
    CHECK(heard.began == 1);
    snprintf(command, sizeof command, "rm -r %s", directory);
    CHECK(system(command) == 0);
}

/* Keeps the longest of all operands, and takes none that begins with '!'. */
static bool longest(void *context, forrest_merging *given) {
    __atomic_fetch_add((int *)context, 1, __ATOMIC_RELAXED);
    switch (given->call) {
    case FORREST_MERGE_CHECK_OPERAND:
    case FORREST_MERGE_CHECK_VALUE:
        CHECK(given->key == NULL && given->old == NULL);
        return given->operand_bytes == 0 || *(const char *)given->operand != '!';
    case FORREST_MERGE_APPLY:
    case FORREST_MERGE_COMBINE: {
        const bool stays = given->old != NULL && given->old_bytes >= given->operand_bytes;
        given->result = stays ? given->old : given->operand;
        given->result_bytes = stays ? given->old_bytes : given->operand_bytes;
        return true;
    }
    default:
        return false;
    }
}

/* A merge operator of the program: for single changes, in batches and in transactions, and when the store is opened
 * again. Without it the store does not open. */
static void merging_with_an_operator_of_the_program(bool on_disk) {
    char directory[] = "/tmp/forrest-merge-XXXXXX", command[200];
    CHECK(mkdtemp(directory) != NULL);
    const char *url = on_disk ? directory : "memory:";
    int calls = 0;
    forrest_options *options;
    forrest_db *db;
    forrest_batch *batch;
    forrest_transaction *transaction;
    ANSWERS(FORREST_OK, forrest_options_create(&options));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_options_add_merge_operator(options, "longest", NULL, NULL));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_options_add_merge_operator(options, NULL, longest, &calls));
    ANSWERS(FORREST_OK, forrest_options_add_merge_operator(options, "longest", longest, &calls));
    ANSWERS(FORREST_OK, forrest_open_with(url, options, &db));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_merge(db, T("oak"), T("tree")));
    ANSWERS(FORREST_OK, forrest_set_merge_operator(db, "longest"));
    ANSWERS(FORREST_OK, forrest_merge(db, T("oak"), T("tree")));
    ANSWERS(FORREST_OK, forrest_merge(db, T("empty"), T("")));
    CHECK(has(db, T("oak"), T("tree")) && has(db, T("empty"), T("")) && calls > 0);
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_merge(db, T("oak"), T("!long operand")));
    CHECK(strstr(forrest_error_message(), "\"longest\" refuses an operand of 13 bytes") != NULL);
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_set(db, T("oak"), T("!")));
    ANSWERS(FORREST_OK, forrest_batch_create(&batch));
    ANSWERS(FORREST_OK, forrest_batch_merge(batch, T("oak"), T("Quercus")));
    ANSWERS(FORREST_OK, forrest_batch_merge(batch, T("elm"), T("Ulmus")));
    ANSWERS(FORREST_OK, forrest_write(db, batch));
    CHECK(has(db, T("oak"), T("Quercus")) && has(db, T("elm"), T("Ulmus")));
    ANSWERS(FORREST_OK, forrest_batch_merge(batch, T("elm"), T("!")));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_write(db, batch));
    ANSWERS(FORREST_OK, forrest_batch_destroy(batch));
    ANSWERS(FORREST_OK, forrest_transaction_begin(db, &transaction));
    ANSWERS(FORREST_OK, forrest_transaction_merge(transaction, T("elm"), T("Ulmus glabra")));
    ANSWERS(FORREST_OK, forrest_transaction_merge(transaction, T("elm"), T("short")));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_transaction_merge(transaction, T("elm"), T("!")));
    /* A merge is no read. */
    ANSWERS(FORREST_OK, forrest_merge(db, T("elm"), T("Ulmus g")));
    ANSWERS(FORREST_OK, forrest_transaction_commit(transaction));
    ANSWERS(FORREST_OK, forrest_transaction_destroy(transaction));
    CHECK(has(db, T("elm"), T("Ulmus glabra")));
    if (on_disk) {
        ANSWERS(FORREST_OK, forrest_flush(db));
        ANSWERS(FORREST_OK, forrest_merge(db, T("elm"), T("Ulmus glabra Huds.")));
        ANSWERS(FORREST_OK, forrest_close(db));
        ANSWERS(FORREST_INVALID_ARGUMENT, forrest_open(url, &db));
        CHECK(strstr(forrest_error_message(), "\"longest\"") != NULL);
        ANSWERS(FORREST_OK, forrest_open_with(url, options, &db));
        CHECK(has(db, T("elm"), T("Ulmus glabra Huds.")));
        ANSWERS(FORREST_OK, forrest_compact(db));
        CHECK(has(db, T("elm"), T("Ulmus glabra Huds.")) && has(db, T("oak"), T("Quercus")));
    }
    ANSWERS(FORREST_OK, forrest_close(db));
    /* A name belongs to one operator. */
    ANSWERS(FORREST_OK, forrest_options_add_merge_operator(options, "longest", longest, &calls));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_open_with(url, options, &db));
    ANSWERS(FORREST_OK, forrest_options_destroy(options));
    snprintf(command, sizeof command, "rm -r %s", directory);
    CHECK(system(command) == 0);
}

struct closing {
    forrest_db *db;
    size_t calls;
};

static bool close_meanwhile(void *context, uint64_t done, uint64_t whole) {
    struct closing *const closing = context;
    CHECK(done <= whole);
    if (closing->calls++ == 0)
        ANSWERS(FORREST_OK, forrest_close(closing->db));
    return true;
}

/* A store has two backups. They are listed, verified, restored and removed; damage is found. */
static void backing_up(void) {
    char directory[] = "/tmp/forrest-backup-XXXXXX", command[200];
    CHECK(mkdtemp(directory) != NULL);
    char store[sizeof directory + 8], backups[sizeof store], to[sizeof store];
    snprintf(store, sizeof store, "%s/store", directory);
    snprintf(backups, sizeof backups, "%s/all", directory);
    snprintf(to, sizeof to, "%s/to", directory);
    forrest_db *db;
    forrest_backup first, second, backup;
    int left = 1;
    ANSWERS(FORREST_OK, forrest_open(store, &db));
    ANSWERS(FORREST_OK, forrest_set(db, T("oak"), T("Quercus")));
    ANSWERS(FORREST_OK, forrest_compact(db));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_backup_create(db, store, false, NULL, NULL, &first, sizeof first));
    ANSWERS(FORREST_BUSY, forrest_backup_create(db, backups, false, count_down, &left, &first, sizeof first));
    CHECK(left == 0 && first.id == 0);
    ANSWERS(FORREST_OK, forrest_backup_create(db, backups, false, NULL, NULL, &first, sizeof first));
    CHECK(first.id > 0 && first.time_ms > 1500000000000 && first.new_bytes <= first.bytes && first.files > 0);
    ANSWERS(FORREST_OK, forrest_set(db, T("yew"), T("Taxus")));
    memset(&second, 0x77, sizeof second);
    /* A program that knows only the first field. */
    ANSWERS(FORREST_OK, forrest_backup_create(db, backups, false, NULL, NULL, &second, sizeof second.id));
    CHECK(second.id > first.id && second.bytes == 0x7777777777777777);
    ANSWERS(FORREST_OK, forrest_close(db));

    struct listed listed = {{0}, 0, 0, 4};
    ANSWERS(FORREST_OK, forrest_backup_list(backups, NULL, 0, list_backup, &listed));
    CHECK(listed.count == 2 && listed.ids[0] == first.id && listed.ids[1] == second.id && listed.damaged == 0);
    listed = (struct listed){{0}, 0, 0, 1};
    ANSWERS(FORREST_OK, forrest_backup_list(backups, NULL, 0, list_backup, &listed));
    CHECK(listed.count == 1);
    ANSWERS(FORREST_OK, forrest_backup_verify(backups, NULL, 0, 0, NULL, NULL, &backup, sizeof backup));
    CHECK(backup.id == second.id);
    left = 1;
    ANSWERS(FORREST_BUSY, forrest_backup_verify(backups, NULL, 0, 0, count_down, &left, &backup, sizeof backup));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_backup_verify(backups, NULL, 0, 77, NULL, NULL, &backup, sizeof backup));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_backup_restore(backups, NULL, 0, 0, store, NULL, NULL, &backup, sizeof backup));
    ANSWERS(FORREST_OK, forrest_backup_restore(backups, NULL, 0, first.id, to, NULL, NULL, &backup, sizeof backup));
    CHECK(pairs_of(to) == 1 && backup.bytes == first.bytes);
    ANSWERS(FORREST_OK, forrest_open(to, &db));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_backup_create(db, backups, false, NULL, NULL, &backup, sizeof backup));
    ANSWERS(FORREST_OK, forrest_backup_create(db, backups, true, NULL, NULL, &backup, sizeof backup));
    /* The function that sees the progress may close the handle. The store is closed when the backup is complete. */
    ANSWERS(FORREST_OK, forrest_set(db, T("elm"), T("Ulmus")));
    ANSWERS(FORREST_OK, forrest_compact(db));
    struct closing closing = {db, 0};
    ANSWERS(FORREST_OK, forrest_backup_create(db, backups, false, close_meanwhile, &closing, &backup, sizeof backup));
    CHECK(closing.calls > 0 && backup.id > 0 && pairs_of(to) == 2);
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_close(db));

    forrest_pruned pruned;
    ANSWERS(FORREST_OK, forrest_backup_prune(backups, NULL, 0, FORREST_KEEP_SINCE, first.time_ms, &pruned, sizeof pruned));
    CHECK(pruned.backups == 0);
    ANSWERS(FORREST_OK, forrest_backup_prune(backups, NULL, 0, FORREST_KEEP_NEWEST, 2, &pruned, sizeof pruned));
    CHECK(pruned.backups == 2 && pruned.bytes > 0);
    ANSWERS(FORREST_OK, forrest_backup_prune(backups, NULL, 0, FORREST_KEEP_SINCE, UINT64_MAX, &pruned, sizeof pruned));
    CHECK(pruned.backups == 1);
    snprintf(command, sizeof command, "for file in %s/*.copy; do printf x >$file; done", backups);
    CHECK(system(command) == 0);
    ANSWERS(FORREST_CORRUPT, forrest_backup_verify(backups, NULL, 0, 0, NULL, NULL, &backup, sizeof backup));
    listed = (struct listed){{0}, 0, 0, 4};
    ANSWERS(FORREST_OK, forrest_backup_list(backups, NULL, 0, list_backup, &listed));
    CHECK(listed.count == 1 && listed.damaged == 1);
    snprintf(command, sizeof command, "rm -r %s", directory);
    CHECK(system(command) == 0);
}

/* A store is salvaged when it is whole, when a table is damaged, and when its log is missing. */
static void salvaging(void) {
    enum { KEYS = 3000 };
    char directory[] = "/tmp/forrest-salvage-XXXXXX", command[200];
    CHECK(mkdtemp(directory) != NULL);
    char from[sizeof directory + 8], to[sizeof from], key[16];
    snprintf(from, sizeof from, "%s/store", directory);
    forrest_db *db;
    ANSWERS(FORREST_OK, forrest_open(from, &db));
    for (int at = 0; at < KEYS; at++) {
        snprintf(key, sizeof key, "key%05d", at);
        ANSWERS(FORREST_OK, forrest_set(db, key, strlen(key), T("a value of thirty-one characters")));
    }
    ANSWERS(FORREST_OK, forrest_compact(db));
    ANSWERS(FORREST_OK, forrest_close(db));

    struct {
        forrest_salvaged known;
        uint64_t later[2];
    } salvaged;
    forrest_salvaged *const result = &salvaged.known;
    struct losses losses = {".table", 0, 0, true, NULL};
    memset(&salvaged, 0x77, sizeof salvaged);
    snprintf(to, sizeof to, "%s/whole", directory);
    ANSWERS(FORREST_OK, forrest_salvage(from, NULL, 0, to, NULL, note_loss, &losses, result, sizeof salvaged));
    CHECK(result->keyspaces == 1 && result->pairs == KEYS && result->lost == 0 && salvaged.later[1] == 0);
    CHECK(pairs_of(to) == KEYS);
    /* It is watched, and ended. */
    int left = 1;
    snprintf(to, sizeof to, "%s/ended", directory);
    ANSWERS(FORREST_BUSY, forrest_salvage(from, NULL, 0, to, count_down, NULL, &left, result, sizeof salvaged));
    CHECK(left == 0 && result->pairs == 0 && access(to, F_OK) != 0);
    left = 1 << 30;
    ANSWERS(FORREST_OK, forrest_salvage(from, NULL, 0, to, count_down, NULL, &left, result, sizeof salvaged));
    CHECK(left < 1 << 30 && result->pairs == KEYS);
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_salvage(from, NULL, 0, to, NULL, note_loss, &losses, result, sizeof salvaged));
    CHECK(result->keyspaces == 0 && result->pairs == 0);

    snprintf(command, sizeof command,
             "printf '\\377\\0\\377' | dd of=$(ls -S %s/*.table | head -1) bs=1 seek=6000 conv=notrunc 2>%s/dd", from,
             directory);
    CHECK(system(command) == 0);
    losses.most = KEYS;
    snprintf(to, sizeof to, "%s/rest", directory);
    ANSWERS(FORREST_OK, forrest_salvage(from, NULL, 0, to, NULL, note_loss, &losses, result, sizeof *result));
    CHECK(losses.count > 0 && result->lost == losses.count && result->pairs < KEYS && result->pairs > KEYS / 2);
    CHECK(pairs_of(to) == result->pairs);
    /* A function that wants only the first loss, and none; and a program that knows only the first field. */
    losses = (struct losses){".table", 0, 1, true, NULL};
    ANSWERS(FORREST_OK, forrest_open("memory:", &losses.copy));
    snprintf(to, sizeof to, "%s/one", directory);
    ANSWERS(FORREST_OK, forrest_salvage(from, NULL, 0, to, NULL, note_loss, &losses, result, sizeof *result));
    CHECK(losses.count == 1 && result->lost >= 1);
    ANSWERS(FORREST_OK, forrest_close(losses.copy));
    memset(&salvaged, 0x77, sizeof salvaged);
    snprintf(to, sizeof to, "%s/none", directory);
    ANSWERS(FORREST_OK, forrest_salvage(from, NULL, 0, to, NULL, NULL, NULL, result, sizeof result->keyspaces));
    CHECK(result->keyspaces == 1 && result->pairs == 0x7777777777777777);

    snprintf(from, sizeof from, "%s/none", directory);
    ANSWERS(FORREST_OK, forrest_open(from, &db));
    ANSWERS(FORREST_OK, forrest_set(db, T("key"), T("value")));
    ANSWERS(FORREST_OK, forrest_close(db));
    snprintf(command, sizeof command, "rm %s/*.log", from);
    CHECK(system(command) == 0);
    ANSWERS(FORREST_CORRUPT, forrest_open(from, &db));
    losses = (struct losses){".log", 0, 1, false, NULL};
    snprintf(to, sizeof to, "%s/log", directory);
    ANSWERS(FORREST_OK, forrest_salvage(from, NULL, 0, to, NULL, note_loss, &losses, result, sizeof *result));
    CHECK(losses.count == 1 && result->lost >= 1);

    losses.most = 0;
    snprintf(command, sizeof command, "rm %s/*.manifest", from);
    CHECK(system(command) == 0);
    snprintf(to, sizeof to, "%s/no", directory);
    ANSWERS(FORREST_CORRUPT, forrest_salvage(from, NULL, 0, to, NULL, note_loss, &losses, result, sizeof *result));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_salvage("memory:", NULL, 0, to, NULL, note_loss, &losses, result, sizeof *result));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_salvage(NULL, NULL, 0, to, NULL, note_loss, &losses, result, sizeof *result));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_salvage(from, NULL, 0, NULL, NULL, note_loss, &losses, result, sizeof *result));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_salvage(from, NULL, 0, to, NULL, note_loss, &losses, NULL, sizeof *result));
    ANSWERS(FORREST_IO, forrest_salvage("/nowhere/at/all", NULL, 0, to, NULL, note_loss, &losses, result, sizeof *result));
    snprintf(command, sizeof command, "rm -r %s", directory);
    CHECK(system(command) == 0);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fputs("store URL\n", stderr);
        return 2;
    }
    const char *url = argv[1];
    setting_options(url);
    forrest_db *db;
    ANSWERS(FORREST_OK, forrest_open(url, &db));
    CHECK(!(can & FORREST_CAN_PERSIST) == (strcmp(url, "memory:") == 0 || strncmp(url, "llds-user:", 10) == 0));
    CHECK(!(can & FORREST_CAN_TTL) == (strncmp(url, "llds", 4) == 0));
    CHECK(!(can & FORREST_CAN_SHARE) || strncmp(url, "llds", 4) == 0);
    counting_and_deleting_ranges(db);
    bounds_of_any_length(db, url);
    reading_many(db);
    adding_and_comparing(db);
    scanning(db);
    batches_of_all_kinds(db);
    skipping_and_parking(db);
    keyspaces(db);
    expiring(db);
    snapshots(db);
    the_store_as_a_whole(db);
    merging_with_an_operator_of_the_program(false);
    merging_with_an_operator_of_the_program(true);
    listening();
    encrypting();
    backing_up();
    salvaging();
    reading_what_is_cached();
    moving_the_log();
    ANSWERS(FORREST_OK, forrest_close(db));
    puts("all is as it should be");
    return checks > 0 ? 0 : 1;
}

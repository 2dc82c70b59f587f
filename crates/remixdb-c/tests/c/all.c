/* Uses every function, with valid and invalid arguments: all DIR, where DIR must be a new store. */

#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <pthread.h>
#include <remixdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS 1000
#define THREADS 3

static char buffer[REMIXDB_MAX_BYTES + 8];

static uint32_t name(char *key, int number) {
    return (uint32_t)sprintf(key, "key/%05d", number);
}

static bool is(struct xdb_ref *ref, const char *key, const char *value) {
    uint32_t bytes = 77;
    return remixdb_probe(ref, key, (uint32_t)strlen(key)) &&
           remixdb_get(ref, key, (uint32_t)strlen(key), buffer, &bytes) && bytes == strlen(value) &&
           memcmp(buffer, value, bytes) == 0;
}

static bool is_not(struct xdb_ref *ref, const char *key) {
    uint32_t bytes = 77;
    return !remixdb_probe(ref, key, (uint32_t)strlen(key)) &&
           !remixdb_get(ref, key, (uint32_t)strlen(key), buffer, &bytes) && bytes == 77;
}

static void changing(struct xdb_ref *ref) {
    CHECK(is_not(ref, "oak"));
    CHECK(remixdb_put(ref, "oak", 3, "Quercus", 7) && is(ref, "oak", "Quercus"));
    CHECK(remixdb_put(ref, "oak", 3, "robur", 5) && is(ref, "oak", "robur"));
    CHECK(remixdb_get(ref, "oak", 3, NULL, NULL));
    uint32_t bytes = 77;
    CHECK(remixdb_get(ref, "oak", 3, NULL, &bytes) && bytes == 5);
    CHECK(remixdb_put(ref, "", 0, NULL, 0) && is(ref, "", ""));
    CHECK(remixdb_del(ref, "oak", 3) && is_not(ref, "oak") && remixdb_del(ref, "oak", 3));
    CHECK(remixdb_del(ref, NULL, 0) && is_not(ref, ""));
}

/* Too long keys and values are refused, and nothing is written beyond the end of a buffer. */
static void limits(struct xdb_ref *ref) {
    static char value[REMIXDB_MAX_BYTES + 1];
    memset(value, 'v', sizeof value);
    CHECK(!remixdb_put(ref, "k", 1, value, REMIXDB_MAX_BYTES) && is_not(ref, "k"));
    CHECK(!remixdb_put(ref, "k", 1, value, REMIXDB_MAX_BYTES + 1) && is_not(ref, "k"));
    CHECK(!remixdb_put(ref, "k", 1, value, UINT32_MAX) && is_not(ref, "k"));
    CHECK(!remixdb_put(ref, value, UINT32_MAX, "v", 1));
    CHECK(remixdb_put(ref, "k", 1, value, REMIXDB_MAX_BYTES - 1));
    uint32_t bytes = 77;
    memset(buffer, '.', sizeof buffer);
    CHECK(remixdb_get(ref, "k", 1, buffer, &bytes) && bytes == REMIXDB_MAX_BYTES - 1);
    CHECK(memcmp(buffer, value, bytes) == 0 && buffer[bytes] == '.');
    CHECK(remixdb_put(ref, value, REMIXDB_MAX_BYTES, NULL, 0) && remixdb_probe(ref, value, REMIXDB_MAX_BYTES));
    CHECK(remixdb_del(ref, "k", 1) && remixdb_del(ref, value, REMIXDB_MAX_BYTES));
}

static void misuse(struct xdb *xdb, struct xdb_ref *ref) {
    uint32_t bytes = 77;
    CHECK(remixdb_open(NULL, 16, 16, true) == NULL && remixdb_open_compact(NULL, 16, 16) == NULL);
    CHECK(remixdb_open("/dev/null", 16, 16, true) == NULL && remixdb_open("\xff", 16, 16, true) == NULL);
    CHECK(remixdb_open_with(NULL, NULL, 0) == NULL);
    CHECK(remixdb_ref(NULL) == NULL && remixdb_unref(NULL) == NULL && remixdb_iter_create(NULL) == NULL);
    remixdb_close(NULL);
    CHECK(!remixdb_put(NULL, "k", 1, "v", 1) && !remixdb_del(NULL, "k", 1) && !remixdb_probe(NULL, "k", 1));
    CHECK(!remixdb_get(NULL, "k", 1, buffer, &bytes) && bytes == 77 && !remixdb_sync(NULL));
    CHECK(!remixdb_put(ref, NULL, 1, "v", 1) && !remixdb_put(ref, "k", 1, NULL, 1));
    CHECK(!remixdb_del(ref, NULL, 1) && !remixdb_probe(ref, NULL, 1) && !remixdb_get(ref, NULL, 1, buffer, &bytes));
    remixdb_iter_seek(NULL, "k", 1);
    remixdb_iter_skip1(NULL);
    remixdb_iter_skip(NULL, 1);
    remixdb_iter_park(NULL);
    remixdb_iter_destroy(NULL);
    CHECK(!remixdb_iter_valid(NULL) && !remixdb_iter_peek(NULL, buffer, &bytes, buffer, &bytes));
    struct xdb_ref *second = remixdb_ref(xdb);
    CHECK(second != NULL && remixdb_unref(second) == xdb);
}

/* Opens the store with options: all of them, those of an older header, those of a newer one, and none. */
static void options(const char *dir) {
    const struct remixdb_options all = {.cache_mb = 16, .mt_mb = 16, .no_tags = 1, .workers = 1,
                                        .durability = REMIXDB_DURABILITY_SYNC, .large_values = 4096};
    struct {
        struct remixdb_options options;
        uint64_t later;
    } newer = {{0}, 0};
    for (int at = 0; at < 4; at++) {
        struct xdb *xdb = at == 0   ? remixdb_open_with(dir, &all, sizeof all)
                          : at == 1 ? remixdb_open_with(dir, &all, 2 * sizeof(size_t))
                          : at == 2 ? remixdb_open_with(dir, &newer.options, sizeof newer)
                                    : remixdb_open_with(dir, NULL, 0);
        CHECK(xdb != NULL);
        struct xdb_ref *ref = remixdb_ref(xdb);
        CHECK(is(ref, "key/00042", "00042") && remixdb_put(ref, "key/00042", 9, "00042", 5));
        remixdb_close(remixdb_unref(ref));
    }
#ifdef __linux__
    /* The first processor that this process may use. */
    struct xdb *pinned = NULL;
    for (uint32_t cpu = 0; pinned == NULL && cpu < 1024; cpu++) {
        const struct remixdb_options one = {.worker_cpus_count = 1, .worker_cpus = &cpu};
        pinned = remixdb_open_with(dir, &one, sizeof one);
    }
    CHECK(pinned != NULL);
    remixdb_close(pinned);
#endif
    const uint32_t cpus[] = {99999};
    const struct remixdb_options wrong[] = {{.no_tags = 2}, {.durability = 4}, {.workers = 257}, {.worker_cpus_count = 1},
                                            {.large_values = 63}, {.worker_cpus_count = 1, .worker_cpus = cpus}};
    for (size_t at = 0; at < sizeof wrong / sizeof wrong[0]; at++)
        CHECK(remixdb_open_with(dir, &wrong[at], sizeof wrong[at]) == NULL);
    CHECK(remixdb_open_with(dir, &newer.options, SIZE_MAX) == NULL);
    newer.later = 1;
    CHECK(remixdb_open_with(dir, &newer.options, sizeof newer) == NULL);
}

static void iterating(struct xdb_ref *ref) {
    char key[32], found[REMIXDB_MAX_BYTES];
    uint32_t bytes, value_bytes;
    for (int at = 0; at < KEYS; at++) {
        const uint32_t length = name(key, at);
        CHECK(remixdb_put(ref, key, length, key + 4, length - 4));
    }
    struct xdb_iter *iter = remixdb_iter_create(ref);
    CHECK(iter != NULL && !remixdb_iter_valid(iter) && !remixdb_iter_peek(iter, found, &bytes, NULL, NULL));
    remixdb_iter_seek(iter, NULL, 0);
    for (int at = 0; at < KEYS; at++, remixdb_iter_skip1(iter)) {
        const uint32_t length = name(key, at);
        CHECK(remixdb_iter_valid(iter) && remixdb_iter_peek(iter, found, &bytes, buffer, &value_bytes));
        CHECK(bytes == length && memcmp(found, key, length) == 0);
        CHECK(value_bytes == length - 4 && memcmp(buffer, key + 4, value_bytes) == 0);
        if (at % 100 == 0)
            remixdb_iter_park(iter);
    }
    CHECK(!remixdb_iter_valid(iter));
    remixdb_iter_seek(iter, "key/00500", 9);
    remixdb_iter_skip(iter, 42);
    CHECK(remixdb_iter_peek(iter, found, NULL, NULL, NULL) && memcmp(found, "key/00542", 9) == 0);
    CHECK(remixdb_iter_peek(iter, NULL, &bytes, NULL, &value_bytes) && bytes == 9 && value_bytes == 5);
    remixdb_iter_seek(iter, "key/005420", 10);
    CHECK(remixdb_iter_peek(iter, found, NULL, NULL, NULL) && memcmp(found, "key/00543", 9) == 0);
    remixdb_iter_skip(iter, KEYS);
    CHECK(!remixdb_iter_valid(iter));
    remixdb_iter_seek(iter, NULL, 1); /* no move */
    CHECK(!remixdb_iter_valid(iter));
    remixdb_iter_destroy(iter);
}

static struct xdb *shared;

static void *work(void *argument) {
    struct xdb_ref *ref = remixdb_ref(shared);
    for (int at = 0; at < KEYS; at++) {
        char key[64];
        sprintf(key, "thread/%d/%d", *(int *)argument, at);
        uint32_t bytes = 0;
        char value[64];
        CHECK(remixdb_put(ref, key, (uint32_t)strlen(key), key, (uint32_t)strlen(key)));
        CHECK(remixdb_get(ref, key, (uint32_t)strlen(key), value, &bytes) && bytes == strlen(key));
    }
    CHECK(remixdb_unref(ref) == shared);
    return NULL;
}

static void threads(struct xdb *xdb) {
    pthread_t threads[THREADS];
    int numbers[THREADS];
    shared = xdb;
    for (int at = 0; at < THREADS; at++) {
        numbers[at] = at;
        CHECK(pthread_create(&threads[at], NULL, work, &numbers[at]) == 0);
    }
    for (int at = 0; at < THREADS; at++)
        CHECK(pthread_join(threads[at], NULL) == 0);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fputs("all DIR\n", stderr);
        return 2;
    }
    struct xdb *xdb = remixdb_open(argv[1], 16, 16, true);
    CHECK(xdb != NULL);
    CHECK(remixdb_open(argv[1], 16, 16, true) == NULL); /* it is open */
    struct xdb_ref *ref = remixdb_ref(xdb);
    changing(ref);
    limits(ref);
    misuse(xdb, ref);
    iterating(ref);
    threads(xdb);
    CHECK(remixdb_sync(ref));
    CHECK(remixdb_unref(ref) == xdb);
    remixdb_close(xdb);

    /* Opened the other way, the store has all of it. */
    CHECK((xdb = remixdb_open_compact(argv[1], 0, 0)) != NULL);
    ref = remixdb_ref(xdb);
    CHECK(is(ref, "key/00042", "00042") && is(ref, "thread/1/999", "thread/1/999") && is_not(ref, "oak"));
    remixdb_close(remixdb_unref(ref));
    options(argv[1]);
    puts("all is as it should be");
    return 0;
}

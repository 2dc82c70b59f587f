/* Threads put, delete, get and scan at random, and check the results: stress DIR [THREADS [OPERATIONS [KEYS [SEED]]]].
   OPERATIONS and KEYS are per thread. DIR is a new store, or that of an earlier run, which is emptied.

   Each thread has its own keys, interleaved with those of the others, and knows for each key the last version, or that
   it was deleted. So it can check every result for them, including scans: a scan must return each key that exists all
   the while, once and in order. For the keys of other threads, it checks that a value is complete and belongs to its
   key. At the end the store is closed, opened in the other way, and checked key by key. After the first wrong result
   the program ends with exit code 1. */

#define _POSIX_C_SOURCE 200809L
#include "pairs.h"
#include <pthread.h>

#define SCAN_MAX 200

static struct xdb *xdb;
static uint64_t threads = 4, operations = 200000, keys = 10000, seed = 1;

struct worker {
    uint64_t number, random, puts;
    uint64_t *versions; /* of each key: the last version, 0 if it is not there */
    pthread_t thread;
};

/* Checks one of the worker's own keys. */
static void check(struct xdb_ref *ref, const struct worker *worker, uint64_t place) {
    char key[KEY_BYTES], value[REMIXDB_MAX_BYTES];
    uint32_t bytes = 0;
    make_key(key, place, worker->number);
    const uint64_t expected = worker->versions[place];
    const bool found = remixdb_get(ref, key, KEY_BYTES, value, &bytes);
    if (found != (expected != 0))
        fail(found ? "a deleted key is there" : "a key is not there", key, expected);
    if (found && version_of(key, value, bytes) != expected)
        fail("a key has another version", key, expected);
    if (remixdb_probe(ref, key, KEY_BYTES) != found)
        fail("probe and get differ", key, expected);
}

/* Checks that the worker's own keys from a place on and before `end`, or all if it is null, are not there. Returns the
   place after them. */
static uint64_t none_before(const struct worker *worker, uint64_t place, const char *end) {
    char own[KEY_BYTES];
    for (; place < keys; place++) {
        make_key(own, place, worker->number);
        if (end != NULL && memcmp(own, end, KEY_BYTES) >= 0)
            break;
        if (worker->versions[place] != 0)
            fail("a scan leaves out a key", own, worker->versions[place]);
    }
    return place;
}

/* Walks over `count` keys. */
static void scan(struct xdb_ref *ref, const struct worker *worker, uint64_t place, uint64_t count) {
    char key[REMIXDB_MAX_BYTES], value[REMIXDB_MAX_BYTES], before[KEY_BYTES], own[KEY_BYTES];
    uint32_t key_bytes, value_bytes;
    uint64_t at = 0;
    struct xdb_iter *iter = remixdb_iter_create(ref);
    make_key(before, place, 0);
    for (remixdb_iter_seek(iter, before, KEY_BYTES); at < count && remixdb_iter_valid(iter); remixdb_iter_skip1(iter), at++) {
        if (!remixdb_iter_peek(iter, key, &key_bytes, value, &value_bytes) || key_bytes != KEY_BYTES)
            fail("a scan finds a pair that was never put, after", before, 0);
        if (memcmp(key, before, KEY_BYTES) < (at == 0 ? 0 : 1))
            fail("a scan goes back", key, 0);
        memcpy(before, key, KEY_BYTES);
        const uint64_t version = version_of(key, value, value_bytes);
        place = none_before(worker, place, key);
        make_key(own, place, worker->number);
        if (place < keys && memcmp(own, key, KEY_BYTES) == 0 && worker->versions[place++] != version)
            fail("a scan finds another version", key, version);
        if (at % 64 == 63)
            remixdb_iter_park(iter);
    }
    if (!remixdb_iter_valid(iter))
        none_before(worker, place, NULL);
    remixdb_iter_destroy(iter);
}

static void *work(void *argument) {
    struct worker *worker = argument;
    struct xdb_ref *ref = remixdb_ref(xdb);
    char key[KEY_BYTES], value[VALUE_BYTES_MAX];
    for (uint64_t at = 0; at < operations; at++) {
        const uint64_t place = random_number(&worker->random) % keys;
        const uint64_t dice = random_number(&worker->random) % 100;
        make_key(key, place, worker->number);
        if (dice < 40) {
            worker->versions[place] = ++worker->puts;
            if (!remixdb_put(ref, key, KEY_BYTES, value, make_value(value, key, worker->puts)))
                fail("cannot put", key, worker->puts);
        } else if (dice < 55) {
            worker->versions[place] = 0;
            if (!remixdb_del(ref, key, KEY_BYTES))
                fail("cannot delete", key, 0);
        } else if (dice < 97) {
            check(ref, worker, place);
        } else {
            scan(ref, worker, place, random_number(&worker->random) % SCAN_MAX);
        }
    }
    remixdb_unref(ref);
    return NULL;
}

/* Deletes the data of an earlier run. */
static void empty(struct xdb_ref *ref) {
    static char key[REMIXDB_MAX_BYTES];
    uint32_t bytes;
    struct xdb_iter *iter = remixdb_iter_create(ref);
    for (remixdb_iter_seek(iter, NULL, 0); remixdb_iter_valid(iter); remixdb_iter_skip1(iter))
        if (!remixdb_iter_peek(iter, key, &bytes, NULL, NULL) || !remixdb_del(ref, key, bytes))
            fail("cannot delete", key, 0);
    remixdb_iter_destroy(iter);
    remixdb_unref(ref);
}

int main(int argc, char **argv) {
    if (!read_numbers(argc, argv, (uint64_t *const[]){&threads, &operations, &keys, &seed}, 4) || threads > 9999) {
        fputs("stress DIR [THREADS [OPERATIONS [KEYS [SEED]]]]: numbers from 1, 9999 threads at most\n", stderr);
        return 2;
    }
    if ((xdb = remixdb_open(argv[1], 64, 1, true)) == NULL)
        return 1;
    empty(remixdb_ref(xdb));
    struct worker *workers = calloc(threads, sizeof *workers);
    for (uint64_t at = 0; at < threads; at++) {
        if (workers != NULL) {
            workers[at].number = at;
            workers[at].random = seed * UINT64_C(0x9e3779b97f4a7c15) + 2 * at + 1;
            workers[at].versions = calloc(keys, sizeof(uint64_t));
        }
        if (workers == NULL || workers[at].versions == NULL ||
            pthread_create(&workers[at].thread, NULL, work, &workers[at]) != 0) {
            fputs("stress: no memory, or no more threads\n", stderr);
            return 1;
        }
    }
    for (uint64_t at = 0; at < threads; at++)
        pthread_join(workers[at].thread, NULL);
    remixdb_close(xdb);

    if ((xdb = remixdb_open_compact(argv[1], 64, 1)) == NULL)
        return 1;
    struct xdb_ref *ref = remixdb_ref(xdb);
    uint64_t puts = 0, there = 0;
    for (uint64_t at = 0; at < threads; at++) {
        scan(ref, &workers[at], 0, threads * keys);
        for (uint64_t place = 0; place < keys; place++) {
            check(ref, &workers[at], place);
            there += workers[at].versions[place] != 0;
        }
        puts += workers[at].puts;
        free(workers[at].versions);
    }
    free(workers);
    remixdb_close(remixdb_unref(ref));
    printf("%llu puts by %llu threads, %llu keys at the end: every answer was right\n", (unsigned long long)puts,
           (unsigned long long)threads, (unsigned long long)there);
    return 0;
}

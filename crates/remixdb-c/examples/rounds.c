/* Rounds of random updates and gets, with a line for each: rounds DIR [CACHE_MB [MT_MB [KEYS [UPDATES [ROUNDS
   [THREADS]]]]]]. CACHE_MB and MT_MB are those of remixdb_open. There are 2^KEYS keys, and each round makes 2^UPDATES
   updates and as many gets, each of a random key. THREADS defaults to the number of processors.

   DIR is a new store, or that of an earlier run, which is kept. A value states its update, and each thread knows the last
   one of its own keys. A get of a key that this run has not updated yet may find a value of an earlier run: it is
   counted as stale. So a new store shows no stale gets, and with an old one they become fewer from round to round. Any
   other wrong result ends the program with exit code 1.

   The rates are those of the store and of this program together. For example, with 1 million keys:

     rounds /tmp/rounds 256 256 20 20 100 */

#define _POSIX_C_SOURCE 200809L
#include "pairs.h"
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#define BITS_MAX 32
#define WORDS 15 /* of a value: 120 bytes */

static struct xdb *xdb;
static uint64_t cache_mb = 256, mt_mb = 256, key_bits = 20, update_bits = 20, rounds = 10, threads;
/* The first update of this run: greater than all of earlier runs. */
static uint64_t first;

struct worker {
    uint64_t number, random, update, stale, *updates; /* of each own key: the last update in this run, 0 if there is none */
    bool gets;
    pthread_t thread;
};

/* The own keys of a worker: the keys are dealt to the workers in turn. */
static uint64_t keys_of(const struct worker *worker) {
    return ((UINT64_C(1) << key_bits) + threads - 1 - worker->number) / threads;
}

/* The key of a place, as hexadecimal digits. Multiplied by an odd number, so that neighbours are far apart. */
static void spread_key(char *key, uint64_t place) {
    const uint64_t number = place * UINT64_C(0x9e3779b97f4a7c15);
    for (int at = 0; at < KEY_BYTES; at++)
        key[at] = "0123456789abcdef"[number >> (60 - 4 * at) & 15];
}

static void *work(void *argument) {
    struct worker *worker = argument;
    struct xdb_ref *ref = remixdb_ref(xdb);
    const uint64_t keys = keys_of(worker);
    char key[KEY_BYTES];
    uint64_t value[REMIXDB_MAX_BYTES / sizeof(uint64_t) + 1];
    for (uint64_t at = worker->number; keys > 0 && at < UINT64_C(1) << update_bits; at += threads) {
        const uint64_t own = random_number(&worker->random) % keys;
        uint64_t *expected = &worker->updates[own];
        spread_key(key, own * threads + worker->number);
        if (!worker->gets) {
            *expected = worker->update += threads;
            for (int word = 0; word < WORDS; word++)
                value[word] = *expected;
            if (!remixdb_put(ref, key, KEY_BYTES, value, sizeof(uint64_t) * WORDS))
                fail("cannot put", key, *expected);
            continue;
        }
        uint32_t bytes = 0;
        if (!remixdb_get(ref, key, KEY_BYTES, value, &bytes)) {
            if (*expected != 0)
                fail("a key is not there", key, *expected);
            continue;
        }
        for (int word = 0; word < WORDS; word++)
            if (bytes != sizeof(uint64_t) * WORDS || value[word] != value[0])
                fail("a value is torn", key, *expected);
        if (*expected == 0 && value[0] < first)
            worker->stale++;
        else if (value[0] != *expected)
            fail("a key has another version", key, *expected);
    }
    remixdb_unref(ref);
    return NULL;
}

/* Lets all workers put or get, and returns the millions of these that they do in a second. */
static double rate(struct worker *workers, bool gets) {
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (uint64_t at = 0; at < threads; at++) {
        workers[at].gets = gets;
        if (pthread_create(&workers[at].thread, NULL, work, &workers[at]) != 0) {
            fputs("rounds: no more threads\n", stderr);
            exit(1);
        }
    }
    for (uint64_t at = 0; at < threads; at++)
        pthread_join(workers[at].thread, NULL);
    clock_gettime(CLOCK_MONOTONIC, &end);
    const double micros = (double)(end.tv_sec - begin.tv_sec) * 1e6 + (double)(end.tv_nsec - begin.tv_nsec) / 1e3;
    return (double)(UINT64_C(1) << update_bits) / (micros > 0 ? micros : 1);
}

int main(int argc, char **argv) {
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    threads = processors > 0 ? (uint64_t)processors : 1;
    uint64_t *const numbers[] = {&cache_mb, &mt_mb, &key_bits, &update_bits, &rounds, &threads};
    if (!read_numbers(argc, argv, numbers, 6) || key_bits > BITS_MAX || update_bits > BITS_MAX || threads > 9999) {
        fputs("rounds DIR [CACHE_MB [MT_MB [KEYS [UPDATES [ROUNDS [THREADS]]]]]]: numbers from 1; KEYS and UPDATES are powers "
              "of 2, 32 at most; 9999 threads at most\n",
              stderr);
        return 2;
    }
    if ((xdb = remixdb_open(argv[1], cache_mb, mt_mb, true)) == NULL)
        return 1;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    first = (uint64_t)now.tv_sec << 32 | (uint64_t)now.tv_nsec << 2;
    struct worker *workers = calloc(threads, sizeof *workers);
    for (uint64_t at = 0; at < threads; at++) {
        if (workers != NULL) {
            workers[at].number = at;
            workers[at].random = first + 2 * at + 1;
            workers[at].update = first + at;
            workers[at].updates = calloc(keys_of(&workers[at]) + 1, sizeof(uint64_t));
        }
        if (workers == NULL || workers[at].updates == NULL) {
            fputs("rounds: no memory\n", stderr);
            return 1;
        }
    }
    for (uint64_t round = 1; round <= rounds; round++) {
        const double puts = rate(workers, false), gets = rate(workers, true);
        uint64_t stale = 0;
        for (uint64_t at = 0; at < threads; at++) {
            stale += workers[at].stale;
            workers[at].stale = 0;
        }
        printf("round %llu: %.3f M updates/s, %.3f M gets/s, stale=%llu\n", (unsigned long long)round, puts, gets,
               (unsigned long long)stale);
        fflush(stdout);
    }
    remixdb_close(xdb);
    for (uint64_t at = 0; at < threads; at++)
        free(workers[at].updates);
    free(workers);
    return 0;
}

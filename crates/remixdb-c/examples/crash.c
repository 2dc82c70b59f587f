/* Kills a writing process again and again: crash DIR [ROUNDS [OPERATIONS [KEYS [SEED]]]]. DIR must be a new store.

   The seed and a number determine each operation: operation 1, 2, 3 and so on. In each round a child opens the store,
   continues with the operations, calls remixdb_sync now and then, and reports through a pipe which operation it begins
   and which ones are synced. Its parent kills it with SIGKILL at a random one of the next OPERATIONS, or at once, while
   the child opens the store. Then the parent opens the store. Its content must be that of the first n operations for
   some n: at least as many as the child has reported as synced, at most as many as it has begun. Every value must be
   complete. The next child continues from there. In the first round that fails this check the program ends with exit
   code 1. */

#define _POSIX_C_SOURCE 200809L
#include "pairs.h"
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define SYNC_EVERY 50

static uint64_t rounds = 20, operations = 5000, keys = 1000, seed = 1;

/* The report of a child before each operation. */
struct told {
    uint64_t begun, synced;
};

/* An operation: the place of its key, and whether it deletes the key. If not, it puts its number as the version. */
static uint64_t place_of(uint64_t operation, bool *deletes) {
    uint64_t state = (seed << 32 ^ operation) * UINT64_C(0x9e3779b97f4a7c15) | 1;
    random_number(&state);
    *deletes = random_number(&state) % 4 == 0;
    return random_number(&state) % keys;
}

/* The child: continues after operation `done`. It does not return. */
static void write_on(const char *dir, uint64_t done, int pipe) {
    char key[KEY_BYTES], value[VALUE_BYTES_MAX];
    struct xdb *xdb = remixdb_open(dir, 16, 1, true);
    if (xdb == NULL)
        _exit(1);
    struct xdb_ref *ref = remixdb_ref(xdb);
    struct told told = {done, done};
    for (;;) {
        bool deletes;
        make_key(key, place_of(++told.begun, &deletes), 0);
        if (write(pipe, &told, sizeof told) != sizeof told)
            _exit(1);
        if (!(deletes ? remixdb_del(ref, key, KEY_BYTES)
                      : remixdb_put(ref, key, KEY_BYTES, value, make_value(value, key, told.begun))))
            _exit(1);
        if (told.begun % SYNC_EVERY == 0) {
            if (!remixdb_sync(ref))
                _exit(1);
            told.synced = told.begun;
        }
    }
}

/* Reads the next report of the child; false if the child has ended. */
static bool hear(int pipe, struct told *told) {
    struct told heard;
    ssize_t bytes;
    while ((bytes = read(pipe, &heard, sizeof heard)) < 0 && errno == EINTR) {}
    if (bytes != sizeof heard)
        return false;
    *told = heard;
    return true;
}

/* Runs a child from `done` on, and kills it; returns its last report. */
static struct told round_of(const char *dir, uint64_t done, uint64_t more) {
    struct told told = {done, done};
    int ends[2], status = 0;
    if (pipe(ends) != 0) {
        perror("pipe");
        exit(1);
    }
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        write_on(dir, done, ends[1]);
    }
    close(ends[1]);
    while (child > 0 && told.begun < done + more && hear(ends[0], &told)) {}
    if (child < 0 || kill(child, SIGKILL) != 0) {
        perror("a child");
        exit(1);
    }
    while (hear(ends[0], &told)) {} /* reports before the kill */
    close(ends[0]);
    if (waitpid(child, &status, 0) != child || !WIFSIGNALED(status)) {
        fputs("crash: a child could not open the store, or could not write\n", stderr);
        exit(1);
    }
    return told;
}

/* Reads the version of each key. */
static void read_all(struct xdb_ref *ref, uint64_t *found) {
    static char key[REMIXDB_MAX_BYTES], value[REMIXDB_MAX_BYTES];
    char own[KEY_BYTES];
    uint32_t key_bytes, value_bytes;
    memset(found, 0, keys * sizeof *found);
    struct xdb_iter *iter = remixdb_iter_create(ref);
    uint64_t place = 0;
    for (remixdb_iter_seek(iter, NULL, 0); remixdb_iter_valid(iter); remixdb_iter_skip1(iter), place++) {
        if (!remixdb_iter_peek(iter, key, &key_bytes, value, &value_bytes) || key_bytes != KEY_BYTES)
            fail("a pair that was never put", key, 0);
        const uint64_t version = version_of(key, value, value_bytes);
        for (; place < keys; place++) {
            make_key(own, place, 0);
            if (memcmp(own, key, KEY_BYTES) == 0)
                break;
        }
        if (place >= keys)
            fail("a key that was never put, or is out of order", key, version);
        found[place] = version;
        uint32_t got = 0;
        if (!remixdb_get(ref, key, KEY_BYTES, value, &got) || version_of(key, value, got) != version)
            fail("get and the iterator differ", key, version);
    }
    remixdb_iter_destroy(iter);
}

int main(int argc, char **argv) {
    if (!read_numbers(argc, argv, (uint64_t *const[]){&rounds, &operations, &keys, &seed}, 4)) {
        fputs("crash DIR [ROUNDS [OPERATIONS [KEYS [SEED]]]]: numbers from 1\n", stderr);
        return 2;
    }
    /* The versions after the operations up to `done`, and those in the store. */
    uint64_t *expected = calloc(keys, sizeof *expected), *found = calloc(keys, sizeof *found);
    if (expected == NULL || found == NULL) {
        fputs("crash: no memory\n", stderr);
        return 1;
    }
    uint64_t done = 0, syncs = 0, random = seed * 2 + 1;
    for (uint64_t round = 1; round <= rounds; round++) {
        const uint64_t more = random_number(&random) % 8 == 0 ? 0 : random_number(&random) % operations + 1;
        const struct told told = round_of(argv[1], done, more);
        syncs += (told.synced - done + SYNC_EVERY - 1) / SYNC_EVERY;
        struct xdb *xdb = remixdb_open(argv[1], 16, 1, true);
        if (xdb == NULL)
            return 1;
        struct xdb_ref *ref = remixdb_ref(xdb);
        read_all(ref, found);
        remixdb_close(remixdb_unref(ref));

        uint64_t wrong = 0; /* number of keys with a wrong version */
        for (uint64_t place = 0; place < keys; place++)
            wrong += found[place] != expected[place];
        while (done < told.synced || (wrong > 0 && done < told.begun)) {
            bool deletes;
            const uint64_t place = place_of(++done, &deletes);
            wrong -= found[place] != expected[place];
            expected[place] = deletes ? 0 : done;
            wrong += found[place] != expected[place];
        }
        if (wrong > 0) {
            for (uint64_t place = 0; place < keys; place++)
                if (found[place] != expected[place])
                    fprintf(stderr, "key %llu: version %llu, expected %llu\n", (unsigned long long)place,
                            (unsigned long long)found[place], (unsigned long long)expected[place]);
            fprintf(stderr, "crash: round %llu, seed %llu: %llu operations were synced, %llu begun; no state matches\n",
                    (unsigned long long)round, (unsigned long long)seed, (unsigned long long)told.synced,
                    (unsigned long long)told.begun);
            return 1;
        }
    }
    printf("killed %llu times in %llu operations and %llu syncs: nothing synced was lost, nothing was torn\n",
           (unsigned long long)rounds, (unsigned long long)done, (unsigned long long)syncs);
    free(expected);
    free(found);
    return 0;
}

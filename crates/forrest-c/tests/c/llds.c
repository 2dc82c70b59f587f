/* Uses the functions of llds's library, correctly and incorrectly, together with those of this one: llds URL, where URL names a new
 * store of any home. */

#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <limits.h>
#include <llds/forrest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
#define KEYS 500

/* A result without a value. */
static int32_t result(llds_result_ent *entry, uint64_t key) {
    CHECK(entry != NULL && entry->key == key && entry->val == NULL && entry->vlen == 0);
    const int32_t result = entry->result;
    free(entry);
    return result;
}

static int32_t insert(FORREST *tree, uint64_t key, const char *text) {
    return result(forrest_insert_key(tree, key, (void *)text, (int)strlen(text)), key);
}

static int32_t removed_key(FORREST *tree, uint64_t key) {
    return result(forrest_rm_key(tree, key), key);
}

static int32_t removed(FORREST *tree) {
    return result(forrest_rm_tree(tree), 0);
}

/* A result with this value, which is text. */
static bool is(FORREST *tree, uint64_t key, const char *text) {
    llds_result_ent *entry = forrest_get_key(tree, key);
    CHECK(entry != NULL && entry->key == key);
    const bool is = entry->result == SUCCESS && entry->vlen == (int)strlen(text) && strcmp(entry->val, text) == 0;
    free(entry->val);
    free(entry);
    return is;
}

static int32_t missing(FORREST *tree, uint64_t key) {
    return result(forrest_get_key(tree, key), key);
}

static void changing(void) {
    FORREST *tree = forrest_alloc();
    CHECK(tree != NULL);
    ANSWERS(FORREST_NOT_FOUND, missing(tree, 7));
    ANSWERS(SUCCESS, insert(tree, 7, "seven"));
    CHECK(is(tree, 7, "seven"));
    ANSWERS(SUCCESS, insert(tree, 7, "VII"));
    CHECK(is(tree, 7, "VII"));
    ANSWERS(SUCCESS, insert(tree, 0, ""));
    ANSWERS(SUCCESS, insert(tree, UINT64_MAX, "all"));
    ANSWERS(SUCCESS, result(forrest_insert_key(tree, 1, NULL, 0), 1));
    CHECK(is(tree, 0, "") && is(tree, UINT64_MAX, "all") && is(tree, 1, ""));
    ANSWERS(SUCCESS, removed_key(tree, 1));
    ANSWERS(FORREST_NOT_FOUND, missing(tree, 1));
    ANSWERS(FORREST_NOT_FOUND, removed_key(tree, 1));
    CHECK(is(tree, 0, "") && is(tree, 7, "VII"));
    ANSWERS(SUCCESS, removed(tree));
    ANSWERS(FORREST_NOT_FOUND, missing(tree, 0));
    ANSWERS(FORREST_NOT_FOUND, missing(tree, 7));
    ANSWERS(FORREST_NOT_FOUND, missing(tree, UINT64_MAX));
    ANSWERS(SUCCESS, removed(tree));
    forrest_cleanup(tree);
}

/* Values that are too long are neither stored nor returned. Nothing is written beyond the end of a value. */
static void limits(void) {
    static char longest[FORREST_MAX_VAL_LEN + 1];
    memset(longest, 'v', sizeof longest);
    FORREST *tree = forrest_alloc();
    ANSWERS(SUCCESS, result(forrest_insert_key(tree, 1, longest, FORREST_MAX_VAL_LEN), 1));
    llds_result_ent *entry = forrest_get_key(tree, 1);
    CHECK(entry->result == SUCCESS && entry->vlen == FORREST_MAX_VAL_LEN);
    CHECK(memcmp(entry->val, longest, FORREST_MAX_VAL_LEN) == 0);
    free(entry->val);
    free(entry);
    ANSWERS(FORREST_LIMIT, result(forrest_insert_key(tree, 2, longest, FORREST_MAX_VAL_LEN + 1), 2));
    ANSWERS(FORREST_LIMIT, result(forrest_insert_key(tree, 2, longest, INT32_MAX), 2));
    ANSWERS(FORREST_INVALID_ARGUMENT, result(forrest_insert_key(tree, 2, longest, -1), 2));
    ANSWERS(FORREST_INVALID_ARGUMENT, result(forrest_insert_key(tree, 2, longest, INT32_MIN), 2));
    ANSWERS(FORREST_INVALID_ARGUMENT, result(forrest_insert_key(tree, 2, NULL, 1), 2));
    ANSWERS(FORREST_NOT_FOUND, missing(tree, 2));
    removed(tree);
    forrest_cleanup(tree);
}

/* A program that defines FORREST_MAX_VAL_LEN gets handles with that maximum; so do these. */
static void other_limits(void) {
    static char value[100000];
    memset(value, 'v', sizeof value);
    FORREST *large = forrest_alloc_max(sizeof value), *small = forrest_alloc_max(1), *other = (forrest_alloc)();
    CHECK(large != NULL && small != NULL && other != NULL);
    ANSWERS(SUCCESS, result(forrest_insert_key(large, 1, value, sizeof value), 1));
    ANSWERS(FORREST_LIMIT, result(forrest_insert_key(large, 1, value, sizeof value + 1), 1));
    llds_result_ent *entry = forrest_get_key(large, 1);
    CHECK(entry->result == SUCCESS && entry->vlen == sizeof value && memcmp(entry->val, value, sizeof value) == 0);
    free(entry->val);
    free(entry);
    ANSWERS(FORREST_LIMIT, missing(small, 1));
    ANSWERS(FORREST_LIMIT, missing(other, 1));
    ANSWERS(SUCCESS, insert(small, 2, "v"));
    ANSWERS(FORREST_LIMIT, insert(small, 2, "vv"));
    CHECK(is(large, 2, "v"));
    ANSWERS(SUCCESS, removed_key(small, 1));
    ANSWERS(SUCCESS, removed(other));
    forrest_cleanup(large);
    forrest_cleanup(small);
    forrest_cleanup(other);
    const long wrong[] = {0, -1, LONG_MIN, INT_MAX, LONG_MAX};
    for (size_t at = 0; at < sizeof wrong / sizeof wrong[0]; at++)
        CHECK(forrest_alloc_max(wrong[at]) == NULL && strlen(forrest_error_message()) > 0);
}

static void misuse(void) {
    FORREST *tree = forrest_alloc();
    forrest_db *db;
    ANSWERS(FORREST_OK, forrest_open("memory:", &db));
    FORREST *const wrong[] = {NULL, (FORREST *)db, (FORREST *)&db, (FORREST *)1, tree};
    forrest_cleanup(tree);
    for (size_t at = 0; at < sizeof wrong / sizeof wrong[0]; at++) {
        ANSWERS(FORREST_INVALID_ARGUMENT, insert(wrong[at], 3, "three"));
        ANSWERS(FORREST_INVALID_ARGUMENT, missing(wrong[at], 3));
        ANSWERS(FORREST_INVALID_ARGUMENT, removed(wrong[at]));
        ANSWERS(FORREST_INVALID_ARGUMENT, removed_key(wrong[at], 3));
        forrest_cleanup(wrong[at]);
    }
    ANSWERS(FORREST_OK, forrest_close(db));
}

/* All handles for one URL share one store, which is closed with the last handle. */
static void sharing(const char *url) {
    FORREST *one = forrest_alloc(), *two = forrest_alloc();
    CHECK(one != NULL && two != NULL && one != two);
    ANSWERS(SUCCESS, insert(one, 7, "seven"));
    CHECK(is(two, 7, "seven"));
    CHECK(setenv("FORREST_URL", "memory:", 1) == 0);
    FORREST *other = forrest_alloc();
    CHECK(is(other, 7, "seven") == (strcmp(url, "memory:") == 0));
    forrest_cleanup(other);
    CHECK(setenv("FORREST_URL", url, 1) == 0);
    forrest_cleanup(one);
    CHECK(is(two, 7, "seven"));
    ANSWERS(FORREST_INVALID_ARGUMENT, missing(one, 7));
    forrest_cleanup(two);

    if (strchr(url, ':') == NULL) {
        /* On disk the data remains, for other programs as well, in the order of its keys. */
        forrest_db *db;
        ANSWERS(FORREST_OK, forrest_open(url, &db));
        CHECK(has(db, "\0\0\0\0\0\0\0\7", 8, "seven", 5));
        ANSWERS(FORREST_OK, forrest_set(db, "\0\0\0\0\0\0\1\0", 8, NULL, 0));
        static char too_long[FORREST_MAX_VAL_LEN + 1];
        ANSWERS(FORREST_OK, forrest_set(db, "\0\0\0\0\0\0\0\0", 8, too_long, sizeof too_long));
        CHECK(forrest_alloc() == NULL); /* the store is open already, but not by forrest_alloc */
        ANSWERS(FORREST_OK, forrest_close(db));
        CHECK((one = forrest_alloc()) != NULL && is(one, 7, "seven") && is(one, 256, ""));
        ANSWERS(FORREST_LIMIT, missing(one, 0));
        ANSWERS(SUCCESS, removed(one));
        forrest_cleanup(one);
    }

    static const char *const NO_STORES[] = {"mermory:", "", "/dev/null/store", "\xff"};
    for (size_t at = 0; at < sizeof NO_STORES / sizeof NO_STORES[0]; at++) {
        CHECK(setenv("FORREST_URL", NO_STORES[at], 1) == 0);
        CHECK(forrest_alloc() == NULL && strlen(forrest_error_message()) > 0);
    }
    CHECK(setenv("FORREST_URL", url, 1) == 0);
}

static void *work(void *argument) {
    const uint64_t first = *(const uint64_t *)argument;
    for (int round = 0; round < 3; round++) {
        FORREST *tree = forrest_alloc();
        CHECK(tree != NULL);
        for (uint64_t key = first; key < first + KEYS; key++) {
            char text[24];
            sprintf(text, "%llu/%d", (unsigned long long)key, round);
            ANSWERS(SUCCESS, insert(tree, key, text));
            CHECK(is(tree, key, text));
        }
        forrest_cleanup(tree);
    }
    return NULL;
}

/* Threads open, use and close the store, at the same time and in turn. */
static void threads(void) {
    pthread_t threads[THREADS];
    uint64_t first[THREADS];
    for (int at = 0; at < THREADS; at++) {
        first[at] = (uint64_t)at << 40;
        CHECK(pthread_create(&threads[at], NULL, work, &first[at]) == 0);
    }
    for (int at = 0; at < THREADS; at++)
        CHECK(pthread_join(threads[at], NULL) == 0);
}

/* In a child, the parent's handles are refused, and the child can open stores itself. */
static void after_fork(const char *url) {
    CHECK(setenv("FORREST_URL", "memory:", 1) == 0);
    FORREST *tree = forrest_alloc();
    ANSWERS(SUCCESS, insert(tree, 7, "seven"));
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        ANSWERS(FORREST_INVALID_ARGUMENT, insert(tree, 7, "of the child"));
        forrest_cleanup(tree);
        FORREST *own = forrest_alloc();
        ANSWERS(FORREST_NOT_FOUND, missing(own, 7));
        ANSWERS(SUCCESS, insert(own, 7, "of the child"));
        forrest_cleanup(own);
        _exit(0);
    }
    int status = 1;
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(is(tree, 7, "seven"));
    forrest_cleanup(tree);
    CHECK(setenv("FORREST_URL", url, 1) == 0);
}

/* The verification code that SMHasher publishes for this hash: the hash of the hashes of the keys 0; 0 1; 0 1 2; ... of
   up to 255 bytes with falling seeds. The keys are at all alignments. */
static void hash(void) {
    unsigned char bytes[8 + 255], hashes[256 * 8];
    for (int length = 0; length < 256; length++) {
        unsigned char *key = bytes + length % 8;
        for (int at = 0; at < length; at++)
            key[at] = (unsigned char)at;
        const uint64_t found = ft_MurmurHash64A(key, length, 256 - (unsigned)length);
        for (int at = 0; at < 8; at++)
            hashes[8 * length + at] = (unsigned char)(found >> 8 * at);
    }
    CHECK((uint32_t)ft_MurmurHash64A(hashes, sizeof hashes, 0) == UINT32_C(0x1f0d3804));
    CHECK(ft_MurmurHash64A("", 0, 0) == 0 && ft_MurmurHash64A(NULL, 0, 7) == ft_MurmurHash64A("", 0, 7));
    CHECK(ft_MurmurHash64A(NULL, 3, 1) == 0 && ft_MurmurHash64A("oak", -1, 7) == 0);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fputs("llds URL\n", stderr);
        return 2;
    }
    CHECK(setenv("FORREST_URL", argv[1], 1) == 0);
    changing();
    limits();
    other_limits();
    misuse();
    sharing(argv[1]);
    threads();
    after_fork(argv[1]);
    hash();
    puts("all is as it should be");
    return checks > 0 ? 0 : 1;
}

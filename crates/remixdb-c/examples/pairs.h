/* The data of stress.c and crash.c: keys by number, values of which every byte depends on the key and the version, so
   that wrong and torn values are detected; and random numbers from a seed. */

#include <remixdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_BYTES 16
#define VALUE_BYTES_MAX 4000
#define VALUE_HEAD_BYTES (KEY_BYTES + (uint32_t)sizeof(uint64_t))

/* Xorshift. The state is never 0. */
static inline uint64_t random_number(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* The key of a place. The keys of several workers are interleaved. */
static inline void make_key(char *key, uint64_t place, uint64_t worker) {
    char text[2 * KEY_BYTES + 10];
    snprintf(text, sizeof text, "%012llu%04llu", (unsigned long long)place, (unsigned long long)worker);
    memcpy(key, text, KEY_BYTES);
}

/* Writes the value of a version of a key: both, and then bytes whose number follows from both. Returns its length. */
static inline uint32_t make_value(char *value, const char *key, uint64_t version) {
    memcpy(value, key, KEY_BYTES);
    memcpy(value + KEY_BYTES, &version, sizeof version);
    uint64_t state = version + 1;
    for (int at = 0; at < KEY_BYTES; at++)
        state = (state ^ (unsigned char)key[at]) * UINT64_C(0x9e3779b97f4a7c15) | 1;
    const uint64_t range = random_number(&state) % 16 == 0 ? VALUE_BYTES_MAX - VALUE_HEAD_BYTES : 100;
    const uint32_t bytes = VALUE_HEAD_BYTES + (uint32_t)(random_number(&state) % range);
    for (uint32_t at = VALUE_HEAD_BYTES; at < bytes; at++)
        value[at] = (char)(random_number(&state) >> 56);
    return bytes;
}

static inline void fail(const char *what, const char *key, uint64_t version) {
    fprintf(stderr, "%s: key %.*s, version %llu\n", what, KEY_BYTES, key, (unsigned long long)version);
    exit(1);
}

/* The version of a value from the store; checks that the value is complete and belongs to its key. */
static inline uint64_t version_of(const char *key, const char *value, uint32_t bytes) {
    char expected[VALUE_BYTES_MAX];
    uint64_t version = 0;
    if (bytes < VALUE_HEAD_BYTES)
        fail("a value is cut short", key, 0);
    memcpy(&version, value + KEY_BYTES, sizeof version);
    if (make_value(expected, key, version) != bytes || memcmp(expected, value, bytes) != 0)
        fail("a value was never put", key, version);
    return version;
}

/* Reads the numbers after DIR in the arguments, each at least 1; false if they are malformed or too many. */
static inline bool read_numbers(int argc, char **argv, uint64_t *const *numbers, int count) {
    if (argc < 2 || argc > count + 2)
        return false;
    for (int at = 2; at < argc; at++) {
        char *end;
        *numbers[at - 2] = strtoull(argv[at], &end, 10);
        if (*numbers[at - 2] == 0 || *end != '\0')
            return false;
    }
    return true;
}

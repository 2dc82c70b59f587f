/* Checks for the test programs. The first check that fails ends the program. */

#include <forrest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int checks;

#define CHECK(condition)                                                                                    \
    do {                                                                                                    \
        __atomic_fetch_add(&checks, 1, __ATOMIC_RELAXED);                                                   \
        if (!(condition)) {                                                                                 \
            fprintf(stderr, "%s:%d: %s (last error: %s)\n", __FILE__, __LINE__, #condition,                 \
                    forrest_error_message());                                                               \
            exit(1);                                                                                        \
        }                                                                                                   \
    } while (0)

/* The call returns this code. If the code is an error, the message begins with its text. */
#define ANSWERS(expected, call)                                                                             \
    do {                                                                                                    \
        int32_t answer = (call);                                                                            \
        CHECK(answer == (expected));                                                                        \
        const char *words = forrest_strerror(answer);                                                       \
        CHECK(answer >= 0 || strncmp(forrest_error_message(), words, strlen(words)) == 0);                  \
        CHECK(answer >= 0 || strlen(forrest_error_message()) > strlen(words) + 2);                          \
    } while (0)

/* A string literal, which may have zero bytes, as a pointer and a length. */
#define T(text) (text), (sizeof(text) - 1)

/* The initial content of a place for a result. */
static char nothing;
#define JUNK ((void *)&nothing)

static inline bool has(forrest_db *db, const char *key, size_t key_bytes, const char *value, size_t value_bytes) {
    char buffer[100];
    size_t bytes = 77;
    int32_t code = forrest_get_into(db, key, key_bytes, buffer, sizeof buffer, &bytes);
    return code == FORREST_OK && bytes == value_bytes && memcmp(buffer, value, value_bytes) == 0;
}

static inline bool has_not(forrest_db *db, const char *key, size_t key_bytes) {
    size_t bytes = 77;
    return forrest_get_into(db, key, key_bytes, NULL, 0, &bytes) == FORREST_NOT_FOUND && bytes == 0;
}

/* The iterator is at this pair. */
static inline bool is_at(forrest_iter *iter, const char *key, const char *value) {
    const void *found, *value_found, *again;
    size_t bytes, value_bytes;
    return forrest_iter_valid(iter) && forrest_iter_status(iter) == FORREST_OK &&
           forrest_iter_key(iter, &found, &bytes) == FORREST_OK && bytes == strlen(key) &&
           memcmp(found, key, bytes) == 0 && forrest_iter_value(iter, &value_found, &value_bytes) == FORREST_OK &&
           value_bytes == strlen(value) && memcmp(value_found, value, value_bytes) == 0 &&
           forrest_iter_value(iter, &again, &value_bytes) == FORREST_OK && again == value_found;
}

/* The iterator is at no pair, and nothing failed. */
static inline bool is_nowhere(forrest_iter *iter) {
    const void *key = JUNK, *value = JUNK;
    size_t bytes = 77, value_bytes = 77;
    return !forrest_iter_valid(iter) && forrest_iter_status(iter) == FORREST_OK &&
           forrest_iter_key(iter, &key, &bytes) == FORREST_NOT_FOUND && key == NULL && bytes == 0 &&
           forrest_iter_value(iter, &value, &value_bytes) == FORREST_NOT_FOUND && value == NULL && value_bytes == 0;
}

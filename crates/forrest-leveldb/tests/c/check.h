/* What the test programs share: the first check that fails ends the program. */

#include <leveldb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                          \
    do {                                                                          \
        if (!(condition)) {                                                       \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);       \
            exit(1);                                                              \
        }                                                                         \
    } while (0)

/* Checks that there is no error, and prints it otherwise. */
#define FINE(error)                                                               \
    do {                                                                          \
        if ((error) != NULL) {                                                    \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, error);            \
            exit(1);                                                              \
        }                                                                         \
    } while (0)

/* Checks that there is an error with a text in it, and forgets it. */
#define FAILED(error, text)                                                       \
    do {                                                                          \
        if ((error) == NULL || strstr(error, text) == NULL) {                     \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, (error) ? (error) : "no error"); \
            exit(1);                                                              \
        }                                                                         \
        leveldb_free(error);                                                      \
        (error) = NULL;                                                           \
    } while (0)

static inline int is(const char *bytes, size_t length, const char *text) {
    return bytes != NULL && length == strlen(text) && memcmp(bytes, text, length) == 0;
}

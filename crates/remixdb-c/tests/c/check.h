/* The check of the test programs: the first one that fails ends the program. */

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                          \
    do {                                                                          \
        if (!(condition)) {                                                       \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);       \
            exit(1);                                                              \
        }                                                                         \
    } while (0)

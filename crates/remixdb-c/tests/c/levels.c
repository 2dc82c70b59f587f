/* What each level of durability keeps when a process ends, and how often it calls the system: levels DIR, where DIR must
   be a new store. */

#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <remixdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PUTS 20000

static const char *dir;

static struct xdb *open_at(uint32_t durability) {
    struct remixdb_options options = {0};
    options.durability = durability;
    struct xdb *xdb = remixdb_open_with(dir, &options, sizeof options);
    CHECK(xdb != NULL);
    return xdb;
}

/* The system calls of this process that write; 0 if the system does not count them. */
static unsigned long long writes(void) {
    unsigned long long count = 0;
    char line[100];
    FILE *file = fopen("/proc/self/io", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        sscanf(line, "syscw: %llu", &count);
    if (file != NULL)
        fclose(file);
    return count;
}

/* Puts as many pairs at a level, in a process that ends without closing the store. Returns its system calls. */
static unsigned long long put(uint32_t durability, int count, uint32_t value, bool sync) {
    int ends[2];
    unsigned long long calls = 0;
    CHECK(pipe(ends) == 0);
    const pid_t child = fork();
    if (child == 0) {
        struct xdb_ref *ref = remixdb_ref(open_at(durability));
        const unsigned long long before = writes();
        for (uint32_t key = 0; key < (uint32_t)count; key++) {
            const unsigned char bytes[4] = {(unsigned char)(key >> 24), (unsigned char)(key >> 16), (unsigned char)(key >> 8),
                                            (unsigned char)key};
            CHECK(remixdb_put(ref, bytes, sizeof bytes, &value, sizeof value));
        }
        calls = writes() - before;
        CHECK(!sync || remixdb_sync(ref));
        CHECK(write(ends[1], &calls, sizeof calls) == sizeof calls);
        _exit(0);
    }
    int status = 1;
    CHECK(child > 0 && read(ends[0], &calls, sizeof calls) == sizeof calls);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    close(ends[0]);
    close(ends[1]);
    return calls;
}

/* Checks that the first pairs have a value and the others do not; returns the number of the first. */
static int first_with(uint32_t value) {
    struct xdb *xdb = open_at(0);
    struct xdb_ref *ref = remixdb_ref(xdb);
    struct xdb_iter *iter = remixdb_iter_create(ref);
    int count = 0;
    bool ended = false;
    for (remixdb_iter_seek(iter, NULL, 0); remixdb_iter_valid(iter); remixdb_iter_skip1(iter)) {
        uint32_t key, found;
        CHECK(remixdb_iter_peek(iter, &key, NULL, &found, NULL));
        CHECK(found != value || !ended); /* a beginning of the puts */
        ended = ended || found != value;
        count += found == value;
    }
    remixdb_iter_destroy(iter);
    remixdb_close(remixdb_unref(ref));
    return count;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fputs("levels DIR\n", stderr);
        return 2;
    }
    dir = argv[1];
    const bool counted = writes() > 0;
    if (!counted)
        fputs("skipped: this system does not count system calls in /proc/self/io\n", stderr);

    const unsigned long long buffered = put(REMIXDB_DURABILITY_BUFFERED, PUTS, 1, false);
    CHECK(first_with(1) == PUTS && (!counted || buffered >= PUTS));

    /* The default level: a beginning of the puts survives without a sync, and all of them after one. */
    const unsigned long long memory = put(0, PUTS, 2, false);
    CHECK(first_with(2) <= PUTS && (!counted || memory < PUTS / 10));
    put(REMIXDB_DURABILITY_MEMORY, PUTS, 3, true);
    CHECK(first_with(3) == PUTS);

    CHECK(put(REMIXDB_DURABILITY_SYNC, 10, 4, false) >= (counted ? 10 : 0) && first_with(4) == 10);

    /* Closing passes everything to the system. */
    struct xdb *xdb = open_at(REMIXDB_DURABILITY_MEMORY);
    struct xdb_ref *ref = remixdb_ref(xdb);
    const uint32_t five = 5;
    CHECK(remixdb_put(ref, "\0\0\0", 4, &five, sizeof five));
    remixdb_close(remixdb_unref(ref));
    CHECK(first_with(5) == 1);
    puts("all is as it should be");
    return 0;
}

/* A store from beginning to end: demo DIR puts trees in, gets some, walks over all, closes the store, and finds them
   again. DIR is created if it is missing. */

#include <remixdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const TREES[][2] = {
    {"oak", "Quercus robur"}, {"elm", "Ulmus glabra"}, {"ash", "Fraxinus excelsior"}, {"fir", "Abies alba"},
};
#define COUNT (sizeof TREES / sizeof TREES[0])

static void fail(const char *what) {
    fprintf(stderr, "demo: %s\n", what);
    exit(1);
}

static uint32_t length(const char *text) {
    return (uint32_t)strlen(text);
}

static void walk(struct xdb_ref *ref, const char *from) {
    static char key[REMIXDB_MAX_BYTES], value[REMIXDB_MAX_BYTES];
    uint32_t key_bytes, value_bytes;
    struct xdb_iter *iter = remixdb_iter_create(ref);
    for (remixdb_iter_seek(iter, from, length(from)); remixdb_iter_valid(iter); remixdb_iter_skip1(iter)) {
        if (!remixdb_iter_peek(iter, key, &key_bytes, value, &value_bytes))
            fail("cannot read");
        printf("%.*s: %.*s\n", (int)key_bytes, key, (int)value_bytes, value);
    }
    remixdb_iter_destroy(iter);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fputs("demo DIR\n", stderr);
        return 2;
    }
    /* 64 MiB of page cache, memtables of 64 MiB, and tags for fast gets. */
    struct xdb *xdb = remixdb_open(argv[1], 64, 64, true);
    if (xdb == NULL)
        return 1;
    struct xdb_ref *ref = remixdb_ref(xdb); /* each thread has its own */
    for (size_t at = 0; at < COUNT; at++)
        if (!remixdb_put(ref, TREES[at][0], length(TREES[at][0]), TREES[at][1], length(TREES[at][1])))
            fail("cannot put");
    if (!remixdb_del(ref, "fir", 3))
        fail("cannot delete");

    static char value[REMIXDB_MAX_BYTES];
    uint32_t bytes;
    if (!remixdb_get(ref, "oak", 3, value, &bytes))
        fail("the oak is not there");
    printf("oak is %.*s\n", (int)bytes, value);
    printf("elm is %s\n", remixdb_probe(ref, "elm", 3) ? "there" : "not there");
    printf("fir is %s\n", remixdb_probe(ref, "fir", 3) ? "there" : "not there");
    puts("from b on:");
    walk(ref, "b");
    if (!remixdb_sync(ref)) /* now it survives a power cut */
        fail("cannot sync");
    remixdb_close(remixdb_unref(ref));

    if ((xdb = remixdb_open(argv[1], 64, 64, true)) == NULL)
        return 1;
    ref = remixdb_ref(xdb);
    puts("opened again, all:");
    walk(ref, "");
    remixdb_close(remixdb_unref(ref));
    return 0;
}

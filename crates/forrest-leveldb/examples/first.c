/* first.c: a database from beginning to end: first DIR opens it, changes it and walks over it. */

#include <leveldb/c.h>
#include <stdio.h>
#include <stdlib.h>

static void check(char *error) {
    if (error != NULL) {
        fprintf(stderr, "first: %s\n", error);
        leveldb_free(error);
        exit(1);
    }
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fputs("first DIR\n", stderr);
        return 2;
    }
    char *error = NULL;
    leveldb_options_t *options = leveldb_options_create();
    leveldb_options_set_create_if_missing(options, 1);
    leveldb_t *db = leveldb_open(options, argv[1], &error);
    check(error);

    leveldb_writeoptions_t *durably = leveldb_writeoptions_create();
    leveldb_writeoptions_set_sync(durably, 1);
    leveldb_writebatch_t *batch = leveldb_writebatch_create();
    leveldb_writebatch_put(batch, "oak", 3, "Quercus robur", 13);
    leveldb_writebatch_put(batch, "ash", 3, "Fraxinus excelsior", 18);
    leveldb_writebatch_delete(batch, "elm", 3);
    leveldb_write(db, durably, batch, &error);
    check(error);

    leveldb_readoptions_t *reading = leveldb_readoptions_create();
    leveldb_iterator_t *iterator = leveldb_create_iterator(db, reading);
    for (leveldb_iter_seek_to_first(iterator); leveldb_iter_valid(iterator); leveldb_iter_next(iterator)) {
        size_t key_bytes, value_bytes;
        const char *key = leveldb_iter_key(iterator, &key_bytes);
        const char *value = leveldb_iter_value(iterator, &value_bytes);
        printf("%.*s: %.*s\n", (int)key_bytes, key, (int)value_bytes, value);
    }
    leveldb_iter_get_error(iterator, &error);
    check(error);

    leveldb_iter_destroy(iterator);
    leveldb_readoptions_destroy(reading);
    leveldb_writebatch_destroy(batch);
    leveldb_writeoptions_destroy(durably);
    leveldb_close(db);
    leveldb_options_destroy(options);
    return 0;
}

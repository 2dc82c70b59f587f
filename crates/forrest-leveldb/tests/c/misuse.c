/* Calls every function with what it must refuse, on a new store in the directory of the argument. */

#include "check.h"

static char *error;

/* A string that the library frees. */
static char *older(void) {
    char *text = malloc(9);
    CHECK(text != NULL);
    memcpy(text, "an error", 9);
    return text;
}

/* Functions that take an object do nothing with null. */
static void nulls(void) {
    size_t length = 7;
    leveldb_close(NULL);
    leveldb_release_snapshot(NULL, NULL);
    leveldb_compact_range(NULL, "a", 1, "b", 1);
    leveldb_iter_destroy(NULL);
    leveldb_iter_seek_to_first(NULL);
    leveldb_iter_seek_to_last(NULL);
    leveldb_iter_seek(NULL, "a", 1);
    leveldb_iter_next(NULL);
    leveldb_iter_prev(NULL);
    leveldb_iter_get_error(NULL, &error);
    FINE(error);
    CHECK(leveldb_iter_valid(NULL) == 0 && leveldb_iter_key(NULL, &length) == NULL && length == 0);
    CHECK(leveldb_iter_value(NULL, NULL) == NULL);
    CHECK(leveldb_create_snapshot(NULL) == NULL && leveldb_create_iterator(NULL, NULL) == NULL);
    CHECK(leveldb_property_value(NULL, "leveldb.stats") == NULL && leveldb_property_value(NULL, NULL) == NULL);
    leveldb_writebatch_destroy(NULL);
    leveldb_writebatch_clear(NULL);
    leveldb_writebatch_put(NULL, "a", 1, "b", 1);
    leveldb_writebatch_delete(NULL, "a", 1);
    leveldb_writebatch_iterate(NULL, NULL, NULL, NULL);
    leveldb_writebatch_append(NULL, NULL);
    leveldb_options_destroy(NULL);
    leveldb_options_set_comparator(NULL, NULL);
    leveldb_options_set_filter_policy(NULL, NULL);
    leveldb_options_set_create_if_missing(NULL, 1);
    leveldb_options_set_error_if_exists(NULL, 1);
    leveldb_options_set_paranoid_checks(NULL, 1);
    leveldb_options_set_env(NULL, NULL);
    leveldb_options_set_info_log(NULL, NULL);
    leveldb_options_set_write_buffer_size(NULL, 1);
    leveldb_options_set_max_open_files(NULL, 1);
    leveldb_options_set_cache(NULL, NULL);
    leveldb_options_set_block_size(NULL, 1);
    leveldb_options_set_block_restart_interval(NULL, 1);
    leveldb_options_set_max_file_size(NULL, 1);
    leveldb_options_set_compression(NULL, 1);
    leveldb_comparator_destroy(NULL);
    leveldb_filterpolicy_destroy(NULL);
    leveldb_readoptions_destroy(NULL);
    leveldb_readoptions_set_verify_checksums(NULL, 1);
    leveldb_readoptions_set_fill_cache(NULL, 1);
    leveldb_readoptions_set_snapshot(NULL, NULL);
    leveldb_writeoptions_destroy(NULL);
    leveldb_writeoptions_set_sync(NULL, 1);
    leveldb_cache_destroy(NULL);
    leveldb_env_destroy(NULL);
    CHECK(leveldb_env_get_test_directory(NULL) == NULL);
    leveldb_free(NULL);
}

/* Objects without functions. */
static void empty(leveldb_options_t *options, const char *path) {
    leveldb_comparator_t *nothing = leveldb_comparator_create(NULL, NULL, NULL, NULL);
    leveldb_options_set_comparator(options, nothing);
    CHECK(leveldb_open(options, path, &error) == NULL);
    FAILED(error, "the comparator has no function that compares");
    leveldb_options_set_comparator(options, NULL);
    leveldb_comparator_destroy(nothing);
    leveldb_filterpolicy_destroy(leveldb_filterpolicy_create(NULL, NULL, NULL, NULL, NULL));
    leveldb_filterpolicy_destroy(leveldb_filterpolicy_create_bloom(-1));
}

static void opening(leveldb_options_t *options, const char *path) {
    CHECK(leveldb_open(NULL, path, &error) == NULL);
    FAILED(error, "Invalid argument: the options is null");
    CHECK(leveldb_open(options, NULL, &error) == NULL);
    FAILED(error, "the name of the database is null");
    CHECK(leveldb_open(options, "", &error) == NULL);
    FAILED(error, "the name of the database is empty");
    CHECK(leveldb_open(options, "\xff", &error) == NULL);
    FAILED(error, "is not UTF-8");
    CHECK(leveldb_open(options, "/no/such/parent", &error) == NULL);
    FAILED(error, "IO error");
    leveldb_destroy_db(NULL, path, &error);
    FAILED(error, "options");
    leveldb_destroy_db(options, NULL, &error);
    FAILED(error, "name");
    leveldb_repair_db(NULL, path, &error);
    FAILED(error, "options");
    leveldb_repair_db(options, NULL, &error);
    FAILED(error, "name");
    /* Limits that are cut to what is allowed. */
    leveldb_options_set_write_buffer_size(options, SIZE_MAX);
    leveldb_options_set_max_file_size(options, 0);
    leveldb_options_set_max_open_files(options, -1);
    leveldb_options_set_block_restart_interval(options, -1);
    leveldb_cache_t *cache = leveldb_cache_create_lru(0);
    leveldb_options_set_cache(options, cache);
    leveldb_cache_destroy(cache);
}

static void changes(leveldb_t *db, leveldb_writeoptions_t *writing) {
    leveldb_put(NULL, writing, "a", 1, "b", 1, &error);
    FAILED(error, "the database is null");
    leveldb_put(db, NULL, "a", 1, "b", 1, &error);
    FAILED(error, "the write options is null");
    leveldb_put(db, writing, NULL, 1, "b", 1, &error);
    FAILED(error, "the key is null, but its length is 1");
    leveldb_put(db, writing, "a", 1, NULL, 1, &error);
    FAILED(error, "the value is null");
    /* Lengths that no memory has: they are refused before anything is read. */
    leveldb_put(db, writing, "a", SIZE_MAX, "b", 1, &error);
    FAILED(error, "at most 65535 bytes");
    leveldb_put(db, writing, "a", 65536, "b", 1, &error);
    FAILED(error, "key of 65536 bytes; at most 65535 bytes are allowed");
    leveldb_put(db, writing, "a", 1, "b", SIZE_MAX, &error);
    FAILED(error, "at most 4294967295 bytes");
    leveldb_put(db, writing, "a", 1, "b", (size_t)1 << 32, &error);
    FAILED(error, "value of 4294967296 bytes");
    leveldb_delete(NULL, writing, "a", 1, &error);
    FAILED(error, "the database is null");
    leveldb_delete(db, writing, NULL, 2, &error);
    FAILED(error, "the key is null");
    leveldb_delete(db, writing, "a", SIZE_MAX / 2 + 1, &error);
    FAILED(error, "at most 65535 bytes");
    leveldb_write(db, writing, NULL, &error);
    FAILED(error, "the batch is null");

    leveldb_writebatch_t *batch = leveldb_writebatch_create(), *other = leveldb_writebatch_create();
    leveldb_writebatch_put(batch, "a", 1, "b", 1);
    leveldb_writebatch_put(batch, "a", 1, "b", SIZE_MAX);
    leveldb_writebatch_delete(batch, NULL, 1);
    leveldb_write(db, writing, batch, &error);
    FAILED(error, "value of 18446744073709551615 bytes");
    leveldb_writebatch_append(other, batch);
    leveldb_write(db, writing, other, &error);
    FAILED(error, "value of 18446744073709551615 bytes");
    leveldb_writebatch_append(NULL, batch);
    leveldb_writebatch_append(batch, NULL);
    leveldb_writebatch_clear(batch);
    leveldb_write(db, writing, batch, &error);
    FINE(error);
    leveldb_writebatch_destroy(batch);
    leveldb_writebatch_destroy(other);

    /* The string of an earlier error is freed if another one comes, and stays if none comes. */
    error = older();
    leveldb_put(db, NULL, "a", 1, "b", 1, &error);
    FAILED(error, "Invalid argument");
    char *same = older();
    error = same;
    leveldb_put(db, writing, "oak", 3, "Quercus", 7, &error);
    CHECK(error == same && strcmp(error, "an error") == 0);
    free(error);
    error = NULL;
    /* Nobody wants to know. */
    leveldb_put(db, NULL, "a", 1, "b", 1, NULL);
    leveldb_write(NULL, NULL, NULL, NULL);
    CHECK(leveldb_open(NULL, NULL, NULL) == NULL);
}

static void reads(leveldb_t *db, leveldb_t *second, leveldb_readoptions_t *reading) {
    size_t length = 7;
    CHECK(leveldb_get(NULL, reading, "a", 1, &length, &error) == NULL && length == 0);
    FAILED(error, "the database is null");
    CHECK(leveldb_get(db, NULL, "a", 1, &length, &error) == NULL);
    FAILED(error, "the read options is null");
    CHECK(leveldb_get(db, reading, NULL, 1, &length, &error) == NULL);
    FAILED(error, "the key is null");
    /* No key is that long, so it is not there. */
    const size_t lengths[] = {65536, SIZE_MAX};
    for (size_t at = 0; at < 2; at++) {
        length = 7;
        CHECK(leveldb_get(db, reading, "a", lengths[at], &length, &error) == NULL && length == 0);
        FINE(error);
    }
    char *value = leveldb_get(db, reading, "oak", 3, NULL, &error);
    CHECK(value != NULL && memcmp(value, "Quercus", 7) == 0);
    free(value);
    CHECK(leveldb_create_iterator(db, NULL) == NULL);

    /* A snapshot of another store, and one that was released. */
    const leveldb_snapshot_t *snapshot = leveldb_create_snapshot(db);
    leveldb_readoptions_set_snapshot(reading, snapshot);
    CHECK(leveldb_get(second, reading, "oak", 3, &length, &error) == NULL);
    FAILED(error, "of another database");
    leveldb_iterator_t *iter = leveldb_create_iterator(second, reading);
    leveldb_iter_seek_to_first(iter);
    CHECK(!leveldb_iter_valid(iter));
    leveldb_iter_get_error(iter, &error);
    FAILED(error, "of another database");
    leveldb_iter_destroy(iter);
    leveldb_release_snapshot(db, snapshot);
    CHECK(leveldb_get(db, reading, "oak", 3, &length, &error) == NULL);
    FAILED(error, "was released");
    leveldb_readoptions_set_snapshot(reading, NULL);

    iter = leveldb_create_iterator(db, reading);
    leveldb_iter_seek(iter, NULL, 1);
    error = older();
    leveldb_iter_get_error(iter, &error);
    FAILED(error, "the key is null");
    leveldb_iter_next(iter);
    CHECK(!leveldb_iter_valid(iter));
    leveldb_iter_seek(iter, NULL, 0);
    leveldb_iter_get_error(iter, &error);
    FINE(error);
    CHECK(leveldb_iter_valid(iter) && leveldb_iter_key(iter, NULL) != NULL);
    leveldb_iter_destroy(iter);

    uint64_t size = 7;
    const char *key = "a";
    size_t one = 1;
    leveldb_approximate_sizes(db, -1, &key, &one, &key, &one, &size);
    CHECK(size == 7);
    leveldb_approximate_sizes(db, 1, NULL, NULL, NULL, NULL, &size);
    CHECK(size == 0);
    leveldb_approximate_sizes(db, 1, &key, &one, &key, &one, NULL);
    size = 7;
    leveldb_approximate_sizes(NULL, 1, &key, &one, &key, &one, &size);
    CHECK(size == 0);
    const char *none = NULL;
    leveldb_approximate_sizes(db, 1, &none, &one, &key, &one, &size);
    CHECK(size == 0);
    size_t huge = SIZE_MAX;
    leveldb_approximate_sizes(db, 1, &key, &huge, &key, &one, &size);
    CHECK(size == 0);
    leveldb_compact_range(db, "b", SIZE_MAX, "a", 1);
    leveldb_compact_range(db, "b", 1, "a", 1);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    nulls();
    leveldb_options_t *options = leveldb_options_create();
    leveldb_options_set_create_if_missing(options, 1);
    empty(options, argv[1]);
    opening(options, argv[1]);
    leveldb_t *db = leveldb_open(options, argv[1], &error);
    FINE(error);
    char beside[500];
    snprintf(beside, sizeof beside, "%s-beside", argv[1]);
    leveldb_t *second = leveldb_open(options, beside, &error);
    FINE(error);
    leveldb_writeoptions_t *writing = leveldb_writeoptions_create();
    leveldb_readoptions_t *reading = leveldb_readoptions_create();
    changes(db, writing);
    reads(db, second, reading);
    /* What outlives its store keeps it open, and is safe to use. */
    leveldb_iterator_t *iter = leveldb_create_iterator(db, reading);
    const leveldb_snapshot_t *snapshot = leveldb_create_snapshot(db);
    leveldb_close(db);
    leveldb_iter_seek_to_first(iter);
    CHECK(leveldb_iter_valid(iter));
    CHECK(leveldb_open(options, argv[1], &error) == NULL);
    FAILED(error, "busy");
    leveldb_iter_destroy(iter);
    leveldb_release_snapshot(NULL, snapshot);
    db = leveldb_open(options, argv[1], &error);
    FINE(error);
    leveldb_close(db);
    leveldb_close(second);
    leveldb_options_destroy(options);
    leveldb_readoptions_destroy(reading);
    leveldb_writeoptions_destroy(writing);
    puts("all is as it should be");
    return 0;
}

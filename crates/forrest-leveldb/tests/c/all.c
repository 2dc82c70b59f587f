/* Calls every function of leveldb/c.h and checks what it does, on a new store in the directory of the argument. */

#include "check.h"
#include <sys/stat.h>

static int destroyed, compared, filtered;

static void destroy(void *state) {
    CHECK(state == &destroyed);
    destroyed++;
}

static int compare(void *state, const char *a, size_t alen, const char *b, size_t blen) {
    CHECK(state == &destroyed);
    compared++;
    int found = memcmp(a, b, alen < blen ? alen : blen);
    return found != 0 ? found : (alen > blen) - (alen < blen);
}

/* Letters of either case are equal. */
static int compare_letters(void *state, const char *a, size_t alen, const char *b, size_t blen) {
    CHECK(state == &destroyed);
    for (size_t at = 0; at < alen && at < blen; at++) {
        int difference = (a[at] | 32) - (b[at] | 32);
        if (difference != 0)
            return difference;
    }
    return (alen > blen) - (alen < blen);
}

static const char *name_own(void *state) {
    CHECK(state == &destroyed);
    return "test.Own";
}

static const char *name_letters(void *state) {
    CHECK(state == &destroyed);
    return "test.Letters";
}

static char *create_filter(void *state, const char *const *keys, const size_t *lengths, int count, size_t *length) {
    (void)state, (void)keys, (void)lengths, (void)count, (void)length;
    filtered++;
    return NULL;
}

static uint8_t may_match(void *state, const char *key, size_t length, const char *filter, size_t filter_length) {
    (void)state, (void)key, (void)length, (void)filter, (void)filter_length;
    filtered++;
    return 0;
}

static void see_put(void *state, const char *k, size_t klen, const char *v, size_t vlen) {
    char *text = state;
    sprintf(text + strlen(text), "%.*s=%.*s;", (int)klen, k, (int)vlen, v);
}

static void see_delete(void *state, const char *k, size_t klen) {
    char *text = state;
    sprintf(text + strlen(text), "-%.*s;", (int)klen, k);
}

static leveldb_options_t *options;
static leveldb_readoptions_t *reading;
static leveldb_writeoptions_t *writing;
static char *error;

static int has(leveldb_t *db, const char *key, const char *expected) {
    size_t length = 77;
    char *value = leveldb_get(db, reading, key, strlen(key), &length, &error);
    FINE(error);
    int found = expected == NULL ? value == NULL && length == 0 : is(value, length, expected);
    leveldb_free(value);
    return found;
}

static int at(leveldb_iterator_t *iter, const char *key, const char *value) {
    size_t klen = 77, vlen = 77;
    const char *k = leveldb_iter_key(iter, &klen), *v = leveldb_iter_value(iter, &vlen);
    leveldb_iter_get_error(iter, &error);
    FINE(error);
    if (key == NULL)
        return !leveldb_iter_valid(iter) && k == NULL && v == NULL && klen == 0 && vlen == 0;
    return leveldb_iter_valid(iter) == 1 && is(k, klen, key) && is(v, vlen, value);
}

static void set_options(leveldb_cache_t *cache, leveldb_env_t *env, leveldb_filterpolicy_t *policy) {
    leveldb_options_set_filter_policy(options, policy);
    leveldb_options_set_paranoid_checks(options, 1);
    leveldb_options_set_env(options, env);
    leveldb_options_set_info_log(options, NULL);
    leveldb_options_set_write_buffer_size(options, 100000);
    leveldb_options_set_max_open_files(options, 10);
    leveldb_options_set_cache(options, cache);
    leveldb_options_set_block_size(options, 1024);
    leveldb_options_set_block_restart_interval(options, 8);
    leveldb_options_set_max_file_size(options, 3 << 20);
    leveldb_options_set_compression(options, 7);
    CHECK(leveldb_open(options, "anywhere", &error) == NULL);
    FAILED(error, "Invalid argument: the compression 7 is unknown");
    leveldb_options_set_compression(options, leveldb_no_compression);
    leveldb_options_set_compression(options, leveldb_snappy_compression);
}

static leveldb_t *opened(const char *path) {
    CHECK(leveldb_open(options, path, &error) == NULL);
    FAILED(error, "does not exist (create_if_missing is false)");
    leveldb_options_set_create_if_missing(options, 1);
    leveldb_t *db = leveldb_open(options, path, &error);
    FINE(error);
    CHECK(leveldb_open(options, path, &error) == NULL);
    FAILED(error, "IO error: busy");
    leveldb_options_set_error_if_exists(options, 1);
    CHECK(leveldb_open(options, path, &error) == NULL);
    FAILED(error, "exists (error_if_exists is true)");
    leveldb_options_set_error_if_exists(options, 0);
    return db;
}

static void changes(leveldb_t *db) {
    leveldb_put(db, writing, "oak", 3, "Quercus", 7, &error);
    FINE(error);
    CHECK(has(db, "oak", "Quercus") && has(db, "elm", NULL));
    leveldb_put(db, writing, "", 0, "", 0, &error);
    FINE(error);
    CHECK(has(db, "", ""));
    leveldb_delete(db, writing, "", 0, &error);
    leveldb_delete(db, writing, "none", 4, &error);
    FINE(error);
    CHECK(has(db, "", NULL));

    leveldb_writebatch_t *batch = leveldb_writebatch_create(), *more = leveldb_writebatch_create();
    leveldb_writebatch_put(batch, "lost", 4, "", 0);
    leveldb_writebatch_clear(batch);
    leveldb_writebatch_put(batch, "ash", 3, "Fraxinus", 8);
    leveldb_writebatch_put(more, "elm", 3, "Ulmus", 5);
    leveldb_writebatch_delete(more, "ash", 3);
    leveldb_writebatch_append(batch, more);
    leveldb_writebatch_append(more, more);
    char text[200] = "";
    leveldb_writebatch_iterate(batch, text, see_put, see_delete);
    CHECK(strcmp(text, "ash=Fraxinus;elm=Ulmus;-ash;") == 0);
    text[0] = 0;
    leveldb_writebatch_iterate(more, text, see_put, NULL);
    CHECK(strcmp(text, "elm=Ulmus;elm=Ulmus;") == 0);
    leveldb_writeoptions_set_sync(writing, 1);
    leveldb_write(db, writing, batch, &error);
    FINE(error);
    leveldb_writeoptions_set_sync(writing, 0);
    CHECK(has(db, "elm", "Ulmus") && has(db, "ash", NULL) && has(db, "lost", NULL));
    leveldb_writebatch_destroy(batch);
    leveldb_writebatch_destroy(more);
}

/* The store has elm and oak. */
static void iterators(leveldb_t *db) {
    leveldb_iterator_t *iter = leveldb_create_iterator(db, reading);
    CHECK(at(iter, NULL, NULL));
    /* It sees the state at its beginning. */
    leveldb_put(db, writing, "fir", 3, "Abies", 5, &error);
    FINE(error);
    leveldb_iter_seek_to_first(iter);
    CHECK(at(iter, "elm", "Ulmus"));
    leveldb_iter_next(iter);
    CHECK(at(iter, "oak", "Quercus"));
    leveldb_iter_prev(iter);
    CHECK(at(iter, "elm", "Ulmus"));
    leveldb_iter_prev(iter);
    CHECK(at(iter, NULL, NULL));
    leveldb_iter_next(iter);
    CHECK(at(iter, NULL, NULL));
    leveldb_iter_seek_to_last(iter);
    CHECK(at(iter, "oak", "Quercus"));
    leveldb_iter_next(iter);
    CHECK(at(iter, NULL, NULL));
    leveldb_iter_seek(iter, "f", 1);
    CHECK(at(iter, "oak", "Quercus"));
    leveldb_iter_seek(iter, "p", 1);
    CHECK(at(iter, NULL, NULL));
    /* A key longer than any that a store has. */
    char *longest = malloc(70000);
    memset(longest, 'e', 70000);
    leveldb_iter_seek(iter, longest, 70000);
    CHECK(at(iter, "elm", "Ulmus"));
    free(longest);
    leveldb_iter_destroy(iter);

    const leveldb_snapshot_t *snapshot = leveldb_create_snapshot(db);
    leveldb_delete(db, writing, "fir", 3, &error);
    FINE(error);
    leveldb_readoptions_set_snapshot(reading, snapshot);
    CHECK(has(db, "fir", "Abies"));
    iter = leveldb_create_iterator(db, reading);
    leveldb_iter_seek(iter, "f", 1);
    CHECK(at(iter, "fir", "Abies"));
    leveldb_release_snapshot(db, snapshot);
    leveldb_iter_next(iter);
    CHECK(at(iter, "oak", "Quercus"));
    leveldb_iter_destroy(iter);
    leveldb_readoptions_set_snapshot(reading, NULL);
    CHECK(has(db, "fir", NULL));
}

static void figures(leveldb_t *db) {
    char key[20];
    for (int number = 0; number < 4000; number++) {
        sprintf(key, "k%08d", number);
        leveldb_put(db, writing, key, 9, key, 9, &error);
        FINE(error);
    }
    const char *starts[] = {"k00000000", "k00002000", "z"}, *limits[] = {"k00002000", "l", "a"};
    size_t start_lengths[] = {9, 9, 1}, limit_lengths[] = {9, 1, 1};
    for (int round = 0; round < 2; round++) {
        uint64_t sizes[3] = {7, 7, 7};
        leveldb_approximate_sizes(db, 3, starts, start_lengths, limits, limit_lengths, sizes);
        CHECK(sizes[0] > 2000 && sizes[0] < 80000 && sizes[1] > 2000 && sizes[1] < 80000 && sizes[2] == 0);
        /* The second time all is in tables. */
        leveldb_compact_range(db, "k", 1, "l", 1);
    }
    leveldb_compact_range(db, NULL, 0, NULL, 0);
    char *files = leveldb_property_value(db, "leveldb.num-files-at-level0");
    char *none = leveldb_property_value(db, "leveldb.num-files-at-level6");
    char *stats = leveldb_property_value(db, "leveldb.stats");
    char *tables = leveldb_property_value(db, "leveldb.sstables");
    char *memory = leveldb_property_value(db, "leveldb.approximate-memory-usage");
    CHECK(atoi(files) >= 1 && strcmp(none, "0") == 0 && strstr(stats, "keys") && atol(memory) > 0);
    CHECK(strstr(tables, "--- level 0 ---\n 0") && strstr(tables, ".table: "));
    leveldb_free(files), leveldb_free(none), leveldb_free(stats), leveldb_free(tables), leveldb_free(memory);
    const char *unknown[] = {"", "leveldb.", "leveldb.num-files-at-level7", "leveldb.num-files-at-level", "stats",
                             "leveldb.num-files-at-level+1", "leveldb.num-files-at-level99999999999"};
    for (size_t at = 0; at < sizeof unknown / sizeof *unknown; at++)
        CHECK(leveldb_property_value(db, unknown[at]) == NULL);
}

static void files(const char *path) {
    leveldb_repair_db(options, path, &error);
    FINE(error);
    leveldb_t *db = leveldb_open(options, path, &error);
    FINE(error);
    CHECK(has(db, "oak", "Quercus") && has(db, "k00003999", "k00003999"));
    leveldb_destroy_db(options, path, &error);
    FAILED(error, "IO error: busy");
    leveldb_close(db);
    leveldb_destroy_db(options, path, &error);
    FINE(error);
    struct stat found;
    CHECK(stat(path, &found) != 0);
    leveldb_destroy_db(options, path, &error);
    FINE(error);
    leveldb_repair_db(options, path, &error);
    FAILED(error, "there is no store");
    /* A directory of LevelDB itself. */
    char current[500];
    snprintf(current, sizeof current, "%s/CURRENT", path);
    CHECK(mkdir(path, 0700) == 0);
    FILE *file = fopen(current, "w");
    CHECK(file != NULL && fputs("MANIFEST-000001\n", file) > 0 && fclose(file) == 0);
    CHECK(leveldb_open(options, path, &error) == NULL);
    FAILED(error, "has files of LevelDB itself");
    leveldb_destroy_db(options, path, &error);
    FAILED(error, "has files of LevelDB itself");
    leveldb_repair_db(options, path, &error);
    FAILED(error, "has files of LevelDB itself");
    CHECK(remove(current) == 0);
    /* An empty directory goes, as LevelDB's does. */
    leveldb_destroy_db(options, path, &error);
    FINE(error);
    CHECK(stat(path, &found) != 0);
}

static void comparators(const char *path) {
    leveldb_comparator_t *own = leveldb_comparator_create(&destroyed, destroy, compare, name_own);
    leveldb_comparator_t *letters = leveldb_comparator_create(&destroyed, destroy, compare_letters, name_letters);
    leveldb_comparator_t *nameless = leveldb_comparator_create(&destroyed, NULL, compare, NULL);
    leveldb_options_set_comparator(options, own);
    leveldb_t *db = leveldb_open(options, path, &error);
    FINE(error);
    leveldb_put(db, writing, "b", 1, "1", 1, &error);
    leveldb_put(db, writing, "B", 1, "2", 1, &error);
    FINE(error);
    CHECK(has(db, "b", "1") && has(db, "B", "2") && has(db, "a", NULL) && compared > 0);
    leveldb_close(db);
    /* The store remembers its order. */
    leveldb_options_set_comparator(options, letters);
    CHECK(leveldb_open(options, path, &error) == NULL);
    FAILED(error, "the comparator is \"test.Letters\", but the database was made with \"test.Own\"");
    leveldb_options_set_comparator(options, NULL);
    CHECK(leveldb_open(options, path, &error) == NULL);
    FAILED(error, "\"leveldb.BytewiseComparator\"");
    leveldb_options_set_comparator(options, nameless);
    CHECK(leveldb_open(options, path, &error) == NULL);
    FAILED(error, "the comparator has no name");
    leveldb_comparator_destroy(nameless);
    leveldb_destroy_db(options, path, &error);
    FINE(error);

    /* An order that is not that of bytes works as long as the keys do not show the difference. */
    leveldb_options_set_comparator(options, letters);
    db = leveldb_open(options, path, &error);
    FINE(error);
    leveldb_put(db, writing, "ash", 3, "1", 1, &error);
    leveldb_put(db, writing, "oak", 3, "2", 1, &error);
    FINE(error);
    leveldb_put(db, writing, "Elm", 3, "3", 1, &error);
    FAILED(error, "Invalid argument: by its bytes the key \"Elm\" is less than \"ash\", but the comparator \"test.Letters\"");
    leveldb_writebatch_t *batch = leveldb_writebatch_create();
    leveldb_writebatch_put(batch, "yew", 3, "4", 1);
    leveldb_writebatch_put(batch, "Yew", 3, "4", 1);
    leveldb_write(db, writing, batch, &error);
    FAILED(error, "Invalid argument: by its bytes");
    leveldb_writebatch_destroy(batch);
    size_t length;
    CHECK(leveldb_get(db, reading, "ASH", 3, &length, &error) == NULL && length == 0);
    FAILED(error, "Invalid argument: by its bytes");
    leveldb_iterator_t *iter = leveldb_create_iterator(db, reading);
    leveldb_iter_seek(iter, "OAK", 3);
    CHECK(!leveldb_iter_valid(iter));
    leveldb_iter_get_error(iter, &error);
    FAILED(error, "Invalid argument: by its bytes");
    leveldb_iter_seek(iter, "b", 1);
    CHECK(at(iter, "oak", "2"));
    leveldb_iter_destroy(iter);
    CHECK(has(db, "yew", NULL) && has(db, "oak", "2"));

    /* A comparator that goes too early is an error, not a crash. */
    CHECK(destroyed == 1);
    leveldb_comparator_destroy(letters);
    CHECK(destroyed == 2);
    leveldb_put(db, writing, "fir", 3, "5", 1, &error);
    FAILED(error, "the comparator was destroyed");
    leveldb_close(db);
    leveldb_comparator_destroy(own);
    CHECK(destroyed == 3);
    leveldb_options_set_comparator(options, NULL);
}

int main(int argc, char **argv) {
    CHECK(argc == 2 && leveldb_major_version() == 1 && leveldb_minor_version() == 23);
    options = leveldb_options_create();
    reading = leveldb_readoptions_create();
    writing = leveldb_writeoptions_create();
    leveldb_readoptions_set_verify_checksums(reading, 1);
    leveldb_readoptions_set_fill_cache(reading, 0);
    leveldb_cache_t *cache = leveldb_cache_create_lru(100000);
    leveldb_env_t *env = leveldb_create_default_env();
    char *directory = leveldb_env_get_test_directory(env);
    CHECK(directory != NULL && strlen(directory) > 0);
    leveldb_free(directory);
    leveldb_filterpolicy_t *policy =
        leveldb_filterpolicy_create(&destroyed, destroy, create_filter, may_match, name_own);
    leveldb_filterpolicy_t *bloom = leveldb_filterpolicy_create_bloom(10);
    set_options(cache, env, policy);
    leveldb_t *db = opened(argv[1]);
    changes(db);
    iterators(db);
    figures(db);
    leveldb_close(db);
    files(argv[1]);
    leveldb_filterpolicy_destroy(policy);
    leveldb_filterpolicy_destroy(bloom);
    CHECK(destroyed == 1 && filtered == 0);
    comparators(argv[1]);
    leveldb_cache_destroy(cache);
    leveldb_env_destroy(env);
    leveldb_options_destroy(options);
    leveldb_readoptions_destroy(reading);
    leveldb_writeoptions_destroy(writing);
    puts("all is as it should be");
    return 0;
}

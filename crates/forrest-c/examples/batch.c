/* Stores people by name, with an index by town: batch URL. One batch changes a person and its index entry together, and
 * a seek finds the people of a town. */

#include <forrest.h>
#include <stdio.h>
#include <string.h>

static int failed(const char *what) {
    fprintf(stderr, "%s: %s\n", what, forrest_error_message());
    return 1;
}

/* Adds a person and its index entry to a batch, and removes the old index entry. */
static int32_t settle(forrest_db *db, forrest_batch *batch, const char *name, const char *town) {
    char key[100];
    void *old;
    size_t old_bytes;
    int32_t code = forrest_get_alloc(db, name, strlen(name), &old, &old_bytes);
    if (code < 0)
        return code;
    if (code == FORREST_OK) {
        int bytes = snprintf(key, sizeof key, "in/%.*s/%s", (int)old_bytes, (const char *)old, name);
        forrest_free(old);
        if ((code = forrest_batch_delete(batch, key, (size_t)bytes)) < 0)
            return code;
    }
    int bytes = snprintf(key, sizeof key, "in/%s/%s", town, name);
    if ((code = forrest_batch_set(batch, key, (size_t)bytes, NULL, 0)) < 0)
        return code;
    return forrest_batch_set(batch, name, strlen(name), town, strlen(town));
}

/* Prints the keys that begin with a prefix. */
static int32_t show(forrest_db *db, const char *prefix) {
    forrest_iter *iter;
    int32_t code = forrest_iter_create(db, &iter);
    if (code < 0)
        return code;
    for (code = forrest_iter_seek(iter, prefix, strlen(prefix)); code == FORREST_OK;
         code = forrest_iter_next(iter)) {
        const void *key;
        size_t bytes;
        if ((code = forrest_iter_key(iter, &key, &bytes)) < 0)
            break;
        if (bytes < strlen(prefix) || memcmp(key, prefix, strlen(prefix)) != 0)
            break;
        printf("%.*s\n", (int)bytes, (const char *)key);
    }
    forrest_iter_destroy(iter);
    return code;
}

int main(int argc, char **argv) {
    forrest_db *db;
    forrest_batch *batch;
    if (forrest_open(argc > 1 ? argv[1] : "memory:", &db) != FORREST_OK)
        return failed("cannot open");
    if (forrest_batch_create(&batch) != FORREST_OK)
        return failed("cannot make a batch");
    if (settle(db, batch, "ada", "london") < 0 || settle(db, batch, "emmy", "erlangen") < 0 ||
        settle(db, batch, "mary", "london") < 0 || forrest_write(db, batch) < 0)
        return failed("cannot write");
    if (show(db, "in/london/") < 0)
        return failed("cannot read");

    puts("ada moves");
    if (forrest_batch_clear(batch) < 0 || settle(db, batch, "ada", "turin") < 0 || forrest_write(db, batch) < 0)
        return failed("cannot write");
    if (show(db, "in/") < 0)
        return failed("cannot read");

    forrest_batch_destroy(batch);
    return forrest_close(db) == FORREST_OK ? 0 : failed("cannot close");
}

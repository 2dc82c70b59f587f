/* Opens a store, sets pairs, reads one and iterates over all: first URL. The default URL is memory:. */

#include <forrest.h>
#include <stdio.h>
#include <string.h>

static int failed(const char *what) {
    fprintf(stderr, "%s: %s\n", what, forrest_error_message());
    return 1;
}

static int32_t set(forrest_db *db, const char *key, const char *value) {
    return forrest_set(db, key, strlen(key), value, strlen(value));
}

int main(int argc, char **argv) {
    forrest_db *db;
    if (forrest_open(argc > 1 ? argv[1] : "memory:", &db) != FORREST_OK)
        return failed("cannot open");
    if (set(db, "oak", "Quercus robur") < 0 || set(db, "elm", "Ulmus glabra") < 0 ||
        set(db, "ash", "Fraxinus excelsior") < 0)
        return failed("cannot set");

    char buffer[100];
    size_t bytes;
    if (forrest_get_into(db, "oak", 3, buffer, sizeof buffer, &bytes) != FORREST_OK)
        return failed("cannot get");
    printf("oak is %.*s\n", (int)bytes, buffer);

    forrest_iter *iter;
    if (forrest_iter_create(db, &iter) != FORREST_OK)
        return failed("cannot walk");
    int32_t code;
    for (code = forrest_iter_first(iter); code == FORREST_OK; code = forrest_iter_next(iter)) {
        const void *key, *value;
        size_t key_bytes, value_bytes;
        if (forrest_iter_key(iter, &key, &key_bytes) < 0 || forrest_iter_value(iter, &value, &value_bytes) < 0)
            return failed("cannot read");
        printf("%.*s: %.*s\n", (int)key_bytes, (const char *)key, (int)value_bytes, (const char *)value);
    }
    if (code < 0)
        return failed("cannot go on");
    forrest_iter_destroy(iter);
    return forrest_close(db) == FORREST_OK ? 0 : failed("cannot close");
}

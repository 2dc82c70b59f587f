/* Calls the functions that open stores, read and change keys, write batches and iterate, correctly and incorrectly: api URL,
 * where URL names a new store of any home. */

#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <pthread.h>

static const size_t HUGE_LENGTHS[] = {65536, (size_t)1 << 40, SIZE_MAX / 2, SIZE_MAX};

static void versions_and_words(void) {
    CHECK(forrest_abi() == FORREST_ABI);
    CHECK(forrest_version()[0] >= '0' && strchr(forrest_version(), '.') != NULL);
    static const int32_t CODES[] = {
        FORREST_OK,       FORREST_NOT_FOUND, FORREST_TOO_SMALL,        FORREST_IO,
        FORREST_CORRUPT,  FORREST_LIMIT,     FORREST_INVALID_ARGUMENT, FORREST_OUT_OF_SPACE,
        FORREST_GONE,     FORREST_BUSY,     FORREST_STOPPED,   FORREST_UNSUPPORTED,      FORREST_INTERNAL,
        FORREST_MISMATCH, FORREST_CONFLICT, FORREST_NOT_CACHED,
    };
    const size_t count = sizeof CODES / sizeof CODES[0];
    for (size_t a = 0; a < count; a++) {
        CHECK(strcmp(forrest_strerror(CODES[a]), "unknown code") != 0);
        for (size_t b = 0; b < a; b++)
            CHECK(strcmp(forrest_strerror(CODES[a]), forrest_strerror(CODES[b])) != 0);
    }
    CHECK(strcmp(forrest_strerror(-99), "unknown code") == 0);
    CHECK(strcmp(forrest_strerror(INT32_MIN), "unknown code") == 0);
    CHECK(strcmp(forrest_error_message(), "") == 0);
}

static void opening(void) {
    forrest_db *db = JUNK;
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_open(NULL, &db));
    CHECK(db == NULL);
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_open("memory:", NULL));
    static const char *const NONSENSE[] = {"", "mermory:", "memory:x", "llds:", "llds-user:", "file:///a", "\xff"};
    for (size_t at = 0; at < sizeof NONSENSE / sizeof NONSENSE[0]; at++) {
        db = JUNK;
        ANSWERS(FORREST_INVALID_ARGUMENT, forrest_open(NONSENSE[at], &db));
        CHECK(db == NULL);
    }
    CHECK(strstr(forrest_error_message(), "\\xff") != NULL);
    /* A file is not a directory; the message names it. */
    CHECK(forrest_open("/dev/null", &db) < 0 && db == NULL);
    CHECK(strstr(forrest_error_message(), "/dev/null") != NULL);
    ANSWERS(FORREST_OK, forrest_close(NULL));
}

static void setting_and_deleting(forrest_db *db) {
    ANSWERS(FORREST_OK, forrest_set(db, T("key"), T("value")));
    CHECK(has(db, T("key"), T("value")));
    ANSWERS(FORREST_OK, forrest_set(db, T("key"), T("other")));
    CHECK(has(db, T("key"), T("other")));
    ANSWERS(FORREST_OK, forrest_set(db, T("a\0b"), T("\0\xff\0")));
    CHECK(has(db, T("a\0b"), T("\0\xff\0")) && has_not(db, T("a")) && has_not(db, T("a\0c")));
    /* The empty key is a key, and the empty value a value. */
    CHECK(has_not(db, NULL, 0));
    ANSWERS(FORREST_NOT_FOUND, forrest_delete(db, NULL, 0));
    ANSWERS(FORREST_OK, forrest_set(db, NULL, 0, NULL, 0));
    CHECK(has(db, NULL, 0, T("")) && has(db, T(""), T("")));
    ANSWERS(FORREST_OK, forrest_set(db, T(""), T("of nothing")));
    CHECK(has(db, NULL, 0, T("of nothing")));
    ANSWERS(FORREST_OK, forrest_delete(db, NULL, 0));
    CHECK(has_not(db, NULL, 0));

    ANSWERS(FORREST_OK, forrest_delete(db, T("a\0b")));
    ANSWERS(FORREST_NOT_FOUND, forrest_delete(db, T("a\0b")));
    CHECK(has_not(db, T("a\0b")) && has(db, T("key"), T("other")));

    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_set(NULL, T("key"), T("value")));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_set(db, NULL, 1, T("value")));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_set(db, T("key"), NULL, 1));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_delete(NULL, T("key")));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_delete(db, NULL, 1));
    for (size_t at = 0; at < sizeof HUGE_LENGTHS / sizeof HUGE_LENGTHS[0]; at++) {
        const size_t huge = HUGE_LENGTHS[at];
        ANSWERS(FORREST_LIMIT, forrest_set(db, "key", huge, T("value")));
        ANSWERS(FORREST_LIMIT, forrest_delete(db, "key", huge));
        if (huge > UINT32_MAX)
            ANSWERS(FORREST_LIMIT, forrest_set(db, T("key"), "value", huge));
    }
    CHECK(has(db, T("key"), T("other")));
    ANSWERS(FORREST_OK, forrest_delete(db, T("key")));
}

static void reading_into_a_buffer(forrest_db *db) {
    char buffer[8];
    size_t bytes = 77;
    ANSWERS(FORREST_OK, forrest_set(db, T("tree"), T("oak")));
    memset(buffer, '.', sizeof buffer);
    ANSWERS(FORREST_OK, forrest_get_into(db, T("tree"), buffer, 8, &bytes));
    CHECK(bytes == 3 && memcmp(buffer, "oak.....", 8) == 0);
    memset(buffer, '.', sizeof buffer);
    ANSWERS(FORREST_OK, forrest_get_into(db, T("tree"), buffer, 3, &bytes));
    CHECK(bytes == 3 && memcmp(buffer, "oak.....", 8) == 0);
    memset(buffer, '.', sizeof buffer);
    bytes = 77;
    ANSWERS(FORREST_TOO_SMALL, forrest_get_into(db, T("tree"), buffer, 2, &bytes));
    CHECK(bytes == 3 && memcmp(buffer, "........", 8) == 0);
    bytes = 77;
    ANSWERS(FORREST_TOO_SMALL, forrest_get_into(db, T("tree"), NULL, 0, &bytes));
    CHECK(bytes == 3);
    bytes = 77;
    ANSWERS(FORREST_NOT_FOUND, forrest_get_into(db, T("bush"), buffer, 8, &bytes));
    CHECK(bytes == 0);
    ANSWERS(FORREST_OK, forrest_set(db, T("tree"), NULL, 0));
    bytes = 77;
    ANSWERS(FORREST_OK, forrest_get_into(db, T("tree"), NULL, 0, &bytes));
    CHECK(bytes == 0);

    bytes = 77;
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_get_into(NULL, T("tree"), buffer, 8, &bytes));
    CHECK(bytes == 0);
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_get_into(db, NULL, 1, buffer, 8, &bytes));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_get_into(db, T("tree"), NULL, 8, &bytes));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_get_into(db, T("tree"), buffer, 8, NULL));
    ANSWERS(FORREST_LIMIT, forrest_get_into(db, "tree", SIZE_MAX, buffer, 8, &bytes));
    ANSWERS(FORREST_OK, forrest_delete(db, T("tree")));
}

static void reading_into_new_memory(forrest_db *db) {
    void *value = JUNK;
    size_t bytes = 77;
    ANSWERS(FORREST_OK, forrest_set(db, T("tree"), T("oak")));
    ANSWERS(FORREST_OK, forrest_get_alloc(db, T("tree"), &value, &bytes));
    CHECK(bytes == 3 && memcmp(value, "oak", 3) == 0);
    memset(value, 'x', bytes); /* the memory belongs to the caller */
    forrest_free(value);
    CHECK(has(db, T("tree"), T("oak")));
    ANSWERS(FORREST_OK, forrest_set(db, T("tree"), NULL, 0));
    ANSWERS(FORREST_OK, forrest_get_alloc(db, T("tree"), &value, &bytes));
    CHECK(bytes == 0 && value != NULL);
    forrest_free(value);
    value = JUNK;
    bytes = 77;
    ANSWERS(FORREST_NOT_FOUND, forrest_get_alloc(db, T("bush"), &value, &bytes));
    CHECK(value == NULL && bytes == 0);
    forrest_free(value);

    value = JUNK;
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_get_alloc(NULL, T("tree"), &value, &bytes));
    CHECK(value == NULL);
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_get_alloc(db, NULL, 1, &value, &bytes));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_get_alloc(db, T("tree"), NULL, &bytes));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_get_alloc(db, T("tree"), &value, NULL));
    ANSWERS(FORREST_LIMIT, forrest_get_alloc(db, "tree", SIZE_MAX, &value, &bytes));
    ANSWERS(FORREST_OK, forrest_delete(db, T("tree")));
}

static void holding_values(forrest_db *db) {
    static const size_t LENGTHS[] = {0, 1, 239, 240, 100000, 3000000};
    for (size_t at = 0; at < sizeof LENGTHS / sizeof LENGTHS[0]; at++) {
        const size_t length = LENGTHS[at];
        char *bytes = malloc(length + 1);
        CHECK(bytes != NULL);
        for (size_t byte = 0; byte < length; byte++)
            bytes[byte] = (char)(byte * 7);
        ANSWERS(FORREST_OK, forrest_set(db, T("long"), bytes, length));
        forrest_value *value;
        ANSWERS(FORREST_OK, forrest_get(db, T("long"), &value));
        /* A held value stays, even if its key is changed. */
        ANSWERS(FORREST_OK, forrest_set(db, T("long"), T("short")));
        ANSWERS(FORREST_OK, forrest_delete(db, T("long")));
        const void *data = JUNK;
        size_t found = 77;
        ANSWERS(FORREST_OK, forrest_value_data(value, &data, &found));
        CHECK(found == length && data != NULL && memcmp(data, bytes, length) == 0);
        forrest_value_release(value);
        free(bytes);
    }
    forrest_value *value = JUNK;
    ANSWERS(FORREST_NOT_FOUND, forrest_get(db, T("long"), &value));
    CHECK(value == NULL);
    forrest_value_release(NULL);

    value = JUNK;
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_get(NULL, T("long"), &value));
    CHECK(value == NULL);
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_get(db, NULL, 1, &value));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_get(db, T("long"), NULL));
    ANSWERS(FORREST_LIMIT, forrest_get(db, "long", SIZE_MAX, &value));
    const void *data = JUNK;
    size_t found = 77;
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_value_data(NULL, &data, &found));
    CHECK(data == NULL && found == 0);
    ANSWERS(FORREST_OK, forrest_set(db, T("held"), T("1")));
    ANSWERS(FORREST_OK, forrest_get(db, T("held"), &value));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_value_data(value, NULL, &found));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_value_data(value, &data, NULL));
    forrest_value_release(value);
    ANSWERS(FORREST_OK, forrest_delete(db, T("held")));
}

static void batches(forrest_db *db) {
    forrest_batch *batch;
    ANSWERS(FORREST_OK, forrest_batch_create(&batch));
    ANSWERS(FORREST_OK, forrest_write(db, batch)); /* an empty batch */
    char key[] = "k1";
    ANSWERS(FORREST_OK, forrest_batch_set(batch, key, 2, T("1")));
    key[1] = 'x'; /* it was copied */
    ANSWERS(FORREST_OK, forrest_batch_set(batch, T("k2"), T("2")));
    ANSWERS(FORREST_OK, forrest_batch_delete(batch, T("k2")));
    ANSWERS(FORREST_OK, forrest_batch_delete(batch, T("k3")));
    ANSWERS(FORREST_OK, forrest_batch_set(batch, T("k3"), NULL, 0));
    ANSWERS(FORREST_OK, forrest_batch_set(batch, NULL, 0, T("of nothing")));
    CHECK(has_not(db, T("k1")));
    ANSWERS(FORREST_OK, forrest_write(db, batch));
    CHECK(has(db, T("k1"), T("1")) && has_not(db, T("k2")) && has(db, T("k3"), T("")) && has_not(db, T("kx")));
    CHECK(has(db, NULL, 0, T("of nothing")));
    /* Written again, and cleared. */
    ANSWERS(FORREST_OK, forrest_delete(db, T("k1")));
    ANSWERS(FORREST_OK, forrest_write(db, batch));
    CHECK(has(db, T("k1"), T("1")));
    ANSWERS(FORREST_OK, forrest_batch_clear(batch));
    ANSWERS(FORREST_OK, forrest_batch_delete(batch, T("k1")));
    ANSWERS(FORREST_OK, forrest_batch_delete(batch, T("k3")));
    ANSWERS(FORREST_OK, forrest_batch_delete(batch, NULL, 0));
    ANSWERS(FORREST_OK, forrest_write(db, batch));
    CHECK(has_not(db, T("k1")) && has_not(db, T("k3")) && has_not(db, NULL, 0));

    ANSWERS(FORREST_OK, forrest_batch_clear(batch));
#ifndef WATCHED /* takes a minute there, and store.c sets a limit of its own */
    /* Nothing of a batch that exceeds a limit is written. */
    for (int at = 0; at <= 1048576; at++)
        if (forrest_batch_set(batch, T("many"), T("")) != FORREST_OK)
            CHECK(false);
    ANSWERS(FORREST_LIMIT, forrest_write(db, batch));
    CHECK(has_not(db, T("many")));
    ANSWERS(FORREST_OK, forrest_batch_clear(batch));
#endif

    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_batch_create(NULL));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_batch_set(NULL, T("k"), T("v")));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_batch_set(batch, NULL, 1, T("v")));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_batch_set(batch, T("k"), NULL, 1));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_batch_delete(NULL, T("k")));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_batch_delete(batch, NULL, 1));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_batch_clear(NULL));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_write(NULL, batch));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_write(db, NULL));
    for (size_t at = 0; at < sizeof HUGE_LENGTHS / sizeof HUGE_LENGTHS[0]; at++) {
        ANSWERS(FORREST_LIMIT, forrest_batch_set(batch, "k", HUGE_LENGTHS[at], T("v")));
        ANSWERS(FORREST_LIMIT, forrest_batch_delete(batch, "k", HUGE_LENGTHS[at]));
    }
    ANSWERS(FORREST_LIMIT, forrest_batch_set(batch, T("k"), "v", SIZE_MAX));
    ANSWERS(FORREST_OK, forrest_write(db, batch)); /* an empty batch: changes that were refused are not in it */
    forrest_batch_destroy(batch);
    forrest_batch_destroy(NULL);
}

/* Sorted pairs come at one instant, where the home can do that. */
static void ingesting(forrest_db *db) {
    uint64_t can, pairs;
    forrest_ingest *ingest;
    ANSWERS(FORREST_OK, forrest_capabilities(db, &can));
    if (!(can & FORREST_CAN_INGEST)) {
        ANSWERS(FORREST_UNSUPPORTED, forrest_ingest_begin(db, &ingest));
        CHECK(ingest == NULL);
        return;
    }
    ANSWERS(FORREST_OK, forrest_ingest_begin(db, &ingest));
    ANSWERS(FORREST_OK, forrest_ingest_put(ingest, T("ingest a"), T("1")));
    ANSWERS(FORREST_OK, forrest_ingest_put(ingest, T("ingest c"), T("3")));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_ingest_put(ingest, T("ingest b"), T("2")));
    CHECK(strstr(forrest_error_message(), "\"ingest b\" is not greater than the one before, \"ingest c\"") != NULL);
    CHECK(has_not(db, T("ingest a")));
    ANSWERS(FORREST_OK, forrest_ingest_finish(ingest, &pairs));
    CHECK(pairs == 2);
    CHECK(has(db, T("ingest c"), T("3")));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_ingest_put(ingest, T("x"), T("")));
    CHECK(strstr(forrest_error_message(), "is finished") != NULL);
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_ingest_finish(ingest, NULL));
    ANSWERS(FORREST_OK, forrest_ingest_destroy(ingest));
    ANSWERS(FORREST_OK, forrest_ingest_begin(db, &ingest));
    ANSWERS(FORREST_OK, forrest_ingest_put(ingest, T("left"), T("1")));
    ANSWERS(FORREST_OK, forrest_ingest_destroy(ingest));
    CHECK(has_not(db, T("left")));
    ANSWERS(FORREST_OK, forrest_delete_range(db, T("ingest"), T("ingesu")));
}

/* A value of each length is read in pieces of each length, as it was when it was opened. */
static void values_in_pieces(forrest_db *db) {
    static const size_t lengths[] = {0, 1, 4095, 4096, 4097, 300000};
    static const size_t pieces[] = {1, 4096, 70000, 400000};
    forrest_value_reader *reader;
    uint64_t bytes;
    size_t read;
    for (size_t at = 0; at < sizeof lengths / sizeof lengths[0]; at++) {
        const size_t length = lengths[at];
        char *const value = malloc(length + 1), *const back = malloc(length + 1);
        for (size_t byte = 0; byte < length; byte++)
            value[byte] = (char)(byte * 7 + byte / 1000);
        for (size_t piece = 0; piece < sizeof pieces / sizeof pieces[0]; piece++) {
            if (length / pieces[piece] > 10000)
                continue;
            ANSWERS(FORREST_OK, forrest_set(db, T("piecemeal"), value, length));
            ANSWERS(FORREST_OK, forrest_value_reader_open(db, T("piecemeal"), &reader, &bytes));
            CHECK(bytes == length);
            ANSWERS(FORREST_OK, forrest_set(db, T("piecemeal"), T("other")));
            size_t done = 0;
            do {
                const size_t left = length - done, most = left < pieces[piece] ? left : pieces[piece];
                ANSWERS(FORREST_OK, forrest_value_reader_read(reader, back + done, most, &read));
                CHECK(read == most);
                done += read;
            } while (done < length);
            CHECK(memcmp(value, back, length) == 0);
            back[0] = 'x';
            ANSWERS(FORREST_OK, forrest_value_reader_read(reader, back, 1, &read));
            CHECK(read == 0 && back[0] == 'x');
            ANSWERS(FORREST_OK, forrest_value_reader_close(reader));
        }
        free(value);
        free(back);
    }
    ANSWERS(FORREST_OK, forrest_value_reader_open(db, T("piecemeal"), &reader, NULL));
    ANSWERS(FORREST_OK, forrest_value_reader_read(reader, NULL, 0, &read));
    CHECK(read == 0);
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_value_reader_read(reader, NULL, 1, &read));
    char more[10];
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_value_reader_read(reader, more, sizeof more, NULL));
    ANSWERS(FORREST_OK, forrest_value_reader_read(reader, more, sizeof more, &read));
    CHECK(read == 5 && memcmp(more, "other", 5) == 0);
    ANSWERS(FORREST_OK, forrest_value_reader_close(reader));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_value_reader_close(reader));
    ANSWERS(FORREST_OK, forrest_value_reader_close(NULL));
    ANSWERS(FORREST_OK, forrest_delete(db, T("piecemeal")));
    reader = JUNK, bytes = 7;
    ANSWERS(FORREST_NOT_FOUND, forrest_value_reader_open(db, T("piecemeal"), &reader, &bytes));
    CHECK(reader == NULL && bytes == 0);
    ANSWERS(FORREST_LIMIT, forrest_value_reader_open(db, "k", SIZE_MAX, &reader, &bytes));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_value_reader_open(db, NULL, 1, &reader, &bytes));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_value_reader_open(db, T("piecemeal"), NULL, &bytes));
}

struct listed {
    size_t count;
    uint64_t bytes;
};

static bool count_blob(void *context, const void *key, size_t key_bytes, uint64_t blob_bytes) {
    struct listed *listed = context;
    CHECK(key_bytes == 3 && memcmp(key, listed->count == 0 ? "elm" : "oak", 3) == 0);
    listed->count++;
    listed->bytes += blob_bytes;
    return listed->count < 2;
}

/* Values of any length, in pieces. */
static void blobs(forrest_db *db) {
    uint64_t can, bytes;
    size_t read;
    char piece[1000], back[3000];
    forrest_db *space, *past;
    forrest_blob_writer *writer;
    forrest_blob *blob;
    memset(piece, 'x', sizeof piece);
    ANSWERS(FORREST_OK, forrest_capabilities(db, &can));
    /* The default keyspace has pairs, and the kernel has no other. */
    ANSWERS(FORREST_OK, forrest_set(db, T("pair"), T("value")));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_blob_begin(db, T("oak"), 0, &writer));
    CHECK(writer == NULL && strstr(forrest_error_message(), "pairs that are no blobs") != NULL);
    ANSWERS(FORREST_OK, forrest_delete(db, T("pair")));
    if (!(can & FORREST_CAN_SNAPSHOT))
        return;
    ANSWERS(FORREST_OK, forrest_keyspace(db, "blobs", &space));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_blob_begin(space, T("oak"), 1023, &writer));
    ANSWERS(FORREST_LIMIT, forrest_blob_begin(space, "k", SIZE_MAX, 0, &writer));
    ANSWERS(FORREST_OK, forrest_blob_begin(space, T("oak"), 1024, &writer));
    for (int at = 0; at < 3; at++)
        ANSWERS(FORREST_OK, forrest_blob_write(writer, piece, sizeof piece));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_blob_write(writer, NULL, 1));
    ANSWERS(FORREST_NOT_FOUND, forrest_blob_open(space, T("oak"), &blob, &bytes));
    CHECK(blob == NULL && bytes == 0);
    ANSWERS(FORREST_OK, forrest_blob_finish(writer));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_blob_finish(writer));
    CHECK(strstr(forrest_error_message(), "is finished") != NULL);
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_blob_write(writer, piece, 1));
    ANSWERS(FORREST_OK, forrest_blob_writer_destroy(writer));
    ANSWERS(FORREST_OK, forrest_blob_begin(space, T("elm"), 0, &writer));
    ANSWERS(FORREST_OK, forrest_blob_finish(writer));
    ANSWERS(FORREST_OK, forrest_blob_writer_destroy(writer));
    ANSWERS(FORREST_OK, forrest_blob_begin(space, T("ash"), 1024, &writer));
    ANSWERS(FORREST_OK, forrest_blob_write(writer, piece, 1000));
    ANSWERS(FORREST_OK, forrest_blob_writer_destroy(writer));
    struct listed listed = {0, 0};
    ANSWERS(FORREST_OK, forrest_blob_list(space, "", 0, NULL, 0, count_blob, &listed));
    CHECK(listed.count == 2 && listed.bytes == 3000);
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_blob_list(space, "", 0, NULL, 0, NULL, NULL));

    ANSWERS(FORREST_OK, forrest_snapshot(space, &past));
    ANSWERS(FORREST_OK, forrest_blob_open(space, T("oak"), &blob, NULL));
    ANSWERS(FORREST_OK, forrest_blob_delete(space, T("oak")));
    ANSWERS(FORREST_NOT_FOUND, forrest_blob_delete(space, T("oak")));
    ANSWERS(FORREST_OK, forrest_blob_read(blob, 1000, back, sizeof back, &read));
    CHECK(read == 2000 && memcmp(back, piece, 1000) == 0 && memcmp(back + 1000, piece, 1000) == 0);
    ANSWERS(FORREST_OK, forrest_blob_read(blob, 3000, NULL, 0, &read));
    ANSWERS(FORREST_OK, forrest_blob_read(blob, UINT64_MAX, back, 1, &read));
    CHECK(read == 0);
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_blob_read(blob, 0, NULL, 1, &read));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_blob_read(blob, 0, back, 1, NULL));
    ANSWERS(FORREST_OK, forrest_blob_close(blob));
    ANSWERS(FORREST_OK, forrest_blob_open(past, T("oak"), &blob, &bytes));
    CHECK(bytes == 3000);
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_blob_delete(past, T("oak")));
    ANSWERS(FORREST_OK, forrest_blob_close(blob));
    ANSWERS(FORREST_OK, forrest_close(past));
    ANSWERS(FORREST_OK, forrest_close(space));
    ANSWERS(FORREST_OK, forrest_drop_keyspace(db, "blobs"));
}

/* A keyspace keeps its merge operator. */
static void merging(forrest_db *db) {
    uint64_t can;
    forrest_db *space;
    ANSWERS(FORREST_OK, forrest_capabilities(db, &can));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_set_merge_operator(NULL, "sum"));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_merge(NULL, "k", 1, "v", 1));
    if (!(can & FORREST_CAN_MERGE)) {
        ANSWERS(FORREST_UNSUPPORTED, forrest_set_merge_operator(db, "sum"));
        ANSWERS(FORREST_UNSUPPORTED, forrest_merge(db, "k", 1, "v", 1));
        return;
    }
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_merge(db, "k", 1, "v", 1));
    ANSWERS(FORREST_OK, forrest_keyspace(db, "merged", &space));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_set_merge_operator(space, NULL));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_set_merge_operator(space, "product"));
    ANSWERS(FORREST_OK, forrest_set_merge_operator(space, "sum"));
    ANSWERS(FORREST_OK, forrest_set_merge_operator(space, "sum"));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_set_merge_operator(space, "max"));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_merge(space, "k", 1, "seven", 5));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_merge(space, NULL, 1, "seven", 5));
    ANSWERS(FORREST_OK, forrest_merge(space, "k", 1, "\0\0\0\0\0\0\0\7", 8));
    int64_t sum;
    ANSWERS(FORREST_OK, forrest_add(space, "k", 1, 1, &sum));
    CHECK(sum == 8);
    forrest_close(space);
    ANSWERS(FORREST_OK, forrest_drop_keyspace(db, "merged"));
}

/* Tables are compressed where there are any. */
static void compressing(forrest_db *db) {
    uint64_t can;
    ANSWERS(FORREST_OK, forrest_capabilities(db, &can));
    ANSWERS(can & FORREST_CAN_COMPRESS ? FORREST_OK : FORREST_UNSUPPORTED,
            forrest_set_compression(db, FORREST_COMPRESSION_LZ4));
    ANSWERS(FORREST_OK, forrest_set_compression(db, FORREST_COMPRESSION_NONE));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_set_compression(db, FORREST_COMPRESSION_ZSTD + 1));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_set_compression(NULL, FORREST_COMPRESSION_LZ4));
}

static void iterating(forrest_db *db) {
    forrest_iter *iter;
    ANSWERS(FORREST_OK, forrest_iter_create(db, &iter));
    CHECK(is_nowhere(iter));
    ANSWERS(FORREST_NOT_FOUND, forrest_iter_next(iter));
    ANSWERS(FORREST_NOT_FOUND, forrest_iter_prev(iter));
    ANSWERS(FORREST_NOT_FOUND, forrest_iter_first(iter)); /* the store is empty */
    ANSWERS(FORREST_NOT_FOUND, forrest_iter_last(iter));
    ANSWERS(FORREST_NOT_FOUND, forrest_iter_seek(iter, NULL, 0));
    ANSWERS(FORREST_NOT_FOUND, forrest_iter_seek_for_prev(iter, T("z")));
    CHECK(is_nowhere(iter));

    ANSWERS(FORREST_OK, forrest_set(db, T(""), T("0")));
    ANSWERS(FORREST_OK, forrest_set(db, T("b"), T("1")));
    ANSWERS(FORREST_OK, forrest_set(db, T("d"), T("")));
    ANSWERS(FORREST_OK, forrest_set(db, T("f"), T("3")));
    ANSWERS(FORREST_OK, forrest_iter_first(iter));
    CHECK(is_at(iter, "", "0"));
    ANSWERS(FORREST_OK, forrest_iter_next(iter));
    CHECK(is_at(iter, "b", "1"));
    ANSWERS(FORREST_OK, forrest_iter_next(iter));
    CHECK(is_at(iter, "d", ""));
    ANSWERS(FORREST_OK, forrest_iter_prev(iter));
    CHECK(is_at(iter, "b", "1"));
    ANSWERS(FORREST_OK, forrest_iter_last(iter));
    CHECK(is_at(iter, "f", "3"));
    ANSWERS(FORREST_NOT_FOUND, forrest_iter_next(iter));
    CHECK(is_nowhere(iter));
    ANSWERS(FORREST_NOT_FOUND, forrest_iter_prev(iter)); /* an iterator at no pair stays so */
    ANSWERS(FORREST_OK, forrest_iter_seek(iter, T("c")));
    CHECK(is_at(iter, "d", ""));
    ANSWERS(FORREST_OK, forrest_iter_seek(iter, T("d")));
    CHECK(is_at(iter, "d", ""));
    ANSWERS(FORREST_NOT_FOUND, forrest_iter_seek(iter, T("g")));
    CHECK(is_nowhere(iter));
    ANSWERS(FORREST_OK, forrest_iter_seek_for_prev(iter, T("c")));
    CHECK(is_at(iter, "b", "1"));
    ANSWERS(FORREST_OK, forrest_iter_seek_for_prev(iter, T("d")));
    CHECK(is_at(iter, "d", ""));
    ANSWERS(FORREST_OK, forrest_iter_seek_for_prev(iter, NULL, 0));
    CHECK(is_at(iter, "", "0"));
    ANSWERS(FORREST_NOT_FOUND, forrest_iter_prev(iter));
    ANSWERS(FORREST_OK, forrest_iter_seek(iter, NULL, 0));
    CHECK(is_at(iter, "", "0"));

    /* After a move that failed, a loop over valid ends, the status is the error, and the next move may succeed. */
    const void *found = JUNK;
    size_t bytes = 77;
    ANSWERS(FORREST_LIMIT, forrest_iter_seek(iter, "d", SIZE_MAX));
    CHECK(!forrest_iter_valid(iter));
    ANSWERS(FORREST_LIMIT, forrest_iter_status(iter));
    ANSWERS(FORREST_LIMIT, forrest_iter_key(iter, &found, &bytes));
    CHECK(found == NULL && bytes == 0);
    found = JUNK;
    bytes = 77;
    ANSWERS(FORREST_LIMIT, forrest_iter_value(iter, &found, &bytes));
    CHECK(found == NULL && bytes == 0);
    ANSWERS(FORREST_OK, forrest_iter_next(iter)); /* from where it was */
    CHECK(is_at(iter, "b", "1"));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_iter_seek(iter, NULL, 1));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_iter_status(iter));
    ANSWERS(FORREST_LIMIT, forrest_iter_seek_for_prev(iter, "d", SIZE_MAX));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_iter_seek_for_prev(iter, NULL, 1));
    ANSWERS(FORREST_OK, forrest_iter_first(iter));
    CHECK(is_at(iter, "", "0"));

    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_iter_key(iter, NULL, &bytes));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_iter_key(iter, &found, NULL));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_iter_value(iter, NULL, &bytes));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_iter_value(iter, &found, NULL));
    CHECK(is_at(iter, "", "0")); /* those were no moves */
    forrest_iter_destroy(iter);

    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_iter_create(db, NULL));
    iter = JUNK;
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_iter_create(NULL, &iter));
    CHECK(iter == NULL);
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_iter_first(NULL));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_iter_last(NULL));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_iter_next(NULL));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_iter_prev(NULL));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_iter_seek(NULL, T("d")));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_iter_seek_for_prev(NULL, T("d")));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_iter_status(NULL));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_iter_key(NULL, &found, &bytes));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_iter_value(NULL, &found, &bytes));
    CHECK(!forrest_iter_valid(NULL));
    forrest_iter_destroy(NULL);
    ANSWERS(FORREST_OK, forrest_delete(db, NULL, 0));
    ANSWERS(FORREST_OK, forrest_delete(db, T("b")));
    ANSWERS(FORREST_OK, forrest_delete(db, T("d")));
    ANSWERS(FORREST_OK, forrest_delete(db, T("f")));
}

/* The stores in the kernel. With another kind of URL it is unknown whether the module is loaded. */
static void listing(const char *url) {
    char **names = JUNK;
    size_t count = 77;
    const int32_t code = forrest_llds_list(&names, &count);
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_llds_list(NULL, &count));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_llds_list(&names, NULL));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_llds_destroy(NULL));
    if (strncmp(url, "llds:", 5) != 0) {
        if (code == FORREST_OK)
            forrest_free(names);
        else
            CHECK(code < 0 && names == NULL && count == 0);
        return;
    }
    CHECK(code == FORREST_OK);
    forrest_free(names);
    forrest_db *db;
    ANSWERS(FORREST_OK, forrest_open("llds:one that is listed", &db));
    ANSWERS(FORREST_OK, forrest_llds_list(&names, &count));
    bool own = false, other = false;
    for (size_t at = 0; at < count; at++) {
        own |= strcmp(names[at], "one that is listed") == 0;
        other |= strcmp(names[at], url + 5) == 0;
    }
    CHECK(own && other);
    forrest_free(names);
    ANSWERS(FORREST_OK, forrest_llds_destroy("one that is listed"));
    ANSWERS(FORREST_NOT_FOUND, forrest_llds_destroy("one that is listed"));
    ANSWERS(FORREST_OK, forrest_close(db));
}

#define THREADS 4
#define KEYS 500

struct worker {
    forrest_db *db;
    int number;
};

static void *work(void *argument) {
    struct worker *worker = argument;
    CHECK(strcmp(forrest_error_message(), "") == 0); /* no call of this thread has failed */
    for (int at = 0; at < KEYS; at++) {
        char key[30];
        size_t bytes = (size_t)snprintf(key, sizeof key, "%d/%05d", worker->number, at);
        ANSWERS(FORREST_OK, forrest_set(worker->db, key, bytes, key, bytes));
        CHECK(has(worker->db, key, bytes, key, bytes));
        /* Each thread has its own message. */
        CHECK(forrest_set(worker->db, NULL, (size_t)worker->number + 1, NULL, 0) == FORREST_INVALID_ARGUMENT);
        char expected[30];
        snprintf(expected, sizeof expected, "its length is %d", worker->number + 1);
        CHECK(strstr(forrest_error_message(), expected) != NULL);
    }
    return NULL;
}

static void threads(forrest_db *db) {
    pthread_t threads[THREADS];
    struct worker workers[THREADS];
    for (int at = 0; at < THREADS; at++) {
        workers[at] = (struct worker){db, at};
        CHECK(pthread_create(&threads[at], NULL, work, &workers[at]) == 0);
    }
    for (int at = 0; at < THREADS; at++)
        CHECK(pthread_join(threads[at], NULL) == 0);
    forrest_iter *iter;
    ANSWERS(FORREST_OK, forrest_iter_create(db, &iter));
    int found = 0;
    for (forrest_iter_first(iter); forrest_iter_valid(iter); forrest_iter_next(iter))
        found++;
    ANSWERS(FORREST_OK, forrest_iter_status(iter));
    CHECK(found == THREADS * KEYS);
    forrest_iter_destroy(iter);
}

/* Keys in the kernel have at most 4,096 bytes. A longer one makes a change of a batch fail, and none is applied. */
static void limits_of_the_home(forrest_db *db, const char *url) {
    static char key[65535];
    const bool in_kernel = strncmp(url, "llds", 4) == 0;
    const size_t longest = in_kernel ? 4096 : 65535;
    memset(key, 'k', sizeof key);
    ANSWERS(FORREST_OK, forrest_set(db, key, longest, T("v")));
    CHECK(has(db, key, longest, T("v")));
    ANSWERS(FORREST_OK, forrest_delete(db, key, longest));
    if (!in_kernel)
        return;
    ANSWERS(FORREST_LIMIT, forrest_set(db, key, longest + 1, T("v")));
    forrest_batch *batch;
    ANSWERS(FORREST_OK, forrest_batch_create(&batch));
    ANSWERS(FORREST_OK, forrest_batch_set(batch, T("first"), T("v")));
    ANSWERS(FORREST_OK, forrest_batch_set(batch, key, longest + 1, T("v")));
    ANSWERS(FORREST_LIMIT, forrest_write(db, batch));
    CHECK(strstr(forrest_error_message(), "operation 1") != NULL);
    CHECK(has_not(db, T("first")));
    forrest_batch_destroy(batch);
}

/* Held values and iterators outlive the handle of the store. */
static void outliving(forrest_db *db, const char *url) {
    forrest_iter *iter;
    forrest_value *value;
    const void *data;
    size_t bytes;
    ANSWERS(FORREST_OK, forrest_set(db, T("last"), T("of all")));
    ANSWERS(FORREST_OK, forrest_iter_create(db, &iter));
    ANSWERS(FORREST_OK, forrest_get(db, T("last"), &value));
    ANSWERS(FORREST_OK, forrest_close(db));
    ANSWERS(FORREST_OK, forrest_iter_last(iter));
    CHECK(is_at(iter, "last", "of all"));
    const bool on_disk = strchr(url, ':') == NULL;
    if (on_disk)
        ANSWERS(FORREST_BUSY, forrest_open(url, &db));
    forrest_iter_destroy(iter);
    ANSWERS(FORREST_OK, forrest_value_data(value, &data, &bytes));
    CHECK(bytes == 6 && memcmp(data, "of all", 6) == 0);
    forrest_value_release(value);
    if (on_disk) {
        ANSWERS(FORREST_OK, forrest_open(url, &db));
        CHECK(has(db, T("last"), T("of all")));
        ANSWERS(FORREST_OK, forrest_close(db));
    }
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fputs("api URL\n", stderr);
        return 2;
    }
    versions_and_words();
    opening();
    forrest_db *db;
    ANSWERS(FORREST_OK, forrest_open(argv[1], &db));
    setting_and_deleting(db);
    reading_into_a_buffer(db);
    reading_into_new_memory(db);
    holding_values(db);
    batches(db);
    ingesting(db);
    values_in_pieces(db);
    blobs(db);
    compressing(db);
    merging(db);
    iterating(db);
    threads(db);
    listing(argv[1]);
    limits_of_the_home(db, argv[1]);
    outliving(db, argv[1]);
    puts("all is as it should be");
    return checks > 0 ? 0 : 1;
}

/* shim.c: see shim.h. */
#include "shim.h"

#include <stdlib.h>
#include <string.h>

#define DB(handle) ((forrest_db *)(handle))
#define TX(handle) ((forrest_transaction *)(handle))

static const char no_memory[] = "out of space: no memory for a result";

static char *copied(const void *from, size_t bytes) {
    char *to = malloc(bytes == 0 ? 1 : bytes);
    if (to != NULL && bytes != 0)
        memcpy(to, from, bytes);
    return to;
}

static fgo_result result(int32_t code) {
    fgo_result r = {code, FGO_NONE, 0, 0, NULL, 0};
    if (code < 0) {
        const char *message = forrest_error_message();
        size_t op = forrest_error_op();
        r.data_bytes = strlen(message);
        r.data = copied(message, r.data_bytes);
        if (op < FGO_NONE)
            r.mark = (uint32_t)op;
    }
    return r;
}

static fgo_result failed(int32_t code, const char *message) {
    fgo_result r = {code, FGO_NONE, 0, 0, copied(message, strlen(message)), strlen(message)};
    return r;
}

static fgo_result with(int32_t code, uint64_t first) {
    fgo_result r = result(code);
    r.first = first;
    return r;
}

/* A result with the bytes of a value, which is released. */
static fgo_result with_value(int32_t code, forrest_value *value) {
    fgo_result r = result(code);
    const void *data = NULL;
    size_t bytes = 0;
    if (value == NULL)
        return r;
    forrest_value_data(value, &data, &bytes);
    r.data = copied(data, bytes);
    r.data_bytes = bytes;
    r.first = bytes;
    forrest_value_release(value);
    return r.data == NULL ? failed(FORREST_OUT_OF_SPACE, no_memory) : r;
}

fgo_result fgo_open(const char *url, const char *log, bool has_secret, const uint8_t *secret, size_t secret_bytes,
                    const uint64_t *options, size_t count) {
    forrest_options *set = NULL;
    forrest_db *db = NULL;
    int32_t code = forrest_options_create(&set);
    for (size_t i = 0; code == FORREST_OK && i < count; i++)
        code = forrest_options_set(set, (int32_t)options[2 * i], options[2 * i + 1]);
    if (code == FORREST_OK && log != NULL)
        code = forrest_options_set_log_directory(set, log);
    if (code == FORREST_OK && has_secret)
        code = forrest_options_set_encryption_key(set, secret, secret_bytes);
    if (code == FORREST_OK)
        code = forrest_open_with(url, set, &db);
    fgo_result r = with(code, (uint64_t)(uintptr_t)db);
    forrest_options_destroy(set);
    return r;
}

fgo_result fgo_close(int kind, uintptr_t handle) {
    switch (kind) {
    case FGO_STORE: return result(forrest_close(DB(handle)));
    case FGO_TRANSACTION: return result(forrest_transaction_destroy(TX(handle)));
    case FGO_INGEST: return result(forrest_ingest_destroy((forrest_ingest *)handle));
    case FGO_BLOB_WRITER: return result(forrest_blob_writer_destroy((forrest_blob_writer *)handle));
    case FGO_BLOB: return result(forrest_blob_close((forrest_blob *)handle));
    default: return result(forrest_changes_destroy((forrest_changes *)handle));
    }
}

fgo_result fgo_keyspace(uintptr_t db, const char *name) {
    forrest_db *keyspace = NULL;
    int32_t code = forrest_keyspace(DB(db), name, &keyspace);
    return with(code, (uint64_t)(uintptr_t)keyspace);
}

fgo_result fgo_keyspaces(uintptr_t db) {
    char **names = NULL;
    size_t count = 0, bytes = 0;
    fgo_result r = result(forrest_keyspaces(DB(db), &names, &count));
    if (r.code != FORREST_OK)
        return r;
    for (size_t i = 0; i < count; i++)
        bytes += strlen(names[i]) + 1;
    char *to = r.data = malloc(bytes + 1);
    for (size_t i = 0; to != NULL && i < count; i++) {
        size_t length = strlen(names[i]) + 1;
        memcpy(to, names[i], length);
        to += length;
    }
    r.data_bytes = bytes;
    forrest_free(names);
    return r.data == NULL ? failed(FORREST_OUT_OF_SPACE, no_memory) : r;
}

fgo_result fgo_drop_keyspace(uintptr_t db, const char *name) {
    return result(forrest_drop_keyspace(DB(db), name));
}

fgo_result fgo_snapshot(uintptr_t db) {
    forrest_db *snapshot = NULL;
    int32_t code = forrest_snapshot(DB(db), &snapshot);
    return with(code, (uint64_t)(uintptr_t)snapshot);
}

fgo_result fgo_sequence(uintptr_t db) {
    uint64_t sequence = 0;
    int32_t code = forrest_snapshot_sequence(DB(db), &sequence);
    return with(code, sequence);
}

fgo_result fgo_get(uintptr_t db, const uint8_t *key, size_t key_bytes, uint8_t *value, size_t value_bytes) {
    size_t found = 0;
    int32_t code = forrest_get_into(DB(db), key, key_bytes, value, value_bytes, &found);
    return with(code, found);
}

fgo_result fgo_get_many(uintptr_t db, const uint8_t *keys, size_t bytes, size_t count) {
    /* The keys, each after its length in 4 bytes. The result: the lengths of all values in 8 bytes each, or
     * FORREST_ABSENT, and then the values. */
    const void **at = calloc(count + 1, sizeof *at);
    size_t *lengths = calloc(count + 1, sizeof *lengths);
    forrest_value **values = calloc(count + 1, sizeof *values);
    fgo_result r = failed(FORREST_OUT_OF_SPACE, no_memory);
    if (at != NULL && lengths != NULL && values != NULL) {
        const uint8_t *end = keys + bytes;
        for (size_t i = 0; i < count && keys + 4 <= end; i++) {
            uint32_t length;
            memcpy(&length, keys, 4);
            at[i] = keys + 4;
            lengths[i] = length;
            keys += 4 + (size_t)length;
        }
        free(r.data);
        r = result(forrest_multi_get(DB(db), at, lengths, count, values));
    }
    if (r.code >= 0) {
        size_t whole = 8 * count;
        for (size_t i = 0; i < count; i++) {
            const void *data = NULL;
            lengths[i] = 0;
            if (values[i] != NULL)
                forrest_value_data(values[i], &data, &lengths[i]);
            at[i] = data;
            whole += lengths[i];
        }
        r.data = malloc(whole + 1);
        r.data_bytes = whole;
        size_t place = 8 * count;
        for (size_t i = 0; r.data != NULL && i < count; i++) {
            uint64_t length = values[i] == NULL ? UINT64_MAX : lengths[i];
            memcpy(r.data + 8 * i, &length, 8);
            if (lengths[i] != 0)
                memcpy(r.data + place, at[i], lengths[i]);
            place += lengths[i];
        }
        for (size_t i = 0; i < count; i++)
            forrest_value_release(values[i]);
        if (r.data == NULL)
            r = failed(FORREST_OUT_OF_SPACE, no_memory);
    }
    free(at);
    free(lengths);
    free(values);
    return r;
}

fgo_result fgo_has(uintptr_t db, const uint8_t *key, size_t key_bytes) {
    return result(forrest_contains(DB(db), key, key_bytes));
}

fgo_result fgo_count(uintptr_t db, const uint8_t *start, size_t start_bytes, const uint8_t *end, size_t end_bytes) {
    uint64_t keys = 0;
    int32_t code = forrest_count(DB(db), start, start_bytes, end, end_bytes, &keys);
    return with(code, keys);
}

fgo_result fgo_approximate(uintptr_t db, const uint8_t *start, size_t start_bytes, const uint8_t *end, size_t end_bytes) {
    uint64_t keys = 0, bytes = 0;
    int32_t code = forrest_approximate(DB(db), start, start_bytes, end, end_bytes, &keys, &bytes);
    fgo_result r = with(code, keys);
    r.second = bytes;
    return r;
}

/* A page of pairs: the length of a key in 4 bytes, that of its value in 4, the key and the value. */
typedef struct {
    uint8_t *page;
    size_t bytes, used;
    uint64_t pairs_left;
    /* The bytes that the first pair needs, if it does not fit in the page. */
    size_t needed;
    bool is_full;
} page;

static bool page_add(page *to, const void *key, size_t key_bytes, const void *value, size_t value_bytes) {
    size_t needed = 8 + key_bytes + value_bytes;
    if (to->pairs_left == 0 || needed > to->bytes - to->used) {
        to->needed = to->used == 0 ? needed : 0;
        to->is_full = true;
        return false;
    }
    uint8_t *at = to->page + to->used;
    uint32_t lengths[2] = {(uint32_t)key_bytes, (uint32_t)value_bytes};
    memcpy(at, lengths, 8);
    if (key_bytes != 0)
        memcpy(at + 8, key, key_bytes);
    if (value_bytes != 0)
        memcpy(at + 8 + key_bytes, value, value_bytes);
    to->used += needed;
    to->pairs_left--;
    /* The pair that the caller wants last ends the scan at once: the next one is not read. */
    to->is_full = to->pairs_left == 0;
    return !to->is_full;
}

static bool page_see(void *context, const void *key, size_t key_bytes, const void *value, size_t value_bytes) {
    return page_add(context, key, key_bytes, value, value_bytes);
}

static bool page_see_blob(void *context, const void *key, size_t key_bytes, uint64_t blob_bytes) {
    return page_add(context, key, key_bytes, &blob_bytes, sizeof blob_bytes);
}

static int order(const void *a, size_t a_bytes, const void *b, size_t b_bytes) {
    size_t least = a_bytes < b_bytes ? a_bytes : b_bytes;
    int sign = least == 0 ? 0 : memcmp(a, b, least);
    return sign != 0 ? sign : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

/* Keys alone, by an iterator that reads no values. */
static int32_t page_keys(page *to, uintptr_t db, int flags, const void *start, size_t start_bytes, const void *end,
                         size_t end_bytes) {
    forrest_iter *iter = NULL;
    bool back = flags & FGO_REVERSE, has_end = flags & FGO_HAS_END;
    int32_t code = forrest_iter_create_keys(DB(db), &iter);
    if (code == FORREST_OK) {
        if (!back)
            code = forrest_iter_seek(iter, start, start_bytes);
        else if (has_end)
            code = forrest_iter_seek_for_prev(iter, end, end_bytes);
        else
            code = forrest_iter_last(iter);
    }
    while (code == FORREST_OK) {
        const void *key = NULL;
        size_t key_bytes = 0;
        code = forrest_iter_key(iter, &key, &key_bytes);
        if (code != FORREST_OK)
            break;
        bool is_at_end = has_end && order(key, key_bytes, end, end_bytes) >= 0;
        if (is_at_end && !back)
            break;
        if (back && order(key, key_bytes, start, start_bytes) < 0)
            break;
        if (!is_at_end && !page_add(to, key, key_bytes, NULL, 0))
            break;
        code = back ? forrest_iter_prev(iter) : forrest_iter_next(iter);
    }
    forrest_iter_destroy(iter);
    return code == FORREST_NOT_FOUND ? FORREST_OK : code;
}

fgo_result fgo_page(uintptr_t db, int flags, const uint8_t *start, size_t start_bytes, const uint8_t *end, size_t end_bytes,
                    uint64_t pairs_max, uint8_t *to, size_t to_bytes) {
    page filled = {to, to_bytes, 0, pairs_max, 0, false};
    int32_t code;
    if (!(flags & FGO_HAS_END))
        end = NULL, end_bytes = 0;
    if (flags & FGO_KEYS)
        code = page_keys(&filled, db, flags, start, start_bytes, end, end_bytes);
    else if (flags & FGO_BLOBS)
        code = forrest_blob_list(DB(db), start, start_bytes, end, end_bytes, page_see_blob, &filled);
    else if (flags & FGO_REVERSE)
        code = forrest_scan_back(DB(db), start, start_bytes, end, end_bytes, page_see, &filled);
    else
        code = forrest_scan(DB(db), start, start_bytes, end, end_bytes, page_see, &filled);
    fgo_result r = with(code, filled.used);
    r.second = filled.needed;
    if (code >= 0)
        r.mark = filled.is_full;
    return r;
}

fgo_result fgo_set(uintptr_t db, const uint8_t *key, size_t key_bytes, const uint8_t *value, size_t value_bytes) {
    return result(forrest_set(DB(db), key, key_bytes, value, value_bytes));
}

fgo_result fgo_delete(uintptr_t db, const uint8_t *key, size_t key_bytes) {
    return result(forrest_delete(DB(db), key, key_bytes));
}

fgo_result fgo_delete_range(uintptr_t db, const uint8_t *start, size_t start_bytes, const uint8_t *end, size_t end_bytes) {
    return result(forrest_delete_range(DB(db), start, start_bytes, end, end_bytes));
}

fgo_result fgo_add(uintptr_t db, const uint8_t *key, size_t key_bytes, int64_t delta) {
    int64_t sum = 0;
    int32_t code = forrest_add(DB(db), key, key_bytes, delta, &sum);
    return with(code, (uint64_t)sum);
}

fgo_result fgo_merge(uintptr_t db, const uint8_t *key, size_t key_bytes, const uint8_t *operand, size_t operand_bytes) {
    return result(forrest_merge(DB(db), key, key_bytes, operand, operand_bytes));
}

fgo_result fgo_merge_operator(uintptr_t db, const char *name) {
    return result(forrest_set_merge_operator(DB(db), name));
}

fgo_result fgo_cas(uintptr_t db, const uint8_t *key, size_t key_bytes, const uint8_t *expected, size_t expected_bytes,
                   const uint8_t *desired, size_t desired_bytes) {
    forrest_value *found = NULL;
    int32_t code =
        forrest_compare_and_swap(DB(db), key, key_bytes, expected, expected_bytes, desired, desired_bytes, &found);
    return with_value(code, found);
}

/* Reads a number of a batch's encoding, or fails with 0. */
static bool take(const uint8_t **at, const uint8_t *end, void *to, size_t bytes) {
    if ((size_t)(end - *at) < bytes)
        return false;
    memcpy(to, *at, bytes);
    *at += bytes;
    return true;
}

/* Bytes after their length, in 8 bytes; the length FORREST_ABSENT is null. */
static bool take_bytes(const uint8_t **at, const uint8_t *end, const void **bytes, size_t *length) {
    uint64_t given;
    if (!take(at, end, &given, 8))
        return false;
    if (given == UINT64_MAX) {
        *bytes = NULL;
        *length = FORREST_ABSENT;
        return true;
    }
    if ((uint64_t)(end - *at) < given)
        return false;
    *bytes = *at;
    *length = (size_t)given;
    *at += given;
    return true;
}

static int32_t add_change(forrest_batch *batch, const uint8_t **at, const uint8_t *end) {
    const void *key, *value, *other;
    size_t key_bytes, value_bytes, other_bytes;
    int64_t number;
    switch (*(*at)++) {
    case FGO_SET:
        if (take_bytes(at, end, &key, &key_bytes) && take_bytes(at, end, &value, &value_bytes))
            return forrest_batch_set(batch, key, key_bytes, value, value_bytes);
        break;
    case FGO_DELETE:
        if (take_bytes(at, end, &key, &key_bytes))
            return forrest_batch_delete(batch, key, key_bytes);
        break;
    case FGO_DELETE_RANGE:
        if (take_bytes(at, end, &key, &key_bytes) && take_bytes(at, end, &value, &value_bytes))
            return forrest_batch_delete_range(batch, key, key_bytes, value, value_bytes);
        break;
    case FGO_DELETE_FROM:
        if (take_bytes(at, end, &key, &key_bytes))
            return forrest_batch_delete_range(batch, key, key_bytes, NULL, 0);
        break;
    case FGO_ADD:
        if (take_bytes(at, end, &key, &key_bytes) && take(at, end, &number, 8))
            return forrest_batch_add(batch, key, key_bytes, number);
        break;
    case FGO_CAS:
        if (take_bytes(at, end, &key, &key_bytes) && take_bytes(at, end, &value, &value_bytes) &&
            take_bytes(at, end, &other, &other_bytes))
            return forrest_batch_compare_and_swap(batch, key, key_bytes, value, value_bytes, other, other_bytes);
        break;
    case FGO_ON:
        if (take(at, end, &number, 8))
            return forrest_batch_on(batch, DB((uintptr_t)number));
        break;
    }
    return FORREST_INTERNAL;
}

fgo_result fgo_write(uintptr_t db, const uint8_t *changes, size_t bytes, uint64_t durability) {
    forrest_batch *batch = NULL;
    const uint8_t *at = changes, *end = changes + bytes;
    int32_t code = forrest_batch_create(&batch);
    uint32_t change = 0;
    while (code == FORREST_OK && at < end) {
        bool counts = *at != FGO_ON;
        code = add_change(batch, &at, end);
        change += counts && code == FORREST_OK;
    }
    fgo_result r;
    if (code == FORREST_OK) {
        r = result(forrest_write_with(DB(db), batch, durability));
    } else {
        r = result(code);
        r.mark = change;
    }
    forrest_batch_destroy(batch);
    return r;
}

fgo_result fgo_tx_begin(uintptr_t db) {
    forrest_transaction *tx = NULL;
    int32_t code = forrest_transaction_begin(DB(db), &tx);
    return with(code, (uint64_t)(uintptr_t)tx);
}

fgo_result fgo_tx_on(uintptr_t tx, uintptr_t db) {
    return result(forrest_transaction_on(TX(tx), DB(db)));
}

fgo_result fgo_tx_get(uintptr_t tx, bool lock, const uint8_t *key, size_t key_bytes, uint8_t *value, size_t value_bytes) {
    forrest_value *found = NULL;
    int32_t code = lock ? forrest_transaction_get_for_update(TX(tx), key, key_bytes, &found)
                        : forrest_transaction_get(TX(tx), key, key_bytes, &found);
    const void *data = NULL;
    size_t bytes = 0;
    if (code != FORREST_OK)
        return result(code);
    forrest_value_data(found, &data, &bytes);
    if (bytes > value_bytes)
        return with_value(code, found);
    if (bytes != 0)
        memcpy(value, data, bytes);
    forrest_value_release(found);
    return with(code, bytes);
}

fgo_result fgo_tx_has(uintptr_t tx, const uint8_t *key, size_t key_bytes) {
    return result(forrest_transaction_contains(TX(tx), key, key_bytes));
}

fgo_result fgo_tx_lock(uintptr_t tx, const uint8_t *key, size_t key_bytes) {
    return result(forrest_transaction_lock(TX(tx), key, key_bytes));
}

fgo_result fgo_tx_lock_wait(uintptr_t tx, uint64_t milliseconds) {
    return result(forrest_transaction_set_lock_wait(TX(tx), milliseconds));
}

fgo_result fgo_tx_range(uintptr_t tx, const uint8_t *start, size_t start_bytes, const uint8_t *end, size_t end_bytes) {
    return result(forrest_transaction_range(TX(tx), start, start_bytes, end, end_bytes));
}

fgo_result fgo_tx_move(uintptr_t tx, bool back) {
    /* The result: the key, and then the value; `first` and `second` are their lengths. */
    forrest_value *key = NULL, *value = NULL;
    int32_t code = back ? forrest_transaction_prev(TX(tx), &key, &value) : forrest_transaction_next(TX(tx), &key, &value);
    fgo_result r = result(code);
    if (code != FORREST_OK)
        return r;
    const void *key_data = NULL, *value_data = NULL;
    size_t key_bytes = 0, value_bytes = 0;
    forrest_value_data(key, &key_data, &key_bytes);
    forrest_value_data(value, &value_data, &value_bytes);
    r.first = key_bytes;
    r.second = value_bytes;
    r.data_bytes = key_bytes + value_bytes;
    r.data = malloc(r.data_bytes + 1);
    if (r.data == NULL) {
        r = failed(FORREST_OUT_OF_SPACE, no_memory);
    } else {
        if (key_bytes != 0)
            memcpy(r.data, key_data, key_bytes);
        if (value_bytes != 0)
            memcpy(r.data + key_bytes, value_data, value_bytes);
    }
    forrest_value_release(key);
    forrest_value_release(value);
    return r;
}

fgo_result fgo_tx_set(uintptr_t tx, const uint8_t *key, size_t key_bytes, const uint8_t *value, size_t value_bytes) {
    return result(forrest_transaction_set(TX(tx), key, key_bytes, value, value_bytes));
}

fgo_result fgo_tx_delete(uintptr_t tx, const uint8_t *key, size_t key_bytes) {
    return result(forrest_transaction_delete(TX(tx), key, key_bytes));
}

fgo_result fgo_tx_delete_range(uintptr_t tx, const uint8_t *start, size_t start_bytes, const uint8_t *end, size_t end_bytes) {
    return result(forrest_transaction_delete_range(TX(tx), start, start_bytes, end, end_bytes));
}

fgo_result fgo_tx_add(uintptr_t tx, const uint8_t *key, size_t key_bytes, int64_t delta) {
    return result(forrest_transaction_add(TX(tx), key, key_bytes, delta));
}

fgo_result fgo_tx_savepoint(uintptr_t tx) {
    uint64_t savepoint = 0;
    int32_t code = forrest_transaction_savepoint(TX(tx), &savepoint);
    return with(code, savepoint);
}

fgo_result fgo_tx_rollback_to(uintptr_t tx, uint64_t savepoint) {
    return result(forrest_transaction_rollback_to(TX(tx), savepoint));
}

fgo_result fgo_tx_commit_with(uintptr_t tx, uint64_t durability) {
    return result(forrest_transaction_commit_with(TX(tx), durability, NULL, NULL));
}

fgo_result fgo_ingest_begin(uintptr_t db) {
    forrest_ingest *ingest = NULL;
    int32_t code = forrest_ingest_begin(DB(db), &ingest);
    return with(code, (uint64_t)(uintptr_t)ingest);
}

fgo_result fgo_ingest_put(uintptr_t ingest, const uint8_t *key, size_t key_bytes, const uint8_t *value, size_t value_bytes) {
    return result(forrest_ingest_put((forrest_ingest *)ingest, key, key_bytes, value, value_bytes));
}

fgo_result fgo_ingest_finish(uintptr_t ingest) {
    uint64_t pairs = 0;
    int32_t code = forrest_ingest_finish((forrest_ingest *)ingest, &pairs);
    return with(code, pairs);
}

fgo_result fgo_blob_begin(uintptr_t db, const uint8_t *key, size_t key_bytes, uint32_t piece_bytes) {
    forrest_blob_writer *writer = NULL;
    int32_t code = forrest_blob_begin(DB(db), key, key_bytes, piece_bytes, &writer);
    return with(code, (uint64_t)(uintptr_t)writer);
}

fgo_result fgo_blob_write(uintptr_t writer, const uint8_t *bytes, size_t count) {
    return result(forrest_blob_write((forrest_blob_writer *)writer, bytes, count));
}

fgo_result fgo_blob_finish(uintptr_t writer) { return result(forrest_blob_finish((forrest_blob_writer *)writer)); }

fgo_result fgo_blob_open(uintptr_t db, const uint8_t *key, size_t key_bytes) {
    forrest_blob *blob = NULL;
    uint64_t bytes = 0;
    int32_t code = forrest_blob_open(DB(db), key, key_bytes, &blob, &bytes);
    fgo_result r = with(code, (uint64_t)(uintptr_t)blob);
    r.second = bytes;
    return r;
}

fgo_result fgo_blob_read(uintptr_t blob, uint64_t offset, uint8_t *buffer, size_t count) {
    size_t read = 0;
    int32_t code = forrest_blob_read((forrest_blob *)blob, offset, buffer, count, &read);
    return with(code, read);
}

fgo_result fgo_blob_delete(uintptr_t db, const uint8_t *key, size_t key_bytes) {
    return result(forrest_blob_delete(DB(db), key, key_bytes));
}

fgo_result fgo_changes_begin(uintptr_t db, uint64_t since, uint64_t durability) {
    forrest_changes *changes = NULL;
    int32_t code = forrest_changes_begin(DB(db), since, durability, &changes);
    return with(code, (uint64_t)(uintptr_t)changes);
}

fgo_result fgo_changes_next(uintptr_t changes, uint64_t wait_ms) {
    /* The result: the kind in 4 bytes, 1 in 4 if it ends its batch, and then the keyspace, the key and the value, each
     * after its length in 8 bytes, or FORREST_ABSENT. `first` is the sequence number. */
    forrest_change change;
    memset(&change, 0, sizeof change);
    fgo_result r = result(forrest_changes_next((forrest_changes *)changes, wait_ms, &change));
    if (r.code != FORREST_OK)
        return r;
    const void *parts[3] = {change.keyspace, change.key, change.value};
    size_t lengths[3] = {change.keyspace == NULL ? FORREST_ABSENT : strlen(change.keyspace), change.key_bytes,
                         change.value_bytes};
    r.data_bytes = 8;
    for (int i = 0; i < 3; i++)
        r.data_bytes += 8 + (lengths[i] == FORREST_ABSENT ? 0 : lengths[i]);
    char *to = r.data = malloc(r.data_bytes);
    if (to == NULL)
        return failed(FORREST_OUT_OF_SPACE, no_memory);
    memcpy(to, &change.kind, 4);
    memcpy(to + 4, &change.ends_batch, 4);
    to += 8;
    for (int i = 0; i < 3; i++) {
        uint64_t length = lengths[i] == FORREST_ABSENT ? UINT64_MAX : lengths[i];
        memcpy(to, &length, 8);
        to += 8;
        if (length != UINT64_MAX && length != 0) {
            memcpy(to, parts[i], (size_t)length);
            to += length;
        }
    }
    r.first = change.sequence;
    return r;
}

static bool go_on(void *context, uint64_t done, uint64_t whole) {
    (void)done;
    (void)whole;
    return __atomic_load_n((const int32_t *)context, __ATOMIC_RELAXED) == 0;
}

/* The text `damage` is not for Go, which may keep the result. */
static fgo_result of_backup(int32_t code, forrest_backup *backup) {
    backup->damage = NULL;
    return result(code);
}

fgo_result fgo_backup(uintptr_t db, const char *directory, const int32_t *stop, forrest_backup *backup) {
    return of_backup(
        forrest_backup_create(DB(db), directory, false, go_on, (void *)(uintptr_t)stop, backup, sizeof *backup), backup);
}

fgo_result fgo_backup_verify(const char *directory, uint64_t id, const int32_t *stop, forrest_backup *backup) {
    return of_backup(
        forrest_backup_verify(directory, NULL, 0, id, go_on, (void *)(uintptr_t)stop, backup, sizeof *backup), backup);
}

fgo_result fgo_backup_restore(const char *directory, uint64_t id, const char *to, const int32_t *stop,
                              forrest_backup *backup) {
    return of_backup(
        forrest_backup_restore(directory, NULL, 0, id, to, go_on, (void *)(uintptr_t)stop, backup, sizeof *backup), backup);
}

fgo_result fgo_do(int what, uintptr_t handle) {
    switch (what) {
    case FGO_CLEAR: return result(forrest_clear(DB(handle)));
    case FGO_SYNC: return result(forrest_sync(DB(handle)));
    case FGO_VERIFY: return result(forrest_verify(DB(handle)));
    case FGO_COMPACT: return result(forrest_compact(DB(handle)));
    case FGO_FLUSH: return result(forrest_flush(DB(handle)));
    case FGO_TRIM: return result(forrest_trim(DB(handle)));
    case FGO_SETTLE: return result(forrest_settle(DB(handle)));
    case FGO_RESUME: return result(forrest_resume(DB(handle)));
    case FGO_REFRESH: return result(forrest_refresh(DB(handle)));
    case FGO_ROTATE_DATA_KEY: return result(forrest_rotate_data_key(DB(handle)));
    case FGO_TX_COMMIT: return result(forrest_transaction_commit(TX(handle)));
    case FGO_TX_CHECK: return result(forrest_transaction_check(TX(handle)));
    case FGO_TX_ROLLBACK: return result(forrest_transaction_rollback(TX(handle)));
    default: return failed(FORREST_INTERNAL, "internal: no such call");
    }
}

fgo_result fgo_compact_range(uintptr_t db, const uint8_t *start, size_t start_bytes, const uint8_t *end, size_t end_bytes) {
    return result(forrest_compact_range(DB(db), start, start_bytes, end, end_bytes));
}

fgo_result fgo_checkpoint(uintptr_t db, const char *path) {
    return result(forrest_checkpoint(DB(db), path));
}

fgo_result fgo_rotate_key(uintptr_t db, const uint8_t *secret, size_t secret_bytes) {
    return result(forrest_rotate_key(DB(db), secret, secret_bytes));
}

fgo_result fgo_set_option(uintptr_t db, int32_t option, uint64_t value) {
    return result(forrest_set_option(DB(db), option, value));
}

fgo_result fgo_set_compression(uintptr_t db, uint64_t compression) {
    return result(forrest_set_compression(DB(db), compression));
}

fgo_result fgo_stats(uintptr_t db, forrest_stats *stats) {
    return result(forrest_get_stats(DB(db), stats, sizeof *stats));
}

fgo_result fgo_metrics(uintptr_t db) {
    void *text = NULL;
    size_t bytes = 0;
    fgo_result r = result(forrest_metrics(DB(db), &text, &bytes));
    if (r.code != FORREST_OK)
        return r;
    r.data = copied(text, bytes);
    r.data_bytes = bytes;
    forrest_free(text);
    return r.data == NULL ? failed(FORREST_OUT_OF_SPACE, no_memory) : r;
}

fgo_result fgo_capabilities(uintptr_t db) {
    uint64_t capabilities = 0;
    int32_t code = forrest_capabilities(DB(db), &capabilities);
    return with(code, capabilities);
}

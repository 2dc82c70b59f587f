/* Misuses handles in every possible way, and expects error codes: misuse URL, where URL names a new store of any home. */

#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

/* One handle of each kind. */
struct handles {
    forrest_db *db;
    forrest_options *options;
    forrest_value *value;
    forrest_batch *batch;
    forrest_transaction *transaction;
    forrest_ingest *ingest;
    forrest_changes *changes;
    forrest_blob_writer *writer;
    forrest_blob *blob;
    forrest_value_reader *reader;
    forrest_iter *iter;
};

static struct handles make(const char *url) {
    struct handles made;
    ANSWERS(FORREST_OK, forrest_open(url, &made.db));
    ANSWERS(FORREST_OK, forrest_options_create(&made.options));
    ANSWERS(FORREST_OK, forrest_set(made.db, T("key"), T("value")));
    ANSWERS(FORREST_OK, forrest_get(made.db, T("key"), &made.value));
    ANSWERS(FORREST_OK, forrest_value_reader_open(made.db, T("key"), &made.reader, NULL));
    ANSWERS(FORREST_OK, forrest_batch_create(&made.batch));
    ANSWERS(FORREST_OK, forrest_transaction_begin(made.db, &made.transaction));
    /* It is null where the home has none. */
    forrest_ingest_begin(made.db, &made.ingest);
    forrest_changes_begin(made.db, 0, FORREST_DURABILITY_DEFAULT, &made.changes);
    made.writer = NULL;
    made.blob = NULL;
    forrest_db *blobs;
    if (forrest_keyspace(made.db, "blobs", &blobs) == FORREST_OK) {
        ANSWERS(FORREST_OK, forrest_blob_begin(blobs, T("oak"), 0, &made.writer));
        ANSWERS(FORREST_OK, forrest_blob_finish(made.writer));
        ANSWERS(FORREST_OK, forrest_blob_writer_destroy(made.writer));
        ANSWERS(FORREST_OK, forrest_blob_open(blobs, T("oak"), &made.blob, NULL));
        ANSWERS(FORREST_OK, forrest_blob_begin(blobs, T("oak"), 0, &made.writer));
        ANSWERS(FORREST_OK, forrest_close(blobs));
    }
    ANSWERS(FORREST_OK, forrest_iter_create(made.db, &made.iter));
    return made;
}

static void give_back(const struct handles *handles) {
    ANSWERS(FORREST_OK, forrest_options_destroy(handles->options));
    ANSWERS(FORREST_OK, forrest_value_release(handles->value));
    ANSWERS(FORREST_OK, forrest_value_reader_close(handles->reader));
    ANSWERS(FORREST_OK, forrest_batch_destroy(handles->batch));
    ANSWERS(FORREST_OK, forrest_transaction_destroy(handles->transaction));
    ANSWERS(FORREST_OK, forrest_ingest_destroy(handles->ingest));
    ANSWERS(FORREST_OK, forrest_changes_destroy(handles->changes));
    ANSWERS(FORREST_OK, forrest_blob_writer_destroy(handles->writer));
    ANSWERS(FORREST_OK, forrest_blob_close(handles->blob));
    ANSWERS(FORREST_OK, forrest_iter_destroy(handles->iter));
    ANSWERS(FORREST_OK, forrest_close(handles->db));
}

/* Nothing is shown to this. */
static bool unseen(void *context, const void *key, size_t key_bytes, const void *value, size_t value_bytes) {
    (void)context, (void)key, (void)key_bytes, (void)value, (void)value_bytes;
    CHECK(false);
    return false;
}

static bool unseen_blob(void *context, const void *key, size_t key_bytes, uint64_t blob_bytes) {
    (void)context, (void)key, (void)key_bytes, (void)blob_bytes;
    CHECK(false);
    return false;
}

static bool unseen_in(void *context, size_t range, const void *key, size_t key_bytes, const void *value, size_t value_bytes) {
    (void)range;
    return unseen(context, key, key_bytes, value, value_bytes);
}

static bool unseen_loss(void *context, const forrest_loss *loss) {
    (void)context, (void)loss;
    CHECK(false);
    return false;
}

static bool uncalled(void *context, uint64_t done, uint64_t whole) {
    (void)context, (void)done, (void)whole;
    CHECK(false);
    return false;
}

/* A salvage of what is no store on disk fails, calls nothing, and returns that nothing was copied. */
static void salvaging_nothing(const char *url) {
    forrest_salvaged salvaged;
    const int32_t no = FORREST_INVALID_ARGUMENT;
    const char *const wrong[][2] = {{NULL, "to"}, {"from", NULL}, {"\xff", "to"}, {"from", "\xff"}, {"memory:", "to"},
                                    {"llds:from", "to"}, {"from", "memory:"}, {"", "to"}, {url, url}};
    for (size_t at = 0; at < sizeof wrong / sizeof wrong[0]; at++) {
        memset(&salvaged, 0x77, sizeof salvaged);
        ANSWERS(no, forrest_salvage(wrong[at][0], NULL, 0, wrong[at][1], uncalled, unseen_loss, NULL, &salvaged,
                                    sizeof salvaged));
        CHECK(salvaged.keyspaces == 0 && salvaged.pairs == 0 && salvaged.lost == 0);
    }
    ANSWERS(no, forrest_salvage("/nowhere/at/all", NULL, 0, "/nowhere/at/all/to", uncalled, unseen_loss, NULL, NULL, 0));
}

static bool unseen_backup(void *context, const forrest_backup *backup) {
    (void)context, (void)backup;
    CHECK(false);
    return false;
}

/* Calls on what is no directory of backups fail, call nothing, and return nothing. */
static void backups_of_nothing(const char *url) {
    forrest_backup backup;
    forrest_pruned pruned;
    const int32_t no = FORREST_INVALID_ARGUMENT;
    const char *const wrong[] = {NULL, "\xff", "memory:", "llds:from", "", url};
    const char *const none = "/nowhere/at/all";
    for (size_t at = 0; at < sizeof wrong / sizeof wrong[0]; at++) {
        memset(&backup, 0x77, sizeof backup);
        memset(&pruned, 0x77, sizeof pruned);
        ANSWERS(no, forrest_backup_list(wrong[at], NULL, 0, unseen_backup, NULL));
        ANSWERS(no, forrest_backup_verify(wrong[at], NULL, 0, 0, uncalled, NULL, &backup, sizeof backup));
        ANSWERS(no, forrest_backup_restore(wrong[at], NULL, 0, 0, "to", uncalled, NULL, &backup, sizeof backup));
        ANSWERS(no, forrest_backup_prune(wrong[at], NULL, 0, FORREST_KEEP_NEWEST, 1, &pruned, sizeof pruned));
        CHECK(backup.id == 0 && backup.damage == NULL && pruned.backups == 0 && pruned.bytes == 0);
    }
    ANSWERS(FORREST_IO, forrest_backup_list(none, NULL, 0, unseen_backup, NULL));
    ANSWERS(FORREST_IO, forrest_backup_verify(none, NULL, 0, 7, uncalled, NULL, &backup, sizeof backup));
    ANSWERS(FORREST_IO, forrest_backup_restore(none, NULL, 0, 7, "to", uncalled, NULL, &backup, sizeof backup));
    ANSWERS(FORREST_IO, forrest_backup_prune(none, NULL, 0, FORREST_KEEP_SINCE, UINT64_MAX, &pruned, sizeof pruned));
    ANSWERS(no, forrest_backup_list(none, NULL, 0, NULL, NULL));
    ANSWERS(no, forrest_backup_list(none, NULL, 32, unseen_backup, NULL));
    ANSWERS(no, forrest_backup_verify(none, "short", 5, 0, uncalled, NULL, &backup, sizeof backup));
    ANSWERS(no, forrest_backup_verify(none, NULL, 0, 0, uncalled, NULL, NULL, 0));
    ANSWERS(no, forrest_backup_restore(none, NULL, 0, 0, NULL, uncalled, NULL, &backup, sizeof backup));
    ANSWERS(no, forrest_backup_prune(none, NULL, 0, 2, 1, &pruned, sizeof pruned));
    ANSWERS(no, forrest_backup_prune(none, NULL, 0, FORREST_KEEP_NEWEST, 1, NULL, 0));
}

/* Every function refuses these handles. The batch and the options object are valid, so that only the handle is refused. */
static void refused(const struct handles *wrong, forrest_db *db, forrest_batch *batch, forrest_options *options) {
    forrest_db *made = JUNK;
    forrest_value *value = JUNK;
    forrest_iter *iter = JUNK;
    forrest_transaction *transaction = JUNK;
    void *memory = JUNK;
    const void *bytes = JUNK, *keys[] = {"key"};
    size_t length = 77, lengths[] = {3};
    char buffer[8], **names = JUNK;
    uint64_t number = 77;
    int64_t sum = 77;
    bool there = true;
    forrest_stats stats;
    const int32_t no = FORREST_INVALID_ARGUMENT;
    ANSWERS(no, forrest_options_set(wrong->options, FORREST_TAGS, 1));
    ANSWERS(no, forrest_options_set_metrics_file(wrong->options, "file"));
    ANSWERS(no, forrest_options_set_listener(wrong->options, NULL, NULL));
    ANSWERS(no, forrest_options_set_log_directory(wrong->options, "log"));
    ANSWERS(no, forrest_options_set_compaction_filter(wrong->options, NULL, NULL));
    ANSWERS(no, forrest_options_add_merge_operator(wrong->options, "longest", NULL, NULL));
    ANSWERS(no, forrest_options_set_encryption_key(wrong->options, T("0123456789abcdef0123456789abcdef")));
    ANSWERS(no, forrest_open_with("memory:", wrong->options, &made));
    CHECK(made == NULL);
    made = JUNK;
    ANSWERS(no, forrest_keyspace(wrong->db, "default", &made));
    CHECK(made == NULL);
    ANSWERS(no, forrest_keyspaces(wrong->db, &names, &length));
    CHECK(names == NULL && length == 0);
    ANSWERS(no, forrest_drop_keyspace(wrong->db, "people"));
    ANSWERS(no, forrest_snapshot(wrong->db, &made));
    ANSWERS(no, forrest_iter_create_keys(wrong->db, &iter));
    CHECK(iter == NULL);
    iter = JUNK;
    ANSWERS(no, forrest_get(wrong->db, T("key"), &value));
    CHECK(value == NULL);
    value = JUNK;
    ANSWERS(no, forrest_get_cached(wrong->db, T("key"), &value));
    CHECK(value == NULL);
    length = 77;
    ANSWERS(no, forrest_get_alloc(wrong->db, T("key"), &memory, &length));
    CHECK(memory == NULL && length == 0);
    ANSWERS(no, forrest_get_into(wrong->db, T("key"), buffer, sizeof buffer, &length));
    ANSWERS(no, forrest_multi_get(wrong->db, keys, lengths, 1, &value));
    ANSWERS(no, forrest_contains(wrong->db, T("key")));
    ANSWERS(no, forrest_count(wrong->db, T("a"), T("z"), &number));
    ANSWERS(no, forrest_approximate(wrong->db, T("a"), T("z"), &number, &number));
    ANSWERS(no, forrest_multi_scan(wrong->db, keys, lengths, keys, lengths, 1, 1, false, unseen_in, NULL));
    ANSWERS(no, forrest_prefixes_exist(wrong->db, keys, lengths, 1, &there));
    ANSWERS(no, forrest_scan(wrong->db, T("a"), T("z"), unseen, NULL));
    ANSWERS(no, forrest_scan_back(wrong->db, T("a"), T("z"), unseen, NULL));
    ANSWERS(no, forrest_set(wrong->db, T("key"), T("other")));
    ANSWERS(no, forrest_set_with_ttl(wrong->db, T("key"), T("other"), 1));
    ANSWERS(no, forrest_set_ttl(wrong->db, 1));
    ANSWERS(no, forrest_ttl(wrong->db, &number));
    ANSWERS(no, forrest_expires(wrong->db, T("key"), &number));
    ANSWERS(no, forrest_delete(wrong->db, T("key")));
    ANSWERS(no, forrest_delete_range(wrong->db, T("a"), T("z")));
    ANSWERS(no, forrest_delete_prefix(wrong->db, T("a")));
    ANSWERS(no, forrest_clear(wrong->db));
    ANSWERS(no, forrest_add(wrong->db, T("key"), 1, &sum));
    ANSWERS(no, forrest_merge(wrong->db, T("key"), T("more")));
    ANSWERS(no, forrest_set_merge_operator(wrong->db, "sum"));
    ANSWERS(no, forrest_compare_and_swap(wrong->db, T("key"), T("value"), T("other"), &value));
    ANSWERS(no, forrest_write(wrong->db, batch));
    ANSWERS(no, forrest_write(db, wrong->batch));
    ANSWERS(no, forrest_try_write(db, wrong->batch, FORREST_DURABILITY_DEFAULT, &length, &value));
    ANSWERS(no, forrest_write_with(db, wrong->batch, FORREST_DURABILITY_DEFAULT));
    ANSWERS(no, forrest_sync(wrong->db));
    ANSWERS(no, forrest_checkpoint(wrong->db, "/nowhere/at/all"));
    forrest_backup backup;
    ANSWERS(no, forrest_backup_create(wrong->db, "/nowhere/at/all", true, uncalled, NULL, &backup, sizeof backup));
    ANSWERS(no, forrest_metrics(wrong->db, &memory, &length));
    ANSWERS(no, forrest_verify(wrong->db));
    ANSWERS(no, forrest_compact(wrong->db));
    ANSWERS(no, forrest_compact_range(wrong->db, T("a"), T("z")));
    ANSWERS(no, forrest_flush(wrong->db));
    ANSWERS(no, forrest_trim(wrong->db));
    ANSWERS(no, forrest_settle(wrong->db));
    ANSWERS(no, forrest_resume(wrong->db));
    ANSWERS(no, forrest_rotate_key(wrong->db, T("0123456789abcdef0123456789abcdef")));
    ANSWERS(no, forrest_rotate_data_key(wrong->db));
    ANSWERS(no, forrest_set_option(wrong->db, FORREST_BATCH_OPS_MAX, 1));
    ANSWERS(no, forrest_refresh(wrong->db));
    ANSWERS(no, forrest_get_stats(wrong->db, &stats, sizeof stats));
    ANSWERS(no, forrest_capabilities(wrong->db, &number));
    ANSWERS(no, forrest_iter_create(wrong->db, &iter));
    CHECK(iter == NULL);
    ANSWERS(no, forrest_value_data(wrong->value, &bytes, &length));
    CHECK(bytes == NULL && length == 0);
    ANSWERS(no, forrest_batch_set(wrong->batch, T("key"), T("value")));
    ANSWERS(no, forrest_batch_set_with_ttl(wrong->batch, T("key"), T("value"), 1));
    ANSWERS(no, forrest_batch_delete(wrong->batch, T("key")));
    ANSWERS(no, forrest_batch_delete_range(wrong->batch, T("a"), T("z")));
    ANSWERS(no, forrest_batch_add(wrong->batch, T("key"), 1));
    ANSWERS(no, forrest_batch_merge(wrong->batch, T("key"), T("more")));
    ANSWERS(no, forrest_batch_compare_and_swap(wrong->batch, T("a"), T("b"), T("c")));
    ANSWERS(no, forrest_batch_compare_range(wrong->batch, T("a"), T("b"), NULL, NULL, NULL, NULL, 0));
    ANSWERS(no, forrest_batch_on(wrong->batch, db));
    ANSWERS(no, forrest_batch_size(wrong->batch, &length, &length));
    ANSWERS(no, forrest_batch_clear(wrong->batch));
    if (wrong->db != NULL)
        ANSWERS(no, forrest_batch_on(batch, wrong->db));
    ANSWERS(no, forrest_transaction_begin(wrong->db, &transaction));
    CHECK(transaction == NULL);
    ANSWERS(no, forrest_transaction_on(wrong->transaction, db));
    value = JUNK;
    ANSWERS(no, forrest_transaction_get(wrong->transaction, T("key"), &value));
    CHECK(value == NULL);
    ANSWERS(no, forrest_transaction_contains(wrong->transaction, T("key")));
    ANSWERS(no, forrest_transaction_set(wrong->transaction, T("key"), T("value")));
    ANSWERS(no, forrest_transaction_set_with_ttl(wrong->transaction, T("key"), T("value"), 1));
    ANSWERS(no, forrest_transaction_delete(wrong->transaction, T("key")));
    ANSWERS(no, forrest_transaction_add(wrong->transaction, T("key"), 1));
    ANSWERS(no, forrest_transaction_merge(wrong->transaction, T("key"), T("more")));
    ANSWERS(no, forrest_transaction_commit(wrong->transaction));
    value = JUNK;
    ANSWERS(no, forrest_transaction_commit_with(wrong->transaction, FORREST_DURABILITY_DEFAULT, NULL, &value));
    CHECK(value == NULL);
    ANSWERS(no, forrest_transaction_check(wrong->transaction));
    ANSWERS(no, forrest_transaction_rollback(wrong->transaction));
    value = JUNK;
    ANSWERS(no, forrest_transaction_get_for_update(wrong->transaction, T("key"), &value));
    CHECK(value == NULL);
    ANSWERS(no, forrest_transaction_lock(wrong->transaction, T("key")));
    ANSWERS(no, forrest_transaction_set_lock_wait(wrong->transaction, 1));
    ANSWERS(no, forrest_transaction_range(wrong->transaction, T("a"), T("z")));
    forrest_value *key = value = JUNK;
    ANSWERS(no, forrest_transaction_next(wrong->transaction, &key, &value));
    CHECK(key == NULL && value == NULL);
    ANSWERS(no, forrest_transaction_prev(wrong->transaction, NULL, NULL));
    ANSWERS(no, forrest_transaction_delete_range(wrong->transaction, T("a"), T("z")));
    number = 77;
    ANSWERS(no, forrest_transaction_savepoint(wrong->transaction, &number));
    CHECK(number == 0);
    ANSWERS(no, forrest_transaction_rollback_to(wrong->transaction, 0));
    forrest_ingest *ingest = JUNK;
    ANSWERS(no, forrest_ingest_begin(wrong->db, &ingest));
    CHECK(ingest == NULL);
    ANSWERS(no, forrest_ingest_put(wrong->ingest, T("key"), T("value")));
    uint64_t pairs = 7;
    ANSWERS(no, forrest_ingest_finish(wrong->ingest, &pairs));
    CHECK(pairs == 0);
    forrest_changes *changes = JUNK;
    ANSWERS(no, forrest_changes_begin(wrong->db, 0, FORREST_DURABILITY_DEFAULT, &changes));
    CHECK(changes == NULL);
    forrest_change change;
    ANSWERS(no, forrest_changes_next(wrong->changes, 0, &change));
    CHECK(change.sequence == 0 && change.keyspace == NULL && change.key == NULL && change.value == NULL);
    forrest_blob_writer *writer = JUNK;
    ANSWERS(no, forrest_blob_begin(wrong->db, T("key"), 0, &writer));
    CHECK(writer == NULL);
    ANSWERS(no, forrest_blob_write(wrong->writer, T("piece")));
    ANSWERS(no, forrest_blob_finish(wrong->writer));
    forrest_blob *blob = JUNK;
    ANSWERS(no, forrest_blob_open(wrong->db, T("key"), &blob, &pairs));
    CHECK(blob == NULL);
    size_t read = 7;
    ANSWERS(no, forrest_blob_read(wrong->blob, 0, buffer, sizeof buffer, &read));
    CHECK(read == 0);
    forrest_value_reader *reader = JUNK;
    pairs = 7;
    ANSWERS(no, forrest_value_reader_open(wrong->db, T("key"), &reader, &pairs));
    CHECK(reader == NULL && pairs == 0);
    read = 7;
    ANSWERS(no, forrest_value_reader_read(wrong->reader, buffer, sizeof buffer, &read));
    CHECK(read == 0);
    ANSWERS(no, forrest_blob_delete(wrong->db, T("key")));
    ANSWERS(no, forrest_blob_list(wrong->db, T("a"), T("z"), unseen_blob, NULL));
    uint64_t sequence = 7;
    ANSWERS(no, forrest_snapshot_sequence(wrong->db, &sequence));
    CHECK(sequence == 0);
    ANSWERS(no, forrest_iter_seek(wrong->iter, T("key")));
    ANSWERS(no, forrest_iter_seek_for_prev(wrong->iter, T("key")));
    ANSWERS(no, forrest_iter_first(wrong->iter));
    ANSWERS(no, forrest_iter_last(wrong->iter));
    ANSWERS(no, forrest_iter_next(wrong->iter));
    ANSWERS(no, forrest_iter_prev(wrong->iter));
    ANSWERS(no, forrest_iter_skip(wrong->iter, 1));
    ANSWERS(no, forrest_iter_park(wrong->iter));
    ANSWERS(no, forrest_iter_status(wrong->iter));
    ANSWERS(no, forrest_iter_key(wrong->iter, &bytes, &length));
    ANSWERS(no, forrest_iter_value(wrong->iter, &bytes, &length));
    CHECK(!forrest_iter_valid(wrong->iter));
    /* Closing null is allowed. */
    const int32_t back = wrong->db == NULL ? FORREST_OK : no;
    ANSWERS(back, forrest_options_destroy(wrong->options));
    ANSWERS(back, forrest_value_release(wrong->value));
    ANSWERS(back, forrest_value_reader_close(wrong->reader));
    ANSWERS(back, forrest_batch_destroy(wrong->batch));
    ANSWERS(back, forrest_transaction_destroy(wrong->transaction));
    ANSWERS(wrong->ingest == NULL ? FORREST_OK : back, forrest_ingest_destroy(wrong->ingest));
    ANSWERS(wrong->changes == NULL ? FORREST_OK : back, forrest_changes_destroy(wrong->changes));
    ANSWERS(wrong->writer == NULL ? FORREST_OK : back, forrest_blob_writer_destroy(wrong->writer));
    ANSWERS(wrong->blob == NULL ? FORREST_OK : back, forrest_blob_close(wrong->blob));
    ANSWERS(back, forrest_iter_destroy(wrong->iter));
    ANSWERS(back, forrest_close(wrong->db));
    ANSWERS(FORREST_OK, forrest_options_set(options, FORREST_TAGS, 1));
}

static void wrong_handles(const char *url) {
    const struct handles right = make(url);
    struct handles wrong = {NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL};
    refused(&wrong, right.db, right.batch, right.options);

    /* Pointers that are not handles are refused, and not followed. */
    static const uintptr_t NUMBERS[] = {1, 8, 4096, 0x1234567812345670, UINTPTR_MAX, UINTPTR_MAX - 15};
    void *memory = malloc(1);
    void *const POINTERS[] = {&wrong, (void *)"text", memory, JUNK};
    const size_t numbers = sizeof NUMBERS / sizeof NUMBERS[0], pointers = sizeof POINTERS / sizeof POINTERS[0];
    for (size_t at = 0; at < numbers + pointers; at++) {
        void *none = at < numbers ? (void *)NUMBERS[at] : POINTERS[at - numbers];
        wrong = (struct handles){none, none, none, none, none, none, none, none, none, none, none};
        refused(&wrong, right.db, right.batch, right.options);
    }
    free(memory);

    /* Handles of other kinds. */
    wrong = (struct handles){(void *)right.iter, (void *)right.db, (void *)right.options, (void *)right.value,
                             (void *)right.batch, (void *)right.transaction, (void *)right.options,
                             (void *)right.value, (void *)right.batch, (void *)right.value, (void *)right.db};
    refused(&wrong, right.db, right.batch, right.options);

    /* Closed handles, also when new ones use the same slots. */
    const struct handles gone = make("memory:");
    give_back(&gone);
    refused(&gone, right.db, right.batch, right.options);
    const struct handles later = make("memory:");
    refused(&gone, right.db, right.batch, right.options);
    CHECK(has(later.db, T("key"), T("value")) && has(right.db, T("key"), T("value")));
    give_back(&later);
    give_back(&right);
}

/* Iterators, snapshots and values keep the store open; it is closed with the last of them. */
static void closing_in_any_order(const char *url) {
    const bool on_disk = strchr(url, ':') == NULL;
    struct handles it = make(url);
    forrest_db *snapshot = NULL, *again;
    uint64_t can;
    ANSWERS(FORREST_OK, forrest_capabilities(it.db, &can));
    if (can & FORREST_CAN_SNAPSHOT)
        ANSWERS(FORREST_OK, forrest_snapshot(it.db, &snapshot));
    ANSWERS(FORREST_OK, forrest_iter_first(it.iter));
    ANSWERS(FORREST_OK, forrest_close(it.db));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_close(it.db));
    CHECK(strstr(forrest_error_message(), "handle is closed") != NULL);
    CHECK(is_at(it.iter, "key", "value"));
    ANSWERS(FORREST_NOT_FOUND, forrest_iter_next(it.iter));
    if (on_disk)
        ANSWERS(FORREST_BUSY, forrest_open(url, &again));
    ANSWERS(FORREST_OK, forrest_iter_destroy(it.iter));
    /* So does a transaction. */
    if (on_disk)
        ANSWERS(FORREST_BUSY, forrest_open(url, &again));
    ANSWERS(FORREST_OK, forrest_transaction_contains(it.transaction, T("key")));
    ANSWERS(FORREST_OK, forrest_transaction_commit(it.transaction));
    ANSWERS(FORREST_OK, forrest_transaction_destroy(it.transaction));
    ANSWERS(FORREST_OK, forrest_ingest_destroy(it.ingest));
    ANSWERS(FORREST_OK, forrest_blob_writer_destroy(it.writer));
    ANSWERS(FORREST_OK, forrest_blob_close(it.blob));
    /* And a reader of a value. */
    char piece[3];
    size_t read;
    ANSWERS(FORREST_OK, forrest_value_reader_read(it.reader, piece, sizeof piece, &read));
    ANSWERS(FORREST_OK, forrest_value_reader_close(it.reader));
    CHECK(read == 3 && memcmp(piece, "val", 3) == 0);
    if (snapshot != NULL) {
        CHECK(has(snapshot, T("key"), T("value")));
        if (on_disk)
            ANSWERS(FORREST_BUSY, forrest_open(url, &again));
        ANSWERS(FORREST_OK, forrest_close(snapshot));
    }
    if (on_disk) {
        ANSWERS(FORREST_OK, forrest_open(url, &again));
        ANSWERS(FORREST_OK, forrest_close(again));
    }
    ANSWERS(FORREST_OK, forrest_batch_destroy(it.batch));
    ANSWERS(FORREST_OK, forrest_options_destroy(it.options));
    CHECK(forrest_value_release(it.value) == FORREST_OK);
}

#define THREADS 4

static struct handles shared;
static atomic_int closed, refusals, rounds;

/* Uses a handle until it is closed, and tries to close it; exactly one thread succeeds. */
static void *use_and_close(void *unused) {
    (void)unused;
    for (int at = 0;; at++) {
        size_t bytes;
        char buffer[8];
        const int32_t code = forrest_get_into(shared.db, T("key"), buffer, sizeof buffer, &bytes);
        if (code != FORREST_OK) {
            CHECK(code == FORREST_INVALID_ARGUMENT);
            break;
        }
        CHECK(bytes == 5 && memcmp(buffer, "value", 5) == 0);
        if (at == 50)
            atomic_fetch_add(&closed, forrest_close(shared.db) == FORREST_OK);
    }
    return NULL;
}

/* Uses an iterator, a batch, a transaction, an options object and a value's reader that other threads use as well. */
static void *use_alone(void *unused) {
    (void)unused;
    for (int at = 0; at < 500; at++) {
        char piece[1];
        size_t read;
        const int32_t codes[] = {
            forrest_iter_first(shared.iter),
            forrest_batch_set(shared.batch, T("key"), T("value")),
            forrest_batch_clear(shared.batch),
            forrest_transaction_set(shared.transaction, T("key"), T("value")),
            forrest_transaction_commit(shared.transaction),
            forrest_options_set(shared.options, FORREST_TAGS, 1),
            forrest_value_reader_read(shared.reader, piece, sizeof piece, &read),
        };
        for (size_t call = 0; call < sizeof codes / sizeof codes[0]; call++) {
            CHECK(codes[call] == FORREST_OK || codes[call] == FORREST_BUSY || codes[call] == FORREST_INVALID_ARGUMENT);
            atomic_fetch_add(&refusals, codes[call] == FORREST_BUSY);
        }
    }
    atomic_fetch_add(&closed, forrest_iter_destroy(shared.iter) == FORREST_OK);
    atomic_fetch_add(&closed, forrest_batch_destroy(shared.batch) == FORREST_OK);
    atomic_fetch_add(&closed, forrest_transaction_destroy(shared.transaction) == FORREST_OK);
    atomic_fetch_add(&closed, forrest_value_reader_close(shared.reader) == FORREST_OK);
    return NULL;
}

static void in_threads(void *(*work)(void *)) {
    pthread_t threads[THREADS];
    for (int at = 0; at < THREADS; at++)
        CHECK(pthread_create(&threads[at], NULL, work, NULL) == 0);
    for (int at = 0; at < THREADS; at++)
        CHECK(pthread_join(threads[at], NULL) == 0);
}

static void several_threads(const char *url) {
    for (int round = 0; round < 10; round++) {
        ANSWERS(FORREST_OK, forrest_open(url, &shared.db));
        ANSWERS(FORREST_OK, forrest_set(shared.db, T("key"), T("value")));
        closed = 0;
        in_threads(use_and_close);
        CHECK(closed == 1);
    }
    shared = make(url);
    closed = 0;
    in_threads(use_alone);
    CHECK(closed == 4);
    ANSWERS(FORREST_OK, forrest_ingest_destroy(shared.ingest));
    ANSWERS(FORREST_OK, forrest_blob_writer_destroy(shared.writer));
    ANSWERS(FORREST_OK, forrest_blob_close(shared.blob));
    ANSWERS(FORREST_OK, forrest_options_destroy(shared.options));
    ANSWERS(FORREST_OK, forrest_value_release(shared.value));
    ANSWERS(FORREST_OK, forrest_close(shared.db));
}

/* Opens and closes handles while other threads fork. */
static void *churn(void *unused) {
    (void)unused;
    while (atomic_load(&rounds) > 0) {
        forrest_value *value;
        forrest_iter *iter;
        CHECK(forrest_get(shared.db, T("key"), &value) == FORREST_OK);
        CHECK(forrest_iter_create(shared.db, &iter) == FORREST_OK);
        CHECK(forrest_iter_first(iter) == FORREST_OK);
        CHECK(forrest_iter_destroy(iter) == FORREST_OK);
        CHECK(forrest_value_release(value) == FORREST_OK);
    }
    return NULL;
}

/* In a child, the parent's handles are refused, and the child can open stores itself. */
static void child(int generations) {
    const struct handles own = make("memory:");
    refused(&shared, own.db, own.batch, own.options);
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_contains(shared.db, T("key")));
    CHECK(strstr(forrest_error_message(), "forked") != NULL);
    CHECK(has(own.db, T("key"), T("value")));
    if (generations > 1) {
        const struct handles before = shared;
        shared = own;
        const pid_t grandchild = fork();
        CHECK(grandchild >= 0);
        if (grandchild == 0) {
            child(generations - 1);
            shared = before;
            child(1);
            _exit(0);
        }
        int status = 1;
        CHECK(waitpid(grandchild, &status, 0) == grandchild && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    give_back(&own);
}

/* Such threads may hold AddressSanitizer's own locks while another thread forks, and then the child hangs. */
#ifdef __SANITIZE_ADDRESS__
#define CHURNING 0
#else
#define CHURNING 2
#endif

static void after_fork(const char *url) {
    shared = make(url);
    rounds = 10;
    pthread_t threads[CHURNING + 1];
    for (int at = 0; at < CHURNING; at++)
        CHECK(pthread_create(&threads[at], NULL, churn, NULL) == 0);
    for (; atomic_load(&rounds) > 0; atomic_fetch_sub(&rounds, 1)) {
        const pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            child(2);
            _exit(0);
        }
        int status = 1;
        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
        CHECK(has(shared.db, T("key"), T("value")));
    }
    for (int at = 0; at < CHURNING; at++)
        CHECK(pthread_join(threads[at], NULL) == 0);
    give_back(&shared);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fputs("misuse URL\n", stderr);
        return 2;
    }
    wrong_handles(argv[1]);
    salvaging_nothing(argv[1]);
    backups_of_nothing(argv[1]);
    closing_in_any_order(argv[1]);
    several_threads(argv[1]);
    after_fork(argv[1]);
    puts("all is as it should be");
    return checks > 0 ? 0 : 1;
}

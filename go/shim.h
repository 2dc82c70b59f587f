/* shim.h: what the Go package calls of libforrest, so that each operation is one crossing from Go to C.
 *
 * Handles are numbers (uintptr_t), because Go's runtime takes small or odd pointers for defects. A call and the message
 * of its failure belong together: Go may run the next call on another thread. So every function returns a fgo_result,
 * which has both. Nothing here keeps a pointer that it was given, or calls Go. Bytes are uint8_t, not void: for void,
 * cgo looks for pointers in all of the object that the bytes are a part of, and refuses some. */
#ifndef FORREST_GO_SHIM_H
#define FORREST_GO_SHIM_H

#include <forrest.h>

typedef struct {
    /* A code of forrest.h. */
    int32_t code;
    /* The number of the change that failed, or 1 if a page has room for no further pair. */
    uint32_t mark;
    /* Results, such as a handle, a length or a number. */
    uint64_t first, second;
    /* Memory for free(): the message of an error, or the bytes of a result; or null. */
    char *data;
    size_t data_bytes;
} fgo_result;

/* For fgo_result.mark. */
#define FGO_NONE UINT32_MAX

/* For fgo_page. */
#define FGO_REVERSE 1
#define FGO_KEYS 2
#define FGO_HAS_END 4
/* Keys of blobs, and their lengths in 8 bytes. */
#define FGO_BLOBS 8

/* The calls without arguments but the handle. */
enum { FGO_CLEAR, FGO_SYNC, FGO_VERIFY, FGO_COMPACT, FGO_FLUSH, FGO_TRIM, FGO_SETTLE, FGO_RESUME, FGO_REFRESH,
       FGO_ROTATE_DATA_KEY, FGO_TX_COMMIT, FGO_TX_CHECK, FGO_TX_ROLLBACK };

/* The kinds of handles. */
enum { FGO_STORE, FGO_TRANSACTION, FGO_INGEST, FGO_CHANGES, FGO_BLOB_WRITER, FGO_BLOB };

/* The changes of a batch, each a byte; see encode in batch.go. */
enum { FGO_SET, FGO_DELETE, FGO_DELETE_RANGE, FGO_DELETE_FROM, FGO_ADD, FGO_CAS, FGO_ON };

fgo_result fgo_open(const char *url, const char *log, bool has_secret, const uint8_t *secret, size_t secret_bytes,
                    const uint64_t *options, size_t count);
fgo_result fgo_close(int kind, uintptr_t handle);
fgo_result fgo_keyspace(uintptr_t db, const char *name);
fgo_result fgo_keyspaces(uintptr_t db);
fgo_result fgo_drop_keyspace(uintptr_t db, const char *name);
fgo_result fgo_snapshot(uintptr_t db);
fgo_result fgo_sequence(uintptr_t db);

fgo_result fgo_get(uintptr_t db, const uint8_t *key, size_t key_bytes, uint8_t *value, size_t value_bytes);
fgo_result fgo_get_many(uintptr_t db, const uint8_t *keys, size_t bytes, size_t count);
fgo_result fgo_has(uintptr_t db, const uint8_t *key, size_t key_bytes);
fgo_result fgo_count(uintptr_t db, const uint8_t *start, size_t start_bytes, const uint8_t *end, size_t end_bytes);
fgo_result fgo_approximate(uintptr_t db, const uint8_t *start, size_t start_bytes, const uint8_t *end, size_t end_bytes);
fgo_result fgo_page(uintptr_t db, int flags, const uint8_t *start, size_t start_bytes, const uint8_t *end, size_t end_bytes,
                    uint64_t pairs_max, uint8_t *page, size_t page_bytes);

fgo_result fgo_set(uintptr_t db, const uint8_t *key, size_t key_bytes, const uint8_t *value, size_t value_bytes);
fgo_result fgo_delete(uintptr_t db, const uint8_t *key, size_t key_bytes);
fgo_result fgo_delete_range(uintptr_t db, const uint8_t *start, size_t start_bytes, const uint8_t *end, size_t end_bytes);
fgo_result fgo_add(uintptr_t db, const uint8_t *key, size_t key_bytes, int64_t delta);
fgo_result fgo_merge(uintptr_t db, const uint8_t *key, size_t key_bytes, const uint8_t *operand, size_t operand_bytes);
fgo_result fgo_merge_operator(uintptr_t db, const char *name);
fgo_result fgo_cas(uintptr_t db, const uint8_t *key, size_t key_bytes, const uint8_t *expected, size_t expected_bytes,
                   const uint8_t *desired, size_t desired_bytes);
fgo_result fgo_write(uintptr_t db, const uint8_t *changes, size_t bytes, uint64_t durability);

fgo_result fgo_tx_begin(uintptr_t db);
fgo_result fgo_tx_on(uintptr_t tx, uintptr_t db);
fgo_result fgo_tx_get(uintptr_t tx, bool lock, const uint8_t *key, size_t key_bytes, uint8_t *value, size_t value_bytes);
fgo_result fgo_tx_has(uintptr_t tx, const uint8_t *key, size_t key_bytes);
fgo_result fgo_tx_lock(uintptr_t tx, const uint8_t *key, size_t key_bytes);
fgo_result fgo_tx_lock_wait(uintptr_t tx, uint64_t milliseconds);
fgo_result fgo_tx_range(uintptr_t tx, const uint8_t *start, size_t start_bytes, const uint8_t *end, size_t end_bytes);
fgo_result fgo_tx_move(uintptr_t tx, bool back);
fgo_result fgo_tx_set(uintptr_t tx, const uint8_t *key, size_t key_bytes, const uint8_t *value, size_t value_bytes);
fgo_result fgo_tx_delete(uintptr_t tx, const uint8_t *key, size_t key_bytes);
fgo_result fgo_tx_delete_range(uintptr_t tx, const uint8_t *start, size_t start_bytes, const uint8_t *end, size_t end_bytes);
fgo_result fgo_tx_add(uintptr_t tx, const uint8_t *key, size_t key_bytes, int64_t delta);
fgo_result fgo_tx_savepoint(uintptr_t tx);
fgo_result fgo_tx_rollback_to(uintptr_t tx, uint64_t savepoint);
fgo_result fgo_tx_commit_with(uintptr_t tx, uint64_t durability);

fgo_result fgo_ingest_begin(uintptr_t db);
fgo_result fgo_ingest_put(uintptr_t ingest, const uint8_t *key, size_t key_bytes, const uint8_t *value, size_t value_bytes);
fgo_result fgo_ingest_finish(uintptr_t ingest);

fgo_result fgo_blob_begin(uintptr_t db, const uint8_t *key, size_t key_bytes, uint32_t piece_bytes);
fgo_result fgo_blob_write(uintptr_t writer, const uint8_t *bytes, size_t count);
fgo_result fgo_blob_finish(uintptr_t writer);
fgo_result fgo_blob_open(uintptr_t db, const uint8_t *key, size_t key_bytes);
fgo_result fgo_blob_read(uintptr_t blob, uint64_t offset, uint8_t *buffer, size_t count);
fgo_result fgo_blob_delete(uintptr_t db, const uint8_t *key, size_t key_bytes);


fgo_result fgo_changes_begin(uintptr_t db, uint64_t since, uint64_t durability);
fgo_result fgo_changes_next(uintptr_t changes, uint64_t wait_ms);

/* Backups: `stop` is read now and then, and ends the call if it is not 0. The result is in `backup`. */
fgo_result fgo_backup(uintptr_t db, const char *directory, const int32_t *stop, forrest_backup *backup);
fgo_result fgo_backup_verify(const char *directory, uint64_t id, const int32_t *stop, forrest_backup *backup);
fgo_result fgo_backup_restore(const char *directory, uint64_t id, const char *to, const int32_t *stop,
                              forrest_backup *backup);

fgo_result fgo_do(int what, uintptr_t handle);
fgo_result fgo_compact_range(uintptr_t db, const uint8_t *start, size_t start_bytes, const uint8_t *end, size_t end_bytes);
fgo_result fgo_checkpoint(uintptr_t db, const char *path);
fgo_result fgo_rotate_key(uintptr_t db, const uint8_t *secret, size_t secret_bytes);
fgo_result fgo_set_option(uintptr_t db, int32_t option, uint64_t value);
fgo_result fgo_set_compression(uintptr_t db, uint64_t compression);
fgo_result fgo_stats(uintptr_t db, forrest_stats *stats);
fgo_result fgo_metrics(uintptr_t db);
fgo_result fgo_capabilities(uintptr_t db);

#endif

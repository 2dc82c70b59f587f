/*
 * libforrest: an ordered key-value store, for C and C++. Keys and values are bytes, and keys are ordered by them.
 *
 * This file is made of the Rust code by a test (crates/forrest-c/tests/c/header.rs). Change the code, not this.
 *
 * What holds for every function:
 *
 * - A function that can fail returns a code: 0 (FORREST_OK), a positive answer such as FORREST_NOT_FOUND, or a
 *   negative error. forrest_strerror() has words for a code, forrest_error_message() tells what went wrong and where.
 * - Bytes are a pointer and a length, and may be any bytes. The pointer may be null if the length is 0; the key of
 *   length 0 is a key. What is passed in is copied or read before the function returns.
 * - Null handles, null pointers to results, null bytes of a length above 0 and lengths above the limits are answered
 *   by errors. A function that fails leaves results as null or 0.
 * - A forrest_db may be used by many threads at once; a forrest_value may be read by many. A forrest_batch and a
 *   forrest_iter may go from thread to thread, but are used by one at a time.
 * - The library sets no signal handler, and starts no thread before a store on disk is opened. It never ends the
 *   process on bad input. What is broken in itself is FORREST_INTERNAL.
 */

#ifndef FORREST_H
#define FORREST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Done.
 */
#define FORREST_OK 0

/**
 * There is no such key, or no pair where an iterator went. Not an error.
 */
#define FORREST_NOT_FOUND 1

/**
 * The value is longer than the buffer, into which nothing was written; its length was told. Not an error.
 */
#define FORREST_TOO_SMALL 2

/**
 * The operating system refused a read, a write or another call. The store is as it was.
 */
#define FORREST_IO -1

/**
 * Stored bytes are damaged; the message names file and offset. Restore them from elsewhere.
 */
#define FORREST_CORRUPT -2

/**
 * The call makes no sense as it is: a null handle, a URL that names no home. Change the call.
 */
#define FORREST_INVALID_ARGUMENT -3

/**
 * A key, a value or a batch is larger than can be stored. Make it smaller.
 */
#define FORREST_LIMIT -4

/**
 * The memory, the disk or the file descriptors are used up. Delete something or give more.
 */
#define FORREST_OUT_OF_SPACE -5

/**
 * Somebody else holds what is needed. Try again later.
 */
#define FORREST_BUSY -6

/**
 * This home cannot do this, or was not built into the library. Use another.
 */
#define FORREST_UNSUPPORTED -7

/**
 * An earlier failure made the store refuse all writes. Open it again.
 */
#define FORREST_STOPPED -8

/**
 * The library is broken in itself; please report the message. Close the store.
 */
#define FORREST_INTERNAL -100

/**
 * The number of this interface: what `forrest_abi()` returns. It grows when programs must be compiled anew.
 */
#define FORREST_ABI 1

/**
 * Changes to be made at one instant. One thread at a time may use it.
 */
typedef struct forrest_batch forrest_batch;

/**
 * An open store. Many threads may use it at once.
 */
typedef struct forrest_db forrest_db;

/**
 * A position in the order of keys: at a pair, or at none. One thread at a time may use it.
 *
 * A key that is there all the while is met exactly once, in order; one that comes or goes meanwhile may be met or not.
 */
typedef struct forrest_iter forrest_iter;

/**
 * A value that a read found, held until it is released. It stays as it was found, whatever becomes of its key and of
 * the store.
 */
typedef struct forrest_value forrest_value;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The words for a code, such as "not found"; "unknown code" for a number that is none. Never null, never freed.
 */
const char *forrest_strerror(int32_t code);

/**
 * The version of the library, such as "0.1.0". Never null, never freed.
 */
const char *forrest_version(void);

/**
 * The number of the interface that the library has. A program that may meet another library than it was compiled
 * for compares it with `FORREST_ABI` before it calls anything else.
 */
uint32_t forrest_abi(void);

/**
 * What went wrong in the last call of this thread that returned an error: the words for its kind, and what and
 * where. Empty if there was none. Never null; valid until the next call of this thread.
 */
const char *forrest_error_message(void);

/**
 * Opens a store. The URL, in UTF-8, is as for the command `forrest`: "memory:" is a new, empty store that lives as
 * long as its handle; a path is a store on disk, in a directory of its own, which is made if there is none;
 * "llds:NAME" is a store in the memory of the kernel, by its module, which all who open it share, and which is made if
 * there is none; "llds-user:NAME" is the module's engine in this process, if it was built into the library.
 *
 * `FORREST_INVALID_ARGUMENT` if `url` names no home, `FORREST_UNSUPPORTED` if its home was not built into the library,
 * `FORREST_BUSY` if a store on disk is open already, here or elsewhere, `FORREST_CORRUPT` if it is damaged,
 * `FORREST_OUT_OF_SPACE`, `FORREST_IO`.
 *
 * # Safety
 * - `url` is null, or ends with a zero byte.
 * - `db` is null or may be written to.
 */
int32_t forrest_open(const char *url,
                     forrest_db **db);

/**
 * Gives a store back. It is closed once its iterators are destroyed as well; what was written to a path is there when
 * it is opened again. Null is nothing to give back.
 *
 * # Safety
 * - `db` is null, or came from `forrest_open`, was not closed, and is used by nobody.
 */
int32_t forrest_close(forrest_db *db);

/**
 * Maps a key to a value, whether it was there or not.
 *
 * `FORREST_LIMIT` if one of them is too long (keys have 65,535 bytes at most, 4,096 in the kernel; values
 * 4,294,967,295), `FORREST_OUT_OF_SPACE`, `FORREST_IO`, `FORREST_STOPPED`.
 *
 * # Safety
 * - `db` is null, or came from `forrest_open` and is not closed.
 * - `key` has `key_bytes` bytes, and `value` has `value_bytes`, or they are null.
 */
int32_t forrest_set(forrest_db *db, const void *key, size_t key_bytes, const void *value, size_t value_bytes);

/**
 * Removes a key. `FORREST_NOT_FOUND` if it was not there; otherwise as `forrest_set`.
 *
 * # Safety
 * - `db` is null, or came from `forrest_open` and is not closed.
 * - `key` has `key_bytes` bytes, or is null.
 */
int32_t forrest_delete(forrest_db *db, const void *key, size_t key_bytes);

/**
 * Reads the value of a key and holds it: `forrest_value_data` has its bytes, `forrest_value_release` gives it back.
 * A long value is shared with a store in memory, not copied.
 *
 * `FORREST_NOT_FOUND` if the key is not there, and nothing is to be released then; `FORREST_LIMIT` if it is too long,
 * `FORREST_IO`, `FORREST_CORRUPT`.
 *
 * # Safety
 * - `db` is null, or came from `forrest_open` and is not closed.
 * - `key` has `key_bytes` bytes, or is null.
 * - `value` is null or may be written to.
 */
int32_t forrest_get(const forrest_db *db,
                    const void *key,
                    size_t key_bytes,
                    forrest_value **value);

/**
 * Reads the value of a key into memory of its own, to be given to `forrest_free`. Of a value of length 0 that is some
 * memory as well.
 *
 * `FORREST_NOT_FOUND` if the key is not there, and nothing is to be freed then; errors as of `forrest_get`, and
 * `FORREST_OUT_OF_SPACE`.
 *
 * # Safety
 * - `db` is null, or came from `forrest_open` and is not closed.
 * - `key` has `key_bytes` bytes, or is null.
 * - `value` and `value_bytes` are each null or may be written to.
 */
int32_t forrest_get_alloc(const forrest_db *db,
                          const void *key,
                          size_t key_bytes,
                          void **value,
                          size_t *value_bytes);

/**
 * Reads the value of a key into a buffer of the caller's, and tells its length.
 *
 * `FORREST_TOO_SMALL` if it is longer than the buffer: then nothing is written there, and the length is that which is
 * needed. (The value may be longer still when it is asked for again.) `FORREST_NOT_FOUND` if the key is not there;
 * errors as of `forrest_get`.
 *
 * # Safety
 * - `db` is null, or came from `forrest_open` and is not closed.
 * - `key` has `key_bytes` bytes, or is null.
 * - `buffer` has `buffer_bytes` bytes that may be written to and are not the key's, or is null.
 * - `value_bytes` is null or may be written to.
 */
int32_t forrest_get_into(const forrest_db *db,
                         const void *key,
                         size_t key_bytes,
                         void *buffer,
                         size_t buffer_bytes,
                         size_t *value_bytes);

/**
 * The bytes of a value. They stay where they are until the value is released, and are not to be changed.
 *
 * # Safety
 * - `value` is null, or came from `forrest_get` and was not released.
 * - `data` and `value_bytes` are each null or may be written to.
 */
int32_t forrest_value_data(const forrest_value *value, const void **data, size_t *value_bytes);

/**
 * Gives a value back. Its bytes are not to be read any more. Null is nothing to give back.
 *
 * # Safety
 * - `value` is null, or came from `forrest_get`, was not released, and is used by nobody.
 */
void forrest_value_release(forrest_value *value);

/**
 * Gives back memory that a function of this library says to be freed so; not by `free`, of which a process may have
 * several. Null is nothing to give back.
 *
 * # Safety
 * - `memory` is null, or came from a function that says so, and was not freed.
 */
void forrest_free(void *memory);

/**
 * Makes an empty batch, to be given to `forrest_batch_destroy`. It belongs to no store.
 *
 * # Safety
 * - `batch` is null or may be written to.
 */
int32_t forrest_batch_create(forrest_batch **batch);

/**
 * Will map a key to a value. `FORREST_LIMIT` if one of them is too long for any store.
 *
 * # Safety
 * - `batch` is null, or came from `forrest_batch_create`, was not destroyed, and is used by nobody else.
 * - `key` has `key_bytes` bytes, and `value` has `value_bytes`, or they are null.
 */
int32_t forrest_batch_set(forrest_batch *batch,
                          const void *key,
                          size_t key_bytes,
                          const void *value,
                          size_t value_bytes);

/**
 * Will remove a key, if it is there. `FORREST_LIMIT` if it is too long for any store.
 *
 * # Safety
 * - `batch` is null, or came from `forrest_batch_create`, was not destroyed, and is used by nobody else.
 * - `key` has `key_bytes` bytes, or is null.
 */
int32_t forrest_batch_delete(forrest_batch *batch, const void *key, size_t key_bytes);

/**
 * Takes all changes out and keeps the memory for the next ones.
 *
 * # Safety
 * - `batch` is null, or came from `forrest_batch_create`, was not destroyed, and is used by nobody else.
 */
int32_t forrest_batch_clear(forrest_batch *batch);

/**
 * Gives a batch back, written or not. Null is nothing to give back.
 *
 * # Safety
 * - `batch` is null, or came from `forrest_batch_create`, was not destroyed, and is used by nobody.
 */
void forrest_batch_destroy(forrest_batch *batch);

/**
 * Makes all changes of a batch at one instant, or, if it fails, none: no reader sees a part of it, and neither does
 * who opens the store after a crash. A later change of the batch sees the earlier ones. The batch stays as it is, and
 * may be written again, to other stores too.
 *
 * Errors are those of `forrest_set`; `FORREST_LIMIT` also if the batch has more than 1,048,576 changes, or more than
 * 1 GiB of keys and values. The message tells which change of the batch it was.
 *
 * # Safety
 * - `db` is null, or came from `forrest_open` and is not closed.
 * - `batch` is null, or came from `forrest_batch_create`, was not destroyed, and is not changed meanwhile.
 */
int32_t forrest_write(forrest_db *db,
                      const forrest_batch *batch);

/**
 * Makes an iterator, at no pair yet, to be given to `forrest_iter_destroy`. It outlives the handle of its store, and
 * keeps the store open.
 *
 * Each move returns `FORREST_OK` if it came to a pair, `FORREST_NOT_FOUND` if there is none, and then the iterator is at
 * none, or an error. So this is a walk:
 *
 *     for (code = forrest_iter_first(iter); code == FORREST_OK; code = forrest_iter_next(iter)) { ... }
 *     if (code < 0) { ... forrest_error_message() ... }
 *
 * # Safety
 * - `db` is null, or came from `forrest_open` and is not closed.
 * - `iter` is null or may be written to.
 */
int32_t forrest_iter_create(const forrest_db *db,
                            forrest_iter **iter);

/**
 * Moves to the first key at or after `key`.
 *
 * # Safety
 * - `iter` is null, or came from `forrest_iter_create`, was not destroyed, and is used by nobody else.
 * - `key` has `key_bytes` bytes, or is null.
 */
int32_t forrest_iter_seek(forrest_iter *iter, const void *key, size_t key_bytes);

/**
 * Moves to the last key at or before `key`.
 *
 * # Safety
 * - `iter` is null, or came from `forrest_iter_create`, was not destroyed, and is used by nobody else.
 * - `key` has `key_bytes` bytes, or is null.
 */
int32_t forrest_iter_seek_for_prev(forrest_iter *iter, const void *key, size_t key_bytes);

/**
 * Moves to the first key.
 *
 * # Safety
 * - `iter` is null, or came from `forrest_iter_create`, was not destroyed, and is used by nobody else.
 */
int32_t forrest_iter_first(forrest_iter *iter);

/**
 * Moves to the last key.
 *
 * # Safety
 * - `iter` is null, or came from `forrest_iter_create`, was not destroyed, and is used by nobody else.
 */
int32_t forrest_iter_last(forrest_iter *iter);

/**
 * Moves to the next key. At no pair it stays there.
 *
 * # Safety
 * - `iter` is null, or came from `forrest_iter_create`, was not destroyed, and is used by nobody else.
 */
int32_t forrest_iter_next(forrest_iter *iter);

/**
 * Moves to the previous key. At no pair it stays there.
 *
 * # Safety
 * - `iter` is null, or came from `forrest_iter_create`, was not destroyed, and is used by nobody else.
 */
int32_t forrest_iter_prev(forrest_iter *iter);

/**
 * True if the last move came to a pair; false for null.
 *
 * # Safety
 * - `iter` is null, or came from `forrest_iter_create`, was not destroyed, and is not moved meanwhile.
 */
bool forrest_iter_valid(const forrest_iter *iter);

/**
 * Tells whether the last move failed: its error, or `FORREST_OK`, also if it came to no pair. For loops over
 * `forrest_iter_valid`. The message is that of the move.
 *
 * # Safety
 * - `iter` is null, or came from `forrest_iter_create`, was not destroyed, and is not moved meanwhile.
 */
int32_t forrest_iter_status(const forrest_iter *iter);

/**
 * The key where the iterator is. Its bytes stay until the iterator is moved or destroyed, and are not to be changed.
 *
 * `FORREST_NOT_FOUND` at no pair; the error of the last move, if it failed.
 *
 * # Safety
 * - `iter` is null, or came from `forrest_iter_create`, was not destroyed, and is not moved meanwhile.
 * - `key` and `key_bytes` are each null or may be written to.
 */
int32_t forrest_iter_key(const forrest_iter *iter,
                         const void **key,
                         size_t *key_bytes);

/**
 * The value where the iterator is. Its bytes stay until the iterator is moved or destroyed, and are not to be changed.
 *
 * `FORREST_NOT_FOUND` at no pair; the error of the last move, if it failed; `FORREST_IO`, `FORREST_CORRUPT`.
 *
 * # Safety
 * - `iter` is null, or came from `forrest_iter_create`, was not destroyed, and is used by nobody else.
 * - `value` and `value_bytes` are each null or may be written to.
 */
int32_t forrest_iter_value(forrest_iter *iter,
                           const void **value,
                           size_t *value_bytes);

/**
 * Gives an iterator back. Null is nothing to give back.
 *
 * # Safety
 * - `iter` is null, or came from `forrest_iter_create`, was not destroyed, and is used by nobody.
 */
void forrest_iter_destroy(forrest_iter *iter);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FORREST_H */

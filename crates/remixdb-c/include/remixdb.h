/*
 * libremixdb: RemixDB's functions for programs in C, over Forrest's engine on disk.
 *
 * A test generates this file from the Rust code (crates/remixdb-c/tests/c.rs). Change the code, not this file.
 *
 * Rules for all functions:
 *
 * - Bytes are a pointer and a length. The pointer may be null if the length is 0. The function reads or copies its arguments
 *   before it returns.
 * - Given a null handle, or null bytes with a length above 0, a function returns null or false, or does nothing if it is void.
 * - Any number of threads may use a store, each with its own ref. One thread at a time may use a ref or an iterator.
 * - Keys are ordered by their bytes. A key and its value have at most REMIXDB_MAX_BYTES bytes together.
 */

#ifndef REMIXDB_H
#define REMIXDB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Maximum length of a key and its value together, in bytes. A buffer of this size has room for any key and
 * for any value.
 */
#define REMIXDB_MAX_BYTES 65500

/**
 * A position in the order of keys: at a pair, or at none. One thread at a time may use it.
 */
struct xdb_iter;

/**
 * A thread's access to a store. One thread at a time may use it.
 */
struct xdb_ref;

/**
 * An open store.
 */
struct xdb;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Opens the store in a directory, which is created if it is missing. `cache_mb` is the size of the page cache in
 * MiB, and `mt_mb` that of two memtables: one takes changes while the other becomes tables. `tags`: keep a byte
 * of hash for each key, which makes `remixdb_get` and `remixdb_probe` faster. Returns null, and prints the reason
 * on standard error, if the store cannot be opened or is open already. Close it with `remixdb_close`.
 *
 * # Safety
 * - `dir` is null, or ends with a zero byte.
 */
struct xdb *remixdb_open(const char *dir,
                         size_t cache_mb,
                         size_t mt_mb,
                         bool tags);

/**
 * Like `remixdb_open`, but takes the least space: no tags.
 *
 * # Safety
 * - As `remixdb_open`.
 */
struct xdb *remixdb_open_compact(const char *dir, size_t cache_mb, size_t mt_mb);

/**
 * Closes a store. All refs must have been given back before. An iterator that was not destroyed keeps the
 * store open. Null is ignored.
 *
 * # Safety
 * - `xdb` is null, or came from `remixdb_open` and was not closed, and no other thread uses it.
 */
void remixdb_close(struct xdb *xdb);

/**
 * Makes a ref to a store. Give it back with `remixdb_unref`. Returns null for null.
 *
 * # Safety
 * - `xdb` is null, or came from `remixdb_open` and was not closed.
 */
struct xdb_ref *remixdb_ref(struct xdb *xdb);

/**
 * Gives a ref back, and returns its store. Returns null for null.
 *
 * # Safety
 * - `xref` is null, or came from `remixdb_ref` and was not given back, and no other thread uses it.
 */
struct xdb *remixdb_unref(struct xdb_ref *xref);

/**
 * Maps a key to a value. False if both together have more than `REMIXDB_MAX_BYTES` bytes, or if the write
 * fails.
 *
 * # Safety
 * - `xref` is null, or came from `remixdb_ref` and was not given back.
 * - `key` has `key_bytes` bytes, or is null. `value` has `value_bytes` bytes, or is null.
 */
bool remixdb_put(struct xdb_ref *xref,
                 const void *key,
                 uint32_t key_bytes,
                 const void *value,
                 uint32_t value_bytes);

/**
 * Removes a key. True also if it was not there; false if the write fails.
 *
 * # Safety
 * - `xref` is null, or came from `remixdb_ref` and was not given back.
 * - `key` has `key_bytes` bytes, or is null.
 */
bool remixdb_del(struct xdb_ref *xref, const void *key, uint32_t key_bytes);

/**
 * True if the key is there.
 *
 * # Safety
 * - `xref` is null, or came from `remixdb_ref` and was not given back.
 * - `key` has `key_bytes` bytes, or is null.
 */
bool remixdb_probe(struct xdb_ref *xref, const void *key, uint32_t key_bytes);

/**
 * Copies the value of a key and its length. False if the key is not there. Also false if another program has
 * written a value longer than `REMIXDB_MAX_BYTES`. Then nothing is copied.
 *
 * # Safety
 * - `xref` is null, or came from `remixdb_ref` and was not given back.
 * - `key` has `key_bytes` bytes, or is null.
 * - `value` is null or has room for the value, which has at most `REMIXDB_MAX_BYTES` bytes.
 * - `value_bytes` is null or writable.
 */
bool remixdb_get(struct xdb_ref *xref,
                 const void *key,
                 uint32_t key_bytes,
                 void *value,
                 uint32_t *value_bytes);

/**
 * Returns when everything written before survives a power cut. False if the device reports a failure.
 *
 * # Safety
 * - `xref` is null, or came from `remixdb_ref` and was not given back.
 */
bool remixdb_sync(struct xdb_ref *xref);

/**
 * Makes an iterator, which is at no pair yet. Give it back with `remixdb_iter_destroy`. Returns null for
 * null.
 *
 * # Safety
 * - `xref` is null, or came from `remixdb_ref` and was not given back.
 */
struct xdb_iter *remixdb_iter_create(struct xdb_ref *xref);

/**
 * Moves to the first key at or after `key`.
 *
 * # Safety
 * - `iter` is null, or came from `remixdb_iter_create` and was not destroyed.
 * - `key` has `key_bytes` bytes, or is null.
 */
void remixdb_iter_seek(struct xdb_iter *iter, const void *key, uint32_t key_bytes);

/**
 * True if the iterator is at a pair.
 *
 * # Safety
 * - `iter` is null, or came from `remixdb_iter_create` and was not destroyed.
 */
bool remixdb_iter_valid(struct xdb_iter *iter);

/**
 * Copies the key and the value at the iterator, and their lengths. False if it is at no pair. Also false if
 * another program has written a value longer than `REMIXDB_MAX_BYTES`. Then nothing is copied.
 *
 * # Safety
 * - `iter` is null, or came from `remixdb_iter_create` and was not destroyed.
 * - `key` and `value` are each null or have room for the bytes, at most `REMIXDB_MAX_BYTES`.
 * - `key_bytes` and `value_bytes` are each null or writable.
 */
bool remixdb_iter_peek(struct xdb_iter *iter,
                       void *key,
                       uint32_t *key_bytes,
                       void *value,
                       uint32_t *value_bytes);

/**
 * Moves to the next key.
 *
 * # Safety
 * - `iter` is null, or came from `remixdb_iter_create` and was not destroyed.
 */
void remixdb_iter_skip1(struct xdb_iter *iter);

/**
 * Moves forward by `keys` keys.
 *
 * # Safety
 * - `iter` is null, or came from `remixdb_iter_create` and was not destroyed.
 */
void remixdb_iter_skip(struct xdb_iter *iter, uint32_t keys);

/**
 * Releases what an iterator holds besides its pair, for a pause of any length. Its position stays.
 *
 * # Safety
 * - `iter` is null, or came from `remixdb_iter_create` and was not destroyed.
 */
void remixdb_iter_park(struct xdb_iter *iter);

/**
 * Destroys an iterator. Null is ignored.
 *
 * # Safety
 * - `iter` is null, or came from `remixdb_iter_create` and was not destroyed, and no other thread uses it.
 */
void remixdb_iter_destroy(struct xdb_iter *iter);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* REMIXDB_H */

/*
 * libremixdb: RemixDB's functions for programs in C, over Forrest's engine on disk.
 *
 * This file is made of the Rust code by a test (crates/remixdb-c/tests/c.rs). Change the code, not this.
 *
 * What holds for every function:
 *
 * - Bytes are a pointer and a length. The pointer may be null if the length is 0. What is passed in is copied or read before the
 *   function returns.
 * - Null handles, and null bytes of a length above 0, are answered by null or false, and by nothing where nothing is returned.
 * - A store may be used by many threads, each with a ref of its own; a ref and an iterator by one thread at a time.
 * - Keys are ordered by their bytes. A key and its value have REMIXDB_MAX_BYTES bytes together at most.
 */

#ifndef REMIXDB_H
#define REMIXDB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Most bytes of a key and its value together. A buffer of so many bytes has room for any key, and for any value.
 */
#define REMIXDB_MAX_BYTES 65500

/**
 * A position in the order of keys: at a pair, or at none. One thread at a time may use it.
 */
struct xdb_iter;

/**
 * A thread's way into a store. One thread at a time may use it.
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
 * Opens the store in a directory, which is made if there is none, with so many MiB for what is read and for what is
 * newly written. `tags`: keep a byte of hash for each key, which makes `remixdb_get` and `remixdb_probe` quicker.
 * Null, and why on standard error, if it cannot be opened, or is open already. To be given to `remixdb_close`.
 *
 * # Safety
 * - `dir` is null, or ends with a zero byte.
 */
struct xdb *remixdb_open(const char *dir,
                         size_t cache_mb,
                         size_t mt_mb,
                         bool tags);

/**
 * As `remixdb_open`, for the least space: without tags.
 *
 * # Safety
 * - As `remixdb_open`.
 */
struct xdb *remixdb_open_compact(const char *dir, size_t cache_mb, size_t mt_mb);

/**
 * Closes a store. Its refs were given back before; iterators that were not keep it open. Null is nothing to close.
 *
 * # Safety
 * - `xdb` is null, or came from `remixdb_open`, was not closed, and is used by nobody.
 */
void remixdb_close(struct xdb *xdb);

/**
 * Makes a way into a store, to be given to `remixdb_unref`. Null for null.
 *
 * # Safety
 * - `xdb` is null, or came from `remixdb_open` and was not closed.
 */
struct xdb_ref *remixdb_ref(struct xdb *xdb);

/**
 * Gives a ref back, and returns the store that it was of. Null for null.
 *
 * # Safety
 * - `xref` is null, or came from `remixdb_ref`, was not given back, and is used by nobody.
 */
struct xdb *remixdb_unref(struct xdb_ref *xref);

/**
 * Maps a key to a value. False if both together have more than `REMIXDB_MAX_BYTES`, or it cannot be written.
 *
 * # Safety
 * - `xref` is null, or came from `remixdb_ref` and was not given back.
 * - `key` has `key_bytes` bytes, and `value` has `value_bytes`, or they are null.
 */
bool remixdb_put(struct xdb_ref *xref,
                 const void *key,
                 uint32_t key_bytes,
                 const void *value,
                 uint32_t value_bytes);

/**
 * Removes a key. True also if it was not there; false if it cannot be written.
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
 * Copies the value of a key and its length. False if the key is not there, or its value, which another program has
 * written, is longer than `REMIXDB_MAX_BYTES`; then nothing is copied.
 *
 * # Safety
 * - `xref` is null, or came from `remixdb_ref` and was not given back.
 * - `key` has `key_bytes` bytes, or is null.
 * - `value` has room for the value, `REMIXDB_MAX_BYTES` at most, and `value_bytes` may be written to; or they are
 *   null, if they are not wanted.
 */
bool remixdb_get(struct xdb_ref *xref,
                 const void *key,
                 uint32_t key_bytes,
                 void *value,
                 uint32_t *value_bytes);

/**
 * Returns when all that was written before survives the end of the machine. False if the device reports a failure.
 *
 * # Safety
 * - `xref` is null, or came from `remixdb_ref` and was not given back.
 */
bool remixdb_sync(struct xdb_ref *xref);

/**
 * Makes an iterator, at no pair yet, to be given to `remixdb_iter_destroy`. Null for null.
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
 * Copies the key and the value where the iterator is, and their lengths. False if it is at no pair, or the value,
 * which another program has written, is longer than `REMIXDB_MAX_BYTES`; then nothing is copied.
 *
 * # Safety
 * - `iter` is null, or came from `remixdb_iter_create` and was not destroyed.
 * - `key` and `value` have room for them, `REMIXDB_MAX_BYTES` at most each, and `key_bytes` and `value_bytes` may be
 *   written to; each of them may be null, if it is not wanted.
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
 * Moves so many keys forward.
 *
 * # Safety
 * - `iter` is null, or came from `remixdb_iter_create` and was not destroyed.
 */
void remixdb_iter_skip(struct xdb_iter *iter, uint32_t keys);

/**
 * Gives back what an iterator holds beside its pair, for a pause of any length. It stays where it is.
 *
 * # Safety
 * - `iter` is null, or came from `remixdb_iter_create` and was not destroyed.
 */
void remixdb_iter_park(struct xdb_iter *iter);

/**
 * Gives an iterator back. Null is nothing to give back.
 *
 * # Safety
 * - `iter` is null, or came from `remixdb_iter_create`, was not destroyed, and is used by nobody.
 */
void remixdb_iter_destroy(struct xdb_iter *iter);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* REMIXDB_H */

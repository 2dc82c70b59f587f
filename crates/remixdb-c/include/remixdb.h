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
 * A put or delete has returned when it is in memory, as in RemixDB. It is passed to the operating system within
 * about a tenth of a second, or as soon as 256 KiB wait: the end of the process loses no more. `remixdb_sync`
 * makes it survive a power cut, and `remixdb_close` the end of the process. After any crash, the store has the
 * state after some put or delete, and everything before that one. The default.
 */
#define REMIXDB_DURABILITY_MEMORY 1

/**
 * A put or delete has returned when it was passed to the operating system: it survives the end of the process, however
 * that ends. Each takes a system call, so it takes more than twice as long.
 */
#define REMIXDB_DURABILITY_BUFFERED 2

/**
 * A put or delete has returned when the device has reported it stored: it survives a power cut.
 */
#define REMIXDB_DURABILITY_SYNC 3

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

/**
 * How `remixdb_open_with` opens a store. A field that is 0 or null has its default, so that this is enough:
 *
 *     struct remixdb_options options = {0};
 *     options.workers = 2;
 *
 * Later versions of the library may add fields at the end.
 */
struct remixdb_options {
  /**
   * Size of the page cache in MiB. Default: 256.
   */
  size_t cache_mb;
  /**
   * Size of two memtables in MiB: one takes changes while the other becomes tables. Default: 128.
   */
  size_t mt_mb;
  /**
   * 1: keep no byte of hash for each key, as `remixdb_open_compact`. That takes the least space, and makes
   * `remixdb_get` and `remixdb_probe` slower. Default: keep them.
   */
  uint32_t no_tags;
  /**
   * What a put or delete survives once it has returned: one of `REMIXDB_DURABILITY_MEMORY` to
   * `REMIXDB_DURABILITY_SYNC`. Default: `REMIXDB_DURABILITY_MEMORY`.
   */
  uint32_t durability;
  /**
   * Maximum number of threads that write and merge tables in the background; 1 to 256. Default: the number of
   * processors in `worker_cpus`, or that the process may use, at most 4.
   */
  uint32_t workers;
  /**
   * Length of `worker_cpus`.
   */
  uint32_t worker_cpus_count;
  /**
   * Numbers of the processors that these threads may run on. The process must be allowed to use them. Default: all
   * that it may use. (RemixDB pins its threads to the last four; here the system places them.)
   */
  const uint32_t *worker_cpus;
  /**
   * Values of at least this many bytes stay in the log, so that they are written once: 64 or more, or SIZE_MAX for
   * none. Default: 4,096. A store that has such values cannot be opened by libraries without this option.
   */
  size_t large_values;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Opens the store in a directory, which is created if it is missing. `cache_mb` is the size of the page cache in
 * MiB, and `mt_mb` that of two memtables: one takes changes while the other becomes tables. `tags`: keep a byte
 * of hash for each key, which makes `remixdb_get` and `remixdb_probe` faster. Returns null, and prints the reason
 * on standard error, if the store cannot be opened or is open already. Close it with `remixdb_close`.
 *
 * A put or delete survives the end of the process and a power cut only after `remixdb_sync`: see
 * `REMIXDB_DURABILITY_MEMORY`. `remixdb_open_with` opens a store with another level.
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
 * Like `remixdb_open`, with options. `options_bytes` is `sizeof(struct remixdb_options)`. If `options` is null, all
 * have their defaults. Returns null, and prints the reason on standard error, also for a value that an option does not
 * take, and for an option that this version of the library does not have.
 *
 * # Safety
 * - `dir` is null, or ends with a zero byte.
 * - `options` is null, or has `options_bytes` readable bytes, and its `worker_cpus` is null, or has
 *   `worker_cpus_count` readable numbers.
 */
struct xdb *remixdb_open_with(const char *dir,
                              const struct remixdb_options *options,
                              size_t options_bytes);

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

/*
 * LevelDB's functions for programs in C, over Forrest's stores on disk. A program that includes LevelDB's own header can be
 * linked with this library as well.
 *
 * A test generates this file from the Rust code (crates/forrest-leveldb/tests/c). Change the code, not this file.
 *
 * Rules for all functions:
 *
 * - Bytes are a pointer and a length. The pointer may be null if the length is 0. A function reads or copies its arguments
 *   before it returns.
 * - A function that can fail has `errptr` as its last argument, which is null, or points to null or to a string from malloc.
 *   If the call succeeds, the string stays as it is. If it fails, it is freed, and replaced by one that says why. Free it with
 *   leveldb_free, or with free. If `errptr` is null, the error is lost.
 * - A string begins with the kind of the error: "Corruption: ", "Not implemented: ", "Invalid argument: " or "IO error: ".
 * - Given null instead of an object, or null bytes with a length above 0, a function fails, or returns null or 0, or does
 *   nothing.
 * - An object that is destroyed twice, or used after that, is not detected.
 * - Any number of threads may use a store. One thread at a time may use an iterator or a batch, or change options.
 * - Keys are ordered by their bytes. A key has at most 65,535 bytes, a value less than 4 GiB.
 */

#ifndef LEVELDB_C_H
#define LEVELDB_C_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Types of LevelDB that no function here takes. */
typedef struct leveldb_filelock_t leveldb_filelock_t;
typedef struct leveldb_randomfile_t leveldb_randomfile_t;
typedef struct leveldb_seqfile_t leveldb_seqfile_t;
typedef struct leveldb_writablefile_t leveldb_writablefile_t;

/**
 * A value for `leveldb_options_set_compression`: tables are not compressed.
 */
#define leveldb_no_compression 0

/**
 * A value for `leveldb_options_set_compression`, the default: tables are compressed, by LZ4.
 */
#define leveldb_snappy_compression 1

/**
 * Changes in their order.
 */
typedef struct leveldb_writebatch_t leveldb_writebatch_t;

/**
 * A size for caches.
 */
typedef struct leveldb_cache_t leveldb_cache_t;

/**
 * An order of keys that a program defines.
 */
typedef struct leveldb_comparator_t leveldb_comparator_t;

/**
 * An open store. Any number of threads may use it.
 */
typedef struct leveldb_t leveldb_t;

/**
 * The operating system.
 */
typedef struct leveldb_env_t leveldb_env_t;

/**
 * A filter of keys for tables, which Forrest does not need.
 */
typedef struct leveldb_filterpolicy_t leveldb_filterpolicy_t;

/**
 * A position at a pair of a state of a store, or at none.
 */
typedef struct leveldb_iterator_t leveldb_iterator_t;

/**
 * A file to which LevelDB logs. No function makes one.
 */
typedef struct leveldb_logger_t leveldb_logger_t;

/**
 * How a store is opened.
 */
typedef struct leveldb_options_t leveldb_options_t;

/**
 * How something is read.
 */
typedef struct leveldb_readoptions_t leveldb_readoptions_t;

/**
 * One state of a store.
 */
typedef struct leveldb_snapshot_t leveldb_snapshot_t;

/**
 * How something is written.
 */
typedef struct leveldb_writeoptions_t leveldb_writeoptions_t;

/**
 * Frees the state of an object, when the object is destroyed.
 */
typedef void (*leveldb_destructor)(void *state);

/**
 * Compares two keys: less than 0, 0 or more than 0.
 */
typedef int (*leveldb_compare)(void *state, const char *a, size_t alen, const char *b, size_t blen);

/**
 * Returns a name, which ends with a zero byte.
 */
typedef const char *(*leveldb_name)(void *state);

/**
 * Makes a filter of keys. It is never called.
 */
typedef char *(*leveldb_create_filter)(void *state,
                                       const char *const *key_array,
                                       const size_t *key_length_array,
                                       int num_keys,
                                       size_t *filter_length);

/**
 * Looks for a key in a filter. It is never called.
 */
typedef uint8_t (*leveldb_key_may_match)(void *state,
                                         const char *key,
                                         size_t length,
                                         const char *filter,
                                         size_t filter_length);

/**
 * Is called with each put of a batch.
 */
typedef void (*leveldb_see_put)(void *state, const char *k, size_t klen, const char *v, size_t vlen);

/**
 * Is called with each delete of a batch.
 */
typedef void (*leveldb_see_delete)(void *state, const char *k, size_t klen);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Makes options with their defaults. Destroy them with `leveldb_options_destroy`.
 */
leveldb_options_t *leveldb_options_create(void);

/**
 * Frees options. Stores that were opened with them stay open. Null is ignored.
 *
 * # Safety
 * - `options` is null, or came from `leveldb_options_create` and was not destroyed.
 */
void leveldb_options_destroy(leveldb_options_t *options);

/**
 * Sets the comparator; null, the default, is the order of bytes. See `leveldb_comparator_create`.
 *
 * # Safety
 * - `options` is null, or was made by this library and not destroyed, and no other thread uses it.
 * - `comparator` is null, or came from `leveldb_comparator_create` and was not destroyed.
 */
void leveldb_options_set_comparator(leveldb_options_t *options, leveldb_comparator_t *comparator);

/**
 * Has no effect: Forrest's tables have a hash tag for each key.
 */
void leveldb_options_set_filter_policy(leveldb_options_t *options, leveldb_filterpolicy_t *policy);

/**
 * Whether to create a store that is missing. Default: 0, opening then fails.
 *
 * # Safety
 * - As `leveldb_options_set_comparator`, for `options`.
 */
void leveldb_options_set_create_if_missing(leveldb_options_t *options, uint8_t value);

/**
 * Whether opening fails if there is a store. Default: 0.
 *
 * # Safety
 * - As `leveldb_options_set_comparator`, for `options`.
 */
void leveldb_options_set_error_if_exists(leveldb_options_t *options, uint8_t value);

/**
 * Has no effect: Forrest verifies the checksum of all that it reads, and stops at damage.
 */
void leveldb_options_set_paranoid_checks(leveldb_options_t *options, uint8_t value);

/**
 * Has no effect: there is one environment.
 */
void leveldb_options_set_env(leveldb_options_t *options, leveldb_env_t *env);

/**
 * Has no effect: no function makes a logger. Pass null.
 */
void leveldb_options_set_info_log(leveldb_options_t *options, leveldb_logger_t *logger);

/**
 * The size in bytes at which a memtable is written to a table: 64 KiB to 1 GiB. Default: 64 MiB, or less on small
 * machines. Up to three may be in memory.
 *
 * # Safety
 * - As `leveldb_options_set_comparator`, for `options`.
 */
void leveldb_options_set_write_buffer_size(leveldb_options_t *options,
                                           size_t bytes);

/**
 * The maximum number of table files that are open: 1 to 50,000. Default: 4,096, or half of the limit of the process.
 *
 * # Safety
 * - As `leveldb_options_set_comparator`, for `options`.
 */
void leveldb_options_set_max_open_files(leveldb_options_t *options,
                                        int files);

/**
 * Sets the size of the cache, that of `cache`. Null is the default: Forrest's, up to a quarter of the machine's memory
 * and 512 MiB with the memtables. The options keep no pointer to `cache`.
 *
 * # Safety
 * - As `leveldb_options_set_comparator`, for `options`.
 * - `cache` is null, or came from `leveldb_cache_create_lru` and was not destroyed.
 */
void leveldb_options_set_cache(leveldb_options_t *options,
                               leveldb_cache_t *cache);

/**
 * Has no effect: the pages of Forrest's tables have one size.
 */
void leveldb_options_set_block_size(leveldb_options_t *options, size_t bytes);

/**
 * Has no effect: Forrest's tables have no restart points.
 */
void leveldb_options_set_block_restart_interval(leveldb_options_t *options, int keys);

/**
 * The size in bytes at which a compaction begins another table: 1 MiB to 1 GiB. Default: 80 MiB.
 *
 * # Safety
 * - As `leveldb_options_set_comparator`, for `options`.
 */
void leveldb_options_set_max_file_size(leveldb_options_t *options, size_t bytes);

/**
 * Compression of the tables that are written from now on: `leveldb_no_compression`, or `leveldb_snappy_compression`,
 * the default, which stands for LZ4. Opening fails with another number.
 *
 * # Safety
 * - As `leveldb_options_set_comparator`, for `options`.
 */
void leveldb_options_set_compression(leveldb_options_t *options,
                                     int compression);

/**
 * Makes read options. Destroy them with `leveldb_readoptions_destroy`.
 */
leveldb_readoptions_t *leveldb_readoptions_create(void);

/**
 * Frees read options. Null is ignored.
 *
 * # Safety
 * - `options` is null, or came from `leveldb_readoptions_create` and was not destroyed.
 */
void leveldb_readoptions_destroy(leveldb_readoptions_t *options);

/**
 * Has no effect: checksums are verified whenever a page is read from the device.
 */
void leveldb_readoptions_set_verify_checksums(leveldb_readoptions_t *options, uint8_t value);

/**
 * Has no effect: the cache decides by itself what to keep.
 */
void leveldb_readoptions_set_fill_cache(leveldb_readoptions_t *options, uint8_t value);

/**
 * Sets the snapshot to be read; null, the default, is the newest state. After the snapshot is released, reads with
 * these options fail.
 *
 * # Safety
 * - `options` is null, or came from `leveldb_readoptions_create` and was not destroyed, and no other thread uses it.
 * - `snapshot` is null, or came from `leveldb_create_snapshot` and was not released.
 */
void leveldb_readoptions_set_snapshot(leveldb_readoptions_t *options,
                                      const leveldb_snapshot_t *snapshot);

/**
 * Makes write options. Destroy them with `leveldb_writeoptions_destroy`.
 */
leveldb_writeoptions_t *leveldb_writeoptions_create(void);

/**
 * Frees write options. Null is ignored.
 *
 * # Safety
 * - `options` is null, or came from `leveldb_writeoptions_create` and was not destroyed.
 */
void leveldb_writeoptions_destroy(leveldb_writeoptions_t *options);

/**
 * Whether a write returns only when it survives a loss of power. Default: 0, it survives the end of the process.
 *
 * # Safety
 * - `options` is null, or came from `leveldb_writeoptions_create` and was not destroyed, and no other thread uses it.
 */
void leveldb_writeoptions_set_sync(leveldb_writeoptions_t *options,
                                   uint8_t value);

/**
 * Makes a comparator from functions, which may be called by several threads at once.
 *
 * Forrest orders keys by their bytes. A store opens with any comparator, and remembers its name: another name is
 * refused from then on. Each key that a call passes is compared with its neighbours in the store. If the comparator
 * orders them in another way than their bytes do, the call fails and changes nothing. So what works, works as the
 * comparator says.
 *
 * Destroy it with `leveldb_comparator_destroy`, after the stores that use it are closed. `compare` and `name` must not
 * be null: otherwise no store opens with it.
 *
 * # Safety
 * - `destructor`, `compare` and `name` are each null or functions of these types, which return normally. `compare` may
 *   be called by any thread. The name ends with a zero byte.
 */
leveldb_comparator_t *leveldb_comparator_create(void *state,
                                                leveldb_destructor destructor,
                                                leveldb_compare compare,
                                                leveldb_name name);

/**
 * Calls the destructor of a comparator and frees it. Stores that are still open with it fail from then on. Null is
 * ignored.
 *
 * # Safety
 * - `comparator` is null, or came from `leveldb_comparator_create` and was not destroyed, and no call on a store that
 *   uses it is in progress.
 */
void leveldb_comparator_destroy(leveldb_comparator_t *comparator);

/**
 * Makes a filter policy from functions. Forrest calls none of them but `destructor`: its tables have a hash tag for
 * each key, for the same purpose.
 *
 * # Safety
 * - `destructor` is null or a function of this type, which returns normally.
 */
leveldb_filterpolicy_t *leveldb_filterpolicy_create(void *state,
                                                    leveldb_destructor destructor,
                                                    leveldb_create_filter create_filter,
                                                    leveldb_key_may_match key_may_match,
                                                    leveldb_name name);

/**
 * Makes a filter policy, which has no effect: Forrest's tables have a hash tag for each key.
 */
leveldb_filterpolicy_t *leveldb_filterpolicy_create_bloom(int bits_per_key);

/**
 * Calls the destructor of a filter policy and frees it. Null is ignored.
 *
 * # Safety
 * - `policy` is null, or came from one of the two functions that make one, and was not destroyed.
 */
void leveldb_filterpolicy_destroy(leveldb_filterpolicy_t *policy);

/**
 * Makes a cache of a size in bytes. Each store that is opened with it gets a cache of its own of this size: stores
 * share none.
 */
leveldb_cache_t *leveldb_cache_create_lru(size_t capacity);

/**
 * Frees a cache. Null is ignored.
 *
 * # Safety
 * - `cache` is null, or came from `leveldb_cache_create_lru` and was not destroyed.
 */
void leveldb_cache_destroy(leveldb_cache_t *cache);

/**
 * Makes an environment, which stands for the operating system. There is no other one.
 */
leveldb_env_t *leveldb_create_default_env(void);

/**
 * Frees an environment. Null is ignored.
 *
 * # Safety
 * - `env` is null, or came from `leveldb_create_default_env` and was not destroyed.
 */
void leveldb_env_destroy(leveldb_env_t *env);

/**
 * The directory for tests: the one that the variable TEST_TMPDIR names, or one of this user below that for temporary
 * files. It is made if it is missing. Free the result with `leveldb_free`. Null if it cannot be made, and for null.
 *
 * # Safety
 * - `env` is null, or came from `leveldb_create_default_env` and was not destroyed.
 */
char *leveldb_env_get_test_directory(leveldb_env_t *env);

/**
 * Opens the store in the directory `name`. Null if that fails; the error then says why: the store is missing, or is
 * there, and the options do not allow that; it is open already, here or in another process; it was made with another
 * comparator; the directory has files of LevelDB itself; files are damaged. A new directory has the mode 0700; its
 * parent must exist.
 *
 * Close the store with `leveldb_close`.
 *
 * # Safety
 * - `options` is null, or came from `leveldb_options_create` and was not destroyed.
 * - `name` is null, or ends with a zero byte.
 * - `errptr` is null, or points to null or to a string that came from `malloc`.
 */
leveldb_t *leveldb_open(const leveldb_options_t *options,
                        const char *name,
                        char **errptr);

/**
 * Closes a store. Iterators that were not destroyed, and snapshots that were not released, keep it open. Null is
 * ignored.
 *
 * # Safety
 * - `db` is null, or came from `leveldb_open` and was not closed, and no other thread uses it.
 */
void leveldb_close(leveldb_t *db);

/**
 * Sets the value of a key. A key has at most 65,535 bytes, a value less than 4 GiB; longer ones are an error.
 *
 * # Safety
 * - `db` is null, or came from `leveldb_open` and was not closed.
 * - `options` is null, or came from `leveldb_writeoptions_create` and was not destroyed.
 * - `key` is null or has `keylen` readable bytes, and `val` is null or has `vallen` readable bytes.
 * - `errptr` is null, or points to null or to a string that came from `malloc`.
 */
void leveldb_put(leveldb_t *db,
                 const leveldb_writeoptions_t *options,
                 const char *key,
                 size_t keylen,
                 const char *val,
                 size_t vallen,
                 char **errptr);

/**
 * Removes a key. No error if it is not there.
 *
 * # Safety
 * - As `leveldb_put`.
 */
void leveldb_delete(leveldb_t *db,
                    const leveldb_writeoptions_t *options,
                    const char *key,
                    size_t keylen,
                    char **errptr);

/**
 * Makes all changes of a batch at one instant, or none. The batch stays as it is.
 *
 * # Safety
 * - `db` is null, or came from `leveldb_open` and was not closed.
 * - `options` is null, or came from `leveldb_writeoptions_create` and was not destroyed.
 * - `batch` is null, or came from `leveldb_writebatch_create` and was not destroyed, and nobody changes it meanwhile.
 * - `errptr` is null, or points to null or to a string that came from `malloc`.
 */
void leveldb_write(leveldb_t *db,
                   const leveldb_writeoptions_t *options,
                   leveldb_writebatch_t *batch,
                   char **errptr);

/**
 * The value of a key, and its length in `*vallen`. Null and 0 if the key is not there, or after an error. Free it with
 * `leveldb_free`.
 *
 * # Safety
 * - `db` is null, or came from `leveldb_open` and was not closed.
 * - `options` is null, or came from `leveldb_readoptions_create` and was not destroyed.
 * - `key` is null or has `keylen` readable bytes.
 * - `vallen` is null or writable.
 * - `errptr` is null, or points to null or to a string that came from `malloc`.
 */
char *leveldb_get(leveldb_t *db,
                  const leveldb_readoptions_t *options,
                  const char *key,
                  size_t keylen,
                  size_t *vallen,
                  char **errptr);

/**
 * Takes a snapshot: one state of the store, to be read by `leveldb_readoptions_set_snapshot`. Release it with
 * `leveldb_release_snapshot`. Null if that fails, and for null.
 *
 * # Safety
 * - `db` is null, or came from `leveldb_open` and was not closed.
 */
const leveldb_snapshot_t *leveldb_create_snapshot(leveldb_t *db);

/**
 * Releases a snapshot. `db` is not used. Null is ignored.
 *
 * # Safety
 * - `snapshot` is null, or came from `leveldb_create_snapshot` and was not released.
 */
void leveldb_release_snapshot(leveldb_t *db, const leveldb_snapshot_t *snapshot);

/**
 * The value of a property, as text. Null if there is no such property. Free it with `leveldb_free`.
 *
 * - `leveldb.num-files-at-level0`: the number of tables. Forrest has no levels; those from 1 to 6 have 0 files.
 * - `leveldb.stats`: what the store has and has done, as Forrest prints it.
 * - `leveldb.sstables`: the names of the tables and their bytes.
 * - `leveldb.approximate-memory-usage`: bytes of memory of memtables, cache and indexes.
 *
 * # Safety
 * - `db` is null, or came from `leveldb_open` and was not closed.
 * - `propname` is null, or ends with a zero byte.
 */
char *leveldb_property_value(leveldb_t *db,
                             const char *propname);

/**
 * Sets `sizes[i]` to the approximate number of bytes of the keys and values from `range_start_key[i]` to before
 * `range_limit_key[i]`, with those in memory. 0 if that fails, and for a range whose start is not
 * below its limit. What is compressed counts compressed.
 *
 * # Safety
 * - `db` is null, or came from `leveldb_open` and was not closed.
 * - The four arrays are null, or have `num_ranges` elements, and the keys have these lengths.
 * - `sizes` is null, or has `num_ranges` writable elements.
 */
void leveldb_approximate_sizes(leveldb_t *db,
                               int num_ranges,
                               const char *const *range_start_key,
                               const size_t *range_start_key_len,
                               const char *const *range_limit_key,
                               const size_t *range_limit_key_len,
                               uint64_t *sizes);

/**
 * Writes what is in memory to tables, and merges the tables that may have keys from `start_key` to `limit_key`, which
 * is among them. Null is before the first key, or after the last one. Returns when that is done, or has failed; there
 * is no error.
 *
 * # Safety
 * - `db` is null, or came from `leveldb_open` and was not closed.
 * - `start_key` is null or has `start_key_len` readable bytes, and `limit_key` is null or has `limit_key_len`.
 */
void leveldb_compact_range(leveldb_t *db,
                           const char *start_key,
                           size_t start_key_len,
                           const char *limit_key,
                           size_t limit_key_len);

/**
 * Removes the store in a directory, and the directory if nothing else is in it. Does nothing if there is no store. The
 * store must be closed.
 *
 * # Safety
 * - `options` is null, or came from `leveldb_options_create` and was not destroyed.
 * - `name` is null, or ends with a zero byte.
 * - `errptr` is null, or points to null or to a string that came from `malloc`.
 */
void leveldb_destroy_db(const leveldb_options_t *options,
                        const char *name,
                        char **errptr);

/**
 * Repairs the store in a directory, which must be closed. If all of it verifies, nothing is changed. Otherwise what
 * verifies is copied to a new store, which takes the name; the old directory is kept as NAME.damaged, to be removed by
 * the user. Takes time in proportion to the data.
 *
 * # Safety
 * - As `leveldb_destroy_db`.
 */
void leveldb_repair_db(const leveldb_options_t *options,
                       const char *name,
                       char **errptr);

/**
 * Makes an iterator over the state of the snapshot in `options`, or over the state at this moment. It is at no pair
 * yet. Destroy it with `leveldb_iter_destroy`. While it exists, the store keeps the values that were replaced since.
 * Null for null.
 *
 * # Safety
 * - `db` is null, or came from `leveldb_open` and was not closed.
 * - `options` is null, or came from `leveldb_readoptions_create` and was not destroyed.
 */
leveldb_iterator_t *leveldb_create_iterator(leveldb_t *db,
                                            const leveldb_readoptions_t *options);

/**
 * Frees an iterator. Null is ignored.
 *
 * # Safety
 * - `iter` is null, or came from `leveldb_create_iterator` and was not destroyed.
 */
void leveldb_iter_destroy(leveldb_iterator_t *iter);

/**
 * 1 if the iterator is at a pair; otherwise 0, also for null.
 *
 * # Safety
 * - `iter` is null, or came from `leveldb_create_iterator` and was not destroyed, and no other thread moves it.
 */
uint8_t leveldb_iter_valid(const leveldb_iterator_t *iter);

/**
 * Moves to the first key.
 *
 * # Safety
 * - `iter` is null, or came from `leveldb_create_iterator` and was not destroyed, and no other thread uses it.
 */
void leveldb_iter_seek_to_first(leveldb_iterator_t *iter);

/**
 * Moves to the last key.
 *
 * # Safety
 * - As `leveldb_iter_seek_to_first`.
 */
void leveldb_iter_seek_to_last(leveldb_iterator_t *iter);

/**
 * Moves to the first key at or after `k`, or to no pair if there is none.
 *
 * # Safety
 * - As `leveldb_iter_seek_to_first`.
 * - `k` is null or has `klen` readable bytes.
 */
void leveldb_iter_seek(leveldb_iterator_t *iter, const char *k, size_t klen);

/**
 * Moves to the next key, or to no pair after the last one. At no pair, stays there.
 *
 * # Safety
 * - As `leveldb_iter_seek_to_first`.
 */
void leveldb_iter_next(leveldb_iterator_t *iter);

/**
 * Moves to the previous key, or to no pair before the first one. At no pair, stays there.
 *
 * # Safety
 * - As `leveldb_iter_seek_to_first`.
 */
void leveldb_iter_prev(leveldb_iterator_t *iter);

/**
 * The key at the iterator, and its length in `*klen`, valid until the iterator moves or is destroyed. Null and 0 if it
 * is at no pair.
 *
 * # Safety
 * - `iter` is null, or came from `leveldb_create_iterator` and was not destroyed, and no other thread moves it.
 * - `klen` is null or writable.
 */
const char *leveldb_iter_key(const leveldb_iterator_t *iter,
                             size_t *klen);

/**
 * The value at the iterator, and its length in `*vlen`, valid until the iterator moves or is destroyed. Null and 0 if
 * it is at no pair.
 *
 * # Safety
 * - As `leveldb_iter_key`, for `vlen`.
 */
const char *leveldb_iter_value(const leveldb_iterator_t *iter,
                               size_t *vlen);

/**
 * Reports the error of the last move, or of the iterator itself, if there is one. Otherwise leaves `*errptr` as it is.
 *
 * # Safety
 * - `iter` is null, or came from `leveldb_create_iterator` and was not destroyed, and no other thread moves it.
 * - `errptr` is null, or points to null or to a string that came from `malloc`.
 */
void leveldb_iter_get_error(const leveldb_iterator_t *iter,
                            char **errptr);

/**
 * Makes a batch. Destroy it with `leveldb_writebatch_destroy`.
 */
leveldb_writebatch_t *leveldb_writebatch_create(void);

/**
 * Frees a batch. Null is ignored.
 *
 * # Safety
 * - `batch` is null, or came from `leveldb_writebatch_create` and was not destroyed.
 */
void leveldb_writebatch_destroy(leveldb_writebatch_t *batch);

/**
 * Removes all changes.
 *
 * # Safety
 * - `batch` is null, or came from `leveldb_writebatch_create` and was not destroyed, and no other thread uses it.
 */
void leveldb_writebatch_clear(leveldb_writebatch_t *batch);

/**
 * Adds a change that sets the value of a key. The batch copies both. If one is too long or null, `leveldb_write` of
 * this batch fails with the reason.
 *
 * # Safety
 * - `batch` is null, or came from `leveldb_writebatch_create` and was not destroyed, and no other thread uses it.
 * - `k` is null or has `klen` readable bytes, and `v` is null or has `vlen` readable bytes.
 */
void leveldb_writebatch_put(leveldb_writebatch_t *batch,
                            const char *k,
                            size_t klen,
                            const char *v,
                            size_t vlen);

/**
 * Adds a change that removes a key. If the key is too long or null, `leveldb_write` of this batch fails with the
 * reason.
 *
 * # Safety
 * - As `leveldb_writebatch_put`.
 */
void leveldb_writebatch_delete(leveldb_writebatch_t *batch,
                               const char *k,
                               size_t klen);

/**
 * Calls a function for each change, in their order, with `state`. A function that is null is not called. The functions
 * must not change the batch.
 *
 * # Safety
 * - `batch` is null, or came from `leveldb_writebatch_create` and was not destroyed, and nobody changes it meanwhile.
 * - `put` and `deleted` are each null or functions of these types, which return normally.
 */
void leveldb_writebatch_iterate(const leveldb_writebatch_t *batch,
                                void *state,
                                leveldb_see_put put,
                                leveldb_see_delete deleted);

/**
 * Adds the changes of `source` to the end of `destination`. They may be the same batch.
 *
 * # Safety
 * - `destination` and `source` are each null, or came from `leveldb_writebatch_create` and were not destroyed, and no
 *   other thread uses them.
 */
void leveldb_writebatch_append(leveldb_writebatch_t *destination,
                               const leveldb_writebatch_t *source);

/**
 * Frees memory that a function of this library returned: a value, an error, a property or a path. The same as `free`
 * of the C library. Null is ignored.
 *
 * # Safety
 * - `ptr` is null, or came from this library as memory to be freed, and was not freed.
 */
void leveldb_free(void *ptr);

/**
 * The major version of the LevelDB whose functions these are: 1.
 */
int32_t leveldb_major_version(void);

/**
 * The minor version of the LevelDB whose functions these are: 23.
 */
int32_t leveldb_minor_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* LEVELDB_C_H */

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
 * - A handle (forrest_db, forrest_iter, ...) is a number in a pointer's clothes: it points to nothing. One that is null, was
 *   given back, was never given out or is of another kind is FORREST_INVALID_ARGUMENT, however often and from
 *   whichever thread it is used; no number is given out twice. After a fork, the child's use of what the parent opened
 *   is FORREST_INVALID_ARGUMENT as well. It may open stores itself, if no other thread was in a call of the library when
 *   the parent forked; otherwise it calls exec.
 * - Null pointers to results, null bytes of a length above 0 and lengths above the limits are answered by errors. A
 *   function that fails leaves results as null or 0.
 * - A forrest_db may be used by many threads at once; a forrest_value may be read by many. A forrest_batch, a
 *   forrest_transaction, a forrest_options and a forrest_iter may go from thread to thread, but are used by one at a time:
 *   another one is told FORREST_BUSY. Giving a handle back waits for the calls that are using it.
 * - The library sets no signal handler, and starts no thread before a store on disk is opened. It never ends the
 *   process on bad input. What is broken in itself is FORREST_INTERNAL.
 */

#ifndef FORREST_H
#define FORREST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * The length that, with a null pointer, stands for what is not there: no value where one is compared or set, no end of a
 * range.
 */
#define FORREST_ABSENT SIZE_MAX

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
 * A comparison found another value than was expected, and nothing was changed. Not an error.
 */
#define FORREST_MISMATCH 3

/**
 * What a transaction has read has changed since, and nothing was changed by it: run it again. Not an error.
 */
#define FORREST_CONFLICT 4

/**
 * The operating system refused a read, a write or another call. The store is as it was.
 */
#define FORREST_IO -1

/**
 * Stored bytes are damaged; the message names file and offset. Restore them from elsewhere.
 */
#define FORREST_CORRUPT -2

/**
 * The call makes no sense as it is: a handle that is null or was given back, a URL that names no home. Change the
 * call.
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
 * Somebody else holds what is needed, or another thread is using the handle. Try again later.
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
 * Most memory of the nodes of a store in memory, or of a store in the kernel that is made. Bytes; from 1. By default
 * what the machine has, or what the module allows.
 */
#define FORREST_CAPACITY_BYTES 1

/**
 * On which pages memory lies: one of `FORREST_PAGES_AUTO` to `FORREST_PAGES_PLAIN`.
 */
#define FORREST_PAGES 2

/**
 * Which memory of a machine with several nodes is used: `FORREST_NUMA_LOCAL` or `FORREST_NUMA_INTERLEAVE`.
 */
#define FORREST_NUMA 3

/**
 * What is promised about a change when its call returns: one of `FORREST_DURABILITY_MEMORY` to
 * `FORREST_DURABILITY_SYNC`; by default the most that needs no wait for a device. More than the home can keep is
 * `FORREST_UNSUPPORTED` when it is opened.
 */
#define FORREST_DURABILITY 4

/**
 * Most changes in a batch; 1 to 4,294,967,295. By default 1,048,576.
 */
#define FORREST_BATCH_OPS_MAX 5

/**
 * Most bytes of keys and values in a batch; 1 to 2^40. By default 1 GiB.
 */
#define FORREST_BATCH_BYTES_MAX 6

/**
 * Size at which a store on disk writes its newest changes out as tables. Bytes; from 1. By default 64 MiB.
 */
#define FORREST_MEMTABLE_BYTES 7

/**
 * Memory for what a store on disk has read from its tables. Bytes; from 1. By default 256 MiB.
 */
#define FORREST_CACHE_BYTES 8

/**
 * Size at which a store on disk finishes a table and begins another, where it merges. Bytes; from 1. By default 80
 * MiB.
 */
#define FORREST_TABLE_BYTES 9

/**
 * Whether a store on disk keeps a byte of hash for each key of several overlapping tables, which makes look-ups of
 * single keys quicker: 0 or 1. By default 1.
 */
#define FORREST_TAGS 10

/**
 * Most threads that write and merge the tables of a store on disk at once; 1 to 256. By default the number of
 * processors that the process may use, 4 at most.
 */
#define FORREST_WORKERS 11

/**
 * The number of a processor that these threads may run on. Set again, it adds another. By default they may run on all.
 */
#define FORREST_WORKER_CPU 12

/**
 * Most files that a store on disk has open to be read; from 1. By default 4,096, or half of what the process may have.
 */
#define FORREST_OPEN_FILES 13

/**
 * Whether a store that is not there is made: 0 or 1. By default 1.
 */
#define FORREST_CREATE 14

/**
 * Who may read and write a store in the kernel that is made: the bits of a file's mode, up to 0666. By default 0600.
 */
#define FORREST_MODE 15

/**
 * Whether the store is opened to be read only, while others may write to it: 0 or 1. By default 0. It must be there
 * then, and nothing else may be set. `FORREST_UNSUPPORTED` when it is opened, but in the kernel.
 */
#define FORREST_READ_ONLY 16

/**
 * The largest pages that are to be had. The default.
 */
#define FORREST_PAGES_AUTO 0

/**
 * Explicit huge pages of 1 GiB; where there are none, transparent ones.
 */
#define FORREST_PAGES_HUGE_1G 1

/**
 * Explicit huge pages of 2 MiB; where there are none, transparent ones.
 */
#define FORREST_PAGES_HUGE_2M 2

/**
 * Transparent huge pages; where there are none, plain ones.
 */
#define FORREST_PAGES_TRANSPARENT 3

/**
 * Plain pages.
 */
#define FORREST_PAGES_PLAIN 4

/**
 * The node of the thread that needs the memory. The default.
 */
#define FORREST_NUMA_LOCAL 0

/**
 * All nodes, in turn.
 */
#define FORREST_NUMA_INTERLEAVE 1

/**
 * For `forrest_write_with`: what the store was opened with.
 */
#define FORREST_DURABILITY_DEFAULT 0

/**
 * A change is made. The end of the process may lose it.
 */
#define FORREST_DURABILITY_MEMORY 1

/**
 * The operating system has it. It survives the end of the process.
 */
#define FORREST_DURABILITY_BUFFERED 2

/**
 * The device has reported it stored, and all that came before it. It survives power loss.
 */
#define FORREST_DURABILITY_SYNC 3

/**
 * Ordered iteration both ways.
 */
#define FORREST_CAN_ITERATE 1

/**
 * Atomic batches.
 */
#define FORREST_CAN_BATCH 2

/**
 * Snapshots.
 */
#define FORREST_CAN_SNAPSHOT 4

/**
 * More keyspaces than "default".
 */
#define FORREST_CAN_KEYSPACES 8

/**
 * Data outlives the process.
 */
#define FORREST_CAN_PERSIST 16

/**
 * Several processes share one store.
 */
#define FORREST_CAN_SHARE 32

/**
 * `FORREST_DURABILITY_SYNC`: data survives power loss.
 */
#define FORREST_CAN_SYNC 64

/**
 * `FORREST_READ_ONLY`.
 */
#define FORREST_CAN_READ_ONLY 128

/**
 * `forrest_checkpoint`.
 */
#define FORREST_CAN_CHECKPOINT 256

/**
 * `forrest_verify`.
 */
#define FORREST_CAN_VERIFY 512

/**
 * `forrest_compact`.
 */
#define FORREST_CAN_COMPACT 1024

/**
 * Changes to be made at one instant. One thread at a time may use it.
 */
typedef struct forrest_batch forrest_batch;

/**
 * An open store, one of its keyspaces, or a past state of one. Many threads may use it at once.
 *
 * What is read and changed by the handle that `forrest_open` makes is the keyspace "default". `forrest_keyspace` makes
 * a handle to another one, and `forrest_snapshot` one to what there is now, which can be read only. All of them are
 * closed by `forrest_close`, in any order.
 */
typedef struct forrest_db forrest_db;

/**
 * A position in the order of keys: at a pair, or at none. One thread at a time may use it.
 *
 * A key that is there all the while is met exactly once, in order; one that comes or goes meanwhile may be met or not.
 */
typedef struct forrest_iter forrest_iter;

/**
 * How a store is opened: what was not set is as by default. One thread at a time may use it.
 */
typedef struct forrest_options forrest_options;

/**
 * Reads and changes of a store that take place at one instant, when they are committed, or never. Until then nobody
 * sees the changes, and nobody waits. A transaction that is committed did what it would have done had it run as a
 * whole at that instant; one that has read what is no longer so is `FORREST_CONFLICT`, changes nothing, and is to be
 * run again. Until it is committed, two reads may be of two moments. Keys are read one by one: there are no ranges.
 *
 * One thread at a time may use it. It keeps the store open.
 */
typedef struct forrest_transaction forrest_transaction;

/**
 * A value that a read found, held until it is released. It stays as it was found, whatever becomes of its key and of
 * the store.
 */
typedef struct forrest_value forrest_value;

/**
 * What a scan shows each pair to, with the `context` that the scan was given: true to go on, false to end the scan. It
 * keeps no pointer to a key or a value, and it returns: no exception and no `longjmp` leaves it. It may call this
 * library, and should be quick.
 */
typedef bool (*forrest_see)(void *context,
                            const void *key,
                            size_t key_bytes,
                            const void *value,
                            size_t value_bytes);

/**
 * What a store holds and what it costs, at about the moment of the call. Later versions of the library have more of
 * it, at the end.
 */
typedef struct {
  /**
   * Keys in all keyspaces. On disk an estimate.
   */
  uint64_t keys;
  /**
   * Keyspaces, with the default one.
   */
  uint64_t keyspaces;
  /**
   * Snapshots alive.
   */
  uint64_t snapshots;
  /**
   * Bytes in use for nodes: keys, values up to 239 bytes, and what holds them together.
   */
  uint64_t node_bytes;
  /**
   * Bytes of longer values, which are outside the nodes.
   */
  uint64_t value_bytes_outside;
  /**
   * Bytes taken from the operating system for nodes.
   */
  uint64_t reserved_bytes;
  /**
   * Of these, bytes on explicit huge pages.
   */
  uint64_t explicit_huge_bytes;
  /**
   * Of these, bytes on transparent huge pages, as far as the system grants them.
   */
  uint64_t transparent_huge_bytes;
  /**
   * Tables on disk.
   */
  uint64_t tables;
  /**
   * Bytes of all tables.
   */
  uint64_t table_bytes;
  /**
   * Bytes of memory that hold what was read from tables.
   */
  uint64_t cache_bytes;
  /**
   * Bytes of memory that say where in tables keys are.
   */
  uint64_t index_bytes;
  /**
   * Files of the store that are open.
   */
  uint64_t open_files;
} forrest_stats;

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
 * Makes an options object with all defaults, to be given to `forrest_options_destroy`.
 *
 * # Safety
 * - `options` is null or may be written to.
 */
int32_t forrest_options_create(forrest_options **options);

/**
 * Sets an option, one of `FORREST_CAPACITY_BYTES` to `FORREST_READ_ONLY`.
 *
 * `FORREST_INVALID_ARGUMENT` if this library knows no such option or value; numbers out of their limits are found when
 * a store is opened. The options are as they were then.
 */
int32_t forrest_options_set(forrest_options *options,
                            int32_t option,
                            uint64_t value);

/**
 * Gives an options object back. Stores that were opened with it go on. Null is nothing to give back.
 */
int32_t forrest_options_destroy(forrest_options *options);

/**
 * Opens a store. The URL, in UTF-8, is as for the command `forrest`: "memory:" is a new, empty store that lives as
 * long as its handles; a path is a store on disk, in a directory of its own, which is made if there is none;
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
 * Opens a store with options, which may be changed or destroyed afterwards.
 *
 * `FORREST_INVALID_ARGUMENT` also if an option is out of its limits, or is not for what others say; otherwise as
 * `forrest_open`.
 *
 * # Safety
 * - `url` is null, or ends with a zero byte.
 * - `db` is null or may be written to.
 */
int32_t forrest_open_with(const char *url,
                          const forrest_options *options,
                          forrest_db **db);

/**
 * Makes a handle to a keyspace of a store, and the keyspace, if there is none of that name: 1 to 255 bytes of UTF-8.
 * With a snapshot it is that keyspace's past state, and empty if there was none.
 *
 * `FORREST_LIMIT` if the name is too long or there are 4,096 keyspaces, `FORREST_INVALID_ARGUMENT` if it is empty,
 * `FORREST_UNSUPPORTED` in the kernel, which has the keyspace "default" only; `FORREST_OUT_OF_SPACE`, `FORREST_IO`.
 *
 * # Safety
 * - `name` is null, or ends with a zero byte.
 * - `keyspace` is null or may be written to.
 */
int32_t forrest_keyspace(forrest_db *db,
                         const char *name,
                         forrest_db **keyspace);

/**
 * The names of all keyspaces of the store, sorted, each ending with a zero byte; "default" is always among them. They
 * are in one piece of memory with the list, to be given to `forrest_free` once.
 *
 * `FORREST_OUT_OF_SPACE`, `FORREST_IO`; `FORREST_UNSUPPORTED` if a program that is not in C has made one with a zero
 * byte in its name.
 *
 * # Safety
 * - `names` and `count` are each null or may be written to.
 */
int32_t forrest_keyspaces(const forrest_db *db,
                          char ***names,
                          size_t *count);

/**
 * Removes a keyspace with all that it holds. Handles to it answer `FORREST_INVALID_ARGUMENT` from then on, also if one
 * of that name is made again; snapshots still have it.
 *
 * `FORREST_NOT_FOUND` if there is none of that name; `FORREST_INVALID_ARGUMENT` for "default", which stays, and for a
 * snapshot; `FORREST_IO`, `FORREST_STOPPED`.
 *
 * # Safety
 * - `name` is null, or ends with a zero byte.
 */
int32_t forrest_drop_keyspace(forrest_db *db,
                              const char *name);

/**
 * Makes a handle to the state of the whole store as it is now: that of the keyspace of `db` to begin with, and of the
 * others by `forrest_keyspace`. Nothing is copied; while the handle is open, what is replaced later is kept for it.
 *
 * `FORREST_UNSUPPORTED` in the kernel, `FORREST_INVALID_ARGUMENT` if `db` is a snapshot.
 *
 * # Safety
 * - `snapshot` is null or may be written to.
 */
int32_t forrest_snapshot(const forrest_db *db,
                         forrest_db **snapshot);

/**
 * Gives a handle back: of a store, a keyspace or a snapshot. It waits for calls of other threads that are using it.
 * The store is closed once all its handles, iterators and transactions are given back; what was written to a path is
 * there when it is opened again. Null is nothing to give back.
 */
int32_t forrest_close(forrest_db *db);

/**
 * Reads the value of a key and holds it: `forrest_value_data` has its bytes, `forrest_value_release` gives it back.
 * A long value is shared with a store in memory, not copied.
 *
 * `FORREST_NOT_FOUND` if the key is not there, and nothing is to be released then; `FORREST_LIMIT` if it is too long,
 * `FORREST_IO`, `FORREST_CORRUPT`.
 *
 * # Safety
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
 * Reads the values of many keys, faster than one after the other, because the waits for memory and the device overlap.
 * Each key is read by itself; for one state of all, read from a snapshot.
 *
 * `values` gets a value for each key, to be given to `forrest_value_release`, or null if it is not there. If the call
 * fails, all are null. Errors as of `forrest_get`.
 *
 * # Safety
 * - `keys` and `keys_bytes` each have `count` elements, or are null; each key has as many bytes as its element of
 *   `keys_bytes` says, or is null.
 * - `values` has `count` elements that may be written to, or is null.
 */
int32_t forrest_multi_get(const forrest_db *db,
                          const void *const *keys,
                          const size_t *keys_bytes,
                          size_t count,
                          forrest_value **values);

/**
 * Tells whether a key is there: `FORREST_OK`, or `FORREST_NOT_FOUND` if not. Errors as of `forrest_get`.
 *
 * # Safety
 * - `key` has `key_bytes` bytes, or is null.
 */
int32_t forrest_contains(const forrest_db *db, const void *key, size_t key_bytes);

/**
 * Counts the keys from `start` on and before `end`; a null `end` is no end. Takes time in
 * proportion to their number. Errors as of `forrest_get`.
 *
 * # Safety
 * - `start` has `start_bytes` bytes, and `end` has `end_bytes`, or they are null.
 * - `keys` is null or may be written to.
 */
int32_t forrest_count(const forrest_db *db,
                      const void *start,
                      size_t start_bytes,
                      const void *end,
                      size_t end_bytes,
                      uint64_t *keys);

/**
 * Shows the pairs from `start` on and before `end` to `see`, in the order of their keys, as long as it returns true:
 * the quickest way through a range, because nothing is copied. A null `end` is no end. `see`
 * is called by this thread; what it sees of changes by others is what an iterator sees.
 *
 * `FORREST_OK` also if `see` returned false. Errors as of `forrest_get`, and `FORREST_INVALID_ARGUMENT` if `see` is
 * null; it may have seen some pairs then.
 *
 * # Safety
 * - `start` has `start_bytes` bytes, and `end` has `end_bytes`, or they are null.
 * - `see` does as `forrest_see` says, or is null.
 */
int32_t forrest_scan(const forrest_db *db,
                     const void *start,
                     size_t start_bytes,
                     const void *end,
                     size_t end_bytes,
                     forrest_see see,
                     void *context);

/**
 * As `forrest_scan`, from the last pair of the range to its first.
 *
 * # Safety
 * - As of `forrest_scan`.
 */
int32_t forrest_scan_back(const forrest_db *db,
                          const void *start,
                          size_t start_bytes,
                          const void *end,
                          size_t end_bytes,
                          forrest_see see,
                          void *context);

/**
 * The bytes of a value. They stay where they are until the value is released, and are not to be changed.
 *
 * # Safety
 * - `data` and `value_bytes` are each null or may be written to.
 */
int32_t forrest_value_data(const forrest_value *value, const void **data, size_t *value_bytes);

/**
 * Gives a value back. Its bytes are not to be read any more. Null is nothing to give back.
 */
int32_t forrest_value_release(forrest_value *value);

/**
 * Gives back memory that a function of this library says to be freed so; not by `free`, of which a process may have
 * several. Null is nothing to give back.
 *
 * # Safety
 * - `memory` is null, or came from a function that says so, and was not freed.
 */
void forrest_free(void *memory);

/**
 * Maps a key to a value, whether it was there or not.
 *
 * `FORREST_LIMIT` if one of them is too long (keys have 65,535 bytes at most, 4,096 in the kernel; values
 * 4,294,967,295), `FORREST_INVALID_ARGUMENT` also if `db` is a snapshot, or its keyspace was dropped;
 * `FORREST_OUT_OF_SPACE`, `FORREST_IO`, `FORREST_STOPPED`, and `FORREST_UNSUPPORTED` if the store is open to be read
 * only.
 *
 * # Safety
 * - `key` has `key_bytes` bytes, and `value` has `value_bytes`, or they are null.
 */
int32_t forrest_set(forrest_db *db,
                    const void *key,
                    size_t key_bytes,
                    const void *value,
                    size_t value_bytes);

/**
 * Removes a key. `FORREST_NOT_FOUND` if it was not there; otherwise as `forrest_set`.
 *
 * # Safety
 * - `key` has `key_bytes` bytes, or is null.
 */
int32_t forrest_delete(forrest_db *db, const void *key, size_t key_bytes);

/**
 * Removes all keys from `start` on and before `end` at one instant, and tells how many there were; a null
 * `end` is no end. Errors as of `forrest_set`.
 *
 * # Safety
 * - `start` has `start_bytes` bytes, and `end` has `end_bytes`, or they are null.
 * - `deleted` may be written to, or is null, if it is not wanted.
 */
int32_t forrest_delete_range(forrest_db *db,
                             const void *start,
                             size_t start_bytes,
                             const void *end,
                             size_t end_bytes,
                             uint64_t *deleted);

/**
 * Adds to a counter, at one instant, and tells its new value. A counter is a value of 8 bytes, a big-endian two's
 * complement integer; a key that is not there counts as 0.
 *
 * `FORREST_INVALID_ARGUMENT` if the value is no counter, or the sum overflows; otherwise as `forrest_set`.
 *
 * # Safety
 * - `key` has `key_bytes` bytes, or is null.
 * - `sum` may be written to, or is null, if it is not wanted.
 */
int32_t forrest_add(forrest_db *db,
                    const void *key,
                    size_t key_bytes,
                    int64_t delta,
                    int64_t *sum);

/**
 * Replaces what a key maps to by another value, at one instant, if it is what was expected, byte for byte. Null with
 * the length `FORREST_ABSENT` is absence: what is expected to be so is made, and what becomes so is removed.
 *
 * `FORREST_MISMATCH` if something else was there. Then nothing is changed, and `found` is what was there, to be given
 * to `forrest_value_release`, or null if nothing was. Errors as of `forrest_set`.
 *
 * # Safety
 * - `key` has `key_bytes` bytes, `expected` has `expected_bytes`, and `desired` has `desired_bytes`, or they are null.
 * - `found` may be written to, or is null, if it is not wanted.
 */
int32_t forrest_compare_and_swap(forrest_db *db,
                                 const void *key,
                                 size_t key_bytes,
                                 const void *expected,
                                 size_t expected_bytes,
                                 const void *desired,
                                 size_t desired_bytes,
                                 forrest_value **found);

/**
 * Makes an empty batch, to be given to `forrest_batch_destroy`. It belongs to no store.
 *
 * # Safety
 * - `batch` is null or may be written to.
 */
int32_t forrest_batch_create(forrest_batch **batch);

/**
 * Has what is added from now on change the keyspace of a handle. What was added before any call of this, or after one
 * with null, changes that of the handle that the batch is written to.
 *
 * `FORREST_INVALID_ARGUMENT` if `db` is a snapshot.
 */
int32_t forrest_batch_on(forrest_batch *batch,
                         const forrest_db *db);

/**
 * Will map a key to a value. `FORREST_LIMIT` if one of them is too long for any store.
 *
 * # Safety
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
 * - `key` has `key_bytes` bytes, or is null.
 */
int32_t forrest_batch_delete(forrest_batch *batch, const void *key, size_t key_bytes);

/**
 * Will remove all keys from `start` on and before `end`; a null `end` is no end.
 * `FORREST_LIMIT` if one of them is too long for any store.
 *
 * # Safety
 * - `start` has `start_bytes` bytes, and `end` has `end_bytes`, or they are null.
 */
int32_t forrest_batch_delete_range(forrest_batch *batch,
                                   const void *start,
                                   size_t start_bytes,
                                   const void *end,
                                   size_t end_bytes);

/**
 * Will add to a counter, as `forrest_add` does. If that fails, so does the whole batch. `FORREST_LIMIT` if the key is
 * too long for any store.
 *
 * # Safety
 * - `key` has `key_bytes` bytes, or is null.
 */
int32_t forrest_batch_add(forrest_batch *batch,
                          const void *key,
                          size_t key_bytes,
                          int64_t delta);

/**
 * Will replace a value by another one if it is what was expected, as `forrest_compare_and_swap` does. If it is not,
 * nothing of the batch is done, and writing it is `FORREST_MISMATCH`. With one value twice it is a condition that
 * changes nothing. `FORREST_LIMIT` if something is too long for any store.
 *
 * # Safety
 * - `key` has `key_bytes` bytes, `expected` has `expected_bytes`, and `desired` has `desired_bytes`, or they are null.
 */
int32_t forrest_batch_compare_and_swap(forrest_batch *batch,
                                       const void *key,
                                       size_t key_bytes,
                                       const void *expected,
                                       size_t expected_bytes,
                                       const void *desired,
                                       size_t desired_bytes);

/**
 * How many changes are in a batch, and how many bytes of keys and values.
 *
 * # Safety
 * - `changes` and `bytes` are each null or may be written to.
 */
int32_t forrest_batch_size(const forrest_batch *batch, size_t *changes, size_t *bytes);

/**
 * Takes all changes out and keeps the memory for the next ones, which are on the keyspace that the batch is written
 * to.
 */
int32_t forrest_batch_clear(forrest_batch *batch);

/**
 * Gives a batch back, written or not. Null is nothing to give back.
 */
int32_t forrest_batch_destroy(forrest_batch *batch);

/**
 * Makes all changes of a batch at one instant, or, if it fails, none: no reader sees a part of it, and neither does
 * who opens the store after a crash. A later change of the batch sees the earlier ones. The batch stays as it is, and
 * may be written again, to other stores too, if it names no keyspaces.
 *
 * `FORREST_MISMATCH` if a comparison in it found another value than was expected. Errors are those of `forrest_set`;
 * `FORREST_LIMIT` also if the batch has more than 1,048,576 changes, or more than 1 GiB of keys and values, if the
 * store's options say nothing else; `FORREST_INVALID_ARGUMENT` also if an addition is not to a counter, or a keyspace
 * is of another store. The message tells which change of the batch it was.
 */
int32_t forrest_write(forrest_db *db,
                      const forrest_batch *batch);

/**
 * As `forrest_write`, with a durability of its own, one of `FORREST_DURABILITY_DEFAULT` to `FORREST_DURABILITY_SYNC`,
 * which is `FORREST_UNSUPPORTED` if the home cannot keep it. If it is `FORREST_MISMATCH`, `change` is the number of
 * the change in the batch, from 0, and `found` the value that was there, to be given to `forrest_value_release`, or
 * null if there was none.
 *
 * # Safety
 * - `change` and `found` may each be written to, or are null, if they are not wanted.
 */
int32_t forrest_write_with(forrest_db *db,
                           const forrest_batch *batch,
                           uint64_t durability,
                           size_t *change,
                           forrest_value **found);

/**
 * Begins a transaction, to be given to `forrest_transaction_destroy`. It reads and changes the keyspace of `db`, and
 * others as `forrest_transaction_on` says.
 *
 * `FORREST_INVALID_ARGUMENT` if `db` is a snapshot.
 *
 * # Safety
 * - `transaction` is null or may be written to.
 */
int32_t forrest_transaction_begin(forrest_db *db,
                                  forrest_transaction **transaction);

/**
 * Has the transaction read and change the keyspace of a handle from now on, which is of the same store.
 *
 * `FORREST_INVALID_ARGUMENT` if `db` is a snapshot. If it is of another store, committing fails.
 */
int32_t forrest_transaction_on(forrest_transaction *transaction, const forrest_db *db);

/**
 * Reads the value of a key and holds it, as `forrest_get` does: what the transaction has made of it, or what is in the
 * store, and must still be when the transaction is committed.
 *
 * `FORREST_NOT_FOUND` if the key is not there, and nothing is to be released then; errors as of `forrest_get`, and
 * `FORREST_INVALID_ARGUMENT` if the transaction has added to what is no counter.
 *
 * # Safety
 * - `key` has `key_bytes` bytes, or is null.
 * - `value` is null or may be written to.
 */
int32_t forrest_transaction_get(forrest_transaction *transaction,
                                const void *key,
                                size_t key_bytes,
                                forrest_value **value);

/**
 * Tells whether a key is there: `FORREST_OK`, or `FORREST_NOT_FOUND` if not. It counts as read, with its value. Errors
 * as of `forrest_transaction_get`.
 *
 * # Safety
 * - `key` has `key_bytes` bytes, or is null.
 */
int32_t forrest_transaction_contains(forrest_transaction *transaction,
                                     const void *key,
                                     size_t key_bytes);

/**
 * Will map a key to a value. `FORREST_LIMIT` if one of them is too long for any store.
 *
 * # Safety
 * - `key` has `key_bytes` bytes, and `value` has `value_bytes`, or they are null.
 */
int32_t forrest_transaction_set(forrest_transaction *transaction,
                                const void *key,
                                size_t key_bytes,
                                const void *value,
                                size_t value_bytes);

/**
 * Will remove a key, if it is there. `FORREST_LIMIT` if it is too long for any store.
 *
 * # Safety
 * - `key` has `key_bytes` bytes, or is null.
 */
int32_t forrest_transaction_delete(forrest_transaction *transaction, const void *key, size_t key_bytes);

/**
 * Will add to a counter, as `forrest_add` does. It is not read by that: transactions that only add to a counter are
 * not in conflict for it. `FORREST_LIMIT` if the key is too long for any store; `FORREST_INVALID_ARGUMENT` if what the
 * transaction knows of it is no counter, or the sum overflows. If it does not know it, committing fails then.
 *
 * # Safety
 * - `key` has `key_bytes` bytes, or is null.
 */
int32_t forrest_transaction_add(forrest_transaction *transaction,
                                const void *key,
                                size_t key_bytes,
                                int64_t delta);

/**
 * Makes all changes of a transaction at one instant, if what it has read is there at that instant. Whatever is
 * answered, the transaction has ended, and begins anew with nothing read or changed, on the same keyspace: after
 * `FORREST_CONFLICT`, which means that nothing was changed, it can be run again.
 *
 * Errors are those of `forrest_write`; nothing was changed then. Each key that was read or changed is a change of a
 * batch, and what was read counts as what is written does. The message tells the key.
 */
int32_t forrest_transaction_commit(forrest_transaction *transaction);

/**
 * As `forrest_transaction_commit`, with a durability of its own, one of `FORREST_DURABILITY_DEFAULT` to
 * `FORREST_DURABILITY_SYNC`, which is `FORREST_UNSUPPORTED` if the home cannot keep it. If it is `FORREST_CONFLICT`,
 * `keyspace` is the name of a keyspace, without a zero byte, and `key` a key there that is not as it was read; both
 * are to be given to `forrest_value_release`.
 *
 * # Safety
 * - `keyspace` and `key` may each be written to, or are null, if they are not wanted.
 */
int32_t forrest_transaction_commit_with(forrest_transaction *transaction,
                                        uint64_t durability,
                                        forrest_value **keyspace,
                                        forrest_value **key);

/**
 * As `forrest_transaction_commit`, but makes no changes: tells whether all that was read was there at one instant, for
 * who gives up because of it.
 */
int32_t forrest_transaction_check(forrest_transaction *transaction);

/**
 * Forgets what a transaction has read and changed. It begins anew, on the same keyspace.
 */
int32_t forrest_transaction_rollback(forrest_transaction *transaction);

/**
 * Gives a transaction back. What was not committed does not take place. Null is nothing to give back.
 */
int32_t forrest_transaction_destroy(forrest_transaction *transaction);

/**
 * Makes an iterator, at no pair yet, to be given to `forrest_iter_destroy`. It outlives the handle of its store, and
 * keeps the store open. Of a snapshot it walks over that state.
 *
 * Each move returns `FORREST_OK` if it came to a pair, `FORREST_NOT_FOUND` if there is none, and then the iterator is
 * at none, or an error. So this is a walk:
 *
 *     for (code = forrest_iter_first(iter); code == FORREST_OK; code = forrest_iter_next(iter)) { ... }
 *     if (code < 0) { ... forrest_error_message() ... }
 *
 * # Safety
 * - `iter` is null or may be written to.
 */
int32_t forrest_iter_create(const forrest_db *db,
                            forrest_iter **iter);

/**
 * Moves to the first key at or after `key`.
 *
 * # Safety
 * - `key` has `key_bytes` bytes, or is null.
 */
int32_t forrest_iter_seek(forrest_iter *iter, const void *key, size_t key_bytes);

/**
 * Moves to the last key at or before `key`.
 *
 * # Safety
 * - `key` has `key_bytes` bytes, or is null.
 */
int32_t forrest_iter_seek_for_prev(forrest_iter *iter, const void *key, size_t key_bytes);

/**
 * Moves to the first key.
 */
int32_t forrest_iter_first(forrest_iter *iter);

/**
 * Moves to the last key.
 */
int32_t forrest_iter_last(forrest_iter *iter);

/**
 * Moves to the next key. At no pair it stays there.
 */
int32_t forrest_iter_next(forrest_iter *iter);

/**
 * Moves to the previous key. At no pair it stays there.
 */
int32_t forrest_iter_prev(forrest_iter *iter);

/**
 * Moves so many pairs forward, as so many calls of `forrest_iter_next` do, but reads no values on the way.
 */
int32_t forrest_iter_skip(forrest_iter *iter, uint64_t pairs);

/**
 * Gives back what the iterator keeps beside its pair: on disk, the state that it found, with memory and files that may
 * have been replaced since. It stays where it is. For iterators that are kept for long between moves.
 */
int32_t forrest_iter_park(forrest_iter *iter);

/**
 * True if the last move came to a pair; false for what is no iterator.
 */
bool forrest_iter_valid(const forrest_iter *iter);

/**
 * Tells whether the last move failed: its error, or `FORREST_OK`, also if it came to no pair. For loops over
 * `forrest_iter_valid`. The message is that of the move.
 */
int32_t forrest_iter_status(const forrest_iter *iter);

/**
 * The key where the iterator is. Its bytes stay until the iterator is moved or destroyed, and are not to be changed.
 *
 * `FORREST_NOT_FOUND` at no pair; the error of the last move, if it failed.
 *
 * # Safety
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
 * - `value` and `value_bytes` are each null or may be written to.
 */
int32_t forrest_iter_value(forrest_iter *iter,
                           const void **value,
                           size_t *value_bytes);

/**
 * Gives an iterator back. Null is nothing to give back.
 */
int32_t forrest_iter_destroy(forrest_iter *iter);

/**
 * Returns when everything written before is as durable as this home can make it. On disk it survives power loss then;
 * in memory that is at once, for nothing outlives the process.
 *
 * `FORREST_IO` if the device reports a failure, `FORREST_STOPPED` if it did so before.
 */
int32_t forrest_sync(forrest_db *db);

/**
 * Writes a copy of the store, as it is at one moment of this call, to a new directory, which is a store on disk of its
 * own; the store goes on meanwhile. All that was acknowledged before is in it, and of a batch all or nothing. At
 * `path` there must be nothing, or an empty directory; it has that name only when it is whole and survives power loss.
 * On the same file system the tables are shared by hard links, to another one all is copied.
 *
 * Nothing is left of a copy that fails. `FORREST_INVALID_ARGUMENT` if something is at `path`, or it is no place for a
 * store; `FORREST_BUSY` if another checkpoint is just being made there; `FORREST_IO`; `FORREST_OUT_OF_SPACE`;
 * `FORREST_UNSUPPORTED` where `forrest_capabilities` has no `FORREST_CAN_CHECKPOINT`.
 *
 * # Safety
 * - `path` is null, or ends with a zero byte.
 */
int32_t forrest_checkpoint(forrest_db *db,
                           const char *path);

/**
 * Reads everything stored and checks it, past all caches. Takes time in proportion to the store.
 *
 * `FORREST_CORRUPT`, with file and offset of the first damage in the message; `FORREST_IO`; `FORREST_UNSUPPORTED` in
 * memory and in the kernel.
 */
int32_t forrest_verify(forrest_db *db);

/**
 * Writes what is in memory out and merges tables, so that the store takes the least space and its logs are empty.
 * Takes time in proportion to the store; writers wait at times.
 *
 * `FORREST_IO`, `FORREST_OUT_OF_SPACE`, `FORREST_STOPPED`; `FORREST_UNSUPPORTED` in memory and in the kernel.
 */
int32_t forrest_compact(forrest_db *db);

/**
 * Tells what a store holds and what it costs. `stats_bytes` is `sizeof(forrest_stats)`: of what the library knows, as
 * much is told as the program was compiled for; what only the program knows is 0.
 *
 * # Safety
 * - `stats` has `stats_bytes` bytes that may be written to, or is null.
 */
int32_t forrest_get_stats(const forrest_db *db,
                          forrest_stats *stats,
                          size_t stats_bytes);

/**
 * Tells what the home of a store can do: the sum of its capabilities, `FORREST_CAN_ITERATE` to `FORREST_CAN_COMPACT`.
 * What it cannot do is `FORREST_UNSUPPORTED`.
 *
 * # Safety
 * - `capabilities` is null or may be written to.
 */
int32_t forrest_capabilities(const forrest_db *db,
                             uint64_t *capabilities);

/**
 * The names of the stores in the kernel ("llds:NAME") that this user may read or write, or owns, sorted, each ending
 * with a zero byte. They are in one piece of memory with the list, to be given to `forrest_free` once. They may be any
 * bytes; what comes or goes meanwhile may be missing.
 *
 * `FORREST_IO` if the module is not loaded or this user may not use it, and the message tells what to do;
 * `FORREST_UNSUPPORTED` if it is another version; `FORREST_OUT_OF_SPACE`.
 *
 * # Safety
 * - `names` and `count` are each null or may be written to.
 */
int32_t forrest_llds_list(char ***names,
                          size_t *count);

/**
 * Takes the name of a store in the kernel away, at once: the next who opens it by that name makes another. Who has it
 * open goes on with it; its memory is given back when the last of them has closed it.
 *
 * `FORREST_NOT_FOUND` if there is none of that name; errors as of `forrest_llds_list`, and `FORREST_IO` as well if it
 * is another user's.
 *
 * # Safety
 * - `name` is null, or ends with a zero byte.
 */
int32_t forrest_llds_destroy(const char *name);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FORREST_H */

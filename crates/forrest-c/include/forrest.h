/*
 * libforrest: an ordered key-value store, for C and C++. Keys and values are bytes. Keys are ordered by their unsigned bytes.
 *
 * A test (crates/forrest-c/tests/c/header.rs) generates this file from the Rust code. Change the code, not this file.
 *
 * Rules for all functions:
 *
 * - A function that can fail returns a code: 0 (FORREST_OK), a positive result such as FORREST_NOT_FOUND, or a negative
 *   error. forrest_strerror() has a text for each code. forrest_error_message() says what failed and where.
 * - Bytes are passed as a pointer and a length, and may be any bytes. The pointer may be null if the length is 0. The key of
 *   length 0 is a key. Functions copy or read their arguments before they return.
 * - The start and the end of a range, a prefix, and the key of a seek may be longer than the longest key. So the key "k\0" is
 *   always a start after the key "k".
 * - A handle (forrest_db, forrest_iter, ...) is a number in a pointer's type: it points to nothing. A call with a handle that
 *   is null, closed, never returned by the library or of another kind fails with FORREST_INVALID_ARGUMENT, in any thread, as
 *   often as it is made: no number is used twice. After a fork, the parent's handles are FORREST_INVALID_ARGUMENT in the
 *   child as well. The child may open stores itself if no other thread was in a call of the library during the fork;
 *   otherwise it must call exec.
 * - Null pointers to results, null bytes of a length above 0, and lengths above the limits are errors. A function that fails
 *   sets its results to null or 0.
 * - Many threads may use a forrest_db at once, and read a forrest_value at once. A forrest_batch, a forrest_transaction, a
 *   forrest_ingest, a forrest_changes, a forrest_value_reader, a forrest_blob_writer, a forrest_blob, a forrest_options and
 *   a forrest_iter may move between threads, but only one thread at a time may use it: for another thread the call fails
 *   with FORREST_BUSY. Closing a handle waits for the calls that are using it.
 * - The library sets no signal handler, and starts no thread before a store on disk is opened. It never ends the
 *   process because of bad input. A defect of the library itself is reported as FORREST_INTERNAL.
 */

#ifndef FORREST_H
#define FORREST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * The length that, with a null pointer, marks absence: no value, where a value is compared or set, or no end of a range.
 */
#define FORREST_ABSENT SIZE_MAX

/**
 * Success.
 */
#define FORREST_OK 0

/**
 * The key does not exist, or an iterator moved past the last pair. Not an error.
 */
#define FORREST_NOT_FOUND 1

/**
 * The value is longer than the buffer. Nothing was written to the buffer; the length was returned. Not an
 * error.
 */
#define FORREST_TOO_SMALL 2

/**
 * A comparison found another value than the expected one. Nothing was changed. Not an error.
 */
#define FORREST_MISMATCH 3

/**
 * A value that a transaction has read has changed since. The transaction changed nothing; run it again. Not
 * an error.
 */
#define FORREST_CONFLICT 4

/**
 * The value of a key is not known without waiting for a device; `forrest_get` reads it. Not an error.
 */
#define FORREST_NOT_CACHED 5

/**
 * A read, a write or another system call failed. The call changed nothing.
 */
#define FORREST_IO -1

/**
 * Stored bytes are damaged; the message names file and offset. Restore the data from a copy.
 */
#define FORREST_CORRUPT -2

/**
 * An argument is invalid: for example a handle that is null or closed, or a URL that names no home. Change
 * the call.
 */
#define FORREST_INVALID_ARGUMENT -3

/**
 * A key, a value or a batch exceeds a limit. Make it smaller.
 */
#define FORREST_LIMIT -4

/**
 * Memory, disk space or file descriptors are used up. Delete something, or provide more.
 */
#define FORREST_OUT_OF_SPACE -5

/**
 * The store is open elsewhere, another thread is using the handle, or another checkpoint to the same path is
 * in progress. Try again later.
 */
#define FORREST_BUSY -6

/**
 * This home does not have this feature, or is not compiled into the library. Use another home.
 */
#define FORREST_UNSUPPORTED -7

/**
 * An earlier failure made the store refuse all writes. Open it again.
 */
#define FORREST_STOPPED -8

/**
 * A comparison of a batch found another value than the expected one. Nothing was changed.
 * `forrest_try_write` returns `FORREST_MISMATCH` instead, which is not an error.
 */
#define FORREST_CONDITION_FAILED -9

/**
 * The changes that `forrest_changes_next` is to go on with are no longer kept. Start from a snapshot, and go on with
 * the changes after it.
 */
#define FORREST_GONE -10

/**
 * A defect of the library; please report the message. Close the store.
 */
#define FORREST_INTERNAL -100

/**
 * The ABI version, which `forrest_abi()` returns. It grows when programs must be compiled again.
 */
#define FORREST_ABI 2

/**
 * What a compaction filter returns: the value stays.
 */
#define FORREST_FILTER_KEEP 0

/**
 * The key is deleted.
 */
#define FORREST_FILTER_DROP 1

/**
 * The key has the value `replacement` from now on.
 */
#define FORREST_FILTER_REPLACE 2

/**
 * A merge operator makes the value that a key has after an operand. `old` is the value before, and null if there is
 * none. There is always a result: bytes with which the operator could not work were refused before. If it returns
 * false all the same, the call that needs the value fails with `FORREST_INVALID_ARGUMENT`, and nothing is lost.
 */
#define FORREST_MERGE_APPLY 0

/**
 * It makes one operand that does what `old` and then `operand` do to any value. False if there is none; then the
 * operands are applied one after the other.
 */
#define FORREST_MERGE_COMBINE 1

/**
 * It checks an operand before it is stored. False refuses it, with `FORREST_INVALID_ARGUMENT`.
 */
#define FORREST_MERGE_CHECK_OPERAND 2

/**
 * It checks `operand`, a value that is set in the keyspace, before it is stored. False refuses it.
 */
#define FORREST_MERGE_CHECK_VALUE 3

/**
 * A job has begun.
 */
#define FORREST_EVENT_BEGAN 0

/**
 * A job has ended.
 */
#define FORREST_EVENT_ENDED 1

/**
 * A job has failed. The store tries again what it can.
 */
#define FORREST_EVENT_FAILED 2

/**
 * A change had waited because memory was full of changes that were not in tables yet.
 */
#define FORREST_EVENT_STALLED 3

/**
 * There is no room for tables or for the log.
 */
#define FORREST_EVENT_FULL 4

/**
 * A flush or a change has found room again.
 */
#define FORREST_EVENT_HAS_ROOM 5

/**
 * The store takes no changes until it is opened again or resumed, because a write or a sync has failed.
 */
#define FORREST_EVENT_STOPPED 6

/**
 * It takes changes again.
 */
#define FORREST_EVENT_RESUMED 7

/**
 * Maximum memory of the nodes of a store in memory, or of a new store in the kernel, in bytes; from 1.
 * Default: the memory of the machine, or the module's limit.
 */
#define FORREST_CAPACITY_BYTES 1

/**
 * The kind of pages for the store's memory: one of `FORREST_PAGES_AUTO` to `FORREST_PAGES_PLAIN`.
 */
#define FORREST_PAGES 2

/**
 * The NUMA nodes of the store's memory: `FORREST_NUMA_LOCAL`, `FORREST_NUMA_INTERLEAVE`, or `FORREST_NUMA_NODE` plus
 * the number of a node.
 */
#define FORREST_NUMA 3

/**
 * The durability of each change when its call returns: one of `FORREST_DURABILITY_MEMORY` to
 * `FORREST_DURABILITY_SYNC`. Default: the strongest one that waits for no device. Opening fails with
 * `FORREST_UNSUPPORTED` if the home does not have this durability.
 */
#define FORREST_DURABILITY 4

/**
 * Maximum number of changes in a batch; 1 to 4,294,967,295. Default: 1,048,576.
 */
#define FORREST_BATCH_OPS_MAX 5

/**
 * Maximum total length of the keys and values in a batch, in bytes; 1 to 2^40. Default: 1 GiB.
 */
#define FORREST_BATCH_BYTES_MAX 6

/**
 * Size at which a store on disk writes a memtable to tables, in bytes; from 1. Default: 64 MiB.
 */
#define FORREST_MEMTABLE_BYTES 7

/**
 * Size of the cache of a store on disk, in bytes; from 1. Default: 256 MiB.
 */
#define FORREST_CACHE_BYTES 8

/**
 * Size at which a compaction of a store on disk finishes a table and begins the next, in bytes; from 1.
 * Default: 80 MiB.
 */
#define FORREST_TABLE_BYTES 9

/**
 * Whether the REMIXes of a store on disk have a hash tag, one byte, for each key, which makes gets faster: 0
 * or 1. Default: 1.
 */
#define FORREST_TAGS 10

/**
 * Maximum number of threads that write and merge the tables of a store on disk at the same time; 1 to 256.
 * Default: the number of processors that the process may use, at most 4.
 */
#define FORREST_WORKERS 11

/**
 * The number of a processor that these threads may run on. Each further call adds a processor. Default: all.
 */
#define FORREST_WORKER_CPU 12

/**
 * Maximum number of table files that a store on disk keeps open; from 1. Default: 4,096, or half of the
 * process's limit if that is less.
 */
#define FORREST_OPEN_FILES 13

/**
 * Whether to create a store that does not exist: 0 or 1. Default: 1.
 */
#define FORREST_CREATE 14

/**
 * The mode of a new store in the kernel, as the bits of a file's mode, up to 0666. Default: 0600.
 */
#define FORREST_MODE 15

/**
 * Whether to open the store for reading only, while other processes may write to it: 0 or 1. Default: 0. The
 * store must exist. A store on disk is seen as it was when it was opened, until `forrest_refresh` is called. With
 * "memory:", opening fails with `FORREST_UNSUPPORTED`.
 */
#define FORREST_READ_ONLY 16

/**
 * Maximum time that a change of a store on disk waits for memory, in milliseconds; then it fails with `FORREST_BUSY`.
 * Default: 10,000.
 */
#define FORREST_WAIT_MS 17

/**
 * Maximum rate at which a store on disk writes and merges tables, in bytes a second; 0 for no limit. Default: 0. If
 * changes arrive faster than that allows, they wait.
 */
#define FORREST_BACKGROUND_BYTES_PER_SECOND 18

/**
 * Memory that memtables, cache and indexes of a store on disk share, in bytes; the cache takes what the others leave.
 * Default: a quarter of the machine's, at most 512 MiB; no limit if one of the sizes is set.
 */
#define FORREST_MEMORY_BYTES 19

/**
 * The compression of the tables of a store on disk from now on, of all keyspaces for which
 * `forrest_set_compression` has chosen nothing else: one of `FORREST_COMPRESSION_NONE` to `FORREST_COMPRESSION_ZSTD`.
 * The store remembers it. Default: as it was chosen before; in a new store, none. Opening fails with
 * `FORREST_UNSUPPORTED` if the home, or this build of the library, does not have it.
 */
#define FORREST_COMPRESSION 20

/**
 * Whether a store on disk keeps its changes for `forrest_changes_begin`: 0 or 1. Default: 0.
 */
#define FORREST_HISTORY 21

/**
 * Maximum size of the logs that are kept for their changes only, in bytes. Default: 1 GiB.
 */
#define FORREST_HISTORY_BYTES 22

/**
 * Maximum age of the changes in them, in milliseconds. Default: 7 days.
 */
#define FORREST_HISTORY_AGE_MS 23

/**
 * Whether a store on disk takes the time of its calls, for `forrest_metrics`: 0 or 1. Default: 0. With it, each call
 * reads the clock twice, which takes about 50 ns.
 */
#define FORREST_LATENCIES 24

/**
 * Values of at least this many bytes stay in the log of a store on disk, so that they are written once: 64 or more, or
 * 0 for none. Default: 4,096. Values of compressed keyspaces do not stay there, nor those of encrypted stores, nor
 * those of stores whose log has a directory of its own. The store does not remember the option. Earlier releases
 * cannot open a store that has such values.
 */
#define FORREST_LARGE_VALUES 25

/**
 * No compression.
 */
#define FORREST_COMPRESSION_NONE 0

/**
 * LZ4.
 */
#define FORREST_COMPRESSION_LZ4 1

/**
 * Zstandard. Only in builds with it.
 */
#define FORREST_COMPRESSION_ZSTD 2

/**
 * The largest pages that are available. The default.
 */
#define FORREST_PAGES_AUTO 0

/**
 * Explicit huge pages of 1 GiB; if there are none, transparent ones.
 */
#define FORREST_PAGES_HUGE_1G 1

/**
 * Explicit huge pages of 2 MiB; if there are none, transparent ones.
 */
#define FORREST_PAGES_HUGE_2M 2

/**
 * Transparent huge pages; if there are none, plain ones.
 */
#define FORREST_PAGES_TRANSPARENT 3

/**
 * Plain pages.
 */
#define FORREST_PAGES_PLAIN 4

/**
 * The node of the thread that allocates. The default.
 */
#define FORREST_NUMA_LOCAL 0

/**
 * All nodes, in turn.
 */
#define FORREST_NUMA_INTERLEAVE 1

/**
 * With the number of a node added to it: that node, and others when it has no memory left.
 */
#define FORREST_NUMA_NODE 65536

/**
 * For `forrest_write_with`: the durability with which the store was opened.
 */
#define FORREST_DURABILITY_DEFAULT 0

/**
 * The change is applied. The end of the process may lose it.
 */
#define FORREST_DURABILITY_MEMORY 1

/**
 * The operating system has it. It survives the end of the process.
 */
#define FORREST_DURABILITY_BUFFERED 2

/**
 * The device has reported it stored, with everything before it. It survives power loss.
 */
#define FORREST_DURABILITY_SYNC 3

/**
 * The key has this value.
 */
#define FORREST_CHANGE_SET 1

/**
 * The key is not there.
 */
#define FORREST_CHANGE_DELETE 2

/**
 * No key from `key` up to but not including `value` is there; if `value` is null, no key from `key` on.
 */
#define FORREST_CHANGE_DELETE_RANGE 3

/**
 * The keyspace was created, and is empty.
 */
#define FORREST_CHANGE_CREATE_KEYSPACE 4

/**
 * The keyspace was dropped, with all its keys.
 */
#define FORREST_CHANGE_DROP_KEYSPACE 5

/**
 * An ingest may have added pairs with keys from `key` to `value`, both included. The changes do not have them: read
 * the range.
 */
#define FORREST_CHANGE_INGEST 6

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
 * Several processes can share a store.
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
 * `forrest_ingest_begin`.
 */
#define FORREST_CAN_INGEST 2048

/**
 * Compressed tables.
 */
#define FORREST_CAN_COMPRESS 4096

/**
 * `forrest_metrics`.
 */
#define FORREST_CAN_METRICS 8192

/**
 * `forrest_approximate`.
 */
#define FORREST_CAN_APPROXIMATE 16384

/**
 * `forrest_changes_begin`.
 */
#define FORREST_CAN_CHANGES 32768

/**
 * `forrest_merge`.
 */
#define FORREST_CAN_MERGE 65536

/**
 * `forrest_backup_create`.
 */
#define FORREST_CAN_BACKUP 131072

/**
 * `forrest_set_with_ttl`.
 */
#define FORREST_CAN_TTL 262144

/**
 * Of `forrest_backup_prune`: keep this number of the newest backups.
 */
#define FORREST_KEEP_NEWEST 0

/**
 * Of `forrest_backup_prune`: keep backups that were made at this time or later, in milliseconds since the beginning of
 * 1970.
 */
#define FORREST_KEEP_SINCE 1

/**
 * Changes that are applied at one instant. Only one thread at a time may use a batch.
 */
typedef struct forrest_batch forrest_batch;

/**
 * A blob that is read, as it was when it was opened. It keeps the store open, and the store keeps what has been
 * replaced since.
 */
typedef struct forrest_blob forrest_blob;

/**
 * A blob that is being written: `forrest_blob_finish` makes it visible. It keeps the store open.
 */
typedef struct forrest_blob_writer forrest_blob_writer;

/**
 * The changes of a store after a sequence number, in their order. Only one thread at a time may use it. It keeps the
 * store open.
 */
typedef struct forrest_changes forrest_changes;

/**
 * An open store, one of its keyspaces, or a snapshot of one. Many threads may use a handle at once.
 *
 * The handle from `forrest_open` reads and changes the keyspace "default". `forrest_keyspace` makes a handle
 * to another keyspace, and `forrest_snapshot` a read-only handle to the current state. Close each with
 * `forrest_close`, in any order.
 */
typedef struct forrest_db forrest_db;

/**
 * Sorted pairs that a keyspace gets at one instant, by `forrest_ingest_finish`. Nobody sees them before. On disk
 * this is the fastest way to load many pairs: each is written once, to a table, and to no log. Use it for a million
 * pairs rather than for a thousand: each ingest makes at least one table, and waits for several syncs.
 *
 * Only one thread at a time may use an ingest. It keeps the store open.
 */
typedef struct forrest_ingest forrest_ingest;

/**
 * A position in the order of keys: at a pair, or at none. Only one thread at a time may use an iterator.
 *
 * An iteration returns a key that exists throughout exactly once, in order. It may or may not return a key
 * that is added or removed meanwhile.
 */
typedef struct forrest_iter forrest_iter;

/**
 * Options for opening a store. An option that was not set has its default. Only one thread at a time may use
 * it.
 */
typedef struct forrest_options forrest_options;

/**
 * Reads and changes of a store that happen at one instant, the commit, or not at all. Before the commit the
 * changes are invisible, and no other thread waits for the transaction. A committed transaction has the
 * effect that it would have if all of it ran at the instant of its commit. If a value that it read has
 * changed, or the keys of a range that it read, committing returns `FORREST_CONFLICT` and changes nothing; run it
 * again. Before the commit, two reads may see the store at different moments.
 *
 * Reads, changes and locks count towards the limits of a batch when they are made: each key or range as a change, and
 * all keys and values as bytes. The call that exceeds them fails with `FORREST_LIMIT`.
 *
 * Only one thread at a time may use a transaction. It keeps the store open.
 */
typedef struct forrest_transaction forrest_transaction;

/**
 * A value that a read found, held until it is released. It does not change, even if its key is changed or
 * the store is closed.
 */
typedef struct forrest_value forrest_value;

/**
 * A value that is read in pieces, as it was when it was opened. That of a large value on disk keeps the store open,
 * and the space that the value takes, also if the key has got another one.
 */
typedef struct forrest_value_reader forrest_value_reader;

/**
 * A value that a compaction filter decides about. The pointers are valid until the filter returns.
 */
typedef struct {
  /**
   * The name of the keyspace, without a zero byte at its end.
   */
  const char *keyspace;
  /**
   * The length of `keyspace`.
   */
  size_t keyspace_bytes;
  /**
   * The key.
   */
  const void *key;
  /**
   * The length of `key`.
   */
  size_t key_bytes;
  /**
   * The value.
   */
  const void *value;
  /**
   * The length of `value`.
   */
  size_t value_bytes;
  /**
   * To be set before the filter returns `FORREST_FILTER_REPLACE`. The bytes must stay as they are until this thread
   * calls the filter again or ends.
   */
  const void *replacement;
  /**
   * The length of `replacement`.
   */
  size_t replacement_bytes;
} forrest_filtered;

/**
 * A compaction filter. It returns `FORREST_FILTER_KEEP`, `FORREST_FILTER_DROP` or `FORREST_FILTER_REPLACE`; any other
 * number means that the value stays. Several threads call it at once. It must not call this library, and must return
 * normally, not by an exception or `longjmp`.
 */
typedef int32_t (*forrest_compaction_filter)(void *context, forrest_filtered *given);

/**
 * What a merge operator is given. The pointers are valid until it returns.
 */
typedef struct {
  /**
   * What to do: one of `FORREST_MERGE_APPLY` to `FORREST_MERGE_CHECK_VALUE`. Return false for other numbers, which
   * later versions may have.
   */
  int32_t call;
  /**
   * The key; null for a check.
   */
  const void *key;
  /**
   * The length of `key`.
   */
  size_t key_bytes;
  /**
   * The value, or the first of two operands; null if there is none.
   */
  const void *old;
  /**
   * The length of `old`.
   */
  size_t old_bytes;
  /**
   * The operand, or the value that is checked.
   */
  const void *operand;
  /**
   * The length of `operand`.
   */
  size_t operand_bytes;
  /**
   * To be set before the operator returns true for `FORREST_MERGE_APPLY` and `FORREST_MERGE_COMBINE`. It may be
   * `old` or `operand`. Other bytes must stay as they are until this thread calls the operator again or ends.
   */
  const void *result;
  /**
   * The length of `result`.
   */
  size_t result_bytes;
} forrest_merging;

/**
 * A merge operator. It returns true if it has done what `given->call` says; checks have no result. It must be a
 * function of what it is given alone: it is called for the same operands again, at any later time. Several threads
 * call it at once. It must not call this library, and must return normally, not by an exception or `longjmp`.
 */
typedef bool (*forrest_merge_function)(void *context, forrest_merging *given);

/**
 * What has happened in a store on disk. Later versions of the library may add fields at the end.
 */
typedef struct {
  /**
   * One of `FORREST_EVENT_BEGAN` to `FORREST_EVENT_RESUMED`, or a number of a later version.
   */
  int32_t kind;
  /**
   * The job, if there is one: "flush", "merge", "ingest" or "verification"; otherwise null.
   */
  const char *job;
  /**
   * What a job or a wait took, in nanoseconds; otherwise 0.
   */
  uint64_t took_ns;
  /**
   * Bytes that a job has written to tables; otherwise 0.
   */
  uint64_t bytes;
  /**
   * The event in words, with the error if there is one. Never null.
   */
  const char *text;
} forrest_event;

/**
 * A function to which a store reports events, with the `context` that was given with it. The event, and its texts, are
 * valid until the function returns. It is called by threads of the library, and by threads that are in a call of the
 * library, but never by two at once. It must return normally, not by an exception or `longjmp`. It may call this
 * library, but must not close the store.
 */
typedef void (*forrest_listen)(void *context, const forrest_event *event);

/**
 * The function that `forrest_multi_scan` calls with each pair, and with the number of its range. It returns true to
 * continue, false to end the scan. It must meet the requirements of `forrest_see`.
 */
typedef bool (*forrest_see_in)(void *context,
                               size_t range,
                               const void *key,
                               size_t key_bytes,
                               const void *value,
                               size_t value_bytes);

/**
 * The function that a scan calls with each pair, and with the `context` of the scan. It returns true to
 * continue, false to end the scan. It must not keep a pointer to the key or value, and must return normally,
 * not by an exception or `longjmp`. It may call this library, and should be short.
 */
typedef bool (*forrest_see)(void *context,
                            const void *key,
                            size_t key_bytes,
                            const void *value,
                            size_t value_bytes);

/**
 * The function that `forrest_blob_list` calls with each key and the length of its blob, and with its `context`. It
 * returns true to continue, false to end. It must not keep a pointer to the key, and must return normally, not by an
 * exception or `longjmp`. It may call this library.
 */
typedef bool (*forrest_see_blob)(void *context, const void *key, size_t key_bytes, uint64_t blob_bytes);

/**
 * A change. All its pointers are valid until the next call with the same stream. Later versions of the library may
 * know more kinds.
 */
typedef struct {
  /**
   * Its sequence number. Numbers ascend from 1, and some are left out.
   */
  uint64_t sequence;
  /**
   * The keyspace, in UTF-8, with a zero byte at its end. A zero byte in a name is left out.
   */
  const char *keyspace;
  /**
   * What happened: one of `FORREST_CHANGE_SET` to `FORREST_CHANGE_INGEST`.
   */
  int32_t kind;
  /**
   * 1 if it is the last of its batch, or was made alone; 0 if the next change belongs to the same batch.
   */
  int32_t ends_batch;
  /**
   * The key, or the first one of a range; null if the whole keyspace is concerned.
   */
  const void *key;
  /**
   * The length of `key`; `FORREST_ABSENT` if it is null.
   */
  size_t key_bytes;
  /**
   * The value, or the end of a range; null if there is none.
   */
  const void *value;
  /**
   * The length of `value`; `FORREST_ABSENT` if it is null.
   */
  size_t value_bytes;
  /**
   * The milliseconds since 1970 from which on the value is not there; 0 if it stays.
   */
  uint64_t expires_ms;
} forrest_change;

/**
 * Statistics of a store, at about the moment of the call. Later versions of the library may add fields at
 * the end.
 */
typedef struct {
  /**
   * Number of keys in all keyspaces. On disk an estimate.
   */
  uint64_t keys;
  /**
   * Number of keyspaces, including the default one.
   */
  uint64_t keyspaces;
  /**
   * Number of live snapshots.
   */
  uint64_t snapshots;
  /**
   * Bytes in use for nodes: keys, values up to 239 bytes, and their overhead.
   */
  uint64_t node_bytes;
  /**
   * Bytes outside the nodes: of longer values, and in memory of values that expire and of the times of these, about.
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
   * Number of tables on disk.
   */
  uint64_t tables;
  /**
   * Bytes of all tables.
   */
  uint64_t table_bytes;
  /**
   * Bytes of the cache of pages read from tables.
   */
  uint64_t cache_bytes;
  /**
   * Bytes of memory of the indexes of tables.
   */
  uint64_t index_bytes;
  /**
   * Number of open files of the store.
   */
  uint64_t open_files;
  /**
   * Bytes of files on disk that the store no longer needs, and that other processes read.
   */
  uint64_t held_bytes;
  /**
   * Bytes of memtables and indexes that only snapshots and iterators still have, and of those that a flush
   * or a merge is making.
   */
  uint64_t kept_bytes;
  /**
   * Of the memory that the cache has taken from the operating system, bytes on explicit huge pages.
   */
  uint64_t cache_explicit_huge_bytes;
  /**
   * Of that, bytes on transparent huge pages, as far as the system grants them.
   */
  uint64_t cache_transparent_huge_bytes;
  /**
   * Bytes that the tables would take without compression.
   */
  uint64_t table_plain_bytes;
  /**
   * Bytes of the logs that are kept for large values in them: see `FORREST_LARGE_VALUES`.
   */
  uint64_t value_log_bytes;
  /**
   * Of these, bytes of values that were not replaced or deleted, about.
   */
  uint64_t value_log_live_bytes;
  /**
   * Values that expire, about: in memory all; on disk those in tables, and one for each memtable that has some. 0 if
   * there are none.
   */
  uint64_t expiring;
  /**
   * Of `table_bytes`, those of entries that were not replaced or deleted by what is in tables, about. The space
   * amplification is `table_bytes + value_log_bytes` for each byte of `table_live_bytes + value_log_live_bytes`.
   */
  uint64_t table_live_bytes;
} forrest_stats;

/**
 * The function that a salvage, or a call on backups, calls now and then while it copies or reads, on its thread, with
 * its `context`: with the number of bytes that are done, and of all. It returns true to continue, false to end the
 * call. It must return normally, not by an exception or `longjmp`. It may call this library.
 */
typedef bool (*forrest_go_on)(void *context, uint64_t done, uint64_t whole);

/**
 * A range of keys of which a salvage lost something. All its pointers are valid until the function that got it
 * returns. Later versions of the library may add fields at the end.
 */
typedef struct {
  /**
   * The keyspace in the new store, in UTF-8, with a zero byte at its end. It is called "keyspace-N" if its name is
   * lost; "(unknown)" stands for keyspaces that nothing else shows. A zero byte in a name is left out.
   */
  const char *keyspace;
  /**
   * The first key of the range. Never null; the length is 0 if the range begins with the first key of all.
   */
  const void *start;
  /**
   * The length of `start`.
   */
  size_t start_bytes;
  /**
   * The key at which the range ends, and which is not in it; null if the range goes up to the last key.
   */
  const void *end;
  /**
   * The length of `end`; `FORREST_ABSENT` if it is null.
   */
  size_t end_bytes;
  /**
   * The name of the damaged or missing file in the directory of the old store, with a zero byte at its end.
   */
  const char *file;
  /**
   * What is wrong with the file, and what that means: text with a zero byte at its end.
   */
  const char *reason;
} forrest_loss;

/**
 * The function that `forrest_salvage` calls with each loss, and with its `context`. It returns true to continue, false
 * if it wants no more losses. It must not keep the pointer to the loss or a pointer in it, and must return normally,
 * not by an exception or `longjmp`. It may call this library.
 */
typedef bool (*forrest_see_loss)(void *context, const forrest_loss *loss);

/**
 * What a salvage copied, and how much it could not. Later versions of the library may add fields at the end.
 */
typedef struct {
  /**
   * Number of keyspaces of the new store, including the default one.
   */
  uint64_t keyspaces;
  /**
   * Number of pairs in the new store.
   */
  uint64_t pairs;
  /**
   * Number of losses; 0 if the new store is a complete copy.
   */
  uint64_t lost;
} forrest_salvaged;

/**
 * A backup in a directory of backups. Later versions of the library may add fields at the end.
 */
typedef struct {
  /**
   * Its number, above 0. Later backups of a directory have greater ones.
   */
  uint64_t id;
  /**
   * When it was made: milliseconds since the beginning of 1970, by the clock of the system.
   */
  uint64_t time_ms;
  /**
   * Bytes of the store that it has.
   */
  uint64_t bytes;
  /**
   * Bytes that were copied for it; the others were there.
   */
  uint64_t new_bytes;
  /**
   * Number of files of the store that it has.
   */
  uint64_t files;
  /**
   * Null, except for a damaged backup in a list: why its description cannot be read, as text with a zero byte at its
   * end. The pointer is valid until the function that got the backup returns. All but the number is then 0.
   */
  const char *damage;
} forrest_backup;

/**
 * The function that `forrest_backup_list` calls with each backup, and with its `context`. It returns true to continue,
 * false if it wants no more. It must not keep the pointer, and must return normally, not by an exception or `longjmp`.
 * It may call this library.
 */
typedef bool (*forrest_see_backup)(void *context, const forrest_backup *backup);

/**
 * What `forrest_backup_prune` removed. Later versions of the library may add fields at the end.
 */
typedef struct {
  /**
   * Number of removed backups.
   */
  uint64_t backups;
  /**
   * Bytes of the removed files.
   */
  uint64_t bytes;
} forrest_pruned;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * A text for a code, such as "not found"; "unknown code" for other numbers. Never null; do not free it.
 */
const char *forrest_strerror(int32_t code);

/**
 * The version of the library, such as "0.1.0". Never null; do not free it.
 */
const char *forrest_version(void);

/**
 * The ABI version of the library. A program that may run with another library than it was compiled for
 * compares it with `FORREST_ABI` before it calls any other function.
 */
uint32_t forrest_abi(void);

/**
 * The message of the last call of this thread that returned an error: its kind, what failed, and where.
 * Empty if no call failed. Never null; valid until the next call of this thread.
 */
const char *forrest_error_message(void);

/**
 * The number, from 0, of the change of a batch that made the last failed call of this thread fail.
 * `FORREST_ABSENT` if that call failed for another reason, or if no call failed.
 */
size_t forrest_error_op(void);

/**
 * Creates an options object with all defaults. Destroy it with `forrest_options_destroy`.
 *
 * # Safety
 * - `options` is null or writable.
 */
int32_t forrest_options_create(forrest_options **options);

/**
 * Sets an option, one of `FORREST_CAPACITY_BYTES` to
 * `FORREST_LARGE_VALUES`.
 *
 * `FORREST_INVALID_ARGUMENT` if this version of the library does not know the option or value; nothing is
 * changed then. Limits of numbers are checked when a store is opened.
 */
int32_t forrest_options_set(forrest_options *options, int32_t option, uint64_t value);

/**
 * Sets the directory for the log of a store on disk, usually on another device. Default: the directory of the store.
 * It is created if it does not exist; its parent directory must exist. A store must always be opened with the
 * directory that it was created with; with another one, or none, opening fails with `FORREST_INVALID_ARGUMENT`, and
 * the message names both. "forrest move-log" moves the log of a store.
 *
 * # Safety
 * - `path` is null or ends with a zero byte.
 */
int32_t forrest_options_set_log_directory(forrest_options *options,
                                          const char *path);

/**
 * Sets a function that decides which values stay in a store on disk. It is called, with this `context`, when tables
 * are written: for each value of a memtable that becomes a table, and for each value of tables that are merged, so any
 * number of times for one value, and at no certain time. Until then reads return the value; `forrest_compact` ends
 * with all values decided. Snapshots and iterators keep what they see. What it drops or replaces is no change of
 * `forrest_changes`. A replacement that does not fit the keyspace leaves the value as it is. If `filter` is null,
 * there is none.
 *
 * # Safety
 * - `filter` is null or meets the requirements of `forrest_compaction_filter`, also with `context` in other threads,
 *   until all stores that were opened with these options are closed.
 */
int32_t forrest_options_set_compaction_filter(forrest_options *options,
                                              forrest_compaction_filter filter,
                                              void *context);

/**
 * Registers a merge operator for keyspaces that have chosen it by its name, or are going to
 * (`forrest_set_merge_operator`), in memory and on disk. `sum`, `max`, `min`, `append` and `union` are always
 * registered. A store that has a keyspace with an operator opens only where that is registered, and not if two
 * operators have one name. The store remembers the name, not the function: one whose results change needs a new name.
 *
 * `FORREST_INVALID_ARGUMENT` if `function` is null; nothing is changed then. The name has 1 to 255 bytes of
 * UTF-8; opening a store checks it.
 *
 * # Safety
 * - `name` is null or ends with a zero byte.
 * - `function` is null or meets the requirements of `forrest_merge_function`, also with `context` in other
 *   threads, until all stores that were opened with these options are closed.
 */
int32_t forrest_options_add_merge_operator(forrest_options *options,
                                           const char *name,
                                           forrest_merge_function function,
                                           void *context);

/**
 * Sets a function to which a store on disk reports flushes, merges, stalls and failures, in their order. Null ends
 * that for stores that are opened later. Work waits until it returns, so it should only note the event. Up to 1,024
 * events wait; more are lost, and counted by `forrest_metrics`.
 *
 * # Safety
 * - `listen` is null, or a function that meets the requirements of `forrest_listen`, from any thread, until every
 *   store is closed that was opened with these options. So is `context`, if the function uses it.
 */
int32_t forrest_options_set_listener(forrest_options *options,
                                     forrest_listen listen,
                                     void *context);

/**
 * Sets the file to which a store on disk writes its figures each second, in the text format of Prometheus, as
 * `forrest_metrics` returns it. Default: none. The file is replaced as a whole, and removed when the store is closed.
 * "forrest top" shows it. If it cannot be written at first, opening fails; later failures are ignored.
 *
 * # Safety
 * - `path` is null or ends with a zero byte.
 */
int32_t forrest_options_set_metrics_file(forrest_options *options,
                                         const char *path);

/**
 * Sets the key of an encrypted store on disk: 32 random bytes, which are copied. A new store with a key is encrypted,
 * with its checkpoints and backups; without the key nothing can be read. Later it opens only with its key: with
 * another one, or none, opening fails with `FORREST_INVALID_ARGUMENT` and changes nothing. Other homes fail with
 * `FORREST_UNSUPPORTED`. The functions for directories of backups, and `forrest_salvage`, take the key too.
 *
 * `FORREST_INVALID_ARGUMENT` if there are not 32 bytes; nothing is changed then.
 *
 * # Safety
 * - `key` is null or has `key_bytes` readable bytes.
 */
int32_t forrest_options_set_encryption_key(forrest_options *options,
                                           const void *key,
                                           size_t key_bytes);

/**
 * Destroys an options object. Stores that were opened with it stay open. Null is ignored.
 */
int32_t forrest_options_destroy(forrest_options *options);

/**
 * Opens a store. The URL, in UTF-8, selects the home:
 *
 * - "memory:" is a new, empty store that lives as long as its handles.
 * - A path is a store on disk, in the directory of that name, created if missing.
 * - "llds:NAME" is a store in kernel memory, created if missing. All processes of this user that open it share
 *   it. "llds:UID/NAME" is one of the user with that number, and "llds:shared/NAME" one of the first user who
 *   took the name. It needs the kernel module.
 * - "llds-user:NAME" is the module's engine in this process, if it is compiled into the library.
 *
 * `FORREST_INVALID_ARGUMENT` if `url` names no home; `FORREST_UNSUPPORTED` if its home is not compiled into
 * the library; `FORREST_BUSY` if a store on disk is already open, in this process or another;
 * `FORREST_CORRUPT` if it is damaged; `FORREST_OUT_OF_SPACE`; `FORREST_IO`.
 *
 * # Safety
 * - `url` is null or ends with a zero byte.
 * - `db` is null or writable.
 */
int32_t forrest_open(const char *url,
                     forrest_db **db);

/**
 * Opens a store with options. The options may be changed or destroyed afterwards.
 *
 * `FORREST_INVALID_ARGUMENT` also if an option is outside its limits, or contradicts another one; otherwise
 * as `forrest_open`.
 *
 * # Safety
 * - `url` is null or ends with a zero byte.
 * - `db` is null or writable.
 */
int32_t forrest_open_with(const char *url, const forrest_options *options, forrest_db **db);

/**
 * Makes a handle to a keyspace of a store, and creates the keyspace if it is missing. A name has 1 to 255
 * bytes of UTF-8. If `db` is a snapshot, the handle reads the keyspace in that snapshot; it is empty if it
 * did not exist then.
 *
 * `FORREST_LIMIT` if the name is too long, or the store already has 4,096 keyspaces;
 * `FORREST_INVALID_ARGUMENT` if the name is empty; `FORREST_UNSUPPORTED` in the kernel, which only has the
 * keyspace "default"; `FORREST_OUT_OF_SPACE`; `FORREST_IO`.
 *
 * # Safety
 * - `name` is null or ends with a zero byte.
 * - `keyspace` is null or writable.
 */
int32_t forrest_keyspace(forrest_db *db, const char *name, forrest_db **keyspace);

/**
 * Lists the names of all keyspaces of the store, sorted, each ending with a zero byte. "default" is always
 * among them. List and names are one block of memory; free it with one call of `forrest_free`.
 *
 * `FORREST_OUT_OF_SPACE`; `FORREST_IO`; `FORREST_UNSUPPORTED` if a keyspace has a zero byte in its name,
 * which a program in another language can create.
 *
 * # Safety
 * - `names` and `count` are each null or writable.
 */
int32_t forrest_keyspaces(const forrest_db *db, char ***names, size_t *count);

/**
 * Removes a keyspace with all its pairs. Handles to it fail with `FORREST_INVALID_ARGUMENT` from then on,
 * even if a new keyspace gets the same name. Snapshots still have it.
 *
 * `FORREST_NOT_FOUND` if there is no keyspace of that name; `FORREST_INVALID_ARGUMENT` for "default", which
 * cannot be removed, and if `db` is a snapshot; `FORREST_IO`; `FORREST_STOPPED`.
 *
 * # Safety
 * - `name` is null or ends with a zero byte.
 */
int32_t forrest_drop_keyspace(forrest_db *db, const char *name);

/**
 * Chooses how the tables that the keyspace of `db` gets from now on are compressed: one of
 * `FORREST_COMPRESSION_NONE` to `FORREST_COMPRESSION_ZSTD`. Tables that are there stay as they are until they are
 * merged. The store remembers the choice, which is durable when the call returns.
 *
 * `FORREST_UNSUPPORTED` if the home has no `FORREST_CAN_COMPRESS`, if this build of the library does not have that
 * compression, or if the store is open for reading only; `FORREST_INVALID_ARGUMENT` if `db` is a snapshot;
 * `FORREST_IO`; `FORREST_OUT_OF_SPACE`; `FORREST_STOPPED`.
 */
int32_t forrest_set_compression(forrest_db *db,
                                uint64_t compression);

/**
 * Takes a snapshot of the whole store. The handle reads the keyspace of `db` in it; `forrest_keyspace` makes
 * handles to the other keyspaces. Nothing is copied; while the handle is open, the store keeps the values
 * that are replaced later.
 *
 * `FORREST_UNSUPPORTED` in the kernel; `FORREST_INVALID_ARGUMENT` if `db` is a snapshot.
 *
 * # Safety
 * - `snapshot` is null or writable.
 */
int32_t forrest_snapshot(const forrest_db *db, forrest_db **snapshot);

/**
 * Closes a handle to a store, a keyspace or a snapshot. It waits for calls of other threads that are using
 * the handle. The store itself is closed with the last of its handles, iterators and transactions. A store
 * on disk keeps its data and can be opened again. Null is ignored.
 */
int32_t forrest_close(forrest_db *db);

/**
 * Reads the value of a key and holds it. `forrest_value_data` returns its bytes; release it with
 * `forrest_value_release`. A long value of a store in memory is shared with the store, not copied.
 *
 * `FORREST_NOT_FOUND` if the key does not exist; there is nothing to release then. `FORREST_LIMIT` if the
 * key is too long; `FORREST_IO`; `FORREST_CORRUPT`.
 *
 * # Safety
 * - `key` is null or has `key_bytes` readable bytes.
 * - `value` is null or writable.
 */
int32_t forrest_get(const forrest_db *db, const void *key, size_t key_bytes, forrest_value **value);

/**
 * Reads the value of a key as `forrest_get` does, if that takes no wait for a device, nor for a thread that waits for
 * one: for threads that must not block, such as those of an event loop.
 *
 * `FORREST_NOT_CACHED` if it would have to wait; then call `forrest_get` in another thread. On disk a value that stays
 * in a log is not cached, and right after opening every key of a table may not be. In memory and in the kernel every
 * key is cached. Otherwise returns what `forrest_get` returns.
 *
 * # Safety
 * - `key` is null or has `key_bytes` readable bytes.
 * - `value` is null or writable.
 */
int32_t forrest_get_cached(const forrest_db *db,
                           const void *key,
                           size_t key_bytes,
                           forrest_value **value);

/**
 * Reads the value of a key into newly allocated memory. Free it with `forrest_free`, even if the length of
 * the value is 0.
 *
 * `FORREST_NOT_FOUND` if the key does not exist; there is nothing to free then. Errors as of `forrest_get`,
 * and `FORREST_OUT_OF_SPACE`.
 *
 * # Safety
 * - `key` is null or has `key_bytes` readable bytes.
 * - `value` and `value_bytes` are each null or writable.
 */
int32_t forrest_get_alloc(const forrest_db *db,
                          const void *key,
                          size_t key_bytes,
                          void **value,
                          size_t *value_bytes);

/**
 * Reads the value of a key into a buffer of the caller, and returns its length in `value_bytes`.
 *
 * `FORREST_TOO_SMALL` if the value is longer than the buffer. Then nothing is written to the buffer, and
 * `value_bytes` is the necessary length. (At the next call the value may be longer.) `FORREST_NOT_FOUND` if
 * the key does not exist. Errors as of `forrest_get`.
 *
 * # Safety
 * - `key` is null or has `key_bytes` readable bytes.
 * - `buffer` is null, or has `buffer_bytes` writable bytes that do not overlap the key.
 * - `value_bytes` is null or writable.
 */
int32_t forrest_get_into(const forrest_db *db,
                         const void *key,
                         size_t key_bytes,
                         void *buffer,
                         size_t buffer_bytes,
                         size_t *value_bytes);

/**
 * Reads the values of many keys. This is faster than single reads, because the waits for memory and the
 * device overlap. Keys may be read at different moments; to read all at one moment, use a snapshot.
 *
 * `values` gets a value for each key, or null if the key does not exist. Release each with
 * `forrest_value_release`. If the call fails, all are null. Errors as of `forrest_get`.
 *
 * # Safety
 * - `keys` and `keys_bytes` are each null or have `count` elements. Each key is null or has the number of
 *   bytes in its element of `keys_bytes`.
 * - `values` is null or has `count` writable elements.
 */
int32_t forrest_multi_get(const forrest_db *db,
                          const void *const *keys,
                          const size_t *keys_bytes,
                          size_t count,
                          forrest_value **values);

/**
 * Checks whether a key exists: `FORREST_OK` if it does, `FORREST_NOT_FOUND` if not. Errors as of
 * `forrest_get`.
 *
 * # Safety
 * - `key` is null or has `key_bytes` readable bytes.
 */
int32_t forrest_contains(const forrest_db *db, const void *key, size_t key_bytes);

/**
 * Writes the time at which the value of a key expires to `*expires_ms`, in milliseconds since 1970; 0 if it stays.
 * `FORREST_NOT_FOUND` if the key does not exist. Errors as of `forrest_get`.
 *
 * # Safety
 * - `key` is null or has `key_bytes` readable bytes.
 * - `expires_ms` is null or writable.
 */
int32_t forrest_expires(const forrest_db *db,
                        const void *key,
                        size_t key_bytes,
                        uint64_t *expires_ms);

/**
 * Counts the keys from `start` up to, but without, `end`. A null `end` is no end. Takes time proportional to
 * their number. Errors as of `forrest_get`.
 *
 * # Safety
 * - `start` is null or has `start_bytes` readable bytes, and `end` is null or has `end_bytes`.
 * - `keys` is null or writable.
 */
int32_t forrest_count(const forrest_db *db,
                      const void *start,
                      size_t start_bytes,
                      const void *end,
                      size_t end_bytes,
                      uint64_t *keys);

/**
 * The number of keys from `start` up to, but without, `end`, about, and the bytes that they and their values take. A
 * null `end` is no end. Does not read them: the time that it takes grows with the logarithm of their number, and on
 * disk with the number of tables. In memory a number of many keys is off by 2 % on average. On disk it is exact if
 * all is in tables and no key was replaced or deleted; otherwise it is off by no more than the replaced and deleted
 * entries in the tables there, and the keys in memory.
 *
 * `FORREST_UNSUPPORTED` if the home has no `FORREST_CAN_APPROXIMATE`. Errors as of `forrest_get`.
 *
 * # Safety
 * - `start` is null or has `start_bytes` readable bytes, and `end` is null or has `end_bytes`.
 * - `keys` and `bytes` are each null or writable.
 */
int32_t forrest_approximate(const forrest_db *db,
                            const void *start,
                            size_t start_bytes,
                            const void *end,
                            size_t end_bytes,
                            uint64_t *keys,
                            uint64_t *bytes);

/**
 * Calls `see` with the first `limit` pairs of each of many ranges, range by range in their order, as long as it
 * returns true. Range `n` begins at `starts[n]` and ends before `ends[n]`; a null end is no end. With `keys_only`,
 * values are not read, and their lengths are 0.
 *
 * This is faster than a scan of each range, because the waits of 16 ranges for the device overlap. Ranges may be
 * read at different moments; to read all at one moment, use a snapshot.
 *
 * `FORREST_OK` also if `see` returned false. Errors as of `forrest_scan`, and `FORREST_INVALID_ARGUMENT` if an array
 * is null and `count` is not 0.
 *
 * # Safety
 * - `starts`, `starts_bytes`, `ends` and `ends_bytes` are each null or have `count` elements. Each start and each
 *   end is null or has the number of bytes in its element of `starts_bytes` or `ends_bytes`.
 * - `see` is null, or a function that meets the requirements of `forrest_see_in`.
 */
int32_t forrest_multi_scan(const forrest_db *db,
                           const void *const *starts,
                           const size_t *starts_bytes,
                           const void *const *ends,
                           const size_t *ends_bytes,
                           size_t count,
                           size_t limit,
                           bool keys_only,
                           forrest_see_in see,
                           void *context);

/**
 * Checks for each of many prefixes whether there is a key that begins with it, and sets the elements of `exist`. The
 * waits for the device overlap, as those of `forrest_multi_scan`. If the call fails, all are false. Errors as of
 * `forrest_get`.
 *
 * # Safety
 * - `prefixes` and `prefixes_bytes` are each null or have `count` elements. Each prefix is null or has the number of
 *   bytes in its element of `prefixes_bytes`.
 * - `exist` is null or has `count` writable elements.
 */
int32_t forrest_prefixes_exist(const forrest_db *db,
                               const void *const *prefixes,
                               const size_t *prefixes_bytes,
                               size_t count,
                               bool *exist);

/**
 * Calls `see` with each pair from `start` up to, but without, `end`, in the order of their keys, as long as
 * it returns true. A null `end` is no end. This is the fastest iteration, because it copies nothing. This
 * thread makes the calls. They see the same concurrent changes as an iterator.
 *
 * `FORREST_OK` also if `see` returned false. Errors as of `forrest_get`; `see` may have been called for some
 * pairs before. `FORREST_INVALID_ARGUMENT` also if `see` is null.
 *
 * # Safety
 * - `start` is null or has `start_bytes` readable bytes, and `end` is null or has `end_bytes`.
 * - `see` is null, or a function that meets the requirements of `forrest_see`.
 */
int32_t forrest_scan(const forrest_db *db,
                     const void *start,
                     size_t start_bytes,
                     const void *end,
                     size_t end_bytes,
                     forrest_see see,
                     void *context);

/**
 * Like `forrest_scan`, from the last pair of the range to its first.
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
 * The bytes of a value. They stay valid until the value is released. Do not change them.
 *
 * # Safety
 * - `data` and `value_bytes` are each null or writable.
 */
int32_t forrest_value_data(const forrest_value *value, const void **data, size_t *value_bytes);

/**
 * Releases a value. Its bytes become invalid. Null is ignored.
 */
int32_t forrest_value_release(forrest_value *value);

/**
 * Frees memory that a function of this library allocated and whose documentation names this function. Do not
 * use `free`, because a process may have several allocators. Null is ignored.
 *
 * # Safety
 * - `memory` is null, or came from a function that names this one, and was not freed.
 */
void forrest_free(void *memory);

/**
 * Opens the value of a key to be read in pieces, from its beginning on, and writes its length to `*value_bytes`,
 * unless that is null. A value of `FORREST_LARGE_VALUES` and more on disk is read from the file as the pieces are
 * asked for; other values are in memory until the reader is closed. The value is read as it is now, also if the key
 * gets another one. Close the reader with `forrest_value_reader_close`. Values are written whole:
 * `forrest_blob_begin` writes in pieces.
 *
 * `FORREST_NOT_FOUND` if the key does not exist; there is nothing to close then. Errors as of `forrest_get`.
 *
 * # Safety
 * - `key` is null or has `key_bytes` readable bytes.
 * - `reader` is null or writable, and `value_bytes` is null or writable.
 */
int32_t forrest_value_reader_open(const forrest_db *db,
                                  const void *key,
                                  size_t key_bytes,
                                  forrest_value_reader **reader,
                                  uint64_t *value_bytes);

/**
 * Reads on until `buffer` is full or the value ends, and writes the number of bytes to `*read`: less than `count` at
 * the end of the value, and 0 after it.
 *
 * A value in a file has one checksum, which is compared when its last bytes are read. So all of it was right if the
 * end was reached. `FORREST_CORRUPT` if the value is damaged, whose end is then never reached; `FORREST_IO`.
 *
 * # Safety
 * - `buffer` is null or has `count` writable bytes, and `read` is null or writable.
 */
int32_t forrest_value_reader_read(forrest_value_reader *reader,
                                  void *buffer,
                                  size_t count,
                                  size_t *read);

/**
 * Closes a value reader. Null is ignored.
 */
int32_t forrest_value_reader_close(forrest_value_reader *reader);

/**
 * Sets the value of a key, whether or not the key exists.
 *
 * `FORREST_LIMIT` if one of them is too long (a key has at most 65,535 bytes, in the kernel 4,096; a value
 * 4,294,967,295); `FORREST_INVALID_ARGUMENT` also if `db` is a snapshot, or its keyspace was dropped;
 * `FORREST_OUT_OF_SPACE`; `FORREST_IO`; `FORREST_STOPPED`; `FORREST_UNSUPPORTED` if the store is open
 * read-only.
 *
 * # Safety
 * - `key` is null or has `key_bytes` readable bytes, and `value` is null or has `value_bytes`.
 */
int32_t forrest_set(forrest_db *db, const void *key, size_t key_bytes, const void *value, size_t value_bytes);

/**
 * Sets the value of a key for `ttl_ms` milliseconds. From then on no read returns the value, and its key counts as
 * absent in every operation. Every later change of the key decides anew: `forrest_set` and the others give it the time
 * to live of the keyspace (`forrest_set_ttl`), or none. The time is that of the system's wall clock, but does not go
 * back while the store is open.
 *
 * `FORREST_UNSUPPORTED` if the home has no `FORREST_CAN_TTL`; otherwise as `forrest_set`.
 *
 * # Safety
 * - `key` is null or has `key_bytes` readable bytes, and `value` is null or has `value_bytes`.
 */
int32_t forrest_set_with_ttl(forrest_db *db,
                             const void *key,
                             size_t key_bytes,
                             const void *value,
                             size_t value_bytes,
                             uint64_t ttl_ms);

/**
 * Chooses the time to live of all values that the keyspace gets from now on without one of their own, in milliseconds;
 * 0 if they are to stay. Values that are there keep their time. On disk durable when it returns.
 *
 * `FORREST_UNSUPPORTED` if the home has no `FORREST_CAN_TTL`, and if the store is open read-only;
 * `FORREST_INVALID_ARGUMENT` if the keyspace was dropped; `FORREST_IO`, `FORREST_OUT_OF_SPACE`, `FORREST_STOPPED`.
 */
int32_t forrest_set_ttl(forrest_db *db,
                        uint64_t ttl_ms);

/**
 * Writes the time to live that `forrest_set_ttl` chose to `*ttl_ms`; 0 if values stay.
 *
 * # Safety
 * - `ttl_ms` is null or writable.
 */
int32_t forrest_ttl(forrest_db *db, uint64_t *ttl_ms);

/**
 * Removes a key. `FORREST_NOT_FOUND` if it did not exist; otherwise as `forrest_set`.
 *
 * # Safety
 * - `key` is null or has `key_bytes` readable bytes.
 */
int32_t forrest_delete(forrest_db *db, const void *key, size_t key_bytes);

/**
 * Removes all keys from `start` up to, but without, `end`. A null `end` is no end. `forrest_count` returns their
 * number. It is one change, and happens at one instant. On disk it takes the same time, log and memory for any
 * number of keys. Errors as of `forrest_set`; on disk `FORREST_CORRUPT` or `FORREST_IO` also if a table is damaged
 * that has keys in the range and may have others.
 *
 * # Safety
 * - `start` is null or has `start_bytes` readable bytes, and `end` is null or has `end_bytes`.
 */
int32_t forrest_delete_range(forrest_db *db,
                             const void *start,
                             size_t start_bytes,
                             const void *end,
                             size_t end_bytes);

/**
 * Removes all keys that begin with a prefix, like `forrest_delete_range`.
 *
 * # Safety
 * - `prefix` is null or has `prefix_bytes` readable bytes.
 */
int32_t forrest_delete_prefix(forrest_db *db, const void *prefix, size_t prefix_bytes);

/**
 * Removes all keys of a keyspace, like `forrest_delete_range`. The keyspace stays.
 */
int32_t forrest_clear(forrest_db *db);

/**
 * Adds to a counter, at one instant, and returns its new value in `sum`. A counter is a value of 8 bytes, a
 * big-endian two's complement integer. A missing key counts as 0.
 *
 * `FORREST_INVALID_ARGUMENT` if the value is not a counter, or the sum overflows; otherwise as
 * `forrest_set`.
 *
 * # Safety
 * - `key` is null or has `key_bytes` readable bytes.
 * - `sum` is writable, or null if the result is not wanted.
 */
int32_t forrest_add(forrest_db *db, const void *key, size_t key_bytes, int64_t delta, int64_t *sum);

/**
 * Gives an operand to the merge operator of a keyspace, which makes a new value of it and the old one, at one instant.
 * `forrest_set_merge_operator` chooses the operator. On disk no table is read for a key that is not in memory, except
 * where values expire or the store keeps its history: the operand is applied by reads and by merges of tables.
 *
 * `FORREST_INVALID_ARGUMENT` if the keyspace has no operator, or if it refuses the operand;
 * `FORREST_UNSUPPORTED` in the kernel; otherwise as `forrest_set`.
 *
 * # Safety
 * - `key` is null or has `key_bytes` readable bytes, and so has `operand`.
 */
int32_t forrest_merge(forrest_db *db,
                      const void *key,
                      size_t key_bytes,
                      const void *operand,
                      size_t operand_bytes);

/**
 * Chooses the merge operator of an empty keyspace, for ever: `sum` (integers of 8 bytes, as of `forrest_add`), `max`
 * and `min` (in the order of bytes), `append`, or `union` (items in ascending order, each after its length as a
 * little-endian number of 4 bytes). Durable when it returns. Does nothing if the keyspace has this operator.
 *
 * `FORREST_INVALID_ARGUMENT` if there is no such operator, or if the keyspace has another one or is not empty;
 * `FORREST_UNSUPPORTED` in the kernel.
 *
 * # Safety
 * - `name` is a string that ends with a zero.
 */
int32_t forrest_set_merge_operator(forrest_db *db,
                                   const char *name);

/**
 * Replaces the value of a key by `desired`, at one instant, if it equals `expected`, byte for byte. Null
 * with the length `FORREST_ABSENT` is absence: as `expected` it demands that the key does not exist, as
 * `desired` it removes the key.
 *
 * `FORREST_MISMATCH` if the key has another value. Then nothing is changed, and `found` is that value, or
 * null if there is none. Release it with `forrest_value_release`. Errors as of `forrest_set`.
 *
 * # Safety
 * - `key`, `expected` and `desired` are each null or have `key_bytes`, `expected_bytes` and `desired_bytes`
 *   readable bytes.
 * - `found` is writable, or null if the result is not wanted.
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
 * Creates an empty batch, which belongs to no store. Destroy it with `forrest_batch_destroy`.
 *
 * # Safety
 * - `batch` is null or writable.
 */
int32_t forrest_batch_create(forrest_batch **batch);

/**
 * Selects the keyspace for the changes that are added from now on: that of the handle `db`. Without this
 * call, or after a call with null, changes are for the keyspace of the handle to which the batch is written.
 *
 * `FORREST_INVALID_ARGUMENT` if `db` is a snapshot.
 */
int32_t forrest_batch_on(forrest_batch *batch, const forrest_db *db);

/**
 * Adds a change that sets the value of a key. `FORREST_LIMIT` if one of them is too long for any store.
 *
 * # Safety
 * - `key` is null or has `key_bytes` readable bytes, and `value` is null or has `value_bytes`.
 */
int32_t forrest_batch_set(forrest_batch *batch,
                          const void *key,
                          size_t key_bytes,
                          const void *value,
                          size_t value_bytes);

/**
 * Adds a change that sets the value of a key for `ttl_ms` milliseconds from the time on at which the batch is applied.
 * See `forrest_set_with_ttl`. `FORREST_LIMIT` if one of them is too long for any store.
 *
 * # Safety
 * - `key` is null or has `key_bytes` readable bytes, and `value` is null or has `value_bytes`.
 */
int32_t forrest_batch_set_with_ttl(forrest_batch *batch,
                                   const void *key,
                                   size_t key_bytes,
                                   const void *value,
                                   size_t value_bytes,
                                   uint64_t ttl_ms);

/**
 * Adds a change that removes a key, if it exists. `FORREST_LIMIT` if the key is too long for any store.
 *
 * # Safety
 * - `key` is null or has `key_bytes` readable bytes.
 */
int32_t forrest_batch_delete(forrest_batch *batch, const void *key, size_t key_bytes);

/**
 * Adds a change that removes all keys from `start` up to, but without, `end`. A null `end` is no end.
 * Changes that follow can set keys of the range again.
 *
 * # Safety
 * - `start` is null or has `start_bytes` readable bytes, and `end` is null or has `end_bytes`.
 */
int32_t forrest_batch_delete_range(forrest_batch *batch,
                                   const void *start,
                                   size_t start_bytes,
                                   const void *end,
                                   size_t end_bytes);

/**
 * Adds a change that adds to a counter, like `forrest_add`. If the addition fails, so does the whole batch.
 * `FORREST_LIMIT` if the key is too long for any store.
 *
 * # Safety
 * - `key` is null or has `key_bytes` readable bytes.
 */
int32_t forrest_batch_add(forrest_batch *batch, const void *key, size_t key_bytes, int64_t delta);

/**
 * Adds a change that gives an operand to the merge operator of the keyspace, like `forrest_merge`. If the operator
 * refuses it, or there is none, the whole batch fails. `FORREST_LIMIT` if one of them is too long for any store.
 *
 * # Safety
 * - `key` is null or has `key_bytes` readable bytes, and `operand` is null or has `operand_bytes`.
 */
int32_t forrest_batch_merge(forrest_batch *batch,
                            const void *key,
                            size_t key_bytes,
                            const void *operand,
                            size_t operand_bytes);

/**
 * Adds a change that replaces a value if it is the expected one, like `forrest_compare_and_swap`. On a
 * mismatch nothing of the batch is applied: `forrest_write` fails with `FORREST_CONDITION_FAILED`, and
 * `forrest_try_write` returns `FORREST_MISMATCH`. If `expected` and `desired` are equal, it is a condition
 * that changes nothing. `FORREST_LIMIT` if a key or value is too long for any store.
 *
 * # Safety
 * - `key`, `expected` and `desired` are each null or have `key_bytes`, `expected_bytes` and `desired_bytes`
 *   readable bytes.
 */
int32_t forrest_batch_compare_and_swap(forrest_batch *batch,
                                       const void *key,
                                       size_t key_bytes,
                                       const void *expected,
                                       size_t expected_bytes,
                                       const void *desired,
                                       size_t desired_bytes);

/**
 * Adds the condition that the range from `start` up to, but without, `end` has exactly these `count` pairs, in
 * ascending order. A null `end` is no end. Such conditions stand before all changes of the batch; otherwise
 * `forrest_write` fails with `FORREST_INVALID_ARGUMENT`. They are compared with the store as it is before the
 * batch, in time proportional to `count`, while other threads wait to write. On a mismatch nothing of the batch
 * is applied: `forrest_write` fails with `FORREST_CONDITION_FAILED`, and `forrest_try_write` returns
 * `FORREST_MISMATCH`, with the first key that differs in place of the value. `FORREST_LIMIT` if the key or value
 * of a pair is too long for any store.
 *
 * # Safety
 * - `start` is null or has `start_bytes` readable bytes, and `end` is null or has `end_bytes`.
 * - `keys`, `keys_bytes`, `values` and `values_bytes` are each null or have `count` elements. Each key and value is
 *   null or has the number of readable bytes in its element of `keys_bytes` or `values_bytes`.
 */
int32_t forrest_batch_compare_range(forrest_batch *batch,
                                    const void *start,
                                    size_t start_bytes,
                                    const void *end,
                                    size_t end_bytes,
                                    const void *const *keys,
                                    const size_t *keys_bytes,
                                    const void *const *values,
                                    const size_t *values_bytes,
                                    size_t count);

/**
 * The number of changes in a batch, and the total length of their keys and values.
 *
 * # Safety
 * - `changes` and `bytes` are each null or writable.
 */
int32_t forrest_batch_size(const forrest_batch *batch, size_t *changes, size_t *bytes);

/**
 * Removes all changes from a batch, but keeps its memory. Resets `forrest_batch_on` as well.
 */
int32_t forrest_batch_clear(forrest_batch *batch);

/**
 * Destroys a batch, written or not. Null is ignored.
 */
int32_t forrest_batch_destroy(forrest_batch *batch);

/**
 * Applies all changes of a batch at one instant, or none if one fails. No reader sees a part of it, and no
 * crash leaves a part. Later changes of the batch see earlier ones. The batch keeps its changes. It may be
 * written again, and also to other stores if it names no keyspaces.
 *
 * Errors are those of `forrest_set`. Also `FORREST_CONDITION_FAILED` if a comparison of the batch finds
 * another value than the expected one (`forrest_try_write` returns that value); `FORREST_LIMIT` if the batch
 * has more than 1,048,576 changes or more than 1 GiB of keys and values (the store's options can change
 * these limits); `FORREST_INVALID_ARGUMENT` if an addition is not to a counter, or a keyspace belongs to
 * another store. `forrest_error_op` returns the number of the change that failed.
 */
int32_t forrest_write(forrest_db *db, const forrest_batch *batch);

/**
 * Like `forrest_write`, with this durability, one of `FORREST_DURABILITY_DEFAULT` to
 * `FORREST_DURABILITY_SYNC`. `FORREST_UNSUPPORTED` if the home does not have it.
 */
int32_t forrest_write_with(forrest_db *db, const forrest_batch *batch, uint64_t durability);

/**
 * Like `forrest_write_with`, but a failed comparison is not an error: the function returns
 * `FORREST_MISMATCH`. `change` is then the number of the change in the batch, from 0, and `found` the value
 * that was found, or null if there was none. Release it with `forrest_value_release`.
 *
 * # Safety
 * - `change` and `found` are each writable, or null if the result is not wanted.
 */
int32_t forrest_try_write(forrest_db *db,
                          const forrest_batch *batch,
                          uint64_t durability,
                          size_t *change,
                          forrest_value **found);

/**
 * Begins a transaction. Destroy it with `forrest_transaction_destroy`. It reads and changes the keyspace of
 * `db`; `forrest_transaction_on` selects another one.
 *
 * `FORREST_INVALID_ARGUMENT` if `db` is a snapshot.
 *
 * # Safety
 * - `transaction` is null or writable.
 */
int32_t forrest_transaction_begin(forrest_db *db, forrest_transaction **transaction);

/**
 * Selects the keyspace for all further reads and changes: that of the handle `db`, which must belong to the
 * same store.
 *
 * `FORREST_INVALID_ARGUMENT` if `db` is a snapshot. If it belongs to another store, committing fails.
 */
int32_t forrest_transaction_on(forrest_transaction *transaction, const forrest_db *db);

/**
 * Reads the value of a key and holds it, like `forrest_get`: the transaction's own change, or else the value
 * in the store. The latter must be unchanged when the transaction is committed.
 *
 * `FORREST_NOT_FOUND` if the key does not exist; there is nothing to release then. Errors as of
 * `forrest_get`, and `FORREST_INVALID_ARGUMENT` if the transaction has added to a value that is not a
 * counter.
 *
 * # Safety
 * - `key` is null or has `key_bytes` readable bytes.
 * - `value` is null or writable.
 */
int32_t forrest_transaction_get(forrest_transaction *transaction,
                                const void *key,
                                size_t key_bytes,
                                forrest_value **value);

/**
 * Checks whether a key exists: `FORREST_OK` if it does, `FORREST_NOT_FOUND` if not. The key counts as read,
 * with its value. Errors as of `forrest_transaction_get`.
 *
 * # Safety
 * - `key` is null or has `key_bytes` readable bytes.
 */
int32_t forrest_transaction_contains(forrest_transaction *transaction, const void *key, size_t key_bytes);

/**
 * Locks a key, and then reads it like `forrest_transaction_get`. Until this transaction ends, other transactions that
 * lock the key wait. So transactions that lock what they change take turns, instead of being in conflict. Lock a key
 * before you read it in another way. A lock holds off only those that ask for it: changes outside of transactions, and
 * transactions that read the key without a lock, do not wait, and may put this one in conflict. Other processes that
 * share a store do not see locks.
 *
 * `FORREST_BUSY` if another transaction holds the lock for longer than `forrest_transaction_set_lock_wait` allows, by
 * default 1 second; and at once if waiting would never end, because its owner waits for a lock of this transaction.
 * Then this one can only be in conflict: roll it back and run it again. `FORREST_LIMIT` if the locks of all
 * transactions of the store exceed 64 MiB, at 256 bytes each and their keys. Otherwise as `forrest_transaction_get`.
 *
 * # Safety
 * - `key` is null or has `key_bytes` readable bytes.
 * - `value` is null or writable.
 */
int32_t forrest_transaction_get_for_update(forrest_transaction *transaction,
                                           const void *key,
                                           size_t key_bytes,
                                           forrest_value **value);

/**
 * Locks a key like `forrest_transaction_get_for_update`, without reading it. The key need not exist: it may stand for
 * anything on which transactions agree, such as the front of a queue.
 *
 * # Safety
 * - `key` is null or has `key_bytes` readable bytes.
 */
int32_t forrest_transaction_lock(forrest_transaction *transaction,
                                 const void *key,
                                 size_t key_bytes);

/**
 * Sets how long the transaction waits for each lock, in milliseconds; the next transaction of the handle waits 1
 * second again. With 0 it takes only locks that are free.
 */
int32_t forrest_transaction_set_lock_wait(forrest_transaction *transaction,
                                          uint64_t milliseconds);

/**
 * Begins to read a range, from `start` up to, but without, `end`. A null `end` is no end. `forrest_transaction_next`
 * and `forrest_transaction_prev` return its pairs. A transaction reads one range at a time: this one replaces the one
 * before.
 *
 * # Safety
 * - `start` is null or has `start_bytes` readable bytes, and `end` is null or has `end_bytes`.
 */
int32_t forrest_transaction_range(forrest_transaction *transaction,
                                  const void *start,
                                  size_t start_bytes,
                                  const void *end,
                                  size_t end_bytes);

/**
 * The next pair from the front of the range that is being read: the store's, with the transaction's own changes, which
 * may be made between two calls. Release the key and the value with `forrest_value_release`.
 *
 * The range counts as read up to the last pair that was returned, or as a whole after `FORREST_NOT_FOUND`. What was
 * read must be unchanged when the transaction is committed: the same keys, no others, and the same values.
 *
 * `FORREST_NOT_FOUND` at the end of the range; there is nothing to release then. `FORREST_INVALID_ARGUMENT` if no
 * range is being read. Otherwise errors as of `forrest_transaction_get`; the range keeps its place.
 *
 * # Safety
 * - `key` and `value` are each writable, or null if the result is not wanted.
 */
int32_t forrest_transaction_next(forrest_transaction *transaction,
                                 forrest_value **key,
                                 forrest_value **value);

/**
 * Like `forrest_transaction_next`, from the back of the range. The two ends never cross.
 *
 * # Safety
 * - `key` and `value` are each writable, or null if the result is not wanted.
 */
int32_t forrest_transaction_prev(forrest_transaction *transaction,
                                 forrest_value **key,
                                 forrest_value **value);

/**
 * Sets the value of a key. `FORREST_LIMIT` if one of them is too long for any store.
 *
 * # Safety
 * - `key` is null or has `key_bytes` readable bytes, and `value` is null or has `value_bytes`.
 */
int32_t forrest_transaction_set(forrest_transaction *transaction,
                                const void *key,
                                size_t key_bytes,
                                const void *value,
                                size_t value_bytes);

/**
 * Sets the value of a key for `ttl_ms` milliseconds from the commit on. Until then the transaction reads the value.
 * See `forrest_set_with_ttl`. `FORREST_LIMIT` if one of them is too long for any store.
 *
 * # Safety
 * - `key` is null or has `key_bytes` readable bytes, and `value` is null or has `value_bytes`.
 */
int32_t forrest_transaction_set_with_ttl(forrest_transaction *transaction,
                                         const void *key,
                                         size_t key_bytes,
                                         const void *value,
                                         size_t value_bytes,
                                         uint64_t ttl_ms);

/**
 * Removes a key, if it exists. `FORREST_LIMIT` if it is too long for any store.
 *
 * # Safety
 * - `key` is null or has `key_bytes` readable bytes.
 */
int32_t forrest_transaction_delete(forrest_transaction *transaction, const void *key, size_t key_bytes);

/**
 * Removes all keys from `start` up to, but without, `end`, those that exist at the commit. A null `end` is no end.
 * This is not a read: a key that appears in the range meanwhile is no conflict, and is removed.
 *
 * # Safety
 * - `start` is null or has `start_bytes` readable bytes, and `end` is null or has `end_bytes`.
 */
int32_t forrest_transaction_delete_range(forrest_transaction *transaction,
                                         const void *start,
                                         size_t start_bytes,
                                         const void *end,
                                         size_t end_bytes);

/**
 * Marks a place to which the changes can be taken back by `forrest_transaction_rollback_to`, and returns its number.
 * From the first savepoint on, a transaction also keeps what its changes replace, which counts towards its limits.
 *
 * # Safety
 * - `savepoint` is null or writable.
 */
int32_t forrest_transaction_savepoint(forrest_transaction *transaction,
                                      uint64_t *savepoint);

/**
 * Takes back all changes since a savepoint, in all keyspaces. The savepoint can be used again; later ones are gone.
 * What was read since then still counts as read, and locks are kept until the transaction ends.
 *
 * `FORREST_INVALID_ARGUMENT` if the savepoint is gone, or is one of another transaction; nothing is taken back then.
 */
int32_t forrest_transaction_rollback_to(forrest_transaction *transaction,
                                        uint64_t savepoint);

/**
 * Adds to a counter, like `forrest_add`. This is not a read: transactions that only add to the same counter
 * are not in conflict.
 *
 * `FORREST_LIMIT` if the key is too long for any store; `FORREST_INVALID_ARGUMENT` if the transaction has
 * read or set the key, and its value is not a counter, or if the sum overflows. For any other key the commit
 * reports these errors.
 *
 * # Safety
 * - `key` is null or has `key_bytes` readable bytes.
 */
int32_t forrest_transaction_add(forrest_transaction *transaction,
                                const void *key,
                                size_t key_bytes,
                                int64_t delta);

/**
 * Gives an operand to the merge operator of the keyspace, like `forrest_merge`. It is no read: transactions that only
 * merge into one key are in no conflict. The operands of a key are combined where the operator can do that.
 *
 * `FORREST_INVALID_ARGUMENT` if the keyspace has no operator, or if it refuses the operand; otherwise as
 * `forrest_transaction_set`.
 *
 * # Safety
 * - `key` is null or has `key_bytes` readable bytes, and `operand` is null or has `operand_bytes`.
 */
int32_t forrest_transaction_merge(forrest_transaction *transaction,
                                  const void *key,
                                  size_t key_bytes,
                                  const void *operand,
                                  size_t operand_bytes);

/**
 * Applies all changes of a transaction at one instant, if everything that it read is still so at that instant.
 * Otherwise returns `FORREST_CONFLICT` and changes nothing. In each case the transaction ends, and the handle begins a
 * new one on the keyspace that was selected last. A run that selects another one begins by selecting its first.
 *
 * Errors are those of `forrest_write`; nothing was changed then. The message names the key.
 */
int32_t forrest_transaction_commit(forrest_transaction *transaction);

/**
 * Like `forrest_transaction_commit`, with this durability, one of `FORREST_DURABILITY_DEFAULT` to
 * `FORREST_DURABILITY_SYNC`. `FORREST_UNSUPPORTED` if the home does not have it. After `FORREST_CONFLICT`,
 * `key` is a key whose value has changed since it was read, and `keyspace` the name of its keyspace, without
 * a zero byte at its end. Release both with `forrest_value_release`.
 *
 * # Safety
 * - `keyspace` and `key` are each writable, or null if the result is not wanted.
 */
int32_t forrest_transaction_commit_with(forrest_transaction *transaction,
                                        uint64_t durability,
                                        forrest_value **keyspace,
                                        forrest_value **key);

/**
 * Like `forrest_transaction_commit`, but discards the changes. It verifies that all values that were read
 * existed at one instant, before the caller gives up because of them.
 */
int32_t forrest_transaction_check(forrest_transaction *transaction);

/**
 * Discards all reads and changes of a transaction. The handle begins a new one on the keyspace that was selected last.
 */
int32_t forrest_transaction_rollback(forrest_transaction *transaction);

/**
 * Destroys a transaction. Changes that were not committed are discarded. Null is ignored.
 */
int32_t forrest_transaction_destroy(forrest_transaction *transaction);

/**
 * Begins an ingest into the keyspace of `db`. Destroy it with `forrest_ingest_destroy`, also after it was finished.
 *
 * `FORREST_INVALID_ARGUMENT` if `db` is a snapshot, `FORREST_UNSUPPORTED` if the home has no `FORREST_CAN_INGEST`, or
 * if the store was opened to be read. `FORREST_OUT_OF_SPACE`, `FORREST_STOPPED`.
 *
 * # Safety
 * - `ingest` is null or writable.
 */
int32_t forrest_ingest_begin(forrest_db *db,
                             forrest_ingest **ingest);

/**
 * Adds a pair. Keys come in ascending order of their bytes, each once.
 *
 * `FORREST_INVALID_ARGUMENT` if the key is not greater than the one before (the message names both),
 * `FORREST_LIMIT` if the key or the value is too long: the pair is left out, and the ingest can go on. After another
 * error it is of no use any more.
 *
 * # Safety
 * - `key` is null or has `key_bytes` readable bytes, and `value` is null or has `value_bytes`.
 */
int32_t forrest_ingest_put(forrest_ingest *ingest,
                           const void *key,
                           size_t key_bytes,
                           const void *value,
                           size_t value_bytes);

/**
 * Makes all pairs visible at one instant, and writes their number to `*pairs`, unless that is null. They replace the
 * values that their keys have then. On disk they survive a loss of power when this returns, and so does every change
 * before. The ingest is of no use afterwards, also after an error.
 *
 * An error means that the store has none of the pairs, except `FORREST_STOPPED`: they may be there when the store is
 * opened again.
 *
 * # Safety
 * - `pairs` is null or writable.
 */
int32_t forrest_ingest_finish(forrest_ingest *ingest,
                              uint64_t *pairs);

/**
 * Destroys an ingest. Pairs that were not made visible are discarded. Null is ignored.
 */
int32_t forrest_ingest_destroy(forrest_ingest *ingest);

/**
 * Begins to write a blob: a value of any length, which is written and read in pieces of `piece_bytes`: 1 KiB to 64
 * MiB, or 0 for 256 KiB. `db` is a handle to a keyspace that has blobs only, from `forrest_keyspace`; an empty one
 * becomes such a keyspace. Keys have at most 65,534 bytes. Nobody sees the blob before `forrest_blob_finish`. Destroy
 * the writer with `forrest_blob_writer_destroy`, also after it was finished.
 *
 * `FORREST_INVALID_ARGUMENT` if the keyspace has pairs that are no blobs, if `db` is a snapshot, or for another
 * `piece_bytes`; `FORREST_LIMIT` if the key is too long; `FORREST_UNSUPPORTED` in the kernel; `FORREST_OUT_OF_SPACE`,
 * `FORREST_IO`, `FORREST_STOPPED`.
 *
 * # Safety
 * - `key` is null or has `key_bytes` readable bytes.
 * - `writer` is null or writable.
 */
int32_t forrest_blob_begin(forrest_db *db,
                           const void *key,
                           size_t key_bytes,
                           uint32_t piece_bytes,
                           forrest_blob_writer **writer);

/**
 * Writes the next bytes of a blob. After an error the blob is discarded.
 *
 * `FORREST_UNSUPPORTED` in a store that was opened to be read; `FORREST_CONDITION_FAILED` if another program has
 * removed the blob as unfinished; `FORREST_INVALID_ARGUMENT` if it was finished or discarded; `FORREST_OUT_OF_SPACE`,
 * `FORREST_IO`, `FORREST_STOPPED`, `FORREST_BUSY`.
 *
 * # Safety
 * - `bytes` is null or has `count` readable bytes.
 */
int32_t forrest_blob_write(forrest_blob_writer *writer,
                           const void *bytes,
                           size_t count);

/**
 * Makes a blob visible, whole, in place of the one that its key had. It is as durable then as a change of the store.
 * The writer is of no use afterwards, also after an error.
 *
 * Errors as of `forrest_blob_write`.
 */
int32_t forrest_blob_finish(forrest_blob_writer *writer);

/**
 * Destroys a writer. A blob that was not finished is discarded. Null is ignored.
 */
int32_t forrest_blob_writer_destroy(forrest_blob_writer *writer);

/**
 * Opens a blob to be read, and writes its length to `*blob_bytes`, unless that is null. `db` is a handle to the
 * keyspace, or a snapshot of it. The blob is read as it is now, also if the key gets another one. Close it with
 * `forrest_blob_close`.
 *
 * `FORREST_NOT_FOUND` if there is none; `FORREST_UNSUPPORTED` in the kernel; `FORREST_IO`, `FORREST_CORRUPT`.
 *
 * # Safety
 * - `key` is null or has `key_bytes` readable bytes.
 * - `blob` is null or writable, and `blob_bytes` is null or writable.
 */
int32_t forrest_blob_open(const forrest_db *db,
                          const void *key,
                          size_t key_bytes,
                          forrest_blob **blob,
                          uint64_t *blob_bytes);

/**
 * Reads from an offset on until `buffer` is full or the blob ends, and writes the number of bytes to `*read`.
 *
 * `FORREST_CORRUPT` if a piece is missing or damaged; `FORREST_IO`, `FORREST_BUSY`.
 *
 * # Safety
 * - `buffer` is null or has `count` writable bytes, and `read` is null or writable.
 */
int32_t forrest_blob_read(const forrest_blob *blob,
                          uint64_t offset,
                          void *buffer,
                          size_t count,
                          size_t *read);

/**
 * Closes a blob. Null is ignored.
 */
int32_t forrest_blob_close(forrest_blob *blob);

/**
 * Removes a blob. `FORREST_NOT_FOUND` if there is none; otherwise errors as of `forrest_blob_begin`.
 *
 * # Safety
 * - `key` is null or has `key_bytes` readable bytes.
 */
int32_t forrest_blob_delete(forrest_db *db, const void *key, size_t key_bytes);

/**
 * Calls `see` with each key from `start` up to, but without, `end`, and the length of its blob in bytes, in order, as
 * long as it returns true. A null `end` is no end. Reads no piece.
 *
 * `FORREST_INVALID_ARGUMENT` if `see` is null; otherwise errors as of `forrest_blob_begin`.
 *
 * # Safety
 * - `start` is null or has `start_bytes` readable bytes, and `end` is null or has `end_bytes`.
 * - `see` is null, or a function that meets the requirements of `forrest_see_blob`.
 */
int32_t forrest_blob_list(forrest_db *db,
                          const void *start,
                          size_t start_bytes,
                          const void *end,
                          size_t end_bytes,
                          forrest_see_blob see,
                          void *context);

/**
 * Begins a stream of the changes after sequence number `since`, each as soon as it has this durability:
 * `FORREST_DURABILITY_DEFAULT` to `FORREST_DURABILITY_SYNC`. The store is on disk and has `FORREST_HISTORY`, or is
 * opened to be read beside a process that has. Destroy it with `forrest_changes_destroy`.
 *
 * `FORREST_GONE` if some of the changes are no longer kept; `FORREST_INVALID_ARGUMENT` without that option, or if `db`
 * is a snapshot; `FORREST_UNSUPPORTED` if the home has no `FORREST_CAN_CHANGES`; `FORREST_IO`, `FORREST_CORRUPT`,
 * `FORREST_OUT_OF_SPACE`.
 *
 * # Safety
 * - `changes` is null or writable.
 */
int32_t forrest_changes_begin(forrest_db *db,
                              uint64_t since,
                              uint64_t durability,
                              forrest_changes **changes);

/**
 * Writes the next change to `*change`, and returns `FORREST_OK`. If there is none yet, waits up to `wait_ms`
 * milliseconds for one, and then returns `FORREST_NOT_FOUND`. `forrest_changes_destroy` waits for it.
 *
 * `FORREST_GONE` if the next changes are no longer kept; `FORREST_IO`, `FORREST_CORRUPT`, `FORREST_OUT_OF_SPACE`,
 * `FORREST_STOPPED`.
 *
 * # Safety
 * - `change` is null or writable.
 */
int32_t forrest_changes_next(forrest_changes *changes,
                             uint64_t wait_ms,
                             forrest_change *change);

/**
 * Destroys a stream of changes. Null is ignored.
 */
int32_t forrest_changes_destroy(forrest_changes *changes);

/**
 * Writes the sequence number of the last change that a snapshot has to `*sequence`: the changes after it are those
 * that the snapshot lacks.
 *
 * `FORREST_INVALID_ARGUMENT` if `snapshot` is not a snapshot; `FORREST_UNSUPPORTED` if the home has no
 * `FORREST_CAN_CHANGES`.
 *
 * # Safety
 * - `sequence` is null or writable.
 */
int32_t forrest_snapshot_sequence(const forrest_db *snapshot,
                                  uint64_t *sequence);

/**
 * Creates an iterator, which is not yet at a pair. Destroy it with `forrest_iter_destroy`. It may outlive
 * the handle `db`, and keeps the store open. If `db` is a snapshot, it iterates over the snapshot.
 *
 * Each move returns `FORREST_OK` if it came to a pair, `FORREST_NOT_FOUND` if there is none, or an error.
 * After `FORREST_NOT_FOUND` the iterator is at no pair. This is a loop over all pairs:
 *
 *     for (code = forrest_iter_first(iter); code == FORREST_OK; code = forrest_iter_next(iter)) { ... }
 *     if (code < 0) { ... forrest_error_message() ... }
 *
 * # Safety
 * - `iter` is null or writable.
 */
int32_t forrest_iter_create(const forrest_db *db, forrest_iter **iter);

/**
 * Creates an iterator that reads no values. `forrest_iter_value` of it is `FORREST_INVALID_ARGUMENT`. Else as
 * `forrest_iter_create`.
 *
 * # Safety
 * - `iter` is null or writable.
 */
int32_t forrest_iter_create_keys(const forrest_db *db, forrest_iter **iter);

/**
 * Moves to the first key at or after `key`, which may have any length, as a bound of a range.
 *
 * # Safety
 * - `key` is null or has `key_bytes` readable bytes.
 */
int32_t forrest_iter_seek(forrest_iter *iter, const void *key, size_t key_bytes);

/**
 * Moves to the last key at or before `key`, which may have any length.
 *
 * # Safety
 * - `key` is null or has `key_bytes` readable bytes.
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
 * Moves to the next key. An iterator at no pair stays so.
 */
int32_t forrest_iter_next(forrest_iter *iter);

/**
 * Moves to the previous key. An iterator at no pair stays so.
 */
int32_t forrest_iter_prev(forrest_iter *iter);

/**
 * Moves `pairs` pairs forward, like that number of calls of `forrest_iter_next`, but reads no values on the
 * way.
 */
int32_t forrest_iter_skip(forrest_iter *iter, uint64_t pairs);

/**
 * Releases everything that the iterator holds except its pair: on disk, the version that it reads, with
 * memory and files that may have been replaced since. The iterator keeps its position. Use it for iterators
 * that stay unused for long between moves.
 */
int32_t forrest_iter_park(forrest_iter *iter);

/**
 * True if the last move came to a pair; false for an invalid handle.
 */
bool forrest_iter_valid(const forrest_iter *iter);

/**
 * Returns the error of the last move, with its message, or `FORREST_OK` if it did not fail, even if it came
 * to no pair. Call it after a loop over `forrest_iter_valid`.
 */
int32_t forrest_iter_status(const forrest_iter *iter);

/**
 * The key at the iterator. Its bytes stay valid until the iterator is moved or destroyed. Do not change
 * them.
 *
 * `FORREST_NOT_FOUND` at no pair; the error of the last move, if it failed.
 *
 * # Safety
 * - `key` and `key_bytes` are each null or writable.
 */
int32_t forrest_iter_key(const forrest_iter *iter, const void **key, size_t *key_bytes);

/**
 * The value at the iterator. Its bytes stay valid until the iterator is moved or destroyed. Do not change
 * them.
 *
 * `FORREST_NOT_FOUND` at no pair; the error of the last move, if it failed; `FORREST_IO`, `FORREST_CORRUPT`;
 * `FORREST_INVALID_ARGUMENT` if the iterator reads keys only.
 *
 * # Safety
 * - `value` and `value_bytes` are each null or writable.
 */
int32_t forrest_iter_value(forrest_iter *iter, const void **value, size_t *value_bytes);

/**
 * Destroys an iterator. Null is ignored.
 */
int32_t forrest_iter_destroy(forrest_iter *iter);

/**
 * Makes everything written before as durable as this home can, and then returns. On disk it then survives a
 * loss of power. In memory this returns at once, because nothing outlives the process.
 *
 * `FORREST_IO` if the device reports a failure; `FORREST_STOPPED` after an earlier failure.
 */
int32_t forrest_sync(forrest_db *db);

/**
 * Writes a checkpoint: a copy of the store, as it is at one moment of this call, in a new directory. The
 * copy is an independent store on disk. Readers and writers do not wait meanwhile. The copy has every change
 * that was acknowledged before, and each batch whole or not at all. `path` must not exist, or be an empty
 * directory. The copy gets this name only when it is complete and survives a loss of power. On the same file
 * system both stores share the tables by hard links; on another one everything is copied.
 *
 * A checkpoint that fails leaves nothing. `FORREST_INVALID_ARGUMENT` if `path` exists and is not an empty
 * directory, or cannot be a store's directory; `FORREST_BUSY` if another checkpoint to it is in progress;
 * `FORREST_IO`; `FORREST_OUT_OF_SPACE`; `FORREST_UNSUPPORTED` if the home does not have
 * `FORREST_CAN_CHECKPOINT`.
 *
 * # Safety
 * - `path` is null or ends with a zero byte.
 */
int32_t forrest_checkpoint(forrest_db *db, const char *path);

/**
 * Reads all files and verifies their checksums, without using any cache. Takes time proportional to the size
 * of the store.
 *
 * `FORREST_CORRUPT`, with file and offset of the first damage in the message; `FORREST_IO`; `FORREST_UNSUPPORTED` in
 * memory and in the kernel.
 */
int32_t forrest_verify(forrest_db *db);

/**
 * Writes the memtables to tables and merges all tables, so that the store takes the least space and its logs
 * are empty. Takes time proportional to the size of the store. Writers may be delayed meanwhile.
 *
 * `FORREST_IO`, `FORREST_OUT_OF_SPACE`, `FORREST_STOPPED`; `FORREST_UNSUPPORTED` in memory and in the kernel.
 */
int32_t forrest_compact(forrest_db *db);

/**
 * Moves all changes from memory and logs to tables. When this returns, they survive a loss of power, the logs are
 * empty, and the next opening reads none. Takes time proportional to the changes since the last flush. In memory and
 * in the kernel it does nothing. To make changes durable, `forrest_sync` is faster.
 *
 * `FORREST_IO`, `FORREST_OUT_OF_SPACE`, `FORREST_STOPPED`.
 */
int32_t forrest_flush(forrest_db *db);

/**
 * Gives memory that a store in memory does not use back to the system, for example after many deletes beside a long
 * scan, if no changes follow. Waits for nothing. On disk and in the kernel it does nothing.
 */
int32_t forrest_trim(forrest_db *db);

/**
 * Finishes the background work that earlier changes have left, so that the next opening and the first reads are fast.
 * Call it after a large load, before the store is closed. In memory and in the kernel it does nothing.
 *
 * `FORREST_IO`, `FORREST_OUT_OF_SPACE`, `FORREST_STOPPED`.
 */
int32_t forrest_settle(forrest_db *db);

/**
 * Accepts changes again after a failure of the disk that has stopped the store, without opening it again. Everything
 * in memory is written to new tables, with a new manifest and a new log. When this returns, all changes that reads
 * show have survived a loss of power, also those whose calls have failed after they were applied. Does nothing if the
 * store is not stopped.
 *
 * `FORREST_STOPPED` if the store has to be opened again; otherwise the failure, if it is still there, and the store
 * may be resumed later.
 */
int32_t forrest_resume(forrest_db *db);

/**
 * Replaces the key that opens an encrypted store on disk by another one of 32 bytes. No data is written again. When
 * this returns, only the new key opens the store, also after a loss of power. Checkpoints and backups that were made
 * before need the old one.
 *
 * `FORREST_INVALID_ARGUMENT` if there are not 32 bytes, or the store is not encrypted; `FORREST_UNSUPPORTED` in other
 * homes, and if the store can only be read; `FORREST_OUT_OF_SPACE`; `FORREST_IO`: either key may open the store then.
 *
 * # Safety
 * - `key` is null or has `key_bytes` readable bytes.
 */
int32_t forrest_rotate_key(forrest_db *db,
                           const void *key,
                           size_t key_bytes);

/**
 * Adds a random data key to an encrypted store on disk. Files that are made from now on are encrypted with it; older
 * ones keep theirs until they are merged. It is for a key that may have leaked together with a copy of the store.
 *
 * `FORREST_INVALID_ARGUMENT` if the store is not encrypted; `FORREST_UNSUPPORTED` in other homes, and if the store can
 * only be read; `FORREST_OUT_OF_SPACE`; `FORREST_IO`.
 */
int32_t forrest_rotate_data_key(forrest_db *db);

/**
 * Changes an option of an open store, for all its handles, until it is closed: `FORREST_BATCH_OPS_MAX`,
 * `FORREST_BATCH_BYTES_MAX`, and on disk `FORREST_MEMORY_BYTES`, `FORREST_MEMTABLE_BYTES`, `FORREST_CACHE_BYTES`,
 * `FORREST_TABLE_BYTES`, `FORREST_WORKERS`, `FORREST_OPEN_FILES`, `FORREST_WAIT_MS` and
 * `FORREST_BACKGROUND_BYTES_PER_SECOND`. The change takes effect at once. A table size holds for the next tables. A
 * smaller cache gives its memory back in steps of 2 MiB or 1/1000, as far as nobody reads its pages. With
 * `FORREST_MEMORY_BYTES`, sizes of memtables and cache that were never set follow.
 *
 * `FORREST_INVALID_ARGUMENT` for a value outside its limits, also for less memory than memtable and cache were set to
 * together, or an option that an open store cannot change;
 * `FORREST_LIMIT` for a cache beyond four times what the store was opened with or beyond 1,000 MiB, if that is more
 * than it was opened with; `FORREST_UNSUPPORTED` for an option that the home does not have. Nothing is changed then.
 */
int32_t forrest_set_option(forrest_db *db,
                           int32_t option,
                           uint64_t value);

/**
 * Merges the tables that may have keys from `start` up to but not including `end`; if `end` is null, up to the last
 * key. The memtables are written to tables first. Afterwards the range takes the least space. Neighbouring pairs, of
 * the size of a table, may be rewritten too.
 *
 * As `forrest_compact`; `FORREST_INVALID_ARGUMENT` if the keyspace was dropped.
 *
 * # Safety
 * - `start` and `end` are null or have `start_bytes` and `end_bytes` readable bytes.
 */
int32_t forrest_compact_range(forrest_db *db,
                              const void *start,
                              size_t start_bytes,
                              const void *end,
                              size_t end_bytes);

/**
 * Takes over what another process has changed, if the store is on disk and was opened with `FORREST_READ_ONLY`.
 * Snapshots and iterators that exist stay as they are. For any other store it does nothing: they see every change at
 * once.
 *
 * `FORREST_IO`, `FORREST_CORRUPT`, `FORREST_OUT_OF_SPACE`; the store then stays as it was.
 */
int32_t forrest_refresh(forrest_db *db);

/**
 * Returns the statistics of a store. `stats_bytes` is `sizeof(forrest_stats)`. Fields that the program was
 * not compiled for are left out, and fields that this library does not have are 0.
 *
 * # Safety
 * - `stats` is null or has `stats_bytes` writable bytes.
 */
int32_t forrest_get_stats(const forrest_db *db, forrest_stats *stats, size_t stats_bytes);

/**
 * Returns what a store on disk holds and has done since it was opened, in the text format of Prometheus: counters and
 * gauges whose names begin with `forrest_`. It is newly allocated memory, without a zero byte at its end. Free it with
 * `forrest_free`.
 *
 * `FORREST_UNSUPPORTED` if the home has no `FORREST_CAN_METRICS`; `FORREST_INVALID_ARGUMENT` if `db` is a snapshot;
 * `FORREST_OUT_OF_SPACE`.
 *
 * # Safety
 * - `text` and `text_bytes` are each null or writable.
 */
int32_t forrest_metrics(const forrest_db *db,
                        void **text,
                        size_t *text_bytes);

/**
 * Returns the capabilities of a store's home, as a sum of `FORREST_CAN_ITERATE` to `FORREST_CAN_TTL`. A
 * call that needs a missing one fails with `FORREST_UNSUPPORTED`.
 *
 * # Safety
 * - `capabilities` is null or writable.
 */
int32_t forrest_capabilities(const forrest_db *db, uint64_t *capabilities);

/**
 * Copies what is intact of the damaged store on disk in the directory `from` to a new store at `to`. It also works if
 * `forrest_open` fails with `FORREST_CORRUPT`. It writes nothing at `from`. Close the store before. `key` is the key
 * of an encrypted store, 32 bytes, which the new store has too; null, with the length 0, if the store is plain.
 *
 * While it copies, this thread calls `go_on`, unless that is null, with the same `context`. If it returns false, the
 * salvage ends with `FORREST_BUSY`. After the copy is complete, this thread calls `see` with each range of keys of
 * which something was lost, as long as it returns true. If `see` is null, the losses are only counted. Outside of
 * these ranges, each key has exactly the value that it had. In a range that is lost, a key has a value that it once
 * had, or none. `salvaged_bytes` is `sizeof(forrest_salvaged)`; fields that the program was not compiled for are left
 * out, and fields that this library does not have are 0.
 *
 * `to` must not exist, or be an empty directory; its parent directory must exist. The new store gets this name only
 * when it is complete and survives a loss of power. The call blocks until then, for a time proportional to the data.
 * There is nothing to free.
 *
 * `FORREST_OK` also if something was lost, and if `see` returned false. A salvage that fails leaves nothing, calls
 * `see` never, and sets `salvaged` to 0: `FORREST_CORRUPT` if no part of the manifest can be read;
 * `FORREST_INVALID_ARGUMENT` if `to` exists and is not an empty directory, or lies within `from`, if a path is a URL,
 * or for a wrong key or one that is missing; `FORREST_BUSY` if the store is open to be changed, or another salvage or
 * checkpoint to `to` is in progress; `FORREST_UNSUPPORTED` for files of another version; `FORREST_IO`;
 * `FORREST_OUT_OF_SPACE`.
 *
 * # Safety
 * - `from` and `to` are each null or end with a zero byte.
 * - `key` is null or has `key_bytes` readable bytes.
 * - `go_on` is null, or a function that meets the requirements of `forrest_go_on`.
 * - `see` is null, or a function that meets the requirements of `forrest_see_loss`.
 * - `salvaged` is null or has `salvaged_bytes` writable bytes.
 */
int32_t forrest_salvage(const char *from,
                        const void *key,
                        size_t key_bytes,
                        const char *to,
                        forrest_go_on go_on,
                        forrest_see_loss see,
                        void *context,
                        forrest_salvaged *salvaged,
                        size_t salvaged_bytes);

/**
 * Moves the log of the store on disk in the directory `store` to the directory `to`, or back into that of the store if
 * `to` is null. From then on, open the store with `forrest_options_set_log_directory` for that directory, or without.
 *
 * The store must be closed. It knows where its log is. The call blocks for a time proportional to the log. A crash
 * leaves the log in one of the two places, complete; another call with the same arguments finishes the move.
 *
 * `FORREST_BUSY` if the store is open, or another process reads it; `FORREST_INVALID_ARGUMENT` if `to` belongs to
 * another store or has files of one, or if a path is a URL; `FORREST_UNSUPPORTED` if one of the directories cannot be
 * written to; `FORREST_IO`; `FORREST_OUT_OF_SPACE`. The log is then where it was.
 *
 * # Safety
 * - `store` and `to` are each null or end with a zero byte.
 */
int32_t forrest_move_log(const char *store,
                         const char *to);

/**
 * Adds a backup of the store of `db`, as it is at one moment of this call, to the directory of backups `directory`,
 * which is made if it is missing; its parent must exist. Only what no earlier backup there has is copied. Readers and
 * writers do not wait meanwhile. When this returns, the backup survives a loss of power. Put it on another device.
 *
 * If the newest backup there is of another directory, the call fails, unless `other_store` is true. `go_on` is called
 * as for `forrest_salvage`. It may close `db`; the store then stays open until this returns. `backup_bytes` is
 * `sizeof(forrest_backup)`; fields that the program was not compiled for are left out, and fields that this library
 * does not have are 0. A store that another process has open can be opened with `FORREST_READ_ONLY` and backed up.
 *
 * A backup that fails leaves the earlier ones whole: `FORREST_INVALID_ARGUMENT` if the directory has other files, lies
 * within that of the store, or has backups of another store; `FORREST_BUSY` if somebody else changes it, or if `go_on`
 * returned false; `FORREST_CORRUPT` if a table of the store is damaged; `FORREST_UNSUPPORTED` if the home has no
 * `FORREST_CAN_BACKUP`; `FORREST_OUT_OF_SPACE`; `FORREST_IO`.
 *
 * # Safety
 * - `directory` is null or ends with a zero byte.
 * - `go_on` is null, or a function that meets the requirements of `forrest_go_on`.
 * - `backup` is null or has `backup_bytes` writable bytes.
 */
int32_t forrest_backup_create(forrest_db *db,
                              const char *directory,
                              bool other_store,
                              forrest_go_on go_on,
                              void *context,
                              forrest_backup *backup,
                              size_t backup_bytes);

/**
 * Calls `see` with each backup in a directory, from the oldest on, as long as it returns true. Copies of tables are
 * not read: `forrest_backup_verify` does that.
 *
 * `key` is the key of a directory of encrypted backups, 32 bytes; null, with the length 0, if they are plain. A
 * directory has the key that its store had when the directory was made.
 *
 * `FORREST_IO` if there are no backups; `FORREST_INVALID_ARGUMENT` if the directory has other files, for a wrong key
 * or one that is missing, or if `see` is null.
 *
 * # Safety
 * - `directory` is null or ends with a zero byte.
 * - `key` is null or has `key_bytes` readable bytes.
 * - `see` is null, or a function that meets the requirements of `forrest_see_backup`.
 */
int32_t forrest_backup_list(const char *directory,
                            const void *key,
                            size_t key_bytes,
                            forrest_see_backup see,
                            void *context);

/**
 * Reads every byte of a backup, and checks it: of that with the number `id`, or of the newest one if `id` is 0.
 * `go_on` and `backup` are as for `forrest_backup_create`, and `key` as for `forrest_backup_list`.
 *
 * `FORREST_CORRUPT` for the first damage, with file and offset in the message; `FORREST_INVALID_ARGUMENT` if there is
 * no such backup, and for a wrong key; `FORREST_BUSY` if `go_on` returned false; `FORREST_IO`.
 *
 * # Safety
 * - `directory` is null or ends with a zero byte.
 * - `key` is null or has `key_bytes` readable bytes.
 * - `go_on` is null, or a function that meets the requirements of `forrest_go_on`.
 * - `backup` is null or has `backup_bytes` writable bytes.
 */
int32_t forrest_backup_verify(const char *directory,
                              const void *key,
                              size_t key_bytes,
                              uint64_t id,
                              forrest_go_on go_on,
                              void *context,
                              forrest_backup *backup,
                              size_t backup_bytes);

/**
 * Makes a new store in the directory `to` of a backup: of that with the number `id`, or of the newest one if `id` is
 * 0. Every byte is checked on the way. `to` must not exist, or be an empty directory; its parent must exist. The store
 * gets this name only when it is complete and survives a loss of power. `go_on` and `backup` are as for
 * `forrest_backup_create`. A directory that is encrypted needs its `key`, as for `forrest_backup_list`; the store has
 * the same one.
 *
 * After a failure there is nothing at `to`: `FORREST_CORRUPT` if the backup is damaged, with file and offset in the
 * message; `FORREST_INVALID_ARGUMENT` if there is no such backup, for a wrong key, or if something is at `to`;
 * `FORREST_BUSY` if `go_on`
 * returned false; `FORREST_OUT_OF_SPACE`; `FORREST_IO`.
 *
 * # Safety
 * - `directory` and `to` are each null or end with a zero byte.
 * - `key` is null or has `key_bytes` readable bytes.
 * - `go_on` is null, or a function that meets the requirements of `forrest_go_on`.
 * - `backup` is null or has `backup_bytes` writable bytes.
 */
int32_t forrest_backup_restore(const char *directory,
                               const void *key,
                               size_t key_bytes,
                               uint64_t id,
                               const char *to,
                               forrest_go_on go_on,
                               void *context,
                               forrest_backup *backup,
                               size_t backup_bytes);

/**
 * Removes old backups, and then the files that no other backup needs. `keep` is `FORREST_KEEP_NEWEST` or
 * `FORREST_KEEP_SINCE`, and says what `bound` is. The newest backup always stays. `pruned_bytes` is
 * `sizeof(forrest_pruned)`, and `key` as for `forrest_backup_list`.
 *
 * Nothing is removed if the call fails with `FORREST_CORRUPT` or `FORREST_UNSUPPORTED`, because a description that
 * cannot be read may name any file; with `FORREST_BUSY`, because a backup that is to go is being read, or somebody
 * else changes the directory; or with `FORREST_INVALID_ARGUMENT`. Also `FORREST_IO`.
 *
 * # Safety
 * - `directory` is null or ends with a zero byte.
 * - `key` is null or has `key_bytes` readable bytes.
 * - `pruned` is null or has `pruned_bytes` writable bytes.
 */
int32_t forrest_backup_prune(const char *directory,
                             const void *key,
                             size_t key_bytes,
                             int32_t keep,
                             uint64_t bound,
                             forrest_pruned *pruned,
                             size_t pruned_bytes);

/**
 * Lists the names of the stores in the kernel ("llds:NAME") that this user owns, or may read or write. The
 * names are sorted, and each ends with a zero byte; they may be any other bytes. List and names are one
 * block of memory; free it with one call of `forrest_free`. A store that is created or destroyed meanwhile
 * may be missing.
 *
 * `FORREST_IO` if the module is not loaded or this user may not use it; the message says what to do.
 * `FORREST_UNSUPPORTED` if the module has another version; `FORREST_OUT_OF_SPACE`.
 *
 * # Safety
 * - `names` and `count` are each null or writable.
 */
int32_t forrest_llds_list(char ***names, size_t *count);

/**
 * Destroys a store in the kernel. Its name is free at once: opening that name creates a new store. Programs
 * that have the old store open may still use it; its memory is freed when the last of them closes it.
 *
 * `FORREST_NOT_FOUND` if there is no store of that name. Errors as of `forrest_llds_list`, and `FORREST_IO`
 * also if the store belongs to another user.
 *
 * # Safety
 * - `name` is null or ends with a zero byte.
 */
int32_t forrest_llds_destroy(const char *name);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FORREST_H */

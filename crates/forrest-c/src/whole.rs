//! Operations on a whole store: sync, checkpoint, verify, flush, settle, compact, resume, changes of options,
//! statistics, and the capabilities of its home.

use crate::argument::{self, Fields, Place, text};
use crate::code::FORREST_OK;
use crate::db::Db;
use crate::failure::guard;
use crate::options::changes;
use crate::value::hand_over;
use forrest_rust::Capability;
use std::ffi::{c_char, c_void};
use std::ptr;

/// Makes everything written before as durable as this home can, and then returns. On disk it then survives a
/// loss of power. In memory this returns at once, because nothing outlives the process.
///
/// `FORREST_IO` if the device reports a failure; `FORREST_STOPPED` after an earlier failure.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_sync(db: *mut Db) -> i32 {
    whole(db, |store| store.sync())
}

/// Writes a checkpoint: a copy of the store, as it is at one moment of this call, in a new directory. The
/// copy is an independent store on disk. Readers and writers do not wait meanwhile. The copy has every change
/// that was acknowledged before, and each batch whole or not at all. `path` must not exist, or be an empty
/// directory. The copy gets this name only when it is complete and survives a loss of power. On the same file
/// system both stores share the tables by hard links; on another one everything is copied.
///
/// A checkpoint that fails leaves nothing. `FORREST_INVALID_ARGUMENT` if `path` exists and is not an empty
/// directory, or cannot be a store's directory; `FORREST_BUSY` if another checkpoint to it is in progress;
/// `FORREST_IO`; `FORREST_OUT_OF_SPACE`; `FORREST_UNSUPPORTED` if the home does not have
/// `FORREST_CAN_CHECKPOINT`.
///
/// # Safety
/// - `path` is null or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_checkpoint(db: *mut Db, path: *const c_char) -> i32 {
    guard(|| {
        // SAFETY: `path` is null or ends with a zero byte, as the Safety section demands.
        let path = unsafe { text("path", path) }?;
        Db::of(db)?.newest()?.0.checkpoint(path)?;
        Ok(FORREST_OK)
    })
}

/// Reads all files and verifies their checksums, without using any cache. Takes time proportional to the size
/// of the store.
///
/// `FORREST_CORRUPT`, with file and offset of the first damage in the message; `FORREST_IO`; `FORREST_UNSUPPORTED` in
/// memory and in the kernel.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_verify(db: *mut Db) -> i32 {
    whole(db, |store| store.verify())
}

/// Writes the memtables to tables and merges all tables, so that the store takes the least space and its logs
/// are empty. Takes time proportional to the size of the store. Writers may be delayed meanwhile.
///
/// `FORREST_IO`, `FORREST_OUT_OF_SPACE`, `FORREST_STOPPED`; `FORREST_UNSUPPORTED` in memory and in the kernel.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_compact(db: *mut Db) -> i32 {
    whole(db, |store| store.compact())
}

/// Moves all changes from memory and logs to tables. When this returns, they survive a loss of power, the logs are
/// empty, and the next opening reads none. Takes time proportional to the changes since the last flush. In memory and
/// in the kernel it does nothing. To make changes durable, `forrest_sync` is faster.
///
/// `FORREST_IO`, `FORREST_OUT_OF_SPACE`, `FORREST_STOPPED`.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_flush(db: *mut Db) -> i32 {
    whole(db, |store| store.flush())
}

/// Gives memory that a store in memory does not use back to the system, for example after many deletes beside a long
/// scan, if no changes follow. Waits for nothing. On disk and in the kernel it does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_trim(db: *mut Db) -> i32 {
    whole(db, |store| store.trim())
}

/// Finishes the background work that earlier changes have left, so that the next opening and the first reads are fast.
/// Call it after a large load, before the store is closed. In memory and in the kernel it does nothing.
///
/// `FORREST_IO`, `FORREST_OUT_OF_SPACE`, `FORREST_STOPPED`.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_settle(db: *mut Db) -> i32 {
    whole(db, |store| store.settle())
}

/// Accepts changes again after a failure of the disk that has stopped the store, without opening it again. Everything
/// in memory is written to new tables, with a new manifest and a new log. When this returns, all changes that reads
/// show have survived a loss of power, also those whose calls have failed after they were applied. Does nothing if the
/// store is not stopped.
///
/// `FORREST_STOPPED` if the store has to be opened again; otherwise the failure, if it is still there, and the store
/// may be resumed later.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_resume(db: *mut Db) -> i32 {
    whole(db, |store| store.resume())
}

/// Replaces the key that opens an encrypted store on disk by another one of 32 bytes. No data is written again. When
/// this returns, only the new key opens the store, also after a loss of power. Checkpoints and backups that were made
/// before need the old one.
///
/// `FORREST_INVALID_ARGUMENT` if there are not 32 bytes, or the store is not encrypted; `FORREST_UNSUPPORTED` in other
/// homes, and if the store can only be read; `FORREST_OUT_OF_SPACE`; `FORREST_IO`: either key may open the store then.
///
/// # Safety
/// - `key` is null or has `key_bytes` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_rotate_key(db: *mut Db, key: *const c_void, key_bytes: usize) -> i32 {
    guard(|| {
        // SAFETY: `key` is null or has `key_bytes` readable bytes, as the Safety section demands.
        let key = unsafe { argument::encryption_key(key, key_bytes) }?;
        Db::of(db)?.newest()?.0.rotate_key(&key)?;
        Ok(FORREST_OK)
    })
}

/// Adds a random data key to an encrypted store on disk. Files that are made from now on are encrypted with it; older
/// ones keep theirs until they are merged. It is for a key that may have leaked together with a copy of the store.
///
/// `FORREST_INVALID_ARGUMENT` if the store is not encrypted; `FORREST_UNSUPPORTED` in other homes, and if the store can
/// only be read; `FORREST_OUT_OF_SPACE`; `FORREST_IO`.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_rotate_data_key(db: *mut Db) -> i32 {
    whole(db, |store| store.rotate_data_key())
}

/// Changes an option of an open store, for all its handles, until it is closed: `FORREST_BATCH_OPS_MAX`,
/// `FORREST_BATCH_BYTES_MAX`, and on disk `FORREST_MEMORY_BYTES`, `FORREST_MEMTABLE_BYTES`, `FORREST_CACHE_BYTES`,
/// `FORREST_TABLE_BYTES`, `FORREST_WORKERS`, `FORREST_OPEN_FILES`, `FORREST_WAIT_MS` and
/// `FORREST_BACKGROUND_BYTES_PER_SECOND`. The change takes effect at once. A table size holds for the next tables. A
/// smaller cache gives its memory back in steps of 2 MiB or 1/1000, as far as nobody reads its pages. With
/// `FORREST_MEMORY_BYTES`, sizes of memtables and cache that were never set follow.
///
/// `FORREST_INVALID_ARGUMENT` for a value outside its limits, also for less memory than memtable and cache were set to
/// together, or an option that an open store cannot change;
/// `FORREST_LIMIT` for a cache beyond four times what the store was opened with or beyond 1,000 MiB, if that is more
/// than it was opened with; `FORREST_UNSUPPORTED` for an option that the home does not have. Nothing is changed then.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_set_option(db: *mut Db, option: i32, value: u64) -> i32 {
    guard(|| {
        let db = Db::of(db)?;
        db.newest()?.0.set_options(&changes(option, value)?)?;
        Ok(FORREST_OK)
    })
}

/// Merges the tables that may have keys from `start` up to but not including `end`; if `end` is null, up to the last
/// key. The memtables are written to tables first. Afterwards the range takes the least space. Neighbouring pairs, of
/// the size of a table, may be rewritten too.
///
/// As `forrest_compact`; `FORREST_INVALID_ARGUMENT` if the keyspace was dropped.
///
/// # Safety
/// - `start` and `end` are null or have `start_bytes` and `end_bytes` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_compact_range(
    db: *mut Db,
    start: *const c_void,
    start_bytes: usize,
    end: *const c_void,
    end_bytes: usize,
) -> i32 {
    guard(|| {
        // SAFETY: `start` and `end` are null or have `start_bytes` and `end_bytes` readable bytes, as the Safety
        // section demands.
        let range = unsafe { argument::range(start, start_bytes, end, end_bytes) }?;
        Db::of(db)?.newest()?.1.compact_range(range)?;
        Ok(FORREST_OK)
    })
}

/// Takes over what another process has changed, if the store is on disk and was opened with `FORREST_READ_ONLY`.
/// Snapshots and iterators that exist stay as they are. For any other store it does nothing: they see every change at
/// once.
///
/// `FORREST_IO`, `FORREST_CORRUPT`, `FORREST_OUT_OF_SPACE`; the store then stays as it was.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_refresh(db: *mut Db) -> i32 {
    whole(db, |store| store.refresh())
}

/// Statistics of a store, at about the moment of the call. Later versions of the library may add fields at
/// the end.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Stats {
    /// Number of keys in all keyspaces. On disk an estimate.
    pub keys: u64,
    /// Number of keyspaces, including the default one.
    pub keyspaces: u64,
    /// Number of live snapshots.
    pub snapshots: u64,
    /// Bytes in use for nodes: keys, values up to 239 bytes, and their overhead.
    pub node_bytes: u64,
    /// Bytes outside the nodes: of longer values, and in memory of values that expire and of the times of these, about.
    pub value_bytes_outside: u64,
    /// Bytes taken from the operating system for nodes.
    pub reserved_bytes: u64,
    /// Of these, bytes on explicit huge pages.
    pub explicit_huge_bytes: u64,
    /// Of these, bytes on transparent huge pages, as far as the system grants them.
    pub transparent_huge_bytes: u64,
    /// Number of tables on disk.
    pub tables: u64,
    /// Bytes of all tables.
    pub table_bytes: u64,
    /// Bytes of the cache of pages read from tables.
    pub cache_bytes: u64,
    /// Bytes of memory of the indexes of tables.
    pub index_bytes: u64,
    /// Number of open files of the store.
    pub open_files: u64,
    /// Bytes of files on disk that the store no longer needs, and that other processes read.
    pub held_bytes: u64,
    /// Bytes of memtables and indexes that only snapshots and iterators still have, and of those that a flush
    /// or a merge is making.
    pub kept_bytes: u64,
    /// Of the memory that the cache has taken from the operating system, bytes on explicit huge pages.
    pub cache_explicit_huge_bytes: u64,
    /// Of that, bytes on transparent huge pages, as far as the system grants them.
    pub cache_transparent_huge_bytes: u64,
    /// Bytes that the tables would take without compression.
    pub table_plain_bytes: u64,
    /// Bytes of the logs that are kept for large values in them: see `FORREST_LARGE_VALUES`.
    pub value_log_bytes: u64,
    /// Of these, bytes of values that were not replaced or deleted, about.
    pub value_log_live_bytes: u64,
    /// Values that expire, about: in memory all; on disk those in tables, and one for each memtable that has some. 0 if
    /// there are none.
    pub expiring: u64,
    /// Of `table_bytes`, those of entries that were not replaced or deleted by what is in tables, about. The space
    /// amplification is `table_bytes + value_log_bytes` for each byte of `table_live_bytes + value_log_live_bytes`.
    pub table_live_bytes: u64,
}

/// Returns the statistics of a store. `stats_bytes` is `sizeof(forrest_stats)`. Fields that the program was
/// not compiled for are left out, and fields that this library does not have are 0.
///
/// # Safety
/// - `stats` is null or has `stats_bytes` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_get_stats(db: *const Db, stats: *mut Stats, stats_bytes: usize) -> i32 {
    guard(|| {
        // SAFETY: `stats` is null or has `stats_bytes` writable bytes, as the Safety section demands.
        let mut place = unsafe { Fields::of("statistics", stats, stats_bytes) }?;
        let found = Db::of(db)?.newest()?.0.stats()?;
        place.put(Stats {
            keys: found.keys,
            keyspaces: found.keyspaces,
            snapshots: found.snapshots,
            node_bytes: found.node_bytes,
            value_bytes_outside: found.value_bytes_outside,
            reserved_bytes: found.reserved_bytes,
            explicit_huge_bytes: found.explicit_huge_bytes,
            transparent_huge_bytes: found.transparent_huge_bytes,
            tables: found.tables,
            table_bytes: found.table_bytes,
            cache_bytes: found.cache_bytes,
            index_bytes: found.index_bytes,
            open_files: found.open_files,
            held_bytes: found.held_bytes,
            kept_bytes: found.kept_bytes,
            cache_explicit_huge_bytes: found.cache_explicit_huge_bytes,
            cache_transparent_huge_bytes: found.cache_transparent_huge_bytes,
            table_plain_bytes: found.table_plain_bytes,
            value_log_bytes: found.value_log_bytes,
            value_log_live_bytes: found.value_log_live_bytes,
            expiring: found.expiring,
            table_live_bytes: found.table_live_bytes,
        });
        Ok(FORREST_OK)
    })
}

/// Returns what a store on disk holds and has done since it was opened, in the text format of Prometheus: counters and
/// gauges whose names begin with `forrest_`. It is newly allocated memory, without a zero byte at its end. Free it with
/// `forrest_free`.
///
/// `FORREST_UNSUPPORTED` if the home has no `FORREST_CAN_METRICS`; `FORREST_INVALID_ARGUMENT` if `db` is a snapshot;
/// `FORREST_OUT_OF_SPACE`.
///
/// # Safety
/// - `text` and `text_bytes` are each null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_metrics(
    db: *const Db,
    text: *mut *mut c_void,
    text_bytes: *mut usize,
) -> i32 {
    guard(|| {
        // SAFETY: `text` and `text_bytes` are each null or writable, as the Safety section demands.
        let (mut text, mut length) =
            unsafe { (Place::of("text", text, ptr::null_mut())?, Place::of("length", text_bytes, 0)?) };
        let db = Db::of(db)?;
        let store = db.newest()?.0;
        let written = store.metrics()?.prometheus(&store.stats()?);
        text.put(hand_over(written.as_bytes())?);
        length.put(written.len());
        Ok(FORREST_OK)
    })
}

/// Ordered iteration both ways.
pub const FORREST_CAN_ITERATE: u64 = 1;
/// Atomic batches.
pub const FORREST_CAN_BATCH: u64 = 2;
/// Snapshots.
pub const FORREST_CAN_SNAPSHOT: u64 = 4;
/// More keyspaces than "default".
pub const FORREST_CAN_KEYSPACES: u64 = 8;
/// Data outlives the process.
pub const FORREST_CAN_PERSIST: u64 = 16;
/// Several processes can share a store.
pub const FORREST_CAN_SHARE: u64 = 32;
/// `FORREST_DURABILITY_SYNC`: data survives power loss.
pub const FORREST_CAN_SYNC: u64 = 64;
/// `FORREST_READ_ONLY`.
pub const FORREST_CAN_READ_ONLY: u64 = 128;
/// `forrest_checkpoint`.
pub const FORREST_CAN_CHECKPOINT: u64 = 256;
/// `forrest_verify`.
pub const FORREST_CAN_VERIFY: u64 = 512;
/// `forrest_compact`.
pub const FORREST_CAN_COMPACT: u64 = 1024;
/// `forrest_ingest_begin`.
pub const FORREST_CAN_INGEST: u64 = 2048;

/// Compressed tables.
pub const FORREST_CAN_COMPRESS: u64 = 4096;
/// `forrest_metrics`.
pub const FORREST_CAN_METRICS: u64 = 8192;
/// `forrest_approximate`.
pub const FORREST_CAN_APPROXIMATE: u64 = 16384;
/// `forrest_changes_begin`.
pub const FORREST_CAN_CHANGES: u64 = 32768;
/// `forrest_merge`.
pub const FORREST_CAN_MERGE: u64 = 65536;
/// `forrest_backup_create`.
pub const FORREST_CAN_BACKUP: u64 = 131_072;
/// `forrest_set_with_ttl`.
pub const FORREST_CAN_TTL: u64 = 262_144;

/// Returns the capabilities of a store's home, as a sum of `FORREST_CAN_ITERATE` to `FORREST_CAN_TTL`. A
/// call that needs a missing one fails with `FORREST_UNSUPPORTED`.
///
/// # Safety
/// - `capabilities` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_capabilities(db: *const Db, capabilities: *mut u64) -> i32 {
    guard(|| {
        // SAFETY: `capabilities` is null or writable, as the Safety section demands.
        let mut capabilities = unsafe { Place::of("capabilities", capabilities, 0) }?;
        let has = Db::of(db)?.newest()?.0.capabilities();
        capabilities.put(has.iter().filter(|(_, has)| *has).map(|(capability, _)| bit(capability)).sum());
        Ok(FORREST_OK)
    })
}

fn bit(capability: Capability) -> u64 {
    match capability {
        Capability::Iteration => FORREST_CAN_ITERATE,
        Capability::Batches => FORREST_CAN_BATCH,
        Capability::Snapshots => FORREST_CAN_SNAPSHOT,
        Capability::Keyspaces => FORREST_CAN_KEYSPACES,
        Capability::Persistence => FORREST_CAN_PERSIST,
        Capability::Sharing => FORREST_CAN_SHARE,
        Capability::Sync => FORREST_CAN_SYNC,
        Capability::ReadOnly => FORREST_CAN_READ_ONLY,
        Capability::Checkpoint => FORREST_CAN_CHECKPOINT,
        Capability::Verify => FORREST_CAN_VERIFY,
        Capability::Compact => FORREST_CAN_COMPACT,
        Capability::Ingest => FORREST_CAN_INGEST,
        Capability::Compression => FORREST_CAN_COMPRESS,
        Capability::Metrics => FORREST_CAN_METRICS,
        Capability::Approximate => FORREST_CAN_APPROXIMATE,
        Capability::Changes => FORREST_CAN_CHANGES,
        Capability::Merge => FORREST_CAN_MERGE,
        Capability::Backup => FORREST_CAN_BACKUP,
        Capability::Ttl => FORREST_CAN_TTL,
        // A capability that is missing in this list.
        _ => 0,
    }
}

/// Runs `work` on the store of a handle.
fn whole(db: *mut Db, work: impl FnOnce(&forrest_rust::Db) -> forrest_rust::Result<()>) -> i32 {
    guard(|| {
        work(Db::of(db)?.newest()?.0)?;
        Ok(FORREST_OK)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_capability_has_a_bit_of_its_own() {
        let bits: u64 = Capability::ALL.into_iter().map(bit).sum();
        assert_eq!(bits, (1 << Capability::ALL.len()) - 1);
    }

    #[test]
    fn each_figure_is_told() {
        assert_eq!(size_of::<Stats>() / size_of::<u64>(), forrest_rust::Stats::default().rows().len() - 1);
    }
}

//! What concerns a store as a whole: sync, checkpoint, verify, compact, what it costs, and what its home can do.

use crate::argument::{Place, text};
use crate::code::FORREST_OK;
use crate::db::Db;
use crate::failure::{Failure, guard};
use forrest_rust::Capability;
use std::ffi::c_char;
use std::ptr;

/// Returns when everything written before is as durable as this home can make it. On disk it survives power loss then;
/// in memory that is at once, for nothing outlives the process.
///
/// `FORREST_IO` if the device reports a failure, `FORREST_STOPPED` if it did so before.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_sync(db: *mut Db) -> i32 {
    whole(db, |store| store.sync())
}

/// Writes a copy of the store, as it is at one moment of this call, to a new directory, which is a store on disk of its
/// own; the store goes on meanwhile. All that was acknowledged before is in it, and of a batch all or nothing. At
/// `path` there must be nothing, or an empty directory; it has that name only when it is whole and survives power loss.
/// On the same file system the tables are shared by hard links, to another one all is copied.
///
/// Nothing is left of a copy that fails. `FORREST_INVALID_ARGUMENT` if something is at `path`, or it is no place for a
/// store; `FORREST_BUSY` if another checkpoint is just being made there; `FORREST_IO`; `FORREST_OUT_OF_SPACE`;
/// `FORREST_UNSUPPORTED` where `forrest_capabilities` has no `FORREST_CAN_CHECKPOINT`.
///
/// # Safety
/// - `path` is null, or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_checkpoint(db: *mut Db, path: *const c_char) -> i32 {
    guard(|| {
        // SAFETY: the caller's promise.
        let path = unsafe { text("path", path) }?;
        Db::of(db)?.newest()?.0.checkpoint(path)?;
        Ok(FORREST_OK)
    })
}

/// Reads everything stored and checks it, past all caches. Takes time in proportion to the store.
///
/// `FORREST_CORRUPT`, with file and offset of the first damage in the message; `FORREST_IO`; `FORREST_UNSUPPORTED` in
/// memory and in the kernel.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_verify(db: *mut Db) -> i32 {
    whole(db, |store| store.verify())
}

/// Writes what is in memory out and merges tables, so that the store takes the least space and its logs are empty.
/// Takes time in proportion to the store; writers wait at times.
///
/// `FORREST_IO`, `FORREST_OUT_OF_SPACE`, `FORREST_STOPPED`; `FORREST_UNSUPPORTED` in memory and in the kernel.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_compact(db: *mut Db) -> i32 {
    whole(db, |store| store.compact())
}

/// What a store holds and what it costs, at about the moment of the call. Later versions of the library have more of
/// it, at the end.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Stats {
    /// Keys in all keyspaces. On disk an estimate.
    pub keys: u64,
    /// Keyspaces, with the default one.
    pub keyspaces: u64,
    /// Snapshots alive.
    pub snapshots: u64,
    /// Bytes in use for nodes: keys, values up to 239 bytes, and what holds them together.
    pub node_bytes: u64,
    /// Bytes of longer values, which are outside the nodes.
    pub value_bytes_outside: u64,
    /// Bytes taken from the operating system for nodes.
    pub reserved_bytes: u64,
    /// Of these, bytes on explicit huge pages.
    pub explicit_huge_bytes: u64,
    /// Of these, bytes on transparent huge pages, as far as the system grants them.
    pub transparent_huge_bytes: u64,
    /// Tables on disk.
    pub tables: u64,
    /// Bytes of all tables.
    pub table_bytes: u64,
    /// Bytes of memory that hold what was read from tables.
    pub cache_bytes: u64,
    /// Bytes of memory that say where in tables keys are.
    pub index_bytes: u64,
    /// Files of the store that are open.
    pub open_files: u64,
}

/// Tells what a store holds and what it costs. `stats_bytes` is `sizeof(forrest_stats)`: of what the library knows, as
/// much is told as the program was compiled for; what only the program knows is 0.
///
/// # Safety
/// - `stats` has `stats_bytes` bytes that may be written to, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_get_stats(db: *const Db, stats: *mut Stats, stats_bytes: usize) -> i32 {
    guard(|| {
        if stats.is_null() {
            return Err(Failure::invalid("the place for the statistics is null"));
        }
        // SAFETY: it is not null, and the caller promises the rest.
        unsafe { stats.cast::<u8>().write_bytes(0, stats_bytes) };
        let found = Db::of(db)?.newest()?.0.stats()?;
        let told = Stats {
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
        };
        let bytes = stats_bytes.min(size_of::<Stats>());
        // SAFETY: so many bytes are there, as the caller promises, and are those of `told`, which has no gaps.
        unsafe { ptr::copy_nonoverlapping((&raw const told).cast::<u8>(), stats.cast(), bytes) };
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
/// Several processes share one store.
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

/// Tells what the home of a store can do: the sum of its capabilities, `FORREST_CAN_ITERATE` to `FORREST_CAN_COMPACT`.
/// What it cannot do is `FORREST_UNSUPPORTED`.
///
/// # Safety
/// - `capabilities` is null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_capabilities(db: *const Db, capabilities: *mut u64) -> i32 {
    guard(|| {
        // SAFETY: the caller's promise.
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
        // One that this file was not told of.
        _ => 0,
    }
}

/// Does something with a store.
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

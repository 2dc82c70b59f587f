//! Forrest: an ordered key-value library, with one API for three homes of the data: memory, disk, and kernel
//! memory.
//!
//! ```
//! use forrest::{Db, WriteBatch};
//!
//! let db = Db::open("memory:")?;
//! db.set("oak", "Quercus robur")?;
//! db.set("ash", "Fraxinus excelsior")?;
//! assert_eq!(db.get("oak")?.as_deref(), Some(&b"Quercus robur"[..]));
//!
//! let snapshot = db.snapshot()?;
//! let mut batch = WriteBatch::new();
//! batch.delete("ash");
//! batch.set("elm", "Ulmus glabra");
//! db.write(batch)?; // both or neither
//!
//! let names = |view: &forrest::View| -> forrest::Result<Vec<String>> {
//!     view.range("a"..).map(|entry| Ok(String::from_utf8_lossy(entry?.key()).into())).collect()
//! };
//! assert_eq!(names(&db)?, ["elm", "oak"]);
//! assert_eq!(names(&snapshot)?, ["ash", "oak"]); // the state before the batch
//! # Ok::<(), forrest::Error>(())
//! ```
//!
//! Keys and values are bytes. Keys are ordered by their unsigned bytes. Integers sort as numbers if they are
//! encoded big endian (`u64::to_be_bytes`; flip the top bit of signed integers).
//!
//! # Homes
//!
//! The features `memory`, `llds` and `disk` select the homes that are compiled in; by default all three. With the
//! feature `tracing`, stores on disk report their events to that crate, with the target `forrest`: jobs that ended as
//! information, stalls as warnings, failures as errors. `llds-user` adds the kernel module's engine in this process,
//! and needs a C compiler.
//!
//! # Map
//!
//! From top to bottom; `docs/layers.txt` has the exact order.
//!
//! | module | content |
//! |---|---|
//! | transaction.rs | [`Transaction`]: reads and changes at one instant |
//! | draft.rs | [`Draft`], [`RangeCursor`]: what a transaction has read and is to change |
//! | locks.rs, spans.rs | the locks of a store; sets of keys as ranges |
//! | blobs.rs | [`Blobs`]: values of any length, in pieces |
//! | asynchronous.rs | [`asynchronous`]: futures that wait for the device |
//! | repair.rs | [`repair()`]: a damaged store on disk is replaced by what is intact of it |
//! | db.rs | [`Db`], [`Snapshot`]: opening, and operations on the whole store |
//! | batch.rs | [`WriteBatch`]: changes that are applied together |
//! | ingest.rs | [`Ingest`]: many sorted pairs at one instant |
//! | stream.rs | [`Changes`]: what has happened to a store |
//! | keyspace.rs | [`Keyspace`]: all changes |
//! | checkpoint.rs | a copy of an open store, on disk |
//! | backup.rs | [`backups()`], [`restore()`]: directories of many backups of a store |
//! | encrypted.rs | [`encrypted`]: these for encrypted directories, with the feature `encryption` |
//! | move_log.rs | [`move_log()`]: the log of a store on disk gets another place |
//! | destroy.rs | [`is_store()`], [`destroy()`]: whether there is a store on disk, and removing it |
//! | salvage.rs | [`salvage()`]: what is intact of a damaged store on disk, as a new store |
//! | view.rs | [`View`]: all reads |
//! | cursor.rs | [`Range`], [`Entry`], [`Cursor`] |
//! | engine.rs | the homes that are compiled in, with one interface |
//! | memory.rs | the home `memory:`, over forrest-index |
//! | trace.rs | events for `tracing`, with the feature of that name |
//! | builder.rs | [`Builder`], [`WriteOptions`] |
//! | changes.rs | [`OptionChanges`] |
//! | url.rs | URLs of homes |
//!
//! The crate `forrest-engine` has everything that the API and the engines share: [`Op`], [`Error`],
//! [`Durability`], [`Stats`], [`mod@line`], and the traits that an engine implements. The crate `remixdb` is
//! the store on disk, and the crate `llds` is the client of the kernel module.

#![forbid(unsafe_code)]

pub mod asynchronous;
#[cfg(feature = "disk")]
mod backup;
mod batch;
mod blobs;
mod builder;
mod changes;
#[cfg(feature = "disk")]
mod checkpoint;
mod cursor;
mod db;
#[cfg(feature = "disk")]
mod destroy;
mod draft;
#[cfg(feature = "encryption")]
pub mod encrypted;
mod engine;
#[cfg(feature = "memory")]
mod expiry;
mod ingest;
mod keyspace;
mod locks;
#[cfg(feature = "memory")]
mod memory;
#[cfg(feature = "disk")]
mod move_log;
mod reader;
#[cfg(feature = "disk")]
mod repair;
#[cfg(feature = "disk")]
mod salvage;
#[cfg(feature = "simulated")]
pub mod simulated;
mod stream;
#[cfg(test)]
mod tests;
#[cfg(feature = "tracing")]
mod trace;
mod transaction;
mod url;
mod view;

#[cfg(feature = "disk")]
pub use backup::{
    Backup, BackupOptions, Keep, Pruned, backups, prune, restore, restore_with, verify_backup,
    verify_backup_with,
};
pub use batch::{On, WriteBatch};
pub use blobs::{
    Blob, BlobRange, BlobWriter, Blobs, DEFAULT_PIECE_BYTES, MAX_BLOB_KEY_BYTES, MAX_PIECE_BYTES,
};
pub use builder::{Builder, WriteOptions};
pub use changes::OptionChanges;
pub use cursor::{Cursor, Entry, Key, Keys, Range};
pub use db::{Db, Snapshot};
#[cfg(feature = "disk")]
pub use destroy::{destroy, is_store};
pub use draft::{Draft, DraftRange, RangeCursor};
#[cfg(feature = "encryption")]
pub use forrest_engine::EncryptionKey;
pub use forrest_engine::merge::operators;
pub use forrest_engine::options::{
    DEFAULT_BATCH_BYTES_MAX, DEFAULT_BATCH_OPS_MAX, DEFAULT_CACHE_BYTES, DEFAULT_HISTORY_AGE,
    DEFAULT_HISTORY_BYTES, DEFAULT_LARGE_VALUES, DEFAULT_MEMTABLE_BYTES, DEFAULT_MODE, DEFAULT_OPEN_FILES,
    DEFAULT_TABLE_BYTES, LARGE_VALUES_LEAST,
};
pub use forrest_engine::{
    Approximate, Call, Capabilities, Capability, Change, Compression, DEFAULT_KEYSPACE, Durability, Effect,
    Error, ErrorKind, Event, Expires, Job, KeyRange, Latency, MAX_KEY_BYTES, MAX_KEYSPACE_NAME_BYTES,
    MAX_KEYSPACES, MAX_VALUE_BYTES, MergeOperator, Metrics, Numa, Op, Outcome, Pages, Result, Stats, Swap,
    Value, Verdict, Waits, What, Work, Written, line, pairs, prefix_end,
};
pub use ingest::Ingest;
pub use keyspace::Keyspace;
#[cfg(feature = "disk")]
pub use move_log::move_log;
pub use reader::ValueReader;
#[cfg(feature = "disk")]
pub use repair::repair;
#[cfg(feature = "disk")]
pub use salvage::{Loss, Progress, Salvaged, salvage, salvage_with};
pub use stream::Changes;
pub use transaction::{Committed, Savepoint, Transaction};
pub use url::directory;
pub use view::{Cached, View};

/// Administration of the stores in the kernel: list them, destroy one, save one in a file and restore it.
///
/// [`Db::open`] creates a store `llds:NAME` when it is first opened. The store outlives the processes that
/// use it, until it is destroyed here, the module is unloaded or the machine stops. By default only its owner
/// may read and write it. Each user has names of its own: `llds:UID/NAME` is a store of another user, and
/// `llds:shared/NAME` one of the first user who took that name.
///
/// These functions need Linux with the module of `kernel/llds`. Without it, every call
/// fails with `Io`, and the message says what to do.
#[cfg(feature = "llds")]
pub mod llds {
    pub use ::llds::{
        Listed, MAX_KEY_BYTES, MAX_NAME_BYTES, Saved, Version, destroy, list, restore, save, version,
    };
}

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

//! Forrest: an ordered key-value library. One API, and homes for the data to live in.
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
//! assert_eq!(names(&snapshot)?, ["ash", "oak"]); // as it was
//! # Ok::<(), forrest::Error>(())
//! ```
//!
//! Keys and values are bytes, and keys are ordered by them. Integers sort as numbers if they are encoded
//! big endian (`u64::to_be_bytes`; flip the top bit of signed ones).
//!
//! # Homes
//!
//! The features `memory`, `llds` and `disk` choose which homes are compiled in; all three are by default. `llds-user`
//! adds the kernel module's engine in this process, which needs a C compiler.
//!
//! # Map
//!
//! From top to bottom; `docs/layers.txt` has the exact order.
//!
//! | module | what it has |
//! |---|---|
//! | transaction.rs | [`Transaction`]: reads and changes at one instant |
//! | db.rs | [`Db`], [`Snapshot`]: opening, and the store as a whole |
//! | batch.rs | [`WriteBatch`]: changes made together |
//! | keyspace.rs | [`Keyspace`]: all changing |
//! | checkpoint.rs | a copy of an open store, on disk |
//! | view.rs | [`View`]: all reading |
//! | cursor.rs | [`Range`], [`Entry`], [`Cursor`] |
//! | engine.rs | the homes that are compiled in, behind one contract |
//! | memory.rs | the home `memory:`, over forrest-index |
//! | builder.rs | [`Builder`], [`WriteOptions`] |
//! | url.rs | how homes are named |
//!
//! What API and engines share is the crate `forrest-engine`: [`Op`], [`Error`], [`Durability`], [`Stats`],
//! [`mod@line`], and the traits that an engine implements. The store on disk is the crate `remixdb`, the client of the
//! kernel module the crate `llds`.

#![forbid(unsafe_code)]

mod batch;
mod builder;
#[cfg(feature = "disk")]
mod checkpoint;
mod cursor;
mod db;
mod engine;
mod keyspace;
#[cfg(feature = "memory")]
mod memory;
#[cfg(feature = "simulated")]
pub mod simulated;
mod transaction;
mod url;
mod view;

pub use batch::{On, WriteBatch};
pub use builder::{Builder, WriteOptions};
pub use cursor::{Cursor, Entry, Range};
pub use db::{Db, Snapshot};
pub use forrest_engine::options::{
    DEFAULT_BATCH_BYTES_MAX, DEFAULT_BATCH_OPS_MAX, DEFAULT_CACHE_BYTES, DEFAULT_MEMTABLE_BYTES,
    DEFAULT_MODE, DEFAULT_OPEN_FILES, DEFAULT_TABLE_BYTES,
};
pub use forrest_engine::{
    Capabilities, Capability, DEFAULT_KEYSPACE, Durability, Effect, Error, ErrorKind, KeyRange,
    MAX_KEY_BYTES, MAX_KEYSPACE_NAME_BYTES, MAX_KEYSPACES, MAX_VALUE_BYTES, Numa, Op, Outcome, Pages, Result,
    Stats, Swap, Value, Written, line, prefix_end,
};
pub use keyspace::Keyspace;
pub use transaction::{Committed, Draft, Transaction};
pub use url::directory;
pub use view::View;

/// The stores in the kernel as a whole: which there are, and how to be rid of one.
///
/// A store `llds:NAME` is made when it is first opened, by [`Db::open`], and outlives the processes that use it: until
/// it is destroyed here, the module is unloaded or the machine stops. Its user alone may read and write it. All of it
/// is for Linux with the module of `kernel/llds`; without, every call is an `Io` error that says what to do.
#[cfg(feature = "llds")]
pub mod llds {
    pub use ::llds::{Listed, MAX_KEY_BYTES, MAX_NAME_BYTES, Version, destroy, list, version};
}

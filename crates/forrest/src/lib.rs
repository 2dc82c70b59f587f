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
//! | engine.rs | the seam: what an engine must be able to do |
//! | llds.rs | the stores in the kernel: [`llds::list`], [`llds::destroy`] |
//! | memory.rs | the engine of `memory:`, over forrest-index |
//! | kernel/ | the engine of `llds:` and `llds-user:`, over the kernel module's device |
//! | remixdb/ | the engine of stores on disk, with a map of its own |
//! | chunk.rs | what passes between iterations and engines |
//! | line.rs | the text form of operations |
//! | op.rs | [`Op`], [`Outcome`]: the alphabet of changes |
//! | bounds.rs | [`KeyRange`], [`prefix_end`] |
//! | stats.rs, options.rs, error.rs | [`Stats`], [`Capabilities`]; [`Builder`], [`WriteOptions`]; [`Error`] |
#![forbid(unsafe_code)]
// The models take the modules that they are about into their own test, see tests/loom.rs.
#![cfg(not(loom))]

mod batch;
mod bounds;
mod checkpoint;
mod chunk;
mod cursor;
mod db;
mod engine;
mod error;
mod kernel;
mod keyspace;
pub mod line;
pub mod llds;
mod memory;
mod op;
mod options;
mod remixdb;
mod stats;
mod transaction;
mod view;

#[cfg(feature = "bench")]
#[doc(hidden)]
pub use remixdb::bench;

pub use batch::{On, WriteBatch};
pub use bounds::{KeyRange, prefix_end};
pub use cursor::{Cursor, Entry, Range};
pub use db::{Db, Snapshot};
pub use error::{Error, ErrorKind, Result};
pub use forrest_index::{MAX_KEY_BYTES, MAX_VALUE_BYTES, Value};
pub use keyspace::Keyspace;
pub use op::{Effect, Op, Outcome, Swap, Written};
pub use options::{
    Builder, DEFAULT_BATCH_BYTES_MAX, DEFAULT_BATCH_OPS_MAX, DEFAULT_CACHE_BYTES, DEFAULT_KEYSPACE,
    DEFAULT_MEMTABLE_BYTES, DEFAULT_MODE, DEFAULT_OPEN_FILES, DEFAULT_TABLE_BYTES, Durability,
    MAX_KEYSPACE_NAME_BYTES, MAX_KEYSPACES, Numa, Pages, WriteOptions, directory,
};
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub use remixdb::fuzzing;
pub use stats::{Capabilities, Capability, Stats};
pub use transaction::{Committed, Draft, Transaction};
pub use view::View;

//! RemixDB, Forrest's engine of stores on disk: a write-ahead log, memtables, and tables behind a REMIX.
//!
//! The crate `forrest` is the API that users call; this crate implements the contract of `forrest-engine` for it
//! ([`Store`]). A store lies on a [`Disk`](disk::Disk): a directory of the operating system ([`disk::Real`]) or, with
//! the feature `simulated`, a disk in memory whose power can be cut at any moment.
//!
//! From top to bottom, a module uses only those below it:
//!
//! | module | what it has |
//! |---|---|
//! | store.rs | [`Store`]: opening and closing, the background thread, the contract's traits |
//! | checkpoint.rs | a copy of an open store |
//! | verify.rs | every byte read and checked |
//! | compact/ | memtables become tables, tables are merged |
//! | recover.rs | what was there when the store was opened |
//! | view.rs | one state of a keyspace, to be read; snapshots, cursors |
//! | write.rs | the write path, on one screen |
//! | parked.rs | scans between two refills of a range, and how they let replaced files go |
//! | scan.rs, read.rs | the read paths |
//! | core.rs | what the parts of an open store share |
//! | workers.rs, work.rs | the threads that work in the background, and how they are called |
//! | version.rs, partition.rs | what the store consists of at one moment |
//! | manifest/, wal/ | what of it is durable |
//! | memtable.rs, catalog.rs | the newest changes, in memory; the keyspaces |
//! | remix/, table/, cache.rs | sorted pairs on disk, and the order over several tables |
//! | record.rs, page.rs, codec.rs | how bytes are framed and checked |
//! | current.rs, stripe.rs | a value that is read and replaced; what each thread has its own of |
//! | sync.rs | locks and atomics, which the models replace |
//! | disk/ | the seam to the operating system |
//!
//! Beside the line stand, with the feature `simulated`, decoders.rs, what any
//! bytes come to in the decoders; and with the feature `parts`, parts/, the engine's runs by themselves.
//!
//! docs/durability.md says what is promised, docs/decisions/0003 why it is built this way.

#![forbid(unsafe_code)]

mod cache;
mod catalog;
mod checkpoint;
mod codec;
mod compact;
mod core;
mod current;
#[cfg(any(test, feature = "simulated"))]
pub mod decoders;
pub mod disk;
mod key;
mod manifest;
mod memtable;
mod page;
mod parked;
mod partition;
#[cfg(feature = "parts")]
pub mod parts;
mod read;
mod record;
mod recover;
mod remix;
mod scan;
mod store;
mod stripe;
mod sync;
mod table;
mod verify;
mod version;
mod view;
mod wal;
mod work;
mod workers;
mod write;

#[cfg(all(test, feature = "loom"))]
mod models;
#[cfg(test)]
mod tests;

pub use store::{Keyspace, Store};
pub use view::{Cursor, Resume, Snapshot, View};

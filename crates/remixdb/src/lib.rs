//! RemixDB, Forrest's engine of stores on disk: a write-ahead log, memtables, and tables indexed by a REMIX.
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
//! | salvage.rs | what is intact of a damaged store, in a new one |
//! | ingest.rs, value_log.rs | sorted pairs that become tables at once, and the logs of their large values |
//! | publish.rs | the figures of the store in a file |
//! | checkpoint.rs | a copy of an open store |
//! | stream.rs, proven.rs | the changes as a stream, and which of them are synced by what the logs state |
//! | verify.rs | every byte read and checked |
//! | compact/ | memtables become tables, tables are merged |
//! | recover.rs | opening: the files in the directory become a store |
//! | view.rs | one state of a keyspace, to be read; snapshots, cursors |
//! | write.rs | the write path, on one screen |
//! | parked.rs | scans between two refills of a range, and how they release replaced files |
//! | scan.rs, read.rs | the read paths |
//! | core.rs | the state that the parts of an open store share |
//! | workers.rs, work.rs | the threads that work in the background, and how they are called |
//! | gaps.rs | ranges of deleted keys that scans jump over |
//! | version.rs, partition.rs | the parts of the store at one moment |
//! | manifest/, wal/ | the durable state |
//! | memtable.rs, catalog.rs | the newest changes, in memory; the keyspaces |
//! | remix/, table/, cache.rs | sorted pairs on disk, and the order over several tables |
//! | record.rs, page.rs, codec.rs | how bytes are framed and checked |
//! | compression.rs | how bytes are compressed |
//! | tasks.rs | what the background does now, for messages |
//! | pace.rs, rate.rs | how fast writers go, and how fast tables are written |
//! | current.rs, stripe.rs | a value that is read and replaced; data of which each thread has its own |
//! | sync.rs | locks and atomics, which the models replace |
//! | disk/ | the interface to the operating system |
//!
//! Outside of this order are, with the feature `simulated`, decoders.rs, which gives arbitrary bytes to the
//! decoders; and with the feature `parts`, parts/, which is the REMIX by itself.
//!
//! docs/durability.md states the guarantees, docs/decisions/0003 the reasons for the design.

#![forbid(unsafe_code)]

mod approximate;
mod backup;
mod cache;
mod cached;
mod catalog;
mod checkpoint;
mod clock;
mod codec;
mod compact;
mod compression;
mod core;
mod counting;
mod current;
#[cfg(any(test, feature = "simulated"))]
pub mod decoders;
pub mod disk;
mod gaps;
mod gauge;
mod history;
mod ingest;
mod key;
mod limits;
mod manifest;
mod memory;
mod memtable;
mod operands;
mod pace;
mod page;
mod parked;
mod partition;
#[cfg(feature = "parts")]
pub mod parts;
mod proven;
mod publish;
mod ranges;
mod rate;
mod read;
mod readers;
mod record;
mod recover;
mod remix;
mod replay;
mod resume;
mod room;
mod salvage;
mod scan;
mod see;
mod separators;
mod store;
mod stream;
mod stripe;
mod sync;
mod table;
mod tasks;
mod value_log;
mod values;
mod verify;
mod version;
mod view;
mod wal;
mod wanted;
mod work;
mod workers;
mod wrapped;
mod write;

#[cfg(all(test, feature = "loom"))]
mod models;
#[cfg(all(test, not(forrest_parts)))]
mod tests;

#[cfg(feature = "encryption")]
pub use backup::rotate_backups_key;
pub use backup::{Backup, BackupOptions, Keep, Progress, Pruned, backups, prune, restore, verify_backup};
pub use disk::{destroy, is_store, move_log};
pub use salvage::{Loss, Salvaged, salvage};
pub use store::{Keyspace, Store};
pub use view::{Cursor, Resume, Snapshot, View};

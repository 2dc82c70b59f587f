//! libforrest_leveldb: the functions of LevelDB's C API, over Forrest's stores on disk. A program that was written for
//! LevelDB compiles with this header, or with LevelDB's own, links with this library and runs. The header,
//! `include/leveldb/c.h`, documents everything for users; the tests generate it from these files.
//!
//! The files of a store are Forrest's. A directory of LevelDB is refused with an error, not read.
//!
//! | module | content |
//! |---|---|
//! | iter.rs | iterators |
//! | property.rs | properties, sizes of ranges |
//! | db.rs | opening, reads, changes, snapshots |
//! | files.rs | what is in a directory; removing and repairing a store |
//! | batch.rs | write batches |
//! | options.rs | options of stores, reads and writes |
//! | snapshot.rs | one state of a store |
//! | objects.rs | comparators, filter policies, caches, environments |
//! | order.rs | whether a comparator orders keys by their bytes |
//! | argument.rs | pointers from C |
//! | failure.rs | errors as strings; panics |
//! | memory.rs | memory of `malloc` |
//!
//! From top to bottom; `docs/layers.txt` has the exact order.

mod argument;
pub mod batch;
pub mod db;
pub mod failure;
pub mod files;
pub mod iter;
pub mod memory;
pub mod objects;
pub mod options;
mod order;
pub mod property;
pub mod snapshot;

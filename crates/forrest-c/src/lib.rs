//! libforrest: the library for C and for languages that can call C. `tests/c/header.rs` generates its header,
//! `include/forrest.h`, from this crate. So the documentation of the items here is written for users of the
//! header.
//!
//! This crate has no logic of its own: each function checks its arguments, calls the Rust library, and
//! returns a code. No panic crosses into C ([`failure`]), and no reference to memory of the caller outlives a
//! call.
//!
//! # Map
//!
//! From top to bottom; `docs/layers.txt` has the exact order.
//!
//! | module | content |
//! |---|---|
//! | llds.rs | the functions of llds's own library, for programs written for it |
//! | iter.rs | iterators |
//! | transaction.rs | transactions |
//! | blob.rs | values of any length, in pieces |
//! | reader.rs | values that are read in pieces |
//! | batch.rs | batches, and writing them |
//! | changes.rs | the changes of a store as a stream |
//! | ingest.rs | ingests of sorted pairs |
//! | backup.rs | directories of backups of a store |
//! | salvage.rs | what is intact of a damaged store; moving a log |
//! | kernel.rs | the stores in the kernel |
//! | whole.rs | operations on a whole store: sync, verify, statistics |
//! | change.rs, read.rs | changing and reading keys |
//! | db.rs | opening, keyspaces, snapshots, closing |
//! | callback.rs | functions of the program that a store calls |
//! | options.rs | options for opening a store |
//! | value.rs | values held for C, and memory passed to C |
//! | handle.rs | handles: numbers that stand for the objects above |
//! | argument.rs | checks of pointers and lengths from C |
//! | failure.rs | the last error of each thread; panics caught |
//! | code.rs | codes and versions |

mod argument;
pub mod backup;
pub mod batch;
pub mod blob;
pub mod callback;
pub mod change;
pub mod changes;
pub mod code;
pub mod db;
pub mod failure;
mod handle;
pub mod ingest;
pub mod iter;
pub mod kernel;
pub mod llds;
pub mod options;
pub mod read;
pub mod reader;
pub mod salvage;
pub mod transaction;
pub mod value;
pub mod whole;

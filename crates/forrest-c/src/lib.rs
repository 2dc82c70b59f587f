//! libforrest: the library for C, and for whatever calls C. Its header is `include/forrest.h`, which
//! `tests/c/header.rs` makes of this crate; what users of it must know is told there, and so in the
//! documentation of the items here.
//!
//! Nothing is decided here: each function makes safe what came from C, calls the Rust library, and answers with a
//! code. No panic leaves it ([`failure`]), and no reference to what C holds outlives a call.
//!
//! # Map
//!
//! From top to bottom; `docs/layers.txt` has the exact order.
//!
//! | module | what it has |
//! |---|---|
//! | llds.rs | the functions of llds's own library, for programs that were written for it |
//! | iter.rs | iterators |
//! | transaction.rs | transactions |
//! | batch.rs | batches, and writing them |
//! | kernel.rs | the stores in the kernel |
//! | whole.rs | the store as a whole: sync, verify, statistics |
//! | change.rs, read.rs | changing and reading keys |
//! | db.rs | opening, keyspaces, snapshots, closing |
//! | options.rs | how a store is opened |
//! | value.rs | values that are held, and their memory |
//! | handle.rs | what C holds in place of all these |
//! | argument.rs | pointers and lengths from C, made safe |
//! | failure.rs | what went wrong, per thread; the border that panics do not cross |
//! | code.rs | codes and versions |

mod argument;
pub mod batch;
pub mod change;
pub mod code;
pub mod db;
pub mod failure;
mod handle;
pub mod iter;
pub mod kernel;
pub mod llds;
pub mod options;
pub mod read;
pub mod transaction;
pub mod value;
pub mod whole;

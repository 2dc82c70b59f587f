//! libforrest: the library for C, and for whatever calls C. Its header is `include/forrest.h`, which
//! `tests/c/header.rs` makes of this crate; what users of it must know is told there, and so in the
//! documentation of the items here.
//!
//! Nothing is decided here: each function makes safe what came from C, calls the Rust library, and answers with a
//! code. No panic leaves it ([`failure`]), and no reference to what C holds outlives a call.
//!
//! # Map
//!
//! From top to bottom; a module uses only those below it.
//!
//! | module | what it has |
//! |---|---|
//! | iter.rs | iterators |
//! | batch.rs | batches, and writing them |
//! | db.rs | opening, changing, the three ways to read |
//! | value.rs | values that are held, and their memory |
//! | argument.rs | pointers and lengths from C, made safe |
//! | failure.rs | what went wrong, per thread; the border that panics do not cross |
//! | code.rs | codes and versions |

mod argument;
pub mod batch;
pub mod code;
pub mod db;
pub mod failure;
pub mod iter;
pub mod value;

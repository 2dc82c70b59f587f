//! A concurrent ordered map from bytes to bytes, in arenas on huge pages.
//!
//! An [`Index`] owns the memory and any number of [`Tree`]s, each an ordered map. Reads go through a
//! [`Reader`]: a tree is one (it sees the newest state), and a [`Snapshot`] hands out others that see one
//! past state of all trees. All changes go through one primitive, [`Tree::apply`], or through
//! [`Index::batch`], whose changes become visible at once or not at all.

mod arena;
mod batch;
mod cursor;
mod descent;
mod effect;
mod epoch;
mod eras;
mod error;
mod estimate;
mod gate;
mod hash;
mod index;
mod inner;
mod key;
mod latch;
mod leaf;
#[cfg(all(test, feature = "loom"))]
mod models;
mod node;
mod options;
mod order;
mod place;
mod read;
mod reclaim;
mod roots;
mod scan;
mod shared;
mod simd;
mod snapshot;
mod spare;
mod staged;
mod sync;
mod tree;
mod value;
mod write;

pub use batch::Batch;
pub use cursor::Cursor;
pub use effect::Effect;
pub use error::{Error, MAX_CAPACITY_BYTES, MAX_KEY_BYTES, MAX_VALUE_BYTES};
pub use index::Index;
pub use leaf::found::Found;
pub use options::{Direction, Options, Stats};
#[cfg(feature = "portable")]
pub use simd::use_portable_search;
pub use snapshot::Snapshot;
pub use spare::Spare;
pub use tree::{Reader, Tree};
pub use value::{VALUE_INLINE_BYTES, Value};

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

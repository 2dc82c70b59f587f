//! A concurrent ordered map from bytes to bytes, in arenas on huge pages.
//!
//! An [`Index`] owns the memory and any number of [`Tree`]s, each an ordered map. Reads go through a
//! [`Reader`]: a tree is one (it sees the newest state), and a [`Snapshot`] hands out others that see one
//! past state of all trees. All changes go through one primitive, [`Tree::apply`], or through
//! [`Index::batch`], whose changes become visible at once or not at all.
// The models take the modules that they are about into their own test, see tests/loom.rs.
#![cfg(not(loom))]

mod arena;
mod batch;
mod cursor;
mod epoch;
mod gate;
mod hash;
mod index;
mod inner;
mod key;
mod latch;
mod leaf;
mod node;
mod order;
mod read;
mod reclaim;
mod roots;
mod scan;
mod simd;
mod snapshot;
mod sync;
mod tree;
mod value;
mod write;

pub use batch::Batch;
pub use cursor::Cursor;
pub use index::Index;
pub use leaf::found::Found;
pub use snapshot::Snapshot;
pub use tree::{Reader, Tree};
pub use value::{VALUE_INLINE_BYTES, Value};

use std::borrow::Cow;

/// Longest key, in bytes.
pub const MAX_KEY_BYTES: usize = 65_535;
/// Longest value, in bytes.
pub const MAX_VALUE_BYTES: usize = u32::MAX as usize;

/// What a change does to one key, decided from the value that the key has.
#[derive(Debug, Clone)]
pub enum Effect<'v> {
    /// Leave the key as it is.
    Keep,
    /// Map the key to these bytes, which are copied.
    Put(Cow<'v, [u8]>),
    /// Map the key to this value; a shared value is not copied.
    PutValue(Value),
    /// Remove the key.
    Remove,
}

/// Which way a scan goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From small keys to large ones.
    Forward,
    /// From large keys to small ones.
    Backward,
}

/// How an index takes memory.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Most bytes that the nodes may take; `None` means what the machine has. Values above
    /// 239 bytes live outside.
    pub capacity_bytes: Option<usize>,
    /// Which pages the nodes should lie on.
    pub pages: forrest_machine::pages::Pages,
    /// Where the pages are taken from on a machine with several memory nodes.
    pub numa: forrest_machine::pages::Numa,
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A key longer than [`MAX_KEY_BYTES`]; carries its length.
    KeyTooLong(usize),
    /// A value longer than [`MAX_VALUE_BYTES`]; carries its length.
    ValueTooLong(usize),
    /// The operating system refused memory, or the capacity is used up; carries the bytes asked for.
    OutOfMemory(usize),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::KeyTooLong(n) => write!(f, "key of {n} bytes exceeds the limit of {MAX_KEY_BYTES} bytes"),
            Error::ValueTooLong(n) => {
                write!(f, "value of {n} bytes exceeds the limit of {MAX_VALUE_BYTES} bytes")
            }
            Error::OutOfMemory(n) => write!(f, "no memory for {n} more bytes"),
        }
    }
}

impl std::error::Error for Error {}

/// What an index holds and what it costs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Keys in all trees, newest state.
    pub keys: u64,
    /// Bytes in live nodes.
    pub node_bytes: u64,
    /// Bytes of values held outside the nodes.
    pub blob_bytes: u64,
    /// Bytes taken from the operating system for nodes.
    pub arena_bytes: u64,
    /// Of these, bytes on explicit huge pages.
    pub explicit_huge_bytes: u64,
    /// Of these, bytes for which transparent huge pages were asked and granted by the system's setting.
    pub transparent_huge_bytes: u64,
    /// Snapshots alive.
    pub snapshots: u64,
}

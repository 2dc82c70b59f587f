//! The contract between Forrest's API and its engines.
//!
//! The crate `forrest` is the API. An engine keeps data in one home: memory, the kernel module, a store on
//! disk. This crate has what both sides share:
//!
//! | module | what it has |
//! |---|---|
//! | contract.rs | the traits that an engine implements: [`Store`], [`Keyspace`], [`View`], [`Snapshot`], [`Cursor`] |
//! | changes.rs | [`Change`], [`Changes`]: what has happened to a store |
//! | ingest.rs | [`Ingest`]: many sorted pairs, which a keyspace gets at one instant |
//! | chunk.rs | [`Chunk`]: the pairs that one refill of an iteration brings |
//! | clock.rs | [`Clock`](clock::Clock): the time by which values expire |
//! | filter.rs | [`Filter`]: which values stay when tables are written |
//! | line.rs | the text form of operations |
//! | merge.rs | [`MergeOperator`]: how operands become part of values |
//! | op.rs | [`Op`], [`Outcome`]: the alphabet of changes, and what each does to a key |
//! | pairs.rs | pairs as one byte string, and the comparison of a range with them |
//! | bounds.rs | [`KeyRange`], [`prefix_end`] |
//! | options.rs | [`Options`], [`Durability`], [`Compression`] |
//! | key.rs | [`EncryptionKey`] |
//! | metrics.rs | [`Metrics`], [`Event`], [`Listener`] |
//! | latency.rs | [`Latency`]: how long calls took |
//! | stats.rs | [`Stats`], [`Approximate`], [`Capabilities`] |
//! | error.rs | [`Error`] |
//!
//! A module uses only those below it. With the feature `conformance` there are also `conformance` and `expiring`: tests
//! that every engine must pass.
//!
//! **Division of checks.** The API checks the lengths of keys and names, cuts ranges to possible keys
//! ([`clamp`](bounds::clamp)), and refuses keyspaces of another store. An engine relies on that. It checks
//! what only it can know: its own limits, the durability that it can keep, dropped keyspaces.

#![forbid(unsafe_code)]

pub mod bounds;
mod changes;
pub mod chunk;
pub mod clock;
#[cfg(feature = "conformance")]
pub mod conformance;
mod contract;
pub mod error;
#[cfg(feature = "conformance")]
pub mod expiring;
mod filter;
pub mod ingest;
mod key;
pub mod latency;
pub mod line;
pub mod merge;
pub mod metrics;
pub mod op;
pub mod options;
pub mod pairs;
mod pieces;
pub mod spans;
pub mod stats;

pub use bounds::{KeyBounds, KeyRange, prefix_end};
pub use changes::{Change, Changes, What};
pub use chunk::{Chunk, Filled, Goto};
pub use contract::{Cursor, Keyspace, NoSnapshot, Snapshot, Store, View, no_expiry, one_by_one};
pub use error::{Error, ErrorKind, Result};
pub use filter::{Filter, Verdict};
pub use forrest_index::{Direction, MAX_KEY_BYTES, MAX_VALUE_BYTES, Value};
pub use ingest::Ingest;
pub use key::EncryptionKey;
pub use latency::{Call, Latencies, Latency};
pub use merge::MergeOperator;
pub use metrics::{Event, Job, Listener, Metrics, Waits, Work};
pub use op::{Effect, Expires, Op, Outcome, Swap, Written, half_open};
pub use options::{
    Compression, DEFAULT_KEYSPACE, Durability, MAX_KEYSPACE_NAME_BYTES, MAX_KEYSPACES, Numa, OptionChanges,
    Options, Pages,
};
pub use pieces::{Pieces, Whole};
pub use stats::{Approximate, Capabilities, Capability, Stats};

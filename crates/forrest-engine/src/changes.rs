//! [`Change`], [`Changes`]: what has happened to a store, in the order of its sequence numbers.

use crate::error::Result;
use std::sync::Arc;
use std::time::Duration;

/// One change of a store, as [`Changes`] returns it.
///
/// Its [`what`](Change::what) is the effect, not the operation: an `add`, a merge or a compare-and-swap is the set that
/// it came to, and an operation without an effect is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// Its sequence number. Numbers ascend from 1, and some are left out.
    pub sequence: u64,
    /// The name of the keyspace that it concerns.
    pub keyspace: Arc<str>,
    /// What happened.
    pub what: What,
    /// Whether it is the last of its batch. A change that was made alone is a batch of one. The store never had a state
    /// between two changes of a batch.
    pub ends_batch: bool,
}

/// What happened to a keyspace.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum What {
    /// The key has this value.
    Set {
        /// The key.
        key: Vec<u8>,
        /// Its value.
        value: Vec<u8>,
    },
    /// The key has this value until a time. That the time has come is no change.
    SetUntil {
        /// The key.
        key: Vec<u8>,
        /// Its value.
        value: Vec<u8>,
        /// The milliseconds since 1970 from which on the value is not there.
        expires_ms: u64,
    },
    /// The key is not there.
    Delete {
        /// The key.
        key: Vec<u8>,
    },
    /// No key from `start` up to but not including `end` is there, or no key from `start` on.
    DeleteRange {
        /// The first key of the range.
        start: Vec<u8>,
        /// The first key after it; `None` if there is no end.
        end: Option<Vec<u8>>,
    },
    /// The keyspace was created. It is empty.
    CreateKeyspace,
    /// The keyspace was dropped, with all its keys.
    DropKeyspace,
    /// An ingest may have added pairs whose keys are from `first` to `last`, both included. The changes do not have
    /// them: read the range. The newest state has the pairs, and so has a snapshot that is taken from now on.
    /// Later changes of the range may be in what was read already; making them once more does no harm.
    Ingest {
        /// The least key of the ingest.
        first: Vec<u8>,
        /// Its greatest key.
        last: Vec<u8>,
    },
}

impl Change {
    /// A change.
    pub fn new(sequence: u64, keyspace: Arc<str>, what: What, ends_batch: bool) -> Change {
        Change { sequence, keyspace, what, ends_batch }
    }
}

/// The changes of a store after a place in their order.
pub trait Changes: Send + Sync {
    /// The next change; `None` if there is none yet of the durability that is asked for.
    ///
    /// # Errors
    /// `Gone` if changes that come next are no longer kept; `Io`, `Corrupt`, `OutOfSpace`; `Stopped`. The place stays.
    fn next(&mut self) -> Result<Option<Change>>;

    /// The same, but waits up to this time for a change.
    ///
    /// # Errors
    /// As [`next`](Changes::next).
    fn wait(&mut self, most: Duration) -> Result<Option<Change>>;
}

//! [`Limits`]: the sizes and limits of an open store that can be changed. All others are as it was opened.
//!
//! Those of the cache, of the descriptors and of the rate are where they are enforced.

use forrest_engine::{OptionChanges, Options};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// See the head of the file.
pub(crate) struct Limits {
    memtable_bytes: AtomicUsize,
    batch_bytes_max: AtomicUsize,
    table_bytes: AtomicU64,
    /// Nanoseconds.
    wait: AtomicU64,
}

// ORDERING: each value stands for itself, and a reader may see the one before for a moment.
impl Limits {
    pub(crate) fn new(options: &Options) -> Limits {
        Limits {
            memtable_bytes: AtomicUsize::new(options.memtable_bytes),
            batch_bytes_max: AtomicUsize::new(options.batch_bytes_max),
            table_bytes: AtomicU64::new(options.table_bytes),
            wait: AtomicU64::new(nanoseconds(options.wait)),
        }
    }

    /// Takes over those that are given.
    pub(crate) fn set(&self, changes: &OptionChanges) {
        if let Some(bytes) = changes.memtable_bytes {
            self.memtable_bytes.store(bytes, Relaxed);
        }
        if let Some(bytes) = changes.batch_bytes_max {
            self.batch_bytes_max.store(bytes, Relaxed);
        }
        if let Some(bytes) = changes.table_bytes {
            self.table_bytes.store(bytes, Relaxed);
        }
        if let Some(wait) = changes.wait {
            self.wait.store(nanoseconds(wait), Relaxed);
        }
    }

    #[inline]
    pub(crate) fn memtable_bytes(&self) -> usize {
        self.memtable_bytes.load(Relaxed)
    }

    pub(crate) fn table_bytes(&self) -> u64 {
        self.table_bytes.load(Relaxed)
    }

    pub(crate) fn wait(&self) -> Duration {
        Duration::from_nanos(self.wait.load(Relaxed))
    }

    /// The options with which a store was opened, with what is in force now.
    pub(crate) fn now(&self, opened: &Options) -> Options {
        Options {
            memtable_bytes: self.memtable_bytes(),
            batch_bytes_max: self.batch_bytes_max.load(Relaxed),
            table_bytes: self.table_bytes(),
            wait: self.wait(),
            ..opened.clone()
        }
    }
}

fn nanoseconds(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)
}

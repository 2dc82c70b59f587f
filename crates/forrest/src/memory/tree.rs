//! [`Tree`]: a keyspace of the memory home.

use crate::expiry::{Expiries, Moved};
use forrest_engine::clock::Clock;
use forrest_engine::merge::SharedOperator;
use forrest_engine::{Error, Result};
use forrest_index as index;
use std::mem;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// It was dropped.
const DROPPED: u8 = 1;
/// It may have values that expire.
const EXPIRES: u8 = 2;

/// A tree with its name, and what is special about it.
pub(crate) struct Tree {
    pub(super) name: Arc<str>,
    pub(super) tree: index::Tree,
    /// [`DROPPED`] and [`EXPIRES`], as bits.
    special: AtomicU8,
    /// Set while no writer runs, and then never changed.
    pub(super) operator: OnceLock<SharedOperator>,
    /// The time to live of values that are set without one, in milliseconds; 0 if they stay.
    pub(super) ttl_ms: AtomicU64,
    /// Made before the first value that expires, and before [`EXPIRES`] is set.
    expiries: OnceLock<Expiries>,
    pub(super) clock: Arc<Clock>,
}

impl Drop for Tree {
    fn drop(&mut self) {
        if !self.tree.is_here() {
            // Another thread may have been changing them at the fork.
            mem::forget(self.expiries.take());
        }
    }
}

impl Tree {
    pub(super) fn new(name: Arc<str>, tree: index::Tree, clock: Arc<Clock>) -> Tree {
        let (operator, expiries) = (OnceLock::new(), OnceLock::new());
        let (special, ttl_ms) = (AtomicU8::new(0), AtomicU64::new(0));
        Tree { name, tree, special, operator, ttl_ms, expiries, clock }
    }

    /// Fails if the keyspace was dropped, and in a child made by `fork`.
    ///
    /// ORDERING: Acquire pairs with the Release in `drop_all`. That store precedes the removal of the
    /// first key, so a reader that missed a removed key sees the flag.
    #[inline]
    pub(super) fn check(&self) -> Result<()> {
        if self.special.load(Ordering::Acquire) & DROPPED != 0 || !self.tree.is_here() {
            return Err(self.unusable());
        }
        Ok(())
    }

    pub(super) fn ttl(&self) -> Option<Duration> {
        match self.ttl_ms.load(Ordering::Relaxed) {
            0 => None,
            ms => Some(Duration::from_millis(ms)),
        }
    }

    /// Says that it was dropped. REQUIRES: no writer runs.
    pub(super) fn drop_all(&self) {
        // ORDERING: see `check`.
        self.special.fetch_or(DROPPED, Ordering::Release);
    }

    /// Whether values may expire, or may have. Call it after reading.
    ///
    /// ORDERING: Acquire pairs with the Release in `make_expiries`. That store precedes the first value that expires,
    /// so a thread that has met one sees the flag.
    #[inline]
    pub(super) fn may_expire(&self) -> bool {
        self.special.load(Ordering::Acquire) & EXPIRES != 0
    }

    /// Whether it was not dropped, and has no values that expire. As `check` and `may_expire`.
    ///
    /// REQUIRES: it is here.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.special.load(Ordering::Acquire) == 0
    }

    /// The times of its values, if any may expire.
    pub(super) fn expiries(&self) -> Option<&Expiries> {
        self.expiries.get().filter(|_| self.may_expire())
    }

    /// Makes them.
    pub(super) fn make_expiries(&self) -> &Expiries {
        let expiries = self.expiries.get_or_init(Expiries::default);
        // ORDERING: see `may_expire`.
        self.special.fetch_or(EXPIRES, Ordering::Release);
        expiries
    }

    /// Notes the change of a key's expiry, after it is visible.
    #[inline]
    pub(super) fn note(&self, key: &[u8], moved: Moved) {
        if moved != Moved::default() {
            self.expiries().expect("a value that expires was there").note(key, moved);
        }
    }

    #[cold]
    fn unusable(&self) -> Error {
        if !self.tree.is_here() {
            return elsewhere();
        }
        Error::invalid(format!("keyspace \"{}\" was dropped", self.name.escape_debug()))
    }
}

#[cold]
pub(super) fn elsewhere() -> Error {
    Error::invalid(
        "this store in memory was opened before the process was forked from another, and is of no use here; open a store \
         in this process",
    )
}

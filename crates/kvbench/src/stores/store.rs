//! [`Store`] and [`Reader`]: what every store must be able to do, and how it is opened.

use crate::job::Durability;
use std::path::Path;

/// What went wrong, in the store's own words.
pub(crate) type Fault = Box<dyn std::error::Error + Send + Sync>;
/// What a store answers.
pub(crate) type Answer<T> = Result<T, Fault>;

/// How a store is opened.
pub(crate) struct Settings<'a> {
    /// A directory of its own, which is there, and empty or this store's.
    pub(crate) directory: &'a Path,
    /// Memory for all of it, in bytes.
    pub(crate) budget_bytes: usize,
    /// What writes survive; one that the store offers.
    pub(crate) durability: Durability,
}

/// Of the budget, a memtable takes a sixteenth, where a store has any, and up to three of them are in memory at once.
const MEMTABLE_SHARE: usize = 16;
/// Memtables that may be in memory at once.
pub(super) const MEMTABLES: usize = 3;

impl Settings<'_> {
    /// Size of one memtable, in bytes.
    pub(crate) fn memtable_bytes(&self) -> usize {
        self.budget_bytes / MEMTABLE_SHARE
    }

    /// What is left for the cache of a store that has memtables, in bytes.
    pub(crate) fn cache_bytes(&self) -> usize {
        self.budget_bytes - MEMTABLES * self.memtable_bytes()
    }
}

/// Which way a scan goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// From small keys to large ones.
    Forward,
    /// From large keys to small ones.
    Backward,
}

/// A store, used as its documentation advises. A write by any of these is seen by readers that are made after it.
pub(crate) trait Store: Sync + Sized {
    /// What writes may be told to survive, the least first.
    const OFFERS: &'static [Durability];

    /// How a thread reads.
    type Reader<'s>: Reader
    where
        Self: 's;

    /// Opens the store of the directory, or makes it. Nothing is compressed.
    fn open(settings: &Settings<'_>) -> Answer<Self>;
    /// Maps a key to a value, which then survives what the store was told.
    fn put(&self, key: &[u8], value: &[u8]) -> Answer<()>;
    /// The same for several, all or none.
    fn put_batch<'p>(&self, pairs: impl Iterator<Item = (&'p [u8], &'p [u8])>) -> Answer<()>;
    /// As [`Store::put`], and returns when it survives power loss.
    fn put_synced(&self, key: &[u8], value: &[u8]) -> Answer<()>;
    /// A way of reading. It need not see writes that are made while it lives.
    fn reader(&self) -> Answer<Self::Reader<'_>>;
    /// Shows all pairs in order.
    fn scan_all(&self, way: Way, see: impl FnMut(&[u8], &[u8])) -> Answer<()>;
    /// Hands everything to the operating system that does not have it yet, where a writing step leaves something
    /// behind.
    fn hand_over(&self) -> Answer<()> {
        Ok(())
    }
    /// Whether it knows of work in the background.
    fn is_busy(&self) -> bool {
        false
    }
    /// Takes the least space that it can by itself; false if it offers no such thing.
    fn compact(&mut self) -> Answer<bool>;
}

/// How a thread reads from a store.
pub(crate) trait Reader {
    /// Shows the value of a key; false if there is none.
    fn get(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Answer<bool>;
    /// Shows the first pair at or after a key.
    fn seek(&mut self, key: &[u8], see: impl FnOnce(&[u8], &[u8])) -> Answer<()>;
    /// Shows so many pairs from a key on.
    fn scan(&mut self, key: &[u8], pairs: usize, see: impl FnMut(&[u8], &[u8])) -> Answer<()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_shared_out() {
        let settings =
            Settings { directory: Path::new(""), budget_bytes: 1 << 30, durability: Durability::Process };
        assert_eq!((settings.memtable_bytes(), settings.cache_bytes()), (64 << 20, 832 << 20));
    }
}

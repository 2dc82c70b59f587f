//! [`Store`] and [`Reader`]: the operations of every store, and how it is opened.

use super::pairs::Key;
use crate::job::{Compression, Durability};
use std::path::Path;
use std::time::Duration;

/// An error of a store.
pub(crate) type Fault = Box<dyn std::error::Error + Send + Sync>;
/// The result of a call to a store.
pub(crate) type Answer<T> = Result<T, Fault>;

/// How a store is opened.
pub(crate) struct Settings<'a> {
    /// An existing directory, empty or with this store.
    pub(crate) directory: &'a Path,
    /// Size of one memtable, in bytes.
    pub(crate) memtable_bytes: usize,
    /// Size of the cache of a store that has memtables, in bytes.
    pub(crate) cache_bytes: usize,
    /// The durability of writes; one that the store offers.
    pub(crate) durability: Durability,
    /// How tables are compressed, in a store that does.
    pub(crate) compression: Compression,
    /// Whether values of [`SEPARATED_BYTES`] and more are kept apart from their keys, in a store that does.
    pub(crate) separates: bool,
}

/// A memtable, in stores that have one, takes 1/16 of the budget; up to [`MEMTABLES`] are in memory at once.
const MEMTABLE_SHARE: usize = 16;
/// Values of this length, in bytes, and more are kept apart from their keys, if that is asked for.
pub(crate) const SEPARATED_BYTES: u32 = 4096;
/// Memtables that may be in memory at once.
pub(crate) const MEMTABLES: usize = 3;

impl<'a> Settings<'a> {
    /// A store whose memtables and cache share a budget.
    pub(crate) fn shared_out(directory: &'a Path, budget_bytes: usize, durability: Durability) -> Self {
        let memtable_bytes = budget_bytes / MEMTABLE_SHARE;
        Settings {
            directory,
            memtable_bytes,
            cache_bytes: budget_bytes - MEMTABLES * memtable_bytes,
            durability,
            compression: Compression::None,
            separates: false,
        }
    }

    /// Memory for all of it, in bytes.
    pub(crate) fn budget_bytes(&self) -> usize {
        MEMTABLES * self.memtable_bytes + self.cache_bytes
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

/// A store, used as its documentation advises. A reader sees every write that returned before it was made.
pub(crate) trait Store: Sync + Sized {
    /// The durabilities that the store offers, the weakest first.
    const OFFERS: &'static [Durability];
    /// Whether it can compress with LZ4.
    const COMPRESSES: bool = false;
    /// The store is at rest after this time without background work.
    const REST: Duration = Duration::from_millis(400);

    /// The handle with which one thread reads.
    type Reader<'s>: Reader
    where
        Self: 's;

    /// Opens the store in the directory, or creates it. Only tables are compressed, if that is asked for.
    fn open(settings: &Settings<'_>) -> Answer<Self>;
    /// Sets the value of a key, with the durability of the settings.
    fn put(&self, key: &[u8], value: &[u8]) -> Answer<()>;
    /// Sets several pairs atomically.
    fn put_batch<'p>(&self, pairs: impl Iterator<Item = (&'p [u8], &'p [u8])>) -> Answer<()>;
    /// As [`Store::put`], but returns only when the write survives power loss.
    fn put_synced(&self, key: &[u8], value: &[u8]) -> Answer<()>;
    /// Makes a reader. It need not see later writes.
    fn reader(&self) -> Answer<Self::Reader<'_>>;
    /// Shows all pairs in order.
    fn scan_all(&self, way: Way, see: impl FnMut(&[u8], &[u8])) -> Answer<()>;
    /// Writes buffered changes to the operating system, in stores that buffer changes after a writing step.
    fn hand_over(&self) -> Answer<()> {
        Ok(())
    }
    /// Whether the store reports background work.
    fn is_busy(&self) -> bool {
        false
    }
    /// Blocks that its cache did not have and that it read from its files so far, if the store counts them.
    fn block_reads(&self) -> Option<u64> {
        None
    }
    /// Compacts the store to the least space; false if it offers no such call.
    fn compact(&mut self) -> Answer<bool>;
}

/// A store that `kvbench pressure` drives.
pub(crate) trait Pressed: Store {
    /// The store, opened for transactions.
    type Transactions: Transact;
    /// One state of the store, as long as it is kept.
    type Snapshot<'s>
    where
        Self: 's;

    /// Deletes a key that is there, with the durability of the settings.
    fn delete(&self, key: &[u8]) -> Answer<()>;
    /// Deletes all keys from one up to another, by the store's own call, or by what its users do without one.
    fn delete_range(&self, start: &[u8], end: &[u8]) -> Answer<()>;
    /// Adds sorted pairs whose keys the store does not have, by the fastest way that its documentation names. Files
    /// may go to `directory`, an empty one on the same device.
    fn ingest<'p>(&self, directory: &Path, pairs: impl Iterator<Item = (&'p [u8], &'p [u8])>) -> Answer<()>;
    /// Makes a snapshot.
    fn snapshot(&self) -> Answer<Self::Snapshot<'_>>;
    /// Shows the first key and deletes it; false if there is none.
    fn pop(&self, see: impl FnOnce(&[u8])) -> Answer<bool>;
}

/// A store with transactions, which are serializable for what [`Transact::transfer`] does.
pub(crate) trait Transact: Sync + Sized {
    /// Opens the store in the directory, or creates it.
    fn open(settings: &Settings<'_>) -> Answer<Self>;
    /// Sets a key outside of transactions.
    fn put(&self, key: &[u8], value: &[u8]) -> Answer<()>;
    /// In one transaction, replaces the values of two keys. Returns false if another one was in the way; nothing has
    /// changed then.
    fn transfer(&self, keys: [&[u8]; 2], change: impl Fn([Amount; 2]) -> [Amount; 2]) -> Answer<bool>;
    /// The values of keys, in one state.
    fn amounts(&self, keys: &[Key]) -> Answer<Vec<Amount>>;
}

/// What an account has.
pub(crate) type Amount = u64;

/// An amount of its bytes.
pub(crate) fn amount(bytes: Option<impl AsRef<[u8]>>) -> Answer<Amount> {
    let bytes = bytes.ok_or("an account is missing")?;
    Ok(Amount::from_le_bytes(bytes.as_ref().try_into()?))
}

/// Reads from a store, in one thread.
pub(crate) trait Reader {
    /// Shows the value of a key; false if there is none.
    fn get(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Answer<bool>;
    /// Shows the values of the keys that are there, in the order of the keys; by the store's own call, if it has one.
    fn many(&mut self, keys: &[impl AsRef<[u8]>], mut see: impl FnMut(&[u8])) -> Answer<()> {
        keys.iter().try_for_each(|key| self.get(key.as_ref(), &mut see).map(drop))
    }
    /// Shows the first pair at or after a key.
    fn seek(&mut self, key: &[u8], see: impl FnOnce(&[u8], &[u8])) -> Answer<()>;
    /// Shows up to `pairs` pairs from a key on.
    fn scan(&mut self, key: &[u8], pairs: usize, see: impl FnMut(&[u8], &[u8])) -> Answer<()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_shared_out() {
        let settings = Settings::shared_out(Path::new(""), 1 << 30, Durability::Process);
        assert_eq!((settings.memtable_bytes, settings.cache_bytes), (64 << 20, 832 << 20));
    }
}

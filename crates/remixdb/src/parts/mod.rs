//! Parts of the engine alone, for measurements: runs in a directory, read as a partition of a store is, or by
//! a merging iterator over the same tables.
//!
//! Reason: a store never has sixteen runs side by side to order, and callers cannot choose the number. So the
//! benefit of a REMIX cannot be measured through the library's API. `kvbench remix` is the only user. This
//! module is compiled only with the feature `parts`, has no stability guarantee, and changes with the engine.
//!
//! The measured code is the engine's own: its builder writes the tables to a real directory, reads go through
//! its cache, and a partition is the one that every read of a store uses. Only [`Merging`] is made for this
//! module.

mod merging;
#[cfg(test)]
mod tests;
mod walk;

pub use merging::Merging;
pub use walk::Walk;

use crate::cache::Cache;
use crate::disk::Real;
use crate::disk::{self, Kind, Name};
use crate::partition::{self, Known, PartitionCursor};
use crate::remix::{self, Remix};
use crate::table::{Builder, Table, TableEntry};
use forrest_engine::Result;
use forrest_engine::{Numa, Options, Pages};
use std::path::Path;
use std::sync::Arc;

/// Sorted runs of pairs, a table for each, the oldest first. Cloning makes another handle.
#[derive(Clone)]
pub struct Runs {
    disk: Arc<Real>,
    cache: Arc<Cache>,
    tables: Vec<Arc<Table<Real>>>,
}

impl Runs {
    /// No runs yet, in a directory without files of a store, which is created if it is missing. At most
    /// `cache_bytes` of their pages are kept in memory.
    ///
    /// # Errors
    /// `Io`; `Busy` if another handle has the directory.
    pub fn create(directory: &Path, cache_bytes: usize) -> Result<Runs> {
        let disk = Arc::new(Real::open(directory, &Options::default())?);
        let cache = Arc::new(Cache::new(cache_bytes, Pages::default(), Numa::default()));
        Ok(Runs { disk, cache, tables: Vec::new() })
    }

    /// Writes a run, which is then the newest. `None` deletes a key.
    ///
    /// # Panics
    /// If the keys do not ascend.
    ///
    /// # Errors
    /// `Limit`, `Io`, `OutOfSpace`.
    pub fn add<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        pairs: impl IntoIterator<Item = (K, Option<V>)>,
    ) -> Result<()> {
        let name = Name::table(self.tables.len() as u64 + 1);
        // As in a store: a table that is alone in its partition has tags.
        let mut builder = Builder::new(&*self.disk, name)?.tagged(self.tables.is_empty());
        for (key, value) in pairs {
            let entry =
                value.as_ref().map_or(TableEntry::Tombstone, |value| TableEntry::Value(value.as_ref()));
            builder.add(key.as_ref(), entry)?;
        }
        builder.finish()?;
        disk::sync_directory(&*self.disk, Kind::Table)?;
        self.tables.push(Arc::new(Table::open(self.disk.clone(), name, &self.cache)?));
        Ok(())
    }

    /// The `count` oldest runs, or all if there are fewer.
    pub fn oldest(&self, count: usize) -> Runs {
        let tables = self.tables[..count.min(self.tables.len())].to_vec();
        Runs { disk: self.disk.clone(), cache: self.cache.clone(), tables }
    }

    /// Makes a REMIX of the runs from scratch.
    ///
    /// # Errors
    /// `Io`, `Corrupt`; `Limit` for too many runs.
    pub fn order(&self, tags: bool) -> Result<Order> {
        Ok(Order(Arc::new(remix::build(&mut partition::runs(&self.tables), tags)?)))
    }

    /// Makes a REMIX from `old`, which covers the oldest of the runs.
    ///
    /// # Panics
    /// If it does not.
    ///
    /// # Errors
    /// `Io`, `Corrupt`; `Limit` for too many runs.
    pub fn order_from(&self, old: &Order, tags: bool) -> Result<Order> {
        Ok(Order(Arc::new(remix::rebuild(&old.0, &mut partition::runs(&self.tables), tags)?)))
    }

    /// The runs as a store reads them: one through its own index, several through a REMIX.
    ///
    /// # Panics
    /// If several runs have no REMIX, or a single run has one, or the REMIX does not fit the runs.
    pub fn partition(&self, order: Option<&Order>) -> Partition {
        let remix = order.map(|order| order.0.clone());
        // It has no file.
        let known = Known { remix, ..Known::default() };
        Partition(partition::Partition::new(Vec::new(), self.tables.clone(), known))
    }

    /// A merging iterator over the runs, not placed yet.
    pub fn merging(&self) -> Merging {
        Merging::new(partition::runs(&self.tables))
    }

    /// Pages read so far because they were not kept.
    pub fn pages_missed(&self) -> u64 {
        self.cache.stats().misses
    }
}

/// The order over several runs: a REMIX.
pub struct Order(Arc<Remix>);

impl Order {
    /// Bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        self.0.bytes()
    }
}

/// Runs as a partition of a store.
pub struct Partition(partition::Partition<Real>);

impl Partition {
    /// Passes the value of a key to `see`; `None` if it is not there.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    #[inline]
    pub fn get<R>(&self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        self.0.get(self.0.find(key), key, see)
    }

    /// A cursor, not placed yet.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    pub fn cursor(&self) -> Result<PartCursor> {
        Ok(PartCursor(self.0.cursor()?))
    }

    /// Bytes of memory that hold the locations of keys: the REMIX, and for each table the loaded part of its
    /// index, with the slots of its pages.
    pub fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }
}

/// A place in a [`Partition`].
pub struct PartCursor(PartitionCursor<Real>);

impl Walk for PartCursor {
    fn first(&mut self) -> Result<bool> {
        self.0.first()
    }

    #[inline]
    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.0.seek(key)
    }

    #[inline]
    fn next(&mut self) -> Result<bool> {
        self.0.next()
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.0.key()
    }

    #[inline]
    fn show<R>(&mut self, see: impl FnOnce(&[u8], &[u8]) -> R) -> Result<R> {
        self.0.show(|key, pair| pair.with(|value| see(key, value)))
    }
}

//! The REMIX by itself: sorted runs in a directory, the order over them that was made once, and reads through it. A
//! merging iterator over the same runs is there for comparison.
//!
//! It is for programs that write sorted files themselves and want one order over them without merging, and for
//! measurements: `kvbench remix` uses it, because a store never has sixteen runs side by side. The code is the engine's
//! own: its builder writes the tables, reads go through its cache, and a [`Partition`] is the one that every read of a
//! store uses. Only [`Merging`] is made for this module.
//!
//! There is no log: a run is there when [`Runs::add`] has returned, and survives a loss of power then. A REMIX is in
//! memory, and is made again when the runs are opened. The files are tables of a store, in the format of this version.
//! The module is compiled with the feature `parts`, and may change with each minor version. docs/decisions/0025 has the
//! reasons.
//!
//! ```
//! use remixdb::parts::{Runs, Walk};
//!
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("runs");
//! let mut runs = Runs::open(&path, 64 << 20)?; // 64 MiB of pages stay in memory
//! runs.add([("ash", Some("Fraxinus")), ("oak", Some("Quercus"))])?;
//! runs.add([("ash", None), ("elm", Some("Ulmus glabra"))])?; // newer: it deletes a key
//!
//! let order = runs.order(true)?; // reads all keys once; with tags
//! let partition = runs.partition(Some(&order))?;
//! assert_eq!(partition.get(b"oak", |value| value.to_vec())?.as_deref(), Some(&b"Quercus"[..]));
//! assert_eq!(partition.get(b"ash", |value| value.to_vec())?, None);
//!
//! let mut cursor = partition.cursor()?;
//! let mut keys = Vec::new();
//! let mut is_at_key = cursor.seek(b"b")?;
//! while is_at_key {
//!     keys.push(cursor.key().to_vec());
//!     is_at_key = cursor.next()?; // compares no keys
//! }
//! assert_eq!(keys, [b"elm", b"oak"]);
//!
//! runs.add([("fir", Some("Abies alba"))])?;
//! let order = runs.order_from(&order, true)?; // reads the new keys, and few of the old ones
//! assert!(runs.partition(Some(&order))?.get(b"fir", |_| ())?.is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod merging;
#[cfg(test)]
mod tests;
mod walk;

pub use merging::Merging;
pub use walk::Walk;

use crate::cache::Cache;
use crate::disk::{self, Kind, Name, Real, Sealed};
use crate::partition::{self, Known, PartitionCursor};
use crate::remix::{self, Remix};
use crate::table::{Builder, Table, TableEntry};
use forrest_engine::{Error, Numa, Options, Pages, Result};
use std::path::Path;
use std::sync::Arc;

/// Sorted runs of pairs, a table for each, the oldest first. Cloning makes another handle.
#[derive(Clone)]
pub struct Runs {
    disk: Arc<Sealed>,
    cache: Arc<Cache>,
    tables: Vec<Arc<Table>>,
}

impl Runs {
    /// The runs in a directory, which is created if it is missing. At most `cache_bytes` of their pages are kept in
    /// memory.
    ///
    /// # Errors
    /// `InvalidArgument` if the directory has a store; `Busy` if another handle has it; `Corrupt`, `Io`.
    pub fn open(directory: &Path, cache_bytes: usize) -> Result<Runs> {
        let disk = Arc::new(Sealed::plain(Real::open(directory, &Options::default())?));
        let names = disk::list(&*disk)?;
        if let Some(name) = names.iter().find(|name| name.kind != Kind::Table) {
            return Err(Error::invalid(format!(
                "{} has a store and not runs: it has {name}",
                directory.display()
            )));
        }
        let cache = Arc::new(Cache::new(cache_bytes, Pages::default(), Numa::default()));
        let open = |name: Name| Ok(Arc::new(Table::open(disk.clone(), name, &cache)?));
        let tables = names.into_iter().map(open).collect::<Result<_>>()?;
        Ok(Runs { disk, cache, tables })
    }

    /// Writes a run, which is then the newest. Its keys ascend, and `None` deletes one. When this returns, the run
    /// survives a loss of power.
    ///
    /// # Errors
    /// `InvalidArgument` if a key is not greater than the one before; `Limit`, `Io`, `OutOfSpace`. Then there is no new
    /// run.
    pub fn add<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        pairs: impl IntoIterator<Item = (K, Option<V>)>,
    ) -> Result<()> {
        let last = self.tables.last().map_or(0, |table| table.name().number);
        let name = Name::table(last + 1);
        let written = self.write(name, pairs);
        if written.is_err() {
            // The error is that of the run.
            let _ = disk::unlink(&*self.disk, name);
        }
        self.tables.push(written?);
        Ok(())
    }

    fn write<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        name: Name,
        pairs: impl IntoIterator<Item = (K, Option<V>)>,
    ) -> Result<Arc<Table>> {
        // As in a store: a table that is alone in its partition has tags.
        let mut builder = Builder::new(&*self.disk, name)?.tagged(self.tables.is_empty());
        for (at, (key, value)) in pairs.into_iter().enumerate() {
            let (key, value) = (key.as_ref(), value.as_ref().map(AsRef::as_ref));
            if !builder.takes(key) {
                let what = format!(
                    "key {at} of the run, \"{}\", is not greater than the one before",
                    key.escape_ascii()
                );
                return Err(Error::invalid(what));
            }
            builder.add(key, value.map_or(TableEntry::Tombstone, TableEntry::Value))?;
        }
        builder.finish()?;
        // DURABILITY: a run is there with its name.
        disk::sync_directory(&*self.disk, Kind::Table)?;
        Ok(Arc::new(Table::open(self.disk.clone(), name, &self.cache)?))
    }

    /// The number of runs.
    pub fn len(&self) -> usize {
        self.tables.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// The `count` oldest runs, or all if there are fewer.
    pub fn oldest(&self, count: usize) -> Runs {
        let tables = self.tables[..count.min(self.tables.len())].to_vec();
        Runs { disk: self.disk.clone(), cache: self.cache.clone(), tables }
    }

    /// Makes a REMIX of the runs from scratch. Reads all keys, and no values.
    ///
    /// # Errors
    /// `Io`, `Corrupt`; `Limit` for too many runs.
    pub fn order(&self, tags: bool) -> Result<Order> {
        self.ordered(remix::build(&mut partition::runs(&self.tables), tags)?)
    }

    /// Makes a REMIX from `old`, which is of the oldest of these runs. Reads the keys of the others, and those of the
    /// old ones that they are compared with.
    ///
    /// # Errors
    /// `InvalidArgument` if `old` is of other runs; `Io`, `Corrupt`; `Limit` for too many runs.
    pub fn order_from(&self, old: &Order, tags: bool) -> Result<Order> {
        if !old.is_of(&self.oldest(old.tables.len()).tables) {
            return Err(Error::invalid("the order is not of the oldest of these runs"));
        }
        self.ordered(remix::rebuild(&old.remix, &mut partition::runs(&self.tables), tags)?)
    }

    fn ordered(&self, remix: Remix) -> Result<Order> {
        Ok(Order { remix: Arc::new(remix), tables: self.tables.clone() })
    }

    /// The runs as a store reads them: one through its own index, without an order, several through their order.
    ///
    /// # Errors
    /// `InvalidArgument` if several runs have no order, or one has one, or the order is of other runs.
    pub fn partition(&self, order: Option<&Order>) -> Result<Partition> {
        match order {
            None if self.tables.len() > 1 => return Err(Error::invalid("several runs need an order")),
            Some(_) if self.tables.len() < 2 => return Err(Error::invalid("a single run has no order")),
            Some(order) if !order.is_of(&self.tables) => {
                return Err(Error::invalid("the order is of other runs"));
            }
            _ => {}
        }
        let remix = order.map(|order| order.remix.clone());
        // It has no file.
        let known = Known { remix, ..Known::default() };
        Ok(Partition(partition::Partition::new(Vec::new(), self.tables.clone(), known)))
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
pub struct Order {
    remix: Arc<Remix>,
    tables: Vec<Arc<Table>>,
}

impl Order {
    fn is_of(&self, tables: &[Arc<Table>]) -> bool {
        self.tables.len() == tables.len() && self.tables.iter().zip(tables).all(|(a, b)| Arc::ptr_eq(a, b))
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        self.remix.bytes()
    }
}

/// Runs as a partition of a store.
pub struct Partition(partition::Partition);

impl Partition {
    /// Passes the value of a key to `see`; `None` if it is not there.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    #[inline]
    pub fn get<R>(&self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        self.0.get(self.0.find(key), key, || 0, see)
    }

    /// A cursor, not placed yet.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    pub fn cursor(&self) -> Result<PartCursor> {
        Ok(PartCursor(self.0.cursor(false, 0)?))
    }

    /// Bytes of memory that hold the locations of keys: the REMIX, and for each table the loaded part of its
    /// index, with the slots of its pages.
    pub fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }
}

/// A place in a [`Partition`].
pub struct PartCursor(PartitionCursor);

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

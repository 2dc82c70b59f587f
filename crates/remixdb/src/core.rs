//! What the parts of an open store share: its state, and how the parts reach it. What is done with it is above.

use crate::cache::Cache;
use crate::catalog::Catalog;
use crate::current::{Current, Reading};
use crate::disk::{Disk, Name};
use crate::manifest::Manifest;
use crate::parked::Parked;
use crate::table::Table;
use crate::version::Version;
use crate::wal::Log;
use crate::work::Work;
use crate::workers::Workers;
use forrest_base::lock;
use forrest_engine::{Durability, Error, Options, Result, Stats};
use forrest_machine::origin::Origin;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

/// A handle to an open store. With the last one it is closed.
pub(crate) struct Handle<D: Disk>(Arc<Opened<D>>);

impl<D: Disk> Clone for Handle<D> {
    fn clone(&self) -> Self {
        Handle(self.0.clone())
    }
}

impl<D: Disk> Deref for Handle<D> {
    type Target = Core<D>;
    #[inline]
    fn deref(&self) -> &Core<D> {
        &self.0.core
    }
}

impl<D: Disk> Handle<D> {
    /// A handle to a store, and the thread that works for it in the background, if there is one.
    pub(crate) fn new(core: Arc<Core<D>>, worker: Option<JoinHandle<()>>) -> Handle<D> {
        Handle(Arc::new(Opened { core, worker }))
    }

    /// True if both are handles to one store.
    pub(crate) fn is(&self, other: &Handle<D>) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// What the handles share.
struct Opened<D: Disk> {
    core: Arc<Core<D>>,
    worker: Option<JoinHandle<()>>,
}

impl<D: Disk> Drop for Opened<D> {
    fn drop(&mut self) {
        if !self.core.origin.is_here() {
            // The thread is not here, and all that is open is the other process's: to close it would cut its log and
            // give its lock away.
            std::mem::forget((self.worker.take(), self.core.clone()));
            return;
        }
        if let Some(worker) = self.worker.take() {
            self.core.work.close();
            // That it panicked was told on the way.
            let _ = worker.join();
        }
        // What was acknowledged as in memory only goes to the system; there is nobody to be told if it does not.
        let _ = self.core.write_queue();
    }
}

/// A store and all that its parts have in common.
pub(crate) struct Core<D: Disk> {
    /// The process that opened it.
    pub(crate) origin: Origin,
    pub(crate) disk: Arc<D>,
    pub(crate) builder: Options,
    pub(crate) cache: Arc<Cache>,
    /// Above the number of every file that there ever was.
    pub(crate) numbers: AtomicU64,
    pub(crate) version: Current<Version<D>>,
    /// Scans of ranges that wait to go on.
    pub(crate) parked: Parked<D>,
    /// So many of its memtables wait to become tables.
    pub(crate) backlog: AtomicUsize,
    /// Changes up to this sequence number can be seen.
    pub(crate) visible: AtomicU64,
    pub(crate) order: Mutex<Order<D>>,
    pub(crate) log: Log<D>,
    /// Whoever holds it does the work in the background.
    pub(crate) manifest: Mutex<Manifest<D>>,
    pub(crate) work: Work,
    pub(crate) workers: Workers,
    /// Whether there was no room for the tables that the oldest memtable is to become.
    pub(crate) full: AtomicBool,
}

/// What changes of the store take turns for.
pub(crate) struct Order<D: Disk> {
    /// What the store consists of now, for who has the order.
    pub(crate) version: Arc<Version<D>>,
    pub(crate) catalog: Arc<Catalog>,
    /// The sequence number of the last change.
    pub(crate) sequence: u64,
    /// The sequence numbers that snapshots read at, and how many do.
    pub(crate) readers: BTreeMap<u64, usize>,
    /// Where versions are put together.
    pub(crate) scratch: Vec<u8>,
}

impl<D: Disk> Order<D> {
    /// The oldest sequence number that a snapshot reads at.
    pub(crate) fn oldest_reader(&self) -> Option<u64> {
        self.readers.first_key_value().map(|(&sequence, _)| sequence)
    }
}

#[cold]
fn elsewhere() -> Error {
    Error::invalid(
        "this store was opened before the process was forked from another, and is of no use here; open it in this process, \
         once the other one has closed it",
    )
}

impl<D: Disk> Core<D> {
    /// An error in a process that was forked from the one that opened the store: whatever locks its threads held at
    /// that moment are held here for ever.
    #[inline]
    pub(crate) fn check_here(&self) -> Result<()> {
        if self.origin.is_here() { Ok(()) } else { Err(elsewhere()) }
    }

    /// Gives the operating system what is queued.
    pub(crate) fn write_queue(&self) -> Result<()> {
        if self.log.is_queued() { self.log.commit(self.log.last(), Durability::Buffered) } else { Ok(()) }
    }

    pub(crate) fn log(&self) -> &Log<D> {
        &self.log
    }

    pub(crate) fn builder(&self) -> &Options {
        &self.builder
    }

    /// What is promised of a change that does not say.
    pub(crate) fn durability(&self) -> Durability {
        self.builder.durability.unwrap_or(Durability::Buffered)
    }

    /// The directory that it is in.
    pub(crate) fn disk(&self) -> &D {
        &self.disk
    }

    pub(crate) fn open_table(&self, number: u64) -> Result<Table<D>> {
        Table::open(self.disk.clone(), Name::table(number), &self.cache)
    }

    /// What the store consists of now, for a moment.
    #[inline]
    pub(crate) fn version(&self) -> Reading<Version<D>> {
        self.version.read()
    }

    /// Replaces what the store consists of. Whoever has the order sees to it that until this returns nothing is changed
    /// that only the new version has. The old one is better dropped without the order: files may go with it.
    pub(crate) fn set_version(&self, order: &mut Order<D>, version: Version<D>) -> Arc<Version<D>> {
        let version = Arc::new(version);
        self.version.replace(&version);
        self.parked.replace(&version);
        self.backlog.store(version.immutable.len(), Ordering::Relaxed);
        std::mem::replace(&mut order.version, version)
    }

    /// How many memtables wait to become tables, about.
    pub(crate) fn backlog(&self) -> usize {
        // ORDERING: who reads it decides only how long to wait.
        self.backlog.load(Ordering::Relaxed)
    }

    pub(crate) fn order(&self) -> MutexGuard<'_, Order<D>> {
        lock(&self.order)
    }

    pub(crate) fn workers(&self) -> &Workers {
        &self.workers
    }

    pub(crate) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// No file has this number yet, nor a higher one.
    pub(crate) fn first_free_number(&self) -> u64 {
        self.numbers.load(Ordering::Relaxed)
    }

    /// Says that there is work to be done in the background.
    pub(crate) fn call_for_work(&self) {
        self.work.call();
    }

    /// Says that some was done.
    pub(crate) fn done(&self) {
        self.work.done();
    }

    /// Waits until some work is done in the background, but not longer than `most`; not at all if nobody does any.
    pub(crate) fn wait_for_work(&self, most: Duration) {
        self.work.wait(most);
    }

    /// Takes the state of this moment, and keeps what it needs until it is given back.
    pub(crate) fn take_reader(&self) -> (u64, Arc<Version<D>>, Arc<Catalog>) {
        let mut order = self.order();
        // Not behind what is visible: of a batch that failed and stopped the store, a part may be there.
        let sequence = self.visible();
        *order.readers.entry(sequence).or_default() += 1;
        (sequence, order.version.clone(), order.catalog.clone())
    }

    /// Gives back a state that was taken.
    pub(crate) fn give_reader_back(&self, sequence: u64) {
        let mut order = self.order();
        if let Some(count) = order.readers.get_mut(&sequence) {
            *count -= 1;
            if *count == 0 {
                order.readers.remove(&sequence);
            }
        }
    }

    /// Returns when all changes made before are durable.
    pub(crate) fn sync(&self) -> Result<()> {
        self.check_here()?;
        self.log.check()?;
        let last = self.order().sequence;
        self.log.commit(last, Durability::Sync)
    }

    /// The names of all keyspaces, sorted.
    pub(crate) fn keyspaces(&self) -> Result<Vec<String>> {
        self.check_here()?;
        Ok(self.order().catalog.names())
    }

    /// What the store holds and costs.
    ///
    /// # Errors
    /// `Corrupt` or `Io` where nobody has looked into a partition yet, and it cannot be.
    pub(crate) fn stats(&self) -> Result<Stats> {
        self.check_here()?;
        let mut stats = Stats::default();
        {
            let order = self.order();
            stats.snapshots = order.readers.values().sum::<usize>() as u64;
            stats.keyspaces = order.catalog.spaces.len() as u64;
        }
        let version = self.version();
        for memtable in version.memtables() {
            let index = memtable.stats();
            stats.keys += index.keys;
            stats.node_bytes += index.node_bytes;
            stats.value_bytes_outside += index.blob_bytes;
            stats.reserved_bytes += index.arena_bytes;
            stats.explicit_huge_bytes += index.explicit_huge_bytes;
            stats.transparent_huge_bytes += index.transparent_huge_bytes;
        }
        for partition in version.partitions.values().flatten() {
            stats.keys += partition.keys()?;
            stats.table_bytes += partition.file_bytes();
            stats.tables += partition.tables().len() as u64;
            stats.index_bytes += partition.memory_bytes() as u64;
        }
        stats.cache_bytes = self.cache.stats().bytes;
        stats.open_files = self.disk.open_files();
        Ok(stats)
    }
}

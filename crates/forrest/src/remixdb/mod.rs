//! RemixDB, the engine of stores on disk: a write-ahead log, memtables, and tables behind a REMIX.
//!
//! From top to bottom, a module uses only those below it:
//!
//! | module | what it has |
//! |---|---|
//! | mod.rs | [`Store`], [`Core`]: opening and closing, and what the parts share |
//! | checkpoint.rs | a copy of an open store |
//! | view.rs | one state of a keyspace, to be read; snapshots, cursors |
//! | verify.rs | every byte read and checked |
//! | compact/ | memtables become tables, tables are merged |
//! | workers.rs, work.rs | the threads that do it, and how they are called |
//! | recover.rs | what was there when the store was opened |
//! | write.rs | the write path, on one screen |
//! | parked.rs | scans between two refills of a range, and how they let replaced files go |
//! | scan.rs, read.rs | the read paths |
//! | version.rs, partition.rs | what the store consists of at one moment |
//! | manifest/, wal/ | what of it is durable |
//! | memtable.rs, catalog.rs | the newest changes, in memory; the keyspaces |
//! | remix/, table/, cache.rs | sorted pairs on disk, and the order over several tables |
//! | frame.rs, page.rs, codec.rs | how bytes are framed and checked |
//! | current.rs, stripe.rs | a value that is read and replaced; what each thread has its own of |
//! | sync.rs | locks and atomics, which the models replace |
//! | disk/ | the seam to the operating system |
//!
//! Beside the line stand fuzzing.rs, what fuzzers do with the decoders; and bench/, parts of the engine by themselves, with
//! the feature `bench` only.
//!
//! docs/durability.md says what is promised, docs/decisions/0003 why it is built this way.

#[cfg(feature = "bench")]
pub mod bench;
mod cache;
mod catalog;
mod checkpoint;
mod codec;
mod compact;
mod current;
pub(crate) mod disk;
mod frame;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod key;
mod manifest;
mod memtable;
mod page;
mod parked;
mod partition;
mod read;
mod recover;
mod remix;
mod scan;
mod stripe;
mod sync;
mod table;
mod verify;
mod version;
mod view;
mod wal;
mod work;
mod workers;
mod write;

#[cfg(test)]
mod tests;

pub(crate) use catalog::Space;
pub(crate) use view::{Cursor, Resume, Snapshot, View};

use crate::error::{Error, ErrorKind, Result};
use crate::options::{Builder, Durability};
use crate::stats::{Capabilities, Capability, Stats};
use crate::{DEFAULT_KEYSPACE, MAX_KEYSPACES};
use cache::Cache;
use catalog::Catalog;
use current::{Current, Reading};
use disk::{Disk, Name};
use forrest_machine::origin::Origin;
use manifest::Manifest;
use parked::Parked;
use recover::Recovered;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use table::Table;
use version::Version;
use wal::Log;
use work::{Call, Work};
use workers::Workers;

/// Changes that nobody waits for reach the operating system after so long at the latest.
const QUEUED_MOST: Duration = Duration::from_millis(100);
/// When nothing was written for so long, a memtable becomes a table if it is worth one.
const QUIET: Duration = Duration::from_millis(250);
/// After so long it is tried again to make tables for which there was no room.
const RETRY: Duration = Duration::from_secs(1);

/// An open store. Cloning makes another handle. With the last one it is closed.
pub(crate) struct Store<D: Disk>(Arc<Opened<D>>);

impl<D: Disk> Clone for Store<D> {
    fn clone(&self) -> Self {
        Store(self.0.clone())
    }
}

impl<D: Disk> Deref for Store<D> {
    type Target = Core<D>;
    #[inline]
    fn deref(&self) -> &Core<D> {
        &self.0.core
    }
}

/// What the handles share: the store, and the thread that works in the background, if there is one.
struct Opened<D: Disk> {
    core: Arc<Core<D>>,
    worker: Option<JoinHandle<()>>,
}

/// A store and all that its parts have in common.
pub(crate) struct Core<D: Disk> {
    /// The process that opened it.
    origin: Origin,
    disk: Arc<D>,
    builder: Builder,
    cache: Arc<Cache>,
    /// Above the number of every file that there ever was.
    numbers: AtomicU64,
    version: Current<Version<D>>,
    /// Scans of ranges that wait to go on.
    parked: Parked<D>,
    /// So many of its memtables wait to become tables.
    backlog: AtomicUsize,
    /// Changes up to this sequence number can be seen.
    visible: AtomicU64,
    order: Mutex<Order<D>>,
    log: Log<D>,
    /// Whoever holds it does the work in the background.
    manifest: Mutex<Manifest<D>>,
    work: Work,
    workers: Workers,
    /// Whether there was no room for the tables that the oldest memtable is to become.
    full: AtomicBool,
}

/// What changes of the store take turns for.
pub(crate) struct Order<D: Disk> {
    /// What the store consists of now, for who has the order.
    version: Arc<Version<D>>,
    catalog: Arc<Catalog>,
    /// The sequence number of the last change.
    sequence: u64,
    /// The sequence numbers that snapshots read at, and how many do.
    readers: BTreeMap<u64, usize>,
    /// Where versions are put together.
    scratch: Vec<u8>,
}

impl<D: Disk> Order<D> {
    /// The oldest sequence number that a snapshot reads at.
    fn oldest_reader(&self) -> Option<u64> {
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<D: Disk> Store<D> {
    /// Opens the store in a directory, or makes one. Its work in the background is done by a thread.
    pub(crate) fn open(disk: D, builder: &Builder) -> Result<Store<D>> {
        let core = Arc::new(Core::open(disk, builder, Workers::new(builder)?)?);
        core.work.attend();
        let own = core.clone();
        let worker =
            thread::Builder::new().name("remixdb".into()).spawn(move || own.attend()).map_err(|error| {
                Error::new(
                    ErrorKind::OutOfSpace,
                    format!("starting the thread that works in the background: {error}"),
                )
            })?;
        Ok(Store(Arc::new(Opened { core, worker: Some(worker) })))
    }

    /// The same without a thread: the work is done by [`Core::step`], in as many pieces as otherwise, one after the other.
    #[cfg(any(test, fuzzing))]
    fn open_unattended(disk: D, builder: &Builder) -> Result<Store<D>> {
        Ok(Store(Arc::new(Opened {
            core: Arc::new(Core::open(disk, builder, Workers::alone(builder))?),
            worker: None,
        })))
    }

    /// One state of all keyspaces.
    pub(crate) fn snapshot(&self) -> Result<Snapshot<D>> {
        self.check_here()?;
        Ok(Snapshot::take(self))
    }

    /// The newest state of a keyspace.
    pub(crate) fn view(&self, space: &Arc<Space>) -> View<D> {
        View::Newest { store: self.clone(), space: space.clone() }
    }

    /// Copies the store as it is into an empty directory, while it goes on.
    ///
    /// # Errors
    /// `Io`, `OutOfSpace`. What the directory holds then is no store.
    pub(crate) fn checkpoint(&self, into: D) -> Result<()> {
        checkpoint::checkpoint(self, &Arc::new(into))
    }

    /// True if both are handles to one store.
    pub(crate) fn is(&self, other: &Store<D>) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<D: Disk> Drop for Opened<D> {
    fn drop(&mut self) {
        if !self.core.origin.is_here() {
            // The thread is not here, and all that is open is the other process's: to close it would cut its log and give its
            // lock away.
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

impl<D: Disk> Core<D> {
    fn open(disk: D, builder: &Builder, workers: Workers) -> Result<Core<D>> {
        let disk = Arc::new(disk);
        let cache = Arc::new(Cache::new(builder.cache_bytes, builder.pages, builder.numa));
        let recovered = recover::recover(&disk, builder, &cache)?;
        let Recovered { version, log, manifest, catalog, sequence, next_number } = recovered;
        let (backlog, version) = (version.frozen.len(), Arc::new(version));
        let (current, parked) = (Current::new(&version), Parked::new(&version));
        let (catalog, readers) = (Arc::new(catalog), BTreeMap::new());
        let order = Order { version, catalog, sequence, readers, scratch: Vec::new() };
        let core = Core {
            origin: Origin::here(),
            disk,
            builder: builder.clone(),
            cache,
            numbers: AtomicU64::new(next_number),
            version: current,
            parked,
            backlog: AtomicUsize::new(backlog),
            visible: AtomicU64::new(sequence),
            order: Mutex::new(order),
            log,
            manifest: Mutex::new(manifest),
            work: Work::default(),
            workers,
            full: AtomicBool::new(false),
        };
        core.keyspace(DEFAULT_KEYSPACE)?;
        Ok(core)
    }

    /// Works in the background until the store is closed.
    fn attend(&self) {
        self.workers.settle();
        let (mut last, mut since, mut tried) = (self.log.last(), Instant::now(), Instant::now());
        // Whoever looks into a partition first waits until it is known what its tables are together, unless it is already.
        let mut cold: Vec<_> = self.version().partitions.values().flatten().cloned().collect();
        loop {
            match self.work.next(QUEUED_MOST) {
                Call::Close => return,
                Call::Work => {
                    // A failure has stopped the store, and is told to whoever writes next.
                    while let Ok(true) = self.step() {}
                    tried = Instant::now();
                }
                Call::Nothing => {
                    let _ = self.write_queue();
                    if last != self.log.last() {
                        (last, since) = (self.log.last(), Instant::now());
                    }
                    // ORDERING: nothing is read that goes with it.
                    if !self.full.load(Ordering::Relaxed) {
                        if since.elapsed() >= QUIET {
                            let _ = self.flush_early();
                        }
                    } else if tried.elapsed() >= RETRY {
                        while let Ok(true) = self.step() {}
                        tried = Instant::now();
                    }
                    while !self.work.is_called()
                        && let Some(partition) = cold.pop()
                    {
                        // Damage is told to whoever looks.
                        let _ = partition.warm();
                    }
                    while !self.work.is_called() && matches!(self.tidy(), Ok(true)) {}
                }
            }
        }
    }

    /// An error in a process that was forked from the one that opened the store: whatever locks its threads held at that moment
    /// are held here for ever.
    #[inline]
    pub(crate) fn check_here(&self) -> Result<()> {
        if self.origin.is_here() { Ok(()) } else { Err(elsewhere()) }
    }

    /// Gives the operating system what is queued.
    fn write_queue(&self) -> Result<()> {
        if self.log.is_queued() { self.log.commit(self.log.last(), Durability::Buffered) } else { Ok(()) }
    }

    fn log(&self) -> &Log<D> {
        &self.log
    }

    fn builder(&self) -> &Builder {
        &self.builder
    }

    /// What is promised of a change that does not say.
    fn durability(&self) -> Durability {
        self.builder.durability.unwrap_or(Durability::Buffered)
    }

    /// The directory that it is in.
    pub(crate) fn disk(&self) -> &D {
        &self.disk
    }

    fn open_table(&self, number: u64) -> Result<Table<D>> {
        Table::open(self.disk.clone(), Name::table(number), &self.cache)
    }

    /// What the store consists of now, for a moment.
    #[inline]
    fn version(&self) -> Reading<Version<D>> {
        self.version.read()
    }

    /// Replaces what the store consists of. Whoever has the order sees to it that until this returns nothing is changed that
    /// only the new version has. The old one is better dropped without the order: files may go with it.
    fn set_version(&self, order: &mut Order<D>, version: Version<D>) -> Arc<Version<D>> {
        let version = Arc::new(version);
        self.version.replace(&version);
        self.parked.replace(&version);
        self.backlog.store(version.frozen.len(), Ordering::Relaxed);
        std::mem::replace(&mut order.version, version)
    }

    /// How many memtables wait to become tables, about.
    fn backlog(&self) -> usize {
        // ORDERING: who reads it decides only how long to wait.
        self.backlog.load(Ordering::Relaxed)
    }

    fn order(&self) -> MutexGuard<'_, Order<D>> {
        lock(&self.order)
    }

    fn workers(&self) -> &Workers {
        &self.workers
    }

    fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// No file has this number yet, nor a higher one.
    fn first_free_number(&self) -> u64 {
        self.numbers.load(Ordering::Relaxed)
    }

    /// Says that there is work to be done in the background.
    fn call_for_work(&self) {
        self.work.call();
    }

    /// Says that some was done.
    fn done(&self) {
        self.work.done();
    }

    /// Waits until some work is done in the background, but not longer than `most`; not at all if nobody does any.
    fn wait_for_work(&self, most: Duration) {
        self.work.wait(most);
    }

    /// Takes the state of this moment, and keeps what it needs until it is given back.
    fn take_reader(&self) -> (u64, Arc<Version<D>>, Arc<Catalog>) {
        let mut order = self.order();
        // Not behind what is visible: of a batch that failed and stopped the store, a part may be there.
        let sequence = self.visible();
        *order.readers.entry(sequence).or_default() += 1;
        (sequence, order.version.clone(), order.catalog.clone())
    }

    /// Gives back a state that was taken.
    fn give_reader_back(&self, sequence: u64) {
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

    /// Opens a keyspace, or makes it.
    pub(crate) fn keyspace(&self, name: &str) -> Result<Arc<Space>> {
        self.make_space(name, MAX_KEYSPACES)
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

/// What a store on disk can do.
pub(crate) fn capabilities() -> Capabilities {
    use Capability as C;
    const ALL: &[Capability] = &[
        C::Iteration,
        C::Batches,
        C::Snapshots,
        C::Keyspaces,
        C::Persistence,
        C::Sync,
        C::Checkpoint,
        C::Verify,
        C::Compact,
    ];
    Capabilities::new("PATH", ALL)
}

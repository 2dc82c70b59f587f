//! The state that the parts of an open store share, and how they reach it. The operations are in the modules
//! above.

use crate::cache;
use crate::cached;
use crate::catalog::Catalog;
use crate::current::{Current, Reading};
use crate::disk::{self, Disk, Kind, Name, Sealed};
use crate::gaps::{Changes, Gaps};
use crate::history::History;
use crate::limits::Limits;
use crate::manifest::{Manifest, ManifestState};
use crate::memtable::Unapplied;
use crate::pace::Pace;
use crate::parked::Parked;
use crate::partition::Shared;
use crate::rate::{Rate, Spend, Wait};
use crate::readers::Readers;
use crate::stripe::Stripes;
use crate::sync::add_alone;
use crate::table::Table;
use crate::tasks::Tasks;
use crate::values::{Collector, Logs};
use crate::version::Version;
use crate::wal::{End, Log};
use crate::work::Work;
use crate::workers::Workers;
use forrest_base::lock;
use forrest_engine::{
    Call, Durability, Error, ErrorKind, Latencies, Metrics, OptionChanges, Options, Result, Stats,
};
use forrest_machine::origin::Origin;
use std::any::Any;
use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A replay makes tables when immutable memtables have this many times the bytes at which a memtable is full. While the
/// store is written to, all memtables together may have one time more.
const BACKLOG_MOST: usize = 2;

/// A flush may go on for this long while the store is closed.
const CLOSING_MOST: Duration = Duration::from_secs(1);

/// A handle to an open store. Dropping the last one closes the store.
#[derive(Clone)]
pub(crate) struct Handle(Arc<Opened>);

impl Deref for Handle {
    type Target = Core;
    #[inline]
    fn deref(&self) -> &Core {
        &self.0.core
    }
}

impl Handle {
    /// A handle to a store, with its background thread if it has one.
    pub(crate) fn new(core: Arc<Core>, worker: Option<JoinHandle<()>>) -> Handle {
        Handle(Arc::new(Opened { core, worker, beside: OnceLock::new() }))
    }

    /// Keeps something that is to be dropped before the store is closed, once.
    pub(crate) fn keep(&self, beside: impl Any + Send + Sync) {
        let _ = self.0.beside.set(Box::new(beside));
    }

    /// True if both are handles to one store.
    pub(crate) fn is(&self, other: &Handle) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// What the handles share.
struct Opened {
    core: Arc<Core>,
    worker: Option<JoinHandle<()>>,
    beside: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl Drop for Opened {
    fn drop(&mut self) {
        if !self.core.origin.is_here() {
            // This is a forked process. The thread is not here, and everything that is open belongs to the
            // parent: closing it would cut the parent's log and release its lock.
            std::mem::forget((self.worker.take(), self.beside.take(), self.core.clone()));
            return;
        }
        drop(self.beside.take());
        if let Some(worker) = self.worker.take() {
            // Closing is limited by time, not by the rate.
            self.core.rate.set(None);
            let _ = self.core.closes_by.set(Instant::now() + CLOSING_MOST);
            self.core.work.close();
            // A panic was reported when it happened.
            let _ = worker.join();
            self.core.work.end();
            if self.core.log.is_begun() {
                let _ = self.core.join_logs();
            }
        }
        // Flush the queue. Errors are dropped: no caller waits for them.
        let _ = self.core.write_queue();
        if self.core.log.is_begun() {
            let _ = self.core.note_synced();
        }
        self.core.log.remove_spare();
    }
}

/// The state of a store that its parts share.
pub(crate) struct Core {
    /// The process that opened it.
    pub(crate) origin: Origin,
    /// The options with which it was opened. Those in `limits` may have changed since.
    pub(crate) builder: Options,
    pub(crate) limits: Limits,
    /// Values of at least this many bytes stay in the log.
    pub(crate) large_values: usize,
    /// The disk, the cache and the limit for memory, which the partitions use too.
    pub(crate) shared: Arc<Shared>,
    /// Greater than the number of every file that ever existed.
    pub(crate) numbers: AtomicU64,
    pub(crate) version: Current<Version>,
    /// Scans of ranges that wait to go on.
    pub(crate) parked: Parked,
    pub(crate) gaps: Gaps,
    /// Bytes of the memtables that wait to become tables.
    pub(crate) backlog_bytes: AtomicUsize,
    /// How long writers wait because of that.
    pub(crate) pace: Pace,
    /// How fast tables are written.
    pub(crate) rate: Rate,
    /// What the holder of the manifest does.
    pub(crate) tasks: Tasks,
    /// How long calls take, if that is wanted.
    pub(crate) latencies: Option<Stripes<Latencies>>,
    /// Changes since the store was opened, and the bytes of their keys and values. Changed under the order lock.
    pub(crate) changes: AtomicU64,
    pub(crate) change_bytes: AtomicU64,
    /// Whether the holder of the manifest makes tables of a memtable.
    pub(crate) is_flushing: AtomicBool,
    /// Until when a flush may take, once the store is being closed.
    pub(crate) closes_by: OnceLock<Instant>,
    /// Whether tables are made to resume a store whose log is stopped.
    pub(crate) is_resuming: AtomicBool,
    /// The time from which on tables are merged for what has expired, if such a merge has failed.
    pub(crate) expired_again_ms: AtomicU64,
    /// Up to which change readers see the store.
    pub(crate) readers: Readers,
    /// The keyspaces. Replaced by the holder of the order lock.
    pub(crate) catalog: Current<Catalog>,
    pub(crate) order: Mutex<Order>,
    pub(crate) log: Log,
    /// What is kept of logs that are not needed; `None` if nothing is.
    pub(crate) history: Option<History>,
    /// Whether the last change that was read is an ingest of which it is unknown whether it was done. Only for a store
    /// that is read beside another process.
    pub(crate) is_ingesting: AtomicBool,
    /// Its holder does the background work.
    pub(crate) manifest: Mutex<Manifest>,
    /// The manifest that was read, and where the logs ended. Only for a store that is read beside another process.
    pub(crate) read_to: Mutex<(Name, End)>,
    /// Bytes of files that are kept because other processes read them.
    pub(crate) held_bytes: AtomicU64,
    pub(crate) work: Work,
    pub(crate) workers: Workers,
    /// The rest of a batch of which a memtable has a part that nobody sees, because memory was refused. The log is
    /// stopped then.
    pub(crate) unapplied: Mutex<Vec<Unapplied>>,
    /// Numbers of the tables and logs that ingests write, which no manifest names yet.
    pub(crate) ingested: Mutex<BTreeSet<u64>>,
    /// Tables that come in place of cached ones, and are to be read into the cache.
    pub(crate) to_cache: Mutex<Vec<Weak<Table>>>,
    /// Whether the memtable is to become tables before it is full, because they give back space.
    pub(crate) is_flush_due: AtomicBool,
    /// How the space of kept logs comes back.
    pub(crate) collector: Mutex<Collector>,
    /// What the holder of the manifest keeps for the values of the memtable that becomes tables.
    pub(crate) keeping: Mutex<Arc<Logs>>,
    /// What it keeps for the values of tables that it adds.
    pub(crate) adding: Mutex<Arc<Logs>>,
    /// Whether the last change found no room in the log.
    pub(crate) is_short: AtomicBool,
    /// Whether there was no room for the tables of the oldest memtable.
    pub(crate) full: AtomicBool,
}

/// The state that changes of the store take turns for.
pub(crate) struct Order {
    /// The current version, for the holder of the order lock.
    pub(crate) version: Arc<Version>,
    /// The sequence number of the last change.
    pub(crate) sequence: u64,
    /// A buffer in which versions are encoded.
    pub(crate) scratch: Vec<u8>,
}

impl Changes for Core {
    fn gaps(&self) -> &Gaps {
        &self.gaps
    }

    fn while_quiet(&self, run: &mut dyn FnMut(u64, *const ())) {
        if self.check_writable().is_err() {
            // Changes come by `refresh`, which cuts nothing.
            return;
        }
        if let Ok(order) = self.order.try_lock() {
            run(order.sequence, Arc::as_ptr(&order.version).cast());
        }
    }
}

/// The beginning of a call on this thread.
pub(crate) struct Begun {
    time: Instant,
    /// Pages that this thread had missed by then.
    missed: u64,
}

impl Begun {
    pub(crate) fn now() -> Begun {
        Begun { time: Instant::now(), missed: cache::missed_here() }
    }
}

impl Spend for Core {
    /// A merge that keeps a memtable from becoming tables goes on at once: writers may wait for that one.
    fn spend(&self, bytes: usize) -> Result<()> {
        self.tasks.count(bytes);
        self.rate.spend(bytes, || {
            self.check_open()?;
            // A failure stops the log, which is checked below.
            let _ = self.write_queue();
            // ORDERING: no other data depends on it.
            let is_waited_for = !self.is_flushing.load(Ordering::Relaxed) && self.backlog_bytes() > 0;
            // What is under way when the store stops keeps it from being resumed.
            Ok(if is_waited_for || self.log.check().is_err() { Wait::NoMore } else { Wait::On })
        })
    }
}

impl Core {
    /// Takes the time of a call, if that is wanted.
    #[inline]
    pub(crate) fn timed<R>(&self, call: Call, work: impl FnOnce() -> R) -> R {
        let begin = self.begin();
        let result = work();
        if let Some(begin) = begin {
            self.end(call, begin);
        }
        result
    }

    /// The beginning of a call whose time is taken; `None` if that is not wanted.
    #[inline]
    pub(crate) fn begin(&self) -> Option<Begun> {
        self.latencies.is_some().then(Begun::now)
    }

    /// Counts changes, and the bytes of their keys and values. The caller holds the order lock.
    pub(crate) fn count_changes(&self, count: u64, bytes: u64) {
        add_alone(&self.changes, count);
        add_alone(&self.change_bytes, bytes);
    }

    /// Counts a call that has ended.
    #[cold]
    pub(crate) fn end(&self, call: Call, begin: Begun) {
        if let Some(latencies) = &self.latencies {
            latencies.mine().add(call, begin.time.elapsed(), cache::take_missed(begin.missed));
        }
    }

    /// The same for what no writer waits for and the store can do without, such as a backup.
    ///
    /// # Errors
    /// `Busy` if the store is being closed.
    pub(crate) fn spend_aside(&self, bytes: usize) -> Result<()> {
        self.rate.spend(bytes, || self.check_open().map(|()| Wait::On))
    }
}

impl Core {
    /// An error in a process that was forked from the one that opened the store. Locks that other threads
    /// held at the fork are held here forever.
    #[inline]
    pub(crate) fn check_here(&self) -> Result<()> {
        if self.origin.is_here() { Ok(()) } else { Err(disk::forked()) }
    }

    /// An error that says why, if the store cannot be changed.
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.check_here()?;
        if self.builder.read_only {
            return Err(disk::read_only("it was opened to be read"));
        }
        self.disk().check_writable()
    }

    /// Writes the queue to the operating system.
    pub(crate) fn write_queue(&self) -> Result<()> {
        if self.log.is_queued() { self.log.commit(self.log.last(), Durability::Buffered) } else { Ok(()) }
    }

    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    /// The options as they are now.
    pub(crate) fn options(&self) -> Options {
        self.limits.now(&self.builder)
    }

    /// The durability of a change that names none.
    pub(crate) fn durability(&self) -> Durability {
        self.builder.durability.unwrap_or(Durability::Buffered)
    }

    /// The disk of the store.
    pub(crate) fn disk(&self) -> &Sealed {
        &self.shared.disk
    }

    pub(crate) fn open_table(&self, number: u64) -> Result<Table> {
        let table = Table::open(self.shared.disk.clone(), Name::table(number), &self.shared.cache)?;
        Ok(table.with_values(&self.shared.values))
    }

    /// The current version, for a short time.
    #[inline]
    pub(crate) fn version(&self) -> Reading<Version> {
        self.version.read()
    }

    /// Replaces the current version. The caller holds the order lock. Until this returns, it must change
    /// nothing that only the new version has. The old version should be dropped without the lock, because
    /// that may close files.
    pub(crate) fn set_version(&self, order: &mut Order, version: Version) -> Arc<Version> {
        let version = Arc::new(version);
        self.version.replace(&version);
        self.shared.memory.add(version.memtables());
        self.parked.replace(&version);
        self.backlog_bytes.store(version.immutable_bytes(), Ordering::Relaxed);
        std::mem::replace(&mut order.version, version)
    }

    /// Changes options.
    pub(crate) fn set_options(&self, changes: &OptionChanges) -> Result<()> {
        self.check_here()?;
        changes.check()?;
        if let Some(mut bytes) = changes.cache_bytes {
            if changes.cache_at_most {
                bytes = bytes.min(self.shared.cache.bytes_most());
            }
            // The only one that can be refused from here on.
            self.shared.cache.set_bytes(bytes)?;
            self.shared.memory.set_cache_most(bytes);
        }
        if let Some(bytes) = changes.memory_bytes {
            self.shared.memory.set_most(bytes);
        }
        if let Some(count) = changes.workers {
            self.workers.set_count(count);
        }
        if let Some(files) = changes.open_files {
            self.disk().set_open_files(files);
        }
        self.limits.set(changes);
        self.shared.memory.limit_spare(self.limits.memtable_bytes());
        if let Some(limit) = changes.background_bytes_per_second {
            self.set_rate(limit);
        }
        self.balance();
        // Writers may wait with the old limits.
        self.done();
        Ok(())
    }

    /// Bytes of memory of the current memtables, and of those that only snapshots and iterators still have.
    pub(crate) fn memtable_bytes(&self) -> (usize, usize) {
        let current = self.version().memtables().map(|memtable| memtable.memory_bytes()).sum();
        (current, self.shared.memory.memtable_bytes().saturating_sub(current))
    }

    /// Gives the cache the memory that the rest of the store leaves, and has it grow again where memory was refused.
    pub(crate) fn balance(&self) {
        self.shared.cache.grow_again(Instant::now());
        if !self.shared.memory.is_limited() {
            return;
        }
        let (current, kept) = self.memtable_bytes();
        // One memtable becomes tables while the next fills.
        let current = current + self.shared.memory.spare().committed().total_bytes();
        let memtables = kept + current.max(self.limits.memtable_bytes().saturating_mul(2));
        self.shared.memory.balance(memtables, Instant::now(), |bytes| {
            // Addresses are there for the largest size.
            let _ = self.shared.cache.set_bytes(bytes);
        });
    }

    /// Gives back the memory that the memtable does not use, and what waits for the next one.
    pub(crate) fn give_memory_back(&self) {
        self.version().memtable.trim();
        self.shared.memory.spare().clear();
    }

    /// Limits how many bytes flushes and merges write a second.
    pub(crate) fn set_rate(&self, limit: Option<u64>) {
        self.rate.set(limit);
        self.pace.set_most(limit);
    }

    /// About how many bytes the memtables have that wait to become tables.
    pub(crate) fn backlog_bytes(&self) -> usize {
        // ORDERING: readers only decide how long to wait.
        self.backlog_bytes.load(Ordering::Relaxed)
    }

    /// With as many bytes in them, a replay makes tables.
    pub(crate) fn backlog_bytes_most(&self) -> usize {
        self.limits.memtable_bytes().saturating_mul(BACKLOG_MOST)
    }

    /// With as many bytes in all memtables, writers wait.
    pub(crate) fn changes_bytes_most(&self) -> usize {
        self.limits.memtable_bytes().saturating_mul(BACKLOG_MOST + 1)
    }

    pub(crate) fn order(&self) -> MutexGuard<'_, Order> {
        lock(&self.order)
    }

    /// The keyspaces. They stay as they are while the order lock is held.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.catalog.read().clone()
    }

    pub(crate) fn workers(&self) -> &Workers {
        &self.workers
    }

    pub(crate) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// No file has this number yet, or a greater one.
    pub(crate) fn first_free_number(&self) -> u64 {
        self.numbers.load(Ordering::Relaxed)
    }

    /// Whether a table is lost. Files that nothing names stay then: they may have what it had.
    pub(crate) fn has_lost(&self) -> bool {
        self.version().partitions.values().flatten().any(|one| !one.lost().is_empty())
    }

    /// Whether the last flush found no space, or hardly any is left.
    pub(crate) fn is_full(&self) -> bool {
        // ORDERING: no other data depends on it.
        self.full.load(Ordering::Relaxed)
    }

    /// Signals that there is background work.
    pub(crate) fn call_for_work(&self) {
        self.work.call();
    }

    /// An error if the store is being closed: work that only makes later reads faster is given up then. A flush has
    /// [`CLOSING_MOST`], because the next process to open the store would have to replay the logs.
    pub(crate) fn check_open(&self) -> Result<()> {
        // ORDERING: no other data depends on it.
        let may_flush = || {
            self.is_flushing.load(Ordering::Relaxed)
                && self.closes_by.get().is_some_and(|by| Instant::now() < *by)
        };
        if !self.work.is_closing() || may_flush() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Busy, "the store is being closed"))
    }

    /// Signals that some background work is done.
    pub(crate) fn done(&self) {
        self.work.done();
    }

    /// Waits until some background work is done, but at most `most`; does not wait if no thread does any.
    pub(crate) fn wait_for_work(&self, most: Duration) {
        self.work.wait(most);
    }

    /// Registers a reader of the current state. What it reads is kept until `readers.give_back`. It may be read
    /// after `readers.wait`.
    /// Also returns whether the last change is an ingest whose tables may be missing.
    pub(crate) fn take_reader(&self) -> (u64, Arc<Version>, Arc<Catalog>, bool) {
        type State = (Arc<Version>, Arc<Catalog>, bool);
        // ORDERING: set by `refresh` only, under the order lock.
        let is_ingesting = || self.is_ingesting.load(Ordering::Relaxed);
        let current = || -> State { (self.version().clone(), self.catalog(), is_ingesting()) };
        let is_current = |(version, catalog, _): &State| {
            Arc::ptr_eq(version, &self.version()) && Arc::ptr_eq(catalog, &self.catalog.read())
        };
        // What another process has changed is taken over as a whole, under the order lock: see `refresh`.
        let is_alone = self.check_writable().is_ok();
        let taken = if is_alone { self.readers.take(current, is_current) } else { None };
        let (sequence, (version, catalog, is_ingesting)) = taken.unwrap_or_else(|| {
            let _order = self.order();
            self.readers.take(current, is_current).expect("nothing changes while the order lock is held")
        });
        (sequence, version, catalog, is_ingesting)
    }

    /// Returns when all changes made before are durable.
    pub(crate) fn sync(&self) -> Result<()> {
        self.check_here()?;
        if self.check_writable().is_err() {
            // What others have changed is theirs to sync.
            return Ok(());
        }
        self.log.check()?;
        let last = self.order().sequence;
        self.log.commit(last, Durability::Sync)?;
        self.changed();
        Ok(())
    }

    /// Signals that changes were made, or have become more durable.
    #[inline]
    pub(crate) fn changed(&self) {
        self.work.stir();
        if let Some(history) = &self.history {
            history.changed();
        }
    }

    /// Of these files, the logs before the floor that are not kept either.
    pub(crate) fn old_logs(&self, state: &ManifestState, names: &[Name]) -> Vec<Name> {
        let floor = state.floor;
        let mut logs: BTreeSet<u64> =
            names.iter().filter(|name| name.kind == Kind::Log).map(|name| name.number).collect();
        logs.retain(|&number| number < floor);
        if let Some(history) = &self.history {
            match history.kept(self.disk(), floor, &logs, self.is_full()) {
                Ok(kept) => logs.retain(|number| !kept.contains(number)),
                Err(_) => logs.clear(),
            }
        }
        // After the history, which is a chain without a gap. What an ingest writes is its own.
        let ingested = lock(&self.ingested);
        logs.retain(|number| !state.logs.contains_key(number) && !ingested.contains(number));
        logs.into_iter().map(Name::log).collect()
    }

    /// The names of all keyspaces, sorted.
    pub(crate) fn keyspaces(&self) -> Result<Vec<String>> {
        self.check_here()?;
        Ok(self.catalog().names())
    }

    /// What the store has done since it was opened.
    pub(crate) fn metrics(&self) -> Result<Metrics> {
        self.check_here()?;
        let mut metrics = Metrics::default();
        metrics.changes = self.changes.load(Ordering::Relaxed);
        metrics.change_bytes = self.change_bytes.load(Ordering::Relaxed);
        (metrics.log_writes, metrics.log_syncs) = self.log.device().done();
        let (jobs, other_bytes) = self.tasks.done();
        [metrics.flushes, metrics.merges, metrics.ingests, metrics.verifications] = jobs;
        metrics.other_table_bytes = other_bytes;
        (metrics.paced, metrics.stalls) = (self.tasks.paced.sum(), self.tasks.stalls.sum());
        let cache = self.shared.cache.stats();
        (metrics.cache_hits, metrics.cache_misses) = (cache.hits, cache.misses);
        (metrics.remix_hits, metrics.remix_misses) = (cache.remix_hits, cache.remix_misses);
        (metrics.value_reads, metrics.value_passes) = self.shared.values.done();
        metrics.events_lost = self.tasks.lost();
        if let Some(latencies) = &self.latencies {
            metrics.latencies = Latencies::sum(latencies.iter());
        }
        Ok(metrics)
    }

    /// What the store holds and costs.
    ///
    /// # Errors
    /// `OutOfSpace` if a partition is looked into for the first time, and there is no descriptor for that. Of a damaged
    /// one, or one that cannot be read, the keys are estimated.
    pub(crate) fn stats(&self) -> Result<Stats> {
        self.check_here()?;
        let mut stats = Stats::default();
        stats.snapshots = self.readers.len() as u64;
        stats.keyspaces = self.catalog().spaces.len() as u64;
        let version = self.version();
        for memtable in version.memtables() {
            let index = memtable.stats();
            stats.keys += index.keys;
            stats.node_bytes += index.node_bytes;
            stats.value_bytes_outside += index.blob_bytes;
            stats.reserved_bytes += index.arena_bytes;
            stats.explicit_huge_bytes += index.explicit_huge_bytes;
            stats.transparent_huge_bytes += index.transparent_huge_bytes;
            stats.expiring += u64::from(memtable.expires_ms() != u64::MAX);
        }
        let spare = self.shared.memory.spare().committed();
        stats.reserved_bytes += spare.total_bytes() as u64;
        stats.explicit_huge_bytes += (spare.huge_1g_bytes + spare.huge_2m_bytes) as u64;
        stats.transparent_huge_bytes += spare.transparent_bytes as u64;
        for partition in version.partitions.values().flatten() {
            stats.keys += match partition.keys() {
                Err(error) if disk::is_unreadable(&error) => partition.keys_about(),
                keys => keys?,
            };
            stats.table_bytes += partition.file_bytes();
            stats.table_plain_bytes += partition.plain_bytes();
            // Statistics read no page of a table for this.
            let live = || (partition.live_bytes(), partition.live_large_bytes());
            let (live_bytes, live_large_bytes) = cached::without_waiting(live);
            stats.table_live_bytes += live_bytes;
            stats.value_log_live_bytes += live_large_bytes;
            stats.tables += partition.tables().len() as u64;
            stats.index_bytes += partition.memory_bytes() as u64;
            let expiries = partition.tables().iter().filter_map(|table| table.expiries());
            stats.expiring += expiries.map(|expiries| u64::from(expiries.values)).sum::<u64>();
        }
        stats.cache_bytes = self.shared.cache.stats().bytes;
        (stats.cache_explicit_huge_bytes, stats.cache_transparent_huge_bytes) =
            self.shared.cache.huge_bytes();
        let indexes = self.shared.cache.indexes().bytes() as u64;
        stats.kept_bytes = self.memtable_bytes().1 as u64 + indexes.saturating_sub(stats.index_bytes);
        stats.value_log_bytes = version.logs.values().map(|log| log.bytes).sum();
        // Entries that newer ones replaced may name logs that are gone.
        stats.value_log_live_bytes = stats.value_log_live_bytes.min(stats.value_log_bytes);
        stats.held_bytes = self.held_bytes.load(Ordering::Relaxed);
        stats.open_files = self.disk().open_files();
        Ok(stats)
    }
}

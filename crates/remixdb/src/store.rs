//! [`Store`]: opening and closing, the background loop, and the contract of `forrest-engine`.

use crate::backup::{Backup, BackupOptions, Progress};
use crate::catalog::Space;
use crate::compact::{WORTH, WORTH_REST};
use crate::compression;
use crate::core::{Core, Handle};
use crate::disk::{Real, Sealed, Unfinished, check_apart};
use crate::ingest::Ingest;
use crate::publish::Publisher;
use crate::recover;
use crate::view::{Snapshot, View};
use crate::work;
use crate::workers::{self, Workers};
use forrest_engine::merge::SharedOperator;
use forrest_engine::{
    Call, Capabilities, Capability, Compression, Durability, Error, ErrorKind, Event, Metrics, Op,
    OptionChanges, Options, Outcome, Result, Stats, Written,
};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time after which changes that no caller waits for reach the operating system.
const QUEUED_MOST: Duration = Duration::from_millis(100);
/// A memtable becomes a table, if it is worth one, when nothing was written for this long.
const QUIET: Duration = Duration::from_millis(250);
/// A smaller one becomes a table after this time.
const REST: Duration = Duration::from_secs(2);
/// A memtable that is not full after this time keeps no more memory than it needs: the next one is not needed soon.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time after which a merge that failed is tried again.
const MERGE_AGAIN: Duration = Duration::from_secs(30);
/// Time after which tables for which there was no room are tried again.
const RETRY: Duration = Duration::from_secs(1);
/// The background thread of a store at rest wakes after this time, or when there is a change.
const RESTING: Duration = Duration::from_secs(1);
/// Maximum number of steps that the background thread takes before it looks after other work.
const STEPS_MOST: usize = 16;

/// An open store. Cloning makes another handle. Dropping the last one closes the store.
#[derive(Clone)]
pub struct Store(Handle);

impl Store {
    /// Opens the store on a disk, or creates one. A thread does the background work.
    ///
    /// # Errors
    /// `Corrupt` for a damaged store; `Io`; `OutOfSpace`; `Limit`.
    pub fn open(disk: Sealed, options: &Options) -> Result<Store> {
        Handle::open(disk, options).map(Store)
    }

    /// The same without a thread: [`step`](Store::step) does the background work when it is called.
    ///
    /// # Errors
    /// As [`open`](Store::open).
    #[cfg(any(test, feature = "simulated"))]
    pub fn open_unattended(disk: Sealed, options: &Options) -> Result<Store> {
        Handle::open_unattended(disk, options).map(Store)
    }

    /// Does a bounded piece of the background work, if there is any. True if there may be more.
    ///
    /// # Errors
    /// `Io`, `Corrupt`. The store takes no more changes then.
    #[cfg(any(test, feature = "simulated"))]
    pub fn step(&self) -> Result<bool> {
        self.0.step()
    }

    /// Opens the store of a directory. What is wrong with the options is found before anything is created.
    ///
    /// # Errors
    /// As [`Real::open`], [`Sealed::open`] and [`Store::open`].
    pub fn at(path: &Path, options: &Options) -> Result<Store> {
        workers::check(options)?;
        options.compression.filter(|_| !options.read_only).map_or(Ok(()), compression::check)?;
        Store::open(Sealed::open(Real::open(path, options)?, options)?, options)
    }

    /// Creates a store in a directory that is there when it is finished.
    ///
    /// # Errors
    /// As [`at`](Store::at).
    pub fn new_in(directory: &Unfinished, options: &Options) -> Result<Store> {
        Store::open(Sealed::open(directory.disk()?, options)?, options)
    }

    /// Writes a copy of the store, as it is at one moment of this call, to a new directory at `path`.
    ///
    /// # Errors
    /// `InvalidArgument` if something is at `path`; `Busy`; `OutOfSpace`; `Io`. A checkpoint that fails
    /// leaves nothing.
    pub fn checkpoint(&self, path: &Path) -> Result<()> {
        let disk = self.0.disk();
        let unfinished = Unfinished::begin(path, Some(disk.real()?))?;
        self.0.checkpoint(disk.beside(unfinished.disk()?))?;
        unfinished.finish()
    }

    /// The key that opens the store now; `None` if it is not encrypted.
    pub fn encryption_key(&self) -> Option<forrest_engine::EncryptionKey> {
        self.0.disk().user_key()
    }

    /// Adds a backup of the store, as it is at one moment of this call, to the directory of backups at `path`, which is
    /// made if it is missing. `see` is called now and then, and may end it.
    ///
    /// # Errors
    /// `InvalidArgument` if the directory has something else, or backups of another store; `Busy` if somebody else
    /// changes it, or if `see` broke; `Corrupt` for a damaged table of the store; `OutOfSpace`; `Io`. The backups
    /// that were there stay.
    pub fn backup(
        &self,
        path: &Path,
        options: &BackupOptions,
        see: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Backup> {
        self.0.check_here()?;
        let disk = self.0.disk();
        check_apart(path, disk.real()?)?;
        let into = disk.for_backups(Real::lock_backups(path, true)?, options.encryption_key.as_ref())?;
        self.0.backup(into, disk.real()?.birth()?, options, see)
    }
}

#[cfg(feature = "encryption")]
impl Store {
    /// Replaces the key that opens the store. No data is encrypted again: only the file with the data keys is. Durable
    /// when it returns; from then on the old key opens neither the store nor later copies of it, but copies that were
    /// made before.
    ///
    /// # Errors
    /// `InvalidArgument` if the store is not encrypted; `Unsupported` if it can only be read; `Io`, `OutOfSpace`. After
    /// an error either key may be the one that opens it.
    pub fn rotate_key(&self, key: &forrest_engine::EncryptionKey) -> Result<()> {
        self.0.check_writable()?;
        self.0.disk().rotate_user(key, || self.0.next_number())
    }

    /// Adds a random data key, with which all files are encrypted that are made from now on. Flushes and compaction
    /// write the others again in time. Data keys of which no file is left are dropped. Durable when it returns.
    ///
    /// # Errors
    /// As [`rotate_key`](Store::rotate_key); `Limit` if 4,096 data keys are in use.
    pub fn rotate_data_key(&self) -> Result<()> {
        self.0.check_writable()?;
        self.0.disk().rotate_data(|| self.0.next_number())
    }
}

/// A keyspace of an open store.
#[derive(Clone)]
pub struct Keyspace {
    store: Handle,
    space: Arc<Space>,
}

impl forrest_engine::Store for Store {
    type Keyspace = Keyspace;
    type View = View;
    type Snapshot = Snapshot;

    fn keyspace(&self, name: &str) -> Result<Keyspace> {
        Ok(Keyspace { store: self.0.clone(), space: self.0.keyspace(name)? })
    }

    fn keyspaces(&self) -> Result<Vec<String>> {
        self.0.keyspaces()
    }

    fn drop_keyspace(&self, name: &str) -> Result<bool> {
        self.0.drop_space(name)
    }

    fn write<'b>(
        &self,
        ops: impl Iterator<Item = (&'b Keyspace, Op<&'b [u8]>)>,
        durability: Option<Durability>,
    ) -> Result<Written> {
        let ops: Vec<_> = ops.map(|(keyspace, op)| (&keyspace.space, op)).collect();
        let begin = self.0.begin();
        let written = self.0.write(&ops, durability);
        if let Some(begin) = begin {
            self.0.end(Call::Write, begin);
        }
        written
    }

    fn snapshot(&self) -> Result<Snapshot> {
        self.0.snapshot()
    }

    fn sync(&self) -> Result<()> {
        self.0.timed(Call::Sync, || self.0.sync())
    }

    fn stats(&self) -> Result<Stats> {
        self.0.stats()
    }

    fn metrics(&self) -> Result<Metrics> {
        self.0.metrics()
    }

    fn capabilities(&self) -> Capabilities {
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
            C::ReadOnly,
            C::Ingest,
            C::Compression,
            C::Merge,
            C::Ttl,
            C::Metrics,
            C::Approximate,
            C::Changes,
            C::Backup,
        ];
        Capabilities::new("PATH", ALL)
    }

    fn verify(&self) -> Result<()> {
        self.0.reported(self.0.verify())
    }

    fn refresh(&self) -> Result<()> {
        recover::refresh(&self.0)
    }

    fn set_options(&self, changes: &OptionChanges) -> Result<()> {
        self.0.set_options(changes)
    }

    fn resume(&self) -> Result<()> {
        self.0.resume()
    }

    fn settle(&self) -> Result<()> {
        self.0.settle()
    }

    fn changes(&self, since: u64, durability: Durability) -> Result<Box<dyn forrest_engine::Changes>> {
        Ok(Box::new(self.0.changes(since, durability)?))
    }

    fn flush(&self) -> Result<()> {
        self.0.reported(self.0.flush_all())
    }

    fn compact(&self) -> Result<()> {
        self.0.reported(self.0.compact())
    }
}

impl forrest_engine::Keyspace for Keyspace {
    type View = View;

    fn name(&self) -> &str {
        &self.space.name
    }

    fn view(&self) -> View {
        self.store.view(&self.space)
    }

    fn same_store(&self, other: &Self) -> bool {
        self.store.is(&other.store)
    }

    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.space, &other.space)
    }

    #[inline]
    fn apply(&self, op: Op<&[u8]>) -> Result<Outcome> {
        let begin = self.store.begin();
        let applied = self.store.apply(&self.space, op);
        if let Some(begin) = begin {
            self.store.end(Call::Write, begin);
        }
        applied
    }

    fn compact_range(&self, start: &[u8], end: Option<&[u8]>) -> Result<()> {
        self.store.reported(self.store.compact_range(&self.space, start, end))
    }

    fn ttl(&self) -> Option<Duration> {
        self.space.ttl_ms().map(Duration::from_millis)
    }

    fn set_ttl(&self, ttl: Option<Duration>) -> Result<()> {
        self.store.choose_ttl(&self.space, ttl)
    }

    fn compression(&self) -> Compression {
        self.store.catalog().compression(self.space.id)
    }

    fn set_compression(&self, method: Compression) -> Result<()> {
        self.store.choose_compression(&self.space, method)
    }

    fn merge_operator(&self) -> Option<SharedOperator> {
        self.space.operator().cloned()
    }

    fn set_merge_operator(&self, name: &str) -> Result<()> {
        self.store.choose_operator(&self.space, name)
    }

    fn ingest(&self) -> Result<Box<dyn forrest_engine::Ingest>> {
        Ok(Box::new(Ingest::begin(&self.store, &self.space)?))
    }
}

impl Handle {
    pub(crate) fn open(disk: Sealed, options: &Options) -> Result<Handle> {
        let core = Arc::new(recover::open(disk, options, Workers::new)?);
        core.work.start();
        core.set_rate(options.background_bytes_per_second);
        let own = core.clone();
        let worker = thread::Builder::new().name("remixdb".into()).spawn(move || own.background()).map_err(
            |error| Error::new(ErrorKind::OutOfSpace, format!("starting the background thread: {error}")),
        )?;
        // If what follows fails, dropping the handle closes the store.
        let handle = Handle::new(core.clone(), Some(worker));
        handle.choose_at_opening()?;
        if let Some(path) = &options.metrics_file {
            handle.keep(Publisher::start(&core, path)?);
        }
        Ok(handle)
    }

    /// Without a thread: [`Core::step`] does the work, in as many pieces as otherwise, one after the other.
    #[cfg(any(test, feature = "simulated"))]
    pub(crate) fn open_unattended(disk: Sealed, options: &Options) -> Result<Handle> {
        let core = recover::open(disk, options, |options| Ok(Workers::alone(options)))?;
        core.set_rate(options.background_bytes_per_second);
        let handle = Handle::new(Arc::new(core), None);
        handle.choose_at_opening()?;
        Ok(handle)
    }
}

impl Core {
    /// Tells the listener what has happened, and passes a result on. The caller holds no locks.
    pub(crate) fn reported<R>(&self, result: Result<R>) -> Result<R> {
        self.tasks.tell();
        result
    }

    /// Notes whether the store is stopped or full, if that has changed.
    fn note_state(&self, before: &mut (bool, bool)) {
        let check = self.log().check();
        // ORDERING: no other data depends on it.
        let now = (check.is_err(), self.is_full() || self.is_short.load(Ordering::Relaxed));
        if now.0 != before.0 {
            self.tasks.note(|| match check {
                Err(error) => Event::Stopped { error: error.to_string() },
                Ok(()) => Event::Resumed,
            });
        }
        if now.1 != before.1 {
            self.tasks.note(|| if now.1 { Event::Full } else { Event::HasRoom });
        }
        *before = now;
    }

    /// Makes tables of the waiting memtables, and gives back the space of logs, in at most [`STEPS_MOST`] steps and not
    /// after the store is closed. True if there may be more to do.
    pub(crate) fn work_off(&self) -> bool {
        (0..STEPS_MOST).all(|_| !self.work.is_closing() && matches!(self.step(), Ok(true)))
    }

    /// Does the background work until the store is closed.
    fn background(&self) {
        self.workers.settle();
        let (mut is_joined, mut waited) = (false, Instant::now());
        let (mut last, mut since, mut tried) = (self.log.last(), Instant::now(), Instant::now());
        // When dead entries may be merged again after a failure; and the number of the next file when there were none.
        let (mut merge_after, mut without_dead) = (Instant::now(), 0);
        // The first scan of a partition waits until the order over its tables is loaded. This thread loads it
        // earlier if it can.
        self.balance();
        let mut leave_after = Instant::now();
        let mut cold: Vec<_> = self.version().partitions.values().flatten().cloned().collect();
        let mut state = (false, false);
        let mut filling = (self.version().memtable.log, Instant::now());
        let mut is_resting = false;
        loop {
            self.note_state(&mut state);
            self.tasks.tell();
            let call = match is_resting {
                true => self.work.rest(RESTING, || last == self.log.last()),
                false => self.work.next(QUEUED_MOST),
            };
            is_resting = false;
            match call {
                work::Call::Close => {
                    if self.log().is_begun() {
                        // What is not flushed is replayed.
                        let _ = self.flush_early(WORTH);
                    }
                    return;
                }
                work::Call::Work => {
                    // A failure has stopped the store; the next write reports it.
                    let _ = self.log().sync_begin();
                    if !is_joined && self.log().is_begun() {
                        is_joined = true;
                        let _ = self.join_logs();
                    }
                    let has_more = self.work_off();
                    tried = Instant::now();
                    if has_more {
                        // Fast writers may keep this up. The rest comes after what does not wait for them.
                        self.work.call();
                        let _ = self.write_queue();
                        if waited.elapsed() >= RETRY {
                            waited = Instant::now();
                            self.balance();
                            let _ = self.compact_expired();
                            if self.version().immutable.is_empty() {
                                let _ = self.compact_worn();
                            }
                        }
                    }
                }
                work::Call::Nothing => {
                    let _ = self.write_queue();
                    let _ = self.note_synced();
                    // A failure has stopped the store.
                    let _ = self.prepare_log();
                    self.shared.cache.release();
                    let newest = self.version().memtable.log;
                    if filling.0 != newest {
                        filling = (newest, Instant::now());
                    }
                    let is_slow = filling.1.elapsed() >= PATIENCE;
                    if is_slow {
                        self.give_memory_back();
                    }
                    if last != self.log.last() {
                        (last, since) = (self.log.last(), Instant::now());
                    }
                    let is_full = self.is_full();
                    is_resting = is_slow && since.elapsed() >= REST && !is_full;
                    if !is_full || tried.elapsed() >= RETRY {
                        if since.elapsed() >= QUIET && self.log().is_begun() {
                            let worth = if since.elapsed() >= REST { WORTH_REST } else { WORTH };
                            let _ = self.flush_early(worth);
                        }
                        if is_full {
                            if self.work_off() {
                                self.work.call();
                            }
                            tried = Instant::now();
                        }
                    }
                    while !self.work.is_called()
                        && let Some(partition) = cold.pop()
                    {
                        // The next read reports damage.
                        let _ = partition.warm(&|| self.look());
                        let _ = self.leave_order();
                    }
                    if waited.elapsed() >= RETRY {
                        waited = Instant::now();
                        self.balance();
                        while !self.work.is_called() && matches!(self.compact_expired(), Ok(true)) {}
                        while !self.work.is_called() && Instant::now() >= leave_after {
                            match self.leave_order() {
                                Ok(true) => {}
                                Ok(false) => break,
                                // Most likely there was no room.
                                Err(_) => leave_after = Instant::now() + MERGE_AGAIN,
                            }
                        }
                        if self.log().is_begun() {
                            let _ = self.remove_waiting();
                        }
                    }
                    while !self.work.is_called() && self.fill_cache() {}
                    while !self.work.is_called() && matches!(self.compact_worn(), Ok(true)) {}
                    while since.elapsed() >= QUIET
                        && self.log().is_begun()
                        && Instant::now() >= merge_after
                        && self.first_free_number() != without_dead
                        && !self.work.is_called()
                    {
                        match self.compact_dead().and_then(|some| Ok(some || self.store_remix()?)) {
                            Ok(true) => {}
                            Ok(false) if cold.is_empty() => without_dead = self.first_free_number(),
                            Ok(false) => break,
                            // Most likely there was no room.
                            Err(_) => merge_after = Instant::now() + MERGE_AGAIN,
                        }
                    }
                }
            }
        }
    }
}

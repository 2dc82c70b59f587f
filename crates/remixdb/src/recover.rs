//! Recovery: the files in a directory become an open store. It writes nothing into the directory of a store that is
//! there.
//!
//! 1. The newest complete manifest states which tables there are, which changes they cover, and from which log on
//!    there are others.
//! 2. These logs are read in order. Each states which log was before it, and where that ended. If data is
//!    missing at the end of the last one, it was never acknowledged as durable; anywhere else it is damage.
//!    If the changes take more memory than may wait, the oldest become tables meanwhile.
//!
//! What was read may have been in the memory of the operating system only, and changes that are acknowledged later must
//! not outlive it. So before the first change, the logs and their names are synced ([`Log::settle`]); then a new log is
//! begun, with a number above all that are in the directory. The first new table needs a new manifest. Files that
//! nothing names are removed with the first change.
//!
//! Nothing is removed if something is damaged, or if a file that the store needs has a format version that this build does
//! not read. A directory without a manifest is a new store only if no file in it was ever used.

use crate::cache::Cache;
use crate::catalog::Catalog;
use crate::core::{Core, Order};
use crate::current::Current;
use crate::disk::{self, Disk, Kind, Name};
use crate::manifest::{self, Manifest, ManifestState};
use crate::memtable::{self, Memtable, Wanted};
use crate::parked::Parked;
use crate::partition::Partition;
use crate::version::Version;
use crate::wal::{self, Change, End, Log};
use crate::work::Work;
use crate::workers::Workers;
use forrest_engine::{DEFAULT_KEYSPACE, Options};
use forrest_engine::{Error, ErrorKind, Result};
use forrest_machine::origin::Origin;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// While logs are read, immutable memtables become tables once they have more than this many times the bytes at which a
/// memtable is full. It is what writers let wait.
const WAITING_MOST: usize = 2;

/// A log that is read.
struct Read<D: Disk> {
    number: u64,
    file: Arc<D::File>,
    head: wal::Head,
}

/// Opens the store in the directory, or creates a new one if the directory is empty. No thread does background work yet.
pub(crate) fn open<D: Disk>(disk: D, builder: &Options, workers: Workers) -> Result<Core<D>> {
    let disk = Arc::new(disk);
    let cache = Arc::new(Cache::new(builder.cache_bytes, builder.pages, builder.numa));
    let names = disk::list(&*disk)?;
    // DURABILITY: above the numbers of all files, used or not: any of them may be an incomplete file.
    let next_number = names.iter().map(|name| name.number).max().unwrap_or(0) + 1;
    let Some((name, state)) = newest_manifest(&*disk, &names)? else {
        unused(&*disk, &names)?;
        return create(disk, builder, workers, cache, next_number);
    };
    let catalog = catalog_of(&state, name)?;
    let logs = names.iter().filter(|name| name.kind == Kind::Log && name.number >= state.floor);
    let logs: Vec<u64> = logs.map(|name| name.number).collect();
    let chain = chain(&*disk, &logs, state.floor)?;
    let first = chain.first().expect("it has the log of the floor");
    let log = Log::reading(&disk, first.number, first.file.clone(), length(&*disk, first)?);
    let version = Version {
        origin: Origin::here(),
        memtable: Arc::new(Memtable::new(builder, state.floor, 0)?),
        immutable: Vec::new(),
        partitions: open_partitions(&disk, &state, builder, &cache, &names)?,
    };
    let parts = Parts { catalog: catalog.clone(), version, log, manifest: Manifest::of(&disk, state) };
    let core = core(disk, builder, workers, cache, next_number, parts);
    let last_log = replay(&core, catalog, &chain)?;
    let leftovers = leftovers(core.manifest.lock().expect("nobody else has it").state(), last_log, &names);
    core.order().leftovers = leftovers;
    // It is there, unless the store was created by an early release that was killed meanwhile.
    if core.order().catalog.get(DEFAULT_KEYSPACE).is_none() {
        core.keyspace(DEFAULT_KEYSPACE)?;
    }
    Ok(core)
}

/// Creates a store.
fn create<D: Disk>(
    disk: Arc<D>,
    builder: &Options,
    workers: Workers,
    cache: Arc<Cache>,
    first: u64,
) -> Result<Core<D>> {
    let mut catalog = Catalog::default();
    assert!(catalog.add(DEFAULT_KEYSPACE, 0), "it is the only one");
    let head = wal::Head { before: End::default(), synced: 0, first: 1, is_first: true };
    let log = Log::create(&disk, first, head)?;
    let state = ManifestState {
        keyspaces: BTreeMap::from([(0, DEFAULT_KEYSPACE.to_string())]),
        next: catalog.next,
        floor: first,
        ..ManifestState::default()
    };
    let manifest = Manifest::create(&disk, first + 1, state)?;
    let version = Version {
        origin: Origin::here(),
        memtable: Arc::new(Memtable::new(builder, first, 0)?),
        immutable: Vec::new(),
        partitions: BTreeMap::new(),
    };
    Ok(core(disk, builder, workers, cache, first + 2, Parts { catalog, version, log, manifest }))
}

/// The parts of a store that are found or made when it is opened.
struct Parts<D: Disk> {
    catalog: Catalog,
    version: Version<D>,
    log: Log<D>,
    manifest: Manifest<D>,
}

fn core<D: Disk>(
    disk: Arc<D>,
    builder: &Options,
    workers: Workers,
    cache: Arc<Cache>,
    next_number: u64,
    parts: Parts<D>,
) -> Core<D> {
    let Parts { catalog, version, log, manifest } = parts;
    let version = Arc::new(version);
    let (current, parked) = (Current::new(&version), Parked::new(&version));
    let order = Order {
        version,
        catalog: Arc::new(catalog),
        sequence: 0,
        readers: BTreeMap::new(),
        scratch: Vec::new(),
        leftovers: Vec::new(),
    };
    Core {
        origin: Origin::here(),
        disk,
        builder: builder.clone(),
        cache,
        numbers: AtomicU64::new(next_number),
        version: current,
        parked,
        backlog: AtomicUsize::new(0),
        backlog_bytes: AtomicUsize::new(0),
        visible: AtomicU64::new(0),
        order: Mutex::new(order),
        log,
        manifest: Mutex::new(manifest),
        work: Work::default(),
        workers,
        full: AtomicBool::new(false),
    }
}

fn length<D: Disk>(disk: &D, log: &Read<D>) -> Result<u64> {
    disk::len(disk, &log.file, Name::log(log.number))
}

/// Reads a chain of logs into memtables; returns the number of the last one that counts.
fn replay<D: Disk>(core: &Core<D>, catalog: Catalog, chain: &[Read<D>]) -> Result<u64> {
    let (covered, whole) = {
        let manifest = core.manifest.lock().expect("nobody else has it");
        (manifest.state().covered, manifest.state().whole)
    };
    let memtable = core.order().version.memtable.clone();
    let mut replay = Replay {
        core,
        memtable,
        catalog,
        covered,
        whole,
        sequence: 0,
        end: End::default(),
        scratch: Vec::new(),
    };
    replay.logs(chain)?;
    if replay.sequence < covered {
        let what =
            format!("the changes up to {covered} were synced, and the log ends after {}", replay.sequence);
        return Err(disk::damaged(Name::log(replay.end.number), replay.end.offset, what));
    }
    let (number, end) = whole;
    if replay.end.number < number {
        let what = format!("the log ends, and {} was synced up to offset {end}", Name::log(number));
        return Err(disk::damaged(Name::log(replay.end.number), replay.end.offset, what));
    }
    let mut order = core.order();
    order.sequence = replay.sequence;
    order.catalog = Arc::new(replay.catalog);
    core.visible.store(replay.sequence, Ordering::Release);
    Ok(replay.end.number)
}

/// The content of the logs so far.
struct Replay<'c, D: Disk> {
    core: &'c Core<D>,
    /// The memtable that takes changes.
    memtable: Arc<Memtable>,
    catalog: Catalog,
    /// The changes up to this sequence number are in tables.
    covered: u64,
    /// A log, and the length up to which it was synced.
    whole: (u64, u64),
    /// The sequence number of the last change.
    sequence: u64,
    /// The last log that was used.
    end: End,
    scratch: Vec<u8>,
}

impl<D: Disk> Replay<'_, D> {
    fn change(&mut self, name: Name, sequence: u64, change: Change<'_>) -> Result<()> {
        if sequence > self.covered {
            let senseless = |what: &str| disk::damaged(name, 0, format!("change {sequence} {what}"));
            match change {
                Change::Put { space, key, value } => self.set(name, space, key, sequence, Some(value))?,
                Change::Delete { space, key } => self.set(name, space, key, sequence, None)?,
                Change::Create { space, name: called } => {
                    if !self.catalog.add(called, space) {
                        return Err(senseless("makes a keyspace that exists"));
                    }
                }
                Change::Drop { space } => {
                    if !self.catalog.remove(space) {
                        return Err(senseless("drops a keyspace that does not exist"));
                    }
                }
            }
        }
        self.sequence = sequence;
        Ok(())
    }

    fn set(&mut self, name: Name, space: u32, key: &[u8], sequence: u64, value: Option<&[u8]>) -> Result<()> {
        if !self.catalog.has(space) {
            return Err(disk::damaged(
                name,
                0,
                format!("change {sequence} is in a keyspace that does not exist"),
            ));
        }
        if key.len() > forrest_engine::MAX_KEY_BYTES {
            return Err(disk::damaged(
                name,
                0,
                format!("change {sequence} has a key of {} bytes", key.len()),
            ));
        }
        let cost = memtable::cost(key.len(), value.map_or(0, <[u8]>::len));
        if self.memtable.bytes() >= self.core.builder().memtable_bytes || !self.memtable.has_room(cost) {
            self.freeze(name.number, cost)?;
        }
        let wanted = Wanted { visible: sequence, snapshots: &BTreeMap::new() };
        self.memtable.set(space, key, sequence, value, &wanted, &mut self.scratch)
    }

    /// Goes on with an empty memtable, whose first change is in a log and takes `cost` bytes. If too many wait, the
    /// oldest become tables.
    fn freeze(&mut self, log: u64, cost: usize) -> Result<()> {
        let core = self.core;
        let memtable = Memtable::new(core.builder(), log, cost)?;
        self.memtable.freeze(Arc::new(self.catalog.clone()), self.sequence);
        {
            let mut order = core.order();
            let version = order.version.with_memtable(memtable);
            let _ = core.set_version(&mut order, version);
            self.memtable = order.version.memtable.clone();
        }
        let most = core.builder().memtable_bytes.saturating_mul(WAITING_MOST);
        while core.backlog_bytes() > most {
            match core.step() {
                Ok(true) => {}
                // The store cannot be changed.
                Ok(false) => break,
                // There is no space for a table. What was read stays in memory.
                Err(error) if core.is_harmless(&error) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads a chain of logs.
    fn logs(&mut self, chain: &[Read<D>]) -> Result<()> {
        for (at, log) in chain.iter().enumerate() {
            let head = log.head;
            if at == 0 {
                self.sequence = head.first - 1;
            } else if head.before.offset > self.end.offset {
                // The end of the previous log is missing. If it had been synced, that is damage. If not,
                // nothing after it was synced.
                self.tail_is_torn(head.synced, &chain[at..])?;
                return Ok(());
            } else if (head.before, head.first) != (self.end, self.sequence + 1) {
                let (said, found) = (head.before.offset, self.end.offset);
                let what = format!(
                    "it continues {} from offset {said}, but that log ends at {found}",
                    Name::log(self.end.number)
                );
                return Err(disk::damaged(Name::log(log.number), 24, what));
            } else {
                self.core.log().read_next(log.number, log.file.clone(), length(self.core.disk(), log)?);
            }
            self.log(log)?;
        }
        Ok(())
    }

    /// Reads a log that begins where the previous one ended.
    fn log(&mut self, log: &Read<D>) -> Result<()> {
        let (number, disk) = (log.number, self.core.disk());
        let change = |sequence, change: Change<'_>| self.change(Name::log(number), sequence, change);
        let end = wal::replay(disk, &log.file, number, change)?.end;
        if self.whole.0 == number && end < self.whole.1 {
            let what = format!("a record is damaged; the log was synced up to offset {}", self.whole.1);
            return Err(disk::damaged(Name::log(number), end, what));
        }
        self.core.log().resumed(end, self.sequence);
        self.end = End { number, offset: end };
        Ok(())
    }

    /// An error if one of the logs states that the logs before it were synced, or the first of them that
    /// `synced` bytes were.
    fn tail_is_torn(&self, synced: u64, rest: &[Read<D>]) -> Result<()> {
        for (at, log) in rest.iter().enumerate() {
            let is_said = at == 0 && synced > self.end.offset;
            if is_said || wal::replay(self.core.disk(), &log.file, log.number, |_, _| Ok(()))?.vouches {
                let what = format!(
                    "the end of the log is missing, and {} says that it was synced",
                    Name::log(log.number)
                );
                return Err(disk::damaged(Name::log(self.end.number), self.end.offset, what));
            }
        }
        Ok(())
    }
}

/// The newest complete manifest, and its state.
fn newest_manifest<D: Disk>(disk: &D, names: &[Name]) -> Result<Option<(Name, ManifestState)>> {
    for &name in names.iter().rev().filter(|name| name.kind == Kind::Manifest) {
        if let Some(state) = manifest::read(disk, name)? {
            return Ok(Some((name, state)));
        }
    }
    Ok(None)
}

fn catalog_of(state: &ManifestState, name: Name) -> Result<Catalog> {
    let mut catalog = Catalog::from_next(state.next);
    for (&id, called) in &state.keyspaces {
        if !catalog.add(called, id) {
            return Err(disk::damaged(name, 0, format!("keyspace {id} exists twice")));
        }
    }
    Ok(catalog)
}

/// The logs with changes that are in no table, in order: from the newest one back to the floor, along each
/// log's statement of the previous one. Any other logs were given up by an earlier recovery, or never used.
fn chain<D: Disk>(disk: &D, logs: &[u64], floor: u64) -> Result<Vec<Read<D>>> {
    let mut used = BTreeMap::new();
    for &number in logs {
        let file = disk::open(disk, Name::log(number))?;
        if let Some(head) = wal::head(disk, &file, number)? {
            used.insert(number, (file, head));
        }
    }
    let mut number = used.last_key_value().map_or(floor, |(&newest, _)| newest);
    let mut chain = Vec::new();
    loop {
        let Some((file, head)) = used.remove(&number) else {
            let what = format!(
                "{} is missing or not whole, and it may hold changes that are in no table",
                Name::log(number)
            );
            return Err(Error::new(ErrorKind::Corrupt, what));
        };
        let before = head.before.number;
        chain.push(Read { number, file: Arc::new(file), head });
        if number == floor {
            chain.reverse();
            return Ok(chain);
        }
        number = before;
    }
}

/// An error if a directory without a manifest has a file that was ever used.
fn unused<D: Disk>(disk: &D, names: &[Name]) -> Result<()> {
    for &name in names {
        let used = match name.kind {
            Kind::Log => {
                let file = disk::open(disk, name)?;
                match wal::head(disk, &file, name.number)? {
                    None => false,
                    Some(head) => {
                        let replayed = wal::replay(disk, &file, name.number, |_, _| Ok(()))?;
                        !head.is_first || replayed.next > head.first
                    }
                }
            }
            Kind::Manifest => false,
            Kind::Remix | Kind::Table => true,
        };
        if used {
            return Err(Error::new(
                ErrorKind::Corrupt,
                format!("there is no manifest, and {name} is in use: the directory is not a whole store"),
            ));
        }
    }
    Ok(())
}

fn open_partitions<D: Disk>(
    disk: &Arc<D>,
    state: &ManifestState,
    builder: &Options,
    cache: &Arc<Cache>,
    names: &[Name],
) -> Result<BTreeMap<u32, Vec<Arc<Partition<D>>>>> {
    for name in state.files() {
        if names.binary_search(&name).is_err() {
            return Err(Error::new(
                ErrorKind::Corrupt,
                format!("{name} is missing, and the manifest names it"),
            ));
        }
    }
    let mut all = BTreeMap::new();
    for (&space, partitions) in &state.partitions {
        let mut opened = Vec::new();
        for (low, files) in partitions {
            opened.push(Arc::new(Partition::open(disk, low.clone(), files, cache, builder.tags)?));
        }
        all.insert(space, opened);
    }
    Ok(all)
}

/// The files that the store does not need.
fn leftovers(state: &ManifestState, last_log: u64, names: &[Name]) -> Vec<Name> {
    let named: BTreeSet<Name> = state.files().collect();
    let is_left = |name: &Name| match name.kind {
        Kind::Log => name.number < state.floor || name.number > last_log,
        // Old ones are removed when a new one is made.
        Kind::Manifest => false,
        Kind::Remix | Kind::Table => !named.contains(name),
    };
    names.iter().copied().filter(is_left).collect()
}

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
//! not outlive it. So before the first change, the logs are written again as far as they do not state that they were
//! synced, and they and their names are synced ([`Log::settle`]); then a new log is begun, with a number above all that
//! are in the directory. The first new table needs a new manifest. Files that nothing names are removed with the first
//! change.
//!
//! Damage in the manifest or the logs fails the opening, because nothing can be known of the store then. A table that
//! is missing or damaged or cannot be read does not, and so for a log that is only kept for values in it: it fails the
//! reads of its partition (see [`Partition`]). A process that reads beside another one first tries again, because its
//! view of the directory may be old.
//!
//! Nothing is removed if something is damaged, or if a file that the store needs has a format version that this build
//! does not read. A directory without a manifest is a new store only if no file in it was ever used.

use crate::cache::Cache;
use crate::catalog::Catalog;
use crate::compression;
use crate::core::{Core, Order};
use crate::current::Current;
use crate::disk::{self, Disk, Hold, Kind, Name, Sealed};
use crate::gaps::Gaps;
use crate::history::History;
use crate::limits::Limits;
use crate::manifest::{self, Manifest, ManifestState};
use crate::memory::Memory;
use crate::memtable::Memtable;
use crate::operands::Operated;
use crate::pace::Pace;
use crate::parked::Parked;
use crate::partition::{Partition, Shared};
use crate::rate::Rate;
use crate::readers::Readers;
use crate::record;
use crate::replay::{self, Read, Replay};
use crate::stripe::Stripes;
use crate::tasks::Tasks;
use crate::values::{Logs, Values};
use crate::version::{Partitions, Version};
use crate::wal::{self, End, Log};
use crate::work::Work;
use crate::workers::Workers;
use forrest_base::lock;
use forrest_engine::clock::Clock;
use forrest_engine::{DEFAULT_KEYSPACE, Options};
use forrest_engine::{Error, ErrorKind, Latencies, Result};
use forrest_machine::origin::Origin;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

/// How many times what is read beside another process is tried, and the pause between two tries.
const TRIES: usize = 20;
const PAUSE: Duration = Duration::from_millis(10);

/// How many times it is tried again because the manifest was changed while the logs were read. Most likely a memtable
/// became tables, which does no harm. But if pairs were ingested, the logs may have later changes.
const TRIES_OF_LOGS: usize = 3;

/// The advice for a store that cannot be opened because of damage.
const ADVICE: &str = "\"forrest salvage\" copies what is intact to a new store";

/// Opens the store in the directory, or creates a new one if the directory is empty. No thread does background work
/// yet.
pub(crate) fn open(
    disk: Sealed,
    builder: &Options,
    workers: impl Fn(&Options) -> Result<Workers>,
) -> Result<Core> {
    open_damaged(disk, builder, workers).map_err(|error| match error.kind() {
        ErrorKind::Corrupt => Error::new(error.kind(), format!("{}; {ADVICE}", error.message())),
        _ => error,
    })
}

fn open_damaged(
    disk: Sealed,
    builder: &Options,
    workers: impl Fn(&Options) -> Result<Workers>,
) -> Result<Core> {
    let cache = Arc::new(Cache::new(builder.cache_bytes, builder.pages, builder.numa));
    let memory =
        Memory::new(builder.memory_bytes, cache.indexes(), builder.cache_bytes, builder.memtable_bytes);
    let disk = Arc::new(disk);
    let values = Values::new(&disk);
    let shared = Arc::new(Shared { disk, cache, memory: Arc::new(memory), values, tags: builder.tags });
    let disk = &shared.disk;
    let start = |number, parts| Ok(core(&shared, builder, workers(builder)?, number, parts));
    if builder.read_only || disk.check_writable().is_err() {
        return patiently(|lost, is_followed| {
            let Some(found) = find_held(disk)? else { return Err(no_store()) };
            read_beside(&shared, builder, found, (lost, is_followed), start)
        });
    }
    match find(disk)? {
        Some(found) => go_on(&shared, builder, found, start),
        None => create(&shared, builder, start),
    }
}

/// Repeats what reads files that another process may be changing: a file may be gone, or be read while it is written.
/// So a table that is lost is an error, except in the last try; in the first ones, so is a manifest that is changed
/// meanwhile.
fn patiently<R>(mut read: impl FnMut(Lost, bool) -> Result<R>) -> Result<R> {
    for turn in 1..TRIES {
        match read(Lost::Refused, turn <= TRIES_OF_LOGS) {
            Err(error) if disk::is_unreadable(&error) => thread::sleep(PAUSE),
            done => return done,
        }
    }
    read(Lost::Taken, false)
}

/// Whether a store is opened if a table is missing or damaged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lost {
    Taken,
    Refused,
}

fn no_store() -> Error {
    Error::new(ErrorKind::Io, "there is no store in the directory, and it cannot be changed")
}

/// What is in a directory.
struct Found {
    names: Vec<Name>,
    /// The newest complete manifest.
    name: Name,
    /// The end of its last record.
    end: u64,
    state: ManifestState,
    hold: Hold,
}

impl Found {
    /// The logs that the store needs, in order.
    fn chain(&self, disk: &Sealed) -> Result<Vec<Read>> {
        let logs = self.names.iter().filter(|name| name.kind == Kind::Log && name.number >= self.state.floor);
        let logs: Vec<u64> = logs.map(|name| name.number).collect();
        replay::chain(disk, &logs, self.state.floor)
    }

    /// An error if the manifest was changed since, and `is_followed`.
    fn check_newest(&self, disk: &Sealed, is_followed: bool) -> Result<()> {
        let is_newest =
            !is_followed || find(disk)?.is_some_and(|now| (now.name, now.end) == (self.name, self.end));
        match is_newest {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Io, "the manifest was changed while the logs were read")),
        }
    }
}

/// Looks for a store; `None` if there is none.
fn find(disk: &Sealed) -> Result<Option<Found>> {
    let names = disk::list(disk)?;
    for &name in names.iter().rev().filter(|name| name.kind == Kind::Manifest) {
        if let Some((state, end)) = manifest::read(disk, name)? {
            return Ok(Some(Found { names, name, end, state, hold: Hold::default() }));
        }
    }
    unused(disk, &names)?;
    Ok(None)
}

/// The same beside a process that may change the store. The state that is found is held.
fn find_held(disk: &Sealed) -> Result<Option<Found>> {
    for _ in 0..TRIES {
        let Some(Found { name, .. }) = find(disk)? else { return Ok(None) };
        let Some(hold) = disk::hold(disk, name)? else { continue };
        // The files of a state that is found now, after the manifest was locked, are kept.
        match find(disk)? {
            Some(found) if found.name == name => return Ok(Some(Found { hold, ..found })),
            _ => {}
        }
    }
    Err(Error::new(ErrorKind::Io, "the manifest is replaced again and again"))
}

/// The content of a store before its logs are read: the catalogue, the logs, the partitions, the logs with their
/// values, and an empty memtable.
type Content = (Catalog, Vec<Read>, Partitions, Arc<Logs>, Arc<Memtable>);

fn content(shared: &Arc<Shared>, builder: &Options, found: &Found, lost: Lost) -> Result<Content> {
    let catalog = catalog_of(&found.state, found.name)?;
    catalog.set_ttls(&found.state.ttls);
    catalog.set_operators(&found.state.operators, &builder.operators)?;
    let chain = found.chain(&shared.disk)?;
    let partitions = open_partitions(shared, found, &BTreeMap::new(), lost)?;
    let logs = open_logs(shared, found, lost)?;
    Ok((
        catalog,
        chain,
        partitions,
        logs,
        Arc::new(Memtable::new(builder, shared.memory.spare(), found.state.floor, 0)?),
    ))
}

/// Opens a store to change it.
fn go_on(
    shared: &Arc<Shared>,
    builder: &Options,
    found: Found,
    start: impl Fn(u64, Parts) -> Result<Core>,
) -> Result<Core> {
    let (catalog, chain, partitions, logs, memtable) = content(shared, builder, &found, Lost::Taken)?;
    let disk = &shared.disk;
    let is_whole = partitions.values().flatten().all(|partition| partition.lost().is_empty());
    let Found { names, name, end, state, .. } = found;
    let first = above(&names, &state);
    let parts = Parts {
        catalog: catalog.clone(),
        version: version(memtable, partitions, logs, Operated::of(&catalog, state.has_operands)),
        log: reading(disk, (name, end), &chain, builder.history)?,
        manifest: Manifest::of(disk, state.clone()),
        sequence: 0,
        read_to: (name, End::default()),
    };
    let core = start(first, parts)?;
    let mut replay = Replay::of(&core, &state, catalog);
    replay.logs(&chain)?;
    replay.install(&core);
    // What is lost may be in a file that this manifest does not name, if another one is lost too.
    if is_whole {
        let mut manifest = lock(&core.manifest);
        let read: BTreeSet<u64> = chain.iter().map(|log| log.number).collect();
        let leftovers = leftovers(manifest.state(), replay.end.number, &read, &names);
        let old_logs = core.old_logs(manifest.state(), &names);
        manifest.add_waiting(leftovers.into_iter().chain(old_logs));
    }
    let Replay { catalog, sequence, .. } = replay;
    let has_default = catalog.get(DEFAULT_KEYSPACE).is_some();
    core.order().sequence = sequence;
    core.catalog.replace(&Arc::new(catalog));
    core.readers.apply(sequence);
    core.readers.show(sequence);
    // It is there, unless an early release created the store and was killed meanwhile.
    if !has_default {
        core.keyspace(DEFAULT_KEYSPACE)?;
    }
    Ok(core)
}

/// Opens a store to read it.
fn read_beside(
    shared: &Arc<Shared>,
    builder: &Options,
    found: Found,
    (lost, is_followed): (Lost, bool),
    start: impl Fn(u64, Parts) -> Result<Core>,
) -> Result<Core> {
    let (catalog, chain, partitions, logs, memtable) = content(shared, builder, &found, lost)?;
    let disk = &shared.disk;
    let mut replay = Replay::begin(disk, builder.clone(), &found.state, catalog, memtable);
    replay.logs(&chain)?;
    found.check_newest(disk, is_followed)?;
    let Replay { memtable, immutable, catalog, sequence, end, is_ingesting, .. } = replay;
    let Found { names, name, end: last, state, hold } = found;
    let (origin, hold) = (Origin::here(), Arc::new(hold));
    let operated = Arc::new(Operated::of(&catalog, state.has_operands));
    let version = Version { origin, memtable, immutable, partitions, logs, operated, hold };
    let first = above(&names, &state);
    let (log, manifest) = (reading(disk, (name, last), &chain, false)?, Manifest::of(disk, state));
    let core = start(first, Parts { catalog, version, log, manifest, sequence, read_to: (name, end) })?;
    core.is_ingesting.store(is_ingesting, Relaxed);
    Ok(core)
}

/// Up to which change a store is in tables.
pub(crate) fn covered(disk: &Sealed) -> Result<u64> {
    Ok(find(disk)?.map_or(0, |found| found.state.covered))
}

/// The number of the newest log of changes that was begun; 0 if there is none. A list that is made meanwhile may lack
/// it, and have a log of values that was begun after it.
pub(crate) fn newest_log(disk: &Sealed) -> Result<u64> {
    let names = disk::list(disk)?;
    for name in names.into_iter().rev().filter(|name| name.kind == Kind::Log) {
        if let Some(file) = disk::open_if_there(disk, name)?
            && record::fields_of(disk, &file, name)?.is_some_and(|fields| fields != wal::OF_VALUES)
        {
            return Ok(name.number);
        }
    }
    Ok(0)
}

/// Takes over what another process has changed since the store was opened to be read, or since the last call.
pub(crate) fn refresh(core: &Core) -> Result<()> {
    core.check_here()?;
    if core.check_writable().is_ok() {
        return Ok(());
    }
    // One thread at a time, so that none goes back.
    let mut manifest = lock(&core.manifest);
    patiently(|lost, is_followed| {
        let Some(found) = find_held(core.disk())? else { return Err(no_store()) };
        take_over(core, &mut manifest, found, (lost, is_followed))
    })
}

fn take_over(
    core: &Core,
    manifest: &mut Manifest,
    found: Found,
    (lost, is_followed): (Lost, bool),
) -> Result<()> {
    let (old, old_catalog) = (core.order().version.clone(), core.catalog());
    let (read_manifest, read_to) = *lock(&core.read_to);
    let state = &found.state;
    let partitions = match state.partitions == manifest.state().partitions {
        true => old.partitions.clone(),
        false => open_partitions(&core.shared, &found, &old.partitions, lost)?,
    };
    let logs = match state.logs == manifest.state().logs {
        true => old.logs.clone(),
        false => open_logs(&core.shared, &found, lost)?,
    };
    let chain = found.chain(core.disk())?;
    // If no memtable became tables, the logs are read on.
    let is_same = (state.floor, state.covered) == (manifest.state().floor, manifest.state().covered);
    let at = chain.iter().position(|log| log.number == read_to.number).filter(|_| is_same);
    let (mut replay, chain) = match at {
        Some(at) => {
            let last = core.order().sequence;
            (Replay::resume(core, state, (*old_catalog).clone(), last, read_to), &chain[at..])
        }
        None => {
            let memtable =
                Arc::new(Memtable::new(&core.options(), core.shared.memory.spare(), state.floor, 0)?);
            let mut catalog = catalog_of(state, found.name)?;
            catalog.adopt(&old_catalog);
            let begun = Replay::begin(core.disk(), core.options(), state, catalog, memtable);
            (begun.beside(core.visible()), &chain[..])
        }
    };
    replay.catalog.choose(&state.compression);
    replay.catalog.set_ttls(&state.ttls);
    replay.catalog.set_operators(&state.operators, &core.builder.operators)?;
    old.operated.add_all(&replay.catalog);
    if state.has_operands {
        old.operated.store();
    }
    let read = replay.logs(chain).and_then(|()| found.check_newest(core.disk(), is_followed));
    if let Err(error) = read {
        // The memtables may have a part of a batch that is not visible. The next call begins with empty ones.
        lock(&core.read_to).1 = End::default();
        return Err(error);
    }
    let Replay { memtable, immutable, catalog, sequence, end, is_ingesting, .. } = replay;
    let mut order = core.order();
    // ORDERING: the order lock orders it.
    core.is_ingesting.store(is_ingesting, Relaxed);
    for space in old_catalog.spaces.values().filter(|space| !catalog.has(space.id)) {
        space.mark_dropped();
    }
    order.sequence = sequence;
    core.catalog.replace(&Arc::new(catalog));
    core.readers.apply(sequence);
    let is_same = Arc::ptr_eq(&memtable, &old.memtable) && found.name == read_manifest;
    if !is_same || *state != *manifest.state() {
        let hold = Arc::new(found.hold);
        let (origin, operated) = (old.origin, old.operated.clone());
        let version = Version { origin, memtable, immutable, partitions, logs, operated, hold };
        // Dropped after the lock is released, because that may close files.
        drop(old);
        let replaced = core.set_version(&mut order, version);
        core.readers.show(sequence);
        drop(order);
        drop(replaced);
        core.parked.drop_old();
    } else {
        core.readers.show(sequence);
    }
    *lock(&core.read_to) = (found.name, end);
    manifest.follow(found.state);
    Ok(())
}

/// A number above those of all files, also of those that are missing.
fn above(names: &[Name], state: &ManifestState) -> u64 {
    // DURABILITY: used or not: any of them may be an incomplete file.
    let missing = state.files().map(|name| name.number).chain(state.logs.keys().copied());
    names.iter().map(|name| name.number).chain(missing).max().unwrap_or(0) + 1
}

/// The logs of a store before the first of them is read.
fn reading(disk: &Arc<Sealed>, manifest: (Name, u64), chain: &[Read], history: bool) -> Result<Log> {
    let first = chain.first().expect("it has the log of the floor");
    Ok(Log::reading(disk, manifest, first.number, first.file.clone(), first.len(disk)?, history))
}

/// The first version of a store that will be changed.
fn version(memtable: Arc<Memtable>, partitions: Partitions, logs: Arc<Logs>, operated: Operated) -> Version {
    let operated = Arc::new(operated);
    let (immutable, hold) = (Vec::new(), Arc::new(Hold::default()));
    Version { origin: Origin::here(), memtable, immutable, partitions, logs, operated, hold }
}

/// Creates a store.
fn create(
    shared: &Arc<Shared>,
    builder: &Options,
    start: impl Fn(u64, Parts) -> Result<Core>,
) -> Result<Core> {
    let disk = &shared.disk;
    let first = above(&disk::list(&**disk)?, &ManifestState::default());
    let mut catalog = Catalog::default();
    assert!(catalog.add(DEFAULT_KEYSPACE, 0), "it is the only one");
    let has_history = builder.history;
    let head =
        wal::Head { before: End::default(), synced: 0, first: 1, is_first: true, has_history, is_old: false };
    let log = Log::create(disk, first, head)?;
    let state = ManifestState {
        keyspaces: BTreeMap::from([(0, DEFAULT_KEYSPACE.to_string())]),
        next: catalog.next,
        floor: first,
        ..ManifestState::default()
    };
    let manifest = Manifest::create(disk, first + 1, state)?;
    let memtable = Arc::new(Memtable::new(builder, shared.memory.spare(), first, 0)?);
    let version = version(memtable, BTreeMap::new(), Arc::default(), Operated::default());
    start(
        first + 2,
        Parts {
            catalog,
            version,
            log,
            manifest,
            sequence: 0,
            read_to: (Name::manifest(first + 1), End::default()),
        },
    )
}

/// The parts of a store that are found or made when it is opened.
struct Parts {
    catalog: Catalog,
    version: Version,
    log: Log,
    manifest: Manifest,
    sequence: u64,
    read_to: (Name, End),
}

fn core(shared: &Arc<Shared>, builder: &Options, workers: Workers, next_number: u64, parts: Parts) -> Core {
    let Parts { catalog, version, log, manifest, sequence, read_to } = parts;
    let backlog_bytes = version.immutable_bytes();
    let clock = Clock::new({
        let disk = shared.disk.clone();
        move || disk.now_ms()
    });
    shared.memory.add(version.memtables());
    let version = Arc::new(version);
    let (current, parked) = (Current::new(&version), Parked::new(&version));
    let order = Order { version, sequence, scratch: Vec::new() };
    Core {
        origin: Origin::here(),
        builder: builder.clone(),
        limits: Limits::new(builder),
        large_values: large_values(&shared.disk, builder),
        shared: shared.clone(),
        numbers: AtomicU64::new(next_number),
        version: current,
        parked,
        gaps: Gaps::new(builder.filter.is_some()),
        backlog_bytes: AtomicUsize::new(backlog_bytes),
        pace: Pace::default(),
        // Opening does not wait.
        rate: Rate::default(),
        tasks: Tasks::new(builder.listener.clone()),
        latencies: builder.latencies.then(|| Stripes::new(Latencies::default)),
        changes: AtomicU64::new(0),
        change_bytes: AtomicU64::new(0),
        is_flushing: AtomicBool::new(false),
        closes_by: OnceLock::new(),
        is_short: AtomicBool::new(false),
        is_resuming: AtomicBool::new(false),
        expired_again_ms: AtomicU64::new(0),
        readers: Readers::new(sequence, clock),
        catalog: Current::new(&Arc::new(catalog)),
        order: Mutex::new(order),
        log,
        // A store that cannot be changed is followed like one that another process changes.
        history: match builder.read_only || shared.disk.check_writable().is_err() {
            true => None,
            false => History::new(builder, manifest.state().covered, manifest.state().floor),
        },
        is_ingesting: AtomicBool::new(false),
        manifest: Mutex::new(manifest),
        read_to: Mutex::new(read_to),
        held_bytes: AtomicU64::new(0),
        work: Work::default(),
        workers,
        unapplied: Mutex::default(),
        ingested: Mutex::default(),
        to_cache: Mutex::default(),
        is_flush_due: AtomicBool::new(false),
        collector: Mutex::default(),
        keeping: Mutex::default(),
        adding: Mutex::default(),
        full: AtomicBool::new(false),
    }
}

/// From how many bytes on values stay in the log. A device that has only the log is small; an encrypted log is read by
/// whole records.
fn large_values(disk: &Sealed, builder: &Options) -> usize {
    let in_tables = builder.large_values == 0 || disk.is_log_apart() || disk.is_sealed();
    if in_tables { usize::MAX } else { builder.large_values }
}

fn catalog_of(state: &ManifestState, name: Name) -> Result<Catalog> {
    let mut catalog = Catalog::from_next(state.next);
    for (&id, called) in &state.keyspaces {
        if !catalog.add(called, id) {
            return Err(disk::damaged(name, 0, format!("keyspace {id} exists twice")));
        }
        if let (Some(&method), Some(space)) = (state.compression.get(&id), catalog.get(called)) {
            compression::check(method).map_err(|error| {
                Error::new(
                    error.kind(),
                    format!("keyspace \"{}\": {}", called.escape_debug(), error.message()),
                )
            })?;
            space.choose(method);
        }
    }
    Ok(catalog)
}

/// An error if a directory without a manifest has a file that was ever used.
fn unused(disk: &Sealed, names: &[Name]) -> Result<()> {
    if names.iter().any(|name| matches!(name.kind, Kind::Copy | Kind::Backup)) {
        return Err(Error::invalid(
            "this is a directory of backups and not a store; \"forrest backup restore\" makes a store of a backup",
        ));
    }
    for &name in names {
        let used = match name.kind {
            Kind::Log => {
                let file = disk::open(disk, name)?;
                match wal::head(disk, &file, name.number)? {
                    None => false,
                    Some(head) => {
                        let replayed = wal::replay(disk, &file, name.number, None, |_, _| Ok(()))?;
                        !head.is_first || replayed.next > head.first
                    }
                }
            }
            Kind::Manifest => false,
            Kind::Remix | Kind::Table => true,
            Kind::Copy | Kind::Backup | Kind::Key => false,
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

/// Opens the tables that a manifest names, except those that are open in other partitions. If a loss is refused, then
/// one that the old partitions do not have yet.
fn open_partitions(shared: &Arc<Shared>, found: &Found, old: &Partitions, lost: Lost) -> Result<Partitions> {
    // What was lost before is not there later.
    let known: BTreeSet<Name> =
        old.values().flatten().flat_map(|partition| partition.files().names()).collect();
    let is_there = |name: &Name| known.contains(name) || found.names.binary_search(name).is_ok();
    if lost == Lost::Refused
        && let Some(name) = found.state.files().find(|name| !is_there(name))
    {
        return Err(disk::missing(name));
    }
    let open = old.values().flatten().flat_map(|partition| partition.tables());
    let open: BTreeMap<u64, _> = open.map(|table| (table.name().number, table)).collect();
    let opened = |number: u64| open.get(&number).map(|table| (*table).clone());
    let mut all = BTreeMap::new();
    for (&space, partitions) in &found.state.partitions {
        let mut of_space = Vec::new();
        for (low, files) in partitions {
            let is_same = |old: &&Arc<Partition>| old.low == *low && old.files() == *files;
            let same = old.get(&space).and_then(|old| old.iter().find(is_same));
            of_space.push(match same {
                Some(same) => same.clone(),
                None => Arc::new(Partition::open(shared, low.clone(), files, opened)?),
            });
            let opened = of_space.last().expect("it was just pushed");
            if lost == Lost::Refused
                && let Some(lost) =
                    opened.lost().iter().find(|lost| !known.contains(&Name::table(lost.number)))
            {
                return Err(lost.error());
            }
        }
        all.insert(space, of_space);
    }
    Ok(all)
}

/// Opens the logs that the manifest keeps for values.
fn open_logs(shared: &Arc<Shared>, found: &Found, lost: Lost) -> Result<Arc<Logs>> {
    let logs = shared.values.open_all(&found.state.logs)?;
    match lost {
        Lost::Taken => {}
        Lost::Refused => logs.values().try_for_each(|log| log.file().map(drop))?,
    }
    Ok(logs)
}

/// The files that the store does not need. Its logs were `read`, up to the last one.
fn leftovers(state: &ManifestState, last_log: u64, read: &BTreeSet<u64>, names: &[Name]) -> Vec<Name> {
    let named: BTreeSet<Name> = state.files().collect();
    let is_left = |name: &Name| match name.kind {
        // Those before the floor may be kept.
        Kind::Log => {
            let is_other = name.number >= state.floor && !read.contains(&name.number);
            name.number > last_log || (is_other && !state.logs.contains_key(&name.number))
        }
        // Old ones are removed when a new one is made.
        Kind::Manifest => false,
        Kind::Remix | Kind::Table => !named.contains(name),
        // Not files of a store, and what the disk itself keeps.
        Kind::Copy | Kind::Backup | Kind::Key => false,
    };
    names.iter().copied().filter(is_left).collect()
}

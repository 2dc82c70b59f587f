//! Recovery: the files in a directory become an open store, and obsolete files are removed.
//!
//! 1. The newest complete manifest states which tables there are, and from which log on changes are not in
//!    tables.
//! 2. These logs are read in order. Each states which log was before it, and where that ended. If data is
//!    missing at the end of the last one, it was never acknowledged as durable; anywhere else it is damage.
//! 3. The logs are synced. What was read may have been in the memory of the operating system only, and
//!    changes that are acknowledged from now on must not outlive it.
//! 4. A new log and a new manifest are created, with numbers above all that are in the directory.
//! 5. Files that nothing names are removed.
//!
//! Nothing is removed before step 4 has succeeded. Nothing is removed at all if something is damaged, or if a
//! file that the store needs has a format version that this build does not read: the directory stays
//! unchanged. A directory without a manifest is a new store only if no file in it was ever used.

use crate::cache::Cache;
use crate::catalog::Catalog;
use crate::disk::{self, Disk, Kind, Name};
use crate::manifest::{self, Manifest, ManifestState};
use crate::memtable::{Memtable, Wanted};
use crate::partition::Partition;
use crate::version::Version;
use crate::wal::{self, Change, End, Log};
use forrest_engine::Options;
use forrest_engine::{Error, ErrorKind, Result};
use forrest_machine::origin::Origin;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A memtable counts at most this many times the bytes that its changes take in a log. The smallest change takes 2
/// bytes there and counts 36.
const LOG_FACTOR: usize = 18;

/// The result of recovery, ready for use.
pub(crate) struct Recovered<D: Disk> {
    pub(crate) version: Version<D>,
    pub(crate) log: Log<D>,
    pub(crate) manifest: Manifest<D>,
    pub(crate) catalog: Catalog,
    /// The sequence number of the last change.
    pub(crate) sequence: u64,
    /// Greater than the numbers of all files.
    pub(crate) next_number: u64,
}

/// The content of the logs.
struct Replay<'b> {
    builder: &'b Options,
    memtable: Memtable,
    immutable: Vec<Arc<Memtable>>,
    catalog: Catalog,
    /// The sequence number of the last change.
    sequence: u64,
    /// The last log that was used.
    end: End,
    scratch: Vec<u8>,
}

impl Replay<'_> {
    fn change(&mut self, name: Name, sequence: u64, change: Change<'_>) -> Result<()> {
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
        let wanted = Wanted { visible: sequence, snapshots: &BTreeMap::new() };
        self.memtable.set(space, key, sequence, value, &wanted, &mut self.scratch)
    }

    /// Reads a chain of logs.
    fn logs<D: Disk>(&mut self, disk: &D, chain: &[(u64, D::File, wal::Head)]) -> Result<()> {
        for (at, (number, file, head)) in chain.iter().enumerate() {
            if at == 0 {
                self.sequence = head.first - 1;
            } else if head.before.offset > self.end.offset {
                // The end of the previous log is missing. If it had been synced, that is damage. If not,
                // nothing after it was synced.
                self.tail_is_torn(disk, head.synced, &chain[at..])?;
                return Ok(());
            } else if (head.before, head.first) != (self.end, self.sequence + 1) {
                let (said, found) = (head.before.offset, self.end.offset);
                let what = format!(
                    "it continues {} from offset {said}, but that log ends at {found}",
                    Name::log(self.end.number)
                );
                return Err(disk::damaged(Name::log(*number), 24, what));
            }
            self.log(disk, file, *number)?;
        }
        Ok(())
    }

    /// Reads a log that begins where the previous one ended.
    fn log<D: Disk>(&mut self, disk: &D, file: &D::File, number: u64) -> Result<()> {
        let name = Name::log(number);
        // A log may have more changes than the options of today allow: it came with others.
        let room =
            usize::try_from(disk::len(disk, file, name)?).unwrap_or(usize::MAX).saturating_mul(LOG_FACTOR);
        if self.memtable.bytes() >= self.builder.memtable_bytes || !self.memtable.has_room(room) {
            let memtable = Memtable::new(self.builder, number, room);
            // Where addresses are limited, the changes may fit all the same: most take fewer bytes than they may.
            let memtable = memtable.or_else(|_| Memtable::new(self.builder, number, 0))?;
            let full = std::mem::replace(&mut self.memtable, memtable);
            if full.bytes() > 0 {
                let _ = full.catalog.set(Arc::new(self.catalog.clone()));
                self.immutable.insert(0, Arc::new(full));
            } else {
                self.memtable.log = full.log;
            }
        }
        let replayed =
            wal::replay(disk, file, number, |sequence, change| self.change(name, sequence, change))?;
        // DURABILITY: what was read counts from now on, so it must be as durable as everything after it.
        disk::sync(disk, file, name)?;
        self.end = End { number, offset: replayed.end };
        Ok(())
    }

    /// An error if one of the logs states that the logs before it were synced, or the first of them that
    /// `synced` bytes were.
    fn tail_is_torn<D: Disk>(&self, disk: &D, synced: u64, rest: &[(u64, D::File, wal::Head)]) -> Result<()> {
        for (at, (number, file, _)) in rest.iter().enumerate() {
            let is_said = at == 0 && synced > self.end.offset;
            if is_said || wal::replay(disk, file, *number, |_, _| Ok(()))?.vouches {
                let what = format!(
                    "the end of the log is missing, and {} says that it was synced",
                    Name::log(*number)
                );
                return Err(disk::damaged(Name::log(self.end.number), self.end.offset, what));
            }
        }
        Ok(())
    }
}

/// The newest complete manifest.
fn newest_manifest<D: Disk>(disk: &D, names: &[Name]) -> Result<Option<ManifestState>> {
    for name in names.iter().rev().filter(|name| name.kind == Kind::Manifest) {
        if let Some(state) = manifest::read(disk, *name)? {
            return Ok(Some(state));
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

/// Opens the store in the directory, or creates a new one if the directory is empty.
pub(crate) fn recover<D: Disk>(disk: &Arc<D>, builder: &Options, cache: &Arc<Cache>) -> Result<Recovered<D>> {
    let names = disk::list(&**disk)?;
    let state = newest_manifest(&**disk, &names)?;
    let is_new = state.is_none();
    let state = match state {
        Some(state) => state,
        None => {
            unused(&**disk, &names)?;
            ManifestState::default()
        }
    };
    // DURABILITY: above the numbers of all files, used or not: any of them may be an incomplete file.
    let mut next_number = names.iter().map(|name| name.number).max().unwrap_or(0) + 1;
    let mut take_number = || {
        next_number += 1;
        next_number - 1
    };
    let manifest_name = names.iter().rev().find(|name| name.kind == Kind::Manifest).copied();
    let catalog = catalog_of(&state, manifest_name.unwrap_or(Name::manifest(0)))?;

    let mut replay = Replay {
        builder,
        memtable: Memtable::new(builder, state.floor, 0)?,
        immutable: Vec::new(),
        catalog,
        sequence: 0,
        end: End::default(),
        scratch: Vec::new(),
    };
    let logs: Vec<u64> = names
        .iter()
        .filter(|name| name.kind == Kind::Log && name.number >= state.floor)
        .map(|n| n.number)
        .collect();
    if !is_new {
        replay.logs(&**disk, &chain(&**disk, &logs, state.floor)?)?;
    }
    let partitions = open_partitions(disk, &state, builder, cache, &names)?;

    // DURABILITY: the name of a log that was read may not be durable either, and the new log will refer to
    // it.
    disk::sync_directory(&**disk)?;
    let log_number = take_number();
    let Replay { mut memtable, immutable, catalog, sequence, end, .. } = replay;
    // The logs that were read are synced now.
    let head = wal::Head { before: end, synced: end.offset, first: sequence + 1, is_first: is_new };
    let log = Log::create(disk, log_number, head)?;
    let mut state = state;
    // If the logs have no changes, they need not be kept.
    if memtable.spaces().is_empty() && immutable.is_empty() && catalog_is(&state, &catalog) {
        (memtable.log, state.floor) = (log_number, log_number);
    }
    let manifest = Manifest::create(disk, take_number(), state)?;
    sweep(&**disk, manifest.state(), end.number, &names)?;
    let version = Version { origin: Origin::here(), memtable: Arc::new(memtable), immutable, partitions };
    Ok(Recovered { version, log, manifest, catalog, sequence, next_number })
}

/// Whether the catalogue agrees with the manifest.
fn catalog_is(state: &ManifestState, catalog: &Catalog) -> bool {
    let said = state.keyspaces.iter().map(|(&id, name)| (name.clone(), id));
    let is: BTreeSet<_> = catalog.spaces.iter().map(|(name, space)| (name.to_string(), space.id)).collect();
    said.collect::<BTreeSet<_>>() == is
}

/// The logs with changes that are in no table, in order: from the newest one back to the floor, along each
/// log's statement of the previous one. Any other logs were given up by an earlier recovery, or never used.
fn chain<D: Disk>(disk: &D, logs: &[u64], floor: u64) -> Result<Vec<(u64, D::File, wal::Head)>> {
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
        chain.push((number, file, head));
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

/// Removes what the store no longer needs.
fn sweep<D: Disk>(disk: &D, state: &ManifestState, last_log: u64, names: &[Name]) -> Result<()> {
    let named: BTreeSet<Name> = state.files().collect();
    for name in names {
        let needed = match name.kind {
            Kind::Log => name.number >= state.floor && name.number <= last_log,
            // The old ones are already removed.
            Kind::Manifest => true,
            Kind::Remix | Kind::Table => named.contains(name),
        };
        if !needed {
            disk::unlink(disk, *name)?;
        }
    }
    Ok(())
}

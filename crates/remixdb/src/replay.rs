//! [`Replay`]: the changes in logs become memtables.
//!
//! Each log states which log was before it, and where that ended. If data is missing at the end of the last one, it was
//! never acknowledged as durable; anywhere else it is damage.
//!
//! A replay can go on where an earlier one ended, in the same memtables, while they are read.

use crate::catalog::{Catalog, Space};
use crate::clock::Moment;
use crate::core::Core;
use crate::disk::{self, Name, Sealed, SealedFile};
use crate::manifest::ManifestState;
use crate::memtable::{self, Memtable, ReadAt};
use crate::operands;
use crate::ranges::FRAGMENTS_MOST;
use crate::readers::Numbers;
use crate::record;
use crate::wal::{self, Change, End, Tail};
use crate::wanted::Wanted;
use crate::wrapped::{self, Entry, Place, Wrapped};
use forrest_engine::Options;
use forrest_engine::merge::SharedOperator;
use forrest_engine::spans::{self, Spans};
use forrest_engine::{Error, ErrorKind, Result};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A log that is read.
pub(crate) struct Read {
    pub(crate) number: u64,
    pub(crate) file: Arc<SealedFile>,
    head: wal::Head,
}

impl Read {
    /// Its length in bytes, with what follows its last record.
    pub(crate) fn len(&self, disk: &Sealed) -> Result<u64> {
        disk::len(disk, &self.file, Name::log(self.number))
    }
}

/// The content of logs so far.
pub(crate) struct Replay<'c> {
    disk: &'c Sealed,
    builder: Options,
    /// The store, if its logs are read to be continued. If not, nothing is written.
    core: Option<&'c Core>,
    /// The memtable that takes changes.
    pub(crate) memtable: Arc<Memtable>,
    /// Those before it, the newest first.
    pub(crate) immutable: Vec<Arc<Memtable>>,
    pub(crate) catalog: Catalog,
    /// The changes up to this sequence number are in tables.
    covered: u64,
    /// A log, and the length up to which it was synced.
    whole: (u64, u64),
    /// What is read of the memtables meanwhile: the newest visible change, and the snapshots.
    reading: Option<(u64, Arc<Numbers>)>,
    /// The sequence number of the last change.
    pub(crate) sequence: u64,
    /// Whether the last change is an ingest of which it is unknown whether it was done.
    pub(crate) is_ingesting: bool,
    /// The end of the last log that was used.
    pub(crate) end: End,
    scratch: Vec<u8>,
    /// Whether the log that is read may be kept for values in it. One of an old version goes, so that a store that was
    /// compacted has none.
    may_keep: bool,
    /// The merge operators that were asked for, by the identifiers of their keyspaces.
    operators: BTreeMap<u32, SharedOperator>,
}

impl<'c> Replay<'c> {
    /// A replay into a memtable that begins at the state of a manifest. Nothing is written.
    pub(crate) fn begin(
        disk: &'c Sealed,
        builder: Options,
        state: &ManifestState,
        catalog: Catalog,
        memtable: Arc<Memtable>,
    ) -> Replay<'c> {
        Replay {
            disk,
            builder,
            core: None,
            memtable,
            immutable: Vec::new(),
            catalog,
            covered: state.covered,
            whole: state.whole,
            reading: None,
            sequence: 0,
            is_ingesting: false,
            end: End::default(),
            scratch: Vec::new(),
            may_keep: true,
            operators: BTreeMap::new(),
        }
    }

    /// The same beside readers: the state that they see until the memtables are shown, whose last change has this
    /// number, is in the memtables too. Snapshots have memtables of their own.
    pub(crate) fn beside(self, visible: u64) -> Replay<'c> {
        Replay { reading: Some((visible, Arc::default())), ..self }
    }

    /// The replay of a store that will be changed. If the changes take more memory than may wait, the oldest become
    /// tables.
    pub(crate) fn of(core: &'c Core, state: &ManifestState, catalog: Catalog) -> Replay<'c> {
        let memtable = core.order().version.memtable.clone();
        let begun = Replay::begin(core.disk(), core.options(), state, catalog, memtable);
        Replay { core: Some(core), ..begun }
    }

    /// A replay that goes on where another one has ended, in the memtables that are read meanwhile.
    pub(crate) fn resume(
        core: &'c Core,
        state: &ManifestState,
        catalog: Catalog,
        sequence: u64,
        end: End,
    ) -> Replay<'c> {
        let version = core.order().version.clone();
        let readers = core.readers.kept().unwrap_or_default();
        let begun = Replay::begin(core.disk(), core.options(), state, catalog, version.memtable.clone());
        let reading = Some((core.visible(), readers));
        // An ingest may have begun in what was read before.
        let is_ingesting = core.is_ingesting.load(Relaxed);
        Replay { immutable: version.immutable.clone(), reading, sequence, end, is_ingesting, ..begun }
    }

    /// Reads a chain of logs. The first has the first change that is wanted, or is the one that an earlier replay ended
    /// in.
    ///
    /// # Errors
    /// `Corrupt`, `Io`, `OutOfSpace`.
    pub(crate) fn logs(&mut self, chain: &[Read]) -> Result<()> {
        for (at, log) in chain.iter().enumerate() {
            let head = log.head;
            let resumed = self.end.number == log.number;
            if at == 0 {
                if !resumed {
                    self.sequence = head.first - 1;
                }
            } else if self.is_torn(&chain[at..])? {
                break;
            } else if (head.before, head.first) != (self.end, self.sequence + 1) {
                let (said, found) = (head.before.offset, self.end.offset);
                let what = format!(
                    "it continues {} from offset {said}, but that log ends at {found}",
                    Name::log(self.end.number)
                );
                return Err(disk::damaged(Name::log(log.number), 24, what));
            } else if let Some(core) = self.core {
                core.log().read_next(log.number, log.file.clone(), log.len(self.disk)?);
            }
            let next = chain.get(at + 1).map_or(0, |next| next.head.synced);
            self.log(log, resumed, next)?;
        }
        self.check_end()
    }

    /// Reads a log that begins where the previous one ended, or the rest of one. The next one states that `synced`
    /// bytes of it were synced.
    fn log(&mut self, log: &Read, resumed: bool, synced: u64) -> Result<()> {
        let (number, disk) = (log.number, self.disk);
        let from = resumed.then_some((self.end.offset, self.sequence + 1));
        self.may_keep = !log.head.is_old;
        let change =
            |sequence, change: Change<'_>, end| self.change(Name::log(number), sequence, change, end);
        let replayed = wal::replay_placed(disk, &log.file, number, from, change)?;
        let wal::Replayed { end, synced: stated, .. } = replayed;
        if self.whole.0 == number && end < self.whole.1 {
            let what = format!("a record is damaged; the log was synced up to offset {}", self.whole.1);
            return Err(disk::damaged(Name::log(number), end, what));
        }
        self.end = End { number, offset: end };
        if self.is_short() && self.whole.0 == number {
            // The tables have more than the log: it was not synced, and the store was resumed.
            self.sequence = self.covered;
        }
        if let Some(core) = self.core {
            let whole = if self.whole.0 == number { self.whole.1 } else { 0 };
            core.log().resumed(self.end, self.sequence, synced.max(stated).max(whole));
        }
        Ok(())
    }

    /// Whether the logs have less than the tables.
    fn is_short(&self) -> bool {
        self.sequence < self.covered
    }

    /// An error if the manifest states more than the logs have.
    fn check_end(&self) -> Result<()> {
        let what = if self.is_short() {
            format!(
                "the changes up to {} were synced, and the log ends after {}",
                self.covered, self.sequence
            )
        } else if self.end.number < self.whole.0 {
            let (number, end) = self.whole;
            format!("the log ends, and {} was synced up to offset {end}", Name::log(number))
        } else {
            return Ok(());
        };
        Err(disk::damaged(Name::log(self.end.number), self.end.offset, what))
    }

    /// Makes a change, which ends at an offset of the log.
    fn change(&mut self, name: Name, sequence: u64, change: Change<'_>, end: u64) -> Result<()> {
        if sequence > self.covered {
            let senseless = |what: &str| disk::damaged(name, 0, format!("change {sequence} {what}"));
            match change {
                Change::Put { space, key, value } => {
                    let wrapped = Wrapped { expires_ms: None, content: value };
                    self.set_value(name, (space, key), sequence, (Entry::Value(value), wrapped), end)?
                }
                Change::Wrapped { space, key, bytes } if wrapped::operands(bytes).is_some() => {
                    self.merge(name, (space, key), sequence, bytes)?
                }
                Change::Wrapped { space, key, bytes } => {
                    let wrapped = Wrapped::read(bytes);
                    let wrapped = wrapped.ok_or_else(|| senseless(&format!("has {}", wrapped::FLAW)))?;
                    self.set_value(name, (space, key), sequence, (Entry::Wrapped(bytes), wrapped), end)?
                }
                Change::Delete { space, key } => self.set(name, space, key, sequence, Entry::Tombstone)?,
                Change::DeleteRange { space, start, end } => {
                    self.delete_range(name, space, (start, end), sequence)?
                }
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
                // Its tables are named by the manifest, or not.
                Change::Ingest { .. } | Change::Note(_) => {}
            }
        }
        self.is_ingesting = matches!(change, Change::Ingest { is_done: false, .. });
        self.sequence = sequence;
        Ok(())
    }

    /// Sets a key to a value, which ends at an offset of the log.
    fn set_value(
        &mut self,
        name: Name,
        (space, key): (u32, &[u8]),
        sequence: u64,
        (entry, value): (Entry<'_>, Wrapped<'_>),
        end: u64,
    ) -> Result<()> {
        let len = value.content.len();
        let is_large = self.may_keep
            && self.core.is_some_and(|core| len >= core.large_values)
            && len <= memtable::VALUE_MAX - wrapped::PLACED_HEADER_MOST;
        if is_large {
            let place = Place { log: name.number, offset: end - len as u64 };
            let placed = wrapped::placed(value, place);
            return self.set(name, space, key, sequence, Entry::Wrapped(&placed));
        }
        self.set(name, space, key, sequence, entry)
    }

    /// Takes operands: joins them with what the memtable has.
    fn merge(&mut self, name: Name, (space, key): (u32, &[u8]), sequence: u64, bytes: &[u8]) -> Result<()> {
        self.check(name, space, key, sequence)?;
        let Some(operator) = self.operator(space) else {
            let what = format!("change {sequence} merges in a keyspace that has no operator");
            return Err(disk::damaged(name, 0, what));
        };
        let newest = Moment { sequence, ms: 0 };
        let join = |said: Entry<'_>| -> Result<(bool, Vec<u8>)> {
            if said.has_operands() {
                return Ok((true, operands::joined(&*operator, key, said.bytes(), bytes)?));
            }
            // One that expires had done so.
            let old = said.value(|| u64::MAX);
            Ok((false, operands::applied(&*operator, key, old, &[bytes.to_vec()])?))
        };
        let joined = self.memtable.get(space, key, ReadAt::Past(&newest), join).transpose()?;
        let memtable = self.memtable.clone();
        let len = joined.as_ref().map_or(bytes.len(), |(_, joined)| joined.len());
        self.make_room(name, memtable::cost(key.len(), len))?;
        let entry = match &joined {
            Some((false, value)) => Entry::Value(value),
            Some((true, joined)) if Arc::ptr_eq(&memtable, &self.memtable) => Entry::Wrapped(joined),
            // A new memtable has nothing to join them with: the older ones are in that before it.
            _ => Entry::Wrapped(bytes),
        };
        self.set_in_room(space, key, sequence, entry)
    }

    fn set(&mut self, name: Name, space: u32, key: &[u8], sequence: u64, value: Entry<'_>) -> Result<()> {
        self.check(name, space, key, sequence)?;
        self.make_room(name, memtable::cost(key.len(), value.bytes().len()))?;
        self.set_in_room(space, key, sequence, value)
    }

    /// The merge operator of a keyspace. It is searched for once.
    fn operator(&mut self, space: u32) -> Option<SharedOperator> {
        if let Some(operator) = self.operators.get(&space) {
            return Some(operator.clone());
        }
        let of_space = |one: &&Arc<Space>| one.id == space;
        let operator = self.catalog.spaces.values().find(of_space)?.operator()?.clone();
        self.operators.insert(space, operator.clone());
        Some(operator)
    }

    fn set_in_room(&mut self, space: u32, key: &[u8], sequence: u64, value: Entry<'_>) -> Result<()> {
        let nobody = BTreeMap::new();
        let wanted = wanted(&self.reading, sequence, &nobody);
        self.memtable.set(space, key, sequence, value, &wanted, &mut self.scratch)
    }

    fn delete_range(
        &mut self,
        name: Name,
        space: u32,
        (start, end): (&[u8], Option<&[u8]>),
        sequence: u64,
    ) -> Result<()> {
        self.check(name, space, start, sequence)?;
        self.check(name, space, end.unwrap_or_default(), sequence)?;
        if spans::is_empty(start, end) {
            return Err(disk::damaged(name, 0, format!("change {sequence} deletes a range without keys")));
        }
        let cost = memtable::range_cost(start.len(), end.map_or(0, <[u8]>::len));
        if self.memtable.fragments() >= FRAGMENTS_MOST {
            self.freeze(name.number, cost)?;
        }
        self.make_room(name, cost)?;
        let (mut deleted, nobody) = (Spans::default(), BTreeMap::new());
        deleted.insert(start.to_vec(), end.map(<[u8]>::to_vec));
        self.memtable.delete_ranges(space, &deleted, sequence, &wanted(&self.reading, sequence, &nobody));
        Ok(())
    }

    fn check(&self, name: Name, space: u32, key: &[u8], sequence: u64) -> Result<()> {
        let what = if !self.catalog.has(space) {
            "is in a keyspace that does not exist".to_string()
        } else if key.len() > forrest_engine::MAX_KEY_BYTES {
            format!("has a key of {} bytes", key.len())
        } else {
            return Ok(());
        };
        Err(disk::damaged(name, 0, format!("change {sequence} {what}")))
    }

    /// Sees to it that a change of `cost` bytes fits.
    fn make_room(&mut self, name: Name, cost: usize) -> Result<()> {
        if self.memtable.bytes() >= self.builder.memtable_bytes || !self.memtable.has_room(cost) {
            self.freeze(name.number, cost)?;
        }
        Ok(())
    }

    /// Goes on with an empty memtable, whose first change is in a log and takes `cost` bytes.
    fn freeze(&mut self, log: u64, cost: usize) -> Result<()> {
        let memtable = Arc::new(Memtable::new(&self.builder, self.memtable.spare(), log, cost)?);
        self.memtable.freeze(Arc::new(self.catalog.clone()), self.sequence);
        let full = std::mem::replace(&mut self.memtable, memtable);
        self.immutable.insert(0, full);
        let waiting: usize = self.immutable.iter().map(|memtable| memtable.bytes()).sum();
        match self.core {
            Some(core) if waiting >= core.backlog_bytes_most() => self.flush(core),
            _ => Ok(()),
        }
    }

    /// Makes tables of the oldest memtables, until no more wait than may.
    fn flush(&mut self, core: &Core) -> Result<()> {
        self.install(core);
        while core.backlog_bytes() >= core.backlog_bytes_most() {
            match core.step() {
                Ok(true) => {}
                Ok(false) => break,
                // There is no space for a table. What was read stays in memory.
                Err(error) if core.is_harmless(&error) => break,
                Err(error) => return Err(error),
            }
        }
        self.immutable = core.order().version.immutable.clone();
        Ok(())
    }

    /// Gives the memtables to a store, as they are.
    pub(crate) fn install(&self, core: &Core) {
        let mut order = core.order();
        let version = order.version.with_memtables(self.memtable.clone(), self.immutable.clone());
        // Dropping the old version closes no files, because the new one has all of them.
        let _ = core.set_version(&mut order, version);
    }

    /// Whether the end of the log that was just read is missing, before these.
    ///
    /// # Errors
    /// `Corrupt` if it had been synced.
    fn is_torn(&self, rest: &[Read]) -> Result<bool> {
        let vouching = || {
            for log in rest {
                if wal::replay(self.disk, &log.file, log.number, None, |_, _| Ok(()))?.vouches {
                    return Ok(Some(log.number));
                }
            }
            Ok(None)
        };
        let next = &rest[0];
        match next.head.tail_before(next.number, self.end.offset, vouching)? {
            Tail::There => Ok(false),
            Tail::Torn => Ok(true),
            Tail::Damaged(by) => {
                let what =
                    format!("the end of the log is missing, and {} says that it was synced", Name::log(by));
                Err(disk::damaged(Name::log(self.end.number), self.end.offset, what))
            }
        }
    }
}

/// The versions that readers may want while a change is applied.
fn wanted<'r>(
    reading: &'r Option<(u64, Arc<Numbers>)>,
    sequence: u64,
    nobody: &'r BTreeMap<u64, usize>,
) -> Wanted<'r> {
    match reading {
        None => Wanted { visible: sequence, snapshots: nobody },
        Some((visible, snapshots)) => Wanted { visible: *visible, snapshots },
    }
}

fn has_records(disk: &Sealed, file: &SealedFile, number: u64) -> Result<bool> {
    Ok(wal::replay(disk, file, number, None, |_, _| Ok(()))?.end > record::HEADER as u64)
}

/// The logs with changes that are in no table, in order: from the newest one back to the floor, along each
/// log's statement of the previous one. Any other logs were given up by an earlier recovery, or never used.
pub(crate) fn chain(disk: &Sealed, logs: &[u64], floor: u64) -> Result<Vec<Read>> {
    let mut used = BTreeMap::new();
    for &number in logs {
        let file = disk::open(disk, Name::log(number))?;
        if let Some(head) = wal::head(disk, &file, number)? {
            used.insert(number, (file, head));
        }
    }
    while let Some((&number, (file, head))) = used.last_key_value()
        && number != floor
        && head.is_void(|before| used.contains_key(&before), || has_records(disk, file, number))?
    {
        used.remove(&number);
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

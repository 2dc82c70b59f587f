//! The manifest: which keyspaces, tables and logs make up the store. A log of edits, each synced before it
//! takes effect.
//!
//! A new manifest begins with the whole state. It and its name are synced before the old one is removed, and
//! the removal is durable before the new one takes an edit. So if two are found, they have the same state,
//! and the newest complete one is taken. A store that is opened makes a new one for its first edit.

pub(crate) mod format;

pub(crate) use format::Edit;

use crate::codec::Parts;
use crate::disk::{self, Disk, Kind, Name, Sealed, SealedFile, Write};
use crate::record;
use forrest_engine::{Compression, Error, ErrorKind, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A manifest that has grown by this many bytes is replaced by a new one.
const GROWTH: u64 = 256 << 10;

/// The files of a partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Files {
    /// Number of the REMIX; 0 if there is none.
    pub(crate) remix: u64,
    /// Numbers of the tables, from the oldest on.
    pub(crate) tables: Vec<u64>,
}

impl Files {
    /// Their names.
    pub(crate) fn names(self) -> impl Iterator<Item = Name> {
        let remix = (self.remix != 0).then_some(Name::remix(self.remix));
        self.tables.into_iter().map(Name::table).chain(remix)
    }
}

/// Partitions of a keyspace, each by its least key.
pub(crate) type Partitions = BTreeMap<Vec<u8>, Files>;

/// The state that a manifest records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ManifestState {
    /// Names of keyspaces by identifier.
    pub(crate) keyspaces: BTreeMap<u32, String>,
    /// The compression of the keyspaces for which one was chosen.
    pub(crate) compression: BTreeMap<u32, Compression>,
    /// The names of the merge operators of the keyspaces that have one.
    pub(crate) operators: BTreeMap<u32, String>,
    /// The times to live of the values of keyspaces, in milliseconds, where they are not to stay.
    pub(crate) ttls: BTreeMap<u32, u64>,
    /// The identifier of the next keyspace.
    pub(crate) next: u32,
    /// The first log that is still needed.
    pub(crate) floor: u64,
    /// The partitions of the keyspaces that have any.
    pub(crate) partitions: BTreeMap<u32, Partitions>,
    /// The changes up to this sequence number are in the keyspaces and partitions above.
    pub(crate) covered: u64,
    /// A log, and the length up to which it was synced; 0 and 0 if that is not stated.
    pub(crate) whole: (u64, u64),
    /// The logs that are kept for values in them, with their lengths.
    pub(crate) logs: BTreeMap<u64, u64>,
    /// Whether logs and tables may have operands of merges.
    pub(crate) has_operands: bool,
}

impl ManifestState {
    /// Applies an edit; false if it contradicts the state.
    pub(crate) fn apply(&mut self, edit: Edit) -> bool {
        match edit {
            Edit::Keyspace { id, name } => return self.keyspaces.insert(id, name).is_none(),
            Edit::NoKeyspace { id } => {
                self.partitions.remove(&id);
                self.compression.remove(&id);
                self.operators.remove(&id);
                self.ttls.remove(&id);
                return self.keyspaces.remove(&id).is_some();
            }
            Edit::Next { id } => self.next = id,
            Edit::Floor { log } => self.floor = log,
            Edit::Partition { space, low, remix, tables } => {
                self.partitions.entry(space).or_default().insert(low, Files { remix, tables });
            }
            Edit::NoPartition { space, low } => {
                let partitions = self.partitions.entry(space).or_default();
                return partitions.remove(&low).is_some();
            }
            Edit::Covered { sequence } => self.covered = sequence,
            Edit::Whole { log, end } => self.whole = (log, end),
            Edit::Compression { space, method } => {
                self.compression.insert(space, method);
                return self.keyspaces.contains_key(&space);
            }
            Edit::Ttl { space, ms } => {
                match ms {
                    0 => self.ttls.remove(&space),
                    ms => self.ttls.insert(space, ms),
                };
                return self.keyspaces.contains_key(&space);
            }
            Edit::Operator { space, name } => {
                return self.operators.insert(space, name).is_none() && self.keyspaces.contains_key(&space);
            }
            Edit::Keep { log, bytes } => {
                self.logs.insert(log, bytes);
            }
            Edit::NoKeep { log } => return self.logs.remove(&log).is_some(),
            Edit::Operands => self.has_operands = true,
        }
        true
    }

    /// The edits that make this state out of an empty one.
    pub(crate) fn edits(&self) -> impl Iterator<Item = Edit> {
        let keyspaces = self.keyspaces.iter().map(|(&id, name)| Edit::Keyspace { id, name: name.clone() });
        let compression =
            self.compression.iter().map(|(&space, &method)| Edit::Compression { space, method });
        let ttls = self.ttls.iter().map(|(&space, &ms)| Edit::Ttl { space, ms });
        let operators =
            self.operators.iter().map(|(&space, name)| Edit::Operator { space, name: name.clone() });
        let numbers = [Edit::Next { id: self.next }, Edit::Floor { log: self.floor }];
        let covered = (self.covered > 0).then_some(Edit::Covered { sequence: self.covered });
        let (log, end) = self.whole;
        let whole = (log > 0).then_some(Edit::Whole { log, end });
        let logs = self.logs.iter().map(|(&log, &bytes)| Edit::Keep { log, bytes });
        let partitions = self.partitions.iter().flat_map(|(&space, partitions)| {
            partitions.iter().map(move |(low, files)| Edit::Partition {
                space,
                low: low.clone(),
                remix: files.remix,
                tables: files.tables.clone(),
            })
        });
        keyspaces
            .chain(compression)
            .chain(operators)
            .chain(ttls)
            .chain(numbers)
            .chain(covered)
            .chain(whole)
            .chain(logs)
            .chain(self.has_operands.then_some(Edit::Operands))
            .chain(partitions)
    }

    /// The version of a manifest that has this state.
    pub(crate) fn version(&self) -> u32 {
        if self.has_operands { record::MANIFEST } else { record::MANIFEST_WITHOUT_OPERANDS }
    }

    /// All tables and REMIXes that the state names.
    pub(crate) fn files(&self) -> impl Iterator<Item = Name> {
        self.partitions.values().flat_map(BTreeMap::values).flat_map(|files| files.clone().names())
    }
}

/// The manifest of an open store.
pub(crate) struct Manifest {
    disk: Arc<Sealed>,
    state: ManifestState,
    /// `None` until the first commit.
    file: Option<Appended>,
    /// The file that the next commit goes on in, made with its space.
    next: Option<(Name, SealedFile)>,
    /// Older manifests whose state somebody holds, each with the number of the one that came after it.
    held: Vec<(Name, u64)>,
    /// Files that the state no longer names, and that a held one may name. Their lengths, once they were asked for.
    waiting: BTreeMap<Name, Option<u64>>,
}

/// A manifest that edits are appended to.
struct Appended {
    name: Name,
    file: SealedFile,
    /// Where the next record goes, and the initial length of the file.
    end: u64,
    first_end: u64,
    /// Up to where it is synced. After that is at most a statement.
    synced: u64,
}

impl Appended {
    /// States, in a record without edits, that all before it is synced. Without it, damage in the last record could not
    /// be distinguished from a torn write, and the store would open in the state before it.
    fn vouch(&mut self, disk: &Sealed) {
        let Appended { name, file, end, synced, .. } = self;
        let mut record = Vec::new();
        record::begin(&mut record, *end, Some(*synced), disk.is_sealed());
        record::finish(&mut record, *name, *end, disk.cipher(file));
        let len = record.len() as u64;
        // DURABILITY: it is written after the sync and is not synced itself. If it is lost, nothing else is. If it
        // cannot be written, the next record takes its place.
        let mut write = Write { offset: *end, bytes: record, done: 0, sync: false };
        if disk::write_all(disk, file, *name, &mut write).is_ok() {
            *end += len;
        }
    }
}

impl Manifest {
    /// A manifest with a state that was read. Its first commit makes a new file.
    pub(crate) fn of(disk: &Arc<Sealed>, state: ManifestState) -> Manifest {
        Manifest {
            disk: disk.clone(),
            state,
            file: None,
            next: None,
            held: Vec::new(),
            waiting: BTreeMap::new(),
        }
    }

    /// Creates a manifest with this state and removes all others. Durable when it returns.
    pub(crate) fn create(disk: &Arc<Sealed>, number: u64, state: ManifestState) -> Result<Manifest> {
        let mut manifest = Manifest::of(disk, state);
        manifest.renew(number)?;
        Ok(manifest)
    }

    /// The first record, which makes the whole state; it is still to be finished.
    fn beginning(&self) -> Vec<u8> {
        let mut record = Vec::new();
        record::begin(&mut record, record::HEADER as u64, None, self.disk.is_sealed());
        self.state.edits().for_each(|edit| edit.put(&mut record));
        record
    }

    /// Length of a file that has only that, and the statement after it.
    fn beginning_bytes(&self) -> u64 {
        (record::HEADER + self.beginning().len()) as u64 + record::OVERHEAD_MAX
    }

    /// Goes on in a file that was just created, and removes all others that nobody holds. Durable when it returns.
    fn begin(&mut self, name: Name, file: SealedFile) -> Result<()> {
        let disk = &*self.disk;
        let cipher = disk.cipher(&file);
        let mut record = self.beginning();
        record::finish(&mut record, name, record::HEADER as u64, cipher);
        let mut bytes = record::header(name, self.state.version(), [0; 4], cipher).to_vec();
        bytes.append(&mut record);
        let end = bytes.len() as u64;
        let mut write = Write { bytes, sync: true, ..Write::default() };
        disk::write_all(disk, &file, name, &mut write)?;
        let mut begun = Appended { name, file, end, first_end: end, synced: end };
        begun.vouch(disk);
        // DURABILITY: the new name is durable before the old one goes, and that before an edit makes the two
        // differ.
        disk::sync_directory(disk, Kind::Manifest)?;
        let old = |other: &Name| other.kind == Kind::Manifest && *other != name;
        let known = self.file.as_ref().map(|file| file.name);
        // The new manifest is in use. If the directory cannot be listed now, the old one counts as held.
        let found = disk::list(disk).unwrap_or_else(|_| known.into_iter().collect());
        for other in found.into_iter().filter(old) {
            if !disk::is_held(disk, other) {
                disk::unlink(disk, other)?;
            } else if !self.held.iter().any(|(held, _)| *held == other) {
                self.held.push((other, name.number));
            }
        }
        disk::sync_directory(disk, Kind::Manifest)?;
        self.file = Some(begun);
        Ok(())
    }

    pub(crate) fn state(&self) -> &ManifestState {
        &self.state
    }

    /// Takes the space for a commit of edits. `number` returns the number of a new file if one is due. If there is no
    /// space for that, an old one goes on.
    ///
    /// # Errors
    /// `OutOfSpace`, `Io`; nothing has changed then.
    pub(crate) fn reserve(&mut self, edits: &[Edit], number: impl FnOnce() -> u64) -> Result<()> {
        let mut bytes = Vec::new();
        edits.iter().for_each(|edit| edit.put(&mut bytes));
        // With the statement after it.
        let more = bytes.len() as u64 + 2 * record::OVERHEAD_MAX;
        if self.file.as_ref().is_none_or(|open| open.end > open.first_end + GROWTH) {
            let name = Name::manifest(number());
            let bytes = self.beginning_bytes() + more;
            match disk::create_reserved(&*self.disk, name, bytes) {
                Err(error) if error.kind() == ErrorKind::OutOfSpace && self.file.is_some() => {}
                made => {
                    self.next = Some((name, made?));
                    return Ok(());
                }
            }
        }
        let Appended { name, file, end, .. } = self.file.as_ref().expect("there is one, or it was just made");
        disk::reserve(&*self.disk, file, *name, end + more)
    }

    /// Makes a new file for the next commit, with its space.
    ///
    /// # Errors
    /// `OutOfSpace`, `Io`; nothing has changed then.
    pub(crate) fn reserve_new(&mut self, number: u64) -> Result<()> {
        let name = Name::manifest(number);
        let bytes = self.beginning_bytes() + record::OVERHEAD_MAX;
        self.next = Some((name, disk::create_reserved(&*self.disk, name, bytes)?));
        Ok(())
    }

    /// From now on logs and tables may have operands of merges. Goes on in the new file, which has another version.
    /// Durable when it returns. REQUIRES: the file was made.
    ///
    /// # Errors
    /// `Io`; it is unknown then which manifest is in use.
    pub(crate) fn begin_operands(&mut self) -> Result<()> {
        let (name, file) = self.next.take().expect("it was made");
        self.state.has_operands = true;
        self.begin(name, file)
    }

    /// Begins a new file with the state of today. What an older one has does not count any more, also if a write or a
    /// sync of that has failed. Durable when it returns.
    ///
    /// # Errors
    /// `Io`, `OutOfSpace`.
    pub(crate) fn renew(&mut self, number: u64) -> Result<()> {
        self.next = None;
        let name = Name::manifest(number);
        let file = disk::create_reserved(&*self.disk, name, self.beginning_bytes())?;
        self.begin(name, file)
    }

    /// Adds files that the state does not name, to be removed.
    pub(crate) fn add_waiting(&mut self, files: impl IntoIterator<Item = Name>) {
        for name in files {
            self.waiting.entry(name).or_default();
        }
    }

    /// Whether files wait to be removed.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether edits were made since the store was opened.
    pub(crate) fn is_begun(&self) -> bool {
        self.file.is_some()
    }

    /// Removes the files that wait, as soon as nobody holds a state that names them. Logs that were given up stay until
    /// a new log follows those that count, and `log_follows`. `number` returns the number of a new manifest.
    ///
    /// Who reads the store holds a manifest, not a state. So if the manifest of today is held, a new one is made:
    /// those who read this one have the state of today, at most, and all others the new one.
    ///
    /// # Errors
    /// `Io`; it is unknown then which manifest is in use.
    pub(crate) fn remove_waiting(&mut self, log_follows: bool, number: impl FnOnce() -> u64) -> Result<()> {
        let disk = self.disk.clone();
        let disk = &*disk;
        if self.file.is_none() {
            // Older states are those of the manifests that were found.
            let found = disk::list(disk).unwrap_or_default();
            let mut manifests = found.into_iter().filter(|name| name.kind == Kind::Manifest);
            if manifests.any(|name| disk::is_held(disk, name)) {
                return Ok(());
            }
        }
        if self.file.as_ref().is_some_and(|file| disk::is_held(disk, file.name)) {
            let name = Name::manifest(number());
            match disk::create_reserved(disk, name, self.beginning_bytes()) {
                Ok(file) => self.begin(name, file)?,
                // The next removal tries again.
                Err(_) => return Ok(()),
            }
        }
        self.held.retain(|(name, _)| {
            let is_held = disk::is_held(disk, *name);
            if !is_held {
                let _ = disk::unlink(disk, *name);
            }
            is_held
        });
        let (held, floor) = (&self.held, self.state.floor);
        self.waiting.retain(|name, _| {
            // What was made after a held manifest was replaced is not named by it.
            let is_needed = held.iter().any(|(_, next)| name.number < *next);
            let is_given_up = name.kind == Kind::Log && name.number >= floor;
            let is_needed = is_needed || (is_given_up && !log_follows);
            if !is_needed {
                // What cannot be removed now is removed when the store is opened.
                let _ = disk::unlink(disk, *name);
            }
            is_needed
        });
        Ok(())
    }

    /// Bytes of the files that wait until nobody holds a state that names them.
    pub(crate) fn waiting_bytes(&mut self) -> u64 {
        let disk = &*self.disk;
        let len = |name: Name| disk::len(disk, &disk::open(disk, name)?, name);
        for (&name, bytes) in self.waiting.iter_mut().filter(|(_, bytes)| bytes.is_none()) {
            *bytes = len(name).ok();
        }
        self.waiting.values().flatten().sum()
    }

    /// Takes the state of a manifest that another process has written.
    pub(crate) fn follow(&mut self, state: ManifestState) {
        self.state = state;
    }

    /// Commits edits together, for which space was reserved. Durable when it returns. After an error it is unknown
    /// whether they took place.
    pub(crate) fn commit(&mut self, edits: Vec<Edit>) -> Result<()> {
        if let Some((name, file)) = self.next.take() {
            self.begin(name, file)?;
        }
        let Appended { name, file, end, synced, .. } = self.file.as_mut().expect("space was reserved in it");
        let mut record = Vec::new();
        record::begin(&mut record, *end, Some(*synced), self.disk.is_sealed());
        edits.iter().for_each(|edit| edit.put(&mut record));
        record::finish(&mut record, *name, *end, self.disk.cipher(file));
        let len = record.len() as u64;
        let mut write = Write { offset: *end, bytes: record, done: 0, sync: true };
        // DURABILITY: synced before the first file that the new state no longer names is removed.
        disk::write_all(&*self.disk, file, *name, &mut write)?;
        *end += len;
        *synced = *end;
        for edit in edits {
            let sense = self.state.apply(edit);
            debug_assert!(sense, "an edit that makes no sense");
        }
        self.file.as_mut().expect("it was just written").vouch(&self.disk);
        Ok(())
    }
}

/// The state in a manifest, and the end of its last record that has edits; `None` if its creation was not completed.
///
/// # Errors
/// `Corrupt`, `Io`; `Unsupported` for a manifest of another version.
pub(crate) fn read(disk: &Sealed, name: Name) -> Result<Option<(ManifestState, u64)>> {
    let file = disk::open(disk, name)?;
    if record::fields_of(disk, &file, name)?.is_none() {
        record::unused(disk, &file, name)?;
        return Ok(None);
    }
    let (mut state, mut statement) = (None, None);
    let records = record::replay(disk, &file, name, record::HEADER as u64, |at, _, body| {
        let malformed = || disk::damaged(name, at, "a record with a valid checksum is malformed");
        statement = body.is_empty().then_some(at);
        if body.is_empty() {
            return Ok(());
        }
        let state = state.get_or_insert_with(ManifestState::default);
        let mut parts = Parts(body);
        while !parts.is_empty() {
            let edit = Edit::take(&mut parts).ok_or_else(malformed)?;
            if !state.apply(edit) {
                return Err(malformed());
            }
        }
        Ok(())
    })?;
    // The statement after it may be lost with the power.
    Ok(state.map(|state| (state, statement.unwrap_or(records.end))))
}

/// What is intact of a manifest.
pub(crate) struct Salvaged {
    /// What the intact records make; `None` if there are none.
    pub(crate) state: Option<ManifestState>,
    /// Whether its first record is intact, which makes a whole state.
    pub(crate) begins: bool,
    pub(crate) damage: Option<Error>,
}

/// Reads what is intact of a manifest. If its first record is not, the others change `before`. A damaged header alone
/// is no damage: it has only the version.
///
/// # Errors
/// `Io`; `Unsupported` for a manifest of another version.
pub(crate) fn salvage(disk: &Sealed, name: Name, before: &ManifestState) -> Result<Salvaged> {
    let file = disk::open(disk, name)?;
    match record::fields_of(disk, &file, name) {
        // It is reported below.
        Err(error) if disk::is_damage(&error) => {}
        fields => drop(fields?),
    }
    let (mut state, mut wrong, mut begins) = (None, None, false);
    let records = record::intact(disk, &file, name, |at, is_after, body| {
        if body.is_empty() {
            // A statement alone makes no state.
            return Ok(());
        }
        begins |= !is_after;
        let state =
            state.get_or_insert_with(|| if is_after { before.clone() } else { ManifestState::default() });
        let mut parts = Parts(body);
        while !parts.is_empty() {
            // After damage an edit may contradict what is known.
            let is_applied = Edit::take(&mut parts).map(|edit| state.apply(edit) || is_after);
            if is_applied != Some(true) {
                wrong = Some(disk::damaged(name, at, "a record with a valid checksum is malformed"));
                return Ok(());
            }
        }
        Ok(())
    })?;
    let is_damaged = records.synced > records.end;
    let damage = records.unreadable.or(wrong);
    let damage =
        damage.or_else(|| is_damaged.then(|| disk::damaged(name, records.end, "a record is damaged")));
    Ok(Salvaged { state, begins, damage })
}

//! Salvage: everything in the directory of a damaged store that verifies is copied to a new store.
//!
//! It opens no store and writes nothing to the old directory. It reads the manifest, then the tables of each partition
//! from the oldest on, then the logs, and makes the same changes in a new store by its ordinary write path. So a newer
//! version of a key replaces an older one, and a tombstone deletes it.
//!
//! Only what its checksum confirms is copied. What does not verify is skipped and reported as a [`Loss`]: a range of
//! keys of a keyspace. It guarantees that each key outside of the reported ranges has exactly the value that it had in
//! the old store. A key in a reported range has a value that it once had, or none.
//!
//! | damage | what is copied | what is reported |
//! |---|---|---|
//! | a page of a table with keys | the table's other blocks | from the key before to the key after |
//! | a page with values | the other pairs | each key whose value it has |
//! | a table's footer or index, or the file is missing | the partition's other tables | the partition |
//! | a REMIX | everything: it is not read | nothing |
//! | a record of a log | the records before it and after it | all keys, with the numbers of the changes |
//! | a whole log | the other logs | all keys |
//! | the directory of the logs, if they have their own | the tables | all keys |
//! | a record of the manifest | the tables that the other records name, and the logs | all keys |
//! | the first record of the manifest | the same; an older manifest that is still there has what it had | all keys |
//! | all records of the manifest | nothing, and it fails | |
//!
//! A place that the device cannot read is damaged. It is read around, in blocks of 4 KiB.
//!
//! A record after damage is recognized by its checksum, which is made for its place in its file. A table does not state
//! its keyspace. So nothing can be copied without a manifest, and tables that it does not name are left out.
//!
//! Operands of merges are applied to what was copied by then. If that is not certain, because something was lost or
//! the operator is not known, the key stays as it is, and is reported.
//!
//! As in the recovery of a store, changes after the last sync that is known of are not distinguished from a torn write.
//!
//! Nobody may change the store meanwhile: beside a writer, files that are replaced would look like losses. So the
//! directory is locked, together with other salvages.

use crate::backup::Progress;
use crate::cache::Cache;
use crate::catalog::Space;
use crate::core::Handle;
use crate::disk::{self, Kind, Name, Real, Sealed, SealedFile, Unfinished};
use crate::manifest::{self, Files, ManifestState, Salvaged as Manifest};
use crate::operands;
use crate::record;
use crate::table::{self, Table, TableCursor};
use crate::values::{Kept, Values};
use crate::wal::{self, Change, Head, Tail};
use crate::wrapped::{self, Wrapped};
use forrest_engine::Expires;
use forrest_engine::bounds::successor;
use forrest_engine::merge::{Operators, SharedOperator};
use forrest_engine::{
    DEFAULT_KEYSPACE, Direction, Durability, EncryptionKey, Error, ErrorKind, MAX_KEY_BYTES, Op, Options,
    Pages, Result, View as _,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, ControlFlow};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Changes are written in batches of about this many bytes, and at most this number of changes.
const BATCH_BYTES: usize = 1 << 20;
const BATCH_OPS: usize = 1024;
/// Bytes of the page cache for the old tables, and of the one of the new store.
const CACHE_BYTES: usize = 4 << 20;
/// Entries that are read between two calls of who watches.
const STEP: u32 = 64;
/// Longest wait for memory. The new store has no other writer.
const WAIT: Duration = Duration::from_secs(24 * 3600);

/// A range of keys of which something was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// The keyspace in the new store, which is called `keyspace-N` if its name is lost; `(unknown)` for keyspaces that
    /// nothing else shows.
    pub keyspace: String,
    /// The bounds of the range.
    pub range: (Bound<Vec<u8>>, Bound<Vec<u8>>),
    /// The damaged or missing file, in the directory of the old store.
    pub file: String,
    /// What is wrong with it, and what that means.
    pub reason: String,
}

impl Loss {
    /// The range as a first key, which is included, and an end, which is not; `None` if it has no end.
    pub fn half_open(&self) -> (Vec<u8>, Option<Vec<u8>>) {
        let start = match &self.range.0 {
            Bound::Included(key) => key.clone(),
            // If there is no greater key, a range with only this key.
            Bound::Excluded(key) => successor(key).unwrap_or_else(|| key.clone()),
            Bound::Unbounded => Vec::new(),
        };
        let end = match &self.range.1 {
            Bound::Included(key) => successor(key),
            Bound::Excluded(key) => Some(key.clone()),
            Bound::Unbounded => None,
        };
        (start, end)
    }
}

/// What a salvage copied, and what it could not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Salvaged {
    /// Number of keyspaces of the new store.
    pub keyspaces: u64,
    /// Number of pairs in the new store.
    pub pairs: u64,
    /// The ranges of which something was lost, in the order in which they were found; none if nothing was.
    pub lost: Vec<Loss>,
}

/// Copies what is intact in the store at `from` to a new store at `to`. `see` is called now and then, and may end it.
/// `key` is that of an encrypted store, and of the new one.
///
/// # Errors
/// `Corrupt` if no record of a manifest can be read; `InvalidArgument` if something is at `to`; `Busy` if the store is
/// open, with the process that has it, or if `see` broke; `Unsupported` for a file of another version; `Io`,
/// `OutOfSpace`. After an error there is nothing at `to`.
pub fn salvage(
    from: &Path,
    key: Option<&EncryptionKey>,
    to: &Path,
    see: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Salvaged> {
    let advice = "; salvage copies a store that nobody has open to change it";
    let (old, no_logs) = Real::open_damaged(from, advice)?;
    let old = Sealed::with(old, key, true, false)?;
    let unfinished = Unfinished::begin(to, Some(old.real()?))?;
    let new = Sealed::with(unfinished.disk()?, key, false, true)?;
    let salvaged = copy(old, new, no_logs, see)?;
    unfinished.finish()?;
    Ok(salvaged)
}

/// The same for any disks. `to` is an empty one. `no_logs` says why the directory of the logs cannot be read, if so.
pub(crate) fn copy(
    from: Sealed,
    to: Sealed,
    no_logs: Option<Error>,
    see: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Salvaged> {
    let names = disk::list(&from)?;
    let (manifest, mut state, damage) = newest(&from, &names)?;
    let options = Options {
        durability: Some(Durability::Memory),
        cache_bytes: CACHE_BYTES,
        pages: Pages::Plain,
        wait: WAIT,
        ..Options::default()
    };
    let store = Handle::open(to, &options)?;
    let cache = Arc::new(Cache::new(CACHE_BYTES, options.pages, options.numa));
    let from = Arc::new(from);
    // Whatever the manifest says of them: each value has a checksum.
    let values = Values::new(&from);
    let _logs = open_logs(&from, &values, &names)?;
    let whole = names.iter().filter(|name| matches!(name.kind, Kind::Table | Kind::Log));
    let whole = whole.map(|&name| length(&from, name)).sum();
    if damage.is_some() && !state.keyspaces.values().any(|name| name == DEFAULT_KEYSPACE) {
        // A store is created with it.
        state.keyspaces.entry(0).or_insert(DEFAULT_KEYSPACE.to_string());
    }
    let mut salvage = Salvage {
        from,
        cache,
        values,
        kept: state.logs.keys().copied().collect(),
        spaces: BTreeMap::new(),
        operators: BTreeMap::new(),
        batch: Batch { store, ops: Vec::new(), bytes: 0 },
        is_guessed: damage.is_some(),
        names: state.keyspaces.values().cloned().collect(),
        lost: Vec::new(),
        lost_anywhere: Vec::new(),
        progress: Progress { done: 0, whole },
        see,
    };
    salvage.run(&names, manifest, &state)?;
    if let Some(error) = damage {
        let what = format!("{}; keyspaces and tables that only it named are lost", error.message());
        salvage.lost_all(manifest, &what);
    }
    if let Some(error) = no_logs {
        salvage.lost_all(Name::log(state.floor), error.message());
    }
    salvage.finish()
}

/// Opens all logs, as far as they can be opened.
fn open_logs(disk: &Sealed, values: &Values, names: &[Name]) -> Result<Vec<Arc<Kept>>> {
    let logs = names.iter().filter(|name| name.kind == Kind::Log);
    logs.map(|&name| values.open(name.number, length(disk, name))).collect()
}

/// The length of a file, or 0 if it cannot be found out.
fn length(disk: &Sealed, name: Name) -> u64 {
    disk::open(disk, name).and_then(|file| disk::len(disk, &file, name)).unwrap_or(0)
}

/// The newest manifest of which a record can be read, and what is wrong with it or a newer one.
fn newest(disk: &Sealed, names: &[Name]) -> Result<(Name, ManifestState, Option<Error>)> {
    let mut damage = None;
    for (at, &name) in names.iter().enumerate().rev().filter(|(_, name)| name.kind == Kind::Manifest) {
        match manifest::salvage(disk, name, &ManifestState::default()) {
            Ok(Manifest { state: Some(mut state), begins, damage: error }) => {
                // A manifest begins with the last state of the one before it, which may be there still.
                if !begins && let Ok((_, before, _)) = newest(disk, &names[..at]) {
                    state = manifest::salvage(disk, name, &before)?.state.unwrap_or(state);
                }
                return Ok((name, state, damage.or(error)));
            }
            Ok(Manifest { damage: error, .. }) => damage = damage.or(error),
            Err(error) if disk::is_unreadable(&error) => damage = damage.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    let why = damage.map_or("there is none".to_string(), |error| error.message().to_string());
    Err(Error::new(
        ErrorKind::Corrupt,
        format!(
            "no manifest can be read, and only a manifest states which table belongs to which keyspace: {why}"
        ),
    ))
}

/// Changes of the new store that are made together.
struct Batch {
    store: Handle,
    ops: Vec<(Arc<Space>, Op)>,
    bytes: usize,
}

impl Batch {
    fn add(&mut self, space: &Arc<Space>, op: Op<&[u8]>) -> Result<()> {
        let _lengths = op.map(|bytes| self.bytes += bytes.len());
        self.ops.push((space.clone(), op.map(|bytes| bytes.to_vec())));
        if self.bytes >= BATCH_BYTES || self.ops.len() >= BATCH_OPS { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        let ops: Vec<_> = self.ops.iter().map(|(space, op)| (space, op.borrowed())).collect();
        // There is no condition.
        let _applied = self.store.write(&ops, None)?;
        self.ops.clear();
        self.bytes = 0;
        Ok(())
    }
}

/// A log of the old store.
struct OldLog {
    name: Name,
    file: SealedFile,
    /// `None` if it is damaged.
    head: Option<Head>,
    records: record::Intact,
}

/// A salvage under way.
struct Salvage<'s> {
    from: Arc<Sealed>,
    cache: Arc<Cache>,
    /// The values that tables have in logs.
    values: Arc<Values>,
    /// The logs that the manifest keeps for them.
    kept: BTreeSet<u64>,
    /// The keyspaces of the new store, by their identifiers in the old one.
    spaces: BTreeMap<u32, Arc<Space>>,
    batch: Batch,
    /// The merge operators that are known of keyspaces of the new store, by their identifiers there.
    operators: BTreeMap<u32, SharedOperator>,
    /// Whether the manifest is damaged.
    is_guessed: bool,
    /// The keyspaces that the manifest names.
    names: Vec<String>,
    lost: Vec<Loss>,
    /// What may be of any key: the file, and the reason.
    lost_anywhere: Vec<(Name, String)>,
    progress: Progress,
    see: &'s mut dyn FnMut(Progress) -> ControlFlow<()>,
}

impl Salvage<'_> {
    fn run(&mut self, names: &[Name], manifest: Name, state: &ManifestState) -> Result<()> {
        for (&id, name) in &state.keyspaces {
            let space = self.batch.store.keyspace(name)?;
            if let Some(&method) = state.compression.get(&id) {
                self.batch.store.choose_compression(&space, method)?;
            }
            if let Some(name) = state.operators.get(&id) {
                // Values need no operator here. Operands do.
                self.batch.store.record_operator(&space, name, None)?;
                if let Ok(operator) = Operators::default().get(&space.name, name) {
                    self.operators.insert(space.id, operator.clone());
                }
            }
            self.spaces.insert(id, space);
        }
        for (id, partitions) in &state.partitions {
            let space = match self.spaces.get(id) {
                Some(space) => space.clone(),
                None => self.nameless(*id, manifest)?,
            };
            let mut ends = partitions.keys().skip(1);
            for (low, files) in partitions {
                self.partition(&space, low, ends.next().map(|end| &end[..]), files)?;
            }
        }
        self.logs(names, state)?;
        self.batch.write()?;
        // What was salvaged keeps its time, or has none.
        for (id, &ms) in &state.ttls {
            if let Some(space) = self.spaces.get(id) {
                self.batch.store.choose_ttl(space, Some(Duration::from_millis(ms)))?;
            }
        }
        Ok(())
    }

    /// Completes the new store, and counts what it has.
    fn finish(mut self) -> Result<Salvaged> {
        self.batch.store.flush_all()?;
        self.advance(0)?;
        self.batch.store.settle()?;
        let store = self.batch.store.clone();
        let mut lost = std::mem::take(&mut self.lost);
        let mut names = store.keyspaces()?;
        names.push("(unknown)".to_string());
        // Only now are all keyspaces known.
        for (file, reason) in &self.lost_anywhere {
            lost.extend(names.iter().map(|keyspace| Loss {
                keyspace: keyspace.clone(),
                range: (Bound::Unbounded, Bound::Unbounded),
                file: file.to_string(),
                reason: reason.clone(),
            }));
        }
        let mut salvaged = Salvaged { keyspaces: 0, pairs: 0, lost };
        for name in store.keyspaces()? {
            salvaged.keyspaces += 1;
            let view = store.view(&store.keyspace(&name)?);
            let all = (Bound::Unbounded, Bound::Unbounded);
            // Every value is read.
            let mut going = ControlFlow::Continue(());
            view.scan(all, Direction::Forward, |_, _| {
                salvaged.pairs += 1;
                if salvaged.pairs.is_multiple_of(u64::from(STEP)) {
                    going = (self.see)(self.progress);
                }
                going
            })?;
            if going.is_break() {
                return Err(given_up());
            }
        }
        Ok(salvaged)
    }

    /// Notes that bytes were read; an error if the work is to end.
    fn advance(&mut self, bytes: u64) -> Result<()> {
        self.progress.done += bytes;
        match (self.see)(self.progress) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(given_up()),
        }
    }

    fn lose(
        &mut self,
        space: &Space,
        range: (Bound<Vec<u8>>, Bound<Vec<u8>>),
        file: Name,
        reason: impl Into<String>,
    ) {
        let (keyspace, file) = (space.name.to_string(), file.to_string());
        self.lost.push(Loss { keyspace, range, file, reason: reason.into() });
    }

    /// Notes that something is lost of which the keys are not known.
    fn lost_all(&mut self, file: Name, reason: &str) {
        self.lost_anywhere.push((file, reason.to_string()));
    }

    /// A keyspace whose name is lost with a part of a file.
    fn nameless(&mut self, id: u32, file: Name) -> Result<Arc<Space>> {
        let known: BTreeSet<String> =
            self.batch.store.keyspaces()?.into_iter().chain(self.names.iter().cloned()).collect();
        let mut name = format!("keyspace-{id}");
        while known.contains(&name) {
            name.push('-');
        }
        let space = self.batch.store.keyspace(&name)?;
        self.spaces.insert(id, space.clone());
        self.lose(
            &space,
            (Bound::Unbounded, Bound::Unbounded),
            file,
            "its name is lost, and this is another one",
        );
        Ok(space)
    }

    /// Copies the tables of a partition, from the oldest on.
    fn partition(&mut self, space: &Arc<Space>, low: &[u8], end: Option<&[u8]>, files: &Files) -> Result<()> {
        for &number in &files.tables {
            let name = Name::table(number);
            let opened = Table::open_named(self.from.clone(), name, &self.cache);
            match opened.and_then(|table| table.load().map(|()| table)) {
                Ok(table) => self.table(space, (low, end), &table.with_values(&self.values))?,
                Err(error) if disk::is_unreadable(&error) => {
                    let range = (
                        Bound::Included(low.to_vec()),
                        end.map_or(Bound::Unbounded, |end| Bound::Excluded(end.to_vec())),
                    );
                    let what = match files.tables.len() {
                        1 => "the range has no other table".to_string(),
                        _ => "what other tables have of the range is copied, and may be older".to_string(),
                    };
                    self.lose(space, range, name, format!("{}; {what}", error.message()));
                    self.advance(length(&self.from.clone(), name))?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Copies a table, block by block.
    fn table(&mut self, space: &Arc<Space>, (low, end): (&[u8], Option<&[u8]>), table: &Table) -> Result<()> {
        let mut cursor = TableCursor::walking(table);
        let (entries, each) = (table.entries(), table.plain_bytes() / u64::from(table.entries().max(1)));
        let (mut last, mut gap): (Option<Vec<u8>>, Option<Gap>) = (None, None);
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let mut ordinal = 0;
        while ordinal < entries {
            key.clear();
            let read = cursor.key_into(ordinal, &mut key).and_then(|()| cursor.kind(ordinal));
            let kind = match read {
                Ok(kind) => kind,
                Err(error) if disk::is_unreadable(&error) => {
                    let from = last.take().map_or(Bound::Included(table.least().to_vec()), Bound::Excluded);
                    gap.get_or_insert(Gap { from, to: None, error }).to = None;
                    let next = table::block_after(ordinal).min(entries);
                    self.advance(u64::from(next - ordinal) * each)?;
                    ordinal = next;
                    continue;
                }
                Err(error) => return Err(error),
            };
            value.clear();
            if kind == table::Kind::Wrapped
                && !self.is_guessed
                && let Ok(Some((pointer, _))) = cursor.pointer(ordinal)
                && !self.kept.contains(&pointer.place.log)
            {
                // A newer entry has replaced it.
                last = Some(std::mem::take(&mut key));
                ordinal += 1;
                continue;
            }
            if kind == table::Kind::Wrapped
                && let Ok(Some(operands)) = cursor.operands(ordinal)
            {
                self.lose_gap(space, table.name(), gap.take(), Bound::Excluded(&key));
                if *key >= *low && end.is_none_or(|end| *key < *end) {
                    self.merge(space, &key, &operands, table.name(), true)?;
                }
                last = Some(std::mem::take(&mut key));
                ordinal += 1;
                continue;
            }
            let read = match kind {
                table::Kind::Tombstone => Ok(Op::Delete { key: &key[..] }),
                table::Kind::Value => cursor
                    .value_into(ordinal, &mut value)
                    .map(|()| Op::Set { key: &key[..], value: &value[..] }),
                table::Kind::Wrapped => {
                    let expires_ms = cursor.content_into(ordinal, &mut value);
                    expires_ms.map(|expires_ms| set_of(&key, Wrapped { expires_ms, content: &value }))
                }
            };
            match read {
                Ok(op) => {
                    self.lose_gap(space, table.name(), gap.take(), Bound::Excluded(&key));
                    if *key >= *low && end.is_none_or(|end| *key < *end) {
                        self.batch.add(space, op)?;
                    }
                }
                Err(error) if disk::is_unreadable(&error) => {
                    let from = Bound::Included(key.clone());
                    gap.get_or_insert(Gap { from, to: None, error }).to = Some(key.clone());
                }
                Err(error) => return Err(error),
            }
            last = Some(std::mem::take(&mut key));
            ordinal += 1;
            if ordinal.is_multiple_of(STEP) {
                self.advance(u64::from(STEP) * each)?;
            }
        }
        self.lose_gap(space, table.name(), gap, Bound::Included(table.greatest()));
        Ok(())
    }

    /// Applies operands to what was salvaged of a key so far. If something was lost by then, or the changes before
    /// these are not all known, the key stays as it is.
    fn merge(
        &mut self,
        space: &Arc<Space>,
        key: &[u8],
        operands: &[u8],
        file: Name,
        is_certain: bool,
    ) -> Result<()> {
        let is_certain =
            is_certain && !self.is_guessed && self.lost.is_empty() && self.lost_anywhere.is_empty();
        let what = match (self.operators.get(&space.id).cloned(), is_certain) {
            (Some(operator), true) => {
                self.batch.write()?;
                let old = self.batch.store.view(space).get(key)?;
                let entries = [operands.to_vec()];
                let value = operands::applied(&*operator, key, old.as_deref(), &entries);
                match value {
                    Ok(value) => return self.batch.add(space, Op::Set { key, value: &value }),
                    Err(error) => error.message().to_string(),
                }
            }
            (_, false) => "of what it is to change, something may be lost".to_string(),
            (None, true) => "its merge operator is none of those of every build".to_string(),
        };
        let range = (Bound::Included(key.to_vec()), Bound::Included(key.to_vec()));
        self.lose(space, range, file, format!("a merge is not applied: {what}"));
        Ok(())
    }

    /// Notes what could not be read of a table. `next` is the next key that could, or the last one of the table.
    fn lose_gap(&mut self, space: &Space, file: Name, gap: Option<Gap>, next: Bound<&[u8]>) {
        if let Some(Gap { from, to, error }) = gap {
            let to = to.map_or(next.map(<[u8]>::to_vec), Bound::Included);
            let reason = format!("{}; an older table may have had older values", error.message());
            self.lose(space, (from, to), file, reason);
        }
    }
}

/// Entries of a table, one after the other, that cannot be read.
struct Gap {
    from: Bound<Vec<u8>>,
    /// The last key; `None` if it is not known either.
    to: Option<Vec<u8>>,
    /// The first error.
    error: Error,
}

impl Salvage<'_> {
    /// Makes the changes of the logs.
    fn logs(&mut self, names: &[Name], state: &ManifestState) -> Result<()> {
        let mut used = BTreeMap::new();
        for &name in names.iter().filter(|name| name.kind == Kind::Log && name.number >= state.floor) {
            match self.open_log(name) {
                // It has no changes: an ingest wrote values there.
                Ok(Some(log)) if log.head.is_some_and(|head| head.has_only_values()) => {}
                Ok(Some(log)) => drop(used.insert(name.number, log)),
                Ok(None) => {}
                Err(error) if disk::is_unreadable(&error) => self.lost_all(name, error.message()),
                Err(error) => return Err(error),
            }
        }
        if used.last_key_value().is_none_or(|(&newest, _)| newest < state.whole.0) && state.whole.0 > 0 {
            self.lost_all(Name::log(state.whole.0), "it is missing or empty");
        }
        while let Some((&number, OldLog { head: Some(head), records, .. })) = used.last_key_value()
            && number != state.floor
            && head.is_void(
                |before| used.contains_key(&before),
                || Ok(records.end > record::HEADER as u64 || records.unreadable.is_some()),
            )?
        {
            used.remove(&number);
        }
        let chain = self.chain(used, state.floor);
        let (mut sequence, mut last) = (None, None);
        for (at, log) in chain.iter().enumerate() {
            let end = log.records.end;
            last = Some(log.name);
            sequence = log.head.map(|head| head.first - 1).or(sequence);
            let next = chain.get(at + 1).and_then(|next| next.head);
            let vouching = || {
                let by = chain[at + 1..].iter().find(|log| record::is_vouched(log.records.synced));
                Ok(by.map(|log| log.name.number))
            };
            let tail = match next.filter(|next| next.before.number == log.name.number) {
                Some(next) => next.tail_before(log.name.number, end, vouching)?,
                None => Tail::There,
            };
            // It has records, or may have, that were stated to be synced.
            let is_damaged = log.head.is_none()
                || log.records.unreadable.is_some()
                || log.records.synced > end
                || (state.whole.0 == log.name.number && end < state.whole.1)
                || matches!(tail, Tail::Damaged(_));
            let before = self.log(log, state, sequence, is_damaged)?;
            if is_damaged {
                let first = before.map_or("unknown".to_string(), |last| (last + 1).to_string());
                let to = next.map_or("unknown".to_string(), |next| (next.first - 1).to_string());
                let unread = log.records.unreadable.as_ref();
                let how = unread.map_or("damaged".to_string(), |error| error.message().to_string());
                let what = format!(
                    "{how} at offset {end}; of the changes from number {first} to {to}, those whose records are \
                     intact are copied"
                );
                self.lost_all(log.name, &what);
                sequence = None;
            } else {
                sequence = before;
                if tail == Tail::Torn {
                    // As in a recovery: the rest was never synced.
                    break;
                }
            }
        }
        // Of a log for which that is stated apart, the tables may have more: the store was resumed.
        if let (Some(sequence), Some(last)) = (sequence, last)
            && sequence < state.covered
            && last.number != state.whole.0
        {
            let what =
                format!("it ends after change {sequence}, and changes up to {} were synced", state.covered);
            self.lost_all(last, &what);
        }
        Ok(())
    }

    /// Opens a log; `None` if it was never used.
    fn open_log(&mut self, name: Name) -> Result<Option<OldLog>> {
        let disk = &*self.from;
        let file = disk::open(disk, name)?;
        let head = match wal::head(disk, &file, name.number) {
            Ok(Some(head)) => Some(head),
            Ok(None) => return Ok(None),
            // There are records, or there may be.
            Err(error) if disk::is_damage(&error) => None,
            Err(error) => return Err(error),
        };
        let records = record::intact(disk, &file, name, |_, _, _| Ok(()))?;
        Ok(Some(OldLog { name, file, head, records }))
    }

    /// The logs from the floor on, along each one's statement of the one before it. If that cannot be read or followed,
    /// by their numbers.
    fn chain(&mut self, mut used: BTreeMap<u64, OldLog>, floor: u64) -> Vec<OldLog> {
        let mut chain = Vec::new();
        let mut number = used.last_key_value().map_or(floor, |(&newest, _)| newest);
        loop {
            let log = used.remove(&number);
            if log.is_none() {
                self.lost_all(Name::log(number), "it is missing or empty, and may have had changes");
            }
            let before = log.as_ref().and_then(|log| log.head).map(|head| head.before.number);
            chain.extend(log);
            if number == floor {
                chain.reverse();
                return chain;
            }
            let nearest = used.range(floor..number).next_back().map(|(&nearest, _)| nearest);
            let before = before.filter(|before| (floor..number).contains(before));
            number = before.or(nearest).unwrap_or(floor);
        }
    }

    /// Makes the changes of a log, of which the one before has the number `sequence`; of a damaged one, also those
    /// after the damage. Returns the number of the last change before that.
    fn log(
        &mut self,
        log: &OldLog,
        state: &ManifestState,
        mut sequence: Option<u64>,
        is_damaged: bool,
    ) -> Result<Option<u64>> {
        let from = self.from.clone();
        let mut before = sequence;
        record::intact(&from, &log.file, log.name, |at, is_after, body| {
            if is_after {
                if !is_damaged {
                    return Ok(());
                }
                // It is unknown how many are missing.
                sequence = None;
            }
            let mut parts = crate::codec::Parts(body);
            while !parts.is_empty() {
                let Some(change) = Change::take(&mut parts) else {
                    return Err(disk::damaged(log.name, at, "a record has an unknown change"));
                };
                if matches!(change, Change::Note(_)) {
                    continue;
                }
                sequence = sequence.map(|last| last + 1);
                if sequence.is_none_or(|number| number > state.covered) {
                    self.change(change, state, log.name, sequence.is_some())?;
                }
            }
            if !is_after {
                before = sequence;
            }
            self.advance(body.len() as u64)
        })?;
        Ok(before)
    }

    /// Makes a change. If it `is_next`, no change before it is missing.
    fn change(&mut self, change: Change<'_>, state: &ManifestState, log: Name, is_next: bool) -> Result<()> {
        let (id, keys, op) = match change {
            Change::Wrapped { space, key, bytes } if wrapped::operands(bytes).is_some() => {
                if key.len() > MAX_KEY_BYTES {
                    return Err(disk::damaged(log, 0, format!("a merge with a key of {} bytes", key.len())));
                }
                // A keyspace without a name has no operator either. One that is not there was dropped later.
                let Some(space) = self.spaces.get(&space).cloned() else { return Ok(()) };
                return self.merge(&space, key, bytes, log, is_next);
            }
            Change::Put { space, key, value } => (space, [key, key], Op::Set { key, value }),
            Change::Wrapped { space, key, bytes } => {
                let damaged = || disk::damaged(log, 0, wrapped::FLAW);
                (space, [key, key], set_of(key, Wrapped::read(bytes).ok_or_else(damaged)?))
            }
            Change::Delete { space, key } => (space, [key, key], Op::Delete { key }),
            Change::DeleteRange { space, start, end } => {
                (space, [start, end.unwrap_or_default()], Op::DeleteRange { start, end })
            }
            Change::Ingest { .. } | Change::Note(_) => return Ok(()),
            Change::Create { space, name } => {
                // A keyspace that the manifest knew and does not name any more was dropped later.
                if space >= state.next || self.is_guessed || state.keyspaces.contains_key(&space) {
                    self.batch.write()?;
                    let made = self.batch.store.keyspace(name)?;
                    self.spaces.insert(space, made);
                }
                return Ok(());
            }
            Change::Drop { space } => {
                if let Some(space) = self.spaces.remove(&space) {
                    self.batch.write()?;
                    self.batch.store.drop_space(&space.name)?;
                }
                return Ok(());
            }
        };
        if let Some(key) = keys.iter().find(|key| key.len() > MAX_KEY_BYTES) {
            return Err(disk::damaged(log, 0, format!("a change has a key of {} bytes", key.len())));
        }
        match self.spaces.get(&id) {
            Some(space) => self.batch.add(space, op),
            // It was dropped later.
            None if id < state.next && !self.is_guessed => Ok(()),
            None => {
                let space = self.nameless(id, log)?;
                self.batch.add(&space, op)
            }
        }
    }
}

/// The operation that sets a wrapped value.
fn set_of<'v>(key: &'v [u8], Wrapped { expires_ms, content: value }: Wrapped<'v>) -> Op<&'v [u8]> {
    match expires_ms {
        Some(expires_ms) => Op::SetUntil { key, value, expires: Expires::At(expires_ms) },
        None => Op::Set { key, value },
    }
}

fn given_up() -> Error {
    Error::new(ErrorKind::Busy, "the salvage was given up, and nothing of it is left")
}

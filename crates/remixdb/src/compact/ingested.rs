//! Adds tables to a store that were written outside of it ([`ingest`](crate::ingest)): their keys ascend, from one
//! table to the next.
//!
//! - A table that crosses the lower bound of a partition is divided there.
//! - Tables after all keys of a partition become partitions of their own, if they are enough for that, and tables in a
//!   range without keys always do. Nothing is written for them.
//! - Others become the newest tables of their partition: its REMIX is updated, and no value is read or written.
//! - If that were too many for one partition, its pairs are divided among new ones, each with some of the tables.
//!
//! The pairs must be newer than all changes before, and older than all after. So no memtable may have a key of their
//! range at that moment: those that have one become tables first, while others write, and so do all of a keyspace
//! without tables: they are a partition of their own then. Then the order lock is taken.
//! If others have written to the range meanwhile, this is done again, at last with the lock held.

use super::new::{Deleted, New};
use super::rewrite::{ALONE, Old, Output, Replaced, Rewrite, merge, separator};
use crate::catalog::Space;
use crate::compact::plan::TABLES_MAX;
use crate::core::{Core, Order};
use crate::disk::{self, Kind, Name};
use crate::manifest::Manifest;
use crate::partition::{self, Known, Partition};
use crate::remix::{Remix, Show};
use crate::table::Table;
use crate::values::Logs;
use crate::version::Version;
use forrest_base::lock;
use forrest_engine::merge::SharedOperator;
use forrest_engine::{Durability, Error, Job, Result};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// In the last one, all other writers wait.
const TRIES: usize = 3;

/// A partition that is divided gets at most this number of new tables in each part.
const TOGETHER: usize = TABLES_MAX / 2;

/// What an ingest has made.
pub(crate) struct Ingested<'i> {
    pub(crate) tables: &'i [Arc<Table>],
    /// The logs that have the tables' large values.
    pub(crate) logs: Logs,
    /// The merge operator by which the values were checked.
    pub(crate) operator: Option<&'i SharedOperator>,
    /// How many pairs there are, and the bytes of their keys and values.
    pub(crate) pairs: u64,
    pub(crate) bytes: u64,
}

impl Core {
    /// Adds tables to a keyspace at one instant. All changes before are durable when this returns, and so are the
    /// tables. Tables that were divided are removed. `is_named` is set if a manifest may name the tables and logs: also
    /// after an error, their files are the store's then.
    ///
    /// # Errors
    /// `Corrupt`, `Io` if the range has a damaged table; `InvalidArgument` if the keyspace was dropped, or got a merge
    /// operator meanwhile; `Io`, `OutOfSpace`, `Stopped`. The store has none of the tables then, unless the log is
    /// stopped: it may have all.
    pub(crate) fn add_tables(
        &self,
        space: &Space,
        Ingested { tables, logs, operator, pairs, bytes }: Ingested<'_>,
        is_named: &mut bool,
    ) -> Result<()> {
        let (Some(first), Some(last)) = (tables.first(), tables.last()) else {
            self.check_ingest(space)?;
            return self.sync();
        };
        let (least, greatest) = (first.least(), last.greatest());
        let is_newer = |version: &Version| version.has_in_memory(space.id, least, |key| key <= greatest);
        // The first partition would get what is in memory as one more table later, though it may be before all others.
        let is_first = |version: &Version| {
            version.partitions(space.id).is_empty() && version.has_in_memory(space.id, &[], |_| true)
        };
        if !logs.is_empty() {
            // DURABILITY: the names of these logs are durable before the manifest names them. A failure may be of the
            // names of other logs too.
            disk::sync_directory(self.disk(), Kind::Log).map_err(|error| self.log().stop(error))?;
        }
        let logs = Arc::new(logs);
        let mut manifest = lock(&self.manifest);
        if let Some(chosen) = space.operator().filter(|_| operator.is_none()) {
            // One is chosen with the manifest held.
            return Err(Error::invalid(format!(
                "the keyspace \"{}\" got the merge operator \"{}\" after the ingest began, so its values were not \
                 checked; ingest them again",
                space.name,
                chosen.name()
            )));
        }
        let mut turn = 0;
        loop {
            turn += 1;
            let mut held = (turn == TRIES).then(|| self.order());
            self.check_ingest(space)?;
            let is_known = manifest.state().keyspaces.contains_key(&space.id);
            // DURABILITY: no manifest has tables of a keyspace that it does not have.
            if !is_known || is_newer(&self.version()) || is_first(&self.version()) {
                self.flush_now(&mut manifest, held.as_deref_mut())?;
            }
            let task = self.tasks.begin(Job::Ingest);
            let first = self.first_free_number();
            let version = self.version().clone();
            let placed = placed(self, &version, space.id, tables);
            let replaced = match placed {
                Ok(replaced) => replaced,
                Err(error) => {
                    self.remove_new(first);
                    return Err(task.fails(error));
                }
            };
            drop(version);
            let mut order = held.unwrap_or_else(|| self.order());
            self.check_ingest(space).inspect_err(|_| self.remove_new(first))?;
            if is_newer(&order.version) {
                drop(order);
                self.remove_new(first);
                continue;
            }
            // DURABILITY: the changes before it are at least as durable, and so is, in the history, that they come.
            let noted = self
                .note_ingest(&mut order, space, false, (least, greatest))
                .and_then(|()| self.log().commit(order.sequence, Durability::Sync));
            noted.inspect_err(|_| self.remove_new(first))?;
            self.gaps.end_all(space.id, least, greatest);
            let floor = manifest.state().floor;
            *lock(&self.adding) = logs.clone();
            let done = self.replace(&mut manifest, Some(&mut order), first, None, &replaced, floor);
            *lock(&self.adding) = Arc::default();
            if self.log().check().is_ok() {
                // If there is no space for it, the change before says enough.
                let _ = if done.is_ok() {
                    self.note_ingest(&mut order, space, true, (least, greatest))
                } else {
                    Ok(())
                };
                self.readers.apply(order.sequence);
                self.readers.show(order.sequence);
            }
            if done.is_ok() {
                self.count_changes(pairs, bytes);
            }
            let last = order.sequence;
            drop(order);
            if self.history.is_some() && done.is_ok() {
                // The tables are durable, and so is that they come. A failure stops the log.
                let _ = self.log().commit(last, Durability::Sync);
            }
            self.changed();
            // While the manifest is locked: nobody resumes the store meanwhile. If a commit has failed, the log is
            // stopped.
            *is_named = done.is_ok() || self.log().check().is_err() || {
                let named: BTreeSet<_> = manifest.state().files().collect();
                tables.iter().any(|table| named.contains(&table.name()))
                    || logs.keys().any(|log| manifest.state().logs.contains_key(log))
            };
            task.ends(done)?;
            let made = replaced.iter().flat_map(|replaced| &replaced.new);
            let named: BTreeSet<u64> =
                made.flat_map(|made| made.tables()).map(|table| table.name().number).collect();
            for table in tables.iter().filter(|table| !named.contains(&table.name().number)) {
                let _ = disk::unlink(self.disk(), table.name());
            }
            return Ok(());
        }
    }

    /// An error if the keyspace was dropped, or the store takes no changes.
    pub(crate) fn check_ingest(&self, space: &Space) -> Result<()> {
        self.check_writable()?;
        self.log().check()?;
        self.check_room()?;
        space.check()
    }

    /// Makes tables of the changes that are in memory now.
    pub(super) fn flush_now(&self, manifest: &mut Manifest, mut held: Option<&mut Order>) -> Result<()> {
        match &mut held {
            Some(order) => self.freeze(order)?,
            None => self.freeze(&mut self.order())?,
        }
        for _ in 0..self.version().immutable.len() {
            let Some(memtable) = self.version().immutable.last().cloned() else { break };
            self.flush(manifest, held.as_deref_mut(), &memtable)?;
        }
        Ok(())
    }
}

/// The partitions of a keyspace with the tables in them.
fn placed(store: &Core, version: &Version, space: u32, tables: &[Arc<Table>]) -> Result<Vec<Replaced>> {
    let partitions = version.partitions(space);
    let tables = cut(store, space, partitions, tables)?;
    let (mut replaced, mut rest) = (Vec::new(), &tables[..]);
    while let Some(first) = rest.first() {
        let at = partitions.partition_point(|partition| *partition.low <= *first.least());
        let end = partitions.get(at).map(|next| &next.low[..]);
        let is_in = |table: &Arc<Table>| end.is_none_or(|end| table.least() < end);
        let (within, others) = rest.split_at(rest.partition_point(is_in));
        rest = others;
        let old = at.checked_sub(1).map(|at| &partitions[at]);
        let low = old.map_or(&[][..], |old| &old.low);
        let rewrite = Rewrite { store, space, low, old, is_without_file: false };
        replaced.extend(rewrite.place(end, within)?);
    }
    Ok(replaced)
}

/// The tables, of which those that cross the lower bound of a partition are cut there.
fn cut(
    store: &Core,
    space: u32,
    partitions: &[Arc<Partition>],
    tables: &[Arc<Table>],
) -> Result<Vec<Arc<Table>>> {
    let mut all = Vec::new();
    for table in tables {
        let beyond = |key: &[u8]| partitions.partition_point(|partition| *partition.low <= *key);
        let cuts = &partitions[beyond(table.least())..beyond(table.greatest())];
        if cuts.is_empty() {
            all.push(table.clone());
            continue;
        }
        let alone = std::slice::from_ref(table);
        let order = partition::merge_order(alone, &|| store.look())?;
        let lows = [table.least()].into_iter().chain(cuts.iter().map(|one| &one.low[..]));
        let ends = cuts.iter().map(|one| Some(&one.low[..])).chain([None]);
        // If one fails, the caller removes all new files.
        let files = Mutex::default();
        for (low, end) in lows.zip(ends) {
            // In older tables there may be keys whose new value has expired, or is dropped: tombstones hide those.
            let (shown, tags) = ((&order, Show::Tombstones), store.builder.tags);
            all.extend(pairs_of(store, space, alone, shown, (low, end), tags, &files)?);
        }
    }
    Ok(all)
}

/// The pairs that tables have in a range, as one table; `None` if there are none. REQUIRES: without tombstones, the
/// tables are all of a partition. Its file is added to `files`.
fn pairs_of(
    store: &Core,
    space: u32,
    tables: &[Arc<Table>],
    (order, show): (&Arc<Remix>, Show),
    (low, end): (&[u8], Option<&[u8]>),
    tags: bool,
    files: &Mutex<Vec<Name>>,
) -> Result<Option<Arc<Table>>> {
    let nothing = New { memtable: None, space, low, end, keeps: false };
    let old = Old::new(tables, Some(order.clone()), show, nothing)?;
    let made = merge(nothing, old, Deleted::none(), Output::new(store, space, u64::MAX, tags, files))?;
    Ok(made.into_iter().map(|(_, table)| table).next())
}

/// Partitions of one table each. The first begins at `low`.
fn alone(low: Vec<u8>, tables: &[Arc<Table>]) -> Vec<Arc<Partition>> {
    let next = tables.windows(2).map(|two| separator(two[0].greatest(), two[1].least()));
    let lows = [low].into_iter().chain(next);
    let partition =
        |(low, table): (_, &Arc<_>)| Arc::new(Partition::new(low, vec![Arc::clone(table)], Known::default()));
    lows.zip(tables).map(partition).collect()
}

impl Rewrite<'_> {
    /// The partition, which ends at `end`, with tables in its range.
    fn place(&self, end: Option<&[u8]>, tables: &[Arc<Table>]) -> Result<Vec<Replaced>> {
        if let Some(damage) = self.old.and_then(|old| old.damage()) {
            return Err(damage.error());
        }
        let (space, old) = (self.space, self.old.cloned());
        let Some(greatest) = self.tables().iter().map(|table| table.greatest()).max() else {
            return Ok(vec![Replaced { space, old, new: alone(self.low.to_vec(), tables) }]);
        };
        let mut inside = tables.partition_point(|table| table.least() <= greatest);
        let behind_bytes: u64 = tables[inside..].iter().map(|table| table.plain_bytes()).sum();
        if behind_bytes < self.store.limits.table_bytes() / ALONE {
            inside = tables.len();
        }
        let (inside, behind) = tables.split_at(inside);
        let mut replaced = Vec::new();
        let low = behind.first().map(|first| {
            let before = inside.last().map_or(greatest, |last| last.greatest().max(greatest));
            separator(before, first.least())
        });
        if !inside.is_empty() {
            let end = low.as_deref().or(end);
            let new = self.with_or_without_file(|rewrite| rewrite.with_newer(end, inside))?;
            replaced.push(Replaced { space, old, new });
        }
        if let Some(low) = low {
            replaced.push(Replaced { space, old: None, new: alone(low, behind) });
        }
        Ok(replaced)
    }

    /// The partition with more tables, as one or as several.
    fn with_newer(&self, end: Option<&[u8]>, newer: &[Arc<Table>]) -> Result<Vec<Arc<Partition>>> {
        let old = self.tables();
        if old.len() + newer.len() <= TABLES_MAX {
            let tables = old.iter().chain(newer).cloned().collect();
            return Ok(vec![Arc::new(self.with(old.len(), tables)?)]);
        }
        self.or_remove(|files| self.divided(end, newer, files))
    }

    /// The same as several partitions, each with some of the new tables.
    fn divided(
        &self,
        end: Option<&[u8]>,
        newer: &[Arc<Table>],
        files: &Mutex<Vec<Name>>,
    ) -> Result<Vec<Arc<Partition>>> {
        let (old, order) = (self.tables(), self.whole_order()?.expect("it has tables"));
        let mut made = Vec::new();
        let (mut low, mut parts) = (self.low.to_vec(), newer.chunks(TOGETHER).peekable());
        while let Some(part) = parts.next() {
            let last = part.last().expect("a chunk has some");
            let next = parts.peek().map(|next| separator(last.greatest(), next[0].least()));
            let end = next.as_deref().or(end);
            let shown = (&order, Show::Live);
            match pairs_of(self.store, self.space, old, shown, (&low, end), false, files)? {
                None => made.extend(alone(low, part)),
                Some(own) => {
                    let tables = [own].into_iter().chain(part.iter().cloned()).collect();
                    let part = Rewrite { low: &low, old: None, ..*self };
                    made.push(Arc::new(part.with(0, tables)?));
                }
            }
            low = next.unwrap_or_default();
        }
        Ok(made)
    }
}

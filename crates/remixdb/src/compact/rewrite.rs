//! Rewrites partitions with the pairs of a memtable.
//!
//! If a merge meets damage, the new pairs become one more table, beside those that are there. From then on only tables
//! newer than the damaged ones are merged, among themselves, and the partition is not cut: it takes new pairs for as
//! long as the store is used, and no damaged file is replaced. If the device did not return some bytes, they may be
//! there later: each time when the newer tables are due to be merged, all are tried first.

use super::new::{Deleted, New};
use super::plan::{Plan, large, plan, tables_most};
use crate::catalog::Space;
use crate::core::Core;
use crate::disk::{self, Disk, Kind, Name, Sealed};
use crate::gauge::Share;
use crate::memtable::{Memtable, VALUE_MAX};
use crate::operands;
use crate::partition::{self, Damage, Known, LOOK, Owned, Partition, Stored, entries_of};
use crate::ranges::{Range, Ranges};
use crate::remix::{RUNS_MAX, Remix, RemixCursor, RunEntry, Show, portion};
use crate::table::{self, Table, TableCursor, TableEntry};
use crate::values::Logs;
use crate::version::Version;
use crate::wrapped::{self, InTable, Place, Pointer, Wrapped};
use forrest_base::lock;
use forrest_engine::{Compression, Error, ErrorKind, Filter, Result, Verdict, merge};
use std::cmp::Ordering;
use std::sync::{Arc, Mutex};

/// New pairs after all old keys become partitions of their own if they have 1/`ALONE` of the bytes of a full
/// table. A partition with less is not merged for its space.
pub(super) const ALONE: u64 = 8;
/// A REMIX that stays in its file is written again when a partition has 3/2 of the entries that it covers: those of
/// newer tables are in memory.
const fn has_outgrown(entries: u64, covered: u64) -> bool {
    entries.saturating_mul(2) >= covered.saturating_mul(3)
}

/// One in memory is written when there are three times as many as its file covers, or the first table if there is no
/// file. It is needed only when the store is opened again after a kill. Otherwise it is written when there is time.
const fn has_outgrown_far(entries: u64, covered: u64) -> bool {
    entries >= covered.saturating_mul(3)
}

/// Bytes of a tombstone in a table beside its key, about.
const TOMBSTONE_BYTES: u64 = 4;

/// Bytes of tables that a deleted range has, those that it leaves, and those of a tombstone for each of its entries.
#[derive(Default)]
struct InRange {
    gone: u64,
    left: u64,
    tombstones: u64,
}

/// Partitions that a step makes in place of others.
pub(super) struct Replaced {
    pub(super) space: u32,
    /// The partition that is replaced; `None` if there was none.
    pub(super) old: Option<Arc<Partition>>,
    pub(super) new: Vec<Arc<Partition>>,
}

impl Replaced {
    /// The tables that come in place of cached ones: each of their pages would make a reader wait.
    pub(super) fn to_cache(&self) -> impl Iterator<Item = &Arc<Table>> {
        let old = self.old.as_ref().filter(|old| old.is_cached());
        let new = self.new.iter().filter(move |_| old.is_some()).flat_map(|new| new.tables());
        let old = old.map_or(&[][..], |old| old.tables());
        new.filter(move |table| !old.iter().any(|other| Arc::ptr_eq(other, table)))
    }
}

/// Distributes the pairs of a memtable to the partitions of keyspaces.
pub(super) fn spaces(
    store: &Core,
    version: &Version,
    memtable: &Memtable,
    spaces: &[u32],
) -> Result<Vec<Replaced>> {
    let keeps = !lock(&store.keeping).is_empty();
    let count = |space| version.partitions(space).len().max(1);
    let all: Vec<_> = spaces.iter().flat_map(|&space| (0..count(space)).map(move |at| (space, at))).collect();
    let replaced = store.workers().each(&all, |&(space, at)| {
        let partitions = version.partitions(space);
        let (old, end) = (partitions.get(at), partitions.get(at + 1).map(|next| &next.low[..]));
        let low = old.map_or(&[][..], |old| &old.low);
        let new = New { memtable: Some(memtable), space, low, end, keeps };
        let may_go = may_go(partitions, at);
        let mut replaced = Rewrite { store, space, low, old, is_without_file: false }.take(new, may_go)?;
        replaced.retain_mut(|Replaced { old: own, new, .. }| {
            // What was to come after the old partition's keys is in its range.
            if has_nothing(new) && (may_go || (own.is_none() && old.is_some())) {
                new.clear();
            }
            own.is_some() || !new.is_empty()
        });
        Ok(replaced)
    })?;
    Ok(replaced.into_iter().flatten().collect())
}

/// Whether the partition before takes the range of one that has no more keys. The range of a damaged partition does not
/// grow: a delete of its whole range removes the damage.
fn may_go(partitions: &[Arc<Partition>], at: usize) -> bool {
    at.checked_sub(1).is_some_and(|before| partitions[before].damage().is_none())
}

/// Whether partitions that were made are one without keys.
fn has_nothing(made: &[Arc<Partition>]) -> bool {
    matches!(made, [one] if one.tables().is_empty() && one.damage().is_none())
}

/// Merges the tables of partitions, each with its keyspace.
pub(super) fn merged(store: &Core, partitions: &[(u32, Arc<Partition>)]) -> Result<Vec<Replaced>> {
    let version = store.version();
    let may_go = |space: u32, old: &Arc<Partition>| {
        let all = version.partitions(space);
        all.iter().position(|one| Arc::ptr_eq(one, old)).is_some_and(|at| may_go(all, at))
    };
    let all: Vec<_> = partitions.iter().map(|(space, old)| (*space, old, may_go(*space, old))).collect();
    drop(version);
    store.workers().each(&all, |&(space, old, may_go)| {
        let low = &old.low[..];
        let nothing = New { memtable: None, space, low, end: None, keeps: false };
        let rewrite = Rewrite { store, space, low, old: Some(old), is_without_file: false };
        let mut new = rewrite.with_or_without_file(|rewrite| rewrite.major(nothing))?;
        if may_go && has_nothing(&new) {
            new.clear();
        }
        Ok(Replaced { space, old: Some(old.clone()), new })
    })
}

/// Writes the REMIX of a partition, whose tables stay.
pub(super) fn stored(store: &Core, space: u32, old: &Arc<Partition>) -> Result<Replaced> {
    let (known, tables) = (old.order()?, old.tables());
    let check = || store.look();
    let remix = match known.whole(tables, &check) {
        // The file is damaged that is going to be replaced.
        Err(error) if disk::is_damage(&error) => partition::order(None, tables, store.builder.tags, &check),
        whole => whole,
    };
    let remix = remix?.expect("it has several tables");
    let stored = write_remix(store, &remix, tables)?;
    let known = match &known.base {
        Some(_) => left(store, tables, stored)?,
        None => Known { base: None, remix: Some(remix), stored: Some(stored) },
    };
    let new = Partition::new(old.low.clone(), tables.to_vec(), known).in_place_of(old);
    Ok(Replaced { space, old: Some(old.clone()), new: vec![Arc::new(new)] })
}

/// Leaves the order over the tables of a partition in its file, which is written first if it lacks much.
pub(super) fn in_file(store: &Core, space: u32, old: &Arc<Partition>) -> Result<Replaced> {
    let (known, tables) = (old.order()?, old.tables());
    let remix = known.remix.as_ref().expect("its order is in memory");
    let is_enough = |stored: &Stored| !has_outgrown(remix.entries(), entries_of(&tables[..stored.tables]));
    let written = || write_remix(store, remix, tables).and_then(|stored| left(store, tables, stored));
    let known = match known.stored {
        Some(stored) if is_enough(&stored) => match left(store, tables, stored) {
            // What is in memory is right.
            Err(error) if disk::is_unreadable(&error) => written()?,
            known => known?,
        },
        Some(stored) => match written() {
            Err(error) if is_full(&error) => left(store, tables, stored)?,
            known => known?,
        },
        None => written()?,
    };
    let new = Partition::new(old.low.clone(), tables.to_vec(), known).in_place_of(old);
    Ok(Replaced { space, old: Some(old.clone()), new: vec![Arc::new(new)] })
}

/// The order over tables as its file has it, and over the newer ones in memory.
fn left(store: &Core, tables: &[Arc<Table>], stored: Stored) -> Result<Known> {
    let (name, check) = (Name::remix(stored.number), || store.look());
    let cache = &store.shared.cache;
    let base = Remix::open(&store.shared.disk, name, &partition::named(tables), cache)?;
    let base = base.counted(cache.indexes().take(0));
    let remix = partition::order(None, &tables[stored.tables..], base.has_tags(), &check)?;
    Ok(Known { base: Some(Arc::new(base)), remix, stored: Some(stored) })
}

fn write_remix(store: &Core, remix: &Remix, tables: &[Arc<Table>]) -> Result<Stored> {
    let name = Name::remix(store.next_number());
    remix.write_at_rate(store.disk(), name, &partition::named(tables), store).inspect_err(|_| {
        // Its space may be needed at once.
        let _ = disk::unlink(store.disk(), name);
    })?;
    Ok(Stored { number: name.number, tables: tables.len() })
}

/// One partition that gets new pairs; `None` if there is none in the keyspace yet.
pub(super) struct Rewrite<'s> {
    pub(super) store: &'s Core,
    pub(super) space: u32,
    pub(super) low: &'s [u8],
    pub(super) old: Option<&'s Arc<Partition>>,
    /// Whether to do without what is known of the order over the tables.
    pub(super) is_without_file: bool,
}

impl Rewrite<'_> {
    pub(super) fn tables(&self) -> &[Arc<Table>] {
        self.old.map_or(&[], |old| old.tables())
    }

    /// The partitions that replace this one, and new ones after it, when it gets new pairs. If it `may_go`, the one
    /// before takes its range if it has no more keys.
    fn take(&self, new: New<'_>, may_go: bool) -> Result<Vec<Replaced>> {
        let mut replaced = Vec::new();
        if let (Some(old), Some(deleted)) = (self.old, new.deleted())
            && deleted.has_all(new.low, new.end, u64::MAX)
            && !(self.tables().is_empty() && old.lost().is_empty())
        {
            let new = if may_go && new.is_empty() { Vec::new() } else { self.only(new)? };
            return Ok(vec![Replaced { space: self.space, old: Some(old.clone()), new }]);
        }
        let behind = self.behind(new);
        let within = New { end: behind.as_deref().or(new.end), ..new };
        if !within.is_empty() || self.deletes_range(within) {
            let new = self.run(within)?;
            replaced.extend(new.map(|new| Replaced { space: self.space, old: self.old.cloned(), new }));
        }
        if let Some(low) = &behind {
            let new = Rewrite { low, old: None, ..*self }.major(New { low, ..new })?;
            replaced.push(Replaced { space: self.space, old: None, new });
        }
        Ok(replaced)
    }

    /// The partitions of the new pairs alone.
    fn only(&self, new: New<'_>) -> Result<Vec<Arc<Partition>>> {
        Rewrite { old: None, ..*self }.major(new)
    }

    /// Whether a range is deleted in which the partition may have keys.
    fn deletes_range(&self, new: New<'_>) -> bool {
        let deleted = new.deleted().unwrap_or_default();
        self.old.is_some_and(|old| deleted.within(new.low, new.end).any(|(start, end)| old.meets(start, end)))
    }

    /// The lower bound of the new pairs that come after all keys of the partition, if they are enough for
    /// partitions of their own. Their keys then need no search among the old ones.
    fn behind(&self, new: New<'_>) -> Option<Vec<u8>> {
        if self.old.is_some_and(|old| !old.lost().is_empty()) {
            // A lost table may have any key of the range.
            return None;
        }
        let greatest = self.tables().iter().map(|table| table.greatest()).max()?;
        let low = [greatest, &[0]].concat();
        let behind = New { low: &low, ..new };
        let low = separator(greatest, behind.pairs().key()?);
        (behind.bytes() >= self.store.limits.table_bytes() / ALONE).then_some(low)
    }

    /// The partitions that replace this one; `None` if it stays.
    fn run(&self, new: New<'_>) -> Result<Option<Vec<Arc<Partition>>>> {
        let made = match self.old {
            Some(old) if old.damage().is_some() && !self.is_due_again(old, new) => {
                return self.around(old, old.damage().expect("there is some"), new);
            }
            Some(old) if old.tables().len() > RUNS_MAX => Err(old.too_many()),
            _ => self.with_or_without_file(|rewrite| rewrite.planned(new)),
        };
        match (made, self.old) {
            (Err(error), Some(old)) if disk::is_damage(&error) => self.around(old, old.mark(error), new),
            (made, _) => made,
        }
    }

    /// Does something with the known order over the tables. If that is in a file, and damage is met, does it once more
    /// without.
    pub(super) fn with_or_without_file<R>(&self, make: impl Fn(&Self) -> Result<R>) -> Result<R> {
        match make(self) {
            // It may have been loaded just now.
            Err(error) if disk::is_damage(&error) && self.old.is_some_and(|old| old.is_order_in_file()) => {
                make(&Rewrite { is_without_file: true, ..*self })
            }
            made => made,
        }
    }

    /// Whether to merge a damaged partition as if it were none, because the damage may be gone. That is as often as
    /// tables are merged in any partition.
    fn is_due_again(&self, old: &Partition, new: New<'_>) -> bool {
        let is_due = |damage: &Damage| self.merged_around(old, damage, new) < self.tables().len();
        old.may_recover() && old.damage().is_some_and(is_due)
    }

    /// From which table on the tables of a damaged partition are merged with new pairs: all of them are newer than the
    /// damaged ones.
    fn merged_around(&self, old: &Partition, damage: &Damage, new: New<'_>) -> usize {
        let (count, kept) = (self.tables().len(), damage.kept);
        let is_many = count + old.lost().len() >= RUNS_MAX && kept < count;
        match self.plan(&self.tables()[kept..], new.bytes()) {
            Plan::Minor if !is_many => count,
            Plan::Minor | Plan::Major => kept,
            Plan::Partial { from } => kept + from,
        }
    }

    /// The same for a partition that is not known to be damaged.
    fn planned(&self, new: New<'_>) -> Result<Option<Vec<Arc<Partition>>>> {
        let (tables, most) = (self.tables(), most(self.tables()));
        let deleted = self.deleted(new)?;
        let (bytes, is_due) = (new.bytes() + deleted.tombstones, tables.len() >= most);
        // What takes least space: one more table, or if there may be no more, the newest one with the new pairs.
        let least = tables.len().min(RUNS_MAX - 1);
        // Tombstones would cost more than what is left, or most of what there is would be dead.
        let is_worth = deleted.tombstones > 0 && deleted.left <= deleted.gone.max(deleted.tombstones);
        let made = match self.plan(tables, bytes) {
            _ if is_worth => self.major(new).map(Some),
            plan if is_due && self.lacks_space(plan, bytes) => self.minor(new, least),
            Plan::Minor if tables.is_empty() => self.major(new).map(Some),
            Plan::Minor => self.minor(new, tables.len()),
            Plan::Partial { from } => self.minor(new, from),
            Plan::Major => self.major(new).map(Some),
        };
        match made {
            // There may be room for the new pairs alone.
            Err(error) if is_full(&error) && (is_due || is_worth) => self.minor(new, least),
            made => made,
        }
    }

    /// What the deleted ranges have of the tables, about.
    fn deleted(&self, new: New<'_>) -> Result<InRange> {
        let mut sum = InRange::default();
        let Some(ranges) = new.deleted() else { return Ok(sum) };
        for table in self.tables() {
            let (mut cursor, mut entries) = (TableCursor::new(&**table), 0);
            for (start, end) in ranges.within(new.low, new.end) {
                if *table.greatest() < *start || end.is_some_and(|end| *table.least() >= *end) {
                    continue;
                }
                let from = cursor.lower_bound(start)?;
                let to = end.map_or(Ok(table.entries()), |end| cursor.lower_bound(end))?;
                entries += u64::from(to.saturating_sub(from));
            }
            let (bytes, all) = (table.file_bytes(), u64::from(table.entries()).max(1));
            let gone = portion(bytes, entries, all);
            let key = (table.least().len() + table.greatest().len()) / 2;
            sum.gone += gone;
            sum.left += bytes - gone.min(bytes);
            sum.tombstones += entries * (key as u64 + TOMBSTONE_BYTES);
        }
        Ok(sum)
    }

    /// Whether a merge would most likely find too little space; in a full store, if others do the same meanwhile. What
    /// it had written by then would leave none to those that only add a table.
    fn lacks_space(&self, plan: Plan, new: u64) -> bool {
        let sum = |tables: &[Arc<Table>], bytes: fn(&Table) -> u64| -> u64 {
            tables.iter().map(|table| bytes(table)).sum()
        };
        let written = match (plan, self.old) {
            (Plan::Partial { from }, _) => sum(&self.tables()[from..], Table::file_bytes),
            (Plan::Major, Some(old)) => old.live_bytes(),
            _ => return false,
        };
        // What was compressed may be written without.
        let written = match self.store.catalog().compression(self.space) {
            Compression::None => {
                let (plain, stored) =
                    (sum(self.tables(), Table::plain_bytes), sum(self.tables(), Table::file_bytes));
                portion(written, plain, stored.max(1))
            }
            _ => written,
        };
        let free = self.store.disk().free(Kind::Table).unwrap_or(u64::MAX);
        let at_once = if self.store.is_full() { self.store.workers().count() as u64 } else { 1 };
        (written + new).saturating_mul(at_once) > free
    }

    /// What to do with some of the tables and new pairs of `new` bytes.
    fn plan(&self, tables: &[Arc<Table>], new: u64) -> Plan {
        // New pairs are not compressed yet, so they are compared with what tables have.
        let sizes: Vec<u64> = tables.iter().map(|table| table.plain_bytes()).collect();
        let free = || self.store.disk().free(Kind::Table).unwrap_or(u64::MAX);
        plan(&sizes, new, most(tables), || large(self.store.limits.table_bytes(), free()))
    }

    /// Adds the new pairs to a damaged partition: as a table, which is merged with newer ones than the damaged ones as
    /// in any partition.
    fn around(&self, old: &Partition, damage: &Damage, new: New<'_>) -> Result<Option<Vec<Arc<Partition>>>> {
        let (count, kept) = (self.tables().len(), damage.kept);
        let from = self.merged_around(old, damage, new);
        let (from, kept, table) = match self.merged_with(new, from) {
            Err(error) if from < count && (is_full(&error) || disk::is_damage(&error)) => {
                // What is newer is damaged too, or there is room for the new pairs alone.
                let kept = if is_full(&error) { kept } else { count };
                (count, kept, self.merged_with(new, count)?)
            }
            table => (from, kept, table?),
        };
        if table.is_none() && from == count {
            return Ok(None);
        }
        let tables = self.tables()[..from].iter().cloned().chain(table).collect();
        // The REMIX file is of the first tables.
        let remix = if from == count { old.files().remix } else { 0 };
        let damage = Damage::new(kept, damage.error());
        Ok(Some(vec![Arc::new(old.around(&self.store.shared, tables, damage, remix))]))
    }

    /// A table of the new pairs and those of the tables from `from` on; `None` if there are none.
    fn merged_with(&self, new: New<'_>, from: usize) -> Result<Option<Arc<Table>>> {
        let merged = &self.tables()[from..];
        let check = || self.store.look();
        let order = if merged.is_empty() { None } else { Some(partition::merge_order(merged, &check)?) };
        let output = self.or_remove(|files| {
            let mut old = Old::new(merged, order.clone(), Show::Tombstones, new)?;
            // What is damaged is not read.
            old.older = self.old.filter(|old| old.damage().is_none()).map(|old| &old.tables()[..from]);
            let deleted = Deleted::new(&self.tables()[..from], new)?;
            merge(new, old, deleted, Output::new(self.store, self.space, u64::MAX, false, files))
        })?;
        Ok(output.into_iter().map(|(_, table)| table).next())
    }

    /// Merges the new pairs and the tables from `from` on into the newest table.
    fn minor(&self, new: New<'_>, from: usize) -> Result<Option<Vec<Arc<Partition>>>> {
        let (kept, merged) = self.tables().split_at(from);
        let mut tables = kept.to_vec();
        let made = self.merged_with(new, from)?;
        tables.extend(made.iter().cloned());
        if tables.len() == self.tables().len() && merged.is_empty() {
            return Ok(None);
        }
        let partition = self.with(from, tables).inspect_err(|_| {
            if let Some(table) = made {
                let _ = disk::unlink(self.store.disk(), table.name());
            }
        })?;
        Ok(Some(vec![Arc::new(partition)]))
    }

    /// A partition of tables, of which those before `from` are those of this one.
    pub(super) fn with(&self, from: usize, tables: Vec<Arc<Table>>) -> Result<Partition> {
        let check = || self.store.look();
        let known = self.old.map_or(Ok(Known::default()), |old| self.known(old, &check))?;
        let known = self.order(known, from, &tables, &check)?;
        let new = Partition::new(self.low.to_vec(), tables, known);
        Ok(match self.old {
            Some(old) => new.in_place_of(old),
            None => new,
        })
    }

    /// The order over tables, of which those before `from` are those of the partition, with its known order. If that is
    /// in a file, it stays there.
    fn order(
        &self,
        known: Known,
        from: usize,
        tables: &[Arc<Table>],
        check: &dyn Fn() -> Result<()>,
    ) -> Result<Known> {
        let (store, are_kept) = (self.store, from == self.tables().len());
        let tags = store.builder.tags;
        let in_file = known.base.is_some();
        let stored = known.stored.filter(|stored| stored.tables <= from);
        let known = match known.base.filter(|base| base.runs().len() <= from) {
            Some(base) => {
                let (first, newer) = tables.split_at(base.runs().len());
                if !has_outgrown(entries_of(tables), entries_of(first)) {
                    // The order over newer tables still holds if they are all kept.
                    let remix = partition::order(known.remix.filter(|_| are_kept), newer, tags, check)?;
                    return Ok(Known { base: Some(base), remix, stored });
                }
                Some(base)
            }
            None => known.remix.filter(|_| are_kept && !in_file),
        };
        let remix = partition::order(known, tables, tags, check)?;
        let is_due = if in_file { has_outgrown } else { has_outgrown_far };
        let stored = self.stored(remix.as_deref(), stored, tables, is_due)?;
        match stored {
            Some(stored) if in_file => left(store, tables, stored),
            stored => Ok(Known { base: None, remix, stored }),
        }
    }

    /// What is known of the order over the tables of a partition. A damaged file is done without: the tables have all
    /// that it has.
    fn known(&self, old: &Partition, check: &dyn Fn() -> Result<()>) -> Result<Known> {
        if self.is_without_file || old.is_file_bad() {
            return Ok(Known::default());
        }
        match old.warm(check) {
            Ok(()) => old.order().cloned(),
            Err(error) if disk::is_damage(&error) && old.tables().len() <= RUNS_MAX => Ok(Known::default()),
            Err(error) => Err(error),
        }
    }

    /// Writes tables. If that fails, removes those that were begun, so that their space can be used at once.
    pub(super) fn or_remove<R>(&self, write: impl FnOnce(&Mutex<Vec<Name>>) -> Result<R>) -> Result<R> {
        let files = Mutex::default();
        write(&files).inspect_err(|_| {
            for name in lock(&files).drain(..) {
                let _ = disk::unlink(self.store.disk(), name);
            }
        })
    }

    /// The REMIX file: the existing one, which covers the first tables, unless the partition has outgrown it.
    fn stored(
        &self,
        remix: Option<&Remix>,
        stored: Option<Stored>,
        tables: &[Arc<Table>],
        is_due: fn(u64, u64) -> bool,
    ) -> Result<Option<Stored>> {
        let Some(remix) = remix else { return Ok(None) };
        // One table is its own index.
        let known = stored.map_or(1, |stored| stored.tables);
        if !is_due(remix.entries(), entries_of(&tables[..known])) {
            return Ok(stored);
        }
        match write_remix(self.store, remix, tables) {
            // The tables need no more than the file that there is.
            Err(error) if is_full(&error) => Ok(stored),
            written => written.map(Some),
        }
    }

    /// The order over all tables; `None` if there are none.
    pub(super) fn whole_order(&self) -> Result<Option<Arc<Remix>>> {
        let check = || self.store.look();
        let Some(old) = self.old.filter(|old| !old.tables().is_empty()) else { return Ok(None) };
        let known = self.known(old, &check)?.whole(old.tables(), &check)?;
        known.map_or_else(|| partition::merge_order(old.tables(), &check), Ok).map(Some)
    }

    /// Rewrites everything as partitions of one table each. Several threads each write a piece of it, which
    /// begins with a partition of its own.
    fn major(&self, new: New<'_>) -> Result<Vec<Arc<Partition>>> {
        let most = self.store.limits.table_bytes();
        let order = self.whole_order()?;
        let bytes: u64 = self.tables().iter().map(|table| table.plain_bytes()).sum();
        let pieces = (bytes / most).min(self.store.workers().count() as u64);
        let cuts = order.as_ref().map_or_else(Vec::new, |order| order.cuts(pieces as usize));
        let lows: Vec<&[u8]> = [self.low].into_iter().chain(cuts.iter().map(|cut| &cut[..])).collect();
        let numbers: Vec<usize> = (0..lows.len()).collect();
        let made = self.or_remove(|files| {
            self.store.workers().each(&numbers, |&at| {
                let piece = New { low: lows[at], end: lows.get(at + 1).copied().or(new.end), ..new };
                let old = Old::new(self.tables(), order.clone(), Show::Live, piece)?;
                let tags = self.store.builder.tags;
                let output = Output::new(self.store, self.space, most, tags, files);
                merge(piece, old, Deleted::none(), output)
            })
        })?;
        let mut new = Vec::new();
        for (piece, made) in made.into_iter().enumerate() {
            for (at, (low, table)) in made.into_iter().enumerate() {
                // The very first table begins where the partition did, even if the first pieces are empty:
                // later writes there have no other place. The first table of any other piece begins where the
                // piece does.
                let low = match (new.is_empty(), at) {
                    (true, _) => self.low.to_vec(),
                    (_, 0) => lows[piece].to_vec(),
                    _ => low,
                };
                new.push(Arc::new(Partition::new(low, vec![table], Known::default())));
            }
        }
        if new.is_empty() {
            // No other partition has the keys of this range.
            new.push(Arc::new(Partition::new(self.low.to_vec(), Vec::new(), Known::default())));
        }
        Ok(new)
    }
}

/// Writes the new pairs, those of the merged tables, and tombstones for keys of other tables, in order. If several have
/// a key, the first of these wins.
pub(super) fn merge(
    new: New<'_>,
    mut old: Old<'_>,
    mut deleted: Deleted<'_>,
    mut output: Output<'_>,
) -> Result<Vec<Made>> {
    let mut new = new.pairs();
    loop {
        if let Some(key) = deleted.key()
            && old.key().is_none_or(|old| key < old)
            && new.key().is_none_or(|new| key < new)
        {
            output.add(key, TableEntry::Tombstone)?;
            deleted.advance()?;
            continue;
        }
        let order = match (new.key(), old.key()) {
            (None, None) => return output.finish(),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(new), Some(old)) => new.cmp(old),
        };
        let key = if order == Ordering::Greater { old.key() } else { new.key() };
        if deleted.key() == key {
            deleted.advance()?;
        }
        if order == Ordering::Greater {
            old.put(&mut output)?;
            old.advance()?;
            continue;
        }
        let key = new.key().expect("it has a key");
        if new.said().has_operands() {
            let mut entries = vec![new.said().bytes().to_vec()];
            // A tombstone of an older table hides nothing from operands if there is nothing older.
            let base = match order {
                Ordering::Equal => old.gather(&mut output, &mut entries)?,
                _ => None,
            };
            output.add_applied(key, base, entries, (old.show, old.older))?;
            if order == Ordering::Equal {
                old.advance()?;
            }
            new.advance();
            continue;
        }
        match new.said().at(|| output.now_ms()) {
            // A tombstone that hides no older version is not needed.
            TableEntry::Tombstone if old.show != Show::Tombstones => {}
            TableEntry::Tombstone => output.add(key, TableEntry::Tombstone)?,
            entry => output.add_live(key, entry, old.show)?,
        }
        if order == Ordering::Equal {
            old.advance()?;
        }
        new.advance();
    }
}

/// The pairs of the tables in order, in the range of the new pairs.
pub(super) struct Old<'n> {
    cursor: Option<RemixCursor<Arc<Remix>, Owned>>,
    show: Show,
    end: Option<&'n [u8]>,
    key: Vec<u8>,
    valid: bool,
    value: Vec<u8>,
    /// Ranges that are deleted with the new pairs.
    deleted: Option<Arc<Ranges>>,
    /// All older tables of the partition, if they may be read.
    older: Option<&'n [Arc<Table>]>,
}

impl<'n> Old<'n> {
    /// Pairs of tables. If there are any tables, `order` is their order.
    pub(super) fn new(
        tables: &[Arc<Table>],
        order: Option<Arc<Remix>>,
        show: Show,
        range: New<'n>,
    ) -> Result<Old<'n>> {
        let cursor = order.map(|order| RemixCursor::new(order, partition::runs(tables), show));
        let (key, value, deleted) = (Vec::new(), Vec::new(), range.deleted());
        let mut old = Old { cursor, show, end: range.end, key, valid: false, value, deleted, older: None };
        if let Some(cursor) = &mut old.cursor {
            cursor.seek(range.low)?;
            old.settle()?;
        }
        Ok(old)
    }

    /// The deleted range that the key is in.
    fn range(&self) -> Option<&Range> {
        Some(self.deleted.as_ref()?.deleted(&self.key, u64::MAX)?.1)
    }

    /// Reads the key at the cursor. Ends where the range does. Jumps over deleted ranges, unless tombstones are shown.
    fn settle(&mut self) -> Result<()> {
        loop {
            let cursor = self.cursor.as_mut().expect("it was placed");
            self.valid = cursor.key_into(&mut self.key)?;
            self.valid &= self.end.is_none_or(|end| &self.key[..] < end);
            if !self.valid || self.show == Show::Tombstones {
                return Ok(());
            }
            let Some(range) = self.range() else { return Ok(()) };
            let Some(end) = range.end.clone() else {
                self.valid = false;
                return Ok(());
            };
            let cursor = self.cursor.as_mut().expect("it was placed");
            cursor.seek(&end)?;
            if cursor.compare(&end)?.is_some_and(Ordering::is_lt) {
                return Err(Error::new(ErrorKind::Corrupt, "the keys of merged tables are not in order"));
            }
        }
    }

    fn key(&self) -> Option<&[u8]> {
        self.valid.then_some(&self.key[..])
    }

    fn put(&mut self, output: &mut Output<'_>) -> Result<()> {
        let cursor = self.cursor.as_ref().expect("it has a key");
        let tombstone = cursor.entry().is_some_and(|entry| entry.tombstone);
        if tombstone || self.range().is_some() {
            return output.add(&self.key, TableEntry::Tombstone);
        }
        let (run, ordinal) = self.cursor.as_mut().and_then(|cursor| cursor.run()).expect("it has a key");
        self.value.clear();
        run.value_into(ordinal, &mut self.value)?;
        if !run.table().has_wrapped() || run.kind(ordinal)? != table::Kind::Wrapped {
            return output.add_live(&self.key, TableEntry::Value(&self.value), self.show);
        }
        if wrapped::has_operands(&self.value) {
            let mut entries = Vec::new();
            let base = self.gather(output, &mut entries)?;
            return output.add_applied(&self.key, base, entries, (self.show, self.older));
        }
        let Some(stored) = InTable::read(&self.value) else {
            return Err(disk::damaged(run.table().name(), 0, wrapped::FLAW));
        };
        match stored.has_expired(output.now_ms()) {
            false => output.add_live(&self.key, TableEntry::Wrapped(&self.value), self.show),
            // The tables that are not merged may have the key.
            true if self.show == Show::Tombstones => output.add(&self.key, TableEntry::Tombstone),
            true => Ok(()),
        }
    }

    /// Adds the entries with operands that the merged tables have of the key, from the newest table to the first value
    /// or tombstone. Returns that value, `Some(None)` if there is none, and `None` if no table has a value or a
    /// tombstone.
    #[cold]
    fn gather(
        &mut self,
        output: &mut Output<'_>,
        into: &mut Vec<Vec<u8>>,
    ) -> Result<Option<Option<Vec<u8>>>> {
        if self.range().is_some() {
            return Ok(Some(None));
        }
        let cursor = self.cursor.as_mut().expect("it has a key");
        for RunEntry { run, ordinal, tombstone } in cursor.versions() {
            let run = cursor.of_run(run);
            if tombstone {
                return Ok(Some(None));
            }
            match run.operands(ordinal)? {
                Some(operands) => into.push(operands),
                None => {
                    let at_ms = operands::base_ms(into, || output.now_ms());
                    return run.seen(ordinal, || at_ms, <[u8]>::to_vec).map(Some);
                }
            }
        }
        Ok(None)
    }

    fn advance(&mut self) -> Result<()> {
        let cursor = self.cursor.as_mut().expect("it has a key");
        cursor.next()?;
        self.settle()
    }
}

/// A lower bound of a table's keys that is greater than all keys of the tables before, and the table.
pub(super) type Made = (Vec<u8>, Arc<Table>);

/// Tables that are being written, one after the other.
pub(super) struct Output<'s> {
    store: &'s Core,
    space: u32,
    /// How the tables are compressed.
    compression: Compression,
    /// A table is finished when it has this many bytes.
    most: u64,
    /// Whether the tables get tags: each will be alone in its partition.
    tags: bool,
    builder: Option<(Vec<u8>, table::Builder<'s, &'s Sealed>)>,
    done: Vec<Made>,
    /// The last key of the previous table.
    before: Vec<u8>,
    /// The names of all files that were begun.
    files: &'s Mutex<Vec<Name>>,
    /// Entries that are added before the next look whether the store is being closed.
    left: u32,
    /// What the builder counts for.
    share: Share,
    now_ms: Option<u64>,
    /// The filter of values, if there is one, and the keyspace.
    filter: Option<(&'s Filter, Arc<Space>)>,
    /// The logs that are kept for values of the memtable.
    keeping: Arc<Logs>,
}

impl<'s> Output<'s> {
    pub(super) fn new(
        store: &'s Core,
        space: u32,
        most: u64,
        tags: bool,
        files: &'s Mutex<Vec<Name>>,
    ) -> Output<'s> {
        let share = store.shared.cache.indexes().take(0);
        let (done, before) = (Vec::new(), Vec::new());
        let catalog = store.catalog();
        let compression = catalog.compression(space);
        let filter = store.builder.filter.as_ref().and_then(|filter| {
            let space = catalog.spaces.values().find(|one| one.id == space)?;
            Some((filter, space.clone()))
        });
        Output {
            store,
            space,
            compression,
            most,
            tags,
            builder: None,
            done,
            before,
            files,
            left: LOOK,
            share,
            now_ms: None,
            filter,
            keeping: lock(&store.keeping).clone(),
        }
    }

    /// The time by which values expire here: that of the beginning.
    fn now_ms(&mut self) -> u64 {
        *self.now_ms.get_or_insert_with(|| self.store.newest().now_ms())
    }

    /// Adds what entries with operands make, the newest of which comes first: a value if it is known what they are to
    /// be applied to, or one entry. If that had more operands than an entry may, what older tables have is read.
    #[cold]
    fn add_applied(
        &mut self,
        key: &[u8],
        base: Option<Option<Vec<u8>>>,
        mut entries: Vec<Vec<u8>>,
        (show, older): (Show, Option<&[Arc<Table>]>),
    ) -> Result<()> {
        let operator = self.store.version().operated.get(self.space)?;
        // All tables that may have the key are merged.
        let base = base.or((show == Show::Live).then_some(None));
        if let Some(base) = base {
            match operands::applied(&*operator, key, base.as_deref(), &entries) {
                Ok(value) => return self.add_live(key, TableEntry::Value(&value), show),
                // They stay as they are, as there is nothing that they would be applied to.
                Err(_) if base.is_none() && show == Show::Live => {}
                Err(error) => return Err(self.inapplicable(&error)),
            }
        }
        let mut joined = entries.last().expect("there is one").clone();
        for newer in entries.iter().rev().skip(1) {
            joined = operands::joined(&*operator, key, &joined, newer)?;
        }
        if let (false, Some(tables)) = (operands::fits(&joined), older) {
            let now_ms = self.now_ms();
            let base = partition::gather(tables, key, || now_ms, &mut entries)?.flatten();
            let value = operands::applied(&*operator, key, base.as_deref(), &entries)
                .map_err(|error| self.inapplicable(&error))?;
            return self.add_live(key, TableEntry::Value(&value), show);
        }
        self.add(key, TableEntry::Wrapped(&joined))
    }

    /// The error of operands that cannot be applied. It counts as damage of the tables: they stay as they are, newer
    /// ones are added to them, and a read of the key fails until it gets another value or is deleted.
    #[cold]
    fn inapplicable(&self, error: &Error) -> Error {
        let what =
            format!("keyspace {}: operands of merges in tables cannot be applied: {error}", self.space);
        Error::new(ErrorKind::Corrupt, what)
    }

    /// Adds a value that is there, as the filter decides. If others have the key, `show` has tombstones.
    #[inline]
    fn add_live(&mut self, key: &[u8], entry: TableEntry<'_>, show: Show) -> Result<()> {
        match entry {
            TableEntry::Value(_) if self.filter.is_none() => self.add(key, entry),
            _ if self.filter.is_none() => self.add_unfiltered(key, entry),
            _ => self.add_filtered(key, entry, show),
        }
    }

    /// Adds a value that may be in a log too. It stays there if the log is kept.
    #[inline(never)]
    fn add_unfiltered(&mut self, key: &[u8], entry: TableEntry<'_>) -> Result<()> {
        let TableEntry::Wrapped(bytes) = entry else { return self.add(key, entry) };
        match wrapped::place_of(bytes) {
            Some((place, value)) if self.keeps(place) => {
                let pointer = Pointer::to(place, value.content).encode(value.expires_ms);
                self.add(key, TableEntry::Wrapped(&pointer))
            }
            Some(_) => wrapped::without_place(entry, |entry| self.add(key, entry)),
            None => self.add(key, entry),
        }
    }

    /// Whether values stay in a log. In a compressed table they are compressed.
    fn keeps(&self, place: Place) -> bool {
        self.compression == Compression::None
            && self.keeping.contains_key(&place.log)
            && !self.store.version().operated.has(self.space)
    }

    #[inline(never)]
    fn add_filtered(&mut self, key: &[u8], entry: TableEntry<'_>, show: Show) -> Result<()> {
        let (filter, space) = self.filter.as_ref().expect("there is one");
        if self.has_operands_in_memory(space.id, key) {
            // What the key has is not known here. A later merge asks.
            return self.add_unfiltered(key, entry);
        }
        let read;
        let wrapped = match entry {
            TableEntry::Wrapped(bytes) => match (wrapped::place_of(bytes), InTable::read(bytes)) {
                (Some((_, value)), _) | (None, Some(InTable::Here(value))) => value,
                (None, Some(InTable::Elsewhere { expires_ms, pointer })) => {
                    read = match self.store.shared.values.read(&pointer) {
                        // It fails the reads of this value, and not the merge.
                        Err(error) if disk::is_damage(&error) => return self.add_unfiltered(key, entry),
                        value => value?,
                    };
                    Wrapped { expires_ms, content: &read }
                }
                (None, None | Some(InTable::Operands)) => unreachable!("it was checked"),
            },
            entry => Wrapped { expires_ms: None, content: entry.bytes() },
        };
        let operator = space.operator();
        let fits = |new: &[u8]| {
            new.len() <= VALUE_MAX - wrapped::HEADER_MOST
                && operator.is_none_or(|operator| merge::check_stored(&**operator, new).is_ok())
        };
        match filter.decide(&space.name, key, wrapped.content) {
            Verdict::Drop if show == Show::Tombstones => self.add(key, TableEntry::Tombstone),
            Verdict::Drop => Ok(()),
            Verdict::Replace(new) if fits(&new) => match wrapped.expires_ms {
                None => self.add(key, TableEntry::Value(&new)),
                expires_ms => {
                    let new = Wrapped { expires_ms, content: &new }.encode();
                    self.add(key, TableEntry::Wrapped(&new))
                }
            },
            _ => self.add_unfiltered(key, entry),
        }
    }

    /// Whether memtables have operands for a key, from an opening without a filter.
    fn has_operands_in_memory(&self, space: u32, key: &[u8]) -> bool {
        let version = self.store.version();
        version.operated.are_stored()
            && version.memtables().any(|memtable| {
                let newest = self.store.newest();
                memtable.get(space, key, newest, |said| said.has_operands()).unwrap_or(false)
            })
    }

    fn add(&mut self, key: &[u8], entry: TableEntry<'_>) -> Result<()> {
        self.left -= 1;
        if self.left == 0 {
            self.left = LOOK;
            self.share.set(self.builder.as_ref().map_or(0, |(_, builder)| builder.memory_bytes()));
            self.store.look()?;
        }
        let is_next = match &self.builder {
            Some((_, builder)) => builder.takes(key),
            None => self.done.is_empty() || key > &self.before[..],
        };
        if !is_next {
            // Memtables are in order, so it is the tables that are not.
            return Err(Error::new(ErrorKind::Corrupt, "the keys of merged tables are not in order"));
        }
        let (_, builder) = match &mut self.builder {
            Some(builder) => builder,
            none => {
                let name = Name::table(self.store.next_number());
                lock(self.files).push(name);
                let builder = table::Builder::new(self.store.disk(), name)?;
                let builder = builder.at_rate(self.store).tagged(self.tags).packed(self.compression)?;
                none.insert((separator(&self.before, key), builder))
            }
        };
        builder.add(key, entry)?;
        if builder.bytes() >= self.most {
            self.before = key.to_vec();
            self.complete()?;
        }
        Ok(())
    }

    fn complete(&mut self) -> Result<()> {
        let Some((low, builder)) = self.builder.take() else { return Ok(()) };
        let built = builder.finish()?;
        let table = self.store.open_table(built.number)?;
        self.done.push((low, Arc::new(table)));
        Ok(())
    }

    /// The tables.
    fn finish(mut self) -> Result<Vec<Made>> {
        self.complete()?;
        Ok(self.done)
    }
}

/// With how many tables some of these are merged.
fn most(tables: &[Arc<Table>]) -> usize {
    tables.first().map_or(1, |oldest| tables_most(oldest.name().number))
}

/// Whether there was no room for something, and nothing else is wrong.
fn is_full(error: &Error) -> bool {
    error.kind() == ErrorKind::OutOfSpace
}

/// The shortest prefix of `key` that is greater than `before`.
pub(super) fn separator(before: &[u8], key: &[u8]) -> Vec<u8> {
    let common = before.iter().zip(key).take_while(|(a, b)| a == b).count();
    key[..key.len().min(common + 1)].to_vec()
}

#[cfg(test)]
mod tests {
    use super::separator;

    #[test]
    fn a_separator_lies_above_one_key_and_not_above_the_other() {
        for (before, key, between) in [
            ("abc", "abd", "abd"),
            ("abc", "b", "b"),
            ("abc", "abcd", "abcd"),
            ("", "xyz", "x"),
            ("abc", "adzz", "ad"),
        ] {
            assert_eq!(separator(before.as_bytes(), key.as_bytes()), between.as_bytes());
        }
    }
}

//! The pairs of a memtable on their way into the partitions of one keyspace.

use super::plan::{Plan, plan};
use crate::core::Core;
use crate::disk::{Disk, Name};
use crate::memtable::{self, Memtable, Said};
use crate::partition::{self, Owned, Partition, Stored};
use crate::remix::{self, Remix, Show};
use crate::table::{self, Entry, Table};
use crate::version::Version;
use forrest_engine::{Error, ErrorKind, Result};
use forrest_index::Cursor;
use std::cmp::Ordering;
use std::sync::Arc;

/// New pairs stand by themselves from one part of so many of a table's bytes on.
const ALONE: u64 = 8;
/// A REMIX is written when a partition has so many times the entries that its file, or its first table, has.
const GROWTH: u64 = 4;

/// Partitions that a step makes in place of others.
pub(super) struct Replaced<D: Disk> {
    pub(super) space: u32,
    /// The one that goes; `None` where there was none yet.
    pub(super) old: Option<Arc<Partition<D>>>,
    pub(super) new: Vec<Arc<Partition<D>>>,
}

/// Deals the pairs of a memtable out to the partitions of a keyspace.
pub(super) fn space<D: Disk>(
    store: &Core<D>,
    version: &Version<D>,
    memtable: &Memtable,
    space: u32,
) -> Result<Vec<Replaced<D>>> {
    let partitions = version.partitions(space);
    let numbers: Vec<usize> = (0..partitions.len().max(1)).collect();
    let replaced = store.workers().each(&numbers, |&at| {
        let (old, end) = (partitions.get(at), partitions.get(at + 1).map(|next| &next.low[..]));
        let low = old.map_or(&[][..], |old| &old.low);
        Rewrite { store, space, low, old }.take(New { memtable: Some(memtable), space, low, end })
    })?;
    Ok(replaced.into_iter().flatten().collect())
}

/// Merges the tables of the partitions that have several.
pub(super) fn merged<'p, D: Disk>(
    store: &Core<D>,
    space: u32,
    partitions: impl Iterator<Item = &'p Arc<Partition<D>>>,
) -> Result<Vec<Replaced<D>>> {
    let several: Vec<_> = partitions.filter(|partition| partition.tables().len() > 1).collect();
    store.workers().each(&several, |&old| {
        let low = &old.low[..];
        let nothing = New { memtable: None, space, low, end: None };
        let new = Rewrite { store, space, low, old: Some(old) }.major(nothing)?;
        Ok(Replaced { space, old: Some(old.clone()), new })
    })
}

/// The new pairs of a range.
#[derive(Clone, Copy)]
struct New<'n> {
    /// `None` if there are none.
    memtable: Option<&'n Memtable>,
    space: u32,
    low: &'n [u8],
    end: Option<&'n [u8]>,
}

impl<'n> New<'n> {
    fn pairs(self) -> Pairs<'n> {
        let mut cursor = self.memtable.and_then(|memtable| memtable.cursor(self.space));
        let valid = cursor.as_mut().is_some_and(|cursor| cursor.seek(self.low));
        Pairs { cursor, valid, end: self.end }
    }

    fn is_empty(self) -> bool {
        self.pairs().key().is_none()
    }

    /// Bytes of all keys and values.
    fn bytes(self) -> u64 {
        let (mut pairs, mut bytes) = (self.pairs(), 0);
        while let Some(key) = pairs.key() {
            bytes += (key.len() + pairs.said().map_or(0, <[u8]>::len)) as u64;
            pairs.advance();
        }
        bytes
    }
}

/// New pairs in order.
struct Pairs<'n> {
    cursor: Option<Cursor>,
    valid: bool,
    end: Option<&'n [u8]>,
}

impl Pairs<'_> {
    fn key(&self) -> Option<&[u8]> {
        let key = if self.valid { self.cursor.as_ref()?.key() } else { None };
        key.filter(|key| self.end.is_none_or(|end| *key < end))
    }

    /// REQUIRES: there is a key.
    fn said(&self) -> Said<'_> {
        let versions = self.cursor.as_ref().and_then(|cursor| cursor.value_bytes());
        memtable::newest(versions.expect("it is at a pair"))
    }

    fn advance(&mut self) {
        self.valid = self.cursor.as_mut().is_some_and(|cursor| cursor.next());
    }
}

/// One partition that gets new pairs; `None` if there is none in the keyspace yet.
struct Rewrite<'s, D: Disk> {
    store: &'s Core<D>,
    space: u32,
    low: &'s [u8],
    old: Option<&'s Arc<Partition<D>>>,
}

impl<D: Disk> Rewrite<'_, D> {
    fn tables(&self) -> &[Arc<Table<D>>] {
        self.old.map_or(&[], |old| old.tables())
    }

    /// What takes the partition's place when it gets new pairs.
    fn take(&self, new: New<'_>) -> Result<Vec<Replaced<D>>> {
        let mut replaced = Vec::new();
        let behind = self.behind(new);
        let within = New { end: behind.as_deref().or(new.end), ..new };
        if !within.is_empty() {
            let new = self.run(within)?;
            replaced.extend(new.map(|new| Replaced { space: self.space, old: self.old.cloned(), new }));
        }
        if let Some(low) = &behind {
            let new = Rewrite { low, old: None, ..*self }.major(New { low, ..new })?;
            replaced.push(Replaced { space: self.space, old: None, new });
        }
        Ok(replaced)
    }

    /// Where new pairs begin that lie behind all that the partition has, if they are enough to stand by themselves:
    /// nobody has to look for their keys among the old ones then.
    fn behind(&self, new: New<'_>) -> Option<Vec<u8>> {
        let greatest = self.tables().iter().map(|table| table.greatest()).max()?;
        let low = [greatest, &[0]].concat();
        let behind = New { low: &low, ..new };
        let low = separator(greatest, behind.pairs().key()?);
        (behind.bytes() >= self.store.builder().table_bytes / ALONE).then_some(low)
    }

    /// What takes the partition's place; `None` if it stays.
    fn run(&self, new: New<'_>) -> Result<Option<Vec<Arc<Partition<D>>>>> {
        let sizes: Vec<u64> = self.tables().iter().map(|table| table.file_bytes()).collect();
        match plan(&sizes, new.bytes()) {
            Plan::Minor if sizes.is_empty() => self.major(new).map(Some),
            Plan::Minor => self.minor(new, sizes.len()),
            Plan::Partial { from } => self.minor(new, from),
            Plan::Major => self.major(new).map(Some),
        }
    }

    /// The new pairs and the tables from `from` on become the newest table.
    fn minor(&self, new: New<'_>, from: usize) -> Result<Option<Vec<Arc<Partition<D>>>>> {
        let (kept, merged) = self.tables().split_at(from);
        let order = if merged.is_empty() {
            None
        } else {
            Some(Arc::new(remix::build(&mut partition::runs(merged), false)?))
        };
        let old = Old::new(merged, order, Show::Tombstones, new)?;
        let output = merge(new, old, Output::new(self.store, u64::MAX))?;
        let mut tables = kept.to_vec();
        tables.extend(output.into_iter().map(|(_, table)| table));
        if tables.len() == self.tables().len() && merged.is_empty() {
            return Ok(None);
        }
        // What was known of the order of the old tables is still so, if they are all there.
        let (known, stored) = match self.old {
            Some(old) => (old.remix()?, old.stored()?),
            None => (None, None),
        };
        let known = known.filter(|_| merged.is_empty()).cloned();
        let remix = partition::order(known, &tables, self.store.builder().tags)?;
        let stored = stored.filter(|stored| stored.tables <= from);
        let stored = self.stored(remix.as_deref(), stored, &tables)?;
        Ok(Some(vec![Arc::new(Partition::new(self.low.to_vec(), tables, remix, stored))]))
    }

    /// The file of a REMIX: the one that there is, of the first tables, unless it is outgrown.
    fn stored(
        &self,
        remix: Option<&Remix>,
        stored: Option<Stored>,
        tables: &[Arc<Table<D>>],
    ) -> Result<Option<Stored>> {
        let Some(remix) = remix else { return Ok(None) };
        // One table is its own index.
        let known = stored.map_or(1, |stored| stored.tables);
        let entries: u64 = tables[..known].iter().map(|table| u64::from(table.entries())).sum();
        if remix.entries() < GROWTH * entries {
            return Ok(stored);
        }
        let number = self.store.next_number();
        remix.write(self.store.disk(), Name::remix(number), &partition::named(tables))?;
        Ok(Some(Stored { number, tables: tables.len() }))
    }

    /// Everything becomes partitions of one table. Pieces of it are written at once, each beginning with a partition of
    /// its own.
    fn major(&self, new: New<'_>) -> Result<Vec<Arc<Partition<D>>>> {
        let most = self.store.builder().table_bytes;
        let order = match self.old {
            Some(old) if !old.tables().is_empty() => Some(match old.remix()? {
                Some(remix) => remix.clone(),
                None => Arc::new(remix::build(&mut partition::runs(old.tables()), false)?),
            }),
            _ => None,
        };
        let bytes: u64 = self.tables().iter().map(|table| table.file_bytes()).sum();
        let pieces = (bytes / most).min(self.store.workers().count() as u64);
        let cuts = order.as_ref().map_or_else(Vec::new, |order| order.cuts(pieces as usize));
        let lows: Vec<&[u8]> = [self.low].into_iter().chain(cuts.iter().map(|cut| &cut[..])).collect();
        let numbers: Vec<usize> = (0..lows.len()).collect();
        let made = self.store.workers().each(&numbers, |&at| {
            let piece = New { low: lows[at], end: lows.get(at + 1).copied().or(new.end), ..new };
            let old = Old::new(self.tables(), order.clone(), Show::Live, piece)?;
            merge(piece, old, Output::new(self.store, most))
        })?;
        let mut new = Vec::new();
        for (piece, made) in made.into_iter().enumerate() {
            for (at, (low, table)) in made.into_iter().enumerate() {
                // The first table of all begins where the partition did, even if the first pieces have nothing left:
                // what is written there later has no other place. Any other piece's first table begins where the piece
                // does.
                let low = match (new.is_empty(), at) {
                    (true, _) => self.low.to_vec(),
                    (_, 0) => lows[piece].to_vec(),
                    _ => low,
                };
                new.push(Arc::new(Partition::new(low, vec![table], None, None)));
            }
        }
        if new.is_empty() {
            // Nobody else has the keys that would come here.
            new.push(Arc::new(Partition::new(self.low.to_vec(), Vec::new(), None, None)));
        }
        Ok(new)
    }
}

/// Writes the new pairs and those of tables in order; of a key that both have, the new one.
fn merge<D: Disk>(new: New<'_>, mut old: Old<'_, D>, mut output: Output<'_, D>) -> Result<Vec<Made<D>>> {
    let mut new = new.pairs();
    loop {
        let order = match (new.key(), old.key()) {
            (None, None) => return output.finish(),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(new), Some(old)) => new.cmp(old),
        };
        if order == Ordering::Greater {
            old.put(&mut output)?;
            old.advance()?;
            continue;
        }
        let key = new.key().expect("it has a key");
        match new.said() {
            Some(value) => output.add(key, Entry::Value(value))?,
            // With nothing older behind it, a tombstone says nothing.
            None if old.show == Show::Tombstones => output.add(key, Entry::Tombstone)?,
            None => {}
        }
        if order == Ordering::Equal {
            old.advance()?;
        }
        new.advance();
    }
}

/// The pairs of tables in order, in the range that new ones are for.
struct Old<'n, D: Disk> {
    cursor: Option<remix::Cursor<Arc<Remix>, Owned<D>>>,
    show: Show,
    end: Option<&'n [u8]>,
    key: Vec<u8>,
    valid: bool,
    value: Vec<u8>,
}

impl<'n, D: Disk> Old<'n, D> {
    /// Pairs of tables, whose order is given if there are any.
    fn new(
        tables: &[Arc<Table<D>>],
        order: Option<Arc<Remix>>,
        show: Show,
        range: New<'n>,
    ) -> Result<Old<'n, D>> {
        let cursor = order.map(|order| remix::Cursor::new(order, partition::runs(tables), show));
        let mut old = Old { cursor, show, end: range.end, key: Vec::new(), valid: false, value: Vec::new() };
        if let Some(cursor) = &mut old.cursor {
            cursor.seek(range.low)?;
            old.valid = cursor.key_into(&mut old.key)?;
            old.stop();
        }
        Ok(old)
    }

    /// Ends where the range does.
    fn stop(&mut self) {
        self.valid &= self.end.is_none_or(|end| &self.key[..] < end);
    }

    fn key(&self) -> Option<&[u8]> {
        self.valid.then_some(&self.key[..])
    }

    fn put(&mut self, output: &mut Output<'_, D>) -> Result<()> {
        let cursor = self.cursor.as_mut().expect("it has a key");
        let tombstone = cursor.entry().is_some_and(|entry| entry.tombstone);
        if tombstone {
            return output.add(&self.key, Entry::Tombstone);
        }
        let (run, ordinal) = cursor.run().expect("it has a key");
        self.value.clear();
        run.value_into(ordinal, &mut self.value)?;
        output.add(&self.key, Entry::Value(&self.value))
    }

    fn advance(&mut self) -> Result<()> {
        let cursor = self.cursor.as_mut().expect("it has a key");
        cursor.next();
        self.valid = cursor.key_into(&mut self.key)?;
        self.stop();
        Ok(())
    }
}

/// A table, and a key that none of its keys is less than and that all before it are less than.
type Made<D> = (Vec<u8>, Arc<Table<D>>);

/// Tables that are being written, one after the other.
struct Output<'s, D: Disk> {
    store: &'s Core<D>,
    /// A table that has so many bytes is finished.
    most: u64,
    builder: Option<(Vec<u8>, table::Builder<'s, D>)>,
    done: Vec<Made<D>>,
    /// The last key of the table before.
    before: Vec<u8>,
}

impl<'s, D: Disk> Output<'s, D> {
    fn new(store: &'s Core<D>, most: u64) -> Output<'s, D> {
        Output { store, most, builder: None, done: Vec::new(), before: Vec::new() }
    }

    fn add(&mut self, key: &[u8], entry: Entry<'_>) -> Result<()> {
        let is_next = match &self.builder {
            Some((_, builder)) => builder.takes(key),
            None => self.done.is_empty() || key > &self.before[..],
        };
        if !is_next {
            // Memtables are in order, so it is what was read that is not.
            return Err(Error::new(
                ErrorKind::Corrupt,
                "tables that are merged have keys that are not in order",
            ));
        }
        let (_, builder) = match &mut self.builder {
            Some(builder) => builder,
            none => {
                let name = Name::table(self.store.next_number());
                none.insert((separator(&self.before, key), table::Builder::new(self.store.disk(), name)?))
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
    fn finish(mut self) -> Result<Vec<Made<D>>> {
        self.complete()?;
        Ok(self.done)
    }
}

/// The shortest prefix of `key` that is greater than `before`.
fn separator(before: &[u8], key: &[u8]) -> Vec<u8> {
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

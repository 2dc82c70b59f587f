//! The pairs of a memtable on their way into the partitions of one keyspace.

use super::Replaced;
use super::plan::{Plan, plan};
use crate::error::Result;
use crate::remixdb::Core;
use crate::remixdb::disk::{Disk, Name};
use crate::remixdb::memtable::{self, Memtable, Said};
use crate::remixdb::partition::{self, Owned, Partition, Stored};
use crate::remixdb::planted::Bug;
use crate::remixdb::remix::{self, Remix, Show};
use crate::remixdb::table::{self, Entry, Table};
use crate::remixdb::version::Version;
use forrest_index::Cursor;
use std::cmp::Ordering;
use std::sync::Arc;

/// New pairs stand by themselves from one part of so many of a table's bytes on.
const ALONE: u64 = 8;
/// A REMIX is written when a partition has so many times the entries that its file, or its first table, has.
const GROWTH: u64 = 4;

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
        let Some(mut cursor) = memtable.cursor(space) else { return Ok(Vec::new()) };
        let rewrite = Rewrite { store, low: old.map_or_else(Vec::new, |old| old.low.clone()), old };
        let valid = cursor.seek(&rewrite.low);
        rewrite.take(space, Part { cursor: &mut cursor, valid, end })
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
        let new = Rewrite { store, low: old.low.clone(), old: Some(old) }.major(None)?;
        Ok(Replaced { space, old: Some(old.clone()), new })
    })
}

/// The pairs of a memtable that belong to one partition.
struct Part<'c> {
    cursor: &'c mut Cursor,
    valid: bool,
    end: Option<&'c [u8]>,
}

impl Part<'_> {
    fn key(&self) -> Option<&[u8]> {
        let key = if self.valid { self.cursor.key() } else { None };
        key.filter(|key| self.end.is_none_or(|end| *key < end))
    }

    fn said(&self) -> Said<'_> {
        memtable::newest(self.cursor.value_bytes().expect("it is at a pair"))
    }

    fn advance(&mut self) {
        self.valid = self.cursor.next();
    }

    /// Bytes of the pairs, from here on; comes back to here.
    fn bytes(&mut self) -> u64 {
        let Some(start) = self.key().map(<[u8]>::to_vec) else { return 0 };
        let mut bytes = 0;
        while let Some(key) = self.key() {
            bytes += (key.len() + self.said().map_or(0, <[u8]>::len)) as u64;
            self.advance();
        }
        self.valid = self.cursor.seek(&start);
        bytes
    }
}

/// One partition that gets new pairs; `None` if there is none in the keyspace yet.
struct Rewrite<'s, D: Disk> {
    store: &'s Core<D>,
    low: Vec<u8>,
    old: Option<&'s Arc<Partition<D>>>,
}

impl<D: Disk> Rewrite<'_, D> {
    fn tables(&self) -> &[Arc<Table<D>>] {
        self.old.map_or(&[], |old| old.tables())
    }

    /// What takes the partition's place when it gets new pairs.
    fn take(&self, space: u32, mut part: Part<'_>) -> Result<Vec<Replaced<D>>> {
        let (mut replaced, end) = (Vec::new(), part.end);
        let behind = self.behind(&mut part);
        let mut within = Part { end: behind.as_deref().or(end), valid: part.valid, cursor: part.cursor };
        if within.key().is_some() {
            let new = self.run(&mut within)?;
            replaced.extend(new.map(|new| Replaced { space, old: self.old.cloned(), new }));
        }
        if let Some(low) = &behind {
            let mut rest = Part { end, ..within };
            let new = Rewrite { store: self.store, low: low.clone(), old: None }.major(Some(&mut rest))?;
            replaced.push(Replaced { space, old: None, new });
        }
        Ok(replaced)
    }

    /// Where new pairs begin that lie behind all that the partition has, if they are enough to stand by themselves: nobody
    /// has to look for their keys among the old ones then.
    fn behind(&self, part: &mut Part<'_>) -> Option<Vec<u8>> {
        let greatest = self.tables().iter().map(|table| table.greatest()).max()?;
        let start = part.key()?.to_vec();
        part.valid = part.cursor.seek(&[greatest, &[0]].concat());
        let low = part.key().map(|first| separator(greatest, first));
        let bytes = part.bytes();
        part.valid = part.cursor.seek(&start);
        low.filter(|_| bytes >= self.store.builder().table_bytes / ALONE)
    }

    /// What takes the partition's place; `None` if it stays.
    fn run(&self, part: &mut Part<'_>) -> Result<Option<Vec<Arc<Partition<D>>>>> {
        let sizes: Vec<u64> = self.tables().iter().map(|table| table.file_bytes()).collect();
        match plan(&sizes, part.bytes()) {
            Plan::Minor if sizes.is_empty() => self.major(Some(part)).map(Some),
            Plan::Minor => self.minor(part, sizes.len()),
            Plan::Partial { from } => self.minor(part, from),
            Plan::Major => self.major(Some(part)).map(Some),
        }
    }

    /// The new pairs and the tables from `from` on become the newest table.
    fn minor(&self, part: &mut Part<'_>, from: usize) -> Result<Option<Vec<Arc<Partition<D>>>>> {
        let (kept, merged) = self.tables().split_at(from);
        let mut output = Output::new(self.store, u64::MAX);
        self.merge(Some(part), merged, Show::Tombstones, &mut output)?;
        let mut tables = kept.to_vec();
        tables.extend(output.finish()?.into_iter().map(|(_, table)| table));
        if tables.len() == self.tables().len() && merged.is_empty() {
            return Ok(None);
        }
        // What was known of the order of the old tables is still so, if they are all there.
        let known = self.old.and_then(|old| old.remix()).filter(|_| merged.is_empty());
        let remix = partition::order(known.cloned(), &tables, self.store.builder().tags)?;
        let stored = self.old.and_then(|old| old.stored()).filter(|stored| stored.tables <= from);
        let stored = self.stored(remix.as_deref(), stored, &tables)?;
        Ok(Some(vec![Arc::new(Partition::new(self.low.clone(), tables, remix, stored))]))
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

    /// Everything becomes partitions of one table.
    fn major(&self, part: Option<&mut Part<'_>>) -> Result<Vec<Arc<Partition<D>>>> {
        let mut output = Output::new(self.store, self.store.builder().table_bytes);
        self.merge(part, self.tables(), Show::Live, &mut output)?;
        let mut new = Vec::new();
        for (low, table) in output.finish()? {
            let low = if new.is_empty() && !Bug::LowForgotten.is_planted() { self.low.clone() } else { low };
            new.push(Arc::new(Partition::new(low, vec![table], None, None)));
        }
        if new.is_empty() {
            // Nobody else has the keys that would come here.
            new.push(Arc::new(Partition::new(self.low.clone(), Vec::new(), None, None)));
        }
        Ok(new)
    }

    /// Writes the new pairs and those of tables in order; of a key that both have, the new one.
    fn merge(
        &self,
        mut part: Option<&mut Part<'_>>,
        tables: &[Arc<Table<D>>],
        show: Show,
        output: &mut Output<'_, D>,
    ) -> Result<()> {
        let mut old = Old::new(tables, show)?;
        loop {
            let new_key = part.as_ref().and_then(|part| part.key());
            let order = match (new_key, old.key()) {
                (None, None) => return Ok(()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(new), Some(old)) => new.cmp(old),
            };
            if order == Ordering::Greater {
                old.put(output)?;
                old.advance()?;
                continue;
            }
            let part = part.as_mut().expect("it has a key");
            let key = part.key().expect("it has a key");
            match part.said() {
                Some(value) => output.add(key, Entry::Value(value))?,
                // With nothing older behind it, a tombstone says nothing.
                None if show == Show::Tombstones && !Bug::TombstoneDropped.is_planted() => {
                    output.add(key, Entry::Tombstone)?
                }
                None => {}
            }
            if order == Ordering::Equal {
                old.advance()?;
            }
            part.advance();
        }
    }
}

/// The pairs of tables in order.
struct Old<D: Disk> {
    cursor: Option<remix::Cursor<Box<Remix>, Owned<D>>>,
    key: Vec<u8>,
    valid: bool,
    value: Vec<u8>,
}

impl<D: Disk> Old<D> {
    fn new(tables: &[Arc<Table<D>>], show: Show) -> Result<Old<D>> {
        let mut old = Old { cursor: None, key: Vec::new(), valid: false, value: Vec::new() };
        if !tables.is_empty() {
            let mut runs = partition::runs(tables);
            let remix = remix::build(&mut runs, false)?;
            let mut cursor = remix::Cursor::new(Box::new(remix), runs, show);
            cursor.first();
            old.valid = cursor.key_into(&mut old.key)?;
            old.cursor = Some(cursor);
        }
        Ok(old)
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

//! [`New`]: the pairs that a range of keys gets from a memtable; and [`Deleted`]: the keys that the memtable deletes there
//! together, as far as tables have them.

use crate::disk;
use crate::memtable::{self, Memtable, Said};
use crate::partition::{self, Owned};
use crate::ranges::Ranges;
use crate::table::{self, Table};
use crate::wrapped;
use forrest_engine::Result;
use forrest_index::Cursor;
use std::sync::Arc;

#[cfg(test)]
thread_local! {
    /// Number of hidden pairs that flushes of this thread passed, so that tests can count work.
    pub(crate) static HIDDEN: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// The new pairs of a range.
#[derive(Clone, Copy)]
pub(super) struct New<'n> {
    /// `None` if there are none.
    pub(super) memtable: Option<&'n Memtable>,
    pub(super) space: u32,
    pub(super) low: &'n [u8],
    pub(super) end: Option<&'n [u8]>,
    /// Whether values that are in a log stay there.
    pub(super) keeps: bool,
}

impl<'n> New<'n> {
    pub(super) fn pairs(self) -> Pairs<'n> {
        let mut cursor = self.memtable.and_then(|memtable| memtable.cursor(self.space));
        let valid = cursor.as_mut().is_some_and(|cursor| cursor.seek(self.low));
        let mut pairs = Pairs { cursor, valid, end: self.end, deleted: self.deleted() };
        pairs.settle();
        pairs
    }

    /// The ranges that it deletes.
    pub(super) fn deleted(self) -> Option<Arc<Ranges>> {
        self.memtable.and_then(|memtable| memtable.ranges(self.space))
    }

    pub(super) fn is_empty(self) -> bool {
        self.pairs().key().is_none()
    }

    /// Bytes of all keys and values, without those that stay in a log.
    pub(super) fn bytes(self) -> u64 {
        let (mut pairs, mut bytes) = (self.pairs(), 0);
        while let Some(key) = pairs.key() {
            let value = match pairs.said() {
                Said::Wrapped(bytes) if self.keeps && wrapped::place_of(bytes).is_some() => {
                    wrapped::POINTER_BYTES
                }
                said => said.bytes().len(),
            };
            bytes += (key.len() + value) as u64;
            pairs.advance();
        }
        bytes
    }
}

/// New pairs in order.
pub(super) struct Pairs<'n> {
    cursor: Option<Cursor>,
    valid: bool,
    end: Option<&'n [u8]>,
    deleted: Option<Arc<Ranges>>,
}

impl Pairs<'_> {
    pub(super) fn key(&self) -> Option<&[u8]> {
        let key = if self.valid { self.cursor.as_ref()?.key() } else { None };
        key.filter(|key| self.end.is_none_or(|end| *key < end))
    }

    /// REQUIRES: there is a key.
    pub(super) fn said(&self) -> Said<'_> {
        let versions = self.cursor.as_ref().and_then(|cursor| cursor.value_bytes());
        memtable::newest(versions.expect("it is at a pair")).1
    }

    pub(super) fn advance(&mut self) {
        self.valid = self.cursor.as_mut().is_some_and(|cursor| cursor.next());
        self.settle();
    }

    /// Passes the pairs that a later delete of a range hides.
    fn settle(&mut self) {
        let Pairs { cursor: Some(cursor), valid, deleted: Some(deleted), .. } = self else { return };
        while *valid && let (Some(key), Some(versions)) = (cursor.key(), cursor.value_bytes()) {
            if self.end.is_some_and(|end| key >= end) {
                return;
            }
            if !deleted.hides(key, memtable::newest(versions).0, u64::MAX) {
                return;
            }
            *valid = cursor.next();
            #[cfg(test)]
            HIDDEN.set(HIDDEN.get() + 1);
        }
    }
}

/// The keys in the deleted ranges of a memtable that tables have: they get tombstones. They are found in each table by
/// itself, so that damage in one keeps nobody from the keys of the others. A key that cannot be read is passed: to read
/// it is an error.
pub(super) struct Deleted<'n> {
    /// `None` if there is nothing to find.
    within: Option<(Arc<Ranges>, New<'n>)>,
    /// From the newest table on.
    tables: Vec<Places>,
    /// The one that has the least key.
    least: Option<usize>,
}

/// A table, and its next key in the ranges.
struct Places {
    table: Owned,
    ordinal: u32,
    /// The key there, if there is one.
    key: Vec<u8>,
    is_tombstone: bool,
    valid: bool,
}

impl<'n> Deleted<'n> {
    pub(super) fn none() -> Deleted<'n> {
        Deleted { within: None, tables: Vec::new(), least: None }
    }

    /// The keys of tables in the ranges that are deleted with the new pairs.
    pub(super) fn new(tables: &[Arc<Table>], new: New<'n>) -> Result<Deleted<'n>> {
        let Some(ranges) = new.deleted().filter(|_| !tables.is_empty()) else { return Ok(Deleted::none()) };
        let mut places = Vec::new();
        for table in partition::runs(tables).into_iter().rev() {
            let (key, is_tombstone, valid) = (Vec::new(), false, false);
            let mut place = Places { table, ordinal: 0, key, is_tombstone, valid };
            place.jump(new.low, 0)?;
            place.settle(&ranges, new)?;
            places.push(place);
        }
        let mut deleted = Deleted { within: Some((ranges, new)), tables: places, least: None };
        deleted.settle()?;
        Ok(deleted)
    }

    pub(super) fn key(&self) -> Option<&[u8]> {
        self.least.map(|least| &self.tables[least].key[..])
    }

    /// Moves to the next key.
    pub(super) fn advance(&mut self) -> Result<()> {
        self.pass()?;
        self.settle()
    }

    /// Moves all tables that have the least key.
    fn pass(&mut self) -> Result<()> {
        let (Some(least), Some((ranges, new))) = (self.least, &self.within) else { return Ok(()) };
        let key = std::mem::take(&mut self.tables[least].key);
        for (at, place) in self.tables.iter_mut().enumerate() {
            if place.valid && (at == least || place.key == key) {
                place.ordinal += 1;
                place.settle(ranges, *new)?;
            }
        }
        Ok(())
    }

    /// Moves to the first key that is not deleted already.
    fn settle(&mut self) -> Result<()> {
        loop {
            let valid = self.tables.iter().enumerate().filter(|(_, place)| place.valid);
            // Of equal keys the first counts, which is the newest.
            self.least = valid.min_by(|(_, a), (_, b)| a.key.cmp(&b.key)).map(|(at, _)| at);
            match self.least {
                Some(least) if self.tables[least].is_tombstone => self.pass()?,
                _ => return Ok(()),
            }
        }
    }
}

impl Places {
    /// Moves to the first key that is not less, at `least` or after it. If the search meets damage, moves to `least`.
    fn jump(&mut self, key: &[u8], least: u32) -> Result<()> {
        self.ordinal = match self.table.lower_bound(key) {
            Err(error) if disk::is_damage(&error) => least,
            found => found?.max(least),
        };
        Ok(())
    }

    /// Moves on to a key that is in the ranges and can be read.
    fn settle(&mut self, ranges: &Ranges, new: New<'_>) -> Result<()> {
        self.valid = false;
        while self.ordinal < self.table.table().entries() {
            self.key.clear();
            match self.table.key_into(self.ordinal, &mut self.key) {
                Err(error) if disk::is_damage(&error) => {
                    // All keys of the block.
                    self.ordinal = table::block_after(self.ordinal);
                    continue;
                }
                read => read?,
            }
            let Some((start, _)) = ranges.within(new.low.max(&self.key), new.end).next() else {
                return Ok(());
            };
            if *self.key >= *start {
                self.valid = true;
                self.is_tombstone = match self.table.is_deleted(self.ordinal) {
                    Err(error) if disk::is_damage(&error) => false,
                    read => read?,
                };
                return Ok(());
            }
            let start = start.to_vec();
            self.jump(&start, self.ordinal + 1)?;
        }
        Ok(())
    }
}

//! The read path of ranges: a merge of the memtables and the partitions, in either direction.
//!
//! Inside a partition nothing is compared (see [`remix`](crate::remixdb::remix)); here are the few comparisons with what
//! the memtables have, and none once they have nothing more in the range.

use crate::error::Result;
use crate::remixdb::disk::Disk;
use crate::remixdb::memtable::{Said, Upto};
use crate::remixdb::partition::{self, Partition};
use crate::remixdb::version::Version;
use forrest_index::{Cursor, Direction};
use std::cmp::Ordering;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// The value of a pair, where it is.
pub(crate) enum Shown<'a, D: Disk> {
    Memory(&'a [u8]),
    Table(&'a mut partition::Cursor<D>),
}

impl<D: Disk> Shown<'_, D> {
    /// Shows the bytes.
    #[inline]
    pub(crate) fn with<R>(self, see: impl FnOnce(&[u8]) -> R) -> Result<R> {
        match self {
            Shown::Memory(bytes) => Ok(see(bytes)),
            Shown::Table(cursor) => cursor.value_with(see),
        }
    }
}

/// What is visible in a memtable, from one end of a range to the other.
struct Memory {
    cursor: Cursor,
    direction: Direction,
    /// Whether there is a pair at the cursor.
    valid: bool,
}

impl Memory {
    fn key(&self) -> Option<&[u8]> {
        if self.valid { self.cursor.key() } else { None }
    }

    fn said(&self, upto: Upto<'_>) -> Option<Said<'_>> {
        self.cursor.value_bytes().and_then(|versions| upto.see(versions))
    }

    /// Goes on until something is visible.
    fn settle(&mut self, upto: Upto<'_>) {
        while self.valid && self.said(upto).is_none() {
            self.step();
        }
    }

    fn step(&mut self) {
        self.valid = match self.direction {
            Direction::Forward => self.cursor.next(),
            Direction::Backward => self.cursor.prev(),
        };
    }

    fn advance(&mut self, upto: Upto<'_>) {
        self.step();
        self.settle(upto);
    }

    fn start(mut cursor: Cursor, upto: Upto<'_>, from: Bound<&[u8]>, direction: Direction) -> Memory {
        let valid = match (direction, from) {
            (Direction::Forward, Bound::Unbounded) => cursor.first(),
            (Direction::Forward, Bound::Included(key) | Bound::Excluded(key)) => cursor.seek(key),
            (Direction::Backward, Bound::Unbounded) => cursor.last(),
            (Direction::Backward, Bound::Included(key) | Bound::Excluded(key)) => cursor.seek_for_prev(key),
        };
        let mut memory = Memory { cursor, direction, valid };
        if let Bound::Excluded(key) = from
            && memory.key() == Some(key)
        {
            memory.step();
        }
        memory.settle(upto);
        memory
    }
}

/// The partitions of a keyspace, from one end of a range to the other.
struct Tables<D: Disk> {
    direction: Direction,
    /// Which partition the cursor is in.
    at: usize,
    /// At a pair; `None` at the end.
    cursor: Option<partition::Cursor<D>>,
}

impl<D: Disk> Tables<D> {
    fn start(partitions: &[Arc<Partition<D>>], from: Bound<&[u8]>, direction: Direction) -> Result<Self> {
        let mut tables = Tables { direction, at: 0, cursor: None };
        if partitions.is_empty() {
            return Ok(tables);
        }
        let (Bound::Included(key) | Bound::Excluded(key)) = from else {
            tables.at = if direction == Direction::Forward { 0 } else { partitions.len() - 1 };
            let mut cursor = partitions[tables.at].cursor()?;
            let valid = if direction == Direction::Forward { cursor.first()? } else { cursor.last()? };
            tables.cursor = Some(cursor);
            tables.settle(partitions, valid)?;
            return Ok(tables);
        };
        let beyond = partitions.partition_point(|partition| *partition.low <= *key);
        if beyond == 0 && direction == Direction::Backward {
            return Ok(tables);
        }
        tables.at = beyond.saturating_sub(1);
        let mut cursor = partitions[tables.at].cursor()?;
        let mut valid =
            if direction == Direction::Forward { cursor.seek(key)? } else { cursor.seek_for_prev(key)? };
        if valid && matches!(from, Bound::Excluded(_)) && cursor.key() == key {
            valid = if direction == Direction::Forward { cursor.next()? } else { cursor.prev()? };
        }
        tables.cursor = Some(cursor);
        tables.settle(partitions, valid)?;
        Ok(tables)
    }

    fn key(&self) -> Option<&[u8]> {
        self.cursor.as_ref().map(partition::Cursor::key)
    }

    /// Goes on to the next partition that has a pair, if there is none at the cursor.
    fn settle(&mut self, partitions: &[Arc<Partition<D>>], mut valid: bool) -> Result<()> {
        while !valid {
            let next = match self.direction {
                Direction::Forward => Some(self.at + 1).filter(|at| *at < partitions.len()),
                Direction::Backward => self.at.checked_sub(1),
            };
            let Some(next) = next else {
                self.cursor = None;
                return Ok(());
            };
            self.at = next;
            let mut cursor = partitions[next].cursor()?;
            valid = if self.direction == Direction::Forward { cursor.first()? } else { cursor.last()? };
            self.cursor = Some(cursor);
        }
        Ok(())
    }

    #[inline]
    fn advance(&mut self, partitions: &[Arc<Partition<D>>]) -> Result<()> {
        let Some(cursor) = &mut self.cursor else { return Ok(()) };
        let valid = if self.direction == Direction::Forward { cursor.next()? } else { cursor.prev()? };
        if valid { Ok(()) } else { self.settle(partitions, false) }
    }
}

/// True if `key` lies beyond the end of a range that is gone through in `direction`.
#[inline]
fn is_beyond(key: &[u8], end: Bound<&[u8]>, direction: Direction) -> bool {
    let order = |other: &[u8]| match direction {
        Direction::Forward => key.cmp(other),
        Direction::Backward => other.cmp(key),
    };
    match end {
        Bound::Unbounded => false,
        Bound::Included(other) => order(other) == Ordering::Greater,
        Bound::Excluded(other) => order(other) != Ordering::Less,
    }
}

/// A scan that can go on later where it stopped. It holds the version that it reads, and keeps nobody from anything.
pub(crate) struct Scan<D: Disk> {
    version: Arc<Version<D>>,
    space: u32,
    direction: Direction,
    memories: Vec<Memory>,
    tables: Tables<D>,
}

impl<D: Disk> Scan<D> {
    /// A scan of the pairs from one end of a range on.
    pub(crate) fn start(
        version: Arc<Version<D>>,
        space: u32,
        upto: Upto<'_>,
        from: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<Scan<D>> {
        let tables = Tables::start(version.partitions(space), from, direction)?;
        let cursors = version.memtables().filter_map(|memtable| memtable.cursor(space));
        let memories = cursors.map(|cursor| Memory::start(cursor, upto, from, direction)).collect();
        Ok(Scan { version, space, direction, memories, tables })
    }

    /// Whether it reads this version.
    pub(crate) fn reads(&self, version: &Arc<Version<D>>) -> bool {
        Arc::ptr_eq(&self.version, version)
    }

    /// Shows the pairs that are left in order, up to the other end of the range or until `see` has enough. After an
    /// error it cannot go on.
    pub(crate) fn run(
        &mut self,
        upto: Upto<'_>,
        end: Bound<&[u8]>,
        mut see: impl FnMut(&[u8], Shown<'_, D>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let Scan { version, space, direction, memories, tables } = self;
        let (partitions, direction) = (version.partitions(*space), *direction);
        loop {
            memories.retain(|memory| memory.key().is_some_and(|key| !is_beyond(key, end, direction)));
            if memories.is_empty() {
                return scan_tables(tables, partitions, end, direction, see);
            }
            let first = first_of(memories, direction);
            let key = memories[first].key().expect("it is valid");
            let order = tables.key().map_or(Ordering::Greater, |other| match direction {
                Direction::Forward => other.cmp(key),
                Direction::Backward => key.cmp(other),
            });
            if order == Ordering::Less {
                let cursor = tables.cursor.as_mut().expect("it has a key");
                let go_on = show(cursor, &mut see)?;
                tables.advance(partitions)?;
                if go_on.is_break() {
                    return Ok(());
                }
                continue;
            }
            let go_on = match memories[first].said(upto) {
                Some(Some(value)) => see(key, Shown::Memory(value))?,
                _ => ControlFlow::Continue(()),
            };
            if order == Ordering::Equal {
                tables.advance(partitions)?;
            }
            // The newest has the word on this key; the others pass it too.
            let (newer, older) = memories.split_at_mut(first + 1);
            let newest = &mut newer[first];
            for memory in older {
                if memory.key() == newest.key() {
                    memory.advance(upto);
                }
            }
            newest.advance(upto);
            if go_on.is_break() {
                return Ok(());
            }
        }
    }
}

/// Shows the pairs of a range, in order from the end that `direction` starts at, until `see` has enough.
pub(crate) fn scan<D: Disk>(
    version: &Arc<Version<D>>,
    space: u32,
    upto: Upto<'_>,
    (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
    direction: Direction,
    see: impl FnMut(&[u8], Shown<'_, D>) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let (from, end) = if direction == Direction::Forward { (lower, upper) } else { (upper, lower) };
    Scan::start(version.clone(), space, upto, from, direction)?.run(upto, end, see)
}

/// Which memtable has the next key; of several that have it the newest, which is the first.
fn first_of(memories: &[Memory], direction: Direction) -> usize {
    let mut first = 0;
    for at in 1..memories.len() {
        let (key, least) = (memories[at].key(), memories[first].key());
        let before = if direction == Direction::Forward { key < least } else { key > least };
        if before {
            first = at;
        }
    }
    first
}

#[inline]
fn show<D: Disk>(
    cursor: &mut partition::Cursor<D>,
    see: &mut impl FnMut(&[u8], Shown<'_, D>) -> Result<ControlFlow<()>>,
) -> Result<ControlFlow<()>> {
    cursor.with_key(|key, cursor| see(key, Shown::Table(cursor)))
}

/// The rest of a range, when only the tables have any of it.
#[inline]
fn scan_tables<D: Disk>(
    tables: &mut Tables<D>,
    partitions: &[Arc<Partition<D>>],
    end: Bound<&[u8]>,
    direction: Direction,
    mut see: impl FnMut(&[u8], Shown<'_, D>) -> Result<ControlFlow<()>>,
) -> Result<()> {
    while let Some(cursor) = &mut tables.cursor {
        if is_beyond(cursor.key(), end, direction) {
            return Ok(());
        }
        let go_on = show(cursor, &mut see)?;
        tables.advance(partitions)?;
        if go_on.is_break() {
            return Ok(());
        }
    }
    Ok(())
}

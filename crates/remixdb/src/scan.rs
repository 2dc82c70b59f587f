//! The read path of ranges: a merge of the memtables and the partitions, in either direction.
//!
//! Inside a partition no keys are compared (see [`remix`](crate::remix)). Here a few are compared with those
//! of the memtables, and none once the memtables have nothing more in the range.
//!
//! A scan that passes [`MANY`] entries of deleted keys before the next pair remembers their range, and later scans jump
//! over it ([`gaps`](crate::gaps)).
//!
//! Where a memtable has deleted a range of keys, the scan moves all older places to the end of the range at once
//! ([`jump_deleted`]). It counts the range deletes that were visible when it was placed; those that come later hide
//! nothing from it, until it is placed again.
//!
//! A scan that comes to a partition and cannot read it fails once it has shown all pairs before that partition's range,
//! and not at all if its own range ends before.

use crate::disk;
use crate::gaps::{Changes, Gaps, Jump};
use crate::memtable::{Memtable, ReadAt, Said};
use crate::operands::Operated;
use crate::partition::{Pair, Partition, PartitionCursor, Visit};
use crate::ranges::Ranges;
use crate::read;
use crate::table::{Reader, SharedReader};
use crate::version::Version;
use crate::wrapped::Entry;
use forrest_engine::{Error, ErrorKind, KeyBounds, Result};
use forrest_index::{Cursor, Direction};
use std::cmp::Ordering;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// The number of dead entries from which on a scan remembers them. In tests few, so that all of this happens.
const MANY: u64 = if cfg!(test) { 4 } else { 32 };

/// The number of dead entries after a known gap from which on a scan extends the gap.
const MORE: u64 = MANY / 4;

#[cfg(test)]
thread_local! {
    /// Number of entries that scans of this thread moved past, so that tests can count work.
    pub(crate) static PASSED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Counts entries that a scan moves past, or a range delete among the changes of its batch.
#[inline]
pub(crate) fn count_passed(_entries: u64) {
    #[cfg(test)]
    PASSED.set(PASSED.get() + _entries);
}

/// Passes all pairs with their values. Those that a walk has at hand take the short way.
pub(crate) struct Values<F>(pub(crate) F);

impl<F: FnMut(&[u8], &[u8]) -> ControlFlow<()>> Visit for Values<F> {
    #[inline(always)]
    fn here(&mut self, key: &[u8], value: &[u8]) -> Result<ControlFlow<()>> {
        Ok(self.0(key, value))
    }

    #[inline(never)]
    fn pair(&mut self, key: &[u8], pair: Pair<'_>) -> Result<ControlFlow<()>> {
        pair.with(|value| self.0(key, value))
    }
}

/// Passes the keys of all pairs.
pub(crate) struct Keys<F>(pub(crate) F);

impl<F: FnMut(&[u8]) -> ControlFlow<()>> Visit for Keys<F> {
    #[inline]
    fn here(&mut self, key: &[u8], _value: &[u8]) -> Result<ControlFlow<()>> {
        Ok(self.0(key))
    }

    #[inline]
    fn pair(&mut self, key: &[u8], _pair: Pair<'_>) -> Result<ControlFlow<()>> {
        Ok(self.0(key))
    }
}

/// The value of a key that has operands in a memtable; `None` if it was deleted meanwhile. For keys only, its value
/// does not matter, and is not read.
#[cold]
#[inline(never)]
fn merged(
    version: &Version,
    space: u32,
    key: &[u8],
    read_at: ReadAt<'_>,
    keys_only: bool,
) -> Result<Option<Vec<u8>>> {
    match keys_only {
        true => Ok(Some(Vec::new())),
        false => read::gathered(version, space, key, read_at),
    }
}

/// Applies operands of a partition that is scanned.
struct Applies {
    partition: Arc<Partition>,
    operated: Arc<Operated>,
    space: u32,
}

impl Reader for Applies {
    fn now_ms(&self) -> u64 {
        // The scan looks whether values have expired.
        0
    }

    fn gathered(&self, key: &[u8]) -> Result<Vec<u8>> {
        self.partition.gathered(&self.operated, self.space, key)
    }
}

/// The visible pairs of a memtable, from one end of a range to the other.
struct Memory {
    /// `None` if it has no keys, only ranges.
    cursor: Option<Cursor>,
    direction: Direction,
    /// Whether there is a pair at the cursor.
    valid: bool,
    /// The ranges that it deletes, up to a sequence number.
    ranges: Option<(Arc<Ranges>, u64)>,
}

impl Memory {
    fn key(&self) -> Option<&[u8]> {
        if self.valid { self.cursor.as_ref()?.key() } else { None }
    }

    /// What the reader sees at the cursor; `None` if it sees nothing.
    fn said(&self, read_at: ReadAt<'_>) -> Option<Said<'_>> {
        let versions = self.cursor.as_ref()?.value_bytes()?;
        let (sequence, said) = read_at.see(versions)?;
        match (&self.ranges, self.key()) {
            (Some((ranges, until)), Some(key)) if ranges.hides(key, sequence, *until) => {
                Some(Entry::Tombstone)
            }
            _ => Some(said),
        }
    }

    /// Where an older place goes on after the deleted range that has a key; `None` if none has it.
    fn beyond(&self, key: &[u8]) -> Option<Option<Bound<&[u8]>>> {
        let (ranges, until) = self.ranges.as_ref()?;
        ranges.beyond(key, *until, self.direction)
    }

    /// Whether it deletes all keys from `start` up to `end`.
    fn deletes(&self, start: &[u8], end: Option<&[u8]>) -> bool {
        self.ranges.as_ref().is_some_and(|(ranges, until)| ranges.has_all(start, end, *until))
    }

    /// Moves on until the pair is visible.
    fn settle(&mut self, read_at: ReadAt<'_>) {
        while self.valid && self.said(read_at).is_none() {
            self.step();
        }
    }

    fn step(&mut self) {
        count_passed(1);
        let Some(cursor) = &mut self.cursor else { return };
        self.valid = match self.direction {
            Direction::Forward => cursor.next(),
            Direction::Backward => cursor.prev(),
        };
    }

    fn advance(&mut self, read_at: ReadAt<'_>) {
        self.step();
        self.settle(read_at);
    }

    fn seek(&mut self, read_at: ReadAt<'_>, from: Bound<&[u8]>, direction: Direction) {
        self.direction = direction;
        let Some(cursor) = &mut self.cursor else { return };
        self.valid = match (direction, from) {
            (Direction::Forward, Bound::Unbounded) => cursor.first(),
            (Direction::Forward, Bound::Included(key) | Bound::Excluded(key)) => cursor.seek(key),
            (Direction::Backward, Bound::Unbounded) => cursor.last(),
            (Direction::Backward, Bound::Included(key) | Bound::Excluded(key)) => cursor.seek_for_prev(key),
        };
        if let Bound::Excluded(key) = from
            && self.key() == Some(key)
        {
            self.step();
        }
        self.settle(read_at);
    }
}

/// The partitions of a keyspace, from one end of a range to the other.
struct Tables {
    direction: Direction,
    keys_only: bool,
    /// The index of the partition that the cursor is in.
    at: usize,
    cursor: Option<PartitionCursor>,
    /// Whether that has values that may expire, and the time at which it is read.
    may_expire: bool,
    read_ms: u64,
    /// Whether there is a pair at the cursor.
    valid: bool,
    /// Dead entries passed in partitions that it has left, since it was placed.
    passed: u64,
    /// Why the partition cannot be read that the scan comes to next. There is no pair at the cursor then.
    fault: Option<Error>,
    /// What applies operands in the keyspace, if the store has some.
    operated: Option<Box<(Arc<Operated>, u32)>>,
}

impl Tables {
    /// Number of dead entries that it passed since it was placed, or since the last call.
    fn take_passed(&mut self) -> u64 {
        let passed = self.cursor.as_mut().map_or(0, PartitionCursor::take_passed);
        let passed = passed + std::mem::take(&mut self.passed);
        count_passed(passed);
        passed
    }

    /// Enters a partition, to be placed there.
    fn enter(
        &mut self,
        partitions: &[Arc<Partition>],
        at: usize,
        read_at: ReadAt<'_>,
    ) -> Result<&mut PartitionCursor> {
        if self.at != at {
            self.passed += self.cursor.take().map_or(0, |mut cursor| cursor.take_passed());
            self.at = at;
        }
        let cursor = match &mut self.cursor {
            Some(cursor) => cursor,
            none => {
                let cursor = none.insert(partitions[at].cursor(self.keys_only, 0)?);
                if let Some(operated) = &self.operated {
                    apply_in(cursor, &partitions[at], operated);
                }
                cursor
            }
        };
        self.may_expire = partitions[at].may_expire();
        if self.may_expire {
            self.read_ms = read_at.now_ms();
            cursor.set_time(self.read_ms);
        }
        Ok(cursor)
    }

    fn seek(
        &mut self,
        partitions: &[Arc<Partition>],
        read_at: ReadAt<'_>,
        from: Bound<&[u8]>,
        direction: Direction,
    ) {
        (self.direction, self.valid, self.fault) = (direction, false, None);
        if partitions.is_empty() {
            return;
        }
        if let Some(cursor) = &mut self.cursor {
            cursor.take_passed();
        }
        self.passed = 0;
        let forward = direction == Direction::Forward;
        let (Bound::Included(key) | Bound::Excluded(key)) = from else {
            self.enter_at_end(partitions, if forward { 0 } else { partitions.len() - 1 }, read_at);
            return self.settle(partitions, read_at);
        };
        let after = matches!(from, Bound::Excluded(_));
        // A partition that begins at a key has none before it.
        let is_before = |low: &[u8]| if after && !forward { low < key } else { low <= key };
        let beyond = partitions.partition_point(|partition| is_before(&partition.low));
        if beyond == 0 && !forward {
            return;
        }
        let found = self.find(partitions, beyond.saturating_sub(1), read_at, key, after);
        self.note(found);
        self.settle(partitions, read_at);
    }

    /// Enters a partition at the first key from `key` on, or after it; whether there is one.
    fn find(
        &mut self,
        partitions: &[Arc<Partition>],
        at: usize,
        read_at: ReadAt<'_>,
        key: &[u8],
        after: bool,
    ) -> Result<bool> {
        let forward = self.direction == Direction::Forward;
        let cursor = self.enter(partitions, at, read_at)?;
        let valid = if forward { cursor.seek(key)? } else { cursor.seek_for_prev(key)? };
        if !(valid && after && cursor.key() == key) {
            return Ok(valid);
        }
        if forward { cursor.next() } else { cursor.prev() }
    }

    /// Enters a partition at the end where the scan meets it.
    fn enter_at_end(&mut self, partitions: &[Arc<Partition>], at: usize, read_at: ReadAt<'_>) {
        let forward = self.direction == Direction::Forward;
        let entered = self.enter(partitions, at, read_at);
        let found = entered.and_then(|cursor| if forward { cursor.first() } else { cursor.last() });
        self.note(found);
    }

    /// Notes whether there is a pair at the cursor, or why the partition cannot be read.
    fn note(&mut self, found: Result<bool>) {
        match found {
            Ok(valid) => self.valid = valid,
            Err(error) => (self.valid, self.fault) = (false, Some(error)),
        }
    }

    /// An error if what comes next is in a partition that cannot be read: the next key of the memtables is in its
    /// range, or there is none up to the end of the scan, which is.
    #[inline]
    fn check(&self, partitions: &[Arc<Partition>], next: Option<&[u8]>, end: Bound<&[u8]>) -> Result<()> {
        match &self.fault {
            None => Ok(()),
            Some(fault) => self.check_fault(fault, partitions, next, end),
        }
    }

    #[cold]
    fn check_fault(
        &self,
        fault: &Error,
        partitions: &[Arc<Partition>],
        next: Option<&[u8]>,
        end: Bound<&[u8]>,
    ) -> Result<()> {
        let end = next.map_or(end, Bound::Included);
        let is_reached = match (self.direction, end) {
            (Direction::Forward, end) => !is_beyond(&partitions[self.at].low, end, Direction::Forward),
            (Direction::Backward, Bound::Unbounded) => true,
            (Direction::Backward, Bound::Included(key) | Bound::Excluded(key)) => {
                partitions.get(self.at + 1).is_none_or(|next| *key < *next.low)
            }
        };
        if is_reached { Err(disk::again(fault)) } else { Ok(()) }
    }

    /// The cursor, if it is at a pair.
    #[inline]
    fn cursor(&mut self) -> Option<&mut PartitionCursor> {
        if self.valid { self.cursor.as_mut() } else { None }
    }

    /// Moves on to the next partition that has a pair, if the cursor is at none.
    fn settle(&mut self, partitions: &[Arc<Partition>], read_at: ReadAt<'_>) {
        while !self.valid && self.fault.is_none() {
            let next = match self.direction {
                Direction::Forward => Some(self.at + 1).filter(|at| *at < partitions.len()),
                Direction::Backward => self.at.checked_sub(1),
            };
            let Some(next) = next else { return };
            self.enter_at_end(partitions, next, read_at);
        }
    }

    #[inline]
    fn advance(&mut self, partitions: &[Arc<Partition>], read_at: ReadAt<'_>) -> Result<()> {
        let forward = self.direction == Direction::Forward;
        let Some(cursor) = self.cursor() else { return Ok(()) };
        self.valid = if forward { cursor.next()? } else { cursor.prev()? };
        if !self.valid {
            self.settle(partitions, read_at);
        }
        Ok(())
    }

    /// Shows the pair at the cursor and those after it in its stretch, and moves on, until `see` breaks. REQUIRES:
    /// there is a pair at the cursor, and it goes forward.
    #[inline(never)]
    fn walk(
        &mut self,
        partitions: &[Arc<Partition>],
        read_at: ReadAt<'_>,
        see: &mut impl Visit,
    ) -> Result<ControlFlow<()>> {
        let Some(cursor) = self.cursor() else { return Ok(ControlFlow::Continue(())) };
        match cursor.walk(see)? {
            ControlFlow::Break(()) => Ok(ControlFlow::Break(())),
            ControlFlow::Continue(valid) => {
                self.valid = valid;
                if !valid {
                    self.settle(partitions, read_at);
                }
                Ok(ControlFlow::Continue(()))
            }
        }
    }
}

#[cold]
#[inline(never)]
fn operated(version: &Version, space: u32) -> Option<Box<(Arc<Operated>, u32)>> {
    Some(Box::new((version.operated.clone(), space)))
}

/// Has a cursor over a partition apply operands, if there are some.
#[cold]
#[inline(never)]
fn apply_in(
    cursor: &mut PartitionCursor,
    partition: &Arc<Partition>,
    (operated, space): &(Arc<Operated>, u32),
) {
    if partition.has_operands() {
        let (partition, operated, space) = (partition.clone(), operated.clone(), *space);
        let reader: SharedReader = Arc::new(Applies { partition, operated, space });
        cursor.set_reader(&reader);
    }
}

/// The order of two keys as a scan in `direction` meets them.
#[inline]
fn in_direction(order: Ordering, direction: Direction) -> Ordering {
    match direction {
        Direction::Forward => order,
        Direction::Backward => order.reverse(),
    }
}

/// True if `key` is beyond the end of a range that is scanned in `direction`.
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

/// A scan that can be continued later. It holds the version that it reads, and delays nobody.
pub(crate) struct Scan {
    version: Arc<Version>,
    space: u32,
    /// From the newest memtable on. Memtables without the keyspace may be missing.
    memories: Vec<Memory>,
    tables: Tables,
    /// The sources of the pair that was shown last. They advance before another pair is shown.
    shown: Last,
    /// Whether a memtable deletes ranges, and how many the newest one had deleted before.
    has_ranges: bool,
    range_deletes: usize,
}

/// The sources of the pair that was shown last.
#[derive(Clone, Copy)]
enum Last {
    Nobody,
    Tables,
    /// This memtable, maybe the tables, and maybe older memtables.
    Memory {
        first: usize,
        tables: bool,
    },
}

impl Scan {
    /// A scan of the pairs from one end of a range on. The other end is where a search for the first pair may stop.
    /// With `keys_only`, no values are announced to the device.
    #[inline(always)]
    pub(crate) fn start(
        changes: &dyn Changes,
        version: Arc<Version>,
        space: u32,
        read_at: ReadAt<'_>,
        (from, end): (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        keys_only: bool,
    ) -> Result<Scan> {
        let (may_expire, read_ms, valid, passed) = (false, 0, false, 0);
        let (fault, cursor) = (None, None);
        // Before a version has operands, the store says so.
        let operated = if version.operated.are_stored() { operated(&version, space) } else { None };
        let tables = Tables {
            direction,
            keys_only,
            at: 0,
            cursor,
            may_expire,
            read_ms,
            valid,
            passed,
            fault,
            operated,
        };
        let (memories, shown) = (Vec::new(), Last::Nobody);
        let mut scan = Scan { version, space, memories, tables, shown, has_ranges: false, range_deletes: 0 };
        scan.seek(changes, read_at, (from, end), direction)?;
        Ok(scan)
    }

    /// Restarts at one end of another range. Jumps over a gap there, and remembers one that it finds.
    pub(crate) fn seek(
        &mut self,
        changes: &dyn Changes,
        read_at: ReadAt<'_>,
        (from, end): (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
    ) -> Result<()> {
        let jump = changes.gaps().jump(self.space, read_at, from, direction);
        let (from, many) = match &jump {
            None => (from, MANY),
            Some(Jump::To(to)) => (to.as_ref().map(|key| &key[..]), MORE),
            Some(Jump::End) => {
                self.leave(direction);
                return Ok(());
            }
        };
        self.place(read_at, from, direction);
        let mut dead = self.tables.take_passed();
        while dead < many {
            match self.pass_dead(read_at, end)? {
                0 => return Ok(()),
                passed => dead += passed,
            }
        }
        let walking = Gaps::walk(changes, self.version().cast(), self.space, read_at, from, direction);
        // From the beginning again: sets before the walk was registered are not cut out of it.
        self.place(read_at, from, direction);
        let Some(walking) = walking else { return Ok(()) };
        while self.pass_dead(read_at, end)? > 0 {}
        if self.tables.fault.is_some() {
            // It is unknown where the next key is.
            return Ok(());
        }
        walking.finish(read_at, self.next_key());
        Ok(())
    }

    /// Leaves the range: there are no more pairs.
    fn leave(&mut self, direction: Direction) {
        self.shown = Last::Nobody;
        self.memories.clear();
        (self.tables.direction, self.tables.valid, self.tables.fault) = (direction, false, None);
    }

    /// Passes the next entry if it is a tombstone of a memtable and not beyond `end`. Returns the number of entries
    /// passed.
    fn pass_dead(&mut self, read_at: ReadAt<'_>, end: Bound<&[u8]>) -> Result<u64> {
        let Scan { version, space, memories, tables, .. } = self;
        let direction = tables.direction;
        let Some((first, key)) = first_of(memories, direction) else { return Ok(0) };
        let is_dead = match memories[first].said(read_at) {
            Some(Entry::Tombstone) => true,
            Some(entry @ Entry::Wrapped(_)) if !entry.has_operands() => {
                entry.value(|| read_at.now_ms()).is_none()
            }
            _ => false,
        };
        if is_beyond(key, end, direction) || !is_dead {
            return Ok(0);
        }
        let order = match tables.cursor() {
            None => {
                tables.check(version.partitions(*space), Some(key), end)?;
                Ordering::Greater
            }
            Some(cursor) => in_direction(cursor.key().cmp(key), direction),
        };
        if order.is_lt() {
            return Ok(0);
        }
        pass(memories, first, read_at);
        if order.is_eq() {
            tables.advance(version.partitions(*space), read_at)?;
        }
        self.jump_deleted(read_at);
        Ok(1 + self.tables.take_passed())
    }

    /// See [`jump_deleted`].
    fn jump_deleted(&mut self, read_at: ReadAt<'_>) {
        if self.has_ranges {
            let partitions = self.version.partitions(self.space);
            jump_deleted(&mut self.memories, &mut self.tables, partitions, read_at);
        }
    }

    /// The key of the next entry, which may be a tombstone of a memtable.
    fn next_key(&mut self) -> Option<&[u8]> {
        let Scan { memories, tables, .. } = self;
        let direction = tables.direction;
        let memory = first_of(memories, direction).map(|(_, key)| key);
        let table = tables.cursor().map(|cursor| cursor.key());
        match (memory, table) {
            (Some(memory), Some(table)) => {
                Some(if in_direction(memory.cmp(table), direction).is_lt() { memory } else { table })
            }
            (memory, table) => memory.or(table),
        }
    }

    /// Loads the deleted ranges of each memtable, then the number up to which they count, and then the cursors.
    #[cold]
    fn load_ranges(&mut self, read_at: ReadAt<'_>) {
        let ranges: Vec<_> = self.version.memtables().map(|memtable| memtable.ranges(self.space)).collect();
        let (until, direction) = (read_at.now(), self.tables.direction);
        let memory = |(memtable, ranges): (&Arc<Memtable>, Option<Arc<Ranges>>)| {
            let (cursor, ranges) = (memtable.cursor(self.space), ranges.map(|ranges| (ranges, until)));
            let is_there = cursor.is_some() || ranges.is_some();
            is_there.then_some(Memory { cursor, direction, valid: false, ranges })
        };
        self.memories = self.version.memtables().zip(ranges).filter_map(memory).collect();
    }

    /// Places all cursors.
    fn place(&mut self, read_at: ReadAt<'_>, from: Bound<&[u8]>, direction: Direction) {
        let range_deletes = self.version.memtable.range_deletes();
        let are_there = range_deletes > 0 || self.version.immutable.iter().any(|one| one.range_deletes() > 0);
        if are_there {
            self.load_ranges(read_at);
            (self.has_ranges, self.range_deletes) = (true, range_deletes);
        }
        let Scan { version, space, memories, tables, shown, .. } = self;
        if memories.len() <= version.immutable.len() && !are_there {
            let cursors = version.memtables().filter_map(|memtable| memtable.cursor(*space));
            let memory = |cursor| Memory { cursor: Some(cursor), direction, valid: false, ranges: None };
            *memories = cursors.map(memory).collect();
        }
        *shown = Last::Nobody;
        if let Bound::Included(key) | Bound::Excluded(key) = from
            && !memories.is_empty()
            && let Some(partition) = version.partition(*space, key)
        {
            // Prefetches the partition's first memory while the memtables are searched.
            partition.find(key);
        }
        memories.iter_mut().for_each(|memory| memory.seek(read_at, from, direction));
        tables.seek(version.partitions(*space), read_at, from, direction);
        self.jump_deleted(read_at);
    }

    /// The address of the version that it reads, for comparison.
    pub(crate) fn version(&self) -> *const Version {
        Arc::as_ptr(&self.version)
    }

    /// Whether it reads this version, with all range deletes.
    pub(crate) fn reads(&self, version: &Arc<Version>) -> bool {
        Arc::ptr_eq(&self.version, version) && self.range_deletes == version.memtable.range_deletes()
    }

    /// Whether nothing in the partition that it is in has expired since it entered. If not, it has to be placed again
    /// before it goes on.
    #[inline]
    pub(crate) fn is_timely(&self, read_at: ReadAt<'_>) -> bool {
        !self.tables.may_expire || self.is_timely_there(read_at)
    }

    #[cold]
    fn is_timely_there(&self, read_at: ReadAt<'_>) -> bool {
        let Tables { at, read_ms, .. } = self.tables;
        let partition = self.version.partitions(self.space).get(at);
        partition.is_none_or(|partition| !partition.expires_between(read_ms, read_at.now_ms()))
    }

    /// Passes the remaining pairs to `see`, in order, up to the other end of the range or until `see` breaks.
    /// After an error the scan cannot continue.
    pub(crate) fn run<'c>(
        &mut self,
        changes: impl Fn() -> &'c dyn Changes,
        read_at: ReadAt<'_>,
        end: Bound<&[u8]>,
        see: &mut impl Visit,
    ) -> Result<()> {
        let (mut many, direction) = (MANY, self.tables.direction);
        while let Some(key) = self.run_on(read_at, end, many, see)? {
            self.seek(changes(), read_at, (Bound::Included(&key), end), direction)?;
            // What is not remembered is not looked for again and again.
            many = many.saturating_mul(2);
        }
        Ok(())
    }

    /// The same, but after `many` dead entries without a pair it stops, and returns the key of the last.
    fn run_on(
        &mut self,
        read_at: ReadAt<'_>,
        end: Bound<&[u8]>,
        many: u64,
        see: &mut impl Visit,
    ) -> Result<Option<Vec<u8>>> {
        let mut dead = 0;
        let Scan { version, space, memories, tables, shown, has_ranges, .. } = self;
        let partitions = version.partitions(*space);
        let direction = tables.direction;
        'all: loop {
            match std::mem::replace(shown, Last::Nobody) {
                Last::Nobody => {}
                Last::Tables => tables.advance(partitions, read_at)?,
                Last::Memory { first, tables: too } => {
                    if too {
                        tables.advance(partitions, read_at)?;
                    }
                    pass(memories, first, read_at);
                }
            }
            if *has_ranges {
                jump_deleted(memories, tables, partitions, read_at);
            }
            let next = first_of(memories, direction);
            let Some((first, key)) = next.filter(|(_, key)| !is_beyond(key, end, direction)) else {
                if *has_ranges && show_one(tables, partitions, read_at, end, shown, see)? {
                    continue;
                }
                if *has_ranges {
                    return Ok(None);
                }
                scan_tables(tables, partitions, read_at, end, shown, see)?;
                return Ok(None);
            };
            // The pairs of the tables before it. Among deletes of ranges it looks at one pair only.
            let mut stretch = Stretch::default();
            let order = loop {
                let at = tables.at;
                let Some(cursor) = tables.cursor() else {
                    tables.check(partitions, Some(key), end)?;
                    break Ordering::Greater;
                };
                let is_before = !*has_ranges && stretch.is_before(at, cursor, key, direction);
                if !is_before {
                    let order = in_direction(cursor.key().cmp(key), direction);
                    if order != Ordering::Less {
                        break order;
                    }
                }
                dead = 0;
                if show_on(tables, partitions, read_at, is_before, shown, see)?.is_break() {
                    return Ok(None);
                }
                if *has_ranges {
                    continue 'all;
                }
            };
            *shown = Last::Memory { first, tables: order.is_eq() };
            let Some(said) = memories[first].said(read_at) else { continue };
            let applied;
            let value = match said {
                said if said.has_operands() => {
                    applied = merged(version, *space, key, read_at, tables.keys_only)?;
                    applied.as_deref()
                }
                said => said.value(|| read_at.now_ms()),
            };
            match value {
                Some(value) => {
                    dead = 0;
                    if see.here(key, value)?.is_break() {
                        return Ok(None);
                    }
                }
                None => {
                    dead += 1;
                    if dead == many {
                        return Ok(Some(key.to_vec()));
                    }
                }
            }
        }
    }
}

/// Moves all places that are in a range that a newer memtable deletes to its end, until the next key is in no such
/// range.
fn jump_deleted(
    memories: &mut [Memory],
    tables: &mut Tables,
    partitions: &[Arc<Partition>],
    read_at: ReadAt<'_>,
) {
    let direction = tables.direction;
    loop {
        if tables.fault.is_some() {
            // A partition that cannot be read has nothing to show if all of it is deleted.
            let (low, high) =
                (&partitions[tables.at].low[..], partitions.get(tables.at + 1).map(|next| &next.low[..]));
            if memories.iter().any(|memory| memory.deletes(low, high)) {
                match (direction, high) {
                    (Direction::Forward, Some(high)) => {
                        tables.seek(partitions, read_at, Bound::Included(high), direction)
                    }
                    (Direction::Backward, _) if !low.is_empty() => {
                        tables.seek(partitions, read_at, Bound::Excluded(low), direction);
                    }
                    _ => tables.fault = None,
                }
                continue;
            }
        }
        let memory = first_of(memories, direction);
        let table = tables.cursor().map(|cursor| cursor.key());
        let (from, key) = match (memory, table) {
            (None, None) => return,
            (Some((at, key)), None) => (at, key),
            (None, Some(key)) => (memories.len(), key),
            (Some((at, memory)), Some(table)) => match in_direction(table.cmp(memory), direction) {
                Ordering::Less => (memories.len(), table),
                _ => (at, memory),
            },
        };
        let newer = memories[..from].iter().enumerate();
        let Some((at, to)) = newer.into_iter().find_map(|(at, memory)| Some((at, memory.beyond(key)?)))
        else {
            return;
        };
        let to = to.map(|to| to.map(<[u8]>::to_vec));
        let to = to.as_ref().map(|to| to.as_ref().map(|key| &key[..]));
        let is_before = |key: &[u8]| to.is_none_or(|to| !has(to, key, direction));
        for memory in &mut memories[at + 1..] {
            match to {
                Some(to) if memory.key().is_some_and(is_before) => memory.seek(read_at, to, direction),
                None => memory.valid = false,
                Some(_) => {}
            }
        }
        match to {
            Some(to) if tables.cursor().is_some_and(|cursor| is_before(cursor.key())) => {
                let passed = tables.take_passed();
                tables.seek(partitions, read_at, to, direction);
                tables.passed += passed;
                if tables.cursor().is_some_and(|cursor| is_before(cursor.key())) {
                    tables.note(Err(Error::new(ErrorKind::Corrupt, "the keys of a table are not in order")));
                }
            }
            None => tables.valid = false,
            Some(_) => {}
        }
    }
}

/// Whether a scan that begins at `from` comes to a key.
fn has(from: Bound<&[u8]>, key: &[u8], direction: Direction) -> bool {
    match from {
        Bound::Unbounded => true,
        Bound::Included(from) => in_direction(key.cmp(from), direction).is_ge(),
        Bound::Excluded(from) => in_direction(key.cmp(from), direction).is_gt(),
    }
}

/// Advances the newest memtable that has the key, which decides, and all others that have it.
fn pass(memories: &mut [Memory], first: usize, read_at: ReadAt<'_>) {
    let (newer, older) = memories.split_at_mut(first + 1);
    let newest = &mut newer[first];
    for memory in older {
        if memory.key() == newest.key() {
            memory.advance(read_at);
        }
    }
    newest.advance(read_at);
}

/// Passes the pairs of a range to `see`, in order from the end that `direction` starts at, until `see`
/// breaks. With `keys_only`, no values are announced to the device.
pub(crate) fn scan(
    changes: &dyn Changes,
    version: &Arc<Version>,
    space: u32,
    read_at: ReadAt<'_>,
    (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
    (direction, keys_only): (Direction, bool),
    mut see: impl Visit,
) -> Result<()> {
    let (from, end) = if direction == Direction::Forward { (lower, upper) } else { (upper, lower) };
    let mut scan = Scan::start(changes, version.clone(), space, read_at, (from, end), direction, keys_only)?;
    scan.run(|| changes, read_at, end, &mut see)
}

/// Number of ranges that are scanned together.
pub(crate) const TOGETHER: usize = 16;

/// Passes at most `limit` pairs of each range to `see`, with the number of the range, until it breaks. With `keys_only`
/// the values are empty. What the ranges
/// begin with is requested from the device before the first of them is read, and then what their first values are in.
/// REQUIRES: there are at most [`TOGETHER`] ranges, and `limit` is not 0.
pub(crate) fn several(
    changes: &dyn Changes,
    version: &Arc<Version>,
    space: u32,
    read_at: ReadAt<'_>,
    ranges: &[KeyBounds<'_>],
    (limit, keys_only): (usize, bool),
    mut see: impl FnMut(usize, &[u8], &[u8]) -> ControlFlow<()>,
) -> Result<ControlFlow<()>> {
    let partitions = version.partitions(space);
    for (lower, _) in ranges {
        let key = match *lower {
            Bound::Included(key) | Bound::Excluded(key) => key,
            Bound::Unbounded => b"",
        };
        let at = partitions.partition_point(|partition| *partition.low <= *key);
        if let Some(partition) = partitions.get(at.saturating_sub(1)) {
            partition.fetch_walk(key, limit, keys_only);
        }
    }
    let start = |range: &KeyBounds<'_>| {
        Scan::start(changes, version.clone(), space, read_at, *range, Direction::Forward, keys_only)
    };
    let mut scans: Vec<Result<Scan>> = ranges.iter().map(start).collect();
    if !keys_only {
        for (scan, (_, upper)) in scans.iter_mut().zip(ranges) {
            let cursor = scan.as_mut().ok().and_then(|scan| scan.tables.cursor());
            let within = cursor.filter(|cursor| !is_beyond(cursor.key(), *upper, Direction::Forward));
            within.into_iter().for_each(PartitionCursor::fetch_value);
        }
    }
    for (number, (scan, (_, upper))) in scans.into_iter().zip(ranges).enumerate() {
        let (mut shown, mut flow) = (0, ControlFlow::Continue(()));
        let mut show = |key: &[u8], value: &[u8]| {
            flow = see(number, key, value);
            shown += 1;
            if shown == limit { ControlFlow::Break(()) } else { flow }
        };
        match keys_only {
            true => scan?.run(|| changes, read_at, *upper, &mut Keys(|key: &[u8]| show(key, &[])))?,
            false => scan?.run(|| changes, read_at, *upper, &mut Values(show))?,
        }
        if flow.is_break() {
            return Ok(flow);
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// The memtable that has the next key, and the key; if several have it, the newest, which is the first.
#[inline]
fn first_of(memories: &[Memory], direction: Direction) -> Option<(usize, &[u8])> {
    let mut first: Option<(usize, &[u8])> = None;
    for (at, memory) in memories.iter().enumerate() {
        let Some(key) = memory.key() else { continue };
        let is_before = first.is_none_or(|(_, least)| match direction {
            Direction::Forward => key < least,
            Direction::Backward => key > least,
        });
        if is_before {
            first = Some((at, key));
        }
    }
    first
}

/// Whether the stretch of entries that tables are in comes before a key as a whole: that is found once for each.
#[derive(Default)]
struct Stretch {
    /// The partition, and the stretch in it.
    number: Option<(usize, u32)>,
    is_before: bool,
}

impl Stretch {
    /// Whether the one of a cursor does, as far as that is known. REQUIRES: it is asked for one key only.
    #[inline]
    fn is_before(
        &mut self,
        partition: usize,
        cursor: &PartitionCursor,
        key: &[u8],
        direction: Direction,
    ) -> bool {
        let number = Some((partition, cursor.stretch()));
        if self.number != number {
            self.number = number;
            self.is_before = cursor.are_beside(key, direction == Direction::Forward);
        }
        self.is_before
    }
}

/// Shows the pair at the cursor, or if `whole` those of its stretch from there on, and moves on, until `see` breaks.
/// REQUIRES: there is a pair at the cursor.
#[inline]
fn show_on(
    tables: &mut Tables,
    partitions: &[Arc<Partition>],
    read_at: ReadAt<'_>,
    whole: bool,
    shown: &mut Last,
    see: &mut impl Visit,
) -> Result<ControlFlow<()>> {
    let flow = if whole && tables.direction == Direction::Forward {
        tables.walk(partitions, read_at, see)?
    } else {
        let Some(cursor) = tables.cursor() else { return Ok(ControlFlow::Continue(())) };
        let flow = cursor.show(|key, pair| see.pair(key, pair))?;
        if flow.is_continue() {
            tables.advance(partitions, read_at)?;
        }
        flow
    };
    if flow.is_break() {
        *shown = Last::Tables;
    }
    Ok(flow)
}

/// Shows the next pair of the tables, and moves on; false if there is none in the range, or `see` breaks.
fn show_one(
    tables: &mut Tables,
    partitions: &[Arc<Partition>],
    read_at: ReadAt<'_>,
    end: Bound<&[u8]>,
    shown: &mut Last,
    see: &mut impl Visit,
) -> Result<bool> {
    let direction = tables.direction;
    let Some(cursor) = tables.cursor() else {
        tables.check(partitions, None, end)?;
        return Ok(false);
    };
    if is_beyond(cursor.key(), end, direction) {
        return Ok(false);
    }
    Ok(show_on(tables, partitions, read_at, false, shown, see)?.is_continue())
}

/// The rest of a range that only the tables have pairs in.
#[inline]
fn scan_tables(
    tables: &mut Tables,
    partitions: &[Arc<Partition>],
    read_at: ReadAt<'_>,
    end: Bound<&[u8]>,
    shown: &mut Last,
    see: &mut impl Visit,
) -> Result<()> {
    let (direction, mut stretch) = (tables.direction, Stretch::default());
    loop {
        let at = tables.at;
        let Some(cursor) = tables.cursor() else { return tables.check(partitions, None, end) };
        let is_within = match end {
            Bound::Unbounded => true,
            Bound::Included(key) | Bound::Excluded(key) => stretch.is_before(at, cursor, key, direction),
        };
        if !is_within && is_beyond(cursor.key(), end, direction) {
            return Ok(());
        }
        if show_on(tables, partitions, read_at, is_within, shown, see)?.is_break() {
            return Ok(());
        }
    }
}

//! The reads of the memory home: of the newest state, and of a snapshot's. A value whose time has come is not there.

use super::tree::{Tree, elsewhere};
use forrest_engine::{
    self as contract, Approximate, Chunk, Direction, Filled, Goto, KeyBounds, Result, Value,
};
use forrest_index::{self as index, Found};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// Number of copied bytes at which a refill of an iteration stops.
const CHUNK_BYTES: usize = 64 << 10;
/// Number of bytes of values shared with the store at which a refill stops. The chunk keeps these values
/// alive even after the store has replaced them.
const CHUNK_SHARED_BYTES: usize = 1 << 20;

/// Number of ranges whose first leaves are fetched together.
const SCANS_TOGETHER: usize = 16;

/// One state of a tree. It has a single reference count, so that threads that start iterations contend for
/// one cache line, not two.
#[derive(Clone)]
pub(crate) enum MemoryView {
    Newest(Arc<Tree>),
    Past { reader: index::Reader, now_ms: u64, may_expire: bool },
}

/// The time of one call, which is read when the first value that expires is met.
#[derive(Default)]
struct Time(Option<u64>);

impl MemoryView {
    #[inline]
    fn reader(&self) -> &index::Reader {
        match self {
            MemoryView::Newest(tree) => &tree.tree,
            MemoryView::Past { reader, .. } => reader,
        }
    }

    /// Fails if the keyspace was dropped, and in a child made by `fork`. Call it after reading; reads wait for nothing,
    /// also there.
    #[inline]
    fn check(&self) -> Result<()> {
        match self {
            MemoryView::Newest(tree) => tree.check(),
            MemoryView::Past { reader, .. } if reader.is_here() => Ok(()),
            MemoryView::Past { .. } => Err(elsewhere()),
        }
    }

    /// The time at which it is read.
    fn now_ms(&self) -> u64 {
        match self {
            MemoryView::Newest(tree) => tree.clock.now_ms(),
            MemoryView::Past { now_ms, .. } => *now_ms,
        }
    }

    /// Whether a stamp is a time that has come.
    #[inline]
    fn is_over(&self, stamp: u64, time: &mut Time) -> bool {
        stamp != 0 && stamp <= *time.0.get_or_insert_with(|| self.now_ms())
    }

    /// Passes the value of a key to `see`, if it has not expired.
    #[inline]
    fn find<R>(&self, key: &[u8], see: impl FnOnce(Found<'_>) -> R) -> Result<Option<R>> {
        let see = |value: Found<'_>| (!self.is_over(value.stamp(), &mut Time::default())).then(|| see(value));
        let found = self.reader().find(key, see).flatten();
        self.check()?;
        Ok(found)
    }

    /// Passes the pairs of a range that have not expired to `see`.
    #[inline(always)]
    fn pairs(
        &self,
        (lower, upper): KeyBounds<'_>,
        direction: Direction,
        mut see: impl FnMut(&[u8], Found<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut time = Time::default();
        self.reader().scan(lower, upper, direction, |key, value| {
            if self.is_over(value.stamp(), &mut time) { ControlFlow::Continue(()) } else { see(key, value) }
        });
        self.check()
    }
}

impl contract::View for MemoryView {
    type Cursor = MemoryCursor;
    type Resume = ();

    #[inline]
    fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        self.find(key, |value| value.to_value())
    }

    #[inline]
    fn get_into(&self, key: &[u8], buf: &mut Vec<u8>) -> Result<bool> {
        buf.clear();
        Ok(self.find(key, |value| buf.extend_from_slice(&value))?.is_some())
    }

    #[inline]
    fn contains(&self, key: &[u8]) -> Result<bool> {
        Ok(self.find(key, |_| ())?.is_some())
    }

    fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        let (mut values, mut time) = (vec![None; keys.len()], Time::default());
        self.reader().multi_get(keys, |at, value| {
            let value = value.filter(|value| !self.is_over(value.stamp(), &mut time));
            values[at] = value.map(Found::to_value);
        });
        self.check()?;
        Ok(values)
    }

    fn expires_ms(&self, key: &[u8]) -> Result<Option<Option<u64>>> {
        self.find(key, |value| Some(value.stamp()).filter(|ms| *ms != 0))
    }

    fn may_expire(&self) -> bool {
        match self {
            MemoryView::Newest(tree) => tree.may_expire(),
            MemoryView::Past { may_expire, .. } => *may_expire,
        }
    }

    fn count(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Result<u64> {
        let mut count = self.reader().count(lower, upper);
        if self.may_expire() {
            count = 0;
            self.pairs((lower, upper), Direction::Forward, |_, _| {
                count += 1;
                ControlFlow::Continue(())
            })?;
        }
        self.check()?;
        Ok(count)
    }

    #[inline]
    fn scan(
        &self,
        bounds: KeyBounds<'_>,
        direction: Direction,
        mut see: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        self.pairs(bounds, direction, |key, value| see(key, &value))
    }

    fn multi_scan(
        &self,
        ranges: &[KeyBounds<'_>],
        limit: usize,
        keys_only: bool,
        mut see: impl FnMut(usize, &[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut goes_on = true;
        for (group, ranges) in ranges.chunks(SCANS_TOGETHER).enumerate() {
            let mut starts = [&[][..]; SCANS_TOGETHER];
            for (start, (lower, _)) in starts.iter_mut().zip(ranges) {
                if let Bound::Included(key) | Bound::Excluded(key) = *lower {
                    *start = key;
                }
            }
            self.reader().fetch_many(&starts[..ranges.len()]);
            contract::one_by_one(self, ranges, limit, keys_only, |number, key, value| {
                let flow = see(group * SCANS_TOGETHER + number, key, value);
                goes_on = flow.is_continue();
                flow
            })?;
            if !goes_on {
                break;
            }
        }
        self.check()
    }

    fn approximate(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Result<Approximate> {
        let (keys, bytes) = self.reader().estimate(lower, upper);
        self.check()?;
        Ok(Approximate { keys, bytes })
    }

    fn fill(
        &self,
        chunk: &mut Chunk,
        _resume: &mut (),
        bounds: KeyBounds<'_>,
        direction: Direction,
    ) -> Result<Filled> {
        chunk.limit_bytes(CHUNK_BYTES, CHUNK_SHARED_BYTES);
        if chunk.is_keys_only() {
            self.pairs(bounds, direction, |key, _| {
                chunk.push_copied(key, &[]);
                if chunk.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
        } else {
            let ((lower, upper), mut time) = (bounds, Time::default());
            self.reader().scan(lower, upper, direction, |key, value| {
                // Inside of records no value has a stamp.
                if value.is_shared() {
                    if self.is_over(value.stamp(), &mut time) {
                        return ControlFlow::Continue(());
                    }
                    chunk.push_shared(key, value.to_value());
                } else {
                    chunk.push_copied(key, &value);
                }
                if chunk.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            self.check()?;
        }
        Ok(if chunk.is_full() { Filled::More } else { Filled::End })
    }

    fn refills(&self) -> (usize, usize) {
        (50, 4)
    }

    fn cursor(&self) -> MemoryCursor {
        MemoryCursor { cursor: self.reader().cursor(), view: self.clone() }
    }
}

/// A position in a tree.
pub(crate) struct MemoryCursor {
    cursor: index::Cursor,
    view: MemoryView,
}

impl MemoryCursor {
    /// Goes on, from the pair to which it went, to one that has not expired. True if it is at one.
    #[inline]
    fn pass_expired(&mut self, went: Goto<'_>) -> bool {
        self.cursor.stamp() == 0 || self.step_on(went)
    }

    #[cold]
    fn step_on(&mut self, went: Goto<'_>) -> bool {
        let (mut found, mut time) = (true, Time::default());
        while found && self.view.is_over(self.cursor.stamp(), &mut time) {
            found = match went {
                Goto::First | Goto::Skip(_) | Goto::Seek(_) => self.cursor.next(),
                Goto::Last | Goto::Prev | Goto::SeekForPrev(_) => self.cursor.prev(),
            };
        }
        found
    }
}

impl contract::Cursor for MemoryCursor {
    fn goto(&mut self, goto: Goto<'_>) -> Result<bool> {
        let found = match goto {
            Goto::First => self.cursor.first(),
            Goto::Last => self.cursor.last(),
            Goto::Skip(count) => {
                self.cursor.key().is_some()
                    && (0..count).all(|_| self.cursor.next() && self.pass_expired(goto))
            }
            Goto::Prev => self.cursor.prev(),
            Goto::Seek(key) => self.cursor.seek(key),
            Goto::SeekForPrev(key) => self.cursor.seek_for_prev(key),
        };
        // A skip has passed the expired ones; a skip of none stays at a pair that expires meanwhile.
        let found = found && (matches!(goto, Goto::Skip(_)) || self.pass_expired(goto));
        self.view.check()?;
        Ok(found)
    }

    fn keys_only(&mut self) {
        self.cursor.keys_only();
    }

    fn park(&mut self) {
        // The cursor holds nothing of the store: its pairs are copies.
    }

    fn key(&self) -> Option<&[u8]> {
        self.cursor.key()
    }

    fn value(&self) -> Option<Value> {
        self.cursor.value()
    }
}

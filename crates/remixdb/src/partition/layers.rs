//! [`PartitionCursor`]: a moving place in a partition.
//!
//! Most partitions have one order over all tables. If its order stays in a file, a partition has two *layers*: the
//! tables that the file covers, and the newer ones. A cursor over both compares one key with another at each step.

use super::cursor::{LayerCursor, Pair, Visit};
use crate::table::SharedReader;
use forrest_engine::Result;
use std::cmp::Ordering;
use std::ops::ControlFlow;

/// A position in a partition. It owns what it needs. It moves in the direction in which it was placed: `next` after
/// `first` and `seek`, `prev` after `last` and `seek_for_prev`.
pub(crate) struct PartitionCursor(Layers);

#[expect(clippy::large_enum_variant, reason = "the common one is read at each step")]
enum Layers {
    One(LayerCursor),
    Two(Box<Two>),
}

/// The tables of a file's order, and newer ones. What is in both counts as the newer ones have it.
struct Two {
    /// It shows tombstones, because they hide older pairs.
    newer: LayerCursor,
    older: LayerCursor,
    /// Whether each is at an entry.
    is_newer: bool,
    is_older: bool,
    /// Which of them move with the next step.
    at: At,
    forward: bool,
    /// Tombstones that it moved past, as far as they were not taken.
    passed: u64,
}

/// The layers that have the current key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Newer,
    Older,
    Both,
}

impl PartitionCursor {
    pub(super) fn one(layer: LayerCursor) -> PartitionCursor {
        PartitionCursor(Layers::One(layer))
    }

    /// REQUIRES: `newer` shows tombstones.
    pub(super) fn two(newer: LayerCursor, older: LayerCursor) -> PartitionCursor {
        let (is_newer, is_older, at, forward, passed) = (false, false, At::Newer, true, 0);
        PartitionCursor(Layers::Two(Box::new(Two { newer, older, is_newer, is_older, at, forward, passed })))
    }

    /// Number of tombstones and replaced entries that it moved past since the last call. They count as steps.
    pub(crate) fn take_passed(&mut self) -> u64 {
        match &mut self.0 {
            Layers::One(layer) => layer.take_passed(),
            Layers::Two(two) => {
                two.newer.take_passed() + two.older.take_passed() + std::mem::take(&mut two.passed)
            }
        }
    }

    /// Sets the time at which it reads, before it is placed again.
    pub(crate) fn set_time(&mut self, now_ms: u64) {
        match &mut self.0 {
            Layers::One(layer) => layer.set_time(now_ms),
            Layers::Two(two) => {
                two.newer.set_time(now_ms);
                two.older.set_time(now_ms);
            }
        }
    }

    /// Sets who reads values, and applies operands.
    #[cold]
    pub(crate) fn set_reader(&mut self, reader: &SharedReader) {
        match &mut self.0 {
            Layers::One(layer) => layer.set_reader(reader),
            Layers::Two(two) => {
                two.newer.set_reader(reader);
                two.older.set_reader(reader);
            }
        }
    }

    /// The current key. REQUIRES: the last move found one.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        match &self.0 {
            Layers::One(layer) => layer.key(),
            Layers::Two(two) => two.key(),
        }
    }

    /// The number of the stretch of entries that it is in. REQUIRES: the last move found a key.
    #[inline]
    pub(crate) fn stretch(&self) -> u32 {
        match &self.0 {
            Layers::One(layer) => layer.stretch(),
            Layers::Two(_) => 0,
        }
    }

    /// Whether all keys of that stretch are less than a key, or greater if not `less`. It may not know.
    pub(crate) fn are_beside(&self, key: &[u8], less: bool) -> bool {
        match &self.0 {
            Layers::One(layer) => layer.are_beside(key, less),
            Layers::Two(_) => false,
        }
    }

    /// Passes the key to `see`, with access to the value. REQUIRES: the last move found them.
    #[inline]
    pub(crate) fn show<R>(&mut self, see: impl FnOnce(&[u8], Pair<'_>) -> R) -> R {
        match &mut self.0 {
            Layers::One(layer) => layer.show(see),
            Layers::Two(two) if two.at == At::Older => two.older.show(see),
            Layers::Two(two) => two.newer.show(see),
        }
    }

    /// Passes the current pair and those after it in its stretch to `see`, until it breaks. If it does not, moves to
    /// the next key after them; false if there is none. After a break it is at the pair that was passed last. REQUIRES:
    /// the last move found a pair, and it was placed for `next`.
    #[inline]
    pub(crate) fn walk(&mut self, see: &mut impl Visit) -> Result<ControlFlow<(), bool>> {
        match &mut self.0 {
            Layers::One(layer) => layer.walk(see),
            Layers::Two(_) => match self.show(|key, pair| see.pair(key, pair))? {
                ControlFlow::Break(()) => Ok(ControlFlow::Break(())),
                ControlFlow::Continue(()) => self.next().map(ControlFlow::Continue),
            },
        }
    }

    /// Requests the value from the device. REQUIRES: the last move found a key.
    pub(crate) fn fetch_value(&mut self) {
        match &mut self.0 {
            Layers::One(layer) => layer.fetch_value(),
            Layers::Two(two) if two.at == At::Older => two.older.fetch_value(),
            Layers::Two(two) => two.newer.fetch_value(),
        }
    }

    pub(crate) fn first(&mut self) -> Result<bool> {
        self.place(true, LayerCursor::first)
    }

    pub(crate) fn last(&mut self) -> Result<bool> {
        self.place(false, LayerCursor::last)
    }

    /// Moves to the first key that is not less than `key`.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.place(true, |layer| layer.seek(key))
    }

    /// Moves to the last key that is not greater than `key`.
    pub(crate) fn seek_for_prev(&mut self, key: &[u8]) -> Result<bool> {
        self.place(false, |layer| layer.seek_for_prev(key))
    }

    #[inline]
    fn place(
        &mut self,
        forward: bool,
        mut place: impl FnMut(&mut LayerCursor) -> Result<bool>,
    ) -> Result<bool> {
        match &mut self.0 {
            Layers::One(layer) => place(layer),
            Layers::Two(two) => two.place(forward, place),
        }
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Result<bool> {
        match &mut self.0 {
            Layers::One(layer) => layer.next(),
            Layers::Two(two) => two.go(true),
        }
    }

    #[inline]
    pub(crate) fn prev(&mut self) -> Result<bool> {
        match &mut self.0 {
            Layers::One(layer) => layer.prev(),
            Layers::Two(two) => two.go(false),
        }
    }
}

impl Two {
    fn key(&self) -> &[u8] {
        if self.at == At::Older { self.older.key() } else { self.newer.key() }
    }

    /// Places both.
    fn place(
        &mut self,
        forward: bool,
        mut place: impl FnMut(&mut LayerCursor) -> Result<bool>,
    ) -> Result<bool> {
        // If only one can be placed, it is at no entry.
        (self.is_newer, self.is_older, self.forward) = (false, false, forward);
        let is_newer = place(&mut self.newer)?;
        self.is_older = place(&mut self.older)?;
        self.is_newer = is_newer;
        self.settle()
    }

    fn go(&mut self, forward: bool) -> Result<bool> {
        assert_eq!(forward, self.forward, "a cursor keeps its direction");
        self.step()?;
        self.settle()
    }

    /// Moves those that have the current key. After an error only those are left that have not moved.
    fn step(&mut self) -> Result<()> {
        let forward = self.forward;
        let go = |layer: &mut LayerCursor| if forward { layer.next() } else { layer.prev() };
        if self.at != At::Newer && self.is_older {
            self.is_older = go(&mut self.older)?;
        }
        if self.at != At::Older && self.is_newer {
            self.at = At::Newer;
            self.is_newer = go(&mut self.newer)?;
        }
        Ok(())
    }

    /// Finds the next of both, past what newer tables delete; false if there is none.
    fn settle(&mut self) -> Result<bool> {
        loop {
            let order = match (self.is_newer, self.is_older) {
                (false, false) => return Ok(false),
                (true, false) => Ordering::Less,
                (false, true) => Ordering::Greater,
                (true, true) if self.forward => self.newer.key().cmp(self.older.key()),
                (true, true) => self.older.key().cmp(self.newer.key()),
            };
            self.at = match order {
                Ordering::Less => At::Newer,
                Ordering::Equal => At::Both,
                Ordering::Greater => At::Older,
            };
            if self.at == At::Older || !self.newer.is_tombstone()? {
                return Ok(true);
            }
            self.passed += 1;
            self.step()?;
        }
    }
}

//! [`RemixCursor`]: a place in a [`Remix`], and the ways to move it.
//!
//! A seek compares hardly more than one key. A step compares none: it looks at selectors only, and counts the
//! next entry of each run. A cursor shows the newest version of each key, and tombstones only on request.
//! Nothing changes under a cursor, because a REMIX is immutable.

use super::{OLDER, RUN, RUNS_MAX, Remix, Run, RunEntry, SEGMENT, Segment, TOMBSTONE, head_behind, visible};
use forrest_engine::Result;
use std::cmp::Ordering;
use std::ops::Deref;

/// Which entries a cursor stops at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Show {
    /// The newest version of each key that is there.
    Live,
    /// The newest version of each key, including tombstones.
    Tombstones,
}

impl Show {
    /// The bits of a selector that a cursor does not stop at. Places without an entry look like older versions.
    fn hidden(self) -> u8 {
        match self {
            Show::Live => OLDER | TOMBSTONE,
            Show::Tombstones => OLDER,
        }
    }
}

/// A place in a [`Remix`]. It is valid only with the REMIX that it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    segment: u32,
    slot: u32,
}

impl Position {
    fn new(segment: usize, slot: usize) -> Position {
        Position { segment: segment as u32, slot: slot as u32 }
    }

    fn segment(self) -> usize {
        self.segment as usize
    }

    fn slot(self) -> usize {
        self.slot as usize
    }
}

/// A moving place in a REMIX, with the runs that have the keys. It begins at no entry. When it has moved past
/// either end, it is at no entry again and stays there until it is placed again. After an error it has not
/// moved.
pub(crate) struct RemixCursor<M, R> {
    remix: M,
    runs: Vec<R>,
    at: Option<Position>,
    /// The place: the number of entries of each run before it. Beyond the runs, and for places without an
    /// entry, the numbers are arbitrary.
    before: [u32; RUNS_MAX + 1],
    hidden: u8,
    /// Number of places that it moved past because they are hidden, as far as they were not taken.
    passed: u64,
}

impl<M: Deref<Target = Remix>, R: Run> RemixCursor<M, R> {
    /// A cursor at no entry. REQUIRES: `runs` are those that the REMIX was built from, the oldest first.
    pub(crate) fn new(remix: M, runs: Vec<R>, show: Show) -> RemixCursor<M, R> {
        assert!(remix.belongs_to(&runs), "a REMIX belongs to its runs");
        RemixCursor { remix, runs, at: None, before: [0; RUNS_MAX + 1], hidden: show.hidden(), passed: 0 }
    }

    /// Goes to the first key; false if there is none.
    pub(crate) fn first(&mut self) -> bool {
        self.arrive((0, 0), self.remix.segments(), self.remix.forward(0, 0, self.hidden))
    }

    /// Goes to the last key; false if there is none.
    pub(crate) fn last(&mut self) -> bool {
        let end = self.remix.segments();
        self.arrive((end, 0), 0, self.remix.backward(end, 0, self.hidden))
    }

    /// Goes to the first key that is not below `key`; false if there is none.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<bool> {
        let (at, _) = self.remix.lower_bound(&mut self.runs, key)?;
        let (segment, slot) = (at.segment(), at.slot());
        Ok(self.arrive(
            (segment, slot),
            self.remix.segments(),
            self.remix.forward(segment, slot, self.hidden),
        ))
    }

    /// Goes to the last key that is not above `key`; false if there is none.
    pub(crate) fn seek_for_prev(&mut self, key: &[u8]) -> Result<bool> {
        let (at, found) = self.remix.lower_bound(&mut self.runs, key)?;
        let slot = at.slot() + usize::from(found);
        Ok(self.arrive((at.segment(), slot), 0, self.remix.backward(at.segment(), slot, self.hidden)))
    }

    /// Goes to the next key; false if there is none.
    #[inline]
    pub(crate) fn next(&mut self) -> bool {
        let Some(at) = self.at else { return false };
        let (mut segment, mut slot) = (at.segment(), at.slot());
        let Some(Segment { selectors, .. }) = self.remix.segments.get(segment) else { return false };
        let mut selectors = selectors;
        loop {
            let count = &mut self.before[usize::from(selectors[slot] & RUN)];
            *count = count.wrapping_add(1);
            slot += 1;
            if slot == SEGMENT {
                (segment, slot) = (segment + 1, 0);
                match self.remix.segments.get(segment) {
                    Some(next) => selectors = &next.selectors,
                    None => return self.place(None),
                }
            }
            if selectors[slot] & self.hidden == 0 {
                self.at = Some(Position::new(segment, slot));
                return true;
            }
            self.passed += 1;
        }
    }

    /// Goes to the previous key; false if there is none.
    #[inline]
    pub(crate) fn prev(&mut self) -> bool {
        let Some(at) = self.at else { return false };
        let (mut segment, mut slot) = (at.segment(), at.slot());
        loop {
            if slot == 0 {
                let Some(before) = segment.checked_sub(1) else { return self.place(None) };
                (segment, slot) = (before, SEGMENT);
            }
            slot -= 1;
            let selector = self.remix.segments[segment].selectors[slot];
            let count = &mut self.before[usize::from(selector & RUN)];
            *count = count.wrapping_sub(1);
            if selector & self.hidden == 0 {
                self.at = Some(Position::new(segment, slot));
                return true;
            }
            self.passed += 1;
        }
    }

    /// Number of hidden places that it moved past since the last call.
    pub(crate) fn take_passed(&mut self) -> u64 {
        std::mem::take(&mut self.passed)
    }

    /// Goes forward like `count` times [`next`](RemixCursor::next), whole segments at once; false if it moves past
    /// the end.
    #[cfg_attr(not(test), expect(dead_code, reason = "the interface of the ancestor will skip"))]
    pub(crate) fn skip(&mut self, mut count: u64) -> bool {
        let Some(at) = self.at else { return false };
        if count == 0 {
            return true;
        }
        let (mut segment, mut slot) = (at.segment(), at.slot() + 1);
        while let Some(Segment { selectors, .. }) = self.remix.segments.get(segment) {
            let here = visible(selectors, slot, self.hidden) as u64;
            if count <= here {
                let mut slots = (slot..SEGMENT).filter(|&slot| selectors[slot] & self.hidden == 0);
                let slot = slots.nth(count as usize - 1).expect("it was counted");
                return self.place(Some(Position::new(segment, slot)));
            }
            count -= here;
            (segment, slot) = (segment + 1, 0);
        }
        self.place(None)
    }

    /// The current entry.
    #[inline]
    pub(crate) fn entry(&self) -> Option<RunEntry> {
        let at = self.at?;
        let selector = self.remix.segments[at.segment()].selectors[at.slot()];
        let run = usize::from(selector & RUN);
        Some(RunEntry { run, ordinal: self.before[run], tombstone: selector & TOMBSTONE != 0 })
    }

    /// The run of the current entry, and the entry's ordinal in it.
    #[inline]
    pub(crate) fn run(&mut self) -> Option<(&mut R, u32)> {
        let RunEntry { run, ordinal, .. } = self.entry()?;
        Some((&mut self.runs[run], ordinal))
    }

    /// One of the runs.
    #[inline]
    pub(crate) fn of_run(&mut self, run: usize) -> &mut R {
        &mut self.runs[run]
    }

    /// Passes each run to `see`, with the ordinal of its first entry that is not before the cursor.
    pub(crate) fn each_run(&mut self, mut see: impl FnMut(&mut R, u32)) {
        self.runs.iter_mut().zip(self.before).for_each(|(run, next)| see(run, next));
    }

    /// The runs.
    #[inline]
    pub(crate) fn runs(&self) -> &[R] {
        &self.runs
    }

    /// Replaces the content of `into` by the current key; false if there is none.
    pub(crate) fn key_into(&mut self, into: &mut Vec<u8>) -> Result<bool> {
        let Some((run, ordinal)) = self.run() else { return Ok(false) };
        run.key_into(ordinal, into)?;
        Ok(true)
    }

    /// Compares the current key with `key`.
    #[cfg_attr(not(test), expect(dead_code, reason = "for tests"))]
    pub(crate) fn compare(&mut self, key: &[u8]) -> Result<Option<Ordering>> {
        self.run().map(|(run, ordinal)| run.compare(ordinal, key)).transpose()
    }

    /// The current position, for `restore`.
    #[cfg_attr(not(test), expect(dead_code, reason = "the interface of the ancestor will park"))]
    pub(crate) fn position(&self) -> Option<Position> {
        self.at
    }

    /// Goes back to a position. REQUIRES: it is from a cursor over the same REMIX that shows no more than
    /// this one.
    #[cfg_attr(not(test), expect(dead_code, reason = "the interface of the ancestor will park"))]
    pub(crate) fn restore(&mut self, at: Option<Position>) {
        self.place(at);
    }

    /// Goes to a place that was searched from another one, up to the beginning of the segment `end`.
    fn arrive(&mut self, (segment, slot): (usize, usize), end: usize, at: Option<Position>) -> bool {
        let to = at.map_or(end * SEGMENT, |at| at.segment() * SEGMENT + at.slot());
        self.passed += (segment * SEGMENT + slot).abs_diff(to) as u64;
        self.place(at)
    }

    #[inline]
    fn place(&mut self, at: Option<Position>) -> bool {
        self.at = at;
        let Some(at) = at else { return false };
        let ordinals = self.remix.ordinals_of(at.segment());
        self.before[..ordinals.len()].copy_from_slice(ordinals);
        for selector in &self.remix.segments[at.segment()].selectors[..at.slot()] {
            let count = &mut self.before[usize::from(selector & RUN)];
            *count = count.wrapping_add(1);
        }
        true
    }
}

impl Remix {
    /// The place of the first key that is not less than `key`, and whether it is equal. The place may be
    /// after the last one of a segment.
    pub(super) fn lower_bound<R: Run>(&self, runs: &mut [R], key: &[u8]) -> Result<(Position, bool)> {
        if self.segments.is_empty() {
            return Ok((Position::new(0, 0), false));
        }
        let segment = self.find(key);
        let within = self.segments[segment].equal(head_behind(key, self.skip(segment)));
        let (slot, found) = self.search(segment, within, |entry| {
            let run = &mut runs[entry.run];
            run.fetch(entry.ordinal);
            run.compare(entry.ordinal, key)
        })?;
        Ok((Position::new(segment, slot), found))
    }

    /// The first place from `slot` on that is not hidden.
    #[inline]
    fn forward(&self, mut segment: usize, mut slot: usize, hidden: u8) -> Option<Position> {
        loop {
            let Segment { selectors, .. } = self.segments.get(segment)?;
            while slot < SEGMENT {
                if selectors[slot] & hidden == 0 {
                    return Some(Position::new(segment, slot));
                }
                slot += 1;
            }
            (segment, slot) = (segment + 1, 0);
        }
    }

    /// The last place before `slot` that is not hidden.
    #[inline]
    fn backward(&self, mut segment: usize, mut slot: usize, hidden: u8) -> Option<Position> {
        loop {
            while slot > 0 {
                slot -= 1;
                if self.segments[segment].selectors[slot] & hidden == 0 {
                    return Some(Position::new(segment, slot));
                }
            }
            segment = segment.checked_sub(1)?;
            slot = SEGMENT;
        }
    }
}

//! [`RemixCursor`]: a place in a [`Remix`], and the ways to move it.
//!
//! A seek compares hardly more than one key. A step compares none: it looks at selectors only, and counts the
//! next entry of each run. A cursor shows the newest version of each key, and tombstones only on request.
//! Nothing changes under a cursor, because a REMIX is immutable.

use super::verify::wrong_segment;
use super::{OLDER, RUN, RUNS_MAX, Remix, Run, RunEntry, SEGMENT, Segment, Selectors, TOMBSTONE};
use super::{head_behind, visible};
use forrest_engine::Result;
use forrest_machine::prefetch;
use std::cmp::Ordering;
use std::ops::{ControlFlow, Deref, Range};

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

/// The runs that selectors name, a bit each.
#[inline(always)]
fn named(selectors: &[u8]) -> u32 {
    selectors.iter().fold(0, |named, selector| named | 1 << (selector & RUN))
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
/// either end, it is at no entry again and stays there until it is placed again. After an error it has passed
/// hidden places at most, and can be moved again.
pub(crate) struct RemixCursor<M, R> {
    remix: M,
    runs: Vec<R>,
    at: Option<Position>,
    /// Those of the segment that it is in.
    selectors: Selectors,
    /// The place: the number of entries of each run before it. Beyond the runs, and for places without an
    /// entry, the numbers are arbitrary.
    before: [u32; RUNS_MAX + 1],
    /// The runs that were prefetched since it was placed, a bit each.
    fetched: u32,
    hidden: u8,
    /// Number of places that it moved past because they are hidden, as far as they were not taken.
    passed: u64,
}

impl<M: Deref<Target = Remix>, R: Run> RemixCursor<M, R> {
    /// A cursor at no entry. REQUIRES: `runs` are those that the REMIX was built from, the oldest first.
    pub(crate) fn new(remix: M, runs: Vec<R>, show: Show) -> RemixCursor<M, R> {
        assert!(remix.belongs_to(&runs), "a REMIX belongs to its runs");
        let (selectors, before) = (Segment::EMPTY.selectors, [0; RUNS_MAX + 1]);
        RemixCursor { remix, runs, at: None, selectors, before, fetched: 0, hidden: show.hidden(), passed: 0 }
    }

    /// Goes to the first key; false if there is none.
    pub(crate) fn first(&mut self) -> Result<bool> {
        self.forward(Position::new(0, 0))
    }

    /// Goes to the last key; false if there is none.
    pub(crate) fn last(&mut self) -> Result<bool> {
        self.backward(Position::new(self.remix.segments(), 0))
    }

    /// Goes to the first key that is not below `key`; false if there is none.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<bool> {
        let (at, _) = self.remix.lower_bound(&mut self.runs, key)?;
        self.forward(at)
    }

    /// Goes to the last key that is not above `key`; false if there is none.
    pub(crate) fn seek_for_prev(&mut self, key: &[u8]) -> Result<bool> {
        let (at, found) = self.remix.lower_bound(&mut self.runs, key)?;
        self.backward(Position::new(at.segment(), at.slot() + usize::from(found)))
    }

    /// Goes to the next key; false if there is none.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<bool> {
        let Some(at) = self.at else { return Ok(false) };
        let (mut segment, mut slot) = (at.segment(), at.slot());
        loop {
            let run = usize::from(self.selectors[slot] & RUN);
            self.before[run] = self.before[run].wrapping_add(1);
            slot += 1;
            if slot == SEGMENT {
                let entered = self.turn(segment + 1, 0);
                if !matches!(entered, Ok(true)) {
                    self.before[run] = self.before[run].wrapping_sub(1);
                    self.at = entered.is_err().then(|| Position::new(segment, slot - 1));
                    return entered;
                }
                (segment, slot) = (segment + 1, 0);
                self.fetch_turned(true);
            }
            if self.selectors[slot] & self.hidden == 0 {
                self.at = Some(Position::new(segment, slot));
                return Ok(true);
            }
            self.passed += 1;
        }
    }

    /// Passes the current key and those after it in its segment to `see`: as many at once as follow each other in one
    /// run, by the run's number, the ordinal of the first and that after the last. `see` moves the first up to where it
    /// breaks. If it does not, goes to the next key after them; false if there is none. After a break, or an error of
    /// `see`, it is at that key.
    #[inline(always)]
    pub(crate) fn walk(
        &mut self,
        mut see: impl FnMut(&mut R, usize, &mut u32, u32) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<(), bool>> {
        let Some(mut at) = self.at else { return Ok(ControlFlow::Continue(false)) };
        let selectors = self.selectors;
        loop {
            let (slot, selector) = (at.slot(), selectors[at.slot()]);
            let run = usize::from(selector & RUN);
            let count = selectors[slot..].iter().take_while(|&&other| other == selector).count();
            let first = self.before[run];
            let (mut ordinal, end) = (first, first.wrapping_add(count as u32));
            let flow = see(&mut self.runs[run], run, &mut ordinal, end);
            // The last of them, if it has passed all.
            ordinal = ordinal.min(end.wrapping_sub(1));
            self.before[run] = ordinal;
            at.slot = (slot as u32).wrapping_add(ordinal.wrapping_sub(first));
            self.at = Some(at);
            if flow?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            let later = at.slot() + 1..SEGMENT;
            let Some(slot) = later.clone().find(|&slot| selectors[slot] & self.hidden == 0) else {
                return self.next().map(ControlFlow::Continue);
            };
            self.walk_over(at.slot()..slot);
            self.passed += (slot - later.start) as u64;
            at.slot = slot as u32;
            self.at = Some(at);
        }
    }

    /// Goes to the previous key; false if there is none.
    #[inline]
    pub(crate) fn prev(&mut self) -> Result<bool> {
        let Some(at) = self.at else { return Ok(false) };
        let (mut segment, mut slot) = (at.segment(), at.slot());
        loop {
            if slot == 0 {
                self.at = segment.checked_sub(1).map(|_| Position::new(segment, slot));
                let Some(previous) = segment.checked_sub(1) else { return Ok(false) };
                self.turn(previous, SEGMENT)?;
                (segment, slot) = (previous, SEGMENT);
                self.fetch_turned(false);
            }
            slot -= 1;
            let selector = self.selectors[slot];
            let count = &mut self.before[usize::from(selector & RUN)];
            *count = count.wrapping_sub(1);
            if selector & self.hidden == 0 {
                self.at = Some(Position::new(segment, slot));
                return Ok(true);
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
    pub(crate) fn skip(&mut self, mut count: u64) -> Result<bool> {
        let Some(at) = self.at else { return Ok(false) };
        if count == 0 {
            return Ok(true);
        }
        let (mut segment, mut slot) = (at.segment(), at.slot() + 1);
        while self.enter(segment, slot)? {
            let here = visible(&self.selectors, slot, self.hidden) as u64;
            if count <= here {
                let mut slots = (slot..SEGMENT).filter(|&slot| self.selectors[slot] & self.hidden == 0);
                let slot = slots.nth(count as usize - 1).expect("it was counted");
                return self.place(Some(Position::new(segment, slot)));
            }
            count -= here;
            (segment, slot) = (segment + 1, 0);
        }
        Ok(false)
    }

    /// Prefetches the selectors of a segment, if there is one and it is in memory.
    #[inline]
    fn fetch_segment(&self, segment: usize) {
        if let Some(arrays) = self.remix.arrays()
            && let Some(segment) = arrays.segments.get(segment)
        {
            prefetch::read(segment.selectors.as_ptr());
        }
    }

    /// Prefetches the current entry, which is going to be read.
    #[inline]
    pub(crate) fn fetch_here(&mut self) {
        if let Some(RunEntry { run, ordinal, .. }) = self.entry() {
            self.fetched |= 1 << run;
            self.runs[run].fetch(ordinal);
        }
    }

    /// Prefetches the next entry of each run that the rest of the segment has: it is going to walk.
    #[inline]
    pub(crate) fn fetch_ahead(&mut self, forward: bool) {
        if let Some(at) = self.at {
            let slots = if forward { at.slot() + 1..SEGMENT } else { 0..at.slot() };
            self.fetch_runs(named(&self.selectors[slots]), forward);
        }
    }

    /// The same for the segment that it has entered.
    #[inline]
    fn fetch_turned(&mut self, forward: bool) {
        if self.fetched != (1 << self.runs.len()) - 1 {
            self.fetch_runs(named(&self.selectors), forward);
        }
    }

    /// Prefetches the next entry of each of these runs, unless that was done since it was placed.
    fn fetch_runs(&mut self, runs: u32, forward: bool) {
        let mut wanted = runs & !self.fetched;
        while wanted != 0 {
            let run = wanted.trailing_zeros() as usize;
            wanted &= wanted - 1;
            // A place without an entry names no run.
            if let Some(one) = self.runs.get(run) {
                let next = self.before[run];
                one.fetch(if forward { next } else { next.wrapping_sub(1) });
                self.fetched |= 1 << run;
            }
        }
    }

    /// The current entry.
    #[inline]
    pub(crate) fn entry(&self) -> Option<RunEntry> {
        let at = self.at?;
        let selector = self.selectors[at.slot()];
        let run = usize::from(selector & RUN);
        Some(RunEntry { run, ordinal: self.before[run], tombstone: selector & TOMBSTONE != 0 })
    }

    /// The entries of the current key, from the newest on.
    #[cold]
    pub(crate) fn versions(&self) -> Vec<RunEntry> {
        let Some(at) = self.at else { return Vec::new() };
        let entry = |selector: u8| {
            let run = usize::from(selector & RUN);
            // A run has one entry of a key at most.
            RunEntry { run, ordinal: self.before[run], tombstone: selector & TOMBSTONE != 0 }
        };
        let (first, later) = (at.slot(), &self.selectors[at.slot() + 1..]);
        let older = later.iter().take_while(|&&selector| selector & OLDER != 0);
        let all = [self.selectors[first]].into_iter().chain(older.copied()).map(entry);
        // Places without an entry come after those with one.
        all.filter(|entry| entry.run < self.runs.len()).collect()
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

    /// Takes the runs out of a cursor that is not used again.
    pub(crate) fn take_runs(&mut self) -> Vec<R> {
        self.at = None;
        std::mem::take(&mut self.runs)
    }

    /// Passes each run to `see`.
    pub(crate) fn each_run(&mut self, see: impl FnMut(&mut R)) {
        self.runs.iter_mut().for_each(see);
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
    pub(crate) fn compare(&mut self, key: &[u8]) -> Result<Option<Ordering>> {
        self.run().map(|(run, ordinal)| run.compare(ordinal, key)).transpose()
    }

    /// The segment that it is in.
    #[inline]
    pub(crate) fn segment(&self) -> u32 {
        self.at.map_or(0, |at| at.segment)
    }

    /// Whether all keys of that are less than a key, or greater if not `less`. `inside` is the current key. It looks at
    /// anchors only.
    #[inline]
    pub(crate) fn are_beside(&self, key: &[u8], inside: &[u8], less: bool) -> bool {
        self.at.is_some_and(|at| self.remix.anchors.are_beside(at.segment(), key, inside, less))
    }

    /// The current position, for `restore`.
    #[cfg_attr(not(test), expect(dead_code, reason = "the interface of the ancestor will park"))]
    pub(crate) fn position(&self) -> Option<Position> {
        self.at
    }

    /// Goes back to a position. REQUIRES: it is from a cursor over the same REMIX that shows no more than
    /// this one.
    #[cfg_attr(not(test), expect(dead_code, reason = "the interface of the ancestor will park"))]
    pub(crate) fn restore(&mut self, at: Option<Position>) -> Result<()> {
        self.place(at).map(drop)
    }

    /// Goes to the first key from a place on; false if there is none.
    #[inline]
    fn forward(&mut self, from: Position) -> Result<bool> {
        let (mut segment, mut slot) = (from.segment(), from.slot());
        (self.at, self.fetched) = (None, 0);
        while self.enter(segment, slot)? {
            match (slot..SEGMENT).find(|&slot| self.selectors[slot] & self.hidden == 0) {
                Some(found) => {
                    self.passed += (found - slot) as u64;
                    self.walk_over(slot..found);
                    self.at = Some(Position::new(segment, found));
                    return Ok(true);
                }
                None => self.passed += (SEGMENT - slot) as u64,
            }
            (segment, slot) = (segment + 1, 0);
        }
        Ok(false)
    }

    /// Goes to the last key before a place; false if there is none.
    #[inline]
    fn backward(&mut self, from: Position) -> Result<bool> {
        let (mut segment, mut slot) = (from.segment(), from.slot());
        (self.at, self.fetched) = (None, 0);
        loop {
            if slot > 0 {
                self.enter(segment, 0)?;
                match (0..slot).rfind(|&slot| self.selectors[slot] & self.hidden == 0) {
                    Some(found) => {
                        self.passed += (slot - found) as u64;
                        self.walk_over(0..found);
                        self.at = Some(Position::new(segment, found));
                        return Ok(true);
                    }
                    None => self.passed += slot as u64,
                }
            }
            let Some(previous) = segment.checked_sub(1) else {
                self.at = None;
                return Ok(false);
            };
            (segment, slot) = (previous, SEGMENT);
        }
    }

    /// Takes over the selectors of a segment, and counts what is before a place in it; false, and at no entry, if there
    /// is no such segment.
    #[inline]
    fn enter(&mut self, segment: usize, slot: usize) -> Result<bool> {
        if segment >= self.remix.segments() {
            self.at = None;
            return Ok(false);
        }
        self.fetch_segment(segment + 1);
        let mut room = None;
        let view = self.remix.view(segment, &mut room)?;
        self.before[..view.ordinals().len()].copy_from_slice(view.ordinals());
        self.selectors = view.segment.selectors;
        self.walk_over(0..slot);
        Ok(true)
    }

    /// The same for the next segment, or for the end of the previous one, whose count is known.
    #[inline]
    fn turn(&mut self, segment: usize, slot: usize) -> Result<bool> {
        match self.remix.arrays() {
            Some(arrays) => {
                let Some(Segment { selectors, .. }) = arrays.segments.get(segment) else { return Ok(false) };
                self.selectors = *selectors;
                self.fetch_segment(segment + 1);
                Ok(true)
            }
            // What the file has is not trusted.
            None => {
                let (before, selectors, runs) = (self.before, self.selectors, self.runs.len());
                let entered = self.enter(segment, slot)?;
                if entered && before[..runs] != self.before[..runs] {
                    (self.before, self.selectors) = (before, selectors);
                    return Err(wrong_segment(segment, "it does not go on where the one beside it ends"));
                }
                Ok(entered)
            }
        }
    }

    /// Counts the entries of places of the segment.
    #[inline]
    fn walk_over(&mut self, slots: Range<usize>) {
        for selector in &self.selectors[slots] {
            let count = &mut self.before[usize::from(selector & RUN)];
            *count = count.wrapping_add(1);
        }
    }

    fn place(&mut self, at: Option<Position>) -> Result<bool> {
        self.at = None;
        let Some(to) = at else { return Ok(false) };
        self.at = if self.enter(to.segment(), to.slot())? { at } else { None };
        Ok(self.at.is_some())
    }
}

/// Number of segments in which [`Remix::near`] looks.
const NEAR: usize = 2;

impl Remix {
    /// The number of entries of each run whose keys are less than `key`.
    ///
    /// # Errors
    /// Those of the runs.
    pub(crate) fn ranks<R: Run>(&self, runs: &mut [R], key: &[u8]) -> Result<Vec<u32>> {
        if self.segments() == 0 {
            return Ok(vec![0; runs.len()]);
        }
        let (at, _) = self.lower_bound(runs, key)?;
        let mut room = None;
        let view = self.view(at.segment(), &mut room)?;
        let mut ranks = view.ordinals().to_vec();
        for selector in &view.segment.selectors[..at.slot()] {
            // A place without an entry names no run.
            if let Some(rank) = ranks.get_mut(usize::from(selector & RUN)) {
                *rank += 1;
            }
        }
        Ok(ranks)
    }

    /// The number of keys from `from` up to `to` that are there. `None` is an end of the REMIX. It compares keys at the
    /// ends only; between them it looks at selectors.
    ///
    /// # Errors
    /// Those of the runs, and of the file that has the segments.
    pub(crate) fn count<R: Run>(
        &self,
        runs: &mut [R],
        from: Option<&[u8]>,
        to: Option<&[u8]>,
    ) -> Result<u64> {
        let mut end_of = |key: Option<&[u8]>, end| match key {
            Some(key) => self.lower_bound(runs, key).map(|(at, _)| at),
            None => Ok(Position::new(end, 0)),
        };
        let (from, to) = (end_of(from, 0)?, end_of(to, self.segments())?);
        if from == Position::new(0, 0) && to.segment() >= self.segments() {
            return Ok(self.live());
        }
        let mut keys = 0;
        for at in from.segment()..self.segments().min(to.segment() + 1) {
            let selectors = self.selectors(at)?;
            let first = if at == from.segment() { from.slot() } else { 0 };
            let end = if at == to.segment() { to.slot() } else { SEGMENT };
            let is_live = |selector: &&u8| **selector & Show::Live.hidden() == 0;
            keys +=
                selectors.get(first..end).map_or(0, |within| within.iter().filter(is_live).count() as u64);
        }
        Ok(keys)
    }

    /// Passes the entries to `see` with which a walk of `count` keys from `key` on comes to each run first, about: no
    /// key is compared, and only the next entries are looked at.
    ///
    /// # Errors
    /// Those of the file that has the segments.
    pub(crate) fn near(&self, key: &[u8], mut count: usize, mut see: impl FnMut(RunEntry)) -> Result<()> {
        let (first, mut seen) = (self.find(key), 0_u32);
        for segment in first..(first + NEAR).min(self.segments()) {
            let mut room = None;
            let view = self.view(segment, &mut room)?;
            let from = match segment == first {
                true => view.segment.equal(head_behind(key, view.skip())).start,
                false => 0,
            };
            for slot in (from..SEGMENT).filter(|&slot| view.segment.selectors[slot] & OLDER == 0) {
                if count == 0 {
                    return Ok(());
                }
                let entry = view.entry(slot);
                if seen >> entry.run & 1 == 0 {
                    seen |= 1 << entry.run;
                    see(entry);
                }
                count -= usize::from(!entry.tombstone);
            }
        }
        Ok(())
    }

    /// The place of the first key that is not less than `key`, and whether it is equal. The place may be
    /// after the last one of a segment.
    pub(super) fn lower_bound<R: Run>(&self, runs: &mut [R], key: &[u8]) -> Result<(Position, bool)> {
        if self.segments() == 0 {
            return Ok((Position::new(0, 0), false));
        }
        let segment = self.find(key);
        let mut room = None;
        let view = self.view(segment, &mut room)?;
        let within = view.segment.equal(head_behind(key, view.skip()));
        // The walk may meet all of them, and the search waits for one.
        for (run, &ordinal) in runs.iter().zip(view.ordinals()) {
            run.fetch_place(ordinal);
        }
        let (slot, found) = view.search(within, |entry| {
            let run = &mut runs[entry.run];
            run.fetch(entry.ordinal);
            run.compare(entry.ordinal, key)
        })?;
        Ok((Position::new(segment, slot), found))
    }
}

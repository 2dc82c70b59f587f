//! [`build()`] and [`rebuild`]: make a [`Remix`], from runs alone or from an older one and newer runs.
//!
//! A rebuild finds the place of each new key in the old view and copies the stretches between these places.
//! Keys are compared only to find the places, and there only if heads are equal. Where the segments of a
//! stretch can be kept, they are copied whole, and no key is read. Where they cannot, because new keys have
//! shifted all later places, two keys of each segment are read for its new anchor. A head is copied if its
//! skip is unchanged; otherwise its key is read. Before a long stretch some places may be left unused, so
//! that its segments can be kept.

use super::anchors::Collector;
use super::merge::Merge;
use super::verify::wrong_segment;
use super::{Arrays, Body, OLDER, RUN, RUNS_MAX, Remix, Run, SEGMENT, Segment, TOMBSTONE};
use super::{head_behind, oldest, tag, used, visible};
use crate::gauge::Share;
use crate::key::common_prefix;
use crate::room;
use forrest_engine::{Error, ErrorKind, Result};
use forrest_machine::pages::Array;
use std::ops::Range;

/// To keep at least this many segments, the rest of the segment before them may be left unused.
const STRETCH: usize = 16;
/// At most one place for this many entries is left unused for that.
const UNUSED: u64 = 16;

/// Builds a REMIX of runs, the oldest first: every entry is compared with others.
pub(crate) fn build<R: Run>(runs: &mut [R], tags: bool) -> Result<Remix> {
    let mut output = Output::new(runs, tags)?;
    let mut merge = Merge::new(runs, 0)?;
    while merge.next(runs)? {
        output.versions(runs, &merge.versions, &merge.key, merge.versions.len())?;
    }
    output.finish(runs)
}

/// Builds a REMIX of the runs that `old` was built from and newer ones. `runs` are all of them, the oldest
/// first. If tags are wanted and `old` has none, every key must be read; this is then the same as
/// [`build()`].
pub(crate) fn rebuild<R: Run>(old: &Remix, runs: &mut [R], tags: bool) -> Result<Remix> {
    let count = old.runs.len();
    assert!(runs.len() >= count && old.belongs_to(&runs[..count]), "a REMIX belongs to its runs");
    if tags && !old.has_tags() {
        return build(runs, tags);
    }
    let mut output = Output::new(runs, tags)?;
    // Unused places of the old view may be copied with it.
    let unused = (old.segments() * SEGMENT) as u64 - old.entries;
    output.spare = (old.entries / UNUSED).saturating_sub(unused);
    match old.dead_large {
        None if runs[..count].iter().any(Run::has_large) => output.dead_large = None,
        dead => output.dead_large = output.dead_large.map(|_| dead.unwrap_or(0)),
    }
    let mut merge = Merge::new(runs, count)?;
    let mut at = Place { segment: 0, slot: 0 };
    while merge.next(runs)? {
        let (place, found) = old.find_from(runs, at, &merge.key)?;
        output.copy(old, runs, at, place)?;
        at = place;
        let mut fresh = merge.versions.len();
        if found {
            fresh += 1;
            let mut room = None;
            let selectors = &old.view(place.segment, &mut room)?.segment.selectors;
            at.slot = oldest(selectors, place.slot) + 1;
            merge.versions.extend(selectors[place.slot..at.slot].iter().map(|selector| selector | OLDER));
        }
        output.versions(runs, &merge.versions, &merge.key, fresh)?;
    }
    output.copy(old, runs, at, Place { segment: old.segments(), slot: 0 })?;
    output.finish(runs)
}

/// A place of the old view, between two keys.
#[derive(Clone, Copy)]
struct Place {
    segment: usize,
    slot: usize,
}

impl Remix {
    /// The first place from `from` on of a key that is not below `key`, and whether it is equal. The key before
    /// `from` is below it.
    fn find_from<R: Run>(&self, runs: &mut [R], from: Place, key: &[u8]) -> Result<(Place, bool)> {
        if from.segment >= self.segments() {
            return Ok((from, false));
        }
        let mut segment = from.segment;
        if !self.anchors.within(segment, key) {
            // Often it is the next one.
            segment += 1;
            if !self.anchors.within(segment, key) {
                segment = self.anchors.find(key);
            }
        }
        let start = if segment == from.segment { from.slot } else { 0 };
        let mut room = None;
        let view = self.view(segment, &mut room)?;
        let equal = view.segment.equal(head_behind(key, view.skip()));
        let within = equal.start.max(start)..equal.end.max(start);
        let (slot, found) = view.search(within, |entry| runs[entry.run].compare(entry.ordinal, key))?;
        Ok((Place { segment, slot }, found))
    }
}

/// A REMIX under construction.
struct Output {
    runs: Vec<u32>,
    /// The ordinal of each run's next entry.
    next: [u32; RUNS_MAX],
    anchors: Collector,
    rows: Array<u32>,
    /// All are finished except the last, whose heads depend on the next anchor.
    segments: Array<Segment>,
    /// The skip of each head of the last segment so far.
    skips: [u32; SEGMENT],
    has_tags: bool,
    /// Number of filled places of the last segment. [`SEGMENT`] means that there is no last segment yet.
    filled: usize,
    /// Number of places that may still be left unused so that segments can be kept.
    spare: u64,
    live: u64,
    dead_large: Option<u64>,
    /// Two keys, in buffers that are reused.
    below: Vec<u8>,
    above: Vec<u8>,
}

/// Places to be added, which all have an entry. They begin and end between keys.
#[derive(Clone, Copy)]
struct Places<'a> {
    selectors: &'a [u8],
    tags: &'a [u8],
    heads: &'a [u32],
    /// The skip of the heads.
    skip: u32,
}

impl<'a> Places<'a> {
    fn of(segment: &'a Segment, slots: Range<usize>, skip: usize) -> Places<'a> {
        let Segment { selectors, tags, heads } = segment;
        let selectors = &selectors[slots.clone()];
        Places { selectors, tags: &tags[slots.clone()], heads: &heads[slots], skip: skip as u32 }
    }

    fn split_at(self, count: usize) -> (Places<'a>, Places<'a>) {
        let (selectors, later_selectors) = self.selectors.split_at(count);
        let (tags, later_tags) = self.tags.split_at(count);
        let (heads, later_heads) = self.heads.split_at(count);
        let later = Places { selectors: later_selectors, tags: later_tags, heads: later_heads, ..self };
        (Places { selectors, tags, heads, ..self }, later)
    }
}

impl Output {
    fn new<R: Run>(runs: &[R], has_tags: bool) -> Result<Output> {
        if runs.len() > RUNS_MAX {
            return Err(Error::limit("a partition", "runs", runs.len(), RUNS_MAX));
        }
        let has_large = runs.iter().any(Run::has_large);
        let runs: Vec<u32> = runs.iter().map(Run::len).collect();
        let entries: u64 = runs.iter().map(|&entries| u64::from(entries)).sum();
        // Some places stay unused.
        let segments = (entries + entries / UNUSED).div_ceil(SEGMENT as u64) as usize;
        Ok(Output {
            next: [0; RUNS_MAX],
            anchors: Collector::default(),
            rows: room::array(segments * (runs.len() + 1))?,
            segments: room::array(segments)?,
            skips: [0; SEGMENT],
            has_tags,
            filled: SEGMENT,
            spare: 0,
            live: 0,
            dead_large: has_large.then_some(0),
            below: Vec::new(),
            above: Vec::new(),
            runs,
        })
    }

    /// Adds all versions of a key. The first `fresh` were not older ones of it before.
    fn versions<R: Run>(&mut self, runs: &mut [R], selectors: &[u8], key: &[u8], fresh: usize) -> Result<()> {
        if let Some(dead) = &mut self.dead_large {
            for &selector in selectors.get(1..fresh).unwrap_or_default() {
                let run = usize::from(selector & RUN);
                *dead = dead.saturating_add(runs[run].large_bytes(self.next[run])?);
            }
        }
        // Most often the segment will have the same skip as the previous one.
        let skip = self.rows.iter().nth_back(self.runs.len() + 1).copied().unwrap_or(0);
        let tags = [if self.has_tags { tag(key) } else { 0 }; RUNS_MAX];
        let heads = [head_behind(key, skip as usize); RUNS_MAX];
        let count = selectors.len();
        self.extend(runs, Places { selectors, tags: &tags[..count], heads: &heads[..count], skip })
    }

    /// Adds places.
    fn extend<R: Run>(&mut self, runs: &mut [R], mut places: Places<'_>) -> Result<()> {
        while let Some(&first) = places.selectors.first() {
            let count = whole(places.selectors, SEGMENT - self.filled);
            if count == 0 {
                self.anchor(runs, first)?;
                self.begin(runs, Segment::EMPTY)?;
                self.filled = 0;
                continue;
            }
            let (now, later) = places.split_at(count);
            let slots = self.filled..self.filled + count;
            let last = self.segments.last_mut().expect("there is room in it");
            last.selectors[slots.clone()].copy_from_slice(now.selectors);
            last.heads[slots.clone()].copy_from_slice(now.heads);
            self.skips[slots.clone()].fill(now.skip);
            if self.has_tags {
                last.tags[slots.clone()].copy_from_slice(now.tags);
            }
            for &selector in now.selectors {
                self.next[usize::from(selector & RUN)] += 1;
                self.live += u64::from(selector & (OLDER | TOMBSTONE) == 0);
            }
            self.filled = slots.end;
            places = later;
        }
        Ok(())
    }

    /// Adds the anchor of a segment whose first entry `first` selects.
    fn anchor<R: Run>(&mut self, runs: &mut [R], first: u8) -> Result<()> {
        let Some(last) = self.segments.last() else { return Ok(()) };
        let (last, first) = (usize::from(last.selectors[self.filled - 1] & RUN), usize::from(first & RUN));
        runs[last].key_into(self.next[last] - 1, &mut self.below)?;
        runs[first].key_into(self.next[first], &mut self.above)?;
        let shared = common_prefix(&self.below, &self.above);
        // Sorted runs cannot get here. Unsorted runs would make a view that hides keys.
        if self.below.get(shared) >= self.above.get(shared) {
            let what = format!("run {first}: key {} is not greater than an earlier one", self.next[first]);
            return Err(Error::new(ErrorKind::Corrupt, what));
        }
        self.anchors.push(&self.above[..=shared], &[])
    }

    /// Adds a segment without its anchor, which was just added, and the counts of its entries.
    fn begin<R: Run>(&mut self, runs: &mut [R], segment: Segment) -> Result<()> {
        if self.segments.len() == u32::MAX as usize {
            return Err(Error::limit("a REMIX", "segments", self.segments.len() + 1, u32::MAX as usize));
        }
        self.complete(runs, self.anchors.shared())?;
        room::extend(&mut self.rows, &self.next[..self.runs.len()])?;
        room::extend(&mut self.rows, &[0])?;
        room::extend(&mut self.segments, &[segment])
    }

    /// Completes the heads of the last segment, whose skip is `skip`.
    fn complete<R: Run>(&mut self, runs: &mut [R], skip: usize) -> Result<()> {
        let Some(last) = self.segments.last_mut() else { return Ok(()) };
        let row = self.rows.len() - self.runs.len() - 1;
        let (ordinals, skipped) = self.rows[row..].split_at_mut(self.runs.len());
        skipped[0] = skip as u32;
        if self.skips[..self.filled].iter().all(|&other| other == skip as u32) {
            return Ok(());
        }
        let mut next = [0; RUNS_MAX];
        next[..ordinals.len()].copy_from_slice(ordinals);
        for slot in 0..self.filled {
            let selector = last.selectors[slot];
            let run = usize::from(selector & RUN);
            if selector & OLDER != 0 {
                last.heads[slot] = last.heads[slot - 1];
            } else if self.skips[slot] != skip as u32 {
                runs[run].key_into(next[run], &mut self.above)?;
                last.heads[slot] = head_behind(&self.above, skip);
            }
            next[run] += 1;
        }
        Ok(())
    }

    /// Adds the stretch between two places of an older REMIX.
    fn copy<R: Run>(&mut self, old: &Remix, runs: &mut [R], from: Place, to: Place) -> Result<()> {
        let mut at = from;
        while at.segment < to.segment {
            if at.slot == 0 && self.keeps(to.segment - at.segment) {
                self.keep(old, runs, at.segment..to.segment)?;
                at.segment = to.segment;
            } else {
                self.places(old, runs, at.segment, at.slot..SEGMENT)?;
                at = Place { segment: at.segment + 1, slot: 0 };
            }
        }
        if at.slot < to.slot {
            self.places(old, runs, at.segment, at.slot..to.slot)?;
        }
        Ok(())
    }

    /// Whether `segments` segments are to be kept unchanged.
    fn keeps(&mut self, segments: usize) -> bool {
        let unused = (SEGMENT - self.filled) as u64;
        let keeps = unused == 0 || segments >= STRETCH && unused <= self.spare;
        if keeps {
            self.spare -= unused;
        }
        keeps
    }

    /// Adds places of a segment of an older REMIX, as far as they have entries.
    fn places<R: Run>(
        &mut self,
        old: &Remix,
        runs: &mut [R],
        segment: usize,
        slots: Range<usize>,
    ) -> Result<()> {
        let mut room = None;
        let view = old.view(segment, &mut room)?;
        let slots = slots.start..slots.end.min(used(&view.segment.selectors));
        self.extend(runs, Places::of(view.segment, slots, view.skip()))
    }

    /// Adds segments of an older REMIX unchanged.
    fn keep<R: Run>(&mut self, old: &Remix, runs: &mut [R], segments: Range<usize>) -> Result<()> {
        let (mut room, mut next_room) = (None, None);
        for segment in segments.clone() {
            let view = old.view(segment, &mut room)?;
            let mut kept = *view.segment;
            if !self.has_tags {
                kept.tags = Segment::EMPTY.tags;
            }
            let selectors = kept.selectors;
            if segment == segments.start {
                // The key before it may be another one now.
                self.anchor(runs, selectors[0])?;
            } else {
                self.anchors.push(old.anchors.prefix(), old.anchors.tail(segment - 1))?;
            }
            self.begin(runs, kept)?;
            self.skips.fill(view.skip() as u32);
            let behind = match segment + 1 {
                next if next < old.segments() => old.view(next, &mut next_room)?.ordinals(),
                _ => &old.runs,
            };
            for ((next, behind), before) in self.next.iter_mut().zip(behind).zip(view.ordinals()) {
                let entries = behind.checked_sub(*before);
                *next += entries
                    .ok_or_else(|| wrong_segment(segment, "the next one has fewer entries before it"))?;
            }
            self.filled = used(&selectors);
            self.live += visible(&selectors, 0, OLDER | TOMBSTONE) as u64;
        }
        Ok(())
    }

    fn finish<R: Run>(mut self, runs: &mut [R]) -> Result<Remix> {
        if self.next[..self.runs.len()] != self.runs {
            // What was copied from a file was not as it should be.
            return Err(wrong_segment(self.segments.len(), "not every entry has a place"));
        }
        self.complete(runs, 0)?;
        // Unused places were reserved, and there may be more of them than that.
        self.rows.shrink_to_fit();
        self.segments.shrink_to_fit();
        Ok(Remix {
            entries: self.runs.iter().map(|&entries| u64::from(entries)).sum(),
            runs: self.runs,
            anchors: self.anchors.finish()?,
            body: Body::Memory(Arrays { rows: self.rows, segments: self.segments }),
            has_tags: self.has_tags,
            live: self.live,
            dead_large: self.dead_large,
            share: Share::default(),
        })
    }
}

/// The greatest number of selectors, at most `room`, that does not separate the versions of a key.
fn whole(selectors: &[u8], room: usize) -> usize {
    if selectors.len() <= room {
        return selectors.len();
    }
    let mut count = room;
    while count > 0 && selectors[count] & OLDER != 0 {
        count -= 1;
    }
    count
}

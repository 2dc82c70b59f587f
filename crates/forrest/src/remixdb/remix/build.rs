//! [`build()`] and [`rebuild`]: how a [`Remix`] is made, from runs alone or from an older one and newer runs.
//!
//! A rebuild finds the place of each new key in the old view and copies what lies between. Keys are compared only
//! to find those places. Where the segments of a stretch can be kept, they are copied whole, and no key is read;
//! where they cannot, because new keys have moved the places of all that follows, two keys a segment are read for
//! its new anchor. A long stretch is worth some unused places before it, so that its segments can be kept.

use super::anchors::{self, Collector};
use super::merge::Merge;
use super::{FILLER, OLDER, RUN, RUNS_MAX, Remix, Run, SEGMENT, Selectors, TOMBSTONE, Tags};
use super::{newest, oldest, tag, used, visible};
use crate::error::{Error, ErrorKind, Result};
use std::cmp::Ordering;
use std::ops::Range;

/// So many segments that can be kept are worth leaving the rest of the segment before them unused.
const STRETCH: usize = 16;
/// But no more than one place for so many entries may be unused for that.
const UNUSED: u64 = 16;

/// Makes a REMIX of runs, the oldest first: every entry is compared with others.
pub(crate) fn build<R: Run>(runs: &mut [R], tags: bool) -> Result<Remix> {
    let mut output = Output::new(runs, tags)?;
    let mut merge = Merge::new(runs, 0)?;
    while merge.next(runs)? {
        let tag = if tags { tag(&merge.key) } else { 0 };
        output.versions(runs, &merge.versions, tag)?;
    }
    Ok(output.finish())
}

/// Makes a REMIX of the runs that `old` was built from and newer ones. `runs` are all of them, the oldest first.
/// If tags are wanted and `old` has none, every key has to be read, and then this is a [`build()`].
pub(crate) fn rebuild<R: Run>(old: &Remix, runs: &mut [R], tags: bool) -> Result<Remix> {
    let count = old.runs.len();
    assert!(runs.len() >= count && old.belongs_to(&runs[..count]), "a REMIX belongs to its runs");
    if tags && !old.has_tags() {
        return build(runs, tags);
    }
    let mut output = Output::new(runs, tags)?;
    // What is unused in the old view may be copied with it.
    let unused = (old.segments() * SEGMENT) as u64 - old.entries;
    output.spare = (old.entries / UNUSED).saturating_sub(unused);
    let mut merge = Merge::new(runs, count)?;
    let added: u64 = runs[count..].iter().map(|run| u64::from(run.len())).sum();
    let step = (old.entries / added.max(1)).clamp(1, SEGMENT as u64) as usize;
    let mut at = Place { segment: 0, slot: 0 };
    while merge.next(runs)? {
        let (place, found) = old.find_from(runs, at, step, &merge.key)?;
        output.copy(old, runs, at, place)?;
        at = place;
        if found {
            let selectors = &old.selectors[place.segment];
            at.slot = oldest(selectors, place.slot) + 1;
            merge.versions.extend(selectors[place.slot..at.slot].iter().map(|selector| selector | OLDER));
        }
        let tag = if tags { tag(&merge.key) } else { 0 };
        output.versions(runs, &merge.versions, tag)?;
    }
    output.copy(old, runs, at, Place { segment: old.segments(), slot: 0 })?;
    Ok(output.finish())
}

/// A place of the old view, between two keys.
#[derive(Clone, Copy)]
struct Place {
    segment: usize,
    slot: usize,
}

impl Remix {
    /// The first place from `from` on of a key that is not below `key`, and whether it is equal. The key before
    /// `from` is below it. Inside the segment where it belongs, places about `step` ahead are tried first.
    fn find_from<R: Run>(
        &self,
        runs: &mut [R],
        from: Place,
        step: usize,
        key: &[u8],
    ) -> Result<(Place, bool)> {
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
        let (slot, found) = self.gallop(runs, segment, start, step, key)?;
        Ok((Place { segment, slot }, found))
    }

    /// Like [`search`](Remix::search), from `low` on, quickly if the place is not much further than `step`.
    fn gallop<R: Run>(
        &self,
        runs: &mut [R],
        segment: usize,
        mut low: usize,
        mut step: usize,
        key: &[u8],
    ) -> Result<(usize, bool)> {
        let selectors = &self.selectors[segment];
        let mut high = used(selectors);
        // A step that reaches over more than half of what is left is no better than halving it.
        while 2 * step <= high - low {
            let probe = low + step - 1;
            match self.compare(runs, segment, probe, key)? {
                Ordering::Less => low = oldest(selectors, probe) + 1,
                Ordering::Equal => return Ok((newest(selectors, probe), true)),
                Ordering::Greater => {
                    high = newest(selectors, probe);
                    break;
                }
            }
            step *= 2;
        }
        self.search(runs, segment, low..high, key)
    }
}

/// A REMIX that grows.
struct Output {
    runs: Vec<u32>,
    /// The ordinal of each run's next entry.
    next: [u32; RUNS_MAX],
    anchors: Collector,
    ordinals: Vec<u32>,
    selectors: Vec<Selectors>,
    tags: Option<Vec<Tags>>,
    /// Places of the last segment that have an entry. There is no last segment yet if it is [`SEGMENT`].
    filled: usize,
    /// So many places may yet be left unused so that segments can be kept.
    spare: u64,
    live: u64,
    /// Two keys, in buffers that are used again.
    below: Vec<u8>,
    above: Vec<u8>,
}

impl Output {
    fn new<R: Run>(runs: &[R], tags: bool) -> Result<Output> {
        if runs.len() > RUNS_MAX {
            return Err(Error::limit("a partition", "runs", runs.len(), RUNS_MAX));
        }
        let runs: Vec<u32> = runs.iter().map(Run::len).collect();
        let entries: u64 = runs.iter().map(|&entries| u64::from(entries)).sum();
        let segments = entries.div_ceil(SEGMENT as u64) as usize;
        Ok(Output {
            next: [0; RUNS_MAX],
            anchors: Collector::default(),
            ordinals: Vec::with_capacity(segments * runs.len()),
            selectors: Vec::with_capacity(segments),
            tags: tags.then(|| Vec::with_capacity(segments)),
            filled: SEGMENT,
            spare: 0,
            live: 0,
            below: Vec::new(),
            above: Vec::new(),
            runs,
        })
    }

    /// Adds all versions of a key.
    fn versions<R: Run>(&mut self, runs: &mut [R], versions: &[u8], tag: u8) -> Result<()> {
        let tags = [tag; RUNS_MAX];
        self.extend(runs, versions, Some(&tags[..versions.len()]))
    }

    /// Adds selectors and their tags, which begin and end between keys.
    fn extend<R: Run>(
        &mut self,
        runs: &mut [R],
        mut selectors: &[u8],
        mut tags: Option<&[u8]>,
    ) -> Result<()> {
        while let Some(&first) = selectors.first() {
            let count = whole(selectors, SEGMENT - self.filled);
            if count == 0 {
                self.open(runs, first)?;
                continue;
            }
            let (now, later) = selectors.split_at(count);
            let end = self.filled + count;
            if let Some(last) = self.selectors.last_mut() {
                last[self.filled..end].copy_from_slice(now);
            }
            if let (Some(all), Some(tags)) = (&mut self.tags, &mut tags) {
                let (now, later) = tags.split_at(count);
                if let Some(last) = all.last_mut() {
                    last[self.filled..end].copy_from_slice(now);
                }
                *tags = later;
            }
            for &selector in now {
                self.next[usize::from(selector & RUN)] += 1;
                self.live += u64::from(selector & (OLDER | TOMBSTONE) == 0);
            }
            self.filled = end;
            selectors = later;
        }
        Ok(())
    }

    /// Begins a segment, empty, whose first entry `first` selects.
    fn open<R: Run>(&mut self, runs: &mut [R], first: u8) -> Result<()> {
        self.anchor(runs, first)?;
        self.begin([FILLER; SEGMENT], [0; SEGMENT])?;
        self.filled = 0;
        Ok(())
    }

    /// Adds the anchor of a segment whose first entry `first` selects.
    fn anchor<R: Run>(&mut self, runs: &mut [R], first: u8) -> Result<()> {
        let Some(last) = self.selectors.last() else { return Ok(()) };
        let (last, first) = (usize::from(last[self.filled - 1] & RUN), usize::from(first & RUN));
        runs[last].key_into(self.next[last] - 1, &mut self.below)?;
        runs[first].key_into(self.next[first], &mut self.above)?;
        let shared = anchors::common(&self.below, &self.above);
        // Sorted runs cannot get here. Runs that are not would make a view that hides keys.
        if self.below.get(shared) >= self.above.get(shared) {
            let what = format!("run {first}: key {} is not above one before it", self.next[first]);
            return Err(Error::new(ErrorKind::Corrupt, what));
        }
        self.anchors.push(&self.above[..=shared], &[])
    }

    /// Adds a segment, but for its anchor and the counts of its entries.
    fn begin(&mut self, selectors: Selectors, tags: Tags) -> Result<()> {
        if self.selectors.len() == u32::MAX as usize {
            return Err(Error::limit("a REMIX", "segments", self.selectors.len() + 1, u32::MAX as usize));
        }
        self.ordinals.extend_from_slice(&self.next[..self.runs.len()]);
        self.selectors.push(selectors);
        if let Some(all) = &mut self.tags {
            all.push(tags);
        }
        Ok(())
    }

    /// Adds what is between two places of an older REMIX.
    fn copy<R: Run>(&mut self, old: &Remix, runs: &mut [R], from: Place, to: Place) -> Result<()> {
        let mut at = from;
        while at.segment < to.segment {
            if at.slot == 0 && self.keeps(to.segment - at.segment) {
                self.keep(old, runs, at.segment..to.segment)?;
                at.segment = to.segment;
            } else {
                self.places(old, runs, at.segment, at.slot..used(&old.selectors[at.segment]))?;
                at = Place { segment: at.segment + 1, slot: 0 };
            }
        }
        if at.slot < to.slot {
            self.places(old, runs, at.segment, at.slot..to.slot)?;
        }
        Ok(())
    }

    /// Whether so many segments are to be kept as they are.
    fn keeps(&mut self, segments: usize) -> bool {
        let unused = (SEGMENT - self.filled) as u64;
        let keeps = unused == 0 || segments >= STRETCH && unused <= self.spare;
        if keeps {
            self.spare -= unused;
        }
        keeps
    }

    /// Adds places of a segment of an older REMIX.
    fn places<R: Run>(
        &mut self,
        old: &Remix,
        runs: &mut [R],
        segment: usize,
        slots: Range<usize>,
    ) -> Result<()> {
        let tags = old.tags.as_ref().map(|tags| &tags[segment][slots.clone()]);
        self.extend(runs, &old.selectors[segment][slots], tags)
    }

    /// Adds segments of an older REMIX as they are.
    fn keep<R: Run>(&mut self, old: &Remix, runs: &mut [R], segments: Range<usize>) -> Result<()> {
        for segment in segments.clone() {
            let selectors = old.selectors[segment];
            if segment == segments.start {
                // Another key may stand before it than did.
                self.anchor(runs, selectors[0])?;
            } else {
                self.anchors.push(old.anchors.prefix(), old.anchors.tail(segment - 1))?;
            }
            self.begin(selectors, old.tags.as_ref().map_or([0; SEGMENT], |tags| tags[segment]))?;
            let behind = match segment + 1 {
                next if next < old.segments() => old.ordinals_of(next),
                _ => &old.runs,
            };
            for ((next, behind), before) in self.next.iter_mut().zip(behind).zip(old.ordinals_of(segment)) {
                *next += behind - before;
            }
            self.filled = used(&selectors);
            self.live += visible(&selectors, 0, OLDER | TOMBSTONE) as u64;
        }
        Ok(())
    }

    fn finish(mut self) -> Remix {
        assert_eq!(self.next[..self.runs.len()], self.runs, "every entry has its place");
        // Unused places make more segments than were reserved, and then a vector has doubled.
        self.ordinals.shrink_to_fit();
        self.selectors.shrink_to_fit();
        if let Some(tags) = &mut self.tags {
            tags.shrink_to_fit();
        }
        Remix {
            entries: self.runs.iter().map(|&entries| u64::from(entries)).sum(),
            runs: self.runs,
            anchors: self.anchors.finish(),
            ordinals: self.ordinals,
            selectors: self.selectors,
            tags: self.tags,
            live: self.live,
        }
    }
}

/// How many of the selectors, at most `room`, can be taken without parting the versions of a key.
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

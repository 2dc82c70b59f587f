//! [`Remix`]: one sorted view over several overlapping runs, which is walked without comparing keys.
//!
//! After "REMIX: Efficient Range Query for LSM-trees" (Zhong et al., FAST'21). The view is cut into
//! *segments* of 32 places. A segment has an *anchor*, a key that separates it from the previous segment
//! ([`anchors`]); an *ordinal* for each run, the number of that run's entries before the segment; and a
//! *selector* for each place: the run of the entry, whether the entry is an older version of the key before
//! it, and whether it is a tombstone. So the entry at a place is found by adding the segment's ordinal of the
//! run and the number of that run's selectors before the place. With *tags*, a byte of a hash for each place,
//! a point query compares hardly any key but the requested one.
//!
//! Beyond the paper, a place has a *head*: four bytes of its key, taken after the common prefix of the
//! segment's anchor and the next one, which every key between the two has too (the *skip*). A search compares
//! heads, which are stored together, and reads whole keys from the runs only if heads are equal. So a seek
//! reads one key, where the paper's bisection reads five, in as many blocks.
//!
//! Guarantees: the versions of a key are in one segment, newest first. A segment is never empty. If the next
//! key did not fit, the rest of the segment has selectors that name no run, and every walk skips them like
//! older versions. Heads ascend, and those of a key's versions are equal. A REMIX never changes; [`build()`]
//! and [`rebuild`] make new ones, [`format`] stores them.
//!
//! The segments are in memory, or in the REMIX's file, of which the cache keeps the pages that are read ([`paged`]).
//! The anchors are always in memory.
//!
//! It does not know values, sequence numbers or table files: it only asks a [`Run`] for its n-th entry. It
//! keeps no run open; the caller passes the runs, in the order of their age.

mod anchors;
mod build;
mod cursor;
mod format;
mod merge;
mod paged;
#[cfg(test)]
mod tests;
mod verify;

pub(crate) use build::{build, rebuild};
pub(crate) use cursor::{RemixCursor, Show};
pub(crate) use format::check_version;

use crate::gauge::Share;
use crate::key::head_of;
use anchors::Anchors;
use forrest_engine::Result;
use forrest_machine::pages::Array;
use forrest_machine::prefetch;
use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_64;

/// Number of places in a segment.
pub(crate) const SEGMENT: usize = 32;
/// Maximum number of runs of a REMIX. One less than five bits can encode, so that one number means no run.
pub(crate) const RUNS_MAX: usize = 31;

/// In memory it takes about this many bytes for each entry: 7.5 if there are few runs.
pub(crate) const ENTRY_BYTES: u64 = 8;

/// The bits of a selector that name its run.
const RUN: u8 = 0x1F;
/// The entry is an older version of the key at the place before.
const OLDER: u8 = 0x20;
/// The entry deletes its key.
const TOMBSTONE: u8 = 0x40;
/// Must be 0.
const RESERVED: u8 = 0x80;
/// The selector of a place without an entry: it names no run, and is skipped like an older version.
const FILLER: u8 = RUNS_MAX as u8 | OLDER;

type Selectors = [u8; SEGMENT];
type Tags = [u8; SEGMENT];
type Heads = [u32; SEGMENT];

/// The head of a place without an entry. Keys may have it too.
const NO_HEAD: u32 = u32::MAX;

/// The data of a segment's places: three cache lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(align(64))]
struct Segment {
    selectors: Selectors,
    /// All 0 if there are no tags.
    tags: Tags,
    heads: Heads,
}

impl Segment {
    /// A segment without entries.
    const EMPTY: Segment =
        Segment { selectors: [FILLER; SEGMENT], tags: [0; SEGMENT], heads: [NO_HEAD; SEGMENT] };

    /// The places with this head; they begin and end between keys.
    #[inline]
    fn equal(&self, head: u32) -> Range<usize> {
        let count = |of: fn(u32, u32) -> bool| {
            self.heads.iter().map(|&other| u32::from(of(other, head))).sum::<u32>()
        };
        let (less, equal) =
            (count(|other, head| other < head) as usize, count(|other, head| other == head) as usize);
        let end = less + equal;
        // Places without an entry may look equal too.
        if end == SEGMENT { less..used(&self.selectors) } else { less..end }
    }
}

/// The head of a key after the prefix that it skips.
#[inline]
fn head_behind(key: &[u8], skip: usize) -> u32 {
    (head_of(key.get(skip..).unwrap_or_default()) >> 32) as u32
}

/// A sorted sequence of entries with distinct keys, accessed by ordinal. `&mut` because it caches what it
/// read last.
pub(crate) trait Run {
    /// The number of entries.
    fn len(&self) -> u32;
    /// Prefetches what reading an entry will touch: a hint.
    fn fetch(&self, _ordinal: u32) {}
    /// Prefetches what tells where entries are that are close to one: a hint, with which the next one waits less.
    fn fetch_place(&self, _ordinal: u32) {}
    /// Compares the key of an entry with `key`.
    fn compare(&mut self, ordinal: u32, key: &[u8]) -> Result<Ordering>;
    /// Replaces the content of `into` by the key of an entry.
    fn key_into(&mut self, ordinal: u32, into: &mut Vec<u8>) -> Result<()>;
    /// Whether an entry deletes its key.
    fn is_tombstone(&mut self, ordinal: u32) -> Result<bool>;
    /// Whether it has values that are in logs.
    fn has_large(&self) -> bool {
        false
    }
    /// Bytes of the value of an entry in a log, about; 0 if it is not in one.
    fn large_bytes(&mut self, _ordinal: u32) -> Result<u64> {
        Ok(0)
    }
}

/// The location of an entry, and its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunEntry {
    pub(crate) run: usize,
    /// The ordinal of the entry in the run.
    pub(crate) ordinal: u32,
    pub(crate) tombstone: bool,
}

/// The part of `bytes` that `part` of `all` things have, if all have the same. All of it if there are no things.
pub(crate) fn portion(bytes: u64, part: u64, all: u64) -> u64 {
    if all == 0 { bytes } else { (u128::from(bytes) * u128::from(part) / u128::from(all)) as u64 }
}

/// A sorted view over runs.
#[derive(Debug)]
#[cfg_attr(test, derive(PartialEq, Eq))]
pub(crate) struct Remix {
    /// The number of entries of each run, the oldest run first.
    runs: Vec<u32>,
    anchors: Anchors,
    body: Body,
    has_tags: bool,
    entries: u64,
    live: u64,
    /// Bytes of values in logs of older versions, about. `None` if no run has such values, or if it is from a file of
    /// an earlier build.
    dead_large: Option<u64>,
    /// What it counts for in the memory of the store.
    share: Share,
}

/// The place of the segments.
#[derive(Debug)]
enum Body {
    Memory(Arrays),
    File { segments: usize, file: Box<dyn Paged> },
}

/// The segments of a file.
trait Paged: fmt::Debug + Send + Sync {
    /// Reads a segment and its row, without the skip.
    ///
    /// # Errors
    /// `Io`; `Corrupt` if it does not fit runs with these entries.
    fn load(&self, at: usize, runs: &[u32]) -> Result<Loaded>;

    /// Reads the selectors of a segment, and nothing of the others in it.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    fn selectors(&self, at: usize) -> Result<Selectors>;

    /// Bytes of memory without cached pages.
    fn bytes(&self) -> usize;
}

/// Segments in memory.
#[derive(Debug)]
#[cfg_attr(test, derive(PartialEq, Eq))]
struct Arrays {
    /// For each segment its row.
    rows: Array<u32>,
    segments: Array<Segment>,
}

/// A number for each run: of the run's entries before a segment. After these the skip of the segment's heads.
type Row = [u32; RUNS_MAX + 1];

/// Room for a segment that is read from a file.
struct Loaded {
    segment: Segment,
    row: Row,
}

/// A segment and its row.
#[derive(Clone, Copy)]
struct View<'r> {
    segment: &'r Segment,
    row: &'r [u32],
}

impl<'r> View<'r> {
    /// The number of entries of each run before the segment.
    #[inline]
    fn ordinals(self) -> &'r [u32] {
        &self.row[..self.row.len() - 1]
    }

    /// The skip of the heads.
    #[inline]
    fn skip(self) -> usize {
        self.row[self.row.len() - 1] as usize
    }

    /// The entry at a place. REQUIRES: the place has one.
    #[inline]
    fn entry(self, slot: usize) -> RunEntry {
        let selectors = &self.segment.selectors;
        let run = usize::from(selectors[slot] & RUN);
        let ordinal = self.row[run] + before(selectors, slot);
        RunEntry { run, ordinal, tombstone: selectors[slot] & TOMBSTONE != 0 }
    }

    /// The first place of a key that is not less than the key that `compare` knows, and whether it is equal,
    /// among `within`, which begins and ends between keys. Compares one key more than the bisection has
    /// steps.
    #[inline]
    fn search(
        self,
        within: Range<usize>,
        mut compare: impl FnMut(RunEntry) -> Result<Ordering>,
    ) -> Result<(usize, bool)> {
        let selectors = &self.segment.selectors;
        let Range { start: mut low, end: mut high } = within;
        while low < high {
            let middle = low + (high - low) / 2;
            match compare(self.entry(middle))? {
                Ordering::Less => low = oldest(selectors, middle) + 1,
                Ordering::Equal => return Ok((newest(selectors, middle), true)),
                Ordering::Greater => high = newest(selectors, middle),
            }
        }
        Ok((low, false))
    }
}

impl Remix {
    /// The number of entries of each run, the oldest run first.
    pub(crate) fn runs(&self) -> &[u32] {
        &self.runs
    }

    /// The number of entries of all runs, older versions and tombstones included.
    pub(crate) fn entries(&self) -> u64 {
        self.entries
    }

    /// The number of keys whose newest version is not a tombstone.
    pub(crate) fn live(&self) -> u64 {
        self.live
    }

    /// Of `all` bytes of values in logs that its runs have, those of keys that are there, about.
    pub(crate) fn live_large(&self, all: u64) -> u64 {
        match self.dead_large {
            Some(dead) => all.saturating_sub(dead),
            None => portion(all, self.live, self.entries),
        }
    }

    /// Whether it has tags.
    pub(crate) fn has_tags(&self) -> bool {
        self.has_tags
    }

    /// The number of segments.
    pub(crate) fn segments(&self) -> usize {
        match &self.body {
            Body::Memory(Arrays { segments, .. }) => segments.len(),
            Body::File { segments, .. } => *segments,
        }
    }

    /// Keys that cut it into at most `pieces` pieces with about as many entries each.
    pub(crate) fn cuts(&self, pieces: usize) -> Vec<Vec<u8>> {
        let pieces = pieces.clamp(1, self.segments().max(1));
        // The first anchor is that of the second segment.
        let anchors = (1..pieces).map(|piece| piece * self.segments() / pieces - 1);
        anchors.map(|anchor| [self.anchors.prefix(), self.anchors.tail(anchor)].concat()).collect()
    }

    /// Bytes of memory. Pages of its file are the cache's.
    pub(crate) fn bytes(&self) -> usize {
        let body = match &self.body {
            Body::Memory(Arrays { rows, segments }) => rows.bytes() + segments.bytes(),
            Body::File { file, .. } => file.bytes(),
        };
        size_of::<Remix>() + size_of_val(&self.runs[..]) + self.anchors.bytes() + body
    }

    /// Its memory counts by `share` from now on.
    pub(crate) fn counted(mut self, share: Share) -> Remix {
        share.set(self.bytes());
        self.share = share;
        self
    }

    /// A segment, which is in memory or read into `room`. REQUIRES: it is there.
    #[inline(always)]
    fn view<'r>(&'r self, at: usize, room: &'r mut Option<Loaded>) -> Result<View<'r>> {
        match &self.body {
            Body::Memory(arrays) => Ok(arrays.view(at, self.runs.len())),
            Body::File { file, .. } => self.load(&**file, at, room),
        }
    }

    /// The selectors of a segment. REQUIRES: it is there.
    fn selectors(&self, at: usize) -> Result<Selectors> {
        match &self.body {
            Body::Memory(arrays) => Ok(arrays.segments[at].selectors),
            Body::File { file, .. } => file.selectors(at),
        }
    }

    #[cold]
    fn load<'r>(&self, file: &dyn Paged, at: usize, room: &'r mut Option<Loaded>) -> Result<View<'r>> {
        let loaded = room.insert(file.load(at, &self.runs)?);
        loaded.row[self.runs.len()] = self.anchors.skip(at) as u32;
        Ok(View { segment: &loaded.segment, row: &loaded.row[..=self.runs.len()] })
    }

    /// The newest version of a key. It may be a tombstone. `at` is the segment that [`find`](Remix::find)
    /// returned; `compare` compares the key of an entry with this key.
    #[inline]
    pub(crate) fn get(
        &self,
        at: usize,
        key: &[u8],
        mut compare: impl FnMut(RunEntry) -> Result<Ordering>,
    ) -> Result<Option<RunEntry>> {
        if at >= self.segments() {
            return Ok(None);
        }
        let mut room = None;
        let view = self.view(at, &mut room)?;
        let segment = view.segment;
        let head = head_behind(key, view.skip());
        if !self.has_tags {
            let (slot, found) = view.search(segment.equal(head), compare)?;
            return Ok(found.then(|| view.entry(slot)));
        }
        for slot in Matches::new(&segment.tags, tag(key)) {
            if segment.heads[slot] != head || segment.selectors[slot] & OLDER != 0 {
                continue;
            }
            let entry = view.entry(slot);
            match compare(entry)? {
                Ordering::Less => {}
                Ordering::Equal => return Ok(Some(entry)),
                // All later ones are greater too.
                Ordering::Greater => break,
            }
        }
        Ok(None)
    }

    /// The segment that a key belongs to, whose memory is being prefetched; 0 if there is none.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> usize {
        if self.segments() == 0 {
            return 0;
        }
        let at = self.anchors.find(key);
        if let Some(arrays) = self.arrays() {
            let View { segment, row } = arrays.view(at, self.runs.len());
            for line in [&segment.heads[0], &segment.heads[SEGMENT / 2], &row[0]] {
                prefetch::read(std::ptr::from_ref(line).cast());
            }
            prefetch::read(segment.tags.as_ptr());
        }
        at
    }

    /// Whether runs look like those that this REMIX was built from.
    fn belongs_to<R: Run>(&self, runs: &[R]) -> bool {
        runs.iter().map(Run::len).eq(self.runs.iter().copied())
    }

    /// The segments, if they are in memory.
    #[inline]
    fn arrays(&self) -> Option<&Arrays> {
        match &self.body {
            Body::Memory(arrays) => Some(arrays),
            Body::File { .. } => None,
        }
    }

    #[cfg(test)]
    fn arrays_mut(&mut self) -> &mut Arrays {
        match &mut self.body {
            Body::Memory(arrays) => arrays,
            Body::File { .. } => panic!("it is not in memory"),
        }
    }
}

impl Arrays {
    #[inline(always)]
    fn view(&self, at: usize, runs: usize) -> View<'_> {
        View { segment: &self.segments[at], row: &self.rows[at * (runs + 1)..][..=runs] }
    }
}

#[cfg(test)]
impl PartialEq for Body {
    fn eq(&self, other: &Body) -> bool {
        match (self, other) {
            (Body::Memory(one), Body::Memory(other)) => one == other,
            _ => false,
        }
    }
}

#[cfg(test)]
impl Eq for Body {}

/// The tag of a key.
#[inline]
fn tag(key: &[u8]) -> u8 {
    forrest_base::tag(xxh3_64(key), u8::BITS) as u8
}

/// The number of places before `slot` that select the same run.
///
/// This is the cost of a step. Eight bytes are processed together, in words: the compiler would unroll a loop
/// over bytes before it vectorizes it, and then compare the bytes one by one.
#[inline]
fn before(selectors: &Selectors, slot: usize) -> u32 {
    let run = u64::from(selectors[slot] & RUN) * ONES;
    count(selectors, slot, |word, before| zeros((word ^ run) & (u64::from(RUN) * ONES)) & before) as u32
}

/// The number of places from `slot` on whose selectors have none of the bits of `hidden`.
#[inline]
fn visible(selectors: &Selectors, slot: usize, hidden: u8) -> usize {
    let hidden = u64::from(hidden & !RESERVED) * ONES;
    count(selectors, slot, |word, before| zeros(word & hidden) & !before)
}

/// The sum of the bytes that `of` makes of the selectors, eight by eight. Its second argument has ones before
/// `slot` and zeros from there on. REQUIRES: the bytes are 0 or 1.
#[inline]
fn count(selectors: &Selectors, slot: usize, of: impl Fn(u64, u64) -> u64) -> usize {
    let before = &BEFORE[SEGMENT - slot..][..SEGMENT];
    let words = selectors.as_chunks().0.iter().zip(before.as_chunks().0);
    let sums: u64 =
        words.map(|(word, before)| of(u64::from_le_bytes(*word), u64::from_le_bytes(*before))).sum();
    // Each byte is at most 4. The product's top byte is the sum of all.
    (sums.wrapping_mul(ONES) >> 56) as usize
}

/// One in each byte of a word.
const ONES: u64 = 0x0101_0101_0101_0101;

/// From place 32 - n on: n ones and then zeros.
static BEFORE: [u8; 2 * SEGMENT] = {
    let mut ones = [0; 2 * SEGMENT];
    let mut at = 0;
    while at < SEGMENT {
        ones[at] = 1;
        at += 1;
    }
    ones
};

/// One for each byte that is 0. REQUIRES: no byte is above 0x7F, so that none borrows from the next.
#[inline]
fn zeros(word: u64) -> u64 {
    (0x80 * ONES - word) >> 7 & ONES
}

/// The number of places up to the last one with an entry. Later places have none.
#[inline]
fn used(selectors: &Selectors) -> usize {
    selectors.iter().rposition(|&selector| selector != FILLER).map_or(0, |last| last + 1)
}

/// The place of the newest version of the key at `slot`.
#[inline]
fn newest(selectors: &Selectors, mut slot: usize) -> usize {
    while selectors[slot] & OLDER != 0 {
        slot -= 1;
    }
    slot
}

/// The place of the oldest version of the key at `slot`.
#[inline]
fn oldest(selectors: &Selectors, mut slot: usize) -> usize {
    while slot + 1 < SEGMENT && selectors[slot + 1] & OLDER != 0 && selectors[slot + 1] != FILLER {
        slot += 1;
    }
    slot
}

/// The places of a segment that have a tag, in order. Eight are compared together, in a word.
struct Matches<'a> {
    tags: &'a Tags,
    tag: u64,
    /// The place of the first bit of `bits`.
    base: usize,
    /// The top bit of each byte that matches and was not returned yet.
    bits: u64,
}

impl<'a> Matches<'a> {
    fn new(tags: &'a Tags, tag: u8) -> Matches<'a> {
        let mut matches = Matches { tags, tag: u64::from(tag) * ONES, base: 0, bits: 0 };
        matches.bits = matches.look();
        matches
    }

    /// The top bit of each of the eight bytes at `base` that equals the tag. No carry crosses a byte, so a
    /// neighbour cannot cause a false match.
    #[inline]
    fn look(&self) -> u64 {
        const LOW: u64 = 0x7F * ONES;
        let bytes = self.tags[self.base..].first_chunk().expect("a segment is a multiple of eight");
        let differ = u64::from_le_bytes(*bytes) ^ self.tag;
        !(((differ & LOW) + LOW) | differ | LOW)
    }
}

impl Iterator for Matches<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.bits == 0 {
            if self.base + 8 == SEGMENT {
                return None;
            }
            self.base += 8;
            self.bits = self.look();
        }
        let slot = self.base + self.bits.trailing_zeros() as usize / 8;
        self.bits &= self.bits - 1;
        Some(slot)
    }
}

//! [`Ranges`]: the range deletes of a memtable in one keyspace, as fragments that do not overlap.
//!
//! A fragment is a range of keys, and the sequence numbers at which all of it was deleted, the newest first. A reader
//! at a sequence number asks for the newest delete up to it ([`Ranges::deleted`]): what is older does not count for it.
//! Of the older deletes those stay that a reader may want ([`Wanted`]).
//!
//! Ranges never change. A change makes new ones, which share most of their memory with the old ones.

use crate::sync::weakened;
use crate::wanted::Wanted;
use forrest_engine::Direction;
use forrest_engine::spans::Spans;
use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

/// A memtable with this many fragments is full.
pub(crate) const FRAGMENTS_MOST: usize = 4096;
/// It takes as many while there is no space for a new log.
pub(crate) const FRAGMENTS_ANYHOW: usize = 4 * FRAGMENTS_MOST;

/// A key at which a range begins or ends.
type Edge = Arc<[u8]>;

/// A range of keys, up to but not including its end; without an end if that is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) start: Edge,
    pub(crate) end: Option<Edge>,
}

/// The order of two ends of ranges.
fn by_end(a: Option<&[u8]>, b: Option<&[u8]>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => a.cmp(b),
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
    }
}

impl Range {
    fn new(start: &[u8], end: Option<&[u8]>) -> Range {
        Range { start: start.into(), end: end.map(Arc::from) }
    }

    fn ends_after(&self, key: &[u8]) -> bool {
        self.end.as_deref().is_none_or(|end| key < end)
    }

    fn has(&self, key: &[u8]) -> bool {
        *self.start <= *key && self.ends_after(key)
    }

    /// Where a scan goes on that leaves the range; `None` if there are no more keys.
    fn beyond(&self, direction: Direction) -> Option<Bound<&[u8]>> {
        match direction {
            Direction::Forward => self.end.as_deref().map(Bound::Included),
            Direction::Backward => (!self.start.is_empty()).then_some(Bound::Excluded(&self.start)),
        }
    }
}

/// A range of keys, and when it was deleted.
#[derive(Debug, PartialEq, Eq)]
struct Fragment {
    range: Range,
    /// Sequence numbers, the newest first. There is at least one.
    deletes: Vec<u64>,
}

impl Fragment {
    /// Whether a reader at a sequence number counts one of its deletes.
    fn is_seen(&self, read_at: u64) -> bool {
        self.deletes.iter().any(|delete| *delete <= read_at)
    }

    /// Bytes of memory, about.
    fn bytes(&self) -> usize {
        self.range.start.len() + self.range.end.as_ref().map_or(0, |end| end.len()) + FRAGMENT_BYTES
    }
}

/// See the head of the file. The fragments are in chunks, so that a change copies one chunk and shares the others.
#[derive(Debug, Default)]
pub(crate) struct Ranges {
    /// None is empty.
    chunks: Vec<Arc<Vec<Arc<Fragment>>>>,
    len: usize,
    bytes: usize,
}

/// Maximum number of fragments in a chunk.
const CHUNK: usize = 64;

/// Fragments of one result, in order.
#[derive(Default)]
struct Made(Vec<Arc<Fragment>>);

impl Made {
    fn add(&mut self, start: Edge, end: Option<Edge>, deletes: Vec<u64>) {
        self.push(Arc::new(Fragment { range: Range { start, end }, deletes }));
    }

    /// Adds a fragment after all others. It becomes one with the last if both meet, and were deleted together.
    fn push(&mut self, fragment: Arc<Fragment>) {
        match self.0.last_mut() {
            Some(last)
                if last.range.end.as_ref() == Some(&fragment.range.start)
                    && last.deletes == fragment.deletes =>
            {
                let range = Range { start: last.range.start.clone(), end: fragment.range.end.clone() };
                *last = Arc::new(Fragment { range, deletes: fragment.deletes.clone() });
            }
            _ => self.0.push(fragment),
        }
    }
}

impl Ranges {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of memory, about.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The same after all keys of some ranges were deleted at a sequence number greater than all before.
    pub(crate) fn with(&self, deleted: &Spans, sequence: u64, wanted: &Wanted<'_>) -> Ranges {
        let (Some((first, _)), Some((_, last))) = (deleted.iter().next(), deleted.last_before(None)) else {
            return Ranges { chunks: self.chunks.clone(), ..*self };
        };
        // Those that change, with the ones beside them, which may become one with a new fragment.
        let is_before = |chunk: &Arc<Vec<Arc<Fragment>>>| {
            let end = chunk.last().and_then(|one| one.range.end.as_deref());
            end.is_some_and(|end| end < first)
        };
        let is_met = |chunk: &Arc<Vec<Arc<Fragment>>>| {
            last.is_none_or(|last| chunk.first().is_some_and(|one| *one.range.start <= *last))
        };
        let mut from = self.chunks.partition_point(is_before);
        let to = from + self.chunks[from..].partition_point(is_met);
        if from == to && from > 0 {
            // Between two chunks: into the one before.
            from -= 1;
        }
        let (before, rest) = self.chunks.split_at(from);
        let (changed, after) = rest.split_at(to - from);
        let old = changed.iter().flat_map(|chunk| chunk.iter().cloned());
        let made = merged(old, deleted, sequence, wanted).0;
        let pieces = made.len().div_ceil(CHUNK);
        let made = made.chunks(made.len().div_ceil(pieces.max(1)).max(1)).map(|made| Arc::new(made.to_vec()));
        let chunks: Vec<_> = before.iter().cloned().chain(made).chain(after.iter().cloned()).collect();
        let count = |chunks: &[Arc<Vec<Arc<Fragment>>>]| -> (usize, usize) {
            let all = chunks.iter().flat_map(|chunk| chunk.iter());
            all.fold((0, 0), |(len, bytes), one| (len + 1, bytes + one.bytes()))
        };
        let (gone, new) = (count(changed), count(&chunks[from..chunks.len() - after.len()]));
        Ranges { chunks, len: self.len - gone.0 + new.0, bytes: self.bytes - gone.1 + new.1 }
    }

    /// The fragments from the one on that has a key or comes after it.
    fn from(&self, key: &[u8]) -> impl Iterator<Item = &Fragment> {
        let is_before = |one: &Arc<Fragment>| !one.range.ends_after(key);
        let at = self.chunks.partition_point(|chunk| chunk.last().is_some_and(is_before));
        let within = self.chunks.get(at).map_or(0, |chunk| chunk.partition_point(is_before));
        self.chunks[at..].iter().flat_map(|chunk| chunk.iter()).skip(within).map(|one| &**one)
    }

    /// The newest delete of a key up to a sequence number.
    pub(crate) fn deleted(&self, key: &[u8], read_at: u64) -> Option<(u64, &Range)> {
        let Fragment { range, deletes } = self.from(key).next().filter(|one| one.range.has(key))?;
        let newest = deletes.iter().find(|delete| **delete <= read_at)?;
        Some((*newest, range))
    }

    /// Whether a version with this sequence number is hidden from a reader: its key was deleted later.
    pub(crate) fn hides(&self, key: &[u8], sequence: u64, read_at: u64) -> bool {
        self.deleted(key, read_at).is_some_and(|(deleted, _)| deleted > sequence)
    }

    /// Whether all keys of a range are deleted, by deletes up to a sequence number.
    pub(crate) fn has_all(&self, start: &[u8], end: Option<&[u8]>, read_at: u64) -> bool {
        let mut at = start;
        for one in self.from(start) {
            let range = &one.range;
            match &range.end {
                _ if *range.start > *at || !one.is_seen(read_at) => return false,
                None => return true,
                Some(to) if end.is_some_and(|end| *end <= **to) => return true,
                Some(to) => at = to,
            }
        }
        false
    }

    /// Where a scan goes on that comes to a deleted key: after all deleted ranges that touch. `None` if the key is not
    /// deleted; `Some(None)` if there are no more keys.
    pub(crate) fn beyond(
        &self,
        key: &[u8],
        read_at: u64,
        direction: Direction,
    ) -> Option<Option<Bound<&[u8]>>> {
        let (_, mut range) = self.deleted(key, read_at)?;
        if direction == Direction::Forward {
            for next in self.from(key).skip(1) {
                if range.end.as_deref() != Some(&*next.range.start) || !next.is_seen(read_at) {
                    break;
                }
                range = &next.range;
            }
        }
        Some(range.beyond(direction))
    }

    /// Whether keys from `from` on that are inside of a range are deleted, or could be. All deletes count.
    pub(crate) fn meets(&self, from: &[u8], is_inside: impl Fn(&[u8]) -> bool) -> bool {
        self.from(from).next().is_some_and(|one| is_inside(&one.range.start))
    }

    /// The ranges with deletes up to a sequence number, in order.
    pub(crate) fn up_to(&self, read_at: u64) -> impl Iterator<Item = &Range> {
        self.from(b"").filter(move |one| one.is_seen(read_at)).map(|one| &one.range)
    }

    /// The parts of the ranges from `start` up to `end`, in order.
    pub(crate) fn within<'r>(
        &'r self,
        start: &'r [u8],
        end: Option<&'r [u8]>,
    ) -> impl Iterator<Item = (&'r [u8], Option<&'r [u8]>)> {
        self.seen_within(start, end, u64::MAX)
    }

    /// The same of the ranges with deletes up to a sequence number.
    pub(crate) fn seen_within<'r>(
        &'r self,
        start: &'r [u8],
        end: Option<&'r [u8]>,
        read_at: u64,
    ) -> impl Iterator<Item = (&'r [u8], Option<&'r [u8]>)> {
        let is_before = move |one: &&Fragment| end.is_none_or(|end| *one.range.start < *end);
        let seen = self.from(start).take_while(is_before).filter(move |one| one.is_seen(read_at));
        seen.map(move |one| {
            let Range { start: from, end: to } = &one.range;
            let (to, from) = (to.as_deref(), if **from > *start { &**from } else { start });
            (from, if by_end(to, end).is_gt() { end } else { to })
        })
    }
}

/// Old fragments, after all keys of some ranges were deleted.
fn merged(
    old: impl Iterator<Item = Arc<Fragment>>,
    deleted: &Spans,
    sequence: u64,
    wanted: &Wanted<'_>,
) -> Made {
    let (mut out, mut old) = (Made::default(), old.peekable());
    // What is left of an old fragment that a new range has cut.
    let mut rest: Option<Arc<Fragment>> = None;
    for (start, end) in deleted.iter() {
        let range = Range::new(start, end);
        let mut start = range.start.clone();
        loop {
            let is_before =
                |one: &Arc<Fragment>| range.end.as_deref().is_none_or(|end| *one.range.start < *end);
            let Some(one) = rest.take().or_else(|| old.next_if(is_before)) else { break };
            if !is_before(&one) {
                rest = Some(one);
                break;
            }
            // Before the new range, then between the last old one and this one, then both.
            let Fragment { range: Range { start: from, end: to }, deletes } = &*one;
            if to.as_deref().is_some_and(|to| *to <= *start) {
                out.push(one);
                continue;
            }
            if **from < *start {
                out.add(from.clone(), Some(start.clone()), deletes.clone());
            } else if *start < **from {
                out.add(start, Some(from.clone()), vec![sequence]);
                start = from.clone();
            }
            let is_longer = by_end(to.as_deref(), range.end.as_deref()).is_gt();
            let end = if is_longer { range.end.clone() } else { to.clone() };
            out.add(start.clone(), end.clone(), newer(sequence, deletes, wanted));
            if is_longer {
                let start = range.end.clone().expect("the other one is longer");
                let range = Range { start: start.clone(), end: to.clone() };
                rest = Some(Arc::new(Fragment { range, deletes: deletes.clone() }));
            }
            // Nothing is left of the new range if this one goes as far.
            match end {
                Some(end) => start = end,
                None => return out,
            }
        }
        if range.ends_after(&start) {
            out.add(start, range.end.clone(), vec![sequence]);
        }
    }
    rest.into_iter().chain(old).for_each(|one| out.push(one));
    out
}

/// Bytes of a fragment beside its two keys, about.
pub(crate) const FRAGMENT_BYTES: usize = 128;

/// The deletes of a fragment after one more.
fn newer(sequence: u64, old: &[u64], wanted: &Wanted<'_>) -> Vec<u64> {
    let mut deletes = vec![sequence];
    let mut newer = sequence;
    for &delete in old {
        if wanted.has(delete, newer) && !weakened!("keeps_no_older") {
            deletes.push(delete);
        }
        newer = delete;
    }
    deletes
}

#[cfg(test)]
mod tests {
    use super::*;
    use forrest_base::random::Random;
    use forrest_engine::spans::is_empty;
    use std::collections::BTreeMap;

    const KEYS: u64 = 12;

    fn random_range(random: &mut Random) -> Option<Range> {
        let start = [random.below(KEYS) as u8];
        let end = (random.below(4) > 0).then(|| [random.below(KEYS) as u8]);
        let (start, end) =
            (if random.below(6) == 0 { &b""[..] } else { &start }, end.as_ref().map(|end| &end[..]));
        (!is_empty(start, end)).then(|| Range::new(start, end))
    }

    /// The fragments are in order, and counted.
    fn check(ranges: &Ranges) {
        let all: Vec<_> = ranges.from(b"").collect();
        let ordered =
            |pair: &[&Fragment]| pair[0].range.end.as_deref().is_some_and(|end| *end <= *pair[1].range.start);
        assert!(all.windows(2).all(ordered), "{ranges:?}");
        assert_eq!((all.len(), all.iter().map(|one| one.bytes()).sum()), (ranges.len, ranges.bytes));
        assert!(ranges.chunks.iter().all(|chunk| (1..=CHUNK).contains(&chunk.len())), "{ranges:?}");
    }

    /// Compared with a list of all deletes, with enough fragments for many chunks.
    #[test]
    fn many_fragments_are_in_chunks() {
        for seed in 0..20 {
            let (mut random, nobody) = (Random(seed), BTreeMap::new());
            let (mut ranges, mut all) = (Ranges::default(), Vec::new());
            for sequence in 1..600 {
                let start = random.below(3_000) as u16;
                let len = if random.below(50) == 0 { 900 } else { 1 + random.below(3) as u16 };
                let [start, end] = [start, start + len].map(u16::to_be_bytes);
                let mut deleted = Spans::default();
                deleted.insert(start.to_vec(), Some(end.to_vec()));
                ranges = ranges.with(&deleted, sequence, &Wanted { visible: sequence, snapshots: &nobody });
                all.push((sequence, start, end));
                check(&ranges);
            }
            assert!(ranges.chunks.len() > 1);
            for key in (0..4_000_u16).map(u16::to_be_bytes) {
                let newest =
                    all.iter().filter(|(_, start, end)| *start <= key && key < *end).map(|one| one.0).max();
                assert_eq!(ranges.deleted(&key, u64::MAX).map(|(at, _)| at), newest, "seed {seed}");
            }
        }
    }

    fn has(range: &Range, key: u8) -> bool {
        *range.start <= [key][..] && range.end.as_deref().is_none_or(|end| [key][..] < *end)
    }

    /// Compared with a list of all deletes, at each sequence number that somebody reads at.
    #[test]
    fn each_reader_finds_its_newest_delete() {
        for seed in 0..3_000 {
            let mut random = Random(seed);
            let (mut ranges, mut all): (Ranges, Vec<(u64, Range)>) = Default::default();
            let mut snapshots = BTreeMap::new();
            for sequence in 1..2 + random.below(10) {
                let mut deleted = Spans::default();
                for _ in 0..1 + random.below(3) {
                    let Some(range) = random_range(&mut random) else { continue };
                    deleted.insert(range.start.to_vec(), range.end.as_deref().map(<[u8]>::to_vec));
                    all.push((sequence, range));
                }
                ranges =
                    ranges.with(&deleted, sequence, &Wanted { visible: sequence, snapshots: &snapshots });
                check(&ranges);
                if random.below(3) == 0 {
                    snapshots.insert(sequence, 1);
                }
                for read_at in snapshots.keys().copied().chain([sequence]) {
                    for key in 0..=KEYS as u8 {
                        let newest = all.iter().filter(|(at, range)| *at <= read_at && has(range, key));
                        let newest = newest.map(|(at, _)| *at).max();
                        let found = ranges.deleted(&[key], read_at);
                        assert_eq!(
                            found.map(|(at, _)| at),
                            newest,
                            "seed {seed}, key {key} at {read_at}: {ranges:?}"
                        );
                        assert!(found.is_none_or(|(_, range)| has(range, key)));
                    }
                }
            }
            let (start, end) = ([random.below(KEYS) as u8], [random.below(KEYS) as u8]);
            let is_deleted = |key: u8| all.iter().any(|(_, range)| has(range, key));
            if start < end {
                let is_all = (start[0]..end[0]).all(is_deleted);
                assert!(!ranges.has_all(&start, Some(&end), u64::MAX) || is_all, "seed {seed}");
                let within: Vec<_> = ranges.within(&start, Some(&end)).collect();
                for key in 0..=KEYS as u8 {
                    let is_in = within
                        .iter()
                        .any(|(from, to)| **from <= [key][..] && to.is_none_or(|to| [key][..] < *to));
                    assert_eq!(is_in, (start[0]..end[0]).contains(&key) && is_deleted(key), "seed {seed}");
                }
                let meets = ranges.meets(&start, |key| *key <= end[..]);
                assert!(meets || !(start[0]..=end[0]).any(is_deleted), "seed {seed}");
            }
        }
    }

    #[test]
    fn ranges_that_grow_from_one_end_stay_few() {
        let (mut ranges, nobody) = (Ranges::default(), BTreeMap::new());
        for sequence in 1..500_u64 {
            let end = sequence.to_be_bytes();
            let mut deleted = Spans::default();
            deleted.insert(Vec::new(), Some(end.to_vec()));
            ranges = ranges.with(&deleted, sequence, &Wanted { visible: sequence, snapshots: &nobody });
            assert_eq!(ranges.len(), 1);
        }
        assert!(ranges.has_all(b"", Some(&499_u64.to_be_bytes()), 499));
        assert!(!ranges.has_all(b"", Some(&499_u64.to_be_bytes()), 498));
    }
}

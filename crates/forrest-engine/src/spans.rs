//! [`Spans`]: a set of keys as disjoint ranges. Half-open: each has a start, and an end that is not in it or is `None`.

use std::collections::BTreeMap;
use std::ops::Bound;

/// From a key up to but not including another, or without an end.
pub type Span = (Vec<u8>, Option<Vec<u8>>);

/// True if there can be no key from `start` on and before `end`.
pub fn is_empty(start: &[u8], end: Option<&[u8]>) -> bool {
    end.is_some_and(|end| end <= start)
}

/// The smaller of two ends.
pub fn earlier<'k>(a: Option<&'k [u8]>, b: Option<&'k [u8]>) -> Option<&'k [u8]> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (end, None) | (None, end) => end,
    }
}

/// The bounds of a span. REQUIRES: it is not empty.
pub fn bounds<'k>(start: &'k [u8], end: Option<&'k [u8]>) -> (Bound<&'k [u8]>, Bound<&'k [u8]>) {
    (Bound::Included(start), end.map_or(Bound::Unbounded, Bound::Excluded))
}

/// A set of keys, see the head of the module. INVARIANT: its ranges are not empty, and do not overlap or touch.
#[derive(Debug, Default)]
pub struct Spans {
    spans: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    bytes: usize,
}

fn bytes_of(start: &[u8], end: Option<&[u8]>) -> usize {
    start.len() + end.map_or(0, <[u8]>::len)
}

impl Spans {
    /// The number of ranges, and the bytes of their ends.
    pub fn cost(&self) -> (usize, usize) {
        (self.spans.len(), self.bytes)
    }

    /// True if no key is in it.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The ranges in order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        self.spans.iter().map(|(start, end)| (&start[..], end.as_deref()))
    }

    /// The end of the range that has `key`; `Some(None)` is a range without an end.
    pub fn end_at(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        if self.spans.is_empty() {
            return None;
        }
        let (_, end) = self.spans.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back()?;
        end.as_deref().is_none_or(|end| end > key).then_some(end.as_deref())
    }

    /// Whether a key is in it.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.end_at(key).is_some()
    }

    /// Whether all keys of a range are in it. REQUIRES: the range is not empty.
    pub fn contains_all(&self, start: &[u8], end: Option<&[u8]>) -> bool {
        let is_before = |last: &[u8]| end.is_some_and(|end| end <= last);
        self.end_at(start).is_some_and(|last| last.is_none_or(is_before))
    }

    /// The start of the first range after `key`.
    pub fn start_after(&self, key: &[u8]) -> Option<&[u8]> {
        let after = self.spans.range::<[u8], _>((Bound::Excluded(key), Bound::Unbounded)).next();
        after.map(|(start, _)| &start[..])
    }

    /// The last range that starts before `end`.
    pub fn last_before(&self, end: Option<&[u8]>) -> Option<(&[u8], Option<&[u8]>)> {
        let below = (Bound::Unbounded, end.map_or(Bound::Unbounded, Bound::Excluded));
        let (start, end) = self.spans.range::<[u8], _>(below).next_back()?;
        Some((start, end.as_deref()))
    }

    /// Adds a range, which unites with those that it overlaps or touches. Returns the start of the united range, and
    /// the ranges that were there.
    pub fn insert(&mut self, mut start: Vec<u8>, mut end: Option<Vec<u8>>) -> (Vec<u8>, Vec<Span>) {
        let mut before = Vec::new();
        while let Some((first, last)) = self.last_touching(&start, end.as_deref()) {
            let (first, last) = (first.to_vec(), last.map(<[u8]>::to_vec));
            self.remove(&first);
            if first < start {
                start.clone_from(&first);
            }
            end = match (end, &last) {
                (Some(end), Some(last)) => Some(end.max(last.clone())),
                _ => None,
            };
            before.push((first, last));
        }
        self.put(start.clone(), end);
        (start, before)
    }

    fn last_touching(&self, start: &[u8], end: Option<&[u8]>) -> Option<(&[u8], Option<&[u8]>)> {
        let through = (Bound::Unbounded, end.map_or(Bound::Unbounded, Bound::Included));
        let (first, last) = self.spans.range::<[u8], _>(through).next_back()?;
        last.as_deref().is_none_or(|last| last >= start).then_some((first, last.as_deref()))
    }

    fn put(&mut self, start: Vec<u8>, end: Option<Vec<u8>>) {
        self.bytes += bytes_of(&start, end.as_deref());
        self.spans.insert(start, end);
    }

    fn remove(&mut self, start: &[u8]) {
        if let Some(end) = self.spans.remove(start) {
            self.bytes -= bytes_of(start, end.as_deref());
        }
    }

    /// Takes back an [`insert`](Spans::insert), of which this is the result. REQUIRES: nothing was added since, or it
    /// was taken back.
    pub fn undo(&mut self, united: &[u8], before: Vec<Span>) {
        self.remove(united);
        before.into_iter().for_each(|(start, end)| self.put(start, end));
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        *self = Spans::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forrest_base::random::Random;

    fn key(number: usize) -> Vec<u8> {
        vec![number as u8]
    }

    #[test]
    fn it_is_a_set_of_keys() {
        for seed in 0..300 {
            let mut random = Random(seed);
            let (mut spans, mut set) = (Spans::default(), [false; 20]);
            let mut undo: Vec<(Vec<u8>, Vec<Span>, [bool; 20])> = Vec::new();
            for _ in 0..30 {
                if random.index(4) == 0
                    && let Some((united, before, old)) = undo.pop()
                {
                    spans.undo(&united, before);
                    set = old;
                } else {
                    let (start, end) = (random.index(19), random.index(25));
                    if end > start {
                        let (united, before) = spans.insert(key(start), (end < 20).then(|| key(end)));
                        undo.push((united, before, set));
                        set[start..end.min(20)].fill(true);
                    }
                }
                for (at, &is_in) in set.iter().enumerate() {
                    assert_eq!(spans.contains(&key(at)), is_in, "seed {seed}, key {at}");
                }
                let starts = (1..20).filter(|&at| set[at] && !set[at - 1]).count() + usize::from(set[0]);
                assert_eq!(spans.cost().0, starts, "seed {seed}: neighbours unite");
                let bytes: usize = spans.iter().map(|(start, end)| bytes_of(start, end)).sum();
                assert_eq!(spans.cost().1, bytes, "seed {seed}");
            }
        }
    }

    /// Also with the empty key, and with keys between those of the model.
    #[test]
    fn a_range_is_in_it_when_it_was_added() {
        const KEYS: usize = 12;
        let random_range = |random: &mut Random| {
            let start = if random.index(6) == 0 { Vec::new() } else { key(random.index(KEYS)) };
            let end = (random.index(4) > 0).then(|| key(random.index(KEYS)));
            (!is_empty(&start, end.as_deref())).then_some((start, end))
        };
        let has =
            |(start, end): &Span, key: &Vec<u8>| start <= key && end.as_ref().is_none_or(|end| key < end);
        for seed in 0..2_000 {
            let mut random = Random(seed);
            let (mut spans, mut model) = (Spans::default(), [false; KEYS + 1]);
            for _ in 0..random.index(8) {
                let Some(range) = random_range(&mut random) else { continue };
                (0..=KEYS).filter(|at| has(&range, &key(*at))).for_each(|at| model[at] = true);
                spans.insert(range.0, range.1);
            }
            for (at, &is_in) in model.iter().enumerate() {
                assert_eq!(spans.contains(&key(at)), is_in, "seed {seed}, key {at}");
            }
            let Some(range) = random_range(&mut random) else { continue };
            let all = (0..=KEYS).filter(|at| has(&range, &key(*at))).all(|at| model[at]);
            let (start, end) = (&range.0[..], range.1.as_deref());
            // Between two keys there may be others.
            assert!(!spans.contains_all(start, end) || all, "seed {seed}");
            spans.insert(start.to_vec(), end.map(<[u8]>::to_vec));
            assert!(spans.contains_all(start, end), "seed {seed}");
            let (starts, ends) = (spans.spans.keys().skip(1), spans.spans.values());
            assert!(
                starts.zip(ends).all(|(next, end)| end.as_ref().is_some_and(|end| end < next)),
                "seed {seed}"
            );
        }
    }
}

//! [`Anchors`]: finds the segment that a key belongs to.
//!
//! An anchor is the shortest prefix of a segment's first key that is greater than the last key of the
//! previous segment. The first segment has none: keys below all anchors belong to it. So anchors ascend
//! strictly, and the segment of a key is the number of anchors that are not greater than it.
//!
//! The common prefix of all anchors is stored once. What is after it is searched as [`Separators`] of segments.

use crate::key::common_prefix;
use crate::room;
use crate::separators::Separators;
use forrest_engine::{Error, Result};
use forrest_machine::pages::Array;

/// The anchors of a REMIX: of all its segments except the first.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Anchors {
    /// The common prefix of all anchors.
    prefix: Vec<u8>,
    /// The end of each anchor's tail in `tails`. A tail is the part after the prefix.
    ends: Array<u32>,
    tails: Array<u8>,
    tree: Separators,
}

/// The tail of an anchor, from the fields of [`Anchors`].
#[inline]
fn tail<'t>(ends: &[u32], tails: &'t [u8], at: usize) -> &'t [u8] {
    let start = at.checked_sub(1).map_or(0, |before| ends[before] as usize);
    &tails[start..ends[at] as usize]
}

/// Collects whole anchors in ascending order.
#[derive(Default)]
pub(super) struct Collector {
    ends: Array<u32>,
    bytes: Array<u8>,
}

impl Collector {
    /// Adds an anchor, given in two pieces.
    pub(super) fn push(&mut self, front: &[u8], back: &[u8]) -> Result<()> {
        room::extend(&mut self.bytes, front)?;
        room::extend(&mut self.bytes, back)?;
        let end = u32::try_from(self.bytes.len())
            .map_err(|_| Error::limit("all anchors", "bytes", self.bytes.len(), u32::MAX as usize))?;
        room::extend(&mut self.ends, &[end])
    }

    /// Length of the common prefix of the last two anchors; 0 if there are no two.
    pub(super) fn shared(&self) -> usize {
        let [.., before, last] = self.ends[..] else { return 0 };
        let start = self.ends.iter().nth_back(2).map_or(0, |&end| end as usize);
        let (before, last) = (before as usize, last as usize);
        common_prefix(&self.bytes[start..before], &self.bytes[before..last])
    }

    pub(super) fn finish(self) -> Result<Anchors> {
        let Collector { mut ends, bytes } = self;
        let (Some(&first), Some(&last)) = (ends.first(), ends.last()) else {
            return Anchors::new(Vec::new(), Array::new(), Array::new());
        };
        let before_last = ends.len().checked_sub(2).map_or(0, |at| ends[at]);
        let first = &bytes[..first as usize];
        // A prefix that the least and the greatest anchor share is shared by all between them.
        let shared = common_prefix(first, &bytes[before_last as usize..last as usize]);
        let prefix = first[..shared].to_vec();
        let mut tails = room::array(bytes.len() - shared * ends.len())?;
        let mut start = 0;
        for end in ends.iter_mut() {
            room::extend(&mut tails, &bytes[start + shared..*end as usize])?;
            start = *end as usize;
            *end = tails.len() as u32;
        }
        Anchors::new(prefix, ends, tails)
    }
}

impl Anchors {
    /// Anchors in their stored form. REQUIRES: `ends` ascend and the last is the length of `tails`.
    pub(super) fn new(prefix: Vec<u8>, ends: Array<u32>, tails: Array<u8>) -> Result<Anchors> {
        assert_eq!(
            ends.last().map_or(0, |&end| end as usize),
            tails.len(),
            "the last tail ends with the bytes"
        );
        let tree = Separators::new(ends.len() + 1, |segment| tail(&ends, &tails, segment - 1))?;
        Ok(Anchors { prefix, ends, tails, tree })
    }

    /// The number of anchors.
    #[cfg_attr(not(test), expect(dead_code, reason = "for tests"))]
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    pub(super) fn ends(&self) -> &[u32] {
        &self.ends
    }

    pub(super) fn tails(&self) -> &[u8] {
        &self.tails
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        self.prefix.len() + self.ends.bytes() + self.tails.bytes() + self.tree.bytes()
    }

    /// The anchor of segment `at + 1` without the prefix.
    pub(super) fn tail(&self, at: usize) -> &[u8] {
        tail(&self.ends, &self.tails, at)
    }

    /// Length of the prefix that every key of a segment has because its anchor and the next one share it.
    pub(super) fn skip(&self, segment: usize) -> usize {
        if segment == 0 || segment >= self.ends.len() {
            return 0;
        }
        self.prefix.len() + common_prefix(self.tail(segment - 1), self.tail(segment))
    }

    /// The segment that a key belongs to.
    #[inline]
    pub(super) fn find(&self, key: &[u8]) -> usize {
        self.tree.find(key, &self.prefix, |segment| self.tail(segment - 1))
    }

    /// Whether a key belongs to a segment or to an earlier one.
    pub(super) fn within(&self, segment: usize, key: &[u8]) -> bool {
        if segment >= self.ends.len() {
            return true;
        }
        match key.strip_prefix(&self.prefix[..]) {
            Some(tail) => tail < self.tail(segment),
            None => key < &self.prefix[..],
        }
    }

    /// Whether all keys of a segment are less than a key, or greater if not `less`. `inside` is one of them.
    #[inline]
    pub(super) fn are_beside(&self, segment: usize, key: &[u8], inside: &[u8], less: bool) -> bool {
        self.tree.are_beside(segment, key, (inside, less), &self.prefix, |segment| self.tail(segment - 1))
    }

    /// The first anchor that is not greater than the previous one, if any.
    pub(super) fn disorder(&self) -> Option<usize> {
        (1..self.ends.len()).find(|&at| self.tail(at - 1) >= self.tail(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anchors(of: &[&[u8]]) -> Anchors {
        let mut collector = Collector::default();
        for (at, anchor) in of.iter().enumerate() {
            let (front, back) = anchor.split_at(at % (anchor.len() + 1));
            collector.push(front, back).unwrap();
        }
        collector.finish().unwrap()
    }

    fn check(of: &[&[u8]], keys: &[&[u8]]) {
        let anchors = anchors(of);
        assert_eq!(anchors.disorder(), None);
        for key in keys.iter().chain(of) {
            let expected = of.iter().filter(|anchor| anchor <= &key).count();
            assert_eq!(anchors.find(key), expected, "{key:?} in {of:?}");
            for segment in 0..=of.len() {
                assert_eq!(anchors.within(segment, key), expected <= segment, "{key:?} in {of:?}");
                let inside = segment.checked_sub(1).map_or(&b""[..], |at| of[at]);
                let beside = |less| anchors.are_beside(segment, key, inside, less);
                let is_beside = [beside(true), beside(false)];
                assert_eq!(is_beside, [expected > segment, expected < segment], "{key:?} in {of:?}");
            }
        }
    }

    #[test]
    fn a_key_belongs_behind_the_last_anchor_not_above_it() {
        let keys: &[&[u8]] = &[
            b"",
            b"\0",
            b"a",
            b"ab",
            b"ab\0",
            b"abc",
            b"abd",
            b"abcdefghijk",
            b"b",
            b"\xff",
            b"\xff\xff",
            b"prefix",
            b"prefi",
            b"prefix\0",
            b"prefix12345678",
            b"prefix12345679",
            b"prefixes",
            b"\xff\xff\xff\xff\xff\xff\xff\xff",
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        ];
        check(&[], keys);
        check(&[b"ab"], keys);
        check(&[b"a", b"a\0", b"a\0\0", b"a\0\x01", b"ab"], keys);
        check(&[b"prefix1", b"prefix12345678", b"prefix12345678\0", b"prefix123456780", b"prefix2"], keys);
        check(
            &[
                b"\xff\xff\xff\xff\xff\xff\xff",
                b"\xff\xff\xff\xff\xff\xff\xff\xff",
                b"\xff\xff\xff\xff\xff\xff\xff\xff\0",
            ],
            keys,
        );
    }
}

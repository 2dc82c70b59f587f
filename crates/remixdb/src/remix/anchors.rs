//! [`Anchors`]: finds the segment that a key belongs to.
//!
//! An anchor is the shortest prefix of a segment's first key that is greater than the last key of the
//! previous segment. The first segment has none: keys below all anchors belong to it. So anchors ascend
//! strictly, and the segment of a key is the number of anchors that are not greater than it.
//!
//! The common prefix of all anchors is stored once. The eight bytes after it, an anchor's *head*, are
//! compared first, as numbers; the rest is compared only if heads are equal. Heads are stored in the nodes of
//! an implicit B+-tree with 16 heads in a node (two cache lines), which is searched by bisection without
//! branches. The tree is built whenever the anchors are loaded; it is not stored.

use crate::key::{common_prefix, head_of};
use crate::room;
use forrest_engine::{Error, Result};
use forrest_machine::pages::Array;
use forrest_machine::prefetch;

/// Number of heads in a node.
const FANOUT: usize = 16;
/// This many levels index any number of segments that fits in 32 bits.
const LEVELS_MAX: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(align(64))]
struct Node([u64; FANOUT]);

/// The anchors of a REMIX: of all its segments except the first.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Anchors {
    /// The common prefix of all anchors.
    prefix: Vec<u8>,
    /// The end of each anchor's tail in `tails`. A tail is the part after the prefix.
    ends: Array<u32>,
    tails: Array<u8>,
    /// All levels, the root first.
    nodes: Array<Node>,
    /// Where each level begins in `nodes`.
    levels: [usize; LEVELS_MAX],
    depth: usize,
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
        let mut anchors =
            Anchors { prefix, ends, tails, nodes: Array::new(), levels: [0; LEVELS_MAX], depth: 0 };
        anchors.index()?;
        Ok(anchors)
    }

    /// Builds the tree of heads.
    fn index(&mut self) -> Result<()> {
        // The number of nodes of each level, the lowest first.
        let mut counts = Vec::new();
        let mut count = self.ends.len();
        while count > 1 || counts.is_empty() && count > 0 {
            count = count.div_ceil(FANOUT);
            counts.push(count);
        }
        let all = counts.iter().sum();
        self.nodes = room::filled(all, Node([u64::MAX; FANOUT]))?;
        self.depth = counts.len();
        let mut end = all;
        for (above, &count) in counts.iter().enumerate() {
            let (start, lower) = (end - count, end);
            self.levels[self.depth - 1 - above] = start;
            if above == 0 {
                for at in 0..self.ends.len() {
                    self.nodes[start + at / FANOUT].0[at % FANOUT] = head_of(self.tail(at));
                }
            } else {
                // Heads above all other nodes are searched in the last, whose place keeps the greatest number.
                for at in 0..counts[above - 1] - 1 {
                    self.nodes[start + at / FANOUT].0[at % FANOUT] = self.nodes[lower + at].0[FANOUT - 1];
                }
            }
            end = start;
        }
        Ok(())
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
        self.prefix.len() + self.ends.bytes() + self.tails.bytes() + self.nodes.bytes()
    }

    /// The anchor of segment `at + 1` without the prefix.
    pub(super) fn tail(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.tails[start..self.ends[at] as usize]
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
        if self.ends.is_empty() {
            return 0;
        }
        let Some(tail) = key.strip_prefix(&self.prefix[..]) else {
            // A proper prefix of the prefix sorts before it, like every lesser key.
            return if key < &self.prefix[..] { 0 } else { self.ends.len() };
        };
        let head = head_of(tail);
        let first = self.first_not_below(head);
        if first == self.ends.len() || self.head(first) != head {
            return first;
        }
        let (mut low, mut high) = (first, self.ends.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.head(middle) == head && self.tail(middle) <= tail {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
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

    /// Whether all keys of a segment are less than a key, or greater if not `less`, as far as the heads show.
    #[inline]
    pub(super) fn are_beside(&self, segment: usize, key: &[u8], less: bool) -> bool {
        let Some(tail) = key.strip_prefix(&self.prefix[..]) else { return false };
        let head = head_of(tail);
        match (less, segment.checked_sub(1)) {
            (true, _) => segment < self.ends.len() && self.head(segment) < head,
            (false, Some(own)) => head < self.head(own),
            (false, None) => false,
        }
    }

    /// The first anchor that is not greater than the previous one, if any.
    pub(super) fn disorder(&self) -> Option<usize> {
        (1..self.ends.len()).find(|&at| self.tail(at - 1) >= self.tail(at))
    }

    #[inline]
    fn head(&self, at: usize) -> u64 {
        self.nodes[self.levels[self.depth - 1] + at / FANOUT].0[at % FANOUT]
    }

    /// The number of heads below `head`.
    #[inline]
    fn first_not_below(&self, head: u64) -> usize {
        let mut at = 0;
        for &level in &self.levels[..self.depth] {
            let node = &self.nodes[level + at];
            // Both lines at once: the steps of a bisection wait for one another.
            prefetch::read(std::ptr::from_ref(&node.0[0]).cast());
            prefetch::read(std::ptr::from_ref(&node.0[FANOUT / 2]).cast());
            at = at * FANOUT + node.below(head);
        }
        at
    }
}

impl Node {
    /// The number of heads below `head`.
    #[inline]
    fn below(&self, head: u64) -> usize {
        let mut at = 0;
        for half in [8, 4, 2, 1] {
            at += half * usize::from(self.0[at + half - 1] < head);
        }
        at + usize::from(self.0[at] < head)
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
                let (less, greater) =
                    (anchors.are_beside(segment, key, true), anchors.are_beside(segment, key, false));
                assert!(!less || expected > segment, "{key:?} in {of:?}");
                assert!(!greater || expected < segment, "{key:?} in {of:?}");
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

    #[test]
    fn the_tree_of_heads_finds_what_a_count_finds() {
        for count in [1, 15, 16, 17, 255, 256, 257, 4095, 4096, 4097, 5000] {
            let mut collector = Collector::default();
            for at in 1..=count {
                collector.push(&(at as u32 * 2).to_be_bytes(), b"").unwrap();
            }
            let anchors = collector.finish().unwrap();
            for key in 0..=count as u32 * 2 + 2 {
                let expected = (key / 2).min(count as u32) as usize;
                assert_eq!(anchors.find(&key.to_be_bytes()), expected, "{key} of {count}");
                let are_beside =
                    |segment, less| count == 1 || anchors.are_beside(segment, &key.to_be_bytes(), less);
                assert!(expected < 2 || are_beside(expected - 2, true), "{key} of {count}");
                assert!(expected == count || are_beside(expected + 1, false), "{key} of {count}");
            }
            assert_eq!(anchors.find(&[0xFF; 4]), count);
        }
    }
}

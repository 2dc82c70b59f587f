//! [`Separators`]: finds the piece of an order that a key belongs to: the block of a table, or the segment of a REMIX.
//!
//! Each piece but the first has a *separator*, which is greater than all keys before the piece, and not greater than
//! its own. Separators ascend, so the piece of a key is the last one whose separator is not greater than the key.
//!
//! They are searched in an implicit B+-tree with 16 children in a node. A node has the *heads* of the separators of all
//! its children but the first: eight bytes of each, as numbers. A search that comes to a node knows two separators
//! between which the key is, that of the node and that of the node beside it. All separators between the two, and the
//! key, begin with their common prefix. So the heads are taken after it, and the node stores its length. Whole
//! separators are compared only where heads are equal.
//!
//! The tree is not stored. It is built from the separators, and does not have them.

use crate::key::{common_prefix, head_of};
use crate::room;
use forrest_engine::Result;
use forrest_machine::pages::Array;
use forrest_machine::prefetch;
use std::cmp::Ordering;

/// Number of children of a node.
const FANOUT: usize = 16;
/// This many levels are enough for as many pieces as 32 bits can number.
const LEVELS_MAX: usize = 8;
/// The head of a child that is not there. Others may have it too.
const NO_HEAD: u64 = u64::MAX;

/// Two cache lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(align(64))]
struct Node {
    /// Length of the prefix before the heads.
    skip: u64,
    heads: [u64; FANOUT - 1],
}

/// See the head of the file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Separators {
    /// Number of pieces.
    pieces: usize,
    /// All levels, the root first.
    nodes: Array<Node>,
    /// Where each level begins in `nodes`.
    levels: [usize; LEVELS_MAX],
    depth: usize,
}

impl Separators {
    /// Builds the tree for `pieces` pieces. `separator` returns those of all but the first, which has none.
    ///
    /// # Errors
    /// `OutOfSpace`.
    pub(crate) fn new<'s>(pieces: usize, separator: impl Fn(usize) -> &'s [u8]) -> Result<Separators> {
        // The number of nodes of each level, the lowest first.
        let (mut counts, mut count) = (Vec::new(), pieces);
        while count > 1 {
            count = count.div_ceil(FANOUT);
            counts.push(count);
        }
        let all = counts.iter().sum();
        let nodes = room::filled(all, Node { skip: 0, heads: [NO_HEAD; FANOUT - 1] })?;
        let (depth, mut start) = (counts.len(), 0);
        let mut built = Separators { pieces, nodes, levels: [0; LEVELS_MAX], depth };
        for (level, &count) in counts.iter().rev().enumerate() {
            built.levels[level] = start;
            let (span, all) = (built.span(level), built.pieces);
            for (at, node) in built.nodes[start..start + count].iter_mut().enumerate() {
                let (first, end) = (at * span * FANOUT, (at + 1) * span * FANOUT);
                let has_both = first > 0 && end < all;
                let skip = if has_both { common_prefix(separator(first), separator(end)) } else { 0 };
                node.skip = skip as u64;
                for (head, child) in node.heads.iter_mut().zip((first + span..all).step_by(span)) {
                    // It has the prefix, unless the order is damaged.
                    *head = head_of(separator(child).get(skip..).unwrap_or_default());
                }
            }
            start += count;
        }
        Ok(built)
    }

    /// Number of pieces below a child of a node.
    #[inline]
    fn span(&self, level: usize) -> usize {
        1 << (FANOUT.trailing_zeros() as usize * (self.depth - 1 - level))
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.nodes.bytes()
    }

    /// The piece that a key belongs to. All separators begin with `prefix`, and `separator`, which is that of `new`,
    /// returns what follows.
    #[inline]
    pub(crate) fn find<'s>(&self, key: &[u8], prefix: &[u8], separator: impl Fn(usize) -> &'s [u8]) -> usize {
        match key.strip_prefix(prefix) {
            Some(rest) => self.find_rest(rest, separator),
            // A proper prefix of the prefix sorts before it, like every lesser key.
            None if key < prefix => 0,
            None => self.pieces.saturating_sub(1),
        }
    }

    /// Whether all keys of a piece are less than a key, or greater if not `less`. `inside` is one of them. The other
    /// arguments are those of [`find`](Separators::find).
    #[inline]
    pub(crate) fn are_beside<'s>(
        &self,
        piece: usize,
        key: &[u8],
        (inside, less): (&[u8], bool),
        prefix: &[u8],
        separator: impl Fn(usize) -> &'s [u8],
    ) -> bool {
        let beyond = piece + usize::from(less);
        if beyond == 0 || beyond >= self.pieces {
            return false;
        }
        let is_not_below = match key.strip_prefix(prefix) {
            // If it does not begin with the prefix, it is in a node that skips nothing.
            Some(rest) => {
                self.is_at_most(beyond, rest, inside.get(prefix.len()..).unwrap_or_default(), separator)
            }
            None => key > prefix,
        };
        is_not_below == less
    }

    /// The same as [`find`](Separators::find) for what follows the prefix in a key.
    #[inline]
    fn find_rest<'s>(&self, key: &[u8], separator: impl Fn(usize) -> &'s [u8]) -> usize {
        let mut at = 0;
        for (level, &start) in self.levels[..self.depth].iter().enumerate() {
            let node = &self.nodes[start + at];
            // Both lines, and all heads: the steps of a bisection would wait for one another.
            prefetch::read(std::ptr::from_ref(node).cast());
            prefetch::read(std::ptr::from_ref(&node.heads[FANOUT / 2]).cast());
            let head = head_of(key.get(node.skip as usize..).unwrap_or_default());
            let mut child = node.below(head);
            if node.heads.get(child) == Some(&head) {
                child = self.among(level, at, child, key, &separator);
            }
            at = at * FANOUT + child;
        }
        at
    }

    /// Whether the separator of a piece is not greater than a key. `inside` is a key of the piece, or of the one before
    /// it, both without the prefix. Most calls compare heads only: those of the node that a search for `inside` came
    /// to.
    #[inline]
    fn is_at_most<'s>(
        &self,
        piece: usize,
        key: &[u8],
        inside: &[u8],
        separator: impl Fn(usize) -> &'s [u8],
    ) -> bool {
        if let Some(child) = (piece % FANOUT).checked_sub(1) {
            let node = &self.nodes[self.levels[self.depth - 1] + piece / FANOUT];
            let skip = node.skip as usize;
            let prefix = inside.get(..skip).unwrap_or_default();
            match key[..key.len().min(skip)].cmp(prefix) {
                Ordering::Equal => match head_of(key.get(skip..).unwrap_or_default()).cmp(&node.heads[child])
                {
                    Ordering::Equal => {}
                    order => return order.is_gt(),
                },
                order => return order.is_gt(),
            }
        }
        separator(piece) <= key
    }

    /// The child of a node that a key belongs to, from one on whose right neighbour has the head of the key.
    #[cold]
    #[inline(never)]
    fn among<'s>(
        &self,
        level: usize,
        at: usize,
        child: usize,
        key: &[u8],
        separator: &impl Fn(usize) -> &'s [u8],
    ) -> usize {
        let (heads, span) = (&self.nodes[self.levels[level] + at].heads, self.span(level));
        let first = at * FANOUT * span;
        let last = (self.pieces - first).div_ceil(span).min(FANOUT) - 1;
        // A child that is not there has a head that others may have too.
        let equal = heads[child..last.max(child)].iter().take_while(|&&head| head == heads[child]).count();
        let (mut low, mut high) = (child, child + equal);
        while low < high {
            let middle = low.midpoint(high);
            if separator(first + (middle + 1) * span) <= key { low = middle + 1 } else { high = middle }
        }
        low
    }
}

impl Node {
    /// The number of heads below `head`.
    #[inline]
    fn below(&self, head: u64) -> usize {
        self.heads.iter().map(|&other| usize::from(other < head)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Compares with a search through the list of the separators, which begins with an empty one.
    fn check(separators: &[Vec<u8>], keys: impl IntoIterator<Item = Vec<u8>>) {
        let at = |piece: usize| &separators[piece][..];
        let tree = Separators::new(separators.len(), at).expect("there is memory");
        for key in keys {
            let expected = separators.partition_point(|separator| *separator <= key) - 1;
            assert_eq!(tree.find(&key, b"", at), expected, "{key:?} in {separators:?}");
            for piece in (expected.max(3) - 2..separators.len()).take(4) {
                // The least key inside, and one that the next separator is not greater than.
                for inside in [&separators[piece], &separators[piece - 1]] {
                    let is_at_most = tree.is_at_most(piece, &key, inside, at);
                    assert_eq!(is_at_most, separators[piece] <= key, "{piece} of {separators:?} and {key:?}");
                }
            }
        }
    }

    /// Keys at separators and beside them.
    fn around(separators: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut keys = vec![vec![], vec![0], vec![0xFF; 20]];
        for separator in separators {
            keys.extend([
                separator.clone(),
                [separator, &b"\0"[..]].concat(),
                [separator, &b"\xFF"[..]].concat(),
            ]);
            if let Some((last, rest)) = separator.split_last() {
                keys.extend([rest.to_vec(), [rest, &[last.wrapping_sub(1)]].concat()]);
                keys.push(
                    [rest, &[last.wrapping_sub(1)], &b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"[..]].concat(),
                );
            }
        }
        keys
    }

    #[test]
    fn numbers_are_found_at_every_size_of_the_tree() {
        for count in [0, 1, 2, 14, 15, 16, 17, 255, 256, 257, 4095, 4096, 4097, 5000_u32] {
            let numbers = (1..=count).map(|number| (number * 2).to_be_bytes().to_vec());
            let separators: Vec<_> = [vec![]].into_iter().chain(numbers).collect();
            check(&separators, (0..=count * 2 + 2).map(|key| key.to_be_bytes().to_vec()));
            check(&separators, [vec![], vec![0xFF; 4]]);
        }
    }

    #[test]
    fn heads_that_are_equal_are_told_apart_by_what_follows() {
        let lists: [&[&[u8]]; 5] = [
            &[b"a", b"a\0", b"a\0\0", b"a\0\x01", b"ab"],
            &[b"pre", b"pre\0", b"pre\0\0", b"prefix012", b"prefix0123456", b"prefix0123457", b"prey"],
            &[b"\xff\xff\xff\xff\xff\xff\xff", b"\xff\xff\xff\xff\xff\xff\xff\xff"],
            &[b"\xff\xff\xff\xff\xff\xff\xff\xff", b"\xff\xff\xff\xff\xff\xff\xff\xff\0"],
            &[b"p\xff\xff\xff\xff\xff\xff\xff\xff", b"p\xff\xff\xff\xff\xff\xff\xff\xff\xff"],
        ];
        for list in lists {
            let separators: Vec<_> =
                std::iter::once(&b""[..]).chain(list.iter().copied()).map(<[u8]>::to_vec).collect();
            check(&separators, around(&separators));
        }
    }

    #[test]
    fn keys_with_long_beginnings_in_common_are_told_apart_by_their_heads() {
        let path =
            |number: u32| format!("usr/share/doc/package-{:03}/file-{:05}", number / 40, number).into_bytes();
        let separators: Vec<_> =
            [vec![]].into_iter().chain((0..5000).map(|number| path(number * 2))).collect();
        let compared = std::cell::Cell::new(0);
        let at = |piece: usize| {
            compared.set(compared.get() + 1);
            &separators[piece][..]
        };
        let tree = Separators::new(separators.len(), at).expect("there is memory");
        compared.set(0);
        for number in 0..10_000 {
            assert_eq!(tree.find(&path(number), b"", at), number as usize / 2 + 1);
        }
        // A bisection would compare a dozen for each.
        assert!(compared.get() < 100_000, "{}", compared.get());
        check(&separators, around(&separators));
    }

    proptest! {
        #[test]
        fn any_separators_are_found(
            list in prop::collection::btree_set(prop::collection::vec(prop::sample::select(vec![0, 1, b'a', 0xFF]), 1..14), 0..600),
            keys in prop::collection::vec(prop::collection::vec(prop::sample::select(vec![0, 1, b'a', 0xFF]), 0..16), 50),
        ) {
            let separators: Vec<_> = [vec![]].into_iter().chain(list).collect();
            check(&separators, keys.into_iter().chain(around(&separators)));
        }
    }
}

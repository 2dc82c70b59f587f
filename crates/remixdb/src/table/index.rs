//! The index of a table in memory: the offsets of its key blocks, and the block that a key belongs to.
//!
//! A search compares the separators' heads, the eight bytes after their common prefix, and a whole separator
//! only if heads are equal. Heads are searched as nodes of 16, whose loads are independent; the steps of a
//! bisection would wait for one another. The stored form is described at the head of
//! [`format`](super::format).

use super::format::{ALIGN, Footer, u32_at};
use crate::key::{common_prefix, head_of};

/// An index under construction.
#[derive(Default)]
pub(super) struct Pending {
    offsets: Vec<u32>,
    ends: Vec<u32>,
    separators: Vec<u8>,
}

impl Pending {
    pub(super) fn bytes(&self) -> usize {
        (self.offsets.len() + self.ends.len()) * 4 + self.separators.len()
    }

    /// Adds the separator of the next block; `false` if the index is full.
    pub(super) fn separator(&mut self, separator: &[u8]) -> bool {
        self.separators.extend_from_slice(separator);
        let end = u32::try_from(self.separators.len());
        self.ends.push(end.unwrap_or(u32::MAX));
        end.is_ok()
    }

    /// Adds the place of the next block, counted from the first; `false` if it is too far away.
    pub(super) fn place(&mut self, offset: u64) -> bool {
        debug_assert!(offset.is_multiple_of(ALIGN));
        let unit = u32::try_from(offset / ALIGN);
        self.offsets.push(unit.unwrap_or(u32::MAX));
        unit.is_ok()
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let numbers = self.offsets.iter().chain(&self.ends);
        let mut out: Vec<u8> = numbers.flat_map(|number| number.to_le_bytes()).collect();
        out.extend_from_slice(&self.separators);
        out
    }
}

/// Number of heads in a node. Two cache lines, which are fetched together.
const NODE: usize = 16;

/// Numbers in order, and above them levels with every 16th number of the level below, up to a level of one
/// node.
#[derive(Default)]
struct Levels(Vec<Box<[u64]>>);

impl Levels {
    fn new(numbers: Box<[u64]>) -> Levels {
        let mut levels = vec![numbers];
        while levels[0].len() > NODE {
            let above = levels[0].iter().step_by(NODE).copied().collect();
            levels.insert(0, above);
        }
        Levels(levels)
    }

    /// The number of numbers that are less than `target`.
    #[inline]
    fn count_less(&self, target: u64) -> usize {
        let mut less = 0;
        for (depth, level) in self.0.iter().enumerate() {
            // The last node that begins with a lesser number has the place, if there is such a node.
            let node = match (depth, less) {
                (0, _) => &level[..],
                (_, 0) => return 0,
                _ => &level[(less - 1) * NODE..level.len().min(less * NODE)],
            };
            let before = less.saturating_sub(1) * NODE;
            less = before + node.iter().map(|&number| usize::from(number < target)).sum::<usize>();
        }
        less
    }

    /// The lowest level.
    fn numbers(&self) -> &[u64] {
        self.0.last().map_or(&[], |numbers| numbers)
    }
}

/// The locations of a table's blocks.
pub(super) struct Index {
    /// In units of `ALIGN` from the first block.
    offsets: Box<[u32]>,
    /// The end of each block's separator.
    ends: Box<[u32]>,
    separators: Box<[u8]>,
    /// Length of the common prefix of the separators of all blocks except the first.
    common: usize,
    /// The heads after that prefix, of all blocks except the first.
    heads: Levels,
}

impl Index {
    /// Decodes the stored form, whose length is the one in the footer. `None` if it is damaged.
    pub(super) fn decode(footer: &Footer, mut stored: Vec<u8>) -> Option<Index> {
        let blocks = footer.blocks as usize;
        let numbers =
            |from: usize| (0..blocks).map(|i| u32_at(&stored, from + 4 * i)).collect::<Box<[u32]>>();
        let (offsets, ends) = (numbers(0), numbers(4 * blocks));
        stored.drain(..8 * blocks);
        let separators = stored.into_boxed_slice();
        let ascending = offsets.is_sorted_by(|a, b| a < b) && ends.is_sorted();
        let inside = offsets.last().is_none_or(|&last| u64::from(last) * ALIGN < footer.keys.bytes);
        let begins =
            offsets.first().is_none_or(|&first| first == 0) && ends.first().is_none_or(|&end| end == 0);
        let filled = ends.last().map_or(0, |&end| end as usize) == separators.len();
        if !(ascending && inside && begins && filled) {
            return None;
        }
        let mut index = Index { offsets, ends, separators, common: 0, heads: Levels::default() };
        if blocks > 1 {
            index.common = common_prefix(index.separator(1), index.separator(blocks - 1));
            // A prefix that two separators share is shared by all between them, unless they are out of order.
            let tails = (1..blocks).map(|block| index.separator(block).get(index.common..));
            index.heads = Levels::new(tails.map(|tail| tail.map(head_of)).collect::<Option<_>>()?);
        }
        Some(index)
    }

    /// Its memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.offsets.len() * 8 + self.heads.numbers().len() * 9 + self.separators.len()
    }

    /// The offset of a block from the first.
    #[inline]
    pub(super) fn offset(&self, block: u32) -> u64 {
        u64::from(self.offsets[block as usize]) * ALIGN
    }

    pub(super) fn separator(&self, block: usize) -> &[u8] {
        let start = block.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.separators[start as usize..self.ends[block] as usize]
    }

    /// Whether all keys of a block are less than a key, or greater if not `less`, as far as the heads show.
    #[inline]
    pub(super) fn are_beside(&self, block: u32, key: &[u8], less: bool) -> bool {
        let heads = self.heads.numbers();
        if heads.is_empty() {
            return false;
        }
        let (prefix, _) = self.separator(1).split_at(self.common);
        let Some(rest) = key.strip_prefix(prefix) else { return false };
        let head = head_of(rest);
        let beside = if less { Some(block) } else { block.checked_sub(1) };
        let beside = beside.and_then(|beside| heads.get(beside as usize));
        beside.is_some_and(|&beside| if less { beside < head } else { head < beside })
    }

    /// The last block whose separator is not greater than the key. No other block can have the key. There
    /// must be a block.
    #[inline]
    pub(super) fn find(&self, key: &[u8]) -> u32 {
        let heads = self.heads.numbers();
        if heads.is_empty() {
            return 0;
        }
        let (prefix, _) = self.separator(1).split_at(self.common);
        let Some(rest) = key.strip_prefix(prefix) else {
            return if key < prefix { 0 } else { heads.len() as u32 };
        };
        let target = head_of(rest);
        let less = self.heads.count_less(target);
        if heads.get(less) != Some(&target) {
            return less as u32;
        }
        let equal = heads[less..].partition_point(|&head| head == target);
        let (mut from, mut to) = (less, less + equal);
        while from < to {
            let mid = from.midpoint(to);
            if self.separator(mid + 1) <= key { from = mid + 1 } else { to = mid }
        }
        from as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::format::Span;

    fn index_of(separators: &[&[u8]]) -> Option<Index> {
        let mut pending = Pending::default();
        for (i, separator) in separators.iter().enumerate() {
            assert!(pending.separator(separator) && pending.place(8 * i as u64));
        }
        let blocks = separators.len() as u32;
        let keys = Span { offset: 0, bytes: u64::from(blocks) * 8 };
        Index::decode(&Footer { blocks, keys, ..Footer::default() }, pending.encode())
    }

    #[test]
    fn a_key_belongs_to_the_last_separator_before_it() {
        let lists: [&[&[u8]]; 5] = [
            &[b""],
            &[b"", b"m"],
            &[b"", b"b", b"c", b"ca", b"d"],
            &[b"", b"pre", b"pre\0", b"pre\0\0", b"prefix012", b"prefix0123456", b"prefix0123457", b"prey"],
            &[b"", b"p\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", b"p\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"],
        ];
        for separators in lists {
            let index = index_of(separators).unwrap();
            let mut keys: Vec<Vec<u8>> = vec![vec![], vec![0], vec![0xFF; 20]];
            for separator in separators {
                keys.push(separator.to_vec());
                keys.push([separator, &b"\0"[..]].concat());
                keys.push([separator, &b"\xFF"[..]].concat());
                keys.extend(separator.split_last().map(|(_, rest)| rest.to_vec()));
                keys.extend(
                    separator.split_last().map(|(last, rest)| [rest, &[last - u8::from(*last > 0)]].concat()),
                );
            }
            for key in keys {
                let expected = separators.iter().rposition(|&separator| separator <= &key[..]).unwrap();
                assert_eq!(index.find(&key), expected as u32, "{key:?} in {separators:?}");
                for block in 0..separators.len() {
                    let beside = |less| index.are_beside(block as u32, &key, less);
                    assert!(!beside(true) || block < expected, "{block} and {key:?} in {separators:?}");
                    assert!(!beside(false) || block > expected, "{block} and {key:?} in {separators:?}");
                }
            }
        }
    }

    #[test]
    fn blocks_beside_a_key_are_known_by_their_heads() {
        let separators: [&[u8]; 4] = [b"", b"b", b"c", b"d"];
        let index = index_of(&separators).unwrap();
        let beside = |less| (0..4).map(|block| index.are_beside(block, b"cc", less)).collect::<Vec<_>>();
        assert_eq!(beside(true), [true, true, false, false]);
        assert_eq!(beside(false), [false, false, false, true]);
    }

    #[test]
    fn levels_count_as_a_list_does() {
        for len in [0, 1, 2, 15, 16, 17, 255, 256, 257, 4_096, 4_097, 5_000] {
            // Each number twice.
            let numbers: Box<[u64]> = (0..len).map(|i| i / 2 * 3 + 1).collect();
            let levels = Levels::new(numbers.clone());
            for target in (0..len * 3 / 2 + 3).chain([u64::MAX]) {
                assert_eq!(
                    levels.count_less(target),
                    numbers.partition_point(|&number| number < target),
                    "{len}"
                );
            }
        }
    }

    #[test]
    fn what_was_not_written_is_refused() {
        let footer = Footer { blocks: 2, keys: Span { offset: 0, bytes: 16 }, ..Footer::default() };
        let stored = |numbers: [u32; 4]| [&numbers.map(u32::to_le_bytes).concat()[..], b"b"].concat();
        assert!(Index::decode(&footer, stored([0, 1, 0, 1])).is_some());
        for numbers in [[1, 1, 0, 1], [0, 2, 0, 1], [0, 0, 0, 1], [0, 1, 1, 1], [0, 1, 0, 0], [0, 1, 0, 2]] {
            assert!(Index::decode(&footer, stored(numbers)).is_none(), "{numbers:?}");
        }
    }
}

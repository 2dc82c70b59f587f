//! The index of a table in memory: the offsets of its key blocks, and the block that a key belongs to.
//!
//! The common prefix of the separators is compared once. What is after it is searched as [`Separators`] of blocks.
//! The stored form is described at the head of [`format`](super::format).

use super::format::{ALIGN, Footer, u32_at};
use crate::key::common_prefix;
use crate::separators::Separators;
use forrest_engine::Result;
use forrest_machine::prefetch;

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

/// The locations of a table's blocks.
pub(super) struct Index {
    /// In units of `ALIGN` from the first block.
    offsets: Box<[u32]>,
    /// The end of each block's separator.
    ends: Box<[u32]>,
    separators: Box<[u8]>,
    /// Length of the common prefix of the separators of all blocks except the first.
    common: usize,
    tree: Separators,
}

impl Index {
    /// Decodes the stored form, whose length is the one in the footer. `None` if it is damaged.
    ///
    /// # Errors
    /// `OutOfSpace`.
    pub(super) fn decode(footer: &Footer, mut stored: Vec<u8>) -> Result<Option<Index>> {
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
            return Ok(None);
        }
        let mut index = Index { offsets, ends, separators, common: 0, tree: Separators::default() };
        if blocks > 1 {
            index.common = common_prefix(index.separator(1), index.separator(blocks - 1));
            // A prefix that two separators share is shared by all between them, unless they are out of order.
            if (1..blocks).any(|block| index.separator(block).len() < index.common) {
                return Ok(None);
            }
            index.tree = Separators::new(blocks, |block| index.tail(block))?;
        }
        Ok(Some(index))
    }

    /// A separator without the common prefix. REQUIRES: it is not the first.
    #[inline]
    fn tail(&self, block: usize) -> &[u8] {
        &self.separator(block)[self.common..]
    }

    /// Its memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.offsets.len() * 8 + self.tree.bytes() + self.separators.len()
    }

    /// Prefetches the offset of a block.
    #[inline]
    pub(super) fn fetch_offset(&self, block: u32) {
        prefetch::read(self.offsets.as_ptr().wrapping_add(block as usize).cast());
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

    /// Whether all keys of a block are less than a key, or greater if not `less`. `inside` is one of them.
    #[inline]
    pub(super) fn are_beside(&self, block: u32, key: &[u8], inside: &[u8], less: bool) -> bool {
        let tail = |block| self.tail(block);
        self.tree.are_beside(block as usize, key, (inside, less), self.prefix(), tail)
    }

    /// The common prefix; empty if there is one block.
    #[inline]
    fn prefix(&self) -> &[u8] {
        if self.common == 0 { &[] } else { &self.separator(1)[..self.common] }
    }

    /// The last block whose separator is not greater than the key. No other block can have the key. There
    /// must be a block.
    #[inline]
    pub(super) fn find(&self, key: &[u8]) -> u32 {
        self.tree.find(key, self.prefix(), |block| self.tail(block)) as u32
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
        Index::decode(&Footer { blocks, keys, ..Footer::default() }, pending.encode()).unwrap()
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
                    let beside = |less| index.are_beside(block as u32, &key, separators[block], less);
                    let is_beside = [beside(true), beside(false)];
                    assert_eq!(is_beside, [block < expected, block > expected], "{key:?} in {separators:?}");
                }
            }
        }
    }

    #[test]
    fn what_was_not_written_is_refused() {
        let footer = Footer { blocks: 2, keys: Span { offset: 0, bytes: 16 }, ..Footer::default() };
        let stored = |numbers: [u32; 4]| [&numbers.map(u32::to_le_bytes).concat()[..], b"b"].concat();
        assert!(Index::decode(&footer, stored([0, 1, 0, 1])).unwrap().is_some());
        for numbers in [[1, 1, 0, 1], [0, 2, 0, 1], [0, 0, 0, 1], [0, 1, 1, 1], [0, 1, 0, 0], [0, 1, 0, 2]] {
            assert!(Index::decode(&footer, stored(numbers)).unwrap().is_none(), "{numbers:?}");
        }
    }
}

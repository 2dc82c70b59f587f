//! [`Tags`]: two bytes of a hash for each key of a table, in the order of the keys.
//!
//! Only a table that is alone in its partition is searched by its own index, and only such a table has tags. A lookup
//! finds the block of a key in the index and compares the tags of that block, which lie together. It reads the
//! keys whose tags are equal, so a hit reads one key and a miss hardly any: two bytes mistake one of about a thousand
//! misses for a hit.

use super::format::{BLOCK_KEYS, TAG_BYTES};
use crate::room;
use forrest_engine::Result;
use forrest_machine::pages::Array;
use forrest_machine::prefetch;
use xxhash_rust::xxh3::xxh3_64;

/// Number of tags that are compared together.
const BLOCK: usize = BLOCK_KEYS as usize;

/// A word whose bytes are 0 or 1, times this, has the byte at `i` as bit `56 + i`: the factor has the bits
/// `56 - 7 * i`, and no two products of a byte and a bit of it meet.
const GATHER: u64 = 0x0102_0408_1020_4080;

/// The tags of a table, in memory.
pub(super) struct Tags(Array<u16>);

/// The tag of a key.
#[inline]
pub(super) fn tag(key: &[u8]) -> u16 {
    forrest_base::tag(xxh3_64(key), u16::BITS) as u16
}

impl Tags {
    /// Bytes of memory for the tags of this many entries.
    pub(super) fn bytes_of(entries: u32) -> usize {
        (entries as usize).next_multiple_of(BLOCK) * TAG_BYTES
    }

    /// Decodes the stored form: two bytes each, little endian.
    ///
    /// # Errors
    /// `OutOfSpace` if there is no memory.
    pub(super) fn decode(stored: &[u8]) -> Result<Tags> {
        let entries = stored.len() / TAG_BYTES;
        // The last block is filled up, so that all are compared in the same way.
        let mut tags = room::filled(entries.next_multiple_of(BLOCK), 0)?;
        for (tag, bytes) in tags.iter_mut().zip(stored.as_chunks().0) {
            *tag = u16::from_le_bytes(*bytes);
        }
        Ok(Tags(tags))
    }

    pub(super) fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// The tags of a block. The last block may have more of them than keys.
    #[inline]
    fn block(&self, number: u32) -> &[u16; BLOCK] {
        self.0[number as usize * BLOCK..].first_chunk().expect("the last block is filled up")
    }

    /// The tag of the key at a place in a block.
    pub(super) fn at(&self, number: u32, at: usize) -> u16 {
        self.block(number)[at]
    }

    /// Prefetches the tags of a block.
    #[inline]
    pub(super) fn fetch(&self, number: u32) {
        let block = self.block(number);
        prefetch::read((&raw const block[0]).cast());
        prefetch::read((&raw const block[BLOCK / 2]).cast());
    }

    /// The places in a block with this tag: a bit for each.
    #[inline]
    pub(super) fn matches(&self, number: u32, tag: u16) -> u64 {
        // The compiler makes vectors of this, and would not of a loop that makes the bits at once.
        let equal = self.block(number).map(|other| u8::from(other == tag));
        let words = equal.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        words.enumerate().map(|(at, word)| (word.wrapping_mul(GATHER) >> 56) << (8 * at)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forrest_base::random::Random;

    #[test]
    fn matches_are_those_of_a_loop() {
        let mut random = Random(1);
        for entries in [0, 1, 63, 64, 65, 200] {
            let tags: Vec<u16> = (0..entries).map(|_| (random.next() % 4 * 0x4001) as u16).collect();
            let stored: Vec<u8> = tags.iter().flat_map(|tag| tag.to_le_bytes()).collect();
            let decoded = Tags::decode(&stored).unwrap();
            assert_eq!(decoded.0.len() * TAG_BYTES, Tags::bytes_of(entries));
            for (number, block) in tags.chunks(BLOCK).enumerate() {
                for tag in (0..4).map(|tag| tag * 0x4001) {
                    let found = decoded.matches(number as u32, tag);
                    for (at, &other) in block.iter().enumerate() {
                        assert_eq!(found >> at & 1 == 1, other == tag, "{entries} entries, {number}, {at}");
                    }
                }
            }
        }
    }
}

//! Detects duplicate keys by fingerprints of 128 bits (XXH3). Among a billion keys, the probability that two different
//! ones have the same fingerprint is below 1 in 10^20.
//!
//! A key takes some 20 to 40 bytes. Before memory becomes short, the search is given up, and the report says so.

use crate::machine;
use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_128;

/// Memory that must stay free, in bytes.
const MARGIN_BYTES: u64 = 1 << 30;
/// A fingerprint and its byte of the table.
const SLOT_BYTES: u64 = 17;

/// The keys seen.
#[derive(Default)]
pub(crate) struct Seen {
    table: HashTable<u128>,
    duplicates: u64,
    full: bool,
}

impl Seen {
    /// Notes a key; true if it was seen before. After memory became short it is always false.
    pub(crate) fn note(&mut self, key: &[u8]) -> bool {
        if self.full {
            return false;
        }
        let fingerprint = xxh3_128(key);
        if self.table.find(fingerprint as u64, |other| *other == fingerprint).is_some() {
            self.duplicates += 1;
            return true;
        }
        if self.table.len() == self.table.capacity() {
            // The table doubles, and the old one is there until all have moved.
            let more = 2 * (self.table.capacity() as u64 * 8 / 7) * SLOT_BYTES;
            if machine::available_bytes().is_some_and(|free| free < more + MARGIN_BYTES) {
                self.full = true;
                self.table = HashTable::new();
                return false;
            }
        }
        self.table.insert_unique(fingerprint as u64, fingerprint, |fingerprint| *fingerprint as u64);
        false
    }

    /// How many keys had been seen before, or `None` if memory became too short to know.
    pub(crate) fn duplicates(&self) -> Option<u64> {
        if self.full { None } else { Some(self.duplicates) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_known() {
        let mut seen = Seen::default();
        for round in 0..3 {
            for number in 0u32..10_000 {
                assert_eq!(seen.note(&number.to_le_bytes()), round > 0);
            }
        }
        assert_eq!(seen.duplicates(), Some(20_000));
        assert!(!seen.note(b"") && seen.note(b""));
    }
}

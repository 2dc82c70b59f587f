//! [`Random`]: splitmix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators", 2014), and with
//! its mixing of 64 bits a hash, by which the states of a disk are told apart. Neither withstands an attacker.

/// A generator of numbers, the same for the same seed.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `limit`, which is not 0.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// Another number for every number, whose bits all depend on all of its bits.
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// The hash of nothing. Not a small number, because what it is combined with are small numbers.
pub(super) const NOTHING: u64 = 0x9e37_79b9_7f4a_7c15;

/// The hash of what has the hash `before` and `part` behind it.
pub(super) fn combine(before: u64, part: u64) -> u64 {
    mix((before.rotate_left(23) ^ part).wrapping_mul(NOTHING))
}

/// The hash of some bytes.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut hash = combine(NOTHING, bytes.len() as u64);
    for &word in words {
        // Half of what `combine` does is enough between two words, and twice as fast.
        hash = (hash.rotate_left(23) ^ u64::from_le_bytes(word)).wrapping_mul(NOTHING);
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    combine(hash, u64::from_le_bytes(last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn what_is_small_and_regular_has_hashes_of_its_own() {
        let mut hashes = HashSet::new();
        let mut count = 0;
        for a in 0..40 {
            for b in 0..40 {
                for hash in
                    [combine(combine(NOTHING, a), b), hash(&[a.to_le_bytes(), b.to_le_bytes()].concat())]
                {
                    count += 1;
                    hashes.insert(hash);
                }
            }
            for length in 17..60 {
                count += 1;
                hashes.insert(hash(&vec![a as u8; length]));
            }
        }
        assert_eq!(hashes.len(), count);
    }

    #[test]
    fn the_numbers_are_those_of_splitmix64() {
        let mut random = Random(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
        assert!((0..100).all(|_| random.below(3) < 3));
    }
}

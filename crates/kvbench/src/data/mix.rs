//! Numbers that look random and can be taken back: a bijection of all 64-bit numbers, and bijections of any
//! range `0..n`.

/// A bijection of the 64-bit numbers whose output bits depend on all input bits: the finaliser of
/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014), after its
/// increment.
#[inline]
pub(crate) const fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A seeded bijection of `0..len`: a four-round Feistel network over the next even number of bits, walked
/// until it lands inside (fewer than four steps on average).
#[derive(Clone, Copy)]
pub(crate) struct Permutation {
    len: u64,
    half_bits: u32,
    seed: u64,
}

impl Permutation {
    /// The bijection of `0..len` that this seed picks.
    pub(crate) fn new(len: u64, seed: u64) -> Self {
        let bits = u64::BITS - len.saturating_sub(1).leading_zeros();
        Permutation { len, half_bits: bits.div_ceil(2).max(1), seed: mix(seed) }
    }

    /// Where `at` goes; a number outside of `0..len` stays where it is.
    #[inline]
    pub(crate) fn apply(&self, at: u64) -> u64 {
        if at >= self.len {
            return at;
        }
        let mask = (1u64 << self.half_bits) - 1;
        let mut number = at;
        loop {
            let (mut left, mut right) = (number >> self.half_bits, number & mask);
            for round in 0..4 {
                let f = mix(right ^ self.seed.wrapping_add(round << 56)) & mask;
                (left, right) = (right, left ^ f);
            }
            number = left << self.half_bits | right;
            if number < self.len {
                return number;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutations_hit_every_place_once() {
        for len in [0, 1, 2, 3, 4, 5, 16, 17, 1000, 65_537] {
            let p = Permutation::new(len, 7);
            let mut seen = vec![false; len as usize];
            for i in 0..len {
                assert!(!std::mem::replace(&mut seen[p.apply(i) as usize], true), "{len}: {i} collides");
            }
            assert_eq!(p.apply(len + 3), len + 3);
        }
        let fixed = (0..1000).filter(|&i| Permutation::new(1000, 1).apply(i) == i).count();
        assert!(fixed < 20, "{fixed} of 1000 stayed");
    }
}

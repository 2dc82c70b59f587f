//! Numbers that look random and can be taken back: a bijection of all 64-bit numbers, bijections of any range `0..n`,
//! and a stream of numbers.

use forrest_base::random;
pub(crate) use random::mix;
use std::convert::Infallible;

/// A stream of random numbers.
pub(crate) struct Random(random::Random);

impl Random {
    /// The stream of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Random(random::Random(seed))
    }

    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0.next()
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// Above 0, at most 1.
    pub(crate) fn share(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Fills bytes.
    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill(bytes);
    }
}

impl rand::TryRng for Random {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.next() as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.next())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.fill(bytes);
        Ok(())
    }
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

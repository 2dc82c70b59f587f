//! Numbers that follow from a seed: SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
//! generators", 2014). They are not cryptographically secure.
//!
//! Data sets of the benchmark, checksums of pages and seeds in reports depend on these functions: what they return for
//! an argument never changes.

/// What each number adds to the state: 2^64 divided by the golden ratio.
pub const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finalizer: a bijection of the 64-bit numbers in which each bit of the result depends on all bits of the
/// argument.
#[inline]
pub const fn finalize(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// The first number of the stream with this seed. Also a bijection; 0 does not become 0.
#[inline]
pub const fn mix(seed: u64) -> u64 {
    finalize(seed.wrapping_add(STEP))
}

/// A number that follows from some others and from nothing else.
#[inline]
pub fn mix_all(numbers: &[u64]) -> u64 {
    numbers.iter().fold(0, |state, number| mix(state ^ number))
}

/// A stream of numbers, the same for the same seed. The seed is all of its state.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next number.
    #[inline]
    #[expect(
        clippy::should_implement_trait,
        reason = "the stream has no end, so an Option would be in the way"
    )]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        finalize(self.0)
    }

    /// A number below `end`, which is not 0.
    #[inline]
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A place among `len`, which is not 0.
    #[inline]
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// Puts the items in an order that follows from the state.
    #[inline]
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.index(i + 1));
        }
    }

    /// Appends `count` random bytes.
    #[inline]
    pub fn append(&mut self, count: usize, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + count, 0);
        self.fill(&mut out[start..]);
    }

    /// Fills bytes, eight with each number.
    #[inline]
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let len = chunk.len();
            chunk.copy_from_slice(&self.next().to_le_bytes()[..len]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_splitmix64() {
        let mut random = Random(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
        assert_eq!(mix(1_234_567), 6_457_827_717_110_365_317);
        assert!((0..100).all(|_| random.below(3) < 3 && random.index(5) < 5));
    }

    #[test]
    fn bytes_are_those_of_the_numbers() {
        let mut bytes = [0; 12];
        Random(5).fill(&mut bytes);
        let mut random = Random(5);
        let numbers = [random.next().to_le_bytes(), random.next().to_le_bytes()].concat();
        assert_eq!(bytes, numbers[..12]);
        let mut appended = vec![1];
        Random(5).append(12, &mut appended);
        assert_eq!(appended[1..], bytes);
    }

    #[test]
    fn a_shuffle_keeps_all_items() {
        let mut items: Vec<u32> = (0..100).collect();
        Random(7).shuffle(&mut items);
        assert!(!items.is_sorted());
        items.sort_unstable();
        assert!(items.into_iter().eq(0..100));
    }
}

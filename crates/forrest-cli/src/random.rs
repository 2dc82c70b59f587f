//! Numbers that follow from a seed (SplitMix64, by Steele, Lea and Flood, 2014).

/// What each number adds to the state: the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A stream of numbers.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Puts the items in an order that follows from the state.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }

    /// Appends `count` bytes.
    pub(crate) fn bytes(&mut self, count: usize, out: &mut Vec<u8>) {
        let end = out.len() + count;
        while out.len() < end {
            out.extend_from_slice(&self.next().to_le_bytes());
        }
        out.truncate(end);
    }
}

/// A number that follows from some others and from nothing else.
pub(crate) fn mix(numbers: &[u64]) -> u64 {
    numbers.iter().fold(0, |state, number| Random(state ^ number).next())
}

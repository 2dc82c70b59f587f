//! Random numbers that a seed replays, for the tests of this directory. Not for anything that an adversary may
//! guess. The generator is xorshift64* (Vigna, ACM Transactions on Mathematical Software 42, 2016).

/// A generator; its state is never 0.
pub(crate) struct Random(u64);

impl Random {
    /// Spreads seeds that differ by little, so that threads may be numbered into one.
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Any number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }
}

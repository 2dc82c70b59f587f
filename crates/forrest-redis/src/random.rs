//! [`Random`]: numbers that choose members and keys. They are not secret.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Xorshift with 64 bits, whose state is never 0.
pub(crate) struct Random(u64);

impl Random {
    /// With a seed from the system.
    pub(crate) fn new() -> Random {
        Random(RandomState::new().build_hasher().finish() | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below another one, which is not 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }
}

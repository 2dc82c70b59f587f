//! The pairs of a store's measurement: 16-byte random keys, 100-byte values that cannot be compressed; and the choice
//! of those that are asked for.
//!
//! A key is a pure function of seed and number, a value of that and how often the pair was written, so what a store
//! must answer is known without keeping it.

use crate::data::{Permutation, fold_bytes, mix};

/// Length of a key, in bytes.
pub(crate) const KEY_BYTES: usize = 16;
/// Length of a value, in bytes.
pub(crate) const VALUE_BYTES: usize = 100;
/// Bytes of a pair as a user counts them.
pub(crate) const PAIR_BYTES: u64 = (KEY_BYTES + VALUE_BYTES) as u64;
/// Numbers from here on are keys that no step ever writes.
const ABSENT: u64 = 1 << 40;

/// A key.
pub(crate) type Key = [u8; KEY_BYTES];
/// A value.
pub(crate) type Value = [u8; VALUE_BYTES];

/// Makes pairs by number, and knows which are in the store and how often each was written.
pub(crate) struct Pairs {
    seed: u64,
    /// Writes of each pair after the first, counted round.
    rewrites: Vec<u8>,
    /// Sum over all pairs, as they are now, of [`fold`].
    pub(crate) sum: u64,
}

/// A number that depends on every byte of a pair.
#[inline]
pub(crate) fn fold(key: &[u8], value: &[u8]) -> u64 {
    fold_bytes(key).wrapping_add(fold_bytes(value))
}

impl Pairs {
    /// No pairs yet.
    pub(crate) fn new(seed: u64) -> Self {
        Pairs { seed: mix(seed), rewrites: Vec::new(), sum: 0 }
    }

    /// Pairs in the store.
    pub(crate) fn len(&self) -> u64 {
        self.rewrites.len() as u64
    }

    /// The key of this number. No two have the same: the first half is a bijection of the number.
    pub(crate) fn key(&self, number: u64) -> Key {
        let high = mix(number ^ self.seed);
        let low = mix(high ^ self.seed.rotate_left(32));
        (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
    }

    /// A key that is never in the store.
    pub(crate) fn absent(&self, number: u64) -> Key {
        self.key(ABSENT + number)
    }

    /// What the pair of this number holds now.
    pub(crate) fn value(&self, number: u64) -> Value {
        let rewrites = self.rewrites.get(number as usize).copied().unwrap_or(0);
        let mut state = mix(number.wrapping_mul(257).wrapping_add(u64::from(rewrites)) ^ self.seed);
        let mut value = [0; VALUE_BYTES];
        for part in value.chunks_mut(size_of::<u64>()) {
            state = mix(state);
            part.copy_from_slice(&state.to_le_bytes()[..part.len()]);
        }
        value
    }

    /// The next pair that is to be written.
    pub(crate) fn add(&mut self) -> (Key, Value) {
        let number = self.len();
        self.rewrites.push(0);
        let (key, value) = (self.key(number), self.value(number));
        self.sum = self.sum.wrapping_add(fold(&key, &value));
        (key, value)
    }

    /// The pair of this number with another value than before, to be written.
    pub(crate) fn rewrite(&mut self, number: u64) -> (Key, Value) {
        let old = fold_bytes(&self.value(number));
        let rewrites = &mut self.rewrites[number as usize];
        *rewrites = rewrites.wrapping_add(1);
        let value = self.value(number);
        self.sum = self.sum.wrapping_sub(old).wrapping_add(fold_bytes(&value));
        (self.key(number), value)
    }
}

/// The greatest key below `key`. For a key of [`Pairs`] it is not one of them, so what is sought from it is `key`.
pub(crate) fn just_below(key: &Key) -> Key {
    u128::from_be_bytes(*key).wrapping_sub(1).to_be_bytes()
}

/// How the pairs that are asked for are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spread {
    /// All alike.
    Uniform,
    /// Few of them often, as YCSB does it.
    Zipfian,
}

/// Chooses pairs.
pub(crate) enum Choice {
    /// Each once in every round, in random order.
    Uniform(Permutation, u64),
    /// By rank; which pair has which rank is random.
    Zipfian(Permutation, Zipf),
}

impl Choice {
    /// A choice among the first `len` pairs.
    pub(crate) fn new(spread: Spread, len: u64, seed: u64) -> Self {
        let order = Permutation::new(len, seed);
        match spread {
            Spread::Uniform => Choice::Uniform(order, len),
            Spread::Zipfian => Choice::Zipfian(order, Zipf::new(len, seed)),
        }
    }

    /// The number of the pair that operation `at` asks for.
    pub(crate) fn pick(&self, at: u64) -> u64 {
        match self {
            Choice::Uniform(order, len) => order.apply(at % len),
            Choice::Zipfian(order, zipf) => order.apply(zipf.rank(at)),
        }
    }
}

/// Skew of YCSB.
const THETA: f64 = 0.99;

/// Ranks with a Zipfian distribution, by the method of Gray and others: "Quickly generating billion-record synthetic
/// databases", 1994.
pub(crate) struct Zipf {
    len: u64,
    seed: u64,
    zeta: f64,
    eta: f64,
}

impl Zipf {
    fn new(len: u64, seed: u64) -> Self {
        let zeta = (1..=len).map(|rank| (rank as f64).powf(-THETA)).sum();
        let zeta_2 = 1.0 + 0.5f64.powf(THETA);
        let eta = (1.0 - (2.0 / len as f64).powf(1.0 - THETA)) / (1.0 - zeta_2 / zeta);
        Zipf { len, seed: mix(seed ^ 2), zeta, eta }
    }

    fn rank(&self, at: u64) -> u64 {
        let uniform = (mix(at ^ self.seed) >> 11) as f64 / (1u64 << 53) as f64;
        let scaled = uniform * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + 0.5f64.powf(THETA) {
            return 1.min(self.len - 1);
        }
        let share = (self.eta * uniform - self.eta + 1.0).powf(1.0 / (1.0 - THETA));
        ((self.len as f64 * share) as u64).min(self.len - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_follow_what_is_written() {
        let mut pairs = Pairs::new(7);
        for _ in 0..100 {
            pairs.add();
        }
        assert_ne!(pairs.rewrite(3).1, pairs.rewrite(3).1);
        let sum = (0..100).fold(0u64, |sum, at| sum.wrapping_add(fold(&pairs.key(at), &pairs.value(at))));
        assert_eq!(pairs.sum, sum);
    }

    #[test]
    fn below_a_key_is_no_other() {
        let pairs = Pairs::new(7);
        let key = pairs.key(1);
        assert!(just_below(&key) < key && just_below(&key)[..8] == key[..8]);
    }

    #[test]
    fn zipfian_choices_are_skewed_and_in_range() {
        let choice = Choice::new(Spread::Zipfian, 1000, 5);
        let mut counts = vec![0; 1000];
        (0..100_000).for_each(|at| counts[choice.pick(at) as usize] += 1);
        counts.sort_unstable();
        // 1 / zeta(1000) is about 13 %.
        assert!((11_000..15_000).contains(&counts[999]), "{}", counts[999]);
        assert!(Choice::new(Spread::Zipfian, 1, 5).pick(9) == 0);
    }
}

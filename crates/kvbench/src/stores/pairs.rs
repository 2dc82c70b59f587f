//! The pairs of a store's measurement: 16-byte random keys, or those of a file; 100-byte values that cannot be
//! compressed or are text.
//!
//! A key is a pure function of its source and number, a value of seed, number and how often the pair was written, so
//! what a store must answer is known without keeping it.

use crate::data::{fold_bytes, mix};
use crate::job::StoreValues;
use std::io::Write;

/// Length of a key, in bytes.
pub(crate) const KEY_BYTES: usize = 16;
/// Length of a value, in bytes.
pub(crate) const VALUE_BYTES: usize = 100;
/// Bytes of a pair as a user counts them.
pub(crate) const PAIR_BYTES: u64 = (KEY_BYTES + VALUE_BYTES) as u64;
/// Numbers from here on are keys that no step ever writes.
const ABSENT: u64 = 1 << 40;

/// A random key.
pub(crate) type Key = [u8; KEY_BYTES];
/// A value.
pub(crate) type Value = [u8; VALUE_BYTES];

/// Where keys come from. They are made before the clock starts.
pub(crate) trait Keys: Sync {
    /// A key.
    type Key: AsRef<[u8]> + Send + Sync;
    /// The key of this number. No two have the same.
    fn key(&self, number: u64) -> Self::Key;
    /// A key that has no number.
    fn absent(&self, number: u64) -> Self::Key;
    /// Where a seek that must find `key` begins: between it and any smaller one.
    fn before(&self, key: &Self::Key) -> Self::Key;
}

/// Random keys, of a mixed seed.
pub(crate) struct RandomKeys(u64);

impl Keys for RandomKeys {
    type Key = Key;

    /// The first half is a bijection of the number.
    fn key(&self, number: u64) -> Key {
        let high = mix(number ^ self.0);
        let low = mix(high ^ self.0.rotate_left(32));
        (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
    }

    fn absent(&self, number: u64) -> Key {
        self.key(ABSENT + number)
    }

    fn before(&self, key: &Key) -> Key {
        just_below(key)
    }
}

/// Makes pairs by number, and knows which are in the store and how often each was written.
pub(crate) struct Pairs<K = RandomKeys> {
    /// The keys.
    pub(crate) keys: K,
    seed: u64,
    values: StoreValues,
    /// Writes of each pair after the first, counted round.
    rewrites: Vec<u8>,
    /// Sum over all pairs, as they are now, of [`fold`].
    pub(crate) sum: u64,
    /// Bytes of all pairs in the store, as a user counts them.
    pub(crate) stored_bytes: u64,
    /// The same of all pairs that were to be written so far.
    pub(crate) given_bytes: u64,
}

/// A number that depends on every byte of a pair.
#[inline]
pub(crate) fn fold(key: &[u8], value: &[u8]) -> u64 {
    fold_bytes(key).wrapping_add(fold_bytes(value))
}

impl Pairs {
    /// No pairs yet; keys and values will be random.
    pub(crate) fn new(seed: u64) -> Self {
        Pairs::with(seed, StoreValues::Random)
    }

    /// The same with such values.
    pub(crate) fn with(seed: u64, values: StoreValues) -> Self {
        Pairs::of(RandomKeys(mix(seed)), seed, values)
    }
}

impl<K: Keys> Pairs<K> {
    /// No pairs yet, with keys from elsewhere.
    pub(crate) fn of(keys: K, seed: u64, values: StoreValues) -> Self {
        let (rewrites, sum, stored_bytes, given_bytes) = (Vec::new(), 0, 0, 0);
        Pairs { keys, seed: mix(seed), values, rewrites, sum, stored_bytes, given_bytes }
    }

    /// Pairs in the store.
    pub(crate) fn len(&self) -> u64 {
        self.rewrites.len() as u64
    }

    /// What it has taken of this process's memory since it was made, in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.rewrites.len() as u64
    }

    /// The key of this number.
    pub(crate) fn key(&self, number: u64) -> K::Key {
        self.keys.key(number)
    }

    /// Key and value of this number.
    pub(crate) fn pair(&self, number: u64) -> (K::Key, Value) {
        (self.key(number), self.value(number))
    }

    /// A key that is never in the store.
    pub(crate) fn absent(&self, number: u64) -> K::Key {
        self.keys.absent(number)
    }

    /// What the pair of this number holds now.
    pub(crate) fn value(&self, number: u64) -> Value {
        let rewrites = self.rewrites.get(number as usize).copied().unwrap_or(0);
        let mut state = mix(number.wrapping_mul(257).wrapping_add(u64::from(rewrites)) ^ self.seed);
        let mut value = [0; VALUE_BYTES];
        if self.values == StoreValues::Events {
            event(state, number, &mut value);
            return value;
        }
        for part in value.chunks_mut(size_of::<u64>()) {
            state = mix(state);
            part.copy_from_slice(&state.to_le_bytes()[..part.len()]);
        }
        value
    }

    /// The next pair that is to be written.
    pub(crate) fn add(&mut self) -> (K::Key, Value) {
        let number = self.len();
        self.rewrites.push(0);
        let (key, value) = self.pair(number);
        self.sum = self.sum.wrapping_add(fold(key.as_ref(), &value));
        self.stored_bytes += self.give(&key);
        (key, value)
    }

    /// The pair of this number with another value than before, to be written.
    pub(crate) fn rewrite(&mut self, number: u64) -> (K::Key, Value) {
        let old = fold_bytes(&self.value(number));
        let rewrites = &mut self.rewrites[number as usize];
        *rewrites = rewrites.wrapping_add(1);
        let (key, value) = self.pair(number);
        self.sum = self.sum.wrapping_sub(old).wrapping_add(fold_bytes(&value));
        self.give(&key);
        (key, value)
    }

    /// Counts the bytes of a pair that is to be written.
    fn give(&mut self, key: &K::Key) -> u64 {
        let bytes = (key.as_ref().len() + VALUE_BYTES) as u64;
        self.given_bytes += bytes;
        bytes
    }
}

/// An event of a service, as a log of them has it.
fn event(random: u64, number: u64, out: &mut Value) {
    let part = |at: u32, of: u64| (random >> at) % of;
    let (levels, kinds) = (["info", "info", "warn", "fail"], ["order", "login", "query", "parts"]);
    let (day, hour, minute) = (number / 86_400 % 28 + 1, number / 3_600 % 24, number / 60 % 60);
    out.fill(b' ');
    let written = write!(
        &mut out[..],
        r#"{{"at":"2026-11-{day:02}T{hour:02}:{minute:02}:{:02}Z","level":"{}","host":"web-{:02}","event":"{}","user":{:06},"ms":{:4}}}"#,
        number % 60,
        levels[part(0, 4) as usize],
        part(8, 40),
        kinds[part(16, 4) as usize],
        part(24, 1_000_000),
        part(48, 2_000)
    );
    written.expect("it has 100 bytes");
}

/// The greatest key below `key`. For a key of [`Pairs`] it is absent, so a seek to it finds `key`.
pub(crate) fn just_below(key: &Key) -> Key {
    u128::from_be_bytes(*key).wrapping_sub(1).to_be_bytes()
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
        assert_eq!((pairs.stored_bytes, pairs.given_bytes), (100 * PAIR_BYTES, 102 * PAIR_BYTES));
    }

    #[test]
    fn events_are_text_and_differ() {
        let pairs = Pairs::with(7, StoreValues::Events);
        let texts: Vec<_> = (0..100).map(|number| pairs.value(number)).collect();
        assert!(texts.iter().all(|text| text.is_ascii() && text.starts_with(b"{\"at\":\"2026-11-01T00:0")));
        assert_eq!(pairs.value(3), texts[3]);
        assert!(texts.windows(2).all(|two| two[0] != two[1]));
        let longest = texts.iter().map(|text| text.trim_ascii_end().len()).max().unwrap();
        assert!((95..=VALUE_BYTES).contains(&longest), "{longest}");
    }

    #[test]
    fn below_a_key_is_no_other() {
        let pairs = Pairs::new(7);
        let key = pairs.key(1);
        assert!(just_below(&key) < key && just_below(&key)[..8] == key[..8]);
    }
}

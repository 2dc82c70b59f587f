//! The data of llds's own benchmark: 64-bit integer keys, and the decimal string of a counter for a value.

use super::decimal::Decimal;
use super::{Block, Kind, Source, Walk, be, fold_bytes, mix, number_keys};

/// `u64` to the decimal string of the counter that made the key.
pub(crate) struct Counters;

/// Turns a counter into its key and its value.
#[derive(Clone, Copy)]
pub(crate) struct CounterSource {
    seed: u64,
    len: u64,
}

/// Keys with their values, written out.
#[derive(Default)]
pub(crate) struct CounterBlock {
    keys: Vec<u64>,
    values: Vec<Decimal>,
}

impl CounterSource {
    /// Counters from 0 to `len`, exclusive.
    pub(crate) fn new(len: u64, seed: u64) -> Self {
        CounterSource { seed: mix(seed), len }
    }

    /// The key of a counter: random-looking, and no two counters have the same.
    #[inline]
    pub(crate) fn key(&self, counter: u64) -> u64 {
        mix(counter ^ self.seed)
    }
}

impl Source<Counters> for CounterSource {
    fn push_pair(&self, key: u64, value: u64, out: &mut CounterBlock) {
        out.keys.push(self.key(key));
        out.values.push(Decimal::new(value));
    }

    fn push_key(&self, key: &[u8], value: u64, out: &mut CounterBlock) {
        out.keys.push(be(key));
        out.values.push(Decimal::new(value));
    }

    fn len(&self) -> u64 {
        self.len
    }
}

impl Block<Counters> for CounterBlock {
    fn len(&self) -> usize {
        self.keys.len()
    }

    #[inline]
    fn key(&self, at: usize) -> u64 {
        self.keys[at]
    }

    #[inline]
    fn value(&self, at: usize) -> &[u8] {
        self.values[at].as_bytes()
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.values.clear();
    }
}

impl Kind for Counters {
    number_keys!();

    type Value<'a> = &'a [u8];
    type ValueBytes<'a> = &'a [u8];
    type Source = CounterSource;
    type Block = CounterBlock;

    fn source(len: u64, seed: u64, _: Walk) -> CounterSource {
        CounterSource::new(len, seed)
    }

    #[inline]
    fn value_bytes(value: Self::Value<'_>) -> Self::ValueBytes<'_> {
        value
    }

    #[inline]
    fn value(bytes: &[u8]) -> &[u8] {
        bytes
    }

    #[inline]
    fn fold_value(value: &[u8]) -> u64 {
        fold_bytes(value)
    }

    #[inline]
    fn pair_bytes(_: u64, value: &[u8]) -> u64 {
        8 + value.len() as u64
    }
}

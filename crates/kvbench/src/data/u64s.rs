//! 64-bit keys with 64-bit values: random ones, or the numbers of a [`Set`].

use super::{Block, KeyForm, Kind, Set, Source, ValueForm, Walk, be, mix, number_keys};

/// `u64` to `u64`.
pub(crate) struct U64;

/// Numbers the keys by a bijection, so that they are random, distinct, and need no memory.
pub(crate) struct U64Source {
    seed: u64,
    len: u64,
    /// In place of random keys.
    set: Option<&'static Set>,
}

/// Keys and values in two arrays.
#[derive(Default)]
pub(crate) struct U64Block {
    keys: Vec<u64>,
    values: Vec<u64>,
}

impl U64Source {
    /// The data set of this many pairs.
    pub(crate) fn new(len: u64, seed: u64) -> Self {
        U64Source { seed: mix(seed), len, set: None }
    }

    fn key(&self, number: u64) -> u64 {
        let random = || mix(number ^ self.seed);
        let of_set = |set: &Set| match number.checked_sub(set.len()) {
            None => set.number(number),
            Some(absent) => set.absent_number(absent),
        };
        self.set.map_or_else(random, |set| of_set(set).unwrap_or_else(random))
    }
}

impl Source<U64> for U64Source {
    fn push_pair(&self, key: u64, value: u64, out: &mut U64Block) {
        out.keys.push(self.key(key));
        out.values.push(mix(value.wrapping_add(self.seed)));
    }

    fn push_key(&self, key: &[u8], value: u64, out: &mut U64Block) {
        out.keys.push(be(key));
        out.values.push(mix(value.wrapping_add(self.seed)));
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn keys_max(&self) -> u64 {
        self.set.map_or(u64::MAX, Set::keys_max)
    }
}

impl Block<U64> for U64Block {
    fn len(&self) -> usize {
        self.keys.len()
    }

    #[inline]
    fn key(&self, at: usize) -> u64 {
        self.keys[at]
    }

    #[inline]
    fn value(&self, at: usize) -> u64 {
        self.values[at]
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.values.clear();
    }
}

impl Kind for U64 {
    number_keys!();

    type Value<'a> = u64;
    type ValueBytes<'a> = [u8; 8];
    type Source = U64Source;
    type Block = U64Block;

    fn source(len: u64, seed: u64, walk: Walk) -> U64Source {
        let set = walk.set().filter(|set| set.number(0).is_some());
        let len = set.map_or(len, |set| len.min(set.len()));
        U64Source { set, ..U64Source::new(len, seed) }
    }

    #[inline]
    fn value_bytes(value: Self::Value<'_>) -> Self::ValueBytes<'_> {
        value.to_be_bytes()
    }

    #[inline]
    fn value(bytes: &[u8]) -> u64 {
        be(bytes)
    }

    #[inline]
    fn fold_value(value: u64) -> u64 {
        value
    }

    #[inline]
    fn pair_bytes(_: u64, _: u64) -> u64 {
        16
    }
}

impl KeyForm<U64> for u64 {
    #[inline]
    fn own(key: u64) -> u64 {
        key
    }

    #[inline]
    fn found(&self) -> u64 {
        *self
    }
}

impl ValueForm<U64> for u64 {
    #[inline]
    fn own(value: u64) -> u64 {
        value
    }

    #[inline]
    fn show(&self) -> u64 {
        *self
    }
}

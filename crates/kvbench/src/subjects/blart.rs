//! blart: an adaptive radix tree for one writer. It takes no key that is a prefix of another, so 64-bit keys
//! are eight big-endian bytes, and strings, which hold no NUL, get one at their end.

use super::{Reader, Subject, Writer};
use crate::data::{Kind, Strings, Text, U64};
use blart::TreeMap;
use std::ops::Bound;

/// The tree of 64-bit keys.
pub(crate) struct Fixed(TreeMap<[u8; 8], u64>);

/// The tree of strings.
pub(crate) struct Terminated(TreeMap<Box<[u8]>, Box<[u8]>>);

impl Subject<U64> for Fixed {
    const BACK: bool = true;
    super::by_itself!(Fixed(TreeMap::new()));
}

impl Reader<U64> for &Fixed {
    #[inline]
    fn get<R>(&self, key: u64, see: impl FnOnce(u64) -> R) -> Option<R> {
        self.0.get(&key.to_be_bytes()).map(|value| see(*value))
    }

    #[inline]
    fn scan(&self, from: u64, count: usize, mut see: impl FnMut(u64, u64)) {
        let range = self.0.range::<[u8; 8], _>((Bound::Included(&from.to_be_bytes()), Bound::Unbounded));
        range.take(count).for_each(|(key, value)| see(u64::from_be_bytes(*key), *value));
    }

    #[inline]
    fn iterate(&self, mut see: impl FnMut(u64, u64)) {
        self.0.iter().for_each(|(key, value)| see(u64::from_be_bytes(*key), *value));
    }

    #[inline]
    fn iterate_back(&self, mut see: impl FnMut(u64, u64)) {
        self.0.iter().rev().for_each(|(key, value)| see(u64::from_be_bytes(*key), *value));
    }
}

impl Writer<U64> for &mut Fixed {
    #[inline]
    fn insert(&mut self, key: u64, value: u64) {
        self.0.insert(key.to_be_bytes(), value);
    }

    #[inline]
    fn remove(&mut self, key: u64) -> bool {
        self.0.remove(&key.to_be_bytes()).is_some()
    }
}

impl Subject<Strings> for Terminated {
    const BACK: bool = true;
    super::by_itself!(Terminated(TreeMap::new()));
}

/// A stored key without its NUL.
fn shown(key: &[u8]) -> &[u8] {
    Strings::found(&key[..key.len() - 1])
}

impl Reader<Strings> for &Terminated {
    #[inline]
    fn get<R>(&self, key: Text<'_>, see: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.0.get(key.with_nul()).map(|value| see(value))
    }

    #[inline]
    fn scan(&self, from: Text<'_>, count: usize, mut see: impl FnMut(&[u8], &[u8])) {
        let range = self.0.range::<[u8], _>((Bound::Included(from.with_nul()), Bound::Unbounded));
        range.take(count).for_each(|(key, value)| see(shown(key), value));
    }

    #[inline]
    fn iterate(&self, mut see: impl FnMut(&[u8], &[u8])) {
        self.0.iter().for_each(|(key, value)| see(shown(key), value));
    }

    #[inline]
    fn iterate_back(&self, mut see: impl FnMut(&[u8], &[u8])) {
        self.0.iter().rev().for_each(|(key, value)| see(shown(key), value));
    }
}

impl Writer<Strings> for &mut Terminated {
    #[inline]
    fn insert(&mut self, key: Text<'_>, value: &[u8]) {
        let done = self.0.try_insert(key.with_nul().into(), value.into());
        assert!(done.is_ok(), "a key that ends in its only NUL is no prefix of another");
    }

    #[inline]
    fn remove(&mut self, key: Text<'_>) -> bool {
        self.0.remove(key.with_nul()).is_some()
    }
}

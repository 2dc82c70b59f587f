//! rart: an adaptive radix tree for one writer. Like blart it takes no key that is a prefix of another, so 64-bit keys
//! are eight big-endian bytes, and strings, which hold no NUL, get one at their end.
//!
//! A range of 0.11 takes as long as there are keys before its first (milliseconds with a hundred thousand), so that
//! nothing in order is asked of it.

use super::{Reader, Subject, Writer};
use crate::data::{Strings, Text, U64};
use rart::{AdaptiveRadixTree, ArrayKey, KeyTrait, VectorKey};

/// The tree of 64-bit keys. With keys of at most eight bytes a removal breaks an assertion of 0.11, which wants room
/// for one byte more than it uses.
pub(crate) struct Fixed(AdaptiveRadixTree<ArrayKey<16>, u64>);

/// The tree of strings.
pub(crate) struct Terminated(AdaptiveRadixTree<VectorKey, Box<[u8]>>);

impl Subject<U64> for Fixed {
    const ORDERED: bool = false;
    super::by_itself!(Fixed(AdaptiveRadixTree::new()));
}

impl Reader<U64> for &Fixed {
    #[inline]
    fn get<R>(&self, key: u64, see: impl FnOnce(u64) -> R) -> Option<R> {
        self.0.get_bytes(&key.to_be_bytes()).map(|value| see(*value))
    }

    #[inline]
    fn scan(&self, from: u64, count: usize, mut see: impl FnMut(u64, u64)) {
        let range = self.0.range(ArrayKey::from(from)..);
        range.take(count).for_each(|(key, value)| see(key.to_be_u64(), *value));
    }

    #[inline]
    fn iterate(&self, mut see: impl FnMut(u64, u64)) {
        self.0.iter().for_each(|(key, value)| see(key.to_be_u64(), *value));
    }
}

impl Writer<U64> for &mut Fixed {
    #[inline]
    fn insert(&mut self, key: u64, value: u64) {
        self.0.insert(key, value);
    }

    #[inline]
    fn remove(&mut self, key: u64) -> bool {
        self.0.remove(key).is_some()
    }
}

impl Subject<Strings> for Terminated {
    const ORDERED: bool = false;
    super::by_itself!(Terminated(AdaptiveRadixTree::new()));
}

/// A stored key without its NUL.
fn shown(key: &[u8]) -> &[u8] {
    &key[..key.len() - 1]
}

impl Reader<Strings> for &Terminated {
    #[inline]
    fn get<R>(&self, key: Text<'_>, see: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.0.get_bytes(key.with_nul()).map(|value| see(value))
    }

    #[inline]
    fn scan(&self, from: Text<'_>, count: usize, mut see: impl FnMut(&[u8], &[u8])) {
        let range = self.0.range(VectorKey::new_from_slice(from.with_nul())..);
        range.take(count).for_each(|(key, value)| see(shown(key.as_ref()), value));
    }

    #[inline]
    fn iterate(&self, mut see: impl FnMut(&[u8], &[u8])) {
        let mut whole = Vec::new();
        self.0.for_each_view(|key, value| {
            whole.clear();
            key.write_into(&mut whole);
            see(shown(&whole), value);
        });
    }
}

impl Writer<Strings> for &mut Terminated {
    #[inline]
    fn insert(&mut self, key: Text<'_>, value: &[u8]) {
        self.0.insert_k(&VectorKey::new_from_slice(key.with_nul()), value.into());
    }

    #[inline]
    fn remove(&mut self, key: Text<'_>) -> bool {
        self.0.remove_k(&VectorKey::new_from_slice(key.with_nul())).is_some()
    }
}

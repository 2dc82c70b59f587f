//! The masstree crate: a trie of B+-trees, concurrent. Its fastest forms: values of eight bytes inline, byte
//! strings boxed, and the visitor scans that check a leaf once. Keys of at most 256 bytes.

use super::{Pages, Reader, Subject, Writer};
use crate::data::{Strings, Text, U64};
use masstree::{MassTree, MassTree15, RangeBound};
use seize::LocalGuard;

/// The tree of 64-bit keys and values.
pub(crate) struct Inline(MassTree<u64>);

/// A string as it is stored.
type Value = Box<[u8]>;

/// The tree of strings.
pub(crate) struct Boxed(MassTree15<Value>);

/// A tree and the guard under which it is used.
pub(crate) struct Session<'a, T> {
    tree: &'a T,
    guard: LocalGuard<'a>,
}

impl Subject<U64> for Inline {
    type Reader<'a> = Session<'a, MassTree<u64>>;
    type Writer<'a> = Session<'a, MassTree<u64>>;

    fn build(_: Pages) -> Result<Self, String> {
        Ok(Inline(MassTree::new()))
    }

    fn reader(&self) -> Session<'_, MassTree<u64>> {
        Session { tree: &self.0, guard: self.0.guard() }
    }

    fn writer(&mut self) -> Session<'_, MassTree<u64>> {
        self.reader()
    }

    fn shared_writer(&self) -> Option<Session<'_, MassTree<u64>>> {
        Some(self.reader())
    }
}

impl Reader<U64> for Session<'_, MassTree<u64>> {
    #[inline]
    fn get<R>(&self, key: u64, see: impl FnOnce(u64) -> R) -> Option<R> {
        self.tree.get_with_guard(&key.to_be_bytes(), &self.guard).map(see)
    }

    #[inline]
    fn scan(&self, from: u64, count: usize, mut see: impl FnMut(u64, u64)) {
        let mut left = count;
        let visit = |key: &[u8], value| {
            see(key.try_into().map_or(u64::MAX, u64::from_be_bytes), value);
            left -= 1;
            left > 0
        };
        let from = from.to_be_bytes();
        self.tree.scan_intra_leaf_batch(
            RangeBound::Included(&from),
            RangeBound::Unbounded,
            visit,
            &self.guard,
        );
    }

    #[inline]
    fn iterate(&self, see: impl FnMut(u64, u64)) {
        self.scan(0, usize::MAX, see);
    }
}

impl Writer<U64> for Session<'_, MassTree<u64>> {
    #[inline]
    fn insert(&mut self, key: u64, value: u64) {
        self.tree.insert_with_guard(&key.to_be_bytes(), value, &self.guard);
    }

    #[inline]
    fn remove(&mut self, key: u64) -> bool {
        self.tree.remove_with_guard(&key.to_be_bytes(), &self.guard).expect("no lock is poisoned").is_some()
    }
}

impl Subject<Strings> for Boxed {
    const NO_SCANS: Option<&'static str> =
        Some("in 0.9.5 a range from a key on skips keys when many share that key's first bytes");
    type Reader<'a> = Session<'a, MassTree15<Value>>;
    type Writer<'a> = Session<'a, MassTree15<Value>>;

    fn build(_: Pages) -> Result<Self, String> {
        Ok(Boxed(MassTree15::new()))
    }

    fn reader(&self) -> Session<'_, MassTree15<Value>> {
        Session { tree: &self.0, guard: self.0.guard() }
    }

    fn writer(&mut self) -> Session<'_, MassTree15<Value>> {
        self.reader()
    }

    fn shared_writer(&self) -> Option<Session<'_, MassTree15<Value>>> {
        Some(self.reader())
    }
}

impl Reader<Strings> for Session<'_, MassTree15<Value>> {
    #[inline]
    fn get<R>(&self, key: Text<'_>, see: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.tree.get_ref(key.bytes(), &self.guard).map(|value| see(&value))
    }

    #[inline]
    fn scan(&self, from: Text<'_>, count: usize, mut see: impl FnMut(&[u8], &[u8])) {
        let mut left = count;
        let visit = |key: &[u8], value: &Value| {
            see(key, value);
            left -= 1;
            left > 0
        };
        let from = RangeBound::Included(from.bytes());
        self.tree.scan_intra_leaf_batch_ref(from, RangeBound::Unbounded, visit, &self.guard);
    }

    #[inline]
    fn iterate(&self, mut see: impl FnMut(&[u8], &[u8])) {
        let visit = |key: &[u8], value: &Value| {
            see(key, value);
            true
        };
        let all = RangeBound::Unbounded;
        self.tree.scan_intra_leaf_batch_ref(all, RangeBound::Unbounded, visit, &self.guard);
    }
}

impl Writer<Strings> for Session<'_, MassTree15<Value>> {
    #[inline]
    fn insert(&mut self, key: Text<'_>, value: &[u8]) {
        self.tree.insert_with_guard(key.bytes(), value.into(), &self.guard);
    }

    #[inline]
    fn remove(&mut self, key: Text<'_>) -> bool {
        self.tree.remove_with_guard(key.bytes(), &self.guard).expect("no lock is poisoned").is_some()
    }
}

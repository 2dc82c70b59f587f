//! The masstree crate: a trie of B+-trees, concurrent. Its fastest forms: values of eight bytes inline, and the
//! visitor scan that checks a leaf once. Only 64-bit keys: see its entry in the registry.

use super::{Pages, Reader, Subject, Writer};
use crate::data::U64;
use masstree::{MassTree, RangeBound};
use seize::LocalGuard;

/// The tree.
pub(crate) struct Map(MassTree<u64>);

/// The tree and the guard under which it is used.
pub(crate) struct Session<'a> {
    tree: &'a MassTree<u64>,
    guard: LocalGuard<'a>,
}

impl Subject<U64> for Map {
    type Reader<'a> = Session<'a>;
    type Writer<'a> = Session<'a>;

    fn build(_: Pages) -> Result<Self, String> {
        Ok(Map(MassTree::new()))
    }

    fn reader(&self) -> Session<'_> {
        Session { tree: &self.0, guard: self.0.guard() }
    }

    fn writer(&mut self) -> Session<'_> {
        self.reader()
    }

    // No writer beside another: in one of 70 runs with 0.9.5 a key that one thread removed is still there after another
    // thread's insertions.
}

impl Reader<U64> for Session<'_> {
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

impl Writer<U64> for Session<'_> {
    #[inline]
    fn insert(&mut self, key: u64, value: u64) {
        self.tree.insert_with_guard(&key.to_be_bytes(), value, &self.guard);
    }

    #[inline]
    fn remove(&mut self, key: u64) -> bool {
        self.tree.remove_with_guard(&key.to_be_bytes(), &self.guard).expect("no lock is poisoned").is_some()
    }
}

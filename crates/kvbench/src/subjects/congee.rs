//! congee: a concurrent adaptive radix tree with optimistic lock coupling. Keys and values are machine words,
//! so it holds no strings. Its range query fills a buffer and ends before its second bound, so the greatest
//! 64-bit key cannot be scanned. In practice no data has that key, and the conformance kit would detect it.

use super::{Pages, Reader, Subject, Writer};
use crate::data::U64;
use congee::{Congee, DefaultAllocator, epoch};

/// Pairs fetched at a time in a full iteration.
const ITERATE_PAIRS: usize = 1024;
/// Pairs fetched at a time in a scan.
const SCAN_PAIRS: usize = 64;

/// The tree.
pub(crate) struct Map(Congee<usize, usize>);

/// The tree and the guard under which it is used.
pub(crate) struct Session<'a> {
    tree: &'a Congee<usize, usize>,
    guard: epoch::Guard,
}

impl Subject<U64> for Map {
    type Reader<'a> = Session<'a>;
    type Writer<'a> = Session<'a>;

    fn build(_: Pages) -> Result<Self, String> {
        Ok(Map(Congee::new(DefaultAllocator {})))
    }

    fn reader(&self) -> Session<'_> {
        Session { tree: &self.0, guard: self.0.pin() }
    }

    fn writer(&mut self) -> Session<'_> {
        Subject::<U64>::reader(self)
    }

    fn shared_writer(&self) -> Option<Session<'_>> {
        Some(Subject::<U64>::reader(self))
    }
}

impl Reader<U64> for Session<'_> {
    #[inline]
    fn get<R>(&self, key: u64, see: impl FnOnce(u64) -> R) -> Option<R> {
        self.tree.get(&(key as usize), &self.guard).map(|value| see(value as u64))
    }

    #[inline]
    fn scan(&self, from: u64, count: usize, mut see: impl FnMut(u64, u64)) {
        let (mut pairs, mut from, mut left) = ([(0, 0); SCAN_PAIRS], from as usize, count);
        while left > 0 {
            let pairs = &mut pairs[..left.min(SCAN_PAIRS)];
            let found = self.tree.range(&from, &usize::MAX, pairs, &self.guard);
            pairs[..found].iter().for_each(|&(key, value)| see(key as u64, value as u64));
            if found < pairs.len() {
                return;
            }
            (from, left) = (pairs[found - 1].0 + 1, left - found);
        }
    }

    #[inline]
    fn iterate(&self, mut see: impl FnMut(u64, u64)) {
        let (mut pairs, mut from) = ([(0, 0); ITERATE_PAIRS], 0);
        loop {
            let found = self.tree.range(&from, &usize::MAX, &mut pairs, &self.guard);
            pairs[..found].iter().for_each(|&(key, value)| see(key as u64, value as u64));
            if found < ITERATE_PAIRS {
                return;
            }
            from = pairs[found - 1].0 + 1;
        }
    }
}

impl Writer<U64> for Session<'_> {
    #[inline]
    fn insert(&mut self, key: u64, value: u64) {
        self.tree.insert(key as usize, value as usize, &self.guard).expect("the machine has memory");
    }

    #[inline]
    fn remove(&mut self, key: u64) -> bool {
        self.tree.remove(&(key as usize), &self.guard).is_some()
    }
}

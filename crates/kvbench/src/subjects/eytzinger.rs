//! A search tree without pointers: a sorted array in the order of a breadth-first walk, as Eytzinger's pedigrees have
//! it (Khuong and Morin, "Array Layouts for Comparison-Based Searching", 2017). The children of place `k` are at `2k`
//! and `2k + 1`, so that the first steps of all searches share a few cache lines.

use super::gathered::Gathered;
use super::{Reader, Subject, Writer};
use crate::data::{KeyForm, Kind, ValueForm};
use std::mem;

/// Pairs from place 1 on; place 0 is unused.
pub(crate) struct Map<A, B> {
    keys: Vec<A>,
    values: Vec<B>,
    gathered: Gathered<A, B>,
}

/// The place that follows in the order of keys, 0 after the last.
#[inline]
fn next(at: usize, len: usize) -> usize {
    if 2 * at < len - 1 {
        let mut at = 2 * at + 1;
        while 2 * at < len {
            at *= 2;
        }
        return at;
    }
    at >> (at.trailing_ones() + 1)
}

/// The place of the least key, 0 if there is none.
fn first(len: usize) -> usize {
    let mut at = usize::from(len > 1);
    while at > 0 && 2 * at < len {
        at *= 2;
    }
    at
}

impl<A: Default, B: Default> Map<A, B> {
    /// The first place whose key is not below this one, 0 if all are.
    #[inline]
    fn lower_bound<K: Kind>(&self, key: &K::Query) -> usize
    where
        A: KeyForm<K>,
    {
        let mut at = 1;
        while let Some(stored) = self.keys.get(at) {
            at = 2 * at + usize::from(stored.borrow() < key);
        }
        // The last turn to the left is the answer; after it all turns were to the right.
        at >> (at.trailing_ones() + 1)
    }

    /// The places from one on, in the order of keys.
    fn places(&self, from: usize) -> impl Iterator<Item = usize> {
        let len = self.keys.len();
        std::iter::successors((from > 0).then_some(from), move |at| match next(*at, len) {
            0 => None,
            at => Some(at),
        })
    }

    /// What there is, in order.
    fn take(&mut self) -> Vec<(A, B)> {
        let places: Vec<usize> = self.places(first(self.keys.len())).collect();
        let pair = |at: usize| (mem::take(&mut self.keys[at]), mem::take(&mut self.values[at]));
        places.into_iter().map(pair).collect()
    }
}

impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>> Subject<K> for Map<A, B> {
    const STATIC: bool = true;
    super::by_itself!(Map {
        keys: vec![A::default()],
        values: vec![B::default()],
        gathered: Gathered::new()
    });

    fn settle(&mut self) {
        let mut gathered = mem::replace(&mut self.gathered, Gathered::new());
        let Some(pairs) = gathered.take(|| self.take()) else { return };
        self.keys = std::iter::repeat_with(A::default).take(pairs.len() + 1).collect();
        self.values = std::iter::repeat_with(B::default).take(pairs.len() + 1).collect();
        let mut at = first(self.keys.len());
        for (key, value) in pairs {
            (self.keys[at], self.values[at]) = (key, value);
            at = next(at, self.keys.len());
        }
    }
}

impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>> Reader<K> for &Map<A, B> {
    #[inline]
    fn get<R>(&self, key: K::Key<'_>, see: impl FnOnce(K::Value<'_>) -> R) -> Option<R> {
        let at = self.lower_bound::<K>(K::query(&key));
        (at > 0 && self.keys[at].borrow() == K::query(&key)).then(|| see(self.values[at].show()))
    }

    #[inline]
    fn scan(&self, from: K::Key<'_>, count: usize, mut see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
        let from = self.lower_bound::<K>(K::query(&from));
        self.places(from).take(count).for_each(|at| see(self.keys[at].found(), self.values[at].show()));
    }

    #[inline]
    fn iterate(&self, mut see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
        let from = first(self.keys.len());
        self.places(from).for_each(|at| see(self.keys[at].found(), self.values[at].show()));
    }
}

impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>> Writer<K> for &mut Map<A, B> {
    #[inline]
    fn insert(&mut self, key: K::Key<'_>, value: K::Value<'_>) {
        self.gathered.push(A::own(key), B::own(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_met_once() {
        for len in 1..200 {
            let mut seen = vec![false; len];
            let mut at = first(len);
            while at > 0 {
                assert!(!mem::replace(&mut seen[at], true), "{len}: {at} twice");
                at = next(at, len);
            }
            assert_eq!(seen.iter().filter(|seen| **seen).count(), len - 1, "{len}");
        }
    }
}

//! A sorted array, and ways to search it: binary search, which takes the least memory there is and is what every static
//! structure has to beat, and those of other modules.

use super::gathered::Gathered;
use super::{Reader, Subject, Writer};
use crate::data::{KeyForm, Kind, ValueForm};
use std::mem;

/// A way to search sorted keys.
pub(crate) trait Search<K: Kind, A: KeyForm<K>>: Default + Sync + Send {
    /// Prepares for these keys.
    fn learn(&mut self, keys: &[A]);

    /// The first place whose key is not below this one. REQUIRES: the keys are those that were learned.
    fn lower_bound(&self, keys: &[A], key: &K::Query) -> usize;
}

/// Binary search.
#[derive(Default)]
pub(crate) struct Halving;

impl<K: Kind, A: KeyForm<K>> Search<K, A> for Halving {
    fn learn(&mut self, _: &[A]) {}

    #[inline]
    fn lower_bound(&self, keys: &[A], key: &K::Query) -> usize {
        keys.partition_point(|stored| stored.borrow() < key)
    }
}

/// Keys in order, and the value of each at the same place of another array.
pub(crate) struct Map<A, B, S = Halving> {
    keys: Vec<A>,
    values: Vec<B>,
    gathered: Gathered<A, B>,
    search: S,
}

impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>, S: Search<K, A>> Subject<K> for Map<A, B, S> {
    const STATIC: bool = true;
    const BACK: bool = true;
    super::by_itself!(Map {
        keys: Vec::new(),
        values: Vec::new(),
        gathered: Gathered::new(),
        search: S::default()
    });

    fn settle(&mut self) {
        let had = || mem::take(&mut self.keys).into_iter().zip(mem::take(&mut self.values)).collect();
        if let Some(pairs) = self.gathered.take(had) {
            (self.keys, self.values) = pairs.into_iter().unzip();
            self.search.learn(&self.keys);
        }
    }
}

impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>, S: Search<K, A>> Reader<K> for &Map<A, B, S> {
    #[inline]
    fn get<R>(&self, key: K::Key<'_>, see: impl FnOnce(K::Value<'_>) -> R) -> Option<R> {
        let at = self.search.lower_bound(&self.keys, K::query(&key));
        let is = self.keys.get(at).is_some_and(|stored| stored.borrow() == K::query(&key));
        is.then(|| see(self.values[at].show()))
    }

    #[inline]
    fn scan(&self, from: K::Key<'_>, count: usize, mut see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
        let at = self.search.lower_bound(&self.keys, K::query(&from));
        let pairs = self.keys[at..].iter().zip(&self.values[at..]).take(count);
        pairs.for_each(|(key, value)| see(key.found(), value.show()));
    }

    #[inline]
    fn iterate(&self, mut see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
        self.keys.iter().zip(&self.values).for_each(|(key, value)| see(key.found(), value.show()));
    }

    #[inline]
    fn iterate_back(&self, mut see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
        self.keys.iter().zip(&self.values).rev().for_each(|(key, value)| see(key.found(), value.show()));
    }
}

impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>, S: Search<K, A>> Writer<K> for &mut Map<A, B, S> {
    #[inline]
    fn insert(&mut self, key: K::Key<'_>, value: K::Value<'_>) {
        self.gathered.push(A::own(key), B::own(value));
    }
}

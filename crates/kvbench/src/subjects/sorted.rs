//! A sorted array and binary search: the least memory there is, and what every static structure has to beat.

use super::gathered::Gathered;
use super::{Reader, Subject, Writer};
use crate::data::{KeyForm, Kind, ValueForm};
use std::mem;

/// Keys in order, and the value of each at the same place of another array.
pub(crate) struct Map<A, B> {
    keys: Vec<A>,
    values: Vec<B>,
    gathered: Gathered<A, B>,
}

impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>> Subject<K> for Map<A, B> {
    const STATIC: bool = true;
    const BACK: bool = true;
    super::by_itself!(Map { keys: Vec::new(), values: Vec::new(), gathered: Gathered::new() });

    fn settle(&mut self) {
        let had = || mem::take(&mut self.keys).into_iter().zip(mem::take(&mut self.values)).collect();
        if let Some(pairs) = self.gathered.take(had) {
            (self.keys, self.values) = pairs.into_iter().unzip();
        }
    }
}

impl<A, B> Map<A, B> {
    /// The first place whose key is not below this one.
    #[inline]
    fn lower_bound<K: Kind>(&self, key: &K::Query) -> usize
    where
        A: KeyForm<K>,
    {
        self.keys.partition_point(|stored| stored.borrow() < key)
    }
}

impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>> Reader<K> for &Map<A, B> {
    #[inline]
    fn get<R>(&self, key: K::Key<'_>, see: impl FnOnce(K::Value<'_>) -> R) -> Option<R> {
        let at = self.lower_bound::<K>(K::query(&key));
        let is = self.keys.get(at).is_some_and(|stored| stored.borrow() == K::query(&key));
        is.then(|| see(self.values[at].show()))
    }

    #[inline]
    fn scan(&self, from: K::Key<'_>, count: usize, mut see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
        let at = self.lower_bound::<K>(K::query(&from));
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

impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>> Writer<K> for &mut Map<A, B> {
    #[inline]
    fn insert(&mut self, key: K::Key<'_>, value: K::Value<'_>) {
        self.gathered.push(A::own(key), B::own(value));
    }

    fn remove(&mut self, _: K::Key<'_>) -> bool {
        false
    }
}

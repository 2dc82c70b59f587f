//! crossbeam-skiplist's `SkipMap`: lock-free. It pins an epoch inside each call, so there is nothing for a
//! reader to hold.

use super::{Reader, Subject, Writer};
use crate::data::{KeyForm, Kind, ValueForm};
use crossbeam_skiplist::SkipMap;
use std::ops::Bound;

/// The map, in the form that the kind's users would take.
pub(crate) struct Map<A, B>(SkipMap<A, B>);

impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>> Subject<K> for Map<A, B> {
    const BACK: bool = true;
    const RETAINS: bool = true;
    // Found by this program: 0.1.3 removes the old entry and then inserts the new one.
    const REPLACES: bool = false;
    super::shared_by_itself!(|_| Ok(Map(SkipMap::new())));

    fn retain(&mut self, mut keep: impl FnMut(K::Found<'_>, K::Value<'_>) -> bool) {
        for entry in self.0.iter() {
            if !keep(entry.key().found(), entry.value().show()) {
                entry.remove();
            }
        }
    }
}

impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>> Reader<K> for &Map<A, B> {
    #[inline]
    fn get<R>(&self, key: K::Key<'_>, see: impl FnOnce(K::Value<'_>) -> R) -> Option<R> {
        self.0.get(K::query(&key)).map(|entry| see(entry.value().show()))
    }

    #[inline]
    fn scan(&self, from: K::Key<'_>, count: usize, mut see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
        let range = self.0.range::<K::Query, _>((Bound::Included(K::query(&from)), Bound::Unbounded));
        range.take(count).for_each(|entry| see(entry.key().found(), entry.value().show()));
    }

    #[inline]
    fn iterate(&self, mut see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
        self.0.iter().for_each(|entry| see(entry.key().found(), entry.value().show()));
    }

    #[inline]
    fn iterate_back(&self, mut see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
        self.0.iter().rev().for_each(|entry| see(entry.key().found(), entry.value().show()));
    }
}

impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>> Writer<K> for &Map<A, B> {
    #[inline]
    fn insert(&mut self, key: K::Key<'_>, value: K::Value<'_>) {
        self.0.insert(A::own(key), B::own(value));
    }

    #[inline]
    fn remove(&mut self, key: K::Key<'_>) -> bool {
        self.0.remove(K::query(&key)).is_some()
    }
}

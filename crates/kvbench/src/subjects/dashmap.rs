//! dashmap's `DashMap`: sharded hashbrown tables, each with a readers-writer lock.

use super::{Reader, Subject, Writer};
use crate::data::{KeyForm, Kind, ValueForm};
use crate::hashes::{By, HashFunction};
use dashmap::DashMap;

/// The map, in the form that the kind's users would take.
pub(crate) struct Map<A, B, H>(DashMap<A, B, By<H>>);

impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>, H: HashFunction> Subject<K> for Map<A, B, H> {
    const ORDERED: bool = false;
    const RETAINS: bool = true;
    super::shared_by_itself!(|_| Ok(Map(DashMap::default())));

    fn reserve(&mut self, keys: usize) -> bool {
        self.0 = DashMap::with_capacity_and_hasher(keys, By::default());
        true
    }

    fn retain(&mut self, mut keep: impl FnMut(K::Found<'_>, K::Value<'_>) -> bool) {
        self.0.retain(|key, value| keep(key.found(), value.show()));
    }
}

impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>, H: HashFunction> Reader<K> for &Map<A, B, H> {
    #[inline]
    fn get<R>(&self, key: K::Key<'_>, see: impl FnOnce(K::Value<'_>) -> R) -> Option<R> {
        self.0.get(K::query(&key)).map(|pair| see(pair.value().show()))
    }

    #[inline]
    fn iterate(&self, mut see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
        self.0.iter().for_each(|pair| see(pair.key().found(), pair.value().show()));
    }
}

impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>, H: HashFunction> Writer<K> for &Map<A, B, H> {
    #[inline]
    fn insert(&mut self, key: K::Key<'_>, value: K::Value<'_>) {
        self.0.insert(A::own(key), B::own(value));
    }

    #[inline]
    fn remove(&mut self, key: K::Key<'_>) -> bool {
        self.0.remove(K::query(&key)).is_some()
    }
}

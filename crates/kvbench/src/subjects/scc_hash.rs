//! scc's `HashMap`: a concurrent table with a lock for each bucket, which grows without blocking other threads.
//! Insertions use `upsert`, because `insert` refuses a key that is present.

use super::{Reader, Subject, Writer};
use crate::data::{KeyForm, Kind, ValueForm};
use crate::hashes::{By, HashFunction};
use scc::HashMap;

/// The map, in the form that the kind's users would take.
pub(crate) struct Map<A, B, H: HashFunction>(HashMap<A, B, By<H>>);

impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>, H: HashFunction> Subject<K> for Map<A, B, H> {
    const ORDERED: bool = false;
    const RETAINS: bool = true;
    super::shared_by_itself!(|_| Ok(Map(HashMap::with_hasher(By::default()))));

    fn reserve(&mut self, keys: usize) -> bool {
        self.0 = HashMap::with_capacity_and_hasher(keys, By::default());
        true
    }

    fn retain(&mut self, mut keep: impl FnMut(K::Found<'_>, K::Value<'_>) -> bool) {
        self.0.retain_sync(|key, value| keep(key.found(), value.show()));
    }
}

impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>, H: HashFunction> Reader<K> for &Map<A, B, H> {
    #[inline]
    fn get<R>(&self, key: K::Key<'_>, see: impl FnOnce(K::Value<'_>) -> R) -> Option<R> {
        self.0.read_sync(K::query(&key), |_, value| see(value.show()))
    }

    #[inline]
    fn iterate(&self, mut see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
        self.0.iter_sync(|key, value| {
            see(key.found(), value.show());
            true
        });
    }
}

impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>, H: HashFunction> Writer<K> for &Map<A, B, H> {
    #[inline]
    fn insert(&mut self, key: K::Key<'_>, value: K::Value<'_>) {
        self.0.upsert_sync(A::own(key), B::own(value));
    }

    #[inline]
    fn remove(&mut self, key: K::Key<'_>) -> bool {
        self.0.remove_sync(K::query(&key)).is_some()
    }
}

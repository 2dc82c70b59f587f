//! papaya's `HashMap`: a concurrent table whose readers take no lock. A guard protects reads; it is pinned once for
//! many operations, as the documentation advises.

use super::{Pages, Reader, Subject, Writer};
use crate::data::{KeyForm, Kind, ValueForm};
use crate::hashes::{By, HashFunction};
use papaya::{HashMap, HashMapRef, LocalGuard};

/// The map, in the form that the kind's users would take.
pub(crate) struct Map<A, B, H>(HashMap<A, B, By<H>>);

/// The map, pinned.
pub(crate) struct Session<'a, A, B, H>(HashMapRef<'a, A, B, By<H>, LocalGuard<'a>>);

impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>, H: HashFunction> Subject<K> for Map<A, B, H> {
    const ORDERED: bool = false;
    const RETAINS: bool = true;
    type Reader<'a> = Session<'a, A, B, H>;
    type Writer<'a> = Session<'a, A, B, H>;

    fn build(_: Pages) -> Result<Self, String> {
        Ok(Map(HashMap::with_hasher(By::default())))
    }

    fn reserve(&mut self, keys: usize) -> bool {
        self.0 = HashMap::with_capacity_and_hasher(keys, By::default());
        true
    }

    fn retain(&mut self, mut keep: impl FnMut(K::Found<'_>, K::Value<'_>) -> bool) {
        self.0.pin().retain(|key, value| keep(key.found(), value.show()));
    }

    fn reader(&self) -> Session<'_, A, B, H> {
        Session(self.0.pin())
    }

    fn writer(&mut self) -> Session<'_, A, B, H> {
        Session(self.0.pin())
    }

    fn shared_writer(&self) -> Option<Session<'_, A, B, H>> {
        Some(Session(self.0.pin()))
    }
}

impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>, H: HashFunction> Reader<K> for Session<'_, A, B, H> {
    #[inline]
    fn get<R>(&self, key: K::Key<'_>, see: impl FnOnce(K::Value<'_>) -> R) -> Option<R> {
        self.0.get(K::query(&key)).map(|value| see(value.show()))
    }

    #[inline]
    fn iterate(&self, mut see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
        self.0.iter().for_each(|(key, value)| see(key.found(), value.show()));
    }
}

impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>, H: HashFunction> Writer<K> for Session<'_, A, B, H> {
    #[inline]
    fn insert(&mut self, key: K::Key<'_>, value: K::Value<'_>) {
        self.0.insert(A::own(key), B::own(value));
    }

    #[inline]
    fn remove(&mut self, key: K::Key<'_>) -> bool {
        self.0.remove(K::query(&key)).is_some()
    }
}

//! hashbrown's `HashMap` with its default hasher: no order, and the fastest point reads to be had.

use super::{Pages, Reader, Subject, Writer};
use crate::data::{KeyForm, Kind, ValueForm};
use hashbrown::HashMap;

/// The map, in the form that the kind's users would take.
pub(crate) struct Map<A, B>(HashMap<A, B>);

impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>> Subject<K> for Map<A, B> {
    const ORDERED: bool = false;
    type Reader<'a> = &'a Self;
    type Writer<'a> = &'a mut Self;

    fn build(_: Pages) -> Result<Self, String> {
        Ok(Map(HashMap::new()))
    }

    fn reader(&self) -> &Self {
        self
    }

    fn writer(&mut self) -> &mut Self {
        self
    }
}

impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>> Reader<K> for &Map<A, B> {
    #[inline]
    fn get<R>(&self, key: K::Key<'_>, see: impl FnOnce(K::Value<'_>) -> R) -> Option<R> {
        self.0.get(K::query(&key)).map(|value| see(value.show()))
    }

    fn scan(&self, _: K::Key<'_>, _: usize, _: impl FnMut(K::Found<'_>, K::Value<'_>)) {}

    #[inline]
    fn iterate(&self, mut see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
        self.0.iter().for_each(|(key, value)| see(key.found(), value.show()));
    }
}

impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>> Writer<K> for &mut Map<A, B> {
    #[inline]
    fn insert(&mut self, key: K::Key<'_>, value: K::Value<'_>) {
        self.0.insert(A::own(key), B::own(value));
    }

    #[inline]
    fn remove(&mut self, key: K::Key<'_>) -> bool {
        self.0.remove(K::query(&key)).is_some()
    }
}

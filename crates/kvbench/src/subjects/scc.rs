//! scc's `TreeIndex`: a concurrent B+-tree whose readers take no lock. Reads hold a guard; `upsert` is used
//! for insertions because `insert` refuses a key that is there.

use super::{Pages, Reader, Subject, Writer};
use crate::data::{KeyForm, Kind, ValueForm};
use scc::{Guard, TreeIndex};
use std::ops::Bound;

/// The map, in the form that the kind's users would take.
pub(crate) struct Map<A, B>(TreeIndex<A, B>);

/// The map and the guard under which it is read.
pub(crate) struct Session<'a, A, B> {
    map: &'a TreeIndex<A, B>,
    guard: Guard,
}

impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>> Subject<K> for Map<A, B> {
    type Reader<'a> = Session<'a, A, B>;
    type Writer<'a> = &'a Self;

    fn build(_: Pages) -> Result<Self, String> {
        Ok(Map(TreeIndex::new()))
    }

    fn reader(&self) -> Session<'_, A, B> {
        Session { map: &self.0, guard: Guard::new() }
    }

    fn writer(&mut self) -> &Self {
        self
    }

    fn shared_writer(&self) -> Option<&Self> {
        Some(self)
    }
}

impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>> Reader<K> for Session<'_, A, B> {
    #[inline]
    fn get<R>(&self, key: K::Key<'_>, see: impl FnOnce(K::Value<'_>) -> R) -> Option<R> {
        self.map.peek(K::query(&key), &self.guard).map(|value| see(value.show()))
    }

    #[inline]
    fn scan(&self, from: K::Key<'_>, count: usize, mut see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
        let bounds = (Bound::Included(K::query(&from)), Bound::Unbounded);
        let range = self.map.range::<K::Query, _>(bounds, &self.guard);
        range.take(count).for_each(|(key, value)| see(key.found(), value.show()));
    }

    #[inline]
    fn iterate(&self, mut see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
        self.map.iter(&self.guard).for_each(|(key, value)| see(key.found(), value.show()));
    }
}

impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>> Writer<K> for &Map<A, B> {
    #[inline]
    fn insert(&mut self, key: K::Key<'_>, value: K::Value<'_>) {
        self.0.upsert_sync(A::own(key), B::own(value));
    }

    #[inline]
    fn remove(&mut self, key: K::Key<'_>) -> bool {
        self.0.remove_sync(K::query(&key))
    }
}

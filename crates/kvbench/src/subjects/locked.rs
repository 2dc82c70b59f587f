//! A single-writer structure with one readers-writer lock around it, as a program with several threads would use it.

use super::{Reader, Subject, Writer};
use crate::data::Kind;
use std::sync::{PoisonError, RwLock};

/// The structure and its lock, which every operation takes.
pub(crate) struct Locked<S>(RwLock<S>);

impl<K: Kind, S: Subject<K>> Subject<K> for Locked<S> {
    const ORDERED: bool = S::ORDERED;
    const BACK: bool = S::BACK;
    super::shared_by_itself!(|pages| S::build(pages).map(|subject| Locked(RwLock::new(subject))));
}

impl<K: Kind, S: Subject<K>> Reader<K> for &Locked<S> {
    #[inline]
    fn get<R>(&self, key: K::Key<'_>, see: impl FnOnce(K::Value<'_>) -> R) -> Option<R> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).reader().get(key, see)
    }

    fn scan(&self, from: K::Key<'_>, count: usize, see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
        self.0.read().unwrap_or_else(PoisonError::into_inner).reader().scan(from, count, see);
    }

    fn iterate(&self, see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
        self.0.read().unwrap_or_else(PoisonError::into_inner).reader().iterate(see);
    }

    fn iterate_back(&self, see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
        self.0.read().unwrap_or_else(PoisonError::into_inner).reader().iterate_back(see);
    }
}

impl<K: Kind, S: Subject<K>> Writer<K> for &Locked<S> {
    #[inline]
    fn insert(&mut self, key: K::Key<'_>, value: K::Value<'_>) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).writer().insert(key, value);
    }

    #[inline]
    fn remove(&mut self, key: K::Key<'_>) -> bool {
        self.0.write().unwrap_or_else(PoisonError::into_inner).writer().remove(key)
    }
}

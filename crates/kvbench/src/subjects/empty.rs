//! A subject that does nothing: its figures are what the measuring loops cost.

use super::{Pages, Reader, Subject, Writer};
use crate::data::Kind;
use std::hint::black_box;

/// Answers every get with the same value, and shows no pair in a scan.
pub(crate) struct Empty;

static VALUE: [u8; 8] = [0; 8];

impl<K: Kind> Subject<K> for Empty {
    const ORDERED: bool = false;
    const ANSWERS: bool = false;
    type Reader<'a> = Empty;
    type Writer<'a> = Empty;

    fn build(_: Pages) -> Result<Self, String> {
        Ok(Empty)
    }

    fn reader(&self) -> Empty {
        Empty
    }

    fn writer(&mut self) -> Empty {
        Empty
    }
}

impl<K: Kind> Reader<K> for Empty {
    #[inline]
    fn get<R>(&self, key: K::Key<'_>, see: impl FnOnce(K::Value<'_>) -> R) -> Option<R> {
        black_box(key);
        Some(see(K::value(&VALUE)))
    }

    #[inline]
    fn scan(&self, from: K::Key<'_>, _: usize, _: impl FnMut(K::Found<'_>, K::Value<'_>)) {
        black_box(from);
    }

    fn iterate(&self, _: impl FnMut(K::Found<'_>, K::Value<'_>)) {}
}

impl<K: Kind> Writer<K> for Empty {
    #[inline]
    fn insert(&mut self, key: K::Key<'_>, value: K::Value<'_>) {
        black_box((key, value));
    }

    #[inline]
    fn remove(&mut self, key: K::Key<'_>) -> bool {
        black_box(key);
        true
    }
}

//! `forrest::Db` on its home in memory: what the library adds to the index below it. A get returns an owned value.

use super::{Pages, Reader, Subject, Writer};
use crate::data::Kind;
use forrest::Db;
use std::ops::ControlFlow;

/// A store in memory.
pub(crate) struct Database(Db);

impl Database {
    fn open(pages: Pages) -> Result<Self, String> {
        let db = Db::builder().pages(pages.into()).open("memory:").map_err(|error| error.to_string())?;
        Ok(Database(db))
    }
}

impl<K: Kind> Subject<K> for Database {
    const BATCHED: bool = true;
    const BACK: bool = true;
    const RETAINS: bool = true;
    super::shared_by_itself!(Database::open);

    fn retain(&mut self, mut keep: impl FnMut(K::Found<'_>, K::Value<'_>) -> bool) {
        let scanned = self.0.scan(.., |key, value| {
            if !keep(K::found(key), K::value(value)) {
                self.0.delete(key).expect("a removal needs no memory");
            }
            ControlFlow::Continue(())
        });
        scanned.expect("a store in memory is scanned");
    }

    fn own_bytes(&self) -> u64 {
        // Longer values are the allocator's.
        self.0.stats().map_or(0, |stats| stats.node_bytes)
    }
}

impl<K: Kind> Reader<K> for &Database {
    #[inline]
    fn get<R>(&self, key: K::Key<'_>, see: impl FnOnce(K::Value<'_>) -> R) -> Option<R> {
        let value = self.0.get(K::key_bytes(key)).expect("a store in memory is read");
        value.map(|value| see(K::value(&value)))
    }

    #[inline]
    fn scan(&self, from: K::Key<'_>, count: usize, mut see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
        let (from, mut left) = (K::key_bytes(from), count);
        let scanned = self.0.scan(from.as_ref().., |key, value| {
            see(K::found(key), K::value(value));
            left -= 1;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        scanned.expect("a store in memory is scanned");
    }

    #[inline]
    fn iterate(&self, mut see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
        let scanned = self.0.scan(.., |key, value| {
            see(K::found(key), K::value(value));
            ControlFlow::Continue(())
        });
        scanned.expect("a store in memory is scanned");
    }

    #[inline]
    fn iterate_back(&self, mut see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
        let scanned = self.0.scan_back(.., |key, value| {
            see(K::found(key), K::value(value));
            ControlFlow::Continue(())
        });
        scanned.expect("a store in memory is scanned");
    }

    #[inline]
    fn multi_get(&self, keys: &[K::Key<'_>], mut see: impl FnMut(usize, Option<K::Value<'_>>)) {
        let keys: Vec<K::KeyBytes<'_>> = keys.iter().map(|key| K::key_bytes(*key)).collect();
        let values = self.0.multi_get(&keys).expect("a store in memory is read");
        values
            .iter()
            .enumerate()
            .for_each(|(at, value)| see(at, value.as_deref().map(|value| K::value(value))));
    }
}

impl<K: Kind> Writer<K> for &Database {
    #[inline]
    fn insert(&mut self, key: K::Key<'_>, value: K::Value<'_>) {
        self.0.set(K::key_bytes(key), K::value_bytes(value)).expect("the machine has memory");
    }

    #[inline]
    fn remove(&mut self, key: K::Key<'_>) -> bool {
        self.0.delete(K::key_bytes(key)).expect("a removal needs no memory")
    }
}

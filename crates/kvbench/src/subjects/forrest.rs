//! forrest-index, with and without vector instructions. Its keys and values are byte strings, so 64-bit numbers go in
//! as eight big-endian bytes.

use super::{BATCH_KEYS, Pages, Reader, Subject, Writer};
use crate::data::Kind;
use forrest_index::{Direction, Index, Options, Tree};
use std::ops::{Bound, ControlFlow};

/// An index with one tree.
pub(crate) type Forrest = Indexed<true>;
/// The same without vector instructions.
pub(crate) type Portable = Indexed<false>;

/// An index with one tree, and whether it may use vector instructions.
pub(crate) struct Indexed<const VECTORS: bool> {
    index: Index,
    tree: Tree,
}

/// The options for these pages. If they are unavailable, the index uses smaller pages, as its memory statistics show.
fn options(pages: Pages) -> Options {
    Options { pages: pages.into(), ..Options::default() }
}

impl<const VECTORS: bool> Indexed<VECTORS> {
    fn open(pages: Pages) -> Result<Self, String> {
        if !VECTORS {
            // This process has no other index.
            forrest_index::use_portable_search();
        }
        let index = Index::new(&options(pages)).map_err(|error| error.to_string())?;
        let tree = index.create_tree().map_err(|error| error.to_string())?;
        Ok(Indexed { index, tree })
    }
}

impl<K: Kind, const VECTORS: bool> Subject<K> for Indexed<VECTORS> {
    const BATCHED: bool = true;
    const BACK: bool = true;
    const RETAINS: bool = true;
    super::shared_by_itself!(Self::open);

    fn retain(&mut self, mut keep: impl FnMut(K::Found<'_>, K::Value<'_>) -> bool) {
        self.tree.scan(Bound::Unbounded, Bound::Unbounded, Direction::Forward, |key, value| {
            if !keep(K::found(key), K::value(value.as_slice())) {
                self.tree.remove(key).expect("a removal needs no memory");
            }
            ControlFlow::Continue(())
        });
    }

    fn own_bytes(&self) -> u64 {
        let stats = self.index.stats();
        stats.node_bytes + stats.blob_bytes
    }

    fn memory_note(&self) -> Option<String> {
        let stats = self.index.stats();
        let mib = |bytes: u64| bytes >> 20;
        Some(format!(
            "arenas {} MiB, of it {} MiB on explicit huge pages, {} MiB where transparent ones were granted",
            mib(stats.arena_bytes),
            mib(stats.explicit_huge_bytes),
            mib(stats.transparent_huge_bytes)
        ))
    }
}

impl<K: Kind, const VECTORS: bool> Reader<K> for &Indexed<VECTORS> {
    #[inline]
    fn get<R>(&self, key: K::Key<'_>, see: impl FnOnce(K::Value<'_>) -> R) -> Option<R> {
        self.tree.get_with(K::key_bytes(key).as_ref(), |value| see(K::value(value)))
    }

    #[inline]
    fn scan(&self, from: K::Key<'_>, count: usize, mut see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
        let from = K::key_bytes(from);
        let mut left = count;
        self.tree.scan(Bound::Included(from.as_ref()), Bound::Unbounded, Direction::Forward, |key, value| {
            see(K::found(key), K::value(value.as_slice()));
            left -= 1;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }

    #[inline]
    fn iterate(&self, mut see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
        self.tree.scan(Bound::Unbounded, Bound::Unbounded, Direction::Forward, |key, value| {
            see(K::found(key), K::value(value.as_slice()));
            ControlFlow::Continue(())
        });
    }

    #[inline]
    fn iterate_back(&self, mut see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
        self.tree.scan(Bound::Unbounded, Bound::Unbounded, Direction::Backward, |key, value| {
            see(K::found(key), K::value(value.as_slice()));
            ControlFlow::Continue(())
        });
    }

    #[inline]
    fn multi_get(&self, keys: &[K::Key<'_>], mut see: impl FnMut(usize, Option<K::Value<'_>>)) {
        let Some(first) = keys.first() else { return };
        let mut bytes = [K::key_bytes(*first); BATCH_KEYS];
        for (chunk, keys) in keys.chunks(BATCH_KEYS).enumerate() {
            bytes.iter_mut().zip(keys).for_each(|(bytes, key)| *bytes = K::key_bytes(*key));
            let at = chunk * BATCH_KEYS;
            self.tree.multi_get(&bytes[..keys.len()], |i, value| {
                see(at + i, value.map(|value| K::value(value.as_slice())))
            });
        }
    }
}

impl<K: Kind, const VECTORS: bool> Writer<K> for &Indexed<VECTORS> {
    #[inline]
    fn insert(&mut self, key: K::Key<'_>, value: K::Value<'_>) {
        let done = self.tree.insert(K::key_bytes(key).as_ref(), K::value_bytes(value).as_ref());
        done.expect("the machine has memory");
    }

    #[inline]
    fn remove(&mut self, key: K::Key<'_>) -> bool {
        let done = self.tree.remove(K::key_bytes(key).as_ref());
        done.expect("a removal needs no memory")
    }
}

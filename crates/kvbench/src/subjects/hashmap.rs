//! `std::collections::HashMap`: the hash table that every Rust programmer has, hashbrown below, compiled with std; and
//! the adapter of all maps with its methods.

/// An adapter of a map that is used as `HashMap` is.
macro_rules! adapter {
    ($inner:path) => {
        use super::{Reader, Subject, Writer};
        use crate::data::{KeyForm, Kind, ValueForm};
        use crate::hashes::{By, HashFunction};
        use $inner as Inner;

        /// The map, in the form that the kind's users would take.
        pub(crate) struct Map<A, B, H>(Inner<A, B, By<H>>);

        impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>, H: HashFunction> Subject<K> for Map<A, B, H> {
            const ORDERED: bool = false;
            const RETAINS: bool = true;
            super::by_itself!(Map(Inner::default()));

            fn retain(&mut self, mut keep: impl FnMut(K::Found<'_>, K::Value<'_>) -> bool) {
                self.0.retain(|key, value| keep(key.found(), value.show()));
            }

            fn reserve(&mut self, keys: usize) -> bool {
                self.0.reserve(keys);
                true
            }
        }

        impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>, H: HashFunction> Reader<K> for &Map<A, B, H> {
            #[inline]
            fn get<R>(&self, key: K::Key<'_>, see: impl FnOnce(K::Value<'_>) -> R) -> Option<R> {
                self.0.get(K::query(&key)).map(|value| see(value.show()))
            }

            #[inline]
            fn iterate(&self, mut see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
                self.0.iter().for_each(|(key, value)| see(key.found(), value.show()));
            }
        }

        impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>, H: HashFunction> Writer<K> for &mut Map<A, B, H> {
            #[inline]
            fn insert(&mut self, key: K::Key<'_>, value: K::Value<'_>) {
                self.0.insert(A::own(key), B::own(value));
            }

            #[inline]
            fn remove(&mut self, key: K::Key<'_>) -> bool {
                self.0.remove(K::query(&key)).is_some()
            }
        }
    };
}
pub(super) use adapter;

adapter!(std::collections::HashMap);

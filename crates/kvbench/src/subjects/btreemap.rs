//! `std::collections::BTreeMap`: the ordered map that every Rust programmer has; and the adapter of all maps with its
//! methods.

/// An adapter of a map that is used as `BTreeMap` is, and what else the subject has.
macro_rules! adapter {
    ($inner:path, $kind:ident, { $($more:tt)* }) => {
        use super::{Reader, Subject, Writer};
        use crate::data::{KeyForm, Kind, ValueForm};
        use std::ops::Bound;
        use $inner as Inner;

        /// The map, in the form that the kind's users would take.
        pub(crate) struct Map<A: Ord, B>(Inner<A, B>);

        impl<$kind: Kind, A: KeyForm<$kind>, B: ValueForm<$kind>> Subject<$kind> for Map<A, B> {
            const BACK: bool = true;
            super::by_itself!(Map(Inner::new()));
            $($more)*
        }

        impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>> Reader<K> for &Map<A, B> {
            #[inline]
            fn get<R>(&self, key: K::Key<'_>, see: impl FnOnce(K::Value<'_>) -> R) -> Option<R> {
                self.0.get(K::query(&key)).map(|value| see(value.show()))
            }

            #[inline]
            fn scan(&self, from: K::Key<'_>, count: usize, mut see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
                let range = self.0.range::<K::Query, _>((Bound::Included(K::query(&from)), Bound::Unbounded));
                range.take(count).for_each(|(key, value)| see(key.found(), value.show()));
            }

            #[inline]
            fn iterate(&self, mut see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
                self.0.iter().for_each(|(key, value)| see(key.found(), value.show()));
            }

            #[inline]
            fn iterate_back(&self, mut see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
                self.0.iter().rev().for_each(|(key, value)| see(key.found(), value.show()));
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
    };
}
pub(super) use adapter;

adapter!(std::collections::BTreeMap, K, {
    const RETAINS: bool = true;

    fn retain(&mut self, mut keep: impl FnMut(K::Found<'_>, K::Value<'_>) -> bool) {
        self.0.retain(|key, value| keep(key.found(), value.show()));
    }
});

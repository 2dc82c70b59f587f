//! fst: a finite state transducer, an automaton of all keys that shares their first and their last parts. It
//! maps a key to its number in the order of keys, which compresses best, and the values are in an array.

use super::gathered::Gathered;
use super::{Reader, Subject, Writer};
use crate::data::{Kind, ValueForm};
use fst::{IntoStreamer, Streamer};
use std::mem;

/// The automaton, and the values in the order of the keys.
pub(crate) struct Map<B> {
    keys: fst::Map<Vec<u8>>,
    values: Vec<B>,
    gathered: Gathered<Vec<u8>, B>,
}

impl<B: Default> Map<B> {
    /// What there is, in order.
    fn take(&mut self) -> Vec<(Vec<u8>, B)> {
        let keys = self.keys.stream().into_byte_keys();
        keys.into_iter().zip(mem::take(&mut self.values)).collect()
    }
}

impl<K: Kind, B: ValueForm<K>> Subject<K> for Map<B> {
    const STATIC: bool = true;
    super::by_itself!(Map { keys: fst::Map::default(), values: Vec::new(), gathered: Gathered::new() });

    fn settle(&mut self) {
        let mut gathered = mem::replace(&mut self.gathered, Gathered::new());
        let Some(pairs) = gathered.take(|| self.take()) else { return };
        let (keys, values): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        self.keys = fst::Map::from_iter(keys.iter().zip(0..)).expect("keys in order, each once");
        self.values = values;
    }
}

/// Shows what a stream has.
fn show<K: Kind, B: ValueForm<K>>(
    values: &[B],
    mut stream: fst::map::Stream<'_>,
    count: usize,
    mut see: impl FnMut(K::Found<'_>, K::Value<'_>),
) {
    for _ in 0..count {
        let Some((key, at)) = stream.next() else { return };
        see(K::found(key), values[at as usize].show());
    }
}

impl<K: Kind, B: ValueForm<K>> Reader<K> for &Map<B> {
    #[inline]
    fn get<R>(&self, key: K::Key<'_>, see: impl FnOnce(K::Value<'_>) -> R) -> Option<R> {
        self.keys.get(K::key_bytes(key)).map(|at| see(self.values[at as usize].show()))
    }

    #[inline]
    fn scan(&self, from: K::Key<'_>, count: usize, see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
        let stream = self.keys.range().ge(K::key_bytes(from)).into_stream();
        show::<K, B>(&self.values, stream, count, see);
    }

    #[inline]
    fn iterate(&self, see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
        show::<K, B>(&self.values, self.keys.stream(), usize::MAX, see);
    }
}

impl<K: Kind, B: ValueForm<K>> Writer<K> for &mut Map<B> {
    #[inline]
    fn insert(&mut self, key: K::Key<'_>, value: K::Value<'_>) {
        self.gathered.push(K::key_bytes(key).as_ref().to_vec(), B::own(value));
    }
}

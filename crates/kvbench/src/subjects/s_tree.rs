//! A static B+-tree without pointers, the S+ tree of Slotin's "Algorithms for Modern Hardware": nodes of 16 keys in
//! layers of arrays, all pairs in the lowest one. A node is two cache lines; its keys are compared all, without a
//! branch. Batches go down layer by layer, so that the core overlaps their misses.

use super::gathered::Gathered;
use super::{Reader, Subject, Writer};
use crate::data::U64;
use std::mem;

/// Keys of a node.
const NODE_KEYS: usize = 16;
/// Children of an inner node.
const CHILDREN: usize = NODE_KEYS + 1;
/// Keys of a batch that go down together.
const TOGETHER: usize = 16;

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Node([u64; NODE_KEYS]);

/// The tree.
pub(crate) struct Map {
    /// All keys in order, the last node filled up with the greatest number.
    leaves: Vec<Node>,
    /// From the root down; a key is the least one below the child that follows it.
    inner: Vec<Vec<Node>>,
    values: Vec<u64>,
    gathered: Gathered<u64, u64>,
}

impl Node {
    const FULL: Node = Node([u64::MAX; NODE_KEYS]);

    #[inline]
    fn count(&self, is: impl Fn(u64) -> bool) -> usize {
        self.0.iter().map(|key| usize::from(is(*key))).sum()
    }
}

impl Map {
    fn new(pairs: Vec<(u64, u64)>) -> Self {
        let (keys, values): (Vec<u64>, Vec<u64>) = pairs.into_iter().unzip();
        let mut leaves = vec![Node::FULL; keys.len().div_ceil(NODE_KEYS)];
        for (node, keys) in leaves.iter_mut().zip(keys.chunks(NODE_KEYS)) {
            node.0[..keys.len()].copy_from_slice(keys);
        }
        let mut inner: Vec<Vec<Node>> = Vec::new();
        // Nodes of the layer below, and leaves under each of them.
        let (mut below, mut under) = (leaves.len(), 1);
        while below > 1 {
            let mut layer = vec![Node::FULL; below.div_ceil(CHILDREN)];
            for (at, node) in layer.iter_mut().enumerate() {
                for (slot, key) in node.0.iter_mut().enumerate() {
                    let child = at * CHILDREN + slot + 1;
                    if child < below {
                        *key = leaves[child * under].0[0];
                    }
                }
            }
            (below, under) = (layer.len(), under * CHILDREN);
            inner.push(layer);
        }
        inner.reverse();
        Map { leaves, inner, values, gathered: Gathered::new() }
    }

    /// The child of an inner node below which a key is, if it is anywhere.
    #[inline]
    fn child(layer: &[Node], at: usize, key: u64) -> usize {
        at * CHILDREN + layer[at].count(|stored| stored <= key)
    }

    /// The first place in the leaf whose key is not below this one.
    #[inline]
    fn place(&self, leaf: usize, key: u64) -> usize {
        leaf * NODE_KEYS + self.leaves[leaf].count(|stored| stored < key)
    }

    /// The first place whose key is not below this one.
    #[inline]
    fn lower_bound(&self, key: u64) -> usize {
        // What nodes are filled up with is not to be followed.
        if key == u64::MAX || self.leaves.is_empty() {
            let greatest = self.leaves.last().is_some_and(|_| self.key(self.values.len() - 1) == key);
            return self.values.len() - usize::from(greatest);
        }
        let leaf = self.inner.iter().fold(0, |at, layer| Self::child(layer, at, key));
        self.place(leaf, key)
    }

    #[inline]
    fn key(&self, place: usize) -> u64 {
        self.leaves[place / NODE_KEYS].0[place % NODE_KEYS]
    }

    #[inline]
    fn value(&self, place: usize, key: u64) -> Option<u64> {
        (place < self.values.len() && self.key(place) == key).then(|| self.values[place])
    }

    fn pairs(&self) -> impl Iterator<Item = (u64, u64)> {
        self.leaves.iter().flat_map(|node| node.0).zip(self.values.iter().copied())
    }
}

impl Subject<U64> for Map {
    const STATIC: bool = true;
    const BATCHED: bool = true;
    super::by_itself!(Map::new(Vec::new()));

    fn settle(&mut self) {
        let mut gathered = mem::replace(&mut self.gathered, Gathered::new());
        if let Some(pairs) = gathered.take(|| self.pairs().collect()) {
            *self = Map::new(pairs);
        }
    }
}

impl Reader<U64> for &Map {
    #[inline]
    fn get<R>(&self, key: u64, see: impl FnOnce(u64) -> R) -> Option<R> {
        self.value(self.lower_bound(key), key).map(see)
    }

    #[inline]
    fn scan(&self, from: u64, count: usize, mut see: impl FnMut(u64, u64)) {
        let from = self.lower_bound(from);
        let to = (from + count).min(self.values.len());
        (from..to).for_each(|at| see(self.key(at), self.values[at]));
    }

    #[inline]
    fn iterate(&self, mut see: impl FnMut(u64, u64)) {
        self.pairs().for_each(|(key, value)| see(key, value));
    }

    #[inline]
    fn multi_get(&self, keys: &[u64], mut see: impl FnMut(usize, Option<u64>)) {
        for (chunk, keys) in keys.chunks(TOGETHER).enumerate() {
            let mut places = [0; TOGETHER];
            let places = &mut places[..keys.len()];
            if keys.contains(&u64::MAX) || self.leaves.is_empty() {
                places.iter_mut().zip(keys).for_each(|(at, key)| *at = self.lower_bound(*key));
            } else {
                for layer in &self.inner {
                    places.iter_mut().zip(keys).for_each(|(at, key)| *at = Map::child(layer, *at, *key));
                }
                places.iter_mut().zip(keys).for_each(|(at, key)| *at = self.place(*at, *key));
            }
            for (i, (at, key)) in places.iter().zip(keys).enumerate() {
                see(chunk * TOGETHER + i, self.value(*at, *key));
            }
        }
    }
}

impl Writer<U64> for &mut Map {
    #[inline]
    fn insert(&mut self, key: u64, value: u64) {
        self.gathered.push(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_the_places_of_a_sorted_array() {
        for len in (0..40).chain([271, 272, 273, 289, 4624, 4625, 4641]) {
            for step in [2, (u64::MAX / len.max(1)).max(3)] {
                // The last key of the second kind is the greatest number there is.
                let keys: Vec<u64> = (0..len).map(|at| u64::MAX - (len - 1 - at) * step).collect();
                let tree = Map::new(keys.iter().map(|key| (*key, !*key)).collect());
                let probes = keys.iter().flat_map(|key| [key - 1, *key, key.saturating_add(1)]);
                for probe in probes.chain([0, u64::MAX]) {
                    let expected = keys.partition_point(|key| *key < probe);
                    assert_eq!(tree.lower_bound(probe), expected, "{len} keys, {probe}");
                    let mut answers = Vec::new();
                    (&tree).multi_get(&[probe, 5], |at, value| answers.push((at, value)));
                    let value = keys.contains(&probe).then_some(!probe);
                    assert_eq!(answers, [(0, value), (1, None)], "{len} keys, {probe}");
                }
            }
        }
    }
}

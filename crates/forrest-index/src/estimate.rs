//! What a range has, about, in time that grows with the height of the tree only.
//!
//! Nodes do not know how many keys are below them. So a few paths from the root to a leaf stand for all: a leaf
//! counts as often as the number of children at each node of its path, divided by the number of those that were taken
//! (Knuth, "Estimating the efficiency of backtrack programs", 1975). The children that are taken lie in equal
//! distances, each at a place by chance, so that parts of a tree with fuller nodes are not missed. The two leaves in
//! which the range begins and ends are counted. So are all others if there are no more than the paths that may be
//! taken to them.

use crate::descent::TreeInner;
use crate::epoch::{self, Guard};
use crate::inner::InnerNode;
use crate::key::Key;
use crate::leaf::Leaf;
use crate::node::{Node, Share};
use crate::place::is_empty;
use crate::tree::Reader;
use forrest_base::random::Random;
use std::ops::{AddAssign, Bound, ControlFlow, Mul, Range};

/// Paths that are taken to leaves between those of the two ends.
const PATHS: usize = 128;

/// Keys and bytes of keys and values.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    keys: f64,
    bytes: f64,
}

impl AddAssign for Sum {
    fn add_assign(&mut self, other: Sum) {
        self.keys += other.keys;
        self.bytes += other.bytes;
    }
}

impl Mul<f64> for Sum {
    type Output = Sum;
    fn mul(self, by: f64) -> Sum {
        Sum { keys: self.keys * by, bytes: self.bytes * by }
    }
}

struct Estimate<'g> {
    tree: &'g TreeInner,
    guard: &'g Guard,
    random: Random,
}

impl Reader {
    /// The number of keys in a range, about, and the bytes of these keys and their values. Reads about 200 leaves at
    /// most. Exact if no more than two nodes above leaves have the range, and no child between them.
    pub fn estimate(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> (u64, u64) {
        if is_empty(lower, upper) {
            return (0, 0);
        }
        let guard = epoch::pin();
        let Some(root) = self.root() else { return (0, 0) };
        let mut estimate = Estimate { tree: &self.tree, guard: &guard, random: Random(0) };
        let Sum { keys, bytes } = estimate.part(self.tree.node(root, &guard), lower, upper, PATHS);
        (keys.round() as u64, bytes.round() as u64)
    }
}

impl<'g> Estimate<'g> {
    fn child(&self, inner: InnerNode<'g>, index: usize) -> Node<'g> {
        self.tree.node(inner.child(index), self.guard)
    }

    /// What a range has below a node.
    fn part(&mut self, node: Node<'g>, lower: Bound<&[u8]>, upper: Bound<&[u8]>, paths: usize) -> Sum {
        if node.level() == 0 {
            return count(node, lower, upper);
        }
        let inner = InnerNode::new(node);
        let route = |bound: Bound<&[u8]>| match bound {
            Bound::Included(key) | Bound::Excluded(key) => Some(inner.route(&Key::new(key))),
            Bound::Unbounded => None,
        };
        let (first, last) = (route(lower), route(upper));
        if let (Some(first), Some(last)) = (first, last)
            && first == last
        {
            return self.part(self.child(inner, first), lower, upper, paths);
        }
        let whole = first.map_or(0, |first| first + 1)..last.unwrap_or(inner.children());
        // What is below the ends has fewer leaves than what lies between, if there is anything.
        let below = if whole.is_empty() { paths / 2 } else { paths.div_ceil(8) };
        let mut sum = self.whole(inner, whole, paths);
        if let Some(first) = first {
            sum += self.part(self.child(inner, first), lower, Bound::Unbounded, below);
        }
        if let Some(last) = last {
            sum += self.part(self.child(inner, last), Bound::Unbounded, upper, below);
        }
        sum
    }

    /// What children of a node have, for which some of them stand.
    fn whole(&mut self, inner: InnerNode<'g>, children: Range<usize>, paths: usize) -> Sum {
        let (many, taken) = (children.len(), children.len().min(paths.max(1)));
        let mut sum = Sum::default();
        for nth in 0..taken {
            let (from, to) = (nth * many / taken, (nth + 1) * many / taken);
            let index = children.start + from + self.random.index(to - from);
            let child = self.child(inner, index);
            sum += if child.level() == 0 {
                count(child, Bound::Unbounded, Bound::Unbounded)
            } else {
                let inner = InnerNode::new(child);
                self.whole(inner, 0..inner.children(), paths / taken)
            } * (to - from) as f64;
        }
        sum
    }
}

/// What a range has in a leaf.
fn count(node: Node<'_>, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Sum {
    let leaf = Leaf::new(node);
    let (prefix, mut keys, mut bytes) = (leaf.prefix().len(), 0_u64, 0_u64);
    let _all = leaf.walk_between(lower, upper, Share::HALF).try_each(|record, _| {
        if let Some(value) = record.cell.len() {
            keys += 1;
            bytes += (prefix + record.suffix.len() + value) as u64;
        }
        ControlFlow::Continue(())
    });
    Sum { keys: keys as f64, bytes: bytes as f64 }
}

#[cfg(test)]
mod tests {
    use crate::{Index, Options, Tree};
    use forrest_base::random::Random;
    use forrest_testing::sized;
    use std::ops::Bound::{Excluded, Included, Unbounded};
    use std::ops::RangeBounds;

    fn tree(keys: impl Iterator<Item = (u64, usize)>) -> (Index, Tree) {
        let index = Index::new(&Options::default()).expect("there is memory");
        let tree = index.create_tree().expect("there is memory");
        for (key, value) in keys {
            tree.insert(&key.to_be_bytes(), &vec![7; value]).expect("there is memory");
        }
        (index, tree)
    }

    /// The error of an estimate as a share of the number, for keys at random and for ranges of all sizes.
    #[test]
    fn the_error_is_small_where_keys_are_uniform() {
        let keys = sized(200_000, 2_000_000);
        let mut random = Random(1);
        let mut all: Vec<u64> = (0..keys).map(|_| random.next()).collect();
        let (_index, tree) = tree(all.iter().map(|&key| (key, 20)));
        all.sort_unstable();
        all.dedup();
        let (mut worst, mut sum, mut ranges) = (0.0_f64, 0.0, 0.0);
        for _ in 0..500 {
            let (low, high) = (random.index(all.len()), random.index(all.len()));
            let (low, high) = (low.min(high), low.max(high));
            let (from, to) = (all[low].to_be_bytes(), all[high].to_be_bytes());
            let (found, bytes) = tree.estimate(Included(&from), Excluded(&to));
            let error = (found as f64 - (high - low) as f64).abs() / ((high - low) as f64).max(1.0);
            assert_eq!(bytes / 28, found, "all pairs have one size");
            (worst, sum, ranges) = (worst.max(error), sum + error, ranges + 1.0);
        }
        println!("{keys} keys: mean error {:.4}, worst {worst:.4}", sum / ranges);
        assert!(sum / ranges < 0.05 && worst < 0.25, "mean {:.4}, worst {worst:.4}", sum / ranges);
    }

    #[test]
    fn small_ranges_are_counted() {
        let (_index, tree) = tree((0..20_000).map(|key| (key, (key % 400) as usize)));
        let mut random = Random(2);
        for _ in 0..300 {
            let low = random.below(19_000);
            let (from, to) = (low.to_be_bytes(), (low + random.below(1000)).to_be_bytes());
            for (lower, upper) in [(Included(&from[..]), Excluded(&to[..])), (Excluded(&from), Included(&to))]
            {
                let bytes = |key: u64| 8 + key % 400;
                let (keys, all) = tree.estimate(lower, upper);
                assert_eq!(keys, tree.count(lower, upper), "from {low}");
                let numbers = (0..20_000).filter(|key: &u64| {
                    let key = key.to_be_bytes();
                    (lower, upper).contains(&key[..])
                });
                assert_eq!(all, numbers.map(bytes).sum::<u64>(), "from {low}");
            }
        }
        assert_eq!(tree.estimate(Included(b"b"), Excluded(b"a")), (0, 0));
        assert_eq!(tree.estimate(Unbounded, Excluded(b"")), (0, 0));
    }

    #[test]
    fn deleted_keys_do_not_count() {
        let (_index, tree) = tree((0..2000).map(|key| (key, 1)));
        for key in 0..2000_u64 {
            if key % 3 > 0 {
                tree.remove(&key.to_be_bytes()).expect("there is memory");
            }
        }
        assert_eq!(tree.estimate(Unbounded, Unbounded), (667, 667 * 9));
    }
}

//! Snapshots: past states of all trees. Writers never change a node that a snapshot can reach.
//!
//! Every node has the **era** in which it was made. Taking a snapshot notes the roots and begins a new era; the era
//! before it is the **floor**. A writer must not change a node at or below the floor. It makes a new one instead, so
//! its parent's slot must change, up to the root (path copying). Without a snapshot the floor is 0, and the only cost
//! is one comparison per write.
//!
//! A node that is replaced while snapshots can reach it is **parked** with the newest of them. When that one
//! is dropped, the node moves to the next older one that reaches it, or is freed.

use crate::descent::TreeInner;
use crate::shared::Shared;
use std::collections::HashMap;
use std::sync::Arc;

/// One past state of all trees of an index. Cloning makes another handle to the same state.
///
/// It copies nothing, but keeps the memory of pairs that are overwritten or deleted while it lives.
#[derive(Clone)]
pub struct Snapshot(pub(crate) Arc<Kept>);

pub(crate) struct Kept {
    index: Arc<Shared>,
    era: u64,
    roots: HashMap<u64, (Arc<TreeInner>, u64)>,
}

impl Snapshot {
    /// Waits for running writers, and keeps writers out while it reads the trees' roots.
    pub(crate) fn take(index: &Arc<Shared>, trees: impl FnOnce() -> Vec<Arc<TreeInner>>) -> Snapshot {
        let _gate = index.close_gate();
        let era = index.snapshots.next_era();
        index.snapshots.add(era);
        let roots = trees().into_iter().map(|tree| (tree.id, (tree.clone(), tree.newest_root().0))).collect();
        Snapshot(Arc::new(Kept { index: index.clone(), era, roots }))
    }
}

impl Kept {
    /// The root of a tree in this state; 0 if it was not there. Roots of one index mean nothing in another.
    pub(crate) fn root(&self, tree: &TreeInner) -> u64 {
        assert!(Arc::ptr_eq(&tree.index, &self.index), "a snapshot reads trees of its own index only");
        self.roots.get(&tree.id).map_or(0, |(_, root)| *root)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if self.index.is_left_alone() {
            return;
        }
        self.index.discard_all(self.index.snapshots.remove(self.era).into_iter());
        self.index.collect();
    }
}

//! Snapshots: past states of all trees, kept by not changing what they can reach.
//!
//! Every node carries the **era** in which it was made. Taking a snapshot notes the roots, and begins a new
//! era; the era before it is the **floor**. A writer must not touch a node at or below the floor: it makes a
//! new one instead, and so its parent's slot must change, up to the root (path copying). Where no snapshot
//! is held the floor is 0, and all that the possibility costs is one comparison per write.
//!
//! A node that is replaced while snapshots can reach it is **parked** with the newest of them. When that one
//! is dropped, the node moves to the next older one that reaches it, or is freed.

use crate::Reader;
use crate::index::Inner;
use crate::reclaim::Garbage;
use crate::tree::TreeInner;
use forrest_base::lock;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

struct Parked {
    birth: u64,
    garbage: Garbage,
}

/// The snapshots of an index that are alive.
pub(crate) struct Snapshots {
    /// By era: what is parked with each.
    live: Mutex<BTreeMap<u64, Vec<Parked>>>,
    /// The era of the newest, 0 if there is none.
    floor: AtomicU64,
    /// The era in which nodes are made now. Changes only while the gate is closed.
    era: AtomicU64,
}

/// One past state of all trees of an index. Cloning makes another handle to the same state.
///
/// It costs nothing to take (no copy), but what is overwritten or deleted while it lives is kept for it.
#[derive(Clone)]
pub struct Snapshot(Arc<Kept>);

pub(crate) struct Kept {
    index: Arc<Inner>,
    era: u64,
    roots: HashMap<u64, (Arc<TreeInner>, u64)>,
}

impl Snapshots {
    pub(crate) fn new() -> Self {
        Snapshots { live: Mutex::default(), floor: AtomicU64::new(0), era: AtomicU64::new(1) }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Vec<Parked>>> {
        lock(&self.live)
    }

    pub(crate) fn floor(&self) -> u64 {
        // ORDERING: it rises only while the gate keeps writers out; a stale higher value costs a copy.
        self.floor.load(Ordering::Relaxed)
    }

    pub(crate) fn era(&self) -> u64 {
        self.era.load(Ordering::Relaxed)
    }

    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    /// Ends the era and returns it. The caller has the gate for itself.
    pub(crate) fn next_era(&self) -> u64 {
        self.era.fetch_add(1, Ordering::Relaxed)
    }

    /// Keeps garbage that a live snapshot can reach; gives it back if there is none.
    pub(crate) fn park(&self, birth: u64, garbage: Garbage) -> Option<Garbage> {
        if birth > self.floor() {
            return Some(garbage);
        }
        let mut live = self.lock();
        match live.last_entry() {
            Some(mut newest) if *newest.key() >= birth => {
                newest.get_mut().push(Parked { birth, garbage });
                None
            }
            _ => Some(garbage),
        }
    }

    fn add(&self, era: u64) {
        let mut live = self.lock();
        live.insert(era, Vec::new());
        self.floor.store(era, Ordering::Relaxed);
    }

    /// Forgets a snapshot and returns what no other reaches.
    fn remove(&self, era: u64) -> Vec<Garbage> {
        let mut live = self.lock();
        let parked = live.remove(&era).unwrap_or_default();
        self.floor.store(live.last_key_value().map_or(0, |(&era, _)| era), Ordering::Relaxed);
        let Some((&older, list)) = live.range_mut(..era).next_back() else {
            return parked.into_iter().map(|p| p.garbage).collect();
        };
        let (keep, free): (Vec<_>, Vec<_>) = parked.into_iter().partition(|p| p.birth <= older);
        list.extend(keep);
        free.into_iter().map(|p| p.garbage).collect()
    }
}

impl Snapshot {
    pub(crate) fn take(index: &Arc<Inner>) -> Snapshot {
        let _gate = index.close_gate();
        let era = index.snapshots.next_era();
        index.snapshots.add(era);
        let roots =
            index.trees().into_iter().map(|tree| (tree.id, (tree.clone(), tree.newest_root().0))).collect();
        Snapshot(Arc::new(Kept { index: index.clone(), era, roots }))
    }

    /// A reader of this snapshot's state of a tree; a tree made later is empty in it.
    pub fn reader(&self, tree: &crate::Tree) -> Reader {
        let root = self.0.roots.get(&tree.inner().id).map_or(0, |(_, root)| *root);
        Reader::past(tree.inner().clone(), self.0.clone(), root)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        for garbage in self.index.snapshots.remove(self.era) {
            self.index.discard(garbage);
        }
        self.index.collect();
    }
}

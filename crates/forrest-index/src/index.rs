//! [`Index`]: owns the memory, and makes trees and snapshots.

use crate::batch::Batch;
use crate::descent::TreeInner;
use crate::error::Error;
use crate::options::{Options, Stats};
use crate::shared::Shared;
use crate::snapshot::Snapshot;
use crate::tree::Tree;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

/// Owns the memory and the trees. Cloning makes another handle to the same index.
///
/// An index belongs to the process that made it. A child of `fork` may drop its handles to an index of the parent,
/// which frees nothing. Any other call there may wait for ever, for a thread that the child does not have.
#[derive(Clone)]
pub struct Index(Arc<IndexState>);

struct IndexState {
    shared: Arc<Shared>,
    trees: Mutex<Vec<Weak<TreeInner>>>,
    tree_ids: AtomicU64,
}

impl Drop for IndexState {
    fn drop(&mut self) {
        if self.shared.is_left_alone() {
            std::mem::forget(std::mem::take(self.trees.get_mut().unwrap_or_else(|e| e.into_inner())));
        }
    }
}

impl Index {
    /// Makes an index with no trees. Takes address space, but no memory yet.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if the system refuses the address space, [`Error::CapacityTooLarge`] for a capacity
    /// beyond the limit.
    pub fn new(options: &Options) -> Result<Index, Error> {
        let shared = Arc::new(Shared::new(options)?);
        Ok(Index(Arc::new(IndexState { shared, trees: Mutex::default(), tree_ids: AtomicU64::new(0) })))
    }

    /// Adds an empty tree. It is freed with its last handle and the last snapshot that has it.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn create_tree(&self) -> Result<Tree, Error> {
        let _gate = self.0.shared.close_gate();
        let id = self.0.tree_ids.fetch_add(1, Ordering::Relaxed);
        let tree = Arc::new(TreeInner::new(&self.0.shared, id)?);
        let mut trees = self.0.trees.lock().unwrap_or_else(|e| e.into_inner());
        trees.retain(|tree| tree.strong_count() > 0);
        trees.push(Arc::downgrade(&tree));
        Ok(Tree::new(tree))
    }

    /// Takes a snapshot of all trees: waits for running writers, and keeps writers out for that moment.
    pub fn snapshot(&self) -> Snapshot {
        self.snapshot_with(|| ()).0
    }

    /// As [`snapshot`](Self::snapshot), and calls `note` at that moment, while writers wait.
    pub fn snapshot_with<R>(&self, note: impl FnOnce() -> R) -> (Snapshot, R) {
        let mut noted = None;
        let snapshot = Snapshot::take(&self.0.shared, || {
            noted = Some(note());
            self.0.trees()
        });
        (snapshot, noted.expect("the trees are asked for"))
    }

    /// Runs `body`, whose changes become visible together when it returns `Ok`, and not at all otherwise.
    /// Other writers wait meanwhile; readers do not. `body` must not write to this index other than through
    /// the batch, nor take a snapshot: it would wait for itself.
    ///
    /// # Errors
    /// What `body` returns, or [`Error::OutOfMemory`] if the batch could not be made visible.
    pub fn batch<R, E: From<Error>>(
        &self,
        body: impl FnOnce(&mut Batch<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        Batch::run(&self.0.shared, body)
    }

    /// Bytes of memory taken from the system, those of long values included. Frees nothing, and costs less than
    /// [`stats`](Self::stats).
    pub fn memory_bytes(&self) -> u64 {
        let shared = &self.0.shared;
        shared.arena.taken().bytes() + shared.bags.blob_bytes.load(Ordering::Relaxed)
    }

    /// Frees memory that waits for no reader any more, and gives all empty memory back to the system.
    ///
    /// Writers and batches do the first as they go on, and keep a few MiB of empty memory for the next ones. So a call
    /// pays after many changes beside a slow reader, if no more changes follow. The index starts no thread of its own.
    pub fn trim(&self) {
        self.0.shared.collect();
        self.0.shared.arena.trim();
    }

    /// The content of the index and its memory.
    pub fn stats(&self) -> Stats {
        let shared = &self.0.shared;
        shared.collect();
        let taken = shared.arena.taken();
        Stats {
            keys: self.0.trees().iter().map(|tree| tree.keys()).sum(),
            node_bytes: shared.arena.live_bytes(),
            blob_bytes: shared.bags.blob_bytes.load(Ordering::Relaxed),
            arena_bytes: taken.bytes(),
            explicit_huge_bytes: taken.explicit_huge,
            transparent_huge_bytes: taken.transparent_huge,
            snapshots: shared.snapshots.count() as u64,
        }
    }
}

impl IndexState {
    /// The trees that are alive.
    fn trees(&self) -> Vec<Arc<TreeInner>> {
        let trees = self.trees.lock().unwrap_or_else(|e| e.into_inner());
        trees.iter().filter_map(Weak::upgrade).collect()
    }
}

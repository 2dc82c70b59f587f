//! [`Index`]: the memory, and what all trees in it share.

use crate::arena::Arena;
use crate::batch::Batch;
use crate::epoch::{self, REGISTRY};
use crate::gate::{Exclusive, Gate};
use crate::reclaim::{Bags, Garbage};
use crate::roots::Phase;
use crate::snapshot::{Snapshot, Snapshots};
use crate::tree::{Tree, TreeInner};
use crate::{Error, Options, Stats};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

/// How often a writer without memory waits for readers to leave: first by yielding, then by a millisecond.
const WAITS_SHORT: u32 = 100;
const WAITS_LONG: u32 = 250;

/// Owns the memory and the trees. Cloning makes another handle to the same index.
#[derive(Clone)]
pub struct Index(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) arena: Arena,
    gate: Gate,
    pub(crate) snapshots: Snapshots,
    pub(crate) bags: Bags,
    pub(crate) phase: Phase,
    trees: Mutex<Vec<Weak<TreeInner>>>,
    tree_ids: AtomicU64,
}

impl Index {
    /// Makes an index with no trees. Takes address space, but no memory yet.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if the system refuses the address space.
    pub fn new(options: &Options) -> Result<Index, Error> {
        static IDS: AtomicU64 = AtomicU64::new(1);
        Ok(Index(Arc::new(Inner {
            arena: Arena::new(options)?,
            gate: Gate::new(IDS.fetch_add(1, Ordering::Relaxed)),
            snapshots: Snapshots::new(),
            bags: Bags::default(),
            phase: Phase::new(),
            trees: Mutex::default(),
            tree_ids: AtomicU64::new(0),
        })))
    }

    /// Adds an empty tree. It is freed with its last handle and the last snapshot that has it.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn create_tree(&self) -> Result<Tree, Error> {
        let _gate = self.0.close_gate();
        let tree = Arc::new(TreeInner::new(&self.0, self.0.tree_ids.fetch_add(1, Ordering::Relaxed))?);
        let mut trees = self.0.trees.lock().unwrap_or_else(|e| e.into_inner());
        trees.retain(|tree| tree.strong_count() > 0);
        trees.push(Arc::downgrade(&tree));
        Ok(Tree::new(tree))
    }

    /// Takes a snapshot of all trees: waits for writers that are at it, and keeps them out for that moment.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::take(&self.0)
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
        Batch::run(&self.0, body)
    }

    /// What the index holds and costs.
    pub fn stats(&self) -> Stats {
        self.0.collect();
        let taken = self.0.arena.taken();
        Stats {
            keys: self.0.trees().iter().map(|tree| tree.keys()).sum(),
            node_bytes: self.0.arena.live_bytes(),
            blob_bytes: self.0.bags.blob_bytes.load(Ordering::Relaxed),
            arena_bytes: taken.explicit_huge + taken.transparent_huge + taken.plain,
            explicit_huge_bytes: taken.explicit_huge,
            transparent_huge_bytes: taken.transparent_huge,
            snapshots: self.0.snapshots.count() as u64,
        }
    }
}

impl Inner {
    /// Keeps all writers out, and other exclusive ones.
    pub(crate) fn close_gate(&self) -> Exclusive<'_> {
        self.gate.close(&REGISTRY)
    }

    #[inline(always)]
    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// The trees that are alive.
    pub(crate) fn trees(&self) -> Vec<Arc<TreeInner>> {
        let trees = self.trees.lock().unwrap_or_else(|e| e.into_inner());
        trees.iter().filter_map(Weak::upgrade).collect()
    }

    /// Takes garbage that was reachable from `birth` on: parks it for snapshots, or frees it in time.
    pub(crate) fn retire(&self, birth: u64, garbage: Garbage) {
        if let Some(garbage) = self.snapshots.park(birth, garbage) {
            self.discard(garbage);
        }
    }

    /// Takes garbage that no snapshot reaches.
    pub(crate) fn discard(&self, garbage: Garbage) {
        let thread = epoch::pin().record.number;
        self.bags.put(&self.arena, thread, garbage);
    }

    /// Frees what can be freed, and waits a moment if some could not; false if nothing waits to be freed, or it
    /// took a quarter of a second in all. The caller has no pin.
    #[cold]
    pub(crate) fn wait_for_memory(&self, turn: &mut u32) -> bool {
        let waiting = self.bags.waiting();
        self.collect();
        if *turn < WAITS_SHORT {
            crate::sync::relax(turn);
        } else {
            *turn += 1;
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        waiting && *turn < WAITS_SHORT + WAITS_LONG
    }

    /// Frees what can be freed now.
    pub(crate) fn collect(&self) {
        let thread = epoch::pin().record.number;
        self.bags.collect(&self.arena, thread);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.bags.drain(&self.arena);
    }
}

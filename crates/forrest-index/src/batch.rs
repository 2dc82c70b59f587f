//! [`Batch`]: changes that become visible together.
//!
//! A batch holds the gate alone. It appends to leaves that others see, as long as there is room, without showing it:
//! see [`crate::staged`]. For all other changes it has a private root for each tree, which begins as the tree's root.
//! Its floor is above all nodes that others can see. So it builds every node that it changes anew, up to its root.
//!
//! No reader sees a change until all staged orders and all roots are switched, at one instant, see [`crate::roots`]. A
//! failed batch takes back what it appended, and frees the nodes that it built.

use crate::arena::Purpose;
use crate::descent::TreeInner;
use crate::effect::Effect;
use crate::epoch::{self, Guard};
use crate::error::Error;
use crate::leaf::found::Found;
use crate::leaf::{self, Leaf};
use crate::node::Slot;
use crate::reclaim::Garbage;
use crate::shared::Shared;
use crate::staged::Stage;
use crate::sync::{AtomicU64, Ordering};
use crate::tree::Tree;
use crate::write::{self, Private, Writer};
use forrest_machine::prefetch;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// How many leaves ahead one is fetched where all are visited.
const FETCHED_AHEAD: usize = 8;

/// Changes that become visible together, see [`crate::Index::batch`].
pub struct Batch<'a> {
    index: &'a Arc<Shared>,
    era: u64,
    /// The era of the newest snapshot.
    floor: u64,
    trees: BTreeMap<u64, Changed<'a>>,
}

struct Changed<'a> {
    tree: Arc<TreeInner>,
    root: AtomicU64,
    private: Private<'a>,
}

impl<'a> Batch<'a> {
    pub(crate) fn run<R, E>(
        index: &'a Arc<Shared>,
        body: impl FnOnce(&mut Batch<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        // What other threads left would be missing below.
        index.collect_sealed();
        let gate = index.close_gate();
        index.snapshots.next_era();
        let (era, floor) = (index.snapshots.era(), index.snapshots.floor());
        let mut batch = Batch { index, era, floor, trees: BTreeMap::new() };
        let result = body(&mut batch)?;
        let garbage = batch.commit();
        drop((batch, gate));
        // Now, without a pin of this thread, so that it can be freed at once.
        index.discard_all(garbage.into_iter());
        Ok(result)
    }

    /// A writer for one operation. Between two operations the batch holds no pin, so a long batch does not delay
    /// reclamation. It needs no pin: all other writers wait, so no node that it reaches can be unlinked.
    fn writer<'w>(&'w mut self, tree: &Tree, guard: &'w Guard) -> Writer<'w> {
        let tree = tree.inner();
        assert!(Arc::ptr_eq(&tree.index, self.index), "a batch changes trees of its own index only");
        let changed = self.trees.entry(tree.id).or_insert_with(|| Changed {
            tree: tree.clone(),
            root: AtomicU64::new(tree.newest_root().0),
            private: Private {
                retired: RefCell::default(),
                staged: RefCell::default(),
                stage: Stage::new(&self.index.phase),
                floor: self.floor,
                keys: Cell::default(),
            },
        });
        Writer {
            tree: &changed.tree,
            root: &changed.root,
            floor: self.era - 1,
            era: self.era,
            guard,
            batch: Some(&changed.private),
            purpose: Cell::new(Purpose::Growth),
        }
    }

    /// As [`Tree::apply`], inside the batch: sees the changes that the batch made before.
    ///
    /// # Errors
    /// As [`Tree::apply`]; the key is as it was, and the batch can go on.
    ///
    /// # Panics
    /// If the tree is of another index.
    pub fn apply<'v, R>(
        &mut self,
        tree: &Tree,
        key: &[u8],
        mut decide: impl FnMut(Option<&[u8]>) -> (Effect<'v>, R),
    ) -> Result<R, Error> {
        self.with_memory(|batch| batch.change(tree, key, 0, |old| decide(old.and_then(leaf::Cell::bytes))))
    }

    /// As [`Tree::apply_stamped`], inside the batch.
    ///
    /// # Errors
    /// As [`Batch::apply`].
    ///
    /// # Panics
    /// As [`Batch::apply`].
    pub fn apply_stamped<'v, R>(
        &mut self,
        tree: &Tree,
        key: &[u8],
        stamp: u64,
        mut decide: impl FnMut(Option<Found<'_>>) -> (Effect<'v>, R),
    ) -> Result<R, Error> {
        self.with_memory(|batch| batch.change(tree, key, stamp, |old| decide(old.and_then(Found::of))))
    }

    #[inline(always)]
    fn change<'v, R>(
        &mut self,
        tree: &Tree,
        key: &[u8],
        stamp: u64,
        decide: impl FnMut(Option<leaf::Cell<'_>>) -> (Effect<'v>, R),
    ) -> Result<R, Error> {
        let guard = epoch::pin();
        let _deciding = self.index.gate().decide(guard.record);
        write::apply(&self.writer(tree, &guard), key, stamp, decide)
    }

    /// Tries again once if memory is refused, after what waited for readers was freed. It does not wait for readers
    /// that are there, because all other writers would wait too. `attempt` ends without a pin.
    fn with_memory<R>(&mut self, mut attempt: impl FnMut(&mut Self) -> Result<R, Error>) -> Result<R, Error> {
        match attempt(self) {
            Err(Error::OutOfMemory(_)) if self.index.bags.waiting() => {
                self.index.collect();
                attempt(self)
            }
            result => result,
        }
    }

    /// Removes every key of a range and returns how many there were.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; a part may be removed then: return the error, so that nothing is.
    ///
    /// # Panics
    /// If the tree is of another index.
    pub fn delete_range(
        &mut self,
        tree: &Tree,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
    ) -> Result<u64, Error> {
        self.delete_range_stamped(tree, lower, upper, |_, _| ())
    }

    /// The same, and passes the keys and stamps of the removed values that have stamps to `stamped`.
    ///
    /// # Errors
    /// As [`Batch::delete_range`].
    ///
    /// # Panics
    /// If the tree is of another index.
    pub fn delete_range_stamped(
        &mut self,
        tree: &Tree,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        mut stamped: impl FnMut(&[u8], u64),
    ) -> Result<u64, Error> {
        if crate::place::is_empty(lower, upper) {
            return Ok(0);
        }
        let mut from = match lower {
            Bound::Unbounded => Vec::new(),
            Bound::Included(key) => key.to_vec(),
            // The least key after this one.
            Bound::Excluded(key) => [key, &[0]].concat(),
        };
        let mut removed = 0;
        loop {
            let (run, more) = self.with_memory(|batch| {
                let guard = epoch::pin();
                batch.writer(tree, &guard).remove_run(&mut from, upper, &mut stamped)
            })?;
            removed += run;
            if !more {
                return Ok(removed);
            }
        }
    }

    /// Makes the changes visible. Returns the replaced nodes that no snapshot reaches.
    fn commit(&mut self) -> Vec<Garbage> {
        let changed: Vec<Changed<'_>> = std::mem::take(&mut self.trees).into_values().collect();
        let roots = changed.iter().map(|c| (&c.tree.root, c.root.load(Ordering::Relaxed)));
        let roots: Vec<_> = roots.filter(|(root, new)| *new != root.current(&self.index.phase)).collect();
        let is_staged = changed.iter().any(|c| !c.private.staged.borrow().is_empty());
        let publish = || changed.iter().for_each(|c| c.each_staged(|leaf| leaf.publish_staged()));
        if !roots.is_empty() || is_staged {
            self.index.phase.switch(&roots, is_staged.then_some(publish));
        }
        let thread = epoch::pin().record.number;
        let mut garbage = Vec::new();
        for Changed { tree, private, .. } in changed {
            tree.count(thread, private.keys.get());
            garbage.extend(private.stage.into_blocks().into_iter().map(Garbage::Orders));
            let retired = private.retired.into_inner();
            garbage.extend(
                retired.into_iter().filter_map(|(birth, node)| self.index.snapshots.park(birth, node)),
            );
        }
        garbage
    }
}

impl Changed<'_> {
    /// Calls `each` with the leaves to which the batch has appended, and those among them that it replaced later.
    fn each_staged(&self, mut each: impl FnMut(Leaf<'_>)) {
        let guard = epoch::pin();
        let staged = self.private.staged.borrow();
        for (at, &slot) in staged.iter().enumerate() {
            if let Some(&later) = staged.get(at + FETCHED_AHEAD) {
                prefetch::read(self.tree.node(later, &guard).address());
            }
            each(Leaf::of_batch(self.tree.node(slot, &guard)));
        }
    }
}

impl Drop for Batch<'_> {
    /// Takes back what a failed batch has appended, and frees the nodes that it has built.
    fn drop(&mut self) {
        let trees = std::mem::take(&mut self.trees);
        for changed in trees.values() {
            // SAFETY: the staged records own the counts, and no other thread ever saw them.
            changed.each_staged(|leaf| leaf.undo_staged(|blob| unsafe { self.index.bags.drop_blob(blob) }));
        }
        let guard = epoch::pin();
        for (_, Changed { tree, root, private }) in trees {
            tree.free_below(Slot(root.into_inner()), self.era, &guard);
            // Readers may still refer to the orders.
            private
                .stage
                .into_blocks()
                .into_iter()
                .for_each(|block| self.index.discard(Garbage::Orders(block)));
            for (birth, garbage) in private.retired.into_inner() {
                if birth >= self.era {
                    // SAFETY: this batch made it and did not link it, so no other thread can reach it.
                    unsafe { self.index.bags.free(&self.index.arena, guard.record.number, garbage) };
                }
            }
        }
    }
}

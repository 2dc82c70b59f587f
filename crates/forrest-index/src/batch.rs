//! [`Batch`]: changes that become visible together.
//!
//! A batch holds the gate alone. For each tree that it changes it has a private root, which begins as the tree's root.
//! Its floor is above all nodes that others can see. So it builds every node that it changes anew, up to its root, and
//! no reader sees a change until the roots are switched. A failed batch frees the nodes that it built.
//!
//! The roots are switched at one instant, see [`crate::roots`].

use crate::arena::Purpose;
use crate::descent::TreeInner;
use crate::effect::Effect;
use crate::epoch::{self, Guard};
use crate::error::Error;
use crate::node::Slot;
use crate::reclaim::Garbage;
use crate::shared::Shared;
use crate::sync::{AtomicU64, Ordering};
use crate::tree::Tree;
use crate::write::{self, Private, Writer};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// Changes that become visible together, see [`crate::Index::batch`].
pub struct Batch<'a> {
    index: &'a Arc<Shared>,
    era: u64,
    trees: BTreeMap<u64, Changed>,
}

struct Changed {
    tree: Arc<TreeInner>,
    root: AtomicU64,
    private: Private,
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
        let mut batch = Batch { index, era: index.snapshots.era(), trees: BTreeMap::new() };
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
            private: Private::default(),
        });
        Writer {
            tree: &changed.tree,
            root: &changed.root,
            floor: self.era - 1,
            era: self.era,
            guard,
            private: Some(&changed.private),
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
        self.with_memory(|batch| {
            let guard = epoch::pin();
            write::apply(&batch.writer(tree, &guard), key, &mut decide)
        })
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
                batch.writer(tree, &guard).remove_run(&mut from, upper)
            })?;
            removed += run;
            if !more {
                return Ok(removed);
            }
        }
    }

    /// Makes the changes visible. Returns the replaced nodes that no snapshot reaches.
    fn commit(&mut self) -> Vec<Garbage> {
        let changed: Vec<Changed> = std::mem::take(&mut self.trees).into_values().collect();
        let roots: Vec<_> = changed.iter().map(|c| (&c.tree.root, c.root.load(Ordering::Relaxed))).collect();
        self.index.phase.switch(&roots);
        let thread = epoch::pin().record.number;
        let mut garbage = Vec::new();
        for Changed { tree, private, .. } in changed {
            tree.count(thread, private.keys.get());
            let retired = private.retired.into_inner();
            garbage.extend(
                retired.into_iter().filter_map(|(birth, node)| self.index.snapshots.park(birth, node)),
            );
        }
        garbage
    }
}

impl Drop for Batch<'_> {
    /// Frees the nodes that a failed batch has built.
    fn drop(&mut self) {
        let guard = epoch::pin();
        for (_, Changed { tree, root, private }) in std::mem::take(&mut self.trees) {
            tree.free_below(Slot(root.into_inner()), self.era, &guard);
            for (birth, garbage) in private.retired.into_inner() {
                if birth >= self.era {
                    // SAFETY: this batch made it and did not link it, so no other thread can reach it.
                    unsafe { self.index.bags.free(&self.index.arena, guard.record.number, garbage) };
                }
            }
        }
    }
}

//! The state that all trees of an index share: the memory, the gate, eras, and garbage that waits to be freed.

use crate::arena::Arena;
use crate::epoch::{self, REGISTRY};
use crate::eras::Snapshots;
use crate::error::Error;
use crate::gate::{Exclusive, Gate};
use crate::options::Options;
use crate::reclaim::{Bags, Garbage};
use crate::roots::Phase;
use forrest_machine::origin::Origin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How often a writer without memory waits for readers to leave: first by yielding, then by a millisecond.
const WAITS_SHORT: u32 = 100;
const WAITS_LONG: u32 = 250;

/// It lives as long as the index, a tree or a snapshot of it.
pub(crate) struct Shared {
    /// In a child made by `fork`, locks may be held by threads that it does not have. So nothing is freed there.
    pub(crate) origin: Origin,
    pub(crate) arena: Arena,
    gate: Gate,
    pub(crate) snapshots: Snapshots,
    pub(crate) bags: Bags,
    pub(crate) phase: Phase,
}

impl Shared {
    pub(crate) fn new(options: &Options) -> Result<Shared, Error> {
        static IDS: AtomicU64 = AtomicU64::new(1);
        Ok(Shared {
            origin: Origin::here(),
            arena: Arena::new(options)?,
            gate: Gate::new(IDS.fetch_add(1, Ordering::Relaxed)),
            snapshots: Snapshots::new(),
            bags: Bags::default(),
            phase: Phase::new(),
        })
    }

    /// Excludes all other writers, ordinary and exclusive.
    ///
    /// # Panics
    /// If the thread decides about a change of this index.
    pub(crate) fn close_gate(&self) -> Exclusive<'_> {
        self.gate.check_outside(epoch::pin().record);
        self.gate.close(&REGISTRY)
    }

    #[inline(always)]
    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Takes garbage that was reachable since era `birth`: parks it for snapshots, or frees it after its readers.
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

    /// As [`Shared::discard`], for many pieces. The caller has no pin, which would keep all of them.
    pub(crate) fn discard_all(&self, garbage: impl Iterator<Item = Garbage>) {
        let thread = epoch::pin().record.number;
        self.bags.put_all(&self.arena, thread, garbage);
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

    /// As [`Shared::collect`], if there are full bags. Costs little if there are none.
    pub(crate) fn collect_sealed(&self) {
        if self.bags.has_sealed() {
            self.collect();
        }
    }

    /// Frees what can be freed now.
    pub(crate) fn collect(&self) {
        let thread = epoch::pin().record.number;
        self.bags.collect(&self.arena, thread);
    }
}

impl Shared {
    /// True in a child made by `fork`, and then it is never freed: a thread that the child does not have may have been
    /// changing any part of it. Whatever has a share in it asks this when it is dropped.
    pub(crate) fn is_left_alone(self: &Arc<Shared>) -> bool {
        let is_left_alone = !self.origin.is_here();
        if is_left_alone {
            std::mem::forget(self.clone());
        }
        is_left_alone
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.origin.is_here() {
            self.bags.drain(&self.arena);
        }
    }
}

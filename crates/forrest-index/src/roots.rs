//! A tree's root, and switching the roots of several trees at one instant.
//!
//! One root is switched by one store. Several roots share a **phase** and are switched in these steps:
//!
//! 1. each root stores its `before` and `after`;
//! 2. the phase goes from idle to *before*;
//! 3. each root's `shown` becomes 0, which sends readers to the phase;
//! 4. the phase goes to *after*: at this instant all roots switch;
//! 5. each root's `shown` becomes the new root, and the phase returns to idle.
//!
//! Only one switch runs at a time, because the writer holds the gate alone.
//!
//! The argument. A reader that finds 0 loads the phase, then the root that the phase selects, then `shown` again (if
//! that is not 0, it is a current root, and the reader takes it), then the phase again. It starts over if the phase
//! has changed or is idle. Assume that it saw *before* or *after* of switch *k*. `before` and `after` of *k* were
//! stored earlier, so the loaded root belongs to *k* or a later switch. A later switch stores only after the phase
//! of *k* ended, which the second load of the phase would have shown. The 0 proves that *k* switches this tree: any
//! earlier switch of the tree stored its new root before *k* began. So the root is the current one of that phase. A
//! reader that took an `after` of one tree has seen that phase, so it later reads `after` of another tree, or newer.
//!
//! Two phases, with idle and *before* the same, would be wrong. A reader could find 0 in one switch, load the stale
//! `before` between that switch and the next, and find the 0 of the next switch with the phase unchanged. It would
//! take a root that is no longer current.

use crate::sync::{AtomicU64, Ordering, weakened};

/// A root slot, as a number; never 0.
pub(crate) struct Root {
    /// 0 while several roots are being switched.
    pub(crate) shown: AtomicU64,
    before: AtomicU64,
    after: AtomicU64,
}

/// What the roots of an index share: three to a switch, see below.
pub(crate) struct Phase(AtomicU64);

/// Remainders of the phase. Idle is the third.
const BEFORE: u64 = 1;
const AFTER: u64 = 2;
const PHASES: u64 = 3;

impl Phase {
    pub(crate) fn new() -> Phase {
        Phase(AtomicU64::new(0))
    }

    /// The phase of this moment.
    pub(crate) fn now(&self) -> u64 {
        // ORDERING: acquire pairs with the release in `turn`.
        self.0.load(weakened!("now", Acquire))
    }

    /// The phase at whose beginning the next switch takes place. The caller is the only writer.
    pub(crate) fn next(&self) -> u64 {
        self.0.load(Ordering::Relaxed) + AFTER
    }

    /// Switches roots to new values at one instant. The caller is the only writer. `staged` publishes the orders that
    /// were staged for this instant, if there are any ([`crate::staged`]).
    pub(crate) fn switch(&self, roots: &[(&Root, u64)], staged: Option<impl FnOnce()>) {
        if let (None, [(root, new)]) = (&staged, roots) {
            // ORDERING: release, so that a reader that sees the root sees the node.
            return root.shown.store(*new, weakened!("root", Release));
        }
        for (root, new) in roots {
            root.before.store(root.shown.load(Ordering::Relaxed), Ordering::Release);
            root.after.store(*new, Ordering::Release);
        }
        self.turn();
        roots.iter().for_each(|(root, _)| root.shown.store(0, Ordering::Release));
        self.turn();
        roots.iter().for_each(|(root, new)| root.shown.store(*new, Ordering::Release));
        staged.into_iter().for_each(|publish| publish());
        self.turn();
    }

    fn turn(&self) {
        // ORDERING: release, so that a reader that sees the new phase sees the roots stored before it, and the zeros
        // stored to `shown` before it.
        let ordering = match self.0.load(Ordering::Relaxed) % PHASES {
            BEFORE if weakened!("phase") => Ordering::Relaxed,
            _ => Ordering::AcqRel,
        };
        self.0.fetch_add(1, ordering);
    }
}

impl Root {
    pub(crate) fn new(root: u64) -> Root {
        Root { shown: AtomicU64::new(root), before: AtomicU64::new(0), after: AtomicU64::new(0) }
    }

    /// The current root.
    #[inline(always)]
    pub(crate) fn current(&self, phase: &Phase) -> u64 {
        match self.shown.load(Ordering::Acquire) {
            0 => self.in_between(phase),
            root => root,
        }
    }

    #[cold]
    fn in_between(&self, phase: &Phase) -> u64 {
        loop {
            let now = phase.0.load(Ordering::Acquire);
            let noted = match now % PHASES {
                AFTER => self.after.load(Ordering::Acquire),
                BEFORE => self.before.load(Ordering::Acquire),
                _ => 0,
            };
            if weakened!("unchecked") && noted != 0 {
                return noted;
            }
            // ORDERING: all loads are acquire, so each is done before the next.
            let shown = self.shown.load(Ordering::Acquire);
            if shown != 0 {
                return shown;
            }
            if noted != 0 && phase.0.load(Ordering::Acquire) == now {
                return noted;
            }
        }
    }
}

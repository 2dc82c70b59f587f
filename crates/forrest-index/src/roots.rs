//! A tree's root, and switching the roots of several trees at one instant.
//!
//! One root is switched by one store. Several are switched so: each notes the root before and the one after
//! and shows 0, which sends readers to the **phase** that all roots share; the phase goes from even to odd, at
//! which instant all of them turn from before to after; then each shows its new root, and the phase goes on
//! to even. Only one switch is under way at a time (the writer has the gate for itself).
//!
//! The argument. A reader that finds 0 loads the phase, then the root that the phase says, then the shown
//! root again (if it is not 0 that is a current root and is taken), then the phase again, and starts over if
//! it has changed. If it has not, the root that it took was noted before the phase took that value and stays
//! noted until the phase changes again: it is the current root of that phase. A reader that took an `after`
//! of one tree has seen the odd phase, so whatever it reads of another tree later is `after` too, or newer.

use crate::sync::{AtomicU64, Ordering};

/// A root slot, as a number; never 0.
pub(crate) struct Root {
    /// 0 while several roots are being switched.
    pub(crate) shown: AtomicU64,
    before: AtomicU64,
    after: AtomicU64,
}

/// What the roots of an index share.
pub(crate) struct Phase(AtomicU64);

impl Phase {
    pub(crate) fn new() -> Phase {
        Phase(AtomicU64::new(0))
    }

    /// Switches roots to new values at one instant. The caller is the only writer.
    pub(crate) fn switch(&self, roots: &[(&Root, u64)]) {
        if let [(root, new)] = roots {
            return root.shown.store(*new, Ordering::Release);
        }
        for (root, new) in roots {
            root.before.store(root.shown.load(Ordering::Relaxed), Ordering::Release);
            root.after.store(*new, Ordering::Release);
            root.shown.store(0, Ordering::Release);
        }
        self.turn();
        roots.iter().for_each(|(root, new)| root.shown.store(*new, Ordering::Release));
        self.turn();
    }

    fn turn(&self) {
        // ORDERING: release, so that whoever sees the new phase sees the roots noted before it.
        #[cfg(not(forrest_weakened = "phase"))]
        self.0.fetch_add(1, Ordering::AcqRel);
        #[cfg(forrest_weakened = "phase")]
        self.0.fetch_add(1, Ordering::Relaxed);
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
            let before = phase.0.load(Ordering::Acquire);
            let noted = if before.is_multiple_of(2) { &self.before } else { &self.after };
            let root = noted.load(Ordering::Acquire);
            // ORDERING: all loads are acquire, so each is done before the next.
            let shown = self.shown.load(Ordering::Acquire);
            if shown != 0 {
                return shown;
            }
            if phase.0.load(Ordering::Acquire) == before {
                return root;
            }
        }
    }
}

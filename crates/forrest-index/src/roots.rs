//! A tree's root, and switching the roots of several trees at one instant.
//!
//! One root is switched by one store. Several are switched so: each notes the root before and the one after;
//! then the **phase** that all roots share goes from idle to *before*; each root shows 0, which sends readers to
//! the phase; the phase goes to *after*, at which instant all of them turn; then each shows its new root, and
//! the phase goes on to idle. Only one switch is under way at a time (the writer has the gate for itself).
//!
//! The argument. A reader that finds 0 loads the phase, then the root that the phase says, then the shown
//! root again (if it is not 0 that is a current root and is taken), then the phase again, and starts over if
//! it has changed, or says idle. Let it have seen *before* or *after* of switch *k*. The notes of *k* were
//! written before, so what it loaded is of *k* or later; notes of a later switch were written after the phase
//! of *k* ended, which the second look at the phase would have shown. That the tree is one of those that *k*
//! switches says the 0: any earlier switch of the tree showed its new root before *k* began. So the root is the
//! current one of that phase. A reader that took an `after` of one tree has seen that phase, so whatever it
//! reads of another tree later is `after` too, or newer.
//!
//! Two phases, with idle and *before* the same, would not do: a reader that found 0 in one switch and then,
//! between that one and the next, loaded the noted `before`, could find 0 of the next switch when it looks
//! again, the phase unchanged, and would take a root that is no longer current.

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

    /// Switches roots to new values at one instant. The caller is the only writer.
    pub(crate) fn switch(&self, roots: &[(&Root, u64)]) {
        if let [(root, new)] = roots {
            // ORDERING: release, so that whoever sees the root sees the node.
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
        self.turn();
    }

    fn turn(&self) {
        // ORDERING: release, so that whoever sees the new phase sees the roots noted before it, and those that
        // show 0 by then.
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

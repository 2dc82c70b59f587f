//! A node's lock: a mutex with one more state, for a node that was replaced.
//!
//! Free, locked, obsolete. A lock is taken of a free node only, by one compare-and-swap; whoever holds it makes
//! the node free again, or obsolete, which it then stays. Readers do not look at it.
//!
//! What it guarantees, and the argument for each:
//!
//! - *A node has one holder at a time.* The word becomes locked only by an exchange that found it free, and an
//!   exchange sees the newest value. From then until the holder stores, nobody else does.
//! - *Who gets the lock sees all that former holders wrote.* It took the word that the last holder freed: that
//!   store releases, the exchange acquires, and the last holder had seen the one before it in the same way.
//! - *An obsolete node is never locked again.* No exchange expects that value, and only holders store. What was
//!   copied out of the node under its last lock is therefore all that it will ever have.
//! - *Who is told that a node is obsolete finds what took its place.* The link was stored before the node was
//!   made obsolete, that store releases, and the exchange that fails acquires. So nobody is sent back to the same
//!   node: looking again, once for each replacement, ends.
//!
//! Two holders cannot wait for each other, as locks are taken upwards (a child's before its parent's) and beside
//! only by trying. There is no queue: who waits spins, then yields, and may be overtaken.

use crate::sync::{AtomicU32, Ordering, relax, weakened};

const FREE: u32 = 0;
const LOCKED: u32 = 1;
/// For ever: the node was replaced, and whoever waited for its lock must look again.
const OBSOLETE: u32 = 2;

/// The word in a node that says who may change it.
#[repr(transparent)]
pub(crate) struct Latch(AtomicU32);

/// A node's lock, held.
pub(crate) struct Locked<'g>(&'g Latch);

impl Latch {
    /// Of a node that nobody else knows yet.
    pub(crate) fn new() -> Latch {
        Latch(AtomicU32::new(FREE))
    }

    /// Waits for the lock; `None` if the node was replaced.
    #[inline]
    pub(crate) fn lock(&self) -> Option<Locked<'_>> {
        let mut turn = 0;
        loop {
            match self.take() {
                Ok(lock) => return Some(lock),
                Err(OBSOLETE) => return None,
                Err(_) => relax(&mut turn),
            }
        }
    }

    /// Takes the lock if it is free and the node current.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<Locked<'_>> {
        self.take().ok()
    }

    #[inline]
    fn take(&self) -> Result<Locked<'_>, u32> {
        // ORDERING: acquire pairs with the release in `Locked::drop`: what former holders wrote is seen.
        let taken = weakened!("takes", Acquire);
        // ORDERING: acquire pairs with the release in `Locked::retire`: what took the node's place is found.
        let missed = weakened!("misses", Acquire);
        if weakened!("two_holders") {
            match self.0.load(Ordering::Acquire) {
                FREE => self.0.store(LOCKED, Ordering::Release),
                other => return Err(other),
            }
        } else {
            self.0.compare_exchange(FREE, LOCKED, taken, missed)?;
        }
        Ok(Locked(self))
    }
}

impl Locked<'_> {
    /// Lets go of a node that was replaced, after its replacement was linked.
    pub(crate) fn retire(self) {
        let latch = self.0;
        std::mem::forget(self);
        let last = if weakened!("lives_on") { FREE } else { OBSOLETE };
        // ORDERING: release, so that whoever finds the node obsolete sees the new link.
        latch.0.store(last, weakened!("retires", Release));
    }
}

impl Drop for Locked<'_> {
    #[inline]
    fn drop(&mut self) {
        // ORDERING: release, so that the next holder sees what this one wrote.
        self.0.0.store(FREE, weakened!("frees", Release));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_holder_at_a_time_and_none_once_obsolete() {
        let latch = Latch::new();
        let held = latch.lock().expect("nobody holds it");
        assert!(latch.try_lock().is_none());
        drop(held);
        latch.try_lock().expect("it was let go").retire();
        assert!(latch.lock().is_none() && latch.try_lock().is_none());
    }

    #[test]
    fn a_panic_lets_go() {
        let latch = Latch::new();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _held = latch.lock();
            std::panic::resume_unwind(Box::new("under the lock"));
        }));
        assert!(panicked.is_err() && latch.try_lock().is_some());
    }
}

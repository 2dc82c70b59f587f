//! A node's lock: a mutex with one more state, for a node that was replaced.
//!
//! The states are free, locked and obsolete. A thread locks a free node by one compare-and-swap. The holder then
//! makes the node free again, or obsolete for ever. Readers ignore the lock.
//!
//! Guarantees, and the argument for each:
//!
//! - *A node has one holder at a time.* The word becomes locked only by an exchange that found it free, and an
//!   exchange sees the newest value. From then on only the holder stores to it.
//! - *A holder sees all that former holders wrote.* Its exchange read the word that the last holder freed. That
//!   store releases and the exchange acquires; the last holder saw the one before it in the same way.
//! - *An obsolete node is never locked again.* No exchange expects that value, and only holders store. So a copy
//!   made under the node's last lock is complete.
//! - *A thread that finds a node obsolete also finds its replacement.* The holder stored the link before it made
//!   the node obsolete; that store releases, and the failed exchange acquires. So the thread never comes back to
//!   the same node, and it searches again at most once for each replacement.
//!
//! Two holders cannot wait for each other: locks are taken upwards (a child's before its parent's), and sideways
//! only by `try_lock`. There is no queue: a waiting thread spins, then yields, and may be overtaken.

use crate::sync::{AtomicU32, Ordering, relax, weakened};

const FREE: u32 = 0;
const LOCKED: u32 = 1;
/// The node was replaced and stays obsolete. Threads that waited for its lock must search again.
const OBSOLETE: u32 = 2;

/// The lock word of a node.
#[repr(transparent)]
pub(crate) struct Latch(AtomicU32);

/// A node's lock, held.
pub(crate) struct Locked<'g>(&'g Latch);

impl Latch {
    /// The latch of a node that no other thread can reach yet.
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
        // ORDERING: acquire pairs with the release in `Locked::retire`: the caller then finds the replacement.
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
    /// Releases a node as obsolete. The caller has linked its replacement.
    pub(crate) fn retire(self) {
        let latch = self.0;
        std::mem::forget(self);
        let last = if weakened!("lives_on") { FREE } else { OBSOLETE };
        // ORDERING: release, so that a thread that finds the node obsolete sees the new link.
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

#[cfg(all(test, not(feature = "loom")))]
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

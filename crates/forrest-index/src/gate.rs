//! The gate between ordinary writers and the exclusive ones (a batch, a snapshot being taken).
//!
//! Ordinary writers pass without a fence or a shared cache line: a writer notes the index in its record and loads
//! `closed`. An exclusive writer closes the gate and waits until no record notes the index. The argument is Dekker's:
//! the writer stores its note, then loads `closed`; the exclusive side stores `closed`, then loads the notes; the
//! asymmetric fence between each pair forbids that both load the old value. A writer that finds the gate closed
//! removes its note and waits on the mutex that the exclusive writer holds. Readers ignore the gate.
//!
//! A record has room for one note. What decides about a change of one index, inside its gate, may change another index:
//! that note goes to a record that the thread borrows. The same gate it may not enter, because an exclusive writer may
//! wait for the thread while the thread waits for it. Such a call panics.

use crate::epoch::{Record, Registry};
use crate::sync::{AtomicBool, Ordering, heavy, light, relax, weakened};

#[cfg(feature = "loom")]
use loom::sync::{Mutex, MutexGuard};
#[cfg(not(feature = "loom"))]
use std::sync::{Mutex, MutexGuard};

/// One per index.
pub(crate) struct Gate {
    closed: AtomicBool,
    exclusive: Mutex<()>,
    /// The number that writers note in their records; never 0, and unique in the process.
    id: u64,
}

/// An ordinary writer inside the gate.
pub(crate) struct Shared<'a> {
    record: &'a Record,
    is_borrowed: bool,
}

/// The note of an exclusive writer that decides about a change.
pub(crate) struct Deciding<'a>(&'a Record);

/// The exclusive writer inside the gate.
pub(crate) struct Exclusive<'a> {
    gate: &'a Gate,
    _lock: MutexGuard<'a, ()>,
}

impl Gate {
    pub(crate) fn new(id: u64) -> Self {
        Gate { closed: AtomicBool::new(false), exclusive: Mutex::new(()), id }
    }

    /// Lets an ordinary writer in; waits while an exclusive one is inside.
    ///
    /// # Panics
    /// If the thread is inside.
    #[inline(always)]
    pub(crate) fn enter<'a>(&self, record: &'a Record, registry: &Registry) -> Shared<'a> {
        // ORDERING: only the thread itself stores in its record.
        let inside = match record.writing.load(Ordering::Relaxed) {
            0 => Shared { record, is_borrowed: false },
            _ if weakened!("one_note") => Shared { record, is_borrowed: false },
            _ => self.borrow(record, registry),
        };
        loop {
            // ORDERING: release. An exclusive writer of another index may wait for this thread's earlier write there
            // and see this note instead of the 0 before it; it must see that write.
            inside.record.writing.store(self.id, weakened!("next_index", Release));
            light();
            // ORDERING: acquire pairs with the release in `Exclusive::drop`: its changes are seen.
            if !self.closed.load(Ordering::Acquire) {
                return inside;
            }
            inside.record.writing.store(0, Ordering::Release);
            drop(self.exclusive.lock().unwrap_or_else(|e| e.into_inner()));
        }
    }

    /// A record for a thread that is inside of another gate.
    #[cold]
    #[inline(never)]
    fn borrow(&self, record: &Record, registry: &Registry) -> Shared<'static> {
        self.check_outside(record);
        Shared { record: registry.acquire(), is_borrowed: true }
    }

    /// # Panics
    /// If the thread is inside, or an exclusive writer that decides about a change.
    pub(crate) fn check_outside(&self, record: &Record) {
        // ORDERING: as in `enter`.
        if record.writing.load(Ordering::Relaxed) == self.id {
            is_inside();
        }
    }

    /// Notes that the exclusive writer decides about a change, so that it does not wait for itself. Others do not look
    /// at the note: they wait for the lock.
    pub(crate) fn decide<'a>(&self, record: &'a Record) -> Option<Deciding<'a>> {
        // ORDERING: as in `enter`.
        (record.writing.load(Ordering::Relaxed) == 0).then(|| {
            record.writing.store(self.id, Ordering::Release);
            Deciding(record)
        })
    }

    /// Lets the exclusive writer in, once all others have left.
    pub(crate) fn close<'a>(&'a self, registry: &Registry) -> Exclusive<'a> {
        let lock = self.exclusive.lock().unwrap_or_else(|e| e.into_inner());
        self.closed.store(true, Ordering::Relaxed);
        heavy();
        for record in registry.records() {
            let mut turn = 0;
            // ORDERING: acquire pairs with the release in `Shared::drop`: that writer's changes are seen.
            while record.writing.load(Ordering::Acquire) == self.id {
                relax(&mut turn);
            }
        }
        Exclusive { gate: self, _lock: lock }
    }
}

#[cold]
#[inline(never)]
fn is_inside() -> ! {
    panic!(
        "a store in memory was changed, or a snapshot of it taken, from within what decides about another change"
    );
}

impl Drop for Shared<'_> {
    #[inline]
    fn drop(&mut self) {
        self.record.writing.store(0, weakened!("writer_leaves", Release));
        if self.is_borrowed {
            Registry::release(self.record);
        }
    }
}

impl Drop for Deciding<'_> {
    fn drop(&mut self) {
        self.0.writing.store(0, Ordering::Release);
    }
}

impl Drop for Exclusive<'_> {
    fn drop(&mut self) {
        self.gate.closed.store(false, weakened!("exclusive_leaves", Release));
    }
}

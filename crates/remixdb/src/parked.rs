//! [`Parked`]: scans between two refills of an iteration, which the store drops when their tables are
//! replaced.
//!
//! A scan holds the version that it reads, and with it files. Continuing a scan is cheaper than a new seek,
//! but the next refill may come late or never. So an iteration keeps its scan in a [`Slot`], and the store
//! has a list of all slots. After a compaction has replaced tables, it empties the slots whose scans read
//! another version than the newest. Their iterations seek again, in the newest version, as every iteration
//! does after a new version. So no idle iteration holds replaced files.
//!
//! - An iteration waits for nobody: the lock of a slot is held only to put a scan in or to take it out, and a
//!   scan is dropped outside of it. While a refill runs, its scan is not in the slot, and holds its version
//!   until the refill ends.
//! - Each thread has its own list for the slots that it makes. When a list has doubled, it removes the slots
//!   of ended iterations. So it is at most twice as long as the greatest number of concurrent iterations, or
//!   [`FEW`].

use crate::scan::Scan;
use crate::stripe::Stripes;
use crate::sync::{Mutex, lock};
use crate::version::Version;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Weak};

/// Minimum length at which a list removes anything.
const FEW: usize = 32;

/// All slots of a store.
pub(crate) struct Parked {
    lists: Stripes<Mutex<List>>,
    /// The newest version, for comparing only.
    newest: AtomicPtr<Version>,
}

/// Slots that threads of one stripe made.
struct List {
    slots: Vec<Weak<Slot>>,
    /// The length at which the slots of ended iterations are removed.
    limit: usize,
}

/// Where an iteration keeps its scan between two refills.
pub(crate) struct Slot(Mutex<Option<Box<Scan>>>);

impl Slot {
    /// Takes the scan out, if it is still there.
    pub(crate) fn take(&self) -> Option<Box<Scan>> {
        lock(&self.0).take()
    }
}

impl Parked {
    pub(crate) fn new(newest: &Arc<Version>) -> Parked {
        Parked {
            lists: Stripes::new(|| Mutex::new(List { slots: Vec::new(), limit: FEW })),
            newest: AtomicPtr::new(Arc::as_ptr(newest).cast_mut()),
        }
    }

    /// Makes a version the newest: from now on, a scan of another version does not stay in its slot.
    pub(crate) fn replace(&self, newest: &Arc<Version>) {
        // ORDERING: `drop_old` locks each slot afterwards, which orders this store before `is_newest`.
        self.newest.store(Arc::as_ptr(newest).cast_mut(), Ordering::Relaxed);
    }

    /// Whether a version is the newest. The address of a version that is held is unique.
    fn is_newest(&self, version: *const Version) -> bool {
        std::ptr::eq(self.newest.load(Ordering::Relaxed), version)
    }

    /// A slot for an iteration, with its scan.
    pub(crate) fn park(&self, scan: Box<Scan>) -> Arc<Slot> {
        let slot = Arc::new(Slot(Mutex::new(None)));
        {
            let mut list = lock(self.lists.mine());
            if list.slots.len() >= list.limit {
                list.slots.retain(|slot| slot.strong_count() > 0);
                list.limit = FEW.max(2 * list.slots.len());
            }
            list.slots.push(Arc::downgrade(&slot));
        }
        self.park_again(&slot, scan);
        slot
    }

    /// Puts the scan back into the iteration's slot.
    pub(crate) fn park_again(&self, slot: &Slot, scan: Box<Scan>) {
        let version = scan.version();
        *lock(&slot.0) = Some(scan);
        // ORDERING: either `drop_old` locks the slot after this thread, and finds the scan, or it has done so
        // before, and then this thread sees the newest version. The same holds for the list, if the slot is
        // not in it yet.
        if !self.is_newest(version) {
            drop(slot.take());
        }
    }

    /// Drops the scans of all versions but the newest, and with them files. Called after [`replace`](Self::replace).
    pub(crate) fn drop_old(&self) {
        for list in self.lists.iter() {
            let slots: Vec<_> = lock(list).slots.iter().filter_map(Weak::upgrade).collect();
            for slot in slots {
                let mut scan = lock(&slot.0);
                let old = if scan.as_ref().is_some_and(|scan| !self.is_newest(scan.version())) {
                    scan.take()
                } else {
                    None
                };
                drop(scan);
                drop(old);
            }
        }
    }
}

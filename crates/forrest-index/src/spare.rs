//! [`Spare`]: the memory of an index that was dropped, for the next one. The system fills all memory that it gives with
//! zeros, which takes a tenth of the time in which a tree fills it with small pairs.

use forrest_base::lock;
use forrest_machine::pages::{Committed, Pages, Region};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Where indexes leave their memory when they are dropped, and where new ones find it. It holds the memory of one index
/// at most. Cloning makes another handle.
#[derive(Debug, Clone)]
pub struct Spare(Arc<Place>);

#[derive(Debug)]
struct Place {
    most: AtomicU64,
    left: Mutex<Option<Left>>,
}

/// Memory that an index has left.
#[derive(Debug)]
pub(crate) struct Left {
    pub(crate) region: Region,
    /// The index has used this many chunks, the first ones.
    pub(crate) chunks: u32,
}

impl Spare {
    /// A place for up to `most` bytes of memory. That of an index with more is given back to the system.
    pub fn new(most: u64) -> Spare {
        Spare(Arc::new(Place { most: AtomicU64::new(most), left: Mutex::default() }))
    }

    /// Sets the limit for the memory of indexes that are dropped from now on.
    pub fn set_most(&self, bytes: u64) {
        // ORDERING: it stands for itself.
        self.0.most.store(bytes, Ordering::Relaxed);
    }

    /// The memory that waits for the next index.
    pub fn committed(&self) -> Committed {
        lock(&self.0.left).as_ref().map_or_else(Committed::default, |left| left.region.committed())
    }

    /// Gives the memory that waits back to the system.
    pub fn clear(&self) {
        let left = lock(&self.0.left).take();
        // After the lock was released: it takes long.
        drop(left);
    }

    /// Takes the memory, if it has this size and these pages. Other memory is given back to the system.
    pub(crate) fn take(&self, bytes: usize, pages: Pages) -> Option<Left> {
        let left = lock(&self.0.left).take()?;
        (left.region.len() == bytes && left.region.pages() == pages).then_some(left)
    }

    /// Leaves the memory of an index that is dropped, instead of what was there.
    pub(crate) fn put(&self, left: Left) {
        let committed = left.region.committed();
        // A page of 1 GiB is held whole.
        let held = committed.total_bytes() + committed.spare_bytes;
        if held as u64 <= self.0.most.load(Ordering::Relaxed) {
            let old = lock(&self.0.left).replace(left);
            drop(old);
        }
    }
}

//! The live snapshots, and the nodes that are kept for them: the eras of [`crate::snapshot`].

use crate::reclaim::Garbage;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

struct Parked {
    birth: u64,
    garbage: Garbage,
}

/// The snapshots of an index that are alive.
pub(crate) struct Snapshots {
    /// By era: the garbage parked with each.
    live: Mutex<BTreeMap<u64, Vec<Parked>>>,
    /// The era of the newest, 0 if there is none.
    floor: AtomicU64,
    /// The era in which nodes are made now. Changes only while the gate is closed.
    era: AtomicU64,
}

impl Snapshots {
    pub(crate) fn new() -> Self {
        Snapshots { live: Mutex::default(), floor: AtomicU64::new(0), era: AtomicU64::new(1) }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Vec<Parked>>> {
        self.live.lock().unwrap_or_else(|e| e.into_inner())
    }

    pub(crate) fn floor(&self) -> u64 {
        // ORDERING: it rises only while the gate keeps writers out; a stale higher value costs a copy.
        self.floor.load(Ordering::Relaxed)
    }

    pub(crate) fn era(&self) -> u64 {
        self.era.load(Ordering::Relaxed)
    }

    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    /// Ends the era and returns it. The caller has the gate for itself.
    pub(crate) fn next_era(&self) -> u64 {
        self.era.fetch_add(1, Ordering::Relaxed)
    }

    /// Keeps garbage that a live snapshot can reach; gives it back if there is none.
    pub(crate) fn park(&self, birth: u64, garbage: Garbage) -> Option<Garbage> {
        if birth > self.floor() {
            return Some(garbage);
        }
        let mut live = self.lock();
        match live.last_entry() {
            Some(mut newest) if *newest.key() >= birth => {
                newest.get_mut().push(Parked { birth, garbage });
                None
            }
            _ => Some(garbage),
        }
    }

    pub(crate) fn add(&self, era: u64) {
        let mut live = self.lock();
        live.insert(era, Vec::new());
        self.floor.store(era, Ordering::Relaxed);
    }

    /// Forgets a snapshot and returns what no other reaches.
    pub(crate) fn remove(&self, era: u64) -> Vec<Garbage> {
        let mut live = self.lock();
        let parked = live.remove(&era).unwrap_or_default();
        self.floor.store(live.last_key_value().map_or(0, |(&era, _)| era), Ordering::Relaxed);
        let Some((&older, list)) = live.range_mut(..era).next_back() else {
            return parked.into_iter().map(|p| p.garbage).collect();
        };
        let (keep, free): (Vec<_>, Vec<_>) = parked.into_iter().partition(|p| p.birth <= older);
        list.extend(keep);
        free.into_iter().map(|p| p.garbage).collect()
    }
}

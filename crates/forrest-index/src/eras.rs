//! The live snapshots, and the nodes that are kept for them: the eras of [`crate::snapshot`].

use crate::reclaim::Garbage;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

struct Parked {
    birth: u64,
    garbage: Garbage,
}

/// The garbage that is parked with a snapshot.
#[derive(Default)]
struct Held {
    own: Vec<Parked>,
    /// Lists that came from snapshots that were dropped.
    moved: Vec<Vec<Parked>>,
}

/// The snapshots of an index that are alive.
pub(crate) struct Snapshots {
    /// By era. A writer takes the lock for each node that it replaces, so it is held for a moment only.
    live: Mutex<BTreeMap<u64, Held>>,
    /// The era of the newest, 0 if there is none.
    floor: AtomicU64,
    /// The era in which nodes are made now. Changes only while the gate is closed.
    era: AtomicU64,
}

impl Snapshots {
    pub(crate) fn new() -> Self {
        Snapshots { live: Mutex::default(), floor: AtomicU64::new(0), era: AtomicU64::new(1) }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Held>> {
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
                newest.get_mut().own.push(Parked { birth, garbage });
                None
            }
            _ => Some(garbage),
        }
    }

    pub(crate) fn add(&self, era: u64) {
        let mut live = self.lock();
        live.insert(era, Held::default());
        self.floor.store(era, Ordering::Relaxed);
    }

    /// Forgets a snapshot and returns what no other reaches.
    pub(crate) fn remove(&self, era: u64) -> Vec<Garbage> {
        let (held, mut older) = {
            let mut live = self.lock();
            let held = live.remove(&era).unwrap_or_default();
            self.floor.store(live.last_key_value().map_or(0, |(&era, _)| era), Ordering::Relaxed);
            (held, older_than(&live, era))
        };
        let mut kept: Vec<Parked> = [held.own].into_iter().chain(held.moved).flatten().collect();
        let mut free = Vec::new();
        // What is in hand is in no list, so nobody frees it meanwhile. Only the older snapshots reach it, and those may
        // be dropped while it is looked through.
        while let Some(next) = older {
            let (keep, unreached): (Vec<_>, Vec<_>) =
                kept.into_iter().partition(|parked| parked.birth <= next);
            free.extend(unreached.into_iter().map(|parked| parked.garbage));
            let mut live = self.lock();
            if let Some(held) = live.get_mut(&next) {
                held.moved.extend((!keep.is_empty()).then_some(keep));
                return free;
            }
            (kept, older) = (keep, older_than(&live, era));
        }
        free.extend(kept.into_iter().map(|parked| parked.garbage));
        free
    }
}

/// The newest snapshot before an era.
fn older_than(live: &BTreeMap<u64, Held>, era: u64) -> Option<u64> {
    live.range(..era).next_back().map(|(&older, _)| older)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::Barrier;
    use std::thread;

    /// The number of a piece of garbage.
    fn number(garbage: &Garbage) -> u64 {
        match garbage {
            Garbage::Block(_, number) => u64::from(*number),
            _ => unreachable!("only blocks are parked here"),
        }
    }

    /// Snapshots of the eras from 1 on. With each, nodes of every era up to it are parked; a node's number tells both.
    fn parked(eras: u64) -> Snapshots {
        let snapshots = Snapshots::new();
        for era in 1..=eras {
            snapshots.add(era);
            for birth in 1..=era {
                let block = Garbage::Block(0, (era * 100 + birth) as u32);
                assert!(snapshots.park(birth, block).is_none(), "it can be reached");
            }
        }
        snapshots
    }

    #[test]
    fn a_node_is_freed_with_the_last_snapshot_that_reaches_it() {
        const ERAS: u64 = 4;
        // Every order of dropping them.
        let orders = (0..ERAS.pow(ERAS as u32))
            .map(|code| (0..ERAS).map(move |at| code / ERAS.pow(at as u32) % ERAS + 1));
        let orders =
            orders.map(Vec::from_iter).filter(|order| BTreeSet::from_iter(order).len() == ERAS as usize);
        for order in orders {
            let (snapshots, mut live) = (parked(ERAS), BTreeSet::from_iter(1..=ERAS));
            for era in order {
                live.remove(&era);
                let freed: BTreeSet<u64> = snapshots.remove(era).iter().map(number).collect();
                let is_reached = |birth, until| live.range(birth..=until).next().is_some();
                let all = (1..=ERAS).flat_map(|until| (1..=until).map(move |birth| (birth, until)));
                let due =
                    all.filter(|&(birth, until)| (birth..=until).contains(&era) && !is_reached(birth, until));
                assert_eq!(freed, due.map(|(birth, until)| until * 100 + birth).collect());
            }
        }
    }

    #[test]
    fn snapshots_dropped_at_once_free_each_node_once() {
        const ERAS: u64 = 6;
        for _ in 0..300 {
            let (snapshots, begin) = (parked(ERAS), Barrier::new(ERAS as usize));
            let remove = |era| {
                begin.wait();
                snapshots.remove(era).iter().map(number).collect::<Vec<_>>()
            };
            let mut freed: Vec<u64> = thread::scope(|scope| {
                let remove = &remove;
                let threads: Vec<_> = (1..=ERAS).map(|era| scope.spawn(move || remove(era))).collect();
                threads.into_iter().flat_map(|thread| thread.join().expect("it ends")).collect()
            });
            freed.sort_unstable();
            let all = (1..=ERAS).flat_map(|until| (1..=until).map(move |birth| until * 100 + birth));
            assert_eq!(freed, Vec::from_iter(all));
            assert_eq!((snapshots.count(), snapshots.floor()), (0, 0));
        }
    }
}

//! The budget of a store: whatever it does, what it reports of its memory stays within `memory_bytes`, as long as the
//! indexes of its tables take less than half of that.

use super::world::{options, seeds};
use crate::catalog::Space;
use crate::core::Handle;
use crate::disk::Sealed;
use crate::disk::simulated::Simulated;
use crate::view::Snapshot;
use forrest_base::random::Random;
use forrest_engine::{Durability, Op, Options, View as _};
use forrest_index::Direction;
use forrest_testing::sized;
use std::collections::VecDeque;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

const MIB: usize = 1 << 20;
const MEMORY: usize = 24 * MIB;
const MEMTABLE: usize = 2 * MIB;
/// More snapshots than these would keep more memtables than the budget has room for.
const SNAPSHOTS: usize = 2;
const KEYS: u64 = 30_000;

/// A store in use, and the snapshots of it.
struct Used {
    store: Handle,
    spaces: Vec<Arc<Space>>,
    snapshots: VecDeque<Snapshot>,
    random: Random,
}

impl Used {
    fn new(disk: &Simulated, seed: u64) -> Used {
        let options = Options {
            memory_bytes: Some(MEMORY),
            memtable_bytes: MEMTABLE,
            cache_bytes: 16 * MIB,
            table_bytes: 4 * MIB as u64,
            ..options(Durability::Memory)
        };
        let store = Handle::open_unattended(Sealed::plain(disk.clone()), &options).expect("it opens");
        let spaces = ["default", "other"].map(|name| store.keyspace(name).expect("it is made")).to_vec();
        Used { store, spaces, snapshots: VecDeque::new(), random: Random(seed) }
    }

    fn key(&mut self) -> [u8; 16] {
        let mut key = [0; 16];
        Random(self.random.below(KEYS)).fill(&mut key);
        key
    }

    /// Does one thing.
    fn step(&mut self) {
        let key = self.key();
        let space = self.spaces[self.random.below(8) as usize / 7].clone();
        let len = if self.random.below(50) == 0 { 100_000 } else { self.random.below(600) as usize };
        let value = vec![7; len];
        let view = self.store.view(&space);
        match self.random.below(1000) {
            0..700 => drop(self.store.apply(&space, Op::Set { key: &key, value: &value }).expect("it fits")),
            700..780 => drop(self.store.apply(&space, Op::Delete { key: &key }).expect("it fits")),
            780..800 => {
                let keys: Vec<_> = (0..200).map(|_| self.key()).collect();
                let value = &value[..len.min(300)];
                let ops: Vec<_> = keys.iter().map(|key| (&space, Op::Set { key: &key[..], value })).collect();
                let _applied = self.store.write(&ops, None).expect("it fits");
            }
            800..805 => {
                let end = [key[0].saturating_add(self.random.below(8) as u8)];
                let op = Op::DeleteRange { start: &key[..], end: Some(&end[..]) };
                self.store.apply(&space, op).expect("it fits");
            }
            805..960 => drop(view.get(&key).expect("it reads")),
            960..980 => {
                let (mut left, bounds) =
                    (self.random.below(3_000), (Bound::Included(&key[..]), Bound::Unbounded));
                let scanned = view.scan(bounds, Direction::Forward, |_, _| {
                    left = left.saturating_sub(1);
                    if left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                });
                scanned.expect("it reads");
            }
            980..988 => self.snapshots.push_back(self.store.snapshot().expect("there are snapshots")),
            988..990 => self.store.flush_all().expect("it makes tables"),
            990 => self.store.compact().expect("it merges"),
            991..996 => while self.store.compact_dead().expect("it merges") {},
            _ => self.store.shared.cache.release(),
        }
        if self.snapshots.len() > SNAPSHOTS {
            self.snapshots.pop_front();
        }
        // As the thread of the background work would.
        while self.store.backlog_bytes() >= self.store.backlog_bytes_most() {
            self.store.step().expect("it makes tables");
        }
        self.store.balance();
    }
}

#[test]
fn what_a_store_reports_stays_within_its_memory() {
    let mut largest = 0;
    for seed in seeds(2, 8) {
        let disk = Simulated::new();
        let mut used = Used::new(&disk, seed);
        for step in 0..sized(4_000, 8_000) {
            used.step();
            if step % 20 > 0 {
                continue;
            }
            let stats = used.store.stats().expect("it has figures");
            let memtables = stats.reserved_bytes + stats.value_bytes_outside;
            let sum = memtables + stats.kept_bytes + stats.cache_bytes + stats.index_bytes;
            let is_due = stats.index_bytes < MEMORY as u64 / 2;
            assert!(
                !is_due || sum <= (MEMORY + MEMORY / 10) as u64,
                "seed {seed}, step {step}: {sum} bytes: memtables {memtables}, kept {}, cache {}, indexes {}",
                stats.kept_bytes,
                stats.cache_bytes,
                stats.index_bytes
            );
            largest = largest.max(sum);
        }
    }
    assert!(largest > MEMORY as u64 / 2, "{largest} bytes: it had too little to do");
}

//! Values of the memory home that expire, compared with a model that has the time of each, while the clock jumps and
//! what has expired is removed now and then, also between two notes of writers that overtook each other.

use crate::expiry::Moved;
use crate::memory::{MemoryKeyspace, MemoryStore};
use forrest_engine::clock::Clock;
use forrest_engine::{Direction, Keyspace as _, Options, Store as _, View as _};
use std::ops::{Bound, ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[test]
fn values_that_expire_conform() {
    conform(0..10);
}

/// Mutants must fail here.
pub(super) fn conform(seeds: Range<u64>) {
    for seed in seeds {
        let wall_ms = Arc::new(AtomicU64::new(0));
        let clock = Clock::new({
            let wall_ms = wall_ms.clone();
            move || wall_ms.load(Ordering::Relaxed)
        });
        let store = MemoryStore::with_clock(&Options::default(), clock, false).expect("a store");
        let mut turn = 0;
        forrest_engine::expiring::check(
            &store,
            seed,
            300,
            &|ms| wall_ms.store(ms, Ordering::Relaxed),
            |store| {
                turn += 1;
                if turn % 3 == 0 {
                    let later = expiring(store);
                    let note = |from, to| {
                        later.iter().for_each(|(keyspace, key)| keyspace.note(key, Moved { from, to }));
                    };
                    // Writers note when values expire that others have replaced meanwhile, and these note that later.
                    note(0, 1);
                    while store.remove_expired() {}
                    note(1, 0);
                    while store.remove_expired() {}
                    check_space(store, &format!("seed {seed}, step {turn}"));
                }
            },
        );
    }
}

/// The keys whose values expire later.
fn expiring(store: &MemoryStore) -> Vec<(MemoryKeyspace, Vec<u8>)> {
    let mut keys = Vec::new();
    for name in store.keyspaces().expect("names") {
        let keyspace = store.keyspace(&name).expect("a keyspace");
        let view = keyspace.view();
        let see = |key: &[u8], _: &[u8]| {
            if view.expires_ms(key).expect("it is read").flatten().is_some() {
                keys.push((keyspace.clone(), key.to_vec()));
            }
            ControlFlow::Continue(())
        };
        view.scan((Bound::Unbounded, Bound::Unbounded), Direction::Forward, see).expect("it is read");
    }
    keys
}

/// Nothing is there but what is shown, and the store knows of each value that expires, and of no other.
fn check_space(store: &MemoryStore, at: &str) {
    let (mut shown, mut expiring) = (0, 0);
    for name in store.keyspaces().expect("names") {
        let view = store.keyspace(&name).expect("a keyspace").view();
        let see = |key: &[u8], _: &[u8]| {
            shown += 1;
            expiring += u64::from(view.expires_ms(key).expect("it is read").flatten().is_some());
            ControlFlow::Continue(())
        };
        view.scan((Bound::Unbounded, Bound::Unbounded), Direction::Forward, see).expect("it is read");
    }
    let stats = store.stats().expect("statistics");
    assert_eq!((stats.keys, stats.expiring), (shown, expiring), "{at}");
}

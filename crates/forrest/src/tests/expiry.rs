//! Values of the memory home that expire, compared with a model that has the time of each, while the clock jumps and
//! what has expired is removed now and then, also between two notes of writers that overtook each other.

use crate::expiry::Moved;
use crate::memory::{MemoryKeyspace, MemoryStore};
use forrest_engine::clock::Clock;
use forrest_engine::{Cursor as _, Direction, ErrorKind, Expires, Goto, Keyspace as _, Op};
use forrest_engine::{DEFAULT_KEYSPACE, Options, Store as _, View as _};
use std::cell::Cell;
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
        let (store, wall_ms) = unattended(&Options::default());
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
                    while store.remove_expired(&|| true) {}
                    note(1, 0);
                    while store.remove_expired(&|| true) {}
                    check_space(store, &format!("seed {seed}, step {turn}"));
                }
            },
        );
    }
}

/// A store that removes nothing by itself, and its time.
fn unattended(options: &Options) -> (MemoryStore, Arc<AtomicU64>) {
    let wall_ms = Arc::new(AtomicU64::new(0));
    let clock = Clock::new({
        let wall_ms = wall_ms.clone();
        move || wall_ms.load(Ordering::Relaxed)
    });
    (MemoryStore::with_clock(options, clock, false).expect("a store"), wall_ms)
}

fn set_until(keyspace: &MemoryKeyspace, key: &[u8], ms: u64) -> forrest_engine::Result<()> {
    keyspace.apply(Op::SetUntil { key, value: b"v", expires: Expires::At(ms) }).map(drop)
}

/// A delete in a full store waits for a while before it fails. A round that waited for each key did not end.
#[test]
fn what_there_is_no_memory_to_remove_is_removed_later() {
    let options = Options { capacity_bytes: Some(8 << 20), ..Options::default() };
    let (store, wall_ms) = unattended(&options);
    let keyspace = store.keyspace(DEFAULT_KEYSPACE).expect("a keyspace");
    let mut keys = 0_u64;
    // In another order than that of the times, so that a round changes all leaves.
    while match set_until(&keyspace, &keys.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes(), keys + 1) {
        Ok(()) => true,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::OutOfSpace);
            false
        }
    } {
        keys += 1;
    }
    let there = || {
        let stats = store.stats().expect("statistics");
        (stats.keys, stats.expiring)
    };
    assert_eq!(there(), (keys, keys));
    let held = store.snapshot().expect("a snapshot");
    wall_ms.store(keys + 1, Ordering::Relaxed);
    while store.remove_expired(&|| true) {}
    let (left, noted) = there();
    assert!(left > 0, "the snapshot is to keep the store full");
    assert_eq!(noted, left);
    drop(held);
    while there().0 > 0 {
        store.remove_expired(&|| true);
    }
    assert_eq!(there(), (0, 0));
}

#[test]
fn a_round_ends_when_nobody_wants_the_store() {
    let (store, wall_ms) = unattended(&Options::default());
    let keyspace = store.keyspace(DEFAULT_KEYSPACE).expect("a keyspace");
    (0..9).for_each(|key| set_until(&keyspace, &[key], 5).expect("it is set"));
    wall_ms.store(5, Ordering::Relaxed);
    let wanted = Cell::new(4);
    let is_wanted = || wanted.replace(wanted.get() - 1) > 0;
    assert!(!store.remove_expired(&is_wanted));
    let stats = store.stats().expect("statistics");
    assert_eq!((stats.keys, stats.expiring), (5, 5));
}

/// As on disk.
#[test]
fn a_cursor_stays_at_a_pair_that_expires() {
    let (store, wall_ms) = unattended(&Options::default());
    let keyspace = store.keyspace(DEFAULT_KEYSPACE).expect("a keyspace");
    [b"a", b"b", b"c"].iter().for_each(|key| set_until(&keyspace, *key, 5).expect("it is set"));
    keyspace.apply(Op::Set { key: b"d", value: b"v" }).expect("it is set");
    let mut cursor = keyspace.view().cursor();
    let mut goto = |goto| {
        let found = cursor.goto(goto).expect("it is read");
        cursor.key().filter(|_| found).map(<[u8]>::to_vec)
    };
    assert_eq!(goto(Goto::First), Some(b"a".to_vec()));
    wall_ms.store(5, Ordering::Relaxed);
    assert_eq!(goto(Goto::Skip(0)), Some(b"a".to_vec()));
    assert_eq!(goto(Goto::Skip(1)), Some(b"d".to_vec()));
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

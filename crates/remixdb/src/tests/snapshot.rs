//! Snapshots beside writers: taking and dropping one waits for no writer's I/O, and each reads one state.

use super::world::options;
use crate::core::Handle;
use crate::disk::Sealed;
use crate::disk::simulated::Simulated;
use forrest_engine::{Durability, Op, Options, Snapshot as _, View as _};
use forrest_testing::sized;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_snapshot_does_not_wait_for_the_holder_of_the_order_lock() {
    let store = Handle::open_unattended(Sealed::plain(Simulated::new()), &options(Durability::Memory))
        .expect("it opens");
    let space = store.keyspace("default").expect("it is there");
    store.apply(&space, Op::Set { key: b"key", value: b"value" }).expect("it fits");
    // As while a new log is made.
    let order = store.order();
    let (done, is_done) = channel();
    let other = store.clone();
    let reader = thread::spawn(move || {
        let snapshot = other.snapshot().expect("there are snapshots");
        let found = snapshot.view("default").get(b"key").expect("it reads");
        drop(snapshot);
        done.send(found).expect("somebody waits");
    });
    let found = is_done.recv_timeout(PATIENCE);
    drop(order);
    reader.join().expect("it ends");
    assert_eq!(found.expect("it did not wait").as_deref(), Some(&b"value"[..]));
}

/// Reads snapshots until `over`, each again and again.
fn read(store: &Handle, keys: &[[u8; 1]], over: &AtomicBool) -> Result<(), String> {
    let (mut last, mut taken) = ((0, 0), 0);
    while !over.load(Ordering::Relaxed) {
        let snapshot = store.snapshot().expect("there are snapshots");
        let view = snapshot.view("default");
        let number = |key: &[u8]| {
            let bytes = view.get(key).expect("it reads");
            bytes.map_or(0, |bytes| u64::from_be_bytes((&bytes[..]).try_into().expect("eight bytes")))
        };
        let read = || (number(&keys[0]), number(b"count"));
        let first = read();
        for _ in 0..20 {
            let again = read();
            if again != first || first < last || keys.iter().any(|key| number(key) != first.0) {
                over.store(true, Ordering::Relaxed);
                return Err(format!("{last:?} before, then {first:?}, then {again:?}, or a part of a batch"));
            }
        }
        (last, taken) = (first, taken + 1);
    }
    if taken > 100 { Ok(()) } else { Err(format!("only {taken} snapshots")) }
}

/// Batches set all keys to one number, single changes count one key up, and memtables become tables all the time. Each
/// snapshot beside that reads one state.
fn reads_one_state(millis: u64) {
    let options = Options { memtable_bytes: 4 << 10, ..options(Durability::Memory) };
    let store = Handle::open(Sealed::plain(Simulated::new()), &options).expect("it opens");
    let space = store.keyspace("default").expect("it is there");
    let (over, end) = (AtomicBool::new(false), Instant::now() + Duration::from_millis(millis));
    let keys: Vec<_> = (0..10).map(|number| [number]).collect();
    thread::scope(|scope| {
        let reader = scope.spawn(|| read(&store, &keys, &over));
        for number in 0u64.. {
            let value = number.to_be_bytes();
            let set = |key| (&space, Op::Set { key, value: &value[..] });
            let ops: Vec<_> = keys.iter().map(|key| set(&key[..])).collect();
            let mut written = store.write(&ops, None).map(drop);
            for _ in 0..10 {
                written =
                    written.and_then(|()| store.apply(&space, Op::Add { key: b"count", delta: 1 }).map(drop));
            }
            if written.is_err() || over.load(Ordering::Relaxed) || Instant::now() >= end {
                over.store(true, Ordering::Relaxed);
                written.expect("it fits");
                break;
            }
        }
        reader.join().expect("it ends").expect("each snapshot is one state");
    });
}

#[test]
fn a_snapshot_beside_writers_reads_one_state_again_and_again() {
    reads_one_state(sized(1_000, 4_000));
}

//! What went wrong in the ancestor of the disk engine, each reproduced there, and must be impossible here. A test for
//! each, here or where its name says:
//!
//! 1. Kills lose the store, because file numbers are used again: `crash::a_crash_upon_a_crash_loses_nothing` and, with
//!    real processes, `kill::what_was_acknowledged_survives_kills`.
//! 2. A kill leaves two logs of one version, and opening hangs: the same; logs are a chain.
//! 5. Checksums that cover a part: `damage::a_flipped_bit_is_reported_or_harmless`.
//! 6. Names that are never synced, syncs beside the writes: `crash::nothing_durable_is_lost_wherever_the_power_is_cut`
//!    and the mutants (docs/testing.md).
//! 7. A full disk hangs the process: `faults::any_io_may_fail`.
//! 8. A thread that syncs stops those that write: `sync::a_sync_holds_up_nobody_who_does_not_want_one`.
//! 9. Acknowledged writes stay in user memory: `crash::what_was_acknowledged_as_buffered_survives_a_kill`.

use forrest::{Db, ErrorKind, MAX_KEY_BYTES};
use tempfile::TempDir;

fn store() -> (TempDir, Db) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store");
    let builder = Db::builder()
        .memtable_bytes(32 << 10)
        .table_bytes(64 << 10)
        .cache_bytes(32 << 10)
        .batch_bytes_max(16 << 20);
    let db = builder.open(path.to_str().expect("it is text")).expect("a store on disk");
    (directory, db)
}

/// 3. An idle handle, or an iterator left open, stalls all writers; an iterator and a put in one thread deadlock.
#[test]
fn readers_and_idle_handles_hold_nobody_up() {
    let (_directory, db) = store();
    let idle = db.clone();
    for number in 0..1000_u32 {
        db.set(number.to_be_bytes(), [7; 100]).expect("it is written");
    }
    let mut iteration = db.range(..);
    let mut cursor = db.cursor();
    let snapshot = db.snapshot().expect("a snapshot");
    assert!(iteration.next().is_some() && cursor.first().expect("it is read"));
    // Enough for many memtables, all while the readers stand where they are.
    for number in 0..5000_u32 {
        db.set(number.to_be_bytes(), [8; 100]).expect("it is written");
        if number % 1000 == 0 {
            assert!(iteration.next().is_some() && cursor.next().expect("it is read"));
        }
    }
    db.compact().expect("it is compacted");
    let left = iteration.collect::<Result<Vec<_>, _>>().expect("it is read").len();
    assert!(left >= 1000 - 6, "{left} keys that were there throughout");
    assert_eq!(snapshot.count(..).expect("it is read"), 1000);
    assert_eq!(idle.count(..).expect("it is read"), 5000);
}

/// 4. Long keys overflow a buffer while iterating; a get during an iteration reads freed memory.
#[test]
fn the_longest_keys_are_iterated_while_others_are_looked_up() {
    let (_directory, db) = store();
    let key = |number: u8, len: usize| [vec![number; len - 1], vec![number]].concat();
    let lengths = [1, 4095, 4096, 4097, 40_000, MAX_KEY_BYTES];
    for (number, len) in (0..).zip(lengths) {
        db.set(key(number, len), vec![number; len]).expect("it is written");
    }
    for compacted in [false, true] {
        if compacted {
            db.compact().expect("it is compacted");
        }
        for (entry, (number, len)) in db.range(..).zip((0..).zip(lengths)) {
            let entry = entry.expect("it is read");
            assert_eq!(
                db.get(key(5, MAX_KEY_BYTES)).expect("it is read").map(|value| value.len()),
                Some(MAX_KEY_BYTES)
            );
            assert_eq!(
                (entry.key(), &*entry.value().expect("it is read")),
                (&key(number, len)[..], &vec![number; len][..])
            );
        }
        assert_eq!(db.range(..).rev().count(), lengths.len());
    }
}

/// 10. No lock file: two processes open one store; many handles crash.
#[test]
fn a_store_is_open_once_and_has_any_number_of_handles() {
    let (directory, db) = store();
    let path = directory.path().join("store");
    let path = path.to_str().expect("it is text");
    assert_eq!(Db::open(path).expect_err("it is open").kind(), ErrorKind::Busy);
    let handles: Vec<_> = (0..10_000).map(|_| (db.clone(), db.range(..))).collect();
    db.set("key", "value").expect("it is written");
    drop(db);
    assert_eq!(Db::open(path).expect_err("handles are left").kind(), ErrorKind::Busy);
    drop(handles);
    assert_eq!(
        Db::open(path).expect("it is closed").get("key").expect("it is read").as_deref(),
        Some(&b"value"[..])
    );
}

/// 11. Loading the library installs signal handlers.
#[test]
#[cfg(target_os = "linux")]
fn no_signal_handlers_are_installed() {
    let caught = || {
        let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
        status.lines().find(|line| line.starts_with("SigCgt")).expect("it tells which are caught").to_string()
    };
    let before = caught();
    let (_directory, db) = store();
    db.set("key", "value").expect("it is written");
    assert_eq!(caught(), before);
}

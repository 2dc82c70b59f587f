//! Transactions, in every home that is compiled in: sums that only a serial order preserves, and what is documented.
//! The model and the histories are in `src/tests`, as gates that mutants must fail.

use crate::concurrency::on_threads;
use crate::random::Random;
use forrest::{
    Capability, Committed, Db, Draft, Durability, ErrorKind, Result, Transaction, WriteBatch, WriteOptions,
};
use std::collections::BTreeSet;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

const THREADS: usize = 4;

/// An empty store, and its directory.
struct Home {
    db: Db,
    directory: Option<TempDir>,
}

fn homes() -> Vec<Home> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store");
    // Small, so that the test writes tables and merges them.
    let builder = Db::builder().memtable_bytes(16 << 10).table_bytes(32 << 10).cache_bytes(64 << 10);
    let on_disk = builder.open(path.to_str().expect("it is text")).expect("a store on disk");
    if cfg!(not(feature = "llds-user")) {
        println!("skipped in the kernel home: the feature llds-user is not built");
    }
    vec![
        Home { db: Db::open("memory:").expect("a store in memory"), directory: None },
        Home { db: on_disk, directory: Some(directory) },
        #[cfg(feature = "llds-user")]
        Home { db: crate::llds::store(), directory: None },
    ]
}

fn name(db: &Db) -> &'static str {
    db.capabilities().home()
}

fn counter(number: i64) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

fn number(bytes: &[u8]) -> Option<i64> {
    bytes.try_into().ok().map(i64::from_be_bytes)
}

/// The value of a counter; 0 if the key is missing.
fn read(draft: &mut Draft, key: &str) -> Result<i64> {
    Ok(draft.get(key)?.map_or(0, |value| number(&value).expect("a counter")))
}

// Sums.

#[test]
fn money_is_neither_made_nor_lost() {
    const ACCOUNTS: usize = 6;
    for home in homes() {
        let db = &home.db;
        for account in 0..ACCOUNTS {
            db.add(account.to_string(), 100).unwrap();
        }
        on_threads(THREADS, |thread| {
            let mut random = Random::new(thread as u64);
            for _ in 0..300 {
                let amount = random.below(60) as i64;
                let (from, to) = (random.below(ACCOUNTS).to_string(), random.below(ACCOUNTS).to_string());
                let moved: Result<bool> = db.transact(|transaction| {
                    let here = read(transaction, &from)?;
                    if here < amount {
                        return Ok(false);
                    }
                    transaction.set(&from, counter(here - amount))?;
                    let there = read(transaction, &to)?;
                    transaction.set(&to, counter(there + amount))?;
                    Ok(true)
                });
                moved.unwrap();
                // The sum at one instant.
                let all: Result<i64> = db.transact(|transaction| {
                    (0..ACCOUNTS).map(|account| read(transaction, &account.to_string())).sum()
                });
                assert_eq!(all.unwrap(), 100 * ACCOUNTS as i64);
            }
        });
        let accounts: Vec<i64> =
            db.range(..).map(|entry| number(&entry.unwrap().value().unwrap()).unwrap()).collect();
        assert_eq!(accounts.iter().sum::<i64>(), 100 * ACCOUNTS as i64);
        assert!(accounts.iter().all(|&account| account >= 0), "{accounts:?}");
    }
}

/// One of two keys must stay: each transaction reads both and removes its own. If only writes were checked,
/// both would be removed.
#[test]
fn writes_are_not_skewed() {
    for home in homes() {
        let db = &home.db;
        for _ in 0..20 {
            db.set("alice", "on call").unwrap();
            db.set("bob", "on call").unwrap();
            let all_have_read = Barrier::new(THREADS);
            let left = on_threads(THREADS, |thread| -> bool {
                let mut calls = 0;
                let left: Result<bool> = db.transact(|transaction| {
                    let both = transaction.contains("alice")? && transaction.contains("bob")?;
                    calls += 1;
                    if calls == 1 {
                        all_have_read.wait();
                    }
                    if both {
                        transaction.delete(if thread % 2 == 0 { "alice" } else { "bob" })?;
                    }
                    Ok(both)
                });
                left.unwrap()
            });
            assert_eq!(left.into_iter().filter(|&left| left).count(), 1);
            assert_eq!(db.count(..).unwrap(), 1);
        }
    }
}

#[test]
fn every_committed_increment_is_counted_once() {
    const INCREMENTS: i64 = 300;
    for home in homes() {
        let db = &home.db;
        let calls = AtomicUsize::new(0);
        let seen = on_threads(THREADS, |_| -> Vec<i64> {
            let increment = |_| {
                let sum: Result<i64> = db.transact(|transaction| {
                    calls.fetch_add(1, Ordering::Relaxed);
                    let sum = read(transaction, "one")? + 1;
                    transaction.set("one", counter(sum))?;
                    transaction.add("calls that were committed", 1)?;
                    Ok(sum)
                });
                sum.unwrap()
            };
            (0..INCREMENTS).map(increment).collect()
        });
        let all = INCREMENTS * THREADS as i64;
        assert!(seen.iter().all(|sums| sums.is_sorted()));
        let distinct: BTreeSet<i64> = seen.into_iter().flatten().collect();
        assert!(distinct.iter().copied().eq(1..=all), "{}", name(db));
        assert_eq!(db.add("one", 0).unwrap(), all);
        assert_eq!(db.add("calls that were committed", 0).unwrap(), all);
        assert!(calls.into_inner() as i64 >= all);
    }
}

// Locks.

/// Transactions that lock what they change are never in conflict with each other.
#[test]
fn locks_let_transactions_take_turns() {
    const INCREMENTS: i64 = 200;
    for home in homes() {
        let db = &home.db;
        let calls = AtomicUsize::new(0);
        on_threads(THREADS, |_| {
            for _ in 0..INCREMENTS {
                let done: Result<()> = db.transact(|transaction| {
                    transaction.set_lock_wait(Duration::from_secs(600));
                    let sum =
                        transaction.get_for_update("one")?.map_or(0, |value| number(&value).unwrap()) + 1;
                    calls.fetch_add(1, Ordering::Relaxed);
                    thread::yield_now();
                    transaction.set("one", counter(sum))
                });
                done.unwrap();
            }
        });
        let all = INCREMENTS * THREADS as i64;
        assert_eq!(db.add("one", 0).unwrap(), all);
        assert_eq!(calls.into_inner() as i64, all, "{}: no call was in vain", name(db));
    }
}

/// Threads lock two keys in every order. Waits that would never end fail at once, and are run again.
#[test]
fn deadlocks_are_run_again() {
    for home in homes() {
        let db = &home.db;
        let deadlocks = AtomicUsize::new(0);
        let (both_have_one, both_are_done) = (Barrier::new(2), Barrier::new(2));
        on_threads(2, |thread| {
            for round in 0..20 {
                let keys = if thread == 0 { ["a", "b"] } else { ["b", "a"] };
                let mut calls = 0;
                let done: Result<()> = db.transact(|transaction| {
                    transaction.set_lock_wait(Duration::from_secs(600));
                    calls += 1;
                    transaction.lock(keys[0])?;
                    if calls == 1 {
                        both_have_one.wait();
                    }
                    if let Err(error) = transaction.lock(keys[1]) {
                        assert_eq!(error.kind(), ErrorKind::Busy);
                        assert!(error.to_string().contains("a deadlock"), "{error}");
                        deadlocks.fetch_add(1, Ordering::Relaxed);
                        // Even if the program goes on, the transaction is not committed.
                        return if round % 2 == 0 { Ok(()) } else { Err(error) };
                    }
                    let sum = read(transaction, "sum")? + 1;
                    transaction.set("sum", counter(sum))
                });
                done.unwrap();
                both_are_done.wait();
            }
        });
        assert_eq!(db.add("sum", 0).unwrap(), 40);
        assert_eq!(deadlocks.into_inner(), 20, "one of two each time");
    }
}

#[test]
fn a_deadlock_is_a_conflict() {
    let db = Db::open("memory:").unwrap();
    let mut one = db.transaction();
    one.lock("a").unwrap();
    thread::scope(|scope| {
        let mut two = db.transaction();
        two.lock("b").unwrap();
        let waiting = scope.spawn(|| {
            one.set_lock_wait(Duration::from_secs(600));
            one.lock("b").map(|()| one.commit())
        });
        // A third one, which only tries, shows when the first one waits. The second one then closes the circle.
        let mut three = db.transaction();
        three.set_lock_wait(Duration::ZERO);
        while !three.lock("b").unwrap_err().to_string().contains("with 1 in the queue") {}
        assert!(two.lock("a").unwrap_err().to_string().contains("a deadlock"));
        let conflict = Committed::Conflict { keyspace: "default".into(), key: b"a".to_vec() };
        assert_eq!(two.commit().unwrap(), conflict);
        assert!(waiting.join().unwrap().unwrap().unwrap().is_done());
    });
}

/// Changes that ask for no lock do not wait, and the owner of the lock is in conflict, as without one.
#[test]
fn a_lock_holds_off_only_those_that_ask() {
    for home in homes() {
        let db = &home.db;
        let mut transaction = db.transaction();
        assert_eq!(transaction.get_for_update("key").unwrap(), None);
        transaction.set("key", "mine").unwrap();
        db.set("key", "theirs").unwrap();
        assert!(!transaction.commit().unwrap().is_done());
        assert_eq!(db.get("key").unwrap().unwrap(), "theirs");
    }
}

// Ranges.

#[test]
fn a_range_conflicts_with_what_changes_in_it_and_nothing_else() {
    type Change = fn(&Db) -> Result<()>;
    let changes: [(&str, Change, bool); 9] = [
        ("a value changes", |db| db.set("b", "new"), false),
        ("a pair is removed", |db| db.delete("b").map(drop), false),
        ("a pair is added", |db| db.set("aa", ""), false),
        ("a range is removed", |db| db.delete_range("a".."b"), false),
        ("a range is removed that was empty", |db| db.delete_range("aa".."b"), true),
        ("a value is set again", |db| db.set("b", "b"), true),
        ("a pair before the range", |db| db.set("A", ""), true),
        ("a pair after what was shown", |db| db.set("bb", ""), true),
        ("a pair after what was shown is removed", |db| db.delete("c").map(drop), true),
    ];
    for home in homes() {
        let db = &home.db;
        for (what, change, fits) in changes {
            for is_back in [false, true] {
                db.delete_range(..).unwrap();
                ["a", "b", "c", "d"].iter().for_each(|key| db.set(key, key).unwrap());
                let mut transaction = db.transaction();
                // From the other end, it is shown down to "a".
                let shown: Vec<_> = if is_back {
                    transaction.range("a".."bb").rev().take(2).map(|pair| pair.unwrap().0).collect()
                } else {
                    transaction.range("a"..).take(2).map(|pair| pair.unwrap().0).collect()
                };
                assert_eq!(shown, if is_back { ["b", "a"] } else { ["a", "b"] }.map(|key| key.as_bytes()));
                transaction.set("seen", "two").unwrap();
                change(db).unwrap();
                assert_eq!(transaction.commit().unwrap().is_done(), fits, "{}: {what}", name(db));
            }
        }
    }
}

#[test]
fn a_conflict_in_a_range_names_the_key() {
    for home in homes() {
        let db = &home.db;
        for key in ["a", "b", "c"] {
            db.set(key, "").unwrap();
        }
        let mut transaction = db.transaction();
        assert_eq!(transaction.range(..).count(), 3);
        db.set("bb", "").unwrap();
        db.delete("c").unwrap();
        let conflict = Committed::Conflict { keyspace: "default".into(), key: b"bb".to_vec() };
        assert_eq!(transaction.commit().unwrap(), conflict);
    }
}

/// Conditions on ranges are compared with the state before the batch.
#[test]
fn conditions_on_ranges_come_first() {
    for home in homes() {
        let db = &home.db;
        let mut batch = WriteBatch::new();
        batch.set("a", "1").compare_range("b".., [("b", "2")]);
        let error = db.write(&batch).unwrap_err();
        assert_eq!((error.kind(), error.op()), (ErrorKind::InvalidArgument, Some(1)));
        assert!(error.to_string().contains("before all other operations"), "{error}");
        let mut batch = WriteBatch::new();
        batch.compare_range("b".., [("b", "2")]).set("a", "1");
        let error = db.write(&batch).unwrap_err();
        assert_eq!((error.kind(), error.op()), (ErrorKind::ConditionFailed, Some(0)));
        db.set("b", "2").unwrap();
        db.write(&batch).unwrap();
        assert_eq!(db.count(..).unwrap(), 2);
        // What cannot be is refused, and not compared for ever.
        for expected in [[("a", ""), ("c", "")], [("c", ""), ("b", "")]] {
            let mut batch = WriteBatch::new();
            batch.compare_range("b".., expected);
            assert_eq!(db.write(batch).unwrap_err().kind(), ErrorKind::InvalidArgument);
        }
    }
}

// Other documented properties.

#[test]
fn transactions_and_what_they_answer_move_between_threads() {
    fn moves<T: Send + Sync + 'static>() {}
    moves::<Transaction>();
    moves::<Committed>();
}

#[test]
fn nothing_is_seen_of_a_transaction_before_it_is_committed() {
    for home in homes() {
        let db = &home.db;
        db.set("kept", "old").unwrap();
        for commits in [false, true] {
            let mut transaction = db.transaction();
            transaction.set("kept", "new").unwrap();
            transaction.set("made", "new").unwrap();
            transaction.add("counted", 2).unwrap();
            assert_eq!(transaction.get("kept").unwrap().as_deref(), Some(&b"new"[..]));
            assert_eq!(db.get("kept").unwrap().as_deref(), Some(&b"old"[..]));
            assert_eq!(db.count(..).unwrap(), 1);
            if commits {
                assert_eq!(transaction.commit().unwrap(), Committed::Done);
            }
        }
        assert_eq!(db.get("kept").unwrap().as_deref(), Some(&b"new"[..]));
        assert_eq!(db.add("counted", 0).unwrap(), 2);
    }
}

#[test]
fn a_conflict_names_the_key() {
    for home in homes() {
        let db = &home.db;
        let mut transaction = db.transaction();
        transaction.get("a").unwrap();
        transaction.get("b").unwrap();
        transaction.set("c", "mine").unwrap();
        db.set("b", "theirs").unwrap();
        let conflict = Committed::Conflict { keyspace: "default".into(), key: b"b".to_vec() };
        assert_eq!(transaction.commit().unwrap(), conflict);
        assert_eq!(db.get("c").unwrap(), None);
        if !db.capabilities().has(Capability::Keyspaces) {
            continue;
        }
        let people = db.keyspace("people").unwrap();
        let mut transaction = db.transaction();
        transaction.on(&people).get("ada").unwrap();
        people.set("ada", "1815").unwrap();
        let conflict = Committed::Conflict { keyspace: "people".into(), key: b"ada".to_vec() };
        assert_eq!(transaction.commit().unwrap(), conflict);
    }
}

/// A value that was changed and changed back is no conflict.
#[test]
fn only_values_count() {
    for home in homes() {
        let db = &home.db;
        db.set("key", "same").unwrap();
        let mut transaction = db.transaction();
        transaction.get("key").unwrap();
        transaction.set("other", "mine").unwrap();
        db.set("key", "another").unwrap();
        db.delete("key").unwrap();
        db.set("key", "same").unwrap();
        db.set("other", "not read, so it does not matter").unwrap();
        assert_eq!(transaction.commit().unwrap(), Committed::Done);
        assert_eq!(db.get("other").unwrap().unwrap(), "mine");
    }
}

#[test]
fn additions_that_nobody_reads_are_not_in_each_others_way() {
    for home in homes() {
        let db = &home.db;
        let mut transaction = db.transaction();
        transaction.add("sum", 2).unwrap();
        transaction.add("sum", 3).unwrap();
        db.add("sum", 10).unwrap();
        assert_eq!(transaction.commit().unwrap(), Committed::Done);
        assert_eq!(db.add("sum", 0).unwrap(), 15);
        let mut transaction = db.transaction();
        transaction.add("sum", i64::MAX).unwrap();
        assert_eq!(transaction.add("sum", 1).unwrap_err().kind(), ErrorKind::InvalidArgument);
        let error = transaction.commit().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("at key \"sum\" of keyspace \"default\""), "{error}");
        assert_eq!(db.add("sum", 0).unwrap(), 15);
    }
}

/// The values that made a closure fail must have existed at one instant, as if it had succeeded.
#[test]
fn an_error_from_two_moments_is_not_believed() {
    for home in homes() {
        let db = &home.db;
        db.add("a", 100).unwrap();
        db.add("b", 100).unwrap();
        let mut calls = 0;
        let answer = db.transact(|transaction| {
            calls += 1;
            let a = read(transaction, "a")?;
            if calls == 1 {
                let mut batch = WriteBatch::new();
                batch.add("a", -50).add("b", 50);
                db.write(batch)?;
            }
            let sum = a + read(transaction, "b")?;
            transaction.set("sum", counter(sum))?;
            if sum == 200 { Ok(()) } else { Err(Box::<dyn std::error::Error>::from("money was made")) }
        });
        assert!(answer.is_ok(), "{answer:?}");
        assert_eq!(calls, 2);
        // An error is returned if its reads still hold, and the changes are discarded.
        let answer = db.transact(|transaction| -> std::result::Result<(), Box<dyn std::error::Error>> {
            transaction.set("sum", "never")?;
            transaction.get("a")?;
            Err("no".into())
        });
        assert_eq!(answer.unwrap_err().to_string(), "no");
        assert_eq!(db.add("sum", 0).unwrap(), 200);
    }
}

#[test]
fn who_is_always_in_conflict_is_told() {
    for home in homes() {
        let db = &home.db;
        let mut calls = 0;
        let answer: Result<()> = db.transact(|transaction| {
            calls += 1;
            transaction.get("key")?;
            db.add("key", 1)?;
            Ok(())
        });
        let error = answer.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
        assert!(error.to_string().contains("key \"key\" of keyspace \"default\""), "{error}");
        assert_eq!(calls, 1_000);
    }
}

#[test]
fn keyspaces_that_do_not_fit_are_refused() {
    let (db, stranger) = (Db::open("memory:").unwrap(), Db::open("memory:").unwrap());
    let mut transaction = db.transaction();
    transaction.on(&stranger).set("a", "").unwrap();
    let error = transaction.commit().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("belongs to another store"), "{error}");
    assert_eq!(stranger.count(..).unwrap(), 0);
    let people = db.keyspace("people").unwrap();
    let mut transaction = db.transaction();
    transaction.on(&people).get("ada").unwrap();
    transaction.set("a", "").unwrap();
    db.drop_keyspace("people").unwrap();
    assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(db.count(..).unwrap(), 0);
}

#[test]
fn a_commit_is_as_durable_as_is_asked_for() {
    let sync = WriteOptions::new().durability(Durability::Sync);
    for home in homes() {
        let mut transaction = home.db.transaction();
        transaction.get("a").unwrap();
        transaction.set("b", "").unwrap();
        match transaction.commit_with(&sync) {
            Ok(committed) => assert!(committed.is_done() && home.db.capabilities().has(Capability::Sync)),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unsupported);
                assert!(!home.db.capabilities().has(Capability::Sync));
            }
        }
        let done: Result<()> = home.db.transact_with(&sync, |transaction| transaction.set("c", ""));
        assert_eq!(done.is_ok(), home.db.capabilities().has(Capability::Sync));
    }
}

/// A commit does not write keys that were only read.
#[test]
fn reading_leaves_nothing_in_the_log() {
    let homes = homes();
    let home = homes.iter().find(|home| home.directory.is_some()).expect("a store on disk");
    let path = home.directory.as_ref().expect("it has one").path().join("store");
    let log_bytes = || -> u64 {
        let files = std::fs::read_dir(&path).unwrap().map(|file| file.unwrap());
        let logs = files.filter(|file| file.path().extension().is_some_and(|end| end == "log"));
        logs.map(|log| log.metadata().unwrap().len()).sum()
    };
    home.db.set("long", vec![b'l'; 5_000]).unwrap();
    home.db.sync().unwrap();
    let before = log_bytes();
    let sync = WriteOptions::new().durability(Durability::Sync);
    let length: Result<usize> = home.db.transact_with(&sync, |transaction| {
        transaction.get("absent")?;
        Ok(transaction.get("long")?.map_or(0, |value| value.len()))
    });
    assert_eq!(length.unwrap(), 5_000);
    assert_eq!(log_bytes(), before);
}

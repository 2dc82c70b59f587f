//! Properties that must hold for every order of many threads. No test waits for time to pass.
//!
//! Each home that is compiled in has its own instance of this module; see main.rs.

use crate::random::Random;
use forrest::{Capability, Db, ErrorKind, Swap, View, WriteBatch};
use forrest_testing::sized;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use tempfile::TempDir;

const THREADS: usize = 4;

/// Whether this is the module for stores on disk.
fn is_on_disk() -> bool {
    module_path!().ends_with("on_disk")
}

/// Whether a home has a capability. If not, prints a message.
fn can(db: &Db, capability: Capability) -> bool {
    let can = db.capabilities().has(capability);
    if !can {
        println!("skipped: \"{}\" cannot do this: {capability}", db.capabilities().home());
    }
    can
}

/// An empty store.
fn store() -> Db {
    #[cfg(feature = "llds-user")]
    if module_path!().ends_with("in_kernel") {
        return crate::llds::store();
    }
    thread_local!(static DIRECTORIES: RefCell<Vec<TempDir>> = const { RefCell::new(Vec::new()) });
    if !is_on_disk() {
        return Db::open("memory:").expect("a store in memory");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store");
    // Small, so that the test writes tables and merges them.
    let builder = Db::builder()
        .memtable_bytes(16 << 10)
        .table_bytes(32 << 10)
        .cache_bytes(64 << 10)
        .batch_bytes_max(16 << 20);
    let db = builder.open(path.to_str().expect("it is text")).expect("a store on disk");
    DIRECTORIES.with_borrow_mut(|directories| directories.push(directory));
    db
}

/// Runs `work` on `threads` threads at once and returns their results.
pub(crate) fn on_threads<R: Send>(threads: usize, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let barrier = Barrier::new(threads);
    thread::scope(|scope| {
        let run = |number| {
            let (work, barrier) = (&work, &barrier);
            scope.spawn(move || {
                barrier.wait();
                work(number)
            })
        };
        let handles: Vec<_> = (0..threads).map(run).collect();
        handles.into_iter().map(|handle| handle.join().expect("no thread panics")).collect()
    })
}

/// Runs `read` repeatedly on two threads while `write` runs on two others, and at least once after.
fn while_writing(write: impl Fn(usize) + Sync, read: impl Fn(usize) + Sync) {
    /// Counts the running writers. A writer that panics must be counted as well, or readers would wait for
    /// ever.
    struct Writing<'w>(&'w AtomicUsize);
    impl Drop for Writing<'_> {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::Release);
        }
    }
    let writers = AtomicUsize::new(2);
    on_threads(4, |number| {
        if number < 2 {
            let _writing = Writing(&writers);
            write(number);
        } else {
            loop {
                let is_last = writers.load(Ordering::Acquire) == 0;
                read(number);
                if is_last {
                    break;
                }
            }
        }
    });
}

fn number(bytes: &[u8]) -> i64 {
    i64::from_be_bytes(bytes.try_into().expect("a counter"))
}

#[test]
fn no_addition_is_lost_or_answered_twice() {
    const ADDITIONS: i64 = 5_000;
    let db = store();
    let sums = on_threads(THREADS, |thread| {
        let mut sums = Vec::new();
        for at in 0..ADDITIONS {
            sums.push(db.add("one", 1).unwrap());
            db.add(format!("many {}", (at as usize + thread) % 7), at).unwrap();
        }
        assert!(sums.is_sorted(), "a counter that only grows went back");
        sums
    });
    let total = ADDITIONS * THREADS as i64;
    let distinct: BTreeSet<i64> = sums.into_iter().flatten().collect();
    assert!(distinct.iter().copied().eq(1..=total));
    let many: i64 = db.prefix("many").map(|entry| number(&entry.unwrap().value().unwrap())).sum();
    assert_eq!(many, THREADS as i64 * (0..ADDITIONS).sum::<i64>());
}

#[test]
fn no_update_is_lost() {
    const UPDATES: usize = 1_000;
    let db = store();
    let calls = AtomicUsize::new(0);
    on_threads(THREADS, |thread| {
        for at in 0..UPDATES {
            let word = format!("{thread}:{at} ");
            db.update("words", |old| {
                calls.fetch_add(1, Ordering::Relaxed);
                // The function may use the store.
                db.add("called", 1).unwrap();
                let mut words = old.unwrap_or_default().to_vec();
                words.extend_from_slice(word.as_bytes());
                // Short and long values, and none, take turns.
                if words.len() > 500 { None } else { Some(words) }
            })
            .unwrap();
            db.update("sum", |old| Some((old.map_or(0, number) + 1).to_be_bytes().to_vec())).unwrap();
        }
    });
    assert_eq!(number(&db.get("sum").unwrap().unwrap()), (UPDATES * THREADS) as i64);
    assert_eq!(db.add("called", 0).unwrap(), calls.load(Ordering::Relaxed) as i64);
}

/// Two updates of a key that have both read the same value before either writes: the second begins again with
/// the value that the first has written.
#[test]
fn an_update_that_lost_the_race_begins_again() {
    for round in 0..100 {
        let db = store();
        if round % 2 == 1 {
            db.add("sum", 0).unwrap();
        }
        let both_have_seen_it = Barrier::new(2);
        let calls = on_threads(2, |_| {
            let mut calls = 0;
            let updated = db.update("sum", |old| {
                calls += 1;
                match calls {
                    1 => drop(both_have_seen_it.wait()),
                    2 => {}
                    _ => panic!("the update failed although no other thread writes"),
                }
                Some((old.map_or(0, number) + 1).to_be_bytes().to_vec())
            });
            assert_eq!(number(&updated.unwrap().unwrap()), calls);
            calls
        });
        assert_eq!(calls.iter().sum::<i64>(), 3);
        assert_eq!(db.add("sum", 0).unwrap(), 2);
    }
}

/// The same without threads: the function of the update writes the key itself.
#[test]
fn an_update_is_shown_what_is_there_now() {
    let db = store();
    let long = vec![b'l'; 400];
    db.set("key", "first").unwrap();
    let mut shown = Vec::new();
    let updated = db.update("key", |old| {
        shown.push(old.map(<[u8]>::to_vec));
        match shown.len() {
            1 => db.set("key", "second").unwrap(),
            2 => assert!(db.delete("key").unwrap()),
            3 => db.set("key", &long).unwrap(),
            4 => {}
            _ => panic!("the update failed although no other thread writes"),
        }
        Some([old.unwrap_or_default(), b"+"].concat())
    });
    let expected = [Some(b"first".to_vec()), Some(b"second".to_vec()), None, Some(long.clone())];
    assert_eq!(shown, expected);
    let longer = [&long[..], b"+"].concat();
    assert!(updated.unwrap().unwrap() == longer);
    assert!(db.get("key").unwrap().unwrap() == longer);
}

#[test]
fn compare_and_swap_lets_one_win() {
    const ROUNDS: usize = 2_000;
    let db = store();
    let wins = on_threads(THREADS, |thread| {
        let mine = [thread as u8; 3];
        let won = |round: usize| match db.compare_and_swap(round.to_be_bytes(), None, Some(&mine)).unwrap() {
            Swap::Mismatch(found) => {
                assert_ne!(found.expect("somebody won"), mine);
                false
            }
            _done => true,
        };
        (0..ROUNDS).filter(|&round| won(round)).count()
    });
    assert_eq!(wins.iter().sum::<usize>(), ROUNDS);
}

const ACCOUNTS: usize = 24;
const MONEY: i64 = 100;

/// Accounts in two keyspaces. Batches move money between them.
struct Bank {
    db: Db,
    other: forrest::Keyspace,
}

impl Bank {
    /// `None` if the home has no keyspaces, or no snapshots to read both at one instant.
    fn new() -> Option<Bank> {
        let db = store();
        if !can(&db, Capability::Keyspaces) || !can(&db, Capability::Snapshots) {
            return None;
        }
        let other = db.keyspace("other").unwrap();
        for account in 0..ACCOUNTS {
            db.add([account as u8], MONEY).unwrap();
            other.add([account as u8], MONEY).unwrap();
        }
        Some(Bank { db, other })
    }

    /// Moves money between two accounts, and counts the moves at the first and the last key.
    fn transfer(&self, random: &mut Random) {
        let amount = random.below(50) as i64;
        let mut batch = WriteBatch::new();
        batch.add([random.below(ACCOUNTS) as u8], -amount);
        batch.add([0xFF], 1);
        batch.on(&self.other).add([random.below(ACCOUNTS) as u8], amount);
        batch.on(&self.other).add([0xFF], 1);
        assert!(self.db.try_write(batch).unwrap().is_applied());
    }

    /// Tries a move that fails after its first half.
    fn fail(&self, random: &mut Random) {
        let mut batch = WriteBatch::new();
        batch.add([random.below(ACCOUNTS) as u8], -1_000_000);
        if random.one_in(2) {
            batch.compare_and_swap([0], Some(b"what no account has"), None);
            assert!(!self.db.try_write(batch).unwrap().is_applied());
        } else {
            batch.set("name", "not a counter").add("name", 1);
            assert_eq!(self.db.write(batch).unwrap_err().op(), Some(2));
        }
    }
}

fn money(view: &View) -> i64 {
    let entries = view.range([0_u8]..[0xFF]).map(|entry| entry.unwrap());
    entries.map(|entry| number(&entry.value().unwrap())).sum()
}

#[test]
fn no_snapshot_sees_half_a_batch() {
    let Some(bank) = Bank::new() else { return };
    let transfers = sized(400, 1_500);
    let write = |thread: usize| {
        let mut random = Random::new(thread as u64);
        for _ in 0..transfers {
            bank.transfer(&mut random);
            bank.fail(&mut random);
        }
    };
    let read = |_| {
        let snapshot = bank.db.snapshot().unwrap();
        let other = snapshot.keyspace("other").unwrap();
        let (here, there) = (money(&snapshot), money(&other));
        assert_eq!(here + there, 2 * MONEY * ACCOUNTS as i64);
        assert_eq!(snapshot.get([0xFF]).unwrap(), other.get([0xFF]).unwrap());
        assert_eq!(snapshot.get("name").unwrap(), None);
        // Once more, from the other end of the same state.
        let back: i64 =
            snapshot.range(..[0xFF]).rev().map(|entry| number(&entry.unwrap().value().unwrap())).sum();
        assert_eq!(back, here);
    };
    while_writing(write, read);
    assert_eq!(bank.db.add([0xFF], 0).unwrap(), 2 * transfers);
}

/// A batch that writes two keys becomes visible at one instant: a reader that has seen its value in one key
/// sees this value, or a newer one, in the other.
#[test]
fn no_plain_read_sees_half_a_batch() {
    let Some(bank) = Bank::new() else { return };
    let write = |thread: usize| {
        let mut random = Random::new(thread as u64);
        (0..sized(800, 3_000)).for_each(|_| bank.transfer(&mut random));
    };
    let count = |view: &View| view.get([0xFF]).unwrap().map_or(0, |value| number(&value));
    let read = |thread: usize| {
        if thread == 2 {
            let first = count(&bank.db);
            assert!(count(&bank.other) >= first);
        } else {
            let first = count(&bank.other);
            assert!(count(&bank.db) >= first);
        }
        let first = count(&bank.other);
        let last = bank.db.last().unwrap().unwrap();
        assert!(number(&last.value().unwrap()) >= first, "an iteration returned an old value");
    };
    while_writing(write, read);
}

#[test]
fn a_snapshot_stays_as_it_is() {
    let db = store();
    if !can(&db, Capability::Snapshots) {
        return;
    }
    for at in 0..500_u64 {
        db.set(at.to_be_bytes(), vec![1; at as usize]).unwrap();
    }
    let content = |view: &View| -> Vec<(Vec<u8>, Vec<u8>)> {
        let pair = |entry: forrest::Entry| (entry.key().to_vec(), entry.value().unwrap().to_vec());
        view.range(..).map(|entry| pair(entry.unwrap())).collect()
    };
    let snapshot = db.snapshot().unwrap();
    let before = content(&snapshot);
    let write = |thread: usize| {
        let mut random = Random::new(thread as u64);
        for _ in 0..3_000 {
            let key = (random.below(700) as u64).to_be_bytes();
            match random.below(10) {
                0 => db.delete_range(key..).unwrap(),
                1..4 => drop(db.delete(key).unwrap()),
                _ => db.set(key, vec![2; random.below(400)]).unwrap(),
            }
            if random.one_in(20) {
                let other = db.snapshot().unwrap();
                assert_eq!(other.count(..).unwrap(), content(&other).len() as u64);
            }
        }
    };
    while_writing(write, |_| {
        assert_eq!(content(&snapshot), before);
        assert_eq!(snapshot.count(..).unwrap(), 500);
    });
    assert_eq!(content(&snapshot), before);
}

/// Even keys stay, odd keys are added and removed. An iteration from any ends sees every even key once and in
/// order, and no value that was never in the store.
#[test]
fn iterations_keep_their_word_while_others_write() {
    const EVEN: u64 = 600;
    let db = store();
    let long = |key: u64| vec![key as u8; if key % 10 == 1 { 300 } else { 20 }];
    for key in 0..EVEN {
        db.set((2 * key).to_be_bytes(), long(2 * key)).unwrap();
    }
    let write = |thread: usize| {
        let mut random = Random::new(thread as u64);
        for _ in 0..sized(4_000, 20_000) {
            let key = 2 * random.below(EVEN as usize) as u64 + 1;
            match random.below(3) {
                0 => drop(db.delete(key.to_be_bytes()).unwrap()),
                1 => db.set(key.to_be_bytes(), long(key)).unwrap(),
                _ => db.set((key - 1).to_be_bytes(), long(key - 1)).unwrap(),
            }
        }
    };
    let read = |thread: usize| {
        let mut random = Random::new(thread as u64);
        let (mut front, mut back) = (Vec::new(), Vec::new());
        let mut range = db.range(..);
        let fronts = random.below(5);
        loop {
            let is_front = random.below(4) < fronts;
            let Some(entry) = (if is_front { range.next() } else { range.next_back() }) else { break };
            let entry = entry.unwrap();
            let key = u64::from_be_bytes(entry.key().try_into().unwrap());
            assert_eq!(entry.value().unwrap(), long(key), "a value of another key");
            if is_front { front.push(key) } else { back.push(key) }
        }
        back.reverse();
        front.extend(back);
        assert!(front.is_sorted_by(|a, b| a < b), "out of order, or twice");
        assert!(front.into_iter().filter(|key| key % 2 == 0).eq((0..EVEN).map(|key| 2 * key)));
        let mut cursor = db.cursor();
        let mut seen = 0;
        let mut found = cursor.first().unwrap();
        while found {
            let key = u64::from_be_bytes(cursor.key().unwrap().try_into().unwrap());
            assert!(key <= seen + 2, "the cursor jumped over an even key");
            seen = key;
            found = cursor.next().unwrap();
        }
        assert_eq!(seen / 2, EVEN - 1);
    };
    while_writing(write, read);
}

/// Values, iterations and snapshots outlive the handle that they came from, in any order.
#[test]
fn a_store_lives_as_long_as_anything_of_it() {
    let db = store();
    if !can(&db, Capability::Snapshots) {
        return;
    }
    for at in 0..2_000_u32 {
        db.set(at.to_be_bytes(), vec![3; at as usize % 500]).unwrap();
    }
    let mut range = db.range(..);
    let entry = range.next().unwrap().unwrap();
    let value = db.get(499_u32.to_be_bytes()).unwrap().unwrap();
    let mut cursor = db.cursor();
    let snapshot = db.snapshot().unwrap();
    let past = snapshot.keyspace("default").unwrap();
    let past_range = snapshot.range(..);
    let keyspace = db.keyspace("default").unwrap();
    drop(db);
    drop(snapshot);
    let past_range = thread::spawn(move || assert_eq!(past_range.rev().count(), 2_000));
    let workers = [
        thread::spawn(move || assert_eq!(range.count(), 1_999)),
        thread::spawn(move || assert!(cursor.last().unwrap())),
    ];
    workers.into_iter().for_each(|worker| worker.join().expect("it saw all that there was"));
    assert_eq!(keyspace.count(..).expect("it can be counted"), 2_000);
    keyspace.delete_range(..).expect("they can be removed");
    assert_eq!(keyspace.count(..).expect("it can be counted"), 0);
    assert_eq!(past.count(..).unwrap(), 2_000);
    drop(keyspace);
    drop(past);
    past_range.join().expect("the snapshot had all that there was");
    assert_eq!((entry.key(), value.len()), (&[0; 4][..], 499));
}

/// Two threads create the same keyspace at the same moment, repeatedly. Both get the same keyspace: a value
/// that is written through one handle is visible through the other.
#[test]
fn a_keyspace_is_made_once() {
    let keyspaces = sized(500, forrest::MAX_KEYSPACES - 1);
    let db = store();
    if !can(&db, Capability::Keyspaces) {
        return;
    }
    let arrived = AtomicUsize::new(0);
    let handles = on_threads(2, |thread| {
        let make = |round: usize| -> forrest::Result<forrest::Keyspace> {
            // Long names with a common prefix, so that a search takes long enough to overlap with the other
            // thread's.
            let name = format!("{round:0>length$}", length = forrest::MAX_KEYSPACE_NAME_BYTES);
            // Spin: waking a sleeping thread takes longer than creating a keyspace.
            arrived.fetch_add(1, Ordering::AcqRel);
            let mut turns = 0;
            while arrived.load(Ordering::Acquire) < 2 * (round + 1) {
                turns += 1;
                if turns < 1_000 { std::hint::spin_loop() } else { thread::yield_now() }
            }
            let keyspace = db.keyspace(&name)?;
            keyspace.set([thread as u8], "")?;
            Ok(keyspace)
        };
        // Errors are checked later: if a thread panicked here, the other one would wait for ever.
        (0..keyspaces).map(make).collect::<Vec<_>>()
    });
    for (round, handle) in handles.into_iter().flat_map(|handles| handles.into_iter().enumerate()) {
        assert_eq!(handle.unwrap().count(..).unwrap(), 2, "a write to keyspace {round} is missing");
    }
    assert_eq!(db.keyspaces().unwrap().len(), 1 + keyspaces);
    assert_eq!(db.stats().unwrap().keys, 2 * keyspaces as u64);
}

/// An acknowledged write came before the drop, so no key remains in an unreachable keyspace.
#[test]
fn a_dropped_keyspace_keeps_nothing() {
    let db = store();
    if !can(&db, Capability::Keyspaces) {
        return;
    }
    let dropped = AtomicUsize::new(0);
    // While a handle lives, keys that remained would be counted.
    let handles = Mutex::new(Vec::new());
    while_writing(
        |thread| {
            for at in 0..4_000_u32 {
                let keyspace = db.keyspace("short-lived").unwrap();
                if at % 8 == 7 {
                    dropped
                        .fetch_add(usize::from(db.drop_keyspace("short-lived").unwrap()), Ordering::Relaxed);
                }
                let mut batch = WriteBatch::new();
                batch.on(&keyspace).set([thread as u8, 1], "").set([thread as u8, 2], "");
                for result in [keyspace.set([thread as u8], at.to_be_bytes()), db.write(batch).map(drop)] {
                    if let Err(error) = result {
                        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
                    }
                }
                handles.lock().unwrap().push(keyspace);
            }
        },
        |_| {
            let keyspace = db.keyspace("short-lived").unwrap();
            match keyspace.range(..).collect::<forrest::Result<Vec<_>>>() {
                Ok(entries) => assert!(entries.len() <= 6),
                Err(error) => assert_eq!(error.kind(), ErrorKind::InvalidArgument),
            }
            let snapshot = db.snapshot().unwrap();
            let view = snapshot.keyspace("short-lived").unwrap();
            assert_eq!(view.count(..).unwrap(), view.range(..).count() as u64);
        },
    );
    assert!(dropped.load(Ordering::Relaxed) > 0);
    db.drop_keyspace("short-lived").unwrap();
    if is_on_disk() {
        // Until then its keys are in the memtable, and counted.
        db.compact().expect("it can be compacted");
    }
    assert_eq!(db.stats().unwrap().keys, 0);
    assert_eq!(handles.into_inner().unwrap().len(), 8_000);
}

#[test]
fn handles_go_where_threads_go() {
    fn shared<T: Send + Sync + Clone + 'static>() {}
    fn sent<T: Send + 'static>() {}
    shared::<Db>();
    shared::<forrest::Keyspace>();
    shared::<forrest::Snapshot>();
    shared::<View>();
    shared::<forrest::Entry>();
    shared::<forrest::Value>();
    sent::<forrest::Range>();
    sent::<forrest::Cursor>();
    sent::<forrest::Error>();
    let db = Arc::new(store());
    let handle = thread::spawn({
        let db = Arc::clone(&db);
        move || db.set("from", "another thread").unwrap()
    });
    handle.join().unwrap();
    assert!(db.contains("from").unwrap());
}

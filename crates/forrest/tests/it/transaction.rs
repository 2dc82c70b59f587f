//! Transactions, in every home that is compiled in. Three oracles:
//!
//! - the model: when a transaction commits, the test repeats it on a copy of the model. If every read has the
//!   same result as before, it must be committed with the copy's content, otherwise it must be in conflict;
//! - the history: the test looks for a serial order of the committed transactions of several threads that
//!   explains their reads and writes. It must detect two ways to commit that check too little;
//! - sums that only a serial order preserves.

use crate::concurrency::on_threads;
use crate::random::Random;
use forrest::{
    Capability, Committed, Db, Draft, Durability, ErrorKind, Keyspace, Result, Transaction, WriteBatch,
    WriteOptions,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
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

// The model.

/// A key, and whether it is in the second keyspace.
type Place = (bool, Vec<u8>);
type Content = BTreeMap<Place, Vec<u8>>;

#[derive(Clone, Debug)]
enum Did {
    Got(Place, Option<Vec<u8>>),
    Set(Place, Vec<u8>),
    Deleted(Place),
    Added(Place, i64),
}

/// The new value of a counter; `None` if the value is not a counter.
fn sum(old: Option<&Vec<u8>>, delta: i64) -> Option<Vec<u8>> {
    Some(counter(old.map_or(Some(0), |old| number(old))? + delta))
}

/// A transaction, and its calls so far.
struct Open {
    transaction: Transaction,
    log: Vec<Did>,
    /// The values that it has read or written.
    known: BTreeMap<Place, Option<Vec<u8>>>,
}

/// The expected result of a transaction.
struct Verdict {
    is_conflict: bool,
    /// Keys to which it added although their value is not a counter. A later set of the same key cancels
    /// this.
    failures: BTreeSet<Place>,
    content: Content,
}

impl Open {
    fn new(db: &Db) -> Open {
        Open { transaction: db.transaction(), log: Vec::new(), known: BTreeMap::new() }
    }

    /// Makes one random call, and compares its result with the model.
    fn step(&mut self, random: &mut Random, place: Place, other: &Keyspace, store: &Content) {
        let draft: &mut Draft = if place.0 { self.transaction.on(other) } else { &mut self.transaction };
        match random.below(8) {
            0..4 => {
                let found = match draft.get(&place.1) {
                    Ok(found) => found.map(|value| value.to_vec()),
                    Err(error) => {
                        // It has added to a value that is not a counter.
                        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
                        let value = store.get(&place).expect("something that is no counter");
                        assert!(number(value).is_none() && !self.known.contains_key(&place));
                        return;
                    }
                };
                let expected = self.known.get(&place).cloned().unwrap_or_else(|| {
                    let added = self.log.iter().filter_map(|did| match did {
                        Did::Added(at, delta) if *at == place => Some(*delta),
                        _ => None,
                    });
                    let old = store.get(&place);
                    added.fold(old.cloned(), |old, delta| sum(old.as_ref(), delta))
                });
                assert_eq!(found, expected, "{place:?}");
                self.known.insert(place.clone(), found.clone());
                self.log.push(Did::Got(place, found));
            }
            4..6 => {
                let value = value(random);
                draft.set(&place.1, &value).expect("it is short");
                self.known.insert(place.clone(), Some(value.clone()));
                self.log.push(Did::Set(place, value));
            }
            6 => {
                draft.delete(&place.1).expect("it is short");
                self.known.insert(place.clone(), None);
                self.log.push(Did::Deleted(place));
            }
            _ => {
                let delta = 1 + random.below(4) as i64;
                let done = draft.add(&place.1, delta);
                if let Some(known) = self.known.get_mut(&place) {
                    match sum(known.as_ref(), delta) {
                        Some(sum) => *known = Some(sum),
                        None => {
                            assert_eq!(done.unwrap_err().kind(), ErrorKind::InvalidArgument);
                            return;
                        }
                    }
                }
                done.expect("it may be a counter");
                self.log.push(Did::Added(place, delta));
            }
        }
    }

    /// Repeats the transaction on the current content.
    fn verdict(&self, store: &Content) -> Verdict {
        let mut verdict = Verdict { is_conflict: false, failures: BTreeSet::new(), content: store.clone() };
        let Verdict { is_conflict, failures, content } = &mut verdict;
        for did in &self.log {
            match did {
                Did::Got(place, found) => *is_conflict |= content.get(place) != found.as_ref(),
                Did::Set(place, value) => {
                    failures.remove(place);
                    content.insert(place.clone(), value.clone());
                }
                Did::Deleted(place) => {
                    failures.remove(place);
                    content.remove(place);
                }
                Did::Added(place, delta) => match sum(content.get(place), *delta) {
                    Some(sum) => drop(content.insert(place.clone(), sum)),
                    None => drop(failures.insert(place.clone())),
                },
            }
        }
        verdict
    }
}

fn value(random: &mut Random) -> Vec<u8> {
    match random.below(10) {
        0 => b"not a counter".to_vec(),
        1 => vec![b'l'; 300],
        // Positive, as all numbers that are added: in a sum, 0 would look like absence.
        _ => counter(1 + random.below(3) as i64),
    }
}

fn content(db: &Db, other: &Keyspace) -> Content {
    let mut content = Content::new();
    for (is_other, view) in [(false, &**db), (true, other)] {
        if is_other && other.name() == db.name() {
            continue;
        }
        for entry in view.range(..) {
            let entry = entry.expect("it can be read");
            content
                .insert((is_other, entry.key().to_vec()), entry.value().expect("so can its value").to_vec());
        }
    }
    content
}

/// Returns the numbers of transactions that were committed, were in conflict, and failed.
fn against_the_model(db: &Db, seed: u64) -> [usize; 3] {
    let has_two = db.capabilities().has(Capability::Keyspaces);
    let other = if has_two { db.keyspace("other").expect("a keyspace") } else { Keyspace::clone(db) };
    db.delete_range(..).expect("it can be emptied");
    other.delete_range(..).expect("it can be emptied");
    let mut random = Random::new(seed);
    let mut store = Content::new();
    let mut open: Vec<Open> = (0..3).map(|_| Open::new(db)).collect();
    let mut ends = [0; 3];
    for _ in 0..300 {
        let place = (has_two && random.one_in(3), vec![b'a' + random.below(4) as u8]);
        let at = random.below(open.len() + 1);
        let Some(running) = open.get_mut(at) else {
            // A change outside of all transactions, sometimes to the same value.
            let value = value(&mut random);
            let space: &Keyspace = if place.0 { &other } else { db };
            space.set(&place.1, &value).expect("it is short");
            store.insert(place, value);
            continue;
        };
        if !random.one_in(6) {
            running.step(&mut random, place, &other, &store);
            continue;
        }
        let ended = std::mem::replace(running, Open::new(db));
        if random.one_in(5) {
            // Dropped: it must have no effect.
            drop(ended.transaction);
        } else {
            let verdict = ended.verdict(&store);
            match ended.transaction.commit() {
                Ok(committed) if committed.is_done() => {
                    assert!(!verdict.is_conflict && verdict.failures.is_empty(), "{:?}", ended.log);
                    store = verdict.content;
                    ends[0] += 1;
                }
                Ok(Committed::Conflict { keyspace, key }) => {
                    assert!(verdict.is_conflict, "{:?}", ended.log);
                    let place = (has_two && keyspace == "other", key);
                    let changed = |did: &Did| matches!(did, Did::Got(at, _) if *at == place);
                    assert!(ended.log.iter().any(changed), "{place:?} was not read: {:?}", ended.log);
                    ends[1] += 1;
                }
                Ok(other) => unreachable!("{other:?}"),
                Err(error) => {
                    assert!(!verdict.failures.is_empty(), "{error} {:?}", ended.log);
                    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
                    ends[2] += 1;
                }
            }
        }
        assert_eq!(content(db, &other), store, "seed {seed}");
    }
    ends
}

#[test]
fn a_transaction_is_committed_if_it_would_do_the_same_again() {
    for home in homes() {
        let mut all = [0; 3];
        for seed in 0..40 {
            let ends = against_the_model(&home.db, seed);
            all = std::array::from_fn(|at| all[at] + ends[at]);
        }
        println!("{}: {} committed, {} in conflict, {} failed", name(&home.db), all[0], all[1], all[2]);
        assert!(all.iter().all(|&ends| ends > 20), "the test tests nothing: {all:?}");
    }
}

// The history.

/// The reads and writes of a committed transaction. A value is the number of the transaction that wrote it; 0
/// is absence. A transaction reads each key before it writes it, so the order of a key's values is known.
#[derive(Default, Debug)]
struct Done {
    reads: BTreeMap<u8, u64>,
    writes: BTreeMap<u8, u64>,
}

/// A serial order of the transactions, if there is one.
fn serial_order(history: &[Done]) -> std::result::Result<Vec<usize>, String> {
    let mut writer_of = BTreeMap::new();
    let mut replacer_of = BTreeMap::new();
    for (at, done) in history.iter().enumerate() {
        for (key, number) in &done.writes {
            writer_of.insert((*key, *number), at);
            let replaced = (*key, done.reads[key]);
            if let Some(other) = replacer_of.insert(replaced, at) {
                return Err(format!("{other} and {at} both replaced {replaced:?}"));
            }
        }
    }
    // The writer of a value precedes all its readers, and these precede the transaction that replaces it.
    let mut followers = vec![BTreeSet::new(); history.len()];
    let mut before = vec![0; history.len()];
    let mut follow = |first: usize, second: usize| {
        if first != second && followers[first].insert(second) {
            before[second] += 1;
        }
    };
    for (at, done) in history.iter().enumerate() {
        for (&key, &number) in &done.reads {
            match writer_of.get(&(key, number)) {
                Some(&writer) => follow(writer, at),
                None if number == 0 => {}
                None => return Err(format!("{at} read {number}, which nobody committed")),
            }
            if let Some(&replacer) = replacer_of.get(&(key, number)) {
                follow(at, replacer);
            }
        }
    }
    let mut ready: Vec<usize> = (0..history.len()).filter(|&at| before[at] == 0).collect();
    let mut order = Vec::new();
    while let Some(at) = ready.pop() {
        order.push(at);
        for &follower in &followers[at] {
            before[follower] -= 1;
            if before[follower] == 0 {
                ready.push(follower);
            }
        }
    }
    if order.len() < history.len() {
        return Err("some follow each other in a circle".into());
    }
    // Check the order independently, by running the transactions in it.
    let mut store = BTreeMap::new();
    for &at in &order {
        let Done { reads, writes } = &history[at];
        for (key, number) in reads {
            assert_eq!(store.get(key).unwrap_or(&0), number, "the order is wrong");
        }
        store.extend(writes);
    }
    Ok(order)
}

/// How a transaction is committed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Real,
    /// A batch without conditions: updates are lost.
    Unchecked,
    /// Checks the keys that were written, but not those that were only read: snapshot isolation, which allows
    /// write skew.
    WritesChecked,
}

/// A transaction, or a mutant of one.
struct Running<'d> {
    db: &'d Db,
    way: Way,
    number: u64,
    transaction: Transaction,
    done: Done,
}

impl Running<'_> {
    fn new(db: &Db, way: Way, number: u64) -> Running<'_> {
        Running { db, way, number, transaction: db.transaction(), done: Done::default() }
    }

    fn step(&mut self, random: &mut Random) {
        let key = random.below(5) as u8;
        let found = match self.way {
            Way::Real => self.transaction.get([key]).unwrap(),
            _ => self.db.get([key]).unwrap(),
        };
        let found = found.map_or(0, |value| u64::from_be_bytes(value[..].try_into().unwrap()));
        let is_own = self.done.writes.contains_key(&key);
        if self.way == Way::Real && (is_own || self.done.reads.contains_key(&key)) {
            let expected = if is_own { self.number } else { self.done.reads[&key] };
            assert_eq!(found, expected, "a key reads otherwise the second time");
        }
        self.done.reads.entry(key).or_insert(found);
        if random.one_in(3) {
            self.transaction.set([key], self.number.to_be_bytes()).unwrap();
            self.done.writes.insert(key, self.number);
        }
    }

    /// Its reads and writes, if it was committed.
    fn commit(self) -> Option<Done> {
        let Running { db, way, number, transaction, done } = self;
        if way == Way::Real {
            return transaction.commit().unwrap().is_done().then_some(done);
        }
        let mut batch = WriteBatch::new();
        for key in done.writes.keys() {
            match (way, done.reads[key]) {
                (Way::Unchecked, _) => drop(batch.set([*key], number.to_be_bytes())),
                (_, 0) => drop(batch.compare_and_swap([*key], None, Some(&number.to_be_bytes()))),
                (_, found) => drop(batch.compare_and_swap(
                    [*key],
                    Some(&found.to_be_bytes()),
                    Some(&number.to_be_bytes()),
                )),
            }
        }
        db.try_write(batch).unwrap().is_applied().then_some(done)
    }
}

/// Transactions of one thread that take turns in a random order.
fn interleaved(db: &Db, way: Way, seed: u64) -> Vec<Done> {
    db.delete_range(..).unwrap();
    let mut random = Random::new(seed);
    let mut numbers = 1..;
    let mut next = || Running::new(db, way, numbers.next().expect("there is no end"));
    let mut open: Vec<Running<'_>> = (0..3).map(|_| next()).collect();
    let mut history = Vec::new();
    for _ in 0..200 {
        let running = random.below(3);
        if random.one_in(5) {
            let ended = std::mem::replace(&mut open[running], next());
            history.extend(ended.commit());
        } else {
            open[running].step(&mut random);
        }
    }
    history
}

#[test]
fn what_takes_turns_has_a_serial_order() {
    for home in homes() {
        let db = &home.db;
        let found_out =
            |way| (0..30).filter(|&seed| serial_order(&interleaved(db, way, seed)).is_err()).count();
        assert_eq!(found_out(Way::Real), 0, "{}", name(db));
        for way in [Way::Unchecked, Way::WritesChecked] {
            assert!(found_out(way) > 20, "{}: the oracle does not see what is wrong with {way:?}", name(db));
        }
    }
}

#[test]
fn what_threads_commit_has_a_serial_order() {
    for home in homes() {
        let histories = on_threads(THREADS, |thread| {
            let mut random = Random::new(thread as u64);
            let mut history = Vec::new();
            for at in 1..400_u64 {
                let mut running = Running::new(&home.db, Way::Real, (thread as u64) << 32 | at);
                for _ in 0..1 + random.below(5) {
                    running.step(&mut random);
                    thread::yield_now();
                }
                history.extend(running.commit());
            }
            history
        });
        let history: Vec<Done> = histories.into_iter().flatten().collect();
        println!("{}: {} committed", name(&home.db), history.len());
        assert!(!history.is_empty());
        serial_order(&history).unwrap_or_else(|why| panic!("{}: {why}", name(&home.db)));
    }
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
fn limits_are_those_of_a_batch() {
    let db = Db::builder().batch_ops_max(2).open("memory:").unwrap();
    let mut transaction = db.transaction();
    assert_eq!(
        transaction.set(vec![0; forrest::MAX_KEY_BYTES + 1], "").unwrap_err().kind(),
        ErrorKind::Limit
    );
    transaction.get("a").unwrap();
    transaction.set("b", "").unwrap();
    // A key counts once, even if it is used several times.
    transaction.set("a", "").unwrap();
    transaction.delete("b").unwrap();
    assert!(transaction.commit().unwrap().is_done());
    let mut transaction = db.transaction();
    for key in ["a", "b", "c"] {
        transaction.get(key).unwrap();
    }
    let error = transaction.commit().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert_eq!(
        error.to_string(),
        "limit exceeded: committing a transaction: batch of 3 operations; at most 2 operations are allowed"
    );
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

//! Transactions against a model: when a transaction commits, the test repeats it on a copy of the model. If every read
//! has the same result as before, it must be committed with the copy's content, otherwise it must be in conflict.

use super::{Random, counter, homes, name, number};
use crate::{Capability, Committed, Db, Draft, ErrorKind, Keyspace, RangeCursor, Savepoint, Transaction};
use forrest_testing::sized;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, Range, RangeBounds};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A key, and whether it is in the second keyspace.
type Place = (bool, Vec<u8>);
type Content = BTreeMap<Place, Vec<u8>>;

/// A call of a transaction, and its result.
#[derive(Clone, Debug)]
enum Did {
    Got(Place, Option<Vec<u8>>),
    Ranged(Ranged),
    Set(Place, Vec<u8>),
    Deleted(Place),
    DeletedRange(bool, Bounds),
    Added(Place, i64),
    Saved(Savepoint),
    RolledBack(Savepoint),
}

type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// A range that was read in part or as a whole.
#[derive(Clone, Debug)]
struct Ranged {
    is_other: bool,
    bounds: Bounds,
    is_back: bool,
    shown: Vec<(Vec<u8>, Vec<u8>)>,
    /// The call after the last pair returned that there are no more.
    is_whole: bool,
    /// Or it failed at this key.
    failed: Option<Vec<u8>>,
}

/// The new value of a counter; `None` if the value is not a counter.
fn sum(old: Option<&Vec<u8>>, delta: i64) -> Option<Vec<u8>> {
    Some(counter(old.map_or(Some(0), |old| number(old))? + delta))
}

/// The keys of the model.
const KEYS: [&str; 8] = ["a", "aa", "ab", "b", "ba", "c", "ca", "d"];

fn keys_in(bounds: &Bounds, is_back: bool) -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = KEYS.iter().map(|key| key.as_bytes().to_vec()).collect();
    keys.retain(|key| bounds.contains(key));
    if is_back {
        keys.reverse();
    }
    keys
}

/// What a transaction does to a key.
#[derive(Clone, Debug)]
enum Change {
    /// Sets it, or deletes it.
    Put(Option<Vec<u8>>),
    Add(i64),
}

/// A transaction, and its calls so far.
struct Open {
    transaction: Transaction,
    log: Vec<Did>,
    /// What it has seen of the store.
    seen: BTreeMap<Place, Option<Vec<u8>>>,
    changes: BTreeMap<Place, Change>,
    savepoints: Vec<(Savepoint, BTreeMap<Place, Change>)>,
}

/// The expected result of a transaction.
struct Verdict {
    is_conflict: bool,
    state: Repeated,
}

/// The state of a transaction that is repeated.
#[derive(Clone)]
struct Repeated {
    /// Keys to which it added although their value is not a counter. A later set of the same key cancels
    /// this.
    failures: BTreeSet<Place>,
    content: Content,
}

impl Open {
    fn new(db: &Db) -> Open {
        Open {
            transaction: db.transaction(),
            log: Vec::new(),
            seen: BTreeMap::new(),
            changes: BTreeMap::new(),
            savepoints: Vec::new(),
        }
    }

    /// The value of a key for this transaction, which counts as seen if it depends on the store. `Err` if it has added
    /// to a value that is not a counter.
    fn see(&mut self, place: &Place, store: &Content) -> Result<Option<Vec<u8>>, ()> {
        let base = || self.seen.get(place).cloned().unwrap_or_else(|| store.get(place).cloned());
        let (base, now) = match self.changes.get(place) {
            Some(Change::Put(value)) => return Ok(value.clone()),
            Some(Change::Add(delta)) => {
                let (base, sum) = (base(), sum(base().as_ref(), *delta));
                if sum.is_none() {
                    // What it has met counts as read.
                    self.seen.insert(place.clone(), base.clone());
                    self.log.push(Did::Got(place.clone(), base));
                    return Err(());
                }
                (base, sum)
            }
            None => (base(), base()),
        };
        self.seen.insert(place.clone(), base);
        if self.changes.contains_key(place) {
            self.changes.insert(place.clone(), Change::Put(now.clone()));
        }
        Ok(now)
    }

    /// Makes one random call, and compares its result with the model.
    fn step(&mut self, random: &mut Random, place: Place, other: &Keyspace, store: &Content) {
        match random.below(16) {
            0..3 => {
                let expected = self.see(&place, store);
                let found = self.draft(&place, other).get(&place.1);
                assert_eq!(found.is_err(), expected.is_err(), "{place:?}: {found:?}");
                match found {
                    Ok(found) => {
                        let found = found.map(|value| value.to_vec());
                        assert_eq!(Ok(&found), expected.as_ref(), "{place:?}");
                        self.log.push(Did::Got(place, found));
                    }
                    // It has added to a value that is not a counter.
                    Err(error) => assert_eq!(error.kind(), ErrorKind::InvalidArgument),
                }
            }
            3..7 => self.read_range(random, place.0, other, store),
            7..9 => {
                let value = value(random);
                self.draft(&place, other).set(&place.1, &value).expect("it is short");
                self.changes.insert(place.clone(), Change::Put(Some(value.clone())));
                self.log.push(Did::Set(place, value));
            }
            9 => {
                self.draft(&place, other).delete(&place.1).expect("it is short");
                self.changes.insert(place.clone(), Change::Put(None));
                self.log.push(Did::Deleted(place));
            }
            10 => {
                let bounds = some_bounds(random);
                self.draft(&place, other).delete_range(bounds.clone()).expect("it is short");
                for key in keys_in(&bounds, false) {
                    self.changes.insert((place.0, key), Change::Put(None));
                }
                self.log.push(Did::DeletedRange(place.0, bounds));
            }
            11..14 if self.savepoints.is_empty() || random.one_in(3) => {
                let savepoint = self.transaction.savepoint().expect("there is room");
                self.savepoints.push((savepoint, self.changes.clone()));
                self.log.push(Did::Saved(savepoint));
            }
            11..14 => {
                let at = random.below(self.savepoints.len());
                let (savepoint, changes) = self.savepoints[at].clone();
                self.transaction.rollback_to(savepoint).expect("it is one of its own");
                if let Some((gone, _)) = self.savepoints.get(at + 1) {
                    let error = self.transaction.rollback_to(*gone).expect_err("it is gone");
                    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
                }
                self.savepoints.truncate(at + 1);
                self.changes = changes;
                self.log.push(Did::RolledBack(savepoint));
            }
            _ => {
                let delta = 1 + random.below(4) as i64;
                let done = self.draft(&place, other).add(&place.1, delta);
                let known = match self.changes.get(&place) {
                    Some(Change::Put(value)) => Some(value),
                    Some(Change::Add(_)) => None,
                    None => self.seen.get(&place),
                };
                let change = match (known, self.changes.get(&place)) {
                    (Some(known), _) => match sum(known.as_ref(), delta) {
                        Some(sum) => Change::Put(Some(sum)),
                        None => {
                            assert_eq!(done.unwrap_err().kind(), ErrorKind::InvalidArgument);
                            return;
                        }
                    },
                    (None, Some(Change::Add(before))) => Change::Add(before + delta),
                    (None, _) => Change::Add(delta),
                };
                done.expect("it may be a counter");
                self.changes.insert(place.clone(), change);
                self.log.push(Did::Added(place, delta));
            }
        }
    }

    fn draft(&mut self, place: &Place, other: &Keyspace) -> &mut Draft {
        if place.0 { self.transaction.on(other) } else { &mut self.transaction }
    }

    fn read_range(&mut self, random: &mut Random, is_other: bool, other: &Keyspace, store: &Content) {
        let (bounds, is_back, mut most) = (some_bounds(random), random.one_in(2), random.below(6));
        let mut ranged = Ranged {
            is_other,
            bounds: bounds.clone(),
            is_back,
            shown: Vec::new(),
            is_whole: false,
            failed: None,
        };
        // What it should see.
        for key in keys_in(&bounds, is_back) {
            if most == 0 {
                break;
            }
            match self.see(&(is_other, key.clone()), store) {
                Ok(Some(value)) => {
                    ranged.shown.push((key, value));
                    most -= 1;
                }
                Ok(None) => {}
                Err(()) => {
                    ranged.failed = Some(key);
                    break;
                }
            }
        }
        ranged.is_whole = most > 0 && ranged.failed.is_none();
        let mut cursor = RangeCursor::new(bounds);
        let draft: &mut Draft = if is_other { self.transaction.on(other) } else { &mut self.transaction };
        let mut next = || if is_back { cursor.next_back(draft) } else { cursor.next(draft) };
        for (key, value) in &ranged.shown {
            let pair = next().unwrap_or_else(|error| panic!("{ranged:?}: {error}"));
            assert_eq!(pair.map(|(key, value)| (key, value.to_vec())), Some((key.clone(), value.clone())));
        }
        if ranged.is_whole {
            assert_eq!(next().expect("the end"), None, "{ranged:?}");
        }
        if ranged.failed.is_some() {
            assert_eq!(next().expect_err("no counter").kind(), ErrorKind::InvalidArgument);
        }
        self.log.push(Did::Ranged(ranged));
    }

    /// Repeats the transaction on the current content.
    fn verdict(&self, store: &Content) -> Verdict {
        let mut is_conflict = false;
        let mut state = Repeated { failures: BTreeSet::new(), content: store.clone() };
        let mut saved: Vec<(Savepoint, Repeated)> = Vec::new();
        for did in &self.log {
            let Repeated { failures, content } = &mut state;
            match did {
                Did::Got(place, found) => is_conflict |= content.get(place) != found.as_ref(),
                Did::Ranged(ranged) => is_conflict |= !ranged.is_same(content),
                Did::Set(place, value) => {
                    failures.remove(place);
                    content.insert(place.clone(), value.clone());
                }
                Did::Deleted(place) => {
                    failures.remove(place);
                    content.remove(place);
                }
                Did::DeletedRange(is_other, bounds) => {
                    for key in keys_in(bounds, false) {
                        let place = (*is_other, key);
                        failures.remove(&place);
                        content.remove(&place);
                    }
                }
                Did::Added(place, delta) => match sum(content.get(place), *delta) {
                    Some(sum) => drop(content.insert(place.clone(), sum)),
                    None => drop(failures.insert(place.clone())),
                },
                Did::Saved(savepoint) => saved.push((*savepoint, state.clone())),
                Did::RolledBack(savepoint) => {
                    let at = saved.iter().rposition(|(known, _)| known == savepoint).expect("it was saved");
                    saved.truncate(at + 1);
                    state = saved[at].1.clone();
                }
            }
        }
        Verdict { is_conflict, state }
    }
}

impl Ranged {
    /// Whether the range would be read as before.
    fn is_same(&self, content: &Content) -> bool {
        let pairs = keys_in(&self.bounds, self.is_back).into_iter().filter_map(|key| {
            let value = content.get(&(self.is_other, key.clone()))?.clone();
            Some((key, value))
        });
        let until = |(key, _): &(Vec<u8>, _)| match &self.failed {
            Some(failed) => {
                if self.is_back {
                    key > failed
                } else {
                    key < failed
                }
            }
            None => true,
        };
        let found: Vec<_> = pairs.take_while(until).collect();
        let is_to_the_end = self.is_whole || self.failed.is_some();
        found.starts_with(&self.shown) && (!is_to_the_end || found.len() == self.shown.len())
    }
}

fn some_bounds(random: &mut Random) -> Bounds {
    let mut bound = || {
        let key = KEYS[random.below(KEYS.len())].as_bytes().to_vec();
        match random.below(4) {
            0 => Bound::Unbounded,
            1 => Bound::Excluded(key),
            _ => Bound::Included(key),
        }
    };
    (bound(), bound())
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
fn run(db: &Db, seed: u64) -> [usize; 3] {
    let has_two = db.capabilities().has(Capability::Keyspaces);
    let other = if has_two { db.keyspace("other").expect("a keyspace") } else { Keyspace::clone(db) };
    db.delete_range(..).expect("it can be emptied");
    other.delete_range(..).expect("it can be emptied");
    let mut random = Random::new(seed);
    let mut store = Content::new();
    let mut open: Vec<Open> = (0..3).map(|_| Open::new(db)).collect();
    let mut ends = [0; 3];
    for _ in 0..500 {
        let place = (has_two && random.one_in(3), KEYS[random.below(KEYS.len())].as_bytes().to_vec());
        let at = random.below(open.len() + 1);
        let Some(running) = open.get_mut(at) else {
            // A change outside of all transactions, sometimes to the same value.
            let value = value(&mut random);
            let space: &Keyspace = if place.0 { &other } else { db };
            if random.one_in(3) {
                space.delete(&place.1).expect("it is short");
                store.remove(&place);
                continue;
            }
            space.set(&place.1, &value).expect("it is short");
            store.insert(place, value);
            continue;
        };
        if !random.one_in(9) {
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
                    assert!(!verdict.is_conflict && verdict.state.failures.is_empty(), "{:?}", ended.log);
                    store = verdict.state.content;
                    ends[0] += 1;
                }
                Ok(Committed::Conflict { keyspace, key }) => {
                    assert!(verdict.is_conflict, "{:?}", ended.log);
                    let place = (has_two && keyspace == "other", key);
                    let seen = ended.seen.get(&place);
                    assert!(seen.is_some(), "{place:?} was not read: {:?}", ended.log);
                    assert_ne!(
                        seen.and_then(Option::as_ref),
                        store.get(&place),
                        "{place:?} is as it was read"
                    );
                    ends[1] += 1;
                }
                Ok(other) => unreachable!("{other:?}"),
                Err(error) => {
                    assert!(!verdict.state.failures.is_empty(), "{error} {:?}", ended.log);
                    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
                    ends[2] += 1;
                }
            }
        }
        assert_eq!(content(db, &other), store, "seed {seed}");
    }
    ends
}

/// In all homes. Mutants must fail here.
pub(super) fn against_the_model(seeds: Range<u64>) {
    for home in homes() {
        let mut all = [0; 3];
        for seed in seeds.clone() {
            let ends = run(&home.db, seed);
            all = std::array::from_fn(|at| all[at] + ends[at]);
        }
        println!("{}: {} committed, {} in conflict, {} failed", name(&home.db), all[0], all[1], all[2]);
        let least = seeds.clone().count() / 4;
        assert!(all.iter().all(|&ends| ends >= least), "the test tests nothing: {all:?}");
    }
}

#[test]
fn a_transaction_is_committed_if_it_would_do_the_same_again() {
    against_the_model(0..sized(200, 300));
}

/// A transaction that has a lock twice, by two handles, gives it up once.
#[test]
fn a_lock_is_given_up_by_its_owner_only() {
    of_one_owner();
}

pub(super) fn of_one_owner() {
    let db = Db::open("memory:").expect("it opens");
    let name = "others";
    let first = db.keyspace(name).expect("it is made");
    let mut owner = db.transaction();
    owner.on(&first).lock("k").expect("it is free");
    db.drop_keyspace(name).expect("it is there");
    let second = db.keyspace(name).expect("it is made again");
    owner.on(&second).lock("k").expect("it has it already");
    std::thread::scope(|scope| {
        let waiting: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut transaction = db.transaction();
                    transaction.set_lock_wait(Duration::from_secs(60));
                    transaction.on(&second).lock("k").expect("it is given to one after the other");
                    // A second one would have it too, if it was given up twice.
                    let mut other = db.transaction();
                    other.set_lock_wait(Duration::ZERO);
                    other.on(&second).lock("k").expect_err("it has an owner");
                })
            })
            .collect();
        db.until_waiting(3);
        drop(owner);
        waiting.into_iter().for_each(|one| one.join().expect("it does not panic"));
    });
    let mut last = db.transaction();
    last.set_lock_wait(Duration::ZERO);
    last.on(&second).lock("k").expect("it is free again");
}

#[test]
fn a_key_of_another_store_cannot_be_locked() {
    let [db, other] = [(); 2].map(|()| Db::open("memory:").expect("it opens"));
    let mut transaction = db.transaction();
    let error = transaction.on(&other).lock("k").expect_err("it is another store's");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("another store"), "{error}");
    transaction.lock("k").expect("that of its own store is free");
}

/// The locks of a transaction are never those of one that ended before, and are released before its reads are freed.
#[test]
fn no_two_transactions_have_a_lock() {
    let db = Db::open("memory:").expect("it opens");
    (0..20_000_u32).for_each(|number| db.set(number.to_be_bytes(), "").expect("it is set"));
    let (sender, receiver) = std::sync::mpsc::channel::<Transaction>();
    let owners = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        // Transactions end in another thread than they began in.
        scope.spawn(|| {
            for transaction in receiver {
                owners.fetch_sub(1, Ordering::Relaxed);
                drop(transaction);
            }
        });
        for _ in 0..sized(30, 80) {
            let mut transaction = db.transaction();
            assert_eq!(transaction.range(..).count(), 20_000);
            transaction.set_lock_wait(Duration::from_secs(60));
            transaction.lock("k").expect("it is given up");
            assert_eq!(owners.fetch_add(1, Ordering::Relaxed), 0, "it has two owners");
            sender.send(transaction).expect("it is received");
        }
        drop(sender);
    });
}

/// A try for a lock is no wait, so it puts nobody into a deadlock.
#[test]
fn a_lock_that_is_only_tried_leaves_the_transaction_as_it_was() {
    let db = Db::open("memory:").expect("it opens");
    let mut one = db.transaction();
    one.lock("a").expect("it is free");
    std::thread::scope(|scope| {
        let (locked, has_locked) = std::sync::mpsc::channel();
        let other = scope.spawn({
            let db = &db;
            move || {
                let mut other = db.transaction();
                other.lock("b").expect("it is free");
                locked.send(()).expect("it is heard");
                other.set_lock_wait(Duration::from_secs(60));
                other.lock("a").expect("its owner ends");
            }
        });
        has_locked.recv().expect("it is sent");
        db.until_waiting(1);
        one.set_lock_wait(Duration::ZERO);
        assert_eq!(one.lock("b").expect_err("it is not free").kind(), ErrorKind::Busy);
        one.set("done", "1").expect("it fits");
        assert!(one.commit().expect("it works").is_done(), "it is in no conflict");
        other.join().expect("it does not panic");
    });
}

/// What an addition met is read, also if the addition fails.
#[test]
fn an_addition_that_fails_depends_on_what_it_met() {
    let db = Db::open("memory:").expect("it opens");
    db.set("x", "1").expect("it is set");
    let mut transaction = db.transaction();
    assert_eq!(transaction.get("x").expect("it reads").unwrap(), "1");
    db.set("x", "2").expect("it is set");
    db.set("n", "text").expect("it is set");
    transaction.add("n", 1).expect("it fits");
    assert_eq!(transaction.get("n").expect_err("it is no counter").kind(), ErrorKind::InvalidArgument);
    db.set("x", "1").expect("it is set");
    db.delete("n").expect("it is removed");
    assert!(!transaction.check().expect("it works").is_done(), "x and n never were so at one instant");
}

#[test]
fn a_range_ends_at_the_limit_of_its_transaction() {
    let db = Db::builder().batch_ops_max(3).open("memory:").expect("it opens");
    (0..10_u8).for_each(|number| db.set([number], "").expect("it is set"));
    let mut transaction = db.transaction();
    let mut range = transaction.range(..);
    let error = range.find_map(Result::err).expect("it has a limit");
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert!(range.next().is_none() && range.next_back().is_none());
}

/// A transaction without changes needs no store that can be changed.
#[test]
fn a_store_that_is_only_read_has_transactions() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store");
    let path = path.to_str().expect("it is text");
    {
        let db = Db::open(path).expect("it opens");
        db.set("job 1", "sweep").expect("it is set");
        db.sync().expect("it is written");
    }
    let db = Db::open_read_only(path).expect("it opens");
    let found = db.transact(|transaction| transaction.get("job 1")).expect("it changes nothing");
    assert_eq!(found.expect("it is there"), "sweep");
    let mut transaction = db.transaction();
    assert_eq!(transaction.range(..).count(), 1);
    assert!(transaction.check().expect("it changes nothing").is_done());
    let mut transaction = db.transaction();
    transaction.set("job 2", "cook").expect("it is a draft");
    assert_eq!(transaction.commit().expect_err("it cannot be changed").kind(), ErrorKind::Unsupported);
}

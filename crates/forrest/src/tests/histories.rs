//! Histories: what committed transactions read and wrote, and a search for a serial order that explains it.
//!
//! [`serial_order`] is this crate's own check, for transactions that read and set keys. It derives which transaction
//! precedes which, from the values that they saw, and looks for a circle. It must detect mutants of commit that check
//! too little. `cargo xtask histories` checks the same histories, and others, with another program: see
//! `tests/histories`. It runs these tests with the variable `FORREST_HISTORIES`, which names a directory for them.

use super::{Random, homes, name};
use crate::{Db, RangeCursor, Result, Transaction, WriteBatch};
use forrest_testing::sized;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, fs, thread};

const THREADS: usize = 4;
/// Keys of the histories, each one byte.
const KEYS: u8 = 12;

/// The calls of a transaction, with their results, and when it began and ended.
struct Record {
    calls: Vec<String>,
    begin: u64,
    end: u64,
    client: usize,
}

/// A clock that orders the begins and ends of all transactions.
fn now() -> u64 {
    static CLOCK: AtomicU64 = AtomicU64::new(0);
    // ORDERING: all stamps are in one order, that of what the threads do between them.
    CLOCK.fetch_add(1, Ordering::SeqCst)
}

/// The form of bytes in a record.
fn quoted(bytes: &[u8]) -> String {
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("\"{text}\"")
}

fn quoted_or_null(bytes: Option<&[u8]>) -> String {
    bytes.map_or("null".into(), quoted)
}

impl Record {
    fn new(client: usize) -> Record {
        Record { calls: Vec::new(), begin: now(), end: 0, client }
    }

    fn range(&mut self, keys: Range<&[u8]>, is_back: bool, pairs: &[(Vec<u8>, Vec<u8>)], is_whole: bool) {
        let shown: Vec<_> =
            pairs.iter().map(|(key, value)| format!("[{},{}]", quoted(key), quoted(value))).collect();
        let (start, end) = (quoted(keys.start), quoted(keys.end));
        let call = format!("[\"range\",{start},{end},{is_back},{is_whole},[{}]]", shown.join(","));
        self.calls.push(call);
    }

    fn line(&self) -> String {
        let Record { calls, begin, end, client } = self;
        format!("{{\"client\":{client},\"begin\":{begin},\"end\":{end},\"calls\":[{}]}}\n", calls.join(","))
    }
}

/// Pairs of a range, and whether there are no more.
type Shown = (Vec<(Vec<u8>, Vec<u8>)>, bool);

/// A transaction whose calls are recorded.
struct Recorded {
    transaction: Transaction,
    record: Record,
}

impl Recorded {
    fn new(db: &Db, client: usize) -> Recorded {
        let record = Record::new(client);
        Recorded { transaction: db.transaction(), record }
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let found = self.transaction.get(key)?.map(|value| value.to_vec());
        let call = format!("[\"get\",{},{}]", quoted(key), quoted_or_null(found.as_deref()));
        self.record.calls.push(call);
        Ok(found)
    }

    /// At most `most` pairs of a range from an end, and whether there are no more.
    fn range(&mut self, keys: Range<&[u8]>, is_back: bool, most: usize) -> Result<Shown> {
        let mut cursor = RangeCursor::new(keys.start..keys.end);
        let (mut pairs, mut is_whole) = (Vec::new(), false);
        while pairs.len() < most {
            let draft = &mut *self.transaction;
            match if is_back { cursor.next_back(draft) } else { cursor.next(draft) }? {
                Some((key, value)) => pairs.push((key, value.to_vec())),
                None => {
                    is_whole = true;
                    break;
                }
            }
        }
        self.record.range(keys, is_back, &pairs, is_whole);
        Ok((pairs, is_whole))
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.record.calls.push(format!("[\"set\",{},{}]", quoted(key), quoted(value)));
        self.transaction.set(key, value)
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.record.calls.push(format!("[\"delete\",{}]", quoted(key)));
        self.transaction.delete(key)
    }

    fn delete_range(&mut self, keys: Range<&[u8]>) -> Result<()> {
        let (start, end) = (quoted(keys.start), quoted(keys.end));
        self.record.calls.push(format!("[\"delete-range\",{start},{end}]"));
        self.transaction.delete_range(keys)
    }

    /// The record, if it was committed.
    fn commit(self) -> Option<Record> {
        let Recorded { transaction, mut record } = self;
        let is_done = transaction.commit().expect("it can be committed").is_done();
        record.end = now();
        is_done.then_some(record)
    }
}

/// Writes a history for another program, if it is wanted.
fn export(name: &str, records: &[Record]) {
    let Some(directory) = env::var_os("FORREST_HISTORIES") else { return };
    let mut text = String::new();
    records.iter().for_each(|record| text += &record.line());
    let path = std::path::Path::new(&directory).join(format!("{name}.jsonl"));
    fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// A home's name in that of a file.
fn short(db: &Db) -> String {
    name(db).trim_end_matches(':').to_lowercase()
}

/// The reads and writes of a committed transaction. A value is the number of the transaction that wrote it; 0
/// is absence. A transaction reads each key before it writes it, so the order of a key's values is known.
#[derive(Default, Debug)]
struct Done {
    reads: BTreeMap<u8, u64>,
    writes: BTreeMap<u8, u64>,
}

/// A serial order of the transactions, if there is one.
fn serial_order(history: &[&Done]) -> std::result::Result<Vec<usize>, String> {
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
        let Done { reads, writes } = history[at];
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
    /// Checks the values that were read, but not that there were no others: phantoms.
    ValuesChecked,
}

/// A transaction, or a mutant of one.
struct Running<'d> {
    db: &'d Db,
    way: Way,
    number: u64,
    recorded: Recorded,
    done: Done,
}

/// The number that a value is.
fn number_of(value: &[u8]) -> u64 {
    u64::from_be_bytes(value.try_into().expect("a number"))
}

impl Running<'_> {
    fn new(db: &Db, way: Way, number: u64, client: usize) -> Running<'_> {
        Running { db, way, number, recorded: Recorded::new(db, client), done: Done::default() }
    }

    /// A key has been read.
    fn read(&mut self, key: u8, found: u64) {
        let is_own = self.done.writes.contains_key(&key);
        if self.way == Way::Real && (is_own || self.done.reads.contains_key(&key)) {
            let expected = if is_own { self.number } else { self.done.reads[&key] };
            assert_eq!(found, expected, "a key reads otherwise the second time");
        }
        self.done.reads.entry(key).or_insert(found);
    }

    fn step(&mut self, random: &mut Random) {
        let key = random.below(KEYS.into()) as u8;
        if random.one_in(3) {
            let (end, is_back, most) = (key + 4, random.one_in(2), 1 + random.below(3));
            let (pairs, is_whole) = match self.way {
                Way::Real => self.recorded.range(&[key]..&[end], is_back, most).expect("it can be read"),
                _ => self.range_without_transaction(key, end, is_back, most),
            };
            let mut found: BTreeMap<u8, u64> =
                pairs.iter().map(|(key, value)| (key[0], number_of(value))).collect();
            let shown = match pairs.last() {
                _ if is_whole => key..end,
                Some((last, _)) if is_back => last[0]..end,
                Some((last, _)) => key..last[0] + 1,
                None => key..key,
            };
            shown.for_each(|key| self.read(key, found.remove(&key).unwrap_or(0)));
            return;
        }
        let found = match self.way {
            Way::Real => self.recorded.get(&[key]).expect("it can be read"),
            _ => {
                let found = self.db.get([key]).expect("it can be read").map(|value| value.to_vec());
                let call = format!("[\"get\",{},{}]", quoted(&[key]), quoted_or_null(found.as_deref()));
                self.recorded.record.calls.push(call);
                found
            }
        };
        self.read(key, found.as_deref().map_or(0, number_of));
        if random.one_in(2) {
            self.recorded.set(&[key], &self.number.to_be_bytes()).expect("it is short");
            self.done.writes.insert(key, self.number);
        }
    }

    /// What a mutant reads.
    fn range_without_transaction(&mut self, start: u8, end: u8, is_back: bool, most: usize) -> Shown {
        let mut range = self.db.range([start]..[end]);
        let mut next = || if is_back { range.next_back() } else { range.next() };
        let mut pairs = Vec::new();
        while pairs.len() < most {
            let Some(entry) = next() else { break };
            let entry = entry.expect("it can be read");
            pairs.push((entry.key().to_vec(), entry.value().expect("so can its value").to_vec()));
        }
        let is_whole = pairs.len() < most;
        self.recorded.record.range(&[start]..&[end], is_back, &pairs, is_whole);
        (pairs, is_whole)
    }

    /// What it did, if it was committed.
    fn commit(self) -> Option<(Record, Done)> {
        let Running { db, way, number, recorded, done } = self;
        if way == Way::Real {
            return Some((recorded.commit()?, done));
        }
        let mut batch = WriteBatch::new();
        if way == Way::ValuesChecked {
            for (key, found) in done.reads.iter().filter(|(_, found)| **found != 0) {
                let found = found.to_be_bytes();
                batch.compare_and_swap([*key], Some(&found), Some(&found));
            }
        }
        for key in done.writes.keys() {
            let new = number.to_be_bytes();
            match (way, done.reads[key]) {
                (Way::Unchecked, _) => drop(batch.set([*key], new)),
                (_, 0) => drop(batch.compare_and_swap([*key], None, Some(&new))),
                (_, found) => drop(batch.compare_and_swap([*key], Some(&found.to_be_bytes()), Some(&new))),
            }
        }
        let mut record = recorded.record;
        record.end = now();
        db.try_write(batch).expect("it can be written").is_applied().then_some((record, done))
    }
}

/// Transactions of one thread that take turns in a random order.
fn interleaved(db: &Db, way: Way, seed: u64) -> Vec<(Record, Done)> {
    db.delete_range(..).expect("it can be emptied");
    let mut random = Random::new(seed);
    let mut numbers = 1..;
    let mut next = |client| Running::new(db, way, numbers.next().expect("there is no end"), client);
    let mut open: Vec<Running<'_>> = (0..3).map(&mut next).collect();
    let mut history = Vec::new();
    for _ in 0..200 {
        let running = random.below(3);
        if random.one_in(5) {
            let ended = std::mem::replace(&mut open[running], next(running));
            history.extend(ended.commit());
        } else {
            open[running].step(&mut random);
        }
    }
    history
}

/// Whether there is no serial order. Writes the history under a name.
fn is_refused(name: &str, history: Vec<(Record, Done)>) -> bool {
    let (records, done): (Vec<_>, Vec<_>) = history.into_iter().unzip();
    export(name, &records);
    serial_order(&done.iter().collect::<Vec<_>>()).is_err()
}

/// In all homes. Mutants must fail here.
pub(super) fn have_a_serial_order(seeds: Range<u64>) {
    for home in homes() {
        for seed in seeds.clone() {
            let name = format!("turns-{}-{seed}", short(&home.db));
            assert!(!is_refused(&name, interleaved(&home.db, Way::Real, seed)), "{name}");
        }
    }
}

#[test]
fn what_takes_turns_has_a_serial_order() {
    have_a_serial_order(0..sized(30, 100));
}

/// The check can fail. What it refuses, the other program must refuse, too.
#[test]
fn transactions_that_check_too_little_are_found_out() {
    for home in homes() {
        for way in [Way::Unchecked, Way::WritesChecked, Way::ValuesChecked] {
            let mut refused = 0;
            for seed in 0..30 {
                let history = interleaved(&home.db, way, seed);
                let (records, done): (Vec<_>, Vec<_>) = history.into_iter().unzip();
                if serial_order(&done.iter().collect::<Vec<_>>()).is_err() {
                    refused += 1;
                    let mut way = format!("{way:?}");
                    way.make_ascii_lowercase();
                    export(&format!("wrong-{way}-{}-{seed}", short(&home.db)), &records);
                }
            }
            assert!(refused > 15, "{}: {refused} of 30 histories of {way:?} are found out", name(&home.db));
        }
    }
}

/// Runs transactions on several threads, and returns what they did.
fn on_threads<R: Send>(run: impl Fn(usize, &mut Random) -> Vec<R> + Sync) -> Vec<R> {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let run = &run;
                scope.spawn(move || run(number, &mut Random::new(number as u64)))
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no thread panics")).collect()
    })
}

#[test]
fn what_threads_commit_has_a_serial_order() {
    for home in homes() {
        for round in 0..sized(4, 40) {
            home.db.delete_range(..).expect("it can be emptied");
            let history = on_threads(|client, random| {
                let mut history = Vec::new();
                for at in 1..100_u64 {
                    let number = (client as u64 + 1) << 32 | at;
                    let mut running = Running::new(&home.db, Way::Real, number, client);
                    for _ in 0..1 + random.below(5) {
                        running.step(random);
                        thread::yield_now();
                    }
                    history.extend(running.commit());
                }
                history
            });
            assert!(!history.is_empty());
            let name = format!("registers-{}-{round}", short(&home.db));
            assert!(!is_refused(&name, history), "{name}");
        }
    }
}

/// Each transaction appends its number to some of a few lists, and reads others. Each list must then have every number
/// once. The order is for the other program to check.
#[test]
fn what_threads_append_is_in_the_lists() {
    for home in homes() {
        for round in 0..sized(4, 40) {
            home.db.delete_range(..).expect("it can be emptied");
            let history = on_threads(|client, random| {
                let mut history = Vec::new();
                for at in 1..60_u8 {
                    let mut recorded = Recorded::new(&home.db, client);
                    let mut appended = Vec::new();
                    for _ in 0..1 + random.below(3) {
                        let key = [random.below(4) as u8];
                        let mut list = recorded.get(&key).expect("it can be read").unwrap_or_default();
                        thread::yield_now();
                        if random.one_in(2) {
                            list.extend([client as u8, at]);
                            recorded.set(&key, &list).expect("it is short");
                            appended.push((key[0], [client as u8, at]));
                        }
                    }
                    history.extend(recorded.commit().map(|record| (record, appended)));
                }
                history
            });
            let (records, appended): (Vec<_>, Vec<_>) = history.into_iter().unzip();
            export(&format!("lists-{}-{round}", short(&home.db)), &records);
            let mut expected: Vec<(u8, [u8; 2])> = appended.into_iter().flatten().collect();
            let mut found = Vec::new();
            for entry in home.db.range(..) {
                let entry = entry.expect("it can be read");
                let list = entry.value().expect("so can its value");
                let items = list.as_chunks::<2>().0.iter().map(|item| (entry.key()[0], *item));
                found.extend(items);
            }
            expected.sort_unstable();
            found.sort_unstable();
            assert_eq!(found, expected, "{} {round}", name(&home.db));
        }
    }
}

/// Threads add jobs after the last one of a queue, and take the first one. Every job is taken once. Sometimes the queue
/// is cleared.
#[test]
fn what_threads_queue_is_taken_once() {
    for home in homes() {
        for round in 0..sized(4, 40) {
            home.db.delete_range(..).expect("it can be emptied");
            let (all, end): (&[u8], &[u8]) = (b"job", b"joc");
            let history = on_threads(|client, random| {
                let mut history = Vec::new();
                for at in 1..40_u8 {
                    let mut recorded = Recorded::new(&home.db, client);
                    let (mut added, mut taken): (Vec<Vec<u8>>, Vec<Vec<u8>>) = Default::default();
                    match random.below(20) {
                        0 => {
                            let (jobs, _) = recorded.range(all..end, false, 100).expect("it can be read");
                            recorded.delete_range(all..end).expect("it is short");
                            taken.extend(jobs.into_iter().map(|(_, job)| job));
                        }
                        1..12 => {
                            let (last, _) = recorded.range(all..end, true, 1).expect("it can be read");
                            let number = last.first().map_or(0, |(key, _)| key[3] + 1);
                            let job = vec![client as u8, at];
                            thread::yield_now();
                            if number < 255 {
                                recorded.set(&[all, &[number]].concat(), &job).expect("it is short");
                                added.push(job);
                            }
                        }
                        _ => {
                            let (first, _) = recorded.range(all..end, false, 1).expect("it can be read");
                            thread::yield_now();
                            for (key, job) in first {
                                recorded.delete(&key).expect("it is short");
                                taken.push(job);
                            }
                        }
                    }
                    history.extend(recorded.commit().map(|record| (record, added, taken)));
                }
                history
            });
            let left: Vec<Vec<u8>> = home
                .db
                .range(..)
                .map(|entry| entry.and_then(|entry| entry.value()).expect("it can be read").to_vec())
                .collect();
            let mut records = Vec::new();
            let (mut added, mut taken) = (Vec::new(), left);
            for (record, more, less) in history {
                records.push(record);
                added.extend(more);
                taken.extend(less);
            }
            export(&format!("queue-{}-{round}", short(&home.db)), &records);
            added.sort_unstable();
            taken.sort_unstable();
            assert!(added == taken, "{} {round}: added {added:?}, taken {taken:?}", name(&home.db));
        }
    }
}

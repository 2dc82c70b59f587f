//! The threads: writers write the next versions of their keys, readers check the results of their reads.

use super::truth::{COUNTERS, Fault, Truth};
use crate::failure::Failure;
use crate::interrupt;
use forrest::{Db, Entry, Keyspace, WriteBatch};
use forrest_base::lock;
use forrest_base::random::{Random, mix_all};
use std::ops::AddAssign;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Operations between two looks at the clock and the counts.
const STRIDE: u64 = 64;
/// Keys of a scan.
const SCAN_KEYS: u64 = 100;
/// Of the operations of a reader, one of this many is a scan of all keys.
const WHOLE_EVERY: u64 = 8192;
/// Maximum number of findings that are printed.
const TOLD_MOST: usize = 5;

/// Everything that can be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    Sets,
    Deletes,
    Adds,
    Batches,
    Gets,
    CounterGets,
    Snapshots,
    Scans,
    ScannedPairs,
    Stale,
    Wrong,
    Torn,
    Unordered,
}

/// How often each was counted.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Counts([u64; 13]);

impl Counts {
    pub(super) fn get(&self, count: Count) -> u64 {
        self.0[count as usize]
    }

    pub(super) fn add(&mut self, count: Count, times: u64) {
        self.0[count as usize] += times;
    }

    fn one(&mut self, count: Count) {
        self.add(count, 1);
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.0.iter_mut().zip(other.0).for_each(|(a, b)| *a += b);
    }
}

/// What all threads share.
pub(super) struct Shared<'t> {
    pub(super) db: Db,
    pub(super) space: Keyspace,
    pub(super) truth: &'t Truth,
    pub(super) writers: usize,
    pub(super) seed: u64,
    /// Time is up, or something failed.
    pub(super) stop: AtomicBool,
    /// Operations so far, about.
    pub(super) done: AtomicU64,
    told: Mutex<Vec<String>>,
}

impl<'t> Shared<'t> {
    pub(super) fn new(db: Db, space: Keyspace, truth: &'t Truth, writers: usize, seed: u64) -> Self {
        let (stop, done, told) = Default::default();
        Shared { db, space, truth, writers, seed, stop, done, told }
    }

    /// The findings, as text.
    pub(super) fn told(&self) -> Vec<String> {
        lock(&self.told).clone()
    }

    fn tell(&self, what: String) {
        let mut told = lock(&self.told);
        if told.len() < TOLD_MOST {
            told.push(what);
        }
    }

    /// Runs `step` until the time is up.
    fn until_stopped(&self, mut step: impl FnMut() -> Result<(), Failure>) -> Result<(), Failure> {
        let mut run = || {
            while !self.stop.load(Ordering::Relaxed) {
                interrupt::check()?;
                (0..STRIDE).try_for_each(|_| step())?;
                self.done.fetch_add(STRIDE, Ordering::Relaxed);
            }
            Ok(())
        };
        let result = run();
        self.stop.store(true, Ordering::Relaxed);
        result
    }
}

/// The name of a key; their order is that of the numbers.
pub(super) fn key_name(key: usize) -> String {
    format!("key {key:09}")
}

pub(super) fn counter_name(counter: usize) -> String {
    format!("count {counter:02}")
}

fn batch_names(writer: usize) -> [String; 2] {
    // On both sides of the keys, so that they are not in one table by chance.
    [format!("batch {writer:04}"), format!("zzz {writer:04}")]
}

fn key_of(name: &[u8]) -> Option<usize> {
    std::str::from_utf8(name.strip_prefix(b"key ")?).ok()?.parse().ok()
}

/// A thread that writes the keys whose number, divided by the number of writers, leaves its own.
pub(super) struct Writer<'s> {
    shared: &'s Shared<'s>,
    number: usize,
    random: Random,
    value: Vec<u8>,
    sums: [i64; COUNTERS],
    counts: Counts,
}

impl<'s> Writer<'s> {
    pub(super) fn new(shared: &'s Shared<'s>, number: usize) -> Self {
        let random = Random(mix_all(&[shared.seed, 1, number as u64]));
        Writer { shared, number, random, value: Vec::new(), sums: [0; COUNTERS], counts: Counts::default() }
    }

    /// Writes each of its keys once.
    pub(super) fn fill(mut self) -> Result<Counts, Failure> {
        for key in (self.number..self.shared.truth.keys()).step_by(self.shared.writers) {
            interrupt::check()?;
            self.step_key(key)?;
        }
        self.batch()?;
        Ok(self.counts)
    }

    pub(super) fn run(mut self) -> Result<Counts, Failure> {
        let shared = self.shared;
        shared.until_stopped(|| match self.random.below(16) {
            0 => self.add(),
            1 => self.batch(),
            _ => {
                let own = shared.truth.keys().saturating_sub(self.number).div_ceil(shared.writers);
                // Low keys more often, so that some are written all the time.
                let at = self.random.below(own as u64).min(self.random.below(own as u64)) as usize;
                self.step_key(self.number + at * shared.writers)
            }
        })?;
        Ok(self.counts)
    }

    fn step_key(&mut self, key: usize) -> Result<(), Failure> {
        let Shared { space, truth, .. } = self.shared;
        let version = truth.begin(key);
        if truth.is_there(key, version) {
            truth.value(key, version, &mut self.value);
            space.set(key_name(key), &self.value)?;
            self.counts.one(Count::Sets);
        } else {
            space.delete(key_name(key))?;
            self.counts.one(Count::Deletes);
        }
        truth.finish(key, version);
        Ok(())
    }

    fn add(&mut self) -> Result<(), Failure> {
        let counter = self.random.below(COUNTERS as u64) as usize;
        let sum = self.shared.space.add(counter_name(counter), 1)?;
        self.counts.one(Count::Adds);
        if sum <= self.sums[counter] {
            self.counts.one(Count::Stale);
            let before = self.sums[counter];
            self.shared.tell(format!("{}: add returned {sum} after {before}", counter_name(counter)));
        }
        self.sums[counter] = sum;
        // ORDERING: pairs with the reader's `load` of it.
        self.shared.truth.counters[counter].fetch_max(sum, Ordering::AcqRel);
        Ok(())
    }

    fn batch(&mut self) -> Result<(), Failure> {
        let done = &self.shared.truth.batches[self.number];
        let next = done.load(Ordering::Relaxed) + 1;
        let mut batch = WriteBatch::new();
        for name in batch_names(self.number) {
            batch.on(&self.shared.space).set(name, next.to_be_bytes());
        }
        self.shared.db.write(batch)?;
        self.counts.one(Count::Batches);
        // ORDERING: pairs with the reader's `load` of it.
        done.store(next, Ordering::Release);
        Ok(())
    }
}

/// A thread that reads everything.
pub(super) struct Reader<'s> {
    shared: &'s Shared<'s>,
    random: Random,
    done: Vec<u64>,
    counts: Counts,
}

impl<'s> Reader<'s> {
    pub(super) fn new(shared: &'s Shared<'s>, number: usize) -> Self {
        let random = Random(mix_all(&[shared.seed, 2, number as u64]));
        Reader { shared, random, done: Vec::new(), counts: Counts::default() }
    }

    pub(super) fn run(mut self) -> Result<Counts, Failure> {
        let keys = self.shared.truth.keys() as u64;
        self.shared.until_stopped(|| {
            if self.random.below(WHOLE_EVERY) == 0 {
                return self.scan(0, keys as usize);
            }
            let at = self.random.below(keys).min(self.random.below(keys));
            match self.random.below(64) {
                0..4 => self.counter(),
                4..6 => self.snapshot(),
                6..8 => self.scan(at as usize, (at + SCAN_KEYS).min(keys) as usize),
                _ => self.get(at as usize),
            }
        })?;
        Ok(self.counts)
    }

    /// Compares everything with the truth, without concurrent writers.
    pub(super) fn check_all(mut self) -> Result<Counts, Failure> {
        let keys = self.shared.truth.keys();
        for key in 0..keys {
            interrupt::check()?;
            self.get(key)?;
        }
        (0..4).try_for_each(|_| self.scan(0, keys))?;
        for counter in 0..COUNTERS {
            let sum = self.shared.truth.counters[counter].load(Ordering::Acquire);
            let found = self.sum(counter)?;
            if found != sum {
                self.fault(Fault::Wrong, || {
                    format!("{}: {found} at the end, not {sum}", counter_name(counter))
                });
            }
        }
        (0..8 * self.shared.writers).try_for_each(|_| self.snapshot())?;
        Ok(self.counts)
    }

    fn get(&mut self, key: usize) -> Result<(), Failure> {
        let Shared { space, truth, .. } = self.shared;
        let done = truth.done(key);
        let found = space.get(key_name(key))?;
        self.counts.one(Count::Gets);
        self.judge("get", key, done, found.as_deref());
        Ok(())
    }

    fn judge(&mut self, how: &str, key: usize, done: u64, found: Option<&[u8]>) {
        let begun = self.shared.truth.begun(key);
        if let Err(fault) = self.shared.truth.judge(key, done, begun, found) {
            self.fault(fault, || {
                let found = found.map_or("nothing".to_owned(), |value| {
                    format!("{} bytes that begin with {:02x?}", value.len(), &value[..value.len().min(8)])
                });
                format!("{how} of {}: versions {done} to {begun} may be found, not {found}", key_name(key))
            });
        }
    }

    fn fault(&mut self, fault: Fault, what: impl FnOnce() -> String) {
        self.counts.one(match fault {
            Fault::Stale => Count::Stale,
            Fault::Wrong => Count::Wrong,
        });
        self.shared.tell(what());
    }

    fn sum(&self, counter: usize) -> Result<i64, Failure> {
        let value = self.shared.space.get(counter_name(counter))?;
        Ok(value.as_deref().and_then(|value| value.try_into().ok()).map_or(0, i64::from_be_bytes))
    }

    fn counter(&mut self) -> Result<(), Failure> {
        let counter = self.random.below(COUNTERS as u64) as usize;
        let before = self.shared.truth.counters[counter].load(Ordering::Acquire);
        let found = self.sum(counter)?;
        self.counts.one(Count::CounterGets);
        if found < before {
            self.fault(Fault::Stale, || format!("{}: {found} after {before}", counter_name(counter)));
        }
        Ok(())
    }

    /// Both keys of a batch in a snapshot: they are of one batch, and not of an old one.
    fn snapshot(&mut self) -> Result<(), Failure> {
        let writer = self.random.below(self.shared.writers as u64) as usize;
        let done = self.shared.truth.batches[writer].load(Ordering::Acquire);
        let snapshot = self.shared.db.snapshot()?.keyspace(self.shared.space.name())?;
        let [a, b] = batch_names(writer).map(|name| snapshot.get(name));
        let number = |value: Option<forrest::Value>| {
            value.as_deref().and_then(|value| value.try_into().ok()).map_or(0, u64::from_be_bytes)
        };
        let (a, b) = (number(a?), number(b?));
        self.counts.one(Count::Snapshots);
        if a != b {
            self.counts.one(Count::Torn);
            self.shared.tell(format!("a snapshot has half of a batch: {a} and {b}"));
        }
        if a.min(b) < done {
            self.fault(Fault::Stale, || format!("a snapshot has batch {} after {done}", a.min(b)));
        }
        Ok(())
    }

    /// Scans from a key up to another, one way or the other.
    fn scan(&mut self, from: usize, to: usize) -> Result<(), Failure> {
        let Shared { space, truth, .. } = self.shared;
        let reverse = self.random.below(2) == 0;
        self.done.clear();
        self.done.extend((from..to).map(|key| truth.done(key)));
        let range = space.range(key_name(from)..key_name(to));
        self.counts.one(Count::Scans);
        let mut next = if reverse { to } else { from };
        let mut entries: Box<dyn Iterator<Item = forrest::Result<Entry>>> =
            if reverse { Box::new(range.rev()) } else { Box::new(range) };
        while let Some(entry) = entries.next().transpose()? {
            interrupt::check()?;
            let Some(key) = key_of(entry.key()).filter(|key| (from..to).contains(key)) else {
                self.fault(Fault::Wrong, || format!("a scan shows {}", entry.key().escape_ascii()));
                continue;
            };
            self.counts.one(Count::ScannedPairs);
            if if reverse { key >= next } else { key < next } {
                self.counts.one(Count::Unordered);
                self.shared.tell(format!("a scan shows {} out of order", key_name(key)));
                continue;
            }
            let passed = if reverse { key + 1..next } else { next..key };
            passed.for_each(|key| self.judge("scan", key, self.done[key - from], None));
            self.judge("scan", key, self.done[key - from], Some(&entry.value()?));
            next = if reverse { key } else { key + 1 };
        }
        let passed = if reverse { from..next } else { next..to };
        passed.for_each(|key| self.judge("scan", key, self.done[key - from], None));
        Ok(())
    }
}

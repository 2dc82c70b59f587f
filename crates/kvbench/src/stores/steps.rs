//! The steps of an arm on its store, and the checks of every result.
//!
//! Gets and seeks are checked against the written values. Scans must return ascending pairs from the correct one on,
//! and their total sum must be the same in all stores. All pairs are read and counted after loading and at the end. A
//! wrong result ends the arm.

use super::file_keys::FileKeys;
use super::lap::{Lap, Running, grown};
use super::pairs::{Keys, Pairs, Value, fold};
use super::steady::{self, Warmed};
use super::store::{Answer, Fault, Reader, Settings, Store, Way};
use crate::data::{Choice, Distribution, fold_bytes};
use crate::job::{Durability, Figures, Job, Life, Orders, Outcome, Report, StoreStep as Step};
use crate::{latency, usage};
use std::array;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Operations for which a reader is kept in steps that do not write, as in `kvbench memory`.
const SESSION_OPS: u64 = 1024;
/// Pairs of a scan.
const SCAN_PAIRS: usize = 50;
/// Keys of a get of many.
const MANY_KEYS: usize = 64;
/// One of this many operations inserts, the others scan.
const INSERT_EVERY: u64 = 20;
/// Pairs of a batch.
const BATCH_PAIRS: usize = 100;
/// A scan or batch costs as much as many gets, so its steps use the number of probes divided by this.
const LONG_SHARE: u64 = 10;
/// Threads that write synced changes.
const SYNCED_THREADS: [u64; 3] = [1, 2, 8];
/// What a step is to the choice of its pairs, and its warm-up, which so reads others.
const WARM: u64 = 1 << 8;

/// An arm at work.
struct Arm<'a, S, K> {
    store: S,
    job: &'a Job,
    orders: &'a Orders,
    pairs: Pairs<K>,
    figures: Figures,
    /// Of the process since it opened the store.
    growth: usage::Growth,
}

/// Does an arm, with the keys of a file if there are any.
pub(crate) fn run<S: Store>(
    job: &Job,
    orders: &Orders,
    keys: Option<FileKeys>,
    report: Report<'_>,
) -> Outcome {
    match keys {
        Some(keys) => run_with::<S, _>(job, orders, Pairs::of(keys, job.seed, orders.values), report),
        None => run_with::<S, _>(job, orders, Pairs::with(job.seed, orders.values), report),
    }
}

fn run_with<S: Store, K: Keys>(job: &Job, orders: &Orders, pairs: Pairs<K>, report: Report<'_>) -> Outcome {
    let work = || -> Answer<Figures> {
        let budget = orders.budget_bytes as usize;
        let settings = Settings {
            compression: orders.compression,
            ..Settings::shared_out(&orders.directory, budget, orders.durability)
        };
        // What loading a file of keys took at its peak is none of the store's.
        let (growth, start) = (usage::Growth::begin(), Instant::now());
        let store = S::open(&settings)?;
        let mut arm = Arm { store, job, orders, pairs, figures: Figures::default(), growth };
        match orders.life {
            Life::Whole => arm.run(report)?,
            Life::Reopened { pairs, sum } => arm.reopened(start, pairs, sum)?,
            Life::Recovered => arm.recovered(start)?,
            Life::Killed => {
                arm.load(report)?;
                // Not closed, as its process is not to end well.
                let Arm { store, figures, .. } = arm;
                std::mem::forget(store);
                return Ok(figures);
            }
        }
        Ok(arm.figures)
    };
    work().map_or_else(|fault| Outcome::Failed(fault.to_string()), Outcome::from)
}

fn wrong<T>(what: impl Into<String>) -> Answer<T> {
    Err(Fault::from(what.into()))
}

/// A sum that depends on the order of what was shown, in steps of scans.
#[derive(Default)]
struct Shown {
    sum: u64,
    pairs: u64,
}

impl Shown {
    #[inline]
    fn see(&mut self, key: &[u8], value: &[u8]) {
        self.sum = self.sum.wrapping_mul(31).wrapping_add(fold(key, value));
        self.pairs += 1;
    }
}

/// A step of read operations.
struct Read {
    lap: Lap,
    shown: Shown,
    warmed: Warmed,
    /// Bytes written in the warm-up, for an operation of it.
    warm_up_written: Option<f64>,
}

/// Read operations of one thread, whose reader is renewed at intervals.
struct Session<'s, S: Store> {
    store: &'s S,
    reader: Option<S::Reader<'s>>,
    /// Operations until it is renewed.
    left: u64,
}

impl<'s, S: Store> Session<'s, S> {
    fn new(store: &'s S) -> Answer<Self> {
        Ok(Session { store, reader: Some(store.reader()?), left: SESSION_OPS })
    }

    /// Does an operation, whose result must be right.
    fn ask(&mut self, ask: impl FnOnce(&mut S::Reader<'s>) -> Answer<bool>) -> Answer<()> {
        if self.left == 0 {
            // Some allow a thread one reader at a time.
            drop(self.reader.take());
            self.left = SESSION_OPS;
        }
        self.left -= 1;
        let reader = match &mut self.reader {
            Some(reader) => reader,
            none => none.insert(self.store.reader()?),
        };
        match ask(reader)? {
            true => Ok(()),
            false => wrong("a read showed what is not there, or did not what is"),
        }
    }
}

impl<S: Store, K: Keys> Arm<'_, S, K> {
    fn run(&mut self, report: Report<'_>) -> Answer<()> {
        report("load".to_owned());
        self.load(report)?;
        report("read all".to_owned());
        self.warm_up()?;
        for step in self.orders.steps.clone() {
            report(format!("{step:?}").to_lowercase());
            usage::clean(&self.orders.directory);
            match step {
                Step::Get => self.get()?,
                Step::Miss => self.miss()?,
                Step::Many => self.many()?,
                Step::Seek => self.seek()?,
                Step::Scan => self.scan()?,
                Step::Full => self.full()?,
                Step::Update => {
                    self.update(Distribution::Uniform, "update")?;
                    self.update(Distribution::ZIPFIAN, "update_zipfian")?;
                }
                Step::Insert => {
                    self.insert(Distribution::Uniform, "insert")?;
                    self.insert(Distribution::ZIPFIAN, "insert_zipfian")?;
                }
                Step::Batch => self.batch()?,
                Step::Synced => SYNCED_THREADS.into_iter().try_for_each(|threads| self.synced(threads))?,
                Step::Compact => self.compact()?,
                // The process must have ended.
                Step::Reopen => {}
            }
        }
        report("read all".to_owned());
        self.read_all("at the end")?;
        self.note_peak("peak_bytes");
        self.figures.sums.insert("pairs".to_owned(), self.pairs.len());
        self.figures.sums.insert("content".to_owned(), self.pairs.sum);
        Ok(())
    }

    /// Notes the time from `start` until the store is open and the first pair is read.
    fn note_open(&mut self, name: &str, start: Instant) -> Answer<()> {
        // Some stores do not accept the empty key.
        self.store.reader()?.seek(&[0], |_, _| ())?;
        self.figures.set(&format!("{name}_s"), start.elapsed().as_secs_f64());
        Ok(())
    }

    /// Opened again, a store must have what it had when it was closed.
    fn reopened(&mut self, start: Instant, pairs: u64, sum: u64) -> Answer<()> {
        self.note_open("open", start)?;
        let found = self.content()?;
        if found == (pairs, sum) {
            return Ok(());
        }
        wrong(format!(
            "closed and opened again: {} pairs for {pairs}, content right: {}",
            found.0,
            found.1 == sum
        ))
    }

    /// After a kill a store must have all that its writes were promised to survive. In the class of memory it may have
    /// lost any part of it.
    fn recovered(&mut self, start: Instant) -> Answer<()> {
        self.note_open("recover", start)?;
        let (pairs, sum) = self.content()?;
        for _ in 0..self.job.keys {
            self.pairs.add();
        }
        let all = self.pairs.len();
        self.figures.set("recovered_percent", 100.0 * pairs as f64 / all as f64);
        let may_lose = self.orders.durability == Durability::Memory && pairs < all;
        if may_lose || (pairs, sum) == (all, self.pairs.sum) {
            return Ok(());
        }
        wrong(format!("after a kill: {pairs} pairs for {all}, content right: {}", sum == self.pairs.sum))
    }

    /// Number and sum of all pairs that are there.
    fn content(&self) -> Answer<(u64, u64)> {
        let (mut pairs, mut sum) = (0, 0u64);
        self.store.scan_all(Way::Forward, |key, value| {
            pairs += 1;
            sum = sum.wrapping_add(fold(key, value));
        })?;
        Ok((pairs, sum))
    }

    fn note_peak(&mut self, name: &str) {
        if let Some(peak) = self.growth.peak_bytes() {
            self.figures.set(name, peak.saturating_sub(self.pairs.memory_bytes()) as f64);
        }
    }

    fn note_disk(&mut self, name: &str) {
        let stored = self.pairs.stored_bytes as f64;
        let occupied = usage::disk_bytes(&self.orders.directory) as f64;
        self.figures.set(&format!("{name}_disk_per_byte"), occupied / stored);
    }

    /// A choice of pairs for a step, different from the other steps'.
    fn choice(&self, spread: Distribution, step: u64) -> Choice {
        Choice::new(spread, self.pairs.len(), self.job.seed.wrapping_add(step << 32))
    }

    fn probes(&self) -> u64 {
        self.job.probes.min(self.pairs.len())
    }

    fn long_probes(&self) -> u64 {
        (self.probes() / LONG_SHARE).max(1)
    }

    fn load(&mut self, report: Report<'_>) -> Answer<()> {
        let (store, pairs, keys) = (&self.store, &mut self.pairs, self.job.keys);
        let mut running = Running::start(&self.orders.directory)?;
        let make = |at: u64| {
            if at.is_multiple_of(1 << 14) {
                report(format!("load {}%", at * 100 / keys));
            }
            pairs.add()
        };
        running.each(keys, make, |(key, value): &(K::Key, Value)| store.put(key.as_ref(), value))?;
        let (mut lap, settled) = running.settle(store)?;
        lap.wall += settled;
        lap.note("load", 1, &mut self.figures);
        lap.note_written("load", self.pairs.given_bytes, &mut self.figures);
        self.figures.set("load_settle_s", settled.as_secs_f64());
        self.note_disk("load");
        self.note_peak("load_peak_bytes");
        Ok(())
    }

    /// Reads everything to fill the caches, and waits for background work that this starts: a store may reorganize data
    /// that is read often. The bytes written by that work are a figure of their own.
    fn warm_up(&mut self) -> Answer<()> {
        let running = Running::start(&self.orders.directory)?;
        self.read_all("after loading")?;
        let (lap, _) = running.settle(&self.store)?;
        lap.note_written("warm_up", self.pairs.stored_bytes, &mut self.figures);
        self.note_disk("warm_up");
        Ok(())
    }

    /// Reads all pairs both ways: as many as there should be, in order, with the right content.
    fn read_all(&self, when: &str) -> Answer<()> {
        for way in [Way::Forward, Way::Backward] {
            let (mut count, mut sum, mut ordered) = (0u64, 0u64, true);
            let mut last = Vec::new();
            self.store.scan_all(way, |key, value| {
                count += 1;
                sum = sum.wrapping_add(fold(key, value));
                let before = match way {
                    Way::Forward => last[..] < *key,
                    Way::Backward => last[..] > *key,
                };
                ordered &= before || count == 1;
                last.clear();
                last.extend_from_slice(key);
            })?;
            if (count, sum) != (self.pairs.len(), self.pairs.sum) || !ordered {
                let expected = self.pairs.len();
                return wrong(format!(
                    "{when}, {way:?}: {count} pairs for {expected}, in order: {ordered}, content right: {}",
                    sum == self.pairs.sum
                ));
            }
        }
        Ok(())
    }

    /// A step of `ops` read operations, of pairs that `step` chooses. Before it, the same is done with others until its
    /// rate is steady. `make` prepares an operation, and `ask` does it: true if its result was right.
    fn read<O>(
        &self,
        step: u64,
        ops: u64,
        make: impl Fn(&Choice, u64) -> O,
        mut ask: impl FnMut(&mut S::Reader<'_>, &O, &mut Shown) -> Answer<bool>,
    ) -> Answer<Read> {
        let (bound, start) = (Duration::from_millis(self.orders.warm_up_millis), Instant::now());
        let (choice, mut at) = (self.choice(Distribution::Uniform, step + WARM), ops);
        let (window, written) = (ops.div_ceil(steady::WINDOWS.into()), usage::written_bytes());
        let warmed = steady::warm_up(
            bound,
            || start.elapsed(),
            || {
                let (mut session, mut shown, first) = (Session::new(&self.store)?, Shown::default(), at);
                while at < first + window && start.elapsed() < bound {
                    session.ask(|reader| ask(reader, &make(&choice, at), &mut shown))?;
                    at += 1;
                }
                Ok(at - first)
            },
        )?;
        let written = grown((usage::written_bytes(), written));
        let warm_up_written = written.map(|written| written as f64 / (at - ops).max(1) as f64);
        let mut running = Running::start(&self.orders.directory)?;
        let (blocks, choice) = (self.store.block_reads(), self.choice(Distribution::Uniform, step));
        let (mut session, mut shown) = (Session::new(&self.store)?, Shown::default());
        let make = |at| make(&choice, at);
        running.each(ops, make, |op| session.ask(|reader| ask(reader, op, &mut shown)))?;
        let mut lap = running.stop();
        lap.block_reads = grown((self.store.block_reads(), blocks));
        Ok(Read { lap, shown, warmed, warm_up_written })
    }

    /// Notes a step of read operations that each count as `parts`. Returns the sum of what it showed.
    fn note_read(&mut self, name: &str, parts: u64, read: Read) -> u64 {
        read.lap.note_read(name, parts, &mut self.figures);
        if self.orders.warm_up_millis > 0 {
            read.warmed.note(name, &mut self.figures);
            if let Some(written) = read.warm_up_written {
                self.figures.set(&format!("{name}_warm_up_written_bytes"), written / parts as f64);
            }
        }
        read.shown.sum
    }

    fn get(&mut self) -> Answer<()> {
        let make = |choice: &Choice, at| {
            let number = choice.pick(at);
            (self.pairs.key(number), fold_bytes(&self.pairs.value(number)))
        };
        let read = self.read(1, self.probes(), make, |reader, (key, expected), _| {
            let mut found = 0;
            Ok(reader.get(key.as_ref(), |value| found = fold_bytes(value))? && found == *expected)
        })?;
        self.note_read("get", 1, read);
        Ok(())
    }

    fn miss(&mut self) -> Answer<()> {
        let make = |_: &Choice, at| self.pairs.absent(at);
        let read =
            self.read(0, self.probes(), make, |reader, key, _| Ok(!reader.get(key.as_ref(), |_| ())?))?;
        self.note_read("miss", 1, read);
        Ok(())
    }

    fn many(&mut self) -> Answer<()> {
        let make = |choice: &Choice, at| {
            let number = |slot| choice.pick(at * MANY_KEYS as u64 + slot as u64);
            let sum = |sum: u64, slot| {
                sum.wrapping_mul(31).wrapping_add(fold_bytes(&self.pairs.value(number(slot))))
            };
            (array::from_fn(|slot| self.pairs.key(number(slot))), (0..MANY_KEYS).fold(0, sum))
        };
        let read = self.read(
            8,
            self.long_probes(),
            make,
            |reader, (keys, expected): &([K::Key; MANY_KEYS], u64), _| {
                let (mut sum, mut found) = (0u64, 0);
                reader.many(keys, |value| {
                    sum = sum.wrapping_mul(31).wrapping_add(fold_bytes(value));
                    found += 1;
                })?;
                Ok((sum, found) == (*expected, MANY_KEYS))
            },
        )?;
        self.note_read("multi_get_64", MANY_KEYS as u64, read);
        Ok(())
    }

    fn seek(&mut self) -> Answer<()> {
        let make = |choice: &Choice, at| {
            let number = choice.pick(at);
            let key = self.pairs.key(number);
            (self.pairs.keys.before(&key), fold(key.as_ref(), &self.pairs.value(number)))
        };
        let read = self.read(2, self.probes(), make, |reader, (key, expected), _| {
            let mut found = None;
            reader.seek(key.as_ref(), |key, value| found = Some(fold(key, value)))?;
            Ok(found == Some(*expected))
        })?;
        self.note_read("seek", 1, read);
        Ok(())
    }

    fn scan(&mut self) -> Answer<()> {
        let make = |choice: &Choice, at| self.pairs.key(choice.pick(at));
        let read = self
            .read(3, self.long_probes(), make, |reader, key, shown| scan_from(reader, key.as_ref(), shown))?;
        let sum = self.note_read("scan", 1, read);
        self.figures.sums.insert("scan".to_owned(), sum);
        Ok(())
    }

    fn full(&mut self) -> Answer<()> {
        for (way, name) in [(Way::Forward, "forward"), (Way::Backward, "backward")] {
            let mut running = Running::start(&self.orders.directory)?;
            let mut shown = Shown::default();
            running
                .whole(self.pairs.len(), || self.store.scan_all(way, |key, value| shown.see(key, value)))?;
            if shown.pairs != self.pairs.len() {
                return wrong(format!("{} pairs shown for {}", shown.pairs, self.pairs.len()));
            }
            running.stop().note(name, 1, &mut self.figures);
            self.figures.sums.insert(name.to_owned(), shown.sum);
        }
        Ok(())
    }

    fn update(&mut self, spread: Distribution, name: &str) -> Answer<()> {
        let (choice, ops) = (self.choice(spread, 4), self.probes());
        let (store, pairs) = (&self.store, &mut self.pairs);
        let given = pairs.given_bytes;
        let mut running = Running::start(&self.orders.directory)?;
        let make = |at: u64| {
            let number = choice.pick(at);
            if at.is_multiple_of(2) {
                let (key, value) = pairs.rewrite(number);
                (key, Ok(value))
            } else {
                (pairs.key(number), Err(fold_bytes(&pairs.value(number))))
            }
        };
        let mut right = true;
        running.each(ops, make, |(key, change): &(K::Key, Result<Value, u64>)| match change {
            Ok(value) => store.put(key.as_ref(), value),
            Err(expected) => {
                let mut found = 0;
                let there = store.reader()?.get(key.as_ref(), |value| found = fold_bytes(value))?;
                right &= there && found == *expected;
                Ok(())
            }
        })?;
        let (lap, _) = running.settle(store)?;
        lap.note(name, 1, &mut self.figures);
        lap.note_written(name, pairs.given_bytes - given, &mut self.figures);
        if right {
            Ok(())
        } else {
            wrong(format!("{name}: a get showed another value than was written last"))
        }
    }

    fn insert(&mut self, spread: Distribution, name: &str) -> Answer<()> {
        let (choice, ops) = (self.choice(spread, 5), self.long_probes());
        let (store, pairs) = (&self.store, &mut self.pairs);
        let given = pairs.given_bytes;
        let mut running = Running::start(&self.orders.directory)?;
        let make = |at: u64| {
            if at.is_multiple_of(INSERT_EVERY) {
                let (key, value) = pairs.add();
                (key, Some(value))
            } else {
                (pairs.key(choice.pick(at)), None)
            }
        };
        let (mut right, mut shown) = (true, Shown::default());
        running.each(ops, make, |(key, value): &(K::Key, Option<Value>)| match value {
            Some(value) => store.put(key.as_ref(), value),
            None => {
                right &= scan_from(&mut store.reader()?, key.as_ref(), &mut shown)?;
                Ok(())
            }
        })?;
        let (lap, _) = running.settle(store)?;
        lap.note(name, 1, &mut self.figures);
        lap.note_written(name, pairs.given_bytes - given, &mut self.figures);
        self.figures.sums.insert(name.to_owned(), shown.sum);
        if right { Ok(()) } else { wrong(format!("{name}: a scan did not begin where it should")) }
    }

    fn batch(&mut self) -> Answer<()> {
        let (store, pairs) = (&self.store, &mut self.pairs);
        let given = pairs.given_bytes;
        let batches = (self.job.probes.min(pairs.len()) / LONG_SHARE / BATCH_PAIRS as u64).max(1);
        let mut running = Running::start(&self.orders.directory)?;
        let make = |_| (0..BATCH_PAIRS).map(|_| pairs.add()).collect::<Vec<_>>();
        running.each(batches, make, |batch: &Vec<(K::Key, Value)>| {
            store.put_batch(batch.iter().map(|(key, value)| (key.as_ref(), &value[..])))
        })?;
        let (lap, _) = running.settle(store)?;
        lap.note("batch", BATCH_PAIRS as u64, &mut self.figures);
        lap.note_written("batch", pairs.given_bytes - given, &mut self.figures);
        Ok(())
    }

    fn synced(&mut self, threads: u64) -> Answer<()> {
        let (store, pairs) = (&self.store, &mut self.pairs);
        let given = pairs.given_bytes;
        let own = self.orders.synced.div_ceil(threads);
        let shares: Vec<Vec<_>> = (0..threads).map(|_| (0..own).map(|_| pairs.add()).collect()).collect();
        let ready = Barrier::new(threads as usize + 1);
        let mut running = Running::start(&self.orders.directory)?;
        let mut each = latency::histogram();
        let write = |share: &[(K::Key, Value)]| -> Answer<_> {
            let mut each = latency::histogram();
            ready.wait();
            for (key, value) in share {
                let start = Instant::now();
                store.put_synced(key.as_ref(), value)?;
                each.saturating_record(nanos(start.elapsed()));
            }
            Ok(each)
        };
        running.whole(own * threads, || {
            std::thread::scope(|scope| {
                let writers: Vec<_> = shares.iter().map(|share| scope.spawn(|| write(share))).collect();
                ready.wait();
                for writer in writers {
                    each.add(writer.join().map_err(|_| "a writer panicked")??)?;
                }
                Ok(())
            })
        })?;
        running.add_each(&each)?;
        let (lap, name) = (running.stop(), format!("synced_{threads}t"));
        lap.note(&name, 1, &mut self.figures);
        lap.note_written(&name, pairs.given_bytes - given, &mut self.figures);
        Ok(())
    }

    fn compact(&mut self) -> Answer<()> {
        let mut running = Running::start(&self.orders.directory)?;
        let (store, mut offered) = (&mut self.store, false);
        running.whole(self.pairs.len(), || {
            offered = store.compact()?;
            Ok(())
        })?;
        if offered {
            let (mut lap, settled) = running.settle(&self.store)?;
            lap.wall += settled;
            lap.note("compact", 1, &mut self.figures);
        }
        self.note_disk("compact");
        Ok(())
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Scans from a key that is there; false if it did not begin there, or showed too many.
fn scan_from(reader: &mut impl Reader, key: &[u8], shown: &mut Shown) -> Answer<bool> {
    let (before, mut first) = (shown.pairs, None);
    reader.scan(key, SCAN_PAIRS, |found, value| {
        if first.is_none() {
            first = Some(found == key);
        }
        shown.see(found, value);
    })?;
    Ok(first == Some(true) && shown.pairs - before <= SCAN_PAIRS as u64)
}

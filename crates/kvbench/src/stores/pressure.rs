//! The scenarios of `kvbench pressure`: how a store keeps to its bounds of memory, space and time.
//!
//! Each pair is a pure function of its number, so threads write, read and check pairs without sharing what is in the
//! store. A scenario that writes ends with a check of pairs spread over all that it wrote; a wrong one ends the arm.

mod mixed;
mod transfers;
mod values;

use super::lap::{self, Running};
use super::pairs::{Key, PAIR_BYTES, Pairs};
use super::store::{Answer, Pressed, Reader, Settings, Store, Way};
use crate::data::{fold_bytes, mix};
use crate::job::{Compression, Durability, Figures, Job, Outcome, Part, PressureOrders, Report, Scenario};
use crate::{latency, usage};
use hdrhistogram::Histogram;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Threads that write.
const WRITERS: usize = 2;
/// How often the space on disk is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// A store that was not written to for so long is closed at rest.
const AT_REST: Duration = Duration::from_secs(3);
/// Pause between a snapshot and the next.
const BETWEEN_SNAPSHOTS: Duration = Duration::from_millis(1);
/// Of the reads beside a load, one of this many is a scan.
const SCAN_EVERY: u64 = 16;
/// Pairs of such a scan.
const SCAN_PAIRS: usize = 50;
/// Small ranges that are deleted, and the parts of the keyspace of which each is one.
const SMALL_RANGES: u64 = 1000;
const SMALL_PARTS: u64 = 1 << 16;
/// Scans of which the mean is taken.
const SCANS: u64 = 200;
/// Times that as many pairs are overwritten as there are.
const OVERWRITES: u64 = 2;
/// One of this many pairs is not deleted.
const KEPT_EVERY: u64 = 10;
/// A store grows from this size to its last.
const FIRST_SIZE: u64 = 1_000_000;
/// Pairs that are checked after a scenario.
const CHECKED: u64 = 1000;
/// Pops of which the mean is taken, first and last.
const POPS: u64 = 1000;
/// Numbers from here on make the second half of a long value.
const SECOND_HALF: u64 = 1 << 41;

/// An arm at work.
struct Arm<'a> {
    job: &'a Job,
    orders: &'a PressureOrders,
    pairs: Pairs,
    figures: Figures,
    report: Report<'a>,
}

/// Does an arm.
pub(crate) fn run<S: Pressed>(job: &Job, orders: &PressureOrders, report: Report<'_>) -> Outcome {
    let mut arm = Arm { job, orders, pairs: Pairs::new(job.seed), figures: Figures::default(), report };
    let done = match (orders.scenario, orders.part) {
        (Scenario::Memory, _) => arm.memory::<S>(),
        (Scenario::Stalls, _) => arm.stalls::<S>(),
        (Scenario::Snapshots, _) => arm.snapshots::<S>(),
        (Scenario::Overwrites, _) => arm.overwrites::<S>(),
        (Scenario::Deletes, _) => arm.deletes::<S>(),
        (Scenario::Ranges, _) => arm.ranges::<S>(),
        (Scenario::Opening, Part::Whole) => arm.closed::<S>(),
        (Scenario::Opening, Part::Opened) => arm.opened::<S>(),
        (Scenario::Opening, Part::Killed) => arm.killed::<S>(),
        (Scenario::Opening, Part::Recovered) => arm.recovered::<S>(),
        (Scenario::Growth, _) => arm.growth::<S>(),
        (Scenario::Closing, _) => arm.closing::<S>(),
        (Scenario::Headline, _) => arm.headline::<S>(),
        (Scenario::Queue, _) => arm.queue::<S>(),
        (Scenario::Values, _) => arm.values::<S>(),
        (Scenario::Ingest, _) => arm.ingest::<S>(),
        (Scenario::Transfers, _) => arm.transfers::<S::Transactions>(),
        (scenario, _) => match scenario.mix() {
            Some(mix) => arm.mixed::<S>(&mix),
            None => Err("this is no scenario".into()),
        },
    };
    match done {
        Ok(()) => arm.figures.into(),
        Err(fault) => Outcome::Failed(fault.to_string()),
    }
}

/// The numbers that writers take, one after the other.
struct Numbers {
    next: AtomicU64,
    end: u64,
    stopped: AtomicBool,
}

impl Numbers {
    fn new(first: u64, end: u64) -> Self {
        Numbers { next: AtomicU64::new(first), end, stopped: AtomicBool::new(false) }
    }

    /// The next; `None` after the last, or after a stop. One that was taken is written.
    fn take(&self) -> Option<u64> {
        if self.stopped.load(Relaxed) {
            return None;
        }
        Some(self.next.fetch_add(1, Relaxed)).filter(|number| *number < self.end)
    }

    fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }

    /// How many were taken so far, from 0 on.
    fn taken(&self) -> u64 {
        self.next.load(Relaxed).min(self.end)
    }
}

/// Stops writers whose numbers have no end, also if their arm panics.
struct Stop<'a>(&'a Numbers);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        if self.0.end == u64::MAX {
            self.0.stop();
        }
    }
}

/// Lets [`WRITERS`] threads put the pairs of all numbers while `work` runs; if the numbers have no end, until it has
/// run. Returns the time of each put as well.
fn beside<S: Store, V: AsRef<[u8]>, T>(
    store: &S,
    numbers: &Numbers,
    pair: impl Fn(u64) -> (Key, V) + Sync,
    work: impl FnOnce() -> Answer<T>,
) -> Answer<(T, Histogram<u64>)> {
    let write = || -> Answer<_> {
        let mut each = latency::histogram();
        while let Some(number) = numbers.take() {
            let (key, value) = pair(number);
            let start = Instant::now();
            let put = store.put(&key, value.as_ref());
            each.saturating_record(start.elapsed().as_nanos() as u64);
            put.inspect_err(|_| numbers.stop())?;
        }
        Ok(each)
    };
    thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS).map(|_| scope.spawn(write)).collect();
        let stop = Stop(numbers);
        let done = work();
        drop(stop);
        let mut each = latency::histogram();
        for writer in writers {
            each.add(writer.join().map_err(|_| "a writer panicked")??)?;
        }
        Ok((done?, each))
    })
}

/// Does `work` and waits until the store is at rest. Returns the most bytes that the directory occupied meanwhile.
fn peak_of<T>(directory: &Path, store: &impl Store, work: impl FnOnce() -> Answer<T>) -> Answer<u64> {
    let mut peak = thread::scope(|scope| {
        // A panic drops the sender too, which ends the looking.
        let (end, ended) = channel::<()>();
        let look = move || {
            let mut peak = 0;
            loop {
                peak = usage::disk_bytes(directory).max(peak);
                if ended.recv_timeout(LOOK) != Err(RecvTimeoutError::Timeout) {
                    return peak;
                }
            }
        };
        let looking = scope.spawn(look);
        let done = work();
        drop(end);
        let peak = looking.join().map_err(|_| "the thread that looks at the disk panicked")?;
        done.map(|_| peak)
    })?;
    // A thread beside it would be taken for the store's own work.
    lap::settle_beside(store, || peak = peak.max(usage::disk_bytes(directory)))?;
    Ok(peak)
}

impl Arm<'_> {
    fn open<S: Store>(&self) -> Answer<S> {
        self.open_at(Durability::Process)
    }

    fn open_at<S: Store>(&self, durability: Durability) -> Answer<S> {
        self.open_in(&self.orders.directory, durability)
    }

    fn open_in<S: Store>(&self, directory: &Path, durability: Durability) -> Answer<S> {
        S::open(&self.settings(directory, durability))
    }

    fn settings<'s>(&self, directory: &'s Path, durability: Durability) -> Settings<'s> {
        Settings {
            directory,
            memtable_bytes: self.orders.memtable_bytes as usize,
            cache_bytes: self.orders.cache_bytes as usize,
            durability,
            compression: Compression::None,
            separates: self.orders.scenario == Scenario::Values,
        }
    }

    fn keys(&self) -> u64 {
        self.job.keys
    }

    fn time(&self) -> Duration {
        Duration::from_millis(self.orders.millis)
    }

    /// Puts the pairs of these numbers.
    fn load<S: Store>(&mut self, store: &S, numbers: std::ops::Range<u64>) -> Answer<()> {
        let keys = self.keys();
        for number in numbers {
            if number.is_multiple_of(1 << 14) {
                (self.report)(format!("load {}%", number * 100 / keys));
            }
            let (key, value) = self.pairs.pair(number);
            store.put(&key, &value)?;
        }
        Ok(())
    }

    /// Checks some of the pairs of the first `end` numbers.
    fn check<S: Store>(&self, store: &S, end: u64) -> Answer<()> {
        let mut reader = store.reader()?;
        for at in 0..CHECKED.min(end) {
            let (key, value) = self.pairs.pair(end - 1 - at * (end / CHECKED.min(end)));
            let mut found = 0;
            let is_there = reader.get(&key, |value| found = fold_bytes(value))?;
            if !is_there || found != fold_bytes(&value) {
                return Err("a pair that was written is not there, or has another value".into());
            }
        }
        Ok(())
    }

    /// Checks that there are as many pairs.
    fn check_count<S: Store>(&self, store: &S, expected: u64) -> Answer<()> {
        let found = count(store)?;
        if found == expected { Ok(()) } else { Err(format!("{found} pairs for {expected}").into()) }
    }

    fn note(&mut self, name: &str, each: &Histogram<u64>) {
        self.figures.values.extend(latency::quantiles(name, each));
    }

    fn note_bytes(&mut self, name: &str, bytes: Option<u64>) {
        if let Some(bytes) = bytes {
            self.figures.set(&format!("{name}_bytes"), bytes as f64);
        }
    }

    /// Two threads load the store and then overwrite it, one gets and scans.
    fn memory<S: Pressed>(&mut self) -> Answer<()> {
        let growth = usage::Growth::begin();
        let (store, keys, start) = (self.open::<S>()?, self.keys(), Instant::now());
        let numbers = Numbers::new(0, u64::MAX);
        let read = || -> Answer<()> {
            let is_over = || start.elapsed() >= self.time() && numbers.taken() >= 2 * keys;
            let mut at = 0u64;
            while !is_over() && !numbers.stopped.load(Relaxed) {
                at += 1;
                self.read_one(&mut store.reader()?, mix(at) % numbers.taken().clamp(1, keys), at)?;
            }
            Ok(())
        };
        beside(&store, &numbers, |number| self.pairs.pair(number % keys), read)?;
        lap::settle(&store)?;
        self.check(&store, keys)?;
        self.note_bytes("resident_peak", growth.peak_bytes());
        self.note_bytes("resident_rest", growth.bytes());
        Ok(())
    }

    /// Gets or scans from a pair that may not be written yet.
    fn read_one(&self, reader: &mut impl Reader, number: u64, at: u64) -> Answer<()> {
        let (key, value) = self.pairs.pair(number);
        let mut right = true;
        if at.is_multiple_of(SCAN_EVERY) {
            let mut last: Option<Vec<u8>> = None;
            reader.scan(&key, SCAN_PAIRS, |found, _| {
                right &= last.as_deref().is_none_or(|last| last < found);
                last = Some(found.to_owned());
            })?;
        } else {
            reader.get(&key, |found| right = fold_bytes(found) == fold_bytes(&value))?;
        }
        if right { Ok(()) } else { Err("a read beside the load returned a wrong value, or no order".into()) }
    }

    fn stalls<S: Pressed>(&mut self) -> Answer<()> {
        let store = self.open::<S>()?;
        self.load(&store, 0..self.keys())?;
        (self.report)("puts".to_owned());
        let numbers = Numbers::new(self.keys(), u64::MAX);
        let start = Instant::now();
        let wait = || {
            thread::sleep(self.time());
            Ok(())
        };
        let ((), each) = beside(&store, &numbers, |number| self.pairs.pair(number), wait)?;
        self.figures.set("put_ops_per_s", each.len() as f64 / start.elapsed().as_secs_f64());
        self.note("put", &each);
        self.check(&store, numbers.taken())
    }

    fn snapshots<S: Pressed>(&mut self) -> Answer<()> {
        let store = self.open::<S>()?;
        self.load(&store, 0..self.keys())?;
        (self.report)("snapshots".to_owned());
        let numbers = Numbers::new(self.keys(), u64::MAX);
        let start = Instant::now();
        let make = || {
            let mut each = latency::histogram();
            while start.elapsed() < self.time() {
                let start = Instant::now();
                drop(store.snapshot()?);
                each.saturating_record(start.elapsed().as_nanos() as u64);
                thread::sleep(BETWEEN_SNAPSHOTS);
            }
            Ok(each)
        };
        let (snapshots, puts) = beside(&store, &numbers, |number| self.pairs.pair(number), make)?;
        self.figures.set("put_ops_per_s", puts.len() as f64 / start.elapsed().as_secs_f64());
        self.note("snapshot", &snapshots);
        self.check(&store, numbers.taken())
    }

    fn overwrites<S: Pressed>(&mut self) -> Answer<()> {
        let (store, keys) = (self.open::<S>()?, self.keys());
        self.load(&store, 0..keys)?;
        lap::settle(&store)?;
        usage::clean(&self.orders.directory);
        (self.report)("overwrites".to_owned());
        let running = Running::start(&self.orders.directory)?;
        let numbers = Numbers::new(0, OVERWRITES * keys);
        let work = || beside(&store, &numbers, |number| self.pairs.pair(mix(number) % keys), || Ok(()));
        let peak = peak_of(&self.orders.directory, &store, work)?;
        let lap = running.stop();
        lap.note_written("overwrite", OVERWRITES * keys * PAIR_BYTES, &mut self.figures);
        self.note_bytes("disk_peak", Some(peak));
        self.note_bytes("disk_rest", Some(usage::disk_bytes(&self.orders.directory)));
        self.figures.set("overwrite_peak_disk_per_byte", peak as f64 / (keys * PAIR_BYTES) as f64);
        self.check(&store, keys)?;
        self.check_count(&store, keys)
    }

    fn deletes<S: Pressed>(&mut self) -> Answer<()> {
        let (store, keys) = (self.open::<S>()?, self.keys());
        self.load(&store, 0..keys)?;
        lap::settle(&store)?;
        let directory = &self.orders.directory;
        self.figures.set("disk_loaded_bytes", usage::disk_bytes(directory) as f64);
        (self.report)("deletes".to_owned());
        for number in (0..keys).filter(|number| !number.is_multiple_of(KEPT_EVERY)) {
            store.delete(&self.pairs.key(number))?;
        }
        (self.report)("idle".to_owned());
        thread::sleep(self.time());
        self.figures.set("disk_idle_bytes", usage::disk_bytes(directory) as f64);
        self.check_count(&store, keys.div_ceil(KEPT_EVERY))
    }

    /// The half of the keys in the middle goes by one range delete, then small ranges below it, one by one. Scans begin
    /// just below the first range and go on after it; they are compared with scans elsewhere.
    fn ranges<S: Pressed>(&mut self) -> Answer<()> {
        let (store, keys) = (self.open::<S>()?, self.keys());
        self.load(&store, 0..keys)?;
        lap::settle(&store)?;
        let (start, end) = ([0x40], [0xC0]);
        self.figures.set("disk_loaded_bytes", usage::disk_bytes(&self.orders.directory) as f64);
        // Just below the range, so that what a scan shows comes from beyond it.
        let below = |at: u64| (0x3FFF_FFFF_FFFF_FFFF - at).to_be_bytes();
        let elsewhere = |at: u64| (0xC000_0000_0000_0000_u64 + mix(at) % (1 << 60)).to_be_bytes();
        let scans = |from: &dyn Fn(u64) -> [u8; 8]| -> Answer<f64> {
            let mut reader = store.reader()?;
            let begin = Instant::now();
            for at in 0..SCANS {
                let mut seen = 0;
                reader.scan(&from(at), SCAN_PAIRS, |_, _| seen += 1)?;
                if seen < SCAN_PAIRS {
                    return Err(format!("a scan showed {seen} pairs").into());
                }
            }
            Ok(begin.elapsed().as_nanos() as f64 / SCANS as f64)
        };
        (self.report)("scans".to_owned());
        scans(&elsewhere)?;
        let alone = scans(&elsewhere)?;
        (self.report)("range".to_owned());
        let begin = Instant::now();
        store.delete_range(&start, &end)?;
        self.figures.set("range_delete_ns", begin.elapsed().as_nanos() as f64);
        let begin = Instant::now();
        store.reader()?.scan(&below(0), SCAN_PAIRS, |_, _| ())?;
        self.figures.set("scan_first_ns", begin.elapsed().as_nanos() as f64);
        let across = scans(&below)?;
        self.figures.set("scan_ns", alone);
        self.figures.set("scan_across_ns", across);
        self.figures.set("scan_across_ratio", across / alone);
        (self.report)("small ranges".to_owned());
        let part = |number: u64| (number * (u64::MAX / SMALL_PARTS)).to_be_bytes();
        let begin = Instant::now();
        for number in 0..SMALL_RANGES {
            store.delete_range(&part(2 * number), &part(2 * number + 1))?;
        }
        self.figures.set("small_range_ns", begin.elapsed().as_nanos() as f64 / SMALL_RANGES as f64);
        (self.report)("idle".to_owned());
        thread::sleep(self.time());
        lap::settle(&store)?;
        scans(&below)?;
        self.figures.set("scan_later_ratio", scans(&below)? / alone);
        self.figures.set("disk_idle_bytes", usage::disk_bytes(&self.orders.directory) as f64);
        let is_deleted = |key: &Key| {
            let at = u64::from_be_bytes(key[..8].try_into().expect("eight bytes"));
            let number = at / (u64::MAX / SMALL_PARTS);
            (0x40..0xC0).contains(&key[0]) || (number.is_multiple_of(2) && number < 2 * SMALL_RANGES)
        };
        let left = (0..keys).filter(|number| !is_deleted(&self.pairs.key(*number))).count();
        self.check_count(&store, left as u64)
    }

    /// Opening, first part: a store that is closed when nothing was written for a while.
    fn closed<S: Pressed>(&mut self) -> Answer<()> {
        let store = self.open::<S>()?;
        self.load(&store, 0..self.keys())?;
        lap::settle(&store)?;
        thread::sleep(AT_REST);
        lap::settle(&store)?;
        let start = Instant::now();
        drop(store);
        self.figures.set("close_ns", start.elapsed().as_nanos() as f64);
        Ok(())
    }

    /// Opens the store and gets a pair. Notes both times.
    fn open_and_get<S: Pressed>(&mut self, name: &str, number: u64) -> Answer<(S, Duration)> {
        let (key, value) = self.pairs.pair(number);
        let start = Instant::now();
        let store = self.open::<S>()?;
        let open = start.elapsed();
        let mut found = Vec::new();
        let is_there = store.reader()?.get(&key, |value| found.extend_from_slice(value))?;
        let both = start.elapsed();
        if !is_there || found != value {
            return Err("the first get did not find its pair".into());
        }
        self.figures.set(&format!("{name}_open_ns"), open.as_nanos() as f64);
        self.figures.set(&format!("{name}_first_get_ns"), (both - open).as_nanos() as f64);
        self.figures.set(&format!("{name}_open_and_get_ns"), both.as_nanos() as f64);
        Ok((store, open))
    }

    fn opened<S: Pressed>(&mut self) -> Answer<()> {
        let (store, _) = self.open_and_get::<S>("closed", self.keys() / 2)?;
        self.check(&store, self.keys())
    }

    /// Records that are in the log when the process is killed: as many as a memtable has room for.
    fn replayed(&self) -> u64 {
        let room = self.orders.memtable_bytes / (2 * PAIR_BYTES);
        (self.keys() / 20).min(room).max(1)
    }

    /// The log is empty after a compaction, so what is written then is what has to be replayed.
    fn killed<S: Pressed>(&mut self) -> Answer<()> {
        let mut store = self.open::<S>()?;
        store.compact()?;
        let keys = self.keys();
        self.load(&store, keys..keys + self.replayed())?;
        // The process is killed next, so nothing of it may be closed.
        std::mem::forget(store);
        Ok(())
    }

    fn recovered<S: Pressed>(&mut self) -> Answer<()> {
        let (replayed, end) = (self.replayed(), self.keys() + self.replayed());
        let (store, open) = self.open_and_get::<S>("killed", end - 1)?;
        self.figures.set("killed_replay_ops_per_s", replayed as f64 / open.as_secs_f64().max(1e-9));
        self.check(&store, end)?;
        self.check_count(&store, end)
    }

    fn growth<S: Pressed>(&mut self) -> Answer<()> {
        let (store, keys) = (self.open::<S>()?, self.keys());
        let mut sizes: Vec<u64> =
            std::iter::successors(Some(FIRST_SIZE.min(keys.div_ceil(4))), |size| Some(size * 2))
                .take_while(|size| *size < keys)
                .collect();
        sizes.push(keys);
        let (mut loaded, mut costs) = (0, Vec::new());
        let running = Running::start(&self.orders.directory)?;
        for size in sizes {
            let start = Instant::now();
            self.load(&store, loaded..size)?;
            let loading = start.elapsed() + lap::settle(&store)?;
            let cost = loading.as_nanos() as f64 / (size - loaded) as f64;
            self.figures.set(&format!("growth_ns@{size}"), cost);
            costs.push(cost);
            loaded = size;
        }
        let lap = running.stop();
        lap.note_written("growth", keys * PAIR_BYTES, &mut self.figures);
        if let [first, .., last] = costs[..] {
            self.figures.set("growth_first_ns", first);
            self.figures.set("growth_last_ns", last);
            self.figures.set("growth_ratio", last / first);
        }
        self.check(&store, keys)
    }

    /// A store whose writes may be lost with the process hands all of them to the system when it is closed.
    fn closing<S: Pressed>(&mut self) -> Answer<()> {
        let weakest = S::OFFERS.first().copied().unwrap_or_default();
        let store = self.open_at::<S>(weakest)?;
        self.load(&store, 0..self.keys())?;
        let numbers = Numbers::new(self.keys(), u64::MAX);
        let wait = || {
            thread::sleep(self.time());
            Ok(())
        };
        beside(&store, &numbers, |number| self.pairs.pair(number), wait)?;
        let start = Instant::now();
        drop(store);
        self.figures.set("close_ns", start.elapsed().as_nanos() as f64);
        (self.report)("open again".to_owned());
        let written = numbers.taken();
        let store = self.open_at::<S>(weakest)?;
        self.figures.set("kept_percent", 100.0 * count(&store)? as f64 / written as f64);
        Ok(())
    }

    fn headline<S: Pressed>(&mut self) -> Answer<()> {
        let growth = usage::Growth::begin();
        let (store, keys) = (self.open::<S>()?, self.keys());
        // 16 and 200 bytes: with them a compacted store has the size that was seen with the ancestor's program.
        let long = |number: u64| {
            let halves = [self.pairs.value(number), self.pairs.value(number + SECOND_HALF)];
            (self.pairs.key(number), halves.concat())
        };
        let numbers = Numbers::new(0, keys * (1 + self.orders.rounds));
        // First each key once, then any.
        let chosen = |number: u64| if number < keys { number } else { mix(number) % keys };
        let work = || beside(&store, &numbers, |number| long(chosen(number)), || Ok(()));
        let peak = peak_of(&self.orders.directory, &store, work)?;
        self.note_bytes("resident_peak", growth.peak_bytes());
        self.note_bytes("resident_rest", growth.bytes());
        self.check_count(&store, keys)?;
        drop(store);
        let rest = usage::disk_bytes(&self.orders.directory);
        self.note_bytes("disk_peak", Some(peak.max(rest)));
        self.note_bytes("disk_rest", Some(rest));
        Ok(())
    }

    fn queue<S: Pressed>(&mut self) -> Answer<()> {
        let (store, keys) = (self.open::<S>()?, self.keys());
        let key = |number: u64| u128::from(number).to_be_bytes();
        for number in 0..keys {
            store.put(&key(number), &self.pairs.value(number))?;
        }
        lap::settle(&store)?;
        let mut times = Vec::new();
        for number in 0..(keys * 2 / 5).max(1) {
            let (expected, mut right) = (key(number), false);
            let start = Instant::now();
            let is_there = store.pop(|key| right = key == expected)?;
            times.push(start.elapsed().as_nanos() as f64);
            if !is_there || !right {
                return Err(format!("pop {number} did not return the first key").into());
            }
        }
        let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len().max(1) as f64;
        let few = times.len().min(POPS as usize);
        self.figures.set("pop_first_ns", mean(&times[..few]));
        self.figures.set("pop_last_ns", mean(&times[times.len() - few..]));
        self.figures.set("pop_ns", mean(&times));
        self.check_count(&store, keys - times.len() as u64)
    }

    /// As many sorted pairs as the store has, from all over its keys.
    fn ingest<S: Pressed>(&mut self) -> Answer<()> {
        let (store, keys) = (self.open::<S>()?, self.keys());
        self.load(&store, 0..keys)?;
        lap::settle(&store)?;
        usage::clean(&self.orders.directory);
        (self.report)("ingest".to_owned());
        let mut pairs: Vec<_> = (keys..2 * keys).map(|number| self.pairs.pair(number)).collect();
        pairs.sort_unstable_by_key(|(key, _)| *key);
        let files = self.orders.directory.join("files");
        std::fs::create_dir(&files)?;
        let mut running = Running::start(&self.orders.directory)?;
        running
            .whole(keys, || store.ingest(&files, pairs.iter().map(|(key, value)| (&key[..], &value[..]))))?;
        let (lap, settled) = running.settle(&store)?;
        lap.note("ingest", 1, &mut self.figures);
        lap.note_written("ingest", keys * PAIR_BYTES, &mut self.figures);
        self.figures.set("ingest_settle_s", settled.as_secs_f64());
        self.check(&store, 2 * keys)?;
        self.check_count(&store, 2 * keys)
    }
}

/// Number of pairs.
fn count(store: &impl Store) -> Answer<u64> {
    let mut count = 0;
    store.scan_all(Way::Forward, |_, _| count += 1)?;
    Ok(count)
}

//! A store on disk under random operations for a long time, compared with a model: `cargo xtask soak`.
//!
//! Two threads change and read keys of their own, each compared with a `BTreeMap`: sets, deletes, additions,
//! compare-and-swaps, batches, range deletes, gets, scans both ways, counts, and snapshots that are kept for a while.
//! After some seconds the store is compared as a whole, sometimes verified or compacted, closed, opened and compared
//! again. Meanwhile the space on disk and the resident memory are watched.
//!
//! It fails if the data are wrong or a call fails. Space, memory and the longest call are printed with their targets; a
//! missed one is no failure. The seed gives the operations of each thread; how many there are depends on time.
//!
//! ```text
//! soak SECONDS [SEED]
//! ```

use forrest::{Db, Snapshot, Swap, View, WriteBatch};
use forrest_base::random::{Random, mix_all};
use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Threads that use the store.
const THREADS: u64 = 2;
/// Keys of each thread.
const KEYS: u64 = 100_000;
/// Counters of each thread.
const COUNTERS: u64 = 16;
/// Sizes of the store: small, so that it flushes and compacts all the time.
const MEMTABLE_BYTES: usize = 4 << 20;
const CACHE_BYTES: usize = 16 << 20;
const TABLE_BYTES: u64 = 8 << 20;
/// Memtables that may be in memory at once.
const MEMTABLES: u64 = 3;
/// How often space and memory are looked at.
const LOOK: Duration = Duration::from_millis(50);
/// The longest time between two openings, in milliseconds.
const OPEN_MILLIS: u64 = 10_000;
/// No call should take longer.
const CALL_MAX: Duration = Duration::from_millis(50);

/// Why the run failed.
type Fault = Box<dyn std::error::Error + Send + Sync>;
/// What a thread's part of the store must have: the version of each key's value by the key's number, 0 for none. Small
/// and of one size, because the memory of the process is watched.
#[derive(Clone)]
struct Model(Vec<u32>);

impl Model {
    fn new() -> Self {
        Model(vec![0; KEYS as usize])
    }

    fn get(&self, number: u64) -> Option<u32> {
        Some(self.0[number as usize]).filter(|version| *version > 0)
    }

    /// Replaces a version; returns the old one.
    fn put(&mut self, number: u64, version: Option<u32>) -> Option<u32> {
        let old = std::mem::replace(&mut self.0[number as usize], version.unwrap_or(0));
        Some(old).filter(|version| *version > 0)
    }

    /// The numbers that have a version, with it. Numbers beyond the last are ignored.
    fn range(&self, numbers: Range<u64>) -> impl DoubleEndedIterator<Item = (u64, u32)> {
        let numbers = numbers.start.min(KEYS)..numbers.end.min(KEYS);
        numbers.filter_map(|number| Some((number, self.get(number)?)))
    }
}

fn main() -> Result<(), Fault> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (seconds, seed) = match &arguments[..] {
        [seconds] => (seconds, std::process::id().into()),
        [seconds, seed] => (seconds, seed.parse()?),
        _ => return Err("SECONDS [SEED]".into()),
    };
    let time = Duration::from_secs(seconds.parse()?);
    println!("soak: {} s, seed {seed}", time.as_secs());
    let directory = tempfile::tempdir()?;
    let mut soak = Soak::new(directory.path(), seed);
    let result = soak.run(time);
    soak.print();
    let opened = soak.opened;
    result.map_err(|fault| {
        let kept = directory.keep();
        format!("seed {seed}, after {opened} openings: {fault}; the store is kept in {}", kept.display())
            .into()
    })
}

/// The run.
struct Soak<'d> {
    directory: &'d Path,
    random: Random,
    workers: Vec<Worker>,
    /// Resident memory before the first opening, in bytes.
    before: u64,
    opened: u64,
    disk_peak: u64,
    /// The greatest space for the most that it should be.
    disk_worst: f64,
    /// The same at rest.
    disk_closed: u64,
}

impl<'d> Soak<'d> {
    fn new(directory: &'d Path, seed: u64) -> Self {
        Soak {
            directory,
            random: Random(seed),
            workers: (0..THREADS).map(|number| Worker::new(seed, number)).collect(),
            before: memory("VmRSS"),
            opened: 0,
            disk_peak: 0,
            disk_worst: 0.0,
            disk_closed: 0,
        }
    }

    fn run(&mut self, time: Duration) -> Result<(), Fault> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            let until = end.min(Instant::now() + Duration::from_millis(1 + self.random.below(OPEN_MILLIS)));
            let db = self.open()?;
            self.work(&db, until)?;
            self.compare(&db)?;
            match self.random.below(8) {
                0 => db.compact()?,
                1 => db.verify()?,
                _ => {}
            }
            drop(db);
            self.disk_closed = disk_bytes(self.directory);
        }
        let db = self.open()?;
        self.compare(&db)?;
        db.verify()?;
        Ok(())
    }

    fn open(&mut self) -> Result<Db, Fault> {
        self.opened += 1;
        let path = self.directory.join("store");
        let builder =
            Db::builder().memtable_bytes(MEMTABLE_BYTES).cache_bytes(CACHE_BYTES).table_bytes(TABLE_BYTES);
        let db = builder.open(path.to_str().ok_or("the path is no text")?)?;
        self.compare(&db)?;
        Ok(db)
    }

    /// Lets the threads work until a time.
    fn work(&mut self, db: &Db, until: Instant) -> Result<(), Fault> {
        let (is_over, live) = (AtomicBool::new(false), AtomicU64::new(0));
        let (mut peak, mut worst) = (0, 0.0f64);
        let done: Vec<Result<(), Fault>> = thread::scope(|scope| {
            let (is_over, live) = (&is_over, &live);
            let run = |worker: &mut Worker| {
                let done = worker.run(db, until, is_over, live);
                is_over.store(true, Relaxed);
                done
            };
            let threads: Vec<_> =
                self.workers.iter_mut().map(|worker| scope.spawn(move || run(worker))).collect();
            while threads.iter().any(|thread| !thread.is_finished()) {
                let bytes = disk_bytes(self.directory);
                peak = bytes.max(peak);
                worst = worst.max(bytes as f64 / disk_allowed(live.load(Relaxed)));
                thread::park_timeout(LOOK);
            }
            let joined = threads.into_iter().map(|thread| thread.join());
            joined.map(|done| done.unwrap_or_else(|_| Err("a thread panicked".into()))).collect()
        });
        self.disk_peak = self.disk_peak.max(peak);
        self.disk_worst = self.disk_worst.max(worst);
        done.into_iter().collect()
    }

    /// Compares everything that is in the store.
    fn compare(&self, db: &Db) -> Result<(), Fault> {
        self.workers.iter().try_for_each(|worker| worker.compare_all(db))
    }

    fn print(&self) {
        let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
        let verdict = |is_met: bool| if is_met { "met" } else { "missed" };
        let ops: u64 = self.workers.iter().map(|worker| worker.ops).sum();
        let snapshots: u64 = self.workers.iter().map(|worker| worker.snapshots).sum();
        println!("{ops} operations, {snapshots} snapshots compared, {} openings", self.opened);
        println!(
            "on disk: {} at the peak, {} closed; at worst {:.2} times 1.6 live + logs + a table: {}",
            mib(self.disk_peak),
            mib(self.disk_closed),
            self.disk_worst,
            verdict(self.disk_worst <= 1.0)
        );
        let grown = memory("VmHWM").saturating_sub(self.before);
        let budget = MEMTABLES * MEMTABLE_BYTES as u64 + CACHE_BYTES as u64;
        let most = budget + budget / 10 + (16 << 20);
        println!(
            "resident: {} at the peak; at most {} for the store: {}",
            mib(grown),
            mib(most),
            verdict(grown <= most)
        );
        let mut calls: BTreeMap<&str, (Duration, u64)> = BTreeMap::new();
        for (name, (longest, stalls)) in self.workers.iter().flat_map(|worker| &worker.calls) {
            let (all, sum) = calls.entry(name).or_default();
            *all = longest.max(all).to_owned();
            *sum += stalls;
        }
        let most = CALL_MAX.as_millis();
        let text = |(name, (longest, stalls)): (&&str, &(Duration, u64))| {
            format!("{name} {:.1} ms ({stalls})", longest.as_secs_f64() * 1e3)
        };
        let kinds: Vec<_> = calls.iter().map(text).collect();
        let is_met = calls.values().all(|(_, stalls)| *stalls == 0);
        println!("longest calls (and how many above {most} ms): {}: {}", kinds.join(", "), verdict(is_met));
    }
}

/// The space that a store with this much data should need at most.
fn disk_allowed(live: u64) -> f64 {
    1.6 * live as f64 + (MEMTABLES * MEMTABLE_BYTES as u64 + TABLE_BYTES) as f64
}

/// Bytes that the files in a directory occupy.
fn disk_bytes(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let occupied = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(of) if of.is_dir() => disk_bytes(&entry.path()),
        Ok(of) => of.blocks() * 512,
        // It was removed meanwhile.
        Err(_) => 0,
    };
    entries.map(occupied).sum()
}

/// Memory of this process by a name of the system's, in bytes; 0 where it is not reported.
fn memory(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

/// A snapshot, and what it must have.
struct Kept {
    snapshot: Snapshot,
    model: Model,
    bytes: u64,
    /// When it is compared and dropped, in operations.
    until: u64,
}

/// A thread with its keys and what the store must have of them.
struct Worker {
    seed: u64,
    number: u64,
    random: Random,
    model: Model,
    counters: BTreeMap<Vec<u8>, i64>,
    /// Bytes of the pairs of the model.
    bytes: u64,
    version: u32,
    ops: u64,
    snapshots: u64,
    /// The longest call of each kind, and how many took longer than [`CALL_MAX`].
    calls: BTreeMap<&'static str, (Duration, u64)>,
}

impl Worker {
    fn new(seed: u64, number: u64) -> Self {
        Worker {
            seed,
            number,
            random: Random(mix_all(&[seed, number])),
            model: Model::new(),
            counters: BTreeMap::new(),
            bytes: 0,
            version: 0,
            ops: 0,
            snapshots: 0,
            calls: BTreeMap::new(),
        }
    }

    /// Where its keys begin, and its counters'.
    fn prefixes(&self) -> (Vec<u8>, Vec<u8>) {
        (vec![b'k', self.number as u8], vec![b'c', self.number as u8])
    }

    /// The key of a number: of 6 to 30 bytes, in the order of the numbers.
    fn key(&self, number: u64) -> Vec<u8> {
        let mut key = self.prefixes().0;
        key.extend_from_slice(&(number as u32).to_be_bytes());
        key.resize(6 + (number % 7) as usize * 4, b'.');
        key
    }

    fn some_key(&mut self) -> (u64, Vec<u8>) {
        let number = self.random.below(KEYS);
        (number, self.key(number))
    }

    /// A range of less than this many numbers.
    fn some_range(&mut self, keys: u64) -> Range<u64> {
        let first = self.random.below(KEYS);
        first..first + self.random.below(keys)
    }

    /// The value of a version: up to 200 bytes, one of 16 up to 4,000.
    fn value(&self, version: u32) -> Vec<u8> {
        let mut random = Random(mix_all(&[self.seed, self.number, version.into()]));
        let most = if random.below(16) == 0 { 4000 } else { 200 };
        let (len, mut value) = (random.below(most + 1) as usize, Vec::new());
        random.append(len, &mut value);
        value
    }

    /// Bytes of a value without making it.
    fn value_bytes(&self, version: u32) -> u64 {
        let mut random = Random(mix_all(&[self.seed, self.number, version.into()]));
        let most = if random.below(16) == 0 { 4000 } else { 200 };
        random.below(most + 1)
    }

    /// The value that a key gets next.
    fn next_value(&mut self) -> (u32, Vec<u8>) {
        self.version += 1;
        (self.version, self.value(self.version))
    }

    fn note(&mut self, number: u64, version: Option<u32>) {
        let key_bytes = self.key(number).len() as u64;
        if let Some(version) = version {
            self.bytes += key_bytes + self.value_bytes(version);
        }
        if let Some(old) = self.model.put(number, version) {
            self.bytes -= key_bytes + self.value_bytes(old);
        }
    }

    /// The pair of an entry of the model.
    fn pair(&self, (number, version): (u64, u32)) -> (Vec<u8>, Vec<u8>) {
        (self.key(number), self.value(version))
    }

    /// A call, and how long it takes.
    fn timed<T>(
        &mut self,
        name: &'static str,
        call: impl FnOnce() -> forrest::Result<T>,
    ) -> Result<T, Fault> {
        let start = Instant::now();
        let result = call().map_err(|error| format!("{name}: {error}"));
        let took = start.elapsed();
        let (longest, stalls) = self.calls.entry(name).or_default();
        *longest = took.max(*longest);
        *stalls += u64::from(took > CALL_MAX);
        Ok(result?)
    }

    fn run(&mut self, db: &Db, until: Instant, is_over: &AtomicBool, live: &AtomicU64) -> Result<(), Fault> {
        let mut kept: Option<Kept> = None;
        let mut shown = 0;
        while Instant::now() < until && !is_over.load(Relaxed) {
            self.ops += 1;
            self.step(db)?;
            if kept.is_none() && self.random.below(20_000) == 0 {
                let snapshot = self.timed("snapshot", || db.snapshot())?;
                let until = self.ops + self.random.below(40_000);
                kept = Some(Kept { snapshot, model: self.model.clone(), bytes: self.bytes, until });
            }
            if let Some(one) = kept.take_if(|one| one.until <= self.ops) {
                self.finish(one)?;
            }
            // Other threads add theirs, so only the difference is added.
            let now = self.bytes + kept.as_ref().map_or(0, |one| one.bytes);
            live.fetch_add(now.wrapping_sub(shown), Relaxed);
            shown = now;
        }
        kept.map_or(Ok(()), |one| self.finish(one))
    }

    /// Compares a snapshot, and drops it.
    fn finish(&mut self, kept: Kept) -> Result<(), Fault> {
        self.snapshots += 1;
        self.compare_pairs(&kept.snapshot, &kept.model).map_err(|fault| format!("a snapshot: {fault}"))?;
        self.timed("drop of a snapshot", || {
            drop(kept.snapshot);
            Ok(())
        })
    }

    /// One operation.
    fn step(&mut self, db: &Db) -> Result<(), Fault> {
        match self.random.below(1000) {
            0..400 => {
                let ((number, key), (version, value)) = (self.some_key(), self.next_value());
                self.timed("set", || db.set(&key, &value))?;
                self.note(number, Some(version));
                Ok(())
            }
            400..500 => {
                let (number, key) = self.some_key();
                let was_there = self.timed("delete", || db.delete(&key))?;
                if was_there != self.model.get(number).is_some() {
                    return Err(format!("delete of {key:?} returned {was_there}").into());
                }
                self.note(number, None);
                Ok(())
            }
            500..550 => self.add(db),
            550..600 => self.swap(db),
            600..620 => self.batch(db),
            620..621 => {
                let numbers = self.some_range(2000);
                let keys = self.key(numbers.start)..self.key(numbers.end);
                self.timed("delete_range", || db.delete_range(&keys.start[..]..&keys.end[..]))?;
                let gone: Vec<_> = self.model.range(numbers).map(|(number, _)| number).collect();
                gone.into_iter().for_each(|number| self.note(number, None));
                Ok(())
            }
            621..640 => self.scan(db),
            640..641 => self.count(db),
            _ => {
                let (number, key) = self.some_key();
                let found = self.timed("get", || db.get(&key))?;
                let expected = self.model.get(number).map(|version| self.value(version));
                if found.as_deref() == expected.as_deref() {
                    return Ok(());
                }
                Err(format!("get of {key:?} returned {:?} bytes", found.map(|found| found.len())).into())
            }
        }
    }

    fn add(&mut self, db: &Db) -> Result<(), Fault> {
        let (mut key, delta) = (self.prefixes().1, self.random.below(1000) as i64 - 400);
        key.push(self.random.below(COUNTERS) as u8);
        let sum = self.timed("add", || db.add(&key, delta))?;
        let expected = self.counters.entry(key).or_default();
        *expected += delta;
        if sum == *expected { Ok(()) } else { Err(format!("add returned {sum} for {expected}").into()) }
    }

    /// A compare-and-swap; half of them expect absence.
    fn swap(&mut self, db: &Db) -> Result<(), Fault> {
        let ((number, key), (version, new)) = (self.some_key(), self.next_value());
        let there = self.model.get(number).map(|version| self.value(version));
        let expected = there.clone().filter(|_| self.random.below(2) == 0);
        let swap =
            self.timed("compare_and_swap", || db.compare_and_swap(&key, expected.as_deref(), Some(&new)))?;
        let is_right = match &swap {
            Swap::Done => expected == there,
            Swap::Mismatch(found) => expected != there && found.as_deref() == there.as_deref(),
            _ => false,
        };
        if !is_right {
            return Err(format!("compare-and-swap of {key:?} returned {swap:?}").into());
        }
        if swap == Swap::Done {
            self.note(number, Some(version));
        }
        Ok(())
    }

    fn batch(&mut self, db: &Db) -> Result<(), Fault> {
        let (mut batch, mut changes) = (WriteBatch::new(), Vec::new());
        for _ in 0..1 + self.random.below(200) {
            let (number, key) = self.some_key();
            if self.random.below(5) == 0 {
                batch.delete(&key);
                changes.push((number, None));
            } else {
                let (version, value) = self.next_value();
                batch.set(&key, value);
                changes.push((number, Some(version)));
            }
        }
        self.timed("batch", || db.write(&batch))?;
        changes.into_iter().for_each(|(number, version)| self.note(number, version));
        Ok(())
    }

    /// Some pairs from a key on, or before one.
    fn scan(&mut self, db: &Db) -> Result<(), Fault> {
        let (prefix, (number, key)) = (self.prefixes().0, self.some_key());
        let (count, is_back) = (1 + self.random.index(100), self.random.below(2) == 0);
        let mut found = Vec::new();
        let see = |key: &[u8], value: &[u8]| {
            found.push((key.to_vec(), value.to_vec()));
            if found.len() < count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let expected: Vec<_> = if is_back {
            self.timed("scan_back", || db.scan_back(&prefix[..]..&key[..], see))?;
            self.model.range(0..number).rev().take(count).collect()
        } else {
            let end = [prefix[0], prefix[1] + 1];
            self.timed("scan", || db.scan(&key[..]..&end[..], see))?;
            self.model.range(number..KEYS).take(count).collect()
        };
        if expected.into_iter().map(|entry| self.pair(entry)).eq(found) {
            Ok(())
        } else {
            Err("a scan returned other pairs than were written".into())
        }
    }

    fn count(&mut self, db: &Db) -> Result<(), Fault> {
        let numbers = self.some_range(KEYS);
        let keys = self.key(numbers.start)..self.key(numbers.end);
        let found = self.timed("count", || db.count(&keys.start[..]..&keys.end[..]))?;
        let expected = self.model.range(numbers).count() as u64;
        if found == expected { Ok(()) } else { Err(format!("count returned {found} for {expected}").into()) }
    }

    fn compare_all(&self, db: &Db) -> Result<(), Fault> {
        self.compare_pairs(db, &self.model)?;
        let mut expected = self.counters.iter();
        for entry in db.prefix(self.prefixes().1) {
            let entry = entry?;
            let counter = expected.next().map(|(key, sum)| (&key[..], sum.to_be_bytes().to_vec()));
            if counter != Some((entry.key(), entry.value()?.to_vec())) {
                return Err(format!("the counter {:?} is wrong", entry.key()).into());
            }
        }
        if expected.next().is_none() { Ok(()) } else { Err("a counter is not there".into()) }
    }

    /// Compares all pairs of this thread.
    fn compare_pairs(&self, view: &View, model: &Model) -> Result<(), Fault> {
        let prefix = self.prefixes().0;
        let end = [prefix[0], prefix[1] + 1];
        let (mut expected, mut wrong) = (model.range(0..KEYS), None);
        view.scan(&prefix[..]..&end[..], |key, value| {
            let own = expected.next().map(|entry| self.pair(entry));
            let is_right = own.is_some_and(|(own_key, own_value)| own_key == key && own_value == value);
            if !is_right {
                wrong = Some(format!("the pair of {key:?} is wrong, or one before it is not there"));
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
        match (wrong, expected.next()) {
            (None, None) => Ok(()),
            (Some(wrong), _) => Err(wrong.into()),
            (None, Some((number, _))) => {
                Err(format!("the pair of {:?} is not there", self.key(number)).into())
            }
        }
    }
}

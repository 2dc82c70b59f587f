//! The arm of `kvbench remix`: pairs in a number of sorted runs, read through the engine's own partition and through a
//! merging iterator over the same tables.
//!
//! Nothing is timed before it was checked: runs with versions and deletions beside `BTreeMap`, and then the measured
//! runs themselves beside a sorted array, every pair and some thousand places. Every timed answer is summed, and the
//! sum must be that of the array. All pages are in memory: that none was read meanwhile is checked too.

use crate::affinity;
use crate::data::{Permutation, fold_bytes, mix};
use crate::job::{Figures, Job, Locality, Outcome, RemixOrders, RemixStep as Step, Report, Task};
use crate::stores::pairs::{Key, PAIR_BYTES, Pairs, fold, just_below};
use crate::stores::{Answer, Fault};
use crate::usage;
use remixdb::parts::{Order, Partition, Runs, Walk};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

/// Keys of a stretch that is in one run, with strong locality.
pub(crate) const STRETCH: u64 = 64;
/// Steps of a scan.
pub(crate) const STEPS: usize = 50;
/// Scans cost as much as many gets; of probes, so large a part is made of them.
const SCAN_SHARE: u64 = 10;
/// Places that are checked one by one before anything is timed.
const CHECKED: u64 = 5_000;
/// Pairs that are checked from each of these places on.
const CHECKED_STEPS: usize = 5;
/// Cached pages take up to this factor more than the pairs: keys, checksums, slack.
const CACHE_SHARE: u64 = 2;
const CACHE_BYTES_MIN: u64 = 64 << 20;

/// Does a job in this process.
pub(crate) fn dispatch(job: &Job, report: Report<'_>) -> Outcome {
    let Task::Remix(orders) = &job.task else { return Outcome::Left("not a job for runs".to_owned()) };
    run(job, orders, report).map_or_else(|fault| Outcome::Failed(fault.to_string()), Outcome::from)
}

fn run(job: &Job, orders: &RemixOrders, report: Report<'_>) -> Answer<Figures> {
    if job.pin {
        affinity::pin_to_last();
    }
    report("check".to_owned());
    conform(&orders.directory.join("checked"), orders.runs, job.seed)?;
    report("write".to_owned());
    let data = Data::new(job, orders);
    let runs = data.write(&orders.directory.join("runs"), report)?;
    report("check all".to_owned());
    let readers = Readers::new(&runs, orders.runs)?;
    data.sorted.check(&readers, job.seed)?;
    let mut arm = Arm { job, orders, data, runs, readers, figures: Figures::default() };
    arm.note_sizes();
    for round in 0..orders.rounds {
        report(format!("round {}%", round * 100 / orders.rounds));
        arm.round(u64::from(round))?;
    }
    Ok(arm.figures)
}

fn wrong<T>(what: impl Into<String>) -> Answer<T> {
    Err(Fault::from(what.into()))
}

/// The ways in which the same runs are read.
struct Readers {
    runs: Runs,
    /// Of several runs.
    order: Option<Order>,
    /// As the engine reads them: one run by its own index, several through a REMIX, which has tags.
    partition: Partition,
    /// Several runs through a REMIX without tags.
    plain: Option<Partition>,
    plain_bytes: Option<usize>,
}

impl Readers {
    fn new(runs: &Runs, count: usize) -> Answer<Readers> {
        let several = count > 1;
        let order = several.then(|| runs.order(true)).transpose()?;
        let plain = several.then(|| runs.order(false)).transpose()?;
        Ok(Readers {
            runs: runs.clone(),
            partition: runs.partition(order.as_ref())?,
            plain: plain.as_ref().map(|plain| runs.partition(Some(plain))).transpose()?,
            plain_bytes: plain.as_ref().map(Order::memory_bytes),
            order,
        })
    }
}

/// What there is, in order: the oracle.
#[derive(Default)]
struct Sorted {
    keys: Vec<Key>,
    /// Of each value, and from the first pair on up to each, the sum over pairs.
    values: Vec<u64>,
    sums: Vec<u64>,
}

impl Sorted {
    fn push(&mut self, key: Key, value: &[u8]) {
        let before = self.sums.last().copied().unwrap_or(0);
        self.keys.push(key);
        self.values.push(fold_bytes(value));
        self.sums.push(before.wrapping_add(fold(&key, value)));
    }

    /// The sum over the pairs of these ranks.
    fn sum(&self, from: usize, end: usize) -> u64 {
        let upto = |rank: usize| rank.checked_sub(1).map_or(0, |last| self.sums[last]);
        upto(end.min(self.keys.len())).wrapping_sub(upto(from))
    }

    /// Compares all that reads runs with what there is.
    fn check(&self, readers: &Readers, seed: u64) -> Answer<()> {
        self.check_walk(&mut readers.runs.merging(), seed, "merging")?;
        for (partition, name) in
            [(Some(&readers.partition), "partition"), (readers.plain.as_ref(), "without tags")]
        {
            let Some(partition) = partition else { continue };
            self.check_walk(&mut partition.cursor()?, seed, name)?;
            self.check_gets(partition, seed, name)?;
        }
        Ok(())
    }

    /// Some places: keys that are there, just below them, and anywhere.
    fn places(&self, seed: u64) -> impl Iterator<Item = Key> {
        (0..CHECKED).map(move |at| {
            let random = mix(seed ^ mix(at));
            let there = self.keys.get((random % self.keys.len().max(1) as u64) as usize).copied();
            match (at % 3, there) {
                (0, Some(key)) => key,
                (1, Some(key)) => just_below(&key),
                _ => (u128::from(random) << 64 | u128::from(mix(random))).to_be_bytes(),
            }
        })
    }

    fn check_walk(&self, walk: &mut impl Walk, seed: u64, name: &str) -> Answer<()> {
        let mut rank = 0;
        let mut valid = walk.first()?;
        while valid {
            self.check_pair(walk, rank, name)?;
            rank += 1;
            valid = walk.next()?;
        }
        if rank != self.keys.len() {
            return wrong(format!("{name}: {rank} pairs shown for {}", self.keys.len()));
        }
        for key in self.places(seed) {
            let from = self.keys.partition_point(|other| *other < key);
            let mut valid = walk.seek(&key)?;
            for rank in from..from + CHECKED_STEPS {
                if valid != (rank < self.keys.len()) {
                    return wrong(format!("{name}: it ends at pair {rank} of {}", self.keys.len()));
                }
                if !valid {
                    break;
                }
                self.check_pair(walk, rank, name)?;
                valid = walk.next()?;
            }
        }
        Ok(())
    }

    /// Whether a walk is at the pair of this rank.
    fn check_pair(&self, walk: &mut impl Walk, rank: usize, name: &str) -> Answer<()> {
        let expected = self.keys.get(rank).map(|key| (&key[..], self.values[rank]));
        let apart = Some(walk.key()) != expected.map(|pair| pair.0);
        let right = walk.show(|key, value| Some((key, fold_bytes(value))) == expected)?;
        if apart || !right {
            wrong(format!("{name}: another pair than the one of rank {rank}"))
        } else {
            Ok(())
        }
    }

    fn check_gets(&self, partition: &Partition, seed: u64, name: &str) -> Answer<()> {
        for key in self.places(seed ^ 1) {
            let expected = self.keys.binary_search(&key).ok().map(|rank| self.values[rank]);
            if partition.get(&key, fold_bytes)? != expected {
                return wrong(format!("{name}: get shows what is not there, or not what is"));
            }
        }
        Ok(())
    }
}

/// Runs with versions and deletions are read rightly.
fn conform(directory: &Path, count: usize, seed: u64) -> Answer<()> {
    const KEYS: u64 = 4_000;
    let pairs = Pairs::new(seed ^ 0xC0F0);
    let mut runs = Runs::open(directory, CACHE_BYTES_MIN as usize)?;
    let mut all = BTreeMap::new();
    for run in 0..count as u64 {
        let chosen = (0..KEYS).filter(|&number| mix(seed ^ mix(number ^ run << 32)).is_multiple_of(3));
        // A seventh of them is deleted.
        let pair = |number| {
            let random = mix(seed ^ number ^ run << 40);
            (pairs.key(number), (!random.is_multiple_of(7)).then(|| random.to_be_bytes()))
        };
        let pairs: BTreeMap<_, _> = chosen.map(pair).collect();
        runs.add(pairs.iter().map(|(key, value)| (key, value.as_ref())))?;
        all.extend(pairs);
    }
    let mut sorted = Sorted::default();
    all.iter().filter_map(|(key, value)| Some((key, value.as_ref()?))).for_each(|(k, v)| sorted.push(*k, v));
    sorted.check(&Readers::new(&runs, count)?, seed)
}

/// The pairs that are measured, and which run each is in.
struct Data {
    pairs: Pairs,
    /// By rank: the number of the pair, and its run.
    places: Vec<(u64, u16)>,
    sorted: Sorted,
    runs: usize,
}

impl Data {
    fn new(job: &Job, orders: &RemixOrders) -> Data {
        let pairs = Pairs::new(job.seed);
        let mut order: Vec<(Key, u64)> = (0..job.keys).map(|number| (pairs.key(number), number)).collect();
        order.sort_unstable();
        let mut sorted = Sorted::default();
        let mut places = Vec::with_capacity(order.len());
        for (rank, (key, number)) in (0..).zip(order) {
            sorted.push(key, &pairs.value(number));
            let chosen = match orders.locality {
                Locality::Weak => rank,
                Locality::Strong => rank / STRETCH,
            };
            places.push((number, (mix(job.seed ^ mix(chosen)) % orders.runs as u64) as u16));
        }
        Data { pairs, places, sorted, runs: orders.runs }
    }

    fn write(&self, directory: &Path, report: Report<'_>) -> Answer<Runs> {
        let bytes = (self.places.len() as u64 * PAIR_BYTES * CACHE_SHARE).max(CACHE_BYTES_MIN);
        let mut runs = Runs::open(directory, bytes as usize)?;
        for run in 0..self.runs {
            report(format!("write {}%", run * 100 / self.runs));
            let own =
                self.places.iter().zip(&self.sorted.keys).filter(|(place, _)| usize::from(place.1) == run);
            runs.add(own.map(|(place, key)| (key, Some(self.pairs.value(place.0)))))?;
        }
        Ok(runs)
    }
}

/// A step with the kind of its reader: REMIX, REMIX without tags (plain), or merging iterator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    SeekMerging,
    Seek,
    ScanMerging,
    Scan,
    Hit,
    HitPlain,
    Miss,
    MissPlain,
    Build,
    Rebuild,
}

impl Work {
    const ALL: [(Work, Step, &str); 10] = [
        (Work::SeekMerging, Step::Seek, "seek_merging_ns"),
        (Work::Seek, Step::Seek, "seek_ns"),
        (Work::ScanMerging, Step::Scan, "scan_merging_ns"),
        (Work::Scan, Step::Scan, "scan_ns"),
        (Work::Hit, Step::Hit, "hit_ns"),
        (Work::HitPlain, Step::Hit, "hit_plain_ns"),
        (Work::Miss, Step::Miss, "miss_ns"),
        (Work::MissPlain, Step::Miss, "miss_plain_ns"),
        (Work::Build, Step::Build, "build_ns"),
        (Work::Rebuild, Step::Build, "rebuild_ns"),
    ];
}

/// An arm at work.
struct Arm<'a> {
    job: &'a Job,
    orders: &'a RemixOrders,
    data: Data,
    runs: Runs,
    readers: Readers,
    figures: Figures,
}

/// The requests of a round, and the expected results.
struct Asked {
    keys: Vec<Key>,
    sum: u64,
}

impl Arm<'_> {
    /// Bytes of memory for a key: of the REMIX, or where there is none of the index of the one table; and of all.
    fn note_sizes(&mut self) {
        let each = |bytes: usize| bytes as f64 / self.data.places.len().max(1) as f64;
        let all = self.readers.partition.memory_bytes();
        let own = self.readers.order.as_ref().map_or(all, Order::memory_bytes);
        let (all, own, plain) = (each(all), each(own), self.readers.plain_bytes.map(each));
        self.figures.set("order_bytes_per_key", own);
        self.figures.set("memory_bytes_per_key", all);
        plain.into_iter().for_each(|plain| self.figures.set("order_plain_bytes_per_key", plain));
    }

    /// Measures everything once, in an order that is this round's.
    fn round(&mut self, round: u64) -> Answer<()> {
        let probes = self.job.probes.min(self.job.keys);
        let singles = self.present(round, probes, |sorted, rank| sorted.values[rank]);
        let seeks = self.present(round, probes, |sorted, rank| fold_bytes(&sorted.keys[rank]));
        let scans =
            self.present(round, (probes / SCAN_SHARE).max(1), |sorted, rank| sorted.sum(rank, rank + STEPS));
        let absent = |at| self.data.pairs.absent(round << 32 | at);
        let misses = Asked { keys: (0..probes).map(absent).collect(), sum: 0 };
        let order = Permutation::new(Work::ALL.len() as u64, mix(self.job.seed ^ round ^ 0x0D_E2));
        for at in 0..Work::ALL.len() as u64 {
            let (work, step, name) = Work::ALL[order.apply(at) as usize];
            if !self.orders.steps.contains(&step) {
                continue;
            }
            let asked = match step {
                Step::Seek => &seeks,
                Step::Scan => &scans,
                Step::Hit | Step::Build => &singles,
                Step::Miss => &misses,
            };
            let missed = self.runs.pages_missed();
            let Some(ns) = self.time(work, asked)? else { continue };
            if self.runs.pages_missed() != missed {
                return wrong(format!("{name}: pages were read; not all are in memory"));
            }
            self.figures.rounds.entry(name.to_owned()).or_default().push(ns);
        }
        Ok(())
    }

    /// Keys that are there, each at most once, and the sum of what each has.
    fn present(&self, round: u64, count: u64, of: impl Fn(&Sorted, usize) -> u64) -> Asked {
        let sorted = &self.data.sorted;
        let order = Permutation::new(sorted.keys.len() as u64, mix(self.job.seed ^ mix(round)));
        let ranks = (0..count).map(|at| order.apply(at) as usize);
        let (mut keys, mut sum) = (Vec::with_capacity(count as usize), 0u64);
        for rank in ranks {
            keys.push(sorted.keys[rank]);
            sum = sum.wrapping_add(of(sorted, rank));
        }
        Asked { keys, sum }
    }

    /// CPU nanoseconds for an operation; `None` if no reader can do it.
    fn time(&self, work: Work, asked: &Asked) -> Answer<Option<f64>> {
        let (keys, readers) = (&asked.keys[..], &self.readers);
        let plain = readers.plain.as_ref();
        let sums = |sum: u64| if sum == asked.sum { Ok(()) } else { wrong("a timed answer was wrong") };
        let (ops, cpu) = match (work, plain) {
            (Work::SeekMerging, _) => {
                let mut walk = self.runs.merging();
                timed(keys.len(), || seek(&mut walk, keys), sums)?
            }
            (Work::Seek, _) => {
                let mut walk = readers.partition.cursor()?;
                timed(keys.len(), || seek(&mut walk, keys), sums)?
            }
            (Work::ScanMerging, _) => {
                let mut walk = self.runs.merging();
                timed(keys.len(), || scan(&mut walk, keys), sums)?
            }
            (Work::Scan, _) => {
                let mut walk = readers.partition.cursor()?;
                timed(keys.len(), || scan(&mut walk, keys), sums)?
            }
            (Work::Hit | Work::Miss, _) => timed(keys.len(), || get(&readers.partition, keys), sums)?,
            (Work::HitPlain | Work::MissPlain, Some(plain)) => timed(keys.len(), || get(plain, keys), sums)?,
            (Work::Build, Some(_)) => {
                timed(self.data.places.len(), || Ok(self.runs.order(true)?), |order| self.same(&order))?
            }
            (Work::Rebuild, Some(_)) if self.orders.runs > 2 => {
                let old = self.runs.oldest(self.orders.runs - 1).order(true)?;
                let rebuild = || Ok(self.runs.order_from(&old, true)?);
                timed(self.data.places.len(), rebuild, |order| self.check_order(&order))?
            }
            _ => return Ok(None),
        };
        Ok(Some(cpu.as_nanos() as f64 / ops.max(1) as f64))
    }

    /// Whether a REMIX is as large as the one that was checked.
    fn same(&self, order: &Order) -> Answer<()> {
        let expected = self.readers.order.as_ref().map(Order::memory_bytes);
        if Some(order.memory_bytes()) == expected {
            Ok(())
        } else {
            wrong("the same runs gave another REMIX")
        }
    }

    /// Whether a REMIX that was made from an older one shows what there is.
    fn check_order(&self, order: &Order) -> Answer<()> {
        let mut cursor = self.runs.partition(Some(order))?.cursor()?;
        self.data.sorted.check_walk(&mut cursor, self.job.seed, "rebuilt")
    }
}

/// Times `run`, which does `ops` operations, and then passes the result to `check` with the clock stopped.
fn timed<R>(
    ops: usize,
    run: impl FnOnce() -> Answer<R>,
    check: impl FnOnce(R) -> Answer<()>,
) -> Answer<(usize, Duration)> {
    let start = usage::thread_cpu();
    let result = black_box(run()?);
    let cpu = usage::thread_cpu() - start;
    check(result)?;
    Ok((ops, cpu))
}

#[inline(never)]
fn seek(walk: &mut impl Walk, keys: &[Key]) -> Answer<u64> {
    let mut sum = 0u64;
    for key in keys {
        if walk.seek(key)? {
            sum = sum.wrapping_add(fold_bytes(walk.key()));
        }
    }
    Ok(sum)
}

#[inline(never)]
fn scan(walk: &mut impl Walk, keys: &[Key]) -> Answer<u64> {
    let mut sum = 0u64;
    for key in keys {
        let mut valid = walk.seek(key)?;
        for _ in 0..STEPS {
            if !valid {
                break;
            }
            sum = sum.wrapping_add(walk.show(fold)?);
            valid = walk.next()?;
        }
    }
    Ok(sum)
}

#[inline(never)]
fn get(partition: &Partition, keys: &[Key]) -> Answer<u64> {
    let mut sum = 0u64;
    for key in keys {
        sum = sum.wrapping_add(partition.get(key, fold_bytes)?.unwrap_or(0));
    }
    Ok(sum)
}

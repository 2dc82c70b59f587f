//! The mixes of `kvbench pressure`: threads do operations of several sorts on a store that was loaded, as fast as they
//! can or at a fixed rate.
//!
//! At a rate, an operation is timed from when it was due. One that was due and could not begin before the end, because
//! others took too long, is timed up to the end (Tene: "How not to measure latency", 2013). It counts among the times
//! and not among what was done.

use super::super::lap;
use super::super::pairs::{Key, Pairs, VALUE_BYTES};
use super::super::store::{Answer, Reader, Store};
use super::Arm;
use crate::data::{Choice, Random, mix};
use crate::job::PressureOrders;
use crate::latency;
use crate::workload::{Mix, Op};
use hdrhistogram::Histogram;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// Seconds, more than any run takes: operations due later are due then.
const LONGEST_WAIT: f64 = 1e6;
/// A thread that waits for an operation to be due spins at the end, since sleeping is not that exact.
const SPIN: Duration = Duration::from_micros(100);
/// Of operations that did not begin, a thread notes at most about this many times, each for several that follow one
/// another.
const NOT_BEGUN_TIMES: u64 = 1 << 20;

impl Arm<'_> {
    /// Threads do a mix of operations on a store that was loaded.
    pub(super) fn mixed<S: Store>(&mut self, mix: &Mix) -> Answer<()> {
        let store = self.open::<S>()?;
        self.load(&store, 0..self.keys())?;
        lap::settle(&store)?;
        (self.report)("mix".to_owned());
        self.mixed_on(&store, mix)
    }

    fn mixed_on<S: Store>(&mut self, store: &S, mix: &Mix) -> Answer<()> {
        let PressureOrders { threads, rate, warm_up_millis, scenario, .. } = *self.orders;
        let (start, keys) = (Instant::now(), self.keys());
        let timed = start + Duration::from_millis(warm_up_millis);
        let mixed = Mixed {
            store,
            pairs: &self.pairs,
            mix,
            choice: Choice::new(mix.distribution, keys, self.job.seed),
            loaded: keys,
            next: AtomicU64::new(keys),
            start,
            timed,
            end: timed + self.time(),
        };
        let (mut done, writer) = mixed.all(threads.into(), rate, scenario.has_a_writer())?;
        let elapsed = timed.elapsed().as_secs_f64();
        let end = mixed.next.into_inner();
        let throughput = done.ops() as f64 / elapsed;
        if rate.is_some() {
            self.figures.set("mix_not_begun_ops", done.not_begun as f64);
        }
        match writer {
            None => self.figures.set("mix_ops_per_s", throughput),
            // As in db_bench, what the writer does is no part of the throughput. Records in which it is part have it
            // as "mix_ops_per_s".
            Some(writer) => {
                self.figures.set("mix_read_ops_per_s", throughput);
                self.figures.set("mix_write_ops_per_s", writer.ops() as f64 / elapsed);
                done.add(&writer)?;
            }
        }
        for (sort, each) in Op::SORTS.iter().zip(&done.times).filter(|(_, each)| !each.is_empty()) {
            self.note(&format!("mix_{sort}"), each);
        }
        self.check(store, end)?;
        self.check_count(store, end)
    }
}

/// What threads of a mix did.
struct Done {
    /// The time of each operation, by [`Op::sort`].
    times: [Histogram<u64>; Op::SORTS.len()],
    /// Operations that are among the times and did not begin.
    not_begun: u64,
}

impl Done {
    fn new() -> Self {
        Done { times: std::array::from_fn(|_| latency::histogram()), not_begun: 0 }
    }

    fn add(&mut self, other: &Done) -> Answer<()> {
        for (own, other) in self.times.iter_mut().zip(&other.times) {
            own.add(other)?;
        }
        self.not_begun += other.not_begun;
        Ok(())
    }

    /// Operations that were done.
    fn ops(&self) -> u64 {
        self.times.iter().map(Histogram::len).sum::<u64>() - self.not_begun
    }
}

/// A mix at work: what its threads share.
struct Mixed<'a, S> {
    store: &'a S,
    pairs: &'a Pairs,
    mix: &'a Mix,
    choice: Choice,
    /// Pairs that were loaded.
    loaded: u64,
    /// The number of the next new pair.
    next: AtomicU64,
    start: Instant,
    /// From then on operations are timed.
    timed: Instant,
    end: Instant,
}

/// Returns at that time, or at once after it.
fn wait_until(due: Instant) {
    while let Some(early) = due.checked_duration_since(Instant::now()).filter(|early| !early.is_zero()) {
        if early > SPIN { thread::sleep(early - SPIN) } else { std::hint::spin_loop() }
    }
}

impl<S: Store> Mixed<'_, S> {
    /// What `threads` threads do until the end, and what one more does that writes, if there is one.
    fn all(&self, threads: u64, rate: Option<u64>, has_a_writer: bool) -> Answer<(Done, Option<Done>)> {
        thread::scope(|scope| {
            let workers: Vec<_> =
                (0..threads).map(|thread| scope.spawn(move || self.work(thread, threads, rate))).collect();
            let writer = has_a_writer.then(|| scope.spawn(|| self.overwrite()));
            let joined = |worker: ScopedJoinHandle<'_, Answer<Done>>| -> Answer<Done> {
                worker.join().map_err(|_| "a thread of the mix panicked")?
            };
            let mut done = Done::new();
            for worker in workers {
                done.add(&joined(worker)?)?;
            }
            Ok((done, writer.map(joined).transpose()?))
        })
    }

    /// Does the operations of one of `threads` threads until the end, at its part of the rate if there is one.
    fn work(&self, thread: u64, threads: u64, rate: Option<u64>) -> Answer<Done> {
        let (mut done, mut random) = (Done::new(), Random::new(mix(thread ^ 3)));
        let due = |at: u64, rate: u64| {
            let after = (at * threads + thread) as f64 / rate as f64;
            self.end.min(self.start + Duration::from_secs_f64(after.min(LONGEST_WAIT)))
        };
        for at in 0u64.. {
            let from = match rate {
                None => Instant::now(),
                Some(rate) => {
                    let due = due(at, rate);
                    wait_until(due);
                    due
                }
            };
            if from.max(Instant::now()) >= self.end {
                if let Some(rate) = rate {
                    self.note_not_begun(&mut done, &mut random, at, |at| due(at, rate));
                }
                break;
            }
            let (op, is_new) = self.mix.op(random.below(100), &mut random);
            self.run(op, is_new, &mut random)?;
            self.note(&mut done, op, from);
        }
        Ok(done)
    }

    /// Notes the operations from number `first` on that were due and did not begin.
    fn note_not_begun(&self, done: &mut Done, random: &mut Random, first: u64, due: impl Fn(u64) -> Instant) {
        // Of ascending times those before the end, which are as many as a search by halves says.
        let is_due = |at: u64| due(at) < self.end;
        let (mut least, mut most) = (first, first + 1);
        while is_due(most) {
            least = most;
            most += most - first;
        }
        while least < most {
            let half = least + (most - least) / 2;
            if is_due(half) { least = half + 1 } else { most = half }
        }
        let group = ((least - first) / NOT_BEGUN_TIMES).max(1);
        for at in (first..least).step_by(group as usize) {
            let (op, _) = self.mix.op(random.below(100), random);
            let (due, many) = (due(at), group.min(least - at));
            if due >= self.timed {
                let waited = (self.end - due).as_nanos() as u64;
                done.times[op.sort()].saturating_record_n(waited, many);
                done.not_begun += many;
            }
        }
    }

    /// Overwrites pairs without pause until the end.
    fn overwrite(&self) -> Answer<Done> {
        let (mut done, mut random) = (Done::new(), Random::new(mix(5)));
        while Instant::now() < self.end {
            let from = Instant::now();
            self.run(Op::Put, false, &mut random)?;
            self.note(&mut done, Op::Put, from);
        }
        Ok(done)
    }

    fn note(&self, done: &mut Done, op: Op, from: Instant) {
        if from >= self.timed {
            done.times[op.sort()].saturating_record(from.elapsed().as_nanos() as u64);
        }
    }

    fn run(&self, op: Op, is_new: bool, random: &mut Random) -> Answer<()> {
        let (at, there) = (random.next(), self.next.load(Relaxed));
        let number = self.choice.pick_of(at, there);
        match op {
            Op::Get => self.read(number),
            Op::Put if is_new => self.put(self.next.fetch_add(1, Relaxed)),
            Op::Put => self.put(number),
            Op::Scan(pairs) => self.scan(number, usize::from(pairs)),
            Op::Modify => {
                self.read(number)?;
                self.put(number)
            }
        }
    }

    fn put(&self, number: u64) -> Answer<()> {
        let (key, value) = self.pairs.pair(number);
        self.store.put(&key, &value)
    }

    /// A new pair may not be there yet: another thread has taken its number and is about to put it.
    fn read(&self, number: u64) -> Answer<()> {
        let (key, value) = self.pairs.pair(number);
        let mut right = true;
        let found = self.store.reader()?.get(&key, |found| right = found == value)?;
        if right && (found || number >= self.loaded) {
            return Ok(());
        }
        Err("a read of the mix found another value, or not the pair".into())
    }

    fn scan(&self, number: u64, pairs: usize) -> Answer<()> {
        let key = self.pairs.key(number);
        let (mut last, mut right) = (None, true);
        self.store.reader()?.scan(&key, pairs, |found, value| {
            let found = Key::try_from(found).ok();
            right &= found.is_some() && found > last && value.len() == VALUE_BYTES;
            last = found;
        })?;
        if right { Ok(()) } else { Err("a scan of the mix was out of order, or had other pairs".into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::store::{Settings, Way};
    use super::*;
    use crate::job::{Durability, Figures, Job, Part, Scenario, Task};
    use std::collections::BTreeMap;
    use std::path::PathBuf;
    use std::sync::{PoisonError, RwLock};

    const KEYS: u64 = 100;

    /// An ordered map that does something before each get.
    struct Map<F> {
        pairs: RwLock<BTreeMap<Vec<u8>, Vec<u8>>>,
        before_get: F,
    }

    impl<F: Fn() + Sync> Store for Map<F> {
        const OFFERS: &'static [Durability] = &[Durability::Memory];
        type Reader<'s>
            = &'s Self
        where
            F: 's;

        fn open(_: &Settings<'_>) -> Answer<Self> {
            Err("it is made by the test".into())
        }

        fn put(&self, key: &[u8], value: &[u8]) -> Answer<()> {
            let mut pairs = self.pairs.write().unwrap_or_else(PoisonError::into_inner);
            pairs.insert(key.to_vec(), value.to_vec());
            Ok(())
        }

        fn put_batch<'p>(&self, mut pairs: impl Iterator<Item = (&'p [u8], &'p [u8])>) -> Answer<()> {
            pairs.try_for_each(|(key, value)| self.put(key, value))
        }

        fn put_synced(&self, key: &[u8], value: &[u8]) -> Answer<()> {
            self.put(key, value)
        }

        fn reader(&self) -> Answer<&Self> {
            Ok(self)
        }

        fn scan_all(&self, _: Way, mut see: impl FnMut(&[u8], &[u8])) -> Answer<()> {
            let pairs = self.pairs.read().unwrap_or_else(PoisonError::into_inner);
            pairs.iter().for_each(|(key, value)| see(key, value));
            Ok(())
        }

        fn compact(&mut self) -> Answer<bool> {
            Ok(false)
        }
    }

    impl<F: Fn() + Sync> Reader for &Map<F> {
        fn get(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Answer<bool> {
            (self.before_get)();
            let pairs = self.pairs.read().unwrap_or_else(PoisonError::into_inner);
            Ok(pairs.get(key).map(|value| see(value)).is_some())
        }

        fn seek(&mut self, _: &[u8], _: impl FnOnce(&[u8], &[u8])) -> Answer<()> {
            Err("no mix seeks".into())
        }

        fn scan(&mut self, _: &[u8], _: usize, _: impl FnMut(&[u8], &[u8])) -> Answer<()> {
            Err("this mix does not scan".into())
        }
    }

    /// The figures of readwhilewriting for `millis` on a map that does this before each get.
    fn read_while_writing(millis: u64, rate: Option<u64>, before_get: impl Fn() + Sync) -> Figures {
        let orders = PressureOrders {
            directory: PathBuf::new(),
            scenario: Scenario::ReadWhileWriting,
            part: Part::Whole,
            memtable_bytes: 0,
            cache_bytes: 0,
            millis,
            rounds: 0,
            threads: 2,
            rate,
            warm_up_millis: 0,
        };
        let job = Job::of(Task::Pressure(orders.clone()), "map", KEYS);
        let mut report = |_| ();
        let mut arm = Arm {
            job: &job,
            orders: &orders,
            pairs: Pairs::new(job.seed),
            figures: Figures::default(),
            report: &mut report,
        };
        let store = Map { pairs: RwLock::default(), before_get };
        arm.load(&store, 0..KEYS).unwrap();
        arm.mixed_on(&store, &orders.scenario.mix().unwrap()).unwrap();
        arm.figures
    }

    #[test]
    fn the_writer_beside_the_readers_is_no_throughput() {
        let figures = read_while_writing(100, None, || wait_until(Instant::now() + Duration::from_millis(1)));
        let figure = |name: &str| figures.values[name];
        // Two threads, and no get takes less than a millisecond.
        assert!(figure("mix_read_ops_per_s") <= 2000.0, "{figures:?}");
        assert!(figure("mix_write_ops_per_s") > 2000.0 && figure("mix_write_p50_ns") < 1e6, "{figures:?}");
        assert!(
            !figures.values.contains_key("mix_not_begun_ops")
                && !figures.values.contains_key("mix_ops_per_s")
        );
    }

    #[test]
    fn what_was_due_and_did_not_begin_has_waited() {
        const RATE: u64 = 1000;
        let (time, start) = (Duration::from_millis(300), Instant::now());
        // For the last third, and longer.
        let (blocks, again) = (start + time * 2 / 3, start + time * 2);
        let block = || {
            if Instant::now() >= blocks {
                wait_until(again);
            }
        };
        let store = Map { pairs: RwLock::default(), before_get: block };
        let pairs = Pairs::new(0);
        for number in 0..KEYS {
            let (key, value) = pairs.pair(number);
            store.put(&key, &value).unwrap();
        }
        let mix = Scenario::ReadWhileWriting.mix().unwrap();
        let mixed = Mixed {
            store: &store,
            pairs: &pairs,
            mix: &mix,
            choice: Choice::new(mix.distribution, KEYS, 0),
            loaded: KEYS,
            next: AtomicU64::new(KEYS),
            start,
            timed: start,
            end: start + time,
        };
        let (done, _) = mixed.all(2, Some(RATE), false).unwrap();
        let reads = &done.times[Op::Get.sort()];
        assert_eq!(reads.len(), RATE * time.as_millis() as u64 / 1000);
        // Each thread did one operation of the last third, and no more.
        assert!(done.not_begun >= 90 && done.ops() == reads.len() - done.not_begun, "{}", done.not_begun);
        // Of the third that waited up to 100 ms, half waited for more than 50.
        assert!(reads.value_at_quantile(5.0 / 6.0 + 0.01) > 45_000_000, "{reads:?}");
    }

    #[test]
    fn many_that_did_not_begin_are_noted_together() {
        const RATE: u64 = 1_000_000_000;
        let figures =
            read_while_writing(20, Some(RATE), || wait_until(Instant::now() + Duration::from_millis(25)));
        let figure = |name: &str| figures.values[name];
        let all = RATE as f64 * 0.02;
        assert!((all - 2.0..=all).contains(&figure("mix_not_begun_ops")), "{figures:?}");
        assert!((9e6..11e6).contains(&figure("mix_read_p50_ns")), "{figures:?}");
        assert!(figure("mix_read_ops_per_s") <= 2.0 / 0.025, "{figures:?}");
    }
}

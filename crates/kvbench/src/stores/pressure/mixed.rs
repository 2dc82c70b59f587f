//! The mixes of `kvbench pressure`: threads do operations of several sorts on a store that was loaded, as fast as they
//! can or at a fixed rate. They are timed from when the store is warm ([`steady`]).
//!
//! At a rate, an operation is timed from when it was due. One that was due and could not begin before the end, because
//! others took too long, is timed up to the end (Tene: "How not to measure latency", 2013). It counts among the times
//! and not among what was done.

use super::super::lap;
use super::super::pairs::{Key, Pairs, VALUE_BYTES};
use super::super::steady::{self, Warmed};
use super::super::store::{Answer, Reader, Store};
use super::Arm;
use crate::data::{Choice, Random, mix};
use crate::job::{Figures, PressureOrders};
use crate::latency;
use crate::workload::{Mix, Op};
use hdrhistogram::Histogram;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// Seconds, more than any run takes: operations due later are due then.
const LONGEST_WAIT: f64 = 1e6;
/// A thread that waits for an operation to be due spins at the end, since sleeping is not that exact.
const SPIN: Duration = Duration::from_micros(100);
/// A thread that waits looks this often whether the mix has ended.
const LOOK: Duration = Duration::from_millis(100);
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
        let (keys, bound) = (self.keys(), Duration::from_millis(warm_up_millis));
        let mixed = Mixed {
            store,
            pairs: &self.pairs,
            mix,
            choice: Choice::new(mix.distribution, keys, self.job.seed),
            loaded: keys,
            next: AtomicU64::new(keys),
            timing: Timing::new(self.time(), bound.is_zero()),
        };
        let (mut done, writer) =
            mixed.all(threads.into(), rate, scenario.has_a_writer(), bound, &mut self.figures)?;
        let elapsed = mixed.timing.timed().elapsed().as_secs_f64();
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
    timing: Timing,
}

/// When a mix begins and ends. Operations are timed from when the store is warm, which its threads learn when it is.
struct Timing {
    start: Instant,
    timed: OnceLock<Instant>,
    time: Duration,
}

impl Timing {
    fn new(time: Duration, is_warm: bool) -> Timing {
        let start = Instant::now();
        Timing { start, timed: if is_warm { start.into() } else { OnceLock::new() }, time }
    }

    /// From when on operations are timed; it begins now if it has not.
    fn timed(&self) -> Instant {
        *self.timed.get_or_init(Instant::now)
    }

    fn is_timed(&self, from: Instant) -> bool {
        self.timed.get().is_some_and(|timed| from >= *timed)
    }

    /// The end, if it is known.
    fn end(&self) -> Option<Instant> {
        self.timed.get().map(|timed| *timed + self.time)
    }

    fn is_over(&self, now: Instant) -> bool {
        self.end().is_some_and(|end| now >= end)
    }

    /// Returns at that time, or at once after it, or after the end.
    fn wait_until(&self, due: Instant) {
        loop {
            let now = Instant::now();
            match due.checked_duration_since(now) {
                Some(early) if !early.is_zero() && !self.is_over(now) => match early.checked_sub(SPIN) {
                    Some(early) => thread::sleep(early.min(LOOK)),
                    None => std::hint::spin_loop(),
                },
                _ => return,
            }
        }
    }
}

/// How many operations a thread has done, on a line of the cache of its own.
#[derive(Default)]
#[repr(align(128))]
struct Progress(AtomicU64);

impl<S: Store> Mixed<'_, S> {
    /// What `threads` threads do from when the store is warm, after `bound` at the latest, until the end; and what one
    /// more does that writes, if there is one.
    fn all(
        &self,
        threads: u64,
        rate: Option<u64>,
        has_a_writer: bool,
        bound: Duration,
        figures: &mut Figures,
    ) -> Answer<(Done, Option<Done>)> {
        let progress: Vec<_> = (0..threads).map(|_| Progress::default()).collect();
        thread::scope(|scope| {
            let work = |(thread, progress)| scope.spawn(move || self.work(thread, threads, rate, progress));
            let workers: Vec<_> = (0..).zip(&progress).map(work).collect();
            let writer = has_a_writer.then(|| scope.spawn(|| self.overwrite()));
            let warmed = (!bound.is_zero()).then(|| self.warm_up(&progress, rate, bound)).transpose();
            // In any case, so that the threads end.
            self.timing.timed();
            if let Some(warmed) = warmed? {
                warmed.note("mix", figures);
            }
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

    /// Looks at what the threads have done until their rate is steady. A fixed one always is, so then it waits for
    /// `bound`.
    fn warm_up(&self, progress: &[Progress], rate: Option<u64>, bound: Duration) -> Answer<Warmed> {
        if rate.is_some() {
            thread::sleep(bound);
            return Ok(Warmed { took: self.timing.start.elapsed(), change: None });
        }
        let done = || progress.iter().map(|thread| thread.0.load(Relaxed)).sum::<u64>();
        let mut before = 0;
        let window = || {
            thread::sleep(bound / steady::WINDOWS);
            let now = done();
            Ok(now - std::mem::replace(&mut before, now))
        };
        steady::warm_up(bound, || self.timing.start.elapsed(), window)
    }

    /// Does the operations of one of `threads` threads until the end, at its part of the rate if there is one.
    fn work(&self, thread: u64, threads: u64, rate: Option<u64>, progress: &Progress) -> Answer<Done> {
        let (mut done, mut random) = (Done::new(), Random::new(mix(thread ^ 3)));
        let due = |at: u64, rate: u64| {
            let after = (at * threads + thread) as f64 / rate as f64;
            self.timing.start + Duration::from_secs_f64(after.min(LONGEST_WAIT))
        };
        for at in 0u64.. {
            let from = match rate {
                None => Instant::now(),
                Some(rate) => {
                    let due = due(at, rate);
                    self.timing.wait_until(due);
                    due
                }
            };
            if let Some(end) = self.timing.end().filter(|end| from.max(Instant::now()) >= *end) {
                if let Some(rate) = rate {
                    self.note_not_begun(&mut done, &mut random, end, at, |at| due(at, rate));
                }
                break;
            }
            let (op, is_new) = self.mix.op(random.below(100), &mut random);
            self.run(op, is_new, &mut random)?;
            self.note(&mut done, op, from);
            progress.0.store(at + 1, Relaxed);
        }
        Ok(done)
    }

    /// Notes the operations from number `first` on that were due before the end and did not begin.
    fn note_not_begun(
        &self,
        done: &mut Done,
        random: &mut Random,
        end: Instant,
        first: u64,
        due: impl Fn(u64) -> Instant,
    ) {
        // Of ascending times those before the end, which are as many as a search by halves says.
        let is_due = |at: u64| due(at) < end;
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
            if self.timing.is_timed(due) {
                let waited = (end - due).as_nanos() as u64;
                done.times[op.sort()].saturating_record_n(waited, many);
                done.not_begun += many;
            }
        }
    }

    /// Overwrites pairs without pause until the end.
    fn overwrite(&self) -> Answer<Done> {
        let (mut done, mut random) = (Done::new(), Random::new(mix(5)));
        loop {
            let from = Instant::now();
            if self.timing.is_over(from) {
                return Ok(done);
            }
            self.run(Op::Put, false, &mut random)?;
            self.note(&mut done, Op::Put, from);
        }
    }

    fn note(&self, done: &mut Done, op: Op, from: Instant) {
        if self.timing.is_timed(from) {
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
    use super::super::super::testing::{HONEST, Map};
    use super::*;
    use crate::job::{Job, Part, Scenario, Task};
    use std::path::PathBuf;

    const KEYS: u64 = 100;

    fn sleep_until(due: Instant) {
        Timing::new(Duration::ZERO, false).wait_until(due);
    }

    /// The figures of readwhilewriting for `millis`, after a warm-up, on a map that does this before each get.
    fn read_while_writing(
        warm_up_millis: u64,
        millis: u64,
        rate: Option<u64>,
        before_get: impl Fn() + Send + Sync + 'static,
    ) -> Figures {
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
            warm_up_millis,
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
        let store = Map::<HONEST>::new(before_get);
        arm.load(&store, 0..KEYS).unwrap();
        arm.mixed_on(&store, &orders.scenario.mix().unwrap()).unwrap();
        arm.figures
    }

    #[test]
    fn the_writer_beside_the_readers_is_no_throughput() {
        let figures =
            read_while_writing(0, 100, None, || sleep_until(Instant::now() + Duration::from_millis(1)));
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
    fn what_begins_before_the_store_is_warm_is_not_timed() {
        let timing = Timing::new(Duration::from_secs(1), false);
        let before = Instant::now();
        assert!(!timing.is_timed(before) && !timing.is_over(before + Duration::from_secs(9)));
        let timed = timing.timed();
        assert!(timed >= before && timing.timed() == timed && timing.is_timed(timed));
        assert!(!timing.is_timed(timing.start) || timing.start == timed);
        assert_eq!(timing.end(), Some(timed + Duration::from_secs(1)));
        let warm = Timing::new(Duration::ZERO, true);
        assert!(warm.is_timed(warm.start) && warm.is_over(warm.start));
    }

    #[test]
    fn at_a_fixed_rate_the_warm_up_has_its_whole_time() {
        let figures = read_while_writing(360, 20, Some(2000), || ());
        assert!(figures.values["mix_warm_up_s"] >= 0.36, "{figures:?}");
        assert!(!figures.values.contains_key("mix_warm_up_change_percent"), "{figures:?}");
    }

    #[test]
    fn what_was_due_and_did_not_begin_has_waited() {
        const RATE: u64 = 1000;
        let (time, start) = (Duration::from_millis(300), Instant::now());
        // For the last third, and longer.
        let (blocks, again) = (start + time * 2 / 3, start + time * 2);
        let block = move || {
            if Instant::now() >= blocks {
                sleep_until(again);
            }
        };
        let store = Map::<HONEST>::new(block);
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
            timing: Timing { start, timed: start.into(), time },
        };
        let (done, _) = mixed.all(2, Some(RATE), false, Duration::ZERO, &mut Figures::default()).unwrap();
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
            read_while_writing(0, 20, Some(RATE), || sleep_until(Instant::now() + Duration::from_millis(25)));
        let figure = |name: &str| figures.values[name];
        let all = RATE as f64 * 0.02;
        assert!((all - 2.0..=all).contains(&figure("mix_not_begun_ops")), "{figures:?}");
        assert!((9e6..11e6).contains(&figure("mix_read_p50_ns")), "{figures:?}");
        assert!(figure("mix_read_ops_per_s") <= 2.0 / 0.025, "{figures:?}");
    }
}

//! An arm: one subject with one kind and number of pairs, measured in a process of its own, so that its heap
//! is fresh and nothing of the subject before it is left. The run's own process starts it, hands it the
//! [`Job`] and the paths, and reads messages from it.

use crate::alloc::Allocator;
use crate::counters::Counts;
use crate::data::{self, Block, Choice, Kind, Permutation, Source, U64, Walk, mix};
use crate::job::{Done, Figures, Job, Outcome, Report, Step, TURN, Task, room, wrong};
use crate::latency::{self, Stopwatch};
use crate::machine::Occupied;
use crate::measure::{self, Facts, Measured, Timed};
use crate::spoken::{PREFIX, Spoken};
use crate::statistics::median;
use crate::subjects::Subject;
use crate::threads::{self, Rounds};
use crate::workload::{Mix, Model};
use crate::{affinity, alloc, conform, counters, llds, machine, subjects, turns};
use std::collections::BTreeMap;

/// Pairs of a scan.
pub(crate) const SCAN_PAIRS: usize = 50;
/// The sums of which no right value is known beforehand. They depend on the pairs alone, so all ordered subjects must
/// show the same.
pub(crate) const SHARED_SUMS: [&str; 4] = ["scan", "iterate", "iterate_back", "ycsb_e"];
/// Pairs made at a time before the clock of an insertion runs.
const INSERT_BLOCK: u64 = 1 << 17;
/// Of this many pairs or more some are erased.
const ERASED_MIN: u64 = 100;
/// Longest time of a loop whose operations are due at a rate.
const OPEN_S_MAX: u64 = 10;

/// Of the operations of a thread in a round, one of this many is done before, to warm the thread.
const WARM: u64 = 16;
/// The figure that has the greatest share that others had of the time of a step of several threads.
pub(crate) const THREADS_DISTURBED: &str = "threads_disturbed_percent";

/// Does a job on a subject, in this process.
pub(crate) fn run<K: Kind, S: Subject<K>>(job: &Job, walk: Walk, report: Report<'_>) -> Outcome {
    // What the process may use is asked before it is pinned.
    affinity::cpus();
    match S::build(job.pages) {
        Ok(mut subject) => {
            let done = run_on::<K>(job, &mut subject, walk, report);
            // Taking a large structure apart takes long and is not measured; the process is about to end.
            std::mem::forget(subject);
            done.map_or_else(|end| end, Outcome::from)
        }
        Err(why) => Outcome::Left(why),
    }
}

/// Does a job on a program that is spoken to by lines. Its events are those of another process, and not counted.
pub(crate) fn run_spoken(job: &Job, walk: Walk, report: Report<'_>) -> Outcome {
    if job.simulation.is_some() {
        return Outcome::Left("a program is a process of its own, which is not simulated".to_owned());
    }
    let job = &Job { events: Vec::new(), ..job.clone() };
    affinity::cpus();
    // Before this process is pinned, so that the program is not.
    match Spoken::start(job.subject.strip_prefix(PREFIX).unwrap_or(&job.subject)) {
        Ok(mut subject) => {
            let done = run_on::<U64>(job, &mut subject, walk, report);
            // A protocol error explains wrong results, so it is reported first.
            match subject.end() {
                Some(fault) => Outcome::Failed(fault),
                None => done.map_or_else(|end| end, Outcome::from),
            }
        }
        Err(why) => Outcome::Failed(why),
    }
}

fn run_on<K: Kind>(
    job: &Job,
    subject: &mut dyn Measured<K>,
    walk: Walk,
    report: Report<'_>,
) -> Done<Figures> {
    // Only now, so that threads which the subject may have started are not held on this CPU.
    if job.pin {
        affinity::pin_to_last();
    }
    measure::slow_down(job.slowdown);
    counters::code::set_codes(&job.raw);
    let set_up = counters::set_up(&job.events, job.simulation.as_deref());
    let source = K::source(job.keys, job.seed, walk);
    let facts = subject.facts();
    let counted = (!job.events.is_empty()).then(|| Box::new(set_up.counted.clone()));
    let figures = Figures { notes: set_up.lines(), counted, ..Figures::default() };
    let arm =
        Arm { job, source, subject, facts, figures, total: Timed::default(), counted: Vec::new(), report };
    match &job.task {
        Task::Conform(ops) => {
            conform::check(&arm.source, arm.subject, *ops, job.seed).or_else(wrong).map(|()| arm.figures)
        }
        Task::Measure => arm.measure(),
        Task::Reserve => arm.reserved(),
        Task::Ancestor => arm.ancestor(),
        Task::Sweep(sizes) => arm.sweep(sizes),
        Task::Llds | Task::Store(_) | Task::Pressure(_) | Task::Remix(_) | Task::Chase(_) => {
            wrong("it has its own entry")
        }
    }
}

/// Does llds's workload on a subject.
pub(crate) fn run_llds<S: Subject<data::Counters>>(job: &Job, _: Walk, report: Report<'_>) -> Outcome {
    affinity::cpus();
    match S::build(job.pages) {
        Ok(subject) => llds::measure(job, subject, report).map_or_else(|end| end, Outcome::from),
        Err(why) => Outcome::Left(why),
    }
}

/// The memory before a structure is built; `None` is unknown.
struct Memory {
    /// [`alloc::live_bytes`].
    live: i64,
    /// [`alloc::heap_bytes`], if the structure's memory is in it.
    heap: Option<u64>,
    /// What its process occupies.
    occupied: Option<Occupied>,
    /// Whether the most that it occupies from now on will be known.
    peak_is_known: bool,
}

/// The values of each turn, by name.
#[derive(Default)]
struct Turns(BTreeMap<String, Vec<f64>>);

impl Turns {
    fn add(&mut self, values: BTreeMap<String, f64>) {
        values.into_iter().for_each(|(name, value)| self.0.entry(name).or_default().push(value));
    }

    /// Adds the median of each to `others`.
    fn medians(self, mut others: BTreeMap<String, f64>) -> BTreeMap<String, f64> {
        others.extend(self.0.into_iter().map(|(name, values)| (name, median(&values))));
        others
    }
}

struct Arm<'a, K: Kind> {
    job: &'a Job,
    source: K::Source,
    subject: &'a mut dyn Measured<K>,
    facts: Facts,
    figures: Figures,
    /// All that one thread did while a clock ran.
    total: Timed,
    /// What was counted in each of its loops: the name of its time, operations, counts.
    counted: Vec<(String, u64, Counts)>,
    report: Report<'a>,
}

impl<K: Kind> Arm<'_, K> {
    fn wants(&self, step: Step) -> bool {
        let of_blocks = [Step::Get, Step::Hits, Step::Miss, Step::Scan, Step::Iterate, Step::Remove];
        self.job.steps.contains(&step) && (!self.facts.by_block || of_blocks.contains(&step))
    }

    fn say(&mut self, step: &str) {
        (self.report)(step.to_owned());
    }

    /// The choice of pairs among the first `len`, as the distribution is asked for; another one for each `salt`.
    fn choice(&self, len: u64, salt: u64) -> Choice {
        Choice::new(self.job.asked.distribution, len, self.job.seed.wrapping_add(salt))
    }

    /// Copies `count` pairs of a choice to new memory.
    fn chosen(&self, len: u64, salt: u64, count: u64) -> K::Block {
        let choice = self.choice(len, salt);
        data::block_of::<K>(&self.source, (0..count).map(|at| choice.pick(at)))
    }

    /// Fresh copies of pairs that are there (below `len`), each once, in an order of their own for each `salt`.
    fn probes(&self, len: u64, salt: u64, range: std::ops::Range<u64>) -> K::Block {
        let order = Permutation::new(len, self.job.seed.wrapping_add(salt));
        data::block_of::<K>(&self.source, range.map(|at| order.apply(at)))
    }

    /// A block with room for the pairs of a stretch of insertion.
    fn block(&self) -> K::Block {
        let (len, mut block) = (self.source.len(), K::Block::default());
        let order = Permutation::new(len, self.job.seed.wrapping_add(1));
        let numbers = (0..INSERT_BLOCK.min(len)).map(|at| order.apply(at));
        numbers.for_each(|number| self.source.push_in_place(number, &mut block));
        block
    }

    /// Inserts the pairs of a range, made in `block` stretch by stretch.
    fn build(&mut self, range: std::ops::Range<u64>, block: &mut K::Block) -> Done<Timed> {
        let mut total = Timed::default();
        for from in range.clone().step_by(INSERT_BLOCK as usize) {
            block.clear();
            let numbers = from..range.end.min(from + INSERT_BLOCK);
            numbers.for_each(|number| self.source.push_in_place(number, block));
            room(from, self.job.margin_bytes)?;
            total.add(self.subject.insert_all(block));
            (self.report)(format!(
                "insert {}%",
                (from - range.start) * 100 / (range.end - range.start).max(1)
            ));
        }
        total.add(self.subject.settle_timed());
        Ok(total)
    }

    /// Notes a loop's time, and holds its sum against what it must be.
    fn note(&mut self, name: &str, timed: Timed, expected: u64) -> Done<()> {
        self.hold(name, timed, Some(expected))?;
        self.charge(name, timed);
        Ok(())
    }

    /// Holds a loop's sum against what it must be, where that is known; the other subjects must have the same.
    fn hold(&mut self, name: &str, timed: Timed, expected: Option<u64>) -> Done<()> {
        if let Some(expected) = expected.filter(|sum| timed.sum != *sum && self.facts.answers) {
            return wrong(format!("{name}: the answers sum to {:x}, not to {expected:x}", timed.sum));
        }
        self.figures.sums.insert(name.to_owned(), timed.sum);
        Ok(())
    }

    /// Notes a loop's time, and what was counted.
    fn charge(&mut self, name: &str, timed: Timed) {
        self.figures.set(name, timed.ns(self.job.clock));
        self.disturbed(name, timed);
        self.counted.push((name.to_owned(), timed.ops, timed.counts));
        self.total.add(timed);
    }

    /// Notes in how much of a figure's time others had the CPU.
    fn disturbed(&mut self, name: &str, timed: Timed) {
        let share = timed.disturbed_percent().map(|share| (name.to_owned(), share));
        self.figures.disturbed.extend(share);
    }

    /// Notes the rates of one thread and of several, and what makes them no evidence.
    fn rates(&mut self, name: &str, rounds: &[Rounds; 2]) {
        for rounds in rounds {
            let figure = format!("{name}_{}t_mops", rounds.count);
            self.figures.set(&figure, rounds.mops());
            if let Some(share) = rounds.disturbed_percent() {
                self.figures.disturbed.insert(figure, share);
                let most = self.figures.values.get(THREADS_DISTURBED).map_or(share, |most| most.max(share));
                self.figures.set(THREADS_DISTURBED, most);
            }
            rounds.timed.iter().for_each(|timed| self.total.add(*timed));
        }
        let [one, several] = rounds;
        let times = several.mops() / one.mops();
        if self.facts.answers && !threads::is_possible(times, several.count as u16) {
            let threads = several.count;
            self.figures.notes.push(format!(
                "{name}: {threads} threads were {times:.2} times as fast as 1, which is a measurement error"
            ));
        }
    }

    /// Gives the figures away.
    fn end(mut self) -> Done<Figures> {
        if let Some(share) = self.total.disturbed_percent() {
            self.figures.set("disturbed_percent", share);
        }
        if self.job.simulation.is_some() {
            // There is no time, and no memory that is not valgrind's as well.
            self.figures.values.retain(|name, _| name.ends_with("live_bytes_per_key"));
        }
        for (name, ops, counts) in self.counted {
            let Some((step, size)) = name.split_once("_ns") else { continue };
            let counts = counts.with_dumps().or_else(wrong)?;
            counts
                .figures(ops)
                .iter()
                .for_each(|(what, each)| self.figures.set(&format!("{step}_{what}{size}"), *each));
        }
        Ok(self.figures)
    }

    fn measure(mut self) -> Done<Figures> {
        let (len, probes) = (self.source.len(), self.job.probes.min(self.source.len()));
        // What the loop needs is there before memory is measured, and stays until it was.
        let mut block = self.block();
        let before = self.memory();
        let inserted = self.build(0..len, &mut block)?;
        self.charge("insert_ns", inserted);
        self.note_memory(&before, inserted.peak_bytes);
        self.figures.notes.extend(self.subject.note());
        self.figures.notes.extend(self.placed().map(str::to_owned));
        drop(block);

        self.turns(len, probes)?;
        if self.wants(Step::Threads) && self.facts.answers {
            self.threads(len, probes)?;
        }
        if self.wants(Step::Hits) {
            self.hits(len, probes)?;
        }
        self.workloads(len, probes)?;
        if self.wants(Step::Remove) && !self.facts.is_static {
            self.say("remove");
            let block = self.probes(len, 9, 0..(len / 10).clamp(1, self.job.probes));
            let timed = self.subject.remove_all(&block);
            self.note("remove_ns", timed, block.len() as u64)?;
            let left = self.subject.get_all(&block);
            if left.sum != 0 && self.facts.answers {
                return wrong("keys were still there after their removal");
            }
        }
        if self.wants(Step::Erase) && self.facts.retains {
            self.erase()?;
        }
        self.end()
    }

    /// Removes half of the pairs while all are iterated. A second time there must be none left to remove.
    fn erase(&mut self) -> Done<()> {
        self.say("erase");
        let all = self.subject.iterate_all().ops;
        let timed = self.subject.erase_half();
        let left = self.subject.iterate_all().ops;
        let again = self.subject.erase_half();
        if timed.ops != all || again.ops != left || again.sum != 0 || (left == all && all >= ERASED_MIN) {
            let (seen, seen_again) = (timed.ops, again.ops);
            return wrong(format!("erase: {seen} of {all} pairs were shown, then {seen_again} of {left}"));
        }
        self.charge("erase_ns", timed);
        Ok(())
    }

    /// The memory before a structure is built.
    fn memory(&self) -> Memory {
        // Under a simulation it is not the subject's alone.
        let simulated = self.job.simulation.is_some();
        // What the structure's own code requests is known only to its allocator.
        let is_heap = !self.facts.counted || alloc::chosen() == Allocator::Malloc;
        Memory {
            live: alloc::live_bytes(),
            heap: alloc::heap_bytes().filter(|_| is_heap && self.subject.process().is_none()),
            occupied: (!simulated).then(|| self.occupied()).flatten(),
            peak_is_known: !simulated && self.subject.process().is_none() && machine::begin_peak(),
        }
    }

    /// What the process that has the structure occupies.
    fn occupied(&self) -> Option<Occupied> {
        self.subject.process().map_or_else(Occupied::of_process, Occupied::of_other)
    }

    /// Notes the memory of the structure, which has been built since `before`. What is unknown has no figure.
    fn note_memory(&mut self, before: &Memory, peak_bytes: i64) {
        let len = self.source.len() as f64;
        // What the subject has beside the allocator's is counted at the end alone; it only grows until then.
        let own = self.subject.bytes() as f64;
        let (live, heap) = (alloc::live_bytes(), before.heap.zip(alloc::heap_bytes()));
        let occupied = before.occupied.and_then(|before| Some((before, self.occupied()?)));
        let mut each = |name: &str, bytes: f64| self.figures.set(name, bytes / len);
        if self.facts.counted {
            each("live_bytes_per_key", (live - before.live).max(0) as f64 + own);
            each("peak_live_bytes_per_key", (peak_bytes - before.live).max(0) as f64 + own);
        }
        if let Some((before, after)) = heap {
            each("heap_bytes_per_key", after.saturating_sub(before) as f64 + own);
        }
        if let Some((first, last)) = occupied {
            each("resident_bytes_per_key", last.bytes.saturating_sub(first.bytes) as f64);
            if let Some(peak) = last.peak_bytes().filter(|_| before.peak_is_known) {
                each("peak_resident_bytes_per_key", peak.saturating_sub(first.bytes) as f64);
            }
            let huge = last.huge_percent_since(first).filter(|_| self.subject.process().is_none());
            if let Some(percent) = huge {
                self.figures.set("resident_huge_percent", percent);
            }
        }
    }

    /// The steps that only read, each time when it is this arm's turn; the figures are the medians of the turns.
    fn turns(&mut self, len: u64, probes: u64) -> Done<()> {
        if self.job.turns <= 1 {
            return self.only_read(len, probes);
        }
        let built = std::mem::take(&mut self.figures.values);
        let built_beside = std::mem::take(&mut self.figures.disturbed);
        let (mut turns, mut beside) = (Turns::default(), Turns::default());
        for _ in 0..self.job.turns {
            self.say(TURN);
            turns::take();
            self.only_read(len, probes)?;
            turns.add(std::mem::take(&mut self.figures.values));
            beside.add(std::mem::take(&mut self.figures.disturbed));
        }
        self.figures.values = turns.medians(built);
        self.figures.disturbed = beside.medians(built_beside);
        Ok(())
    }

    fn only_read(&mut self, len: u64, probes: u64) -> Done<()> {
        if self.wants(Step::Get) || self.wants(Step::Batch) || self.wants(Step::Dependent) {
            self.reads(len, probes, "")?;
        }
        if self.wants(Step::Miss) {
            self.say("get, misses");
            let order = Permutation::new(len, self.job.seed.wrapping_add(5));
            let block = data::block_of::<K>(&self.source, (0..probes).map(|at| len + order.apply(at)));
            let timed = self.subject.get_all(&block);
            self.note("get_miss_ns", timed, 0)?;
        }
        if self.wants(Step::Scan) && self.facts.ordered {
            self.say("scan");
            let block = self.probes(len, 6, 0..probes.div_ceil(20));
            let timed = self.subject.scan_all(&block, SCAN_PAIRS);
            self.charge("scan_50_ns", timed);
            self.figures.sums.insert("scan".to_owned(), timed.sum);
        }
        if self.wants(Step::Iterate) && self.facts.ordered {
            self.say("iterate");
            let timed = self.subject.iterate_all();
            self.iterated("iterate", timed, len)?;
            let bytes = timed.bytes as f64 / timed.ops as f64;
            self.figures.set("iterate_gb_per_s", bytes / timed.ns(self.job.clock).max(1e-3));
            if self.facts.back {
                let timed = self.subject.iterate_back_all();
                self.iterated("iterate_back", timed, len)?;
            }
        }
        Ok(())
    }

    /// Notes an iteration, which must have shown all pairs.
    fn iterated(&mut self, step: &str, timed: Timed, len: u64) -> Done<()> {
        if timed.ops != len {
            return wrong(format!("{step} showed {} pairs of {len}", timed.ops));
        }
        self.charge(&format!("{step}_ns"), timed);
        self.figures.sums.insert(step.to_owned(), timed.sum);
        Ok(())
    }

    /// Gets of other keys than those of the next loop, whose clock so does not see the change from what was before it.
    fn warm_up(&mut self, len: u64, probes: u64) {
        let warm = self.probes(len, 3, 0..probes.div_ceil(16));
        std::hint::black_box(self.subject.get_all(&warm).sum);
    }

    /// Gets of which a part finds its key. Those that do and those that do not come in random order.
    fn hits(&mut self, len: u64, probes: u64) -> Done<()> {
        let (choice, absent) = (self.choice(len, 10), Permutation::new(len, self.job.seed.wrapping_add(11)));
        for percent in self.job.asked.hits.clone() {
            self.say("get, some misses");
            let (mut block, mut expected) = (K::Block::default(), 0u64);
            for at in 0..probes {
                let hit = mix(self.job.seed ^ mix(at)) % 100 < u64::from(percent);
                self.source.push(if hit { choice.pick(at) } else { len + absent.apply(at) }, &mut block);
                if hit {
                    expected = expected.wrapping_add(K::fold_value(block.value(at as usize)));
                }
            }
            let timed = self.subject.get_all(&block);
            self.note(&format!("get_hits_{percent}_ns"), timed, expected)?;
        }
        Ok(())
    }

    /// Mixes of operations, then the latency of their operations. What was written must be there at the end.
    fn workloads(&mut self, len: u64, probes: u64) -> Done<()> {
        let asked = &self.job.asked;
        let fits =
            |mix: &Mix| (mix.scans == 0 || self.facts.ordered) && !(mix.writes() && self.facts.is_static);
        let mut mixes = asked.mixes(&self.job.steps);
        mixes.retain(|mix| fits(mix) && !self.facts.by_block);
        let timed = self.wants(Step::Latency);
        if mixes.is_empty() && !timed {
            return Ok(());
        }
        self.warm_up(len, probes);
        let (mut model, mut seed) = (Model::default(), self.job.seed.wrapping_add(12));
        for mix in &mixes {
            self.say(&mix.name);
            seed = seed.wrapping_add(1);
            let work = model.lay_out::<K>(&self.source, mix, probes, seed);
            let done = self.subject.operate(&work);
            self.hold(&mix.name, done, work.expected)?;
            self.charge(&format!("{}_ns", mix.name), done);
        }
        if self.wants(Step::Threads) && self.facts.shared {
            for mix in &mixes {
                self.mix_together(mix, &mut model, probes)?;
            }
        }
        let rate = self.job.asked.rate;
        let gets = Mix::of("get", 100, self.job.asked.distribution);
        for mix in std::iter::once(&gets).chain(&mixes).filter(|_| timed) {
            for rate in std::iter::once(None).chain(rate.map(Some)) {
                self.say(&format!("{}, each timed", mix.name));
                seed = seed.wrapping_add(1);
                let ops = rate.map_or(probes, |rate| probes.min(rate.saturating_mul(OPEN_S_MAX)));
                let work = model.lay_out::<K>(&self.source, mix, ops, seed);
                let mut each = Stopwatch::new(latency::now as fn() -> u64, rate);
                let done = self.subject.operate_timed(&work, &mut each);
                let name =
                    if rate.is_some() { format!("{}_open", mix.name) } else { format!("{}_each", mix.name) };
                self.hold(&name, done, work.expected)?;
                self.total.add(done);
                for (name, value) in each.figures(&mix.name, mix.has_sorts()) {
                    self.figures.set(&name, value);
                    self.disturbed(&name, done);
                }
            }
        }
        let block = model.written::<K>(&self.source);
        let found = self.subject.get_all(&block);
        if self.facts.answers && found.sum != measure::expected_sum::<K>(&block) {
            return wrong("what was written last is not what is read");
        }
        Ok(())
    }

    /// A mix by one thread and by several at once, each with operations of its own.
    fn mix_together(&mut self, mix: &Mix, model: &mut Model, probes: u64) -> Done<()> {
        let threads = self.job.threads;
        if affinity::cpus().len() < threads {
            return Ok(());
        }
        self.say(&format!("{}, {threads} threads", mix.name));
        let ops = threads::ops(probes, threads, probes);
        let warm = self.probes(self.source.len(), 3, 0..ops.div_ceil(WARM).min(self.source.len()));
        let (source, subject, job) = (&self.source, &*self.subject, self.job);
        let mut first = None;
        let rounds = threads::rounds(threads, |round, count| {
            let lay_out = |thread: usize| {
                let number = 30 + (round as usize * (threads + 1) + count) * (threads + 1) + thread;
                model.lay_out::<K>(source, mix, ops, data::mix(job.seed ^ data::mix(number as u64)))
            };
            let works: Vec<_> = (0..count).map(lay_out).collect();
            let warm = || subject.get_all(&warm);
            let timed = measure::together(&works, job.pin, warm, |work| subject.operate_shared(work));
            // Later the values are those of several writers, of which the last is unknown.
            first.get_or_insert((timed, works[0].expected));
            Ok(timed)
        })?;
        if let Some((timed, expected)) = first {
            self.hold(&format!("{}_1t", mix.name), timed, expected)?;
        }
        self.rates(&mix.name, &rounds);
        // With several threads the last writer of a key is unknown, but every written key must be present.
        let (written, mut found) = (model.written::<K>(&self.source), 0);
        (0..written.len()).for_each(|at| self.subject.get_one(written.key(at), &mut |_| found += 1));
        if found != written.len() && self.facts.answers {
            return wrong(format!(
                "{}: of {} keys that were written {found} are there",
                mix.name,
                written.len()
            ));
        }
        self.subject.insert_all(&written);
        Ok(())
    }

    /// The three ways of asking, among the first `len` pairs.
    fn reads(&mut self, len: u64, probes: u64, suffix: &str) -> Done<()> {
        let block = self.chosen(len, 2, probes);
        let expected = measure::expected_sum::<K>(&block);
        // Other keys first, so that the clock does not see the change from writing to reading.
        self.warm_up(len, probes);
        if self.wants(Step::Get) {
            self.say("get");
            let timed = self.subject.get_all(&block);
            self.note(&format!("get_ns{suffix}"), timed, expected)?;
        }
        if self.wants(Step::Batch) && self.facts.batched {
            for size in self.job.asked.batches.clone() {
                self.say("multi_get");
                let timed = self.subject.get_batches(&block, usize::from(size));
                self.note(&format!("multi_get_{size}_ns{suffix}"), timed, expected)?;
            }
        }
        drop(block);
        if self.wants(Step::Dependent) {
            self.say("get, dependent");
            let block = self.chosen(len, 4, probes.div_ceil(2));
            let timed = self.subject.get_dependent(&block);
            self.note(&format!("get_dependent_ns{suffix}"), timed, measure::expected_sum::<K>(&block))?;
        }
        Ok(())
    }

    /// One thread against several: reads, and half reads and half writes where the subject takes several
    /// writers, each on keys of its own and on keys of all. All work is on fresh keys.
    fn threads(&mut self, len: u64, probes: u64) -> Done<()> {
        let threads = self.job.threads;
        if affinity::cpus().len() < threads {
            return Ok(());
        }
        let each = threads::ops(probes, threads, len / threads as u64);
        let warm = self.probes(len, 3, 0..each.div_ceil(WARM).min(len));
        let names = match self.facts {
            Facts { shared: false, .. } => &["read"][..],
            Facts { replaces: false, .. } => &["read", "mixed_disjoint"],
            _ => &["read", "mixed_disjoint", "mixed_shared"],
        };
        if self.facts.shared && !self.facts.replaces {
            let what = "half writes, all keys: left out, because an update removes the old value first";
            self.figures.notes.push(what.to_owned());
        }
        for &name in names {
            (self.report)(format!("{threads} threads, {name}"));
            let (source, subject, job) = (&self.source, &*self.subject, self.job);
            let reads = name == "read";
            let work = |block: &K::Block| if reads { subject.get_all(block) } else { subject.mixed(block) };
            let expected = if reads { measure::expected_sum::<K> } else { measure::expected_mixed_sum::<K> };
            let rounds = threads::rounds(threads, |round, count| {
                // Shared: an order for each thread. Disjoint: stretches of one order, which follow one another; one
                // thread has a stretch that the several of the round do not have.
                let block = |thread: usize| {
                    let (salt, place) = match name {
                        "mixed_shared" => (20 + thread as u64, round * 2 + u64::from(count == 1)),
                        _ => (
                            7,
                            round * (threads as u64 + 1) + if count == 1 { threads } else { thread } as u64,
                        ),
                    };
                    let order = Permutation::new(len, job.seed.wrapping_add(salt));
                    let numbers = place * each..(place + 1) * each;
                    data::block_of::<K>(source, numbers.map(|at| order.apply(at % len)))
                };
                let blocks: Vec<_> = (0..count).map(block).collect();
                let warm = || work(&warm);
                let timed = measure::together(&blocks, job.pin, warm, work);
                if timed.sum != blocks.iter().map(expected).fold(0, u64::wrapping_add) {
                    return wrong(format!("{name}: {count} threads read wrong values"));
                }
                Ok(timed)
            })?;
            self.rates(name, &rounds);
        }
        Ok(())
    }

    /// Where the pairs of a file are kept, if they may stay where they were loaded.
    fn placed(&self) -> Option<&'static str> {
        let name = self.job.subject.split(['+', '@']).next().unwrap_or_default();
        self.job.data.as_ref().filter(|file| file.in_place).map(|_| subjects::placement(name))
    }

    /// Inserts, finds, updates and deletes all keys, each step in an order of its own.
    fn ancestor(mut self) -> Done<Figures> {
        let len = self.source.len();
        let mut block = self.block();
        let inserted = self.build(0..len, &mut block)?;
        self.charge("insert_ns", inserted);
        let steps = [("get_ns", "find"), ("update_ns", "update"), ("remove_ns", "delete")];
        for (salt, (figure, words)) in (2..).zip(steps) {
            let changes = salt > 2;
            if changes && self.facts.is_static {
                break;
            }
            self.say(words);
            let order = Permutation::new(len, self.job.seed.wrapping_add(salt));
            let (mut total, mut expected) = (Timed::default(), 0u64);
            for from in (0..len).step_by(INSERT_BLOCK as usize) {
                block.clear();
                let numbers = (from..len.min(from + INSERT_BLOCK)).map(|at| order.apply(at));
                // What is looked up is a copy; what is inserted again lies where it lies.
                if figure == "update_ns" {
                    numbers.for_each(|number| self.source.push_in_place(number, &mut block));
                } else {
                    numbers.for_each(|number| self.source.push(number, &mut block));
                }
                let (timed, sum) = match figure {
                    "get_ns" => (self.subject.get_all(&block), measure::expected_sum::<K>(&block)),
                    "update_ns" => (self.subject.insert_all(&block), 0),
                    _ => (self.subject.remove_all(&block), block.len() as u64),
                };
                total.add(timed);
                expected = expected.wrapping_add(sum);
            }
            self.note(figure, total, expected)?;
        }
        self.end()
    }

    /// Measures only insertion, into a subject that reserved room for all keys; no figure if it cannot reserve. This
    /// step has a process of its own, because the allocator would reuse memory that a first structure had freed.
    fn reserved(mut self) -> Done<Figures> {
        let len = self.source.len();
        let mut block = self.block();
        if let Some(mut timed) = self.subject.reserve_timed(len as usize) {
            timed.add(self.build(0..len, &mut block)?);
            self.charge("insert_reserved_ns", timed);
            let block = self.probes(len, 2, 0..self.job.probes.min(len));
            let found = self.subject.get_all(&block);
            if self.facts.answers && found.sum != measure::expected_sum::<K>(&block) {
                return wrong("what was inserted after reserving is not what is read");
            }
        }
        self.end()
    }

    fn sweep(mut self, sizes: &[u64]) -> Done<Figures> {
        let mut block = self.block();
        let resident = machine::resident_bytes();
        let mut from = 0;
        for &size in sizes {
            match self.build(from..size, &mut block) {
                Ok(_) => {}
                Err(Outcome::Left(why)) if from > 0 => {
                    self.figures.notes.push(format!("{why}; ended at {from} keys"));
                    break;
                }
                Err(end) => return Err(end),
            }
            from = size;
            if let Some((before, after)) = resident.zip(machine::resident_bytes()) {
                let bytes = after.saturating_sub(before) as f64 / size as f64;
                self.figures.set(&format!("resident_bytes_per_key@{size}"), bytes);
            }
            self.reads(size, self.job.probes.min(size), &format!("@{size}"))?;
        }
        self.end()
    }
}

#[cfg(test)]
#[path = "arm_tests.rs"]
mod tests;

//! `kvbench memory`: structures in memory, side by side.

use crate::arm::SHARED_SUMS;
use crate::bench::{self, Bench, Rounds};
use crate::conform;
use crate::counted;
use crate::counters::{Event, RAW, callgrind, code};
use crate::data::{Distribution, KindName, Told, Walk, collect_paths};
use crate::goals;
use crate::hashes::Hash;
use crate::job::{DataFile, Figures, Job, Outcome, Step, Task};
use crate::names::Name;
use crate::options::Memory;
use crate::record::{Figure, Goal};
use crate::runner;
use crate::subjects::{EMPTY, FORREST, ON_PAGES, Pages};
use crate::tables::{self, Group, Row, label};
use crate::workplace::Workplace;
use serde_json::json;
use std::io::{self, Write};

/// Keys of a smoke run.
const QUICK_KEYS: u64 = 20_000;
/// Keys without `-n`: all structures with both kinds end within ten minutes on two CPUs.
const DEFAULT_KEYS: [u64; 1] = [1_000_000];
/// Keys with `--long`.
const LONG_KEYS: [u64; 2] = [10_000_000, 50_000_000];
/// Sizes of the sweep without `--sweep`, and with `--long`.
const DEFAULT_SWEEP: [u64; 4] = [1_000_000, 3_000_000, 10_000_000, 30_000_000];
const LONG_SWEEP: [u64; 5] = [1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000];
/// Keys on a simulated processor, which is some fifty times slower.
const SIMULATED_KEYS: u64 = 100_000;

/// Subjects that end each key with a NUL, so that a key with one inside could be the beginning of another.
const TERMINATED: [&str; 2] = ["blart", "rart"];

/// A subject on its pages.
type Who = (Name, Pages);

/// The subjects in the order of the structures, then those of libraries; those of one structure in that in which they
/// were named, each once.
fn in_order(named: &[Name]) -> Vec<Name> {
    let mut subjects: Vec<Name> = Vec::new();
    for name in named {
        if !subjects.iter().any(|there| there.to_string() == name.to_string()) {
            subjects.push(*name);
        }
    }
    let place = |name: &Name| Name::all().position(|of| of.entry.name == name.entry.name);
    subjects.sort_by_key(|name| place(name).unwrap_or(usize::MAX));
    subjects
}

struct Memories {
    options: Memory,
    keys: Vec<u64>,
    steps: Vec<Step>,
    /// The sizes of the sweep.
    sweep: Vec<u64>,
    walk: Walk,
    none: Walk,
    /// A file in place of made pairs, and what it has.
    data: Option<DataFile>,
    told: Told,
    bench: Bench,
    /// Where a simulated processor's counts go.
    simulation: Option<Workplace>,
}

/// Measures, prints, records; true if every subject was right.
pub(crate) fn run(mut options: Memory) -> io::Result<bool> {
    let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidInput, what);
    if options.kinds.is_empty() {
        let kinds = [KindName::U64, KindName::Strings];
        options.kinds = kinds
            .into_iter()
            .filter(|kind| *kind == KindName::Strings || options.file.data.is_none())
            .collect();
    }
    let (data, told) = options.file.told(options.kinds[0], options.common.margin)?.unzip();
    let told = told.unwrap_or_default();
    if data.is_some() {
        if options.kinds.len() > 1 {
            return Err(invalid("the pairs of a file are of one kind: name one with --kinds".to_owned()));
        }
        if !options.sweep.is_empty() && options.kinds[0] != KindName::U64 {
            return Err(invalid("only numbers grow: take --kinds u64, or leave out --sweep".to_owned()));
        }
        options.no_sweep |= options.sweep.is_empty();
    }
    let keys = match (options.keys.is_empty(), options.quick) {
        (false, _) => options.keys.clone(),
        (true, _) if data.is_some() => vec![told.pairs],
        (true, true) => vec![QUICK_KEYS],
        (true, false) if options.simulate => vec![SIMULATED_KEYS],
        (true, false) if options.long => LONG_KEYS.to_vec(),
        (true, false) => DEFAULT_KEYS.to_vec(),
    };
    let mut sweep: Vec<u64> = match options.quick {
        true => keys.iter().max().map_or_else(Vec::new, |most| vec![most.div_ceil(8), *most]),
        false if options.sweep.is_empty() && options.long => LONG_SWEEP.to_vec(),
        false if options.sweep.is_empty() => DEFAULT_SWEEP.to_vec(),
        false => options.sweep.iter().flat_map(|sizes| sizes.0.clone()).collect(),
    };
    sweep.sort_unstable();
    sweep.dedup();
    let simulator = options.simulate.then(callgrind::version).transpose()?;
    if options.simulate {
        options.no_sweep = true;
        if options.events.is_empty() {
            options.events = vec![Event::Instructions];
        }
    }
    if options.raw.len() > RAW.len() {
        let what = format!("--raw takes at most {} codes", RAW.len());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    options.events.extend(code::events(options.raw.len()));
    let mut steps = if options.only.is_empty() { Step::USUAL.to_vec() } else { options.only.clone() };
    if options.asked.rate.is_some() && !steps.contains(&Step::Latency) {
        steps.push(Step::Latency);
    }
    // There is one simulated processor, and it has no clock.
    steps.retain(|step| !options.simulate || !matches!(step, Step::Threads | Step::Latency));
    if options.subjects.is_empty() {
        options.subjects = Name::all().collect();
    }
    if data.as_ref().is_some_and(|file| file.in_place) && steps.iter().any(|step| step.writes_values()) {
        let what =
            "values that are written again would not be in the file: leave out --in-place, or these steps";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    let sizes = keys.iter().chain(sweep.iter().filter(|_| !options.no_sweep));
    if let Some(most) = sizes.max().filter(|most| data.is_some() && **most > told.pairs) {
        let what = format!("{most} pairs are asked for, the file has {} different keys", told.pairs);
        return Err(invalid(what));
    }
    let walk = if options.kinds.contains(&KindName::Strings) && data.is_none() {
        let error = |error| {
            io::Error::other(format!("no paths can be read from {}: {error}", options.tree.display()))
        };
        collect_paths(&options.tree, options.common.seed).map_err(error)?
    } else {
        Walk::default()
    };
    let common = &options.common;
    let kept = json!({
        "seed": common.seed, "threads": common.threads, "rounds": options.rounds, "probes": options.probes, "asked": options.asked,
        "margin_bytes": common.margin, "malloc_pages": format!("{:?}", common.malloc_pages).to_lowercase(),
        "pinned": !options.no_pin, "clock": options.clock, "events": options.events, "raw": options.raw, "simulator": simulator,
        "tree": options.tree, "paths": walk.len(), "path_bytes_mean": walk.mean_bytes(),
        "paths_left_out": walk.left_out,
        "data": data.as_ref().map(|file| json!({
            "file": file.path, "format": file.format, "are_numbers": file.are_numbers, "pages": file.pages, "in_place": file.in_place, "no_values": file.no_values, "pages_had": told.pages, "pairs": told.pairs,
            "duplicates": told.duplicates, "key_bytes": told.key_bytes, "value_bytes": told.value_bytes,
            "keys_with_nul": told.with_nul,
        })),
    });
    let bench = Bench::begin(common.json.as_deref(), kept, common.malloc_pages)?;
    let simulation = options.simulate.then(|| Workplace::new(None)).transpose()?;
    Memories { keys, steps, sweep, walk, none: Walk::default(), data, told, bench, simulation, options }.run()
}

impl Memories {
    fn run(mut self) -> io::Result<bool> {
        let mut out = io::stdout();
        self.print_head(&mut out)?;
        let subjects = in_order(&self.options.subjects);
        let kinds = self.options.kinds.clone();
        self.expect(&subjects);

        let mut goals: Vec<Goal> = Vec::new();
        let mut fit: Vec<(KindName, Vec<Name>)> = Vec::new();
        for kind in kinds {
            fit.push((kind, self.conform(&mut out, kind, &subjects)?));
        }
        for (kind, subjects) in &fit {
            for keys in self.keys.clone() {
                let group = self.group(&mut out, *kind, keys, subjects)?;
                if self.simulation.is_none() {
                    tables::print_group(&mut out, &group)?;
                    tables::print_workloads(&mut out, &group)?;
                    tables::print_latencies(&mut out, &group)?;
                    tables::print_threads(&mut out, &group, self.options.common.threads)?;
                }
                counted::print_memory(&mut out, &group)?;
                counted::print_events(&mut out, &group, &self.options.events)?;
                tables::print_notes(&mut out, &group)?;
                // They are about the made pairs, each asked for as often as the others.
                if self.data.is_none() && self.simulation.is_none() && self.is_uniform() {
                    goals.extend(goals::of_group(&group, self.options.common.threads));
                }
                out.flush()?;
            }
        }
        let numbers = fit.iter().find(|(kind, _)| *kind == KindName::U64);
        if let Some((_, right)) = numbers.filter(|_| self.sweeps()) {
            goals.extend(self.sweep(&mut out, right)?);
        }
        tables::print_legend(&mut out)?;
        goals::conclude(&mut out, &mut self.bench.record, &goals, self.bench.failures)
    }

    /// Tells the runner what is to be done.
    fn expect(&mut self, subjects: &[Name]) {
        let arms = usize::from(self.options.rounds) * if self.steps.contains(&Step::Reserve) { 2 } else { 1 };
        for &kind in &self.options.kinds {
            let fit: Vec<_> = subjects.iter().copied().filter(|name| name.run(kind).is_ok()).collect();
            self.bench.runner.expect(fit.len(), self.conform_ops());
            let rows = self.rows(&fit).len();
            self.keys.iter().for_each(|keys| self.bench.runner.expect(rows * arms, *keys));
        }
        if let Some(&most) = self.sweep.last().filter(|_| self.sweeps()) {
            self.bench.runner.expect(in_order(&self.options.sweep_subjects).len(), most);
        }
    }

    /// Whether structures are let grow.
    fn sweeps(&self) -> bool {
        !self.options.no_sweep && self.is_uniform() && self.options.kinds.contains(&KindName::U64)
    }

    /// Number of operations of the conformance kit.
    fn conform_ops(&self) -> u64 {
        let pairs = if self.data.is_some() { self.told.pairs } else { conform::KEYS };
        conform::ops(if self.options.quick { conform::QUICK_OPS } else { conform::OPS }, pairs)
    }

    /// The subjects, each on the pages that it is measured on.
    fn rows(&self, subjects: &[Name]) -> Vec<Who> {
        let on = |name: &Name| {
            let (name, pages) = (*name, self.options.pages.clone());
            let pages = if ON_PAGES.contains(&name.entry.name) { pages } else { vec![Pages::Auto] };
            pages.into_iter().map(move |pages| (name, pages))
        };
        subjects.iter().flat_map(on).collect()
    }

    fn is_uniform(&self) -> bool {
        self.options.asked.distribution == Distribution::Uniform
    }

    fn print_head(&self, out: &mut impl Write) -> io::Result<()> {
        let (record, options) = (&self.bench.record, &self.options);
        let what = (self.walk.len() > 0).then(|| {
            let (paths, mean) = (self.walk.len(), self.walk.mean_bytes());
            let (tree, left_out) = (options.tree.display(), self.walk.left_out);
            format!(
                "strings: {paths} paths of {tree}, {mean:.1} bytes in the mean, {left_out} left out; copies get a suffix"
            )
        });
        let what = self.data.as_ref().map(|file| {
            let (told, format) = (&self.told, file.format.name());
            let mean = |bytes: u64| bytes as f64 / told.pairs.max(1) as f64;
            let values = match told.valued {
                _ if file.are_numbers => "made values of 8".to_owned(),
                true => format!("values of {:.1}", mean(told.value_bytes)),
                false if file.no_values => "no values".to_owned(),
                false => "made values, since it has none".to_owned(),
            };
            format!(
                "{}: {} ({format}), {} different keys of {:.1} bytes in the mean, {values}; {} pairs dropped whose key came \
                 again later\nloaded to {}",
                self.options.kinds[0].name(),
                file.path.display(),
                told.pairs,
                mean(told.key_bytes),
                told.duplicates,
                told.pages
            )
        }).or(what);
        record.print_head(out, "memory", options.common.seed, what.as_deref())?;
        if !self.is_uniform() {
            writeln!(out, "keys are asked for by the distribution {}", options.asked.distribution)?;
        }
        let cpus = record.machine.cpus;
        if cpus < usize::from(options.common.threads) && self.steps.contains(&Step::Threads) {
            writeln!(out, "several threads: left out, {cpus} CPUs for {} threads", options.common.threads)?;
        }
        Ok(())
    }

    fn job(&self, task: Task, (name, pages): Who, kind: KindName, keys: u64) -> Job {
        let options = &self.options;
        let checks = matches!(task, Task::Conform(_));
        let simulated = options.simulate && !checks;
        Job {
            allocator: name.allocator,
            kind,
            seed: options.common.seed,
            probes: options.probes,
            threads: usize::from(options.common.threads),
            steps: self.steps.clone(),
            asked: options.asked.clone(),
            pages,
            // A simulation looks at nothing that may be different the next time.
            margin_bytes: if simulated { 0 } else { options.common.margin },
            pin: !options.no_pin,
            clock: options.clock,
            events: options.events.clone(),
            raw: options.raw.clone(),
            simulation: self.simulation.as_ref().filter(|_| simulated).map(|place| place.path().to_owned()),
            // Values that differ are what is checked.
            data: self.data.clone().map(|file| DataFile { no_values: file.no_values && !checks, ..file }),
            ..Job::of(task, name, keys)
        }
    }

    fn arm(&mut self, job: &Job) -> Outcome {
        self.bench.runner.arm(job, if job.kind == KindName::Strings { &self.walk } else { &self.none })
    }

    /// Reports why a subject has no figures; a wrong result counts as a failure.
    fn leave(
        &mut self,
        out: &mut impl Write,
        (name, pages): Who,
        job: &Job,
        end: &Outcome,
    ) -> io::Result<()> {
        // The conformance kit has its own number of keys, which is not that of the measurement.
        let keys = (!matches!(job.task, Task::Conform(_))).then_some(job.keys);
        let size = keys.map_or_else(String::new, |keys| format!("{} ", runner::keys(keys)));
        let who = format!("{}, {size}{}", label(name, pages), job.kind.name());
        let content = json!({
            "subject": name.to_string(), "pages": pages.name(), "kind": job.kind, "keys": keys,
        });
        self.bench.leave(out, &who, content, end)
    }

    /// Lets the subjects pass the conformance kit; returns those that did.
    fn conform(&mut self, out: &mut impl Write, kind: KindName, subjects: &[Name]) -> io::Result<Vec<Name>> {
        let (mut right, mut checked) = (Vec::new(), 0);
        let (ops, with_nul) = (self.conform_ops(), self.told.with_nul);
        for &name in subjects {
            let job = self.job(Task::Conform(ops), (name, Pages::Auto), kind, conform::KEYS);
            let end = match name.run(kind) {
                Ok(_) if name.entry.name == EMPTY => {
                    right.push(name);
                    continue;
                }
                Ok(_)
                    if with_nul > 0 && kind == KindName::Strings && TERMINATED.contains(&name.entry.name) =>
                {
                    Outcome::Left(format!(
                        "it ends keys with a zero byte, and {with_nul} of the file's have one inside"
                    ))
                }
                Ok(_) => self.arm(&job),
                Err(why) => Outcome::Left(why),
            };
            if matches!(end, Outcome::Figures(_)) {
                right.push(name);
                checked += 1;
            }
            self.leave(out, (name, Pages::Auto), &job, &end)?;
        }
        writeln!(out, "{}: {checked} subjects agree with BTreeMap over {ops} operations", kind.name())?;
        Ok(right)
    }

    /// Measures the subjects with one kind and number of pairs.
    fn group(
        &mut self,
        out: &mut impl Write,
        kind: KindName,
        keys: u64,
        subjects: &[Name],
    ) -> io::Result<Group> {
        self.bench.runner.live.begin(Some(tables::head("", &tables::COLUMNS)));
        let rounds = self.options.rounds;
        let mut arms = bench::rounds(self.rows(subjects), rounds, |who, _| {
            let job = self.job(Task::Measure, who, kind, keys);
            let mut end = self.arm(&job);
            if let Outcome::Figures(figures) = &mut end
                && self.steps.contains(&Step::Reserve)
            {
                match self.arm(&Job { task: Task::Reserve, ..job.clone() }) {
                    // Figures that both arms have, such as the CPU share of others, are kept from the first.
                    Outcome::Figures(more) => {
                        more.values.into_iter().for_each(|(name, value)| {
                            figures.values.entry(name).or_insert(value);
                        });
                    }
                    other => end = other,
                }
            }
            self.leave(out, who, &job, &end)?;
            if let Outcome::Figures(figures) = &end {
                let figure = |name: &str| figures.values.get(name).copied();
                let row = tables::line(&label(who.0, who.1), &tables::COLUMNS, figure);
                self.bench.runner.live.row(row);
            }
            Ok(end)
        })?;
        self.bench.runner.live.begin(None);
        self.compare_sums(out, kind, keys, &mut arms)?;
        let mut rows = Vec::new();
        for (who, rounds) in arms.into_iter().filter(|(_, rounds)| !rounds.is_empty()) {
            rows.push(self.row(who, kind.name(), keys, rounds)?);
        }
        Ok(Group { kind, keys, rows })
    }

    /// Gathers the rounds of a subject, and records them.
    fn row(&mut self, (name, pages): Who, kind: &str, keys: u64, rounds: Vec<Figures>) -> io::Result<Row> {
        let sums = bench::sums(&rounds);
        let notes = rounds.last().map_or_else(Vec::new, |figures| figures.notes.clone());
        let counted = rounds.last().and_then(|figures| figures.counted.clone());
        let figures = Figure::gather(rounds);
        let mut content = json!({
            "subject": name.to_string(), "structure": name.entry.name, "hash": name.hash.map(Hash::name), "allocator": name.allocator,
            "about": name.entry.foreign.then_some(name.entry.about),
            "pages": pages.name(), "kind": kind, "keys": keys, "figures": figures, "sums": sums, "notes": notes,
            "counted": counted,
        });
        if !self.is_uniform() {
            content["distribution"] = json!(self.options.asked.distribution);
        }
        self.bench.record.append("figures", &content)?;
        Ok(Row { name, pages, figures, notes })
    }

    /// Compares the sums of scans and iterations; a subject that differs from the majority is wrong and loses its
    /// figures.
    fn compare_sums(
        &mut self,
        out: &mut impl Write,
        kind: KindName,
        keys: u64,
        arms: &mut Rounds<Who>,
    ) -> io::Result<()> {
        let counts = |who: Who, step: &str| who.0.entry.name != EMPTY && SHARED_SUMS.contains(&step);
        for (who, why) in bench::take_odd(arms, counts) {
            let job = self.job(Task::Measure, who, kind, keys);
            self.leave(out, who, &job, &Outcome::Failed(why))?;
        }
        Ok(())
    }

    /// Lets those grow that are to, of the subjects that are right.
    fn sweep(&mut self, out: &mut impl Write, right: &[Name]) -> io::Result<Vec<Goal>> {
        let sizes = self.sweep.clone();
        let Some(&most) = sizes.last() else { return Ok(Vec::new()) };
        let mut named = in_order(&self.options.sweep_subjects);
        named.retain(|name| right.iter().any(|there| there.to_string() == name.to_string()));
        let (mut rows, mut goals) = (Vec::new(), Vec::new());
        for name in named {
            let who = (name, Pages::Auto);
            let mut job = self.job(Task::Sweep(sizes.clone()), who, KindName::U64, most);
            job.steps = vec![Step::Get, Step::Dependent, Step::Batch];
            let end = self.arm(&job);
            self.leave(out, who, &job, &end)?;
            let Outcome::Figures(figures) = end else { continue };
            let row = self.row(who, "u64, growing", most, vec![*figures])?;
            if name.is(FORREST) {
                goals = goals::of_sweep(&row, &sizes);
            }
            rows.push(row);
        }
        tables::print_sweep(out, &rows, &sizes)?;
        Ok(goals)
    }
}

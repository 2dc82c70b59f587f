//! `kvbench compare`: whether one thing is faster than another, as a verdict and an exit code; and `kvbench calibrate`:
//! how often that verdict is wrong on this machine.

use crate::alloc::Allocator;
use crate::comparable::{self, Alike};
use crate::compare::{self, Compared, Plan, Sides};
use crate::conform;
use crate::data::{KindName, Walk, collect_paths};
use crate::job::{DataFile, Job, Step, Task};
use crate::measure::Clock;
use crate::names::Name;
use crate::options::{Calibrate, Compare, Comparison, MallocPages, Party};
use crate::record::Run;
use crate::recorded;
use crate::runner::Runner;
use crate::statistics::{self, Judged, Verdict};
use crate::tables::{self, NAME_WIDTH};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

/// What two runs at different times may differ by where nothing differs: measured, one after the other, 0.92 to 1.05.
const BETWEEN_RUNS: f64 = 0.08;

/// Threads of the step that uses several.
const THREADS: usize = 2;

/// Compares, prints and records. Returns the verdict on the second side.
pub(crate) fn run(options: &Compare) -> io::Result<Verdict> {
    match (&options.a, &options.b) {
        (Party::Record(a), Party::Record(b)) => {
            of_records(a, b, options.how.margin, options.even_if_different)
        }
        (Party::Record(_), _) | (_, Party::Record(_)) => {
            Err(io::Error::other("a record is compared with a record, and a subject with a subject"))
        }
        _ => of_subjects(options),
    }
}

/// The pairs that both sides have.
struct Pairs {
    data: Option<DataFile>,
    kind: KindName,
    keys: u64,
    /// Paths, if they are made of any.
    walk: Walk,
}

impl Pairs {
    fn of(how: &Comparison) -> io::Result<Pairs> {
        let kind = how.kind();
        if let Some((file, told)) = how.file.told(kind, how.free)? {
            let keys = how.keys.min(told.pairs);
            return Ok(Pairs { data: Some(file), kind, keys, walk: Walk::default() });
        }
        let told =
            |error| io::Error::other(format!("no paths can be read from {}: {error}", how.tree.display()));
        let walk = match kind {
            KindName::U64 => Walk::default(),
            KindName::Strings => collect_paths(&how.tree, how.seed).map_err(told)?,
        };
        Ok(Pairs { data: None, kind, keys: how.keys, walk })
    }

    /// Number of operations of the conformance kit.
    fn ops(&self) -> u64 {
        conform::ops(conform::OPS, if self.data.is_some() { self.keys } else { conform::KEYS })
    }
}

/// The two sides of a comparison. `slowdown` makes the second slower, in percent; each side will have `arms` arms.
fn sides(
    parties: [&Party; 2],
    pairs: &Pairs,
    how: &Comparison,
    slowdown: f64,
    arms: usize,
) -> io::Result<Sides> {
    let [a, b] = parties;
    let ((a_runner, a), (b_runner, b)) =
        (side(a, pairs, how, 0.0, arms)?, side(b, pairs, how, slowdown, arms)?);
    Ok(Sides { runners: [a_runner, b_runner], jobs: [a, b] })
}

fn side(
    party: &Party,
    pairs: &Pairs,
    how: &Comparison,
    slowdown: f64,
    arms: usize,
) -> io::Result<(Runner, Job)> {
    let Party::Subject { program, subject } = party else {
        return Err(io::Error::other("a record is no subject"));
    };
    let mut runner = Runner::new(MallocPages::System)?;
    if let Some(program) = program {
        runner = runner.of(program)?;
    }
    let task = match how.only[..] {
        [Step::Reserve] => Task::Reserve,
        _ if how.only.contains(&Step::Reserve) => {
            return Err(io::Error::other("the step reserve has processes of its own: compare it alone"));
        }
        _ => Task::Measure,
    };
    let job = Job {
        // The other build may have subjects that this one lacks, so that build checks the name.
        allocator: Name::parse(subject).map_or(Allocator::Malloc, |name| name.allocator),
        kind: pairs.kind,
        data: pairs.data.clone(),
        seed: how.seed,
        threads: if how.only.contains(&Step::Threads) { THREADS } else { 1 },
        probes: how.probes,
        steps: how.only.clone(),
        asked: how.asked.clone(),
        margin_bytes: how.free,
        pin: true,
        clock: how.clock,
        slowdown,
        turns: how.turns,
        ..Job::of(task, subject, pairs.keys)
    };
    runner.expect(arms, job.weight());
    Ok((runner, job))
}

fn plan(how: &Comparison, seed: u64) -> Plan {
    Plan {
        blocks: usize::from(how.blocks),
        margin: how.margin / 100.0,
        disturbed_percent_max: how.disturbed,
        seed,
    }
}

fn of_subjects(options: &Compare) -> io::Result<Verdict> {
    let how = &options.how;
    let pairs = Pairs::of(how)?;
    let mut out = io::stdout();
    let kept =
        json!({ "a": options.a.to_string(), "b": options.b.to_string(), "how": how.describe(pairs.keys) });
    let mut record = Run::begin(how.json.as_deref(), kept)?;
    let what = format!("b = {} against a = {}\n{}", options.b, options.a, how.words(pairs.keys));
    record.print_head(&mut out, "compare", how.seed, Some(&what))?;
    let arms = 2 * usize::from(how.blocks);
    let mut sides = sides([&options.a, &options.b], &pairs, how, options.slow_b, arms)?;
    sides.conform(pairs.ops(), &pairs.walk)?;
    let compared = compare::compare(&mut sides, plan(how, how.seed), &pairs.walk)?;
    let verdict = print(&mut out, &compared, how.clock)?;
    record.append("compared", &json!({ "compared": compared, "verdict": verdict }))?;
    Ok(verdict)
}

/// Prints a comparison. Returns the verdict over all figures.
fn print(out: &mut impl Write, compared: &Compared, clock: Clock) -> io::Result<Verdict> {
    if compared.disturbed > 0 {
        writeln!(out, "blocks repeated because other processes used the CPU: {}", compared.disturbed)?;
    }
    if compared.gave_up {
        // With the clock of the CPU only the host of a virtual machine disturbs steps of one thread.
        let cpu = if clock == Clock::Wall { "measure steps of one thread with --clock cpu, or " } else { "" };
        let what = format!(
            "too many, so the result is inconclusive, and the figures below are of fewer blocks. Stop what else runs here, \
             or {cpu}allow more with --disturbed PERCENT"
        );
        writeln!(out, "{}", tables::wrap(&what, 0, 0))?;
    }
    let judged = compared
        .judged
        .iter()
        .map(|(name, judged)| (name.as_str(), judged.as_ref(), compared.counts(name, judged.as_ref())));
    print_figures(out, judged)
}

fn print_figures<'a>(
    out: &mut impl Write,
    figures: impl Iterator<Item = (&'a str, Option<&'a Judged>, Option<Verdict>)>,
) -> io::Result<Verdict> {
    writeln!(
        out,
        "\n{:NAME_WIDTH$}{:>8}  {:17}{:>8}{:>7}  b is",
        "", "b / a", "  interval", "floor", "blocks"
    )?;
    let mut verdicts = Vec::new();
    for (name, judged, counts) in figures {
        verdicts.extend(counts);
        let name = tables::print_name(out, name)?;
        let Some(judged) = judged else {
            writeln!(out, "{name:NAME_WIDTH$}{:>8}  too few figures, or some that are none", "-")?;
            continue;
        };
        let Judged { ratio, low, high, floor, blocks, verdict, .. } = judged;
        let interval = format!("{low:.4} - {high:.4}");
        writeln!(
            out,
            "{name:NAME_WIDTH$}{ratio:8.4}  {interval:17}{floor:8.4}{blocks:7}  {}",
            verdict.name()
        )?;
    }
    let verdict = Verdict::of_all(verdicts);
    writeln!(
        out,
        "\nb is {} (99 % intervals, corrected for several figures;\n\
         the floor is what a comparison with itself shows here)",
        verdict.name()
    )?;
    Ok(verdict)
}

/// Runs of two records that are compared with each other.
struct Matched<'r> {
    runs: Vec<[&'r Alike; 2]>,
    /// What is to be known of them.
    remarks: Vec<String>,
}

/// Matches the runs of two records that were made in the same way. Where those of both are left, what they differ in is
/// an error, unless they are to be compared even so and it is clear which with which.
fn matched<'r>(a: &'r [Alike], b: &'r [Alike], even_if_different: bool) -> Result<Matched<'r>, String> {
    let (mut runs, mut left_b) = (Vec::new(), b.iter().collect::<Vec<_>>());
    let mut left_a: Vec<&Alike> = Vec::new();
    for one in a {
        match left_b.iter().position(|other| one.settings.differences(&other.settings).is_empty()) {
            Some(at) => runs.push([one, left_b.remove(at)]),
            None => left_a.push(one),
        }
    }
    let mut differences = BTreeMap::new();
    for (a, b) in left_a.iter().flat_map(|a| left_b.iter().map(move |b| (a, b))) {
        differences.extend(a.settings.differences(&b.settings));
    }
    let (words, mut remarks) = (comparable::words(&differences), Vec::new());
    match (&left_a[..], &left_b[..]) {
        ([], []) => {}
        ([], more) | (more, []) => {
            remarks.push(format!(
                "Not compared, as only one of the records has such runs: {} of them",
                more.len()
            ));
        }
        _ if !even_if_different => {
            return Err(format!(
                "the runs differ, so their figures cannot be compared: {words}; --even-if-different does it all the same"
            ));
        }
        ([a], [b]) => {
            runs.push([a, b]);
            remarks.push(format!(
                "The runs differ, and a difference of the figures may come from that: {words}"
            ));
        }
        _ => {
            return Err(format!(
                "each record has several runs that differ from each other, so it is not known which to compare: {words}"
            ));
        }
    }
    Ok(Matched { runs, remarks })
}

/// What runs differ in from others of the same record, for the names of their figures.
fn apart(run: &Alike, others: &[[&Alike; 2]]) -> String {
    let mut own = BTreeMap::new();
    for [other, _] in others {
        own.extend(run.settings.differences(&other.settings).into_iter().map(|(name, [own, _])| (name, own)));
    }
    own.into_iter().map(|(name, value)| format!(", {name} {value}")).collect()
}

/// Compares the rounds of two records, figure by figure.
fn of_records(a: &Path, b: &Path, margin: f64, even_if_different: bool) -> io::Result<Verdict> {
    let mut out = io::stdout();
    let (first, second) = (comparable::alike(&recorded::read(a)?), comparable::alike(&recorded::read(b)?));
    let of_files = |what: String| io::Error::other(format!("{} and {}: {what}", a.display(), b.display()));
    let Matched { runs, remarks } = matched(&first, &second, even_if_different).map_err(of_files)?;
    let mut shared = Vec::new();
    for [one, other] in &runs {
        let apart = apart(one, &runs);
        let both = one.rounds.iter().filter_map(|(name, a)| Some((name, a, other.rounds.get(name)?)));
        shared.extend(both.map(|(name, a, b)| (format!("{name}{apart}"), &a[..], &b[..])));
    }
    if shared.is_empty() {
        return Err(of_files("they have no figure in common".to_owned()));
    }
    writeln!(out, "b = {} against a = {}", b.display(), a.display())?;
    writeln!(
        out,
        "Taken at different times: less than {:.0} % is no evidence.\n\
         To be sure, compare the two programs directly.",
        100.0 * BETWEEN_RUNS
    )?;
    for remark in remarks {
        writeln!(out, "{}", tables::wrap(&format!("{remark}."), 0, 0))?;
    }
    let rounds: Vec<_> = shared.iter().map(|(_, a, b)| (*a, *b)).collect();
    let judged = statistics::judge_apart(&rounds, margin / 100.0, BETWEEN_RUNS);
    let figures = shared.iter().zip(&judged);
    print_figures(
        &mut out,
        figures
            .map(|((name, ..), judged)| (name.as_str(), judged.as_ref(), Some(Verdict::of(judged.as_ref())))),
    )
}

/// Compares a subject with itself, and with itself made slower, again and again; true if the verdict is as good as is
/// promised.
pub(crate) fn calibrate(options: &Calibrate) -> io::Result<bool> {
    let how = &options.how;
    let pairs = Pairs::of(how)?;
    let mut out = io::stdout();
    let kept = json!({
        "subject": options.subject.to_string(), "trials": options.trials, "inject_percent": options.inject, "how": how.describe(pairs.keys),
    });
    let mut record = Run::begin(how.json.as_deref(), kept)?;
    let what =
        format!("{} with itself, {} times\n{}", options.subject, options.trials, how.words(pairs.keys));
    record.print_head(&mut out, "calibrate", how.seed, Some(&what))?;
    let mut holds = true;
    for (name, slowdown) in [("itself", 0.0), ("itself, slower", options.inject)] {
        let arms = 2 * usize::from(how.blocks) * usize::from(options.trials);
        let mut sides = sides([&options.subject, &options.subject], &pairs, how, slowdown, arms)?;
        if slowdown == 0.0 {
            sides.conform(pairs.ops(), &pairs.walk)?;
        }
        let mut counts = [0; 4];
        for trial in 0..options.trials {
            let seed = how.seed.wrapping_add(u64::from(trial) << 32);
            let compared = compare::compare(&mut sides, plan(how, seed), &pairs.walk)?;
            counts[compared.verdict() as usize] += 1;
        }
        let [faster, slower, same, inconclusive] = counts;
        let (wrong, limit) = if slowdown == 0.0 {
            (faster + slower, options.trials / 20)
        } else {
            (options.trials - slower, options.trials / 20)
        };
        let verdict = if wrong <= limit { "holds" } else { "missed" };
        writeln!(
            out,
            "{name:16} faster {faster:4}, slower {slower:4}, same {same:4}, inconclusive {inconclusive:4}\n\
             {:16} wrong {wrong} of {}, at most {limit}: {verdict}",
            "", options.trials
        )?;
        let content = json!({
            "against": name, "slowdown_percent": slowdown, "faster": faster, "slower": slower, "same": same,
            "inconclusive": inconclusive, "wrong": wrong, "limit": limit,
        });
        record.append("calibrated", &content)?;
        holds &= wrong <= limit;
    }
    Ok(holds)
}

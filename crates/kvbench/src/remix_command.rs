//! `kvbench remix`: the REMIX by itself beside a merging iterator over the same tables, as the
//! ancestor's is measured, and how far the project's goals are met.
//!
//! Each number of runs with one locality is an arm: a process and a directory of its own, in which all ways of reading
//! take turns over the same tables.

use crate::data::Walk;
use crate::job::{Figures, Job, Locality, Outcome, RemixOrders, RemixStep as Step, Task};
use crate::measure::Clock;
use crate::options::{MallocPages, Remixes};
use crate::record::{Figure, Run};
use crate::remix_report::{self, Row};
use crate::runner::{self, Runner};
use crate::workplace::Workplace;
use crate::{goals, remix};
use clap::ValueEnum;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// What the arms and the records are called.
const SUBJECT: &str = "remix";

struct Bench<'a> {
    options: &'a Remixes,
    steps: Vec<Step>,
    directory: Workplace,
    runner: Runner,
    record: Run,
    failures: usize,
}

/// Measures, prints, records; true if nothing went wrong.
pub(crate) fn run(options: &Remixes) -> io::Result<bool> {
    let steps = if options.only.is_empty() { Step::value_variants().to_vec() } else { options.only.clone() };
    let directory = Workplace::new(options.directory.as_deref())?;
    let kept = json!({
        "seed": options.seed, "rounds": options.rounds, "probes": options.probes, "steps": steps,
        "stretch": remix::STRETCH, "next": remix::STEPS,
    });
    let record = Run::begin(options.json.as_deref(), kept)?;
    let arms = options.keys.len() * options.localities.len() * options.runs.len();
    let runner = Runner::new(MallocPages::System, arms)?;
    Bench { options, steps, directory, runner, record, failures: 0 }.run()
}

impl Bench<'_> {
    fn run(mut self) -> io::Result<bool> {
        let (mut out, options) = (io::stdout(), self.options);
        self.print_head(&mut out)?;
        let mut judged = Vec::new();
        for &keys in &options.keys {
            let mut rows = Vec::new();
            for &locality in &options.localities {
                for &runs in &options.runs {
                    rows.extend(self.row(&mut out, keys, locality, runs)?);
                }
                remix_report::print(&mut out, keys, locality, &rows)?;
                out.flush()?;
            }
            judged.extend(remix_report::goals(keys, &rows));
        }
        remix_report::print_legend(&mut out)?;
        goals::conclude(&mut out, &mut self.record, &judged, self.failures)
    }

    fn print_head(&self, out: &mut impl Write) -> io::Result<()> {
        let what = format!(
            "pairs of 16 + 100 random bytes, all in memory, one thread; medians of {} rounds",
            self.options.rounds
        );
        self.record.print_head(out, "remix", self.options.seed, Some(&what))
    }

    /// Measures one number of runs; `None` if that came to nothing.
    fn row(
        &mut self,
        out: &mut impl Write,
        keys: u64,
        locality: Locality,
        runs: u16,
    ) -> io::Result<Option<Row>> {
        let (what, why) = match self.arm(keys, locality, runs)? {
            Outcome::Figures(figures) => return self.keep(keys, locality, runs, *figures).map(Some),
            Outcome::Left(why) => ("left out", why),
            Outcome::Failed(why) => ("FAILED", why),
        };
        let failed = what == "FAILED";
        self.failures += usize::from(failed);
        writeln!(out, "{runs} runs, {}: {what}: {why}", runner::keys(keys))?;
        let content = json!({
            "subject": SUBJECT, "kind": SUBJECT, "keys": keys, "locality": locality, "runs": runs, "failed": failed,
            "why": why,
        });
        self.record.append("left_out", &content)?;
        Ok(None)
    }

    fn arm(&mut self, keys: u64, locality: Locality, runs: u16) -> io::Result<Outcome> {
        let options = self.options;
        let directory = self.directory.path().join(SUBJECT);
        std::fs::create_dir(&directory)?;
        let orders = RemixOrders {
            directory: directory.clone(),
            runs: runs.into(),
            locality,
            rounds: options.rounds,
            steps: self.steps.clone(),
        };
        let job = Job {
            seed: options.seed,
            probes: options.probes,
            pin: !options.no_pin,
            clock: Clock::Cpu,
            ..Job::of(Task::Remix(orders), SUBJECT, keys)
        };
        let outcome = self.runner.arm(&job, &Walk::default());
        std::fs::remove_dir_all(&directory)?;
        Ok(outcome)
    }

    /// Gathers the figures of an arm, and records them.
    fn keep(&mut self, keys: u64, locality: Locality, runs: u16, figures: Figures) -> io::Result<Row> {
        let single = figures.values.into_iter().map(|(name, value)| (name, Figure::new(vec![value])));
        let rounds = figures.rounds.into_iter().map(|(name, rounds)| (name, Figure::new(rounds)));
        let figures: BTreeMap<_, _> = single.chain(rounds).collect();
        let content = json!({
            "subject": SUBJECT, "kind": SUBJECT, "keys": keys, "locality": locality, "runs": runs, "figures": figures,
        });
        self.record.append("figures", &content)?;
        Ok(Row { locality, runs, figures })
    }
}

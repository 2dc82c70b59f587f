//! `kvbench remix`: the REMIX by itself beside a merging iterator over the same tables, as the
//! ancestor's is measured, and how far the project's goals are met.
//!
//! Each number of runs with one locality is an arm: a process and a directory of its own, in which all ways of reading
//! take turns over the same tables.

use crate::bench::Bench;
use crate::data::Walk;
use crate::job::{Figures, Job, Locality, Outcome, RemixOrders, RemixStep as Step, Task};
use crate::measure::Clock;
use crate::options::{MallocPages, Remixes};
use crate::record::Figure;
use crate::remix_report::{self, Row};
use crate::runner;
use crate::workplace::Workplace;
use crate::{goals, remix};
use clap::ValueEnum;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// What the arms and the records are called.
const SUBJECT: &str = "remix";

struct Remixing<'a> {
    options: &'a Remixes,
    steps: Vec<Step>,
    directory: Workplace,
    bench: Bench,
}

/// Measures, prints, records; true if nothing went wrong.
pub(crate) fn run(options: &Remixes) -> io::Result<bool> {
    let steps = if options.only.is_empty() { Step::value_variants().to_vec() } else { options.only.clone() };
    let directory = Workplace::new(options.directory.as_deref())?;
    let kept = json!({
        "seed": options.seed, "rounds": options.rounds, "probes": options.probes, "steps": steps,
        "stretch": remix::STRETCH, "next": remix::STEPS,
    });
    let mut bench = Bench::begin(options.json.as_deref(), kept, MallocPages::System)?;
    let arms = options.localities.len() * options.runs.len();
    options.keys.iter().for_each(|keys| bench.runner.expect(arms, *keys));
    Remixing { options, steps, directory, bench }.run()
}

impl Remixing<'_> {
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
        goals::conclude(&mut out, &mut self.bench.record, &judged, self.bench.failures)
    }

    fn print_head(&self, out: &mut impl Write) -> io::Result<()> {
        let what = format!(
            "pairs of 16 + 100 random bytes, all in memory, one thread; medians of {} rounds",
            self.options.rounds
        );
        self.bench.record.print_head(out, "remix", self.options.seed, Some(&what))
    }

    /// Measures one number of runs; `None` if that came to nothing.
    fn row(
        &mut self,
        out: &mut impl Write,
        keys: u64,
        locality: Locality,
        runs: u16,
    ) -> io::Result<Option<Row>> {
        let content = json!({
            "subject": SUBJECT, "kind": SUBJECT, "keys": keys, "locality": locality, "runs": runs,
        });
        let (who, end) = (format!("{runs} runs, {}", runner::keys(keys)), self.arm(keys, locality, runs)?);
        let figures = self.bench.figures(out, &who, content, end)?;
        figures.map(|figures| self.keep(keys, locality, runs, figures)).transpose()
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
        let outcome = self.bench.runner.arm(&job, &Walk::default());
        std::fs::remove_dir_all(&directory)?;
        Ok(outcome)
    }

    /// Gathers the figures of an arm, and records them.
    fn keep(&mut self, keys: u64, locality: Locality, runs: u16, figures: Figures) -> io::Result<Row> {
        let rounds = figures.rounds.clone().into_iter().map(|(name, rounds)| (name, Figure::new(rounds)));
        let figures: BTreeMap<_, _> = Figure::gather(vec![figures]).into_iter().chain(rounds).collect();
        let content = json!({
            "subject": SUBJECT, "kind": SUBJECT, "keys": keys, "locality": locality, "runs": runs, "figures": figures,
        });
        self.bench.record.append("figures", &content)?;
        Ok(Row { locality, runs, figures })
    }
}

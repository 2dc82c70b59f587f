//! `kvbench store`: stores on disk side by side, and how far the project's goals for its own are met.
//!
//! Each arm has a process and a directory of its own. The directory is removed when its arm has ended.

use crate::data::Walk;
use crate::job::{Figures, Job, Orders, Outcome, StoreStep as Step, Task};
use crate::options::{MallocPages, Stores};
use crate::record::{Figure, Run};
use crate::runner::{self, Runner};
use crate::store_report::{self, Row};
use crate::stores::{ENTRIES, Entry, not_compiled, pairs};
use crate::workplace::Workplace;
use crate::{goals, machine};
use clap::ValueEnum;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;

/// What was measured of a store, round by round.
type Rounds = (&'static Entry, Vec<Figures>);

struct Bench<'a> {
    options: &'a Stores,
    steps: Vec<Step>,
    directory: Workplace,
    runner: Runner,
    record: Run,
    failures: usize,
}

/// Measures, prints, records; true if nothing went wrong.
pub(crate) fn run(options: &Stores) -> io::Result<bool> {
    let steps = if options.only.is_empty() { Step::value_variants().to_vec() } else { options.only.clone() };
    let directory = Workplace::new(options.directory.as_deref())?;
    let kept = json!({
        "seed": options.seed, "rounds": options.rounds, "probes": options.probes, "synced": options.synced,
        "budget_bytes": options.budget, "steps": steps, "key_bytes": pairs::KEY_BYTES,
        "value_bytes": pairs::VALUE_BYTES,
    });
    let record = Run::begin(options.json.as_deref(), kept)?;
    let runner = Runner::new(MallocPages::System, 0)?;
    Bench { options, steps, directory, runner, record, failures: 0 }.run()
}

impl Bench<'_> {
    fn run(mut self) -> io::Result<bool> {
        let mut out = io::stdout();
        self.print_head(&mut out)?;
        let entries = self.entries(&mut out)?;
        self.runner.arms = entries.len() * self.options.keys.len() * usize::from(self.options.rounds);
        let mut judged = Vec::new();
        for &keys in &self.options.keys {
            let arms = self.measure(&mut out, &entries, keys)?;
            self.compare_sums(&mut out, keys, &arms)?;
            let mut rows = Vec::new();
            for (entry, rounds) in arms.into_iter().filter(|(_, rounds)| !rounds.is_empty()) {
                rows.push(self.row(entry, keys, rounds)?);
            }
            store_report::print(&mut out, keys, &rows)?;
            judged.extend(store_report::goals(keys, &rows));
            out.flush()?;
        }
        store_report::print_legend(&mut out)?;
        goals::conclude(&mut out, &mut self.record, &judged, self.failures)
    }

    fn print_head(&self, out: &mut impl Write) -> io::Result<()> {
        let what = format!(
            "pairs of 16 + 100 random bytes, nothing compressed, {} for each store, in {}",
            machine::gib(self.options.budget),
            self.directory.path().parent().unwrap_or(self.directory.path()).display()
        );
        self.record.print_head(out, "store", self.options.seed, Some(&what))
    }

    /// The stores that were asked for and that this program has.
    fn entries(&mut self, out: &mut impl Write) -> io::Result<Vec<&'static Entry>> {
        let named = |entry: &&Entry| {
            self.options.subjects.is_empty() || self.options.subjects.iter().any(|name| name == entry.name)
        };
        let wanted = |entry: &&Entry| named(entry) && !(self.options.no_rocksdb && entry.name == "rocksdb");
        let mut there = Vec::new();
        for entry in ENTRIES.iter().filter(wanted) {
            match entry.run {
                Ok(_) => there.push(entry),
                Err(feature) => self.leave(out, entry, None, &Outcome::Left(not_compiled(feature)))?,
            }
        }
        Ok(there)
    }

    fn measure(
        &mut self,
        out: &mut impl Write,
        entries: &[&'static Entry],
        keys: u64,
    ) -> io::Result<Vec<Rounds>> {
        let mut arms: Vec<Rounds> = entries.iter().map(|&entry| (entry, Vec::new())).collect();
        for round in 0..self.options.rounds {
            // There and back again, so that a drift of the machine favours nobody.
            let order: Vec<_> =
                if round % 2 == 0 { (0..arms.len()).collect() } else { (0..arms.len()).rev().collect() };
            for at in order {
                let (entry, rounds) = &mut arms[at];
                if rounds.len() < usize::from(round) {
                    continue;
                }
                let end = self.arm(entry, keys)?;
                self.leave(out, entry, Some(keys), &end)?;
                match end {
                    Outcome::Figures(figures) => rounds.push(figures),
                    // Who was wrong once has no figures at all.
                    Outcome::Failed(_) => rounds.clear(),
                    Outcome::Left(_) => {}
                }
            }
        }
        Ok(arms)
    }

    fn arm(&mut self, entry: &Entry, keys: u64) -> io::Result<Outcome> {
        let options = self.options;
        let directory: PathBuf = self.directory.path().join(entry.name);
        std::fs::create_dir(&directory)?;
        let orders = Orders {
            directory: directory.clone(),
            budget_bytes: options.budget,
            synced: options.synced,
            steps: self.steps.clone(),
        };
        let job = Job {
            seed: options.seed,
            probes: options.probes,
            ..Job::of(Task::Store(orders), entry.name, keys)
        };
        let outcome = self.runner.arm(&job, &Walk::default());
        std::fs::remove_dir_all(&directory)?;
        Ok(outcome)
    }

    /// Says why a store has no figures; a wrong one counts as a failure.
    fn leave(
        &mut self,
        out: &mut impl Write,
        entry: &Entry,
        keys: Option<u64>,
        end: &Outcome,
    ) -> io::Result<()> {
        let (what, why, failed) = match end {
            Outcome::Figures(_) => return Ok(()),
            Outcome::Left(why) => ("left out", why, false),
            Outcome::Failed(why) => ("FAILED", why, true),
        };
        self.failures += usize::from(failed);
        let size = keys.map_or_else(String::new, |keys| format!(", {}", runner::keys(keys)));
        writeln!(out, "{}{size}: {what}: {why}", entry.name)?;
        let content =
            json!({ "subject": entry.name, "kind": "store", "keys": keys, "failed": failed, "why": why });
        self.record.append("left_out", &content)
    }

    /// Gathers the rounds of a store, and records them.
    fn row(&mut self, entry: &'static Entry, keys: u64, rounds: Vec<Figures>) -> io::Result<Row> {
        let sums = rounds.last().map_or_else(BTreeMap::new, |last| last.sums.clone());
        // As text: the numbers of JSON readers are rarely 64 bits wide.
        let sums: BTreeMap<_, _> = sums.into_iter().map(|(name, sum)| (name, format!("{sum:x}"))).collect();
        let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for (name, value) in rounds.into_iter().flat_map(|figures| figures.values) {
            values.entry(name).or_default().push(value);
        }
        let figures: BTreeMap<_, _> =
            values.into_iter().map(|(name, rounds)| (name, Figure::new(rounds))).collect();
        let content = json!({
            "subject": entry.name, "kind": "store", "keys": keys, "figures": figures, "sums": sums,
        });
        self.record.append("figures", &content)?;
        Ok(Row { name: entry.name, figures })
    }

    /// What the stores showed in scans must be the same; who differs from most was wrong.
    fn compare_sums(&mut self, out: &mut impl Write, keys: u64, arms: &[Rounds]) -> io::Result<()> {
        let mut votes: BTreeMap<&str, BTreeMap<u64, usize>> = BTreeMap::new();
        let all = || arms.iter().flat_map(|(entry, rounds)| rounds.iter().map(move |f| (*entry, f)));
        for (step, sum) in all().flat_map(|(_, figures)| &figures.sums) {
            *votes.entry(step).or_default().entry(*sum).or_default() += 1;
        }
        for (step, votes) in votes {
            let Some((&right, _)) = votes.iter().max_by_key(|(_, votes)| **votes) else { continue };
            for (entry, figures) in all() {
                if let Some(sum) = figures.sums.get(step).filter(|sum| **sum != right) {
                    let why = format!("{step}: what it showed sums to {sum:x}, that of most to {right:x}");
                    self.leave(out, entry, Some(keys), &Outcome::Failed(why))?;
                }
            }
        }
        Ok(())
    }
}

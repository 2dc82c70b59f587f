//! `kvbench store`: stores on disk side by side, and how far the project's goals for its own are met.
//!
//! Each arm has a process and a directory of its own. The directory is removed when its arm has ended.

use crate::cap::Cap;
use crate::data::Walk;
use crate::job::{Durability, Figures, Job, Life, Orders, Outcome, StoreStep as Step, TIMELINE_MS, Task};
use crate::options::{MallocPages, Stores};
use crate::record::{Figure, Run};
use crate::runner::{self, Runner};
use crate::store_report::{self, Row};
use crate::stores::{self, ENTRIES, StoreEntry, not_compiled, pairs};
use crate::workplace::Workplace;
use crate::{goals, sizes};
use clap::ValueEnum;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

/// A store, what its writes are asked to survive, and what they do.
#[derive(Clone, Copy)]
struct Who {
    entry: &'static StoreEntry,
    run: stores::Run,
    asked: Durability,
}

impl Who {
    /// What its writes survive.
    fn durability(self) -> Durability {
        self.run.offered(self.asked)
    }

    /// The head of its column.
    fn label(self) -> String {
        let (name, had) = (self.entry.name, self.durability());
        if had == self.asked { name.to_owned() } else { format!("{name}/{}", had.name()) }
    }
}

/// What was measured of a store, round by round.
type Rounds = (Who, Vec<Figures>);

/// Arms of a store that is opened again as well: whole, closed and opened, killed, recovered.
const LIVES: usize = 4;

/// The figures of two arms of one store, or how one of them ended instead.
fn joined(first: Outcome, second: Outcome) -> Outcome {
    match (first, second) {
        (Outcome::Figures(mut first), Outcome::Figures(second)) => {
            first.values.extend(second.values);
            Outcome::Figures(first)
        }
        (Outcome::Figures(_), other) | (other, _) => other,
    }
}

struct Bench<'a> {
    options: &'a Stores,
    steps: Vec<Step>,
    directory: Workplace,
    /// What limits the memory of the arms, if anything does.
    cap: Option<Cap>,
    runner: Runner,
    record: Run,
    failures: usize,
}

/// Measures, prints, records; true if nothing went wrong.
pub(crate) fn run(options: &Stores) -> io::Result<bool> {
    let steps = if options.only.is_empty() { Step::value_variants().to_vec() } else { options.only.clone() };
    if let Some(memory) = options.memory.filter(|memory| *memory < options.budget) {
        let (memory, budget) = (sizes::text(memory), sizes::text(options.budget));
        let what = format!(
            "a budget of {budget} for each store is more than the memory of {memory}: name a smaller --budget"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    let cap = options.memory.map(Cap::new).transpose()?;
    let group = cap.as_ref().map(Cap::group);
    let directory = Workplace::with_group(options.directory.as_deref(), group)?;
    let kept = json!({
        "seed": options.seed, "rounds": options.rounds, "probes": options.probes, "synced": options.synced,
        "budget_bytes": options.budget, "memory_bytes": options.memory, "steps": steps, "key_bytes": pairs::KEY_BYTES,
        "value_bytes": pairs::VALUE_BYTES, "durability": options.durability,
    });
    let record = Run::begin(options.json.as_deref(), kept)?;
    let runner = Runner::new(MallocPages::System, 0)?;
    Bench { options, steps, directory, cap, runner, record, failures: 0 }.run()
}

impl Bench<'_> {
    fn run(mut self) -> io::Result<bool> {
        let mut out = io::stdout();
        self.print_head(&mut out)?;
        let entries = self.entries(&mut out)?;
        let lives = if self.steps.contains(&Step::Reopen) { LIVES } else { 1 };
        let groups = self.options.keys.len() * self.options.durability.len();
        self.runner.arms = entries.len() * groups * usize::from(self.options.rounds) * lives;
        let mut judged = Vec::new();
        let all = self
            .options
            .keys
            .iter()
            .flat_map(|keys| self.options.durability.iter().map(|durability| (*keys, *durability)));
        for (keys, asked) in all {
            let who = entries.iter().map(|&(entry, run)| Who { entry, run, asked }).collect();
            let arms = self.measure(&mut out, who, keys)?;
            self.compare_sums(&mut out, keys, &arms)?;
            let mut rows = Vec::new();
            for (who, rounds) in arms.into_iter().filter(|(_, rounds)| !rounds.is_empty()) {
                rows.push(self.row(who, keys, rounds)?);
            }
            store_report::print(&mut out, keys, asked, &rows)?;
            if asked == Durability::Process {
                judged.extend(store_report::goals(keys, &rows));
            }
            out.flush()?;
        }
        store_report::print_legend(&mut out)?;
        goals::conclude(&mut out, &mut self.record, &judged, self.failures)
    }

    fn print_head(&self, out: &mut impl Write) -> io::Result<()> {
        let what = format!(
            "pairs of 16 + 100 random bytes, nothing compressed, {} for each store{}, in {}",
            sizes::text(self.options.budget),
            self.options.memory.map_or_else(String::new, |memory| format!(
                " and at most {} with the page cache of its files",
                sizes::text(memory)
            )),
            self.directory.path().parent().unwrap_or(self.directory.path()).display()
        );
        self.record.print_head(out, "store", self.options.seed, Some(&what))
    }

    /// The stores that were asked for and that this program has.
    fn entries(&mut self, out: &mut impl Write) -> io::Result<Vec<(&'static StoreEntry, stores::Run)>> {
        let named = |entry: &&StoreEntry| {
            self.options.subjects.is_empty() || self.options.subjects.iter().any(|name| name == entry.name)
        };
        let wanted =
            |entry: &&StoreEntry| named(entry) && !(self.options.no_rocksdb && entry.name == "rocksdb");
        let mut there = Vec::new();
        for entry in ENTRIES.iter().filter(wanted) {
            match entry.run {
                Ok(run) => there.push((entry, run)),
                Err(feature) => self.leave(out, entry.name, None, &Outcome::Left(not_compiled(feature)))?,
            }
        }
        Ok(there)
    }

    fn measure(&mut self, out: &mut impl Write, who: Vec<Who>, keys: u64) -> io::Result<Vec<Rounds>> {
        let mut arms: Vec<Rounds> = who.into_iter().map(|who| (who, Vec::new())).collect();
        self.runner.live.begin(Some(store_report::head_across()));
        for round in 0..self.options.rounds {
            // The order is reversed in every other round, so that a drift of the machine favours no store.
            let order: Vec<_> =
                if round % 2 == 0 { (0..arms.len()).collect() } else { (0..arms.len()).rev().collect() };
            for at in order {
                let (who, rounds) = &mut arms[at];
                if rounds.len() < usize::from(round) {
                    continue;
                }
                let end = self.lives(*who, keys)?;
                self.leave(out, &who.label(), Some(keys), &end)?;
                match end {
                    Outcome::Figures(figures) => {
                        self.runner.live.row(store_report::line_across(&who.label(), &figures.values));
                        rounds.push(*figures);
                    }
                    // A store that failed once gets no figures.
                    Outcome::Failed(_) => rounds.clear(),
                    Outcome::Left(_) => {}
                }
            }
        }
        self.runner.live.begin(None);
        Ok(arms)
    }

    /// Measures a store, and then how it opens again, if that was asked for.
    fn lives(&mut self, who: Who, keys: u64) -> io::Result<Outcome> {
        let directory = self.directory.path().join(who.entry.name);
        std::fs::create_dir(&directory)?;
        let mut end = self.arm(who, keys, &directory, Life::Whole);
        if let Outcome::Figures(figures) = &end
            && self.steps.contains(&Step::Reopen)
        {
            let sum = |name: &str| figures.sums.get(name).copied().unwrap_or_default();
            let closed = Life::Reopened { pairs: sum("pairs"), sum: sum("content") };
            let opened = self.arm(who, keys, &directory, closed);
            end = joined(end, opened);
            std::fs::remove_dir_all(&directory)?;
            std::fs::create_dir(&directory)?;
            let loaded = keys.min(self.options.probes);
            end = match self.arm(who, loaded, &directory, Life::Killed) {
                Outcome::Figures(_) => joined(end, self.arm(who, loaded, &directory, Life::Recovered)),
                other => other,
            };
        }
        std::fs::remove_dir_all(&directory)?;
        Ok(end)
    }

    fn arm(&mut self, who: Who, keys: u64, directory: &Path, life: Life) -> Outcome {
        let options = self.options;
        let orders = Orders {
            directory: directory.to_owned(),
            budget_bytes: options.budget,
            group: self.cap.as_ref().map(|cap| cap.group().to_owned()),
            durability: who.durability(),
            life,
            synced: options.synced,
            steps: self.steps.clone(),
        };
        let job = Job {
            seed: options.seed,
            probes: options.probes,
            ..Job::of(Task::Store(orders), who.entry.name, keys)
        };
        let killed = || self.cap.as_ref().map_or(0, Cap::killed);
        let before = killed();
        let end = self.runner.arm(&job, &Walk::default());
        match options.memory.filter(|_| killed() > before) {
            Some(memory) => Outcome::Left(format!("it needs more memory than {}", sizes::text(memory))),
            None => end,
        }
    }

    /// Reports why a store has no figures; a wrong result counts as a failure.
    fn leave(
        &mut self,
        out: &mut impl Write,
        store: &str,
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
        writeln!(out, "{store}{size}: {what}: {why}")?;
        let content =
            json!({ "subject": store, "kind": "store", "keys": keys, "failed": failed, "why": why });
        self.record.append("left_out", &content)
    }

    /// Gathers the rounds of a store, and records them.
    fn row(&mut self, who: Who, keys: u64, rounds: Vec<Figures>) -> io::Result<Row> {
        let timelines = rounds.last().map_or_else(BTreeMap::new, |last| last.timelines.clone());
        let sums = rounds.last().map_or_else(BTreeMap::new, |last| last.sums.clone());
        // As text: the numbers of JSON readers are rarely 64 bits wide.
        let sums: BTreeMap<_, _> = sums.into_iter().map(|(name, sum)| (name, format!("{sum:x}"))).collect();
        let figures = Figure::gather(rounds);
        let content = json!({
            "subject": who.entry.name, "kind": "store", "keys": keys, "durability": who.asked,
            "durability_had": who.durability(), "figures": figures, "sums": sums,
            "timeline_ms": TIMELINE_MS, "timelines": timelines,
        });
        self.record.append("figures", &content)?;
        Ok(Row { name: who.entry.name, label: who.label(), figures })
    }

    /// Compares the sums of scans; a store that differs from the majority is wrong.
    fn compare_sums(&mut self, out: &mut impl Write, keys: u64, arms: &[Rounds]) -> io::Result<()> {
        let mut votes: BTreeMap<&str, BTreeMap<u64, usize>> = BTreeMap::new();
        let all = || arms.iter().flat_map(|(who, rounds)| rounds.iter().map(move |f| (*who, f)));
        for (step, sum) in all().flat_map(|(_, figures)| &figures.sums) {
            *votes.entry(step).or_default().entry(*sum).or_default() += 1;
        }
        for (step, votes) in votes {
            let Some((&right, _)) = votes.iter().max_by_key(|(_, votes)| **votes) else { continue };
            for (who, figures) in all() {
                if let Some(sum) = figures.sums.get(step).filter(|sum| **sum != right) {
                    let why = format!("{step}: what it showed sums to {sum:x}, that of most to {right:x}");
                    self.leave(out, &who.label(), Some(keys), &Outcome::Failed(why))?;
                }
            }
        }
        Ok(())
    }
}

//! `kvbench store`: stores on disk side by side, and how far the project's goals for its own are met.
//!
//! Each arm has a process and a directory of its own. The directory is removed when its arm has ended.

use crate::bench::{self, Bench};
use crate::cap::Cap;
use crate::job::{
    Compression, DataFile, Durability, Figures, Job, Life, Orders, Outcome, StoreStep as Step, StoreValues,
    TIMELINE_MS, Task,
};
use crate::options::{MallocPages, Stores};
use crate::record::{Figure, Run};
use crate::recorded;
use crate::runner::{self, Runner};
use crate::store_report::{self, Row};
use crate::stores::file_keys::{self, FileKeys, KEY_BYTES_MAX};
use crate::stores::{self, ENTRIES, StoreEntry, not_compiled, pairs};
use crate::workplace::Workplace;
use crate::{goals, sizes};
use clap::ValueEnum;
use serde_json::{Value, json};
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

/// Pairs, if no number is asked for.
const KEYS: u64 = 5_000_000;
/// Of a file, one key in this number is left to insertions, if no number of pairs is asked for.
const LEFT_SHARE: u64 = 100;
/// Memory that must stay free when a file is loaded, in bytes.
const MARGIN_BYTES: u64 = 1 << 30;

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

struct Measuring<'a> {
    options: &'a Stores,
    keys: Vec<u64>,
    steps: Vec<Step>,
    /// A file in place of random keys, and what it has.
    data: Option<(DataFile, file_keys::Told)>,
    directory: Workplace,
    /// What limits the memory of the arms, if anything does.
    cap: Option<Cap>,
    bench: Bench,
    /// What the run measured before it was ended and resumed.
    had: Vec<recorded::Row>,
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
    let load = |file: DataFile| {
        let told = FileKeys::load(&file, MARGIN_BYTES, options.seed)?.told;
        io::Result::Ok((file, told))
    };
    let data = options.data()?.map(load).transpose()?;
    let keys = match (&data, options.keys.iter().max()) {
        (Some((_, told)), Some(most)) if *most > told.keys => {
            let what = format!("{most} pairs are asked for, the file has {} keys for them", told.keys);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        (_, Some(_)) => options.keys.clone(),
        (Some((_, told)), None) => vec![(told.keys - told.keys.div_ceil(LEFT_SHARE)).max(1)],
        (None, None) => vec![KEYS],
    };
    let cap = options.memory.map(Cap::new).transpose()?;
    let group = cap.as_ref().map(Cap::group);
    let directory = Workplace::with_group(options.directory.as_deref(), group)?;
    let kept = json!({
        "seed": options.seed, "rounds": options.rounds, "probes": options.probes, "synced": options.synced,
        "warm_up": options.warm_up,
        "budget_bytes": options.budget, "memory_bytes": options.memory, "steps": steps,
        "key_bytes": data.is_none().then_some(pairs::KEY_BYTES), "value_bytes": pairs::VALUE_BYTES,
        "durability": options.durability, "compression": options.compression, "values": options.values,
        "data": data.as_ref().map(|(file, told)| json!({
            "file": file.path, "format": file.format, "keys": told.keys, "key_bytes": told.key_bytes,
            "repeated": told.repeated, "left_out": told.left_out, "checksum": format!("{:016x}", told.checksum),
        })),
    });
    let begun = match options.json.as_deref().filter(|path| options.resume && path.exists()) {
        Some(path) => recorded::begun(path, "store", &kept)?.map(|begun| (path, begun)),
        None => None,
    };
    let (record, had) = match begun {
        Some((path, (run, had))) => (Run::resume(path, run.run, run.date)?, had),
        None => (Run::begin(options.json.as_deref(), kept)?, Vec::new()),
    };
    let bench = Bench { runner: Runner::new(MallocPages::System)?, record, failures: 0 };
    Measuring { options, keys, steps, data, directory, cap, bench, had }.run()
}

impl Measuring<'_> {
    fn run(mut self) -> io::Result<bool> {
        let mut out = io::stdout();
        self.print_head(&mut out)?;
        let entries = self.entries(&mut out)?;
        let all = self
            .keys
            .iter()
            .flat_map(|keys| self.options.durability.iter().map(move |asked| (*keys, *asked)));
        for (keys, asked) in all {
            let is_left = |&&(entry, run): &&(_, _)| self.had(Who { entry, run, asked }, keys).is_none();
            let rounds = entries.iter().filter(is_left).count() * usize::from(self.options.rounds);
            if self.steps.contains(&Step::Reopen) {
                // Whole, closed and opened; killed and recovered.
                self.bench.runner.expect(2 * rounds, keys);
                self.bench.runner.expect(2 * rounds, keys.min(self.options.probes));
            } else {
                self.bench.runner.expect(rounds, keys);
            }
        }
        let mut judged = Vec::new();
        let of = self.data.as_ref().and_then(|(file, _)| file.path.file_name());
        let of = of.map(|name| name.to_string_lossy().into_owned());
        let durability = &self.options.durability;
        let all = self.keys.clone().into_iter();
        let all = all.flat_map(|keys| durability.iter().map(move |durability| (keys, *durability)));
        for (keys, asked) in all {
            let who = entries.iter().map(|&(entry, run)| Who { entry, run, asked }).collect();
            let mut arms = self.measure(&mut out, who, keys)?;
            for (who, why) in bench::take_odd(&mut arms, |_, _| true) {
                self.leave(&mut out, who, keys, &Outcome::Failed(why))?;
            }
            let measured = arms.into_iter().filter(|(_, rounds)| !rounds.is_empty());
            let rows: Vec<_> = measured
                .map(|(who, rounds)| Row {
                    name: who.entry.name,
                    label: who.label(),
                    figures: Figure::gather(rounds),
                })
                .collect();
            store_report::print(&mut out, keys, of.as_deref(), asked, &rows)?;
            // They are about random keys.
            if asked == Durability::Process && self.data.is_none() {
                let limited_budget = self.options.memory.map(|_| self.options.budget);
                judged.extend(store_report::goals(keys, &rows, limited_budget));
            }
            out.flush()?;
        }
        store_report::print_legend(&mut out)?;
        goals::conclude(&mut out, &mut self.bench.record, &judged, self.bench.failures)
    }

    fn print_head(&self, out: &mut impl Write) -> io::Result<()> {
        let values = match (&self.data, self.options.values) {
            (None, StoreValues::Random) => "16 + 100 random bytes",
            (None, StoreValues::Events) => "16 random bytes and events of 100 bytes",
            (Some(_), StoreValues::Random) => "the file's keys and 100 random bytes",
            (Some(_), StoreValues::Events) => "the file's keys and events of 100 bytes",
        };
        let data = self.data.as_ref().map_or_else(String::new, |(file, told)| {
            format!(
                "keys: {} ({}), {} different ones of {:.1} bytes in the mean; {} repeated; {} left out, empty or above \
                 {KEY_BYTES_MAX} bytes\n",
                file.path.display(),
                file.format.name(),
                told.keys,
                told.key_bytes as f64 / told.keys as f64,
                told.repeated,
                told.left_out
            )
        });
        let compressed = match self.options.compression {
            Compression::None => "nothing compressed",
            Compression::Lz4 => "compressed with LZ4",
        };
        let what = format!(
            "{data}pairs of {values}, {compressed}, {} for each store{}, in {}",
            sizes::text(self.options.budget),
            self.options.memory.map_or_else(String::new, |memory| format!(
                " and at most {} with the page cache of its files",
                sizes::text(memory)
            )),
            self.directory.within().display()
        );
        self.bench.record.print_head(out, "store", self.options.seed, Some(&what))
    }

    /// The stores that were asked for and that this program has.
    fn entries(&mut self, out: &mut impl Write) -> io::Result<Vec<(&'static StoreEntry, stores::Run)>> {
        let named = |entry: &&StoreEntry| {
            let is_named = self.options.subjects.iter().any(|name| name == entry.name);
            is_named || (self.options.subjects.is_empty() && entry.name != stores::ENCRYPTED)
        };
        let wanted =
            |entry: &&StoreEntry| named(entry) && !(self.options.no_rocksdb && entry.name == "rocksdb");
        let mut there = Vec::new();
        for entry in ENTRIES.iter().filter(wanted) {
            match entry.run {
                Ok(run) if self.options.compression != Compression::None && !run.compresses => {
                    self.leave_all(out, entry.name, "it does not compress".to_owned())?;
                }
                Ok(run) => there.push((entry, run)),
                Err(feature) => self.leave_all(out, entry.name, not_compiled(feature))?,
            }
        }
        Ok(there)
    }

    /// What the run has of this store.
    fn had(&self, who: Who, keys: u64) -> Option<&recorded::Row> {
        let is_that = |row: &recorded::Row, name: &str, durability: Durability| {
            row.more(name).and_then(Value::as_str) == Some(durability.name())
        };
        self.had.iter().find(|row| {
            (row.subject.as_str(), row.keys) == (who.entry.name, keys)
                && is_that(row, "durability", who.asked)
                && is_that(row, "durability_had", who.durability())
        })
    }

    /// Measures the stores and records each one when its last round has ended: a run that is ended keeps the others.
    fn measure(&mut self, out: &mut impl Write, who: Vec<Who>, keys: u64) -> io::Result<bench::Rounds<Who>> {
        let (had, left): (Vec<_>, Vec<_>) = who.into_iter().partition(|who| self.had(*who, keys).is_some());
        let had: Vec<_> =
            had.into_iter().filter_map(|who| Some((who, self.had(who, keys)?.measured()))).collect();
        if !had.is_empty() {
            let names: Vec<_> = had.iter().map(|(who, _)| who.label()).collect();
            writeln!(out, "{} pairs, measured before: {}", runner::keys(keys), names.join(", "))?;
        }
        self.bench.runner.live.begin(Some(store_report::head_across()));
        let rounds = usize::from(self.options.rounds);
        let mut arms = bench::rounds(left, self.options.rounds, |who, before| {
            let end = self.lives(who, keys)?;
            self.leave(out, who, keys, &end)?;
            if let Outcome::Figures(figures) = &end {
                self.bench.runner.live.row(store_report::line_across(&who.label(), &figures.values));
                if before.len() + 1 == rounds {
                    self.keep(who, keys, [before, &[(**figures).clone()]].concat())?;
                }
            }
            Ok(end)
        })?;
        self.bench.runner.live.begin(None);
        // One that was left out in a later round keeps the earlier ones.
        for (who, measured) in arms.iter().filter(|(_, of)| (1..rounds).contains(&of.len())) {
            self.keep(*who, keys, measured.clone())?;
        }
        arms.extend(had);
        // In the order of the list.
        arms.sort_by_key(|(who, _)| ENTRIES.iter().position(|entry| entry.name == who.entry.name));
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
            durability: who.durability(),
            compression: options.compression,
            values: options.values,
            life,
            synced: options.synced,
            warm_up_millis: 1000 * options.warm_up,
            steps: self.steps.clone(),
        };
        let job = Job {
            seed: options.seed,
            probes: options.probes,
            margin_bytes: MARGIN_BYTES,
            data: self.data.as_ref().map(|(file, _)| file.clone()),
            ..Job::of(Task::Store(orders), who.entry.name, keys)
        };
        self.bench.arm_within(self.cap.as_ref(), job)
    }

    /// Reports why a store has no figures of any size.
    fn leave_all(&mut self, out: &mut impl Write, store: &str, why: String) -> io::Result<()> {
        let content = json!({ "subject": store, "kind": "store", "keys": null });
        self.bench.leave(out, store, content, &Outcome::Left(why))
    }

    /// Reports why a store has no figures; a wrong result counts as a failure.
    fn leave(&mut self, out: &mut impl Write, who: Who, keys: u64, end: &Outcome) -> io::Result<()> {
        let content = json!({
            "subject": who.label(), "kind": "store", "keys": keys, "durability": who.asked,
        });
        self.bench.leave(out, &format!("{}, {}", who.label(), runner::keys(keys)), content, end)
    }

    /// Records the rounds of a store.
    fn keep(&mut self, who: Who, keys: u64, rounds: Vec<Figures>) -> io::Result<()> {
        let timelines = rounds.last().map_or_else(BTreeMap::new, |last| last.timelines.clone());
        let sums = bench::sums(&rounds);
        let figures = Figure::gather(rounds);
        let content = json!({
            "subject": who.entry.name, "kind": "store", "keys": keys, "durability": who.asked,
            "durability_had": who.durability(), "figures": figures, "sums": sums,
            "timeline_ms": TIMELINE_MS, "timelines": timelines,
        });
        self.bench.record.append("figures", &content)
    }
}

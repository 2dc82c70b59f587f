//! `kvbench llds`: the workload of llds's own benchmark. It compares this project's index and its stores in the kernel
//! with a red-black tree under one readers-writer lock. How the ancestor's user-space program locked its tree is not
//! known.

use crate::bench::Bench;
use crate::data::Walk;
use crate::job::{Figures, Job, Task};
use crate::machine;
use crate::options::Llds;
use crate::record::Figure;
use crate::registry;
use crate::runner;
use crate::sizes;
use crate::statistics::number;
use crate::subjects::FORREST;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{self, Write};

const TREE: &str = "rbtree";
/// What `--max` compares.
const LARGEST: [&str; 2] = [FORREST, TREE];
/// Keys of the run that measures the memory of a key.
const CALIBRATION_KEYS: u64 = 4_000_000;
/// Of the memory that is estimated to do, how much is used: a key costs more in some sizes than in others (a seventh
/// more at a billion than at four million), and so do longer decimals.
const MAX_SHARE: f64 = 0.8;

struct Filling<'a> {
    options: &'a Llds,
    bench: Bench,
}

/// All that do this workload, in the order of the list.
fn subjects() -> impl Iterator<Item = &'static str> {
    registry::entries().filter(|entry| entry.llds.is_some()).map(|entry| entry.name)
}

/// Measures, prints, records; true if nothing went wrong.
pub(crate) fn run(options: &Llds) -> io::Result<bool> {
    let common = &options.common;
    let kept = json!({
        "seed": common.seed, "threads": common.threads, "margin_bytes": common.margin,
        "malloc_pages": format!("{:?}", common.malloc_pages).to_lowercase(),
    });
    let mut bench = Bench::begin(common.json.as_deref(), kept, common.malloc_pages)?;
    if options.max {
        bench.runner.expect(LARGEST.len(), CALIBRATION_KEYS);
    }
    Filling { options, bench }.run()
}

impl Filling<'_> {
    fn run(mut self) -> io::Result<bool> {
        let mut out = io::stdout();
        let (record, common) = (&self.bench.record, &self.options.common);
        let revision = record.revision.as_deref().unwrap_or("unknown");
        writeln!(out, "kvbench llds, {}, revision {revision}, seed {}", record.date, common.seed)?;
        writeln!(out, "{}", record.machine.lines())?;
        writeln!(
            out,
            "{} threads insert disjoint parts (64-bit key, decimal counter as value),\n\
             then look all up and check. rbtree: under one RwLock; how the ancestor's\n\
             user-space program locked its tree is not known.\n",
            common.threads
        )?;
        writeln!(
            out,
            "{:16}{:>6}{:>10}{:>10}{:>9}{:>10}{:>9}{:>10}",
            "", "keys", "insert s", "look up s", "wall s", "batched s", "B/key", "occupied"
        )?;
        let plan: Vec<_> = if self.options.max {
            self.largest(&mut out)?
        } else {
            subjects().map(|subject| (subject, self.options.keys)).collect()
        };
        plan.iter().for_each(|(_, keys)| self.bench.runner.expect(1, *keys));
        let mut walls: BTreeMap<u64, BTreeMap<&str, f64>> = BTreeMap::new();
        for (subject, keys) in plan {
            let Some(figures) = self.measure(&mut out, subject, keys)? else { continue };
            self.keep(subject, keys, &figures)?;
            print_row(&mut out, subject, keys, &figures)?;
            if let Some(wall) = figures.values.get("wall_s") {
                walls.entry(keys).or_default().insert(subject, *wall);
            }
        }
        for (keys, walls) in walls {
            let Some(tree) = walls.get(TREE) else { continue };
            for (subject, own) in walls.iter().filter(|(subject, _)| **subject != TREE) {
                let (keys, times) = (runner::keys(keys), number(tree / own));
                writeln!(
                    out,
                    "at {keys} keys, wall time: {subject} has {times}x the red-black tree's speed"
                )?;
            }
        }
        Ok(self.bench.failures == 0)
    }

    fn measure(
        &mut self,
        out: &mut impl Write,
        subject: &'static str,
        keys: u64,
    ) -> io::Result<Option<Figures>> {
        let common = &self.options.common;
        let job = Job {
            seed: common.seed,
            threads: usize::from(common.threads),
            margin_bytes: common.margin,
            ..Job::of(Task::Llds, subject, keys)
        };
        let (who, end) =
            (format!("{subject}, {}", runner::keys(keys)), self.bench.runner.arm(&job, &Walk::default()));
        let content = json!({ "subject": subject, "kind": "llds", "keys": keys });
        self.bench.figures(out, &who, content, end)
    }

    fn keep(&mut self, subject: &str, keys: u64, figures: &Figures) -> io::Result<()> {
        let rounds = Figure::gather(vec![figures.clone()]);
        self.bench.record.append("figures", &json!({
            "subject": subject, "pages": "auto", "kind": "llds", "keys": keys, "figures": rounds, "notes": figures.notes,
        }))
    }

    /// As many keys as each subject is estimated to hold, and the red-black tree's number for both.
    fn largest(&mut self, out: &mut impl Write) -> io::Result<Vec<(&'static str, u64)>> {
        let mut most = Vec::new();
        for subject in LARGEST {
            let Some(figures) = self.measure(out, subject, CALIBRATION_KEYS)? else { continue };
            let free = machine::available_bytes().unwrap_or(0);
            let huge = if subject == FORREST { machine::huge_pages_free_bytes() } else { 0 };
            let usable = free.saturating_sub(self.options.common.margin) + huge;
            let per_key = figures.values.get("resident_bytes_per_key").copied().filter(|bytes| *bytes > 0.0);
            let Some(per_key) = per_key else {
                writeln!(
                    out,
                    "{subject}: the system does not tell what it occupies, so --max cannot be had"
                )?;
                continue;
            };
            let keys = (usable as f64 / per_key * MAX_SHARE / 1e6).floor().max(1.0) as u64 * 1_000_000;
            writeln!(
                out,
                "{subject}: about {} bytes a key, {} usable, so {} keys",
                number(per_key),
                sizes::text(usable),
                runner::keys(keys)
            )?;
            most.push((subject, keys));
        }
        let mut plan = most.clone();
        let least = most.iter().map(|(_, keys)| *keys).min();
        plan.extend(
            most.iter()
                .filter(|(_, keys)| Some(*keys) != least)
                .filter_map(|(subject, _)| Some((*subject, least?))),
        );
        Ok(plan)
    }
}

fn print_row(out: &mut impl Write, subject: &str, keys: u64, figures: &Figures) -> io::Result<()> {
    let figure = |name: &str| figures.values.get(name).copied();
    let text = |name: &str| figure(name).map_or_else(|| "-".to_owned(), number);
    writeln!(
        out,
        "{subject:16}{:>6}{:>10}{:>10}{:>9}{:>10}{:>9}{:>10}",
        runner::keys(keys),
        text("insert_s"),
        text("get_s"),
        text("wall_s"),
        text("multi_get_64_s"),
        text("resident_bytes_per_key"),
        figure("resident_bytes").map_or_else(|| "-".to_owned(), |bytes| sizes::text(bytes as u64)),
    )
}

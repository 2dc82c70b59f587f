//! `kvbench pressure`: how stores on disk keep to their bounds of memory, space and time, beside each other, and how
//! far the project's goals are met.
//!
//! Each store does a scenario in processes and a directory of its own, which is removed then.

use crate::bench::{self, Bench};
use crate::cap::Cap;
use crate::goals;
use crate::job::{Figures, Job, Outcome, Part, PressureOrders, Scenario, Task, pressure_weight};
use crate::options::{MallocPages, Pressure};
use crate::pressure_report::{self, Row, Sizes};
use crate::record::{Figure, Goal};
use crate::runner;
use crate::sizes;
use crate::stores::{FORREST, StoreEntry, not_compiled, pairs};
use crate::workplace::Workplace;
use clap::ValueEnum;
use serde_json::json;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

/// Pairs of a smoke run, and of its queue.
const QUICK_KEYS: (u64, u64) = (20_000, 2000);
/// Values of 4 KiB of a smoke run.
const QUICK_VALUES: u64 = 4 << 8;
/// The load, or the idle time, of a smoke run.
const QUICK_TIME: Duration = Duration::from_millis(300);
/// Sizes of a memtable and of the cache of a smoke run.
const QUICK_BYTES: (u64, u64) = (256 << 10, 1 << 20);
/// The same of other runs: the defaults of this project's store.
const USUAL_BYTES: (u64, u64) = (64 << 20, 256 << 20);
/// The same of the ancestor's workload: two memtables take what its README gives to one, as in libremixdb.
const HEADLINE_BYTES: (u64, u64) = (128_000_000, 256_000_000);
/// Rounds of updates of that workload, and in a smoke run.
const HEADLINE_ROUNDS: (u64, u64) = (30, 3);
/// How long a store stays idle after deletes.
const IDLE: Duration = Duration::from_secs(30);

/// The stores that do scenarios. The last two have no memtables, and no work in the background, which most scenarios
/// are about.
const ALL: [&str; 5] = [FORREST, "rocksdb", "fjall", "lmdb", "redb"];
/// How many do those.
const LOG_STRUCTURED: usize = 3;

/// A scenario with its sizes.
struct Plan {
    scenario: Scenario,
    sizes: Sizes,
    time: Duration,
    rounds: u64,
}

impl Plan {
    fn new(scenario: Scenario, options: &Pressure) -> Plan {
        let keys = match scenario {
            Scenario::Queue if options.quick => QUICK_KEYS.1,
            Scenario::Values if options.quick => QUICK_VALUES,
            _ if options.quick => QUICK_KEYS.0,
            Scenario::Memory | Scenario::Opening => 5_000_000,
            Scenario::Stalls | Scenario::Snapshots | Scenario::Closing => 1_000_000,
            Scenario::Overwrites => (options.live / pairs::PAIR_BYTES).max(1),
            Scenario::Deletes | Scenario::Ranges | Scenario::Ingest => 2_000_000,
            Scenario::Transfers => 10_000,
            // 1 GiB.
            Scenario::Values => 1 << 18,
            Scenario::Growth => 40_000_000,
            Scenario::Headline => 1 << 20,
            Scenario::Queue => 100_000,
            _ => 5_000_000,
        };
        let load = Duration::from_secs(options.seconds);
        let time = match scenario {
            _ if options.quick => QUICK_TIME,
            Scenario::Deletes | Scenario::Ranges => IDLE,
            Scenario::Memory | Scenario::Snapshots => load / 3,
            _ if scenario.mix().is_some() => load / 3,
            Scenario::Closing | Scenario::Transfers => load / 18,
            _ => load,
        };
        let (memtable, cache) = match scenario {
            _ if options.quick => QUICK_BYTES,
            Scenario::Headline => HEADLINE_BYTES,
            _ => USUAL_BYTES,
        };
        let sizes = Sizes {
            keys: options.keys.unwrap_or(keys),
            memtable_bytes: options.memtable.unwrap_or(memtable),
            cache_bytes: options.cache.unwrap_or(cache),
        };
        let (rounds, quick_rounds) = HEADLINE_ROUNDS;
        Plan { scenario, sizes, time, rounds: if options.quick { quick_rounds } else { rounds } }
    }

    /// The stores that do it: what LMDB and redb have a call or a form for, and mixes, are compared with them as well.
    fn stores(&self) -> &'static [&'static str] {
        match self.scenario {
            scenario if scenario.mix().is_some() => &ALL,
            Scenario::Queue
            | Scenario::Ranges
            | Scenario::Values
            | Scenario::Ingest
            | Scenario::Transfers => &ALL,
            _ => &ALL[..LOG_STRUCTURED],
        }
    }
}

struct Pressing<'a> {
    options: &'a Pressure,
    directory: Workplace,
    /// What limits the memory of the arms, if anything does.
    cap: Option<Cap>,
    bench: Bench,
    /// Stores that were reported as not compiled in.
    missing: BTreeSet<&'static str>,
}

/// Measures, prints, records; true if nothing went wrong.
pub(crate) fn run(options: &Pressure) -> io::Result<bool> {
    let all = Scenario::value_variants();
    let bounds: Vec<_> = all.iter().copied().filter(|scenario| scenario.mix().is_none()).collect();
    let scenarios = if options.scenarios.is_empty() { &bounds } else { &options.scenarios };
    let plans: Vec<_> = scenarios.iter().map(|scenario| Plan::new(*scenario, options)).collect();
    let cap = options.memory.map(Cap::new).transpose()?;
    let directory = Workplace::with_group(options.directory.as_deref(), cap.as_ref().map(Cap::group))?;
    let kept = json!({
        "seed": options.seed, "rounds": options.rounds, "seconds": options.seconds, "quick": options.quick,
        "threads": options.threads, "rate": options.rate, "warm_up": options.warm_up,
        "memory_bytes": options.memory,
        "scenarios": scenarios, "key_bytes": pairs::KEY_BYTES, "value_bytes": pairs::VALUE_BYTES,
    });
    let bench = Bench::begin(options.json.as_deref(), kept, MallocPages::System)?;
    Pressing { options, directory, cap, bench, missing: BTreeSet::new() }.run(&plans)
}

impl Pressing<'_> {
    fn run(mut self, plans: &[Plan]) -> io::Result<bool> {
        let mut out = io::stdout();
        let what = format!(
            "pairs of 16 + 100 random bytes, nothing compressed, writes survive the process{}, in {}",
            self.options.memory.map_or_else(String::new, |memory| format!(
                ", at most {} of memory for a store with the page cache of its files",
                sizes::text(memory)
            )),
            self.directory.within().display()
        );
        self.bench.record.print_head(&mut out, "pressure", self.options.seed, Some(&what))?;
        for plan in plans {
            let stores = self.wanted(plan).iter().filter(|entry| entry.run.is_ok()).count();
            let arms = stores * plan.scenario.parts().len() * usize::from(self.options.rounds);
            let millis = plan.time.as_millis() as u64;
            self.bench.runner.expect(arms, pressure_weight(plan.sizes.keys, millis));
        }
        let mut judged = Vec::new();
        for plan in plans {
            judged.extend(self.measure(&mut out, plan)?);
            out.flush()?;
        }
        pressure_report::print_legend(&mut out)?;
        goals::conclude(&mut out, &mut self.bench.record, &judged, self.bench.failures)
    }

    /// The stores that do a scenario and that were asked for.
    fn wanted(&self, plan: &Plan) -> Vec<&'static StoreEntry> {
        let asked = &self.options.subjects;
        let is_wanted = |name: &str| {
            (asked.is_empty() || asked.iter().any(|one| one == name))
                && !(self.options.no_rocksdb && name == "rocksdb")
        };
        let wanted = plan.stores().iter().filter(|name| is_wanted(name));
        wanted.filter_map(|name| StoreEntry::find(name)).collect()
    }

    /// Those of them that this program has.
    fn entries(&mut self, out: &mut impl Write, plan: &Plan) -> io::Result<Vec<&'static StoreEntry>> {
        let (mut there, mut missing) = (Vec::new(), Vec::new());
        for entry in self.wanted(plan) {
            match entry.run {
                Ok(_) => there.push(entry),
                Err(feature) => missing.push((entry.name, feature)),
            }
        }
        let options = self.options;
        for name in &options.subjects {
            if !plan.stores().contains(&name.as_str()) {
                let why = format!("it has no part in {}", plan.scenario.kind());
                self.leave(out, name, plan, &Outcome::Left(why))?;
            }
        }
        for (name, feature) in missing {
            if self.missing.insert(name) {
                self.leave(out, name, plan, &Outcome::Left(not_compiled(feature)))?;
            }
        }
        Ok(there)
    }

    /// Lets the stores do a scenario, prints the table and records the figures; returns the goals.
    fn measure(&mut self, out: &mut impl Write, plan: &Plan) -> io::Result<Vec<Goal>> {
        let entries = self.entries(out, plan)?;
        let arms = bench::rounds(entries, self.options.rounds, |entry, _| {
            let end = self.parts(plan, entry.name)?;
            self.leave(out, entry.name, plan, &end)?;
            Ok(end)
        })?;
        let mut rows = Vec::new();
        for (entry, rounds) in arms.into_iter().filter(|(_, rounds)| !rounds.is_empty()) {
            let figures = Figure::gather(rounds);
            let content = json!({
                "subject": entry.name, "kind": plan.scenario.kind(), "keys": plan.sizes.keys,
                "memtable_bytes": plan.sizes.memtable_bytes, "cache_bytes": plan.sizes.cache_bytes,
                "millis": plan.time.as_millis() as u64, "figures": figures,
            });
            self.bench.record.append("figures", &content)?;
            rows.push(Row { name: entry.name, figures });
        }
        pressure_report::print(out, plan.scenario, &plan.sizes, &rows)
    }

    /// The parts of a scenario, one after the other on one directory; their figures together.
    fn parts(&mut self, plan: &Plan, store: &str) -> io::Result<Outcome> {
        let directory = self.directory.path().join(store);
        std::fs::create_dir(&directory)?;
        let mut all = Figures::default();
        let mut end = None;
        for part in plan.scenario.parts() {
            match self.arm(plan, store, &directory, *part) {
                Outcome::Figures(figures) => all.values.extend(figures.values),
                other => {
                    end = Some(other);
                    break;
                }
            }
        }
        std::fs::remove_dir_all(&directory)?;
        Ok(end.unwrap_or_else(|| all.into()))
    }

    fn arm(&mut self, plan: &Plan, store: &str, directory: &Path, part: Part) -> Outcome {
        let orders = PressureOrders {
            directory: directory.to_owned(),
            scenario: plan.scenario,
            part,
            memtable_bytes: plan.sizes.memtable_bytes,
            cache_bytes: plan.sizes.cache_bytes,
            millis: plan.time.as_millis() as u64,
            rounds: plan.rounds,
            threads: self.options.threads,
            rate: self.options.rate,
            warm_up_millis: match self.options.quick {
                true => plan.time.as_millis() as u64 / 3,
                false => 1000 * self.options.warm_up,
            },
        };
        let job = Job { seed: self.options.seed, ..Job::of(Task::Pressure(orders), store, plan.sizes.keys) };
        self.bench.arm_within(self.cap.as_ref(), job)
    }

    /// Reports why a store has no figures; a wrong result counts as a failure.
    fn leave(&mut self, out: &mut impl Write, store: &str, plan: &Plan, end: &Outcome) -> io::Result<()> {
        let (kind, keys) = (plan.scenario.kind(), plan.sizes.keys);
        let content = json!({ "subject": store, "kind": kind, "keys": keys });
        self.bench.leave(out, &format!("{store}, {kind}, {}", runner::keys(keys)), content, end)
    }
}

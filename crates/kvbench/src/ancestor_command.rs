//! The ancestor's command line: `kvbench -f FILE -F FORMAT -d STRUCTURE [-h HASH] [-a ALLOCATOR]`. It measures an
//! empty loop over the data, then inserts, finds, updates and deletes all of it, ten times. It prints the last time,
//! under the ancestor's names and in its order. As in the ancestor, structures that can keep keys where they were
//! loaded, and keys without values have empty ones.
//!
//! What differs from the ancestor is what was wrong there: the output is one JSON object, with nothing but it on the
//! standard output; the number of iterations is that of the keys; what was not counted is null; what there is not is an
//! error and no empty result; and keys are looked up by copies of them in another order, not by the pointers that were
//! inserted in the order in which they were.

use crate::conform;
use crate::counters::{EVENTS, Event, IPC, Provider, callgrind};
use crate::data::{KindName, Told, Walk};
use crate::errors;
use crate::files::Format;
use crate::job::{DataFile, Figures, Job, Task};
use crate::names::Name;
use crate::options::MallocPages;
use crate::runner::Runner;
use crate::subjects::{self, EMPTY};
use crate::workplace::Workplace;
use clap::Parser;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::PathBuf;

/// The seed of the order in which keys are looked up.
const SEED: u64 = 42;
/// Memory that must stay free.
const MARGIN_BYTES: u64 = 1 << 30;
/// Structures that the ancestor has under other names.
const ALIASES: [(&str, &str); 1] = [("art", "blart")];

/// The ancestor's way to call: insert, find, update and delete all of a file's keys, ten times
#[derive(Parser)]
#[command(name = "kvbench", disable_help_flag = true, disable_version_flag = true)]
pub(crate) struct Ancestor {
    /// The data
    #[arg(short = 'f', value_name = "FILE")]
    file: PathBuf,
    /// Its format: bin-text, bin-text-kv or bin-slice-kv
    #[arg(short = 'F', value_name = "FORMAT", value_parser = format)]
    format: Format,
    /// The structure, from `kvbench list`
    #[arg(short = 'd', value_name = "STRUCTURE")]
    structure: String,
    /// The hash: xxhash:XX3_64bits, t1ha::t1ha, city::cityhash64, or another one of `kvbench list`
    #[arg(short = 'h', value_name = "HASH")]
    hash: Option<String>,
    /// The allocator
    #[arg(short = 'a', value_name = "ALLOCATOR")]
    allocator: Option<String>,
    /// Number of runs; each measures everything once
    #[arg(short = 'r', default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    runs: u16,
    /// Report only the last this many runs
    #[arg(short = 'R', default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    record_runs: u16,
    /// Print more, as the ancestor did
    #[arg(short = 'v', default_value_t = 0)]
    verbosity: u8,
    /// Count on a simulated processor (valgrind's callgrind), in place of the machine's; there are no times then
    #[arg(long)]
    simulate: bool,
    /// Print this
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

/// The three formats that the ancestor names.
fn format(text: &str) -> Result<Format, String> {
    let formats = [Format::BinText, Format::BinTextKv, Format::BinSliceKv];
    let known = formats.into_iter().find(|format| format.name() == text);
    known.ok_or_else(|| "the formats are bin-text, bin-text-kv and bin-slice-kv".to_owned())
}

/// Whether these arguments, without the program's name, are the ancestor's: they begin with one of its flags and no
/// command. `-h` alone asks for help.
pub(crate) fn is_meant(mut arguments: impl Iterator<Item = impl AsRef<OsStr>>) -> bool {
    let Some(first) = arguments.next() else { return false };
    match first.as_ref().as_encoded_bytes() {
        [b'-', b'h'] => arguments.next().is_some(),
        [b'-', letter, ..] => b"fFdharRv".contains(letter),
        _ => false,
    }
}

/// Whether these arguments, without the program's name, are those of the ancestor's generator, which begin with its
/// mode.
pub(crate) fn generates(arguments: &[impl AsRef<OsStr>]) -> bool {
    arguments.first().is_some_and(|first| first.as_ref().as_encoded_bytes().starts_with(b"-m"))
}

/// What a run measured: the empty loop, insertion, finding.
type Measured = [Figures; 2];

impl Ancestor {
    /// The subject that is meant.
    fn name(&self) -> io::Result<Name> {
        let structure = ALIASES
            .iter()
            .find(|(alias, _)| *alias == self.structure)
            .map_or(self.structure.as_str(), |one| one.1);
        let mut text = structure.to_owned();
        if let Some(hash) = &self.hash {
            text += &format!("+{hash}");
        }
        if let Some(allocator) = &self.allocator {
            text += &format!("@{allocator}");
        }
        Name::parse(&text).map_err(io::Error::other)
    }

    /// Measures and prints; true always.
    pub(crate) fn run(&self) -> io::Result<bool> {
        let name = self.name()?;
        if self.simulate {
            callgrind::version()?;
        }
        let simulation = self.simulate.then(|| Workplace::new(None)).transpose()?;
        let data = DataFile {
            path: self.file.clone(),
            format: self.format,
            pages: "auto".to_owned(),
            in_place: true,
            no_values: true,
            are_numbers: false,
        };
        eprintln!("loading '{}'", self.file.display());
        let file_bytes = std::fs::metadata(&self.file).map_or(0, |of| of.len());
        let told = data.load(MARGIN_BYTES)?.told().clone();
        eprintln!("000000000 bytes left");
        let mut runner = Runner::new(MallocPages::System)?;
        let ops = conform::ops(conform::QUICK_OPS, told.pairs);
        runner.expect(1, ops);
        runner.expect(2 * usize::from(self.runs), told.pairs);
        let mut arm = |name: Name, task: Task| -> io::Result<Figures> {
            let job = Job {
                allocator: name.allocator,
                kind: KindName::Strings,
                seed: SEED,
                // A simulation looks at nothing that may be different the next time.
                margin_bytes: if self.simulate { 0 } else { MARGIN_BYTES },
                pin: true,
                // Values that differ are what is checked.
                data: Some(DataFile { no_values: !matches!(task, Task::Conform(_)), ..data.clone() }),
                events: of_ancestor().collect(),
                simulation: match task {
                    Task::Conform(_) => None,
                    _ => simulation.as_ref().map(|place| place.path().to_owned()),
                },
                ..Job::of(task, name, told.pairs)
            };
            runner.arm(&job, &Walk::default()).measured().map_err(|error| errors::told(name, &error))
        };
        let empty = Name::parse(EMPTY).map_err(io::Error::other)?;
        arm(name, Task::Conform(ops))?;
        let mut measured: Vec<Measured> = Vec::new();
        for _ in 0..self.runs {
            measured.push([arm(empty, Task::Ancestor)?, arm(name, Task::Ancestor)?]);
        }
        let output = self.output(name, file_bytes, &told, &measured);
        writeln!(io::stdout(), "{}", serde_json::to_string_pretty(&output)?)?;
        Ok(true)
    }

    fn output(&self, name: Name, file_bytes: u64, told: &Told, measured: &[Measured]) -> Output {
        let first = measured.len().saturating_sub(usize::from(self.record_runs));
        let mut result = Vec::new();
        // The empty loop is what insertion is without a structure.
        for (what, side, step) in [
            ("benchmark-overhead", 0, "insert"),
            ("insert", 1, "insert"),
            ("find", 1, "get"),
            ("update", 1, "update"),
            ("delete", 1, "remove"),
        ] {
            for (run, figures) in measured.iter().enumerate().skip(first) {
                result.push(told_of(&format!("{what} run {run}"), &figures[side], step, told.pairs));
            }
        }
        let custom = name.allocator.name() != "malloc";
        // In the order of `Provider`, the best first, each once; null if nothing was counted.
        let counted = measured.iter().flatten().filter_map(|figures| figures.counted.as_ref());
        let providers: BTreeSet<Provider> = counted.flat_map(|of| of.values().flatten().copied()).collect();
        let providers: Vec<_> = providers.into_iter().map(Provider::words).collect();
        let provider = (!providers.is_empty()).then(|| providers.join("; "));
        let algorithm = self.hash.clone().or_else(|| name.hash.map(|hash| hash.name().to_owned()));
        // In the ancestor's order; what it does not have is last.
        let config = [
            ("filename", json!(self.file)),
            ("fileSizeBytes", json!(file_bytes)),
            ("format", json!(if self.format == Format::BinSliceKv { "slice" } else { "text" })),
            ("dataStructure", json!(self.structure)),
            ("hashAlgorithm", json!(algorithm)),
            (
                "allocator",
                json!(if custom { name.allocator.name() } else { "vanilla malloc or std::allocator" }),
            ),
            ("needsHashAlgo", json!(name.hash.is_some())),
            ("customAlloc", json!(custom)),
            ("runs", json!(self.runs)),
            ("recordRuns", json!(self.record_runs)),
            ("verbosity", json!(self.verbosity)),
            ("subject", json!(name.to_string())),
            ("duplicates", json!(told.duplicates)),
            ("pages", json!(told.pages)),
            ("probes", json!("copies of the keys, in another order")),
            ("placement", json!(subjects::placement(name.entry.name))),
            ("counters", json!(provider)),
        ];
        Output { config: Fields(config.into()), stats: Stats { result } }
    }
}

/// What is printed.
#[derive(Serialize)]
struct Output {
    config: Fields,
    stats: Stats,
}

#[derive(Serialize)]
struct Stats {
    result: Vec<Step>,
}

/// A step, in total and for each operation.
#[derive(Serialize)]
struct Step {
    description: String,
    total: Fields,
    #[serde(rename = "perIteration")]
    per_iteration: Fields,
}

/// An object whose fields have an order.
struct Fields(Vec<(&'static str, Value)>);

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// What the ancestor calls an event, if it has it: what the system counts, it has not.
fn ancestors_name(event: Event) -> Option<&'static str> {
    Some(match event {
        Event::Instructions => "pmuFixedCounter0RetiredInstructions",
        Event::Cycles => "pmuFixedCounter1CoreCycles",
        Event::ReferenceCycles => "pmuFixedCounter2ReferenceNoHaltCycles",
        Event::LlcReferences => "pmuProgCounter0LLCHits",
        Event::LlcMisses => "pmuProgCounter1LLCMisses",
        Event::Branches => "pmuProgCounter2RetiredBranchInstructions",
        Event::BranchMisses => "pmuProgCounter3RetiredBranchMispredictions",
        Event::DtlbMisses => "pmuProgCounter4DTLBMisses",
        _ => return None,
    })
}

/// What the ancestor counts and the system has no event for: it is always null, in its place before this event.
const UNCOUNTED: (Event, &str) = (Event::BranchMisses, "pmuProgCounter3RetiredBranchInstructionsTaken");

/// The events that the ancestor has.
fn of_ancestor() -> impl Iterator<Item = Event> {
    EVENTS.iter().copied().filter(|event| ancestors_name(*event).is_some())
}

/// A step of an arm, in total and for each operation. A structure that cannot do it has no counts.
fn told_of(description: &str, figures: &Figures, step: &str, iterations: u64) -> Step {
    let each = |end: &str| figures.values.get(&format!("{step}_{end}")).copied();
    let in_all = |each: Option<f64>| each.map(|each| (each * iterations as f64).round());
    let mut total = vec![("iterations", json!(iterations)), ("elapsedTimeNs", json!(in_all(each("ns"))))];
    // Over core cycles, unlike the ancestor's, which was over those of the reference.
    let mut one = vec![("elapsedTimeNs", json!(each("ns"))), ("IPC", json!(each(IPC)))];
    for (event, name) in EVENTS.iter().filter_map(|event| Some((event, ancestors_name(*event)?))) {
        if *event == UNCOUNTED.0 {
            total.push((UNCOUNTED.1, Value::Null));
            one.push((UNCOUNTED.1, Value::Null));
        }
        total.push((name, json!(in_all(each(event.name())).map(|all| all as u64))));
        one.push((name, json!(each(event.name()))));
    }
    Step { description: description.to_owned(), total: Fields(total), per_iteration: Fields(one) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ancestors_flags_are_told_from_commands() {
        for (line, is) in [
            ("-f x -F bin-text -d cuckoo -h xxhash:XX3_64bits", true),
            ("-h xxhash:XX3_64bits -f x", true),
            ("-h", false),
            ("--help", false),
            ("-V", false),
            ("memory -n 10", false),
            ("", false),
        ] {
            assert_eq!(is_meant(line.split_whitespace()), is, "{line}");
        }
        for (line, is) in
            [("-m convert-text -i a -o b", true), ("convert -m convert-text", false), ("", false)]
        {
            assert_eq!(generates(&line.split_whitespace().collect::<Vec<_>>()), is, "{line}");
        }
        use clap::CommandFactory;
        Ancestor::command().debug_assert();
    }

    #[test]
    fn what_was_not_counted_is_null() {
        let mut figures = Figures::default();
        figures.set("get_ns", 12.5);
        figures.set("get_instructions", 90.0);
        let told_of =
            |figures: &Figures| serde_json::to_value(told_of("find run 9", figures, "get", 1000)).unwrap();
        let told = told_of(&figures);
        assert_eq!(told["total"]["elapsedTimeNs"], 12_500.0);
        assert_eq!(told["total"]["pmuFixedCounter0RetiredInstructions"], 90_000);
        assert_eq!(told["perIteration"]["IPC"], Value::Null);
        assert_eq!(told["total"]["pmuProgCounter1LLCMisses"], Value::Null);
        figures.set("get_ipc", 3.0);
        assert_eq!(told_of(&figures)["perIteration"]["IPC"], 3.0);
    }
}

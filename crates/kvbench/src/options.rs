//! The command-line options of the benchmarks.

use crate::counters::Event;
use crate::counters::code::{self, Code};
use crate::data::{KindName, Told};
use crate::files::{Format, Keys, Values, key_lengths};
use crate::job::{
    Asked, Compression, DataFile, Durability, Locality, RemixStep, Scenario, Step, StoreStep, StoreValues,
};
use crate::measure::Clock;
use crate::names::Name;
use crate::sizes::{self, Sizes, bytes, number};
use crate::stores;
use crate::subjects::{FORREST, Pages};
use clap::{Args, ValueEnum};
use forrest_machine::pages;
use std::io;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// What the benchmarks of structures in memory take.
#[derive(Args, Clone)]
pub(crate) struct Common {
    /// Threads where several are used
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(2..=1024))]
    pub(crate) threads: u16,
    /// Seed of everything random; the same seed gives the same keys and the same probes
    #[arg(long, default_value_t = 42)]
    pub(crate) seed: u64,
    /// Memory that must stay free; an arm that would use it ends with a message
    #[arg(long, default_value = "1G", value_parser = bytes, value_name = "BYTES")]
    pub(crate) margin: u64,
    /// Pages that malloc asks for, for all subjects (glibc 2.35 or later)
    #[arg(long, value_enum, default_value_t = MallocPages::System)]
    pub(crate) malloc_pages: MallocPages,
    /// Append what was measured to this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// Pages under the global allocator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MallocPages {
    /// As the system is set.
    System,
    /// Transparent huge pages.
    Thp,
}

/// Pairs of a file.
#[derive(Args, Clone)]
pub(crate) struct File {
    /// File of pairs (see `kvbench convert`) to measure with, in its order, instead of generated ones; -n takes its
    /// first pairs
    #[arg(long, value_name = "FILE")]
    pub(crate) data: Option<PathBuf>,
    /// Format of that file [default: detected]
    #[arg(short = 'F', long, value_enum, value_name = "FORMAT", requires = "data")]
    data_format: Option<Format>,
    /// Pages that it is loaded to: auto, 1g, 2m, transparent or plain; others are used if these are not available
    #[arg(long, default_value_t = pages::Pages::Auto, value_name = "PAGES", requires = "data")]
    data_pages: pages::Pages,
    /// Let structures that can (btreemap, cuckoo, f14, hashbrown) keep keys and values where they were loaded, as the
    /// ancestor's do; the others copy them
    #[arg(long, requires = "data")]
    in_place: bool,
    /// Give pairs of a file without values empty ones, and not made ones of 20 bytes
    #[arg(long, requires = "data")]
    no_values: bool,
}

impl File {
    /// Loads the file, if there is one, and returns facts about it; at least `margin_bytes` of memory stay free. Each
    /// arm loads it again, so this process frees the memory for the arms.
    pub(crate) fn told(&self, kind: KindName, margin_bytes: u64) -> io::Result<Option<(DataFile, Told)>> {
        let Some(path) = &self.data else { return Ok(None) };
        let are_numbers = kind == KindName::U64;
        if are_numbers && (self.in_place || self.no_values) {
            let what =
                "--in-place and --no-values are about strings: leave them out, or take another kind than u64";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let format = self.data_format.map_or_else(|| Format::of_file(path), Ok)?;
        let file = DataFile {
            path: path.clone(),
            format,
            pages: self.data_pages.name().to_owned(),
            in_place: self.in_place,
            no_values: self.no_values,
            are_numbers,
        };
        let told = file.load(margin_bytes)?.told().clone();
        Ok(Some((file, told)))
    }
}

/// Options of `kvbench memory`.
#[derive(Args, Clone)]
pub(crate) struct Memory {
    /// Numbers of keys, measured one after the other [default: 1M]
    #[arg(short = 'n', long, value_delimiter = ',', value_parser = number)]
    pub(crate) keys: Vec<u64>,
    /// Measure 10M and 50M keys, and growth to 100M, unless -n or --sweep say otherwise; this takes hours
    #[arg(long, conflicts_with_all = ["data", "quick", "simulate"])]
    pub(crate) long: bool,
    /// Kinds of keys: random u64, or the paths of a directory tree [default: both]. A file is strings, or u64 if its
    /// keys are numbers of 8 bytes, or 4, big endian, such as those of SOSD [default: strings]
    #[arg(long, alias = "kind", value_enum, value_delimiter = ',')]
    pub(crate) kinds: Vec<KindName>,
    /// Subjects from `kvbench list`, `STRUCTURE[+HASH][@ALLOCATOR]`, or a library's, `./FILE.so[:NAME]`, or a program,
    /// `exec:FILE` [default: all structures]
    #[arg(long, value_delimiter = ',', value_parser = Name::parse)]
    pub(crate) subjects: Vec<Name>,
    /// Steps beside insertion and memory [default: get to remove]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) only: Vec<Step>,
    /// Parameters of the steps.
    #[command(flatten)]
    pub(crate) asked: Asked,
    /// Pages for this project's index; one row for each
    #[arg(long, value_enum, value_delimiter = ',', default_value = "auto,plain")]
    pub(crate) pages: Vec<Pages>,
    /// Rounds: each measures every subject once, in turning order; more than one shows the spread
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) rounds: u16,
    /// Maximum number of keys that a step looks up
    #[arg(long, default_value = "2M", value_parser = number)]
    pub(crate) probes: u64,
    /// Directory tree whose paths are the string keys
    #[arg(long, default_value = "/usr", value_name = "DIRECTORY", conflicts_with = "data")]
    pub(crate) tree: PathBuf,
    /// A file in place of made pairs.
    #[command(flatten)]
    pub(crate) file: File,
    /// Sizes between which structures of numbers grow, read at each; `1K..100M` is a list by powers of ten and three
    /// times these, `1M..2M/8` one of 8 sizes at equal distances, to see how full a table is
    /// [default: 1M..30M, and none of a file]
    #[arg(long, value_delimiter = ',', value_parser = sizes::list)]
    pub(crate) sweep: Vec<Sizes>,
    /// Subjects that grow in the sweep
    #[arg(long, value_delimiter = ',', default_value = FORREST, value_parser = Name::parse)]
    pub(crate) sweep_subjects: Vec<Name>,
    /// Leave the sweep out
    #[arg(long)]
    pub(crate) no_sweep: bool,
    /// Events to count in steps of one thread, by the processor or the system [default: none]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) events: Vec<Event>,
    /// Events of the processor by their codes, at most 4: `r01c2` as in perf, or a name from
    /// /sys/bus/event_source/devices/cpu/events; they are counted as raw_1 to raw_4
    #[arg(long, value_delimiter = ',', value_parser = code::parse, conflicts_with = "simulate")]
    pub(crate) raw: Vec<Code>,
    /// Count on a simulated processor (valgrind's callgrind): equal counts on each run, and no times; implies
    /// --events instructions and -n 100K unless these are given
    #[arg(long, conflicts_with_all = ["sweep", "clock", "malloc_pages"])]
    pub(crate) simulate: bool,
    /// Clock for steps of one thread; steps of several threads always use wall time
    #[arg(long, value_enum, default_value_t = Clock::Wall)]
    pub(crate) clock: Clock,
    /// Do not pin threads to CPUs
    #[arg(long)]
    pub(crate) no_pin: bool,
    /// A smoke run of seconds: 20,000 keys unless -n says otherwise, a short sweep
    #[arg(long, conflicts_with = "data")]
    pub(crate) quick: bool,
    /// What both benchmarks take.
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Options of `kvbench llds`.
#[derive(Args, Clone)]
pub(crate) struct Llds {
    /// Number of keys
    #[arg(short = 'n', long, default_value = "10M", value_parser = number)]
    pub(crate) keys: u64,
    /// Take as many keys as each subject can hold in this machine's memory, and compare at the smaller number
    #[arg(long, conflicts_with = "keys")]
    pub(crate) max: bool,
    /// What both benchmarks take.
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Options of `kvbench store`.
#[derive(Args, Clone)]
pub(crate) struct Stores {
    /// Numbers of pairs, measured one after the other [default: 5M; of a file, all keys but a hundredth]
    #[arg(short = 'n', long, value_delimiter = ',', value_parser = number)]
    pub(crate) keys: Vec<u64>,
    /// File (see `kvbench convert`) whose keys are taken in place of random ones, in an order that the seed decides;
    /// its values are not taken
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Format of that file [default: detected]
    #[arg(short = 'F', long, value_enum, value_name = "FORMAT", requires = "data")]
    data_format: Option<Format>,
    /// Stores, from `kvbench list` [default: all]
    #[arg(long, value_delimiter = ',', value_parser = store)]
    pub(crate) subjects: Vec<String>,
    /// What a write must survive when its call returns; a store without this level is measured at the next weaker one,
    /// or else at the next stronger one, as its column shows
    #[arg(long, value_enum, value_delimiter = ',', default_value = "process")]
    pub(crate) durability: Vec<Durability>,
    /// How stores compress; one without this method is left out
    #[arg(long, value_enum, default_value = "none")]
    pub(crate) compression: Compression,
    /// What values are
    #[arg(long, value_enum, default_value = "random")]
    pub(crate) values: StoreValues,
    /// Leave RocksDB out, which takes many minutes to compile
    #[arg(long)]
    pub(crate) no_rocksdb: bool,
    /// Steps beside loading [default: all]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) only: Vec<StoreStep>,
    /// Rounds: each measures every store once, in turning order; more than one shows the spread
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) rounds: u16,
    /// Most operations of a step; scans and batches are fewer
    #[arg(long, default_value = "1M", value_parser = number)]
    pub(crate) probes: u64,
    /// Synced writes of each of the steps with 1, 2 and 8 threads
    #[arg(long, default_value = "2K", value_parser = number)]
    pub(crate) synced: u64,
    /// How long each step that reads is warmed up at most, in seconds, until its rate is steady
    #[arg(long, default_value_t = 10, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(..=3600))]
    pub(crate) warm_up: u64,
    /// Memory for a store: its memtables and caches together
    #[arg(long, default_value = "1G", value_parser = budget, value_name = "BYTES")]
    pub(crate) budget: u64,
    /// Memory that the process of a store may have at all, the page cache of its files included; a store that needs
    /// more is left out. By a control group, for which root is needed
    #[arg(long, value_parser = bytes, value_name = "BYTES")]
    pub(crate) memory: Option<u64>,
    /// Where a temporary directory is made for the stores [default: beside this program]
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) directory: Option<PathBuf>,
    /// Seed of everything random; the same seed gives the same keys and the same probes
    #[arg(long, default_value_t = 42)]
    pub(crate) seed: u64,
    /// Append what was measured to this file, one JSON object a line; each store when it has ended
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Go on with the last run of that file that has these options, this revision and this machine: what it has is not
    /// measured again
    #[arg(long, requires = "json")]
    pub(crate) resume: bool,
}

impl Stores {
    /// The file with the keys, if there is one. It leaves pages that were set aside to the stores.
    pub(crate) fn data(&self) -> io::Result<Option<DataFile>> {
        let Some(path) = &self.data else { return Ok(None) };
        let format = self.data_format.map_or_else(|| Format::of_file(path), Ok)?;
        let pages = pages::Pages::Plain.name().to_owned();
        let path = path.clone();
        Ok(Some(DataFile { path, format, pages, in_place: false, no_values: true, are_numbers: false }))
    }
}

/// Options of `kvbench pressure`.
#[derive(Args, Clone)]
pub(crate) struct Pressure {
    /// Scenarios, in this order [default: all but the mixes, which begin with readwhilewriting]
    #[arg(value_enum)]
    pub(crate) scenarios: Vec<Scenario>,
    /// Number of pairs [default: by the scenario, see docs/benchmarks.md]
    #[arg(short = 'n', long, value_parser = number)]
    pub(crate) keys: Option<u64>,
    /// Stores [default: all that were compiled in]; lmdb and redb do ranges, queue, values, ingest, transfers and the
    /// mixes
    #[arg(long, value_delimiter = ',', value_parser = ["forrest", "rocksdb", "fjall", "lmdb", "redb"])]
    pub(crate) subjects: Vec<String>,
    /// Leave RocksDB out, which takes many minutes to compile
    #[arg(long)]
    pub(crate) no_rocksdb: bool,
    /// How long the puts of stalls go on, in seconds; snapshots, memory and mixes take a third of it, closing an 18th
    #[arg(long, default_value_t = 180, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) seconds: u64,
    /// Threads that do a mix
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: u16,
    /// Do the operations of a mix at this fixed rate, of all threads, and time each from when it was due
    #[arg(long, value_name = "OPS_PER_S", value_parser = number)]
    pub(crate) rate: Option<u64>,
    /// How long a mix is warmed up at most, in seconds, until its rate is steady; with --rate, how long in any case
    #[arg(long, default_value_t = 30, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(..=3600))]
    pub(crate) warm_up: u64,
    /// Keys and values of the scenario overwrites
    #[arg(long, default_value = "2G", value_parser = bytes, value_name = "BYTES")]
    pub(crate) live: u64,
    /// Size of a memtable [default: 64M, in headline 122M]
    #[arg(long, value_parser = bytes, value_name = "BYTES")]
    pub(crate) memtable: Option<u64>,
    /// Size of the cache [default: 256M, in headline 244M]
    #[arg(long, value_parser = bytes, value_name = "BYTES")]
    pub(crate) cache: Option<u64>,
    /// Memory that the process of a store may have at all, the page cache of its files included; a store that needs
    /// more is left out. By a control group, for which root is needed
    #[arg(long, value_parser = bytes, value_name = "BYTES")]
    pub(crate) memory: Option<u64>,
    /// Rounds: each runs every store once, in turning order; the figures are medians
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) rounds: u16,
    /// A smoke run of seconds: 20,000 pairs (a queue: 2,000) unless -n says otherwise, small memtables, short loads
    #[arg(long, conflicts_with_all = ["seconds", "live", "warm_up"])]
    pub(crate) quick: bool,
    /// Where a temporary directory is made for the stores [default: beside this program]
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) directory: Option<PathBuf>,
    /// Seed of everything random; the same seed gives the same pairs
    #[arg(long, default_value_t = 42)]
    pub(crate) seed: u64,
    /// Append what was measured to this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// Options of `kvbench remix`.
#[derive(Args, Clone)]
pub(crate) struct Remixes {
    /// Numbers of pairs in all runs together, measured one after the other
    #[arg(short = 'n', long, value_delimiter = ',', default_value = "2M", value_parser = number)]
    pub(crate) keys: Vec<u64>,
    /// Numbers of runs that the pairs are in
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,8,16", value_parser = clap::value_parser!(u16).range(1..=31))]
    pub(crate) runs: Vec<u16>,
    /// Which keys are in one run
    #[arg(long, value_enum, value_delimiter = ',', default_value = "weak,strong")]
    pub(crate) localities: Vec<Locality>,
    /// Steps to measure [default: all]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) only: Vec<RemixStep>,
    /// Rounds: each measures everything once, in an order of its own; the figures are medians
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) rounds: u16,
    /// Most operations of a step in a round; scans are a tenth
    #[arg(long, default_value = "200K", value_parser = number)]
    pub(crate) probes: u64,
    /// Where a temporary directory is made for the runs [default: beside this program]
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) directory: Option<PathBuf>,
    /// Do not pin the measuring thread to a CPU
    #[arg(long)]
    pub(crate) no_pin: bool,
    /// Seed of everything random; the same seed gives the same keys and the same probes
    #[arg(long, default_value_t = 42)]
    pub(crate) seed: u64,
    /// Append what was measured to this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// Options of `kvbench chase`.
#[derive(Args, Clone)]
pub(crate) struct Chase {
    /// Sizes of the memory
    #[arg(long, value_delimiter = ',', default_value = "256K,1M,4M,16M,64M,256M,1G,4G", value_parser = bytes, value_name = "BYTES")]
    pub(crate) sizes: Vec<u64>,
    /// Pages that it lies on
    #[arg(long, value_enum, value_delimiter = ',', default_value = "plain,thp")]
    pub(crate) pages: Vec<Pages>,
    /// Loads that are timed, of each size
    #[arg(long, default_value = "5M", value_parser = number)]
    pub(crate) loads: u64,
    /// Rounds: each measures every size once
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) rounds: u16,
    /// Memory that must stay free
    #[arg(long, default_value = "1G", value_parser = bytes, value_name = "BYTES")]
    pub(crate) margin: u64,
    /// Seed of the order
    #[arg(long, default_value_t = 42)]
    pub(crate) seed: u64,
    /// Append what was measured to this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// What `kvbench peer` builds.
#[derive(Args)]
pub(crate) struct Peer {
    /// The peer, and the folder of its source
    #[arg(value_name = "NAME=DIR", value_parser = crate::peers::source)]
    pub(crate) source: (&'static crate::peers::Source, PathBuf),
    /// The library; lib and the peer's name here, if it is left out
    #[arg(long, value_name = "FILE.so")]
    pub(crate) output: Option<PathBuf>,
}

/// What `kvbench compare` and `kvbench calibrate` measure.
#[derive(Args, Clone)]
pub(crate) struct Comparison {
    /// Kind of keys: random u64, or the paths of a directory tree [default: u64]. A file is strings, or u64 if its keys
    /// are numbers of 8 bytes, or 4, big endian [default: strings]
    #[arg(long, value_enum)]
    kind: Option<KindName>,
    /// A file in place of made pairs.
    #[command(flatten)]
    pub(crate) file: File,
    /// Number of keys; of a file, all that it has if they are fewer
    #[arg(short = 'n', long, default_value = "100K", value_parser = number)]
    pub(crate) keys: u64,
    /// Steps beside insertion; the more there are, the more it takes to be sure of one
    #[arg(long, value_enum, value_delimiter = ',', default_value = "get")]
    pub(crate) only: Vec<Step>,
    /// Parameters of the steps.
    #[command(flatten)]
    pub(crate) asked: Asked,
    /// Maximum number of keys that a step looks up
    #[arg(long, default_value = "200K", value_parser = number)]
    pub(crate) probes: u64,
    /// Blocks of four processes each, fixed beforehand
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(4..=10_000))]
    pub(crate) blocks: u16,
    /// Turns that a process takes at the steps that only read, while the other three of its block wait; the figure is
    /// the median. With 1 each process runs to its end before the next one starts, and there is memory for one
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) turns: u16,
    /// Largest difference that counts as the same, in percent
    #[arg(long, default_value_t = 1.0, value_parser = percent, value_name = "PERCENT")]
    pub(crate) margin: f64,
    /// Repeat a block if other processes used more of the CPU than this, in percent
    #[arg(long, default_value_t = 10.0, value_parser = percent, value_name = "PERCENT")]
    pub(crate) disturbed: f64,
    /// What a step is charged
    #[arg(long, value_enum, default_value_t = Clock::Wall)]
    pub(crate) clock: Clock,
    /// Directory tree whose paths are the string keys
    #[arg(long, default_value = "/usr", value_name = "DIRECTORY", conflicts_with = "data")]
    pub(crate) tree: PathBuf,
    /// Seed of everything random; each block has its own keys
    #[arg(long, default_value_t = 42)]
    pub(crate) seed: u64,
    /// Memory that must stay free
    #[arg(long, default_value = "1G", value_parser = bytes, value_name = "BYTES")]
    pub(crate) free: u64,
    /// Append what was measured to this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

impl Comparison {
    /// The kind of keys.
    pub(crate) fn kind(&self) -> KindName {
        let usual = if self.file.data.is_some() { KindName::Strings } else { KindName::U64 };
        self.kind.unwrap_or(usual)
    }

    /// The settings for a record; `keys` is the number of keys.
    pub(crate) fn describe(&self, keys: u64) -> serde_json::Value {
        serde_json::json!({
            "data": self.file.data,
            "kind": self.kind(), "keys": keys, "steps": self.only, "asked": self.asked, "probes": self.probes, "blocks": self.blocks, "turns": self.turns,
            "margin_percent": self.margin, "disturbed_percent_max": self.disturbed, "clock": self.clock, "seed": self.seed,
        })
    }

    /// The settings in words; `keys` is the number of keys.
    pub(crate) fn words(&self, keys: u64) -> String {
        let kind = self.kind().name();
        let clock = if self.clock == Clock::Wall { "wall" } else { "CPU" };
        let kind = match &self.file.data {
            Some(path) if self.kind() == KindName::U64 => format!("of numbers of {}", path.display()),
            Some(path) => format!("of {}", path.display()),
            None => format!("of kind {kind}"),
        };
        format!("{keys} pairs {kind}, {} blocks of four processes, {clock} time", self.blocks)
    }
}

/// A side of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Party {
    /// A subject, in this program or another build of it.
    Subject {
        /// The other build.
        program: Option<PathBuf>,
        /// The subject.
        subject: String,
    },
    /// What was recorded.
    Record(PathBuf),
}

impl std::fmt::Display for Party {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Party::Subject { program: Some(program), subject } => {
                write!(f, "{}={subject}", program.display())
            }
            Party::Subject { program: None, subject } => f.write_str(subject),
            Party::Record(path) => write!(f, "{}", path.display()),
        }
    }
}

/// Options of `kvbench compare`.
#[derive(Args, Clone)]
pub(crate) struct Compare {
    /// What b is compared with: SUBJECT, PROGRAM=SUBJECT (another build of kvbench), or a record (FILE.jsonl)
    #[arg(value_parser = party)]
    pub(crate) a: Party,
    /// The subject or record to judge
    #[arg(value_parser = party)]
    pub(crate) b: Party,
    /// Compare records whose runs differ in their options, command or machine; what differs is printed
    #[arg(long)]
    pub(crate) even_if_different: bool,
    /// Make b slower by this percentage, to test that it is detected
    #[arg(long, default_value_t = 0.0, value_parser = percent, value_name = "PERCENT", hide = true)]
    pub(crate) slow_b: f64,
    /// What is measured.
    #[command(flatten)]
    pub(crate) how: Comparison,
}

/// Options of `kvbench calibrate`.
#[derive(Args, Clone)]
pub(crate) struct Calibrate {
    /// The subject to compare with itself: SUBJECT or PROGRAM=SUBJECT
    #[arg(default_value = "btreemap", value_parser = party)]
    pub(crate) subject: Party,
    /// How often
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) trials: u16,
    /// The slow-down that must be found, in percent
    #[arg(long, default_value_t = 3.0, value_parser = percent, value_name = "PERCENT")]
    pub(crate) inject: f64,
    /// What is measured.
    #[command(flatten)]
    pub(crate) how: Comparison,
}

/// Options of `kvbench doctor`.
#[derive(Args, Clone)]
pub(crate) struct Doctor {
    /// Do not measure what a comparison with itself shows, which takes some seconds
    #[arg(long)]
    pub(crate) no_noise: bool,
}

/// Options of `kvbench setup`.
#[derive(Args, Clone)]
pub(crate) struct Setup {
    /// What to set, and to what; without any, what there is
    #[arg(value_name = "NAME[=VALUE]")]
    pub(crate) settings: Vec<String>,
    /// Set everything back
    #[arg(long, conflicts_with = "settings")]
    pub(crate) undo: bool,
    /// Where it is kept what was there before
    #[arg(long, default_value = "/run/kvbench-setup.json", value_name = "FILE")]
    pub(crate) keep: PathBuf,
}

/// Options of `kvbench run`.
#[derive(Args, Clone)]
pub(crate) struct Run {
    /// A suite from `kvbench list`, or a file of your own (.toml)
    #[arg(default_value = "default")]
    pub(crate) suite: String,
    /// New file for the results [default: kvbench-SUITE.jsonl]
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// The page to write [default: kvbench-SUITE.html]
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

/// Options of `kvbench report`.
#[derive(Args, Clone)]
pub(crate) struct Report {
    /// Records, as --json writes them
    #[arg(required = true, value_name = "FILE.jsonl")]
    pub(crate) records: Vec<PathBuf>,
    /// The page to write [default: report.html, unless --csv, --markdown or --highlights is given]
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write all figures as rows of CSV; - is the standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Write a table of Markdown for each kind and number of pairs; - is the standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Write the best subjects of each measurement as tables of Markdown; - is the standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) highlights: Option<PathBuf>,
    /// Subjects to show, as the record names them, or structures: with every hash, allocator and page [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    pub(crate) subjects: Vec<String>,
    /// Figures of the tables of Markdown, as the record names them [default: all of a whole step]
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    pub(crate) figures: Vec<String>,
}

/// Reads a side.
fn party(text: &str) -> Result<Party, String> {
    if text.ends_with(".jsonl") {
        return Ok(Party::Record(text.into()));
    }
    match text.rsplit_once('=') {
        // Another build may have other subjects.
        Some((program, subject)) if !program.is_empty() && !subject.is_empty() => {
            Ok(Party::Subject { program: Some(program.into()), subject: subject.to_owned() })
        }
        Some(_) => Err("PROGRAM=SUBJECT needs both".to_owned()),
        None => Ok(Party::Subject { program: None, subject: Name::parse(text)?.to_string() }),
    }
}

/// Reads a number of percent.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.0..=100.0).contains(number));
    number.ok_or_else(|| format!("{text:?} is no number from 0 to 100"))
}

/// Options of `kvbench convert`.
#[derive(Args, Clone)]
pub(crate) struct Convert {
    /// File to read
    #[arg(required_unless_present = "input_named", conflicts_with = "input_named", value_name = "INPUT")]
    pub(crate) input: Option<PathBuf>,
    /// File to make; it replaces one of that name when it is complete
    #[arg(required_unless_present = "output_named", conflicts_with = "output_named", value_name = "OUTPUT")]
    pub(crate) output: Option<PathBuf>,
    /// File to read, as the ancestor has it named
    #[arg(short = 'i', value_name = "INPUT")]
    pub(crate) input_named: Option<PathBuf>,
    /// File to make, as the ancestor has it named
    #[arg(short = 'o', value_name = "OUTPUT")]
    pub(crate) output_named: Option<PathBuf>,
    /// Work as the ancestor's generator, with its output: words of a text to bin-text or bin-text1
    #[arg(short = 'm', value_enum, value_name = "MODE", conflicts_with_all = ["from", "to"])]
    pub(crate) mode: Option<ConvertMode>,
    /// Format to read [default: detected]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) from: Option<Format>,
    /// Format to write [default: from the name of OUTPUT]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) to: Option<Format>,
    /// Append a NUL to each key in the ancestor's formats, included in its size
    #[arg(short = 't', long)]
    pub(crate) terminated: bool,
    /// Remove the NUL from each key that is read from one of the ancestor's formats
    #[arg(long)]
    pub(crate) strip_nul: bool,
    /// Keep only the first pair of each key
    #[arg(long)]
    pub(crate) unique: bool,
    /// Print each key
    #[arg(short = 'v', long)]
    pub(crate) verbose: bool,
}

/// Options of `kvbench gen`.
#[derive(Args, Clone)]
pub(crate) struct Gen {
    /// File to make; it replaces one of that name when it is complete
    pub(crate) output: PathBuf,
    /// Number of pairs
    #[arg(short = 'n', long, default_value = "1M", value_parser = number)]
    pub(crate) pairs: u64,
    /// Number of pairs, given as the approximate total bytes of keys and values
    #[arg(long, value_parser = bytes, value_name = "BYTES", conflicts_with = "pairs")]
    pub(crate) size: Option<u64>,
    /// Shape of the keys; no two are equal
    #[arg(long, value_enum, default_value_t = Keys::Uuid)]
    pub(crate) keys: Keys,
    /// Least and greatest length of zipf keys, in bytes
    #[arg(long, default_value = "12-255", value_parser = key_lengths, value_name = "LEAST-MOST")]
    pub(crate) key_lengths: RangeInclusive<u64>,
    /// Lengths of values: none, fixed:BYTES, uniform:LEAST-MOST or lognormal:MEAN,SIGMA
    #[arg(long, default_value = "none")]
    pub(crate) values: Values,
    /// How many times smaller a compressor makes the values, about; 1 is random bytes
    #[arg(long, default_value_t = 1.0, value_parser = ratio)]
    pub(crate) ratio: f64,
    /// Seed of everything random; the same seed gives the same file
    #[arg(long, default_value_t = 42)]
    pub(crate) seed: u64,
    /// Format [default: as the name of OUTPUT ends]
    #[arg(short = 'F', long, value_enum, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
}

fn ratio(text: &str) -> Result<f64, String> {
    let ratio = text.parse().ok().filter(|ratio| (1.0..=1000.0).contains(ratio));
    ratio.ok_or_else(|| "a number from 1 to 1000 is needed".to_owned())
}

/// What the ancestor's generator can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ConvertMode {
    /// Words of a text to bin-text
    ConvertText,
    /// Words of a text to bin-text1
    ConvertText1,
}

/// Options of `kvbench inspect`.
#[derive(Args, Clone)]
pub(crate) struct Inspect {
    /// File to look into
    pub(crate) file: PathBuf,
    /// Its format [default: found out]
    #[arg(short = 'F', long, value_enum, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
    /// Only check it: every length, and every checksum where the format has some
    #[arg(long)]
    pub(crate) verify: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Least memory for a store.
const BUDGET_BYTES_MIN: u64 = 16 << 20;

fn budget(text: &str) -> Result<u64, String> {
    let bytes = bytes(text)?;
    if bytes >= BUDGET_BYTES_MIN { Ok(bytes) } else { Err("at least 16M are needed".to_owned()) }
}

fn store(text: &str) -> Result<String, String> {
    let names = || stores::ENTRIES.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ");
    stores::StoreEntry::find(text)
        .map(|entry| entry.name.to_owned())
        .ok_or_else(|| format!("the stores are {}", names()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_are_read() {
        let subject = |program: Option<&str>, subject: &str| {
            Ok(Party::Subject { program: program.map(PathBuf::from), subject: subject.to_owned() })
        };
        assert_eq!(party("forrest"), subject(None, "forrest"));
        assert_eq!(party("./old=forrest"), subject(Some("./old"), "forrest"));
        assert_eq!(party("x.jsonl"), Ok(Party::Record("x.jsonl".into())));
        for text in ["nobody", "=forrest", "./old=", ""] {
            assert!(party(text).is_err(), "{text}");
        }
        for text in ["-1", "101", "nan", ""] {
            assert!(percent(text).is_err(), "{text}");
        }
    }
}

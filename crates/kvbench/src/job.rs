//! The messages between the process of a run and its arms.

use crate::alloc::Allocator;
use crate::counters::code::Code;
use crate::counters::{Counted, Event};
use crate::data::{Distribution, KindName, Set};
use crate::files::{self, Format, Reader};
use crate::machine;
use crate::measure::Clock;
use crate::sizes;
use crate::subjects::{Pages, SESSION_OPS};
use crate::workload::Mix;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// The work of one arm.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    /// What to do.
    pub(crate) task: Task,
    /// Full name of the subject.
    pub(crate) subject: String,
    /// The allocator of its process.
    #[serde(default)]
    pub(crate) allocator: Allocator,
    /// The kind of pairs.
    pub(crate) kind: KindName,
    /// Number of pairs.
    pub(crate) keys: u64,
    /// Seed of all that is random.
    pub(crate) seed: u64,
    /// Maximum number of keys that a loop of gets looks up.
    pub(crate) probes: u64,
    /// Threads of the steps that use several.
    pub(crate) threads: usize,
    /// Steps to measure.
    pub(crate) steps: Vec<Step>,
    /// Parameters of the steps; omitted if they are the defaults, so that older builds understand the job.
    #[serde(default, skip_serializing_if = "Asked::is_usual")]
    pub(crate) asked: Asked,
    /// Pages for subjects that can choose.
    pub(crate) pages: Pages,
    /// Memory that must stay free, in bytes.
    pub(crate) margin_bytes: u64,
    /// The control group that limits the memory of the process; omitted if there is none. Only stores join it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<PathBuf>,
    /// Whether threads are pinned to CPUs.
    pub(crate) pin: bool,
    /// The clock that loops of one thread are measured with.
    pub(crate) clock: Clock,
    /// Makes every loop longer by this percentage, to test that a comparison detects it.
    #[serde(default)]
    pub(crate) slowdown: f64,
    /// How often the read-only steps are repeated, each time when the arm gets its turn; the figures are medians. 0 and
    /// 1 mean once, without waiting for a turn, as in older builds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) turns: u16,
    /// What the processor is to count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) events: Vec<Event>,
    /// The codes of the events that are given by codes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) raw: Vec<Code>,
    /// Where callgrind, which then counts in place of the processor, puts what it counted: a directory for this job
    /// alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) simulation: Option<PathBuf>,
    /// A file whose pairs replace the paths; omitted if there is none, so that the job reads as in older builds, with
    /// which this one may be compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<DataFile>,
}

/// A file of pairs. Each arm loads it by itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DataFile {
    /// Its name.
    pub(crate) path: PathBuf,
    /// Its format.
    pub(crate) format: Format,
    /// Pages to load it to, by name.
    pub(crate) pages: String,
    /// Whether structures that can keep pairs where they were loaded.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) in_place: bool,
    /// Whether pairs of a file without values have empty ones.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) no_values: bool,
    /// Whether its keys are numbers.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) are_numbers: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn is_zero(turns: &u16) -> bool {
    *turns == 0
}

/// The progress message of an arm that waits for its turn.
pub(crate) const TURN: &str = "waits for its turn";

impl Job {
    /// A job with the defaults: numbers, one thread that is not pinned, wall time, no counters, no optional steps.
    pub(crate) fn of(task: Task, subject: impl ToString, keys: u64) -> Self {
        Job {
            task,
            subject: subject.to_string(),
            allocator: Allocator::Malloc,
            kind: KindName::U64,
            keys,
            seed: 0,
            probes: keys,
            threads: 1,
            steps: Vec::new(),
            asked: Asked::default(),
            pages: Pages::Auto,
            margin_bytes: 0,
            group: None,
            pin: false,
            clock: Clock::Wall,
            slowdown: 0.0,
            turns: 0,
            events: Vec::new(),
            raw: Vec::new(),
            simulation: None,
            data: None,
        }
    }
}

impl Job {
    /// How long it takes beside other jobs of its run, roughly.
    pub(crate) fn weight(&self) -> u64 {
        match &self.task {
            Task::Conform(ops) => *ops,
            Task::Pressure(orders) => pressure_weight(self.keys, orders.millis),
            _ => self.keys,
        }
    }
}

/// [`Job::weight`] of a scenario: its pairs, and those that a store takes during its time.
pub(crate) fn pressure_weight(keys: u64, millis: u64) -> u64 {
    keys.saturating_add(millis.saturating_mul(100))
}

impl DataFile {
    /// Loads it.
    pub(crate) fn load(&self, margin_bytes: u64) -> io::Result<Set> {
        let pages = self.pages.parse().map_err(io::Error::other)?;
        let mut reader = Reader::open(&self.path, Some(self.format), false)?;
        files::load(&mut reader, pages, self.are_numbers, margin_bytes)
    }
}

/// What to do with a subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Task {
    /// Check it against a model, by this number of operations.
    Conform(u64),
    /// Build it and take the steps.
    Measure,
    /// Build it after it reserved room for all keys.
    Reserve,
    /// What the ancestor's command does: insert, find, update and delete all keys.
    Ancestor,
    /// Let it grow from one size to the next and take the reading steps at each.
    Sweep(Vec<u64>),
    /// llds's own workload.
    Llds,
    /// A store on disk.
    Store(Orders),
    /// A scenario of a store on disk.
    Pressure(PressureOrders),
    /// Runs, read in several ways.
    Remix(RemixOrders),
    /// A pointer chase through memory of each of these sizes, in bytes.
    Chase(Vec<u64>),
}

/// A step of a measurement. Insertion and memory are always measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
pub(crate) enum Step {
    /// Gets that do not depend on each other.
    Get,
    /// Gets that do.
    Dependent,
    /// Gets of keys that are not there.
    Miss,
    /// Gets in batches.
    Batch,
    /// Scans of 50.
    Scan,
    /// Full iteration.
    Iterate,
    /// Several threads against one.
    Threads,
    /// Removal of a tenth.
    Remove,
    /// Removal of half of the pairs while all are iterated.
    Erase,
    /// Insertion into tables that reserved room for all keys, in a separate process.
    Reserve,
    /// Gets of which some find nothing (--hits).
    Hits,
    /// Updates of keys that are there.
    Update,
    /// Gets and updates (--reads).
    Mixed,
    /// YCSB: half gets, half updates, zipfian.
    YcsbA,
    /// YCSB: 95 % gets, 5 % updates, zipfian.
    YcsbB,
    /// YCSB: gets, zipfian.
    YcsbC,
    /// YCSB: 95 % gets of what came last, 5 % insertions.
    YcsbD,
    /// YCSB: 95 % scans of 1 to 100, zipfian, 5 % insertions.
    YcsbE,
    /// YCSB: half gets, half reads followed by a write, zipfian.
    YcsbF,
    /// Gets, and the operations of update, mixed and YCSB if these are chosen, each timed by itself.
    Latency,
}

impl Step {
    /// Whether keys that are there get values of other keys.
    pub(crate) fn writes_values(self) -> bool {
        use Step::{Mixed, Update, YcsbA, YcsbB, YcsbD, YcsbE, YcsbF};
        matches!(self, Update | Mixed | YcsbA | YcsbB | YcsbD | YcsbE | YcsbF)
    }

    /// The default steps: those by which all structures can be compared.
    pub(crate) const USUAL: [Step; 8] = [
        Step::Get,
        Step::Dependent,
        Step::Miss,
        Step::Batch,
        Step::Scan,
        Step::Iterate,
        Step::Threads,
        Step::Remove,
    ];
}

/// Parameters of the steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub(crate) struct Asked {
    /// How often each key is asked for by get, dependent, batch, hits, update, mixed and latency: uniform,
    /// `zipfian[:THETA]`, `latest[:THETA]`, hotspot:KEYS,OPS (percent), or sequential
    #[arg(long, default_value_t)]
    pub(crate) distribution: Distribution,
    /// Percent of the keys that are there, in the step hits
    #[arg(long, value_delimiter = ',', default_value = "50", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(crate) hits: Vec<u8>,
    /// Percent of gets in the step mixed; the others are updates
    #[arg(long, value_delimiter = ',', default_value = "50", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(crate) reads: Vec<u8>,
    /// Keys in a batch, at most 1,024
    #[arg(long, value_delimiter = ',', default_value = "64", value_parser = clap::value_parser!(u16).range(1..=SESSION_OPS as i64))]
    pub(crate) batches: Vec<u16>,
    /// Run the step latency a second time at this fixed rate of operations per second, and measure each operation
    /// from the time at which it was due; at most 10 s of each mix
    #[arg(long, value_name = "OPS_PER_S", value_parser = rate)]
    pub(crate) rate: Option<u64>,
}

/// Reads a number of operations a second.
fn rate(text: &str) -> Result<u64, String> {
    match sizes::number(text)? {
        rate @ ..=1_000_000_000 => Ok(rate),
        _ => Err("the maximum is 1G operations per second".to_owned()),
    }
}

impl Default for Asked {
    fn default() -> Self {
        Asked {
            distribution: Distribution::Uniform,
            hits: vec![50],
            reads: vec![50],
            batches: vec![64],
            rate: None,
        }
    }
}

impl Asked {
    /// Whether it is what steps do anyway.
    pub(crate) fn is_usual(&self) -> bool {
        *self == Asked::default()
    }

    /// The mixes that these steps are.
    pub(crate) fn mixes(&self, steps: &[Step]) -> Vec<Mix> {
        let wanted = |step: Step| steps.contains(&step);
        let mut mixes = Vec::new();
        if wanted(Step::Update) {
            mixes.push(Mix::of("update", 0, self.distribution));
        }
        if wanted(Step::Mixed) {
            let of = |reads: &u8| Mix::of(format!("mixed_{reads}"), *reads, self.distribution);
            mixes.extend(self.reads.iter().map(of));
        }
        let ycsb = [Step::YcsbA, Step::YcsbB, Step::YcsbC, Step::YcsbF, Step::YcsbD, Step::YcsbE];
        mixes.extend(Mix::ycsb().into_iter().zip(ycsb).filter(|(_, step)| wanted(*step)).map(|(mix, _)| mix));
        mixes
    }
}

/// Parameters of an arm of `kvbench store`, beside those of all arms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Orders {
    /// A directory of its own, which is there and empty.
    pub(crate) directory: PathBuf,
    /// Memory for all of the store, in bytes.
    pub(crate) budget_bytes: u64,
    /// The durability of its writes.
    #[serde(default)]
    pub(crate) durability: Durability,
    /// How the store compresses.
    #[serde(default)]
    pub(crate) compression: Compression,
    /// What the values are.
    #[serde(default)]
    pub(crate) values: StoreValues,
    /// What happens to the store at the end.
    #[serde(default)]
    pub(crate) life: Life,
    /// Writes of each step in which each is synced.
    pub(crate) synced: u64,
    /// How long a step that reads is warmed up at most, in milliseconds.
    #[serde(default)]
    pub(crate) warm_up_millis: u64,
    /// Steps beside loading.
    pub(crate) steps: Vec<StoreStep>,
}

/// Parameters of an arm of `kvbench pressure`, beside those of all arms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PressureOrders {
    /// A directory of its own, empty in the first part of a scenario.
    pub(crate) directory: PathBuf,
    /// What to do.
    pub(crate) scenario: Scenario,
    /// Which part of it.
    pub(crate) part: Part,
    /// Size of a memtable, in bytes.
    pub(crate) memtable_bytes: u64,
    /// Size of the cache, in bytes.
    pub(crate) cache_bytes: u64,
    /// How long a load lasts, or how long a store stays idle, in milliseconds.
    pub(crate) millis: u64,
    /// Rounds of updates.
    pub(crate) rounds: u64,
    /// Threads that do a mix.
    pub(crate) threads: u16,
    /// Operations of a mix that are due in a second, of all threads; without it each thread does one after the other.
    pub(crate) rate: Option<u64>,
    /// How long a mix is warmed up at most, in milliseconds.
    pub(crate) warm_up_millis: u64,
}

/// A scenario of `kvbench pressure`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, strum::IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", prefix = "pressure ")]
pub(crate) enum Scenario {
    /// Resident memory under writes and reads, against the budget
    Memory,
    /// The time of each put while two threads write without pause
    Stalls,
    /// Snapshots, made and dropped beside such a load
    Snapshots,
    /// Space on disk, and bytes written, while pairs are overwritten
    Overwrites,
    /// Space on disk after 90 % of the pairs were deleted
    Deletes,
    /// Half of the pairs are deleted as one range, then many small ranges
    Ranges,
    /// Opening after a close and after a kill
    Opening,
    /// The cost of a put, and bytes written, while a store grows
    Growth,
    /// Closing a store under load
    Closing,
    /// Rounds of updates of 2^20 keys, as in the README of the ancestor
    Headline,
    /// The first pair is read and deleted, again and again
    Queue,
    /// Values of 4 KiB, 64 KiB and 1 MiB, loaded, read and overwritten
    Values,
    /// Sorted pairs are added to a store that has others, at one instant
    Ingest,
    /// Threads move amounts between accounts, a few of which they all want
    Transfers,
    /// Threads get pairs while one more overwrites them without pause, as in db_bench
    #[serde(rename = "readwhilewriting")]
    #[value(name = "readwhilewriting")]
    #[strum(serialize = "readwhilewriting")]
    ReadWhileWriting,
    /// YCSB A by several threads: half gets, half updates, by Zipf's law
    YcsbA,
    /// YCSB B: 95 % gets, 5 % updates, by Zipf's law
    YcsbB,
    /// YCSB C: gets, by Zipf's law
    YcsbC,
    /// YCSB D: 95 % gets, mostly of what came last, 5 % insertions
    YcsbD,
    /// YCSB E: 95 % scans of 1 to 100 pairs, 5 % insertions
    YcsbE,
    /// YCSB F: half gets, half updates that get the pair first, by Zipf's law
    YcsbF,
}

impl Scenario {
    /// The name in tables and records.
    pub(crate) fn kind(self) -> &'static str {
        self.into()
    }

    /// The mix that it is, if it is one.
    pub(crate) fn mix(self) -> Option<Mix> {
        let [a, b, c, f, d, e] = Mix::ycsb();
        match self {
            Scenario::ReadWhileWriting => Some(Mix::of("readwhilewriting", 100, Distribution::Uniform)),
            Scenario::YcsbA => Some(a),
            Scenario::YcsbB => Some(b),
            Scenario::YcsbC => Some(c),
            Scenario::YcsbD => Some(d),
            Scenario::YcsbE => Some(e),
            Scenario::YcsbF => Some(f),
            _ => None,
        }
    }

    /// Whether one more thread writes without pause beside the mix.
    pub(crate) fn has_a_writer(self) -> bool {
        self == Scenario::ReadWhileWriting
    }

    /// The parts, each of which is a process.
    pub(crate) fn parts(self) -> &'static [Part] {
        match self {
            Scenario::Opening => &[Part::Whole, Part::Opened, Part::Killed, Part::Recovered],
            _ => &[Part::Whole],
        }
    }
}

/// A part of a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Part {
    /// All of it, or of the scenario of opening what comes before the first opening.
    Whole,
    /// Opening what was closed.
    Opened,
    /// Writing until the process is killed.
    Killed,
    /// Opening it then.
    Recovered,
}

/// How a store compresses what it writes to tables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Compression {
    /// Not at all
    #[default]
    None,
    /// LZ4, in stores that have it
    Lz4,
}

/// What values are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StoreValues {
    /// Random bytes, which nothing makes smaller
    #[default]
    Random,
    /// Events as JSON, of the same length
    Events,
}

/// What a write survives once its call has returned.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    clap::ValueEnum,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub(crate) enum Durability {
    /// Nothing: the end of the process may lose it
    Memory,
    /// The end of the process: the operating system has it
    #[default]
    Process,
    /// Power loss: the device has it
    Power,
}

impl Durability {
    /// The name in tables and records.
    pub(crate) fn name(self) -> &'static str {
        self.into()
    }
}

/// What an arm does with a store's life.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Life {
    /// It is made, measured and closed.
    #[default]
    Whole,
    /// It is there, closed by its last process, and opened; then it must have these pairs, with this sum.
    Reopened {
        /// Pairs.
        pairs: u64,
        /// Their sum, as [`Figures::sums`] has it.
        sum: u64,
    },
    /// It is made and loaded, and the process is killed.
    Killed,
    /// It is there, left by a process that was killed, and opened; then it must have what was promised.
    Recovered,
}

/// A step of a store's measurement. Loading is always measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StoreStep {
    /// Gets of keys that are there.
    Get,
    /// Gets of keys that are not there.
    Miss,
    /// Gets of 64 keys at once.
    Many,
    /// The first pair at or after a key.
    Seek,
    /// Scans of 50.
    Scan,
    /// All pairs, both ways.
    Full,
    /// Half updates, half gets.
    Update,
    /// 95 % scans of 50, 5 % inserts.
    Insert,
    /// Batches of 100.
    Batch,
    /// Single writes, each synced.
    Synced,
    /// The store's own way to take the least space.
    Compact,
    /// Opening it again: when it was closed, and when its process was killed.
    Reopen,
}

/// Parameters of an arm of `kvbench remix`, beside those of all arms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RemixOrders {
    /// A directory of its own, which is there and empty.
    pub(crate) directory: PathBuf,
    /// Number of runs.
    pub(crate) runs: usize,
    /// Which keys are in one run.
    pub(crate) locality: Locality,
    /// Rounds: in each, everything is measured once.
    pub(crate) rounds: u16,
    /// Steps to measure.
    pub(crate) steps: Vec<RemixStep>,
}

/// Which keys are in one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Locality {
    /// Each key is in a run chosen at random.
    Weak,
    /// So is each stretch of 64 keys that follow one another.
    Strong,
}

/// A step of a REMIX's measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RemixStep {
    /// The first key at or after a given one.
    Seek,
    /// A seek and 50 steps, each of which shows a pair.
    Scan,
    /// Gets of keys that are there.
    Hit,
    /// Gets of keys that are not there.
    Miss,
    /// Making the REMIX.
    Build,
}

/// A message of an arm.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Message {
    /// It began this step, or is so far in it.
    Progress(String),
    /// It has ended.
    Done(Outcome),
}

/// How an arm ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Outcome {
    /// It measured.
    Figures(Box<Figures>),
    /// The subject cannot do this; why.
    Left(String),
    /// The subject was wrong, or broke; how.
    Failed(String),
}

impl From<Figures> for Outcome {
    fn from(figures: Figures) -> Self {
        Outcome::Figures(Box::new(figures))
    }
}

impl Outcome {
    /// The figures, or as an error why there are none.
    pub(crate) fn measured(self) -> io::Result<Figures> {
        match self {
            Outcome::Figures(figures) => Ok(*figures),
            Outcome::Left(why) | Outcome::Failed(why) => Err(io::Error::other(why)),
        }
    }
}

/// Milliseconds of a stretch of a time line.
pub(crate) const TIMELINE_MS: u64 = 100;

/// What an arm measured.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// By name; the unit is the end of the name.
    pub(crate) values: BTreeMap<String, f64>,
    /// By figure: the share of its step's time in which others had the CPU, in percent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) disturbed: BTreeMap<String, f64>,
    /// Those of which the arm itself made several rounds, round by round.
    #[serde(default)]
    pub(crate) rounds: BTreeMap<String, Vec<f64>>,
    /// Operations done in each stretch of [`TIMELINE_MS`] of a step, one after the other.
    #[serde(default)]
    pub(crate) timelines: BTreeMap<String, Vec<u64>>,
    /// Sums of what the loops read that all subjects must share.
    pub(crate) sums: BTreeMap<String, u64>,
    /// Remarks: where the memory came from, what was left out.
    pub(crate) notes: Vec<String>,
    /// The provider of each counted event.
    #[serde(default)]
    pub(crate) counted: Option<Box<Counted>>,
}

impl Figures {
    /// Notes a figure.
    pub(crate) fn set(&mut self, name: &str, value: f64) {
        self.values.insert(name.to_owned(), value);
    }
}

/// Takes progress.
pub(crate) type Report<'a> = &'a mut dyn FnMut(String);

/// What a step gives, or how the arm ends instead.
pub(crate) type Done<T> = Result<T, Outcome>;

/// The end of an arm whose subject was wrong.
pub(crate) fn wrong<T>(why: impl Into<String>) -> Done<T> {
    Err(Outcome::Failed(why.into()))
}

/// The end of an arm for whose pairs memory is too small, or `Ok` if it is not.
pub(crate) fn room(pairs: u64, margin_bytes: u64) -> Done<()> {
    match Some(margin_bytes).filter(|margin| *margin > 0).and_then(|_| machine::available_bytes()) {
        Some(free) if free < margin_bytes => Err(Outcome::Left(format!(
            "no room: {pairs} pairs in, {} of memory left, {} must stay free",
            sizes::text(free),
            sizes::text(margin_bytes)
        ))),
        _ => Ok(()),
    }
}

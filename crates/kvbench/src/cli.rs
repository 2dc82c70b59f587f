//! The command line.
//!
//! Exit codes: 0 if everything was measured (a missed goal is a result, not a failure), 1 if a subject failed or gave
//! wrong results or a record could not be written, 2 for an invalid command line. A completed comparison exits with the
//! code of its verdict.

use crate::ancestor_command::Ancestor;
use crate::data::Walk;
use crate::job::{Job, Life, Message, Outcome, Part, Task};
use crate::options::{
    Calibrate, Chase, Compare, Convert, Doctor, Gen, Inspect, Llds, Memory, Peer, Pressure, Remixes, Report,
    Run, Setup, Stores,
};
use crate::statistics::Verdict;
use crate::{
    ancestor_command, chase, chase_command, compare_command, data, doctor_command, files_command, list,
    llds_command, memory, names, pages, peers, pressure_command, remix, remix_command, report, run_command,
    runner, store_command, stores, workplace,
};
use clap::{CommandFactory, Parser, Subcommand};
use forrest_base::panic_text;
use std::process::ExitCode;

/// What ordered structures cost, measured so that the figures can be trusted
///
/// Every subject is first checked against BTreeMap, then measured in a fresh process of this program; every
/// answer is summed and compared. Figures are medians over the rounds, in nanoseconds per operation unless a
/// column says otherwise.
#[derive(Parser)]
#[command(name = "kvbench", version, about, verbatim_doc_comment)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// A suite of measurements, its record, and a page of it
    #[command(after_help = RUN_EXAMPLES)]
    Run(Run),
    /// Structures in memory, side by side, and how far the project's goals are met
    #[command(after_help = MEMORY_EXAMPLES)]
    Memory(Memory),
    /// Build structures from a source that no package has: folly's F14, and HOT
    #[command(after_help = PEER_EXAMPLES)]
    Peer(Peer),
    /// Stores on disk, side by side, and how far the project's goals are met
    #[command(after_help = STORE_EXAMPLES)]
    Store(Stores),
    /// Stores on disk under pressure: memory, space, stalls, opening and closing, and the project's goals
    #[command(after_help = PRESSURE_EXAMPLES)]
    Pressure(Pressure),
    /// The REMIX by itself beside a merging iterator over the same tables, and the ancestor's figures
    #[command(after_help = REMIX_EXAMPLES)]
    Remix(Remixes),
    /// The workload of llds's own benchmark: this project's index against a red-black tree
    #[command(after_help = LLDS_EXAMPLES)]
    Llds(Llds),
    /// What a load from memory costs, by size and kind of pages: a pointer chase
    #[command(after_help = CHASE_EXAMPLES)]
    Chase(Chase),
    /// Whether one subject, or one build, is faster than another: a verdict, and an exit code
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(Compare),
    /// Records as one page with charts, or as CSV
    #[command(after_help = REPORT_EXAMPLES)]
    Report(Report),
    /// How often the verdict of a comparison is wrong on this machine
    Calibrate(Calibrate),
    /// A made data set: keys and values of chosen shapes and sizes
    #[command(after_help = GEN_EXAMPLES)]
    Gen(Gen),
    /// A data set from one format into another
    #[command(after_help = CONVERT_EXAMPLES)]
    Convert(Convert),
    /// Show the content of a data set, and whether it is valid
    #[command(after_help = INSPECT_EXAMPLES)]
    Inspect(Inspect),
    /// What of this machine's figures can be trusted, and how to make it more
    Doctor(Doctor),
    /// Sets what makes figures steadier and needs root, and sets it back
    Setup(Setup),
    /// List the structures, hashes, allocators and stores, with versions and remarks
    List,
    /// Writes manual pages and completions of shells, to be installed
    #[command(hide = true)]
    Pages {
        /// Where to; it is made
        #[arg(value_name = "DIR")]
        directory: std::path::PathBuf,
    },
    /// Removes a run's directory, and the group that limits its memory, when the run has ended; started by the program
    /// itself
    #[command(hide = true)]
    Sweep {
        /// The directory.
        directory: std::path::PathBuf,
        /// The group, if there is one.
        group: Option<std::path::PathBuf>,
    },
    /// One arm of a run; started by the program itself
    #[command(hide = true)]
    Arm {
        /// What to do.
        job: String,
    },
}

const RUN_EXAMPLES: &str = "Examples:
  kvbench run                          structures, on numbers and on the paths of this machine
  kvbench run pages                    what virtual memory costs
  kvbench run mine.toml --html mine.html

A suite of your own is a file like those in crates/kvbench/suites: commands of this program, and why.";

const MEMORY_EXAMPLES: &str = "Examples:
  kvbench memory --quick                           all subjects, small, in seconds
  kvbench memory -n 10M --json bench/record/x.jsonl
  kvbench memory -n 1M --subjects forrest,btreemap --kinds u64 --only get,dependent --rounds 5
  kvbench memory -n 10M --no-sweep --pages auto,thp,plain
  kvbench memory -n 1M --events instructions,cycles,llc_misses --subjects forrest,btreemap
  kvbench memory --simulate --subjects forrest,btreemap --events instructions,branch_misses
  kvbench memory -n 1M --subjects cuckoo+xxh3,f14+rapidhash,hashbrown@mimalloc --no-sweep
  kvbench memory -n 1M --no-sweep --only ycsb-a,ycsb-b,ycsb-c,ycsb-d,ycsb-e,ycsb-f
  kvbench memory -n 1M --no-sweep --only get,batch,hits,mixed --distribution zipfian:0.99 --batches 8,64 --hits 10,90
  kvbench memory -n 1M --no-sweep --only mixed --reads 95 --rate 200K   each timed, closed and at a rate

A subject is STRUCTURE[+HASH][@ALLOCATOR]; what is left out is the structure's own hash, and malloc.
`kvbench list` has all of them. Allocators are compiled in by features of their names.
  kvbench memory --data words.kvb --subjects forrest,btreemap

Sizes: 10M is 10,000,000 keys; 1G of memory is 2^30 bytes.";

const PEER_EXAMPLES: &str = "Examples:
  kvbench peer folly=../folly --output /tmp/libfolly.so
  git clone https://github.com/speedskater/hot && kvbench peer hot=hot
  kvbench memory --subjects ./libhot.so:hot,forrest,btreemap

The library is compiled for this processor, by c++ or what CXX names. folly needs fmt and Boost (Debian:
libfmt-dev, libboost-dev), but no build of its own; hot needs a processor with AVX2 and BMI2.";

const STORE_EXAMPLES: &str = "Examples:
  kvbench store --subjects forrest -n 1M           this project's engine alone
  kvbench store --rounds 3 --json bench/record/x.jsonl
  kvbench store -n 1M --subjects forrest,lmdb --only get,seek,scan
  kvbench store --data paths.txt                   the keys of a file

  kvbench store -n 100K --durability memory,process,power

The peers are compiled in by `cargo xtask bench store` only. 1G of memory is 2^30 bytes.";

const PRESSURE_EXAMPLES: &str = "Examples:
  kvbench pressure --quick                         all scenarios, tiny, in seconds
  kvbench pressure stalls --seconds 180
  kvbench pressure overwrites --live 256M --memtable 8M
  kvbench pressure opening growth -n 5M --subjects forrest,fjall --json bench/record/x.jsonl

The peers are compiled in by `cargo xtask bench pressure` only. 1G of memory is 2^30 bytes.";

const REMIX_EXAMPLES: &str = "Examples:
  kvbench remix                                    as the ancestor measured it
  kvbench remix -n 10M --rounds 9 --json bench/record/x.jsonl
  kvbench remix --runs 8 --localities weak --only scan";

const LLDS_EXAMPLES: &str = "Examples:
  kvbench llds -n 10M
  kvbench llds --max         first see how many keys fit into memory, then run with as many

The table of llds begins at 500M keys, 2 threads.";

const CHASE_EXAMPLES: &str = "Examples:
  kvbench chase                                    256 KiB to 4 GiB on plain and transparent huge pages
  kvbench chase --sizes 1G --pages plain,thp,2m,1g

Explicit pages (2m, 1g) must be reserved: `kvbench setup` tells how. 1G is 2^30 bytes.";

const COMPARE_EXAMPLES: &str = "Examples:
  kvbench compare btreemap forrest                 is forrest faster than BTreeMap?
  kvbench compare ./kvbench-before=forrest forrest --only get,scan -n 1M
  kvbench compare before.jsonl after.jsonl         two records of kvbench memory --rounds 10

Exit codes: 0 b is the same, 3 faster, 4 slower in some figure, 5 inconclusive.";
const GEN_EXAMPLES: &str = "Examples:
  kvbench gen uuids.kvb -n 10M
  kvbench gen urls.kvb --keys urls --values lognormal:200,1 --ratio 2.0
  kvbench gen big.kvb --keys zipf --key-lengths 16-1000 --values uniform:10-500 --size 8G
  kvbench gen numbers.bin --keys dense -F bin-text

Numbers: 10M is 10,000,000 pairs; 8G of --size is 8 * 2^30 bytes. No memory is needed for the pairs.";

const REPORT_EXAMPLES: &str = "Examples:
  kvbench memory -n 1M --rounds 5 --json here.jsonl && kvbench report here.jsonl
  kvbench report bench/record/*.jsonl --html all.html
  kvbench report here.jsonl --csv -
  kvbench report here.jsonl --markdown - --figures insert_ns,get_ns,resident_bytes_per_key
  kvbench report here.jsonl --highlights -                 the best of each measurement

The page needs no network and has no scripts; each column is explained where it stands.";

const CONVERT_EXAMPLES: &str = "Examples:
  kvbench convert words.txt words.kvb              each word a key
  kvbench convert words.kvb words.bin --to bin-text
  kvbench convert -m convert-text -i ./data -o ./data.bin
  kvbench convert pairs.bin pairs.kvb --from bin-slice-kv --unique
  kvbench convert books_200M_uint64 books.kvb      SOSD
  kvbench convert pairs.csv pairs.jsonl

OUTPUT appears only when it is complete. Values are left out, with a message, if the format has no
place for them.";

const INSPECT_EXAMPLES: &str = "Examples:
  kvbench inspect words.kvb
  kvbench inspect data.bin -F bin-text --json
  kvbench inspect words.kvb --verify

For a damaged file, the error names the offset and the reason; the exit code is 1.";

/// Parses the command line and runs the command.
pub(crate) fn run() -> ExitCode {
    match done() {
        Ok(code) => code,
        // A reader that has seen enough is no failure.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kvbench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn done() -> std::io::Result<ExitCode> {
    let all_went_well = |done| if done { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    if ancestor_command::is_meant(std::env::args_os().skip(1)) {
        return Ancestor::parse().run().map(all_went_well);
    }
    let mut arguments: Vec<_> = std::env::args_os().collect();
    if ancestor_command::generates(arguments.get(1..).unwrap_or_default()) {
        arguments.insert(1, "convert".into());
    }
    perform(Cli::parse_from(arguments).command)
}

/// Runs a command.
fn perform(command: Command) -> std::io::Result<ExitCode> {
    let all_went_well = |done| if done { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    match command {
        Command::Run(options) => run_command::run(&options, &Own).map(all_went_well),
        Command::Gen(options) => files_command::generate(&options).map(all_went_well),
        Command::Sweep { directory, group } => {
            workplace::sweep(&directory, group.as_deref()).map(|()| ExitCode::SUCCESS)
        }
        Command::Arm { job } => arm(&job).map(all_went_well),
        Command::Memory(options) => memory::run(options).map(all_went_well),
        Command::Peer(options) => {
            let (source, tree) = &options.source;
            peers::run(source, tree, options.output.as_deref()).map(|()| ExitCode::SUCCESS)
        }
        Command::Store(options) => store_command::run(&options).map(all_went_well),
        Command::Pressure(options) => pressure_command::run(&options).map(all_went_well),
        Command::Remix(options) => remix_command::run(&options).map(all_went_well),
        Command::Llds(options) => llds_command::run(&options).map(all_went_well),
        Command::Chase(options) => chase_command::run(&options).map(all_went_well),
        Command::Compare(options) => compare_command::run(&options).map(exit_code),
        Command::Calibrate(options) => compare_command::calibrate(&options).map(all_went_well),
        Command::Report(options) => report::run(&options).map(all_went_well),
        Command::Convert(options) => files_command::convert(&options).map(all_went_well),
        Command::Inspect(options) => files_command::inspect(&options).map(all_went_well),
        Command::Doctor(options) => doctor_command::doctor(&options).map(all_went_well),
        Command::Setup(options) => doctor_command::setup(&options).map(all_went_well),
        Command::Pages { directory } => pages::write(&Cli::command(), &directory).map(|()| ExitCode::SUCCESS),
        Command::List => list::print(&mut std::io::stdout().lock()).map(|()| ExitCode::SUCCESS),
    }
}

/// The commands of this program, for suites.
struct Own;

impl run_command::Commands for Own {
    type Command = Command;

    fn read(&self, words: &[String]) -> Result<Command, String> {
        let program = std::iter::once("kvbench").chain(words.iter().map(String::as_str));
        match Cli::try_parse_from(program).map_err(|error| error.to_string())?.command {
            Command::Run(_) => Err("a suite within a suite".to_owned()),
            command => Ok(command),
        }
    }

    fn perform(&self, command: Command) -> std::io::Result<bool> {
        match command {
            // Its verdict is a result.
            Command::Compare(options) => compare_command::run(&options).map(|_| true),
            command => perform(command).map(|code| code == ExitCode::SUCCESS),
        }
    }
}

/// What a comparison ends with. 1 and 2 are what they are everywhere.
fn exit_code(verdict: Verdict) -> ExitCode {
    ExitCode::from(match verdict {
        Verdict::Same => 0,
        Verdict::Faster => 3,
        Verdict::Slower => 4,
        Verdict::Inconclusive => 5,
    })
}

/// The arm of a [`runner::Runner`]: does one job and reports the outcome.
fn arm(job: &str) -> std::io::Result<bool> {
    let job: Job = serde_json::from_str(job).map_err(std::io::Error::other)?;
    let walk = data::receive_paths(&mut std::io::stdin().lock())?;
    if job.simulation.is_some() {
        runner::die_with_parent();
    } else {
        runner::end_with_parent();
    }
    let mut last = std::time::Instant::now();
    let mut report = |step: String| {
        // Often enough to look alive, seldom enough to cost nothing; and never by a clock where all must be the same
        // again.
        let late = job.simulation.is_none() && last.elapsed().as_millis() > 200;
        if !step.ends_with('%') || late {
            last = std::time::Instant::now();
            runner::tell(&Message::Progress(step));
        }
    };
    let work = || match job.task {
        Task::Store(_) | Task::Pressure(_) => stores::dispatch(&job, &mut report),
        Task::Remix(_) => remix::dispatch(&job, &mut report),
        Task::Chase(_) => chase::dispatch(&job, &mut report),
        _ => {
            let walk = match &job.data {
                Some(data) => match data.load(job.margin_bytes) {
                    Ok(set) => Walk::of_set(set, data.in_place, data.no_values),
                    Err(why) => return Outcome::Failed(why.to_string()),
                },
                None => walk,
            };
            names::dispatch(&job, walk, &mut report)
        }
    };
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        Outcome::Failed(format!("panicked: {}", panic_text(&*panic).unwrap_or("without a word")))
    });
    let is_to_be_killed = match &job.task {
        Task::Store(orders) => orders.life == Life::Killed,
        Task::Pressure(orders) => orders.part == Part::Killed,
        _ => false,
    };
    runner::tell(&Message::Done(outcome));
    if is_to_be_killed {
        // Nothing of this process is to end well: what it has not handed to the system by now is lost.
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
    // The system takes the memory back faster than destructors would.
    std::process::exit(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_is_made_of_commands_that_make_sense() {
        run_command::check_all(&Own).unwrap();
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn pages_and_completions_tell_every_command() {
        let directory = tempfile::tempdir().unwrap();
        pages::write(&Cli::command(), directory.path()).unwrap();
        let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
        let completions = ["kvbench.bash", "_kvbench", "kvbench.fish"].map(read);
        for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let name = command.get_name();
            let page = read(&format!("kvbench-{name}.1"));
            let has_examples = command.get_after_help().is_some();
            assert!(page.contains(".TH kvbench"), "{name}: {page}");
            assert_eq!(
                page.contains("\n.SH NOTES\n.nf\n.in 0\nExamples:\n  kvbench"),
                has_examples,
                "{page}"
            );
            assert!(completions.iter().all(|completion| completion.contains(name)), "{name}");
        }
        assert!(read("kvbench.1").contains("measured so that the figures can be trusted"));
        assert!(!directory.path().join("kvbench-help.1").exists());
    }
}

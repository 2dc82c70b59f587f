//! `cargo xtask vm`: the kernel module in an emulated machine.
//!
//! Builds the module and its checks from a copy of `kernel/llds` (`bench.rs`), for Debian's newest kernel of the cloud
//! flavour (`kernel.rs`). Packs them with the library's tests and the command line (`client.rs`) into an archive, the
//! machine's only file system (`archive.rs`). Boots it under QEMU (`machine.rs`), and reads the results of the checks
//! from its console (`console.rs`). There are four boots: with the kernel as users have it, with its allocator
//! checking every object, for the library and the command line, and with huge pages reserved, on which stores lie.
//!
//! The host needs only programs installed, and its own kernel is never touched. If something required is unavailable,
//! the step is skipped. Warnings of compilers and checkers are failures, and so is a machine that does not boot or does
//! not report success. `--planted` runs mutation tests of the checks (`planted.rs`); `--costs` counts instructions
//! (`costs.rs`).
//!
//! With `--debug`, the same checks run in another machine: a kernel in user mode, built here with KASAN, UBSAN,
//! lockdep and fault injection (`source.rs`), in which each allocation and each copy of each operation fails in turn.
//! It has one processor. An error in the kernel's log fails the run even if all checks pass.

mod ancestor;
mod archive;
mod bench;
mod boots;
mod client;
mod console;
mod costs;
mod kernel;
mod machine;
mod planted;
mod source;
mod style;
mod suite;

use std::time::{Instant, SystemTime};

pub(crate) use boots::NAME;

use bench::{Bench, Kind};
use boots::{BOOTS, Boot, CLIENT, DEBUG, HUGE};
use client::Client;
use console::Report;
use machine::Processors;

use crate::Failure;
use crate::steps::{Outcome, Verdict};
use crate::workspace::Workspace;

pub(crate) const DOES: &str = "the kernel module in an emulated machine";

/// The checks that the debug machine cannot run. Skipping any other check there is a failure.
const DEBUG_SKIPS: &[&str] = &[
    "version_answers_32_bit_programs",
    "names_are_for_32_bit_programs_too",
    "slab_debugging_is_on",
    "a_store_lies_on_the_nodes_that_were_asked_for",
];
/// The checks that the first boot of the stock kernel is made for. Skipping one there is a failure.
const PLAIN_RUNS: &[&str] = &["a_store_lies_on_the_nodes_that_were_asked_for", "fragmented_memory_is_enough"];

/// What the caller may set for the checks, as `NAME=NUMBER`.
const SETTINGS: &[(&str, &str)] = &[
    ("hostile_seed", "of the random calls; a new one each time unless given"),
    ("hostile_calls", "how many random calls"),
    ("loads", "how often the module is loaded and unloaded"),
    ("opens", "how often the device is opened"),
    ("stores", "how often a store is made and closed"),
    ("keys", "how many keys the large stores have, and how many --ancestor has"),
    ("together", "how often one reads while another writes"),
    ("races", "how often it is unloaded while somebody opens it, and a process is killed that makes stores"),
    ("attaches", "how often each of four threads makes, opens, lists or destroys stores"),
    ("asks", "how often each of four threads asks"),
    ("seeds", "how many seeds of the library's model test"),
    ("sweeps", "how often each point of an act fails, with --debug"),
    ("fault_keys", "how many keys are put in where each point fails, with --debug"),
    ("seconds", "how long a check may take"),
];

/// The command.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    let (settings, words) = settings(arguments).map_err(Failure::Usage)?;
    let start = Instant::now();
    let verdict = match words.split_first() {
        None => boot_all(workspace, &settings, &[]),
        Some((name, _)) if all_boots().any(|boot| boot.name == *name) => {
            boot_all(workspace, &settings, &words)
        }
        Some((&planted::OPTION, names)) => planted::run(workspace, Kind::Stock, names, &settings),
        Some((word, [])) if *word == "--debug" => boot_debug(workspace, &settings),
        Some((word, [planted::OPTION, names @ ..])) if *word == "--debug" => {
            planted::run(workspace, Kind::Debug, names, &settings)
        }
        Some((word, names)) if *word == SUITES_OPTION => boot_suites(workspace, names, &settings),
        Some((word, more)) if *word == "--ancestor" => ancestor::run(workspace, more, &settings),
        Some((word, [])) if *word == "--style" => style::run(workspace),
        Some((word, more)) if *word == "--costs" => costs::run(workspace, more),
        Some((word, _)) => return Err(Failure::Usage(format!("{word:?} is no setting: NAME=NUMBER"))),
    };
    match verdict {
        Ok(Outcome::Passed) => println!("\npassed in {:.1} s", start.elapsed().as_secs_f64()),
        Ok(Outcome::Skipped(why)) => println!("\nskipped: {why}"),
        Err(why) => {
            println!("\nFAILED: {why}");
            return Err(Failure::Failed);
        }
    }
    Ok(())
}

/// The option for other kernels.
const SUITES_OPTION: &str = "--kernels";

/// The step: with fewer random calls, to keep the run of all steps short.
pub(crate) fn step(workspace: &Workspace) -> Verdict {
    boot_all(workspace, "hostile_calls=100000", &[])
}

/// For the command's help.
pub(crate) fn help() -> String {
    let mut help = "\n--planted [MISTAKE...] builds the module with each mistake of kernel/llds/tests/planted, or those\n\
        named, and requires that the checks listed in its patch fail.\n\
        Names of boots choose some: plain, slab-debugging, client, huge.\n\
        --debug boots a kernel in user mode that is built here with KASAN, UBSAN, lockdep and fault injection, and lets\n\
        each allocation and each copy fail; --debug --planted [MISTAKE...] tests the mistakes that only it finds.\n\
        --kernels [SUITE...] builds the module for the kernels of these suites of Debian's, or of all, and runs the\n\
        checks in C on each. It needs root.\n\
        --ancestor runs the benchmark of the module's ancestor there, and counts its instructions; with --wall a kernel\n\
        in user mode without checkers runs it, and times count; --record records.\n\
        --style runs checkpatch --strict, the kernel's semantic patches and clang's analyzer over the sources.\n\
        --costs counts the instructions of each way to access a store, and fails if a count has grown by more than 3 %\n\
        since it was recorded; --costs --record records the counts.\n\
        \nSettings for the checks, as NAME=NUMBER:\n"
        .to_owned();
    for (name, does) in SETTINGS {
        help += &format!("  {name:<14} {does}\n");
    }
    help
}

/// Settings, checked, as they go to the kernel's command line; and the other arguments.
fn settings(arguments: &[String]) -> Result<(String, Vec<&str>), String> {
    let (given, words): (Vec<&str>, Vec<&str>) =
        arguments.iter().map(String::as_str).partition(|argument| argument.contains('='));
    for argument in &given {
        let (name, number) = argument.split_once('=').unwrap_or((argument, ""));
        if !SETTINGS.iter().any(|(known, _)| *known == name) {
            return Err(format!("no setting is called {name:?}"));
        }
        if number.parse::<u64>().is_err() {
            return Err(format!("{argument:?} is not NAME=NUMBER"));
        }
    }
    Ok((given.join(" "), words))
}

/// The boots of the stock kernel.
fn all_boots() -> impl Iterator<Item = &'static Boot> {
    BOOTS.iter().chain([&CLIENT, &HUGE])
}

/// All boots, or those named.
fn boot_all(workspace: &Workspace, settings: &str, names: &[&str]) -> Verdict {
    if let Some(name) = names.iter().find(|name| !all_boots().any(|boot| boot.name == **name)) {
        return Err(format!("no boot is called {name:?}"));
    }
    let bench = match Bench::prepare(workspace, Kind::Stock)? {
        Ok(bench) => bench,
        Err(why) => return Ok(Outcome::Skipped(why)),
    };
    bench.build()?;
    let client = Client::build(workspace, bench.folder(), bench.compiler())?;
    bench.pack(Some(&client))?;
    let processors = bench.processors();
    // All at once: each spends much of its time waiting.
    let verdicts: Vec<Result<(), String>> = std::thread::scope(|scope| {
        let bench = &bench;
        let boot = |boot| scope.spawn(move || boot_one(bench, boot, processors, settings));
        let wanted = all_boots().filter(|boot| names.is_empty() || names.contains(&boot.name));
        let threads: Vec<_> = wanted.map(boot).collect();
        threads.into_iter().map(|thread| thread.join().expect("booting does not panic")).collect()
    });
    let failed: Vec<String> = verdicts.into_iter().filter_map(Result::err).collect();
    if failed.is_empty() { Ok(Outcome::Passed) } else { Err(failed.join("\n")) }
}

/// The other machine.
fn boot_debug(workspace: &Workspace, settings: &str) -> Verdict {
    let bench = match Bench::prepare(workspace, Kind::Debug)? {
        Ok(bench) => bench,
        Err(why) => return Ok(Outcome::Skipped(why)),
    };
    bench.build()?;
    bench.pack(None)?;
    boot_one(&bench, &DEBUG, bench.processors(), settings)?;
    Ok(Outcome::Passed)
}

/// The checks in C, on the kernel of each suite, or of those named.
fn boot_suites(workspace: &Workspace, names: &[&str], settings: &str) -> Verdict {
    let known = || suite::SUITES.iter().map(|suite| suite.name).collect::<Vec<_>>().join(", ");
    if let Some(name) = names.iter().find(|name| !suite::SUITES.iter().any(|suite| suite.name == **name)) {
        return Err(format!("no suite is called {name:?}; there are {}", known()));
    }
    let mut skipped = Vec::new();
    for suite in suite::SUITES.iter().filter(|suite| names.is_empty() || names.contains(&suite.name)) {
        let bench = match Bench::prepare(workspace, Kind::Of(suite))? {
            Ok(bench) => bench,
            Err(why) => {
                skipped.push(why);
                continue;
            }
        };
        bench.build().and_then(|()| bench.pack(None)).map_err(|why| format!("{}: {why}", suite.name))?;
        let boot = boot_one(&bench, &BOOTS[0], bench.processors(), settings);
        boot.map_err(|why| format!("{}: {why}", suite.name))?;
        println!("{}: Linux {} passed", suite.name, bench.release());
    }
    if skipped.is_empty() { Ok(Outcome::Passed) } else { Ok(Outcome::Skipped(skipped.join("; "))) }
}

fn boot_one(bench: &Bench, boot: &Boot, processors: Processors, settings: &str) -> Result<(), String> {
    let start = Instant::now();
    let said = bench.boot(boot, processors, &format!("hostile_seed={} {settings}", seed()))?;
    let remarks = ["# hostile_seed", "# points of "];
    for remark in said.lines().filter(|line| remarks.iter().any(|begin| line.starts_with(begin))) {
        println!("{}: {}", boot.name, remark.trim_start_matches("# ").trim_end());
    }
    let report = console::read(&said)
        .map_err(|why| format!("{}: {why}\nconsole output: {}", boot.name, bench.log(boot.name).display()))?;
    for skipped in &report.skipped {
        println!("{}: skipped: {skipped}", boot.name);
    }
    if boot.name == DEBUG.name {
        check_debug(&report, &said)?;
    }
    let is_due = |skipped: &&String| PLAIN_RUNS.iter().any(|name| skipped.starts_with(name));
    if let Some(skipped) = report.skipped.iter().find(is_due).filter(|_| boot.name == BOOTS[0].name) {
        return Err(format!("{}: it was skipped: {skipped}", boot.name));
    }
    println!("{}: {} checks passed in {:.1} s", boot.name, report.passed, start.elapsed().as_secs_f64());
    Ok(())
}

/// Further conditions on the debug machine: the kernel logged no error, and every check that can run there did run.
fn check_debug(report: &Report, said: &str) -> Result<(), String> {
    if let Some(complaint) = console::complaint(said) {
        return Err(format!("the kernel logged: {complaint}"));
    }
    let name = |skipped: &str| skipped.split(':').next().unwrap_or(skipped).to_owned();
    match report.skipped.iter().find(|skipped| !DEBUG_SKIPS.contains(&name(skipped).as_str())) {
        Some(skipped) => Err(format!("it was skipped, but could have been run: {skipped}")),
        None => Ok(()),
    }
}

/// A new seed for each run. It is printed, and can be set.
fn seed() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(1, |since| since.as_nanos() as u64 % 1_000_000_000)
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_debug_machine_runs_all_that_it_can() {
        let report = |skipped: &str| Report { passed: 1, skipped: vec![skipped.to_owned()] };
        let fine = report("slab_debugging_is_on: not asked for in this boot");
        assert_eq!(check_debug(&fine, "ok a\n"), Ok(()));
        assert!(check_debug(&fine, "BUG: KASAN: use-after-free\n").is_err());
        assert!(check_debug(&report("a_set_survives: this kernel lets nothing fail"), "ok a\n").is_err());
    }

    #[test]
    fn settings_are_known_and_numbers() {
        let given = |text: &str| {
            let arguments: Vec<String> = text.split(' ').map(str::to_owned).collect();
            settings(&arguments).map(|(settings, words)| (settings, words.join(" ")))
        };
        assert_eq!(
            given("--debug loads=7 x hostile_seed=9"),
            Ok(("loads=7 hostile_seed=9".to_owned(), "--debug x".to_owned()))
        );
        for wrong in ["loads=", "loads=many", "loads=-1", "panic=1", "="] {
            assert!(given(wrong).is_err(), "{wrong}");
        }
    }
}

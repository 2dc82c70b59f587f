//! `cargo xtask bench instructions`: what operations cost in instructions, as callgrind counts them, compared with the
//! last accepted counts.
//!
//! Only the thread that runs the operations is counted, while it runs them the second time. So a count is the same
//! whatever else the machine does. It is also the same on any processor with AVX2: valgrind shows programs and the C
//! library one processor, with its features and sizes of caches, by which they choose their functions. A count
//! depends on the compiler, the C library and the version of valgrind, which the first line of the record names.

use std::iter;
use std::path::Path;
use std::process::Command;
use std::thread;

use crate::counts::{self, Counts};
use crate::steps::{Outcome, Verdict};
use crate::workspace::{self, Workspace};
use crate::{Failure, setup};

/// The homes, and by how much a count of theirs may grow, as a fraction of the record's. In memory a count repeats
/// exactly. On disk it depends on the free lists of malloc, and these on how threads took turns before: the least of
/// many counts is up to 2 % higher on one machine than on another.
const HOMES: &[(&str, f64)] = &[("memory:", 0.01), ("disk", 0.05)];
/// What the example knows, and how many of it are run.
const OPERATIONS: &[(&str, u64)] = &[
    ("get", 5000),
    ("miss", 5000),
    ("set", 5000),
    ("seek", 5000),
    ("scan", 1000),
    ("short", 2000),
    ("visit", 1000),
    ("next", 50_000),
    ("batch", 50),
];
/// The program that is counted.
const EXAMPLE: &str = "instructions";
/// Its argument for the features that it finds the processor to have.
const FEATURES: &str = "features";
/// The last accepted counts.
const RECORD: &str = "bench/record/instructions.txt";
/// How often an operation is counted for the record, which has the least.
const RECORDED_TIMES: usize = 5;
/// How often at most one is counted that seems to cost more than recorded.
const TIMES: usize = 10;

/// The command: compares with the record, or replaces it with `--record`.
pub(crate) fn run(workspace: &Workspace, words: &[String]) -> Result<(), Failure> {
    let records = match words {
        [] => false,
        [word] if word == "--record" => true,
        _ => {
            let what = format!("unexpected arguments {words:?}: instructions takes --record, or nothing");
            return Err(Failure::Usage(what));
        }
    };
    setup::valgrind(workspace).map_err(Failure::Broken)?;
    match count(workspace, records).map_err(Failure::Broken)? {
        Outcome::Passed => {}
        Outcome::Skipped(why) => println!("not compared: {why}"),
    }
    Ok(())
}

/// The step.
pub(crate) fn step(workspace: &Workspace) -> Verdict {
    match setup::valgrind(workspace) {
        Ok(()) => count(workspace, false),
        Err(why) => Ok(Outcome::Skipped(why)),
    }
}

fn count(workspace: &Workspace, records: bool) -> Verdict {
    let build = ["build", "--release", "--locked", "--package", "forrest-db", "--example", EXAMPLE];
    workspace::run(&mut workspace.cargo(&build))?;
    let program = workspace.target.join("release/examples").join(EXAMPLE);
    let made_with = made_with(workspace, &program)?;
    if !records && !counts::is_of(workspace, RECORD, &made_with)? {
        return Ok(Outcome::Skipped(format!("{RECORD} was not made with {made_with}")));
    }
    let recorded = if records { Counts::new() } else { counts::recorded(workspace, RECORD)? };
    let enough = |name: &str| {
        let found = recorded.iter().find(|count| count.0 == name);
        found.map_or(f64::INFINITY, |count| count.1 * (1.0 + growth(name)))
    };
    println!(
        "instructions of one operation; a scan reads 50 pairs and a short one 10, a visit shows 50 in place from several \
         tables and a memtable, next is one pair of a full scan, a batch has 100 sets"
    );
    // The homes side by side: a count is the same whatever else the machine does.
    let of_home = |home: &'static str| -> Result<Counts, String> {
        let each = OPERATIONS.iter().map(|&(operation, count)| {
            let name = format!("{home} {operation}");
            let each = || Ok(counted(&program, home, operation, count)? as f64 / count as f64);
            let (enough, times) = if records { (0.0, RECORDED_TIMES) } else { (enough(&name), TIMES) };
            let each = least(enough, times, each)?;
            println!("{home:<8} {operation:<6} {each:>9.0}");
            Ok((name, each))
        });
        each.collect()
    };
    let of_homes: Vec<Result<Counts, String>> = thread::scope(|scope| {
        let threads: Vec<_> = HOMES.iter().map(|(home, _)| scope.spawn(|| of_home(home))).collect();
        threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
    });
    let counts = of_homes.into_iter().collect::<Result<Vec<Counts>, String>>()?.concat();
    if records {
        return counts::write(workspace, RECORD, &made_with, &counts);
    }
    counts::compare(workspace, RECORD, growth, &counts)
}

/// By how much the count of this name may grow.
fn growth(name: &str) -> f64 {
    HOMES.iter().find(|(home, _)| name.starts_with(home)).map_or(0.0, |&(_, growth)| growth)
}

/// What counts depend on: the compiler, the C library, and the processor that valgrind shows to programs. That one is
/// the same on any machine with AVX2, but another in another version of valgrind.
fn made_with(workspace: &Workspace, program: &Path) -> Result<String, String> {
    let said = |command: &mut Command| -> Result<String, String> {
        let (text, status) = workspace::capture(command)?;
        let line = text.lines().next().filter(|_| status.success());
        line.map(str::to_owned).ok_or_else(|| format!("{}: {status}\n{text}", workspace::line(command)))
    };
    let version = |program: &str| said(workspace.command(program).arg("--version"));
    // Without the package's revision, which mends single functions.
    let library = version("ldd")?;
    let library = library.rsplit(' ').next().unwrap_or_default();
    let features =
        said(workspace.command("valgrind").args(["--tool=none", "--quiet"]).arg(program).arg(FEATURES))?;
    Ok(format!("{}, glibc {library}, {} with {features}", version("rustc")?, version("valgrind")?))
}

/// A count that is small enough, or else the least of `times`.
fn least(enough: f64, times: usize, count: impl FnMut() -> Result<f64, String>) -> Result<f64, String> {
    let mut least = f64::INFINITY;
    for each in iter::repeat_with(count).take(times) {
        least = least.min(each?);
        if least <= enough {
            break;
        }
    }
    Ok(least)
}

/// All instructions of the operations.
fn counted(program: &Path, home: &str, operation: &str, count: u64) -> Result<u64, String> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--collect-atstart=no", "--callgrind-out-file=/dev/null"]);
    command.arg(program).args([home, operation, &count.to_string()]);
    let (output, status) = workspace::capture(&mut command)?;
    let found = output.lines().find_map(|line| line.split("Collected :").nth(1)?.trim().parse().ok());
    match found {
        Some(instructions) if status.success() => Ok(instructions),
        _ => Err(format!("{}: {status}\n{output}", workspace::line(&command))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_seems_to_cost_more_is_counted_again() {
        let of = |enough: f64, counts: &[f64]| {
            let mut left = counts.iter();
            let found =
                least(enough, 5, || left.next().copied().ok_or_else(|| "counted too often".to_owned()));
            (found, left.len())
        };
        assert_eq!(of(10.1, &[10.0, 9.0]), (Ok(10.0), 1), "once is enough");
        assert_eq!(of(10.1, &[10.2, 10.0, 9.0]), (Ok(10.0), 1));
        assert_eq!(of(10.1, &[12.0, 11.0, 13.0, 11.5, 11.0, 9.0]), (Ok(11.0), 1), "it does cost more");
        assert!(of(10.1, &[12.0]).0.is_err());
        assert_eq!(of(0.0, &[12.0, 10.0, 13.0, 9.0, 11.0]), (Ok(9.0), 0), "the record has the least");
    }
}

//! `cargo xtask bench instructions`: what operations cost in instructions, as callgrind counts them, compared with the
//! last accepted counts.
//!
//! Only the thread that runs the operations is counted, while it runs them the second time. So a count is the same
//! whatever else the machine does. Where pages are read from the disk, or a change waits for a full memtable, it
//! differs by some tenths of a per cent. It also depends on the compiler, and on the processor, which selects copying
//! functions.

use std::path::Path;
use std::process::Command;
use std::thread;

use crate::counts::{self, Counts};
use crate::steps::{Outcome, Verdict};
use crate::workspace::{self, Workspace};
use crate::{Failure, setup};

const HOMES: &[&str] = &["memory:", "disk"];
/// What the example knows, and how many of it are run.
const OPERATIONS: &[(&str, u64)] = &[
    ("get", 5000),
    ("miss", 5000),
    ("set", 5000),
    ("seek", 5000),
    ("scan", 1000),
    ("short", 2000),
    ("next", 50_000),
    ("batch", 50),
];
/// The program that is counted.
const EXAMPLE: &str = "instructions";
/// The last accepted counts.
const RECORD: &str = "bench/record/instructions.txt";
/// Maximum growth of a count, as a fraction of the record's. A batch differs by 3 % from run to run.
const GROWTH: f64 = 0.1;

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
    let made_with = made_with(workspace)?;
    if !records && !counts::is_of(workspace, RECORD, &made_with)? {
        return Ok(Outcome::Skipped(format!("{RECORD} was not made with {made_with}")));
    }
    let build = ["build", "--release", "--locked", "--package", "forrest-db", "--example", EXAMPLE];
    workspace::run(&mut workspace.cargo(&build))?;
    let program = workspace.target.join("release/examples").join(EXAMPLE);
    println!(
        "instructions of one operation; a scan reads 50 pairs and a short one 10, next is one pair of a full scan, a batch \
         has 100 sets"
    );
    // The homes side by side: a count is the same whatever else the machine does.
    let of_home = |home: &'static str| -> Result<Counts, String> {
        let each = OPERATIONS.iter().map(|&(operation, count)| {
            let each = counted(&program, home, operation, count)? as f64 / count as f64;
            println!("{home:<8} {operation:<6} {each:>9.0}");
            Ok((format!("{home} {operation}"), each))
        });
        each.collect()
    };
    let of_homes: Vec<Result<Counts, String>> = thread::scope(|scope| {
        let threads: Vec<_> = HOMES.iter().map(|home| scope.spawn(|| of_home(home))).collect();
        threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
    });
    let counts = of_homes.into_iter().collect::<Result<Vec<Counts>, String>>()?.concat();
    if records {
        return counts::write(workspace, RECORD, &made_with, &counts);
    }
    counts::compare(workspace, RECORD, GROWTH, &counts)
}

/// What counts depend on: the compiler, valgrind, the C library and the processor.
fn made_with(workspace: &Workspace) -> Result<String, String> {
    let first_line = |program: &str| -> Result<String, String> {
        let (text, _) = workspace::capture(workspace.command(program).arg("--version"))?;
        Ok(text.lines().next().unwrap_or_default().to_owned())
    };
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let of = |name: &str| {
        let line = cpu.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name));
        line.and_then(|line| line.split_once(": ")).map_or("?", |(_, value)| value)
    };
    let processor = ["model name", "cpu family", "model"].map(of).join(" ");
    Ok(format!("{}, {}, {}, {processor}", first_line("rustc")?, first_line("valgrind")?, first_line("ldd")?))
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

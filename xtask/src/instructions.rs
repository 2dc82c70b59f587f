//! `cargo xtask bench instructions`: what operations cost in instructions, as callgrind counts them.
//!
//! The count is the same whatever else the machine does, so a change of a few per cent shows. Each operation is run
//! with N and with 2N operations; the difference by N is its cost, without opening, loading and closing. On disk the
//! background thread counts too: its share differs from run to run by some instructions an operation.

use std::path::Path;
use std::process::Command;

use crate::workspace::{self, Workspace};
use crate::{Failure, setup};

const HOMES: &[&str] = &["memory:", "disk"];
/// What the example knows, and how many of it are run.
const OPERATIONS: &[(&str, u64)] =
    &[("get", 20_000), ("miss", 20_000), ("set", 20_000), ("scan", 2_000), ("next", 100_000), ("batch", 200)];
/// The program that is counted.
const EXAMPLE: &str = "instructions";

/// The command.
pub(crate) fn run(workspace: &Workspace) -> Result<(), Failure> {
    setup::valgrind(workspace).map_err(Failure::Broken)?;
    let build = ["build", "--release", "--locked", "--package", "forrest-db", "--example", EXAMPLE];
    workspace::run(&mut workspace.cargo(&build)).map_err(Failure::Broken)?;
    let program = workspace.target.join("release/examples").join(EXAMPLE);
    println!(
        "instructions of one operation; a scan reads 50 pairs, next is one pair of a full scan, a batch has 100 sets"
    );
    for home in HOMES {
        for (operation, count) in OPERATIONS {
            let once = counted(&program, home, operation, *count).map_err(Failure::Broken)?;
            let twice = counted(&program, home, operation, 2 * count).map_err(Failure::Broken)?;
            println!("{home:<8} {operation:<6} {:>9}", twice.saturating_sub(once) / count);
        }
    }
    Ok(())
}

/// All instructions of a run.
fn counted(program: &Path, home: &str, operation: &str, count: u64) -> Result<u64, String> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    command.arg(program).args([home, operation, &count.to_string()]);
    let (output, status) = workspace::capture(&mut command)?;
    let found = output.lines().find_map(|line| line.split("Collected :").nth(1)?.trim().parse().ok());
    match found {
        Some(instructions) if status.success() => Ok(instructions),
        _ => Err(format!("{}: {status}\n{output}", workspace::line(&command))),
    }
}

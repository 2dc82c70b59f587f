//! Code in other languages, which some of the steps build: the kernel home's engine and kvbench's peers.

use std::process::Command;

use crate::setup;
use crate::steps::{Outcome, Verdict};
use crate::workspace::{self, Workspace};

/// Cargo's arguments in the step `tests`.
pub(crate) const TESTS: &[&str] = &["test", "--workspace", "--locked"];

/// That call with the features for foreign code, and with more arguments.
pub(crate) fn build(workspace: &Workspace, more: &[&str]) -> Command {
    let (features, _) = foreign(workspace);
    let mut command = workspace.cargo(TESTS);
    command.args(["--features", &features]).args(more).env(STRICT, "1");
    command
}

/// Foreign code: its name, the features that build it, and the function that provides its build dependencies.
type Foreign = (&'static str, &'static str, fn(&Workspace) -> Result<(), String>);
const FOREIGN: &[Foreign] = &[
    ("llds-user", "forrest-cli/llds-user,forrest-c/llds-user,forrest-kvbench/llds-user", setup::compiler),
    ("Zstandard", "forrest-db/zstd", setup::compiler),
    ("kvbench's peers in C++", "forrest-kvbench/cpp", setup::peers),
];
/// Features in Rust alone that are off by default, and have tests.
const OWN: &str = "forrest-db/tracing";
/// Makes the engine's warnings errors.
const STRICT: &str = "FORREST_C_STRICT";

/// The features of the tests, and the reasons why some are left out.
fn foreign(workspace: &Workspace) -> (String, Vec<String>) {
    let (mut features, mut missing) = (vec![OWN], Vec::new());
    for (name, of, get) in FOREIGN {
        match get(workspace) {
            Ok(()) => features.push(*of),
            Err(why) => missing.push(format!("{name}: {why}")),
        }
    }
    (features.join(","), missing)
}

/// Calls cargo on the workspace with the features for foreign code. If a compiler is missing, cargo runs without that
/// code, and the step is reported as skipped in part. `cross` and `portable` always build without foreign code.
pub(crate) fn with_foreign(workspace: &Workspace, arguments: &[&str], behind: &[&str]) -> Verdict {
    let (features, missing) = foreign(workspace);
    let mut command = workspace.cargo(arguments);
    command.args(["--features", &features]).args(behind);
    workspace::run(command.env(STRICT, "1"))?;
    if missing.is_empty() {
        return Ok(Outcome::Passed);
    }
    Ok(Outcome::Skipped(format!("all passed but {}", missing.join("; "))))
}

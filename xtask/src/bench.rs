//! `cargo xtask bench`: builds the benchmark with optimization and runs it. What it measures is its own matter.

use std::process::Stdio;

use crate::Failure;
use crate::workspace::{self, Workspace};

/// What there is to measure, as the benchmark calls it.
const SUBJECTS: &[&str] = &["memory", "store", "llds"];

/// The command.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    let Some((subject, rest)) = arguments.split_first() else {
        return Err(Failure::Usage("nothing named to measure".to_owned()));
    };
    if !SUBJECTS.contains(&subject.as_str()) && subject != "--help" && subject != "-h" {
        return Err(Failure::Usage(format!("nothing to measure is called {subject:?}")));
    }
    let mut command =
        workspace.cargo(&["run", "--release", "--locked", "--package", "forrest-kvbench", "--", subject]);
    // The benchmark may be run at a terminal and draw there.
    command.args(rest).stdin(Stdio::inherit());
    workspace::run(&mut command).map_err(Failure::Broken)
}

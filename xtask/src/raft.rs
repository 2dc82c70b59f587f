//! `cargo xtask raft`: clusters of forrest-raft under power cuts, kills and cut networks.
//!
//! The simulator of `crates/forrest-raft/tests/it/simulator` runs three and five nodes in one thread, and
//! `tests/it/processes.rs` starts the example `node` as three and five processes. Both write what their clients saw
//! into a directory, and check it themselves. Then the program of the step `histories` searches each history for an
//! order that explains it. It must refuse one that is wrong. The guide, which starts the example too, is followed.

use std::fs;

use crate::steps::{self, Outcome, Step, Verdict};
use crate::workspace::{self, Workspace};
use crate::{Failure, foreign, guide, histories, required, setup};

/// Below the target directory.
const HISTORIES: &str = "histories-of-raft";

pub(crate) const NAME: &str = "raft";
pub(crate) const DOES: &str = "Raft clusters, simulated and as processes, with linearizable histories";

/// The command.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    if !arguments.is_empty() {
        return Err(Failure::Usage(format!("unexpected arguments {arguments:?}")));
    }
    steps::run(workspace, &[&Step { name: NAME, does: DOES, run: step }])
}

/// The step.
pub(crate) fn step(workspace: &Workspace) -> Verdict {
    for path in required::RAFT {
        required::demand(workspace, path)?;
    }
    let directory = workspace.target.join(HISTORIES);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    // Examples are built with the tests, which start one.
    let mut tests = foreign::test(workspace, "crates/forrest-raft", "tests/it/main.rs")?;
    tests.args(["--include-ignored", "--nocapture", "--test-threads", "1"]);
    tests.args(["simulator", "processes", "history"]);
    workspace::run(tests.env("FORREST_HISTORIES", &directory))?;
    if !setup::on_path("curl") {
        return Ok(Outcome::Skipped("all passed but the guide: there is no curl".to_owned()));
    }
    let home = workspace.target.join("guide-of-raft");
    guide::follow(workspace, guide::RAFT, &home, &home.join(".unused"))?;
    let program = match histories::checker(workspace)? {
        Ok(program) => program,
        Err(why) => return Ok(Outcome::Skipped(format!("all passed but the other checker: {why}"))),
    };
    workspace::run(workspace.command(&program).arg(&directory))?;
    Ok(Outcome::Passed)
}

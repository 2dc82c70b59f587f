//! `cargo xtask crash`: the gates of the store on disk, with optimization and in larger sizes than the tests have.
//!
//! The gates are unit tests of `remixdb` (`src/tests`): power cuts and kills at every I/O, of random work and of every
//! short sequence of operations, crashes upon crashes, every I/O failing, every byte damaged. Then the same
//! commands are given to stores with option sets from ordinary to absurd (`tests/it/options.rs`), and a real process is
//! killed again and again while it writes. How much of each is all that is set here.

use crate::workspace::{self, Workspace};
use crate::{Failure, required};

/// Default number of workloads of each gate: some minutes on two cores.
const WORKLOADS: u64 = 60;
/// Operations of the longest sequences of which all are tried.
const LENGTH: u64 = 4;
/// Lists of commands that stores answer under each option set.
const TRACES: u64 = 500;
/// How often a real process is killed.
const KILLS: u64 = 1000;

/// The command.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    let workloads = match arguments {
        [] => WORKLOADS,
        [number] => {
            number.parse().map_err(|_| Failure::Usage(format!("{number:?} is no number of workloads")))?
        }
        _ => return Err(Failure::Usage("more than a number of workloads".to_owned())),
    };
    for file in [required::GATES, required::OPTIONS] {
        required::demand(workspace, file).map_err(Failure::Broken)?;
    }
    // What has no number here runs in full size.
    let workspace = &workspace.full();
    let run = |tests: &[&str], sizes: &[(&str, u64)]| {
        let mut command = workspace.cargo(&["test", "--release", "--locked"]);
        command.args(tests).args(["--", "--nocapture"]);
        command.envs(sizes.iter().map(|(name, size)| (name, size.to_string())));
        workspace::run(&mut command).map_err(Failure::Broken)
    };
    let gates = [("FORREST_GATE_SEEDS", workloads), ("FORREST_GATE_LENGTH", LENGTH)];
    run(&["--package", "remixdb", "--lib", "tests::"], &gates)?;
    let traces = [("FORREST_OPTIONS_SEEDS", TRACES)];
    run(&["--package", "forrest-db", "--test", "it", "options_change_no_answer"], &traces)?;
    run(&["--package", "forrest-cli", "--test", "cli", "kill::"], &[("FORREST_KILLS", KILLS)])
}

//! `cargo xtask soak`: a store on disk under random operations for an hour, compared with a model. By hand it is
//! built with optimization; the step takes the build of the tests.
//!
//! The program is `crates/forrest/examples/soak.rs`. It fails only if the data are wrong or a call fails; it prints
//! space, memory and the longest call beside their targets.

use std::process::Command;

use crate::steps::{Outcome, Verdict};
use crate::workspace::{self, Workspace};
use crate::{Failure, foreign, required};

/// What the step is called.
pub(crate) const NAME: &str = "soak";
/// What it does, in one line.
pub(crate) const DOES: &str = "a store on disk under random operations, compared with a model";
/// How long it takes by hand.
const LONG_SECONDS: u64 = 3600;
/// How long in CI.
const SHORT_SECONDS: u64 = 60;

/// The command.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    let (mut seconds, mut seed) = (LONG_SECONDS, None);
    let mut rest = arguments.iter();
    while let Some(name) = rest.next() {
        let number = rest.next().and_then(|number| number.parse().ok());
        match (name.as_str(), number) {
            ("--seconds", Some(number)) => seconds = number,
            ("--seed", Some(number)) => seed = Some(number),
            ("--seconds" | "--seed", None) => return Err(Failure::Usage(format!("{name} takes a number"))),
            _ => return Err(Failure::Usage(format!("unexpected argument {name:?}"))),
        }
    }
    let run = ["run", "--release", "--locked", "--package", "forrest-db", "--example", "soak", "--"];
    soak(workspace, workspace.cargo(&run), seconds, seed).map_err(Failure::Broken)
}

/// The step, in its short form.
pub(crate) fn step(workspace: &Workspace) -> Verdict {
    foreign::build(workspace, &["--example", "soak"])?;
    let program = workspace.command(workspace.target.join("debug/examples/soak"));
    soak(workspace, program, SHORT_SECONDS, None)?;
    Ok(Outcome::Passed)
}

/// Runs the program.
fn soak(workspace: &Workspace, mut program: Command, seconds: u64, seed: Option<u64>) -> Result<(), String> {
    required::demand(workspace, required::SOAK)?;
    program.arg(seconds.to_string()).args(seed.map(|seed| seed.to_string()));
    workspace::run(&mut program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_arguments_are_refused() {
        let workspace = Workspace::find().expect("this test runs in it");
        for arguments in [&["--seconds"][..], &["--seconds", "ten"], &["60"], &["--seed", "-1"]] {
            let arguments: Vec<_> = arguments.iter().map(ToString::to_string).collect();
            assert!(matches!(run(&workspace, &arguments), Err(Failure::Usage(_))), "{arguments:?}");
        }
    }
}

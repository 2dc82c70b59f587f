//! Loom models of the lock-free protocols, and mutants of the protocols that the models must detect.
//!
//! A model that passes proves little unless it can fail. So each protocol has places in its source that can be weakened
//! (an ordering relaxed, a check left out). The head of the file with a package's models names each mutant and the test
//! that detects it:
//!
//! ```text
//! //! weakened: NAME test_name
//! ```
//!
//! The models are compiled once. For each line, the test runs with the variable `FORREST_WEAKENED` set to NAME and must
//! fail with a panic. A test that does not exist counts as a failure of the gate.

use std::process::Command;

use crate::required::Loom;
use crate::steps::{Outcome, Step, Verdict};
use crate::workspace::{self, Workspace};
use crate::{Failure, no_arguments, required, steps};

/// `cargo xtask models`.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    no_arguments(arguments)?;
    let loom = Step { name: "loom", does: "models of the lock-free protocols", run: loom };
    let weakened =
        Step { name: "weakened", does: "the same with a protocol weakened: must fail", run: weakened };
    steps::run(workspace, &[&loom, &weakened])
}

/// The models as they are: all must pass.
pub(crate) fn loom(workspace: &Workspace) -> Verdict {
    for loom in required::LOOM {
        required::demand(workspace, loom.file)?;
        workspace::run(&mut cargo_test(workspace, loom, &[], &[]))?;
    }
    Ok(Outcome::Passed)
}

/// The weakened mutants: each must make its test fail.
pub(crate) fn weakened(workspace: &Workspace) -> Verdict {
    for loom @ Loom { package, file, module } in required::LOOM {
        required::demand(workspace, file)?;
        let source =
            std::fs::read_to_string(workspace.root.join(file)).map_err(|error| format!("{file}: {error}"))?;
        let mut twins = twins(&source)?;
        twins.iter_mut().for_each(|twin| twin.test = format!("{module}::{}", twin.test));
        if twins.is_empty() {
            return Err(format!("{file} names no weakened mutants at its head"));
        }
        workspace::run(&mut cargo_test(workspace, loom, &["--no-run"], &[]))?;
        for twin in &twins {
            check(workspace, loom, twin)?;
        }
        println!("{} weakened mutants of {package} failed, as they must", twins.len());
    }
    Ok(Outcome::Passed)
}

/// A way to weaken a protocol, and the test that must notice.
#[derive(Debug, PartialEq, Eq)]
struct Twin {
    name: String,
    test: String,
}

/// The twins that the head of a source names.
fn twins(source: &str) -> Result<Vec<Twin>, String> {
    let head = source.lines().take_while(|line| line.starts_with("//!"));
    let mut twins = Vec::new();
    for line in head.filter_map(|line| line.strip_prefix("//! weakened:")) {
        match line.split_ascii_whitespace().collect::<Vec<_>>()[..] {
            [name, test] if name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_') => {
                twins.push(Twin { name: name.to_owned(), test: test.to_owned() });
            }
            _ => return Err(format!("not 'weakened: NAME test_name' but 'weakened:{line}'")),
        }
    }
    Ok(twins)
}

/// The subdirectory of the target directory for these builds.
const DIRECTORY: &str = "loom";

/// Cargo's options for what takes long to optimize and little of the models' time: that is loom's and the index's.
const UNOPTIMIZED: &[&str] = &[
    "--config",
    "profile.release.package.remixdb.opt-level=0",
    "--config",
    "profile.release.package.forrest-db.opt-level=0",
    "--config",
    "profile.release.package.proptest.opt-level=0",
];

/// A call of cargo on the models of a package, or on those that `tests` name.
fn cargo_test(workspace: &Workspace, loom: &Loom, arguments: &[&str], tests: &[&str]) -> Command {
    let test = ["test", "--locked", "--release", "--package", loom.package];
    let mut command = workspace.cargo_apart(DIRECTORY, &test);
    command
        .args(UNOPTIMIZED)
        .args(["--features", "loom", "--lib"])
        .args(arguments)
        .env("CARGO_PROFILE_RELEASE_DEBUG", "0");
    // Beside the models there are the crate's other unit tests, which do not run on loom's locks.
    let all = [loom.module];
    command.arg("--").args(if tests.is_empty() { &all } else { tests });
    command
}

/// Names the place that a run of the models weakens: see `forrest_base::weakened`.
const VARIABLE: &str = "FORREST_WEAKENED";

fn check(workspace: &Workspace, loom: &Loom, twin: &Twin) -> Result<(), String> {
    let mut command = cargo_test(workspace, loom, &[], &["--exact", &twin.test]);
    command.env(VARIABLE, &twin.name);
    println!("$ {}   (must fail)", workspace::line(&command));
    let (output, status) = workspace::capture(&mut command)?;
    judge(twin, &output, status.success()).inspect_err(|_| println!("{output}"))
}

/// Whether the output of a twin's test is that of a model that found the weakness.
fn judge(twin: &Twin, output: &str, succeeded: bool) -> Result<(), String> {
    let Twin { name, test } = twin;
    if !output.contains("running 1 test") {
        return Err(format!("weakened {name}: there is no test called {test}"));
    }
    if succeeded {
        return Err(format!(
            "weakened {name}: {test} passes all the same, so it does not guard what it should"
        ));
    }
    if !output.contains(&format!("test {test} ... FAILED")) || !output.contains("panicked at") {
        return Err(format!("weakened {name}: {test} ended otherwise than by a panic of the model"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_names_the_twins() {
        let source = "//! Models.\n//! weakened: gate_relaxed readers_are_seen\n//!\n//! weakened: b c\n\n//! weakened: x y\n";
        let twin = |name: &str, test: &str| Twin { name: name.to_owned(), test: test.to_owned() };
        assert_eq!(twins(source), Ok(vec![twin("gate_relaxed", "readers_are_seen"), twin("b", "c")]));
        assert_eq!(twins("//! Models.\nfn main() {}\n"), Ok(Vec::new()));
        assert!(twins("//! weakened: only_a_name\n").is_err());
        assert!(twins("//! weakened: ../name test\n").is_err());
    }

    #[test]
    fn only_a_panic_counts() {
        let twin = Twin { name: "weak".to_owned(), test: "seen".to_owned() };
        let failed = "running 1 test\ntest seen ... FAILED\nthread 'seen' panicked at src/models.rs:1:1:\n";
        assert_eq!(judge(&twin, failed, false), Ok(()));
        for (output, succeeded) in [
            ("running 1 test\ntest seen ... ok\n", true),
            ("running 0 tests\n", true),
            ("error[E0425]: cannot find value", false),
            ("running 1 test\nprocess didn't exit successfully (signal: 11)", false),
        ] {
            assert!(judge(&twin, output, succeeded).is_err(), "{output}");
        }
    }
}

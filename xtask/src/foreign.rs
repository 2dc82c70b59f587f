//! The one build that the steps share, with its code in other languages: the kernel home's engine and kvbench's peers.
//!
//! Cargo builds a crate again for each set of features that its users ask for together. So the steps do not build
//! packages alone: they build the whole workspace with the features of the tests, and choose targets. Then each crate
//! is built once.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::setup;
use crate::steps::{Outcome, Verdict};
use crate::workspace::{self, Workspace};

/// Cargo's arguments in the step `tests`.
pub(crate) const TESTS: &[&str] = &["test", "--workspace", "--locked"];

/// A target that may use what only tests depend on. With it, cargo takes the features of the tests for all.
const AS_TESTS: &[&str] = &["--example", "quick_start"];

/// A call of cargo with the features of the tests, and the reasons why some are left out.
fn call(workspace: &Workspace, arguments: &[&str], more: &[&str]) -> (Command, Vec<String>) {
    let (features, missing) = foreign(workspace);
    let mut command = workspace.cargo(arguments);
    command.args(["--features", &features]).args(more).env(STRICT, "1");
    (command, missing)
}

/// Builds targets (`--bins`, `--lib`, `--example NAME`) of the workspace. They are then below `target/debug`.
pub(crate) fn build(workspace: &Workspace, targets: &[&str]) -> Result<(), String> {
    let arguments = ["build", "--workspace", "--locked"];
    let (mut command, _) = call(workspace, &arguments, AS_TESTS);
    workspace::run(command.args(targets))
}

/// Builds the libraries and programs of packages, and returns the directory where they are. In the profile `dev` they
/// are built with all else.
pub(crate) fn packages(workspace: &Workspace, profile: &str, packages: &[&str]) -> Result<PathBuf, String> {
    if profile == "dev" {
        build(workspace, &["--lib", "--bins"])?;
        return Ok(workspace.target.join("debug"));
    }
    let mut command = workspace.cargo(&["build", "--locked", "--profile", profile]);
    command.args(packages.iter().flat_map(|package| ["--package", package]));
    workspace::run(&mut command)?;
    Ok(workspace.target.join(profile))
}

/// Builds the tests, and returns the program that is made of this file, which is given from the root.
pub(crate) fn test_program(workspace: &Workspace, file: &str) -> Result<PathBuf, String> {
    let (mut build, _) = call(workspace, TESTS, &["--no-run", "--message-format=json-render-diagnostics"]);
    println!("$ {}", workspace::line(&build));
    let output = build.stderr(Stdio::inherit()).output().map_err(|error| format!("cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!("{} of: {}", output.status, workspace::line(&build)));
    }
    let said = String::from_utf8_lossy(&output.stdout);
    let found = said.lines().find_map(|message| executable(message, file));
    found.ok_or_else(|| format!("cargo did not say where the tests of {file} are"))
}

/// The path of the tests of a file, if this message of cargo has it.
fn executable(message: &str, file: &str) -> Option<PathBuf> {
    let source = format!("/{file}\"");
    let (_, path) = message.split_once("\"executable\":\"").filter(|_| message.contains(&source))?;
    Some(PathBuf::from(path.split_once('"')?.0))
}

/// A call of the tests of a file, whose size is that of this workspace. Names and options may follow.
pub(crate) fn test(workspace: &Workspace, package: &str, file: &str) -> Result<Command, String> {
    let file = format!("{package}/{file}");
    let mut command = workspace.command(test_program(workspace, &file)?);
    workspace.size(command.current_dir(workspace.root.join(package)));
    Ok(command)
}

/// Foreign code: its name, the features that build it, and the function that provides its build dependencies.
type Foreign = (&'static str, &'static str, fn(&Workspace) -> Result<(), String>);
const FOREIGN: &[Foreign] = &[
    ("llds-user", "forrest-cli/llds-user,forrest-c/llds-user,forrest-kvbench/llds-user", setup::compiler),
    ("Zstandard", "forrest-db/zstd", setup::compiler),
    ("TLS, whose cryptography is in C", "forrest-cli/tls", setup::compiler),
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
    let (mut command, missing) = call(workspace, arguments, behind);
    workspace::run(&mut command)?;
    if missing.is_empty() {
        return Ok(Outcome::Passed);
    }
    Ok(Outcome::Skipped(format!("all passed but {}", missing.join("; "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_of_a_file_are_found_in_what_cargo_says() {
        let it = "crates/forrest/tests/it/main.rs";
        let message = |file: &str, built: &str| {
            format!("{{\"target\":{{\"src_path\":\"/forrest/{file}\"}},\"executable\":{built}}}")
        };
        let built = "\"/target/debug/deps/it-1\"";
        assert_eq!(executable(&message(it, built), it), Some(PathBuf::from("/target/debug/deps/it-1")));
        assert_eq!(executable(&message(it, "null"), it), None, "a library without its tests");
        assert_eq!(executable(&message("crates/forrest-raft/tests/it/main.rs", built), it), None);
    }
}

//! `cargo xtask histories`: histories of transactions, checked by another program.
//!
//! The tests of `crates/forrest/src/tests/histories.rs` record what transactions read and wrote, on every home, and
//! check it themselves. This command has them write the histories into a directory, and builds and runs the program in
//! `crates/forrest/tests/histories`, which searches each for an order that explains it. The program is in Go, because
//! its search is porcupine's. It must refuse the histories of mutants of the commit.

use std::fs;
use std::path::PathBuf;

use crate::steps::{self, Outcome, Step, Verdict};
use crate::workspace::{self, Workspace};
use crate::{Failure, foreign, required, setup};

/// The program.
const CHECKER: &str = "crates/forrest/tests/histories";
/// The tests that record: the directory of their package, and their names.
const PACKAGE: &str = "crates/forrest";
const TESTS: &str = "tests::histories::";
/// Below the target directory: the program, and the histories.
const PROGRAM: &str = "histories-checker";
const HISTORIES: &str = "histories";

pub(crate) const NAME: &str = "histories";
pub(crate) const DOES: &str = "histories of transactions, checked for an order that explains them";

/// The command.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    if !arguments.is_empty() {
        return Err(Failure::Usage(format!("unexpected arguments {arguments:?}")));
    }
    steps::run(workspace, &[&Step { name: NAME, does: DOES, run: step }])
}

/// The step.
pub(crate) fn step(workspace: &Workspace) -> Verdict {
    required::demand(workspace, required::HISTORIES)?;
    let program = match checker(workspace)? {
        Ok(program) => program,
        Err(why) => return Ok(Outcome::Skipped(why)),
    };
    let histories = workspace.target.join(HISTORIES);
    let _ = fs::remove_dir_all(&histories);
    fs::create_dir_all(&histories).map_err(|error| format!("{}: {error}", histories.display()))?;
    let mut record = foreign::test(workspace, PACKAGE, "src/lib.rs")?;
    workspace::run(record.arg(TESTS).env("FORREST_HISTORIES", &histories))?;
    workspace::run(workspace.command(&program).arg(&histories))?;
    Ok(Outcome::Passed)
}

/// The program that checks, built; or why it cannot be.
pub(crate) fn checker(workspace: &Workspace) -> Result<Result<PathBuf, String>, String> {
    required::demand(workspace, required::CHECKER)?;
    if !setup::on_path("go") {
        return Ok(Err("there is no Go (https://go.dev/dl, or the package golang-go)".to_owned()));
    }
    let source = workspace.root.join(CHECKER);
    let program = workspace.target.join(PROGRAM);
    fs::create_dir_all(&workspace.target).map_err(|error| error.to_string())?;
    let mut build = workspace.command("go");
    // The versions are those of go.mod and go.sum, and nothing else is fetched.
    build.current_dir(&source).args(["build", "-mod=readonly", "-o"]).arg(&program).arg(".");
    if let Err(why) = workspace::run(&mut build) {
        let mut fetch = workspace.command("go");
        fetch.current_dir(&source).args(["mod", "download"]);
        if workspace::succeeds(&mut fetch) {
            return Err(why);
        }
        return Ok(Err("its modules cannot be fetched from proxy.golang.org".to_owned()));
    }
    Ok(Ok(program))
}

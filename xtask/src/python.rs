//! The step `python`: the Python package, built and installed as a user's pip does it, its tests, and its types.
//!
//! All of it is in an environment of its own below the target directory. What the tests are run with is fetched once,
//! by versions and hashes (`crates/forrest-py/tests/requirements.txt`); after that no network is needed.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::steps::{Outcome, Verdict};
use crate::workspace::{self, UNOPTIMIZED, Workspace};
use crate::{files, required, setup};

pub(crate) const PACKAGE: &str = "crates/forrest-py";

/// An environment of Python for one purpose, below the target directory.
pub(crate) struct Environment<'w> {
    workspace: &'w Workspace,
    /// Its programs.
    pub(crate) bin: PathBuf,
    /// What was fetched, and all that is installed from.
    wheels: PathBuf,
    /// How cargo builds the package.
    build: String,
}

/// The step.
pub(crate) fn step(workspace: &Workspace) -> Verdict {
    for path in required::PYTHON {
        required::demand(workspace, path)?;
    }
    if let Err(why) = setup::python(workspace) {
        return Ok(Outcome::Skipped(why));
    }
    let compiler = setup::compiler(workspace);
    // The build is to be done soon, and with the home for tests.
    let features: &[&str] = if compiler.is_ok() { &["--features", "llds-user"] } else { &[] };
    let build = [&["--profile", "dev"], UNOPTIMIZED, features].concat().join(" ");
    let environment = match Environment::of_tests(workspace, &build) {
        Ok(environment) => environment,
        Err(why) => return Ok(Outcome::Skipped(format!("what the tests are run with is missing: {why}"))),
    };
    workspace::run(environment.call("pip").args(["install", "--quiet", &format!("./{PACKAGE}")]))?;

    let inside = workspace.root.join(PACKAGE);
    let mut tests = environment.call("python");
    workspace::run(tests.args(PYTEST).current_dir(&inside))?;
    let mut types = environment.call("mypy");
    types.arg("--cache-dir").arg(workspace.target.join("python/mypy")).args([
        "python/forrest",
        "tests",
        "examples",
    ]);
    workspace::run(types.env("MYPYPATH", "tests").current_dir(&inside))?;
    workspace::run(environment.call("stubtest").arg("forrest").current_dir(&inside))?;
    Ok(match compiler {
        Ok(()) => Outcome::Passed,
        Err(why) => Outcome::Skipped(format!("all passed but llds-user: {why}")),
    })
}

/// The tests, called by pytest in the directory of the package.
pub(crate) const PYTEST: &[&str] = &["-X", "faulthandler", "-m", "pytest", "-q", "-p", "no:cacheprovider"];
/// What the tests are run with.
pub(crate) const TESTS: &str = "crates/forrest-py/tests/requirements.txt";

impl<'w> Environment<'w> {
    /// The environment that runs the tests.
    pub(crate) fn of_tests(workspace: &'w Workspace, build: &str) -> Result<Environment<'w>, String> {
        Environment::make(workspace, "python", TESTS, build)
    }

    /// Creates an environment in a directory with the packages of a list, which has all that they need, unless it
    /// already exists with these.
    pub(crate) fn make(
        workspace: &'w Workspace,
        directory: &str,
        list: &str,
        build: &str,
    ) -> Result<Environment<'w>, String> {
        let directory = workspace.target.join(directory);
        let (bin, wheels) = (directory.join("environment/bin"), directory.join("wheels"));
        let environment = Environment { workspace, bin, wheels, build: build.to_owned() };
        let list = workspace.root.join(list);
        environment.fill(&directory, &list).map_err(|why| format!("{}: {why}", directory.display()))?;
        Ok(environment)
    }

    fn fill(&self, directory: &Path, list: &Path) -> Result<(), String> {
        let wanted = std::fs::read(list).map_err(|error| error.to_string())?;
        let made = directory.join("made-with.txt");
        if std::fs::read(&made).is_ok_and(|with| with == wanted) {
            return Ok(());
        }
        files::empty(directory)?;
        let mut python = self.workspace.command("python3");
        workspace::run(python.args(["-m", "venv"]).arg(directory.join("environment")))?;
        let mut download = self.workspace.command(self.bin.join("pip"));
        download
            .args(["download", "--quiet", "--no-deps", "--require-hashes", "-d"])
            .arg(&self.wheels)
            .arg("-r")
            .arg(list);
        workspace::run(&mut download)?;
        let mut install = self.call("pip");
        workspace::run(
            install.args(["install", "--quiet", "--no-deps", "--require-hashes", "-r"]).arg(list),
        )?;
        files::write(&made, &wanted)
    }

    /// A call of one of its programs that never prompts and writes nothing to the sources.
    pub(crate) fn call(&self, program: &str) -> Command {
        let mut command = self.workspace.command(self.bin.join(program));
        command
            .env("PIP_NO_INDEX", "1")
            .env("PIP_FIND_LINKS", &self.wheels)
            .env("MATURIN_PEP517_ARGS", &self.build)
            .env("CARGO_TARGET_DIR", &self.workspace.target)
            .env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }
}

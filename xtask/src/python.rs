//! The step `python`: the Python package, built and installed as a user's pip does it, its tests, and its types.
//!
//! All of it is in an environment of its own below the target directory. What the tests are run with is fetched once,
//! by versions and hashes (`crates/forrest-py/tests/requirements.txt`); after that no network is needed.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::steps::{Outcome, Verdict};
use crate::workspace::{self, Workspace};
use crate::{guide, required, setup};

const PACKAGE: &str = "crates/forrest-py";

/// Where Python is.
struct Environment<'w> {
    workspace: &'w Workspace,
    /// Its programs.
    bin: PathBuf,
    /// What was fetched, and all that is installed from.
    wheels: PathBuf,
    /// How cargo builds the package: as `cargo build` does, to be done soon, and with the home for tests.
    build: &'static str,
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
    let build = if compiler.is_ok() { "--profile dev --features llds-user" } else { "--profile dev" };
    let directory = workspace.target.join("python");
    let (bin, wheels) = (directory.join("environment/bin"), directory.join("wheels"));
    let environment = Environment { workspace, bin, wheels, build };
    if let Err(why) = environment.make(&directory) {
        return Ok(Outcome::Skipped(format!("what the tests are run with is missing: {why}")));
    }
    workspace::run(environment.call("pip").args(["install", "--quiet", &format!("./{PACKAGE}")]))?;

    let inside = workspace.root.join(PACKAGE);
    let mut tests = environment.call("python");
    tests.args(["-X", "faulthandler", "-m", "pytest", "-q", "-p", "no:cacheprovider"]);
    workspace::run(tests.current_dir(&inside))?;
    let mut types = environment.call("mypy");
    types.arg("--cache-dir").arg(directory.join("mypy")).args(["python/forrest", "tests", "examples"]);
    workspace::run(types.env("MYPYPATH", "tests").current_dir(&inside))?;
    workspace::run(environment.call("stubtest").arg("forrest").current_dir(&inside))?;
    guide::follow_all(workspace, &directory.join("home"), &guide::Given::Python(&environment.bin))?;
    Ok(match compiler {
        Ok(()) => Outcome::Passed,
        Err(why) => Outcome::Skipped(format!("all passed but llds-user: {why}")),
    })
}

impl Environment<'_> {
    /// A call of one of its programs that never prompts and writes nothing to the sources.
    fn call(&self, program: &str) -> Command {
        let mut command = self.workspace.command(self.bin.join(program));
        command
            .env("PIP_NO_INDEX", "1")
            .env("PIP_FIND_LINKS", &self.wheels)
            .env("MATURIN_PEP517_ARGS", self.build)
            .env("CARGO_TARGET_DIR", &self.workspace.target)
            .env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }

    /// Creates it, unless it already exists with the wanted packages.
    fn make(&self, directory: &Path) -> Result<(), String> {
        let told = |error: std::io::Error| format!("{}: {error}", directory.display());
        let list = self.workspace.root.join(PACKAGE).join("tests/requirements.txt");
        let wanted = std::fs::read(&list).map_err(told)?;
        let made = directory.join("made-with.txt");
        if std::fs::read(&made).is_ok_and(|with| with == wanted) {
            return Ok(());
        }
        drop(std::fs::remove_dir_all(directory));
        std::fs::create_dir_all(directory).map_err(told)?;
        let mut python = self.workspace.command("python3");
        workspace::run(python.args(["-m", "venv"]).arg(directory.join("environment")))?;
        let mut download = self.workspace.command(self.bin.join("pip"));
        download
            .args(["download", "--quiet", "--require-hashes", "-d"])
            .arg(&self.wheels)
            .arg("-r")
            .arg(&list);
        workspace::run(&mut download)?;
        let mut install = self.call("pip");
        workspace::run(install.args(["install", "--quiet", "--require-hashes", "-r"]).arg(&list))?;
        std::fs::write(made, wanted).map_err(told)
    }
}

//! `cargo xtask test`: all that CI runs, quick checks first.

use crate::foreign::{TESTS, with_foreign};
use crate::steps::{self, Outcome, Step, Verdict};
use crate::workspace::{self, Workspace};
use crate::{
    Failure, docs, engine, install, models, mutants, page, portable, python, races, required, setup, tidy, vm,
};

const STEPS: &[Step] = &[
    Step { name: "fmt", does: "formatting", run: fmt },
    Step { name: "tidy", does: "house rules that no lint knows", run: tidy::step },
    Step { name: "clippy", does: "lints, with warnings denied", run: clippy },
    Step { name: "tests", does: "unit, integration and documentation tests", run: tests },
    Step {
        name: "engine",
        does: "the kernel home's engine in user space, under sanitizers",
        run: engine::step,
    },
    Step {
        name: "install",
        does: "what is installed and packaged, used from C and at the shell",
        run: install::step,
    },
    Step { name: "docs", does: "documentation, and what the Markdown files mention", run: docs::step },
    Step { name: "page", does: "the page that kvbench makes of records, in a browser", run: page::step },
    Step { name: "python", does: "the Python package: its tests, its guide, its types", run: python::step },
    Step { name: "loom", does: "models of the lock-free protocols", run: models::loom },
    Step {
        name: "weakened",
        does: "models with a protocol weakened, each of which must fail",
        run: models::weakened,
    },
    Step { name: "mutants", does: mutants::DOES, run: mutants::step },
    Step { name: "cross", does: "compiling for AArch64, FreeBSD and macOS", run: cross },
    Step { name: "portable", does: "unit and model tests for AArch64, emulated", run: portable::step },
    Step { name: vm::NAME, does: vm::DOES, run: vm::step },
    Step { name: "races", does: "stress tests under AddressSanitizer and ThreadSanitizer", run: races::step },
];

/// The command.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    if let Some(unknown) = arguments.iter().find(|name| !STEPS.iter().any(|step| step.name == *name)) {
        return Err(Failure::Usage(format!("no step is called {unknown:?}")));
    }
    let chosen: Vec<&Step> = STEPS
        .iter()
        .filter(|step| arguments.is_empty() || arguments.iter().any(|name| name == step.name))
        .collect();
    steps::run(workspace, &chosen)
}

/// Name and line of each step.
pub(crate) fn steps_told() -> impl Iterator<Item = (&'static str, &'static str)> {
    STEPS.iter().map(|step| (step.name, step.does))
}

fn fmt(workspace: &Workspace) -> Verdict {
    if let Err(why) = setup::subcommand(workspace, "fmt", "rustfmt") {
        return Ok(Outcome::Skipped(why));
    }
    workspace::run(&mut workspace.cargo(&["fmt", "--all", "--check"]))?;
    Ok(Outcome::Passed)
}

fn clippy(workspace: &Workspace) -> Verdict {
    if let Err(why) = setup::subcommand(workspace, "clippy", "clippy") {
        return Ok(Outcome::Skipped(why));
    }
    with_foreign(
        workspace,
        &["clippy", "--workspace", "--all-targets", "--locked"],
        &["--", "-D", "warnings"],
    )
}

fn tests(workspace: &Workspace) -> Verdict {
    required::demand(workspace, required::LLDS_FORREST)?;
    required::demand(workspace, required::API_C)?;
    let programs = [
        ("simulated counters and the C library under valgrind", setup::valgrind(workspace)),
        ("the C library from C++", setup::cpp(workspace)),
        ("dumps of RocksDB and LMDB", setup::other_stores(workspace)),
    ];
    let outcome = with_foreign(workspace, TESTS, &[])?;
    let missing = programs.into_iter().filter_map(|(what, got)| Some(format!("{what}: {}", got.err()?)));
    let missing = missing.collect::<Vec<_>>().join("; ");
    Ok(match outcome {
        outcome if missing.is_empty() => outcome,
        Outcome::Passed => Outcome::Skipped(format!("all passed but {missing}")),
        Outcome::Skipped(more) => Outcome::Skipped(format!("{more}; {missing}")),
    })
}

/// What the command line, the C library and all beneath them must compile for, beside the machine at hand.
const TARGETS: &[&str] = &[
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "x86_64-unknown-freebsd",
    "x86_64-apple-darwin",
    "aarch64-apple-darwin",
];

fn cross(workspace: &Workspace) -> Verdict {
    let host = setup::host(workspace)?;
    let mut skipped = Vec::new();
    for triple in TARGETS.iter().filter(|triple| **triple != host) {
        match setup::target(workspace, triple) {
            Ok(()) => {
                let packages =
                    ["--package", "forrest-cli", "--package", "forrest-c", "--package", "remixdb-c"];
                let mut command = workspace.cargo(&["check", "--locked", "--target", triple]);
                workspace::run(command.args(packages))?;
            }
            Err(why) => {
                println!("skipped {triple}: {why}");
                skipped.push(why);
            }
        }
    }
    // Some of the targets is not all of them: what was not checked is not called passed.
    if skipped.is_empty() { Ok(Outcome::Passed) } else { Ok(Outcome::Skipped(skipped.join("; "))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_have_names_of_their_own() {
        for (at, step) in STEPS.iter().enumerate() {
            assert!(STEPS[..at].iter().all(|before| before.name != step.name), "{}", step.name);
        }
    }

    #[test]
    fn unknown_steps_are_refused() {
        let workspace = Workspace::find().expect("this test runs in it");
        let refused = run(&workspace, &["fmt".to_owned(), "nothing".to_owned()]);
        assert!(matches!(refused, Err(Failure::Usage(why)) if why.contains("nothing")));
    }
}

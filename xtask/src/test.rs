//! `cargo xtask test`: the tests, quick checks first.
//!
//! By hand it runs the steps in [`QUICK`], whose tests enumerate less than they do in CI. With `CI=true` in the
//! environment, or with `--full`, it runs every step, in full size.

use std::time::Duration;

use crate::foreign::{TESTS, with_foreign};
use crate::steps::{self, Outcome, Step, Verdict};
use crate::workspace::{self, Workspace};
use crate::{
    Failure, collisions, docs, engine, go, histories, install, instructions, kafka, leveldb, models, msrv,
    mutants, node, packages, page, portable, python, races, raft, redis, required, setup, soak, tidy, vm,
};

const STEPS: &[Step] = &[
    Step { name: "fmt", does: "formatting", run: fmt },
    Step { name: "tidy", does: "house rules that no lint knows", run: tidy::step },
    Step { name: "clippy", does: "lints, with warnings denied", run: clippy },
    Step { name: "docs", does: "documentation, and what the Markdown files mention", run: docs::step },
    Step {
        name: "engine",
        does: "the kernel home's engine in user space, under sanitizers",
        run: engine::step,
    },
    Step { name: "tests", does: "unit, integration and documentation tests", run: tests },
    Step {
        name: "install",
        does: "what is installed and packaged, used from C and at the shell",
        run: install::step,
    },
    Step {
        name: "counted",
        does: "instructions of operations, compared with the record",
        run: instructions::step,
    },
    Step { name: "page", does: "the page that kvbench makes of records, in a browser", run: page::step },
    Step { name: "python", does: "the Python package: its tests, its guide, its types", run: python::step },
    Step {
        name: "go",
        does: "the Go modules: their tests, other projects' tests of them, the guide",
        run: go::step,
    },
    Step { name: node::NAME, does: node::DOES, run: node::step },
    Step {
        name: "kafka",
        does: "the Java packages: their tests, Kafka's tests of state stores, the guide",
        run: kafka::step,
    },
    Step {
        name: "leveldb",
        does: "LevelDB's own test of its C functions, plyvel's tests, the guide",
        run: leveldb::step,
    },
    Step { name: collisions::NAME, does: collisions::DOES, run: collisions::step },
    Step { name: "loom", does: "models of the lock-free protocols", run: models::loom },
    Step {
        name: "weakened",
        does: "models with a protocol weakened, each of which must fail",
        run: models::weakened,
    },
    Step { name: histories::NAME, does: histories::DOES, run: histories::step },
    Step { name: raft::NAME, does: raft::DOES, run: raft::step },
    Step {
        name: "redis",
        does: "Valkey's tests and Redis's clients with forrest serve, the guide",
        run: redis::step,
    },
    Step { name: "cross", does: "compiling for AArch64, FreeBSD and macOS", run: cross },
    Step {
        name: "msrv",
        does: "the libraries, built with the oldest Rust that they promise",
        run: msrv::step,
    },
    Step { name: vm::NAME, does: vm::DOES, run: vm::step },
    Step { name: soak::NAME, does: soak::DOES, run: soak::step },
    Step { name: "packages", does: "the crates as the registry gets them", run: packages::step },
    Step { name: "races", does: "stress tests under AddressSanitizer and ThreadSanitizer", run: races::step },
    Step { name: "mutants", does: mutants::DOES, run: mutants::step },
    Step { name: "portable", does: "unit and model tests for AArch64, emulated", run: portable::step },
];

/// The steps that run by hand when none is named.
const QUICK: &[&str] = &["fmt", "tidy", "clippy", "docs", "tests"];

/// After this, CI begins no further step: it ends a run of 90 minutes and keeps nothing of it. The last steps in the
/// list are those that a slow machine leaves out.
const CI_LIMIT: Duration = Duration::from_secs(68 * 60);

/// Asks for every step, and for tests of full size.
const FULL: &str = "--full";

/// The command.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    let is_asked = arguments.iter().any(|one| one == FULL);
    let limit = if workspace.is_full && !is_asked { CI_LIMIT } else { Duration::MAX };
    let workspace = if is_asked { workspace.full() } else { workspace.clone() };
    let names: Vec<&String> = arguments.iter().filter(|one| *one != FULL).collect();
    if let Some(unknown) = names.iter().find(|name| !STEPS.iter().any(|step| step.name == **name)) {
        return Err(Failure::Usage(format!("no step is called {unknown:?}")));
    }
    let chosen = chosen(&names, workspace.is_full);
    if !workspace.is_full {
        println!("quick size, {} of {} steps; {FULL} runs all that CI runs", chosen.len(), STEPS.len());
    }
    steps::run_within(&workspace, &chosen, limit)
}

/// The steps with these names; without names those of the size.
fn chosen(names: &[&String], is_full: bool) -> Vec<&'static Step> {
    let is_chosen = |step: &&Step| match names {
        [] => is_full || QUICK.contains(&step.name),
        names => names.iter().any(|name| *name == step.name),
    };
    STEPS.iter().filter(is_chosen).collect()
}

/// The help text about sizes and steps.
pub(crate) fn help() -> String {
    let mut help = "\nSteps (*: run by hand when none is named):\n".to_owned();
    for Step { name, does, .. } in STEPS {
        let mark = if QUICK.contains(name) { '*' } else { ' ' };
        help += &format!("{mark} {name:<9} {does}\n");
    }
    help + "\nBy hand tests run in quick size, also in a step that is named: they assert the same as in CI, and\n\
            enumerate less. With --full, or CI=true in the environment, they run in full size, and without\n\
            names every step runs. With CI=true, no step begins after 68 minutes, and the summary names those.\n\n\
            The last line printed is 'N passed, N failed, N skipped', in steps.\n"
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
        ("connections by TLS", setup::programs(workspace, &[("openssl", "openssl")])),
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

/// What the command line, the libraries for other languages and all beneath them must compile for, beside the machine
/// at hand. None needs the other language to be built.
const TARGETS: &[&str] = &[
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "x86_64-unknown-freebsd",
    "x86_64-apple-darwin",
    "aarch64-apple-darwin",
];

/// The packages that `cross` checks.
const CROSSED: [&str; 7] =
    ["forrest-cli", "forrest-c", "forrest-leveldb", "remixdb-c", "forrest-jni", "forrest-node", "forrest-py"];

/// Homes of which the library may have one only.
const HOMES: &[&str] = &["memory", "llds", "disk"];

fn cross(workspace: &Workspace) -> Verdict {
    let host = setup::host(workspace)?;
    let mut skipped = Vec::new();
    for triple in TARGETS.iter().filter(|triple| **triple != host) {
        match setup::target(workspace, triple) {
            Ok(()) => {
                let packages = CROSSED.map(|name| ["--package", name]);
                let mut command = workspace.cargo(&["check", "--locked", "--target", triple]);
                workspace::run(command.args(packages.as_flattened()))?;
            }
            Err(why) => {
                println!("skipped {triple}: {why}");
                skipped.push(why);
            }
        }
    }
    for homes in HOMES {
        let features = [
            "check",
            "--locked",
            "--package",
            "forrest-db",
            "--lib",
            "--no-default-features",
            "--features",
            homes,
        ];
        workspace::run(&mut workspace.cargo(&features))?;
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
    fn the_size_chooses_the_steps() {
        let names = |names: &[&String], is_full| -> Vec<&str> {
            chosen(names, is_full).iter().map(|step| step.name).collect()
        };
        assert_eq!(names(&[], false), QUICK, "each is a step, and they are in the order of the steps");
        assert_eq!(names(&[], true).len(), STEPS.len());
        assert_eq!(names(&[&"loom".to_owned(), &"fmt".to_owned()], true), ["fmt", "loom"]);
        assert!(help().contains("* clippy ") && help().contains("  loom "));
    }

    #[test]
    fn unknown_steps_are_refused() {
        let workspace = Workspace::find().expect("this test runs in it");
        let refused = run(&workspace, &["fmt".to_owned(), "nothing".to_owned()]);
        assert!(matches!(refused, Err(Failure::Usage(why)) if why.contains("nothing")));
    }
}

//! `cargo xtask test`: the tests, quick checks first.
//!
//! By hand it runs the steps in [`QUICK`], whose tests enumerate less than they do in CI. With `CI=true` in the
//! environment, or with `--full`, it runs every step, in full size.

use std::path::Path;
use std::time::Duration;

use crate::foreign::{TESTS, with_foreign};
use crate::lanes::{self, Build, Planned};
use crate::steps::{self, Outcome, Step, Verdict};
use crate::workspace::{self, Workspace};
use crate::{
    Failure, collisions, docs, engine, go, histories, install, instructions, kafka, leveldb, models, msrv,
    mutants, node, packages, page, portable, python, races, raft, redis, required, setup, soak, tidy, vm,
};

/// All steps. The first that may begin does (`lanes.rs`), so those stand first that fail soonest; the last ones are
/// those that a slow machine leaves out.
const STEPS: &[Planned] = &[
    apart("fmt", "formatting", fmt),
    apart("tidy", "house rules that no lint knows", tidy::step),
    makes("clippy", "lints, with warnings denied", clippy),
    makes("build", "building what the step tests runs, and other steps use", build),
    uses("tests", "unit, integration and documentation tests", tests),
    makes("docs", "documentation, and what the Markdown files mention", docs::step),
    makes("cross", "compiling for AArch64, FreeBSD and macOS", cross),
    apart("engine", "the kernel home's engine in user space, under sanitizers", engine::step),
    uses("install", "what is installed and packaged, used from C and at the shell", install::step),
    apart("counted", "instructions of operations, compared with the record", instructions::step),
    uses("page", "the page that kvbench makes of records, in a browser", page::step),
    makes("python", "the Python package: its tests, its guide, its types", python::step),
    uses("go", "the Go modules: their tests, other projects' tests of them, the guide", go::step),
    uses(node::NAME, node::DOES, node::step),
    uses("kafka", "the Java packages: their tests, Kafka's tests of state stores, the guide", kafka::step),
    Planned {
        // Both take what they are run with from one environment of Python, and each installs the package there, which
        // cargo builds with other features than those that the steps share.
        after: &["build", "python"],
        ..makes("leveldb", "LevelDB's own test of its C functions, plyvel's tests, the guide", leveldb::step)
    },
    apart(collisions::NAME, collisions::DOES, collisions::step),
    apart("loom", "models of the lock-free protocols", models::loom),
    Planned {
        // It runs what the other has built.
        after: &["loom"],
        ..apart("weakened", "models with a protocol weakened, each of which must fail", models::weakened)
    },
    uses(histories::NAME, histories::DOES, histories::step),
    Planned {
        // One builds the program that checks too, and the other builds in the directory of the guides.
        after: &["build", histories::NAME, "install"],
        ..uses(raft::NAME, raft::DOES, raft::step)
    },
    Planned {
        // Its clients would take ports of nodes that are down for a moment there.
        after: &["build", raft::NAME],
        ..uses("redis", "Valkey's tests and Redis's clients with forrest serve, the guide", redis::step)
    },
    apart("msrv", "the libraries, built with the oldest Rust that they promise", msrv::step),
    uses(vm::NAME, vm::DOES, vm::step),
    uses(soak::NAME, soak::DOES, soak::step),
    apart("packages", "the crates as the registry gets them", packages::step),
    apart("races", "stress tests under AddressSanitizer and ThreadSanitizer", races::step),
    makes("mutants", mutants::DOES, mutants::step),
    apart("portable", "unit and model tests for AArch64, emulated", portable::step),
];

type Run = fn(&Workspace) -> Verdict;

const fn planned(name: &'static str, does: &'static str, run: Run, build: Build) -> Planned {
    Planned { step: Step { name, does, run }, build, after: &[] }
}

const fn apart(name: &'static str, does: &'static str, run: Run) -> Planned {
    planned(name, does, run, Build::Apart)
}

const fn makes(name: &'static str, does: &'static str, run: Run) -> Planned {
    planned(name, does, run, Build::Makes)
}

const fn uses(name: &'static str, does: &'static str, run: Run) -> Planned {
    Planned { after: &["build"], ..planned(name, does, run, Build::Uses) }
}

/// The steps that run by hand when none is named.
const QUICK: &[&str] = &["fmt", "tidy", "clippy", "build", "tests", "docs"];

/// After this, CI begins no further step: it ends a run of 90 minutes and keeps nothing of it.
const CI_LIMIT: Duration = Duration::from_secs(68 * 60);

/// Asks for every step, and for tests of full size.
const FULL: &str = "--full";

/// The command.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    let is_asked = arguments.iter().any(|one| one == FULL);
    let limit = if workspace.is_full && !is_asked { CI_LIMIT } else { Duration::MAX };
    let workspace = if is_asked { workspace.full() } else { workspace.clone() };
    let mut names: Vec<&String> = arguments.iter().filter(|one| *one != FULL).collect();
    let mut result = None;
    if let [option, path, ..] = names[..]
        && option == lanes::ALONE
    {
        result = Some(path);
        names.drain(..2);
    }
    if let Some(unknown) = names.iter().find(|name| !STEPS.iter().any(|one| one.step.name == **name)) {
        return Err(Failure::Usage(format!("no step is called {unknown:?}")));
    }
    let chosen = chosen(&names, workspace.is_full);
    match (result, &chosen[..]) {
        (Some(result), [one]) => return lanes::alone(&workspace, &one.step, Path::new(result)),
        (Some(_), _) => return Err(Failure::Usage(format!("{} takes a file and a step", lanes::ALONE))),
        (None, _) => {}
    }
    if !workspace.is_full {
        println!("quick size, {} of {} steps; {FULL} runs all that CI runs", chosen.len(), STEPS.len());
    }
    match chosen[..] {
        [one] => steps::run(&workspace, &[&one.step]),
        _ => lanes::run(&workspace, &chosen, limit),
    }
}

/// The steps with these names; without names those of the size.
fn chosen(names: &[&String], is_full: bool) -> Vec<&'static Planned> {
    let is_chosen = |planned: &&Planned| match names {
        [] => is_full || QUICK.contains(&planned.step.name),
        names => names.iter().any(|name| *name == planned.step.name),
    };
    STEPS.iter().filter(is_chosen).collect()
}

/// The help text about sizes and steps.
pub(crate) fn help() -> String {
    let mut help = "\nSteps (*: run by hand when none is named):\n".to_owned();
    for Planned { step: Step { name, does, .. }, .. } in STEPS {
        let mark = if QUICK.contains(name) { '*' } else { ' ' };
        help += &format!("{mark} {name:<9} {does}\n");
    }
    help + "\nBy hand tests run in quick size, also in a step that is named: they assert the same as in CI, and\n\
            enumerate less. With --full, or CI=true in the environment, they run in full size, and without\n\
            names every step runs. With CI=true, no step begins after 68 minutes, and the summary names those.\n\n\
            Two steps run at once, and the output of each is printed when it ends; until then it is below\n\
            target/steps, in a directory that the run names first. That of the last run that has ended is\n\
            target/steps/last. A single step prints at once. Another run may go on beside it.\n\n\
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

fn build(workspace: &Workspace) -> Verdict {
    // What is left out is a matter of the step that runs the tests. It is long, and other steps build beside it: had it
    // to install anything first, one of these would make it wait.
    let _missing = programs_of_tests(workspace);
    with_foreign(workspace, TESTS, &["--no-run"])?;
    Ok(Outcome::Passed)
}

/// Gets the programs that tests call; returns what is left out without those that cannot be had.
fn programs_of_tests(workspace: &Workspace) -> Vec<String> {
    let programs = [
        ("simulated counters and the C library under valgrind", setup::valgrind(workspace)),
        ("the C library from C++", setup::cpp(workspace)),
        ("dumps of RocksDB and LMDB", setup::other_stores(workspace)),
        ("connections by TLS", setup::programs(workspace, &[("openssl", "openssl")])),
    ];
    programs.into_iter().filter_map(|(what, got)| Some(format!("{what}: {}", got.err()?))).collect()
}

fn tests(workspace: &Workspace) -> Verdict {
    required::demand(workspace, required::LLDS_FORREST)?;
    required::demand(workspace, required::API_C)?;
    let missing = programs_of_tests(workspace).join("; ");
    let outcome = with_foreign(workspace, TESTS, &[])?;
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
    fn steps_have_names_of_their_own_and_wait_for_those_before_them() {
        for (at, Planned { step, after, build }) in STEPS.iter().enumerate() {
            let is_before = |name: &str| STEPS[..at].iter().any(|before| before.step.name == name);
            assert!(!is_before(step.name), "{}", step.name);
            // So no step waits for one that waits for it.
            assert!(after.iter().all(|name| is_before(name)), "{} comes before {after:?}", step.name);
            assert!(*build != Build::Uses || after.contains(&"build"), "{}", step.name);
        }
    }

    #[test]
    fn the_size_chooses_the_steps() {
        let names = |names: &[&String], is_full| -> Vec<&str> {
            chosen(names, is_full).iter().map(|one| one.step.name).collect()
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
        let without_a_step = run(&workspace, &[lanes::ALONE.to_owned(), "file".to_owned()]);
        assert!(matches!(without_a_step, Err(Failure::Usage(_))));
    }
}

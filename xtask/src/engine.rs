//! `cargo xtask engine`: tests the engine of the kernel home, built in user space, against a model. One build runs
//! under AddressSanitizer and UndefinedBehaviorSanitizer, one with optimization. The lock-free readers also run under
//! ThreadSanitizer, and in a build whose threads pause at the points where they interact. Each build has another seed.

use std::path::PathBuf;

use crate::steps::{self, Outcome, Step, Verdict};
use crate::workspace::{self, Workspace};
use crate::{Failure, setup};

/// Where the sources are, seen from the root.
const SOURCES: &str = "kernel/llds";
/// Stored inputs of the fuzz target.
const KEPT: &str = "fuzz/seeds/llds";
/// The engine: the sources that the module and user space share.
const ENGINE: &[&str] =
    &["memory.c", "buckets.c", "order.c", "tree.c", "store.c", "ops.c", "groups.c", "request.c"];
/// The sources for user space only, and the model.
const USER: &[&str] = &["user/os_user.c", "user/rbtree.c", "user/model.c", "user/runs.c"];
/// The fuzz target; with [`REPLAY`] its main() takes files.
const FUZZ: &str = "user/fuzz.c";
const REPLAY: &str = "-DLLDS_REPLAY";
/// The tests.
const TESTS: &[&str] = &[
    "user/store_test.c",
    "user/request_test.c",
    "user/atomic_test.c",
    "user/mapped.c",
    "user/mapped_test.c",
    "user/test.c",
];
/// For both builds.
const FLAGS: &[&str] = &["-std=gnu11", "-g", "-Wall", "-Wextra", "-Wno-sign-compare", "-Werror", "-pthread"];

/// A way to build and to run the tests.
struct Build {
    name: &'static str,
    flags: &'static [&'static str],
    /// Seed and steps, and a part if not all.
    arguments: &'static [&'static str],
}

const BUILDS: &[Build] = &[
    Build {
        name: "engine-sanitized",
        flags: &["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
        arguments: &["1", "2000"],
    },
    Build { name: "engine-optimized", flags: &["-O2"], arguments: &["2", "6000"] },
    Build {
        name: "engine-threads",
        // ThreadSanitizer does not model fences. All data shared between threads is atomic here, so it needs none.
        flags: &["-O1", "-fsanitize=thread", "-Wno-tsan"],
        arguments: &["3", "200", "mapped"],
    },
    Build { name: "engine-pauses", flags: &["-O2", "-DLLDS_OS_PAUSES"], arguments: &["4", "1000", "mapped"] },
    Build {
        name: "engine-small",
        flags: &["-O1", "-DLLDS_PIECES_MAX=64UL"],
        arguments: &["5", "1000", "full"],
    },
];

/// The command.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    if !arguments.is_empty() {
        return Err(Failure::Usage(format!("unexpected arguments {arguments:?}")));
    }
    steps::run(
        workspace,
        &[&Step { name: "engine", does: "the kernel home's engine in user space", run: step }],
    )
}

/// The step.
pub(crate) fn step(workspace: &Workspace) -> Verdict {
    if let Err(why) = setup::compiler(workspace) {
        return Ok(Outcome::Skipped(why));
    }
    std::fs::create_dir_all(&workspace.target)
        .map_err(|error| format!("{}: {error}", workspace.target.display()))?;
    for Build { name, flags, arguments } in BUILDS {
        let program = workspace.target.join(name);
        let mut compile = workspace.command("gcc");
        compile.args(FLAGS).args(*flags).args(sources(TESTS)).arg("-o").arg(&program);
        workspace::run(&mut compile)?;
        workspace::run(workspace.command(&program).args(*arguments))?;
    }
    let program = workspace.target.join("engine-inputs");
    let mut compile = workspace.command("gcc");
    compile.args(FLAGS).args(BUILDS[0].flags).arg(REPLAY).args(sources(&[FUZZ])).arg("-o").arg(&program);
    workspace::run(&mut compile)?;
    let kept = workspace.root.join(KEPT);
    let entries = std::fs::read_dir(&kept).map_err(|error| format!("{}: {error}", kept.display()))?;
    let mut inputs: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    inputs.sort();
    workspace::run(workspace.command(&program).args(inputs))?;
    Ok(Outcome::Passed)
}

/// The engine, what user space brings, and these.
fn sources(more: &'static [&'static str]) -> impl Iterator<Item = PathBuf> {
    ENGINE.iter().chain(USER).chain(more).map(|file| PathBuf::from(SOURCES).join(file))
}

/// Builds the fuzz target: by clang, whose fuzzer is linked with it.
pub(crate) fn build_fuzzer(workspace: &Workspace) -> Result<PathBuf, String> {
    if !setup::on_path("clang") {
        // The second is in the first's recommendations only.
        setup::packages(workspace, &["clang", "libclang-rt-14-dev"])?;
    }
    let program = workspace.target.join("engine-fuzzer");
    std::fs::create_dir_all(&workspace.target)
        .map_err(|error| format!("{}: {error}", workspace.target.display()))?;
    let mut compile = workspace.command("clang");
    compile.args(["-std=gnu11", "-g", "-O1", "-Wall", "-pthread", "-fno-sanitize-recover=all"]);
    compile.arg("-fsanitize=fuzzer,address,undefined").args(sources(&[FUZZ])).arg("-o").arg(&program);
    workspace::run(&mut compile)?;
    Ok(program)
}

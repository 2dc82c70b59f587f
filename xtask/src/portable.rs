//! `cargo xtask portable`: unit and model tests for AArch64 Linux, on any Linux, under QEMU's user-mode emulation.
//!
//! It shows that the code is right on the other first-class architecture: its vector instructions, its prefetch,
//! its layouts. It does not show its weaker memory ordering: the emulator translates to the machine at hand. That
//! is what the loom models are for.

use std::path::Path;

use crate::processors::{self, AARCH64};
use crate::steps::{self, Outcome, Step, Verdict};
use crate::workspace::{self, SIZE_VARIABLE, UNOPTIMIZED, Workspace};
use crate::{Failure, no_arguments, required, setup};

const LINKER: &str = "aarch64-linux-gnu-gcc";
/// Where Debian puts the C library for the target.
const SYSROOT: &str = "/usr/aarch64-linux-gnu";
/// The libraries, and the names of their tests that run, if not all of them do. The command line and the benchmark add
/// nothing that depends on the architecture.
const PACKAGES: &[(&[&str], &[&str])] = &[
    (&["forrest-machine", "forrest-index", "forrest-engine", "llds"], &[]),
    // Formats, vector instructions and files. The store as a whole does its work as a home of the next one.
    (
        &["remixdb"],
        &[
            "cache::",
            "codec::",
            "compression::",
            "decoders::",
            "disk::",
            "format::",
            "page::",
            "parts::",
            "remix::",
            "stripe::",
            "table::",
        ],
    ),
    // The models of all homes, the scripts, and the stores that another machine made.
    (&["forrest-db"], &["drive::", "golden::", "script::", "fuzzed::"]),
];

/// Without the engine's tests of whole stores, which take as long to build as all the rest.
const FLAGS: &str = "--cfg forrest_parts";

/// Tests that only run on the machine itself. The first need gigabytes of addresses, and their arithmetic is the same
/// everywhere. The others are gates that enumerate what a disk, or damage, may leave, or that limit work, memory and
/// waits: nothing in that depends on the architecture. Codecs, vector instructions, layouts and models run.
const SKIPPED: &[&str] = &[
    "limits::",
    "orders_that_take_too_much_memory_stay_in_their_files",
    "a_walk_over_a_wrong_file_stays_in_its_runs",
    "a_flipped_bit_is_reported_or_harmless",
    "a_file_that_is_cut_or_missing_is_reported_or_harmless",
    // Gates of these names, of whatever they are.
    "::a_power_cut_",
    "::power_may_be_cut_",
    "::a_crash_upon_a_crash_",
    "::any_io_",
    "::any_bit_",
    "::any_file_",
];

/// Default number of seeds of each model, quick and full: fewer than without emulation.
const SEEDS: &[(&str, &str, &str)] = &[
    ("FORREST_INDEX_SEEDS", "6", "12"),
    ("FORREST_MODEL_SEEDS", "3", "4"),
    ("FORREST_GATE_SEEDS", "1", "1"),
    ("FORREST_GATE_LENGTH", "1", "1"),
];

/// The command.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    no_arguments(arguments)?;
    let step = Step { name: "portable", does: "unit and model tests for AArch64, emulated", run: step };
    steps::run(workspace, &[&step])
}

/// The step.
pub(crate) fn step(workspace: &Workspace) -> Verdict {
    let host = setup::host(workspace)?;
    if host.starts_with("aarch64-") && host.contains("linux") {
        return Ok(Outcome::Skipped(
            "this machine is AArch64: the step tests runs there natively".to_owned(),
        ));
    }
    if !host.contains("linux") {
        return Ok(Outcome::Skipped(format!("user-mode emulation of Linux needs Linux, not {host}")));
    }
    for file in required::MODELS {
        required::demand(workspace, file)?;
    }
    let emulation = match prepare(workspace) {
        Ok(emulation) => emulation.join(" "),
        Err(why) => return Ok(Outcome::Skipped(why)),
    };
    for (packages, names) in PACKAGES {
        test(workspace, &emulation, packages, names)?;
    }
    Ok(Outcome::Passed)
}

/// Runs the tests of packages, those of `names` if there are any.
fn test(workspace: &Workspace, emulation: &str, packages: &[&str], names: &[&str]) -> Result<(), String> {
    let triple = AARCH64.triple();
    let call = [&["test", "--locked", "--target", &triple, "--lib"], UNOPTIMIZED].concat();
    let mut arguments: Vec<String> = call.into_iter().map(str::to_owned).collect();
    for package in packages {
        arguments.extend(["--package".to_owned(), (*package).to_owned()]);
        arguments.extend(suitable_tests(workspace, package).flat_map(|test| ["--test".to_owned(), test]));
    }
    arguments.push("--".to_owned());
    arguments.extend(names.iter().map(|name| (*name).to_owned()));
    arguments.extend(SKIPPED.iter().flat_map(|test| ["--skip".to_owned(), (*test).to_owned()]));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut command = workspace.cargo_apart("portable", &arguments);
    command
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", LINKER)
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS", FLAGS)
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", emulation)
        // Emulation is slow. What a larger size adds depends on no architecture; models have numbers of their own.
        .env(SIZE_VARIABLE, "quick")
        // Assertions are wanted: the test profile with some optimization.
        .env("CARGO_PROFILE_TEST_OPT_LEVEL", "1")
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
    for (variable, quick, full) in SEEDS {
        if std::env::var_os(variable).is_none() {
            command.env(variable, workspace.sized(quick, full));
        }
    }
    workspace::run(&mut command)
}

/// Integration tests but those that have a step of their own and need a real machine, and those that count bytes of
/// memory, which are as many on each.
fn suitable_tests(workspace: &Workspace, package: &str) -> impl Iterator<Item = String> {
    let names = workspace.integration_tests(package);
    names.into_iter().filter(|name| !["stress", "memory"].contains(&name.as_str()))
}

/// Sees to the emulator, the linker and the target; returns the words before a program that emulate it.
fn prepare(workspace: &Workspace) -> Result<Vec<String>, String> {
    let root = Path::new(SYSROOT);
    let emulation = || processors::emulation(&AARCH64, root);
    let mut missing = Vec::new();
    if emulation().is_err() {
        missing.push("qemu-user-static");
    }
    if !setup::on_path(LINKER) {
        missing.push("gcc-aarch64-linux-gnu");
    }
    // The linker needs the C library's development files, which are a package of their own.
    if !root.join("lib/crt1.o").exists() {
        missing.push("libc6-dev-arm64-cross");
    }
    if !missing.is_empty() {
        setup::packages(workspace, &missing)?;
    }
    setup::target(workspace, &AARCH64.triple())?;
    emulation()
}

//! `cargo xtask races`: stress tests under AddressSanitizer and ThreadSanitizer, without suppressions.
//!
//! For ThreadSanitizer the standard library is built along, instrumented, so that its own synchronization is seen;
//! AddressSanitizer needs no more than its allocations. That takes features of the compiler that are not stable;
//! `RUSTC_BOOTSTRAP=1` lets the stable one use them, so that the compiler tested is the one that users have.

use std::process::Command;

use crate::steps::{self, Outcome, Step, Verdict};
use crate::workspace::{self, Workspace};
use crate::{Failure, required, setup};

/// The variable with the run time of each stress test, in seconds.
pub(crate) const SECONDS_VARIABLE: &str = "FORREST_STRESS_SECONDS";
/// For `cargo xtask test`.
pub(crate) const SHORT_SECONDS: u32 = 5;
/// For `--long`.
pub(crate) const LONG_SECONDS: u32 = 120;

/// Tests that set threads against each other.
struct Subject {
    package: &'static str,
    test: &'static str,
    /// Where they are.
    file: &'static str,
}

const SUBJECTS: &[Subject] = &[
    Subject { package: "forrest-machine", test: "stress", file: required::STRESS_MACHINE },
    Subject { package: "forrest-index", test: "stress", file: required::STRESS_INDEX },
    Subject { package: "forrest-db", test: "races", file: required::CONCURRENCY_FORREST },
];

/// The command.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    let long = match arguments {
        [] => false,
        [one] if one == "--long" => true,
        _ => return Err(Failure::Usage(format!("unexpected arguments {arguments:?}"))),
    };
    let run = if long { long_step } else { step };
    let step = Step { name: "races", does: "stress tests under AddressSanitizer and ThreadSanitizer", run };
    steps::run(workspace, &[&step])
}

/// The step, in its short form.
pub(crate) fn step(workspace: &Workspace) -> Verdict {
    sanitize(workspace, SHORT_SECONDS)
}

fn long_step(workspace: &Workspace) -> Verdict {
    sanitize(workspace, LONG_SECONDS)
}

fn sanitize(workspace: &Workspace, seconds: u32) -> Verdict {
    let host = setup::host(workspace)?;
    if !setup::SANITIZED.contains(&host.as_str()) {
        return Ok(Outcome::Skipped(format!("the compiler has no sanitizers for {host}")));
    }
    for subject in SUBJECTS {
        required::demand(workspace, subject.file)?;
    }
    if let Err(why) = setup::rust_source(workspace) {
        return Ok(Outcome::Skipped(why));
    }
    let seconds = std::env::var(SECONDS_VARIABLE).unwrap_or_else(|_| seconds.to_string());
    for sanitizer in ["address", "thread"] {
        for subject in SUBJECTS {
            workspace::run(&mut command(workspace, sanitizer, &host, subject, &seconds))?;
        }
    }
    Ok(Outcome::Passed)
}

fn command(workspace: &Workspace, sanitizer: &str, host: &str, subject: &Subject, seconds: &str) -> Command {
    let Subject { package, test, .. } = subject;
    let build = ["test", "--locked", "--target", host, "--release", "--package", package];
    let mut command = workspace.cargo_apart(&format!("sanitize-{sanitizer}"), &build);
    if sanitizer == "thread" {
        command.arg("-Zbuild-std");
    }
    // One test at a time: each brings threads enough of its own.
    command.args(["--test", test, "--", "--nocapture", "--test-threads=1"]);
    command
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", format!("-Zsanitizer={sanitizer} -Cdebug-assertions=on"))
        // More takes twice as long to build, and the tests no less.
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")
        .env(SECONDS_VARIABLE, seconds)
        // The first report ends the test, and so fails the step.
        .env("TSAN_OPTIONS", "halt_on_error=1:second_deadlock_stack=1")
        .env("ASAN_OPTIONS", "detect_stack_use_after_return=1:strict_init_order=1");
    command
}

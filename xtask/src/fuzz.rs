//! `cargo xtask fuzz`: the fuzz targets, each for a bounded time.
//!
//! The targets are a workspace of their own, `fuzz/`, and are linked with libFuzzer, which a C++ compiler builds.
//! The compiler's part of it, counting which branches an input takes, and AddressSanitizer, are flags that are
//! given here; so nothing is to be installed but that compiler. Some of them are not stable, see
//! [`crate::races`].

use std::path::PathBuf;
use std::process::Command;

use crate::workspace::{self, Workspace};
use crate::{Failure, engine, setup};

/// A fuzz target.
struct Target {
    name: &'static str,
    /// What it does with its input, in one line.
    does: &'static str,
    /// Builds it; `None` of those in `fuzz/targets`.
    build: Option<Build>,
}

/// Builds a target; where it is then.
type Build = fn(&Workspace) -> Result<PathBuf, String>;

const TARGETS: &[Target] = &[
    Target {
        name: "line",
        does: "the input as a line of operations: refused or parsed, printed, parsed again",
        build: None,
    },
    Target {
        name: "commands",
        does: "the input as commands, executed by the store and by a model",
        build: None,
    },
    Target { name: "log", does: "the input as a write-ahead log: its header and its changes", build: None },
    Target { name: "manifest", does: "the input as a manifest", build: None },
    Target { name: "keys", does: "the input as the key file of an encrypted store", build: None },
    Target {
        name: "backup",
        does: "the input as the description of a backup: listed, verified, restored, pruned",
        build: None,
    },
    Target {
        name: "table",
        does: "the input as a table: read from both ends, searched, verified",
        build: None,
    },
    Target {
        name: "remix",
        does: "the input as the REMIX of three tables: walked, searched, verified",
        build: None,
    },
    Target {
        name: "store",
        does: "the input as the files of a store, which is opened and used",
        build: None,
    },
    Target {
        name: "image",
        does: "the input as an image of a Raft group: received, installed, sent again",
        build: None,
    },
    Target {
        name: "llds",
        does: "the input as runs of operations, on the kernel home's engine with both indexes",
        build: Some(engine::build_fuzzer),
    },
];

/// Default run time of a target, in seconds.
const SECONDS: u32 = 60;

/// The command.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    let (targets, seconds) = parse(arguments).map_err(Failure::Usage)?;
    for target in targets {
        fuzz(workspace, target, seconds).map_err(Failure::Broken)?;
    }
    Ok(())
}

/// What `--help` adds.
pub(crate) fn help() -> String {
    let mut help = "\nTargets, all of them if none is named:\n".to_owned();
    for target in TARGETS {
        help += &format!("  {:<9} {}\n", target.name, target.does);
    }
    help + &format!(
        "
SECONDS is for each target, {SECONDS} if not given. A run begins with the inputs in fuzz/seeds/TARGET, which are
part of the repository, and those of former runs in fuzz/corpus/TARGET, which are not, and keeps there what
reaches new code. It ends with an error at the first input that makes the target fail. That input is then in
fuzz/artifacts/TARGET; copy it to fuzz/seeds/TARGET, where 'cargo test -p forrest-db kept_inputs' replays it,
now and for ever; those of image are replayed by 'cargo test -p forrest-raft kept_inputs', and those of
llds by 'cargo xtask engine'.

What is random comes from a seed, which is printed. A C++ compiler is needed, and clang for llds; apt-get fetches them
where it may.
"
    )
}

/// Which targets, and for how long each.
fn parse(arguments: &[String]) -> Result<(Vec<&'static Target>, u32), String> {
    let (name, seconds) = match arguments {
        [] => (None, None),
        [one] if one.starts_with(|letter: char| letter.is_ascii_digit()) => (None, Some(one)),
        [name] => (Some(name), None),
        [name, seconds] => (Some(name), Some(seconds)),
        [_, _, more, ..] => return Err(format!("unexpected argument {more:?}")),
    };
    let targets: Vec<_> =
        TARGETS.iter().filter(|target| name.is_none_or(|name| name == target.name)).collect();
    if targets.is_empty() {
        return Err(format!("no fuzz target is called {:?}", name.map_or("", String::as_str)));
    }
    // 0 would mean without end to the fuzzer.
    let seconds = seconds.map_or(Ok(SECONDS), |text| {
        let seconds = text.parse().ok().filter(|&seconds: &u32| seconds > 0 && seconds <= i32::MAX as u32);
        seconds.ok_or_else(|| format!("not a number of seconds, from 1 on: {text:?}"))
    })?;
    Ok((targets, seconds))
}

/// The machine, if targets can be built and run on it.
fn host(workspace: &Workspace) -> Result<String, String> {
    let host = setup::host(workspace)?;
    if !setup::SANITIZED.contains(&host.as_str()) {
        return Err(format!("the compiler has no sanitizers for {host}"));
    }
    if std::env::var_os("CXX").is_none() {
        setup::cpp(workspace).map_err(|why| format!("no C++ compiler: {why}"))?;
    }
    Ok(host)
}

/// Flags for all crates: what libFuzzer asks of the compiler, as its documentation names it for LLVM, and checks
/// that find more.
const FLAGS: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Zsanitizer=address",
    "-Cdebug-assertions=on",
];

fn fuzz(workspace: &Workspace, target: &Target, seconds: u32) -> Result<(), String> {
    let Target { name, build, .. } = target;
    let directory = |kind: &str| -> Result<PathBuf, String> {
        let path = workspace.root.join("fuzz").join(kind).join(name);
        std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    };
    let (corpus, seeds, artifacts) = (directory("corpus")?, directory("seeds")?, directory("artifacts")?);
    let mut command = match build {
        Some(build) => workspace.command(build(workspace)?),
        None => command(workspace, name, &host(workspace)?),
    };
    // The first folder is the one that is written to.
    command.args([corpus, seeds]).arg(format!("-max_total_time={seconds}"));
    command.arg(format!("-artifact_prefix={}/", artifacts.display()));
    workspace::run(&mut command).map_err(|why| {
        format!("{why}\nIf an input failed, its file is named above: see cargo xtask fuzz --help.")
    })
}

fn command(workspace: &Workspace, name: &str, host: &str) -> Command {
    // A target is named so that the flags are not for build scripts and macros, which run in the compiler.
    let run = ["run", "--locked", "--release", "--manifest-path", "fuzz/Cargo.toml", "--target", host];
    let mut command = workspace.cargo_apart("fuzz", &run);
    command.args(["--bin", name, "--"]);
    command.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", FLAGS.join(" "));
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_target_is_told() {
        let workspace = Workspace::find().expect("this test runs in it");
        let entries = std::fs::read_dir(workspace.root.join("fuzz/targets")).expect("the targets are there");
        let files: BTreeSet<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        let rust = || TARGETS.iter().filter(|target| target.build.is_none());
        assert_eq!(files, rust().map(|target| format!("{}.rs", target.name)).collect());
        let manifest = std::fs::read_to_string(workspace.root.join("fuzz/Cargo.toml")).unwrap();
        for target in TARGETS {
            assert!(help().contains(target.does));
        }
        for target in rust() {
            assert!(manifest.contains(&format!("name = \"{}\"", target.name)), "{}", target.name);
        }
    }

    #[test]
    fn arguments_may_be_left_out() {
        let parsed = |arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(|&one| one.to_owned()).collect();
            let (targets, seconds) = parse(&arguments)?;
            Ok::<_, String>((targets.iter().map(|target| target.name).collect::<Vec<_>>(), seconds))
        };
        let all: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
        assert_eq!(parsed(&[]), Ok((all.clone(), SECONDS)));
        assert_eq!(parsed(&["5"]), Ok((all, 5)));
        assert_eq!(parsed(&["line"]), Ok((vec!["line"], SECONDS)));
        assert_eq!(parsed(&["commands", "7"]), Ok((vec!["commands"], 7)));
        for wrong in [
            &["nothing"][..],
            &["line", "0"],
            &["0"],
            &["line", "soon"],
            &["5s"],
            &["line", "4294967296"],
            &["line", "5", "more"],
        ] {
            assert!(parsed(wrong).is_err(), "{wrong:?}");
        }
    }
}

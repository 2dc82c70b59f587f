//! The step `redis`: `forrest serve` as Redis's own tests and clients see it.
//!
//! Valkey's tests, in Tcl, run against a server in a process of its own, in the mode for external servers. They come
//! from Debian's source package, at one version and checksum. `crates/forrest-redis/tests/valkey-skipped.txt` lists
//! those that are left out, each with the reason. The number of those that pass is counted, so that none is lost
//! silently. Then redis-benchmark and redis-py run by their defaults, and the guide is followed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::python::Environment;
use crate::served::Served;
use crate::sources::{self, Source};
use crate::steps::{Outcome, Verdict};
use crate::workspace::{self, Workspace};
use crate::{files, foreign, guide, required, setup};

/// Debian's source package.
const VALKEY: Source = Source {
    url: "http://deb.debian.org/debian/pool/main/v/valkey/valkey_8.1.1+dfsg1.orig.tar.xz",
    sha256: "d9bbd82eecb82f359e649a0007ad3dc1b47cc15afa626348ca86b73c4ae2c7ee",
    directory: "valkey-8.1.1",
    part: "tests",
};
/// The units.
const UNITS: [&str; 16] = [
    "unit/type/string",
    "unit/type/incr",
    "unit/type/list",
    "unit/type/hash",
    "unit/type/set",
    "unit/type/zset",
    "unit/bitops",
    "unit/bitfield",
    "unit/slowlog",
    "unit/geo",
    "unit/keyspace",
    "unit/expire",
    "unit/multi",
    "unit/scan",
    "unit/auth",
    "unit/protocol",
];
/// Those of them that are counted by themselves too: what nearly every program uses. They have 357 tests.
const CORE: [&str; 8] = [
    "unit/type/string",
    "unit/type/incr",
    "unit/keyspace",
    "unit/expire",
    "unit/multi",
    "unit/scan",
    "unit/auth",
    "unit/protocol",
];
/// Tests that pass. Fewer are a failure; more are to be written here.
const PASSED: usize = 1224;
/// Requests of each kind that the benchmark sends.
const REQUESTS: &str = "2000";

/// The step.
pub(crate) fn step(workspace: &Workspace) -> Verdict {
    for path in required::REDIS.iter().chain([&guide::REDIS]) {
        required::demand(workspace, path)?;
    }
    let needs = [("tclsh", "tcl"), ("curl", "curl"), ("xz", "xz-utils")];
    if let Err(why) = setup::programs(workspace, &needs) {
        return Ok(Outcome::Skipped(why));
    }
    let place = workspace.target.join("redis");
    let tests = match fetched(workspace, &place)? {
        Ok(tests) => tests,
        Err(why) => return Ok(Outcome::Skipped(why)),
    };
    foreign::build(workspace, &["--bin", "forrest"])?;
    let (server, port) = serve(workspace)?;
    suite(workspace, &tests, port)?;

    let mut skipped = Vec::new();
    match setup::programs(workspace, &[("redis-cli", "redis-tools")]) {
        Err(why) => skipped.push(why),
        Ok(()) => {
            let port = port.to_string();
            let mut benchmark = workspace.command("redis-benchmark");
            workspace::run(benchmark.args(["-p", &port, "-n", REQUESTS, "-q"]).stdout(Stdio::null()))?;
            let bin = workspace.target.join("redis/prefix/bin");
            files::empty(&bin)?;
            files::link(workspace.target.join("debug/forrest"), &bin.join("forrest"))?;
            guide::follow(workspace, guide::REDIS, &place.join("home"), &place.join("prefix"))?;
        }
    }
    if let Err(why) = python(workspace, port)? {
        skipped.push(why);
    }
    drop(server);
    if skipped.is_empty() {
        return Ok(Outcome::Passed);
    }
    Ok(Outcome::Skipped(format!("all passed but {}", skipped.join("; "))))
}

/// A server on a store in memory, and its port.
fn serve(workspace: &Workspace) -> Result<(Served, u16), String> {
    let mut command = workspace.command(workspace.target.join("debug/forrest"));
    command.args(["--db", "memory:", "serve", "--listen", "127.0.0.1:0", "--debug-commands"]);
    let server = Served::start(&mut command)?;
    let port = server.line.rsplit(':').next().and_then(|port| port.parse().ok());
    let port = port.ok_or_else(|| format!("forrest serve printed {:?}, not its address", server.line))?;
    Ok((server, port))
}

/// Valkey's tests below the target directory. The inner error says why they cannot be had.
fn fetched(workspace: &Workspace, place: &Path) -> Result<Result<PathBuf, String>, String> {
    let tests = match sources::unpacked(workspace, &VALKEY, place)? {
        Ok(tests) => tests,
        Err(why) => return Ok(Err(why)),
    };
    // Those of passwords start servers of their own. The first two parts need none: they set it by CONFIG SET.
    let auth = tests.join("tests/unit/auth.tcl");
    let text = fs::read_to_string(&auth).map_err(|error| format!("{}: {error}", auth.display()))?;
    let open = text.replace("{\"auth external:skip\"}", "{auth}").replace("{auth external:skip}", "{auth}");
    if open == text {
        return Err(format!("{} has another form than was expected", auth.display()));
    }
    files::write(&auth, open.as_bytes())?;
    Ok(Ok(tests))
}

/// Runs the suite and counts.
fn suite(workspace: &Workspace, tests: &Path, port: u16) -> Result<(), String> {
    let list = workspace.root.join(required::REDIS_SKIPPED);
    let text = fs::read_to_string(&list).map_err(|error| format!("{}: {error}", list.display()))?;
    let names = skipped(&text)?;
    let file = tests.join("skipped.txt");
    files::write(&file, (names.join("\n") + "\n").as_bytes())?;
    let mut command = workspace.command("tclsh");
    command.current_dir(tests).arg("tests/test_helper.tcl");
    command.args(["--host", "127.0.0.1", "--port", &port.to_string(), "--clients", "1"]);
    command.args(UNITS.iter().flat_map(|unit| ["--single", unit]));
    // What has another encoding here than in Redis shows in OBJECT ENCODING and in digests of memory only.
    command.args(["--ignore-encoding", "--ignore-digest", "--durable", "--tags", "-needs:repl"]);
    println!("$ {}", workspace::line(command.arg("--skipfile").arg(&file)));
    let (printed, status) = workspace::capture(&mut command)?;
    let counts = Counts::of(&printed);
    println!("Valkey's tests: {} passed, {} failed, {} skipped", counts.passed, counts.failed, names.len());
    println!("of the units {}: {} passed", CORE.join(", "), counts.core);
    if !status.success() || counts.failed > 0 {
        return Err(format!("Valkey's tests fail:\n{printed}"));
    }
    if counts.passed != PASSED {
        return Err(format!("{} of Valkey's tests pass, and {PASSED} should", counts.passed));
    }
    Ok(())
}

/// The names in the list. Each has a reason.
fn skipped(text: &str) -> Result<Vec<&str>, String> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| match line.rsplit_once(": ") {
            Some((name, reason)) if !reason.is_empty() => Ok(name),
            _ => Err(format!("{}: {line:?} has no reason", required::REDIS_SKIPPED)),
        })
        .collect()
}

#[derive(Debug, PartialEq, Eq)]
struct Counts {
    passed: usize,
    failed: usize,
    /// Those of [`CORE`] that passed.
    core: usize,
}

impl Counts {
    /// Of what the suite prints, which is coloured.
    fn of(printed: &str) -> Counts {
        let plain: String = printed
            .split("\u{1b}[")
            .map(|part| part.split_once('m').map_or(part, |(_, rest)| rest))
            .collect();
        let (mut counts, mut is_core) = (Counts { passed: 0, failed: 0, core: 0 }, false);
        for line in plain.lines() {
            // One unit runs after the other.
            if let Some(unit) = line.strip_prefix("Testing ") {
                is_core = CORE.contains(&unit);
            } else if line.starts_with("[ok]") {
                counts.passed += 1;
                counts.core += usize::from(is_core);
            } else if line.starts_with("[err]") || line.starts_with("[exception]") {
                counts.failed += 1;
            }
        }
        counts
    }
}

/// redis-py. The inner error says why it cannot be had.
fn python(workspace: &Workspace, port: u16) -> Result<Result<(), String>, String> {
    let environment = setup::python(workspace)
        .and_then(|()| Environment::make(workspace, "redis/python", required::REDIS_PYTHON, ""));
    let environment = match environment {
        Ok(environment) => environment,
        Err(why) => return Ok(Err(format!("redis-py: {why}"))),
    };
    let mut clients = environment.call("python");
    workspace::run(clients.arg("crates/forrest-redis/tests/clients.py").arg(port.to_string())).map(Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coloured_lines_are_counted() {
        let printed = "[\u{1b}[0;32;49mok\u{1b}[0m]: SET (0 ms)\n[\u{1b}[0;31;49merr\u{1b}[0m]: GET in x\n[ok]: a\nok\n";
        assert_eq!(Counts::of(printed), Counts { passed: 2, failed: 1, core: 0 });
        let units =
            "\u{1b}[1;37;49mTesting unit/type/list\u{1b}[0m\n[ok]: a\nTesting unit/scan\n[ok]: b\n[ok]: c\n";
        assert_eq!(Counts::of(units), Counts { passed: 3, failed: 0, core: 2 });
    }

    #[test]
    fn every_test_that_is_left_out_has_a_reason() {
        assert_eq!(skipped("# a\n\nSCAN: it: there is none\n"), Ok(vec!["SCAN: it"]));
        assert!(skipped("SCAN it\n").unwrap_err().contains("has no reason"));
    }
}

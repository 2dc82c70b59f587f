//! `cargo xtask vm --planted`: mutation tests of the kernel module's checks.
//!
//! A check proves little unless it can fail. Each patch in [`FOLDER`] makes one mistake in the module's sources. Its
//! head describes the mistake and names the checks that must fail, on lines `fails: NAME`. A check also fails if the
//! machine stops in it. `fails: the build` means that the module must not build.
//!
//! A line `boot: NAME` names the boot in which the checks fail, if it is not the first. `debug` is the boot of the
//! debug machine; its mistakes are tested only with `--debug`. Only the checks that a mistake names run, or all checks
//! if the kernel's log must show the mistake. First, the checks must pass without a mistake. The end of the output
//! lists the checks that no mistake names.

use std::fs;
use std::path::Path;

use super::bench::{Bench, Kind, Warnings};
use super::boots::{BOOTS, Boot, DEBUG};
use super::console;
use crate::steps::{Outcome, Verdict};
use crate::workspace::{self, Workspace};

/// The option that runs these tests.
pub(super) const OPTION: &str = "--planted";
const FOLDER: &str = "kernel/llds/tests/planted";
const TESTS: &str = "kernel/llds/tests";
const THE_BUILD: &str = "the build";
/// This check finds what other checks caused.
const THE_LOG: &str = "log_is_clean";

/// Enough to detect each mistake, and fast. The debug machine does less by default.
const FEW: &str = "hostile_calls=10000 loads=200 opens=2000 races=10";

/// A mistake.
struct Mistake {
    name: String,
    boot: &'static Boot,
    fails: Vec<String>,
}

/// The command. `names` are the mistakes to test; if empty, all mistakes of that machine.
pub(crate) fn run(workspace: &Workspace, kind: Kind, names: &[&str], settings: &str) -> Verdict {
    let mut mistakes = mistakes(&workspace.root.join(FOLDER), names)?;
    let named: Vec<String> = mistakes.iter().flat_map(|mistake| mistake.fails.clone()).collect();
    mistakes.retain(|mistake| (mistake.boot.name == DEBUG.name) == (kind == Kind::Debug));
    if mistakes.is_empty() {
        return Err("none of the mistakes is for this machine".to_owned());
    }
    let bench = match Bench::prepare(workspace, kind)? {
        Ok(bench) => bench,
        Err(why) => return Ok(Outcome::Skipped(why)),
    };
    bench.build()?;
    bench.pack(None)?;
    let processors = bench.processors();
    let (few, first) = if kind == Kind::Debug { ("", &DEBUG) } else { (FEW, &BOOTS[0]) };
    // A check that always fails would seem to catch any mistake. The names of all checks do not fit on a kernel's
    // command line.
    let wanted: Vec<String> = mistakes.iter().flat_map(|mistake| mistake.fails.clone()).collect();
    let all = if names.is_empty() { String::new() } else { only(&wanted) };
    let said = bench.boot(first, processors, &format!("{few} {all} {settings}"))?;
    console::read(&said).map_err(|why| format!("without a mistake: {why}"))?;
    let mut missed = Vec::new();
    for mistake in &mistakes {
        bench.copy_sources()?;
        let patch = workspace.root.join(FOLDER).join(format!("{}.patch", mistake.name));
        let mut apply = workspace.command("patch");
        apply.args(["-p1", "--silent", "-i"]).arg(&patch).arg("-d").arg(bench.sources());
        workspace::run(&mut apply).map_err(|why| format!("{} fits no more: {why}", mistake.name))?;
        let caught: Vec<String> = match bench.build_module(Warnings::Pass) {
            Err(why) if !mistake.fails.iter().any(|name| name == THE_BUILD) => {
                return Err(format!("{} does not build: {why}", mistake.name));
            }
            Err(_) => vec![THE_BUILD.to_owned()],
            Ok(()) => {
                bench.pack(None)?;
                let said = bench.boot(
                    mistake.boot,
                    processors,
                    &format!("{few} {} {settings}", only(&mistake.fails)),
                )?;
                console::failures(&said).into_iter().map(str::to_owned).collect()
            }
        };
        println!("{}: {}", mistake.name, caught.join(", "));
        let silent: Vec<&str> =
            mistake.fails.iter().filter(|name| !caught.contains(name)).map(String::as_str).collect();
        if !silent.is_empty() {
            println!("{}: MISSED by {}", mistake.name, silent.join(", "));
            missed.push(format!("{} was missed by {}", mistake.name, silent.join(", ")));
        }
    }
    println!("\n{} mistakes, {} missed", mistakes.len(), missed.len());
    if names.is_empty() {
        let mut checks = checks(&workspace.root.join(TESTS))?;
        checks.retain(|check| !named.contains(check));
        println!("checks that no mistake names: {}", checks.join(", "));
    }
    if missed.is_empty() { Ok(Outcome::Passed) } else { Err(missed.join("; ")) }
}

/// The setting that selects these checks; empty if all must run.
fn only(names: &[String]) -> String {
    if names.iter().any(|name| name == THE_LOG) {
        return String::new();
    }
    let names: Vec<&str> = names.iter().map(String::as_str).filter(|name| *name != THE_BUILD).collect();
    format!("only={}", names.join(","))
}

/// The names of all checks, from the lists at the ends of the files.
fn checks(folder: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "c"));
    paths.sort();
    let mut checks = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let names = text.lines().filter_map(|line| line.strip_prefix("\t{ \"")?.split_once("\","));
        checks.extend(names.map(|(name, _)| name.to_owned()));
    }
    Ok(checks)
}

/// The mistakes of a folder, in order.
fn mistakes(folder: &Path, names: &[&str]) -> Result<Vec<Mistake>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "patch"));
    paths.sort();
    let mut mistakes = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        mistakes.push(mistake(name, &text)?);
    }
    if let Some(unknown) = names.iter().find(|name| !mistakes.iter().any(|mistake| mistake.name == **name)) {
        return Err(format!("no mistake is called {unknown:?}"));
    }
    mistakes.retain(|mistake| names.is_empty() || names.contains(&mistake.name.as_str()));
    if mistakes.is_empty() { Err(format!("{FOLDER} has no mistakes")) } else { Ok(mistakes) }
}

/// The head of a patch.
fn mistake(name: String, text: &str) -> Result<Mistake, String> {
    let head = || text.lines().take_while(|line| !line.starts_with("--- "));
    let fails: Vec<String> =
        head().filter_map(|line| line.strip_prefix("fails: ")).map(str::to_owned).collect();
    if fails.is_empty() {
        return Err(format!("{name} does not say what fails"));
    }
    let boot = match head().find_map(|line| line.strip_prefix("boot: ")) {
        None => BOOTS.first(),
        Some(boot) => BOOTS.iter().chain([&DEBUG]).find(|known| known.name == boot),
    };
    let boot = boot.ok_or_else(|| format!("{name} names a boot that there is not"))?;
    Ok(Mistake { name, boot, fails })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read() {
        let text = "It is wrong.\nboot: slab-debugging\nfails: a\nfails: b\n\n--- a/device.c\nfails: c\n";
        let found = mistake("x".to_owned(), text).expect("it is a head");
        assert_eq!((found.boot.name, found.fails), ("slab-debugging", vec!["a".to_owned(), "b".to_owned()]));
        assert!(mistake("x".to_owned(), "It is wrong.\n--- a\nfails: c\n").is_err());
        assert!(mistake("x".to_owned(), "boot: none\nfails: c\n").is_err());
    }

    #[test]
    fn only_what_a_mistake_names_is_run() {
        let names = |names: &[&str]| only(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        assert_eq!(names(&["a", THE_BUILD, "b"]), "only=a,b");
        assert_eq!(names(&["a", THE_LOG]), "");
    }

    #[test]
    fn the_planted_mistakes_name_checks_that_there_are() {
        let workspace = Workspace::find().expect("this test runs in it");
        let checks = checks(&workspace.root.join(TESTS)).expect("they can be read");
        for mistake in mistakes(&workspace.root.join(FOLDER), &[]).expect("they can be read") {
            for name in mistake.fails.iter().filter(|name| *name != THE_BUILD) {
                assert!(checks.contains(name), "{}: {name}", mistake.name);
            }
        }
    }
}

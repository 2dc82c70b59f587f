//! `cargo xtask vm --planted`: mistakes in the module that the checks must catch.
//!
//! A check proves little unless it can fail. Each file of `kernel/llds/tests/planted` is a patch for the module's
//! sources; its head says what the mistake is and which checks must fail, on lines `fails: NAME`. A check fails too if
//! the machine stops in it; `fails: the build` says that the module must not even build. A line `boot: NAME` names
//! the boot that tells, if it is not the first: `debug` is that of the other machine (`cargo xtask vm --debug --planted`),
//! of whose mistakes none is planted for this one. Checks that none of the mistakes makes fail are told at the end.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::bench::{Bench, Kind, Warnings};
use super::{BOOTS, Boot, DEBUG, console};
use crate::steps::{Outcome, Verdict};
use crate::workspace::{self, Workspace};

const FOLDER: &str = "kernel/llds/tests/planted";
const THE_BUILD: &str = "the build";

/// Enough for each mistake, and fast. In the debug machine, less is done anyway.
const FEW: &str = "hostile_calls=10000 loads=200 opens=2000 races=10";

/// A mistake.
struct Mistake {
    name: String,
    boot: &'static Boot,
    fails: Vec<String>,
}

/// The command. `names` are the mistakes to plant; all of that machine if there are none.
pub(crate) fn run(workspace: &Workspace, kind: Kind, names: &[&str], settings: &str) -> Verdict {
    let mut mistakes = mistakes(&workspace.root.join(FOLDER), names)?;
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
    let few = if kind == Kind::Debug { "" } else { FEW };
    let (mut missed, mut began, mut failed) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
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
                let said = bench.boot(mistake.boot, processors, &format!("{few} {settings}"))?;
                began.extend(console::begun(&said).into_iter().map(str::to_owned));
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
        failed.extend(caught);
    }
    let never: Vec<&str> = began.difference(&failed).map(String::as_str).collect();
    println!("\n{} mistakes, {} missed", mistakes.len(), missed.len());
    println!(
        "checks that none of them made fail: {}",
        if never.is_empty() { "none".to_owned() } else { never.join(", ") }
    );
    if missed.is_empty() { Ok(Outcome::Passed) } else { Err(missed.join("; ")) }
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
    fn the_planted_mistakes_name_checks_that_there_are() {
        let workspace = Workspace::find().expect("this test runs in it");
        let tests = workspace.root.join("kernel/llds/tests");
        let files = fs::read_dir(&tests)
            .expect("they are there")
            .filter_map(|file| fs::read_to_string(file.ok()?.path()).ok());
        let source: String = files.collect();
        for mistake in mistakes(&workspace.root.join(FOLDER), &[]).expect("they can be read") {
            for name in mistake.fails.iter().filter(|name| *name != THE_BUILD) {
                assert!(source.contains(&format!("{{ \"{name}\",")), "{}: {name}", mistake.name);
            }
        }
    }
}

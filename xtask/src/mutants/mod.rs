//! `cargo xtask mutants`: mistakes in the engine on disk, in transactions and in the storage for Raft that their gates
//! must catch.
//!
//! A gate proves little unless it can fail. Each file of `tests/mutants` below a crate's sources is a patch; its
//! head describes the mistake and names the gate that must fail (see [`patch`]). The sources do not refer to mutants:
//! all patches are applied to one copy of the crate below the target directory, as alternatives that a number selects
//! at run time. So the copy is built once. One of its tests sets the number of one mutant for its thread and runs the
//! gate, which must panic. Without a mutant each of these gates must pass on its first workload, to show that the copy
//! is correct. In larger sizes the gates are tests of the crate itself.

mod patch;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::steps::{self, Outcome, Step, Verdict};
use crate::workspace::{self, Workspace};
use crate::{Failure, required};
use patch::Mutant;

/// A crate with mutants.
struct Subject {
    /// Its sources, and its name.
    sources: &'static str,
    package: &'static str,
    /// The features that its gates need.
    features: &'static str,
    /// One of its gates, which must be there.
    gate: &'static str,
    /// Below the target directory: a workspace with the copy of the crate.
    copy: &'static str,
    /// What calls of gates need beside the gates.
    imports: &'static str,
    /// What the gates need, where the crate's other tests and examples need more: the manifest's section. With the
    /// features of the crate above, the store is built once for both.
    dev_dependencies: Option<&'static str>,
    /// How many there were at least.
    #[cfg(test)]
    least: usize,
}

const SUBJECTS: &[Subject] = &[
    Subject {
        sources: "crates/remixdb/src",
        package: "remixdb",
        features: "encryption",
        gate: required::GATES,
        copy: "mutants",
        imports: "use super::super::disk::simulated::{Failure, Fate};\n",
        dev_dependencies: None,
        #[cfg(test)]
        least: 35,
    },
    Subject {
        sources: "crates/forrest/src",
        package: "forrest-db",
        features: "simulated,encryption",
        gate: required::GATES_TRANSACTIONS,
        copy: "mutants-of-transactions",
        imports: "",
        dev_dependencies: None,
        #[cfg(test)]
        least: 39,
    },
    Subject {
        sources: "crates/forrest-raft/src",
        package: "forrest-raft",
        features: "",
        gate: required::GATES_RAFT,
        copy: "mutants-of-raft",
        imports: "use forrest::simulated::{Failure, Fate, Times};\n",
        dev_dependencies: Some(
            "\
forrest = { workspace = true, features = [\"encryption\", \"simulated\"] }
forrest-base.workspace = true
forrest-engine = { workspace = true, features = [\"conformance\"] }
forrest-testing.workspace = true
tempfile.workspace = true
tokio = { workspace = true, features = [\"macros\", \"time\", \"test-util\"] }
",
        ),
        #[cfg(test)]
        least: 37,
    },
];

/// Where the mutants are, below the sources.
const FOLDER: &str = "tests/mutants";

pub(crate) const DOES: &str =
    "mistakes in stores, transactions, blobs and Raft's storage, which their gates must catch";

/// The command.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    let all = SUBJECTS.iter().map(|subject| Ok((subject, mutants(workspace, subject)?)));
    let all: Vec<(&Subject, Vec<Mutant>)> = all.collect::<Result<_, String>>().map_err(Failure::Broken)?;
    let is_known = |name: &String| all.iter().flat_map(|(_, all)| all).any(|mutant| mutant.name == *name);
    if let Some(unknown) = arguments.iter().find(|name| !is_known(name)) {
        return Err(Failure::Usage(format!("no mutant is called {unknown:?}")));
    }
    if arguments.is_empty() {
        return steps::run(workspace, &[&Step { name: "mutants", does: DOES, run: step }]);
    }
    for (subject, all) in &all {
        let chosen = all.iter().filter(|mutant| arguments.contains(&mutant.name)).collect::<Vec<_>>();
        if !chosen.is_empty() {
            catch(workspace, subject, all, &chosen).map_err(Failure::Broken)?;
        }
    }
    Ok(())
}

/// The step.
pub(crate) fn step(workspace: &Workspace) -> Verdict {
    for subject in SUBJECTS {
        required::demand(workspace, subject.gate)?;
        let all = mutants(workspace, subject)?;
        catch(workspace, subject, &all, &all.iter().collect::<Vec<_>>())?;
    }
    Ok(Outcome::Passed)
}

/// All mutants of a crate, by name.
fn mutants(workspace: &Workspace, subject: &Subject) -> Result<Vec<Mutant>, String> {
    let folder = workspace.root.join(subject.sources).join(FOLDER);
    let mut mutants = Vec::new();
    for path in files(&folder)? {
        if path.extension().is_some_and(|extension| extension == "patch") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            mutants.push(patch::read(&name, &text(&folder.join(&path))?)?);
        }
    }
    if mutants.is_empty() { Err(format!("{} has no mutants", folder.display())) } else { Ok(mutants) }
}

/// Makes and builds the copy, and demands that the gates pass and then catch these mutants.
fn catch(workspace: &Workspace, subject: &Subject, all: &[Mutant], chosen: &[&Mutant]) -> Result<(), String> {
    let own = crate_of(&workspace.root.join(subject.sources))?;
    let copy = workspace.target.join(subject.copy);
    write_copy(workspace, subject, &own, &copy, all)?;
    let test = |arguments: &[&str]| -> Command {
        let mut command = workspace.cargo(&["test", "--offline", "--lib", "--manifest-path"]);
        command.arg(copy.join("Cargo.toml")).args(["--package", subject.package]);
        command.args(["--features", subject.features]).args(arguments);
        // What cargo builds for the copy and for the workspace has different names; dependencies are shared.
        command.env("CARGO_TARGET_DIR", &workspace.target);
        command
    };
    workspace::run(&mut test(&["--no-run"]))?;
    let mut command = test(&["--"]);
    command.arg(MODULE.to_owned() + "without_");
    command.args(chosen.iter().map(|mutant| format!("{MODULE}{}", test_name(mutant))));
    println!("$ {}", workspace::line(&command));
    let (output, status) = workspace::capture(&mut command)?;
    let missed = missed(&output, chosen);
    for Mutant { name, what, gates, .. } in &missed {
        println!("{name}: NOT CAUGHT by {}: {}", gates.join(", "), what.join(" "));
    }
    if !missed.is_empty() || !status.success() {
        println!("{output}");
        let names = missed.iter().map(|mutant| &mutant.name[..]).collect::<Vec<_>>().join(", ");
        return Err(if missed.is_empty() {
            "a gate fails without a mutant".to_owned()
        } else {
            format!("not caught: {names}")
        });
    }
    println!("{}: {} mutants, all caught", subject.package, chosen.len());
    Ok(())
}

/// The path of the tests in the copy, wherever in the crate the engine is.
const MODULE: &str = "tests::mutants::";

/// The mutants whose tests did not report success.
fn missed<'m>(output: &str, chosen: &[&'m Mutant]) -> Vec<&'m Mutant> {
    let passed = |mutant: &Mutant| {
        let end = format!("{MODULE}{} - should panic ... ok", test_name(mutant));
        output.lines().any(|line| line.strip_suffix(&end).is_some_and(|start| start.starts_with("test ")))
    };
    chosen.iter().copied().filter(|mutant| !passed(mutant)).collect()
}

fn test_name(mutant: &Mutant) -> String {
    format!("catches_{}", mutant.name.replace('-', "_"))
}

/// The directory of the crate in which a path is.
fn crate_of(path: &Path) -> Result<PathBuf, String> {
    let mut directories = path.ancestors();
    let found = directories.find(|directory| directory.join("Cargo.toml").exists());
    found.map(Path::to_owned).ok_or_else(|| format!("{} is in no crate", path.display()))
}

/// Makes the copy, a workspace of one crate. A file that is as it should be is not written, so that cargo need not
/// build it again.
fn write_copy(
    workspace: &Workspace,
    subject: &Subject,
    own: &Path,
    copy: &Path,
    mutants: &[Mutant],
) -> Result<(), String> {
    let sources = workspace.root.join(subject.sources);
    let place = copy.join("crate");
    let tests = sources.join("tests");
    let mut written = BTreeSet::new();
    let mut changed = BTreeSet::new();
    for path in files(own)? {
        let from = own.join(&path);
        let mut bytes = fs::read(&from).map_err(|error| format!("{}: {error}", from.display()))?;
        if let Ok(file) = from.strip_prefix(&sources) {
            let file = file.to_string_lossy();
            if mutants.iter().any(|mutant| mutant.hunks.iter().any(|hunk| hunk.file == file)) {
                bytes = patch::plant(&text(&from)?, &file, (1..).zip(mutants))?.into_bytes();
                changed.insert(file.into_owned());
            }
        }
        if path == Path::new("Cargo.toml") {
            let manifest = with_dev_dependencies(&text(&from)?, subject.dev_dependencies);
            bytes = with_paths(&manifest, own).into_bytes();
        } else if path == Path::new("src/lib.rs") {
            bytes = [WARNINGS.as_bytes(), &bytes, SWITCH.as_bytes()].concat();
        } else if from == tests.join("mod.rs") {
            bytes.extend_from_slice(b"mod mutants;\n");
        }
        write(&place.join(&path), &bytes)?;
        written.insert(path);
    }
    for mutant in mutants {
        if let Some(hunk) = mutant.hunks.iter().find(|hunk| !changed.contains(&hunk.file)) {
            return Err(format!("{} changes {}, which is not there", mutant.name, hunk.file));
        }
    }
    let path = tests.strip_prefix(own).expect("it is in the crate").join("mutants.rs");
    write(&place.join(&path), tests_of(subject, mutants).as_bytes())?;
    written.insert(path);
    for path in files(&place)?.into_iter().filter(|path| !written.contains(path)) {
        let path = place.join(path);
        fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let manifest = manifest(&with_paths(&text(&workspace.root.join("Cargo.toml"))?, &workspace.root));
    write(&copy.join("Cargo.toml"), manifest.as_bytes())?;
    write(&copy.join("Cargo.lock"), text(&workspace.root.join("Cargo.lock"))?.as_bytes())
}

/// A body that is wrong need not use all that the right one does.
const WARNINGS: &str = "#![allow(warnings)]\n";

/// What the copies of functions ask, and the tests set.
const SWITCH: &str = "
mod mutant {
    use std::cell::Cell;

    thread_local! {
        static CHOSEN: Cell<usize> = const { Cell::new(0) };
    }

    pub(crate) fn is(number: usize) -> bool {
        CHOSEN.get() == number
    }

    /// Chooses a mutant for the calling thread, until it is dropped.
    pub(crate) struct Chosen;

    impl Chosen {
        pub(crate) fn new(number: usize) -> Chosen {
            CHOSEN.set(number);
            Chosen
        }
    }

    impl Drop for Chosen {
        fn drop(&mut self) {
            CHOSEN.set(0);
        }
    }
}
";

/// The tests of the copy: each mutant's, and each gate's without one.
fn tests_of(subject: &Subject, mutants: &[Mutant]) -> String {
    let mut text = format!("//! Made by `cargo xtask mutants`.\n\nuse super::*;\n{}", subject.imports);
    let gates: BTreeSet<String> =
        mutants.iter().flat_map(|mutant| &mutant.gates).map(|gate| first(gate)).collect();
    for (at, gate) in gates.into_iter().enumerate() {
        text += &format!("\n#[test]\nfn without_{at}() {{\n    let _ = {gate};\n}}\n");
    }
    for (number, mutant) in (1..).zip(mutants) {
        for gate in &mutant.gates {
            let name = test_name(mutant);
            text += &format!(
                "\n#[test]\n#[should_panic]\nfn {name}() {{\n    \
                 let _chosen = crate::mutant::Chosen::new({number});\n    let _ = {gate};\n}}\n"
            );
        }
    }
    text
}

/// A gate on the first of its workloads: `0..8` becomes `0..1`.
fn first(gate: &str) -> String {
    let Some((start, rest)) = gate.split_once("(0..") else { return gate.to_owned() };
    format!("{start}(0..1{}", rest.trim_start_matches(|letter: char| letter.is_ascii_digit()))
}

/// A manifest whose paths of dependencies lead from anywhere to where they lead from `directory`.
fn with_paths(manifest: &str, directory: &Path) -> String {
    let mut text = String::new();
    for line in manifest.lines() {
        match line.split_once(" path = \"") {
            // A crate that its own tests depend on is the copy.
            Some((start, path)) if start.contains('{') && !path.starts_with(".\"") => {
                text += &format!("{start} path = \"{}/{path}\n", directory.display());
            }
            _ => text += &format!("{line}\n"),
        }
    }
    text
}

/// A manifest with another section of what tests depend on.
fn with_dev_dependencies(manifest: &str, section: Option<&str>) -> String {
    const TITLE: &str = "[dev-dependencies]\n";
    let (Some(section), Some((start, rest))) = (section, manifest.split_once(TITLE)) else {
        return manifest.to_owned();
    };
    let end = rest.find("\n[").map_or("", |end| &rest[end..]);
    format!("{start}{TITLE}{section}{end}")
}

/// The workspace's manifest with the copy as its only member.
fn manifest(own: &str) -> String {
    let mut text = String::new();
    let mut in_members = false;
    for line in own.lines() {
        if line.starts_with("members = [") {
            text += "members = [\"crate\"]\n";
            in_members = true;
        } else if line.starts_with("default-members = [") {
            in_members = true;
        }
        if !in_members {
            text += &format!("{line}\n");
        }
        in_members &= !line.ends_with(']');
    }
    text
}

/// All files of a directory and those in it, by their paths from there, in order.
fn files(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let (mut found, mut directories) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(below) = directories.pop() {
        let place = directory.join(&below);
        let refuse = |error| format!("{}: {error}", place.display());
        for entry in fs::read_dir(&place).map_err(refuse)? {
            let path = below.join(entry.map_err(refuse)?.file_name());
            if directory.join(&path).is_dir() { directories.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    Ok(found)
}

fn text(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    if fs::read(path).is_ok_and(|found| found == bytes) {
        return Ok(());
    }
    path.parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(path, bytes))
        .map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without building anything: that they are found, that each fits, and that there are the gates that they name.
    #[test]
    fn the_mutants_fit_the_sources() {
        let workspace = Workspace::find().expect("this test runs in it");
        for subject in SUBJECTS {
            they_fit(&workspace, subject);
        }
    }

    fn they_fit(workspace: &Workspace, subject: &Subject) {
        let mutants = mutants(workspace, subject).expect("they can be read");
        assert!(mutants.len() >= subject.least, "{} of {} are left", mutants.len(), subject.least);
        let sources = workspace.root.join(subject.sources);
        let changed: BTreeSet<&str> =
            mutants.iter().flat_map(|mutant| mutant.hunks.iter().map(|hunk| &hunk.file[..])).collect();
        for file in changed {
            let source = text(&sources.join(file)).expect("it can be read");
            let planted =
                patch::plant(&source, file, (1..).zip(&mutants)).unwrap_or_else(|why| panic!("{why}"));
            assert_ne!(planted, source);
        }
        for mutant in &mutants {
            for gate in &mutant.gates {
                let call = gate.split_once('(').and_then(|(path, _)| path.split_once("::"));
                let (module, function) = call.expect("a function of a module of the gates");
                let source = text(&sources.join(format!("tests/{module}.rs"))).expect("it can be read");
                assert!(source.contains(&format!("pub(super) fn {function}(")), "{}: {gate}", mutant.name);
            }
        }
    }

    #[test]
    fn the_copy_is_the_only_member_and_finds_its_dependencies() {
        let own = "[workspace]\nmembers = [\n    \"a\",\n]\ndefault-members = [\"a\"]\n\n[x]\na = { path = \"../a\" }\nc = { package = \"d\", path = \"c\" }\ne = { path = \".\" }\n";
        let found = manifest(&with_paths(own, Path::new("/root/b")));
        assert_eq!(
            found,
            "[workspace]\nmembers = [\"crate\"]\n\n[x]\na = { path = \"/root/b/../a\" }\n\
             c = { package = \"d\", path = \"/root/b/c\" }\ne = { path = \".\" }\n"
        );
    }

    #[test]
    fn the_copy_may_depend_on_less() {
        let own = "[package]\nname = \"a\"\n\n[dev-dependencies]\nb = \"1\"\n\n[lints]\nworkspace = true\n";
        let found = with_dev_dependencies(own, Some("c = \"2\"\n"));
        assert_eq!(found, own.replace("b = \"1\"", "c = \"2\""));
        assert_eq!(with_dev_dependencies(own, None), own);
    }

    #[test]
    fn a_gate_begins_with_one_workload() {
        assert_eq!(first("crash::kill(0..60, &[A])"), "crash::kill(0..1, &[A])");
        assert_eq!(first("crash::kill(3)"), "crash::kill(3)");
    }

    #[test]
    fn only_what_panicked_is_caught() {
        let mutant =
            |name| patch::read(name, "It.\nfails: a\n--- a/x\n+++ b/x\n@@ @@\n-a\n").expect("a patch");
        let (a, b, c) = (mutant("a-b"), mutant("b"), mutant("c"));
        let output = "test x::tests::mutants::catches_a_b - should panic ... ok\n\
                      test x::tests::mutants::catches_b - should panic ... FAILED\n";
        let missed: Vec<&str> = missed(output, &[&a, &b, &c]).iter().map(|mutant| &mutant.name[..]).collect();
        assert_eq!(missed, ["b", "c"]);
    }
}

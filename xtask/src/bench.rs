//! `cargo xtask bench`: builds the benchmark with optimization and runs it. What it measures is its own matter.
//!
//! The peers of stores on disk are compiled only when stores are measured, and RocksDB only if it is among them.

use std::path::Path;
use std::process::Stdio;

use crate::workspace::{self, Workspace};
use crate::{Failure, instructions, setup};

/// What there is to measure, as the benchmark calls it.
const SUBJECTS: &[&str] = &["memory", "store", "pressure", "remix", "llds"];
/// Stores that the benchmark has without any feature.
const OWN: &str = "forrest";
/// The same with encrypted files, by a feature.
const ENCRYPTED: &str = "forrest-encrypted";
/// The stores that have a feature for themselves, named like them.
const SLOW: &str = "rocksdb";
const DEBIAN: &str = "leveldb";

/// The command.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    let Some((subject, rest)) = arguments.split_first() else {
        return Err(Failure::Usage("nothing named to measure".to_owned()));
    };
    if subject == "instructions" {
        return instructions::run(workspace, rest);
    }
    if !SUBJECTS.contains(&subject.as_str()) && subject != "--help" && subject != "-h" {
        return Err(Failure::Usage(format!("nothing to measure is called {subject:?}")));
    }
    let features = match subject.as_str() {
        "store" => features(rest),
        "pressure" => features(rest).into_iter().filter(|feature| *feature != DEBIAN).collect(),
        "llds" => engine(workspace),
        _ => Vec::new(),
    };
    if features.contains(&SLOW) {
        println!(
            "RocksDB is compiled from C++ the first time, which takes many minutes; --no-rocksdb leaves it out"
        );
        libclang(workspace).map_err(|why| {
            Failure::Broken(format!(
                "RocksDB needs libclang to be compiled; --no-rocksdb leaves it out: {why}"
            ))
        })?;
    }
    let without = |feature: &&str| {
        let Err(why) = (if *feature == DEBIAN { leveldb(workspace) } else { Ok(()) }) else { return true };
        println!("without LevelDB: {why}");
        false
    };
    let features = features.into_iter().filter(without).collect::<Vec<_>>().join(",");
    let mut command = workspace.cargo(&["run", "--release", "--locked", "--package", "forrest-kvbench"]);
    if !features.is_empty() {
        command.args(["--features", &features]);
    }
    // The benchmark may be run at a terminal and draw there.
    command.arg("--").arg(subject).args(rest).stdin(Stdio::inherit());
    workspace::run(&mut command).map_err(Failure::Broken)
}

/// The feature that compiles the kernel home's engine in, where that can be done.
fn engine(workspace: &Workspace) -> Vec<&'static str> {
    match setup::compiler(workspace) {
        Ok(()) => vec!["llds-user"],
        Err(why) => {
            println!("without llds-user, the kernel's engine in a process: {why}");
            Vec::new()
        }
    }
}

/// The features that the stores need which these arguments ask for.
fn features(arguments: &[String]) -> Vec<&'static str> {
    if arguments.iter().any(|one| one == "--help" || one == "-h") {
        return Vec::new();
    }
    let mut named: Vec<&str> = Vec::new();
    for (at, one) in arguments.iter().enumerate() {
        let next = || arguments.get(at + 1).map(String::as_str);
        let list = one.strip_prefix("--subjects=").or_else(|| (one == "--subjects").then(next).flatten());
        named.extend(list.into_iter().flat_map(|list| list.split(',')));
    }
    let slow = named.is_empty() || named.contains(&SLOW);
    let debian = named.is_empty() || named.contains(&DEBIAN);
    let encrypted = named.contains(&ENCRYPTED);
    let others =
        named.is_empty() || named.iter().any(|&name| ![OWN, ENCRYPTED, SLOW, DEBIAN].contains(&name));
    let slow = slow && !arguments.iter().any(|one| one == "--no-rocksdb");
    [("stores", others), ("encryption", encrypted), (DEBIAN, debian), (SLOW, slow)]
        .into_iter()
        .filter(|(_, wanted)| *wanted)
        .map(|(name, _)| name)
        .collect()
}

/// LevelDB with what it is linked by.
fn leveldb(workspace: &Workspace) -> Result<(), String> {
    if Path::new("/usr/include/leveldb/c.h").exists() {
        return Ok(());
    }
    setup::packages(workspace, &["libleveldb-dev"])
}

/// Provides libclang, which reads the declarations of RocksDB: from the directory in a variable, from Debian's
/// directory, or by installing Debian's package.
fn libclang(workspace: &Workspace) -> Result<(), String> {
    let within = |directory: &Path| {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name()).any(|name| {
            let name = name.to_string_lossy();
            name.strip_prefix("libclang").is_some_and(|rest| rest.starts_with(['.', '-']))
                && name.contains(".so")
                && !name.starts_with("libclang-cpp")
        })
    };
    let versions = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let llvm = versions.map(|entry| entry.path().join("lib"));
    let usual = ["/usr/lib", "/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"];
    let mut places = llvm.chain(usual.iter().map(Into::into));
    if std::env::var_os("LIBCLANG_PATH").is_some() || places.any(|place| within(&place)) {
        return Ok(());
    }
    setup::packages(workspace, &["libclang-dev"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_measured_is_compiled() {
        let cases: [(&[&str], &[&str]); 9] = [
            (&[], &["stores", "leveldb", "rocksdb"]),
            (&["--no-rocksdb", "-n", "1M"], &["stores", "leveldb"]),
            (&["--subjects", "forrest"], &[]),
            (&["--subjects=forrest,lmdb"], &["stores"]),
            (&["--subjects=forrest,forrest-encrypted"], &["encryption"]),
            (&["--subjects", "forrest,rocksdb"], &["rocksdb"]),
            (&["--subjects", "leveldb"], &["leveldb"]),
            (&["--subjects", "rocksdb", "--no-rocksdb"], &[]),
            (&["--help"], &[]),
        ];
        for (arguments, wanted) in cases {
            let given: Vec<_> = arguments.iter().map(ToString::to_string).collect();
            assert_eq!(features(&given), wanted, "{arguments:?}");
        }
    }
}

//! The step `leveldb`: programs for LevelDB with the library of `crates/forrest-leveldb`, and those for plyvel with the
//! Python module `forrest.plyvel`.
//!
//! LevelDB's own test of its C functions is compiled with its own header and with ours, and run; the guide is followed.
//! The tests of plyvel run with our module under its name. Both are fetched once, at a pinned version and checksum,
//! into the target directory, and are never part of this repository.

use std::fs;
use std::path::Path;

use crate::files::{empty, write};
use crate::install::{self, Extent};
use crate::python::{self, Environment};
use crate::sources::{self, Source};
use crate::steps::{Outcome, Verdict};
use crate::workspace::{self, Workspace};
use crate::{guide, required, setup};

const LEVELDB: Source = Source {
    url: "https://deb.debian.org/debian/pool/main/l/leveldb/leveldb_1.23.orig.tar.gz",
    sha256: "9a37f8a6174f09bd622bc723b55881dc541cd50747cbd08831c2a82d620f6d76",
    directory: "leveldb-1.23",
    part: "",
};
const PLYVEL: Source = Source {
    url: "https://files.pythonhosted.org/packages/4b/b0/\
          23f0cc21c943355fc5d49f1933e97812269d7a865daef5b9758b62902d46/plyvel-1.5.1.tar.gz",
    sha256: "3caf6009e4fc24fbf8712d3f5ef3da7e56495c26a488df2161218fc34e46019c",
    directory: "plyvel-1.5.1",
    part: "",
};
/// Tests of plyvel that do not run, with the reason.
const PLYVEL_LEFT_OUT: &[(&str, &str)] = &[
    (
        "test_comparator",
        "it orders letters of either case alike, and Forrest orders keys by their bytes only",
    ),
    ("test_approximate_sizes", "it has keys of up to 99,900 bytes, and Forrest's have at most 65,535"),
];
/// The number of the others.
const PLYVEL_PASS: usize = 52;

/// The step.
pub(crate) fn step(workspace: &Workspace) -> Verdict {
    for path in required::LEVELDB.iter().chain([&guide::LEVELDB]) {
        required::demand(workspace, path)?;
    }
    let compiler = if setup::on_path("cc") { Ok(()) } else { setup::compiler(workspace) };
    let programs = compiler.and_then(|()| {
        setup::programs(workspace, &[("pkg-config", "pkg-config"), ("curl", "curl"), ("tar", "tar")])
    });
    if let Err(why) = programs {
        return Ok(Outcome::Skipped(why));
    }
    if !cfg!(target_os = "linux") {
        return Ok(Outcome::Skipped("what is installed is laid out for Linux".to_owned()));
    }
    let directory = workspace.target.join("leveldb");
    let prefix = directory.join("prefix");
    install::put(workspace, &prefix, "dev", Extent::Libraries)?;
    guide::follow(workspace, guide::LEVELDB, &directory.join("home"), &prefix)?;

    let mut skipped = Vec::new();
    match sources::unpacked(workspace, &LEVELDB, &directory)? {
        Ok(tree) => own_test(workspace, &tree, &directory, &prefix)?,
        Err(why) => skipped.push(why),
    }
    if let Some(why) = plyvel(workspace, &directory)? {
        skipped.push(why);
    }
    if skipped.is_empty() {
        return Ok(Outcome::Passed);
    }
    Ok(Outcome::Skipped(format!("all passed but {}", skipped.join("; "))))
}

/// Compiles LevelDB's test of its C functions with each header, and runs it.
fn own_test(workspace: &Workspace, tree: &Path, directory: &Path, prefix: &Path) -> Result<(), String> {
    let (ours, libraries) = (prefix.join("include/forrest-leveldb"), prefix.join("lib"));
    let sanitizers = &["-fsanitize=address,undefined", "-fno-sanitize-recover=all"][..];
    for (include, flags) in [(tree.join("include"), &[][..]), (ours.clone(), &[]), (ours, sanitizers)] {
        let (program, place) = (directory.join("c_test"), directory.join("c_test-store"));
        empty(&place)?;
        let mut compiler = workspace.command("cc");
        compiler.args(flags).arg("-I").arg(&include).arg("-o").arg(&program).arg(tree.join("db/c_test.c"));
        compiler.arg(format!("-L{}", libraries.display())).arg("-lforrest_leveldb");
        compiler.arg(format!("-Wl,-rpath,{}", libraries.display()));
        workspace::run(&mut compiler)?;
        let mut run = workspace.command(&program);
        let (text, status) =
            workspace::capture(run.env("TEST_TMPDIR", &place).env_remove("LD_LIBRARY_PATH"))?;
        if !status.success() || !text.ends_with("PASS\n") {
            return Err(format!("c_test.c of LevelDB, {status}:\n{text}"));
        }
        println!("c_test.c with {}: PASS", include.display());
    }
    Ok(())
}

/// Runs the tests of plyvel with our module; `Some` with the reason if they cannot run.
fn plyvel(workspace: &Workspace, directory: &Path) -> Result<Option<String>, String> {
    let environment = setup::python(workspace)
        .and_then(|()| Environment::of_tests(workspace, "--profile dev"))
        .map_err(|why| format!("the tests of plyvel: {why}"));
    let environment = match environment {
        Ok(environment) => environment,
        Err(why) => return Ok(Some(why)),
    };
    let tree = match sources::unpacked(workspace, &PLYVEL, directory)? {
        Ok(tree) => tree,
        Err(why) => return Ok(Some(why)),
    };
    let package = format!("./{}", python::PACKAGE);
    workspace::run(environment.call("pip").args(["install", "--quiet", &package]))?;
    // The module under the name that the tests import, and the tests without plyvel's own package beside them.
    let place = directory.join("plyvel");
    empty(&place)?;
    let alias = "import sys\n\nimport forrest.plyvel\n\nsys.modules[\"plyvel\"] = forrest.plyvel\n";
    write(&place.join("plyvel.py"), alias.as_bytes())?;
    fs::copy(tree.join("test/test_plyvel.py"), place.join("test_plyvel.py"))
        .map_err(|error| format!("{}: {error}", tree.display()))?;
    let python = environment.call("python");
    // Root may write where others may not, unless it gives that right up; one test needs it.
    let root = workspace::capture(workspace.command("id").arg("-u"))?.0.trim() == "0";
    let mut tests = if root { workspace.command("setpriv") } else { environment.call("python") };
    if root {
        if !setup::on_path("setpriv") {
            return Ok(Some("the tests of plyvel: this is root, and there is no setpriv".to_owned()));
        }
        tests.args(["--bounding-set", "-dac_override,-dac_read_search"]).arg(python.get_program());
    }
    tests.args(python::PYTEST).args(["--rootdir", ".", "test_plyvel.py"]);
    for (name, why) in PLYVEL_LEFT_OUT {
        println!("left out: {name}: {why}");
        tests.arg(format!("--deselect=test_plyvel.py::{name}"));
    }
    tests.current_dir(&place).env("PYTHONDONTWRITEBYTECODE", "1").env("PYTHONPATH", &place);
    println!("$ {}", workspace::line(&tests));
    let (text, status) = workspace::capture(&mut tests)?;
    println!("{text}");
    if !status.success() || !text.contains(&format!("{PLYVEL_PASS} passed")) || text.contains("skipped") {
        return Err(format!("of the tests of plyvel, {PLYVEL_PASS} must pass"));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_pinned() {
        for Source { url, sha256, directory, .. } in [LEVELDB, PLYVEL] {
            let (name, version) = directory.rsplit_once('-').expect("a name and a version");
            assert!(url.contains(name) && url.contains(version) && url.starts_with("https://"), "{url}");
            assert!(sha256.len() == 64 && sha256.bytes().all(|digit| digit.is_ascii_hexdigit()), "{sha256}");
        }
    }
}

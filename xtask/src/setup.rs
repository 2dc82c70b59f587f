//! Getting what a step needs: components and targets of the toolchain, Debian packages.
//!
//! Each function returns at once if the requirement is present, or installs it if that is allowed. Otherwise it fails
//! with the reason, and the step is skipped with that reason.

use std::fs::File;
use std::path::PathBuf;

use crate::files;
use crate::workspace::{self, Workspace};

/// A cargo subcommand that is a component of the toolchain, such as `fmt` of `rustfmt`.
pub(crate) fn subcommand(workspace: &Workspace, name: &str, component: &str) -> Result<(), String> {
    if workspace::succeeds(&mut workspace.cargo(&[name, "--version"])) {
        return Ok(());
    }
    rustup(workspace, &["component", "add", component])
        .map_err(|why| format!("the component {component} is missing: {why}"))
}

/// The source of the standard library.
pub(crate) fn rust_source(workspace: &Workspace) -> Result<(), String> {
    let library = sysroot(workspace)?.join("lib/rustlib/src/rust/library/Cargo.toml");
    if library.exists() {
        return Ok(());
    }
    rustup(workspace, &["component", "add", "rust-src"])
        .map_err(|why| format!("the component rust-src is missing: {why}"))
}

/// The standard library for another target.
pub(crate) fn target(workspace: &Workspace, triple: &str) -> Result<(), String> {
    if sysroot(workspace)?.join("lib/rustlib").join(triple).join("lib").exists() {
        return Ok(());
    }
    rustup(workspace, &["target", "add", triple])
        .map_err(|why| format!("the target {triple} is missing: {why}"))
}

/// The target that the toolchain itself runs on, such as `x86_64-unknown-linux-gnu`.
pub(crate) fn host(workspace: &Workspace) -> Result<String, String> {
    let (text, status) = workspace::capture(workspace.command("rustc").arg("-vV"))?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.filter(|_| status.success()).map(str::to_owned).ok_or_else(|| "rustc -vV prints no host".to_owned())
}

/// What the compiler has sanitizers for, of what a developer sits at.
pub(crate) const SANITIZED: &[&str] =
    &["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "x86_64-apple-darwin", "aarch64-apple-darwin"];

fn sysroot(workspace: &Workspace) -> Result<PathBuf, String> {
    let (text, status) = workspace::capture(workspace.command("rustc").args(["--print", "sysroot"]))?;
    if !status.success() {
        return Err("rustc prints no sysroot".to_owned());
    }
    Ok(text.trim().into())
}

fn rustup(workspace: &Workspace, arguments: &[&str]) -> Result<(), String> {
    if !on_path("rustup") {
        return Err("there is no rustup to add it".to_owned());
    }
    let _lock = installing(workspace)?;
    workspace::run(workspace.command("rustup").args(arguments))
}

/// Two steps may run at once, and what they install by is for one caller at a time. The lock ends with the file.
fn installing(workspace: &Workspace) -> Result<File, String> {
    let path = workspace.target.join("installing.lock");
    files::parent(&path)?;
    let locked = File::create(&path).and_then(|file| file.lock().map(|()| file));
    locked.map_err(|error| format!("{}: {error}", path.display()))
}

/// Whether a program is found on the path.
pub(crate) fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// A C compiler for programs of Linux, where this is one: the kernel home's engine is in C.
pub(crate) fn compiler(workspace: &Workspace) -> Result<(), String> {
    if !cfg!(target_os = "linux") {
        return Err("the engine's user-space build is for Linux".to_owned());
    }
    if on_path("gcc") { Ok(()) } else { packages(workspace, &["gcc", "libc6-dev"]) }
}

/// A C++ compiler: programs in C++ call the C library.
pub(crate) fn cpp(workspace: &Workspace) -> Result<(), String> {
    if on_path("c++") { Ok(()) } else { packages(workspace, &["g++"]) }
}

/// A C++ compiler and the libraries that kvbench's peers in C++ are made with; `kvbench doctor` names the same
/// packages.
pub(crate) fn peers(workspace: &Workspace) -> Result<(), String> {
    if !cfg!(target_os = "linux") {
        return Err("the packages are those of Debian".to_owned());
    }
    const HEADERS: &[&str] = &[
        "absl/container/btree_map.h",
        "boost/unordered/unordered_flat_map.hpp",
        "Judy.h",
        "libcuckoo",
        "tbb",
        "tsl/robin_map.h",
    ];
    let there = |header: &&str| std::path::Path::new("/usr/include").join(header).exists();
    if on_path("g++") && on_path("pkg-config") && HEADERS.iter().all(there) {
        return Ok(());
    }
    packages(
        workspace,
        &[
            "g++",
            "pkg-config",
            "libabsl-dev",
            "libboost1.81-dev",
            "libcuckoo-dev",
            "libjudy-dev",
            "libtbb-dev",
            "robin-map-dev",
        ],
    )
}

/// valgrind: kvbench's simulated processor, and what watches the C library.
pub(crate) fn valgrind(workspace: &Workspace) -> Result<(), String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err("valgrind is used on Linux on x86-64".to_owned());
    }
    if on_path("valgrind") { Ok(()) } else { packages(workspace, &["valgrind"]) }
}

/// The programs of other stores, whose dumps the command line reads and writes.
pub(crate) fn other_stores(workspace: &Workspace) -> Result<(), String> {
    if ["ldb", "mdb_dump", "mdb_load"].iter().all(|program| on_path(program)) {
        return Ok(());
    }
    packages(workspace, &["lmdb-utils", "rocksdb-tools"])
}

/// Python 3.11 or newer, and what makes environments of it.
pub(crate) fn python(workspace: &Workspace) -> Result<(), String> {
    if !cfg!(target_os = "linux") {
        return Err("the package is for Linux".to_owned());
    }
    let is_there = || {
        let asks = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))";
        workspace::succeeds(workspace.command("python3").args(["-c", asks]))
    };
    if !is_there() {
        packages(workspace, &["python3", "python3-venv"])?;
    }
    if is_there() { Ok(()) } else { Err("python3 is older than 3.11, or has no venv".to_owned()) }
}

/// Installs the packages of those programs that are missing.
pub(crate) fn programs(workspace: &Workspace, programs: &[(&str, &str)]) -> Result<(), String> {
    let missing = programs.iter().filter(|(program, _)| !on_path(program));
    let missing: Vec<&str> = missing.map(|(_, package)| *package).collect();
    if missing.is_empty() { Ok(()) } else { packages(workspace, &missing) }
}

/// Debian packages, by apt-get.
pub(crate) fn packages(workspace: &Workspace, names: &[&str]) -> Result<(), String> {
    let told = format!("the packages {} are missing", names.join(", "));
    if !on_path("apt-get") {
        return Err(format!("{told}, and there is no apt-get to install them"));
    }
    let install: Vec<&str> =
        ["install", "-y", "--no-install-recommends"].into_iter().chain(names.iter().copied()).collect();
    // The lists of a fresh machine are empty or stale, and fetching them is slow: only when it has to be.
    apt(workspace, &install)
        .or_else(|_| package_lists(workspace).and_then(|()| apt(workspace, &install)))
        .map_err(|why| format!("{told}: {why}; as root: apt-get install {}", names.join(" ")))
}

/// Fetches what apt-get knows of packages anew.
pub(crate) fn package_lists(workspace: &Workspace) -> Result<(), String> {
    apt(workspace, &["update"])
}

/// A call of apt-get that needs root.
fn apt(workspace: &Workspace, arguments: &[&str]) -> Result<(), String> {
    let root = workspace::capture(workspace.command("id").arg("-u"))?.0.trim() == "0";
    // -n: never asks for a password.
    if !root && !workspace::succeeds(workspace.command("sudo").args(["-n", "true"])) {
        return Err("this is not root, and no sudo that asks no password".to_owned());
    }
    let mut command = workspace.command(if root { "env" } else { "sudo" });
    if !root {
        command.args(["-n", "env"]);
    }
    command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "-q"]).args(arguments);
    let _lock = installing(workspace)?;
    workspace::run(&mut command)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It could not be made where nothing had been built.
    #[test]
    fn the_lock_is_made_in_a_directory_that_is_not_there() {
        let mut workspace = Workspace::find().expect("this test runs in it");
        workspace.target = workspace.target.join("tmp/the_lock_is_made/target");
        files::remove(&workspace.target).expect("nothing is left of it");
        let held = installing(&workspace).expect("it is made");
        let other = File::open(workspace.target.join("installing.lock")).expect("it is there");
        assert!(other.try_lock().is_err(), "it is held");
        drop(held);
        assert!(other.try_lock().is_ok());
    }
}

//! Linux on x86-64 and AArch64: building for both processors, and running what was built for the other one.
//!
//! For users, Zig links: for an old C library, and for the other processor without a toolchain for it. Its linker is
//! called by maturin, which leaves out the options that Zig does not know. Both come from Python's registry, by
//! versions and hashes, to an environment below the target directory. QEMU's user-mode emulation runs programs for the
//! other processor. Those of Debian, and their libraries, apt-get downloads to a directory. Nothing is installed to the
//! system.
//!
//! maturin builds the wheels itself, by the same means.

use std::fs;
use std::path::{Path, PathBuf};

use crate::python::Environment;
use crate::workspace::{self, Workspace};
use crate::{files, foreign, setup};

/// A processor that packages are made for.
pub(crate) struct Processor {
    /// As Rust, Zig, QEMU and wheels call it.
    pub(crate) name: &'static str,
    /// As Debian calls it.
    pub(crate) debian: &'static str,
}

pub(crate) const PROCESSORS: &[Processor] = &[Processor { name: "x86_64", debian: "amd64" }, AARCH64];
pub(crate) const AARCH64: Processor = Processor { name: "aarch64", debian: "arm64" };

/// The version of the C library that is linked for: that of manylinux2014, which is older than that of any system with
/// Node 18 or Java 17.
pub(crate) const GLIBC: &str = "2.17";
/// The options of the emulator: all instruction sets; and a limit of addresses. The emulator keeps a record of each
/// page that was ever reserved, and so would take all memory for stores that reserve generously. It takes 1.2 GiB with
/// this limit.
const EMULATION: &[&str] = &["-cpu", "max", "-R", "64G"];

impl Processor {
    /// Whether this machine has it, and runs Linux.
    pub(crate) fn is_here(&self) -> bool {
        cfg!(target_os = "linux") && std::env::consts::ARCH == self.name
    }

    pub(crate) fn triple(&self) -> String {
        format!("{}-unknown-linux-gnu", self.name)
    }

    /// The variable by which cargo gets the linker.
    fn linker(&self) -> String {
        format!("CARGO_TARGET_{}_LINKER", self.triple().to_uppercase().replace('-', "_"))
    }
}

/// Zig and maturin.
pub(crate) fn zig(workspace: &Workspace) -> Result<Environment<'_>, String> {
    setup::python(workspace)?;
    Environment::make(workspace, "wheels-tools", "crates/forrest-py/wheels.txt", "")
}

/// Builds the shared libraries of a package for users, one for each of the processors, optimized as a whole and without
/// symbols.
pub(crate) fn libraries(
    workspace: &Workspace,
    zig: &Environment<'_>,
    package: &str,
) -> Result<Vec<PathBuf>, String> {
    // In one call: what runs while cargo builds is built once, and the last steps, of one thread each, run together.
    let mut cargo = workspace.cargo(&["build", "--locked", "--profile", "dist", "--package", package]);
    // What is only for people who debug is left out by the linker, as no strip knows both processors.
    cargo.env("CARGO_PROFILE_DIST_STRIP", "symbols");
    let mut libraries = Vec::new();
    for processor in PROCESSORS {
        let (name, triple) = (processor.name, processor.triple());
        setup::target(workspace, &triple)?;
        let linker = workspace.target.join("linkers").join(format!("{name}.sh"));
        let bin = zig.bin.display();
        let call = format!(
            "#!/bin/sh\nPATH='{bin}':\"$PATH\" exec maturin zig cc -- -target {name}-linux-gnu.{GLIBC} \"$@\"\n"
        );
        files::script(&linker, &call)?;
        cargo.args(["--target", &triple]).env(processor.linker(), &linker);
        let library = format!("lib{}.so", package.replace('-', "_"));
        libraries.push(workspace.target.join(triple).join("dist").join(library));
    }
    workspace::run(&mut cargo)?;
    Ok(libraries)
}

/// Builds the shared library of a package for this machine, which may be any that Rust knows, and copies it to a path.
/// It is stripped where there is a program for it.
pub(crate) fn library_here(
    workspace: &Workspace,
    profile: &str,
    package: &str,
    to: &Path,
) -> Result<(), String> {
    let built = foreign::packages(workspace, profile, &[package])?;
    let name = format!(
        "{}{}{}",
        std::env::consts::DLL_PREFIX,
        package.replace('-', "_"),
        std::env::consts::DLL_SUFFIX
    );
    files::copy(&built.join(name), to)?;
    if !cfg!(target_os = "linux") || !setup::on_path("strip") {
        println!("{}: not stripped", to.display());
        return Ok(());
    }
    workspace::run(workspace.command("strip").arg("--strip-unneeded").arg(to))
}

/// Prints the size of a library, and fails if users would get more bytes than these.
pub(crate) fn at_most(bytes: u64, library: &Path) -> Result<(), String> {
    let size = fs::metadata(library).map_err(|error| format!("{}: {error}", library.display()))?.len();
    println!("{}: {size} bytes", library.display());
    if size > bytes { Err(format!("at most {bytes} bytes are allowed")) } else { Ok(()) }
}

/// The words before a program for a processor that run it under emulation, with the libraries below `root`.
pub(crate) fn emulation(processor: &Processor, root: &Path) -> Result<Vec<String>, String> {
    let programs = [format!("qemu-{}-static", processor.name), format!("qemu-{}", processor.name)];
    let emulator = programs.into_iter().find(|name| setup::on_path(name));
    let emulator = emulator.ok_or("there is no emulator; apt-get install qemu-user-static")?;
    let options = EMULATION.iter().map(|option| (*option).to_owned());
    let root = ["-L".to_owned(), root.display().to_string()];
    Ok([emulator].into_iter().chain(options).chain(root).collect())
}

/// Unpacks packages of Debian for a processor in a directory, unless they are there. Others on which these depend are
/// to be among them. apt-get has its lists beside the directory.
pub(crate) fn debian(
    workspace: &Workspace,
    processor: &Processor,
    packages: &[&str],
    root: &Path,
) -> Result<(), String> {
    let (list, unpacked) = (packages.join("\n"), root.with_extension("packages.txt"));
    if root.exists() && fs::read_to_string(&unpacked).is_ok_and(|there| there == list) {
        return Ok(());
    }
    if !setup::on_path("apt-get") || !setup::on_path("dpkg-deb") {
        return Err("what it needs are Debian's packages, and there is no apt-get or dpkg-deb".to_owned());
    }
    let apt = root.with_extension("apt");
    files::empty(&apt)?;
    files::write(&apt.join("status"), b"")?;
    for directory in ["lists/partial", "cache/archives/partial", "packages"] {
        files::empty(&apt.join(directory))?;
    }
    let call = |arguments: &[&str]| {
        let mut command = workspace.command("apt-get");
        let place = |option: &str, name: &str| format!("{option}={}", apt.join(name).display());
        command.arg("-qq").arg(format!("-oAPT::Architecture={}", processor.debian));
        command.arg(format!("-oAPT::Architectures={}", processor.debian));
        command.arg(place("-oDir::State", "")).arg(place("-oDir::State::status", "status"));
        command.arg(place("-oDir::Cache", "cache")).args(arguments).current_dir(apt.join("packages"));
        workspace::run(&mut command)
    };
    call(&["update"])?;
    call(&[&["download"], packages].concat())?;
    // Renamed at the end, so that a failure is not mistaken for a whole root.
    let unfinished = root.with_extension("unfinished");
    files::empty(&unfinished)?;
    for package in files::entries(&apt.join("packages"))? {
        workspace::run(workspace.command("dpkg-deb").arg("-x").arg(package).arg(&unfinished))?;
    }
    lead_inside(&unfinished, root)?;
    drop(fs::remove_dir_all(root));
    fs::rename(&unfinished, root).map_err(|error| format!("{}: {error}", root.display()))?;
    files::write(&unpacked, list.as_bytes())
}

/// Makes the absolute links in a directory lead to what is below `root`, where they would lead to this machine's files.
fn lead_inside(directory: &Path, root: &Path) -> Result<(), String> {
    for path in files::entries(directory)? {
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        if path.is_symlink() {
            let to = fs::read_link(&path).map_err(failed)?;
            if let Ok(inside) = to.strip_prefix("/") {
                files::link(root.join(inside), &path)?;
            }
        } else if path.is_dir() {
            lead_inside(&path, root)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_gets_the_linker_of_each_processor() {
        assert_eq!(PROCESSORS[0].linker(), "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER");
        assert_eq!(PROCESSORS[1].linker(), "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER");
    }

    #[test]
    fn links_of_a_root_stay_in_it() {
        let workspace = Workspace::find().expect("this test runs in it");
        let directory = workspace.target.join("tmp/links_of_a_root_stay_in_it");
        files::empty(&directory.join("etc")).expect("it is made");
        files::link("/etc/one", &directory.join("etc/absolute")).expect("it is made");
        files::link("one", &directory.join("etc/relative")).expect("it is made");
        lead_inside(&directory, Path::new("/root")).expect("links are made anew");
        let leads = |name: &str| fs::read_link(directory.join("etc").join(name)).expect("it is a link");
        assert_eq!(leads("absolute"), Path::new("/root/etc/one"));
        assert_eq!(leads("relative"), Path::new("one"));
    }
}

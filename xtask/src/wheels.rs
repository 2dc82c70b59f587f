//! `cargo xtask wheels`: the Python package as wheels for Linux on x86-64 and AArch64, each tested.
//!
//! maturin builds them with Zig as the linker, which links for the C library of manylinux2014 (glibc 2.17) and for
//! another processor without a toolchain for it. maturin also checks that a wheel needs nothing that the tag does not
//! allow. The tests run on the wheel itself: for the other processor under QEMU's user-mode emulation, with Debian's
//! Python for it, which apt-get downloads to a directory; nothing is installed to the system.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::python::{Environment, PACKAGE, PYTEST, TESTS};
use crate::workspace::{self, Workspace};
use crate::{Failure, files, setup};

/// What it does.
pub(crate) const DOES: &str = "the Python package as wheels for x86-64 and AArch64, tested";

/// The tag of the oldest Linux that the wheels run on.
const TAG: &str = "manylinux2014";

/// A processor that wheels are made for.
struct Processor {
    /// As wheels, cargo and QEMU call it.
    name: &'static str,
    /// As Debian calls it.
    debian: &'static str,
}

const PROCESSORS: &[Processor] =
    &[Processor { name: "x86_64", debian: "amd64" }, Processor { name: "aarch64", debian: "arm64" }];

/// Debian's Python 3.11 with the libraries that it, NumPy and the tests need.
const DEBIAN: &[&str] = &[
    "libbz2-1.0",
    "libc6",
    "libcrypt1",
    "libexpat1",
    "libffi8",
    "libgcc-s1",
    "liblzma5",
    "libpython3.11-minimal",
    "libpython3.11-stdlib",
    "libssl3",
    "libstdc++6",
    "libuuid1",
    "python3.11-minimal",
    "zlib1g",
];

/// The command.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    let directory = match arguments {
        // pip leaves wheels of its own builds in target/wheels.
        [] => workspace.target.join("python-wheels"),
        [directory] => std::path::absolute(directory)
            .map_err(|error| Failure::Broken(format!("{directory}: {error}")))?,
        [_, one, ..] => return Err(Failure::Usage(format!("unexpected argument {one:?}"))),
    };
    make(workspace, &directory).map_err(Failure::Broken)
}

fn make(workspace: &Workspace, directory: &Path) -> Result<(), String> {
    setup::python(workspace)?;
    let host = setup::host(workspace)?;
    let tools = Environment::make(workspace, "wheels-tools", "crates/forrest-py/wheels.txt", "")?;
    let tests = Environment::of_tests(workspace, "")?;
    let mut lines = Vec::new();
    for processor in PROCESSORS {
        let wheel = build(workspace, &tools, processor, directory)?;
        let emulated = !host.starts_with(processor.name);
        let site = workspace.target.join("wheels-tests").join(processor.name);
        // The wheel alone: what the tests are run with is in the environment, or in a directory beside it.
        files::empty(&site)?;
        let mut unpack = tools.call("python");
        workspace::run(unpack.args(["-m", "zipfile", "-e"]).arg(&wheel).arg(&site))?;
        let python =
            if emulated { emulator(workspace, &tests, processor, &site) } else { Ok(tests.call("python")) };
        let tested = match python {
            Ok(mut python) => {
                let path = std::env::join_paths([&site, &site.with_extension("packages")]);
                python.env("PYTHONPATH", path.map_err(|error| error.to_string())?).args(PYTEST);
                // The commands of the guide build the package anew, for this machine.
                python.args(["-k", "not commands_of_the_guide"]);
                workspace::run(python.current_dir(workspace.root.join(PACKAGE)))?;
                "tested".to_owned()
            }
            Err(why) => format!("not tested: {why}"),
        };
        lines.push(format!("made {}, {tested}", wheel.display()));
    }
    lines.iter().for_each(|line| println!("{line}"));
    Ok(())
}

/// Builds a wheel.
fn build(
    workspace: &Workspace,
    tools: &Environment<'_>,
    processor: &Processor,
    directory: &Path,
) -> Result<PathBuf, String> {
    let triple = format!("{}-unknown-linux-gnu", processor.name);
    setup::target(workspace, &triple)?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([tools.bin.clone()].into_iter().chain(std::env::split_paths(&path)));
    let mut maturin = tools.call("maturin");
    maturin
        .args(["build", "--release", "--zig", "--compatibility", TAG, "--target", &triple, "--manifest-path"])
        .arg(format!("{PACKAGE}/Cargo.toml"))
        .arg("--out")
        .arg(directory)
        // It looks there for the module ziglang.
        .env("PATH", path.map_err(|error| error.to_string())?);
    workspace::run(&mut maturin)?;
    let (version, name) = (env!("CARGO_PKG_VERSION"), processor.name);
    let wheel = format!("forrest_db-{version}-cp311-abi3-{TAG}_{name}.manylinux_2_17_{name}.whl");
    let wheel = directory.join(wheel);
    if wheel.exists() { Ok(wheel) } else { Err(format!("maturin has not made {}", wheel.display())) }
}

/// Python for another processor, under emulation, with what the tests are run with in a directory beside `site`.
fn emulator(
    workspace: &Workspace,
    tests: &Environment<'_>,
    processor: &Processor,
    site: &Path,
) -> Result<Command, String> {
    let programs = [format!("qemu-{}-static", processor.name), format!("qemu-{}", processor.name)];
    let program = programs.iter().find(|name| setup::on_path(name));
    let program = program.ok_or("there is no emulator; apt-get install qemu-user-static")?;
    let root = site.with_extension("root");
    let python = root.join("usr/bin/python3.11");
    if !python.exists() {
        unpack(workspace, processor, &root)?;
    }
    let packages = site.with_extension("packages");
    let list = workspace.root.join(TESTS);
    if !packages.join("pytest").exists() {
        let platforms =
            ["17", "28"].map(|minor| format!("--platform=manylinux_2_{minor}_{}", processor.name));
        let mut pip = workspace.command(tests.bin.join("pip"));
        pip.args(["install", "--quiet", "--require-hashes", "--only-binary=:all:", "--python-version=3.11"])
            .args(platforms)
            .arg("--target")
            .arg(&packages)
            .arg("-r")
            .arg(list);
        workspace::run(&mut pip)?;
    }
    let mut command = workspace.command(program);
    // All instruction sets, and a limit of addresses, as in the step portable.
    command.args(["-cpu", "max", "-R", "64G", "-L"]).arg(root).arg(python);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(command)
}

/// Downloads Debian's packages for another processor, and unpacks them to a directory. apt-get has its lists beside it.
fn unpack(workspace: &Workspace, processor: &Processor, root: &Path) -> Result<(), String> {
    if !setup::on_path("apt-get") || !setup::on_path("dpkg-deb") {
        return Err(
            "Python for it comes from Debian's packages, and there is no apt-get or dpkg-deb".to_owned()
        );
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
    call(&[&["download"], DEBIAN].concat())?;
    // Renamed at the end, so that a failure is not mistaken for a whole root.
    let unfinished = root.with_extension("unfinished");
    files::empty(&unfinished)?;
    for entry in std::fs::read_dir(apt.join("packages")).map_err(|error| error.to_string())? {
        let path = entry.map_err(|error| error.to_string())?.path();
        workspace::run(workspace.command("dpkg-deb").arg("-x").arg(path).arg(&unfinished))?;
    }
    std::fs::rename(&unfinished, root).map_err(|error| format!("{}: {error}", root.display()))
}

//! `cargo xtask wheels`: the Python package as wheels for Linux on x86-64 and AArch64, each tested.
//!
//! maturin builds them with Zig as the linker (`processors`), and checks that a wheel needs nothing that the tag does
//! not allow. The tests run on the wheel itself: for the other processor under emulation, with Debian's Python for it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::processors::{self, PROCESSORS, Processor};
use crate::python::{Environment, PACKAGE, PYTEST, TESTS};
use crate::workspace::{self, Workspace};
use crate::{Failure, files, setup};

/// What it does.
pub(crate) const DOES: &str = "the Python package as wheels for x86-64 and AArch64, tested";

/// The tag of the oldest Linux that the wheels run on.
const TAG: &str = "manylinux2014";

/// The library in a wheel.
const LIBRARY: &str = "forrest/_forrest.abi3.so";

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

/// The functions of libgcc_s that Rust calls, by the versions that they have there, on both processors.
const UNWINDER: &[(&str, &[&str])] = &[
    (
        "GCC_3.0",
        &[
            "_Unwind_DeleteException",
            "_Unwind_GetDataRelBase",
            "_Unwind_GetGR",
            "_Unwind_GetIP",
            "_Unwind_GetLanguageSpecificData",
            "_Unwind_GetRegionStart",
            "_Unwind_GetTextRelBase",
            "_Unwind_RaiseException",
            "_Unwind_Resume",
            "_Unwind_SetGR",
            "_Unwind_SetIP",
        ],
    ),
    ("GCC_3.3", &["_Unwind_Backtrace", "_Unwind_FindEnclosingFunction", "_Unwind_GetCFA"]),
    ("GCC_4.2.0", &["_Unwind_GetIPInfo"]),
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
    let tools = processors::zig(workspace)?;
    let tests = Environment::of_tests(workspace, "")?;
    setup::programs(workspace, &[("nm", "binutils")])?;
    let mut lines = Vec::new();
    for processor in PROCESSORS {
        let wheel = build(workspace, &tools, processor, directory)?;
        let site = workspace.target.join("wheels-tests").join(processor.name);
        // The wheel alone: what the tests are run with is in the environment, or in a directory beside it.
        files::empty(&site)?;
        let mut unpack = tools.call("python");
        workspace::run(unpack.args(["-m", "zipfile", "-e"]).arg(&wheel).arg(&site))?;
        check_unwinder(workspace, &site.join(LIBRARY))?;
        let python = if processor.is_here() {
            Ok(tests.call("python"))
        } else {
            emulator(workspace, &tests, processor, &site)
        };
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
    let triple = processor.triple();
    setup::target(workspace, &triple)?;
    let unwinder = unwinder(workspace, tools, processor)?;
    let mut maturin = maturin(tools)?;
    maturin
        .args(["build", "--release", "--zig", "--compatibility", TAG, "--target", &triple, "--manifest-path"])
        .arg(format!("{PACKAGE}/Cargo.toml"))
        .arg("--out")
        .arg(directory)
        .arg("--")
        .arg(format!("-Clink-arg={}", unwinder.display()));
    workspace::run(&mut maturin)?;
    let (version, name) = (env!("CARGO_PKG_VERSION"), processor.name);
    let wheel = format!("forrest_db-{version}-cp311-abi3-{TAG}_{name}.manylinux_2_17_{name}.whl");
    let wheel = directory.join(wheel);
    if wheel.exists() { Ok(wheel) } else { Err(format!("maturin has not made {}", wheel.display())) }
}

/// A call of maturin, which finds Zig.
fn maturin(tools: &Environment<'_>) -> Result<Command, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([tools.bin.clone()].into_iter().chain(std::env::split_paths(&path)));
    let mut maturin = tools.call("maturin");
    // It looks there for the module ziglang.
    maturin.env("PATH", path.map_err(|error| error.to_string())?);
    Ok(maturin)
}

/// Makes what a library is linked with so that it uses the system's libgcc_s. Zig would link an unwinder of its own
/// into it. The C library, which ends a thread of Python within a call when the interpreter ends, unwinds by libgcc_s,
/// and neither of the two knows the data of the other: the process crashed.
fn unwinder(workspace: &Workspace, zig: &Environment<'_>, processor: &Processor) -> Result<PathBuf, String> {
    let directory = workspace.target.join("linkers").join(processor.name);
    let [source, versions, library] =
        ["unwinder.c", "unwinder.map", "libgcc_s.so.1"].map(|name| directory.join(name));
    let names = UNWINDER.iter().flat_map(|(_, names)| *names);
    let functions: String = names.map(|name| format!("void {name}(void) {{}}\n")).collect();
    files::write(&source, functions.as_bytes())?;
    let map: String =
        UNWINDER.iter().map(|(version, names)| format!("{version} {{ {}; }};\n", names.join("; "))).collect();
    files::write(&versions, map.as_bytes())?;
    let target = format!("{}-linux-gnu.{}", processor.name, processors::GLIBC);
    let mut cc = maturin(zig)?;
    cc.args(["zig", "cc", "--", "-target", &target, "-shared", "-nostdlib", "-Wl,-soname,libgcc_s.so.1"]);
    cc.arg(format!("-Wl,--version-script={}", versions.display())).arg("-o").arg(&library).arg(&source);
    workspace::run(&mut cc)?;
    Ok(library)
}

/// Fails if a library has a part of Zig's unwinder: Rust may come to call a function that is not in [`UNWINDER`].
fn check_unwinder(workspace: &Workspace, library: &Path) -> Result<(), String> {
    let (text, status) = workspace::capture(workspace.command("nm").arg("-D").arg(library))?;
    let why = if status.success() { unwinder_of_its_own(&text) } else { Some(format!("nm: {text}")) };
    why.map_or(Ok(()), |why| Err(format!("{}: {why}", library.display())))
}

/// Why a library seems to have an unwinder, by the output of nm. What is linked in is mostly without names, so two
/// functions must come from the system: one of each of the two files of LLVM's unwinder that have functions for Rust.
fn unwinder_of_its_own(symbols: &str) -> Option<String> {
    let functions = || symbols.lines().filter(|line| line.contains(" _Unwind_"));
    let defined = functions().find(|line| !line.contains(" U _Unwind_")).map(str::to_owned);
    let missing = ["_Unwind_RaiseException", "_Unwind_Backtrace"].into_iter().find(|name| {
        let used = format!(" U {name}@GCC_");
        !functions().any(|line| line.contains(&used))
    });
    defined.or_else(|| missing.map(|name| format!("it does not take {name} from libgcc_s.so.1")))
}

/// Python for another processor, under emulation, with what the tests are run with in a directory beside `site`.
fn emulator(
    workspace: &Workspace,
    tests: &Environment<'_>,
    processor: &Processor,
    site: &Path,
) -> Result<Command, String> {
    let root = site.with_extension("root");
    let emulation = processors::emulation(processor, &root)?;
    processors::debian(workspace, processor, DEBIAN, &root)?;
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
    let mut command = workspace.command(&emulation[0]);
    command.args(&emulation[1..]).arg(root.join("usr/bin/python3.11"));
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unwinder_in_a_library_is_found() {
        let taken = "                 U _Unwind_Backtrace@GCC_3.3\n                 U _Unwind_RaiseException@GCC_3.0\n";
        assert_eq!(unwinder_of_its_own(taken), None);
        let defined = format!("{taken}00000000000f905c T _Unwind_ForcedUnwind\n");
        assert!(unwinder_of_its_own(&defined).is_some_and(|why| why.contains("ForcedUnwind")));
        let hidden = taken.replace("_Unwind_Backtrace@GCC_3.3", "malloc@GLIBC_2.17");
        assert!(unwinder_of_its_own(&hidden).is_some_and(|why| why.contains("_Unwind_Backtrace")));
        assert!(unwinder_of_its_own("").is_some(), "a whole one, without names");
    }
}

//! The folder below the target directory in which modules and checks are built and packed for a machine.
//!
//! It holds the kernel, a copy of `kernel/llds` in which everything is built, the machine's archive, and the console
//! output of each machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::archive::Archive;
use super::boots::{Boot, NAME};
use super::client::Client;
use super::kernel::{self, Kernel};
use super::machine::{self, Machine, Processors};
use super::source;
use super::suite::{self, Suite};
use crate::workspace::{self, Workspace};
use crate::{required, setup};

/// Required programs, and their packages.
const PROGRAMS: &[(&str, &str)] =
    &[("qemu-system-x86_64", "qemu-system-x86"), ("make", "make"), ("sparse", "sparse")];
/// Programs that both machines require.
const ANY_PROGRAMS: &[(&str, &str)] = &[("patch", "patch")];
/// Required libraries, by a file: one for the kernel's own build programs, one that checks are linked with.
const LIBRARIES: &[(&str, &str)] = &[
    ("/usr/lib/x86_64-linux-gnu/libelf.so.1", "libelf1"),
    ("/usr/lib/x86_64-linux-gnu/libc.a", "libc6-dev"),
];

/// The busybox applets that the machine uses.
const APPLETS: &[&str] = &[
    "sh", "mount", "uname", "poweroff", "cat", "chmod", "chown", "cmp", "cp", "grep", "head", "id", "insmod",
    "mkdir", "rmmod", "stat", "su", "tail", "tr",
];

/// The scripts with checks, and what they share.
const SCRIPTS: &[&str] = &["client", "huge", "checks.sh"];

/// Time limit of a machine, from power on to power off. It takes 10 to 60 seconds, or minutes on a busy host.
const LIMIT: Duration = Duration::from_secs(1200);

/// What to do about a warning of a compiler or checker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Warnings {
    Fail,
    /// Mutants may cause warnings.
    Pass,
}

/// Which machine modules are built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Debian's kernel, in a machine of QEMU's.
    Stock,
    /// One that is built here with every checker, as a process.
    Debug,
    /// One that is built here without any, as a process.
    Timed,
    /// The kernel of another suite of Debian's, likewise in a machine of QEMU's.
    Of(&'static Suite),
}

impl Kind {
    fn is_process(self) -> bool {
        matches!(self, Kind::Debug | Kind::Timed)
    }
}

/// The folder.
pub(crate) struct Bench<'a> {
    kind: Kind,
    workspace: &'a Workspace,
    kernel: Kernel,
    /// For programs of the machine; the host has it.
    compiler: String,
    folder: PathBuf,
}

impl<'a> Bench<'a> {
    /// Provides programs, libraries and the kernel. The inner error names the one that is unavailable.
    pub(crate) fn prepare(workspace: &'a Workspace, kind: Kind) -> Result<Result<Bench<'a>, String>, String> {
        for file in required::MODULE {
            required::demand(workspace, file)?;
        }
        let mut folder = workspace.target.join(NAME);
        let stock = match fetch(workspace, &folder, kind) {
            Ok(kernel) => kernel,
            Err(why) => return Ok(Err(why)),
        };
        let compiler = stock.compiler.clone();
        let got = match kind {
            Kind::Stock => Ok(stock),
            Kind::Debug | Kind::Timed => {
                let cache = workspace.target.join(format!("{NAME}-debug/kernel"));
                let (name, flavour) =
                    if kind == Kind::Debug { ("debug", source::CHECKED) } else { ("timed", source::TIMED) };
                folder = workspace.target.join(format!("{NAME}-{name}"));
                let got = source::get(workspace, &cache, stock, flavour)?;
                fs::create_dir_all(&folder).map_err(|error| told(&folder, &error))?;
                got
            }
            Kind::Of(suite) => {
                let cache = workspace.target.join(format!("{NAME}-suites"));
                folder = cache.join(suite.name).join("build");
                let got = suite::get(workspace, &cache, suite)?;
                fs::create_dir_all(&folder).map_err(|error| told(&folder, &error))?;
                got
            }
        };
        let kernel = match got {
            Ok(kernel) => kernel,
            Err(why) => return Ok(Err(why)),
        };
        println!("Linux {}, {}", kernel.release, kernel.compiler);
        let compiler = if kernel.root.is_some() { compiler } else { kernel.compiler.clone() };
        Ok(Ok(Bench { kind, workspace, kernel, compiler, folder }))
    }

    /// Where everything is built.
    pub(crate) fn sources(&self) -> PathBuf {
        self.folder.join("sources")
    }

    /// The file with the console output of a machine.
    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.folder.join(format!("console-{name}.txt"))
    }

    /// Copies the sources as they are now.
    pub(crate) fn copy_sources(&self) -> Result<(), String> {
        match fs::remove_dir_all(self.sources()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(told(&self.sources(), &error));
            }
            _ => {}
        }
        copy(&self.workspace.root.join("kernel/llds"), &self.sources())
    }

    /// Builds the module and the checks from the sources as they are now.
    pub(crate) fn build(&self) -> Result<(), String> {
        self.copy_sources()?;
        self.build_module(Warnings::Fail)?;
        self.build_checks()
    }

    /// Builds the module with the kernel's extra warnings, and for the stock one lets sparse look at every file.
    pub(crate) fn build_module(&self, warnings: Warnings) -> Result<(), String> {
        self.make(&self.sources(), warnings)
    }

    /// Builds the checks, and the module that they need.
    fn build_checks(&self) -> Result<(), String> {
        let tests = self.sources().join("tests");
        self.make(&tests.join("blocker"), Warnings::Fail)?;
        let mut compiler = self.workspace.command(&self.compiler);
        compiler.args(["-O1", "-static", "-pthread", "-Wall", "-Wextra", "-Wno-missing-field-initializers"]);
        compiler.arg("-o").arg(self.folder.join("checks")).args(files(&tests, "c")?);
        // The reader of mappings that the engine's own tests have, with its pauses.
        compiler.arg("-DLLDS_OS_PAUSES").arg(self.sources().join("user/mapped.c"));
        build(&mut compiler, Warnings::Fail)?;
        fs::copy(tests.join("blocker/blocker.ko"), self.folder.join("blocker.ko"))
            .map_err(|error| told(&tests, &error))?;
        Ok(())
    }

    fn make(&self, folder: &Path, warnings: Warnings) -> Result<(), String> {
        let mut make = kernel::make(self.workspace, &self.kernel, folder);
        build(make.arg("modules"), warnings)?;
        // What debuggers want is most of a module, and loading reads all of it each time.
        for module in files(folder, "ko")? {
            workspace::run(self.workspace.command("strip").arg("--strip-debug").arg(module))?;
        }
        Ok(())
    }

    /// Of the kernel.
    pub(crate) fn release(&self) -> &str {
        &self.kernel.release
    }

    /// For programs of the machine.
    pub(crate) fn compiler(&self) -> &str {
        &self.compiler
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes the archive of what was built, and of the client if there is one.
    pub(crate) fn pack(&self, client: Option<&Client>) -> Result<(), String> {
        let read = |path: &Path| fs::read(path).map_err(|error| told(path, &error));
        let sources = self.sources();
        let mut archive = Archive::default();
        for directory in [".", "bin", "dev", "proc", "sys", "tmp"] {
            archive.directory(directory);
        }
        archive.file("bin/busybox", &read(&self.kernel.busybox)?);
        for applet in APPLETS {
            archive.link(&format!("bin/{applet}"), "busybox");
        }
        archive.file("init", &read(&sources.join("tests/init"))?);
        archive.file("checks", &read(&self.folder.join("checks"))?);
        archive.file("llds.ko", &read(&sources.join("llds.ko"))?);
        archive.file("blocker.ko", &read(&self.folder.join("blocker.ko"))?);
        for script in SCRIPTS {
            archive.file(script, &read(&sources.join("tests").join(script))?);
        }
        if let Some(client) = client {
            client.pack(&mut archive);
        }
        archive.file("60-llds.rules", &read(&sources.join("60-llds.rules"))?);
        fs::write(self.archive(), archive.finish()).map_err(|error| told(&self.archive(), &error))
    }

    fn archive(&self) -> PathBuf {
        self.folder.join("archive.cpio")
    }

    /// Those of the machine at hand if they work, else emulated ones.
    pub(crate) fn processors(&self) -> Processors {
        if self.kind.is_process() {
            return Processors::Process;
        }
        match machine::kvm(self.workspace, &self.kernel.image, &self.archive(), self.log("probe")) {
            Ok(()) => Processors::Kvm,
            Err(why) => {
                println!("processors are emulated: {why}");
                Processors::Emulated
            }
        }
    }

    /// Boots, and returns the console output.
    pub(crate) fn boot(&self, boot: &Boot, processors: Processors, more: &str) -> Result<String, String> {
        let parameters = format!("{} {more}", boot.parameters);
        let machine = Machine {
            image: &self.kernel.image,
            archive: &self.archive(),
            processors,
            count: boot.count,
            nodes: boot.nodes,
            gibibytes: boot.gibibytes,
            parameters: parameters.trim_end(),
            log: self.log(boot.name),
            limit: LIMIT,
        };
        machine.run(self.workspace)
    }
}

fn told(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

/// Programs, libraries and the kernel; or what cannot be had.
fn fetch(workspace: &Workspace, folder: &Path, kind: Kind) -> Result<Kernel, String> {
    let host = setup::host(workspace)?;
    if !(host.starts_with("x86_64-") && host.contains("linux")) {
        return Err(format!("the machine is built on Linux for x86-64, not on {host}"));
    }
    let programs = if kind.is_process() { source::PROGRAMS } else { PROGRAMS };
    let programs = ANY_PROGRAMS.iter().chain(programs).filter(|(program, _)| !setup::on_path(program));
    let libraries = LIBRARIES.iter().filter(|(file, _)| !Path::new(file).exists());
    let missing: Vec<&str> = programs.chain(libraries).map(|(_, package)| *package).collect();
    if !missing.is_empty() {
        setup::packages(workspace, &missing)?;
    }
    let kernel = kernel::get(workspace, &folder.join("kernel"))?;
    if !setup::on_path(&kernel.compiler) {
        setup::packages(workspace, &[&kernel.compiler])?;
    }
    Ok(kernel)
}

/// Copies sources, without build products.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::create_dir_all(to).map_err(|error| told(to, &error))?;
    for entry in fs::read_dir(from).map_err(|error| told(from, &error))?.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() {
            copy(&path, &to.join(&name))?;
        } else if is_source(&path) {
            fs::copy(&path, to.join(&name)).map_err(|error| told(&path, &error))?;
        }
    }
    Ok(())
}

fn is_source(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let end = path.extension().unwrap_or_default().to_string_lossy();
    matches!(&*name, "Kbuild" | "init")
        || SCRIPTS.contains(&&*name)
        || (matches!(&*end, "c" | "h" | "rules") && !name.ends_with(".mod.c"))
}

/// The files of a directory that end so, in order.
pub(super) fn files(directory: &Path, end: &str) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(directory).map_err(|error| told(directory, &error))?;
    let mut files: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.extension().is_some_and(|found| found == end));
    files.sort();
    Ok(files)
}

/// Runs a compiler. A warning is an error here, unlike in a user's build of the module.
fn build(command: &mut Command, warnings: Warnings) -> Result<(), String> {
    println!("$ {}", workspace::line(command));
    let (text, status) = workspace::capture(command)?;
    if !status.success() {
        return Err(format!("{status} of: {}\n{text}", workspace::line(command)));
    }
    match text.lines().find(|line| is_warning(line)) {
        Some(_) if warnings == Warnings::Fail => Err(format!("warnings:\n{text}")),
        _ => Ok(()),
    }
}

/// gcc, sparse and modpost each have their own form of warnings.
fn is_warning(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    line.contains("warning:") || line.contains("error:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sources_are_copied() {
        for name in ["device.c", "llds.h", "Kbuild", "tests/init", "60-llds.rules"] {
            assert!(is_source(Path::new(name)), "{name}");
        }
        for name in ["device.o", "llds.ko", "llds.mod.c", ".device.o.cmd", "modules.order", "Module.symvers"]
        {
            assert!(!is_source(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn every_way_to_warn_is_seen() {
        assert!(is_warning("device.c:7:1: warning: unused variable"));
        assert!(is_warning("WARNING: modpost: missing MODULE_LICENSE()"));
        assert!(is_warning("ERROR: modpost: \"x\" undefined!"));
        assert!(!is_warning("Skipping BTF generation for llds.ko due to unavailability of vmlinux"));
    }
}

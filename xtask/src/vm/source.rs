//! A kernel in user mode: Debian's, built from its source as a process (`ARCH=um`). There are two: one with the
//! checkers that no stock kernel has, and one with none of them, whose times can be measured.
//!
//! The source is downloaded and unpacked below the target directory, by version, with the builds beside it. They are
//! rebuilt if the version, the configuration (files of `kernel/llds/tests`) or the compiler changes. Only missing
//! programs are installed. If the source is unavailable, the step is skipped; if it does not build, or cannot be
//! configured as wanted, the step fails.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::kernel::{self, Kernel};
use crate::workspace::{self, Workspace};
use crate::{required, setup};

/// Programs that building a kernel needs, and the packages that have them.
pub(crate) const PROGRAMS: &[(&str, &str)] = &[
    ("make", "make"),
    ("gcc", "gcc"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("xz", "xz-utils"),
];
/// One of the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flavour {
    /// Of its build, beside the source.
    folder: &'static str,
    /// Files of its configuration.
    configs: &'static [&'static str],
    /// For modules of this kernel.
    arguments: &'static [&'static str],
}

/// The one with every checker. UBSAN is for files that ask for it, where the kernel does not ask for all of them.
pub(crate) const CHECKED: Flavour = Flavour {
    folder: "build",
    configs: &[required::PROCESS_CONFIG, required::DEBUG_CONFIG],
    arguments: &["ARCH=um", "UBSAN_SANITIZE=y", "W=1"],
};
/// The one without.
pub(crate) const TIMED: Flavour =
    Flavour { folder: "timed", configs: &[required::PROCESS_CONFIG], arguments: &["ARCH=um"] };

/// The compiler.
const COMPILER: &str = "gcc";
/// What the build was made of, beside it.
const STAMP: &str = "built-of";

/// Builds the kernel, and takes the shell from `stock`. The inner error names the requirement that is unavailable.
pub(crate) fn get(
    workspace: &Workspace,
    cache: &Path,
    stock: Kernel,
    flavour: Flavour,
) -> Result<Result<Kernel, String>, String> {
    let mut wanted = String::new();
    for config in flavour.configs {
        required::demand(workspace, config)?;
        let path = workspace.root.join(config);
        wanted += &fs::read_to_string(&path).map_err(|error| told(&path, &error))?;
    }
    let (root, version) = match tree(workspace, cache, &stock.release)? {
        Ok(found) => found,
        Err(why) => return Ok(Err(why)),
    };
    let folder = root.join(flavour.folder);
    let kernel = Kernel {
        release: format!("{}, of Debian's source {version}, in user mode", short(&stock.release)),
        image: folder.join("linux"),
        headers: folder.clone(),
        compiler: COMPILER.to_owned(),
        busybox: stock.busybox,
        arguments: flavour.arguments.iter().map(|&argument| argument.to_owned()).collect(),
        root: None,
    };
    let (compiler, status) = workspace::capture(workspace.command(COMPILER).arg("--version"))?;
    if !status.success() {
        return Err(format!("{COMPILER} prints no version"));
    }
    let made_of = format!("{version}\n{compiler}\n{wanted}");
    let stamp = folder.join(STAMP);
    if fs::read_to_string(&stamp).is_ok_and(|built| built == made_of) {
        return Ok(Ok(kernel));
    }
    build(workspace, &root, &folder, &wanted)?;
    fs::write(&stamp, made_of).map_err(|error| told(&stamp, &error))?;
    Ok(Ok(kernel))
}

/// The source of a kernel, below a directory for its version, and the version. The inner error names what is
/// unavailable.
pub(super) fn tree(
    workspace: &Workspace,
    cache: &Path,
    release: &str,
) -> Result<Result<(PathBuf, String), String>, String> {
    let package = match package_for(release) {
        Some(package) => package,
        None => return Ok(Err(format!("a kernel of the version {release} has no source"))),
    };
    let found = version(workspace, &package).or_else(|_| {
        setup::package_lists(workspace)?;
        version(workspace, &package)
    });
    let version = match found {
        Ok(version) => version,
        Err(why) => return Ok(Err(why)),
    };
    // A part of the version, such as an epoch, that make takes for a rule's colon.
    let root = cache.join(format!("{package}_{}", version.replace(':', "-")));
    if !root.join("source").exists() {
        if let Err(why) = download(workspace, cache, &package) {
            return Ok(Err(format!("{package} cannot be downloaded: {why}")));
        }
        unpack(workspace, cache, &package, &root)?;
    }
    Ok(Ok((root, version)))
}

/// The package with the source of a stock kernel such as `6.1.0-9-cloud-amd64`.
fn package_for(release: &str) -> Option<String> {
    let mut numbers = release.split(['.', '-']);
    let (major, minor) = (numbers.next()?, numbers.next()?);
    let is_number = |text: &str| text.parse::<u32>().is_ok();
    (is_number(major) && is_number(minor)).then(|| format!("linux-source-{major}.{minor}"))
}

/// `6.1` of `6.1.0-9-cloud-amd64`.
fn short(release: &str) -> String {
    release.split('.').take(2).collect::<Vec<_>>().join(".")
}

/// The newest version of a package that apt knows.
fn version(workspace: &Workspace, package: &str) -> Result<String, String> {
    let mut show = workspace.command("apt-cache");
    let (text, _status) =
        workspace::capture(show.env("LC_ALL", "C").args(["show", "--no-all-versions", package]))?;
    let version = kernel::field(&text, "Version");
    version.map(str::to_owned).ok_or_else(|| format!("apt knows nothing of {package}"))
}

/// Downloads the package to the cache's directory for incomplete work.
fn download(workspace: &Workspace, cache: &Path, package: &str) -> Result<(), String> {
    let part = cache.join("part");
    kernel::remove(&part)?;
    fs::create_dir_all(&part).map_err(|error| told(&part, &error))?;
    kernel::download(workspace, &part, &[package.to_owned()])
}

/// Unpacks the download and moves it to its place; removes other versions.
fn unpack(workspace: &Workspace, cache: &Path, package: &str, root: &Path) -> Result<(), String> {
    let part = cache.join("part");
    let archive = part.join(format!("usr/src/{package}.tar.xz"));
    workspace::run(workspace.command("tar").arg("-C").arg(&part).arg("-xf").arg(&archive))?;
    kernel::remove(&part.join("usr"))?;
    let source = part.join("source");
    fs::rename(part.join(package), &source).map_err(|error| told(&source, &error))?;
    edit(&source.join("lib/Kconfig.debug"), let_sleep_be_checked)?;
    edit(&source.join("arch/x86/um/user-offsets.c"), let_registers_be_large)?;
    edit(&source.join("arch/um/kernel/tlb.c"), let_forks_be_told_from_races)?;
    for entry in fs::read_dir(cache).map_err(|error| told(cache, &error))?.flatten() {
        if entry.path() != part {
            kernel::remove(&entry.path())?;
        }
    }
    fs::rename(&part, root).map_err(|error| told(root, &error))
}

/// Changes a file of the source. Fails if the file is not as expected.
fn edit(path: &Path, change: fn(&str) -> Option<String>) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|error| told(path, &error))?;
    let text = change(&text).ok_or_else(|| format!("{}: unexpected content", path.display()))?;
    fs::write(path, text).map_err(|error| told(path, &error))
}

/// Enlarges the space for the registers of a process. Linux 6.1 reserves what AVX-512 needs, and then cannot run
/// anything on a processor with more registers, used or not (with AMX, 11,008 bytes in total).
fn let_registers_be_large(offsets: &str) -> Option<String> {
    const KNOWN: &str = "DEFINE_LONGS(HOST_FP_SIZE, 2696);";
    offsets.contains(KNOWN).then(|| offsets.replace(KNOWN, "DEFINE_LONGS(HOST_FP_SIZE, 16384);"))
}

/// At the start of a new process, the kernel walks its mappings without their lock. It cannot wait for the lock and
/// does not need it, since no other process runs. The added RCU read lock shows this to lockdep.
fn let_forks_be_told_from_races(flushes: &str) -> Option<String> {
    const START: &str = "void force_flush_all(void)\n";
    const WALK: &str = "\tfor_each_vma(vmi, vma)\n\t\tfix_range(mm, vma->vm_start, vma->vm_end, 1);\n";
    let at = flushes.find(START)?;
    let at = at + flushes[at..].find(WALK)?;
    let behind = &flushes[at + WALK.len()..];
    Some([&flushes[..at], "\trcu_read_lock();\n", WALK, "\trcu_read_unlock();\n", behind].concat())
}

/// Allows `DEBUG_ATOMIC_SLEEP`, which detects sleeping in atomic context, in kernels without preemption. It needs only
/// the preemption count, which any kernel can keep.
fn let_sleep_be_checked(options: &str) -> Option<String> {
    const LINE: &str = "\tdepends on !ARCH_NO_PREEMPT\n";
    let start = options.find("config DEBUG_ATOMIC_SLEEP\n")?;
    let end = start + options[start..].find("\thelp\n")?;
    let at = start + options[start..end].find(LINE)?;
    Some(options[..at].to_owned() + &options[at + LINE.len()..])
}

/// Configures and builds.
fn build(workspace: &Workspace, root: &Path, folder: &Path, wanted: &str) -> Result<(), String> {
    kernel::remove(folder)?;
    fs::create_dir_all(folder).map_err(|error| told(folder, &error))?;
    let path = folder.join("wanted.config");
    fs::write(&path, wanted).map_err(|error| told(&path, &error))?;
    let quietly = |command: &mut Command| {
        println!("$ {}", workspace::line(command));
        let (text, status) = workspace::capture(command)?;
        if status.success() { Ok(()) } else { Err(format!("{status}:\n{text}")) }
    };
    let make = || {
        let mut make = workspace.command("make");
        make.arg("-s").arg("-C").arg(root.join("source")).arg(format!("O={}", folder.display()));
        make.arg("ARCH=um").arg(format!("CC={COMPILER}")).env("LC_ALL", "C");
        make
    };
    quietly(make().env("KCONFIG_ALLCONFIG", &path).arg("allnoconfig"))?;
    let made: PathBuf = folder.join(".config");
    let made = fs::read_to_string(&made).map_err(|error| told(&made, &error))?;
    let missing = missing(wanted, &made);
    if !missing.is_empty() {
        return Err(format!("the kernel cannot be configured with {}", missing.join(", ")));
    }
    println!("the kernel is built once, which takes some minutes");
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    quietly(make().arg(format!("-j{jobs}")).args(["linux", "modules"]))
}

/// The wanted lines that a configuration lacks.
fn missing<'a>(wanted: &'a str, made: &str) -> Vec<&'a str> {
    let has = |line: &str| made.lines().any(|one| one == line);
    let lines = wanted.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.filter(|line| !has(line)).collect()
}

fn told(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_is_that_of_the_stock_kernel() {
        assert_eq!(package_for("6.1.0-9-cloud-amd64").as_deref(), Some("linux-source-6.1"));
        assert_eq!(package_for("6.12.57+deb13-cloud-amd64").as_deref(), Some("linux-source-6.12"));
        assert_eq!(package_for("cloud"), None);
        assert_eq!(short("6.12.57+deb13-cloud-amd64"), "6.12");
    }

    #[test]
    fn an_option_that_was_dropped_is_told() {
        let wanted = "# Why.\nCONFIG_KASAN=y\n\nCONFIG_SLUB=y\nCONFIG_LOG_BUF_SHIFT=22\n";
        assert!(missing(wanted, "CONFIG_SLUB=y\nCONFIG_LOG_BUF_SHIFT=22\nCONFIG_KASAN=y\n").is_empty());
        let made =
            "# CONFIG_KASAN is not set\nCONFIG_KASAN_GENERIC=y\nCONFIG_SLUB=y\nCONFIG_LOG_BUF_SHIFT=2\n";
        assert_eq!(missing(wanted, made), ["CONFIG_KASAN=y", "CONFIG_LOG_BUF_SHIFT=22"]);
    }

    #[test]
    fn the_walk_of_a_new_process_is_guarded() {
        let walk = "\tfor_each_vma(vmi, vma)\n\t\tfix_range(mm, vma->vm_start, vma->vm_end, 1);\n";
        let text = |guarded: &str| format!("{walk}void force_flush_all(void)\n{{\n{guarded}}}\n");
        let guarded = format!("\trcu_read_lock();\n{walk}\trcu_read_unlock();\n");
        assert_eq!(let_forks_be_told_from_races(&text(walk)), Some(text(&guarded)));
        assert_eq!(let_forks_be_told_from_races(walk), None);
    }

    #[test]
    fn registers_have_room() {
        let changed = let_registers_be_large("\tDEFINE_LONGS(HOST_FP_SIZE, 2696);\n");
        assert_eq!(changed.as_deref(), Some("\tDEFINE_LONGS(HOST_FP_SIZE, 16384);\n"));
        assert_eq!(let_registers_be_large("DEFINE(HOST_FP_SIZE, 8);"), None);
    }

    #[test]
    fn only_the_one_option_is_let_go() {
        let before = "config A\n\tdepends on !ARCH_NO_PREEMPT\n\thelp\n\nconfig DEBUG_ATOMIC_SLEEP\n\tbool\n";
        let line = "\tdepends on !ARCH_NO_PREEMPT\n";
        let behind = "\thelp\n\tconfig\n\nconfig B\n\tdepends on !ARCH_NO_PREEMPT\n\thelp\n";
        let text = [before, line, behind].concat();
        assert_eq!(let_sleep_be_checked(&text), Some([before, behind].concat()));
        assert_eq!(let_sleep_be_checked(&[before, behind].concat()), None);
    }
}

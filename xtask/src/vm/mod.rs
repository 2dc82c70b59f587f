//! `cargo xtask vm`: the kernel module in an emulated machine.
//!
//! Builds the module and its checks out of a copy of `kernel/llds`, for Debian's newest kernel of the cloud flavour
//! (`kernel.rs`), puts them into an archive that is the machine's only file system (`archive.rs`), boots it under QEMU
//! (`machine.rs`), and reads on its console how the checks went (`console.rs`). Twice: with the kernel as users have
//! it, and with its allocator checking every object.
//!
//! The machine that runs this has nothing of it installed but programs, and its own kernel is never touched. What
//! cannot be had here is a reason to skip. A compiler's or checker's warning, and a machine that does not boot or does
//! not say that all is well, are failures.

mod archive;
mod console;
mod kernel;
mod machine;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use archive::Archive;
use kernel::Kernel;
use machine::{Machine, Processors};

use crate::steps::{Outcome, Verdict};
use crate::workspace::{self, Workspace};
use crate::{Failure, required, setup};

pub(crate) const NAME: &str = "vm";
pub(crate) const DOES: &str = "the kernel module in an emulated machine";

/// Programs, and the packages that have them.
const PROGRAMS: &[(&str, &str)] =
    &[("qemu-system-x86_64", "qemu-system-x86"), ("make", "make"), ("sparse", "sparse")];
/// Libraries, by a file: the one of the kernel's own build programs, and the one that checks are linked with.
const LIBRARIES: &[(&str, &str)] = &[
    ("/usr/lib/x86_64-linux-gnu/libelf.so.1", "libelf1"),
    ("/usr/lib/x86_64-linux-gnu/libc.a", "libc6-dev"),
];

/// What of busybox the machine uses.
const APPLETS: &[&str] = &["sh", "mount", "uname", "poweroff"];

/// How long a machine may take, from power on to power off. It takes 10 to 60 seconds.
const LIMIT: Duration = Duration::from_secs(300);

/// One boot.
struct Boot {
    name: &'static str,
    count: u32,
    parameters: &'static str,
}

const BOOTS: &[Boot] = &[
    Boot { name: "plain", count: 2, parameters: "loads=100" },
    // Every object of every slab is poisoned, fenced and looked at. And one processor: unloading waits for all of
    // them, which is what a thousand times would mostly do.
    Boot { name: "slab-debugging", count: 1, parameters: "slub_debug=FZPU loads=1000" },
];

/// What the caller may set for the checks, as `NAME=NUMBER`.
const SETTINGS: &[(&str, &str)] = &[
    ("hostile_seed", "of the random calls; a new one each time unless given"),
    ("hostile_calls", "how many random calls"),
    ("loads", "how often the module is loaded and unloaded"),
    ("opens", "how often the device is opened"),
    ("races", "how often it is unloaded while somebody opens it"),
    ("asks", "how often each of four threads asks"),
];

/// The command.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    let settings = settings(arguments).map_err(Failure::Usage)?;
    let start = Instant::now();
    match boot_all(workspace, &settings) {
        Ok(Outcome::Passed) => println!("\npassed in {:.1} s", start.elapsed().as_secs_f64()),
        Ok(Outcome::Skipped(why)) => println!("\nskipped: {why}"),
        Err(why) => {
            println!("\nFAILED: {why}");
            return Err(Failure::Failed);
        }
    }
    Ok(())
}

/// The step.
pub(crate) fn step(workspace: &Workspace) -> Verdict {
    boot_all(workspace, "")
}

/// For the command's help.
pub(crate) fn help() -> String {
    let mut help = "\nSettings for the checks, as NAME=NUMBER:\n".to_owned();
    for (name, does) in SETTINGS {
        help += &format!("  {name:<14} {does}\n");
    }
    help
}

/// Checked, as they go to the kernel's command line.
fn settings(arguments: &[String]) -> Result<String, String> {
    for argument in arguments {
        let (name, number) = argument.split_once('=').unwrap_or((argument, ""));
        if !SETTINGS.iter().any(|(known, _)| *known == name) {
            return Err(format!("no setting is called {name:?}"));
        }
        if number.parse::<u64>().is_err() {
            return Err(format!("{argument:?} is not NAME=NUMBER"));
        }
    }
    Ok(arguments.join(" "))
}

fn boot_all(workspace: &Workspace, settings: &str) -> Verdict {
    for file in required::MODULE {
        required::demand(workspace, file)?;
    }
    let folder = workspace.target.join(NAME);
    let kernel = match prepare(workspace, &folder) {
        Ok(kernel) => kernel,
        Err(why) => return Ok(Outcome::Skipped(why)),
    };
    println!("Linux {}, {}", kernel.release, kernel.compiler);
    let sources = folder.join("sources");
    fresh(&sources)?;
    copy(&workspace.root.join("kernel/llds"), &sources)?;
    let archive = folder.join("archive.cpio");
    build(workspace, &kernel, &sources, &archive)?;
    let processors = match machine::kvm(workspace, &kernel.image, &archive, folder.join("console-probe.txt"))
    {
        Ok(()) => Processors::Kvm,
        Err(why) => {
            println!("processors are emulated: {why}");
            Processors::Emulated
        }
    };
    for boot in BOOTS {
        let log = folder.join(format!("console-{}.txt", boot.name));
        let seed = format!("hostile_seed={}", seed());
        let parameters = format!("{} {seed} {settings}", boot.parameters);
        let start = Instant::now();
        let machine = Machine {
            image: &kernel.image,
            archive: &archive,
            processors,
            count: boot.count,
            parameters: parameters.trim_end(),
            log: log.clone(),
            limit: LIMIT,
        };
        let said = machine.run(workspace)?;
        for remark in said.lines().filter(|line| line.starts_with("# hostile_seed")) {
            println!("{}: {}", boot.name, remark.trim_start_matches("# ").trim_end());
        }
        let report = console::read(&said)
            .map_err(|why| format!("{}: {why}\nall that it said: {}", boot.name, log.display()))?;
        for skipped in &report.skipped {
            println!("{}: skipped: {skipped}", boot.name);
        }
        println!("{}: {} checks passed in {:.1} s", boot.name, report.passed, start.elapsed().as_secs_f64());
    }
    Ok(Outcome::Passed)
}

/// Another one each time. It is printed, and can be given.
fn seed() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(1, |since| since.as_nanos() as u64 % 1_000_000_000)
}

/// Sees to programs, libraries and the kernel.
fn prepare(workspace: &Workspace, folder: &Path) -> Result<Kernel, String> {
    let host = setup::host(workspace)?;
    if !(host.starts_with("x86_64-") && host.contains("linux")) {
        return Err(format!("the machine is built on Linux for x86-64, not on {host}"));
    }
    let programs = PROGRAMS.iter().filter(|(program, _)| !setup::on_path(program));
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

/// An empty directory.
fn fresh(directory: &Path) -> Result<(), String> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(format!("{}: {error}", directory.display()));
        }
        _ => {}
    }
    fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))
}

/// Copies sources, and nothing that somebody built among them.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let told = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    fs::create_dir_all(to).map_err(|error| told(to, error))?;
    for entry in fs::read_dir(from).map_err(|error| told(from, error))?.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() {
            copy(&path, &to.join(&name))?;
        } else if is_source(&path) {
            fs::copy(&path, to.join(&name)).map_err(|error| told(&path, error))?;
        }
    }
    Ok(())
}

fn is_source(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let end = path.extension().unwrap_or_default().to_string_lossy();
    matches!(&*name, "Kbuild" | "init") || (matches!(&*end, "c" | "h" | "rules") && !name.ends_with(".mod.c"))
}

/// Builds the modules and the checks, and the archive of them.
fn build(workspace: &Workspace, kernel: &Kernel, sources: &Path, archive: &Path) -> Result<(), String> {
    let tests = sources.join("tests");
    let blocker = tests.join("blocker");
    for folder in [sources, &blocker] {
        // W=1: all warnings that a kernel's source may have; C=2: sparse looks at every file.
        let mut make = kernel::make(workspace, kernel, folder);
        without_warnings(make.args(["W=1", "C=2", "modules"]))?;
    }
    let checks = tests.join("checks");
    let mut compiler = workspace.command(&kernel.compiler);
    compiler.args([
        "-O1",
        "-g",
        "-static",
        "-pthread",
        "-Wall",
        "-Wextra",
        "-Wno-missing-field-initializers",
        "-o",
    ]);
    compiler.arg(&checks).args(c_files(&tests)?);
    without_warnings(&mut compiler)?;

    let read = |path: &Path| fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    let mut content = Archive::default();
    for directory in [".", "bin", "dev", "proc", "sys", "tmp"] {
        content.directory(directory);
    }
    content.file("bin/busybox", &read(&kernel.busybox)?);
    for applet in APPLETS {
        content.link(&format!("bin/{applet}"), "busybox");
    }
    content.file("init", &read(&tests.join("init"))?);
    content.file("checks", &read(&checks)?);
    content.file("llds.ko", &read(&sources.join("llds.ko"))?);
    content.file("blocker.ko", &read(&blocker.join("blocker.ko"))?);
    content.file("60-llds.rules", &read(&sources.join("60-llds.rules"))?);
    fs::write(archive, content.finish()).map_err(|error| format!("{}: {error}", archive.display()))
}

/// The C files of a directory, in order.
fn c_files(directory: &Path) -> Result<Vec<std::path::PathBuf>, String> {
    let entries = fs::read_dir(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let mut files: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "c"));
    files.sort();
    Ok(files)
}

/// Runs a compiler. What it warns of is an error here, and no reason to stop for one who only builds the module.
fn without_warnings(command: &mut std::process::Command) -> Result<(), String> {
    println!("$ {}", workspace::line(command));
    let (text, status) = workspace::capture(command)?;
    if !status.success() {
        return Err(format!("{status} of: {}\n{text}", workspace::line(command)));
    }
    match text.lines().find(|line| is_warning(line)) {
        Some(line) => Err(format!("{line}\n{text}")),
        None => Ok(()),
    }
}

/// gcc, sparse and modpost each have their own way to say it.
fn is_warning(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    line.contains("warning:") || line.contains("error:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_known_and_numbers() {
        let given = |text: &str| settings(&text.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(given("loads=7 hostile_seed=9"), Ok("loads=7 hostile_seed=9".to_owned()));
        assert_eq!(settings(&[]), Ok(String::new()));
        for wrong in ["loads", "loads=", "loads=many", "loads=-1", "panic=1", "--help", "="] {
            assert!(given(wrong).is_err(), "{wrong}");
        }
    }

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

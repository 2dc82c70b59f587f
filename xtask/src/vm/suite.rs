//! The kernels of other Debian suites: each in a root directory of that suite, in which modules are built for it.
//!
//! A newer kernel's build programs need a newer C library than the host may have. So debootstrap makes a small Debian
//! of the suite below the target directory, once, with the kernel's headers and its compiler, and make runs in it by
//! chroot. This needs root. The image is unpacked there, not installed.

use std::fs;
use std::path::{Path, PathBuf};

use super::kernel::{self, Kernel};
use crate::setup;
use crate::workspace::{self, Workspace};

/// A suite, and where its kernel comes from.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Suite {
    pub(super) name: &'static str,
    /// The suite that has everything else.
    base: &'static str,
}

/// Those whose kernels the module supports, the newest last.
pub(super) const SUITES: &[Suite] = &[
    Suite { name: "bookworm", base: "bookworm" },
    Suite { name: "bookworm-backports", base: "bookworm" },
    Suite { name: "trixie", base: "trixie" },
    Suite { name: "trixie-backports", base: "trixie" },
];

const MIRROR: &str = "http://deb.debian.org/debian";
/// Programs that the host needs, and their packages.
const PROGRAMS: &[(&str, &str)] =
    &[("debootstrap", "debootstrap"), ("chroot", "coreutils"), ("dpkg", "dpkg")];
/// What the build needs beside the kernel's headers, which bring the compiler.
const PACKAGES: &str = "make,sparse,busybox-static";
const HEADERS: &str = "linux-headers-cloud-amd64";
/// Where the kernel's image is unpacked: beside the system, whose links for merged directories it would replace.
const IMAGE: &str = "image";
/// The file that says that a root is complete.
const STAMP: &str = "complete";

/// The kernel of a suite. The inner error names what is unavailable.
pub(super) fn get(
    workspace: &Workspace,
    cache: &Path,
    suite: &Suite,
) -> Result<Result<Kernel, String>, String> {
    setup::programs(workspace, PROGRAMS)?;
    let root = cache.join(suite.name);
    if !root.join(STAMP).exists() {
        kernel::remove(&root)?;
        fs::create_dir_all(&root).map_err(|error| format!("{}: {error}", root.display()))?;
        if let Err(why) = fill(workspace, &root, suite) {
            return Ok(Err(format!("the kernel of {} cannot be had: {why}", suite.name)));
        }
    }
    found(&root).map(Ok)
}

/// Makes the root.
fn fill(workspace: &Workspace, root: &Path, suite: &Suite) -> Result<(), String> {
    let mut debootstrap = workspace.command("debootstrap");
    debootstrap.args(["--variant=minbase", &format!("--include={PACKAGES}"), suite.base]);
    workspace::run(debootstrap.arg(root).arg(MIRROR))?;
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    let mut sources = format!("deb {MIRROR} {} main\n", suite.base);
    if suite.name != suite.base {
        sources += &format!("deb {MIRROR} {} main\n", suite.name);
    }
    write("etc/apt/sources.list", &sources)?;
    let apt = |arguments: &[&str]| {
        let mut apt = workspace.command("chroot");
        apt.arg(root).arg("apt-get").args(["-q", "-o", "APT::Sandbox::User=root", "-t", suite.name]);
        workspace::run(apt.args(arguments).env("LC_ALL", "C").env("DEBIAN_FRONTEND", "noninteractive"))
    };
    apt(&["update"])?;
    apt(&["install", "-y", "--no-install-recommends", HEADERS])?;
    // Since Linux 7 the image is in a package of its own.
    let release = release(root)?;
    let binary = format!("linux-binary-{release}");
    let image = format!("linux-image-{release}");
    apt(&["download", &binary]).or_else(|_| apt(&["download", &image]))?;
    let archives = fs::read_dir(root).map_err(|error| format!("{}: {error}", root.display()))?;
    for archive in archives.flatten().map(|file| file.path()) {
        if archive.extension().is_some_and(|end| end == "deb") {
            workspace::run(workspace.command("dpkg").arg("-x").arg(&archive).arg(root.join(IMAGE)))?;
            fs::remove_file(&archive).map_err(|error| format!("{}: {error}", archive.display()))?;
        }
    }
    write(STAMP, "")
}

/// The release whose headers a root has.
fn release(root: &Path) -> Result<String, String> {
    const BEGIN: &str = "linux-headers-";
    let sources = root.join("usr/src");
    let names = fs::read_dir(&sources).map_err(|error| format!("{}: {error}", sources.display()))?;
    let names = names.flatten().map(|file| file.file_name().to_string_lossy().into_owned());
    let mut releases: Vec<String> = names
        .filter(|name| name.ends_with("-cloud-amd64"))
        .filter_map(|name| name.strip_prefix(BEGIN).map(str::to_owned))
        .collect();
    releases.sort();
    releases.pop().ok_or_else(|| format!("{} has no headers of a kernel", sources.display()))
}

/// The kernel of a root that is complete.
fn found(root: &Path) -> Result<Kernel, String> {
    let release = release(root)?;
    let headers = root.join("usr/src").join(format!("linux-headers-{release}"));
    let path = headers.join(".config");
    let config = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let first = |paths: &[&Path], what: &str| {
        let found = paths.iter().map(|path| root.join(path)).find(|path| path.exists());
        found.ok_or_else(|| format!("the packages brought no {what}"))
    };
    let image = Path::new(IMAGE);
    let old = image.join("boot").join(format!("vmlinuz-{release}"));
    let new = image.join("usr/lib/modules").join(&release).join("vmlinuz");
    Ok(Kernel {
        image: first(&[&old, &new], "image")?,
        compiler: compiler(&config).unwrap_or("gcc").to_owned(),
        busybox: first(&[Path::new("bin/busybox"), Path::new("usr/bin/busybox")], "busybox")?,
        arguments: ["W=1", "C=2"].map(str::to_owned).to_vec(),
        root: Some(PathBuf::from(root)),
        headers,
        release,
    })
}

/// The compiler of a kernel, such as `gcc-14`, from its configuration.
fn compiler(config: &str) -> Option<&str> {
    let text = config.lines().find_map(|line| line.strip_prefix("CONFIG_CC_VERSION_TEXT=\""))?;
    let name = text.split(' ').next()?;
    name.find("gcc").map(|at| &name[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_is_found_in_the_configuration() {
        let config = "# CONFIG_A is not set\nCONFIG_CC_VERSION_TEXT=\"x86_64-linux-gnu-gcc-14 (Debian 14.2.0-19) 14.2.0\"\n";
        assert_eq!(compiler(config), Some("gcc-14"));
        assert_eq!(compiler("CONFIG_CC_VERSION_TEXT=\"gcc-12 (Debian) 12\"\n"), Some("gcc-12"));
        assert_eq!(compiler("CONFIG_A=y\n"), None);
    }
}

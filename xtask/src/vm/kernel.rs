//! The kernel of the test machine: Debian's, of the cloud flavour, downloaded and unpacked below the target directory.
//!
//! The packages are unpacked, not installed. The unpacked kernel stays, by version, until apt knows a newer one. If no
//! kernel is available, the step is skipped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::setup;
use crate::workspace::{self, Workspace};

/// The package that depends on the newest kernel of the flavour. The cloud flavour is the smallest to download, and
/// boots without an initramfs of modules.
const META: &str = "linux-image-cloud-amd64";

/// A kernel that was unpacked.
pub(crate) struct Kernel {
    /// Such as `6.1.0-56-cloud-amd64`.
    pub(crate) release: String,
    /// The image that a machine boots.
    pub(crate) image: PathBuf,
    /// The directory in which modules are built.
    pub(crate) headers: PathBuf,
    /// The compiler that it was built with, such as `gcc-12`.
    pub(crate) compiler: String,
    /// A shell that needs no libraries.
    pub(crate) busybox: PathBuf,
    /// The arguments of make to build modules.
    pub(crate) arguments: Vec<String>,
    /// The root directory in which modules are built, if it is not the host's.
    pub(crate) root: Option<PathBuf>,
}

/// The packages to download, according to apt.
#[derive(Debug, PartialEq, Eq)]
struct Choice {
    release: String,
    version: String,
    compiler: String,
    packages: Vec<String>,
}

/// Gets the newest kernel that apt knows. Fails with the reason to skip.
pub(crate) fn get(workspace: &Workspace, cache: &Path) -> Result<Kernel, String> {
    for program in ["apt-get", "apt-cache", "dpkg"] {
        if !setup::on_path(program) {
            return Err(format!("there is no {program} to get Debian's kernel with"));
        }
    }
    if cache.to_string_lossy().contains([' ', ':', '#', '%', '\\'].as_slice()) {
        return Err(format!("the kernel's build cannot work below a path such as {}", cache.display()));
    }
    // Stale package lists name packages that no longer exist.
    choose(workspace).and_then(|choice| unpacked(workspace, cache, choice)).or_else(|first| {
        println!("{first}; fetching the lists of packages");
        setup::package_lists(workspace).map_err(|why| format!("{first}; and {why}"))?;
        choose(workspace).and_then(|choice| unpacked(workspace, cache, choice))
    })
}

/// Asks apt which kernel is the newest and what belongs to it.
fn choose(workspace: &Workspace) -> Result<Choice, String> {
    let ask = |arguments: &[&str]| {
        let (text, status) =
            workspace::capture(workspace.command("apt-cache").env("LC_ALL", "C").args(arguments))?;
        if status.success() && !text.trim().is_empty() {
            Ok(text)
        } else {
            Err(format!("apt knows nothing of {}", arguments.last().unwrap_or(&"")))
        }
    };
    let meta = ask(&["show", "--no-all-versions", META])?;
    let image = depended(&meta, |name| name.starts_with("linux-image-") && name.contains("-cloud-"))
        .ok_or_else(|| format!("apt knows {META}, which depends on no kernel"))?;
    let release = image.trim_start_matches("linux-image-").trim_end_matches("-unsigned").to_owned();
    let version = field(&ask(&["show", "--no-all-versions", &image])?, "Version")
        .ok_or_else(|| format!("apt knows {image}, but no version of it"))?
        .to_owned();
    let headers = format!("linux-headers-{release}");
    choice(release, version, image, &ask(&["show", "--no-all-versions", &headers])?)
}

/// The choice, from what apt shows of the package of headers.
fn choice(release: String, version: String, image: String, headers: &str) -> Result<Choice, String> {
    let common = depended(headers, |name| name.starts_with("linux-headers-"));
    let kbuild = depended(headers, |name| name.starts_with("linux-kbuild-"));
    let compiler = depended(headers, |name| name.starts_with("linux-compiler-gcc-"))
        .and_then(|name| Some(name.strip_prefix("linux-compiler-")?.rsplit_once('-')?.0.to_owned()));
    match (common, kbuild) {
        (Some(common), Some(kbuild)) => Ok(Choice {
            packages: vec![
                image,
                format!("linux-headers-{release}"),
                common,
                kbuild,
                "busybox-static".to_owned(),
            ],
            compiler: compiler.unwrap_or_else(|| "gcc".to_owned()),
            release,
            version,
        }),
        _ => Err(format!("apt knows linux-headers-{release}, but not what modules are built with")),
    }
}

/// The value of a field in what apt shows of a package.
pub(crate) fn field<'a>(shown: &'a str, name: &str) -> Option<&'a str> {
    shown.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// The first package that one depends on and that is wanted.
fn depended(shown: &str, wanted: impl Fn(&str) -> bool) -> Option<String> {
    let names = field(shown, "Depends")?.split([',', '|']);
    names.filter_map(|one| one.split_whitespace().next()).find(|name| wanted(name)).map(str::to_owned)
}

/// Downloads and unpacks a choice, unless that was done before.
fn unpacked(workspace: &Workspace, cache: &Path, choice: Choice) -> Result<Kernel, String> {
    let root = cache.join(format!("linux-{}_{}", choice.release, choice.version));
    let kernel = Kernel {
        image: root.join("boot").join(format!("vmlinuz-{}", choice.release)),
        headers: root.join("usr/src").join(format!("linux-headers-{}", choice.release)),
        busybox: root.join("bin/busybox"),
        compiler: choice.compiler,
        release: choice.release,
        // The kernel's extra warnings, and sparse over every file.
        arguments: ["W=1", "C=2"].map(str::to_owned).to_vec(),
        root: None,
    };
    // One that was moved since names the place where it was.
    let names = fs::read_to_string(kernel.headers.join("Makefile")).unwrap_or_default();
    if names.contains(&format!("{}/", root.display())) {
        return Ok(kernel);
    }
    let told = |what: &str| {
        let what = what.to_owned();
        move |error: std::io::Error| format!("{what}: {error}")
    };
    // What was left half done.
    let part = cache.join("part");
    remove(&part)?;
    fs::create_dir_all(&part).map_err(told("the folder for the kernel"))?;
    download(workspace, &part, &choice.packages)
        .map_err(|why| format!("Linux {} cannot be downloaded: {why}", kernel.release))?;
    // Where usr holds all, as it does in newer packages.
    if !part.join("bin/busybox").exists() && part.join("usr/bin/busybox").exists() {
        fs::create_dir_all(part.join("bin")).map_err(told("busybox"))?;
        fs::copy(part.join("usr/bin/busybox"), part.join("bin/busybox")).map_err(told("busybox"))?;
    }
    relocate(&part, &kernel.headers, &root)?;
    for path in [&kernel.image, &kernel.headers, &kernel.busybox] {
        let unpacked = part.join(path.strip_prefix(&root).unwrap_or(path));
        if !unpacked.exists() {
            return Err(format!("the packages brought no {}", unpacked.display()));
        }
    }
    // Older ones are some hundred megabytes each.
    for entry in fs::read_dir(cache).map_err(told("the folder for the kernel"))?.flatten() {
        if entry.path() != part {
            remove(&entry.path())?;
        }
    }
    fs::rename(&part, &root).map_err(told("keeping what was unpacked"))?;
    Ok(kernel)
}

/// Downloads packages into a directory and unpacks them there.
pub(crate) fn download(workspace: &Workspace, part: &Path, packages: &[String]) -> Result<(), String> {
    let mut download = workspace.command("apt-get");
    // Root's own folder is none that apt's user may write to; that it then writes as root, it would warn of.
    download.current_dir(part).args(["-q", "-o", "APT::Sandbox::User=root", "download"]).args(packages);
    workspace::run(&mut download)?;
    let told = |error: std::io::Error| format!("{}: {error}", part.display());
    let archives: Vec<PathBuf> =
        fs::read_dir(part).map_err(told)?.filter_map(|file| Some(file.ok()?.path())).collect();
    for archive in archives.iter().filter(|path| path.extension().is_some_and(|end| end == "deb")) {
        workspace::run(workspace.command("dpkg").arg("-x").arg(archive).arg(part))?;
        fs::remove_file(archive).map_err(told)?;
    }
    Ok(())
}

/// Removes a directory, if it is there.
pub(crate) fn remove(directory: &Path) -> Result<(), String> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{}: {error}", directory.display()))
        }
        _ => Ok(()),
    }
}

/// The flavour's Makefile refers to the common one by its installed path. This replaces it with the unpacked path.
fn relocate(part: &Path, headers: &Path, root: &Path) -> Result<(), String> {
    let makefile = headers.strip_prefix(root).map_err(|error| error.to_string())?.join("Makefile");
    let path = part.join(makefile);
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let text = text.replace("/usr/src/", &format!("{}/usr/src/", root.display()));
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// A call of make that builds the modules of a folder, which lies in the kernel's root.
pub(crate) fn make(workspace: &Workspace, kernel: &Kernel, folder: &Path) -> Command {
    let mut make = workspace.command(if kernel.root.is_some() { "unshare" } else { "make" });
    let inside = |path: &Path| match kernel.root.as_ref().and_then(|root| path.strip_prefix(root).ok()) {
        Some(path) => Path::new("/").join(path),
        None => path.to_owned(),
    };
    if let Some(root) = &kernel.root {
        // Newer objtools read the limits of their process.
        const WITH_PROC: &str = "mount --bind /proc \"$0/proc\" && exec chroot \"$0\" \"$@\"";
        make.args(["--mount", "sh", "-c", WITH_PROC]).arg(root).arg("make");
    }
    make.arg("-s").arg("-C").arg(inside(&kernel.headers)).arg(format!("M={}", inside(folder).display()));
    make.arg(format!("CC={}", kernel.compiler)).args(&kernel.arguments).env("LC_ALL", "C");
    make
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADERS: &str = "Package: linux-headers-6.1.0-9-cloud-amd64\nVersion: 6.1.27-1\n\
        Depends: linux-headers-6.1.0-9-common (= 6.1.27-1), linux-kbuild-6.1 (>= 6.1.27-1), linux-compiler-gcc-12-x86\n";

    #[test]
    fn the_meta_package_names_the_kernel() {
        let shown = "Package: linux-image-cloud-amd64\nVersion: 6.1.27-1\nDepends: linux-image-6.1.0-9-cloud-amd64 (= 1)\n";
        let image = depended(shown, |name| name.starts_with("linux-image-"));
        assert_eq!(image.as_deref(), Some("linux-image-6.1.0-9-cloud-amd64"));
        assert_eq!(field(shown, "Version"), Some("6.1.27-1"));
        assert_eq!(
            depended("Package: a\nDepends: b, c | d (>= 1)\n", |name| name == "d").as_deref(),
            Some("d")
        );
        assert_eq!(depended("Package: a\n", |_| true), None);
    }

    #[test]
    fn all_that_belongs_to_a_kernel_is_chosen() {
        let names = ("6.1.0-9-cloud-amd64".to_owned(), "6.1.27-1".to_owned(), "image".to_owned());
        let chosen =
            choice(names.0.clone(), names.1.clone(), names.2.clone(), HEADERS).expect("it is all there");
        assert_eq!(chosen.compiler, "gcc-12");
        assert_eq!(
            chosen.packages,
            [
                "image",
                "linux-headers-6.1.0-9-cloud-amd64",
                "linux-headers-6.1.0-9-common",
                "linux-kbuild-6.1",
                "busybox-static"
            ]
        );
        assert!(choice(names.0, names.1, names.2, "Package: x\nDepends: y\n").is_err());
    }
}

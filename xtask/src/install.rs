//! `cargo xtask install` and `cargo xtask package`: what users get, put in place below a prefix, and that as packages.
//!
//! ```text
//! bin/                     forrest, kvbench
//! include/                 forrest.h, remixdb.h, llds/forrest.h, forrest-leveldb/leveldb/c.h
//! lib/                     libforrest.so.VERSION, the names that lead to it, libforrest.a; the others likewise
//! lib/pkgconfig/           forrest.pc, forrest-leveldb.pc, remixdb.pc, llds.pc, which find their prefix by where they lie
//! lib/cmake/Forrest/       the targets Forrest::forrest and others for CMake, likewise
//! share/man/man1/          a page for each command and for each of its commands
//! share/                   completions for bash, zsh and fish
//! share/doc/forrest/       README, CHANGELOG, licences
//! ```
//!
//! With `--libraries`, only what programs in C and C++ need: include/, lib/ and share/doc/. That builds neither the
//! commands nor the other stores that kvbench has.
//!
//! Shared libraries keep no symbols but those that they export, and archives and commands have no debug information.
//!
//! The step `install` of `cargo xtask test` installs to a separate directory, builds programs in C with the flags from
//! pkg-config, follows the guides ([`guide`]), and builds the programs from each package as well.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::files::{empty, link, parent, write};
use crate::steps::{Outcome, Verdict};
use crate::workspace::{self, Workspace};
use crate::{Failure, foreign, guide, required, setup};

/// The commands: the package that has them, and their names.
const COMMANDS: &[(&str, &str)] = &[("forrest-cli", "forrest"), ("forrest-kvbench", "kvbench")];
/// The description of the library and the packages.
const ABOUT: &str = "ordered key-value store for memory, the kernel and disk";

/// A library for C, whose headers are in its package's directory `include`.
struct Library {
    package: &'static str,
    /// Its name to the linker.
    name: &'static str,
    configs: &'static [Config],
}

/// What pkg-config knows of a library: under a name, with headers somewhere.
struct Config {
    name: &'static str,
    about: &'static str,
    /// Where its headers are, from `include` on.
    headers: &'static str,
    /// A program that is built by it. It makes a store in the directory that its argument and FORREST_URL name.
    example: &'static str,
}

const LIBRARIES: &[Library] = &[
    Library {
        package: "forrest-c",
        name: "forrest",
        configs: &[
            Config { name: "forrest", about: ABOUT, headers: "", example: required::EXAMPLE_C },
            Config {
                name: "llds",
                about: "the functions of llds over libforrest",
                headers: "/llds",
                example: required::EXAMPLE_LLDS,
            },
        ],
    },
    Library {
        package: "forrest-leveldb",
        name: "forrest_leveldb",
        configs: &[Config {
            name: "forrest-leveldb",
            about: "the functions of LevelDB over Forrest's stores on disk",
            // LevelDB itself may be installed below the same prefix.
            headers: "/forrest-leveldb",
            example: required::EXAMPLE_LEVELDB,
        }],
    },
    Library {
        package: "remixdb-c",
        name: "remixdb",
        configs: &[Config {
            name: "remixdb",
            about: "the functions of RemixDB over Forrest's engine on disk",
            headers: "",
            example: required::EXAMPLE_REMIXDB,
        }],
    },
];

impl Library {
    fn archive(&self) -> String {
        format!("lib{}.a", self.name)
    }

    fn shared(&self) -> String {
        format!("lib{}.so", self.name)
    }

    /// The file that the names lead to.
    fn whole(&self) -> String {
        format!("lib{}.so.{}", self.name, version())
    }
}

/// How much is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Everything,
    Libraries,
}

impl Extent {
    fn commands(self) -> &'static [(&'static str, &'static str)] {
        if self == Extent::Everything { COMMANDS } else { &[] }
    }
}

/// `cargo xtask install`.
pub(crate) fn install(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    let (extent, prefix) = parsed(arguments).map_err(Failure::Usage)?;
    let prefix =
        std::path::absolute(prefix).map_err(|error| Failure::Broken(format!("{prefix}: {error}")))?;
    put(workspace, &prefix, "release", extent).map_err(Failure::Broken)?;
    println!("installed to {}", prefix.display());
    Ok(())
}

/// The arguments of `install`.
fn parsed(arguments: &[String]) -> Result<(Extent, &str), String> {
    let (mut extent, mut prefix) = (Extent::Everything, None);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--libraries" => extent = Extent::Libraries,
            "--prefix" => prefix = Some(rest.next().ok_or("--prefix needs a directory")?.as_str()),
            other => return Err(format!("unexpected argument {other:?}")),
        }
    }
    Ok((extent, prefix.ok_or("--prefix DIR is needed")?))
}

/// `cargo xtask package`.
pub(crate) fn package(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    let directory = match arguments {
        [] => workspace.target.join("package"),
        [directory] => std::path::absolute(directory)
            .map_err(|error| Failure::Broken(format!("{directory}: {error}")))?,
        [_, one, ..] => return Err(Failure::Usage(format!("unexpected argument {one:?}"))),
    };
    let packages = Packages::make(workspace, &directory, "release").map_err(Failure::Broken)?;
    for path in [&packages.debian, &packages.archive, &packages.arch] {
        println!("made {}", path.display());
    }
    Ok(())
}

/// Builds, and puts all in place. `profile` is cargo's, of the commands.
pub(crate) fn put(workspace: &Workspace, prefix: &Path, profile: &str, extent: Extent) -> Result<(), String> {
    if !cfg!(target_os = "linux") {
        return Err("what is installed is laid out for Linux".to_owned());
    }
    let packages = extent.commands().iter().map(|(package, _)| *package).collect::<Vec<_>>();
    if !packages.is_empty() {
        let built = foreign::packages(workspace, profile, &packages)?;
        for (_, command) in extent.commands() {
            place(&built.join(command), &prefix.join("bin").join(command), 0o755)?;
            pages(workspace, &built, command, prefix)?;
        }
    }
    let packages = LIBRARIES.iter().map(|library| library.package).collect::<Vec<_>>();
    let built = foreign::packages(workspace, of_libraries(profile), &packages)?;
    for one in LIBRARIES {
        headers(&workspace.root.join("crates").join(one.package).join("include"), &prefix.join("include"))?;
        library(workspace, &built, one, prefix)?;
    }
    cmake_files(workspace, &prefix.join("lib/cmake/Forrest"))?;
    for name in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        place(&workspace.root.join(name), &prefix.join("share/doc/forrest").join(name), 0o644)?;
    }
    strip(workspace, prefix, extent)
}

/// The profile of the libraries where the commands have this one.
fn of_libraries(profile: &str) -> &str {
    if profile == "release" { "libraries" } else { profile }
}

/// The headers of a directory, and of those in it.
fn headers(from: &Path, to: &Path) -> Result<(), String> {
    for name in entries(from)? {
        let (from, to) = (from.join(&name), to.join(&name));
        if from.is_dir() { headers(&from, &to) } else { place(&from, &to, 0o644) }?;
    }
    Ok(())
}

/// Installs a library, shared and static, and its file for pkg-config.
fn library(workspace: &Workspace, built: &Path, library: &Library, prefix: &Path) -> Result<(), String> {
    let to = prefix.join("lib");
    place(&built.join(library.archive()), &to.join(library.archive()), 0o644)?;
    let (shared, whole) = (built.join(library.shared()), library.whole());
    place(&shared, &to.join(&whole), 0o755)?;
    // The name that programs load at run time, and the name for the linker.
    for name in soname(workspace, &shared)?.into_iter().chain([library.shared()]) {
        if name != whole {
            link(&whole, &to.join(name))?;
        }
    }
    for Config { name, about, headers, .. } in library.configs {
        let config = format!(
            "prefix=${{pcfiledir}}/../..\nlibdir=${{prefix}}/lib\nincludedir=${{prefix}}/include\n\n\
             Name: {name}\nDescription: {about}\nVersion: {}\n\
             Cflags: -I${{includedir}}{headers}\nLibs: -L${{libdir}} -l{}\nLibs.private: -lpthread -ldl -lm\n",
            version(),
            library.name
        );
        write(&to.join("pkgconfig").join(format!("{name}.pc")), config.as_bytes())?;
    }
    Ok(())
}

/// Installs what CMake finds the libraries by.
fn cmake_files(workspace: &Workspace, to: &Path) -> Result<(), String> {
    let [config, version_file] = required::CMAKE.map(|path| workspace.root.join(path));
    place(&config, &to.join("ForrestConfig.cmake"), 0o644)?;
    let template =
        fs::read_to_string(&version_file).map_err(|error| format!("{}: {error}", version_file.display()))?;
    write(&to.join("ForrestConfigVersion.cmake"), template.replace("@VERSION@", version()).as_bytes())
}

/// The name that programs linked with a library ask for, if it has one of its own.
fn soname(workspace: &Workspace, library: &Path) -> Result<Option<String>, String> {
    let (text, status) = workspace::capture(workspace.command("readelf").arg("-d").arg(library))?;
    if !status.success() {
        return Err(format!("readelf: {text}"));
    }
    Ok(soname_told(&text))
}

/// That name in the output of readelf.
fn soname_told(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.contains("(SONAME)"))?;
    Some(line.split_once('[')?.1.split_once(']')?.0.to_owned())
}

/// Manual pages and completions, which each command itself writes.
fn pages(workspace: &Workspace, built: &Path, command: &str, prefix: &Path) -> Result<(), String> {
    let written = workspace.target.join("pages");
    empty(&written)?;
    workspace::run(workspace.command(built.join(command)).arg("pages").arg(&written))?;
    let share = prefix.join("share");
    for name in entries(&written)? {
        let to = match name.rsplit_once('.') {
            Some((_, "1")) => share.join("man/man1").join(&name),
            Some((_, "bash")) => share.join("bash-completion/completions").join(command),
            Some((_, "fish")) => share.join("fish/vendor_completions.d").join(&name),
            None if name.starts_with('_') => share.join("zsh/site-functions").join(&name),
            _ => return Err(format!("{command} pages wrote {name}, which has no place")),
        };
        place(&written.join(&name), &to, 0o644)?;
    }
    Ok(())
}

/// What was made of an installed tree.
struct Packages {
    debian: PathBuf,
    /// The tree, for the next one.
    archive: PathBuf,
    /// The directory of a PKGBUILD.
    arch: PathBuf,
}

impl Packages {
    fn make(workspace: &Workspace, directory: &Path, profile: &str) -> Result<Packages, String> {
        for program in ["dpkg", "dpkg-deb", "tar", "sha256sum", "strip", "readelf"] {
            if !setup::on_path(program) {
                return Err(format!("there is no {program}"));
            }
        }
        let version = version();
        let tree = directory.join("tree");
        empty(&tree)?;
        put(workspace, &tree.join("usr"), profile, Extent::Everything)?;

        let archive = directory.join(format!("forrest-{version}-{}.tar.gz", std::env::consts::ARCH));
        let mut tar = workspace.command("tar");
        // The same tree is the same archive.
        tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0", "-czf"]);
        workspace::run(tar.arg(&archive).arg("-C").arg(&tree).arg("usr"))?;

        let arch = directory.join("arch");
        empty(&arch)?;
        let (sum, status) = workspace::capture(workspace.command("sha256sum").arg(&archive))?;
        let sum = sum
            .split_whitespace()
            .next()
            .filter(|_| status.success())
            .ok_or("sha256sum printed no checksum")?;
        write(&arch.join("PKGBUILD"), pkgbuild(sum).as_bytes())?;
        let name = archive.file_name().ok_or("the archive has no name")?;
        place(&archive, &arch.join(name), 0o644)?;

        let debian = directory.join(format!("forrest_{version}_{}.deb", debian_architecture()?));
        let doc = tree.join("usr/share/doc/forrest");
        write(&doc.join("copyright"), copyright(workspace)?.as_bytes())?;
        write(&tree.join("DEBIAN/control"), control(&tree, &glibc(workspace, &tree)?)?.as_bytes())?;
        // Programs are to find the library at once.
        write(&tree.join("DEBIAN/triggers"), b"activate-noawait ldconfig\n")?;
        workspace::run(
            workspace
                .command("dpkg-deb")
                .args(["--root-owner-group", "-Zgzip", "--build"])
                .arg(&tree)
                .arg(&debian),
        )?;
        Ok(Packages { debian, archive, arch })
    }
}

/// Takes out of a tree what only a debugger reads, which is most of it. Archives keep what a linker needs.
fn strip(workspace: &Workspace, tree: &Path, extent: Extent) -> Result<(), String> {
    if !setup::on_path("strip") {
        println!("not stripped: there is no strip");
        return Ok(());
    }
    let run =
        |how: &[&str], files: Vec<PathBuf>| workspace::run(workspace.command("strip").args(how).args(files));
    let lib = tree.join("lib");
    run(&["--strip-unneeded"], LIBRARIES.iter().map(|library| lib.join(library.whole())).collect())?;
    // What crates are optimized together from lies beside the code, and no linker of C reads it.
    let archive = ["--strip-debug", "--remove-section=.llvmbc", "--remove-section=.llvmcmd"];
    run(&archive, LIBRARIES.iter().map(|library| lib.join(library.archive())).collect())?;
    let commands: Vec<_> = extent.commands().iter().map(|(_, name)| tree.join("bin").join(name)).collect();
    if commands.is_empty() { Ok(()) } else { run(&["--strip-debug"], commands) }
}

/// The oldest version of glibc that has every symbol which the commands and the shared libraries of a tree need.
fn glibc(workspace: &Workspace, tree: &Path) -> Result<String, String> {
    let commands = COMMANDS.iter().map(|(_, name)| tree.join("usr/bin").join(name));
    let libraries = LIBRARIES.iter().map(|library| tree.join("usr/lib").join(library.whole()));
    let mut readelf = workspace.command("readelf");
    let (text, status) =
        workspace::capture(readelf.args(["--version-info", "--wide"]).args(commands.chain(libraries)))?;
    if !status.success() {
        return Err(format!("readelf: {text}"));
    }
    let newest = glibc_needed(&text).ok_or("readelf named no version of glibc that the files need")?;
    Ok(newest.map(|part| part.to_string()).join("."))
}

/// The greatest version of glibc that the output of readelf says is needed. What is needed only if it is there (`WEAK`)
/// does not count.
fn glibc_needed(text: &str) -> Option<[u32; 2]> {
    let needed = text.lines().filter_map(|line| {
        let (name, flags) = line.split_once("Name: GLIBC_")?.1.split_once("Flags:")?;
        let (major, minor) = match name.trim() {
            // The first version that understands packed relocations.
            "ABI_DT_RELR" => ("2", "36"),
            version => version.split_once('.')?,
        };
        // Versions of old symbols have three numbers, such as 2.2.5; packages differ in the first two.
        let minor = minor.split('.').next()?;
        let is_weak = flags.trim_start().starts_with("WEAK");
        Some([major.parse().ok()?, minor.parse().ok()?]).filter(|_| !is_weak)
    });
    needed.max()
}

/// The control file of the Debian package, which needs this version of glibc.
fn control(tree: &Path, glibc: &str) -> Result<String, String> {
    let kib = bytes(&tree.join("usr"))?.div_ceil(1024);
    let (version, architecture) = (version(), debian_architecture()?);
    Ok(format!(
        "Package: forrest\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: the Forrest developers\n\
         Installed-Size: {kib}\nDepends: libc6 (>= {glibc}), libgcc-s1\nSection: database\nPriority: optional\n\
         Description: {ABOUT}\n The command forrest, its benchmark kvbench, libforrest, libforrest_leveldb and libremixdb for C with their headers.\n"
    ))
}

/// What Debian wants beside each package.
fn copyright(workspace: &Workspace) -> Result<String, String> {
    let licence = |name: &str| {
        fs::read_to_string(workspace.root.join(name)).map_err(|error| format!("{name}: {error}"))
    };
    Ok(format!(
        "Forrest is under the MIT or the Apache-2.0 licence, at your option.\n\n{}\n{}",
        licence("LICENSE-MIT")?,
        licence("LICENSE-APACHE")?
    ))
}

/// The PKGBUILD for Arch.
fn pkgbuild(sum: &str) -> String {
    let (version, architecture) = (version(), std::env::consts::ARCH);
    format!(
        "pkgname=forrest\npkgver={version}\npkgrel=1\npkgdesc='{ABOUT}'\narch=('{architecture}')\n\
         license=('MIT OR Apache-2.0')\ndepends=('gcc-libs' 'glibc')\noptions=('staticlibs')\n\
         source=(\"forrest-$pkgver-$CARCH.tar.gz\")\nsha256sums=('{sum}')\n\n\
         package() {{\n  cp -a \"$srcdir/usr\" \"$pkgdir/\"\n  \
         install -Dm644 \"$srcdir/usr/share/doc/forrest/LICENSE-MIT\" -t \"$pkgdir/usr/share/licenses/forrest/\"\n}}\n"
    )
}

/// The version of the workspace: all crates have the same.
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

fn debian_architecture() -> Result<&'static str, String> {
    match std::env::consts::ARCH {
        "x86_64" => Ok("amd64"),
        "aarch64" => Ok("arm64"),
        other => Err(format!("Debian's name for {other} is not known here")),
    }
}

/// The step.
pub(crate) fn step(workspace: &Workspace) -> Verdict {
    if !cfg!(target_os = "linux") {
        return Ok(Outcome::Skipped("what is installed is laid out for Linux".to_owned()));
    }
    for needed in required::EXAMPLES_C.iter().chain(required::GUIDES_C) {
        required::demand(workspace, needed)?;
    }
    let compiler = if setup::on_path("cc") { Ok(()) } else { setup::compiler(workspace) };
    let pkg_config =
        if setup::on_path("pkg-config") { Ok(()) } else { setup::packages(workspace, &["pkg-config"]) };
    if let Err(why) = compiler.and(pkg_config) {
        return Ok(Outcome::Skipped(why));
    }
    let directory = workspace.target.join("install");
    let prefix = directory.join("prefix");
    empty(&directory)?;
    put(workspace, &prefix, "dev", Extent::Everything)?;
    check(workspace, &prefix)?;
    let without_cmake = cmake(workspace, &prefix, &directory.join("cmake"))?;
    let home = directory.join("home");
    for path in required::GUIDES_C {
        guide::follow(workspace, path, &home, &prefix)?;
    }
    guide::follow_all(workspace, &home, &prefix)?;
    let packages = match Packages::make(workspace, &directory.join("package"), "dev") {
        Ok(packages) => packages,
        Err(why) if why.starts_with("there is no ") => {
            return Ok(Outcome::Skipped(format!("all passed but packages: {why}")));
        }
        Err(why) => return Err(why),
    };
    debian(workspace, &packages.debian, &directory.join("debian"))?;

    // The steps of makepkg that matter here.
    let (source, root) = (directory.join("arch-source"), directory.join("arch"));
    empty(&source)?;
    empty(&root)?;
    let script = "set -e; CARCH=$(uname -m); . ./PKGBUILD; echo \"$sha256sums  $source\" | sha256sum -c --quiet; \
                  tar -xzf \"$source\" -C \"$srcdir\"; package";
    let mut makepkg = workspace.command("bash");
    makepkg.args(["-c", script]).current_dir(&packages.arch).env("srcdir", &source).env("pkgdir", &root);
    workspace::run(&mut makepkg)?;
    check(workspace, &root.join("usr"))?;
    Ok(without_cmake.map_or(Outcome::Passed, |why| Outcome::Skipped(format!("all passed but CMake: {why}"))))
}

/// Builds a project of CMake that finds the installed libraries, and runs its programs. Returns why not, if it cannot.
fn cmake(workspace: &Workspace, prefix: &Path, build: &Path) -> Result<Option<String>, String> {
    if let Err(why) = setup::programs(workspace, &[("cmake", "cmake"), ("c++", "g++")]) {
        return Ok(Some(why));
    }
    empty(build)?;
    let mut configure = workspace.command("cmake");
    configure.arg("-S").arg(workspace.root.join(required::EXAMPLE_CMAKE)).arg("-B").arg(build);
    workspace::run(configure.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display())))?;
    workspace::run(workspace.command("cmake").arg("--build").arg(build))?;
    for program in ["first", "first_static", "trees", "remixdb_demo"] {
        let store = build.join(format!("store-{program}"));
        workspace::run(workspace.command(build.join(program)).arg(store).env_remove("LD_LIBRARY_PATH"))?;
    }
    Ok(None)
}

/// Installs the Debian package into a system that has nothing else, uses it, and removes it.
fn debian(workspace: &Workspace, package: &Path, root: &Path) -> Result<(), String> {
    empty(root)?;
    let (user, _) = workspace::capture(workspace.command("id").arg("-u"))?;
    if user.trim() != "0" {
        println!("unpacked and not installed: dpkg installs for root only");
        workspace::run(workspace.command("dpkg-deb").arg("-x").arg(package).arg(root))?;
        return check(workspace, &root.join("usr"));
    }
    let database = root.join("var/lib/dpkg");
    for directory in ["info", "updates", "triggers"] {
        empty(&database.join(directory))?;
    }
    write(&database.join("status"), b"")?;
    // What it depends on is in the system around it.
    let dpkg = |action: &str, what: &Path| {
        let mut dpkg = workspace.command("dpkg");
        workspace::run(dpkg.arg("--root").arg(root).args(["--force-depends", action]).arg(what))
    };
    dpkg("--install", package)?;
    check(workspace, &root.join("usr"))?;
    dpkg("--remove", Path::new("forrest"))?;
    if root.join("usr").exists() {
        return Err(format!("dpkg has not removed all of {}", root.join("usr").display()));
    }
    Ok(())
}

/// Uses the installed files as users do.
fn check(workspace: &Workspace, prefix: &Path) -> Result<(), String> {
    for library in LIBRARIES {
        for config in library.configs {
            for linking in [&["--cflags", "--libs"][..], &["--cflags", "--libs", "--static"]] {
                use_library(workspace, prefix, library, config, linking)?;
            }
        }
    }
    for (_, name) in COMMANDS {
        workspace::run(workspace.command(prefix.join("bin").join(name)).arg("--version"))?;
        let completion = format!("source share/bash-completion/completions/{name} && complete -p {name}");
        workspace::run(workspace.command("bash").args(["-c", &completion]).current_dir(prefix))?;
    }
    for (name, text) in [("forrest-load", "mdb_dump"), ("kvbench-compare", "btreemap")] {
        let path = prefix.join("share/man/man1").join(format!("{name}.1"));
        let page = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        if !page.contains(text) {
            return Err(format!("the page {name} does not mention {text}"));
        }
    }
    Ok(())
}

/// Builds a library's example with the flags from pkg-config, and runs it.
fn use_library(
    workspace: &Workspace,
    prefix: &Path,
    library: &Library,
    config: &Config,
    linking: &[&str],
) -> Result<(), String> {
    let libraries = prefix.join("lib");
    let mut asked = workspace.command("pkg-config");
    asked.args(linking).arg(config.name).env("PKG_CONFIG_PATH", libraries.join("pkgconfig"));
    let (flags, status) = workspace::capture(&mut asked)?;
    if !status.success() {
        return Err(format!("pkg-config: {flags}"));
    }
    let place = prefix.join("example");
    empty(&place)?;
    let program = place.join("program");
    let mut compiler = workspace.command("cc");
    compiler.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-pthread"]);
    compiler.arg(workspace.root.join(config.example));
    // pkg-config cannot select between the shared and the static library.
    let (shared, archive) = (format!("-l{}", library.name), format!("-l:{}", library.archive()));
    let chosen = if linking.contains(&"--static") { &archive } else { &shared };
    let flags = flags.split_whitespace().map(|flag| if flag == shared { chosen } else { flag });
    workspace::run(compiler.args(flags).arg("-o").arg(&program))?;
    let mut command = workspace.command(&program);
    command.arg("store").env("FORREST_URL", "store").env("LD_LIBRARY_PATH", &libraries);
    workspace::run(command.current_dir(&place))?;
    fs::remove_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))
}

/// Copies a file, and makes the directories that lead to it.
fn place(from: &Path, to: &Path, mode: u32) -> Result<(), String> {
    parent(to)?;
    // Unlink first: a running program keeps its old file.
    drop(fs::remove_file(to));
    let told = |error| format!("{} to {}: {error}", from.display(), to.display());
    fs::copy(from, to).map_err(told)?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode)).map_err(told)
}

/// The names in a directory, sorted.
fn entries(path: &Path) -> Result<Vec<String>, String> {
    let told = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(path).map_err(told)? {
        let name = entry.map_err(told)?.file_name();
        names.push(name.into_string().map_err(|name| format!("{}: {name:?} is no name", path.display()))?);
    }
    names.sort();
    Ok(names)
}

/// The bytes of all files below a directory.
fn bytes(path: &Path) -> Result<u64, String> {
    let mut sum = 0;
    for name in entries(path)? {
        let path = path.join(name);
        let metadata = fs::symlink_metadata(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        sum += if metadata.is_dir() { bytes(&path)? } else { metadata.len() };
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_that_programs_ask_for_is_found() {
        let told = " 0x01 (NEEDED)  Shared library: [libc.so.6]\n 0x0e (SONAME)  Library soname: [libforrest.so.0]\n";
        assert_eq!(soname_told(told).as_deref(), Some("libforrest.so.0"));
        assert_eq!(soname_told(" 0x01 (NEEDED)  Shared library: [libc.so.6]\n"), None);
    }

    #[test]
    fn the_package_depends_on_the_newest_glibc_that_a_file_needs() {
        let needs = |names: &[&str]| {
            let line = |name: &&str| format!("  0x0020:   Name: {name}  Version: 9\n");
            glibc_needed(&names.iter().map(line).collect::<String>())
        };
        // The first is the section of our own versions.
        let own = "Version definition section '.gnu.version_d' contains 1 entry:\n  Rev: 1  Flags: BASE  Name: libforrest.so.0\n";
        assert_eq!(glibc_needed(own), None);
        let old = ["GLIBC_2.2.5  Flags: none", "GCC_3.3  Flags: none", "GLIBC_2.9  Flags: none"];
        assert_eq!(needs(&old), Some([2, 9]));
        assert_eq!(needs(&[&old[..], &["GLIBC_2.34  Flags: none"]].concat()), Some([2, 34]));
        assert_eq!(needs(&[&old[..], &["GLIBC_2.39  Flags: WEAK"]].concat()), Some([2, 9]));
        assert_eq!(needs(&["GLIBC_PRIVATE  Flags: none", "GLIBC_ABI_DT_RELR  Flags: none"]), Some([2, 36]));
    }

    #[test]
    fn libraries_are_built_by_a_profile_that_the_workspace_has() {
        assert_eq!(of_libraries("dev"), "dev");
        let manifest =
            fs::read_to_string(Workspace::find().expect("this test runs in it").root.join("Cargo.toml"));
        assert!(manifest.expect("it is read").contains(&format!("[profile.{}]", of_libraries("release"))));
    }

    fn arguments(given: &[&str]) -> Vec<String> {
        given.iter().map(|one| (*one).to_owned()).collect()
    }

    #[test]
    fn only_a_prefix_and_an_extent_are_taken() {
        let workspace = Workspace::find().expect("this test runs in it");
        for wrong in [&[][..], &["--prefix"], &["--perfix", "x"], &["--prefix", "x", "y"], &["--libraries"]] {
            let given = arguments(wrong);
            assert!(matches!(install(&workspace, &given), Err(Failure::Usage(_))), "{wrong:?}");
        }
        assert_eq!(parsed(&arguments(&["--prefix", "x"])), Ok((Extent::Everything, "x")));
        for given in [["--libraries", "--prefix", "x"], ["--prefix", "x", "--libraries"]] {
            assert_eq!(parsed(&arguments(&given)), Ok((Extent::Libraries, "x")));
        }
    }
}

//! The Java packages in `java`: their native libraries, the calls of Maven, and the command `java`, which makes them.
//!
//! A native library is stripped and laid where Maven puts it into the jar. `pom.xml` pins the versions of everything
//! from Maven's registry. After the first run all of it is on the machine, and no network is needed.
//!
//! For users, the jar has a library for each processor of `processors`. The tests of the package `forrest` run with
//! each, those of the other packages on this machine alone. What the jar has is compared with the sources.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::processors::{self, PROCESSORS, Processor};
use crate::workspace::{self, Workspace};
use crate::{Failure, files, setup};

pub(crate) const NAME: &str = "java";
/// What the command does.
pub(crate) const DOES: &str =
    "the Java packages for both processors, tested; --here: the library of this one";

/// The packages.
const PACKAGE: &str = "java";
/// The crate of the native library, and the file.
const CRATE: &str = "forrest-jni";
const LIBRARY: &str = "libforrest_jni.so";
/// The most bytes of the library of one processor. In the jar it takes less than half of it.
const BYTES_MAX: u64 = 3_000_000;

/// Debian's Java 17 with the libraries that it needs.
const DEBIAN: &[&str] = &["libc6", "libgcc-s1", "libstdc++6", "openjdk-17-jre-headless", "zlib1g"];

/// The command.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    match arguments {
        [] => make(workspace),
        [here] if here == "--here" => make_here(workspace),
        [one, ..] => return Err(Failure::Usage(format!("unexpected argument {one:?}"))),
    }
    .map_err(Failure::Broken)
}

/// Builds the library for this machine only, small and optimized as a whole, so that Maven finds it.
fn make_here(workspace: &Workspace) -> Result<(), String> {
    let library = here(workspace, "dist")?;
    // What is not stripped is larger.
    if setup::on_path("strip") { processors::at_most(BYTES_MAX, &library) } else { Ok(()) }
}

/// Makes the packages as users get them, and tests them.
fn make(workspace: &Workspace) -> Result<(), String> {
    let zig = processors::zig(workspace)?;
    let libraries = processors::libraries(workspace, &zig, CRATE)?;
    forget(workspace)?;
    for (processor, library) in PROCESSORS.iter().zip(libraries) {
        processors::at_most(BYTES_MAX, &library)?;
        files::copy(&library, &place(workspace, processor.name))?;
    }
    if let Some(why) = missing() {
        println!("not packed and not tested: {why}");
        return Ok(());
    }
    workspace::run(maven(workspace).args(["-q", "package"]))?;
    let jar = demand_jar(workspace)?;
    let mut lines = Vec::new();
    for processor in PROCESSORS {
        let tested = if processor.is_here() {
            "tested".to_owned()
        } else {
            match emulator(workspace, processor) {
                Ok(java) => {
                    let call = ["-q", "-pl", "forrest", "surefire:test"];
                    workspace::run(maven(workspace).args(call).arg(format!("-Djvm={}", java.display())))?;
                    "the package forrest tested".to_owned()
                }
                Err(why) => format!("not tested: {why}"),
            }
        };
        lines.push(format!("{}: {tested}", processor.name));
    }
    println!("made {}", jar.display());
    lines.iter().for_each(|line| println!("{line}"));
    Ok(())
}

/// Builds the library for this machine and lays it where the jar gets it from, alone. Returns its path.
pub(crate) fn here(workspace: &Workspace, profile: &str) -> Result<PathBuf, String> {
    forget(workspace)?;
    let library = place(workspace, std::env::consts::ARCH);
    processors::library_here(workspace, profile, CRATE, &library)?;
    Ok(library)
}

/// Where Maven takes the libraries from.
fn libraries(workspace: &Workspace) -> PathBuf {
    workspace.target.join("java/native")
}

fn place(workspace: &Workspace, processor: &str) -> PathBuf {
    libraries(workspace).join(format!("linux-{processor}")).join(LIBRARY)
}

/// Removes the libraries, also from where Maven has copied them to: it does not remove what has gone.
fn forget(workspace: &Workspace) -> Result<(), String> {
    files::empty(&libraries(workspace))?;
    files::empty(&workspace.root.join(PACKAGE).join("forrest/target/classes/forrest/native"))
}

/// A Java for another processor, under emulation.
fn emulator(workspace: &Workspace, processor: &Processor) -> Result<PathBuf, String> {
    let directory = workspace.target.join(PACKAGE).join(processor.name);
    let root = directory.with_extension("root");
    let emulation = processors::emulation(processor, &root)?;
    processors::debian(workspace, processor, DEBIAN, &root)?;
    // Maven demands a path that ends like this. Tests start others by the variable, and without Java's helper for that,
    // which this machine cannot run.
    let java = directory.join("bin/java");
    let program = root.join(format!("usr/lib/jvm/java-17-openjdk-{}/bin/java", processor.debian));
    let call = format!(
        "#!/bin/sh\nFORREST_JAVA=\"$0\" exec {} '{}' -Djdk.lang.Process.launchMechanism=VFORK \"$@\"\n",
        emulation.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" "),
        program.display()
    );
    files::script(&java, &call)?;
    Ok(java)
}

/// Fails unless the jar of the library has what it is to have. Returns its path.
pub(crate) fn demand_jar(workspace: &Workspace) -> Result<PathBuf, String> {
    let package = workspace.root.join(PACKAGE).join("forrest");
    let jar = package.join(format!("target/forrest-{}.jar", env!("CARGO_PKG_VERSION")));
    let (listed, status) = workspace::capture(workspace.command("jar").arg("-tf").arg(&jar))?;
    if !status.success() {
        return Err(format!("{}: {listed}", jar.display()));
    }
    let sources = names(&package.join("src/main/java/forrest"))?;
    let platforms = names(&libraries(workspace))?;
    compare(&listed, &sources, &platforms).map_err(|why| format!("{}: {why}", jar.display()))?;
    Ok(jar)
}

/// The names of what a directory has.
fn names(directory: &Path) -> Result<Vec<String>, String> {
    let name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    Ok(files::entries(directory)?.iter().filter_map(name).collect())
}

/// Compares the files in the jar with its sources, and with the platforms that have a library.
fn compare(listed: &str, sources: &[String], platforms: &[String]) -> Result<(), String> {
    let mut found: Vec<String> = listed.lines().filter(|line| !line.ends_with('/')).map(top_level).collect();
    found.sort();
    // Those of a class within a class stand for it.
    found.dedup();
    let manifests = [
        "MANIFEST.MF",
        "maven/invalid.forrest/forrest/pom.properties",
        "maven/invalid.forrest/forrest/pom.xml",
    ]
    .map(|name| format!("META-INF/{name}"));
    let classes = sources.iter().filter_map(|source| source.strip_suffix(".java"));
    let classes = classes.map(|class| format!("forrest/{class}.class"));
    let libraries = platforms.iter().map(|platform| format!("forrest/native/{platform}/{LIBRARY}"));
    let mut expected: Vec<String> = manifests.into_iter().chain(classes).chain(libraries).collect();
    expected.sort();
    if found == expected { Ok(()) } else { Err(format!("it has the files {found:?}, expected {expected:?}")) }
}

/// The file of the class that a class is in; any other file as it is.
fn top_level(file: &str) -> String {
    match file.split_once('$') {
        Some((class, inner)) if inner.ends_with(".class") => format!("{class}.class"),
        _ => file.to_owned(),
    }
}

/// Why the packages cannot be built here.
pub(crate) fn missing() -> Option<&'static str> {
    if !cfg!(target_os = "linux") {
        return Some("the library in the jar is for Linux");
    }
    let is_there = setup::on_path("javac") && setup::on_path("mvn");
    (!is_there).then_some("there is no JDK or no Maven (the packages openjdk-17-jdk-headless and maven)")
}

/// The line of what Maven printed that says that an artifact cannot be fetched. No test ran then, or none failed.
pub(crate) fn unfetched(printed: &str) -> Option<&str> {
    if printed.contains("There are test failures") || printed.contains("COMPILATION ERROR") {
        return None;
    }
    let fetches =
        ["Could not transfer", "Could not resolve", "Could not find artifact", "could not be resolved"];
    printed.lines().find(|line| line.contains("ERROR") && fetches.iter().any(|says| line.contains(says)))
}

/// A call of Maven, which asks nothing and prints plain text. The library is found below the target directory.
pub(crate) fn maven(workspace: &Workspace) -> Command {
    let mut command = workspace.command("mvn");
    command.current_dir(workspace.root.join(PACKAGE)).args(["-B", "-ntp"]);
    command.arg(format!("-Dforrest.native={}", libraries(workspace).display()));
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_cannot_be_fetched_skips_the_step() {
        let fetch = "[INFO] Scanning\n[ERROR] Failed to execute goal on project forrest: Could not resolve dependencies for \
                     project invalid.forrest:forrest:jar:0.1.0: Could not transfer artifact org.junit:x:pom:1";
        assert!(unfetched(fetch).is_some_and(|line| line.contains("org.junit")));
        assert_eq!(unfetched("[ERROR] Tests run: 9, Failures: 1\n[ERROR] There are test failures."), None);
        assert_eq!(unfetched(&format!("[ERROR] COMPILATION ERROR :\n{fetch}")), None);
        assert_eq!(unfetched("[ERROR] a test failed: Could not open"), None);
    }

    #[test]
    fn the_jar_has_the_libraries_of_its_processors_and_no_others() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let sources = words(&["Store.java", "package-info.java"]);
        let both = words(&["linux-aarch64", "linux-x86_64"]);
        let jar = "META-INF/\nMETA-INF/MANIFEST.MF\nforrest/\nforrest/native/\n\
                   META-INF/maven/invalid.forrest/forrest/pom.xml\n\
                   META-INF/maven/invalid.forrest/forrest/pom.properties\n\
                   forrest/native/linux-x86_64/libforrest_jni.so\n\
                   forrest/Store$Options.class\nforrest/Store.class\nforrest/package-info.class\n";
        assert_eq!(compare(jar, &sources, &both[1..]), Ok(()));
        assert!(compare(jar, &sources, &both).is_err(), "the library for AArch64 is missing");
        let full = format!("{jar}forrest/native/linux-aarch64/libforrest_jni.so\n");
        assert_eq!(compare(&full, &sources, &both), Ok(()));
        assert!(compare(&full, &sources, &both[1..]).is_err(), "a library was left by another build");
        assert!(compare(&format!("{full}forrest/StoreTest.class\n"), &sources, &both).is_err());
        assert!(compare(&full, &words(&["Store.java", "View.java"]), &both).is_err());
    }

    #[test]
    fn bad_arguments_are_refused() {
        let workspace = Workspace::find().expect("this test runs in it");
        for arguments in [&["--there"][..], &["--here", "target"]] {
            let arguments: Vec<_> = arguments.iter().map(ToString::to_string).collect();
            assert!(matches!(run(&workspace, &arguments), Err(Failure::Usage(_))), "{arguments:?}");
        }
    }
}

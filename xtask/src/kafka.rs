//! The Java packages in `java`: their native library, and the step `kafka`, which runs their tests, those of Kafka for
//! state stores, and the guide.
//!
//! The native library is built once, stripped, and laid where Maven puts it into the jar. `pom.xml` pins the versions
//! of everything from Maven's registry. After the first run all of it is on the machine, and no network is needed. The
//! packages go to the user's local repository, from where the guide takes them.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::files::empty;
use crate::steps::{Outcome, Verdict};
use crate::workspace::{self, Workspace};
use crate::{Failure, foreign, guide, required, setup};

/// The packages.
const PACKAGE: &str = "java";
/// The most bytes of the library of one processor. In the jar it takes less than half of it.
const BYTES_MAX: u64 = 3_300_000;

/// Builds the example, which the guide copies, and its test, with the plugin of Maven that the guide uses.
const EXAMPLE: &[&str] =
    &["-q", "-Pcluster", "compile", "dependency:build-classpath", "-Dmdep.outputFile=/dev/null"];

/// The command `java`: builds the native library for this machine, small and optimized as a whole, so that Maven finds
/// it.
pub(crate) fn java(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    if let Some(unknown) = arguments.first() {
        return Err(Failure::Usage(format!("{unknown:?} is too much")));
    }
    let library = native(workspace, "dist").map_err(Failure::Broken)?;
    let size = bytes(&library).map_err(Failure::Broken)?;
    println!("{}: {size} bytes", library.display());
    if setup::on_path("strip") && size > BYTES_MAX {
        return Err(Failure::Broken(format!("at most {BYTES_MAX} bytes are allowed")));
    }
    Ok(())
}

/// The step.
pub(crate) fn step(workspace: &Workspace) -> Verdict {
    for path in required::JAVA.iter().chain(required::CLUSTER).chain([&guide::KAFKA]) {
        required::demand(workspace, path)?;
    }
    if let Some(why) = missing() {
        return Ok(Outcome::Skipped(why.to_owned()));
    }
    // Not as small as what users get, nor as fast, but built with all else.
    native(workspace, "dev")?;
    // The last call fetches what the guide's own calls need, so that those find it.
    for arguments in [&["-q", "install", "-DskipTests"][..], &["install"], EXAMPLE] {
        let (printed, status) = workspace::capture(maven(workspace).args(arguments))?;
        if !status.success() {
            return match unfetched(&printed) {
                Some(line) => {
                    Ok(Outcome::Skipped(format!("what it needs cannot be fetched by Maven: {line}")))
                }
                None => Err(format!("the Java packages fail:\n{printed}")),
            };
        }
        println!("{printed}");
    }
    guide::follow(
        workspace,
        guide::KAFKA,
        &workspace.target.join("java/home"),
        &workspace.target.join("java"),
    )?;
    Ok(Outcome::Passed)
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

/// Builds the native library and lays it where the jar gets it from. Returns its path.
pub(crate) fn native(workspace: &Workspace, profile: &str) -> Result<PathBuf, String> {
    let built = foreign::packages(workspace, profile, &["forrest-jni"])?.join("libforrest_jni.so");
    let platform = format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH);
    let directory = workspace.target.join("java/native").join(platform);
    empty(&directory)?;
    let library = directory.join("libforrest_jni.so");
    fs::copy(&built, &library).map_err(|error| format!("{}: {error}", built.display()))?;
    if setup::on_path("strip") {
        workspace::run(workspace.command("strip").arg("--strip-unneeded").arg(&library))?;
    } else {
        println!("not stripped: there is no strip");
    }
    Ok(library)
}

fn bytes(path: &PathBuf) -> Result<u64, String> {
    fs::metadata(path).map(|found| found.len()).map_err(|error| format!("{}: {error}", path.display()))
}

/// A call of Maven, which asks nothing and prints plain text. The library is found below the target directory.
pub(crate) fn maven(workspace: &Workspace) -> Command {
    let mut command = workspace.command("mvn");
    command.current_dir(workspace.root.join(PACKAGE)).args(["-B", "-ntp"]);
    command.arg(format!("-Dforrest.native={}", workspace.target.join("java/native").display()));
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
}

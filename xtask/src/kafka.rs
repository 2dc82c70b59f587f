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
use crate::{Failure, guide, required, setup};

/// The packages.
const PACKAGE: &str = "java";
/// The most bytes of the library of one processor. In the jar it takes less than half of it.
const BYTES_MAX: u64 = 3_300_000;

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
    for path in required::JAVA.iter().chain([&guide::KAFKA]) {
        required::demand(workspace, path)?;
    }
    if !cfg!(target_os = "linux") {
        return Ok(Outcome::Skipped("the library in the jar is for Linux".to_owned()));
    }
    if !setup::on_path("javac") || !setup::on_path("mvn") {
        let why = "there is no JDK or no Maven (the packages openjdk-17-jdk-headless and maven)";
        return Ok(Outcome::Skipped(why.to_owned()));
    }
    // Not as small as what users get, and built in a third of the time.
    native(workspace, "release")?;
    let (printed, status) = workspace::capture(maven(workspace).args(["-q", "install", "-DskipTests"]))?;
    if !status.success() {
        let why = printed.lines().find(|line| line.contains("ERROR")).unwrap_or("mvn fails");
        if why.contains("resolve") || why.contains("transfer") {
            return Ok(Outcome::Skipped(format!("what it needs cannot be fetched by Maven: {why}")));
        }
        return Err(format!("the Java packages do not build:\n{printed}"));
    }
    workspace::run(maven(workspace).arg("install"))?;
    guide::follow(
        workspace,
        guide::KAFKA,
        &workspace.target.join("java/home"),
        &workspace.target.join("java"),
    )?;
    Ok(Outcome::Passed)
}

/// Builds the native library and lays it where the jar gets it from. Returns its path.
fn native(workspace: &Workspace, profile: &str) -> Result<PathBuf, String> {
    let build = ["build", "--locked", "--profile", profile, "--package", "forrest-jni"];
    workspace::run(&mut workspace.cargo(&build))?;
    let built = workspace.target.join(profile).join("libforrest_jni.so");
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
fn maven(workspace: &Workspace) -> Command {
    let mut command = workspace.command("mvn");
    command.current_dir(workspace.root.join(PACKAGE)).args(["-B", "-ntp"]);
    command.arg(format!("-Dforrest.native={}", workspace.target.join("java/native").display()));
    command
}

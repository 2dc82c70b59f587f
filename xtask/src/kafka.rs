//! The step `kafka`: the tests of the Java packages in `java`, those of Kafka for state stores, and the guide.
//!
//! The packages go to the user's local repository, from where the guide takes them. [`suites`] runs only Kafka's own
//! tests.

use crate::steps::{Outcome, Verdict};
use crate::workspace::{self, Workspace};
use crate::{guide, java, required, surefire};

/// Builds the example, which the guide copies, and its test, with the plugin of Maven that the guide uses.
const EXAMPLE: &[&str] =
    &["-q", "-Pcluster", "compile", "dependency:build-classpath", "-Dmdep.outputFile=/dev/null"];

/// The packages with tests, all of which must run.
const TESTED: [&str; 2] = ["java/forrest", "java/kafka"];

/// Kafka's own tests of stores, on Forrest's.
const SUITES: [&str; 4] = [
    "ForrestKeyValueStoreTest",
    "ForrestWindowStoreTest",
    "ForrestSessionStoreTest",
    "ForrestVersionedStoreTest",
];

/// Kafka's own tests of stores, and no others.
pub(crate) fn suites(workspace: &Workspace) -> Verdict {
    if let Some(why) = prepared(workspace)? {
        return Ok(Outcome::Skipped(why));
    }
    let named = format!("-Dtest={}", SUITES.join(","));
    // The package below has none of these.
    let arguments = ["-q", "-pl", "kafka", "-am", "test", "-Dsurefire.failIfNoSpecifiedTests=false", &named];
    if let Some(why) = maven(workspace, &arguments)? {
        return Ok(Outcome::Skipped(why));
    }
    println!("{} tests ran", surefire::demand(&workspace.root.join("java/kafka"), SUITES)?);
    Ok(Outcome::Passed)
}

/// The step.
pub(crate) fn step(workspace: &Workspace) -> Verdict {
    for path in required::CLUSTER.iter().chain([&guide::KAFKA]) {
        required::demand(workspace, path)?;
    }
    if let Some(why) = prepared(workspace)? {
        return Ok(Outcome::Skipped(why));
    }
    // The last call fetches what the guide's own calls need, so that those find it.
    for arguments in [&["-q", "install", "-DskipTests"][..], &["install"], EXAMPLE] {
        if let Some(why) = maven(workspace, arguments)? {
            return Ok(Outcome::Skipped(why));
        }
    }
    for name in TESTED {
        let package = workspace.root.join(name);
        let tests = surefire::demand(&package, surefire::classes(&package)?)?;
        println!("{name}: {tests} tests ran");
    }
    java::demand_jar(workspace)?;
    guide::follow(
        workspace,
        guide::KAFKA,
        &workspace.target.join("java/home"),
        &workspace.target.join("java"),
    )?;
    Ok(Outcome::Passed)
}

/// Builds the native library and forgets what tests ran before. Returns why nothing can run.
fn prepared(workspace: &Workspace) -> Result<Option<String>, String> {
    for path in required::JAVA {
        required::demand(workspace, path)?;
    }
    if let Some(why) = java::missing() {
        return Ok(Some(why.to_owned()));
    }
    // Not as small as what users get, nor as fast, but built with all else.
    java::here(workspace, "dev")?;
    TESTED.iter().try_for_each(|package| surefire::forget(&workspace.root.join(package)))?;
    Ok(None)
}

/// A call of Maven, and what it printed. Returns why it cannot be made.
fn maven(workspace: &Workspace, arguments: &[&str]) -> Result<Option<String>, String> {
    let (printed, status) = workspace::capture(java::maven(workspace).args(arguments))?;
    if status.success() {
        println!("{printed}");
        return Ok(None);
    }
    match java::unfetched(&printed) {
        Some(line) => Ok(Some(format!("what it needs cannot be fetched by Maven: {line}"))),
        None => Err(format!("the Java packages fail:\n{printed}")),
    }
}

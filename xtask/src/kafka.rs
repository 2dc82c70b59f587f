//! The step `kafka`: the tests of the Java packages in `java`, those of Kafka for state stores, and the guide.
//!
//! The packages go to the user's local repository, from where the guide takes them.

use crate::steps::{Outcome, Verdict};
use crate::workspace::{self, Workspace};
use crate::{guide, java, required, surefire};

/// Builds the example, which the guide copies, and its test, with the plugin of Maven that the guide uses.
const EXAMPLE: &[&str] =
    &["-q", "-Pcluster", "compile", "dependency:build-classpath", "-Dmdep.outputFile=/dev/null"];

/// The packages with tests, all of which must run.
const TESTED: [&str; 2] = ["java/forrest", "java/kafka"];

/// The step.
pub(crate) fn step(workspace: &Workspace) -> Verdict {
    for path in required::JAVA.iter().chain(required::CLUSTER).chain([&guide::KAFKA]) {
        required::demand(workspace, path)?;
    }
    if let Some(why) = java::missing() {
        return Ok(Outcome::Skipped(why.to_owned()));
    }
    // Not as small as what users get, nor as fast, but built with all else.
    java::here(workspace, "dev")?;
    TESTED.iter().try_for_each(|package| surefire::forget(&workspace.root.join(package)))?;
    // The last call fetches what the guide's own calls need, so that those find it.
    for arguments in [&["-q", "install", "-DskipTests"][..], &["install"], EXAMPLE] {
        let (printed, status) = workspace::capture(java::maven(workspace).args(arguments))?;
        if !status.success() {
            return match java::unfetched(&printed) {
                Some(line) => {
                    Ok(Outcome::Skipped(format!("what it needs cannot be fetched by Maven: {line}")))
                }
                None => Err(format!("the Java packages fail:\n{printed}")),
            };
        }
        println!("{printed}");
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

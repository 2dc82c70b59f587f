//! The command `kafka-suites`: Kafka's integration tests of Kafka Streams on Forrest's stores, by hand.
//!
//! The tests are in a jar of Kafka's. They start brokers and take minutes each. `java/suites` has classes
//! with the names of Kafka's suppliers of RocksDB's stores; they come first on the class path, so what asks for a store
//! of RocksDB's gets one of Forrest's. Each class of tests has a process of its own, and must have run.

use crate::files::empty;
use crate::workspace::{self, Workspace};
use crate::{Failure, java, required, surefire};

/// The name of the command.
pub(crate) const NAME: &str = "kafka-suites";
/// What it does.
pub(crate) const DOES: &str = "Kafka's integration tests of Kafka Streams on Forrest's stores (long)";

/// The classes of tests in which what is kept in stores, restored and queried matters most.
const CLASSES: &[&str] = &[
    "EosIntegrationTest",
    "EOSUncleanShutdownIntegrationTest",
    "RestoreIntegrationTest",
    "StandbyTaskEOSIntegrationTest",
    "StandbyTaskCreationIntegrationTest",
    "PositionRestartIntegrationTest",
    "RangeQueryIntegrationTest",
    "KTableEfficientRangeQueryTest",
    "IQv2StoreIntegrationTest",
    "IQv2VersionedStoreIntegrationTest",
    "VersionedKeyValueStoreIntegrationTest",
    "QueryableStateIntegrationTest",
    "StoreQueryIntegrationTest",
    "TimestampedKeyValueStoreWithHeadersTest",
    "TimestampedWindowStoreWithHeadersTest",
    "SessionsStoreWithHeadersTest",
    "TableTableJoinIntegrationTest",
    "StreamTableJoinWithGraceIntegrationTest",
    "JoinGracePeriodDurabilityIntegrationTest",
    "LagFetchIntegrationTest",
];

/// Runs the named classes of tests, or those of the list.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    if let Some(option) = arguments.iter().find(|argument| argument.starts_with('-')) {
        return Err(Failure::Usage(format!(
            "{option:?} is not an option; only names of classes are allowed"
        )));
    }
    for path in required::JAVA_SUITES {
        required::demand(workspace, path).map_err(Failure::Broken)?;
    }
    if let Some(why) = java::missing() {
        return Err(Failure::Broken(why.to_owned()));
    }
    // With the assertions of a build for tests.
    java::here(workspace, "dev").map_err(Failure::Broken)?;
    // Brokers and stores lie here. `pom.xml` names it, and Java does not make it.
    let temporary = workspace.root.join("java/suites/target/tmp");
    empty(&temporary).map_err(Failure::Broken)?;
    let package = workspace.root.join("java/suites");
    surefire::forget(&package).map_err(Failure::Broken)?;
    let classes: Vec<&str> = match arguments {
        [] => CLASSES.to_vec(),
        named => named.iter().flat_map(|named| named.split(',')).collect(),
    };
    let mut command = java::maven(workspace);
    command.args([
        "-q",
        "-Psuites",
        "-pl",
        "suites",
        "-am",
        "test",
        "-Dsurefire.failIfNoSpecifiedTests=false",
    ]);
    command.arg(format!("-Dtest={}", classes.join(",")));
    let ran = workspace::run(&mut command).map_err(Failure::Broken);
    empty(&temporary).map_err(Failure::Broken)?;
    ran?;
    let tests = surefire::demand(&package, &classes).map_err(Failure::Broken)?;
    println!("{tests} tests ran of {} classes", classes.len());
    Ok(())
}

//! `cargo xtask kafka`: the example application on a broker and three instances, which are killed in turn.
//!
//! The broker is Kafka's own, from Maven's registry, as one process that is its own controller. The driver is
//! `java/cluster`: it starts all processes, sends records, kills, and compares outputs and queries with what it sent.
//! All of it is on this machine, at free ports. With `--quick` only Kafka's own tests of stores run, and with `--bench`
//! the benchmark of that module, which compares state stores.

use std::fs;

use crate::files::empty;
use crate::steps::{self, Outcome, Step, Verdict};
use crate::workspace::{self, Workspace};
use crate::{Failure, java, kafka, required};

/// What it does, in one line.
pub(crate) const DOES: &str = "Kafka Streams on a broker and instances that are killed; all is counted once";
/// How it is called.
pub(crate) const ARGUMENTS: &str =
    "[--seconds N] [--rate LINES] [--seed N] [SETTING=VALUE...] | --quick | --bench [RECORDS]";
/// For how long records come.
const SECONDS: u64 = 600;
/// Lines a second. Each has three words; an order and a payment come with every fifth.
const RATE: u64 = 200;
/// The driver sends at least one line in each of its twenty ticks a second.
const LINES_AT_LEAST: u64 = 20;
/// Records of the benchmark, and how often each store has its turn.
const RECORDS: u64 = 300_000;
const ROUNDS: u64 = 3;
/// The memory of the driver; each process that it starts has its own.
const HEAP: &str = "-Xmx512m";

/// The command.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    let seed = std::time::UNIX_EPOCH.elapsed().map_or(1, |time| time.as_secs());
    let (mut seconds, mut rate, mut seed) = (SECONDS, RATE, seed);
    let mut settings = Vec::new();
    let mut rest = arguments.iter();
    while let Some(name) = rest.next() {
        let sets = match name.as_str() {
            "--quick" if arguments.len() == 1 => {
                let step = Step { name: "kafka", does: "Kafka's own tests of stores", run: kafka::suites };
                return steps::run(workspace, &[&step]);
            }
            "--bench" if arguments.len() <= 2 => {
                let records = rest.next().map_or(Ok(RECORDS), |number| number.parse::<u64>());
                let records =
                    records.map_err(|_| Failure::Usage("--bench takes a number of records".to_owned()))?;
                return ended(benchmark(workspace, records));
            }
            setting if setting.contains('=') && !setting.starts_with('-') => {
                settings.push(setting.to_owned());
                continue;
            }
            "--seconds" => &mut seconds,
            "--rate" => &mut rate,
            "--seed" => &mut seed,
            _ => return Err(Failure::Usage(format!("unexpected argument {name:?}"))),
        };
        *sets = rest
            .next()
            .and_then(|number| number.parse().ok())
            .ok_or_else(|| Failure::Usage(format!("{name} takes a number")))?;
    }
    if rate < LINES_AT_LEAST {
        return Err(Failure::Usage(format!("--rate is at least {LINES_AT_LEAST}")));
    }
    ended(cluster(workspace, [seconds, rate, seed], settings))
}

/// Prints why nothing ran.
fn ended(verdict: Verdict) -> Result<(), Failure> {
    if let Outcome::Skipped(why) = verdict.map_err(Failure::Broken)? {
        println!("skipped: {why}");
    }
    Ok(())
}

/// Runs the example, with settings of Kafka Streams that go before its own.
fn cluster(workspace: &Workspace, numbers: [u64; 3], settings: Vec<String>) -> Verdict {
    let [seconds, rate, seed] = numbers.map(|number| number.to_string());
    java(workspace, "cluster", |example| {
        let mut arguments = vec!["Cluster".to_owned(), seconds, example, rate, seed];
        arguments.extend(settings);
        arguments
    })
}

/// Compares stores.
fn benchmark(workspace: &Workspace, records: u64) -> Verdict {
    java(workspace, "benchmark", |_| vec!["Benchmark".into(), records.to_string(), ROUNDS.to_string()])
}

/// Builds all and runs a program of the driver's module in an empty directory. Of its own log only errors are printed.
/// `arguments` gets the class path of the example, and returns the class and what follows the directory.
fn java(workspace: &Workspace, directory: &str, arguments: impl FnOnce(String) -> Vec<String>) -> Verdict {
    for path in required::CLUSTER {
        required::demand(workspace, path)?;
    }
    let (driver, example) = match built(workspace)? {
        Ok(paths) => paths,
        Err(why) => return Ok(Outcome::Skipped(why)),
    };
    let directory = workspace.target.join("java").join(directory);
    empty(&directory)?;
    let mut arguments = arguments(example).into_iter();
    let class = format!("forrest.cluster.{}", arguments.next().unwrap_or_default());
    let mut command = workspace.command("java");
    command.args([HEAP, "-Dlevel=ERROR", "-cp", &driver, &class]).arg(directory).args(arguments);
    let status = command.status().map_err(|error| format!("cannot run java: {error}"))?;
    if status.success() { Ok(Outcome::Passed) } else { Err(format!("{status} of {class}")) }
}

/// Builds what runs, and returns the class paths of the driver and of the example, or why they cannot be had.
fn built(workspace: &Workspace) -> Result<Result<(String, String), String>, String> {
    if let Some(why) = java::missing() {
        return Ok(Err(why.to_owned()));
    }
    // As users get it. The build that the steps share takes longer than this one alone.
    java::here(workspace, "dist")?;
    // In one call, so that the classes come from this checkout and not from the local repository.
    let calls =
        ["-q", "-Pcluster", "compile", "dependency:build-classpath", "-Dmdep.outputFile=target/classpath"];
    let (printed, status) = workspace::capture(java::maven(workspace).args(calls))?;
    if !status.success() {
        return match java::unfetched(&printed) {
            Some(line) => Ok(Err(format!("what it needs cannot be fetched by Maven: {line}"))),
            None => Err(format!("the example or its driver cannot be built:\n{printed}")),
        };
    }
    let classpath = |module: &str| {
        let target = workspace.root.join("java").join(module).join("target");
        let path = target.join("classpath");
        let libraries = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok::<_, String>(format!("{}:{}", target.join("classes").display(), libraries.trim()))
    };
    Ok(Ok((classpath("cluster")?, classpath("example")?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_arguments_are_refused() {
        let workspace = Workspace::find().expect("this test runs in it");
        for arguments in [
            &["--seconds"][..],
            &["--seconds", "ten"],
            &["60"],
            &["--quick", "--seed", "1"],
            &["--rate", "1"],
        ] {
            let arguments: Vec<_> = arguments.iter().map(ToString::to_string).collect();
            assert!(matches!(run(&workspace, &arguments), Err(Failure::Usage(_))), "{arguments:?}");
        }
    }
}

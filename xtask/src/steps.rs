//! Running steps one after the other and telling how each ended.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use crate::Failure;
use crate::workspace::Workspace;

/// How a step ended that did not fail.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It ran and all was well.
    Passed,
    /// It did not run here, for this reason.
    Skipped(String),
}

/// How a step ended; the error says why it failed.
pub(crate) type Verdict = Result<Outcome, String>;

/// One thing to run.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    /// What it does, in one line.
    pub(crate) does: &'static str,
    pub(crate) run: fn(&Workspace) -> Verdict,
}

/// A step's name, how it ended (`None`: it was not reached), and how long it took.
type Record = (&'static str, Option<Verdict>, Duration);

/// Runs the steps in order up to the first failure, and prints the summary.
pub(crate) fn run(workspace: &Workspace, steps: &[&Step]) -> Result<(), Failure> {
    run_within(workspace, steps, Duration::MAX)
}

/// The same, where a step that would begin after this time is skipped, and the summary says so.
pub(crate) fn run_within(workspace: &Workspace, steps: &[&Step], limit: Duration) -> Result<(), Failure> {
    let began = Instant::now();
    let mut records: Vec<Record> = Vec::new();
    let mut failed = false;
    for (at, step) in steps.iter().enumerate() {
        if failed {
            records.push((step.name, None, Duration::ZERO));
            continue;
        }
        if began.elapsed() >= limit {
            let why = format!("the steps before it took {}", told(began.elapsed()));
            println!("\n== {} skipped: {why}", step.name);
            records.push((step.name, Some(Ok(Outcome::Skipped(why))), Duration::ZERO));
            continue;
        }
        println!("\n== {}/{} {}: {}", at + 1, steps.len(), step.name, step.does);
        let start = Instant::now();
        let verdict = (step.run)(workspace);
        let took = start.elapsed();
        match &verdict {
            Ok(Outcome::Passed) => println!("== {} passed in {}", step.name, told(took)),
            Ok(Outcome::Skipped(why)) => println!("== {} skipped: {why}", step.name),
            Err(why) => {
                println!("== {} FAILED after {}: {why}", step.name, told(took));
                println!("== free space and where: {}", workspace.space().trim());
            }
        }
        failed = verdict.is_err();
        records.push((step.name, Some(verdict), took));
    }
    print!("\n{}", summary(&records));
    if failed { Err(Failure::Failed) } else { Ok(()) }
}

/// The table of steps and, as the last line, the counts.
fn summary(records: &[Record]) -> String {
    let mut text = String::new();
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for (name, verdict, took) in records {
        let took = told(*took);
        let _infallible = match verdict {
            Some(Ok(Outcome::Passed)) => {
                passed += 1;
                writeln!(text, "{name:<10} passed   {took:>8}")
            }
            Some(Ok(Outcome::Skipped(why))) => {
                skipped += 1;
                writeln!(text, "{name:<10} skipped            {why}")
            }
            Some(Err(why)) => {
                failed += 1;
                writeln!(text, "{name:<10} FAILED   {took:>8}  {why}")
            }
            None => writeln!(text, "{name:<10} not run"),
        };
    }
    let total = records.iter().map(|(_, _, took)| *took).sum();
    text + &format!("\nin {}\n{passed} passed, {failed} failed, {skipped} skipped\n", told(total))
}

/// A duration as people read it.
fn told(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 60.0 {
        format!("{seconds:.1} s")
    } else {
        let seconds = seconds.round() as u64;
        format!("{} min {:02} s", seconds / 60, seconds % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_counts_steps() {
        let text = summary(&[
            ("a", Some(Ok(Outcome::Passed)), Duration::from_millis(1500)),
            ("b", Some(Ok(Outcome::Skipped("no such machine".to_owned()))), Duration::ZERO),
            ("c", Some(Err("it broke".to_owned())), Duration::from_secs(61)),
            ("d", None, Duration::ZERO),
        ]);
        assert_eq!(text.lines().last(), Some("1 passed, 1 failed, 1 skipped"));
        assert!(
            text.contains("no such machine")
                && text.contains("it broke")
                && text.contains("d          not run")
        );
        assert!(text.contains("in 1 min 03 s"), "{text}");
    }

    #[test]
    fn what_would_begin_too_late_is_skipped_and_does_not_fail() {
        let step = |name, run| Step { name, does: "nothing", run };
        let passes = step("passes", |_| Ok(Outcome::Passed));
        let fails = step("fails", |_| Err("it ran".to_owned()));
        let workspace = Workspace::find().expect("this test runs in it");
        assert!(run_within(&workspace, &[&passes, &fails], Duration::ZERO).is_ok(), "neither runs");
        assert!(run_within(&workspace, &[&passes, &fails], Duration::MAX).is_err(), "both run");
    }

    #[test]
    fn durations_read_well() {
        assert_eq!(told(Duration::from_millis(50)), "0.1 s");
        assert_eq!(told(Duration::from_secs(125)), "2 min 05 s");
    }
}

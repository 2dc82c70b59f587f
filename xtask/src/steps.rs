//! Steps, how each ended, and what it took. Here they run one after the other; `lanes.rs` runs two at once.

use std::fmt::Write as _;
use std::fs;
use std::time::{Duration, Instant};

use crate::Failure;
use crate::workspace::Workspace;

/// How a step ended that did not fail.
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// How a step ended, and what it took.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) verdict: Verdict,
    /// From its begin to its end.
    pub(crate) elapsed: Duration,
    /// Time of the processors that it used, where the system tells it.
    pub(crate) used: Option<Duration>,
}

impl Ended {
    /// Of a step that did not run, for this reason.
    pub(crate) fn skipped(why: String) -> Ended {
        Ended { verdict: Ok(Outcome::Skipped(why)), elapsed: Duration::ZERO, used: None }
    }

    /// Of a step whose run broke for this reason. What it used is not known.
    pub(crate) fn failed(why: String, begin: Instant) -> Ended {
        Ended { verdict: Err(why), elapsed: begin.elapsed(), used: None }
    }

    /// The line that says so.
    pub(crate) fn line(&self, workspace: &Workspace, name: &str) -> String {
        match &self.verdict {
            Ok(Outcome::Passed) => format!("== {name} passed in {}", self.times()),
            Ok(Outcome::Skipped(why)) => format!("== {name} skipped: {why}"),
            Err(why) => format!(
                "== {name} FAILED after {}: {why}\n== free space and where: {}",
                self.times(),
                workspace.space().trim()
            ),
        }
    }

    fn times(&self) -> String {
        let used = self.used.map_or_else(String::new, |used| format!(", {} of the processors", told(used)));
        told(self.elapsed) + &used
    }
}

/// A step's name, and how it ended. `None`: it was not reached.
pub(crate) type Record = (&'static str, Option<Ended>);

/// Runs the steps in order up to the first failure, and prints the summary.
pub(crate) fn run(workspace: &Workspace, steps: &[&Step]) -> Result<(), Failure> {
    let began = Instant::now();
    let mut records: Vec<Record> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        if has_failed(&records) {
            records.push((step.name, None));
            continue;
        }
        println!("\n== {}/{} {}: {}", at + 1, steps.len(), step.name, step.does);
        let ended = run_one(workspace, step);
        println!("{}", ended.line(workspace, step.name));
        records.push((step.name, Some(ended)));
    }
    print!("\n{}", summary(&records, began.elapsed()));
    if has_failed(&records) { Err(Failure::Failed) } else { Ok(()) }
}

/// Runs one step. Its output goes where that of this program goes.
pub(crate) fn run_one(workspace: &Workspace, step: &Step) -> Ended {
    let (start, before) = (Instant::now(), used());
    let verdict = (step.run)(workspace);
    let used = before.zip(used()).map(|(before, after)| after.saturating_sub(before));
    Ended { verdict, elapsed: start.elapsed(), used }
}

/// Whether one of them failed.
pub(crate) fn has_failed(records: &[Record]) -> bool {
    records.iter().any(|(_, ended)| ended.as_ref().is_some_and(|ended| ended.verdict.is_err()))
}

/// Time of the processors that this process has used, and those that it has started and waited for.
fn used() -> Option<Duration> {
    used_told(&fs::read_to_string("/proc/self/stat").ok()?)
}

/// That time in Linux's line about a process: the fields 14 to 17, in hundredths of a second. The second field is a
/// name in parentheses, of any letters.
fn used_told(stat: &str) -> Option<Duration> {
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<u64> =
        fields.split_whitespace().skip(11).take(4).map_while(|field| field.parse().ok()).collect();
    (fields.len() == 4).then(|| Duration::from_millis(10 * fields.iter().sum::<u64>()))
}

/// The table of steps and, as the last line, the counts.
pub(crate) fn summary(records: &[Record], elapsed: Duration) -> String {
    let mut text = format!("{:<10} {:<8} {:>12} {:>12}\n", "step", "", "elapsed", "processors");
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    let mut used_by_all = Duration::ZERO;
    for (name, ended) in records {
        let Some(Ended { verdict, elapsed, used }) = ended else {
            let _infallible = writeln!(text, "{name:<10} not run");
            continue;
        };
        let (how, why) = match verdict {
            Ok(Outcome::Passed) => ("passed", ""),
            Ok(Outcome::Skipped(why)) => ("skipped", &why[..]),
            Err(why) => ("FAILED", &why[..]),
        };
        let count = match how {
            "passed" => &mut passed,
            "skipped" => &mut skipped,
            _ => &mut failed,
        };
        *count += 1;
        used_by_all += used.unwrap_or_default();
        let (elapsed, used) = (told(*elapsed), used.map_or_else(String::new, told));
        let line = format!("{name:<10} {how:<8} {elapsed:>12} {used:>12}  {why}");
        let _infallible = writeln!(text, "{}", line.trim_end());
    }
    text + &format!(
        "\nin {}, {} of the processors\n{passed} passed, {failed} failed, {skipped} skipped\n",
        told(elapsed),
        told(used_by_all)
    )
}

/// A duration as people read it.
pub(crate) fn told(duration: Duration) -> String {
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
        let ended = |verdict, millis| Ended {
            verdict,
            elapsed: Duration::from_millis(millis),
            used: Some(Duration::from_millis(2 * millis)),
        };
        let text = summary(
            &[
                ("a", Some(ended(Ok(Outcome::Passed), 1500))),
                ("b", Some(Ended::skipped("no such machine".to_owned()))),
                ("c", Some(ended(Err("it broke".to_owned()), 61_000))),
                ("d", None),
            ],
            Duration::from_secs(62),
        );
        assert_eq!(text.lines().last(), Some("1 passed, 1 failed, 1 skipped"));
        for line in [
            "a          passed          1.5 s        3.0 s",
            "b          skipped         0.0 s               no such machine",
            "c          FAILED   1 min 01 s   2 min 02 s  it broke",
            "d          not run",
            "in 1 min 02 s, 2 min 05 s of the processors",
        ] {
            assert!(
                text.lines().any(|found| found.split_whitespace().eq(line.split_whitespace())),
                "{line}:\n{text}"
            );
        }
    }

    #[test]
    fn nothing_runs_after_a_failure() {
        let step = |name, run| Step { name, does: "nothing", run };
        let passes = step("passes", |_| Ok(Outcome::Passed));
        let fails = step("fails", |_| Err("it ran".to_owned()));
        let unreached = step("unreached", |_| panic!("it ran"));
        let workspace = Workspace::find().expect("this test runs in it");
        assert!(run(&workspace, &[&passes]).is_ok());
        assert!(run(&workspace, &[&passes, &fails, &unreached]).is_err());
    }

    #[test]
    fn the_time_of_the_processors_is_read_from_what_linux_tells() {
        let stat = "7 (a) (b 9) S 1 7 7 0 -1 4194560 1 2 3 4 150 50 1000 300 20 0 1 0 5 6 7";
        assert_eq!(used_told(stat), Some(Duration::from_secs(15)));
        assert_eq!(used_told("7 (a) S 1 7 7 0 -1 4194560 1 2 3 4 150 50"), None);
        assert_eq!(used_told(""), None);
        assert_eq!(used().is_some(), cfg!(target_os = "linux"));
    }

    #[test]
    fn durations_read_well() {
        assert_eq!(told(Duration::from_millis(50)), "0.1 s");
        assert_eq!(told(Duration::from_secs(125)), "2 min 05 s");
    }
}

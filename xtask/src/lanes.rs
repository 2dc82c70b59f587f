//! Runs the steps of `cargo xtask test` in two lanes: two steps at once, because most of them use one of two processors
//! for much of their time, or wait.
//!
//! The next step to begin is the first of the list that may. It waits for the steps that it names, and for the target
//! directory: cargo builds there for one caller at a time, so a second one would hold a lane and do nothing. After a
//! failure no step begins, and the other lane's step ends; after the time limit no step begins either, and the last
//! lines of those that run are printed.
//!
//! Each step runs in a process of its own. So its output is one file below the target directory, which is printed when
//! the step ends, and the system counts the time of the processors that it used. Two runs in one checkout do not meet
//! there: each has a directory of its own.

use std::any::Any;
use std::fs::{self, File};
use std::io::{self, IsTerminal as _, Write};
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::{self, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::files;
use crate::steps::{self, Ended, Outcome, Record, Step, told};
use crate::workspace::Workspace;

/// How many steps run at once.
const LANES: usize = 2;

/// What a step does with the build that the steps share, which is in the target directory itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Build {
    /// It builds there, which takes minutes. Meanwhile no other step can.
    Makes,
    /// It uses what the step `build` has made. Cargo only looks whether it is up to date, mostly when the step begins.
    Uses,
    /// It builds elsewhere, or not at all.
    Apart,
}

/// A step, and what it waits for.
pub(crate) struct Planned {
    pub(crate) step: Step,
    pub(crate) build: Build,
    /// The names of steps that end before it begins, if they are to run at all.
    pub(crate) after: &'static [&'static str],
}

/// Runs the steps, and prints the output of each and the summary. A step that would begin after the limit is skipped.
pub(crate) fn run(workspace: &Workspace, plan: &[&Planned], limit: Duration) -> Result<(), Failure> {
    let began = Instant::now();
    // Of this run alone: another one may go on in the same checkout.
    let directory = workspace.target.join("steps").join(process::id().to_string());
    files::empty(&directory).map_err(Failure::Broken)?;
    println!("what a step prints comes when it ends, and is in {} before", directory.display());
    let elapsed = || began.elapsed();
    let lanes = Lanes { workspace, plan, directory: &directory, elapsed: &elapsed, limit, execute: &apart };
    let records = lanes.run(&mut io::stdout().lock()).map_err(|error| Failure::Broken(error.to_string()))?;
    // It keeps its own name if another run ends at the same moment.
    let kept = keep(&directory).unwrap_or(directory);
    println!("\nwhat the steps printed is in {}", kept.display());
    print!("\n{}", steps::summary(&records, began.elapsed()));
    if steps::has_failed(&records) { Err(Failure::Failed) } else { Ok(()) }
}

/// Gives the directory of a run that has ended the name `last`, in place of that of the run before.
fn keep(directory: &Path) -> Result<PathBuf, String> {
    let last = directory.with_file_name("last");
    files::remove(&last)?;
    fs::rename(directory, &last).map_err(|error| format!("{}: {error}", last.display()))?;
    Ok(last)
}

/// Runs a step and writes its output to the file.
type Execute<'a> = dyn Fn(&Workspace, &Step, &Path) -> Ended + Sync + 'a;

struct Lanes<'a> {
    workspace: &'a Workspace,
    plan: &'a [&'a Planned],
    /// For the files with output.
    directory: &'a Path,
    /// The time since the run began.
    elapsed: &'a dyn Fn() -> Duration,
    /// After this time no step begins.
    limit: Duration,
    execute: &'a Execute<'a>,
}

/// Where a step is.
enum State {
    Waits,
    Runs,
    Ended(Ended),
}

impl Lanes<'_> {
    /// Runs all that may run, and writes what there is to read.
    fn run(&self, out: &mut impl Write) -> io::Result<Vec<Record>> {
        let mut states: Vec<State> = self.plan.iter().map(|_| State::Waits).collect();
        let (ends, ended) = mpsc::channel();
        let mut is_late = false;
        thread::scope(|scope| {
            loop {
                while let Some(at) = next(self.plan, &states) {
                    let name = self.plan[at].step.name;
                    let elapsed = (self.elapsed)();
                    if elapsed >= self.limit {
                        let why = format!("the steps before it took {}", told(elapsed));
                        writeln!(out, "\n== {name} skipped: {why}")?;
                        states[at] = State::Ended(Ended::skipped(why));
                        continue;
                    }
                    let output = self.output(name);
                    writeln!(out, "\n== {name} begins{}", self.beside(&states))?;
                    states[at] = State::Runs;
                    let ends = ends.clone();
                    let (execute, workspace, step) = (self.execute, self.workspace, &self.plan[at].step);
                    scope.spawn(move || {
                        let begin = Instant::now();
                        // What is not sent would be waited for without end.
                        let run = AssertUnwindSafe(|| execute(workspace, step, &output));
                        let ended = panic::catch_unwind(run).unwrap_or_else(|panic| {
                            Ended::failed(format!("it panicked: {}", message_of(&*panic)), begin)
                        });
                        // The receiver is there while a step runs, unless nothing can be printed any more.
                        drop(ends.send((at, output, ended)));
                    });
                }
                if !states.iter().any(|state| matches!(state, State::Runs)) {
                    break;
                }
                // The limit is reported once.
                let left = if is_late { Duration::MAX } else { self.limit.saturating_sub((self.elapsed)()) };
                let (at, output, ended) = match ended.recv_timeout(left) {
                    Ok(end) => end,
                    Err(RecvTimeoutError::Timeout) => {
                        is_late = true;
                        self.tell_running(&states, out)?;
                        continue;
                    }
                    Err(error) => return Err(io::Error::other(error)),
                };
                let Step { name, does, .. } = self.plan[at].step;
                writeln!(out, "\n== {}/{} {name}: {does}", at + 1, self.plan.len())?;
                if let Ok(mut output) = File::open(output) {
                    io::copy(&mut output, out)?;
                }
                writeln!(out, "{}", ended.line(self.workspace, name))?;
                states[at] = State::Ended(ended);
            }
            let ended = states.into_iter().map(|state| match state {
                State::Ended(ended) => Some(ended),
                State::Waits | State::Runs => None,
            });
            Ok(self.plan.iter().map(|planned| planned.step.name).zip(ended).collect())
        })
    }

    /// The file with the output of a step.
    fn output(&self, name: &str) -> PathBuf {
        self.directory.join(name).with_extension("txt")
    }

    /// The names of the steps that run.
    fn running(&self, states: &[State]) -> Vec<&'static str> {
        let running = self.plan.iter().zip(states).filter(|(_, state)| matches!(state, State::Runs));
        running.map(|(planned, _)| planned.step.name).collect()
    }

    fn beside(&self, states: &[State]) -> String {
        match &self.running(states)[..] {
            [] => String::new(),
            names => format!(" beside {}", names.join(", ")),
        }
    }

    /// Prints where the steps that run are. CI may end this before they do, and then there is nothing else of them.
    fn tell_running(&self, states: &[State], out: &mut impl Write) -> io::Result<()> {
        for name in self.running(states) {
            writeln!(out, "\n== {name} still runs after {}, and last printed:", told(self.limit))?;
            let output = fs::read(self.output(name)).unwrap_or_default();
            out.write_all(last_lines(&output, LINES_STILL))?;
        }
        out.flush()
    }
}

/// How many lines are printed of a step that still runs at the limit.
const LINES_STILL: usize = 20;

/// At most this number of last lines.
fn last_lines(text: &[u8], count: usize) -> &[u8] {
    let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    let before: usize = lines.iter().rev().skip(count).map(|line| line.len()).sum();
    &text[before..]
}

/// The step to begin now, if there is one.
fn next(plan: &[&Planned], states: &[State]) -> Option<usize> {
    let running = || plan.iter().zip(states).filter(|(_, state)| matches!(state, State::Runs));
    let has_failed = states.iter().any(|state| matches!(state, State::Ended(Ended { verdict: Err(_), .. })));
    if has_failed || running().count() == LANES {
        return None;
    }
    let is_building = running().any(|(planned, _)| planned.build == Build::Makes);
    let has_ended = |name: &str| {
        let mut steps = plan.iter().zip(states).filter(|(planned, _)| planned.step.name == name);
        steps.all(|(_, state)| matches!(state, State::Ended(_)))
    };
    plan.iter().zip(states).position(|(planned, state)| {
        matches!(state, State::Waits)
            && !(is_building && planned.build != Build::Apart)
            && planned.after.iter().all(|name| has_ended(name))
    })
}

/// The message of a panic.
fn message_of(panic: &dyn Any) -> &str {
    match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
        (Some(text), _) => text,
        (None, Some(text)) => text,
        (None, None) => "without a message",
    }
}

/// The first argument of `cargo xtask test` in the process of a step: a file for how it ended, and the step follow.
pub(crate) const ALONE: &str = "--alone";

/// Runs a step in a process of its own.
fn apart(workspace: &Workspace, step: &Step, output: &Path) -> Ended {
    let begin = Instant::now();
    ended_apart(workspace, step, output).unwrap_or_else(|why| Ended::failed(why, begin))
}

fn ended_apart(workspace: &Workspace, step: &Step, output: &Path) -> Result<Ended, String> {
    let named = |error: io::Error| format!("{}: {error}", output.display());
    let file = File::create(output).map_err(named)?;
    let result = output.with_extension("result");
    // Nothing that was there before counts.
    File::create(&result).map_err(named)?;
    // On Linux this is the program that runs, also when a step has built another in its place.
    let this = if cfg!(target_os = "linux") {
        "/proc/self/exe".into()
    } else {
        std::env::current_exe().map_err(named)?
    };
    let mut command = workspace.command(this);
    command.args(["test", ALONE]).arg(&result).arg(step.name).args(workspace.is_full.then_some("--full"));
    if io::stdout().is_terminal() && std::env::var_os("CARGO_TERM_COLOR").is_none() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    let status = command.stdout(file.try_clone().map_err(named)?).stderr(Stdio::from(file)).status();
    let status = status.map_err(|error| format!("cannot run the step: {error}"))?;
    let text = fs::read_to_string(&result).map_err(named)?;
    outcome_of(status, &text)
        .ok_or_else(|| format!("its process ended by {status}, and left {text:?} as its result"))
}

/// How the step ended, if its process ended well: one that was killed, or could not write, may have left half of it.
fn outcome_of(status: ExitStatus, text: &str) -> Option<Ended> {
    if status.success() { read(text) } else { None }
}

/// What the process of a step does.
pub(crate) fn alone(workspace: &Workspace, step: &Step, result: &Path) -> Result<(), Failure> {
    files::write(result, written(&steps::run_one(workspace, step)).as_bytes()).map_err(Failure::Broken)
}

/// How a step ended, as a process tells it to another: two lines, and the reason.
fn written(ended: &Ended) -> String {
    let (how, why) = match &ended.verdict {
        Ok(Outcome::Passed) => ("passed", ""),
        Ok(Outcome::Skipped(why)) => ("skipped", &why[..]),
        Err(why) => ("failed", &why[..]),
    };
    let used = ended.used.map_or_else(|| "-".to_owned(), |used| used.as_millis().to_string());
    format!("{how}\n{} {used}\n{why}", ended.elapsed.as_millis())
}

fn read(text: &str) -> Option<Ended> {
    let (how, rest) = text.split_once('\n')?;
    let (times, why) = rest.split_once('\n')?;
    let (elapsed, used) = times.split_once(' ')?;
    let verdict = match how {
        "passed" => Ok(Outcome::Passed),
        "skipped" => Ok(Outcome::Skipped(why.to_owned())),
        "failed" => Err(why.to_owned()),
        _ => return None,
    };
    let millis = |text: &str| Some(Duration::from_millis(text.parse().ok()?));
    let used = if used == "-" { None } else { Some(millis(used)?) };
    Some(Ended { verdict, elapsed: millis(elapsed)?, used })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::os::unix::process::ExitStatusExt as _;
    use std::sync::Barrier;

    fn planned(name: &'static str, build: Build, after: &'static [&'static str]) -> Planned {
        Planned { step: Step { name, does: "what it does", run: |_| Ok(Outcome::Passed) }, build, after }
    }

    fn ended(verdict: steps::Verdict) -> Ended {
        Ended { verdict, elapsed: Duration::ZERO, used: None }
    }

    /// The name of the step that begins beside those that run and after those that have passed.
    fn begins(plan: &[Planned], running: &[&str], passed: &[&str]) -> Option<&'static str> {
        let state = |planned: &Planned| match planned.step.name {
            name if running.contains(&name) => State::Runs,
            name if passed.contains(&name) => State::Ended(ended(Ok(Outcome::Passed))),
            _ => State::Waits,
        };
        let states: Vec<State> = plan.iter().map(state).collect();
        next(&plan.iter().collect::<Vec<_>>(), &states).map(|at| plan[at].step.name)
    }

    /// Runs fake steps; returns how each ended, and what was printed.
    fn run_fakes(name: &str, plan: &[Planned], execute: &Execute<'_>) -> (Vec<Record>, String) {
        let mut out = Vec::new();
        let records = run_fakes_until(name, plan, Duration::MAX, execute, &mut out);
        (records, String::from_utf8(out).expect("it is text"))
    }

    /// Runs fake steps with a limit in minutes, one of which passes each time that the clock is read.
    fn run_fakes_until(
        name: &str,
        plan: &[Planned],
        limit: Duration,
        execute: &Execute<'_>,
        out: &mut impl Write,
    ) -> Vec<Record> {
        let workspace = Workspace::find().expect("this test runs in it");
        let directory = workspace.target.join("tmp").join(name);
        files::empty(&directory).expect("it is made");
        let plan: Vec<&Planned> = plan.iter().collect();
        let minutes = Cell::new(0);
        let elapsed = || Duration::from_secs(60 * minutes.replace(minutes.get() + 1));
        let (workspace, directory, elapsed) = (&workspace, &directory, &elapsed);
        let lanes = Lanes { workspace, plan: &plan, directory, elapsed, limit, execute };
        lanes.run(out).expect("memory can be written to")
    }

    #[test]
    fn the_first_step_that_may_begin_does() {
        let plan = [
            planned("clippy", Build::Makes, &[]),
            planned("build", Build::Makes, &[]),
            planned("tests", Build::Uses, &["build"]),
            planned("loom", Build::Apart, &[]),
            planned("weakened", Build::Apart, &["loom"]),
            planned("docs", Build::Makes, &[]),
        ];
        assert_eq!(begins(&plan, &[], &[]), Some("clippy"));
        assert_eq!(begins(&plan, &["clippy"], &[]), Some("loom"), "another build would wait");
        assert_eq!(begins(&plan, &["clippy"], &["loom"]), Some("weakened"));
        assert_eq!(begins(&plan, &["clippy", "loom"], &[]), None, "there are two lanes");
        assert_eq!(begins(&plan, &["loom"], &["clippy"]), Some("build"));
        assert_eq!(begins(&plan, &["loom"], &["clippy", "build"]), Some("tests"));
        assert_eq!(begins(&plan, &["build"], &["clippy", "loom", "weakened"]), None, "tests needs the build");
        assert_eq!(begins(&plan, &["tests"], &["clippy", "build", "loom", "weakened"]), Some("docs"));
        assert_eq!(begins(&plan[4..], &[], &[]), Some("weakened"), "loom does not run at all");
        assert_eq!(begins(&plan[2..3], &[], &["tests"]), None);
    }

    #[test]
    fn two_steps_run_at_once_and_the_output_of_each_is_whole() {
        let plan = [planned("one", Build::Apart, &[]), planned("two", Build::Apart, &[])];
        let both = Barrier::new(2);
        let execute = |_: &Workspace, step: &Step, output: &Path| {
            let mut file = File::create(output).expect("it is made");
            for line in 1..=3 {
                // Each line of one step is beside the same line of the other.
                both.wait();
                writeln!(file, "{} {line}", step.name).expect("it is written");
            }
            ended(Ok(Outcome::Passed))
        };
        let (records, printed) = run_fakes("the_output_of_each_is_whole", &plan, &execute);
        assert!(!steps::has_failed(&records));
        assert!(printed.contains("== two begins beside one\n"), "{printed}");
        for (number, name) in [(1, "one"), (2, "two")] {
            let whole = format!(
                "\n== {number}/2 {name}: what it does\n{name} 1\n{name} 2\n{name} 3\n== {name} passed in 0.0 s\n"
            );
            assert!(printed.contains(&whole), "{printed}");
        }
    }

    #[test]
    fn after_a_failure_the_other_step_ends_and_no_step_begins() {
        let plan = [
            planned("fails", Build::Apart, &[]),
            planned("passes", Build::Apart, &[]),
            planned("unreached", Build::Apart, &["fails"]),
        ];
        let both = Barrier::new(2);
        let execute = |_: &Workspace, step: &Step, _: &Path| {
            both.wait();
            ended(if step.name == "fails" { Err("it broke".to_owned()) } else { Ok(Outcome::Passed) })
        };
        let (records, printed) = run_fakes("after_a_failure", &plan, &execute);
        assert!(steps::has_failed(&records) && printed.contains("fails FAILED after 0.0 s: it broke"));
        let verdicts: Vec<_> =
            records.iter().map(|(_, ended)| ended.as_ref().map(|one| one.verdict.is_ok())).collect();
        assert_eq!(verdicts, [Some(false), Some(true), None]);
    }

    /// Nothing was sent, and the run waited for ever.
    #[test]
    fn a_step_that_panics_fails() {
        let plan = [planned("panics", Build::Apart, &[])];
        let execute = |_: &Workspace, step: &Step, _: &Path| panic!("{} is out of luck", step.name);
        let (records, printed) = run_fakes("a_step_that_panics", &plan, &execute);
        assert!(
            steps::has_failed(&records) && printed.contains("it panicked: panics is out of luck"),
            "{printed}"
        );
    }

    #[test]
    fn what_would_begin_too_late_is_skipped_and_does_not_fail() {
        let plan = [
            planned("first", Build::Apart, &[]),
            planned("second", Build::Apart, &["first"]),
            planned("third", Build::Apart, &["second"]),
        ];
        let execute = |_: &Workspace, step: &Step, _: &Path| {
            assert_eq!(step.name, "first", "it begins too late");
            ended(Ok(Outcome::Passed))
        };
        let mut out = Vec::new();
        let records = run_fakes_until("too_late", &plan, Duration::from_secs(120), &execute, &mut out);
        assert!(!steps::has_failed(&records));
        let printed = String::from_utf8(out).expect("it is text");
        assert!(printed.contains("== second skipped: the steps before it took 2 min 00 s"), "{printed}");
        let skipped = |record: &Record| matches!(&record.1, Some(Ended { verdict: Ok(Outcome::Skipped(why)), .. }) if why.contains("before it"));
        assert!(skipped(&records[1]) && skipped(&records[2]), "{records:?}");
    }

    /// A writer that lets a step go on when it has printed this.
    struct Until<'a>(Vec<u8>, &'a str, &'a Barrier);

    impl Write for Until<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            assert!(String::from_utf8_lossy(&self.0).contains(self.1));
            self.2.wait();
            Ok(())
        }
    }

    /// CI ended a run in which a step hung, and showed nothing of it.
    #[test]
    fn at_the_limit_the_last_lines_of_a_running_step_are_printed() {
        let plan = [planned("hangs", Build::Apart, &[])];
        let printed = Barrier::new(2);
        let execute = |_: &Workspace, _: &Step, output: &Path| {
            fs::write(output, "it begins\nit hangs\n").expect("it is written");
            printed.wait();
            ended(Ok(Outcome::Passed))
        };
        let last = "== hangs still runs after 1 min 00 s, and last printed:";
        let mut out = Until(Vec::new(), last, &printed);
        let records = run_fakes_until("at_the_limit", &plan, Duration::from_secs(60), &execute, &mut out);
        assert!(!steps::has_failed(&records));
        assert_eq!(String::from_utf8_lossy(&out.0).matches(last).count(), 1);
    }

    #[test]
    fn the_last_lines_are_found() {
        for (text, last) in
            [("", ""), ("a", "a"), ("a\nb\n", "a\nb\n"), ("a\nb\nc", "b\nc"), ("\n\n\n", "\n\n")]
        {
            assert_eq!(last_lines(text.as_bytes(), 2), last.as_bytes(), "{text:?}");
        }
    }

    #[test]
    fn the_outputs_of_the_last_run_are_kept() {
        let workspace = Workspace::find().expect("this test runs in it");
        let steps = workspace.target.join("tmp/the_outputs_of_the_last_run");
        files::empty(&steps).expect("it is made");
        for run in ["1", "2"] {
            files::write(&steps.join(run).join("fmt.txt"), run.as_bytes()).expect("it is written");
            assert_eq!(keep(&steps.join(run)), Ok(steps.join("last")));
            assert_eq!(fs::read_to_string(steps.join("last/fmt.txt")).expect("it is there"), run);
        }
        assert_eq!(files::entries(&steps).expect("it is there").len(), 1);
    }

    #[test]
    fn how_a_step_ended_is_told_from_one_process_to_the_other() {
        let why = "it broke\nin two lines".to_owned();
        for verdict in [Ok(Outcome::Passed), Ok(Outcome::Skipped(why.clone())), Err(why)] {
            for used in [None, Some(Duration::from_millis(1230))] {
                let ended = Ended { verdict: verdict.clone(), elapsed: Duration::from_millis(4560), used };
                assert_eq!(read(&written(&ended)), Some(ended));
            }
        }
        assert_eq!(read("passed\n"), None, "it was cut off");
        assert_eq!(read(""), None, "it was never written");
    }

    /// It counted, although the process had been killed.
    #[test]
    fn what_a_process_tells_counts_only_if_it_ended_well() {
        let text = written(&ended(Ok(Outcome::Passed)));
        assert_eq!(outcome_of(ExitStatus::from_raw(0), &text), read(&text));
        for status in [9, 1 << 8] {
            assert_eq!(outcome_of(ExitStatus::from_raw(status), &text), None);
        }
    }
}

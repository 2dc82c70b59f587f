//! Starts arms, each in its own process, and reads their messages.
//!
//! No arm outlives the run. Each watches its standard input, which closes when the run's process ends for any reason,
//! or asks the system to end it then.

use crate::alloc;
use crate::counters::callgrind;
use crate::data::{self, Walk};
use crate::errors::told;
use crate::job::{Job, Message, Outcome, TURN, Task};
use crate::live::Live;
use crate::options::MallocPages;
use crate::turns;
use std::io::{self, BufRead, BufReader, Lines, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

/// Starts arms.
pub(crate) struct Runner {
    program: std::path::PathBuf,
    malloc_pages: MallocPages,
    /// The progress line on the terminal.
    pub(crate) live: Live,
    started: Instant,
    /// The arms of the run, as far as known.
    expected: Work,
    done: Work,
}

/// A number of arms.
#[derive(Default)]
struct Work {
    arms: usize,
    /// Of all of them together, see [`Job::weight`].
    weight: u64,
}

impl Work {
    fn add(&mut self, arms: usize, weight: u64) {
        self.arms += arms;
        self.weight = self.weight.saturating_add(weight.saturating_mul(arms as u64));
    }
}

impl Runner {
    /// A runner of this program.
    pub(crate) fn new(malloc_pages: MallocPages) -> io::Result<Self> {
        Ok(Runner {
            program: std::env::current_exe()?,
            malloc_pages,
            live: Live::new(),
            started: Instant::now(),
            expected: Work::default(),
            done: Work::default(),
        })
    }

    /// Expects `arms` more arms of this weight each, for the estimate of the time that is left.
    pub(crate) fn expect(&mut self, arms: usize, weight: u64) {
        self.expected.add(arms, weight);
    }

    /// The same, of another program: an earlier build of this one, say. The error names it if it cannot be run.
    pub(crate) fn of(mut self, program: &Path) -> io::Result<Self> {
        self.program = program.canonicalize().map_err(|error| told(program.display(), &error))?;
        Ok(self)
    }

    fn progress(&self, label: &str, step: &str) {
        let seconds = self.started.elapsed().as_secs();
        let at = self.done.arms + 1;
        let (all, left) = (self.expected.arms.max(at), left(seconds, self.done.weight, self.expected.weight));
        self.live.draw(&format!(
            "{:02}:{:02} [{at}/{all}{left}] {label}: {step}",
            seconds / 60,
            seconds % 60
        ));
    }

    /// Runs one arm to its end.
    pub(crate) fn arm(&mut self, job: &Job, walk: &Walk) -> Outcome {
        let mut arms = by_turns(std::slice::from_mut(self), &[(0, job)], walk);
        arms.pop().unwrap_or_else(|| Outcome::Failed("it was not started".to_owned()))
    }

    fn start(&self, job: &Job, walk: &Walk) -> io::Result<Started> {
        let mut command = match &job.simulation {
            Some(directory) => callgrind::command(&self.program, &job.events, directory),
            None => Command::new(&self.program),
        };
        command.arg("arm").arg(serde_json::to_string(job)?).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.env(alloc::VARIABLE, job.allocator.name());
        if self.malloc_pages == MallocPages::Thp {
            command.env("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");
        }
        let mut child = command.spawn()?;
        let mut stdin = child.stdin.take();
        let sent = stdin.as_mut().map_or(Ok(()), |stdin| data::send_paths(walk, stdin));
        let lines = child.stdout.take().map(|stdout| BufReader::new(stdout).lines());
        Ok(Started { child, stdin, sent, lines, outcome: None })
    }
}

/// An arm that was started.
struct Started {
    child: Child,
    stdin: Option<ChildStdin>,
    /// Whether the job was sent.
    sent: io::Result<()>,
    /// Its messages; `None` after the last one.
    lines: Option<Lines<BufReader<ChildStdout>>>,
    outcome: Option<Outcome>,
}

impl Started {
    /// Reads messages until the arm waits for its turn or closes its output.
    fn listen(&mut self, see: impl Fn(&str)) -> io::Result<()> {
        let Some(lines) = &mut self.lines else { return Ok(()) };
        for line in lines {
            match serde_json::from_str(&line?) {
                Ok(Message::Progress(step)) if step == TURN => return Ok(()),
                Ok(Message::Progress(step)) => see(&step),
                Ok(Message::Done(done)) => self.outcome = Some(done),
                Err(error) => {
                    let why = format!("sent an invalid message: {error}");
                    self.outcome = Some(Outcome::Failed(why));
                }
            }
        }
        self.lines = None;
        Ok(())
    }

    /// Lets it go on. One that cannot hear it any more has ended, which is heard then.
    fn go(&mut self) {
        if let Some(stdin) = &mut self.stdin {
            drop(stdin.write_all(b"\n").and_then(|()| stdin.flush()));
        }
    }

    fn end(mut self) -> io::Result<Outcome> {
        let status = self.child.wait()?;
        // An arm that sent its outcome had read enough of the job.
        Ok(self.outcome.unwrap_or_else(|| match self.sent {
            Ok(()) => Outcome::Failed(format!("its process broke off: {status}")),
            Err(error) => Outcome::Failed(format!("its process broke off: {status}; {error}")),
        }))
    }
}

/// Runs arms to their ends, each by the runner of that number. One arm works at a time. An arm starts when the previous
/// one has ended or waits for its turn; then the waiting arms take turns, alternating between the order given and that
/// order with neighbours exchanged.
pub(crate) fn by_turns(runners: &mut [Runner], arms: &[(usize, &Job)], walk: &Walk) -> Vec<Outcome> {
    let mut started: Vec<io::Result<Started>> = Vec::new();
    let listen = |runners: &[Runner], at: usize, arm: &mut Started| {
        let (runner, job) = arms[at];
        arm.listen(|step| runners[runner].progress(&label(job), step))
    };
    for (at, (runner, job)) in arms.iter().enumerate() {
        runners[*runner].progress(&label(job), "starts");
        let arm = runners[*runner].start(job, walk);
        started.push(arm.and_then(|mut arm| listen(runners, at, &mut arm).map(|()| arm)));
    }
    for turn in 0.. {
        let works = |arm: &io::Result<Started>| arm.as_ref().is_ok_and(|arm| arm.lines.is_some());
        if !started.iter().any(works) {
            break;
        }
        for place in 0..started.len() {
            let exchanged = if (place ^ 1) < started.len() { place ^ 1 } else { place };
            let at = if turn % 2 == 0 { place } else { exchanged };
            if let Ok(arm) = &mut started[at]
                && arm.lines.is_some()
            {
                arm.go();
                if let Err(error) = listen(runners, at, arm) {
                    started[at] = Err(error);
                }
            }
        }
    }
    let ends = started.into_iter().zip(arms).map(|(arm, (runner, job))| {
        runners[*runner].done.add(1, job.weight());
        runners[*runner].live.clear();
        arm.and_then(Started::end).unwrap_or_else(|error| Outcome::Failed(error.to_string()))
    });
    ends.collect()
}

/// What an arm is called in the progress line.
fn label(job: &Job) -> String {
    let kind = match &job.task {
        Task::Store(_) => "store".to_owned(),
        Task::Pressure(orders) => orders.scenario.kind().to_owned(),
        Task::Remix(orders) => format!("of {} runs", orders.runs),
        Task::Chase(_) => job.pages.name().to_owned(),
        _ => job.kind.name().to_owned(),
    };
    format!("{} {kind} {}", job.subject, keys(job.keys))
}

/// Sends a message from an arm to the run's process. If the pipe is closed, the arm ends.
pub(crate) fn tell(message: &Message) {
    let mut out = io::stdout().lock();
    let line = serde_json::to_string(message).unwrap_or_default();
    if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
        std::process::exit(1);
    }
}

/// Ends this arm when the run's process ends. Until then, each byte of standard input gives the arm a turn.
pub(crate) fn end_with_parent() {
    let wait = || {
        let mut byte = [0];
        while matches!(io::stdin().read(&mut byte), Ok(1..)) {
            turns::give(1);
        }
        std::process::exit(1);
    };
    // If the thread cannot start, the next message to a closed pipe ends the arm.
    drop(std::thread::Builder::new().name("watch".to_owned()).spawn(wait));
}

/// The same without a thread: the system kills this arm. The simulator would schedule a thread at random, and the
/// counts would vary.
pub(crate) fn die_with_parent() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    // If the run's process ended before the call above, this write fails and ends the arm.
    tell(&Message::Progress("starts".to_owned()));
}

/// A number of keys, short.
pub(crate) fn keys(keys: u64) -> String {
    match keys {
        _ if keys >= 1_000_000 && keys.is_multiple_of(100_000) => format!("{}M", keys as f64 / 1e6),
        _ if keys >= 1000 && keys.is_multiple_of(1000) => format!("{}K", keys / 1000),
        _ => keys.to_string(),
    }
}

/// How much longer it takes if what is left of the work takes as long as what is done; nothing before any is done, or
/// if it is not known how much there is.
fn left(seconds: u64, done: u64, all: u64) -> String {
    if done == 0 || done >= all {
        return String::new();
    }
    match (seconds as f64 * (all - done) as f64 / done as f64) as u64 {
        less @ ..60 => format!(", about {less} s left"),
        more => format!(", about {} min left", more.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_that_is_left_is_estimated() {
        assert_eq!(left(5, 0, 3), "");
        assert_eq!(left(10, 1, 3), ", about 20 s left");
        assert_eq!(left(100, 1, 3), ", about 4 min left");
        for all in [3, 2, 0] {
            assert_eq!(left(100, 3, all), "");
        }
    }

    /// The ten short arms of the conformance kit weighed as much as the long arm that is left.
    #[test]
    fn the_estimate_weighs_arms() {
        let mut runner = Runner::new(MallocPages::System).unwrap();
        runner.expect(10, 1000);
        runner.expect(1, 50_000_000);
        let conform = Job::of(Task::Conform(1000), "x", 0);
        (0..10).for_each(|_| runner.done.add(1, conform.weight()));
        assert_eq!((runner.done.arms, runner.expected.arms), (10, 11));
        assert_eq!(left(1, runner.done.weight, runner.expected.weight), ", about 84 min left");
    }
}

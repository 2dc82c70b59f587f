//! Starts arms, each in a process of its own, and listens to them.
//!
//! No arm outlives the run: each watches its standard input, which closes when the run's process ends,
//! however it ends; or has the system watch it.

use crate::alloc;
use crate::counters::callgrind;
use crate::data::{self, Walk};
use crate::job::{Job, Message, Outcome, Task};
use crate::options::MallocPages;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Starts arms.
pub(crate) struct Runner {
    program: std::path::PathBuf,
    malloc_pages: MallocPages,
    terminal: bool,
    started: Instant,
    /// Arms that the run has, as far as it is known.
    pub(crate) arms: usize,
    done: usize,
}

impl Runner {
    /// A runner of this program.
    pub(crate) fn new(malloc_pages: MallocPages, arms: usize) -> io::Result<Self> {
        Ok(Runner {
            program: std::env::current_exe()?,
            malloc_pages,
            terminal: io::stderr().is_terminal(),
            started: Instant::now(),
            arms,
            done: 0,
        })
    }

    /// The same, of another program: an earlier build of this one, say. The error names it if it cannot be run.
    pub(crate) fn of(mut self, program: &Path) -> io::Result<Self> {
        let told = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", program.display()));
        self.program = program.canonicalize().map_err(told)?;
        Ok(self)
    }

    fn progress(&self, label: &str, step: &str) {
        if self.terminal {
            let seconds = self.started.elapsed().as_secs();
            let (at, all) = (self.done + 1, self.arms.max(self.done + 1));
            eprint!("\r\x1b[K{:02}:{:02} [{at}/{all}] {label}: {step}", seconds / 60, seconds % 60);
        }
    }

    /// Takes the progress line off the terminal.
    pub(crate) fn clear(&self) {
        if self.terminal {
            eprint!("\r\x1b[K");
        }
    }

    /// Runs one arm to its end.
    pub(crate) fn arm(&mut self, job: &Job, walk: &Walk) -> Outcome {
        let kind = match &job.task {
            Task::Store(_) => "store".to_owned(),
            Task::Remix(orders) => format!("of {} runs", orders.runs),
            _ => job.kind.name().to_owned(),
        };
        let label = format!("{} {kind} {}", job.subject, keys(job.keys));
        self.progress(&label, "starts");
        let outcome = self.talk(job, walk, &label).unwrap_or_else(|error| Outcome::Failed(error.to_string()));
        self.done += 1;
        self.clear();
        outcome
    }

    fn talk(&self, job: &Job, walk: &Walk, label: &str) -> io::Result<Outcome> {
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
        let mut outcome = None;
        if let Some(stdout) = child.stdout.take() {
            for line in BufReader::new(stdout).lines() {
                match serde_json::from_str(&line?) {
                    Ok(Message::Progress(step)) => self.progress(label, &step),
                    Ok(Message::Done(done)) => outcome = Some(done),
                    Err(error) => {
                        outcome = Some(Outcome::Failed(format!("said what nobody understands: {error}")))
                    }
                }
            }
        }
        let status = child.wait()?;
        // One that has answered needed no more than it took.
        Ok(outcome.unwrap_or_else(|| match sent {
            Ok(()) => Outcome::Failed(format!("its process broke off: {status}")),
            Err(error) => Outcome::Failed(format!("its process broke off: {status}; {error}")),
        }))
    }
}

/// Tells the run's process something, from an arm. If nobody listens any more, the arm ends.
pub(crate) fn tell(message: &Message) {
    let mut out = io::stdout().lock();
    let line = serde_json::to_string(message).unwrap_or_default();
    if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
        std::process::exit(1);
    }
}

/// Ends this arm when the run's process does.
pub(crate) fn end_with_parent() {
    let wait = || {
        let mut byte = [0];
        while matches!(io::stdin().read(&mut byte), Ok(1..)) {}
        std::process::exit(1);
    };
    // Without the thread, the next message that nobody takes ends the arm.
    drop(std::thread::Builder::new().name("watch".to_owned()).spawn(wait));
}

/// The same without a thread, which a simulation would take turns with as it happens: the system kills this arm.
pub(crate) fn die_with_parent() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    // If it has ended before that, nobody takes this.
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

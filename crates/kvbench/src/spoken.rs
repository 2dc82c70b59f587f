//! Structures in any language: programs with a line protocol.
//!
//! kvbench writes lines to the program's standard input and reads its standard output. Numbers are decimal and below
//! 2^64. The first line is `kvbench 1 u64`; the program replies `ordered` or `unordered`. Requests follow, each with
//! `N` further lines of a key, or of a key and a value:
//!
//! | request | effect, and SUM |
//! |---|---|
//! | `insert N` | each key is mapped to its value |
//! | `get N` | the sum of the values that are there |
//! | `remove N` | the number of keys that were there |
//! | `scan N PAIRS` | up to PAIRS pairs from each key on; the sum starts at 0, and each pair rotates it left by one bit, then adds key and value |
//! | `iterate 0` | the same over all pairs, in order |
//!
//! The program reads the request, replies `ready`, waits for the line `go`, executes the request, and replies
//! `done SUM`, for `iterate` `done SUM PAIRS`; sums are modulo 2^64. kvbench times from `go` to `done`, so parsing and
//! printing numbers is not timed.
//!
//! Further requests check the content and are not timed. The reply to `show get N` is a line for each key, its value or
//! `-`. The reply to `show scan 1 PAIRS` and `show all 0` is lines `KEY VALUE`, then a line `.`. An unordered program
//! may show all pairs in any order.
//!
//! The program ends at the end of its input.
#![expect(
    unsafe_code,
    reason = "between fork and exec, prctl asks the system to end the program with this process"
)]

use crate::data::{Block, Kind, U64};
use crate::measure::{Facts, Measured, SeeAnswer, SeePair, SeeValue, Timed, Watch};
use forrest_base::lock;
use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How such a subject is named, before its program.
pub(crate) const PREFIX: &str = "exec:";
/// Maximum length of a program's line, in bytes.
const LINE_BYTES_MAX: u64 = 1 << 10;
/// Bytes handed over at once.
const BUFFER_BYTES: usize = 1 << 16;

type Pairs = <U64 as Kind>::Block;

/// A program.
pub(crate) struct Spoken {
    child: Child,
    is_ordered: bool,
    lines: Mutex<Lines>,
}

/// The connection to the program.
struct Lines {
    to: BufWriter<ChildStdin>,
    from: BufReader<ChildStdout>,
    line: String,
    /// The first error; no line is sent after it.
    fault: Option<String>,
}

impl Lines {
    fn say(&mut self, line: &str) -> io::Result<()> {
        self.to.write_all(line.as_bytes())
    }

    /// Reads the next line of the program.
    fn hear(&mut self) -> io::Result<&str> {
        self.to.flush()?;
        self.line.clear();
        let read = (&mut self.from).take(LINE_BYTES_MAX).read_line(&mut self.line)?;
        if read == 0 {
            return Err(io::Error::other("it ended"));
        }
        match self.line.strip_suffix('\n') {
            Some(line) => Ok(line.trim_end_matches('\r')),
            None => Err(io::Error::other(format!("a line is longer than {LINE_BYTES_MAX} bytes"))),
        }
    }

    fn expect(&mut self, wanted: &str) -> io::Result<()> {
        match self.hear()? {
            line if line == wanted => Ok(()),
            line => Err(unexpected(line, wanted)),
        }
    }

    /// Sends a request with the pairs of a block.
    fn ask(&mut self, what: &str, block: &Pairs, with_values: bool) -> io::Result<()> {
        let mut line = String::new();
        for at in 0..block.len() {
            line.clear();
            let end = match with_values {
                true => writeln!(line, "{} {}", block.key(at), block.value(at)),
                false => writeln!(line, "{}", block.key(at)),
            };
            end.map_err(io::Error::other)?;
            if at == 0 {
                self.say(what)?;
            }
            self.say(&line)?;
        }
        if block.len() == 0 { self.say(what) } else { Ok(()) }
    }

    /// Starts the request and times it. Returns the sum, and the number of pairs if the program reports it.
    fn go(&mut self, ops: usize) -> io::Result<(Timed, Option<u64>)> {
        self.expect("ready")?;
        let watch = Watch::start();
        self.say("go\n")?;
        let line = self.hear()?;
        let mut words = line.strip_prefix("done ").unwrap_or_default().split(' ').map(str::parse::<u64>);
        let (Some(Ok(sum)), pairs) = (words.next(), words.next()) else {
            return Err(unexpected(line, "done SUM"));
        };
        let timed = watch.stop(ops as u64, sum);
        // This thread only waits, so the elapsed time replaces its CPU time. What others had is unknown.
        Ok((Timed { cpu: timed.time, spent: Duration::ZERO, ..timed }, pairs.and_then(Result::ok)))
    }

    /// Shows pairs until a line with nothing but a dot.
    fn pairs(&mut self, see: SeePair<'_, U64>) -> io::Result<()> {
        loop {
            let line = self.hear()?;
            if line == "." {
                return Ok(());
            }
            let pair = line.split_once(' ').map(|(key, value)| (key.parse(), value.parse()));
            let Some((Ok(key), Ok(value))) = pair else { return Err(unexpected(line, "KEY VALUE")) };
            see(key, value);
        }
    }
}

fn unexpected(line: &str, wanted: &str) -> io::Error {
    io::Error::other(format!("unexpected line {line:?}, expected \"{wanted}\""))
}

impl Spoken {
    /// Starts a program. Fails if it does not start or does not reply as the protocol demands.
    pub(crate) fn start(program: &str) -> Result<Spoken, String> {
        let mut command = Command::new(program);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        #[cfg(target_os = "linux")]
        {
            use std::os::unix::process::CommandExt;
            let end_with_parent = || {
                let killed = Some(rustix::process::Signal::KILL);
                rustix::process::set_parent_process_death_signal(killed).map_err(io::Error::from)
            };
            // SAFETY: one system call, which allocates nothing and takes no lock.
            unsafe { command.pre_exec(end_with_parent) };
        }
        let mut child = command.spawn().map_err(|error| format!("{program} cannot be started: {error}"))?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(format!("{program} has no standard input and output"));
        };
        let mut lines = Lines {
            to: BufWriter::with_capacity(BUFFER_BYTES, stdin),
            from: BufReader::with_capacity(BUFFER_BYTES, stdout),
            line: String::new(),
            fault: None,
        };
        let kind = lines.say("kvbench 1 u64\n").and_then(|()| lines.hear()).map(str::to_owned);
        let is_ordered = match kind.as_deref() {
            Ok("ordered") => true,
            Ok("unordered") => false,
            Ok(line) => {
                return Err(format!("{program}: {}", unexpected(line, "ordered\" or \"unordered")));
            }
            Err(error) => return Err(format!("{program}: {error}")),
        };
        Ok(Spoken { child, is_ordered, lines: Mutex::new(lines) })
    }

    /// What it did wrong in speaking, if anything.
    pub(crate) fn end(mut self) -> Option<String> {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
        self.lines.into_inner().unwrap_or_else(PoisonError::into_inner).fault
    }

    /// Speaks with it, unless something has gone wrong before.
    fn speak<T: Default>(&self, about: impl FnOnce(&mut Lines) -> io::Result<T>) -> T {
        let mut lines = lock(&self.lines);
        if lines.fault.is_some() {
            return T::default();
        }
        about(&mut lines).unwrap_or_else(|error| {
            lines.fault = Some(error.to_string());
            T::default()
        })
    }

    fn whole(&self, what: &str, block: &Pairs, with_values: bool) -> Timed {
        let what = format!("{what}\n");
        self.speak(|lines| {
            lines.ask(&what, block, with_values)?;
            lines.go(block.len()).map(|(timed, _)| timed)
        })
    }

    fn one(&self, what: &str, key: u64, value: u64) -> u64 {
        let (what, with_value) = (format!("{what} 1\n"), what == "insert");
        self.speak(|lines| {
            lines.say(&what)?;
            lines.say(&if with_value { format!("{key} {value}\n") } else { format!("{key}\n") })?;
            lines.go(1).map(|(timed, _)| timed.sum)
        })
    }
}

impl Measured<U64> for Spoken {
    fn facts(&self) -> Facts {
        Facts {
            ordered: self.is_ordered,
            is_static: false,
            answers: true,
            back: false,
            batched: false,
            retains: false,
            replaces: true,
            counted: false,
            shared: false,
            by_block: true,
        }
    }

    fn process(&self) -> Option<u32> {
        Some(self.child.id())
    }

    fn note(&self) -> Option<String> {
        Some("resident: what its process grew by; all else of its memory is unknown".to_owned())
    }

    fn insert_all(&mut self, block: &Pairs) -> Timed {
        Timed { sum: 0, ..self.whole(&format!("insert {}", block.len()), block, true) }
    }

    fn remove_all(&mut self, block: &Pairs) -> Timed {
        self.whole(&format!("remove {}", block.len()), block, false)
    }

    fn get_all(&self, block: &Pairs) -> Timed {
        self.whole(&format!("get {}", block.len()), block, false)
    }

    fn scan_all(&self, block: &Pairs, count: usize) -> Timed {
        self.whole(&format!("scan {} {count}", block.len()), block, false)
    }

    fn iterate_all(&self) -> Timed {
        self.speak(|lines| {
            lines.say("iterate 0\n")?;
            let (timed, pairs) = lines.go(0)?;
            let pairs = pairs
                .ok_or_else(|| io::Error::other("the reply \"done\" to iterate lacks the number of pairs"))?;
            Ok(Timed { ops: pairs, bytes: pairs.saturating_mul(16), ..timed })
        })
    }

    // To be checked.

    fn insert_one(&mut self, key: u64, value: u64) {
        self.one("insert", key, value);
    }

    fn remove_one(&mut self, key: u64) -> bool {
        self.one("remove", key, 0) == 1
    }

    fn get_one(&self, key: u64, see: SeeValue<'_, U64>) {
        self.get_batch(&[key], &mut |_, value| value.into_iter().for_each(&mut *see));
    }

    fn get_batch(&self, keys: &[u64], see: SeeAnswer<'_, U64>) {
        self.speak(|lines| {
            lines.say(&format!("show get {}\n", keys.len()))?;
            keys.iter().try_for_each(|key| lines.say(&format!("{key}\n")))?;
            for at in 0..keys.len() {
                let line = lines.hear()?;
                match line.parse() {
                    Ok(value) => see(at, Some(value)),
                    Err(_) if line == "-" => see(at, None),
                    Err(_) => return Err(unexpected(line, "VALUE\" or \"-")),
                }
            }
            Ok(())
        });
    }

    fn scan_one(&self, from: u64, count: usize, see: SeePair<'_, U64>) {
        self.speak(|lines| {
            lines.say(&format!("show scan 1 {count}\n{from}\n"))?;
            lines.pairs(see)
        });
    }

    fn show_all(&self, see: SeePair<'_, U64>) {
        self.speak(|lines| {
            lines.say("show all 0\n")?;
            lines.pairs(see)
        });
    }
}

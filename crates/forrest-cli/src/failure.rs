//! Why a command did not do what was asked, and the exit code that says so.

use crate::interrupt::{self, Interrupted};
use crate::term;
use forrest::ErrorKind;
use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Exit code when nothing was found, or a compare-and-swap did not match.
pub(crate) const NOT_FOUND: u8 = 1;
/// Exit code for a command line or a line of a script that makes no sense.
pub(crate) const USAGE: u8 = 2;
/// Exit code for damaged data, found by a checksum or by a wrong answer.
pub(crate) const DAMAGE: u8 = 3;
/// Exit code for every other error: input and output, limits, space, what a home cannot do.
pub(crate) const OTHER: u8 = 4;
/// Exit code when the reader of standard output has gone: 128 and the number of SIGPIPE.
pub(crate) const BROKEN_PIPE: u8 = 141;

/// What went wrong.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line, or a line of a script, makes no sense.
    Usage(String),
    /// So says the parser of arguments, which also has `--help` and `--version` to say.
    Arguments(clap::Error),
    /// Something else, at a place.
    At(Place, Box<Failure>),
    /// The library refused.
    Store(forrest::Error),
    /// The library refused to open, or found something wrong with, the store in a directory.
    Opening(PathBuf, forrest::Error),
    /// There is no store where one should be, or something else.
    Home(String),
    /// What was asked for is not there.
    Absent(String),
    /// The store answered other than it must.
    Wrong(String),
    /// A file or stream could not be read or written; says which and what was tried.
    Io(String, io::Error),
    /// A file does not hold what it should; says where.
    Input(Place, String),
    /// The reader of standard output has gone: nothing is left to say, or to do.
    BrokenPipe,
    /// Ctrl-C.
    Interrupted,
}

/// A place in an input, counted from 1; columns count characters, and 0 means the line as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The name of the file, or `standard input`.
    pub(crate) input: String,
    pub(crate) line: u64,
    pub(crate) column: u64,
}

impl Failure {
    /// A command line that makes no sense.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Failure::Usage(message.into())
    }

    /// A failed read or write of something that is not standard output.
    pub(crate) fn io(what: impl Into<String>, error: io::Error) -> Self {
        match interrupt::check() {
            // Then that is why, and nobody wants to read about the stream.
            Err(Interrupted) => Failure::Interrupted,
            Ok(()) => Failure::Io(what.into(), error),
        }
    }

    /// A failed write to standard output.
    pub(crate) fn stdout(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::BrokenPipe,
            _ => Failure::io("cannot write to standard output", error),
        }
    }

    /// The same, said to have happened at `place`; what is no mistake of the input stays as it is.
    pub(crate) fn at(self, place: Place) -> Self {
        match self {
            Failure::BrokenPipe | Failure::Interrupted | Failure::At(..) | Failure::Input(..) => self,
            other => Failure::At(place, Box::new(other)),
        }
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::Usage(_) => USAGE,
            Failure::Arguments(e) => u8::try_from(e.exit_code()).unwrap_or(USAGE),
            Failure::At(_, failure) => failure.code(),
            Failure::Store(e) | Failure::Opening(_, e) => match e.kind() {
                ErrorKind::InvalidArgument => USAGE,
                ErrorKind::Corrupt => DAMAGE,
                _ => OTHER,
            },
            Failure::Home(_) | Failure::Io(..) | Failure::Input(..) => OTHER,
            Failure::Absent(_) => NOT_FOUND,
            Failure::Wrong(_) => DAMAGE,
            Failure::BrokenPipe => BROKEN_PIPE,
            Failure::Interrupted => interrupt::CODE,
        }
    }

    /// Says on standard error what went wrong, if there is something to say.
    pub(crate) fn report(&self) {
        match self {
            Failure::BrokenPipe => {}
            // Help goes to standard output, mistakes to standard error.
            Failure::Arguments(e) => drop(e.print()),
            _ => term::say(format_args!("{self}")),
        }
    }

    /// Says on standard error what went wrong to somebody at a prompt, who knows who is talking.
    pub(crate) fn report_at_prompt(&self) {
        match self {
            Failure::Arguments(_) | Failure::BrokenPipe => self.report(),
            _ => drop(writeln!(io::stderr().lock(), "error: {self}")),
        }
    }

    /// Reports, and ends with the exit code.
    pub(crate) fn exit(&self) -> ExitCode {
        self.report();
        ExitCode::from(self.code())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(message)
            | Failure::Home(message)
            | Failure::Absent(message)
            | Failure::Wrong(message) => f.write_str(message),
            Failure::Arguments(e) => f.write_str(&one_line(&e.to_string())),
            Failure::At(place, failure) => write!(f, "{place}: {failure}"),
            Failure::Store(e) => e.fmt(f),
            Failure::Opening(path, e) => write!(f, "{}: {e}", path.display()),
            Failure::Io(what, e) => write!(f, "{what}: {e}"),
            Failure::Input(place, message) => write!(f, "{place}: {message}"),
            Failure::BrokenPipe => f.write_str("the reader of standard output has gone"),
            Failure::Interrupted => f.write_str("interrupted"),
        }
    }
}

/// The first paragraph of what the parser of arguments says, as one line without its heading: the rest is a
/// reminder of the usage, which is too much where a place is named.
fn one_line(message: &str) -> String {
    let paragraph: Vec<_> = message.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let line = paragraph.join(" ");
    line.strip_prefix("error: ").map_or(line.clone(), str::to_owned)
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.column {
            0 => write!(f, "{}:{}", self.input, self.line),
            column => write!(f, "{}:{}:{column}", self.input, self.line),
        }
    }
}

impl From<forrest::Error> for Failure {
    fn from(error: forrest::Error) -> Self {
        Failure::Store(error)
    }
}

impl From<Interrupted> for Failure {
    fn from(_: Interrupted) -> Self {
        Failure::Interrupted
    }
}

//! [`Failure`]: why a command failed, and its exit code.

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
/// Exit code for damaged data, found by a checksum or by a wrong result.
pub(crate) const DAMAGE: u8 = 3;
/// Exit code for every other error: input and output, limits, space, features that a home does not have.
pub(crate) const OTHER: u8 = 4;
/// Exit code if the changes that are asked for are no longer kept.
pub(crate) const GONE: u8 = 5;
/// Exit code when the reader of standard output has closed it: 128 and the number of SIGPIPE.
pub(crate) const BROKEN_PIPE: u8 = 141;

/// What went wrong.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line, or a line of a script, makes no sense.
    Usage(String),
    /// A message of the argument parser, which includes `--help` and `--version`.
    Arguments(clap::Error),
    /// Something else, at a place.
    At(Place, Box<Failure>),
    /// The library refused.
    Store(forrest::Error),
    /// The library refused to open, or found something wrong with, the store in a directory.
    Opening(PathBuf, forrest::Error),
    /// There is no store where one should be, or something else.
    Home(String),
    /// The key, keyspace or store does not exist.
    Absent(String),
    /// The store returned a wrong result.
    Wrong(String),
    /// A file or stream could not be read or written; names it and the operation.
    Io(String, io::Error),
    /// A file has wrong content; names the place.
    Input(Place, String),
    /// The reader of standard output has closed it: there is nothing more to print or do.
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
            // Ctrl-C caused the error, so the error of the stream is of no use.
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

    /// Adds a place to a failure. A failure that the input did not cause, or that has a place, stays as it is.
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
                ErrorKind::Gone => GONE,
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

    /// Prints the failure to standard error at a prompt, without the name of the command.
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

/// The first paragraph of the argument parser's message, as one line without its heading. The rest is a reminder of
/// the usage, which is too long beside a place.
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

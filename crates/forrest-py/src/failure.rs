//! [`Failure`]: the reason of a failure, and the exception for it. The classes are in
//! python/forrest/_errors.py.

use forrest::{Error, ErrorKind, Value};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// The reason why a call failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The library's error; in a call with many pairs, the number of the pair.
    Store(Error, Option<usize>),
    /// The same of an ingest, which sets all pairs or none.
    Ingest(Error, usize),
    /// The object is closed.
    Closed(&'static str),
    /// The object was opened by the parent process, before a fork.
    Forked,
    /// An operation of a batch found another value than the expected one.
    Mismatch(usize, Option<Value>),
    /// A key of a keyspace was changed after a transaction had read it.
    Conflict(String, Vec<u8>),
    /// An invalid argument.
    Invalid(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Store(error, None)
    }
}

impl Failure {
    /// The exception.
    pub(crate) fn raise(self, py: Python<'_>) -> PyErr {
        self.exception(py).map_or_else(|error| error, PyErr::from_value)
    }

    fn exception<'py>(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let invalid = |message: String| {
            let kind = ErrorKind::InvalidArgument;
            (class(kind), format!("{kind}: {message}"))
        };
        let conflict = match &self {
            Failure::Conflict(keyspace, key) => Some((keyspace.clone(), PyBytes::new(py, key))),
            _ => None,
        };
        let (at, found) = match &self {
            Failure::Store(error, at) => (at.or(error.op()), None),
            Failure::Ingest(_, at) => (Some(*at), None),
            Failure::Mismatch(at, found) => {
                (Some(*at), Some(found.as_ref().map(|found| PyBytes::new(py, found))))
            }
            _ => (None, None),
        };
        let (class, message) = match self {
            Failure::Store(error, None) => (class(error.kind()), error.to_string()),
            Failure::Store(error, Some(at)) => {
                (class(error.kind()), format!("{error} (pair {at} of the call; those before it were put)"))
            }
            Failure::Ingest(error, at) => {
                (class(error.kind()), format!("{error} (pair {at} of the call; none was put)"))
            }
            Failure::Mismatch(at, _) => (
                "ConditionFailedError",
                format!("operation {at} of the batch found another value than it expected; the batch was not applied"),
            ),
            Failure::Conflict(keyspace, key) => (
                "ConflictError",
                format!(
                    "key \"{}\" of keyspace \"{}\" was changed after the transaction read it, or waiting for its lock \
                     would have been a deadlock; nothing was changed",
                    key.escape_ascii(),
                    keyspace.escape_debug()
                ),
            ),
            Failure::Closed(what) => invalid(format!("the {what} is closed")),
            Failure::Forked => invalid(
                "this object belongs to the process that forked this one; open the store in this process: with \
                 read_only=True while the other one has it open, or after that has closed it"
                    .to_owned(),
            ),
            Failure::Invalid(message) => invalid(message),
        };
        let exception = py.import("forrest._errors")?.getattr(class)?.call1((message,))?;
        if let Some(at) = at {
            exception.setattr("op", at)?;
        }
        if let Some(found) = found {
            exception.setattr("found", found)?;
        }
        if let Some((keyspace, key)) = conflict {
            exception.setattr("keyspace", keyspace)?;
            exception.setattr("key", key)?;
        }
        Ok(exception)
    }
}

/// The exception class of an error kind.
fn class(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Io => "IoError",
        ErrorKind::Corrupt => "CorruptError",
        ErrorKind::InvalidArgument => "InvalidArgumentError",
        ErrorKind::Limit => "LimitError",
        ErrorKind::OutOfSpace => "OutOfSpaceError",
        ErrorKind::Busy => "BusyError",
        ErrorKind::Unsupported => "UnsupportedError",
        ErrorKind::Stopped => "StoppedError",
        ErrorKind::ConditionFailed => "ConditionFailedError",
        ErrorKind::Gone => "GoneError",
        // A kind that is missing in this list. The message is still correct.
        _ => "Error",
    }
}

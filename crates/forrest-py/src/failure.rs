//! [`Failure`]: what went wrong, and the exception that says so. The classes are in python/forrest/_errors.py.

use forrest::{Error, ErrorKind, Value};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The library's error; in a call with many pairs, at which.
    Store(Error, Option<usize>),
    /// What it was about has been closed.
    Closed(&'static str),
    /// It was opened before the process was forked from another.
    Forked,
    /// An operation of a batch compared with something else than it expected.
    Mismatch(usize, Option<Value>),
    /// A transaction has read a key of a keyspace that was changed since.
    Conflict(String, Vec<u8>),
    /// A call that makes no sense.
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
            Failure::Mismatch(at, _) => (
                "MismatchError",
                format!("operation {at} of the batch found another value than it expected; nothing of it was applied"),
            ),
            Failure::Conflict(keyspace, key) => (
                "ConflictError",
                format!(
                    "key \"{}\" of keyspace \"{}\" is not as the transaction read it; nothing was changed",
                    key.escape_ascii(),
                    keyspace.escape_debug()
                ),
            ),
            Failure::Closed(what) => invalid(format!("the {what} is closed")),
            Failure::Forked => invalid(
                "this was opened before the process was forked from another, and is of no use here: open the store \
                 in this process, once the other one has closed it"
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

/// The class of a kind of errors.
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
        // A kind that this file was not told of; its message is right.
        _ => "Error",
    }
}

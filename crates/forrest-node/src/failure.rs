//! [`Failure`]: why a call failed, with the code that the JavaScript error gets.
//!
//! Codes are those of abstract-level where it has one; README.md of the package lists all of them.

use forrest::ErrorKind;
use forrest_base::panic_text;

/// Why a call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The property `code` of the error.
    pub(crate) code: &'static str,
    pub(crate) message: String,
    /// It becomes a `TypeError`.
    pub(crate) is_type_error: bool,
}

impl Failure {
    /// A failure with its code.
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into(), is_type_error: false }
    }

    /// An argument of the wrong type. The message says which argument, what it must be, and what it is.
    pub(crate) fn argument(message: impl Into<String>) -> Failure {
        Failure { code: "ERR_INVALID_ARG_TYPE", message: message.into(), is_type_error: true }
    }

    /// The object was closed before the call.
    pub(crate) fn closed(what: &str) -> Failure {
        let code = match what {
            "iterator" => "LEVEL_ITERATOR_NOT_OPEN",
            "snapshot" => "LEVEL_SNAPSHOT_NOT_OPEN",
            _ => "LEVEL_DATABASE_NOT_OPEN",
        };
        Failure::new(code, format!("the {what} is not open"))
    }

    /// A panic of the library or of this crate.
    pub(crate) fn panic(payload: &(dyn std::any::Any + Send)) -> Failure {
        let text = panic_text(payload).unwrap_or("a panic");
        Failure::new("LEVEL_BUG", format!("a bug in forrest: {text}"))
    }
}

impl From<forrest::Error> for Failure {
    fn from(error: forrest::Error) -> Failure {
        let code = match error.kind() {
            ErrorKind::Io => "LEVEL_IO_ERROR",
            ErrorKind::Corrupt => "LEVEL_CORRUPTION",
            ErrorKind::InvalidArgument => "LEVEL_INVALID_ARGUMENT",
            ErrorKind::Limit => "LEVEL_LIMIT_EXCEEDED",
            ErrorKind::OutOfSpace => "LEVEL_OUT_OF_SPACE",
            ErrorKind::Busy => "LEVEL_LOCKED",
            ErrorKind::Unsupported => "LEVEL_NOT_SUPPORTED",
            ErrorKind::Stopped => "LEVEL_STOPPED",
            _ => "LEVEL_ERROR",
        };
        Failure::new(code, error.to_string())
    }
}

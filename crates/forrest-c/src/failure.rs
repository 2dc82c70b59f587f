//! Failures, with the last message kept for each thread; and [`guard`], which catches panics.

use crate::code::{self, FORREST_ABSENT};
use forrest_base::panic_text;
use forrest_rust::{Error, ErrorKind};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ffi::{CString, c_char};
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    /// The message of the last call of this thread that failed.
    static MESSAGE: RefCell<CString> = RefCell::default();
    /// The number of the operation that made the last batch of this thread fail.
    static OP: Cell<usize> = const { Cell::new(FORREST_ABSENT) };
}

/// Why a call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: i32,
    pub(crate) message: String,
    /// The number of the operation that failed, for a batch.
    pub(crate) op: Option<usize>,
}

impl Failure {
    /// A failure of this kind. The message says what failed and where.
    #[inline]
    pub(crate) fn new(kind: ErrorKind, message: impl Display) -> Failure {
        Failure::shown(kind, &message)
    }

    /// The same. There is one of it for all types of messages.
    #[cold]
    #[inline(never)]
    fn shown(kind: ErrorKind, message: &dyn Display) -> Failure {
        Failure { code: code_of(kind), message: format!("{kind}: {message}"), op: None }
    }

    /// An invalid argument.
    pub(crate) fn invalid(message: impl Display) -> Failure {
        Failure::new(ErrorKind::InvalidArgument, message)
    }

    /// `what` has `length` bytes, more than `limit`.
    pub(crate) fn limit(what: &str, length: usize, limit: usize) -> Failure {
        let message = format_args!("{what} of {length} bytes; at most {limit} bytes are allowed");
        Failure::new(ErrorKind::Limit, message)
    }

    /// An allocation of this many bytes failed.
    pub(crate) fn out_of_memory(bytes: usize) -> Failure {
        Failure::new(ErrorKind::OutOfSpace, format_args!("no memory for {bytes} bytes"))
    }

    fn panicked(panic: &(dyn Any + Send)) -> Failure {
        let text = panic_text(panic).unwrap_or("no message");
        Failure { code: code::FORREST_INTERNAL, message: format!("internal error: {text}"), op: None }
    }
}

impl From<Error> for Failure {
    #[cold]
    #[inline(never)]
    fn from(error: Error) -> Failure {
        Failure { code: code_of(error.kind()), message: error.to_string(), op: error.op() }
    }
}

/// The code of an error kind.
fn code_of(kind: ErrorKind) -> i32 {
    match kind {
        ErrorKind::Io => code::FORREST_IO,
        ErrorKind::Corrupt => code::FORREST_CORRUPT,
        ErrorKind::InvalidArgument => code::FORREST_INVALID_ARGUMENT,
        ErrorKind::Limit => code::FORREST_LIMIT,
        ErrorKind::OutOfSpace => code::FORREST_OUT_OF_SPACE,
        ErrorKind::Busy => code::FORREST_BUSY,
        ErrorKind::Unsupported => code::FORREST_UNSUPPORTED,
        ErrorKind::Stopped => code::FORREST_STOPPED,
        ErrorKind::ConditionFailed => code::FORREST_CONDITION_FAILED,
        ErrorKind::Gone => code::FORREST_GONE,
        // A kind that is missing in this list. The message is still correct.
        _ => code::FORREST_INTERNAL,
    }
}

/// Runs the body of an exported function: returns its code, keeps the message of a failure for the thread,
/// and turns a panic into a failure.
///
/// After a panic the object in use may be in an unexpected state. This is still memory safe: the object may
/// return wrong results, but cannot harm others. The documentation of `FORREST_INTERNAL` says to close the
/// store.
pub(crate) fn guard(body: impl FnOnce() -> Result<i32, Failure>) -> i32 {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(code)) => code,
        Ok(Err(failure)) => failed(failure),
        Err(panic) => panicked(panic),
    }
}

/// Keeps the message of a failure. There is one of it for all exported functions.
#[cold]
#[inline(never)]
fn failed(failure: Failure) -> i32 {
    let mut message = failure.message.into_bytes();
    message.retain(|byte| *byte != 0);
    // In a thread that is ending, the thread-local message no longer exists.
    let message = CString::new(message).unwrap_or_default();
    let _kept = MESSAGE.try_with(|last| last.replace(message));
    OP.set(failure.op.unwrap_or(FORREST_ABSENT));
    failure.code
}

/// The same of a panic.
#[cold]
#[inline(never)]
fn panicked(panic: Box<dyn Any + Send>) -> i32 {
    failed(Failure::panicked(&*panic))
}

/// The message of the last call of this thread that returned an error: its kind, what failed, and where.
/// Empty if no call failed. Never null; valid until the next call of this thread.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_error_message() -> *const c_char {
    MESSAGE.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// The number, from 0, of the change of a batch that made the last failed call of this thread fail.
/// `FORREST_ABSENT` if that call failed for another reason, or if no call failed.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_error_op() -> usize {
    OP.get()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn message() -> String {
        // SAFETY: the message is never null, ends with a zero byte, and stays valid until the next call of
        // this thread.
        unsafe { CStr::from_ptr(forrest_error_message()) }.to_str().expect("it is text").to_owned()
    }

    #[test]
    fn panics_become_codes() {
        assert_eq!(message(), "");
        assert_eq!(guard(|| panic!("the tree has no {}", "root")), code::FORREST_INTERNAL);
        assert_eq!(message(), "internal error: the tree has no root");
        guard(|| panic!("plain"));
        assert_eq!(message(), "internal error: plain");
        guard(|| std::panic::panic_any(7));
        assert_eq!(message(), "internal error: no message");
    }

    #[test]
    fn messages_stay_with_their_thread_and_have_no_zero_byte() {
        assert_eq!(guard(|| Err(Failure::invalid("a\0b"))), code::FORREST_INVALID_ARGUMENT);
        assert_eq!(std::thread::spawn(message).join().expect("it ends"), "");
        assert_eq!(guard(|| Ok(1)), 1);
        assert_eq!(message(), "invalid argument: ab");
    }

    #[test]
    fn each_kind_has_its_code_and_words() {
        let kinds = [
            ErrorKind::Io,
            ErrorKind::Corrupt,
            ErrorKind::InvalidArgument,
            ErrorKind::Limit,
            ErrorKind::OutOfSpace,
            ErrorKind::Busy,
            ErrorKind::Unsupported,
            ErrorKind::Stopped,
            ErrorKind::ConditionFailed,
            ErrorKind::Gone,
        ];
        for (at, kind) in kinds.into_iter().enumerate() {
            assert_eq!(code_of(kind), -(at as i32) - 1);
            assert_eq!(code::words(code_of(kind)).to_str(), Ok(kind.as_str()));
        }
    }
}

//! What went wrong, with its message kept for the thread; and [`guard`], the border that panics do not cross.

use crate::code;
use forrest_rust::{Error, ErrorKind};
use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    /// What the last call of this thread that failed has to say.
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// Why a call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: i32,
    pub(crate) message: String,
}

impl Failure {
    /// A failure of a kind, with what and where.
    pub(crate) fn new(kind: ErrorKind, message: impl Display) -> Failure {
        Failure { code: code_of(kind), message: format!("{kind}: {message}") }
    }

    /// A call that makes no sense.
    pub(crate) fn invalid(message: impl Display) -> Failure {
        Failure::new(ErrorKind::InvalidArgument, message)
    }

    /// `length` bytes of `what` where at most `limit` are allowed.
    pub(crate) fn limit(what: &str, length: usize, limit: usize) -> Failure {
        let message = format_args!("{what} of {length} bytes; at most {limit} bytes are allowed");
        Failure::new(ErrorKind::Limit, message)
    }

    /// No memory of so many bytes.
    pub(crate) fn out_of_memory(bytes: usize) -> Failure {
        Failure::new(ErrorKind::OutOfSpace, format_args!("no memory for {bytes} bytes"))
    }

    fn panicked(panic: &(dyn Any + Send)) -> Failure {
        let text = panic.downcast_ref::<&str>().copied();
        let text =
            text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
        Failure { code: code::FORREST_INTERNAL, message: format!("internal error: {text}") }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure { code: code_of(error.kind()), message: error.to_string() }
    }
}

/// The code of a kind of errors.
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
        ErrorKind::ConditionFailed => code::FORREST_MISMATCH,
        // A kind that this file was not told of; its message is right.
        _ => code::FORREST_INTERNAL,
    }
}

/// Runs the body of a function that C calls: answers with its code, keeps the message of its failure for the thread,
/// and makes a panic a failure.
///
/// After a panic what was being used may be in a state that nobody thought of, but all of it is safe Rust's: it
/// may answer wrongly, and breaks nothing else. C is told to close the store.
pub(crate) fn guard(body: impl FnOnce() -> Result<i32, Failure>) -> i32 {
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(code)) => return code,
        Ok(Err(failure)) => failure,
        Err(panic) => Failure::panicked(&*panic),
    };
    let mut message = failure.message.into_bytes();
    message.retain(|byte| *byte != 0);
    // A thread that is ending has no place for messages any more.
    let message = CString::new(message).unwrap_or_default();
    let _kept = MESSAGE.try_with(|last| last.replace(message));
    failure.code
}

/// What went wrong in the last call of this thread that returned an error: the words for its kind, and what and
/// where. Empty if there was none. Never null; valid until the next call of this thread.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_error_message() -> *const c_char {
    MESSAGE.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn message() -> String {
        // SAFETY: it is never null, ends with a zero byte, and no call comes in between.
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
        ];
        for (at, kind) in kinds.into_iter().enumerate() {
            assert_eq!(code_of(kind), -(at as i32) - 1);
            assert_eq!(code::words(code_of(kind)).to_str(), Ok(kind.as_str()));
        }
    }
}

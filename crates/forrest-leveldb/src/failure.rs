//! Failures, as LevelDB reports them: a string in memory of `malloc`, which begins with the kind of error. And the
//! guards of exported functions, which catch panics.

use crate::memory::given;
use forrest::{Error, ErrorKind};
use std::ffi::{c_char, c_void};
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Why a call failed: the text that the program gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure(pub(crate) String);

impl Failure {
    /// An argument or a state that does not allow the call.
    pub(crate) fn invalid(message: impl Display) -> Failure {
        Failure(format!("Invalid argument: {message}"))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        // The kinds that LevelDB has. A store that is in use is an IO error there, because a lock cannot be had.
        let kind = match error.kind() {
            ErrorKind::Corrupt => "Corruption",
            ErrorKind::Unsupported => "Not implemented",
            ErrorKind::Io | ErrorKind::OutOfSpace | ErrorKind::Busy | ErrorKind::Stopped => "IO error",
            _ => "Invalid argument",
        };
        Failure(format!("{kind}: {error}"))
    }
}

/// Runs the body of a function that cannot report an error. If the body has no result, or panics, returns `nothing`.
pub(crate) fn quiet<T>(nothing: T, body: impl FnOnce() -> Option<T>) -> T {
    catch_unwind(AssertUnwindSafe(body)).ok().flatten().unwrap_or(nothing)
}

/// Runs the body of a function that reports errors. A failure replaces the string at `errptr`, which is freed, and the
/// result is `nothing`. If the call succeeds, `errptr` stays as it is.
///
/// # Safety
/// - `errptr` is null, or points to null or to a string that came from `malloc`.
pub(crate) unsafe fn report<T>(
    errptr: *mut *mut c_char,
    nothing: T,
    body: impl FnOnce() -> Result<T, Failure>,
) -> T {
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(result)) => return result,
        Ok(Err(failure)) => failure,
        Err(_) => Failure("Corruption: internal error, close the store".to_owned()),
    };
    // SAFETY: `errptr` meets the requirement of `put`, which is that of this function.
    unsafe { put(errptr, &failure) };
    nothing
}

/// Replaces the string at `errptr`.
///
/// # Safety
/// - As [`report`].
pub(crate) unsafe fn put(errptr: *mut *mut c_char, failure: &Failure) {
    if errptr.is_null() {
        return;
    }
    let text = failure.0.bytes().filter(|byte| *byte != 0).chain([0]).collect::<Vec<u8>>();
    let message = given(&text).cast();
    // SAFETY: `errptr` is not null, checked above, so it has null or memory of `malloc`, and is writable, by this
    // function's `# Safety`.
    unsafe {
        libc::free((*errptr).cast::<c_void>());
        *errptr = message;
    }
}

/// The major version of the LevelDB whose functions these are: 1.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_major_version() -> i32 {
    1
}

/// The minor version of the LevelDB whose functions these are: 23.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_minor_version() -> i32 {
    23
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::leveldb_free;
    use std::ffi::CStr;
    use std::ptr;

    #[test]
    fn a_failure_replaces_the_string_and_a_success_keeps_it() {
        let mut error: *mut c_char = ptr::null_mut();
        let place = &raw mut error;
        let text = |place: *mut *mut c_char| {
            // SAFETY: the tests call it after a failure, which puts a string there.
            unsafe { CStr::from_ptr(*place) }.to_str().unwrap().to_owned()
        };
        // SAFETY: `place` is a pointer of this function, and has null or what `report` has put there.
        unsafe {
            assert_eq!(report(place, 7, || Err(Failure::invalid("a\0b"))), 7);
            assert_eq!(text(place), "Invalid argument: ab");
            assert_eq!(report(place, 7, || Ok(8)), 8);
            assert_eq!(text(place), "Invalid argument: ab");
            assert_eq!(report(place, 7, || panic!("the tree has no root")), 7);
            assert!(text(place).starts_with("Corruption: internal error"));
            assert_eq!(report(ptr::null_mut(), 7, || Err(Failure::invalid("no place"))), 7);
            leveldb_free(error.cast());
        }
        assert_eq!(quiet(7, || panic!("no root")), 7);
        assert_eq!(quiet(7, || None), 7);
    }

    #[test]
    fn kinds_are_those_of_leveldb() {
        for (kind, text) in [
            (ErrorKind::Corrupt, "Corruption: "),
            (ErrorKind::Unsupported, "Not implemented: "),
            (ErrorKind::Busy, "IO error: "),
            (ErrorKind::Limit, "Invalid argument: "),
        ] {
            assert!(Failure::from(Error::new(kind, "x")).0.starts_with(text), "{kind}");
        }
    }
}

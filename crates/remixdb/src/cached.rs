//! Reads that must not wait for a device: they see what is in memory, or are given up.
//!
//! Such a read runs the code of every other read. A mark of the thread says that it must not wait. Whatever would read
//! a file, open it, or wait for a thread that does, calls [`check`] first. These places are the rare ones, so other
//! reads pay nothing.

use forrest_engine::{Error, ErrorKind, Result};
use std::cell::Cell;

thread_local! {
    static WAITING: Cell<Waiting> = const { Cell::new(Waiting::Allowed) };
}

#[derive(Clone, Copy, PartialEq)]
enum Waiting {
    Allowed,
    Forbidden,
    /// Forbidden, and something had to wait.
    GivenUp,
}

/// The result of a read if that needs no wait; `None` if it was given up.
///
/// # Errors
/// Those of the read.
pub(crate) fn only<R>(read: impl FnOnce() -> Result<R>) -> Result<Option<R>> {
    let (seen, is_given_up) = without_waiting(|| (read(), WAITING.get() == Waiting::GivenUp));
    if is_given_up { Ok(None) } else { seen.map(Some) }
}

/// The result of work that does without what it would have to wait for.
pub(crate) fn without_waiting<R>(work: impl FnOnce() -> R) -> R {
    let _mark = Mark(WAITING.replace(Waiting::Forbidden));
    work()
}

/// Restores the thread's mark, also after a panic of the caller's code.
struct Mark(Waiting);

impl Drop for Mark {
    fn drop(&mut self) {
        WAITING.set(self.0);
    }
}

/// An error, which the caller returns, if a wait would follow and must not.
pub(crate) fn check() -> Result<()> {
    match WAITING.get() {
        Waiting::Allowed => Ok(()),
        Waiting::Forbidden | Waiting::GivenUp => {
            WAITING.set(Waiting::GivenUp);
            Err(Error::new(ErrorKind::Io, "not read: only what is in memory was wanted"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_read_that_would_wait_is_given_up() {
        assert_eq!(only(|| Ok(1)).unwrap(), Some(1));
        assert_eq!(only(|| check().map(|()| 1)).unwrap(), None);
        // Even if the read goes on without what it did not get.
        assert_eq!(only(|| Ok(check().is_ok())).unwrap(), None);
        let failed = only::<()>(|| Err(Error::new(ErrorKind::Corrupt, "damaged")));
        assert_eq!(failed.unwrap_err().kind(), ErrorKind::Corrupt);
        check().expect("the thread may wait again");
        catch_unwind(AssertUnwindSafe(|| only::<()>(|| panic!("the caller's code")))).unwrap_err();
        check().expect("also after a panic");
    }
}

//! Memory that the system may refuse: large arrays, and memtables. A refusal is `OutOfSpace`, as that of the disk.
//!
//! Tests can refuse it too ([`refusal`]). Not here: small allocations, whose refusal ends the process.

use forrest_engine::{Error, ErrorKind, Result};
use forrest_machine::pages::Array;
use std::fmt;

/// An empty array with room for `capacity` values, on huge pages where there are any.
///
/// # Errors
/// `OutOfSpace`.
pub(crate) fn array<T: Copy>(capacity: usize) -> Result<Array<T>> {
    ask()?;
    Array::with_capacity(capacity).map_err(refused)
}

/// Appends values to an array.
///
/// # Errors
/// `OutOfSpace`; nothing was appended then.
#[inline]
pub(crate) fn extend<T: Copy>(array: &mut Array<T>, values: &[T]) -> Result<()> {
    array.extend(values).map_err(refused)
}

/// An array of `len` copies of a value, on huge pages where there are any.
///
/// # Errors
/// `OutOfSpace`.
pub(crate) fn filled<T: Copy>(len: usize, value: T) -> Result<Array<T>> {
    let mut array = array(len)?;
    array.resize(len, value).map_err(refused)?;
    Ok(array)
}

/// The error of memory that was refused.
#[cold]
pub(crate) fn refused(why: impl fmt::Display) -> Error {
    Error::new(ErrorKind::OutOfSpace, format!("memory: {why}"))
}

/// Called where memory is taken that may be refused. An error if a test refuses it.
#[inline]
pub(crate) fn ask() -> Result<()> {
    #[cfg(test)]
    if refusal::strikes() {
        return Err(refused("a test refuses it"));
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod refusal {
    //! Which request of this thread is refused.

    use crate::disk::simulated::Times;
    use std::cell::Cell;

    thread_local! {
        /// Requests until one is refused, and how often; `None` if none is.
        static PLANTED: Cell<Option<(u64, Times)>> = const { Cell::new(None) };
        static STRUCK: Cell<u64> = const { Cell::new(0) };
    }

    /// From now on, refuses request number `at`, or all from then on.
    pub(crate) fn plant(at: u64, times: Times) {
        STRUCK.set(0);
        PLANTED.set(Some((at, times)));
    }

    /// Refuses nothing more. Returns how many requests were refused.
    pub(crate) fn heal() -> u64 {
        PLANTED.set(None);
        STRUCK.get()
    }

    pub(super) fn strikes() -> bool {
        let Some((left, times)) = PLANTED.get() else { return false };
        let is_due = left == 0;
        PLANTED.set(match (is_due, times) {
            (true, Times::Once) => None,
            _ => Some((left.saturating_sub(1), times)),
        });
        STRUCK.set(STRUCK.get() + u64::from(is_due));
        is_due
    }
}

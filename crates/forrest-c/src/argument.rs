//! What comes from C, made safe: bytes, handles, and places for results. Here is what can be checked; what cannot is
//! in the `# Safety` lists of the functions that C calls.

use crate::failure::Failure;
use forrest_rust::{MAX_KEY_BYTES, MAX_VALUE_BYTES};
use std::ffi::c_void;

/// A key from C.
///
/// # Safety
/// - As [`bytes`].
pub(crate) unsafe fn key<'a>(start: *const c_void, length: usize) -> Result<&'a [u8], Failure> {
    // SAFETY: the caller's promise.
    unsafe { bytes("key", start, length, MAX_KEY_BYTES) }
}

/// A value from C.
///
/// # Safety
/// - As [`bytes`].
pub(crate) unsafe fn value<'a>(start: *const c_void, length: usize) -> Result<&'a [u8], Failure> {
    // SAFETY: the caller's promise.
    unsafe { bytes("value", start, length, MAX_VALUE_BYTES) }
}

/// Bytes from C. A pointer to no bytes is not looked at.
///
/// # Safety
/// - `start` is null or has `length` bytes that may be read and do not change for as long as the result is used.
unsafe fn bytes<'a>(
    what: &str,
    start: *const c_void,
    length: usize,
    limit: usize,
) -> Result<&'a [u8], Failure> {
    if length == 0 {
        return Ok(&[]);
    }
    if start.is_null() {
        return Err(Failure::invalid(format!("the {what} is null, and its length {length}")));
    }
    if length > limit.min(isize::MAX as usize) {
        return Err(Failure::limit(what, length, limit));
    }
    // SAFETY: it is not null, no longer than a slice may be, and the caller promises the rest.
    Ok(unsafe { std::slice::from_raw_parts(start.cast(), length) })
}

/// A handle that is only looked at.
///
/// # Safety
/// - `handle` is null, or came from this library, was not given back, and is not changed while the result is used.
pub(crate) unsafe fn shared<'a, T>(what: &str, handle: *const T) -> Result<&'a T, Failure> {
    // SAFETY: the caller's promise; handles of this library are aligned boxes.
    unsafe { handle.as_ref() }.ok_or_else(|| Failure::invalid(format!("the {what} is null")))
}

/// A handle that is changed.
///
/// # Safety
/// - `handle` is null, or came from this library, was not given back, and is used by nobody else while the result is.
pub(crate) unsafe fn exclusive<'a, T>(what: &str, handle: *mut T) -> Result<&'a mut T, Failure> {
    // SAFETY: the caller's promise; handles of this library are aligned boxes.
    unsafe { handle.as_mut() }.ok_or_else(|| Failure::invalid(format!("the {what} is null")))
}

/// A place for a result.
#[derive(Debug)]
pub(crate) struct Place<T>(*mut T);

impl<T> Place<T> {
    /// The place, with `nothing` put there, which is what it holds if the call fails.
    ///
    /// # Safety
    /// - `place` is null, or aligned and may be written to until the call ends.
    pub(crate) unsafe fn of(what: &str, place: *mut T, nothing: T) -> Result<Place<T>, Failure> {
        if place.is_null() {
            return Err(Failure::invalid(format!("the place for the {what} is null")));
        }
        let mut place = Place(place);
        place.put(nothing);
        Ok(place)
    }

    /// Puts the result there. What was there is not dropped: it may be no `T` at all.
    pub(crate) fn put(&mut self, result: T) {
        // SAFETY: it may be written to, as was promised when it was made.
        unsafe { self.0.write(result) }
    }
}

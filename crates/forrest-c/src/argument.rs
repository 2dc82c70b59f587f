//! What comes from C, made safe: bytes, text, and places for results. Here is what can be checked; what cannot is
//! in the `# Safety` lists of the functions that C calls. Handles are in handle.rs.

use crate::code::FORREST_ABSENT;
use crate::failure::Failure;
use forrest_rust::{MAX_KEY_BYTES, MAX_VALUE_BYTES};
use std::ffi::{CStr, c_char, c_void};

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

/// What may be absent: null with the length `FORREST_ABSENT`; otherwise a key or a value, as `read` reads it.
///
/// # Safety
/// - As [`bytes`].
pub(crate) unsafe fn perhaps<'a>(
    read: unsafe fn(*const c_void, usize) -> Result<&'a [u8], Failure>,
    start: *const c_void,
    length: usize,
) -> Result<Option<&'a [u8]>, Failure> {
    if start.is_null() && length == FORREST_ABSENT {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    unsafe { read(start, length) }.map(Some)
}

/// The end of a range from C: null is no end, with the length 0 or `FORREST_ABSENT`. The empty key is a pointer that is
/// not null, with the length 0.
///
/// # Safety
/// - As [`bytes`].
pub(crate) unsafe fn end<'a>(start: *const c_void, length: usize) -> Result<Option<&'a [u8]>, Failure> {
    if start.is_null() && length == 0 {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    unsafe { perhaps(key, start, length) }
}

/// Text from C: a URL, a name, a path.
///
/// # Safety
/// - `start` is null, or ends with a zero byte and does not change for as long as the result is used.
pub(crate) unsafe fn text<'a>(what: &str, start: *const c_char) -> Result<&'a str, Failure> {
    if start.is_null() {
        return Err(Failure::invalid(format_args!("the {what} is null")));
    }
    // SAFETY: it is not null, and the caller promises the rest.
    let text = unsafe { CStr::from_ptr(start) };
    text.to_str().map_err(|_| {
        let shown = text.to_bytes().escape_ascii();
        Failure::invalid(format_args!("the {what} \"{shown}\" is not UTF-8"))
    })
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
        return Err(Failure::invalid(format_args!("the {what} is null, and its length {length}")));
    }
    if length > limit.min(isize::MAX as usize) {
        return Err(Failure::limit(what, length, limit));
    }
    // SAFETY: it is not null, no longer than a slice may be, and the caller promises the rest.
    Ok(unsafe { std::slice::from_raw_parts(start.cast(), length) })
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
            return Err(Failure::invalid(format_args!("the place for the {what} is null")));
        }
        let mut place = Place(place);
        place.put(nothing);
        Ok(place)
    }

    /// As [`of`](Place::of), where null means that the result is not wanted.
    ///
    /// # Safety
    /// - As `of`.
    pub(crate) unsafe fn perhaps(place: *mut T, nothing: T) -> Option<Place<T>> {
        // SAFETY: the caller's promise.
        unsafe { Place::of("result", place, nothing) }.ok()
    }

    /// Puts the result there. What was there is not dropped: it may be no `T` at all.
    pub(crate) fn put(&mut self, result: T) {
        // SAFETY: it may be written to, as was promised when it was made.
        unsafe { self.0.write(result) }
    }
}

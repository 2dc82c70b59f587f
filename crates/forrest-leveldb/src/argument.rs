//! Pointers from C: bytes, paths and objects.

use crate::failure::Failure;
use std::ffi::{CStr, c_char};
use std::path::{Path, PathBuf};

/// Bytes from C. If `length` is 0, `start` is ignored.
///
/// # Safety
/// - `start` is null, or has `length` readable bytes that do not change while the result is used.
pub(crate) unsafe fn bytes<'a>(
    what: &str,
    start: *const c_char,
    length: usize,
    limit: usize,
) -> Result<&'a [u8], Failure> {
    if length == 0 {
        return Ok(&[]);
    }
    if start.is_null() {
        return Err(Failure::invalid(format_args!("the {what} is null, but its length is {length}")));
    }
    if length > limit.min(isize::MAX as usize) {
        return Err(Failure::invalid(format_args!(
            "{what} of {length} bytes; at most {limit} bytes are allowed"
        )));
    }
    // SAFETY: `start` is not null and `length <= isize::MAX`, both checked above. So `start` has `length` readable
    // bytes that do not change, by this function's `# Safety`.
    Ok(unsafe { std::slice::from_raw_parts(start.cast(), length) })
}

/// A key from C.
///
/// # Safety
/// - As [`bytes`].
pub(crate) unsafe fn key<'a>(start: *const c_char, length: usize) -> Result<&'a [u8], Failure> {
    // SAFETY: `start` and `length` meet the requirements of `bytes`, which are those of this function.
    unsafe { bytes("key", start, length, forrest::MAX_KEY_BYTES) }
}

/// A value from C.
///
/// # Safety
/// - As [`bytes`].
pub(crate) unsafe fn value<'a>(start: *const c_char, length: usize) -> Result<&'a [u8], Failure> {
    // SAFETY: `start` and `length` meet the requirements of `bytes`, which are those of this function.
    unsafe { bytes("value", start, length, forrest::MAX_VALUE_BYTES) }
}

/// A bound of a range from C, which may have any length. Null is no bound.
///
/// # Safety
/// - As [`bytes`].
pub(crate) unsafe fn bound<'a>(start: *const c_char, length: usize) -> Result<Option<&'a [u8]>, Failure> {
    if start.is_null() {
        return Ok(None);
    }
    // SAFETY: `start` and `length` meet the requirements of `bytes`, which are those of this function.
    unsafe { bytes("bound", start, length, usize::MAX) }.map(Some)
}

/// The directory of a store that C names. A name that looks like the URL of another home is a directory here.
///
/// # Safety
/// - `name` is null, or ends with a zero byte.
pub(crate) unsafe fn path(name: *const c_char) -> Result<PathBuf, Failure> {
    if name.is_null() {
        return Err(Failure::invalid("the name of the database is null"));
    }
    // SAFETY: `name` is not null, checked above, and so ends with a zero byte, by this function's `# Safety`.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    if name.is_empty() {
        return Err(Failure::invalid("the name of the database is empty"));
    }
    let Ok(text) = std::str::from_utf8(name) else {
        return Err(Failure::invalid(format_args!("the name \"{}\" is not UTF-8", name.escape_ascii())));
    };
    let is_url = forrest::directory(text).is_none();
    Ok(if is_url { Path::new(".").join(text) } else { text.into() })
}

/// An object of this library that C passes.
///
/// # Safety
/// - `object` is null, or came from this library and was not destroyed.
pub(crate) unsafe fn object<'a, T>(what: &str, object: *const T) -> Result<&'a T, Failure> {
    // SAFETY: `object` is null or live, by this function's `# Safety`.
    unsafe { object.as_ref() }.ok_or_else(|| Failure::invalid(format_args!("the {what} is null")))
}

/// Gives an object to C.
pub(crate) fn handed<T>(object: T) -> *mut T {
    Box::into_raw(Box::new(object))
}

/// Takes an object back from C, and drops it. Null is ignored.
///
/// # Safety
/// - `object` is null, or came from [`handed`] and is not used any more.
pub(crate) unsafe fn take_back<T>(object: *mut T) {
    if !object.is_null() {
        // SAFETY: `object` is not null, checked above; so it came from `handed`, and this is its only drop.
        let object = unsafe { Box::from_raw(object) };
        crate::failure::quiet((), || {
            drop(object);
            Some(())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_directories() {
        for (name, expected) in [
            (c"trees", "trees"),
            (c"/a:b", "/a:b"),
            (c"memory:", "./memory:"),
            (c"llds:x?durability=sync", "./llds:x?durability=sync"),
        ] {
            // SAFETY: the name ends with a zero byte.
            assert_eq!(unsafe { path(name.as_ptr()) }, Ok(PathBuf::from(expected)));
        }
    }
}

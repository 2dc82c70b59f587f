//! Checks of arguments from C: bytes, text, and places for results. The `# Safety` sections of the exported
//! functions list the requirements that cannot be checked. Handles are in handle.rs.

use crate::code::FORREST_ABSENT;
use crate::failure::Failure;
use forrest_rust::{EncryptionKey, MAX_KEY_BYTES, MAX_VALUE_BYTES};
use std::ffi::{CStr, CString, c_char, c_void};
use std::ops::Bound;
use std::ptr;

/// A key from C.
///
/// # Safety
/// - As [`bytes`].
pub(crate) unsafe fn key<'a>(start: *const c_void, length: usize) -> Result<&'a [u8], Failure> {
    // SAFETY: `start` and `length` meet the requirements of `bytes`, which are those of this function.
    unsafe { bytes("key", start, length, MAX_KEY_BYTES) }
}

/// A value from C.
///
/// # Safety
/// - As [`bytes`].
pub(crate) unsafe fn value<'a>(start: *const c_void, length: usize) -> Result<&'a [u8], Failure> {
    // SAFETY: `start` and `length` meet the requirements of `bytes`, which are those of this function.
    unsafe { bytes("value", start, length, MAX_VALUE_BYTES) }
}

/// An optional key or value from C, read by `read`. Null with the length `FORREST_ABSENT` is absence.
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
    // SAFETY: `start` and `length` meet the requirements of `bytes`, which are those of `read` and of this
    // function.
    unsafe { read(start, length) }.map(Some)
}

/// A bound of a range or the target of a seek from C. It may be longer than the longest key, such as the successor of a
/// key of the greatest length.
///
/// # Safety
/// - As [`bytes`].
pub(crate) unsafe fn bound<'a>(start: *const c_void, length: usize) -> Result<&'a [u8], Failure> {
    // SAFETY: `start` and `length` meet the requirements of `bytes`, which are those of this function.
    unsafe { bytes("bound", start, length, isize::MAX as usize) }
}

/// Where a range starts and ends.
pub(crate) type Range<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// A range from C, from `start` up to, but without, `end`.
///
/// # Safety
/// - `start` and `end` each meet the requirements of [`bytes`].
pub(crate) unsafe fn range<'a>(
    start: *const c_void,
    start_bytes: usize,
    end: *const c_void,
    end_bytes: usize,
) -> Result<Range<'a>, Failure> {
    // SAFETY: `start` and `end` meet the requirements of `bytes`, which are those of this function.
    let (start, end) = unsafe { (bound(start, start_bytes)?, self::end(end, end_bytes)?) };
    Ok((Bound::Included(start), before(end)))
}

/// The upper bound of a range that may have an end.
pub(crate) fn before(end: Option<&[u8]>) -> Bound<&[u8]> {
    end.map_or(Bound::Unbounded, Bound::Excluded)
}

/// The end of a range from C. Null with the length 0 or `FORREST_ABSENT` is no end. The empty key is a
/// non-null pointer with the length 0.
///
/// # Safety
/// - As [`bytes`].
pub(crate) unsafe fn end<'a>(start: *const c_void, length: usize) -> Result<Option<&'a [u8]>, Failure> {
    if start.is_null() && length == 0 {
        return Ok(None);
    }
    // SAFETY: `start` and `length` meet the requirements of `bytes`, which are those of `perhaps` and of this
    // function.
    unsafe { perhaps(bound, start, length) }
}

/// An encryption key from C.
///
/// # Safety
/// - As [`bytes`].
pub(crate) unsafe fn encryption_key(start: *const c_void, length: usize) -> Result<EncryptionKey, Failure> {
    // SAFETY: `start` and `length` meet the requirements of `bytes`, which are those of this function.
    let bytes = unsafe { bytes("encryption key", start, length, usize::MAX) }?;
    let key = bytes.try_into().map_err(|_| {
        Failure::invalid(format_args!("the encryption key has {length} bytes; it must have 32"))
    });
    key.map(EncryptionKey::from_bytes)
}

/// An encryption key from C; none for a null pointer with the length 0.
///
/// # Safety
/// - `start` is null or has `length` readable bytes that do not change while this runs.
pub(crate) unsafe fn perhaps_key(
    start: *const c_void,
    length: usize,
) -> Result<Option<EncryptionKey>, Failure> {
    if start.is_null() && length == 0 {
        return Ok(None);
    }
    // SAFETY: `start` and `length` meet the requirements of `encryption_key`, which are those of this function.
    unsafe { encryption_key(start, length) }.map(Some)
}

/// Text from C: a URL, a name, a path.
///
/// # Safety
/// - `start` is null, or a string that ends with a zero byte and does not change while the result is used.
pub(crate) unsafe fn text<'a>(what: &str, start: *const c_char) -> Result<&'a str, Failure> {
    if start.is_null() {
        return Err(Failure::invalid(format_args!("the {what} is null")));
    }
    // SAFETY: `start` is not null, checked above, and so ends with a zero byte, as the Safety section
    // demands.
    let text = unsafe { CStr::from_ptr(start) };
    text.to_str().map_err(|_| {
        let shown = text.to_bytes().escape_ascii();
        Failure::invalid(format_args!("the {what} \"{shown}\" is not UTF-8"))
    })
}

/// Bytes from C. If `length` is 0, `start` is ignored.
///
/// # Safety
/// - `start` is null or has `length` readable bytes that do not change while the result is used.
pub(crate) unsafe fn bytes<'a>(
    what: &str,
    start: *const c_void,
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
        return Err(Failure::limit(what, length, limit));
    }
    // SAFETY: `start` is not null and `length <= isize::MAX`, both checked above. So `start` has `length`
    // readable bytes that do not change, as the Safety section demands.
    Ok(unsafe { std::slice::from_raw_parts(start.cast(), length) })
}

/// A buffer of C to be filled, or its beginning if it has room for more than `most` bytes, with zeros in it. If `count`
/// is 0, `buffer` is ignored.
///
/// # Safety
/// - `buffer` is null or has `count` writable bytes that nothing else uses while the result is used.
pub(crate) unsafe fn buffer<'a>(
    buffer: *mut c_void,
    count: usize,
    most: u64,
) -> Result<&'a mut [u8], Failure> {
    if buffer.is_null() && count > 0 {
        return Err(Failure::invalid(format_args!("the buffer is null, but its length is {count}")));
    }
    let count = count.min(isize::MAX as usize).min(usize::try_from(most).unwrap_or(usize::MAX));
    if count == 0 {
        return Ok(&mut []);
    }
    // SAFETY: `buffer` is not null and `count <= isize::MAX`, both checked above. So it has `count` writable bytes that
    // nothing else uses, as the Safety section demands. The zeros make them initialized.
    Ok(unsafe {
        buffer.cast::<u8>().write_bytes(0, count);
        std::slice::from_raw_parts_mut(buffer.cast::<u8>(), count)
    })
}

/// An array of `count` keys or values from C, each read by `read`.
///
/// # Safety
/// - `starts` and `lengths` are each null or have `count` elements, and each element and its length meet the
///   requirements of `read`.
pub(crate) unsafe fn many<T>(
    read: unsafe fn(*const c_void, usize) -> Result<T, Failure>,
    starts: *const *const c_void,
    lengths: *const usize,
    count: usize,
) -> Result<Vec<T>, Failure> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if starts.is_null() || lengths.is_null() {
        return Err(Failure::invalid("an array of keys or values, or of their lengths, is null"));
    }
    if count > isize::MAX as usize / size_of::<usize>() {
        return Err(Failure::limit("array", count, isize::MAX as usize / size_of::<usize>()));
    }
    // SAFETY: both are not null, and `count` elements are no longer than a slice may be; both checked above. So they
    // have `count` elements, as the Safety section demands.
    let (starts, lengths) =
        unsafe { (std::slice::from_raw_parts(starts, count), std::slice::from_raw_parts(lengths, count)) };
    // SAFETY: each element and its length meet the requirements of `read`, as the Safety section demands.
    starts.iter().zip(lengths).map(|(start, length)| unsafe { read(*start, *length) }).collect()
}

/// A place for a result. INVARIANT: the pointer is aligned and writable.
#[derive(Debug)]
pub(crate) struct Place<T>(*mut T);

impl<T> Place<T> {
    /// Checks the pointer and writes `nothing` there, which stays if the call fails.
    ///
    /// # Safety
    /// - `place` is null, or aligned and writable until the call ends.
    pub(crate) unsafe fn of(what: &str, place: *mut T, nothing: T) -> Result<Place<T>, Failure> {
        if place.is_null() {
            return Err(no_place(what));
        }
        let mut place = Place(place);
        place.put(nothing);
        Ok(place)
    }

    /// Like [`of`](Place::of), but null means that the caller does not want the result.
    ///
    /// # Safety
    /// - As `of`.
    pub(crate) unsafe fn perhaps(place: *mut T, nothing: T) -> Option<Place<T>> {
        // SAFETY: `place` meets the requirement of `of`, as the Safety section demands.
        unsafe { Place::of("result", place, nothing) }.ok()
    }

    /// Writes the result. The old content is not dropped, because it may be uninitialized.
    pub(crate) fn put(&mut self, result: T) {
        // SAFETY: the pointer is aligned and writable, by the invariant of `Place`.
        unsafe { self.0.write(result) }
    }
}

/// A place for a struct that the program may know with fewer or more fields at its end. INVARIANT: the pointer has
/// this number of writable bytes.
#[derive(Debug)]
pub(crate) struct Fields<T>(*mut T, usize);

impl<T: Copy> Fields<T> {
    /// Checks the pointer and writes zeros there, which stay if the call fails.
    ///
    /// # Safety
    /// - `place` is null, or has `bytes` writable bytes until the call ends.
    pub(crate) unsafe fn of(what: &str, place: *mut T, bytes: usize) -> Result<Fields<T>, Failure> {
        if place.is_null() {
            return Err(no_place(what));
        }
        // SAFETY: `place` is not null, checked above, and so has `bytes` writable bytes, as the Safety section
        // demands.
        unsafe { place.cast::<u8>().write_bytes(0, bytes) };
        Ok(Fields(place, bytes))
    }

    /// Writes the fields that have room.
    pub(crate) fn put(&mut self, fields: T) {
        let bytes = self.1.min(size_of::<T>());
        // SAFETY: the pointer has `bytes <= self.1` writable bytes, by the invariant, and `fields` has `bytes <=
        // size_of::<T>()`. It is a local variable, so they do not overlap.
        unsafe { ptr::copy_nonoverlapping((&raw const fields).cast::<u8>(), self.0.cast(), bytes) };
    }
}

#[cold]
fn no_place(what: &str) -> Failure {
    Failure::invalid(format_args!("the place for the {what} is null"))
}

/// Text with a zero byte at its end, and none before.
pub(crate) fn ended(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}

//! Reading: one key in three ways, many keys, how many there are, and all of a range at once.

use crate::argument::{self, Place, key};
use crate::code::{FORREST_NOT_FOUND, FORREST_OK, FORREST_TOO_SMALL};
use crate::db::Db;
use crate::failure::{Failure, guard};
use crate::value::{Value, hand_over, hold, release};
use forrest_rust::View;
use std::ffi::c_void;
use std::ops::{Bound, ControlFlow};
use std::ptr;

/// Reads the value of a key and holds it: `forrest_value_data` has its bytes, `forrest_value_release` gives it back.
/// A long value is shared with a store in memory, not copied.
///
/// `FORREST_NOT_FOUND` if the key is not there, and nothing is to be released then; `FORREST_LIMIT` if it is too long,
/// `FORREST_IO`, `FORREST_CORRUPT`.
///
/// # Safety
/// - `key` has `key_bytes` bytes, or is null.
/// - `value` is null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_get(
    db: *const Db,
    key: *const c_void,
    key_bytes: usize,
    value: *mut *mut Value,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promises.
        let (mut value, key) =
            unsafe { (Place::of("value", value, ptr::null_mut())?, self::key(key, key_bytes)?) };
        let Some(found) = Db::of(db)?.view().get(key)? else { return Ok(FORREST_NOT_FOUND) };
        value.put(hold(Some(found))?);
        Ok(FORREST_OK)
    })
}

/// Reads the value of a key into memory of its own, to be given to `forrest_free`. Of a value of length 0 that is some
/// memory as well.
///
/// `FORREST_NOT_FOUND` if the key is not there, and nothing is to be freed then; errors as of `forrest_get`, and
/// `FORREST_OUT_OF_SPACE`.
///
/// # Safety
/// - `key` has `key_bytes` bytes, or is null.
/// - `value` and `value_bytes` are each null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_get_alloc(
    db: *const Db,
    key: *const c_void,
    key_bytes: usize,
    value: *mut *mut c_void,
    value_bytes: *mut usize,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promises.
        let (mut value, mut length, key) = unsafe {
            (
                Place::of("value", value, ptr::null_mut())?,
                Place::of("length", value_bytes, 0)?,
                self::key(key, key_bytes)?,
            )
        };
        let Some(found) = Db::of(db)?.view().get(key)? else { return Ok(FORREST_NOT_FOUND) };
        value.put(hand_over(&found)?);
        length.put(found.len());
        Ok(FORREST_OK)
    })
}

/// Reads the value of a key into a buffer of the caller's, and tells its length.
///
/// `FORREST_TOO_SMALL` if it is longer than the buffer: then nothing is written there, and the length is that which is
/// needed. (The value may be longer still when it is asked for again.) `FORREST_NOT_FOUND` if the key is not there;
/// errors as of `forrest_get`.
///
/// # Safety
/// - `key` has `key_bytes` bytes, or is null.
/// - `buffer` has `buffer_bytes` bytes that may be written to and are not the key's, or is null.
/// - `value_bytes` is null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_get_into(
    db: *const Db,
    key: *const c_void,
    key_bytes: usize,
    buffer: *mut c_void,
    buffer_bytes: usize,
    value_bytes: *mut usize,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promises.
        let (mut length, key) = unsafe { (Place::of("length", value_bytes, 0)?, self::key(key, key_bytes)?) };
        if buffer.is_null() && buffer_bytes > 0 {
            return Err(Failure::invalid(format_args!("the buffer is null, and its length {buffer_bytes}")));
        }
        let Some(found) = Db::of(db)?.view().get(key)? else { return Ok(FORREST_NOT_FOUND) };
        length.put(found.len());
        if found.len() > buffer_bytes {
            return Ok(FORREST_TOO_SMALL);
        }
        if !found.is_empty() {
            // SAFETY: the buffer is not null, as it has room for something; it has so many bytes, as the caller
            // promises; and nobody outside the library knows where the value is.
            unsafe { ptr::copy_nonoverlapping(found.as_ptr(), buffer.cast(), found.len()) };
        }
        Ok(FORREST_OK)
    })
}

/// Reads the values of many keys, faster than one after the other, because the waits for memory and the device overlap.
/// Each key is read by itself; for one state of all, read from a snapshot.
///
/// `values` gets a value for each key, to be given to `forrest_value_release`, or null if it is not there. If the call
/// fails, all are null. Errors as of `forrest_get`.
///
/// # Safety
/// - `keys` and `keys_bytes` each have `count` elements, or are null; each key has as many bytes as its element of
///   `keys_bytes` says, or is null.
/// - `values` has `count` elements that may be written to, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_multi_get(
    db: *const Db,
    keys: *const *const c_void,
    keys_bytes: *const usize,
    count: usize,
    values: *mut *mut Value,
) -> i32 {
    guard(|| {
        if count == 0 {
            return Db::of(db).map(|_| FORREST_OK);
        }
        if keys.is_null() || keys_bytes.is_null() || values.is_null() {
            return Err(Failure::invalid("the keys, their lengths or the places for the values are null"));
        }
        if count > isize::MAX as usize / size_of::<usize>() {
            return Err(Failure::limit("keys", count, isize::MAX as usize / size_of::<usize>()));
        }
        // SAFETY: they are not null, and the caller promises the rest.
        let (keys, keys_bytes, values) = unsafe {
            for at in 0..count {
                values.add(at).write(ptr::null_mut());
            }
            (
                std::slice::from_raw_parts(keys, count),
                std::slice::from_raw_parts(keys_bytes, count),
                std::slice::from_raw_parts_mut(values, count),
            )
        };
        // SAFETY: the caller's promise.
        let keys = keys.iter().zip(keys_bytes).map(|(key, bytes)| unsafe { self::key(*key, *bytes) });
        let keys = keys.collect::<Result<Vec<&[u8]>, Failure>>()?;
        let found = Db::of(db)?.view().multi_get(&keys)?;
        for (at, value) in found.into_iter().enumerate() {
            match hold(value) {
                Ok(held) => values[at] = held,
                Err(failure) => {
                    release(values[..at].iter_mut().map(|value| std::mem::replace(value, ptr::null_mut())));
                    return Err(failure);
                }
            }
        }
        Ok(FORREST_OK)
    })
}

/// Tells whether a key is there: `FORREST_OK`, or `FORREST_NOT_FOUND` if not. Errors as of `forrest_get`.
///
/// # Safety
/// - `key` has `key_bytes` bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_contains(db: *const Db, key: *const c_void, key_bytes: usize) -> i32 {
    guard(|| {
        // SAFETY: the caller's promise.
        let key = unsafe { self::key(key, key_bytes) }?;
        Ok(if Db::of(db)?.view().contains(key)? { FORREST_OK } else { FORREST_NOT_FOUND })
    })
}

/// Counts the keys from `start` on and before `end`; a null `end` is no end. Takes time in
/// proportion to their number. Errors as of `forrest_get`.
///
/// # Safety
/// - `start` has `start_bytes` bytes, and `end` has `end_bytes`, or they are null.
/// - `keys` is null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_count(
    db: *const Db,
    start: *const c_void,
    start_bytes: usize,
    end: *const c_void,
    end_bytes: usize,
    keys: *mut u64,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promises.
        let (mut keys, start, end) = unsafe {
            (Place::of("count", keys, 0)?, key(start, start_bytes)?, argument::end(end, end_bytes)?)
        };
        let end = end.map_or(Bound::Unbounded, Bound::Excluded);
        keys.put(Db::of(db)?.view().count((Bound::Included(start), end))?);
        Ok(FORREST_OK)
    })
}

/// What a scan shows each pair to, with the `context` that the scan was given: true to go on, false to end the scan. It
/// keeps no pointer to a key or a value, and it returns: no exception and no `longjmp` leaves it. It may call this
/// library, and should be quick.
pub type See = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        key: *const c_void,
        key_bytes: usize,
        value: *const c_void,
        value_bytes: usize,
    ) -> bool,
>;

/// Shows the pairs from `start` on and before `end` to `see`, in the order of their keys, as long as it returns true:
/// the quickest way through a range, because nothing is copied. A null `end` is no end. `see`
/// is called by this thread; what it sees of changes by others is what an iterator sees.
///
/// `FORREST_OK` also if `see` returned false. Errors as of `forrest_get`, and `FORREST_INVALID_ARGUMENT` if `see` is
/// null; it may have seen some pairs then.
///
/// # Safety
/// - `start` has `start_bytes` bytes, and `end` has `end_bytes`, or they are null.
/// - `see` does as `forrest_see` says, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_scan(
    db: *const Db,
    start: *const c_void,
    start_bytes: usize,
    end: *const c_void,
    end_bytes: usize,
    see: See,
    context: *mut c_void,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promises.
        let (start, end) = unsafe { (key(start, start_bytes)?, argument::end(end, end_bytes)?) };
        scan(db, see, context, |view, show| view.scan((Bound::Included(start), before(end)), show))
    })
}

/// As `forrest_scan`, from the last pair of the range to its first.
///
/// # Safety
/// - As of `forrest_scan`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_scan_back(
    db: *const Db,
    start: *const c_void,
    start_bytes: usize,
    end: *const c_void,
    end_bytes: usize,
    see: See,
    context: *mut c_void,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promises.
        let (start, end) = unsafe { (key(start, start_bytes)?, argument::end(end, end_bytes)?) };
        scan(db, see, context, |view, show| view.scan_back((Bound::Included(start), before(end)), show))
    })
}

fn before(end: Option<&[u8]>) -> Bound<&[u8]> {
    end.map_or(Bound::Unbounded, Bound::Excluded)
}

/// Shows what `walk` finds to C.
fn scan(
    db: *const Db,
    see: See,
    context: *mut c_void,
    walk: impl FnOnce(&View, &mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>) -> forrest_rust::Result<()>,
) -> Result<i32, Failure> {
    let see = see.ok_or_else(|| Failure::invalid("the function to show pairs to is null"))?;
    // Not under the handle's lock: the function may give the handle back.
    let view = Db::of(db)?.view().clone();
    walk(&view, &mut |key, value| {
        // SAFETY: the caller of `forrest_scan` promises that it is such a function.
        let goes_on =
            unsafe { see(context, key.as_ptr().cast(), key.len(), value.as_ptr().cast(), value.len()) };
        if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(FORREST_OK)
}

//! Reads: three ways to get one key, many keys at once, counts, and scans.

use crate::argument::{self, Place, key};
use crate::code::{FORREST_NOT_CACHED, FORREST_NOT_FOUND, FORREST_OK, FORREST_TOO_SMALL};
use crate::db::Db;
use crate::failure::{Failure, guard};
use crate::value::{Value, answer, hand_over, hold, release};
use forrest_rust::{Cached, View};
use std::ffi::c_void;
use std::ops::{Bound, ControlFlow};
use std::ptr;

/// Reads the value of a key and holds it. `forrest_value_data` returns its bytes; release it with
/// `forrest_value_release`. A long value of a store in memory is shared with the store, not copied.
///
/// `FORREST_NOT_FOUND` if the key does not exist; there is nothing to release then. `FORREST_LIMIT` if the
/// key is too long; `FORREST_IO`; `FORREST_CORRUPT`.
///
/// # Safety
/// - `key` is null or has `key_bytes` readable bytes.
/// - `value` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_get(
    db: *const Db,
    key: *const c_void,
    key_bytes: usize,
    value: *mut *mut Value,
) -> i32 {
    guard(|| {
        // SAFETY: `key` is null or has `key_bytes` readable bytes, and `value` is null or writable, as the
        // Safety section demands.
        let (value, key) =
            unsafe { (Place::of("value", value, ptr::null_mut())?, self::key(key, key_bytes)?) };
        answer(value, Db::of(db)?.view().get(key)?)
    })
}

/// Reads the value of a key as `forrest_get` does, if that takes no wait for a device, nor for a thread that waits for
/// one: for threads that must not block, such as those of an event loop.
///
/// `FORREST_NOT_CACHED` if it would have to wait; then call `forrest_get` in another thread. On disk a value that stays
/// in a log is not cached, and right after opening every key of a table may not be. In memory and in the kernel every
/// key is cached. Otherwise returns what `forrest_get` returns.
///
/// # Safety
/// - `key` is null or has `key_bytes` readable bytes.
/// - `value` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_get_cached(
    db: *const Db,
    key: *const c_void,
    key_bytes: usize,
    value: *mut *mut Value,
) -> i32 {
    guard(|| {
        // SAFETY: `key` is null or has `key_bytes` readable bytes, and `value` is null or writable, as the
        // Safety section demands.
        let (value, key) =
            unsafe { (Place::of("value", value, ptr::null_mut())?, self::key(key, key_bytes)?) };
        match Db::of(db)?.view().get_cached(key)? {
            Cached::Known(found) => answer(value, found),
            Cached::Unknown => Ok(FORREST_NOT_CACHED),
        }
    })
}

/// Reads the value of a key into newly allocated memory. Free it with `forrest_free`, even if the length of
/// the value is 0.
///
/// `FORREST_NOT_FOUND` if the key does not exist; there is nothing to free then. Errors as of `forrest_get`,
/// and `FORREST_OUT_OF_SPACE`.
///
/// # Safety
/// - `key` is null or has `key_bytes` readable bytes.
/// - `value` and `value_bytes` are each null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_get_alloc(
    db: *const Db,
    key: *const c_void,
    key_bytes: usize,
    value: *mut *mut c_void,
    value_bytes: *mut usize,
) -> i32 {
    guard(|| {
        // SAFETY: `key` is null or has `key_bytes` readable bytes, and `value` and `value_bytes` are null or
        // writable, as the Safety section demands.
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

/// Reads the value of a key into a buffer of the caller, and returns its length in `value_bytes`.
///
/// `FORREST_TOO_SMALL` if the value is longer than the buffer. Then nothing is written to the buffer, and
/// `value_bytes` is the necessary length. (At the next call the value may be longer.) `FORREST_NOT_FOUND` if
/// the key does not exist. Errors as of `forrest_get`.
///
/// # Safety
/// - `key` is null or has `key_bytes` readable bytes.
/// - `buffer` is null, or has `buffer_bytes` writable bytes that do not overlap the key.
/// - `value_bytes` is null or writable.
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
        // SAFETY: `key` is null or has `key_bytes` readable bytes, and `value_bytes` is null or writable, as
        // the Safety section demands.
        let (mut length, key) = unsafe { (Place::of("length", value_bytes, 0)?, self::key(key, key_bytes)?) };
        if buffer.is_null() && buffer_bytes > 0 {
            let message = format_args!("the buffer is null, but its length is {buffer_bytes}");
            return Err(Failure::invalid(message));
        }
        let Some(found) = Db::of(db)?.view().get(key)? else { return Ok(FORREST_NOT_FOUND) };
        length.put(found.len());
        if found.len() > buffer_bytes {
            return Ok(FORREST_TOO_SMALL);
        }
        if !found.is_empty() {
            // SAFETY: `buffer_bytes >= found.len() > 0`, so `buffer` is not null, checked above. It has
            // `buffer_bytes` writable bytes, as the Safety section demands. They do not overlap `found`,
            // which the library owns.
            unsafe { ptr::copy_nonoverlapping(found.as_ptr(), buffer.cast(), found.len()) };
        }
        Ok(FORREST_OK)
    })
}

/// Reads the values of many keys. This is faster than single reads, because the waits for memory and the
/// device overlap. Keys may be read at different moments; to read all at one moment, use a snapshot.
///
/// `values` gets a value for each key, or null if the key does not exist. Release each with
/// `forrest_value_release`. If the call fails, all are null. Errors as of `forrest_get`.
///
/// # Safety
/// - `keys` and `keys_bytes` are each null or have `count` elements. Each key is null or has the number of
///   bytes in its element of `keys_bytes`.
/// - `values` is null or has `count` writable elements.
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
            return Err(Failure::invalid("keys, keys_bytes or values is null"));
        }
        if count > isize::MAX as usize / size_of::<usize>() {
            return Err(Failure::limit("keys", count, isize::MAX as usize / size_of::<usize>()));
        }
        // SAFETY: `keys`, `keys_bytes` and `values` are not null, and `count` elements are no longer than a
        // slice may be; both checked above. So they have `count` elements, as the Safety section demands. The
        // writes make `values` initialized.
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
        // SAFETY: each key is null or has as many readable bytes as its length says, as the Safety section
        // demands.
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

/// Checks whether a key exists: `FORREST_OK` if it does, `FORREST_NOT_FOUND` if not. Errors as of
/// `forrest_get`.
///
/// # Safety
/// - `key` is null or has `key_bytes` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_contains(db: *const Db, key: *const c_void, key_bytes: usize) -> i32 {
    guard(|| {
        // SAFETY: `key` is null or has `key_bytes` readable bytes, as the Safety section demands.
        let key = unsafe { self::key(key, key_bytes) }?;
        Ok(if Db::of(db)?.view().contains(key)? { FORREST_OK } else { FORREST_NOT_FOUND })
    })
}

/// Writes the time at which the value of a key expires to `*expires_ms`, in milliseconds since 1970; 0 if it stays.
/// `FORREST_NOT_FOUND` if the key does not exist. Errors as of `forrest_get`.
///
/// # Safety
/// - `key` is null or has `key_bytes` readable bytes.
/// - `expires_ms` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_expires(
    db: *const Db,
    key: *const c_void,
    key_bytes: usize,
    expires_ms: *mut u64,
) -> i32 {
    guard(|| {
        // SAFETY: `key` is null or has `key_bytes` readable bytes, and `expires_ms` is null or writable, as the Safety
        // section demands.
        let (key, mut place) =
            unsafe { (self::key(key, key_bytes)?, Place::of("expires_ms", expires_ms, 0)?) };
        // By one read: another thread may set the key between two.
        let Some(expires) = Db::of(db)?.view().expires_ms(key)? else { return Ok(FORREST_NOT_FOUND) };
        place.put(expires.unwrap_or_default());
        Ok(FORREST_OK)
    })
}

/// Counts the keys from `start` up to, but without, `end`. A null `end` is no end. Takes time proportional to
/// their number. Errors as of `forrest_get`.
///
/// # Safety
/// - `start` is null or has `start_bytes` readable bytes, and `end` is null or has `end_bytes`.
/// - `keys` is null or writable.
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
        // SAFETY: `start` and `end` are null or have `start_bytes` and `end_bytes` readable bytes, and `keys`
        // is null or writable, as the Safety section demands.
        let (mut keys, range) =
            unsafe { (Place::of("count", keys, 0)?, argument::range(start, start_bytes, end, end_bytes)?) };
        keys.put(Db::of(db)?.view().count(range)?);
        Ok(FORREST_OK)
    })
}

/// The number of keys from `start` up to, but without, `end`, about, and the bytes that they and their values take. A
/// null `end` is no end. Does not read them: the time that it takes grows with the logarithm of their number, and on
/// disk with the number of tables. In memory a number of many keys is off by 2 % on average. On disk it is exact if
/// all is in tables and no key was replaced or deleted; otherwise it is off by no more than the replaced and deleted
/// entries in the tables there, and the keys in memory.
///
/// `FORREST_UNSUPPORTED` if the home has no `FORREST_CAN_APPROXIMATE`. Errors as of `forrest_get`.
///
/// # Safety
/// - `start` is null or has `start_bytes` readable bytes, and `end` is null or has `end_bytes`.
/// - `keys` and `bytes` are each null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_approximate(
    db: *const Db,
    start: *const c_void,
    start_bytes: usize,
    end: *const c_void,
    end_bytes: usize,
    keys: *mut u64,
    bytes: *mut u64,
) -> i32 {
    guard(|| {
        // SAFETY: `start` and `end` are null or have `start_bytes` and `end_bytes` readable bytes, and `keys` and
        // `bytes` are null or writable, as the Safety section demands.
        let (mut keys, mut bytes, range) = unsafe {
            (
                Place::of("number of keys", keys, 0)?,
                Place::of("number of bytes", bytes, 0)?,
                argument::range(start, start_bytes, end, end_bytes)?,
            )
        };
        let about = Db::of(db)?.view().approximate(range)?;
        keys.put(about.keys);
        bytes.put(about.bytes);
        Ok(FORREST_OK)
    })
}

/// The function that `forrest_multi_scan` calls with each pair, and with the number of its range. It returns true to
/// continue, false to end the scan. It must meet the requirements of `forrest_see`.
pub type SeeIn = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        range: usize,
        key: *const c_void,
        key_bytes: usize,
        value: *const c_void,
        value_bytes: usize,
    ) -> bool,
>;

/// Calls `see` with the first `limit` pairs of each of many ranges, range by range in their order, as long as it
/// returns true. Range `n` begins at `starts[n]` and ends before `ends[n]`; a null end is no end. With `keys_only`,
/// values are not read, and their lengths are 0.
///
/// This is faster than a scan of each range, because the waits of 16 ranges for the device overlap. Ranges may be
/// read at different moments; to read all at one moment, use a snapshot.
///
/// `FORREST_OK` also if `see` returned false. Errors as of `forrest_scan`, and `FORREST_INVALID_ARGUMENT` if an array
/// is null and `count` is not 0.
///
/// # Safety
/// - `starts`, `starts_bytes`, `ends` and `ends_bytes` are each null or have `count` elements. Each start and each
///   end is null or has the number of bytes in its element of `starts_bytes` or `ends_bytes`.
/// - `see` is null, or a function that meets the requirements of `forrest_see_in`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_multi_scan(
    db: *const Db,
    starts: *const *const c_void,
    starts_bytes: *const usize,
    ends: *const *const c_void,
    ends_bytes: *const usize,
    count: usize,
    limit: usize,
    keys_only: bool,
    see: SeeIn,
    context: *mut c_void,
) -> i32 {
    guard(|| {
        let see = see.ok_or_else(|| Failure::invalid("the function of the scan is null"))?;
        // SAFETY: the arrays are null or have `count` elements, each of which is null or has as many readable bytes as
        // its length says, as the Safety section demands.
        let (starts, ends) = unsafe {
            (
                argument::many(argument::bound, starts, starts_bytes, count)?,
                argument::many(argument::end, ends, ends_bytes, count)?,
            )
        };
        let ranges = starts.into_iter().zip(ends);
        let ranges: Vec<_> =
            ranges.map(|(start, end)| (Bound::Included(start), argument::before(end))).collect();
        // The scan does not hold the handle's lock, because `see` may close the handle.
        let view = Db::of(db)?.view().clone();
        let show = |range: usize, key: &[u8], value: &[u8]| {
            let (value, value_bytes) = (value.as_ptr().cast(), value.len());
            // SAFETY: `see` meets the requirements of `forrest_see_in`, as the Safety section demands. `key` and
            // `value` have the lengths that it gets.
            let goes_on = unsafe { see(context, range, key.as_ptr().cast(), key.len(), value, value_bytes) };
            if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        if keys_only {
            view.multi_scan_keys(&ranges, limit, |range, key| show(range, key, &[]))?;
        } else {
            view.multi_scan(&ranges, limit, show)?;
        }
        Ok(FORREST_OK)
    })
}

/// Checks for each of many prefixes whether there is a key that begins with it, and sets the elements of `exist`. The
/// waits for the device overlap, as those of `forrest_multi_scan`. If the call fails, all are false. Errors as of
/// `forrest_get`.
///
/// # Safety
/// - `prefixes` and `prefixes_bytes` are each null or have `count` elements. Each prefix is null or has the number of
///   bytes in its element of `prefixes_bytes`.
/// - `exist` is null or has `count` writable elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_prefixes_exist(
    db: *const Db,
    prefixes: *const *const c_void,
    prefixes_bytes: *const usize,
    count: usize,
    exist: *mut bool,
) -> i32 {
    guard(|| {
        if count > 0 && exist.is_null() {
            return Err(Failure::invalid("the array of results is null"));
        }
        // SAFETY: the arrays are null or have `count` elements, each of which is null or has as many readable bytes as
        // its length says, as the Safety section demands.
        let prefixes = unsafe { argument::many(argument::bound, prefixes, prefixes_bytes, count) };
        // A count beyond the limit writes nothing.
        if count <= isize::MAX as usize / size_of::<usize>() {
            // SAFETY: `exist` is not null, checked above, or `count` is 0. It has `count` writable elements.
            (0..count).for_each(|at| unsafe { exist.add(at).write(false) });
        }
        for (at, is_there) in Db::of(db)?.view().prefixes_exist(&prefixes?)?.into_iter().enumerate() {
            // SAFETY: as above; there are as many results as prefixes.
            unsafe { exist.add(at).write(is_there) };
        }
        Ok(FORREST_OK)
    })
}

/// The function that a scan calls with each pair, and with the `context` of the scan. It returns true to
/// continue, false to end the scan. It must not keep a pointer to the key or value, and must return normally,
/// not by an exception or `longjmp`. It may call this library, and should be short.
pub type See = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        key: *const c_void,
        key_bytes: usize,
        value: *const c_void,
        value_bytes: usize,
    ) -> bool,
>;

/// Calls `see` with each pair from `start` up to, but without, `end`, in the order of their keys, as long as
/// it returns true. A null `end` is no end. This is the fastest iteration, because it copies nothing. This
/// thread makes the calls. They see the same concurrent changes as an iterator.
///
/// `FORREST_OK` also if `see` returned false. Errors as of `forrest_get`; `see` may have been called for some
/// pairs before. `FORREST_INVALID_ARGUMENT` also if `see` is null.
///
/// # Safety
/// - `start` is null or has `start_bytes` readable bytes, and `end` is null or has `end_bytes`.
/// - `see` is null, or a function that meets the requirements of `forrest_see`.
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
        // SAFETY: `start` and `end` are null or have `start_bytes` and `end_bytes` readable bytes, as the
        // Safety section demands.
        let range = unsafe { argument::range(start, start_bytes, end, end_bytes) }?;
        scan(db, see, context, |view, show| view.scan(range, show))
    })
}

/// Like `forrest_scan`, from the last pair of the range to its first.
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
        // SAFETY: `start` and `end` are null or have `start_bytes` and `end_bytes` readable bytes, as the
        // Safety section demands.
        let range = unsafe { argument::range(start, start_bytes, end, end_bytes) }?;
        scan(db, see, context, |view, show| view.scan_back(range, show))
    })
}

/// Calls `see` with each pair that `walk` finds.
fn scan(
    db: *const Db,
    see: See,
    context: *mut c_void,
    walk: impl FnOnce(&View, &mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>) -> forrest_rust::Result<()>,
) -> Result<i32, Failure> {
    let see = see.ok_or_else(|| Failure::invalid("the function of the scan is null"))?;
    // The scan does not hold the handle's lock, because `see` may close the handle.
    let view = Db::of(db)?.view().clone();
    walk(&view, &mut |key, value| {
        // SAFETY: `see` meets the requirements of `forrest_see`, as the Safety section of the calling
        // function demands. `key` and `value` have the lengths that it gets.
        let goes_on =
            unsafe { see(context, key.as_ptr().cast(), key.len(), value.as_ptr().cast(), value.len()) };
        if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(FORREST_OK)
}

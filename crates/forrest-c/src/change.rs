//! Changing single keys, and ranges of them.

use crate::argument::{self, Place, key, perhaps, value};
use crate::code::{FORREST_MISMATCH, FORREST_NOT_FOUND, FORREST_OK};
use crate::db::Db;
use crate::failure::{Failure, guard};
use crate::value::{Value, hold};
use forrest_rust::{Op, Outcome, Swap};
use std::ffi::c_void;
use std::ptr;

/// Maps a key to a value, whether it was there or not.
///
/// `FORREST_LIMIT` if one of them is too long (keys have 65,535 bytes at most, 4,096 in the kernel; values
/// 4,294,967,295), `FORREST_INVALID_ARGUMENT` also if `db` is a snapshot, or its keyspace was dropped;
/// `FORREST_OUT_OF_SPACE`, `FORREST_IO`, `FORREST_STOPPED`, and `FORREST_UNSUPPORTED` if the store is open to be read
/// only.
///
/// # Safety
/// - `key` has `key_bytes` bytes, and `value` has `value_bytes`, or they are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_set(
    db: *mut Db,
    key: *const c_void,
    key_bytes: usize,
    value: *const c_void,
    value_bytes: usize,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promises.
        let (key, value) = unsafe { (self::key(key, key_bytes)?, self::value(value, value_bytes)?) };
        apply(db, Op::Set { key, value }).map(|_| FORREST_OK)
    })
}

/// Removes a key. `FORREST_NOT_FOUND` if it was not there; otherwise as `forrest_set`.
///
/// # Safety
/// - `key` has `key_bytes` bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_delete(db: *mut Db, key: *const c_void, key_bytes: usize) -> i32 {
    guard(|| {
        // SAFETY: the caller's promise.
        let key = unsafe { self::key(key, key_bytes) }?;
        match apply(db, Op::Delete { key })? {
            Outcome::Deleted(false) => Ok(FORREST_NOT_FOUND),
            _ => Ok(FORREST_OK),
        }
    })
}

/// Removes all keys from `start` on and before `end` at one instant, and tells how many there were; a null
/// `end` is no end. Errors as of `forrest_set`.
///
/// # Safety
/// - `start` has `start_bytes` bytes, and `end` has `end_bytes`, or they are null.
/// - `deleted` may be written to, or is null, if it is not wanted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_delete_range(
    db: *mut Db,
    start: *const c_void,
    start_bytes: usize,
    end: *const c_void,
    end_bytes: usize,
    deleted: *mut u64,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promises.
        let (deleted, start, end) =
            unsafe { (Place::perhaps(deleted, 0), key(start, start_bytes)?, argument::end(end, end_bytes)?) };
        if let (Outcome::DeletedRange(keys), Some(mut deleted)) =
            (apply(db, Op::DeleteRange { start, end })?, deleted)
        {
            deleted.put(keys);
        }
        Ok(FORREST_OK)
    })
}

/// Adds to a counter, at one instant, and tells its new value. A counter is a value of 8 bytes, a big-endian two's
/// complement integer; a key that is not there counts as 0.
///
/// `FORREST_INVALID_ARGUMENT` if the value is no counter, or the sum overflows; otherwise as `forrest_set`.
///
/// # Safety
/// - `key` has `key_bytes` bytes, or is null.
/// - `sum` may be written to, or is null, if it is not wanted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_add(
    db: *mut Db,
    key: *const c_void,
    key_bytes: usize,
    delta: i64,
    sum: *mut i64,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promises.
        let (sum, key) = unsafe { (Place::perhaps(sum, 0), self::key(key, key_bytes)?) };
        if let (Outcome::Added(found), Some(mut sum)) = (apply(db, Op::Add { key, delta })?, sum) {
            sum.put(found);
        }
        Ok(FORREST_OK)
    })
}

/// Replaces what a key maps to by another value, at one instant, if it is what was expected, byte for byte. Null with
/// the length `FORREST_ABSENT` is absence: what is expected to be so is made, and what becomes so is removed.
///
/// `FORREST_MISMATCH` if something else was there. Then nothing is changed, and `found` is what was there, to be given
/// to `forrest_value_release`, or null if nothing was. Errors as of `forrest_set`.
///
/// # Safety
/// - `key` has `key_bytes` bytes, `expected` has `expected_bytes`, and `desired` has `desired_bytes`, or they are null.
/// - `found` may be written to, or is null, if it is not wanted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_compare_and_swap(
    db: *mut Db,
    key: *const c_void,
    key_bytes: usize,
    expected: *const c_void,
    expected_bytes: usize,
    desired: *const c_void,
    desired_bytes: usize,
    found: *mut *mut Value,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promises.
        let (found, key, expected, new) = unsafe {
            (
                Place::perhaps(found, ptr::null_mut()),
                self::key(key, key_bytes)?,
                perhaps(value, expected, expected_bytes)?,
                perhaps(value, desired, desired_bytes)?,
            )
        };
        let Outcome::Swapped(Swap::Mismatch(there)) = apply(db, Op::CompareAndSwap { key, expected, new })?
        else {
            return Ok(FORREST_OK);
        };
        if let Some(mut found) = found {
            found.put(hold(there)?);
        }
        Ok(FORREST_MISMATCH)
    })
}

/// The one write path: all changes but batches.
fn apply(db: *mut Db, op: Op<&[u8]>) -> Result<Outcome, Failure> {
    Ok(Db::of(db)?.newest()?.1.apply(op)?)
}

//! Changes of single keys and of ranges.

use crate::argument::{self, Place, key, perhaps, text, value};
use crate::code::{FORREST_MISMATCH, FORREST_NOT_FOUND, FORREST_OK};
use crate::db::Db;
use crate::failure::{Failure, guard};
use crate::value::{Value, hold};
use forrest_rust::{Expires, Op, Outcome, Swap, prefix_end};
use std::ffi::{c_char, c_void};
use std::ops::Bound;
use std::ptr;
use std::time::Duration;

/// Sets the value of a key, whether or not the key exists.
///
/// `FORREST_LIMIT` if one of them is too long (a key has at most 65,535 bytes, in the kernel 4,096; a value
/// 4,294,967,295); `FORREST_INVALID_ARGUMENT` also if `db` is a snapshot, or its keyspace was dropped;
/// `FORREST_OUT_OF_SPACE`; `FORREST_IO`; `FORREST_STOPPED`; `FORREST_UNSUPPORTED` if the store is open
/// read-only.
///
/// # Safety
/// - `key` is null or has `key_bytes` readable bytes, and `value` is null or has `value_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_set(
    db: *mut Db,
    key: *const c_void,
    key_bytes: usize,
    value: *const c_void,
    value_bytes: usize,
) -> i32 {
    guard(|| {
        // SAFETY: `key` and `value` are null or have `key_bytes` and `value_bytes` readable bytes, as the
        // Safety section demands.
        let (key, value) = unsafe { (self::key(key, key_bytes)?, self::value(value, value_bytes)?) };
        apply(db, Op::Set { key, value }).map(|_| FORREST_OK)
    })
}

/// Sets the value of a key for `ttl_ms` milliseconds. From then on no read returns the value, and its key counts as
/// absent in every operation. Every later change of the key decides anew: `forrest_set` and the others give it the time
/// to live of the keyspace (`forrest_set_ttl`), or none. The time is that of the system's wall clock, but does not go
/// back while the store is open.
///
/// `FORREST_UNSUPPORTED` if the home has no `FORREST_CAN_TTL`; otherwise as `forrest_set`.
///
/// # Safety
/// - `key` is null or has `key_bytes` readable bytes, and `value` is null or has `value_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_set_with_ttl(
    db: *mut Db,
    key: *const c_void,
    key_bytes: usize,
    value: *const c_void,
    value_bytes: usize,
    ttl_ms: u64,
) -> i32 {
    guard(|| {
        // SAFETY: each is null or has as many readable bytes, as the Safety section demands.
        let (key, value) = unsafe { (self::key(key, key_bytes)?, self::value(value, value_bytes)?) };
        apply(db, Op::SetUntil { key, value, expires: Expires::In(ttl_ms) }).map(|_| FORREST_OK)
    })
}

/// Chooses the time to live of all values that the keyspace gets from now on without one of their own, in milliseconds;
/// 0 if they are to stay. Values that are there keep their time. On disk durable when it returns.
///
/// `FORREST_UNSUPPORTED` if the home has no `FORREST_CAN_TTL`, and if the store is open read-only;
/// `FORREST_INVALID_ARGUMENT` if the keyspace was dropped; `FORREST_IO`, `FORREST_OUT_OF_SPACE`, `FORREST_STOPPED`.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_set_ttl(db: *mut Db, ttl_ms: u64) -> i32 {
    guard(|| {
        let ttl = Some(Duration::from_millis(ttl_ms)).filter(|ttl| !ttl.is_zero());
        Db::of(db)?.newest()?.1.set_ttl(ttl)?;
        Ok(FORREST_OK)
    })
}

/// Writes the time to live that `forrest_set_ttl` chose to `*ttl_ms`; 0 if values stay.
///
/// # Safety
/// - `ttl_ms` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_ttl(db: *mut Db, ttl_ms: *mut u64) -> i32 {
    guard(|| {
        // SAFETY: `ttl_ms` is null or writable, as the Safety section demands.
        let mut place = unsafe { Place::of("ttl_ms", ttl_ms, 0) }?;
        let ttl = Db::of(db)?.newest()?.1.ttl().unwrap_or_default();
        place.put(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        Ok(FORREST_OK)
    })
}

/// Removes a key. `FORREST_NOT_FOUND` if it did not exist; otherwise as `forrest_set`.
///
/// # Safety
/// - `key` is null or has `key_bytes` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_delete(db: *mut Db, key: *const c_void, key_bytes: usize) -> i32 {
    guard(|| {
        // SAFETY: `key` is null or has `key_bytes` readable bytes, as the Safety section demands.
        let key = unsafe { self::key(key, key_bytes) }?;
        match apply(db, Op::Delete { key })? {
            Outcome::Deleted(false) => Ok(FORREST_NOT_FOUND),
            _ => Ok(FORREST_OK),
        }
    })
}

/// Removes all keys from `start` up to, but without, `end`. A null `end` is no end. `forrest_count` returns their
/// number. It is one change, and happens at one instant. On disk it takes the same time, log and memory for any
/// number of keys. Errors as of `forrest_set`; on disk `FORREST_CORRUPT` or `FORREST_IO` also if a table is damaged
/// that has keys in the range and may have others.
///
/// # Safety
/// - `start` is null or has `start_bytes` readable bytes, and `end` is null or has `end_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_delete_range(
    db: *mut Db,
    start: *const c_void,
    start_bytes: usize,
    end: *const c_void,
    end_bytes: usize,
) -> i32 {
    guard(|| {
        // SAFETY: `start` and `end` are null or have `start_bytes` and `end_bytes` readable bytes, as the
        // Safety section demands.
        let range = unsafe { argument::range(start, start_bytes, end, end_bytes) }?;
        delete(db, range)
    })
}

/// Removes all keys that begin with a prefix, like `forrest_delete_range`.
///
/// # Safety
/// - `prefix` is null or has `prefix_bytes` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_delete_prefix(
    db: *mut Db,
    prefix: *const c_void,
    prefix_bytes: usize,
) -> i32 {
    guard(|| {
        // SAFETY: `prefix` is null or has `prefix_bytes` readable bytes, as the Safety section demands.
        let start = unsafe { argument::bound(prefix, prefix_bytes) }?;
        let end = prefix_end(start);
        delete(db, (Bound::Included(start), argument::before(end.as_deref())))
    })
}

/// Removes all keys of a keyspace, like `forrest_delete_range`. The keyspace stays.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_clear(db: *mut Db) -> i32 {
    guard(|| apply(db, Op::DeleteRange { start: b"", end: None }).map(|_| FORREST_OK))
}

/// Adds to a counter, at one instant, and returns its new value in `sum`. A counter is a value of 8 bytes, a
/// big-endian two's complement integer. A missing key counts as 0.
///
/// `FORREST_INVALID_ARGUMENT` if the value is not a counter, or the sum overflows; otherwise as
/// `forrest_set`.
///
/// # Safety
/// - `key` is null or has `key_bytes` readable bytes.
/// - `sum` is writable, or null if the result is not wanted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_add(
    db: *mut Db,
    key: *const c_void,
    key_bytes: usize,
    delta: i64,
    sum: *mut i64,
) -> i32 {
    guard(|| {
        // SAFETY: `key` is null or has `key_bytes` readable bytes, and `sum` is null or writable, as the
        // Safety section demands.
        let (sum, key) = unsafe { (Place::perhaps(sum, 0), self::key(key, key_bytes)?) };
        if let (Outcome::Added(found), Some(mut sum)) = (apply(db, Op::Add { key, delta })?, sum) {
            sum.put(found);
        }
        Ok(FORREST_OK)
    })
}

/// Gives an operand to the merge operator of a keyspace, which makes a new value of it and the old one, at one instant.
/// `forrest_set_merge_operator` chooses the operator. On disk no table is read for a key that is not in memory, except
/// where values expire or the store keeps its history: the operand is applied by reads and by merges of tables.
///
/// `FORREST_INVALID_ARGUMENT` if the keyspace has no operator, or if it refuses the operand;
/// `FORREST_UNSUPPORTED` in the kernel; otherwise as `forrest_set`.
///
/// # Safety
/// - `key` is null or has `key_bytes` readable bytes, and so has `operand`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_merge(
    db: *mut Db,
    key: *const c_void,
    key_bytes: usize,
    operand: *const c_void,
    operand_bytes: usize,
) -> i32 {
    guard(|| {
        // SAFETY: each is null or has as many readable bytes, as the Safety section demands.
        let (key, operand) = unsafe { (self::key(key, key_bytes)?, value(operand, operand_bytes)?) };
        apply(db, Op::Merge { key, operand })?;
        Ok(FORREST_OK)
    })
}

/// Chooses the merge operator of an empty keyspace, for ever: `sum` (integers of 8 bytes, as of `forrest_add`), `max`
/// and `min` (in the order of bytes), `append`, or `union` (items in ascending order, each after its length as a
/// little-endian number of 4 bytes). Durable when it returns. Does nothing if the keyspace has this operator.
///
/// `FORREST_INVALID_ARGUMENT` if there is no such operator, or if the keyspace has another one or is not empty;
/// `FORREST_UNSUPPORTED` in the kernel.
///
/// # Safety
/// - `name` is a string that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_set_merge_operator(db: *mut Db, name: *const c_char) -> i32 {
    guard(|| {
        // SAFETY: `name` is null or a string, as the Safety section demands.
        let name = unsafe { text("name", name) }?;
        Db::of(db)?.newest()?.1.set_merge_operator(name)?;
        Ok(FORREST_OK)
    })
}

/// Replaces the value of a key by `desired`, at one instant, if it equals `expected`, byte for byte. Null
/// with the length `FORREST_ABSENT` is absence: as `expected` it demands that the key does not exist, as
/// `desired` it removes the key.
///
/// `FORREST_MISMATCH` if the key has another value. Then nothing is changed, and `found` is that value, or
/// null if there is none. Release it with `forrest_value_release`. Errors as of `forrest_set`.
///
/// # Safety
/// - `key`, `expected` and `desired` are each null or have `key_bytes`, `expected_bytes` and `desired_bytes`
///   readable bytes.
/// - `found` is writable, or null if the result is not wanted.
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
        // SAFETY: `key`, `expected` and `desired` are null or have `key_bytes`, `expected_bytes` and
        // `desired_bytes` readable bytes, and `found` is null or writable, as the Safety section demands.
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

/// Removes all keys of a range.
fn delete(db: *mut Db, range: argument::Range<'_>) -> Result<i32, Failure> {
    apply(db, Op::delete_range(range).borrowed()).map(|_| FORREST_OK)
}

/// The single write path of all changes outside of batches.
fn apply(db: *mut Db, op: Op<&[u8]>) -> Result<Outcome, Failure> {
    Ok(Db::of(db)?.newest()?.1.apply(op)?)
}

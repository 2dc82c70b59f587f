//! Batches: changes that are applied together or not at all.

use crate::argument::{self, Place, key, perhaps, value};
use crate::code::{FORREST_MISMATCH, FORREST_OK};
use crate::db::Db;
use crate::failure::{Failure, guard};
use crate::handle::Table;
use crate::options::{FORREST_DURABILITY_DEFAULT, durability};
use crate::value::{Value, hold};
use forrest_rust::{Expires, Keyspace, Op, WriteBatch, WriteOptions, Written};
use std::borrow::Cow;
use std::ffi::c_void;
use std::ptr;

/// Changes that are applied at one instant. Only one thread at a time may use a batch.
#[derive(Debug)]
pub struct Batch {
    changes: WriteBatch,
    /// The keyspace of the changes that are added; None for that of the handle to which the batch is written.
    on: Option<Keyspace>,
}

static BATCHES: Table<Batch, 1> = Table::new("batch", 4);

/// Creates an empty batch, which belongs to no store. Destroy it with `forrest_batch_destroy`.
///
/// # Safety
/// - `batch` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_batch_create(batch: *mut *mut Batch) -> i32 {
    guard(|| {
        // SAFETY: `batch` is null or writable, as the Safety section demands.
        let mut batch = unsafe { Place::of("batch", batch, ptr::null_mut()) }?;
        batch.put(BATCHES.insert([Batch { changes: WriteBatch::new(), on: None }])?);
        Ok(FORREST_OK)
    })
}

/// Selects the keyspace for the changes that are added from now on: that of the handle `db`. Without this
/// call, or after a call with null, changes are for the keyspace of the handle to which the batch is written.
///
/// `FORREST_INVALID_ARGUMENT` if `db` is a snapshot.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_batch_on(batch: *mut Batch, db: *const Db) -> i32 {
    guard(|| {
        let on = if db.is_null() { None } else { Some(Db::of(db)?.newest()?.1.clone()) };
        BATCHES.exclusive(batch)?.on = on;
        Ok(FORREST_OK)
    })
}

/// Adds a change that sets the value of a key. `FORREST_LIMIT` if one of them is too long for any store.
///
/// # Safety
/// - `key` is null or has `key_bytes` readable bytes, and `value` is null or has `value_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_batch_set(
    batch: *mut Batch,
    key: *const c_void,
    key_bytes: usize,
    value: *const c_void,
    value_bytes: usize,
) -> i32 {
    guard(|| {
        // SAFETY: `key` and `value` are null or have `key_bytes` and `value_bytes` readable bytes, as the
        // Safety section demands.
        let (key, value) = unsafe { (self::key(key, key_bytes)?, self::value(value, value_bytes)?) };
        push(batch, Op::Set { key, value })
    })
}

/// Adds a change that sets the value of a key for `ttl_ms` milliseconds from the time on at which the batch is applied.
/// See `forrest_set_with_ttl`. `FORREST_LIMIT` if one of them is too long for any store.
///
/// # Safety
/// - `key` is null or has `key_bytes` readable bytes, and `value` is null or has `value_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_batch_set_with_ttl(
    batch: *mut Batch,
    key: *const c_void,
    key_bytes: usize,
    value: *const c_void,
    value_bytes: usize,
    ttl_ms: u64,
) -> i32 {
    guard(|| {
        // SAFETY: each is null or has as many readable bytes, as the Safety section demands.
        let (key, value) = unsafe { (self::key(key, key_bytes)?, self::value(value, value_bytes)?) };
        push(batch, Op::SetUntil { key, value, expires: Expires::In(ttl_ms) })
    })
}

/// Adds a change that removes a key, if it exists. `FORREST_LIMIT` if the key is too long for any store.
///
/// # Safety
/// - `key` is null or has `key_bytes` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_batch_delete(
    batch: *mut Batch,
    key: *const c_void,
    key_bytes: usize,
) -> i32 {
    guard(|| {
        // SAFETY: `key` is null or has `key_bytes` readable bytes, as the Safety section demands.
        let key = unsafe { self::key(key, key_bytes) }?;
        push(batch, Op::Delete { key })
    })
}

/// Adds a change that removes all keys from `start` up to, but without, `end`. A null `end` is no end.
/// Changes that follow can set keys of the range again.
///
/// # Safety
/// - `start` is null or has `start_bytes` readable bytes, and `end` is null or has `end_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_batch_delete_range(
    batch: *mut Batch,
    start: *const c_void,
    start_bytes: usize,
    end: *const c_void,
    end_bytes: usize,
) -> i32 {
    guard(|| {
        // SAFETY: `start` and `end` are null or have `start_bytes` and `end_bytes` readable bytes, as the
        // Safety section demands.
        let range = unsafe { argument::range(start, start_bytes, end, end_bytes) }?;
        push(batch, Op::delete_range(range).borrowed())
    })
}

/// Adds a change that adds to a counter, like `forrest_add`. If the addition fails, so does the whole batch.
/// `FORREST_LIMIT` if the key is too long for any store.
///
/// # Safety
/// - `key` is null or has `key_bytes` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_batch_add(
    batch: *mut Batch,
    key: *const c_void,
    key_bytes: usize,
    delta: i64,
) -> i32 {
    guard(|| {
        // SAFETY: `key` is null or has `key_bytes` readable bytes, as the Safety section demands.
        let key = unsafe { self::key(key, key_bytes) }?;
        push(batch, Op::Add { key, delta })
    })
}

/// Adds a change that gives an operand to the merge operator of the keyspace, like `forrest_merge`. If the operator
/// refuses it, or there is none, the whole batch fails. `FORREST_LIMIT` if one of them is too long for any store.
///
/// # Safety
/// - `key` is null or has `key_bytes` readable bytes, and `operand` is null or has `operand_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_batch_merge(
    batch: *mut Batch,
    key: *const c_void,
    key_bytes: usize,
    operand: *const c_void,
    operand_bytes: usize,
) -> i32 {
    guard(|| {
        // SAFETY: each is null or has as many readable bytes, as the Safety section demands.
        let (key, operand) = unsafe { (self::key(key, key_bytes)?, value(operand, operand_bytes)?) };
        push(batch, Op::Merge { key, operand })
    })
}

/// Adds a change that replaces a value if it is the expected one, like `forrest_compare_and_swap`. On a
/// mismatch nothing of the batch is applied: `forrest_write` fails with `FORREST_CONDITION_FAILED`, and
/// `forrest_try_write` returns `FORREST_MISMATCH`. If `expected` and `desired` are equal, it is a condition
/// that changes nothing. `FORREST_LIMIT` if a key or value is too long for any store.
///
/// # Safety
/// - `key`, `expected` and `desired` are each null or have `key_bytes`, `expected_bytes` and `desired_bytes`
///   readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_batch_compare_and_swap(
    batch: *mut Batch,
    key: *const c_void,
    key_bytes: usize,
    expected: *const c_void,
    expected_bytes: usize,
    desired: *const c_void,
    desired_bytes: usize,
) -> i32 {
    guard(|| {
        // SAFETY: `key`, `expected` and `desired` are null or have `key_bytes`, `expected_bytes` and
        // `desired_bytes` readable bytes, as the Safety section demands.
        let (key, expected, new) = unsafe {
            (
                self::key(key, key_bytes)?,
                perhaps(value, expected, expected_bytes)?,
                perhaps(value, desired, desired_bytes)?,
            )
        };
        push(batch, Op::CompareAndSwap { key, expected, new })
    })
}

/// Adds the condition that the range from `start` up to, but without, `end` has exactly these `count` pairs, in
/// ascending order. A null `end` is no end. Such conditions stand before all changes of the batch; otherwise
/// `forrest_write` fails with `FORREST_INVALID_ARGUMENT`. They are compared with the store as it is before the
/// batch, in time proportional to `count`, while other threads wait to write. On a mismatch nothing of the batch
/// is applied: `forrest_write` fails with `FORREST_CONDITION_FAILED`, and `forrest_try_write` returns
/// `FORREST_MISMATCH`, with the first key that differs in place of the value. `FORREST_LIMIT` if the key or value
/// of a pair is too long for any store.
///
/// # Safety
/// - `start` is null or has `start_bytes` readable bytes, and `end` is null or has `end_bytes`.
/// - `keys`, `keys_bytes`, `values` and `values_bytes` are each null or have `count` elements. Each key and value is
///   null or has the number of readable bytes in its element of `keys_bytes` or `values_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_batch_compare_range(
    batch: *mut Batch,
    start: *const c_void,
    start_bytes: usize,
    end: *const c_void,
    end_bytes: usize,
    keys: *const *const c_void,
    keys_bytes: *const usize,
    values: *const *const c_void,
    values_bytes: *const usize,
    count: usize,
) -> i32 {
    guard(|| {
        // SAFETY: `start` and `end` are null or have `start_bytes` and `end_bytes` readable bytes, and each array is
        // null or has `count` elements that are null or have as many readable bytes as their lengths say, as the
        // Safety section demands.
        let (range, keys, values) = unsafe {
            (
                argument::range(start, start_bytes, end, end_bytes)?,
                argument::many(key, keys, keys_bytes, count)?,
                argument::many(value, values, values_bytes, count)?,
            )
        };
        let op = Op::compare_range(range, keys.into_iter().zip(values));
        push(batch, op.borrowed())
    })
}

/// The number of changes in a batch, and the total length of their keys and values.
///
/// # Safety
/// - `changes` and `bytes` are each null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_batch_size(
    batch: *const Batch,
    changes: *mut usize,
    bytes: *mut usize,
) -> i32 {
    guard(|| {
        // SAFETY: `changes` and `bytes` are null or writable, as the Safety section demands.
        let (mut changes, mut bytes) =
            unsafe { (Place::of("number", changes, 0)?, Place::of("length", bytes, 0)?) };
        let batch = BATCHES.shared(batch)?;
        changes.put(batch.changes.len());
        bytes.put(batch.changes.bytes());
        Ok(FORREST_OK)
    })
}

/// Removes all changes from a batch, but keeps its memory. Resets `forrest_batch_on` as well.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_batch_clear(batch: *mut Batch) -> i32 {
    guard(|| {
        let mut batch = BATCHES.exclusive(batch)?;
        batch.changes.clear();
        batch.on = None;
        Ok(FORREST_OK)
    })
}

/// Destroys a batch, written or not. Null is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_batch_destroy(batch: *mut Batch) -> i32 {
    guard(|| BATCHES.remove(batch).map(|()| FORREST_OK))
}

/// Applies all changes of a batch at one instant, or none if one fails. No reader sees a part of it, and no
/// crash leaves a part. Later changes of the batch see earlier ones. The batch keeps its changes. It may be
/// written again, and also to other stores if it names no keyspaces.
///
/// Errors are those of `forrest_set`. Also `FORREST_CONDITION_FAILED` if a comparison of the batch finds
/// another value than the expected one (`forrest_try_write` returns that value); `FORREST_LIMIT` if the batch
/// has more than 1,048,576 changes or more than 1 GiB of keys and values (the store's options can change
/// these limits); `FORREST_INVALID_ARGUMENT` if an addition is not to a counter, or a keyspace belongs to
/// another store. `forrest_error_op` returns the number of the change that failed.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_write(db: *mut Db, batch: *const Batch) -> i32 {
    forrest_write_with(db, batch, FORREST_DURABILITY_DEFAULT)
}

/// Like `forrest_write`, with this durability, one of `FORREST_DURABILITY_DEFAULT` to
/// `FORREST_DURABILITY_SYNC`. `FORREST_UNSUPPORTED` if the home does not have it.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_write_with(db: *mut Db, batch: *const Batch, durability: u64) -> i32 {
    guard(|| {
        write(db, batch, durability, |store, batch, options| store.write_with(batch, options))?;
        Ok(FORREST_OK)
    })
}

/// Like `forrest_write_with`, but a failed comparison is not an error: the function returns
/// `FORREST_MISMATCH`. `change` is then the number of the change in the batch, from 0, and `found` the value
/// that was found, or null if there was none. Release it with `forrest_value_release`.
///
/// # Safety
/// - `change` and `found` are each writable, or null if the result is not wanted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_try_write(
    db: *mut Db,
    batch: *const Batch,
    durability: u64,
    change: *mut usize,
    found: *mut *mut Value,
) -> i32 {
    guard(|| {
        // SAFETY: `change` and `found` are null or writable, as the Safety section demands.
        let (change, found) = unsafe { (Place::perhaps(change, 0), Place::perhaps(found, ptr::null_mut())) };
        let written =
            write(db, batch, durability, |store, batch, options| store.try_write_with(batch, options))?;
        let Written::Mismatch { op, found: there } = written else {
            return Ok(FORREST_OK);
        };
        if let Some(mut found) = found {
            found.put(hold(there)?);
        }
        if let Some(mut change) = change {
            change.put(op);
        }
        Ok(FORREST_MISMATCH)
    })
}

fn push(batch: *mut Batch, op: Op<&[u8]>) -> Result<i32, Failure> {
    let Batch { changes, on } = &mut *BATCHES.exclusive(batch)?;
    match on {
        Some(keyspace) => drop(changes.on(keyspace).push(op)),
        None => drop(changes.push(op)),
    }
    Ok(FORREST_OK)
}

fn write<R>(
    db: *mut Db,
    batch: *const Batch,
    level: u64,
    write: impl FnOnce(&forrest_rust::Db, &WriteBatch, &WriteOptions) -> forrest_rust::Result<R>,
) -> Result<R, Failure> {
    let options = WriteOptions::new().durability(durability(level)?);
    let db = Db::of(db)?;
    let (store, keyspace) = db.newest()?;
    let batch = BATCHES.shared(batch)?;
    Ok(write(store, &placed(&batch.changes, keyspace), &options)?)
}

/// The changes of a batch. Changes without a keyspace get this one.
fn placed<'b>(changes: &'b WriteBatch, keyspace: &Keyspace) -> Cow<'b, WriteBatch> {
    if keyspace.name() == forrest_rust::DEFAULT_KEYSPACE {
        return Cow::Borrowed(changes);
    }
    let mut placed = WriteBatch::new();
    for (on, op) in changes.ops() {
        placed.on(on.unwrap_or(keyspace)).push(op);
    }
    Cow::Owned(placed)
}

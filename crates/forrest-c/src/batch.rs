//! Batches: changes that are made together or not at all.

use crate::argument::{self, Place, key, perhaps, value};
use crate::code::{FORREST_MISMATCH, FORREST_OK};
use crate::db::Db;
use crate::failure::{Failure, guard};
use crate::handle::Table;
use crate::options::{FORREST_DURABILITY_DEFAULT, durability};
use crate::value::{Value, hold};
use forrest_rust::{Keyspace, Op, WriteBatch, WriteOptions, Written};
use std::borrow::Cow;
use std::ffi::c_void;
use std::ptr;

/// Changes to be made at one instant. One thread at a time may use it.
#[derive(Debug)]
pub struct Batch {
    changes: WriteBatch,
    /// The keyspace of what is added; None for that of the handle it is written to.
    on: Option<Keyspace>,
}

static BATCHES: Table<Batch, 1> = Table::new("batch", 4);

/// Makes an empty batch, to be given to `forrest_batch_destroy`. It belongs to no store.
///
/// # Safety
/// - `batch` is null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_batch_create(batch: *mut *mut Batch) -> i32 {
    guard(|| {
        // SAFETY: the caller's promise.
        let mut batch = unsafe { Place::of("batch", batch, ptr::null_mut()) }?;
        batch.put(BATCHES.insert([Batch { changes: WriteBatch::new(), on: None }])?);
        Ok(FORREST_OK)
    })
}

/// Has what is added from now on change the keyspace of a handle. What was added before any call of this, or after one
/// with null, changes that of the handle that the batch is written to.
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

/// Will map a key to a value. `FORREST_LIMIT` if one of them is too long for any store.
///
/// # Safety
/// - `key` has `key_bytes` bytes, and `value` has `value_bytes`, or they are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_batch_set(
    batch: *mut Batch,
    key: *const c_void,
    key_bytes: usize,
    value: *const c_void,
    value_bytes: usize,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promises.
        let (key, value) = unsafe { (self::key(key, key_bytes)?, self::value(value, value_bytes)?) };
        push(batch, Op::Set { key, value })
    })
}

/// Will remove a key, if it is there. `FORREST_LIMIT` if it is too long for any store.
///
/// # Safety
/// - `key` has `key_bytes` bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_batch_delete(
    batch: *mut Batch,
    key: *const c_void,
    key_bytes: usize,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promise.
        let key = unsafe { self::key(key, key_bytes) }?;
        push(batch, Op::Delete { key })
    })
}

/// Will remove all keys from `start` on and before `end`; a null `end` is no end.
/// `FORREST_LIMIT` if one of them is too long for any store.
///
/// # Safety
/// - `start` has `start_bytes` bytes, and `end` has `end_bytes`, or they are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_batch_delete_range(
    batch: *mut Batch,
    start: *const c_void,
    start_bytes: usize,
    end: *const c_void,
    end_bytes: usize,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promises.
        let (start, end) = unsafe { (key(start, start_bytes)?, argument::end(end, end_bytes)?) };
        push(batch, Op::DeleteRange { start, end })
    })
}

/// Will add to a counter, as `forrest_add` does. If that fails, so does the whole batch. `FORREST_LIMIT` if the key is
/// too long for any store.
///
/// # Safety
/// - `key` has `key_bytes` bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_batch_add(
    batch: *mut Batch,
    key: *const c_void,
    key_bytes: usize,
    delta: i64,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promise.
        let key = unsafe { self::key(key, key_bytes) }?;
        push(batch, Op::Add { key, delta })
    })
}

/// Will replace a value by another one if it is what was expected, as `forrest_compare_and_swap` does. If it is not,
/// nothing of the batch is done, and writing it is `FORREST_MISMATCH`. With one value twice it is a condition that
/// changes nothing. `FORREST_LIMIT` if something is too long for any store.
///
/// # Safety
/// - `key` has `key_bytes` bytes, `expected` has `expected_bytes`, and `desired` has `desired_bytes`, or they are null.
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
        // SAFETY: the caller's promises.
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

/// How many changes are in a batch, and how many bytes of keys and values.
///
/// # Safety
/// - `changes` and `bytes` are each null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_batch_size(
    batch: *const Batch,
    changes: *mut usize,
    bytes: *mut usize,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promises.
        let (mut changes, mut bytes) =
            unsafe { (Place::of("number", changes, 0)?, Place::of("length", bytes, 0)?) };
        let batch = BATCHES.shared(batch)?;
        changes.put(batch.changes.len());
        bytes.put(batch.changes.bytes());
        Ok(FORREST_OK)
    })
}

/// Takes all changes out and keeps the memory for the next ones, which are on the keyspace that the batch is written
/// to.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_batch_clear(batch: *mut Batch) -> i32 {
    guard(|| {
        let mut batch = BATCHES.exclusive(batch)?;
        batch.changes.clear();
        batch.on = None;
        Ok(FORREST_OK)
    })
}

/// Gives a batch back, written or not. Null is nothing to give back.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_batch_destroy(batch: *mut Batch) -> i32 {
    guard(|| BATCHES.remove(batch).map(|()| FORREST_OK))
}

/// Makes all changes of a batch at one instant, or, if it fails, none: no reader sees a part of it, and neither does
/// who opens the store after a crash. A later change of the batch sees the earlier ones. The batch stays as it is, and
/// may be written again, to other stores too, if it names no keyspaces.
///
/// `FORREST_MISMATCH` if a comparison in it found another value than was expected. Errors are those of `forrest_set`;
/// `FORREST_LIMIT` also if the batch has more than 1,048,576 changes, or more than 1 GiB of keys and values, if the
/// store's options say nothing else; `FORREST_INVALID_ARGUMENT` also if an addition is not to a counter, or a keyspace
/// is of another store. The message tells which change of the batch it was.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_write(db: *mut Db, batch: *const Batch) -> i32 {
    guard(|| {
        Ok(if write(db, batch, FORREST_DURABILITY_DEFAULT)?.is_applied() {
            FORREST_OK
        } else {
            FORREST_MISMATCH
        })
    })
}

/// As `forrest_write`, with a durability of its own, one of `FORREST_DURABILITY_DEFAULT` to `FORREST_DURABILITY_SYNC`,
/// which is `FORREST_UNSUPPORTED` if the home cannot keep it. If it is `FORREST_MISMATCH`, `change` is the number of
/// the change in the batch, from 0, and `found` the value that was there, to be given to `forrest_value_release`, or
/// null if there was none.
///
/// # Safety
/// - `change` and `found` may each be written to, or are null, if they are not wanted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_write_with(
    db: *mut Db,
    batch: *const Batch,
    durability: u64,
    change: *mut usize,
    found: *mut *mut Value,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promises.
        let (change, found) = unsafe { (Place::perhaps(change, 0), Place::perhaps(found, ptr::null_mut())) };
        let Written::Mismatch { op, found: there } = write(db, batch, durability)? else {
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

fn write(db: *mut Db, batch: *const Batch, level: u64) -> Result<Written, Failure> {
    let options = WriteOptions { durability: durability(level)? };
    let db = Db::of(db)?;
    let (store, keyspace) = db.newest()?;
    let batch = BATCHES.shared(batch)?;
    Ok(store.try_write_with(&*placed(&batch.changes, keyspace), &options)?)
}

/// The changes, where those on no keyspace are on this one.
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

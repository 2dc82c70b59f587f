//! Batches: changes that are made together or not at all.

use crate::argument::{Place, exclusive, key, shared, value};
use crate::code::FORREST_OK;
use crate::db::Db;
use crate::failure::{guard, guard_quietly};
use std::ffi::c_void;
use std::ptr;

/// Changes to be made at one instant. One thread at a time may use it.
#[derive(Debug)]
pub struct Batch(forrest_rust::WriteBatch);

/// Makes an empty batch, to be given to `forrest_batch_destroy`. It belongs to no store.
///
/// # Safety
/// - `batch` is null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_batch_create(batch: *mut *mut Batch) -> i32 {
    guard(|| {
        // SAFETY: the caller's promise.
        let mut batch = unsafe { Place::of("batch", batch, ptr::null_mut()) }?;
        batch.put(Box::into_raw(Box::new(Batch(forrest_rust::WriteBatch::new()))));
        Ok(FORREST_OK)
    })
}

/// Will map a key to a value. `FORREST_LIMIT` if one of them is too long for any store.
///
/// # Safety
/// - `batch` is null, or came from `forrest_batch_create`, was not destroyed, and is used by nobody else.
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
        let (batch, key, value) = unsafe {
            (exclusive("batch", batch)?, self::key(key, key_bytes)?, self::value(value, value_bytes)?)
        };
        batch.0.set(key, value);
        Ok(FORREST_OK)
    })
}

/// Will remove a key, if it is there. `FORREST_LIMIT` if it is too long for any store.
///
/// # Safety
/// - `batch` is null, or came from `forrest_batch_create`, was not destroyed, and is used by nobody else.
/// - `key` has `key_bytes` bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_batch_delete(
    batch: *mut Batch,
    key: *const c_void,
    key_bytes: usize,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promises.
        let (batch, key) = unsafe { (exclusive("batch", batch)?, self::key(key, key_bytes)?) };
        batch.0.delete(key);
        Ok(FORREST_OK)
    })
}

/// Takes all changes out and keeps the memory for the next ones.
///
/// # Safety
/// - `batch` is null, or came from `forrest_batch_create`, was not destroyed, and is used by nobody else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_batch_clear(batch: *mut Batch) -> i32 {
    guard(|| {
        // SAFETY: the caller's promise.
        unsafe { exclusive("batch", batch) }?.0.clear();
        Ok(FORREST_OK)
    })
}

/// Gives a batch back, written or not. Null is nothing to give back.
///
/// # Safety
/// - `batch` is null, or came from `forrest_batch_create`, was not destroyed, and is used by nobody.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_batch_destroy(batch: *mut Batch) {
    if !batch.is_null() {
        // SAFETY: it is a box of this library, and the caller has no use for it any more.
        let batch = unsafe { Box::from_raw(batch) };
        guard_quietly(|| drop(batch));
    }
}

/// Makes all changes of a batch at one instant, or, if it fails, none: no reader sees a part of it, and neither does
/// who opens the store after a crash. A later change of the batch sees the earlier ones. The batch stays as it is, and
/// may be written again, to other stores too.
///
/// Errors are those of `forrest_set`; `FORREST_LIMIT` also if the batch has more than 1,048,576 changes, or more than
/// 1 GiB of keys and values. The message tells which change of the batch it was.
///
/// # Safety
/// - `db` is null, or came from `forrest_open` and is not closed.
/// - `batch` is null, or came from `forrest_batch_create`, was not destroyed, and is not changed meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_write(db: *mut Db, batch: *const Batch) -> i32 {
    guard(|| {
        // SAFETY: the caller's promises.
        let (db, batch) = unsafe { (shared("store", db)?, shared("batch", batch)?) };
        let written = db.0.write(&batch.0)?;
        assert!(written.is_applied(), "a batch without comparisons did not match");
        Ok(FORREST_OK)
    })
}

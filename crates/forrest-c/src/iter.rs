//! Iterators: a position in the order of keys that moves in both directions.

use crate::argument::{self, Place};
use crate::code::{FORREST_NOT_FOUND, FORREST_OK};
use crate::db::Db;
use crate::failure::{Failure, guard};
use crate::handle::Table;
use forrest_rust::{Cursor, Value};
use std::ffi::c_void;
use std::ptr;

/// A position in the order of keys: at a pair, or at none. Only one thread at a time may use an iterator.
///
/// An iteration returns a key that exists throughout exactly once, in order. It may or may not return a key
/// that is added or removed meanwhile.
#[derive(Debug)]
pub struct Iter(Box<Walk>); // boxed, so that tools that check memory accesses see where it ends

#[derive(Debug)]
struct Walk {
    cursor: Cursor,
    /// The value at the cursor, once C has requested it. The pointer that C got points into it.
    value: Option<Value>,
    /// The error of the last move, if it failed.
    failed: Option<(i32, String)>,
}

static ITERS: Table<Iter, 1> = Table::new("iterator", 5);

impl Walk {
    /// Moves, and records a failure.
    fn go(&mut self, go: impl FnOnce(&mut Cursor) -> Result<bool, Failure>) -> Result<i32, Failure> {
        self.value = None;
        let moved = go(&mut self.cursor);
        self.failed = moved.as_ref().err().map(|failure| (failure.code, failure.message.clone()));
        Ok(if moved? { FORREST_OK } else { FORREST_NOT_FOUND })
    }

    /// Returns the error of the last move, if it failed.
    fn check(&self) -> Result<(), Failure> {
        match self.failed.clone() {
            Some((code, message)) => Err(Failure { code, message, op: None }),
            None => Ok(()),
        }
    }
}

/// Creates an iterator, which is not yet at a pair. Destroy it with `forrest_iter_destroy`. It may outlive
/// the handle `db`, and keeps the store open. If `db` is a snapshot, it iterates over the snapshot.
///
/// Each move returns `FORREST_OK` if it came to a pair, `FORREST_NOT_FOUND` if there is none, or an error.
/// After `FORREST_NOT_FOUND` the iterator is at no pair. This is a loop over all pairs:
///
///     for (code = forrest_iter_first(iter); code == FORREST_OK; code = forrest_iter_next(iter)) { ... }
///     if (code < 0) { ... forrest_error_message() ... }
///
/// # Safety
/// - `iter` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_iter_create(db: *const Db, iter: *mut *mut Iter) -> i32 {
    guard(|| {
        // SAFETY: `iter` is null or writable, as the Safety section demands.
        let mut iter = unsafe { Place::of("iterator", iter, ptr::null_mut()) }?;
        let cursor = Db::of(db)?.view().cursor();
        iter.put(ITERS.insert([Iter(Box::new(Walk { cursor, value: None, failed: None }))])?);
        Ok(FORREST_OK)
    })
}

/// Creates an iterator that reads no values. `forrest_iter_value` of it is `FORREST_INVALID_ARGUMENT`. Else as
/// `forrest_iter_create`.
///
/// # Safety
/// - `iter` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_iter_create_keys(db: *const Db, iter: *mut *mut Iter) -> i32 {
    guard(|| {
        // SAFETY: `iter` is null or writable, as the Safety section demands.
        let mut iter = unsafe { Place::of("iterator", iter, ptr::null_mut()) }?;
        let cursor = Db::of(db)?.view().cursor().keys_only();
        iter.put(ITERS.insert([Iter(Box::new(Walk { cursor, value: None, failed: None }))])?);
        Ok(FORREST_OK)
    })
}

/// Moves to the first key at or after `key`, which may have any length, as a bound of a range.
///
/// # Safety
/// - `key` is null or has `key_bytes` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_iter_seek(iter: *mut Iter, key: *const c_void, key_bytes: usize) -> i32 {
    guard(|| {
        // SAFETY: `key` is null or has `key_bytes` readable bytes, as the Safety section demands.
        let key = unsafe { argument::bound(key, key_bytes) };
        ITERS.exclusive(iter)?.0.go(|cursor| Ok(cursor.seek(key?)?))
    })
}

/// Moves to the last key at or before `key`, which may have any length.
///
/// # Safety
/// - `key` is null or has `key_bytes` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_iter_seek_for_prev(
    iter: *mut Iter,
    key: *const c_void,
    key_bytes: usize,
) -> i32 {
    guard(|| {
        // SAFETY: `key` is null or has `key_bytes` readable bytes, as the Safety section demands.
        let key = unsafe { argument::bound(key, key_bytes) };
        ITERS.exclusive(iter)?.0.go(|cursor| Ok(cursor.seek_for_prev(key?)?))
    })
}

/// Moves to the first key.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_iter_first(iter: *mut Iter) -> i32 {
    guard(|| ITERS.exclusive(iter)?.0.go(|cursor| Ok(cursor.first()?)))
}

/// Moves to the last key.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_iter_last(iter: *mut Iter) -> i32 {
    guard(|| ITERS.exclusive(iter)?.0.go(|cursor| Ok(cursor.last()?)))
}

/// Moves to the next key. An iterator at no pair stays so.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_iter_next(iter: *mut Iter) -> i32 {
    guard(|| ITERS.exclusive(iter)?.0.go(|cursor| Ok(cursor.next()?)))
}

/// Moves to the previous key. An iterator at no pair stays so.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_iter_prev(iter: *mut Iter) -> i32 {
    guard(|| ITERS.exclusive(iter)?.0.go(|cursor| Ok(cursor.prev()?)))
}

/// Moves `pairs` pairs forward, like that number of calls of `forrest_iter_next`, but reads no values on the
/// way.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_iter_skip(iter: *mut Iter, pairs: u64) -> i32 {
    guard(|| ITERS.exclusive(iter)?.0.go(|cursor| Ok(cursor.skip(pairs)?)))
}

/// Releases everything that the iterator holds except its pair: on disk, the version that it reads, with
/// memory and files that may have been replaced since. The iterator keeps its position. Use it for iterators
/// that stay unused for long between moves.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_iter_park(iter: *mut Iter) -> i32 {
    guard(|| {
        ITERS.exclusive(iter)?.0.cursor.park();
        Ok(FORREST_OK)
    })
}

/// True if the last move came to a pair; false for an invalid handle.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_iter_valid(iter: *const Iter) -> bool {
    let mut valid = false;
    guard(|| {
        let iter = &ITERS.shared(iter)?.0;
        valid = iter.failed.is_none() && iter.cursor.key().is_some();
        Ok(FORREST_OK)
    });
    valid
}

/// Returns the error of the last move, with its message, or `FORREST_OK` if it did not fail, even if it came
/// to no pair. Call it after a loop over `forrest_iter_valid`.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_iter_status(iter: *const Iter) -> i32 {
    guard(|| ITERS.shared(iter)?.0.check().map(|()| FORREST_OK))
}

/// The key at the iterator. Its bytes stay valid until the iterator is moved or destroyed. Do not change
/// them.
///
/// `FORREST_NOT_FOUND` at no pair; the error of the last move, if it failed.
///
/// # Safety
/// - `key` and `key_bytes` are each null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_iter_key(
    iter: *const Iter,
    key: *mut *const c_void,
    key_bytes: *mut usize,
) -> i32 {
    guard(|| {
        // SAFETY: `key` and `key_bytes` are null or writable, as the Safety section demands.
        let (mut key, mut key_bytes) =
            unsafe { (Place::of("key", key, ptr::null())?, Place::of("length", key_bytes, 0)?) };
        let iter = &ITERS.shared(iter)?.0;
        iter.check()?;
        let Some(found) = iter.cursor.key() else { return Ok(FORREST_NOT_FOUND) };
        key.put(found.as_ptr().cast());
        key_bytes.put(found.len());
        Ok(FORREST_OK)
    })
}

/// The value at the iterator. Its bytes stay valid until the iterator is moved or destroyed. Do not change
/// them.
///
/// `FORREST_NOT_FOUND` at no pair; the error of the last move, if it failed; `FORREST_IO`, `FORREST_CORRUPT`;
/// `FORREST_INVALID_ARGUMENT` if the iterator reads keys only.
///
/// # Safety
/// - `value` and `value_bytes` are each null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_iter_value(
    iter: *mut Iter,
    value: *mut *const c_void,
    value_bytes: *mut usize,
) -> i32 {
    guard(|| {
        // SAFETY: `value` and `value_bytes` are null or writable, as the Safety section demands.
        let (mut value, mut value_bytes) =
            unsafe { (Place::of("value", value, ptr::null())?, Place::of("length", value_bytes, 0)?) };
        let iter = &mut ITERS.exclusive(iter)?.0;
        iter.check()?;
        if iter.value.is_none() {
            iter.value = iter.cursor.value()?;
        }
        let Some(found) = &iter.value else { return Ok(FORREST_NOT_FOUND) };
        value.put(found.as_ptr().cast());
        value_bytes.put(found.len());
        Ok(FORREST_OK)
    })
}

/// Destroys an iterator. Null is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_iter_destroy(iter: *mut Iter) -> i32 {
    guard(|| ITERS.remove(iter).map(|()| FORREST_OK))
}

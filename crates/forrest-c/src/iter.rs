//! Iterators: a position in the order of keys that moves both ways.

use crate::argument::{Place, exclusive, key, shared};
use crate::code::{FORREST_NOT_FOUND, FORREST_OK};
use crate::db::Db;
use crate::failure::{Failure, guard, guard_quietly};
use forrest_rust::{Cursor, Value};
use std::ffi::c_void;
use std::ptr;

/// A position in the order of keys: at a pair, or at none. One thread at a time may use it.
///
/// A key that is there all the while is met exactly once, in order; one that comes or goes meanwhile may be met or not.
#[derive(Debug)]
pub struct Iter {
    cursor: Cursor,
    /// The value at the cursor, once it has been asked for: what C was shown is in here.
    value: Option<Value>,
    /// The error of the last move, if it failed.
    failed: Option<(i32, String)>,
}

impl Iter {
    /// Moves, and remembers whether that failed.
    fn go(&mut self, go: impl FnOnce(&mut Cursor) -> Result<bool, Failure>) -> Result<i32, Failure> {
        self.value = None;
        let moved = go(&mut self.cursor);
        self.failed = moved.as_ref().err().map(|failure| (failure.code, failure.message.clone()));
        Ok(if moved? { FORREST_OK } else { FORREST_NOT_FOUND })
    }

    /// Fails as the last move did.
    fn check(&self) -> Result<(), Failure> {
        match self.failed.clone() {
            Some((code, message)) => Err(Failure { code, message }),
            None => Ok(()),
        }
    }
}

/// Makes an iterator, at no pair yet, to be given to `forrest_iter_destroy`. It outlives the handle of its store, and
/// keeps the store open.
///
/// Each move returns `FORREST_OK` if it came to a pair, `FORREST_NOT_FOUND` if there is none, and then the iterator is at
/// none, or an error. So this is a walk:
///
///     for (code = forrest_iter_first(iter); code == FORREST_OK; code = forrest_iter_next(iter)) { ... }
///     if (code < 0) { ... forrest_error_message() ... }
///
/// # Safety
/// - `db` is null, or came from `forrest_open` and is not closed.
/// - `iter` is null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_iter_create(db: *const Db, iter: *mut *mut Iter) -> i32 {
    guard(|| {
        // SAFETY: the caller's promises.
        let (mut iter, db) = unsafe { (Place::of("iterator", iter, ptr::null_mut())?, shared("store", db)?) };
        let made = Iter { cursor: db.0.cursor(), value: None, failed: None };
        iter.put(Box::into_raw(Box::new(made)));
        Ok(FORREST_OK)
    })
}

/// Moves to the first key at or after `key`.
///
/// # Safety
/// - `iter` is null, or came from `forrest_iter_create`, was not destroyed, and is used by nobody else.
/// - `key` has `key_bytes` bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_iter_seek(iter: *mut Iter, key: *const c_void, key_bytes: usize) -> i32 {
    guard(|| {
        // SAFETY: the caller's promises.
        let (iter, key) = unsafe { (exclusive("iterator", iter)?, self::key(key, key_bytes)) };
        iter.go(|cursor| Ok(cursor.seek(key?)?))
    })
}

/// Moves to the last key at or before `key`.
///
/// # Safety
/// - `iter` is null, or came from `forrest_iter_create`, was not destroyed, and is used by nobody else.
/// - `key` has `key_bytes` bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_iter_seek_for_prev(
    iter: *mut Iter,
    key: *const c_void,
    key_bytes: usize,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promises.
        let (iter, key) = unsafe { (exclusive("iterator", iter)?, self::key(key, key_bytes)) };
        iter.go(|cursor| Ok(cursor.seek_for_prev(key?)?))
    })
}

/// Moves to the first key.
///
/// # Safety
/// - `iter` is null, or came from `forrest_iter_create`, was not destroyed, and is used by nobody else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_iter_first(iter: *mut Iter) -> i32 {
    // SAFETY: the caller's promise.
    guard(|| unsafe { exclusive("iterator", iter) }?.go(|cursor| Ok(cursor.first()?)))
}

/// Moves to the last key.
///
/// # Safety
/// - `iter` is null, or came from `forrest_iter_create`, was not destroyed, and is used by nobody else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_iter_last(iter: *mut Iter) -> i32 {
    // SAFETY: the caller's promise.
    guard(|| unsafe { exclusive("iterator", iter) }?.go(|cursor| Ok(cursor.last()?)))
}

/// Moves to the next key. At no pair it stays there.
///
/// # Safety
/// - `iter` is null, or came from `forrest_iter_create`, was not destroyed, and is used by nobody else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_iter_next(iter: *mut Iter) -> i32 {
    // SAFETY: the caller's promise.
    guard(|| unsafe { exclusive("iterator", iter) }?.go(|cursor| Ok(cursor.next()?)))
}

/// Moves to the previous key. At no pair it stays there.
///
/// # Safety
/// - `iter` is null, or came from `forrest_iter_create`, was not destroyed, and is used by nobody else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_iter_prev(iter: *mut Iter) -> i32 {
    // SAFETY: the caller's promise.
    guard(|| unsafe { exclusive("iterator", iter) }?.go(|cursor| Ok(cursor.prev()?)))
}

/// True if the last move came to a pair; false for null.
///
/// # Safety
/// - `iter` is null, or came from `forrest_iter_create`, was not destroyed, and is not moved meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_iter_valid(iter: *const Iter) -> bool {
    let mut valid = false;
    guard_quietly(|| {
        // SAFETY: the caller's promise.
        valid =
            unsafe { iter.as_ref() }.is_some_and(|iter| iter.failed.is_none() && iter.cursor.key().is_some());
    });
    valid
}

/// Tells whether the last move failed: its error, or `FORREST_OK`, also if it came to no pair. For loops over
/// `forrest_iter_valid`. The message is that of the move.
///
/// # Safety
/// - `iter` is null, or came from `forrest_iter_create`, was not destroyed, and is not moved meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_iter_status(iter: *const Iter) -> i32 {
    // SAFETY: the caller's promise.
    guard(|| unsafe { shared("iterator", iter) }?.check().map(|()| FORREST_OK))
}

/// The key where the iterator is. Its bytes stay until the iterator is moved or destroyed, and are not to be changed.
///
/// `FORREST_NOT_FOUND` at no pair; the error of the last move, if it failed.
///
/// # Safety
/// - `iter` is null, or came from `forrest_iter_create`, was not destroyed, and is not moved meanwhile.
/// - `key` and `key_bytes` are each null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_iter_key(
    iter: *const Iter,
    key: *mut *const c_void,
    key_bytes: *mut usize,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promises.
        let (mut key, mut key_bytes, iter) = unsafe {
            (
                Place::of("key", key, ptr::null())?,
                Place::of("length", key_bytes, 0)?,
                shared("iterator", iter)?,
            )
        };
        iter.check()?;
        let Some(found) = iter.cursor.key() else { return Ok(FORREST_NOT_FOUND) };
        key.put(found.as_ptr().cast());
        key_bytes.put(found.len());
        Ok(FORREST_OK)
    })
}

/// The value where the iterator is. Its bytes stay until the iterator is moved or destroyed, and are not to be changed.
///
/// `FORREST_NOT_FOUND` at no pair; the error of the last move, if it failed; `FORREST_IO`, `FORREST_CORRUPT`.
///
/// # Safety
/// - `iter` is null, or came from `forrest_iter_create`, was not destroyed, and is used by nobody else.
/// - `value` and `value_bytes` are each null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_iter_value(
    iter: *mut Iter,
    value: *mut *const c_void,
    value_bytes: *mut usize,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promises.
        let (mut value, mut value_bytes, iter) = unsafe {
            (
                Place::of("value", value, ptr::null())?,
                Place::of("length", value_bytes, 0)?,
                exclusive("iterator", iter)?,
            )
        };
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

/// Gives an iterator back. Null is nothing to give back.
///
/// # Safety
/// - `iter` is null, or came from `forrest_iter_create`, was not destroyed, and is used by nobody.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_iter_destroy(iter: *mut Iter) {
    if !iter.is_null() {
        // SAFETY: it is a box of this library, and the caller has no use for it any more.
        let iter = unsafe { Box::from_raw(iter) };
        guard_quietly(|| drop(iter));
    }
}

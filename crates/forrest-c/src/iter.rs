//! Iterators: a position in the order of keys that moves both ways.

use crate::argument::{Place, key};
use crate::code::{FORREST_NOT_FOUND, FORREST_OK};
use crate::db::Db;
use crate::failure::{Failure, guard};
use crate::handle::Table;
use forrest_rust::{Cursor, Value};
use std::ffi::c_void;
use std::ptr;

/// A position in the order of keys: at a pair, or at none. One thread at a time may use it.
///
/// A key that is there all the while is met exactly once, in order; one that comes or goes meanwhile may be met or not.
#[derive(Debug)]
pub struct Iter(Box<Walk>); // in memory of its own, so that those who look for wrong reads see its end

#[derive(Debug)]
struct Walk {
    cursor: Cursor,
    /// The value at the cursor, once it has been asked for: what C was shown is in here.
    value: Option<Value>,
    /// The error of the last move, if it failed.
    failed: Option<(i32, String)>,
}

static ITERS: Table<Iter, 1> = Table::new("iterator", 5);

impl Walk {
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
/// keeps the store open. Of a snapshot it walks over that state.
///
/// Each move returns `FORREST_OK` if it came to a pair, `FORREST_NOT_FOUND` if there is none, and then the iterator is
/// at none, or an error. So this is a walk:
///
///     for (code = forrest_iter_first(iter); code == FORREST_OK; code = forrest_iter_next(iter)) { ... }
///     if (code < 0) { ... forrest_error_message() ... }
///
/// # Safety
/// - `iter` is null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_iter_create(db: *const Db, iter: *mut *mut Iter) -> i32 {
    guard(|| {
        // SAFETY: the caller's promise.
        let mut iter = unsafe { Place::of("iterator", iter, ptr::null_mut()) }?;
        let cursor = Db::of(db)?.view().cursor();
        iter.put(ITERS.insert([Iter(Box::new(Walk { cursor, value: None, failed: None }))])?);
        Ok(FORREST_OK)
    })
}

/// Moves to the first key at or after `key`.
///
/// # Safety
/// - `key` has `key_bytes` bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_iter_seek(iter: *mut Iter, key: *const c_void, key_bytes: usize) -> i32 {
    guard(|| {
        // SAFETY: the caller's promise.
        let key = unsafe { self::key(key, key_bytes) };
        ITERS.exclusive(iter)?.0.go(|cursor| Ok(cursor.seek(key?)?))
    })
}

/// Moves to the last key at or before `key`.
///
/// # Safety
/// - `key` has `key_bytes` bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_iter_seek_for_prev(
    iter: *mut Iter,
    key: *const c_void,
    key_bytes: usize,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promise.
        let key = unsafe { self::key(key, key_bytes) };
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

/// Moves to the next key. At no pair it stays there.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_iter_next(iter: *mut Iter) -> i32 {
    guard(|| ITERS.exclusive(iter)?.0.go(|cursor| Ok(cursor.next()?)))
}

/// Moves to the previous key. At no pair it stays there.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_iter_prev(iter: *mut Iter) -> i32 {
    guard(|| ITERS.exclusive(iter)?.0.go(|cursor| Ok(cursor.prev()?)))
}

/// Moves so many pairs forward, as so many calls of `forrest_iter_next` do, but reads no values on the way.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_iter_skip(iter: *mut Iter, pairs: u64) -> i32 {
    guard(|| ITERS.exclusive(iter)?.0.go(|cursor| Ok(cursor.skip(pairs)?)))
}

/// Gives back what the iterator keeps beside its pair: on disk, the state that it found, with memory and files that may
/// have been replaced since. It stays where it is. For iterators that are kept for long between moves.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_iter_park(iter: *mut Iter) -> i32 {
    guard(|| {
        ITERS.exclusive(iter)?.0.cursor.park();
        Ok(FORREST_OK)
    })
}

/// True if the last move came to a pair; false for what is no iterator.
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

/// Tells whether the last move failed: its error, or `FORREST_OK`, also if it came to no pair. For loops over
/// `forrest_iter_valid`. The message is that of the move.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_iter_status(iter: *const Iter) -> i32 {
    guard(|| ITERS.shared(iter)?.0.check().map(|()| FORREST_OK))
}

/// The key where the iterator is. Its bytes stay until the iterator is moved or destroyed, and are not to be changed.
///
/// `FORREST_NOT_FOUND` at no pair; the error of the last move, if it failed.
///
/// # Safety
/// - `key` and `key_bytes` are each null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_iter_key(
    iter: *const Iter,
    key: *mut *const c_void,
    key_bytes: *mut usize,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promises.
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

/// The value where the iterator is. Its bytes stay until the iterator is moved or destroyed, and are not to be changed.
///
/// `FORREST_NOT_FOUND` at no pair; the error of the last move, if it failed; `FORREST_IO`, `FORREST_CORRUPT`.
///
/// # Safety
/// - `value` and `value_bytes` are each null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_iter_value(
    iter: *mut Iter,
    value: *mut *const c_void,
    value_bytes: *mut usize,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promises.
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

/// Gives an iterator back. Null is nothing to give back.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_iter_destroy(iter: *mut Iter) -> i32 {
    guard(|| ITERS.remove(iter).map(|()| FORREST_OK))
}

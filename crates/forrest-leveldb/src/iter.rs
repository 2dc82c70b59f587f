//! Iterators: positions in one state of a store.

use crate::argument::{bytes, handed, take_back};
use crate::db::Db;
use crate::failure::{Failure, put, quiet};
use crate::options::ReadOptions;
use crate::order::Order;
use forrest::{Cursor, Value, View};
use std::ffi::c_char;
use std::fmt;
use std::ptr;
use std::sync::{Arc, OnceLock};

/// A position at a pair of a state of a store, or at none.
pub struct Iter {
    /// `None` if the iterator could not be made; `failure` then says why.
    place: Option<Place>,
    failure: Option<Failure>,
    /// The value at the position, loaded when it is first requested.
    value: OnceLock<Result<Option<Value>, Failure>>,
}

struct Place {
    cursor: Cursor,
    view: View,
    order: Arc<Order>,
}

impl fmt::Debug for Iter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").field("failure", &self.failure).finish_non_exhaustive()
    }
}

impl Place {
    fn new(db: &Db, options: &ReadOptions) -> Result<Place, Failure> {
        let view: View = match options.snapshot()? {
            Some(snapshot) => (**snapshot.of(db.number)?).clone(),
            None => (*db.store.snapshot()?).clone(),
        };
        Ok(Place { cursor: view.cursor(), view, order: db.order.clone() })
    }

    /// Moves to the first key at or after one of any length.
    fn seek(&mut self, target: &[u8]) -> Result<bool, Failure> {
        self.order.check(&self.view, target)?;
        Ok(self.cursor.seek(target)?)
    }
}

impl Iter {
    /// Moves, and keeps the failure if that fails.
    fn go(&mut self, how: impl FnOnce(&mut Place) -> Result<bool, Failure>) {
        let Some(place) = &mut self.place else { return };
        self.value = OnceLock::new();
        self.failure = how(place).err();
    }

    fn key(&self) -> Option<&[u8]> {
        self.place.as_ref().filter(|_| self.failure.is_none())?.cursor.key()
    }

    fn value(&self) -> Option<&[u8]> {
        self.key()?;
        let cursor = &self.place.as_ref()?.cursor;
        let value = self.value.get_or_init(|| Ok(cursor.value()?));
        value.as_ref().ok()?.as_deref()
    }

    fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref().or_else(|| self.value.get()?.as_ref().err())
    }
}

/// Makes an iterator over the state of the snapshot in `options`, or over the state at this moment. It is at no pair
/// yet. Destroy it with `leveldb_iter_destroy`. While it exists, the store keeps the values that were replaced since.
/// Null for null.
///
/// # Safety
/// - `db` is null, or came from `leveldb_open` and was not closed.
/// - `options` is null, or came from `leveldb_readoptions_create` and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_create_iterator(db: *mut Db, options: *const ReadOptions) -> *mut Iter {
    quiet(ptr::null_mut(), || {
        // SAFETY: `db` and `options` are null or live, by this function's `# Safety`.
        let (db, options) = unsafe { (db.as_ref()?, options.as_ref()?) };
        let (place, failure) = match Place::new(db, options) {
            Ok(place) => (Some(place), None),
            Err(failure) => (None, Some(failure)),
        };
        Some(handed(Iter { place, failure, value: OnceLock::new() }))
    })
}

/// Frees an iterator. Null is ignored.
///
/// # Safety
/// - `iter` is null, or came from `leveldb_create_iterator` and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_destroy(iter: *mut Iter) {
    // SAFETY: `iter` is null or came from `handed`, and is not used any more, by this function's `# Safety`.
    unsafe { take_back(iter) };
}

/// 1 if the iterator is at a pair; otherwise 0, also for null.
///
/// # Safety
/// - `iter` is null, or came from `leveldb_create_iterator` and was not destroyed, and no other thread moves it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_valid(iter: *const Iter) -> u8 {
    // SAFETY: `iter` is null or live, by this function's `# Safety`.
    quiet(0, || unsafe { iter.as_ref() }?.key().map(|_| 1))
}

/// Moves an iterator.
///
/// # Safety
/// - `iter` is null, or came from `leveldb_create_iterator` and was not destroyed, and no other thread uses it.
unsafe fn go(iter: *mut Iter, how: impl FnOnce(&mut Place) -> Result<bool, Failure>) {
    quiet((), || {
        // SAFETY: `iter` is null, or live and used by this thread only, by this function's `# Safety`.
        unsafe { iter.as_mut() }?.go(how);
        Some(())
    });
}

/// Moves to the first key.
///
/// # Safety
/// - `iter` is null, or came from `leveldb_create_iterator` and was not destroyed, and no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_seek_to_first(iter: *mut Iter) {
    // SAFETY: `iter` meets the requirement of `go`, which is that of this function.
    unsafe { go(iter, |place| Ok(place.cursor.first()?)) };
}

/// Moves to the last key.
///
/// # Safety
/// - As `leveldb_iter_seek_to_first`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_seek_to_last(iter: *mut Iter) {
    // SAFETY: `iter` meets the requirement of `go`, which is that of this function.
    unsafe { go(iter, |place| Ok(place.cursor.last()?)) };
}

/// Moves to the first key at or after `k`, or to no pair if there is none.
///
/// # Safety
/// - As `leveldb_iter_seek_to_first`.
/// - `k` is null or has `klen` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_seek(iter: *mut Iter, k: *const c_char, klen: usize) {
    // SAFETY: `iter` meets the requirement of `go`; `k` is null or has this length, and the slice ends with this call.
    unsafe { go(iter, |place| place.seek(bytes("key", k, klen, usize::MAX)?)) };
}

/// Moves to the next key, or to no pair after the last one. At no pair, stays there.
///
/// # Safety
/// - As `leveldb_iter_seek_to_first`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_next(iter: *mut Iter) {
    // SAFETY: `iter` meets the requirement of `go`, which is that of this function.
    unsafe { go(iter, |place| Ok(place.cursor.next()?)) };
}

/// Moves to the previous key, or to no pair before the first one. At no pair, stays there.
///
/// # Safety
/// - As `leveldb_iter_seek_to_first`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_prev(iter: *mut Iter) {
    // SAFETY: `iter` meets the requirement of `go`, which is that of this function.
    unsafe { go(iter, |place| Ok(place.cursor.prev()?)) };
}

/// Bytes of the iterator, and their length at `length`; null and 0 for none.
///
/// # Safety
/// - `length` is null or writable.
unsafe fn shown(bytes: Option<&[u8]>, length: *mut usize) -> *const c_char {
    // SAFETY: `length` is null or writable, by this function's `# Safety`.
    if let Some(length) = unsafe { length.as_mut() } {
        *length = bytes.map_or(0, <[u8]>::len);
    }
    bytes.map_or(ptr::null(), |bytes| bytes.as_ptr().cast())
}

/// The key at the iterator, and its length in `*klen`, valid until the iterator moves or is destroyed. Null and 0 if it
/// is at no pair.
///
/// # Safety
/// - `iter` is null, or came from `leveldb_create_iterator` and was not destroyed, and no other thread moves it.
/// - `klen` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_key(iter: *const Iter, klen: *mut usize) -> *const c_char {
    // SAFETY: `iter` is null or live, by this function's `# Safety`.
    let key = quiet(None, || Some(unsafe { iter.as_ref() }?.key()));
    // SAFETY: `klen` is null or writable, by this function's `# Safety`.
    unsafe { shown(key, klen) }
}

/// The value at the iterator, and its length in `*vlen`, valid until the iterator moves or is destroyed. Null and 0 if
/// it is at no pair.
///
/// # Safety
/// - As `leveldb_iter_key`, for `vlen`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_value(iter: *const Iter, vlen: *mut usize) -> *const c_char {
    // SAFETY: `iter` is null or live, by this function's `# Safety`.
    let value = quiet(None, || Some(unsafe { iter.as_ref() }?.value()));
    // SAFETY: `vlen` is null or writable, by this function's `# Safety`.
    unsafe { shown(value, vlen) }
}

/// Reports the error of the last move, or of the iterator itself, if there is one. Otherwise leaves `*errptr` as it is.
///
/// # Safety
/// - `iter` is null, or came from `leveldb_create_iterator` and was not destroyed, and no other thread moves it.
/// - `errptr` is null, or points to null or to a string that came from `malloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_get_error(iter: *const Iter, errptr: *mut *mut c_char) {
    quiet((), || {
        // SAFETY: `iter` is null or live, and `errptr` meets the requirement of `put`, by this function's `# Safety`.
        unsafe { put(errptr, iter.as_ref()?.failure()?) };
        Some(())
    });
}

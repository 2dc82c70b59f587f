//! libremixdb: the functions that RemixDB has for programs in C, over Forrest's engine on disk. A program that was
//! written for it is compiled with this header and runs. What users must know is in the header, `include/remixdb.h`,
//! which the tests make of this file.
//!
//! The interface has no codes: what fails is null or false, and why a store cannot be opened is told on standard error.
//! It has no lengths of buffers either; so nothing longer than [`REMIXDB_MAX_BYTES`] is ever taken or given. All else
//! is as the library `forrest` does it. New programs use libforrest, which can do more and says what went wrong.

use forrest::{Cursor, Db};
use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

/// Most bytes of a key and its value together. A buffer of so many bytes has room for any key, and for any value.
pub const REMIXDB_MAX_BYTES: u32 = 65500;

/// An open store.
#[derive(Debug)]
pub struct Store(Db);

/// A thread's way into a store. One thread at a time may use it.
#[derive(Debug)]
pub struct Ref {
    db: Db,
    of: *mut Store,
}

/// A position in the order of keys: at a pair, or at none. One thread at a time may use it.
#[derive(Debug)]
pub struct Iter(Cursor);

/// Opens the store in a directory, which is made if there is none, with so many MiB for what is read and for what is
/// newly written. `tags`: keep a byte of hash for each key, which makes `remixdb_get` and `remixdb_probe` quicker.
/// Null, and why on standard error, if it cannot be opened, or is open already. To be given to `remixdb_close`.
///
/// # Safety
/// - `dir` is null, or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remixdb_open(
    dir: *const c_char,
    cache_mb: usize,
    mt_mb: usize,
    tags: bool,
) -> *mut Store {
    // SAFETY: the caller's promise.
    guard(ptr::null_mut(), || unsafe { open(dir, cache_mb, mt_mb, tags) })
}

/// As `remixdb_open`, for the least space: without tags.
///
/// # Safety
/// - As `remixdb_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remixdb_open_compact(
    dir: *const c_char,
    cache_mb: usize,
    mt_mb: usize,
) -> *mut Store {
    // SAFETY: the caller's promise.
    guard(ptr::null_mut(), || unsafe { open(dir, cache_mb, mt_mb, false) })
}

/// Closes a store. Its refs were given back before; iterators that were not keep it open. Null is nothing to close.
///
/// # Safety
/// - `xdb` is null, or came from `remixdb_open`, was not closed, and is used by nobody.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remixdb_close(xdb: *mut Store) {
    // SAFETY: the caller's promise.
    unsafe { give_back(xdb) };
}

/// Makes a way into a store, to be given to `remixdb_unref`. Null for null.
///
/// # Safety
/// - `xdb` is null, or came from `remixdb_open` and was not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remixdb_ref(xdb: *mut Store) -> *mut Ref {
    guard(ptr::null_mut(), || {
        // SAFETY: the caller's promise.
        let store = unsafe { xdb.as_ref() }?;
        Some(Box::into_raw(Box::new(Ref { db: store.0.clone(), of: xdb })))
    })
}

/// Gives a ref back, and returns the store that it was of. Null for null.
///
/// # Safety
/// - `xref` is null, or came from `remixdb_ref`, was not given back, and is used by nobody.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remixdb_unref(xref: *mut Ref) -> *mut Store {
    // SAFETY: the caller's promises.
    unsafe {
        let of = xref.as_ref().map_or(ptr::null_mut(), |found| found.of);
        give_back(xref);
        of
    }
}

/// Maps a key to a value. False if both together have more than `REMIXDB_MAX_BYTES`, or it cannot be written.
///
/// # Safety
/// - `xref` is null, or came from `remixdb_ref` and was not given back.
/// - `key` has `key_bytes` bytes, and `value` has `value_bytes`, or they are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remixdb_put(
    xref: *mut Ref,
    key: *const c_void,
    key_bytes: u32,
    value: *const c_void,
    value_bytes: u32,
) -> bool {
    guard(false, || {
        // SAFETY: the caller's promises.
        let (found, key, value) =
            unsafe { (xref.as_ref()?, bytes(key, key_bytes)?, bytes(value, value_bytes)?) };
        if key.len() + value.len() > REMIXDB_MAX_BYTES as usize {
            return None;
        }
        found.db.set(key, value).ok().map(|()| true)
    })
}

/// Removes a key. True also if it was not there; false if it cannot be written.
///
/// # Safety
/// - `xref` is null, or came from `remixdb_ref` and was not given back.
/// - `key` has `key_bytes` bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remixdb_del(xref: *mut Ref, key: *const c_void, key_bytes: u32) -> bool {
    guard(false, || {
        // SAFETY: the caller's promises.
        let (found, key) = unsafe { (xref.as_ref()?, bytes(key, key_bytes)?) };
        found.db.delete(key).ok().map(|_| true)
    })
}

/// True if the key is there.
///
/// # Safety
/// - `xref` is null, or came from `remixdb_ref` and was not given back.
/// - `key` has `key_bytes` bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remixdb_probe(xref: *mut Ref, key: *const c_void, key_bytes: u32) -> bool {
    guard(false, || {
        // SAFETY: the caller's promises.
        let (found, key) = unsafe { (xref.as_ref()?, bytes(key, key_bytes)?) };
        found.db.contains(key).ok()
    })
}

/// Copies the value of a key and its length. False if the key is not there, or its value, which another program has
/// written, is longer than `REMIXDB_MAX_BYTES`; then nothing is copied.
///
/// # Safety
/// - `xref` is null, or came from `remixdb_ref` and was not given back.
/// - `key` has `key_bytes` bytes, or is null.
/// - `value` has room for the value, `REMIXDB_MAX_BYTES` at most, and `value_bytes` may be written to; or they are
///   null, if they are not wanted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remixdb_get(
    xref: *mut Ref,
    key: *const c_void,
    key_bytes: u32,
    value: *mut c_void,
    value_bytes: *mut u32,
) -> bool {
    guard(false, || {
        // SAFETY: the caller's promises.
        let (found, key) = unsafe { (xref.as_ref()?, bytes(key, key_bytes)?) };
        let found = found.db.get(key).ok()??;
        let length = fits(&found)?;
        // SAFETY: the caller's promises.
        unsafe { give(&found, length, value, value_bytes) };
        Some(true)
    })
}

/// Returns when all that was written before survives the end of the machine. False if the device reports a failure.
///
/// # Safety
/// - `xref` is null, or came from `remixdb_ref` and was not given back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remixdb_sync(xref: *mut Ref) -> bool {
    // SAFETY: the caller's promise.
    guard(false, || unsafe { xref.as_ref() }?.db.sync().ok().map(|()| true))
}

/// Makes an iterator, at no pair yet, to be given to `remixdb_iter_destroy`. Null for null.
///
/// # Safety
/// - `xref` is null, or came from `remixdb_ref` and was not given back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remixdb_iter_create(xref: *mut Ref) -> *mut Iter {
    guard(ptr::null_mut(), || {
        // SAFETY: the caller's promise.
        let found = unsafe { xref.as_ref() }?;
        Some(Box::into_raw(Box::new(Iter(found.db.cursor()))))
    })
}

/// Moves to the first key at or after `key`.
///
/// # Safety
/// - `iter` is null, or came from `remixdb_iter_create` and was not destroyed.
/// - `key` has `key_bytes` bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remixdb_iter_seek(iter: *mut Iter, key: *const c_void, key_bytes: u32) {
    guard(false, || {
        // SAFETY: the caller's promises.
        let (iter, key) = unsafe { (iter.as_mut()?, bytes(key, key_bytes)?) };
        iter.0.seek(key).ok()
    });
}

/// True if the iterator is at a pair.
///
/// # Safety
/// - `iter` is null, or came from `remixdb_iter_create` and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remixdb_iter_valid(iter: *mut Iter) -> bool {
    // SAFETY: the caller's promise.
    guard(false, || unsafe { iter.as_ref() }?.0.key().map(|_| true))
}

/// Copies the key and the value where the iterator is, and their lengths. False if it is at no pair, or the value,
/// which another program has written, is longer than `REMIXDB_MAX_BYTES`; then nothing is copied.
///
/// # Safety
/// - `iter` is null, or came from `remixdb_iter_create` and was not destroyed.
/// - `key` and `value` have room for them, `REMIXDB_MAX_BYTES` at most each, and `key_bytes` and `value_bytes` may be
///   written to; each of them may be null, if it is not wanted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remixdb_iter_peek(
    iter: *mut Iter,
    key: *mut c_void,
    key_bytes: *mut u32,
    value: *mut c_void,
    value_bytes: *mut u32,
) -> bool {
    guard(false, || {
        // SAFETY: the caller's promise.
        let cursor = &unsafe { iter.as_ref() }?.0;
        let found_key = cursor.key()?;
        // A value that is not asked for is not loaded.
        let found = if value.is_null() && value_bytes.is_null() { None } else { Some(cursor.value().ok()??) };
        let (key_length, length) = (fits(found_key)?, fits(found.as_deref().unwrap_or_default())?);
        // SAFETY: the caller's promises.
        unsafe {
            give(found_key, key_length, key, key_bytes);
            give(found.as_deref().unwrap_or_default(), length, value, value_bytes);
        }
        Some(true)
    })
}

/// Moves to the next key.
///
/// # Safety
/// - `iter` is null, or came from `remixdb_iter_create` and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remixdb_iter_skip1(iter: *mut Iter) {
    // SAFETY: the caller's promise.
    guard(false, || unsafe { iter.as_mut() }?.0.next().ok());
}

/// Moves so many keys forward.
///
/// # Safety
/// - `iter` is null, or came from `remixdb_iter_create` and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remixdb_iter_skip(iter: *mut Iter, keys: u32) {
    // SAFETY: the caller's promise.
    guard(false, || unsafe { iter.as_mut() }?.0.skip(keys.into()).ok());
}

/// Gives back what an iterator holds beside its pair, for a pause of any length. It stays where it is.
///
/// # Safety
/// - `iter` is null, or came from `remixdb_iter_create` and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remixdb_iter_park(iter: *mut Iter) {
    guard(false, || {
        // SAFETY: the caller's promise.
        unsafe { iter.as_mut() }?.0.park();
        Some(true)
    });
}

/// Gives an iterator back. Null is nothing to give back.
///
/// # Safety
/// - `iter` is null, or came from `remixdb_iter_create`, was not destroyed, and is used by nobody.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remixdb_iter_destroy(iter: *mut Iter) {
    // SAFETY: the caller's promise.
    unsafe { give_back(iter) };
}

/// Runs the body of a function that C calls; `failed` if it has no answer, or panics, which does not cross this border.
fn guard<T: Copy>(failed: T, body: impl FnOnce() -> Option<T>) -> T {
    catch_unwind(AssertUnwindSafe(body)).ok().flatten().unwrap_or(failed)
}

/// Opens a store.
///
/// # Safety
/// - `dir` is null, or ends with a zero byte.
unsafe fn open(dir: *const c_char, cache_mb: usize, mt_mb: usize, tags: bool) -> Option<*mut Store> {
    if dir.is_null() {
        eprintln!("remixdb: the directory is null");
        return None;
    }
    // SAFETY: it is not null, and the caller promises the rest.
    let dir = unsafe { CStr::from_ptr(dir) };
    let Ok(dir) = dir.to_str() else {
        eprintln!("remixdb: the directory \"{}\" is not UTF-8", dir.to_bytes().escape_ascii());
        return None;
    };
    // What looks like the URL of another home is a directory here.
    let path = if forrest::directory(dir).is_some() { dir.to_owned() } else { format!("./{dir}") };
    let bytes = |mib: usize| mib.max(1).saturating_mul(1 << 20);
    let builder = Db::builder().cache_bytes(bytes(cache_mb)).memtable_bytes(bytes(mt_mb)).tags(tags);
    match builder.open(&path) {
        Ok(db) => Some(Box::into_raw(Box::new(Store(db)))),
        Err(error) => {
            eprintln!("remixdb: cannot open {path}: {error}");
            None
        }
    }
}

/// Drops what C had.
///
/// # Safety
/// - `handle` is null, or came from `Box::into_raw`, and nobody has a use for it any more.
unsafe fn give_back<T>(handle: *mut T) {
    if !handle.is_null() {
        // SAFETY: the caller's promises.
        let handle = unsafe { Box::from_raw(handle) };
        guard(false, || {
            drop(handle);
            Some(true)
        });
    }
}

/// Bytes from C; None if they are null and have a length.
///
/// # Safety
/// - `start` is null or has `length` bytes that may be read and do not change for as long as the result is used.
unsafe fn bytes<'a>(start: *const c_void, length: u32) -> Option<&'a [u8]> {
    if length == 0 {
        return Some(&[]);
    }
    // SAFETY: it is not null, and the caller promises the rest.
    (!start.is_null()).then(|| unsafe { std::slice::from_raw_parts(start.cast(), length as usize) })
}

/// The length of bytes, if a buffer of this interface has room for them.
fn fits(bytes: &[u8]) -> Option<u32> {
    u32::try_from(bytes.len()).ok().filter(|length| *length <= REMIXDB_MAX_BYTES)
}

/// Copies bytes and their length to where they are wanted.
///
/// # Safety
/// - `to` is null or has room for the bytes, and `to_length` is null or may be written to.
unsafe fn give(bytes: &[u8], length: u32, to: *mut c_void, to_length: *mut u32) {
    // SAFETY: the caller's promises; and nobody outside the library knows where the bytes are.
    unsafe {
        if !to.is_null() {
            ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast(), bytes.len());
        }
        if !to_length.is_null() {
            to_length.write(length);
        }
    }
}

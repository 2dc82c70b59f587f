//! Opening, changing single keys, and the three ways to read one.

use crate::argument::{Place, key, shared, value};
use crate::code::{FORREST_NOT_FOUND, FORREST_OK, FORREST_TOO_SMALL};
use crate::failure::{Failure, guard};
use crate::value::{Value, copied};
use std::ffi::{CStr, c_char, c_void};
use std::ptr;

/// An open store. Many threads may use it at once.
#[derive(Debug)]
pub struct Db(pub(crate) forrest_rust::Db);

// Any thread may use one, and iterators and batches go from thread to thread, as the header promises.
const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    const fn is_sent<T: Send>() {}
    is_shared::<forrest_rust::Db>();
    is_shared::<forrest_rust::Value>();
    is_sent::<forrest_rust::WriteBatch>();
    is_sent::<forrest_rust::Cursor>();
};

/// Opens a store. The URL, in UTF-8, is as for the command `forrest`: "memory:" is a new, empty store that lives as
/// long as its handle; a path is a store on disk, in a directory of its own, which is made if there is none;
/// "llds:NAME" is a store in the memory of the kernel, by its module, which all who open it share, and which is made if
/// there is none; "llds-user:NAME" is the module's engine in this process, if it was built into the library.
///
/// `FORREST_INVALID_ARGUMENT` if `url` names no home, `FORREST_UNSUPPORTED` if its home was not built into the library,
/// `FORREST_BUSY` if a store on disk is open already, here or elsewhere, `FORREST_CORRUPT` if it is damaged,
/// `FORREST_OUT_OF_SPACE`, `FORREST_IO`.
///
/// # Safety
/// - `url` is null, or ends with a zero byte.
/// - `db` is null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_open(url: *const c_char, db: *mut *mut Db) -> i32 {
    guard(|| {
        // SAFETY: the caller's promise.
        let mut db = unsafe { Place::of("store", db, ptr::null_mut()) }?;
        if url.is_null() {
            return Err(Failure::invalid("the URL is null"));
        }
        // SAFETY: it is not null, and the caller promises the rest.
        let url = unsafe { CStr::from_ptr(url) };
        let Ok(text) = url.to_str() else {
            let shown = url.to_bytes().escape_ascii();
            return Err(Failure::invalid(format!("the URL \"{shown}\" is not UTF-8")));
        };
        let opened = forrest_rust::Db::open(text)?;
        db.put(Box::into_raw(Box::new(Db(opened))));
        Ok(FORREST_OK)
    })
}

/// Gives a store back. It is closed once its iterators are destroyed as well; what was written to a path is there when
/// it is opened again. Null is nothing to give back.
///
/// # Safety
/// - `db` is null, or came from `forrest_open`, was not closed, and is used by nobody.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_close(db: *mut Db) -> i32 {
    guard(|| {
        if !db.is_null() {
            // SAFETY: it is a box of this library, and the caller has no use for it any more.
            drop(unsafe { Box::from_raw(db) });
        }
        Ok(FORREST_OK)
    })
}

/// Maps a key to a value, whether it was there or not.
///
/// `FORREST_LIMIT` if one of them is too long (keys have 65,535 bytes at most, 4,096 in the kernel; values
/// 4,294,967,295), `FORREST_OUT_OF_SPACE`, `FORREST_IO`, `FORREST_STOPPED`.
///
/// # Safety
/// - `db` is null, or came from `forrest_open` and is not closed.
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
        let (db, key, value) =
            unsafe { (shared("store", db)?, self::key(key, key_bytes)?, self::value(value, value_bytes)?) };
        db.0.set(key, value)?;
        Ok(FORREST_OK)
    })
}

/// Removes a key. `FORREST_NOT_FOUND` if it was not there; otherwise as `forrest_set`.
///
/// # Safety
/// - `db` is null, or came from `forrest_open` and is not closed.
/// - `key` has `key_bytes` bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_delete(db: *mut Db, key: *const c_void, key_bytes: usize) -> i32 {
    guard(|| {
        // SAFETY: the caller's promises.
        let (db, key) = unsafe { (shared("store", db)?, self::key(key, key_bytes)?) };
        Ok(if db.0.delete(key)? { FORREST_OK } else { FORREST_NOT_FOUND })
    })
}

/// Reads the value of a key and holds it: `forrest_value_data` has its bytes, `forrest_value_release` gives it back.
/// A long value is shared with a store in memory, not copied.
///
/// `FORREST_NOT_FOUND` if the key is not there, and nothing is to be released then; `FORREST_LIMIT` if it is too long,
/// `FORREST_IO`, `FORREST_CORRUPT`.
///
/// # Safety
/// - `db` is null, or came from `forrest_open` and is not closed.
/// - `key` has `key_bytes` bytes, or is null.
/// - `value` is null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_get(
    db: *const Db,
    key: *const c_void,
    key_bytes: usize,
    value: *mut *mut Value,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promises.
        let mut value = unsafe { Place::of("value", value, ptr::null_mut()) }?;
        // SAFETY: the caller's promises.
        let Some(found) = unsafe { find(db, key, key_bytes) }? else { return Ok(FORREST_NOT_FOUND) };
        value.put(Box::into_raw(Box::new(Value(found))));
        Ok(FORREST_OK)
    })
}

/// Reads the value of a key into memory of its own, to be given to `forrest_free`. Of a value of length 0 that is some
/// memory as well.
///
/// `FORREST_NOT_FOUND` if the key is not there, and nothing is to be freed then; errors as of `forrest_get`, and
/// `FORREST_OUT_OF_SPACE`.
///
/// # Safety
/// - `db` is null, or came from `forrest_open` and is not closed.
/// - `key` has `key_bytes` bytes, or is null.
/// - `value` and `value_bytes` are each null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_get_alloc(
    db: *const Db,
    key: *const c_void,
    key_bytes: usize,
    value: *mut *mut c_void,
    value_bytes: *mut usize,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promises.
        let (mut value, mut length) =
            unsafe { (Place::of("value", value, ptr::null_mut())?, Place::of("length", value_bytes, 0)?) };
        // SAFETY: the caller's promises.
        let Some(found) = unsafe { find(db, key, key_bytes) }? else { return Ok(FORREST_NOT_FOUND) };
        value.put(copied(&found)?);
        length.put(found.len());
        Ok(FORREST_OK)
    })
}

/// Reads the value of a key into a buffer of the caller's, and tells its length.
///
/// `FORREST_TOO_SMALL` if it is longer than the buffer: then nothing is written there, and the length is that which is
/// needed. (The value may be longer still when it is asked for again.) `FORREST_NOT_FOUND` if the key is not there;
/// errors as of `forrest_get`.
///
/// # Safety
/// - `db` is null, or came from `forrest_open` and is not closed.
/// - `key` has `key_bytes` bytes, or is null.
/// - `buffer` has `buffer_bytes` bytes that may be written to and are not the key's, or is null.
/// - `value_bytes` is null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_get_into(
    db: *const Db,
    key: *const c_void,
    key_bytes: usize,
    buffer: *mut c_void,
    buffer_bytes: usize,
    value_bytes: *mut usize,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promise.
        let mut length = unsafe { Place::of("length", value_bytes, 0) }?;
        if buffer.is_null() && buffer_bytes > 0 {
            return Err(Failure::invalid(format!("the buffer is null, and its length {buffer_bytes}")));
        }
        // SAFETY: the caller's promises.
        let Some(found) = unsafe { find(db, key, key_bytes) }? else { return Ok(FORREST_NOT_FOUND) };
        length.put(found.len());
        if found.len() > buffer_bytes {
            return Ok(FORREST_TOO_SMALL);
        }
        if !found.is_empty() {
            // SAFETY: the buffer is not null, as it has room for something; it has so many bytes, as the caller
            // promises; and nobody outside the library knows where the value is.
            unsafe { ptr::copy_nonoverlapping(found.as_ptr(), buffer.cast(), found.len()) };
        }
        Ok(FORREST_OK)
    })
}

/// The value of a key.
///
/// # Safety
/// - `db` is null, or came from `forrest_open` and is not closed.
/// - `key` has `key_bytes` bytes, or is null.
unsafe fn find(
    db: *const Db,
    key: *const c_void,
    key_bytes: usize,
) -> Result<Option<forrest_rust::Value>, Failure> {
    // SAFETY: the caller's promises.
    let (db, key) = unsafe { (shared("store", db)?, self::key(key, key_bytes)?) };
    Ok(db.0.get(key)?)
}

//! Values that are read in pieces, so that one of gigabytes needs the memory of a piece only.

use crate::argument::{self, Place, key};
use crate::code::{FORREST_NOT_FOUND, FORREST_OK};
use crate::db::Db;
use crate::failure::guard;
use crate::handle::Table;
use forrest_rust::Error;
use std::ffi::c_void;
use std::io::Read;
use std::ptr;

/// A value that is read in pieces, as it was when it was opened. That of a large value on disk keeps the store open,
/// and the space that the value takes, also if the key has got another one.
#[derive(Debug)]
pub struct ValueReader {
    value: forrest_rust::ValueReader,
    left_bytes: u64,
}

static READERS: Table<ValueReader, 1> = Table::new("value reader", 12);

/// Opens the value of a key to be read in pieces, from its beginning on, and writes its length to `*value_bytes`,
/// unless that is null. A value of `FORREST_LARGE_VALUES` and more on disk is read from the file as the pieces are
/// asked for; other values are in memory until the reader is closed. The value is read as it is now, also if the key
/// gets another one. Close the reader with `forrest_value_reader_close`. Values are written whole:
/// `forrest_blob_begin` writes in pieces.
///
/// `FORREST_NOT_FOUND` if the key does not exist; there is nothing to close then. Errors as of `forrest_get`.
///
/// # Safety
/// - `key` is null or has `key_bytes` readable bytes.
/// - `reader` is null or writable, and `value_bytes` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_value_reader_open(
    db: *const Db,
    key: *const c_void,
    key_bytes: usize,
    reader: *mut *mut ValueReader,
    value_bytes: *mut u64,
) -> i32 {
    guard(|| {
        // SAFETY: `reader` and `value_bytes` are null or writable, and `key` is null or has `key_bytes` readable bytes,
        // as the Safety section demands.
        let (mut reader, mut value_bytes, key) = unsafe {
            let reader = Place::of("value reader", reader, ptr::null_mut())?;
            (reader, Place::perhaps(value_bytes, 0), self::key(key, key_bytes)?)
        };
        let Some(found) = Db::of(db)?.view().reader(key)? else { return Ok(FORREST_NOT_FOUND) };
        let bytes = found.value_bytes();
        if let Some(value_bytes) = &mut value_bytes {
            value_bytes.put(bytes);
        }
        reader.put(READERS.insert([ValueReader { value: found, left_bytes: bytes }])?);
        Ok(FORREST_OK)
    })
}

/// Reads on until `buffer` is full or the value ends, and writes the number of bytes to `*read`: less than `count` at
/// the end of the value, and 0 after it.
///
/// A value in a file has one checksum, which is compared when its last bytes are read. So all of it was right if the
/// end was reached. `FORREST_CORRUPT` if the value is damaged, whose end is then never reached; `FORREST_IO`.
///
/// # Safety
/// - `buffer` is null or has `count` writable bytes, and `read` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_value_reader_read(
    reader: *mut ValueReader,
    buffer: *mut c_void,
    count: usize,
    read: *mut usize,
) -> i32 {
    guard(|| {
        // SAFETY: `read` is null or writable, as the Safety section demands.
        let mut read = unsafe { Place::of("number of bytes", read, 0) }?;
        let mut reader = READERS.exclusive(reader)?;
        // SAFETY: `buffer` is null or has `count` writable bytes, as the Safety section demands.
        let buffer = unsafe { argument::buffer(buffer, count, reader.left_bytes) }?;
        let bytes = reader.value.read(buffer).map_err(Error::of_stream)?;
        reader.left_bytes -= bytes as u64;
        read.put(bytes);
        Ok(FORREST_OK)
    })
}

/// Closes a value reader. Null is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_value_reader_close(reader: *mut ValueReader) -> i32 {
    guard(|| READERS.remove(reader).map(|()| FORREST_OK))
}

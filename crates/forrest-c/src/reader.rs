//! Values that are read in pieces, so that one of gigabytes needs the memory of a piece only.

use crate::argument::{self, Place};
use crate::code::FORREST_OK;
use crate::db::{Db, open_under_key};
use crate::failure::guard;
use crate::handle::Table;
use forrest_rust::Error;
use std::ffi::c_void;
use std::io::Read;

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
    let find = |db: &Db, key: &[u8]| {
        let with_length = |value: forrest_rust::ValueReader| {
            let left_bytes = value.value_bytes();
            (left_bytes, ValueReader { value, left_bytes })
        };
        Ok(db.view().reader(key)?.map(with_length))
    };
    // SAFETY: the arguments meet the requirements of `open_under_key`, which are those of this function's Safety
    // section.
    guard(|| unsafe { open_under_key(&READERS, db, key, key_bytes, reader, value_bytes, find) })
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

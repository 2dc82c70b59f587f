//! Blobs: values of any length, which are written and read in pieces.

use crate::argument::{self, Place, key};
use crate::code::{FORREST_NOT_FOUND, FORREST_OK};
use crate::db::{Db, open_under_key};
use crate::failure::{Failure, guard};
use crate::handle::Table;
use forrest_rust::{Blobs, DEFAULT_PIECE_BYTES, Error, ErrorKind};
use std::ffi::c_void;
use std::io::Write;
use std::{fmt, ptr};

/// A blob that is being written: `forrest_blob_finish` makes it visible. It keeps the store open.
pub struct BlobWriter(Option<forrest_rust::BlobWriter>);

/// A blob that is read, as it was when it was opened. It keeps the store open, and the store keeps what has been
/// replaced since.
pub struct Blob(Box<forrest_rust::Blob>); // boxed, so that tools that check memory accesses see where it ends

static WRITERS: Table<BlobWriter, 1> = Table::new("blob writer", 10);
static BLOBS: Table<Blob, 1> = Table::new("blob", 11);

impl fmt::Debug for BlobWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The blobs of the keyspace of a handle.
fn blobs(db: &Db) -> Result<Blobs, Failure> {
    let (store, keyspace) = db.newest()?;
    Ok(store.blobs(keyspace.name())?)
}

fn ended() -> Failure {
    let message =
        "this blob is finished, or was discarded after an error; destroy the writer and begin another one";
    Error::new(ErrorKind::InvalidArgument, message).into()
}

/// Begins to write a blob: a value of any length, which is written and read in pieces of `piece_bytes`: 1 KiB to 64
/// MiB, or 0 for 256 KiB. `db` is a handle to a keyspace that has blobs only, from `forrest_keyspace`; an empty one
/// becomes such a keyspace. Keys have at most 65,534 bytes. Nobody sees the blob before `forrest_blob_finish`. Destroy
/// the writer with `forrest_blob_writer_destroy`, also after it was finished.
///
/// `FORREST_INVALID_ARGUMENT` if the keyspace has pairs that are no blobs, if `db` is a snapshot, or for another
/// `piece_bytes`; `FORREST_LIMIT` if the key is too long; `FORREST_UNSUPPORTED` in the kernel; `FORREST_OUT_OF_SPACE`,
/// `FORREST_IO`, `FORREST_STOPPED`.
///
/// # Safety
/// - `key` is null or has `key_bytes` readable bytes.
/// - `writer` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_blob_begin(
    db: *mut Db,
    key: *const c_void,
    key_bytes: usize,
    piece_bytes: u32,
    writer: *mut *mut BlobWriter,
) -> i32 {
    guard(|| {
        // SAFETY: `writer` is null or writable, and `key` is null or has `key_bytes` readable bytes, as the Safety
        // section demands.
        let (mut writer, key) =
            unsafe { (Place::of("blob writer", writer, ptr::null_mut())?, self::key(key, key_bytes)?) };
        let piece_bytes = if piece_bytes == 0 { DEFAULT_PIECE_BYTES } else { piece_bytes };
        let begun = blobs(&*Db::of(db)?)?.piece_bytes(piece_bytes)?.writer(key)?;
        writer.put(WRITERS.insert([BlobWriter(Some(begun))])?);
        Ok(FORREST_OK)
    })
}

/// Writes the next bytes of a blob. After an error the blob is discarded.
///
/// `FORREST_UNSUPPORTED` in a store that was opened to be read; `FORREST_CONDITION_FAILED` if another program has
/// removed the blob as unfinished; `FORREST_INVALID_ARGUMENT` if it was finished or discarded; `FORREST_OUT_OF_SPACE`,
/// `FORREST_IO`, `FORREST_STOPPED`, `FORREST_BUSY`.
///
/// # Safety
/// - `bytes` is null or has `count` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_blob_write(
    writer: *mut BlobWriter,
    bytes: *const c_void,
    count: usize,
) -> i32 {
    guard(|| {
        // SAFETY: `bytes` is null or has `count` readable bytes, as the Safety section demands.
        let bytes = unsafe { argument::bytes("piece of a blob", bytes, count, usize::MAX) }?;
        let mut writer = WRITERS.exclusive(writer)?;
        let open = writer.0.as_mut().ok_or_else(ended)?;
        if let Err(error) = open.write_all(bytes) {
            writer.0 = None;
            return Err(Error::of_stream(error).into());
        }
        Ok(FORREST_OK)
    })
}

/// Makes a blob visible, whole, in place of the one that its key had. It is as durable then as a change of the store.
/// The writer is of no use afterwards, also after an error.
///
/// Errors as of `forrest_blob_write`.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_blob_finish(writer: *mut BlobWriter) -> i32 {
    guard(|| {
        let open = WRITERS.exclusive(writer)?.0.take().ok_or_else(ended)?;
        open.finish()?;
        Ok(FORREST_OK)
    })
}

/// Destroys a writer. A blob that was not finished is discarded. Null is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_blob_writer_destroy(writer: *mut BlobWriter) -> i32 {
    guard(|| WRITERS.remove(writer).map(|()| FORREST_OK))
}

/// Opens a blob to be read, and writes its length to `*blob_bytes`, unless that is null. `db` is a handle to the
/// keyspace, or a snapshot of it. The blob is read as it is now, also if the key gets another one. Close it with
/// `forrest_blob_close`.
///
/// `FORREST_NOT_FOUND` if there is none; `FORREST_UNSUPPORTED` in the kernel; `FORREST_IO`, `FORREST_CORRUPT`.
///
/// # Safety
/// - `key` is null or has `key_bytes` readable bytes.
/// - `blob` is null or writable, and `blob_bytes` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_blob_open(
    db: *const Db,
    key: *const c_void,
    key_bytes: usize,
    blob: *mut *mut Blob,
    blob_bytes: *mut u64,
) -> i32 {
    let find = |db: &Db, key: &[u8]| {
        let with_length = |found: forrest_rust::Blob| (found.len(), Blob(Box::new(found)));
        Ok(db.blob(key)?.map(with_length))
    };
    // SAFETY: the arguments meet the requirements of `open_under_key`, which are those of this function's Safety
    // section.
    guard(|| unsafe { open_under_key(&BLOBS, db, key, key_bytes, blob, blob_bytes, find) })
}

/// Reads from an offset on until `buffer` is full or the blob ends, and writes the number of bytes to `*read`.
///
/// `FORREST_CORRUPT` if a piece is missing or damaged; `FORREST_IO`, `FORREST_BUSY`.
///
/// # Safety
/// - `buffer` is null or has `count` writable bytes, and `read` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_blob_read(
    blob: *const Blob,
    offset: u64,
    buffer: *mut c_void,
    count: usize,
    read: *mut usize,
) -> i32 {
    guard(|| {
        // SAFETY: `read` is null or writable, as the Safety section demands.
        let mut read = unsafe { Place::of("number of bytes", read, 0) }?;
        let mut blob = BLOBS.exclusive(blob)?;
        let left = blob.0.len().saturating_sub(offset);
        // SAFETY: `buffer` is null or has `count` writable bytes, as the Safety section demands.
        let buffer = unsafe { argument::buffer(buffer, count, left) }?;
        read.put(blob.0.read_at(offset, buffer)?);
        Ok(FORREST_OK)
    })
}

/// Closes a blob. Null is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_blob_close(blob: *mut Blob) -> i32 {
    guard(|| BLOBS.remove(blob).map(|()| FORREST_OK))
}

/// Removes a blob. `FORREST_NOT_FOUND` if there is none; otherwise errors as of `forrest_blob_begin`.
///
/// # Safety
/// - `key` is null or has `key_bytes` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_blob_delete(db: *mut Db, key: *const c_void, key_bytes: usize) -> i32 {
    guard(|| {
        // SAFETY: `key` is null or has `key_bytes` readable bytes, as the Safety section demands.
        let key = unsafe { self::key(key, key_bytes) }?;
        let removed = blobs(&*Db::of(db)?)?.delete(key)?;
        Ok(if removed { FORREST_OK } else { FORREST_NOT_FOUND })
    })
}

/// The function that `forrest_blob_list` calls with each key and the length of its blob, and with its `context`. It
/// returns true to continue, false to end. It must not keep a pointer to the key, and must return normally, not by an
/// exception or `longjmp`. It may call this library.
pub type SeeBlob = Option<
    unsafe extern "C" fn(context: *mut c_void, key: *const c_void, key_bytes: usize, blob_bytes: u64) -> bool,
>;

/// Calls `see` with each key from `start` up to, but without, `end`, and the length of its blob in bytes, in order, as
/// long as it returns true. A null `end` is no end. Reads no piece.
///
/// `FORREST_INVALID_ARGUMENT` if `see` is null; otherwise errors as of `forrest_blob_begin`.
///
/// # Safety
/// - `start` is null or has `start_bytes` readable bytes, and `end` is null or has `end_bytes`.
/// - `see` is null, or a function that meets the requirements of `forrest_see_blob`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_blob_list(
    db: *mut Db,
    start: *const c_void,
    start_bytes: usize,
    end: *const c_void,
    end_bytes: usize,
    see: SeeBlob,
    context: *mut c_void,
) -> i32 {
    guard(|| {
        // SAFETY: `start` and `end` are null or have `start_bytes` and `end_bytes` readable bytes, as the Safety
        // section demands.
        let range = unsafe { argument::range(start, start_bytes, end, end_bytes) }?;
        let see = see.ok_or_else(|| Failure::invalid("the function of the list is null"))?;
        // The iteration does not hold the handle's lock, because `see` may close the handle.
        let blobs = blobs(&*Db::of(db)?)?;
        for entry in blobs.range(range) {
            let (key, bytes) = entry?;
            // SAFETY: `see` meets the requirements of `forrest_see_blob`, as the Safety section demands. The key lives
            // until it returns.
            if !unsafe { see(context, key.as_ptr().cast(), key.len(), bytes) } {
                break;
            }
        }
        Ok(FORREST_OK)
    })
}

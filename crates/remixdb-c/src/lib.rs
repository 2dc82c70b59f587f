//! libremixdb: RemixDB's functions for programs in C, over Forrest's engine on disk. A program that was
//! written for RemixDB compiles with this header and runs. The header, `include/remixdb.h`, documents
//! everything for users; the tests generate it from this file.
//!
//! The interface has no error codes: functions that fail return null or false, and `remixdb_open` prints the
//! reason on standard error. It has no buffer lengths either, so no key or value longer than
//! [`REMIXDB_MAX_BYTES`] is accepted or returned. Everything else is as in the library `forrest`. New
//! programs should use libforrest, which has more functions and reports errors.

use forrest::{Builder, Cursor, Db, Durability};
use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

/// Maximum length of a key and its value together, in bytes. A buffer of this size has room for any key and
/// for any value.
pub const REMIXDB_MAX_BYTES: u32 = 65500;

/// A put or delete has returned when it is in memory, as in RemixDB. It is passed to the operating system within
/// about a tenth of a second, or as soon as 256 KiB wait: the end of the process loses no more. `remixdb_sync`
/// makes it survive a power cut, and `remixdb_close` the end of the process. After any crash, the store has the
/// state after some put or delete, and everything before that one. The default.
pub const REMIXDB_DURABILITY_MEMORY: u32 = 1;

/// A put or delete has returned when it was passed to the operating system: it survives the end of the process, however
/// that ends. Each takes a system call, so it takes more than twice as long.
pub const REMIXDB_DURABILITY_BUFFERED: u32 = 2;

/// A put or delete has returned when the device has reported it stored: it survives a power cut.
pub const REMIXDB_DURABILITY_SYNC: u32 = 3;

/// How `remixdb_open_with` opens a store. A field that is 0 or null has its default, so that this is enough:
///
///     struct remixdb_options options = {0};
///     options.workers = 2;
///
/// Later versions of the library may add fields at the end.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct RemixdbOptions {
    /// Size of the page cache in MiB. Default: 256.
    pub cache_mb: usize,
    /// Size of two memtables in MiB: one takes changes while the other becomes tables. Default: 128.
    pub mt_mb: usize,
    /// 1: keep no byte of hash for each key, as `remixdb_open_compact`. That takes the least space, and makes
    /// `remixdb_get` and `remixdb_probe` slower. Default: keep them.
    pub no_tags: u32,
    /// What a put or delete survives once it has returned: one of `REMIXDB_DURABILITY_MEMORY` to
    /// `REMIXDB_DURABILITY_SYNC`. Default: `REMIXDB_DURABILITY_MEMORY`.
    pub durability: u32,
    /// Maximum number of threads that write and merge tables in the background; 1 to 256. Default: the number of
    /// processors in `worker_cpus`, or that the process may use, at most 4.
    pub workers: u32,
    /// Length of `worker_cpus`.
    pub worker_cpus_count: u32,
    /// Numbers of the processors that these threads may run on. The process must be allowed to use them. Default: all
    /// that it may use. (RemixDB pins its threads to the last four; here the system places them.)
    pub worker_cpus: *const u32,
    /// Values of at least this many bytes stay in the log, so that they are written once: 64 or more, or SIZE_MAX for
    /// none. Default: 4,096. A store that has such values cannot be opened by libraries without this option.
    pub large_values: usize,
}

/// An open store.
#[derive(Debug)]
pub struct Xdb(Db);

/// A thread's access to a store. One thread at a time may use it.
#[derive(Debug)]
pub struct Ref {
    db: Db,
    of: *mut Xdb,
}

/// A position in the order of keys: at a pair, or at none. One thread at a time may use it.
#[derive(Debug)]
pub struct Iter(Cursor);

/// Opens the store in a directory, which is created if it is missing. `cache_mb` is the size of the page cache in
/// MiB, and `mt_mb` that of two memtables: one takes changes while the other becomes tables. `tags`: keep a byte
/// of hash for each key, which makes `remixdb_get` and `remixdb_probe` faster. Returns null, and prints the reason
/// on standard error, if the store cannot be opened or is open already. Close it with `remixdb_close`.
///
/// A put or delete survives the end of the process and a power cut only after `remixdb_sync`: see
/// `REMIXDB_DURABILITY_MEMORY`. `remixdb_open_with` opens a store with another level.
///
/// # Safety
/// - `dir` is null, or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remixdb_open(
    dir: *const c_char,
    cache_mb: usize,
    mt_mb: usize,
    tags: bool,
) -> *mut Xdb {
    // SAFETY: `dir` is null or zero-terminated, by this function's `# Safety`.
    guard(ptr::null_mut(), || unsafe { open(dir, sized(cache_mb, mt_mb).tags(tags)) })
}

/// Like `remixdb_open`, but takes the least space: no tags.
///
/// # Safety
/// - As `remixdb_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remixdb_open_compact(dir: *const c_char, cache_mb: usize, mt_mb: usize) -> *mut Xdb {
    // SAFETY: `dir` is null or zero-terminated, by this function's `# Safety`.
    guard(ptr::null_mut(), || unsafe { open(dir, sized(cache_mb, mt_mb).tags(false)) })
}

/// Like `remixdb_open`, with options. `options_bytes` is `sizeof(struct remixdb_options)`. If `options` is null, all
/// have their defaults. Returns null, and prints the reason on standard error, also for a value that an option does not
/// take, and for an option that this version of the library does not have.
///
/// # Safety
/// - `dir` is null, or ends with a zero byte.
/// - `options` is null, or has `options_bytes` readable bytes, and its `worker_cpus` is null, or has
///   `worker_cpus_count` readable numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remixdb_open_with(
    dir: *const c_char,
    options: *const RemixdbOptions,
    options_bytes: usize,
) -> *mut Xdb {
    guard(ptr::null_mut(), || {
        // SAFETY: `options` is null or has `options_bytes` readable bytes, by this function's `# Safety`.
        let chosen = unsafe { read(options, options_bytes) };
        // SAFETY: `worker_cpus` is null or has as many numbers as it says, by this function's `# Safety`.
        match chosen.and_then(|options| unsafe { builder(&options) }) {
            // SAFETY: `dir` is null or zero-terminated, by this function's `# Safety`.
            Ok(builder) => unsafe { open(dir, builder) },
            Err(why) => {
                eprintln!("remixdb: {why}");
                None
            }
        }
    })
}

/// Closes a store. All refs must have been given back before. An iterator that was not destroyed keeps the
/// store open. Null is ignored.
///
/// # Safety
/// - `xdb` is null, or came from `remixdb_open` and was not closed, and no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remixdb_close(xdb: *mut Xdb) {
    // SAFETY: `xdb` is null or a box that `open` leaked and that is not used any more, by this function's `#
    // Safety`.
    unsafe { give_back(xdb) };
}

/// Makes a ref to a store. Give it back with `remixdb_unref`. Returns null for null.
///
/// # Safety
/// - `xdb` is null, or came from `remixdb_open` and was not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remixdb_ref(xdb: *mut Xdb) -> *mut Ref {
    guard(ptr::null_mut(), || {
        // SAFETY: `xdb` is null or points to a live store, because it was not closed.
        let store = unsafe { xdb.as_ref() }?;
        Some(Box::into_raw(Box::new(Ref { db: store.0.clone(), of: xdb })))
    })
}

/// Gives a ref back, and returns its store. Returns null for null.
///
/// # Safety
/// - `xref` is null, or came from `remixdb_ref` and was not given back, and no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remixdb_unref(xref: *mut Ref) -> *mut Xdb {
    // SAFETY: `xref` is null or a box that `remixdb_ref` leaked. It is live when it is read, and not used
    // after it is dropped.
    unsafe {
        let of = xref.as_ref().map_or(ptr::null_mut(), |found| found.of);
        give_back(xref);
        of
    }
}

/// Maps a key to a value. False if both together have more than `REMIXDB_MAX_BYTES` bytes, or if the write
/// fails.
///
/// # Safety
/// - `xref` is null, or came from `remixdb_ref` and was not given back.
/// - `key` has `key_bytes` bytes, or is null. `value` has `value_bytes` bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remixdb_put(
    xref: *mut Ref,
    key: *const c_void,
    key_bytes: u32,
    value: *const c_void,
    value_bytes: u32,
) -> bool {
    guard(false, || {
        // SAFETY: `xref` is null or live, because it was not given back; `key` and `value` have the given
        // lengths, and the slices end with this call.
        let (found, key, value) =
            unsafe { (xref.as_ref()?, bytes(key, key_bytes)?, bytes(value, value_bytes)?) };
        if key.len() + value.len() > REMIXDB_MAX_BYTES as usize {
            return None;
        }
        found.db.set(key, value).ok().map(|()| true)
    })
}

/// Removes a key. True also if it was not there; false if the write fails.
///
/// # Safety
/// - `xref` is null, or came from `remixdb_ref` and was not given back.
/// - `key` has `key_bytes` bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remixdb_del(xref: *mut Ref, key: *const c_void, key_bytes: u32) -> bool {
    guard(false, || {
        // SAFETY: `xref` is null or live, because it was not given back; `key` has `key_bytes` bytes, and the
        // slice ends with this call.
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
        // SAFETY: `xref` is null or live, because it was not given back; `key` has `key_bytes` bytes, and the
        // slice ends with this call.
        let (found, key) = unsafe { (xref.as_ref()?, bytes(key, key_bytes)?) };
        found.db.contains(key).ok()
    })
}

/// Copies the value of a key and its length. False if the key is not there. Also false if another program has
/// written a value longer than `REMIXDB_MAX_BYTES`. Then nothing is copied.
///
/// # Safety
/// - `xref` is null, or came from `remixdb_ref` and was not given back.
/// - `key` has `key_bytes` bytes, or is null.
/// - `value` is null or has room for the value, which has at most `REMIXDB_MAX_BYTES` bytes.
/// - `value_bytes` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remixdb_get(
    xref: *mut Ref,
    key: *const c_void,
    key_bytes: u32,
    value: *mut c_void,
    value_bytes: *mut u32,
) -> bool {
    guard(false, || {
        // SAFETY: `xref` is null or live, because it was not given back; `key` has `key_bytes` bytes, and the
        // slice ends with this call.
        let (found, key) = unsafe { (xref.as_ref()?, bytes(key, key_bytes)?) };
        let found = found.db.get(key).ok()??;
        let length = fits(&found)?;
        // SAFETY: `value` is null or has room for `REMIXDB_MAX_BYTES` bytes, and `length` is not above that,
        // checked in `fits`; `value_bytes` is null or writable.
        unsafe { give(&found, length, value, value_bytes) };
        Some(true)
    })
}

/// Returns when everything written before survives a power cut. False if the device reports a failure.
///
/// # Safety
/// - `xref` is null, or came from `remixdb_ref` and was not given back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remixdb_sync(xref: *mut Ref) -> bool {
    // SAFETY: `xref` is null or live, because it was not given back.
    guard(false, || unsafe { xref.as_ref() }?.db.sync().ok().map(|()| true))
}

/// Makes an iterator, which is at no pair yet. Give it back with `remixdb_iter_destroy`. Returns null for
/// null.
///
/// # Safety
/// - `xref` is null, or came from `remixdb_ref` and was not given back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remixdb_iter_create(xref: *mut Ref) -> *mut Iter {
    guard(ptr::null_mut(), || {
        // SAFETY: `xref` is null or live, because it was not given back.
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
        // SAFETY: `iter` is null or live, because it was not destroyed, and one thread at a time uses it, so
        // no other reference exists; `key` has `key_bytes` bytes, and the slice ends with this call.
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
    // SAFETY: `iter` is null or live, because it was not destroyed, and no other thread changes it meanwhile.
    guard(false, || unsafe { iter.as_ref() }?.0.key().map(|_| true))
}

/// Copies the key and the value at the iterator, and their lengths. False if it is at no pair. Also false if
/// another program has written a value longer than `REMIXDB_MAX_BYTES`. Then nothing is copied.
///
/// # Safety
/// - `iter` is null, or came from `remixdb_iter_create` and was not destroyed.
/// - `key` and `value` are each null or have room for the bytes, at most `REMIXDB_MAX_BYTES`.
/// - `key_bytes` and `value_bytes` are each null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remixdb_iter_peek(
    iter: *mut Iter,
    key: *mut c_void,
    key_bytes: *mut u32,
    value: *mut c_void,
    value_bytes: *mut u32,
) -> bool {
    guard(false, || {
        // SAFETY: `iter` is null or live, because it was not destroyed, and no other thread changes it
        // meanwhile.
        let cursor = &unsafe { iter.as_ref() }?.0;
        let found_key = cursor.key()?;
        // The value is loaded only if it is requested.
        let found = if value.is_null() && value_bytes.is_null() { None } else { Some(cursor.value().ok()??) };
        let (key_length, length) = (fits(found_key)?, fits(found.as_deref().unwrap_or_default())?);
        // SAFETY: `key` and `value` are null or have room for `REMIXDB_MAX_BYTES` bytes, and both lengths are
        // not above that, checked in `fits`; `key_bytes` and `value_bytes` are null or writable.
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
    // SAFETY: `iter` is null or live, because it was not destroyed, and one thread at a time uses it, so no
    // other reference exists.
    guard(false, || unsafe { iter.as_mut() }?.0.next().ok());
}

/// Moves forward by `keys` keys.
///
/// # Safety
/// - `iter` is null, or came from `remixdb_iter_create` and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remixdb_iter_skip(iter: *mut Iter, keys: u32) {
    // SAFETY: `iter` is null or live, because it was not destroyed, and one thread at a time uses it, so no
    // other reference exists.
    guard(false, || unsafe { iter.as_mut() }?.0.skip(keys.into()).ok());
}

/// Releases what an iterator holds besides its pair, for a pause of any length. Its position stays.
///
/// # Safety
/// - `iter` is null, or came from `remixdb_iter_create` and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remixdb_iter_park(iter: *mut Iter) {
    guard(false, || {
        // SAFETY: `iter` is null or live, because it was not destroyed, and one thread at a time uses it, so
        // no other reference exists.
        unsafe { iter.as_mut() }?.0.park();
        Some(true)
    });
}

/// Destroys an iterator. Null is ignored.
///
/// # Safety
/// - `iter` is null, or came from `remixdb_iter_create` and was not destroyed, and no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remixdb_iter_destroy(iter: *mut Iter) {
    // SAFETY: `iter` is null or a box that `remixdb_iter_create` leaked and that is not used any more, by
    // this function's `# Safety`.
    unsafe { give_back(iter) };
}

/// Runs the body of a function called from C. Returns `failed` if the body returns nothing or panics; a panic
/// must not unwind into C.
fn guard<T: Copy>(failed: T, body: impl FnOnce() -> Option<T>) -> T {
    catch_unwind(AssertUnwindSafe(body)).ok().flatten().unwrap_or(failed)
}

/// The level at which programs that were written for RemixDB expect to write.
const DURABILITY: Durability = Durability::Memory;

/// A builder with these sizes, in MiB: of the page cache, and of two memtables.
fn sized(cache_mb: usize, mt_mb: usize) -> Builder {
    let bytes = |mib: usize| mib.max(1).saturating_mul(1 << 20);
    Db::builder().durability(DURABILITY).cache_bytes(bytes(cache_mb)).memtable_bytes(bytes(mt_mb) / 2)
}

/// Maximum size of the options of any version, in bytes. More is a mistake of the caller.
const OPTIONS_BYTES_MAX: usize = 4096;

/// The options of a program, which may have been compiled for another version of this library.
///
/// # Safety
/// - `options` is null, or has `length` readable bytes.
unsafe fn read(options: *const RemixdbOptions, length: usize) -> Result<RemixdbOptions, String> {
    let mut own = [0; size_of::<RemixdbOptions>()];
    if !options.is_null() {
        if length > OPTIONS_BYTES_MAX {
            return Err(format!("options_bytes is {length}; pass sizeof(struct remixdb_options)"));
        }
        // SAFETY: `options` is not null, checked above; so it has `length` readable bytes, by this function's
        // `# Safety`.
        let given = unsafe { std::slice::from_raw_parts(options.cast::<u8>(), length) };
        let (known, later) = given.split_at(length.min(own.len()));
        if later.iter().any(|byte| *byte != 0) {
            return Err(format!(
                "the program sets an option that this library does not have: its options have {length} bytes, and those \
                 of this library {}; install a newer library, or compile the program with this one's remixdb.h",
                own.len()
            ));
        }
        own[..known.len()].copy_from_slice(known);
    }
    // SAFETY: all bytes are set, and the fields are numbers and a pointer, for which any bytes are valid.
    Ok(unsafe { std::mem::transmute::<[u8; size_of::<RemixdbOptions>()], RemixdbOptions>(own) })
}

/// The builder of these options.
///
/// # Safety
/// - `worker_cpus` is null, or has `worker_cpus_count` readable numbers.
unsafe fn builder(options: &RemixdbOptions) -> Result<Builder, String> {
    let or = |given: usize, default: usize| if given == 0 { default } else { given };
    let mut builder = sized(or(options.cache_mb, 256), or(options.mt_mb, 128));
    builder = match options.no_tags {
        0 => builder.tags(true),
        1 => builder.tags(false),
        other => return Err(format!("the option no_tags is {other}; it is 0 or 1")),
    };
    builder = match options.durability {
        0 => builder,
        REMIXDB_DURABILITY_MEMORY => builder.durability(Durability::Memory),
        REMIXDB_DURABILITY_BUFFERED => builder.durability(Durability::Buffered),
        REMIXDB_DURABILITY_SYNC => builder.durability(Durability::Sync),
        other => return Err(format!("the option durability is {other}; it is one of REMIXDB_DURABILITY_*")),
    };
    builder = builder.large_values(or(options.large_values, forrest::DEFAULT_LARGE_VALUES));
    if options.workers > 0 {
        builder = builder.workers(options.workers as usize);
    }
    match (options.worker_cpus.is_null(), options.worker_cpus_count) {
        (_, 0) => Ok(builder),
        (true, count) => Err(format!("the option worker_cpus is null, and worker_cpus_count is {count}")),
        (false, count) => {
            // SAFETY: `worker_cpus` is not null, checked on this line; so it has this many numbers, by this function's
            // `# Safety`.
            let cpus = unsafe { std::slice::from_raw_parts(options.worker_cpus, count as usize) };
            let cpus: Vec<usize> = cpus.iter().map(|cpu| *cpu as usize).collect();
            Ok(builder.worker_cpus(&cpus))
        }
    }
}

/// Opens a store.
///
/// # Safety
/// - `dir` is null, or ends with a zero byte.
unsafe fn open(dir: *const c_char, builder: Builder) -> Option<*mut Xdb> {
    if dir.is_null() {
        eprintln!("remixdb: the directory is null");
        return None;
    }
    // SAFETY: `dir` is not null, checked above; so it is zero-terminated, by this function's `# Safety`.
    let dir = unsafe { CStr::from_ptr(dir) };
    let Ok(dir) = dir.to_str() else {
        eprintln!("remixdb: the directory \"{}\" is not UTF-8", dir.to_bytes().escape_ascii());
        return None;
    };
    // A path that looks like the URL of another home is a directory here.
    let path = if forrest::directory(dir).is_some() { dir.to_owned() } else { format!("./{dir}") };
    match builder.open(&path) {
        Ok(db) => Some(Box::into_raw(Box::new(Xdb(db)))),
        Err(error) => {
            eprintln!("remixdb: cannot open {path}: {error}");
            None
        }
    }
}

/// Drops an object that C owned.
///
/// # Safety
/// - `handle` is null, or came from `Box::into_raw` and is not used any more.
unsafe fn give_back<T>(handle: *mut T) {
    if !handle.is_null() {
        // SAFETY: `handle` is not null, checked above; so it came from `Box::into_raw`, and this is its only
        // drop.
        let handle = unsafe { Box::from_raw(handle) };
        guard(false, || {
            drop(handle);
            Some(true)
        });
    }
}

/// Bytes from C. `None` if they are null with a length above 0.
///
/// # Safety
/// - `start` is null, or has `length` bytes that are readable and unchanged for as long as the result is
///   used.
unsafe fn bytes<'a>(start: *const c_void, length: u32) -> Option<&'a [u8]> {
    if length == 0 {
        return Some(&[]);
    }
    // SAFETY: `start` is not null, checked on this line; so it has `length` readable bytes, by this
    // function's `# Safety`.
    (!start.is_null()).then(|| unsafe { std::slice::from_raw_parts(start.cast(), length as usize) })
}

/// The length of bytes, if it is not above `REMIXDB_MAX_BYTES`.
fn fits(bytes: &[u8]) -> Option<u32> {
    u32::try_from(bytes.len()).ok().filter(|length| *length <= REMIXDB_MAX_BYTES)
}

/// Copies bytes and their length to the caller's buffers.
///
/// # Safety
/// - `to` is null or has room for the bytes, and `to_length` is null or writable.
unsafe fn give(bytes: &[u8], length: u32, to: *mut c_void, to_length: *mut u32) {
    // SAFETY: both pointers are checked for null, and otherwise writable for these lengths; `bytes` is memory
    // of this library, so it does not overlap `to`.
    unsafe {
        if !to.is_null() {
            ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast(), bytes.len());
        }
        if !to_length.is_null() {
            to_length.write(length);
        }
    }
}

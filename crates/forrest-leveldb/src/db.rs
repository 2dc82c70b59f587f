//! Opening a store, reads and changes of it, snapshots.

use crate::argument::{handed, key, object, path, take_back, value};
use crate::batch::Batch;
use crate::failure::{Failure, quiet, report};
use crate::files::refuse_leveldb;
use crate::memory::given;
use crate::options::{Options, ReadOptions, WriteOptions};
use crate::order::{BYTEWISE, Order};
use crate::snapshot::Snapshot;
use forrest::{Durability, MAX_KEY_BYTES, View, WriteBatch};
use std::ffi::c_char;
use std::fmt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The keyspace and the key that have the name of the comparator, if it is not the order of bytes.
const KEYSPACE: &str = "leveldb";
const COMPARATOR: &str = "comparator";

/// An open store. Any number of threads may use it.
pub struct Db {
    pub(crate) store: forrest::Db,
    pub(crate) order: Arc<Order>,
    pub(crate) path: PathBuf,
    /// The number of this opening, which no other one of this process has.
    pub(crate) number: u64,
}

impl fmt::Debug for Db {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Db").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Db {
    fn open(options: &Options, path: &Path) -> Result<Db, Failure> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let name = match &options.comparator {
            Some(comparator) => comparator.name()?,
            None => BYTEWISE,
        };
        let builder = options.builder()?;
        // The parameter is that of the options. Without it, one that the name ends with would be taken.
        let url = format!("{}?durability=buffered", path.display());
        refuse_leveldb(path)?;
        let refused = |what: &str| Err(Failure::invalid(format_args!("{}: {what}", path.display())));
        match forrest::is_store(path)? {
            false if !options.create_if_missing => {
                return refused("does not exist (create_if_missing is false)");
            }
            true if options.error_if_exists => return refused("exists (error_if_exists is true)"),
            _ => {}
        }
        let store = builder.open(url)?;
        remember(&store, name, path)?;
        let comparator = options.comparator.as_ref().filter(|_| name != BYTEWISE).cloned();
        // ORDERING: only that no number comes twice.
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        Ok(Db { store, order: Arc::new(Order::new(comparator)), path: path.to_owned(), number })
    }

    /// Makes changes together, after their keys were checked.
    fn write(&self, batch: &WriteBatch, keys: &mut [&[u8]], options: &WriteOptions) -> Result<(), Failure> {
        let _others_wait = self.order.changes();
        self.order.check_all(&self.store, keys)?;
        let with = forrest::WriteOptions::new().durability(options.durability());
        Ok(self.store.write_with(batch, &with)?)
    }

    fn get(&self, options: &ReadOptions, key: &[u8]) -> Result<Option<forrest::Value>, Failure> {
        let snapshot = options.snapshot()?;
        let view: &View = match &snapshot {
            Some(snapshot) => snapshot.of(self.number)?,
            None => &self.store,
        };
        let value = view.get(key)?;
        if value.is_none() {
            self.order.check(view, key)?;
        }
        Ok(value)
    }
}

/// Demands that a store has the order of this name. A store without pairs takes it over.
fn remember(store: &forrest::Db, name: &str, path: &Path) -> Result<(), Failure> {
    let known = match store.keyspaces()?.iter().any(|keyspace| keyspace == KEYSPACE) {
        true => store.keyspace(KEYSPACE)?.get(COMPARATOR)?,
        false => None,
    };
    let known = known.map(|known| String::from_utf8_lossy(&known).into_owned());
    if known.is_none() && name != BYTEWISE && store.first()?.is_none() {
        let mut batch = WriteBatch::new();
        batch.on(&store.keyspace(KEYSPACE)?).set(COMPARATOR, name);
        let durably = forrest::WriteOptions::new().durability(Durability::Sync);
        return Ok(store.write_with(batch, &durably)?);
    }
    let known = known.as_deref().unwrap_or(BYTEWISE);
    if known == name {
        return Ok(());
    }
    Err(Failure::invalid(format_args!(
        "{}: the comparator is \"{name}\", but the database was made with \"{known}\"",
        path.display()
    )))
}

/// Opens the store in the directory `name`. Null if that fails; the error then says why: the store is missing, or is
/// there, and the options do not allow that; it is open already, here or in another process; it was made with another
/// comparator; the directory has files of LevelDB itself; files are damaged. A new directory has the mode 0700; its
/// parent must exist.
///
/// Close the store with `leveldb_close`.
///
/// # Safety
/// - `options` is null, or came from `leveldb_options_create` and was not destroyed.
/// - `name` is null, or ends with a zero byte.
/// - `errptr` is null, or points to null or to a string that came from `malloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_open(
    options: *const Options,
    name: *const c_char,
    errptr: *mut *mut c_char,
) -> *mut Db {
    let body = || {
        // SAFETY: `options` and `name` meet the requirements, which are those of this function.
        let (options, path) = unsafe { (object("options", options)?, path(name)?) };
        Db::open(options, &path).map(handed)
    };
    // SAFETY: `errptr` meets the requirement of `report`, which is that of this function.
    unsafe { report(errptr, ptr::null_mut(), body) }
}

/// Closes a store. Iterators that were not destroyed, and snapshots that were not released, keep it open. Null is
/// ignored.
///
/// # Safety
/// - `db` is null, or came from `leveldb_open` and was not closed, and no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_close(db: *mut Db) {
    // SAFETY: `db` is null or came from `handed`, and is not used any more, by this function's `# Safety`.
    unsafe { take_back(db) };
}

/// Sets the value of a key. A key has at most 65,535 bytes, a value less than 4 GiB; longer ones are an error.
///
/// # Safety
/// - `db` is null, or came from `leveldb_open` and was not closed.
/// - `options` is null, or came from `leveldb_writeoptions_create` and was not destroyed.
/// - `key` is null or has `keylen` readable bytes, and `val` is null or has `vallen` readable bytes.
/// - `errptr` is null, or points to null or to a string that came from `malloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_put(
    db: *mut Db,
    options: *const WriteOptions,
    key: *const c_char,
    keylen: usize,
    val: *const c_char,
    vallen: usize,
    errptr: *mut *mut c_char,
) {
    let body = || {
        // SAFETY: all pointers meet the requirements, which are those of this function.
        let (db, options) = unsafe { (object("database", db)?, object("write options", options)?) };
        // SAFETY: `key` and `val` are null or have these lengths, and the slices end with this call.
        let (key, value) = unsafe { (self::key(key, keylen)?, value(val, vallen)?) };
        let mut batch = WriteBatch::new();
        batch.set(key, value);
        db.write(&batch, &mut [key], options)
    };
    // SAFETY: `errptr` meets the requirement of `report`, which is that of this function.
    unsafe { report(errptr, (), body) }
}

/// Removes a key. No error if it is not there.
///
/// # Safety
/// - As `leveldb_put`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_delete(
    db: *mut Db,
    options: *const WriteOptions,
    key: *const c_char,
    keylen: usize,
    errptr: *mut *mut c_char,
) {
    let body = || {
        // SAFETY: all pointers meet the requirements, which are those of this function.
        let (db, options) = unsafe { (object("database", db)?, object("write options", options)?) };
        // SAFETY: `key` is null or has this length, and the slice ends with this call.
        let key = unsafe { self::key(key, keylen) }?;
        let mut batch = WriteBatch::new();
        batch.delete(key);
        db.write(&batch, &mut [key], options)
    };
    // SAFETY: `errptr` meets the requirement of `report`, which is that of this function.
    unsafe { report(errptr, (), body) }
}

/// Makes all changes of a batch at one instant, or none. The batch stays as it is.
///
/// # Safety
/// - `db` is null, or came from `leveldb_open` and was not closed.
/// - `options` is null, or came from `leveldb_writeoptions_create` and was not destroyed.
/// - `batch` is null, or came from `leveldb_writebatch_create` and was not destroyed, and nobody changes it meanwhile.
/// - `errptr` is null, or points to null or to a string that came from `malloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_write(
    db: *mut Db,
    options: *const WriteOptions,
    batch: *mut Batch,
    errptr: *mut *mut c_char,
) {
    let body = || {
        // SAFETY: all pointers meet the requirements, which are those of this function.
        let (db, options, batch) = unsafe {
            (object("database", db)?, object("write options", options)?, object("batch", batch.cast_const())?)
        };
        match &batch.failure {
            Some(failure) => Err(failure.clone()),
            None => db.write(&batch.ops, &mut batch.keys(), options),
        }
    };
    // SAFETY: `errptr` meets the requirement of `report`, which is that of this function.
    unsafe { report(errptr, (), body) }
}

/// The value of a key, and its length in `*vallen`. Null and 0 if the key is not there, or after an error. Free it with
/// `leveldb_free`.
///
/// # Safety
/// - `db` is null, or came from `leveldb_open` and was not closed.
/// - `options` is null, or came from `leveldb_readoptions_create` and was not destroyed.
/// - `key` is null or has `keylen` readable bytes.
/// - `vallen` is null or writable.
/// - `errptr` is null, or points to null or to a string that came from `malloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_get(
    db: *mut Db,
    options: *const ReadOptions,
    key: *const c_char,
    keylen: usize,
    vallen: *mut usize,
    errptr: *mut *mut c_char,
) -> *mut c_char {
    let body = || {
        // SAFETY: all pointers meet the requirements, which are those of this function.
        let (db, options) = unsafe { (object("database", db)?, object("read options", options)?) };
        if !key.is_null() && keylen > MAX_KEY_BYTES {
            // No key is that long.
            return Ok(None);
        }
        // SAFETY: `key` is null or has this length, and the slice ends with this call.
        db.get(options, unsafe { self::key(key, keylen) }?)
    };
    // SAFETY: `errptr` meets the requirement of `report`, which is that of this function.
    let value = unsafe { report(errptr, None, body) };
    // SAFETY: `vallen` is null or writable, by this function's `# Safety`.
    if let Some(length) = unsafe { vallen.as_mut() } {
        *length = value.as_ref().map_or(0, |value| value.len());
    }
    value.map_or(ptr::null_mut(), |value| given(&value).cast())
}

/// Takes a snapshot: one state of the store, to be read by `leveldb_readoptions_set_snapshot`. Release it with
/// `leveldb_release_snapshot`. Null if that fails, and for null.
///
/// # Safety
/// - `db` is null, or came from `leveldb_open` and was not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_create_snapshot(db: *mut Db) -> *const Snapshot {
    quiet(ptr::null(), || {
        // SAFETY: `db` is null or live, by this function's `# Safety`.
        let db = unsafe { db.as_ref() }?;
        let state = db.store.snapshot().ok()?;
        Some(Arc::into_raw(Arc::new(Snapshot { of: db.number, state })))
    })
}

/// Releases a snapshot. `db` is not used. Null is ignored.
///
/// # Safety
/// - `snapshot` is null, or came from `leveldb_create_snapshot` and was not released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_release_snapshot(db: *mut Db, snapshot: *const Snapshot) {
    let _not_used = db;
    if !snapshot.is_null() {
        // SAFETY: `snapshot` is not null, checked above, so it came from `Arc::into_raw`, and its reference is given
        // back only here.
        let snapshot = unsafe { Arc::from_raw(snapshot) };
        quiet((), || {
            drop(snapshot);
            Some(())
        });
    }
}

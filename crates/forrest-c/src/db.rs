//! Handles to stores: opening, keyspaces, snapshots, closing.

use crate::argument::{Place, key, text};
use crate::code::{FORREST_NOT_FOUND, FORREST_OK};
use crate::failure::{Failure, guard};
use crate::handle::{LANES, Shared, Table};
use crate::options::{self, Options};
use crate::value::hand_over_list;
use forrest_rust::{ErrorKind, Keyspace, Snapshot, View};
use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::Arc;

/// An open store, one of its keyspaces, or a snapshot of one. Many threads may use a handle at once.
///
/// The handle from `forrest_open` reads and changes the keyspace "default". `forrest_keyspace` makes a handle
/// to another keyspace, and `forrest_snapshot` a read-only handle to the current state. Close each with
/// `forrest_close`, in any order.
#[derive(Debug, Clone)]
pub struct Db {
    view: View,
    state: DbState,
}

#[derive(Debug, Clone)]
enum DbState {
    Newest(forrest_rust::Db, Keyspace),
    /// And the name of the keyspace.
    Past(Snapshot, Arc<str>),
}

static STORES: Table<Db, LANES> = Table::new("store", 1);

impl Db {
    /// The store of a handle.
    pub(crate) fn of(handle: *const Db) -> Result<Shared<Db>, Failure> {
        STORES.shared(handle)
    }

    /// The view for reads.
    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    /// The snapshot. Fails for a store.
    pub(crate) fn past(&self) -> Result<&Snapshot, Failure> {
        match &self.state {
            DbState::Past(snapshot, _) => Ok(snapshot),
            DbState::Newest(..) => Err(Failure::invalid("the handle is no snapshot")),
        }
    }

    /// A blob of the keyspace.
    pub(crate) fn blob(&self, key: &[u8]) -> Result<Option<forrest_rust::Blob>, Failure> {
        Ok(match &self.state {
            DbState::Newest(store, keyspace) => store.snapshot()?.blob(keyspace.name(), key)?,
            DbState::Past(snapshot, name) => snapshot.blob(name, key)?,
        })
    }

    /// The store and the keyspace, for changes. Fails for a snapshot.
    pub(crate) fn newest(&self) -> Result<(&forrest_rust::Db, &Keyspace), Failure> {
        match &self.state {
            DbState::Newest(store, keyspace) => Ok((store, keyspace)),
            DbState::Past(..) => Err(Failure::invalid("the handle is a snapshot, which is read-only")),
        }
    }

    fn new(store: forrest_rust::Db, keyspace: Keyspace) -> Db {
        Db { view: View::clone(&keyspace), state: DbState::Newest(store, keyspace) }
    }

    fn hold(self) -> Result<*mut Db, Failure> {
        STORES.insert(std::array::from_fn(|_| self.clone()))
    }
}

/// Opens what is stored under a key, to be read in pieces: writes a handle to `*place`, and the number of its bytes,
/// which `find` returns too, to `*length`, unless that is null.
///
/// # Safety
/// - `key` is null or has `key_bytes` readable bytes.
/// - `place` is null or writable, and `length` is null or writable.
pub(crate) unsafe fn open_under_key<T: Send + Sync>(
    table: &'static Table<T, 1>,
    db: *const Db,
    key: *const c_void,
    key_bytes: usize,
    place: *mut *mut T,
    length: *mut u64,
    find: impl FnOnce(&Db, &[u8]) -> Result<Option<(u64, T)>, Failure>,
) -> Result<i32, Failure> {
    // SAFETY: `place` and `length` are null or writable, and `key` is null or has `key_bytes` readable bytes, as the
    // Safety section demands.
    let (mut place, length, key) = unsafe {
        let place = Place::of(table.what(), place, ptr::null_mut())?;
        (place, Place::perhaps(length, 0), self::key(key, key_bytes)?)
    };
    let Some((bytes, found)) = find(&*Db::of(db)?, key)? else { return Ok(FORREST_NOT_FOUND) };
    place.put(table.insert([found])?);
    if let Some(mut length) = length {
        length.put(bytes);
    }
    Ok(FORREST_OK)
}

/// Opens a store. The URL, in UTF-8, selects the home:
///
/// - "memory:" is a new, empty store that lives as long as its handles.
/// - A path is a store on disk, in the directory of that name, created if missing.
/// - "llds:NAME" is a store in kernel memory, created if missing. All processes of this user that open it share
///   it. "llds:UID/NAME" is one of the user with that number, and "llds:shared/NAME" one of the first user who
///   took the name. It needs the kernel module.
/// - "llds-user:NAME" is the module's engine in this process, if it is compiled into the library.
///
/// `FORREST_INVALID_ARGUMENT` if `url` names no home; `FORREST_UNSUPPORTED` if its home is not compiled into
/// the library; `FORREST_BUSY` if a store on disk is already open, in this process or another;
/// `FORREST_CORRUPT` if it is damaged; `FORREST_OUT_OF_SPACE`; `FORREST_IO`.
///
/// # Safety
/// - `url` is null or ends with a zero byte.
/// - `db` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_open(url: *const c_char, db: *mut *mut Db) -> i32 {
    // SAFETY: `url` and `db` meet the requirements of `open`, which are those of this function's Safety
    // section.
    guard(|| unsafe { open(url, db, |url| Ok(forrest_rust::Db::open(url)?)) })
}

/// Opens a store with options. The options may be changed or destroyed afterwards.
///
/// `FORREST_INVALID_ARGUMENT` also if an option is outside its limits, or contradicts another one; otherwise
/// as `forrest_open`.
///
/// # Safety
/// - `url` is null or ends with a zero byte.
/// - `db` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_open_with(
    url: *const c_char,
    options: *const Options,
    db: *mut *mut Db,
) -> i32 {
    // SAFETY: `url` and `db` meet the requirements of `open`, which are those of this function's Safety
    // section.
    guard(|| unsafe { open(url, db, |url| Options::of(options)?.open(url)) })
}

/// Opens a store with the function `how`.
///
/// # Safety
/// - As [`forrest_open`].
unsafe fn open(
    url: *const c_char,
    db: *mut *mut Db,
    how: impl FnOnce(&str) -> Result<forrest_rust::Db, Failure>,
) -> Result<i32, Failure> {
    // SAFETY: `url` is null or ends with a zero byte, and `db` is null or writable, as the Safety section
    // demands.
    let (mut db, url) = unsafe { (Place::of("store", db, ptr::null_mut())?, text("URL", url)?) };
    let store = how(url)?;
    let keyspace = Keyspace::clone(&store);
    db.put(Db::new(store, keyspace).hold()?);
    Ok(FORREST_OK)
}

/// Makes a handle to a keyspace of a store, and creates the keyspace if it is missing. A name has 1 to 255
/// bytes of UTF-8. If `db` is a snapshot, the handle reads the keyspace in that snapshot; it is empty if it
/// did not exist then.
///
/// `FORREST_LIMIT` if the name is too long, or the store already has 4,096 keyspaces;
/// `FORREST_INVALID_ARGUMENT` if the name is empty; `FORREST_UNSUPPORTED` in the kernel, which only has the
/// keyspace "default"; `FORREST_OUT_OF_SPACE`; `FORREST_IO`.
///
/// # Safety
/// - `name` is null or ends with a zero byte.
/// - `keyspace` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_keyspace(db: *mut Db, name: *const c_char, keyspace: *mut *mut Db) -> i32 {
    guard(|| {
        // SAFETY: `name` is null or ends with a zero byte, and `keyspace` is null or writable, as the Safety
        // section demands.
        let (mut keyspace, name) =
            unsafe { (Place::of("keyspace", keyspace, ptr::null_mut())?, text("name", name)?) };
        let found = match &Db::of(db)?.state {
            DbState::Newest(store, _) => Db::new(store.clone(), store.keyspace(name)?),
            DbState::Past(snapshot, _) => {
                let view = snapshot.keyspace(name)?;
                Db { view, state: DbState::Past(snapshot.clone(), name.into()) }
            }
        };
        keyspace.put(found.hold()?);
        Ok(FORREST_OK)
    })
}

/// Lists the names of all keyspaces of the store, sorted, each ending with a zero byte. "default" is always
/// among them. List and names are one block of memory; free it with one call of `forrest_free`.
///
/// `FORREST_OUT_OF_SPACE`; `FORREST_IO`; `FORREST_UNSUPPORTED` if a keyspace has a zero byte in its name,
/// which a program in another language can create.
///
/// # Safety
/// - `names` and `count` are each null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_keyspaces(
    db: *const Db,
    names: *mut *mut *mut c_char,
    count: *mut usize,
) -> i32 {
    guard(|| {
        // SAFETY: `names` and `count` are null or writable, as the Safety section demands.
        let (mut names, mut count) =
            unsafe { (Place::of("names", names, ptr::null_mut())?, Place::of("count", count, 0)?) };
        let found = match &Db::of(db)?.state {
            DbState::Newest(store, _) => store.keyspaces()?,
            DbState::Past(snapshot, _) => snapshot.keyspaces()?,
        };
        if let Some(name) = found.iter().find(|name| name.contains('\0')) {
            let name = name.escape_debug();
            let message =
                format_args!("the keyspace name \"{name}\" has a zero byte, which C cannot represent");
            return Err(Failure::new(ErrorKind::Unsupported, message));
        }
        names.put(hand_over_list(&found)?);
        count.put(found.len());
        Ok(FORREST_OK)
    })
}

/// Removes a keyspace with all its pairs. Handles to it fail with `FORREST_INVALID_ARGUMENT` from then on,
/// even if a new keyspace gets the same name. Snapshots still have it.
///
/// `FORREST_NOT_FOUND` if there is no keyspace of that name; `FORREST_INVALID_ARGUMENT` for "default", which
/// cannot be removed, and if `db` is a snapshot; `FORREST_IO`; `FORREST_STOPPED`.
///
/// # Safety
/// - `name` is null or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_drop_keyspace(db: *mut Db, name: *const c_char) -> i32 {
    guard(|| {
        // SAFETY: `name` is null or ends with a zero byte, as the Safety section demands.
        let name = unsafe { text("name", name) }?;
        let dropped = Db::of(db)?.newest()?.0.drop_keyspace(name)?;
        Ok(if dropped { FORREST_OK } else { FORREST_NOT_FOUND })
    })
}

/// Chooses how the tables that the keyspace of `db` gets from now on are compressed: one of
/// `FORREST_COMPRESSION_NONE` to `FORREST_COMPRESSION_ZSTD`. Tables that are there stay as they are until they are
/// merged. The store remembers the choice, which is durable when the call returns.
///
/// `FORREST_UNSUPPORTED` if the home has no `FORREST_CAN_COMPRESS`, if this build of the library does not have that
/// compression, or if the store is open for reading only; `FORREST_INVALID_ARGUMENT` if `db` is a snapshot;
/// `FORREST_IO`; `FORREST_OUT_OF_SPACE`; `FORREST_STOPPED`.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_set_compression(db: *mut Db, compression: u64) -> i32 {
    guard(|| {
        let compression = options::compression(compression)?;
        Db::of(db)?.newest()?.1.set_compression(compression)?;
        Ok(FORREST_OK)
    })
}

/// Takes a snapshot of the whole store. The handle reads the keyspace of `db` in it; `forrest_keyspace` makes
/// handles to the other keyspaces. Nothing is copied; while the handle is open, the store keeps the values
/// that are replaced later.
///
/// `FORREST_UNSUPPORTED` in the kernel; `FORREST_INVALID_ARGUMENT` if `db` is a snapshot.
///
/// # Safety
/// - `snapshot` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_snapshot(db: *const Db, snapshot: *mut *mut Db) -> i32 {
    guard(|| {
        // SAFETY: `snapshot` is null or writable, as the Safety section demands.
        let mut snapshot = unsafe { Place::of("snapshot", snapshot, ptr::null_mut()) }?;
        let db = Db::of(db)?;
        let (store, keyspace) = db.newest()?;
        let taken = store.snapshot()?;
        let view = taken.keyspace(keyspace.name())?;
        snapshot.put(Db { view, state: DbState::Past(taken, keyspace.name().into()) }.hold()?);
        Ok(FORREST_OK)
    })
}

/// Closes a handle to a store, a keyspace or a snapshot. It waits for calls of other threads that are using
/// the handle. The store itself is closed with the last of its handles, iterators and transactions. A store
/// on disk keeps its data and can be opened again. Null is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_close(db: *mut Db) -> i32 {
    guard(|| STORES.remove(db).map(|()| FORREST_OK))
}

//! Handles to stores: opening, keyspaces, snapshots, closing.

use crate::argument::{Place, text};
use crate::code::{FORREST_NOT_FOUND, FORREST_OK};
use crate::failure::{Failure, guard};
use crate::handle::{LANES, Shared, Table};
use crate::options::Options;
use crate::value::hand_over_list;
use forrest_rust::{ErrorKind, Keyspace, Snapshot, View};
use std::ffi::c_char;
use std::ptr;

/// An open store, one of its keyspaces, or a past state of one. Many threads may use it at once.
///
/// What is read and changed by the handle that `forrest_open` makes is the keyspace "default". `forrest_keyspace` makes
/// a handle to another one, and `forrest_snapshot` one to what there is now, which can be read only. All of them are
/// closed by `forrest_close`, in any order.
#[derive(Debug, Clone)]
pub struct Db {
    view: View,
    state: State,
}

#[derive(Debug, Clone)]
enum State {
    Newest(forrest_rust::Db, Keyspace),
    Past(Snapshot),
}

static STORES: Table<Db, LANES> = Table::new("store", 1);

impl Db {
    /// What C has a handle to.
    pub(crate) fn of(handle: *const Db) -> Result<Shared<Db>, Failure> {
        STORES.shared(handle)
    }

    /// What can be read.
    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    /// The store and the keyspace, to be changed.
    pub(crate) fn newest(&self) -> Result<(&forrest_rust::Db, &Keyspace), Failure> {
        match &self.state {
            State::Newest(store, keyspace) => Ok((store, keyspace)),
            State::Past(_) => Err(Failure::invalid("the handle is a snapshot, which can be read only")),
        }
    }

    fn new(store: forrest_rust::Db, keyspace: Keyspace) -> Db {
        Db { view: View::clone(&keyspace), state: State::Newest(store, keyspace) }
    }

    fn hold(self) -> Result<*mut Db, Failure> {
        STORES.insert(std::array::from_fn(|_| self.clone()))
    }
}

/// Opens a store. The URL, in UTF-8, is as for the command `forrest`: "memory:" is a new, empty store that lives as
/// long as its handles; a path is a store on disk, in a directory of its own, which is made if there is none;
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
    // SAFETY: the caller's promises.
    guard(|| unsafe { open(url, db, |url| Ok(forrest_rust::Db::open(url)?)) })
}

/// Opens a store with options, which may be changed or destroyed afterwards.
///
/// `FORREST_INVALID_ARGUMENT` also if an option is out of its limits, or is not for what others say; otherwise as
/// `forrest_open`.
///
/// # Safety
/// - `url` is null, or ends with a zero byte.
/// - `db` is null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_open_with(
    url: *const c_char,
    options: *const Options,
    db: *mut *mut Db,
) -> i32 {
    // SAFETY: the caller's promises.
    guard(|| unsafe { open(url, db, |url| Options::of(options)?.open(url)) })
}

/// Opens a store by `how`.
///
/// # Safety
/// - As [`forrest_open`].
unsafe fn open(
    url: *const c_char,
    db: *mut *mut Db,
    how: impl FnOnce(&str) -> Result<forrest_rust::Db, Failure>,
) -> Result<i32, Failure> {
    // SAFETY: the caller's promises.
    let (mut db, url) = unsafe { (Place::of("store", db, ptr::null_mut())?, text("URL", url)?) };
    let store = how(url)?;
    let keyspace = Keyspace::clone(&store);
    db.put(Db::new(store, keyspace).hold()?);
    Ok(FORREST_OK)
}

/// Makes a handle to a keyspace of a store, and the keyspace, if there is none of that name: 1 to 255 bytes of UTF-8.
/// With a snapshot it is that keyspace's past state, and empty if there was none.
///
/// `FORREST_LIMIT` if the name is too long or there are 4,096 keyspaces, `FORREST_INVALID_ARGUMENT` if it is empty,
/// `FORREST_UNSUPPORTED` in the kernel, which has the keyspace "default" only; `FORREST_OUT_OF_SPACE`, `FORREST_IO`.
///
/// # Safety
/// - `name` is null, or ends with a zero byte.
/// - `keyspace` is null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_keyspace(db: *mut Db, name: *const c_char, keyspace: *mut *mut Db) -> i32 {
    guard(|| {
        // SAFETY: the caller's promises.
        let (mut keyspace, name) =
            unsafe { (Place::of("keyspace", keyspace, ptr::null_mut())?, text("name", name)?) };
        let found = match &Db::of(db)?.state {
            State::Newest(store, _) => Db::new(store.clone(), store.keyspace(name)?),
            State::Past(snapshot) => {
                Db { view: snapshot.keyspace(name)?, state: State::Past(snapshot.clone()) }
            }
        };
        keyspace.put(found.hold()?);
        Ok(FORREST_OK)
    })
}

/// The names of all keyspaces of the store, sorted, each ending with a zero byte; "default" is always among them. They
/// are in one piece of memory with the list, to be given to `forrest_free` once.
///
/// `FORREST_OUT_OF_SPACE`, `FORREST_IO`; `FORREST_UNSUPPORTED` if a program that is not in C has made one with a zero
/// byte in its name.
///
/// # Safety
/// - `names` and `count` are each null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_keyspaces(
    db: *const Db,
    names: *mut *mut *mut c_char,
    count: *mut usize,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promises.
        let (mut names, mut count) =
            unsafe { (Place::of("names", names, ptr::null_mut())?, Place::of("count", count, 0)?) };
        let found = match &Db::of(db)?.state {
            State::Newest(store, _) => store.keyspaces()?,
            State::Past(snapshot) => snapshot.keyspaces()?,
        };
        if let Some(name) = found.iter().find(|name| name.contains('\0')) {
            let name = name.escape_debug();
            let message = format_args!("the name \"{name}\" has a zero byte, and C would not see its end");
            return Err(Failure::new(ErrorKind::Unsupported, message));
        }
        names.put(hand_over_list(&found)?);
        count.put(found.len());
        Ok(FORREST_OK)
    })
}

/// Removes a keyspace with all that it holds. Handles to it answer `FORREST_INVALID_ARGUMENT` from then on, also if one
/// of that name is made again; snapshots still have it.
///
/// `FORREST_NOT_FOUND` if there is none of that name; `FORREST_INVALID_ARGUMENT` for "default", which stays, and for a
/// snapshot; `FORREST_IO`, `FORREST_STOPPED`.
///
/// # Safety
/// - `name` is null, or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_drop_keyspace(db: *mut Db, name: *const c_char) -> i32 {
    guard(|| {
        // SAFETY: the caller's promise.
        let name = unsafe { text("name", name) }?;
        let dropped = Db::of(db)?.newest()?.0.drop_keyspace(name)?;
        Ok(if dropped { FORREST_OK } else { FORREST_NOT_FOUND })
    })
}

/// Makes a handle to the state of the whole store as it is now: that of the keyspace of `db` to begin with, and of the
/// others by `forrest_keyspace`. Nothing is copied; while the handle is open, what is replaced later is kept for it.
///
/// `FORREST_UNSUPPORTED` in the kernel, `FORREST_INVALID_ARGUMENT` if `db` is a snapshot.
///
/// # Safety
/// - `snapshot` is null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_snapshot(db: *const Db, snapshot: *mut *mut Db) -> i32 {
    guard(|| {
        // SAFETY: the caller's promise.
        let mut snapshot = unsafe { Place::of("snapshot", snapshot, ptr::null_mut()) }?;
        let db = Db::of(db)?;
        let (store, keyspace) = db.newest()?;
        let taken = store.snapshot()?;
        let view = taken.keyspace(keyspace.name())?;
        snapshot.put(Db { view, state: State::Past(taken) }.hold()?);
        Ok(FORREST_OK)
    })
}

/// Gives a handle back: of a store, a keyspace or a snapshot. It waits for calls of other threads that are using it.
/// The store is closed once all its handles, iterators and transactions are given back; what was written to a path is
/// there when it is opened again. Null is nothing to give back.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_close(db: *mut Db) -> i32 {
    guard(|| STORES.remove(db).map(|()| FORREST_OK))
}

//! The functions of llds's own library, which was called libforrest as well, for programs written for llds.
//! Such a program is compiled with `include/llds/forrest.h`, linked with this library, and runs over any
//! home. New programs use `include/forrest.h`, which has more: keys of any bytes, order, batches, error
//! messages.
//!
//! The hash of llds's library, `ft_MurmurHash64A`, is inline in that header, so all symbols of this library begin with
//! `forrest_`.
//!
//! A process has one store for each URL, even if `forrest_alloc` is called several times. The ancestor's
//! store was in the kernel, and each thread of a program opened its own handle to it. Keys are written as 8
//! bytes, big endian, so other programs that read the store see them in numeric order.

use crate::argument;
use crate::code::{FORREST_NOT_FOUND, FORREST_OK};
use crate::failure::{Failure, guard};
use crate::handle::Table;
use crate::value::hand_over;
use forrest_base::lock;
use forrest_machine::origin::Origin;
use std::env::{self, VarError};
use std::ffi::{c_int, c_long, c_void};
use std::io::Write;
use std::ptr;
use std::sync::{Arc, Mutex, Weak};

/// Success, as a `result`.
pub const SUCCESS: i32 = 0;

/// Maximum length of a value, in bytes, unless the program defines another. cbindgen_llds.toml defines it for C, where
/// it is a `long`.
///
/// cbindgen:ignore
pub const FORREST_MAX_VAL_LEN: c_long = 4096;

/// The limit of what a program may define as maximum.
const VALUE_BYTES_LIMIT: usize = c_int::MAX as usize - 1;

/// The environment variable that names the store, as for the command `forrest`.
const URL: &str = "FORREST_URL";
/// The default URL. Like the ancestor's store, it is in the kernel, for all programs.
const DEFAULT: &str = "llds:forrest";

/// A handle to the store. Many threads may use it at once.
#[derive(Debug)]
pub struct Tree {
    db: Arc<forrest_rust::Db>,
    /// Maximum length of a value, in bytes.
    value_bytes_max: usize,
}

static TREES: Table<Tree, 1> = Table::new("store", 7);

/// The result of a function. Free it, and `val`, with `free`: both come from `malloc`.
#[derive(Debug)]
#[repr(C)]
pub struct LldsEntry {
    /// The key of the call.
    pub key: u64,
    /// The value, followed by a zero byte, so that text is a C string. Null if there is none, and from all
    /// functions except `forrest_get_key`.
    pub val: *mut c_void,
    /// Length of the value in bytes, without that zero byte.
    pub vlen: c_int,
    /// `SUCCESS`, or an error code.
    pub result: c_int,
}

/// A store that this process has open.
struct Open {
    /// The process that opened it. A child of it is another process.
    process: Origin,
    url: String,
    store: Weak<forrest_rust::Db>,
}

/// INVARIANT: stores are opened and closed under this lock, so no store is opened while it is being closed.
static OPEN: Mutex<Vec<Open>> = Mutex::new(Vec::new());

/// Makes a handle to the store that the environment variable `FORREST_URL` names ("llds:forrest" if it is not
/// set). Opens the store, unless this function has already opened it in this process. If that fails, returns
/// null and writes a message to standard error. Close the handle with `forrest_cleanup`.
///
/// In a program, this is `forrest_alloc_max(FORREST_MAX_VAL_LEN)`.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_alloc() -> *mut Tree {
    forrest_alloc_max(FORREST_MAX_VAL_LEN)
}

/// As `forrest_alloc`. Through this handle, values have at most `max_val_len` bytes: 1 to 2147483646, and no more than
/// the home allows.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_alloc_max(max_val_len: c_long) -> *mut Tree {
    let mut tree = ptr::null_mut();
    guard(|| {
        // A value is followed by a zero byte, and its length is a C int.
        let value_bytes_max = match usize::try_from(max_val_len) {
            Ok(max @ 1..=VALUE_BYTES_LIMIT) => max,
            _ => {
                let message = format_args!("the maximum length of a value is {max_val_len}");
                return Err(told("FORREST_MAX_VAL_LEN", Failure::invalid(message)));
            }
        };
        let url = match env::var(URL) {
            Ok(url) => url,
            Err(VarError::NotPresent) => DEFAULT.to_owned(),
            Err(VarError::NotUnicode(_)) => {
                return Err(told(URL, Failure::invalid(format_args!("{URL} is not UTF-8"))));
            }
        };
        tree = share(&url, value_bytes_max).map_err(|failure| told(&url, failure))?;
        Ok(FORREST_OK)
    });
    tree
}

/// Makes a handle to a store. Opens the store if it is not open.
fn share(url: &str, value_bytes_max: usize) -> Result<*mut Tree, Failure> {
    let mut open = lock(&OPEN);
    open.retain(|one| one.process.is_here() && one.store.strong_count() > 0);
    let db = match open.iter().find(|one| one.url == url).and_then(|one| one.store.upgrade()) {
        Some(store) => store,
        None => {
            let store = Arc::new(forrest_rust::Db::open(url)?);
            open.push(Open { process: Origin::here(), url: url.to_owned(), store: Arc::downgrade(&store) });
            store
        }
    };
    TREES.insert([Tree { db, value_bytes_max }])
}

/// Writes the reason why a store cannot be opened to standard error, because `forrest_alloc` cannot return
/// it.
fn told(url: &str, failure: Failure) -> Failure {
    // If this fails as well, the null result still reports the error.
    let _told = writeln!(std::io::stderr(), "libforrest: cannot open {url}: {}", failure.message);
    failure
}

/// Sets the value of a key, whether or not the key exists. `result` is `SUCCESS`; -4 if the value has more bytes than
/// the handle's maximum (`FORREST_MAX_VAL_LEN`); -3 if it is null and `vlen` is not 0, or `vlen` is negative; -5 if the
/// home has no room for it; -1 or -8 if it cannot be written. Returns null if there is no memory for the result; then
/// nothing is changed.
///
/// # Safety
/// - `val` is null or has `vlen` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_insert_key(
    tree: *mut Tree,
    key: u64,
    val: *mut c_void,
    vlen: c_int,
) -> *mut LldsEntry {
    answer(key, |_| {
        let Ok(length) = usize::try_from(vlen) else {
            return Err(Failure::invalid(format_args!("the length of the value is {vlen}")));
        };
        let tree = TREES.shared(tree)?;
        if length > tree.value_bytes_max {
            return Err(Failure::limit("value", length, tree.value_bytes_max));
        }
        // SAFETY: `val` is null or has `length` readable bytes, as the Safety section demands.
        let value = unsafe { argument::value(val, length) }?;
        tree.db.set(key.to_be_bytes(), value)?;
        Ok(SUCCESS)
    })
}

/// Reads the value of a key. `val` and `vlen` are a copy of the value, and `result` is `SUCCESS`. `result` is
/// 1 if the key does not exist; -4 if another program has written a value with more bytes than the handle's
/// maximum (`FORREST_MAX_VAL_LEN`); -5 if there is no memory for the value; -1 or -2 if it cannot be read. Returns null
/// if there is no memory for the result.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_get_key(tree: *mut Tree, key: u64) -> *mut LldsEntry {
    answer(key, |entry| {
        let tree = TREES.shared(tree)?;
        let Some(value) = tree.db.get(key.to_be_bytes())? else {
            return Ok(FORREST_NOT_FOUND);
        };
        let (length, most) = (value.len(), tree.value_bytes_max);
        let vlen = c_int::try_from(length).ok().filter(|_| length <= most);
        entry.vlen = vlen.ok_or_else(|| Failure::limit("value", length, most))?;
        entry.val = hand_over(&[&value[..], &[0]].concat())?;
        Ok(SUCCESS)
    })
}

/// Removes a key. `result` is `SUCCESS`; 1 if the key does not exist; -1, -5 or -8 if the change cannot be
/// written. Returns null if there is no memory for the result; then nothing is changed.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_rm_key(tree: *mut Tree, key: u64) -> *mut LldsEntry {
    answer(key, |_| {
        let was_there = TREES.shared(tree)?.db.delete(key.to_be_bytes())?;
        Ok(if was_there { SUCCESS } else { FORREST_NOT_FOUND })
    })
}

/// Removes all keys of the store, including those of other programs. `key` of the result is 0; `result` is
/// `SUCCESS`, or -1, -5 or -8 if the change cannot be written. Returns null if there is no memory for the
/// result; then nothing is changed.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_rm_tree(tree: *mut Tree) -> *mut LldsEntry {
    answer(0, |_| {
        TREES.shared(tree)?.db.delete_range(..)?;
        Ok(SUCCESS)
    })
}

/// Closes a handle. The store is closed with its last handle, and keeps its data, unless it is in the memory
/// of the process. A handle that is null or already closed is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_cleanup(tree: *mut Tree) {
    guard(|| {
        // Refuse invalid handles without the lock: in a child of a fork it may be locked for ever.
        drop(TREES.shared(tree)?);
        let _open = lock(&OPEN);
        TREES.remove(tree).map(|()| FORREST_OK)
    });
}

/// Allocates a result and runs `body`, which fills it in and returns its code. If there is no memory, returns
/// null without running `body`.
fn answer(key: u64, body: impl FnOnce(&mut LldsEntry) -> Result<c_int, Failure>) -> *mut LldsEntry {
    // Allocate first: once `body` has changed the store, its result must be reported.
    let Ok(memory) = hand_over(&[0; size_of::<LldsEntry>()]) else { return ptr::null_mut() };
    let memory = memory.cast::<LldsEntry>();
    let mut entry = LldsEntry { key, val: ptr::null_mut(), vlen: 0, result: SUCCESS };
    entry.result = guard(|| body(&mut entry));
    // SAFETY: `memory` has `size_of::<LldsEntry>()` bytes, newly allocated, and `malloc` aligns them for `LldsEntry`.
    unsafe { memory.write(entry) };
    memory
}

//! The objects that options refer to: comparators, filter policies, caches, environments.
//!
//! A comparator is called (order.rs). The functions of a filter policy are never called but its destructor: Forrest has
//! tags for the keys that are not there. A cache is a number of bytes. An environment is nothing.

use crate::argument::{handed, object, take_back};
use crate::failure::{Failure, quiet};
use crate::memory::given;
use std::cmp::Ordering::{self, Equal, Greater, Less};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicBool};

/// Frees the state of an object, when the object is destroyed.
pub type Destructor = Option<unsafe extern "C" fn(state: *mut c_void)>;
/// Compares two keys: less than 0, 0 or more than 0.
pub type Compare = Option<
    unsafe extern "C" fn(
        state: *mut c_void,
        a: *const c_char,
        alen: usize,
        b: *const c_char,
        blen: usize,
    ) -> c_int,
>;
/// Returns a name, which ends with a zero byte.
pub type Name = Option<unsafe extern "C" fn(state: *mut c_void) -> *const c_char>;
/// Makes a filter of keys. It is never called.
pub type CreateFilter = Option<
    unsafe extern "C" fn(
        state: *mut c_void,
        key_array: *const *const c_char,
        key_length_array: *const usize,
        num_keys: c_int,
        filter_length: *mut usize,
    ) -> *mut c_char,
>;
/// Looks for a key in a filter. It is never called.
pub type KeyMayMatch = Option<
    unsafe extern "C" fn(
        state: *mut c_void,
        key: *const c_char,
        length: usize,
        filter: *const c_char,
        filter_length: usize,
    ) -> u8,
>;

/// An order of keys that a program defines.
// INVARIANT: while `is_alive`, `compare` may be called with `state` by any thread.
#[derive(Debug)]
pub struct Comparator {
    state: *mut c_void,
    destructor: Destructor,
    compare: Compare,
    /// `None` if the program gave no name.
    name: Option<String>,
    is_alive: AtomicBool,
}

// SAFETY: `state` is only passed to functions of the program, which LevelDB's interface demands to be callable by any
// thread. All else is plain data.
unsafe impl Send for Comparator {}
// SAFETY: as above.
unsafe impl Sync for Comparator {}

impl Comparator {
    /// Its name, if a store can be opened with it.
    pub(crate) fn name(&self) -> Result<&str, Failure> {
        if self.compare.is_none() {
            return Err(Failure::invalid("the comparator has no function that compares"));
        }
        self.name.as_deref().ok_or_else(|| Failure::invalid("the comparator has no name"))
    }

    /// Compares two keys.
    pub(crate) fn compare(&self, a: &[u8], b: &[u8]) -> Result<Ordering, Failure> {
        // ORDERING: pairs with the destruction. A program that destroys a comparator in use gets an error from then on.
        let is_alive = self.is_alive.load(atomic::Ordering::Acquire);
        let Some(compare) = self.compare.filter(|_| is_alive) else {
            return Err(Failure::invalid("the comparator was destroyed before the database was closed"));
        };
        // SAFETY: the comparator is alive, checked above, so `compare` may be called by any thread, by the invariant.
        // The pointers and lengths are those of slices.
        let found = unsafe { compare(self.state, a.as_ptr().cast(), a.len(), b.as_ptr().cast(), b.len()) };
        Ok(match found {
            0 => Equal,
            1.. => Greater,
            _ => Less,
        })
    }
}

/// A comparator that options refer to.
///
/// # Safety
/// - `comparator` is null, or came from `leveldb_comparator_create` and was not destroyed.
pub(crate) unsafe fn shared(comparator: *mut Comparator) -> Option<Arc<Comparator>> {
    if comparator.is_null() {
        return None;
    }
    // SAFETY: `comparator` is not null, checked above, so it came from `Arc::into_raw` and its reference was not given
    // back. `ManuallyDrop` leaves that to the program.
    let comparator = ManuallyDrop::new(unsafe { Arc::from_raw(comparator) });
    Some(Arc::clone(&comparator))
}

/// Makes a comparator from functions, which may be called by several threads at once.
///
/// Forrest orders keys by their bytes. A store opens with any comparator, and remembers its name: another name is
/// refused from then on. Each key that a call passes is compared with its neighbours in the store. If the comparator
/// orders them in another way than their bytes do, the call fails and changes nothing. So what works, works as the
/// comparator says.
///
/// Destroy it with `leveldb_comparator_destroy`, after the stores that use it are closed. `compare` and `name` must not
/// be null: otherwise no store opens with it.
///
/// # Safety
/// - `destructor`, `compare` and `name` are each null or functions of these types, which return normally. `compare` may
///   be called by any thread. The name ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_comparator_create(
    state: *mut c_void,
    destructor: Destructor,
    compare: Compare,
    name: Name,
) -> *mut Comparator {
    quiet(ptr::null_mut(), || {
        let name = name.and_then(|name| {
            // SAFETY: `name` is a function that may be called with `state`, by this function's `# Safety`.
            let name = unsafe { name(state) };
            // SAFETY: `name` is not null, checked on this line, so it ends with a zero byte.
            (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
        });
        let is_alive = AtomicBool::new(true);
        let comparator = Arc::new(Comparator { state, destructor, compare, name, is_alive });
        Some(Arc::into_raw(comparator).cast_mut())
    })
}

/// Calls the destructor of a comparator and frees it. Stores that are still open with it fail from then on. Null is
/// ignored.
///
/// # Safety
/// - `comparator` is null, or came from `leveldb_comparator_create` and was not destroyed, and no call on a store that
///   uses it is in progress.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_comparator_destroy(comparator: *mut Comparator) {
    if comparator.is_null() {
        return;
    }
    quiet((), || {
        // SAFETY: `comparator` is not null, checked above, so it came from `Arc::into_raw`, and its reference is given
        // back only here.
        let comparator = unsafe { Arc::from_raw(comparator) };
        // ORDERING: pairs with `compare`.
        comparator.is_alive.store(false, atomic::Ordering::Release);
        // SAFETY: no thread is in `compare`, and the destructor is called once, by this function's `# Safety`.
        unsafe { destruct(comparator.destructor, comparator.state) };
        Some(())
    });
}

/// Calls a destructor, if there is one.
///
/// # Safety
/// - `destructor` may be called with `state`, and was not called.
unsafe fn destruct(destructor: Destructor, state: *mut c_void) {
    if let Some(destructor) = destructor {
        // SAFETY: it may be called once, by this function's `# Safety`.
        unsafe { destructor(state) };
    }
}

/// A filter of keys for tables, which Forrest does not need.
#[derive(Debug)]
pub struct FilterPolicy {
    state: *mut c_void,
    destructor: Destructor,
}

/// Makes a filter policy from functions. Forrest calls none of them but `destructor`: its tables have a hash tag for
/// each key, for the same purpose.
///
/// # Safety
/// - `destructor` is null or a function of this type, which returns normally.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_filterpolicy_create(
    state: *mut c_void,
    destructor: Destructor,
    create_filter: CreateFilter,
    key_may_match: KeyMayMatch,
    name: Name,
) -> *mut FilterPolicy {
    let _never_called = (create_filter, key_may_match, name);
    handed(FilterPolicy { state, destructor })
}

/// Makes a filter policy, which has no effect: Forrest's tables have a hash tag for each key.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_filterpolicy_create_bloom(bits_per_key: c_int) -> *mut FilterPolicy {
    let _ignored = bits_per_key;
    handed(FilterPolicy { state: ptr::null_mut(), destructor: None })
}

/// Calls the destructor of a filter policy and frees it. Null is ignored.
///
/// # Safety
/// - `policy` is null, or came from one of the two functions that make one, and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_filterpolicy_destroy(policy: *mut FilterPolicy) {
    // SAFETY: `policy` is null or live, by this function's `# Safety`. The destructor is called once, because the
    // policy is not used any more.
    unsafe {
        if let Some(policy) = policy.as_ref() {
            destruct(policy.destructor, policy.state);
        }
        take_back(policy);
    }
}

/// A size for caches.
#[derive(Debug)]
pub struct Cache {
    pub(crate) capacity_bytes: usize,
}

/// Makes a cache of a size in bytes. Each store that is opened with it gets a cache of its own of this size: stores
/// share none.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_cache_create_lru(capacity: usize) -> *mut Cache {
    handed(Cache { capacity_bytes: capacity })
}

/// Frees a cache. Null is ignored.
///
/// # Safety
/// - `cache` is null, or came from `leveldb_cache_create_lru` and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_cache_destroy(cache: *mut Cache) {
    // SAFETY: `cache` is null or came from `handed`, and is not used any more, by this function's `# Safety`.
    unsafe { take_back(cache) };
}

/// The operating system.
#[derive(Debug)]
pub struct Env(());

/// Makes an environment, which stands for the operating system. There is no other one.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_create_default_env() -> *mut Env {
    handed(Env(()))
}

/// Frees an environment. Null is ignored.
///
/// # Safety
/// - `env` is null, or came from `leveldb_create_default_env` and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_env_destroy(env: *mut Env) {
    // SAFETY: `env` is null or came from `handed`, and is not used any more, by this function's `# Safety`.
    unsafe { take_back(env) };
}

/// The directory for tests: the one that the variable TEST_TMPDIR names, or one of this user below that for temporary
/// files. It is made if it is missing. Free the result with `leveldb_free`. Null if it cannot be made, and for null.
///
/// # Safety
/// - `env` is null, or came from `leveldb_create_default_env` and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_env_get_test_directory(env: *mut Env) -> *mut c_char {
    quiet(ptr::null_mut(), || {
        // SAFETY: `env` is null or live, by this function's `# Safety`.
        unsafe { object("environment", env) }.ok()?;
        let given_one = std::env::var_os("TEST_TMPDIR").filter(|path| !path.is_empty());
        // SAFETY: `geteuid` has no requirements.
        let own = || std::env::temp_dir().join(format!("leveldbtest-{}", unsafe { libc::geteuid() }));
        let directory = given_one.map_or_else(own, PathBuf::from);
        // If it is there already, or cannot be made, its user finds that out.
        let _ = std::fs::create_dir(&directory);
        directory.is_dir().then(|| {
            let text: Vec<u8> = directory.as_os_str().as_bytes().iter().copied().chain([0]).collect();
            given(&text).cast()
        })
    })
}

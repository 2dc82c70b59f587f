//! The functions that programs written for llds call: those of its own library, which was called libforrest as well.
//! They are here so that such a program is compiled with `include/llds/forrest.h`, linked with this library, and runs
//! over any home. New programs use `include/forrest.h`, which can do more: other keys, order, batches, errors with
//! words.
//!
//! A process has one store for each URL, however often it is allocated: the ancestor's was in the kernel, so that each
//! of a program's threads came to it by a handle of its own. Keys are written as 8 bytes, big endian, so that they sort
//! as numbers for whoever reads the store otherwise.

use crate::argument;
use crate::code::{FORREST_NOT_FOUND, FORREST_OK};
use crate::failure::{Failure, guard};
use crate::handle::Table;
use crate::value::hand_over;
use forrest_base::lock;
use forrest_machine::origin::Origin;
use std::env::{self, VarError};
use std::ffi::{c_int, c_uint, c_void};
use std::io::Write;
use std::ptr;
use std::sync::{Arc, Mutex, Weak};

/// It was done: a `result`.
pub const SUCCESS: i32 = 0;

/// Most bytes of a value; cbindgen_llds.toml has it for C, where it is a `long`.
///
/// cbindgen:ignore
pub const FORREST_MAX_VAL_LEN: usize = 4096;

/// The environment variable that names the store, as for the command `forrest`.
const URL: &str = "FORREST_URL";
/// The store where nothing names one: as the ancestor's, one in the kernel for all programs.
const DEFAULT: &str = "llds:forrest";

/// A way into the store. Any thread may use it, several at once as well.
#[derive(Debug)]
pub struct Tree(Arc<forrest_rust::Db>);

static TREES: Table<Tree, 1> = Table::new("store", 7);

/// What a function answers with. It came from `malloc`, and so did `val`: both are given to `free`.
#[derive(Debug)]
#[repr(C)]
pub struct Entry {
    /// The key that was asked for.
    pub key: u64,
    /// Its value, and behind it a zero byte, so that text is text; null of all functions but `forrest_get_key`, and
    /// where there is none.
    pub val: *mut c_void,
    /// Bytes of the value, without that zero byte.
    pub vlen: c_int,
    /// `SUCCESS`, or why not.
    pub result: c_int,
}

/// A store that this process has open.
struct Open {
    /// The process, of which a child of it is not one.
    process: Origin,
    url: String,
    store: Weak<forrest_rust::Db>,
}

/// INVARIANT: stores are opened and closed under this lock, so that one that is being closed is not opened.
static OPEN: Mutex<Vec<Open>> = Mutex::new(Vec::new());

/// Makes a way into the store that the environment variable `FORREST_URL` names ("llds:forrest" if it is not set), and
/// opens the store, if nobody in this process has it open by this function. Null, and why on standard error, if it
/// cannot be opened. To be given to `forrest_cleanup`.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_alloc() -> *mut Tree {
    let mut tree = ptr::null_mut();
    guard(|| {
        let url = match env::var(URL) {
            Ok(url) => url,
            Err(VarError::NotPresent) => DEFAULT.to_owned(),
            Err(VarError::NotUnicode(_)) => {
                return Err(told(URL, Failure::invalid(format_args!("{URL} is not UTF-8"))));
            }
        };
        tree = share(&url).map_err(|failure| told(&url, failure))?;
        Ok(FORREST_OK)
    });
    tree
}

/// Makes a handle to a store, which is opened if it is not open.
fn share(url: &str) -> Result<*mut Tree, Failure> {
    let mut open = lock(&OPEN);
    open.retain(|one| one.process.is_here() && one.store.strong_count() > 0);
    let store = match open.iter().find(|one| one.url == url).and_then(|one| one.store.upgrade()) {
        Some(store) => store,
        None => {
            let store = Arc::new(forrest_rust::Db::open(url)?);
            open.push(Open { process: Origin::here(), url: url.to_owned(), store: Arc::downgrade(&store) });
            store
        }
    };
    TREES.insert([Tree(store)])
}

/// Tells on standard error why a store cannot be opened, for the old functions have no place for it.
fn told(url: &str, failure: Failure) -> Failure {
    // Where it cannot be told, there is still the answer.
    let _told = writeln!(std::io::stderr(), "libforrest: cannot open {url}: {}", failure.message);
    failure
}

/// Maps a key to a value, whether it was there or not. `result` is `SUCCESS`; -4 if the value has more bytes than
/// `FORREST_MAX_VAL_LEN`; -3 if it is null and `vlen` is not 0, or `vlen` is negative; -5 if the home has no room for
/// it; -1 or -8 if it cannot be written. Null if there is no memory for the answer; then nothing is changed.
///
/// # Safety
/// - `val` has `vlen` bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_insert_key(
    tree: *mut Tree,
    key: u64,
    val: *mut c_void,
    vlen: c_int,
) -> *mut Entry {
    answer(key, |_| {
        let Ok(length) = usize::try_from(vlen) else {
            return Err(Failure::invalid(format_args!("the length of the value is {vlen}")));
        };
        if length > FORREST_MAX_VAL_LEN {
            return Err(Failure::limit("value", length, FORREST_MAX_VAL_LEN));
        }
        // SAFETY: the caller's promise.
        let value = unsafe { argument::value(val, length) }?;
        TREES.shared(tree)?.0.set(key.to_be_bytes(), value)?;
        Ok(SUCCESS)
    })
}

/// Finds a key: `val` and `vlen` are a copy of its value, and `result` is `SUCCESS`. 1 if it is not there; -4 if its
/// value, which another program has written, has more bytes than `FORREST_MAX_VAL_LEN`; -5 if there is no memory for
/// it; -1 or -2 if it cannot be read. Null if there is no memory for the answer.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_get_key(tree: *mut Tree, key: u64) -> *mut Entry {
    answer(key, |entry| {
        let Some(value) = TREES.shared(tree)?.0.get(key.to_be_bytes())? else {
            return Ok(FORREST_NOT_FOUND);
        };
        let length = value.len();
        let vlen = c_int::try_from(length).ok().filter(|_| length <= FORREST_MAX_VAL_LEN);
        entry.vlen = vlen.ok_or_else(|| Failure::limit("value", length, FORREST_MAX_VAL_LEN))?;
        entry.val = hand_over(&[&value[..], &[0]].concat())?;
        Ok(SUCCESS)
    })
}

/// Removes all keys of the store, of whichever program. `key` of the answer is 0; `result` is `SUCCESS`, or -1, -5
/// or -8 if it cannot be written. Null if there is no memory for the answer; then nothing is changed.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_rm_tree(tree: *mut Tree) -> *mut Entry {
    answer(0, |_| {
        TREES.shared(tree)?.0.delete_range(..)?;
        Ok(SUCCESS)
    })
}

/// Gives a handle back. The store is closed with the last one; what it held is there the next time, unless it is in the
/// memory of the process. What is null, or was given back, is nothing to give back.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_cleanup(tree: *mut Tree) {
    guard(|| {
        // What is no handle is refused without the lock, which may be held for ever in a child of a fork.
        drop(TREES.shared(tree)?);
        let _open = lock(&OPEN);
        TREES.remove(tree).map(|()| FORREST_OK)
    });
}

/// Makes an answer with what `body` puts into it and returns; null, and nothing done, if there is no memory.
fn answer(key: u64, body: impl FnOnce(&mut Entry) -> Result<c_int, Failure>) -> *mut Entry {
    // Before anything is done, so that what was done can be told.
    let Ok(memory) = hand_over(&[0; size_of::<Entry>()]) else { return ptr::null_mut() };
    let memory = memory.cast::<Entry>();
    let mut entry = Entry { key, val: ptr::null_mut(), vlen: 0, result: SUCCESS };
    entry.result = guard(|| body(&mut entry));
    // SAFETY: it has room for an entry, aligned as malloc does it, and nobody else knows of it.
    unsafe { memory.write(entry) };
    memory
}

/// The hash that programs make keys of texts with: MurmurHash64A, which Austin Appleby put into the public domain, of
/// `len` bytes. The same on every machine: words are little endian. 0 if `len` is negative, or `key` is null and `len`
/// is not 0.
///
/// # Safety
/// - `key` has `len` bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ft_MurmurHash64A(key: *const c_void, len: c_int, seed: c_uint) -> u64 {
    let key = match usize::try_from(len) {
        Ok(0) => &[],
        // SAFETY: the caller's promise.
        Ok(len) if !key.is_null() => unsafe { std::slice::from_raw_parts(key.cast(), len) },
        _ => return 0,
    };
    murmur(key, seed.into())
}

/// MurmurHash64A: eight bytes at a time are mixed and then into the hash, what is left over as one smaller number.
fn murmur(key: &[u8], seed: u64) -> u64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    const R: u32 = 47;
    let shifted = |x: u64| x ^ x >> R;
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    let (words, rest) = key.as_chunks::<8>();
    let mut hash = seed ^ (key.len() as u64).wrapping_mul(M);
    for word in words {
        hash ^= shifted(u64::from_le_bytes(*word).wrapping_mul(M)).wrapping_mul(M);
        hash = hash.wrapping_mul(M);
    }
    if !rest.is_empty() {
        hash = (hash ^ number(rest)).wrapping_mul(M);
    }
    shifted(shifted(hash).wrapping_mul(M))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verification code that SMHasher publishes for it: keys 0; 0 1; 0 1 2; ... of up to 255 bytes with falling
    /// seeds, and the hash of their hashes. Each from an address of its own alignment.
    #[test]
    fn the_hash_is_the_published_one() {
        let hashes: Vec<u8> = (0..256_usize)
            .flat_map(|len| {
                let bytes: Vec<u8> = std::iter::repeat_n(0, len % 8).chain(0..=254).collect();
                let key = bytes[len % 8..].as_ptr().cast();
                // SAFETY: there are 255 bytes behind the first ones.
                unsafe { ft_MurmurHash64A(key, len as c_int, 256 - len as c_uint) }.to_le_bytes()
            })
            .collect();
        assert_eq!(murmur(&hashes, 0) as u32, 0x1f0d_3804);
    }

    #[test]
    fn what_is_no_key_is_not_read() {
        // SAFETY: no byte is promised where the pointer is null, or the length not above 0.
        unsafe {
            assert_eq!(ft_MurmurHash64A(ptr::null(), 1, 7), 0);
            assert_eq!(ft_MurmurHash64A(ptr::dangling(), -1, 7), 0);
            assert_eq!(ft_MurmurHash64A(ptr::null(), 0, 7), murmur(b"", 7));
        }
    }
}

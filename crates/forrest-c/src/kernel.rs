//! The stores in the kernel: which there are, and how to be rid of one.

use crate::argument::{Place, text};
use crate::code::{FORREST_NOT_FOUND, FORREST_OK};
use crate::failure::guard;
use crate::value::hand_over_list;
use std::ffi::c_char;
use std::ptr;

/// The names of the stores in the kernel ("llds:NAME") that this user may read or write, or owns, sorted, each ending
/// with a zero byte. They are in one piece of memory with the list, to be given to `forrest_free` once. They may be any
/// bytes; what comes or goes meanwhile may be missing.
///
/// `FORREST_IO` if the module is not loaded or this user may not use it, and the message tells what to do;
/// `FORREST_UNSUPPORTED` if it is another version; `FORREST_OUT_OF_SPACE`.
///
/// # Safety
/// - `names` and `count` are each null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_llds_list(names: *mut *mut *mut c_char, count: *mut usize) -> i32 {
    guard(|| {
        // SAFETY: the caller's promises.
        let (mut names, mut count) =
            unsafe { (Place::of("names", names, ptr::null_mut())?, Place::of("count", count, 0)?) };
        let found: Vec<Vec<u8>> = forrest_rust::llds::list()?.into_iter().map(|store| store.name).collect();
        names.put(hand_over_list(&found)?);
        count.put(found.len());
        Ok(FORREST_OK)
    })
}

/// Takes the name of a store in the kernel away, at once: the next who opens it by that name makes another. Who has it
/// open goes on with it; its memory is given back when the last of them has closed it.
///
/// `FORREST_NOT_FOUND` if there is none of that name; errors as of `forrest_llds_list`, and `FORREST_IO` as well if it
/// is another user's.
///
/// # Safety
/// - `name` is null, or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_llds_destroy(name: *const c_char) -> i32 {
    guard(|| {
        // SAFETY: the caller's promise.
        let name = unsafe { text("name", name) }?;
        Ok(if forrest_rust::llds::destroy(name)? { FORREST_OK } else { FORREST_NOT_FOUND })
    })
}

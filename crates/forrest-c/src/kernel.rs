//! Administration of the stores in the kernel: list and destroy.

use crate::argument::{Place, text};
use crate::code::{FORREST_NOT_FOUND, FORREST_OK};
use crate::failure::guard;
use crate::value::hand_over_list;
use std::ffi::c_char;
use std::ptr;

/// Lists the names of the stores in the kernel ("llds:NAME") that this user owns, or may read or write. The
/// names are sorted, and each ends with a zero byte; they may be any other bytes. List and names are one
/// block of memory; free it with one call of `forrest_free`. A store that is created or destroyed meanwhile
/// may be missing.
///
/// `FORREST_IO` if the module is not loaded or this user may not use it; the message says what to do.
/// `FORREST_UNSUPPORTED` if the module has another version; `FORREST_OUT_OF_SPACE`.
///
/// # Safety
/// - `names` and `count` are each null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_llds_list(names: *mut *mut *mut c_char, count: *mut usize) -> i32 {
    guard(|| {
        // SAFETY: `names` and `count` are null or writable, as the Safety section demands.
        let (mut names, mut count) =
            unsafe { (Place::of("names", names, ptr::null_mut())?, Place::of("count", count, 0)?) };
        let found: Vec<Vec<u8>> = forrest_rust::llds::list()?.into_iter().map(|store| store.name).collect();
        names.put(hand_over_list(&found)?);
        count.put(found.len());
        Ok(FORREST_OK)
    })
}

/// Destroys a store in the kernel. Its name is free at once: opening that name creates a new store. Programs
/// that have the old store open may still use it; its memory is freed when the last of them closes it.
///
/// `FORREST_NOT_FOUND` if there is no store of that name. Errors as of `forrest_llds_list`, and `FORREST_IO`
/// also if the store belongs to another user.
///
/// # Safety
/// - `name` is null or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_llds_destroy(name: *const c_char) -> i32 {
    guard(|| {
        // SAFETY: `name` is null or ends with a zero byte, as the Safety section demands.
        let name = unsafe { text("name", name) }?;
        Ok(if forrest_rust::llds::destroy(name)? { FORREST_OK } else { FORREST_NOT_FOUND })
    })
}

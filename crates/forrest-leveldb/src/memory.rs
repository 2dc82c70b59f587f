//! Memory for C, of `malloc`, because programs free it by `free`.

use std::ffi::c_void;
use std::ptr;

/// A copy of bytes in memory of `malloc`, never null.
pub(crate) fn given(bytes: &[u8]) -> *mut c_void {
    // SAFETY: `malloc` takes any length.
    let memory = unsafe { libc::malloc(bytes.len().max(1)) };
    if memory.is_null() {
        // As LevelDB and Rust do when memory runs out: there is no way to report it.
        std::process::abort();
    }
    // SAFETY: `memory` is not null, checked above, so it has at least `bytes.len()` bytes, and is new, so it overlaps
    // nothing.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), memory.cast(), bytes.len()) };
    memory
}

/// Frees memory that a function of this library returned: a value, an error, a property or a path. The same as `free`
/// of the C library. Null is ignored.
///
/// # Safety
/// - `ptr` is null, or came from this library as memory to be freed, and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_free(ptr: *mut c_void) {
    // SAFETY: `ptr` is null or came from `malloc` and was not freed, by this function's `# Safety`.
    unsafe { libc::free(ptr) };
}

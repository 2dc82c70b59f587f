//! Codes that functions answer with, their words, and the versions of the library.

use std::ffi::{CStr, c_char};

/// Done.
pub const FORREST_OK: i32 = 0;
/// There is no such key, or no pair where an iterator went. Not an error.
pub const FORREST_NOT_FOUND: i32 = 1;
/// The value is longer than the buffer, into which nothing was written; its length was told. Not an error.
pub const FORREST_TOO_SMALL: i32 = 2;
/// A comparison found another value than was expected, and nothing was changed. Not an error.
pub const FORREST_MISMATCH: i32 = 3;
/// What a transaction has read has changed since, and nothing was changed by it: run it again. Not an error.
pub const FORREST_CONFLICT: i32 = 4;
/// The operating system refused a read, a write or another call. The store is as it was.
pub const FORREST_IO: i32 = -1;
/// Stored bytes are damaged; the message names file and offset. Restore them from elsewhere.
pub const FORREST_CORRUPT: i32 = -2;
/// The call makes no sense as it is: a handle that is null or was given back, a URL that names no home. Change the
/// call.
pub const FORREST_INVALID_ARGUMENT: i32 = -3;
/// A key, a value or a batch is larger than can be stored. Make it smaller.
pub const FORREST_LIMIT: i32 = -4;
/// The memory, the disk or the file descriptors are used up. Delete something or give more.
pub const FORREST_OUT_OF_SPACE: i32 = -5;
/// Somebody else holds what is needed, or another thread is using the handle. Try again later.
pub const FORREST_BUSY: i32 = -6;
/// This home cannot do this, or was not built into the library. Use another.
pub const FORREST_UNSUPPORTED: i32 = -7;
/// An earlier failure made the store refuse all writes. Open it again.
pub const FORREST_STOPPED: i32 = -8;
/// The library is broken in itself; please report the message. Close the store.
pub const FORREST_INTERNAL: i32 = -100;

/// The length of what is not there; cbindgen.toml has it for C, as `SIZE_MAX` means nothing to cbindgen.
///
/// cbindgen:ignore
pub const FORREST_ABSENT: usize = usize::MAX;

/// The number of this interface: what `forrest_abi()` returns. It grows when programs must be compiled anew.
pub const FORREST_ABI: u32 = 1;

/// The words for a code, such as "not found"; "unknown code" for a number that is none. Never null, never freed.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_strerror(code: i32) -> *const c_char {
    words(code).as_ptr()
}

/// The version of the library, such as "0.1.0". Never null, never freed.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => panic!("a version has no zero byte"),
        };
    VERSION.as_ptr()
}

/// The number of the interface that the library has. A program that may meet another library than it was compiled
/// for compares it with `FORREST_ABI` before it calls anything else.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_abi() -> u32 {
    FORREST_ABI
}

/// The words for a code.
pub(crate) fn words(code: i32) -> &'static CStr {
    match code {
        FORREST_OK => c"ok",
        FORREST_NOT_FOUND => c"not found",
        FORREST_TOO_SMALL => c"buffer too small",
        FORREST_MISMATCH => c"another value was there",
        FORREST_CONFLICT => c"in conflict with other changes",
        FORREST_IO => c"input/output",
        FORREST_CORRUPT => c"corrupt",
        FORREST_INVALID_ARGUMENT => c"invalid argument",
        FORREST_LIMIT => c"limit exceeded",
        FORREST_OUT_OF_SPACE => c"out of space",
        FORREST_BUSY => c"busy",
        FORREST_UNSUPPORTED => c"unsupported",
        FORREST_STOPPED => c"stopped",
        FORREST_INTERNAL => c"internal error",
        _ => c"unknown code",
    }
}

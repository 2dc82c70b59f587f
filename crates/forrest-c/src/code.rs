//! The codes that functions return, their texts, and the versions of the library.

use std::ffi::{CStr, c_char};

/// Success.
pub const FORREST_OK: i32 = 0;
/// The key does not exist, or an iterator moved past the last pair. Not an error.
pub const FORREST_NOT_FOUND: i32 = 1;
/// The value is longer than the buffer. Nothing was written to the buffer; the length was returned. Not an
/// error.
pub const FORREST_TOO_SMALL: i32 = 2;
/// A comparison found another value than the expected one. Nothing was changed. Not an error.
pub const FORREST_MISMATCH: i32 = 3;
/// A value that a transaction has read has changed since. The transaction changed nothing; run it again. Not
/// an error.
pub const FORREST_CONFLICT: i32 = 4;
/// The value of a key is not known without waiting for a device; `forrest_get` reads it. Not an error.
pub const FORREST_NOT_CACHED: i32 = 5;
/// A read, a write or another system call failed. The call changed nothing.
pub const FORREST_IO: i32 = -1;
/// Stored bytes are damaged; the message names file and offset. Restore the data from a copy.
pub const FORREST_CORRUPT: i32 = -2;
/// An argument is invalid: for example a handle that is null or closed, or a URL that names no home. Change
/// the call.
pub const FORREST_INVALID_ARGUMENT: i32 = -3;
/// A key, a value or a batch exceeds a limit. Make it smaller.
pub const FORREST_LIMIT: i32 = -4;
/// Memory, disk space or file descriptors are used up. Delete something, or provide more.
pub const FORREST_OUT_OF_SPACE: i32 = -5;
/// The store is open elsewhere, another thread is using the handle, or another checkpoint to the same path is
/// in progress. Try again later.
pub const FORREST_BUSY: i32 = -6;
/// This home does not have this feature, or is not compiled into the library. Use another home.
pub const FORREST_UNSUPPORTED: i32 = -7;
/// An earlier failure made the store refuse all writes. Open it again.
pub const FORREST_STOPPED: i32 = -8;
/// A comparison of a batch found another value than the expected one. Nothing was changed.
/// `forrest_try_write` returns `FORREST_MISMATCH` instead, which is not an error.
pub const FORREST_CONDITION_FAILED: i32 = -9;
/// The changes that `forrest_changes_next` is to go on with are no longer kept. Start from a snapshot, and go on with
/// the changes after it.
pub const FORREST_GONE: i32 = -10;
/// A defect of the library; please report the message. Close the store.
pub const FORREST_INTERNAL: i32 = -100;

/// The length that marks an absent value. cbindgen.toml defines it for C, because cbindgen cannot translate
/// it to `SIZE_MAX`.
///
/// cbindgen:ignore
pub const FORREST_ABSENT: usize = usize::MAX;

/// The ABI version, which `forrest_abi()` returns. It grows when programs must be compiled again.
pub const FORREST_ABI: u32 = 2;

/// A text for a code, such as "not found"; "unknown code" for other numbers. Never null; do not free it.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_strerror(code: i32) -> *const c_char {
    words(code).as_ptr()
}

/// The version of the library, such as "0.1.0". Never null; do not free it.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => panic!("a version has no zero byte"),
        };
    VERSION.as_ptr()
}

/// The ABI version of the library. A program that may run with another library than it was compiled for
/// compares it with `FORREST_ABI` before it calls any other function.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_abi() -> u32 {
    FORREST_ABI
}

/// The text for a code.
pub(crate) fn words(code: i32) -> &'static CStr {
    match code {
        FORREST_OK => c"ok",
        FORREST_NOT_FOUND => c"not found",
        FORREST_TOO_SMALL => c"buffer too small",
        FORREST_MISMATCH => c"value mismatch",
        FORREST_CONFLICT => c"conflict with other changes",
        FORREST_NOT_CACHED => c"not cached",
        FORREST_IO => c"input/output",
        FORREST_CORRUPT => c"corrupt",
        FORREST_INVALID_ARGUMENT => c"invalid argument",
        FORREST_LIMIT => c"limit exceeded",
        FORREST_OUT_OF_SPACE => c"out of space",
        FORREST_BUSY => c"busy",
        FORREST_UNSUPPORTED => c"unsupported",
        FORREST_STOPPED => c"stopped",
        FORREST_CONDITION_FAILED => c"condition failed",
        FORREST_GONE => c"gone",
        FORREST_INTERNAL => c"internal error",
        _ => c"unknown code",
    }
}

//! How keys and values lie in the red-black tree's allocations: numbers as eight bytes, strings as their
//! length and their bytes.
#![expect(unsafe_code, reason = "reads and writes the raw allocations of the red-black tree")]

use crate::data::{Counters, Kind, Strings, Text, U64};
use std::cmp::Ordering;

/// How a kind's keys and values lie in their allocations.
pub(crate) trait Packed: Kind {
    /// Bytes that the key takes after the node's links.
    fn key_size(key: Self::Key<'_>) -> usize;
    /// Writes the key.
    ///
    /// # Safety
    /// `at` is aligned to 8 and has [`Packed::key_size`] bytes.
    unsafe fn write_key(at: *mut u8, key: Self::Key<'_>);
    /// Compares a key with a written one.
    ///
    /// # Safety
    /// [`Packed::write_key`] wrote at `at`.
    unsafe fn compare(key: Self::Key<'_>, at: *const u8) -> Ordering;
    /// Reads a written key, and its size.
    ///
    /// # Safety
    /// [`Packed::write_key`] wrote at `at`, and what it wrote stays for `'a`.
    unsafe fn read_key<'a>(at: *const u8) -> (Self::Found<'a>, usize);
    /// Bytes that the value takes.
    fn value_size(value: Self::Value<'_>) -> usize;
    /// Writes the value.
    ///
    /// # Safety
    /// `at` is aligned to 8 and has [`Packed::value_size`] bytes.
    unsafe fn write_value(at: *mut u8, value: Self::Value<'_>);
    /// Reads a written value.
    ///
    /// # Safety
    /// [`Packed::write_value`] wrote at `at`, and what it wrote stays for `'a`.
    unsafe fn read_value<'a>(at: *const u8) -> Self::Value<'a>;
}

/// Bytes of a length in front of a string.
const LEN_BYTES: usize = size_of::<u32>();

/// Writes the length of a string, then its bytes.
///
/// # Safety
/// `at` is aligned to 4 and has `LEN_BYTES + bytes.len()` bytes.
unsafe fn write_string(at: *mut u8, bytes: &[u8]) {
    // SAFETY: `at` is aligned to 4 and has `LEN_BYTES + bytes.len()` bytes: see `# Safety`. They belong to a new
    // allocation, so `bytes` does not overlap them.
    unsafe {
        at.cast::<u32>().write(bytes.len() as u32);
        at.add(LEN_BYTES).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
    }
}

/// Reads what [`write_string`] wrote.
///
/// # Safety
/// [`write_string`] wrote at `at`, and what it wrote stays for `'a`.
unsafe fn read_string<'a>(at: *const u8) -> &'a [u8] {
    // SAFETY: `write_string` wrote a length and that many bytes at `at`, and they stay for `'a`: see `# Safety`.
    unsafe { std::slice::from_raw_parts(at.add(LEN_BYTES), at.cast::<u32>().read() as usize) }
}

/// Keys of eight bytes, for two kinds.
macro_rules! number_keys {
    () => {
        fn key_size(_: u64) -> usize {
            8
        }

        unsafe fn write_key(at: *mut u8, key: u64) {
            // SAFETY: `at` is aligned to 8 and has `key_size` = 8 bytes, as `Packed::write_key` demands.
            unsafe { at.cast::<u64>().write(key) };
        }

        #[inline]
        unsafe fn compare(key: u64, at: *const u8) -> Ordering {
            // SAFETY: `write_key` wrote an aligned `u64` at `at`, as `Packed::compare` demands.
            key.cmp(unsafe { &*at.cast::<u64>() })
        }

        #[inline]
        unsafe fn read_key<'a>(at: *const u8) -> (Self::Found<'a>, usize) {
            // SAFETY: `write_key` wrote an aligned `u64` at `at`, as `Packed::read_key` demands.
            (unsafe { at.cast::<u64>().read() }, 8)
        }
    };
}

/// Values that are strings, for two kinds.
macro_rules! string_values {
    () => {
        fn value_size(value: &[u8]) -> usize {
            LEN_BYTES + value.len()
        }

        unsafe fn write_value(at: *mut u8, value: &[u8]) {
            // SAFETY: `at` is aligned to 8 and has `value_size` bytes, as `Packed::write_value` demands.
            unsafe { write_string(at, value) };
        }

        #[inline]
        unsafe fn read_value<'a>(at: *const u8) -> Self::Value<'a> {
            // SAFETY: `write_value` called `write_string` at `at`, and the bytes stay for `'a`, as
            // `Packed::read_value` demands.
            unsafe { read_string(at) }
        }
    };
}

impl Packed for U64 {
    number_keys!();

    fn value_size(_: u64) -> usize {
        8
    }

    unsafe fn write_value(at: *mut u8, value: u64) {
        // SAFETY: `at` is aligned to 8 and has `value_size` = 8 bytes, as `Packed::write_value` demands.
        unsafe { at.cast::<u64>().write(value) };
    }

    #[inline]
    unsafe fn read_value<'a>(at: *const u8) -> Self::Value<'a> {
        // SAFETY: `write_value` wrote an aligned `u64` at `at`, as `Packed::read_value` demands.
        unsafe { at.cast::<u64>().read() }
    }
}

impl Packed for Counters {
    number_keys!();
    string_values!();
}

impl Packed for Strings {
    fn key_size(key: Text<'_>) -> usize {
        LEN_BYTES + key.bytes().len()
    }

    unsafe fn write_key(at: *mut u8, key: Text<'_>) {
        // SAFETY: `at` is aligned to 8 and has `key_size` bytes, as `Packed::write_key` demands.
        unsafe { write_string(at, key.bytes()) };
    }

    #[inline]
    unsafe fn compare(key: Text<'_>, at: *const u8) -> Ordering {
        // SAFETY: `write_key` called `write_string` at `at`, as `Packed::compare` demands.
        key.bytes().cmp(unsafe { read_string(at) })
    }

    #[inline]
    unsafe fn read_key<'a>(at: *const u8) -> (Self::Found<'a>, usize) {
        // SAFETY: `write_key` called `write_string` at `at`, and the bytes stay for `'a`, as `Packed::read_key`
        // demands.
        let key = unsafe { read_string(at) };
        (key, LEN_BYTES + key.len())
    }

    string_values!();
}

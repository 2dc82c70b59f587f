//! Values held for C until it releases them, and memory passed to C.

use crate::argument::Place;
use crate::code::{FORREST_NOT_FOUND, FORREST_OK};
use crate::failure::{Failure, guard};
use crate::handle::Table;
use std::ffi::{c_char, c_void};
use std::ptr;

/// A value that a read found, held until it is released. It does not change, even if its key is changed or
/// the store is closed.
#[derive(Debug)]
pub struct Value(Box<forrest_rust::Value>);

static VALUES: Table<Value, 1> = Table::new("value", 2);

/// Holds a value for C; null for none.
pub(crate) fn hold(value: Option<forrest_rust::Value>) -> Result<*mut Value, Failure> {
    // Boxed, so that its bytes do not move, and tools that check memory accesses see where they end.
    value.map_or(Ok(ptr::null_mut()), |value| VALUES.insert([Value(Box::new(value))]))
}

/// What a read returns to C: the value that it found, or `FORREST_NOT_FOUND`.
pub(crate) fn answer(
    mut place: Place<*mut Value>,
    found: Option<forrest_rust::Value>,
) -> Result<i32, Failure> {
    if found.is_none() {
        return Ok(FORREST_NOT_FOUND);
    }
    place.put(hold(found)?);
    Ok(FORREST_OK)
}

/// Releases values whose handles were not passed to C.
pub(crate) fn release(values: impl IntoIterator<Item = *mut Value>) {
    for value in values {
        let _it_is_there = VALUES.remove(value);
    }
}

/// The bytes of a value. They stay valid until the value is released. Do not change them.
///
/// # Safety
/// - `data` and `value_bytes` are each null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_value_data(
    value: *const Value,
    data: *mut *const c_void,
    value_bytes: *mut usize,
) -> i32 {
    guard(|| {
        // SAFETY: `data` and `value_bytes` are null or writable, as the Safety section demands.
        let (mut data, mut value_bytes) =
            unsafe { (Place::of("bytes", data, ptr::null())?, Place::of("length", value_bytes, 0)?) };
        let value = VALUES.shared(value)?;
        data.put(value.0.as_ptr().cast());
        value_bytes.put(value.0.len());
        Ok(FORREST_OK)
    })
}

/// Releases a value. Its bytes become invalid. Null is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_value_release(value: *mut Value) -> i32 {
    guard(|| VALUES.remove(value).map(|()| FORREST_OK))
}

/// Frees memory that a function of this library allocated and whose documentation names this function. Do not
/// use `free`, because a process may have several allocators. Null is ignored.
///
/// # Safety
/// - `memory` is null, or came from a function that names this one, and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_free(memory: *mut c_void) {
    // SAFETY: `memory` is null or came from `hand_over`, and so from `malloc`, and was not freed: the Safety
    // section demands it.
    unsafe { libc::free(memory) }
}

/// A copy of `bytes` for C, freed by [`forrest_free`]. Never null.
pub(crate) fn hand_over(bytes: &[u8]) -> Result<*mut c_void, Failure> {
    // SAFETY: `malloc` takes any length.
    let memory = unsafe { libc::malloc(bytes.len().max(1)) };
    if memory.is_null() {
        return Err(Failure::out_of_memory(bytes.len()));
    }
    // SAFETY: `memory` is not null and has `bytes.len()` bytes, newly allocated, so they do not overlap
    // `bytes`.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), memory.cast(), bytes.len()) };
    Ok(memory)
}

/// A list of texts for C, each ending with a zero byte, in one block of memory that [`forrest_free`] frees.
/// The texts have no zero byte themselves. Never null.
pub(crate) fn hand_over_list(texts: &[impl AsRef<[u8]>]) -> Result<*mut *mut c_char, Failure> {
    // The list of pointers comes first, then the texts. The pointers are written once the memory's address is
    // known.
    let list = size_of::<*mut c_char>() * texts.len();
    let ended = texts.iter().flat_map(|text| text.as_ref().iter().copied().chain([0]));
    let bytes: Vec<u8> = std::iter::repeat_n(0, list).chain(ended).collect();
    let memory = hand_over(&bytes)?.cast::<*mut c_char>();
    let mut at = list;
    for (number, text) in texts.iter().enumerate() {
        // SAFETY: the memory begins with `texts.len()` pointers, aligned by `malloc`, and `number <
        // texts.len()`. The text at `at` is within the same block.
        unsafe { memory.add(number).write(memory.cast::<c_char>().add(at)) };
        at += text.as_ref().len() + 1;
    }
    Ok(memory)
}

//! Values that are held until they are released, and memory that is handed to C.

use crate::argument::Place;
use crate::code::FORREST_OK;
use crate::failure::{Failure, guard};
use crate::handle::Table;
use std::ffi::{c_char, c_void};
use std::ptr;

/// A value that a read found, held until it is released. It stays as it was found, whatever becomes of its key and of
/// the store.
#[derive(Debug)]
pub struct Value(Box<forrest_rust::Value>);

static VALUES: Table<Value, 1> = Table::new("value", 2);

/// Holds a value for C; null for none.
pub(crate) fn hold(value: Option<forrest_rust::Value>) -> Result<*mut Value, Failure> {
    // In memory of its own, so that its bytes stay where they are, and those who look for wrong reads see its end.
    value.map_or(Ok(ptr::null_mut()), |value| VALUES.insert([Value(Box::new(value))]))
}

/// Gives values back of which C was not told.
pub(crate) fn release(values: impl IntoIterator<Item = *mut Value>) {
    for value in values {
        let _it_is_there = VALUES.remove(value);
    }
}

/// The bytes of a value. They stay where they are until the value is released, and are not to be changed.
///
/// # Safety
/// - `data` and `value_bytes` are each null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_value_data(
    value: *const Value,
    data: *mut *const c_void,
    value_bytes: *mut usize,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promises.
        let (mut data, mut value_bytes) =
            unsafe { (Place::of("bytes", data, ptr::null())?, Place::of("length", value_bytes, 0)?) };
        let value = VALUES.shared(value)?;
        data.put(value.0.as_ptr().cast());
        value_bytes.put(value.0.len());
        Ok(FORREST_OK)
    })
}

/// Gives a value back. Its bytes are not to be read any more. Null is nothing to give back.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_value_release(value: *mut Value) -> i32 {
    guard(|| VALUES.remove(value).map(|()| FORREST_OK))
}

/// Gives back memory that a function of this library says to be freed so; not by `free`, of which a process may have
/// several. Null is nothing to give back.
///
/// # Safety
/// - `memory` is null, or came from a function that says so, and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_free(memory: *mut c_void) {
    // SAFETY: it came from `hand_over`, and so from malloc.
    unsafe { libc::free(memory) }
}

/// A copy of `bytes` for C, to be given to [`forrest_free`]. Never null.
pub(crate) fn hand_over(bytes: &[u8]) -> Result<*mut c_void, Failure> {
    // SAFETY: any length may be asked for.
    let memory = unsafe { libc::malloc(bytes.len().max(1)) };
    if memory.is_null() {
        return Err(Failure::out_of_memory(bytes.len()));
    }
    // SAFETY: it has so many bytes, which nobody else knows of.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), memory.cast(), bytes.len()) };
    Ok(memory)
}

/// A list of texts without zero bytes for C, each ending with one, all in one piece of memory to be given to
/// [`forrest_free`]. Never null.
pub(crate) fn hand_over_list(texts: &[impl AsRef<[u8]>]) -> Result<*mut *mut c_char, Failure> {
    // The list, and behind it the texts; where they begin is known once there is memory.
    let list = size_of::<*mut c_char>() * texts.len();
    let ended = texts.iter().flat_map(|text| text.as_ref().iter().copied().chain([0]));
    let bytes: Vec<u8> = std::iter::repeat_n(0, list).chain(ended).collect();
    let memory = hand_over(&bytes)?.cast::<*mut c_char>();
    let mut at = list;
    for (number, text) in texts.iter().enumerate() {
        // SAFETY: the memory begins with so many pointers, aligned as malloc does it, and has each text behind them.
        unsafe { memory.add(number).write(memory.cast::<c_char>().add(at)) };
        at += text.as_ref().len() + 1;
    }
    Ok(memory)
}

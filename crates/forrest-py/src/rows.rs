//! Rows: keys and values of a fixed length in flat buffers, without an object for each pair. python/forrest/arrays.py
//! makes NumPy's arrays of them.

use crate::argument::{Bytes, key_range};
use crate::failure::Failure;
use crate::keyspace::{GROUP_BYTES, GROUP_PAIRS, Keyspace};
use crate::view::{CHUNK, View};
use pyo3::prelude::*;
use pyo3::types::PyByteArray;
use std::ops::ControlFlow;

/// The length of each of a number of rows, at least 1: so the number is bounded by what is in memory.
fn length(py: Python<'_>, what: &str, bytes: &[u8], rows: usize) -> PyResult<usize> {
    if rows == 0 || bytes.is_empty() || !bytes.len().is_multiple_of(rows) {
        let message = format!("{} bytes of {what} are not {rows} rows of one length", bytes.len());
        return Err(Failure::Invalid(message).raise(py));
    }
    Ok(bytes.len() / rows)
}

/// A number of rows of some length, which `fill` writes; zero before.
fn filled<'py>(
    py: Python<'py>,
    rows: usize,
    length: usize,
    fill: impl FnOnce(&mut [u8]) -> PyResult<()>,
) -> PyResult<Bound<'py, PyByteArray>> {
    match rows.checked_mul(length) {
        Some(bytes) if isize::try_from(bytes).is_ok() => PyByteArray::new_with(py, bytes, fill),
        _ => {
            Err(Failure::Invalid(format!("{rows} rows of {length} bytes are more than fits memory"))
                .raise(py))
        }
    }
}

/// Sets rows of keys and values, in order, as put_many() does. `before` is added to the number of a pair in errors.
#[pyfunction]
#[pyo3(signature = (keyspace, keys, values, rows, before, /))]
pub(crate) fn put_rows(
    py: Python<'_>,
    keyspace: &Bound<'_, Keyspace>,
    keys: Bytes<'_>,
    values: Bytes<'_>,
    rows: usize,
    before: usize,
) -> PyResult<()> {
    let (keys, values) = (keys.get(), values.get());
    let (key, value) = (length(py, "keys", keys, rows)?, length(py, "values", values, rows)?);
    let group = (GROUP_BYTES / (key + value).max(1)).clamp(1, GROUP_PAIRS);
    for start in (0..rows).step_by(group) {
        let pairs = (start..rows.min(start + group))
            .map(|row| (&keys[row * key..(row + 1) * key], &values[row * value..(row + 1) * value]));
        keyspace.get().put(py, pairs, before + start)?;
        py.check_signals()?;
    }
    Ok(())
}

/// The values of rows of keys, and for each row a byte that is 1 if the key exists. The row of a missing key is zero.
#[pyfunction]
#[pyo3(signature = (view, keys, rows, value_bytes, /))]
pub(crate) fn get_rows<'py>(
    py: Python<'py>,
    view: &Bound<'py, View>,
    keys: Bytes<'py>,
    rows: usize,
    value_bytes: usize,
) -> PyResult<(Bound<'py, PyByteArray>, Bound<'py, PyByteArray>)> {
    let keys = keys.get();
    let key = length(py, "keys", keys, rows)?;
    let mut values = None;
    let found = filled(py, rows, 1, |found| {
        values = Some(filled(py, rows, value_bytes, |values| {
            for (chunk, keys) in keys.chunks(key * CHUNK).enumerate() {
                let keys: Vec<&[u8]> = keys.chunks(key).collect();
                view.get().part().detached(py, |view| {
                    for (row, value) in (chunk * CHUNK..).zip(view.multi_get(&keys)?) {
                        let Some(value) = value else { continue };
                        if value.len() != value_bytes {
                            return Err(other_length(
                                "value of key",
                                keys[row % CHUNK],
                                value.len(),
                                value_bytes,
                            ));
                        }
                        values[row * value_bytes..(row + 1) * value_bytes].copy_from_slice(&value);
                        found[row] = 1;
                    }
                    Ok(())
                })?;
                py.check_signals()?;
            }
            Ok(())
        })?);
        Ok(())
    })?;
    Ok((values.expect("it is set before"), found))
}

/// The failure for a stored pair that does not fit the rows.
fn other_length(what: &str, key: &[u8], length: usize, expected: usize) -> Failure {
    Failure::Invalid(format!(
        "the {what} \"{}\" has {length} bytes, but the rows have {expected}; read it with another type, or another range",
        key.escape_ascii()
    ))
}

/// The first rows of a range, with the arguments of range(): the keys, the values, and their number, which is less than
/// `rows` only at the end of the range. The buffers have room for all `rows`. Without `value_bytes` there are no
/// values.
#[pyfunction]
#[pyo3(signature = (view, start, stop, prefix, rows, key_bytes, value_bytes, /))]
pub(crate) fn scan_rows<'py>(
    view: &Bound<'py, View>,
    start: Option<Bytes<'py>>,
    stop: Option<Bytes<'py>>,
    prefix: Option<Bytes<'py>>,
    rows: usize,
    key_bytes: usize,
    value_bytes: Option<usize>,
) -> PyResult<(Bound<'py, PyByteArray>, Bound<'py, PyByteArray>, usize)> {
    let py = view.py();
    let bounds = key_range(start, stop, prefix);
    let (mut count, mut values) = (0, None);
    let keys = filled(py, rows, key_bytes, |keys| {
        values = Some(filled(py, rows, value_bytes.unwrap_or(0), |values| {
            view.get().part().detached(py, |view| {
                let mut wrong = None;
                view.scan(bounds, |key, value| {
                    if count == rows {
                        return ControlFlow::Break(());
                    }
                    let value = if value_bytes.is_some() { value } else { &[] };
                    let expected = value_bytes.unwrap_or(0);
                    if key.len() != key_bytes || value.len() != expected {
                        wrong = Some(if key.len() != key_bytes {
                            other_length("key", key, key.len(), key_bytes)
                        } else {
                            other_length("value of key", key, value.len(), expected)
                        });
                        return ControlFlow::Break(());
                    }
                    keys[count * key_bytes..(count + 1) * key_bytes].copy_from_slice(key);
                    values[count * expected..(count + 1) * expected].copy_from_slice(value);
                    count += 1;
                    ControlFlow::Continue(())
                })?;
                wrong.map_or(Ok(()), Err)
            })
        })?);
        Ok(())
    })?;
    Ok((keys, values.expect("it is set before"), count))
}

//! Conversion of Python arguments: bytes and ranges of keys.

use forrest::prefix_end;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView, PyTuple};
use std::ops::Bound as End;

/// The bytes of any bytes-like object. Objects of the type `bytes` never change, so they can be read without
/// the interpreter lock. All others are copied, because another thread could change them.
pub(crate) struct Bytes<'py>(Bound<'py, PyBytes>);

impl<'py> Bytes<'py> {
    /// The bytes of an object.
    pub(crate) fn new(object: Bound<'py, PyAny>) -> PyResult<Bytes<'py>> {
        object.cast_into::<PyBytes>().map(Bytes).or_else(|not_bytes| copied(&not_bytes.into_inner()))
    }

    /// The bytes.
    pub(crate) fn get(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl<'py> FromPyObject<'_, 'py> for Bytes<'py> {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Bytes<'py>> {
        Bytes::new(object.to_owned())
    }
}

#[cold]
fn copied<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bytes<'py>> {
    let Ok(view) = PyMemoryView::from(object) else {
        let name = object.get_type().name()?;
        let advice = if name == "str" { "; use encode() to make bytes of text" } else { "" };
        return Err(PyTypeError::new_err(format!("a bytes-like object is required, not '{name}'{advice}")));
    };
    Ok(Bytes(view.call_method0("tobytes")?.cast_into()?))
}

/// The key and the value of a tuple.
pub(crate) fn pair<'py>(item: &Bound<'py, PyAny>) -> PyResult<(Bytes<'py>, Bytes<'py>)> {
    match item.cast::<PyTuple>() {
        Ok(tuple) if tuple.len() == 2 => {
            Ok((Bytes::new(tuple.get_item(0)?)?, Bytes::new(tuple.get_item(1)?)?))
        }
        _ => {
            Err(PyTypeError::new_err(format!("a pair is a tuple of a key and a value, not {}", item.repr()?)))
        }
    }
}

/// A range of keys: its start, included, and its end, excluded.
pub(crate) type KeyRange = (End<Vec<u8>>, End<Vec<u8>>);

/// The keys from `start` up to, but without, `stop` that begin with `prefix`.
pub(crate) fn key_range(
    start: Option<Bytes<'_>>,
    stop: Option<Bytes<'_>>,
    prefix: Option<Bytes<'_>>,
) -> KeyRange {
    let owned = |bytes: Option<Bytes<'_>>| bytes.map(|bytes| bytes.get().to_vec());
    let (start, stop, prefix) = (owned(start), owned(stop), owned(prefix));
    let end = prefix.as_deref().and_then(prefix_end);
    // `None` sorts first, so `max` works for the start. The end is the smaller of those that exist.
    let (start, stop) = (prefix.max(start), [end, stop].into_iter().flatten().min());
    (start.map_or(End::Unbounded, End::Included), stop.map_or(End::Unbounded, End::Excluded))
}

/// An optional argument for which `None` is a value.
pub(crate) enum Given<'py> {
    Nothing,
    This(Bound<'py, PyAny>),
}

impl<'py> FromPyObject<'_, 'py> for Given<'py> {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Given<'py>> {
        Ok(Given::This(object.to_owned()))
    }
}

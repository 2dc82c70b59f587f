//! Options with named values, and URLs.

use crate::failure::Failure;
use forrest::{Compression, Durability, EncryptionKey, Numa, Pages};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyInt, PyString};

/// The values of an option by name.
type Words<T> = [(&'static str, T)];

pub(crate) const DURABILITY: &Words<Durability> =
    &[("memory", Durability::Memory), ("buffered", Durability::Buffered), ("sync", Durability::Sync)];
pub(crate) const PAGES: &Words<Pages> = &[
    ("auto", Pages::Auto),
    ("1g", Pages::Huge1G),
    ("2m", Pages::Huge2M),
    ("transparent", Pages::Transparent),
    ("plain", Pages::Plain),
];
pub(crate) const COMPRESSION: &Words<Compression> =
    &[("none", Compression::None), ("lz4", Compression::Lz4), ("zstd", Compression::Zstd)];
const NUMA: &Words<Numa> = &[("local", Numa::Local), ("interleave", Numa::Interleave)];

/// The memory nodes of an argument: a word, or the number of a node.
pub(crate) fn numa(argument: &Bound<'_, PyAny>) -> PyResult<Numa> {
    let py = argument.py();
    if argument.is_instance_of::<PyString>() {
        return choose(py, "numa", NUMA, argument.extract()?);
    }
    if argument.is_exact_instance_of::<PyInt>() {
        let node = argument.extract().map_err(|_| {
            Failure::Invalid(format!("numa is {argument}, which is no number of a memory node")).raise(py)
        })?;
        return Ok(Numa::Node(node));
    }
    Err(PyTypeError::new_err("numa must be a str or an int"))
}

/// The encryption key of an argument.
pub(crate) fn encryption_key(py: Python<'_>, bytes: &PyBackedBytes) -> PyResult<EncryptionKey> {
    let key: Result<[u8; 32], _> = (&bytes[..]).try_into();
    key.map(EncryptionKey::from_bytes).map_err(|_| {
        let len = bytes.len();
        Failure::Invalid(format!("encryption_key has {len} bytes; it must have 32")).raise(py)
    })
}

/// The same of an argument that may be missing.
pub(crate) fn perhaps_key(py: Python<'_>, bytes: Option<PyBackedBytes>) -> PyResult<Option<EncryptionKey>> {
    bytes.map(|bytes| encryption_key(py, &bytes)).transpose()
}

/// The value of a name.
pub(crate) fn choose<T: Copy>(py: Python<'_>, option: &str, words: &Words<T>, word: &str) -> PyResult<T> {
    let found = words.iter().find(|(known, _)| *known == word);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<String> = words.iter().map(|(known, _)| format!("{known:?}")).collect();
        Failure::Invalid(format!("{option} is {word:?}; it must be one of {}", known.join(", "))).raise(py)
    })
}

/// The URL of an argument: a string, or a path object. A path object is a path even if it begins like a URL.
pub(crate) fn url(argument: &Bound<'_, PyAny>) -> PyResult<String> {
    if argument.is_instance_of::<PyString>() {
        return argument.extract();
    }
    let path = argument.py().import("os")?.call_method1("fspath", (argument,))?;
    if !path.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("a path must be str, not bytes; use os.fsdecode()"));
    }
    let path: String = path.extract()?;
    Ok(if forrest::directory(&path).is_some() || path.is_empty() { path } else { format!("./{path}") })
}

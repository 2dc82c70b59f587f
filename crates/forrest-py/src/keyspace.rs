//! [`Keyspace`]: one ordered map of a store, and all its changes.

use crate::argument::{Bytes, Given, key_range, pair};
use crate::failure::Failure;
use crate::scope::{Part, Scope};
use crate::view::{CHUNK, View, missing};
use forrest::Swap;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;

/// One ordered map of a store. Each change is atomic, and every read that begins after it sees it.
#[pyclass(module = "forrest", extends = View, subclass, frozen)]
pub(crate) struct Keyspace {
    /// The store of the keyspace.
    store: Arc<Part<forrest::Db>>,
    space: Part<forrest::Keyspace>,
}

impl Keyspace {
    /// A keyspace of a store, with its view, in the store's scope.
    pub(crate) fn in_store(
        store: Arc<Part<forrest::Db>>,
        space: forrest::Keyspace,
        told: String,
    ) -> Result<PyClassInitializer<Keyspace>, Failure> {
        let view = View::new(store.scope(), &space, told)?;
        let space = Part::new(store.scope(), space)?;
        Ok(PyClassInitializer::from(view).add_subclass(Keyspace { store, space }))
    }

    /// The store of the keyspace.
    pub(crate) fn store(&self) -> &Arc<Part<forrest::Db>> {
        &self.store
    }

    /// The store's scope.
    pub(crate) fn scope(&self) -> &Arc<Scope> {
        self.store.scope()
    }

    /// The library's handle to the keyspace. Do not keep it outside of a [`Part`].
    pub(crate) fn handle(&self, py: Python<'_>) -> PyResult<forrest::Keyspace> {
        self.space.at_once(py, |space| Ok(space.clone()))
    }

    /// Removes a key at one instant, and returns its value.
    fn take<'py>(&self, py: Python<'py>, key: &[u8]) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let taken = self.space.detached(py, |space| {
            let mut found = space.get(key)?;
            while let Some(value) = &found {
                match space.compare_and_swap(key, Some(value), None)? {
                    Swap::Mismatch(other) => found = other,
                    Swap::Done => break,
                    other => unreachable!("a compare-and-swap came to {other:?}"),
                }
            }
            Ok(found)
        })?;
        Ok(taken.map(|value| PyBytes::new(py, &value)))
    }
}

#[pymethods]
impl Keyspace {
    #[new]
    fn new(py: Python<'_>, store: &Keyspace, name: &str) -> PyResult<PyClassInitializer<Keyspace>> {
        let space = store.store.detached(py, |db| Ok(db.keyspace(name)?))?;
        Keyspace::in_store(store.store.clone(), space, format!("{name:?}"))
            .map_err(|failure| failure.raise(py))
    }

    /// The name.
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<String> {
        self.space.at_once(py, |space| Ok(space.name().to_owned()))
    }

    fn __setitem__(&self, py: Python<'_>, key: Bytes<'_>, value: Bytes<'_>) -> PyResult<()> {
        let (key, value) = (key.get(), value.get());
        self.space.detached(py, |space| Ok(space.set(key, value)?))
    }

    fn __delitem__(&self, py: Python<'_>, key: Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = Bytes::new(key.clone())?;
        let bytes = bytes.get();
        let was_there = self.space.detached(py, |space| Ok(space.delete(bytes)?))?;
        if was_there { Ok(()) } else { Err(missing(key)) }
    }

    /// Sets many keys, from tuples of a key and a value, one after the other. If one fails, those before it
    /// stay set. Use batch() for changes that are applied together or not at all.
    #[pyo3(signature = (pairs, /))]
    fn put_many(&self, py: Python<'_>, pairs: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut pairs = pairs.try_iter()?;
        let mut put = 0;
        let mut chunk = Vec::with_capacity(CHUNK.min(pairs.size_hint().0));
        loop {
            chunk.clear();
            let mut wrong = None;
            for item in pairs.by_ref().take(CHUNK) {
                match item.and_then(|item| pair(&item)) {
                    Ok(pair) => chunk.push(pair),
                    Err(error) => {
                        wrong = Some(error);
                        break;
                    }
                }
            }
            let slices: Vec<_> = chunk.iter().map(|(key, value)| (key.get(), value.get())).collect();
            self.space.detached(py, |space| {
                slices.iter().enumerate().try_for_each(|(at, (key, value))| {
                    space.set(key, value).map_err(|error| Failure::Store(error, Some(put + at)))
                })
            })?;
            put += chunk.len();
            match wrong {
                Some(error) => return Err(error),
                None if chunk.len() < CHUNK => return Ok(()),
                None => py.check_signals()?,
            }
        }
    }

    /// Adds to a counter and returns its new value. A counter is a value of 8 bytes, a big-endian signed
    /// integer. A missing key counts as 0.
    #[pyo3(signature = (key, delta, /))]
    fn add(&self, py: Python<'_>, key: Bytes<'_>, delta: i64) -> PyResult<i64> {
        let key = key.get();
        self.space.detached(py, |space| Ok(space.add(key, delta)?))
    }

    /// Replaces the value of a key if it equals the expected one, byte for byte; None is absence. Otherwise
    /// changes nothing and returns False.
    #[pyo3(signature = (key, expected, new, /))]
    fn compare_and_swap(
        &self,
        py: Python<'_>,
        key: Bytes<'_>,
        expected: Option<Bytes<'_>>,
        new: Option<Bytes<'_>>,
    ) -> PyResult<bool> {
        let (key, expected, new) =
            (key.get(), expected.as_ref().map(Bytes::get), new.as_ref().map(Bytes::get));
        self.space.detached(py, |space| Ok(space.compare_and_swap(key, expected, new)?.is_done()))
    }

    /// Removes all keys of a range, with the arguments of range(). count() returns their number. On disk, a range whose
    /// keys take more memory than a memtable (a key: its length three times, and about 236 bytes) is removed in pieces,
    /// and others may read and write between two of them. Otherwise all of it happens at one instant.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None))]
    fn delete_range(
        &self,
        py: Python<'_>,
        start: Option<Bytes<'_>>,
        stop: Option<Bytes<'_>>,
        prefix: Option<Bytes<'_>>,
    ) -> PyResult<()> {
        let bounds = key_range(start, stop, prefix);
        self.space.detached(py, |space| Ok(space.delete_range(bounds)?))
    }

    /// Merges the tables that have keys of a range, from start up to but not including stop, or those with a prefix.
    /// The range then takes the least space. Neighbouring pairs may be rewritten too. Raises UnsupportedError in homes
    /// without tables.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None))]
    fn compact_range(
        &self,
        py: Python<'_>,
        start: Option<Bytes<'_>>,
        stop: Option<Bytes<'_>>,
        prefix: Option<Bytes<'_>>,
    ) -> PyResult<()> {
        let bounds = key_range(start, stop, prefix);
        self.space.detached(py, |space| Ok(space.compact_range(bounds)?))
    }

    /// Removes all keys, as delete_range() does.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.space.detached(py, |space| Ok(space.delete_range(..)?))
    }

    /// Removes a key and returns its value, at one instant: only one of several threads gets it. If the key
    /// is missing, returns the default or raises KeyError.
    #[pyo3(signature = (key, /, default=Given::Nothing))]
    fn pop<'py>(
        &self,
        py: Python<'py>,
        key: Bound<'py, PyAny>,
        default: Given<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match (self.take(py, Bytes::new(key.clone())?.get())?, default) {
            (Some(value), _) => Ok(value.into_any()),
            (None, Given::This(default)) => Ok(default),
            (None, Given::Nothing) => Err(missing(key)),
        }
    }

    /// Removes the pair with the smallest key and returns it, or raises KeyError if there is none. Only one
    /// of several threads gets it.
    fn popitem<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        loop {
            let Some(first) = self.space.detached(py, |space| Ok(space.first()?))? else {
                return Err(PyKeyError::new_err("popitem(): there are no keys"));
            };
            if let Some(value) = self.take(py, first.key())? {
                return Ok((PyBytes::new(py, first.key()), value));
            }
        }
    }

    /// The value of a key. If the key is missing, sets it to the default first. Both happen at one instant:
    /// several threads get the same value.
    #[pyo3(signature = (key, default, /))]
    fn setdefault<'py>(
        &self,
        py: Python<'py>,
        key: Bytes<'_>,
        default: Bytes<'_>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (key, default) = (key.get(), default.get());
        let found =
            self.space.detached(py, |space| match space.compare_and_swap(key, None, Some(default))? {
                Swap::Mismatch(found) => Ok(found),
                Swap::Done => Ok(None),
                other => unreachable!("a compare-and-swap came to {other:?}"),
            })?;
        Ok(PyBytes::new(py, found.as_deref().unwrap_or(default)))
    }
}

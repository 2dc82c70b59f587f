//! [`Keyspace`]: one ordered map of a store, to be changed.

use crate::argument::{Bytes, Given, key_range, pair};
use crate::failure::Failure;
use crate::scope::{Part, Scope};
use crate::view::{CHUNK, View, missing};
use forrest::Swap;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;

/// One ordered map of a store. Each change is atomic by itself, and seen by every read that begins after it.
#[pyclass(module = "forrest", extends = View, subclass, frozen)]
pub(crate) struct Keyspace {
    /// The store that it is of.
    store: Arc<Part<forrest::Db>>,
    space: Part<forrest::Keyspace>,
}

impl Keyspace {
    /// One of a store, and its view, in the store's scope.
    pub(crate) fn in_store(
        store: Arc<Part<forrest::Db>>,
        space: forrest::Keyspace,
        told: String,
    ) -> Result<PyClassInitializer<Keyspace>, Failure> {
        let view = View::new(store.scope(), &space, told)?;
        let space = Part::new(store.scope(), space)?;
        Ok(PyClassInitializer::from(view).add_subclass(Keyspace { store, space }))
    }

    /// The store that it is of.
    pub(crate) fn store(&self) -> &Arc<Part<forrest::Db>> {
        &self.store
    }

    /// Where it belongs.
    pub(crate) fn scope(&self) -> &Arc<Scope> {
        self.store.scope()
    }

    /// The library's handle to it. Not to be kept outside a part.
    pub(crate) fn handle(&self, py: Python<'_>) -> PyResult<forrest::Keyspace> {
        self.space.at_once(py, |space| Ok(space.clone()))
    }

    /// Removes a key at one instant, and returns what it mapped to.
    fn take<'py>(&self, py: Python<'py>, key: &[u8]) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let taken = self.space.detached(py, |space| {
            let mut found = space.get(key)?;
            while let Some(value) = &found {
                match space.compare_and_swap(key, Some(value), None)? {
                    Swap::Done => break,
                    Swap::Mismatch(other) => found = other,
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

    /// Maps many keys to values, by tuples of both, one after the other. If one fails, those before it are put; batch()
    /// is for changes that are made together or not at all.
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

    /// Adds to a counter and returns its new value. A counter is a value of 8 bytes, a big-endian signed integer; a key
    /// that is not there counts as 0.
    #[pyo3(signature = (key, delta, /))]
    fn add(&self, py: Python<'_>, key: Bytes<'_>, delta: i64) -> PyResult<i64> {
        let key = key.get();
        self.space.detached(py, |space| Ok(space.add(key, delta)?))
    }

    /// Replaces what a key maps to if it is what was expected, byte for byte; None is absence. False if it was
    /// something else, and nothing was changed.
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

    /// Removes all keys of a range, which is told as for range(), at one instant; returns how many there were.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None))]
    fn delete_range(
        &self,
        py: Python<'_>,
        start: Option<Bytes<'_>>,
        stop: Option<Bytes<'_>>,
        prefix: Option<Bytes<'_>>,
    ) -> PyResult<u64> {
        let bounds = key_range(start, stop, prefix);
        self.space.detached(py, |space| Ok(space.delete_range(bounds)?))
    }

    /// Removes all keys, at one instant.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.space.detached(py, |space| Ok(space.delete_range(..).map(drop)?))
    }

    /// Removes a key and returns its value, at one instant: of several threads, one gets it. If it is not there, the
    /// default, or KeyError.
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

    /// Removes the pair with the smallest key and returns it, or raises KeyError if there is none. Of several threads,
    /// one gets it.
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

    /// The value of a key; where it is not there, it is mapped to the default first. At one instant: several threads
    /// get the same value.
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
                Swap::Done => Ok(None),
                Swap::Mismatch(found) => Ok(found),
            })?;
        Ok(PyBytes::new(py, found.as_deref().unwrap_or(default)))
    }
}

//! [`Range`]: an iterator over the pairs or keys of a range.
//!
//! It fetches pairs ahead, each time more, so that it releases the interpreter once for many pairs. Fetched
//! pairs are in the memory of this process and do not belong to a store.

use crate::argument::KeyRange;
use crate::failure::Failure;
use crate::scope::Part;
use forrest::{Entry, Key, View};
use forrest_base::lock;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyTuple};
use std::sync::{Mutex, PoisonError};
use std::vec;

/// Number of pairs of the first fetch, the factor by which it grows, and its maximum.
const PAIRS_FIRST: usize = 16;
const PAIRS_GROWTH: usize = 4;
const PAIRS_MAX: usize = 1024;
/// A fetch stops at this number of bytes.
const BYTES_MAX: usize = 256 << 10;

/// An iteration over a range of keys, in order. It returns a key that exists throughout exactly once. It may
/// or may not return a key that is added or removed meanwhile.
#[pyclass(module = "forrest", frozen, generic)]
pub(crate) struct Range {
    source: Part<Mutex<Source>>,
    reverse: bool,
    fetched: Mutex<Fetched>,
}

/// The library's iteration, over pairs or keys.
enum Source {
    Pairs(forrest::Range),
    Keys(forrest::Keys),
}

/// What it returns.
enum Item {
    Pair(Entry),
    Key(Key),
}

impl Source {
    fn next(&mut self, reverse: bool) -> Option<forrest::Result<Item>> {
        match (self, reverse) {
            (Source::Pairs(range), false) => range.next().map(|pair| pair.map(Item::Pair)),
            (Source::Pairs(range), true) => range.next_back().map(|pair| pair.map(Item::Pair)),
            (Source::Keys(keys), false) => keys.next().map(|key| key.map(Item::Key)),
            (Source::Keys(keys), true) => keys.next_back().map(|key| key.map(Item::Key)),
        }
    }
}

impl Item {
    /// Bytes of it.
    fn bytes(&self) -> forrest::Result<usize> {
        Ok(match self {
            Item::Pair(entry) => entry.key().len() + entry.value_bytes()?.len(),
            Item::Key(key) => key.len(),
        })
    }
}

struct Fetched {
    entries: vec::IntoIter<Item>,
    /// The failure that ended the fetch, raised after the entries.
    failure: Option<Failure>,
    pairs: usize,
}

impl Range {
    /// An iteration over a range of a view.
    pub(crate) fn new(
        py: Python<'_>,
        view: &Part<View>,
        bounds: KeyRange,
        reverse: bool,
        keys_only: bool,
    ) -> PyResult<Range> {
        let source = view.at_once(py, |view| {
            let range = view.range(bounds);
            Ok(if keys_only { Source::Keys(range.keys()) } else { Source::Pairs(range) })
        })?;
        let source = Part::new(view.scope(), Mutex::new(source)).map_err(|failure| failure.raise(py))?;
        let fetched = Fetched { entries: Vec::new().into_iter(), failure: None, pairs: PAIRS_FIRST };
        Ok(Range { source, reverse, fetched: Mutex::new(fetched) })
    }
}

impl Fetched {
    fn fetch(&mut self, py: Python<'_>, source: &Part<Mutex<Source>>, reverse: bool) -> PyResult<()> {
        let pairs = self.pairs;
        self.pairs = (pairs * PAIRS_GROWTH).min(PAIRS_MAX);
        let (entries, failure) = source.detached(py, |range| {
            let mut range = lock(range);
            let mut entries = Vec::new();
            let mut bytes = 0;
            while entries.len() < pairs && bytes < BYTES_MAX {
                let sized = |entry: Item| Ok((entry.bytes()?, entry));
                match range.next(reverse).map(|entry| entry.and_then(sized)) {
                    None => break,
                    Some(Err(error)) => return Ok((entries, Some(Failure::from(error)))),
                    Some(Ok((more, entry))) => {
                        bytes += more;
                        entries.push(entry);
                    }
                }
            }
            Ok((entries, None))
        })?;
        (self.entries, self.failure) = (entries.into_iter(), failure);
        Ok(())
    }
}

#[pymethods]
impl Range {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.source.scope().check().map_err(|failure| failure.raise(py))?;
        // Two threads may share an iteration. The one that waits for the lock releases the interpreter.
        let mut fetched = self.fetched.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        if fetched.entries.as_slice().is_empty() {
            if let Some(failure) = fetched.failure.take() {
                return Err(failure.raise(py));
            }
            fetched.fetch(py, &self.source, self.reverse)?;
        }
        let Some(entry) = fetched.entries.next() else {
            return fetched.failure.take().map_or(Ok(None), |failure| Err(failure.raise(py)));
        };
        let entry = match entry {
            Item::Key(key) => return Ok(Some(PyBytes::new(py, &key).into_any())),
            Item::Pair(entry) => entry,
        };
        let value = entry.value_bytes().map_err(|error| Failure::from(error).raise(py))?;
        Ok(Some(PyTuple::new(py, [PyBytes::new(py, entry.key()), PyBytes::new(py, value)])?.into_any()))
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("an iteration over an open store cannot be pickled"))
    }
}

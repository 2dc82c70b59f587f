//! [`View`]: all reads of one keyspace, in its newest state or a snapshot's.

use crate::argument::{Bytes, key_range};
use crate::failure::Failure;
use crate::range::Range;
use crate::reader::ValueReader;
use crate::scope::{Part, Scope};
use forrest::Cached;
use pyo3::exceptions::{PyKeyError, PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Number of keys of a long call that are processed at a time. In between, Python checks for signals.
pub(crate) const CHUNK: usize = 4096;

/// The same for ranges.
const RANGES: usize = 256;

/// The reads of one keyspace.
#[pyclass(module = "forrest", subclass, frozen, mapping)]
pub(crate) struct View {
    view: Part<forrest::View>,
    /// The store or keyspace, for `repr()`.
    told: String,
}

impl View {
    /// A view in a scope.
    pub(crate) fn new(scope: &Arc<Scope>, view: &forrest::View, told: String) -> Result<View, Failure> {
        Ok(View { view: Part::new(scope, view.clone())?, told })
    }

    /// The scope of the view.
    pub(crate) fn scope(&self) -> &Arc<Scope> {
        self.view.scope()
    }

    /// The library's view.
    pub(crate) fn part(&self) -> &Part<forrest::View> {
        &self.view
    }

    fn find<'py>(&self, py: Python<'py>, key: &Bytes<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let key = key.get();
        let found = self.view.read(py, |view| Ok(view.get(key)?))?;
        Ok(found.map(|value| PyBytes::new(py, &value)))
    }
}

/// The exception for a missing key.
pub(crate) fn missing(key: Bound<'_, PyAny>) -> PyErr {
    PyKeyError::new_err((key.unbind(),))
}

#[pymethods]
impl View {
    fn __getitem__<'py>(&self, py: Python<'py>, key: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        self.find(py, &Bytes::new(key.clone())?)?.ok_or_else(|| missing(key))
    }

    /// The value of a key, or the default.
    #[pyo3(signature = (key, default=None, /))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Bytes<'py>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.find(py, &key)?.map(Bound::into_any).or(default))
    }

    /// The value of a key, to be read in pieces; None if there is none.
    #[pyo3(signature = (key, /))]
    fn _reader(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<Option<ValueReader>> {
        let key = key.get();
        let reader = self.view.read(py, |view| Ok(view.reader(key)?))?;
        let reader = reader.map(|reader| ValueReader::new(self.view.scope(), reader)).transpose();
        reader.map_err(|failure| failure.raise(py))
    }

    /// Whether the value of a key is known without waiting for a device, and the value, or None.
    #[pyo3(signature = (key, /))]
    fn get_cached<'py>(
        &self,
        py: Python<'py>,
        key: Bytes<'py>,
    ) -> PyResult<(bool, Option<Bound<'py, PyBytes>>)> {
        let key = key.get();
        Ok(match self.view.at_once(py, |view| Ok(view.get_cached(key)?))? {
            Cached::Known(value) => (true, value.map(|value| PyBytes::new(py, &value))),
            Cached::Unknown => (false, None),
        })
    }

    fn __contains__(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<bool> {
        let key = key.get();
        self.view.read(py, |view| Ok(view.contains(key)?))
    }

    /// The number of keys. Takes time proportional to that number.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let keys = self.view.detached(py, |view| Ok(view.count(..)?))?;
        usize::try_from(keys).map_err(|_| PyOverflowError::new_err("more keys than addresses"))
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        self.view.read(py, |view| Ok(view.first()?.is_some()))
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Range> {
        self.range(py, None, None, None, false, true)
    }

    fn __reversed__(&self, py: Python<'_>) -> PyResult<Range> {
        self.range(py, None, None, None, true, true)
    }

    /// Iterates over the pairs of a range in the order of their keys: from start up to, but without, stop,
    /// and only keys that begin with prefix. Each argument may be omitted. reverse=True iterates backwards,
    /// keys_only=True returns keys without values.
    ///
    /// The iteration fetches some pairs ahead.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None, reverse=false, keys_only=false))]
    fn range(
        &self,
        py: Python<'_>,
        start: Option<Bytes<'_>>,
        stop: Option<Bytes<'_>>,
        prefix: Option<Bytes<'_>>,
        reverse: bool,
        keys_only: bool,
    ) -> PyResult<Range> {
        Range::new(py, &self.view, key_range(start, stop, prefix), reverse, keys_only)
    }

    /// The number of keys in a range, with the arguments of range(). Takes time proportional to that number.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None))]
    fn count(
        &self,
        py: Python<'_>,
        start: Option<Bytes<'_>>,
        stop: Option<Bytes<'_>>,
        prefix: Option<Bytes<'_>>,
    ) -> PyResult<u64> {
        let bounds = key_range(start, stop, prefix);
        self.view.detached(py, |view| Ok(view.count(bounds)?))
    }

    /// The number of keys in a range and the bytes that they take, about, with the arguments of range(). Does not
    /// read them, so it is fast for any range. In memory a number of many keys is off by 2 % on average. On disk it
    /// is exact if all is in tables and no key was replaced or deleted since they were merged.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None))]
    fn approximate(
        &self,
        py: Python<'_>,
        start: Option<Bytes<'_>>,
        stop: Option<Bytes<'_>>,
        prefix: Option<Bytes<'_>>,
    ) -> PyResult<(u64, u64)> {
        let bounds = key_range(start, stop, prefix);
        let about = self.view.detached(py, |view| Ok(view.approximate(bounds)?))?;
        Ok((about.keys, about.bytes))
    }

    /// The first pairs of many ranges, as a list for each: at most limit pairs, from a start up to, but without, a
    /// stop; None is no bound. keys_only=True returns keys without values. Faster than an iteration over each range,
    /// because waits overlap.
    #[pyo3(signature = (ranges, limit, *, keys_only=false))]
    fn multi_scan<'py>(
        &self,
        py: Python<'py>,
        ranges: Vec<(Option<Bytes<'py>>, Option<Bytes<'py>>)>,
        limit: usize,
        keys_only: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let results = PyList::empty(py);
        for ranges in ranges.chunks(RANGES) {
            let bounds = |bound: &Option<Bytes<'_>>| bound.as_ref().map(|bound| bound.get().to_vec());
            let ranges: Vec<_> = ranges.iter().map(|(start, stop)| (bounds(start), bounds(stop))).collect();
            let found = self.view.detached(py, move |view| {
                let ranges: Vec<_> = ranges
                    .iter()
                    .map(|(start, stop)| {
                        let start = start.as_ref().map_or(Unbounded, Included);
                        (start, stop.as_ref().map_or(Unbounded, Excluded))
                    })
                    .collect();
                let mut found: Vec<Vec<(Vec<u8>, Vec<u8>)>> = vec![Vec::new(); ranges.len()];
                let mut see = |range: usize, key: &[u8], value: &[u8]| {
                    found[range].push((key.to_vec(), value.to_vec()));
                    ControlFlow::Continue(())
                };
                if keys_only {
                    view.multi_scan_keys(&ranges, limit, |range, key| see(range, key, &[]))?;
                } else {
                    view.multi_scan(&ranges, limit, see)?;
                }
                Ok(found)
            })?;
            for pairs in found {
                let list = PyList::empty(py);
                for (key, value) in pairs {
                    let key = PyBytes::new(py, &key);
                    if keys_only {
                        list.append(key)?;
                    } else {
                        list.append((key, PyBytes::new(py, &value)))?;
                    }
                }
                results.append(list)?;
            }
            py.check_signals()?;
        }
        Ok(results)
    }

    /// For each prefix, whether there is a key that begins with it. Waits overlap.
    #[pyo3(signature = (prefixes, /))]
    fn prefixes_exist(&self, py: Python<'_>, prefixes: Vec<Bytes<'_>>) -> PyResult<Vec<bool>> {
        let prefixes: Vec<_> = prefixes.iter().map(|prefix| prefix.get().to_vec()).collect();
        self.view.detached(py, move |view| Ok(view.prefixes_exist(&prefixes)?))
    }

    /// The values of many keys, in the order of keys; None for each missing key. Faster than single reads.
    /// Keys may be read at different moments; to read all at one moment, use a snapshot.
    #[pyo3(signature = (keys, /))]
    fn get_many<'py>(&self, py: Python<'py>, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let values = PyList::empty(py);
        let mut keys = keys.try_iter()?;
        loop {
            let chunk =
                keys.by_ref().take(CHUNK).map(|key| Bytes::new(key?)).collect::<PyResult<Vec<_>>>()?;
            let last = chunk.len() < CHUNK;
            let keys: Vec<&[u8]> = chunk.iter().map(Bytes::get).collect();
            for value in self.view.detached(py, |view| Ok(view.multi_get(&keys)?))? {
                values.append(value.map(|value| PyBytes::new(py, &value)))?;
            }
            if last {
                return Ok(values);
            }
            py.check_signals()?;
        }
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let view = slf.get();
        let state = if view.scope().is_closed() { ", closed" } else { "" };
        Ok(format!("<{} {}{state}>", slf.get_type().name()?, view.told))
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<()> {
        let name = slf.get_type().name()?;
        Err(PyTypeError::new_err(format!(
            "a {name} cannot be pickled, because it is open in this process; another one opens the store by its URL"
        )))
    }
}

//! [`Keyspace`]: one ordered map of a store, and all its changes.

use crate::argument::{Bytes, Given, key_range, pair};
use crate::failure::Failure;
use crate::options::{COMPRESSION, choose};
use crate::scope::{Part, Scope};
use crate::view::{View, missing};
use forrest::{Swap, WriteBatch};
use forrest_base::lock;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

/// A group of pairs that are written together is full at this number of bytes or pairs.
pub(crate) const GROUP_BYTES: usize = 64 << 10;
pub(crate) const GROUP_PAIRS: usize = 4096;

/// Copies of pairs, one after the other. They are copied as they come, while they are in the processor's caches.
#[derive(Default)]
struct Group {
    bytes: Vec<u8>,
    /// The end of each pair's key and of its value in `bytes`.
    ends: Vec<(usize, usize)>,
}

impl Group {
    fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, self.bytes.len()));
    }

    fn is_full(&self) -> bool {
        self.bytes.len() >= GROUP_BYTES || self.ends.len() >= GROUP_PAIRS
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn pairs(&self) -> impl Iterator<Item = (&[u8], &[u8])> + Clone {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|(_, end)| *end));
        starts
            .zip(&self.ends)
            .map(|(start, (key_end, end))| (&self.bytes[start..*key_end], &self.bytes[*key_end..*end]))
    }
}

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

    /// The library's handle to the keyspace, if the store is open.
    pub(crate) fn space(&self, py: Python<'_>) -> PyResult<&Part<forrest::Keyspace>> {
        self.scope().check().map_err(|failure| failure.raise(py))?;
        Ok(&self.space)
    }

    /// The library's handle to the keyspace. Do not keep it outside of a [`Part`].
    pub(crate) fn handle(&self, py: Python<'_>) -> PyResult<forrest::Keyspace> {
        self.space.at_once(py, |space| Ok(space.clone()))
    }

    /// Sets pairs in order, detached from the interpreter: on disk and in the kernel as a batch, which is faster.
    /// `before` is the number of pairs that the call has set already, for the error.
    pub(crate) fn put<'p>(
        &self,
        py: Python<'_>,
        pairs: impl Iterator<Item = (&'p [u8], &'p [u8])> + Clone + Send,
        before: usize,
    ) -> PyResult<()> {
        let set_all = |db: &forrest::Db, space: &forrest::Keyspace| {
            if db.capabilities().home() != "memory:" {
                let mut batch = WriteBatch::new();
                let mut on = batch.on(space);
                pairs.clone().for_each(|(key, value)| {
                    on.set(key, value);
                });
                if db.write(batch).is_ok() {
                    return Ok(());
                }
                // The batch has set nothing. Set the pairs before the one that fails.
            }
            for (at, (key, value)) in pairs.enumerate() {
                space.set(key, value).map_err(|error| Failure::Store(error, Some(before + at)))?;
            }
            Ok(())
        };
        self.store.detached(py, |db| self.space.with(|space| set_all(db, space)))
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

    /// Sets many keys, from tuples of a key and a value, in order. On disk and in the kernel groups of them are written
    /// as batches, which is faster. If one fails, those before it stay set. Use batch() for changes that are applied
    /// together or not at all.
    #[pyo3(signature = (pairs, /))]
    fn put_many(&self, py: Python<'_>, pairs: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut group = Group::default();
        let mut put = 0;
        for item in pairs.try_iter()? {
            match item.and_then(|item| pair(&item)) {
                Ok((key, value)) => group.push(key.get(), value.get()),
                Err(wrong) => return self.put(py, group.pairs(), put).and(Err(wrong)),
            }
            if group.is_full() {
                self.put(py, group.pairs(), put)?;
                put += group.ends.len();
                group.clear();
                py.check_signals()?;
            }
        }
        self.put(py, group.pairs(), put)
    }

    /// Sets many keys at one instant, from tuples of a key and a value in ascending order of the keys, each once, and
    /// returns their number. On disk this is the fastest way to load a million pairs or more: they become tables, and
    /// survive a loss of power when this returns. If it raises an exception, none is set. Raises UnsupportedError in
    /// the kernel.
    #[pyo3(signature = (pairs, /))]
    fn ingest(&self, py: Python<'_>, pairs: &Bound<'_, PyAny>) -> PyResult<u64> {
        let begun = self.space.detached(py, |space| Ok(space.ingest()?))?;
        let ingest = Part::new(self.scope(), Mutex::new(Some(begun))).map_err(|failure| failure.raise(py))?;
        let ended = || Failure::Invalid("this ingest has ended".into());
        let mut put = 0;
        let mut put_all = |group: &mut Group| -> PyResult<()> {
            ingest.detached(py, |ingest| {
                let mut ingest = lock(ingest);
                let ingest = ingest.as_mut().ok_or_else(ended)?;
                group.pairs().enumerate().try_for_each(|(at, (key, value))| {
                    ingest.put(key, value).map_err(|error| Failure::Ingest(error, put + at))
                })
            })?;
            put += group.ends.len();
            group.clear();
            py.check_signals()
        };
        let mut group = Group::default();
        for item in pairs.try_iter()? {
            let item = item?;
            let (key, value) = pair(&item)?;
            group.push(key.get(), value.get());
            if group.is_full() {
                put_all(&mut group)?;
            }
        }
        put_all(&mut group)?;
        ingest.detached(py, |ingest| {
            let ingest = lock(ingest).take();
            Ok(ingest.ok_or_else(ended)?.finish()?)
        })
    }

    /// Adds to a counter and returns its new value. A counter is a value of 8 bytes, a big-endian signed
    /// integer. A missing key counts as 0.
    #[pyo3(signature = (key, delta, /))]
    fn add(&self, py: Python<'_>, key: Bytes<'_>, delta: i64) -> PyResult<i64> {
        let key = key.get();
        self.space.detached(py, |space| Ok(space.add(key, delta)?))
    }

    /// Gives an operand to the merge operator of the keyspace, which makes a new value of it and the old one, as one
    /// change.
    #[pyo3(signature = (key, operand, /))]
    fn merge(&self, py: Python<'_>, key: Bytes<'_>, operand: Bytes<'_>) -> PyResult<()> {
        let (key, operand) = (key.get(), operand.get());
        self.space.detached(py, |space| Ok(space.merge(key, operand)?))
    }

    /// Sets the value of a key for a time to live, in seconds. From then on the key counts as absent. Every later
    /// change of the key decides anew: it gives it the time to live of the keyspace (set_ttl), or none.
    #[pyo3(signature = (key, value, ttl, /))]
    fn set_with_ttl(&self, py: Python<'_>, key: Bytes<'_>, value: Bytes<'_>, ttl: f64) -> PyResult<()> {
        let (key, value, ttl) = (key.get(), value.get(), time_to_live(py, ttl)?);
        self.space.detached(py, |space| Ok(space.set_with_ttl(key, value, ttl)?))
    }

    /// When the value of a key expires, in seconds since 1970; None if it does not, or if there is none.
    #[pyo3(signature = (key, /))]
    fn expires(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<Option<f64>> {
        let key = key.get();
        let expires = self.space.detached(py, |space| Ok(space.expires(key)?))?;
        Ok(expires.and_then(|at| Some(at.duration_since(UNIX_EPOCH).ok()?.as_secs_f64())))
    }

    /// The time to live of values that are set without one, in seconds; None if they stay.
    #[getter]
    fn ttl(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        self.space.detached(py, |space| Ok(space.ttl().map(|ttl| ttl.as_secs_f64())))
    }

    /// Chooses the time to live of all values that the keyspace gets from now on without one of their own, in seconds;
    /// None if they are to stay. Values that are there keep their time.
    #[pyo3(signature = (seconds, /))]
    fn set_ttl(&self, py: Python<'_>, seconds: Option<f64>) -> PyResult<()> {
        let ttl = seconds.map(|seconds| time_to_live(py, seconds)).transpose()?;
        self.space.detached(py, |space| Ok(space.set_ttl(ttl)?))
    }

    /// The name of the keyspace's merge operator, or None.
    #[getter]
    fn merge_operator(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.space.detached(py, |space| Ok(space.merge_operator()))
    }

    /// Chooses the merge operator of an empty keyspace, for ever: "sum" (integers of 8 bytes, as add() stores them),
    /// "max" or "min" (in the order of bytes), "append", or "union" (items in ascending order, each after its length
    /// as a little-endian number of 4 bytes).
    #[pyo3(signature = (name, /))]
    fn set_merge_operator(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.space.detached(py, |space| Ok(space.set_merge_operator(name)?))
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

    /// Removes all keys of a range, with the arguments of range(). count() returns their number. It is one change, and
    /// happens at one instant. On disk it takes the same time, log and memory for any number of keys.
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

    /// The compression of the tables that the keyspace gets from now on: "none", "lz4" or "zstd".
    #[getter]
    fn compression(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.space.detached(py, |space| Ok(space.compression().as_str()))
    }

    /// Chooses the compression of the tables that the keyspace gets from now on: "none", "lz4", or "zstd" if it is
    /// compiled in. The store remembers it. Raises UnsupportedError in homes without tables.
    #[pyo3(signature = (compression, /))]
    fn set_compression(&self, py: Python<'_>, compression: &str) -> PyResult<()> {
        let compression = choose(py, "compression", COMPRESSION, compression)?;
        self.space.detached(py, |space| Ok(space.set_compression(compression)?))
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

    /// Removes all keys, as delete_range() does. The keyspace stays.
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

/// A time to live from seconds.
pub(crate) fn time_to_live(py: Python<'_>, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        let message = format!("a time to live of {seconds} seconds: give a number from 0 on");
        Failure::Invalid(message).raise(py)
    })
}

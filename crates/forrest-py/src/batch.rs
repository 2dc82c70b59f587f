//! [`Batch`]: changes that are applied together or not at all.

use crate::argument::{Bytes, key_range};
use crate::failure::Failure;
use crate::keyspace::{Keyspace, time_to_live};
use crate::options::{DURABILITY, choose};
use crate::scope::Part;
use forrest::{On, WriteBatch, WriteOptions, Written};
use forrest_base::lock;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyAny;
use std::sync::{Mutex, MutexGuard};

/// Changes, in order, that are applied at one instant, when the with block ends or by write(): every reader
/// sees all of them or none. If an exception leaves the block, none is applied. The batch copies keys and
/// values. Each change may name a keyspace; the default is the one that the batch was made from.
#[pyclass(module = "forrest", frozen, mapping)]
pub(crate) struct Batch {
    open: Part<Open>,
    options: WriteOptions,
}

struct Open {
    db: forrest::Db,
    default: forrest::Keyspace,
    batch: Mutex<WriteBatch>,
}

impl Open {
    /// INVARIANT: nothing that waits runs under this lock.
    fn batch(&self) -> MutexGuard<'_, WriteBatch> {
        lock(&self.batch)
    }
}

impl Batch {
    fn take_and_write(&self, open: &Open) -> forrest::Result<Written> {
        let batch = std::mem::take(&mut *open.batch());
        open.db.try_write_with(batch, &self.options)
    }

    fn push(
        &self,
        py: Python<'_>,
        keyspace: Option<&Keyspace>,
        push: impl FnOnce(&mut On<'_>),
    ) -> PyResult<()> {
        let space = keyspace.map(|keyspace| keyspace.space(py)).transpose()?;
        self.open.at_once(py, |open| {
            let run = |space: &forrest::Keyspace| {
                push(&mut open.batch().on(space));
                Ok(())
            };
            match space {
                Some(space) => space.with(run),
                None => run(&open.default),
            }
        })
    }
}

#[pymethods]
impl Batch {
    #[new]
    #[pyo3(signature = (keyspace, *, durability=None))]
    fn new(py: Python<'_>, keyspace: &Keyspace, durability: Option<&str>) -> PyResult<Batch> {
        let durability = durability.map(|word| choose(py, "durability", DURABILITY, word)).transpose()?;
        let db = keyspace.store().at_once(py, |db| Ok(db.clone()))?;
        let open = Open { db, default: keyspace.handle(py)?, batch: Mutex::default() };
        let open = Part::new(keyspace.scope(), open).map_err(|failure| failure.raise(py))?;
        Ok(Batch { open, options: WriteOptions::new().durability(durability) })
    }

    fn __setitem__(&self, py: Python<'_>, key: Bytes<'_>, value: Bytes<'_>) -> PyResult<()> {
        self.set(py, key, value, None)
    }

    fn __delitem__(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<()> {
        self.delete(py, key, None)
    }

    /// Adds a change that sets the value of a key.
    #[pyo3(signature = (key, value, *, keyspace=None))]
    fn set(
        &self,
        py: Python<'_>,
        key: Bytes<'_>,
        value: Bytes<'_>,
        keyspace: Option<&Keyspace>,
    ) -> PyResult<()> {
        self.push(py, keyspace, |batch| {
            batch.set(key.get(), value.get());
        })
    }

    /// Adds a change that sets the value of a key for a time to live, in seconds from the time on at which the batch is
    /// applied. See Keyspace.set_with_ttl.
    #[pyo3(signature = (key, value, ttl, *, keyspace=None))]
    fn set_with_ttl(
        &self,
        py: Python<'_>,
        key: Bytes<'_>,
        value: Bytes<'_>,
        ttl: f64,
        keyspace: Option<&Keyspace>,
    ) -> PyResult<()> {
        let ttl = time_to_live(py, ttl)?;
        self.push(py, keyspace, |batch| {
            batch.set_with_ttl(key.get(), value.get(), ttl);
        })
    }

    /// Adds a change that removes a key, if it exists.
    #[pyo3(signature = (key, *, keyspace=None))]
    fn delete(&self, py: Python<'_>, key: Bytes<'_>, keyspace: Option<&Keyspace>) -> PyResult<()> {
        self.push(py, keyspace, |batch| {
            batch.delete(key.get());
        })
    }

    /// Adds a change that adds to a counter, like add() of a keyspace. If the addition fails, so does the
    /// whole batch.
    #[pyo3(signature = (key, delta, *, keyspace=None))]
    fn add(&self, py: Python<'_>, key: Bytes<'_>, delta: i64, keyspace: Option<&Keyspace>) -> PyResult<()> {
        self.push(py, keyspace, |batch| {
            batch.add(key.get(), delta);
        })
    }

    /// Adds a change that gives an operand to the merge operator, like merge() of a keyspace. If the operator refuses
    /// it, the whole batch fails.
    #[pyo3(signature = (key, operand, *, keyspace=None))]
    fn merge(
        &self,
        py: Python<'_>,
        key: Bytes<'_>,
        operand: Bytes<'_>,
        keyspace: Option<&Keyspace>,
    ) -> PyResult<()> {
        self.push(py, keyspace, |batch| {
            batch.merge(key.get(), operand.get());
        })
    }

    /// Adds a change that replaces the value of a key if it is the expected one. On a mismatch nothing of the
    /// batch is applied, and write() raises ConditionFailedError.
    #[pyo3(signature = (key, expected, new, *, keyspace=None))]
    fn compare_and_swap(
        &self,
        py: Python<'_>,
        key: Bytes<'_>,
        expected: Option<Bytes<'_>>,
        new: Option<Bytes<'_>>,
        keyspace: Option<&Keyspace>,
    ) -> PyResult<()> {
        let (expected, new) = (expected.as_ref().map(Bytes::get), new.as_ref().map(Bytes::get));
        self.push(py, keyspace, |batch| {
            batch.compare_and_swap(key.get(), expected, new);
        })
    }

    /// Adds the condition that a range has exactly these pairs, in ascending order; the range has the arguments of
    /// range() of a keyspace. Such conditions stand before all changes of the batch. If one does not hold, nothing of
    /// the batch is applied, and write() raises ConditionFailedError with the first key that differs.
    #[pyo3(signature = (pairs, start=None, stop=None, *, prefix=None, keyspace=None))]
    fn compare_range(
        &self,
        py: Python<'_>,
        pairs: Vec<(Bytes<'_>, Bytes<'_>)>,
        start: Option<Bytes<'_>>,
        stop: Option<Bytes<'_>>,
        prefix: Option<Bytes<'_>>,
        keyspace: Option<&Keyspace>,
    ) -> PyResult<()> {
        let bounds = key_range(start, stop, prefix);
        self.push(py, keyspace, |batch| {
            batch.compare_range(bounds, pairs.iter().map(|(key, value)| (key.get(), value.get())));
        })
    }

    /// Adds a change that removes all keys of a range, with the arguments of range() of a keyspace.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None, keyspace=None))]
    fn delete_range(
        &self,
        py: Python<'_>,
        start: Option<Bytes<'_>>,
        stop: Option<Bytes<'_>>,
        prefix: Option<Bytes<'_>>,
        keyspace: Option<&Keyspace>,
    ) -> PyResult<()> {
        let bounds = key_range(start, stop, prefix);
        self.push(py, keyspace, |batch| {
            batch.delete_range(bounds);
        })
    }

    /// The number of changes.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.open.at_once(py, |open| Ok(open.batch().len()))
    }

    /// Removes all changes from the batch.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.open.at_once(py, |open| {
            open.batch().clear();
            Ok(())
        })
    }

    /// Applies all changes at one instant, or none if it raises an exception. ConditionFailedError if a
    /// comparison finds another value than the expected one. In each case the batch is empty afterwards.
    fn write(&self, py: Python<'_>) -> PyResult<()> {
        self.open.detached(py, |open| match self.take_and_write(open)? {
            Written::Mismatch { op, found } => Err(Failure::Mismatch(op, found)),
            Written::Applied => Ok(()),
            other => unreachable!("a batch came to {other:?}"),
        })
    }

    /// Like write(), but returns False if a comparison finds another value than the expected one, and True if
    /// the changes were applied.
    fn try_write(&self, py: Python<'_>) -> PyResult<bool> {
        self.open.detached(py, |open| Ok(self.take_and_write(open)?.is_applied()))
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (exception_type, exception, traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        exception_type: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let _ = (exception, traceback);
        if exception_type.is_none() { self.write(py) } else { self.clear(py) }
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a Batch cannot be pickled, because it belongs to a store that is open in this process",
        ))
    }
}

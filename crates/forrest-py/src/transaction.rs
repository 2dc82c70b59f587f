//! [`Transaction`]: reads and changes that happen at one instant, if the values that were read still hold
//! then.

use crate::argument::Bytes;
use crate::failure::Failure;
use crate::keyspace::Keyspace;
use crate::options::{DURABILITY, choose};
use crate::scope::Part;
use crate::view::missing;
use forrest::{Committed, Draft, WriteOptions};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyBytes};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Reads and changes that happen at one instant, when the with block ends or by commit(), if the values that
/// were read are unchanged. Otherwise nothing is changed, and ConflictError is raised; transact() of a
/// keyspace runs a function again then. If another exception leaves the block, nothing is changed either.
/// Before the commit the changes are invisible, and two reads may see the store at different moments. A
/// transaction reads single keys, not ranges. Each call may name a keyspace; the default is the one that the
/// transaction was made from. After its end, the object begins a new transaction.
#[pyclass(module = "forrest", frozen, mapping)]
pub(crate) struct Transaction {
    open: Part<Open>,
    options: WriteOptions,
}

struct Open {
    db: forrest::Db,
    default: forrest::Keyspace,
    running: Mutex<forrest::Transaction>,
}

impl Open {
    /// INVARIANT: a thread that holds this lock may read from the store, but does not wait for the
    /// interpreter.
    fn running(&self) -> MutexGuard<'_, forrest::Transaction> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a new transaction, and returns the old one.
    fn end(&self) -> forrest::Transaction {
        std::mem::replace(&mut *self.running(), self.db.transaction())
    }
}

/// Makes a conflict a failure.
fn done(committed: Committed) -> Result<(), Failure> {
    match committed {
        Committed::Conflict { keyspace, key } => Err(Failure::Conflict(keyspace, key)),
        Committed::Done => Ok(()),
        other => unreachable!("a transaction came to {other:?}"),
    }
}

impl Transaction {
    /// Runs `work` on the draft of a keyspace.
    fn draft<R: Send>(
        &self,
        py: Python<'_>,
        keyspace: Option<&Keyspace>,
        work: impl FnOnce(&mut Draft) -> forrest::Result<R> + Send,
    ) -> PyResult<R> {
        let keyspace = keyspace.map(|keyspace| keyspace.handle(py)).transpose()?;
        self.open.read(py, |open| Ok(work(open.running().on(keyspace.as_ref().unwrap_or(&open.default)))?))
    }

    fn find<'py>(
        &self,
        py: Python<'py>,
        key: &Bytes<'_>,
        keyspace: Option<&Keyspace>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let key = key.get();
        let found = self.draft(py, keyspace, |draft| draft.get(key))?;
        Ok(found.map(|value| PyBytes::new(py, &value)))
    }
}

#[pymethods]
impl Transaction {
    #[new]
    #[pyo3(signature = (keyspace, *, durability=None))]
    fn new(py: Python<'_>, keyspace: &Keyspace, durability: Option<&str>) -> PyResult<Transaction> {
        let durability = durability.map(|word| choose(py, "durability", DURABILITY, word)).transpose()?;
        let db = keyspace.store().at_once(py, |db| Ok(db.clone()))?;
        let running = Mutex::new(db.transaction());
        let open = Open { db, default: keyspace.handle(py)?, running };
        let open = Part::new(keyspace.scope(), open).map_err(|failure| failure.raise(py))?;
        Ok(Transaction { open, options: WriteOptions::new().durability(durability) })
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        self.find(py, &Bytes::new(key.clone())?, None)?.ok_or_else(|| missing(key))
    }

    fn __contains__(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<bool> {
        Ok(self.find(py, &key, None)?.is_some())
    }

    fn __setitem__(&self, py: Python<'_>, key: Bytes<'_>, value: Bytes<'_>) -> PyResult<()> {
        self.set(py, key, value, None)
    }

    fn __delitem__(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<()> {
        self.delete(py, key, None)
    }

    /// The value of a key, or the default: the transaction's own change, or else the value in the store. The
    /// latter must be unchanged when the transaction is committed.
    #[pyo3(signature = (key, default=None, /, *, keyspace=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Bytes<'py>,
        default: Option<Bound<'py, PyAny>>,
        keyspace: Option<&Keyspace>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.find(py, &key, keyspace)?.map(Bound::into_any).or(default))
    }

    /// Sets the value of a key.
    #[pyo3(signature = (key, value, *, keyspace=None))]
    fn set(
        &self,
        py: Python<'_>,
        key: Bytes<'_>,
        value: Bytes<'_>,
        keyspace: Option<&Keyspace>,
    ) -> PyResult<()> {
        let (key, value) = (key.get(), value.get());
        self.draft(py, keyspace, |draft| draft.set(key, value))
    }

    /// Removes a key, if it exists.
    #[pyo3(signature = (key, *, keyspace=None))]
    fn delete(&self, py: Python<'_>, key: Bytes<'_>, keyspace: Option<&Keyspace>) -> PyResult<()> {
        let key = key.get();
        self.draft(py, keyspace, |draft| draft.delete(key))
    }

    /// Adds to a counter, like add() of a keyspace. This is not a read: transactions that only add to the
    /// same counter are not in conflict.
    #[pyo3(signature = (key, delta, *, keyspace=None))]
    fn add(&self, py: Python<'_>, key: Bytes<'_>, delta: i64, keyspace: Option<&Keyspace>) -> PyResult<()> {
        let key = key.get();
        self.draft(py, keyspace, |draft| draft.add(key, delta))
    }

    /// Applies all changes at one instant, if every value that was read is still the current one at that
    /// instant. Otherwise changes nothing and raises ConflictError.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        self.open.detached(py, |open| done(open.end().commit_with(&self.options)?))
    }

    /// Discards the changes, and raises ConflictError unless all values that were read existed at one
    /// instant. Call it before you rely on these values.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.open.detached(py, |open| done(open.end().check()?))
    }

    /// Discards all reads and changes.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        self.open.read(py, |open| {
            drop(open.end());
            Ok(())
        })
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
        if exception_type.is_none() { self.commit(py) } else { self.rollback(py) }
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a Transaction cannot be pickled, because it belongs to a store that is open in this process",
        ))
    }
}

//! [`Transaction`]: reads and changes that take place at one instant, if what was read still holds then.

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

/// Reads and changes that take place at one instant when the with block ends, or by commit(), if what was read is still
/// so. If it is not, none is made, and ConflictError is raised: transact() of a keyspace runs a function again then. If
/// the block is left by another exception, none is made either. Until it is committed, nobody sees the changes, and two
/// reads may be of two moments. Keys are read one by one. A keyspace may be named for each call; the others are about
/// the one that the transaction came from. It begins anew when it has ended.
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
    /// INVARIANT: who holds this lock may read from the store, but does not wait for the interpreter.
    fn running(&self) -> MutexGuard<'_, forrest::Transaction> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins anew; what ran until now.
    fn end(&self) -> forrest::Transaction {
        std::mem::replace(&mut *self.running(), self.db.transaction())
    }
}

/// A conflict is an exception.
fn done(committed: Committed) -> Result<(), Failure> {
    match committed {
        Committed::Done => Ok(()),
        Committed::Conflict { keyspace, key } => Err(Failure::Conflict(keyspace, key)),
    }
}

impl Transaction {
    /// Does something with what the transaction has of a keyspace.
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
        Ok(Transaction { open, options: WriteOptions { durability } })
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

    /// The value of a key, or the default: what the transaction has made of it, or what is in the store, and must still
    /// be when the transaction is committed.
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

    /// Will map a key to a value.
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

    /// Will remove a key, if it is there.
    #[pyo3(signature = (key, *, keyspace=None))]
    fn delete(&self, py: Python<'_>, key: Bytes<'_>, keyspace: Option<&Keyspace>) -> PyResult<()> {
        let key = key.get();
        self.draft(py, keyspace, |draft| draft.delete(key))
    }

    /// Will add to a counter, as add() of a keyspace does. It is not read by that: transactions that only add to a
    /// counter are not in conflict for it.
    #[pyo3(signature = (key, delta, *, keyspace=None))]
    fn add(&self, py: Python<'_>, key: Bytes<'_>, delta: i64, keyspace: Option<&Keyspace>) -> PyResult<()> {
        let key = key.get();
        self.draft(py, keyspace, |draft| draft.add(key, delta))
    }

    /// Makes all changes at one instant, if what was read is there at that instant; otherwise none, and ConflictError
    /// is raised.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        self.open.detached(py, |open| done(open.end().commit_with(&self.options)?))
    }

    /// Makes no changes, and raises ConflictError if what was read was not all there at one instant: before something
    /// else is done because of it.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.open.detached(py, |open| done(open.end().check()?))
    }

    /// Forgets what was read and changed.
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

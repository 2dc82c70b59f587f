//! [`Snapshot`]: one state of all keyspaces, with the view of one of them.

use crate::db::Db;
use crate::failure::Failure;
use crate::keyspace::Keyspace;
use crate::scope::{Part, Scope};
use crate::view::View;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyAny;
use std::sync::Arc;

/// One state of a store, with the view of one keyspace.
#[pyclass(module = "forrest", extends = View, subclass, frozen)]
pub(crate) struct Snapshot {
    state: Arc<Part<forrest::Snapshot>>,
}

impl Snapshot {
    /// The library's snapshot.
    pub(crate) fn state(&self) -> &Part<forrest::Snapshot> {
        &self.state
    }

    /// Takes a snapshot of a store.
    fn take(py: Python<'_>, db: &Keyspace) -> PyResult<Arc<Part<forrest::Snapshot>>> {
        let snapshot = db.store().detached(py, |db| Ok(db.snapshot()?))?;
        let scope: Result<Arc<Scope>, Failure> = db.scope().inner("snapshot");
        let part = scope.and_then(|scope| Part::new(&scope, snapshot));
        part.map(Arc::new).map_err(|failure| failure.raise(py))
    }
}

#[pymethods]
impl Snapshot {
    /// A new snapshot of a store, or a view of another keyspace in an existing snapshot.
    #[new]
    #[pyo3(signature = (of, name="default"))]
    fn new(of: &Bound<'_, PyAny>, name: &str) -> PyResult<PyClassInitializer<Snapshot>> {
        let py = of.py();
        let state = if let Ok(other) = of.cast::<Snapshot>() {
            other.get().state.clone()
        } else if let Ok(db) = of.cast::<Db>() {
            Snapshot::take(py, db.as_super().get())?
        } else {
            return Err(PyTypeError::new_err("a snapshot needs a Db"));
        };
        let view = state.detached(py, |snapshot| Ok(snapshot.keyspace(name)?))?;
        let view =
            View::new(state.scope(), &view, format!("{name:?}")).map_err(|failure| failure.raise(py))?;
        Ok(PyClassInitializer::from(view).add_subclass(Snapshot { state }))
    }

    /// Releases the state. This snapshot, its views of other keyspaces, and iterations over them raise
    /// InvalidArgumentError from then on. A second call does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let scope = self.state.scope();
        if scope.is_foreign() {
            return Err(Failure::Forked.raise(py));
        }
        py.detach(|| scope.close());
        Ok(())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(py)
    }

    /// The sequence number of the last change that it has: db.changes() after it returns those that it lacks. On disk.
    #[getter]
    fn sequence(&self, py: Python<'_>) -> PyResult<u64> {
        self.state.at_once(py, |snapshot| Ok(snapshot.sequence()?))
    }

    /// The names of the keyspaces that existed then, sorted.
    fn keyspaces(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.state.at_once(py, |snapshot| Ok(snapshot.keyspaces()?))
    }
}

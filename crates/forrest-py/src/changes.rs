//! [`Changes`]: what has happened to a store, as an iterator of [`Change`].

use crate::failure::Failure;
use crate::scope::{Part, Scope};
use forrest::What;
use forrest_base::lock;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How often a wait looks for signals.
const LOOK: Duration = Duration::from_millis(100);

/// One change of a store.
#[pyclass(module = "forrest", frozen)]
pub(crate) struct Change(forrest::Change);

#[pymethods]
impl Change {
    /// Its sequence number.
    #[getter]
    fn sequence(&self) -> u64 {
        self.0.sequence
    }

    /// The name of the keyspace that it concerns.
    #[getter]
    fn keyspace(&self) -> &str {
        &self.0.keyspace
    }

    /// What happened: "set", "set-until", "delete", "delete-range", "create-keyspace", "drop-keyspace" or "ingest".
    #[getter]
    fn what(&self) -> &'static str {
        match self.0.what {
            What::Set { .. } => "set",
            What::SetUntil { .. } => "set-until",
            What::Delete { .. } => "delete",
            What::DeleteRange { .. } => "delete-range",
            What::CreateKeyspace => "create-keyspace",
            What::DropKeyspace => "drop-keyspace",
            What::Ingest { .. } => "ingest",
            _ => "unknown",
        }
    }

    /// The key; of a range the first one. None if the change is of a whole keyspace.
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let key = match &self.0.what {
            What::Set { key, .. } | What::SetUntil { key, .. } | What::Delete { key } => key,
            What::DeleteRange { start: key, .. } | What::Ingest { first: key, .. } => key,
            _ => return None,
        };
        Some(PyBytes::new(py, key))
    }

    /// The value that was set; None for other changes.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        match &self.0.what {
            What::Set { value, .. } | What::SetUntil { value, .. } => Some(PyBytes::new(py, value)),
            _ => None,
        }
    }

    /// When the value of "set-until" expires, in seconds since 1970; None for other changes.
    #[getter]
    fn expires(&self) -> Option<f64> {
        match self.0.what {
            What::SetUntil { expires_ms, .. } => Some(Duration::from_millis(expires_ms).as_secs_f64()),
            _ => None,
        }
    }

    /// The end of a range: of "delete-range" the first key after it, or None; of "ingest" the last key in it.
    #[getter]
    fn end<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        match &self.0.what {
            What::DeleteRange { end: Some(end), .. } | What::Ingest { last: end, .. } => {
                Some(PyBytes::new(py, end))
            }
            _ => None,
        }
    }

    /// Whether it is the last of its batch.
    #[getter]
    fn ends_batch(&self) -> bool {
        self.0.ends_batch
    }

    fn __repr__(&self) -> String {
        format!("<forrest.Change {} of keyspace {:?}: {}>", self.0.sequence, self.0.keyspace, self.what())
    }
}

/// The changes of a store after a sequence number. An iteration returns those that there are by now, and may go on
/// later.
#[pyclass(module = "forrest", frozen)]
pub(crate) struct Changes(Part<Mutex<forrest::Changes>>);

impl Changes {
    pub(crate) fn of(scope: &Arc<Scope>, changes: forrest::Changes) -> Result<Changes, Failure> {
        Part::new(scope, Mutex::new(changes)).map(Changes)
    }
}

#[pymethods]
impl Changes {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Change>> {
        self.0.detached(py, |changes| {
            let mut changes = lock(changes);
            Ok(changes.next().transpose()?.map(Change))
        })
    }

    /// The next change. If there is none yet, waits for one, up to `timeout`, a timedelta, or for ever. Returns None if
    /// none came.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<Duration>) -> PyResult<Option<Change>> {
        let begin = Instant::now();
        loop {
            let left = timeout.map_or(LOOK, |most| most.saturating_sub(begin.elapsed()));
            let found = self.0.detached(py, |changes| {
                let mut changes = lock(changes);
                Ok(changes.next_within(left.min(LOOK))?)
            })?;
            if found.is_some() || left.is_zero() {
                return Ok(found.map(Change));
            }
            py.check_signals()?;
        }
    }

    /// The sequence number of the last change that was returned, where changes() goes on.
    #[getter]
    fn sequence(&self, py: Python<'_>) -> PyResult<u64> {
        self.0.detached(py, |changes| Ok(lock(changes).sequence()))
    }
}

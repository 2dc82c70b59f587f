//! [`salvage`]: what is intact of a damaged store on disk, as a new store; [`move_log`]: another place for a log.

use crate::failure::Failure;
use crate::watch::Watch;
use forrest::Loss;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;

/// A loss: the keyspace, the start and the end of the range, the file, and the reason.
type Lost<'py> = (String, Bound<'py, PyBytes>, Option<Bound<'py, PyBytes>>, String, String);

/// Copies a store, and returns its number of keyspaces, its number of pairs, and the losses. Calls `go_on` now and then
/// with the number of bytes that were read, and of all; ends if it returns False, or raises.
#[pyfunction]
#[pyo3(signature = (source, target, go_on, /))]
pub(crate) fn salvage(
    py: Python<'_>,
    source: PathBuf,
    target: PathBuf,
    go_on: Option<Py<PyAny>>,
) -> PyResult<(u64, u64, Vec<Lost<'_>>)> {
    let mut watch = Watch::new(go_on);
    let salvaged = py.detach(|| forrest::salvage_with(source, target, |progress| watch.see(progress)));
    let salvaged = watch.finish(salvaged.map_err(|error| Failure::from(error).raise(py)))?;
    let lost = salvaged.lost.into_iter().map(|loss| lost(py, loss)).collect();
    Ok((salvaged.keyspaces, salvaged.pairs, lost))
}

/// Moves the log of a store to another directory, or back into that of the store.
#[pyfunction]
#[pyo3(signature = (store, to, /))]
pub(crate) fn move_log(py: Python<'_>, store: PathBuf, to: Option<PathBuf>) -> PyResult<()> {
    let moved = py.detach(|| forrest::move_log(store, to.as_deref()));
    moved.map_err(|error| Failure::from(error).raise(py))
}

fn lost(py: Python<'_>, loss: Loss) -> Lost<'_> {
    let (start, stop) = loss.half_open();
    let stop = stop.map(|stop| PyBytes::new(py, &stop));
    (loss.keyspace, PyBytes::new(py, &start), stop, loss.file, loss.reason)
}

//! [`salvage`]: what is intact of a damaged store on disk, as a new store; [`move_log`]: another place for a log;
//! [`is_store`], [`destroy`], [`repair`]: a directory of a store.

use crate::failure::Failure;
use crate::options;
use crate::watch::Watch;
use forrest::{Loss, Salvaged, encrypted};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::path::PathBuf;

/// A loss: the keyspace, the start and the end of the range, the file, and the reason.
type Lost<'py> = (String, Bound<'py, PyBytes>, Option<Bound<'py, PyBytes>>, String, String);
/// The number of keyspaces, the number of pairs, and the losses.
type Copied<'py> = (u64, u64, Vec<Lost<'py>>);

/// Copies a store, and returns its number of keyspaces, its number of pairs, and the losses. Calls `go_on` now and then
/// with the number of bytes that were read, and of all; ends if it returns False, or raises.
#[pyfunction]
#[pyo3(signature = (source, key, target, go_on, /))]
pub(crate) fn salvage(
    py: Python<'_>,
    source: PathBuf,
    key: Option<PyBackedBytes>,
    target: PathBuf,
    go_on: Option<Py<PyAny>>,
) -> PyResult<Copied<'_>> {
    let key = options::perhaps_key(py, key)?;
    let mut watch = Watch::new(go_on);
    let salvaged =
        py.detach(|| encrypted::salvage(source, key.as_ref(), target, |progress| watch.see(progress)));
    let salvaged = watch.finish(salvaged.map_err(|error| Failure::from(error).raise(py)))?;
    Ok(copied(py, salvaged))
}

/// Moves the log of a store to another directory, or back into that of the store.
#[pyfunction]
#[pyo3(signature = (store, to, /))]
pub(crate) fn move_log(py: Python<'_>, store: PathBuf, to: Option<PathBuf>) -> PyResult<()> {
    let moved = py.detach(|| forrest::move_log(store, to.as_deref()));
    moved.map_err(|error| Failure::from(error).raise(py))
}

/// Whether a directory has files of a store.
#[pyfunction]
#[pyo3(signature = (path, /))]
pub(crate) fn is_store(py: Python<'_>, path: PathBuf) -> PyResult<bool> {
    py.detach(|| forrest::is_store(path)).map_err(|error| Failure::from(error).raise(py))
}

/// Removes a store.
#[pyfunction]
#[pyo3(signature = (path, /))]
pub(crate) fn destroy(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    py.detach(|| forrest::destroy(path)).map_err(|error| Failure::from(error).raise(py))
}

/// Repairs a store, and returns what `salvage` returns; None if all of it verifies.
#[pyfunction]
#[pyo3(signature = (path, /))]
pub(crate) fn repair(py: Python<'_>, path: PathBuf) -> PyResult<Option<Copied<'_>>> {
    let repaired = py.detach(|| forrest::repair(path)).map_err(|error| Failure::from(error).raise(py))?;
    Ok(repaired.map(|salvaged| copied(py, salvaged)))
}

fn copied(py: Python<'_>, salvaged: Salvaged) -> Copied<'_> {
    let lost = salvaged.lost.into_iter().map(|loss| lost(py, loss)).collect();
    (salvaged.keyspaces, salvaged.pairs, lost)
}

fn lost(py: Python<'_>, loss: Loss) -> Lost<'_> {
    let (start, stop) = loss.half_open();
    let stop = stop.map(|stop| PyBytes::new(py, &stop));
    (loss.keyspace, PyBytes::new(py, &start), stop, loss.file, loss.reason)
}

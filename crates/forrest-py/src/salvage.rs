//! [`salvage`]: what is intact of a damaged store on disk, as a new store.

use crate::failure::Failure;
use forrest::Loss;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;

/// A loss: the keyspace, the start and the end of the range, the file, and the reason.
type Lost<'py> = (String, Bound<'py, PyBytes>, Option<Bound<'py, PyBytes>>, String, String);

/// Copies a store, and returns its number of keyspaces, its number of pairs, and the losses.
#[pyfunction]
#[pyo3(signature = (source, target, /))]
pub(crate) fn salvage(
    py: Python<'_>,
    source: PathBuf,
    target: PathBuf,
) -> PyResult<(u64, u64, Vec<Lost<'_>>)> {
    let salvaged = py.detach(|| forrest::salvage(source, target));
    let salvaged = salvaged.map_err(|error| Failure::from(error).raise(py))?;
    let lost = salvaged.lost.into_iter().map(|loss| lost(py, loss)).collect();
    Ok((salvaged.keyspaces, salvaged.pairs, lost))
}

fn lost(py: Python<'_>, loss: Loss) -> Lost<'_> {
    let (start, stop) = loss.half_open();
    let stop = stop.map(|stop| PyBytes::new(py, &stop));
    (loss.keyspace, PyBytes::new(py, &start), stop, loss.file, loss.reason)
}

//! [`salvage`]: what is intact of a damaged store on disk, as a new store; [`move_log`]: another place for a log.

use crate::failure::Failure;
use forrest::Loss;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Time between two looks whether to go on.
const LOOK: Duration = Duration::from_millis(50);

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
    let (mut raised, mut looked) = (None, None::<Instant>);
    let salvaged = py.detach(|| {
        forrest::salvage_with(source, target, |progress| {
            if looked.is_some_and(|looked| looked.elapsed() < LOOK) {
                return ControlFlow::Continue(());
            }
            looked = Some(Instant::now());
            let ends = Python::attach(|py| -> PyResult<bool> {
                py.check_signals()?;
                let Some(go_on) = &go_on else { return Ok(false) };
                let answer = go_on.bind(py).call1((progress.done, progress.whole))?;
                Ok(answer.is(PyBool::new(py, false)))
            });
            match ends {
                Ok(false) => ControlFlow::Continue(()),
                Ok(true) => ControlFlow::Break(()),
                Err(error) => {
                    raised = Some(error);
                    ControlFlow::Break(())
                }
            }
        })
    });
    if let Some(error) = raised {
        return Err(error);
    }
    let salvaged = salvaged.map_err(|error| Failure::from(error).raise(py))?;
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

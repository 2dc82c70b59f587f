//! Whether this is the process that opened a store.
//!
//! A child made by `fork` has a copy of the memory, but not the threads that work in the background, and shares with its
//! parent the lock on a store's directory and memory on explicit huge pages. So nothing that was opened before a fork is
//! used in the child, and nothing of it is given back there either. Python tells of forks; those that it does not know of
//! are followed by no call of Python.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many forks there are between the first process and this one.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// How many forks there are between the first process and this one.
pub(crate) fn forks() -> u64 {
    // ORDERING: it changes only where there is one thread.
    FORKS.load(Ordering::Relaxed)
}

/// Has Python tell of forks.
pub(crate) fn watch(py: Python<'_>) -> PyResult<()> {
    let hooks = PyDict::new(py);
    hooks.set_item("after_in_child", wrap_pyfunction!(forked, py)?)?;
    py.import("os")?.call_method("register_at_fork", (), Some(&hooks))?;
    Ok(())
}

#[pyfunction]
fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

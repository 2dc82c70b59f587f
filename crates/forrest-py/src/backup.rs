//! Directories of backups: [`backups`], [`restore`], [`verify_backup`], [`prune`]. `Db.backup` adds one.

use crate::failure::Failure;
use crate::options;
use crate::watch::Watch;
use forrest::{Backup, Keep, encrypted};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

/// A backup: its number, its time in milliseconds since 1970, its bytes, those that were new, its number of files, and
/// its damage.
pub(crate) type Made = (u64, u64, u64, u64, u64, Option<String>);

/// The fields of a backup.
pub(crate) fn fields(backup: Backup) -> Made {
    let since = backup.time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let time = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
    (backup.id, time, backup.bytes, backup.new_bytes, backup.files, backup.damage)
}

/// Lists the backups of a directory.
#[pyfunction]
#[pyo3(signature = (directory, key, /))]
pub(crate) fn backups(py: Python<'_>, directory: PathBuf, key: Option<PyBackedBytes>) -> PyResult<Vec<Made>> {
    let key = options::perhaps_key(py, key)?;
    let listed = py.detach(|| encrypted::backups(directory, key.as_ref()));
    let listed = listed.map_err(|error| Failure::from(error).raise(py))?;
    Ok(listed.into_iter().map(fields).collect())
}

/// Makes a store of a backup.
#[pyfunction]
#[pyo3(signature = (directory, key, target, id, go_on, /))]
pub(crate) fn restore(
    py: Python<'_>,
    directory: PathBuf,
    key: Option<PyBackedBytes>,
    target: PathBuf,
    id: Option<u64>,
    go_on: Option<Py<PyAny>>,
) -> PyResult<Made> {
    let key = options::perhaps_key(py, key)?;
    let mut watch = Watch::new(go_on);
    let made =
        py.detach(|| encrypted::restore(directory, key.as_ref(), id, target, |progress| watch.see(progress)));
    watch.finish(made.map(fields).map_err(|error| Failure::from(error).raise(py)))
}

/// Reads and checks a backup.
#[pyfunction]
#[pyo3(signature = (directory, key, id, go_on, /))]
pub(crate) fn verify_backup(
    py: Python<'_>,
    directory: PathBuf,
    key: Option<PyBackedBytes>,
    id: Option<u64>,
    go_on: Option<Py<PyAny>>,
) -> PyResult<Made> {
    let key = options::perhaps_key(py, key)?;
    let mut watch = Watch::new(go_on);
    let read =
        py.detach(|| encrypted::verify_backup(directory, key.as_ref(), id, |progress| watch.see(progress)));
    watch.finish(read.map(fields).map_err(|error| Failure::from(error).raise(py)))
}

/// Removes backups but for a number of the newest ones, or those since a time in milliseconds.
#[pyfunction]
#[pyo3(signature = (directory, key, newest, since, /))]
pub(crate) fn prune(
    py: Python<'_>,
    directory: PathBuf,
    key: Option<PyBackedBytes>,
    newest: Option<u64>,
    since: Option<u64>,
) -> PyResult<(Vec<u64>, u64)> {
    let since = since.map(|since| UNIX_EPOCH.checked_add(Duration::from_millis(since)));
    let keep = match (newest, since) {
        (_, Some(Some(since))) => Keep::Since(since),
        // A time that the system cannot have is after all backups.
        (newest, _) => Keep::Newest(newest.unwrap_or(1)),
    };
    let key = options::perhaps_key(py, key)?;
    let pruned = py.detach(|| encrypted::prune(directory, key.as_ref(), keep));
    let pruned = pruned.map_err(|error| Failure::from(error).raise(py))?;
    Ok((pruned.removed, pruned.bytes))
}

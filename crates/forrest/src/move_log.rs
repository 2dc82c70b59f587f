//! The log of a store on disk gets another place.

use crate::url::directory;
use forrest_engine::{Error, Result};
use std::path::Path;

/// Moves the log of the store on disk at `store` to the directory `to`, or with `None` back into the directory of the
/// store. From then on the store must be opened with [`Builder::log_directory`](crate::Builder::log_directory) for that
/// directory, or without it.
///
/// The store must be closed. It finds the directory where the log is by itself. It copies the log, durably, before
/// the store names the new place; a crash leaves the log in one of the two places, complete, and another call with the
/// same arguments finishes the move. It takes time proportional to the log, usually some seconds at most, and blocks
/// until it is done.
///
/// # Errors
/// `Busy` if the store is open, or another process reads it; `InvalidArgument` if `to` belongs to another store or has
/// files of one, or if a path is a URL; `Unsupported` if one of the directories cannot be written to; `Io`,
/// `OutOfSpace`. The log is then where it was.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let (path, log) = (directory.path().join("forest"), directory.path().join("log"));
/// # let path = path.to_str().unwrap();
/// use forrest::Db;
/// Db::open(path)?.set("pine", "1")?;
/// forrest::move_log(path, Some(&log))?;
/// assert!(Db::builder().log_directory(&log).open(path)?.contains("pine")?);
/// forrest::move_log(path, None)?;
/// assert!(Db::open(path)?.contains("pine")?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn move_log(store: impl AsRef<Path>, to: Option<&Path>) -> Result<()> {
    let store = store.as_ref();
    for path in to.into_iter().chain([store]) {
        if path.to_str().is_some_and(|text| directory(text).is_none()) {
            return Err(Error::invalid(format!("moving a log: \"{}\" is not a path", path.display())));
        }
    }
    remixdb::move_log(store, to)
}

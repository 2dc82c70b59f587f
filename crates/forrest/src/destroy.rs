//! Whether there is a store on disk, and removing one.

use crate::url::directory;
use forrest_engine::{Error, Result};
use std::path::Path;

/// Whether a directory has files of a store on disk, or of backups of one. Opens nothing, and does not say whether they
/// are whole. False if there is no such directory.
///
/// # Errors
/// `Io` if the directory cannot be listed; `InvalidArgument` if the path is a URL.
pub fn is_store(path: impl AsRef<Path>) -> Result<bool> {
    remixdb::is_store(plain(path.as_ref())?)
}

/// Removes a store on disk with all its data. The directory goes too, unless it has other files, which are not touched.
///
/// The store must be closed. It may be damaged. A crash leaves the whole store, or one that does not open; another call
/// then removes the rest. Whether the removal survives a loss of power depends on the file system.
///
/// # Errors
/// `Io` if there is no store, or a file cannot be removed; `Busy` if the store is open, or another process reads it;
/// `InvalidArgument` if its log has a directory of its own ([`move_log`](crate::move_log()) moves it back), if the
/// directory has backups, or if the path is a URL.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("forest");
/// # let path = path.to_str().unwrap();
/// use forrest::{Db, ErrorKind};
/// let db = Db::open(path)?;
/// db.set("pine", "1")?;
/// assert_eq!(forrest::destroy(path).unwrap_err().kind(), ErrorKind::Busy);
/// drop(db);
/// forrest::destroy(path)?;
/// assert!(!forrest::is_store(path)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn destroy(path: impl AsRef<Path>) -> Result<()> {
    remixdb::destroy(plain(path.as_ref())?)
}

fn plain(path: &Path) -> Result<&Path> {
    match path.to_str() {
        Some(text) if directory(text).is_none() => {
            Err(Error::invalid(format!("the store on disk \"{}\": this is not a path", path.display())))
        }
        _ => Ok(path),
    }
}

//! Salvage: what is intact of a damaged store on disk becomes a new store.

use crate::url::directory;
use forrest_engine::{EncryptionKey, Error, Result};
use std::ops::ControlFlow;
use std::path::Path;

pub use remixdb::{Loss, Progress, Salvaged};

/// Copies what is intact of the store on disk in the directory `from` to a new store at `to`. Returns what was lost.
///
/// It also works if [`Db::open`](crate::Db::open) fails, because a log or the manifest is damaged. It writes nothing
/// at `from`. Outside of the ranges in [`Salvaged::lost`], each key has exactly the value that it had. In a range that
/// is lost, a key has a value that it once had, or none: newer versions and deletes may be lost. If nothing is damaged,
/// the new store is a complete copy.
///
/// `to` must not exist, or be an empty directory, which is replaced; its parent directory must exist. Until the copy
/// is complete, its name is `TO.checkpoint-unfinished`. A crash leaves at most this directory, and the next attempt at
/// the same path removes it. When the call returns, the new store survives power loss. It takes time proportional to
/// the data, and blocks until it is done; [`salvage_with`] reports how far it is and may be ended.
///
/// If the log has a directory of its own ([`Builder::log_directory`](crate::Builder::log_directory)), it is found where
/// it was when the store was last opened. If it is not there, what was in the log is lost, and reported.
///
/// Close the store before: beside a writer, the files that it replaces would look like losses. While the salvage runs,
/// the store cannot be opened except to be read.
///
/// # Errors
/// A salvage that fails leaves nothing. `Corrupt` if no part of the manifest can be read: only that states which
/// tables belong to which keyspace. `InvalidArgument` if `to` exists and is not an empty directory, or lies within
/// `from`, or if a path is a URL; `Busy` if the store is open to be changed (the message names the process), or if
/// another attempt at `to` is in progress; `Unsupported` for files of another version; `OutOfSpace`; `Io`.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let (old, new) = (directory.path().join("old"), directory.path().join("new"));
/// use forrest::Db;
/// let db = Db::open(old.to_str().unwrap())?;
/// db.set("oak", "Quercus")?;
/// drop(db);
/// let salvaged = forrest::salvage(&old, &new)?;
/// assert_eq!((salvaged.pairs, salvaged.lost.len()), (1, 0));
/// assert_eq!(Db::open(new.to_str().unwrap())?.get("oak")?.as_deref(), Some(&b"Quercus"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn salvage(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Salvaged> {
    salvage_with(from, to, |_| ControlFlow::Continue(()))
}

/// The same, and calls `see` now and then with how far it is. If `see` breaks, the salvage ends and leaves nothing.
///
/// # Errors
/// As [`salvage`]; also `Busy` if `see` broke.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let (old, new) = (directory.path().join("old"), directory.path().join("new"));
/// # forrest::Db::open(old.to_str().unwrap())?.set("oak", "Quercus")?;
/// use std::ops::ControlFlow;
/// let ended = forrest::salvage_with(&old, &new, |progress| {
///     println!("{} of {} bytes", progress.done, progress.whole);
///     ControlFlow::Break(())
/// });
/// assert_eq!(ended.unwrap_err().kind(), forrest::ErrorKind::Busy);
/// assert!(!new.exists());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn salvage_with(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    mut see: impl FnMut(Progress) -> ControlFlow<()>,
) -> Result<Salvaged> {
    salvage_of(from.as_ref(), None, to.as_ref(), &mut see)
}

/// The same of a store that may be encrypted.
pub(crate) fn salvage_of(
    from: &Path,
    key: Option<&EncryptionKey>,
    to: &Path,
    see: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Salvaged> {
    for path in [from, to] {
        if path.to_str().is_some_and(|text| directory(text).is_none()) {
            return Err(Error::invalid(format!("salvage of \"{}\": this is not a path", path.display())));
        }
    }
    remixdb::salvage(from, key, to, see)
}

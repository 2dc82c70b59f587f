//! Backups: a directory that has many of them, in which each table of the store is stored once.

use crate::engine;
use crate::salvage::Progress;
use crate::url::directory;
#[cfg(any(feature = "memory", feature = "llds"))]
use forrest_engine::Store as _;
use forrest_engine::{EncryptionKey, Error, Result};
use std::ops::ControlFlow;
use std::path::Path;

pub use remixdb::{Backup, BackupOptions, Keep, Pruned};

/// Adds a backup of an open store to a directory.
pub(crate) fn back_up(
    store: &engine::Store,
    path: &Path,
    options: &BackupOptions,
    see: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Backup> {
    check(path)?;
    match store {
        engine::Store::Disk(store) => store.backup(path, options, see),
        #[cfg(any(feature = "memory", feature = "llds"))]
        other => Err(Error::unsupported(format!(
            "backup of \"{}\": only stores on disk have backups; a checkpoint makes one of this store",
            other.capabilities().home()
        ))),
    }
}

/// An error if a path is a URL.
pub(crate) fn check(path: &Path) -> Result<()> {
    match path.to_str().is_some_and(|text| directory(text).is_none()) {
        true => Err(Error::invalid(format!("backups at \"{}\": this is not a path", path.display()))),
        false => Ok(()),
    }
}

/// Lists the backups in a directory, from the oldest on. A damaged one is listed too, with
/// [`damage`](Backup::damage). Only descriptions are read, not the copies of tables.
///
/// # Errors
/// `Io` if there are none; `InvalidArgument` if the directory has other files.
pub fn backups(path: impl AsRef<Path>) -> Result<Vec<Backup>> {
    backups_of(path.as_ref(), None)
}

/// The same of a directory that may be encrypted.
pub(crate) fn backups_of(path: &Path, key: Option<&EncryptionKey>) -> Result<Vec<Backup>> {
    check(path)?;
    remixdb::backups(path, key)
}

/// Makes a new store at `to` of the backup with this number, or of the newest one. Every byte is checked while it is
/// copied. `to` must not exist, or be an empty directory; it appears when the store is complete and survives power
/// loss. See [`Db::backup`](crate::Db::backup) for an example.
///
/// # Errors
/// `Corrupt` with file and offset for a damaged backup; `InvalidArgument` if there is no such backup, or if something
/// is at `to`; `Unsupported` for a backup of a later version; `OutOfSpace`; `Io`. A restore that fails leaves nothing.
pub fn restore(path: impl AsRef<Path>, id: Option<u64>, to: impl AsRef<Path>) -> Result<Backup> {
    restore_with(path, id, to, |_| ControlFlow::Continue(()))
}

/// The same, and calls `see` now and then with how far it is. If `see` breaks, the restore ends and leaves nothing.
///
/// # Errors
/// As [`restore`]; also `Busy` if `see` broke.
pub fn restore_with(
    path: impl AsRef<Path>,
    id: Option<u64>,
    to: impl AsRef<Path>,
    mut see: impl FnMut(Progress) -> ControlFlow<()>,
) -> Result<Backup> {
    restore_of((path.as_ref(), None), id, to.as_ref(), &mut see)
}

/// The same from a directory that may be encrypted.
pub(crate) fn restore_of(
    (path, key): (&Path, Option<&EncryptionKey>),
    id: Option<u64>,
    to: &Path,
    see: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Backup> {
    check(path)?;
    check(to)?;
    remixdb::restore(path, key, id, to, see)
}

/// Reads every byte of the backup with this number, or of the newest one, and checks it. Writes nothing.
///
/// # Errors
/// `Corrupt` with the file and the offset of the first damage (the beginning of the piece of 1 MiB that has it);
/// `InvalidArgument` if there is no such backup; `Io`.
pub fn verify_backup(path: impl AsRef<Path>, id: Option<u64>) -> Result<Backup> {
    verify_backup_with(path, id, |_| ControlFlow::Continue(()))
}

/// The same, and calls `see` now and then with how far it is. If `see` breaks, it ends.
///
/// # Errors
/// As [`verify_backup`]; also `Busy` if `see` broke.
pub fn verify_backup_with(
    path: impl AsRef<Path>,
    id: Option<u64>,
    mut see: impl FnMut(Progress) -> ControlFlow<()>,
) -> Result<Backup> {
    verify_of((path.as_ref(), None), id, &mut see)
}

/// The same in a directory that may be encrypted.
pub(crate) fn verify_of(
    (path, key): (&Path, Option<&EncryptionKey>),
    id: Option<u64>,
    see: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Backup> {
    check(path)?;
    remixdb::verify_backup(path, key, id, see)
}

/// Removes old backups, and the files that none of the others needs. The newest backup always stays. A crash leaves
/// those that stay whole; the next prune or backup removes the rest.
///
/// # Errors
/// `Corrupt` or `Unsupported` if a backup that is to stay cannot be read: it may need any file. `Busy` if one that is
/// to be removed is being restored or verified, or if a backup or prune is in progress. Nothing is removed then. `Io`.
pub fn prune(path: impl AsRef<Path>, keep: Keep) -> Result<Pruned> {
    prune_of(path.as_ref(), None, keep)
}

/// The same in a directory that may be encrypted.
pub(crate) fn prune_of(path: &Path, key: Option<&EncryptionKey>, keep: Keep) -> Result<Pruned> {
    check(path)?;
    remixdb::prune(path, key, keep)
}

//! The functions of [`backups`](crate::backups()) and [`salvage`](crate::salvage()) for encrypted directories: each
//! takes the key that [`Builder::encryption_key`](crate::Builder::encryption_key) takes, or `None` for a directory that
//! is plain.
//!
//! A directory of backups is encrypted if the store is, or if
//! [`BackupOptions::encryption_key`](crate::BackupOptions::encryption_key) is given; its key is that, or else the key
//! that the store had when the directory was made.
//!
//! ```
//! # let directory = tempfile::tempdir()?;
//! # let (path, backups) = (directory.path().join("trees"), directory.path().join("backups"));
//! # let new = directory.path().join("restored");
//! use forrest::{Db, EncryptionKey, encrypted};
//! use std::ops::ControlFlow;
//! let key = EncryptionKey::from_bytes([7; 32]);
//! let db = Db::builder().encryption_key(key.clone()).open(path.to_str().unwrap())?;
//! db.set("oak", "Quercus")?;
//! db.backup(&backups)?;
//! assert_eq!(encrypted::backups(&backups, Some(&key))?.len(), 1);
//! let new_key = EncryptionKey::from_bytes([8; 32]);
//! db.rotate_key(&new_key)?;
//! encrypted::rotate_key(&backups, &key, &new_key)?;
//! db.backup(&backups)?;
//! encrypted::restore(&backups, Some(&new_key), None, &new, |_| ControlFlow::Continue(()))?;
//! assert!(Db::builder().encryption_key(new_key).open(new.to_str().unwrap())?.contains("oak")?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::backup::{Backup, Keep, Pruned, backups_of, check, prune_of, restore_of, verify_of};
use crate::salvage::{Progress, Salvaged, salvage_of};
use forrest_engine::{EncryptionKey, Result};
use std::ops::ControlFlow;
use std::path::Path;

/// Lists the backups in a directory: [`backups`](crate::backups()).
///
/// # Errors
/// Also `InvalidArgument` for a wrong key, or one that is missing.
pub fn backups(path: impl AsRef<Path>, key: Option<&EncryptionKey>) -> Result<Vec<Backup>> {
    backups_of(path.as_ref(), key)
}

/// Makes a new store of a backup: [`restore_with`](crate::restore_with). The store has the key of the directory, and
/// the same data key for what is restored. What it writes itself has another one.
///
/// # Errors
/// Also `InvalidArgument` for a wrong key, or one that is missing.
pub fn restore(
    path: impl AsRef<Path>,
    key: Option<&EncryptionKey>,
    id: Option<u64>,
    to: impl AsRef<Path>,
    mut see: impl FnMut(Progress) -> ControlFlow<()>,
) -> Result<Backup> {
    restore_of((path.as_ref(), key), id, to.as_ref(), &mut see)
}

/// Reads every byte of a backup and checks it: [`verify_backup_with`](crate::verify_backup_with).
///
/// # Errors
/// Also `InvalidArgument` for a wrong key, or one that is missing.
pub fn verify_backup(
    path: impl AsRef<Path>,
    key: Option<&EncryptionKey>,
    id: Option<u64>,
    mut see: impl FnMut(Progress) -> ControlFlow<()>,
) -> Result<Backup> {
    verify_of((path.as_ref(), key), id, &mut see)
}

/// Replaces the key of a directory of backups, as [`Db::rotate_key`](crate::Db::rotate_key) does for a store. After the
/// key of the store was rotated, this one, or [`BackupOptions::encryption_key`](crate::BackupOptions::encryption_key),
/// lets the next backup go to the same directory. Durable when it returns.
///
/// # Errors
/// `InvalidArgument` for a wrong key, and if the directory is not encrypted; `Busy` if a backup is in progress;
/// `OutOfSpace`; `Io`: either key may be the one that opens it then.
pub fn rotate_key(path: impl AsRef<Path>, key: &EncryptionKey, new: &EncryptionKey) -> Result<()> {
    check(path.as_ref())?;
    remixdb::rotate_backups_key(path.as_ref(), key, new)
}

/// Removes old backups: [`prune`](crate::prune).
///
/// # Errors
/// Also `InvalidArgument` for a wrong key, or one that is missing.
pub fn prune(path: impl AsRef<Path>, key: Option<&EncryptionKey>, keep: Keep) -> Result<Pruned> {
    prune_of(path.as_ref(), key, keep)
}

/// Copies what is intact of a store to a new one: [`salvage_with`](crate::salvage_with). The new store has the same
/// key. Without an intact key file nothing can be salvaged; that of a checkpoint may be put back.
///
/// # Errors
/// Also `InvalidArgument` for a wrong key, or one that is missing.
pub fn salvage(
    from: impl AsRef<Path>,
    key: Option<&EncryptionKey>,
    to: impl AsRef<Path>,
    mut see: impl FnMut(Progress) -> ControlFlow<()>,
) -> Result<Salvaged> {
    salvage_of(from.as_ref(), key, to.as_ref(), &mut see)
}

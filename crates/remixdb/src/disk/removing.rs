//! [`is_store`]: whether a directory has a store. [`destroy`]: removes a closed store and its directory.
//!
//! The manifests go first, durably. A crash leaves the whole store, or one that does not open, and another call removes
//! the rest. Files of other kinds are never touched: a directory that has some stays, with its `LOCK`.
//!
//! `LOCK` is removed only right before the directory. A process that had opened it before can make no file there,
//! because the directory is gone.

use super::calls::{entries, failed, open_directory};
use super::logs;
use super::real::{LOCK, Real, no_store};
use super::{Disk, Kind, Name};
use forrest_engine::{Error, ErrorKind, Options, Result};
use rustix::fd::AsFd;
use rustix::fs::AtFlags;
use std::path::Path;

/// Whether a directory has files of a store, or of backups of one. False if there is no such directory.
///
/// # Errors
/// `Io` if the directory cannot be listed.
pub fn is_store(at: &Path) -> Result<bool> {
    let Some((directory, _)) = open_directory(at, false, "store's directory")? else { return Ok(false) };
    let entries = entries(directory.as_fd()).map_err(|error| failed("listing", at, error))?;
    Ok(entries.iter().any(|entry| Name::parse(entry).is_some()))
}

/// Removes the store at `at` with its directory. The directory stays if it has other files.
///
/// # Errors
/// `Io` if there is no store, or a file cannot be removed; `Busy` if the store is open, or another process reads it;
/// `InvalidArgument` if its log has a directory of its own, or if there are backups in this one.
pub fn destroy(at: &Path) -> Result<()> {
    if let Some(log) = logs::stated(at)? {
        let what = "first move the log of the store back into its directory; it is in";
        return Err(Error::invalid(format!("{}: {what} {}", at.display(), log.display())));
    }
    if !is_store(at)? {
        return Err(no_store(at));
    }
    let store = Real::open(at, &Options { create: false, ..Options::default() })?;
    store.check_writable()?;
    let mut names = super::list(&store)?;
    if let Some(name) = names.iter().find(|name| matches!(name.kind, Kind::Copy | Kind::Backup)) {
        return Err(Error::invalid(format!(
            "{} has {name}, a file of backups, not of a store",
            at.display()
        )));
    }
    for &name in names.iter().filter(|name| name.kind == Kind::Manifest) {
        if super::is_held(&store, name) {
            let what = "another process reads the store; it can be removed when that has closed it";
            return Err(Error::new(ErrorKind::Busy, format!("{}: {what}", at.display())));
        }
    }
    names.sort_by_key(|name| name.kind != Kind::Manifest);
    let manifests = names.partition_point(|name| name.kind == Kind::Manifest);
    for (at, &name) in names.iter().enumerate() {
        if at == manifests {
            // DURABILITY: without a manifest nothing takes what is left for a store with fewer keys.
            super::sync_directory(&store, Kind::Manifest)?;
        }
        super::unlink(&store, name)?;
    }
    let left = entries(store.directory()).map_err(|error| failed("listing", at, error))?;
    if left.iter().all(|entry| entry == LOCK) {
        for entry in left {
            rustix::fs::unlinkat(store.directory(), &entry, AtFlags::empty())
                .map_err(|errno| failed("removing the lock file of", at, errno))?;
        }
        std::fs::remove_dir(at).map_err(|error| failed("removing", at, error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk;
    use std::fs;

    fn made(at: &Path, names: &[Name]) {
        let store = Real::open(at, &Options::default()).unwrap();
        for &name in names {
            disk::create(&store, name).unwrap();
        }
    }

    #[test]
    fn a_store_goes_with_its_directory() {
        let keep = tempfile::tempdir().unwrap();
        let path = keep.path().join("store");
        assert!(!is_store(&path).unwrap());
        assert_eq!(destroy(&path).unwrap_err().kind(), ErrorKind::Io);
        made(&path, &[]);
        assert!(!is_store(&path).unwrap() && destroy(&path).is_err());
        made(&path, &[Name::log(1), Name::manifest(2), Name::table(3), Name::remix(4)]);
        assert!(is_store(&path).unwrap());
        destroy(&path).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn other_files_stay() {
        let keep = tempfile::tempdir().unwrap();
        let path = keep.path().join("store");
        made(&path, &[Name::log(1), Name::manifest(2)]);
        fs::write(path.join("000005.log"), "not ours").unwrap();
        destroy(&path).unwrap();
        let mut left: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["000005.log", LOCK]);
        assert_eq!(destroy(&path).unwrap_err().kind(), ErrorKind::Io);
    }

    #[test]
    fn open_stores_and_backups_stay() {
        let keep = tempfile::tempdir().unwrap();
        let path = keep.path().join("store");
        made(&path, &[Name::manifest(2)]);
        let store = Real::open(&path, &Options::default()).unwrap();
        assert_eq!(destroy(&path).unwrap_err().kind(), ErrorKind::Busy);
        drop(store);
        made(&path, &[Name::copy(3)]);
        let error = destroy(&path).unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains("00000003.copy"));
        assert!(path.join("00000002.manifest").exists());
    }
}

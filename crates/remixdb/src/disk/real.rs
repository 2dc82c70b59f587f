//! [`Real`]: the directory of a store in the file system, over plain system calls.
//!
//! The directory is opened once, and everything in it is reached from that descriptor. So nobody can
//! substitute another directory, and a store whose directory is renamed goes on. Files belong to their owner
//! alone, links are not followed, and only regular files are opened. While a `Real` lives it holds a lock
//! (`flock`) on the file `LOCK` in the directory, so that no two processes, and no two handles of one, have a
//! store open at the same time. `LOCK` is empty, so it has no format version, and it is removed only
//! with the directory (removing.rs).
//!
//! A sync is the strongest that the system has: `fdatasync`, and on Apple's systems `F_FULLFSYNC`, because
//! `fsync` there leaves data in the cache of the device.
//!
//! A limited number of the files have a descriptor at once; they are opened again when they are read
//! (files.rs).
//!
//! A store that is only read has no lock on `LOCK`, so that it can be read beside a process that changes it. It locks
//! the manifest that it has read, together with others (`flock`), and the process that changes the store removes
//! nothing that this manifest named.
//!
//! The logs may have a directory of their own, on another device (logs.rs). A sync of names is of the directory of the
//! files that they name.
//!
//! A directory that a caller is creating, and that it protects itself, has no `LOCK` (unfinished.rs).
//!
//! Not here: repeating short or interrupted calls (disk/mod.rs does), and protection against programs that
//! write to the directory without taking the lock.

use super::calls::{Unwritable, entries, failed, identity, lock_file, open_directory};
use super::calls::{sync_data, sync_names, sync_parent, unwritable};
use super::files::{Files, Handle, Place, open_regular};
use super::{Disk, Hold, Kind, Name, Write, logs};
use forrest_engine::options::{DEFAULT_OPEN_FILES, Options};
use forrest_engine::{Error, ErrorKind, Result};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
use rustix::fs::Advice;
use rustix::fs::{AtFlags, FlockOperation, OFlags};
use rustix::io::{Errno, retry_on_intr};
use std::fs::File;
use std::io;
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file that is locked while the store is open.
pub(super) const LOCK: &str = "LOCK";

/// The directory of a store, open and locked.
#[derive(Debug)]
pub struct Real {
    path: PathBuf,
    files: Arc<Files>,
    /// `None` if the creator of the directory protects it itself, or if nothing is changed.
    lock: Option<File>,
    /// That of the directory of its logs, if they have one of their own.
    log_lock: Option<File>,
    /// Why nothing can be changed.
    refusal: Option<&'static str>,
}

impl Real {
    /// Opens the directory of a store and locks it until the handle is dropped. `builder` has the options for
    /// creating the directory if it is missing (its parent must exist), and for the maximum number of open
    /// files.
    ///
    /// If the options say that nothing is changed, or if this process cannot change anything, the directory is not
    /// locked: another process may change the store meanwhile.
    pub fn open(path: &Path, builder: &Options) -> Result<Real> {
        let create = builder.create && !builder.read_only;
        let (directory, made) =
            open_directory(path, create, "store's directory")?.ok_or_else(|| no_store(path))?;
        let wanted = builder.log_directory.as_deref();
        let limit = builder.open_files.unwrap_or_else(default_open_files);
        let refusal = refusal(directory.as_fd()).or_else(|| logs::refusal(wanted));
        if builder.read_only || refusal.is_some() {
            if !has_files(path, directory.as_fd())? {
                return Err(no_store(path));
            }
            let place = logs::find(path, directory.as_fd(), wanted)?;
            let files = Arc::new(Files::new(directory, place, limit));
            return Ok(Real { path: path.to_owned(), files, lock: None, log_lock: None, refusal });
        }
        let lock = open_lock(path, directory.as_fd(), builder.create, made)?;
        let (how, advice) =
            (FlockOperation::NonBlockingLockExclusive, "; open it read-only to read it meanwhile");
        lock_file(&lock, how, path, "store", advice)?;
        let is_new = builder.create && !has_files(path, directory.as_fd())?;
        let (place, log_lock) = logs::take(path, directory.as_fd(), wanted, is_new)?;
        let files = Arc::new(Files::new(directory, place, limit));
        Ok(Real { path: path.to_owned(), files, lock: Some(lock), log_lock, refusal: None })
    }

    /// The same for a store that may be damaged, and that is only read, while nobody has it open to change it. If
    /// somebody has, the error ends with `advice`. The directory of its logs is the one that the store names. If that
    /// cannot be opened, the store has no logs; the error says why. A directory without a `LOCK` is a copy of a store,
    /// which nobody has opened.
    pub(crate) fn open_damaged(path: &Path, advice: &str) -> Result<(Real, Option<Error>)> {
        let (mut real, no_logs) = Real::open_unlocked(path)?;
        match super::uninterrupted(|| open_regular(real.directory(), LOCK, OFlags::RDONLY)) {
            Ok(lock) => {
                lock_file(&lock, FlockOperation::NonBlockingLockShared, path, "store", advice)?;
                real.lock = Some(lock);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed("opening the lock file LOCK of the store", path, error)),
        }
        Ok((real, no_logs))
    }

    fn open_unlocked(path: &Path) -> Result<(Real, Option<Error>)> {
        let open = |log_directory| {
            Real::open(path, &Options { read_only: true, log_directory, ..Options::default() })
        };
        let error = match logs::stated(path).and_then(open) {
            Ok(real) => return Ok((real, None)),
            Err(error) => error,
        };
        let (directory, _) =
            open_directory(path, false, "store's directory")?.ok_or_else(|| no_store(path))?;
        if !has_files(path, directory.as_fd())? {
            return Err(no_store(path));
        }
        let files = Arc::new(Files::new(directory, Place::Lost, default_open_files()));
        Ok((Real { path: path.to_owned(), files, lock: None, log_lock: None, refusal: None }, Some(error)))
    }

    /// Opens a directory of backups to be read, without a lock.
    pub(crate) fn open_backups(path: &Path) -> Result<Real> {
        let what = "directory of backups";
        let (directory, _) = open_directory(path, false, what)?.ok_or_else(|| no_backups(path))?;
        if !check_backups(path, directory.as_fd())? {
            return Err(no_backups(path));
        }
        Ok(Real::unlocked(path, directory))
    }

    /// The same to change it: locked, and made if it is to be made.
    pub(crate) fn lock_backups(path: &Path, create: bool) -> Result<Real> {
        let what = "directory of backups";
        let (directory, made) = open_directory(path, create, what)?.ok_or_else(|| no_backups(path))?;
        if !check_backups(path, directory.as_fd())? && !create {
            return Err(no_backups(path));
        }
        if let Some(why) = refusal(directory.as_fd()) {
            return Err(Error::unsupported(format!("{} can only be read: {why}", path.display())));
        }
        let lock = open_lock(path, directory.as_fd(), true, made)?;
        lock_file(&lock, FlockOperation::NonBlockingLockExclusive, path, what, "")?;
        let mut real = Real::unlocked(path, directory);
        real.lock = Some(lock);
        Ok(real)
    }

    /// What tells the directory of a store from others: its number, and when it was made, as far as the file system
    /// has that.
    pub(crate) fn birth(&self) -> Result<[u64; 2]> {
        let is = self.directory().try_clone_to_owned().and_then(|owned| File::from(owned).metadata());
        let is = is.map_err(|error| failed("looking at", &self.path, error))?;
        let made = is.created().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        Ok([is.ino(), made.map_or(0, |made| made.as_nanos() as u64)])
    }

    /// A directory that the caller protects from others, for a store that will be at `path`.
    pub(super) fn unlocked(path: &Path, directory: OwnedFd) -> Real {
        let files = Arc::new(Files::new(directory, Place::Here, default_open_files()));
        Real { path: path.to_owned(), files, lock: None, log_lock: None, refusal: None }
    }

    /// Identifies its directories, that of the store first.
    pub(super) fn identities(&self) -> io::Result<Vec<(u64, u64)>> {
        self.files.directories().map(identity).collect()
    }

    /// The directory of the store.
    pub(super) fn directory(&self) -> BorrowedFd<'_> {
        self.files.directory()
    }

    /// The path that the store was opened at.
    #[cfg_attr(not(test), expect(dead_code, reason = "for tests"))]
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        // Closing the file is not enough: a child process that another thread is just starting has a copy of
        // the descriptor until it executes its program, and would hold the lock until then.
        for lock in self.lock.iter().chain(&self.log_lock) {
            let _ = rustix::fs::flock(lock, FlockOperation::Unlock);
        }
    }
}

/// A lock that others can share.
struct Shared(File);

impl Drop for Shared {
    fn drop(&mut self) {
        // As for the lock of the store: a child process may have a copy of the descriptor.
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}

impl Disk for Real {
    type File = Handle;

    fn check_writable(&self) -> Result<()> {
        self.refusal.map_or(Ok(()), |why| Err(super::read_only(why)))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.files.sparing(|| self.files.list())
    }

    fn create(&self, name: Name) -> io::Result<Handle> {
        self.files.create(name)
    }

    fn open(&self, name: Name) -> io::Result<Handle> {
        self.files.open(name)
    }

    fn open_again(&self, name: Name) -> io::Result<Handle> {
        self.files.open_to_write(name)
    }

    fn unlink(&self, name: Name) -> io::Result<()> {
        self.files.unlink(name)
    }

    fn sync_directory(&self, of: Kind) -> io::Result<()> {
        Ok(sync_names(self.files.directory_of(of))?)
    }

    fn link(&self, _held: &Handle, name: Name, into: &Real) -> io::Result<()> {
        let (from, to) = (self.files.directory_of(name.kind), into.files.directory_of(name.kind));
        let name = name.to_string();
        Ok(rustix::fs::linkat(from, &name, to, &name, AtFlags::empty())?)
    }

    fn mark(&self, file: &Handle) -> io::Result<Option<(u64, u64)>> {
        let is = file.with(File::metadata)?;
        let time = is.mtime().wrapping_mul(1_000_000_000).wrapping_add(is.mtime_nsec());
        Ok(Some((is.ino(), time as u64)))
    }

    fn len(&self, file: &Handle) -> io::Result<u64> {
        file.with(|file| Ok(file.metadata()?.len()))
    }

    fn read_at(&self, file: &Handle, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        file.with(|file| file.read_at(buffer, offset))
    }

    fn submit(&self, file: &Handle, write: &mut Write) -> io::Result<usize> {
        file.reach(write.offset + write.bytes.len() as u64);
        file.with(|file| submit(file, write))
    }

    fn reserve(&self, file: &Handle, len: u64) -> io::Result<()> {
        file.with(|file| reserve(file, len))
    }

    fn is_log_apart(&self) -> bool {
        self.files.directories().count() > 1
    }

    fn free(&self, of: Kind) -> io::Result<u64> {
        let space = rustix::fs::fstatvfs(self.files.directory_of(of))?;
        Ok(space.f_bavail.saturating_mul(space.f_frsize))
    }

    /// A lock on the manifest, which the system releases when the process dies.
    fn hold(&self, manifest: Name) -> io::Result<Hold> {
        let file = self.files.open_file(manifest)?;
        // Who looks whether there is such a lock holds the file for an instant.
        match retry_on_intr(|| rustix::fs::flock(&file, FlockOperation::LockShared)) {
            Ok(()) => Ok(Hold::new(Shared(file))),
            // A file system without locks that this process cannot change: most likely nobody else does either.
            Err(Errno::NOLCK | Errno::OPNOTSUPP) if self.lock.is_none() => Ok(Hold::default()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn is_held(&self, manifest: Name) -> io::Result<bool> {
        // To be written to: some network file systems demand that for a lock that is not shared.
        let open = || open_regular(self.files.directory(), &manifest.to_string(), OFlags::RDWR);
        let file = match self.files.sparing(open) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            opened => opened?,
        };
        match retry_on_intr(|| rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)) {
            Ok(()) => {
                drop(Shared(file));
                Ok(false)
            }
            Err(Errno::WOULDBLOCK) => Ok(true),
            Err(errno) => Err(errno.into()),
        }
    }

    fn will_read(&self, file: &Handle, offset: u64, bytes: u64) {
        file.if_open(|file| will_read(file, offset, bytes));
    }

    fn set_open_files(&self, files: usize) {
        self.files.set_limit(files);
    }

    fn open_files(&self) -> u64 {
        self.files.open_count() as u64
    }
}

#[cfg(target_os = "linux")]
fn reserve(file: &File, len: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::Errno;
    match fallocate(file, FallocateFlags::KEEP_SIZE, 0, len) {
        // The file system, or the kernel, cannot.
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) | Ok(()) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn reserve(_: &File, _: u64) -> io::Result<()> {
    Ok(())
}

fn submit(file: &File, write: &Write) -> io::Result<usize> {
    let left = &write.bytes[write.done..];
    if !left.is_empty() {
        let count = rustix::io::pwrite(file, left, write.offset + write.done as u64)?;
        if count < left.len() {
            return Ok(count);
        }
    }
    if write.sync {
        // DURABILITY: the sync covers the write, because it follows on the same thread after the write has
        // returned.
        sync_data(file.as_fd())?;
    }
    Ok(left.len())
}

/// Default for the maximum number of read-only files that have a descriptor. It leaves the other half of the
/// process's limit to the rest of the process.
fn default_open_files() -> usize {
    let allowed = forrest_machine::files::limit().soft.unwrap_or(u64::MAX);
    usize::try_from(allowed / 2).unwrap_or(usize::MAX).clamp(1, DEFAULT_OPEN_FILES)
}

/// Whether a directory has files of a store.
fn has_files(path: &Path, directory: BorrowedFd<'_>) -> Result<bool> {
    let entries = entries(directory).map_err(|error| failed("listing the store's directory", path, error))?;
    Ok(entries.iter().any(|entry| Name::parse(entry).is_some()))
}

/// Why this process cannot change a store in a directory, if so.
fn refusal(directory: BorrowedFd<'_>) -> Option<&'static str> {
    Some(match unwritable(directory)? {
        Unwritable::Mount => "its file system is mounted read-only",
        Unwritable::Rights => "this process may not write to its directory",
    })
}

/// The file to be locked. If it exists, the name of the directory is durable.
fn open_lock(path: &Path, directory: BorrowedFd<'_>, create: bool, made: bool) -> Result<File> {
    let open = |flags| super::uninterrupted(|| open_regular(directory, LOCK, OFlags::RDWR | flags));
    let opening = |error| failed("opening the lock file LOCK of the store", path, error);
    match open(OFlags::empty()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        result => return result.map_err(opening),
    }
    if !create {
        // The files of a store may have been copied here without the lock file. If there are none, create
        // nothing.
        if !has_files(path, directory)? {
            return Err(no_store(path));
        }
    }
    // DURABILITY: the parent is synced before LOCK exists. So LOCK proves that it was done, even if the
    // creator of the directory died right after.
    sync_parent(directory, made)
        .map_err(|errno| failed("syncing the parent of the store's directory", path, errno))?;
    open(OFlags::CREATE).map_err(opening)
}

#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
fn will_read(file: &File, offset: u64, bytes: u64) {
    // The call starts the read and returns. If it fails, the read that follows reports it.
    let _ = rustix::fs::fadvise(file, offset, NonZeroU64::new(bytes), Advice::WillNeed);
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
fn will_read(_: &File, _: u64, _: u64) {}

fn no_backups(path: &Path) -> Error {
    Error::new(ErrorKind::Io, format!("there are no backups at {}", path.display()))
}

/// Whether a directory has files of backups; an error if it has others, which nobody wants to be mixed with them.
fn check_backups(path: &Path, directory: BorrowedFd<'_>) -> Result<bool> {
    let entries = entries(directory).map_err(|error| failed("listing", path, error))?;
    let kind = |entry: &String| Name::parse(entry).map(|name| name.kind);
    let is_own = |kind: Option<Kind>| matches!(kind, Some(Kind::Copy | Kind::Backup));
    if let Some(of_store) =
        entries.iter().find(|&entry| matches!(kind(entry), Some(Kind::Manifest | Kind::Table | Kind::Remix)))
    {
        return Err(Error::invalid(format!(
            "{} has {of_store}, a file of a store; backups need a directory of their own",
            path.display()
        )));
    }
    let has = entries.iter().any(|entry| is_own(kind(entry)));
    let other = |entry: &&String| *entry != LOCK && *entry != "lost+found" && kind(entry).is_none();
    match entries.iter().find(other) {
        Some(other) if !has => Err(Error::invalid(format!(
            "{} has \"{}\" in it, and no backups; backups need a directory of their own",
            path.display(),
            other.escape_debug()
        ))),
        _ => Ok(has),
    }
}

pub(super) fn no_store(path: &Path) -> Error {
    Error::new(ErrorKind::Io, format!("there is no store at {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{self, files::FILE_MODE};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use tempfile::TempDir;

    fn store() -> (TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store");
        (directory, path)
    }

    fn open(path: &Path, create: bool) -> Result<Real> {
        Real::open(path, &Options { create, ..Options::default() })
    }

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn write(disk: &Real, name: Name, offset: u64, bytes: &[u8], sync: bool) -> Handle {
        let file = disk::create(disk, name).unwrap();
        let mut write = Write { offset, bytes: bytes.to_vec(), done: 0, sync };
        disk::write_all(disk, &file, name, &mut write).unwrap();
        assert_eq!(write.done, bytes.len());
        file
    }

    fn error(result: Result<Real>) -> Error {
        result.expect_err("opening the store worked")
    }

    #[test]
    fn what_is_written_comes_back_after_reopening() {
        let (_keep, path) = store();
        let disk = open(&path, true).unwrap();
        assert_eq!(disk.path(), path);
        let file = write(&disk, Name::log(1), 0, b"quercus", true);
        disk::sync_directory(&disk, Kind::Log).unwrap();
        disk::write_all(
            &disk,
            &file,
            Name::log(1),
            &mut Write { offset: 5, bytes: b"_us robur".to_vec(), done: 1, sync: false },
        )
        .unwrap();
        disk::sync(&disk, &file, Name::log(1)).unwrap();
        assert_eq!((mode(&path), mode(&path.join("00000001.log"))), (0o700, 0o600));
        drop((file, disk));

        let disk = open(&path, false).unwrap();
        let file = disk::open(&disk, Name::log(1)).unwrap();
        assert_eq!(disk::len(&disk, &file, Name::log(1)).unwrap(), 14);
        let mut all = [0; 20];
        assert_eq!(disk::read_up_to(&disk, &file, Name::log(1), &mut all, 0).unwrap(), 14);
        assert_eq!(&all[..14], b"quercuus robur");
        assert_eq!(disk.read_at(&file, &mut all, 14).unwrap(), 0, "the end");
        assert_eq!(disk.read_at(&file, &mut all, 1 << 40).unwrap(), 0, "after the end");
        disk::sync(&disk, &file, Name::log(1)).expect("a file that is open for reading can be synced");
        let mut more = Write { bytes: vec![1], ..Write::default() };
        disk.submit(&file, &mut more).expect_err("it cannot be written");
        disk::unlink(&disk, Name::log(1)).unwrap();
        disk::sync_directory(&disk, Kind::Log).unwrap();
        assert_eq!(disk::list(&disk).unwrap(), []);
        assert_eq!(disk.unlink(Name::log(1)).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(disk.open(Name::log(1)).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_file_is_made_once() {
        let (_keep, path) = store();
        let disk = open(&path, true).unwrap();
        write(&disk, Name::table(3), 0, b"first", true);
        assert_eq!(disk.create(Name::table(3)).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(path.join("00000003.table")).unwrap(), b"first");
    }

    #[test]
    fn links_and_what_is_no_file_are_refused() {
        let (keep, path) = store();
        let disk = open(&path, true).unwrap();
        let outside = keep.path().join("outside");
        std::fs::write(&outside, "secret").unwrap();
        symlink(&outside, path.join("00000001.log")).unwrap();
        symlink(keep.path().join("nowhere"), path.join("00000002.log")).unwrap();
        std::fs::create_dir(path.join("00000003.log")).unwrap();
        for number in 1..=3 {
            disk.open(Name::log(number)).expect_err("opened");
            assert_eq!(disk.create(Name::log(number)).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        }
        assert!(!keep.path().join("nowhere").exists());
        disk.unlink(Name::log(1)).unwrap();
        assert_eq!(std::fs::read(&outside).unwrap(), b"secret", "a link is removed, not what it leads to");
    }

    #[cfg(not(target_vendor = "apple"))]
    #[test]
    fn a_pipe_is_refused_and_blocks_nobody() {
        let (_keep, path) = store();
        let disk = open(&path, true).unwrap();
        let pipe = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(disk.files.directory(), "00000001.log", pipe, FILE_MODE, 0).unwrap();
        let error = disk.open(Name::log(1)).expect_err("opened");
        assert_eq!(error.to_string(), "not a regular file");
    }

    #[test]
    fn a_store_is_opened_once_at_a_time() {
        let (_keep, path) = store();
        let disk = open(&path, true).unwrap();
        for create in [false, true] {
            let error = error(open(&path, create));
            assert_eq!(error.kind(), ErrorKind::Busy);
            let message = error.to_string();
            assert!(message.contains(path.to_str().unwrap()), "{message}");
            assert!(message.contains("another process or another handle"), "{message}");
        }
        drop(disk);
        drop(open(&path, false).unwrap());
        assert!(path.join(LOCK).exists());
        open(&path, true).unwrap();
    }

    #[test]
    fn the_lock_file_must_be_a_file() {
        let (keep, path) = store();
        std::fs::create_dir(&path).unwrap();
        symlink(keep.path().join("outside"), path.join(LOCK)).unwrap();
        let message = error(open(&path, true)).to_string();
        assert!(message.contains("LOCK") && message.contains(path.to_str().unwrap()), "{message}");
        assert!(!keep.path().join("outside").exists());
        std::fs::remove_file(path.join(LOCK)).unwrap();
        std::fs::create_dir(path.join(LOCK)).unwrap();
        assert_eq!(error(open(&path, true)).kind(), ErrorKind::Io);
    }

    #[test]
    fn what_is_no_store_is_told_and_left_alone() {
        let (keep, path) = store();
        let told = |path: &Path, create| {
            let error = error(open(path, create));
            assert_eq!(error.kind(), ErrorKind::Io);
            let message = error.to_string();
            assert!(message.contains(path.to_str().unwrap()), "{message}");
            message
        };
        assert!(told(&path, false).contains("there is no store at"));
        assert!(!path.exists());
        std::fs::create_dir(&path).unwrap();
        assert!(told(&path, false).contains("there is no store at"));
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0);
        std::fs::write(path.join("00000001.manifest"), "copied here").unwrap();
        drop(open(&path, false).expect("a copy without its lock file is a store"));

        let file = keep.path().join("file");
        std::fs::write(&file, "here").unwrap();
        assert!(told(&file, true).contains("Not a directory"));
        told(&file.join("store"), true);
        assert!(told(&keep.path().join("a/b"), true).contains("making the store's directory"));
        symlink(keep.path().join("nowhere"), keep.path().join("link")).unwrap();
        told(&keep.path().join("link"), true);
    }

    #[test]
    fn a_directory_that_may_not_be_read_is_told() {
        let (_keep, path) = store();
        std::fs::create_dir(&path).unwrap();
        let allow = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        allow(0o000);
        if std::fs::read_dir(&path).is_ok() {
            println!("skipped: this user may read everything");
            return;
        }
        let error = error(open(&path, true));
        allow(0o700);
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    }

    #[test]
    fn the_path_may_be_a_link_and_the_directory_may_move() {
        let (keep, path) = store();
        std::fs::create_dir(&path).unwrap();
        let link = keep.path().join("link");
        symlink(&path, &link).unwrap();
        let disk = open(&link, true).unwrap();
        let moved = keep.path().join("moved");
        std::fs::rename(&path, &moved).unwrap();
        write(&disk, Name::log(4), 3, b"x", true);
        assert_eq!(disk::list(&disk).unwrap(), [Name::log(4)]);
        assert_eq!(std::fs::read(moved.join("00000004.log")).unwrap(), b"\0\0\0x");
    }

    #[test]
    fn the_list_has_everything() {
        let (_keep, path) = store();
        let disk = open(&path, true).unwrap();
        let mut expected = vec![LOCK.to_owned(), ".hidden".into(), "notes.txt".into(), "directory".into()];
        std::fs::write(path.join(".hidden"), "").unwrap();
        std::fs::write(path.join("notes.txt"), "").unwrap();
        std::fs::create_dir(path.join("directory")).unwrap();
        for number in 0..200 {
            drop(disk::create(&disk, Name::table(number)).unwrap());
            expected.push(Name::table(number).to_string());
        }
        expected.sort();
        for _ in 0..2 {
            let mut entries = disk.list().unwrap();
            entries.sort();
            assert_eq!(entries, expected);
        }
        assert_eq!(disk::list(&disk).unwrap().len(), 200);
    }
}

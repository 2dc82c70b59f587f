//! Calls to the system that several modules of the disk use, and the errors that name a path.

use forrest_engine::{Error, ErrorKind, Result};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Access, AtFlags, CWD, Dir, FlockOperation, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Flags for directories. The path of the store may be a link: that is its owner's choice.
pub(super) const DIRECTORY: OFlags = OFlags::CLOEXEC.union(OFlags::DIRECTORY);

/// All entries of a directory. A name that is not UTF-8 is never a store's, however it is displayed here.
pub(super) fn entries(directory: BorrowedFd<'_>) -> io::Result<Vec<String>> {
    let mut entries = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy();
        if name != "." && name != ".." {
            entries.push(name.into_owned());
        }
    }
    Ok(entries)
}

#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
pub(super) fn sync_data(file: BorrowedFd<'_>) -> rustix::io::Result<()> {
    // It skips the times, but not the length.
    rustix::fs::fdatasync(file)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
pub(super) fn sync_data(file: BorrowedFd<'_>) -> rustix::io::Result<()> {
    sync_names(file)
}

#[cfg(not(target_vendor = "apple"))]
pub(super) fn sync_names(directory: BorrowedFd<'_>) -> rustix::io::Result<()> {
    rustix::fs::fsync(directory)
}

#[cfg(target_vendor = "apple")]
pub(super) fn sync_names(directory: BorrowedFd<'_>) -> rustix::io::Result<()> {
    match rustix::fs::fcntl_fullfsync(directory) {
        // Not every file system has it. Any other error comes from the device, and a second try must not hide
        // it.
        Err(Errno::NOTSUP | Errno::OPNOTSUPP | Errno::INVAL | Errno::NOTTY) => rustix::fs::fsync(directory),
        result => result,
    }
}

/// A directory, and whether it was made here; `None` if it is not there and is not made. `what` is what it is.
pub(super) fn open_directory(path: &Path, create: bool, what: &str) -> Result<Option<(OwnedFd, bool)>> {
    let opening = |errno| failed(&format!("opening the {what}"), path, errno);
    let open = || retry_on_intr(|| rustix::fs::openat(CWD, path, DIRECTORY | OFlags::RDONLY, Mode::empty()));
    match open() {
        Ok(directory) => return Ok(Some((directory, false))),
        Err(Errno::NOENT) if create => {}
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(opening(errno)),
    }
    let made = match retry_on_intr(|| rustix::fs::mkdirat(CWD, path, Mode::RWXU)) {
        Ok(()) => true,
        // Another process was faster, or the path is a dangling link, which the next open reports.
        Err(Errno::EXIST) => false,
        Err(errno) => return Err(failed(&format!("making the {what}"), path, errno)),
    };
    Ok(Some((open().map_err(opening)?, made)))
}

/// Identifies a directory: its device and its inode number.
pub(super) fn identity(directory: BorrowedFd<'_>) -> io::Result<(u64, u64)> {
    let is = File::from(directory.try_clone_to_owned()?).metadata()?;
    Ok((is.dev(), is.ino()))
}

/// Locks a file until it is unlocked or closed. `whose` is what is locked with it.
pub(super) fn lock_file(
    file: &File,
    how: FlockOperation,
    path: &Path,
    whose: &str,
    advice: &str,
) -> Result<()> {
    match retry_on_intr(|| rustix::fs::flock(file, how)) {
        Ok(()) => Ok(()),
        Err(Errno::WOULDBLOCK) => Err(Error::new(
            ErrorKind::Busy,
            format!(
                "{}: another process or another handle has this {whose} open{}{advice}",
                path.display(),
                holder(file),
            ),
        )),
        // Where there are no locks, nobody can have it open to change it.
        Err(Errno::NOLCK | Errno::OPNOTSUPP) if matches!(how, FlockOperation::NonBlockingLockShared) => {
            Ok(())
        }
        Err(errno) => Err(failed(&format!("locking the {whose}"), path, errno)),
    }
}

/// The process that has locked a file, for a message; empty if that is not known.
#[cfg(target_os = "linux")]
fn holder(lock: &File) -> String {
    let find = || {
        let is = lock.metadata().ok()?;
        let (dev, inode) = (is.dev(), is.ino());
        let place = format!("{:02x}:{:02x}:{inode}", rustix::fs::major(dev), rustix::fs::minor(dev));
        let locks = std::fs::read_to_string("/proc/locks").ok()?;
        let is_it = |line: &&str| line.contains("FLOCK") && line.split_whitespace().any(|word| word == place);
        let process = locks.lines().find(is_it)?.split_whitespace().nth(4)?;
        let name = std::fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        Some(format!(" (process {process}, {})", name.trim_end()))
    };
    find().unwrap_or_default()
}

#[cfg(not(target_os = "linux"))]
fn holder(_: &File) -> String {
    String::new()
}

/// Makes the name of the directory itself durable.
pub(super) fn sync_parent(directory: BorrowedFd<'_>, made: bool) -> rustix::io::Result<()> {
    let flags = DIRECTORY | OFlags::RDONLY;
    match retry_on_intr(|| rustix::fs::openat(directory, "..", flags, Mode::empty())) {
        Ok(parent) => retry_on_intr(|| sync_names(parent.as_fd())),
        // This user may not open the parent, and did not create the directory; the name is its creator's
        // responsibility.
        Err(Errno::ACCESS | Errno::PERM) if !made => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Why a process cannot change a directory.
pub(super) enum Unwritable {
    Mount,
    Rights,
}

/// Why this process cannot change a directory, if so.
pub(super) fn unwritable(directory: BorrowedFd<'_>) -> Option<Unwritable> {
    let wanted = Access::WRITE_OK | Access::EXEC_OK;
    let ask = |flags| retry_on_intr(|| rustix::fs::accessat(directory, ".", wanted, flags));
    let answer = match ask(AtFlags::EACCESS) {
        // Some sandboxes refuse the newer system call.
        Err(Errno::PERM) => ask(AtFlags::empty()),
        answer => answer,
    };
    match answer {
        Err(Errno::ROFS) => Some(Unwritable::Mount),
        Err(Errno::ACCESS | Errno::PERM) => Some(Unwritable::Rights),
        // Whatever else it is, the first change reports it.
        _ => None,
    }
}

pub(super) fn failed(doing: &str, path: &Path, error: impl Into<io::Error>) -> Error {
    super::failed(doing, Shown(path), &error.into())
}

/// A path in a message.
struct Shown<'a>(&'a Path);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

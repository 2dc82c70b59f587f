//! [`Unfinished`]: a directory that is filled under a temporary name and gets its own name when it is
//! complete.
//!
//! It is created beside its final place, as `NAME.checkpoint-unfinished`, and then renamed. So at every
//! moment the final name stands for nothing, or for all of it. The caller makes the content durable;
//! [`finish`](Unfinished::finish) makes the name durable before it returns.
//!
//! - After a crash the temporary name is left. The next attempt at the same place removes it.
//! - Two attempts at once do not interfere: the directory itself is locked (`flock`) from before anything is
//!   removed until it has its name or is gone. A thread that gets the lock checks that the temporary name
//!   still stands for this directory.
//! - It has no file `LOCK`. Opening the store creates that, after making the name of the directory durable.
//!
//! Dropping it unfinished removes it.

use super::Name;
use super::calls::{DIRECTORY, entries, failed, sync_names};
use super::real::Real;
use forrest_engine::{Error, ErrorKind, Result};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Suffix of the temporary name.
const MARK: &str = ".checkpoint-unfinished";

/// See the head of the file.
pub struct Unfinished {
    /// The final path.
    path: PathBuf,
    parent: OwnedFd,
    /// The final name and the temporary name.
    name: OsString,
    called: OsString,
    directory: OwnedFd,
    finished: bool,
}

impl Unfinished {
    /// Creates an empty directory that will be at `path`, where there is nothing yet or an empty directory.
    /// `path` must not be within a directory of `store`.
    ///
    /// # Errors
    /// `InvalidArgument` if something is at `path`, or nothing can be created there; `Busy` if another
    /// attempt is under way; `Io`, `OutOfSpace`.
    pub fn begin(path: &Path, store: Option<&Real>) -> Result<Unfinished> {
        let shown = path.display();
        let Some(name) = path.file_name() else {
            return Err(Error::invalid(format!("\"{shown}\" does not end in a name for a new directory")));
        };
        let within = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
        let parent =
            retry_on_intr(|| rustix::fs::openat(CWD, within, DIRECTORY | OFlags::RDONLY, Mode::empty()))
                .map_err(|errno| failed("opening the directory for a new one", within, errno))?;
        if let Some(store) = store
            && is_within(within, store).map_err(|error| failed("looking for", within, error))?
        {
            return Err(Error::invalid(format!("\"{shown}\" is within the directory of the store itself")));
        }
        check_free(&parent, name, path)?;

        let mut called = name.to_owned();
        called.push(MARK);
        let made = match retry_on_intr(|| rustix::fs::mkdirat(&parent, &called, Mode::RWXU)) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(errno) => return Err(failed("making", &within.join(&called), errno)),
        };
        let directory = take(&parent, &called, path).inspect_err(|error| {
            if made && error.kind() != ErrorKind::Busy {
                let _ = rustix::fs::unlinkat(&parent, &called, AtFlags::REMOVEDIR);
            }
        })?;
        let name = name.to_owned();
        let unfinished =
            Unfinished { path: path.to_owned(), parent, name, called, directory, finished: false };
        unfinished.clear()?;
        Ok(unfinished)
    }

    /// The directory, to be filled.
    pub fn disk(&self) -> Result<Real> {
        let directory = self.directory.try_clone();
        let directory =
            directory.map_err(|error| failed("opening the unfinished directory of", &self.path, error))?;
        Ok(Real::unlocked(&self.path, directory))
    }

    /// Gives the directory its name, durably.
    ///
    /// # Errors
    /// `InvalidArgument` if something has that name by now; `Io`. The directory is then removed.
    pub fn finish(mut self) -> Result<()> {
        let Unfinished { path, parent, name, called, .. } = &self;
        match retry_on_intr(|| rustix::fs::renameat(parent, called, parent, name)) {
            Ok(()) => {}
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => return Err(taken(path)),
            Err(errno) => return Err(failed("renaming the finished checkpoint to", path, errno)),
        }
        self.called = self.name.clone();
        // DURABILITY: the content is durable already; from now on its name is too.
        retry_on_intr(|| sync_names(self.parent.as_fd()))
            .map_err(|errno| failed("syncing the parent directory of", &self.path, errno))?;
        self.finished = true;
        Ok(())
    }

    /// Removes the remains of an earlier attempt.
    fn clear(&self) -> Result<()> {
        let failed = |error: io::Error| failed("clearing the unfinished directory of", &self.path, error);
        let entries = entries(self.directory.as_fd()).map_err(failed)?;
        if let Some(entry) = entries.iter().find(|entry| Name::parse(entry).is_none()) {
            return Err(Error::invalid(format!(
                "\"{}\", where the checkpoint is to be made, has \"{}\" in it, \
                 which no earlier checkpoint left; move it away",
                self.path.with_file_name(&self.called).display(),
                entry.escape_debug(),
            )));
        }
        for entry in entries {
            rustix::fs::unlinkat(&self.directory, &entry, AtFlags::empty())
                .map_err(|errno| failed(errno.into()))?;
        }
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.finished && self.clear().is_ok() {
            // Files that cannot be removed now are removed by the next attempt.
            let _ = rustix::fs::unlinkat(&self.parent, &self.called, AtFlags::REMOVEDIR);
        }
        // A child process that is just being started has a copy of the descriptor for a while.
        let _ = rustix::fs::flock(&self.directory, FlockOperation::Unlock);
    }
}

/// Opens and locks the directory that will be at `path`.
fn take(parent: &OwnedFd, called: &OsStr, path: &Path) -> Result<OwnedFd> {
    let taking = |errno: Errno| failed("locking the unfinished directory of", path, errno);
    let busy = || {
        Error::new(
            ErrorKind::Busy,
            format!("another checkpoint is just being made at \"{}\"", path.display()),
        )
    };
    let flags = DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW;
    let directory = match retry_on_intr(|| rustix::fs::openat(parent, called, flags, Mode::empty())) {
        // Another attempt has just finished.
        Err(Errno::NOENT) => return Err(busy()),
        opened => opened.map_err(taking)?,
    };
    match retry_on_intr(|| rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive)) {
        Err(Errno::WOULDBLOCK) => return Err(busy()),
        locked => locked.map_err(taking)?,
    }
    // The previous holder of the lock may have renamed the directory; then it must not be cleared.
    let is = rustix::fs::fstat(&directory).map_err(taking)?;
    match rustix::fs::statat(parent, called, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(named) if (named.st_dev, named.st_ino) == (is.st_dev, is.st_ino) => Ok(directory),
        Ok(_) | Err(Errno::NOENT) => Err(busy()),
        Err(errno) => Err(taking(errno)),
    }
}

/// An error if a directory, which may not be there yet, is one of the store's or lies within one.
pub(crate) fn check_apart(path: &Path, store: &Real) -> Result<()> {
    let parent = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    for path in [path, parent] {
        match is_within(path, store) {
            Ok(true) => {
                let shown = path.display();
                return Err(Error::invalid(format!(
                    "\"{shown}\" is within the directory of the store itself"
                )));
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed("looking for", path, error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a directory is one of the store's, or lies within one.
fn is_within(path: &Path, store: &Real) -> io::Result<bool> {
    let store = store.identities()?;
    for above in path.canonicalize()?.ancestors() {
        let is = above.metadata()?;
        if store.contains(&(is.dev(), is.ino())) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// An error if a name stands for anything but an empty directory.
fn check_free(parent: &OwnedFd, name: &OsStr, path: &Path) -> Result<()> {
    let looking = |errno: Errno| failed("looking at", path, errno);
    match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(looking(errno)),
        Ok(stat) if FileType::from_raw_mode(stat.st_mode as _) == FileType::Directory => {}
        Ok(_) => return Err(taken(path)),
    }
    let flags = DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW;
    let there = retry_on_intr(|| rustix::fs::openat(parent, name, flags, Mode::empty())).map_err(looking)?;
    let entries = entries(there.as_fd()).map_err(|error| failed("looking at", path, error))?;
    if entries.is_empty() { Ok(()) } else { Err(taken(path)) }
}

fn taken(path: &Path) -> Error {
    Error::invalid(format!(
        "\"{}\" is there already, and not an empty directory; nothing is overwritten",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{self, Disk, Write};
    use forrest_engine::Options;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use tempfile::TempDir;

    fn place() -> (TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("copy");
        (directory, path)
    }

    fn begin(path: &Path) -> Result<Unfinished> {
        Unfinished::begin(path, None)
    }

    fn refused(path: &Path, store: Option<&Real>) -> Error {
        Unfinished::begin(path, store).err().expect("it was begun")
    }

    fn names(path: &Path) -> Vec<String> {
        let entries = fs::read_dir(path).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn put(disk: &Real, name: Name) {
        let file = disk::create(disk, name).unwrap();
        let mut write = Write { bytes: b"oak".to_vec(), sync: true, ..Write::default() };
        disk::write_all(disk, &file, name, &mut write).unwrap();
    }

    #[test]
    fn it_has_its_name_when_it_is_whole_and_not_before() {
        let (keep, path) = place();
        let beside = "copy.checkpoint-unfinished";
        for is_there in [false, true] {
            if is_there {
                fs::remove_dir_all(&path).unwrap();
                fs::create_dir(&path).unwrap();
            }
            let unfinished = begin(&path).unwrap();
            put(&unfinished.disk().unwrap(), Name::table(1));
            assert_eq!(path.exists(), is_there);
            assert_eq!(names(&keep.path().join(beside)), ["00000001.table"]);
            unfinished.finish().unwrap();
            assert_eq!(names(keep.path()), ["copy"]);
            assert_eq!(names(&path), ["00000001.table"]);
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        }
    }

    #[test]
    fn what_is_given_up_leaves_nothing() {
        let (keep, path) = place();
        let unfinished = begin(&path).unwrap();
        put(&unfinished.disk().unwrap(), Name::table(1));
        drop(unfinished);
        assert!(names(keep.path()).is_empty());
        // Something else was created there meanwhile; it is left alone.
        let unfinished = begin(&path).unwrap();
        put(&unfinished.disk().unwrap(), Name::table(1));
        fs::create_dir(&path).unwrap();
        fs::write(path.join("notes"), "mine").unwrap();
        let error = unfinished.finish().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("not an empty directory"), "{error}");
        assert_eq!((names(keep.path()), names(&path)), (vec!["copy".to_owned()], vec!["notes".to_owned()]));
    }

    #[test]
    fn what_a_crash_left_is_removed_by_the_next_attempt() {
        let (keep, path) = place();
        let beside = keep.path().join("copy.checkpoint-unfinished");
        fs::create_dir(&beside).unwrap();
        fs::write(beside.join("00000007.table"), "half").unwrap();
        fs::write(beside.join("00000008.manifest"), "").unwrap();
        let unfinished = begin(&path).unwrap();
        assert!(names(&beside).is_empty());
        put(&unfinished.disk().unwrap(), Name::table(7));
        unfinished.finish().unwrap();
        assert_eq!(fs::read(path.join("00000007.table")).unwrap(), b"oak");
        // But files that are not a store's are kept.
        let (keep, path) = place();
        let beside = keep.path().join("copy.checkpoint-unfinished");
        fs::create_dir(&beside).unwrap();
        fs::write(beside.join("00000007.table"), "half").unwrap();
        fs::write(beside.join("diary"), "mine").unwrap();
        let message = refused(&path, None).to_string();
        assert!(message.contains("\"diary\"") && message.contains("move it away"), "{message}");
        assert_eq!(names(&beside), ["00000007.table", "diary"]);
    }

    #[test]
    fn two_attempts_at_once_do_not_meet() {
        let (_keep, path) = place();
        let first = begin(&path).unwrap();
        put(&first.disk().unwrap(), Name::table(1));
        assert_eq!(refused(&path, None).kind(), ErrorKind::Busy);
        first.finish().unwrap();
        assert_eq!(names(&path), ["00000001.table"]);
        assert_eq!(refused(&path, None).kind(), ErrorKind::InvalidArgument);
        fs::remove_dir_all(&path).unwrap();
        begin(&path).unwrap().finish().unwrap();
    }

    /// Many threads at one place: one of them wins, and its directory is complete.
    #[test]
    fn of_many_attempts_one_succeeds_and_is_whole() {
        for _ in 0..20 {
            let (keep, path) = place();
            let won: usize = std::thread::scope(|scope| {
                let attempt = || -> Result<()> {
                    let unfinished = begin(&path)?;
                    let disk = unfinished.disk()?;
                    (0..3).for_each(|number| put(&disk, Name::table(number)));
                    unfinished.finish()
                };
                let attempts: Vec<_> = (0..4).map(|_| scope.spawn(attempt)).collect();
                let ended = attempts.into_iter().map(|attempt| attempt.join().unwrap());
                ended.map(|ended| usize::from(ended.is_ok())).sum()
            });
            assert_eq!(won, 1);
            assert_eq!(names(&path).len(), 3);
            assert_eq!(names(keep.path()), ["copy"]);
        }
    }

    #[test]
    fn what_is_no_place_for_it_is_told_and_left_alone() {
        let (keep, path) = place();
        fs::write(keep.path().join("file"), "here").unwrap();
        fs::create_dir(keep.path().join("full")).unwrap();
        fs::write(keep.path().join("full/notes"), "here").unwrap();
        fs::create_dir(keep.path().join("empty")).unwrap();
        symlink(keep.path().join("empty"), keep.path().join("link")).unwrap();
        symlink(keep.path().join("nowhere"), keep.path().join("dangling")).unwrap();
        let before = names(keep.path());
        for (name, kind, said) in [
            ("file", ErrorKind::InvalidArgument, "there already"),
            ("full", ErrorKind::InvalidArgument, "there already"),
            ("link", ErrorKind::InvalidArgument, "there already"),
            ("dangling", ErrorKind::InvalidArgument, "there already"),
            ("missing/copy", ErrorKind::Io, "opening the directory for a new one"),
            ("file/copy", ErrorKind::Io, "opening the directory for a new one"),
            ("full/..", ErrorKind::InvalidArgument, "does not end in a name"),
        ] {
            let error = refused(&keep.path().join(name), None);
            assert_eq!(error.kind(), kind, "{error}");
            let message = error.to_string();
            assert!(message.contains(said) && message.contains(keep.path().to_str().unwrap()), "{message}");
        }
        assert_eq!(refused(Path::new("/"), None).kind(), ErrorKind::InvalidArgument);
        assert_eq!(names(keep.path()), before);
        let long = keep.path().join("x".repeat(250));
        assert_eq!(refused(&long, None).kind(), ErrorKind::Io);
        assert_eq!((names(keep.path()), path.exists()), (before, false));
    }

    #[test]
    fn a_directory_that_may_not_be_written_to_is_told() {
        let (keep, path) = place();
        let allow = |mode| fs::set_permissions(keep.path(), fs::Permissions::from_mode(mode)).unwrap();
        allow(0o500);
        // Even a user who may write everywhere may not make a directory here.
        let path = if fs::write(keep.path().join("probe"), "").is_ok() {
            if !Path::new("/sys/kernel").exists() {
                allow(0o700);
                println!("skipped: this user may write everywhere");
                return;
            }
            PathBuf::from("/sys/kernel/copy")
        } else {
            path
        };
        let error = refused(&path, None);
        allow(0o700);
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.to_string().contains("making"), "{error}");
        assert!(!path.exists());
    }

    #[test]
    fn not_within_the_store_itself() {
        let (keep, path) = place();
        let store = Real::open(&path, &Options::default()).unwrap();
        fs::create_dir_all(path.join("a/b")).unwrap();
        symlink(path.join("a"), keep.path().join("link")).unwrap();
        let before = names(&path);
        for within in ["copy/new", "copy/a/b/new", "link/new", "link/../new", "copy/a"] {
            let error = refused(&keep.path().join(within), Some(&store));
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{within}");
            assert!(error.to_string().contains("within the directory of the store"), "{within}: {error}");
        }
        let error = refused(&path, Some(&store));
        assert!(error.to_string().contains("there already"), "{error}");
        assert_eq!(names(&path), before);
        // Also after the store was moved.
        fs::rename(&path, keep.path().join("moved")).unwrap();
        refused(&keep.path().join("moved/new"), Some(&store));
        Unfinished::begin(&path, Some(&store)).unwrap().finish().unwrap();
    }

    /// One file with two names: removing one keeps the other.
    #[test]
    fn a_file_that_is_held_is_shared_although_its_name_goes() {
        let (keep, path) = place();
        let store = Real::open(&keep.path().join("store"), &Options::default()).unwrap();
        put(&store, Name::table(1));
        let file = disk::open(&store, Name::table(1)).unwrap();
        disk::unlink(&store, Name::table(1)).unwrap();
        assert!(disk::open_if_there(&store, Name::table(1)).unwrap().is_none());
        let unfinished = begin(&path).unwrap();
        disk::share(&store, &file, Name::table(1), &unfinished.disk().unwrap()).unwrap();
        let links =
            || fs::metadata(keep.path().join("copy.checkpoint-unfinished/00000001.table")).unwrap().nlink();
        assert_eq!(links(), 2);
        drop(file);
        assert_eq!(links(), 1);
        unfinished.finish().unwrap();
        assert_eq!(disk::list(&store).unwrap(), []);
        assert_eq!(fs::read(path.join("00000001.table")).unwrap(), b"oak");
        assert_eq!(store.open(Name::table(1)).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}

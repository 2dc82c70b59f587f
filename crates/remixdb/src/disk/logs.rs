//! The directory of its own that the logs of a store may have, and how the two directories find each other.
//!
//! Each of the two has a small file that states where the other one is: `LOG-DIRECTORY` in the directory of the store,
//! `STORE` in that of the logs. Both have the same random number. It decides whether the two belong together; the path
//! is for messages, for salvage and for moving the logs. So either directory may be moved while the store is closed.
//!
//! ```text
//! remixdb logs 1
//! 00b1946ac92492d2
//! /mnt/fast/trees
//! ```
//!
//! - A store is opened with the directory of its logs, or not at all. A store without a file `LOG-DIRECTORY` has its
//!   logs where its other files are.
//! - Two stores never share a directory: one that has a `STORE` of another store, or any file of a store, is refused.
//! - A process that changes the store holds a lock on the file `LOCK` in the directory of the logs too.
//! - The files are replaced by renaming, and `STORE` is durable before `LOG-DIRECTORY` is there. After a crash
//!   between the two, the next attempt finds a `STORE` with its own path.
//!
//! Not here: moving the logs of a store that is there (moving.rs). An older release that does not know `LOG-DIRECTORY`
//! refuses the store: the manifest names a log that it does not find.

use super::calls::{self, Unwritable, entries, failed, identity, lock_file, open_directory, sync_names};
use super::files::{Place, open_regular};
use super::{Kind, Name, uninterrupted};
use forrest_engine::{Error, ErrorKind, Result};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FlockOperation, OFlags};
use rustix::io::retry_on_intr;
use std::ffi::OsStr;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The file in the directory of the store.
const DIRECTORY_FILE: &str = "LOG-DIRECTORY";
/// The file in the directory of the logs.
const STORE_FILE: &str = "STORE";
/// The file in the directory of the logs that is there while logs are moved there.
const MOVING: &str = "MOVING";
/// The file in the store's directory that states where the logs were, until they are removed there.
const OLD_FILE: &str = "OLD-LOG-DIRECTORY";
/// The file in the directory of the logs that is locked while the store is open.
const LOCK: &str = "LOCK";
/// The first line of these files, except the empty ones.
const HEAD: &str = "remixdb logs 1";
/// The beginning of that line in each version.
const HEAD_ANY: &str = "remixdb logs ";
/// No such file is longer: systems limit paths to 4,096 bytes.
const BYTES_MAX: u64 = 8 << 10;

/// The content of a file that states a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Link {
    id: u64,
    /// Where the other directory is.
    path: PathBuf,
}

impl Link {
    /// Reads the file of this name in the directory at `at`; `None` if it is not there.
    fn read(directory: BorrowedFd<'_>, name: &str, at: &Path) -> Result<Option<Link>> {
        let path = at.join(name);
        let reading = |error: io::Error| failed("reading", &path, error);
        let file = match uninterrupted(|| open_regular(directory, name, OFlags::RDONLY)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(reading)?,
        };
        let mut bytes = Vec::new();
        file.take(BYTES_MAX).read_to_end(&mut bytes).map_err(reading)?;
        match Link::parse(&bytes) {
            Some(link) => Ok(Some(link)),
            None if bytes.starts_with(HEAD_ANY.as_bytes()) && !bytes.starts_with(HEAD.as_bytes()) => {
                let what = "is of another version; open the store with the release that wrote it";
                Err(Error::unsupported(format!("{} {what}", path.display())))
            }
            None => {
                let what = "it does not state where the other directory of the store is";
                Err(Error::new(ErrorKind::Corrupt, format!("{} is damaged: {what}", path.display())))
            }
        }
    }

    fn parse(bytes: &[u8]) -> Option<Link> {
        let mut parts = bytes.strip_suffix(b"\n")?.splitn(3, |&byte| byte == b'\n');
        (parts.next()? == HEAD.as_bytes()).then_some(())?;
        let id = str::from_utf8(parts.next()?).ok().filter(|digits| digits.len() == 16)?;
        let path = parts.next().filter(|path| !path.is_empty())?;
        Some(Link { id: u64::from_str_radix(id, 16).ok()?, path: PathBuf::from(OsStr::from_bytes(path)) })
    }

    /// Writes the file of this name in the directory at `at`, durably.
    fn write(&self, directory: BorrowedFd<'_>, name: &str, at: &Path) -> Result<()> {
        let new = format!("{name}.new");
        let mut bytes = format!("{HEAD}\n{:016x}\n", self.id).into_bytes();
        bytes.extend_from_slice(self.path.as_os_str().as_bytes());
        bytes.push(b'\n');
        let write = || {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
            let mut file = uninterrupted(|| open_regular(directory, &new, flags))?;
            file.write_all(&bytes)?;
            // DURABILITY: the content is durable before the name stands for it, and then the name.
            retry_on_intr(|| calls::sync_data(file.as_fd()))?;
            rustix::fs::renameat(directory, &new, directory, name)?;
            Ok(retry_on_intr(|| sync_names(directory))?)
        };
        write().map_err(|error: io::Error| failed("writing", &at.join(name), error))
    }

    /// Removes the logs and the file `STORE` from a directory that no store has its logs in any more. One that is not
    /// there, or has become another store's, stays as it is. Nobody else may open the store, so nobody uses it.
    fn clear(&self) -> Result<()> {
        let clearing = |errno| failed("removing logs from", &self.path, errno);
        let Some((directory, _)) = open_directory(&self.path, false, "log directory")? else { return Ok(()) };
        let place = directory.as_fd();
        if Link::read(place, STORE_FILE, &self.path)?.is_none_or(|owner| owner.id != self.id) {
            return Ok(());
        }
        let there = entries(place).map_err(|error| failed("looking at", &self.path, error))?;
        let is_log = |entry: &&String| Name::parse(entry).is_some_and(|name| name.kind == Kind::Log);
        // DURABILITY: without STORE, which goes last, another call would not find out whose the logs are.
        let remove = |name: &String| rustix::fs::unlinkat(place, name, AtFlags::empty());
        there.iter().filter(is_log).try_for_each(remove).map_err(clearing)?;
        retry_on_intr(|| sync_names(place)).map_err(clearing)?;
        remove_durably(place, STORE_FILE).map_err(clearing)
    }
}

/// A directory of logs that no other process uses.
pub(super) struct Taken {
    pub(super) directory: OwnedFd,
    pub(super) lock: File,
    id: u64,
    path: PathBuf,
}

/// The directory of the logs that the store at `at` states; `None` if it has none of its own.
pub(super) fn stated(at: &Path) -> Result<Option<PathBuf>> {
    let Some((store, _)) = open_directory(at, false, "store's directory")? else { return Ok(None) };
    Ok(Link::read(store.as_fd(), DIRECTORY_FILE, at)?.map(|link| link.path))
}

/// Why this process cannot change a store with this directory of logs, if so.
pub(super) fn refusal(wanted: Option<&Path>) -> Option<&'static str> {
    // If it cannot be opened, those who want it find that out.
    let (directory, _) = open_directory(wanted?, false, "log directory").ok()??;
    Some(match calls::unwritable(directory.as_fd())? {
        Unwritable::Mount => "the file system of its log directory is mounted read-only",
        Unwritable::Rights => "this process may not write to its log directory",
    })
}

/// Where the logs of the store at `at` are, to be read.
pub(super) fn find(at: &Path, store: BorrowedFd<'_>, wanted: Option<&Path>) -> Result<Place> {
    match checked(at, store, wanted)? {
        None => Ok(Place::Here),
        Some((directory, ..)) => Ok(Place::Apart(directory)),
    }
}

/// The same for a process that changes the store and holds its lock. `is_new` says that there is no store yet, so that
/// it may get a directory for its logs.
pub(super) fn take(
    at: &Path,
    store: BorrowedFd<'_>,
    wanted: Option<&Path>,
    is_new: bool,
) -> Result<(Place, Option<File>)> {
    let is_linked = Link::read(store, DIRECTORY_FILE, at)?.is_some();
    if let Some(wanted) = wanted
        && is_new
        && !is_linked
    {
        let taken = claim(at, store, wanted, false)?;
        link(at, store, &taken)?;
        return Ok((Place::Apart(taken.directory), Some(taken.lock)));
    }
    let Some((directory, link, wanted)) = checked(at, store, wanted)? else { return Ok((Place::Here, None)) };
    let lock = lock(directory.as_fd(), wanted)?;
    // One of the two may have been moved. If that cannot be noted now, messages have the old path.
    if let (Ok(at), Ok(wanted)) = (at.canonicalize(), wanted.canonicalize()) {
        let owner = Link::read(directory.as_fd(), STORE_FILE, &wanted)?;
        if owner.is_some_and(|owner| owner.path != at) {
            let _ = Link { id: link.id, path: at.clone() }.write(directory.as_fd(), STORE_FILE, &wanted);
        }
        if link.path != wanted {
            let _ = Link { id: link.id, path: wanted }.write(store, DIRECTORY_FILE, &at);
        }
    }
    Ok((Place::Apart(directory), Some(lock)))
}

/// The directory of the logs, if it is the wanted one and belongs to the store.
fn checked<'w>(
    at: &Path,
    store: BorrowedFd<'_>,
    wanted: Option<&'w Path>,
) -> Result<Option<(OwnedFd, Link, &'w Path)>> {
    let shown = at.display();
    let (link, wanted) = match (Link::read(store, DIRECTORY_FILE, at)?, wanted) {
        (None, None) => return Ok(None),
        (None, Some(wanted)) => {
            return Err(Error::invalid(format!(
                "the store at {shown} has its logs in its own directory, and log_directory is {}; open it without \
                 log_directory, or move the logs there first with \"forrest move-log\"",
                wanted.display(),
            )));
        }
        (Some(link), None) => {
            let logs = link.path.display();
            return Err(Error::invalid(format!(
                "the store at {shown} has its logs in {logs}, and log_directory is not set; open it with log_directory \
                 {logs}, or move the logs first with \"forrest move-log\""
            )));
        }
        (Some(link), Some(wanted)) => (link, wanted),
    };
    let logs = link.path.display();
    let Some((directory, _)) = open_directory(wanted, false, "log directory")? else {
        return Err(Error::invalid(format!(
            "there is no log directory {}; the logs of the store at {shown} were in {logs}; \
             mount its device, or open the store with the directory that has the logs",
            wanted.display(),
        )));
    };
    let owner = Link::read(directory.as_fd(), STORE_FILE, wanted)?;
    if owner.as_ref().is_none_or(|owner| owner.id != link.id) {
        let whose = owner.map_or("the log directory of no store".to_string(), |owner| {
            format!("the log directory of the store at {}", owner.path.display())
        });
        return Err(Error::invalid(format!(
            "log_directory {} is {whose}; the logs of the store at {shown} are in {logs}; open it with log_directory \
             {logs}",
            wanted.display(),
        )));
    }
    Ok(Some((directory, link, wanted)))
}

fn lock(directory: BorrowedFd<'_>, wanted: &Path) -> Result<File> {
    let opening = |error| failed("opening the file LOCK in the log directory", wanted, error);
    let flags = OFlags::RDWR | OFlags::CREATE;
    let file = uninterrupted(|| open_regular(directory, LOCK, flags)).map_err(opening)?;
    lock_file(&file, FlockOperation::NonBlockingLockExclusive, wanted, "log directory", "")?;
    Ok(file)
}

/// Makes a directory for the logs of the store at `at`, or takes an existing one that has no files of a store. If logs
/// are going to be moved there, it has the file `MOVING` until [`moved`] is called. Copies that a move of this store
/// has left beside one are removed.
pub(super) fn claim(at: &Path, store: BorrowedFd<'_>, wanted: &Path, is_move: bool) -> Result<Taken> {
    let looking = |error: io::Error| failed("looking at the log directory", wanted, error);
    let shown = wanted.display();
    let (directory, made) = open_directory(wanted, true, "log directory")?.expect("it was made");
    let place = directory.as_fd();
    if identity(place).map_err(looking)? == identity(store).map_err(looking)? {
        let what = "without log_directory the logs are there";
        return Err(Error::invalid(format!(
            "log_directory {shown} is the directory of the store itself; {what}"
        )));
    }
    let lock = lock(place, wanted)?;
    let own = at.canonicalize().map_err(|error| failed("looking at", at, error))?;
    let owner = Link::read(place, STORE_FILE, wanted)?;
    if let Some(owner) = &owner
        && owner.path != own
    {
        let what = "each store needs a directory of its own for its logs";
        let other = owner.path.display();
        return Err(Error::invalid(format!("log_directory {shown} belongs to the store at {other}; {what}")));
    }
    let there = entries(place).map_err(looking)?;
    let is_moving = there.iter().any(|entry| entry == MOVING);
    for name in there.iter().filter(|entry| Name::parse(entry).is_some()) {
        if owner.is_none() || !is_move || !is_moving {
            return Err(Error::invalid(format!(
                "log_directory {shown} has {name} in it, a file of a store; choose another directory, or move it away"
            )));
        }
        rustix::fs::unlinkat(place, name, AtFlags::empty()).map_err(|errno| looking(errno.into()))?;
    }
    // DURABILITY: the process that made it may have been killed before.
    calls::sync_parent(place, made)
        .map_err(|errno| failed("syncing the parent of the log directory", wanted, errno))?;
    let path = wanted.canonicalize().map_err(looking)?;
    let id = RandomState::new().hash_one(SystemTime::now());
    if is_move {
        // DURABILITY: the file is there before the first copy, and after the last.
        let made = uninterrupted(|| open_regular(place, MOVING, OFlags::WRONLY | OFlags::CREATE)).map(drop);
        made.and_then(|()| Ok(retry_on_intr(|| sync_names(place))?)).map_err(looking)?;
    }
    Link { id, path: own }.write(place, STORE_FILE, wanted)?;
    Ok(Taken { directory, lock, id, path })
}

/// All logs were copied to the directory at `wanted`. Durable when it returns.
pub(super) fn moved(wanted: &Path, taken: &Taken) -> Result<()> {
    let place = taken.directory.as_fd();
    remove_durably(place, MOVING)
        .map_err(|errno| failed("removing the file MOVING of the log directory", wanted, errno))
}

/// The logs of the store at `at` are about to leave their directory. Durable when it returns. From when the store
/// states another place on, [`leave`] removes what is there.
pub(super) fn begin_to_leave(at: &Path, store: BorrowedFd<'_>) -> Result<()> {
    match Link::read(store, DIRECTORY_FILE, at)? {
        Some(old) => old.write(store, OLD_FILE, at),
        None => Ok(()),
    }
}

/// Removes the logs from the directory that the store at `at` has left, if a move came so far, durably.
pub(super) fn leave(at: &Path, store: BorrowedFd<'_>) -> Result<()> {
    let Some(old) = Link::read(store, OLD_FILE, at)? else { return Ok(()) };
    let current = Link::read(store, DIRECTORY_FILE, at)?;
    if current.is_none_or(|current| current.id != old.id) {
        old.clear()?;
    }
    remove_durably(store, OLD_FILE).map_err(|errno| failed("removing", &at.join(OLD_FILE), errno))
}

/// The store at `at` has its logs in its own directory from now on. Durable when it returns.
pub(super) fn unlink(at: &Path, store: BorrowedFd<'_>) -> Result<()> {
    remove_durably(store, DIRECTORY_FILE)
        .map_err(|errno| failed("removing the file LOG-DIRECTORY of", at, errno))
}

fn remove_durably(directory: BorrowedFd<'_>, name: &str) -> rustix::io::Result<()> {
    rustix::fs::unlinkat(directory, name, AtFlags::empty())?;
    retry_on_intr(|| sync_names(directory))
}

/// From now on the logs of the store at `at` are there. Durable when it returns.
pub(super) fn link(at: &Path, store: BorrowedFd<'_>, taken: &Taken) -> Result<()> {
    Link { id: taken.id, path: taken.path.clone() }.write(store, DIRECTORY_FILE, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_what_it_says() {
        let link = Link { id: 0x00b1_946a_c924_92d2, path: PathBuf::from("/mnt/fast/trees") };
        let text = b"remixdb logs 1\n00b1946ac92492d2\n/mnt/fast/trees\n";
        let place = tempfile::tempdir().unwrap();
        let directory = File::open(place.path()).unwrap();
        link.write(directory.as_fd(), STORE_FILE, place.path()).unwrap();
        assert_eq!(std::fs::read(place.path().join(STORE_FILE)).unwrap(), text);
        assert_eq!(Link::parse(text).unwrap(), link);
        for end in 0..text.len() {
            assert_eq!(Link::parse(&text[..end]), None, "{end}");
        }
        let odd = Link { path: PathBuf::from(OsStr::from_bytes(b"/a\nb\xFF")), ..link };
        odd.write(directory.as_fd(), STORE_FILE, place.path()).unwrap();
        assert_eq!(Link::read(directory.as_fd(), STORE_FILE, place.path()).unwrap(), Some(odd));
        for (text, kind) in [
            ("remixdb logs 2\nx\n", ErrorKind::Unsupported),
            ("", ErrorKind::Corrupt),
            ("x", ErrorKind::Corrupt),
        ] {
            std::fs::write(place.path().join(STORE_FILE), text).unwrap();
            let error = Link::read(directory.as_fd(), STORE_FILE, place.path()).unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
        }
    }
}

//! [`Disk`]: the seam to the operating system, a directory of files that are named by kind and number.
//!
//! It is a trait chosen at compile time, with two implementations: [`Real`], and for tests and fuzzers `simulated`,
//! which crashes in every way that a disk can. What lies below the seam is as bare as a system call: writes and reads
//! may be short or interrupted, and every call may fail. What makes sense of that is here, above it (`write_all`,
//! `read_exact`, `sync`), so that the simulation reaches it.
//!
//! A sync is never a call beside the writes that it is to cover, but part of the same [`Write`]: no caller can
//! let the two overtake one another.

mod files;
mod real;
#[cfg(any(test, feature = "simulated"))]
pub mod simulated;
#[cfg(test)]
mod tests;
mod unfinished;

pub use real::Real;
pub use unfinished::Unfinished;

use forrest_engine::{Error, ErrorKind, Result};
use rustix::io::Errno;
use std::fmt;
use std::io;

/// So much of a file is copied at once.
const COPIED_BYTES: usize = 1 << 20;

/// What a file is. Its extension tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The write-ahead log of one memtable.
    Log,
    /// Which tables make up the store.
    Manifest,
    /// The REMIX of a partition.
    Remix,
    /// Sorted pairs.
    Table,
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::Log, Kind::Manifest, Kind::Remix, Kind::Table];

    fn extension(self) -> &'static str {
        match self {
            Kind::Log => "log",
            Kind::Manifest => "manifest",
            Kind::Remix => "remix",
            Kind::Table => "table",
        }
    }
}

/// No file of a store has a greater number: there are always numbers above those in the directory.
const NUMBER_MAX: u64 = 1 << 60;

/// The name of a file: what it is and its number, which no other file of the store has or had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    /// What it is.
    pub kind: Kind,
    /// Its number.
    pub number: u64,
}

impl Name {
    /// The name of a log.
    pub fn log(number: u64) -> Name {
        Name { kind: Kind::Log, number }
    }

    /// The name of a manifest.
    pub fn manifest(number: u64) -> Name {
        Name { kind: Kind::Manifest, number }
    }

    /// The name of a remix.
    pub fn remix(number: u64) -> Name {
        Name { kind: Kind::Remix, number }
    }

    /// The name of a table.
    pub fn table(number: u64) -> Name {
        Name { kind: Kind::Table, number }
    }

    /// The name that a directory entry stands for; `None` if no file of a store is called so.
    pub fn parse(entry: &str) -> Option<Name> {
        let (digits, extension) = entry.split_once('.')?;
        let kind = Kind::ALL.into_iter().find(|kind| kind.extension() == extension)?;
        let name = Name { kind, number: digits.parse().ok()? };
        (name.to_string() == entry && name.number <= NUMBER_MAX).then_some(name)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08}.{}", self.number, self.kind.extension())
    }
}

/// Bytes to be written to a file at one place, and whether a sync is to follow that covers them and all that was
/// written before. The buffer is owned, because the system may work on it while the caller waits elsewhere.
#[derive(Debug, Default)]
pub struct Write {
    /// Where the first byte of `bytes` belongs.
    pub offset: u64,
    /// What is to be written.
    pub bytes: Vec<u8>,
    /// So many of `bytes` are written already.
    pub done: usize,
    /// Whether to sync when all is written.
    pub sync: bool,
}

/// A directory of files, and what can be done with them. Nothing here tries twice.
pub trait Disk: Send + Sync + 'static {
    /// An open file. Dropping it closes it.
    type File: Send + Sync + 'static;

    /// The names of all entries of the directory, in no order.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Makes a file that must not exist. Its name is durable after [`sync_directory`](Disk::sync_directory).
    fn create(&self, name: Name) -> io::Result<Self::File>;

    /// Opens a file that exists, to be read and synced.
    fn open(&self, name: Name) -> io::Result<Self::File>;

    /// Removes the name of a file, which whoever holds it can read on. That is durable after
    /// [`sync_directory`](Disk::sync_directory), unless somebody holds the file that long.
    fn unlink(&self, name: Name) -> io::Result<()>;

    /// Returns when every name made or removed before is durable.
    fn sync_directory(&self) -> io::Result<()>;

    /// The length of a file in bytes.
    fn len(&self, file: &Self::File) -> io::Result<u64>;

    /// Reads from `offset` on into the beginning of `buffer`; the number of bytes, 0 at the end of the file.
    fn read_at(&self, file: &Self::File, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes the bytes that are not `done` yet and returns how many it wrote, which may be fewer; if it wrote them
    /// all and a sync is asked for, returns when the device reported it.
    fn submit(&self, file: &Self::File, write: &mut Write) -> io::Result<usize>;

    /// Gives a file of this directory, which is held, the same name in another one as well: they are one file then.
    /// Where the system or the file system has that not, it is an error. The name is durable after
    /// [`sync_directory`](Disk::sync_directory) of the other.
    fn link(&self, _file: &Self::File, _name: Name, _into: &Self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Says that bytes from `offset` on will be read soon, so that the device can begin. A hint, which waits for
    /// nothing.
    fn will_read(&self, _file: &Self::File, _offset: u64, _bytes: u64) {}

    /// How many files have a descriptor of the system.
    fn open_files(&self) -> u64 {
        0
    }
}

/// What an operation on a file failed with, told to the user.
#[cold]
pub(crate) fn failed(doing: &str, name: impl fmt::Display, error: &io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            ErrorKind::OutOfSpace
        }
        _ if is_lack_of_descriptors(error) => ErrorKind::OutOfSpace,
        _ => ErrorKind::Io,
    };
    Error::new(kind, format!("{doing} {name}: {error}"))
}

/// Whether a call failed because the process, or the system, has as many descriptors as it may have.
fn is_lack_of_descriptors(error: &io::Error) -> bool {
    let errno = error.raw_os_error();
    [Errno::MFILE, Errno::NFILE].iter().any(|lack| errno == Some(lack.raw_os_error()))
}

/// Stored bytes that cannot be what was written.
#[cold]
pub(crate) fn damaged(name: Name, offset: u64, what: impl fmt::Display) -> Error {
    Error::new(ErrorKind::Corrupt, format!("{name} at offset {offset}: {what}"))
}

/// A file of a format version that this build does not read. Nothing is damaged; another build made it.
#[cold]
pub(crate) fn other_version(name: Name, found: impl fmt::Display, known: impl fmt::Display) -> Error {
    let what = "open the store with the release that wrote it";
    Error::unsupported(format!(
        "{name} has format version {found}, and this build reads version {known}; {what}"
    ))
}

/// Does what an interrupted call is to be done again for.
fn uninterrupted<R>(mut call: impl FnMut() -> io::Result<R>) -> io::Result<R> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Writes all of it, and syncs if it is to. After an error nobody knows what of it the device has.
pub(crate) fn write_all<D: Disk>(disk: &D, file: &D::File, name: Name, write: &mut Write) -> Result<()> {
    loop {
        let left = write.bytes.len() - write.done;
        // A call that is interrupted while it syncs is done again whole: the same bytes to the same place.
        let count =
            uninterrupted(|| disk.submit(file, write)).map_err(|error| failed("writing", name, &error))?;
        assert!(count <= left, "a disk wrote more than it was given");
        write.done += count;
        if count == left {
            return Ok(());
        }
        if count == 0 {
            return Err(failed("writing", name, &io::ErrorKind::WriteZero.into()));
        }
    }
}

/// Returns when all that was written to a file before is durable.
pub(crate) fn sync<D: Disk>(disk: &D, file: &D::File, name: Name) -> Result<()> {
    let mut nothing = Write { sync: true, ..Write::default() };
    uninterrupted(|| disk.submit(file, &mut nothing)).map_err(|error| failed("syncing", name, &error))?;
    Ok(())
}

/// Reads until the buffer is full or the file ends; the number of bytes.
pub(crate) fn read_up_to<D: Disk>(
    disk: &D,
    file: &D::File,
    name: Name,
    buffer: &mut [u8],
    offset: u64,
) -> Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        let at = offset + done as u64;
        let count = uninterrupted(|| disk.read_at(file, &mut buffer[done..], at))
            .map_err(|error| failed("reading", name, &error))?;
        if count == 0 {
            break;
        }
        done += count;
    }
    Ok(done)
}

/// Fills the buffer; that the file ends before is damage.
pub(crate) fn read_exact<D: Disk>(
    disk: &D,
    file: &D::File,
    name: Name,
    buffer: &mut [u8],
    offset: u64,
) -> Result<()> {
    let done = read_up_to(disk, file, name, buffer, offset)?;
    if done < buffer.len() {
        let missing = buffer.len() - done;
        return Err(damaged(name, offset + done as u64, format!("the file ends, {missing} bytes too early")));
    }
    Ok(())
}

/// Makes a file.
pub(crate) fn create<D: Disk>(disk: &D, name: Name) -> Result<D::File> {
    uninterrupted(|| disk.create(name)).map_err(|error| failed("creating", name, &error))
}

/// Opens a file.
pub(crate) fn open<D: Disk>(disk: &D, name: Name) -> Result<D::File> {
    uninterrupted(|| disk.open(name)).map_err(|error| failed("opening", name, &error))
}

/// Opens a file, if there is one of that name.
pub(crate) fn open_if_there<D: Disk>(disk: &D, name: Name) -> Result<Option<D::File>> {
    match uninterrupted(|| disk.open(name)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some).map_err(|error| failed("opening", name, &error)),
    }
}

/// Puts a table or REMIX that is held into another directory, under the same name: as one file with two names, or,
/// where that is refused for whatever reason, as a copy, which is durable then. The name is not before the directory is
/// synced.
pub(crate) fn share<D: Disk>(disk: &D, file: &D::File, name: Name, into: &D) -> Result<()> {
    assert!(matches!(name.kind, Kind::Table | Kind::Remix), "{name} may still be written to");
    if uninterrupted(|| disk.link(file, name, into)).is_ok() {
        return Ok(());
    }
    let copy = create(into, name)?;
    let mut offset = 0;
    loop {
        let mut bytes = vec![0; COPIED_BYTES];
        let count = read_up_to(disk, file, name, &mut bytes, offset)?;
        bytes.truncate(count);
        let ends = count < COPIED_BYTES;
        // DURABILITY: the whole copy, before a manifest names it.
        write_all(into, &copy, name, &mut Write { offset, bytes, done: 0, sync: ends })?;
        offset += count as u64;
        if ends {
            return Ok(());
        }
    }
}

/// Removes a file.
pub(crate) fn unlink<D: Disk>(disk: &D, name: Name) -> Result<()> {
    uninterrupted(|| disk.unlink(name)).map_err(|error| failed("removing", name, &error))
}

/// Makes names durable.
pub(crate) fn sync_directory<D: Disk>(disk: &D) -> Result<()> {
    uninterrupted(|| disk.sync_directory())
        .map_err(|error| failed("syncing", "the store's directory", &error))
}

/// The length of a file.
pub(crate) fn len<D: Disk>(disk: &D, file: &D::File, name: Name) -> Result<u64> {
    uninterrupted(|| disk.len(file)).map_err(|error| failed("measuring", name, &error))
}

/// The names of the store's files, sorted; entries that are none of its own are left out.
pub(crate) fn list<D: Disk>(disk: &D) -> Result<Vec<Name>> {
    let entries =
        uninterrupted(|| disk.list()).map_err(|error| failed("listing", "the store's directory", &error))?;
    let mut names: Vec<Name> = entries.iter().filter_map(|entry| Name::parse(entry)).collect();
    names.sort();
    Ok(names)
}

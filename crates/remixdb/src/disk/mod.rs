//! [`Disk`]: the interface to the operating system, a directory of files that are named by kind and number.
//!
//! It is a trait with two implementations: [`Real`], and for tests and fuzzers `simulated`, which crashes in every way
//! that a disk can. [`Bare`] is one of the two, and [`Sealed`] encrypts its files: the engine is compiled for that type
//! alone. The trait's calls are as bare as system calls: writes and reads may be short or interrupted, and every call
//! may fail. The functions here (`write_all`, `read_exact`, `sync`) repeat and check them, above the trait, so that the
//! simulation tests them too.
//!
//! A sync is part of the same [`Write`] as the bytes that it covers, never a separate call. So no caller can
//! reorder the two.

mod bare;
mod calls;
mod files;
#[cfg(feature = "encryption")]
pub(crate) mod keys;
mod logs;
#[cfg(test)]
pub(crate) mod memory;
mod moving;
mod real;
mod removing;
mod sealed;
#[cfg(any(test, feature = "simulated"))]
pub mod simulated;
#[cfg(test)]
mod tests;
mod unfinished;
#[cfg(not(feature = "encryption"))]
mod unsealed;

pub use bare::{Bare, BareFile};
#[cfg(feature = "encryption")]
pub use keys::Cipher;
#[cfg(feature = "encryption")]
pub(crate) use keys::TAG;
pub use moving::move_log;
pub use real::Real;
pub use removing::{destroy, is_store};
pub use sealed::{Sealed, SealedFile};
pub use unfinished::Unfinished;
pub(crate) use unfinished::check_apart;
#[cfg(not(feature = "encryption"))]
pub use unsealed::Cipher;
#[cfg(not(feature = "encryption"))]
pub(crate) use unsealed::TAG;

use crate::cached;
use forrest_engine::clock::wall_ms;
use forrest_engine::{Error, ErrorKind, Result};
use rustix::io::Errno;
use std::any::Any;
use std::fmt;
use std::io;
use std::ops::Range;

/// A file is copied in pieces of this size.
const COPIED_BYTES: usize = 1 << 20;

/// The kind of a file, shown by its extension.
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
    /// In a directory of backups: the bytes of a table or REMIX under another number, or the description of a backup.
    Copy,
    /// In a directory of backups: an empty file, which says that the description of this number is complete.
    Backup,
    /// The keys of an encrypted directory, themselves encrypted.
    Key,
}

impl Kind {
    const ALL: [Kind; 7] =
        [Kind::Log, Kind::Manifest, Kind::Remix, Kind::Table, Kind::Copy, Kind::Backup, Kind::Key];

    fn extension(self) -> &'static str {
        match self {
            Kind::Log => "log",
            Kind::Manifest => "manifest",
            Kind::Remix => "remix",
            Kind::Table => "table",
            Kind::Copy => "copy",
            Kind::Backup => "backup",
            Kind::Key => "key",
        }
    }
}

/// No file of a store has a greater number: there are always numbers above those in the directory.
pub(crate) const NUMBER_MAX: u64 = 1 << 60;

/// The name of a file: its kind, and its number, which no other file of the store has or ever had.
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

    /// The name of a copy in a directory of backups.
    pub fn copy(number: u64) -> Name {
        Name { kind: Kind::Copy, number }
    }

    /// The name that says that a backup is complete.
    pub fn backup(number: u64) -> Name {
        Name { kind: Kind::Backup, number }
    }

    /// The name of a file of keys.
    pub fn key(number: u64) -> Name {
        Name { kind: Kind::Key, number }
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

/// Bytes to be written to a file at one place, and whether a sync follows that covers them and everything
/// written before. The buffer is owned, because the system may work on it while the caller waits elsewhere.
#[derive(Debug, Default)]
pub struct Write {
    /// The offset of the first byte of `bytes` in the file.
    pub offset: u64,
    /// The bytes to be written.
    pub bytes: Vec<u8>,
    /// Number of `bytes` that are already written.
    pub done: usize,
    /// Whether to sync after the write.
    pub sync: bool,
}

/// See [`Disk::hold`]. It ends when this is dropped.
#[derive(Default)]
pub struct Hold(Option<Box<dyn Any + Send + Sync>>);

impl Hold {
    /// A hold that ends when `until` is dropped.
    pub fn new(until: impl Any + Send + Sync) -> Hold {
        Hold(Some(Box::new(until)))
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Hold" } else { "no Hold" })
    }
}

/// A directory of files, and the operations on them. No operation is repeated here.
pub trait Disk: Send + Sync + 'static {
    /// An open file. Dropping it closes it.
    type File: Send + Sync + 'static;

    /// An error that says why, if nothing in the directory can be changed.
    fn check_writable(&self) -> Result<()> {
        Ok(())
    }

    /// The names of all entries of the directory, in no order.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Makes a file that must not exist. Its name is durable after [`sync_directory`](Disk::sync_directory).
    fn create(&self, name: Name) -> io::Result<Self::File>;

    /// Opens a file that exists, to be read and synced.
    fn open(&self, name: Name) -> io::Result<Self::File>;

    /// Opens a file that exists, to write again the bytes that it has.
    fn open_again(&self, _name: Name) -> io::Result<Self::File> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Removes the name of a file. A holder of the file can still read it. The removal is durable after
    /// [`sync_directory`](Disk::sync_directory), or later if the file is still held then.
    fn unlink(&self, name: Name) -> io::Result<()>;

    /// Returns when every name of a file of this kind that was made or removed before is durable. Logs may have a
    /// directory of their own; all other kinds are in one.
    fn sync_directory(&self, of: Kind) -> io::Result<()>;

    /// The length of a file in bytes.
    fn len(&self, file: &Self::File) -> io::Result<u64>;

    /// Reads from `offset` on into the beginning of `buffer`; the number of bytes, 0 at the end of the file.
    fn read_at(&self, file: &Self::File, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes the bytes that are not `done` yet and returns how many it wrote, which may be fewer; if it wrote them
    /// all and a sync is asked for, returns when the device reported it.
    fn submit(&self, file: &Self::File, write: &mut Write) -> io::Result<usize>;

    /// Takes the space for a file up to a length, which stays what it is, so that writes there find room. Does nothing
    /// where the file system cannot do that.
    fn reserve(&self, _file: &Self::File, _len: u64) -> io::Result<()> {
        Ok(())
    }

    /// Whether logs have a device of their own, or may have: their space is not that of the other files.
    fn is_log_apart(&self) -> bool {
        false
    }

    /// Bytes that files of this kind can still take, as far as that is known.
    fn free(&self, _of: Kind) -> io::Result<u64> {
        Ok(u64::MAX)
    }

    /// The wall clock, in milliseconds since 1970. Values expire by it.
    fn now_ms(&self) -> u64 {
        wall_ms()
    }

    /// Adds a name in another directory, the same one, to a file of this directory that is held: both names
    /// are then one file. Fails if the system or the file system cannot do that. The name is durable after
    /// [`sync_directory`](Disk::sync_directory) of the other directory.
    fn link(&self, _file: &Self::File, _name: Name, _into: &Self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Two numbers that no other file of the directory has had, as far as the system knows: of the file, and of the
    /// time of its last write. A copy has other ones. `None` if the system has none.
    fn mark(&self, _file: &Self::File) -> io::Result<Option<(u64, u64)>> {
        Ok(None)
    }

    /// Announces that bytes from `offset` on will be read soon, so that the device can begin. A hint; it does
    /// not wait.
    fn will_read(&self, _file: &Self::File, _offset: u64, _bytes: u64) {}

    /// Holds the state that a manifest has: until the result is dropped, no process that changes the store removes a
    /// file that this state names. It is the duty of the caller to check that the manifest is still the newest one.
    fn hold(&self, _manifest: Name) -> io::Result<Hold> {
        Ok(Hold::default())
    }

    /// Whether somebody holds the state of a manifest.
    fn is_held(&self, _manifest: Name) -> io::Result<bool> {
        Ok(false)
    }

    /// In a new directory, which will have the files of another one, and files of its own from this number on: an
    /// encrypted disk gives these a key that the other one has not. Durable when it returns.
    fn part(&self, _first: u64) -> Result<()> {
        Ok(())
    }

    /// Whether its files are encrypted.
    fn is_sealed(&self) -> bool {
        false
    }

    /// What the records of a log or a manifest are encrypted with.
    fn cipher<'f>(&self, _file: &'f Self::File) -> Option<&'f Cipher> {
        None
    }

    /// Sets how many files may have a descriptor.
    fn set_open_files(&self, _files: usize) {}

    /// Number of files that have a descriptor.
    fn open_files(&self) -> u64 {
        0
    }
}

/// The error of a store, or of something of it, in a process that was forked from the one that opened it.
#[cold]
pub(crate) fn forked() -> Error {
    Error::invalid(
        "this store was opened before the process was forked from another, and is of no use here; open it in this process, \
         once the other one has closed it",
    )
}

/// The error of a change of a store that can only be read.
#[cold]
pub(crate) fn read_only(why: impl fmt::Display) -> Error {
    Error::unsupported(format!("the store can only be read: {why}"))
}

/// The error that the user sees when an operation on a file fails.
#[cold]
pub(crate) fn failed(doing: &str, name: impl fmt::Display, error: &io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            ErrorKind::OutOfSpace
        }
        io::ErrorKind::OutOfMemory => ErrorKind::OutOfSpace,
        // An encrypted block. No call of the system fails with it.
        io::ErrorKind::InvalidData => ErrorKind::Corrupt,
        _ if is_lack_of_descriptors(error) => ErrorKind::OutOfSpace,
        _ => ErrorKind::Io,
    };
    Error::new(kind, format!("{doing} {name}: {error}"))
}

/// Whether a call failed because the process, or the system, has its maximum number of descriptors.
fn is_lack_of_descriptors(error: &io::Error) -> bool {
    let errno = error.raw_os_error();
    [Errno::MFILE, Errno::NFILE].iter().any(|lack| errno == Some(lack.raw_os_error()))
}

/// Stored bytes that differ from what was written.
#[cold]
pub(crate) fn damaged(name: Name, offset: u64, what: impl fmt::Display) -> Error {
    Error::new(ErrorKind::Corrupt, format!("{name} at offset {offset}: {what}"))
}

/// A file that the manifest names and the directory does not have.
#[cold]
pub(crate) fn missing(name: Name) -> Error {
    Error::new(ErrorKind::Corrupt, format!("{name} is missing, and the manifest names it"))
}

/// The beginning of the message of a read that failed. An error has no other place for that.
const READING: &str = "reading";

/// Whether stored bytes are damaged, or cannot be read: an error about a file that is there, and not about one that is
/// being written.
pub(crate) fn is_damage(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Corrupt => true,
        ErrorKind::Io => error.message().starts_with(READING),
        _ => false,
    }
}

/// Whether an error is about the content of a file, or the device that has it, where nothing is written.
pub(crate) fn is_unreadable(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Io)
}

/// The same error once more.
#[cold]
pub(crate) fn again(error: &Error) -> Error {
    Error::new(error.kind(), error.message())
}

/// A file of a format version that this build does not read. It is not damaged; another build wrote it.
#[cold]
pub(crate) fn other_version(name: Name, found: impl fmt::Display, known: impl fmt::Display) -> Error {
    let what = "open the store with the release that wrote it";
    Error::unsupported(format!(
        "{name} has format version {found}, and this build reads version {known}; {what}"
    ))
}

/// Repeats a call while it is interrupted.
fn uninterrupted<R>(mut call: impl FnMut() -> io::Result<R>) -> io::Result<R> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Writes all of it, and syncs if requested. After an error, the part that the device has is unknown.
pub(crate) fn write_all<D: Disk>(disk: &D, file: &D::File, name: Name, write: &mut Write) -> Result<()> {
    loop {
        let left = write.bytes.len() - write.done;
        // If the sync is interrupted, the whole call is repeated: the same bytes to the same place.
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

/// Takes the space for a file up to a length.
pub(crate) fn reserve<D: Disk>(disk: &D, file: &D::File, name: Name, len: u64) -> Result<()> {
    uninterrupted(|| disk.reserve(file, len)).map_err(|error| failed("reserving space for", name, &error))
}

/// Makes a file with space for its first bytes. After an error it is not there.
pub(crate) fn create_reserved<D: Disk>(disk: &D, name: Name, len: u64) -> Result<D::File> {
    let file = create(disk, name)?;
    if let Err(error) = reserve(disk, &file, name, len) {
        drop(file);
        // A file without content is ignored when the store is opened.
        let _ = unlink(disk, name);
        return Err(error);
    }
    Ok(file)
}

/// Returns when everything written to a file before is durable.
pub(crate) fn sync<D: Disk>(disk: &D, file: &D::File, name: Name) -> Result<()> {
    let mut nothing = Write { sync: true, ..Write::default() };
    uninterrupted(|| disk.submit(file, &mut nothing)).map_err(|error| failed("syncing", name, &error))?;
    Ok(())
}

/// Writes bytes of a file again, as they are read, up to its end. After a sync has failed, the system may return bytes
/// that the device does not have, and report later syncs as done. Bytes that are written again are not among these: the
/// next sync stores them or fails. Returns the file; `None` if it is gone.
pub(crate) fn write_again<D: Disk>(disk: &D, name: Name, bytes: Range<u64>) -> Result<Option<D::File>> {
    let file = match uninterrupted(|| disk.open_again(name)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // No process of this user wrote it there. The next sync has to do.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return open_if_there(disk, name),
        opened => opened.map_err(|error| failed("opening to be written again:", name, &error))?,
    };
    copy_bytes((disk, &file), (disk, &file), name, bytes, false)?;
    Ok(Some(file))
}

/// Copies bytes of a file to the same place of another, up to the end of the first. The last write syncs if `sync`.
fn copy_bytes<D: Disk>(
    (from, old): (&D, &D::File),
    (into, new): (&D, &D::File),
    name: Name,
    bytes: Range<u64>,
    sync: bool,
) -> Result<()> {
    let mut offset = bytes.start;
    while offset < bytes.end {
        let mut piece = vec![0; (bytes.end - offset).min(COPIED_BYTES as u64) as usize];
        let count = read_up_to(from, old, name, &mut piece, offset)?;
        let ends = count < piece.len();
        piece.truncate(count);
        if count > 0 || sync {
            write_all(into, new, name, &mut Write { offset, bytes: piece, done: 0, sync: sync && ends })?;
        }
        offset += count as u64;
        if ends {
            break;
        }
    }
    Ok(())
}

/// Reads until the buffer is full or the file ends; returns the number of bytes.
pub(crate) fn read_up_to<D: Disk>(
    disk: &D,
    file: &D::File,
    name: Name,
    buffer: &mut [u8],
    offset: u64,
) -> Result<usize> {
    cached::check()?;
    let mut done = 0;
    while done < buffer.len() {
        let at = offset + done as u64;
        let count = uninterrupted(|| disk.read_at(file, &mut buffer[done..], at))
            .map_err(|error| failed(READING, name, &error))?;
        if count == 0 {
            break;
        }
        done += count;
    }
    Ok(done)
}

/// Fills the buffer; a file that ends earlier is damaged.
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

/// Creates a file.
pub(crate) fn create<D: Disk>(disk: &D, name: Name) -> Result<D::File> {
    uninterrupted(|| disk.create(name)).map_err(|error| failed("creating", name, &error))
}

/// Opens a file.
pub(crate) fn open<D: Disk>(disk: &D, name: Name) -> Result<D::File> {
    uninterrupted(|| disk.open(name)).map_err(|error| failed("opening", name, &error))
}

/// Opens a file that the manifest names.
///
/// # Errors
/// `Corrupt` if it is missing; `Io`.
pub(crate) fn open_named<D: Disk>(disk: &D, name: Name) -> Result<D::File> {
    open_if_there(disk, name)?.ok_or_else(|| missing(name))
}

/// Opens a file, if it exists.
pub(crate) fn open_if_there<D: Disk>(disk: &D, name: Name) -> Result<Option<D::File>> {
    match uninterrupted(|| disk.open(name)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some).map_err(|error| failed("opening", name, &error)),
    }
}

/// Puts a table, a REMIX or a log that takes no more records, and that is held, into another directory, under the same
/// name. If the two directories
/// cannot share the file, for whatever reason, it is copied, and the copy is durable. The name is durable
/// once the directory is synced.
pub(crate) fn share<D: Disk>(disk: &D, file: &D::File, name: Name, into: &D) -> Result<()> {
    assert!(matches!(name.kind, Kind::Table | Kind::Remix | Kind::Log), "{name} may still be written to");
    if uninterrupted(|| disk.link(file, name, into)).is_ok() {
        return Ok(());
    }
    copy(disk, file, name, into)
}

/// Copies a file to another directory, under the same name. The copy is durable, and its name is once the directory is
/// synced.
fn copy<D: Disk>(disk: &D, file: &D::File, name: Name, into: &D) -> Result<()> {
    let copy = create(into, name)?;
    // DURABILITY: the copy is durable before anything names it.
    copy_bytes((disk, file), (into, &copy), name, 0..u64::MAX, true)
}

/// Removes a file.
pub(crate) fn unlink<D: Disk>(disk: &D, name: Name) -> Result<()> {
    uninterrupted(|| disk.unlink(name)).map_err(|error| failed("removing", name, &error))
}

/// Makes the names of files of a kind durable.
pub(crate) fn sync_directory<D: Disk>(disk: &D, of: Kind) -> Result<()> {
    let what = if of == Kind::Log { "the directory of the logs" } else { "the store's directory" };
    uninterrupted(|| disk.sync_directory(of)).map_err(|error| failed("syncing", what, &error))
}

/// The length of a file.
pub(crate) fn len<D: Disk>(disk: &D, file: &D::File, name: Name) -> Result<u64> {
    uninterrupted(|| disk.len(file)).map_err(|error| failed("measuring", name, &error))
}

/// See [`Disk::mark`]; 0 and 0 if there is none.
pub(crate) fn mark<D: Disk>(disk: &D, file: &D::File, name: Name) -> Result<(u64, u64)> {
    let mark = uninterrupted(|| disk.mark(file)).map_err(|error| failed("looking at", name, &error))?;
    Ok(mark.unwrap_or_default())
}

/// Holds the state of a manifest; `None` if it is gone.
pub(crate) fn hold<D: Disk>(disk: &D, manifest: Name) -> Result<Option<Hold>> {
    match uninterrupted(|| disk.hold(manifest)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        held => held.map(Some).map_err(|error| failed("locking", manifest, &error)),
    }
}

/// Whether somebody holds the state of a manifest, or may.
pub(crate) fn is_held<D: Disk>(disk: &D, manifest: Name) -> bool {
    uninterrupted(|| disk.is_held(manifest)).unwrap_or(true)
}

/// The names of the store's files, sorted. Other entries are left out.
pub(crate) fn list<D: Disk>(disk: &D) -> Result<Vec<Name>> {
    let entries =
        uninterrupted(|| disk.list()).map_err(|error| failed("listing", "the store's directory", &error))?;
    let mut names: Vec<Name> = entries.iter().filter_map(|entry| Name::parse(entry)).collect();
    names.sort();
    Ok(names)
}

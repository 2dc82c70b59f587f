//! [`Bare`]: what a [`Sealed`](super::Sealed) disk keeps its files on: a real directory, or in tests and fuzzers a
//! simulated one.
//!
//! It is one type, so that the engine is compiled once, for every disk it runs on. The cost is a branch for each call,
//! and none in a build without simulation.

use super::files::Handle;
use super::{Disk, Hold, Kind, Name, Real, Write};
#[cfg(any(test, feature = "simulated"))]
use forrest_engine::Error;
use forrest_engine::Result;
use std::io;

#[cfg(test)]
use super::memory::{self, Memory};
#[cfg(any(test, feature = "simulated"))]
use super::simulated::{self, Simulated};

/// See the head of the file.
#[derive(Debug)]
pub enum Bare {
    /// A directory of the file system.
    Real(Real),
    /// A disk that crashes and fails as a test asks.
    #[cfg(any(test, feature = "simulated"))]
    Simulated(Simulated),
    /// Files in memory.
    #[cfg(test)]
    Memory(Memory),
}

/// An open file of a [`Bare`] disk.
pub enum BareFile {
    /// Of a directory.
    Real(Handle),
    /// Of a simulated disk.
    #[cfg(any(test, feature = "simulated"))]
    Simulated(simulated::File),
    /// In memory.
    #[cfg(test)]
    Memory(memory::File),
}

impl From<Real> for Bare {
    fn from(disk: Real) -> Bare {
        Bare::Real(disk)
    }
}

#[cfg(any(test, feature = "simulated"))]
impl From<Simulated> for Bare {
    fn from(disk: Simulated) -> Bare {
        Bare::Simulated(disk)
    }
}

#[cfg(test)]
impl From<Memory> for Bare {
    fn from(disk: Memory) -> Bare {
        Bare::Memory(disk)
    }
}

impl Bare {
    /// The directory of the file system.
    ///
    /// # Errors
    /// `Unsupported` for a simulated disk.
    pub(crate) fn real(&self) -> Result<&Real> {
        match self {
            Bare::Real(disk) => Ok(disk),
            #[cfg(any(test, feature = "simulated"))]
            _ => Err(Error::unsupported("a simulated disk has no directory for this")),
        }
    }
}

/// A file of one disk was given to another of another kind.
#[cfg(any(test, feature = "simulated"))]
#[cold]
fn not_its_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "the file is of another disk")
}

/// A call of whatever disk it is.
macro_rules! on {
    ($bare:expr, $disk:ident => $call:expr) => {
        match $bare {
            Bare::Real($disk) => $call,
            #[cfg(any(test, feature = "simulated"))]
            Bare::Simulated($disk) => $call,
            #[cfg(test)]
            Bare::Memory($disk) => $call,
        }
    };
}

/// A call that results in a file.
macro_rules! file_on {
    ($bare:expr, $disk:ident => $call:expr) => {
        match $bare {
            Bare::Real($disk) => $call.map(BareFile::Real),
            #[cfg(any(test, feature = "simulated"))]
            Bare::Simulated($disk) => $call.map(BareFile::Simulated),
            #[cfg(test)]
            Bare::Memory($disk) => $call.map(BareFile::Memory),
        }
    };
}

/// A call with a file of the disk.
macro_rules! with_file {
    ($bare:expr, $file:expr, ($disk:ident, $of:ident) => $call:expr, $other:expr) => {
        match ($bare, $file) {
            (Bare::Real($disk), BareFile::Real($of)) => $call,
            #[cfg(any(test, feature = "simulated"))]
            (Bare::Simulated($disk), BareFile::Simulated($of)) => $call,
            #[cfg(test)]
            (Bare::Memory($disk), BareFile::Memory($of)) => $call,
            #[cfg(any(test, feature = "simulated"))]
            _ => $other,
        }
    };
}

impl Disk for Bare {
    type File = BareFile;

    fn check_writable(&self) -> Result<()> {
        on!(self, disk => disk.check_writable())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        on!(self, disk => disk.list())
    }

    fn create(&self, name: Name) -> io::Result<BareFile> {
        file_on!(self, disk => disk.create(name))
    }

    fn open(&self, name: Name) -> io::Result<BareFile> {
        file_on!(self, disk => disk.open(name))
    }

    fn open_again(&self, name: Name) -> io::Result<BareFile> {
        file_on!(self, disk => disk.open_again(name))
    }

    fn unlink(&self, name: Name) -> io::Result<()> {
        on!(self, disk => disk.unlink(name))
    }

    fn sync_directory(&self, of: Kind) -> io::Result<()> {
        on!(self, disk => disk.sync_directory(of))
    }

    fn len(&self, file: &BareFile) -> io::Result<u64> {
        with_file!(self, file, (disk, file) => disk.len(file), Err(not_its_file()))
    }

    #[inline]
    fn read_at(&self, file: &BareFile, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        with_file!(self, file, (disk, file) => disk.read_at(file, buffer, offset), Err(not_its_file()))
    }

    #[inline]
    fn submit(&self, file: &BareFile, write: &mut Write) -> io::Result<usize> {
        with_file!(self, file, (disk, file) => disk.submit(file, write), Err(not_its_file()))
    }

    fn reserve(&self, file: &BareFile, len: u64) -> io::Result<()> {
        with_file!(self, file, (disk, file) => disk.reserve(file, len), Err(not_its_file()))
    }

    fn is_log_apart(&self) -> bool {
        on!(self, disk => disk.is_log_apart())
    }

    fn free(&self, of: Kind) -> io::Result<u64> {
        on!(self, disk => disk.free(of))
    }

    fn now_ms(&self) -> u64 {
        on!(self, disk => disk.now_ms())
    }

    fn link(&self, file: &BareFile, name: Name, into: &Bare) -> io::Result<()> {
        match (self, file, into) {
            (Bare::Real(disk), BareFile::Real(file), Bare::Real(into)) => disk.link(file, name, into),
            #[cfg(any(test, feature = "simulated"))]
            (Bare::Simulated(disk), BareFile::Simulated(file), Bare::Simulated(into)) => {
                disk.link(file, name, into)
            }
            #[cfg(any(test, feature = "simulated"))]
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    fn mark(&self, file: &BareFile) -> io::Result<Option<(u64, u64)>> {
        with_file!(self, file, (disk, file) => disk.mark(file), Err(not_its_file()))
    }

    fn will_read(&self, file: &BareFile, offset: u64, bytes: u64) {
        with_file!(self, file, (disk, file) => disk.will_read(file, offset, bytes), ());
    }

    fn hold(&self, manifest: Name) -> io::Result<Hold> {
        on!(self, disk => disk.hold(manifest))
    }

    fn is_held(&self, manifest: Name) -> io::Result<bool> {
        on!(self, disk => disk.is_held(manifest))
    }

    fn set_open_files(&self, files: usize) {
        on!(self, disk => disk.set_open_files(files));
    }

    fn open_files(&self) -> u64 {
        on!(self, disk => disk.open_files())
    }
}

//! A file that is read from beginning to end, and whose lengths are not trusted.
//!
//! Every length in a file is compared with the rest of the file and with [`PAIR_BYTES_MAX`] before memory is allocated
//! for it. Errors name the file, the offset and the reason.

use crate::errors::told;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Most bytes that a key or a value may have: 1 GiB. No format needs the limit; it keeps a damaged length in a
/// large file from taking all memory.
pub(crate) const PAIR_BYTES_MAX: u64 = 1 << 30;
/// Bytes fetched at once.
const BUFFER_BYTES: usize = 256 << 10;

/// A file being read.
pub(crate) struct Input {
    path: PathBuf,
    reader: BufReader<File>,
    at: u64,
    len: u64,
}

/// An error about the bytes at an offset of a file.
pub(crate) fn damaged(path: &Path, at: u64, what: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{}: byte {at}: {what}", path.display()))
}

impl Input {
    /// Opens a regular file: other files have no known length to check lengths against.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let open = || {
            let file = File::open(path)?;
            let of = file.metadata()?;
            if of.is_file() {
                return Ok((file, of.len()));
            }
            Err(io::Error::new(io::ErrorKind::InvalidInput, "is no regular file"))
        };
        let (file, len) = open().map_err(|error| told(path.display(), &error))?;
        Ok(Input { path: path.to_owned(), reader: BufReader::with_capacity(BUFFER_BYTES, file), at: 0, len })
    }

    /// Offset of the next byte.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// Length of the file when it was opened, in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Bytes that are left.
    pub(crate) fn left(&self) -> u64 {
        self.len - self.at
    }

    /// Moves to an offset.
    pub(crate) fn seek(&mut self, at: u64) -> io::Result<()> {
        if at > self.len {
            return Err(self.damaged(at, format!("lies beyond the end, which is at {}", self.len)));
        }
        self.reader.seek(SeekFrom::Start(at)).map_err(|error| told(self.path.display(), &error))?;
        self.at = at;
        Ok(())
    }

    /// Skips bytes that are known to exist.
    pub(crate) fn skip(&mut self, bytes: u64) -> io::Result<()> {
        match i64::try_from(bytes) {
            Ok(by) if bytes <= self.left() => {
                self.reader.seek_relative(by).map_err(|error| told(self.path.display(), &error))?;
                self.at += bytes;
                Ok(())
            }
            _ => self.seek(self.at.saturating_add(bytes)),
        }
    }

    /// An error about the bytes at an offset.
    pub(crate) fn damaged(&self, at: u64, what: impl std::fmt::Display) -> io::Error {
        damaged(&self.path, at, what)
    }

    /// Refuses a length that goes beyond the file or is more than `most`.
    fn believe(&self, len: u64, most: u64, what: &str) -> io::Result<usize> {
        if len > self.left() {
            let left = self.left();
            return Err(self.damaged(self.at, format!("{what} of {len} bytes, but the file has {left} more")));
        }
        if len > most {
            return Err(self.damaged(self.at, format!("{what} of {len} bytes; {most} are the most")));
        }
        Ok(len as usize)
    }

    /// Replaces the content of `into` by the next `len` bytes, a key or a value.
    pub(crate) fn piece(&mut self, len: u64, what: &str, into: &mut Vec<u8>) -> io::Result<()> {
        into.clear();
        self.append(len, PAIR_BYTES_MAX, what, into)
    }

    /// Appends the next `len` bytes to `into`. Fails if `len` is above `most`.
    pub(crate) fn append(&mut self, len: u64, most: u64, what: &str, into: &mut Vec<u8>) -> io::Result<()> {
        let len = self.believe(len, most, what)?;
        into.reserve(len);
        let read = self.reader.by_ref().take(len as u64).read_to_end(into);
        let read = read.map_err(|error| told(self.path.display(), &error))?;
        self.at += read as u64;
        if read < len { Err(self.damaged(self.at, "the file became shorter")) } else { Ok(()) }
    }

    /// The next bytes of a field.
    pub(crate) fn field<const N: usize>(&mut self, what: &str) -> io::Result<[u8; N]> {
        self.believe(N as u64, N as u64, what)?;
        let mut bytes = [0; N];
        self.reader.read_exact(&mut bytes).map_err(|error| told(self.path.display(), &error))?;
        self.at += N as u64;
        Ok(bytes)
    }

    /// The next number of 32 bits, little endian.
    pub(crate) fn u32(&mut self, what: &str) -> io::Result<u32> {
        self.field(what).map(u32::from_le_bytes)
    }

    /// The next number of 64 bits, little endian.
    pub(crate) fn u64(&mut self, what: &str) -> io::Result<u64> {
        self.field(what).map(u64::from_le_bytes)
    }

    /// Some of the next bytes, without consuming them; empty at the end.
    pub(crate) fn peek(&mut self) -> io::Result<&[u8]> {
        self.reader.fill_buf().map_err(|error| told(self.path.display(), &error))
    }

    /// Consumes this many of the bytes that [`Input::peek`] returned.
    pub(crate) fn consume(&mut self, bytes: usize) {
        self.reader.consume(bytes);
        self.at += bytes as u64;
    }

    /// Replaces the content of `line` by the next line without its end; false at the end of the file.
    pub(crate) fn line(&mut self, line: &mut Vec<u8>) -> io::Result<bool> {
        line.clear();
        let from = self.at;
        let read = self.reader.by_ref().take(2 * PAIR_BYTES_MAX).read_until(b'\n', line);
        let read = read.map_err(|error| told(self.path.display(), &error))? as u64;
        self.at += read;
        if read == 2 * PAIR_BYTES_MAX {
            return Err(self.damaged(from, format!("a line of more than {read} bytes")));
        }
        if line.last() == Some(&b'\n') {
            line.pop();
            line.pop_if(|byte| *byte == b'\r');
        }
        Ok(read > 0)
    }
}

/// For decoders of a crate of their own; the offset goes along.
impl Read for Input {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(into)?;
        self.at += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ancestor cut offsets and sizes to 32 bits: what lay beyond 4 GiB was lost.
    #[test]
    fn offsets_beyond_4_gib_are_kept() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let end = (4 << 30) + 12;
        file.as_file().set_len(end).unwrap();
        let mut input = Input::open(file.path()).unwrap();
        input.seek(end - 8).unwrap();
        assert_eq!((input.at(), input.left(), input.len()), (end - 8, 8, end));
        assert_eq!(input.u32("a number").unwrap(), 0);
        let error = input.piece(5, "a key", &mut Vec::new()).unwrap_err().to_string();
        assert!(error.ends_with("byte 4294967304: a key of 5 bytes, but the file has 4 more"), "{error}");
        input.piece(4, "a key", &mut Vec::new()).unwrap();
        assert!(input.u64("a number").is_err() && input.seek(end + 1).is_err());
    }

    #[test]
    fn a_length_in_a_large_file_takes_no_more_than_the_limit() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(3 << 30).unwrap();
        let mut input = Input::open(file.path()).unwrap();
        let mut into = Vec::new();
        let error = input.piece(2 << 30, "a value", &mut into).unwrap_err().to_string();
        assert!(error.contains("are the most") && into.capacity() == 0, "{error}");
    }

    #[test]
    fn what_has_no_end_is_refused() {
        for path in ["/dev/zero", "/", "/nowhere/at/all"] {
            let error = Input::open(Path::new(path)).err().unwrap().to_string();
            assert!(error.starts_with(path), "{error}");
        }
    }
}

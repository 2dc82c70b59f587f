//! [`ValueReader`]: reads a value in pieces.

use forrest_engine::Pieces;
use std::fmt;
use std::io::{self, Read};

/// Reads a value in pieces, by [`std::io::Read`]; see [`View::reader`](crate::View::reader). It keeps the value as it
/// was, and on disk the space that it takes, until it is dropped. A store on disk cannot be opened again before that.
pub struct ValueReader(Box<dyn Pieces>);

impl ValueReader {
    pub(crate) fn new(pieces: Box<dyn Pieces>) -> ValueReader {
        ValueReader(pieces)
    }

    /// The length of the value in bytes.
    pub fn value_bytes(&self) -> u64 {
        self.0.value_bytes()
    }
}

impl Read for ValueReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(io::Error::other)
    }
}

impl fmt::Debug for ValueReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ValueReader({} bytes)", self.value_bytes())
    }
}

//! [`Pieces`]: a value that is read in pieces.

use crate::{Result, Value};

/// A value that is read in pieces, from its beginning on. It stays as it was when it was found, whatever changes.
pub trait Pieces: Send + Sync {
    /// Its length in bytes.
    fn value_bytes(&self) -> u64;

    /// Reads the next bytes into `out`: as many as there is room for, or as are left. 0 at the end.
    ///
    /// # Errors
    /// `Io`; `Corrupt` if the value is damaged, at the latest in place of its last bytes. A second call fails as well.
    fn read(&mut self, out: &mut [u8]) -> Result<usize>;
}

/// A value in memory.
pub struct Whole {
    value: Value,
    at: usize,
}

impl Whole {
    /// All of a value.
    pub fn new(value: Value) -> Whole {
        Whole { value, at: 0 }
    }
}

impl Pieces for Whole {
    fn value_bytes(&self) -> u64 {
        self.value.len() as u64
    }

    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        let rest = &self.value[self.at..];
        let len = rest.len().min(out.len());
        out[..len].copy_from_slice(&rest[..len]);
        self.at += len;
        Ok(len)
    }
}

//! [`Walk`]: the operations that are measured for both a REMIX and a merging iterator.

use forrest_engine::Result;

/// Walks over the keys of runs in order: the newest version of each, without deleted keys.
pub trait Walk {
    /// Goes to the first key; false if there is none.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    fn first(&mut self) -> Result<bool>;
    /// Goes to the first key that is not less than `key`; false if there is none.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    fn seek(&mut self, key: &[u8]) -> Result<bool>;
    /// Goes to the next key; false if there is none. REQUIRES: it is at a key.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    fn next(&mut self) -> Result<bool>;
    /// The current key. REQUIRES: it is at one.
    fn key(&self) -> &[u8];
    /// Passes the current key and its value to `see`. REQUIRES: it is at a key.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    fn show<R>(&mut self, see: impl FnOnce(&[u8], &[u8]) -> R) -> Result<R>;
}

//! [`Walk`]: what is measured of a REMIX and of a merging iterator alike.

use forrest_engine::Result;

/// What walks over the keys of runs in order: the newest version of each, and no key that is deleted.
pub trait Walk {
    /// Goes to the first key; false if there is none.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    fn first(&mut self) -> Result<bool>;
    /// Goes to the first key that is not below `key`; false if there is none.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    fn seek(&mut self, key: &[u8]) -> Result<bool>;
    /// Goes to the next key; false if there is none. REQUIRES: it is at one.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    fn next(&mut self) -> Result<bool>;
    /// The key that it is at. REQUIRES: it is at one.
    fn key(&self) -> &[u8];
    /// Shows the key that it is at, and its value. REQUIRES: it is at one.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    fn show<R>(&mut self, see: impl FnOnce(&[u8], &[u8]) -> R) -> Result<R>;
}

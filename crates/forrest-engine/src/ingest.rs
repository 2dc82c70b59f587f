//! [`Ingest`]: many sorted pairs, which a keyspace gets at one instant.

use crate::error::{Error, Result};

/// Pairs of a keyspace that are being ingested. Nobody sees them before `finish`. Dropping it discards them.
pub trait Ingest: Send + Sync {
    /// Adds a pair. Its key is greater than that of the pair before.
    ///
    /// # Errors
    /// [`out_of_order`]; `Limit`. The ingest can go on after these. `Io`, `OutOfSpace`, `Stopped`.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Makes all pairs visible at one instant, as if they were set then, and returns their number.
    ///
    /// # Errors
    /// `InvalidArgument` if the keyspace was dropped, or if a pair has failed; `OutOfSpace`; `Io`; `Corrupt`;
    /// `Stopped`. The keyspace has no pair then.
    fn finish(self: Box<Self>) -> Result<u64>;
}

/// Maximum number of bytes of a key in a message.
const SHOWN_BYTES: usize = 64;

/// The error of a key that is not greater than the one before.
#[cold]
pub fn out_of_order(before: &[u8], key: &[u8]) -> Error {
    let shown = |key: &[u8]| {
        let rest = if key.len() > SHOWN_BYTES { "..." } else { "" };
        format!("\"{}{rest}\"", key[..key.len().min(SHOWN_BYTES)].escape_ascii())
    };
    Error::invalid(format!(
        "key {} is not greater than the one before, {}; an ingest takes each key once, in ascending order of bytes",
        shown(key),
        shown(before)
    ))
}

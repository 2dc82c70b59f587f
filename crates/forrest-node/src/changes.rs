//! The bytes in which JavaScript passes the changes of a batch, or many keys, in one call.
//!
//! Numbers are little endian, as `Buffer.writeUInt32LE` makes them. They are not aligned.
//!
//! | what | bytes |
//! |---|---|
//! | batch | changes, one after the other |
//! | change | tag: 0 delete, 1 set · length of the key, 4 · length of the value, 4 · key · value |
//! | keys | for each: length, 4 · key |
//!
//! ```text
//! set "oak" = "1": 01 03000000 01000000 6f616b 31
//! ```
//!
//! Malformed bytes are refused. A length is compared with the bytes that are left before it is used.

use crate::failure::Failure;
use forrest::WriteBatch;

/// Bytes of a change before its key.
const HEAD: usize = 9;

/// The changes of a batch.
pub(crate) fn batch(bytes: &[u8]) -> Result<WriteBatch, Failure> {
    let mut batch = WriteBatch::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (head, body) = rest.split_at_checked(HEAD).ok_or_else(malformed)?;
        let [tag, k0, k1, k2, k3, v0, v1, v2, v3] = *head else { return Err(malformed()) };
        let key = u32::from_le_bytes([k0, k1, k2, k3]) as usize;
        let value = u32::from_le_bytes([v0, v1, v2, v3]) as usize;
        let (key, body) = body.split_at_checked(key).ok_or_else(malformed)?;
        let (value, body) = body.split_at_checked(value).ok_or_else(malformed)?;
        match tag {
            0 => batch.delete(key),
            1 => batch.set(key, value),
            _ => return Err(malformed()),
        };
        rest = body;
    }
    Ok(batch)
}

/// Many keys.
pub(crate) fn keys(bytes: &[u8]) -> Result<Vec<&[u8]>, Failure> {
    let mut keys = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (length, body) = rest.split_first_chunk().ok_or_else(malformed)?;
        let (key, body) =
            body.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(malformed)?;
        keys.push(key);
        rest = body;
    }
    Ok(keys)
}

fn malformed() -> Failure {
    Failure::argument("the bytes of a batch, or of many keys, are malformed")
}

//! The bytes in which many changes or pairs cross between Java and the library in one call.
//!
//! Numbers are big endian, as Java's buffers have them.
//!
//! | what | bytes |
//! |---|---|
//! | batch | changes, one after the other |
//! | change | tag: 0 delete, 1 set, 2 delete range · number of the view, one byte · length of the key, 4 · length of the value, 4 · key · value |
//! | page | handle of the rest of the range, 8; 0 if there is none · pairs |
//! | pair | length of the key, 4 · length of the value, 4 · key · value |
//!
//! A range is deleted from its key, included, to its value, excluded.
//!
//! ```text
//! set "oak" = "1" in the first view: 01 00 00000003 00000001 6f616b 31
//! ```

use crate::failure::Failure;
use forrest::{Entry, Keyspace, WriteBatch};

/// The bytes of a change or pair before its key.
const HEAD: usize = 10;
/// The most bytes that a page has room for before there is a pair.
const PAGE_AT_ONCE: usize = 32 << 10;
/// The most pairs of a page.
const PAIRS_MAX: usize = 8192;

/// The changes of a batch, into keyspaces by their number.
pub(crate) fn batch(bytes: &[u8], keyspaces: &[Keyspace]) -> Result<WriteBatch, Failure> {
    let malformed = || Failure::Invalid("a malformed batch");
    let mut batch = WriteBatch::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (head, body) = rest.split_at_checked(HEAD).ok_or_else(malformed)?;
        let [tag, view, k0, k1, k2, k3, v0, v1, v2, v3] = *head else { return Err(malformed()) };
        let key = u32::from_be_bytes([k0, k1, k2, k3]) as usize;
        let value = u32::from_be_bytes([v0, v1, v2, v3]) as usize;
        let (key, body) = body.split_at_checked(key).ok_or_else(malformed)?;
        let (value, body) = body.split_at_checked(value).ok_or_else(malformed)?;
        let keyspace = keyspaces.get(usize::from(view)).ok_or_else(malformed)?;
        let mut on = batch.on(keyspace);
        match tag {
            0 => on.delete(key),
            1 => on.set(key, value),
            2 => on.delete_range(key..value),
            _ => return Err(malformed()),
        };
        rest = body;
    }
    Ok(batch)
}

/// A page: pairs of a range until they have `bytes` bytes, or the range ends. Returns whether it goes on.
pub(crate) fn page(
    range: &mut impl Iterator<Item = forrest::Result<Entry>>,
    bytes: usize,
) -> Result<(Vec<u8>, bool), Failure> {
    let mut page = Vec::with_capacity(bytes.min(PAGE_AT_ONCE));
    page.extend_from_slice(&[0; 8]);
    for _ in 0..PAIRS_MAX {
        let Some(entry) = range.next() else { return Ok((page, false)) };
        let entry = entry?;
        let (key, value) = (entry.key(), entry.value_bytes()?);
        page.reserve(8 + key.len() + value.len());
        page.extend_from_slice(&(key.len() as u32).to_be_bytes());
        page.extend_from_slice(&(value.len() as u32).to_be_bytes());
        page.extend_from_slice(key);
        page.extend_from_slice(value);
        if page.len() >= bytes {
            break;
        }
    }
    Ok((page, true))
}

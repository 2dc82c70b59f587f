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
use forrest::{Keyspace, WriteBatch};
use std::ops::{ControlFlow, Range};

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

/// A page that is being filled with the pairs of a range.
pub(crate) struct Page {
    bytes: Vec<u8>,
    bytes_max: usize,
    pairs: usize,
    /// The place of the last key.
    last: Range<usize>,
}

impl Page {
    /// A page that is full when it has this many bytes. It takes at least one pair.
    pub(crate) fn new(bytes_max: usize) -> Page {
        let mut bytes = Vec::with_capacity(bytes_max.min(PAGE_AT_ONCE));
        bytes.extend_from_slice(&[0; 8]);
        Page { bytes, bytes_max, pairs: 0, last: 0..0 }
    }

    /// Adds a pair. Breaks when the page is full.
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        let bytes = &mut self.bytes;
        bytes.reserve(8 + key.len() + value.len());
        bytes.extend_from_slice(&(key.len() as u32).to_be_bytes());
        bytes.extend_from_slice(&(value.len() as u32).to_be_bytes());
        self.last = bytes.len()..bytes.len() + key.len();
        bytes.extend_from_slice(key);
        bytes.extend_from_slice(value);
        self.pairs += 1;
        if self.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Whether the range may go on after the page.
    pub(crate) fn is_full(&self) -> bool {
        self.pairs > 0 && (self.bytes.len() >= self.bytes_max || self.pairs == PAIRS_MAX)
    }

    /// The key that was added last. REQUIRES: there is one.
    pub(crate) fn last_key(&self) -> &[u8] {
        &self.bytes[self.last.clone()]
    }

    /// The bytes for Java, with the handle of what follows.
    pub(crate) fn finish(mut self, rest: i64) -> Vec<u8> {
        self.bytes[..8].copy_from_slice(&rest.to_be_bytes());
        self.bytes
    }
}

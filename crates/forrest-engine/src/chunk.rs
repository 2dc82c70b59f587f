//! [`Chunk`]: the pairs that one refill of an iteration brings from an engine, in a flat buffer.
//!
//! Engines fill chunks; entries borrow from them by reference count. Values that the store itself shares by
//! reference count are not copied into the buffer. A [`Value`] is made only when it is requested.

use crate::Value;

/// Maximum length of a value that is copied into the buffer, in bytes. It is the limit for values inside the
/// nodes of forrest-index.
pub const COPIED_VALUE_BYTES: usize = 239;
/// Maximum size of a new buffer. It has room for the requested pairs, if they are all as long as the first.
const BUFFER_BYTES_MAX: usize = 64 << 10;

/// Pairs in the order in which they were found.
#[derive(Default)]
pub struct Chunk {
    /// Keys, each followed by its value, or by the index of its value in `shared` as 4 bytes.
    bytes: Vec<u8>,
    slots: Vec<Slot>,
    shared: Vec<Value>,
    /// Number of pairs at which it is full; 0 once it has enough bytes of shared values.
    pairs: usize,
    /// Bytes in the buffer, and bytes of shared values, at which it is full.
    copied_max: usize,
    shared_max: usize,
    keys_only: bool,
}

/// Where a refill of an iteration ended.
pub enum Filled {
    /// At the end of the range.
    End,
    /// After the last pair of the chunk, which has at least one; there may be more.
    More,
}

/// The destination of a cursor.
#[derive(Clone, Copy)]
pub enum Goto<'k> {
    /// The first pair.
    First,
    /// The last pair.
    Last,
    /// Forward by a number of pairs.
    Skip(u64),
    /// Back by one pair.
    Prev,
    /// The first key at or after this one.
    Seek(&'k [u8]),
    /// The last key at or before this one.
    SeekForPrev(&'k [u8]),
}

/// The place of a pair in the buffer.
struct Slot {
    start: u32,
    key_len: u16,
    /// Length of a copied value, or `SHARED`.
    value_len: u8,
}

const SHARED: u8 = u8::MAX;
const _: () = assert!(COPIED_VALUE_BYTES < SHARED as usize);

impl Slot {
    #[inline]
    fn value_start(&self) -> usize {
        self.start as usize + usize::from(self.key_len)
    }
}

impl Chunk {
    /// Removes all pairs, and prepares for a refill of `pairs` pairs.
    #[inline]
    pub fn clear(&mut self, pairs: usize) {
        self.bytes.clear();
        self.slots.clear();
        self.slots.reserve(pairs);
        self.shared.clear();
        (self.pairs, self.copied_max, self.shared_max) = (pairs, usize::MAX, usize::MAX);
    }

    /// Makes the chunk full also when it holds a number of bytes in its buffer, or of values shared with the store. For
    /// an engine that begins to fill it.
    #[inline]
    pub fn limit_bytes(&mut self, copied: usize, shared: usize) {
        (self.copied_max, self.shared_max) = (copied, shared);
    }

    /// From now on an engine fills it with keys alone, each added with an empty value.
    pub fn set_keys_only(&mut self) {
        self.keys_only = true;
    }

    /// Whether it is filled with keys alone.
    #[inline]
    pub fn is_keys_only(&self) -> bool {
        self.keys_only
    }

    /// The number of pairs that it was made for.
    #[inline]
    pub fn pairs_max(&self) -> usize {
        self.pairs
    }

    /// True if no more pairs should be added.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.slots.len() >= self.pairs || self.bytes.len() >= self.copied_max
    }

    /// The number of pairs.
    #[inline]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// True if there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    #[inline]
    fn push(&mut self, key: &[u8], value: &[u8], value_len: u8) {
        if self.slots.is_empty() {
            let each = key.len() + value.len();
            self.bytes.reserve(each.saturating_mul(self.pairs).min(BUFFER_BYTES_MAX).max(each));
        }
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.slots.push(Slot { start, key_len: key.len() as u16, value_len });
    }

    /// Adds a pair whose value is at most [`COPIED_VALUE_BYTES`] long.
    #[inline]
    pub fn push_copied(&mut self, key: &[u8], value: &[u8]) {
        debug_assert!(value.len() <= COPIED_VALUE_BYTES);
        self.push(key, value, value.len() as u8);
    }

    /// Adds a pair whose value is shared with the store. Not inlined, so that adding a copied one stays small.
    #[inline(never)]
    pub fn push_shared(&mut self, key: &[u8], value: Value) {
        let at = self.shared.len() as u32;
        self.push(key, &at.to_ne_bytes(), SHARED);
        self.shared_max = self.shared_max.saturating_sub(value.len());
        if self.shared_max == 0 {
            self.pairs = 0;
        }
        self.shared.push(value);
    }

    /// The key of a pair, by its number.
    #[inline]
    pub fn key(&self, at: usize) -> &[u8] {
        let slot = &self.slots[at];
        &self.bytes[slot.start as usize..slot.value_start()]
    }

    /// The shared value of a slot.
    #[inline]
    fn shared(&self, slot: &Slot) -> &Value {
        let start = slot.value_start();
        let at = self.bytes[start..start + 4].try_into().expect("4 bytes");
        &self.shared[u32::from_ne_bytes(at) as usize]
    }

    /// The bytes of its value.
    #[inline]
    pub fn value_bytes(&self, at: usize) -> &[u8] {
        let slot = &self.slots[at];
        if slot.value_len == SHARED {
            return self.shared(slot);
        }
        let start = slot.value_start();
        &self.bytes[start..start + usize::from(slot.value_len)]
    }

    /// Its value.
    #[inline]
    pub fn value(&self, at: usize) -> Value {
        let slot = &self.slots[at];
        if slot.value_len == SHARED { self.shared(slot).clone() } else { Value::from(self.value_bytes(at)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_come_back_as_they_went_in() {
        let mut chunk = Chunk::default();
        for round in 0..2 {
            chunk.clear(3);
            chunk.push_copied(b"", &[]);
            chunk.push_shared(b"long", Value::from(&[3; 1000][..]));
            chunk.push_copied(&[1; 65_535], &[2; COPIED_VALUE_BYTES]);
            chunk.push_shared(b"short", Value::from(&[round][..]));
            let pairs: Vec<_> = (0..chunk.len()).map(|at| (chunk.key(at), chunk.value_bytes(at))).collect();
            assert_eq!(pairs[0], (&b""[..], &b""[..]));
            assert_eq!(pairs[1], (&b"long"[..], &[3; 1000][..]));
            assert_eq!(pairs[2], (&[1; 65_535][..], &[2; COPIED_VALUE_BYTES][..]));
            assert_eq!(pairs[3], (&b"short"[..], &[round][..]));
            assert!((0..4).all(|at| chunk.value(at) == chunk.value_bytes(at)));
        }
    }

    #[test]
    fn each_limit_makes_a_chunk_full() {
        for (pairs, copied, shared) in [(2, 1000, 1000), (100, 6, 1000), (100, 1000, 30)] {
            let mut chunk = Chunk::default();
            chunk.clear(pairs);
            chunk.limit_bytes(copied, shared);
            for at in 0..2 {
                assert!(!chunk.is_full(), "after {at} pairs with the limits {pairs}, {copied}, {shared}");
                if shared < 1000 {
                    chunk.push_shared(b"key", Value::from(&[7; 15][..]));
                } else {
                    chunk.push_copied(b"key", b"");
                }
            }
            assert!(chunk.is_full(), "limits {pairs}, {copied}, {shared}");
        }
    }
}

//! A chunk: the pairs that one refill of an iteration brought, in a flat buffer.
//!
//! Engines fill chunks, entries borrow from them by reference count. Values that the store itself shares
//! by reference count are not copied into the buffer, and nothing becomes a [`Value`] until it is asked for.

use crate::Value;

/// Longest value that is copied into the buffer, in bytes. It is what forrest-index keeps inside its
/// nodes; a longer value is shared with the store, not copied.
pub(crate) const COPIED_VALUE_BYTES: usize = 239;

/// Pairs in the order in which they were found.
#[derive(Default)]
pub(crate) struct Chunk {
    bytes: Vec<u8>,
    slots: Vec<Slot>,
    shared: Vec<Value>,
}

struct Slot {
    /// Where the key starts in `bytes`; a copied value follows it.
    start: u32,
    key_len: u16,
    value: Stored,
}

#[derive(Clone, Copy)]
enum Stored {
    Copied(u8),
    Shared(u32),
}

impl Chunk {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.slots.clear();
        self.shared.clear();
    }

    /// The number of pairs.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Bytes copied into the buffer.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Adds a pair whose value is at most [`COPIED_VALUE_BYTES`] long.
    pub(crate) fn push_copied(&mut self, key: &[u8], value: &[u8]) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        let len = u8::try_from(value.len()).expect("a copied value is short");
        self.slots.push(Slot { start, key_len: key.len() as u16, value: Stored::Copied(len) });
    }

    /// Adds a pair whose value is to come by [`load_shared`](Self::load_shared).
    pub(crate) fn push_shared(&mut self, key: &[u8]) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(key);
        self.slots.push(Slot { start, key_len: key.len() as u16, value: Stored::Shared(0) });
    }

    /// Asks `load` for each value that is to come; a pair for which it has none is taken out.
    pub(crate) fn load_shared(&mut self, mut load: impl FnMut(&[u8]) -> Option<Value>) {
        let Chunk { bytes, slots, shared } = self;
        slots.retain_mut(|slot| {
            let Stored::Shared(index) = &mut slot.value else { return true };
            let start = slot.start as usize;
            let Some(value) = load(&bytes[start..start + usize::from(slot.key_len)]) else { return false };
            *index = shared.len() as u32;
            shared.push(value);
            true
        });
    }

    pub(crate) fn key(&self, at: usize) -> &[u8] {
        let slot = &self.slots[at];
        let start = slot.start as usize;
        &self.bytes[start..start + usize::from(slot.key_len)]
    }

    pub(crate) fn value(&self, at: usize) -> Value {
        let slot = &self.slots[at];
        match slot.value {
            Stored::Copied(len) => {
                let start = slot.start as usize + usize::from(slot.key_len);
                Value::from(&self.bytes[start..start + usize::from(len)])
            }
            Stored::Shared(index) => self.shared[index as usize].clone(),
        }
    }
}

//! [`Found`]: a borrowed value, as scans and batched lookups pass it to their callbacks.

use super::{Blob, Cell, Stamped};
use crate::value::Value;
use std::ops::Deref;

/// A value in the index, borrowed for the time of one callback.
#[derive(Clone, Copy)]
pub struct Found<'g> {
    bytes: &'g [u8],
    /// Where the stamp is, if the bytes are the whole of a shared allocation.
    shared: Option<Stamped<'g>>,
}

impl<'g> Found<'g> {
    /// The bytes of the value.
    #[inline(always)]
    pub fn as_slice(self) -> &'g [u8] {
        self.bytes
    }

    /// True if the index holds the value as a shared allocation, so that [`Found::to_value`] copies nothing.
    #[inline(always)]
    pub fn is_shared(self) -> bool {
        self.shared.is_some()
    }

    /// The stamp that the value was put with, see [`Tree::apply_stamped`](crate::Tree::apply_stamped); 0 if it has
    /// none. A value with a stamp is shared.
    #[inline(always)]
    pub fn stamp(self) -> u64 {
        self.shared.map_or(0, Stamped::stamp)
    }

    /// The value, owned.
    #[inline]
    pub fn to_value(self) -> Value {
        if self.is_shared() {
            // SAFETY: the bytes are those of a blob whose record is reachable, so its count is held.
            return Value::from(unsafe { Blob::of(self.bytes).share() });
        }
        Value::from(self.bytes)
    }

    /// The value of a cell; `None` for a tombstone.
    #[inline(always)]
    pub(crate) fn of(cell: Cell<'g>) -> Option<Found<'g>> {
        let shared = match cell {
            Cell::Blob(_) => Some(Stamped::NONE),
            Cell::Stamped(stamped) => Some(stamped),
            Cell::Inline(_) | Cell::Tombstone => None,
        };
        cell.bytes().map(|bytes| Found { bytes, shared })
    }

    /// As [`Found::of`] for the cell that stands at `from`.
    ///
    /// # Safety
    /// As [`Cell::read`].
    #[inline(always)]
    pub(crate) unsafe fn read(from: *const u8) -> Option<Found<'g>> {
        // SAFETY: a cell begins at `from` and does not change during 'g, as this function requires.
        unsafe {
            if let Some(bytes) = Cell::read_inline(from) {
                return Some(Found { bytes, shared: None });
            }
            Found::of(Cell::read(from))
        }
    }
}

impl Deref for Found<'_> {
    type Target = [u8];
    #[inline(always)]
    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

impl std::fmt::Debug for Found<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Found(b\"{}\")", self.bytes.escape_ascii())
    }
}

//! [`Mapped::piece`]: pairs of a mapped store in the order of their keys, without a system call.
//!
//! The layout is that of `kernel/llds/order.h` and `entry.h`. `seqlock_scan.rs` has the protocol.

use super::abi;
use super::mapped::{APART, HEAD_BYTES, Mapped, body_bytes, is_in_slab, key_bytes, long_word, word};
use super::seqlock::Sequence;
use super::seqlock_scan::{self, Order, Scan, Step};
use std::ops::{Bound, Range};
use std::sync::atomic::{AtomicU8, AtomicU16, Ordering};

/// Attempts of a seqlock scan before the caller falls back to a system call.
const TRIES: u32 = 64;
/// Offsets of a node's fields, and its number of slots.
const COUNT: usize = 5;
const SKIP: usize = 6;
const NEXT: usize = 8;
const PREV: usize = 12;
const HEADS: usize = 16;
const LEAF_SLOTS: usize = 30;
const LEAF_HANDLES: usize = HEADS + 4 * LEAF_SLOTS;
const INNER_SLOTS: usize = 84;
const SEPARATORS: usize = HEADS + 4 * INNER_SLOTS;
const CHILDREN: usize = SEPARATORS + 4 * INNER_SLOTS;
/// A separator begins with its length.
const SEPARATOR_HEAD_BYTES: usize = 2;

/// A range of keys.
pub type Bounds<'k> = (Bound<&'k [u8]>, Bound<&'k [u8]>);

/// Whether a range goes on after a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// The range may have more pairs after the piece, which is not empty.
    More,
    /// The piece ends the range.
    End,
}

impl Mapped {
    /// Replaces `pairs` with the first pairs of a range, or with its last ones, in descending order, if
    /// `down`. At most `most` pairs, and at least one unless the range is empty. They are the state at one
    /// moment. The format is that of a scan's answer: each pair begins with an [`abi::Pair`].
    ///
    /// Returns `None` if the first value is in a separate block, which is not mapped, or if 64 attempts met a
    /// concurrent change. The caller then reads through the engine.
    pub fn piece(&self, bounds: Bounds<'_>, down: bool, most: usize, pairs: &mut Vec<u8>) -> Option<Piece> {
        let mut scan = RangeScan {
            mapped: self,
            bounds,
            down,
            most: most.clamp(1, LEAF_SLOTS),
            pairs,
            seen: [(std::ptr::null(), 0); LEAF_SLOTS],
            count: 0,
            slots: 0..0,
            is_inside: false,
        };
        for _ in 0..TRIES {
            scan.forget();
            match seqlock_scan::scan_once(&mut scan) {
                Scan::More => return Some(Piece::More),
                Scan::End => return Some(Piece::End),
                Scan::Apart => return None,
                Scan::Retry => std::hint::spin_loop(),
            }
        }
        None
    }
}

/// A scan of one range.
struct RangeScan<'a> {
    mapped: &'a Mapped,
    bounds: Bounds<'a>,
    down: bool,
    most: usize,
    pairs: &'a mut Vec<u8>,
    /// The entries that were copied, and their versions.
    seen: [(*const u8, u32); LEAF_SLOTS],
    /// The number of copied entries.
    count: usize,
    /// The slots of the leaf that are still to be read.
    slots: Range<usize>,
    /// Whether the remaining entries are known not to lie before the range.
    is_inside: bool,
}

impl RangeScan<'_> {
    /// Discards the copied pairs.
    fn forget(&mut self) {
        self.pairs.clear();
        self.count = 0;
    }

    /// The bound of the range where the scan begins.
    fn start(&self) -> Bound<&[u8]> {
        if self.down { self.bounds.1 } else { self.bounds.0 }
    }

    /// The key of that bound, if it has one.
    fn start_key(&self) -> Option<&[u8]> {
        match self.start() {
            Bound::Included(key) | Bound::Excluded(key) => Some(key),
            Bound::Unbounded => None,
        }
    }

    /// Whether a key lies before the range, in the scan's direction.
    fn is_before(&self, key: &[u8]) -> bool {
        match (self.start(), self.down) {
            (Bound::Unbounded, _) => false,
            (Bound::Included(start), false) => key < start,
            (Bound::Excluded(start), false) => key <= start,
            (Bound::Included(start), true) => key > start,
            (Bound::Excluded(start), true) => key >= start,
        }
    }

    /// Whether a key lies after the range, in the scan's direction.
    fn is_after(&self, key: &[u8]) -> bool {
        match if self.down { self.bounds.0 } else { self.bounds.1 } {
            Bound::Unbounded => false,
            Bound::Included(end) => {
                if self.down {
                    key < end
                } else {
                    key > end
                }
            }
            Bound::Excluded(end) => {
                if self.down {
                    key <= end
                } else {
                    key >= end
                }
            }
        }
    }

    /// The first of `slots` whose head is not below the key's head; and the key's head.
    fn below(&self, node: *const u8, key: &[u8], slots: Range<usize>) -> (usize, u32) {
        // SAFETY: `node` is from a checked handle, and this offset lies within a node.
        let wanted = head(key, unsafe { half(node, SKIP) });
        let (mut low, mut high) = (slots.start, slots.end);
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.number(node, HEADS, middle) < wanted {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (low, wanted)
    }

    /// The number at `slot` of a table of a node.
    fn number(&self, node: *const u8, table: usize, slot: usize) -> u32 {
        debug_assert!(table + 4 * slot < CHILDREN + 4 * INNER_SLOTS);
        // SAFETY: `node` is from a checked handle. `slot` is below the number of slots of its kind of node,
        // so the number lies within the node.
        unsafe { word(node.add(table + 4 * slot)) }
    }

    /// Whether a separator is above a key. If nodes have changed meanwhile, the result may be wrong; the
    /// caller checks.
    fn is_above(&self, handle: u32, key: &[u8]) -> bool {
        let at = self.mapped.block(handle);
        // SAFETY: `child` checked the nodes' sequence after it loaded the handle, so it leads to a block that
        // is or was a separator.
        let bytes = usize::from(unsafe { half(at, 0) });
        if !is_in_slab(at, SEPARATOR_HEAD_BYTES + bytes) {
            return false;
        }
        // SAFETY: the bytes lie in the separator's slab, as `is_in_slab` has just checked.
        let text = (0..bytes).map(|number| unsafe { byte(at, SEPARATOR_HEAD_BYTES + number) });
        text.cmp(key.iter().copied()).is_gt()
    }
}

impl Order for RangeScan<'_> {
    fn as_one(&self) -> &Sequence {
        self.mapped.as_one()
    }

    fn nodes(&self) -> &Sequence {
        // SAFETY: the header is readable while `mapped` lives (see `Mapped::new`), and `Sequence` is a
        // transparent `AtomicU32`.
        unsafe { &*(&raw const (*self.mapped.header().as_ptr()).order_sequence).cast() }
    }

    fn root(&self) -> (u32, u32) {
        let header = self.mapped.header().as_ptr();
        // SAFETY: the header is readable while `mapped` lives (see `Mapped::new`).
        unsafe { (word((&raw const (*header).root).cast()), word((&raw const (*header).height).cast())) }
    }

    fn child(&mut self, node: u32, nodes: u32) -> Option<u32> {
        let at = self.mapped.block(node);
        // SAFETY: `node` is from a checked handle, and this offset lies within a node.
        let count = usize::from(unsafe { byte(at, COUNT) }).clamp(1, INNER_SLOTS);
        let slot = match self.start_key() {
            None if self.down => count,
            None => 1,
            Some(key) => {
                // Separators with the same head are compared in full.
                let (mut slot, wanted) = self.below(at, key, 1..count);
                while slot < count && self.number(at, HEADS, slot) == wanted {
                    let separator = self.number(at, SEPARATORS, slot);
                    if !self.nodes().is_still(nodes) {
                        return None;
                    }
                    if self.is_above(separator, key) {
                        break;
                    }
                    slot += 1;
                }
                slot
            }
        };
        Some(self.number(at, CHILDREN, slot - 1))
    }

    fn leaf(&self, leaf: u32) -> &Sequence {
        // SAFETY: the handle was checked. A leaf begins with its sequence, and its memory stays mapped.
        unsafe { &*self.mapped.block(leaf).cast() }
    }

    fn begin(&mut self, leaf: u32, is_first: bool) {
        self.forget();
        let at = self.mapped.block(leaf);
        // SAFETY: `leaf` is a checked handle, and this offset lies within a node.
        let count = usize::from(unsafe { byte(at, COUNT) }).min(LEAF_SLOTS);
        self.slots = 0..count;
        self.is_inside = !is_first;
        if let Some(key) = self.start_key().filter(|_| is_first) {
            let (mut slot, wanted) = self.below(at, key, 0..count);
            if self.down {
                // Begin after all entries that may be in the range.
                while slot < count && self.number(at, HEADS, slot) == wanted {
                    slot += 1;
                }
                self.slots.end = slot;
            } else {
                self.slots.start = slot;
            }
        }
    }

    fn entry(&mut self, leaf: u32) -> Option<u32> {
        if self.is_full() {
            return None;
        }
        let slot = if self.down { self.slots.next_back() } else { self.slots.next() };
        slot.map(|slot| self.number(self.mapped.block(leaf), LEAF_HANDLES, slot))
    }

    fn copy(&mut self, handle: u32) -> Step {
        let at = self.mapped.block(handle);
        // SAFETY: `try_scan` checked the handle, so it leads to a block that is or was an entry, which begins
        // with its version.
        let Some(version) = unsafe { &*at.cast::<Sequence>() }.begin() else { return Step::Changing };
        // SAFETY: the lengths follow the version, in the 8 bytes of an entry's head.
        let sizes = unsafe { word(at.add(4)) };
        let (key_bytes, body_bytes) = (key_bytes(sizes), body_bytes(sizes));
        if key_bytes > abi::KEY_BYTES_MAX || !is_in_slab(at, HEAD_BYTES + key_bytes + body_bytes) {
            return Step::Changing;
        }
        let start = self.pairs.len();
        let words = (key_bytes + body_bytes).div_ceil(8);
        self.pairs.reserve(HEAD_BYTES + 8 * words);
        self.pairs.extend_from_slice(&(key_bytes as u32).to_ne_bytes());
        self.pairs.extend_from_slice(&(body_bytes as u32).to_ne_bytes());
        for number in 0..words {
            // SAFETY: the word lies in the entry's slab, as `is_in_slab` has checked; a slab is a whole
            // number of words.
            let word = unsafe { long_word(at.add(HEAD_BYTES + 8 * number)) };
            // SAFETY: `reserve` above made room for the head and `words` words.
            unsafe { push(self.pairs, word) };
        }
        if !(key_bytes + body_bytes).is_multiple_of(8) {
            self.pairs[start + HEAD_BYTES + key_bytes + body_bytes..].fill(0);
        }
        let key = &self.pairs[start + HEAD_BYTES..][..key_bytes];
        self.is_inside = self.is_inside || !self.is_before(key);
        let step = if !self.is_inside {
            Step::On
        } else if self.is_after(key) {
            Step::Over
        } else if sizes & APART != 0 {
            Step::Apart
        } else {
            self.seen[self.count] = (at, version);
            self.count += 1;
            return Step::On;
        };
        self.pairs.truncate(start);
        step
    }

    fn is_unchanged(&self) -> bool {
        // SAFETY: `copy` stored these pointers; the memory of blocks stays mapped.
        self.seen[..self.count]
            .iter()
            .all(|(at, version)| unsafe { &*at.cast::<Sequence>() }.is_still(*version))
    }

    fn has_any(&self) -> bool {
        self.count > 0
    }

    fn is_full(&self) -> bool {
        self.count == self.most
    }

    fn beyond(&self, leaf: u32) -> u32 {
        // SAFETY: `leaf` is a checked handle, and both offsets lie within a leaf.
        unsafe { word(self.mapped.block(leaf).add(if self.down { PREV } else { NEXT })) }
    }
}

/// The 4 bytes of a key after the first `skip`, as a big-endian number, padded with zeros.
fn head(key: &[u8], skip: u16) -> u32 {
    let key = key.get(usize::from(skip)..).unwrap_or_default();
    let mut bytes = [0; 4];
    let len = key.len().min(4);
    bytes[..len].copy_from_slice(&key[..len]);
    u32::from_be_bytes(bytes)
}

/// Appends a word.
///
/// # Safety
/// `bytes` has capacity for 8 more bytes.
unsafe fn push(bytes: &mut Vec<u8>, word: u64) {
    let len = bytes.len();
    debug_assert!(bytes.capacity() - len >= 8);
    // SAFETY: the capacity covers `len + 8`, as the caller ensures, and the write initializes these 8 bytes.
    unsafe {
        bytes.as_mut_ptr().add(len).cast::<u64>().write_unaligned(word);
        bytes.set_len(len + 8);
    }
}

/// Loads two bytes that a writer may change at the same time.
///
/// # Safety
/// `at + offset` points to 2 bytes that are readable while the store is mapped, and is aligned to 2.
unsafe fn half(at: *const u8, offset: usize) -> u16 {
    // SAFETY: the address is readable and aligned, as the caller ensures.
    unsafe { (*at.add(offset).cast::<AtomicU16>()).load(Ordering::Relaxed) }
}

/// Loads one byte that a writer may change at the same time.
///
/// # Safety
/// `at + offset` points to a byte that is readable while the store is mapped.
unsafe fn byte(at: *const u8, offset: usize) -> u8 {
    // SAFETY: the address is readable, as the caller ensures.
    unsafe { (*at.add(offset).cast::<AtomicU8>()).load(Ordering::Relaxed) }
}

#[cfg(all(test, feature = "user"))]
#[path = "ordered_tests.rs"]
mod tests;

//! [`Mapped::piece`]: pairs of a store in sight, in the order of their keys, without a system call.
//!
//! The layout is that of `kernel/llds/order.h` and `entry.h`; what may be believed of it, `walk.rs` says.

use super::abi;
use super::mapped::{APART, HEAD_BYTES, Mapped, body_bytes, is_in_slab, key_bytes, long_word, word};
use super::sight::Sequence;
use super::walk::{self, Order, Step, Walk};
use std::ops::{Bound, Range};
use std::sync::atomic::{AtomicU8, AtomicU16, Ordering};

/// So often a walk is tried before the kernel is asked.
const TRIES: u32 = 64;
/// Parts of a node, and how many slots it has.
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

/// What came of looking for a piece of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// There may be more pairs behind its last one. It is not empty.
    More,
    /// There are none.
    End,
}

impl Mapped {
    /// Makes `pairs` the first pairs of a range, or the last of it, from its end on, if `down`: one at least if there
    /// is one, and at most so many. They are what there was at one moment. Each is written as [`abi::Pair`] says, as
    /// the answer of a scan is.
    ///
    /// `None` if they cannot be seen here, because a value is a long one that lies by itself, or because others change
    /// the store all the time: then ask the engine.
    pub fn piece(&self, bounds: Bounds<'_>, down: bool, most: usize, pairs: &mut Vec<u8>) -> Option<Piece> {
        let mut walking = Walking {
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
            walking.forget();
            match walk::walk(&mut walking) {
                Walk::More => return Some(Piece::More),
                Walk::End => return Some(Piece::End),
                Walk::Apart => return None,
                Walk::Again => std::hint::spin_loop(),
            }
        }
        None
    }
}

/// One who walks through a range.
struct Walking<'a> {
    mapped: &'a Mapped,
    bounds: Bounds<'a>,
    down: bool,
    most: usize,
    pairs: &'a mut Vec<u8>,
    /// The entries that were copied, and their versions.
    seen: [(*const u8, u32); LEAF_SLOTS],
    /// How many there are.
    count: usize,
    /// The slots of the leaf that are to come.
    slots: Range<usize>,
    /// Whether what comes does not lie before the range.
    is_inside: bool,
}

impl Walking<'_> {
    /// Forgets what was copied.
    fn forget(&mut self) {
        self.pairs.clear();
        self.count = 0;
    }

    /// The end of the range where it begins.
    fn start(&self) -> Bound<&[u8]> {
        if self.down { self.bounds.1 } else { self.bounds.0 }
    }

    /// The key there, if there is one.
    fn start_key(&self) -> Option<&[u8]> {
        match self.start() {
            Bound::Included(key) | Bound::Excluded(key) => Some(key),
            Bound::Unbounded => None,
        }
    }

    /// Whether a key lies before the range, as one walks.
    fn is_before(&self, key: &[u8]) -> bool {
        match (self.start(), self.down) {
            (Bound::Unbounded, _) => false,
            (Bound::Included(start), false) => key < start,
            (Bound::Excluded(start), false) => key <= start,
            (Bound::Included(start), true) => key > start,
            (Bound::Excluded(start), true) => key >= start,
        }
    }

    /// Whether it lies behind the range.
    fn is_behind(&self, key: &[u8]) -> bool {
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

    /// The first of some slots of a node whose head is not below that of a key, which is told as well.
    fn below(&self, node: *const u8, key: &[u8], slots: Range<usize>) -> (usize, u32) {
        // SAFETY: a part of a node.
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

    /// A number of a node.
    fn number(&self, node: *const u8, table: usize, slot: usize) -> u32 {
        debug_assert!(table + 4 * slot < CHILDREN + 4 * INNER_SLOTS);
        // SAFETY: the parts of a node; a leaf is as long as the parts that it has.
        unsafe { word(node.add(table + 4 * slot)) }
    }

    /// Whether a separator is above a key, which may be nonsense if nodes have moved.
    fn is_above(&self, handle: u32, key: &[u8]) -> bool {
        let at = self.mapped.block(handle);
        // SAFETY: a handle that was looked at leads to a separator, or what was one; it is there.
        let bytes = usize::from(unsafe { half(at, 0) });
        if !is_in_slab(at, SEPARATOR_HEAD_BYTES + bytes) {
            return false;
        }
        // SAFETY: it lies in the slab of the separator.
        let text = (0..bytes).map(|number| unsafe { byte(at, SEPARATOR_HEAD_BYTES + number) });
        text.cmp(key.iter().copied()).is_gt()
    }
}

impl Order for Walking<'_> {
    fn as_one(&self) -> &Sequence {
        self.mapped.as_one()
    }

    fn nodes(&self) -> &Sequence {
        // SAFETY: the header is there; a sequence is its number.
        unsafe { &*(&raw const (*self.mapped.header().as_ptr()).order_sequence).cast() }
    }

    fn root(&self) -> (u32, u32) {
        let header = self.mapped.header().as_ptr();
        // SAFETY: the header is there.
        unsafe { (word((&raw const (*header).root).cast()), word((&raw const (*header).height).cast())) }
    }

    fn child(&mut self, node: u32, nodes: u32) -> Option<u32> {
        let at = self.mapped.block(node);
        // SAFETY: a part of a node.
        let count = usize::from(unsafe { byte(at, COUNT) }).clamp(1, INNER_SLOTS);
        let slot = match self.start_key() {
            None if self.down => count,
            None => 1,
            Some(key) => {
                // Of those with the same head, the separators tell.
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
        // SAFETY: a leaf begins with its sequence, and its memory stays.
        unsafe { &*self.mapped.block(leaf).cast() }
    }

    fn begin(&mut self, leaf: u32, is_first: bool) {
        self.forget();
        let at = self.mapped.block(leaf);
        // SAFETY: a part of a node.
        let count = usize::from(unsafe { byte(at, COUNT) }).min(LEAF_SLOTS);
        self.slots = 0..count;
        self.is_inside = !is_first;
        if let Some(key) = self.start_key().filter(|_| is_first) {
            let (mut slot, wanted) = self.below(at, key, 0..count);
            if self.down {
                // Behind all that may be of the range.
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
        // SAFETY: a handle that was looked at leads to an entry, or what was one; it begins with its version.
        let Some(version) = unsafe { &*at.cast::<Sequence>() }.begin() else { return Step::Changing };
        // SAFETY: it is there, with its lengths.
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
            // SAFETY: it lies in the slab of the entry, which ends with a word.
            let word = unsafe { long_word(at.add(HEAD_BYTES + 8 * number)) };
            // SAFETY: there is room for it, as just reserved.
            unsafe { push(self.pairs, word) };
        }
        if !(key_bytes + body_bytes).is_multiple_of(8) {
            self.pairs[start + HEAD_BYTES + key_bytes + body_bytes..].fill(0);
        }
        let key = &self.pairs[start + HEAD_BYTES..][..key_bytes];
        self.is_inside = self.is_inside || !self.is_before(key);
        let step = if !self.is_inside {
            Step::On
        } else if self.is_behind(key) {
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
        // SAFETY: entries that were copied: their memory stays.
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
        // SAFETY: a part of a leaf.
        unsafe { word(self.mapped.block(leaf).add(if self.down { PREV } else { NEXT })) }
    }
}

/// The 4 bytes of a key behind the first ones, the first highest, filled up with zeros.
fn head(key: &[u8], skip: u16) -> u32 {
    let key = key.get(usize::from(skip)..).unwrap_or_default();
    let mut bytes = [0; 4];
    let len = key.len().min(4);
    bytes[..len].copy_from_slice(&key[..len]);
    u32::from_be_bytes(bytes)
}

/// Adds a word.
///
/// # Safety
/// There is room for it.
unsafe fn push(bytes: &mut Vec<u8>, word: u64) {
    let len = bytes.len();
    debug_assert!(bytes.capacity() - len >= 8);
    // SAFETY: by contract.
    unsafe {
        bytes.as_mut_ptr().add(len).cast::<u64>().write_unaligned(word);
        bytes.set_len(len + 8);
    }
}

/// Reads two bytes of what may be changed meanwhile.
///
/// # Safety
/// There is memory, for as long as the store is in sight, and it is aligned.
unsafe fn half(at: *const u8, offset: usize) -> u16 {
    // SAFETY: by contract.
    unsafe { (*at.add(offset).cast::<AtomicU16>()).load(Ordering::Relaxed) }
}

/// The same of one byte.
///
/// # Safety
/// There is memory, for as long as the store is in sight.
unsafe fn byte(at: *const u8, offset: usize) -> u8 {
    // SAFETY: by contract.
    unsafe { (*at.add(offset).cast::<AtomicU8>()).load(Ordering::Relaxed) }
}

#[cfg(all(test, feature = "user"))]
#[path = "ordered_tests.rs"]
mod tests;

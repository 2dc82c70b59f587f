//! The common parts of leaves and inner nodes: the first bytes, with the lock ([`crate::latch`]), and the slot by which
//! a parent points to a child.
//!
//! The one rule of the structure: **the bytes of a node that a reader can see never change**, except for two atomic
//! words: a leaf's order word, which publishes appended records, and an inner node's slots, which replace children. All
//! other changes build new nodes. So readers take no lock, check no version and never retry, and no byte is read while
//! it is written.
//!
//! The key range of a leaf never changes either: a split or merge replaces all of its leaves. So a writer that locks a
//! leaf that is not obsolete has the right one.

use crate::arena::{Arena, Handle, LINE_BYTES};
use crate::epoch::Guard;
use crate::latch::{Latch, Locked};
use std::marker::PhantomData;

/// The first bytes of every node.
#[repr(C)]
pub(crate) struct Common {
    latch: Latch,
    /// 0 for a leaf, one more than its children for an inner node.
    pub(crate) level: u8,
    /// Per kind of node.
    pub(crate) small: [u8; 3],
    /// The era in which the node was made, see [`crate::snapshot`].
    pub(crate) era: u64,
}
#[cfg(not(feature = "loom"))]
const _: () = assert!(size_of::<Common>() == 16);

impl Common {
    pub(crate) fn new(level: u8, small: [u8; 3], era: u64) -> Self {
        Common { latch: Latch::new(), level, small, era }
    }
}

/// A parent's word for a child: its handle, where its records begin, and how many bytes they take, so that the most
/// likely record can be fetched together with the child's head. The records of an inner node are its slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slot(pub(crate) u64);

/// Unit in which slots and leaves give places of records, in bytes.
pub(crate) const UNIT: usize = 4;

impl Slot {
    pub(crate) fn new(handle: Handle) -> Slot {
        Slot(u64::from(handle))
    }

    /// `records` and `len` are in units; `free` says that a table of offsets stands between tags and records.
    pub(crate) fn of_leaf(handle: Handle, records: usize, len: usize, free: bool) -> Slot {
        debug_assert!(records < 1 << 15 && len < 1 << 16);
        Slot(u64::from(handle) | (records as u64) << 32 | u64::from(free) << 47 | (len as u64) << 48)
    }

    /// `slots` is their offset in bytes; `runs` says that some separators have the same head.
    pub(crate) fn of_inner(handle: Handle, slots: usize, children: usize, runs: bool) -> Slot {
        Slot::of_leaf(handle, slots / UNIT, children * size_of::<u64>() / UNIT, runs)
    }

    /// Offset of the ends of the separators of an inner node, if some of them have the same head.
    #[inline(always)]
    pub(crate) fn ends(self) -> Option<usize> {
        self.in_stages().then(|| self.extent())
    }

    /// Whether a search in the child reads what it finds by what it read before: separators with the same head, records
    /// by a table of offsets. So those of several keys are read side by side.
    #[inline(always)]
    pub(crate) fn in_stages(self) -> bool {
        self.0 >> 47 & 1 == 1
    }

    #[inline(always)]
    pub(crate) fn handle(self) -> Handle {
        self.0 as Handle
    }

    /// Offset of the record at a share of a child's, in bytes; see [`Share`].
    #[inline(always)]
    pub(crate) fn record_at(self, share: Share) -> usize {
        (self.records() + share.of((self.0 >> 48) as usize)) * UNIT
    }

    /// Offset of the word that says where that record is, if there is one.
    #[inline(always)]
    pub(crate) fn offset_at(self, share: Share) -> Option<usize> {
        // After a head of one line there are a tag of one byte and an offset of two for each record.
        let built = (self.records() * UNIT).saturating_sub(LINE_BYTES) / 3;
        self.in_stages().then(|| LINE_BYTES + built + 2 * share.of(built))
    }

    #[inline(always)]
    fn records(self) -> usize {
        (self.0 >> 32 & 0x7fff) as usize
    }

    /// Bytes of a leaf up to the end of its built records.
    #[inline(always)]
    pub(crate) fn extent(self) -> usize {
        (self.records() + (self.0 >> 48) as usize) * UNIT
    }
}

/// How far into a leaf a key is, in parts of 65,536: an interpolation between the separators around the leaf. It is a
/// guess, exact for evenly spread keys, and a search that uses it must check what it finds.
#[derive(Clone, Copy)]
pub(crate) struct Share(u32);

impl Share {
    pub(crate) const NONE: Share = Share(0);
    pub(crate) const HALF: Share = Share(1 << 15);
    pub(crate) const ALL: Share = Share(0xffff);

    /// Where `at` is between two bounds; an arbitrary share if it is outside.
    #[inline(always)]
    pub(crate) fn between(from: i32, at: i32, to: i32) -> Share {
        // Sixteen bits of each are enough, and a division of 32 bits is quick.
        let (part, span) = (at.wrapping_sub(from) as u32, to.wrapping_sub(from) as u32 | 1);
        let zeros = span.leading_zeros();
        let (part, span) = (part << zeros >> 16, span << zeros >> 16);
        Share(((part << 16) / span).min(0xffff))
    }

    /// This share of a whole.
    #[inline(always)]
    pub(crate) fn of(self, whole: usize) -> usize {
        (whole * self.0 as usize) >> 16
    }
}

/// Set in a node's word if it is to be seen as the running batch does, see [`crate::staged`].
const OF_BATCH: u64 = 1 << 32;

/// A node that stays allocated for `'g`, the time of a pin.
#[derive(Clone, Copy)]
pub(crate) struct Node<'g> {
    at: *const u8,
    /// The handle, and `OF_BATCH`. One word, so that a node is passed in two registers.
    word: u64,
    pinned: PhantomData<&'g Guard>,
}

impl<'g> Node<'g> {
    /// The node that a slot points to.
    ///
    /// # Safety
    /// The slot was read from the structure (or made) under the guard, or the caller otherwise knows that
    /// the node is not freed while `'g` lasts.
    #[inline(always)]
    pub(crate) unsafe fn at(arena: &Arena, handle: Handle, guard: &'g Guard) -> Node<'g> {
        // SAFETY: the node is not freed during `'g`, as this function requires, and `base` is the arena's.
        unsafe { Node::from_base(arena.base(), handle, guard) }
    }

    /// As [`Node::at`], for a caller that has the arena's base.
    ///
    /// # Safety
    /// As [`Node::at`]; `base` is the arena's.
    #[inline(always)]
    pub(crate) unsafe fn from_base(base: *const u8, handle: Handle, _guard: &'g Guard) -> Node<'g> {
        // SAFETY: a handle is a line of the region that begins at the base.
        let at = unsafe { base.add(handle as usize * LINE_BYTES) };
        Node { at, word: u64::from(handle), pinned: PhantomData }
    }

    #[inline(always)]
    pub(crate) fn address(self) -> *const u8 {
        self.at
    }

    #[inline(always)]
    pub(crate) fn handle(self) -> Handle {
        self.word as Handle
    }

    /// The node as the running batch sees it.
    #[inline(always)]
    pub(crate) fn of_batch(self) -> Node<'g> {
        Node { word: self.word | OF_BATCH, ..self }
    }

    #[inline(always)]
    pub(crate) fn is_of_batch(self) -> bool {
        self.word & OF_BATCH != 0
    }

    #[inline(always)]
    pub(crate) fn common(self) -> &'g Common {
        // SAFETY: every node starts with `Common`; it is allocated for 'g and only its atomics change.
        unsafe { &*self.at.cast() }
    }

    #[inline(always)]
    pub(crate) fn level(self) -> u8 {
        self.common().level
    }

    pub(crate) fn era(self) -> u64 {
        self.common().era
    }

    /// `len` bytes at `offset`.
    ///
    /// # Safety
    /// They are inside the node, were written before they could be reached, and do not change during 'g.
    #[inline(always)]
    pub(crate) unsafe fn bytes(self, offset: usize, len: usize) -> &'g [u8] {
        // SAFETY: the bytes are inside the node, initialized and constant during 'g, as this function requires.
        unsafe { std::slice::from_raw_parts(self.at.add(offset), len) }
    }

    /// Waits for the lock; `None` if the node was replaced.
    #[inline]
    pub(crate) fn lock(self) -> Option<Locked<'g>> {
        self.common().latch.lock()
    }

    /// Takes the lock if it is free and the node current.
    pub(crate) fn try_lock(self) -> Option<Locked<'g>> {
        self.common().latch.try_lock()
    }
}

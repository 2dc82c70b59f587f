//! What leaves and inner nodes have in common: the first bytes, with the lock ([`crate::latch`]), and the slot by
//! which a parent points to a child.
//!
//! The one rule of the structure: **what a reader can see of a node never changes**, save for two atomic
//! words: a leaf's order word, by which appended records are published, and an inner node's slots, by which
//! a child is replaced. Everything else is done by building new nodes. So readers take no lock, check no
//! version and never start again, and no byte is read while it is written.
//!
//! The key range of a leaf never changes either: where ranges change (split, merge), all leaves concerned
//! are replaced. A writer that locks a leaf which is not obsolete therefore has the right one.

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
const _: () = assert!(size_of::<Common>() == 16);

impl Common {
    pub(crate) fn new(level: u8, small: [u8; 3], era: u64) -> Self {
        Common { latch: Latch::new(), level, small, era }
    }
}

/// A parent's word for a child: its handle and, for a leaf of fixed-size records, where the record of a given
/// hash most likely is, so that it can be fetched together with the leaf's head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slot(pub(crate) u64);

impl Slot {
    pub(crate) fn new(handle: Handle) -> Slot {
        Slot(u64::from(handle))
    }

    /// `records` is the offset of the first bucket, in units of four bytes.
    pub(crate) fn with_hint(handle: Handle, buckets: u8, bucket_bytes: u8, records: u16) -> Slot {
        Slot(
            u64::from(handle)
                | u64::from(buckets) << 32
                | u64::from(bucket_bytes) << 40
                | u64::from(records) << 48,
        )
    }

    #[inline(always)]
    pub(crate) fn handle(self) -> Handle {
        self.0 as Handle
    }

    /// Offset and length of the bucket that a hash belongs to, in bytes; some harmless place without a hint.
    #[inline(always)]
    pub(crate) fn bucket(self, hash: u64) -> (usize, usize) {
        let (buckets, bytes) = (self.0 >> 32 & 0xff, self.0 >> 40 & 0xff);
        let records = (self.0 >> 48) << 2;
        ((records + bucket_of(hash, buckets) * bytes) as usize, bytes as usize)
    }
}

impl Slot {
    /// The number of the bucket that a hash belongs to; 0 without a hint.
    #[inline(always)]
    pub(crate) fn bucket_number(self, hash: u64) -> u32 {
        bucket_of(hash, self.0 >> 32 & 0xff) as u32
    }

    /// Bytes of a leaf up to the end of its buckets; a guess without a hint.
    #[inline(always)]
    pub(crate) fn extent(self) -> usize {
        let (buckets, bytes) = (self.0 >> 32 & 0xff, self.0 >> 40 & 0xff);
        if buckets == 0 { 1024 } else { (((self.0 >> 48) << 2) + buckets * bytes) as usize }
    }
}

/// Which of `buckets` a hash belongs to.
#[inline(always)]
pub(crate) fn bucket_of(hash: u64, buckets: u64) -> u64 {
    ((hash >> 32 & 0xffff) * buckets) >> 16
}

/// A node that stays allocated for `'g`, the time of a pin.
#[derive(Clone, Copy)]
pub(crate) struct Node<'g> {
    at: *const u8,
    handle: Handle,
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
        // SAFETY: by contract.
        unsafe { Node::from_base(arena.base(), handle, guard) }
    }

    /// As [`Node::at`], with the arena's base at hand.
    ///
    /// # Safety
    /// As [`Node::at`]; `base` is the arena's.
    #[inline(always)]
    pub(crate) unsafe fn from_base(base: *const u8, handle: Handle, _guard: &'g Guard) -> Node<'g> {
        // SAFETY: a handle is a line of the region that begins at the base.
        Node { at: unsafe { base.add(handle as usize * LINE_BYTES) }, handle, pinned: PhantomData }
    }

    #[inline(always)]
    pub(crate) fn address(self) -> *const u8 {
        self.at
    }

    #[inline(always)]
    pub(crate) fn handle(self) -> Handle {
        self.handle
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
        // SAFETY: by contract.
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

//! One tree as all its handles share it, and the descent from its root to the leaf of a key.

use crate::arena::{Purpose, Supply};
use crate::epoch::{self, Guard};
use crate::error::Error;
use crate::inner::InnerNode;
use crate::key::Key;
use crate::leaf::{self, Cell, Leaf};
use crate::node::{Node, Share, Slot};
use crate::reclaim::Garbage;
use crate::roots::Root;
use crate::shared::Shared;
use crate::simd::{Isa, dispatch};
use forrest_machine::prefetch;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

const STRIPES: usize = 8;

#[repr(align(128))]
#[derive(Default)]
struct Stripe(AtomicI64);

/// What the handles of a tree share.
pub(crate) struct TreeInner {
    pub(crate) index: Arc<Shared>,
    pub(crate) id: u64,
    pub(crate) root: Root,
    /// Held to replace the root.
    pub(crate) root_lock: Mutex<()>,
    keys: [Stripe; STRIPES],
}

impl TreeInner {
    pub(crate) fn new(index: &Arc<Shared>, id: u64) -> Result<TreeInner, Error> {
        let era = index.snapshots.era();
        let supply = Supply { arena: &index.arena, thread: 0, purpose: Purpose::Growth };
        let root = leaf::build::build(supply, era, &[]).ok_or(Error::OutOfMemory(256))?;
        Ok(TreeInner {
            index: index.clone(),
            id,
            root: Root::new(root.0),
            root_lock: Mutex::new(()),
            keys: Default::default(),
        })
    }

    /// The root of the newest state.
    #[inline(always)]
    pub(crate) fn newest_root(&self) -> Slot {
        Slot(self.root.current(&self.index.phase))
    }

    /// The node that a slot points to.
    #[inline(always)]
    pub(crate) fn node<'g>(&self, slot: Slot, guard: &'g Guard) -> Node<'g> {
        // SAFETY: slots are read from the tree under a guard, or belong to a snapshot that is held.
        unsafe { Node::at(&self.index.arena, slot.handle(), guard) }
    }

    pub(crate) fn count(&self, thread: usize, change: i64) {
        self.keys[thread % STRIPES].0.fetch_add(change, Ordering::Relaxed);
    }

    /// Keys in the newest state.
    pub(crate) fn keys(&self) -> u64 {
        let sum: i64 = self.keys.iter().map(|stripe| stripe.0.load(Ordering::Relaxed)).sum();
        sum.max(0) as u64
    }

    /// Frees a node and all nodes below it that were made in `era` or later. No other thread can reach them.
    pub(crate) fn free_below(&self, slot: Slot, era: u64, guard: &Guard) {
        let node = self.node(slot, guard);
        if node.era() < era {
            return;
        }
        if node.level() > 0 {
            let inner = InnerNode::new(node);
            (0..inner.children()).for_each(|i| self.free_below(inner.child(i), era, guard));
        }
        let garbage = Garbage::node(node, false);
        // SAFETY: no other thread can reach the node: `Drop` has the last handle, and a failed batch never linked it.
        unsafe { self.index.bags.free(&self.index.arena, guard.record.number, garbage) };
    }
}

/// Fetches a leaf's head, tags and the records about a share of them.
#[inline(always)]
fn fetch(node: Node<'_>, slot: Slot, share: Share) {
    let at = node.address();
    let record = at.wrapping_add(slot.record_at(share));
    prefetch::read(at);
    prefetch::read(at.wrapping_add(64));
    prefetch::read(at.wrapping_add(128));
    prefetch::read(record);
    prefetch::read(record.wrapping_sub(64));
    prefetch::read(record.wrapping_add(64));
    prefetch::read(record.wrapping_add(128));
    prefetch::read(record.wrapping_sub(128));
    if let Some(offset) = slot.offset_at(share) {
        prefetch::read(at.wrapping_add(offset));
    }
}

/// Fetches what a search in an inner node reads, with the slot at a share of all.
#[inline(always)]
fn fetch_inner(node: Node<'_>, slot: Slot, share: Share) {
    let at = node.address();
    prefetch::read(at.wrapping_add(slot.record_at(share)));
    (0..5).for_each(|line| prefetch::read(at.wrapping_add(64 * line)));
    if let Some(ends) = slot.ends() {
        (0..4).for_each(|line| prefetch::read(at.wrapping_add(ends + 64 * line)));
    }
}

/// Highest level of nodes that are fetched before they are read. In a tree of 50 million numbers the nodes above take
/// 300 KB, which caches keep, so that what they save is less than what they cost: a guess, which takes a division, and
/// instructions that keep the core from beginning the next lookup.
const FETCHED_LEVEL: u8 = 1;

/// Fetches the child, which is of a level, that a descent goes on to.
#[inline(always)]
pub(crate) fn fetch_child(
    (inner, index): (InnerNode<'_>, usize),
    key: &Key<'_>,
    (node, slot): (Node<'_>, Slot),
    level: u8,
) -> Share {
    if level > FETCHED_LEVEL {
        return Share::HALF;
    }
    let share = inner.share(index, key);
    if level == 0 {
        fetch(node, slot, share);
    } else {
        fetch_inner(node, slot, share);
    }
    share
}

/// Fetches where a leaf's appended records are.
#[inline(always)]
pub(crate) fn fetch_appended(node: Node<'_>, slot: Slot) {
    let at = node.address().wrapping_add(slot.extent());
    (0..4).for_each(|line| prefetch::read(at.wrapping_add(64 * line)));
}

/// The way to a leaf: its slot, and how far into it the key is.
pub(crate) type Way = (Slot, Share);

/// The leaf that a key belongs to, prefetched, and the way to it.
///
/// # Safety
/// The processor has the instruction set `I`.
#[inline(always)]
unsafe fn descend_by<'g, I: Isa>(
    tree: &TreeInner,
    root: Slot,
    key: &Key<'_>,
    guard: &'g Guard,
) -> (Way, Node<'g>) {
    let base = tree.index.arena.base();
    // SAFETY: slots are read from the tree under the guard.
    let node_of = |slot: Slot| unsafe { Node::from_base(base, slot.handle(), guard) };
    let (mut slot, mut share, mut node) = (root, Share::HALF, node_of(root));
    let mut level = node.level();
    while level > 0 {
        let inner = InnerNode::new(node);
        // SAFETY: the processor has `I`, as this function requires.
        let index = unsafe { inner.route_by::<I>(key) };
        slot = inner.child(index);
        node = node_of(slot);
        // Counted, not read from the child: the leaf's own lines are still far away.
        level -= 1;
        share = fetch_child((inner, index), key, (node, slot), level);
    }
    ((slot, share), node)
}

/// The cell of a key.
///
/// # Safety
/// The processor has the instruction set `I`.
#[inline(always)]
unsafe fn find_by<'g, I: Isa>(
    tree: &TreeInner,
    root: Slot,
    key: &Key<'_>,
    hash: u64,
    guard: &'g Guard,
) -> Option<Cell<'g>> {
    // SAFETY: the processor has `I`: `dispatch!` selects only instruction sets that it detected.
    unsafe {
        let ((_, share), node) = descend_by::<I>(tree, root, key, guard);
        Leaf::new(node).find::<I>(share, key, hash)
    }
}

/// The cell of a key in a leaf.
///
/// # Safety
/// The processor has the instruction set `I`.
#[inline(always)]
unsafe fn find_in_by<'g, I: Isa>(leaf: Leaf<'g>, share: Share, key: &Key<'_>, hash: u64) -> Option<Cell<'g>> {
    // SAFETY: the processor has `I`: `dispatch!` selects only instruction sets that it detected.
    unsafe { leaf.find::<I>(share, key, hash) }
}

dispatch! {
    /// The leaf that a key belongs to, fetched, and the way to it.
    pub(crate) fn descend<'g>(tree: &TreeInner, root: Slot, key: &Key<'_>, guard: &'g Guard) -> (Way, Node<'g>)
        = descend_by
}

dispatch! {
    /// The cell of a key.
    pub(crate) fn find<'g>(tree: &TreeInner, root: Slot, key: &Key<'_>, hash: u64, guard: &'g Guard) -> Option<Cell<'g>>
        = find_by
}

dispatch! {
    /// The cell of a key in a leaf.
    pub(crate) fn find_in<'g>(leaf: Leaf<'g>, share: Share, key: &Key<'_>, hash: u64) -> Option<Cell<'g>> = find_in_by
}

impl Drop for TreeInner {
    fn drop(&mut self) {
        if self.index.is_left_alone() {
            return;
        }
        let guard = epoch::pin();
        let root = self.newest_root();
        self.free_below(root, 0, &guard);
    }
}

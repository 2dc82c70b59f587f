//! [`Tree`] and [`Reader`]: one ordered map, to be changed and to be read.

use crate::arena::{Purpose, Supply};
use crate::epoch::{self, Guard};
use crate::index::Inner as Index;
use crate::inner::Inner;
use crate::key::Key;
use crate::leaf::{self, Cell, Leaf};
use crate::node::{Node, Share, Slot};
use crate::reclaim::Garbage;
use crate::roots::Root;
use crate::scan;
use crate::simd::{Isa, dispatch};
use crate::snapshot::Kept;
use crate::write::{self, Writer};
use crate::{Effect, Error, MAX_VALUE_BYTES};
use std::ops::Deref;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

const STRIPES: usize = 8;

#[repr(align(128))]
#[derive(Default)]
struct Stripe(AtomicI64);

/// What the handles of a tree share.
pub(crate) struct TreeInner {
    pub(crate) index: Arc<Index>,
    pub(crate) id: u64,
    pub(crate) root: Root,
    /// Held to replace the root.
    pub(crate) root_lock: Mutex<()>,
    keys: [Stripe; STRIPES],
}

/// One ordered map. Reads come from [`Reader`], to which it dereferences. Cloning makes another handle.
#[derive(Clone)]
pub struct Tree(Reader);

/// One state of one tree, to be read: the newest, or a snapshot's.
///
/// Reads take no lock, write no shared memory and never wait.
#[derive(Clone)]
pub struct Reader {
    pub(crate) tree: Arc<TreeInner>,
    /// The snapshot and its root, which is 0 if the tree was not there yet.
    past: Option<(Arc<Kept>, u64)>,
}

impl TreeInner {
    pub(crate) fn new(index: &Arc<Index>, id: u64) -> Result<TreeInner, Error> {
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

    /// Frees a node and all below it that were made in `era` or later. Nobody else can see them.
    pub(crate) fn free_below(&self, slot: Slot, era: u64, guard: &Guard) {
        let node = self.node(slot, guard);
        if node.era() < era {
            return;
        }
        if node.level() > 0 {
            let inner = Inner::new(node);
            (0..inner.children()).for_each(|i| self.free_below(inner.child(i), era, guard));
        }
        let garbage = Garbage::node(node, false);
        // SAFETY: by the caller's word nobody else can see the node.
        unsafe { self.index.bags.free(&self.index.arena, guard.record.number, garbage) };
    }
}

/// The way to a leaf: its slot, and how far into it the key is.
pub(crate) type Way = (Slot, Share);

/// The leaf that a key belongs to, fetched, and the way to it.
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
        let inner = Inner::new(node);
        // SAFETY: by contract.
        let index = unsafe { inner.route_by::<I>(key) };
        slot = inner.child(index);
        node = node_of(slot);
        // Counted, not read from the child: the leaf's own lines are still far away.
        level -= 1;
        if level == 0 {
            share = inner.share(index, key);
        }
    }
    scan::fetch(node, slot, share);
    ((slot, share), node)
}

#[inline(always)]
unsafe fn find_by<'g, I: Isa>(
    tree: &TreeInner,
    root: Slot,
    key: &Key<'_>,
    hash: u64,
    guard: &'g Guard,
) -> Option<Cell<'g>> {
    // SAFETY: by contract.
    unsafe {
        let ((_, share), node) = descend_by::<I>(tree, root, key, guard);
        Leaf::new(node).find::<I>(share, key, hash)
    }
}

#[inline(always)]
unsafe fn find_in_by<'g, I: Isa>(leaf: Leaf<'g>, share: Share, key: &Key<'_>, hash: u64) -> Option<Cell<'g>> {
    // SAFETY: by contract.
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
        let guard = epoch::pin();
        let root = self.newest_root();
        self.free_below(root, 0, &guard);
    }
}

impl Deref for Tree {
    type Target = Reader;
    #[inline(always)]
    fn deref(&self) -> &Reader {
        &self.0
    }
}

impl Tree {
    pub(crate) fn new(tree: Arc<TreeInner>) -> Tree {
        Tree(Reader { tree, past: None })
    }

    #[inline(always)]
    pub(crate) fn inner(&self) -> &Arc<TreeInner> {
        &self.0.tree
    }

    /// The one way to change a key: `decide` is shown the value that the key has and says what becomes of
    /// it; both happen as one atomic step. `decide` runs under a lock: it must be quick and must not use any
    /// index. It may run more than once; what it said last is what was done.
    ///
    /// # Errors
    /// [`Error::KeyTooLong`], [`Error::ValueTooLong`], [`Error::OutOfMemory`]; nothing has changed then.
    #[inline]
    pub fn apply<'v, R>(
        &self,
        key: &[u8],
        mut decide: impl FnMut(Option<&[u8]>) -> (Effect<'v>, R),
    ) -> Result<R, Error> {
        let tree = self.inner();
        let mut turn = 0;
        loop {
            let result = {
                let guard = epoch::pin();
                let _shared = tree.index.gate().enter(guard.record);
                write::apply(&Writer::ordinary(tree, &guard), key, &mut decide)
            };
            match result {
                // What was freed may still wait for readers; with no pin of our own it can come back.
                Err(Error::OutOfMemory(_)) if tree.index.wait_for_memory(&mut turn) => {}
                result => return result,
            }
        }
    }

    /// Maps a key to a value; true if the key was there before.
    ///
    /// # Errors
    /// As [`Tree::apply`].
    #[inline]
    pub fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        if value.len() > leaf::INLINE_MAX {
            // Copied before the lock is taken.
            let value = write::shared(value)?;
            return self.apply(key, |old| (Effect::PutValue(value.clone()), old.is_some()));
        }
        self.apply(key, |old| (Effect::Put(value.into()), old.is_some()))
    }

    /// Removes a key; true if it was there.
    ///
    /// # Errors
    /// As [`Tree::apply`].
    pub fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        self.apply(key, |old| (Effect::Remove, old.is_some()))
    }
}

impl Reader {
    pub(crate) fn past(tree: Arc<TreeInner>, kept: Arc<Kept>, root: u64) -> Reader {
        Reader { tree, past: Some((kept, root)) }
    }

    /// The root of the state that this reader sees; `None` if the tree was not there then.
    #[inline(always)]
    pub(crate) fn root(&self) -> Option<Slot> {
        match &self.past {
            None => Some(self.tree.newest_root()),
            Some((_, 0)) => None,
            Some((_, root)) => Some(Slot(*root)),
        }
    }
}

const _: () = assert!(MAX_VALUE_BYTES == u32::MAX as usize);

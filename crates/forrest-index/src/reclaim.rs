//! Reclamation: unlinked memory waits here until no reader can still use it.
//!
//! Garbage is collected in bags, one per shard of threads. A full bag is sealed with the epoch of that
//! moment (see [`crate::epoch`]) and emptied once no pin is that old; the oldest bags go first, so that a
//! block is used again while it is still in the cache.

use crate::arena::{Arena, Handle};
use crate::epoch::{self, REGISTRY};
use crate::inner::InnerNode;
use crate::leaf::walk::Walk;
use crate::leaf::{Blob, Leaf};
use crate::node::Node;
use forrest_base::lock;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

const SHARDS: usize = 16;
const BAG: usize = 32;

/// Something to free.
pub(crate) enum Garbage {
    /// A node's block alone; its blobs belong to another node now.
    Block(Handle, u32),
    /// A leaf and one count of each of its blobs.
    Leaf(Handle, u32),
    /// One count of a blob.
    Blob(Blob),
}

impl Garbage {
    /// A node. With `moved`, the blobs of a leaf belong to another node.
    pub(crate) fn node(node: Node<'_>, moved: bool) -> Garbage {
        match node.level() {
            0 if moved => Garbage::Block(node.handle(), Leaf::new(node).lines()),
            0 => Garbage::Leaf(node.handle(), Leaf::new(node).lines()),
            _ => Garbage::Block(node.handle(), InnerNode::new(node).lines()),
        }
    }
}

#[derive(Default)]
struct Bag {
    open: Vec<Garbage>,
    sealed: VecDeque<(u64, Vec<Garbage>)>,
}

/// The bags of one index.
#[derive(Default)]
pub(crate) struct Bags {
    shards: [Mutex<Bag>; SHARDS],
    /// Bytes in blobs that are not yet freed.
    pub(crate) blob_bytes: AtomicU64,
}

impl Bags {
    /// Adds unlinked memory. Frees older garbage that no pin can still reach.
    pub(crate) fn put(&self, arena: &Arena, thread: usize, garbage: Garbage) {
        let mut bag = lock(&self.shards[thread % SHARDS]);
        let large = matches!(garbage, Garbage::Blob(blob) if blob.len() > 1 << 16);
        bag.open.push(garbage);
        if bag.open.len() >= BAG || large {
            self.seal(arena, thread, bag);
        }
    }

    fn seal(&self, arena: &Arena, thread: usize, mut bag: MutexGuard<'_, Bag>) {
        if !bag.open.is_empty() {
            let full = std::mem::take(&mut bag.open);
            bag.sealed.push_back((REGISTRY.seal(), full));
        }
        let oldest = REGISTRY.oldest_pin();
        let mut free = Vec::new();
        while bag.sealed.front().is_some_and(|(epoch, _)| *epoch < oldest) {
            free.extend(bag.sealed.pop_front());
        }
        drop(bag);
        for garbage in free.into_iter().flat_map(|(_, bag)| bag) {
            // SAFETY: it was unlinked before its bag was sealed, and no pin is as old as that.
            unsafe { self.free(arena, thread, garbage) };
        }
    }

    /// True if there is garbage that was not freed yet.
    pub(crate) fn waiting(&self) -> bool {
        self.shards.iter().map(lock).any(|bag| !bag.open.is_empty() || !bag.sealed.is_empty())
    }

    /// True if full bags were not freed yet.
    pub(crate) fn has_sealed(&self) -> bool {
        self.shards.iter().map(lock).any(|bag| !bag.sealed.is_empty())
    }

    /// Frees all that can be freed now.
    pub(crate) fn collect(&self, arena: &Arena, thread: usize) {
        for shard in &self.shards {
            self.seal(arena, thread, lock(shard));
        }
    }

    /// Frees at once.
    ///
    /// # Safety
    /// No other thread can reach the garbage or still reads it.
    pub(crate) unsafe fn free(&self, arena: &Arena, thread: usize, garbage: Garbage) {
        // SAFETY: no other thread can reach the memory, as this function requires. A node's `lines` is the size with
        // which its block was allocated, and a leaf owns one count of each of its blobs.
        unsafe {
            match garbage {
                Garbage::Block(handle, lines) => arena.free(handle, lines, thread),
                Garbage::Blob(blob) => self.drop_blob(blob),
                Garbage::Leaf(handle, lines) => {
                    {
                        let guard = epoch::pin();
                        let leaf = Leaf::new(Node::at(arena, handle, &guard));
                        if leaf.has_blobs() {
                            Walk::all_blobs(leaf, |blob| self.drop_blob(blob));
                        }
                    }
                    arena.free(handle, lines, thread);
                }
            }
        }
    }

    /// Gives up one count of a blob.
    ///
    /// # Safety
    /// The caller owns that count.
    pub(crate) unsafe fn drop_blob(&self, blob: Blob) {
        self.blob_bytes.fetch_sub(blob.len() as u64, Ordering::Relaxed);
        // SAFETY: the caller owns the count, as this function requires, and does not use it again.
        unsafe { blob.drop() };
    }

    /// Empties all bags when the index is dropped.
    pub(crate) fn drain(&mut self, arena: &Arena) {
        let bags = self
            .shards
            .each_mut()
            .map(|shard| std::mem::take(shard.get_mut().unwrap_or_else(|e| e.into_inner())));
        for bag in bags {
            for garbage in bag.sealed.into_iter().flat_map(|(_, bag)| bag).chain(bag.open) {
                // SAFETY: `&mut self`: no reader and no writer is left.
                unsafe { self.free(arena, 0, garbage) };
            }
        }
    }
}

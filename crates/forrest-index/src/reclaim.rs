//! Reclamation: unlinked memory waits here until no reader can still use it.
//!
//! Garbage is collected in open bags, one per shard of threads. The thread that fills one seals all of them with the
//! epoch of that moment (see [`crate::epoch`]) and frees the sealed bags, of all threads, that no pin is as old as; the
//! oldest first. So threads share the cost of a seal, a fence in every running thread, and nothing stays because the
//! thread that retired it has ended or rests.
//!
//! The argument for freeing what another thread sealed: sealed bags are in one queue, under a lock. A thread that holds
//! the lock runs the heavy barrier and reads all records after the bag was sealed, so the argument of
//! [`crate::epoch`] holds for it as if it had sealed the bag itself.

use crate::arena::{Arena, Handle};
use crate::epoch::{self, REGISTRY};
use crate::inner::InnerNode;
use crate::leaf::walk::Walk;
use crate::leaf::{Blob, Leaf};
use crate::node::Node;
use crate::staged::Staged;
use forrest_base::lock;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

const SHARDS: usize = 16;
/// Number of pieces of garbage with which a bag is full: as many for each thread that there ever was at once, between
/// the two bounds. The more threads, the more a seal costs.
const BAG_PER_THREAD: usize = 8;
const BAG_MIN: usize = 32;
const BAG_MAX: usize = 256;
/// Empty bags that are kept for reuse.
const SPARE_MAX: usize = SHARDS;

/// Something to free.
pub(crate) enum Garbage {
    /// A node's block alone; its blobs belong to another node now.
    Block(Handle, u32),
    /// A leaf and one count of each of its blobs.
    Leaf(Handle, u32),
    /// One count of a blob.
    Blob(Blob),
    /// Staged orders of a batch that has ended.
    Orders(Box<[Staged]>),
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

type Bag = Vec<Garbage>;

/// The bags that are sealed.
#[derive(Default)]
struct Sealed {
    /// With the epoch of the seal, oldest first.
    queue: VecDeque<(u64, Bag)>,
    spare: Vec<Bag>,
}

/// The bags of one index.
#[derive(Default)]
pub(crate) struct Bags {
    open: [Mutex<Bag>; SHARDS],
    /// Taken before the lock of an open bag.
    sealed: Mutex<Sealed>,
    /// Length of the queue, for those who do not have the lock.
    queued: AtomicUsize,
    /// Bytes in blobs that are not yet freed.
    pub(crate) blob_bytes: AtomicU64,
    /// How often bags were sealed.
    #[cfg(test)]
    pub(crate) seals: AtomicUsize,
}

impl Bags {
    /// Adds unlinked memory. Frees older garbage that no pin can still reach.
    pub(crate) fn put(&self, arena: &Arena, thread: usize, garbage: Garbage) {
        let large = matches!(garbage, Garbage::Blob(blob) if blob.len() > 1 << 16);
        let mut bag = lock(&self.open[thread % SHARDS]);
        bag.push(garbage);
        let full = large || bag.len() >= Self::full();
        drop(bag);
        if full {
            self.free_old(arena, thread);
        }
    }

    /// As [`Bags::put`], for many.
    pub(crate) fn put_all(&self, arena: &Arena, thread: usize, garbage: impl Iterator<Item = Garbage>) {
        let mut bag = lock(&self.open[thread % SHARDS]);
        bag.extend(garbage);
        let full = bag.len() >= Self::full();
        drop(bag);
        if full {
            self.free_old(arena, thread);
        }
    }

    fn full() -> usize {
        (REGISTRY.len() * BAG_PER_THREAD).clamp(BAG_MIN, BAG_MAX)
    }

    /// Seals and frees, unless another thread does so at this moment: then the bag goes on growing.
    #[cold]
    fn free_old(&self, arena: &Arena, thread: usize) {
        match self.sealed.try_lock() {
            Ok(sealed) => self.seal_and_free(arena, thread, sealed),
            Err(TryLockError::Poisoned(sealed)) => self.seal_and_free(arena, thread, sealed.into_inner()),
            Err(TryLockError::WouldBlock) => {}
        }
    }

    fn seal_and_free(&self, arena: &Arena, thread: usize, mut sealed: MutexGuard<'_, Sealed>) {
        let Sealed { queue, spare } = &mut *sealed;
        let before = queue.len();
        for open in &self.open {
            let mut open = lock(open);
            if !open.is_empty() {
                let full = std::mem::replace(&mut *open, spare.pop().unwrap_or_default());
                queue.push_back((0, full));
            }
        }
        if queue.len() > before {
            let epoch = REGISTRY.seal();
            queue.range_mut(before..).for_each(|(of, _)| *of = epoch);
            #[cfg(test)]
            self.seals.fetch_add(1, Ordering::Relaxed);
        }
        if queue.is_empty() {
            return;
        }
        let oldest = REGISTRY.oldest_pin();
        let old = queue.partition_point(|(epoch, _)| *epoch < oldest);
        let mut free: Vec<Bag> = queue.drain(..old).map(|(_, bag)| bag).collect();
        self.queued.store(queue.len(), Ordering::Relaxed);
        drop(sealed);
        for garbage in free.iter_mut().flat_map(|bag| bag.drain(..)) {
            // SAFETY: it was unlinked before its bag was sealed, and no pin is as old as that.
            unsafe { self.free(arena, thread, garbage) };
        }
        free.retain(|bag| bag.capacity() <= BAG_MAX);
        if !free.is_empty() {
            let spare = &mut lock(&self.sealed).spare;
            spare.extend(free.into_iter().take(SPARE_MAX.saturating_sub(spare.len())));
        }
    }

    /// True if there is garbage that was not freed yet.
    pub(crate) fn waiting(&self) -> bool {
        self.has_sealed() || self.open.iter().map(lock).any(|bag| !bag.is_empty())
    }

    /// True if sealed bags were not freed yet.
    pub(crate) fn has_sealed(&self) -> bool {
        // ORDERING: a hint; nothing else is read by it.
        self.queued.load(Ordering::Relaxed) > 0
    }

    /// Frees all that can be freed now.
    pub(crate) fn collect(&self, arena: &Arena, thread: usize) {
        self.seal_and_free(arena, thread, lock(&self.sealed));
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
                Garbage::Orders(orders) => drop(orders),
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
        let open = self.open.each_mut().map(|bag| std::mem::take(inner(bag)));
        let sealed = std::mem::take(&mut inner(&mut self.sealed).queue);
        for garbage in sealed.into_iter().map(|(_, bag)| bag).chain(open).flatten() {
            // SAFETY: `&mut self`: no reader and no writer is left.
            unsafe { self.free(arena, 0, garbage) };
        }
    }
}

fn inner<T>(mutex: &mut Mutex<T>) -> &mut T {
    mutex.get_mut().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;
    use crate::arena::Purpose;
    use crate::options::Options;
    use std::sync::Barrier;
    use std::thread;

    /// A seal interrupts every running thread, so there are fewer where there are more threads.
    #[test]
    fn bags_grow_with_the_threads_and_are_sealed_together() {
        const THREADS: usize = 16;
        const EACH: usize = 1_600;
        let options = Options { capacity_bytes: Some(64 << 20), ..Options::default() };
        let (arena, bags) = (Arena::new(&options).expect("an arena"), Bags::default());
        let registered = Barrier::new(THREADS);
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    let thread = epoch::pin().record.number;
                    registered.wait();
                    for _ in 0..EACH {
                        let block = arena.alloc(4, thread, Purpose::Growth).expect("there is room");
                        bags.put(&arena, thread, Garbage::Block(block, 4));
                    }
                });
            }
        });
        let (seals, least) = (bags.seals.load(Ordering::Relaxed), THREADS * BAG_PER_THREAD);
        assert!(seals > 0 && seals <= THREADS * EACH / least, "{seals} seals");
        assert!(bags.waiting(), "the last bags are not full");
        bags.collect(&arena, 0);
        assert!(!bags.waiting() || REGISTRY.oldest_pin() != u64::MAX, "nothing keeps them");
    }
}

//! A seqlock read: looking up one key in a store without its lock, while other processes change it. This is
//! the reader's side of `kernel/llds/buckets.h`, over memory that the models can observe.
//!
//! Each bucket has a [`Sequence`], and so has the store. A writer holds the lock. It makes a sequence odd
//! before it changes what the sequence guards, and even again afterwards:
//!
//! - A bucket's sequence guards its slots, its overflow blocks and the entries that it names, while values
//!   are changed in place and while an entry moves to another bucket. The number of buckets is updated before
//!   the sequence is even again.
//! - The store's sequence guards changes that must become visible together.
//!
//! ARGUMENT. *A found entry existed.* The reader loads a tag and a handle after it saw the bucket's sequence
//! even, and then copies the entry. If the sequence is unchanged after the copy, nothing that it guards has
//! changed in between: the handle named the entry, the entry was not freed, and its value did not change. *A
//! key that was not found did not exist.* The number of buckets determines the key's bucket. The reader loads
//! all slots of this bucket while its sequence is unchanged. If the number of buckets changed before that,
//! entries may have moved to another bucket, so the reader loads the number again. An entry may also have
//! moved away and back; its return changes the sequence, so the reader checks the sequence once more after
//! that. *Every access is to mapped memory.* The reader follows a handle only after it has found the sequence
//! unchanged after loading the handle. So the handle was that of an entry or of an overflow block, whose
//! memory stays mapped. *Changes made together are seen together, or not at all*: a read that overlaps them
//! is rejected. So nothing is seen that may yet be undone, and of two successive reads, the second sees all
//! changes of which the first saw one.
//!
//! ORDERING. A read begins with an Acquire load of each sequence, so later loads are not older than what the
//! writer stored before that number. It ends with an Acquire fence before it loads the sequence again. If a
//! load returned something that a writer stored after it made the number odd (with a Release fence, or
//! `smp_wmb` in C, in between), the reader sees an odd or a different number.

use crate::sync::{AtomicU32, Ordering, fence, weakened};

/// A number in the store's memory that is odd while a writer changes what it guards.
#[repr(transparent)]
pub(crate) struct Sequence(AtomicU32);

impl Sequence {
    /// The number, if no change is in progress.
    #[inline]
    pub(crate) fn begin(&self) -> Option<u32> {
        let order = weakened!("begins", Acquire);
        let number = self.0.load(order);
        (number.is_multiple_of(2) || weakened!("ignores_odd")).then_some(number)
    }

    /// Whether nothing has changed since `begin` returned `begun`, so that the loads in between are
    /// consistent.
    #[inline]
    pub(crate) fn is_still(&self, begun: u32) -> bool {
        if !weakened!("fences") {
            fence(Ordering::Acquire);
        }
        self.0.load(Ordering::Relaxed) == begun
    }
}

/// What `Memory::copy` found at a handle whose tag matches the key.
pub(crate) enum Candidate {
    /// An entry of another key, or no entry: a block that is being changed may hold any bytes.
    OtherKey,
    /// The entry of the key. It was copied.
    Copied,
    /// The entry of the key, with a value in a separate block, which is not mapped.
    Apart,
}

/// The memory of a store, as a lookup of one key sees it.
pub(crate) trait Memory {
    type Bucket: Copy;

    fn as_one(&self) -> &Sequence;
    /// A word that determines which bucket is a hash's. It changes with the number of buckets.
    fn buckets(&self) -> u64;
    /// The key's bucket, by this word.
    fn home(&self, buckets: u64) -> Self::Bucket;
    fn sequence(&self, bucket: Self::Bucket) -> &Sequence;
    /// The slots whose tag equals the key's. False positives are allowed.
    fn slots(&self, bucket: Self::Bucket) -> u32;
    /// The handle in the first slot of `slots`.
    fn handle(&self, bucket: Self::Bucket, slots: u32) -> u32;
    /// The handle of the bucket's next overflow block, or 0.
    fn more(&self, bucket: Self::Bucket) -> u32;
    fn continued(&self, handle: u32) -> Self::Bucket;
    /// Whether keys of a bucket may be only in the order of keys.
    fn is_crowded(&self, home: Self::Bucket) -> bool;
    /// Copies the entry of a handle if it is the key's.
    fn copy(&mut self, handle: u32) -> Candidate;
}

/// The result of one seqlock read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Read {
    /// The entry was copied.
    Found,
    Absent,
    /// The key exists, with a value in a separate block, which is not mapped. Or its bucket is crowded, and it may
    /// be in the order of keys alone.
    Apart,
    /// A writer changed something meanwhile.
    Retry,
}

/// Makes one attempt at a seqlock read.
#[inline(always)]
pub(crate) fn read_once<M: Memory>(memory: &mut M) -> Read {
    let Some(as_one) = memory.as_one().begin() else { return Read::Retry };
    let buckets = memory.buckets();
    let home = memory.home(buckets);
    let Some(begun) = memory.sequence(home).begin() else { return Read::Retry };
    let mut bucket = home;
    loop {
        let mut slots = memory.slots(bucket);
        while slots != 0 {
            let handle = memory.handle(bucket, slots);
            if !memory.sequence(home).is_still(begun) && !weakened!("follows") {
                return Read::Retry;
            }
            match memory.copy(handle) {
                Candidate::Copied => return if_still(memory, home, (begun, as_one), Read::Found),
                Candidate::Apart => return if_still(memory, home, (begun, as_one), Read::Apart),
                Candidate::OtherKey => slots &= slots - 1,
            }
        }
        let more = memory.more(bucket);
        if !memory.sequence(home).is_still(begun) {
            return Read::Retry;
        }
        if more == 0 {
            break;
        }
        bucket = memory.continued(more);
    }
    let is_crowded = memory.is_crowded(home);
    let has_moved = memory.buckets() != buckets && !weakened!("counts");
    let has_come_back = !memory.sequence(home).is_still(begun) && !weakened!("comes_back");
    if has_moved || has_come_back || !is_one(memory, as_one) {
        return Read::Retry;
    }
    if is_crowded { Read::Apart } else { Read::Absent }
}

/// What was found in a bucket, if neither it nor the store has changed since.
#[inline]
fn if_still<M: Memory>(memory: &M, home: M::Bucket, (begun, as_one): (u32, u32), found: Read) -> Read {
    let is_whole = memory.sequence(home).is_still(begun) || weakened!("believes");
    if is_whole && is_one(memory, as_one) { found } else { Read::Retry }
}

#[inline]
fn is_one<M: Memory>(memory: &M, as_one: u32) -> bool {
    memory.as_one().is_still(as_one) || weakened!("parts")
}

#[cfg(all(test, feature = "loom"))]
impl Sequence {
    pub(crate) fn new() -> Sequence {
        Sequence(AtomicU32::new(0))
    }

    /// The writer's side, as in `llds_bucket_begin()`.
    pub(crate) fn make_odd(&self) {
        self.0.store(self.0.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        if !weakened!("makes_odd") {
            fence(Ordering::Release);
        }
    }

    /// The writer's side, as in `llds_bucket_end()`.
    pub(crate) fn make_even(&self) {
        let order = weakened!("makes_even", Release);
        self.0.store(self.0.load(Ordering::Relaxed) + 1, order);
    }
}

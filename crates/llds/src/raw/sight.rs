//! How a key is looked up in a store that others change, without its lock: the reader's side of
//! `kernel/llds/buckets.h`, over memory that the models can watch.
//!
//! A bucket has a [`Sequence`], and so has the store. Writers, who have the lock, make a sequence odd before they
//! change what it guards, and even again after it:
//!
//! - that of a bucket for its slots, for what continues it, for the entries that it names while their values are
//!   changed in place, and while an entry moves to another bucket; the number of buckets is told before it is even
//!   again;
//! - that of the store for changes that are to be seen as one.
//!
//! ARGUMENT. *What is found was there.* A tag and a handle were read after the bucket's sequence was even, and the
//! entry after that; when the entry was copied, the sequence was the same. So nothing that it guards changed in
//! between: the handle named the entry, which was not freed, nor its value changed. *What is not found was not there.*
//! By the number of buckets the key belongs to one of them; all of its slots were read while its sequence stood still.
//! Had the number changed before they were read, entries may have moved elsewhere: so it is read again. And as it may
//! have moved on and back, the sequence is looked at once more behind that, for an entry that comes back moves
//! it. *What is read is there.* A handle is followed only after the sequence has been found the same behind it: so it
//! was a handle of an entry, or of what continues the bucket, and leads to memory that stays. *Changes that are one are
//! seen as one, or never*: a look that overlaps them is not believed, so nothing is seen that may yet be undone, and of
//! two looks, one after the other, the second sees all of what the first saw a part of.
//!
//! ORDERING. A look begins with an Acquire load of each sequence, so what is read later is not older than what the
//! writer did before that number. It ends with an Acquire fence before it loads the sequence again: if something read
//! was written by a writer after it had made the number odd (and a Release fence, or `smp_wmb` in C), the number is
//! seen as odd or moved.

use crate::sync::{AtomicU32, Ordering, fence, weakened};

/// A number that is odd while what it guards is being changed. It lies in the store's memory.
#[repr(transparent)]
pub(crate) struct Sequence(AtomicU32);

impl Sequence {
    /// The number, if nothing is being changed.
    #[inline]
    pub(crate) fn begin(&self) -> Option<u32> {
        let order = weakened!("begins", Acquire);
        let number = self.0.load(order);
        (number.is_multiple_of(2) || weakened!("ignores_odd")).then_some(number)
    }

    /// Whether nothing was changed since: what was read in between is to be believed.
    #[inline]
    pub(crate) fn is_still(&self, begun: u32) -> bool {
        if !weakened!("fences") {
            fence(Ordering::Acquire);
        }
        self.0.load(Ordering::Relaxed) == begun
    }
}

/// What an entry is to a look.
pub(crate) enum Entry {
    /// That of another key, or of none: what is half changed may look like anything.
    Other,
    /// That of the key. It was copied.
    Same,
    /// That of the key, with its value where it cannot be seen.
    Apart,
}

/// The memory of a store, as one sees it who looks for a certain key.
pub(crate) trait Memory {
    type Bucket: Copy;

    fn as_one(&self) -> &Sequence;
    /// How many buckets there are.
    fn buckets(&self) -> u32;
    /// The bucket of the key among so many.
    fn home(&self, buckets: u32) -> Self::Bucket;
    fn sequence(&self, bucket: Self::Bucket) -> &Sequence;
    /// The slots whose tag is that of the key, and perhaps others.
    fn slots(&self, bucket: Self::Bucket) -> u64;
    /// The handle in the first of these slots.
    fn handle(&self, bucket: Self::Bucket, slots: u64) -> u32;
    /// The handle of what continues a bucket, or 0.
    fn more(&self, bucket: Self::Bucket) -> u32;
    fn continued(&self, handle: u32) -> Self::Bucket;
    /// Copies the entry of a handle if it is that of the key.
    fn copy(&mut self, handle: u32) -> Entry;
}

/// What came of a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// The entry was copied.
    Found,
    Absent,
    /// It is there, with its value where it cannot be seen.
    Apart,
    /// It was being changed.
    Again,
}

/// Looks once.
#[inline]
pub(crate) fn look<M: Memory>(memory: &mut M) -> Look {
    let Some(as_one) = memory.as_one().begin() else { return Look::Again };
    let buckets = memory.buckets();
    let home = memory.home(buckets);
    let Some(begun) = memory.sequence(home).begin() else { return Look::Again };
    let mut bucket = home;
    loop {
        let mut slots = memory.slots(bucket);
        while slots != 0 {
            let handle = memory.handle(bucket, slots);
            if !memory.sequence(home).is_still(begun) && !weakened!("follows") {
                return Look::Again;
            }
            let entry = memory.copy(handle);
            if !matches!(entry, Entry::Other) {
                let is_whole = memory.sequence(home).is_still(begun) || weakened!("believes");
                if !is_whole || !is_one(memory, as_one) {
                    return Look::Again;
                }
                return if matches!(entry, Entry::Same) { Look::Found } else { Look::Apart };
            }
            slots &= slots - 1;
        }
        let more = memory.more(bucket);
        if !memory.sequence(home).is_still(begun) {
            return Look::Again;
        }
        if more == 0 {
            break;
        }
        bucket = memory.continued(more);
    }
    let has_moved = memory.buckets() != buckets && !weakened!("counts");
    let has_come_back = !memory.sequence(home).is_still(begun) && !weakened!("comes_back");
    if has_moved || has_come_back || !is_one(memory, as_one) { Look::Again } else { Look::Absent }
}

fn is_one<M: Memory>(memory: &M, as_one: u32) -> bool {
    memory.as_one().is_still(as_one) || weakened!("parts")
}

#[cfg(all(test, feature = "loom"))]
impl Sequence {
    pub(crate) fn new() -> Sequence {
        Sequence(AtomicU32::new(0))
    }

    /// The writer's side, as `llds_bucket_begin()` has it.
    pub(crate) fn make_odd(&self) {
        self.0.store(self.0.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        if !weakened!("makes_odd") {
            fence(Ordering::Release);
        }
    }

    /// And as `llds_bucket_end()` has it.
    pub(crate) fn make_even(&self) {
        let order = weakened!("makes_even", Release);
        self.0.store(self.0.load(Ordering::Relaxed) + 1, order);
    }
}

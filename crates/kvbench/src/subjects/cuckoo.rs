//! A cuckoo hash table, written here: two buckets of four slots for each key, as libcuckoo has them.
//!
//! After Pagh and Rodler, "Cuckoo Hashing" (2001); Erlingsson, Manasse and McSherry, "A Cool and Practical Alternative
//! to Traditional Hash Tables" (2006), for buckets; Fan, Andersen and Kaminsky, "MemC3" (NSDI 2013), for tags and for
//! the second bucket that follows from the first and the tag; Li et al., "Algorithmic Improvements for Fast Concurrent
//! Cuckoo Hashing" (EuroSys 2014), for the search in breadth. This one is for one writer and has no locks.
//!
//! A bucket holds the tags of its slots (a byte of the hash; 0 is an empty slot) before the pairs. A key lies in one
//! of two buckets, and either can be computed from the other and the tag, so that a pair is moved without
//! its key being hashed. When both are full, the shortest chain of moves that frees a slot is looked for, over at most
//! [`QUEUE_LEN`] buckets; if there is none, the table doubles.

use super::{Reader, Subject, Writer};
use crate::data::{KeyForm, Kind, ValueForm};
use crate::hashes::HashFunction;
use std::array;
use std::marker::PhantomData;

/// Slots of a bucket.
const SLOTS: usize = 4;
/// Buckets looked at for a free slot before the table grows.
const QUEUE_LEN: usize = 512;
/// Most moves that one insertion makes.
const MOVES_MAX: u8 = 5;
/// Buckets of a new table.
const BUCKETS_MIN: usize = 16;
/// A table that is emptier than one in this many slots does not grow: its keys have the same hashes.
const LOAD_MIN: usize = 64;

/// The table, in the form that the kind's users would take.
pub(crate) struct Map<A, B, H> {
    buckets: Vec<Bucket<A, B>>,
    len: usize,
    /// What the search in breadth works with, kept for its memory.
    queue: Vec<Step>,
    hash: PhantomData<H>,
}

struct Bucket<A, B> {
    tags: [u8; SLOTS],
    pairs: [(A, B); SLOTS],
}

/// A bucket that the search has reached.
#[derive(Clone, Copy)]
struct Step {
    bucket: usize,
    /// The step that it was reached from; itself for the first two.
    from: usize,
    /// The slot of that bucket whose pair may move here.
    slot: usize,
    moves: u8,
}

/// The tag of a hash, never 0, from bits that do not choose the bucket.
#[inline]
fn tag(hash: u64) -> u8 {
    let tag = (hash >> 56) as u8;
    if tag == 0 { 1 } else { tag }
}

/// The other bucket of a key with this tag; its own inverse.
#[inline]
fn other(bucket: usize, tag: u8, mask: usize) -> usize {
    // An odd multiplier spreads the tags over all bits of the mask.
    (bucket ^ usize::from(tag).wrapping_mul(0xc2b2_ae3d_27d4_eb4f_u64 as usize)) & mask
}

impl<A: Default, B: Default> Bucket<A, B> {
    fn new() -> Self {
        Bucket { tags: [0; SLOTS], pairs: array::from_fn(|_| Default::default()) }
    }

    #[inline]
    fn free_slot(&self) -> Option<usize> {
        self.tags.iter().position(|tag| *tag == 0)
    }
}

impl<A: Default, B: Default, H: HashFunction> Map<A, B, H> {
    fn new(buckets: usize) -> Self {
        let buckets = std::iter::repeat_with(Bucket::new).take(buckets).collect();
        Map { buckets, len: 0, queue: Vec::new(), hash: PhantomData }
    }

    #[inline]
    fn mask(&self) -> usize {
        self.buckets.len() - 1
    }

    /// Where the pair with this hash is whose key `is` the one: its bucket and slot.
    #[inline]
    fn find(&self, hash: u64, is: impl Fn(&A) -> bool) -> Option<(usize, usize)> {
        let tag = tag(hash);
        let first = hash as usize & self.mask();
        for at in [first, other(first, tag, self.mask())] {
            let bucket = &self.buckets[at];
            for slot in 0..SLOTS {
                if bucket.tags[slot] == tag && is(&bucket.pairs[slot].0) {
                    return Some((at, slot));
                }
            }
        }
        None
    }

    fn put(&mut self, at: usize, slot: usize, tag: u8, pair: (A, B)) {
        let bucket = &mut self.buckets[at];
        bucket.tags[slot] = tag;
        bucket.pairs[slot] = pair;
        self.len += 1;
    }

    /// Inserts a pair whose key is not there; gives it back if there is no room.
    fn try_add(&mut self, hash: u64, pair: (A, B)) -> Result<(), (A, B)> {
        let tag = tag(hash);
        let first = hash as usize & self.mask();
        let second = other(first, tag, self.mask());
        for at in [first, second] {
            if let Some(slot) = self.buckets[at].free_slot() {
                self.put(at, slot, tag, pair);
                return Ok(());
            }
        }
        match self.make_room(first, second) {
            Some((at, slot)) => {
                self.put(at, slot, tag, pair);
                Ok(())
            }
            None => Err(pair),
        }
    }

    /// Frees a slot of one of two full buckets by the shortest chain of moves there is.
    fn make_room(&mut self, first: usize, second: usize) -> Option<(usize, usize)> {
        let mask = self.mask();
        let mut queue = std::mem::take(&mut self.queue);
        queue.clear();
        queue.push(Step { bucket: first, from: 0, slot: 0, moves: 0 });
        queue.push(Step { bucket: second, from: 1, slot: 0, moves: 0 });
        let mut end = None;
        let mut at = 0;
        'search: while at < queue.len() {
            let step = queue[at];
            if step.moves < MOVES_MAX {
                for slot in 0..SLOTS {
                    let bucket = other(step.bucket, self.buckets[step.bucket].tags[slot], mask);
                    // A chain that came through the same bucket twice would move a pair that is no longer there.
                    if on_the_way(&queue, at, bucket) {
                        continue;
                    }
                    queue.push(Step { bucket, from: at, slot, moves: step.moves + 1 });
                    if let Some(free) = self.buckets[bucket].free_slot() {
                        end = Some((queue.len() - 1, free));
                        break 'search;
                    }
                    if queue.len() >= QUEUE_LEN {
                        break 'search;
                    }
                }
            }
            at += 1;
        }
        // From the free slot back, so that each pair moves into the slot that the one after it has left.
        let freed = end.map(|(mut at, mut free)| {
            while queue[at].moves > 0 {
                let (into, from, slot) = (queue[at].bucket, queue[queue[at].from].bucket, queue[at].slot);
                let tag = std::mem::take(&mut self.buckets[from].tags[slot]);
                let pair = std::mem::take(&mut self.buckets[from].pairs[slot]);
                self.buckets[into].tags[free] = tag;
                self.buckets[into].pairs[free] = pair;
                (at, free) = (queue[at].from, slot);
            }
            (queue[at].bucket, free)
        });
        self.queue = queue;
        freed
    }

    /// Inserts a pair whose key is not there.
    fn add(&mut self, hash_of: &impl Fn(&A) -> u64, hash: u64, mut pair: (A, B)) {
        while let Err(back) = self.try_add(hash, pair) {
            pair = back;
            self.grow(hash_of);
        }
    }

    /// Makes the table twice as large. libcuckoo gives up on keys that do not spread as well.
    fn grow(&mut self, hash_of: &impl Fn(&A) -> u64) {
        let buckets = self.buckets.len();
        assert!(self.len * LOAD_MIN >= buckets * SLOTS, "the hash does not spread these keys over the table");
        let mut larger = Map::<A, B, H>::new(buckets * 2);
        for bucket in std::mem::take(&mut self.buckets) {
            for (tag, pair) in bucket.tags.into_iter().zip(bucket.pairs) {
                if tag != 0 {
                    larger.add(hash_of, hash_of(&pair.0), pair);
                }
            }
        }
        *self = larger;
    }
}

/// Whether a bucket is one of those through which a step was reached.
fn on_the_way(queue: &[Step], mut at: usize, bucket: usize) -> bool {
    loop {
        if queue[at].bucket == bucket {
            return true;
        }
        if queue[at].moves == 0 {
            return false;
        }
        at = queue[at].from;
    }
}

impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>, H: HashFunction> Subject<K> for Map<A, B, H> {
    const ORDERED: bool = false;
    super::by_itself!(Map::new(BUCKETS_MIN));

    fn reserve(&mut self, keys: usize) -> bool {
        // It takes some 95 % of its slots; an eighth is left, so that it does not grow after all.
        let slots = keys + keys.div_ceil(7);
        *self = Map::new(slots.div_ceil(SLOTS).next_power_of_two().max(BUCKETS_MIN));
        true
    }
}

impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>, H: HashFunction> Reader<K> for &Map<A, B, H> {
    #[inline]
    fn get<R>(&self, key: K::Key<'_>, see: impl FnOnce(K::Value<'_>) -> R) -> Option<R> {
        let query = K::query(&key);
        let (at, slot) = self.find(K::hash::<H>(query), |stored| stored.borrow() == query)?;
        Some(see(self.buckets[at].pairs[slot].1.show()))
    }

    #[inline]
    fn iterate(&self, mut see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
        for bucket in &self.buckets {
            for (tag, (key, value)) in bucket.tags.iter().zip(&bucket.pairs) {
                if *tag != 0 {
                    see(key.found(), value.show());
                }
            }
        }
    }
}

impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>, H: HashFunction> Writer<K> for &mut Map<A, B, H> {
    #[inline]
    fn insert(&mut self, key: K::Key<'_>, value: K::Value<'_>) {
        let query = K::query(&key);
        let hash = K::hash::<H>(query);
        match self.find(hash, |stored| stored.borrow() == query) {
            Some((at, slot)) => self.buckets[at].pairs[slot].1 = B::own(value),
            None => self.add(&|stored: &A| K::hash::<H>(stored.borrow()), hash, (A::own(key), B::own(value))),
        }
    }

    #[inline]
    fn remove(&mut self, key: K::Key<'_>) -> bool {
        let query = K::query(&key);
        let Some((at, slot)) = self.find(K::hash::<H>(query), |stored| stored.borrow() == query) else {
            return false;
        };
        self.buckets[at].tags[slot] = 0;
        self.buckets[at].pairs[slot] = Default::default();
        self.len -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::U64;
    use crate::hashes::Rapid;

    type Table = Map<u64, u64, Rapid>;

    #[test]
    fn the_second_bucket_leads_back_to_the_first() {
        for mask in [0xf, 0xfff, 0xfff_ffff] {
            for tag in 1..=255 {
                for bucket in [0, 7, 12_345 & mask] {
                    assert_eq!(other(other(bucket, tag, mask), tag, mask), bucket);
                }
            }
        }
    }

    #[test]
    fn a_table_is_full_before_it_grows() {
        let mut table = Table::new(1024);
        let mut loads = Vec::new();
        for key in 0..50_000u64 {
            let buckets = table.buckets.len();
            let load = table.len as f64 / (buckets * SLOTS) as f64;
            Writer::<U64>::insert(&mut &mut table, key, !key);
            if table.buckets.len() > buckets {
                loads.push(load);
            }
        }
        assert!(loads.len() >= 3 && loads.iter().all(|load| *load > 0.85), "{loads:?}");
        assert_eq!(table.len, 50_000);
        for key in 0..50_000 {
            assert_eq!(Reader::<U64>::get(&&table, key, |value| value), Some(!key));
            assert_eq!(Reader::<U64>::get(&&table, key + 50_000, |value| value), None);
        }
    }

    /// All keys have one hash.
    #[derive(Clone, Copy, Default)]
    struct Constant;

    impl HashFunction for Constant {
        fn of_bytes(_: &[u8]) -> u64 {
            7
        }
    }

    #[test]
    #[should_panic(expected = "does not spread")]
    fn keys_that_do_not_spread_end_the_table_instead_of_the_memory() {
        let mut table = Map::<u64, u64, Constant>::new(BUCKETS_MIN);
        (0..9).for_each(|key| Writer::<U64>::insert(&mut &mut table, key, key));
    }
}

//! A hash table with 14-slot chunks, written here after the published description of Facebook's F14 (Bronson and Shi,
//! "Open-sourcing F14 for faster, more memory-efficient hash tables", 2019). Nothing of folly's source is in it.
//!
//! A chunk has 16 bytes of head before its 14 pairs: a tag for each slot (seven bits of the hash with the top bit set;
//! 0 is an empty slot) and, in the last byte, how many pairs would have liked to lie in this chunk and found it full.
//! All tags are compared at once. A key that is in no slot whose tag fits is looked for further on only if that count
//! is not 0, so that misses end in the first chunk nearly always, and a removal leaves no tombstone. The steps from
//! chunk to chunk depend on the tag. The table doubles at 12 pairs a chunk.
//!
//! It is the variant that keeps pairs in the chunks (F14ValueMap). Tags are compared as two numbers of eight bytes, on
//! every processor, or by a vector instruction. Empty slots hold default values, which a growing
//! table writes.

use super::{Reader, Subject, Writer};
use crate::data::{KeyForm, Kind, ValueForm};
use crate::hashes::HashFunction;
use std::array;
use std::marker::PhantomData;

/// Slots of a chunk.
const SLOTS: usize = 14;
/// Pairs of a chunk, in the mean, at which the table grows.
const SLOTS_FULL: usize = 12;
/// Offset in the head of the overflow count: how many keys continued to another chunk.
const OVERFLOW: usize = 15;
/// An overflow count that reached this value never decreases.
const OVERFLOW_MAX: u8 = u8::MAX;

/// The table, in the form that the kind's users would take.
pub(crate) type Map<A, B, H> = Table<A, B, H, Numbers>;

/// The table whose tags are compared by a vector instruction.
#[cfg(target_arch = "x86_64")]
pub(crate) mod vectors {
    pub(crate) type Map<A, B, H> = super::Table<A, B, H, super::Sse2>;
}

/// The table, with a way to compare tags.
pub(crate) struct Table<A, B, H, T> {
    chunks: Vec<Chunk<A, B>>,
    len: usize,
    with: PhantomData<(H, T)>,
}

/// How the tags of a chunk are compared.
pub(crate) trait Tags: Send + Sync + 'static {
    /// The slots of a head that hold this byte, as bits.
    fn slots_with(head: &[u8; 16], byte: u8) -> u32;
}

/// Eight bytes are compared as one number.
pub(crate) struct Numbers;

/// Sixteen bytes are compared by one instruction, which every processor of this architecture has.
#[cfg(target_arch = "x86_64")]
pub(crate) struct Sse2;

#[cfg(target_arch = "x86_64")]
impl Tags for Sse2 {
    #[inline]
    fn slots_with(head: &[u8; 16], byte: u8) -> u32 {
        use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8};
        let whole = u128::from_le_bytes(*head);
        #[expect(unsafe_code, reason = "vector instructions are unsafe functions")]
        // SAFETY: every processor of the architecture has SSE2, and these instructions read no memory.
        let equal = unsafe {
            let tags = _mm_set_epi64x((whole >> 64) as i64, whole as i64);
            _mm_movemask_epi8(_mm_cmpeq_epi8(tags, _mm_set1_epi8(byte as i8)))
        };
        equal as u32 & ((1 << SLOTS) - 1)
    }
}

#[repr(align(16))]
struct Chunk<A, B> {
    head: [u8; 16],
    pairs: [(A, B); SLOTS],
}

/// The tag of a hash, from bits that do not choose the chunk.
#[inline]
fn tag(hash: u64) -> u8 {
    (hash >> 57) as u8 | 0x80
}

impl Tags for Numbers {
    #[inline]
    fn slots_with(head: &[u8; 16], byte: u8) -> u32 {
        const LOW: u64 = 0x0101_0101_0101_0101;
        const SEVEN: u64 = 0x7f7f_7f7f_7f7f_7f7f;
        let of = |half: u64| {
            let differ = half ^ (LOW * u64::from(byte));
            // The top bit of each byte that is 0, then these bits side by side.
            let equal = !(((differ & SEVEN) + SEVEN) | differ | SEVEN);
            ((equal >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32
        };
        let whole = u128::from_le_bytes(*head);
        (of(whole as u64) | of((whole >> 64) as u64) << 8) & ((1 << SLOTS) - 1)
    }
}

impl<A: Default, B: Default> Chunk<A, B> {
    fn new() -> Self {
        Chunk { head: [0; 16], pairs: array::from_fn(|_| Default::default()) }
    }

    #[inline]
    fn free_slot<T: Tags>(&self) -> Option<usize> {
        let free = T::slots_with(&self.head, 0);
        (free != 0).then_some(free.trailing_zeros() as usize)
    }
}

impl<A: Default, B: Default, H: HashFunction, T: Tags> Table<A, B, H, T> {
    fn new(chunks: usize) -> Self {
        let chunks = std::iter::repeat_with(Chunk::new).take(chunks).collect();
        Table { chunks, len: 0, with: PhantomData }
    }

    /// The chunks of a hash, in the order in which they are tried.
    #[inline]
    fn tried(&self, hash: u64) -> impl Iterator<Item = usize> + use<A, B, H, T> {
        let (mask, step) = (self.chunks.len() - 1, 2 * usize::from(tag(hash)) + 1);
        // The step is odd and the number of chunks a power of two, so each is tried once.
        (0..=mask).scan(hash as usize, move |at, _| {
            let chunk = *at & mask;
            *at = at.wrapping_add(step);
            Some(chunk)
        })
    }

    /// Where the pair with this hash is whose key `is` the one: its chunk and slot.
    #[inline]
    fn find(&self, hash: u64, is: impl Fn(&A) -> bool) -> Option<(usize, usize)> {
        for at in self.tried(hash) {
            let chunk = &self.chunks[at];
            let mut slots = T::slots_with(&chunk.head, tag(hash));
            while slots != 0 {
                let slot = slots.trailing_zeros() as usize;
                if is(&chunk.pairs[slot].0) {
                    return Some((at, slot));
                }
                slots &= slots - 1;
            }
            if chunk.head[OVERFLOW] == 0 {
                return None;
            }
        }
        None
    }

    /// Inserts a pair whose key is not there, for which there is room.
    fn add(&mut self, hash: u64, pair: (A, B)) {
        for at in self.tried(hash) {
            let chunk = &mut self.chunks[at];
            if let Some(slot) = chunk.free_slot::<T>() {
                chunk.head[slot] = tag(hash);
                chunk.pairs[slot] = pair;
                self.len += 1;
                return;
            }
            chunk.head[OVERFLOW] = chunk.head[OVERFLOW].saturating_add(1);
        }
        unreachable!("a table that is not full has a free slot, and every chunk is tried");
    }

    /// Takes the pair out of a slot, and the traces that its insertion left on the way there.
    fn take(&mut self, hash: u64, (found, slot): (usize, usize)) {
        for at in self.tried(hash).take_while(|at| *at != found) {
            let overflow = &mut self.chunks[at].head[OVERFLOW];
            if *overflow != OVERFLOW_MAX {
                *overflow -= 1;
            }
        }
        self.chunks[found].head[slot] = 0;
        self.chunks[found].pairs[slot] = Default::default();
        self.len -= 1;
    }

    /// Makes the table twice as large if it is full.
    fn make_room(&mut self, hash_of: impl Fn(&A) -> u64) {
        if self.len < self.chunks.len() * SLOTS_FULL {
            return;
        }
        let mut larger = Self::new(self.chunks.len() * 2);
        for chunk in std::mem::take(&mut self.chunks) {
            for (tag, pair) in chunk.head.into_iter().zip(chunk.pairs) {
                if tag != 0 {
                    larger.add(hash_of(&pair.0), pair);
                }
            }
        }
        *self = larger;
    }
}

impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>, H: HashFunction, T: Tags> Subject<K> for Table<A, B, H, T> {
    const ORDERED: bool = false;
    const RETAINS: bool = true;
    super::by_itself!(Table::new(1));

    fn retain(&mut self, mut keep: impl FnMut(K::Found<'_>, K::Value<'_>) -> bool) {
        for at in 0..self.chunks.len() {
            for slot in 0..SLOTS {
                let chunk = &self.chunks[at];
                let (key, value) = &chunk.pairs[slot];
                if chunk.head[slot] != 0 && !keep(key.found(), value.show()) {
                    self.take(K::hash::<H>(key.borrow()), (at, slot));
                }
            }
        }
    }

    fn reserve(&mut self, keys: usize) -> bool {
        *self = Table::new(keys.div_ceil(SLOTS_FULL).next_power_of_two());
        true
    }
}

impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>, H: HashFunction, T: Tags> Reader<K> for &Table<A, B, H, T> {
    #[inline]
    fn get<R>(&self, key: K::Key<'_>, see: impl FnOnce(K::Value<'_>) -> R) -> Option<R> {
        let query = K::query(&key);
        let (at, slot) = self.find(K::hash::<H>(query), |stored| stored.borrow() == query)?;
        Some(see(self.chunks[at].pairs[slot].1.show()))
    }

    #[inline]
    fn iterate(&self, mut see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
        for chunk in &self.chunks {
            for (tag, (key, value)) in chunk.head.iter().zip(&chunk.pairs) {
                if *tag != 0 {
                    see(key.found(), value.show());
                }
            }
        }
    }
}

impl<K: Kind, A: KeyForm<K>, B: ValueForm<K>, H: HashFunction, T: Tags> Writer<K> for &mut Table<A, B, H, T> {
    #[inline]
    fn insert(&mut self, key: K::Key<'_>, value: K::Value<'_>) {
        let query = K::query(&key);
        let hash = K::hash::<H>(query);
        match self.find(hash, |stored| stored.borrow() == query) {
            Some((at, slot)) => self.chunks[at].pairs[slot].1 = B::own(value),
            None => {
                self.make_room(|stored| K::hash::<H>(stored.borrow()));
                self.add(hash, (A::own(key), B::own(value)));
            }
        }
    }

    #[inline]
    fn remove(&mut self, key: K::Key<'_>) -> bool {
        let query = K::query(&key);
        let hash = K::hash::<H>(query);
        let found = self.find(hash, |stored| stored.borrow() == query);
        found.map(|found| self.take(hash, found)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{U64, mix};
    use crate::hashes::Rapid;
    use std::collections::BTreeMap;

    #[test]
    fn tags_are_found_where_they_are() {
        for at in 0..20_000u64 {
            let random = u128::from(mix(at)) << 64 | u128::from(mix(at ^ 1 << 40));
            // Few different bytes, so that many are equal.
            let head = (random & (u128::MAX / 255 * (mix(at ^ 2 << 40) | 0x80) as u8 as u128)).to_le_bytes();
            for byte in [0, head[0], head[13], head[7] ^ 1, 0xff] {
                let expected: u32 = (0..SLOTS).filter(|slot| head[*slot] == byte).map(|slot| 1 << slot).sum();
                assert_eq!(Numbers::slots_with(&head, byte), expected, "{head:?}, {byte}");
                #[cfg(target_arch = "x86_64")]
                assert_eq!(Sse2::slots_with(&head, byte), expected, "{head:?}, {byte}");
            }
        }
    }

    fn check<H: HashFunction>(ops: u64, keys: u64) -> Map<u64, u64, H> {
        let (mut table, mut model) = (Map::<u64, u64, H>::new(1), BTreeMap::new());
        for op in 0..ops {
            let key = mix(op) % keys;
            if mix(op ^ 1 << 50).is_multiple_of(3) {
                assert_eq!(Writer::<U64>::remove(&mut &mut table, key), model.remove(&key).is_some());
            } else {
                Writer::<U64>::insert(&mut &mut table, key, op);
                model.insert(key, op);
            }
            assert_eq!(table.len, model.len());
        }
        for key in 0..keys {
            assert_eq!(Reader::<U64>::get(&&table, key, |value| value), model.get(&key).copied(), "{key}");
        }
        table
    }

    #[test]
    fn removals_leave_no_traces() {
        let mut table = check::<Rapid>(30_000, 3000);
        for key in 0..3000 {
            Writer::<U64>::remove(&mut &mut table, key);
        }
        assert_eq!(table.len, 0);
        let traces = table.chunks.iter().filter(|chunk| chunk.head.iter().any(|byte| *byte != 0));
        // A count that was at its most stays; with a hash that spreads none gets there.
        assert_eq!(traces.count(), 0);
    }

    /// Every key begins in the same chunk, with one of two tags.
    #[derive(Clone, Copy, Default)]
    struct Crowded;

    impl HashFunction for Crowded {
        fn of_bytes(bytes: &[u8]) -> u64 {
            u64::from(bytes[0] & 1) << 57
        }
    }

    #[test]
    fn keys_that_do_not_spread_are_found_all_the_same() {
        let table = check::<Crowded>(3000, 600);
        assert!(table.chunks.iter().any(|chunk| chunk.head[OVERFLOW] == OVERFLOW_MAX));
    }
}

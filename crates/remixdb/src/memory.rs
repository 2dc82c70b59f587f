//! [`Memory`]: one limit for the memory of a store. What its memtables and the indexes of its tables take, the cache
//! leaves.
//!
//! All memtables count that somebody still has: a snapshot keeps those that were there when it was taken. Their bytes
//! are limited by [`write`](crate::write), and the cache always keeps a small share. Of what the memtables leave, the
//! indexes may take a half. If they take more, the orders over the tables of some partitions stay in their files
//! ([`partition`](crate::partition)). What cannot be left in files, 1 to 4 bytes a key, has no limit.

use crate::gauge::Gauge;
use crate::memtable::Memtable;
use forrest_base::lock;
use forrest_index::Spare;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

/// The cache keeps at least this share of the limit.
const CACHE_LEAST: usize = 16;
/// What memtables leave counts as at least this share.
const REST_LEAST: usize = 4;
/// The memory of a memtable waits for the next one if it is at most this many times what a full one has. One with a
/// large batch takes more.
const SPARE_MOST: u64 = 2;
/// The size of the cache is changed if it differs by more than this share of the limit.
const STEP: usize = 64;

/// A cache that had to leave memory to others gets it back after this long: a flush takes that again and again.
const GROW_AFTER: Duration = Duration::from_secs(10);

/// See the head of the file.
pub(crate) struct Memory {
    /// Bytes; `usize::MAX` if there is no limit.
    most: AtomicUsize,
    memtables: Mutex<Vec<Weak<Memtable>>>,
    /// Has the memory of one that is gone, for the next one.
    spare: Spare,
    cache: Mutex<Cached>,
    /// What the indexes take, and may take.
    indexes: Gauge,
}

/// Sizes of the cache in bytes: the largest, and the one that it was given last.
struct Cached {
    most: usize,
    now: usize,
    /// When others last needed what it does not have.
    tight: Option<Instant>,
}

impl Memory {
    /// With this limit, for a cache and memtables of these sizes, and indexes that count here.
    pub(crate) fn new(
        most: Option<usize>,
        indexes: &Gauge,
        cache_bytes: usize,
        memtable_bytes: usize,
    ) -> Memory {
        let cache = Mutex::new(Cached { most: cache_bytes, now: cache_bytes, tight: None });
        let indexes = indexes.clone();
        let most = AtomicUsize::new(most.unwrap_or(usize::MAX));
        let memory = Memory { most, memtables: Mutex::default(), spare: Spare::new(0), cache, indexes };
        memory.limit_spare(memtable_bytes);
        memory.indexes.set_most(usize::MAX);
        memory.limit_indexes(memtable_bytes.saturating_mul(2));
        memory
    }

    pub(crate) fn is_limited(&self) -> bool {
        self.most() != usize::MAX
    }

    /// Bytes; `usize::MAX` if there is no limit.
    pub(crate) fn most(&self) -> usize {
        // ORDERING: it stands for itself.
        self.most.load(Relaxed)
    }

    /// The limit from now on.
    pub(crate) fn set_most(&self, bytes: usize) {
        self.most.store(bytes, Relaxed);
    }

    /// From now on these memtables count, as long as somebody has them.
    pub(crate) fn add<'m>(&self, memtables: impl Iterator<Item = &'m Arc<Memtable>>) {
        let mut known = lock(&self.memtables);
        known.retain(|memtable| memtable.strong_count() > 0);
        for memtable in memtables {
            if !known.iter().any(|known| std::ptr::eq(known.as_ptr(), Arc::as_ptr(memtable))) {
                known.push(Arc::downgrade(memtable));
            }
        }
    }

    /// Where memtables leave their memory, and find it.
    pub(crate) fn spare(&self) -> &Spare {
        &self.spare
    }

    /// Limits the memory that waits for the next memtable, when a full one has this many bytes.
    pub(crate) fn limit_spare(&self, memtable_bytes: usize) {
        self.spare.set_most((memtable_bytes as u64).saturating_mul(SPARE_MOST));
    }

    /// Bytes of memory of all memtables that somebody has.
    pub(crate) fn memtable_bytes(&self) -> usize {
        let known = lock(&self.memtables).clone();
        known.iter().filter_map(Weak::upgrade).map(|memtable| memtable.memory_bytes()).sum()
    }

    /// Limits the indexes when all memtables take `memtables` bytes.
    fn limit_indexes(&self, memtables: usize) {
        if self.is_limited() {
            let most = self.most();
            self.indexes.set_most(most.saturating_sub(memtables).max(most / REST_LEAST) / 2);
        }
    }

    /// Whether the indexes of a version may take as many bytes. What only snapshots and iterators have is not less
    /// when others of its indexes stay in files, so it does not count.
    pub(crate) fn may_indexes_take(&self, bytes: usize) -> bool {
        bytes <= self.indexes.most()
    }

    /// Whether the indexes may take `bytes` more.
    pub(crate) fn has_index_room(&self, bytes: usize) -> bool {
        self.indexes.has_room(bytes)
    }

    /// The largest size of the cache from now on.
    pub(crate) fn set_cache_most(&self, bytes: usize) {
        *lock(&self.cache) = Cached { most: bytes, now: bytes, tight: None };
    }

    /// Calls `resize` with what the cache is to take, if that changes, when all memtables take `memtables` bytes. It
    /// gives way at once, and gets memory back when others have not needed that for a while. One call at a time
    /// resizes it, so that the last one counts.
    pub(crate) fn balance(&self, memtables: usize, at: Instant, resize: impl FnOnce(usize)) {
        if !self.is_limited() {
            return;
        }
        self.limit_indexes(memtables);
        let (most, others) = (self.most(), memtables.saturating_add(self.indexes.bytes()));
        let mut cache = lock(&self.cache);
        let bytes = most.saturating_sub(others).max(most / CACHE_LEAST).min(cache.most);
        if bytes < cache.now.saturating_add(most / STEP) && bytes < cache.most {
            cache.tight = Some(at);
        }
        let is_far = bytes.abs_diff(cache.now) > most / STEP || (bytes == cache.most && bytes != cache.now);
        let may = bytes < cache.now || cache.tight.is_none_or(|tight| at.duration_since(tight) >= GROW_AFTER);
        if is_far && may {
            cache.now = bytes;
            resize(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forrest_engine::Options;

    /// The size that the cache gets, if it gets another one.
    fn resized(memory: &Memory, memtables: usize, at: Instant) -> Option<usize> {
        let mut size = None;
        memory.balance(memtables, at, |bytes| size = Some(bytes));
        size
    }

    #[test]
    fn the_cache_takes_what_others_leave() {
        let memory = Memory::new(Some(1600), &Gauge::default(), 1000, 0);
        // Long after one another.
        let mut now = Instant::now();
        let mut bytes = |memory: &Memory, others| {
            now += GROW_AFTER;
            resized(memory, others, now)
        };
        assert_eq!(bytes(&memory, 600), None, "it has all that it may");
        assert_eq!(bytes(&memory, 800), Some(800));
        assert_eq!(bytes(&memory, 810), None, "that is hardly less");
        assert_eq!(bytes(&memory, 5000), Some(100), "its least share");
        assert_eq!(bytes(&memory, 0), Some(1000));
        memory.set_cache_most(200);
        assert_eq!((bytes(&memory, 0), bytes(&memory, 1500)), (None, Some(100)));
        memory.set_most(800);
        assert_eq!((bytes(&memory, 1500), bytes(&memory, 0)), (Some(50), Some(200)));
        let unlimited = Memory::new(None, &Gauge::default(), 1000, 0);
        assert_eq!((bytes(&unlimited, 5000), unlimited.is_limited()), (None, false));
        unlimited.set_most(1600);
        assert_eq!((bytes(&unlimited, 800), unlimited.is_limited()), (Some(800), true));
    }

    #[test]
    fn the_cache_gives_way_at_once_and_grows_when_others_need_less_for_a_while() {
        let (gauge, start) = (Gauge::default(), Instant::now());
        let memory = Memory::new(Some(1600), &gauge, 1000, 0);
        let at = |seconds| start + Duration::from_secs(seconds);
        let flush = gauge.take(900);
        assert_eq!(resized(&memory, 0, at(0)), Some(700));
        flush.set(0);
        assert_eq!(resized(&memory, 0, at(5)), None, "the next flush takes the same");
        flush.set(900);
        assert_eq!(resized(&memory, 0, at(8)), None, "it has left that");
        flush.set(0);
        assert_eq!(resized(&memory, 0, at(17)), None);
        assert_eq!(resized(&memory, 0, at(18)), Some(1000));
    }

    #[test]
    fn indexes_take_half_of_what_memtables_leave() {
        let gauge = Gauge::default();
        let memory = Memory::new(Some(1600), &gauge, 1000, 150);
        assert!(memory.has_index_room(650) && !memory.has_index_room(651));
        let share = gauge.take(400);
        assert!(memory.has_index_room(250) && !memory.has_index_room(251));
        share.set(10);
        let _ = resized(&memory, 1500, Instant::now());
        assert!(memory.has_index_room(190) && !memory.has_index_room(191), "a quarter is left at least");
        assert!(Memory::new(None, &gauge, 1000, 0).has_index_room(usize::MAX - 10));
    }

    #[test]
    fn a_memtable_counts_as_long_as_somebody_has_it() {
        let memory = Memory::new(Some(1), &Gauge::default(), 1, 0);
        let memtable =
            || Arc::new(Memtable::new(&Options::default(), memory.spare(), 1, 0).expect("there is memory"));
        let (first, second) = (memtable(), memtable());
        memory.add([&first].into_iter());
        let one = memory.memtable_bytes();
        memory.add([&first, &second].into_iter());
        assert_eq!(memory.memtable_bytes(), 2 * one);
        drop(first);
        assert_eq!(memory.memtable_bytes(), one);
        drop(second);
        assert_eq!(memory.memtable_bytes(), 0);
    }
}

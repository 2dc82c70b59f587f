//! [`Cache`]: pages that were read, kept for all files of a store within one number of bytes.
//!
//! - Every open file has a slot for each of its pages ([`Pages`]). A page that is kept is found by its number: no hash,
//!   no lock that another page shares. A slot is a tiny lock, taken for the time of copying a pointer.
//! - A page is verified when it is read from the disk, and not again.
//! - Reading happens outside of any lock. Two threads that miss the same page at once both read it; one copy is kept.
//! - The bound holds exactly, for what the cache itself keeps; a page that a reader still holds lives on uncounted. A
//!   bound below one page keeps none: then every page is read anew.
//! - Which page goes is decided by a clock: one that was not asked for since the hand passed it last. A page comes in
//!   as not asked for, so that a scan's pages, which are read once, go before those that are read again.
//!
//! What is not here: what pages contain, and reading ahead. Callers see [`PageRef`] only, so that frames may come to
//! lie on huge pages, found by one load, without any of them changing.

use crate::error::Result;
use crate::remixdb::page;
use std::cell::Cell;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The hand of the clock passes at most so many pages for one that comes in. So a miss never waits for a walk over the
/// whole cache; where more than that many in a row were asked for, one of them goes.
const PASSED_MAX: usize = 64;
/// Hits are counted in so many places, each thread in one.
const STRIPES: usize = 64;

/// A page in memory.
#[repr(C)]
struct Frame {
    /// Whether the page was asked for since the hand passed it.
    used: AtomicBool,
    _aligns: [u64; 0],
    bytes: [u8; page::BYTES],
}

/// A page that stays as it is for as long as this is held. It is the payload, without the checksum.
#[derive(Clone)]
pub(crate) struct PageRef(Arc<Frame>);

impl Deref for PageRef {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        &self.0.bytes[..page::PAYLOAD]
    }
}

type Slot = Mutex<Option<PageRef>>;

/// Nothing that could panic runs under these locks, and what they guard is whole at every step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where a kept page is.
struct Seat {
    slots: Arc<[Slot]>,
    page: u32,
}

impl Seat {
    fn slot(&self) -> &Slot {
        &self.slots[self.page as usize]
    }
}

/// All kept pages, each once. INVARIANT, while the lock around it is held: the slots that are not empty are those of
/// the seats.
#[derive(Default)]
struct Clock {
    seats: Vec<Seat>,
    hand: usize,
}

impl Clock {
    /// Gives the seat of a page that goes to one that comes in, and returns the page that goes.
    fn replace(&mut self, seat: Seat) -> Option<PageRef> {
        let mut passed = 0;
        loop {
            let at = if self.hand < self.seats.len() { self.hand } else { 0 };
            self.hand = at + 1;
            let mut slot = lock(self.seats[at].slot());
            let used = slot.as_ref().is_some_and(|page| page.0.used.swap(false, Relaxed));
            if !used || passed >= PASSED_MAX {
                let gone = slot.take();
                drop(slot);
                self.seats[at] = seat;
                return gone;
            }
            passed += 1;
        }
    }
}

/// A counter on a line of its own, so that counting threads do not meet.
#[derive(Default)]
#[repr(align(128))]
struct Stripe(AtomicU64);

/// The stripe of the calling thread.
fn stripe() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static MINE: Cell<usize> = const { Cell::new(usize::MAX) });
    MINE.with(|mine| {
        if mine.get() == usize::MAX {
            mine.set(THREADS.fetch_add(1, Relaxed) % STRIPES);
        }
        mine.get()
    })
}

/// What a cache has done and has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stats {
    /// Pages that were found. With more threads than 64 a few may be missing.
    pub(crate) hits: u64,
    /// Pages that had to be read.
    pub(crate) misses: u64,
    /// Pages that are kept.
    pub(crate) pages: u64,
    /// Bytes of memory that they take.
    pub(crate) bytes: u64,
}

/// The pages that are kept.
pub(crate) struct Cache {
    /// So many pages may be kept.
    pages_max: usize,
    clock: Mutex<Clock>,
    hits: Box<[Stripe]>,
    misses: AtomicU64,
}

/// Memory that a kept page takes: the frame with its two counts, and its seat.
const PAGE_COST: usize = size_of::<Frame>() + 2 * size_of::<usize>() + size_of::<Seat>();

impl Cache {
    /// A cache that takes at most so many bytes for pages.
    pub(crate) fn new(bytes: usize) -> Cache {
        Cache {
            pages_max: bytes / PAGE_COST,
            clock: Mutex::default(),
            hits: (0..STRIPES).map(|_| Stripe::default()).collect(),
            misses: AtomicU64::new(0),
        }
    }

    pub(crate) fn stats(&self) -> Stats {
        let pages = lock(&self.clock).seats.len() as u64;
        Stats {
            hits: self.hits.iter().map(|stripe| stripe.0.load(Relaxed)).sum(),
            misses: self.misses.load(Relaxed),
            pages,
            bytes: pages * PAGE_COST as u64,
        }
    }

    /// A load and a store, which no other thread comes between while there is a stripe for each; it is only a count.
    #[inline]
    fn count_hit(&self) {
        let count = &self.hits[stripe()].0;
        count.store(count.load(Relaxed) + 1, Relaxed);
    }

    /// Keeps a page that was read, unless another thread was quicker; the page that is kept.
    fn keep(&self, slots: &Arc<[Slot]>, page: u32, read: PageRef) -> PageRef {
        if self.pages_max == 0 {
            return read;
        }
        // Dropped when the lock is not held any more: giving memory back takes time.
        let _gone;
        let mut clock = lock(&self.clock);
        {
            let mut slot = lock(&slots[page as usize]);
            if let Some(kept) = &*slot {
                return kept.clone();
            }
            *slot = Some(read.clone());
        }
        let seat = Seat { slots: slots.clone(), page };
        if clock.seats.len() < self.pages_max {
            clock.seats.push(seat);
        } else {
            _gone = clock.replace(seat);
        }
        drop(clock);
        read
    }
}

/// The pages of one open file. Dropping it gives up those that are kept.
pub(crate) struct Pages {
    cache: Arc<Cache>,
    count: u32,
    /// Made when the first page is asked for: a store with many files opens without paying for all.
    slots: OnceLock<Arc<[Slot]>>,
}

impl Pages {
    /// For a file of so many pages.
    pub(crate) fn new(cache: &Arc<Cache>, count: u32) -> Pages {
        Pages { cache: cache.clone(), count, slots: OnceLock::new() }
    }

    /// A page. `read` fills in its 4,096 bytes, and has to verify them; it runs if the page is not kept.
    ///
    /// # Errors
    /// What `read` returns.
    #[inline]
    pub(crate) fn get(
        &self,
        page: u32,
        read: impl FnOnce(&mut [u8; page::BYTES]) -> Result<()>,
    ) -> Result<PageRef> {
        let slots = self.slots.get_or_init(|| (0..self.count).map(|_| Slot::default()).collect());
        if let Some(kept) = &*lock(&slots[page as usize]) {
            // Only the first to ask writes to the line.
            if !kept.0.used.load(Relaxed) {
                kept.0.used.store(true, Relaxed);
            }
            self.cache.count_hit();
            return Ok(kept.clone());
        }
        self.miss(slots, page, read)
    }

    #[cold]
    fn miss(
        &self,
        slots: &Arc<[Slot]>,
        page: u32,
        read: impl FnOnce(&mut [u8; page::BYTES]) -> Result<()>,
    ) -> Result<PageRef> {
        self.cache.misses.fetch_add(1, Relaxed);
        let mut frame =
            Arc::new(Frame { used: AtomicBool::new(false), _aligns: [], bytes: [0; page::BYTES] });
        read(&mut Arc::get_mut(&mut frame).expect("nobody else has it yet").bytes)?;
        Ok(self.cache.keep(slots, page, PageRef(frame)))
    }

    /// Memory that the slots take, in bytes.
    pub(crate) fn slot_bytes(&self) -> usize {
        self.slots.get().map_or(0, |slots| size_of_val::<[Slot]>(slots))
    }
}

/// Walks over all seats once, which is far less than writing what a file that is given up contained.
impl Drop for Pages {
    fn drop(&mut self) {
        let Some(slots) = self.slots.get() else { return };
        let mut gone = Vec::new();
        let mut clock = lock(&self.cache.clock);
        clock.seats.retain(|seat| {
            let stays = !Arc::ptr_eq(&seat.slots, slots);
            if !stays {
                gone.extend(lock(seat.slot()).take());
            }
            stays
        });
        drop(clock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    fn fill(byte: u8) -> impl FnOnce(&mut [u8; page::BYTES]) -> Result<()> {
        move |bytes| {
            bytes.fill(byte);
            Ok(())
        }
    }

    fn no_read(_: &mut [u8; page::BYTES]) -> Result<()> {
        panic!("the page is kept")
    }

    #[test]
    fn pages_are_kept_within_the_bound() {
        let cache = Arc::new(Cache::new(3 * PAGE_COST + 1));
        let pages = Pages::new(&cache, 10);
        for round in 0..2 {
            for page in 0..10 {
                let got = pages.get(page, fill(page as u8)).unwrap();
                assert_eq!(
                    (got.len(), got[0], got[page::PAYLOAD - 1]),
                    (page::PAYLOAD, page as u8, page as u8)
                );
                assert!(cache.stats().pages <= 3, "round {round}");
            }
        }
        let stats = cache.stats();
        assert_eq!((stats.misses, stats.pages, stats.bytes), (20, 3, 3 * PAGE_COST as u64));
        pages.get(9, no_read).unwrap();
        assert_eq!(cache.stats().hits, 1);
    }

    #[test]
    fn a_page_that_is_asked_for_outlives_a_scan() {
        let cache = Arc::new(Cache::new(8 * PAGE_COST));
        let pages = Pages::new(&cache, 1000);
        pages.get(0, fill(0)).unwrap();
        for page in 1..1000 {
            pages.get(0, no_read).unwrap();
            pages.get(page, fill(1)).unwrap();
        }
    }

    #[test]
    fn a_tiny_bound_keeps_nothing() {
        let cache = Arc::new(Cache::new(1));
        let pages = Pages::new(&cache, 1);
        for byte in 0..3 {
            assert_eq!(pages.get(0, fill(byte)).unwrap()[0], byte);
        }
        assert_eq!(cache.stats(), Stats { hits: 0, misses: 3, pages: 0, bytes: 0 });
    }

    #[test]
    fn what_failed_is_not_kept_and_what_is_held_stays() {
        let cache = Arc::new(Cache::new(PAGE_COST));
        let pages = Pages::new(&cache, 2);
        assert!(pages.get(0, |_| Err(Error::invalid("no"))).is_err());
        let held = pages.get(0, fill(7)).unwrap();
        pages.get(1, fill(8)).unwrap();
        assert_eq!(pages.get(0, fill(9)).unwrap()[0], 9);
        assert_eq!(held[5], 7);
    }

    #[test]
    fn a_closed_file_leaves_nothing() {
        let cache = Arc::new(Cache::new(100 * PAGE_COST));
        let (one, two) = (Pages::new(&cache, 50), Pages::new(&cache, 50));
        for page in 0..50 {
            one.get(page, fill(1)).unwrap();
            two.get(page, fill(2)).unwrap();
        }
        drop(one);
        assert_eq!(cache.stats().pages, 50);
        (0..50).for_each(|page| assert_eq!(two.get(page, no_read).unwrap()[0], 2));
        drop(two);
        assert_eq!(cache.stats().bytes, 0);
        drop(Pages::new(&cache, u32::MAX));
    }

    #[test]
    fn threads_see_whole_pages_and_the_bound_holds() {
        let cache = Arc::new(Cache::new(20 * PAGE_COST));
        let pages = Pages::new(&cache, 64);
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let (cache, pages) = (&cache, &pages);
                scope.spawn(move || {
                    let mut random = thread;
                    for _ in 0..5_000 {
                        random = random
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1_442_695_040_888_963_407);
                        let page = (random >> 33) as u32 % 64;
                        let got = pages.get(page, fill(page as u8)).unwrap();
                        assert!(got.iter().all(|&byte| byte == page as u8));
                        assert!(cache.stats().pages <= 20);
                    }
                });
            }
        });
        let stats = cache.stats();
        assert_eq!((stats.hits + stats.misses, stats.pages), (20_000, 20));
    }
}

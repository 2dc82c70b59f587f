//! [`Cache`]: pages that were read, kept for all files of a store within one number of bytes.
//!
//! - Pages lie in frames on huge pages ([`Frames`]). Every open file has a slot for each of its pages ([`Pages`]),
//!   which names the frame. A page that is kept is found by the slot, and pinned where it lies: no hash, no lock, no
//!   copy.
//! - A page is verified when it is read from the disk, and not again.
//! - Reading happens outside of any lock, into the frame. Two threads that miss the same page at once both read it; one
//!   copy is kept.
//! - The bound holds exactly for frames. A page that a reader holds keeps its frame. Where no frame is to be had, for
//!   all that were looked at are held, or for the bound is below one page, the page is read to the heap and not kept.
//! - Which page goes is decided by a clock: one that was not asked for since the hand passed it last. A page comes in
//!   as not asked for, so that a scan's pages, which are read once, go before those that are read again.
//!
//! Why a page that is found is the right one, though no lock is taken, is argued in `forrest_machine::frames`: slots
//! are set and cleared under the lock of the clock, and a frame is claimed before the slot that names it is cleared.
//!
//! What is not here: what pages contain, and reading ahead.

use crate::page;
use crate::stripe::Stripes;
use forrest_base::lock;
use forrest_engine::Result;
use forrest_engine::{Numa, Pages as PageSize};
use forrest_machine::frames::{Claimed, FRAME_BYTES, FRAMES_MAX, Frames, Pinned, Slot};
use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};

/// The hand of the clock passes at most so many pages for one that comes in. So a miss never waits for a walk over the
/// whole cache; where more than that many in a row were asked for, one of them goes.
const PASSED_MAX: usize = 64;
/// And so many in all, where those that should go are held.
const LOOKED_AT_MAX: usize = 2 * PASSED_MAX;
/// A file that goes frees so many of its pages without letting others come between.
const FORGOTTEN_MAX: usize = 512;

const _: () = assert!(FRAME_BYTES == page::BYTES);

/// A page that stays as it is for as long as this is held. It is the payload, without the checksum.
///
/// INVARIANT: two pointers and no enum. What is stored as two words and moved as one is waited for by all that follows,
/// and then a page that is not in the processor's caches costs three times as much.
#[derive(Clone)]
pub(crate) struct PageRef(Pinned);

impl Deref for PageRef {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        &self.0[..page::PAYLOAD]
    }
}

/// Whose page is in a frame.
struct Seat {
    slots: Arc<[Slot]>,
    page: u32,
}

impl Seat {
    fn slot(&self) -> &Slot {
        &self.slots[self.page as usize]
    }
}

/// What the clock has for a page that comes in.
enum Room<'f> {
    /// A frame, and what was the seat of a page that went for it.
    Claimed(Claimed<'f>, Option<Seat>),
    /// A frame that was never used, and that nobody else will claim. Having memory for it takes time.
    Fresh(u32),
    /// Nothing.
    None,
}

/// Which page is where. INVARIANT, while the lock around it is held: the slots that name a frame are those of the
/// seats, and each names the frame of its seat.
struct Clock {
    /// For each frame that was used so far.
    seats: Vec<Option<Seat>>,
    /// So many seats there may be.
    seats_max: usize,
    /// Seats that are taken.
    kept: usize,
    /// Frames without a page, of which none is being filled. (A frame may be without a page and not be here.)
    free: Vec<u32>,
    hand: usize,
}

impl Clock {
    fn new(seats_max: usize) -> Clock {
        let mut seats = Vec::new();
        // Addresses only, until they are used; without them it grows by and by.
        let _ = seats.try_reserve_exact(seats_max);
        Clock { seats, seats_max, kept: 0, free: Vec::new(), hand: 0 }
    }

    /// A frame for a page that comes in.
    fn claim<'f>(&mut self, frames: &'f Frames) -> Room<'f> {
        while let Some(frame) = self.free.pop() {
            // Where it is held by readers of a file that has gone, the hand finds it later.
            if let Some(claimed) = frames.claim(frame) {
                return Room::Claimed(claimed, None);
            }
        }
        if self.seats.len() < self.seats_max {
            self.seats.push(None);
            return Room::Fresh(self.seats.len() as u32 - 1);
        }
        for looked_at in 0..LOOKED_AT_MAX {
            let at = if self.hand < self.seats.len() { self.hand } else { 0 };
            self.hand = at + 1;
            let used = self.seats[at].as_ref().is_some_and(|seat| seat.slot().pass());
            if used && looked_at < PASSED_MAX {
                continue;
            }
            if let Some(claimed) = frames.claim(at as u32) {
                let gone = self.seats[at].take();
                if let Some(seat) = &gone {
                    seat.slot().clear();
                    self.kept -= 1;
                }
                return Room::Claimed(claimed, gone);
            }
        }
        Room::None
    }

    /// Puts a page that was read in its place.
    fn keep(&mut self, claimed: Claimed<'_>, seat: Seat) -> Pinned {
        let frame = claimed.frame();
        let pinned = claimed.publish();
        seat.slot().set(frame);
        self.seats[frame as usize] = Some(seat);
        self.kept += 1;
        pinned
    }

    /// Takes a page's frame from it, if it has one.
    fn forget(&mut self, slot: &Slot) -> Option<Seat> {
        let frame = slot.frame()?;
        slot.clear();
        self.kept -= 1;
        self.free.push(frame);
        self.seats[frame as usize].take()
    }

    /// Takes back a frame that nothing was kept in.
    fn give_up(&mut self, claimed: Claimed<'_>) {
        self.free.push(claimed.frame());
    }
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
    /// `None` where no page may be kept, or where the system has no addresses.
    frames: Option<Frames>,
    clock: Mutex<Clock>,
    hits: Stripes<AtomicU64>,
    misses: AtomicU64,
}

/// Memory that a kept page takes: the frame with its word, and its seat with a place among the free ones.
const PAGE_COST: usize = FRAME_BYTES + size_of::<u32>() + size_of::<Option<Seat>>() + size_of::<u32>();

/// Whoever asks for more than this is given no more than the machine has: addresses and tables have a price as well.
const UNCHECKED_BYTES: usize = 1 << 30;

/// A pool within so many bytes, or a smaller one where the system does not have so many addresses.
fn pool(bytes: usize, pages: PageSize, numa: Numa) -> Option<Frames> {
    let memory = || forrest_machine::memory::now().map_or(usize::MAX, |memory| memory.total_bytes as usize);
    let bytes = if bytes > UNCHECKED_BYTES { bytes.min(memory()) } else { bytes };
    let count = (bytes / PAGE_COST).min(FRAMES_MAX - 1);
    let counts = std::iter::successors(Some(count), |count| Some(count / 2));
    counts.take_while(|&count| count > 0).find_map(|count| Frames::new(count, pages, numa).ok())
}

impl Cache {
    /// A cache that takes at most so many bytes for pages, on memory of the kind that is asked for, as far as it is to
    /// be had.
    pub(crate) fn new(bytes: usize, pages: PageSize, numa: Numa) -> Cache {
        let frames = pool(bytes, pages, numa);
        Cache {
            clock: Mutex::new(Clock::new(frames.as_ref().map_or(0, Frames::count))),
            frames,
            hits: Stripes::new(AtomicU64::default),
            misses: AtomicU64::new(0),
        }
    }

    pub(crate) fn stats(&self) -> Stats {
        let pages = lock(&self.clock).kept as u64;
        Stats {
            hits: self.hits.iter().map(|hits| hits.load(Relaxed)).sum(),
            misses: self.misses.load(Relaxed),
            pages,
            bytes: pages * PAGE_COST as u64,
        }
    }

    /// A load and a store, which no other thread comes between while there is a stripe for each; it is only a count.
    #[inline]
    fn count_hit(&self) {
        let count = self.hits.mine();
        count.store(count.load(Relaxed) + 1, Relaxed);
    }

    /// A frame for a page that comes in; `None` if none is to be had.
    fn claim<'f>(&self, frames: &'f Frames) -> Option<Claimed<'f>> {
        // The lock is held for this statement only: neither while memory is taken nor while it is given back, as may be
        // what was behind a seat.
        let room = lock(&self.clock).claim(frames);
        match room {
            Room::Claimed(claimed, _gone) => Some(claimed),
            Room::Fresh(frame) => frames.claim(frame).or_else(|| {
                // There is no memory; from now on those that have some take turns.
                let mut clock = lock(&self.clock);
                clock.seats_max = clock.seats.len();
                None
            }),
            Room::None => None,
        }
    }

    /// Keeps a page that was read, unless another thread was quicker; the page that is kept.
    fn keep(&self, frames: &Frames, slots: &Arc<[Slot]>, page: u32, read: Claimed<'_>) -> Pinned {
        let seat = Seat { slots: slots.clone(), page };
        let mut clock = lock(&self.clock);
        let Some(frame) = seat.slot().frame() else { return clock.keep(read, seat) };
        match frames.pin(frame) {
            Some(kept) => {
                clock.give_up(read);
                kept
            }
            // It has more pins than can be counted.
            None => read.publish(),
        }
    }
}

/// A page that is not kept, in a pool of its own.
fn alone(read: impl FnOnce(&mut [u8; page::BYTES]) -> Result<()>) -> Result<PageRef> {
    let frames = Frames::new(1, PageSize::Plain, Numa::Local).expect("there is memory for a page");
    let mut claimed = frames.claim(0).expect("nobody else knows it");
    read(&mut claimed)?;
    Ok(PageRef(claimed.publish()))
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

    /// A page. `read` fills in its 4,096 bytes, and has to verify them; it runs if the page is not kept. What it finds
    /// in them is what some other page left.
    ///
    /// # Errors
    /// What `read` returns.
    #[inline]
    pub(crate) fn get(
        &self,
        page: u32,
        read: impl FnOnce(&mut [u8; page::BYTES]) -> Result<()>,
    ) -> Result<PageRef> {
        if let (Some(slots), Some(frames)) = (self.slots.get(), &self.cache.frames)
            && let Some(kept) = slots[page as usize].find(|frame| frames.pin(frame))
        {
            self.cache.count_hit();
            return Ok(PageRef(kept));
        }
        self.miss(page, read)
    }

    /// Asks for some bytes of a page, if it is kept: a hint for who will soon [get](Pages::get) it. False if it is not.
    #[inline]
    pub(crate) fn fetch(&self, page: u32, bytes: Range<usize>) -> bool {
        if let (Some(slots), Some(frames)) = (self.slots.get(), &self.cache.frames)
            && let Some(frame) = slots.get(page as usize).and_then(Slot::frame)
        {
            frames.fetch(frame, bytes);
            return true;
        }
        false
    }

    #[cold]
    fn miss(&self, page: u32, read: impl FnOnce(&mut [u8; page::BYTES]) -> Result<()>) -> Result<PageRef> {
        self.cache.misses.fetch_add(1, Relaxed);
        assert!(page < self.count, "page {page} of {}", self.count);
        let room = self.cache.frames.as_ref().and_then(|frames| Some((frames, self.cache.claim(frames)?)));
        let Some((frames, mut claimed)) = room else { return alone(read) };
        if let Err(error) = read(&mut claimed) {
            lock(&self.cache.clock).give_up(claimed);
            return Err(error);
        }
        let slots = self.slots.get_or_init(|| (0..self.count).map(|_| Slot::default()).collect());
        Ok(PageRef(self.cache.keep(frames, slots, page, claimed)))
    }

    /// Memory that the slots take, in bytes.
    pub(crate) fn slot_bytes(&self) -> usize {
        self.slots.get().map_or(0, |slots| size_of_val::<[Slot]>(slots))
    }
}

/// Looks at all of the file's slots once, and takes the lock for those of them that name a frame, some at a time.
impl Drop for Pages {
    fn drop(&mut self) {
        let Some(slots) = self.slots.get() else { return };
        // Nobody sets a slot any more, and some are cleared meanwhile.
        let named: Vec<&Slot> = slots.iter().filter(|slot| slot.frame().is_some()).collect();
        for some in named.chunks(FORGOTTEN_MAX) {
            // Dropped when the lock is not held any more.
            let mut gone = Vec::with_capacity(some.len());
            let mut clock = lock(&self.cache.clock);
            gone.extend(some.iter().filter_map(|slot| clock.forget(slot)));
            drop(clock);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forrest_engine::Error;

    fn cache(pages: usize) -> Arc<Cache> {
        Arc::new(Cache::new(pages * PAGE_COST + 1, PageSize::default(), Numa::default()))
    }

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
        let cache = cache(3);
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
        let cache = cache(8);
        let pages = Pages::new(&cache, 1000);
        pages.get(0, fill(0)).unwrap();
        for page in 1..1000 {
            pages.get(0, no_read).unwrap();
            pages.get(page, fill(1)).unwrap();
        }
    }

    #[test]
    fn a_tiny_bound_keeps_nothing() {
        let cache = cache(0);
        let pages = Pages::new(&cache, 1);
        for byte in 0..3 {
            assert_eq!(pages.get(0, fill(byte)).unwrap()[0], byte);
        }
        assert_eq!(cache.stats(), Stats { hits: 0, misses: 3, pages: 0, bytes: 0 });
    }

    #[test]
    fn what_failed_is_not_kept_and_what_is_held_stays() {
        let cache = cache(1);
        let pages = Pages::new(&cache, 2);
        assert!(pages.get(0, |_| Err(Error::invalid("no"))).is_err());
        assert_eq!(cache.stats().pages, 0);
        let held = pages.get(0, fill(7)).unwrap();
        assert_eq!(pages.get(1, fill(8)).unwrap()[5], 8);
        assert_eq!(pages.get(1, fill(9)).unwrap()[5], 9, "the only frame is held");
        let again = held.clone();
        drop(held);
        assert_eq!((pages.get(0, no_read).unwrap()[5], pages.get(1, fill(10)).unwrap()[5]), (7, 10));
        assert_eq!(again[5], 7);
        drop(again);
        pages.get(1, fill(11)).unwrap();
        assert_eq!((pages.get(1, no_read).unwrap()[5], pages.get(0, fill(12)).unwrap()[5]), (11, 12));
        assert_eq!(cache.stats().pages, 1);
    }

    #[test]
    fn a_read_that_panics_leaves_the_frame() {
        let cache = cache(1);
        let pages = Pages::new(&cache, 1);
        let read = || pages.get(0, |_| panic!("it cannot be read")).map(|_| ());
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)).is_err());
        pages.get(0, fill(1)).unwrap();
        pages.get(0, no_read).unwrap();
    }

    #[test]
    fn two_who_miss_at_once_keep_one_copy() {
        let cache = cache(3);
        let pages = Pages::new(&cache, 1);
        let outer = pages.get(0, |bytes| {
            assert_eq!(pages.get(0, fill(1)).unwrap()[0], 1);
            fill(2)(bytes)
        });
        assert_eq!((outer.unwrap()[0], cache.stats().pages), (1, 1));
        // The other frame is there for another page.
        let other = Pages::new(&cache, 2);
        (0..2).for_each(|page| assert_eq!(other.get(page, fill(3)).unwrap()[0], 3));
        assert_eq!((pages.get(0, no_read).unwrap()[0], cache.stats().pages), (1, 3));
    }

    #[test]
    fn what_is_held_outlives_its_file_and_the_cache() {
        let cache = cache(2);
        let pages = Pages::new(&cache, 2);
        let held = [0, 1].map(|page| pages.get(page, fill(page as u8)).unwrap());
        drop(pages);
        assert_eq!(cache.stats().pages, 0);
        let other = Pages::new(&cache, 1);
        assert_eq!(other.get(0, fill(9)).unwrap()[0], 9);
        let [first, second] = held;
        drop(first);
        assert_eq!(other.get(0, fill(8)).unwrap()[0], 8);
        assert_eq!((other.get(0, no_read).unwrap()[0], cache.stats().pages), (8, 1));
        drop((other, cache));
        assert!(second.iter().all(|&byte| byte == 1));
    }

    #[test]
    fn a_closed_file_leaves_nothing() {
        let cache = cache(100);
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

    mod limits {
        use super::*;

        #[test]
        fn no_bound_is_too_large_to_open() {
            for bytes in [1 << 40, usize::MAX] {
                let cache = Arc::new(Cache::new(bytes, PageSize::Plain, Numa::Local));
                let pages = Pages::new(&cache, 1);
                pages.get(0, fill(1)).unwrap();
                let count = cache.frames.as_ref().map_or(0, Frames::count);
                assert!(count.saturating_mul(PAGE_COST) <= bytes, "{count} frames");
            }
        }
    }

    #[test]
    fn threads_see_whole_pages_and_the_bound_holds() {
        let cache = cache(20);
        let pages = Pages::new(&cache, 64);
        let check = |page: u32, got: &PageRef| assert!(got.iter().all(|&byte| byte == page as u8));
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let (cache, pages) = (&cache, &pages);
                scope.spawn(move || {
                    let mut random = thread;
                    // Some are held for a while, and files come and go.
                    let mut held = [const { None::<(u32, PageRef)> }; 3];
                    let mut file = Pages::new(cache, 64);
                    for turn in 0..5_000 {
                        random = random
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1_442_695_040_888_963_407);
                        let page = (random >> 33) as u32 % 64;
                        let from = if turn % 4 == 0 { &file } else { pages };
                        let got = from.get(page, fill(page as u8)).unwrap();
                        check(page, &got);
                        if let Some((page, got)) = held[turn % 3].replace((page, got)) {
                            check(page, &got);
                        }
                        assert!(cache.stats().pages <= 20);
                        if turn % 100 == 0 {
                            file = Pages::new(cache, 64);
                        }
                    }
                });
            }
        });
        let stats = cache.stats();
        assert_eq!(stats.hits + stats.misses, 20_000);
        drop(pages);
        assert_eq!(cache.stats().pages, 0);
        // No frame was lost: all can be filled again.
        let pages = Pages::new(&cache, 20);
        (0..20).for_each(|page| drop(pages.get(page, fill(1)).unwrap()));
        (0..20).for_each(|page| drop(pages.get(page, no_read).unwrap()));
    }
}

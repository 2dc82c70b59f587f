//! [`Cache`]: pages read from files, kept for all files of a store within one limit in bytes.
//!
//! - Pages lie in frames on huge pages ([`Frames`]). Every open file has a slot for each of its pages
//!   ([`Pages`]), which names the frame. A lookup of a kept page reads the slot and pins the page where it
//!   lies: no hash, no lock, no copy.
//! - A page is verified once, when it is read from the disk.
//! - Reads run outside of any lock, directly into the frame. If two threads miss the same page at once, both
//!   read it, and the cache keeps one copy.
//! - The limit holds exactly for frames. A page that a reader holds keeps its frame. If there is no free
//!   frame, because all inspected ones are held or the limit is below one page, the page is read to the heap
//!   and not kept.
//! - If the system has no memory for a frame, pages take turns in those that have some. After a few seconds the cache
//!   may grow again ([`Cache::grow_again`]).
//! - The limit may change ([`Cache::set_bytes`]). Frames have numbers up to the number of seats. If that falls, frames
//!   beyond lose their pages, and their memory goes back to the system when nobody reads them.
//! - A page is new or proven. New pages are evicted in the order in which they came, however often they were requested:
//!   the pages of a scan are requested many times at once, and then never again. A new page that is read again soon
//!   after it was evicted is proven. Few frames have new pages ([`NEW_SHARE`]), so a page that is read once takes
//!   nothing from those that are read again and again. The system's cache of the file has it for a while anyway.
//! - A clock selects the proven page to evict: one that was not requested since the hand last passed it. The hand moves
//!   on while new pages come, so that a proven page that nobody requests any more leaves too. And new pages leave while
//!   proven ones come, for the same reason.
//! - This is 2Q (Johnson and Shasha, VLDB 1994) with a clock for its main queue. `docs/decisions/0029` has the figures.
//!
//! `forrest_machine::frames` explains why a page found without a lock is the right one: slots are set and
//! cleared under the lock of the clock, and a frame is claimed before the slot that names it is cleared.
//!
//! Not here: the content of pages, and reading ahead.

use crate::cached;
use crate::gauge::{Gauge, Share};
use crate::page;
use crate::room;
use crate::stripe::Stripes;
use crate::sync::add_alone;
use forrest_base::lock;
use forrest_engine::{Error, ErrorKind, Result};
use forrest_engine::{Numa, Pages as PageSize};
use forrest_machine::frames::{Claimed, FRAME_BYTES, FRAMES_MAX, Frames, Pinned, Refused, Slot};
use forrest_machine::prefetch;
use std::cell::Cell;
use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

thread_local! {
    static MISSED: Cell<u64> = const { Cell::new(0) };
}

/// Pages of all stores that this thread has requested and that were not kept, without those that were taken.
pub(crate) fn missed_here() -> u64 {
    MISSED.get()
}

/// Takes those that came since the count was `before`: the call that this one is made in does not count them too.
pub(crate) fn take_missed(before: u64) -> u64 {
    MISSED.replace(before) - before
}

/// Maximum number of requested pages that the hand of the clock passes for one new page. So a miss never
/// waits for a walk over the whole cache. If more than that in a row were requested, one of them is evicted.
const PASSED_MAX: usize = 64;
/// Maximum number of frames that are inspected for one new page, if readers hold those to be evicted.
const LOOKED_AT_MAX: usize = 2 * PASSED_MAX;
/// Maximum number of frames that were never used that are tried for one new page.
const FRESH_TRIES: usize = 3;
/// One of 16 frames has a new page, once the others have proven ones.
const NEW_SHARE: usize = 16;
/// A page that was evicted is proven if it is read again before this share of the cache was evicted after it, or before
/// as many pages were as are new.
const REMEMBERED_SHARE: usize = 8;
/// For each eighth page the other kind has its turn: the hand of the clock looks at one proven page, or if few are new,
/// one of those leaves.
const AGED_EVERY: u32 = 8;
/// Number of pages that a closing file frees before it lets other threads take the lock.
const FORGOTTEN_MAX: usize = 512;
/// Number of pages of a file that show how many of them are kept.
const SAMPLE: usize = 32;
/// After memory was refused for a frame, the cache grows again after this time.
const GROW_AGAIN: Duration = Duration::from_secs(5);

const _: () = assert!(FRAME_BYTES == page::BYTES);

/// A page that does not change while this is held: the payload, without the checksum.
///
/// INVARIANT: two pointers, no enum. Two 8-byte stores read back as one 16-byte load defeat store forwarding;
/// a page that is not in the processor's caches then costs three times as much.
#[derive(Clone)]
pub(crate) struct PageRef(Pinned);

impl Deref for PageRef {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        &self.0[..page::PAYLOAD]
    }
}

/// The page that a frame holds: the slots of its file, and its number.
struct Seat {
    slots: Arc<[Slot]>,
    page: u32,
    /// It is not proven.
    is_new: bool,
}

impl Seat {
    fn slot(&self) -> &Slot {
        &self.slots[self.page as usize]
    }
}

/// The frame that the clock has for a new page.
enum Room<'f> {
    /// A frame, and the seat of the page that was evicted for it.
    Claimed(Claimed<'f>, Option<Seat>),
    /// A frame that was never used and that no other thread will claim. Taking memory for it takes time.
    Fresh(u32),
    /// No frame.
    None,
}

/// Which page a hand looks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sweep {
    /// A new one.
    New,
    /// A proven one that was not requested, or the one after [`PASSED_MAX`] that were.
    Proven,
    /// The next proven one, if it was not requested.
    Aged,
    /// The next one: those of one kind may lie together, and the hands before them.
    Any,
}

/// Which page is in which frame. INVARIANT, while its lock is held: the slots that name a frame are those of
/// the seats, and each names the frame of its seat.
struct Clock {
    /// One for each frame used so far.
    seats: Vec<Option<Seat>>,
    /// Maximum number of seats.
    seats_max: usize,
    /// The same if memory is not refused.
    seats_asked: usize,
    /// When memory was refused, if it was since then.
    refused: Option<Instant>,
    /// Number of taken seats.
    kept: usize,
    /// Number of those with new pages.
    kept_new: usize,
    /// Pages evicted so far; it starts again after 2^32.
    evicted: u32,
    /// Frames without a page, none of which is being filled. The list may be incomplete.
    free: Vec<u32>,
    /// The frame that is looked at next for a new page to evict, and for a proven one.
    new_hand: usize,
    hand: usize,
    /// Whether frames beyond the last seat may have memory.
    has_spare: bool,
}

impl Clock {
    fn new(seats_max: usize) -> Clock {
        let mut seats = Vec::new();
        // Reserves addresses only, not memory. If that fails, the vector grows step by step.
        let _ = seats.try_reserve_exact(seats_max);
        Clock {
            seats,
            seats_max,
            seats_asked: seats_max,
            refused: None,
            kept: 0,
            kept_new: 0,
            evicted: 0,
            free: Vec::new(),
            new_hand: 0,
            hand: 0,
            has_spare: false,
        }
    }

    /// Sets the number of seats.
    fn ask(&mut self, seats: usize) {
        (self.seats_max, self.seats_asked, self.refused) = (seats, seats, None);
    }

    /// Memory was refused: from now on, pages take turns in the frames that have some.
    fn refuse(&mut self, now: Instant) {
        self.seats_max = self.seats_max.min(self.seats.len());
        self.refused = Some(now);
    }

    /// A frame for a new page.
    fn claim<'f>(&mut self, frames: &'f Frames) -> Room<'f> {
        while let Some(frame) = self.free.pop() {
            // If readers of a closed file still hold it, the hand finds it later.
            if let Ok(claimed) = frames.claim(frame) {
                // It may have a page: one that was read into it after it was given out as new and another thread had
                // given it up.
                return Room::Claimed(claimed, self.evict(frame as usize));
            }
        }
        if self.seats.len() < self.seats_max {
            self.seats.push(None);
            return Room::Fresh(self.seats.len() as u32 - 1);
        }
        if self.seats.is_empty() {
            return Room::None;
        }
        let has_many = self.kept_new > self.seats.len() / NEW_SHARE;
        let (kind, other) = if has_many { (Sweep::New, Sweep::Proven) } else { (Sweep::Proven, Sweep::New) };
        let first = if has_many { Sweep::Aged } else { Sweep::New };
        let ages = self.evicted.is_multiple_of(AGED_EVERY).then_some(first);
        let sweeps = ages.into_iter().chain([kind, other, Sweep::Any]);
        sweeps.into_iter().find_map(|sweep| self.sweep(frames, sweep)).unwrap_or(Room::None)
    }

    /// Moves a hand on to a frame without a page, or with one of the right kind, and evicts that.
    fn sweep<'f>(&mut self, frames: &'f Frames, sweep: Sweep) -> Option<Room<'f>> {
        let mut passed = 0;
        for _ in 0..LOOKED_AT_MAX {
            let hand = if sweep == Sweep::New { &mut self.new_hand } else { &mut self.hand };
            let at = if *hand < self.seats.len() { *hand } else { 0 };
            *hand = at + 1;
            if let Some(seat) = &self.seats[at] {
                match sweep {
                    Sweep::Any => {}
                    _ if seat.is_new != (sweep == Sweep::New) => continue,
                    Sweep::New => {}
                    Sweep::Proven if passed < PASSED_MAX && seat.slot().pass() => {
                        passed += 1;
                        continue;
                    }
                    Sweep::Proven => {}
                    Sweep::Aged if seat.slot().pass() => return None,
                    Sweep::Aged => {}
                }
            }
            if let Ok(claimed) = frames.claim(at as u32) {
                return Some(Room::Claimed(claimed, self.evict(at)));
            }
        }
        None
    }

    /// Takes its page from a frame, which was claimed.
    fn evict(&mut self, at: usize) -> Option<Seat> {
        let gone = self.seats[at].take()?;
        gone.slot().leave(self.evicted);
        self.evicted = self.evicted.wrapping_add(1);
        self.count_out(&gone);
        Some(gone)
    }

    /// Whether a page was not evicted lately.
    fn is_new(&self, slot: &Slot) -> bool {
        // At least one beside the page that was just evicted for it.
        let remembered = self.kept_new.max(self.seats.len() / REMEMBERED_SHARE).max(2);
        slot.left_before(self.evicted).is_none_or(|count| count as usize > remembered)
    }

    fn count_out(&mut self, gone: &Seat) {
        self.kept -= 1;
        self.kept_new -= usize::from(gone.is_new);
    }

    /// Publishes a page that was read, and records its seat.
    fn keep(&mut self, claimed: Claimed<'_>, mut seat: Seat) -> Pinned {
        let frame = claimed.frame();
        let pinned = claimed.publish();
        if frame as usize >= self.seats.len() {
            // The cache was made smaller meanwhile. The page is read here and not kept.
            self.has_spare = true;
            return pinned;
        }
        seat.is_new = self.is_new(seat.slot());
        self.kept += 1;
        self.kept_new += usize::from(seat.is_new);
        seat.slot().set(frame);
        self.seats[frame as usize] = Some(seat);
        pinned
    }

    /// Takes a page's frame from it, if it has one.
    fn forget(&mut self, slot: &Slot) -> Option<Seat> {
        let frame = slot.frame()?;
        slot.clear();
        self.free.push(frame);
        let gone = self.seats[frame as usize].take()?;
        self.count_out(&gone);
        Some(gone)
    }

    /// Whether there are frames for some more pages without evicting others, as far as the system has memory for them.
    fn has_room(&self, pages: usize) -> bool {
        self.kept + pages <= self.seats_max
    }

    /// Whether no page is in a frame.
    fn is_vacant(&self, frame: u32) -> bool {
        self.seats.get(frame as usize).is_none_or(Option::is_none)
    }

    /// Takes the pages of frames beyond the last seat from them, a limited number. Empty if there are none.
    fn shrink(&mut self) -> Vec<Option<Seat>> {
        let beyond = self.seats.len().saturating_sub(self.seats_max).min(FORGOTTEN_MAX);
        let gone: Vec<_> = self.seats.drain(self.seats.len() - beyond..).collect();
        self.has_spare |= beyond > 0;
        // If there is a seat for such a frame again, it is as new.
        let seats = self.seats.len();
        self.free.retain(|&frame| (frame as usize) < seats);
        for seat in gone.iter().flatten() {
            seat.slot().clear();
            self.count_out(seat);
        }
        gone
    }

    /// Takes back a frame that holds no page.
    fn give_up(&mut self, claimed: Claimed<'_>) {
        if (claimed.frame() as usize) < self.seats.len() {
            self.free.push(claimed.frame());
        } else {
            self.has_spare = true;
        }
    }
}

/// Counters and size of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stats {
    /// Pages that were found. With more than 64 threads a few may be missing.
    pub(crate) hits: u64,
    /// Pages that had to be read.
    pub(crate) misses: u64,
    /// Of those that were found, pages of REMIXes.
    pub(crate) remix_hits: u64,
    /// Of those that had to be read, pages of REMIXes.
    pub(crate) remix_misses: u64,
    /// Pages that are kept now.
    pub(crate) pages: u64,
    /// Bytes of memory that they take.
    pub(crate) bytes: u64,
}

/// The pages that are kept.
pub(crate) struct Cache {
    /// `None` if no page may be kept, or if the system has no addresses.
    frames: Option<Frames>,
    clock: Mutex<Clock>,
    /// Held while the number of seats changes, or memory is given back.
    resizing: Mutex<()>,
    /// What open files and the orders over them take beside the pages.
    indexes: Gauge,
    /// By what a page is of.
    hits: Stripes<[AtomicU64; 2]>,
    misses: [AtomicU64; 2],
}

/// What a page is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    Table,
    Remix,
}

/// Memory that a kept page takes: the frame with its word, and its seat with a place among the free ones.
const PAGE_COST: usize = FRAME_BYTES + size_of::<u32>() + size_of::<Option<Seat>>() + size_of::<u32>();

/// A larger cache is limited to the memory of the machine, because addresses and tables cost something as
/// well.
const UNCHECKED_BYTES: usize = 1 << 30;

/// A cache can grow to `GROWTH` times its size, but not beyond `GROWN_BYTES`: addresses are reserved for that. Below a
/// gibibyte, so that no page of that size is taken for a smaller cache.
const GROWTH: usize = 4;
const GROWN_BYTES: usize = 1000 << 20;
/// A smaller cache is allocated as a whole, and cannot grow.
const RESERVED_BYTES: usize = 2 << 20;

/// How many pages are kept in `bytes` bytes.
fn pages_in(bytes: usize) -> usize {
    let memory = || forrest_machine::memory::now().map_or(usize::MAX, |memory| memory.total_bytes as usize);
    let bytes = if bytes > UNCHECKED_BYTES { bytes.min(memory()) } else { bytes };
    (bytes / PAGE_COST).min(FRAMES_MAX - 1)
}

/// A pool of frames for `bytes` bytes of pages, and for more if the cache grows; a smaller one if the system lacks the
/// addresses.
fn pool(bytes: usize, pages: PageSize, numa: Numa) -> Option<Frames> {
    let grown = if bytes < RESERVED_BYTES { bytes } else { bytes.saturating_mul(GROWTH).min(GROWN_BYTES) };
    let count = pages_in(bytes);
    let smaller = std::iter::successors(Some(count), |count| Some(count / 2));
    let mut counts =
        std::iter::once(pages_in(grown).max(count)).chain(smaller).take_while(|&count| count > 0);
    counts.find_map(|count| Frames::new(count, pages, numa).ok())
}

impl Cache {
    /// Bytes of memory that the files of the store take beside these pages: the indexes of tables and the orders over
    /// them, those of older versions that somebody reads and those that are being made included.
    pub(crate) fn indexes(&self) -> &Gauge {
        &self.indexes
    }

    /// A cache that takes at most `bytes` for pages, on memory of the requested kind as far as there is any.
    pub(crate) fn new(bytes: usize, pages: PageSize, numa: Numa) -> Cache {
        let count = pages_in(bytes);
        let frames = pool(bytes, pages, numa);
        let seats_max = frames.as_ref().map_or(0, |frames| frames.count().min(count));
        Cache {
            clock: Mutex::new(Clock::new(seats_max)),
            frames,
            resizing: Mutex::new(()),
            indexes: Gauge::default(),
            hits: Stripes::new(Default::default),
            misses: Default::default(),
        }
    }

    /// The largest size that it can have.
    pub(crate) fn bytes_most(&self) -> usize {
        (self.frames.as_ref().map_or(0, Frames::count) + 1) * PAGE_COST - 1
    }

    /// Keeps pages within other `bytes` from now on. If that is less, the memory of those beyond goes back to the
    /// system, once nobody reads them.
    ///
    /// # Errors
    /// `Limit` if no addresses were reserved for that; nothing has changed then.
    pub(crate) fn set_bytes(&self, bytes: usize) -> Result<()> {
        let count = pages_in(bytes);
        if count > self.frames.as_ref().map_or(0, Frames::count) {
            let most = self.bytes_most();
            let what = format!(
                "cache_bytes is {bytes}; while it is open, this store can have {most} at most; open it again for more"
            );
            return Err(Error::new(ErrorKind::Limit, what));
        }
        let resizing = lock(&self.resizing);
        lock(&self.clock).ask(count);
        // Dropped without the lock, some at a time, so that nobody waits for long.
        while !{ lock(&self.clock).shrink() }.is_empty() {}
        drop(resizing);
        self.release();
        Ok(())
    }

    /// Lets the cache grow again if memory was refused a while ago.
    pub(crate) fn grow_again(&self, now: Instant) {
        let is_due = |clock: &Clock| {
            clock.refused.is_some_and(|then| now.saturating_duration_since(then) >= GROW_AGAIN)
        };
        if !is_due(&lock(&self.clock)) {
            return;
        }
        // See `release`.
        let _resizing = lock(&self.resizing);
        let mut clock = lock(&self.clock);
        if is_due(&clock) {
            let seats = clock.seats_asked;
            clock.ask(seats);
        }
    }

    /// Gives back memory that readers of pages have kept so far.
    pub(crate) fn release(&self) {
        let Some(frames) = &self.frames else { return };
        let _resizing = lock(&self.resizing);
        let first = {
            let mut clock = lock(&self.clock);
            // INVARIANT: no frame from here on is claimed for a seat while `resizing` is held.
            let first = clock.seats_max.max(clock.seats.len());
            std::mem::take(&mut clock.has_spare).then_some(first)
        };
        if first.is_some_and(|first| !frames.release(first)) {
            lock(&self.clock).has_spare = true;
        }
    }

    /// Bytes of memory on explicit huge pages, and on transparent ones.
    pub(crate) fn huge_bytes(&self) -> (u64, u64) {
        self.frames.as_ref().map_or((0, 0), |frames| {
            let committed = frames.committed();
            let explicit = committed.huge_1g_bytes + committed.huge_2m_bytes;
            (explicit as u64, committed.transparent_bytes as u64)
        })
    }

    pub(crate) fn stats(&self) -> Stats {
        let pages = lock(&self.clock).kept as u64;
        let hits = |of: Of| self.hits.iter().map(|hits| hits[of as usize].load(Relaxed)).sum();
        let misses = |of: Of| self.misses[of as usize].load(Relaxed);
        let (remix_hits, remix_misses) = (hits(Of::Remix), misses(Of::Remix));
        Stats {
            hits: hits(Of::Table) + remix_hits,
            misses: misses(Of::Table) + remix_misses,
            remix_hits,
            remix_misses,
            pages,
            bytes: pages * PAGE_COST as u64,
        }
    }

    /// A load and a store. Up to 64 threads have a stripe each, so none is lost; with more threads a few may
    /// be.
    #[inline]
    fn count_hit(&self, of: Of) {
        add_alone(&self.hits.mine()[of as usize], 1);
    }

    /// A frame for a new page; `None` if there is none.
    fn claim<'f>(&self, frames: &'f Frames) -> Option<Claimed<'f>> {
        for _ in 0..FRESH_TRIES {
            // The lock is held for this statement only: not while memory is taken, nor while the evicted seat is
            // dropped, which may free the slots of a file.
            let room = lock(&self.clock).claim(frames);
            match room {
                Room::Claimed(claimed, _gone) => return Some(claimed),
                Room::Fresh(frame) => {
                    if let Some(claimed) = self.claim_fresh(frames, frame) {
                        return Some(claimed);
                    }
                }
                Room::None => return None,
            }
        }
        None
    }

    /// Claims a frame that was never used, if nothing has changed since the clock gave it out.
    fn claim_fresh<'f>(&self, frames: &'f Frames, frame: u32) -> Option<Claimed<'f>> {
        let claimed = frames.claim(frame);
        let mut clock = lock(&self.clock);
        match claimed {
            // If the cache was made smaller and larger meanwhile, the frame may have had a page by now.
            Ok(claimed) => clock.is_vacant(frame).then_some(claimed),
            // A reader holds it since the cache was larger, or its memory is being released. The hand finds it later.
            Err(Refused::InUse) => None,
            Err(Refused::NoMemory) => {
                clock.refuse(Instant::now());
                None
            }
        }
    }

    /// Keeps a page that was read, unless another thread was faster; returns the page that is kept.
    fn keep(&self, frames: &Frames, slots: &Arc<[Slot]>, page: u32, read: Claimed<'_>) -> Pinned {
        let seat = Seat { slots: slots.clone(), page, is_new: true };
        let mut clock = lock(&self.clock);
        let Some(frame) = seat.slot().frame() else { return clock.keep(read, seat) };
        match frames.pin(frame) {
            Some(kept) => {
                clock.give_up(read);
                kept
            }
            // It has as many pins as can be counted.
            None => read.publish(),
        }
    }
}

/// A page that is not kept, in a pool of its own.
fn alone(read: impl FnOnce(&mut [u8; page::BYTES]) -> Result<()>) -> Result<PageRef> {
    room::ask()?;
    let frames = Frames::new(1, PageSize::Plain, Numa::Local).map_err(room::refused)?;
    let mut claimed = frames.claim(0).map_err(|_| room::refused("a page"))?;
    read(&mut claimed)?;
    Ok(PageRef(claimed.publish()))
}

/// The pages of one open file. Dropping it frees the kept ones.
pub(crate) struct Pages {
    cache: Arc<Cache>,
    of: Of,
    count: u32,
    /// Made when the first page is requested, so that opening a store with many files does not pay for all.
    slots: OnceLock<Arc<[Slot]>>,
    /// What they count for.
    share: Share,
}

/// Copies the bytes from a logical offset on out of pages, each of which `page` returns by its number.
pub(crate) fn copy(mut from: u64, mut out: &mut [u8], page: impl Fn(u64) -> Result<PageRef>) -> Result<()> {
    while !out.is_empty() {
        let (number, at) = page::place(from);
        let page = page(number)?;
        let (now, later) = out.split_at_mut(out.len().min(page::PAYLOAD - at));
        now.copy_from_slice(&page[at..at + now.len()]);
        from += now.len() as u64;
        out = later;
    }
    Ok(())
}

impl Pages {
    /// For a file of `count` pages.
    pub(crate) fn new(cache: &Arc<Cache>, of: Of, count: u32) -> Pages {
        Pages { cache: cache.clone(), of, count, slots: OnceLock::new(), share: cache.indexes.take(0) }
    }

    /// The cache that has the pages.
    pub(crate) fn cache(&self) -> &Arc<Cache> {
        &self.cache
    }

    /// A page. `read` fills in its 4,096 bytes and must verify them; it runs if the page is not kept. Its
    /// buffer contains bytes of another page.
    ///
    /// # Errors
    /// The error of `read`.
    #[inline]
    pub(crate) fn get(
        &self,
        page: u32,
        read: impl FnOnce(&mut [u8; page::BYTES]) -> Result<()>,
    ) -> Result<PageRef> {
        match self.find(page) {
            Some(kept) => Ok(kept),
            None => self.miss(page, read),
        }
    }

    /// A page, if it is kept.
    #[inline]
    pub(crate) fn find(&self, page: u32) -> Option<PageRef> {
        if let (Some(slots), Some(frames)) = (self.slots.get(), &self.cache.frames)
            && let Some(kept) = slots[page as usize].find(|frame| frames.pin(frame))
        {
            self.cache.count_hit(self.of);
            return Some(PageRef(kept));
        }
        None
    }

    /// Prefetches some bytes of a page if it is kept: a hint before a [get](Pages::get). False if it is not
    /// kept.
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

    /// Prefetches where a page is looked up, for a [fetch](Pages::fetch) later.
    #[inline]
    pub(crate) fn fetch_slot(&self, page: u32) {
        if let Some(slots) = self.slots.get() {
            prefetch::read(slots.as_ptr().wrapping_add(page as usize).cast());
        }
    }

    #[cold]
    fn miss(&self, page: u32, read: impl FnOnce(&mut [u8; page::BYTES]) -> Result<()>) -> Result<PageRef> {
        cached::check()?;
        self.cache.misses[self.of as usize].fetch_add(1, Relaxed);
        MISSED.set(MISSED.get() + 1);
        assert!(page < self.count, "page {page} of {}", self.count);
        let room = self.cache.frames.as_ref().and_then(|frames| Some((frames, self.cache.claim(frames)?)));
        let Some((frames, mut claimed)) = room else { return alone(read) };
        if let Err(error) = read(&mut claimed) {
            lock(&self.cache.clock).give_up(claimed);
            return Err(error);
        }
        Ok(PageRef(self.cache.keep(frames, self.slots(), page, claimed)))
    }

    /// How many of the first `pages` are kept, as far as a sample of them shows.
    pub(crate) fn kept_of(&self, pages: u32) -> u32 {
        let Some(slots) = self.slots.get() else { return 0 };
        let first = &slots[..(pages as usize).min(slots.len())];
        let sample = first.iter().step_by(first.len().div_ceil(SAMPLE).max(1));
        let (seen, kept) =
            sample.fold((0, 0), |(seen, kept), slot| (seen + 1, kept + u64::from(slot.frame().is_some())));
        (u64::from(pages) * kept / seen.max(1)) as u32
    }

    /// Whether the cache can keep some more pages without evicting others.
    pub(crate) fn has_room(&self, pages: usize) -> bool {
        self.cache.frames.is_some() && lock(&self.cache.clock).has_room(pages)
    }

    /// Keeps a page that was read together with another one, if there is a frame for it. The caller has verified it.
    pub(crate) fn offer(&self, page: u32, payload: &[u8]) {
        assert!(page < self.count, "page {page} of {}", self.count);
        let Some(frames) = &self.cache.frames else { return };
        if self.slots()[page as usize].frame().is_none()
            && let Some(mut claimed) = self.cache.claim(frames)
        {
            claimed[..page::PAYLOAD].copy_from_slice(payload);
            drop(self.cache.keep(frames, self.slots(), page, claimed));
        }
    }

    /// A slot for each page.
    fn slots(&self) -> &Arc<[Slot]> {
        self.slots.get_or_init(|| {
            self.share.set(self.count as usize * size_of::<Slot>());
            (0..self.count).map(|_| Slot::default()).collect()
        })
    }

    /// Memory of the slots, in bytes.
    pub(crate) fn slot_bytes(&self) -> usize {
        self.slots.get().map_or(0, |slots| size_of_val::<[Slot]>(slots))
    }
}

/// Visits each of the file's slots once, and takes the lock for those that name a frame, some at a time.
impl Drop for Pages {
    fn drop(&mut self) {
        let Some(slots) = self.slots.get() else { return };
        // No thread sets a slot any more, and some are cleared meanwhile.
        let named: Vec<&Slot> = slots.iter().filter(|slot| slot.frame().is_some()).collect();
        for some in named.chunks(FORGOTTEN_MAX) {
            // Dropped after the lock is released.
            let mut gone = Vec::with_capacity(some.len());
            let mut clock = lock(&self.cache.clock);
            gone.extend(some.iter().filter_map(|slot| clock.forget(slot)));
            drop(clock);
        }
    }
}

#[cfg(test)]
mod tests;

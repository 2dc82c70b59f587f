//! weakened: claims who_finds_a_page_finds_that_page
//! weakened: barges who_finds_a_page_finds_that_page
//! weakened: unpins who_finds_a_page_finds_that_page
//! weakened: pins who_finds_a_page_finds_that_page
//! weakened: publishes who_finds_a_page_finds_that_page
//! weakened: trusts who_finds_a_page_finds_that_page
//! weakened: glances who_finds_a_page_finds_that_page
//! weakened: gives_up a_claim_that_was_given_up_is_over
//! weakened: takes_away memory_goes_when_nobody_reads
//! weakened: stays memory_goes_when_nobody_reads
//! weakened: barges memory_goes_when_nobody_reads
//! weakened: unpins memory_goes_when_nobody_reads
//! weakened: forgets a_pin_by_mistake_is_not_lost
//! weakened: unpins a_pool_ends_once_after_its_last_use
//! weakened: counts a_pool_ends_once_after_its_last_use
//! weakened: closes a_pool_ends_once_after_its_last_use
//! weakened: looks_only a_pool_ends_once_after_its_last_use
//! weakened: last two_readers_outlive_the_owner
//!
//! Models of how frames are pinned, claimed and found. They try every interleaving of two threads, and of three threads
//! every interleaving with few preemptions. Each model checks a property that the head of `pins.rs` or `slot.rs` argues
//! for, or a small page cache. Frames are cells that report unordered accesses. Run with
//! `cargo test -p forrest-machine --release --features loom --lib models`; `LOOM_MAX_PREEMPTIONS` sets the bound
//! for all models. The lines above name the mutants and the models that must fail with them, see `cargo xtask models`.
//!
//! With the feature `loom` the modules use loom's locks and atomics instead of the standard library's.

use super::pins::{Claim, Left, Word};
use super::slot::Slot;
use forrest_models::{Guarded, model};
use loom::sync::{Arc, Mutex};
use loom::thread;

/// A pin, given up on drop.
struct Pin<'c>(&'c Word);

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        // A model that has failed goes no further.
        if !std::thread::panicking() {
            self.0.unpin();
        }
    }
}

const PAGES: usize = 2;

/// A cache with one frame, and at first the first of its pages in it. A page's content is its number plus one.
struct Cache {
    word: Word,
    frame: Guarded,
    slots: [Slot; PAGES],
    /// Whose page is in the frame. The lock under which slots are set and cleared.
    seat: Mutex<Option<usize>>,
}

impl Cache {
    fn new() -> Arc<Cache> {
        let word = Word::default();
        assert_eq!(word.claim(), Some(Claim::Absent));
        word.is_present();
        word.publish();
        word.unpin();
        let slots = [0; PAGES].map(|_| Slot::default());
        slots[0].set(0);
        Arc::new(Cache { word, frame: Guarded::new(1), slots, seat: Mutex::new(Some(0)) })
    }

    /// Whether a page is found; it is the right one then.
    fn find(&self, page: usize) -> bool {
        let found = self.slots[page].find(|_| self.word.pin().then(|| Pin(&self.word)));
        found.is_some_and(|pin| {
            self.use_up(page, pin);
            true
        })
    }

    /// Reads the pinned frame, and drops the pin.
    fn use_up(&self, page: usize, _pin: Pin<'_>) {
        assert_eq!(self.frame.read(), page as u64 + 1, "another page");
    }

    /// Takes the frame from the page that has it.
    fn drive_out(&self) -> bool {
        let mut seat = self.seat.lock().unwrap();
        let claimed = self.word.claim();
        if claimed.is_some() {
            seat.take().into_iter().for_each(|old| self.slots[old].leave(0));
        }
        claimed.is_some()
    }

    /// Loads a page, if the frame can be claimed; does not read it yet.
    fn bring(&self, page: usize) -> Option<Pin<'_>> {
        if !self.drive_out() {
            return None;
        }
        self.frame.write(page as u64 + 1);
        let mut seat = self.seat.lock().unwrap();
        self.word.publish();
        self.slots[page].set(0);
        *seat = Some(page);
        Some(Pin(&self.word))
    }

    fn bring_and_use(&self, page: usize) {
        self.bring(page).into_iter().for_each(|pin| self.use_up(page, pin));
    }
}

/// One looks for both pages while another drives one out by the other, and perhaps that by the first again.
fn found(brought: &'static [usize], first: usize) {
    model(None, move || {
        let cache = Cache::new();
        let reader = {
            let cache = cache.clone();
            thread::spawn(move || {
                cache.find(first);
                cache.find(1 - first);
            })
        };
        brought.iter().for_each(|page| cache.bring_and_use(*page));
        reader.join().unwrap();
        let at = cache.slots.iter().position(|slot| slot.frame().is_some()).expect("one is kept");
        assert!(cache.find(at) && !cache.find(1 - at));
        assert!(cache.word.claim().is_some(), "a pin was left");
    });
}

#[test]
fn who_finds_a_page_finds_that_page() {
    found(&[1], 0);
    found(&[1], 1);
}

#[test]
fn a_page_leaves_and_comes_back() {
    found(&[1, 0], 0);
    found(&[1, 0], 1);
}

/// Two threads load pages, and one looks one up; the frame has at most one writer.
#[test]
fn three_want_the_frame() {
    model(Some(3), || {
        let cache = Cache::new();
        let threads = [0, 1].map(|page| {
            let cache = cache.clone();
            thread::spawn(move || {
                if !cache.find(page) {
                    cache.bring_and_use(page);
                }
            })
        });
        cache.bring_and_use(1);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(cache.word.claim().is_some(), "a pin was left");
    });
}

/// After a claim that was given up, the next claimant writes the frame.
#[test]
fn a_claim_that_was_given_up_is_over() {
    model(None, || {
        let cache = Cache::new();
        let other = {
            let cache = cache.clone();
            thread::spawn(move || {
                if cache.drive_out() {
                    cache.frame.write(99);
                    cache.word.give_up();
                }
            })
        };
        cache.bring_and_use(1);
        other.join().unwrap();
    });
}

/// The content of memory that went back to the system.
const GONE: u64 = 99;

impl Cache {
    /// As a cache that shrinks: the page loses its frame, and the frame its memory unless somebody reads it.
    fn shrink(&self) -> bool {
        let mut seat = self.seat.lock().unwrap();
        seat.take().into_iter().for_each(|page| self.slots[page].clear());
        drop(seat);
        let claim = if self.word.has_memory() { self.word.claim() } else { None };
        if let Some(was) = claim {
            self.frame.write(GONE);
            self.word.is_absent(was);
        }
        claim.is_some()
    }

    /// As a cache that grows again, or still has the frame: a page is read into it, unless somebody reads it.
    fn grow(&self, page: usize) {
        let claim = {
            let mut seat = self.seat.lock().unwrap();
            let claim = self.word.claim();
            if claim.is_some() {
                seat.take().into_iter().for_each(|old| self.slots[old].clear());
            }
            claim
        };
        let Some(was) = claim else { return };
        let is_gone = self.frame.read() == GONE;
        assert_eq!(is_gone, was == Claim::Absent, "the word does not tell where the memory is");
        if is_gone {
            self.word.is_present();
        }
        self.frame.write(page as u64 + 1);
        let mut seat = self.seat.lock().unwrap();
        self.word.publish();
        self.slots[page].set(0);
        *seat = Some(page);
        drop(seat);
        self.use_up(page, Pin(&self.word));
    }
}

/// A reader's page stays while it is read, also if the cache gives up the frame, or grows again.
#[test]
fn memory_goes_when_nobody_reads() {
    model(None, || {
        let cache = Cache::new();
        let reader = {
            let cache = cache.clone();
            thread::spawn(move || {
                cache.find(0);
            })
        };
        cache.shrink();
        reader.join().unwrap();
        assert!(cache.word.claim().is_some(), "a pin was left");
    });
    model(Some(3), || {
        let cache = Cache::new();
        let others = [
            |cache: &Cache| {
                cache.find(0);
            },
            |cache: &Cache| cache.grow(1),
        ];
        let others = others.map(|way| {
            let cache = cache.clone();
            thread::spawn(move || way(&cache))
        });
        cache.shrink();
        others.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(cache.word.claim().is_some(), "a pin was left");
    });
}

/// A thread with an old slot adds to the word and subtracts again while the frame is claimed and published.
#[test]
fn a_pin_by_mistake_is_not_lost() {
    model(None, || {
        let cache = Cache::new();
        let stale = {
            let cache = cache.clone();
            thread::spawn(move || {
                cache.find(0);
            })
        };
        if let Some(pin) = cache.bring(1) {
            assert!(cache.word.claim().is_none(), "the pin was lost");
            cache.use_up(1, pin);
        }
        stale.join().unwrap();
        assert!(cache.word.claim().is_some(), "the count is wrong");
    });
}

/// A pool of two frames, the first pinned so often and the second not.
struct Pool {
    words: [Word; 2],
    left: Left,
    /// Both frames' bytes: 1, and 0 once they were given back.
    memory: Guarded,
}

impl Pool {
    fn new(pins: usize) -> Arc<Pool> {
        let words = [0; 2].map(|_| Word::default());
        words[0].claim();
        words[0].is_present();
        words[0].publish();
        (1..pins).for_each(|_| words[0].again());
        Arc::new(Pool { words, left: Left::new(2), memory: Guarded::new(1) })
    }

    fn end(&self) {
        assert_eq!(self.memory.read(), 1, "it ended twice");
        self.memory.write(0);
    }

    /// Reads the first frame and gives up a pin.
    fn use_up(&self) {
        assert_eq!(self.memory.read(), 1, "it has ended");
        if self.words[0].unpin() && self.left.count_out(1) {
            self.end();
        }
    }

    /// As the owner's drop.
    fn drop_owner(&self) {
        assert_eq!(self.memory.read(), 1, "it has ended");
        let done = self.words.iter().filter(|word| word.close()).count();
        if self.left.count_out(1 + done) {
            self.end();
        }
    }
}

#[test]
fn a_pool_ends_once_after_its_last_use() {
    model(None, || {
        let pool = Pool::new(1);
        let reader = {
            let pool = pool.clone();
            thread::spawn(move || {
                pool.words[0].again();
                pool.use_up();
                pool.use_up();
            })
        };
        pool.drop_owner();
        reader.join().unwrap();
        assert_eq!(pool.memory.read(), 0, "it has not ended");
    });
}

#[test]
fn two_readers_outlive_the_owner() {
    model(Some(3), || {
        let pool = Pool::new(2);
        let readers = [0, 1].map(|_| {
            let pool = pool.clone();
            thread::spawn(move || pool.use_up())
        });
        pool.drop_owner();
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        assert_eq!(pool.memory.read(), 0, "it has not ended");
    });
}

//! Threads against each other on the frames of a pool, with checks that hold at every moment. Meant to be run under
//! AddressSanitizer and ThreadSanitizer too, see `cargo xtask races`.
//!
//! `FORREST_STRESS_SECONDS` says how long all of it takes together (1 if not set). How the threads meet is not
//! repeatable.

use forrest_machine::frames::{FRAME_BYTES, Frames, Pinned, Slot};
use forrest_machine::pages::{GRANULE_BYTES, Numa, Pages};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

const THREADS: u64 = 4;
const FRAMES: u32 = 8;
/// More than there are frames.
const PAGES: usize = 24;
/// How many tests share the time.
const TESTS: u32 = 3;

fn until() -> Instant {
    let seconds = std::env::var("FORREST_STRESS_SECONDS").map_or(1, |text| {
        text.parse().unwrap_or_else(|_| panic!("FORREST_STRESS_SECONDS is a number, not {text:?}"))
    });
    Instant::now() + Duration::from_secs(seconds) / TESTS
}

/// Pseudorandom numbers; each thread has a separate seed.
fn random(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize
}

/// A cache at its smallest: each page is one number over and over.
struct Cache {
    frames: Frames,
    slots: [Slot; PAGES],
    /// The page in each frame.
    seats: Mutex<[Option<usize>; FRAMES as usize]>,
    found: AtomicU64,
}

impl Cache {
    fn new(frames: Frames) -> Cache {
        let slots = [0; PAGES].map(|_| Slot::default());
        Cache { frames, slots, seats: Mutex::default(), found: AtomicU64::new(0) }
    }

    /// Finds a page, or loads it into a frame in place of another page.
    fn get(&self, page: usize, frame: u32) -> Option<Pinned> {
        if let Some(found) = self.slots[page].find(|frame| self.frames.pin(frame)) {
            self.found.fetch_add(1, Relaxed);
            return Some(found);
        }
        let mut claimed = {
            let mut seats = self.seats.lock().expect("no thread panics under it");
            let claimed = self.frames.claim(frame).ok()?;
            if let Some(old) = seats[frame as usize].take() {
                self.slots[old].clear();
            }
            claimed
        };
        claimed.fill(page as u8);
        let mut seats = self.seats.lock().expect("no thread panics under it");
        // Another thread was faster: give this frame up, or publish it without a slot.
        if self.slots[page].frame().is_some() {
            return page.is_multiple_of(2).then(|| claimed.publish());
        }
        seats[frame as usize] = Some(page);
        let pinned = claimed.publish();
        self.slots[page].set(frame);
        Some(pinned)
    }
}

fn check(page: usize, pinned: &Pinned) {
    assert!(pinned.iter().all(|&byte| byte == page as u8), "page {page} begins with {:?}", &pinned[..8]);
}

/// Each thread keeps some pins for a while; the last thread ends the pool.
fn pages_stay_whole(frames: impl Fn() -> Frames) {
    let until = until();
    let mut found = 0;
    while Instant::now() < until {
        let cache = Cache::new(frames());
        let kept: Vec<(usize, Pinned)> = std::thread::scope(|scope| {
            let threads = (0..THREADS).map(|thread| {
                let cache = &cache;
                scope.spawn(move || {
                    let mut state = thread;
                    let mut kept = [const { None::<(usize, Pinned)> }; 2];
                    for turn in 0..2_000 {
                        let page = random(&mut state) % PAGES;
                        let frame = random(&mut state) as u32 % FRAMES;
                        if let Some(pinned) = cache.get(page, frame) {
                            check(page, &pinned);
                            let place = &mut kept[turn % 2];
                            if let Some((page, pinned)) = place.replace((page, pinned.clone())) {
                                check(page, &pinned);
                            }
                        }
                        if turn % 5 == 0 {
                            kept[turn / 5 % 2] = None;
                        }
                    }
                    kept.into_iter().flatten()
                })
            });
            let threads: Vec<_> = threads.collect();
            threads.into_iter().flat_map(|thread| thread.join().expect("no thread panics")).collect()
        });
        found += cache.found.load(Relaxed);
        let threads: Vec<_> = kept
            .into_iter()
            .map(|(page, pinned)| std::thread::spawn(move || check(page, &pinned.clone())))
            .collect();
        drop(cache);
        threads.into_iter().for_each(|thread| thread.join().expect("no thread panics"));
    }
    assert!(found > 0, "nothing was ever found");
}

#[test]
fn pages_stay_whole_on_the_heap() {
    pages_stay_whole(|| Frames::new(FRAMES as usize, Pages::Plain, Numa::Local).expect("heap"));
}

#[test]
fn pages_stay_whole_in_a_region() {
    let frames = GRANULE_BYTES / FRAME_BYTES + 1;
    pages_stay_whole(|| Frames::new(frames, Pages::default(), Numa::Local).expect("addresses"));
}

#[test]
fn whoever_is_last_ends_the_pool() {
    let until = until();
    while Instant::now() < until {
        let frames = Frames::new(3, Pages::Plain, Numa::Local).expect("heap");
        let pinned: Vec<Pinned> = [0, 0, 2]
            .iter()
            .map(|&frame| {
                frames.pin(frame).unwrap_or_else(|| {
                    let mut claimed = frames.claim(frame).expect("nobody has it");
                    claimed.fill(7);
                    claimed.publish()
                })
            })
            .collect();
        std::thread::scope(|scope| {
            for pin in pinned {
                scope.spawn(move || {
                    let again = pin.clone();
                    drop(pin);
                    check(7, &again);
                });
            }
            drop(frames);
        });
    }
}

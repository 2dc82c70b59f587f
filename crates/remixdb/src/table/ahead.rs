//! [`Ahead`]: which pages a walk announces to the device before it reads them. [`Habit`]: whether a new one is expected to
//! go far.
//!
//! The system's own reading ahead is off (disk/files.rs): it takes pages that were read at random, and lie beside each
//! other, for a sequence, and reads up to megabytes after them. A walk knows that it goes on. What it announces
//! doubles with each page that it enters, so a short walk reads little that it does not need, and a long one waits for
//! large reads only.
//!
//! Where a walk begins, nobody knows how far it will go. A jump of a cursor may be all, and what was read ahead of it
//! takes the place of other pages in the system's cache. If a walk goes on, each page that was not announced is a wait.
//! So a table remembers whether walks have left their first page lately.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// A walk that leaves its first page counts for three that do not.
const LEFT: u8 = 3;
/// From this many points on, a walk is expected to leave its first page. There are at most twice as many.
const FAR: u8 = 4;

/// Whether walks through a table leave the page of values that they begin with. On a cache line of its own, because it
/// changes often.
#[repr(align(64))]
pub(super) struct Habit(AtomicU8);

impl Habit {
    /// Nothing was walked yet.
    pub(super) const fn new() -> Habit {
        Habit(AtomicU8::new(FAR))
    }

    fn set(&self, change: impl FnOnce(u8) -> u8) {
        // ORDERING: none; a guess, and a lost change does no harm.
        let points = self.0.load(Relaxed);
        let changed = change(points);
        if changed != points {
            self.0.store(changed, Relaxed);
        }
    }

    /// A walk begins; true if it is expected to leave its first page.
    fn begin(&self) -> bool {
        let is_far = self.0.load(Relaxed) >= FAR;
        self.set(|points| points.saturating_sub(1));
        is_far
    }

    /// A walk leaves its first page.
    fn leave(&self) {
        self.set(|points| (points + LEFT).min(2 * FAR));
    }
}

/// Maximum number of pages that are announced ahead: 256 KiB.
const MOST: i64 = 64;

/// The pages that a walk through one section of a file has announced.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ahead {
    /// Pages that are announced after the first, if the walk is expected to go far.
    first: i64,
    /// Whether it is in the page that it began with.
    begins: bool,
    /// Pages that are announced after the current one.
    window: i64,
    /// The current page, and the first one that was not announced; negative for a walk backward.
    at: i64,
    to: i64,
}

impl Ahead {
    /// Nowhere yet. The walk announces this many pages after the first one that it enters, if it is expected to leave
    /// that.
    pub(super) const fn new(first: u32) -> Ahead {
        Ahead { first: first as i64, begins: false, window: 0, at: i64::MIN, to: i64::MIN }
    }

    /// The walk enters a page. Returns the pages to announce, that page included if it was not announced; they are no
    /// more than there are, so the caller cuts them off at the ends of the section.
    ///
    /// That a value `goes_on` in the page is no step of the walk, so it does not make a habit.
    #[inline]
    pub(super) fn enter(&mut self, page: u64, forward: bool, goes_on: bool, habit: &Habit) -> Range<u64> {
        // Backward is forward with all signs changed. Page numbers have 32 bits.
        let at = if forward { page as i64 } else { -(page as i64) };
        if self.at.checked_add(1) == Some(at) {
            self.window = (self.window * 2).clamp(1, MOST);
            if self.begins && !goes_on {
                self.begins = false;
                habit.leave();
            }
        } else {
            self.begins = self.first > 0;
            let is_far = self.begins && habit.begin();
            (self.window, self.to) = (if is_far { self.first } else { 0 }, at);
        }
        self.at = at;
        // Not earlier: a short walk ends before that.
        if self.to - 1 - at >= self.window / 4 {
            return 0..0;
        }
        let (from, to) = (self.to.max(at), at + self.window + 1);
        self.to = to.max(from);
        if forward {
            from as u64..self.to as u64
        } else {
            (1 - self.to).max(0) as u64..(1 - from).max(0) as u64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A walk's pages are announced once each, in order, before they are entered or when they are.
    #[test]
    fn a_walk_announces_each_page_once() {
        for first in [0, 2] {
            for forward in [true, false] {
                let (mut ahead, habit) = (Ahead::new(first), Habit::new());
                let (mut announced, mut calls) = (Vec::new(), 0);
                let pages: Vec<u64> =
                    if forward { (100..1100).collect() } else { (100..1100).rev().collect() };
                for &page in &pages {
                    let range = ahead.enter(page, forward, false, &habit);
                    assert!(range.end - range.start <= 2 * MOST as u64, "{range:?}");
                    calls += u32::from(!range.is_empty());
                    let range: Vec<u64> = if forward { range.collect() } else { range.rev().collect() };
                    announced.extend(range);
                    assert!(announced.contains(&page), "{page} of {announced:?}");
                }
                assert_eq!(announced[..1000], pages, "forward: {forward}");
                assert!(announced.len() <= 1000 + MOST as usize && calls < 50, "{calls} calls");
            }
        }
    }

    #[test]
    fn a_jump_begins_again() {
        let habit = Habit::new();
        let mut ahead = Ahead::new(2);
        let mut enter = |page, forward| ahead.enter(page, forward, false, &habit);
        assert_eq!(enter(7, true), 7..10);
        assert_eq!(enter(8, true), 0..0);
        assert_eq!(enter(9, true), 10..18);
        assert_eq!(enter(10, true), 0..0);
        assert_eq!(enter(11, true), 18..44);
        assert_eq!(enter(7, true), 7..10);
        assert_eq!(enter(0, false), 0..1, "there is none before");
        assert_eq!(Ahead::new(0).enter(5, true, false, &habit), 5..6);
        assert_eq!(Ahead::new(2).enter(5, false, false, &habit), 3..6);
    }

    #[test]
    fn what_walks_do_is_expected_of_the_next() {
        let habit = Habit::new();
        let walk = |pages: u64| {
            let mut ahead = Ahead::new(2);
            let first = ahead.enter(7, true, false, &habit);
            for page in 8..7 + pages {
                ahead.enter(page, true, false, &habit);
            }
            first
        };
        let jumps: Vec<_> = (0..10).map(|_| walk(1)).collect();
        assert_eq!((&jumps[0], &jumps[1..]), (&(7..10), &[const { 7..8 }; 9][..]));
        assert_eq!((walk(2), walk(2), walk(5), walk(5)), (7..8, 7..8, 7..10, 7..10));
        // Half of them are enough.
        let mixed: Vec<_> = (0..20).map(|at| walk(1 + at % 2)).collect();
        assert_eq!(mixed[2..], [const { 7..10 }; 18]);
        let jumps: Vec<_> = (0..10).map(|_| walk(1)).collect();
        assert_eq!(jumps[9], 7..8);
        // Values that take several pages.
        for _ in 0..10 {
            let mut ahead = Ahead::new(2);
            assert_eq!(ahead.enter(7, true, false, &habit), 7..8);
            ahead.enter(8, true, true, &habit);
        }
    }
}

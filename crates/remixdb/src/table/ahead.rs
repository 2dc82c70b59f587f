//! [`Ahead`]: which pages a walk announces to the device before it reads them.
//!
//! The system's own reading ahead is off (disk/files.rs): it takes pages that were read at random, and lie beside each
//! other, for a sequence, and reads up to megabytes after them. A walk knows that it goes on. What it announces
//! doubles with each page that it enters, so a short walk reads little that it does not need, and a long one waits for
//! large reads only.

use std::ops::Range;

/// Maximum number of pages that are announced ahead: 256 KiB.
const MOST: i64 = 64;

/// The pages that a walk through one section of a file has announced.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ahead {
    /// Pages that are announced after the first.
    first: i64,
    /// Pages that are announced after the current one.
    window: i64,
    /// The current page, and the first one that was not announced; negative for a walk backward.
    at: i64,
    to: i64,
}

impl Ahead {
    /// Nowhere yet. The walk announces this many pages after the first one that it enters.
    pub(super) const fn new(first: u32) -> Ahead {
        Ahead { first: first as i64, window: 0, at: i64::MIN, to: i64::MIN }
    }

    /// The walk enters a page. Returns the pages to announce, that page included if it was not announced; they are no
    /// more than there are, so the caller cuts them off at the ends of the section.
    #[inline]
    pub(super) fn enter(&mut self, page: u64, forward: bool) -> Range<u64> {
        // Backward is forward with all signs changed. Page numbers have 32 bits.
        let at = if forward { page as i64 } else { -(page as i64) };
        if self.at.checked_add(1) == Some(at) {
            self.window = (self.window * 2).clamp(1, MOST);
        } else {
            (self.window, self.to) = (self.first, at);
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
                let mut ahead = Ahead::new(first);
                let (mut announced, mut calls) = (Vec::new(), 0);
                let pages: Vec<u64> =
                    if forward { (100..1100).collect() } else { (100..1100).rev().collect() };
                for &page in &pages {
                    let range = ahead.enter(page, forward);
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
        let mut ahead = Ahead::new(2);
        assert_eq!(ahead.enter(7, true), 7..10);
        assert_eq!(ahead.enter(8, true), 0..0);
        assert_eq!(ahead.enter(9, true), 10..18);
        assert_eq!(ahead.enter(10, true), 0..0);
        assert_eq!(ahead.enter(11, true), 18..44);
        assert_eq!(ahead.enter(7, true), 7..10);
        assert_eq!(ahead.enter(0, false), 0..1, "there is none before");
        assert_eq!(Ahead::new(0).enter(5, true), 5..6);
        assert_eq!(Ahead::new(2).enter(5, false), 3..6);
    }
}

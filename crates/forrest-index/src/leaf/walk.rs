//! Going through a leaf's records in key order, both ways, as they were at one moment: runs of built records,
//! and the appended ones between them.

use super::found::Found;
use super::{Cell, Leaf, Order, Record, Sorted, UNIT};
use crate::key::{Composed, Key};
use crate::node::Share;
use std::cmp::Ordering::{Equal, Greater, Less};
use std::ops::{Bound, ControlFlow, Range};

/// With fewer records left in a leaf the next one is fetched.
pub(crate) const FETCH_AHEAD_BELOW: usize = 48;

/// Where a record stands in its leaf.
#[derive(Clone, Copy)]
pub(crate) enum Stands {
    /// Among the built ones, at a position in key order.
    Built(usize),
    /// Among the appended ones, by number.
    Appended(usize),
}

/// The records of a leaf between two bounds, without tombstones and hidden records.
pub(crate) struct Walk<'g> {
    leaf: Leaf<'g>,
    sorted: Sorted<'g>,
    order: Order,
    /// Positions, in key order, of built and of appended records.
    built: Range<usize>,
    listed: Range<usize>,
}

impl<'g> Leaf<'g> {
    /// All records.
    pub(crate) fn walk(self) -> Walk<'g> {
        let order = self.order();
        Walk { leaf: self, sorted: self.sorted(), order, built: 0..self.built(), listed: 0..order.listed() }
    }

    /// The records between two bounds; the search for them begins at `share`.
    pub(crate) fn walk_between(self, lower: Bound<&[u8]>, upper: Bound<&[u8]>, share: Share) -> Walk<'g> {
        let mut walk = self.walk();
        match lower {
            Bound::Unbounded => {}
            Bound::Included(key) => (walk.built.start, walk.listed.start) = walk.position(key, false, share),
            Bound::Excluded(key) => (walk.built.start, walk.listed.start) = walk.position(key, true, share),
        }
        match upper {
            Bound::Unbounded => {}
            Bound::Included(key) => (walk.built.end, walk.listed.end) = walk.position(key, true, share),
            Bound::Excluded(key) => (walk.built.end, walk.listed.end) = walk.position(key, false, share),
        }
        walk.built.end = walk.built.end.max(walk.built.start);
        walk.listed.end = walk.listed.end.max(walk.listed.start);
        walk
    }
}

/// The position of a suffix among the built records from a position on, and whether one of them has it. The search
/// begins nearby, at records that the scan will read anyway. Arguments are passed by value, so that a loop keeps its
/// state in registers.
#[inline(never)]
pub(super) fn meets(sorted: Sorted<'_>, from: usize, suffix: &[u8]) -> (usize, bool) {
    let at = sorted.lower_bound_from(from, suffix);
    (at, at < sorted.len() && sorted.at(at).suffix == suffix)
}

/// The same among those before a position.
#[inline(never)]
fn meets_back(sorted: Sorted<'_>, to: usize, suffix: &[u8]) -> (usize, bool) {
    let at = sorted.lower_bound_to(to, suffix);
    (at, at < to && sorted.at(at).suffix == suffix)
}

impl<'g> Walk<'g> {
    /// The first positions at a key, or after it.
    fn position(&self, key: &[u8], after: bool, share: Share) -> (usize, usize) {
        match self.leaf.against_prefix(&Key::new(key)) {
            Less => (0, 0),
            Greater => (self.leaf.built(), self.order.listed()),
            Equal => {
                let suffix = &key[self.leaf.prefix().len()..];
                let (listed, equal) = self.leaf.lower_bound_appended(self.order, suffix);
                let mut built = self.sorted.lower_bound_near(suffix, share.of(self.leaf.built()));
                if after && built < self.leaf.built() && self.sorted.at(built).suffix == suffix {
                    built += 1;
                }
                (built, listed + usize::from(after && equal))
            }
        }
    }

    /// Calls `each` with every blob of the leaf that the walk does not show: hidden ones.
    pub(crate) fn hidden_blobs(leaf: Leaf<'g>, mut each: impl FnMut(super::Blob)) {
        let order = leaf.order();
        let mut listed = [false; super::APPENDED_MAX];
        let numbers = (0..order.listed()).map(|position| order.number(position));
        numbers.for_each(|number| listed[number] = true);
        for number in (0..order.appended()).filter(|&number| !listed[number]) {
            leaf.appended_record(number).cell.blob().into_iter().for_each(&mut each);
        }
        let sorted = leaf.sorted();
        let mut from = 0;
        for position in 0..order.listed() {
            let (at, hides) = meets(sorted, from, leaf.appended_record(order.number(position)).suffix);
            from = at;
            if hides {
                sorted.at(at).cell.blob().into_iter().for_each(&mut each);
            }
        }
    }

    /// Calls `each` with every blob of the leaf, shown or hidden.
    pub(crate) fn all_blobs(leaf: Leaf<'g>, mut each: impl FnMut(super::Blob)) {
        let built = (0..leaf.built()).map(|number| leaf.built_record(number));
        let appended = (0..leaf.order().appended()).map(|number| leaf.appended_record(number));
        built.chain(appended).filter_map(|record| record.cell.blob()).for_each(&mut each);
    }

    /// True if the suffixes are words of one length, for [`Walk::try_each_word`].
    #[inline(always)]
    pub(crate) fn is_of_words(&self) -> bool {
        self.sorted.is_of_words()
    }

    /// Shows the records from first to last, or from last to first if `BACK`, until `see` breaks; `key` has
    /// begun with the leaf's prefix. When few are left `ahead` is called. The walk is one of words: built and
    /// appended records are merged by comparing them as numbers.
    #[inline(always)]
    pub(crate) fn try_each_word<const BACK: bool>(
        &self,
        key: &mut Composed,
        ahead: impl Fn(),
        mut see: impl FnMut(&[u8], Found<'g>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Walk { leaf, sorted, order, ref built, ref listed } = *self;
        let Sorted { records, stride, suffix_len, .. } = sorted;
        let (mask, last_word) = (sorted.word_mask(), key.last_word(suffix_len));
        let appended = leaf.0.address().wrapping_add(usize::from(leaf.head().appended) * UNIT);
        // SAFETY: all records that are looked at have eight bytes and were built, or appended and published.
        let raw = |at: *const u8| unsafe { at.cast::<u64>().read_unaligned() };
        // The next appended record and its suffix; beyond all, and null, if there is none.
        let mut listed = listed.clone();
        let mut next = || match if BACK { listed.next_back() } else { listed.next() } {
            Some(position) => {
                let at = appended.wrapping_add(order.number(position) * stride);
                (at, u64::from_be(raw(at)) & mask)
            }
            None => (std::ptr::null(), if BACK { 0 } else { u64::MAX }),
        };
        let (mut next_at, mut next_word) = next();
        let first = if BACK { built.end.wrapping_sub(1) } else { built.start };
        let mut built_at = records.wrapping_add(first.wrapping_mul(stride));
        let step = |at: *const u8| if BACK { at.wrapping_sub(stride) } else { at.wrapping_add(stride) };
        let mut rest = built.len().min(FETCH_AHEAD_BELOW);
        let mut left = built.len() - rest;
        'records: loop {
            let (at, word) = 'at: {
                if left > 0 {
                    let record = built_at;
                    let word = u64::from_be(raw(record)) & mask;
                    let is_before = if BACK { word > next_word } else { word < next_word };
                    if is_before || next_at.is_null() {
                        (built_at, left) = (step(built_at), left - 1);
                        break 'at (record, word);
                    }
                    if word == next_word {
                        (built_at, left) = (step(built_at), left - 1);
                    }
                } else if rest > 0 {
                    ahead();
                    (left, rest) = (rest, 0);
                    continue 'records;
                } else if next_at.is_null() {
                    return ControlFlow::Continue(());
                }
                let appended = (next_at, next_word);
                (next_at, next_word) = next();
                appended
            };
            // SAFETY: in every record a cell follows the suffix.
            let Some(value) = (unsafe { Found::read(at.add(suffix_len)) }) else { continue };
            see(key.with_word(word, last_word), value)?;
        }
    }

    /// Shows the records from first to last until `see` breaks, and where each stands.
    #[inline(always)]
    pub(crate) fn try_each(
        &self,
        mut see: impl FnMut(Record<'g>, Stands) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Walk { leaf, sorted, order, ref built, ref listed } = *self;
        let Range { start: mut position, end } = *built;
        let Range { start: mut listed, end: listed_end } = *listed;
        // The run of built records before the next appended one, and what follows the one it hides.
        let run = |listed, from| match listed_end > listed {
            true => {
                let (at, hides) = meets(sorted, from, leaf.appended_record(order.number(listed)).suffix);
                (at.min(end), at + usize::from(hides))
            }
            false => (end, end),
        };
        let (mut run_end, mut after) = run(listed, position);
        loop {
            let (record, stands) = if position < run_end {
                position += 1;
                (sorted.at(position - 1), Stands::Built(position - 1))
            } else if listed < listed_end {
                let number = order.number(listed);
                let record = leaf.appended_record(number);
                position = position.max(after);
                listed += 1;
                (run_end, after) = run(listed, position);
                if matches!(record.cell, Cell::Tombstone) {
                    continue;
                }
                (record, Stands::Appended(number))
            } else {
                return ControlFlow::Continue(());
            };
            see(record, stands)?;
        }
    }

    /// Shows the records from last to first until `see` breaks.
    #[inline(always)]
    pub(crate) fn try_each_back(
        &self,
        mut see: impl FnMut(Record<'g>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Walk { leaf, sorted, order, ref built, ref listed } = *self;
        let Range { start, end: mut position } = *built;
        let Range { start: listed_start, end: mut listed } = *listed;
        let run = |listed: usize, to| match listed_start < listed {
            true => {
                let suffix = leaf.appended_record(order.number(listed - 1)).suffix;
                let (at, hides) = meets_back(sorted, to, suffix);
                ((at + usize::from(hides)).max(start), at)
            }
            false => (start, start),
        };
        let (mut run_start, mut before) = run(listed, position);
        loop {
            let record = if position > run_start {
                position -= 1;
                sorted.at(position)
            } else if listed > listed_start {
                listed -= 1;
                let record = leaf.appended_record(order.number(listed));
                position = position.min(before);
                (run_start, before) = run(listed, position);
                if matches!(record.cell, Cell::Tombstone) {
                    continue;
                }
                record
            } else {
                return ControlFlow::Continue(());
            };
            see(record)?;
        }
    }

    /// How many records there are at the most.
    pub(crate) fn len(&self) -> usize {
        self.built.len() + self.listed.len()
    }

    /// How many records there are.
    pub(crate) fn count(&self) -> usize {
        if self.listed.is_empty() {
            return self.built.len();
        }
        let mut count = 0;
        let _ = self.try_each(|_, _| {
            count += 1;
            ControlFlow::Continue(())
        });
        count
    }
}

//! Going through a leaf's records in key order, both ways, as they were at one moment: runs of built records,
//! and the appended ones between them.

use super::{Cell, Leaf, Order, Record, Sorted};
use crate::key::Key;
use std::cmp::Ordering::{Equal, Greater, Less};
use std::ops::{Bound, ControlFlow, Range};

/// The records of a leaf between two bounds. Tombstones, and what they or other appended records hide, are
/// left out.
pub(crate) struct Walk<'g> {
    leaf: Leaf<'g>,
    sorted: Sorted<'g>,
    order: Order,
    /// Positions still to come, in key order, of built and of appended records.
    built: Range<usize>,
    listed: Range<usize>,
    /// Of the first listed record still to come, what [`Walk::meets`] says, once it was asked.
    front: Option<(usize, bool)>,
}

impl<'g> Leaf<'g> {
    /// All records.
    pub(crate) fn walk(self) -> Walk<'g> {
        let order = self.order();
        Walk {
            leaf: self,
            sorted: self.sorted(),
            order,
            built: 0..self.built(),
            listed: 0..order.listed(),
            front: None,
        }
    }

    /// The records between two bounds.
    pub(crate) fn walk_between(self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Walk<'g> {
        let mut walk = self.walk();
        match lower {
            Bound::Unbounded => {}
            Bound::Included(key) => (walk.built.start, walk.listed.start) = walk.position(key, false),
            Bound::Excluded(key) => (walk.built.start, walk.listed.start) = walk.position(key, true),
        }
        match upper {
            Bound::Unbounded => {}
            Bound::Included(key) => (walk.built.end, walk.listed.end) = walk.position(key, true),
            Bound::Excluded(key) => (walk.built.end, walk.listed.end) = walk.position(key, false),
        }
        walk.built.end = walk.built.end.max(walk.built.start);
        walk.listed.end = walk.listed.end.max(walk.listed.start);
        walk
    }
}

/// Where a suffix belongs among the built records, and whether one of them has it. Takes all by value, so that
/// what a loop keeps in registers stays there.
#[inline(never)]
fn meets(sorted: Sorted<'_>, suffix: &[u8]) -> (usize, bool) {
    let at = sorted.lower_bound(suffix);
    (at, at < sorted.len() && sorted.at(at).suffix == suffix)
}

impl<'g> Walk<'g> {
    /// The first positions at a key, or after it.
    fn position(&self, key: &[u8], after: bool) -> (usize, usize) {
        match self.leaf.against_prefix(&Key::new(key)) {
            Less => (0, 0),
            Greater => (self.leaf.built(), self.order.listed()),
            Equal => {
                let suffix = &key[self.leaf.prefix().len()..];
                let mut built = self.sorted.lower_bound(suffix);
                if after && built < self.leaf.built() && self.sorted.at(built).suffix == suffix {
                    built += 1;
                }
                let (listed, equal) = self.leaf.lower_bound_appended(self.order, suffix);
                (built, listed + usize::from(after && equal))
            }
        }
    }

    fn appended(&self, position: usize) -> Record<'g> {
        self.leaf.appended_record(self.order.number(position))
    }

    /// Where an appended record belongs among the built ones, and whether it hides the one there.
    fn meets(&self, listed: usize) -> (usize, bool) {
        meets(self.sorted, self.appended(listed).suffix)
    }

    /// The next record, and its position if it was built; tombstones are not left out.
    #[inline(always)]
    fn step(&mut self) -> Option<(Record<'g>, Option<usize>)> {
        if !self.listed.is_empty() {
            let (at, hides) = match self.front {
                Some(meets) => meets,
                None => *self.front.insert(self.meets(self.listed.start)),
            };
            if self.built.start >= at.min(self.built.end) {
                self.built.start += usize::from(hides && self.built.start == at && !self.built.is_empty());
                self.listed.start += 1;
                self.front = None;
                return Some((self.appended(self.listed.start - 1), None));
            }
        }
        let position = self.built.next()?;
        Some((self.sorted.at(position), Some(position)))
    }

    /// As `next`, with the record's tag where it is known.
    pub(super) fn next_tagged(&mut self) -> Option<(Record<'g>, u8)> {
        loop {
            let listed = self.listed.start;
            let (record, position) = self.step()?;
            if matches!(record.cell, Cell::Tombstone) {
                continue;
            }
            let tag = match position {
                Some(position) => self.leaf.sorted_tag(position),
                None => self.leaf.appended_tag(self.order.number(listed)),
            };
            return Some((record, tag));
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
        let walk = leaf.walk();
        for (at, hides) in (0..order.listed()).map(|listed| walk.meets(listed)) {
            if hides {
                walk.sorted.at(at).cell.blob().into_iter().for_each(&mut each);
            }
        }
    }

    /// Calls `each` with every blob of the leaf, shown or hidden.
    pub(crate) fn all_blobs(leaf: Leaf<'g>, mut each: impl FnMut(super::Blob)) {
        let built = (0..leaf.built()).map(|number| leaf.built_record(number));
        let appended = (0..leaf.order().appended()).map(|number| leaf.appended_record(number));
        built.chain(appended).filter_map(|record| record.cell.blob()).for_each(&mut each);
    }

    /// Shows the records from first to last until `see` breaks.
    #[inline(always)]
    pub(crate) fn try_each(self, mut see: impl FnMut(Record<'g>) -> ControlFlow<()>) -> ControlFlow<()> {
        let Walk { leaf, sorted, order, built, listed, .. } = self;
        let Range { start: mut position, end } = built;
        let Range { start: mut listed, end: listed_end } = listed;
        // The run of built records before the next appended one, and what follows the one it hides.
        let run = |listed| match listed_end > listed {
            true => {
                let (at, hides) = meets(sorted, leaf.appended_record(order.number(listed)).suffix);
                (at.min(end), at + usize::from(hides))
            }
            false => (end, end),
        };
        let (mut run_end, mut after) = run(listed);
        loop {
            let record = if position < run_end {
                position += 1;
                sorted.at(position - 1)
            } else if listed < listed_end {
                let record = leaf.appended_record(order.number(listed));
                position = position.max(after);
                listed += 1;
                (run_end, after) = run(listed);
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

    /// Shows the records from last to first until `see` breaks.
    #[inline(always)]
    pub(crate) fn try_each_back(self, mut see: impl FnMut(Record<'g>) -> ControlFlow<()>) -> ControlFlow<()> {
        let Walk { leaf, sorted, order, built, listed, .. } = self;
        let Range { start, end: mut position } = built;
        let Range { start: listed_start, end: mut listed } = listed;
        let run = |listed: usize| match listed_start < listed {
            true => {
                let (at, hides) = meets(sorted, leaf.appended_record(order.number(listed - 1)).suffix);
                ((at + usize::from(hides)).max(start), at)
            }
            false => (start, start),
        };
        let (mut run_start, mut before) = run(listed);
        loop {
            let record = if position > run_start {
                position -= 1;
                sorted.at(position)
            } else if listed > listed_start {
                listed -= 1;
                let record = leaf.appended_record(order.number(listed));
                position = position.min(before);
                (run_start, before) = run(listed);
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

    /// How many records are still to come at the most.
    pub(crate) fn len(&self) -> usize {
        self.built.len() + self.listed.len()
    }

    /// How many records are still to come, without looking at them, if that is known.
    pub(crate) fn len_if_plain(&self) -> Option<usize> {
        self.listed.is_empty().then_some(self.built.len())
    }
}

impl<'g> Iterator for Walk<'g> {
    type Item = Record<'g>;

    #[inline]
    fn next(&mut self) -> Option<Record<'g>> {
        loop {
            let (record, _) = self.step()?;
            if !matches!(record.cell, Cell::Tombstone) {
                return Some(record);
            }
        }
    }
}

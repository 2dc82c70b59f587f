//! Going through a leaf's records in key order, both ways, as they were at one moment.

use super::{Cell, Leaf, Order, Record, Sorted};
use crate::key::Key;
use std::cmp::Ordering::{Equal, Greater, Less};
use std::ops::{Bound, Range};

/// The records of a leaf between two bounds. Tombstones, and what they or other appended records hide, are
/// left out.
pub(crate) struct Walk<'g> {
    leaf: Leaf<'g>,
    sorted: Sorted<'g>,
    order: Order,
    /// Positions still to come, in key order, of built and of appended records.
    built: Range<usize>,
    listed: Range<usize>,
    /// Of the first and the last listed record still to come, what [`Walk::meets`] says, once it was asked.
    front: Option<(usize, bool)>,
    back: Option<(usize, bool)>,
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
            back: None,
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
        let suffix = self.appended(listed).suffix;
        let at = self.sorted.lower_bound(suffix);
        (at, at < self.leaf.built() && self.sorted.at(at).suffix == suffix)
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

    #[inline(always)]
    fn step_back(&mut self) -> Option<Record<'g>> {
        if !self.listed.is_empty() {
            let (at, hides) = match self.back {
                Some(meets) => meets,
                None => *self.back.insert(self.meets(self.listed.end - 1)),
            };
            if self.built.end <= (at + usize::from(hides)).max(self.built.start) {
                self.built.end -= usize::from(hides && self.built.end == at + 1 && !self.built.is_empty());
                self.listed.end -= 1;
                self.back = None;
                return Some(self.appended(self.listed.end));
            }
        }
        self.built.next_back().map(|position| self.sorted.at(position))
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

impl DoubleEndedIterator for Walk<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        loop {
            let record = self.step_back()?;
            if !matches!(record.cell, Cell::Tombstone) {
                return Some(record);
            }
        }
    }
}

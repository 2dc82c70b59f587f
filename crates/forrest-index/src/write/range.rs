//! Removing the keys of a range, in a batch: whole subtrees at a time, and at the range's ends a part of a leaf.
//!
//! [`Writer::remove_run`] begins at the least key that may be left. If subtrees begin there and end in the range, one
//! empty subtree takes their place. They are as high as they can be, so a range takes about two steps for each level.
//! The removed leaves are visited only to count their keys and to be freed.

use super::{Parent, Writer};
use crate::arena::Purpose;
use crate::error::Error;
use crate::inner::{Children, InnerNode};
use crate::key::{Key, Pieces};
use crate::leaf::build::{self, Entries};
use crate::node::Slot;
use crate::place::{self, Target};
use crate::reclaim::Garbage;
use forrest_machine::prefetch;
use std::cmp::Ordering::Greater;
use std::ops::{Bound, ControlFlow, Range};

/// What gets the keys and stamps of removed values that have stamps.
type Stamped<'s> = &'s mut dyn FnMut(&[u8], u64);

/// Subtrees next to each other, all of whose keys are removed.
struct Whole<'g> {
    /// The node above; none for the whole tree.
    above: Option<InnerNode<'g>>,
    /// Which of its children they are.
    children: Range<usize>,
    /// The least key beyond them; none at the end of the tree.
    end: Option<Pieces<'g>>,
}

impl<'a> Writer<'a> {
    /// Removes the keys of a range from whole subtrees or from one leaf, those that have the first of them. Returns how
    /// many there were and whether the range goes on, with the key to go on from in `lower`, which stays as it is on an
    /// error. Only a batch may call this.
    pub(crate) fn remove_run(
        &self,
        lower: &mut Vec<u8>,
        upper: Bound<&[u8]>,
        stamped: Stamped<'_>,
    ) -> Result<(u64, bool), Error> {
        self.purpose.set(Purpose::Removal);
        match self.find_whole(lower, upper) {
            Some(whole) => self.remove_whole(whole, lower, upper, stamped),
            None => self.remove_part(lower, upper, stamped),
        }
    }

    /// The highest subtrees that begin with `from` and end within the range.
    fn find_whole(&self, from: &[u8], upper: Bound<&[u8]>) -> Option<Whole<'a>> {
        let is_within = |end: Option<Pieces<'_>>| match (end, upper) {
            (_, Bound::Unbounded) => true,
            (None, _) => false,
            (Some(end), Bound::Included(upper) | Bound::Excluded(upper)) => end.compare(upper) != Greater,
        };
        let key = Key::new(from);
        let (mut node, mut begins, mut end) = (self.node(self.root()), from.is_empty(), None);
        if begins && is_within(end) {
            return Some(Whole { above: None, children: 0..1, end });
        }
        while node.level() > 0 {
            let inner = InnerNode::new(node);
            let (index, children) = (inner.route(&key), inner.children());
            let end_of = |index: usize| if index + 1 < children { Some(inner.separator(index)) } else { end };
            begins = if index > 0 { inner.separator(index - 1).compare(from).is_eq() } else { begins };
            let count = (index..children).take_while(|&index| begins && is_within(end_of(index))).count();
            if count > 0 {
                let children = index..index + count;
                return Some(Whole { above: Some(inner), end: end_of(children.end - 1), children });
            }
            (end, node) = (end_of(index), self.node(inner.child(index)));
        }
        None
    }

    /// Puts an empty subtree in the place of others.
    fn remove_whole(
        &self,
        whole: Whole<'a>,
        lower: &mut Vec<u8>,
        upper: Bound<&[u8]>,
        stamped: Stamped<'_>,
    ) -> Result<(u64, bool), Error> {
        let Whole { above, children, end } = whole;
        let next = end.map(|end| end.0.concat());
        let (level, old): (u8, Vec<Slot>) = match above {
            Some(inner) => (inner.node().level() - 1, children.clone().map(|at| inner.child(at)).collect()),
            None => (0, vec![self.root()]),
        };
        let empty = self.build_empty(level)?;
        let mut new = Children::with_capacity(1);
        new.push(empty, Pieces::default());
        let parent = match above {
            Some(inner) => {
                let lock = inner.node().lock().expect("no other thread writes beside a batch");
                Parent::Node { inner, lock, index: children.start }
            }
            None => self.lock_root(),
        };
        if let Err(error) = self.install(parent, children, &new, &Key::new(lower), 0) {
            self.tree.free_below(empty, self.era, self.guard);
            return Err(error);
        }
        let removed = old.into_iter().map(|slot| self.discard_below(slot, stamped)).sum();
        self.count(-(removed as i64));
        let more = next.as_ref().is_some_and(|next| place::within(next, upper));
        *lower = next.unwrap_or_default();
        Ok((removed, more))
    }

    /// An empty leaf, below nodes of one child up to a level.
    fn build_empty(&self, level: u8) -> Result<Slot, Error> {
        let mut slot = build::build(self.supply(), self.era, &[]).ok_or(Error::OutOfMemory(256))?;
        for level in 1..=level {
            let mut child = Children::with_capacity(1);
            child.push(slot, Pieces::default());
            slot = self.build(&child, 0..1, level).inspect_err(|_| {
                self.tree.free_below(slot, self.era, self.guard);
            })?;
        }
        Ok(slot)
    }

    /// Discards a subtree that is no longer linked, with its values, and returns how many keys it had.
    fn discard_below(&self, slot: Slot, stamped: Stamped<'_>) -> u64 {
        let node = self.node(slot);
        let keys = if node.level() > 0 {
            let inner = InnerNode::new(node);
            let children = || (0..inner.children()).map(|at| inner.child(at));
            children().for_each(|child| prefetch::read(self.node(child).address()));
            children().map(|child| self.discard_below(child, stamped)).sum()
        } else {
            let leaf = self.leaf(node);
            let keys = leaf.walk().count() as u64;
            if leaf.has_blobs() {
                let mut key = Vec::new();
                let _ = leaf.walk().try_each(|record, _| {
                    if record.cell.stamp() != 0 {
                        key.clear();
                        key.extend_from_slice(leaf.prefix());
                        key.extend_from_slice(record.suffix);
                        stamped(&key, record.cell.stamp());
                    }
                    ControlFlow::Continue(())
                });
            }
            self.undo_staged(leaf);
            keys
        };
        self.discard(node.era(), Garbage::node(node, false));
        keys
    }

    /// Removes the keys of the range from the leaf that has the first of them.
    fn remove_part(
        &self,
        lower: &mut Vec<u8>,
        upper: Bound<&[u8]>,
        stamped: Stamped<'_>,
    ) -> Result<(u64, bool), Error> {
        let from = std::mem::take(lower);
        let key = Key::new(&from);
        let (_, leaf, lock) = self.lock_leaf(&key);
        let more = place::find_place(self.tree, self.root(), Target::At(&key), self.guard).upper_fence(lower)
            && place::within(lower, upper);
        let mut entries = Entries::new();
        entries.gather(leaf);
        let total = entries.0.len();
        let (mut dropped, mut stamps) = (Vec::new(), Vec::new());
        let mut scratch = Vec::new();
        entries.0.retain(|entry| {
            scratch.clear();
            scratch.extend_from_slice(entry.lead);
            scratch.extend_from_slice(entry.tail);
            let inside = scratch >= from && place::within(&scratch, upper);
            if inside {
                dropped.extend(entry.cell.blob());
                if entry.cell.stamp() != 0 {
                    stamps.push((scratch.clone(), entry.cell.stamp()));
                }
            }
            !inside
        });
        let removed = total - entries.0.len();
        if removed > 0 || (total == 0 && leaf.built() > 0) {
            if let Err(error) = self.replace((leaf, lock), &key, entries, None, &dropped) {
                *lower = from;
                return Err(error);
            }
            self.count(-(removed as i64));
        }
        stamps.iter().for_each(|(key, stamp)| stamped(key, *stamp));
        Ok((removed as u64, more))
    }
}

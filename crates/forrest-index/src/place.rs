//! [`Place`]: a leaf that a descent found, with the path that leads to the leaves beside it.

use crate::descent::{self, TreeInner};
use crate::epoch::Guard;
use crate::inner::InnerNode;
use crate::key::Key;
use crate::node::{Node, Share, Slot};
use crate::options::Direction;
use crate::simd::{Isa, dispatch};
use forrest_machine::prefetch;
use std::ops::Bound;

/// Lines of records that a scan fetches before it begins: it goes on in order, which the processor notices.
const FETCH_LINES: usize = 14;

/// True if a key is not beyond an upper bound.
#[inline(always)]
pub(crate) fn within(key: &[u8], upper: Bound<&[u8]>) -> bool {
    match upper {
        Bound::Unbounded => true,
        Bound::Included(upper) => key <= upper,
        Bound::Excluded(upper) => key < upper,
    }
}

/// True if no key can be between the bounds.
pub(crate) fn is_empty(lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> bool {
    match (lower, upper) {
        (Bound::Unbounded, Bound::Excluded(upper)) => upper.is_empty(),
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(lower), Bound::Included(upper)) => lower > upper,
        (
            Bound::Included(lower) | Bound::Excluded(lower),
            Bound::Included(upper) | Bound::Excluded(upper),
        ) => lower >= upper,
    }
}

/// Which leaf to find.
#[derive(Clone, Copy)]
pub(crate) enum Target<'k> {
    First,
    Last,
    /// The one that the key belongs to.
    At(&'k Key<'k>),
    /// The one with the largest keys below the key.
    Before(&'k Key<'k>),
}

/// A leaf, and the way to the leaves beside it.
#[derive(Clone, Copy)]
pub(crate) struct Place<'g> {
    pub(crate) node: Node<'g>,
    slot: Slot,
    /// How far into the leaf the target is.
    pub(crate) share: Share,
    /// The node above and which of its children the leaf is; none where the root is a leaf.
    parent: Option<(InnerNode<'g>, usize)>,
    /// The separators next to the parent's range, each as a node and an index; none at the ends of the tree.
    lower: Option<(InnerNode<'g>, usize)>,
    upper: Option<(InnerNode<'g>, usize)>,
}

impl<'g> Place<'g> {
    /// Finds a leaf.
    ///
    /// # Safety
    /// The processor has the instruction set.
    #[inline(always)]
    unsafe fn find<I: Isa>(tree: &TreeInner, root: Slot, target: Target<'_>, guard: &'g Guard) -> Place<'g> {
        let node = tree.node(root, guard);
        let share = match target {
            Target::First => Share::NONE,
            Target::Last => Share::ALL,
            Target::At(_) | Target::Before(_) => Share::HALF,
        };
        let mut place = Place { node, slot: root, share, parent: None, lower: None, upper: None };
        let mut level = node.level();
        while level > 0 {
            (place.lower, place.upper) = (place.lower_separator(), place.upper_separator());
            let inner = InnerNode::new(place.node);
            let index = match target {
                Target::First => 0,
                Target::Last => inner.children() - 1,
                // SAFETY: the processor has `I`, as this function requires.
                Target::At(key) => unsafe { inner.route_by::<I>(key) },
                Target::Before(key) => inner.route_before(key),
            };
            place.parent = Some((inner, index));
            place.slot = inner.child(index);
            place.node = tree.node(place.slot, guard);
            level -= 1;
            if let (0, Target::At(key) | Target::Before(key)) = (level, target) {
                place.share = inner.share(index, key);
            }
        }
        place
    }

    fn lower_separator(&self) -> Option<(InnerNode<'g>, usize)> {
        match self.parent {
            Some((inner, index)) if index > 0 => Some((inner, index - 1)),
            _ => self.lower,
        }
    }

    fn upper_separator(&self) -> Option<(InnerNode<'g>, usize)> {
        match self.parent {
            Some((inner, index)) if index + 1 < inner.children() => Some((inner, index)),
            _ => self.upper,
        }
    }

    /// The leaf after, or before, if it has the same parent.
    #[inline]
    pub(crate) fn neighbour(
        &self,
        tree: &TreeInner,
        direction: Direction,
        guard: &'g Guard,
    ) -> Option<Place<'g>> {
        let (inner, index) = self.parent?;
        let (index, share) = match direction {
            Direction::Forward => (Some(index + 1).filter(|&index| index < inner.children())?, Share::NONE),
            Direction::Backward => (index.checked_sub(1)?, Share::ALL),
        };
        let slot = inner.child(index);
        Some(Place { node: tree.node(slot, guard), slot, share, parent: Some((inner, index)), ..*self })
    }

    /// Writes the least key beyond the leaf's range; false if the range has no end.
    pub(crate) fn upper_fence(&self, to: &mut Vec<u8>) -> bool {
        fence(self.upper_separator(), to)
    }

    /// Writes the least key of the leaf's range; false if it begins with the empty key.
    pub(crate) fn lower_fence(&self, to: &mut Vec<u8>) -> bool {
        fence(self.lower_separator(), to)
    }
}

/// Finds a leaf.
///
/// # Safety
/// The processor has the instruction set `I`.
#[inline(always)]
unsafe fn find_place_by<'g, I: Isa>(
    tree: &TreeInner,
    root: Slot,
    target: Target<'_>,
    guard: &'g Guard,
) -> Place<'g> {
    // SAFETY: the processor has `I`: `dispatch!` selects only instruction sets that it detected.
    unsafe { Place::find::<I>(tree, root, target, guard) }
}

dispatch! {
    /// Finds a leaf.
    pub(crate) fn find_place<'g>(tree: &TreeInner, root: Slot, target: Target<'_>, guard: &'g Guard) -> Place<'g>
        = find_place_by
}

fn fence(separator: Option<(InnerNode<'_>, usize)>, to: &mut Vec<u8>) -> bool {
    to.clear();
    let Some((inner, index)) = separator else { return false };
    inner.separator(index).0.into_iter().for_each(|piece| to.extend_from_slice(piece));
    true
}

/// Prefetches the first lines that a scan from a share of a leaf reads.
pub(crate) fn fetch_from(place: &Place<'_>, direction: Direction) {
    let (slot, share) = (place.slot, place.share);
    let at = place.node.address();
    prefetch::read(at);
    descent::fetch_appended(place.node, slot);
    if let Some(offset) = slot.offset_at(share) {
        prefetch::read(at.wrapping_add(offset));
    }
    let record = at.wrapping_add(slot.record_at(share));
    for line in 0..FETCH_LINES {
        let way = (64 * line).wrapping_sub(128);
        prefetch::read(match direction {
            Direction::Forward => record.wrapping_add(way),
            Direction::Backward => record.wrapping_sub(way),
        });
    }
}

//! Finding leaves and going from one to the next, forward and backward.
//!
//! Leaves have no links to their neighbours (a new leaf would have to change them). Under one pin the way from
//! one to the next is through their parent; it may have been replaced meanwhile, but what it points to was in
//! the tree when that happened, after the scan had begun. After some leaves the pin is let go, and the way is
//! the **fence** between them, a separator that the descent passed: the next leaf is the one that the fence
//! belongs to, the leaf before is the one with the largest keys below the fence. Either way each leaf is shown
//! as it was at one moment, and keys come in strict order.

use crate::Direction;
use crate::epoch::{self, Guard};
use crate::inner::Inner;
use crate::key::{Composed, Key};
use crate::leaf::Leaf;
use crate::leaf::found::Found;
use crate::leaf::walk::{FETCH_AHEAD_BELOW, Walk};
use crate::node::{Node, Share, Slot};
use crate::simd::{Isa, dispatch};
use crate::tree::{Reader, TreeInner};
use forrest_machine::prefetch;
use std::ops::{Bound, ControlFlow};

/// Lines of records that a scan fetches before it begins: it goes on in order, which the processor notices.
const FETCH_LINES: usize = 14;
/// So many leaves are shown before the pin is let go.
const LEAVES_UNDER_PIN: usize = 8;

/// Fetches a leaf's head, tags and the records about a share of them.
#[inline(always)]
pub(crate) fn fetch(node: Node<'_>, slot: Slot, share: Share) {
    let at = node.address();
    let record = at.wrapping_add(slot.record_at(share));
    prefetch::read(at);
    prefetch::read(at.wrapping_add(64));
    prefetch::read(at.wrapping_add(128));
    prefetch::read(record);
    prefetch::read(record.wrapping_sub(64));
    prefetch::read(record.wrapping_add(64));
    prefetch::read(record.wrapping_add(128));
    prefetch::read(record.wrapping_sub(128));
    if let Some(offset) = slot.offset_at(share) {
        prefetch::read(at.wrapping_add(offset));
    }
}

/// Fetches what a scan looks at first that begins at a share of a leaf.
fn fetch_from(node: Node<'_>, slot: Slot, share: Share, direction: Direction) {
    let at = node.address();
    prefetch::read(at);
    fetch_appended(node, slot);
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

/// Fetches where a leaf's appended records are.
#[inline(always)]
pub(crate) fn fetch_appended(node: Node<'_>, slot: Slot) {
    let at = node.address().wrapping_add(slot.extent());
    (0..4).for_each(|line| prefetch::read(at.wrapping_add(64 * line)));
}

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
    node: Node<'g>,
    slot: Slot,
    /// How far into the leaf the target is.
    share: Share,
    /// The node above and which of its children the leaf is; none where the root is a leaf.
    parent: Option<(Inner<'g>, usize)>,
    /// The separators next to the parent's range, each as a node and an index; none at the ends of the tree.
    lower: Option<(Inner<'g>, usize)>,
    upper: Option<(Inner<'g>, usize)>,
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
            let inner = Inner::new(place.node);
            let index = match target {
                Target::First => 0,
                Target::Last => inner.children() - 1,
                // SAFETY: by contract.
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

    fn lower_separator(&self) -> Option<(Inner<'g>, usize)> {
        match self.parent {
            Some((inner, index)) if index > 0 => Some((inner, index - 1)),
            _ => self.lower,
        }
    }

    fn upper_separator(&self) -> Option<(Inner<'g>, usize)> {
        match self.parent {
            Some((inner, index)) if index + 1 < inner.children() => Some((inner, index)),
            _ => self.upper,
        }
    }

    /// The leaf after, or before, if it has the same parent.
    #[inline]
    fn neighbour(&self, tree: &TreeInner, direction: Direction, guard: &'g Guard) -> Option<Place<'g>> {
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
    fn lower_fence(&self, to: &mut Vec<u8>) -> bool {
        fence(self.lower_separator(), to)
    }
}

#[inline(always)]
unsafe fn find_place_by<'g, I: Isa>(
    tree: &TreeInner,
    root: Slot,
    target: Target<'_>,
    guard: &'g Guard,
) -> Place<'g> {
    // SAFETY: by contract.
    unsafe { Place::find::<I>(tree, root, target, guard) }
}

dispatch! {
    /// Finds a leaf.
    pub(crate) fn find_place<'g>(tree: &TreeInner, root: Slot, target: Target<'_>, guard: &'g Guard) -> Place<'g>
        = find_place_by
}

fn fence(separator: Option<(Inner<'_>, usize)>, to: &mut Vec<u8>) -> bool {
    to.clear();
    let Some((inner, index)) = separator else { return false };
    inner.separator(index).into_iter().for_each(|piece| to.extend_from_slice(piece));
    true
}

/// A leaf on the way of a scan, and its part of the range.
struct Visit<'v, 'g> {
    leaf: Leaf<'g>,
    walk: Walk<'g>,
    /// True for the leaf that the scan begins with: it may well end there.
    first: bool,
    place: &'v Place<'g>,
    tree: &'v TreeInner,
    direction: Direction,
    guard: &'g Guard,
}

impl Visit<'_, '_> {
    /// Fetches the leaf that comes next, if it has the same parent.
    #[inline(never)]
    fn fetch_next(&self) {
        if let Some(next) = self.place.neighbour(self.tree, self.direction, self.guard) {
            fetch_from(next.node, next.slot, next.share, self.direction);
        }
    }

    /// The same, if the scan is likely to get there.
    fn fetch_early(&self) {
        if !self.first || self.walk.len() < FETCH_AHEAD_BELOW {
            self.fetch_next();
        }
    }
}

impl Reader {
    /// Shows the leaves of a range one after the other, each with a walk through its part of the range.
    #[inline(always)]
    fn leaves(
        &self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        mut see: impl FnMut(Visit<'_, '_>) -> ControlFlow<()>,
    ) {
        if is_empty(lower, upper) {
            return;
        }
        let mut fence = Vec::new();
        let mut first = true;
        loop {
            let guard = epoch::pin();
            let Some(root) = self.root() else { return };
            let (lower_here, upper_here) = match direction {
                _ if first => (lower, upper),
                Direction::Forward => (Bound::Included(&fence[..]), upper),
                Direction::Backward => (lower, Bound::Excluded(&fence[..])),
            };
            let mut place = self.first_place(root, lower_here, upper_here, direction, &guard);
            fetch_from(place.node, place.slot, place.share, direction);
            let mut walk = Leaf::new(place.node).walk_between(lower_here, upper_here, place.share);
            let mut more = true;
            for leaf_under_pin in 1.. {
                let (tree, guard, leaf) = (&*self.tree, &guard, Leaf::new(place.node));
                let visit = Visit { leaf, walk, first, place: &place, tree, direction, guard };
                if see(visit).is_break() {
                    return;
                }
                first = false;
                let beyond = match direction {
                    Direction::Forward => upper,
                    Direction::Backward => lower,
                };
                let next =
                    place.neighbour(tree, direction, guard).filter(|_| leaf_under_pin < LEAVES_UNDER_PIN);
                if next.is_none() || !matches!(beyond, Bound::Unbounded) {
                    more = match direction {
                        Direction::Forward => place.upper_fence(&mut fence) && within(&fence, upper),
                        Direction::Backward => {
                            place.lower_fence(&mut fence) && !is_empty(lower, Bound::Excluded(&fence))
                        }
                    };
                }
                match next {
                    Some(next) if more => place = next,
                    _ => break,
                }
                let leaf = Leaf::new(place.node);
                walk = match direction {
                    Direction::Forward => leaf.walk_between(Bound::Unbounded, upper, place.share),
                    Direction::Backward => leaf.walk_between(lower, Bound::Unbounded, place.share),
                };
            }
            if !more {
                return;
            }
        }
    }

    /// The leaf with which the scan of a range begins.
    #[inline]
    fn first_place<'g>(
        &self,
        root: Slot,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
    ) -> Place<'g> {
        let find = |target| find_place(&self.tree, root, target, guard);
        match (direction, lower, upper) {
            (Direction::Forward, Bound::Unbounded, _) => find(Target::First),
            (Direction::Forward, Bound::Included(key) | Bound::Excluded(key), _) => {
                find(Target::At(&Key::new(key)))
            }
            (Direction::Backward, _, Bound::Unbounded) => find(Target::Last),
            (Direction::Backward, _, Bound::Included(key)) => find(Target::At(&Key::new(key))),
            (Direction::Backward, _, Bound::Excluded(key)) => find(Target::Before(&Key::new(key))),
        }
    }

    /// Shows the pairs of a range in order until `see` breaks.
    ///
    /// What it shows of concurrent changes: keys come in strict order; a key that is there all the time is
    /// shown exactly once; one that comes or goes meanwhile may be shown or not; each pair was in the tree at
    /// some moment of the scan. A snapshot's reader shows its one state. `see` must be quick: memory that is
    /// unlinked while it runs is not freed.
    #[inline(always)]
    pub fn scan(
        &self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        mut see: impl FnMut(&[u8], Found<'_>) -> ControlFlow<()>,
    ) {
        // Wrapped, because what is called in several loops would else not be compiled into them.
        self.scan_in_loops(
            lower,
            upper,
            direction,
            #[inline(always)]
            |key, value| see(key, value),
        );
    }

    #[inline(always)]
    fn scan_in_loops(
        &self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        mut see: impl FnMut(&[u8], Found<'_>) -> ControlFlow<()>,
    ) {
        let mut key = Composed::take();
        // Each direction has loops of its own, into which `see` is compiled.
        match direction {
            Direction::Forward => self.leaves(lower, upper, direction, |visit| {
                key.begin(visit.leaf.prefix());
                if visit.walk.is_of_words() {
                    return visit.walk.try_each_word::<false>(&mut key, || visit.fetch_next(), &mut see);
                }
                visit.fetch_early();
                visit.walk.try_each(|record, _| match Found::of(record.cell) {
                    Some(value) => see(key.with(record.suffix), value),
                    None => ControlFlow::Continue(()),
                })
            }),
            Direction::Backward => self.leaves(lower, upper, direction, |visit| {
                key.begin(visit.leaf.prefix());
                if visit.walk.is_of_words() {
                    return visit.walk.try_each_word::<true>(&mut key, || visit.fetch_next(), &mut see);
                }
                visit.fetch_early();
                visit.walk.try_each_back(|record| match Found::of(record.cell) {
                    Some(value) => see(key.with(record.suffix), value),
                    None => ControlFlow::Continue(()),
                })
            }),
        }
    }

    /// The number of keys in a range; of concurrent changes it counts what a scan would show.
    pub fn count(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> u64 {
        let mut count = 0;
        self.leaves(lower, upper, Direction::Forward, |visit| {
            visit.fetch_early();
            count += visit.walk.count() as u64;
            ControlFlow::Continue(())
        });
        count
    }
}

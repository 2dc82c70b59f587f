//! Finding leaves and going from one to the next, forward and backward.
//!
//! Leaves have no links to their neighbours (a new leaf would have to change them). Under one pin a scan goes from
//! one leaf to the next through their parent. The parent may have been replaced meanwhile, but its children were in
//! the tree when that happened, after the scan had begun. After some leaves the scan unpins and continues from the
//! **fence** between two leaves, a separator that the descent passed: the next leaf is the one that the fence
//! belongs to, and the previous leaf is the one with the largest keys below the fence. Either way the scan shows each
//! leaf as it was at one moment, and keys come in strict order.

use crate::descent::TreeInner;
use crate::epoch::{self, Guard};
use crate::key::{Composed, Key};
use crate::leaf::Leaf;
use crate::leaf::found::Found;
use crate::leaf::walk::{FETCH_AHEAD_BELOW, Walk};
use crate::node::Slot;
use crate::options::Direction;
use crate::place::{Place, Target, fetch_from, find_place, is_empty, within};
use crate::tree::Reader;
use std::ops::{Bound, ControlFlow};

/// Number of leaves that a scan shows under one pin.
const LEAVES_UNDER_PIN: usize = 8;

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
            fetch_from(&next, self.direction);
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
            fetch_from(&place, direction);
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
    /// With concurrent changes: keys come in strict order; a key that is present during the whole scan is shown exactly
    /// once; a key that is inserted or removed meanwhile may be shown or not; each pair was in the tree at some moment
    /// of the scan. A snapshot's reader shows its one state. `see` must be quick: memory that is unlinked while it runs
    /// is not freed.
    #[inline(always)]
    pub fn scan(
        &self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        mut see: impl FnMut(&[u8], Found<'_>) -> ControlFlow<()>,
    ) {
        // Wrapped in a closure: otherwise the compiler does not inline `see` into several loops.
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
        // Each direction has separate loops, into which `see` is inlined.
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

    /// The number of keys in a range; it sees concurrent changes as a scan does.
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

//! Finding leaves and going from one to the next, forward and backward.
//!
//! Leaves have no links to their neighbours (a new leaf would have to change them). The way from one to the
//! next is the **fence** between them, a separator that the descent passed: the next leaf is the one that the
//! fence belongs to, the leaf before is the one with the largest keys below the fence. So a walk holds no pin
//! from leaf to leaf, and what happened in between is seen: each leaf is shown as it was at one moment, and
//! keys come in strict order.

use crate::Direction;
use crate::epoch::{self, Guard};
use crate::inner::Inner;
use crate::key::{self, Key};
use crate::leaf::walk::Walk;
use crate::leaf::{Cell, Leaf};
use crate::node::{Node, Slot};
use crate::simd::{Isa, dispatch};
use crate::tree::{Reader, TreeInner};
use forrest_machine::prefetch;
use std::ops::{Bound, ControlFlow};

/// With fewer records left in a leaf the next one is fetched at once.
const FETCH_AHEAD_BELOW: usize = 50;

/// Fetches a leaf's head, tags and the bucket of a hash.
#[inline(always)]
pub(crate) fn fetch(node: Node<'_>, slot: Slot, hash: u64) {
    let at = node.address();
    let (bucket, bytes) = slot.bucket(hash);
    prefetch::read(at);
    prefetch::read(at.wrapping_add(64));
    prefetch::read(at.wrapping_add(128));
    prefetch::read(at.wrapping_add(bucket));
    prefetch::read(at.wrapping_add(bucket + bytes));
}

/// Fetches where a leaf's appended records are.
#[inline(always)]
pub(crate) fn fetch_appended(node: Node<'_>, slot: Slot) {
    let at = node.address().wrapping_add(slot.extent());
    (0..4).for_each(|line| prefetch::read(at.wrapping_add(64 * line)));
}

/// Fetches all lines of a leaf's built part.
fn fetch_all(node: Node<'_>, slot: Slot) {
    for line in 0..slot.extent().div_ceil(64) {
        prefetch::read(node.address().wrapping_add(64 * line));
    }
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

/// A leaf, and the separators next to its range.
pub(crate) struct Place<'g> {
    node: Node<'g>,
    slot: Slot,
    /// The node and the index of the separator; none at the ends of the tree.
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
        let mut place = Place { node, slot: root, lower: None, upper: None };
        let mut level = node.level();
        while level > 0 {
            let inner = Inner::new(place.node);
            let last = inner.children() - 1;
            let index = match target {
                Target::First => 0,
                Target::Last => last,
                // SAFETY: by contract.
                Target::At(key) => unsafe { inner.route_by::<I>(key) },
                Target::Before(key) => inner.route_before(key),
            };
            if index > 0 {
                place.lower = Some((inner, index - 1));
            }
            if index < last {
                place.upper = Some((inner, index));
            }
            place.slot = inner.child(index);
            place.node = tree.node(place.slot, guard);
            level -= 1;
        }
        place
    }

    /// Fetches the leaf after, or before, if it has the same parent.
    fn fetch_neighbour(&self, tree: &TreeInner, direction: Direction, guard: &Guard) {
        let neighbour = match direction {
            Direction::Forward => self.upper.map(|(inner, index)| (inner, index + 1)),
            Direction::Backward => self.lower,
        };
        if let Some((inner, index)) = neighbour
            && inner.node().level() == 1
        {
            let slot = inner.child(index);
            fetch_all(tree.node(slot, guard), slot);
        }
    }

    /// Writes the least key beyond the leaf's range; false if the range has no end.
    pub(crate) fn upper_fence(&self, to: &mut Vec<u8>) -> bool {
        fence(self.upper, to)
    }

    /// Writes the least key of the leaf's range; false if it begins with the empty key.
    fn lower_fence(&self, to: &mut Vec<u8>) -> bool {
        fence(self.lower, to)
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

/// A key put together from a leaf's prefix and a record's suffix.
#[derive(Default)]
struct Composed {
    key: Vec<u8>,
    prefix_len: usize,
}

impl Composed {
    fn begin(&mut self, prefix: &[u8]) {
        self.key.clear();
        self.key.extend_from_slice(prefix);
        self.prefix_len = prefix.len();
    }

    #[inline(always)]
    fn with(&mut self, suffix: &[u8]) -> &[u8] {
        let len = self.prefix_len + suffix.len();
        if self.key.capacity() < len {
            self.key.reserve(suffix.len());
        }
        // SAFETY: there is room, and the bytes before the suffix are the prefix, which stays.
        unsafe {
            key::copy(suffix.as_ptr(), self.key.as_mut_ptr().add(self.prefix_len), suffix.len());
            self.key.set_len(len);
        }
        &self.key
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
        mut see: impl FnMut(Leaf<'_>, Walk<'_>) -> ControlFlow<()>,
    ) {
        if is_empty(lower, upper) {
            return;
        }
        let mut fence = Vec::new();
        let mut first = true;
        loop {
            let guard = epoch::pin();
            let Some(root) = self.root() else { return };
            let place = {
                let (lower, upper) = match direction {
                    _ if first => (lower, upper),
                    Direction::Forward => (Bound::Included(&fence[..]), upper),
                    Direction::Backward => (lower, Bound::Excluded(&fence[..])),
                };
                let from = match (direction, lower, upper) {
                    (Direction::Forward, Bound::Included(key) | Bound::Excluded(key), _) => {
                        Some(Key::new(key))
                    }
                    (Direction::Backward, _, Bound::Included(key) | Bound::Excluded(key)) => {
                        Some(Key::new(key))
                    }
                    _ => None,
                };
                let target = match (direction, &from) {
                    (Direction::Forward, None) => Target::First,
                    (Direction::Forward, Some(key)) => Target::At(key),
                    (Direction::Backward, None) => Target::Last,
                    (Direction::Backward, Some(key)) if matches!(upper, Bound::Included(_)) => {
                        Target::At(key)
                    }
                    (Direction::Backward, Some(key)) => Target::Before(key),
                };
                let place = find_place(&self.tree, root, target, &guard);
                fetch_all(place.node, place.slot);
                let leaf = Leaf::new(place.node);
                let walk = leaf.walk_between(lower, upper);
                if !first || walk.len() < FETCH_AHEAD_BELOW {
                    place.fetch_neighbour(&self.tree, direction, &guard);
                }
                if see(leaf, walk).is_break() {
                    return;
                }
                place
            };
            let more = match direction {
                Direction::Forward => place.upper_fence(&mut fence) && within(&fence, upper),
                Direction::Backward => {
                    place.lower_fence(&mut fence) && !is_empty(lower, Bound::Excluded(&fence))
                }
            };
            if !more {
                return;
            }
            first = false;
        }
    }

    /// Shows the keys and cells of a range in order until `see` breaks.
    #[inline(always)]
    pub(crate) fn scan_cells(
        &self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        mut see: impl FnMut(&[u8], Cell<'_>) -> ControlFlow<()>,
    ) {
        let mut key = Composed::default();
        // Each direction has a loop of its own, into which `see` is compiled.
        match direction {
            Direction::Forward => self.leaves(lower, upper, direction, |leaf, walk| {
                key.begin(leaf.prefix());
                walk.try_each(|record, _| see(key.with(record.suffix), record.cell))
            }),
            Direction::Backward => self.leaves(lower, upper, direction, |leaf, walk| {
                key.begin(leaf.prefix());
                walk.try_each_back(|record| see(key.with(record.suffix), record.cell))
            }),
        }
    }

    /// Shows the pairs of a range in order until `see` breaks.
    ///
    /// What it shows of concurrent changes: keys come in strict order; a key that is there all the time is
    /// shown exactly once; one that comes or goes meanwhile may be shown or not; each pair was in the tree at
    /// some moment of the scan. A snapshot's reader shows its one state. `see` must be quick: memory that is
    /// unlinked while it runs is not freed.
    #[inline]
    pub fn scan(
        &self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        mut see: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) {
        self.scan_cells(
            lower,
            upper,
            direction,
            #[inline(always)]
            |key, cell| match cell.bytes() {
                Some(value) => see(key, value),
                None => ControlFlow::Continue(()),
            },
        );
    }

    /// The number of keys in a range; of concurrent changes it counts what a scan would show.
    pub fn count(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> u64 {
        let mut count = 0;
        self.leaves(lower, upper, Direction::Forward, |_, walk| {
            count += walk.count() as u64;
            ControlFlow::Continue(())
        });
        count
    }
}

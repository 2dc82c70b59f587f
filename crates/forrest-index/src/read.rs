//! The read path of single keys: pin, descend, fetch, find. No lock, no fence, no store to shared memory, no
//! second try.

use crate::descent::{self, TreeInner};
use crate::epoch::{self, Guard};
use crate::hash;
use crate::inner::InnerNode;
use crate::key::Key;
use crate::leaf::found::Found;
use crate::leaf::{Cell, Leaf};
use crate::node::{Node, Share, Slot};
use crate::simd::{Isa, dispatch};
use crate::tree::Reader;
use crate::value::Value;

/// Keys that [`Reader::multi_get`] looks up side by side.
const SIDE_BY_SIDE: usize = 32;

impl Reader {
    #[inline(always)]
    fn see_cell<R>(&self, key: &[u8], see: impl FnOnce(Cell<'_>) -> Option<R>) -> Option<R> {
        let guard = epoch::pin();
        let hash = hash::hash(key);
        let key = Key::new(key);
        see(descent::find(&self.tree, self.root()?, &key, hash, &guard)?)
    }

    /// The value of a key.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Option<Value> {
        self.find(key, |value| value.to_value())
    }

    /// Passes the value of a key to `see`. As with [`Reader::get_with`], `see` must be quick.
    #[inline]
    pub fn find<R>(&self, key: &[u8], see: impl FnOnce(Found<'_>) -> R) -> Option<R> {
        self.see_cell(key, |cell| Found::of(cell).map(see))
    }

    /// Shows the value of a key to `see`, without a copy. `see` must be quick: memory that is unlinked while
    /// it runs is not freed.
    #[inline]
    pub fn get_with<R>(&self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.see_cell(key, |cell| cell.bytes().map(see))
    }

    /// True if the key is there.
    #[inline]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.see_cell(key, |_| Some(())).is_some()
    }

    /// Looks up many keys and passes each result to `see` with the position of its key. The memory accesses of
    /// several keys overlap. `see` must be quick, as with [`Reader::get_with`].
    #[inline]
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K], mut see: impl FnMut(usize, Option<Found<'_>>)) {
        for (group, keys) in keys.chunks(SIDE_BY_SIDE).enumerate() {
            self.get_group(keys, |i, value| see(group * SIDE_BY_SIDE + i, value));
        }
    }

    /// Prefetches what scans that begin at these keys will touch first. The memory accesses of several keys overlap.
    pub fn fetch_many<K: AsRef<[u8]>>(&self, keys: &[K]) {
        keys.chunks(SIDE_BY_SIDE).for_each(|keys| self.reach(keys, |_| 0, |_| ()));
    }

    #[inline(always)]
    fn get_group<K: AsRef<[u8]>>(&self, keys: &[K], mut see: impl FnMut(usize, Option<Found<'_>>)) {
        self.reach(keys, hash::hash, |all| match all {
            None => (0..keys.len()).for_each(|i| see(i, None)),
            Some(all) => {
                for (i, at) in all.iter().enumerate() {
                    see(
                        i,
                        descent::find_in(Leaf::new(at.node), at.share, &at.key, at.hash).and_then(Found::of),
                    );
                }
            }
        });
    }

    /// Descends with up to [`SIDE_BY_SIDE`] keys at once, and passes their places to `then`; none if there is no tree.
    #[inline(always)]
    fn reach<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        hash: impl Fn(&[u8]) -> u64,
        then: impl FnOnce(Option<&[At<'_, '_>]>),
    ) {
        let guard = epoch::pin();
        let Some(root) = self.root() else { return then(None) };
        let node = self.tree.node(root, &guard);
        let blank = At { key: Key::new(&[]), hash: 0, share: Share::HALF, node };
        let mut all = [blank; SIDE_BY_SIDE];
        let all = &mut all[..keys.len()];
        for (at, key) in all.iter_mut().zip(keys) {
            let key = key.as_ref();
            (at.key, at.hash) = (Key::new(key), hash(key));
        }
        descend_all(&self.tree, root, all, &guard);
        then(Some(all));
    }
}

/// How far the search for one of several keys has come.
#[derive(Clone, Copy)]
struct At<'k, 'g> {
    key: Key<'k>,
    hash: u64,
    share: Share,
    node: Node<'g>,
}

/// Descends with all keys at once, one level at a time, and fetches the next node of each. Where heads do not show the
/// child of a key, its separators are fetched too, and compared after the heads of all keys. So keys wait side by side,
/// not one after the other. The same holds for the records of leaves in the free form.
///
/// # Safety
/// The processor has the instruction set `I`.
#[inline(always)]
unsafe fn descend_all_by<'g, I: Isa>(tree: &TreeInner, root: Slot, all: &mut [At<'_, 'g>], guard: &'g Guard) {
    let Some(first) = all.first() else { return };
    let mut in_stages = root.in_stages();
    for level in (0..first.node.level()).rev() {
        let mut reached = false;
        if in_stages {
            let mut runs = [const { (0, 0..0) }; SIDE_BY_SIDE];
            let mut waiting = 0;
            for (number, at) in all.iter_mut().enumerate() {
                // SAFETY: the processor has `I`: `dispatch!` selects only instruction sets that it detected.
                match unsafe { InnerNode::new(at.node).below_by_heads::<I>(&at.key) } {
                    Ok(index) => reached |= at.step(tree, level, index, guard),
                    Err(run) => {
                        runs[waiting] = (number, run);
                        waiting += 1;
                    }
                }
            }
            for (number, run) in &runs[..waiting] {
                let at = &mut all[*number];
                let index = InnerNode::new(at.node).below_among(run.clone(), &at.key, true);
                reached |= at.step(tree, level, index, guard);
            }
        } else {
            for at in &mut *all {
                // SAFETY: as above.
                let index = unsafe { InnerNode::new(at.node).route_by::<I>(&at.key) };
                reached |= at.step(tree, level, index, guard);
            }
        }
        in_stages = reached;
    }
    if in_stages {
        // SAFETY: as above.
        all.iter().for_each(|at| unsafe { Leaf::new(at.node).fetch_record::<I>(at.hash) });
    }
}

impl<'g> At<'_, 'g> {
    /// Goes on to a child, and fetches it; returns whether that is to be searched in stages.
    #[inline(always)]
    fn step(&mut self, tree: &TreeInner, level: u8, index: usize, guard: &'g Guard) -> bool {
        let inner = InnerNode::new(self.node);
        let slot = inner.child(index);
        self.node = tree.node(slot, guard);
        self.share = descent::fetch_child((inner, index), &self.key, (self.node, slot), level);
        slot.in_stages()
    }
}

dispatch! {
    fn descend_all<'g>(tree: &TreeInner, root: Slot, all: &mut [At<'_, 'g>], guard: &'g Guard) -> ()
        = descend_all_by
}

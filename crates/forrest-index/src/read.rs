//! The read path of single keys: pin, descend, fetch, find. No lock, no fence, no store to shared memory, no
//! second try.

use crate::Value;
use crate::epoch;
use crate::hash;
use crate::inner::Inner;
use crate::key::Key;
use crate::leaf::{Cell, Leaf};
use crate::node::{Node, Slot};
use crate::scan;
use crate::tree::{Reader, to_value};
use forrest_machine::prefetch;
use std::mem::MaybeUninit;

/// Keys that [`Reader::multi_get`] looks up side by side.
const SIDE_BY_SIDE: usize = 32;

impl Reader {
    #[inline(always)]
    fn see_cell<R>(&self, key: &[u8], see: impl FnOnce(Cell<'_>) -> Option<R>) -> Option<R> {
        let guard = epoch::pin();
        let hash = hash::hash(key);
        let key = Key::new(key);
        let (slot, node) = self.tree.descend(self.root()?, &key, &guard);
        scan::fetch(node, slot, hash);
        see(Leaf::new(node).find(&key, hash)?)
    }

    /// The value of a key.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Option<Value> {
        self.see_cell(key, to_value)
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

    /// Looks many keys up and shows each answer to `see` with the position of its key. The trips to memory of
    /// several keys overlap. `see` must be quick, as with [`Reader::get_with`].
    #[inline]
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K], mut see: impl FnMut(usize, Option<&[u8]>)) {
        for (group, keys) in keys.chunks(SIDE_BY_SIDE).enumerate() {
            self.get_group(keys, |i, value| see(group * SIDE_BY_SIDE + i, value));
        }
    }

    #[inline(always)]
    fn get_group<K: AsRef<[u8]>>(&self, keys: &[K], mut see: impl FnMut(usize, Option<&[u8]>)) {
        let guard = epoch::pin();
        let Some(root) = self.root() else {
            return (0..keys.len()).for_each(|i| see(i, None));
        };
        let root_node = self.tree.node(root, &guard);
        let mut at: [MaybeUninit<(Key<'_>, u64, Node<'_>)>; SIDE_BY_SIDE] =
            [const { MaybeUninit::uninit() }; SIDE_BY_SIDE];
        let at = &mut at[..keys.len()];
        for (at, key) in at.iter_mut().zip(keys) {
            let key = key.as_ref();
            at.write((Key::new(key), hash::hash(key), root_node));
        }
        // SAFETY: all of the slice was written just now.
        let at = unsafe { &mut *(std::ptr::from_mut(at) as *mut [(Key<'_>, u64, Node<'_>)]) };
        for level in (0..root_node.level()).rev() {
            for (key, hash, node) in &mut *at {
                let inner = Inner::new(*node);
                let slot: Slot = inner.child(inner.route(key));
                *node = self.tree.node(slot, &guard);
                if level == 0 {
                    scan::fetch(*node, slot, *hash);
                } else {
                    (0..5).for_each(|line| prefetch::read(node.address().wrapping_add(64 * line)));
                }
            }
        }
        for (i, (key, hash, node)) in at.iter().enumerate() {
            see(i, Leaf::new(*node).find(key, *hash).and_then(Cell::bytes));
        }
    }
}

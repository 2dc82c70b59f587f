//! A red-black tree as a C program of user space has it, and as the user-space side of llds's benchmark is
//! described: one `malloc` for each node and one for each value, colour in the low bit of the parent pointer
//! as the Linux kernel's tree keeps it. One writer.
//!
//! Insertion and removal are the textbook's (Cormen, Leiserson, Rivest, Stein, chapter 13), with null
//! pointers for leaves, so that removal carries the parent of the place that it repairs.
//!
//! INVARIANT: no red node has a red child; every path from a node to a leaf has the same number of black
//! nodes; `parent` of a child is its parent; in-order is key order. The tests check all four.
#![expect(unsafe_code, reason = "the subject is a structure of raw allocations, as it is written in C")]

use super::packed::Packed;
use super::{Reader, Subject, Writer};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cmp::Ordering;
use std::marker::PhantomData;
use std::ptr;

/// The links of a node; its key follows in the same allocation.
#[repr(C)]
struct Node {
    /// The parent, with bit 0 set if this node is black.
    parent_and_color: *mut Node,
    left: *mut Node,
    right: *mut Node,
    value: *mut u8,
}

type Link = *mut Node;
const BLACK: usize = 1;

/// The tree.
pub(crate) struct RbTree<K: Packed> {
    root: Link,
    kind: PhantomData<K>,
}

// SAFETY: the tree owns its nodes, has no interior mutability, and its pairs are bytes.
unsafe impl<K: Packed> Send for RbTree<K> {}
// SAFETY: as for `Send`; a shared reference allows no writes.
unsafe impl<K: Packed> Sync for RbTree<K> {}

fn allocate(size: usize) -> *mut u8 {
    let layout = layout(size);
    // SAFETY: the layout has a size above zero.
    let memory = unsafe { alloc(layout) };
    if memory.is_null() { handle_alloc_error(layout) } else { memory }
}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size.max(1), 8).expect("a key or value fits in memory")
}

// Every function below takes links of one tree: null, or nodes that are allocated. `SAFETY: of the tree` refers to
// this.

fn parent(node: Link) -> Link {
    // SAFETY: of the tree, not null.
    unsafe { (*node).parent_and_color }.map_addr(|addr| addr & !BLACK)
}

fn is_black(node: Link) -> bool {
    // SAFETY: of the tree; a leaf (null) is black.
    node.is_null() || unsafe { (*node).parent_and_color }.addr() & BLACK != 0
}

fn set_parent(node: Link, to: Link) {
    // SAFETY: of the tree, not null.
    unsafe { (*node).parent_and_color = to.map_addr(|addr| addr | (*node).parent_and_color.addr() & BLACK) };
}

fn set_black(node: Link, black: bool) {
    // SAFETY: of the tree, not null.
    unsafe { (*node).parent_and_color = parent(node).map_addr(|addr| addr | usize::from(black)) };
}

fn left(node: Link) -> Link {
    // SAFETY: of the tree, not null.
    unsafe { (*node).left }
}

fn right(node: Link) -> Link {
    // SAFETY: of the tree, not null.
    unsafe { (*node).right }
}

/// The child on one side; `false` is left.
fn child(node: Link, side: bool) -> Link {
    if side { right(node) } else { left(node) }
}

fn set_child(node: Link, side: bool, to: Link) {
    // SAFETY: of the tree, not null.
    unsafe {
        if side {
            (*node).right = to;
        } else {
            (*node).left = to;
        }
    }
}

fn key_at(node: Link) -> *mut u8 {
    // SAFETY: the key follows the links in the same allocation, so the sum stays inside it.
    unsafe { node.cast::<u8>().add(size_of::<Node>()) }
}

/// The node at one end of a subtree.
fn outermost(mut node: Link, side: bool) -> Link {
    while !node.is_null() && !child(node, side).is_null() {
        node = child(node, side);
    }
    node
}

/// The next node in order; to the other side, the one before.
#[inline]
fn next(node: Link, side: bool) -> Link {
    if !child(node, side).is_null() {
        return outermost(child(node, side), !side);
    }
    let (mut node, mut up) = (node, parent(node));
    while !up.is_null() && child(up, side) == node {
        (node, up) = (up, parent(up));
    }
    up
}

impl<K: Packed> RbTree<K> {
    fn new() -> Self {
        RbTree { root: ptr::null_mut(), kind: PhantomData }
    }

    fn find(&self, key: K::Key<'_>) -> Link {
        let mut node = self.root;
        while !node.is_null() {
            // SAFETY: of the tree; every node's key was written when it was made.
            match unsafe { K::compare(key, key_at(node)) } {
                Ordering::Equal => break,
                order => node = child(node, order.is_gt()),
            }
        }
        node
    }

    /// The first node at or after the key.
    fn lower_bound(&self, key: K::Key<'_>) -> Link {
        let (mut node, mut best) = (self.root, ptr::null_mut());
        while !node.is_null() {
            // SAFETY: of the tree; every node's key was written when it was made.
            match unsafe { K::compare(key, key_at(node)) } {
                Ordering::Equal => return node,
                Ordering::Less => (best, node) = (node, left(node)),
                Ordering::Greater => node = right(node),
            }
        }
        best
    }

    fn show<'a>(&'a self, node: Link) -> (K::Found<'a>, K::Value<'a>) {
        // SAFETY: of the tree, not null; key and value were written when the node was made, and stay while
        // the tree is borrowed.
        unsafe { (K::read_key(key_at(node)).0, K::read_value((*node).value)) }
    }

    /// Puts `new` where `old` hangs.
    fn replace(&mut self, old: Link, new: Link) {
        let up = parent(old);
        if up.is_null() {
            self.root = new;
        } else {
            set_child(up, right(up) == old, new);
        }
        if !new.is_null() {
            set_parent(new, up);
        }
    }

    /// Rotates `node` down to one side; its child of the other side takes its place.
    fn rotate(&mut self, node: Link, side: bool) {
        let up = child(node, !side);
        let inner = child(up, side);
        self.replace(node, up);
        set_child(node, !side, inner);
        if !inner.is_null() {
            set_parent(inner, node);
        }
        set_child(up, side, node);
        set_parent(node, up);
    }

    fn put(&mut self, key: K::Key<'_>, value: K::Value<'_>) {
        let (mut up, mut side, mut node) = (ptr::null_mut(), false, self.root);
        while !node.is_null() {
            // SAFETY: of the tree; every node's key was written when it was made.
            match unsafe { K::compare(key, key_at(node)) } {
                Ordering::Equal => {
                    let new = new_value::<K>(value);
                    // SAFETY: of the tree; the old value is freed once, after it was replaced.
                    let old = unsafe { ptr::replace(&raw mut (*node).value, new) };
                    free_value::<K>(old);
                    return;
                }
                order => (up, side, node) = (node, order.is_gt(), child(node, order.is_gt())),
            }
        }
        let node = allocate(size_of::<Node>() + K::key_size(key)).cast::<Node>();
        let links = Node {
            parent_and_color: up,
            left: ptr::null_mut(),
            right: ptr::null_mut(),
            value: new_value::<K>(value),
        };
        // SAFETY: the allocation has room for the links and the key, and no other pointer to it exists.
        unsafe {
            node.write(links);
            K::write_key(key_at(node), key);
        }
        if up.is_null() {
            self.root = node;
        } else {
            set_child(up, side, node);
        }
        self.repair_red(node);
    }

    /// Restores the rules after `node` became red under what may be a red parent.
    fn repair_red(&mut self, mut node: Link) {
        loop {
            let up = parent(node);
            if up.is_null() {
                return set_black(node, true);
            }
            if is_black(up) {
                return;
            }
            // A red parent is not the root, so there is a grandparent.
            let top = parent(up);
            let side = right(top) == up;
            let uncle = child(top, !side);
            if !is_black(uncle) {
                set_black(up, true);
                set_black(uncle, true);
                set_black(top, false);
                node = top;
                continue;
            }
            if child(up, !side) == node {
                self.rotate(up, side);
            }
            set_black(child(top, side), true);
            set_black(top, false);
            return self.rotate(top, !side);
        }
    }

    fn unlink(&mut self, node: Link) {
        let lost_black;
        let (hole, mut up);
        if left(node).is_null() || right(node).is_null() {
            lost_black = is_black(node);
            hole = if left(node).is_null() { right(node) } else { left(node) };
            up = parent(node);
            self.replace(node, hole);
        } else {
            // The successor takes the node's place and colour; the hole is where it was.
            let heir = outermost(right(node), false);
            lost_black = is_black(heir);
            hole = right(heir);
            up = parent(heir);
            if up == node {
                up = heir;
            } else {
                self.replace(heir, hole);
                set_child(heir, true, right(node));
                set_parent(right(node), heir);
            }
            self.replace(node, heir);
            set_child(heir, false, left(node));
            set_parent(left(node), heir);
            set_black(heir, is_black(node));
        }
        if lost_black {
            self.repair_black(hole, up);
        }
    }

    /// Restores the rules after the paths through `node` (perhaps a leaf), child of `up`, lost a black node.
    fn repair_black(&mut self, mut node: Link, mut up: Link) {
        while !up.is_null() && is_black(node) {
            let side = left(up) != node;
            let mut sibling = child(up, !side);
            if !is_black(sibling) {
                set_black(sibling, true);
                set_black(up, false);
                self.rotate(up, side);
                sibling = child(up, !side);
            }
            if is_black(left(sibling)) && is_black(right(sibling)) {
                set_black(sibling, false);
                (node, up) = (up, parent(up));
                continue;
            }
            if is_black(child(sibling, !side)) {
                set_black(child(sibling, side), true);
                set_black(sibling, false);
                self.rotate(sibling, !side);
                sibling = child(up, !side);
            }
            set_black(sibling, is_black(up));
            set_black(up, true);
            set_black(child(sibling, !side), true);
            return self.rotate(up, side);
        }
        if !node.is_null() {
            set_black(node, true);
        }
    }
}

fn new_value<K: Packed>(value: K::Value<'_>) -> *mut u8 {
    let memory = allocate(K::value_size(value));
    // SAFETY: the allocation has `value_size(value)` bytes and is aligned to 8.
    unsafe { K::write_value(memory, value) };
    memory
}

fn free_value<K: Packed>(value: *mut u8) {
    // SAFETY: `new_value` allocated it with this layout, and the caller owns it.
    unsafe { dealloc(value, layout(K::value_size(K::read_value(value)))) };
}

fn free_node<K: Packed>(node: Link) {
    // SAFETY: `put` allocated it with this layout, and no link of the tree leads to it.
    unsafe {
        free_value::<K>((*node).value);
        let key_size = K::read_key(key_at(node)).1;
        dealloc(node.cast(), layout(size_of::<Node>() + key_size));
    }
}

impl<K: Packed> Drop for RbTree<K> {
    fn drop(&mut self) {
        // Leaf by leaf, so that a deep tree needs no stack.
        let mut node = self.root;
        while !node.is_null() {
            let below = if left(node).is_null() { right(node) } else { left(node) };
            if !below.is_null() {
                node = below;
                continue;
            }
            let up = parent(node);
            if !up.is_null() {
                set_child(up, right(up) == node, ptr::null_mut());
            }
            free_node::<K>(node);
            node = up;
        }
    }
}

impl<K: Packed> Subject<K> for RbTree<K> {
    const BACK: bool = true;
    super::by_itself!(RbTree::new());
}

impl<K: Packed> Reader<K> for &RbTree<K> {
    #[inline]
    fn get<R>(&self, key: K::Key<'_>, see: impl FnOnce(K::Value<'_>) -> R) -> Option<R> {
        let node = self.find(key);
        if node.is_null() { None } else { Some(see(self.show(node).1)) }
    }

    #[inline]
    fn scan(&self, from: K::Key<'_>, count: usize, mut see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
        let mut node = self.lower_bound(from);
        for _ in 0..count {
            if node.is_null() {
                return;
            }
            let (key, value) = self.show(node);
            see(key, value);
            node = next(node, true);
        }
    }

    #[inline]
    fn iterate(&self, mut see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
        let mut node = outermost(self.root, false);
        while !node.is_null() {
            let (key, value) = self.show(node);
            see(key, value);
            node = next(node, true);
        }
    }

    #[inline]
    fn iterate_back(&self, mut see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
        let mut node = outermost(self.root, true);
        while !node.is_null() {
            let (key, value) = self.show(node);
            see(key, value);
            node = next(node, false);
        }
    }
}

impl<K: Packed> Writer<K> for &mut RbTree<K> {
    #[inline]
    fn insert(&mut self, key: K::Key<'_>, value: K::Value<'_>) {
        self.put(key, value);
    }

    #[inline]
    fn remove(&mut self, key: K::Key<'_>) -> bool {
        let node = self.find(key);
        if node.is_null() {
            return false;
        }
        self.unlink(node);
        free_node::<K>(node);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{U64, mix};

    /// Checks the subtree and returns its black height and size.
    fn check(node: Link, up: Link) -> (usize, usize) {
        if node.is_null() {
            return (0, 0);
        }
        assert_eq!(parent(node), up);
        assert!(
            is_black(node) || (is_black(left(node)) && is_black(right(node))),
            "a red node under a red one"
        );
        let (a, b) = (check(left(node), node), check(right(node), node));
        assert_eq!(a.0, b.0, "black heights differ");
        (a.0 + usize::from(is_black(node)), a.1 + b.1 + 1)
    }

    #[test]
    fn stays_a_red_black_tree() {
        let mut tree = RbTree::<U64>::new();
        let mut model = std::collections::BTreeMap::new();
        for i in 0..20_000u64 {
            let (key, grow) = (mix(i) % 1500, i % 5000 < 3000);
            let mut writer = &mut tree;
            if grow != mix(i + 7).is_multiple_of(4) {
                writer.insert(key, i);
                model.insert(key, i);
            } else {
                assert_eq!(writer.remove(key), model.remove(&key).is_some());
            }
            if i % 16 == 0 {
                assert!(is_black(tree.root));
                assert_eq!(check(tree.root, ptr::null_mut()).1, model.len());
            }
        }
        let mut pairs = Vec::new();
        Reader::<U64>::iterate(&&tree, |key, value| pairs.push((key, value)));
        assert_eq!(pairs, model.into_iter().collect::<Vec<_>>());
    }
}

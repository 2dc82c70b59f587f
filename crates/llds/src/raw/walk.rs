//! How pairs are read in the order of their keys in a store that others change, without its lock: the reader's side of
//! `kernel/llds/order.h`, over memory that the models can watch.
//!
//! The order is a tree of nodes; its leaves name entries. Writers, who have the lock, make a [`Sequence`] odd before
//! they change what it guards, and even again after it:
//!
//! - that of the nodes, of which there is one, while any of them is made, cut in two, merged or freed;
//! - that of a leaf, while entries come to it, leave it, or are replaced;
//! - that of an entry, which is called its version, while its value is changed in place;
//! - that of the store for changes that are to be seen as one.
//!
//! A walk goes to the leaf where a range begins and copies what the leaf has of it: a piece. Of what lies behind,
//! another walk is made, from the last key on.
//!
//! ARGUMENT. *What is read is there.* A handle is followed only after the sequence of what it was read from has been
//! found the same behind it, so it was one, and leads to memory that stays: from an inner node that of the nodes; from
//! a leaf that of the nodes as well, for it may not be a leaf any more, and its own. *A piece is what there was at one
//! moment*: that at which the last of its entries had been copied. All sequences, the versions of all entries that were
//! copied among them, were read before that, and are looked at once more after it; they had not moved. So the leaf
//! named these entries then, none of them had been freed, and each had the value that was copied. *Nothing is left
//! out*: the way down led to this leaf by nodes that had not changed at that moment, and of leaves without an entry of
//! the range the walk goes on to the next by a handle that was read while that leaf stood still, and again the
//! nodes. *Changes that are one are seen as one*, as in `sight.rs`.
//!
//! ORDERING. As in `sight.rs`.

use super::sight::Sequence;
use crate::sync::weakened;

/// What an entry is to a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// It is of the range, and was copied; or it lies before it.
    On,
    /// It lies behind the range.
    Over,
    /// It is being changed.
    Changing,
    /// Its value is where it cannot be seen.
    Apart,
}

/// The memory of a store, as one sees it who walks through a range, up or down.
pub(crate) trait Order {
    fn as_one(&self) -> &Sequence;
    fn nodes(&self) -> &Sequence;
    /// The root, or 0, and how many levels of inner nodes there are.
    fn root(&self) -> (u32, u32);
    /// The child of an inner node where the range begins; `None` if `nodes` has moved, which is looked at before any
    /// handle is followed on the way.
    fn child(&mut self, node: u32, nodes: u32) -> Option<u32>;
    fn leaf(&self, leaf: u32) -> &Sequence;
    /// Begins a piece with a leaf, which is the one where the range begins, or lies behind it.
    fn begin(&mut self, leaf: u32, is_first: bool);
    /// The next entry of the leaf, if there is one, and one more is wanted.
    fn entry(&mut self, leaf: u32) -> Option<u32>;
    /// Copies an entry if it is of the range, and remembers its version.
    fn copy(&mut self, handle: u32) -> Step;
    /// Whether the versions are what they were.
    fn is_unchanged(&self) -> bool;
    /// Whether anything was copied.
    fn has_any(&self) -> bool;
    /// Whether no more is wanted.
    fn is_full(&self) -> bool;
    /// The leaf behind one, or 0.
    fn beyond(&self, leaf: u32) -> u32;
}

/// What came of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Walk {
    /// A piece was copied, and there may be more behind it.
    More,
    /// A piece was copied, perhaps an empty one, and there is nothing of the range behind it.
    End,
    /// There is a value where it cannot be seen.
    Apart,
    /// Something was being changed.
    Again,
}

/// Walks once.
pub(crate) fn walk<O: Order>(order: &mut O) -> Walk {
    try_walk(order).unwrap_or(Walk::Again)
}

/// The same; `None` is to do it again.
fn try_walk<O: Order>(order: &mut O) -> Option<Walk> {
    let as_one = order.as_one().begin()?;
    let nodes = order.nodes().begin()?;
    let (mut node, height) = order.root();
    for _ in 0..height {
        nodes_are_still(order, nodes)?;
        node = order.child(node, nodes)?;
    }
    let mut is_first = true;
    loop {
        nodes_are_still(order, nodes)?;
        if node == 0 {
            return is_one(order, as_one).map(|()| Walk::End);
        }
        let leaf = order.leaf(node).begin()?;
        // What was read was the sequence of a leaf.
        nodes_are_still(order, nodes)?;
        order.begin(node, is_first);
        is_first = false;
        let mut step = Step::On;
        while step == Step::On
            && let Some(handle) = order.entry(node)
        {
            leaf_is_still(order, node, leaf)?;
            nodes_are_still(order, nodes)?;
            step = order.copy(handle);
        }
        let beyond = order.beyond(node);
        if step == Step::Changing || !(order.is_unchanged() || weakened!("versions")) {
            return None;
        }
        leaf_is_still(order, node, leaf)?;
        nodes_are_still(order, nodes)?;
        is_one(order, as_one)?;
        match step {
            Step::Over => return Some(Walk::End),
            Step::Apart if !order.has_any() => return Some(Walk::Apart),
            Step::Apart => return Some(Walk::More),
            _ if order.is_full() => return Some(Walk::More),
            _ if beyond == 0 => return Some(Walk::End),
            _ if order.has_any() => return Some(Walk::More),
            _ => node = beyond,
        }
    }
}

fn nodes_are_still<O: Order>(order: &O, begun: u32) -> Option<()> {
    (order.nodes().is_still(begun) || weakened!("nodes")).then_some(())
}

fn leaf_is_still<O: Order>(order: &O, leaf: u32, begun: u32) -> Option<()> {
    (order.leaf(leaf).is_still(begun) || weakened!("leaf")).then_some(())
}

fn is_one<O: Order>(order: &O, as_one: u32) -> Option<()> {
    (order.as_one().is_still(as_one) || weakened!("as_one")).then_some(())
}

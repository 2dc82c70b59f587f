//! A seqlock scan: reading pairs in the order of their keys without the store's lock, while other processes
//! change it. This is the reader's side of `kernel/llds/order.h`, over memory that the models can observe.
//!
//! The order is a tree of nodes; its leaves name entries. A writer holds the lock. It makes a [`Sequence`]
//! odd before it changes what the sequence guards, and even again afterwards:
//!
//! - The nodes share one sequence. It guards making, splitting, merging and freeing nodes.
//! - Each leaf has a sequence. It guards adding, removing and replacing the leaf's entries.
//! - Each entry has a sequence, called its version. It guards changing the value in place.
//! - The store's sequence guards changes that must become visible together.
//!
//! A scan descends to the leaf where a range begins and copies the pairs of the range in that leaf: a piece.
//! The pairs after them need another scan, which begins after the last key.
//!
//! ARGUMENT. *Every access is to mapped memory.* The reader follows a handle only after it has found the
//! guarding sequence unchanged after loading the handle. So it was a handle, and leads to memory that stays
//! mapped. For a handle from an inner node that is the nodes' sequence. For a handle from a leaf it is the
//! leaf's sequence, and also that of the nodes, because the leaf may have been freed. *A piece is the state
//! at one moment*: when its last entry had been copied. The reader loaded all sequences, including the
//! versions of all copied entries, before that moment, and found them unchanged after it. So at that moment
//! the leaf named these entries, none of them had been freed, and each had the copied value. *Nothing is left
//! out*: the path to this leaf led through nodes that had not changed at that moment. If a leaf has no entry
//! of the range, the scan goes on to the next leaf, by a handle that it loaded while the leaf's sequence and
//! that of the nodes were unchanged. *Changes made together are seen together*, as in `seqlock.rs`.
//!
//! ORDERING. As in `seqlock.rs`.

use super::seqlock::Sequence;
use crate::sync::weakened;

/// What `Order::copy` found at a handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The entry is in the range and was copied, or it lies before the range.
    On,
    /// The entry lies after the range.
    Over,
    /// A writer is changing the entry.
    Changing,
    /// The entry's value is in a separate block, which is not mapped.
    Apart,
}

/// The memory of a store, as a scan of one range sees it, up or down.
pub(crate) trait Order {
    fn as_one(&self) -> &Sequence;
    fn nodes(&self) -> &Sequence;
    /// The root, or 0, and the number of levels of inner nodes.
    fn root(&self) -> (u32, u32);
    /// The child of an inner node where the range begins. `None` if the nodes' sequence is no longer `nodes`,
    /// which is checked before a handle is followed.
    fn child(&mut self, node: u32, nodes: u32) -> Option<u32>;
    fn leaf(&self, leaf: u32) -> &Sequence;
    /// Begins a piece with a leaf: the one where the range begins (`is_first`), or a later one.
    fn begin(&mut self, leaf: u32, is_first: bool);
    /// The next entry of the leaf. `None` at the end of the leaf, and if the piece is full.
    fn entry(&mut self, leaf: u32) -> Option<u32>;
    /// Copies an entry if it is in the range, and remembers its version.
    fn copy(&mut self, handle: u32) -> Step;
    /// Whether the versions of all copied entries are unchanged.
    fn is_unchanged(&self) -> bool;
    /// Whether anything was copied.
    fn has_any(&self) -> bool;
    /// Whether the piece has as many pairs as were asked for.
    fn is_full(&self) -> bool;
    /// The leaf after `leaf` in the scan's direction, or 0.
    fn beyond(&self, leaf: u32) -> u32;
}

/// The result of one seqlock scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scan {
    /// A piece was copied, and the range may have more pairs after it.
    More,
    /// A piece was copied, perhaps an empty one, and it ends the range.
    End,
    /// The first pair has a value in a separate block, which is not mapped.
    Apart,
    /// A writer changed something meanwhile.
    Retry,
}

/// Makes one attempt at a seqlock scan.
pub(crate) fn scan_once<O: Order>(order: &mut O) -> Scan {
    try_scan(order).unwrap_or(Scan::Retry)
}

/// The same; `None` means retry.
fn try_scan<O: Order>(order: &mut O) -> Option<Scan> {
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
            return is_one(order, as_one).map(|()| Scan::End);
        }
        let leaf = order.leaf(node).begin()?;
        // So that the number loaded was the sequence of a leaf.
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
            Step::Over => return Some(Scan::End),
            Step::Apart if !order.has_any() => return Some(Scan::Apart),
            Step::Apart => return Some(Scan::More),
            _ if order.is_full() => return Some(Scan::More),
            _ if beyond == 0 => return Some(Scan::End),
            _ if order.has_any() => return Some(Scan::More),
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

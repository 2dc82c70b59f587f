//! The write path. A change passes the gate, descends, locks the leaf, decides, and appends a record. If the leaf is
//! full or belongs to a snapshot, it builds new leaves, locks the parent, and replaces the child there.
//!
//! Locks are taken upwards only (leaf, parent, its parent, the root), and a neighbour's only by `try_lock`, so two
//! writers never wait for each other. A new node becomes visible with the one store that links the topmost of its new
//! ancestors. Only after that the replaced nodes are marked obsolete and unlocked.
//!
//! A batch uses the same path on a private root, with a floor that protects every node that others can see; see
//! [`crate::batch`].

mod range;

use crate::arena::{LINE_BYTES, Purpose, Supply};
use crate::descent::{self, TreeInner};
use crate::effect::Effect;
use crate::epoch::Guard;
use crate::error::{Error, MAX_KEY_BYTES, MAX_VALUE_BYTES};
use crate::hash;
use crate::inner::{CHILDREN_MAX, Children, InnerNode};
use crate::key::{Key, Pieces};
use crate::latch::Locked;
use crate::leaf::build::{self, Entries};
use crate::leaf::runs::Runs;
use crate::leaf::walk::Walk;
use crate::leaf::{BUILT_MAX, Blob, Cell, INLINE_MAX, Leaf, Stamped, StampedBytes};
use crate::node::{Node, Share, Slot};
use crate::reclaim::Garbage;
use crate::staged::Stage;
use crate::sync::{AtomicU64, Ordering};
use crate::value::Value;
use forrest_base::lock;
use std::cell::{Cell as Shared, RefCell};
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, MutexGuard};

/// A leaf with fewer entries after a removal is merged with a neighbour that has room.
const MERGE_BELOW: usize = 40;
/// Maximum number of entries of a merged leaf, which leaves room to grow.
const MERGED_MAX: usize = 96;
const MERGED_BYTES_MAX: usize = 8 << 10;
/// The same for inner nodes.
const INNER_MERGE_BELOW: usize = 16;
const INNER_MERGED_MAX: usize = 48;
/// An overwritten blob of at most this length stays in its leaf until the leaf is rebuilt. A longer one forces a
/// rebuild.
const BLOB_HIDDEN_MAX: usize = 4096;

/// Removing a longer key forces a rebuild too.
const LONG_KEY: usize = 512;

/// What a batch has changed in a tree.
pub(crate) struct Private<'p> {
    /// Nodes that it has replaced and must not free before it is visible.
    pub(crate) retired: RefCell<Vec<(u64, Garbage)>>,
    /// Leaves that others see, to which it has appended, and the orders that it has staged there.
    pub(crate) staged: RefCell<Vec<Slot>>,
    pub(crate) stage: Stage<'p>,
    /// Leaves of this era and older belong to snapshots, and nothing may be appended to them.
    pub(crate) floor: u64,
    pub(crate) keys: Shared<i64>,
}

impl Private<'_> {
    /// Appends a record to a leaf that others see, without showing it to them; false if it does not fit.
    fn append(&self, leaf: Leaf<'_>, lock: &Locked<'_>, key: &Key<'_>, hash: u64, cell: Cell<'_>) -> bool {
        let is_first = !leaf.is_staged();
        let mut staged = self.staged.borrow_mut();
        if staged.try_reserve(1).is_err() || !leaf.append(lock, key, hash, cell, Some(&self.stage)) {
            return false;
        }
        if is_first {
            staged.push(Slot::new(leaf.node().handle()));
        }
        true
    }
}

/// Where and how to write.
pub(crate) struct Writer<'a> {
    pub(crate) tree: &'a TreeInner,
    pub(crate) root: &'a AtomicU64,
    /// Nodes of this era and older must not be touched.
    pub(crate) floor: u64,
    /// The era of new nodes.
    pub(crate) era: u64,
    pub(crate) guard: &'a Guard,
    pub(crate) batch: Option<&'a Private<'a>>,
    /// The purpose of new nodes, set by the current change.
    pub(crate) purpose: Shared<Purpose>,
}

/// The locked parent of a node.
enum Parent<'g> {
    Root { _lock: MutexGuard<'g, ()> },
    Node { inner: InnerNode<'g>, lock: Locked<'g>, index: usize },
}

/// A long value as a shared allocation.
pub(crate) fn shared(value: &[u8]) -> Result<Value, Error> {
    if value.len() > MAX_VALUE_BYTES {
        return Err(Error::ValueTooLong(value.len()));
    }
    if value.len() > 1 << 20 {
        // An allocation that fails would end the process; ask first.
        Vec::<u8>::new().try_reserve_exact(value.len()).map_err(|_| Error::OutOfMemory(value.len()))?;
    }
    Ok(Value::from(Arc::<[u8]>::from(value)))
}

/// A cell for what an effect puts; a blob is new and owned by the caller.
fn new_cell<'v>(tree: &TreeInner, effect: &'v Effect<'_>) -> Result<Cell<'v>, Error> {
    let (bytes, value) = match effect {
        Effect::Put(bytes) => (&bytes[..], None),
        Effect::PutValue(value) => (&value[..], Some(value)),
        Effect::Keep | Effect::Remove => return Ok(Cell::Tombstone),
    };
    if bytes.len() <= INLINE_MAX {
        return Ok(Cell::Inline(bytes));
    }
    new_blob(tree, bytes, value).map(Cell::Blob)
}

/// The same, with a stamp that is not 0.
#[cold]
fn new_stamped<'v>(
    tree: &TreeInner,
    effect: &'v Effect<'_>,
    stamp: u64,
    room: &'v mut StampedBytes,
) -> Result<Cell<'v>, Error> {
    let blob = match effect {
        Effect::Put(bytes) => new_blob(tree, bytes, None)?,
        Effect::PutValue(value) => new_blob(tree, value, Some(value))?,
        Effect::Keep | Effect::Remove => return Ok(Cell::Tombstone),
    };
    Ok(Cell::Stamped(Stamped::new(blob, stamp, room)))
}

/// A new blob of bytes, which may be those of a value.
fn new_blob(tree: &TreeInner, bytes: &[u8], value: Option<&Value>) -> Result<Blob, Error> {
    if bytes.len() > MAX_VALUE_BYTES {
        return Err(Error::ValueTooLong(bytes.len()));
    }
    let value = match value {
        Some(value) => value.clone(),
        None => shared(bytes)?,
    };
    tree.index.bags.blob_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    Ok(Blob::new(value.into_shared()))
}

/// Applies one change to one key. The caller is inside the gate.
#[inline]
pub(crate) fn apply<'v, R>(
    writer: &Writer<'_>,
    key: &[u8],
    stamp: u64,
    mut decide: impl FnMut(Option<Cell<'_>>) -> (Effect<'v>, R),
) -> Result<R, Error> {
    if key.len() > MAX_KEY_BYTES {
        return Err(Error::KeyTooLong(key.len()));
    }
    let batch = writer.batch;
    let hash = hash::hash(key);
    let key = Key::new(key);
    let (share, leaf, lock) = writer.lock_leaf(&key);
    let old = descent::find_in(leaf, share, &key, hash);
    let (effect, result) = decide(old);
    let removes = match effect {
        Effect::Keep => return Ok(result),
        Effect::Remove if old.is_none() => return Ok(result),
        Effect::Remove => true,
        Effect::Put(_) | Effect::PutValue(_) => false,
    };
    writer.purpose.set(if removes { Purpose::Removal } else { Purpose::Growth });
    let mut room;
    let cell = if stamp == 0 {
        new_cell(writer.tree, &effect)?
    } else {
        room = StampedBytes::default();
        new_stamped(writer.tree, &effect, stamp, &mut room)?
    };
    let long_gone = old.and_then(Cell::blob).is_some_and(|blob| blob.len() > BLOB_HIDDEN_MAX);
    // A leaf is rebuilt earlier if many of its records were removed, to free their memory.
    let shrinks = removes && (key.bytes.len() > LONG_KEY || leaf.order().appended() * 4 >= leaf.built());
    let era = leaf.node().era();
    // A batch may append to a leaf that others see, without showing it to them.
    let stage = batch.filter(|batch| era <= writer.floor && era > batch.floor);
    let may_append = (era > writer.floor || stage.is_some()) && !long_gone && !shrinks;
    let appended = may_append
        && match stage {
            None => leaf.append(&lock, &key, hash, cell, None),
            Some(batch) => batch.append(leaf, &lock, &key, hash, cell),
        };
    if !appended && let Err(error) = writer.rebuild(leaf, lock, &key, hash, cell) {
        // SAFETY: the blob was made above and its count was not passed on.
        cell.blob().into_iter().for_each(|blob| unsafe { writer.tree.index.bags.drop_blob(blob) });
        return Err(error);
    }
    match (old.is_some(), removes) {
        (false, false) => writer.count(1),
        (true, true) => writer.count(-1),
        _ => {}
    }
    Ok(result)
}

impl<'a> Writer<'a> {
    /// A writer of the newest state, inside the gate.
    #[inline(always)]
    pub(crate) fn ordinary(tree: &'a TreeInner, guard: &'a Guard) -> Writer<'a> {
        let snapshots = &tree.index.snapshots;
        let (floor, era) = (snapshots.floor(), snapshots.era());
        let purpose = Shared::new(Purpose::Growth);
        Writer { tree, root: &tree.root.shown, floor, era, guard, batch: None, purpose }
    }

    fn thread(&self) -> usize {
        self.guard.record.number
    }

    fn supply(&self) -> Supply<'a> {
        Supply { arena: &self.tree.index.arena, thread: self.thread(), purpose: self.purpose.get() }
    }

    fn count(&self, change: i64) {
        match self.batch {
            None => self.tree.count(self.thread(), change),
            Some(batch) => batch.keys.set(batch.keys.get() + change),
        }
    }

    fn root(&self) -> Slot {
        Slot(self.root.load(Ordering::Acquire))
    }

    fn node(&self, slot: Slot) -> Node<'a> {
        self.tree.node(slot, self.guard)
    }

    /// A leaf as this writer sees it.
    #[inline(always)]
    fn leaf(&self, node: Node<'a>) -> Leaf<'a> {
        match self.batch {
            None => Leaf::new(node),
            Some(_) => Leaf::of_batch(node),
        }
    }

    /// Retires a replaced leaf. What the batch has staged there has gone over to the replacement.
    fn retire_leaf(&self, leaf: Leaf<'a>, lock: Locked<'a>, moved: bool) {
        self.undo_staged(leaf);
        self.retire(leaf.node(), lock, moved);
    }

    /// Takes back what the batch has staged in a leaf that goes.
    fn undo_staged(&self, leaf: Leaf<'a>) {
        if self.batch.is_some() {
            let bags = &self.tree.index.bags;
            // SAFETY: the staged records own the counts, and others never see these records.
            leaf.undo_staged(|blob| unsafe { bags.drop_blob(blob) });
        }
    }

    /// The leaf that a key belongs to, locked.
    #[inline(always)]
    fn lock_leaf(&self, key: &Key<'_>) -> (Share, Leaf<'a>, Locked<'a>) {
        loop {
            let ((slot, share), node) = descent::descend(self.tree, self.root(), key, self.guard);
            descent::fetch_appended(node, slot);
            if let Some(lock) = node.lock() {
                return (share, self.leaf(node), lock);
            }
        }
    }

    /// What points to the root.
    fn lock_root(&self) -> Parent<'a> {
        Parent::Root { _lock: lock(&self.tree.root_lock) }
    }

    /// What points to a node that the caller has locked.
    fn lock_parent(&self, child: Node<'a>, key: &Key<'_>) -> Parent<'a> {
        loop {
            if self.root().handle() == child.handle() {
                let parent = self.lock_root();
                if self.root().handle() == child.handle() {
                    return parent;
                }
                continue;
            }
            let mut node = self.node(self.root());
            while node.level() > child.level() + 1 {
                let inner = InnerNode::new(node);
                node = self.node(inner.child(inner.route(key)));
            }
            if node.level() <= child.level() {
                continue;
            }
            let inner = InnerNode::new(node);
            if let Some(lock) = node.lock() {
                let index = inner.route(key);
                if inner.child(index).handle() == child.handle() {
                    return Parent::Node { inner, lock, index };
                }
            }
        }
    }

    /// Retires a replaced node: frees it when no reader or snapshot can reach it. With `moved`, the blobs of a leaf now
    /// belong to its replacement.
    fn retire(&self, node: Node<'a>, lock: Locked<'a>, moved: bool) {
        if self.batch.is_some() {
            // The batch may fail, and then the node stays. No other writer waits for its lock.
            drop(lock);
        } else {
            lock.retire();
        }
        self.discard(node.era(), Garbage::node(node, moved));
    }

    fn discard(&self, birth: u64, garbage: Garbage) {
        let index = &self.tree.index;
        match self.batch {
            None => index.retire(birth, garbage),
            // SAFETY: this batch made the node, so no other thread can reach it.
            Some(_) if birth == self.era => unsafe { index.bags.free(&index.arena, self.thread(), garbage) },
            Some(batch) => batch.retired.borrow_mut().push((birth, garbage)),
        }
    }

    /// Frees nodes that were built and never linked; their blobs still belong to the old nodes.
    fn abandon(&self, slots: &[Slot]) {
        let index = &self.tree.index;
        for &slot in slots {
            // SAFETY: the node was never linked.
            unsafe { index.bags.free(&index.arena, self.thread(), Garbage::node(self.node(slot), true)) };
        }
    }

    /// Replaces a leaf by new ones with one change made. Large leaves are split, small ones merged.
    #[inline(never)]
    fn rebuild(
        &self,
        leaf: Leaf<'a>,
        lock: Locked<'a>,
        key: &Key<'_>,
        hash: u64,
        cell: Cell<'_>,
    ) -> Result<(), Error> {
        if let Some(runs) = Runs::gather(leaf, key, hash, cell)
            && let Some(cuts) = runs.cuts()
        {
            return self.replace_runs(leaf, lock, key, &runs, cuts);
        }
        let mut entries = Entries::new();
        entries.gather(leaf);
        let (newest, replaced) = entries.change(key.bytes, hash, cell);
        let newest = (cell.bytes().is_some()).then_some(newest);
        self.replace((leaf, lock), key, entries, newest, replaced.and_then(Cell::blob).as_slice())
    }

    /// Replaces a leaf by one or two new ones with these records.
    fn replace_runs<'e>(
        &self,
        leaf: Leaf<'a>,
        lock: Locked<'a>,
        key: &Key<'_>,
        runs: &Runs<'a, 'e>,
        (first, second): (usize, Option<usize>),
    ) -> Result<(), Error>
    where
        'a: 'e,
    {
        let build = |from: usize, to: usize| {
            let slot = runs.build(self.supply(), self.era, from, to);
            slot.ok_or(Error::OutOfMemory(leaf.lines() as usize * LINE_BYTES))
        };
        let slot = build(0, first)?;
        let dropped = runs.replaced().and_then(Cell::blob);
        let parent = match (second, self.lock_parent(leaf.node(), key)) {
            // Nearly always.
            (None, Parent::Node { inner, index, lock: above })
                if inner.node().era() > self.floor && !leaf.has_blobs() =>
            {
                inner.set_child(index, slot);
                // What is retired may free other garbage, for which no writer should wait above.
                drop(above);
                self.retire_leaf(leaf, lock, true);
                return Ok(());
            }
            (_, parent) => parent,
        };
        let mut new = Children::with_capacity(2);
        new.push(slot, Pieces::default());
        if let Some(second) = second {
            match build(first, second) {
                Ok(slot) => new.push(slot, runs.separator(first)),
                Err(error) => {
                    self.abandon(new.slots());
                    return Err(error);
                }
            }
        }
        let replaced = if let Parent::Node { index, .. } = &parent { *index..*index + 1 } else { 0..1 };
        let newest = usize::from(runs.newest() >= first);
        self.link(vec![(leaf, lock)], (parent, replaced), &new, (key, newest), dropped.as_slice())
    }

    /// Replaces a leaf by new ones with these entries. `newest` is where an entry was added; there is none if
    /// entries were removed. `dropped` are the shown blobs that are not among the entries.
    fn replace<'e>(
        &self,
        (leaf, lock): (Leaf<'a>, Locked<'a>),
        key: &Key<'_>,
        mut entries: Entries<'e>,
        newest: Option<usize>,
        dropped: &[Blob],
    ) -> Result<(), Error>
    where
        'a: 'e,
    {
        let mut old = vec![(leaf, lock)];
        let mut parent = None;
        let mut replaced = 0..1;
        let shrinks = newest.is_none() && entries.0.len() < MERGE_BELOW;
        // Where memory is scarce, no larger leaf may be made than the one that goes.
        let bytes_max = match self.supply().is_scarce() {
            true => leaf.lines() as usize * LINE_BYTES * 7 / 8,
            false => usize::MAX,
        };
        if shrinks && self.root().handle() != leaf.node().handle() {
            let found = self.lock_parent(leaf.node(), key);
            if let Parent::Node { inner, index, .. } = &found {
                replaced = *index..*index + 1;
                for after in [true, false] {
                    let Some((neighbour, theirs, lock)) =
                        self.neighbour(*inner, *index, after, &entries, bytes_max)
                    else {
                        continue;
                    };
                    if after {
                        entries.0.extend(theirs.0);
                        replaced.end += 1;
                    } else {
                        entries.0.splice(0..0, theirs.0);
                        replaced.start -= 1;
                    }
                    old.push((neighbour, lock));
                }
            }
            parent = Some(found);
        }
        let mut cuts = entries.cuts(newest.unwrap_or(entries.0.len() / 2));
        let mut new = Children::with_capacity(cuts.len());
        let mut from = 0;
        while let Some(&to) = cuts.get(new.len()) {
            let Some(slot) = build::build(self.supply(), self.era, &entries.0[from..to]) else {
                // A removal is not refused while there are blocks for smaller leaves.
                if self.purpose.get() == Purpose::Removal && to - from > 1 {
                    cuts.insert(new.len(), from.midpoint(to));
                    continue;
                }
                self.abandon(new.slots());
                return Err(Error::OutOfMemory(entries.bytes()));
            };
            let before = match from {
                0 => Pieces::default(),
                _ => entries.0[from].separator_after(&entries.0[from - 1]),
            };
            new.push(slot, before);
            from = to;
        }
        let parent = parent.unwrap_or_else(|| self.lock_parent(leaf.node(), key));
        if let Parent::Node { index, .. } = &parent
            && old.len() == 1
        {
            replaced = *index..*index + 1;
        }
        self.link(old, (parent, replaced), &new, (key, new.len() - 1), dropped)
    }

    /// Links `new` in place of the leaves `old`, the first of which had the key that changed, and retires these. A
    /// failure leaves all as it was, and frees `new`.
    fn link(
        &self,
        old: Vec<(Leaf<'a>, Locked<'a>)>,
        (parent, replaced): (Parent<'a>, Range<usize>),
        new: &Children<'_>,
        (key, newest): (&Key<'_>, usize),
        dropped: &[Blob],
    ) -> Result<(), Error> {
        let leaf = old[0].0;
        // A leaf that snapshots (or others than this batch) can see keeps its blobs; the new one gets counts.
        let mut copied = Vec::new();
        for (leaf, _) in old.iter().filter(|(leaf, _)| leaf.has_blobs() && leaf.node().era() <= self.floor) {
            let _ = leaf.walk().try_each(|record, _| {
                copied.extend(record.cell.blob());
                ControlFlow::Continue(())
            });
        }
        if leaf.node().era() <= self.floor {
            // One count each: several records may own one of the same allocation.
            for blob in dropped {
                copied.iter().position(|other| other == blob).map(|at| copied.swap_remove(at));
            }
        }
        for blob in &copied {
            // SAFETY: the leaf owns a count while we hold its lock.
            std::mem::forget(unsafe { blob.share() });
            self.tree.index.bags.blob_bytes.fetch_add(blob.len() as u64, Ordering::Relaxed);
        }
        if let Err(error) = self.install(parent, replaced, new, key, newest) {
            // SAFETY: the counts were taken above.
            copied.into_iter().for_each(|blob| unsafe { self.tree.index.bags.drop_blob(blob) });
            self.abandon(new.slots());
            return Err(error);
        }
        if leaf.node().era() > self.floor {
            dropped.iter().for_each(|&blob| self.discard(u64::MAX, Garbage::Blob(blob)));
        }
        for (leaf, lock) in old {
            let moved = leaf.node().era() > self.floor;
            if moved && leaf.has_blobs() {
                Walk::hidden_blobs(leaf, |blob| self.discard(u64::MAX, Garbage::Blob(blob)));
            }
            self.retire_leaf(leaf, lock, moved);
        }
        Ok(())
    }

    /// The leaf before or after, with its entries and locked, if `entries` can be put together with it.
    fn neighbour(
        &self,
        parent: InnerNode<'a>,
        index: usize,
        after: bool,
        entries: &Entries<'_>,
        bytes_max: usize,
    ) -> Option<(Leaf<'a>, Entries<'a>, Locked<'a>)> {
        let index = if after { index + 1 } else { index.checked_sub(1)? };
        if index >= parent.children() {
            return None;
        }
        let neighbour = self.leaf(self.node(parent.child(index)));
        let lock = neighbour.node().try_lock()?;
        let mut theirs = Entries::new();
        theirs.gather(neighbour);
        let (bytes, prefix) = entries.bytes_with(&theirs);
        let fits = match entries.0.len() {
            // An empty leaf goes in any case, with a copy of its neighbour.
            0 => theirs.0.len() <= BUILT_MAX,
            len => theirs.0.len() + len <= MERGED_MAX && bytes - prefix <= MERGED_BYTES_MAX,
        };
        (fits && bytes <= bytes_max).then_some((neighbour, theirs, lock))
    }

    /// Links `new` in place of the parent's children `replaced`. Nothing has changed if it fails.
    fn install<'s>(
        &self,
        parent: Parent<'a>,
        replaced: Range<usize>,
        new: &Children<'s>,
        key: &Key<'_>,
        newest: usize,
    ) -> Result<(), Error>
    where
        'a: 's,
    {
        let (inner, lock) = match parent {
            Parent::Root { .. } => {
                let level = self.node(new.slots()[0]).level();
                let root = match new.slots() {
                    [one] => *one,
                    _ => self.build(new, 0..new.len(), level + 1)?,
                };
                self.root.store(root.0, Ordering::Release);
                return Ok(());
            }
            Parent::Node { inner, lock, .. } => (inner, lock),
        };
        let node = inner.node();
        if replaced.len() == 1 && new.len() == 1 && node.era() > self.floor {
            inner.set_child(replaced.start, new.slots()[0]);
            return Ok(());
        }
        if replaced.len() == 1 && new.len() == 1 {
            // Others see the node as it is: a copy of it.
            let slot = inner.copy_with(self.supply(), self.era, replaced.start, new.slots()[0]);
            let slot = slot.ok_or(Error::OutOfMemory(inner.lines() as usize * LINE_BYTES))?;
            let mut copy = Children::with_capacity(1);
            copy.push(slot, Pieces::default());
            let up = self.lock_parent(node, key);
            let index = if let Parent::Node { index, .. } = &up { *index } else { 0 };
            if let Err(error) = self.install(up, index..index + 1, &copy, key, 0) {
                self.abandon(copy.slots());
                return Err(error);
            }
            self.retire(node, lock, true);
            return Ok(());
        }
        let mut list = Children::with_capacity(CHILDREN_MAX + 2);
        list.extend(inner, 0..replaced.start, Pieces::default());
        let before = |index: usize| index.checked_sub(1).map_or(Pieces::default(), |i| inner.separator(i));
        list.append(new, before(replaced.start));
        let newest = replaced.start + newest;
        if replaced.end < inner.children() {
            list.extend(inner, replaced.end..inner.children(), before(replaced.end));
        }
        let up = self.lock_parent(node, key);
        let mut old = vec![(inner, lock)];
        let mut up_replaced = 0..1;
        match &up {
            Parent::Root { .. } if list.len() == 1 => {
                self.root.store(list.slots()[0].0, Ordering::Release);
                self.retire_inner(old);
                return Ok(());
            }
            Parent::Root { .. } => {}
            Parent::Node { inner: above, index, .. } => {
                up_replaced = *index..*index + 1;
                if let Some((both, neighbour, lock, after)) = self.inner_neighbour(*above, *index, &list) {
                    list = both;
                    match after {
                        true => up_replaced.end += 1,
                        false => up_replaced.start -= 1,
                    }
                    old.push((neighbour, lock));
                }
            }
        }
        let mut pieces = Children::default();
        let mut from = 0;
        let mut newest_piece = 0;
        let mut cuts = list.cuts(newest);
        while let Some(&to) = cuts.get(pieces.len()) {
            let slot = match self.build(&list, from..to, node.level()) {
                Ok(slot) => slot,
                // As with leaves: smaller ones for which there are blocks.
                Err(_) if self.purpose.get() == Purpose::Removal && to - from > 3 => {
                    cuts.insert(pieces.len(), from.midpoint(to));
                    continue;
                }
                Err(error) => {
                    self.abandon(pieces.slots());
                    return Err(error);
                }
            };
            if from <= newest {
                newest_piece = pieces.len();
            }
            pieces.push(slot, list.separator(from));
            from = to;
        }
        if let Err(error) = self.install(up, up_replaced, &pieces, key, newest_piece) {
            self.abandon(pieces.slots());
            return Err(error);
        }
        self.retire_inner(old);
        Ok(())
    }

    fn retire_inner(&self, old: Vec<(InnerNode<'a>, Locked<'a>)>) {
        for (inner, lock) in old {
            self.retire(inner.node(), lock, true);
        }
    }

    fn build(&self, children: &Children<'_>, range: Range<usize>, level: u8) -> Result<Slot, Error> {
        let slot = children.build(self.supply(), self.era, level, range);
        slot.ok_or(Error::OutOfMemory(2048))
    }

    /// The node after or before, locked, if a short list of children can be put together with its own; and both lists.
    fn inner_neighbour<'s>(
        &self,
        above: InnerNode<'a>,
        index: usize,
        list: &Children<'s>,
    ) -> Option<(Children<'s>, InnerNode<'a>, Locked<'a>, bool)>
    where
        'a: 's,
    {
        if list.len() >= INNER_MERGE_BELOW {
            return None;
        }
        let candidates = [index.checked_add(1).filter(|&i| i < above.children()), index.checked_sub(1)];
        candidates.into_iter().flatten().find_map(|i| {
            let neighbour = InnerNode::new(self.node(above.child(i)));
            let lock = neighbour.node().try_lock()?;
            let (after, all) = (i > index, 0..neighbour.children());
            if all.len() + list.len() > INNER_MERGED_MAX {
                return None;
            }
            let mut both = Children::with_capacity(CHILDREN_MAX);
            if after {
                both.append(list, Pieces::default());
                both.extend(neighbour, all, above.separator(index));
            } else {
                both.extend(neighbour, all, Pieces::default());
                both.append(list, above.separator(i));
            }
            both.suit_one().then_some((both, neighbour, lock, after))
        })
    }
}

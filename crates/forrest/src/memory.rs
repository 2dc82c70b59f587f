//! The home `memory:`: implements the contract of `forrest-engine` over [`forrest_index`].
//!
//! All keyspaces are trees of one index, so batches and snapshots of the index span keyspaces. The catalog
//! maps names to trees. A snapshot copies it under the lock that creating and dropping keyspaces takes, so
//! the copy agrees with the snapshot's state.
//!
//! Dropping a keyspace sets its flag while no writer runs, and then empties its tree. Writers check the flag
//! inside their atomic step, readers after they have read. So an acknowledged write came before the drop, and
//! a reader never mistakes an emptied keyspace for an empty one.
//!
//! The stamp of a value in the index is the time at which it expires. All reads and changes compare it with the store's
//! clock, and take an expired value for an absent one. A snapshot has the time at which it was taken. A writer makes
//! [`Tree::expiries`] before the first value of the keyspace that expires, so a reader that may have met such a value
//! finds them there. [`crate::expiry`] removes what has expired.

mod tree;
mod view;

use tree::{Tree, elsewhere};
pub(crate) use view::MemoryView;

use crate::expiry::{Expiries, Moved, Remover};
use forrest_base::lock;
use forrest_engine::clock::{Clock, wall_ms};
use forrest_engine::error::of_index;
use forrest_engine::ingest::out_of_order;
use forrest_engine::merge::{self, Operators, SharedOperator};
use forrest_engine::{
    self as contract, Capabilities, Capability, DEFAULT_KEYSPACE, Direction, Durability, Error, ErrorKind,
    Expires, MAX_KEYSPACES, MAX_VALUE_BYTES, Op, Options, Outcome, Result, Stats, Swap, Value, Written,
};
use forrest_index::{self as index, Effect, Found};
use std::collections::BTreeMap;
use std::mem;
use std::ops::{Bound, ControlFlow, Range};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

/// Number of keys of a dropped keyspace that are removed in one step, while other writers wait.
const REMOVED_AT_ONCE: usize = 10_000;

/// Number of expired values of a keyspace that are removed in one step.
const EXPIRED_AT_ONCE: usize = 4096;

type Catalog = BTreeMap<Arc<str>, Arc<Tree>>;

/// The store: an index and the names of its trees.
#[derive(Clone)]
pub(crate) struct MemoryStore(Arc<MemoryState>);

struct MemoryState {
    index: index::Index,
    /// Snapshots show this tree for a keyspace that they do not have. It is never written to.
    empty: index::Tree,
    catalog: RwLock<Catalog>,
    operators: Operators,
    clock: Arc<Clock>,
    is_attended: bool,
    /// Runs from the first value that expires on, in a store that is attended.
    remover: Mutex<Option<Remover>>,
}

impl MemoryState {
    /// Removes values that have expired, a limited number in each keyspace, while `is_wanted`. True if there are more.
    fn remove_expired(&self, is_wanted: &dyn Fn() -> bool) -> bool {
        let catalog = self.catalog.read().unwrap_or_else(PoisonError::into_inner);
        let trees: Vec<Arc<Tree>> = catalog.values().filter(|tree| tree.may_expire()).cloned().collect();
        drop(catalog);
        let (now_ms, mut has_more) = (self.clock.now_ms(), false);
        for tree in trees {
            let expiries = tree.expiries().expect("its values may expire");
            let due = expiries.take_due(now_ms, EXPIRED_AT_ONCE);
            let remove = |key: &[u8]| {
                tree.tree.apply_stamped(key, 0, |old| match old {
                    Some(old) if old.stamp() != 0 && old.stamp() <= now_ms => (Effect::Remove, ()),
                    _ => (Effect::Keep, ()),
                })
            };
            let done = due.iter().take_while(|(_, key)| is_wanted() && remove(key).is_ok()).count();
            if done < due.len() {
                // There is no memory to do it with, which took a while to find out. The next round may find some.
                due[done..].iter().for_each(|(ms, key)| expiries.note(key, Moved { from: 0, to: *ms }));
                return false;
            }
            has_more |= done == EXPIRED_AT_ONCE;
        }
        has_more
    }
}

impl Drop for MemoryState {
    fn drop(&mut self) {
        if !self.empty.is_here() {
            // Another thread may have been changing the catalog at the fork.
            mem::forget(mem::take(self.catalog.get_mut().unwrap_or_else(PoisonError::into_inner)));
        }
    }
}

impl MemoryStore {
    /// An error in a process that was forked from the one that opened the store. Locks that other threads held at the
    /// fork are held here forever.
    fn check_here(&self) -> Result<()> {
        if self.0.empty.is_here() { Ok(()) } else { Err(elsewhere()) }
    }

    pub(crate) fn open(options: &Options) -> Result<MemoryStore> {
        MemoryStore::with_clock(options, Clock::new(wall_ms), true)
    }

    /// A store with a clock. If it is not attended, the caller removes what has expired.
    pub(crate) fn with_clock(options: &Options, clock: Clock, is_attended: bool) -> Result<MemoryStore> {
        if !options.create {
            return Err(Error::invalid(
                "\"memory:\" is always a new store, and create(false) does not allow creating one",
            ));
        }
        demand(options.durability)?;
        let Options { capacity_bytes, pages, numa, .. } = *options;
        let index = index::Index::new(&index::Options { capacity_bytes, pages, numa, spare: None })
            .map_err(of_index)?;
        let empty = index.create_tree().map_err(of_index)?;
        let store = MemoryStore(Arc::new(MemoryState {
            index,
            empty,
            catalog: RwLock::default(),
            operators: options.operators.clone(),
            clock: Arc::new(clock),
            is_attended,
            remover: Mutex::default(),
        }));
        contract::Store::keyspace(&store, DEFAULT_KEYSPACE)?;
        Ok(store)
    }

    fn handle(&self, tree: &Arc<Tree>) -> MemoryKeyspace {
        MemoryKeyspace { store: self.clone(), tree: tree.clone() }
    }

    /// The times of a keyspace, which may get values that expire from now on.
    fn expiries<'t>(&self, tree: &'t Tree) -> Result<&'t Expiries> {
        if let Some(expiries) = tree.expiries() {
            return Ok(expiries);
        }
        let mut remover = lock(&self.0.remover);
        if remover.is_none() && self.0.is_attended {
            *remover = Some(Remover::start(Arc::downgrade(&self.0), MemoryState::remove_expired)?);
        }
        Ok(tree.make_expiries())
    }

    /// Removes some keys of a dropped tree. Returns true if there may be more. It works in steps because
    /// other writers wait during each. If memory runs out, the remaining keys are freed with the tree.
    fn remove_some(&self, tree: &Tree) -> bool {
        let mut keys = 0;
        let mut last = Bound::Unbounded;
        tree.tree.scan(Bound::Unbounded, Bound::Unbounded, Direction::Forward, |key, _| {
            keys += 1;
            if keys < REMOVED_AT_ONCE {
                return ControlFlow::Continue(());
            }
            last = Bound::Included(key.to_vec());
            ControlFlow::Break(())
        });
        let upper = last.as_ref().map(Vec::as_slice);
        let removed = self.0.index.batch(|batch| batch.delete_range(&tree.tree, Bound::Unbounded, upper));
        removed.is_ok() && last != Bound::Unbounded
    }
}

impl contract::Store for MemoryStore {
    type Keyspace = MemoryKeyspace;
    type View = MemoryView;
    type Snapshot = MemorySnapshot;

    fn keyspace(&self, name: &str) -> Result<MemoryKeyspace> {
        self.check_here()?;
        let catalog = self.0.catalog.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(tree) = catalog.get(name) {
            return Ok(self.handle(tree));
        }
        drop(catalog);
        let mut catalog = self.0.catalog.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(tree) = catalog.get(name) {
            return Ok(self.handle(tree));
        }
        if catalog.len() == MAX_KEYSPACES {
            return Err(Error::limit("store", "keyspaces", MAX_KEYSPACES + 1, MAX_KEYSPACES));
        }
        let name: Arc<str> = name.into();
        let tree = self.0.index.create_tree().map_err(of_index)?;
        let tree = Arc::new(Tree::new(name.clone(), tree, self.0.clock.clone()));
        let keyspace = self.handle(&tree);
        catalog.insert(name, tree);
        Ok(keyspace)
    }

    fn keyspaces(&self) -> Result<Vec<String>> {
        self.check_here()?;
        let catalog = self.0.catalog.read().unwrap_or_else(PoisonError::into_inner);
        Ok(catalog.keys().map(|name| name.to_string()).collect())
    }

    fn drop_keyspace(&self, name: &str) -> Result<bool> {
        self.check_here()?;
        let mut catalog = self.0.catalog.write().unwrap_or_else(PoisonError::into_inner);
        let Some(tree) = catalog.remove(name) else { return Ok(false) };
        self.0.index.batch(|_keeps_writers_out| {
            tree.drop_all();
            Ok::<_, Abort>(())
        })?;
        drop(catalog);
        // Free the keys now; the tree itself lives until its last handle or snapshot is dropped.
        while self.remove_some(&tree) {}
        if let Some(expiries) = tree.expiries() {
            expiries.clear();
        }
        Ok(true)
    }

    fn write<'b>(
        &self,
        ops: impl Iterator<Item = (&'b MemoryKeyspace, Op<&'b [u8]>)>,
        durability: Option<Durability>,
    ) -> Result<Written> {
        self.check_here()?;
        demand(durability)?;
        let mut noted = Notes::default();
        let result = self.0.index.batch(|batch| {
            for (op, (keyspace, change)) in ops.enumerate() {
                let outcome =
                    keyspace.apply_in(batch, change, &mut noted).map_err(|error| error.at_op(op))?;
                if let Some(found) = outcome.mismatch() {
                    return Err(Abort::Mismatch { op, found });
                }
            }
            Ok(Written::Applied)
        });
        match result {
            Ok(written) => {
                noted.note();
                Ok(written)
            }
            Err(Abort::Mismatch { op, found }) => Ok(Written::Mismatch { op, found }),
            Err(Abort::Error(error)) => Err(error),
        }
    }

    fn snapshot(&self) -> Result<MemorySnapshot> {
        self.check_here()?;
        let catalog = self.0.catalog.read().unwrap_or_else(PoisonError::into_inner);
        let (snapshot, now_ms) = self.0.index.snapshot_with(|| self.0.clock.now_ms());
        let (catalog, empty) = (catalog.clone(), self.0.empty.clone());
        Ok(MemorySnapshot(Arc::new(Past { snapshot, catalog, empty, now_ms })))
    }

    fn sync(&self) -> Result<()> {
        self.check_here()?;
        // Every change already has the strongest durability of this home.
        Ok(())
    }

    fn trim(&self) -> Result<()> {
        self.check_here()?;
        self.0.index.trim();
        Ok(())
    }

    fn stats(&self) -> Result<Stats> {
        self.check_here()?;
        let index = self.0.index.stats();
        let catalog = self.0.catalog.read().unwrap_or_else(PoisonError::into_inner);
        let (mut expiring, mut expiring_bytes) = (0, 0);
        for expiries in catalog.values().filter_map(|tree| tree.expiries()) {
            expiring += expiries.len();
            expiring_bytes += expiries.bytes();
        }
        let mut stats = Stats::default();
        stats.keys = index.keys;
        stats.keyspaces = catalog.len() as u64;
        stats.expiring = expiring as u64;
        stats.snapshots = index.snapshots;
        stats.node_bytes = index.node_bytes;
        stats.value_bytes_outside = index.blob_bytes + expiring_bytes as u64;
        stats.reserved_bytes = index.arena_bytes;
        stats.explicit_huge_bytes = index.explicit_huge_bytes;
        stats.transparent_huge_bytes = index.transparent_huge_bytes;
        Ok(stats)
    }

    fn capabilities(&self) -> Capabilities {
        use Capability as C;
        Capabilities::new(
            "memory:",
            &[
                C::Iteration,
                C::Batches,
                C::Snapshots,
                C::Keyspaces,
                C::Checkpoint,
                C::Ingest,
                C::Approximate,
                C::Merge,
                C::Ttl,
            ],
        )
    }
}

/// The reason why a batch was not applied.
enum Abort {
    Error(Error),
    Mismatch { op: usize, found: Option<Value> },
}

impl From<Abort> for Error {
    fn from(abort: Abort) -> Error {
        match abort {
            Abort::Error(error) => error,
            Abort::Mismatch { .. } => unreachable!("no condition outside of a batch"),
        }
    }
}

impl From<Error> for Abort {
    fn from(error: Error) -> Abort {
        Abort::Error(error)
    }
}

impl From<index::Error> for Abort {
    fn from(error: index::Error) -> Abort {
        Abort::Error(of_index(error))
    }
}

fn demand(durability: Option<Durability>) -> Result<()> {
    match durability {
        None | Some(Durability::Memory) => Ok(()),
        Some(more) => Err(Error::unsupported(format!(
            "durability {more:?} with \"memory:\": nothing in memory outlives the process"
        ))),
    }
}

/// A keyspace: a tree, and the store that it belongs to.
#[derive(Clone)]
pub(crate) struct MemoryKeyspace {
    store: MemoryStore,
    tree: Arc<Tree>,
}

impl contract::Keyspace for MemoryKeyspace {
    type View = MemoryView;

    fn name(&self) -> &str {
        &self.tree.name
    }

    fn view(&self) -> MemoryView {
        MemoryView::Newest(self.tree.clone())
    }

    fn same_store(&self, other: &MemoryKeyspace) -> bool {
        Arc::ptr_eq(&self.store.0, &other.store.0)
    }

    fn is(&self, other: &MemoryKeyspace) -> bool {
        Arc::ptr_eq(&self.tree, &other.tree)
    }

    fn apply(&self, op: Op<&[u8]>) -> Result<Outcome> {
        self.store.check_here()?;
        match op {
            Op::DeleteRange { .. } | Op::CompareRange { .. } => {
                let mut noted = Notes::default();
                let apply =
                    |batch: &mut index::Batch<'_>| Ok::<_, Abort>(self.apply_in(batch, op, &mut noted)?);
                let outcome = self.store.0.index.batch(apply)?;
                noted.note();
                Ok(outcome)
            }
            _ if self.tree.may_expire() => self.apply_expiring(op),
            _ => {
                let decide = |old: Option<&[u8]>| self.decide_plainly(&op, old);
                match self.tree.tree.apply(op.key(), decide).map_err(of_index)? {
                    Some(outcome) => outcome,
                    None => self.apply_expiring(op),
                }
            }
        }
    }

    fn ttl(&self) -> Option<Duration> {
        self.tree.ttl()
    }

    fn set_ttl(&self, ttl: Option<Duration>) -> Result<()> {
        let ttl_ms = ttl.map(Expires::ttl_ms).transpose()?.unwrap_or(0);
        self.store.check_here()?;
        self.tree.check()?;
        if ttl_ms > 0 {
            self.store.expiries(&self.tree)?;
        }
        self.tree.ttl_ms.store(ttl_ms, Ordering::Relaxed);
        Ok(())
    }

    fn merge_operator(&self) -> Option<SharedOperator> {
        self.tree.operator.get().cloned()
    }

    fn set_merge_operator(&self, name: &str) -> Result<()> {
        self.store.check_here()?;
        let operator = self.store.0.operators.get(&self.tree.name, name)?;
        let chosen = self.store.0.index.batch(|_keeps_writers_out| {
            self.tree.check()?;
            if let Some(has) = self.tree.operator.get() {
                return Ok(merge::check_kept(&self.tree.name, &**has, name)?);
            }
            let mut is_empty = true;
            contract::View::scan(
                &self.view(),
                (Bound::Unbounded, Bound::Unbounded),
                Direction::Forward,
                |_, _| {
                    is_empty = false;
                    ControlFlow::Break(())
                },
            )?;
            if !is_empty {
                return Err(merge::not_empty(&self.tree.name).into());
            }
            let _ = self.tree.operator.set(operator.clone());
            Ok::<_, Abort>(())
        });
        Ok(chosen?)
    }

    fn ingest(&self) -> Result<Box<dyn contract::Ingest>> {
        self.store.check_here()?;
        self.tree.check()?;
        let (bytes, lengths) = (Vec::new(), Vec::new());
        Ok(Box::new(MemoryIngest { keyspace: self.clone(), bytes, lengths, last: 0..0 }))
    }
}

/// Pairs that become one batch.
struct MemoryIngest {
    keyspace: MemoryKeyspace,
    /// Keys and values, back to back.
    bytes: Vec<u8>,
    /// The length of each key, and of its value.
    lengths: Vec<(usize, usize)>,
    /// Where the last key is.
    last: Range<usize>,
}

impl contract::Ingest for MemoryIngest {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let last = &self.bytes[self.last.clone()];
        if !self.lengths.is_empty() && key <= last {
            return Err(out_of_order(last, key));
        }
        let reserved = self.bytes.try_reserve(key.len() + value.len());
        reserved.and_then(|()| self.lengths.try_reserve(1)).map_err(|_| {
            Error::new(ErrorKind::OutOfSpace, "there is no memory for the pairs of an ingest; begin several")
        })?;
        let begin = self.bytes.len();
        self.last = begin..begin + key.len();
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.lengths.push((key.len(), value.len()));
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<u64> {
        let MemoryIngest { keyspace, bytes, lengths, .. } = *self;
        keyspace.store.check_here()?;
        let (mut rest, mut noted) = (&bytes[..], Notes::default());
        keyspace.store.0.index.batch(|batch| {
            for &(key, value) in &lengths {
                let (pair, others) = rest.split_at(key + value);
                let (key, value) = pair.split_at(key);
                rest = others;
                let _set = keyspace.apply_in(batch, Op::Set { key, value }, &mut noted)?;
            }
            Ok::<_, Abort>(())
        })?;
        noted.note();
        Ok(lengths.len() as u64)
    }
}

/// Changes of a batch to the expiries of keys, to be noted when the batch is visible. Few allocations for many keys:
/// all writers wait meanwhile.
#[derive(Default)]
struct Notes {
    /// The keys, back to back.
    keys: Vec<u8>,
    /// The tree, the length of the key, and the change.
    changes: Vec<(Arc<Tree>, usize, Moved)>,
}

impl Notes {
    /// Adds a change. Fails with `OutOfSpace`.
    fn add(&mut self, tree: &Arc<Tree>, key: &[u8], moved: Moved) -> Result<()> {
        if moved == Moved::default() {
            return Ok(());
        }
        let reserved = self.keys.try_reserve(key.len()).and_then(|()| self.changes.try_reserve(1));
        reserved.map_err(|_| {
            Error::new(
                ErrorKind::OutOfSpace,
                "there is no memory for the keys whose values expire and that are changed together; change fewer",
            )
        })?;
        self.keys.extend_from_slice(key);
        self.changes.push((tree.clone(), key.len(), moved));
        Ok(())
    }

    fn note(&self) {
        let mut rest = &self.keys[..];
        for (tree, length, moved) in &self.changes {
            let (key, others) = rest.split_at(*length);
            tree.note(key, *moved);
            rest = others;
        }
    }
}

#[cfg(test)]
impl MemoryStore {
    /// As the thread that removes does in a round.
    pub(crate) fn remove_expired(&self, is_wanted: &dyn Fn() -> bool) -> bool {
        self.0.remove_expired(is_wanted)
    }
}

#[cfg(test)]
impl MemoryKeyspace {
    /// Notes a change of a key's expiry at another time than a writer would.
    pub(crate) fn note(&self, key: &[u8], moved: Moved) {
        self.tree.note(key, moved);
    }
}

impl MemoryKeyspace {
    /// Applies an operation on one key, where values may expire. Apart from `apply`, so that this stays short.
    #[inline(never)]
    fn apply_expiring(&self, op: Op<&[u8]>) -> Result<Outcome> {
        let expires_ms = self.expires_ms(&op)?;
        let mut moved = Moved::default();
        let decide = |old: Option<Found<'_>>| self.decide(op, expires_ms, old, &mut moved);
        let outcome = self.tree.tree.apply_stamped(op.key(), expires_ms, decide).map_err(of_index)?;
        self.tree.note(op.key(), moved);
        outcome
    }

    fn apply_in(&self, batch: &mut index::Batch<'_>, op: Op<&[u8]>, noted: &mut Notes) -> Result<Outcome> {
        match op {
            Op::DeleteRange { start, end } => {
                self.tree.check()?;
                let end = end.map_or(Bound::Unbounded, Bound::Excluded);
                let mut added = Ok(());
                let gone = |key: &[u8], from| {
                    if added.is_ok() {
                        added = noted.add(&self.tree, key, Moved { from, to: 0 });
                    }
                };
                let deleted = batch.delete_range_stamped(&self.tree.tree, Bound::Included(start), end, gone);
                deleted.map_err(of_index)?;
                added.map(|()| Outcome::DeletedRange)
            }
            Op::CompareRange { start, end, pairs } => {
                self.tree.check()?;
                if end.is_some_and(|end| end <= start) {
                    return Ok(Outcome::ComparedRange(Swap::Done));
                }
                // The batch has changed nothing yet, and all other writers wait: what readers see is the state.
                let end = end.map_or(Bound::Unbounded, Bound::Excluded);
                let view = contract::Keyspace::view(self);
                Outcome::of_range(pairs, |see| {
                    contract::View::scan(&view, (Bound::Included(start), end), Direction::Forward, see)
                })
            }
            _ => {
                if !self.tree.may_expire() {
                    let decide = |old: Option<&[u8]>| self.decide_plainly(&op, old);
                    if let Some(outcome) = batch.apply(&self.tree.tree, op.key(), decide).map_err(of_index)? {
                        return outcome;
                    }
                }
                let expires_ms = self.expires_ms(&op)?;
                let mut moved = Moved::default();
                let decide = |old: Option<Found<'_>>| self.decide(op, expires_ms, old, &mut moved);
                let applied = batch.apply_stamped(&self.tree.tree, op.key(), expires_ms, decide);
                let outcome = applied.map_err(of_index)?;
                noted.add(&self.tree, op.key(), moved)?;
                outcome
            }
        }
    }

    /// As [`decide`](Self::decide) where no value expires; `None`, and no effect, if this is none of these. Apart from
    /// its callers, so that they stay short.
    #[inline(never)]
    fn decide_plainly<'v>(
        &self,
        op: &Op<&'v [u8]>,
        old: Option<&[u8]>,
    ) -> (Effect<'v>, Option<Result<Outcome>>) {
        if !self.tree.is_plain() || matches!(op, Op::SetUntil { .. }) {
            return (Effect::Keep, None);
        }
        match merge::resolve(self.tree.operator.get(), op, old, MAX_VALUE_BYTES) {
            Ok((effect, outcome)) => (effect, Some(Ok(outcome))),
            Err(error) => (Effect::Keep, Some(Err(error))),
        }
    }

    /// When a value expires that an operation puts now, in milliseconds since 1970; 0 if it stays.
    #[inline]
    fn expires_ms(&self, op: &Op<&[u8]>) -> Result<u64> {
        let ttl_ms = self.tree.ttl_ms.load(Ordering::Relaxed);
        let expires = match op {
            Op::SetUntil { expires, .. } => *expires,
            _ if ttl_ms == 0 => return Ok(0),
            _ => Expires::In(ttl_ms),
        };
        self.store.expiries(&self.tree)?;
        Ok(expires.at_ms(|| self.tree.clock.now_ms()))
    }

    /// The effect of an operation on a key, computed inside the index's atomic step, and the change of its expiry.
    #[inline]
    fn decide<'v>(
        &self,
        op: Op<&'v [u8]>,
        expires_ms: u64,
        old: Option<Found<'_>>,
        moved: &mut Moved,
    ) -> (Effect<'v>, Result<Outcome>) {
        // What an earlier attempt has found counts for nothing.
        *moved = Moved::default();
        let from = old.map_or(0, Found::stamp);
        let is_over = from != 0 && from <= self.tree.clock.now_ms();
        let old = old.filter(|_| !is_over).map(Found::as_slice);
        let resolve = || merge::resolve(self.tree.operator.get(), &op, old, MAX_VALUE_BYTES);
        match self.tree.check().and_then(|()| resolve()) {
            Ok((effect, outcome)) => {
                *moved = match effect {
                    Effect::Keep => Moved::default(),
                    Effect::Remove => Moved { from, to: 0 },
                    Effect::Put(_) | Effect::PutValue(_) => Moved { from, to: expires_ms },
                };
                (effect, Ok(outcome))
            }
            Err(error) => (Effect::Keep, Err(error)),
        }
    }
}

/// One past state of all trees, with their names at that time.
#[derive(Clone)]
pub(crate) struct MemorySnapshot(Arc<Past>);

struct Past {
    snapshot: index::Snapshot,
    catalog: Catalog,
    empty: index::Tree,
    /// The time at which it was taken.
    now_ms: u64,
}

impl contract::Snapshot for MemorySnapshot {
    type View = MemoryView;

    fn view(&self, name: &str) -> MemoryView {
        let tree = self.0.catalog.get(name);
        let may_expire = tree.is_some_and(|tree| tree.may_expire());
        let reader = self.0.snapshot.reader(tree.map_or(&self.0.empty, |tree| &tree.tree));
        MemoryView::Past { reader, now_ms: self.0.now_ms, may_expire }
    }

    fn ttl(&self, name: &str) -> Option<Duration> {
        self.0.catalog.get(name).and_then(|tree| tree.ttl())
    }

    fn keyspaces(&self) -> Vec<String> {
        self.0.catalog.keys().map(|name| name.to_string()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_conforms() {
        for seed in 0..30 {
            let store = MemoryStore::open(&Options::default()).expect("a store");
            contract::conformance::check(&store, seed, 400, |_| {});
            contract::conformance::check_merges(&store, seed, 100, |_| {});
        }
    }

    /// The index decides anew when another writer was quicker.
    #[test]
    fn a_failed_decision_forgets_the_one_before() {
        use contract::{Keyspace as _, Store as _};

        let store = MemoryStore::open(&Options::default()).expect("a store");
        let keyspace = store.keyspace(DEFAULT_KEYSPACE).expect("a keyspace");
        keyspace.set_ttl(Some(Duration::from_secs(60))).expect("it is chosen");
        assert!(store.drop_keyspace(DEFAULT_KEYSPACE).expect("it is dropped"));
        let mut moved = Moved { from: 5, to: 0 };
        let (_, outcome) = keyspace.decide(Op::Delete { key: b"k" }, 0, None, &mut moved);
        assert!(outcome.is_err());
        assert_eq!(moved, Moved::default());
    }
}

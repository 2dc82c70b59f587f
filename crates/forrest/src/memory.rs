//! The home `memory:`: implements the contract of `forrest-engine` over [`forrest_index`].
//!
//! All keyspaces are trees of one index, so batches and snapshots of the index span keyspaces. The catalog
//! maps names to trees. A snapshot copies it under the lock that creating and dropping keyspaces takes, so
//! the copy agrees with the snapshot's state.
//!
//! Dropping a keyspace sets its flag while no writer runs, and then empties its tree. Writers check the flag
//! inside their atomic step, readers after they have read. So an acknowledged write came before the drop, and
//! a reader never mistakes an emptied keyspace for an empty one.

use forrest_engine::error::of_index;
use forrest_engine::ingest::out_of_order;
use forrest_engine::merge::{self, Operators, SharedOperator};
use forrest_engine::{
    self as contract, Approximate, Capabilities, Capability, Chunk, DEFAULT_KEYSPACE, Direction, Durability,
    Error, ErrorKind, Filled, Goto, KeyBounds, MAX_KEYSPACES, MAX_VALUE_BYTES, Op, Options, Outcome, Result,
    Stats, Swap, Value, Written,
};
use forrest_index::{self as index, Effect, Found};
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow, Range};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// Number of copied bytes at which a refill of an iteration stops.
const CHUNK_BYTES: usize = 64 << 10;
/// Number of bytes of values shared with the store at which a refill stops. The chunk keeps these values
/// alive even after the store has replaced them.
const CHUNK_SHARED_BYTES: usize = 1 << 20;

/// Number of ranges whose first leaves are fetched together.
const SCANS_TOGETHER: usize = 16;

/// Number of keys of a dropped keyspace that are removed in one step, while other writers wait.
const REMOVED_AT_ONCE: usize = 10_000;

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
}

/// A tree with its name, and whether it was dropped.
pub(crate) struct Tree {
    name: Arc<str>,
    tree: index::Tree,
    dropped: AtomicBool,
    /// Set while no writer runs, and then never changed.
    operator: OnceLock<SharedOperator>,
}

impl Tree {
    /// Fails if the keyspace was dropped, and in a child made by `fork`.
    ///
    /// ORDERING: Acquire pairs with the Release in `drop_keyspace`. That store precedes the removal of the
    /// first key, so a reader that missed a removed key sees the flag.
    #[inline]
    fn check(&self) -> Result<()> {
        if self.dropped.load(Ordering::Acquire) || !self.tree.is_here() {
            return Err(self.unusable());
        }
        Ok(())
    }

    #[cold]
    fn unusable(&self) -> Error {
        if !self.tree.is_here() {
            return elsewhere();
        }
        Error::invalid(format!("keyspace \"{}\" was dropped", self.name.escape_debug()))
    }
}

#[cold]
fn elsewhere() -> Error {
    Error::invalid(
        "this store in memory was opened before the process was forked from another, and is of no use here; open a store \
         in this process",
    )
}

impl MemoryStore {
    /// An error in a process that was forked from the one that opened the store. Locks that other threads held at the
    /// fork are held here forever.
    fn check_here(&self) -> Result<()> {
        if self.0.empty.is_here() { Ok(()) } else { Err(elsewhere()) }
    }

    pub(crate) fn open(options: &Options) -> Result<MemoryStore> {
        if !options.create {
            return Err(Error::invalid(
                "\"memory:\" is always a new store, and create(false) does not allow creating one",
            ));
        }
        demand(options.durability)?;
        let Options { capacity_bytes, pages, numa, .. } = *options;
        let index = index::Index::new(&index::Options { capacity_bytes, pages, numa }).map_err(of_index)?;
        let empty = index.create_tree().map_err(of_index)?;
        let store = MemoryStore(Arc::new(MemoryState {
            index,
            empty,
            catalog: RwLock::default(),
            operators: options.operators.clone(),
        }));
        contract::Store::keyspace(&store, DEFAULT_KEYSPACE)?;
        Ok(store)
    }

    fn handle(&self, tree: &Arc<Tree>) -> MemoryKeyspace {
        MemoryKeyspace { store: self.clone(), tree: tree.clone() }
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
        let tree = Arc::new(Tree {
            name: name.clone(),
            tree,
            dropped: AtomicBool::new(false),
            operator: OnceLock::new(),
        });
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
            // ORDERING: see `Tree::check`.
            tree.dropped.store(true, Ordering::Release);
            Ok::<_, Abort>(())
        })?;
        drop(catalog);
        // Free the keys now; the tree itself lives until its last handle or snapshot is dropped.
        while self.remove_some(&tree) {}
        Ok(true)
    }

    fn write<'b>(
        &self,
        ops: impl Iterator<Item = (&'b MemoryKeyspace, Op<&'b [u8]>)>,
        durability: Option<Durability>,
    ) -> Result<Written> {
        self.check_here()?;
        demand(durability)?;
        let result = self.0.index.batch(|batch| {
            for (op, (keyspace, change)) in ops.enumerate() {
                let outcome = keyspace.apply_in(batch, change).map_err(|error| error.at_op(op))?;
                if let Some(found) = outcome.mismatch() {
                    return Err(Abort::Mismatch { op, found });
                }
            }
            Ok(Written::Applied)
        });
        match result {
            Ok(written) => Ok(written),
            Err(Abort::Mismatch { op, found }) => Ok(Written::Mismatch { op, found }),
            Err(Abort::Error(error)) => Err(error),
        }
    }

    fn snapshot(&self) -> Result<MemorySnapshot> {
        self.check_here()?;
        let catalog = self.0.catalog.read().unwrap_or_else(PoisonError::into_inner);
        let snapshot = self.0.index.snapshot();
        Ok(MemorySnapshot(Arc::new(Past { snapshot, catalog: catalog.clone(), empty: self.0.empty.clone() })))
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
        let keyspaces = self.0.catalog.read().unwrap_or_else(PoisonError::into_inner).len();
        let mut stats = Stats::default();
        stats.keys = index.keys;
        stats.keyspaces = keyspaces as u64;
        stats.snapshots = index.snapshots;
        stats.node_bytes = index.node_bytes;
        stats.value_bytes_outside = index.blob_bytes;
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
                Ok(self.store.0.index.batch(|batch| self.apply_in(batch, op).map_err(Abort::from))?)
            }
            _ => self.tree.tree.apply(op.key(), |old| self.decide(op, old)).map_err(of_index)?,
        }
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
            self.tree.tree.scan(Bound::Unbounded, Bound::Unbounded, Direction::Forward, |_, _| {
                is_empty = false;
                ControlFlow::Break(())
            });
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
        let mut rest = &bytes[..];
        keyspace.store.0.index.batch(|batch| {
            for &(key, value) in &lengths {
                let (pair, others) = rest.split_at(key + value);
                let (key, value) = pair.split_at(key);
                rest = others;
                let _set = keyspace.apply_in(batch, Op::Set { key, value })?;
            }
            Ok::<_, Abort>(())
        })?;
        Ok(lengths.len() as u64)
    }
}

impl MemoryKeyspace {
    fn apply_in(&self, batch: &mut index::Batch<'_>, op: Op<&[u8]>) -> Result<Outcome> {
        match op {
            Op::DeleteRange { start, end } => {
                self.tree.check()?;
                let end = end.map_or(Bound::Unbounded, Bound::Excluded);
                batch.delete_range(&self.tree.tree, Bound::Included(start), end).map_err(of_index)?;
                Ok(Outcome::DeletedRange)
            }
            Op::CompareRange { start, end, pairs } => {
                self.tree.check()?;
                if end.is_some_and(|end| end <= start) {
                    return Ok(Outcome::ComparedRange(Swap::Done));
                }
                // The batch has changed nothing yet, and all other writers wait: what readers see is the state.
                let end = end.map_or(Bound::Unbounded, Bound::Excluded);
                Outcome::of_range(pairs, |see| {
                    let see = |key: &[u8], found: Found<'_>| see(key, &found);
                    self.tree.tree.scan(Bound::Included(start), end, Direction::Forward, see);
                    Ok(())
                })
            }
            _ => batch.apply(&self.tree.tree, op.key(), |old| self.decide(op, old)).map_err(of_index)?,
        }
    }

    /// The effect of an operation on a key, computed inside the index's atomic step.
    #[inline]
    fn decide<'v>(&self, op: Op<&'v [u8]>, old: Option<&[u8]>) -> (Effect<'v>, Result<Outcome>) {
        let resolve = || merge::resolve(self.tree.operator.get(), &op, old, MAX_VALUE_BYTES);
        if matches!(op, Op::SetUntil { .. }) {
            return (Effect::Keep, Err(contract::no_expiry()));
        }
        match self.tree.check().and_then(|()| resolve()) {
            Ok((effect, outcome)) => (effect, Ok(outcome)),
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
}

impl contract::Snapshot for MemorySnapshot {
    type View = MemoryView;

    fn view(&self, name: &str) -> MemoryView {
        let tree = self.0.catalog.get(name).map_or(&self.0.empty, |tree| &tree.tree);
        MemoryView::Past(self.0.snapshot.reader(tree))
    }

    fn keyspaces(&self) -> Vec<String> {
        self.0.catalog.keys().map(|name| name.to_string()).collect()
    }
}

/// One state of a tree. It has a single reference count, so that threads that start iterations contend for
/// one cache line, not two.
#[derive(Clone)]
pub(crate) enum MemoryView {
    Newest(Arc<Tree>),
    Past(index::Reader),
}

impl MemoryView {
    #[inline]
    fn reader(&self) -> &index::Reader {
        match self {
            MemoryView::Newest(tree) => &tree.tree,
            MemoryView::Past(reader) => reader,
        }
    }

    /// Fails if the keyspace was dropped, and in a child made by `fork`. Call it after reading; reads wait for nothing,
    /// also there.
    #[inline]
    fn check(&self) -> Result<()> {
        match self {
            MemoryView::Newest(tree) => tree.check(),
            MemoryView::Past(reader) if reader.is_here() => Ok(()),
            MemoryView::Past(_) => Err(elsewhere()),
        }
    }
}

impl contract::View for MemoryView {
    type Cursor = MemoryCursor;
    type Resume = ();

    #[inline]
    fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        let value = self.reader().get(key);
        self.check()?;
        Ok(value)
    }

    #[inline]
    fn get_into(&self, key: &[u8], buf: &mut Vec<u8>) -> Result<bool> {
        buf.clear();
        let found = self.reader().get_with(key, |value| buf.extend_from_slice(value)).is_some();
        self.check()?;
        Ok(found)
    }

    #[inline]
    fn contains(&self, key: &[u8]) -> Result<bool> {
        let found = self.reader().contains(key);
        self.check()?;
        Ok(found)
    }

    fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        let mut values = vec![None; keys.len()];
        self.reader().multi_get(keys, |at, value| values[at] = value.map(Found::to_value));
        self.check()?;
        Ok(values)
    }

    fn count(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Result<u64> {
        let count = self.reader().count(lower, upper);
        self.check()?;
        Ok(count)
    }

    #[inline]
    fn scan(
        &self,
        (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        mut see: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        self.reader().scan(lower, upper, direction, |key, value| see(key, &value));
        self.check()
    }

    fn multi_scan(
        &self,
        ranges: &[KeyBounds<'_>],
        limit: usize,
        keys_only: bool,
        mut see: impl FnMut(usize, &[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut goes_on = true;
        for (group, ranges) in ranges.chunks(SCANS_TOGETHER).enumerate() {
            let mut starts = [&[][..]; SCANS_TOGETHER];
            for (start, (lower, _)) in starts.iter_mut().zip(ranges) {
                if let Bound::Included(key) | Bound::Excluded(key) = *lower {
                    *start = key;
                }
            }
            self.reader().fetch_many(&starts[..ranges.len()]);
            contract::one_by_one(self, ranges, limit, keys_only, |number, key, value| {
                let flow = see(group * SCANS_TOGETHER + number, key, value);
                goes_on = flow.is_continue();
                flow
            })?;
            if !goes_on {
                break;
            }
        }
        self.check()
    }

    fn approximate(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Result<Approximate> {
        let (keys, bytes) = self.reader().estimate(lower, upper);
        self.check()?;
        Ok(Approximate { keys, bytes })
    }

    fn fill(
        &self,
        chunk: &mut Chunk,
        _resume: &mut (),
        (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
    ) -> Result<Filled> {
        chunk.limit_bytes(CHUNK_BYTES, CHUNK_SHARED_BYTES);
        if chunk.is_keys_only() {
            self.reader().scan(lower, upper, direction, |key, _| {
                chunk.push_copied(key, &[]);
                if chunk.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
        } else {
            self.reader().scan(lower, upper, direction, |key, value| {
                if value.is_shared() {
                    chunk.push_shared(key, value.to_value());
                } else {
                    chunk.push_copied(key, &value);
                }
                if chunk.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
        }
        self.check()?;
        Ok(if chunk.is_full() { Filled::More } else { Filled::End })
    }

    fn refills(&self) -> (usize, usize) {
        (50, 4)
    }

    fn cursor(&self) -> MemoryCursor {
        MemoryCursor { cursor: self.reader().cursor(), view: self.clone() }
    }
}

/// A position in a tree.
pub(crate) struct MemoryCursor {
    cursor: index::Cursor,
    view: MemoryView,
}

impl contract::Cursor for MemoryCursor {
    fn goto(&mut self, goto: Goto<'_>) -> Result<bool> {
        let found = match goto {
            Goto::First => self.cursor.first(),
            Goto::Last => self.cursor.last(),
            Goto::Skip(count) => self.cursor.key().is_some() && (0..count).all(|_| self.cursor.next()),
            Goto::Prev => self.cursor.prev(),
            Goto::Seek(key) => self.cursor.seek(key),
            Goto::SeekForPrev(key) => self.cursor.seek_for_prev(key),
        };
        self.view.check()?;
        Ok(found)
    }

    fn keys_only(&mut self) {
        self.cursor.keys_only();
    }

    fn park(&mut self) {
        // The cursor holds nothing of the store: its pairs are copies.
    }

    fn key(&self) -> Option<&[u8]> {
        self.cursor.key()
    }

    fn value(&self) -> Option<Value> {
        self.cursor.value()
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
}

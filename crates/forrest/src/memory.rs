//! The home `memory:`: [`forrest_index`] behind the contract of `forrest-engine`.
//!
//! A keyspace is a tree of one index, so that batches and snapshots span keyspaces by themselves. The
//! catalogue of names is a map of its own; a snapshot takes a copy of it under the lock under which
//! keyspaces come and go, and so sees the names that belong to its state.
//!
//! A dropped keyspace: its flag is set while all writers are kept out, and then its tree is emptied. Writers
//! look at the flag inside their atomic step; readers look at it after they have read. So a write that was
//! acknowledged came before the drop, and nobody mistakes an emptied keyspace for an empty one.

use forrest_engine::error::of_index;
use forrest_engine::{
    self as contract, Capabilities, Capability, Chunk, DEFAULT_KEYSPACE, Direction, Durability, Error,
    Filled, Goto, MAX_KEYSPACES, Op, Options, Outcome, Result, Stats, Swap, Value, Written,
};
use forrest_index::{self as index, Effect, Found};
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// A refill of an iteration stops when it has copied this many bytes.
const CHUNK_BYTES: usize = 64 << 10;
/// A refill stops when the values that it shares with the store reach this many bytes, because it keeps
/// them alive even if the store no longer has them.
const CHUNK_SHARED_BYTES: usize = 1 << 20;

/// So many keys of a dropped keyspace are removed while other writers wait.
const REMOVED_AT_ONCE: usize = 10_000;

type Catalog = BTreeMap<Arc<str>, Arc<Tree>>;

/// The store: an index and the names of its trees.
#[derive(Clone)]
pub(crate) struct Store(Arc<Inner>);

struct Inner {
    index: index::Index,
    /// What a snapshot shows for a keyspace that it does not have. Never written to.
    empty: index::Tree,
    catalog: RwLock<Catalog>,
}

/// A tree with its name and whether it still counts.
pub(crate) struct Tree {
    name: Arc<str>,
    tree: index::Tree,
    dropped: AtomicBool,
}

impl Tree {
    /// ORDERING: Acquire pairs with the Release in `drop_keyspace`. That store comes before the first key is
    /// removed, so whoever missed a key sees the flag.
    #[inline]
    fn check(&self) -> Result<()> {
        if self.dropped.load(Ordering::Acquire) {
            return Err(self.dropped_error());
        }
        Ok(())
    }

    #[cold]
    fn dropped_error(&self) -> Error {
        Error::invalid(format!("keyspace \"{}\" was dropped", self.name.escape_debug()))
    }
}

impl Store {
    pub(crate) fn open(options: &Options) -> Result<Store> {
        if !options.create {
            return Err(Error::invalid(
                "\"memory:\" is made anew each time, and create(false) says that none is to be",
            ));
        }
        demand(options.durability)?;
        let Options { capacity_bytes, pages, numa, .. } = *options;
        let index = index::Index::new(&index::Options { capacity_bytes, pages, numa }).map_err(of_index)?;
        let empty = index.create_tree().map_err(of_index)?;
        let store = Store(Arc::new(Inner { index, empty, catalog: RwLock::default() }));
        contract::Store::keyspace(&store, DEFAULT_KEYSPACE)?;
        Ok(store)
    }

    fn handle(&self, tree: &Arc<Tree>) -> Keyspace {
        Keyspace { store: self.clone(), tree: tree.clone() }
    }

    /// Removes some keys of a tree that nobody looks at any more; true if there may be others. A piece at a
    /// time, because other writers wait meanwhile. If memory is short,
    /// what is left is freed with the tree.
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

impl contract::Store for Store {
    type Keyspace = Keyspace;
    type View = View;
    type Snapshot = Snapshot;

    fn keyspace(&self, name: &str) -> Result<Keyspace> {
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
        let tree = Arc::new(Tree { name: name.clone(), tree, dropped: AtomicBool::new(false) });
        let keyspace = self.handle(&tree);
        catalog.insert(name, tree);
        Ok(keyspace)
    }

    fn keyspaces(&self) -> Result<Vec<String>> {
        let catalog = self.0.catalog.read().unwrap_or_else(PoisonError::into_inner);
        Ok(catalog.keys().map(|name| name.to_string()).collect())
    }

    fn drop_keyspace(&self, name: &str) -> Result<bool> {
        let mut catalog = self.0.catalog.write().unwrap_or_else(PoisonError::into_inner);
        let Some(tree) = catalog.remove(name) else { return Ok(false) };
        self.0.index.batch(|_keeps_writers_out| {
            // ORDERING: see `Tree::check`.
            tree.dropped.store(true, Ordering::Release);
            Ok::<_, Abort>(())
        })?;
        drop(catalog);
        // The tree lives on with its last handle or snapshot; its keys need not.
        while self.remove_some(&tree) {}
        Ok(true)
    }

    fn write<'b>(
        &self,
        ops: impl Iterator<Item = (&'b Keyspace, Op<&'b [u8]>)>,
        durability: Option<Durability>,
    ) -> Result<Written> {
        demand(durability)?;
        let result = self.0.index.batch(|batch| {
            for (op, (keyspace, change)) in ops.enumerate() {
                match keyspace.apply_in(batch, change).map_err(|error| error.at_op(op))? {
                    Outcome::Swapped(Swap::Mismatch(found)) => return Err(Abort::Mismatch { op, found }),
                    _ => continue,
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

    fn snapshot(&self) -> Result<Snapshot> {
        let catalog = self.0.catalog.read().unwrap_or_else(PoisonError::into_inner);
        let snapshot = self.0.index.snapshot();
        Ok(Snapshot(Arc::new(Past { snapshot, catalog: catalog.clone(), empty: self.0.empty.clone() })))
    }

    fn sync(&self) -> Result<()> {
        // There is nothing stronger than what a change has when its call returns.
        Ok(())
    }

    fn stats(&self) -> Result<Stats> {
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
        Capabilities::new("memory:", &[C::Iteration, C::Batches, C::Snapshots, C::Keyspaces, C::Checkpoint])
    }
}

/// Why a batch was given up.
enum Abort {
    Error(Error),
    Mismatch { op: usize, found: Option<Value> },
}

impl From<Abort> for Error {
    fn from(abort: Abort) -> Error {
        match abort {
            Abort::Error(error) => error,
            Abort::Mismatch { .. } => unreachable!("only a batch has conditions"),
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
            "durability {more:?} with \"memory:\", whose content ends with its process"
        ))),
    }
}

/// A keyspace: a tree, and the store that it belongs to.
#[derive(Clone)]
pub(crate) struct Keyspace {
    store: Store,
    tree: Arc<Tree>,
}

impl contract::Keyspace for Keyspace {
    type View = View;

    fn name(&self) -> &str {
        &self.tree.name
    }

    fn view(&self) -> View {
        View::Newest(self.tree.clone())
    }

    fn same_store(&self, other: &Keyspace) -> bool {
        Arc::ptr_eq(&self.store.0, &other.store.0)
    }

    fn is(&self, other: &Keyspace) -> bool {
        Arc::ptr_eq(&self.tree, &other.tree)
    }

    fn apply(&self, op: Op<&[u8]>) -> Result<Outcome> {
        match op {
            Op::DeleteRange { .. } => {
                Ok(self.store.0.index.batch(|batch| self.apply_in(batch, op).map_err(Abort::from))?)
            }
            _ => self.tree.tree.apply(op.key(), |old| self.decide(op, old)).map_err(of_index)?,
        }
    }
}

impl Keyspace {
    fn apply_in(&self, batch: &mut index::Batch<'_>, op: Op<&[u8]>) -> Result<Outcome> {
        match op {
            Op::DeleteRange { start, end } => {
                self.tree.check()?;
                let end = end.map_or(Bound::Unbounded, Bound::Excluded);
                Ok(Outcome::DeletedRange(
                    batch.delete_range(&self.tree.tree, Bound::Included(start), end).map_err(of_index)?,
                ))
            }
            _ => batch.apply(&self.tree.tree, op.key(), |old| self.decide(op, old)).map_err(of_index)?,
        }
    }

    /// What becomes of a key, decided inside the index's atomic step.
    #[inline]
    fn decide<'v>(&self, op: Op<&'v [u8]>, old: Option<&[u8]>) -> (Effect<'v>, Result<Outcome>) {
        match self.tree.check().and_then(|()| op.resolve(old)) {
            Ok((effect, outcome)) => (effect, Ok(outcome)),
            Err(error) => (Effect::Keep, Err(error)),
        }
    }
}

/// One past state of all trees, with the names that they had.
#[derive(Clone)]
pub(crate) struct Snapshot(Arc<Past>);

struct Past {
    snapshot: index::Snapshot,
    catalog: Catalog,
    empty: index::Tree,
}

impl contract::Snapshot for Snapshot {
    type View = View;

    fn view(&self, name: &str) -> View {
        let tree = self.0.catalog.get(name).map_or(&self.0.empty, |tree| &tree.tree);
        View::Past(self.0.snapshot.reader(tree))
    }

    fn keyspaces(&self) -> Vec<String> {
        self.0.catalog.keys().map(|name| name.to_string()).collect()
    }
}

/// One state of a tree. One reference count, so that many threads that make iterations do not meet at two.
#[derive(Clone)]
pub(crate) enum View {
    Newest(Arc<Tree>),
    Past(index::Reader),
}

impl View {
    #[inline]
    fn reader(&self) -> &index::Reader {
        match self {
            View::Newest(tree) => &tree.tree,
            View::Past(reader) => reader,
        }
    }

    /// To be called after reading: an error if what was read may be a dropped keyspace.
    #[inline]
    fn check(&self) -> Result<()> {
        match self {
            View::Newest(tree) => tree.check(),
            View::Past(_) => Ok(()),
        }
    }
}

impl contract::View for View {
    type Cursor = Cursor;
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

    fn fill(
        &self,
        chunk: &mut Chunk,
        _resume: &mut (),
        (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        pairs: usize,
    ) -> Result<Filled> {
        let mut shared_bytes = 0;
        let mut full = false;
        self.reader().scan(lower, upper, direction, |key, value| {
            if value.is_shared() {
                chunk.push_shared(key, value.to_value());
                shared_bytes += value.len();
            } else {
                chunk.push_copied(key, &value);
            }
            full = chunk.len() >= pairs || chunk.bytes() >= CHUNK_BYTES || shared_bytes >= CHUNK_SHARED_BYTES;
            if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        self.check()?;
        Ok(if full { Filled::More } else { Filled::End })
    }

    fn refills(&self) -> (usize, usize) {
        (64, 4)
    }

    fn cursor(&self) -> Cursor {
        Cursor { cursor: self.reader().cursor(), view: self.clone() }
    }
}

/// A position in a tree.
pub(crate) struct Cursor {
    cursor: index::Cursor,
    view: View,
}

impl contract::Cursor for Cursor {
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

    fn park(&mut self) {
        // What it has fetched is its own.
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
            let store = Store::open(&Options::default()).expect("a store");
            contract::conformance::check(&store, seed, 400, |_| {});
        }
    }
}

//! A stand-in behind one lock.

use crate::{Direction, Effect, Error, MAX_KEY_BYTES, MAX_VALUE_BYTES, Options, Stats, Value};
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow, Deref};
use std::sync::{Arc, Mutex, MutexGuard};

type Map = BTreeMap<Vec<u8>, Value>;
type State = Vec<Map>;

/// Owns the memory and the trees. Cloning makes another handle to the same index.
#[derive(Clone)]
pub struct Index(Arc<Mutex<State>>);

/// One ordered map. Reads come from [`Reader`], to which it dereferences.
#[derive(Clone)]
pub struct Tree(Reader);

/// One state of one tree, to be read: the newest, or a snapshot's.
#[derive(Clone)]
pub struct Reader {
    state: Arc<Mutex<State>>,
    id: usize,
}

/// One past state of all trees of an index.
#[derive(Clone)]
pub struct Snapshot(Arc<Mutex<State>>);

/// Changes that become visible together.
pub struct Batch<'a>(&'a mut State);

/// A position in a tree that can be moved both ways; owns what it shows.
pub struct Cursor {
    reader: Reader,
    at: Option<(Vec<u8>, Value)>,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(|e| e.into_inner())
}

fn apply<'v, R>(
    map: &mut Map,
    key: &[u8],
    mut decide: impl FnMut(Option<&[u8]>) -> (Effect<'v>, R),
) -> Result<R, Error> {
    if key.len() > MAX_KEY_BYTES {
        return Err(Error::KeyTooLong(key.len()));
    }
    let (effect, result) = decide(map.get(key).map(|v| &v[..]));
    match effect {
        Effect::Keep => {}
        Effect::Put(v) if v.len() > MAX_VALUE_BYTES => return Err(Error::ValueTooLong(v.len())),
        Effect::Put(v) => drop(map.insert(key.to_vec(), Value::from(&v[..]))),
        Effect::PutValue(v) => drop(map.insert(key.to_vec(), v)),
        Effect::Remove => drop(map.remove(key)),
    }
    Ok(result)
}

fn range_is_empty(lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> bool {
    match (lower, upper) {
        (Bound::Included(l), Bound::Included(u)) => l > u,
        (Bound::Included(l) | Bound::Excluded(l), Bound::Excluded(u) | Bound::Included(u)) => l >= u,
        _ => false,
    }
}

impl Index {
    /// Makes an index with no trees.
    pub fn new(_options: &Options) -> Result<Index, Error> {
        Ok(Index(Arc::default()))
    }

    /// Adds an empty tree.
    pub fn create_tree(&self) -> Result<Tree, Error> {
        let mut state = lock(&self.0);
        state.push(Map::new());
        Ok(Tree(Reader { state: self.0.clone(), id: state.len() - 1 }))
    }

    /// Takes a snapshot of all trees.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot(Arc::new(Mutex::new(lock(&self.0).clone())))
    }

    /// Runs `body`, whose changes become visible together when it returns `Ok`, and not at all otherwise.
    /// Other writers wait meanwhile; readers do not. `body` must not write to this index other than through
    /// the batch.
    pub fn batch<R, E: From<Error>>(&self, body: impl FnOnce(&mut Batch<'_>) -> Result<R, E>) -> Result<R, E> {
        let mut state = lock(&self.0);
        let mut copy = state.clone();
        let result = body(&mut Batch(&mut copy))?;
        *state = copy;
        Ok(result)
    }

    /// What the index holds and costs.
    pub fn stats(&self) -> Stats {
        Stats { keys: lock(&self.0).iter().map(|m| m.len() as u64).sum(), ..Stats::default() }
    }
}

impl Batch<'_> {
    /// As [`Tree::apply`], inside the batch: sees the changes that the batch made before.
    pub fn apply<'v, R>(
        &mut self,
        tree: &Tree,
        key: &[u8],
        decide: impl FnMut(Option<&[u8]>) -> (Effect<'v>, R),
    ) -> Result<R, Error> {
        apply(&mut self.0[tree.id], key, decide)
    }

    /// Removes every key of a range and returns how many there were.
    pub fn delete_range(&mut self, tree: &Tree, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Result<u64, Error> {
        if range_is_empty(lower, upper) {
            return Ok(0);
        }
        let map = &mut self.0[tree.id];
        let keys: Vec<_> = map.range::<[u8], _>((lower, upper)).map(|(k, _)| k.clone()).collect();
        keys.iter().for_each(|k| drop(map.remove(k)));
        Ok(keys.len() as u64)
    }
}

impl Snapshot {
    /// A reader of this snapshot's state of a tree; a tree made later is empty in it.
    pub fn reader(&self, tree: &Tree) -> Reader {
        Reader { state: self.0.clone(), id: tree.id }
    }
}

impl Deref for Tree {
    type Target = Reader;
    fn deref(&self) -> &Reader {
        &self.0
    }
}

impl Tree {
    /// The one way to change a key: `decide` is shown the value that the key has and says what becomes of
    /// it; both happen as one atomic step. `decide` must be quick and must not use this index; it may be
    /// called more than once, and the last call counts.
    pub fn apply<'v, R>(
        &self,
        key: &[u8],
        decide: impl FnMut(Option<&[u8]>) -> (Effect<'v>, R),
    ) -> Result<R, Error> {
        apply(&mut lock(&self.state)[self.id], key, decide)
    }

    /// Maps a key to a value; true if the key was there before.
    pub fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        self.apply(key, |old| (Effect::Put(value.into()), old.is_some()))
    }

    /// Removes a key; true if it was there.
    pub fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        self.apply(key, |old| (Effect::Remove, old.is_some()))
    }
}

impl Reader {
    /// The value of a key.
    pub fn get(&self, key: &[u8]) -> Option<Value> {
        lock(&self.state).get(self.id)?.get(key).cloned()
    }

    /// Shows the value of a key to `see`, without a copy. `see` must be quick.
    pub fn get_with<R>(&self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.get(key).map(|v| see(&v))
    }

    /// True if the key is there.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.get(key).is_some()
    }

    /// Looks many keys up and shows each answer to `see` with the position of its key.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K], mut see: impl FnMut(usize, Option<&[u8]>)) {
        for (i, key) in keys.iter().enumerate() {
            see(i, self.get(key.as_ref()).as_deref());
        }
    }

    /// Shows the pairs of a range in order until `see` breaks. `see` must be quick.
    pub fn scan(
        &self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        mut see: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) {
        if range_is_empty(lower, upper) {
            return;
        }
        let state = lock(&self.state);
        let Some(map) = state.get(self.id) else { return };
        let range = map.range::<[u8], _>((lower, upper));
        let _ = match direction {
            Direction::Forward => range.into_iter().try_for_each(|(k, v)| see(k, v)),
            Direction::Backward => range.rev().try_for_each(|(k, v)| see(k, v)),
        };
    }

    /// The number of keys in a range.
    pub fn count(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> u64 {
        let mut count = 0;
        self.scan(lower, upper, Direction::Forward, |_, _| {
            count += 1;
            ControlFlow::Continue(())
        });
        count
    }

    /// A cursor, at no entry yet.
    pub fn cursor(&self) -> Cursor {
        Cursor { reader: self.clone(), at: None }
    }
}

impl Cursor {
    fn find(&mut self, lower: Bound<&[u8]>, upper: Bound<&[u8]>, direction: Direction) -> bool {
        let mut at = None;
        self.reader.scan(lower, upper, direction, |k, v| {
            at = Some((k.to_vec(), Value::from(v)));
            ControlFlow::Break(())
        });
        self.at = at;
        self.at.is_some()
    }

    /// Moves to the first key at or after `key`; false, and at no entry, if there is none.
    pub fn seek(&mut self, key: &[u8]) -> bool {
        self.find(Bound::Included(key), Bound::Unbounded, Direction::Forward)
    }

    /// Moves to the last key at or before `key`; false, and at no entry, if there is none.
    pub fn seek_for_prev(&mut self, key: &[u8]) -> bool {
        self.find(Bound::Unbounded, Bound::Included(key), Direction::Backward)
    }

    /// Moves to the first key.
    pub fn first(&mut self) -> bool {
        self.find(Bound::Unbounded, Bound::Unbounded, Direction::Forward)
    }

    /// Moves to the last key.
    pub fn last(&mut self) -> bool {
        self.find(Bound::Unbounded, Bound::Unbounded, Direction::Backward)
    }

    /// Moves to the next key; does nothing at no entry.
    #[expect(clippy::should_implement_trait, reason = "a cursor moves both ways, an iterator does not")]
    pub fn next(&mut self) -> bool {
        let Some((key, _)) = self.at.take() else { return false };
        self.find(Bound::Excluded(&key), Bound::Unbounded, Direction::Forward)
    }

    /// Moves to the previous key; does nothing at no entry.
    pub fn prev(&mut self) -> bool {
        let Some((key, _)) = self.at.take() else { return false };
        self.find(Bound::Unbounded, Bound::Excluded(&key), Direction::Backward)
    }

    /// The key at the cursor.
    pub fn key(&self) -> Option<&[u8]> {
        self.at.as_ref().map(|(k, _)| &k[..])
    }

    /// The value at the cursor.
    pub fn value(&self) -> Option<Value> {
        self.at.as_ref().map(|(_, v)| v.clone())
    }
}

//! What can be read: one state of a keyspace, the newest or a snapshot's; and the seam's types for it.

use crate::Value;
use crate::chunk::{COPIED_VALUE_BYTES, Chunk, Filled, Goto};
use crate::error::Result;
use crate::remixdb::Store;
use crate::remixdb::catalog::{Catalog, Space};
use crate::remixdb::disk::Disk;
use crate::remixdb::memtable::Upto;
use crate::remixdb::read;
use crate::remixdb::scan::{self, Scan, Shown};
use crate::remixdb::version::Version;
use forrest_index::Direction;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// A refill of an iteration stops when it has copied this many bytes.
const CHUNK_BYTES: usize = 256 << 10;

/// One state of all keyspaces.
pub(crate) struct Snapshot<D: Disk>(Arc<Past<D>>);

pub(crate) struct Past<D: Disk> {
    store: Store<D>,
    sequence: u64,
    version: Arc<Version<D>>,
    catalog: Arc<Catalog>,
}

impl<D: Disk> Drop for Past<D> {
    fn drop(&mut self) {
        self.store.give_reader_back(self.sequence);
    }
}

impl<D: Disk> Clone for Snapshot<D> {
    fn clone(&self) -> Self {
        Snapshot(self.0.clone())
    }
}

impl<D: Disk> Snapshot<D> {
    pub(crate) fn take(store: &Store<D>) -> Snapshot<D> {
        let (sequence, version, catalog) = store.take_reader();
        Snapshot(Arc::new(Past { store: store.clone(), sequence, version, catalog }))
    }

    pub(crate) fn view(&self, name: &str) -> View<D> {
        View::Past { past: self.0.clone(), space: self.0.catalog.get(name).map(|space| space.id) }
    }

    pub(crate) fn keyspaces(&self) -> Vec<String> {
        self.0.catalog.names()
    }
}

/// One state of a keyspace.
pub(crate) enum View<D: Disk> {
    Newest {
        store: Store<D>,
        space: Arc<Space>,
    },
    Past {
        past: Arc<Past<D>>,
        /// `None` if there was no such keyspace.
        space: Option<u32>,
    },
}

impl<D: Disk> Clone for View<D> {
    fn clone(&self) -> Self {
        match self {
            View::Newest { store, space } => View::Newest { store: store.clone(), space: space.clone() },
            View::Past { past, space } => View::Past { past: past.clone(), space: *space },
        }
    }
}

impl<D: Disk> View<D> {
    /// Runs `read` on the state; `None` if there is no such keyspace in it.
    #[inline]
    fn read<R>(&self, read: impl FnOnce(&Arc<Version<D>>, u32, Upto<'_>) -> Result<R>) -> Result<Option<R>> {
        match self {
            View::Newest { store, space } => {
                let read = read(&store.version(), space.id, store.newest());
                // Checked behind reading: whoever missed a key because of the drop sees that.
                self.check()?;
                read.map(Some)
            }
            View::Past { space: None, .. } => Ok(None),
            View::Past { past, space: Some(id) } => {
                read(&past.version, *id, Upto::Past(past.sequence)).map(Some)
            }
        }
    }

    /// An error if the keyspace was dropped.
    fn check(&self) -> Result<()> {
        match self {
            View::Newest { space, .. } => space.check(),
            View::Past { .. } => Ok(()),
        }
    }

    #[inline]
    fn see<R>(&self, key: &[u8], see: impl FnMut(&[u8]) -> R) -> Result<Option<R>> {
        Ok(self.read(|version, space, upto| read::get(version, space, key, upto, see))?.flatten())
    }

    #[inline]
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        self.see(key, |bytes| Value::from(bytes))
    }

    #[inline]
    pub(crate) fn get_into(&self, key: &[u8], buf: &mut Vec<u8>) -> Result<bool> {
        buf.clear();
        Ok(self.see(key, |bytes| buf.extend_from_slice(bytes))?.is_some())
    }

    #[inline]
    pub(crate) fn contains(&self, key: &[u8]) -> Result<bool> {
        Ok(self.see(key, |_| ())?.is_some())
    }

    pub(crate) fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        keys.iter().map(|key| self.get(key.as_ref())).collect()
    }

    pub(crate) fn count(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Result<u64> {
        let mut count = 0;
        self.read(|version, space, upto| {
            scan::scan(version, space, upto, (lower, upper), Direction::Forward, |_, _| {
                count += 1;
                Ok(ControlFlow::Continue(()))
            })
        })?;
        Ok(count)
    }

    /// Fills a chunk with pairs of a range. `resume` is where the last call for the same end of the same range stopped,
    /// if there was one: unless the store consists of other parts by now, the place need not be found again.
    pub(crate) fn fill(
        &self,
        chunk: &mut Chunk,
        resume: &mut Resume<D>,
        (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        pairs: usize,
    ) -> Result<Filled> {
        let (from, end) = if direction == Direction::Forward { (lower, upper) } else { (upper, lower) };
        let mut full = false;
        self.read(|version, space, upto| {
            let mut scan = match resume.take() {
                Some(scan) if scan.reads(version) => scan,
                _ => Box::new(Scan::start(version.clone(), space, upto, from, direction)?),
            };
            let mut shared_bytes = 0;
            scan.run(upto, end, |key, value: Shown<'_, D>| {
                shared_bytes += value.with(|bytes| {
                    if bytes.len() <= COPIED_VALUE_BYTES {
                        chunk.push_copied(key, bytes);
                        0
                    } else {
                        chunk.push_shared(key, Value::from(bytes));
                        bytes.len()
                    }
                })?;
                full = chunk.len() >= pairs || chunk.bytes() + shared_bytes >= CHUNK_BYTES;
                Ok(if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            })?;
            *resume = full.then_some(scan);
            Ok(())
        })?;
        Ok(if full { Filled::After(chunk.key(chunk.len() - 1).to_vec()) } else { Filled::End })
    }

    pub(crate) fn cursor(&self) -> Cursor<D> {
        Cursor {
            view: self.clone(),
            chunk: Chunk::default(),
            resume: None,
            direction: Direction::Forward,
            at: 0,
            pairs: 0,
        }
    }
}

/// Pairs that a cursor reads at first, and at most, at once.
const PAIRS_FIRST: usize = 2;
const PAIRS_MAX: usize = 512;

/// Where a refill stopped.
pub(crate) type Resume<D> = Option<Box<Scan<D>>>;

/// A position in a view. It reads some way ahead.
pub(crate) struct Cursor<D: Disk> {
    view: View<D>,
    /// Pairs in the direction in which they were read.
    chunk: Chunk,
    resume: Resume<D>,
    direction: Direction,
    /// Where in the chunk; at no pair if beyond its end.
    at: usize,
    /// Pairs that were asked for.
    pairs: usize,
}

impl<D: Disk> Cursor<D> {
    pub(crate) fn goto(&mut self, goto: Goto<'_>) -> Result<bool> {
        use Bound::{Included, Unbounded};
        let found = match goto {
            Goto::First => self.jump(Unbounded, Unbounded, Direction::Forward),
            Goto::Last => self.jump(Unbounded, Unbounded, Direction::Backward),
            Goto::Seek(key) => self.jump(Included(key), Unbounded, Direction::Forward),
            Goto::SeekForPrev(key) => self.jump(Unbounded, Included(key), Direction::Backward),
            Goto::Next => self.step(Direction::Forward),
            Goto::Prev => self.step(Direction::Backward),
        }?;
        self.view.check()?;
        Ok(found)
    }

    fn jump(&mut self, lower: Bound<&[u8]>, upper: Bound<&[u8]>, direction: Direction) -> Result<bool> {
        self.pairs = PAIRS_FIRST;
        self.resume = None;
        self.fill(lower, upper, direction)
    }

    fn fill(&mut self, lower: Bound<&[u8]>, upper: Bound<&[u8]>, direction: Direction) -> Result<bool> {
        self.chunk.clear(self.pairs);
        (self.at, self.direction) = (0, direction);
        self.view.fill(&mut self.chunk, &mut self.resume, (lower, upper), direction, self.pairs)?;
        Ok(self.chunk.len() > 0)
    }

    fn step(&mut self, direction: Direction) -> Result<bool> {
        let Some(key) = self.key() else { return Ok(false) };
        if direction == self.direction {
            if self.at + 1 < self.chunk.len() {
                self.at += 1;
                return Ok(true);
            }
        } else if self.at > 0 {
            self.at -= 1;
            return Ok(true);
        }
        let key = key.to_vec();
        if direction == self.direction {
            self.pairs = (self.pairs * 4).min(PAIRS_MAX);
        } else {
            self.pairs = PAIRS_FIRST;
            self.resume = None;
        }
        match direction {
            Direction::Forward => self.fill(Bound::Excluded(&key), Bound::Unbounded, direction),
            Direction::Backward => self.fill(Bound::Unbounded, Bound::Excluded(&key), direction),
        }
    }

    pub(crate) fn key(&self) -> Option<&[u8]> {
        (self.at < self.chunk.len()).then(|| self.chunk.key(self.at))
    }

    pub(crate) fn value(&self) -> Option<Value> {
        (self.at < self.chunk.len()).then(|| self.chunk.value(self.at))
    }
}

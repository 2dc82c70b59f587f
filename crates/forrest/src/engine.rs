//! The seam between the API and the engines: what an engine must be able to do, and nothing else.
//!
//! Each engine brings four types: a store, a keyspace to write to, a view to read from and a cursor. The
//! enums here choose between the engines at a branch that always goes the same way. Lengths and names
//! have been checked above, and ranges cut to what keys can be.

use crate::chunk::{Chunk, Filled, Goto};
use crate::error::{Error, Result};
use crate::kernel;
use crate::memory;
use crate::op::{Op, Outcome, Written};
use crate::options::{Builder, Durability, Home};
use crate::remixdb;
use crate::remixdb::disk::real::Real;
use crate::stats::{Capabilities, Stats};
use crate::{DEFAULT_KEYSPACE, Value};
use forrest_index::Direction;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// An open store. Cloning makes another handle.
#[derive(Clone)]
pub(crate) enum Store {
    Memory(memory::Store),
    Kernel(kernel::Store),
    Disk(remixdb::Store<Real>),
}

/// A keyspace of an open store, to be written to.
#[derive(Clone)]
pub(crate) enum Space {
    Memory(memory::Space),
    /// The one that there is.
    Kernel(kernel::Store),
    Disk(remixdb::Store<Real>, Arc<remixdb::Space>),
}

/// One state of a keyspace, to be read: the newest, or a snapshot's.
#[derive(Clone)]
pub(crate) enum View {
    Memory(memory::View),
    Kernel(kernel::Store),
    Disk(remixdb::View<Real>),
}

/// One state of all keyspaces.
#[derive(Clone)]
pub(crate) enum Snapshot {
    Memory(memory::Snapshot),
    Disk(remixdb::Snapshot<Real>),
}

/// Where a refill of an iteration stopped, for an engine that can go on from there.
#[derive(Default)]
pub(crate) struct Resume(remixdb::Resume<Real>);

/// A position in a view.
pub(crate) enum Cursor {
    Memory(memory::Cursor),
    Kernel(kernel::Cursor),
    Disk(remixdb::Cursor<Real>),
}

impl Store {
    pub(crate) fn open(home: &Home, builder: &Builder) -> Result<Store> {
        match home {
            Home::Memory if !builder.create => Err(Error::invalid(
                "\"memory:\" is made anew each time, and create(false) says that none is to be",
            )),
            Home::Memory => memory::Store::open(builder).map(Store::Memory),
            Home::Path(path) => {
                let disk = Real::open(path, builder)?;
                remixdb::Store::open(disk, builder).map(Store::Disk)
            }
            Home::Kernel(kind, name) => kernel::Store::open(*kind, name, builder, false).map(Store::Kernel),
        }
    }

    /// Opens a store that others may write to.
    pub(crate) fn open_read_only(home: &Home, builder: &Builder) -> Result<Store> {
        match home {
            Home::Memory => {
                Err(Error::unsupported("opening \"memory:\" read-only: it would be empty for ever"))
            }
            Home::Path(path) => Err(Error::unsupported(format!(
                "opening \"{}\" read-only comes in a later version",
                path.display()
            ))),
            Home::Kernel(kind, name) => kernel::Store::open(*kind, name, builder, true).map(Store::Kernel),
        }
    }

    /// Opens a keyspace, or creates it.
    pub(crate) fn keyspace(&self, name: &str) -> Result<Space> {
        match self {
            Store::Memory(store) => store.keyspace(name).map(Space::Memory),
            Store::Kernel(store) => store.keyspace(name).map(|()| Space::Kernel(store.clone())),
            Store::Disk(store) => Ok(Space::Disk(store.clone(), store.keyspace(name)?)),
        }
    }

    /// The names of all keyspaces, sorted.
    pub(crate) fn keyspaces(&self) -> Result<Vec<String>> {
        match self {
            Store::Memory(store) => Ok(store.keyspaces()),
            Store::Kernel(_) => Ok(vec![DEFAULT_KEYSPACE.to_owned()]),
            Store::Disk(store) => store.keyspaces(),
        }
    }

    /// Removes a keyspace; true if it was there.
    pub(crate) fn drop_keyspace(&self, name: &str) -> Result<bool> {
        match self {
            Store::Memory(store) => store.drop_keyspace(name),
            Store::Kernel(store) => store.keyspace(name).map(|()| false),
            Store::Disk(store) => store.drop_space(name),
        }
    }

    /// Applies operations in order, all or none, visible at one instant.
    pub(crate) fn write<'b>(
        &self,
        ops: impl Iterator<Item = (&'b Space, Op<&'b [u8]>)>,
        durability: Option<Durability>,
    ) -> Result<Written> {
        match self {
            Store::Memory(store) => {
                let ops = ops.map(|(space, op)| match space {
                    Space::Memory(space) => (space, op),
                    _ => unreachable!("a keyspace of another store was refused"),
                });
                store.write(ops, durability)
            }
            Store::Kernel(store) => store.write(ops.map(|(_, op)| op), durability),
            Store::Disk(store) => {
                let ops = ops.map(|(space, op)| match space {
                    Space::Disk(_, space) => (space, op),
                    _ => unreachable!("a keyspace of another store was refused"),
                });
                store.write(&ops.collect::<Vec<_>>(), durability)
            }
        }
    }

    pub(crate) fn snapshot(&self) -> Result<Snapshot> {
        match self {
            Store::Memory(store) => Ok(Snapshot::Memory(store.snapshot())),
            Store::Kernel(store) => Err(Error::unsupported(format!(
                "a snapshot of \"{}\": what is read there is the newest state",
                store.scheme()
            ))),
            Store::Disk(store) => store.snapshot().map(Snapshot::Disk),
        }
    }

    /// Returns when everything written before is as durable as this home can make it.
    pub(crate) fn sync(&self) -> Result<()> {
        match self {
            // There is nothing stronger than what a change has when its call returns.
            Store::Memory(_) | Store::Kernel(_) => Ok(()),
            Store::Disk(store) => store.sync(),
        }
    }

    pub(crate) fn stats(&self) -> Result<Stats> {
        match self {
            Store::Memory(store) => Ok(store.stats()),
            Store::Kernel(store) => store.stats(),
            Store::Disk(store) => store.stats(),
        }
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        match self {
            Store::Memory(_) => memory::capabilities(),
            Store::Kernel(store) => store.capabilities(),
            Store::Disk(_) => remixdb::capabilities(),
        }
    }

    /// How its URL begins.
    fn scheme(&self) -> &'static str {
        self.capabilities().home()
    }

    /// Reads everything stored and checks it.
    pub(crate) fn verify(&self) -> Result<()> {
        match self {
            Store::Memory(_) | Store::Kernel(_) => {
                Err(Error::unsupported(format!("verifying \"{}\": it has no files to check", self.scheme())))
            }
            Store::Disk(store) => store.verify(),
        }
    }

    /// Rewrites the store so that it takes the least space.
    pub(crate) fn compact(&self) -> Result<()> {
        match self {
            Store::Memory(_) | Store::Kernel(_) => Err(Error::unsupported(format!(
                "compacting \"{}\": it gives space back as keys go",
                self.scheme()
            ))),
            Store::Disk(store) => store.compact(),
        }
    }
}

impl Space {
    pub(crate) fn name(&self) -> &str {
        match self {
            Space::Memory(space) => space.name(),
            Space::Kernel(_) => DEFAULT_KEYSPACE,
            Space::Disk(_, space) => &space.name,
        }
    }

    /// The newest state.
    pub(crate) fn view(&self) -> View {
        match self {
            Space::Memory(space) => View::Memory(space.view()),
            Space::Kernel(store) => View::Kernel(store.clone()),
            Space::Disk(store, space) => View::Disk(store.view(space)),
        }
    }

    /// True if both are handles to keyspaces of one store.
    pub(crate) fn same_store(&self, other: &Space) -> bool {
        match (self, other) {
            (Space::Memory(a), Space::Memory(b)) => a.same_store(b),
            (Space::Kernel(a), Space::Kernel(b)) => a.same(b),
            (Space::Disk(a, _), Space::Disk(b, _)) => a.is(b),
            _ => false,
        }
    }

    /// True if both are handles to the same keyspace.
    pub(crate) fn is(&self, other: &Space) -> bool {
        match (self, other) {
            (Space::Memory(a), Space::Memory(b)) => a.is(b),
            (Space::Kernel(a), Space::Kernel(b)) => a.same(b),
            (Space::Disk(_, a), Space::Disk(_, b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// Applies one operation.
    #[inline]
    pub(crate) fn apply(&self, op: Op<&[u8]>) -> Result<Outcome> {
        match self {
            Space::Memory(space) => space.apply(op),
            Space::Kernel(store) => store.apply(op),
            Space::Disk(store, space) => store.apply(space, op),
        }
    }
}

impl Snapshot {
    /// The state of a keyspace; empty if there was none of that name.
    pub(crate) fn view(&self, name: &str) -> View {
        match self {
            Snapshot::Memory(snapshot) => View::Memory(snapshot.view(name)),
            Snapshot::Disk(snapshot) => View::Disk(snapshot.view(name)),
        }
    }

    /// The names of the keyspaces that there were, sorted.
    pub(crate) fn keyspaces(&self) -> Vec<String> {
        match self {
            Snapshot::Memory(snapshot) => snapshot.keyspaces(),
            Snapshot::Disk(snapshot) => snapshot.keyspaces(),
        }
    }
}

impl View {
    #[inline]
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        match self {
            View::Memory(view) => view.get(key),
            View::Kernel(store) => store.get(key),
            View::Disk(view) => view.get(key),
        }
    }

    /// Replaces the content of `buf` by the value, or clears it if there is none.
    #[inline]
    pub(crate) fn get_into(&self, key: &[u8], buf: &mut Vec<u8>) -> Result<bool> {
        match self {
            View::Memory(view) => view.get_into(key, buf),
            View::Kernel(store) => store.get_into(key, buf),
            View::Disk(view) => view.get_into(key, buf),
        }
    }

    pub(crate) fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        match self {
            View::Memory(view) => view.multi_get(keys),
            View::Kernel(store) => store.multi_get(keys),
            View::Disk(view) => view.multi_get(keys),
        }
    }

    #[inline]
    pub(crate) fn contains(&self, key: &[u8]) -> Result<bool> {
        match self {
            View::Memory(view) => view.contains(key),
            View::Kernel(store) => store.contains(key),
            View::Disk(view) => view.contains(key),
        }
    }

    pub(crate) fn count(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Result<u64> {
        match self {
            View::Memory(view) => view.count(lower, upper),
            View::Kernel(store) => store.count(lower, upper),
            View::Disk(view) => view.count(lower, upper),
        }
    }

    /// Shows the pairs of a range in order, from the end that `direction` starts at, until `see` breaks.
    #[inline]
    pub(crate) fn scan(
        &self,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        see: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        match self {
            View::Memory(view) => view.scan(bounds, direction, see),
            View::Kernel(store) => store.scan(bounds, direction, see),
            View::Disk(view) => view.scan(bounds, direction, see),
        }
    }

    /// Fills an empty chunk with at most `pairs` pairs of the range, from the end that `direction` starts at.
    /// `resume` is what the last call for the same end of the same range left, or none.
    pub(crate) fn fill(
        &self,
        chunk: &mut Chunk,
        resume: &mut Resume,
        (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        pairs: usize,
    ) -> Result<Filled> {
        match self {
            View::Memory(view) => view.fill(chunk, lower, upper, direction, pairs),
            View::Kernel(store) => store.fill(chunk, (lower, upper), direction, pairs),
            View::Disk(view) => view.fill(chunk, &mut resume.0, (lower, upper), direction, pairs),
        }
    }

    /// How many pairs the first refill of an iteration should bring, and how many times more each further one. Most
    /// scans are short; where to find the place again costs more than some pairs too many, the first brings many.
    pub(crate) fn pairs_of_refills(&self) -> (usize, usize) {
        match self {
            View::Memory(_) => (64, 4),
            View::Kernel(_) => (32, 4),
            View::Disk(_) => (8, 2),
        }
    }

    pub(crate) fn cursor(&self) -> Cursor {
        match self {
            View::Memory(view) => Cursor::Memory(view.cursor()),
            View::Kernel(store) => Cursor::Kernel(kernel::Cursor::new(store.clone())),
            View::Disk(view) => Cursor::Disk(view.cursor()),
        }
    }
}

impl Cursor {
    /// Gives back what it keeps beside its pair.
    pub(crate) fn park(&mut self) {
        match self {
            // What it has fetched is its own.
            Cursor::Memory(_) => {}
            Cursor::Kernel(cursor) => cursor.park(),
            Cursor::Disk(cursor) => cursor.park(),
        }
    }

    /// Moves; true if there is a pair.
    pub(crate) fn goto(&mut self, goto: Goto<'_>) -> Result<bool> {
        match self {
            Cursor::Memory(cursor) => cursor.goto(goto),
            Cursor::Kernel(cursor) => cursor.goto(goto),
            Cursor::Disk(cursor) => cursor.goto(goto),
        }
    }

    pub(crate) fn key(&self) -> Option<&[u8]> {
        match self {
            Cursor::Memory(cursor) => cursor.key(),
            Cursor::Kernel(cursor) => cursor.key(),
            Cursor::Disk(cursor) => cursor.key(),
        }
    }

    pub(crate) fn value(&self) -> Result<Option<Value>> {
        match self {
            Cursor::Memory(cursor) => Ok(cursor.value()),
            Cursor::Kernel(cursor) => Ok(cursor.value()),
            Cursor::Disk(cursor) => Ok(cursor.value()),
        }
    }
}

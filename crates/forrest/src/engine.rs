//! The seam between the API and the engines: what an engine must be able to do, and nothing else.
//!
//! Each engine brings four types: a store, a keyspace to write to, a view to read from and a cursor. The
//! enums here choose between the engines at a branch that always goes the same way. Lengths and names
//! have been checked above, and ranges cut to what keys can be.

use crate::Value;
use crate::chunk::{Chunk, Filled, Goto};
use crate::error::Result;
use crate::memory;
use crate::op::{Op, Outcome, Written};
use crate::options::{Builder, Durability, Home};
use crate::stats::{Capabilities, Stats};
use forrest_index::Direction;
use std::ops::Bound;

/// An open store. Cloning makes another handle.
#[derive(Clone)]
pub(crate) enum Store {
    Memory(memory::Store),
}

/// A keyspace of an open store, to be written to.
#[derive(Clone)]
pub(crate) enum Space {
    Memory(memory::Space),
}

/// One state of a keyspace, to be read: the newest, or a snapshot's.
#[derive(Clone)]
pub(crate) enum View {
    Memory(memory::View),
}

/// One state of all keyspaces.
#[derive(Clone)]
pub(crate) enum Snapshot {
    Memory(memory::Snapshot),
}

/// A position in a view.
pub(crate) enum Cursor {
    Memory(memory::Cursor),
}

impl Store {
    pub(crate) fn open(home: &Home, builder: &Builder) -> Result<Store> {
        match home {
            Home::Memory => memory::Store::open(builder).map(Store::Memory),
            elsewhere => Err(elsewhere.unsupported()),
        }
    }

    /// Opens a keyspace, or creates it.
    pub(crate) fn keyspace(&self, name: &str) -> Result<Space> {
        match self {
            Store::Memory(store) => store.keyspace(name).map(Space::Memory),
        }
    }

    /// The names of all keyspaces, sorted.
    pub(crate) fn keyspaces(&self) -> Result<Vec<String>> {
        match self {
            Store::Memory(store) => Ok(store.keyspaces()),
        }
    }

    /// Removes a keyspace; true if it was there.
    pub(crate) fn drop_keyspace(&self, name: &str) -> Result<bool> {
        match self {
            Store::Memory(store) => store.drop_keyspace(name),
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
                });
                store.write(ops, durability)
            }
        }
    }

    pub(crate) fn snapshot(&self) -> Result<Snapshot> {
        match self {
            Store::Memory(store) => Ok(Snapshot::Memory(store.snapshot())),
        }
    }

    /// Returns when everything written before is as durable as this home can make it.
    pub(crate) fn sync(&self) -> Result<()> {
        match self {
            Store::Memory(_) => Ok(()),
        }
    }

    pub(crate) fn stats(&self) -> Result<Stats> {
        match self {
            Store::Memory(store) => Ok(store.stats()),
        }
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        match self {
            Store::Memory(_) => memory::capabilities(),
        }
    }
}

impl Space {
    pub(crate) fn name(&self) -> &str {
        match self {
            Space::Memory(space) => space.name(),
        }
    }

    /// The newest state.
    pub(crate) fn view(&self) -> View {
        match self {
            Space::Memory(space) => View::Memory(space.view()),
        }
    }

    /// True if both are handles to keyspaces of one store.
    pub(crate) fn same_store(&self, other: &Space) -> bool {
        match (self, other) {
            (Space::Memory(a), Space::Memory(b)) => a.same_store(b),
        }
    }

    /// True if both are handles to the same keyspace.
    pub(crate) fn is(&self, other: &Space) -> bool {
        match (self, other) {
            (Space::Memory(a), Space::Memory(b)) => a.is(b),
        }
    }

    /// Applies one operation.
    #[inline]
    pub(crate) fn apply(&self, op: Op<&[u8]>) -> Result<Outcome> {
        match self {
            Space::Memory(space) => space.apply(op),
        }
    }
}

impl Snapshot {
    /// The state of a keyspace; empty if there was none of that name.
    pub(crate) fn view(&self, name: &str) -> View {
        match self {
            Snapshot::Memory(snapshot) => View::Memory(snapshot.view(name)),
        }
    }

    /// The names of the keyspaces that there were, sorted.
    pub(crate) fn keyspaces(&self) -> Vec<String> {
        match self {
            Snapshot::Memory(snapshot) => snapshot.keyspaces(),
        }
    }
}

impl View {
    #[inline]
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        match self {
            View::Memory(view) => view.get(key),
        }
    }

    /// Replaces the content of `buf` by the value, or clears it if there is none.
    #[inline]
    pub(crate) fn get_into(&self, key: &[u8], buf: &mut Vec<u8>) -> Result<bool> {
        match self {
            View::Memory(view) => view.get_into(key, buf),
        }
    }

    pub(crate) fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        match self {
            View::Memory(view) => view.multi_get(keys),
        }
    }

    #[inline]
    pub(crate) fn contains(&self, key: &[u8]) -> Result<bool> {
        match self {
            View::Memory(view) => view.contains(key),
        }
    }

    pub(crate) fn count(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Result<u64> {
        match self {
            View::Memory(view) => view.count(lower, upper),
        }
    }

    /// Fills an empty chunk with at most `pairs` pairs of the range, from the end that `direction` starts at.
    pub(crate) fn fill(
        &self,
        chunk: &mut Chunk,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        pairs: usize,
    ) -> Result<Filled> {
        match self {
            View::Memory(view) => view.fill(chunk, lower, upper, direction, pairs),
        }
    }

    pub(crate) fn cursor(&self) -> Cursor {
        match self {
            View::Memory(view) => Cursor::Memory(view.cursor()),
        }
    }
}

impl Cursor {
    /// Moves; true if there is a pair.
    pub(crate) fn goto(&mut self, goto: Goto<'_>) -> Result<bool> {
        match self {
            Cursor::Memory(cursor) => cursor.goto(goto),
        }
    }

    pub(crate) fn key(&self) -> Option<&[u8]> {
        match self {
            Cursor::Memory(cursor) => cursor.key(),
        }
    }

    pub(crate) fn value(&self) -> Result<Option<Value>> {
        match self {
            Cursor::Memory(cursor) => Ok(cursor.value()),
        }
    }
}

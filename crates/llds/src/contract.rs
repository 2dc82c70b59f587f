//! The contract of `forrest-engine`: a store has one keyspace, and reads see its newest state.

use crate::cursor::Cursor;
use crate::store::Store;
use forrest_engine::{
    Capabilities, Chunk, DEFAULT_KEYSPACE, Direction, Durability, Error, Filled, NoSnapshot, Op, Outcome,
    Result, Stats, Value, Written,
};
use std::ops::{Bound, ControlFlow};

/// The keyspace of a store.
#[derive(Clone)]
pub struct Keyspace(Store);

/// The newest state of a store.
#[derive(Clone)]
pub struct View(Store);

impl forrest_engine::Store for Store {
    type Keyspace = Keyspace;
    type View = View;
    type Snapshot = NoSnapshot<View>;

    fn keyspace(&self, name: &str) -> Result<Keyspace> {
        self.check_keyspace(name).map(|()| Keyspace(self.clone()))
    }

    fn keyspaces(&self) -> Result<Vec<String>> {
        Ok(vec![DEFAULT_KEYSPACE.to_owned()])
    }

    fn drop_keyspace(&self, name: &str) -> Result<bool> {
        self.check_keyspace(name).map(|()| false)
    }

    fn write<'b>(
        &self,
        ops: impl Iterator<Item = (&'b Keyspace, Op<&'b [u8]>)>,
        durability: Option<Durability>,
    ) -> Result<Written> {
        self.write_all(ops.map(|(_, op)| op), durability)
    }

    fn snapshot(&self) -> Result<NoSnapshot<View>> {
        Err(Error::unsupported(format!(
            "a snapshot of \"{}\": what is read there is the newest state",
            self.scheme()
        )))
    }

    fn sync(&self) -> Result<()> {
        // A change has the strongest durability of its home when its call returns.
        Ok(())
    }

    fn stats(&self) -> Result<Stats> {
        self.statistics()
    }

    fn capabilities(&self) -> Capabilities {
        self.abilities()
    }
}

impl forrest_engine::Keyspace for Keyspace {
    type View = View;

    fn name(&self) -> &str {
        DEFAULT_KEYSPACE
    }

    fn view(&self) -> View {
        View(self.0.clone())
    }

    fn same_store(&self, other: &Self) -> bool {
        self.0.same(&other.0)
    }

    fn is(&self, other: &Self) -> bool {
        self.0.same(&other.0)
    }

    #[inline]
    fn apply(&self, op: Op<&[u8]>) -> Result<Outcome> {
        self.0.apply(op)
    }
}

impl forrest_engine::View for View {
    type Cursor = Cursor;
    type Resume = ();

    #[inline]
    fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        self.0.get(key)
    }

    #[inline]
    fn get_into(&self, key: &[u8], buf: &mut Vec<u8>) -> Result<bool> {
        self.0.get_into(key, buf)
    }

    fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        self.0.multi_get(keys)
    }

    #[inline]
    fn contains(&self, key: &[u8]) -> Result<bool> {
        self.0.contains(key)
    }

    fn count(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Result<u64> {
        self.0.count(lower, upper)
    }

    #[inline]
    fn scan(
        &self,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        see: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        self.0.scan(bounds, direction, see)
    }

    fn fill(
        &self,
        chunk: &mut Chunk,
        _resume: &mut (),
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
    ) -> Result<Filled> {
        self.0.fill(chunk, bounds, direction)
    }

    fn refills(&self) -> (usize, usize) {
        (50, 4)
    }

    fn cursor(&self) -> Cursor {
        Cursor::new(self.0.clone())
    }
}

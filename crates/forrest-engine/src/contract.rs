//! The traits that an engine implements.
//!
//! The API calls them through an enum over the compiled-in engines, so every call is direct and can be
//! inlined. Handles ([`Store`], [`Keyspace`], [`View`], [`Snapshot`]) are cheap to clone and may be used by
//! several threads at once. Dropping the last handle of a store closes it.

use crate::bounds::KeyBounds;
use crate::changes::Changes;
use crate::chunk::{Chunk, Filled, Goto};
use crate::error::{Error, Result};
use crate::ingest::Ingest;
use crate::merge::SharedOperator;
use crate::metrics::Metrics;
use crate::op::{Op, Outcome, Written};
use crate::options::{Compression, Durability, OptionChanges};
use crate::pieces::{Pieces, Whole};
use crate::stats::{Approximate, Capabilities, Stats};
use forrest_index::{Direction, Value};
use std::marker::PhantomData;
use std::ops::{Bound, ControlFlow};
use std::time::Duration;

/// An open store.
pub trait Store: Clone + Send + Sync + 'static {
    /// A keyspace to write to.
    type Keyspace: Keyspace<View = Self::View>;
    /// One state of a keyspace, to read.
    type View: View;
    /// One state of all keyspaces.
    type Snapshot: Snapshot<View = Self::View>;

    /// Opens a keyspace, or creates it.
    ///
    /// # Errors
    /// `Limit` if there are too many; `Unsupported` if the engine has only the default one.
    fn keyspace(&self, name: &str) -> Result<Self::Keyspace>;

    /// The names of all keyspaces, sorted. The default one is always among them.
    ///
    /// # Errors
    /// Those of the engine.
    fn keyspaces(&self) -> Result<Vec<String>>;

    /// Removes a keyspace and all its pairs. True if it existed. The API never passes the default one.
    ///
    /// # Errors
    /// Those of the engine.
    fn drop_keyspace(&self, name: &str) -> Result<bool>;

    /// Applies operations in order, all or none, visible at one instant. If `durability` is `None`, the
    /// store's default applies. REQUIRES: comparisons of ranges stand before all other operations.
    ///
    /// # Errors
    /// `Unsupported` for a durability that this engine cannot keep; an error of one operation carries its number
    /// ([`Error::at_op`]). A batch that fails changes nothing.
    fn write<'b>(
        &self,
        ops: impl Iterator<Item = (&'b Self::Keyspace, Op<&'b [u8]>)>,
        durability: Option<Durability>,
    ) -> Result<Written>;

    /// The state of all keyspaces at this moment.
    ///
    /// # Errors
    /// `Unsupported` if the engine has no snapshots.
    fn snapshot(&self) -> Result<Self::Snapshot>;

    /// Returns when everything written before is as durable as this engine can make it.
    ///
    /// # Errors
    /// `Io` if the device reports a failure, `Stopped` after an earlier one.
    fn sync(&self) -> Result<()>;

    /// What the store holds and what it costs.
    ///
    /// # Errors
    /// Those of the engine.
    fn stats(&self) -> Result<Stats>;

    /// What the store has done since it was opened.
    ///
    /// # Errors
    /// `Unsupported` if the engine does not count it.
    fn metrics(&self) -> Result<Metrics> {
        let home = self.capabilities().home();
        Err(Error::unsupported(format!("metrics of \"{home}\": only stores on disk count them")))
    }

    /// The features of the engine. Their `home` is the beginning of the store's URL.
    fn capabilities(&self) -> Capabilities;

    /// Reads everything stored and checks it.
    ///
    /// # Errors
    /// `Corrupt` for the first damage found; `Unsupported` if the engine has no files.
    fn verify(&self) -> Result<()> {
        let home = self.capabilities().home();
        Err(Error::unsupported(format!("verifying \"{home}\": it has no files to check")))
    }

    /// Takes over what other processes have changed, if the store was opened to be read and does not see it at once.
    ///
    /// # Errors
    /// `Corrupt`, `Io`, `OutOfSpace`.
    fn refresh(&self) -> Result<()> {
        Ok(())
    }

    /// Gives memory that the engine keeps for later back to the system. Does nothing if the engine keeps none.
    ///
    /// # Errors
    /// Those of the engine.
    fn trim(&self) -> Result<()> {
        Ok(())
    }

    /// Accepts changes again after a failure that has stopped the store, if that is safe. Does nothing if it is not
    /// stopped, or if no failure can stop it.
    ///
    /// # Errors
    /// `Stopped` if the store has to be opened again, and the error if it fails again.
    fn resume(&self) -> Result<()> {
        Ok(())
    }

    /// Changes options. The limits of batches are the caller's to enforce.
    ///
    /// # Errors
    /// `InvalidArgument` for a value outside its limits, `Limit` for one beyond what can be had without opening the
    /// store again, `Unsupported` for an option that the engine does not have. Nothing is changed then.
    fn set_options(&self, changes: &OptionChanges) -> Result<()> {
        changes.check()?;
        match changes.first_of_disk() {
            None => Ok(()),
            Some(name) => {
                let home = self.capabilities().home();
                Err(Error::unsupported(format!("changing {name} of \"{home}\": only stores on disk have it")))
            }
        }
    }

    /// The changes after sequence number `since`, as far as they are this durable.
    ///
    /// # Errors
    /// `Gone` if some of them are no longer kept; `InvalidArgument` if the store keeps none; `Unsupported` if the
    /// engine has none; `Io`, `Corrupt`, `OutOfSpace`.
    fn changes(&self, since: u64, durability: Durability) -> Result<Box<dyn Changes>> {
        let _ = (since, durability);
        let home = self.capabilities().home();
        Err(Error::unsupported(format!("the changes of \"{home}\": only stores on disk return them")))
    }

    /// Moves all changes from memory and logs to tables, durably. Does nothing if the engine has no tables.
    ///
    /// # Errors
    /// `Io`, `OutOfSpace`, `Stopped`.
    fn flush(&self) -> Result<()> {
        Ok(())
    }

    /// Finishes the background work that changes have left, so that the store opens and reads fast. Does nothing if
    /// the engine leaves none.
    ///
    /// # Errors
    /// `Io`, `OutOfSpace`, `Stopped`.
    fn settle(&self) -> Result<()> {
        Ok(())
    }

    /// Rewrites the store so that it takes the least space.
    ///
    /// # Errors
    /// `Io`, `OutOfSpace`, `Stopped`; `Unsupported` if the engine frees space whenever keys are deleted.
    fn compact(&self) -> Result<()> {
        let home = self.capabilities().home();
        Err(Error::unsupported(format!("compacting \"{home}\": it gives space back as keys are deleted")))
    }
}

/// A keyspace of an open store, to write to.
pub trait Keyspace: Clone + Send + Sync + 'static {
    /// One state of it, to read.
    type View: View;

    /// Its name.
    fn name(&self) -> &str;

    /// The newest state, at the time of each read.
    fn view(&self) -> Self::View;

    /// True if both are keyspaces of one store.
    fn same_store(&self, other: &Self) -> bool;

    /// True if both are the same keyspace.
    fn is(&self, other: &Self) -> bool;

    /// Its merge operator.
    fn merge_operator(&self) -> Option<SharedOperator> {
        None
    }

    /// Chooses its merge operator.
    ///
    /// # Errors
    /// `InvalidArgument` if the keyspace has another one, is not empty or was dropped, or if no operator has this name;
    /// `Unsupported` if the engine has none; `Io`, `OutOfSpace`, `Stopped`.
    fn set_merge_operator(&self, name: &str) -> Result<()> {
        Err(Error::unsupported(format!(
            "the merge operator \"{}\": only stores in memory and on disk have them; use add, or update",
            name.escape_debug()
        )))
    }

    /// The time to live of values that are set without one.
    fn ttl(&self) -> Option<Duration> {
        None
    }

    /// Changes that. Values that are there keep their time. On disk durable when it returns.
    ///
    /// # Errors
    /// `Unsupported` if the engine has none; `InvalidArgument` if the keyspace was dropped, or for no time at all;
    /// `Io`, `OutOfSpace`, `Stopped`.
    fn set_ttl(&self, ttl: Option<Duration>) -> Result<()> {
        if ttl.is_none() { Ok(()) } else { Err(no_expiry()) }
    }

    /// Applies one operation, with the durability of the store.
    ///
    /// # Errors
    /// `InvalidArgument` if the keyspace was dropped or the operation does not fit the current value;
    /// `Limit`; `OutOfSpace`; `Io`; `Stopped`.
    fn apply(&self, op: Op<&[u8]>) -> Result<Outcome>;

    /// Begins an ingest of sorted pairs.
    ///
    /// # Errors
    /// `Unsupported` if the engine has none; `InvalidArgument` if the keyspace was dropped; `OutOfSpace`; `Stopped`.
    fn ingest(&self) -> Result<Box<dyn Ingest>> {
        Err(Error::unsupported("an ingest into this home: it takes pairs one by one, or in batches"))
    }

    /// The compression of the tables that it gets from now on.
    fn compression(&self) -> Compression {
        Compression::None
    }

    /// Changes that. Tables that are there stay as they are. Durable when it returns.
    ///
    /// # Errors
    /// `Unsupported` if the engine or this build of it does not have it; `InvalidArgument` if the keyspace was dropped;
    /// `Io`; `OutOfSpace`; `Stopped`.
    fn set_compression(&self, method: Compression) -> Result<()> {
        match method {
            Compression::None => Ok(()),
            _ => Err(Error::unsupported(format!("compression {method}: only stores on disk have it"))),
        }
    }

    /// Rewrites what the store has of a range, so that it takes the least space: from `start` up to but not including
    /// `end`, or to the last key.
    ///
    /// # Errors
    /// As [`Store::compact`]; `InvalidArgument` if the keyspace was dropped.
    fn compact_range(&self, start: &[u8], end: Option<&[u8]>) -> Result<()> {
        let _ = (start, end);
        Err(Error::unsupported("compacting a range: this home gives space back as keys are deleted"))
    }
}

/// One state of all keyspaces.
pub trait Snapshot: Clone + Send + Sync + 'static {
    /// One keyspace of it.
    type View: View;

    /// The state of a keyspace; empty if there was none with that name.
    fn view(&self, name: &str) -> Self::View;

    /// The names of the keyspaces at that time, sorted.
    fn keyspaces(&self) -> Vec<String>;

    /// The time to live that a keyspace of it has now; `None` also if the engine does not know.
    fn ttl(&self, name: &str) -> Option<Duration> {
        let _ = name;
        None
    }

    /// The sequence number of the last change that it has: the changes after it are those that it lacks. `None` if the
    /// engine has no [`Store::changes`].
    fn sequence(&self) -> Option<u64> {
        None
    }
}

/// One state of a keyspace: the newest, or a snapshot's.
///
/// Reads of the newest state fail with `InvalidArgument` after the keyspace was dropped, and with `Io` or
/// `Corrupt` if data is read from a device.
pub trait View: Clone + Send + Sync + 'static {
    /// A position in it.
    type Cursor: Cursor;
    /// Where a refill of an iteration stopped, for an engine that can continue from there. It must not keep
    /// alive what the iteration no longer shows.
    type Resume: Default + Send + Sync;

    /// The value of a key.
    ///
    /// # Errors
    /// See [`View`].
    fn get(&self, key: &[u8]) -> Result<Option<Value>>;

    /// The same if no wait for a device is needed; `None` if the engine would have to wait.
    ///
    /// # Errors
    /// See [`View`].
    fn get_cached(&self, key: &[u8]) -> Result<Option<Option<Value>>> {
        self.get(key).map(Some)
    }

    /// Replaces the content of `buf` by the value, or clears it if there is none. True if there is one.
    ///
    /// # Errors
    /// See [`View`].
    fn get_into(&self, key: &[u8], buf: &mut Vec<u8>) -> Result<bool>;

    /// The values of many keys, in the order of the keys.
    ///
    /// # Errors
    /// See [`View`].
    fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>>;

    /// Whether a key is there.
    ///
    /// # Errors
    /// See [`View`].
    fn contains(&self, key: &[u8]) -> Result<bool>;

    /// The value of a key, to be read in pieces.
    ///
    /// # Errors
    /// See [`View`].
    fn pieces(&self, key: &[u8]) -> Result<Option<Box<dyn Pieces>>> {
        Ok(self.get(key)?.map(|value| Box::new(Whole::new(value)) as _))
    }

    /// When the value of a key expires, in milliseconds since 1970; `Some(None)` if it does not, and `None` if the key
    /// is not there.
    ///
    /// # Errors
    /// See [`View`].
    fn expires_ms(&self, key: &[u8]) -> Result<Option<Option<u64>>> {
        Ok(self.contains(key)?.then_some(None))
    }

    /// Whether values may expire, or may have; true if that is not known.
    fn may_expire(&self) -> bool {
        true
    }

    /// The number of keys in a range.
    ///
    /// # Errors
    /// See [`View`].
    fn count(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Result<u64>;

    /// Passes the pairs of a range to `see`, in order from the end that `direction` starts at, until `see`
    /// breaks.
    ///
    /// # Errors
    /// See [`View`].
    fn scan(
        &self,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        see: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()>;

    /// As [`scan`](View::scan), with the keys alone. What values cost to read is saved.
    ///
    /// # Errors
    /// See [`View`].
    fn scan_keys(
        &self,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        mut see: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        self.scan(bounds, direction, |key, _| see(key))
    }

    /// Passes at most `limit` pairs of each range to `see`, in ascending order, with the number of the range. The
    /// ranges come in their order. `see` ends the call by breaking. With `keys_only` all values are empty. An engine
    /// overlaps the waits of a limited number of ranges.
    ///
    /// # Errors
    /// See [`View`]. `see` may have had pairs before.
    fn multi_scan(
        &self,
        ranges: &[KeyBounds<'_>],
        limit: usize,
        keys_only: bool,
        see: impl FnMut(usize, &[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        one_by_one(self, ranges, limit, keys_only, see)
    }

    /// The number of keys in a range and their bytes, about, in time that does not grow with them.
    ///
    /// # Errors
    /// See [`View`]; `Unsupported` if the engine cannot do that.
    fn approximate(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Result<Approximate> {
        let _ = (lower, upper);
        Err(Error::unsupported("an approximate count: the engine of this home has no call for it"))
    }

    /// Fills an empty chunk with pairs of a range, from the end that `direction` starts at, until it is full. `resume`
    /// is what the last call for the same end of the same range left, or its default.
    ///
    /// # Errors
    /// See [`View`].
    fn fill(
        &self,
        chunk: &mut Chunk,
        resume: &mut Self::Resume,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
    ) -> Result<Filled>;

    /// How many pairs the first refill of an iteration should bring, and the factor by which the number of pairs grows
    /// with each further one, up to the next round number. Most scans are short. If a seek is expensive, the first
    /// refill is large.
    fn refills(&self) -> (usize, usize);

    /// A cursor, at no pair.
    fn cursor(&self) -> Self::Cursor;
}

/// Scans ranges one after the other, for [`View::multi_scan`].
///
/// # Errors
/// Those of the view.
pub fn one_by_one<V: View>(
    view: &V,
    ranges: &[KeyBounds<'_>],
    limit: usize,
    keys_only: bool,
    mut see: impl FnMut(usize, &[u8], &[u8]) -> ControlFlow<()>,
) -> Result<()> {
    if limit == 0 {
        return Ok(());
    }
    for (number, &range) in ranges.iter().enumerate() {
        let (mut shown, mut flow) = (0, ControlFlow::Continue(()));
        let mut show = |key: &[u8], value: &[u8]| {
            shown += 1;
            flow = see(number, key, value);
            if shown == limit { ControlFlow::Break(()) } else { flow }
        };
        if keys_only {
            view.scan_keys(range, Direction::Forward, |key| show(key, &[]))?;
        } else {
            view.scan(range, Direction::Forward, show)?;
        }
        if flow.is_break() {
            return Ok(());
        }
    }
    Ok(())
}

/// A position in a [`View`]: at a pair, or at none.
pub trait Cursor: Send + Sync {
    /// Moves the cursor. True if there is a pair there.
    ///
    /// # Errors
    /// See [`View`]. After an error the cursor has not moved, or is at no pair.
    fn goto(&mut self, goto: Goto<'_>) -> Result<bool>;

    /// From the next move on it reads no values: all are empty.
    fn keys_only(&mut self);

    /// Frees everything but the pair. The next move seeks its place again.
    fn park(&mut self);

    /// The key of the pair.
    fn key(&self) -> Option<&[u8]>;

    /// The value of the pair.
    fn value(&self) -> Option<Value>;
}

/// The snapshot of an engine that has none: there is no value of this type.
#[derive(Debug)]
pub struct NoSnapshot<V>(Never, PhantomData<V>);

#[derive(Debug, Clone, Copy)]
enum Never {}

impl<V> Clone for NoSnapshot<V> {
    fn clone(&self) -> Self {
        match self.0 {}
    }
}

impl<V: View> Snapshot for NoSnapshot<V> {
    type View = V;

    fn view(&self, _name: &str) -> V {
        match self.0 {}
    }

    fn keyspaces(&self) -> Vec<String> {
        match self.0 {}
    }
}

/// The error of a home without values that expire.
#[cold]
pub fn no_expiry() -> Error {
    Error::unsupported("a value that expires in this home: only stores in memory and on disk have them")
}

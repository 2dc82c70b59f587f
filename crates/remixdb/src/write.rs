//! The write path, for every change there is: admit, order, log, apply, make visible, commit.
//!
//! 1. **Admit**: not after a failure; and not faster than memtables become tables, by short waits that grow with what
//!    waits to be written out ([`Core::admit`]).
//! 2. **Order**: under one lock the operations are decided, with what they find, and get their sequence numbers.
//! 3. **Log**: their effects are queued for the log; a batch as a whole. No I/O takes place under the lock, but for
//!    what a batch that compares or adds reads from tables, and a new log file where a memtable is full.
//! 4. **Apply** to the memtable.
//! 5. **Make visible**, at one instant.
//! 6. **Commit**, without the lock: wait until the log is as durable as the caller wants it.
//!
//! A change is seen by others before it is durable; whoever makes a durable change after having seen it, makes it
//! durable too, because the log is one. What fails after its effects were queued stops the store: see
//! [`wal`](crate::wal).

use crate::catalog::{Catalog, Space};
use crate::core::{Core, Order};
use crate::disk::Disk;
use crate::memtable::{Memtable, ReadAt, VALUE_MAX};
use crate::read;
use crate::scan;
use crate::version::Version;
use crate::wal::Change;
use forrest_engine::Value;
use forrest_engine::{Durability, MAX_KEYSPACES};
use forrest_engine::{Effect, Op, Outcome, Swap, Written};
use forrest_engine::{Error, ErrorKind, Result};
use forrest_index::Direction;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

/// Immutable memtables from which on writers wait, and for how long one waits for each that is too many.
const BACKLOG: usize = 2;
const WAIT: Duration = Duration::from_millis(2);

/// What a key shall map to: a value, or nothing.
type New<'b> = Option<Cow<'b, [u8]>>;

/// A change that is decided.
struct Decided<'b> {
    space: u32,
    key: Cow<'b, [u8]>,
    new: New<'b>,
}

impl Decided<'_> {
    fn change(&self) -> Change<'_> {
        match &self.new {
            Some(value) => Change::Put { space: self.space, key: &self.key, value },
            None => Change::Delete { space: self.space, key: &self.key },
        }
    }
}

/// What an effect makes of a key; `None` if it leaves it.
fn new_value(effect: Effect<'_>) -> Option<New<'_>> {
    match effect {
        Effect::Keep => None,
        Effect::Put(bytes) => Some(Some(bytes)),
        Effect::PutValue(value) => Some(Some(Cow::Owned(value.to_vec()))),
        Effect::Remove => Some(None),
    }
}

/// Whether what an operation does depends on what is there.
fn reads(op: &Op<&[u8]>) -> bool {
    !matches!(op, Op::Set { .. })
}

fn check_value(op: &Op<&[u8]>) -> Result<()> {
    match op {
        Op::Set { value, .. } | Op::CompareAndSwap { new: Some(value), .. } if value.len() > VALUE_MAX => {
            Err(Error::limit("value", "bytes", value.len(), VALUE_MAX))
        }
        _ => Ok(()),
    }
}

impl<D: Disk> Core<D> {
    /// Makes one change.
    pub(crate) fn apply(&self, space: &Arc<Space>, op: Op<&[u8]>) -> Result<Outcome> {
        if let Op::DeleteRange { .. } = op {
            return self.delete_range(space, op);
        }
        check_value(&op)?;
        self.check_here()?;
        let key = op.key();
        // Read before the lock is taken: what tables say stays true until they are others. And given up after it, for
        // files may go with them.
        let before = reads(&op).then(|| self.version());
        let looked = match &before {
            Some(before) => Some((before, read::value_in_tables(before, space.id, key)?)),
            None => None,
        };
        let mut order = self.admit()?;
        space.check()?;
        let old = match looked {
            None => None,
            Some((before, in_tables)) => {
                let now = &order.version;
                match read::in_memtables(now, space.id, key, self.newest(), |bytes| Value::from(bytes)) {
                    Some(said) => said,
                    None if same_partition(before, now, space.id, key) => in_tables,
                    None => read::value_in_tables(now, space.id, key)?,
                }
            }
        };
        let (effect, outcome) = op.resolve(old.as_deref())?;
        let Some(new) = new_value(effect) else { return Ok(outcome) };
        if new.is_none() && old.is_none() {
            return Ok(outcome);
        }
        let decided = Decided { space: space.id, key: Cow::Borrowed(key), new };
        let last = self.record(&mut order, &[decided])?;
        drop(order);
        self.log().commit(last, self.durability())?;
        Ok(outcome)
    }

    /// Makes changes together, or none of them.
    pub(crate) fn write(
        &self,
        ops: &[(&Arc<Space>, Op<&[u8]>)],
        durability: Option<Durability>,
    ) -> Result<Written> {
        let at = |at: usize| move |error: Error| error.at_op(at);
        for (i, (_, op)) in ops.iter().enumerate() {
            check_value(op).map_err(at(i))?;
        }
        let mut order = self.admit()?;
        let mut batch = Batch { store: self, version: &order.version, decided: Vec::new(), overlay: None };
        if ops.iter().any(|(_, op)| reads(op) && !matches!(op, Op::Delete { .. })) {
            batch.overlay = Some(BTreeMap::new());
        }
        for (i, (space, op)) in ops.iter().enumerate() {
            space.check().map_err(at(i))?;
            let outcome = batch.decide(space.id, *op).map_err(at(i))?;
            if let Outcome::Swapped(Swap::Mismatch(found)) = outcome {
                return Ok(Written::Mismatch { op: i, found });
            }
        }
        let decided = batch.decided;
        // Also a batch that changes nothing makes all before it as durable as it is to be itself.
        let last = self.record(&mut order, &decided)?;
        drop(order);
        self.log().commit(last, durability.unwrap_or(self.durability()))?;
        Ok(Written::Applied)
    }

    fn delete_range(&self, space: &Arc<Space>, op: Op<&[u8]>) -> Result<Outcome> {
        let mut order = self.admit()?;
        space.check()?;
        let version = &order.version;
        let mut batch = Batch { store: self, version, decided: Vec::new(), overlay: Some(BTreeMap::new()) };
        let outcome = batch.decide(space.id, op)?;
        let decided = batch.decided;
        let last = self.record(&mut order, &decided)?;
        drop(order);
        self.log().commit(last, self.durability())?;
        Ok(outcome)
    }

    /// Waits for the turn to change the store.
    fn admit(&self) -> Result<MutexGuard<'_, Order<D>>> {
        self.check_here()?;
        self.log().check()?;
        self.check_room()?;
        let backlog = self.backlog();
        if backlog >= BACKLOG {
            self.wait_for_work(WAIT * (backlog + 1 - BACKLOG) as u32);
        }
        let order = self.order();
        self.log().check()?;
        Ok(order)
    }

    /// An error if there is no room for what was taken before.
    fn check_room(&self) -> Result<()> {
        // ORDERING: nothing is read that goes with it, and a change more or less does not matter.
        if !self.full.load(Ordering::Relaxed) {
            return Ok(());
        }
        let what = "there is no room, or no file descriptor, for the tables that earlier changes are to become (they are in the log, \
                    and can be read); the store goes on by itself when there is";
        Err(Error::new(ErrorKind::OutOfSpace, what))
    }

    /// Logs decided changes and applies them; the sequence number of the last.
    fn record(&self, order: &mut Order<D>, decided: &[Decided<'_>]) -> Result<u64> {
        let first = order.sequence + 1;
        let last = order.sequence + decided.len() as u64;
        if decided.is_empty() {
            return Ok(last);
        }
        let count = decided.len() as u64;
        self.log().queue(count, |out| decided.iter().for_each(|decided| decided.change().put(out)));
        order.sequence = last;
        if decided.len() == 1 {
            // A single change needs no instant beside that of its application, and so nothing is kept for who reads
            // while it takes place.
            self.make_visible(last);
        }
        let keep = order.oldest_reader().unwrap_or(u64::MAX).min(self.visible());
        let Order { version, scratch, .. } = &mut *order;
        let memtable = &version.memtable;
        for (sequence, decided) in (first..).zip(decided) {
            let Decided { space, key, new } = decided;
            memtable
                .set(*space, key, sequence, new.as_deref(), keep, scratch)
                .map_err(|error| self.log().stop(error))?;
        }
        self.make_visible(last);
        if memtable.bytes() >= self.builder().memtable_bytes {
            self.freeze(order)?;
        }
        Ok(last)
    }

    /// Goes on with an empty memtable and a new log.
    pub(crate) fn freeze(&self, order: &mut Order<D>) -> Result<()> {
        let number = self.next_number();
        let memtable = Memtable::new(self.builder(), number)?;
        self.log().rotate(number)?;
        // Nobody else sets it, and the memtable gets no more changes.
        let _ = order.version.memtable.catalog.set(order.catalog.clone());
        let version = order.version.with_memtable(memtable);
        // No file goes with the old one: the new one has all that it has.
        let _ = self.set_version(order, version);
        self.call_for_work();
        Ok(())
    }

    /// Opens a keyspace, or creates it.
    pub(crate) fn keyspace(&self, name: &str) -> Result<Arc<Space>> {
        self.make_space(name, MAX_KEYSPACES)
    }

    /// Makes a keyspace, or finds it.
    pub(crate) fn make_space(&self, name: &str, most: usize) -> Result<Arc<Space>> {
        self.check_here()?;
        if let Some(space) = self.order().catalog.get(name) {
            return Ok(space.clone());
        }
        let mut order = self.admit()?;
        if let Some(space) = order.catalog.get(name) {
            return Ok(space.clone());
        }
        if order.catalog.spaces.len() >= most {
            return Err(Error::limit("store", "keyspaces", most + 1, most));
        }
        let id = order.catalog.next;
        let catalog = order.catalog.with(name, id);
        let catalog =
            catalog.ok_or_else(|| Error::limit("store", "keyspaces ever made", id as usize, id as usize))?;
        let last = self.change_catalog(&mut order, Change::Create { space: id, name }, catalog);
        let space = order.catalog.get(name).expect("it was just made").clone();
        drop(order);
        self.log().commit(last, self.durability())?;
        Ok(space)
    }

    /// Removes a keyspace; false if there is none.
    pub(crate) fn drop_space(&self, name: &str) -> Result<bool> {
        let mut order = self.admit()?;
        let Some(space) = order.catalog.get(name).cloned() else { return Ok(false) };
        let catalog = order.catalog.without(space.id).expect("it is there");
        let last = self.change_catalog(&mut order, Change::Drop { space: space.id }, catalog);
        space.mark_dropped();
        drop(order);
        self.log().commit(last, self.durability())?;
        Ok(true)
    }

    fn change_catalog(&self, order: &mut Order<D>, change: Change<'_>, catalog: Catalog) -> u64 {
        self.log().queue(1, |out| change.put(out));
        order.sequence += 1;
        order.catalog = Arc::new(catalog);
        self.make_visible(order.sequence);
        order.sequence
    }
}

/// Whether what the tables say about a key is the same in two versions.
fn same_partition<D: Disk>(a: &Version<D>, b: &Version<D>, space: u32, key: &[u8]) -> bool {
    match (a.partition(space, key), b.partition(space, key)) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        (None, None) => true,
        _ => false,
    }
}

/// What a batch has made of keys: by keyspace and key, what they map to.
type Overlay = BTreeMap<(u32, Vec<u8>), Option<Value>>;

/// A batch that is being decided.
struct Batch<'s, 'b, D: Disk> {
    store: &'s Core<D>,
    version: &'s Arc<Version<D>>,
    decided: Vec<Decided<'b>>,
    /// What the batch has made of keys so far, if any of its operations asks.
    overlay: Option<Overlay>,
}

impl<'b, D: Disk> Batch<'_, 'b, D> {
    fn old(&self, space: u32, key: &[u8]) -> Result<Option<Value>> {
        match self.overlay.as_ref().and_then(|overlay| overlay.get(&(space, key.to_vec()))) {
            Some(value) => Ok(value.clone()),
            None => read::get(self.version, space, key, self.store.newest(), |bytes| Value::from(bytes)),
        }
    }

    fn set(&mut self, space: u32, key: Cow<'b, [u8]>, new: New<'b>) {
        if let Some(overlay) = &mut self.overlay {
            overlay.insert((space, key.to_vec()), new.as_deref().map(Value::from));
        }
        self.decided.push(Decided { space, key, new });
    }

    fn decide(&mut self, space: u32, op: Op<&'b [u8]>) -> Result<Outcome> {
        if let Op::DeleteRange { start, end } = op {
            let keys = self.keys(space, start, end)?;
            let count = keys.len() as u64;
            keys.into_iter().for_each(|key| self.set(space, Cow::Owned(key), None));
            return Ok(Outcome::DeletedRange(count));
        }
        let key = op.key();
        // Nobody is told whether a key was there that a batch deletes.
        let old = match op {
            Op::Set { .. } | Op::Delete { .. } => None,
            _ => self.old(space, key)?,
        };
        let (effect, outcome) = op.resolve(old.as_deref())?;
        if let Some(new) = new_value(effect) {
            self.set(space, Cow::Borrowed(key), new);
        }
        Ok(outcome)
    }

    /// The keys of a range as the batch has left it so far.
    fn keys(&self, space: u32, start: &[u8], end: Option<&[u8]>) -> Result<Vec<Vec<u8>>> {
        let is_in = |key: &[u8]| key >= start && end.is_none_or(|end| key < end);
        let overlay = self.overlay.as_ref();
        let said = |key: &[u8]| overlay.and_then(|overlay| overlay.get(&(space, key.to_vec())));
        let mut keys = Vec::new();
        let bounds = (Bound::Included(start), end.map_or(Bound::Unbounded, Bound::Excluded));
        scan::scan(self.version, space, self.store.newest(), bounds, Direction::Forward, |key, _| {
            if said(key).is_none() {
                keys.push(key.to_vec());
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let own = overlay
            .into_iter()
            .flatten()
            .filter(|((own, key), value)| *own == space && is_in(key) && value.is_some());
        keys.extend(own.map(|((_, key), _)| key.clone()));
        Ok(keys)
    }
}

impl<D: Disk> Core<D> {
    pub(crate) fn newest(&self) -> ReadAt<'_> {
        ReadAt::Newest(&self.visible)
    }

    pub(crate) fn visible(&self) -> u64 {
        self.visible.load(Ordering::Relaxed)
    }

    fn make_visible(&self, sequence: u64) {
        // ORDERING: Release: who sees the number sees the versions up to it.
        self.visible.store(sequence, Ordering::Release);
    }
}

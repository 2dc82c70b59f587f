//! [`Data`]: the store, as commands read and change it.
//!
//! The changes of a command are collected and applied as one batch at its end, so that a crash leaves all or none of
//! them, and a command that fails leaves none. Within `EXEC` they go at its end to a transaction of the store, which
//! later commands see, and which is one batch too. Only one thread uses this, so nothing changes between what a command
//! reads and what it writes.
//!
//! A transaction of the store keeps what it reads, to compare it at its end. Nobody else writes, so that the
//! transaction begins with the first change, and forgets what a command has read at the end of that.

use crate::fault::{DAMAGED, Fault};
use crate::keys::{self, Kind, OWN, Record, SLOTS};
use forrest::{
    Committed, Db, Durability, ErrorKind, Keyspace, Op, Snapshot, Transaction, Value, WriteBatch,
    WriteOptions,
};
use std::collections::HashMap;
use std::ops::ControlFlow;

/// The keyspace that has everything.
const NAME: &str = "redis";
/// The home of stores in the memory of this process.
const HOME: &str = "memory:";
/// The format of the keyspace, and the key that has it.
const FORMAT: &[u8] = b"1";
const FORMAT_KEY: &[u8] = &[OWN, b'f'];
/// The first generation that no store has used.
const GENERATION_KEY: &[u8] = &[OWN, b'g'];
/// The slot of each database.
const SLOTS_KEY: &[u8] = &[OWN, b's'];
/// Generations that are taken at a time. Those that are left when the process ends are lost.
const GENERATIONS: u64 = 1 << 16;
/// About what an operation of a batch takes in memory, beside its key and value.
const OP_BYTES: usize = 64;
/// Bytes of changes above which their memory is given back.
const KEPT_BYTES_MAX: usize = 64 << 10;
/// Pairs that are counted one by one, for a number that may be approximate beyond.
const COUNTED_MAX: u64 = 10_000;

/// A key that exists.
pub(crate) struct Found {
    pub(crate) record: Record,
    value: Value,
    /// Where a string begins in the value.
    head: usize,
}

impl Found {
    pub(crate) fn new(value: Value) -> Result<Found, Fault> {
        let (record, rest) = Record::of(&value).ok_or(DAMAGED)?;
        let head = value.len() - rest.len();
        Ok(Found { record, head, value })
    }

    /// The bytes of a string.
    #[inline]
    pub(crate) fn string(&self) -> &[u8] {
        &self.value[self.head..]
    }
}

/// See the module.
pub(crate) struct Data {
    db: Db,
    space: Keyspace,
    batch: WriteBatch,
    /// What commands with many keys have written and read again.
    written: Option<HashMap<Vec<u8>, Option<Value>>>,
    /// Changes go to a transaction.
    in_exec: bool,
    /// The one of `EXEC`, from its first change on.
    transaction: Option<Transaction>,
    /// The transaction cannot do what was asked of it, so that none of its commands has an effect.
    has_failed: bool,
    slots: [u8; SLOTS as usize],
    /// Those before a swap that is not applied yet. Within `EXEC` there is none.
    swapped_from: Option<[u8; SLOTS as usize]>,
    /// The store is in the memory of this process.
    is_private: bool,
    generation: u64,
    generation_end: u64,
    /// How many changes were made, since the process began.
    changes: u64,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Data {
    /// Opens the keyspace, or makes it.
    pub(crate) fn open(db: &Db) -> Result<Data, Fault> {
        let space = db.keyspace(NAME)?;
        match space.get(FORMAT_KEY)? {
            Some(format) if *format == *FORMAT => {}
            Some(format) => {
                let format = format.escape_ascii();
                return Err(Fault::new(format!(
                    "ERR the keyspace \"{NAME}\" has the format {format}, not 1"
                )));
            }
            None if space.first()?.is_some() => {
                let why = "has pairs that no server wrote; give the server a store of its own";
                return Err(Fault::new(format!("ERR the keyspace \"{NAME}\" {why}")));
            }
            None => space.set(FORMAT_KEY, FORMAT)?,
        }
        let generation = match space.get(GENERATION_KEY)? {
            Some(value) => u64::from_be_bytes((*value).try_into().map_err(|_| DAMAGED)?),
            None => 1,
        };
        let mut slots = std::array::from_fn(|slot| slot as u8);
        if let Some(value) = space.get(SLOTS_KEY)? {
            slots = (*value).try_into().map_err(|_| DAMAGED)?;
            let mut sorted = slots;
            sorted.sort_unstable();
            (sorted == std::array::from_fn(|slot| slot as u8)).then_some(()).ok_or(DAMAGED)?;
        }
        Ok(Data {
            db: db.clone(),
            space,
            batch: WriteBatch::new(),
            written: None,
            in_exec: false,
            transaction: None,
            has_failed: false,
            slots,
            swapped_from: None,
            is_private: db.capabilities().home() == HOME,
            generation,
            generation_end: generation,
            changes: 0,
            key: Vec::new(),
            value: Vec::new(),
        })
    }

    pub(crate) fn db(&self) -> &Db {
        &self.db
    }

    pub(crate) fn slot(&self, database: usize) -> u8 {
        self.slots[database]
    }

    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Makes all changes so far as durable as this.
    pub(crate) fn make_durable(&self, durability: Durability) -> forrest::Result<()> {
        self.db.write_with(WriteBatch::new(), &WriteOptions::new().durability(durability))
    }

    /// The state of all databases now, to be read later.
    pub(crate) fn snapshot(&self) -> Result<Snapshot, Fault> {
        Ok(self.db.snapshot()?)
    }

    /// The keyspace of a snapshot that has everything.
    pub(crate) fn view(snapshot: &Snapshot) -> Result<forrest::View, Fault> {
        Ok(snapshot.keyspace(NAME)?)
    }

    // Reads.

    #[inline]
    pub(crate) fn get(&mut self, key: &[u8]) -> Result<Option<Value>, Fault> {
        if let Some(written) = &self.written
            && let Some(value) = written.get(key)
        {
            return Ok(value.clone());
        }
        let Some(transaction) = &mut self.transaction else { return Ok(self.space.get(key)?) };
        // A key that is too long fails its command only.
        Op::Delete { key }.check()?;
        let value = transaction.on(&self.space).get(key);
        self.has_failed |= value.is_err();
        Ok(value?)
    }

    /// The record of a key, also if it has expired.
    #[inline]
    pub(crate) fn find(&mut self, slot: u8, key: &[u8]) -> Result<Option<Found>, Fault> {
        let mut at = std::mem::take(&mut self.key);
        keys::record(&mut at, slot, key);
        let value = self.get(&at);
        self.key = at;
        value?.map(Found::new).transpose()
    }

    /// Passes the pairs from `start` on and before `end` to `see`, until it breaks. What this command has written is
    /// not among them.
    pub(crate) fn scan(
        &mut self,
        (start, end): (&[u8], &[u8]),
        is_back: bool,
        mut see: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Fault> {
        if start >= end {
            return Ok(());
        }
        match &mut self.transaction {
            None if is_back => self.space.scan_back(start..end, see)?,
            None => self.space.scan(start..end, see)?,
            Some(transaction) => {
                let mut range = transaction.on(&self.space).range(start..end);
                while let Some(pair) = if is_back { range.next_back() } else { range.next() } {
                    self.has_failed |= pair.is_err();
                    let (key, value) = pair?;
                    if see(&key, &value).is_break() {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// The number of pairs from `start` on and before `end`.
    pub(crate) fn count(&mut self, start: &[u8], end: &[u8]) -> Result<u64, Fault> {
        if self.transaction.is_none() {
            return Ok(self.space.count(start..end)?);
        }
        let mut count = 0;
        self.scan((start, end), false, |_, _| {
            count += 1;
            ControlFlow::Continue(())
        })?;
        Ok(count)
    }

    /// The same, but only about if they are more than [`COUNTED_MAX`], so that other clients need not wait. A store in
    /// the kernel has no such number, and counts.
    pub(crate) fn count_about(&mut self, start: &[u8], end: &[u8]) -> Result<u64, Fault> {
        let mut count = 0;
        let mut see = || {
            count += 1;
            if count > COUNTED_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        match self.transaction {
            None => self.space.scan_keys(start..end, |_| see())?,
            Some(_) => self.scan((start, end), false, |_, _| see())?,
        }
        if count <= COUNTED_MAX {
            return Ok(count);
        }
        match self.space.approximate(start..end) {
            Ok(about) => Ok(about.keys.max(count)),
            Err(error) if error.kind() == ErrorKind::Unsupported => self.count(start, end),
            Err(error) => Err(error.into()),
        }
    }

    // Changes.

    /// From here to the end of the command, reads of single keys see what the command has written.
    pub(crate) fn read_own_writes(&mut self) {
        if self.written.is_none() {
            self.written = Some(HashMap::new());
        }
    }

    pub(crate) fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Fault> {
        self.push(Op::Set { key, value })?;
        if let Some(written) = &mut self.written {
            written.insert(key.to_vec(), Some(value.into()));
        }
        Ok(())
    }

    pub(crate) fn remove(&mut self, key: &[u8]) -> Result<(), Fault> {
        self.push(Op::Delete { key })?;
        if let Some(written) = &mut self.written {
            written.insert(key.to_vec(), None);
        }
        Ok(())
    }

    /// Removes all pairs from `start` on and before `end`. Not for what the command reads again.
    pub(crate) fn remove_range(&mut self, start: &[u8], end: &[u8]) -> Result<(), Fault> {
        self.push(Op::DeleteRange { start, end: Some(end) })
    }

    /// Adds a change to those of the command, or fails if they are more than a batch of the store may have. A store in
    /// memory has no limit of operations, but what they take counts there.
    #[inline]
    fn push(&mut self, op: Op<&[u8]>) -> Result<(), Fault> {
        match self.is_private {
            // Its operations are applied to the keyspace one by one. To name it in each would take longer.
            true => drop(self.batch.push(op)),
            false => drop(self.batch.on(&self.space).push(op)),
        }
        let (ops, bytes) = (self.batch.len(), self.batch.bytes());
        let (ops_max, bytes_max) = self.db.batch_limits();
        let (ops_max, held) =
            if self.is_private { (usize::MAX, bytes + ops * OP_BYTES) } else { (ops_max, bytes) };
        if ops <= ops_max && held <= bytes_max {
            return Ok(());
        }
        self.has_failed |= self.in_exec;
        Err(match ops > ops_max {
            true => forrest::Error::limit("batch", "operations", ops, ops_max),
            false => forrest::Error::limit("batch", "bytes", held, bytes_max),
        }
        .into())
    }

    /// A generation that was never used.
    pub(crate) fn new_generation(&mut self) -> Result<u64, Fault> {
        if self.generation == self.generation_end {
            let end = self.generation_end + GENERATIONS;
            // By itself, so that it holds whether or not the command succeeds.
            self.space.set(GENERATION_KEY, end.to_be_bytes())?;
            self.generation_end = end;
        }
        self.generation += 1;
        Ok(self.generation - 1)
    }

    /// Sets the record of a key, with the bytes of a string, in place of the old one. The members of the old one are
    /// removed unless the new one has them.
    pub(crate) fn set(
        &mut self,
        slot: u8,
        key: &[u8],
        old: Option<&Record>,
        new: &Record,
        string: &[u8],
    ) -> Result<(), Fault> {
        let was = old.map_or(0, |old| old.expires);
        if let Some(old) = old
            && old.kind != Kind::String
            && old.generation != new.generation
        {
            self.remove_members(slot, old)?;
        }
        if was != new.expires {
            if was != 0 {
                self.remove(&keys::expiry(slot, was, key))?;
            }
            if new.expires != 0 {
                self.put(&keys::expiry(slot, new.expires, key), &[])?;
            }
        }
        let (mut at, mut value) = (std::mem::take(&mut self.key), std::mem::take(&mut self.value));
        keys::record(&mut at, slot, key);
        value.clear();
        new.push(&mut value);
        value.extend_from_slice(string);
        let done = self.put(&at, &value);
        if value.capacity() > KEPT_BYTES_MAX {
            value = Vec::new();
        }
        (self.key, self.value) = (at, value);
        done
    }

    /// Removes a key with its members.
    pub(crate) fn delete(&mut self, slot: u8, key: &[u8], old: &Record) -> Result<(), Fault> {
        if old.kind != Kind::String {
            self.remove_members(slot, old)?;
        }
        self.forget(slot, key, old)
    }

    /// Removes a key, but not its members.
    pub(crate) fn forget(&mut self, slot: u8, key: &[u8], old: &Record) -> Result<(), Fault> {
        if old.expires != 0 {
            self.remove(&keys::expiry(slot, old.expires, key))?;
        }
        let mut at = std::mem::take(&mut self.key);
        keys::record(&mut at, slot, key);
        let done = self.remove(&at);
        self.key = at;
        done
    }

    fn remove_members(&mut self, slot: u8, old: &Record) -> Result<(), Fault> {
        let members = keys::members(slot, old.generation);
        self.remove_range(&members, &keys::after(members))
    }

    /// Removes everything of a slot.
    pub(crate) fn clear(&mut self, slot: u8) -> Result<(), Fault> {
        self.remove_range(&[slot], &[slot + 1])
    }

    /// Exchanges the content of two databases.
    pub(crate) fn swap(&mut self, a: usize, b: usize) -> Result<(), Fault> {
        let mut slots = self.slots;
        slots.swap(a, b);
        self.put(SLOTS_KEY, &slots)?;
        self.swapped_from = Some(std::mem::replace(&mut self.slots, slots));
        Ok(())
    }

    // The ends of commands.

    /// Applies what the command has changed, within `EXEC` to its transaction. A failure changes nothing, unless the
    /// transaction [has failed](Data::has_failed).
    #[inline]
    pub(crate) fn commit(&mut self) -> Result<(), Fault> {
        self.forget_reads();
        if self.batch.is_empty() {
            return Ok(());
        }
        self.changes += u64::from(!self.in_exec);
        let done = if self.in_exec {
            self.apply_in_transaction()
        } else if self.is_private || self.batch.len() == 1 {
            self.apply_each()
        } else {
            self.db.write(&self.batch)
        };
        self.empty();
        done?;
        self.swapped_from = None;
        Ok(())
    }

    /// Applies the changes without a batch, which would cost some microseconds. A store in memory has no crash that
    /// could leave a part of them, and nobody else who could see one. If the system has no more memory in the middle, a
    /// part is left; `maxmemory` refuses commands before that.
    fn apply_each(&self) -> forrest::Result<()> {
        if self.batch.len() > 1 {
            self.batch.ops().try_for_each(|(_, op)| op.check())?;
        }
        self.batch.ops().try_for_each(|(_, op)| self.space.apply(op).map(drop))
    }

    /// Applies the changes to the transaction, which is begun if this is its first one.
    fn apply_in_transaction(&mut self) -> forrest::Result<()> {
        // What is too long for any store fails its command only.
        self.batch.ops().try_for_each(|(_, op)| op.check())?;
        let draft = self.transaction.get_or_insert_with(|| self.db.transaction()).on(&self.space);
        let done = self.batch.ops().try_for_each(|(_, op)| match op {
            Op::Set { key, value } => draft.set(key, value),
            Op::Delete { key } => draft.delete(key),
            Op::DeleteRange { start, end: Some(end) } => draft.delete_range(start..end),
            other => unreachable!("no command makes {other:?}"),
        });
        self.has_failed |= done.is_err();
        done
    }

    /// True if the transaction of `EXEC` can no longer be applied.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Forgets what the command would have changed.
    pub(crate) fn undo(&mut self) {
        self.empty();
        self.forget_reads();
    }

    /// Forgets what the command has read.
    #[inline]
    fn forget_reads(&mut self) {
        self.written = None;
        if let Some(transaction) = &mut self.transaction {
            transaction.forget_reads();
        }
    }

    /// Empties the batch.
    #[inline]
    fn empty(&mut self) {
        let is_large = self.batch.bytes() > KEPT_BYTES_MAX;
        self.batch.clear();
        if is_large {
            self.batch = WriteBatch::new();
        }
    }

    /// The same for all since [`begin`](Data::begin), if there is a transaction.
    pub(crate) fn discard(&mut self) {
        self.undo();
        (self.in_exec, self.transaction) = (false, None);
        if let Some(slots) = self.swapped_from.take() {
            self.slots = slots;
        }
    }

    /// From here on changes are seen by this thread only, up to [`end`](Data::end).
    pub(crate) fn begin(&mut self) {
        (self.in_exec, self.has_failed) = (true, false);
    }

    /// Applies all since [`begin`](Data::begin) at one instant.
    pub(crate) fn end(&mut self) -> Result<(), Fault> {
        self.in_exec = false;
        let Some(transaction) = self.transaction.take() else { return Ok(()) };
        self.changes += 1;
        match transaction.commit()? {
            Committed::Done => Ok(()),
            _ => Err(Fault::new("ERR another process has changed the store meanwhile; try again")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_that_are_too_many_are_refused_before_they_are_held() {
        for is_private in [true, false] {
            let db = Db::builder().batch_ops_max(8).batch_bytes_max(1000).open("memory:").unwrap();
            let mut data = Data::open(&db).unwrap();
            data.is_private = is_private;
            let refused = (0..100).find(|number| data.put(&[1, *number], b"").is_err());
            // 2 bytes and 64 for each of those in memory.
            assert_eq!(refused, Some(if is_private { 15 } else { 8 }));
            data.discard();
            assert!(data.batch.is_empty());
            let why = data.put(&[1], &[0; 1000]).unwrap_err();
            assert!(why.0.contains("at most 1000 bytes are allowed"), "{why:?}");
            data.discard();
        }
    }

    #[test]
    fn a_swap_that_cannot_be_applied_is_undone() {
        let mut data = Data::open(&Db::open("memory:").unwrap()).unwrap();
        data.swap(0, 1).unwrap();
        data.put(&vec![0; 70_000], b"").unwrap();
        data.commit().unwrap_err();
        data.discard();
        assert_eq!([data.slot(0), data.slot(1)], [0, 1]);
        data.swap(0, 1).unwrap();
        data.commit().unwrap();
        data.discard();
        assert_eq!([data.slot(0), data.slot(1)], [1, 0]);
    }
}

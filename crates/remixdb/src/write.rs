//! The write path, for every change there is: admit, order, log, apply, make visible, commit.
//!
//! 1. **Admit**: refuse after a failure. Wait while memtables are at their limit ([`Core::admit`]).
//! 2. **Order**: under one lock, decide the operations with the values that they find, and give them sequence
//!    numbers.
//! 3. **Log**: queue their effects for the log, a batch as a whole. There is no I/O under the lock, except
//!    that a batch that compares or adds reads from tables, and that a full memtable needs a new log file.
//! 4. **Apply** to the memtable.
//! 5. **Make visible**, at one instant.
//! 6. **Commit**, without the lock: wait until the log is as durable as the caller wants; and if memtables become
//!    tables too slowly, wait a little, in proportion to the bytes of the changes ([`pace`](crate::pace)).
//!
//! Other threads see a change before it is durable. If a thread makes a durable change after it has seen
//! another one, it makes that one durable too, because there is one log. A failure after the effects were
//! queued stops the store: see [`wal`](crate::wal).

use crate::catalog::{Catalog, Space};
use crate::core::{Core, Order};
use crate::disk::Disk;
use crate::memtable::{self, Memtable, ReadAt, Unapplied, VALUE_MAX};
use crate::operands;
use crate::partition::Partition;
use crate::ranges::{FRAGMENTS_ANYHOW, FRAGMENTS_MOST};
use crate::read::{self, Found};
use crate::scan;
use crate::see::ToValue;
use crate::version::Version;
use crate::wal::{Change, Note};
use crate::wanted::Wanted;
use crate::wrapped::{self, Entry, HEADER_MOST, Kind, PLACED_HEADER_MOST, Place, Pointer, Wrapped};
use forrest_base::lock;
use forrest_engine::Value;
use forrest_engine::merge::{self, MergeOperator, SharedOperator};
use forrest_engine::spans::{self, Spans};
use forrest_engine::{Durability, MAX_KEYSPACE_NAME_BYTES, MAX_KEYSPACES};
use forrest_engine::{Effect, Expires, Op, Outcome, Swap, Written};
use forrest_engine::{Error, ErrorKind, Event, Job, Result};
use forrest_index::Direction;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// A memtable takes this many times the bytes at which it is full, and twice as many with deletes, if there is no space
/// for a new log.
const OVERFULL: usize = 2;
/// Space in the log that other changes leave to deletes, in bytes.
const KEPT_FOR_DELETES: u64 = 32 << 10;
/// Maximum number of bytes of a change of the catalogue in a log: a name, and two numbers.
const CATALOG_CHANGE_MOST: u64 = MAX_KEYSPACE_NAME_BYTES as u64 + 20;
/// Maximum number of bytes that a log takes for an ingest beside its keys.
const INGEST_CHANGE_MOST: u64 = 32;
/// About how many bytes a log has for a change beside its key and its value.
const CHANGE_ABOUT: usize = 8;
/// The pause between two looks at it.
const LOOK: Duration = Duration::from_millis(10);
/// The new content of a key: the kind of the entry, and its bytes.
struct New<'b>(Kind, Cow<'b, [u8]>);

impl New<'_> {
    fn entry(&self) -> Entry<'_> {
        Entry::new(self.0, &self.1)
    }
}

/// A change that is decided.
enum Decided<'b> {
    Key {
        space: u32,
        key: Cow<'b, [u8]>,
        new: New<'b>,
    },
    /// All keys of a range are deleted.
    Range {
        space: u32,
        start: &'b [u8],
        end: Option<&'b [u8]>,
    },
}

impl Decided<'_> {
    /// Bytes of its keys and value, and what it costs in a memtable: see [`memtable::cost`].
    fn bytes_and_cost(&self) -> (usize, usize) {
        match self {
            Decided::Key { key, new, .. } => {
                let bytes = key.len() + new.1.len();
                (bytes, memtable::cost(bytes, 0))
            }
            Decided::Range { start, end, .. } => {
                let bytes = start.len() + end.map_or(0, <[u8]>::len);
                (bytes, memtable::range_cost(bytes, 0))
            }
        }
    }

    fn is_range(&self) -> bool {
        matches!(self, Decided::Range { .. })
    }

    /// Whether it is a merge that is not applied yet.
    #[inline]
    fn has_operands(&self) -> bool {
        matches!(self, Decided::Key { new: New(Kind::Wrapped, bytes), .. } if wrapped::has_operands(bytes))
    }

    fn deletes(&self) -> bool {
        match self {
            Decided::Key { new, .. } => new.0 == Kind::Tombstone,
            Decided::Range { .. } => true,
        }
    }

    /// Whether its value stays in the log if it has at least this many bytes.
    #[inline]
    fn is_large(&self, least: usize) -> bool {
        match self {
            Decided::Key { new, .. } => {
                // The expiry does not count.
                let header = if new.0 == Kind::Wrapped { HEADER_MOST } else { 0 };
                let len = new.1.len().saturating_sub(header);
                !new.entry().has_operands() && len >= least && len <= VALUE_MAX - PLACED_HEADER_MOST
            }
            Decided::Range { .. } => false,
        }
    }

    fn change(&self) -> Change<'_> {
        match self {
            Decided::Key { space, key, new } => Change::of_entry(*space, key, new.entry()),
            Decided::Range { space, start, end } => Change::DeleteRange { space: *space, start, end: *end },
        }
    }
}

/// Changes that were logged and applied.
pub(crate) struct Recorded {
    /// The sequence number of the last.
    pub(crate) last: u64,
    /// Their bytes, about.
    bytes: usize,
    /// Those of the memtable that takes the next ones.
    filled: usize,
}

/// A value that is moved within the logs: what its key has, and where that is.
pub(crate) struct Move {
    pub(crate) space: u32,
    pub(crate) key: Vec<u8>,
    pub(crate) place: Place,
    pub(crate) expires_ms: Option<u64>,
    pub(crate) content: Vec<u8>,
}

/// Values that were moved.
pub(crate) struct Moved {
    pub(crate) value_bytes: u64,
    /// What they take of the log, about.
    pub(crate) log_bytes: u64,
    /// The sequence number up to which all changes are logged by then.
    pub(crate) last: u64,
}

/// What a change that sets a key takes of the log, about.
pub(crate) fn log_bytes_of(key: usize, value: u64) -> u64 {
    value + (key + CHANGE_ABOUT) as u64
}

/// What memtables get of decided changes if that is not what is logged, by their positions: of those whose values stay
/// in the log, and of operands for keys that the memtable has operands of.
#[derive(Default)]
struct InLog(Vec<(usize, Vec<u8>)>);

impl InLog {
    /// Notes that a value ends at an offset of a log. REQUIRES: the changes come in order.
    #[cold]
    fn note(&mut self, at: usize, decided: &Decided<'_>, log: u64, end: u64) {
        let Decided::Key { new, .. } = decided else { return };
        let value = match new.0 {
            Kind::Wrapped => Wrapped::read(&new.1).expect("it was just made"),
            _ => Wrapped { expires_ms: None, content: &new.1 },
        };
        let place = Place { log, offset: end - value.content.len() as u64 };
        self.0.push((at, wrapped::placed(value, place)));
    }

    /// The entry of a change.
    #[inline]
    fn entry<'e>(&'e self, at: usize, new: &'e New<'_>) -> Entry<'e> {
        if self.0.is_empty() { new.entry() } else { self.find(at, new) }
    }

    #[cold]
    fn find<'e>(&'e self, at: usize, new: &'e New<'_>) -> Entry<'e> {
        match self.0.binary_search_by_key(&at, |(at, _)| *at) {
            Ok(found) => Entry::Wrapped(&self.0[found].1),
            Err(_) => new.entry(),
        }
    }
}

/// The new content of a key after an effect; `None` if the effect leaves it.
fn new_value(effect: Effect<'_>) -> Option<New<'_>> {
    match effect {
        Effect::Keep => None,
        Effect::Put(bytes) => Some(New(Kind::Value, bytes)),
        Effect::PutValue(value) => Some(New(Kind::Value, Cow::Owned(value.to_vec()))),
        Effect::Remove => Some(New(Kind::Tombstone, Cow::Borrowed(&[]))),
    }
}

/// Whether an operation only deletes.
fn deletes(op: &Op<&[u8]>) -> bool {
    matches!(op, Op::Delete { .. } | Op::DeleteRange { .. })
}

/// Whether an operation only compares.
fn compares(op: &Op<&[u8]>) -> bool {
    match op {
        Op::CompareRange { .. } => true,
        Op::CompareAndSwap { expected, new, .. } => expected == new,
        _ => false,
    }
}

/// Whether an operation is admitted where there is no room.
fn takes_no_room(op: &Op<&[u8]>) -> bool {
    deletes(op) || compares(op) || matches!(op, Op::CompareAndSwap { new: None, .. })
}

/// Whether the effect of an operation depends on the current value.
fn reads(op: &Op<&[u8]>) -> bool {
    !matches!(op, Op::Set { .. } | Op::SetUntil { .. })
}

pub(crate) fn check_value(op: &Op<&[u8]>) -> Result<()> {
    match op {
        Op::Set { value, .. } | Op::SetUntil { value, .. } | Op::CompareAndSwap { new: Some(value), .. }
            if value.len() > VALUE_MAX =>
        {
            Err(Error::limit("value", "bytes", value.len(), VALUE_MAX))
        }
        _ => Ok(()),
    }
}

/// When a value that an operation sets expires, if it does.
#[inline(always)]
fn expires(space: &Space, op: &Op<&[u8]>) -> Option<Expires> {
    match op {
        Op::SetUntil { expires, .. } => Some(*expires),
        _ => space.ttl_ms().map(Expires::In),
    }
}

impl Core {
    /// New content that expires, if it is a value.
    ///
    /// # Errors
    /// `Limit` if the expiry has no room beside it.
    #[cold]
    fn until<'b>(&self, expires: Expires, new: New<'b>) -> Result<New<'b>> {
        const MOST: usize = VALUE_MAX - HEADER_MOST;
        match new.1.len() {
            _ if new.0 == Kind::Tombstone => Ok(new),
            len if len > MOST => Err(Error::limit("value", "bytes", len, MOST)),
            _ => {
                let expires_ms = Some(expires.at_ms(|| self.newest().now_ms()));
                Ok(New(Kind::Wrapped, Cow::Owned(Wrapped { expires_ms, content: &new.1 }.encode())))
            }
        }
    }

    /// Makes one change.
    pub(crate) fn apply(&self, space: &Arc<Space>, op: Op<&[u8]>) -> Result<Outcome> {
        if let Op::DeleteRange { start, end } = op {
            self.delete_range(space, start, end)?;
            return Ok(Outcome::DeletedRange);
        }
        if matches!(op, Op::CompareRange { .. }) {
            let swap = match self.write(&[(space, op)], None)? {
                Written::Mismatch { found, .. } => Swap::Mismatch(found),
                _ => Swap::Done,
            };
            return Ok(Outcome::ComparedRange(swap));
        }
        check_value(&op)?;
        self.check_here()?;
        let key = op.key();
        if let (Op::Merge { operand, .. }, Some(operator)) = (op, space.operator())
            && let Some(outcome) = self.merge_unread(space, operator, (key, operand))?
        {
            return Ok(outcome);
        }
        // Taken before the lock: what tables have for a key is valid until the tables are replaced. And
        // dropped after the lock, because that may close files.
        let before = reads(&op).then(|| self.version());
        // A delete has to know whether the key is there, and not what it has.
        let is_delete = matches!(op, Op::Delete { .. });
        let in_tables = |version| match is_delete {
            true => read::presence_in_tables(version, space.id, key, self.newest()),
            false => read::value_in_tables(version, space.id, key, self.newest()),
        };
        // A damaged table matters only if no memtable has the key.
        let looked = before.as_ref().map(|before| (before, in_tables(before)));
        let mut order = self.admit(is_delete)?;
        space.check()?;
        let old = match looked {
            None => None,
            Some((before, looked)) => {
                let now = &order.version;
                match read::in_memtables(now, space.id, key, self.newest(), |bytes| Value::from(bytes)) {
                    Some(Found::Value(value)) => Some(value),
                    Some(Found::Nothing) => None,
                    Some(Found::Operands) if is_delete => Some(Value::from(&b""[..])),
                    Some(Found::Operands) => read::get(now, space.id, key, self.newest(), ToValue)?,
                    // A value that was there may have expired since.
                    None if same_partition(before, now, space.id, key)
                        && !(may_expire(now, space.id, key) && matches!(looked, Ok(Some(_)))) =>
                    {
                        looked?
                    }
                    None => in_tables(now)?,
                }
            }
        };
        let (effect, outcome) = merge::resolve(space.operator(), &op, old.as_deref(), VALUE_MAX)?;
        let Some(mut new) = new_value(effect) else { return Ok(outcome) };
        if let Some(expires) = expires(space, &op) {
            new = self.until(expires, new)?;
        }
        if new.0 == Kind::Tombstone && old.is_none() {
            return Ok(outcome);
        }
        let decided = Decided::Key { space: space.id, key: Cow::Borrowed(key), new };
        let recorded = self.record(&mut order, &[decided])?;
        drop(order);
        self.commit(recorded, self.durability())?;
        Ok(outcome)
    }

    /// Makes a merge without reading tables; `None` if it has to read what they have for the key.
    #[cold]
    #[inline(never)]
    fn merge_unread(
        &self,
        space: &Arc<Space>,
        operator: &SharedOperator,
        (key, operand): (&[u8], &[u8]),
    ) -> Result<Option<Outcome>> {
        let op = Op::Merge { key, operand };
        merge::check(&**operator, &op)?;
        let may_store = self.may_store_operand(&self.version().clone(), space, (key, operand))?;
        let mut order = self.admit(false)?;
        space.check()?;
        let found =
            read::in_memtables(&order.version, space.id, key, self.newest(), |bytes| Value::from(bytes));
        let old = match found {
            Some(Found::Value(old)) => Some(old),
            Some(Found::Nothing) => None,
            None | Some(Found::Operands) => {
                if !may_store || !self.takes_operand(&order.version, space, operator, (key, operand))? {
                    return Ok(None);
                }
                let new = New(Kind::Wrapped, Cow::Owned(wrapped::of_operands([operand])));
                let decided = Decided::Key { space: space.id, key: Cow::Borrowed(key), new };
                let recorded = self.record(&mut order, &[decided])?;
                drop(order);
                self.commit(recorded, self.durability())?;
                return Ok(Some(Outcome::Merged));
            }
        };
        let value = merge::merged(&**operator, key, old.as_deref(), [operand], VALUE_MAX)?;
        let mut new = New(Kind::Value, Cow::Owned(value));
        if let Some(expires) = expires(space, &op) {
            new = self.until(expires, new)?;
        }
        let decided = Decided::Key { space: space.id, key: Cow::Borrowed(key), new };
        let recorded = self.record(&mut order, &[decided])?;
        drop(order);
        self.commit(recorded, self.durability())?;
        Ok(Some(Outcome::Merged))
    }

    /// Whether an operand for a key may be stored, if no memtable has the key. It may not where values expire, because
    /// it would have to be known whether they were there when it came; nor in a store that keeps its changes, which are
    /// to have values, or that has a filter, which is to see values; nor if the operator fails. The manifest says that
    /// there are operands then.
    fn may_store_operand(
        &self,
        version: &Version,
        space: &Space,
        (key, operand): (&[u8], &[u8]),
    ) -> Result<bool> {
        let Some(operator) = space.operator() else { return Ok(false) };
        let may = self.history.is_none()
            && self.builder.filter.is_none()
            && version.operated.has(space.id)
            && space.ttl_ms().is_none()
            && operand.len() <= operands::BYTES_MAX / 4
            && version.partition(space.id, key).is_some_and(|partition| partition.takes_operands())
            && self.check_writable().is_ok();
        if !may {
            return Ok(false);
        }
        // What panics now does so before anything is stored.
        merge::merged(&**operator, key, None, [operand], VALUE_MAX)?;
        self.may_store_operands()
    }

    /// Whether the memtable takes an operand for a key. REQUIRES: no memtable has it, or the newest that does has
    /// operands.
    fn takes_operand(
        &self,
        version: &Version,
        space: &Space,
        operator: &SharedOperator,
        (key, operand): (&[u8], &[u8]),
    ) -> Result<bool> {
        // It may have been replaced meanwhile, or got a time to live.
        let takes = space.ttl_ms().is_none()
            && version.partition(space.id, key).is_some_and(|partition| partition.takes_operands());
        if !takes {
            return Ok(false);
        }
        let new = wrapped::of_operands([operand]);
        let joined = joined(&version.memtable, space.id, &**operator, key, &new, self.newest())?;
        Ok(operands::fits(joined.as_deref().unwrap_or(&new)))
    }

    /// Joins the operands among decided changes with those that the memtable has of their keys.
    fn join(&self, order: &Order, decided: &[Decided<'_>]) -> Result<InLog> {
        let mut in_log = InLog::default();
        for (at, decided) in decided.iter().enumerate() {
            if let Decided::Key { space, key, new } = decided
                && new.entry().has_operands()
            {
                let (memtable, operator) = (&order.version.memtable, order.version.operated.get(*space)?);
                let joined = joined(memtable, *space, &*operator, key, &new.1, self.newest())?;
                in_log.0.extend(joined.map(|joined| (at, joined)));
            }
        }
        Ok(in_log)
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
        // Conditions alone change nothing, so they need no store that can be changed.
        let is_read = self.builder.read_only && ops.iter().all(|(_, op)| compares(op));
        // The manifest says so before the lock is taken.
        for (space, op) in ops {
            if let Op::Merge { key, operand } = op
                && let Some(operator) = space.operator()
                && !self.version().operated.are_stored()
                && merge::check(&**operator, op).is_ok()
            {
                // An operand that is refused is refused below.
                let _may = self.may_store_operand(&self.version().clone(), space, (key, operand));
                self.log().check()?;
            }
        }
        let mut order = if is_read {
            self.check_here()?;
            self.order()
        } else {
            self.admit(ops.iter().all(|(_, op)| takes_no_room(op)))?
        };
        let mut batch = Batch { store: self, version: &order.version, decided: Vec::new(), overlay: None };
        if ops.iter().any(|(_, op)| reads(op) && !deletes(op) && !matches!(op, Op::CompareRange { .. })) {
            batch.overlay = Some(BTreeMap::new());
        }
        for (i, (space, op)) in ops.iter().enumerate() {
            space.check().map_err(at(i))?;
            let outcome = batch.decide(space, *op).map_err(at(i))?;
            if let Some(found) = outcome.mismatch() {
                return Ok(Written::Mismatch { op: i, found });
            }
        }
        if is_read {
            return Ok(Written::Applied);
        }
        let decided = batch.finish();
        // An empty batch still commits everything before it, at the batch's durability.
        let recorded = self.record(&mut order, &decided)?;
        drop(order);
        self.flush_for_space(&decided);
        self.commit(recorded, durability.unwrap_or(self.durability()))?;
        Ok(Written::Applied)
    }

    /// Deletes the keys of a range, as one change that takes constant time.
    fn delete_range(&self, space: &Arc<Space>, start: &[u8], end: Option<&[u8]>) -> Result<()> {
        self.check_here()?;
        if spans::is_empty(start, end) {
            return space.check();
        }
        let mut order = self.admit(true)?;
        space.check()?;
        check_range(&order.version, space.id, (start, end))?;
        let decided = [Decided::Range { space: space.id, start, end }];
        let recorded = self.record(&mut order, &decided)?;
        drop(order);
        self.flush_for_space(&decided);
        self.commit(recorded, self.durability())
    }

    /// Has the memtable become tables soon, if that gives back more space than a memtable takes, or removes damage: the
    /// files of partitions whose keys are all deleted are removed then.
    fn flush_for_space(&self, decided: &[Decided<'_>]) {
        let deleted = deleted(decided);
        if deleted.is_empty() {
            return;
        }
        let version = self.version();
        let (mut bytes, mut is_damaged) = (0, false);
        for (space, spans) in deleted {
            let partitions = version.partitions(space);
            for span in spans.iter() {
                let (within, _) = places(partitions, span);
                for partition in &partitions[within] {
                    bytes += partition.file_bytes() + partition.live_large_bytes();
                    is_damaged |= partition.damage().is_some();
                }
            }
        }
        if is_damaged || bytes >= self.limits.memtable_bytes() as u64 {
            // ORDERING: no other data depends on it.
            self.is_flush_due.store(true, Ordering::Relaxed);
            self.call_for_work();
        }
    }

    /// Waits for the order lock. Changes that only delete are admitted without room for tables: they make room.
    fn admit(&self, deletes: bool) -> Result<MutexGuard<'_, Order>> {
        self.check_writable()?;
        self.log().check()?;
        if !deletes {
            self.check_room()?;
        }
        let mut order = self.order();
        if self.is_memory_full(&order.version.memtable) {
            drop(order);
            self.wait_for_memory(deletes)?;
            order = self.order();
        }
        self.log().check()?;
        Ok(order)
    }

    /// Bytes of all memtables, about.
    fn changes_bytes(&self, newest: &Memtable) -> usize {
        self.backlog_bytes().saturating_add(newest.bytes())
    }

    /// Waits until the memtables have less than their limit in bytes.
    ///
    /// # Errors
    /// `Busy` after the time that the options allow; `OutOfSpace` and `Stopped` if they cannot become tables.
    fn wait_for_memory(&self, deletes: bool) -> Result<()> {
        let begin = Instant::now();
        let waited = self.wait_for_flush(deletes, begin);
        let took = begin.elapsed();
        self.tasks.stalls.add(took);
        self.tasks.note(|| Event::Stalled { took });
        self.tasks.tell();
        waited
    }

    /// Whether changes have to wait for memory.
    fn is_memory_full(&self, newest: &Memtable) -> bool {
        self.backlog_bytes() > 0
            && self.changes_bytes(newest) >= self.changes_bytes_most()
            && self.work.has_thread()
    }

    fn wait_for_flush(&self, deletes: bool, begin: Instant) -> Result<()> {
        // Without a thread nobody makes tables while this one waits. The limits may change meanwhile; a memtable that
        // is full by then becomes immutable at the next change.
        while self.is_memory_full(&self.version().memtable) {
            let (most, wait) = (self.changes_bytes_most(), self.limits.wait());
            if begin.elapsed() >= wait {
                let what = format!(
                    "{} bytes of changes wait in memory to become tables, and {most} may; writing tables did not keep up \
                     within {wait:?}: {}",
                    self.changes_bytes(&self.version().memtable),
                    self.holders(),
                );
                return Err(Error::new(ErrorKind::Busy, what));
            }
            // Nobody has called if what waits was read when the store was opened.
            self.call_for_work();
            self.wait_for_work(LOOK.min(wait));
            if !deletes {
                self.check_room()?;
            }
            self.log().check()?;
        }
        Ok(())
    }

    /// What holds the memory of memtables, and how long already.
    fn holders(&self) -> String {
        let seconds = |age: Duration| format!("{:.1} s", age.as_secs_f64());
        let mut holders = match self.tasks.now() {
            Some((job, age)) => {
                let article = if job == Job::Ingest { "an" } else { "a" };
                format!("{article} {job} is under way for {}", seconds(age))
            }
            None => "no flush is under way".to_string(),
        };
        let (_, kept) = self.memtable_bytes();
        if let Some(age) = self.readers.oldest()
            && kept > 0
        {
            let kept = kept as f64 / f64::from(1 << 20);
            let _ = write!(
                holders,
                "; snapshots and iterators, the oldest {} old, keep {kept:.1} MiB more",
                seconds(age)
            );
        }
        holders
    }

    /// An error if there was no room for earlier changes.
    pub(crate) fn check_room(&self) -> Result<()> {
        // One change more or less does not matter.
        if !self.is_full() {
            return Ok(());
        }
        let what = "there is no room, no file descriptor or no memory for the tables that earlier changes are to become (they \
                    are in the log, and can be read); the store goes on by itself when there is";
        Err(Error::new(ErrorKind::OutOfSpace, what))
    }

    /// Waits until changes are as durable as requested, and as long as their bytes are worth.
    fn commit(&self, Recorded { last, bytes, filled }: Recorded, durability: Durability) -> Result<()> {
        self.log().commit(last, durability)?;
        self.changed();
        let backlog = self.backlog_bytes();
        if backlog > 0 {
            let waiting = backlog.saturating_add(filled) as f64 / self.limits.memtable_bytes() as f64;
            let wait = self.pace.charge(bytes, waiting);
            if !wait.is_zero() && self.work.has_thread() {
                let wait = wait.min(self.limits.wait());
                thread::sleep(wait);
                self.tasks.paced.add(wait);
            }
        }
        Ok(())
    }

    /// Logs decided changes and applies them.
    fn record(&self, order: &mut Order, decided: &[Decided<'_>]) -> Result<Recorded> {
        self.record_as(order, decided, false)
    }

    /// Moves those values that are still where a version of before has them: the keys get the same values once more, at
    /// the end of the log. Nothing is read for that unless tables were replaced meanwhile.
    ///
    /// # Errors
    /// As a change; `Corrupt` and `Io` if it cannot be read what a key has.
    pub(crate) fn move_values(&self, before: &Version, moves: &[Move]) -> Result<Moved> {
        let mut order = self.order();
        self.log().check()?;
        let (mut decided, mut value_bytes, mut log_bytes) = (Vec::new(), 0, 0);
        let catalog = self.catalog();
        for Move { space, key, place, expires_ms, content } in moves {
            let now = &order.version;
            let is_there = catalog.has(*space)
                && match same_partition(before, now, *space, key) {
                    true => !self.has_in_memtables(now, *space, key),
                    false => self.pointer_at(now, *space, key, *place)?.is_some(),
                };
            if is_there {
                value_bytes += content.len() as u64;
                log_bytes += log_bytes_of(key.len(), content.len() as u64);
                let new = match expires_ms {
                    None => New(Kind::Value, Cow::Borrowed(content)),
                    expires_ms => {
                        let wrapped = Wrapped { expires_ms: *expires_ms, content };
                        New(Kind::Wrapped, Cow::Owned(wrapped.encode()))
                    }
                };
                decided.push(Decided::Key { space: *space, key: Cow::Borrowed(key), new });
            }
        }
        let last = self.record_as(&mut order, &decided, true)?.last;
        drop(order);
        // Nobody waits for it, and it would be in memory once more until the next log is begun.
        self.log().commit(last, Durability::Memory)?;
        Ok(Moved { value_bytes, log_bytes, last })
    }

    /// The newest that a version has of a key, if that is a value at a place in a log, and when it expires.
    pub(crate) fn pointer_at(
        &self,
        version: &Version,
        space: u32,
        key: &[u8],
        place: Place,
    ) -> Result<Option<(Pointer, Option<u64>)>> {
        if self.has_in_memtables(version, space, key) {
            return Ok(None);
        }
        let Some(partition) = version.partition(space, key) else { return Ok(None) };
        Ok(partition.pointer(key)?.filter(|(pointer, _)| pointer.place == place))
    }

    /// Whether a memtable has a key, or deletes it.
    fn has_in_memtables(&self, version: &Version, space: u32, key: &[u8]) -> bool {
        read::in_memtables(version, space, key, self.newest(), |_| ()).is_some()
    }

    fn record_as(&self, order: &mut Order, decided: &[Decided<'_>], are_moved: bool) -> Result<Recorded> {
        let first = order.sequence + 1;
        let last = order.sequence + decided.len() as u64;
        if decided.is_empty() {
            return Ok(Recorded { last, bytes: 0, filled: order.version.memtable.bytes() });
        }
        let (mut given, mut bytes) = (0, 0);
        let mut has_operands = false;
        for decided in decided {
            let (more, cost) = decided.bytes_and_cost();
            (given, bytes) = (given + more, bytes + cost);
            has_operands |= decided.has_operands();
        }
        let mut in_log = InLog::default();
        let room = match has_operands {
            true => self.room_for_operands(order, decided, &mut bytes, &mut in_log),
            false => self.room_for(order, decided, bytes, bytes),
        };
        let is_short = matches!(&room, Err(error) if error.kind() == ErrorKind::OutOfSpace);
        // ORDERING: only the listener asks for it.
        if is_short != self.is_short.load(Ordering::Relaxed) {
            self.is_short.store(is_short, Ordering::Relaxed);
        }
        room?;
        let count = decided.len() as u64;
        if !are_moved {
            self.count_changes(count, given as u64);
        }
        let (least, joined) = (self.large_values, in_log.0.len());
        self.log().queue_placed(count, |out, log, offset| {
            if self.log().has_history() {
                match are_moved {
                    true => Change::Note(Note::Moved { count }).put(out),
                    false if count > 1 => Change::Note(Note::Batch { count }).put(out),
                    false => {}
                }
            }
            for (at, decided) in decided.iter().enumerate() {
                decided.change().put(out);
                if decided.is_large(least) {
                    in_log.note(at, decided, log.number(), offset + out.len() as u64);
                }
            }
        });
        if joined > 0 && in_log.0.len() > joined {
            in_log.0.sort_unstable_by_key(|(at, _)| *at);
        }
        order.sequence = last;
        // Before any of it is visible.
        self.gaps.cut(decided.iter().filter_map(|decided| match decided {
            Decided::Key { space, key, new } if new.0 != Kind::Tombstone => Some((*space, &key[..])),
            _ => None,
        }));
        let Order { version, scratch, .. } = &mut *order;
        let memtable = &version.memtable;
        if decided.len() == 1 {
            // A single change is visible before it is applied, so no old versions are kept for readers meanwhile.
            self.readers.show(last);
        }
        let (kept, nobody) = (self.readers.kept(), BTreeMap::new());
        let wanted = Wanted { visible: self.visible(), snapshots: kept.as_deref().unwrap_or(&nobody) };
        let in_log = &in_log;
        let mut left =
            (first..).zip(decided).enumerate().filter_map(|(at, (sequence, decided))| match decided {
                Decided::Key { space, key, new } => Some((*space, &key[..], sequence, in_log.entry(at, new))),
                Decided::Range { .. } => None,
            });
        if decided.iter().any(Decided::is_range) {
            apply_ranges(memtable, decided, first, &wanted);
        }
        let applied = left.clone().try_for_each(|(space, key, sequence, value)| {
            memtable.set(space, key, sequence, value, &wanted, scratch)?;
            left.next();
            Ok(())
        });
        if applied.is_ok() {
            self.readers.show(last);
        }
        // Also after an error: no snapshot waits for what will never be.
        self.readers.apply(self.visible());
        applied.map_err(|error| {
            // Nothing is left of a single change, and it was not acknowledged.
            if decided.len() > 1 {
                let rest = left.map(|(space, key, sequence, value)| Unapplied {
                    space,
                    key: key.to_vec(),
                    sequence,
                    kind: value.kind(),
                    bytes: value.bytes().to_vec(),
                });
                lock(&self.unapplied).extend(rest);
            }
            self.log().stop(error)
        })?;
        if memtable.bytes() >= self.limits.memtable_bytes() {
            match self.freeze(order) {
                // There is no space for a new log. The next change tries again.
                Err(error) if self.is_harmless(&error) => {}
                frozen => frozen?,
            }
        }
        Ok(Recorded { last, bytes, filled: order.version.memtable.bytes() })
    }

    /// Sees to it that decided changes have room in the memtable and in the log, which get that many bytes. What is
    /// logged must fit.
    #[inline]
    fn room_for(
        &self,
        order: &mut Order,
        decided: &[Decided<'_>],
        bytes: usize,
        logged: usize,
    ) -> Result<()> {
        let limit = self.limits.memtable_bytes();
        // Deletes go further than other changes where there is little space.
        let deletes = decided.iter().all(Decided::deletes);
        let (overfull, keep) = if deletes { (2 * OVERFULL, 0) } else { (OVERFULL, KEPT_FOR_DELETES) };
        if !deletes && bytes > self.shared.memory.most() {
            return Err(Error::limit("change", "bytes of memory", bytes, self.shared.memory.most()));
        }
        let memtable = &order.version.memtable;
        let has_range = decided.iter().any(Decided::is_range);
        if !memtable.has_room(bytes) || memtable.bytes() >= limit.saturating_mul(overfull) {
            self.freeze_for(order, bytes)?;
        } else if has_range && memtable.fragments() >= FRAGMENTS_MOST {
            let can_wait = memtable.fragments() < FRAGMENTS_ANYHOW;
            match self.freeze_for(order, bytes) {
                // There is no space for a new log.
                Err(error) if can_wait && self.is_harmless(&error) => {}
                frozen => frozen?,
            }
        }
        self.log_room_for(order, logged, keep)
    }

    /// The same where some are operands, which the memtable gets joined with what it has of their keys: that must fit
    /// too. Notes them.
    #[cold]
    #[inline(never)]
    fn room_for_operands(
        &self,
        order: &mut Order,
        decided: &[Decided<'_>],
        bytes: &mut usize,
        in_log: &mut InLog,
    ) -> Result<()> {
        let memtable = order.version.memtable.clone();
        let (joined, logged) = (self.join(order, decided)?, *bytes);
        *bytes += joined.0.iter().map(|(_, all)| all.len()).sum::<usize>();
        self.room_for(order, decided, *bytes, logged)?;
        // A new memtable has nothing to join them with.
        if Arc::ptr_eq(&memtable, &order.version.memtable) {
            *in_log = joined;
        }
        Ok(())
    }

    /// The same as [`log_room`](Core::log_room). If the log has a device of its own, which is full, the memtable
    /// becomes tables early: then the log gives its space back.
    #[inline]
    fn log_room_for(&self, order: &mut Order, bytes: usize, keep: u64) -> Result<()> {
        match self.log_room(bytes as u64, keep) {
            Err(error)
                if self.disk().is_log_apart()
                    && self.is_harmless(&error)
                    && self.backlog_bytes() == 0
                    && order.version.memtable.bytes() > 0 =>
            {
                self.freeze_for(order, bytes)?;
                self.log_room(bytes as u64, keep)
            }
            room => room,
        }
    }

    /// Sees to it that the log has space for changes of `bytes` bytes. `keep` bytes stay for others.
    #[inline]
    fn log_room(&self, bytes: u64, keep: u64) -> Result<()> {
        if self.log().take_room(bytes, keep) { Ok(()) } else { self.more_log_room(bytes, keep) }
    }

    #[cold]
    fn more_log_room(&self, bytes: u64, keep: u64) -> Result<()> {
        if !self.log().is_begun() {
            let begun = self.log().rotate(self.next_number());
            if begun.is_err() {
                // The background finds out whether files that crashes have left can be removed.
                self.full.store(true, Ordering::Relaxed);
            }
            // The store writes nothing before its first change. There may be work that has waited for it.
            self.call_for_work();
            begun?;
            self.note_names();
        }
        if !self.log().take_room(bytes, keep) {
            let reserved = self.log().reserve(bytes, keep);
            if let (Err(_), Some(history)) = (&reserved, &self.history) {
                history.give_up();
                self.call_for_work();
            }
            reserved?;
            assert!(self.log().take_room(bytes, keep), "the space was just taken");
        }
        Ok(())
    }

    /// Goes on with an empty memtable and a new log.
    pub(crate) fn freeze(&self, order: &mut Order) -> Result<()> {
        self.freeze_for(order, 0)
    }

    /// The same with a memtable that has room for changes with this many bytes.
    fn freeze_for(&self, order: &mut Order, bytes: usize) -> Result<()> {
        let number = self.log().spare().unwrap_or_else(|| self.next_number());
        let memtable = Memtable::new(&self.options(), self.shared.memory.spare(), number, bytes)?;
        self.log().rotate(number)?;
        self.note_names();
        order.version.memtable.freeze(self.catalog(), order.sequence);
        let version = order.version.with_memtable(memtable);
        // Dropping the old version closes no files, because the new one has all of them.
        let _ = self.set_version(order, version);
        if self.lacks_space(&order.version) {
            match self.history.as_ref().filter(|history| history.has_some()) {
                // Its space comes first.
                Some(history) => history.give_up(),
                // ORDERING: no other data depends on it.
                None => self.full.store(true, Ordering::Relaxed),
            }
        }
        self.call_for_work();
        Ok(())
    }

    /// Notes in a log that was just begun what is needed to read its changes without those before. Without space for
    /// that they cannot be read, and the store goes on.
    pub(crate) fn note_names(&self) {
        let Some(history) = &self.history else { return };
        let mut notes = Vec::new();
        Change::Note(Note::Time { ms: history.now_ms() }).put(&mut notes);
        for space in self.catalog().spaces.values() {
            Change::Note(Note::Name { space: space.id, name: &space.name }).put(&mut notes);
        }
        let bytes = notes.len() as u64;
        if self.log().take_room(bytes, 0)
            || (self.log().reserve(bytes, 0).is_ok() && self.log().take_room(bytes, 0))
        {
            self.log().queue(0, |out| out.extend_from_slice(&notes));
        }
    }

    /// States in the log how far it is synced, if no record has done so since and there is space: others who follow the
    /// changes learn it from the files. Called when nothing was written for a moment.
    ///
    /// # Errors
    /// The log is stopped then.
    pub(crate) fn note_synced(&self) -> Result<()> {
        if self.history.is_none() || !self.log().has_unstated() {
            return Ok(());
        }
        let _order = self.order();
        let has_room =
            self.log().take_room(0, 0) || (self.log().reserve(0, 0).is_ok() && self.log().take_room(0, 0));
        if has_room { self.log().state_synced() } else { Ok(()) }
    }

    /// Notes in the log that tables with keys from `first` to `last` are going to be added, or were.
    pub(crate) fn note_ingest(
        &self,
        order: &mut Order,
        space: &Space,
        is_done: bool,
        (first, last): (&[u8], &[u8]),
    ) -> Result<()> {
        if self.history.is_none() {
            return Ok(());
        }
        self.log_room((first.len() + last.len()) as u64 + INGEST_CHANGE_MOST, 0)?;
        self.log().queue(1, |out| Change::Ingest { space: space.id, is_done, first, last }.put(out));
        order.sequence += 1;
        Ok(())
    }

    /// Opens a keyspace, or creates it.
    pub(crate) fn keyspace(&self, name: &str) -> Result<Arc<Space>> {
        self.make_space(name, MAX_KEYSPACES)
    }

    /// Creates a keyspace, or finds it.
    pub(crate) fn make_space(&self, name: &str, most: usize) -> Result<Arc<Space>> {
        self.check_here()?;
        if let Some(space) = self.catalog().get(name) {
            return Ok(space.clone());
        }
        let mut order = self.admit(false)?;
        let before = self.catalog();
        if let Some(space) = before.get(name) {
            return Ok(space.clone());
        }
        if before.spaces.len() >= most {
            return Err(Error::limit("store", "keyspaces", most + 1, most));
        }
        let id = before.next;
        let catalog = before.with(name, id);
        let catalog =
            catalog.ok_or_else(|| Error::limit("store", "keyspaces ever made", id as usize, id as usize))?;
        let last = self.change_catalog(&mut order, Change::Create { space: id, name }, catalog)?;
        let space = self.catalog().get(name).expect("it was just made").clone();
        drop(order);
        self.log().commit(last, self.durability())?;
        self.changed();
        Ok(space)
    }

    /// Removes a keyspace; false if there is none.
    pub(crate) fn drop_space(&self, name: &str) -> Result<bool> {
        let mut order = self.admit(true)?;
        let before = self.catalog();
        let Some(space) = before.get(name).cloned() else { return Ok(false) };
        let catalog = before.without(space.id).expect("it is there");
        let last = self.change_catalog(&mut order, Change::Drop { space: space.id }, catalog)?;
        space.mark_dropped();
        drop(order);
        self.log().commit(last, self.durability())?;
        self.changed();
        self.call_for_work();
        Ok(true)
    }

    fn change_catalog(&self, order: &mut Order, change: Change<'_>, catalog: Catalog) -> Result<u64> {
        self.log_room(CATALOG_CHANGE_MOST, 0)?;
        self.log().queue(1, |out| change.put(out));
        order.sequence += 1;
        self.catalog.replace(&Arc::new(catalog));
        self.readers.apply(order.sequence);
        self.readers.show(order.sequence);
        Ok(order.sequence)
    }
}

/// The operands that a memtable has of a key, and then new ones; `None` if it has none.
fn joined(
    memtable: &Memtable,
    space: u32,
    operator: &dyn MergeOperator,
    key: &[u8],
    new: &[u8],
    newest: ReadAt<'_>,
) -> Result<Option<Vec<u8>>> {
    let join = |said: Entry<'_>| match said.has_operands() {
        true => operands::joined(operator, key, said.bytes(), new).map(Some),
        false => Ok(None),
    };
    memtable.get(space, key, newest, join).transpose().map(Option::flatten)
}

/// Whether two versions have the same tables for a key.
fn same_partition(a: &Version, b: &Version, space: u32, key: &[u8]) -> bool {
    match (a.partition(space, key), b.partition(space, key)) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        (None, None) => true,
        _ => false,
    }
}

/// Whether what the tables have for a key may expire.
fn may_expire(version: &Version, space: u32, key: &[u8]) -> bool {
    version.partition(space, key).is_some_and(|partition| partition.may_expire())
}

/// Applies the range deletes of a batch, all at its first sequence number: what the batch sets has that or a greater
/// one, and what a later range of the batch deletes is not in it ([`Batch::finish`]).
fn apply_ranges(memtable: &Memtable, decided: &[Decided<'_>], first: u64, wanted: &Wanted<'_>) {
    for (space, spans) in deleted(decided) {
        memtable.delete_ranges(space, &spans, first, wanted);
    }
}

/// The keys of the ranges that some changes delete, by keyspace.
fn deleted(decided: &[Decided<'_>]) -> BTreeMap<u32, Spans> {
    let mut deleted: BTreeMap<u32, Spans> = BTreeMap::new();
    for one in decided {
        if let Decided::Range { space, start, end } = *one {
            deleted.entry(space).or_default().insert(start.to_vec(), end.map(<[u8]>::to_vec));
        }
    }
    deleted
}

/// The partitions whose keys are all within a range, and those that may have some.
fn places(
    partitions: &[Arc<Partition>],
    (start, end): (&[u8], Option<&[u8]>),
) -> (Range<usize>, Range<usize>) {
    let first = partitions.partition_point(|one| *one.low <= *start).saturating_sub(1);
    let last = end.map_or(partitions.len(), |end| partitions.partition_point(|one| *one.low < *end));
    let some = first.min(last)..last;
    let is_within = |at: usize| {
        let high = partitions.get(at + 1).map(|next| &next.low[..]);
        *start <= *partitions[at].low && end.is_none_or(|end| high.is_some_and(|high| high <= end))
    };
    // All but the first and the last certainly are.
    let mut all = some.clone();
    if !all.is_empty() && !is_within(all.start) {
        all.start += 1;
    }
    if !all.is_empty() && !is_within(all.end - 1) {
        all.end -= 1;
    }
    (all, some)
}

/// An error if a partition is damaged that has keys within a range and may have others: when memtables become tables,
/// the keys of the range must be read in such a partition. One whose keys are all within the range is not read.
fn check_range(version: &Version, space: u32, (start, end): (&[u8], Option<&[u8]>)) -> Result<()> {
    let partitions = version.partitions(space);
    let (all, some) = places(partitions, (start, end));
    let meets = |one: &&Arc<Partition>| one.meets(start, end);
    let ends = partitions[some.start..all.start].iter().chain(&partitions[all.end..some.end]);
    let damage = ends.filter(meets).find_map(|one| one.damage());
    damage.map_or(Ok(()), |damage| Err(damage.error()))
}

/// The content of a key that a batch has changed.
enum Changed {
    Now(Option<Value>),
    /// An operand, which is to be applied to what the store has.
    Operand(Vec<u8>),
}

/// The effects of a batch so far on a keyspace.
#[derive(Default)]
struct Overlay {
    /// The new content of changed keys. What a range delete of the batch has deleted is not among them.
    changed: BTreeMap<Vec<u8>, Changed>,
    deleted: Spans,
}

/// A batch that is being decided.
struct Batch<'s, 'b> {
    store: &'s Core,
    version: &'s Arc<Version>,
    decided: Vec<Decided<'b>>,
    /// The effects of the batch so far by keyspace, if any of its operations reads.
    overlay: Option<BTreeMap<u32, Overlay>>,
}

impl<'b> Batch<'_, 'b> {
    fn old(&self, space: u32, key: &[u8]) -> Result<Option<Value>> {
        if let Some(overlay) = self.overlay.as_ref().and_then(|overlay| overlay.get(&space)) {
            match overlay.changed.get(key) {
                Some(Changed::Now(value)) => return Ok(value.clone()),
                Some(Changed::Operand(operand)) => return self.applied(space, key, operand).map(Some),
                None if overlay.deleted.contains(key) => return Ok(None),
                None => {}
            }
        }
        self.stored(space, key)
    }

    /// The value of a key before the batch.
    fn stored(&self, space: u32, key: &[u8]) -> Result<Option<Value>> {
        read::get(self.version, space, key, self.store.newest(), ToValue)
    }

    /// The value of a key after an operand of the batch.
    fn applied(&self, space: u32, key: &[u8], operand: &[u8]) -> Result<Value> {
        let old = self.stored(space, key)?;
        let operator = self.version.operated.get(space)?;
        let value = merge::merged(&*operator, key, old.as_deref(), [operand], VALUE_MAX)?;
        Ok(Value::from(&value[..]))
    }

    /// Whether a merge needs no read: neither the batch nor a memtable has the key, and an operand may be stored.
    fn takes_operand(&self, keyspace: &Space, (key, operand): (&[u8], &[u8])) -> Result<bool> {
        let Some(operator) = keyspace.operator() else { return Ok(false) };
        let (space, version) = (keyspace.id, self.version);
        if let Some(overlay) = self.overlay.as_ref().and_then(|overlay| overlay.get(&space))
            && (overlay.changed.contains_key(key) || overlay.deleted.contains(key))
        {
            return Ok(false);
        }
        let is_free = matches!(
            read::in_memtables(version, space, key, self.store.newest(), |_| ()),
            None | Some(Found::Operands)
        );
        Ok(is_free
            && version.operated.are_stored()
            && self.store.may_store_operand(version, keyspace, (key, operand))?
            && self.store.takes_operand(version, keyspace, operator, (key, operand))?)
    }

    fn decide(&mut self, keyspace: &Space, op: Op<&'b [u8]>) -> Result<Outcome> {
        let space = keyspace.id;
        if let Op::DeleteRange { start, end } = op {
            if !spans::is_empty(start, end) {
                self.delete_range(space, start, end)?;
            }
            return Ok(Outcome::DeletedRange);
        }
        if let Op::CompareRange { start, end, pairs } = op {
            return self.compare_range(space, (start, end), pairs);
        }
        let key = op.key();
        if let Op::Merge { operand, .. } = op
            && let Some(operator) = keyspace.operator()
        {
            merge::check(&**operator, &op)?;
            if self.takes_operand(keyspace, (key, operand))? {
                if let Some(overlay) = &mut self.overlay {
                    let changed = &mut overlay.entry(space).or_default().changed;
                    changed.insert(key.to_vec(), Changed::Operand(operand.to_vec()));
                }
                let new = New(Kind::Wrapped, Cow::Owned(wrapped::of_operands([operand])));
                self.decided.push(Decided::Key { space, key: Cow::Borrowed(key), new });
                return Ok(Outcome::Merged);
            }
        }
        // A delete in a batch does not report whether the key existed.
        let old = match op {
            Op::Set { .. } | Op::SetUntil { .. } | Op::Delete { .. } => None,
            _ => self.old(space, key)?,
        };
        let (effect, outcome) = merge::resolve(keyspace.operator(), &op, old.as_deref(), VALUE_MAX)?;
        if let Some(mut new) = new_value(effect) {
            if let Some(expires) = expires(keyspace, &op) {
                new = self.store.until(expires, new)?;
            }
            if let Some(overlay) = &mut self.overlay {
                let changed = &mut overlay.entry(space).or_default().changed;
                let now = new.entry().value(|| self.store.newest().now_ms()).map(Value::from);
                changed.insert(key.to_vec(), Changed::Now(now));
            }
            self.decided.push(Decided::Key { space, key: Cow::Borrowed(key), new });
        }
        Ok(outcome)
    }

    /// Compares a range of the state before the batch with the expected pairs. REQUIRES: the batch has no effects yet.
    fn compare_range(
        &self,
        space: u32,
        (start, end): (&[u8], Option<&[u8]>),
        pairs: &[u8],
    ) -> Result<Outcome> {
        if spans::is_empty(start, end) {
            return Ok(Outcome::ComparedRange(Swap::Done));
        }
        let (bounds, newest) = (spans::bounds(start, end), self.store.newest());
        Outcome::of_range(pairs, |see| {
            let way = (Direction::Forward, false);
            scan::scan(self.store, self.version, space, newest, bounds, way, scan::Values(see))
        })
    }

    fn delete_range(&mut self, space: u32, start: &'b [u8], end: Option<&'b [u8]>) -> Result<()> {
        check_range(self.version, space, (start, end))?;
        if let Some(overlay) = &mut self.overlay {
            let Overlay { changed, deleted } = overlay.entry(space).or_default();
            // Each key goes once for each time that the batch has changed it.
            while let Some((key, _)) = changed.range::<[u8], _>(spans::bounds(start, end)).next() {
                let key = key.clone();
                changed.remove(&key);
            }
            deleted.insert(start.to_vec(), end.map(<[u8]>::to_vec));
        }
        self.decided.push(Decided::Range { space, start, end });
        Ok(())
    }

    /// The changes, without those that a later range of the batch undoes.
    fn finish(self) -> Vec<Decided<'b>> {
        let mut decided = self.decided;
        if !decided.iter().any(Decided::is_range) {
            return decided;
        }
        let mut later: BTreeMap<u32, Spans> = BTreeMap::new();
        let mut kept = Vec::with_capacity(decided.len());
        while let Some(one) = decided.pop() {
            let is_undone = match &one {
                Decided::Key { space, key, .. } => later.get(space).is_some_and(|spans| spans.contains(key)),
                Decided::Range { space, start, end } => {
                    let spans = later.entry(*space).or_default();
                    let is_undone = spans.contains_all(start, *end);
                    spans.insert(start.to_vec(), end.map(<[u8]>::to_vec));
                    is_undone
                }
            };
            if !is_undone {
                kept.push(one);
            }
        }
        kept.reverse();
        kept
    }
}

impl Core {
    pub(crate) fn newest(&self) -> ReadAt<'_> {
        ReadAt::Newest(self.readers.visible())
    }

    pub(crate) fn visible(&self) -> u64 {
        self.readers.visible().load(Ordering::Relaxed)
    }
}

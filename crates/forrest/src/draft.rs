//! [`Draft`]: what a transaction has read and is to change in one keyspace. [`RangeCursor`]: a position in that.
//!
//! **Reads.** A draft records what it has seen of the store: single keys, and whole ranges, of which it knows every
//! pair. What it has seen once it sees again, also in another range. A range is recorded as far as it was shown. A read
//! that the transaction's own changes decide (a key that it has set, a range that it has deleted) reads nothing of the
//! store and records nothing.
//!
//! **Changes.** A draft has one change for each key, and the ranges that it deletes. A change of a key in a deleted
//! range came after the deletion, because the deletion removes the changes that were there.
//!
//! **The commit** ([`Draft::finish_ranges`], [`Draft::finish`]) compares each recorded range and each recorded key,
//! then deletes ranges, then changes keys.

use crate::batch::{On, WriteBatch};
use crate::cursor::Range;
use crate::keyspace::Keyspace;
use crate::locks::{Held, Locks, Refused};
use forrest_base::lock;
use forrest_engine::bounds::{prefix_end, successor};
use forrest_engine::merge::{self, SharedOperator};
use forrest_engine::op::check_value;
use forrest_engine::pairs::PAIR_BYTES;
use forrest_engine::spans::{Span, Spans, bounds, earlier, is_empty};
use forrest_engine::{
    Effect, Error, ErrorKind, Expires, KeyRange, Keyspace as _, MAX_KEYSPACE_NAME_BYTES, MAX_VALUE_BYTES, Op,
    Result, Value, half_open,
};
use std::collections::BTreeMap;
use std::fmt;
use std::iter::FusedIterator;
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// Maximum number of bytes of a key in a message.
const SHOWN_BYTES: usize = MAX_KEYSPACE_NAME_BYTES;
/// How long a transaction waits for a lock, if it does not say otherwise.
const LOCK_WAIT: Duration = Duration::from_secs(1);
/// A draft reads a key that has more operands which do not combine.
const OPERANDS_MOST: usize = 64;

/// The reads and changes of a [`Transaction`](crate::Transaction) in one keyspace.
///
/// Every method fails with `Limit` if a key or value is too long for any store, or if the transaction's reads and
/// changes have come to its limit, which is that of a batch (see [`Builder`](crate::Builder)): each key and range that
/// was read, changed or locked counts as an operation, and all keys and values count as bytes, with 8 more for a key
/// that was read. The call that fails so changes nothing. All other errors of a change are reported by the commit.
pub struct Draft {
    pub(crate) keyspace: Keyspace,
    shared: Arc<Shared>,
    /// What the store has for a key, in and out of `known`.
    reads: BTreeMap<Vec<u8>, Option<Value>>,
    /// Ranges of which `reads` has every pair.
    known: Spans,
    writes: BTreeMap<Vec<u8>, Write>,
    deleted: Spans,
    /// How to take back the changes since the first savepoint. `None` if there is no savepoint.
    undo: Option<Vec<Undo>>,
    /// Whether the keyspace is of another store than the transaction. The commit refuses it.
    is_foreign: bool,
}

/// A change of a key.
#[derive(Clone)]
enum Write {
    Put(Value),
    /// Puts a value that expires.
    PutUntil(Value, Expires),
    Delete,
    /// Adds to what the store has then.
    Add(i64),
    /// Merges these operands into what the store has then.
    Merge(Vec<Value>),
}

/// How to take back a change.
enum Undo {
    /// The change of a key before.
    Write(Vec<u8>, Option<Write>),
    /// The start of a range of `deleted`, and what was in its place.
    Deleted(Vec<u8>, Vec<Span>),
}

/// What the drafts of a transaction have in common. Only one thread uses it at a time.
pub(crate) struct Shared {
    ops_max: usize,
    bytes_max: usize,
    ops: AtomicUsize,
    bytes: AtomicUsize,
    locks: Mutex<Held>,
    lock_wait: Mutex<Duration>,
    /// The keyspace and key of a lock that was refused because waiting would never end.
    refused: OnceLock<(String, Vec<u8>)>,
}

impl Shared {
    pub(crate) fn new(ops_max: usize, bytes_max: usize, locks: Arc<Locks>) -> Shared {
        Shared {
            ops_max,
            bytes_max,
            ops: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            locks: Mutex::new(Held::new(locks)),
            lock_wait: Mutex::new(LOCK_WAIT),
            refused: OnceLock::new(),
        }
    }

    pub(crate) fn set_lock_wait(&self, wait: Duration) {
        *lock(&self.lock_wait) = wait;
    }

    /// Releases all locks of the transaction.
    pub(crate) fn unlock(&self) {
        lock(&self.locks).release();
    }

    pub(crate) fn count_savepoint(&self) -> Result<()> {
        self.replace(NOTHING, (1, 0))
    }

    pub(crate) fn forget_savepoints(&self, count: usize) {
        self.restore((count, 0), NOTHING);
    }

    /// The lock that was refused because of a deadlock, if there is one.
    pub(crate) fn refused(&self) -> Option<(String, Vec<u8>)> {
        self.refused.get().cloned()
    }

    /// Counts `new` instead of `old`, or fails if the transaction cannot have so much.
    fn replace(&self, old: Cost, new: Cost) -> Result<()> {
        // ORDERING: one thread uses the counts at a time.
        let ops = self.ops.load(Relaxed) + new.0 - old.0;
        let bytes = self.bytes.load(Relaxed) + new.1 - old.1;
        if ops > self.ops_max && new.0 > old.0 {
            return Err(Error::limit("transaction", "operations", ops, self.ops_max));
        }
        if bytes > self.bytes_max && new.1 > old.1 {
            return Err(Error::limit("transaction", "bytes", bytes, self.bytes_max));
        }
        self.ops.store(ops, Relaxed);
        self.bytes.store(bytes, Relaxed);
        Ok(())
    }

    /// Counts `new` instead of `old`, also beyond the limits: nothing grows, or what was there comes back.
    fn restore(&self, old: Cost, new: Cost) {
        self.ops.store(self.ops.load(Relaxed) + new.0 - old.0, Relaxed);
        self.bytes.store(self.bytes.load(Relaxed) + new.1 - old.1, Relaxed);
    }
}

/// Operations and bytes.
type Cost = (usize, usize);

const NOTHING: Cost = (0, 0);

fn plus(a: Cost, b: Cost) -> Cost {
    (a.0 + b.0, a.1 + b.1)
}

/// What a key with a change counts. Operands become an operation each.
fn cost(key: &[u8], write: &Write) -> Cost {
    let (ops, bytes) = match write {
        Write::Put(value) | Write::PutUntil(value, _) => (1, value.len()),
        Write::Merge(operands) => (operands.len(), operands.iter().map(|operand| operand.len()).sum()),
        Write::Delete | Write::Add(_) => (1, 0),
    };
    (ops, ops * key.len() + bytes)
}

/// What a key that was read counts in bytes.
fn read_bytes(key: &[u8], found: Option<&Value>) -> usize {
    PAIR_BYTES + key.len() + found.map_or(0, |value| value.len())
}

/// What a key with a change counts in the log of changes to take back.
fn undo_cost(key: &[u8], old: Option<&Write>) -> Cost {
    old.map_or((1, key.len()), |old| cost(key, old))
}

impl Undo {
    fn cost(&self) -> Cost {
        match self {
            Undo::Write(key, old) => undo_cost(key, old.as_ref()),
            Undo::Deleted(start, before) => {
                let bytes = |(start, end): &Span| start.len() + end.as_ref().map_or(0, Vec::len);
                (1 + before.len(), start.len() + before.iter().map(bytes).sum::<usize>())
            }
        }
    }
}

impl Draft {
    pub(crate) fn new(keyspace: &Keyspace, shared: &Arc<Shared>, undoes: bool, is_foreign: bool) -> Draft {
        Draft {
            keyspace: keyspace.clone(),
            shared: shared.clone(),
            reads: BTreeMap::new(),
            known: Spans::default(),
            writes: BTreeMap::new(),
            deleted: Spans::default(),
            undo: undoes.then(Vec::new),
            is_foreign,
        }
    }

    /// The value of a key, or `None`: the transaction's own change, or else the value in the store. The
    /// latter must be unchanged when the transaction is committed.
    ///
    /// # Errors
    /// Those of [`View::get`](crate::View::get); `InvalidArgument` if the transaction has added to a value
    /// that is not a counter.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// db.set("tree", "oak")?;
    /// let mut transaction = db.transaction();
    /// assert_eq!(transaction.get("tree")?.unwrap(), "oak");
    /// transaction.set("tree", "ash")?;
    /// assert_eq!(transaction.get("tree")?.unwrap(), "ash");
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn get(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        let key = key.as_ref();
        let added = match self.writes.get(key) {
            Some(Write::Put(value) | Write::PutUntil(value, _)) => return Ok(Some(value.clone())),
            Some(Write::Delete) => return Ok(None),
            Some(write) => Some(write.clone()),
            None if self.deleted.contains(key) => return Ok(None),
            None => None,
        };
        let seen = self.seen(key);
        let found = match &seen {
            Some(found) => found.clone(),
            None => self.keyspace.get(key)?,
        };
        // Also if the addition fails: that it fails depends on what was read.
        if seen.is_none() {
            self.record(key, found.clone())?;
        }
        let new = match &added {
            Some(Write::Add(delta)) => sum(found.as_deref(), *delta)?,
            Some(Write::Merge(operands)) => self.merged(key, found.as_deref(), operands)?,
            _ => return Ok(found),
        };
        self.write(key, Some(Write::Put(new.clone())))?;
        Ok(Some(new))
    }

    /// True if the key exists. The key counts as read, with its value.
    ///
    /// # Errors
    /// As [`get`](Draft::get).
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// let mut transaction = db.transaction();
    /// transaction.set("tree", "oak")?;
    /// assert!(transaction.contains("tree")? && !transaction.contains("bush")?);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn contains(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// Locks a key, and then reads it like [`get`](Draft::get). Until this transaction ends, other transactions that
    /// lock the key wait. So transactions that lock what they change take turns, instead of being in conflict. Lock a
    /// key before you read it in another way: a key that was read before keeps its value.
    ///
    /// **A lock holds off only those that ask for it.** A transaction that reads the key without a lock, and a change
    /// outside of transactions, do not wait for it. If such a change intervenes, the commit is in conflict, as without
    /// locks. Locks are those of this open store and its handles: other processes that share a store do not see them,
    /// and nor does a second opening of a store in the kernel.
    ///
    /// # Errors
    /// `Busy` if another transaction holds the lock for longer than
    /// [`Transaction::set_lock_wait`](crate::Transaction::set_lock_wait) allows, by default 1 second. `Busy` at once if
    /// waiting would never end, because the owner of the lock waits for one of this transaction's; the transaction can
    /// then only be in conflict, and [`Db::transact`](crate::Db::transact) runs it again. `Limit` if the locks of all
    /// transactions of the store exceed 64 MiB, at 256 bytes each and their keys. Otherwise as `get`.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// use std::time::Duration;
    /// let mut ada = db.transaction();
    /// assert_eq!(ada.get_for_update("seats")?, None);
    ///
    /// let mut bob = db.transaction();
    /// bob.set_lock_wait(Duration::ZERO);
    /// assert_eq!(bob.get_for_update("seats").unwrap_err().kind(), forrest::ErrorKind::Busy);
    ///
    /// ada.set("seats", "1")?;
    /// assert!(ada.commit()?.is_done());
    /// assert_eq!(bob.get_for_update("seats")?.unwrap(), "1");
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn get_for_update(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        let key = key.as_ref();
        self.lock(key)?;
        self.get(key)
    }

    /// Locks a key like [`get_for_update`](Draft::get_for_update), without reading it. The key need not exist: it may
    /// stand for anything on which transactions agree, such as the front of a queue.
    ///
    /// # Errors
    /// As `get_for_update`.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// db.set("job 1", "sweep")?;
    /// let job = db.transact(|transaction| -> forrest::Result<_> {
    ///     transaction.lock("the front of the queue")?; // those who take a job take turns
    ///     let first = transaction.prefix("job ").next().transpose()?;
    ///     if let Some((key, _)) = &first {
    ///         transaction.delete(key)?;
    ///     }
    ///     Ok(first)
    /// })?;
    /// assert_eq!(job.unwrap().1, "sweep");
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn lock(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref();
        forrest_engine::op::check_key(key)?;
        let (wait, name) = (*lock(&self.shared.lock_wait), self.keyspace.name());
        if self.is_foreign {
            let message = format!("locking {}: the keyspace belongs to another store", shown(name, key));
            return Err(Error::invalid(message));
        }
        let mut held = lock(&self.shared.locks);
        let wanted = Held::name(name, key);
        if held.has(&wanted) {
            return Ok(());
        }
        let cost = (1, key.len());
        self.shared.replace(NOTHING, cost)?;
        let refused = match held.take(wanted, wait) {
            Ok(()) => return Ok(()),
            Err(refused) => refused,
        };
        self.shared.restore(cost, NOTHING);
        match refused {
            Refused::Error(error) => {
                let message = format!("locking {}: {}", shown(name, key), error.message());
                Err(Error::new(error.kind(), message))
            }
            Refused::Deadlock => {
                // The first is enough.
                let _ = self.shared.refused.set((name.to_owned(), key.to_vec()));
                let message = format!(
                    "locking {}: a deadlock, because its owner waits for a lock of this transaction; drop this one and \
                     run it again",
                    shown(name, key)
                );
                Err(Error::new(ErrorKind::Busy, message))
            }
        }
    }

    /// Iterates over the pairs of a range in the order of their keys, from either end: the store's, with the
    /// transaction's own changes. The range counts as read from the end where the iteration began up to the last pair
    /// that it returned, or as a whole if it returned `None`. What was read must be unchanged when the transaction is
    /// committed: the same keys, no others, and the same values. Changes beyond it do not matter, so "take the first of
    /// the queue" depends on the first pair only.
    ///
    /// In the kernel, a pair that is compared has at most 16 MiB with its key, a little less than a pair that is set.
    /// The commit fails with `Limit` for a longer one.
    ///
    /// Reading a range again returns the same pairs, with the transaction's own changes. To change a draft between two
    /// pairs, use a [`RangeCursor`].
    ///
    /// # Errors
    /// An item is an error where [`View::range`](crate::View::range) has one, and `Limit` as every method of a draft.
    /// After `Limit` the iteration has ended; after another error it keeps its place.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// for (key, job) in [("job 1", "sweep"), ("job 2", "cook"), ("job 3", "paint")] {
    ///     db.set(key, job)?;
    /// }
    /// let mut transaction = db.transaction();
    /// let (key, job) = transaction.range("job "..).next().unwrap()?;
    /// transaction.delete(&key)?;
    /// db.set("job 4", "beyond what was read")?;
    /// assert!(transaction.commit()?.is_done());
    /// assert_eq!(job, "sweep");
    ///
    /// let mut transaction = db.transaction();
    /// assert_eq!(transaction.range("job "..).count(), 3);
    /// transaction.set("jobs", "3")?;
    /// db.set("job 5", "in what was read")?;
    /// assert!(!transaction.commit()?.is_done());
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn range(&mut self, bounds: impl KeyRange) -> DraftRange<'_> {
        DraftRange { cursor: RangeCursor::new(bounds), draft: self, is_over: false }
    }

    /// Iterates over the pairs whose keys begin with `prefix`, like [`range`](Draft::range).
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// db.set("/usr/bin/env", "")?;
    /// db.set("/usr/lib", "")?;
    /// assert_eq!(db.transaction().prefix("/usr/bin/").count(), 1);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn prefix(&mut self, prefix: impl AsRef<[u8]>) -> DraftRange<'_> {
        let prefix = prefix.as_ref();
        let end = prefix_end(prefix).map_or(Bound::Unbounded, Bound::Excluded);
        self.range((Bound::Included(prefix.to_vec()), end))
    }

    /// Sets the value of a key.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// let mut transaction = db.transaction();
    /// transaction.set("key", "value")?;
    /// assert!(transaction.commit()?.is_done());
    /// assert!(db.contains("key")?);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn set(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        Op::Set { key, value }.check()?;
        self.write(key, Some(Write::Put(value.into())))
    }

    /// Sets the value of a key for a time to live, which begins with the commit. Until then this transaction reads the
    /// value. See [`Keyspace::set_with_ttl`](crate::Keyspace::set_with_ttl).
    ///
    /// # Errors
    /// As [`set`](Draft::set).
    pub fn set_with_ttl(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<()> {
        let (key, value, expires) = (key.as_ref(), value.as_ref(), Expires::after(ttl));
        Op::SetUntil { key, value, expires }.check()?;
        self.write(key, Some(Write::PutUntil(value.into(), expires)))
    }

    /// Removes a key, if it exists.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// db.set("key", "value")?;
    /// let mut transaction = db.transaction();
    /// transaction.delete("key")?;
    /// assert!(transaction.commit()?.is_done());
    /// assert!(!db.contains("key")?);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref();
        Op::Delete { key }.check()?;
        let is_deleted = self.deleted.contains(key);
        self.write(key, (!is_deleted).then_some(Write::Delete))
    }

    /// Removes all keys of a range, those that exist at the commit. This is not a read: a key that appears in the range
    /// meanwhile is no conflict, and is removed.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// let mut transaction = db.transaction();
    /// transaction.set("job 1", "sweep")?;
    /// transaction.delete_range("job "..)?;
    /// transaction.set("job 2", "cook")?;
    /// db.set("job 3", "paint")?;
    /// assert!(transaction.commit()?.is_done());
    /// assert_eq!(db.count(..)?, 1);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn delete_range(&mut self, range: impl KeyRange) -> Result<()> {
        let (start, end) = half_open(range);
        if is_empty(&start, end.as_deref()) {
            return Ok(());
        }
        let cost = self.deleted.cost();
        let (united, before) = self.deleted.insert(start.clone(), end.clone());
        let undo = Undo::Deleted(united, before);
        let undo_cost = if self.undo.is_some() { undo.cost() } else { NOTHING };
        if let Err(error) = self.shared.replace(cost, plus(self.deleted.cost(), undo_cost)) {
            let Undo::Deleted(united, before) = undo else { unreachable!("it was just made") };
            self.deleted.undo(&united, before);
            return Err(error);
        }
        while let Some((key, _)) = self.writes.range::<[u8], _>(bounds(&start, end.as_deref())).next() {
            let key = key.clone();
            self.write(&key, None)?;
        }
        self.log_undo(|| undo);
        Ok(())
    }

    /// Adds to a counter, like [`Keyspace::add`]. This is not a read: transactions that only add to the same
    /// counter are not in conflict.
    ///
    /// # Errors
    /// `InvalidArgument` if the transaction has read or set the key, and its value is not a counter, or if
    /// the sum overflows. For any other key the commit reports these errors.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// let (mut one, mut two) = (db.transaction(), db.transaction());
    /// one.add("visits", 1)?;
    /// two.add("visits", 2)?;
    /// assert!(one.commit()?.is_done() && two.commit()?.is_done());
    /// assert_eq!(db.add("visits", 0)?, 3);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn add(&mut self, key: impl AsRef<[u8]>, delta: i64) -> Result<()> {
        let key = key.as_ref();
        Op::Add { key, delta }.check()?;
        if matches!(self.writes.get(key), Some(Write::Merge(_))) {
            self.get(key)?;
        }
        let new = match self.writes.get(key) {
            Some(Write::Put(value) | Write::PutUntil(value, _)) => Write::Put(sum(Some(value), delta)?),
            Some(Write::Merge(_)) => unreachable!("it was merged when it was read"),
            Some(Write::Delete) => Write::Put(sum(None, delta)?),
            Some(Write::Add(before)) => Write::Add(before.checked_add(delta).ok_or_else(|| {
                Error::invalid(format!("adding {before} and {delta} overflows every counter"))
            })?),
            None if self.deleted.contains(key) => Write::Put(sum(None, delta)?),
            None => match self.seen(key) {
                Some(found) => Write::Put(sum(found.as_deref(), delta)?),
                None => Write::Add(delta),
            },
        };
        self.write(key, Some(new))
    }

    /// Gives an operand to the merge operator of the keyspace, like [`Keyspace::merge`]. This is not a read, unless a
    /// key gets more than 64 operands that do not combine.
    ///
    /// # Errors
    /// `InvalidArgument` if the keyspace has no operator, or if it refuses the operand or panics.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// db.set_merge_operator("append")?;
    /// let (mut one, mut two) = (db.transaction(), db.transaction());
    /// one.merge("log", "a")?;
    /// two.merge("log", "b")?;
    /// assert_eq!(two.get("log")?.unwrap(), "b");
    /// assert!(two.commit()?.is_done() && one.commit()?.is_done());
    /// assert_eq!(db.get("log")?.unwrap(), "ba");
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn merge(&mut self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        let (key, operand) = (key.as_ref(), operand.as_ref());
        let op = Op::Merge { key, operand };
        op.check()?;
        let operator = self.operator()?;
        merge::check(&*operator, &op)?;
        let must_read = match self.writes.get(key) {
            Some(Write::Add(_)) => true,
            Some(Write::Merge(operands)) => operands.len() >= OPERANDS_MOST,
            _ => false,
        };
        if must_read {
            self.get(key)?;
        }
        let one = [Value::from(operand)];
        let new = match self.writes.get(key) {
            Some(Write::Put(value) | Write::PutUntil(value, _)) => {
                Write::Put(self.merged(key, Some(value), &one)?)
            }
            Some(Write::Delete) => Write::Put(self.merged(key, None, &one)?),
            Some(Write::Merge(before)) => {
                let mut operands = before.clone();
                let last = operands.last().expect("it has operands");
                match merge::combined(&*operator, key, last, operand)? {
                    Some(both) if check_value(&both).is_ok() => {
                        *operands.last_mut().expect("as above") = both.into()
                    }
                    _ => operands.extend(one),
                }
                Write::Merge(operands)
            }
            Some(Write::Add(_)) => unreachable!("it was added when it was read"),
            None if self.deleted.contains(key) => Write::Put(self.merged(key, None, &one)?),
            None => match self.seen(key) {
                Some(found) => Write::Put(self.merged(key, found.as_deref(), &one)?),
                None => Write::Merge(one.into()),
            },
        };
        self.write(key, Some(new))
    }

    fn operator(&self) -> Result<SharedOperator> {
        self.keyspace.space().merge_operator().ok_or_else(merge::no_operator)
    }

    /// What operands make of a value.
    fn merged(&self, key: &[u8], old: Option<&[u8]>, operands: &[Value]) -> Result<Value> {
        let operands = operands.iter().map(|operand| &operand[..]);
        merge::merged(&*self.operator()?, key, old, operands, MAX_VALUE_BYTES).map(Value::from)
    }

    /// What the transaction has seen in the store at a key.
    fn seen(&self, key: &[u8]) -> Option<Option<Value>> {
        match self.reads.get(key) {
            Some(found) => Some(found.clone()),
            None => self.known.contains(key).then_some(None),
        }
    }

    /// Records what the store has at a key.
    fn record(&mut self, key: &[u8], found: Option<Value>) -> Result<()> {
        self.shared.replace(NOTHING, (1, read_bytes(key, found.as_ref())))?;
        self.reads.insert(key.to_vec(), found);
        Ok(())
    }

    /// Records that of a range, `reads` has every pair.
    fn know(&mut self, start: &[u8], end: Option<&[u8]>) -> Result<()> {
        if is_empty(start, end) {
            return Ok(());
        }
        let cost = self.known.cost();
        let (united, before) = self.known.insert(start.to_vec(), end.map(<[u8]>::to_vec));
        let counted = self.shared.replace(cost, self.known.cost());
        if counted.is_err() {
            self.known.undo(&united, before);
        }
        counted
    }

    /// Replaces the change of a key, or removes it.
    fn write(&mut self, key: &[u8], new: Option<Write>) -> Result<()> {
        let old = self.writes.get_mut(key);
        let kept = if self.undo.is_some() { undo_cost(key, old.as_deref()) } else { NOTHING };
        let old_cost = old.as_deref().map_or(NOTHING, |old| cost(key, old));
        let new_cost = new.as_ref().map_or(NOTHING, |new| cost(key, new));
        self.shared.replace(old_cost, plus(new_cost, kept))?;
        let old = match (old, new) {
            (Some(place), Some(new)) => Some(std::mem::replace(place, new)),
            (None, Some(new)) => self.writes.insert(key.to_vec(), new),
            (_, None) => self.writes.remove(key),
        };
        self.log_undo(|| Undo::Write(key.to_vec(), old));
        Ok(())
    }

    /// Keeps what a change has replaced, if there is a savepoint. Its cost is counted by then.
    fn log_undo(&mut self, undo: impl FnOnce() -> Undo) {
        if let Some(log) = &mut self.undo {
            log.push(undo());
        }
    }

    /// From now on changes can be taken back up to here. Returns the place.
    pub(crate) fn mark(&mut self) -> usize {
        self.undo.get_or_insert_default().len()
    }

    /// Takes back all changes since a place.
    pub(crate) fn roll_back(&mut self, mark: usize) {
        while self.undo.as_ref().is_some_and(|log| log.len() > mark) {
            let undo = self.undo.as_mut().and_then(Vec::pop).expect("it has more than `mark`");
            let kept = undo.cost();
            match undo {
                Undo::Write(key, old) => {
                    let old_cost = old.as_ref().map_or(NOTHING, |old| cost(&key, old));
                    let new = match old {
                        Some(old) => self.writes.insert(key.clone(), old),
                        None => self.writes.remove(&key),
                    };
                    let new_cost = new.as_ref().map_or(NOTHING, |new| cost(&key, new));
                    self.shared.restore(plus(new_cost, kept), old_cost);
                }
                Undo::Deleted(united, before) => {
                    let cost = plus(self.deleted.cost(), kept);
                    self.deleted.undo(&united, before);
                    self.shared.restore(cost, self.deleted.cost());
                }
            }
        }
    }

    pub(crate) fn forget_reads(&mut self) {
        let bytes = |(key, found): (&Vec<u8>, &Option<Value>)| read_bytes(key, found.as_ref());
        let reads = (self.reads.len(), self.reads.iter().map(bytes).sum());
        self.shared.restore(plus(reads, self.known.cost()), NOTHING);
        self.reads.clear();
        self.known.clear();
    }

    pub(crate) fn forget_changes(&mut self) {
        self.writes.clear();
        self.deleted.clear();
    }

    /// Adds the comparisons of ranges to a batch, which stand before all others.
    pub(crate) fn finish_ranges(&self, batch: &mut WriteBatch) {
        for (start, end) in self.known.iter() {
            let pairs = self.reads.range::<[u8], _>(bounds(start, end));
            let pairs = pairs.filter_map(|(key, found)| Some((&key[..], found.as_deref()?)));
            batch.on(&self.keyspace).expect_range(start, end, pairs);
        }
    }

    /// Adds all other comparisons and the changes to a batch.
    pub(crate) fn finish(&self, batch: &mut On<'_>) {
        let mut single = self.reads.iter().filter(|(key, _)| !self.known.contains(key)).peekable();
        if !self.deleted.is_empty() {
            for (key, found) in single.by_ref() {
                batch.expect(key, found.as_deref());
            }
            for (start, end) in self.deleted.iter() {
                batch.push(Op::DeleteRange { start, end });
            }
        }
        // Where a key was read and is changed, one operation does both.
        for (key, write) in &self.writes {
            while let Some((key, found)) = single.next_if(|(read, _)| *read < key) {
                batch.expect(key, found.as_deref());
            }
            if write.is_compared_apart()
                && let Some((key, found)) = single.next_if(|(read, _)| *read == key)
            {
                batch.expect(key, found.as_deref());
            }
            let new = match write {
                Write::Put(value) => Some(&value[..]),
                Write::PutUntil(value, expires) => {
                    batch.push(Op::SetUntil { key: &key[..], value: &value[..], expires: *expires });
                    continue;
                }
                Write::Delete => None,
                Write::Add(delta) => {
                    batch.add(key, *delta);
                    continue;
                }
                Write::Merge(operands) => {
                    for operand in operands {
                        batch.merge(key, operand);
                    }
                    continue;
                }
            };
            match (single.next_if(|(read, _)| *read == key), new) {
                (Some((_, None)), None) => batch.expect(key, None),
                // A compare-and-swap would change nothing, and leave the value its expiry.
                (Some((_, found)), Some(value)) if found.as_deref() == new => {
                    batch.expect(key, Some(value)).set(key, value)
                }
                (Some((_, found)), new) => batch.compare_and_swap(key, found.as_deref(), new),
                (None, Some(value)) => batch.set(key, value),
                (None, None) => batch.delete(key),
            };
        }
        for (key, found) in single {
            batch.expect(key, found.as_deref());
        }
    }
}

/// The new value of a counter.
fn sum(old: Option<&[u8]>, delta: i64) -> Result<Value> {
    match (Op::Add { key: &[][..], delta }).resolve(old)?.0 {
        Effect::PutValue(sum) => Ok(sum),
        _ => unreachable!("an addition puts a new value"),
    }
}

/// The form of a key in a message.
pub(crate) fn shown(keyspace: &str, key: &[u8]) -> String {
    let rest = if key.len() > SHOWN_BYTES { "..." } else { "" };
    let key = &key[..key.len().min(SHOWN_BYTES)];
    format!("key \"{}{rest}\" of keyspace \"{}\"", key.escape_ascii(), keyspace.escape_debug())
}

impl fmt::Debug for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Draft")
            .field("keyspace", &self.keyspace.name())
            .field("reads", &self.reads.len())
            .field("writes", &self.writes.len())
            .finish_non_exhaustive()
    }
}

/// An iteration over a range of a [`Draft`]; see [`Draft::range`].
#[derive(Debug)]
pub struct DraftRange<'d> {
    draft: &'d mut Draft,
    cursor: RangeCursor,
    /// The transaction has come to its limit.
    is_over: bool,
}

/// A pair that a draft reads, if there is one.
type Pair = Result<Option<(Vec<u8>, Value)>>;

impl DraftRange<'_> {
    fn step(&mut self, step: fn(&mut RangeCursor, &mut Draft) -> Pair) -> Option<<Self as Iterator>::Item> {
        if self.is_over {
            return None;
        }
        let item = step(&mut self.cursor, self.draft).transpose();
        self.is_over = matches!(&item, Some(Err(error)) if error.kind() == ErrorKind::Limit);
        item
    }
}

impl Iterator for DraftRange<'_> {
    type Item = Result<(Vec<u8>, Value)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(RangeCursor::next)
    }
}

impl DoubleEndedIterator for DraftRange<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(RangeCursor::next_back)
    }
}

impl FusedIterator for DraftRange<'_> {}

/// A position in a range of a [`Draft`], like [`Draft::range`], that does not borrow the draft: it may be changed
/// between two pairs, and the cursor may be stored beside it. Each call reads what the transaction has then. The two
/// ends never cross, and no key is returned twice.
///
/// ```
/// # let db = forrest::Db::open("memory:")?;
/// use forrest::RangeCursor;
/// for number in 1..=5_u8 {
///     db.set([number], "")?;
/// }
/// let mut transaction = db.transaction();
/// let mut cursor = RangeCursor::new(..);
/// while let Some((key, _)) = cursor.next(&mut transaction)? {
///     if key[0] % 2 == 0 {
///         transaction.delete(&key)?;
///     }
/// }
/// assert!(transaction.commit()?.is_done());
/// assert_eq!(db.count(..)?, 3);
/// # Ok::<(), forrest::Error>(())
/// ```
pub struct RangeCursor {
    /// What has not been returned from either end.
    start: Vec<u8>,
    end: Option<Vec<u8>>,
    front: Option<Stream>,
    back: Option<Stream>,
}

/// Pairs of the store, from one end of a range on.
struct Stream {
    keyspace: Keyspace,
    range: Range,
    /// The next pair, if it has been fetched and not used.
    next: Option<(Vec<u8>, Value)>,
}

impl Stream {
    fn new(keyspace: &Keyspace, start: &[u8], end: Option<&[u8]>) -> Stream {
        Stream { keyspace: keyspace.clone(), range: keyspace.range(bounds(start, end)), next: None }
    }

    /// The next pair from the front, of those from `start` on.
    fn first_from(&mut self, start: &[u8]) -> Result<Option<&(Vec<u8>, Value)>> {
        while self.next.as_ref().is_none_or(|(key, _)| &key[..] < start) {
            self.next = match self.range.next() {
                Some(entry) => Some(entry.and_then(|entry| Ok((entry.key().to_vec(), entry.value()?)))?),
                None => return Ok(None),
            };
        }
        Ok(self.next.as_ref())
    }

    /// The next pair from the back, of those before `end`.
    fn last_before(&mut self, end: Option<&[u8]>) -> Result<Option<&(Vec<u8>, Value)>> {
        while self.next.as_ref().is_none_or(|(key, _)| end.is_some_and(|end| &key[..] >= end)) {
            self.next = match self.range.next_back() {
                Some(entry) => Some(entry.and_then(|entry| Ok((entry.key().to_vec(), entry.value()?)))?),
                None => return Ok(None),
            };
        }
        Ok(self.next.as_ref())
    }
}

impl RangeCursor {
    /// A cursor at both ends of a range.
    pub fn new(bounds: impl KeyRange) -> RangeCursor {
        let (start, end) = half_open(bounds);
        RangeCursor { start, end, front: None, back: None }
    }

    /// Moves the front to the end: the range is used up.
    fn used_up(&mut self) {
        self.end = Some(std::mem::take(&mut self.start));
        (self.front, self.back) = (None, None);
        self.start.clone_from(self.end.as_ref().expect("it was just set"));
    }

    /// The next pair from the front. `None` if the range is used up.
    ///
    /// # Errors
    /// As [`Draft::range`]. The cursor keeps its place.
    pub fn next(&mut self, draft: &mut Draft) -> Result<Option<(Vec<u8>, Value)>> {
        while !is_empty(&self.start, self.end.as_deref()) {
            let start = &self.start[..];
            if let Some(until) = draft.deleted.end_at(start) {
                // Here the store does not matter.
                let until = earlier(until, self.end.as_deref());
                let own = draft.writes.range::<[u8], _>(bounds(start, until));
                let own = own.filter_map(|(key, write)| Some((key.clone(), write.value()?))).next();
                let Some((key, value)) = own else {
                    let until = until.map(<[u8]>::to_vec);
                    self.pass(until);
                    continue;
                };
                self.pass(successor(&key));
                return Ok(Some((key, value)));
            }
            let until = earlier(draft.deleted.start_after(start), self.end.as_deref());
            let own = draft.writes.range::<[u8], _>(bounds(start, until)).next();
            let own = own.map(|(key, write)| (key.clone(), write.value(), write.is_compared_apart()));
            let until = match &own {
                Some((key, ..)) => Some(key.clone()),
                None => until.map(<[u8]>::to_vec),
            };
            let seen = self.first_of_store(draft, until.as_deref())?;
            if let Some((key, value)) = seen {
                let after = successor(&key);
                if !draft.reads.contains_key(&key) {
                    draft.record(&key, Some(value.clone()))?;
                }
                draft.know(&self.start, after.as_deref())?;
                self.pass(after);
                return Ok(Some((key, value)));
            }
            draft.know(&self.start, until.as_deref())?;
            match own {
                None => self.pass(until),
                Some((key, value, adds)) => {
                    let value = if adds { draft.get(&key)? } else { value };
                    self.pass(successor(&key));
                    if let Some(value) = value {
                        return Ok(Some((key, value)));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Moves the front. `None` is the end of all keys.
    fn pass(&mut self, to: Option<Vec<u8>>) {
        match to {
            Some(to) => self.start = to,
            None => self.used_up(),
        }
    }

    /// The first pair from the front on and before `until` that the store has for this transaction.
    fn first_of_store(&mut self, draft: &Draft, until: Option<&[u8]>) -> Result<Option<(Vec<u8>, Value)>> {
        let mut start = self.start.clone();
        while !is_empty(&start, until) {
            let known = draft.known.end_at(&start);
            let here = match known {
                Some(known) => earlier(known, until),
                None => earlier(draft.known.start_after(&start), until),
            };
            let seen = draft.reads.range::<[u8], _>(bounds(&start, here));
            if known.is_some() {
                self.front = None;
                let found = seen.filter_map(|(key, found)| Some((key.clone(), found.clone()?))).next();
                if found.is_some() {
                    return Ok(found);
                }
            } else {
                let mut seen = seen.peekable();
                if self.front.as_ref().is_none_or(|stream| !stream.keyspace.is(&draft.keyspace)) {
                    self.front = Some(Stream::new(&draft.keyspace, &start, self.end.as_deref()));
                }
                let stream = self.front.as_mut().expect("it was just made");
                let mut from = start.clone();
                loop {
                    let next = stream.first_from(&from)?;
                    let next = next.filter(|(key, _)| here.is_none_or(|here| &key[..] < here));
                    // What was read of a key before is what the transaction sees of it.
                    let is_first = |(key, _): &(&Vec<u8>, _)| next.is_none_or(|(stored, _)| *key <= stored);
                    match (seen.next_if(is_first), next) {
                        (Some((key, Some(value))), _) => return Ok(Some((key.clone(), value.clone()))),
                        (Some((key, None)), _) => match successor(key) {
                            Some(after) => from = after,
                            None => break,
                        },
                        (None, Some(next)) => return Ok(Some(next.clone())),
                        (None, None) => break,
                    }
                }
            }
            match here {
                Some(here) => start = here.to_vec(),
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// The next pair from the back. `None` if the range is used up.
    ///
    /// # Errors
    /// As [`Draft::range`]. The cursor keeps its place.
    pub fn next_back(&mut self, draft: &mut Draft) -> Result<Option<(Vec<u8>, Value)>> {
        while !is_empty(&self.start, self.end.as_deref()) {
            let end = self.end.as_deref();
            let below = draft
                .deleted
                .last_before(end)
                .filter(|(_, until)| until.is_none_or(|until| until > &self.start[..]));
            let from = match below {
                Some((from, until)) if until.is_none() || end.is_some_and(|end| until >= Some(end)) => {
                    // Here the store does not matter.
                    let from = from.max(&self.start).to_vec();
                    let own = draft.writes.range::<[u8], _>(bounds(&from, end)).rev();
                    let own = own.filter_map(|(key, write)| Some((key.clone(), write.value()?))).next();
                    self.end = Some(own.as_ref().map_or(from, |(key, _)| key.clone()));
                    if own.is_some() {
                        return Ok(own);
                    }
                    continue;
                }
                Some((_, until)) => until.unwrap_or_default().max(&self.start).to_vec(),
                None => self.start.clone(),
            };
            let own = draft.writes.range::<[u8], _>(bounds(&from, end)).next_back();
            let own = own.map(|(key, write)| (key.clone(), write.value(), write.is_compared_apart()));
            // The least key after the own one; if there is none, no key of the store is after it.
            let after = own.as_ref().map_or(Some(from.clone()), |(key, ..)| successor(key));
            if let Some(after) = &after {
                if let Some((key, value)) = self.last_of_store(draft, after)? {
                    if !draft.reads.contains_key(&key) {
                        draft.record(&key, Some(value.clone()))?;
                    }
                    draft.know(&key, self.end.as_deref())?;
                    self.end = Some(key.clone());
                    return Ok(Some((key, value)));
                }
                draft.know(after, self.end.as_deref())?;
            }
            match own {
                None => self.end = Some(from),
                Some((key, value, adds)) => {
                    let value = if adds { draft.get(&key)? } else { value };
                    self.end = Some(key.clone());
                    if let Some(value) = value {
                        return Ok(Some((key, value)));
                    }
                }
            }
        }
        Ok(None)
    }

    /// The last pair from `from` on and before the back that the store has for this transaction.
    fn last_of_store(&mut self, draft: &Draft, from: &[u8]) -> Result<Option<(Vec<u8>, Value)>> {
        let mut end = self.end.clone();
        while !is_empty(from, end.as_deref()) {
            let below = draft
                .known
                .last_before(end.as_deref())
                .filter(|(_, until)| until.is_none_or(|until| until > from));
            let is_known = below.is_some_and(|(_, until)| {
                until.is_none() || end.as_deref().is_some_and(|end| until >= Some(end))
            });
            let here = match below {
                Some((start, _)) if is_known => start.max(from),
                Some((_, until)) => until.unwrap_or_default().max(from),
                None => from,
            };
            let seen = draft.reads.range::<[u8], _>(bounds(here, end.as_deref())).rev();
            if is_known {
                self.back = None;
                let found = seen.filter_map(|(key, found)| Some((key.clone(), found.clone()?))).next();
                if found.is_some() {
                    return Ok(found);
                }
            } else {
                let mut seen = seen.peekable();
                if self.back.as_ref().is_none_or(|stream| !stream.keyspace.is(&draft.keyspace)) {
                    self.back = Some(Stream::new(&draft.keyspace, &self.start, end.as_deref()));
                }
                let stream = self.back.as_mut().expect("it was just made");
                let mut before = end.clone();
                loop {
                    let next = stream.last_before(before.as_deref())?.filter(|(key, _)| &key[..] >= here);
                    let is_last = |(key, _): &(&Vec<u8>, _)| next.is_none_or(|(stored, _)| *key >= stored);
                    match (seen.next_if(is_last), next) {
                        (Some((key, Some(value))), _) => return Ok(Some((key.clone(), value.clone()))),
                        (Some((key, None)), _) => before = Some(key.clone()),
                        (None, Some(next)) => return Ok(Some(next.clone())),
                        (None, None) => break,
                    }
                }
            }
            end = Some(here.to_vec());
        }
        Ok(None)
    }
}

impl Write {
    /// The value that it sets, if that does not depend on the store.
    fn value(&self) -> Option<Value> {
        match self {
            Write::Put(value) | Write::PutUntil(value, _) => Some(value.clone()),
            Write::Delete | Write::Add(_) | Write::Merge(_) => None,
        }
    }

    /// Whether what was read is compared by an operation of its own.
    fn is_compared_apart(&self) -> bool {
        matches!(self, Write::Add(_) | Write::Merge(_) | Write::PutUntil(..))
    }
}

impl fmt::Debug for RangeCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RangeCursor")
            .field("start", &self.start)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

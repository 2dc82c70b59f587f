//! [`Transaction`]: reads and changes that happen at one instant, if what was read still holds then.
//! [`TransactionRange`]: an iteration in it.

use crate::argument::{Bytes, key_range};
use crate::failure::Failure;
use crate::keyspace::{Keyspace, time_to_live};
use crate::options::{DURABILITY, choose};
use crate::scope::Part;
use crate::view::missing;
use forrest::{Committed, Draft, RangeCursor, Savepoint, WriteOptions};
use forrest_base::lock;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyBytes, PyTuple};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::Duration;

/// Reads and changes that happen at one instant, when the with block ends or by commit(), if what was read is
/// unchanged: values, and the keys of ranges. Otherwise nothing is changed, and ConflictError is raised; transact() of
/// a keyspace runs a function again then. If another exception leaves the block, nothing is changed either. Before the
/// commit the changes are invisible, and two reads may see the store at different moments. Each call may name a
/// keyspace; the default is the one that the transaction was made from. After its end, the object begins a new
/// transaction. Reads, changes and locks count towards the limits of a batch when they are made; LimitError is raised
/// beyond.
#[pyclass(module = "forrest", frozen, mapping)]
pub(crate) struct Transaction {
    open: Part<Open>,
    options: WriteOptions,
}

struct Open {
    db: forrest::Db,
    default: forrest::Keyspace,
    running: Mutex<Running>,
}

struct Running {
    transaction: forrest::Transaction,
    /// How many transactions came before.
    number: u64,
}

impl Open {
    /// INVARIANT: a thread that holds this lock may read from the store, but does not wait for the
    /// interpreter.
    fn running(&self) -> MutexGuard<'_, Running> {
        lock(&self.running)
    }

    /// Runs `work` on the draft of a keyspace, by default of that from which the transaction was made.
    fn work<R>(
        &self,
        running: &mut Running,
        space: Option<&Part<forrest::Keyspace>>,
        work: impl FnOnce(&mut Draft) -> forrest::Result<R>,
    ) -> Result<R, Failure> {
        let Some(space) = space else { return Ok(work(running.transaction.on(&self.default))?) };
        // Without a handle of its own, which would be dropped, and may close the store, only after this call.
        space.with(|space| Ok(work(running.transaction.on(space))?))
    }

    /// Begins a new transaction, and returns the old one.
    fn end(&self) -> forrest::Transaction {
        let mut running = self.running();
        running.number += 1;
        std::mem::replace(&mut running.transaction, self.db.transaction())
    }
}

/// Makes a conflict a failure.
fn done(committed: Committed) -> Result<(), Failure> {
    match committed {
        Committed::Conflict { keyspace, key } => Err(Failure::Conflict(keyspace, key)),
        Committed::Done => Ok(()),
        other => unreachable!("a transaction came to {other:?}"),
    }
}

impl Transaction {
    /// Runs a short call. If another thread has the transaction, which may wait for a lock, this one waits for it
    /// detached from the interpreter.
    fn short<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Open, &mut Running) -> Result<R, Failure> + Send,
    ) -> PyResult<R> {
        let mut work = Some(work);
        let mut run = |open: &Open, running: &mut Running| {
            let work = work.take().expect("it runs once");
            work(open, running)
        };
        let done = self.open.read(py, |open| match open.running.try_lock() {
            Ok(mut running) => run(open, &mut running).map(Some),
            Err(TryLockError::Poisoned(running)) => run(open, &mut running.into_inner()).map(Some),
            Err(TryLockError::WouldBlock) => Ok(None),
        })?;
        match done {
            Some(done) => Ok(done),
            None => self.open.detached(py, |open| run(open, &mut open.running())),
        }
    }

    /// Runs `work` on the draft of a keyspace.
    fn draft<R: Send>(
        &self,
        py: Python<'_>,
        keyspace: Option<&Keyspace>,
        work: impl FnOnce(&mut Draft) -> forrest::Result<R> + Send,
    ) -> PyResult<R> {
        let space = keyspace.map(|keyspace| keyspace.space(py)).transpose()?;
        self.short(py, |open, running| open.work(running, space, work))
    }

    /// The same for work that may wait for another transaction.
    fn wait<R: Send>(
        &self,
        py: Python<'_>,
        keyspace: Option<&Keyspace>,
        work: impl FnOnce(&mut Draft) -> forrest::Result<R> + Send,
    ) -> PyResult<R> {
        let space = keyspace.map(|keyspace| keyspace.space(py)).transpose()?;
        self.open.detached(py, |open| open.work(&mut open.running(), space, work))
    }

    fn find<'py>(
        &self,
        py: Python<'py>,
        key: &Bytes<'_>,
        keyspace: Option<&Keyspace>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let key = key.get();
        let found = self.draft(py, keyspace, |draft| draft.get(key))?;
        Ok(found.map(|value| PyBytes::new(py, &value)))
    }
}

#[pymethods]
impl Transaction {
    #[new]
    #[pyo3(signature = (keyspace, *, durability=None))]
    fn new(py: Python<'_>, keyspace: &Keyspace, durability: Option<&str>) -> PyResult<Transaction> {
        let durability = durability.map(|word| choose(py, "durability", DURABILITY, word)).transpose()?;
        let db = keyspace.store().at_once(py, |db| Ok(db.clone()))?;
        let running = Mutex::new(Running { transaction: db.transaction(), number: 0 });
        let open = Open { db, default: keyspace.handle(py)?, running };
        let open = Part::new(keyspace.scope(), open).map_err(|failure| failure.raise(py))?;
        Ok(Transaction { open, options: WriteOptions::new().durability(durability) })
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        self.find(py, &Bytes::new(key.clone())?, None)?.ok_or_else(|| missing(key))
    }

    fn __contains__(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<bool> {
        Ok(self.find(py, &key, None)?.is_some())
    }

    fn __setitem__(&self, py: Python<'_>, key: Bytes<'_>, value: Bytes<'_>) -> PyResult<()> {
        self.set(py, key, value, None)
    }

    fn __delitem__(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<()> {
        self.delete(py, key, None)
    }

    /// The value of a key, or the default: the transaction's own change, or else the value in the store. The
    /// latter must be unchanged when the transaction is committed.
    #[pyo3(signature = (key, default=None, /, *, keyspace=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Bytes<'py>,
        default: Option<Bound<'py, PyAny>>,
        keyspace: Option<&Keyspace>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.find(py, &key, keyspace)?.map(Bound::into_any).or(default))
    }

    /// Locks a key, and then reads it like get(). Until this transaction ends, other transactions that lock the
    /// key wait. So transactions that lock what they change take turns, instead of being in conflict. Lock a key
    /// before you read it in another way. A lock holds off only those that ask for it: changes outside of
    /// transactions, and transactions that read the key without a lock, do not wait, and may put this one in
    /// conflict.
    ///
    /// Raises BusyError if another transaction holds the lock for longer than set_lock_wait() allows, by default
    /// one second; and at once if waiting would never end, because its owner waits for a lock of this
    /// transaction. Then this one can only be in conflict; transact() runs it again.
    #[pyo3(signature = (key, default=None, /, *, keyspace=None))]
    fn get_for_update<'py>(
        &self,
        py: Python<'py>,
        key: Bytes<'py>,
        default: Option<Bound<'py, PyAny>>,
        keyspace: Option<&Keyspace>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let key = key.get();
        let found = self.wait(py, keyspace, |draft| draft.get_for_update(key))?;
        Ok(found.map(|value| PyBytes::new(py, &value).into_any()).or(default))
    }

    /// Sets the value of a key for a time to live, in seconds from the commit on. See Keyspace.set_with_ttl.
    #[pyo3(signature = (key, value, ttl, *, keyspace=None))]
    fn set_with_ttl(
        &self,
        py: Python<'_>,
        key: Bytes<'_>,
        value: Bytes<'_>,
        ttl: f64,
        keyspace: Option<&Keyspace>,
    ) -> PyResult<()> {
        let (key, value, ttl) = (key.get(), value.get(), time_to_live(py, ttl)?);
        self.draft(py, keyspace, |draft| draft.set_with_ttl(key, value, ttl))
    }

    /// Locks a key like get_for_update(), without reading it. The key need not exist: it may stand for anything
    /// on which transactions agree, such as the front of a queue.
    #[pyo3(signature = (key, *, keyspace=None))]
    fn lock(&self, py: Python<'_>, key: Bytes<'_>, keyspace: Option<&Keyspace>) -> PyResult<()> {
        let key = key.get();
        self.wait(py, keyspace, |draft| draft.lock(key))
    }

    /// Sets how long this transaction waits for each lock, in seconds. With 0 it takes only locks that are free.
    fn set_lock_wait(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        let Ok(wait) = Duration::try_from_secs_f64(seconds) else {
            let message = format!("a wait of {seconds} seconds: give a number from 0 on");
            return Err(Failure::Invalid(message).raise(py));
        };
        self.short(py, |_, running| {
            running.transaction.set_lock_wait(wait);
            Ok(())
        })
    }

    /// Iterates over the pairs of a range, from start up to but not including stop, or of those with a prefix: the
    /// store's, with the transaction's own changes, which may be made meanwhile. The range counts as read up to the
    /// last pair that was returned, or as a whole after the end. What was read must be unchanged when the
    /// transaction is committed: the same keys, no others, and the same values. So "take the first of the queue"
    /// depends on the first pair only.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None, reverse=false, keyspace=None))]
    fn range(
        slf: &Bound<'_, Transaction>,
        start: Option<Bytes<'_>>,
        stop: Option<Bytes<'_>>,
        prefix: Option<Bytes<'_>>,
        reverse: bool,
        keyspace: Option<&Keyspace>,
    ) -> PyResult<TransactionRange> {
        let py = slf.py();
        let keyspace = keyspace.map(|keyspace| keyspace.handle(py)).transpose()?;
        let cursor = Mutex::new(RangeCursor::new(key_range(start, stop, prefix)));
        let number = slf.get().short(py, |_, running| Ok(running.number))?;
        let reading = Part::new(slf.get().open.scope(), Reading { keyspace, cursor });
        let reading = reading.map_err(|failure| failure.raise(py))?;
        Ok(TransactionRange { transaction: slf.clone().unbind(), number, reading, reverse })
    }

    /// Removes all keys from start up to but not including stop, or those with a prefix: those that exist at the
    /// commit. This is not a read: a key that appears in the range meanwhile is no conflict, and is removed.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None, keyspace=None))]
    fn delete_range(
        &self,
        py: Python<'_>,
        start: Option<Bytes<'_>>,
        stop: Option<Bytes<'_>>,
        prefix: Option<Bytes<'_>>,
        keyspace: Option<&Keyspace>,
    ) -> PyResult<()> {
        let bounds = key_range(start, stop, prefix);
        self.draft(py, keyspace, |draft| draft.delete_range(bounds))
    }

    /// Marks a place to which the changes can be taken back by rollback_to(), and returns its number.
    fn savepoint(&self, py: Python<'_>) -> PyResult<u64> {
        self.short(py, |_, running| Ok(running.transaction.savepoint()?.to_number()))
    }

    /// Takes back all changes since a savepoint, in all keyspaces. The savepoint can be used again; later ones are
    /// gone. What was read since then still counts as read, and locks are kept until the transaction ends.
    fn rollback_to(&self, py: Python<'_>, savepoint: u64) -> PyResult<()> {
        let savepoint = Savepoint::from_number(savepoint);
        self.short(py, |_, running| Ok(running.transaction.rollback_to(savepoint)?))
    }

    /// Sets the value of a key.
    #[pyo3(signature = (key, value, *, keyspace=None))]
    fn set(
        &self,
        py: Python<'_>,
        key: Bytes<'_>,
        value: Bytes<'_>,
        keyspace: Option<&Keyspace>,
    ) -> PyResult<()> {
        let (key, value) = (key.get(), value.get());
        self.draft(py, keyspace, |draft| draft.set(key, value))
    }

    /// Removes a key, if it exists.
    #[pyo3(signature = (key, *, keyspace=None))]
    fn delete(&self, py: Python<'_>, key: Bytes<'_>, keyspace: Option<&Keyspace>) -> PyResult<()> {
        let key = key.get();
        self.draft(py, keyspace, |draft| draft.delete(key))
    }

    /// Adds to a counter, like add() of a keyspace. This is not a read: transactions that only add to the
    /// same counter are not in conflict.
    #[pyo3(signature = (key, delta, *, keyspace=None))]
    fn add(&self, py: Python<'_>, key: Bytes<'_>, delta: i64, keyspace: Option<&Keyspace>) -> PyResult<()> {
        let key = key.get();
        self.draft(py, keyspace, |draft| draft.add(key, delta))
    }

    /// Gives an operand to the merge operator, like merge() of a keyspace. This is not a read: transactions that only
    /// merge into the same key are not in conflict.
    #[pyo3(signature = (key, operand, *, keyspace=None))]
    fn merge(
        &self,
        py: Python<'_>,
        key: Bytes<'_>,
        operand: Bytes<'_>,
        keyspace: Option<&Keyspace>,
    ) -> PyResult<()> {
        let (key, operand) = (key.get(), operand.get());
        self.draft(py, keyspace, |draft| draft.merge(key, operand))
    }

    /// Applies all changes at one instant, if everything that was read is still so at that instant. Otherwise changes
    /// nothing and raises ConflictError.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        self.open.detached(py, |open| done(open.end().commit_with(&self.options)?))
    }

    /// Discards the changes, and raises ConflictError unless everything that was read existed at one
    /// instant. Call it before you rely on it.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.open.detached(py, |open| done(open.end().check()?))
    }

    /// Discards all reads and changes.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        self.open.detached(py, |open| {
            drop(open.end());
            Ok(())
        })
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (exception_type, exception, traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        exception_type: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let _ = (exception, traceback);
        if exception_type.is_none() { self.commit(py) } else { self.rollback(py) }
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a Transaction cannot be pickled, because it belongs to a store that is open in this process",
        ))
    }
}

/// An iteration over a range of a transaction, which Transaction.range() makes.
#[pyclass(module = "forrest", frozen)]
pub(crate) struct TransactionRange {
    transaction: Py<Transaction>,
    /// The number of the transaction that it belongs to.
    number: u64,
    reading: Part<Reading>,
    reverse: bool,
}

/// What keeps the store open: the keyspace, if it is not that of the transaction, and the place in it.
struct Reading {
    keyspace: Option<forrest::Keyspace>,
    cursor: Mutex<RangeCursor>,
}

#[pymethods]
impl TransactionRange {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let TransactionRange { transaction, number, reading, reverse } = self;
        let pair = transaction.get().short(py, |open, running| {
            if running.number != *number {
                let message = "the transaction of this range has ended; begin a new range";
                return Err(Failure::Invalid(message.to_owned()));
            }
            reading.with(|Reading { keyspace, cursor }| {
                // Nobody waits for this lock without the other one.
                let mut cursor = lock(cursor);
                let draft = running.transaction.on(keyspace.as_ref().unwrap_or(&open.default));
                Ok(if *reverse { cursor.next_back(draft)? } else { cursor.next(draft)? })
            })
        })?;
        let Some((key, value)) = pair else { return Ok(None) };
        Ok(Some(PyTuple::new(py, [PyBytes::new(py, &key), PyBytes::new(py, &value)])?))
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("an iteration over an open store cannot be pickled"))
    }
}

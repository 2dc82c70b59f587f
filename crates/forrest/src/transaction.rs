//! [`Transaction`]: reads and changes that happen at one instant, if what was read still holds then.
//!
//! A transaction records its reads and changes in a [`Draft`] for each keyspace; nothing else sees them. The
//! commit writes one [`WriteBatch`]: a comparison for each range and each key that was read, and the changes. So a
//! transaction needs no write path besides that of a batch.
//!
//! **Why this is serializable.** A batch, with its comparisons, is applied at one instant. If it is applied,
//! every range has exactly the pairs that the transaction saw in it, and every key the value that it read. Had the
//! whole transaction run then, it would have read and done the same. So committed transactions, batches and single
//! changes have one order, that of their instants, and each instant lies between the beginning and the end of its
//! commit. Only the equality of keys and values counts: a value that was changed and changed back meanwhile is no
//! conflict.
//!
//! **Locks** add nothing to this. They only keep transactions apart that would be in conflict. They are released after
//! the commit, when the transaction is dropped.
//!
//! **Why reads do not use a snapshot.** A snapshot would make the reads of a transaction consistent even if
//! it later fails. But not every home has snapshots, a held snapshot makes other changes more expensive, and
//! older reads are in conflict more often. Instead, [`Db::transact`] returns a result or an error of its
//! function only after it has verified that everything that was read existed at one instant.

use crate::batch::WriteBatch;
use crate::builder::WriteOptions;
use crate::db::Db;
use crate::draft::{Draft, Shared, shown};
use crate::keyspace::Keyspace;
use forrest_engine::{Error, ErrorKind, Op, Result, Written};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Maximum number of times that [`Db::transact`] calls its function.
const ATTEMPTS: usize = 1_000;

/// Reads and changes of a store that happen at one instant, when the transaction is
/// [committed](Transaction::commit), or not at all. Before the commit the changes are invisible, and no other
/// thread waits for the transaction, except for its [locks](Draft::get_for_update). Dropping it discards the changes
/// and releases the locks.
///
/// A read returns the transaction's own change, or else what is in the store when it is first read; so does a
/// [range](Draft::range). Reading it again returns the same. Transactions are serializable: a committed
/// transaction has the effect that it would have if all of it ran at the instant of its commit. If anything
/// that it read has changed, a value or the set of keys in a range, the transaction is in
/// [`Conflict`](Committed::Conflict) and changes nothing; it may be run again, which [`Db::transact`] does. **Before
/// the commit, two reads may see the store at different moments.**
///
/// A transaction keeps what it reads and changes in memory, at most as much as a batch may have (see
/// [`Builder`](crate::Builder)). The commit compares all that was read while other writers wait, so it takes time in
/// proportion to that. To read much without changing it, use a snapshot.
///
/// It dereferences to the [`Draft`] of the default keyspace.
///
/// ```
/// use forrest::{Committed, Db};
///
/// let db = Db::open("memory:")?;
/// db.set("seats left", "1")?;
/// let (mut ada, mut bob) = (db.transaction(), db.transaction());
/// for (transaction, name) in [(&mut ada, "ada"), (&mut bob, "bob")] {
///     if transaction.get("seats left")?.is_some_and(|left| left == "1") {
///         transaction.set("seats left", "0")?;
///         transaction.set("booked by", name)?;
///     }
/// }
/// assert_eq!(ada.commit()?, Committed::Done);
/// assert!(!bob.commit()?.is_done());
/// assert_eq!(db.get("booked by")?.unwrap(), "ada");
/// # Ok::<(), forrest::Error>(())
/// ```
#[derive(Debug)]
pub struct Transaction {
    /// The first field, so that locks are released before anything else is freed, which may take long.
    unlocks: Unlocks,
    db: Db,
    /// The first one is for the default keyspace.
    drafts: Vec<Draft>,
    savepoints: Vec<(Savepoint, Vec<usize>)>,
}

/// Releases the locks of a transaction when it is dropped.
struct Unlocks(Arc<Shared>);

impl fmt::Debug for Unlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unlocks")
    }
}

impl Drop for Unlocks {
    fn drop(&mut self) {
        self.0.unlock();
    }
}

/// A place in a transaction to which its changes can be taken back; see [`Transaction::savepoint`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Savepoint(u64);

impl Savepoint {
    /// Its number, for programs in other languages. No two savepoints of a process have the same.
    pub fn to_number(self) -> u64 {
        self.0
    }

    /// The savepoint with a number. [`Transaction::rollback_to`] refuses one that does not exist.
    pub fn from_number(number: u64) -> Savepoint {
        Savepoint(number)
    }
}

/// The result of committing a transaction.
///
/// ```
/// # let db = forrest::Db::open("memory:")?;
/// use forrest::Committed;
/// let mut transaction = db.transaction();
/// transaction.get("oak")?;
/// db.set("oak", "Quercus")?;
/// match transaction.commit()? {
///     Committed::Conflict { keyspace, key } => assert_eq!((&keyspace[..], &key[..]), ("default", &b"oak"[..])),
///     other => unreachable!("{other:?}"),
/// }
/// # Ok::<(), forrest::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a conflict means that nothing was changed"]
#[non_exhaustive]
pub enum Committed {
    /// The transaction is committed.
    Done,
    /// What the store has at this key differs from what the transaction read: its value, or that it is or is not in a
    /// range. Nothing was changed. There may be more such keys. Or the key is that of a lock whose wait would have been
    /// a deadlock.
    Conflict {
        /// The name of the keyspace.
        keyspace: String,
        /// The key.
        key: Vec<u8>,
    },
}

impl Committed {
    /// True if the transaction is committed.
    pub fn is_done(&self) -> bool {
        matches!(self, Committed::Done)
    }
}

impl Db {
    /// Begins a transaction, without any access to the store. [`transact`](Db::transact) also commits it, and
    /// repeats it after a conflict.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// let mut transaction = db.transaction();
    /// transaction.set("a", "1")?;
    /// drop(transaction); // discards the change
    /// assert_eq!(db.get("a")?, None);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn transaction(&self) -> Transaction {
        let shared = Arc::new(self.shared_of_transaction());
        let draft = Draft::new(self, &shared, false, false);
        Transaction {
            unlocks: Unlocks(shared),
            db: self.clone(),
            drafts: vec![draft],
            savepoints: Vec::new(),
        }
    }

    /// Runs `f` with a transaction, commits it, and returns the result of `f`. After a conflict or a deadlock it runs
    /// `f` again with a new transaction. So `f` should be short, and have no effects besides those of the transaction.
    ///
    /// If `f` fails, nothing is changed. Its error is returned if everything that `f` had read existed at one
    /// instant; otherwise `f` runs again. (If `f` panics, the values that it read may be of different
    /// moments.)
    ///
    /// # Errors
    /// The error of `f`, and those of [`Transaction::commit`]. `Busy` after 1,000 conflicts: `f` changes
    /// outside of the transaction what the transaction reads, or it takes so long that other changes always
    /// intervene.
    ///
    /// ```
    /// use forrest::Db;
    ///
    /// fn pay(db: &Db, from: &str, to: &str, amount: u64) -> Result<(), Box<dyn std::error::Error>> {
    ///     db.transact(|transaction| {
    ///         let mut move_by = |name: &str, up: u64, down: u64| {
    ///             let old = transaction.get(name)?.ok_or("no such account")?;
    ///             let old = u64::from_be_bytes((*old).try_into()?);
    ///             let new = (old + up).checked_sub(down).ok_or("not enough money")?;
    ///             Ok(transaction.set(name, new.to_be_bytes())?)
    ///         };
    ///         move_by(from, 0, amount)?;
    ///         move_by(to, amount, 0)
    ///     })
    /// }
    ///
    /// let db = Db::open("memory:")?;
    /// db.set("ada", 10_u64.to_be_bytes())?;
    /// db.set("bob", 0_u64.to_be_bytes())?;
    /// pay(&db, "ada", "bob", 7)?;
    /// assert_eq!(pay(&db, "ada", "bob", 7).unwrap_err().to_string(), "not enough money");
    /// assert_eq!(db.get("bob")?.unwrap(), 7_u64.to_be_bytes());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn transact<R, E: From<Error>>(
        &self,
        f: impl FnMut(&mut Transaction) -> Result<R, E>,
    ) -> Result<R, E> {
        self.transact_with(&WriteOptions::default(), f)
    }

    /// Like [`transact`](Db::transact), with the durability in `options`.
    ///
    /// # Errors
    /// As `transact`; `Unsupported` if the home does not have this durability.
    ///
    /// ```
    /// use forrest::{Db, Durability, WriteOptions};
    /// # let db = Db::open("memory:")?;
    /// let options = WriteOptions::new().durability(Durability::Memory);
    /// let was_there: forrest::Result<bool> = db.transact_with(&options, |transaction| {
    ///     transaction.add("visits", 1)?;
    ///     transaction.contains("oak")
    /// });
    /// assert!(!was_there?);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn transact_with<R, E: From<Error>>(
        &self,
        options: &WriteOptions,
        mut f: impl FnMut(&mut Transaction) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut conflicts = 0;
        loop {
            let mut transaction = self.transaction();
            let answer = f(&mut transaction);
            // After a deadlock both are in conflict.
            let committed =
                if answer.is_ok() { transaction.commit_with(options) } else { transaction.check() };
            match committed {
                Ok(Committed::Done) => return answer,
                Ok(Committed::Conflict { keyspace, key }) => {
                    conflicts += 1;
                    if conflicts == ATTEMPTS {
                        return Err(always_in_conflict(&keyspace, &key).into());
                    }
                }
                Err(error) => return answer.and(Err(error.into())),
            }
        }
    }
}

impl Transaction {
    /// The draft for another keyspace: its methods read and change that keyspace.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// let log = db.keyspace("log")?;
    /// let mut transaction = db.transaction();
    /// transaction.set("oak", "Quercus")?;
    /// transaction.on(&log).set("1", "named the oak")?;
    /// assert!(transaction.commit()?.is_done());
    /// assert!(log.contains("1")?);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn on(&mut self, keyspace: &Keyspace) -> &mut Draft {
        let known = self.drafts.iter().position(|draft| draft.keyspace.is(keyspace));
        let at = known.unwrap_or_else(|| {
            let is_foreign = !self.db.same_store(keyspace);
            let undoes = !self.savepoints.is_empty();
            self.drafts.push(Draft::new(keyspace, &self.unlocks.0, undoes, is_foreign));
            self.drafts.len() - 1
        });
        &mut self.drafts[at]
    }

    /// Sets how long this transaction waits for each [lock](Draft::get_for_update). Default: 1 second. With
    /// `Duration::ZERO` it takes only locks that are free.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// use std::time::Duration;
    /// let mut transaction = db.transaction();
    /// transaction.set_lock_wait(Duration::from_millis(100));
    /// transaction.lock("the front of the queue")?;
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn set_lock_wait(&mut self, wait: Duration) {
        self.unlocks.0.set_lock_wait(wait);
    }

    /// Marks a place to which the changes can be [taken back](Transaction::rollback_to). From the first savepoint on, a
    /// transaction also keeps what its changes replace, which counts towards its limits.
    ///
    /// # Errors
    /// `Limit`: a savepoint counts as an operation.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// let mut transaction = db.transaction();
    /// transaction.set("order", "soup")?;
    /// let savepoint = transaction.savepoint()?;
    /// transaction.set("order", "cake")?;
    /// transaction.delete_range(..)?;
    /// transaction.rollback_to(savepoint)?;
    /// assert!(transaction.commit()?.is_done());
    /// assert_eq!(db.get("order")?.unwrap(), "soup");
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn savepoint(&mut self) -> Result<Savepoint> {
        self.unlocks.0.count_savepoint()?;
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // ORDERING: the numbers need only differ.
        let savepoint = Savepoint(NEXT.fetch_add(1, Relaxed));
        let marks = self.drafts.iter_mut().map(Draft::mark).collect();
        self.savepoints.push((savepoint, marks));
        Ok(savepoint)
    }

    /// Takes back all changes since a savepoint, in all keyspaces. The savepoint can be used again; later ones are
    /// gone.
    ///
    /// What was read since then still counts as read, because the program knows it, and locks are kept until the
    /// transaction ends.
    ///
    /// # Errors
    /// `InvalidArgument` if the savepoint is gone, or is one of another transaction. Nothing is taken back then.
    pub fn rollback_to(&mut self, savepoint: Savepoint) -> Result<()> {
        let Some(at) = self.savepoints.iter().position(|(known, _)| *known == savepoint) else {
            let what = "the savepoint is of another transaction, or the transaction was rolled back to an earlier one";
            return Err(Error::invalid(what));
        };
        self.unlocks.0.forget_savepoints(self.savepoints.len() - at - 1);
        self.savepoints.truncate(at + 1);
        let marks = &self.savepoints[at].1;
        for (number, draft) in self.drafts.iter_mut().enumerate() {
            // A draft that is newer than the savepoint had no changes.
            draft.roll_back(marks.get(number).copied().unwrap_or(0));
        }
        Ok(())
    }

    /// Forgets what was read so far. The commit does not compare it, and it no longer counts towards the limits; a key
    /// that is read again is read from the store. Only for a program that knows that nobody else changes what it has
    /// read: otherwise the transaction is not serializable.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// db.set("last", "7")?;
    /// let mut transaction = db.transaction();
    /// let last = transaction.get("last")?;
    /// transaction.forget_reads();
    /// db.set("last", "8")?;
    /// transaction.set("copy", last.unwrap())?;
    /// assert!(transaction.commit()?.is_done());
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn forget_reads(&mut self) {
        self.drafts.iter_mut().for_each(Draft::forget_reads);
    }

    /// Applies all changes at one instant, if everything that was read is still so at that
    /// instant. Otherwise it changes nothing. Other writers wait meanwhile, as for a batch; readers do not.
    ///
    /// # Errors
    /// Those of [`Db::write`]; nothing was changed then. The message names the key.
    pub fn commit(self) -> Result<Committed> {
        self.commit_with(&WriteOptions::default())
    }

    /// Like [`commit`](Transaction::commit), but discards the changes. It verifies that everything that was
    /// read existed at one instant, before the caller gives up because of it.
    ///
    /// # Errors
    /// As `commit`.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// let mut transaction = db.transaction();
    /// transaction.set("tree", "oak")?;
    /// if !transaction.contains("forest")? && transaction.check()?.is_done() {
    ///     println!("there is no forest for the tree");
    /// }
    /// assert!(!db.contains("tree")?);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn check(mut self) -> Result<Committed> {
        self.drafts.iter_mut().for_each(Draft::forget_changes);
        self.commit()
    }

    /// Like [`commit`](Transaction::commit), with the durability in `options`. If the transaction changes
    /// nothing, what it has read is made as durable.
    ///
    /// # Errors
    /// As `commit`; `Unsupported` if the home does not have this durability.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("forest");
    /// # let path = path.to_str().unwrap();
    /// use forrest::{Db, Durability, WriteOptions};
    /// let mut transaction = Db::open(path)?.transaction();
    /// transaction.add("visits", 1)?;
    /// let options = WriteOptions::new().durability(Durability::Sync);
    /// assert!(transaction.commit_with(&options)?.is_done()); // and survives power loss
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn commit_with(self, options: &WriteOptions) -> Result<Committed> {
        if let Some((keyspace, key)) = self.unlocks.0.refused() {
            return Ok(Committed::Conflict { keyspace, key });
        }
        let mut batch = WriteBatch::new();
        self.drafts.iter().for_each(|draft| draft.finish_ranges(&mut batch));
        self.drafts.iter().for_each(|draft| draft.finish(&mut batch.on(&draft.keyspace)));
        let name = |keyspace: Option<&Keyspace>| keyspace.unwrap_or(&self.db).name().to_owned();
        let op_at = |at| batch.ops().nth(at);
        match self.db.try_write_with(&batch, options) {
            Ok(Written::Mismatch { op, found }) => {
                let (keyspace, op) = op_at(op).expect("it is one of the batch's");
                let key = match (op, found) {
                    (Op::CompareRange { .. }, Some(differs)) => differs.to_vec(),
                    (op, _) => op.key().to_vec(),
                };
                Ok(Committed::Conflict { keyspace: name(keyspace), key })
            }
            Ok(Written::Applied) => Ok(Committed::Done),
            Ok(other) => unreachable!("a batch came to {other:?}"),
            Err(error) => {
                let place = error.op().and_then(op_at);
                let at = place.map_or(String::new(), |(keyspace, op)| {
                    format!(" at {}", shown(&name(keyspace), op.key()))
                });
                let message = format!("committing a transaction{at}: {}", error.message());
                Err(Error::new(error.kind(), message))
            }
        }
    }
}

fn always_in_conflict(keyspace: &str, key: &[u8]) -> Error {
    let key = shown(keyspace, key);
    let message = format!(
        "the transaction was in conflict {ATTEMPTS} times in a row, the last time at {key}; make it shorter, and do \
         not change outside of it what it reads"
    );
    Error::new(ErrorKind::Busy, message)
}

impl Deref for Transaction {
    type Target = Draft;
    fn deref(&self) -> &Draft {
        &self.drafts[0]
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut Draft {
        &mut self.drafts[0]
    }
}

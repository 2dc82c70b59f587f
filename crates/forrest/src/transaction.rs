//! [`Transaction`]: reads and changes that happen at one instant, if the values that were read still hold
//! then.
//!
//! A transaction records its reads and changes in a [`Draft`] for each keyspace; nothing else sees them. The
//! commit writes one [`WriteBatch`]: a compare-and-swap for each key that was read, and the changes. So a
//! transaction needs no lock and no write path besides those of a batch.
//!
//! **Why this is serializable.** A batch, with its comparisons, is applied at one instant. If it is applied,
//! every value that the transaction read is the current one at that instant. Had the whole transaction run
//! then, it would have read and done the same. So committed transactions, batches and single changes have one
//! order, that of their instants, and each instant lies between the beginning and the end of its commit. Only
//! the equality of values counts: a value that was changed and changed back meanwhile is no conflict.
//!
//! **Why there are no ranges.** A comparison proves that a key is unchanged, but not that no key was inserted
//! between two others. A transaction that depends on a range reads one more key, such as a counter, which
//! every change of the range writes.
//!
//! **Why reads do not use a snapshot.** A snapshot would make the reads of a transaction consistent even if
//! it later fails. But not every home has snapshots, a held snapshot makes other changes more expensive, and
//! older reads are in conflict more often. Instead, [`Db::transact`] returns a result or an error of its
//! function only after it has verified that all values that were read existed at one instant.

use crate::batch::{On, WriteBatch};
use crate::builder::WriteOptions;
use crate::db::Db;
use crate::keyspace::Keyspace;
use forrest_engine::{Effect, Error, ErrorKind, MAX_KEYSPACE_NAME_BYTES, Op, Result, Value, Written};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// Maximum number of times that [`Db::transact`] calls its function.
const ATTEMPTS: usize = 1_000;
/// Maximum number of bytes of a key in a message.
const SHOWN_BYTES: usize = MAX_KEYSPACE_NAME_BYTES;

/// Reads and changes of a store that happen at one instant, when the transaction is
/// [committed](Transaction::commit), or not at all. Before the commit the changes are invisible, and no other
/// thread waits for the transaction. Dropping it discards the changes.
///
/// A read returns the transaction's own change of the key, or else the value in the store when the key is
/// first read. Reading the key again returns the same value. Transactions are serializable: a committed
/// transaction has the effect that it would have if all of it ran at the instant of its commit. If a value
/// that it read has changed, the transaction is in [`Conflict`](Committed::Conflict) and changes nothing; it
/// may be run again, which [`Db::transact`] does. **Before the commit, two reads may see the store at
/// different moments.**
///
/// A transaction reads single keys, not ranges. If it depends on all keys of a range, let every change of the
/// range also write one particular key, and read this key in the transaction.
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
    db: Db,
    /// The first one is for the default keyspace.
    drafts: Vec<Draft>,
}

/// The reads and changes of a [`Transaction`] in one keyspace.
///
/// Every method fails with `Limit` if a key or value is too long for any store. All other errors of a change
/// are reported by the commit.
pub struct Draft {
    keyspace: Keyspace,
    keys: BTreeMap<Vec<u8>, Touched>,
}

/// A transaction's access to a key.
#[derive(Clone)]
enum Touched {
    /// It was read and had the value `found`. The commit sets it to `now`.
    Read { found: Option<Value>, now: Option<Value> },
    /// It was not read. The commit sets it.
    Made(Option<Value>),
    /// It was not read. The commit adds to it.
    Added(i64),
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
    /// The value of this key differs from the one that the transaction read. Nothing was changed. There may
    /// be more such keys.
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
        Transaction { db: self.clone(), drafts: vec![Draft::new(self)] }
    }

    /// Runs `f` with a transaction, commits it, and returns the result of `f`. After a conflict it runs `f`
    /// again with a new transaction. So `f` should be short, and have no effects besides those of the
    /// transaction.
    ///
    /// If `f` fails, nothing is changed. Its error is returned if all values that `f` had read existed at one
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
            self.drafts.push(Draft::new(keyspace));
            self.drafts.len() - 1
        });
        &mut self.drafts[at]
    }

    /// Applies all changes at one instant, if every value that was read is still the current one at that
    /// instant. Otherwise it changes nothing. Other writers wait meanwhile, as for a batch; readers do not.
    ///
    /// # Errors
    /// Those of [`Db::write`]; nothing was changed then. The message names the key. The limits are those of a
    /// batch (see [`Builder`](crate::Builder)): each key that was read or changed counts as an operation, and
    /// values that were read count like values that are written.
    pub fn commit(self) -> Result<Committed> {
        self.commit_with(&WriteOptions::default())
    }

    /// Like [`commit`](Transaction::commit), but discards the changes. It verifies that all values that were
    /// read existed at one instant, before the caller gives up because of them.
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
    /// nothing, the values that it has read are made as durable.
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
        let mut batch = WriteBatch::new();
        self.drafts.iter().for_each(|draft| draft.finish(&mut batch.on(&draft.keyspace)));
        let place =
            |op| batch.ops().nth(op).map(|(keyspace, op)| (keyspace.unwrap_or(&self.db).name(), op.key()));
        match self.db.try_write_with(&batch, options) {
            Ok(Written::Mismatch { op, .. }) => {
                let (keyspace, key) = place(op).expect("it is one of the batch's");
                Ok(Committed::Conflict { keyspace: keyspace.to_owned(), key: key.to_vec() })
            }
            Ok(Written::Applied) => Ok(Committed::Done),
            Ok(other) => unreachable!("a batch came to {other:?}"),
            Err(error) => {
                let place = error.op().and_then(place);
                let at =
                    place.map_or(String::new(), |(keyspace, key)| format!(" at {}", shown(keyspace, key)));
                let message = format!("committing a transaction{at}: {}", error.message());
                Err(Error::new(error.kind(), message))
            }
        }
    }
}

impl Draft {
    fn new(keyspace: &Keyspace) -> Draft {
        Draft { keyspace: keyspace.clone(), keys: BTreeMap::new() }
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
        let added = match self.keys.get(key) {
            Some(Touched::Read { now, .. } | Touched::Made(now)) => return Ok(now.clone()),
            Some(Touched::Added(delta)) => Some(*delta),
            None => None,
        };
        let found = self.keyspace.get(key)?;
        let now = match added {
            Some(delta) => Some(sum(found.as_deref(), delta)?),
            None => found.clone(),
        };
        self.keys.insert(key.to_vec(), Touched::Read { found, now: now.clone() });
        Ok(now)
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
        self.make(key, Some(value.into()));
        Ok(())
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
        self.make(key, None);
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
        match self.keys.get_mut(key) {
            Some(Touched::Read { now, .. } | Touched::Made(now)) => *now = Some(sum(now.as_deref(), delta)?),
            Some(Touched::Added(before)) => {
                let both = before.checked_add(delta);
                *before = both.ok_or_else(|| {
                    Error::invalid(format!("adding {before} and {delta} overflows every counter"))
                })?;
            }
            None => drop(self.keys.insert(key.to_vec(), Touched::Added(delta))),
        }
        Ok(())
    }

    fn make(&mut self, key: &[u8], new: Option<Value>) {
        match self.keys.get_mut(key) {
            Some(Touched::Read { now, .. }) => *now = new,
            Some(made) => *made = Touched::Made(new),
            None => drop(self.keys.insert(key.to_vec(), Touched::Made(new))),
        }
    }

    fn forget_changes(&mut self) {
        self.keys.retain(|_, touched| match touched {
            Touched::Read { found, now } => {
                now.clone_from(found);
                true
            }
            Touched::Made(_) | Touched::Added(_) => false,
        });
    }

    /// Adds the comparisons and changes to a batch.
    fn finish(&self, batch: &mut On<'_>) {
        for (key, touched) in &self.keys {
            match touched {
                Touched::Read { found, now } if found == now => batch.expect(key, found.as_deref()),
                Touched::Read { found, now } => batch.compare_and_swap(key, found.as_deref(), now.as_deref()),
                Touched::Made(Some(value)) => batch.set(key, value),
                Touched::Made(None) => batch.delete(key),
                Touched::Added(delta) => batch.add(key, *delta),
            };
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
fn shown(keyspace: &str, key: &[u8]) -> String {
    let rest = if key.len() > SHOWN_BYTES { "..." } else { "" };
    let key = &key[..key.len().min(SHOWN_BYTES)];
    format!("key \"{}{rest}\" of keyspace \"{}\"", key.escape_ascii(), keyspace.escape_debug())
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

impl fmt::Debug for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Draft")
            .field("keyspace", &self.keyspace.name())
            .field("keys", &self.keys.len())
            .finish()
    }
}

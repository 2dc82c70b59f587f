//! [`Transaction`]: reads and changes that take place at one instant, if what was read still holds then.
//!
//! A transaction keeps what it read and what it is to change ([`Draft`]), and nobody else sees of it. Its end is one
//! [`WriteBatch`]: for each key that it read, the comparison with what it found, and its changes. There is no other lock and no
//! other write path than a batch has.
//!
//! **Why that is serializable.** A batch takes place at one instant, comparisons and all. If it is applied, every value
//! that the transaction read is there at that instant; had the transaction run as a whole just then, it would have read
//! the same, and so would have done the same. So committed transactions, batches and single changes have one order,
//! that of their instants, each of which lies between the beginning and the end of its commit. Only the equality of
//! values counts: that one was changed and changed back meanwhile makes no difference to who reads it.
//!
//! **Why there are no ranges.** A comparison tells that a key is as it was, not that no key came between two others.
//! What depends on the keys of a range reads a key that all write who change the range, such as a counter.
//!
//! **Why reads are not from a snapshot.** It would make the reads of a transaction that is to fail agree with each
//! other, but not in every home; a held snapshot makes changes by others dearer; and what is older is in conflict more
//! often. Instead [`Db::transact`] believes no answer, and no error, before what was read is known to have been there
//! at one instant.

use crate::batch::{On, WriteBatch};
use crate::builder::WriteOptions;
use crate::db::Db;
use crate::keyspace::Keyspace;
use forrest_engine::{Effect, Error, ErrorKind, MAX_KEYSPACE_NAME_BYTES, Op, Result, Value, Written};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// How often [`Db::transact`] calls its function.
const ATTEMPTS: usize = 1_000;
/// Bytes of a key that a message shows.
const SHOWN_BYTES: usize = MAX_KEYSPACE_NAME_BYTES;

/// Reads and changes of a store that take place at one instant when they are [committed](Transaction::commit), or
/// never. Until then nobody sees the changes, and nobody waits for the transaction; dropping it gives it up.
///
/// What is read is what the transaction has made of a key, and otherwise what is in the store when the key is first
/// read. Reading it again answers the same. It is serializable: a transaction that is committed did what it would have
/// done had it run as a whole at the instant of its commit. One that read something that is no longer so is in
/// [`Conflict`](Committed::Conflict), changes nothing, and may be run again, which [`Db::transact`] does by
/// itself. **Until it is committed, two reads may be of two moments.**
///
/// Keys are read one by one: there are no ranges. Where something depends on all keys of a range, let those who change
/// the range write to one key besides, and read that.
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
    /// The first is that of the default keyspace.
    drafts: Vec<Draft>,
}

/// What a [`Transaction`] has read of a keyspace and made of it.
///
/// Every method fails with `Limit` if a key or value is too long for any store. What a change meets is found out when
/// the transaction is committed.
pub struct Draft {
    keyspace: Keyspace,
    keys: BTreeMap<Vec<u8>, Touched>,
}

/// What a transaction has to do with a key.
#[derive(Clone)]
enum Touched {
    /// It was read, and found so; so it shall be.
    Read { found: Option<Value>, now: Option<Value> },
    /// It was not read, and so it shall be.
    Made(Option<Value>),
    /// It was not read, and so much shall be added to it.
    Added(i64),
}

/// What became of a transaction.
///
/// ```
/// # let db = forrest::Db::open("memory:")?;
/// use forrest::Committed;
/// let mut transaction = db.transaction();
/// transaction.get("oak")?;
/// db.set("oak", "Quercus")?;
/// match transaction.commit()? {
///     Committed::Done => unreachable!(),
///     Committed::Conflict { keyspace, key } => assert_eq!((&keyspace[..], &key[..]), ("default", &b"oak"[..])),
/// }
/// # Ok::<(), forrest::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a conflict means that nothing was changed"]
pub enum Committed {
    /// It has taken place.
    Done,
    /// A key is not as the transaction read it; nothing was changed. There may be others.
    Conflict {
        /// The name of the keyspace.
        keyspace: String,
        /// The key.
        key: Vec<u8>,
    },
}

impl Committed {
    /// True if the transaction has taken place.
    pub fn is_done(&self) -> bool {
        matches!(self, Committed::Done)
    }
}

impl Db {
    /// Begins a transaction, which costs nothing. [`transact`](Db::transact) does so, and commits it, as often as is
    /// needed.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// let mut transaction = db.transaction();
    /// transaction.set("a", "1")?;
    /// drop(transaction); // nothing comes of it
    /// assert_eq!(db.get("a")?, None);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn transaction(&self) -> Transaction {
        Transaction { db: self.clone(), drafts: vec![Draft::new(self)] }
    }

    /// Runs `f` on a transaction and commits that, with its answer; again, with a new transaction, as long as it is in
    /// conflict with changes by others. So `f` should do nothing but what the transaction does, and be short.
    ///
    /// If `f` fails, nothing is changed, and its error is the answer, once it is known that what `f` had read until
    /// then was there at one instant; otherwise it runs again as well. (If `f` panics, what it has seen may be of
    /// several moments.)
    ///
    /// # Errors
    /// What `f` answers, and what [`Transaction::commit`] does. `Busy` after 1,000 conflicts: if `f` changes itself
    /// what its transaction reads, or takes so long that others always come in between.
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

    /// As [`transact`](Db::transact), with its own durability.
    ///
    /// # Errors
    /// As `transact`; `Unsupported` if the home cannot keep what is asked.
    ///
    /// ```
    /// use forrest::{Db, Durability, WriteOptions};
    /// # let db = Db::open("memory:")?;
    /// let options = WriteOptions { durability: Some(Durability::Memory) };
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
    /// The transaction as seen from another keyspace: what is done there reads and changes that keyspace.
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

    /// Makes all changes at one instant, if what was read is there at that instant; otherwise none. Other writers wait
    /// meanwhile, as for a batch; readers do not.
    ///
    /// # Errors
    /// Those of [`Db::write`]; then nothing was changed. The limits are those of a batch (see
    /// [`Builder`](crate::Builder)): each key that was read or changed is an operation, and what was read counts as
    /// what is written does. The message names the key.
    pub fn commit(self) -> Result<Committed> {
        self.commit_with(&WriteOptions::default())
    }

    /// As [`commit`](Transaction::commit), but makes no changes: tells whether all that was read was there at one
    /// instant, for who gives up because of it.
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

    /// As [`commit`](Transaction::commit), with its own durability. For a transaction that changes nothing, it is that
    /// of what it has read.
    ///
    /// # Errors
    /// As `commit`; `Unsupported` if the home cannot keep what is asked.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("forest");
    /// # let path = path.to_str().unwrap();
    /// use forrest::{Db, Durability, WriteOptions};
    /// let mut transaction = Db::open(path)?.transaction();
    /// transaction.add("visits", 1)?;
    /// let options = WriteOptions { durability: Some(Durability::Sync) };
    /// assert!(transaction.commit_with(&options)?.is_done()); // and survives power loss
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn commit_with(self, options: &WriteOptions) -> Result<Committed> {
        let mut batch = WriteBatch::new();
        self.drafts.iter().for_each(|draft| draft.finish(&mut batch.on(&draft.keyspace)));
        let place =
            |op| batch.ops().nth(op).map(|(keyspace, op)| (keyspace.unwrap_or(&self.db).name(), op.key()));
        match self.db.try_write_with(&batch, options) {
            Ok(Written::Applied) => Ok(Committed::Done),
            Ok(Written::Mismatch { op, .. }) => {
                let (keyspace, key) = place(op).expect("it is one of the batch's");
                Ok(Committed::Conflict { keyspace: keyspace.to_owned(), key: key.to_vec() })
            }
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

    /// The value of a key, or `None`: what the transaction has made of it, or what is in the store, and must still be
    /// when the transaction is committed.
    ///
    /// # Errors
    /// Those of [`View::get`](crate::View::get); `InvalidArgument` if the transaction has added to what is no counter.
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

    /// True if the key is there; it counts as read, with its value.
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

    /// Will map a key to a value.
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

    /// Will remove a key, if it is there.
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

    /// Will add to a counter, as [`Keyspace::add`] does. It is not read by that: transactions that only add to a
    /// counter are not in conflict for it.
    ///
    /// # Errors
    /// `InvalidArgument` if what the transaction knows of the key is no counter, or if the sum overflows. If it does
    /// not know the key, committing fails then.
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

    /// Adds what is to be compared and changed to a batch.
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

/// What a counter becomes.
fn sum(old: Option<&[u8]>, delta: i64) -> Result<Value> {
    match (Op::Add { key: &[][..], delta }).resolve(old)?.0 {
        Effect::PutValue(sum) => Ok(sum),
        _ => unreachable!("an addition puts a value that it made"),
    }
}

/// A key, for a message.
fn shown(keyspace: &str, key: &[u8]) -> String {
    let rest = if key.len() > SHOWN_BYTES { "..." } else { "" };
    let key = &key[..key.len().min(SHOWN_BYTES)];
    format!("key \"{}{rest}\" of keyspace \"{}\"", key.escape_ascii(), keyspace.escape_debug())
}

fn always_in_conflict(keyspace: &str, key: &[u8]) -> Error {
    let key = shown(keyspace, key);
    let message = format!(
        "{ATTEMPTS} times in a row, changes came between a transaction's reads and its commit, the last to {key}; make it \
         shorter, and see that nothing in it changes by other means what it reads"
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

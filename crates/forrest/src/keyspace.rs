//! [`Keyspace`]: one ordered map of a store, and all its changes.
//!
//! Every method that changes something calls [`Keyspace::apply`] with an [`Op`], so there is one write path.
//! The reads are in view.rs.

use crate::engine;
use crate::ingest::Ingest;
use crate::view::View;
use forrest_engine::{
    Compression, Error, ErrorKind, Expires, KeyRange, Keyspace as _, Op, Outcome, Result, Swap, Value,
    prefix_end,
};
use std::fmt;
use std::ops::Deref;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

/// The key by which a keyspace of blobs is known, and how its value begins (blobs.rs).
pub(crate) const BLOBS_KEY: [u8; 1] = [0];
pub(crate) const BLOBS_LAYOUTS: &[u8] = b"forrest blobs ";

/// Held from the look whether a keyspace has blobs, or a time to live, until it has the other one. Rarely, so that one
/// is enough for all stores. Nobody waits long for it: its holder may wait for a listener, which may want it too.
static BLOBS_OR_TTL: Mutex<()> = Mutex::new(());
const CHOOSE_WAIT: Duration = Duration::from_secs(5);
const CHOOSE_PAUSE: Duration = Duration::from_millis(1);

/// The lock above.
///
/// # Errors
/// `Busy` if another thread holds it for five seconds.
pub(crate) fn choose_blobs_or_ttl() -> Result<MutexGuard<'static, ()>> {
    let begin = Instant::now();
    loop {
        match BLOBS_OR_TTL.try_lock() {
            Ok(held) => return Ok(held),
            Err(TryLockError::Poisoned(held)) => return Ok(held.into_inner()),
            Err(TryLockError::WouldBlock) if begin.elapsed() < CHOOSE_WAIT => thread::sleep(CHOOSE_PAUSE),
            Err(TryLockError::WouldBlock) => {
                let what = "another thread is choosing a time to live or writing the first blob of a keyspace; try again";
                return Err(Error::new(ErrorKind::Busy, what));
            }
        }
    }
}

/// One ordered map of a store. A clone is another handle to it. It dereferences to [`View`], which has the
/// methods that read.
///
/// Each change is atomic, and every read that starts after it has returned sees it. Every method fails with
/// `Limit` if a key or value is too long, with `OutOfSpace` if there is no room, and with `InvalidArgument`
/// once the keyspace has been dropped; a call that fails changes nothing. With `memory:` nothing outlives the
/// process, and a change waits only for changes of neighbouring keys and for a batch.
///
/// ```
/// # let db = forrest::Db::open("memory:")?;
/// let people = db.keyspace("people")?;
/// people.set("ada", "1815")?;
/// people.add("count", 1)?;
/// assert!(people.contains("ada")? && !db.contains("ada")?);
/// # Ok::<(), forrest::Error>(())
/// ```
#[derive(Clone)]
pub struct Keyspace {
    view: View,
    space: engine::Keyspace,
}

impl Keyspace {
    pub(crate) fn new(space: engine::Keyspace) -> Keyspace {
        Keyspace { view: View::new(space.view()), space }
    }

    /// The name.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// assert_eq!(db.keyspace("people")?.name(), "people");
    /// assert_eq!(db.name(), forrest::DEFAULT_KEYSPACE);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn name(&self) -> &str {
        self.space.name()
    }

    pub(crate) fn space(&self) -> &engine::Keyspace {
        &self.space
    }

    pub(crate) fn same_store(&self, other: &Keyspace) -> bool {
        self.space.same_store(&other.space)
    }

    /// True if both are handles to the same keyspace.
    pub(crate) fn is(&self, other: &Keyspace) -> bool {
        self.space.is(&other.space)
    }

    /// Makes one change. The methods below call this one with an [`Op`].
    ///
    /// # Errors
    /// Those of the method for this operation.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// use forrest::{Op, Outcome};
    /// assert_eq!(db.apply(Op::Set { key: "oak", value: "Quercus" })?, Outcome::Set);
    /// assert_eq!(db.apply("delete oak".parse::<Op>()?)?, Outcome::Deleted(true));
    /// # Ok::<(), forrest::Error>(())
    /// ```
    #[inline]
    pub fn apply(&self, op: Op<impl AsRef<[u8]>>) -> Result<Outcome> {
        let op = op.borrowed();
        op.check()?;
        self.space.apply(op)
    }

    /// Sets the value of a key, whether or not the key exists.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// db.set("key", "value")?;
    /// db.set(7_u64.to_be_bytes(), [1, 2, 3])?; // big endian, so that numbers sort as numbers
    /// # Ok::<(), forrest::Error>(())
    /// ```
    #[inline]
    pub fn set(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.apply(Op::Set { key: key.as_ref(), value: value.as_ref() }).map(drop)
    }

    /// Sets the value of a key for a time to live, which begins with the change. From then on no read returns the
    /// value, and its key counts as absent in every operation: a value has expired at the millisecond of its time.
    /// [`View::expires`](crate::View::expires) returns that time. Every later change of the key decides anew: `set`,
    /// `add` and the others give it the time to live of the keyspace ([`set_ttl`](Keyspace::set_ttl)), or none. A
    /// compare-and-swap to the value that is there changes nothing.
    ///
    /// **The clock** is the system's wall clock. While a store is open its time never goes back: if the clock is set
    /// back, it stands still until the clock has caught up, and nothing expires. If the clock is set forward, more
    /// values have expired at once, for good. If the clock is set back while the store is closed, values that have
    /// expired may be there again until their time comes once more. A snapshot keeps the time at which it was taken.
    ///
    /// **Space.** Flushes and merges of tables leave out what has expired. Tables are merged for that alone once about
    /// a third of them has, and 24 hours after a value has, within a minute and the time of a merge, while the store is
    /// open and has been written to. No change of the stream ([`Db::changes`](crate::Db::changes)) says that a value
    /// has expired. A store in memory removes a value within two seconds of its time, by a thread that it starts with
    /// the first value that expires; the thread removes about a million values in a second.
    ///
    /// # Errors
    /// `Unsupported` in the kernel ([`Capability::Ttl`](crate::Capability::Ttl)); otherwise as
    /// [`set`](Keyspace::set).
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("forest");
    /// # let path = path.to_str().unwrap();
    /// use forrest::Db;
    /// use std::time::{Duration, SystemTime};
    ///
    /// let db = Db::open(path)?;
    /// db.set_with_ttl("session", "ada", Duration::from_secs(600))?;
    /// assert_eq!(db.get("session")?.unwrap(), "ada");
    /// assert!(db.expires("session")?.unwrap() > SystemTime::now());
    /// db.set_with_ttl("gone", "at once", Duration::ZERO)?;
    /// assert_eq!(db.get("gone")?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_with_ttl(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, ttl: Duration) -> Result<()> {
        let expires = Expires::after(ttl);
        self.apply(Op::SetUntil { key: key.as_ref(), value: value.as_ref(), expires }).map(drop)
    }

    /// Removes a key. Returns true if it existed.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// db.set("key", "value")?;
    /// assert!(db.delete("key")?);
    /// assert!(!db.delete("key")?);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    #[inline]
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        match self.apply(Op::Delete { key })? {
            Outcome::Deleted(was_there) => Ok(was_there),
            other => unreachable!("a deletion returned {other:?}"),
        }
    }

    /// Adds to a counter and returns its new value. A counter is a value of 8 bytes, a big-endian two's
    /// complement integer. A missing key counts as 0.
    ///
    /// # Errors
    /// `InvalidArgument` if the value is not 8 bytes long, or if the sum overflows.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// assert_eq!(db.add("visits", 3)?, 3);
    /// assert_eq!(db.add("visits", -1)?, 2);
    /// assert_eq!(db.get("visits")?.as_deref(), Some(&2_i64.to_be_bytes()[..]));
    /// # Ok::<(), forrest::Error>(())
    /// ```
    #[inline]
    pub fn add(&self, key: impl AsRef<[u8]>, delta: i64) -> Result<i64> {
        match self.apply(Op::Add { key, delta })? {
            Outcome::Added(sum) => Ok(sum),
            other => unreachable!("an addition returned {other:?}"),
        }
    }

    /// Gives an operand to the keyspace's merge operator, which makes a new value of it and the old one, as one change.
    /// Other writers wait while the operator runs.
    ///
    /// **On disk** it reads no table for a key that is not in memory: the operand is stored, and applied by reads, and
    /// for good when the key's tables are merged. A read of such a key searches its tables one after the other. Some
    /// merges read the old value first, as [`add`](Keyspace::add) does: where values expire
    /// ([`set_ttl`](Keyspace::set_ttl)), in a store with [`history`](crate::Builder::history), of operands of more than
    /// 1 KiB, and where many operands of a key wait that the operator does not combine. An operand that is stored, and
    /// would make a value longer than the limit, is without effect.
    ///
    /// # Errors
    /// `InvalidArgument` if the keyspace has no operator, or if the operator refuses the operand or panics; `Limit` if
    /// the new value is too long, where it is known; `Unsupported` in the kernel.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// let visits = db.keyspace("visits")?;
    /// visits.set_merge_operator("sum")?;
    /// visits.merge("home", 2_i64.to_be_bytes())?;
    /// visits.merge("home", 3_i64.to_be_bytes())?;
    /// assert_eq!(visits.get("home")?.as_deref(), Some(&5_i64.to_be_bytes()[..]));
    /// # Ok::<(), forrest::Error>(())
    /// ```
    #[inline]
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.apply(Op::Merge { key: key.as_ref(), operand: operand.as_ref() }).map(drop)
    }

    /// Replaces the value of a key by `new` if it equals `expected`, byte for byte. `None` is absence, on
    /// either side.
    ///
    /// ```
    /// use forrest::Swap;
    /// # let db = forrest::Db::open("memory:")?;
    /// assert_eq!(db.compare_and_swap("lock", None, Some(b"mine"))?, Swap::Done);
    /// match db.compare_and_swap("lock", None, Some(b"yours"))? {
    ///     Swap::Mismatch(found) => assert_eq!(found.as_deref(), Some(&b"mine"[..])),
    ///     other => unreachable!("{other:?}"),
    /// }
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn compare_and_swap(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<Swap> {
        match self.apply(Op::CompareAndSwap { key: key.as_ref(), expected, new })? {
            Outcome::Swapped(swap) => Ok(swap),
            other => unreachable!("a compare-and-swap returned {other:?}"),
        }
    }

    /// Replaces the value of a key by `f` of it (`None` is absence), and returns the new value. No change by
    /// another thread is lost: if one intervenes, `f` is called again with the current value. `f` may use the
    /// store.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// let longer = db.update("list", |old| Some([old.unwrap_or_default(), b"x"].concat()))?;
    /// assert_eq!(longer.as_deref(), Some(&b"x"[..]));
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn update(
        &self,
        key: impl AsRef<[u8]>,
        mut f: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<Option<Value>> {
        let key = key.as_ref();
        let mut old = self.get(key)?;
        loop {
            let new = f(old.as_deref());
            match self.compare_and_swap(key, old.as_deref(), new.as_deref())? {
                Swap::Mismatch(found) => old = found,
                Swap::Done => return Ok(new.map(Value::from)),
                other => unreachable!("a compare-and-swap came to {other:?}"),
            }
        }
    }

    /// Removes all keys of a range. It does not count them; [`View::count`] does.
    ///
    /// It is one change, and happens at one instant. On disk it takes the same time, log and memory for any number of
    /// keys: it is one record, and reads skip what it covers. The space comes back in the background; where all keys of
    /// a part of the store are removed, without reading or writing any. In memory and in the kernel it takes time in
    /// proportion to the keys.
    ///
    /// # Errors
    /// On disk, `Corrupt` or `Io` if a table is damaged that has keys in the range and may have others. A range that
    /// has all keys of such a table removes the damage.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// db.set("a", "")?;
    /// db.set("b", "")?;
    /// db.delete_range("a"..="b")?;
    /// assert_eq!(db.count(..)?, 0);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn delete_range(&self, bounds: impl KeyRange) -> Result<()> {
        self.apply(Op::delete_range(bounds)).map(drop)
    }

    /// Removes all keys that begin with `prefix`, as [`delete_range`](Keyspace::delete_range) does. The empty prefix
    /// removes all keys.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// db.set("user:1:name", "Ada")?;
    /// db.set("user:10:name", "Grace")?;
    /// db.delete_prefix("user:1:")?;
    /// assert_eq!(db.count(..)?, 1);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn delete_prefix(&self, prefix: impl AsRef<[u8]>) -> Result<()> {
        let start = prefix.as_ref();
        self.apply(Op::DeleteRange { start, end: prefix_end(start).as_deref() }).map(drop)
    }

    /// Removes all keys of the keyspace, as [`delete_range`](Keyspace::delete_range) does. The keyspace stays.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// let index = db.keyspace("index")?;
    /// index.set("oak", "1")?;
    /// index.clear()?;
    /// assert_eq!(index.count(..)?, 0);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn clear(&self) -> Result<()> {
        self.delete_range(..)
    }

    /// Begins an ingest: many sorted pairs, which the keyspace gets at one instant. On disk this is the fastest way to
    /// load: each pair is written once, to a table, and neither to the log nor to a memtable. Memory does not grow with
    /// the number of pairs, except that of the index of each table. Use it for a million pairs rather than for a
    /// thousand: each ingest makes at least one table, and waits for several syncs.
    ///
    /// With `memory:` the pairs are kept beside the store until they are set as one batch.
    ///
    /// # Errors
    /// `Unsupported` in the kernel, and for a store that was opened to be read; `OutOfSpace`; `Stopped`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("forest");
    /// # let path = path.to_str().unwrap();
    /// let db = forrest::Db::open(path)?;
    /// let mut ingest = db.ingest()?;
    /// for number in 0..10_000_u32 {
    ///     ingest.put(number.to_be_bytes(), "tree")?;
    /// }
    /// assert_eq!(db.count(..)?, 0);
    /// assert_eq!(ingest.finish()?, 10_000);
    /// assert_eq!(db.count(..)?, 10_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ingest(&self) -> Result<Ingest> {
        self.space.ingest().map(Ingest::new)
    }

    /// The compression of the tables that the keyspace gets from now on: that which was chosen for it, or else that of
    /// the default keyspace.
    pub fn compression(&self) -> Compression {
        self.space.compression()
    }

    /// Chooses how the tables that the keyspace gets from now on are compressed. Tables that are there stay as they are
    /// until they are merged, or until [`Db::compact`](crate::Db::compact). The store remembers the choice; it is
    /// durable when the call returns. A keyspace without one follows the default keyspace, whose choice is
    /// [`Builder::compression`](crate::Builder::compression) as well. Of a keyspace that was just made, everything
    /// before is written to tables first.
    ///
    /// # Errors
    /// `Unsupported` in memory and in the kernel for all but [`Compression::None`], for [`Compression::Zstd`] in a
    /// build without the feature `zstd`, and in a store that is only read; `InvalidArgument` if the keyspace was
    /// dropped; `Io`; `OutOfSpace`; `Stopped`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("forest");
    /// # let path = path.to_str().unwrap();
    /// use forrest::{Compression, Db};
    /// let db = Db::open(path)?;
    /// let events = db.keyspace("events")?;
    /// events.set_compression(Compression::Lz4)?;
    /// assert_eq!((db.compression(), events.compression()), (Compression::None, Compression::Lz4));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_compression(&self, compression: Compression) -> Result<()> {
        self.space.set_compression(compression)
    }

    /// The time to live of values that are set without one.
    pub fn ttl(&self) -> Option<Duration> {
        self.space.ttl()
    }

    /// Chooses the time to live of all values that the keyspace gets from now on without one of their own; `None` if
    /// they are to stay. Values that are there keep their time. In memory,
    /// [`capacity_bytes`](crate::Builder::capacity_bytes) does not bound what such values take. On disk the store
    /// remembers the choice, which is durable when the call returns; of a keyspace that was just made, everything
    /// before is written to tables first.
    ///
    /// # Errors
    /// `Unsupported` in the kernel, and in a store that is only read; `InvalidArgument` for zero, and if the keyspace
    /// was dropped, or has [blobs](crate::Blobs), whose pieces would expire one by one; `Busy` if another thread
    /// chooses, or writes a first blob, for five seconds; `Io`; `OutOfSpace`; `Stopped`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("forest");
    /// # let path = path.to_str().unwrap();
    /// use forrest::Db;
    /// use std::time::Duration;
    ///
    /// let sessions = Db::open(path)?.keyspace("sessions")?;
    /// sessions.set_ttl(Some(Duration::from_secs(600)))?;
    /// sessions.set("ada", "7 trees")?;
    /// assert!(sessions.expires("ada")?.is_some());
    /// sessions.set_ttl(None)?;
    /// sessions.set("bob", "3 trees")?;
    /// assert!(sessions.expires("bob")?.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_ttl(&self, ttl: Option<Duration>) -> Result<()> {
        if ttl.is_none() {
            return self.space.set_ttl(ttl);
        }
        // Also the lock belongs to the process that opened the store.
        self.get(BLOBS_KEY)?;
        let _no_blobs_meanwhile = choose_blobs_or_ttl()?;
        if self.get(BLOBS_KEY)?.is_some_and(|layout| layout.starts_with(BLOBS_LAYOUTS)) {
            return Err(Error::invalid(format!(
                "the keyspace \"{}\" has blobs, whose pieces would expire one by one; choose a time to live for a \
                 keyspace without blobs",
                self.name()
            )));
        }
        self.space.set_ttl(ttl)
    }

    /// The name of the keyspace's merge operator, if it has one.
    pub fn merge_operator(&self) -> Option<String> {
        self.space.merge_operator().map(|operator| operator.name().to_string())
    }

    /// Chooses the [`MergeOperator`](crate::MergeOperator) of a keyspace that is empty. `sum`, `max`, `min`, `append`
    /// and `union` are in every build ([`operators`](mod@crate::operators)), and
    /// [`Builder::merge_operator`](crate::Builder::merge_operator) registers others. The store remembers the name. It
    /// is durable when the call returns, and cannot be changed. A store that has a keyspace with an operator opens only
    /// where that is registered. Does nothing if the keyspace has this operator.
    ///
    /// # Errors
    /// `InvalidArgument` if no operator has the name, or the keyspace has another one, is not empty or was dropped;
    /// `Unsupported` in the kernel, and in a store that is only read; `Io`; `OutOfSpace`; `Stopped`.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// let names = db.keyspace("names")?;
    /// names.set_merge_operator("append")?;
    /// assert_eq!(names.merge_operator().as_deref(), Some("append"));
    /// assert!(names.set_merge_operator("max").unwrap_err().message().contains("\"append\""));
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn set_merge_operator(&self, name: &str) -> Result<()> {
        self.space.set_merge_operator(name)
    }

    /// Merges the tables that may have keys of a range, and first writes the memtables to tables. Afterwards the range
    /// takes the least space, and reads of it pass no deleted pairs. Takes time proportional to the size of these
    /// tables: neighbouring pairs of up to [`table_bytes`](crate::Builder::table_bytes) may be rewritten too. Use it
    /// after many deletes; [`Db::compact`](crate::Db::compact) does the same for the whole store.
    ///
    /// # Errors
    /// `Io`, `OutOfSpace`, `Stopped`; `InvalidArgument` if the keyspace was dropped; `Unsupported` in memory and in the
    /// kernel.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("forest");
    /// # let path = path.to_str().unwrap();
    /// let db = forrest::Db::open(path)?;
    /// db.set("day 1", "rain")?;
    /// db.set("day 2", "sun")?;
    /// db.flush()?;
    /// db.delete_range(.."day 2")?;
    /// db.compact_range(.."day 2")?;
    /// assert_eq!(db.stats()?.tables, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compact_range(&self, bounds: impl KeyRange) -> Result<()> {
        let (start, end) = forrest_engine::half_open(bounds);
        self.space.compact_range(&start, end.as_deref())
    }
}

impl Deref for Keyspace {
    type Target = View;
    fn deref(&self) -> &View {
        &self.view
    }
}

impl fmt::Debug for Keyspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyspace").field("name", &self.name()).finish_non_exhaustive()
    }
}

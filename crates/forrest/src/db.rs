//! [`Db`]: an open store; [`Keyspace`]: one ordered map in it; [`Snapshot`]: one past state of it.
//!
//! A `Db` is its default keyspace and more: it dereferences to it, and a keyspace to the [`View`] of its
//! newest state. So reading is in view.rs, changing a keyspace is here, and so is what concerns the whole
//! store. Lengths and names are checked here; below, engines take them as right.

use crate::batch::{WriteBatch, Written};
use crate::engine;
use crate::error::{Error, Result};
use crate::op::{Op, Outcome, Swap};
use crate::options::{Builder, Home, WriteOptions};
use crate::stats::{Capabilities, Stats};
use crate::view::View;
use crate::{DEFAULT_KEYSPACE, KeyRange, MAX_KEYSPACE_NAME_BYTES, Value};
use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::path::Path;

/// An open store. Cloning makes another handle to it; it may be used from many threads at once. It closes
/// when the last handle, keyspace, snapshot and iteration is gone.
///
/// All that a [`Keyspace`] and a [`View`] can do, a `Db` does with its keyspace [`DEFAULT_KEYSPACE`].
///
/// ```
/// let db = forrest::Db::open("memory:")?;
/// db.set("key", "value")?;
/// assert_eq!(db.get("key")?.as_deref(), Some(&b"value"[..]));
/// # Ok::<(), forrest::Error>(())
/// ```
#[derive(Clone)]
pub struct Db {
    default: Keyspace,
    store: engine::Store,
    batch_ops_max: usize,
    batch_bytes_max: usize,
}

impl Db {
    /// Opens a store with the defaults of [`Builder`]. `"memory:"` is a new, empty store that lives as long
    /// as its handles. `"llds:NAME"` and a path name homes that are not built yet.
    ///
    /// # Errors
    /// `InvalidArgument` if `url` names no home; `Unsupported` if its home is not built yet; `OutOfSpace` if
    /// there is no memory.
    ///
    /// ```
    /// use forrest::{Db, ErrorKind};
    /// assert!(Db::open("memory:").is_ok());
    /// assert_eq!(Db::open("/var/lib/forest").unwrap_err().kind(), ErrorKind::Unsupported);
    /// assert_eq!(Db::open("mermory:").unwrap_err().kind(), ErrorKind::InvalidArgument);
    /// ```
    pub fn open(url: impl AsRef<str>) -> Result<Db> {
        Builder::default().open(url)
    }

    /// The way to open a store otherwise than by default.
    ///
    /// ```
    /// let db = forrest::Db::builder().capacity_bytes(1 << 30).open("memory:")?;
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Opens a store that others may write to, for reading.
    ///
    /// # Errors
    /// `Unsupported` with `memory:`, whose content nobody else can have written; otherwise as
    /// [`open`](Db::open).
    ///
    /// ```
    /// use forrest::{Db, ErrorKind};
    /// assert_eq!(Db::open_read_only("memory:").unwrap_err().kind(), ErrorKind::Unsupported);
    /// ```
    pub fn open_read_only(url: impl AsRef<str>) -> Result<Db> {
        match Home::parse(url.as_ref())? {
            Home::Memory => {
                Err(Error::unsupported("opening \"memory:\" read-only: it would be empty for ever"))
            }
            elsewhere => Err(elsewhere.unsupported()),
        }
    }

    pub(crate) fn with(url: &str, builder: &Builder) -> Result<Db> {
        let home = Home::parse(url)?;
        builder.check()?;
        let store = engine::Store::open(&home, builder)?;
        let default = Keyspace::new(store.keyspace(DEFAULT_KEYSPACE)?);
        let Builder { batch_ops_max, batch_bytes_max, .. } = *builder;
        Ok(Db { default, store, batch_ops_max, batch_bytes_max })
    }

    /// Makes all changes of a batch at one instant, or none: no reader and no snapshot sees a part of it.
    /// Other writers wait meanwhile, readers do not.
    ///
    /// The answer is [`Written::Applied`], or [`Written::Mismatch`] if a comparison in the batch failed. A
    /// batch without [`compare_and_swap`](WriteBatch::compare_and_swap) is always applied.
    ///
    /// # Errors
    /// Nothing is changed by a batch that fails, and [`Error::op`] says which operation did. `Limit` for keys,
    /// values, or the batch's own limits (see [`Builder`]); `InvalidArgument` for an addition to something
    /// that is not a counter, or a keyspace that was dropped or belongs to another store; `OutOfSpace`.
    ///
    /// ```
    /// # use forrest::{Db, WriteBatch};
    /// # let db = Db::open("memory:")?;
    /// let mut batch = WriteBatch::new();
    /// batch.set("a", "1").set("b", "2").delete_range("c"..);
    /// db.write(batch)?;
    /// assert_eq!(db.count(..)?, 2);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn write(&self, batch: impl Borrow<WriteBatch>) -> Result<Written> {
        self.write_with(batch, &WriteOptions::default())
    }

    /// As [`write`](Db::write), with its own durability.
    ///
    /// # Errors
    /// As `write`; `Unsupported` if the home cannot keep what is asked: `memory:` keeps
    /// [`Durability::Memory`](crate::Durability::Memory) only.
    ///
    /// ```
    /// use forrest::{Db, Durability, ErrorKind, WriteBatch, WriteOptions};
    /// let db = Db::open("memory:")?;
    /// let options = WriteOptions { durability: Some(Durability::Sync) };
    /// assert_eq!(db.write_with(WriteBatch::new(), &options).unwrap_err().kind(), ErrorKind::Unsupported);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn write_with(&self, batch: impl Borrow<WriteBatch>, options: &WriteOptions) -> Result<Written> {
        let batch = batch.borrow();
        batch.check(self, self.batch_ops_max, self.batch_bytes_max)?;
        let ops = batch.ops().map(|(keyspace, op)| (&keyspace.unwrap_or(&self.default).space, op));
        self.store.write(ops, options.durability)
    }

    /// One state of all keyspaces, to be read while the store goes on. Costs nothing to take; while it or a
    /// view or range of it lives, what has been replaced since is kept.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// db.set("key", "old")?;
    /// let snapshot = db.snapshot()?;
    /// db.set("key", "new")?;
    /// assert_eq!(snapshot.get("key")?.as_deref(), Some(&b"old"[..]));
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn snapshot(&self) -> Result<Snapshot> {
        let snapshot = self.store.snapshot()?;
        Ok(Snapshot { default: View::new(snapshot.view(DEFAULT_KEYSPACE)), snapshot })
    }

    /// Opens a keyspace, and makes it if there is none of that name. When several threads do so at once, they
    /// get the same one.
    ///
    /// # Errors
    /// `InvalidArgument` if the name is empty; `Limit` if it exceeds [`MAX_KEYSPACE_NAME_BYTES`], or there are
    /// [`MAX_KEYSPACES`](crate::MAX_KEYSPACES) already; `OutOfSpace`.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// let people = db.keyspace("people")?;
    /// people.set("ada", "1815")?;
    /// assert_eq!(db.get("ada")?, None); // another keyspace
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn keyspace(&self, name: &str) -> Result<Keyspace> {
        check_name(name)?;
        self.store.keyspace(name).map(Keyspace::new)
    }

    /// The names of all keyspaces, sorted; [`DEFAULT_KEYSPACE`] is always among them.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// db.keyspace("people")?;
    /// assert_eq!(db.keyspaces()?, ["default", "people"]);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn keyspaces(&self) -> Result<Vec<String>> {
        self.store.keyspaces()
    }

    /// Removes a keyspace with all it holds; false if there is none of that name. Its handles fail with
    /// `InvalidArgument` from then on, also if a keyspace of that name is made again; snapshots still
    /// have it.
    ///
    /// # Errors
    /// `InvalidArgument` for the default keyspace, which cannot be dropped.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// let people = db.keyspace("people")?;
    /// assert!(db.drop_keyspace("people")?);
    /// assert!(people.get("ada").is_err());
    /// assert!(!db.drop_keyspace("people")?);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn drop_keyspace(&self, name: &str) -> Result<bool> {
        check_name(name)?;
        if name == DEFAULT_KEYSPACE {
            return Err(Error::invalid(format!("keyspace \"{DEFAULT_KEYSPACE}\" cannot be dropped")));
        }
        self.store.drop_keyspace(name)
    }

    /// Returns when everything written before is as durable as this home can make it. With `memory:` that is
    /// at once, for nothing outlives the process.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// db.set("key", "value")?;
    /// db.sync()?;
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn sync(&self) -> Result<()> {
        self.store.sync()
    }

    /// What the store holds and what it costs.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// db.set("key", "value")?;
    /// assert_eq!(db.stats()?.keys, 1);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn stats(&self) -> Result<Stats> {
        self.store.stats()
    }

    /// What this home can do.
    ///
    /// ```
    /// use forrest::{Capability, Db};
    /// let capabilities = Db::open("memory:")?.capabilities();
    /// assert!(capabilities.has(Capability::Snapshots));
    /// assert!(!capabilities.has(Capability::Checkpoint));
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    /// Writes a copy of the store as it is now to a new directory, while it goes on.
    ///
    /// # Errors
    /// `Unsupported` with `memory:`.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// assert_eq!(db.checkpoint("/var/backups/forest").unwrap_err().kind(), forrest::ErrorKind::Unsupported);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn checkpoint(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref().display();
        Err(Error::unsupported(format!("a checkpoint to {path}: \"memory:\" has no files to copy")))
    }

    /// Reads everything stored and checks it.
    ///
    /// # Errors
    /// `Unsupported` with `memory:`.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// assert_eq!(db.verify().unwrap_err().kind(), forrest::ErrorKind::Unsupported);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn verify(&self) -> Result<()> {
        Err(Error::unsupported("verifying \"memory:\": it has no files to check"))
    }

    /// Rewrites the store so that it takes the least space.
    ///
    /// # Errors
    /// `Unsupported` with `memory:`.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// assert_eq!(db.compact().unwrap_err().kind(), forrest::ErrorKind::Unsupported);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn compact(&self) -> Result<()> {
        Err(Error::unsupported("compacting \"memory:\": it gives space back as keys go"))
    }
}

impl Deref for Db {
    type Target = Keyspace;
    fn deref(&self) -> &Keyspace {
        &self.default
    }
}

impl fmt::Debug for Db {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Db").field("home", &self.capabilities().home()).finish_non_exhaustive()
    }
}

fn check_name(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::invalid("a keyspace has a name of 1 byte at least"));
    }
    if name.len() > MAX_KEYSPACE_NAME_BYTES {
        return Err(Error::limit("keyspace name", "bytes", name.len(), MAX_KEYSPACE_NAME_BYTES));
    }
    Ok(())
}

/// One ordered map of a store. Cloning makes another handle to it. Reading is at [`View`], to which it
/// dereferences.
///
/// Each change is atomic by itself and seen by every read that starts after it has returned. Every method
/// fails with `Limit` if a key or value is too long, with `OutOfSpace` if there is no room, and with
/// `InvalidArgument` once the keyspace has been dropped; then nothing is changed. With `memory:` nothing
/// outlives the process, and a change waits only for changes of its neighbours and for a batch.
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
    space: engine::Space,
}

impl Keyspace {
    fn new(space: engine::Space) -> Keyspace {
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

    pub(crate) fn same_store(&self, other: &Keyspace) -> bool {
        self.space.same_store(&other.space)
    }

    /// True if both are handles to the same keyspace.
    pub(crate) fn is(&self, other: &Keyspace) -> bool {
        self.space.is(&other.space)
    }

    /// Makes one change. All the methods below are this one with a particular [`Op`].
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

    /// Maps a key to a value, whether it was there or not.
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

    /// Removes a key; true if it was there.
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
            other => unreachable!("a deletion answered {other:?}"),
        }
    }

    /// Adds to a counter and returns its new value. A counter is a value of 8 bytes, a big-endian two's
    /// complement integer; a key that is not there counts as 0.
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
            other => unreachable!("an addition answered {other:?}"),
        }
    }

    /// Replaces what a key maps to by `new` if it is `expected`, byte for byte; `None` is absence.
    ///
    /// ```
    /// use forrest::Swap;
    /// # let db = forrest::Db::open("memory:")?;
    /// assert_eq!(db.compare_and_swap("lock", None, Some(b"mine"))?, Swap::Done);
    /// match db.compare_and_swap("lock", None, Some(b"yours"))? {
    ///     Swap::Done => unreachable!(),
    ///     Swap::Mismatch(found) => assert_eq!(found.as_deref(), Some(&b"mine"[..])),
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
            other => unreachable!("a compare-and-swap answered {other:?}"),
        }
    }

    /// Replaces what a key maps to by what `f` makes of it (`None` is absence), and returns the new value. No
    /// change by others is lost: if one came in between, `f` is called again with what is there now. It
    /// may use the store.
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
                Swap::Done => return Ok(new.map(Value::from)),
                Swap::Mismatch(found) => old = found,
            }
        }
    }

    /// Removes all keys of a range at one instant, and returns how many there were.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// db.set("a", "")?;
    /// db.set("b", "")?;
    /// assert_eq!(db.delete_range("a"..="b")?, 2);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn delete_range(&self, bounds: impl KeyRange) -> Result<u64> {
        match self.apply(Op::delete_range(bounds))? {
            Outcome::DeletedRange(keys) => Ok(keys),
            other => unreachable!("a range deletion answered {other:?}"),
        }
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

/// One state of all keyspaces of a store. Cloning makes another handle to it. It dereferences to the
/// [`View`] of the default keyspace.
///
/// ```
/// # let db = forrest::Db::open("memory:")?;
/// db.set("key", "old")?;
/// let snapshot = db.snapshot()?;
/// db.delete("key")?;
/// assert_eq!(snapshot.count(..)?, 1);
/// assert_eq!(db.count(..)?, 0);
/// # Ok::<(), forrest::Error>(())
/// ```
#[derive(Clone)]
pub struct Snapshot {
    default: View,
    snapshot: engine::Snapshot,
}

impl Snapshot {
    /// The state of a keyspace. One that did not exist then reads as empty.
    ///
    /// # Errors
    /// As [`Db::keyspace`], for the name.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// db.keyspace("people")?.set("ada", "1815")?;
    /// let snapshot = db.snapshot()?;
    /// db.drop_keyspace("people")?;
    /// assert!(snapshot.keyspace("people")?.contains("ada")?);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn keyspace(&self, name: &str) -> Result<View> {
        check_name(name)?;
        Ok(View::new(self.snapshot.view(name)))
    }

    /// The names of the keyspaces that there were, sorted.
    pub fn keyspaces(&self) -> Result<Vec<String>> {
        Ok(self.snapshot.keyspaces())
    }
}

impl Deref for Snapshot {
    type Target = View;
    fn deref(&self) -> &View {
        &self.default
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Snapshot")
    }
}

//! [`Db`]: an open store; [`Snapshot`]: one past state of it.
//!
//! A `Db` is its default keyspace and more: it dereferences to it, and a keyspace to the [`View`] of its
//! newest state. So reading is in view.rs, changing a keyspace in keyspace.rs, and here is what concerns the
//! store as a whole. Lengths and names are checked up here; below, engines take them as right.

use crate::batch::WriteBatch;
use crate::builder::{Builder, WriteOptions};
#[cfg(feature = "disk")]
use crate::checkpoint::checkpoint;
use crate::engine;
use crate::keyspace::Keyspace;
use crate::url;
use crate::view::View;
use forrest_engine::{
    Capabilities, DEFAULT_KEYSPACE, Error, ErrorKind, MAX_KEYSPACE_NAME_BYTES, Options, Result,
    Snapshot as _, Stats, Store as _, Written,
};
use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::path::Path;

/// An open store. Cloning makes another handle to it; it may be used from many threads at once. It closes
/// when the last handle, keyspace, snapshot and iteration is gone.
///
/// It belongs to the process that opened it. In a child of `fork`, every call on a store on disk is an
/// `InvalidArgument` error, and dropping it does nothing.
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
    /// as its handles. A path is a store on disk, in a directory of its own, which is made if there is none.
    /// `"llds:NAME"` is a store in the memory of the kernel, which all who open it share, and which outlives them; it
    /// is made if there is none, and needs the kernel module. `"llds-user:NAME"` is the same engine in this process:
    /// one store for all who have it open at the same time, for tests; it needs the feature `llds-user`.
    ///
    /// A URL may end with `?durability=memory`, `?durability=buffered` or `?durability=sync`, which counts before what
    /// the builder says and is lowered to what the home keeps; see [`Builder::durability_at_most`]. Any other `?`
    /// belongs to the path or the name. A path that itself ends so is written with a second one: the last counts.
    ///
    /// Opening a store on disk reads its log, which takes time in proportion to what was not in tables yet, and waits
    /// for a few syncs.
    ///
    /// # Errors
    /// `InvalidArgument` if `url` names no home; `Unsupported` if its home was not built along, or if the
    /// store's files have a format version that this build does not read; `OutOfSpace` if
    /// there is no memory. In the kernel also `Io` if the module is not loaded or this user may not, with what to do
    /// about it. On disk also `Busy` if the store is open, in this process or another; `Corrupt`, with file and offset,
    /// if what is there is damaged; `Io`.
    ///
    /// ```
    /// use forrest::{Db, ErrorKind};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("forest");
    /// # let path = path.to_str().unwrap();
    ///
    /// assert!(Db::open("memory:").is_ok());
    /// assert_eq!(Db::open("mermory:").unwrap_err().kind(), ErrorKind::InvalidArgument);
    ///
    /// let db = Db::open(path)?; // a path like "/var/lib/forest"
    /// db.set("oak", "Quercus")?;
    /// assert_eq!(Db::open(path).unwrap_err().kind(), ErrorKind::Busy);
    /// drop(db);
    /// assert_eq!(Db::open(path)?.get("oak")?.as_deref(), Some(&b"Quercus"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(url: impl AsRef<str>) -> Result<Db> {
        Builder::default().open(url)
    }

    pub(crate) fn new(store: engine::Store, options: &Options) -> Result<Db> {
        let default = Keyspace::new(store.keyspace(DEFAULT_KEYSPACE)?);
        let Options { batch_ops_max, batch_bytes_max, .. } = *options;
        Ok(Db { default, store, batch_ops_max, batch_bytes_max })
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

    /// Opens a store that others may write to, for reading: one in the kernel. It must be there. Changes through this
    /// handle are `Unsupported` errors.
    ///
    /// # Errors
    /// `Unsupported` with `memory:`, whose content nobody else can have written, and on disk; otherwise as
    /// [`open`](Db::open).
    ///
    /// ```
    /// use forrest::{Db, ErrorKind};
    /// assert_eq!(Db::open_read_only("memory:").unwrap_err().kind(), ErrorKind::Unsupported);
    /// ```
    pub fn open_read_only(url: impl AsRef<str>) -> Result<Db> {
        let (home, _) = url::parse(url.as_ref())?;
        let options = Options::default();
        engine::open_read_only(&home, &options).and_then(|store| Db::new(store, &options))
    }

    /// Makes all changes of a batch at one instant, or none: no reader and no snapshot sees a part of it.
    /// Other writers wait meanwhile, readers do not. With `memory:` a change costs several times as much in a
    /// batch as by itself, because all that readers see is built beside what they see now: batches are for
    /// changes that belong together, not for speed.
    ///
    /// # Errors
    /// A batch that fails changes nothing, and [`Error::op`] says which operation failed. `ConditionFailed` if a
    /// [`compare_and_swap`](WriteBatch::compare_and_swap) in it found another value than it expected; see
    /// [`try_write`](Db::try_write) for that as a value. `Limit` for keys, values, or the batch's own limits (see
    /// [`Builder`]); `InvalidArgument` for an addition to something that is not a counter, or a keyspace that was
    /// dropped or belongs to another store; `OutOfSpace`.
    ///
    /// ```
    /// # use forrest::{Db, ErrorKind, WriteBatch};
    /// # let db = Db::open("memory:")?;
    /// let mut batch = WriteBatch::new();
    /// batch.set("a", "1").set("b", "2").delete_range("c"..);
    /// db.write(batch)?;
    /// assert_eq!(db.count(..)?, 2);
    ///
    /// let mut batch = WriteBatch::new();
    /// batch.delete("b").compare_and_swap("a", Some(b"0"), Some(b"2"));
    /// let error = db.write(batch).unwrap_err();
    /// assert_eq!((error.kind(), error.op()), (ErrorKind::ConditionFailed, Some(1)));
    /// assert_eq!(db.count(..)?, 2);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn write(&self, batch: impl Borrow<WriteBatch>) -> Result<()> {
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
    pub fn write_with(&self, batch: impl Borrow<WriteBatch>, options: &WriteOptions) -> Result<()> {
        match self.try_write_with(batch, options)? {
            Written::Applied => Ok(()),
            Written::Mismatch { op, .. } => {
                let message = "a value is not the one that the batch expects; nothing was changed";
                Err(Error::new(ErrorKind::ConditionFailed, message).at_op(op))
            }
        }
    }

    /// As [`write`](Db::write), but a comparison that does not hold is a value:
    /// [`Written::Mismatch`], with the operation and the value that it found.
    ///
    /// # Errors
    /// As `write`, without `ConditionFailed`.
    ///
    /// ```
    /// # use forrest::{Db, WriteBatch, Written};
    /// # let db = Db::open("memory:")?;
    /// db.set("door", "locked")?;
    /// let mut batch = WriteBatch::new();
    /// batch.set("visitors", "one more").compare_and_swap("door", Some(b"open"), Some(b"open"));
    /// match db.try_write(batch)? {
    ///     Written::Applied => unreachable!(),
    ///     Written::Mismatch { op, found } => assert_eq!((op, found.as_deref()), (1, Some(&b"locked"[..]))),
    /// }
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn try_write(&self, batch: impl Borrow<WriteBatch>) -> Result<Written> {
        self.try_write_with(batch, &WriteOptions::default())
    }

    /// As [`try_write`](Db::try_write), with its own durability.
    ///
    /// # Errors
    /// As [`write_with`](Db::write_with), without `ConditionFailed`.
    pub fn try_write_with(&self, batch: impl Borrow<WriteBatch>, options: &WriteOptions) -> Result<Written> {
        let batch = batch.borrow();
        batch.check(self, self.batch_ops_max, self.batch_bytes_max)?;
        let ops = batch.ops().map(|(keyspace, op)| (keyspace.unwrap_or(&self.default).space(), op));
        self.store.write(ops, options.durability)
    }

    /// One state of all keyspaces, to be read while the store goes on. Taking it copies nothing; it waits for the
    /// changes that are being made at that moment. While it or a view or range of it lives, what has been
    /// replaced since is kept in memory.
    ///
    /// # Errors
    /// `Unsupported` in the kernel.
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
    /// [`MAX_KEYSPACES`](crate::MAX_KEYSPACES) already; `OutOfSpace`; in the kernel `Unsupported` for all but the
    /// default one.
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

    /// Returns when everything written before is as durable as this home can make it. On disk it survives power loss
    /// then. With `memory:` that is at once, for nothing outlives the process.
    ///
    /// # Errors
    /// `Io` if the device reports a failure, and `Stopped` if it did so before: the store takes no writes then until it
    /// is opened again.
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
    /// assert!(!capabilities.has(Capability::Verify));
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    /// Writes a copy of the store, as it is at one moment of this call, to a new directory, which [`Db::open`] opens as
    /// a store on disk of its own. The store goes on meanwhile, and no reader or writer waits. All that was
    /// acknowledged before is in it, with whatever durability, and of a batch all or nothing. It is durable when this
    /// returns.
    ///
    /// At `path` there must be nothing, or an empty directory, whose place it takes; what it is to lie in must be
    /// there. Until it is whole, it is called `PATH.checkpoint-unfinished`, which is all that a crash may leave, and
    /// which the next checkpoint to the same path removes.
    ///
    /// A store on disk is copied in time proportional to what of it is in memory and not in tables: tables never
    /// change, so both stores have the same files (hard links), and what the one no longer needs stays with the other.
    /// To a path on another file system everything is copied; that is what also helps if the device fails. A store that
    /// has [`Stopped`](crate::ErrorKind::Stopped), or has no room, can be copied as well. Of `memory:` everything is
    /// written.
    ///
    /// # Errors
    /// Nothing is left of a checkpoint that fails. `InvalidArgument` if something is at `path`, if that lies within the
    /// store's own directory, or is no path; `Busy` if another checkpoint is just being made there; `OutOfSpace`; `Io`;
    /// `Limit` for a value in memory that is longer than values on disk may be; `Unsupported` in the kernel, where
    /// there is no snapshot.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("backup");
    /// # let path = path.to_str().unwrap();
    /// use forrest::{Db, ErrorKind};
    /// let db = Db::open("memory:")?;
    /// db.set("oak", "Quercus")?;
    /// db.checkpoint(path)?;
    /// db.set("oak", "Quercus robur")?;
    /// assert_eq!(Db::open(path)?.get("oak")?.as_deref(), Some(&b"Quercus"[..]));
    /// assert_eq!(db.checkpoint(path).unwrap_err().kind(), ErrorKind::InvalidArgument); // it is there
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn checkpoint(&self, path: impl AsRef<Path>) -> Result<()> {
        #[cfg(feature = "disk")]
        return checkpoint(&self.store, path.as_ref());
        #[cfg(not(feature = "disk"))]
        Err(Error::unsupported(format!(
            "a checkpoint to \"{}\": this build has no stores on disk; build with the feature `disk` of forrest",
            path.as_ref().display()
        )))
    }

    /// Reads everything stored and checks it, past all caches. Takes time in proportion to the store.
    ///
    /// # Errors
    /// `Corrupt` with file and offset of the first damage; `Unsupported` in memory and in the kernel.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("forest");
    /// # let path = path.to_str().unwrap();
    /// use forrest::{Db, ErrorKind};
    /// Db::open(path)?.verify()?;
    /// assert_eq!(Db::open("memory:")?.verify().unwrap_err().kind(), ErrorKind::Unsupported);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn verify(&self) -> Result<()> {
        self.store.verify()
    }

    /// Writes what is in memory out and merges tables, so that the store takes the least space and its logs are empty.
    /// Takes time in proportion to the store; writers wait at times.
    ///
    /// # Errors
    /// `Io`, `OutOfSpace`, `Stopped`; `Unsupported` in memory and in the kernel.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("forest");
    /// # let path = path.to_str().unwrap();
    /// use forrest::{Db, ErrorKind};
    /// let db = Db::open(path)?;
    /// db.set("oak", "Quercus")?;
    /// db.compact()?;
    /// assert_eq!(db.stats()?.tables, 1);
    /// assert_eq!(Db::open("memory:")?.compact().unwrap_err().kind(), ErrorKind::Unsupported);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compact(&self) -> Result<()> {
        self.store.compact()
    }
}

impl Builder {
    /// Opens the store; see [`Db::open`].
    ///
    /// # Errors
    /// As [`Db::open`]; `InvalidArgument` if a knob is out of its limits.
    pub fn open(&self, url: impl AsRef<str>) -> Result<Db> {
        let (home, asked) = url::parse(url.as_ref())?;
        self.options.check()?;
        let mut options = self.options.clone();
        if let Some(level) = asked.or(self.durability_at_most) {
            options.durability = Some(level.min(home.durability_max()));
        }
        engine::open(&home, &options).and_then(|store| Db::new(store, &options))
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

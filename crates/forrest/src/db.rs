//! [`Db`]: an open store. [`Snapshot`]: one past state of it.
//!
//! A `Db` dereferences to its default keyspace, and a keyspace to the [`View`] of its newest state. So
//! view.rs has all reads, keyspace.rs the changes of one keyspace, and this file the operations on the whole
//! store. Lengths and names are checked in this crate; engines rely on that.

#[cfg(feature = "disk")]
use crate::backup::{Backup, BackupOptions, back_up};
use crate::batch::WriteBatch;
use crate::builder::{Builder, Sizes, WriteOptions};
use crate::changes::OptionChanges;
#[cfg(feature = "disk")]
use crate::checkpoint::checkpoint;
use crate::draft::Shared;
use crate::engine;
use crate::keyspace::Keyspace;
use crate::locks::Locks;
#[cfg(feature = "disk")]
use crate::salvage::Progress;
use crate::stream::Changes;
use crate::url;
use crate::view::View;
use forrest_engine::{
    Capabilities, Capability, DEFAULT_KEYSPACE, Durability, Error, ErrorKind, MAX_KEYSPACE_NAME_BYTES,
    Metrics, Options, Result, Snapshot as _, Stats, Store as _, Written,
};
use std::borrow::Borrow;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
#[cfg(feature = "disk")]
use std::ops::ControlFlow;
use std::ops::Deref;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// An open store. A clone is another handle to the same store, and many threads may use a handle at once. The
/// store closes when the last handle, keyspace, snapshot and iteration is dropped. On disk that may take a second,
/// while what is in memory becomes tables, so that the next opening has little to replay.
///
/// A store belongs to the process that opened it. In a child of `fork`, every call on a store on disk or in memory
/// fails with `InvalidArgument`, and dropping the handle does nothing.
///
/// A `Db` has the methods of [`Keyspace`] and [`View`]. They act on the keyspace [`DEFAULT_KEYSPACE`].
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
    batches: Arc<BatchLimits>,
    locks: Arc<Locks>,
    /// The durability of changes that name none.
    durability: Durability,
    /// The sizes that were given, at opening or later.
    sizes: Arc<Mutex<Sizes>>,
    /// A random number, which tells this opening of the store from all others.
    opening: u64,
}

/// The limits of batches, for all handles of the store.
struct BatchLimits {
    ops_max: AtomicUsize,
    bytes_max: AtomicUsize,
}

impl Db {
    /// Opens a store with the defaults of [`Builder`]. The URL selects the home:
    ///
    /// - `"memory:"`: a new, empty store that lives as long as its handles.
    /// - a path: a store on disk, in the directory of that name, created if missing.
    /// - `"llds:NAME"`: a store in kernel memory, created if missing. All processes that open it share it,
    ///   and it outlives them. It needs the kernel module.
    /// - `"llds-user:NAME"`: the engine of the kernel module in this process, for tests. All handles that are
    ///   open at the same time share one store. It needs the feature `llds-user`.
    ///
    /// A URL may end with `?durability=memory`, `?durability=buffered` or `?durability=sync`. This overrides
    /// the builder's durability and is lowered to the strongest level of the home; see
    /// [`Builder::durability_at_most`]. Any other `?` is part of the path or name. If a path itself ends with
    /// such a parameter, append another one: only the last one counts.
    ///
    /// Opening a store on disk replays its log, in time proportional to the changes that are not in tables
    /// yet, and waits for a few syncs.
    ///
    /// # Errors
    /// `InvalidArgument` if `url` names no home; `Unsupported` if its home is not compiled in, or if the
    /// store's files have a format version that this build does not read; `OutOfSpace` if memory runs out. In
    /// the kernel also `Io` if the module is not loaded or this user lacks the permission; the message says
    /// what to do. On disk also `Busy` if the store is already open, in this process or another; `Corrupt`,
    /// with file and offset, if a file is damaged; `Io`.
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

    pub(crate) fn new(store: engine::Store, options: &Options, sizes: Sizes) -> Result<Db> {
        let default = Keyspace::new(store.keyspace(DEFAULT_KEYSPACE)?);
        // Where there is compression, it is chosen already. Other homes refuse it.
        if let Some(compression) = options.compression.filter(|_| !options.read_only)
            && !store.capabilities().has(Capability::Compression)
        {
            default.set_compression(compression)?;
        }
        let (ops_max, bytes_max) = (options.batch_ops_max.into(), options.batch_bytes_max.into());
        let batches = Arc::new(BatchLimits { ops_max, bytes_max });
        let locks = Arc::new(Locks::default());
        let durability = options.durability.unwrap_or(Durability::Buffered);
        let (sizes, opening) = (Arc::new(Mutex::new(sizes)), RandomState::new().hash_one(0));
        Ok(Db { default, store, batches, locks, durability, sizes, opening })
    }

    /// A random number, which tells this opening of the store from all others.
    pub(crate) fn opening(&self) -> u64 {
        self.opening
    }

    /// Waits until a number of transactions wait for locks.
    #[cfg(test)]
    pub(crate) fn until_waiting(&self, count: usize) {
        while self.locks.waiting() < count {
            std::thread::yield_now();
        }
    }

    /// The limits and locks of a new transaction.
    pub(crate) fn shared_of_transaction(&self) -> Shared {
        let (ops_max, bytes_max) = self.batch_limits();
        Shared::new(ops_max, bytes_max, self.locks.clone())
    }

    /// A [`Builder`], which opens a store with other options than the defaults.
    ///
    /// ```
    /// let db = forrest::Db::builder().capacity_bytes(1 << 30).open("memory:")?;
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Opens an existing store in the kernel or on disk for reading only, also while another process writes to it. Any
    /// number of processes may do so. Changes through this handle fail with `Unsupported`.
    ///
    /// On disk the handle sees the store as it was when it was opened, until [`refresh`](Db::refresh) is called: all
    /// changes up to some moment that were `Buffered` or stronger, and `Memory` changes once the operating system has
    /// them. Opening writes nothing, so a store on a read-only file system can be read, and a store on a full one.
    ///
    /// The handle keeps the files of the state that it sees: until it is refreshed or dropped, or its process dies, the
    /// writer does not remove them, and they take space ([`Stats::held_bytes`](crate::Stats::held_bytes) of the
    /// writer). They are kept by a lock on a file (`flock`), which all processes must see: on a network file system
    /// they may not.
    ///
    /// # Errors
    /// `Unsupported` with `memory:`, which would always be empty; otherwise as [`open`](Db::open), but never `Busy`.
    ///
    /// ```
    /// use forrest::{Db, ErrorKind};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("forest");
    /// # let path = path.to_str().unwrap();
    /// let writer = Db::open(path)?;
    /// writer.set("oak", "Quercus")?;
    ///
    /// let reader = Db::open_read_only(path)?;
    /// assert_eq!(reader.get("oak")?.as_deref(), Some(&b"Quercus"[..]));
    /// assert_eq!(reader.set("elm", "Ulmus").unwrap_err().kind(), ErrorKind::Unsupported);
    ///
    /// writer.set("elm", "Ulmus")?;
    /// assert!(!reader.contains("elm")?);
    /// reader.refresh()?;
    /// assert!(reader.contains("elm")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open_read_only(url: impl AsRef<str>) -> Result<Db> {
        Builder::default().open_read_only(url)
    }

    /// Takes over what a writer has changed, if the store is on disk and was opened by
    /// [`open_read_only`](Db::open_read_only). All reads see the new state from then on, except through snapshots and
    /// cursors that exist. Other stores see every change at once, and the call does nothing.
    ///
    /// It reads the end of the log, or all of it if the writer has made tables of it since the last call.
    ///
    /// # Errors
    /// `Corrupt`, `Io`, `OutOfSpace`. The store then stays as it was.
    pub fn refresh(&self) -> Result<()> {
        self.store.refresh()
    }

    /// Gives memory that a store in memory does not use back to the system. Other stores do nothing.
    ///
    /// Deleted and replaced pairs are freed once no read that was running then is left; the next changes and batches
    /// see to that, and keep a few MiB for later ones. The store has no background thread. So call this after many
    /// changes beside a long [`scan`](View::scan), if no changes follow. It waits for nothing.
    ///
    /// # Errors
    /// `InvalidArgument` in a child of `fork`.
    ///
    /// ```
    /// let db = forrest::Db::open("memory:")?;
    /// (0..100_000u32).try_for_each(|key| db.set(key.to_be_bytes(), "value"))?;
    /// db.delete_range(..)?;
    /// db.trim()?;
    /// assert!(db.stats()?.reserved_bytes <= 2 << 20);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn trim(&self) -> Result<()> {
        self.store.trim()
    }

    /// Applies all changes of a batch at one instant, or none: no reader and no snapshot sees a part of it.
    /// Other writers wait meanwhile, readers do not. With `memory:` a change in a batch costs about as much as a
    /// single one, and a small batch a few microseconds more. Use batches for changes that belong together, not for
    /// speed.
    ///
    /// # Errors
    /// A batch that fails changes nothing, and [`Error::op`] returns the number of the operation that failed.
    /// `ConditionFailed` if a [`compare_and_swap`](WriteBatch::compare_and_swap) of the batch found another
    /// value than it expected; [`try_write`](Db::try_write) returns this as a value. `Limit` for keys,
    /// values, or the limits of a batch (see [`Builder`]); `InvalidArgument` for an addition to a value that
    /// is not a counter, or a keyspace that was dropped or belongs to another store; `OutOfSpace`.
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

    /// Like [`write`](Db::write), with the durability in `options`.
    ///
    /// # Errors
    /// As `write`; `Unsupported` if the home does not have this durability: `memory:` has
    /// [`Durability::Memory`](crate::Durability::Memory) only.
    ///
    /// ```
    /// use forrest::{Db, Durability, ErrorKind, WriteBatch, WriteOptions};
    /// let db = Db::open("memory:")?;
    /// let options = WriteOptions::new().durability(Durability::Sync);
    /// assert_eq!(db.write_with(WriteBatch::new(), &options).unwrap_err().kind(), ErrorKind::Unsupported);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn write_with(&self, batch: impl Borrow<WriteBatch>, options: &WriteOptions) -> Result<()> {
        match self.try_write_with(batch, options)? {
            Written::Mismatch { op, .. } => {
                let message = "a value differs from the one that the batch expects; nothing was changed";
                Err(Error::new(ErrorKind::ConditionFailed, message).at_op(op))
            }
            Written::Applied => Ok(()),
            other => unreachable!("a batch came to {other:?}"),
        }
    }

    /// Like [`write`](Db::write), but returns a failed comparison as a value, not as an error:
    /// [`Written::Mismatch`], with the number of the operation and the value that it found.
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
    ///     Written::Mismatch { op, found } => assert_eq!((op, found.as_deref()), (1, Some(&b"locked"[..]))),
    ///     other => unreachable!("{other:?}"),
    /// }
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn try_write(&self, batch: impl Borrow<WriteBatch>) -> Result<Written> {
        self.try_write_with(batch, &WriteOptions::default())
    }

    /// Like [`try_write`](Db::try_write), with the durability in `options`.
    ///
    /// # Errors
    /// As [`write_with`](Db::write_with), without `ConditionFailed`.
    pub fn try_write_with(&self, batch: impl Borrow<WriteBatch>, options: &WriteOptions) -> Result<Written> {
        let batch = batch.borrow();
        let (ops_max, bytes_max) = self.batch_limits();
        batch.check(self, ops_max, bytes_max)?;
        let ops = batch.ops().map(|(keyspace, op)| (keyspace.unwrap_or(&self.default).space(), op));
        self.store.write(ops, options.durability)
    }

    /// The most operations and the most bytes that a batch of this store may have, as
    /// [`batch_ops_max`](Builder::batch_ops_max) and [`batch_bytes_max`](Builder::batch_bytes_max) say: for programs
    /// that collect changes without an end of their own.
    ///
    /// ```
    /// # use forrest::Db;
    /// let db = Db::builder().batch_ops_max(10).batch_bytes_max(100).open("memory:")?;
    /// assert_eq!(db.batch_limits(), (10, 100));
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn batch_limits(&self) -> (usize, usize) {
        // ORDERING: each limit stands for itself.
        (self.batches.ops_max.load(Relaxed), self.batches.bytes_max.load(Relaxed))
    }

    /// Takes a snapshot: one state of all keyspaces, to read while the store changes. It copies nothing, and
    /// waits only for changes in progress. While the snapshot, a view or a range of it lives, the store keeps
    /// the values that have been replaced since.
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

    /// The changes after sequence number `since`, in their order, at the durability of the store's changes; see
    /// [`changes_with`](Db::changes_with). With 0, all changes since the store was created.
    ///
    /// To copy a store, take a snapshot, and go on with the changes after [`Snapshot::sequence`]. None is missing then,
    /// and none comes twice:
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("forest");
    /// # let path = path.to_str().unwrap();
    /// use forrest::{Db, What};
    /// let db = Db::builder().history(true).open(path)?;
    /// db.set("oak", "Quercus")?;
    /// let snapshot = db.snapshot()?;
    /// db.set("elm", "Ulmus")?;
    /// db.delete("oak")?;
    ///
    /// let copy = Db::open("memory:")?;
    /// for entry in snapshot.range(..) {
    ///     let entry = entry?;
    ///     copy.set(entry.key(), entry.value()?)?;
    /// }
    /// for change in db.changes(snapshot.sequence()?)? {
    ///     let change = change?;
    ///     let keyspace = copy.keyspace(&change.keyspace)?;
    ///     match change.what {
    ///         What::Set { key, value } => keyspace.set(key, value)?,
    ///         What::Delete { key } => drop(keyspace.delete(key)?),
    ///         other => unimplemented!("{other:?}"),
    ///     }
    /// }
    /// assert_eq!(copy.get("elm")?.as_deref(), Some(&b"Ulmus"[..]));
    /// assert!(!copy.contains("oak")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`changes_with`](Db::changes_with).
    pub fn changes(&self, since: u64) -> Result<Changes> {
        self.changes_with(since, self.durability)
    }

    /// The changes after sequence number `since`, in their order, each as soon as it is this durable and visible to
    /// reads. On disk, with the option [`history`](Builder::history).
    ///
    /// - `Memory`: all of them. Those that wait in memory are written to the log first.
    /// - `Buffered`: those that the operating system has. The end of a process takes none back.
    /// - `Sync`: those that the device has. A power cut takes none back. Nothing is synced for it: they come when
    ///   a change or [`sync`](Db::sync) has waited for the device, or when they have become tables.
    ///
    /// A place is a sequence number, and holds for this store for ever: across restarts, and, for what came as `Sync`,
    /// power cuts. A power cut may take later changes, and others get their numbers. So keep a place of `Sync` if it
    /// has to be right after that. A checkpoint is another store, whose history begins when it is first changed.
    ///
    /// A process that has opened the store to read it follows another one, by what is in the log. It learns with the
    /// next change, or a tenth of a second later, that a change was synced. What it gets may be newer than what its
    /// reads see before [`refresh`](Db::refresh).
    ///
    /// # Errors
    /// `Gone` if changes after `since` are no longer kept, or were never kept, or if the store never had as many;
    /// `InvalidArgument` without the option; `Unsupported` in memory and in the kernel; `Io`, `Corrupt`, `OutOfSpace`.
    pub fn changes_with(&self, since: u64, durability: Durability) -> Result<Changes> {
        Ok(Changes::new(self.store.changes(since, durability)?, since))
    }

    /// Opens a keyspace, and creates it if it is missing. Threads that do so at the same time get the same
    /// keyspace.
    ///
    /// # Errors
    /// `InvalidArgument` if the name is empty; `Limit` if it exceeds [`MAX_KEYSPACE_NAME_BYTES`], or the
    /// store already has [`MAX_KEYSPACES`](crate::MAX_KEYSPACES); `OutOfSpace`; in the kernel `Unsupported`
    /// for all but the default keyspace.
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

    /// Removes a keyspace with all its pairs. Returns false if there is no keyspace of that name. Handles to
    /// it fail with `InvalidArgument` from then on, even if a new keyspace gets the same name. Snapshots
    /// still have it.
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

    /// Makes everything written before as durable as this home can, and then returns. On disk it then
    /// survives a loss of power. With `memory:` this returns at once, because nothing outlives the process.
    ///
    /// # Errors
    /// `Io` if the device reports a failure. After such a failure the store takes no writes until it is
    /// opened again, and fails with `Stopped`.
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

    /// Statistics: the number of keys, memory, files and others.
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

    /// What a store on disk has done since this process opened it: changes, bytes written, flushes, merges, waits and
    /// the cache. [`Builder::listener`] tells of it as it happens.
    ///
    /// # Errors
    /// `Unsupported` in the other homes, which have no such work.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("forest");
    /// # let path = path.to_str().unwrap();
    /// let db = forrest::Db::open(path)?;
    /// db.set("oak", "Quercus robur")?;
    /// db.flush()?;
    /// let metrics = db.metrics()?;
    /// assert_eq!((metrics.changes, metrics.flushes.count), (1, 1));
    /// print!("{metrics}{}", metrics.prometheus(&db.stats()?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn metrics(&self) -> Result<Metrics> {
        self.store.metrics()
    }

    /// The features that this home has.
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

    /// Writes a checkpoint: a copy of the store, as it is at one moment of this call, in a new directory.
    /// [`Db::open`] opens it as an independent store on disk. Readers and writers do not wait meanwhile. The
    /// copy has every change that was acknowledged before, at any durability, and each batch whole or not at
    /// all. It is durable when this returns.
    ///
    /// `path` must not exist, or be an empty directory, which is replaced; its parent directory must exist.
    /// Until the copy is complete, its name is `PATH.checkpoint-unfinished`. A crash leaves at most this
    /// directory, and the next checkpoint to the same path removes it.
    ///
    /// Copying a store on disk takes time proportional to the data that is in memory and not yet in tables.
    /// Tables never change, so both stores share their files (hard links), and each file stays as long as one
    /// of them needs it. On another file system everything is copied; only this protects against a failing
    /// device. A store that has [`Stopped`](crate::ErrorKind::Stopped) or is out of space can be copied as
    /// well. A store in memory is written completely.
    ///
    /// # Errors
    /// A checkpoint that fails leaves nothing. `InvalidArgument` if `path` exists and is not an empty
    /// directory, lies within the store's own directory, or is a URL; `Busy` if another checkpoint to it is
    /// in progress; `OutOfSpace`; `Io`; `Limit` for a value in memory that is too long for a store on disk;
    /// `Unsupported` in the kernel, which has no snapshots.
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
            "checkpoint to \"{}\": this build has no stores on disk; build with the feature `disk` of forrest",
            path.as_ref().display()
        )))
    }

    /// Adds a backup of the store, as it is at one moment of this call, to a directory of backups, which is made if it
    /// is missing (its parent must exist). Only what no earlier backup there has is copied: new tables, and what is in
    /// memory. Readers and writers do not wait meanwhile. The backup has what a [checkpoint](Db::checkpoint) would
    /// have. When this returns, it survives power loss. Every table is verified while it is copied.
    ///
    /// [`restore`](crate::restore) makes a store of a backup, [`backups`](crate::backups) lists them,
    /// [`verify_backup`](crate::verify_backup) reads and checks one, [`prune`](crate::prune) removes old ones.
    ///
    /// A backup is independent of the store: nothing is shared by links. The directory has nothing else, and must not
    /// be within that of the store. The call takes time in proportion to the bytes that are new, and at most
    /// `background_bytes_per_second` of them a second, if that is set. A store that has stopped, is out of space or is
    /// only read can be backed up as well.
    ///
    /// # Errors
    /// `InvalidArgument` if the directory has other files, or its newest backup is of another store; `Busy` if
    /// another backup or prune there is in progress; `Corrupt` if a table of the store is damaged; `OutOfSpace`; `Io`;
    /// `Unsupported` for homes other than disk. The backups that were there stay whole, and what was copied is removed,
    /// at the latest by the next backup.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let (path, backups) = (directory.path().join("trees"), directory.path().join("backups"));
    /// # let new = directory.path().join("restored");
    /// use forrest::{Db, Keep};
    /// let db = Db::open(path.to_str().unwrap())?;
    /// db.set("oak", "Quercus")?;
    /// let monday = db.backup(&backups)?;
    /// db.set("oak", "Quercus robur")?;
    /// db.backup(&backups)?;
    /// assert_eq!(forrest::backups(&backups)?.len(), 2);
    ///
    /// forrest::restore(&backups, Some(monday.id), &new)?;
    /// assert_eq!(Db::open(new.to_str().unwrap())?.get("oak")?.as_deref(), Some(&b"Quercus"[..]));
    /// assert_eq!(forrest::prune(&backups, Keep::Newest(1))?.removed, [monday.id]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "disk")]
    pub fn backup(&self, directory: impl AsRef<Path>) -> Result<Backup> {
        self.backup_with(directory, &BackupOptions::default(), |_| ControlFlow::Continue(()))
    }

    /// The same with options. Calls `see` now and then with how far it is; if `see` breaks, the backup ends and leaves
    /// nothing.
    ///
    /// # Errors
    /// As [`backup`](Db::backup); also `Busy` if `see` broke.
    #[cfg(feature = "disk")]
    pub fn backup_with(
        &self,
        directory: impl AsRef<Path>,
        options: &BackupOptions,
        mut see: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Backup> {
        back_up(&self.store, directory.as_ref(), options, &mut see)
    }

    /// Replaces the key that opens an encrypted store on disk. It encrypts no data again, but the file with the data
    /// keys, and so takes as long as a few syncs. New files are not made meanwhile. When it returns, only the new key
    /// opens the store, also after power loss. Checkpoints and backups that were made before still need the old one. A
    /// copy of the store and the old key together still open it: the [data key](Db::rotate_data_key) stays.
    ///
    /// # Errors
    /// `InvalidArgument` if the store is not encrypted; `Unsupported` for homes other than disk, and if the store can
    /// only be read; `OutOfSpace`; `Io`. After `Io` either key may be the one that opens the store; open it again.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("forest");
    /// # let path = path.to_str().unwrap();
    /// use forrest::{Db, EncryptionKey};
    /// let (old, new) = (EncryptionKey::from_bytes([7; 32]), EncryptionKey::from_bytes([8; 32]));
    /// Db::builder().encryption_key(old.clone()).open(path)?.rotate_key(&new)?;
    /// assert!(Db::builder().encryption_key(old).open(path).is_err());
    /// Db::builder().encryption_key(new).open(path)?.rotate_data_key()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "encryption")]
    pub fn rotate_key(&self, key: &forrest_engine::EncryptionKey) -> Result<()> {
        match &self.store {
            engine::Store::Disk(store) => store.rotate_key(key),
            #[cfg(any(feature = "memory", feature = "llds"))]
            _ => Err(not_encrypted()),
        }
    }

    /// The key that opens the store; `None` if it is not encrypted.
    pub(crate) fn encryption_key(&self) -> Option<forrest_engine::EncryptionKey> {
        match &self.store {
            #[cfg(feature = "disk")]
            engine::Store::Disk(store) => store.encryption_key(),
            #[cfg(any(feature = "memory", feature = "llds"))]
            _ => None,
        }
    }

    /// Adds a random data key to an encrypted store on disk. Files that are made from now on are encrypted with it.
    /// Older ones keep their key until they are written again: logs and tables when tables are made and merged, which
    /// for a table that nothing changes may be never. Data keys of which no file is left are dropped. Durable when it
    /// returns.
    ///
    /// # Errors
    /// As [`rotate_key`](Db::rotate_key); `Limit` if 4,096 data keys are in use.
    #[cfg(feature = "encryption")]
    pub fn rotate_data_key(&self) -> Result<()> {
        match &self.store {
            engine::Store::Disk(store) => store.rotate_data_key(),
            #[cfg(any(feature = "memory", feature = "llds"))]
            _ => Err(not_encrypted()),
        }
    }

    /// Reads all files and verifies their checksums, without using any cache. Takes time proportional to the
    /// size of the store.
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

    /// Accepts changes again after a failure of the disk that has stopped the store, without opening it again: once
    /// there is space, or the disk works. Does nothing if the store is not stopped, and in memory and in the kernel.
    ///
    /// No failed write or sync is repeated on the same file. Instead, everything in memory is written to new tables,
    /// with a new manifest and a new log. When this returns, all changes that reads show have survived a loss of power.
    /// Among them are changes whose calls have failed after they were applied: a caller that got `Io` or `Stopped` for
    /// a change reads the store to learn whether it was made. A batch is there as a whole or not at all. Takes time in
    /// proportion to what is in memory.
    ///
    /// # Errors
    /// `Stopped` if the store has to be opened again, because the first sync after opening has failed. Otherwise the
    /// failure, if it is still there: the store stays stopped, and may be resumed later. `InvalidArgument` in a child
    /// of `fork`; `Unsupported` if it was opened to be read.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("forest");
    /// # let path = path.to_str().unwrap();
    /// use forrest::{Db, ErrorKind};
    /// let db = Db::open(path)?;
    /// match db.set("oak", "Quercus") {
    ///     Err(error) if error.kind() == ErrorKind::Stopped => {
    ///         db.resume()?;
    ///         db.set("oak", "Quercus")?;
    ///     }
    ///     done => done?,
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn resume(&self) -> Result<()> {
        self.store.resume()
    }

    /// Changes sizes and limits of the open store, for all its handles, until it is closed. [`OptionChanges`] has the
    /// options that can be changed, and says when each change takes effect: at once, where it does not say otherwise.
    /// All other options need the store to be opened again.
    ///
    /// # Errors
    /// `InvalidArgument` for a value that opening would refuse, also a `memory_bytes` below the `memtable_bytes` and
    /// `cache_bytes` that were given at opening or here; `Limit` for a cache larger than this store can have;
    /// `Unsupported` for an option that the home does not have: in memory and in the kernel, all but the limits of
    /// batches. Nothing is changed then.
    ///
    /// ```
    /// use forrest::{Db, ErrorKind, OptionChanges, WriteBatch};
    /// let db = Db::open("memory:")?;
    /// db.set_options(&OptionChanges::new().batch_ops_max(1))?;
    /// let mut batch = WriteBatch::new();
    /// batch.set("a", "1").set("b", "2");
    /// assert_eq!(db.write(batch).unwrap_err().kind(), ErrorKind::Limit);
    ///
    /// let changes = OptionChanges::new().cache_bytes(1 << 20);
    /// assert_eq!(db.set_options(&changes).unwrap_err().kind(), ErrorKind::Unsupported);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn set_options(&self, changes: &OptionChanges) -> Result<()> {
        // One thread at a time, so that what is given is what is in force.
        let mut sizes = self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        let (changes, given) = changes.resolved(*sizes)?;
        self.store.set_options(&changes)?;
        *sizes = given;
        if let Some(ops) = changes.batch_ops_max {
            self.batches.ops_max.store(ops, Relaxed);
        }
        if let Some(bytes) = changes.batch_bytes_max {
            self.batches.bytes_max.store(bytes, Relaxed);
        }
        Ok(())
    }

    /// Finishes the background work that earlier changes have left, so that the next opening and its first reads are
    /// fast: writes memtables that are worth it to tables, and indexes to their files. Call it after a bulk load. Does
    /// nothing in memory and in the kernel.
    ///
    /// # Errors
    /// `Io`, `OutOfSpace`, `Stopped`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("forest");
    /// # let path = path.to_str().unwrap();
    /// let db = forrest::Db::open(path)?;
    /// for number in 0..10_000_u32 {
    ///     db.set(number.to_be_bytes(), "tree")?;
    /// }
    /// db.settle()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn settle(&self) -> Result<()> {
        self.store.settle()
    }

    /// Moves all changes from memory and logs to tables. When this returns, they survive a loss of power, the logs are
    /// empty, and the next opening reads none. Takes time proportional to the changes since the last flush. In memory
    /// and in the kernel it does nothing, because there are no tables.
    ///
    /// A store does this by itself when a memtable is full, or when nothing was written for a while. To make changes
    /// durable, [`sync`](Db::sync) is faster.
    ///
    /// # Errors
    /// `Io`, `OutOfSpace`, `Stopped`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("forest");
    /// # let path = path.to_str().unwrap();
    /// let db = forrest::Db::open(path)?;
    /// db.set("oak", "Quercus")?;
    /// db.flush()?;
    /// assert_eq!(db.stats()?.tables, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn flush(&self) -> Result<()> {
        self.store.flush()
    }

    /// Writes the memtables to tables and merges all tables, so that the store takes the least space and its
    /// logs are empty. Takes time proportional to the size of the store. Writers may be delayed meanwhile.
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
    /// As [`Db::open`]; `InvalidArgument` if an option is outside its limits.
    pub fn open(&self, url: impl AsRef<str>) -> Result<Db> {
        let (home, asked) = url::parse(url.as_ref())?;
        let mut options = self.resolved();
        options.check()?;
        if let Some(level) = asked.or(self.durability_at_most) {
            options.durability = Some(level.min(home.durability_max()));
        }
        engine::open(&home, &options).and_then(|store| Db::new(store, &options, self.sizes))
    }

    /// The key that an open store has at this moment; none if that is not encrypted. So code that is given a `Db`, and
    /// no key, can open its [checkpoints](Db::checkpoint). A checkpoint that was made before
    /// [`rotate_key`](Db::rotate_key) needs the key of that time.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("copy");
    /// # let path = path.to_str().unwrap();
    /// use forrest::Db;
    ///
    /// let db = Db::open("memory:")?;
    /// db.set("pine", "1")?;
    /// db.checkpoint(path)?;
    /// assert!(Db::builder().encryption_key_of(&db).open_read_only(path)?.contains("pine")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn encryption_key_of(mut self, db: &Db) -> Builder {
        self.options.encryption_key = db.encryption_key();
        self
    }

    /// Opens the store for reading only; see [`Db::open_read_only`]. Options for changes have no effect.
    ///
    /// # Errors
    /// As [`Db::open_read_only`]; `InvalidArgument` if an option is outside its limits.
    pub fn open_read_only(&self, url: impl AsRef<str>) -> Result<Db> {
        let (home, _) = url::parse(url.as_ref())?;
        let options = self.resolved();
        options.check()?;
        engine::open_read_only(&home, &options).and_then(|store| Db::new(store, &options, self.sizes))
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
        return Err(Error::invalid("the keyspace name is empty"));
    }
    if name.len() > MAX_KEYSPACE_NAME_BYTES {
        return Err(Error::limit("keyspace name", "bytes", name.len(), MAX_KEYSPACE_NAME_BYTES));
    }
    Ok(())
}

/// One state of all keyspaces of a store, made by [`Db::snapshot`]. A clone is another handle to it. It
/// dereferences to the [`View`] of the default keyspace.
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
    /// The view of a keyspace in this snapshot. A keyspace that did not exist then reads as empty.
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

    /// The names of the keyspaces that existed then, sorted.
    pub fn keyspaces(&self) -> Result<Vec<String>> {
        Ok(self.snapshot.keyspaces())
    }

    /// The sequence number of the last change that it has: [`Db::changes`] after it returns those that it lacks.
    ///
    /// # Errors
    /// `Unsupported` in memory and in the kernel.
    pub fn sequence(&self) -> Result<u64> {
        let sequence = self.snapshot.sequence();
        sequence.ok_or_else(|| {
            Error::unsupported("the sequence number of a snapshot: only stores on disk have it")
        })
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

#[cfg(all(feature = "encryption", any(feature = "memory", feature = "llds")))]
fn not_encrypted() -> Error {
    Error::unsupported("only stores on disk are encrypted and have keys")
}

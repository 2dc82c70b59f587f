//! What users set: [`Builder`] for a store, [`WriteOptions`] for one batch.
//!
//! There are few knobs, and each says its unit, its default, its limit and why it is there.

use forrest_engine::{Durability, Numa, Options, Pages};

/// How one batch is written.
///
/// ```
/// # let db = forrest::Db::open("memory:")?;
/// use forrest::{Durability, WriteBatch, WriteOptions};
/// let options = WriteOptions { durability: Some(Durability::Memory) };
/// db.write_with(WriteBatch::new(), &options)?;
/// # Ok::<(), forrest::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteOptions {
    /// What is promised when the call returns; `None` is what [`Builder::durability`] set.
    pub durability: Option<Durability>,
}

/// How a store is opened. Each knob has a default that serves most.
///
/// ```
/// use forrest::{Db, Pages};
///
/// let db = Db::builder().capacity_bytes(1 << 30).pages(Pages::Transparent).open("memory:")?;
/// # Ok::<(), forrest::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Builder {
    pub(crate) options: Options,
    pub(crate) durability_at_most: Option<Durability>,
}

impl Builder {
    /// Most memory that the nodes of a store in memory may take, or a store in the kernel that is made.
    ///
    /// Unit: bytes. Default: what the machine has. Limit: at least 1. Why: what exceeds it is an `OutOfSpace`
    /// error instead of a process killed for want of memory. Values above 239 bytes are not counted. A
    /// thirty-second of it, 8 MiB at most, is kept for deletes, so that a full store can be made smaller; a
    /// held snapshot keeps what is deleted, and deletes use the reserve up then. In the kernel it is all memory of the
    /// store, and counts when the store is made; the default is what the module's `store_bytes_max` says.
    pub fn capacity_bytes(mut self, bytes: usize) -> Builder {
        self.options.capacity_bytes = Some(bytes);
        self
    }

    /// On which pages the nodes of a store in memory lie, and what a store on disk keeps of its tables.
    ///
    /// Default: [`Pages::Auto`], the largest that are to be had. Why: to leave reserved huge pages to others, or
    /// to see what they are worth. It is a wish; [`Db::stats`](crate::Db::stats) tells what was had. For the order over
    /// several tables of a store on disk, which is the allocator's memory, transparent ones are asked for in any case.
    pub fn pages(mut self, pages: Pages) -> Builder {
        self.options.pages = pages;
        self
    }

    /// Where those pages are taken from on a machine with several memory nodes.
    ///
    /// Default: [`Numa::Local`], the node of the thread that needs the memory. Why: a store that all
    /// processors read alike is better spread over all nodes, by [`Numa::Interleave`].
    pub fn numa(mut self, numa: Numa) -> Builder {
        self.options.numa = numa;
        self
    }

    /// What is promised about each change when its call returns.
    ///
    /// Default: the strongest level that needs no wait for a device, which is [`Durability::Memory`] with
    /// `memory:` and `llds-user:`, and [`Durability::Buffered`] with `llds:` and on disk. Limit: what the home can
    /// keep; more is an `Unsupported` error at [`open`](Builder::open). Why: how much may be lost, and how long a
    /// change takes, is the user's choice.
    pub fn durability(mut self, durability: Durability) -> Builder {
        self.options.durability = Some(durability);
        self.durability_at_most = None;
        self
    }

    /// What is promised about each change when its call returns, as far as the home can keep it.
    ///
    /// Default: none. What the home cannot keep is lowered to the strongest level that it keeps, so a program moves
    /// from one home to another by its URL alone. [`durability`](Builder::durability) is an error there instead; the
    /// one that is called last counts. A URL that ends with `?durability=memory`, `buffered` or `sync` says the same,
    /// and counts before both; see [`Db::open`](crate::Db::open).
    ///
    /// ```
    /// use forrest::{Db, Durability};
    /// let builder = Db::builder().durability_at_most(Durability::Sync);
    /// builder.open("memory:")?; // which keeps Durability::Memory
    /// assert!(Db::builder().durability(Durability::Sync).open("memory:").is_err());
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn durability_at_most(mut self, durability: Durability) -> Builder {
        self.options.durability = None;
        self.durability_at_most = Some(durability);
        self
    }

    /// Most operations in one batch.
    ///
    /// Unit: operations. Default: [`DEFAULT_BATCH_OPS_MAX`](crate::DEFAULT_BATCH_OPS_MAX) (1,048,576). Limit: 1 to
    /// 4,294,967,295. Why: other writers wait while a batch is applied.
    ///
    /// ```
    /// use forrest::{Db, ErrorKind, WriteBatch};
    /// let db = Db::builder().batch_ops_max(1).batch_bytes_max(100).open("memory:")?;
    /// let mut batch = WriteBatch::new();
    /// batch.set("a", "1").set("b", "2");
    /// assert_eq!(db.write(batch).unwrap_err().kind(), ErrorKind::Limit);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn batch_ops_max(mut self, ops: usize) -> Builder {
        self.options.batch_ops_max = ops;
        self
    }

    /// Most bytes of keys and values in one batch.
    ///
    /// Unit: bytes. Default: [`DEFAULT_BATCH_BYTES_MAX`](crate::DEFAULT_BATCH_BYTES_MAX) (1 GiB). Limit: 1 to 1 TiB.
    /// Why: a batch is held in memory as a whole.
    pub fn batch_bytes_max(mut self, bytes: usize) -> Builder {
        self.options.batch_bytes_max = bytes;
        self
    }

    /// Size at which a store on disk writes its newest changes out as tables.
    ///
    /// Unit: bytes of keys and values and what holds them together, about. Default:
    /// [`DEFAULT_MEMTABLE_BYTES`](crate::DEFAULT_MEMTABLE_BYTES) (64 MiB). Limit: at least 1. Why: a larger one writes
    /// less, and takes more memory (up to three of them) and more time to open after a crash.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("forest");
    /// # let path = path.to_str().unwrap();
    /// let db = forrest::Db::builder().memtable_bytes(8 << 20).cache_bytes(32 << 20).open(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn memtable_bytes(mut self, bytes: usize) -> Builder {
        self.options.memtable_bytes = bytes;
        self
    }

    /// Memory for what a store on disk has read from its tables.
    ///
    /// Unit: bytes. Default: [`DEFAULT_CACHE_BYTES`](crate::DEFAULT_CACHE_BYTES) (256 MiB). Limit: at least 1, which
    /// keeps nothing; above 1 GiB no more is used than the machine has, or the control group. Why: what is not in it is
    /// read from the device. The indexes of tables, some 3 bytes a key, are kept beside it. Memory is taken as it is
    /// needed, in steps of 2 MiB or a thousandth; a cache below 2 MiB lies on plain pages.
    pub fn cache_bytes(mut self, bytes: usize) -> Builder {
        self.options.cache_bytes = bytes;
        self
    }

    /// Size at which a store on disk finishes a table and begins another, where it merges.
    ///
    /// Unit: bytes. Default: [`DEFAULT_TABLE_BYTES`](crate::DEFAULT_TABLE_BYTES) (80 MiB). Limit: at least 1. Why:
    /// smaller tables are merged in smaller steps, larger ones make fewer files.
    pub fn table_bytes(mut self, bytes: u64) -> Builder {
        self.options.table_bytes = bytes;
        self
    }

    /// Whether a store on disk keeps a byte of hash for each key of several overlapping tables.
    ///
    /// Default: true. Why: a look-up of one key then compares about one key, and hardly any if it is not there; a store
    /// that is only scanned saves the byte without it.
    pub fn tags(mut self, tags: bool) -> Builder {
        self.options.tags = tags;
        self
    }

    /// Most threads that write and merge the tables of a store on disk at once.
    ///
    /// Unit: threads. Default: as many as the process may use processors, 4 at most. Limit: 1 to 256. Why: fewer leave
    /// processors to others, more keep up with more writers on a fast device. At rest there is one.
    pub fn workers(mut self, threads: usize) -> Builder {
        self.options.workers = Some(threads);
        self
    }

    /// Processors that these threads may run on.
    ///
    /// Unit: numbers of processors. Default: none, which is all that the process may use. Limit: those; others are an
    /// `InvalidArgument` error at [`open`](Builder::open), and where threads cannot be pinned any are `Unsupported`.
    /// Why: to keep work in the background off the processors of those who wait for answers.
    /// [`Db::compact`](crate::Db::compact) works on the thread that calls it, too.
    pub fn worker_cpus(mut self, cpus: &[usize]) -> Builder {
        self.options.worker_cpus = cpus.to_vec();
        self
    }

    /// Most files that a store on disk has open to be read.
    ///
    /// Unit: files. Default: [`DEFAULT_OPEN_FILES`](crate::DEFAULT_OPEN_FILES) (4,096), or half of what the system lets
    /// the process have open (`ulimit -n`), if that is less. Limit: at least 1. Why: a process may have only so many
    /// files open, for all that it does. A store may have more tables than that; what is not open is opened again when
    /// it is read, which takes microseconds. The log, the manifest and what is just being written are open beyond it,
    /// five files about. Where the process has no more to give, the store closes some of its own before that is an
    /// error, and does with fewer.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("forest");
    /// # let path = path.to_str().unwrap();
    /// let db = forrest::Db::builder().open_files(100).open(path)?;
    /// assert!(db.stats()?.open_files < 100);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open_files(mut self, files: usize) -> Builder {
        self.options.open_files = Some(files);
        self
    }

    /// Whether a store that is not there is made.
    ///
    /// Default: true. Without, opening a path where there is no store is an `Io` error, and nothing is left behind; and
    /// `memory:`, which is made anew each time, is an `InvalidArgument` error. A store in the kernel that is not there
    /// is an `Io` error as well. Why: who expects to find something should not find it empty for a slip in the path.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("forest");
    /// # let path = path.to_str().unwrap();
    /// use forrest::Db;
    ///
    /// assert!(Db::builder().create(false).open(path).is_err());
    /// Db::open(path)?.set("pine", "1")?;
    /// assert!(Db::builder().create(false).open(path)?.contains("pine")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn create(mut self, create: bool) -> Builder {
        self.options.create = create;
        self
    }

    /// Who may read and write a store in the kernel that is made.
    ///
    /// Unit: the bits of a file's mode, 0o400 and 0o200 for its owner, 0o040 and 0o020 for its group, 0o004 and 0o002
    /// for others. Default: [`DEFAULT_MODE`](crate::DEFAULT_MODE) (0o600), its owner alone. Limit: 0o666. Why: what
    /// processes of one user share is not for all users of the machine, unless somebody says so. Owner and group are
    /// those of the process that makes the store. Other homes make nothing of it: a store on disk has the modes that
    /// its directory and the umask give.
    pub fn mode(mut self, mode: u32) -> Builder {
        self.options.mode = mode;
        self
    }
}

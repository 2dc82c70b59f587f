//! Options: [`Builder`] for a store, [`WriteOptions`] for one batch.
//!
//! Each option documents its unit, its default, its limit and its purpose.

#[cfg(feature = "encryption")]
use forrest_engine::EncryptionKey;
use forrest_engine::options::{DEFAULT_CACHE_BYTES, DEFAULT_MEMORY_BYTES_MAX, DEFAULT_MEMTABLE_BYTES};
use forrest_engine::{Compression, Durability, Event, Filter, Listener, Numa, Options, Pages, Verdict};
use std::path::PathBuf;
use std::time::Duration;

/// Options for writing one batch.
///
/// ```
/// # let db = forrest::Db::open("memory:")?;
/// use forrest::{Durability, WriteBatch, WriteOptions};
/// db.write_with(WriteBatch::new(), &WriteOptions::new().durability(Durability::Memory))?;
/// # Ok::<(), forrest::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteOptions {
    pub(crate) durability: Option<Durability>,
}

impl WriteOptions {
    /// Options that change nothing: the store's own apply.
    pub fn new() -> WriteOptions {
        WriteOptions::default()
    }

    /// The durability of the batch when the call returns. Default, and with `None`: that of
    /// [`Builder::durability`].
    pub fn durability(mut self, durability: impl Into<Option<Durability>>) -> WriteOptions {
        self.durability = durability.into();
        self
    }
}

/// The options with which a store is opened. The defaults suit most programs.
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
    /// They replace those in `options`.
    pub(crate) sizes: Sizes,
}

/// The sizes in memory of a store on disk that were given. The others follow from them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sizes {
    pub(crate) memory_bytes: Option<usize>,
    pub(crate) memtable_bytes: Option<usize>,
    pub(crate) cache_bytes: Option<usize>,
}

/// With less memory than this, a store on disk has plain pages, if its pages were not chosen. It has ten parts or so
/// that grow by a page, and with huge pages such a store took twice its memory.
const SMALL_BYTES: usize = 32 << 20;

impl Sizes {
    /// Sets all three.
    pub(crate) fn resolve(&self, options: &mut Options) {
        let mut memory = self.memory_bytes;
        if memory.or(self.memtable_bytes).or(self.cache_bytes).is_none() {
            let machine =
                forrest_machine::memory::now().map_or(usize::MAX, |memory| memory.total_bytes as usize);
            memory = Some((machine / 4).clamp(1, DEFAULT_MEMORY_BYTES_MAX));
        }
        let share = memory.map_or(DEFAULT_MEMTABLE_BYTES, |memory| (memory / 8).min(DEFAULT_MEMTABLE_BYTES));
        let memtable = self.memtable_bytes.unwrap_or(share.max(1));
        let rest = memory.map_or(DEFAULT_CACHE_BYTES, |memory| {
            memory.saturating_sub(memtable.saturating_mul(4)).max(memory / 16)
        });
        let cache = self.cache_bytes.unwrap_or(rest.max(1));
        (options.memory_bytes, options.memtable_bytes, options.cache_bytes) = (memory, memtable, cache);
        if memory.is_some_and(|memory| memory < SMALL_BYTES) && options.pages == Pages::Auto {
            options.pages = Pages::Plain;
        }
    }
}

impl Builder {
    /// Maximum memory of the nodes of a store in memory, or of a store in the kernel.
    ///
    /// Unit: bytes. Default: the memory of the machine. Limits: at least 1; in memory at most 256 GiB less 2 MiB,
    /// beyond which opening fails with `Limit`. Why: a change that exceeds it fails with `OutOfSpace`, while without it
    /// the system would kill the process. Not counted: values above 239 bytes; values of any length that expire, and
    /// the time of each, with its key and about 100 bytes; [`Stats::value_bytes_outside`](crate::Stats) has these
    /// bytes. 1/32 of it, at most 8 MiB, is reserved for deletes, so that a full store can be made smaller. Once no
    /// block of it serves, deletes take memory beyond the capacity: at most 1/16 of it, at least 2 and at most 64 MiB.
    /// While a snapshot is held, deletes free nothing and use up both. In the kernel the option limits all memory of
    /// the store, and takes effect when the store is created; the default there is the module's parameter
    /// `store_bytes_max`.
    pub fn capacity_bytes(mut self, bytes: usize) -> Builder {
        self.options.capacity_bytes = Some(bytes);
        self
    }

    /// The kind of pages for the nodes of a store in memory, and for the cache of a store on disk.
    ///
    /// Default: [`Pages::Auto`], the largest that are available. Why: to leave reserved huge pages to other
    /// programs, or to measure their effect. It is a preference; [`Db::stats`](crate::Db::stats) reports the
    /// pages in use. The REMIXes of a store on disk come from the allocator, and always ask for transparent
    /// huge pages.
    pub fn pages(mut self, pages: Pages) -> Builder {
        self.options.pages = pages;
        self
    }

    /// The NUMA nodes from which those pages are allocated, and those of a store in the kernel that is created.
    ///
    /// Default: [`Numa::Local`], the node of the thread that allocates. Why: a store that all processors read
    /// equally often is faster if it is spread over all nodes, with [`Numa::Interleave`]; one whose threads are bound
    /// to the processors of a node is faster there, with [`Numa::Node`]. Opening fails with `InvalidArgument` if the
    /// machine has no such node.
    pub fn numa(mut self, numa: Numa) -> Builder {
        self.options.numa = numa;
        self
    }

    /// The durability of each change when its call returns.
    ///
    /// Default: the strongest level that waits for no device, which is [`Durability::Memory`] with `memory:`
    /// and `llds-user:`, and [`Durability::Buffered`] with `llds:` and on disk. Limit: the strongest level of
    /// the home; for a stronger one [`open`](Builder::open) fails with `Unsupported`. Why: stronger levels
    /// lose less in a crash, and each change takes longer.
    pub fn durability(mut self, durability: Durability) -> Builder {
        self.options.durability = Some(durability);
        self.durability_at_most = None;
        self
    }

    /// The durability of each change when its call returns, lowered to the strongest level of the home.
    ///
    /// Default: none. With this option a program can change its home by the URL alone, where
    /// [`durability`](Builder::durability) would fail. Of the two, the one called last counts. A URL that
    /// ends with `?durability=memory`, `buffered` or `sync` does the same as this option and overrides both;
    /// see [`Db::open`](crate::Db::open).
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

    /// Maximum number of operations in a batch.
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

    /// Maximum size of a batch: the lengths of its keys and values.
    ///
    /// Unit: bytes. Default: [`DEFAULT_BATCH_BYTES_MAX`](crate::DEFAULT_BATCH_BYTES_MAX) (1 GiB). Limit: 1 to
    /// 1 TiB. Why: the whole batch is in memory.
    pub fn batch_bytes_max(mut self, bytes: usize) -> Builder {
        self.options.batch_bytes_max = bytes;
        self
    }

    /// Memory of a store on disk: memtables, also those that snapshots keep, the cache, and the indexes of tables. The
    /// cache takes what the others leave, and at least a sixteenth.
    ///
    /// Unit: bytes. Default: a quarter of the memory of the machine, or of the control group, at most 512 MiB; if
    /// `memtable_bytes` or `cache_bytes` is given, there is no limit but those. Limit: at least 1; if less than
    /// `memtable_bytes` and `cache_bytes` together, opening fails. Of it, a memtable gets an eighth, at most
    /// [`DEFAULT_MEMTABLE_BYTES`](crate::DEFAULT_MEMTABLE_BYTES), and the cache at most what four memtables leave. Why:
    /// one number to give to a store. `stats` shows each part. With less than 32 MiB, [`Pages::Auto`] means plain
    /// pages: each part of such a store would be rounded up to a huge page.
    ///
    /// The indexes of tables take up to 8 bytes a key. If that is more than half of what memtables leave, the largest
    /// stay in their files, and the cache keeps what is read of them. Then 1 to 4 bytes a key remain, and scans compare
    /// more keys. These bytes have no limit. A flush or merge takes the index of each partition that it writes once
    /// more.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("forest");
    /// # let path = path.to_str().unwrap();
    /// let db = forrest::Db::builder().memory_bytes(64 << 20).open(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn memory_bytes(mut self, bytes: usize) -> Builder {
        self.sizes.memory_bytes = Some(bytes);
        self
    }

    /// The options, with sizes for those that were not given.
    pub(crate) fn resolved(&self) -> Options {
        let mut options = self.options.clone();
        self.sizes.resolve(&mut options);
        options
    }

    /// Size at which a store on disk writes a memtable to tables.
    ///
    /// Unit: bytes of keys, values and their overhead, approximately. Default:
    /// [`DEFAULT_MEMTABLE_BYTES`](crate::DEFAULT_MEMTABLE_BYTES) (64 MiB). Limit: at least 1. Why: a larger
    /// memtable lowers write amplification, but takes more memory (there are up to three) and more time to
    /// open after a crash.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("forest");
    /// # let path = path.to_str().unwrap();
    /// let db = forrest::Db::builder().memtable_bytes(8 << 20).cache_bytes(32 << 20).open(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn memtable_bytes(mut self, bytes: usize) -> Builder {
        self.sizes.memtable_bytes = Some(bytes);
        self
    }

    /// Size of the cache of a store on disk, for pages read from tables.
    ///
    /// Unit: bytes. Default: [`DEFAULT_CACHE_BYTES`](crate::DEFAULT_CACHE_BYTES) (256 MiB). Limit: at least
    /// 1, which caches nothing; above 1 GiB, the memory of the machine or its control group limits it as
    /// well. Why: a page that is not in the cache is read from the device. The indexes of tables, up to 8
    /// bytes a key, are not part of it. Memory is allocated when needed, in steps of 2 MiB or 1/1000. A cache
    /// below 2 MiB uses plain pages.
    pub fn cache_bytes(mut self, bytes: usize) -> Builder {
        self.sizes.cache_bytes = Some(bytes);
        self
    }

    /// Size at which a compaction of a store on disk finishes a table and begins the next.
    ///
    /// Unit: bytes. Default: [`DEFAULT_TABLE_BYTES`](crate::DEFAULT_TABLE_BYTES) (80 MiB). Limit: at least 1.
    /// Why: smaller tables make compactions smaller; larger tables make fewer files.
    pub fn table_bytes(mut self, bytes: u64) -> Builder {
        self.options.table_bytes = bytes;
        self
    }

    /// Values of at least this many bytes stay in the log of a store on disk, so that they are written once. Tables
    /// have only their places.
    ///
    /// Unit: bytes. Default: [`DEFAULT_LARGE_VALUES`](crate::DEFAULT_LARGE_VALUES) (4,096). Limit: 0 for none, or at
    /// least [`LARGE_VALUES_LEAST`](crate::LARGE_VALUES_LEAST) (64). Why: a flush and each merge write a value again,
    /// which for large ones is most of the work of a store. Gets of values that the cache has whole are faster from
    /// tables (0.9 us instead of 2.5 for 4 KiB); all others, and all changes, are faster from logs. A log that has more
    /// of other bytes than of such values is not kept: they go into the tables. So do those of compressed keyspaces and
    /// of those with a merge operator, and all of encrypted stores, and of those whose log has a [directory of its
    /// own](Builder::log_directory). An ingest writes such values to logs that have nothing else.
    ///
    /// The space of values that were replaced or deleted comes back when the kept logs have more than half as many
    /// bytes again as their live values (or than a memtable more, if that is more): what is live in the oldest one is
    /// written once more. If that does not keep up, changes wait from twice the live bytes and two memtables on, as
    /// they wait for flushes. A scan that returns values reads each of them by itself;
    /// [`View::reader`](crate::View::reader) reads one in pieces. The option is not remembered, and values that are
    /// there stay where they are. A store that has such values cannot be opened by releases before it.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("forest");
    /// # let path = path.to_str().unwrap();
    /// let db = forrest::Db::builder().large_values(1024).open(path)?;
    /// db.set("leaf of an oak", vec![0xFF; 2_000])?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn large_values(mut self, bytes: usize) -> Builder {
        self.options.large_values = bytes;
        self
    }

    /// Whether a store on disk keeps a hash tag for each key: one byte in a REMIX, two bytes for a table that is alone
    /// in its partition.
    ///
    /// Default: true. Why: with tags a `get` compares about one key if it finds the key, and almost none if
    /// it does not. A store that is only scanned saves these bytes without them.
    pub fn tags(mut self, tags: bool) -> Builder {
        self.options.tags = tags;
        self
    }

    /// How the tables of the default keyspace of a store on disk are compressed from now on, and those of all keyspaces
    /// for which [`Keyspace::set_compression`](crate::Keyspace::set_compression) chose nothing else.
    ///
    /// Default: as it was chosen before, and [`Compression::None`] in a new store. The store remembers it. Tables that
    /// are there stay as they are until they are merged, or until [`Db::compact`](crate::Db::compact). Limit: `Lz4`
    /// always, `Zstd` in builds with the feature `zstd`; opening fails with `Unsupported` for another one, and in
    /// memory and in the kernel. Ignored if the store is only read, or its directory cannot be written to. If it is
    /// another one than before and there is no room to note it, opening fails with `OutOfSpace`. Why: text takes half
    /// of the space or less. A page that is in the cache is read as fast as without; one that is not takes longer,
    /// because two pages are unpacked for it, or four with Zstandard. What does not become an eighth smaller is stored
    /// as it is.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("forest");
    /// # let path = path.to_str().unwrap();
    /// use forrest::{Compression, Db};
    /// drop(Db::builder().compression(Compression::Lz4).open(path)?);
    /// assert_eq!(Db::open(path)?.compression(), Compression::Lz4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compression(mut self, compression: Compression) -> Builder {
        self.options.compression = Some(compression);
        self
    }

    /// Registers a merge operator, by its name, for the keyspaces that have chosen it or are going to
    /// ([`Keyspace::set_merge_operator`](crate::Keyspace::set_merge_operator)). `sum`, `max`, `min`, `append` and
    /// `union` are always registered. The store does not open if two operators have one name.
    ///
    /// ```
    /// use forrest::{Db, MergeOperator};
    ///
    /// struct Xor;
    ///
    /// impl MergeOperator for Xor {
    ///     fn name(&self) -> &str {
    ///         "xor"
    ///     }
    ///
    ///     fn merge(&self, _key: &[u8], old: Option<&[u8]>, operand: &[u8]) -> Vec<u8> {
    ///         let old = old.unwrap_or_default().iter().chain(std::iter::repeat(&0));
    ///         operand.iter().zip(old).map(|(a, b)| a ^ b).collect()
    ///     }
    /// }
    ///
    /// let db = Db::builder().merge_operator(Xor).open("memory:")?;
    /// db.set_merge_operator("xor")?;
    /// db.merge("k", [3])?;
    /// db.merge("k", [5])?;
    /// assert_eq!(db.get("k")?.unwrap(), [6]);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn merge_operator(mut self, operator: impl forrest_engine::MergeOperator) -> Builder {
        self.options.operators.add(std::sync::Arc::new(operator));
        self
    }

    /// Maximum number of threads that write and merge the tables of a store on disk at the same time.
    ///
    /// Unit: threads. Default: the number of processors that the process may use, at most 4. Limit: 1 to 256.
    /// Why: fewer leave processors to other work; more keep up with more writers on a fast device. An idle
    /// store has one.
    pub fn workers(mut self, threads: usize) -> Builder {
        self.options.workers = Some(threads);
        self
    }

    /// Processors that these threads may run on.
    ///
    /// Unit: numbers of processors. Default: none, which means all that the process may use. Limit:
    /// processors that the process may use; for others [`open`](Builder::open) fails with `InvalidArgument`,
    /// and on systems that cannot pin threads it fails with `Unsupported` for any. Why: to keep background
    /// work off the processors that serve requests. [`Db::compact`](crate::Db::compact) also works on the
    /// thread that calls it.
    pub fn worker_cpus(mut self, cpus: &[usize]) -> Builder {
        self.options.worker_cpus = cpus.to_vec();
        self
    }

    /// Maximum number of table and REMIX files that a store on disk keeps open.
    ///
    /// Unit: files. Default: [`DEFAULT_OPEN_FILES`](crate::DEFAULT_OPEN_FILES) (4,096), or half of the
    /// process's limit (`ulimit -n`) if that is less. Limit: at least 1. Why: the system limits the number of
    /// files that a process has open. A store may have more tables than that; reading a closed one opens it
    /// again, which takes microseconds. The log, the manifest and files being written come on top, about
    /// five. If the process reaches its limit anyway, the store closes some of its files and works with
    /// fewer; only if that does not help, the call fails.
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

    /// Gives a store on disk a function that decides which values stay: it is called with the name of the keyspace, a
    /// key and its value, and keeps, drops or replaces the value.
    ///
    /// It is called when tables are written: for each value of a memtable that becomes a table, and for each value of
    /// tables that are merged, so any number of times for one value, and for none at a certain time. Until then reads
    /// return the value, and [`Db::compact`](crate::Db::compact) ends with all values decided. Only newest values are
    /// asked about, and none that has expired. The background threads of the store call it, several at once, and those
    /// that call [`flush`](crate::Db::flush) and `compact`. They hold locks, so it must not use the store, and changes
    /// wait while it runs. If it panics, the value stays, and so it does if its replacement does not fit the keyspace.
    ///
    /// Snapshots and iterators keep what they see. What it drops or replaces is no change: the stream of changes does
    /// not have it, and after a crash it may be there again until the next time. Stores elsewhere do not call it.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("forest");
    /// # let path = path.to_str().unwrap();
    /// use forrest::{Db, Verdict};
    ///
    /// let drafts = |_keyspace: &str, key: &[u8], _value: &[u8]| match key {
    ///     [b'~', ..] => Verdict::Drop,
    ///     _ => Verdict::Keep,
    /// };
    /// let db = Db::builder().compaction_filter(drafts).open(path)?;
    /// db.set("~oak", "a draft")?;
    /// db.set("oak", "Quercus robur")?;
    /// db.compact()?;
    /// assert!(db.contains("oak")? && !db.contains("~oak")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compaction_filter(
        mut self,
        decide: impl Fn(&str, &[u8], &[u8]) -> Verdict + Send + Sync + 'static,
    ) -> Builder {
        self.options.filter = Some(Filter::new(decide));
        self
    }

    /// Tells a function of flushes, merges, stalls and failures of a store on disk, as they happen.
    ///
    /// It is called by the threads of the store and by callers of [`flush`](crate::Db::flush) and other long calls, by
    /// one at a time, in the order of the events, at most a tenth of a second late. They hold no locks then, so it may
    /// read and change the store. But work waits until it returns, so it should only note the event or pass it on. Up
    /// to 1,024 events wait; what comes then is lost and counted
    /// ([`Metrics::events_lost`](crate::Metrics::events_lost)).
    /// A panic in it is reported, and otherwise ignored.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("forest");
    /// # let path = path.to_str().unwrap();
    /// use forrest::{Db, Event};
    ///
    /// let (events, reported) = std::sync::mpsc::channel();
    /// let db = Db::builder().listener(move |event| drop(events.send(event.to_string()))).open(path)?;
    /// db.set("oak", "Quercus robur")?;
    /// db.flush()?;
    /// assert_eq!(reported.recv()?, "flush began");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn listener(mut self, tell: impl Fn(&Event) + Send + Sync + 'static) -> Builder {
        self.options.listener = Some(Listener::new(tell));
        self
    }

    /// Whether a store on disk takes the time of its calls, which [`Db::metrics`](crate::Db::metrics) then returns in
    /// histograms: of reads of one key and of several, refills of iterations, changes, and syncs
    /// ([`Call`](crate::Call)).
    ///
    /// Default: false. With it, each call reads the clock twice, which takes about 50 ns, and the store takes 1 MiB of
    /// memory. A program that times its own calls knows more, and needs this not.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("forest");
    /// # let path = path.to_str().unwrap();
    /// use forrest::{Call, Db};
    ///
    /// let db = Db::builder().latencies(true).open(path)?;
    /// db.set("oak", "Quercus robur")?;
    /// assert!(db.get("oak")?.is_some());
    /// let metrics = db.metrics()?;
    /// let gets = metrics.latency(Call::Get).expect("there was one");
    /// assert_eq!(gets.count(), 1);
    /// println!("99 % of gets took at most {:?}", gets.quantile(0.99));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn latencies(mut self, take: bool) -> Builder {
        self.options.latencies = take;
        self
    }

    /// Writes the figures of a store on disk to a file each second, in the text format of Prometheus, as
    /// [`Metrics::prometheus`](crate::Metrics::prometheus) makes it. The text collector of the node exporter takes it
    /// up, and `forrest top` shows it, both from other processes.
    ///
    /// Default: none. The file is replaced as a whole, by renaming `FILE.new`. It is removed when the store is closed;
    /// a process that is killed leaves it. It must not be used for two stores. If it cannot be written at first,
    /// opening fails; later failures are ignored. `forrest top STORE` looks for `metrics.prom` in the directory of the
    /// store.
    pub fn metrics_file(mut self, path: impl Into<PathBuf>) -> Builder {
        self.options.metrics_file = Some(path.into());
        self
    }

    /// Maximum rate at which a store on disk writes tables: when memtables become tables, and when tables are merged.
    ///
    /// Unit: bytes a second. Default: none, no limit. Limit: at least 1. Why: reads and the log share the device with
    /// this work. What merges read, about as much as they write, and the log are not counted. After a pause, the bytes
    /// of a tenth of a second are written at once. The limit holds for [`flush`](crate::Db::flush) and
    /// [`compact`](crate::Db::compact) too, and not while a store is opened or closed. A merge that a memtable has to
    /// wait for goes on without it.
    ///
    /// A change is written several times before it has its place, 3 to 5 times in most stores. If changes arrive faster
    /// than the limit allows, they wait, as they do for a slow device; memory stays bounded. A change fails with `Busy`
    /// if writing a memtable takes longer than [`wait`](Builder::wait). So the limit should be several times
    /// [`memtable_bytes`](Builder::memtable_bytes) in that time: by default above 32 MB a second.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("forest");
    /// # let path = path.to_str().unwrap();
    /// let db = forrest::Db::builder().background_bytes_per_second(64 << 20).open(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn background_bytes_per_second(mut self, bytes: impl Into<Option<u64>>) -> Builder {
        self.options.background_bytes_per_second = bytes.into();
        self
    }

    /// Maximum time that a change waits for memory, on disk. If changes arrive faster than tables can be written, each
    /// waits a little, in proportion to its bytes. All memtables together take up to three times
    /// [`memtable_bytes`](Builder::memtable_bytes) and one batch; a change beyond that waits until a table is written.
    ///
    /// Default: 10 seconds. A change that waits longer fails with `Busy`, which names what it waited for and how old
    /// that is, and is not made. A change that is larger than [`memory_bytes`](Builder::memory_bytes) and does not only
    /// delete is never made: it fails with `Limit` at once. Why: a service may prefer an early error to a late answer.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("forest");
    /// # let path = path.to_str().unwrap();
    /// use std::time::Duration;
    /// let db = forrest::Db::builder().wait(Duration::from_millis(100)).open(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wait(mut self, wait: Duration) -> Builder {
        self.options.wait = wait;
        self
    }

    /// Whether a store on disk keeps its changes, so that [`Db::changes`](crate::Db::changes) can return them.
    ///
    /// Default: false. Why: others can follow the store, to copy it, to index it or to react. The changes are those of
    /// the log, whose files stay longer: as long as [`history_bytes`](Builder::history_bytes) and
    /// [`history_age`](Builder::history_age) say. A flush waits for a sync of the log first. History begins with the
    /// first change after the option is set, and ends where the store is changed without it. A store that was changed
    /// with it cannot be opened by releases before it. Ignored in other homes and where the store is only read.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("forest");
    /// # let path = path.to_str().unwrap();
    /// let db = forrest::Db::builder().history(true).open(path)?;
    /// db.set("oak", "Quercus")?;
    /// assert_eq!(db.changes(0)?.count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn history(mut self, history: bool) -> Builder {
        self.options.history = history;
        self
    }

    /// Maximum size of the logs that are kept for their changes only.
    ///
    /// Unit: bytes. Default: [`DEFAULT_HISTORY_BYTES`](crate::DEFAULT_HISTORY_BYTES) (1 GiB). Limit: none; with 0,
    /// nothing is kept but the logs that the store needs itself. Those are not counted: about
    /// [`memtable_bytes`](Builder::memtable_bytes), up to three times as much while tables are written. A log goes as a
    /// whole, and the oldest first; so up to one log less is kept. Each counts as at least 64 KiB. If the store has no
    /// space, all of it goes.
    pub fn history_bytes(mut self, bytes: u64) -> Builder {
        self.options.history_bytes = bytes;
        self
    }

    /// Maximum age of the changes that are kept in logs that the store does not need itself.
    ///
    /// Default: [`DEFAULT_HISTORY_AGE`](crate::DEFAULT_HISTORY_AGE) (7 days), by the clock of the system. A log goes
    /// when all of its changes are older; looked for every second, and at each flush.
    pub fn history_age(mut self, age: Duration) -> Builder {
        self.options.history_age = age;
        self
    }

    /// A directory for the log of a store on disk, usually on another device.
    ///
    /// Default: none, the log is in the directory of the store. Limit: it exists or can be made in an existing
    /// directory, belongs to no other store, and has no files of one. Why: a change waits for the device of the log
    /// only, while tables are written and merged on another. The log takes its space there.
    ///
    /// The store remembers it. From then on the store must be opened with the same directory, also to be read: without
    /// it, or with another one, [`open`](Builder::open) fails with `InvalidArgument` and names both. Either directory
    /// may be moved while the store is closed. [`move_log`](crate::move_log()) moves the log of an existing store.
    /// [`checkpoint`](crate::Db::checkpoint) makes a store whose log is in its own directory. If the directory is lost,
    /// [`salvage`](crate::salvage()) copies what is in tables.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("forest");
    /// # let path = path.to_str().unwrap();
    /// # let log = directory.path().join("log");
    /// use forrest::{Db, ErrorKind};
    /// Db::builder().log_directory(&log).open(path)?.set("pine", "1")?;
    /// assert_eq!(Db::open(path).unwrap_err().kind(), ErrorKind::InvalidArgument);
    /// assert!(Db::builder().log_directory(&log).open(path)?.contains("pine")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn log_directory(mut self, path: impl Into<PathBuf>) -> Builder {
        self.options.log_directory = Some(path.into());
        self
    }

    /// The key of an encrypted store on disk. A new store with a key is encrypted from its first byte.
    ///
    /// Default: none, the store is not encrypted. Limit: stores on disk; other homes fail with `Unsupported`. Why: the
    /// files are of no use without the key. Each byte of keys, values and names of keyspaces is encrypted and
    /// authenticated with AES-256-GCM-SIV; names, sizes and times of the files stay readable, and old files that are
    /// put back are not noticed (docs/durability.md has the list). Without the key the data is lost.
    ///
    /// An encrypted store opens with its key only, also to be read: without it, or with another one,
    /// [`open`](Builder::open) fails with `InvalidArgument`, and changes nothing. A plain store does not become an
    /// encrypted one. Checkpoints and backups are encrypted too. [`Db::rotate_key`](crate::Db::rotate_key) replaces the
    /// key.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("forest");
    /// # let path = path.to_str().unwrap();
    /// use forrest::{Db, EncryptionKey, ErrorKind};
    /// # let random = || [7; 32];
    /// let key = EncryptionKey::from_bytes(random());
    /// Db::builder().encryption_key(key.clone()).open(path)?.set("pine", "1")?;
    /// assert_eq!(Db::open(path).unwrap_err().kind(), ErrorKind::InvalidArgument);
    /// assert!(Db::builder().encryption_key(key).open(path)?.contains("pine")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "encryption")]
    pub fn encryption_key(mut self, key: impl Into<Option<EncryptionKey>>) -> Builder {
        self.options.encryption_key = key.into();
        self
    }

    /// Whether to create a store that does not exist.
    ///
    /// Default: true. With false, opening a path without a store fails with `Io` and creates nothing. A store
    /// that is missing in the kernel is an `Io` error as well. `memory:`, which always creates a store, fails
    /// with `InvalidArgument`. Why: so that a mistyped path does not create an empty store.
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

    /// The mode of a store in the kernel that is created: which users may read and write it.
    ///
    /// Unit: the bits of a file's mode, 0o400 and 0o200 for its owner, 0o040 and 0o020 for its group, 0o004
    /// and 0o002 for others. Default: [`DEFAULT_MODE`](crate::DEFAULT_MODE) (0o600), its owner only. Limit:
    /// 0o666. Why: other users of the machine have no access unless the owner grants it. Owner and group are
    /// those of the process that creates the store. Other homes ignore the option; a store on disk is
    /// accessible to its owner only.
    pub fn mode(mut self, mode: u32) -> Builder {
        self.options.mode = mode;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::Builder;
    use forrest_engine::Pages;

    #[test]
    fn small_stores_have_plain_pages_unless_others_were_chosen() {
        let pages = |builder: Builder| builder.resolved().pages;
        assert_eq!(pages(Builder::default().memory_bytes(6 << 20)), Pages::Plain);
        assert_eq!(pages(Builder::default().memory_bytes(64 << 20)), Pages::Auto);
        assert_eq!(pages(Builder::default().memory_bytes(6 << 20).pages(Pages::Huge2M)), Pages::Huge2M);
        assert_eq!(pages(Builder::default()), Pages::Auto);
    }
}

//! [`Options`]: how a store is opened, in the form that engines take; [`Durability`].
//!
//! Users set the options with the builder of the crate `forrest`, whose methods document them.

use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::key::EncryptionKey;
use crate::merge::Operators;
use crate::metrics::Listener;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use forrest_machine::pages;
pub use forrest_machine::pages::{Numa, Pages};

/// The guarantee for a change when its call returns. All changes of a store have one order. At every level,
/// the store after a crash has the state after some prefix of that order.
///
/// ```
/// use forrest::Durability;
/// assert!(Durability::Memory < Durability::Buffered && Durability::Buffered < Durability::Sync);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Durability {
    /// It is applied. The end of the process may lose it.
    Memory,
    /// The operating system has it. It survives the end of the process.
    Buffered,
    /// The device reported it stored, with all that came before it. It survives power loss.
    Sync,
}

/// How tables on disk are compressed.
///
/// ```
/// use forrest::Compression;
/// assert_eq!("lz4".parse::<Compression>()?, Compression::Lz4);
/// assert_eq!(Compression::Zstd.as_str(), "zstd");
/// assert!("gzip".parse::<Compression>().unwrap_err().message().contains("none, lz4 or zstd"));
/// # Ok::<(), forrest::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// With LZ4: half of the space for most text, a tenth to a third of the time of Zstandard.
    Lz4,
    /// With Zstandard: a third less space than with LZ4. Only in builds with the feature `zstd`.
    Zstd,
}

impl Compression {
    /// All of them.
    pub const ALL: [Compression; 3] = [Compression::None, Compression::Lz4, Compression::Zstd];

    /// Its name: `none`, `lz4` or `zstd`.
    pub fn as_str(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Compression {
    type Err = Error;

    /// # Errors
    /// `InvalidArgument` for another name.
    fn from_str(name: &str) -> Result<Compression> {
        let found = Compression::ALL.into_iter().find(|method| method.as_str() == name);
        found
            .ok_or_else(|| Error::invalid(format!("compression is \"{name}\"; it must be none, lz4 or zstd")))
    }
}

/// How a store is opened. An engine uses those options that concern it.
#[derive(Debug, Clone)]
pub struct Options {
    /// Maximum memory for the nodes of a store in memory, or for a store in the kernel, in bytes.
    pub capacity_bytes: Option<usize>,
    /// Size of the pages that memory is allocated on.
    pub pages: Pages,
    /// The NUMA nodes that memory is allocated from.
    pub numa: Numa,
    /// The durability of changes that name none. `None` is the strongest level that waits for no device.
    pub durability: Option<Durability>,
    /// Maximum number of operations in a batch.
    pub batch_ops_max: usize,
    /// Maximum size of a batch, in bytes of keys and values.
    pub batch_bytes_max: usize,
    /// Memory that memtables, cache and indexes share, in bytes. `None` if only memtables and the cache have limits.
    pub memory_bytes: Option<usize>,
    /// Size at which a memtable is written out, in bytes.
    pub memtable_bytes: usize,
    /// Memory for blocks read from tables, in bytes.
    pub cache_bytes: usize,
    /// Size at which a table is finished, in bytes.
    pub table_bytes: u64,
    /// Whether a REMIX has hash tags.
    pub tags: bool,
    /// Values of at least this many bytes stay in the log, and tables have where they are; 0 for none.
    pub large_values: usize,
    /// How tables of the default keyspace are compressed from now on. `None` leaves it as it is.
    pub compression: Option<Compression>,
    /// Maximum number of threads that write and merge tables.
    pub workers: Option<usize>,
    /// The processors that these threads run on; empty for all.
    pub worker_cpus: Vec<usize>,
    /// Maximum number of table files that the store keeps open.
    pub open_files: Option<usize>,
    /// Bytes that flushes and merges write a second, at most.
    pub background_bytes_per_second: Option<u64>,
    /// The longest time that a change waits for memory.
    pub wait: Duration,
    /// Whether logs are kept that are no longer needed, so that the changes in them can be read.
    pub history: bool,
    /// Maximum size of such logs, in bytes.
    pub history_bytes: u64,
    /// Maximum age of the changes in such logs.
    pub history_age: Duration,
    /// The directory of the logs; `None` for that of the store.
    pub log_directory: Option<PathBuf>,
    /// The key of an encrypted store; a new store with a key is encrypted. `None` for a store that is not.
    pub encryption_key: Option<EncryptionKey>,
    /// Whether a store that is not there is created.
    pub create: bool,
    /// Whether the store is only read. Other processes may change it meanwhile.
    pub read_only: bool,
    /// The mode of a store in the kernel that is created.
    pub mode: u32,
    /// The merge operators that keyspaces may have.
    pub operators: Operators,
    /// The function that decides which values stay when tables are written.
    pub filter: Option<Filter>,
    /// The function to which flushes, merges, stalls and failures are reported.
    pub listener: Option<Listener>,
    /// Whether the time of calls is taken.
    pub latencies: bool,
    /// The file to which the figures of the store are written each second.
    pub metrics_file: Option<PathBuf>,
}

/// Longest name of a keyspace, in bytes of UTF-8.
pub const MAX_KEYSPACE_NAME_BYTES: usize = 255;
/// Maximum number of keyspaces in a store.
pub const MAX_KEYSPACES: usize = 4096;
/// The keyspace that always exists.
pub const DEFAULT_KEYSPACE: &str = "default";

/// Default of [`Options::batch_ops_max`].
pub const DEFAULT_BATCH_OPS_MAX: usize = 1 << 20;
/// Default of [`Options::batch_bytes_max`].
pub const DEFAULT_BATCH_BYTES_MAX: usize = 1 << 30;
/// Most of what [`Options::memory_bytes`] is if no size is given.
pub const DEFAULT_MEMORY_BYTES_MAX: usize = 512 << 20;
/// Default of [`Options::memtable_bytes`].
pub const DEFAULT_MEMTABLE_BYTES: usize = 64 << 20;
/// Default of [`Options::cache_bytes`].
pub const DEFAULT_CACHE_BYTES: usize = 256 << 20;
/// Default of [`Options::table_bytes`].
pub const DEFAULT_TABLE_BYTES: u64 = 80 << 20;
/// Default of [`Options::large_values`].
pub const DEFAULT_LARGE_VALUES: usize = 4096;
/// The least number of bytes of [`Options::large_values`], if it is not 0.
pub const LARGE_VALUES_LEAST: usize = 64;
/// Default of [`Options::mode`].
pub const DEFAULT_MODE: u32 = 0o600;
/// Default of [`Options::wait`].
pub const DEFAULT_WAIT: Duration = Duration::from_secs(10);
/// Default of [`Options::history_bytes`].
pub const DEFAULT_HISTORY_BYTES: u64 = 1 << 30;
/// Default of [`Options::history_age`].
pub const DEFAULT_HISTORY_AGE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Default of [`Options::open_files`].
pub const DEFAULT_OPEN_FILES: usize = 4096;

impl Default for Options {
    fn default() -> Options {
        Options {
            capacity_bytes: None,
            pages: Pages::default(),
            numa: Numa::default(),
            durability: None,
            batch_ops_max: DEFAULT_BATCH_OPS_MAX,
            batch_bytes_max: DEFAULT_BATCH_BYTES_MAX,
            memory_bytes: None,
            memtable_bytes: DEFAULT_MEMTABLE_BYTES,
            cache_bytes: DEFAULT_CACHE_BYTES,
            table_bytes: DEFAULT_TABLE_BYTES,
            tags: true,
            large_values: DEFAULT_LARGE_VALUES,
            compression: None,
            workers: None,
            worker_cpus: Vec::new(),
            open_files: None,
            background_bytes_per_second: None,
            wait: DEFAULT_WAIT,
            history: false,
            history_bytes: DEFAULT_HISTORY_BYTES,
            history_age: DEFAULT_HISTORY_AGE,
            log_directory: None,
            encryption_key: None,
            create: true,
            read_only: false,
            mode: DEFAULT_MODE,
            operators: Operators::default(),
            filter: None,
            listener: None,
            latencies: false,
            metrics_file: None,
        }
    }
}

impl Options {
    /// Checks that each option is within its limits.
    ///
    /// # Errors
    /// `InvalidArgument` for the first that is not.
    pub fn check(&self) -> Result<()> {
        self.operators.check()?;
        if self.mode > 0o666 || self.mode & 0o111 != 0 {
            return Err(Error::invalid(format!(
                "mode is {:#o}; it has bits for reading and writing only, 0o666 at most",
                self.mode
            )));
        }
        if let Numa::Node(node) = self.numa
            && !self.numa.is_here()
        {
            let nodes: Vec<String> = pages::nodes().iter().map(usize::to_string).collect();
            let nodes = nodes.join(", ");
            return Err(Error::invalid(format!(
                "numa is the node {node}; this machine has the nodes {nodes}"
            )));
        }
        if (1..LARGE_VALUES_LEAST).contains(&self.large_values) {
            return Err(Error::invalid(format!(
                "large_values is {}; it must be 0 or at least {LARGE_VALUES_LEAST}",
                self.large_values
            )));
        }
        let rate =
            self.background_bytes_per_second.map_or(usize::MAX, |rate| rate.try_into().unwrap_or(usize::MAX));
        let knobs = [
            ("capacity_bytes", self.capacity_bytes.unwrap_or(usize::MAX), usize::MAX),
            ("batch_ops_max", self.batch_ops_max, u32::MAX as usize),
            ("batch_bytes_max", self.batch_bytes_max, 1 << 40),
            ("memory_bytes", self.memory_bytes.unwrap_or(usize::MAX), usize::MAX),
            ("memtable_bytes", self.memtable_bytes, usize::MAX),
            ("cache_bytes", self.cache_bytes, usize::MAX),
            ("workers", self.workers.unwrap_or(1), 256),
            ("open_files", self.open_files.unwrap_or(usize::MAX), usize::MAX),
            ("background_bytes_per_second", rate, usize::MAX),
            ("table_bytes", usize::try_from(self.table_bytes).unwrap_or(usize::MAX), usize::MAX),
        ];
        for (name, value, limit) in knobs {
            if value == 0 || value > limit {
                return Err(Error::invalid(format!("{name} is {value}; it must be from 1 to {limit}")));
            }
        }
        let (memtable, cache) = (self.memtable_bytes, self.cache_bytes);
        match self.memory_bytes {
            Some(memory) if memtable.saturating_add(cache) > memory => Err(Error::invalid(format!(
                "memtable_bytes ({memtable}) and cache_bytes ({cache}) take more than memory_bytes ({memory}) together"
            ))),
            _ => Ok(()),
        }
    }
}

/// Options of an open store that are to be changed. `None` leaves an option as it is.
#[derive(Debug, Clone, Default)]
pub struct OptionChanges {
    /// See [`Options::batch_ops_max`].
    pub batch_ops_max: Option<usize>,
    /// See [`Options::batch_bytes_max`].
    pub batch_bytes_max: Option<usize>,
    /// See [`Options::memory_bytes`]. It comes with the two sizes that follow from it or are part of it.
    pub memory_bytes: Option<usize>,
    /// See [`Options::memtable_bytes`].
    pub memtable_bytes: Option<usize>,
    /// See [`Options::cache_bytes`].
    pub cache_bytes: Option<usize>,
    /// Whether a cache that is too large for the open store becomes as large as it can, instead of being refused.
    pub cache_at_most: bool,
    /// See [`Options::workers`].
    pub workers: Option<usize>,
    /// See [`Options::table_bytes`].
    pub table_bytes: Option<u64>,
    /// See [`Options::open_files`].
    pub open_files: Option<usize>,
    /// See [`Options::background_bytes_per_second`].
    pub background_bytes_per_second: Option<Option<u64>>,
    /// See [`Options::wait`].
    pub wait: Option<Duration>,
}

impl OptionChanges {
    /// Checks that each option is within its limits.
    ///
    /// # Errors
    /// `InvalidArgument` for the first that is not.
    pub fn check(&self) -> Result<()> {
        let known = Options::default();
        // A size that is not given counts nothing.
        let size = 1;
        let options = Options {
            batch_ops_max: self.batch_ops_max.unwrap_or(known.batch_ops_max),
            batch_bytes_max: self.batch_bytes_max.unwrap_or(known.batch_bytes_max),
            memory_bytes: self.memory_bytes,
            memtable_bytes: self.memtable_bytes.unwrap_or(size),
            cache_bytes: self.cache_bytes.unwrap_or(size),
            workers: self.workers,
            table_bytes: self.table_bytes.unwrap_or(known.table_bytes),
            open_files: self.open_files,
            background_bytes_per_second: self.background_bytes_per_second.flatten(),
            ..known
        };
        options.check()
    }

    /// The name of an option that is to be changed and that only stores on disk have.
    pub fn first_of_disk(&self) -> Option<&'static str> {
        let of_disk = [
            ("memory_bytes", self.memory_bytes.is_some()),
            ("workers", self.workers.is_some()),
            ("memtable_bytes", self.memtable_bytes.is_some()),
            ("cache_bytes", self.cache_bytes.is_some()),
            ("table_bytes", self.table_bytes.is_some()),
            ("open_files", self.open_files.is_some()),
            ("background_bytes_per_second", self.background_bytes_per_second.is_some()),
            ("wait", self.wait.is_some()),
        ];
        of_disk.into_iter().find_map(|(name, is_given)| is_given.then_some(name))
    }
}

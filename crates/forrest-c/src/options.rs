//! Options for opening a store.

use crate::argument::{Place, encryption_key, text};
use crate::callback::{CompactionFilter, Filter, Listen, Listener, MergeFunction, Operator};
use crate::code::FORREST_OK;
use crate::failure::{Failure, guard};
use crate::handle::{Exclusive, Table};
use forrest_rust::{Builder, Compression, Db, Durability, ErrorKind, Numa, OptionChanges, Pages};
use std::ffi::{c_char, c_void};
use std::ptr;
use std::time::Duration;

/// Options for opening a store. An option that was not set has its default. Only one thread at a time may use
/// it.
#[derive(Debug, Default)]
pub struct Options {
    builder: Builder,
    worker_cpus: Vec<usize>,
    read_only: bool,
    filter: Option<Filter>,
    listener: Option<Listener>,
}

static OPTIONS: Table<Options, 1> = Table::new("options object", 3);

/// Maximum memory of the nodes of a store in memory, or of a new store in the kernel, in bytes; from 1.
/// Default: the memory of the machine, or the module's limit.
pub const FORREST_CAPACITY_BYTES: i32 = 1;
/// The kind of pages for the store's memory: one of `FORREST_PAGES_AUTO` to `FORREST_PAGES_PLAIN`.
pub const FORREST_PAGES: i32 = 2;
/// The NUMA nodes of the store's memory: `FORREST_NUMA_LOCAL`, `FORREST_NUMA_INTERLEAVE`, or `FORREST_NUMA_NODE` plus
/// the number of a node.
pub const FORREST_NUMA: i32 = 3;
/// The durability of each change when its call returns: one of `FORREST_DURABILITY_MEMORY` to
/// `FORREST_DURABILITY_SYNC`. Default: the strongest one that waits for no device. Opening fails with
/// `FORREST_UNSUPPORTED` if the home does not have this durability.
pub const FORREST_DURABILITY: i32 = 4;
/// Maximum number of changes in a batch; 1 to 4,294,967,295. Default: 1,048,576.
pub const FORREST_BATCH_OPS_MAX: i32 = 5;
/// Maximum total length of the keys and values in a batch, in bytes; 1 to 2^40. Default: 1 GiB.
pub const FORREST_BATCH_BYTES_MAX: i32 = 6;
/// Size at which a store on disk writes a memtable to tables, in bytes; from 1. Default: 64 MiB.
pub const FORREST_MEMTABLE_BYTES: i32 = 7;
/// Size of the cache of a store on disk, in bytes; from 1. Default: 256 MiB.
pub const FORREST_CACHE_BYTES: i32 = 8;
/// Size at which a compaction of a store on disk finishes a table and begins the next, in bytes; from 1.
/// Default: 80 MiB.
pub const FORREST_TABLE_BYTES: i32 = 9;
/// Whether the REMIXes of a store on disk have a hash tag, one byte, for each key, which makes gets faster: 0
/// or 1. Default: 1.
pub const FORREST_TAGS: i32 = 10;
/// Maximum number of threads that write and merge the tables of a store on disk at the same time; 1 to 256.
/// Default: the number of processors that the process may use, at most 4.
pub const FORREST_WORKERS: i32 = 11;
/// The number of a processor that these threads may run on. Each further call adds a processor. Default: all.
pub const FORREST_WORKER_CPU: i32 = 12;
/// Maximum number of table files that a store on disk keeps open; from 1. Default: 4,096, or half of the
/// process's limit if that is less.
pub const FORREST_OPEN_FILES: i32 = 13;
/// Whether to create a store that does not exist: 0 or 1. Default: 1.
pub const FORREST_CREATE: i32 = 14;
/// The mode of a new store in the kernel, as the bits of a file's mode, up to 0666. Default: 0600.
pub const FORREST_MODE: i32 = 15;
/// Whether to open the store for reading only, while other processes may write to it: 0 or 1. Default: 0. The
/// store must exist. A store on disk is seen as it was when it was opened, until `forrest_refresh` is called. With
/// "memory:", opening fails with `FORREST_UNSUPPORTED`.
pub const FORREST_READ_ONLY: i32 = 16;
/// Maximum time that a change of a store on disk waits for memory, in milliseconds; then it fails with `FORREST_BUSY`.
/// Default: 10,000.
pub const FORREST_WAIT_MS: i32 = 17;
/// Maximum rate at which a store on disk writes and merges tables, in bytes a second; 0 for no limit. Default: 0. If
/// changes arrive faster than that allows, they wait.
pub const FORREST_BACKGROUND_BYTES_PER_SECOND: i32 = 18;
/// Memory that memtables, cache and indexes of a store on disk share, in bytes; the cache takes what the others leave.
/// Default: a quarter of the machine's, at most 512 MiB; no limit if one of the sizes is set.
pub const FORREST_MEMORY_BYTES: i32 = 19;

/// The compression of the tables of a store on disk from now on, of all keyspaces for which
/// `forrest_set_compression` has chosen nothing else: one of `FORREST_COMPRESSION_NONE` to `FORREST_COMPRESSION_ZSTD`.
/// The store remembers it. Default: as it was chosen before; in a new store, none. Opening fails with
/// `FORREST_UNSUPPORTED` if the home, or this build of the library, does not have it.
pub const FORREST_COMPRESSION: i32 = 20;

/// Whether a store on disk keeps its changes for `forrest_changes_begin`: 0 or 1. Default: 0.
pub const FORREST_HISTORY: i32 = 21;
/// Maximum size of the logs that are kept for their changes only, in bytes. Default: 1 GiB.
pub const FORREST_HISTORY_BYTES: i32 = 22;
/// Maximum age of the changes in them, in milliseconds. Default: 7 days.
pub const FORREST_HISTORY_AGE_MS: i32 = 23;
/// Whether a store on disk takes the time of its calls, for `forrest_metrics`: 0 or 1. Default: 0. With it, each call
/// reads the clock twice, which takes about 50 ns.
pub const FORREST_LATENCIES: i32 = 24;
/// Values of at least this many bytes stay in the log of a store on disk, so that they are written once: 64 or more, or
/// 0 for none. Default: 4,096. Values of compressed keyspaces do not stay there, nor those of encrypted stores, nor
/// those of stores whose log has a directory of its own. The store does not remember the option. Earlier releases
/// cannot open a store that has such values.
pub const FORREST_LARGE_VALUES: i32 = 25;

/// No compression.
pub const FORREST_COMPRESSION_NONE: u64 = 0;
/// LZ4.
pub const FORREST_COMPRESSION_LZ4: u64 = 1;
/// Zstandard. Only in builds with it.
pub const FORREST_COMPRESSION_ZSTD: u64 = 2;

/// The largest pages that are available. The default.
pub const FORREST_PAGES_AUTO: u64 = 0;
/// Explicit huge pages of 1 GiB; if there are none, transparent ones.
pub const FORREST_PAGES_HUGE_1G: u64 = 1;
/// Explicit huge pages of 2 MiB; if there are none, transparent ones.
pub const FORREST_PAGES_HUGE_2M: u64 = 2;
/// Transparent huge pages; if there are none, plain ones.
pub const FORREST_PAGES_TRANSPARENT: u64 = 3;
/// Plain pages.
pub const FORREST_PAGES_PLAIN: u64 = 4;

/// The node of the thread that allocates. The default.
pub const FORREST_NUMA_LOCAL: u64 = 0;
/// All nodes, in turn.
pub const FORREST_NUMA_INTERLEAVE: u64 = 1;
/// With the number of a node added to it: that node, and others when it has no memory left.
pub const FORREST_NUMA_NODE: u64 = 0x10000;

/// For `forrest_write_with`: the durability with which the store was opened.
pub const FORREST_DURABILITY_DEFAULT: u64 = 0;
/// The change is applied. The end of the process may lose it.
pub const FORREST_DURABILITY_MEMORY: u64 = 1;
/// The operating system has it. It survives the end of the process.
pub const FORREST_DURABILITY_BUFFERED: u64 = 2;
/// The device has reported it stored, with everything before it. It survives power loss.
pub const FORREST_DURABILITY_SYNC: u64 = 3;

/// Creates an options object with all defaults. Destroy it with `forrest_options_destroy`.
///
/// # Safety
/// - `options` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_options_create(options: *mut *mut Options) -> i32 {
    guard(|| {
        // SAFETY: `options` is null or writable, as the Safety section demands.
        let mut options = unsafe { Place::of("options object", options, ptr::null_mut()) }?;
        options.put(OPTIONS.insert([Options::default()])?);
        Ok(FORREST_OK)
    })
}

/// Sets an option, one of `FORREST_CAPACITY_BYTES` to
/// `FORREST_LARGE_VALUES`.
///
/// `FORREST_INVALID_ARGUMENT` if this version of the library does not know the option or value; nothing is
/// changed then. Limits of numbers are checked when a store is opened.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_options_set(options: *mut Options, option: i32, value: u64) -> i32 {
    guard(|| {
        let mut options = OPTIONS.exclusive(options)?;
        options.set(option, value)?;
        Ok(FORREST_OK)
    })
}

/// Sets the directory for the log of a store on disk, usually on another device. Default: the directory of the store.
/// It is created if it does not exist; its parent directory must exist. A store must always be opened with the
/// directory that it was created with; with another one, or none, opening fails with `FORREST_INVALID_ARGUMENT`, and
/// the message names both. "forrest move-log" moves the log of a store.
///
/// # Safety
/// - `path` is null or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_options_set_log_directory(
    options: *mut Options,
    path: *const c_char,
) -> i32 {
    guard(|| {
        let mut options = OPTIONS.exclusive(options)?;
        // SAFETY: `path` is null or ends with a zero byte, as the Safety section demands.
        let path = unsafe { text("log directory", path) }?;
        options.builder = options.builder.clone().log_directory(path);
        Ok(FORREST_OK)
    })
}

/// Sets a function that decides which values stay in a store on disk. It is called, with this `context`, when tables
/// are written: for each value of a memtable that becomes a table, and for each value of tables that are merged, so any
/// number of times for one value, and at no certain time. Until then reads return the value; `forrest_compact` ends
/// with all values decided. Snapshots and iterators keep what they see. What it drops or replaces is no change of
/// `forrest_changes`. A replacement that does not fit the keyspace leaves the value as it is. If `filter` is null,
/// there is none.
///
/// # Safety
/// - `filter` is null or meets the requirements of `forrest_compaction_filter`, also with `context` in other threads,
///   until all stores that were opened with these options are closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_options_set_compaction_filter(
    options: *mut Options,
    filter: CompactionFilter,
    context: *mut c_void,
) -> i32 {
    guard(|| {
        OPTIONS.exclusive(options)?.filter = filter.map(|filter| Filter::new(filter, context));
        Ok(FORREST_OK)
    })
}

/// Registers a merge operator for keyspaces that have chosen it by its name, or are going to
/// (`forrest_set_merge_operator`), in memory and on disk. `sum`, `max`, `min`, `append` and `union` are always
/// registered. A store that has a keyspace with an operator opens only where that is registered, and not if two
/// operators have one name. The store remembers the name, not the function: one whose results change needs a new name.
///
/// `FORREST_INVALID_ARGUMENT` if `function` is null; nothing is changed then. The name has 1 to 255 bytes of
/// UTF-8; opening a store checks it.
///
/// # Safety
/// - `name` is null or ends with a zero byte.
/// - `function` is null or meets the requirements of `forrest_merge_function`, also with `context` in other
///   threads, until all stores that were opened with these options are closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_options_add_merge_operator(
    options: *mut Options,
    name: *const c_char,
    function: MergeFunction,
    context: *mut c_void,
) -> i32 {
    guard(|| {
        let mut options = OPTIONS.exclusive(options)?;
        // SAFETY: `name` is null or ends with a zero byte, as the Safety section demands.
        let name = unsafe { text("name of the merge operator", name) }?;
        let function =
            function.ok_or_else(|| Failure::invalid(format_args!("the merge operator is null")))?;
        options.builder = options.builder.clone().merge_operator(Operator::new(name, function, context));
        Ok(FORREST_OK)
    })
}

/// Sets a function to which a store on disk reports flushes, merges, stalls and failures, in their order. Null ends
/// that for stores that are opened later. Work waits until it returns, so it should only note the event. Up to 1,024
/// events wait; more are lost, and counted by `forrest_metrics`.
///
/// # Safety
/// - `listen` is null, or a function that meets the requirements of `forrest_listen`, from any thread, until every
///   store is closed that was opened with these options. So is `context`, if the function uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_options_set_listener(
    options: *mut Options,
    listen: Listen,
    context: *mut c_void,
) -> i32 {
    guard(|| {
        OPTIONS.exclusive(options)?.listener = listen.map(|listen| Listener::new(listen, context));
        Ok(FORREST_OK)
    })
}

/// Sets the file to which a store on disk writes its figures each second, in the text format of Prometheus, as
/// `forrest_metrics` returns it. Default: none. The file is replaced as a whole, and removed when the store is closed.
/// "forrest top" shows it. If it cannot be written at first, opening fails; later failures are ignored.
///
/// # Safety
/// - `path` is null or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_options_set_metrics_file(options: *mut Options, path: *const c_char) -> i32 {
    guard(|| {
        let mut options = OPTIONS.exclusive(options)?;
        // SAFETY: `path` is null or ends with a zero byte, as the Safety section demands.
        let path = unsafe { text("file for metrics", path) }?;
        options.builder = options.builder.clone().metrics_file(path);
        Ok(FORREST_OK)
    })
}

/// Sets the key of an encrypted store on disk: 32 random bytes, which are copied. A new store with a key is encrypted,
/// with its checkpoints and backups; without the key nothing can be read. Later it opens only with its key: with
/// another one, or none, opening fails with `FORREST_INVALID_ARGUMENT` and changes nothing. Other homes fail with
/// `FORREST_UNSUPPORTED`. The functions for directories of backups, and `forrest_salvage`, take the key too.
///
/// `FORREST_INVALID_ARGUMENT` if there are not 32 bytes; nothing is changed then.
///
/// # Safety
/// - `key` is null or has `key_bytes` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_options_set_encryption_key(
    options: *mut Options,
    key: *const c_void,
    key_bytes: usize,
) -> i32 {
    guard(|| {
        let mut options = OPTIONS.exclusive(options)?;
        // SAFETY: `key` is null or has `key_bytes` readable bytes, as the Safety section demands.
        let key = unsafe { encryption_key(key, key_bytes) }?;
        options.builder = options.builder.clone().encryption_key(key);
        Ok(FORREST_OK)
    })
}

/// Destroys an options object. Stores that were opened with it stay open. Null is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_options_destroy(options: *mut Options) -> i32 {
    guard(|| OPTIONS.remove(options).map(|()| FORREST_OK))
}

impl Options {
    /// The options of a handle.
    pub(crate) fn of(handle: *const Options) -> Result<Exclusive<Options>, Failure> {
        OPTIONS.exclusive(handle)
    }

    fn set(&mut self, option: i32, value: u64) -> Result<(), Failure> {
        if option == FORREST_READ_ONLY {
            self.read_only = flag(option, value)?;
            return Ok(());
        }
        let builder = self.builder.clone();
        self.builder = match option {
            FORREST_CAPACITY_BYTES => builder.capacity_bytes(size(value)?),
            FORREST_PAGES => builder.pages(pages(value)?),
            FORREST_NUMA => builder.numa(numa(value)?),
            FORREST_DURABILITY => match durability(value)? {
                Some(durability) => builder.durability(durability),
                None => return Err(unknown(option, value)),
            },
            FORREST_BATCH_OPS_MAX => builder.batch_ops_max(size(value)?),
            FORREST_BATCH_BYTES_MAX => builder.batch_bytes_max(size(value)?),
            FORREST_MEMORY_BYTES => builder.memory_bytes(size(value)?),
            FORREST_MEMTABLE_BYTES => builder.memtable_bytes(size(value)?),
            FORREST_CACHE_BYTES => builder.cache_bytes(size(value)?),
            FORREST_TABLE_BYTES => builder.table_bytes(value),
            FORREST_LARGE_VALUES => builder.large_values(size(value)?),
            FORREST_COMPRESSION => builder.compression(compression(value)?),
            FORREST_LATENCIES => builder.latencies(flag(option, value)?),
            FORREST_HISTORY => builder.history(flag(option, value)?),
            FORREST_HISTORY_BYTES => builder.history_bytes(value),
            FORREST_HISTORY_AGE_MS => builder.history_age(Duration::from_millis(value)),
            FORREST_TAGS => builder.tags(flag(option, value)?),
            FORREST_WORKERS => builder.workers(size(value)?),
            FORREST_WORKER_CPU => {
                self.worker_cpus.push(size(value)?);
                builder.worker_cpus(&self.worker_cpus)
            }
            FORREST_OPEN_FILES => builder.open_files(size(value)?),
            FORREST_WAIT_MS => builder.wait(Duration::from_millis(value)),
            FORREST_BACKGROUND_BYTES_PER_SECOND => {
                builder.background_bytes_per_second((value > 0).then_some(value))
            }
            FORREST_CREATE => builder.create(flag(option, value)?),
            FORREST_MODE => builder.mode(u32::try_from(value).map_err(|_| unknown(option, value))?),
            _ => return Err(Failure::invalid(format_args!("this version has no option {option}"))),
        };
        Ok(())
    }

    /// Opens a store with these options.
    pub(crate) fn open(&self, url: &str) -> Result<Db, Failure> {
        let builder = self.builder.clone();
        let builder = self.filter.into_iter().fold(builder, |builder, filter| filter.put(builder));
        let builder = self.listener.into_iter().fold(builder, |builder, listener| listener.put(builder));
        let open = if self.read_only { Builder::open_read_only } else { Builder::open };
        Ok(open(&builder, url)?)
    }
}

/// One changed option.
pub(crate) fn changes(option: i32, value: u64) -> Result<OptionChanges, Failure> {
    let changes = OptionChanges::new();
    Ok(match option {
        FORREST_BATCH_OPS_MAX => changes.batch_ops_max(size(value)?),
        FORREST_BATCH_BYTES_MAX => changes.batch_bytes_max(size(value)?),
        FORREST_MEMORY_BYTES => changes.memory_bytes(size(value)?),
        FORREST_WORKERS => changes.workers(size(value)?),
        FORREST_MEMTABLE_BYTES => changes.memtable_bytes(size(value)?),
        FORREST_CACHE_BYTES => changes.cache_bytes(size(value)?),
        FORREST_TABLE_BYTES => changes.table_bytes(value),
        FORREST_OPEN_FILES => changes.open_files(size(value)?),
        FORREST_WAIT_MS => changes.wait(Duration::from_millis(value)),
        FORREST_BACKGROUND_BYTES_PER_SECOND => {
            changes.background_bytes_per_second((value > 0).then_some(value))
        }
        _ => {
            let what = format_args!("an open store cannot change option {option}");
            return Err(Failure::invalid(what));
        }
    })
}

/// A level of durability; None for the default one.
pub(crate) fn durability(value: u64) -> Result<Option<Durability>, Failure> {
    Ok(match value {
        FORREST_DURABILITY_DEFAULT => None,
        FORREST_DURABILITY_MEMORY => Some(Durability::Memory),
        FORREST_DURABILITY_BUFFERED => Some(Durability::Buffered),
        FORREST_DURABILITY_SYNC => Some(Durability::Sync),
        _ => return Err(unknown(FORREST_DURABILITY, value)),
    })
}

/// A compression.
pub(crate) fn compression(value: u64) -> Result<Compression, Failure> {
    Ok(match value {
        FORREST_COMPRESSION_NONE => Compression::None,
        FORREST_COMPRESSION_LZ4 => Compression::Lz4,
        FORREST_COMPRESSION_ZSTD => Compression::Zstd,
        _ => return Err(unknown(FORREST_COMPRESSION, value)),
    })
}

fn pages(value: u64) -> Result<Pages, Failure> {
    Ok(match value {
        FORREST_PAGES_AUTO => Pages::Auto,
        FORREST_PAGES_HUGE_1G => Pages::Huge1G,
        FORREST_PAGES_HUGE_2M => Pages::Huge2M,
        FORREST_PAGES_TRANSPARENT => Pages::Transparent,
        FORREST_PAGES_PLAIN => Pages::Plain,
        _ => return Err(unknown(FORREST_PAGES, value)),
    })
}

/// The last number of a node.
const FORREST_NUMA_NODE_MAX: u64 = FORREST_NUMA_NODE + 0xFFFF;

fn numa(value: u64) -> Result<Numa, Failure> {
    Ok(match value {
        FORREST_NUMA_LOCAL => Numa::Local,
        FORREST_NUMA_INTERLEAVE => Numa::Interleave,
        FORREST_NUMA_NODE..=FORREST_NUMA_NODE_MAX => Numa::Node((value - FORREST_NUMA_NODE) as u32),
        _ => return Err(unknown(FORREST_NUMA, value)),
    })
}

fn flag(option: i32, value: u64) -> Result<bool, Failure> {
    if value > 1 { Err(unknown(option, value)) } else { Ok(value == 1) }
}

fn size(value: u64) -> Result<usize, Failure> {
    usize::try_from(value).map_err(|_| {
        Failure::new(
            ErrorKind::Limit,
            format_args!("option value {value}; at most {} is allowed", usize::MAX),
        )
    })
}

fn unknown(option: i32, value: u64) -> Failure {
    Failure::invalid(format_args!("in this version, option {option} has no value {value}"))
}

//! How a store is opened, where the defaults do not serve.

use crate::argument::Place;
use crate::code::FORREST_OK;
use crate::failure::{Failure, guard};
use crate::handle::{Exclusive, Table};
use forrest_rust::{Builder, Db, Durability, ErrorKind, Numa, Pages};
use std::ptr;

/// How a store is opened: what was not set is as by default. One thread at a time may use it.
#[derive(Debug)]
pub struct Options {
    builder: Builder,
    worker_cpus: Vec<usize>,
    read_only: bool,
    /// Whether anything but `read_only` was set.
    more: bool,
}

static OPTIONS: Table<Options, 1> = Table::new("options object", 3);

/// Most memory of the nodes of a store in memory, or of a store in the kernel that is made. Bytes; from 1. By default
/// what the machine has, or what the module allows.
pub const FORREST_CAPACITY_BYTES: i32 = 1;
/// On which pages memory lies: one of `FORREST_PAGES_AUTO` to `FORREST_PAGES_PLAIN`.
pub const FORREST_PAGES: i32 = 2;
/// Which memory of a machine with several nodes is used: `FORREST_NUMA_LOCAL` or `FORREST_NUMA_INTERLEAVE`.
pub const FORREST_NUMA: i32 = 3;
/// What is promised about a change when its call returns: one of `FORREST_DURABILITY_MEMORY` to
/// `FORREST_DURABILITY_SYNC`; by default the most that needs no wait for a device. More than the home can keep is
/// `FORREST_UNSUPPORTED` when it is opened.
pub const FORREST_DURABILITY: i32 = 4;
/// Most changes in a batch; 1 to 4,294,967,295. By default 1,048,576.
pub const FORREST_BATCH_OPS_MAX: i32 = 5;
/// Most bytes of keys and values in a batch; 1 to 2^40. By default 1 GiB.
pub const FORREST_BATCH_BYTES_MAX: i32 = 6;
/// Size at which a store on disk writes its newest changes out as tables. Bytes; from 1. By default 64 MiB.
pub const FORREST_MEMTABLE_BYTES: i32 = 7;
/// Memory for what a store on disk has read from its tables. Bytes; from 1. By default 256 MiB.
pub const FORREST_CACHE_BYTES: i32 = 8;
/// Size at which a store on disk finishes a table and begins another, where it merges. Bytes; from 1. By default 80
/// MiB.
pub const FORREST_TABLE_BYTES: i32 = 9;
/// Whether a store on disk keeps a byte of hash for each key of several overlapping tables, which makes look-ups of
/// single keys quicker: 0 or 1. By default 1.
pub const FORREST_TAGS: i32 = 10;
/// Most threads that write and merge the tables of a store on disk at once; 1 to 256. By default the number of
/// processors that the process may use, 4 at most.
pub const FORREST_WORKERS: i32 = 11;
/// The number of a processor that these threads may run on. Set again, it adds another. By default they may run on all.
pub const FORREST_WORKER_CPU: i32 = 12;
/// Most files that a store on disk has open to be read; from 1. By default 4,096, or half of what the process may have.
pub const FORREST_OPEN_FILES: i32 = 13;
/// Whether a store that is not there is made: 0 or 1. By default 1.
pub const FORREST_CREATE: i32 = 14;
/// Who may read and write a store in the kernel that is made: the bits of a file's mode, up to 0666. By default 0600.
pub const FORREST_MODE: i32 = 15;
/// Whether the store is opened to be read only, while others may write to it: 0 or 1. By default 0. It must be there
/// then, and nothing else may be set. `FORREST_UNSUPPORTED` when it is opened, but in the kernel.
pub const FORREST_READ_ONLY: i32 = 16;

/// The largest pages that are to be had. The default.
pub const FORREST_PAGES_AUTO: u64 = 0;
/// Explicit huge pages of 1 GiB; where there are none, transparent ones.
pub const FORREST_PAGES_HUGE_1G: u64 = 1;
/// Explicit huge pages of 2 MiB; where there are none, transparent ones.
pub const FORREST_PAGES_HUGE_2M: u64 = 2;
/// Transparent huge pages; where there are none, plain ones.
pub const FORREST_PAGES_TRANSPARENT: u64 = 3;
/// Plain pages.
pub const FORREST_PAGES_PLAIN: u64 = 4;

/// The node of the thread that needs the memory. The default.
pub const FORREST_NUMA_LOCAL: u64 = 0;
/// All nodes, in turn.
pub const FORREST_NUMA_INTERLEAVE: u64 = 1;

/// For `forrest_write_with`: what the store was opened with.
pub const FORREST_DURABILITY_DEFAULT: u64 = 0;
/// A change is made. The end of the process may lose it.
pub const FORREST_DURABILITY_MEMORY: u64 = 1;
/// The operating system has it. It survives the end of the process.
pub const FORREST_DURABILITY_BUFFERED: u64 = 2;
/// The device has reported it stored, and all that came before it. It survives power loss.
pub const FORREST_DURABILITY_SYNC: u64 = 3;

/// Makes an options object with all defaults, to be given to `forrest_options_destroy`.
///
/// # Safety
/// - `options` is null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_options_create(options: *mut *mut Options) -> i32 {
    guard(|| {
        // SAFETY: the caller's promise.
        let mut options = unsafe { Place::of("options object", options, ptr::null_mut()) }?;
        let (builder, worker_cpus) = (Builder::default(), Vec::new());
        options.put(OPTIONS.insert([Options { builder, worker_cpus, read_only: false, more: false }])?);
        Ok(FORREST_OK)
    })
}

/// Sets an option, one of `FORREST_CAPACITY_BYTES` to `FORREST_READ_ONLY`.
///
/// `FORREST_INVALID_ARGUMENT` if this library knows no such option or value; numbers out of their limits are found when
/// a store is opened. The options are as they were then.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_options_set(options: *mut Options, option: i32, value: u64) -> i32 {
    guard(|| {
        let mut options = OPTIONS.exclusive(options)?;
        options.set(option, value)?;
        Ok(FORREST_OK)
    })
}

/// Gives an options object back. Stores that were opened with it go on. Null is nothing to give back.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_options_destroy(options: *mut Options) -> i32 {
    guard(|| OPTIONS.remove(options).map(|()| FORREST_OK))
}

impl Options {
    /// What C has a handle to.
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
            FORREST_MEMTABLE_BYTES => builder.memtable_bytes(size(value)?),
            FORREST_CACHE_BYTES => builder.cache_bytes(size(value)?),
            FORREST_TABLE_BYTES => builder.table_bytes(value),
            FORREST_TAGS => builder.tags(flag(option, value)?),
            FORREST_WORKERS => builder.workers(size(value)?),
            FORREST_WORKER_CPU => {
                self.worker_cpus.push(size(value)?);
                builder.worker_cpus(&self.worker_cpus)
            }
            FORREST_OPEN_FILES => builder.open_files(size(value)?),
            FORREST_CREATE => builder.create(flag(option, value)?),
            FORREST_MODE => builder.mode(u32::try_from(value).map_err(|_| unknown(option, value))?),
            _ => return Err(Failure::invalid(format_args!("there is no option {option} in this version"))),
        };
        self.more = true;
        Ok(())
    }

    /// Opens a store so.
    pub(crate) fn open(&self, url: &str) -> Result<Db, Failure> {
        match (self.read_only, self.more) {
            (true, true) => {
                Err(Failure::invalid("a store that is opened to be read only takes no other option"))
            }
            (true, false) => Ok(Db::open_read_only(url)?),
            (false, _) => Ok(self.builder.clone().open(url)?),
        }
    }
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

fn numa(value: u64) -> Result<Numa, Failure> {
    Ok(match value {
        FORREST_NUMA_LOCAL => Numa::Local,
        FORREST_NUMA_INTERLEAVE => Numa::Interleave,
        _ => return Err(unknown(FORREST_NUMA, value)),
    })
}

fn flag(option: i32, value: u64) -> Result<bool, Failure> {
    if value > 1 { Err(unknown(option, value)) } else { Ok(value == 1) }
}

fn size(value: u64) -> Result<usize, Failure> {
    usize::try_from(value).map_err(|_| Failure::new(ErrorKind::Limit, format_args!("{value} is too much")))
}

fn unknown(option: i32, value: u64) -> Failure {
    Failure::invalid(format_args!("option {option} has no value {value} in this version"))
}

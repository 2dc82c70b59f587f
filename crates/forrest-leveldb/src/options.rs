//! Options of stores, reads and writes.

use crate::argument::{handed, take_back};
use crate::failure::Failure;
use crate::objects::{Cache, Comparator, Env, FilterPolicy, shared};
use crate::snapshot::Snapshot;
use forrest::{Builder, Compression, Durability};
use std::ffi::c_int;
use std::mem::ManuallyDrop;
use std::sync::{Arc, Weak};

/// A value for `leveldb_options_set_compression`: tables are not compressed.
pub const LEVELDB_NO_COMPRESSION: c_int = 0;
/// A value for `leveldb_options_set_compression`, the default: tables are compressed, by LZ4.
pub const LEVELDB_SNAPPY_COMPRESSION: c_int = 1;

/// A file to which LevelDB logs. No function makes one.
#[derive(Debug)]
pub struct Logger(());

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct Options {
    pub(crate) comparator: Option<Arc<Comparator>>,
    pub(crate) create_if_missing: bool,
    pub(crate) error_if_exists: bool,
    write_buffer_bytes: Option<usize>,
    open_files: Option<usize>,
    cache_bytes: Option<usize>,
    file_bytes: Option<usize>,
    compression: c_int,
}

impl Options {
    /// What Forrest is to be opened with.
    pub(crate) fn builder(&self) -> Result<Builder, Failure> {
        let compression = match self.compression {
            LEVELDB_NO_COMPRESSION => Compression::None,
            LEVELDB_SNAPPY_COMPRESSION => Compression::Lz4,
            other => return Err(Failure::invalid(format_args!("the compression {other} is unknown"))),
        };
        // A write that does not sync has reached the operating system, as in LevelDB.
        let mut builder = Builder::default()
            .create(self.create_if_missing)
            .compression(compression)
            // LevelDB limits batches by their count, of 32 bits.
            .batch_ops_max(u32::MAX as usize)
            .batch_bytes_max(1 << 40)
            .durability(Durability::Buffered);
        // The limits are those of LevelDB.
        if let Some(bytes) = self.write_buffer_bytes {
            builder = builder.memtable_bytes(bytes.clamp(64 << 10, 1 << 30));
        }
        if let Some(bytes) = self.file_bytes {
            builder = builder.table_bytes(bytes.clamp(1 << 20, 1 << 30) as u64);
        }
        if let Some(files) = self.open_files {
            builder = builder.open_files(files.clamp(1, 50_000));
        }
        if let Some(bytes) = self.cache_bytes {
            builder = builder.cache_bytes(bytes.max(1));
        }
        Ok(builder)
    }
}

/// Makes options with their defaults. Destroy them with `leveldb_options_destroy`.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_create() -> *mut Options {
    handed(Options {
        comparator: None,
        create_if_missing: false,
        error_if_exists: false,
        write_buffer_bytes: None,
        open_files: None,
        cache_bytes: None,
        file_bytes: None,
        compression: LEVELDB_SNAPPY_COMPRESSION,
    })
}

/// Frees options. Stores that were opened with them stay open. Null is ignored.
///
/// # Safety
/// - `options` is null, or came from `leveldb_options_create` and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_destroy(options: *mut Options) {
    // SAFETY: `options` is null or came from `handed`, and is not used any more, by this function's `# Safety`.
    unsafe { take_back(options) };
}

/// Changes options, if they are not null.
///
/// # Safety
/// - `options` is null, or live, and no other thread uses it.
unsafe fn change<T>(options: *mut T, set: impl FnOnce(&mut T)) {
    // SAFETY: `options` is null, or live and used by this thread only, by this function's `# Safety`.
    if let Some(options) = unsafe { options.as_mut() } {
        set(options);
    }
}

/// Sets the comparator; null, the default, is the order of bytes. See `leveldb_comparator_create`.
///
/// # Safety
/// - `options` is null, or was made by this library and not destroyed, and no other thread uses it.
/// - `comparator` is null, or came from `leveldb_comparator_create` and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_set_comparator(options: *mut Options, comparator: *mut Comparator) {
    // SAFETY: both pointers meet the requirements of `change` and `shared`, by this function's `# Safety`.
    unsafe { change(options, |options| options.comparator = shared(comparator)) };
}

/// Has no effect: Forrest's tables have a hash tag for each key.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_filter_policy(options: *mut Options, policy: *mut FilterPolicy) {
    let _ignored = (options, policy);
}

/// Whether to create a store that is missing. Default: 0, opening then fails.
///
/// # Safety
/// - As `leveldb_options_set_comparator`, for `options`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_set_create_if_missing(options: *mut Options, value: u8) {
    // SAFETY: `options` meets the requirement of `change`, by this function's `# Safety`.
    unsafe { change(options, |options| options.create_if_missing = value != 0) };
}

/// Whether opening fails if there is a store. Default: 0.
///
/// # Safety
/// - As `leveldb_options_set_comparator`, for `options`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_set_error_if_exists(options: *mut Options, value: u8) {
    // SAFETY: `options` meets the requirement of `change`, by this function's `# Safety`.
    unsafe { change(options, |options| options.error_if_exists = value != 0) };
}

/// Has no effect: Forrest verifies the checksum of all that it reads, and stops at damage.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_paranoid_checks(options: *mut Options, value: u8) {
    let _ignored = (options, value);
}

/// Has no effect: there is one environment.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_env(options: *mut Options, env: *mut Env) {
    let _ignored = (options, env);
}

/// Has no effect: no function makes a logger. Pass null.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_info_log(options: *mut Options, logger: *mut Logger) {
    let _ignored = (options, logger);
}

/// The size in bytes at which a memtable is written to a table: 64 KiB to 1 GiB. Default: 64 MiB, or less on small
/// machines. Up to three may be in memory.
///
/// # Safety
/// - As `leveldb_options_set_comparator`, for `options`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_set_write_buffer_size(options: *mut Options, bytes: usize) {
    // SAFETY: `options` meets the requirement of `change`, by this function's `# Safety`.
    unsafe { change(options, |options| options.write_buffer_bytes = Some(bytes)) };
}

/// The maximum number of table files that are open: 1 to 50,000. Default: 4,096, or half of the limit of the process.
///
/// # Safety
/// - As `leveldb_options_set_comparator`, for `options`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_set_max_open_files(options: *mut Options, files: c_int) {
    // SAFETY: `options` meets the requirement of `change`, by this function's `# Safety`.
    unsafe { change(options, |options| options.open_files = Some(files.max(1) as usize)) };
}

/// Sets the size of the cache, that of `cache`. Null is the default: Forrest's, up to a quarter of the machine's memory
/// and 512 MiB with the memtables. The options keep no pointer to `cache`.
///
/// # Safety
/// - As `leveldb_options_set_comparator`, for `options`.
/// - `cache` is null, or came from `leveldb_cache_create_lru` and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_set_cache(options: *mut Options, cache: *mut Cache) {
    // SAFETY: `cache` is null or live, and `options` meets the requirement of `change`, by this function's `# Safety`.
    unsafe {
        let bytes = cache.as_ref().map(|cache| cache.capacity_bytes);
        change(options, |options| options.cache_bytes = bytes);
    }
}

/// Has no effect: the pages of Forrest's tables have one size.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_block_size(options: *mut Options, bytes: usize) {
    let _ignored = (options, bytes);
}

/// Has no effect: Forrest's tables have no restart points.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_block_restart_interval(options: *mut Options, keys: c_int) {
    let _ignored = (options, keys);
}

/// The size in bytes at which a compaction begins another table: 1 MiB to 1 GiB. Default: 80 MiB.
///
/// # Safety
/// - As `leveldb_options_set_comparator`, for `options`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_set_max_file_size(options: *mut Options, bytes: usize) {
    // SAFETY: `options` meets the requirement of `change`, by this function's `# Safety`.
    unsafe { change(options, |options| options.file_bytes = Some(bytes)) };
}

/// Compression of the tables that are written from now on: `leveldb_no_compression`, or `leveldb_snappy_compression`,
/// the default, which stands for LZ4. Opening fails with another number.
///
/// # Safety
/// - As `leveldb_options_set_comparator`, for `options`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_options_set_compression(options: *mut Options, compression: c_int) {
    // SAFETY: `options` meets the requirement of `change`, by this function's `# Safety`.
    unsafe { change(options, |options| options.compression = compression) };
}

/// How something is read.
#[derive(Debug, Default)]
pub struct ReadOptions {
    /// A snapshot that may have been released.
    snapshot: Option<Weak<Snapshot>>,
}

impl ReadOptions {
    /// The snapshot to be read; `None` for the newest state.
    pub(crate) fn snapshot(&self) -> Result<Option<Arc<Snapshot>>, Failure> {
        let Some(snapshot) = &self.snapshot else { return Ok(None) };
        let released = || Failure::invalid("the snapshot of the read options was released");
        snapshot.upgrade().ok_or_else(released).map(Some)
    }
}

/// Makes read options. Destroy them with `leveldb_readoptions_destroy`.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_readoptions_create() -> *mut ReadOptions {
    handed(ReadOptions::default())
}

/// Frees read options. Null is ignored.
///
/// # Safety
/// - `options` is null, or came from `leveldb_readoptions_create` and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_readoptions_destroy(options: *mut ReadOptions) {
    // SAFETY: `options` is null or came from `handed`, and is not used any more, by this function's `# Safety`.
    unsafe { take_back(options) };
}

/// Has no effect: checksums are verified whenever a page is read from the device.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_readoptions_set_verify_checksums(options: *mut ReadOptions, value: u8) {
    let _ignored = (options, value);
}

/// Has no effect: the cache decides by itself what to keep.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_readoptions_set_fill_cache(options: *mut ReadOptions, value: u8) {
    let _ignored = (options, value);
}

/// Sets the snapshot to be read; null, the default, is the newest state. After the snapshot is released, reads with
/// these options fail.
///
/// # Safety
/// - `options` is null, or came from `leveldb_readoptions_create` and was not destroyed, and no other thread uses it.
/// - `snapshot` is null, or came from `leveldb_create_snapshot` and was not released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_readoptions_set_snapshot(
    options: *mut ReadOptions,
    snapshot: *const Snapshot,
) {
    let weak = (!snapshot.is_null()).then(|| {
        // SAFETY: `snapshot` is not null, checked on this line, so it came from `Arc::into_raw` and was not released.
        // `ManuallyDrop` leaves its reference to the program.
        let snapshot = ManuallyDrop::new(unsafe { Arc::from_raw(snapshot) });
        Arc::downgrade(&snapshot)
    });
    // SAFETY: `options` meets the requirement of `change`, by this function's `# Safety`.
    unsafe { change(options, |options| options.snapshot = weak) };
}

/// How something is written.
#[derive(Debug, Default)]
pub struct WriteOptions {
    is_sync: bool,
}

impl WriteOptions {
    /// The durability of a change when its call returns.
    pub(crate) fn durability(&self) -> Durability {
        if self.is_sync { Durability::Sync } else { Durability::Buffered }
    }
}

/// Makes write options. Destroy them with `leveldb_writeoptions_destroy`.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writeoptions_create() -> *mut WriteOptions {
    handed(WriteOptions::default())
}

/// Frees write options. Null is ignored.
///
/// # Safety
/// - `options` is null, or came from `leveldb_writeoptions_create` and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_writeoptions_destroy(options: *mut WriteOptions) {
    // SAFETY: `options` is null or came from `handed`, and is not used any more, by this function's `# Safety`.
    unsafe { take_back(options) };
}

/// Whether a write returns only when it survives a loss of power. Default: 0, it survives the end of the process.
///
/// # Safety
/// - `options` is null, or came from `leveldb_writeoptions_create` and was not destroyed, and no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_writeoptions_set_sync(options: *mut WriteOptions, value: u8) {
    // SAFETY: `options` meets the requirement of `change`, by this function's `# Safety`.
    unsafe { change(options, |options| options.is_sync = value != 0) };
}

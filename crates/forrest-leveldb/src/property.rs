//! What a store reports about itself: properties, and the sizes of ranges. And compaction, of a range.

use crate::argument::bound;
use crate::db::Db;
use crate::failure::quiet;
use crate::memory::given;
use std::ffi::{CStr, c_char, c_int};
use std::fmt::Write as _;
use std::ops::Bound;
use std::ptr;

/// Levels that LevelDB has. All tables of Forrest count as those of level 0, because they may overlap.
const LEVELS: u32 = 7;

/// The value of a property, as text. Null if there is no such property. Free it with `leveldb_free`.
///
/// - `leveldb.num-files-at-level0`: the number of tables. Forrest has no levels; those from 1 to 6 have 0 files.
/// - `leveldb.stats`: what the store has and has done, as Forrest prints it.
/// - `leveldb.sstables`: the names of the tables and their bytes.
/// - `leveldb.approximate-memory-usage`: bytes of memory of memtables, cache and indexes.
///
/// # Safety
/// - `db` is null, or came from `leveldb_open` and was not closed.
/// - `propname` is null, or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_property_value(db: *mut Db, propname: *const c_char) -> *mut c_char {
    quiet(ptr::null_mut(), || {
        // SAFETY: `db` is null or live, by this function's `# Safety`.
        let db = unsafe { db.as_ref() }?;
        // SAFETY: `propname` is not null, checked on this line, so it ends with a zero byte.
        let name = (!propname.is_null()).then(|| unsafe { CStr::from_ptr(propname) })?;
        let mut text = property(db, name.to_str().ok()?.strip_prefix("leveldb.")?)?.into_bytes();
        text.push(0);
        Some(given(&text).cast())
    })
}

fn property(db: &Db, name: &str) -> Option<String> {
    let stats = db.store.stats().ok()?;
    if let Some(level) = name.strip_prefix("num-files-at-level") {
        let is_number = !level.is_empty() && level.bytes().all(|byte| byte.is_ascii_digit());
        let level: u32 = level.parse().ok().filter(|level| is_number && *level < LEVELS)?;
        return Some(if level == 0 { stats.tables.to_string() } else { "0".to_owned() });
    }
    match name {
        "stats" => Some(format!("{stats}{}", db.store.metrics().ok()?)),
        "sstables" => tables(db),
        "approximate-memory-usage" => {
            let bytes = stats.used_bytes() + stats.cache_bytes + stats.index_bytes + stats.kept_bytes;
            Some(bytes.to_string())
        }
        _ => None,
    }
}

/// The tables in the directory. One that is being made may be among them.
fn tables(db: &Db) -> Option<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&db.path).ok()?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".table") {
            names.push((name, entry.metadata().map_or(0, |found| found.len())));
        }
    }
    names.sort();
    let mut text = "--- level 0 ---\n".to_owned();
    for (name, bytes) in names {
        let _infallible = writeln!(text, " {name}: {bytes}");
    }
    Some(text)
}

/// Sets `sizes[i]` to the approximate number of bytes of the keys and values from `range_start_key[i]` to before
/// `range_limit_key[i]`, with those in memory. 0 if that fails, and for a range whose start is not
/// below its limit. What is compressed counts compressed.
///
/// # Safety
/// - `db` is null, or came from `leveldb_open` and was not closed.
/// - The four arrays are null, or have `num_ranges` elements, and the keys have these lengths.
/// - `sizes` is null, or has `num_ranges` writable elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_approximate_sizes(
    db: *mut Db,
    num_ranges: c_int,
    range_start_key: *const *const c_char,
    range_start_key_len: *const usize,
    range_limit_key: *const *const c_char,
    range_limit_key_len: *const usize,
    sizes: *mut u64,
) {
    let arrays = [range_start_key, range_limit_key].iter().all(|keys| !keys.is_null());
    let lengths = [range_start_key_len, range_limit_key_len].iter().all(|lengths| !lengths.is_null());
    for at in 0..usize::try_from(num_ranges).unwrap_or(0) {
        if sizes.is_null() {
            return;
        }
        let size = quiet(0, || {
            // SAFETY: `db` is null or live, by this function's `# Safety`.
            let db = unsafe { db.as_ref() }.filter(|_| arrays && lengths)?;
            // SAFETY: the arrays are not null, checked on the line before, and have `num_ranges` elements, more than
            // `at`. The slices end with this call.
            let (start, limit) = unsafe {
                (
                    bound(*range_start_key.add(at), *range_start_key_len.add(at)).ok()?,
                    bound(*range_limit_key.add(at), *range_limit_key_len.add(at)).ok()?,
                )
            };
            let range = (Bound::Included(start?), Bound::Excluded(limit?));
            db.store.approximate(range).ok().map(|about| about.bytes)
        });
        // SAFETY: `sizes` is not null, checked above, and has `num_ranges` elements, more than `at`.
        unsafe { sizes.add(at).write(size) };
    }
}

/// Writes what is in memory to tables, and merges the tables that may have keys from `start_key` to `limit_key`, which
/// is among them. Null is before the first key, or after the last one. Returns when that is done, or has failed; there
/// is no error.
///
/// # Safety
/// - `db` is null, or came from `leveldb_open` and was not closed.
/// - `start_key` is null or has `start_key_len` readable bytes, and `limit_key` is null or has `limit_key_len`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_compact_range(
    db: *mut Db,
    start_key: *const c_char,
    start_key_len: usize,
    limit_key: *const c_char,
    limit_key_len: usize,
) {
    quiet((), || {
        // SAFETY: `db` is null or live, by this function's `# Safety`.
        let db = unsafe { db.as_ref() }?;
        // SAFETY: both keys are null or have these lengths, and the slices end with this call.
        let (start, limit) =
            unsafe { (bound(start_key, start_key_len).ok()?, bound(limit_key, limit_key_len).ok()?) };
        let start = start.map_or(Bound::Unbounded, Bound::Included);
        let limit = limit.map_or(Bound::Unbounded, Bound::Included);
        db.store.compact_range((start, limit)).ok()
    });
}

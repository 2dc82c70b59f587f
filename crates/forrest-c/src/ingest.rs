//! Ingests: many sorted pairs, which a keyspace gets at one instant.

use crate::argument::{Place, key, value};
use crate::code::FORREST_OK;
use crate::db::Db;
use crate::failure::{Failure, guard};
use crate::handle::Table;
use std::ffi::c_void;
use std::fmt;
use std::ptr;

/// Sorted pairs that a keyspace gets at one instant, by `forrest_ingest_finish`. Nobody sees them before. On disk
/// this is the fastest way to load many pairs: each is written once, to a table, and to no log. Use it for a million
/// pairs rather than for a thousand: each ingest makes at least one table, and waits for several syncs.
///
/// Only one thread at a time may use an ingest. It keeps the store open.
pub struct Ingest(Option<forrest_rust::Ingest>);

static INGESTS: Table<Ingest, 1> = Table::new("ingest", 8);

impl fmt::Debug for Ingest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn finished() -> Failure {
    forrest_rust::Error::new(
        forrest_rust::ErrorKind::InvalidArgument,
        "this ingest is finished; destroy it and begin another one",
    )
    .into()
}

/// Begins an ingest into the keyspace of `db`. Destroy it with `forrest_ingest_destroy`, also after it was finished.
///
/// `FORREST_INVALID_ARGUMENT` if `db` is a snapshot, `FORREST_UNSUPPORTED` if the home has no `FORREST_CAN_INGEST`, or
/// if the store was opened to be read. `FORREST_OUT_OF_SPACE`, `FORREST_STOPPED`.
///
/// # Safety
/// - `ingest` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_ingest_begin(db: *mut Db, ingest: *mut *mut Ingest) -> i32 {
    guard(|| {
        // SAFETY: `ingest` is null or writable, as the Safety section demands.
        let mut ingest = unsafe { Place::of("ingest", ingest, ptr::null_mut()) }?;
        let db = Db::of(db)?;
        let begun = db.newest()?.1.ingest()?;
        ingest.put(INGESTS.insert([Ingest(Some(begun))])?);
        Ok(FORREST_OK)
    })
}

/// Adds a pair. Keys come in ascending order of their bytes, each once.
///
/// `FORREST_INVALID_ARGUMENT` if the key is not greater than the one before (the message names both),
/// `FORREST_LIMIT` if the key or the value is too long: the pair is left out, and the ingest can go on. After another
/// error it is of no use any more.
///
/// # Safety
/// - `key` is null or has `key_bytes` readable bytes, and `value` is null or has `value_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_ingest_put(
    ingest: *mut Ingest,
    key: *const c_void,
    key_bytes: usize,
    value: *const c_void,
    value_bytes: usize,
) -> i32 {
    guard(|| {
        // SAFETY: `key` and `value` are null or have `key_bytes` and `value_bytes` readable bytes, as the
        // Safety section demands.
        let (key, value) = unsafe { (self::key(key, key_bytes)?, self::value(value, value_bytes)?) };
        let mut ingest = INGESTS.exclusive(ingest)?;
        ingest.0.as_mut().ok_or_else(finished)?.put(key, value)?;
        Ok(FORREST_OK)
    })
}

/// Makes all pairs visible at one instant, and writes their number to `*pairs`, unless that is null. They replace the
/// values that their keys have then. On disk they survive a loss of power when this returns, and so does every change
/// before. The ingest is of no use afterwards, also after an error.
///
/// An error means that the store has none of the pairs, except `FORREST_STOPPED`: they may be there when the store is
/// opened again.
///
/// # Safety
/// - `pairs` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_ingest_finish(ingest: *mut Ingest, pairs: *mut u64) -> i32 {
    guard(|| {
        // SAFETY: `pairs` is null or writable, as the Safety section demands.
        let mut pairs = unsafe { Place::perhaps(pairs, 0) };
        let ended = INGESTS.exclusive(ingest)?.0.take().ok_or_else(finished)?;
        let count = ended.finish()?;
        if let Some(pairs) = &mut pairs {
            pairs.put(count);
        }
        Ok(FORREST_OK)
    })
}

/// Destroys an ingest. Pairs that were not made visible are discarded. Null is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_ingest_destroy(ingest: *mut Ingest) -> i32 {
    guard(|| INGESTS.remove(ingest).map(|()| FORREST_OK))
}

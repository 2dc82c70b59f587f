//! The changes of a store, as a stream.

use crate::argument::Place;
use crate::code::{FORREST_ABSENT, FORREST_NOT_FOUND, FORREST_OK};
use crate::db::Db;
use crate::failure::{Failure, guard};
use crate::handle::Table;
use crate::options::durability;
use forrest_rust::What;
use std::ffi::{CString, c_char, c_void};
use std::ptr;
use std::time::Duration;

/// The changes of a store after a sequence number, in their order. Only one thread at a time may use it. It keeps the
/// store open.
#[derive(Debug)]
pub struct Changes(Box<Following>); // boxed, so that tools that check memory accesses see where it ends

#[derive(Debug)]
struct Following {
    changes: forrest_rust::Changes,
    /// What C got pointers to.
    change: Option<forrest_rust::Change>,
    keyspace: CString,
}

static FOLLOWING: Table<Changes, 1> = Table::new("stream of changes", 9);

/// The key has this value.
pub const FORREST_CHANGE_SET: i32 = 1;
/// The key is not there.
pub const FORREST_CHANGE_DELETE: i32 = 2;
/// No key from `key` up to but not including `value` is there; if `value` is null, no key from `key` on.
pub const FORREST_CHANGE_DELETE_RANGE: i32 = 3;
/// The keyspace was created, and is empty.
pub const FORREST_CHANGE_CREATE_KEYSPACE: i32 = 4;
/// The keyspace was dropped, with all its keys.
pub const FORREST_CHANGE_DROP_KEYSPACE: i32 = 5;
/// An ingest may have added pairs with keys from `key` to `value`, both included. The changes do not have them: read
/// the range.
pub const FORREST_CHANGE_INGEST: i32 = 6;

/// A change. All its pointers are valid until the next call with the same stream. Later versions of the library may
/// know more kinds.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Change {
    /// Its sequence number. Numbers ascend from 1, and some are left out.
    pub sequence: u64,
    /// The keyspace, in UTF-8, with a zero byte at its end. A zero byte in a name is left out.
    pub keyspace: *const c_char,
    /// What happened: one of `FORREST_CHANGE_SET` to `FORREST_CHANGE_INGEST`.
    pub kind: i32,
    /// 1 if it is the last of its batch, or was made alone; 0 if the next change belongs to the same batch.
    pub ends_batch: i32,
    /// The key, or the first one of a range; null if the whole keyspace is concerned.
    pub key: *const c_void,
    /// The length of `key`; `FORREST_ABSENT` if it is null.
    pub key_bytes: usize,
    /// The value, or the end of a range; null if there is none.
    pub value: *const c_void,
    /// The length of `value`; `FORREST_ABSENT` if it is null.
    pub value_bytes: usize,
    /// The milliseconds since 1970 from which on the value is not there; 0 if it stays.
    pub expires_ms: u64,
}

/// No change.
const NOTHING: Change = Change {
    sequence: 0,
    keyspace: ptr::null(),
    kind: 0,
    ends_batch: 0,
    key: ptr::null(),
    key_bytes: FORREST_ABSENT,
    value: ptr::null(),
    value_bytes: FORREST_ABSENT,
    expires_ms: 0,
};

/// Begins a stream of the changes after sequence number `since`, each as soon as it has this durability:
/// `FORREST_DURABILITY_DEFAULT` to `FORREST_DURABILITY_SYNC`. The store is on disk and has `FORREST_HISTORY`, or is
/// opened to be read beside a process that has. Destroy it with `forrest_changes_destroy`.
///
/// `FORREST_GONE` if some of the changes are no longer kept; `FORREST_INVALID_ARGUMENT` without that option, or if `db`
/// is a snapshot; `FORREST_UNSUPPORTED` if the home has no `FORREST_CAN_CHANGES`; `FORREST_IO`, `FORREST_CORRUPT`,
/// `FORREST_OUT_OF_SPACE`.
///
/// # Safety
/// - `changes` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_changes_begin(
    db: *mut Db,
    since: u64,
    durability: u64,
    changes: *mut *mut Changes,
) -> i32 {
    guard(|| {
        // SAFETY: `changes` is null or writable, as the Safety section demands.
        let mut place = unsafe { Place::of("stream of changes", changes, ptr::null_mut()) }?;
        let db = Db::of(db)?;
        let store = db.newest()?.0;
        let changes = match self::durability(durability)? {
            Some(durability) => store.changes_with(since, durability)?,
            None => store.changes(since)?,
        };
        let following = Following { changes, change: None, keyspace: CString::default() };
        place.put(FOLLOWING.insert([Changes(Box::new(following))])?);
        Ok(FORREST_OK)
    })
}

/// Writes the next change to `*change`, and returns `FORREST_OK`. If there is none yet, waits up to `wait_ms`
/// milliseconds for one, and then returns `FORREST_NOT_FOUND`. `forrest_changes_destroy` waits for it.
///
/// `FORREST_GONE` if the next changes are no longer kept; `FORREST_IO`, `FORREST_CORRUPT`, `FORREST_OUT_OF_SPACE`,
/// `FORREST_STOPPED`.
///
/// # Safety
/// - `change` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_changes_next(
    changes: *mut Changes,
    wait_ms: u64,
    change: *mut Change,
) -> i32 {
    guard(|| {
        // SAFETY: `change` is null or writable, as the Safety section demands.
        let mut place = unsafe { Place::of("change", change, NOTHING) }?;
        let mut changes = FOLLOWING.exclusive(changes)?;
        let following = &mut *changes.0;
        following.change = following.changes.next_within(Duration::from_millis(wait_ms))?;
        let Some(change) = &following.change else { return Ok(FORREST_NOT_FOUND) };
        let mut name = change.keyspace.as_bytes().to_vec();
        name.retain(|byte| *byte != 0);
        following.keyspace = CString::new(name).unwrap_or_default();
        let (kind, key, value) = parts(change)?;
        let (key, key_bytes) = pointer(key);
        let (value, value_bytes) = pointer(value);
        place.put(Change {
            sequence: change.sequence,
            keyspace: following.keyspace.as_ptr(),
            kind,
            ends_batch: change.ends_batch.into(),
            key,
            key_bytes,
            value,
            value_bytes,
            expires_ms: match change.what {
                What::SetUntil { expires_ms, .. } => expires_ms,
                _ => 0,
            },
        });
        Ok(FORREST_OK)
    })
}

/// The kind of a change, its key and its value.
type Parts<'c> = (i32, Option<&'c [u8]>, Option<&'c [u8]>);

fn parts(change: &forrest_rust::Change) -> Result<Parts<'_>, Failure> {
    Ok(match &change.what {
        What::Set { key, value } | What::SetUntil { key, value, .. } => {
            (FORREST_CHANGE_SET, Some(key), Some(value))
        }
        What::Delete { key } => (FORREST_CHANGE_DELETE, Some(key), None),
        What::DeleteRange { start, end } => (FORREST_CHANGE_DELETE_RANGE, Some(start), end.as_deref()),
        What::CreateKeyspace => (FORREST_CHANGE_CREATE_KEYSPACE, None, None),
        What::DropKeyspace => (FORREST_CHANGE_DROP_KEYSPACE, None, None),
        What::Ingest { first, last } => (FORREST_CHANGE_INGEST, Some(first), Some(last)),
        other => return Err(Failure::invalid(format_args!("this version does not know {other:?}"))),
    })
}

fn pointer(bytes: Option<&[u8]>) -> (*const c_void, usize) {
    bytes.map_or((ptr::null(), FORREST_ABSENT), |bytes| (bytes.as_ptr().cast(), bytes.len()))
}

/// Destroys a stream of changes. Null is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn forrest_changes_destroy(changes: *mut Changes) -> i32 {
    guard(|| FOLLOWING.remove(changes).map(|()| FORREST_OK))
}

/// Writes the sequence number of the last change that a snapshot has to `*sequence`: the changes after it are those
/// that the snapshot lacks.
///
/// `FORREST_INVALID_ARGUMENT` if `snapshot` is not a snapshot; `FORREST_UNSUPPORTED` if the home has no
/// `FORREST_CAN_CHANGES`.
///
/// # Safety
/// - `sequence` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_snapshot_sequence(snapshot: *const Db, sequence: *mut u64) -> i32 {
    guard(|| {
        // SAFETY: `sequence` is null or writable, as the Safety section demands.
        let mut place = unsafe { Place::of("sequence number", sequence, 0) }?;
        place.put(Db::of(snapshot)?.past()?.sequence()?);
        Ok(FORREST_OK)
    })
}

//! Write batches: changes that are made together.

use crate::argument::{handed, key, take_back, value};
use crate::failure::{Failure, quiet};
use forrest::{Op, WriteBatch};
use std::ffi::{c_char, c_void};

/// Is called with each put of a batch.
pub type SeePut = Option<
    unsafe extern "C" fn(state: *mut c_void, k: *const c_char, klen: usize, v: *const c_char, vlen: usize),
>;
/// Is called with each delete of a batch.
pub type SeeDelete = Option<unsafe extern "C" fn(state: *mut c_void, k: *const c_char, klen: usize)>;

/// Changes in their order.
#[derive(Debug, Default)]
pub struct Batch {
    pub(crate) ops: WriteBatch,
    /// The first change that could not be added. Writing the batch reports it.
    pub(crate) failure: Option<Failure>,
}

impl Batch {
    fn add(&mut self, change: impl FnOnce(&mut WriteBatch) -> Result<(), Failure>) {
        if let Err(failure) = change(&mut self.ops) {
            self.failure.get_or_insert(failure);
        }
    }

    /// Its keys.
    pub(crate) fn keys(&self) -> Vec<&[u8]> {
        let key = |(_, op)| match op {
            Op::Set { key, .. } | Op::Delete { key } => Some(key),
            _ => None,
        };
        self.ops.ops().filter_map(key).collect()
    }
}

/// Makes a batch. Destroy it with `leveldb_writebatch_destroy`.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_create() -> *mut Batch {
    handed(Batch::default())
}

/// Frees a batch. Null is ignored.
///
/// # Safety
/// - `batch` is null, or came from `leveldb_writebatch_create` and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_writebatch_destroy(batch: *mut Batch) {
    // SAFETY: `batch` is null or came from `handed`, and is not used any more, by this function's `# Safety`.
    unsafe { take_back(batch) };
}

/// Removes all changes.
///
/// # Safety
/// - `batch` is null, or came from `leveldb_writebatch_create` and was not destroyed, and no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_writebatch_clear(batch: *mut Batch) {
    quiet((), || {
        // SAFETY: `batch` is null, or live and used by this thread only, by this function's `# Safety`.
        let batch = unsafe { batch.as_mut() }?;
        batch.ops.clear();
        batch.failure = None;
        Some(())
    });
}

/// Adds a change that sets the value of a key. The batch copies both. If one is too long or null, `leveldb_write` of
/// this batch fails with the reason.
///
/// # Safety
/// - `batch` is null, or came from `leveldb_writebatch_create` and was not destroyed, and no other thread uses it.
/// - `k` is null or has `klen` readable bytes, and `v` is null or has `vlen` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_writebatch_put(
    batch: *mut Batch,
    k: *const c_char,
    klen: usize,
    v: *const c_char,
    vlen: usize,
) {
    quiet((), || {
        // SAFETY: `batch` is null, or live and used by this thread only, by this function's `# Safety`.
        let batch = unsafe { batch.as_mut() }?;
        batch.add(|ops| {
            // SAFETY: `k` and `v` are null or have these lengths, and the slices end with this call.
            let (key, value) = unsafe { (key(k, klen)?, value(v, vlen)?) };
            ops.set(key, value);
            Ok(())
        });
        Some(())
    });
}

/// Adds a change that removes a key. If the key is too long or null, `leveldb_write` of this batch fails with the
/// reason.
///
/// # Safety
/// - As `leveldb_writebatch_put`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_writebatch_delete(batch: *mut Batch, k: *const c_char, klen: usize) {
    quiet((), || {
        // SAFETY: `batch` is null, or live and used by this thread only, by this function's `# Safety`.
        let batch = unsafe { batch.as_mut() }?;
        batch.add(|ops| {
            // SAFETY: `k` is null or has this length, and the slice ends with this call.
            ops.delete(unsafe { key(k, klen) }?);
            Ok(())
        });
        Some(())
    });
}

/// Calls a function for each change, in their order, with `state`. A function that is null is not called. The functions
/// must not change the batch.
///
/// # Safety
/// - `batch` is null, or came from `leveldb_writebatch_create` and was not destroyed, and nobody changes it meanwhile.
/// - `put` and `deleted` are each null or functions of these types, which return normally.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_writebatch_iterate(
    batch: *const Batch,
    state: *mut c_void,
    put: SeePut,
    deleted: SeeDelete,
) {
    quiet((), || {
        // SAFETY: `batch` is null, or live and unchanged, by this function's `# Safety`.
        for (_, op) in unsafe { batch.as_ref() }?.ops.ops() {
            match (op, put, deleted) {
                (Op::Set { key, value }, Some(put), _) => {
                    let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
                    // SAFETY: `put` may be called with `state` and bytes, by this function's `# Safety`.
                    unsafe { put(state, k, key.len(), v, value.len()) };
                }
                (Op::Delete { key }, _, Some(deleted)) => {
                    // SAFETY: `deleted` may be called with `state` and bytes, by this function's `# Safety`.
                    unsafe { deleted(state, key.as_ptr().cast(), key.len()) };
                }
                _ => {}
            }
        }
        Some(())
    });
}

/// Adds the changes of `source` to the end of `destination`. They may be the same batch.
///
/// # Safety
/// - `destination` and `source` are each null, or came from `leveldb_writebatch_create` and were not destroyed, and no
///   other thread uses them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_writebatch_append(destination: *mut Batch, source: *const Batch) {
    quiet((), || {
        // SAFETY: `source` is null or live, by this function's `# Safety`. The reference ends on this line, because it
        // may be the same batch as `destination`.
        let (ops, failure) =
            unsafe { source.as_ref() }.map(|source| (source.ops.clone(), source.failure.clone()))?;
        // SAFETY: `destination` is null, or live and used by this thread only, by this function's `# Safety`.
        let destination = unsafe { destination.as_mut() }?;
        for (_, op) in ops.ops() {
            destination.ops.push(op);
        }
        destination.failure = destination.failure.take().or(failure);
        Some(())
    });
}

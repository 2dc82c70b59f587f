//! Functions on the files of a store on disk that is closed: salvage, what is intact of a damaged one becomes a new
//! store; and moving its log.

use crate::argument::{Fields, ended, perhaps_key, text};
use crate::code::{FORREST_ABSENT, FORREST_OK};
use crate::failure::guard;
use forrest_rust::Progress;
use std::ffi::{c_char, c_void};
use std::ops::ControlFlow;
use std::path::Path;
use std::ptr;

/// A range of keys of which a salvage lost something. All its pointers are valid until the function that got it
/// returns. Later versions of the library may add fields at the end.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Loss {
    /// The keyspace in the new store, in UTF-8, with a zero byte at its end. It is called "keyspace-N" if its name is
    /// lost; "(unknown)" stands for keyspaces that nothing else shows. A zero byte in a name is left out.
    pub keyspace: *const c_char,
    /// The first key of the range. Never null; the length is 0 if the range begins with the first key of all.
    pub start: *const c_void,
    /// The length of `start`.
    pub start_bytes: usize,
    /// The key at which the range ends, and which is not in it; null if the range goes up to the last key.
    pub end: *const c_void,
    /// The length of `end`; `FORREST_ABSENT` if it is null.
    pub end_bytes: usize,
    /// The name of the damaged or missing file in the directory of the old store, with a zero byte at its end.
    pub file: *const c_char,
    /// What is wrong with the file, and what that means: text with a zero byte at its end.
    pub reason: *const c_char,
}

/// The function that `forrest_salvage` calls with each loss, and with its `context`. It returns true to continue, false
/// if it wants no more losses. It must not keep the pointer to the loss or a pointer in it, and must return normally,
/// not by an exception or `longjmp`. It may call this library.
pub type SeeLoss = Option<unsafe extern "C" fn(context: *mut c_void, loss: *const Loss) -> bool>;

/// The function that a salvage, or a call on backups, calls now and then while it copies or reads, on its thread, with
/// its `context`: with the number of bytes that are done, and of all. It returns true to continue, false to end the
/// call. It must return normally, not by an exception or `longjmp`. It may call this library.
pub type GoOn = Option<unsafe extern "C" fn(context: *mut c_void, done: u64, whole: u64) -> bool>;

/// What a salvage copied, and how much it could not. Later versions of the library may add fields at the end.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Salvaged {
    /// Number of keyspaces of the new store, including the default one.
    pub keyspaces: u64,
    /// Number of pairs in the new store.
    pub pairs: u64,
    /// Number of losses; 0 if the new store is a complete copy.
    pub lost: u64,
}

/// Copies what is intact of the damaged store on disk in the directory `from` to a new store at `to`. It also works if
/// `forrest_open` fails with `FORREST_CORRUPT`. It writes nothing at `from`. Close the store before. `key` is the key
/// of an encrypted store, 32 bytes, which the new store has too; null, with the length 0, if the store is plain.
///
/// While it copies, this thread calls `go_on`, unless that is null, with the same `context`. If it returns false, the
/// salvage ends with `FORREST_BUSY`. After the copy is complete, this thread calls `see` with each range of keys of
/// which something was lost, as long as it returns true. If `see` is null, the losses are only counted. Outside of
/// these ranges, each key has exactly the value that it had. In a range that is lost, a key has a value that it once
/// had, or none. `salvaged_bytes` is `sizeof(forrest_salvaged)`; fields that the program was not compiled for are left
/// out, and fields that this library does not have are 0.
///
/// `to` must not exist, or be an empty directory; its parent directory must exist. The new store gets this name only
/// when it is complete and survives a loss of power. The call blocks until then, for a time proportional to the data.
/// There is nothing to free.
///
/// `FORREST_OK` also if something was lost, and if `see` returned false. A salvage that fails leaves nothing, calls
/// `see` never, and sets `salvaged` to 0: `FORREST_CORRUPT` if no part of the manifest can be read;
/// `FORREST_INVALID_ARGUMENT` if `to` exists and is not an empty directory, or lies within `from`, if a path is a URL,
/// or for a wrong key or one that is missing; `FORREST_BUSY` if the store is open to be changed, or another salvage or
/// checkpoint to `to` is in progress; `FORREST_UNSUPPORTED` for files of another version; `FORREST_IO`;
/// `FORREST_OUT_OF_SPACE`.
///
/// # Safety
/// - `from` and `to` are each null or end with a zero byte.
/// - `key` is null or has `key_bytes` readable bytes.
/// - `go_on` is null, or a function that meets the requirements of `forrest_go_on`.
/// - `see` is null, or a function that meets the requirements of `forrest_see_loss`.
/// - `salvaged` is null or has `salvaged_bytes` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_salvage(
    from: *const c_char,
    key: *const c_void,
    key_bytes: usize,
    to: *const c_char,
    go_on: GoOn,
    see: SeeLoss,
    context: *mut c_void,
    salvaged: *mut Salvaged,
    salvaged_bytes: usize,
) -> i32 {
    guard(|| {
        // SAFETY: `salvaged` is null or has `salvaged_bytes` writable bytes, and `from` and `to` are null or end with
        // a zero byte, as the Safety section demands.
        let (mut place, from, to) = unsafe {
            (Fields::of("result", salvaged, salvaged_bytes)?, text("source", from)?, text("target", to)?)
        };
        // SAFETY: `go_on` meets the requirements of `forrest_go_on`, as the Safety section demands.
        let watch = unsafe { watched(go_on, context) };
        // SAFETY: `key` is null or has `key_bytes` readable bytes, as the Safety section demands.
        let key = unsafe { perhaps_key(key, key_bytes) }?;
        let found = forrest_rust::encrypted::salvage(from, key.as_ref(), to, watch)?;
        let (keyspaces, pairs, lost) = (found.keyspaces, found.pairs, found.lost.len() as u64);
        place.put(Salvaged { keyspaces, pairs, lost });
        let Some(see) = see else { return Ok(FORREST_OK) };
        for loss in &found.lost {
            let (start, end) = loss.half_open();
            let [keyspace, file, reason] = [&loss.keyspace, &loss.file, &loss.reason].map(|text| ended(text));
            let loss = Loss {
                keyspace: keyspace.as_ptr(),
                start: start.as_ptr().cast(),
                start_bytes: start.len(),
                end: end.as_ref().map_or(ptr::null(), |end| end.as_ptr().cast()),
                end_bytes: end.as_ref().map_or(FORREST_ABSENT, Vec::len),
                file: file.as_ptr(),
                reason: reason.as_ptr(),
            };
            // SAFETY: `see` meets the requirements of `forrest_see_loss`, as the Safety section demands. `loss` and
            // what it points to live until it returns.
            if !unsafe { see(context, &raw const loss) } {
                break;
            }
        }
        Ok(FORREST_OK)
    })
}

/// Moves the log of the store on disk in the directory `store` to the directory `to`, or back into that of the store if
/// `to` is null. From then on, open the store with `forrest_options_set_log_directory` for that directory, or without.
///
/// The store must be closed. It knows where its log is. The call blocks for a time proportional to the log. A crash
/// leaves the log in one of the two places, complete; another call with the same arguments finishes the move.
///
/// `FORREST_BUSY` if the store is open, or another process reads it; `FORREST_INVALID_ARGUMENT` if `to` belongs to
/// another store or has files of one, or if a path is a URL; `FORREST_UNSUPPORTED` if one of the directories cannot be
/// written to; `FORREST_IO`; `FORREST_OUT_OF_SPACE`. The log is then where it was.
///
/// # Safety
/// - `store` and `to` are each null or end with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_move_log(store: *const c_char, to: *const c_char) -> i32 {
    guard(|| {
        // SAFETY: `store` is null or ends with a zero byte, as the Safety section demands.
        let store = unsafe { text("store", store) }?;
        let to = match to.is_null() {
            true => None,
            // SAFETY: `to` ends with a zero byte, as the Safety section demands.
            false => Some(Path::new(unsafe { text("directory of the log", to) }?)),
        };
        forrest_rust::move_log(store, to)?;
        Ok(FORREST_OK)
    })
}

/// What calls a function of C with the progress.
///
/// # Safety
/// `go_on` is null, or a function that meets the requirements of `forrest_go_on` as long as the result is in use.
pub(crate) unsafe fn watched(go_on: GoOn, context: *mut c_void) -> impl FnMut(Progress) -> ControlFlow<()> {
    move |progress| match go_on {
        // SAFETY: `go_on` meets the requirements of `forrest_go_on`, as the Safety section demands.
        Some(go_on) if !unsafe { go_on(context, progress.done, progress.whole) } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    }
}

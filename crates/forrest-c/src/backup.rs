//! Directories of backups of a store on disk: adding one, listing, verifying, restoring and removing them.

use crate::argument::{Fields, ended, perhaps_key, text};
use crate::code::FORREST_OK;
use crate::db::Db;
use crate::failure::{Failure, guard};
use crate::salvage::{GoOn, watched};
use forrest_rust::{BackupOptions, Keep, encrypted};
use std::ffi::{c_char, c_void};
use std::ptr;
use std::time::{Duration, UNIX_EPOCH};

/// A backup in a directory of backups. Later versions of the library may add fields at the end.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Backup {
    /// Its number, above 0. Later backups of a directory have greater ones.
    pub id: u64,
    /// When it was made: milliseconds since the beginning of 1970, by the clock of the system.
    pub time_ms: u64,
    /// Bytes of the store that it has.
    pub bytes: u64,
    /// Bytes that were copied for it; the others were there.
    pub new_bytes: u64,
    /// Number of files of the store that it has.
    pub files: u64,
    /// Null, except for a damaged backup in a list: why its description cannot be read, as text with a zero byte at its
    /// end. The pointer is valid until the function that got the backup returns. All but the number is then 0.
    pub damage: *const c_char,
}

/// What `forrest_backup_prune` removed. Later versions of the library may add fields at the end.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Pruned {
    /// Number of removed backups.
    pub backups: u64,
    /// Bytes of the removed files.
    pub bytes: u64,
}

/// The function that `forrest_backup_list` calls with each backup, and with its `context`. It returns true to continue,
/// false if it wants no more. It must not keep the pointer, and must return normally, not by an exception or `longjmp`.
/// It may call this library.
pub type SeeBackup = Option<unsafe extern "C" fn(context: *mut c_void, backup: *const Backup) -> bool>;

impl Backup {
    fn of(backup: &forrest_rust::Backup) -> Backup {
        let since = backup.time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Backup {
            id: backup.id,
            time_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
            bytes: backup.bytes,
            new_bytes: backup.new_bytes,
            files: backup.files,
            damage: ptr::null(),
        }
    }
}

/// Adds a backup of the store of `db`, as it is at one moment of this call, to the directory of backups `directory`,
/// which is made if it is missing; its parent must exist. Only what no earlier backup there has is copied. Readers and
/// writers do not wait meanwhile. When this returns, the backup survives a loss of power. Put it on another device.
///
/// If the newest backup there is of another directory, the call fails, unless `other_store` is true. `go_on` is called
/// as for `forrest_salvage`. It may close `db`; the store then stays open until this returns. `backup_bytes` is
/// `sizeof(forrest_backup)`; fields that the program was not compiled for are left out, and fields that this library
/// does not have are 0. A store that another process has open can be opened with `FORREST_READ_ONLY` and backed up.
///
/// A backup that fails leaves the earlier ones whole: `FORREST_INVALID_ARGUMENT` if the directory has other files, lies
/// within that of the store, or has backups of another store; `FORREST_BUSY` if somebody else changes it, or if `go_on`
/// returned false; `FORREST_CORRUPT` if a table of the store is damaged; `FORREST_UNSUPPORTED` if the home has no
/// `FORREST_CAN_BACKUP`; `FORREST_OUT_OF_SPACE`; `FORREST_IO`.
///
/// # Safety
/// - `directory` is null or ends with a zero byte.
/// - `go_on` is null, or a function that meets the requirements of `forrest_go_on`.
/// - `backup` is null or has `backup_bytes` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_backup_create(
    db: *mut Db,
    directory: *const c_char,
    other_store: bool,
    go_on: GoOn,
    context: *mut c_void,
    backup: *mut Backup,
    backup_bytes: usize,
) -> i32 {
    guard(|| {
        // SAFETY: `backup` is null or has `backup_bytes` writable bytes, and `directory` is null or ends with a zero
        // byte, as the Safety section demands.
        let (mut place, directory) =
            unsafe { (Fields::of("backup", backup, backup_bytes)?, text("directory", directory)?) };
        let mut options = BackupOptions::default();
        options.other_store = other_store;
        // SAFETY: `go_on` meets the requirements of `forrest_go_on`, as the Safety section demands.
        let see = unsafe { watched(go_on, context) };
        // The backup does not hold the handle's lock, because `go_on` may close the handle.
        let store = Db::of(db)?.newest()?.0.clone();
        let made = store.backup_with(directory, &options, see)?;
        place.put(Backup::of(&made));
        Ok(FORREST_OK)
    })
}

/// Calls `see` with each backup in a directory, from the oldest on, as long as it returns true. Copies of tables are
/// not read: `forrest_backup_verify` does that.
///
/// `key` is the key of a directory of encrypted backups, 32 bytes; null, with the length 0, if they are plain. A
/// directory has the key that its store had when the directory was made.
///
/// `FORREST_IO` if there are no backups; `FORREST_INVALID_ARGUMENT` if the directory has other files, for a wrong key
/// or one that is missing, or if `see` is null.
///
/// # Safety
/// - `directory` is null or ends with a zero byte.
/// - `key` is null or has `key_bytes` readable bytes.
/// - `see` is null, or a function that meets the requirements of `forrest_see_backup`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_backup_list(
    directory: *const c_char,
    key: *const c_void,
    key_bytes: usize,
    see: SeeBackup,
    context: *mut c_void,
) -> i32 {
    guard(|| {
        // SAFETY: `directory` is null or ends with a zero byte, as the Safety section demands.
        let directory = unsafe { text("directory", directory) }?;
        let see = see.ok_or_else(|| Failure::invalid("the function to be called is null"))?;
        // SAFETY: `key` is null or has `key_bytes` readable bytes, as the Safety section demands.
        let key = unsafe { perhaps_key(key, key_bytes) }?;
        for listed in encrypted::backups(directory, key.as_ref())? {
            let damage = listed.damage.as_deref().map(ended);
            let mut backup = Backup::of(&listed);
            if let Some(damage) = &damage {
                backup.damage = damage.as_ptr();
            }
            // SAFETY: `see` meets the requirements of `forrest_see_backup`, as the Safety section demands. `backup`
            // and its text live until it returns.
            if !unsafe { see(context, &raw const backup) } {
                break;
            }
        }
        Ok(FORREST_OK)
    })
}

/// Reads every byte of a backup, and checks it: of that with the number `id`, or of the newest one if `id` is 0.
/// `go_on` and `backup` are as for `forrest_backup_create`, and `key` as for `forrest_backup_list`.
///
/// `FORREST_CORRUPT` for the first damage, with file and offset in the message; `FORREST_INVALID_ARGUMENT` if there is
/// no such backup, and for a wrong key; `FORREST_BUSY` if `go_on` returned false; `FORREST_IO`.
///
/// # Safety
/// - `directory` is null or ends with a zero byte.
/// - `key` is null or has `key_bytes` readable bytes.
/// - `go_on` is null, or a function that meets the requirements of `forrest_go_on`.
/// - `backup` is null or has `backup_bytes` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_backup_verify(
    directory: *const c_char,
    key: *const c_void,
    key_bytes: usize,
    id: u64,
    go_on: GoOn,
    context: *mut c_void,
    backup: *mut Backup,
    backup_bytes: usize,
) -> i32 {
    guard(|| {
        // SAFETY: `backup` is null or has `backup_bytes` writable bytes, and `directory` is null or ends with a zero
        // byte, as the Safety section demands.
        let (mut place, directory) =
            unsafe { (Fields::of("backup", backup, backup_bytes)?, text("directory", directory)?) };
        // SAFETY: `go_on` meets the requirements of `forrest_go_on`, as the Safety section demands.
        let see = unsafe { watched(go_on, context) };
        // SAFETY: `key` is null or has `key_bytes` readable bytes, as the Safety section demands.
        let key = unsafe { perhaps_key(key, key_bytes) }?;
        place.put(Backup::of(&encrypted::verify_backup(directory, key.as_ref(), chosen(id), see)?));
        Ok(FORREST_OK)
    })
}

/// Makes a new store in the directory `to` of a backup: of that with the number `id`, or of the newest one if `id` is
/// 0. Every byte is checked on the way. `to` must not exist, or be an empty directory; its parent must exist. The store
/// gets this name only when it is complete and survives a loss of power. `go_on` and `backup` are as for
/// `forrest_backup_create`. A directory that is encrypted needs its `key`, as for `forrest_backup_list`; the store has
/// the same one.
///
/// After a failure there is nothing at `to`: `FORREST_CORRUPT` if the backup is damaged, with file and offset in the
/// message; `FORREST_INVALID_ARGUMENT` if there is no such backup, for a wrong key, or if something is at `to`;
/// `FORREST_BUSY` if `go_on`
/// returned false; `FORREST_OUT_OF_SPACE`; `FORREST_IO`.
///
/// # Safety
/// - `directory` and `to` are each null or end with a zero byte.
/// - `key` is null or has `key_bytes` readable bytes.
/// - `go_on` is null, or a function that meets the requirements of `forrest_go_on`.
/// - `backup` is null or has `backup_bytes` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_backup_restore(
    directory: *const c_char,
    key: *const c_void,
    key_bytes: usize,
    id: u64,
    to: *const c_char,
    go_on: GoOn,
    context: *mut c_void,
    backup: *mut Backup,
    backup_bytes: usize,
) -> i32 {
    guard(|| {
        // SAFETY: `backup` is null or has `backup_bytes` writable bytes, and `directory` and `to` are null or end with
        // a zero byte, as the Safety section demands.
        let (mut place, directory, to) = unsafe {
            (Fields::of("backup", backup, backup_bytes)?, text("directory", directory)?, text("target", to)?)
        };
        // SAFETY: `go_on` meets the requirements of `forrest_go_on`, as the Safety section demands.
        let see = unsafe { watched(go_on, context) };
        // SAFETY: `key` is null or has `key_bytes` readable bytes, as the Safety section demands.
        let key = unsafe { perhaps_key(key, key_bytes) }?;
        place.put(Backup::of(&encrypted::restore(directory, key.as_ref(), chosen(id), to, see)?));
        Ok(FORREST_OK)
    })
}

/// Of `forrest_backup_prune`: keep this number of the newest backups.
pub const FORREST_KEEP_NEWEST: i32 = 0;
/// Of `forrest_backup_prune`: keep backups that were made at this time or later, in milliseconds since the beginning of
/// 1970.
pub const FORREST_KEEP_SINCE: i32 = 1;

/// Removes old backups, and then the files that no other backup needs. `keep` is `FORREST_KEEP_NEWEST` or
/// `FORREST_KEEP_SINCE`, and says what `bound` is. The newest backup always stays. `pruned_bytes` is
/// `sizeof(forrest_pruned)`, and `key` as for `forrest_backup_list`.
///
/// Nothing is removed if the call fails with `FORREST_CORRUPT` or `FORREST_UNSUPPORTED`, because a description that
/// cannot be read may name any file; with `FORREST_BUSY`, because a backup that is to go is being read, or somebody
/// else changes the directory; or with `FORREST_INVALID_ARGUMENT`. Also `FORREST_IO`.
///
/// # Safety
/// - `directory` is null or ends with a zero byte.
/// - `key` is null or has `key_bytes` readable bytes.
/// - `pruned` is null or has `pruned_bytes` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forrest_backup_prune(
    directory: *const c_char,
    key: *const c_void,
    key_bytes: usize,
    keep: i32,
    bound: u64,
    pruned: *mut Pruned,
    pruned_bytes: usize,
) -> i32 {
    guard(|| {
        // SAFETY: `pruned` is null or has `pruned_bytes` writable bytes, and `directory` is null or ends with a zero
        // byte, as the Safety section demands.
        let (mut place, directory) =
            unsafe { (Fields::of("result", pruned, pruned_bytes)?, text("directory", directory)?) };
        let since = || UNIX_EPOCH.checked_add(Duration::from_millis(bound));
        let keep = match keep {
            FORREST_KEEP_NEWEST => Keep::Newest(bound),
            // A time that the system cannot have is after all backups.
            FORREST_KEEP_SINCE => since().map_or(Keep::Newest(1), Keep::Since),
            _ => {
                return Err(Failure::invalid("keep is neither FORREST_KEEP_NEWEST nor FORREST_KEEP_SINCE"));
            }
        };
        // SAFETY: `key` is null or has `key_bytes` readable bytes, as the Safety section demands.
        let key = unsafe { perhaps_key(key, key_bytes) }?;
        let removed = encrypted::prune(directory, key.as_ref(), keep)?;
        place.put(Pruned { backups: removed.removed.len() as u64, bytes: removed.bytes });
        Ok(FORREST_OK)
    })
}

/// The backup with a number; none for 0 is the newest one.
fn chosen(id: u64) -> Option<u64> {
    (id != 0).then_some(id)
}

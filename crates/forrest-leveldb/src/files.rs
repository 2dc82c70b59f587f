//! The directory of a store: what is in it; removing it, and repairing it.

use crate::argument::{object, path};
use crate::failure::{Failure, report};
use crate::options::Options;
use std::ffi::c_char;
use std::fs;
use std::path::Path;

/// Demands that a directory has no files of LevelDB itself.
pub(crate) fn refuse_leveldb(path: &Path) -> Result<(), Failure> {
    // LevelDB's CURRENT has the name of its manifest. Forrest has no such file.
    if path.join("CURRENT").exists() {
        return Err(Failure::invalid(format_args!(
            "{}: has files of LevelDB itself, which this library does not read; copy its pairs to another \
             directory with a program that is linked with LevelDB",
            path.display()
        )));
    }
    Ok(())
}

/// Removes the store in a directory, and the directory if nothing else is in it. Does nothing if there is no store. The
/// store must be closed.
///
/// # Safety
/// - `options` is null, or came from `leveldb_options_create` and was not destroyed.
/// - `name` is null, or ends with a zero byte.
/// - `errptr` is null, or points to null or to a string that came from `malloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_destroy_db(
    options: *const Options,
    name: *const c_char,
    errptr: *mut *mut c_char,
) {
    let body = || {
        // SAFETY: `options` and `name` meet the requirements, which are those of this function.
        let (_, path) = unsafe { (object("options", options)?, path(name)?) };
        refuse_leveldb(&path)?;
        if forrest::is_store(&path)? {
            forrest::destroy(&path)?;
        } else if path.is_dir() {
            // As LevelDB: a directory stays if something is in it.
            let _ = fs::remove_dir(&path);
        }
        Ok(())
    };
    // SAFETY: `errptr` meets the requirement of `report`, which is that of this function.
    unsafe { report(errptr, (), body) }
}

/// Repairs the store in a directory, which must be closed. If all of it verifies, nothing is changed. Otherwise what
/// verifies is copied to a new store, which takes the name; the old directory is kept as NAME.damaged, to be removed by
/// the user. Takes time in proportion to the data.
///
/// # Safety
/// - As `leveldb_destroy_db`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_repair_db(
    options: *const Options,
    name: *const c_char,
    errptr: *mut *mut c_char,
) {
    let body = || {
        // SAFETY: `options` and `name` meet the requirements, which are those of this function.
        let (_, path) = unsafe { (object("options", options)?, path(name)?) };
        refuse_leveldb(&path)?;
        Ok(forrest::repair(&path).map(drop)?)
    };
    // SAFETY: `errptr` meets the requirement of `report`, which is that of this function.
    unsafe { report(errptr, (), body) }
}

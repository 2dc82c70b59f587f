//! [`move_log`]: the logs of a closed store get another place.
//!
//! The logs are copied, then the store states the new place, and then the old logs are removed. Each step is durable
//! before the next. So after a crash the store has its logs in the old place or in the new one, all of them. What is
//! left in the other one is not read; the next call removes it. A log directory that is left is stated in the store's
//! directory (`OLD-LOG-DIRECTORY`) until it has no logs. Of a log directory that is to be used, only copies beside a
//! file `MOVING` are removed: without it, they may be another store's logs.

use super::calls::failed;
use super::logs;
use super::real::Real;
use super::{Disk, Kind, Name};
use forrest_engine::{Error, ErrorKind, Options, Result};
use rustix::fd::OwnedFd;
use std::io;
use std::path::Path;

/// Moves the logs of the store at `at` to the directory `to`; to that of the store if it is `None`. The store must not
/// be open. If the logs are there already, it only removes what a crash has left.
///
/// # Errors
/// `Busy` if the store is open, or another process reads it; `InvalidArgument` if `to` belongs to another store or has
/// files of one; `Unsupported` if one of the directories cannot be changed; `Io`, `OutOfSpace`. The logs are where
/// they were then.
pub fn move_log(at: &Path, to: Option<&Path>) -> Result<()> {
    let log_directory = logs::stated(at)?;
    let options = Options { create: false, log_directory: log_directory.clone(), ..Options::default() };
    let store = Real::open(at, &options)?;
    store.check_writable()?;
    let names = super::list(&store)?;
    for &name in names.iter().filter(|name| name.kind == Kind::Manifest) {
        if super::is_held(&store, name) {
            let what = "another process reads the store; its logs can be moved when it has closed it";
            return Err(Error::new(ErrorKind::Busy, format!("{}: {what}", at.display())));
        }
    }
    logs::leave(at, store.directory())?;
    let logs: Vec<Name> = names.into_iter().filter(|name| name.kind == Kind::Log).collect();
    let is_there = match (&log_directory, to) {
        (None, None) => return Ok(()),
        (Some(from), Some(to)) => is_same(from, to),
        _ => false,
    };
    let own = || -> Result<Real> {
        let directory = store.directory().try_clone_to_owned();
        Ok(Real::unlocked(at, directory.map_err(|error| failed("opening", at, error))?))
    };
    if is_there {
        return remove_logs(&own()?);
    }
    match to {
        Some(to) => {
            let taken = logs::claim(at, store.directory(), to, true)?;
            copy(&store, &logs, &of(to, &taken.directory)?)?;
            // DURABILITY: the copies are durable before the store names their place. From here on they are not removed.
            logs::moved(to, &taken)?;
            logs::begin_to_leave(at, store.directory())?;
            logs::link(at, store.directory(), &taken)?;
        }
        None => {
            let own = own()?;
            remove_logs(&own)?;
            copy(&store, &logs, &own)?;
            logs::begin_to_leave(at, store.directory())?;
            // DURABILITY: as above.
            logs::unlink(at, store.directory())?;
        }
    }
    if log_directory.is_some() {
        return logs::leave(at, store.directory());
    }
    for name in logs {
        super::unlink(&store, name)?;
    }
    super::sync_directory(&store, Kind::Log)
}

fn of(path: &Path, directory: &OwnedFd) -> Result<Real> {
    let directory = directory.try_clone().map_err(|error: io::Error| failed("opening", path, error))?;
    Ok(Real::unlocked(path, directory))
}

fn is_same(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// Copies logs, durably.
fn copy(from: &Real, logs: &[Name], into: &Real) -> Result<()> {
    for &name in logs {
        super::copy(from, &super::open(from, name)?, name, into)?;
    }
    super::sync_directory(into, Kind::Log)
}

/// Removes all logs in a directory, durably.
fn remove_logs(within: &Real) -> Result<()> {
    for name in super::list(within)?.into_iter().filter(|name| name.kind == Kind::Log) {
        super::unlink(within, name)?;
    }
    super::sync_directory(within, Kind::Log)
}

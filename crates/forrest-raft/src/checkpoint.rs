//! [`Checkpoint`]: a copy of the whole store in a directory, from which snapshots of one group are read.
//!
//! A group's directory has checkpoints with ascending numbers as names, in 16 hexadecimal digits. The newest one
//! counts. It is open only while it is read. A checkpoint that is replaced is removed when nobody reads it any more, or
//! when the group is opened the next time. It is renamed before, so that what an interruption leaves counts for none.

use forrest::{Db, Error, ErrorKind, Pages, Result};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The cache of a checkpoint, which is read once from its beginning to its end.
const CACHE_BYTES: usize = 1 << 20;
/// Digits of a number.
const DIGITS: usize = 16;

/// A checkpoint.
pub(crate) struct Checkpoint {
    path: PathBuf,
    /// For all that read it at the same time.
    open: Mutex<Weak<Open>>,
    is_old: AtomicBool,
}

/// A checkpoint that is open to be read.
pub(crate) struct Open {
    pub(crate) db: Db,
    // Dropped after the store is closed.
    checkpoint: Arc<Checkpoint>,
}

impl Open {
    /// To be called when it cannot be read: it is not used any more.
    pub(crate) fn give_up(&self) {
        self.checkpoint.retire();
    }
}

impl Checkpoint {
    /// The newest checkpoint in a directory; `None` if there is none. All others are removed, and what is left of
    /// removals.
    pub(crate) fn newest(directory: &Path) -> Result<Option<Arc<Checkpoint>>> {
        let names = names(directory)?;
        let newest = names.iter().filter(|name| name.len() == DIGITS).max();
        for name in names.iter().filter(|name| Some(*name) != newest) {
            remove(&directory.join(name))?;
        }
        Ok(newest.map(|name| Checkpoint::at(directory.join(name))))
    }

    /// Makes one.
    pub(crate) fn make(store: &Db, directory: &Path) -> Result<Arc<Checkpoint>> {
        fs::create_dir_all(directory).map_err(|error| io_error("creating", directory, &error))?;
        let numbers = names(directory)?.into_iter().filter(|name| name.len() == DIGITS);
        let last = numbers.filter_map(|name| u64::from_str_radix(&name, 16).ok()).max();
        let number = last.map_or(0, |last| last + 1);
        let path = directory.join(format!("{number:0DIGITS$x}"));
        store.checkpoint(&path)?;
        Ok(Checkpoint::at(path))
    }

    fn at(path: PathBuf) -> Arc<Checkpoint> {
        Arc::new(Checkpoint { path, open: Mutex::default(), is_old: AtomicBool::new(false) })
    }

    /// Opens it with the key of the store of which it is, or shares it with others that read it.
    pub(crate) fn open(self: &Arc<Checkpoint>, store: &Db) -> Result<Arc<Open>> {
        let mut shared = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = shared.upgrade() {
            return Ok(open);
        }
        let text = self.path.to_str().ok_or_else(|| {
            Error::invalid(format!("checkpoints at {}: the path is not UTF-8", self.path.display()))
        })?;
        let builder = Db::builder().encryption_key_of(store).pages(Pages::Plain).cache_bytes(CACHE_BYTES);
        let open = Arc::new(Open { db: builder.open_read_only(text)?, checkpoint: Arc::clone(self) });
        *shared = Arc::downgrade(&open);
        Ok(open)
    }

    /// It is not used any more, and removed when the last handle is gone.
    pub(crate) fn retire(&self) {
        // ORDERING: dropping the last handle comes after, by its reference count.
        self.is_old.store(true, Relaxed);
    }

    pub(crate) fn is_old(&self) -> bool {
        // ORDERING: the flag stands for itself.
        self.is_old.load(Relaxed)
    }
}

impl Drop for Checkpoint {
    fn drop(&mut self) {
        if self.is_old() {
            // What cannot be removed now is removed when the group is opened.
            drop(remove(&self.path));
        }
    }
}

/// The names of checkpoints in a directory, and those of what is left of making or removing one, which are longer.
fn names(directory: &Path) -> Result<Vec<String>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io_error("reading", directory, &error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(|error| io_error("reading", directory, &error))?.file_name();
        let is_number = |name: &&str| {
            name.split_at_checked(DIGITS).is_some_and(|(number, rest)| {
                let is_number = number.bytes().all(|digit| digit.is_ascii_hexdigit());
                is_number && (rest.is_empty() || rest.starts_with('.'))
            })
        };
        names.extend(name.to_str().filter(is_number).map(str::to_owned));
    }
    Ok(names)
}

fn remove(path: &Path) -> Result<()> {
    let doomed = path.with_extension("removed");
    if doomed != path {
        remove_all(&doomed)?;
        fs::rename(path, &doomed).map_err(|error| io_error("renaming", path, &error))?;
    }
    remove_all(&doomed)
}

/// Removes the directory of a group's checkpoints, if it is there. After a power cut it does not come back.
pub(crate) fn remove_group(directory: &Path) -> Result<()> {
    remove_all(directory)?;
    let parent = directory.parent().unwrap_or(directory);
    // DURABILITY: before the group's entries are removed, and before another one of the same number has any. That one
    // would take a checkpoint that came back for its own.
    match fs::File::open(parent).and_then(|parent| parent.sync_all()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error("syncing", parent, &error)),
        _ => Ok(()),
    }
}

/// Removes a directory with all that is in it, if it is there.
fn remove_all(directory: &Path) -> Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error("removing", directory, &error)),
        _ => Ok(()),
    }
}

#[cold]
fn io_error(what: &str, path: &Path, error: &io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("{what} {}: {error}", path.display()))
}

//! [`Checkpoint`]: a copy of the whole store in a directory, from which snapshots of one group are read.
//!
//! A group's directory has checkpoints with ascending numbers as names, in 16 hexadecimal digits. The newest one
//! counts. A checkpoint that is replaced is removed when nobody reads it any more, or when the group is opened the next
//! time.

use forrest::{Db, Error, ErrorKind, Pages, Result};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The cache of a checkpoint, which is read once from its beginning to its end.
const CACHE_BYTES: usize = 1 << 20;

/// A checkpoint that is open to be read.
pub(crate) struct Checkpoint {
    path: PathBuf,
    db: Option<Db>,
    is_old: AtomicBool,
}

impl Checkpoint {
    /// The newest checkpoint in a directory; `None` if there is none. Older ones are removed, and one that is damaged:
    /// the group needs none.
    pub(crate) fn newest(directory: &Path) -> Result<Option<Arc<Checkpoint>>> {
        let mut numbers = numbers(directory)?;
        let Some(newest) = numbers.pop() else { return Ok(None) };
        for number in numbers {
            remove(&place(directory, number))?;
        }
        match Checkpoint::open(place(directory, newest)) {
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                remove(&place(directory, newest))?;
                Ok(None)
            }
            opened => opened.map(Some),
        }
    }

    /// Makes one.
    pub(crate) fn make(store: &Db, directory: &Path) -> Result<Arc<Checkpoint>> {
        fs::create_dir_all(directory).map_err(|error| io_error("creating", directory, &error))?;
        let number = numbers(directory)?.last().map_or(0, |last| last + 1);
        let path = place(directory, number);
        store.checkpoint(&path)?;
        Checkpoint::open(path)
    }

    fn open(path: PathBuf) -> Result<Arc<Checkpoint>> {
        let text = path.to_str().ok_or_else(|| {
            Error::invalid(format!("checkpoints at {}: the path is not UTF-8", path.display()))
        })?;
        let db = Db::builder().pages(Pages::Plain).cache_bytes(CACHE_BYTES).open_read_only(text)?;
        Ok(Arc::new(Checkpoint { path, db: Some(db), is_old: AtomicBool::new(false) }))
    }

    pub(crate) fn db(&self) -> &Db {
        self.db.as_ref().expect("it is there until it is dropped")
    }

    /// It is removed when the last handle is gone.
    pub(crate) fn retire(&self) {
        // ORDERING: dropping the last handle comes after, by its reference count.
        self.is_old.store(true, Relaxed);
    }
}

impl Drop for Checkpoint {
    fn drop(&mut self) {
        self.db = None;
        // ORDERING: as in `retire`.
        if self.is_old.load(Relaxed) {
            // What cannot be removed now is removed when the group is opened.
            drop(remove(&self.path));
        }
    }
}

fn place(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number:016x}"))
}

/// The checkpoints in a directory, in ascending order.
fn numbers(directory: &Path) -> Result<Vec<u64>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io_error("reading", directory, &error)),
    };
    let mut numbers = Vec::new();
    for entry in entries {
        let name = entry.map_err(|error| io_error("reading", directory, &error))?.file_name();
        let number = name.to_str().filter(|name| name.len() == 16);
        numbers.extend(number.and_then(|name| u64::from_str_radix(name, 16).ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

fn remove(path: &Path) -> Result<()> {
    fs::remove_dir_all(path).map_err(|error| io_error("removing", path, &error))
}

#[cold]
fn io_error(what: &str, path: &Path, error: &io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("{what} {}: {error}", path.display()))
}

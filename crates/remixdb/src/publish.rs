//! [`Publisher`]: writes the figures of a store to a file each second, for a monitor.
//!
//! The file is replaced by renaming, so a reader finds all figures of one moment. It is not synced: it is of no use
//! after a crash. A thread of its own writes it, because the background thread may be busy for longer than a second.

use crate::core::Core;
use crate::disk;
use forrest_engine::{Error, ErrorKind, Result};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Time between two writes.
const EACH: Duration = Duration::from_secs(1);

/// See the head of the file. Dropping it ends the thread and removes the file.
pub(crate) struct Publisher(Option<(Sender<()>, JoinHandle<()>)>);

impl Publisher {
    /// Writes the file for the first time, and starts the thread.
    ///
    /// # Errors
    /// `Io` and others if the file cannot be written. Later failures are ignored: the file stays as it is, or is
    /// missing.
    pub(crate) fn start(core: &Arc<Core>, path: &Path) -> Result<Publisher> {
        let file = PublishedFile::of(path)?;
        file.write(&text(core)?)
            .map_err(|error| disk::failed("writing metrics to", path.display(), &error))?;
        let (end, ended) = mpsc::channel();
        let core = core.clone();
        let thread = thread::Builder::new().name("remixdb-metrics".into()).spawn(move || {
            while ended.recv_timeout(EACH) == Err(RecvTimeoutError::Timeout) {
                let _ = text(&core).map(|text| file.write(&text));
            }
            drop(file);
        });
        let thread = thread.map_err(|error| {
            Error::new(ErrorKind::OutOfSpace, format!("starting the thread that writes metrics: {error}"))
        })?;
        Ok(Publisher(Some((end, thread))))
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.0.take() {
            drop(end);
            // A panic was reported when it happened.
            let _ = thread.join();
        }
    }
}

fn text(core: &Core) -> Result<String> {
    Ok(core.metrics()?.prometheus(&core.stats()?))
}

/// The file, and the one that replaces it. It is removed when this is dropped.
struct PublishedFile {
    path: PathBuf,
    next: PathBuf,
}

impl PublishedFile {
    fn of(path: &Path) -> Result<PublishedFile> {
        let mut next = path.file_name().map(ToOwned::to_owned).ok_or_else(|| {
            Error::invalid(format!("\"{}\" is no name of a file for metrics", path.display()))
        })?;
        next.push(".new");
        Ok(PublishedFile { path: path.to_owned(), next: path.with_file_name(next) })
    }

    fn write(&self, text: &str) -> io::Result<()> {
        fs::write(&self.next, text)?;
        fs::rename(&self.next, &self.path)
    }
}

impl Drop for PublishedFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.next);
        let _ = fs::remove_file(&self.path);
    }
}

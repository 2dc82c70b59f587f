//! A directory for a run's stores, which is gone after the run, however that ends.
//!
//! Beside the run stands a process that does nothing until the run's end of a pipe closes: because the run has ended,
//! was interrupted from the keyboard, or was killed. Then it removes what is left. It has a process group of its own,
//! so that what the keyboard sends does not reach it.

use crate::cap;
use crate::errors::told;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// How the names of such directories begin.
const PREFIX: &str = "kvbench-store-";
/// An arm may write for a moment after its run has ended: so often is removed what it made.
const TRIES: u32 = 300;
const PAUSE: Duration = Duration::from_millis(100);

/// Such a directory.
pub(crate) struct Workplace {
    directory: Option<TempDir>,
    sweeper: Child,
}

impl Workplace {
    /// A new one in the directory that was named, or beside this program, or where the system has its temporary ones.
    pub(crate) fn new(named: Option<&Path>) -> io::Result<Workplace> {
        Workplace::with_group(named, None)
    }

    /// The same, and a group of [`crate::cap`] is removed with it.
    pub(crate) fn with_group(named: Option<&Path>, group: Option<&Path>) -> io::Result<Workplace> {
        let new = |within: &Path| tempfile::Builder::new().prefix(PREFIX).tempdir_in(within);
        let directory = match named {
            Some(within) => new(within).map_err(|error| told(within.display(), &error))?,
            None => {
                let program = std::env::current_exe().ok();
                let beside = program.as_deref().and_then(Path::parent).and_then(|within| new(within).ok());
                beside.map_or_else(|| new(&std::env::temp_dir()), Ok)?
            }
        };
        let sweeper = Command::new(std::env::current_exe()?)
            .arg("sweep")
            .arg(directory.path())
            .args(group)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .process_group(0)
            .spawn()?;
        Ok(Workplace { directory: Some(directory), sweeper })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        // It is there until it is dropped.
        self.directory.as_ref().map_or(Path::new("."), TempDir::path)
    }

    /// The directory that it is in.
    pub(crate) fn within(&self) -> &Path {
        self.path().parent().unwrap_or(self.path())
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        drop(self.directory.take());
        drop(self.sweeper.stdin.take());
        drop(self.sweeper.wait());
    }
}

/// The process beside the run: waits for its end, and removes the directory and the group if they are still there.
pub(crate) fn sweep(directory: &Path, group: Option<&Path>) -> io::Result<()> {
    let name = directory.file_name().and_then(|name| name.to_str());
    if name.is_none_or(|name| !name.starts_with(PREFIX)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is no directory of a run"));
    }
    let mut byte = [0];
    while matches!(io::stdin().read(&mut byte), Ok(1..)) {}
    for _ in 0..TRIES {
        let removed = match std::fs::remove_dir_all(directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            // An arm may make it again.
            Ok(()) => Err(io::ErrorKind::Interrupted.into()),
            Err(_) => group.map_or(Ok(()), cap::remove),
        };
        if removed.is_ok() {
            return Ok(());
        }
        std::thread::sleep(PAUSE);
    }
    Err(io::Error::other(format!("{} cannot be removed", directory.display())))
}

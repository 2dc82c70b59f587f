//! [`Changes`]: what has happened to a store, as a stream.

use forrest_engine::{Change, Result};
use std::fmt;
use std::time::Duration;

/// The changes of a store after a place in their order, made by [`Db::changes`](crate::Db::changes).
///
/// As an iterator it returns each [`Change`] that there is by now, and then `None`. It may be asked again later: more
/// may have come. [`next_within`](Changes::next_within) waits for them. After an error the place is the same, and it
/// may be asked again; but what is `Gone` does not come back.
///
/// It keeps the store open, and may be used by one thread at a time. It takes no lock that changes wait for, and memory
/// for one record of the log: at least one batch, at most what writers queue while the device is busy, and 1 MiB.
pub struct Changes {
    changes: Box<dyn forrest_engine::Changes>,
    sequence: u64,
}

impl Changes {
    pub(crate) fn new(changes: Box<dyn forrest_engine::Changes>, since: u64) -> Changes {
        Changes { changes, sequence: since }
    }

    /// The next change. If there is none yet, waits up to `most` for one, and then returns `None`. Changes of this
    /// process wake it; those of another process are looked for 100 times a second.
    ///
    /// # Errors
    /// `Gone` if the next changes are no longer kept; `Io`, `Corrupt`, `OutOfSpace` if they cannot be read; `Stopped`
    /// if changes of durability `Memory` cannot be written.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("forest");
    /// # let path = path.to_str().unwrap();
    /// use std::{thread, time::Duration};
    /// let db = forrest::Db::builder().history(true).open(path)?;
    /// let mut changes = db.changes(0)?;
    /// thread::spawn(move || db.set("oak", "Quercus"));
    /// let change = changes.next_within(Duration::from_secs(60))?.expect("it comes sooner");
    /// assert_eq!((change.sequence, changes.sequence()), (1, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn next_within(&mut self, most: Duration) -> Result<Option<Change>> {
        let next = self.changes.wait(most)?;
        Ok(self.note(next))
    }

    /// The sequence number of the last change that was returned, or that it began after: where
    /// [`Db::changes`](crate::Db::changes) goes on.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    fn note(&mut self, next: Option<Change>) -> Option<Change> {
        self.sequence = next.as_ref().map_or(self.sequence, |change| change.sequence);
        next
    }
}

impl Iterator for Changes {
    type Item = Result<Change>;

    fn next(&mut self) -> Option<Result<Change>> {
        match self.changes.next() {
            Ok(next) => self.note(next).map(Ok),
            Err(error) => Some(Err(error)),
        }
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes").field("sequence", &self.sequence).finish_non_exhaustive()
    }
}

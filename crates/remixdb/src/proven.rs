//! [`Proven`]: which records of the logs are synced, by what the files state. So somebody learns it who has not written
//! them: another process, or this one before its first change.
//!
//! A record states how much of its log was synced when it was written, and the header of a log that of the log before
//! it ([`record`](crate::record)). If a record states more than its log's header, all logs before it are synced too
//! ([`wal`](crate::wal)). Nothing else is believed: that a record is there shows that it is written, and no more.
//!
//! What is stated is read from the place on that is asked about, until something covers that place, and no further. So
//! one that follows reads each record twice, in windows of 1 MiB.

use crate::disk::{self, Name, Sealed, SealedFile};
use crate::record::{self, HEADER, Piece};
use crate::recover;
use crate::wal::{self, Head};
use forrest_engine::{ErrorKind, Result};

/// See the head of the file.
#[derive(Default)]
pub(crate) struct Proven {
    /// All logs before this one are synced, and it up to this offset.
    synced: (u64, u64),
    /// The log whose statements were read, and up to which offset.
    read: (u64, u64),
    file: Option<SealedFile>,
    piece: Piece,
}

impl Proven {
    /// Whether the record of a log that ends at an offset is synced, as far as that is stated by now.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    pub(crate) fn covers(&mut self, disk: &Sealed, log: u64, end: u64) -> Result<bool> {
        if self.read < (log, end) {
            if self.read.0 != log {
                (self.file, self.piece) = (None, Piece::default());
            }
            self.read = (log, end);
        }
        while self.synced < (log, end) {
            if !self.read_next(disk)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads the next statement; false if there is none yet.
    fn read_next(&mut self, disk: &Sealed) -> Result<bool> {
        if self.read_record(disk)? {
            return Ok(true);
        }
        let number = self.read.0;
        let Some((next, file, head)) = log_after(disk, number)? else { return Ok(false) };
        // The log may have grown before the next one was begun.
        if self.read_record(disk)? {
            return Ok(true);
        }
        // A header is synced alone, before its log's turn: this says nothing of the logs before it.
        if record::is_vouched(head.synced) {
            self.synced = self.synced.max((number, head.synced));
        }
        (self.read, self.file, self.piece) = ((next, HEADER as u64), Some(file), Piece::default());
        Ok(true)
    }

    fn read_record(&mut self, disk: &Sealed) -> Result<bool> {
        let (number, offset) = self.read;
        let name = Name::log(number);
        if self.file.is_none() {
            self.file = disk::open_if_there(disk, name)?;
        }
        let Some(file) = &self.file else { return Ok(false) };
        let next = match record::next(disk, file, name, offset, &mut self.piece) {
            // A file that lost its descriptor beside another process may be removed.
            Err(error) if error.kind() == ErrorKind::Io && disk::open_if_there(disk, name)?.is_none() => None,
            next => next?,
        };
        let Some(next) = next else { return Ok(false) };
        if let Some(synced) = next.synced.filter(|&synced| record::is_vouched(synced)) {
            self.synced = self.synced.max((number, synced));
        }
        self.read.1 = next.end;
        Ok(true)
    }
}

/// The log that goes on after another one, if there is one: from the newest log back.
fn log_after(disk: &Sealed, number: u64) -> Result<Option<(u64, SealedFile, Head)>> {
    let mut at = recover::newest_log(disk)?;
    while at > number {
        let Some(file) = disk::open_if_there(disk, Name::log(at))? else { return Ok(None) };
        let Some(head) = wal::head(disk, &file, at)? else { return Ok(None) };
        match head.before.number {
            before if before == number => return Ok(Some((at, file, head))),
            before if before < at => at = before,
            _ => return Ok(None),
        }
    }
    Ok(None)
}

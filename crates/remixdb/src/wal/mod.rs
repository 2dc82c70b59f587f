//! The write-ahead log: what makes a change survive, in three degrees.
//!
//! Changes are queued in the order that the store gives them ([`Group::queue`], under the store's lock, without I/O).
//! Who wants more than that commits: the first to come writes all that is queued as one record, and those who come
//! while it does find theirs written ([`Log::commit`]). The same again for a sync. No lock is held across a sync but
//! the one that only those take who want a sync themselves; so a thread that syncs slows nobody who does not. All that
//! is in group.rs; here is what the files are like.
//!
//! A store has one log for each memtable. Each says where the one before ends; and before a log is synced, all
//! before it are. So what a log states to be synced vouches for them too.
//!
//! If a write or a sync fails, nobody knows what the device has. The log is then *stopped*: it takes nothing more, and
//! whoever waits for it gets an error. It never tries again, because after a failed sync the system may report success
//! for what it has thrown away.

pub(crate) mod format;
pub(crate) mod group;

pub(crate) use format::Change;

use crate::codec::Parts;
use crate::disk::{self, Disk, Name, Write};
use crate::record;
use forrest_engine::Durability;
use forrest_engine::{Error, ErrorKind, Result};
use group::{Device, Ended, Group};
use std::ops::Deref;
use std::sync::Arc;

/// Queued bytes that are written though nobody waits for them.
const QUEUE_BYTES: usize = 256 << 10;

/// The first change of a log has no greater sequence number. Memtables keep 56 bits of it, and no log has so many
/// changes that the rest would not do.
const FIRST_MAX: u64 = 1 << 55;

/// The logs of an open store: one that is written to, and those before it that are not synced yet.
pub(crate) struct Log<D: Disk>(Group<Logs<D>>);

impl<D: Disk> Deref for Log<D> {
    type Target = Group<Logs<D>>;
    #[inline]
    fn deref(&self) -> &Group<Logs<D>> {
        &self.0
    }
}

/// The files of logs, to be written to.
pub(crate) struct Logs<D: Disk>(Arc<D>);

/// A log file.
pub(crate) struct LogFile<D: Disk> {
    name: Name,
    file: D::File,
}

impl<D: Disk> Device for Logs<D> {
    type File = LogFile<D>;
    type Error = Error;

    #[inline]
    fn begin(&self, record: &mut Vec<u8>, offset: u64, synced: Option<u64>) {
        record::begin(record, offset, synced);
    }

    fn write(&self, log: &LogFile<D>, record: &mut Vec<u8>, offset: u64) -> Result<()> {
        record::finish(record, log.name, offset);
        let mut write = Write { offset, bytes: std::mem::take(record), ..Write::default() };
        let written = disk::write_all(&*self.0, &log.file, log.name, &mut write);
        *record = write.bytes;
        written
    }

    fn sync(&self, log: &LogFile<D>) -> Result<()> {
        disk::sync(&*self.0, &log.file, log.name)
    }

    #[cold]
    fn stopped(&self, why: &str) -> Error {
        Error::new(
            ErrorKind::Stopped,
            format!("an earlier failure ({why}); the store takes no writes until it is opened again"),
        )
    }
}

/// Where a log ended, for the next one to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct End {
    /// Number of the log; 0 if there is none.
    pub(crate) number: u64,
    /// Bytes of it that count.
    pub(crate) offset: u64,
}

/// Makes a log file that is ready for records: header and name are durable.
fn create<D: Disk>(disk: &D, number: u64, head: Head) -> Result<LogFile<D>> {
    let name = Name::log(number);
    let file = disk::create(disk, name)?;
    let Head { before, synced, first, is_first } = head;
    let header =
        record::header(name, [before.number, before.offset, first, synced << 1 | u64::from(is_first)]);
    let mut write = Write { bytes: header.to_vec(), sync: true, ..Write::default() };
    // DURABILITY: no record is written behind a header that may be lost, and none to a file whose name may be.
    disk::write_all(disk, &file, name, &mut write)?;
    disk::sync_directory(disk)?;
    Ok(LogFile { name, file })
}

impl<D: Disk> Log<D> {
    /// A new log file. All logs before it are synced.
    pub(crate) fn create(disk: &Arc<D>, number: u64, head: Head) -> Result<Log<D>> {
        let log = create(&**disk, number, head)?;
        let logs = Logs(disk.clone());
        Ok(Log(Group::new(logs, log, record::HEADER as u64, head.first - 1, QUEUE_BYTES)))
    }

    /// Returns when the changes up to sequence number `last` are as durable as asked.
    pub(crate) fn commit(&self, last: u64, durability: Durability) -> Result<()> {
        match durability {
            Durability::Memory if !self.is_much() => Ok(()),
            Durability::Memory | Durability::Buffered => self.write(last),
            // Also a level that is stronger than those of today.
            _ => self.sync(last),
        }
    }

    /// Closes the logs before this one, whose changes are durable in tables.
    pub(crate) fn close_before(&self, floor: u64) {
        self.0.forget(|log| log.name.number >= floor);
    }

    /// Goes on in a new file; the caller keeps all who queue out. What was queued goes to the old one.
    pub(crate) fn rotate(&self, number: u64) -> Result<()> {
        self.0.rotate(|old, Ended { written, synced, last }| {
            let before = End { number: old.name.number, offset: written };
            let head = Head { before, synced, first: last + 1, is_first: false };
            let log = create(&*self.device().0, number, head)?;
            Ok((log, record::HEADER as u64))
        })
    }
}

/// What the header of a log says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    /// The log before it, and where that ended.
    pub(crate) before: End,
    /// Bytes of that log that were known to be synced.
    pub(crate) synced: u64,
    /// The sequence number of its first change.
    pub(crate) first: u64,
    /// Whether it was made for a store that did not exist.
    pub(crate) is_first: bool,
}

/// The header of a log; `None` if it was made and never used.
///
/// # Errors
/// `Corrupt`, `Io`; `Unsupported` for a log of another version.
pub(crate) fn head<D: Disk>(disk: &D, file: &D::File, number: u64) -> Result<Option<Head>> {
    let name = Name::log(number);
    let Some([before, offset, first, last]) = record::fields_of(disk, file, name)? else {
        return record::unused(disk, file, name).map(|()| None);
    };
    let (synced, is_first) = (last >> 1, last & 1 == 1);
    if first == 0 || first > FIRST_MAX || synced > offset {
        return Err(disk::damaged(name, 40, "a header that is whole and makes no sense"));
    }
    Ok(Some(Head { before: End { number: before, offset }, synced, first, is_first }))
}

/// A log that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Replayed {
    /// Where it ends.
    pub(crate) end: u64,
    /// The sequence number behind its last change.
    pub(crate) next: u64,
    /// Whether one of its records states that it was synced beyond its header; then all logs before it were.
    pub(crate) vouches: bool,
}

/// Shows the changes of a log that has a header, in order, each with its sequence number.
///
/// # Errors
/// `Corrupt` if something is missing or wrong that had been synced; `Io`; and what `see` returns.
pub(crate) fn replay<D: Disk>(
    disk: &D,
    file: &D::File,
    number: u64,
    mut see: impl FnMut(u64, Change<'_>) -> Result<()>,
) -> Result<Replayed> {
    let name = Name::log(number);
    let [_, _, mut next, _] = record::fields_of(disk, file, name)?.unwrap_or_default();
    let replayed = record::replay(disk, file, name, |at, body| {
        let mut parts = Parts(body);
        while !parts.is_empty() {
            let change = Change::take(&mut parts).ok_or_else(|| {
                disk::damaged(name, at, "a record that is whole and that this version does not understand")
            })?;
            see(next, change)?;
            next += 1;
        }
        Ok(())
    })?;
    Ok(Replayed { end: replayed.end, next, vouches: replayed.synced > record::HEADER as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::simulated::Simulated;

    /// Sequence numbers that come to an end were counted beyond it.
    #[test]
    fn a_header_whose_numbers_would_run_out_is_refused() {
        let name = Name::log(7);
        for (first, is_taken) in
            [(0, false), (1, true), (FIRST_MAX, true), (FIRST_MAX + 1, false), (u64::MAX, false)]
        {
            let bytes = record::header(name, [0, 0, first, 1]).to_vec();
            let disk = Simulated::from_files([(name, bytes)]);
            let file = disk::open(&disk, name).expect("it is there");
            assert_eq!(head(&disk, &file, 7).is_ok(), is_taken, "{first}");
        }
    }
}

//! The write-ahead log: it makes changes survive, at three levels of durability.
//!
//! Changes are queued in the order that the store gives them ([`Group::queue`], under the store's lock,
//! without I/O). A thread that wants more than that commits ([`Log::commit`]). The first one writes
//! everything queued as one record, and threads that come meanwhile find their changes written. Syncs work
//! the same way. No lock is held across a sync except one that only syncing threads take. So a thread that
//! syncs does not delay threads that do not. This protocol is in group.rs; this file has the format and order
//! of the log files.
//!
//! A store has one log for each memtable. Each log states where the previous one ends. Before a log's records are
//! synced, all logs before it are synced. So a log's statement that it was synced beyond its header holds for them
//! too. Only its header may be synced earlier.
//!
//! If a write or a sync fails, the content of the device is unknown. The log is then *stopped*: it accepts nothing
//! more, and every thread that waits for it gets an error. It never retries, because after a failed sync the system may
//! report success for data that it has dropped. It may go on in a new file when everything that was queued is durable
//! in tables: see [`resume`](crate::resume). A process that opens the store later does not know of the failure. So what
//! it reads, and what is not stated to be synced, it writes again before it syncs it.

pub(crate) mod format;
pub(crate) mod group;

pub(crate) use format::{Change, FRONT_MOST, Note};

use crate::codec::Parts;
use crate::disk::{self, Disk, Kind, Name, Sealed, SealedFile, Write};
use crate::record;
use crate::sync::add_alone;
use forrest_base::lock;
use forrest_engine::Durability;
use forrest_engine::{Error, ErrorKind, Result, Work};
use group::{Device, Ended, Group};
use std::collections::BTreeMap;
use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// More queued bytes than this are written even if no thread waits for them.
const QUEUE_BYTES: usize = 256 << 10;

/// Space that a log takes ahead of what is written: as much as it is long, within these bounds.
const RESERVE_LEAST: u64 = 64 << 10;
const RESERVE_MOST: u64 = 16 << 20;
/// Space that a new log takes, and what of it is left for changes.
pub(crate) const RESERVED_FIRST: u64 = 128 << 10;
/// Space that logs on a device of their own leave to the next log.
const SPARE: u64 = 2 * RESERVED_FIRST;
const ROOM_FIRST: u64 = RESERVED_FIRST - record::HEADER as u64 - record::OVERHEAD_MAX;

/// Maximum sequence number of the first change of a log. Memtables keep 56 bits of a sequence number, and no
/// log has enough changes to exceed the rest.
const FIRST_MAX: u64 = 1 << 55;

/// The logs of an open store: the one that takes writes, and those before it that are not synced yet.
///
/// When a store is opened, the logs that were there are read, and nothing is written. The first change begins a new
/// log ([`rotate`](Log::rotate)).
pub(crate) struct Log {
    group: Group<Logs>,
    /// Whether new logs have history.
    has_history: bool,
    /// Bytes that certainly find space in the file after what is queued. Changed under the store's order lock only. 0
    /// if the log was only read.
    room: AtomicU64,
    /// Whether the last log takes writes; if not, it was only read.
    is_begun: AtomicBool,
    /// Whether what was read, and the names of the files, are synced.
    is_settled: AtomicBool,
    /// The manifest that was read.
    manifest: Option<Name>,
    /// What was read, and is not stated to be synced: files, and places in them. A log whose end is not known yet ends
    /// at `u64::MAX`.
    unproven: Mutex<Vec<(Name, Range<u64>)>>,
    /// Where the logs have ended that take no more records, and may be needed.
    ended: Mutex<BTreeMap<u64, u64>>,
    /// The file of the next log, if it was made ahead.
    spare: Mutex<Option<LogFile>>,
    /// Held by the thread that makes it.
    preparing: Mutex<()>,
}

impl Deref for Log {
    type Target = Group<Logs>;
    #[inline]
    fn deref(&self) -> &Group<Logs> {
        &self.group
    }
}

/// The files of logs, for writing; and what was written.
pub(crate) struct Logs {
    disk: Arc<Sealed>,
    writes: AtomicU64,
    bytes: AtomicU64,
    syncs: AtomicU64,
    sync_nanos: AtomicU64,
}

impl Logs {
    fn new(disk: &Arc<Sealed>) -> Logs {
        let [writes, bytes, syncs, sync_nanos] = Default::default();
        Logs { disk: disk.clone(), writes, bytes, syncs, sync_nanos }
    }

    /// Writes and syncs so far.
    pub(crate) fn done(&self) -> (Work, Work) {
        let (mut writes, mut syncs) = (Work::default(), Work::default());
        (writes.count, writes.bytes) =
            (self.writes.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed));
        (syncs.count, syncs.took) = (
            self.syncs.load(Ordering::Relaxed),
            Duration::from_nanos(self.sync_nanos.load(Ordering::Relaxed)),
        );
        (writes, syncs)
    }
}

/// A log file.
pub(crate) struct LogFile {
    name: Name,
    file: Arc<SealedFile>,
    /// Bytes for which it had space when it was begun.
    reserved: u64,
}

impl LogFile {
    pub(crate) fn number(&self) -> u64 {
        self.name.number
    }
}

impl Device for Logs {
    type File = LogFile;
    type Error = Error;

    #[inline]
    fn begin(&self, record: &mut Vec<u8>, offset: u64, synced: Option<u64>) {
        record::begin(record, offset, synced, self.disk.is_sealed());
    }

    fn write(&self, log: &LogFile, record: &mut Vec<u8>, offset: u64) -> Result<()> {
        record::finish(record, log.name, offset, self.disk.cipher(&log.file));
        // The thread that has the turn to write.
        add_alone(&self.writes, 1);
        add_alone(&self.bytes, record.len() as u64);
        let mut write = Write { offset, bytes: std::mem::take(record), ..Write::default() };
        let written = disk::write_all(&*self.disk, &log.file, log.name, &mut write);
        *record = write.bytes;
        written
    }

    fn sync(&self, log: &LogFile) -> Result<()> {
        let begin = Instant::now();
        let synced = disk::sync(&*self.disk, &log.file, log.name);
        // ORDERING: sums that no other data depends on.
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.sync_nanos.fetch_add(begin.elapsed().as_nanos() as u64, Ordering::Relaxed);
        synced
    }

    #[cold]
    fn stopped(&self, why: &str) -> Error {
        Error::new(
            ErrorKind::Stopped,
            format!(
                "an earlier failure ({why}); the store takes no writes until it is opened again or resumed"
            ),
        )
    }
}

/// The end of a log, which the next one states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct End {
    /// Number of the log; 0 if there is none.
    pub(crate) number: u64,
    /// Length of its valid content in bytes.
    pub(crate) offset: u64,
}

/// A log file without a header, in which there is space for the first records.
fn create_file(disk: &Sealed, number: u64) -> Result<LogFile> {
    let name = Name::log(number);
    let file = disk::create_reserved(disk, name, RESERVED_FIRST)?;
    Ok(LogFile { name, file: Arc::new(file), reserved: RESERVED_FIRST })
}

/// Makes a log file ready for records: its header and its name are durable.
fn begin(disk: &Sealed, log: &LogFile, head: Head) -> Result<()> {
    // DURABILITY: no record follows a header that may be lost, or goes to a file whose name may be lost.
    write_header(disk, log, head, true)?;
    disk::sync_directory(disk, Kind::Log)
}

/// Writes the header of a log.
fn write_header(disk: &Sealed, LogFile { name, file, .. }: &LogFile, head: Head, sync: bool) -> Result<()> {
    let Head { before, synced, first, is_first, has_history, .. } = head;
    let version = if has_history { record::LOG_WITH_HISTORY } else { record::LOG };
    let last = synced << 1 | u64::from(is_first);
    let fields = [before.number, before.offset, first, last];
    let header = record::header(*name, version, fields, disk.cipher(file));
    let mut write = Write { bytes: header.to_vec(), sync, ..Write::default() };
    disk::write_all(disk, file, *name, &mut write)
}

impl Log {
    /// A new log file. All logs before it are synced.
    pub(crate) fn create(disk: &Arc<Sealed>, number: u64, head: Head) -> Result<Log> {
        let log = create_file(disk, number)?;
        begin(disk, &log, head)?;
        let logs = Logs::new(disk);
        let group = Group::new(logs, log, record::HEADER as u64, head.first - 1, QUEUE_BYTES);
        Ok(Log {
            group,
            has_history: head.has_history,
            room: AtomicU64::new(ROOM_FIRST),
            is_begun: AtomicBool::new(true),
            is_settled: AtomicBool::new(true),
            manifest: None,
            unproven: Mutex::default(),
            ended: Mutex::default(),
            spare: Mutex::default(),
            preparing: Mutex::default(),
        })
    }

    /// A log of `bytes` bytes that is going to be read, after a manifest, with the end of its last record.
    pub(crate) fn reading(
        disk: &Arc<Sealed>,
        (manifest, end): (Name, u64),
        number: u64,
        file: Arc<SealedFile>,
        bytes: u64,
        has_history: bool,
    ) -> Log {
        let log = LogFile { name: Name::log(number), file, reserved: 0 };
        Log {
            group: Group::resuming(Logs::new(disk), log, bytes, QUEUE_BYTES),
            has_history,
            room: AtomicU64::new(0),
            is_begun: AtomicBool::new(false),
            is_settled: AtomicBool::new(false),
            manifest: Some(manifest),
            unproven: Mutex::new(vec![(manifest, 0..end), (Name::log(number), 0..u64::MAX)]),
            ended: Mutex::default(),
            spare: Mutex::default(),
            preparing: Mutex::default(),
        }
    }

    /// The next log of `bytes` bytes, which is going to be read.
    pub(crate) fn read_next(&self, number: u64, file: Arc<SealedFile>, bytes: u64) {
        self.group.resume(LogFile { name: Name::log(number), file, reserved: 0 }, bytes);
        lock(&self.unproven).push((Name::log(number), 0..u64::MAX));
        self.is_settled.store(false, Ordering::Relaxed);
    }

    /// The log that is read, of this number, ends at an offset, with change `last`. Up to `synced` it is stated to be
    /// synced.
    pub(crate) fn resumed(&self, End { number, offset }: End, last: u64, synced: u64) {
        self.group.resumed(offset, last);
        lock(&self.ended).insert(number, offset);
        let mut unproven = lock(&self.unproven);
        // If it is not there, tables were made meanwhile, and it was settled.
        if unproven.pop_if(|(name, _)| *name == Name::log(number)).is_none() {
            return;
        }
        let is_vouched = record::is_vouched(synced);
        if is_vouched {
            // All logs before it were synced, then.
            unproven.retain(|(name, _)| name.kind != Kind::Log);
        }
        if synced < offset {
            unproven.push((Name::log(number), if is_vouched { synced } else { 0 }..offset));
        }
    }

    /// Where a log has ended; `None` if it may take more records, or is not needed any more.
    pub(crate) fn ended(&self, number: u64) -> Option<u64> {
        lock(&self.ended).get(&number).copied()
    }

    /// Whether new logs have history.
    #[inline]
    pub(crate) fn has_history(&self) -> bool {
        self.has_history
    }

    /// The number of the newest log.
    pub(crate) fn newest(&self) -> u64 {
        self.group.at_end(|log, _| log.name.number)
    }

    /// Whether changes can be queued.
    pub(crate) fn is_begun(&self) -> bool {
        // ORDERING: the order lock orders it for those who queue, and the others need no more than the value.
        self.is_begun.load(Ordering::Relaxed)
    }

    /// Sees to it that what was read counts: it is synced, and so are the names of the logs. After an error other than
    /// `OutOfSpace` the log is stopped.
    pub(crate) fn settle(&self) -> Result<()> {
        // ORDERING: a caller who finds it set only needs what was on the device before.
        if self.is_settled.load(Ordering::Acquire) {
            return Ok(());
        }
        self.check()?;
        let disk = &*self.device().disk;
        self.write_unproven()?;
        // DURABILITY: what was read counts from now on, so it must be as durable as everything after it.
        if let Some(name) = self.manifest {
            // If it is gone, a newer one, which is durable, has taken its place.
            if let Some(file) = disk::open_if_there(disk, name)? {
                disk::sync(disk, &file, name).map_err(|error| self.group.stop(error))?;
            }
        }
        let last = self.written();
        self.group.settle()?;
        // DURABILITY: the name of the manifest may not be durable, and logs without a manifest are no store.
        disk::sync_directory(disk, Kind::Manifest).map_err(|error| self.group.stop(error))?;
        // DURABILITY: the name of a log that was read may not be durable either, and the new log will refer to it.
        disk::sync_directory(disk, Kind::Log).map_err(|error| self.group.stop(error))?;
        self.is_settled.store(true, Ordering::Release);
        self.group.vouch(last);
        Ok(())
    }

    /// Whether the log is synced farther than its records state.
    pub(crate) fn has_unstated(&self) -> bool {
        self.is_begun() && self.group.has_unstated(record::HEADER as u64)
    }

    /// Writes a record that states how far the log is synced, if no record has done so. The caller holds the store's
    /// order lock, and has taken room for it.
    ///
    /// # Errors
    /// The log is stopped then.
    pub(crate) fn state_synced(&self) -> Result<()> {
        self.group.state_synced(record::HEADER as u64)
    }

    /// Writes again what may be in the memory of the system only.
    fn write_unproven(&self) -> Result<()> {
        let mut unproven = lock(&self.unproven);
        while let Some((name, bytes)) = unproven.last().cloned() {
            match self.write_again(name, bytes) {
                Err(error) if error.kind() == ErrorKind::OutOfSpace => return Err(error),
                written => written.map_err(|error| self.group.stop(error))?,
            }
            unproven.pop();
        }
        Ok(())
    }

    fn write_again(&self, name: Name, bytes: Range<u64>) -> Result<()> {
        let (disk, Range { start, end }) = (&*self.device().disk, bytes.clone());
        // DURABILITY: a sync of another process may have failed, and the next one would report success.
        let file = match disk::write_again(disk, name, bytes)? {
            Some(file) => file,
            // Another manifest has replaced it.
            None if name.kind == Kind::Manifest => return Ok(()),
            None => return Err(disk::missing(name)),
        };
        // The system may have dropped the bytes since they were read, and return those of the device. Records are never
        // replaced by others, so it is enough that they are intact.
        let from = start.max(record::HEADER as u64);
        let has_header = start > 0 || record::fields_of(disk, &file, name)?.is_some();
        if end == u64::MAX
            || (has_header && record::replay(disk, &file, name, from, |_, _, _| Ok(()))?.end >= end)
        {
            return Ok(());
        }
        Err(disk::damaged(name, start, "what was read when the store was opened is not there any more"))
    }

    /// Sees to it that changes of up to `bytes` bytes find space in the file. `keep` bytes stay for others. False if
    /// more has to be taken for that. The caller holds the store's order lock.
    #[inline]
    pub(crate) fn take_room(&self, bytes: u64, keep: u64) -> bool {
        let bytes = bytes + record::OVERHEAD_MAX;
        // ORDERING: the order lock orders it.
        let room = self.room.load(Ordering::Relaxed);
        if room < bytes + keep {
            return false;
        }
        self.room.store(room - bytes, Ordering::Relaxed);
        true
    }

    /// Bytes that certainly find space in the file, about.
    pub(crate) fn room(&self) -> u64 {
        // ORDERING: no other data depends on it.
        self.room.load(Ordering::Relaxed)
    }

    /// Takes space, so that [`take_room`](Log::take_room) works for as many bytes. The log is begun.
    ///
    /// # Errors
    /// `OutOfSpace`; nothing has changed then.
    #[cold]
    pub(crate) fn reserve(&self, bytes: u64, keep: u64) -> Result<()> {
        let room = self.reserve_more(bytes + record::OVERHEAD_MAX + keep)?;
        self.room.store(room, Ordering::Relaxed);
        Ok(())
    }

    fn reserve_more(&self, bytes: u64) -> Result<u64> {
        self.group.at_end(|log, end| {
            // More at once the longer the log is.
            let ahead = end.clamp(RESERVE_LEAST, RESERVE_MOST);
            let disk = &*self.device().disk;
            // With a new log the memtable can become tables, and then this log gives its space back.
            let free = if disk.is_log_apart() { disk.free(Kind::Log).unwrap_or(u64::MAX) } else { u64::MAX };
            let reserve = |len: u64| match free.saturating_sub(SPARE) >= len - end {
                true => disk::reserve(disk, &log.file, log.name, len),
                false => Err(Error::new(
                    ErrorKind::OutOfSpace,
                    format!("reserving space for {}: the device of the log has {free} bytes left", log.name),
                )),
            };
            match reserve(end + bytes + ahead) {
                Ok(()) => Ok(bytes + ahead),
                Err(error) if error.kind() == ErrorKind::OutOfSpace => reserve(end + bytes).map(|()| bytes),
                Err(error) => Err(error),
            }
        })
    }

    /// Returns when the changes up to sequence number `last` are as durable as requested.
    pub(crate) fn commit(&self, last: u64, durability: Durability) -> Result<()> {
        match durability {
            Durability::Memory if !self.is_much() => Ok(()),
            Durability::Memory | Durability::Buffered => self.write(last),
            // Also for a future, stronger level.
            _ => {
                self.settle()?;
                self.sync(last)
            }
        }
    }

    /// Closes the logs before this one, whose changes are durable in tables.
    pub(crate) fn close_before(&self, floor: u64) {
        self.group.forget(|log| log.name.number >= floor);
        lock(&self.ended).retain(|&number, _| number >= floor);
    }

    /// Whether everything that was read when the store was opened is durable, and a log was begun since.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_begun() && self.is_settled.load(Ordering::Acquire)
    }

    /// Makes a log file after a failure, for [`restart`](Log::restart). Until a manifest begins with it, a recovery
    /// takes the log before it for torn: it states that the log ended farther away than anything was ever written. So
    /// this log takes no record before.
    ///
    /// # Errors
    /// `Io`, `OutOfSpace`.
    pub(crate) fn begin_after_failure(&self, number: u64) -> Result<LogFile> {
        let disk = &*self.device().disk;
        let first = self.last() + 1;
        let head = self.group.beyond(|log, offset, synced| Head {
            is_old: false,
            before: End { number: log.name.number, offset },
            synced,
            first,
            is_first: false,
            has_history: self.has_history,
        });
        let log = create_file(disk, number)?;
        begin(disk, &log, head)?;
        Ok(log)
    }

    /// Goes on in this file after a failure. The manifest begins with it, and has everything that was queued. The
    /// caller holds the store's order lock.
    pub(crate) fn restart(&self, log: LogFile) {
        self.group.restart(log, record::HEADER as u64);
        self.room.store(ROOM_FIRST, Ordering::Relaxed);
    }

    /// Makes the file of the next log ahead, if there is none yet and no other thread makes it. It gets as much space
    /// as is `expected` where the current log has this length. Writers wait for each other while a log is begun and
    /// while it takes space; a system that writes much takes 100 ms for either. In such a file no writer waits for the
    /// device.
    ///
    /// # Errors
    /// `OutOfSpace` if there is no space for the file, which is not there then. After any other error, and after a
    /// failed sync of names, the log is stopped.
    pub(crate) fn prepare(
        &self,
        number: impl FnOnce() -> u64,
        expected: impl FnOnce(u64) -> u64,
    ) -> Result<()> {
        let Ok(_preparing) = self.preparing.try_lock() else { return Ok(()) };
        if self.spare().is_some() || !self.is_begun() {
            return Ok(());
        }
        self.check()?;
        self.remove_spare();
        let disk = &*self.device().disk;
        let number = number();
        let made = create_file(disk, number).and_then(|mut log| {
            let len = expected(self.group.at_end(|_, end| end)).max(RESERVED_FIRST);
            // Without that much space, it takes more when it needs it.
            match disk::reserve(disk, &log.file, log.name, len) {
                Err(error) if error.kind() == ErrorKind::OutOfSpace => {}
                reserved => {
                    reserved?;
                    log.reserved = len;
                }
            }
            // Until it has a header, it is as if it were not there.
            let mut write = Write { bytes: vec![0; record::HEADER], sync: true, ..Write::default() };
            disk::write_all(disk, &log.file, log.name, &mut write).map(|()| log)
        });
        let log = match made {
            Err(error) if error.kind() == ErrorKind::OutOfSpace => {
                // It has nothing, and nobody knows it.
                let _ = disk::unlink(disk, Name::log(number));
                return Err(error);
            }
            made => made.map_err(|error| self.group.stop(error))?,
        };
        // DURABILITY: its name is durable before it has a header. A failure may be of the names of other files too.
        disk::sync_directory(disk, Kind::Log).map_err(|error| self.group.stop(error))?;
        *lock(&self.spare) = Some(log);
        Ok(())
    }

    /// Makes the header of the newest log durable. Until then, a power cut may take the log and all that it has.
    ///
    /// # Errors
    /// The log is stopped then.
    pub(crate) fn sync_begin(&self) -> Result<()> {
        if self.is_begun() { self.group.sync_begin(record::HEADER as u64) } else { Ok(()) }
    }

    /// Whether a manifest may state that the logs begin with this one: its header is durable.
    pub(crate) fn may_be_first(&self, number: u64) -> bool {
        self.group.is_begun(|log| log.name.number == number)
    }

    /// How much of the log of this number is known to be synced.
    pub(crate) fn synced_bytes(&self, number: u64) -> u64 {
        self.group.synced_bytes(|log| log.name.number == number)
    }

    /// The number of the file that was made ahead. If a log with a greater number was begun meanwhile, there is none.
    pub(crate) fn spare(&self) -> Option<u64> {
        let number = lock(&self.spare).as_ref()?.name.number;
        (number > self.group.at_end(|log, _| log.name.number)).then_some(number)
    }

    /// Removes the file that was made ahead.
    pub(crate) fn remove_spare(&self) {
        if let Some(log) = lock(&self.spare).take() {
            // If it stays, it is removed with the logs before the next one.
            let _ = disk::unlink(&*self.device().disk, log.name);
        }
    }

    /// Goes on in a new file, or begins one if the logs were only read. The caller ensures that no other thread queues.
    /// Queued changes go to the old file. `number` is that of the [`spare`](Log::spare), or of a new file.
    ///
    /// # Errors
    /// `OutOfSpace` if there is no space for the file; the log goes on in the old one then. After any other error it is
    /// stopped.
    pub(crate) fn rotate(&self, number: u64) -> Result<()> {
        self.settle()?;
        // DURABILITY: no log has a header while the one before it has none. Most often it has long been synced.
        self.sync_begin()?;
        let mut room = ROOM_FIRST;
        let disk = &*self.device().disk;
        let spare = lock(&self.spare).take_if(|spare| spare.name.number == number);
        let is_named = spare.is_some();
        let log = match spare.map_or_else(|| create_file(disk, number), Ok) {
            Err(error) if error.kind() != ErrorKind::OutOfSpace => return Err(self.group.stop(error)),
            made => made?,
        };
        self.group.rotate(|old, Ended { written, synced, last }| {
            lock(&self.ended).insert(old.name.number, written);
            let before = End { number: old.name.number, offset: written };
            let has_history = self.has_history;
            let head = Head { before, synced, first: last + 1, is_first: false, has_history, is_old: false };
            room = log.reserved - RESERVED_FIRST + ROOM_FIRST;
            let header = record::HEADER as u64;
            if is_named {
                // Until it is durable, no record states that it is: see `sync_begin`.
                write_header(disk, &log, head, false)?;
                return Ok((log, header, 0));
            }
            begin(disk, &log, head)?;
            Ok((log, header, header))
        })?;
        self.room.store(room, Ordering::Relaxed);
        self.is_begun.store(true, Ordering::Relaxed);
        Ok(())
    }
}

/// The header of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    /// The log before it, and where that ended.
    pub(crate) before: End,
    /// Bytes of that log that were known to be synced.
    pub(crate) synced: u64,
    /// The sequence number of its first change.
    pub(crate) first: u64,
    /// Whether it was created together with the store.
    pub(crate) is_first: bool,
    /// Whether its changes can be read as a stream: see [`format`].
    pub(crate) has_history: bool,
    /// Whether it has a version that is not written any more.
    pub(crate) is_old: bool,
}

/// The end of a log, after which another one goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tail {
    /// It reaches the place that the other one states.
    There,
    /// It is missing, and nothing from there on was ever synced.
    Torn,
    /// It is missing, and the log of this number states that it was synced.
    Damaged(u64),
}

/// The header of a log that has only values ([`value_log`](crate::value_log)): no log is before it, and no log of the
/// store has its first sequence number.
pub(crate) fn header_of_values(name: Name) -> [u8; record::HEADER] {
    record::header(name, record::LOG, OF_VALUES, None)
}

/// The fields of that header.
pub(crate) const OF_VALUES: [u64; 4] = [0, 0, FIRST_MAX, 0];

impl Head {
    /// Whether the log has only values, which an ingest wrote.
    pub(crate) fn has_only_values(&self) -> bool {
        self.before.number == 0 && self.first == FIRST_MAX && !self.is_first
    }

    /// Whether a power cut took all of the log before this one, of which nothing was synced. Such a log is made after
    /// a failure only ([`begin_after_failure`](Log::begin_after_failure)), and does not count: no manifest begins with
    /// it.
    /// `is_there` tells whether a log of this number has a header, and `has_records` whether this one has more.
    pub(crate) fn is_void(
        &self,
        is_there: impl FnOnce(u64) -> bool,
        has_records: impl FnOnce() -> Result<bool>,
    ) -> Result<bool> {
        Ok(!self.is_first && self.synced == 0 && !is_there(self.before.number) && !has_records()?)
    }

    /// What became of the end of the log before this one, of which the intact part ends at `end`. `number` is that of
    /// this log. `vouching` returns the number of a log, from this one on, whose records state that it was synced: then
    /// all logs before it were.
    pub(crate) fn tail_before(
        &self,
        number: u64,
        end: u64,
        vouching: impl FnOnce() -> Result<Option<u64>>,
    ) -> Result<Tail> {
        if self.before.offset <= end {
            return Ok(Tail::There);
        }
        let by = if self.synced > end { Some(number) } else { vouching()? };
        Ok(by.map_or(Tail::Torn, Tail::Damaged))
    }
}

/// The header of a log; `None` if the log was created and never used.
///
/// # Errors
/// `Corrupt`, `Io`; `Unsupported` for a log of another version.
pub(crate) fn head(disk: &Sealed, file: &SealedFile, number: u64) -> Result<Option<Head>> {
    let name = Name::log(number);
    let Some((version, [before, offset, first, last])) = record::version_of(disk, file, name)? else {
        return record::unused(disk, file, name).map(|()| None);
    };
    let (synced, is_first) = (last >> 1, last & 1 == 1);
    if first == 0 || first > FIRST_MAX || synced > offset {
        return Err(disk::damaged(name, 40, "a header with a valid checksum is malformed"));
    }
    let has_history = record::has_history(version);
    let (before, is_old) = (End { number: before, offset }, !record::is_written(version));
    Ok(Some(Head { before, synced, first, is_first, has_history, is_old }))
}

/// A log that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Replayed {
    /// Its end.
    pub(crate) end: u64,
    /// The sequence number after its last change.
    pub(crate) next: u64,
    /// The synced length that its records state; 0 if none does.
    pub(crate) synced: u64,
    /// Whether one of its records states that it was synced beyond its header; then all logs before it were
    /// synced.
    pub(crate) vouches: bool,
}

/// Passes the changes of a log that has a header to `see`, in order, each with its sequence number; all of them, or
/// those after an offset where a record ends and the next change has this number.
///
/// # Errors
/// `Corrupt` if something that had been synced is missing or wrong; `Io`; and the error of `see`.
pub(crate) fn replay(
    disk: &Sealed,
    file: &SealedFile,
    number: u64,
    from: Option<(u64, u64)>,
    mut see: impl FnMut(u64, Change<'_>) -> Result<()>,
) -> Result<Replayed> {
    replay_placed(disk, file, number, from, |sequence, change, _| see(sequence, change))
}

/// The same, with the offset at which each change ends: a value is at the end of its change.
///
/// # Errors
/// As [`replay`].
pub(crate) fn replay_placed(
    disk: &Sealed,
    file: &SealedFile,
    number: u64,
    from: Option<(u64, u64)>,
    mut see: impl FnMut(u64, Change<'_>, u64) -> Result<()>,
) -> Result<Replayed> {
    let name = Name::log(number);
    let (from, mut next) = match from {
        Some(from) => from,
        None => {
            let [_, _, first, _] = record::fields_of(disk, file, name)?.unwrap_or_default();
            (record::HEADER as u64, first)
        }
    };
    let replayed = record::replay(disk, file, name, from, |at, body_at, body| {
        let mut parts = Parts(body);
        while !parts.is_empty() {
            let change = Change::take(&mut parts).ok_or_else(|| {
                disk::damaged(name, at, "a record with a valid checksum has an unknown change")
            })?;
            if !matches!(change, Change::Note(_)) {
                see(next, change, body_at + (body.len() - parts.0.len()) as u64)?;
                next += 1;
            }
        }
        Ok(())
    })?;
    let synced = replayed.synced;
    Ok(Replayed { end: replayed.end, next, synced, vouches: record::is_vouched(synced) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::simulated::Simulated;

    /// Counting would go beyond the last sequence number.
    #[test]
    fn a_header_whose_numbers_would_run_out_is_refused() {
        let name = Name::log(7);
        for (first, is_taken) in
            [(0, false), (1, true), (FIRST_MAX, true), (FIRST_MAX + 1, false), (u64::MAX, false)]
        {
            let bytes = record::header(name, record::LOG, [0, 0, first, 1], None).to_vec();
            let disk = Sealed::plain(Simulated::from_files([(name, bytes)]));
            let file = disk::open(&disk, name).expect("it is there");
            assert_eq!(head(&disk, &file, 7).is_ok(), is_taken, "{first}");
        }
    }
}

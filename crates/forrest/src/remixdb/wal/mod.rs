//! The write-ahead log: what makes a change survive, in three degrees.
//!
//! Changes are queued in the order that the store gives them ([`Log::queue`], under the store's lock, without I/O). Who
//! wants more than that commits: the first to come writes all that is queued as one record, and those who come while
//! it does find theirs written ([`Log::commit`]). The same again for a sync. No lock is held across a sync but the one
//! that only those take who want a sync themselves; so a thread that syncs slows nobody who does not.
//!
//! A store has one log for each memtable. Each says where the one before ends; and before a log is synced, all
//! before it are. So what a log states to be synced vouches for them too.
//!
//! If a write or a sync fails, nobody knows what the device has. The log is then *stopped*: it takes nothing more, and
//! whoever waits for it gets an error. It never tries again, because after a failed sync the system may report success
//! for what it has thrown away.

pub(crate) mod format;

pub(crate) use format::Change;

use crate::error::{Error, ErrorKind, Result};
use crate::options::Durability;
use crate::remixdb::codec::Parts;
use crate::remixdb::disk::{self, Disk, Name, Write};
use crate::remixdb::frame;
use crate::remixdb::planted::Bug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Queued bytes that are written though nobody waits for them.
const QUEUE_BYTES: usize = 256 << 10;

/// The logs of an open store: one that is written to, and those before it that are not synced yet.
pub(crate) struct Log<D: Disk> {
    disk: Arc<D>,
    queue: Mutex<Queue>,
    /// Held while writing.
    writing: Mutex<Writing<D>>,
    /// Held while syncing.
    syncing: Mutex<()>,
    /// What a sync has to cover, in order; the last one is written to.
    files: Mutex<Vec<Arc<Open<D>>>>,
    /// The sequence number up to which changes are written, or synced.
    written: AtomicU64,
    synced: AtomicU64,
    /// Why nothing is taken any more.
    stopped: OnceLock<String>,
}

/// Changes that are not written yet: the beginning of a record.
struct Queue {
    bytes: Vec<u8>,
    /// A buffer to go on with while that one is being written.
    spare: Vec<u8>,
    /// Where the record will stand.
    offset: u64,
    /// The sequence number of the last change.
    last: u64,
    /// Up to where the log has stated that it is synced.
    stated: u64,
    file: Arc<dyn Synced>,
}

struct Writing<D: Disk> {
    open: Arc<Open<D>>,
    write: Write,
}

/// A log file.
struct Open<D: Disk> {
    name: Name,
    file: D::File,
    /// Bytes written, and bytes known to be synced.
    written: AtomicU64,
    synced: AtomicU64,
}

/// How far a file is synced, whatever disk it is on.
trait Synced: Send + Sync {
    fn synced(&self) -> u64;
}

impl<D: Disk> Synced for Open<D> {
    fn synced(&self) -> u64 {
        self.synced.load(Ordering::Relaxed)
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a log file that is ready for records: header and name are durable.
fn create<D: Disk>(disk: &D, number: u64, head: Head) -> Result<Open<D>> {
    let name = Name::log(number);
    let file = disk::create(disk, name)?;
    let Head { before, synced, first, is_first } = head;
    let header =
        frame::header(name, [before.number, before.offset, first, synced << 1 | u64::from(is_first)]);
    let sync = !Bug::LogHeaderNotSynced.is_planted();
    let mut write = Write { bytes: header.to_vec(), sync, ..Write::default() };
    // DURABILITY: no record is written behind a header that may be lost, and none to a file whose name may be.
    disk::write_all(disk, &file, name, &mut write)?;
    if !Bug::LogNameNotSynced.is_planted() {
        disk::sync_directory(disk)?;
    }
    let header = frame::HEADER as u64;
    Ok(Open { name, file, written: AtomicU64::new(header), synced: AtomicU64::new(header) })
}

impl<D: Disk> Log<D> {
    /// A new log file. All logs before it are synced.
    pub(crate) fn create(disk: &Arc<D>, number: u64, head: Head) -> Result<Log<D>> {
        let open = Arc::new(create(&**disk, number, head)?);
        let last = head.first - 1;
        let queue = Queue {
            bytes: Vec::new(),
            spare: Vec::new(),
            offset: frame::HEADER as u64,
            last,
            stated: 0,
            file: open.clone(),
        };
        Ok(Log {
            disk: disk.clone(),
            queue: Mutex::new(queue),
            writing: Mutex::new(Writing { open: open.clone(), write: Write::default() }),
            syncing: Mutex::new(()),
            files: Mutex::new(vec![open]),
            written: AtomicU64::new(last),
            synced: AtomicU64::new(last),
            stopped: OnceLock::new(),
        })
    }

    /// An error if the log takes nothing any more.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        match self.stopped.get() {
            None => Ok(()),
            Some(why) => Err(Error::new(
                ErrorKind::Stopped,
                format!("an earlier failure ({why}); the store takes no writes until it is opened again"),
            )),
        }
    }

    /// Stops the log for an error that leaves open what the device has.
    pub(crate) fn stop(&self, error: Error) -> Error {
        // If it is stopped already, the first failure is the one to be told.
        let _ = self.stopped.set(error.to_string());
        error
    }

    /// Queues changes that `put` appends, `count` of them. The caller keeps all others out meanwhile.
    #[inline]
    pub(crate) fn queue(&self, count: u64, put: impl FnOnce(&mut Vec<u8>)) {
        let mut queue = lock(&self.queue);
        let Queue { bytes, offset, stated, file, .. } = &mut *queue;
        if bytes.is_empty() {
            let synced = if Bug::SyncedOverstated.is_planted() { *offset } else { file.synced() };
            let is_stated = synced > *stated && !Bug::SyncedNotStated.is_planted();
            frame::begin(bytes, *offset, is_stated.then_some(synced));
            *stated = synced;
        }
        put(bytes);
        queue.last += count;
    }

    /// Returns when the changes up to sequence number `last` are as durable as asked.
    pub(crate) fn commit(&self, last: u64, durability: Durability) -> Result<()> {
        match durability {
            Durability::Memory => {
                if lock(&self.queue).bytes.len() < QUEUE_BYTES {
                    return Ok(());
                }
                self.write(last)
            }
            Durability::Buffered => self.write(last),
            Durability::Sync => {
                self.write(last)?;
                self.sync(last)
            }
        }
    }

    /// Returns when the changes up to `last` are written, and with them all that are queued.
    fn write(&self, last: u64) -> Result<()> {
        if Bug::WrittenTooEarly.is_planted() && !last.is_multiple_of(5) {
            return Ok(());
        }
        // ORDERING: Acquire pairs with the Release in `write_queue`, for whoever then syncs.
        if self.written.load(Ordering::Acquire) >= last {
            return Ok(());
        }
        let mut writing = lock(&self.writing);
        if self.written.load(Ordering::Acquire) >= last {
            return Ok(());
        }
        self.check()?;
        self.write_queue(&mut writing).map_err(|error| self.stop(error))
    }

    /// Writes what is queued as one record.
    fn write_queue(&self, writing: &mut Writing<D>) -> Result<()> {
        let Writing { open, write } = writing;
        let last = {
            let mut queue = lock(&self.queue);
            if queue.bytes.is_empty() {
                return Ok(());
            }
            let spare = std::mem::take(&mut queue.spare);
            write.bytes = std::mem::replace(&mut queue.bytes, spare);
            (write.offset, write.done) = (queue.offset, 0);
            queue.offset += write.bytes.len() as u64;
            queue.last
        };
        frame::finish(&mut write.bytes, open.name, write.offset);
        disk::write_all(&*self.disk, &open.file, open.name, write)?;
        open.written.store(write.offset + write.bytes.len() as u64, Ordering::Relaxed);
        // ORDERING: Release: who sees the number sees the length of the file, and the file among `files`.
        self.written.store(last, Ordering::Release);
        write.bytes.clear();
        if write.bytes.capacity() <= 4 * QUEUE_BYTES {
            lock(&self.queue).spare = std::mem::take(&mut write.bytes);
        }
        Ok(())
    }

    /// Returns when the changes up to `last`, which are written, are synced.
    fn sync(&self, last: u64) -> Result<()> {
        if self.synced.load(Ordering::Acquire) >= last {
            return Ok(());
        }
        let _syncing = lock(&self.syncing);
        if self.synced.load(Ordering::Acquire) >= last {
            return Ok(());
        }
        self.check()?;
        // In this order: a change that counts as written is in a file that is among `files` by then.
        let written = self.written.load(Ordering::Acquire);
        let files = lock(&self.files).clone();
        for (at, open) in files.iter().enumerate() {
            if Bug::OlderLogNotSynced.is_planted() && at + 1 < files.len() {
                continue;
            }
            let length = open.written.load(Ordering::Relaxed);
            if open.synced() < length {
                // DURABILITY: in the order of the logs, so that no log is durable behind one that is not.
                let done = disk::sync(&*self.disk, &open.file, open.name);
                let done = match done {
                    Err(_) if Bug::SyncFailureIgnored.is_planted() => Ok(()),
                    Err(_) if Bug::SyncTriedAgain.is_planted() => {
                        disk::sync(&*self.disk, &open.file, open.name)
                    }
                    done => done,
                };
                done.map_err(|error| self.stop(error))?;
                open.synced.store(length, Ordering::Relaxed);
            }
        }
        lock(&self.files).drain(..files.len() - 1);
        let early = if Bug::SyncedTooEarly.is_planted() { 2 } else { 0 };
        self.synced.store(written + early, Ordering::Release);
        Ok(())
    }

    /// Goes on in a new file; the caller keeps all who queue out. What was queued goes to the old one.
    pub(crate) fn rotate(&self, number: u64) -> Result<()> {
        let mut writing = lock(&self.writing);
        self.check()?;
        let rotate = |writing: &mut Writing<D>| {
            self.write_queue(writing)?;
            let old = &writing.open;
            let before = End { number: old.name.number, offset: old.written.load(Ordering::Relaxed) };
            let (first, synced) = (lock(&self.queue).last + 1, old.synced());
            let head = Head { before, synced, first, is_first: false };
            let open = Arc::new(create(&*self.disk, number, head)?);
            let mut queue = lock(&self.queue);
            (queue.offset, queue.stated, queue.file) = (frame::HEADER as u64, 0, open.clone());
            lock(&self.files).push(open.clone());
            writing.open = open;
            Ok(())
        };
        rotate(&mut writing).map_err(|error| self.stop(error))
    }

    /// Whether changes wait to be written.
    pub(crate) fn is_queued(&self) -> bool {
        !lock(&self.queue).bytes.is_empty()
    }

    /// The sequence number of the last change that was queued.
    pub(crate) fn last(&self) -> u64 {
        lock(&self.queue).last
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
/// `Corrupt`, `Io`.
pub(crate) fn head<D: Disk>(disk: &D, file: &D::File, number: u64) -> Result<Option<Head>> {
    let name = Name::log(number);
    let Some([before, offset, first, last]) = frame::fields_of(disk, file, name)? else {
        return frame::unused(disk, file, name).map(|()| None);
    };
    let (synced, is_first) = (last >> 1, last & 1 == 1);
    if first == 0 || synced > offset {
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
    let [_, _, mut next, _] = frame::fields_of(disk, file, name)?.unwrap_or_default();
    let replayed = frame::replay(disk, file, name, |at, body| {
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
    Ok(Replayed { end: replayed.end, next, vouches: replayed.synced > frame::HEADER as u64 })
}

//! [`Values`]: the values that tables leave in logs, and the logs that are kept for that.
//!
//! A large value stays in the log where its change was written ([`wrapped`](crate::wrapped)). The manifest names the
//! logs that are kept, each with its length. A version of the store holds their files open; so they can be read as long
//! as anybody has the version, also when their names are removed.
//!
//! A kept log that is missing or cannot be opened fails the reads of its values, and nothing else.
//!
//! What is read is the value that was written, or an error that names the log and the offset: a value has a checksum
//! beside its place in the table, which is made for this place.
//!
//! Not here: which logs are kept (compact/kept.rs), and how their space comes back (collect.rs).

use crate::cached;
use crate::disk::{self, Name, Sealed, SealedFile};
use crate::record::HEADER;
use crate::room;
use crate::see::{See, ToBuffer};
use crate::wal;
use crate::wrapped::{self, Pointer};
use forrest_engine::{Error, ErrorKind, Pieces, Result, Work};
use forrest_machine::origin::Origin;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock, Weak};
use xxhash_rust::xxh3::Xxh3;

/// A log that is kept for values in it.
pub(crate) struct Kept {
    pub(crate) number: u64,
    /// The length of its content in bytes, as the manifest states it.
    pub(crate) bytes: u64,
    /// The bytes of that which the file has: no more is read, however long a value claims to be.
    there: u64,
    /// The file, or why it cannot be read.
    file: Result<SealedFile>,
}

impl Kept {
    pub(crate) fn name(&self) -> Name {
        Name::log(self.number)
    }

    /// The file.
    ///
    /// # Errors
    /// That of its opening.
    pub(crate) fn file(&self) -> Result<&SealedFile> {
        self.file.as_ref().map_err(disk::again)
    }
}

impl Kept {
    /// Reads all of the log, and checks it.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn verify(&self, disk: &Sealed) -> Result<()> {
        let (file, name) = (self.file()?, self.name());
        if wal::head(disk, file, self.number)?.is_none() {
            return Err(disk::damaged(name, 0, "the log has no header, and is kept for values in it"));
        }
        let end = wal::replay(disk, file, self.number, None, |_, _| Ok(()))?.end;
        if end < self.bytes {
            let what = format!("a record is damaged; the log was synced up to offset {}", self.bytes);
            return Err(disk::damaged(name, end, what));
        }
        Ok(())
    }
}

/// The logs that a version has, by their numbers.
pub(crate) type Logs = BTreeMap<u64, Arc<Kept>>;

/// See the head of the file.
pub(crate) struct Values {
    disk: Arc<Sealed>,
    /// The logs that somebody holds.
    open: RwLock<BTreeMap<u64, Weak<Kept>>>,
    /// The process that opened the store.
    origin: Origin,
    reads: Sum,
    passes: Sum,
}

/// How often something was done, and with how many bytes.
#[derive(Default)]
struct Sum {
    count: AtomicU64,
    bytes: AtomicU64,
}

impl Sum {
    // ORDERING: counters that only statistics read.
    fn add(&self, count: u64, bytes: u64) {
        self.count.fetch_add(count, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }

    fn done(&self) -> Work {
        let mut work = Work::default();
        (work.count, work.bytes) = (self.count.load(Relaxed), self.bytes.load(Relaxed));
        work
    }
}

impl Values {
    pub(crate) fn new(disk: &Arc<Sealed>) -> Arc<Values> {
        Arc::new(Values {
            disk: disk.clone(),
            open: RwLock::default(),
            origin: Origin::here(),
            reads: Sum::default(),
            passes: Sum::default(),
        })
    }

    /// Opens a log of `bytes` bytes, unless somebody has it. The values in it can be read as long as the result is
    /// held.
    ///
    /// # Errors
    /// `OutOfSpace` without a descriptor. If the log is missing or cannot be read, the reads of its values fail.
    pub(crate) fn open(&self, number: u64, bytes: u64) -> Result<Arc<Kept>> {
        self.open_file(number, bytes, false)
    }

    /// The same. If all of it `is_written`, the file may be shorter by damage alone.
    fn open_file(&self, number: u64, bytes: u64, is_written: bool) -> Result<Arc<Kept>> {
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = open.get(&number).and_then(Weak::upgrade).filter(|kept| kept.file.is_ok()) {
            return Ok(kept);
        }
        let file = match disk::open_named(&*self.disk, Name::log(number)) {
            Err(error) if error.kind() == ErrorKind::OutOfSpace => return Err(error),
            opened => opened,
        };
        let mut kept = Kept { number, bytes, there: bytes, file };
        if is_written && let Ok(file) = &kept.file {
            match disk::len(&*self.disk, file, kept.name()) {
                Ok(len) => kept.there = len.min(bytes),
                Err(error) => kept.file = Err(error),
            }
        }
        let kept = Arc::new(kept);
        open.retain(|_, kept| kept.strong_count() > 0);
        open.insert(number, Arc::downgrade(&kept));
        Ok(kept)
    }

    /// Opens the logs that a manifest names.
    ///
    /// # Errors
    /// As [`open`](Values::open).
    pub(crate) fn open_all(&self, logs: &BTreeMap<u64, u64>) -> Result<Arc<Logs>> {
        let open = |(&number, &bytes)| Ok((number, self.open_file(number, bytes, true)?));
        Ok(Arc::new(logs.iter().map(open).collect::<Result<_>>()?))
    }

    /// The log that has a value.
    fn log(&self, pointer: &Pointer) -> Result<Arc<Kept>> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        let log = open.get(&pointer.place.log).and_then(Weak::upgrade);
        let log =
            log.ok_or_else(|| damaged(pointer, "the log is not kept, and a table has a value in it"))?;
        if pointer.place.offset.checked_add(pointer.len).is_none_or(|end| end > log.there) {
            let what = format_args!("a value of {} bytes, and the log has {}", pointer.len, log.there);
            return Err(damaged(pointer, what));
        }
        Ok(log)
    }

    /// Reads a value.
    ///
    /// # Errors
    /// As [`see`](Values::see).
    pub(crate) fn read(&self, pointer: &Pointer) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.see(pointer, &mut ToBuffer(&mut bytes))?;
        Ok(bytes)
    }

    /// The same for a pass, whose reads are not counted.
    ///
    /// # Errors
    /// As [`see`](Values::see).
    pub(crate) fn fetch(&self, pointer: &Pointer) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.see_as(pointer, &mut ToBuffer(&mut bytes), false)?;
        Ok(bytes)
    }

    /// Reads a value to where `see` wants it.
    ///
    /// # Errors
    /// `Corrupt`, `Io`; `OutOfSpace` without memory.
    pub(crate) fn see<R, S: See<R>>(&self, pointer: &Pointer, see: S) -> Result<R> {
        self.see_as(pointer, see, true)
    }

    fn see_as<R, S: See<R>>(&self, pointer: &Pointer, see: S, counts: bool) -> Result<R> {
        if !S::READS {
            return see.elsewhere(0, |_| Ok(()));
        }
        cached::check()?;
        let (log, offset, len) = (self.log(pointer)?, pointer.place.offset, pointer.len);
        room::ask()?;
        see.elsewhere(len as usize, |bytes| {
            disk::read_exact(&*self.disk, log.file()?, log.name(), bytes, offset)?;
            if wrapped::sum(pointer.place, bytes) != pointer.sum {
                return Err(wrong(pointer));
            }
            if counts {
                self.reads.add(1, len);
            }
            Ok(())
        })
    }

    /// A value, to be read in pieces.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn pieces(self: &Arc<Self>, pointer: Pointer) -> Result<LogPieces> {
        let log = self.log(&pointer)?;
        let sum = Box::new(wrapped::sum_of_pieces(pointer.place));
        Ok(LogPieces { values: self.clone(), log, pointer, at: 0, sum })
    }

    /// Notes that values were moved, and that passes ended.
    pub(crate) fn note_pass(&self, ended: u64, moved: u64) {
        self.passes.add(ended, moved);
    }

    /// The values that were read since the store was opened, and the passes that ended, with the bytes that they moved.
    pub(crate) fn done(&self) -> (Work, Work) {
        (self.reads.done(), self.passes.done())
    }
}

/// A value in a log that is read in pieces. Its log stays open.
pub(crate) struct LogPieces {
    values: Arc<Values>,
    log: Arc<Kept>,
    pointer: Pointer,
    /// Bytes that were read.
    at: u64,
    /// Their checksum.
    sum: Box<Xxh3>,
}

impl Drop for LogPieces {
    fn drop(&mut self) {
        if !self.values.origin.is_here() {
            // This is a forked process. The file belongs to the parent, which may still read it: its name may go with
            // the last who has it open, and the lock of the store with the disk.
            std::mem::forget((self.values.clone(), self.log.clone()));
        }
    }
}

impl Pieces for LogPieces {
    fn value_bytes(&self) -> u64 {
        self.pointer.len
    }

    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        let left = self.pointer.len - self.at;
        let len = left.min(out.len() as u64) as usize;
        if len == 0 {
            return Ok(0);
        }
        if !self.values.origin.is_here() {
            return Err(disk::forked());
        }
        let (out, offset) = (&mut out[..len], self.pointer.place.offset + self.at);
        disk::read_exact(&*self.values.disk, self.log.file()?, self.log.name(), out, offset)?;
        if len as u64 == left {
            // The state stays as it was if that fails, so that each further call fails too.
            let mut sum = self.sum.clone();
            sum.update(out);
            if sum.digest() != self.pointer.sum {
                out.fill(0);
                return Err(wrong(&self.pointer));
            }
            self.values.reads.add(1, self.pointer.len);
        } else {
            self.sum.update(out);
        }
        self.at += len as u64;
        Ok(len)
    }
}

#[cold]
fn wrong(pointer: &Pointer) -> Error {
    damaged(pointer, format_args!("wrong checksum of a value of {} bytes", pointer.len))
}

#[cold]
fn damaged(pointer: &Pointer, what: impl std::fmt::Display) -> Error {
    disk::damaged(Name::log(pointer.place.log), pointer.place.offset, what)
}

/// What is known of giving back the space of kept logs (compact/collect.rs). Changed by the holder of the manifest.
#[derive(Default)]
pub(crate) struct Collector {
    /// The log that is being gone through.
    pub(crate) current: Option<Pass>,
    /// The logs in which no value counts any more once the changes up to a sequence number are in tables.
    pub(crate) done: BTreeMap<u64, u64>,
    /// The logs that cannot be read.
    pub(crate) skipped: BTreeSet<u64>,
    /// Those that were left because most of them counts, each with the bytes that were live in all logs then.
    pub(crate) poor: BTreeMap<u64, u64>,
    /// Those whose values found no room, until a memtable has become tables.
    pub(crate) without_room: BTreeSet<u64>,
    /// Bytes that may be moved by passes that give back little; `None` until it is asked for.
    pub(crate) credit: Option<u64>,
    /// Bytes that were moved since the last log was kept.
    pub(crate) moved: u64,
    /// How little of what is dead may stay, until there is no more.
    pub(crate) haste: Haste,
    /// A compaction goes through the logs with lower numbers; 0 if there is none.
    pub(crate) asked_below: u64,
    /// Whether a pass that was in haste has ended, and its log waits for the memtable to become tables.
    pub(crate) awaits_flush: bool,
}

/// Why passes begin earlier than usual, beside a compaction.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Haste {
    #[default]
    None,
    /// Values have expired.
    Expired,
}

/// How far a log has been gone through.
pub(crate) struct Pass {
    pub(crate) log: u64,
    /// The end of the last record that was read.
    pub(crate) offset: u64,
    /// Bytes of the log that were moved.
    pub(crate) moved: u64,
    /// Whether nothing is moved, and it is only found out how much counts.
    pub(crate) is_trial: bool,
    /// Bytes of the log that count, if so.
    pub(crate) live: u64,
}

impl Pass {
    /// A pass that begins.
    pub(crate) fn of(log: u64, is_trial: bool) -> Pass {
        Pass { log, offset: HEADER as u64, moved: 0, is_trial, live: 0 }
    }
}

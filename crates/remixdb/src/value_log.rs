//! [`ValueLog`]: a log that has the large values of an [ingest](crate::ingest), and nothing else.
//!
//! Values that are set stay in the log where their changes were written. An ingest has no log, so it writes its large
//! values to logs of its own, in records of changes as every log has them. The store keeps them with the manifest's
//! record that adds the tables, and from then on they are as other logs that are kept for values
//! ([`values`](crate::values)): what gives back their space reads those changes.
//!
//! **No recovery reads them as changes.** Recovery begins with the log of the greatest number, and follows what each
//! log states about the one before it. So the numbers of these logs are taken before that of a log of the store, which
//! is begun and durable before the first of them is made; no log names them. What a crash leaves of them is removed as
//! any log that was given up.
//!
//! A log ends when it has about as many bytes as a memtable, because space comes back by whole logs.
//!
//! Memory: one record, which has at least one value.

use crate::core::Core;
use crate::disk::{self, Disk, Name, Sealed, SealedFile, Write};
use crate::record::{self, HEADER};
use crate::values::Kept;
use crate::wal::{self, Change};
use crate::wrapped::{Entry, Place, Pointer, Wrapped};
use forrest_base::lock;
use forrest_engine::Result;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Numbers that are taken at once. Each time, the memtable becomes tables, however little it has.
const NUMBERS: u64 = if cfg!(test) { 4 } else { 64 };

/// About how many bytes a record has, unless one value has more.
const RECORD: usize = if cfg!(test) { 512 } else { 1 << 20 };

/// See the head of the file.
pub(crate) struct ValueLog {
    disk: Arc<Sealed>,
    name: Name,
    file: SealedFile,
    /// The record that is being made, and its offset.
    record: Vec<u8>,
    offset: u64,
}

impl Core {
    /// Numbers for logs of values, which are noted as those of files of an ingest. A log of the store with a greater
    /// number is durable.
    ///
    /// # Errors
    /// `OutOfSpace`, `Io`, `Stopped`: none is noted then.
    pub(crate) fn numbers_of_value_logs(&self) -> Result<Range<u64>> {
        // ORDERING: as `next_number`.
        let first = self.numbers.fetch_add(NUMBERS, Ordering::Relaxed);
        let numbers = first..first + NUMBERS;
        lock(&self.ingested).extend(numbers.clone());
        let begun = self.begin_log_after(numbers.end);
        if begun.is_err() {
            lock(&self.ingested).retain(|number| !numbers.contains(number));
        }
        begun.map(|()| numbers)
    }

    /// Goes on in a log with at least this number.
    fn begin_log_after(&self, number: u64) -> Result<()> {
        let mut order = self.order();
        while !self.log().is_begun() || self.log().newest() < number {
            // A file that was made ahead has a lower number.
            self.log().remove_spare();
            self.freeze(&mut order)?;
        }
        drop(order);
        // DURABILITY: if a power cut took the header of that log, a log of values might be the one with the greatest
        // number.
        self.log().sync_begin()
    }
}

impl ValueLog {
    /// Begins a log.
    ///
    /// # Errors
    /// `Io`, `OutOfSpace`. The file may be there.
    pub(crate) fn begin(store: &Core, number: u64) -> Result<ValueLog> {
        let (disk, name) = (&store.shared.disk, Name::log(number));
        let file = disk::create(&**disk, name)?;
        let mut log = ValueLog { disk: disk.clone(), name, file, record: Vec::new(), offset: 0 };
        log.record.extend_from_slice(&wal::header_of_values(name));
        log.write(store, false)?;
        debug_assert_eq!(log.offset, HEADER as u64);
        Ok(log)
    }

    /// Adds the value of a key; where it is.
    ///
    /// # Errors
    /// `Io`, `OutOfSpace`. The log is of no use then.
    pub(crate) fn add(
        &mut self,
        store: &Core,
        space: u32,
        key: &[u8],
        value: Wrapped<'_>,
    ) -> Result<Pointer> {
        if self.record.len() >= RECORD {
            self.end_record(store, false)?;
        }
        if self.record.is_empty() {
            // Nothing is synced before all is.
            record::begin(&mut self.record, self.offset, Some(0), self.disk.is_sealed());
        }
        match value.expires_ms {
            None => Change::Put { space, key, value: value.content }.put(&mut self.record),
            Some(_) => {
                Change::of_entry(space, key, Entry::Wrapped(&value.encode())).put(&mut self.record);
            }
        }
        // It is the end of its change.
        let offset = self.bytes() - value.content.len() as u64;
        Ok(Pointer::to(Place { log: self.name.number, offset }, value.content))
    }

    /// The length of the log so far, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.offset + self.record.len() as u64
    }

    fn end_record(&mut self, store: &Core, sync: bool) -> Result<()> {
        record::finish(&mut self.record, self.name, self.offset, self.disk.cipher(&self.file));
        self.write(store, sync)
    }

    fn write(&mut self, store: &Core, sync: bool) -> Result<()> {
        let bytes = std::mem::take(&mut self.record);
        store.tasks.count(bytes.len());
        let mut write = Write { offset: self.offset, bytes, done: 0, sync };
        disk::write_all(&*self.disk, &self.file, self.name, &mut write)?;
        self.offset += write.bytes.len() as u64;
        self.record = write.bytes;
        self.record.clear();
        Ok(())
    }

    /// Completes the log, whose content is durable then, and opens it. Its name is durable when its directory was
    /// synced.
    ///
    /// # Errors
    /// `Io`, `OutOfSpace`.
    pub(crate) fn finish(mut self, store: &Core) -> Result<Arc<Kept>> {
        // DURABILITY: no manifest names a log of which values may be lost.
        self.end_record(store, true)?;
        let log = store.shared.values.open(self.name.number, self.offset)?;
        log.file()?;
        Ok(log)
    }
}

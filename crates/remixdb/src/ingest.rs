//! [`Ingest`]: sorted pairs become tables outside of the store, which are then added to it at one instant.
//!
//! There is no log and no memtable: each pair is written once. Values that would stay in the log if they were set go to
//! [logs of values](crate::value_log), so that no merge writes them again. Nobody sees the tables before
//! [`finish`](Ingest::finish), which states all of them, and the logs, in one record of the manifest. A crash before
//! that leaves files that nothing names, which are removed when the store is opened, as those of a compaction.
//!
//! Memory is that of one table and one record of values that are being written, and of the open tables.

use crate::catalog::Space;
use crate::compact::Ingested;
use crate::core::Handle;
use crate::disk::{self, Name, Sealed};
use crate::gauge::Share;
use crate::memtable::VALUE_MAX;
use crate::partition::LOOK;
use crate::rate::Spend;
use crate::table::{Builder, Table, TableEntry};
use crate::value_log::ValueLog;
use crate::values::Logs;
use crate::wrapped::{HEADER_MOST, Pointer, Wrapped};
use crate::write::check_value;
use forrest_base::lock;
use forrest_engine::merge::{self, SharedOperator};
use forrest_engine::{Compression, Error, Expires, Op, Result};
use std::ops::Range;
use std::sync::Arc;

/// Pairs of a keyspace that are being ingested.
pub(crate) struct Ingest {
    store: Handle,
    space: Arc<Space>,
    writing: Option<Writing>,
    tables: Vec<Arc<Table>>,
    /// The log of values that is being written, and those that are complete.
    values: Option<ValueLog>,
    logs: Logs,
    /// The numbers of the next ones.
    next_logs: Range<u64>,
    /// The files that were begun.
    files: Vec<Name>,
    pairs: u64,
    /// Bytes of their keys and values.
    bytes: u64,
    /// The last key.
    last: Vec<u8>,
    /// The merge operator that the keyspace had at the beginning. It checks the values.
    operator: Option<SharedOperator>,
    has_failed: bool,
}

/// A table that is being written.
struct Writing {
    builder: Builder<'static, Arc<Sealed>>,
    /// It ends before this key, where a partition begins.
    end: Option<Vec<u8>>,
    /// Values with as many bytes and more go to logs.
    large: usize,
    /// What the builder counts for.
    share: Share,
}

/// Counts what is written to tables. It waits for nothing: the program that ingests decides how fast it goes.
struct Counts(Handle);

impl Spend for Counts {
    fn spend(&self, bytes: usize) -> Result<()> {
        self.0.tasks.count(bytes);
        Ok(())
    }
}

impl Ingest {
    /// Begins an ingest into a keyspace.
    pub(crate) fn begin(store: &Handle, space: &Arc<Space>) -> Result<Ingest> {
        store.check_ingest(space)?;
        Ok(Ingest {
            store: store.clone(),
            space: space.clone(),
            writing: None,
            tables: Vec::new(),
            values: None,
            logs: Logs::new(),
            next_logs: 0..0,
            files: Vec::new(),
            pairs: 0,
            bytes: 0,
            last: Vec::new(),
            operator: space.operator().cloned(),
            has_failed: false,
        })
    }

    fn check(&self) -> Result<()> {
        self.store.check_here()?;
        match self.has_failed {
            true => Err(Error::invalid("an earlier pair of this ingest has failed; begin another one")),
            false => Ok(()),
        }
    }

    /// Notes a failure after which the ingest is of no use.
    fn note<R>(&mut self, done: Result<R>) -> Result<R> {
        if done.is_err() {
            self.remove();
        }
        done
    }

    fn write(&mut self, key: &[u8], wrapped: Wrapped<'_>) -> Result<()> {
        let most = self.store.limits.table_bytes();
        let is_whole = |writing: &Writing| {
            writing.builder.bytes() >= most || writing.end.as_deref().is_some_and(|end| key >= end)
        };
        if self.writing.as_ref().is_some_and(is_whole) {
            self.complete()?;
        }
        let writing = match &mut self.writing {
            Some(writing) => writing,
            None => {
                let writing = self.next_table(key)?;
                self.writing.insert(writing)
            }
        };
        if self.pairs.is_multiple_of(u64::from(LOOK)) {
            writing.share.set(writing.builder.memory_bytes());
        }
        if wrapped.content.len() >= writing.large {
            let pointer = self.write_value(key, wrapped)?.encode(wrapped.expires_ms);
            let writing = self.writing.as_mut().expect("it was begun");
            return writing.builder.add(key, TableEntry::Wrapped(&pointer));
        }
        match wrapped.expires_ms {
            None => writing.builder.add(key, TableEntry::Value(wrapped.content)),
            Some(_) => writing.builder.add(key, TableEntry::Wrapped(&wrapped.encode())),
        }
    }

    /// Writes a value to a log.
    fn write_value(&mut self, key: &[u8], value: Wrapped<'_>) -> Result<Pointer> {
        let (store, space) = (&self.store, self.space.id);
        let most = store.limits.memtable_bytes() as u64;
        let values = match &mut self.values {
            Some(values) => values,
            None => {
                if self.next_logs.is_empty() {
                    self.next_logs = store.numbers_of_value_logs()?;
                }
                let number = self.next_logs.next().expect("some were taken");
                self.files.push(Name::log(number));
                self.values.insert(ValueLog::begin(store, number)?)
            }
        };
        let pointer = values.add(store, space, key, value)?;
        if values.bytes() >= most {
            self.complete_log()?;
        }
        Ok(pointer)
    }

    /// Completes the log of values that is being written.
    fn complete_log(&mut self) -> Result<()> {
        if let Some(values) = self.values.take() {
            let log = values.finish(&self.store)?;
            self.logs.insert(log.number, log);
        }
        Ok(())
    }

    /// Begins a table whose first key this is.
    fn next_table(&mut self, key: &[u8]) -> Result<Writing> {
        let store = &self.store;
        store.check_ingest(&self.space)?;
        let number = store.next_number();
        // Before the file is there, so that nobody removes it.
        lock(&store.ingested).insert(number);
        self.files.push(Name::table(number));
        let builder = Builder::new(store.shared.disk.clone(), Name::table(number))?;
        let version = store.version();
        let compression = store.catalog().compression(self.space.id);
        // As for values that are set (compact/kept.rs).
        let is_plain = compression == Compression::None && !version.operated.has(self.space.id);
        let partitions = version.partitions(self.space.id);
        let next = partitions.partition_point(|partition| *partition.low <= *key);
        Ok(Writing {
            builder: builder.at_rate(Counts(store.clone())).tagged(store.builder.tags).packed(compression)?,
            large: if is_plain { store.large_values } else { usize::MAX },
            end: partitions.get(next).map(|next| next.low.clone()),
            share: store.shared.cache.indexes().take(0),
        })
    }

    fn complete(&mut self) -> Result<()> {
        let Some(writing) = self.writing.take() else { return Ok(()) };
        let built = writing.builder.finish()?;
        self.tables.push(Arc::new(self.store.open_table(built.number)?));
        Ok(())
    }

    /// Removes the files.
    fn remove(&mut self) {
        self.has_failed = true;
        self.writing = None;
        self.tables.clear();
        (self.values, self.logs) = (None, Logs::new());
        for &name in &self.files {
            let _ = disk::unlink(self.store.disk(), name);
        }
        self.forget();
    }

    /// Leaves the files to the store.
    fn forget(&mut self) {
        let mut ingested = lock(&self.store.ingested);
        let files = self.files.drain(..).map(|name| name.number);
        files.chain(std::mem::take(&mut self.next_logs)).for_each(|number| {
            ingested.remove(&number);
        });
    }
}

impl forrest_engine::Ingest for Ingest {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.check()?;
        check_value(&Op::Set { key, value })?;
        if let Some(operator) = &self.operator {
            merge::check_stored(&**operator, value)?;
        }
        if self.pairs > 0 && *key <= *self.last {
            return Err(forrest_engine::ingest::out_of_order(&self.last, key));
        }
        let expires_in = |ttl_ms| Expires::In(ttl_ms).at_ms(|| self.store.newest().now_ms());
        let expires_ms = self.space.ttl_ms().map(expires_in);
        if expires_ms.is_some() && value.len() > VALUE_MAX - HEADER_MOST {
            return Err(Error::limit("value", "bytes", value.len(), VALUE_MAX - HEADER_MOST));
        }
        let written = self.write(key, Wrapped { expires_ms, content: value });
        self.note(written)?;
        self.pairs += 1;
        self.bytes += (key.len() + value.len()) as u64;
        self.last.clear();
        self.last.extend_from_slice(key);
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<u64> {
        self.check()?;
        let completed = self.complete().and_then(|()| self.complete_log());
        self.note(completed)?;
        let mut is_named = false;
        let ingested = Ingested {
            tables: &self.tables,
            logs: self.logs.clone(),
            operator: self.operator.as_ref(),
            pairs: self.pairs,
            bytes: self.bytes,
        };
        let added = self.store.add_tables(&self.space, ingested, &mut is_named);
        if is_named {
            self.forget();
        }
        added.map(|()| self.pairs)
    }
}

impl Drop for Ingest {
    fn drop(&mut self) {
        // In a forked process the files are the parent's.
        if self.store.check_here().is_ok() {
            self.remove();
        } else {
            // Dropping them takes locks, which another thread of the parent may have held.
            std::mem::forget((self.writing.take(), std::mem::take(&mut self.tables)));
            std::mem::forget((self.values.take(), std::mem::take(&mut self.logs)));
        }
    }
}

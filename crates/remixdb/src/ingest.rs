//! [`Ingest`]: sorted pairs become tables outside of the store, which are then added to it at one instant.
//!
//! There is no log and no memtable: each pair is written once. Nobody sees the tables before
//! [`finish`](Ingest::finish), which states all of them in one record of the manifest. A crash before that leaves files
//! that nothing names, which are removed when the store is opened, as those of a compaction.
//!
//! Memory is that of one table that is being written, and of the open tables.

use crate::catalog::Space;
use crate::core::Handle;
use crate::disk::{self, Disk, Name};
use crate::gauge::Share;
use crate::memtable::VALUE_MAX;
use crate::partition::LOOK;
use crate::table::{Builder, Table, TableEntry};
use crate::wrapped::{HEADER_MOST, Wrapped};
use crate::write::check_value;
use forrest_base::lock;
use forrest_engine::{Error, Expires, Op, Result, merge};
use std::sync::Arc;

/// Pairs of a keyspace that are being ingested.
pub(crate) struct Ingest<D: Disk> {
    store: Handle<D>,
    space: Arc<Space>,
    writing: Option<Writing<D>>,
    tables: Vec<Arc<Table<D>>>,
    /// The files that were begun.
    numbers: Vec<u64>,
    pairs: u64,
    /// The last key.
    last: Vec<u8>,
    has_failed: bool,
}

/// A table that is being written.
struct Writing<D: Disk> {
    builder: Builder<'static, Arc<D>>,
    /// It ends before this key, where a partition begins.
    end: Option<Vec<u8>>,
    /// What the builder counts for.
    share: Share,
}

impl<D: Disk> Ingest<D> {
    /// Begins an ingest into a keyspace.
    pub(crate) fn begin(store: &Handle<D>, space: &Arc<Space>) -> Result<Ingest<D>> {
        store.check_ingest(space)?;
        Ok(Ingest {
            store: store.clone(),
            space: space.clone(),
            writing: None,
            tables: Vec::new(),
            numbers: Vec::new(),
            pairs: 0,
            last: Vec::new(),
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

    fn write(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let most = self.store.limits.table_bytes();
        let is_whole = |writing: &Writing<D>| {
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
        let Some(ttl_ms) = self.space.ttl_ms() else {
            return writing.builder.add(key, TableEntry::Value(value));
        };
        let expires_ms = Some(Expires::In(ttl_ms).at_ms(|| self.store.newest().now_ms()));
        let wrapped = Wrapped { expires_ms, content: value }.encode();
        if wrapped.len() > VALUE_MAX {
            return Err(Error::limit("value", "bytes", value.len(), VALUE_MAX - HEADER_MOST));
        }
        writing.builder.add(key, TableEntry::Wrapped(&wrapped))
    }

    /// Begins a table whose first key this is.
    fn next_table(&mut self, key: &[u8]) -> Result<Writing<D>> {
        let store = &self.store;
        store.check_ingest(&self.space)?;
        let number = store.next_number();
        // Before the file is there, so that nobody removes it.
        lock(&store.ingested).insert(number);
        self.numbers.push(number);
        let builder = Builder::new(store.shared.disk.clone(), Name::table(number))?;
        let version = store.version();
        let partitions = version.partitions(self.space.id);
        let next = partitions.partition_point(|partition| *partition.low <= *key);
        Ok(Writing {
            builder: builder.tagged(store.builder.tags).packed(store.catalog().compression(self.space.id))?,
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
        for &number in &self.numbers {
            let _ = disk::unlink(self.store.disk(), Name::table(number));
        }
        self.forget();
    }

    /// Leaves the files to the store.
    fn forget(&mut self) {
        let mut ingested = lock(&self.store.ingested);
        self.numbers.drain(..).for_each(|number| {
            ingested.remove(&number);
        });
    }
}

impl<D: Disk> forrest_engine::Ingest for Ingest<D> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.check()?;
        check_value(&Op::Set { key, value })?;
        if let Some(operator) = self.space.operator() {
            merge::check_stored(&**operator, value)?;
        }
        if self.pairs > 0 && *key <= *self.last {
            return Err(forrest_engine::ingest::out_of_order(&self.last, key));
        }
        let written = self.write(key, value);
        self.note(written)?;
        self.pairs += 1;
        self.last.clear();
        self.last.extend_from_slice(key);
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<u64> {
        self.check()?;
        let completed = self.complete();
        self.note(completed)?;
        let mut is_named = false;
        let added = self.store.add_tables(&self.space, &self.tables, &mut is_named);
        if is_named {
            self.forget();
        }
        added.map(|()| self.pairs)
    }
}

impl<D: Disk> Drop for Ingest<D> {
    fn drop(&mut self) {
        // In a forked process the files are the parent's.
        if self.store.check_here().is_ok() {
            self.remove();
        } else {
            // Dropping them takes locks, which another thread of the parent may have held.
            std::mem::forget((self.writing.take(), std::mem::take(&mut self.tables)));
        }
    }
}

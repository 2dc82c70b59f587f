//! RocksDB: levels, compression if it is asked for, memtables and block cache by the budget, Bloom filters of 10 bits,
//! as many background jobs as there are CPUs; otherwise as it comes.

use super::pairs::Key;
use super::store::{
    Amount, Answer, MEMTABLES, Pressed, Reader, SEPARATED_BYTES, Settings, Store, Transact, Way, amount,
};
use crate::job::{Compression, Durability};
use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, DBRawIterator, ErrorKind, IngestExternalFileOptions,
    OptimisticTransactionDB, OptimisticTransactionOptions, Options, Snapshot, SstFileWriter,
    WaitForCompactOptions, WriteBatch, WriteOptions, properties,
};
use std::path::Path;

/// Bits of Bloom filter for each key.
const FILTER_BITS: f64 = 10.0;
/// Size of an ingested file, in bytes: that of its own tables.
const INGESTED_BYTES: u64 = 64 << 20;

/// The column family that there always is.
const FAMILY: &str = "default";

/// Each change is in the log, and the operating system has it, before a call returns; in the memory's class there is no
/// log, in that of power it is synced.
pub(crate) struct Rocks {
    db: DB,
    options: Options,
    written: WriteOptions,
    synced: WriteOptions,
}

/// How the store is set up, and how it writes: with the durability of the settings, and synced.
fn options(settings: &Settings<'_>) -> (Options, [WriteOptions; 2]) {
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(&Cache::new_lru_cache(settings.cache_bytes));
    blocks.set_bloom_filter(FILTER_BITS, false);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_compression_type(match settings.compression {
        Compression::None => DBCompressionType::None,
        Compression::Lz4 => DBCompressionType::Lz4,
    });
    options.set_block_based_table_factory(&blocks);
    options.set_write_buffer_size(settings.memtable_bytes);
    options.set_max_write_buffer_number(MEMTABLES as i32);
    options.increase_parallelism(crate::affinity::cpus().len() as i32);
    if settings.separates {
        options.set_enable_blob_files(true);
        options.set_min_blob_size(SEPARATED_BYTES.into());
        options.set_enable_blob_gc(true);
    }
    let (mut written, mut synced) = (WriteOptions::default(), WriteOptions::default());
    written.disable_wal(settings.durability == Durability::Memory);
    written.set_sync(settings.durability == Durability::Power);
    synced.set_sync(true);
    (options, [written, synced])
}

impl Store for Rocks {
    const OFFERS: &'static [Durability] = &[Durability::Memory, Durability::Process, Durability::Power];
    const COMPRESSES: bool = true;
    type Reader<'s> = Handle<'s>;

    fn open(settings: &Settings<'_>) -> Answer<Self> {
        let (options, [written, synced]) = options(settings);
        // By its name, so that there is a handle for gets of many.
        let families = [(FAMILY, options.clone())];
        let db = DB::open_cf_with_opts(&options, settings.directory.join("store"), families)?;
        Ok(Rocks { db, options, written, synced })
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Answer<()> {
        Ok(self.db.put_opt(key, value, &self.written)?)
    }

    fn put_batch<'p>(&self, pairs: impl Iterator<Item = (&'p [u8], &'p [u8])>) -> Answer<()> {
        let mut batch = WriteBatch::default();
        pairs.for_each(|(key, value)| batch.put(key, value));
        Ok(self.db.write_opt(batch, &self.written)?)
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Answer<()> {
        Ok(self.db.put_opt(key, value, &self.synced)?)
    }

    fn reader(&self) -> Answer<Handle<'_>> {
        Ok(Handle { db: &self.db, iterator: None })
    }

    fn scan_all(&self, way: Way, mut see: impl FnMut(&[u8], &[u8])) -> Answer<()> {
        let mut iterator = self.db.raw_iterator();
        match way {
            Way::Forward => iterator.seek_to_first(),
            Way::Backward => iterator.seek_to_last(),
        }
        while let Some((key, value)) = iterator.item() {
            see(key, value);
            match way {
                Way::Forward => iterator.next(),
                Way::Backward => iterator.prev(),
            }
        }
        Ok(iterator.status()?)
    }

    fn hand_over(&self) -> Answer<()> {
        // The operating system has all of it already; this waits for merges, and flushes nothing.
        Ok(self.db.wait_for_compact(&WaitForCompactOptions::default())?)
    }

    fn is_busy(&self) -> bool {
        [properties::NUM_RUNNING_COMPACTIONS, properties::NUM_RUNNING_FLUSHES, properties::COMPACTION_PENDING]
            .into_iter()
            .any(|property| self.db.property_int_value(property).is_ok_and(|value| value > Some(0)))
    }

    fn compact(&mut self) -> Answer<bool> {
        self.db.flush()?;
        self.db.compact_range(None::<&[u8]>, None::<&[u8]>);
        Ok(true)
    }
}

/// The same, with optimistic transactions.
pub(crate) struct Optimistic {
    db: OptimisticTransactionDB,
    written: WriteOptions,
}

impl Transact for Optimistic {
    fn open(settings: &Settings<'_>) -> Answer<Self> {
        let (options, [written, _]) = options(settings);
        let db = OptimisticTransactionDB::open(&options, settings.directory.join("store"))?;
        Ok(Optimistic { db, written })
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Answer<()> {
        Ok(self.db.put_opt(key, value, &self.written)?)
    }

    fn transfer(&self, keys: [&[u8]; 2], change: impl Fn([Amount; 2]) -> [Amount; 2]) -> Answer<bool> {
        let transaction = self.db.transaction_opt(&self.written, &OptimisticTransactionOptions::default());
        // The commit checks what was read for an update.
        let read = |key| amount(transaction.get_for_update(key, true)?);
        let old = [read(keys[0])?, read(keys[1])?];
        for (key, new) in keys.iter().zip(change(old)) {
            transaction.put(key, new.to_le_bytes())?;
        }
        match transaction.commit() {
            Ok(()) => Ok(true),
            Err(error) if matches!(error.kind(), ErrorKind::Busy | ErrorKind::TryAgain) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn amounts(&self, keys: &[Key]) -> Answer<Vec<Amount>> {
        let snapshot = self.db.snapshot();
        keys.iter().map(|key| amount(snapshot.get(key)?)).collect()
    }
}

impl Pressed for Rocks {
    type Transactions = Optimistic;
    type Snapshot<'s> = Snapshot<'s>;

    fn delete(&self, key: &[u8]) -> Answer<()> {
        Ok(self.db.delete_opt(key, &self.written)?)
    }

    fn delete_range(&self, start: &[u8], end: &[u8]) -> Answer<()> {
        let mut batch = WriteBatch::default();
        batch.delete_range(start, end);
        Ok(self.db.write_opt(batch, &self.written)?)
    }

    fn ingest<'p>(&self, directory: &Path, pairs: impl Iterator<Item = (&'p [u8], &'p [u8])>) -> Answer<()> {
        let mut pairs = pairs.peekable();
        let mut paths = Vec::new();
        while pairs.peek().is_some() {
            let path = directory.join(format!("{}.sst", paths.len()));
            let mut file = SstFileWriter::create(&self.options);
            file.open(&path)?;
            while let Some((key, value)) = pairs.next_if(|_| file.file_size() < INGESTED_BYTES) {
                file.put(key, value)?;
            }
            file.finish()?;
            paths.push(path);
        }
        let mut options = IngestExternalFileOptions::default();
        options.set_move_files(true);
        Ok(self.db.ingest_external_file_opts(&options, paths)?)
    }

    fn snapshot(&self) -> Answer<Snapshot<'_>> {
        Ok(self.db.snapshot())
    }

    fn pop(&self, see: impl FnOnce(&[u8])) -> Answer<bool> {
        let mut iterator = self.db.raw_iterator();
        iterator.seek_to_first();
        let Some(key) = iterator.key() else {
            iterator.status()?;
            return Ok(false);
        };
        see(key);
        self.delete(key)?;
        Ok(true)
    }
}

/// The store, and an iterator once something was sought.
pub(crate) struct Handle<'s> {
    db: &'s DB,
    iterator: Option<DBRawIterator<'s>>,
}

impl Reader for Handle<'_> {
    fn get(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Answer<bool> {
        let value = self.db.get_pinned(key)?;
        Ok(value.map(|value| see(&value)).is_some())
    }

    fn many(&mut self, keys: &[impl AsRef<[u8]>], mut see: impl FnMut(&[u8])) -> Answer<()> {
        let family = self.db.cf_handle(FAMILY).ok_or("there is no column family")?;
        // It shows values in place, and the call without "batched" copies each twice.
        for value in self.db.batched_multi_get_cf(family, keys, false) {
            value?.as_deref().map(&mut see);
        }
        Ok(())
    }

    fn seek(&mut self, key: &[u8], see: impl FnOnce(&[u8], &[u8])) -> Answer<()> {
        let iterator = self.iterator.get_or_insert_with(|| self.db.raw_iterator());
        iterator.seek(key);
        match iterator.item() {
            Some((key, value)) => see(key, value),
            None => iterator.status()?,
        }
        Ok(())
    }

    fn scan(&mut self, key: &[u8], pairs: usize, mut see: impl FnMut(&[u8], &[u8])) -> Answer<()> {
        let iterator = self.iterator.get_or_insert_with(|| self.db.raw_iterator());
        iterator.seek(key);
        for _ in 0..pairs {
            let Some((key, value)) = iterator.item() else { break };
            see(key, value);
            iterator.next();
        }
        Ok(iterator.status()?)
    }
}

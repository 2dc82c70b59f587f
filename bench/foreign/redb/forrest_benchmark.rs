//! redb's own benchmark with Forrest beside the other engines.
//!
//! Arguments are the engines, in their order: forrest, redb, lmdb, fjall, rocksdb, sqlite. Each is opened as redb's
//! comparison opens it.
//!
//! What differs from redb: a batch of Forrest has no reads, so `pop`, `retain` and `extract_if` read the store and
//! delete by the batch. As the adapter for RocksDB there, a transaction of more than 100,000 changes is written in
//! pieces.

mod common;

use common::*;
use forrest::{Cursor, Db, Durability, Entry, Range, Snapshot, WriteBatch, WriteOptions};
use redb_bench::*;
use std::fs;
use std::ops::Bound;
use std::path::Path;

const OPS_MAX: usize = 100_000;

struct Forrest(Db);

impl BenchDatabase for Forrest {
    type C<'db> = Connection;

    fn db_type_name() -> &'static str {
        "forrest"
    }

    fn connect(&self) -> Connection {
        Connection { db: self.0.clone(), sync: true }
    }

    fn compact(&mut self) -> bool {
        self.0.compact().expect("a compaction");
        true
    }
}

struct Connection {
    db: Db,
    sync: bool,
}

impl BenchDatabaseConnection for Connection {
    type W<'db> = Changes;
    type R<'db> = Reads;

    fn set_sync(&mut self, sync: bool) -> bool {
        self.sync = sync;
        true
    }

    fn write_transaction(&self) -> Changes {
        let durability = if self.sync { Durability::Sync } else { Durability::Buffered };
        Changes { db: self.db.clone(), durability, batch: WriteBatch::new() }
    }

    fn read_transaction(&self) -> Reads {
        Reads(self.db.snapshot().expect("a snapshot"))
    }
}

struct Reads(Snapshot);

impl BenchReadTransaction for Reads {
    type T<'txn> = Reader<'txn>;

    fn get_reader(&self) -> Reader<'_> {
        Reader(&self.0)
    }
}

struct Reader<'s>(&'s Snapshot);

impl BenchReader for Reader<'_> {
    type Output<'out>
        = forrest::Value
    where
        Self: 'out;
    type Iterator<'out>
        = Pairs
    where
        Self: 'out;

    fn get<'a>(&'a mut self, key: &[u8]) -> Option<forrest::Value> {
        self.0.get(key).expect("a read")
    }

    fn range_from<'a>(&'a mut self, key: &'a [u8]) -> Pairs {
        Pairs { range: self.0.range(key..), entry: None }
    }

    fn len(&mut self) -> u64 {
        self.0.count(..).expect("a count")
    }
}

struct Pairs {
    range: Range,
    entry: Option<Entry>,
}

impl BenchIterator for Pairs {
    type Output<'out> = &'out [u8];

    fn next(&mut self) -> Option<(&[u8], &[u8])> {
        self.entry = self.range.next().map(|entry| entry.expect("a pair"));
        let entry = self.entry.as_ref()?;
        Some((entry.key(), entry.value_bytes().expect("a value")))
    }
}

/// The changes of a transaction that are not written yet.
struct Changes {
    db: Db,
    durability: Durability,
    batch: WriteBatch,
}

impl Changes {
    fn write(&mut self, durability: Durability) -> Result<(), forrest::Error> {
        let options = WriteOptions::new().durability(durability);
        self.db.write_with(&self.batch, &options)?;
        self.batch.clear();
        Ok(())
    }

    fn bound(&mut self) -> Result<(), forrest::Error> {
        if self.batch.len() < OPS_MAX { Ok(()) } else { self.write(Durability::Buffered) }
    }
}

impl BenchWriteTransaction for Changes {
    type W<'txn> = Inserter<'txn>;

    fn get_inserter(&mut self) -> Inserter<'_> {
        Inserter { changes: self, ends: None }
    }

    fn commit(mut self) -> Result<(), ()> {
        self.write(self.durability).map_err(|_| ())
    }
}

struct Inserter<'t> {
    changes: &'t mut Changes,
    /// The pairs that are popped next from either end.
    ends: Option<[Cursor; 2]>,
}

impl Inserter<'_> {
    /// Pops a pair from the first (0) or the last (1) end. The pair stays in the store until the batch is written, so
    /// the store is empty once the ends have passed each other.
    fn pop(&mut self, end: usize) -> Result<Option<(Vec<u8>, Vec<u8>)>, forrest::Error> {
        if self.ends.is_none() {
            self.changes.write(Durability::Buffered)?;
            let mut ends = [self.changes.db.cursor(), self.changes.db.cursor()];
            ends[0].first()?;
            ends[1].last()?;
            self.ends = Some(ends);
        }
        let Some([first, last]) = &mut self.ends else { return Ok(None) };
        let (Some(least), Some(most)) = (first.key(), last.key()) else { return Ok(None) };
        if least > most {
            return Ok(None);
        }
        let cursor = if end == 0 { first } else { last };
        let Some((key, value)) = cursor.key().zip(cursor.value()?) else { return Ok(None) };
        let pair = (key.to_vec(), value.to_vec());
        if end == 0 { cursor.next()? } else { cursor.prev()? };
        self.changes.batch.delete(&pair.0);
        self.changes.bound()?;
        Ok(Some(pair))
    }

    /// Writes what is pending, so that reads of the store see it.
    fn settle(&mut self) -> Result<(), forrest::Error> {
        self.ends = None;
        self.changes.write(Durability::Buffered)
    }
}

impl BenchInserter for Inserter<'_> {
    type Output<'out>
        = Vec<u8>
    where
        Self: 'out;
    type ExtractIfIterator<'out, F>
        = VecBenchIterator<Vec<u8>>
    where
        Self: 'out,
        F: for<'f> FnMut(&'f [u8], &'f [u8]) -> bool + 'out;

    fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<(), ()> {
        self.ends = None;
        self.changes.batch.set(key, value);
        self.changes.bound().map_err(|_| ())
    }

    fn remove(&mut self, key: &[u8]) -> Result<(), ()> {
        self.changes.batch.delete(key);
        self.changes.bound().map_err(|_| ())
    }

    fn pop_first(&mut self) -> BenchPopResult<'_, Self> {
        self.pop(0).map_err(|_| ())
    }

    fn pop_last(&mut self) -> BenchPopResult<'_, Self> {
        self.pop(1).map_err(|_| ())
    }

    fn retain<F: FnMut(&[u8], &[u8]) -> bool>(&mut self, mut predicate: F) -> Result<u64, ()> {
        self.settle().map_err(|_| ())?;
        let mut count = 0;
        for entry in self.changes.db.range(..) {
            let entry = entry.map_err(|_| ())?;
            if !predicate(entry.key(), entry.value_bytes().map_err(|_| ())?) {
                self.remove(entry.key())?;
                count += 1;
            }
        }
        Ok(count)
    }

    fn extract_if<'a, F>(
        &'a mut self,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        mut predicate: F,
    ) -> BenchExtractIfResult<'a, Self, F>
    where
        F: for<'f> FnMut(&'f [u8], &'f [u8]) -> bool + 'a,
    {
        self.settle().map_err(|_| ())?;
        let mut pairs = Vec::new();
        for entry in self.changes.db.range(range) {
            let entry = entry.map_err(|_| ())?;
            let value = entry.value_bytes().map_err(|_| ())?;
            if predicate(entry.key(), value) {
                pairs.push((entry.key().to_vec(), value.to_vec()));
            }
        }
        for (key, _) in &pairs {
            self.remove(key)?;
        }
        Ok(VecBenchIterator::new(pairs))
    }
}

/// Runs one engine in an empty directory.
fn run(engine: &str, path: &Path) -> Vec<(String, ResultType)> {
    match engine {
        "forrest" => {
            let url = path.to_str().expect("a path in UTF-8");
            let db = Db::builder().cache_bytes(CACHE_SIZE).open(url).expect("a store");
            benchmark(Forrest(db), path)
        }
        "redb" => {
            let file = path.join("redb");
            let mut db =
                redb::Database::builder().set_cache_size(CACHE_SIZE).create(&file).expect("a store");
            benchmark(RedbBenchDatabase::new(&mut db), path)
        }
        "lmdb" => {
            // SAFETY: nobody else opens the new directory.
            let env = unsafe { heed::EnvOpenOptions::new().map_size(CACHE_SIZE).open(path) };
            benchmark(HeedBenchDatabase::new(env.expect("a store")), path)
        }
        "fjall" => {
            let builder = fjall::SingleWriterTxDatabase::builder(path);
            let mut db = builder.cache_size(CACHE_SIZE as u64).open().expect("a store");
            benchmark(FjallBenchDatabase::new(&mut db), path)
        }
        "rocksdb" => {
            let cache = rocksdb::Cache::new_lru_cache(CACHE_SIZE);
            let half = CACHE_SIZE / 2;
            let buffers =
                rocksdb::WriteBufferManager::new_write_buffer_manager_with_cache(half, false, cache.clone());
            let mut blocks = rocksdb::BlockBasedOptions::default();
            blocks.set_block_cache(&cache);
            blocks.set_bloom_filter(10.0, false);
            blocks.set_cache_index_and_filter_blocks(true);
            blocks.set_pin_l0_filter_and_index_blocks_in_cache(false);
            blocks.set_pin_top_level_index_and_filter(false);
            let mut options = rocksdb::Options::default();
            options.set_block_based_table_factory(&blocks);
            options.set_write_buffer_manager(&buffers);
            options.set_max_write_buffer_size_to_maintain(half as i64);
            options.create_if_missing(true);
            options.increase_parallelism(std::thread::available_parallelism().map_or(1, |n| n.get()) as i32);
            let db = rocksdb::OptimisticTransactionDB::open(&options, path).expect("a store");
            benchmark(RocksdbBenchDatabase::new(&db), path)
        }
        "sqlite" => benchmark(SqliteBenchDatabase::new(&path.join("sqlite")), path),
        other => panic!("{other} is no engine: forrest, redb, lmdb, fjall, rocksdb, sqlite"),
    }
}

fn main() {
    let _ = env_logger::try_init();
    let engines: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let mut results = Vec::new();
    for engine in &engines {
        let directory = tempfile::tempdir_in(benchmark_dir()).expect("a directory");
        results.push((engine.as_str(), run(engine, directory.path())));
        let path = directory.path().to_owned();
        drop(directory);
        assert!(!fs::exists(path).expect("a look"), "it is not removed");
    }
    print_results_table(&results);
}

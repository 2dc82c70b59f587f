//! fjall: compression of data blocks if it is asked for, memtable and cache by the budget, otherwise as it comes.

use super::pairs::Key;
use super::store::{
    Amount, Answer, Pressed, Reader, SEPARATED_BYTES, Settings, Store, Transact, Way, amount,
};
use crate::job::{Compression, Durability};
use fjall::config::CompressionPolicy;
use fjall::{
    CompressionType, Database, Guard, Keyspace, KeyspaceCreateOptions, KvSeparationOptions,
    OptimisticTxDatabase, OptimisticTxKeyspace, PersistMode, Readable, Snapshot,
};
use std::path::Path;

/// Each change is in the journal, and the operating system has it, before a call returns; in the memory's class the
/// journal is in the process, in that of power it is synced.
pub(crate) struct Fjall {
    db: Database,
    pairs: Keyspace,
    synced: bool,
}

impl Fjall {
    fn end_write(&self, synced: bool) -> Answer<()> {
        if synced {
            self.db.persist(PersistMode::SyncData)?;
        }
        Ok(())
    }
}

fn show(pair: Guard, mut see: impl FnMut(&[u8], &[u8])) -> Answer<()> {
    let (key, value) = pair.into_inner()?;
    see(&key, &value);
    Ok(())
}

/// How the pairs are kept.
fn options(settings: &Settings<'_>) -> KeyspaceCreateOptions {
    let separation = KvSeparationOptions::default().separation_threshold(SEPARATED_BYTES);
    KeyspaceCreateOptions::default()
        .max_memtable_size(settings.memtable_bytes as u64)
        .data_block_compression_policy(match settings.compression {
            Compression::None => CompressionPolicy::disabled(),
            Compression::Lz4 => CompressionPolicy::all(CompressionType::Lz4),
        })
        .index_block_compression_policy(CompressionPolicy::disabled())
        .with_kv_separation(settings.separates.then_some(separation))
}

impl Store for Fjall {
    const OFFERS: &'static [Durability] = &[Durability::Memory, Durability::Process, Durability::Power];
    const COMPRESSES: bool = true;
    type Reader<'s> = &'s Keyspace;

    fn open(settings: &Settings<'_>) -> Answer<Self> {
        let db = Database::builder(settings.directory.join("store"))
            .cache_size(settings.cache_bytes as u64)
            .journal_compression(CompressionType::None)
            .manual_journal_persist(settings.durability == Durability::Memory)
            .open()?;
        let pairs = db.keyspace("pairs", || options(settings))?;
        Ok(Fjall { db, pairs, synced: settings.durability == Durability::Power })
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Answer<()> {
        self.pairs.insert(key, value)?;
        self.end_write(self.synced)
    }

    fn put_batch<'p>(&self, pairs: impl Iterator<Item = (&'p [u8], &'p [u8])>) -> Answer<()> {
        let mut batch = self.db.batch();
        pairs.for_each(|(key, value)| batch.insert(&self.pairs, key, value));
        batch.commit()?;
        self.end_write(self.synced)
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Answer<()> {
        self.pairs.insert(key, value)?;
        self.end_write(true)
    }

    fn reader(&self) -> Answer<&Keyspace> {
        Ok(&self.pairs)
    }

    fn scan_all(&self, way: Way, mut see: impl FnMut(&[u8], &[u8])) -> Answer<()> {
        match way {
            Way::Forward => self.pairs.iter().try_for_each(|pair| show(pair, &mut see)),
            Way::Backward => self.pairs.iter().rev().try_for_each(|pair| show(pair, &mut see)),
        }
    }

    fn is_busy(&self) -> bool {
        self.db.outstanding_flushes() > 0 || self.db.active_compactions() > 0
    }

    fn compact(&mut self) -> Answer<bool> {
        self.pairs.rotate_memtable_and_wait()?;
        self.pairs.major_compact()?;
        Ok(true)
    }
}

/// The same, with optimistic transactions.
pub(crate) struct Optimistic {
    db: OptimisticTxDatabase,
    pairs: OptimisticTxKeyspace,
    mode: Option<PersistMode>,
}

impl Transact for Optimistic {
    fn open(settings: &Settings<'_>) -> Answer<Self> {
        let db = OptimisticTxDatabase::builder(settings.directory.join("store"))
            .cache_size(settings.cache_bytes as u64)
            .journal_compression(CompressionType::None)
            .manual_journal_persist(settings.durability == Durability::Memory)
            .open()?;
        let pairs = db.keyspace("pairs", || options(settings))?;
        let mode = match settings.durability {
            Durability::Memory => None,
            Durability::Process => Some(PersistMode::Buffer),
            Durability::Power => Some(PersistMode::SyncData),
        };
        Ok(Optimistic { db, pairs, mode })
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Answer<()> {
        Ok(self.pairs.insert(key, value)?)
    }

    fn transfer(&self, keys: [&[u8]; 2], change: impl Fn([Amount; 2]) -> [Amount; 2]) -> Answer<bool> {
        let mut transaction = self.db.write_tx()?.durability(self.mode);
        let old = [
            amount(transaction.get(&self.pairs, keys[0])?)?,
            amount(transaction.get(&self.pairs, keys[1])?)?,
        ];
        for (key, new) in keys.iter().zip(change(old)) {
            transaction.insert(&self.pairs, *key, new.to_le_bytes());
        }
        Ok(transaction.commit()?.is_ok())
    }

    fn amounts(&self, keys: &[Key]) -> Answer<Vec<Amount>> {
        let snapshot = self.db.read_tx();
        keys.iter().map(|key| amount(snapshot.get(&self.pairs, key)?)).collect()
    }
}

impl Pressed for Fjall {
    type Transactions = Optimistic;
    type Snapshot<'s> = Snapshot;

    fn delete(&self, key: &[u8]) -> Answer<()> {
        self.pairs.remove(key)?;
        self.end_write(self.synced)
    }

    fn delete_range(&self, start: &[u8], end: &[u8]) -> Answer<()> {
        // It has no such call: the keys of one state are removed one by one.
        for pair in self.pairs.range(start..end) {
            self.pairs.remove(pair.key()?)?;
        }
        self.end_write(self.synced)
    }

    fn ingest<'p>(&self, _: &Path, pairs: impl Iterator<Item = (&'p [u8], &'p [u8])>) -> Answer<()> {
        let mut ingestion = self.pairs.start_ingestion()?;
        for (key, value) in pairs {
            ingestion.write(key, value)?;
        }
        Ok(ingestion.finish()?)
    }

    fn snapshot(&self) -> Answer<Snapshot> {
        Ok(self.db.snapshot())
    }

    fn pop(&self, see: impl FnOnce(&[u8])) -> Answer<bool> {
        let Some(first) = self.pairs.first_key_value() else { return Ok(false) };
        let key = first.key()?;
        see(&key);
        self.delete(&key)?;
        Ok(true)
    }
}

impl Reader for &Keyspace {
    fn get(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Answer<bool> {
        let value = Keyspace::get(self, key)?;
        Ok(value.map(|value| see(&value)).is_some())
    }

    fn seek(&mut self, key: &[u8], see: impl FnOnce(&[u8], &[u8])) -> Answer<()> {
        if let Some(pair) = self.range(key..).next() {
            let (key, value) = pair.into_inner()?;
            see(&key, &value);
        }
        Ok(())
    }

    fn scan(&mut self, key: &[u8], pairs: usize, mut see: impl FnMut(&[u8], &[u8])) -> Answer<()> {
        self.range(key..).take(pairs).try_for_each(|pair| show(pair, &mut see))
    }
}

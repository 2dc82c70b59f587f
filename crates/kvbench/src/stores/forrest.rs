//! This project's engine on disk, through its public API.

use super::pairs::Key;
use super::store::{
    Amount, Answer, Fault, Pressed, Reader, SEPARATED_BYTES, Settings, Store, Transact, Way, amount,
};
use crate::job::{Compression as Asked, Durability as Class};
use forrest::{Committed, Compression, Cursor, Db, Durability, Snapshot, WriteBatch, WriteOptions};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

/// A store with the durability of the settings, encrypted or not.
pub(crate) struct Forrest<const IS_ENCRYPTED: bool = false>(Db);

impl<const IS_ENCRYPTED: bool> Store for Forrest<IS_ENCRYPTED> {
    const OFFERS: &'static [Class] = &[Class::Memory, Class::Process, Class::Power];
    const COMPRESSES: bool = true;
    // It makes a table of its memtable after two seconds without a write.
    const REST: Duration = Duration::from_millis(2500);
    type Reader<'s> = Handle<'s>;

    fn open(settings: &Settings<'_>) -> Answer<Self> {
        let path = settings.directory.join("store");
        // The indexes of tables are within the budget too.
        let builder = Db::builder().memory_bytes(settings.budget_bytes());
        #[cfg(feature = "encryption")]
        let builder = match IS_ENCRYPTED {
            true => builder.encryption_key(forrest::EncryptionKey::from_bytes([0x5e; 32])),
            false => builder,
        };
        let db = builder
            .durability(match settings.durability {
                Class::Memory => Durability::Memory,
                Class::Process => Durability::Buffered,
                Class::Power => Durability::Sync,
            })
            .memtable_bytes(settings.memtable_bytes)
            .cache_bytes(settings.cache_bytes)
            .large_values(if settings.separates { SEPARATED_BYTES as usize } else { 0 })
            .compression(match settings.compression {
                Asked::None => Compression::None,
                Asked::Lz4 => Compression::Lz4,
            })
            .open(path.to_str().ok_or("the path is no text")?)?;
        Ok(Forrest(db))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Answer<()> {
        Ok(self.0.set(key, value)?)
    }

    fn put_batch<'p>(&self, pairs: impl Iterator<Item = (&'p [u8], &'p [u8])>) -> Answer<()> {
        let mut batch = WriteBatch::new();
        for (key, value) in pairs {
            batch.set(key, value);
        }
        self.0.write(&batch)?;
        Ok(())
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Answer<()> {
        let mut batch = WriteBatch::new();
        batch.set(key, value);
        self.0.write_with(&batch, &WriteOptions::new().durability(Durability::Sync))?;
        Ok(())
    }

    fn reader(&self) -> Answer<Handle<'_>> {
        Ok(Handle { db: &self.0, cursor: None, value: Vec::new() })
    }

    fn scan_all(&self, way: Way, mut see: impl FnMut(&[u8], &[u8])) -> Answer<()> {
        let show = |key: &[u8], value: &[u8]| {
            see(key, value);
            ControlFlow::Continue(())
        };
        match way {
            Way::Forward => self.0.scan(.., show)?,
            Way::Backward => self.0.scan_back(.., show)?,
        }
        Ok(())
    }

    fn block_reads(&self) -> Option<u64> {
        Some(self.0.metrics().ok()?.cache_misses)
    }

    fn compact(&mut self) -> Answer<bool> {
        self.0.compact().map_err(Fault::from)?;
        Ok(true)
    }
}

impl Transact for Forrest {
    fn open(settings: &Settings<'_>) -> Answer<Self> {
        Store::open(settings)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Answer<()> {
        Store::put(self, key, value)
    }

    fn transfer(&self, keys: [&[u8]; 2], change: impl Fn([Amount; 2]) -> [Amount; 2]) -> Answer<bool> {
        let mut transaction = self.0.transaction();
        let old = [amount(transaction.get(keys[0])?)?, amount(transaction.get(keys[1])?)?];
        for (key, new) in keys.iter().zip(change(old)) {
            transaction.set(key, new.to_le_bytes())?;
        }
        Ok(matches!(transaction.commit()?, Committed::Done))
    }

    fn amounts(&self, keys: &[Key]) -> Answer<Vec<Amount>> {
        let snapshot = self.0.snapshot()?;
        keys.iter().map(|key| amount(snapshot.get(key)?)).collect()
    }
}

impl Pressed for Forrest {
    type Transactions = Self;
    type Snapshot<'s> = Snapshot;

    fn delete(&self, key: &[u8]) -> Answer<()> {
        self.0.delete(key)?;
        Ok(())
    }

    fn delete_range(&self, start: &[u8], end: &[u8]) -> Answer<()> {
        Ok(self.0.delete_range(start..end)?)
    }

    fn ingest<'p>(&self, _: &Path, pairs: impl Iterator<Item = (&'p [u8], &'p [u8])>) -> Answer<()> {
        let mut ingest = self.0.ingest()?;
        for (key, value) in pairs {
            ingest.put(key, value)?;
        }
        ingest.finish()?;
        Ok(())
    }

    fn snapshot(&self) -> Answer<Snapshot> {
        Ok(self.0.snapshot()?)
    }

    fn pop(&self, see: impl FnOnce(&[u8])) -> Answer<bool> {
        let Some(first) = self.0.first()? else { return Ok(false) };
        see(first.key());
        self.delete(first.key())?;
        Ok(true)
    }
}

/// What a user would keep at hand: a buffer for values, and a cursor once something was sought.
pub(crate) struct Handle<'s> {
    db: &'s Db,
    cursor: Option<Cursor>,
    value: Vec<u8>,
}

impl Reader for Handle<'_> {
    fn get(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Answer<bool> {
        let found = self.db.get_into(key, &mut self.value)?;
        if found {
            see(&self.value);
        }
        Ok(found)
    }

    fn many(&mut self, keys: &[impl AsRef<[u8]>], see: impl FnMut(&[u8])) -> Answer<()> {
        self.db.multi_get(keys)?.iter().flatten().map(|value| &value[..]).for_each(see);
        Ok(())
    }

    fn seek(&mut self, key: &[u8], see: impl FnOnce(&[u8], &[u8])) -> Answer<()> {
        let cursor = self.cursor.get_or_insert_with(|| self.db.cursor());
        if cursor.seek(key)?
            && let (Some(key), Some(value)) = (cursor.key(), cursor.value()?)
        {
            see(key, &value);
        }
        Ok(())
    }

    fn scan(&mut self, key: &[u8], pairs: usize, mut see: impl FnMut(&[u8], &[u8])) -> Answer<()> {
        let mut left = pairs;
        self.db.scan(key.., |key, value| {
            see(key, value);
            left -= 1;
            if left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok(())
    }
}

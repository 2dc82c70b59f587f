//! LMDB, through heed: a transaction for each write, given to the operating system. In the class of power each commit
//! syncs by itself; in that of the process only synced writes sync, after their commit.

use super::pairs::Key;
use super::store::{Amount, Answer, Pressed, Reader, Settings, Store, Transact, Way, amount};
use crate::job::Durability;
use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, RoTxn, WithTls};
use std::ops::Bound;
use std::path::Path;

/// Address space for the map. It is not memory: the system keeps of it what it has room for.
const MAP_BYTES: usize = 64 << 30;

/// An environment with one database, its unnamed one.
pub(crate) struct Lmdb {
    env: &'static Env<WithTls>,
    pairs: Database<'static, Bytes, Bytes>,
    /// Whether commits sync.
    syncs: bool,
}

impl Store for Lmdb {
    const OFFERS: &'static [Durability] = &[Durability::Process, Durability::Power];
    type Reader<'s> = View<'s>;

    #[expect(unsafe_code, reason = "LMDB maps its file")]
    fn open(settings: &Settings<'_>) -> Answer<Self> {
        let mut options = EnvOpenOptions::new();
        options.map_size(MAP_BYTES);
        let syncs = settings.durability == Durability::Power;
        let flags = if syncs { EnvFlags::empty() } else { EnvFlags::NO_SYNC };
        // SAFETY: without syncs a crash of the system may damage the file, but no run opens the file of an earlier one.
        let options = unsafe { options.flags(flags) };
        // SAFETY: only this process uses the directory, so no other process changes the mapped file.
        let env = unsafe { options.open(settings.directory)? };
        // The database borrows it, and both last as long as the arm's process.
        let env: &'static Env<WithTls> = Box::leak(Box::new(env));
        let opened = env.create_databases_and_commit(env.write_txn()?, |databases, transaction| {
            databases.create_database(transaction, None).map(CommitOrAbort::<_, ()>::Commit)
        })?;
        Ok(Lmdb { env, pairs: opened.commit().ok_or("the database was not made")?, syncs })
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Answer<()> {
        self.put_batch(std::iter::once((key, value)))
    }

    fn put_batch<'p>(&self, mut pairs: impl Iterator<Item = (&'p [u8], &'p [u8])>) -> Answer<()> {
        let mut transaction = self.env.write_txn()?;
        pairs.try_for_each(|(key, value)| self.pairs.put(&mut transaction, key, value))?;
        Ok(transaction.commit()?)
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Answer<()> {
        Store::put(self, key, value)?;
        if !self.syncs {
            self.env.force_sync()?;
        }
        Ok(())
    }

    fn reader(&self) -> Answer<View<'_>> {
        Ok(View { transaction: self.env.read_txn()?, pairs: &self.pairs })
    }

    fn scan_all(&self, way: Way, mut see: impl FnMut(&[u8], &[u8])) -> Answer<()> {
        let transaction = self.env.read_txn()?;
        let mut show = |pair: heed::Result<(&[u8], &[u8])>| -> Answer<()> {
            let (key, value) = pair?;
            see(key, value);
            Ok(())
        };
        match way {
            Way::Forward => self.pairs.iter(&transaction)?.try_for_each(&mut show),
            Way::Backward => self.pairs.rev_iter(&transaction)?.try_for_each(&mut show),
        }
    }

    fn compact(&mut self) -> Answer<bool> {
        // It only offers a smaller copy.
        Ok(false)
    }
}

impl Transact for Lmdb {
    fn open(settings: &Settings<'_>) -> Answer<Self> {
        Store::open(settings)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Answer<()> {
        Store::put(self, key, value)
    }

    fn transfer(&self, keys: [&[u8]; 2], change: impl Fn([Amount; 2]) -> [Amount; 2]) -> Answer<bool> {
        // One at a time, so none is in the way of another.
        let mut transaction = self.env.write_txn()?;
        let read = |key| amount(self.pairs.get(&transaction, key)?);
        let old = [read(keys[0])?, read(keys[1])?];
        for (key, new) in keys.iter().zip(change(old)) {
            self.pairs.put(&mut transaction, key, &new.to_le_bytes())?;
        }
        transaction.commit()?;
        Ok(true)
    }

    fn amounts(&self, keys: &[Key]) -> Answer<Vec<Amount>> {
        let transaction = self.env.read_txn()?;
        keys.iter().map(|key| amount(self.pairs.get(&transaction, key)?)).collect()
    }
}

impl Pressed for Lmdb {
    type Transactions = Self;
    type Snapshot<'s> = RoTxn<'s, WithTls>;

    fn delete(&self, key: &[u8]) -> Answer<()> {
        let mut transaction = self.env.write_txn()?;
        self.pairs.delete(&mut transaction, key)?;
        Ok(transaction.commit()?)
    }

    fn delete_range(&self, start: &[u8], end: &[u8]) -> Answer<()> {
        let mut transaction = self.env.write_txn()?;
        let range = (Bound::Included(start), Bound::Excluded(end));
        self.pairs.delete_range(&mut transaction, &range)?;
        Ok(transaction.commit()?)
    }

    fn ingest<'p>(&self, _: &Path, pairs: impl Iterator<Item = (&'p [u8], &'p [u8])>) -> Answer<()> {
        // Appending wants keys above all that there are, which these are not.
        self.put_batch(pairs)
    }

    fn snapshot(&self) -> Answer<RoTxn<'_, WithTls>> {
        Ok(self.env.read_txn()?)
    }

    fn pop(&self, see: impl FnOnce(&[u8])) -> Answer<bool> {
        let mut transaction = self.env.write_txn()?;
        let Some((key, _)) = self.pairs.first(&transaction)? else { return Ok(false) };
        see(key);
        let key = key.to_owned();
        self.pairs.delete(&mut transaction, &key)?;
        transaction.commit()?;
        Ok(true)
    }
}

/// One read transaction.
pub(crate) struct View<'s> {
    transaction: RoTxn<'s, WithTls>,
    pairs: &'s Database<'static, Bytes, Bytes>,
}

impl Reader for View<'_> {
    fn get(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Answer<bool> {
        Ok(self.pairs.get(&self.transaction, key)?.map(see).is_some())
    }

    fn seek(&mut self, key: &[u8], see: impl FnOnce(&[u8], &[u8])) -> Answer<()> {
        if let Some((key, value)) = self.pairs.get_greater_than_or_equal_to(&self.transaction, key)? {
            see(key, value);
        }
        Ok(())
    }

    fn scan(&mut self, key: &[u8], pairs: usize, mut see: impl FnMut(&[u8], &[u8])) -> Answer<()> {
        let range = (Bound::Included(key), Bound::Unbounded);
        for pair in self.pairs.range(&self.transaction, &range)?.take(pairs) {
            let (key, value) = pair?;
            see(key, value);
        }
        Ok(())
    }
}

//! redb: a transaction for each write; its cache is the budget.
//!
//! What a transaction wrote that is not synced is in the memory of the process until one is. redb offers nothing
//! between that and a sync.

use super::pairs::Key;
use super::store::{Amount, Answer, Fault, Pressed, Reader, Settings, Store, Transact, Way, amount};
use crate::job::Durability as Class;
use redb::{Database, Durability, ReadOnlyTable, ReadableDatabase, ReadableTable, Table, TableDefinition};
use std::path::Path;

const PAIRS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("pairs");

/// A database with one table.
pub(crate) struct Redb {
    db: Database,
    durability: Durability,
}

impl Redb {
    /// Does something with the table in a transaction of its own. There is one at a time.
    fn change<T>(
        &self,
        durability: Durability,
        change: impl FnOnce(&mut Table<'_, &'static [u8], &'static [u8]>) -> Answer<T>,
    ) -> Answer<T> {
        let mut transaction = self.db.begin_write()?;
        transaction.set_durability(durability)?;
        let done = change(&mut transaction.open_table(PAIRS)?)?;
        transaction.commit()?;
        Ok(done)
    }

    fn write<'p>(
        &self,
        durability: Durability,
        mut pairs: impl Iterator<Item = (&'p [u8], &'p [u8])>,
    ) -> Answer<()> {
        self.change(durability, |table| {
            Ok(pairs.try_for_each(|(key, value)| table.insert(key, value).map(drop))?)
        })
    }
}

impl Store for Redb {
    const OFFERS: &'static [Class] = &[Class::Memory, Class::Power];
    type Reader<'s> = View;

    fn open(settings: &Settings<'_>) -> Answer<Self> {
        let path = settings.directory.join("store");
        let durability = match settings.durability {
            Class::Power => Durability::Immediate,
            _ => Durability::None,
        };
        let db = Database::builder().set_cache_size(settings.budget_bytes()).create(path)?;
        let store = Redb { db, durability };
        // Makes the table, so that readers find it.
        store.write(Durability::Immediate, std::iter::empty())?;
        Ok(store)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Answer<()> {
        self.write(self.durability, std::iter::once((key, value)))
    }

    fn put_batch<'p>(&self, pairs: impl Iterator<Item = (&'p [u8], &'p [u8])>) -> Answer<()> {
        self.write(self.durability, pairs)
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Answer<()> {
        self.write(Durability::Immediate, std::iter::once((key, value)))
    }

    fn reader(&self) -> Answer<View> {
        Ok(View(self.db.begin_read()?.open_table(PAIRS)?))
    }

    fn scan_all(&self, way: Way, mut see: impl FnMut(&[u8], &[u8])) -> Answer<()> {
        let table = self.reader()?.0;
        let mut show = |pair: Pair<'_>| -> Answer<()> {
            let (key, value) = pair?;
            see(key.value(), value.value());
            Ok(())
        };
        match way {
            Way::Forward => table.iter()?.try_for_each(&mut show),
            Way::Backward => table.iter()?.rev().try_for_each(&mut show),
        }
    }

    fn hand_over(&self) -> Answer<()> {
        match self.durability {
            Durability::Immediate => Ok(()),
            _ => self.write(Durability::Immediate, std::iter::empty()),
        }
    }

    fn compact(&mut self) -> Answer<bool> {
        self.db.compact().map_err(Fault::from)?;
        Ok(true)
    }
}

impl Transact for Redb {
    fn open(settings: &Settings<'_>) -> Answer<Self> {
        Store::open(settings)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Answer<()> {
        Store::put(self, key, value)
    }

    fn transfer(&self, keys: [&[u8]; 2], change: impl Fn([Amount; 2]) -> [Amount; 2]) -> Answer<bool> {
        // One at a time, so none is in the way of another.
        self.change(self.durability, |table| {
            let read = |key| amount(table.get(key)?.map(|value| value.value().to_owned()));
            let old = [read(keys[0])?, read(keys[1])?];
            for (key, new) in keys.iter().zip(change(old)) {
                table.insert(*key, &new.to_le_bytes()[..])?;
            }
            Ok(true)
        })
    }

    fn amounts(&self, keys: &[Key]) -> Answer<Vec<Amount>> {
        let View(table) = self.reader()?;
        keys.iter().map(|key| amount(table.get(&key[..])?.map(|value| value.value().to_owned()))).collect()
    }
}

impl Pressed for Redb {
    type Transactions = Self;
    type Snapshot<'s> = View;

    fn delete(&self, key: &[u8]) -> Answer<()> {
        self.change(self.durability, |table| Ok(table.remove(key).map(drop)?))
    }

    fn delete_range(&self, start: &[u8], end: &[u8]) -> Answer<()> {
        self.change(self.durability, |table| Ok(table.retain_in(start..end, |_, _| false)?))
    }

    fn ingest<'p>(&self, _: &Path, pairs: impl Iterator<Item = (&'p [u8], &'p [u8])>) -> Answer<()> {
        // It has no such call.
        self.put_batch(pairs)
    }

    fn snapshot(&self) -> Answer<View> {
        self.reader()
    }

    fn pop(&self, see: impl FnOnce(&[u8])) -> Answer<bool> {
        self.change(self.durability, |table| {
            let first = table.pop_first()?;
            Ok(first.map(|(key, _)| see(key.value())).is_some())
        })
    }
}

/// A pair as an iteration shows it.
type Pair<'a> =
    Result<(redb::AccessGuard<'a, &'static [u8]>, redb::AccessGuard<'a, &'static [u8]>), redb::StorageError>;

/// The table in one read transaction.
pub(crate) struct View(ReadOnlyTable<&'static [u8], &'static [u8]>);

impl Reader for View {
    fn get(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Answer<bool> {
        let value = self.0.get(key)?;
        Ok(value.map(|value| see(value.value())).is_some())
    }

    fn seek(&mut self, key: &[u8], see: impl FnOnce(&[u8], &[u8])) -> Answer<()> {
        if let Some(pair) = ReadableTable::range(&self.0, key..)?.next() {
            let (key, value) = pair?;
            see(key.value(), value.value());
        }
        Ok(())
    }

    fn scan(&mut self, key: &[u8], pairs: usize, mut see: impl FnMut(&[u8], &[u8])) -> Answer<()> {
        for pair in ReadableTable::range(&self.0, key..)?.take(pairs) {
            let (key, value) = pair?;
            see(key.value(), value.value());
        }
        Ok(())
    }
}

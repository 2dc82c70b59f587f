//! redb: a transaction for each write; its cache is the budget.
//!
//! What a transaction wrote that is not synced is in the memory of the process until one is. redb offers nothing
//! between that and a sync.

use super::store::{Answer, Fault, Reader, Settings, Store, Way};
use crate::job::Durability as Class;
use redb::{Database, Durability, ReadOnlyTable, ReadableDatabase, ReadableTable, TableDefinition};

const PAIRS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("pairs");

/// A database with one table.
pub(crate) struct Redb {
    db: Database,
    durability: Durability,
}

impl Redb {
    fn write<'p>(
        &self,
        durability: Durability,
        mut pairs: impl Iterator<Item = (&'p [u8], &'p [u8])>,
    ) -> Answer<()> {
        let mut transaction = self.db.begin_write()?;
        transaction.set_durability(durability)?;
        {
            let mut table = transaction.open_table(PAIRS)?;
            pairs.try_for_each(|(key, value)| table.insert(key, value).map(drop))?;
        }
        Ok(transaction.commit()?)
    }
}

impl Store for Redb {
    const OFFERS: &'static [Class] = &[Class::Memory, Class::Power];
    type Reader<'s> = Table;

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

    fn reader(&self) -> Answer<Table> {
        Ok(Table(self.db.begin_read()?.open_table(PAIRS)?))
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

/// A pair as an iteration shows it.
type Pair<'a> =
    Result<(redb::AccessGuard<'a, &'static [u8]>, redb::AccessGuard<'a, &'static [u8]>), redb::StorageError>;

/// The table in one read transaction.
pub(crate) struct Table(ReadOnlyTable<&'static [u8], &'static [u8]>);

impl Reader for Table {
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

//! SQLite, through rusqlite: a table without row numbers, a transaction for each write, a write-ahead log.
//!
//! A commit is in the log, and the operating system has it; in the class of power it is synced. One connection writes,
//! one writes with syncs, one reads; each of the first and the last has half of the budget as its cache. A reader keeps
//! one transaction for its reads, as those of LMDB and redb do, unless there is only one: a statement by itself is less
//! than a transaction with one.

use super::store::{Answer, Reader, Settings, Store, Way};
use crate::job::Durability;
use forrest_base::lock;
use rusqlite::{CachedStatement, Connection, params};
use std::path::Path;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

const PUT: &str = "INSERT INTO pairs VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
const GET: &str = "SELECT value FROM pairs WHERE key = ?1";
const SCAN: &str = "SELECT key, value FROM pairs WHERE key >= ?1 ORDER BY key LIMIT ?2";
/// How long a writer waits for another one.
const PATIENCE: Duration = Duration::from_secs(60);

/// Three connections to a file.
pub(crate) struct Sqlite {
    write: Mutex<Connection>,
    write_synced: Mutex<Connection>,
    read: Mutex<Connection>,
}

/// Opens a connection with a cache of `cache_bytes`. Commits are synced, or only written to the log.
fn connect(path: &Path, is_synced: bool, cache_bytes: usize) -> Answer<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(PATIENCE)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", if is_synced { "FULL" } else { "NORMAL" })?;
    // Less than nothing is KiB.
    connection.pragma_update(None, "cache_size", -((cache_bytes >> 10) as i64))?;
    Ok(connection)
}

fn put(connection: &Mutex<Connection>, key: &[u8], value: &[u8]) -> Answer<()> {
    lock(connection).prepare_cached(PUT)?.execute(params![key, value])?;
    Ok(())
}

/// Shows the rows of a statement that has a key and a value in each.
fn show(
    statement: &mut CachedStatement<'_>,
    given: impl rusqlite::Params,
    mut see: impl FnMut(&[u8], &[u8]),
) -> Answer<()> {
    let mut rows = statement.query(given)?;
    while let Some(row) = rows.next()? {
        see(row.get_ref(0)?.as_blob()?, row.get_ref(1)?.as_blob()?);
    }
    Ok(())
}

impl Store for Sqlite {
    const OFFERS: &'static [Durability] = &[Durability::Process, Durability::Power];
    type Reader<'s> = Connected<'s>;

    fn open(settings: &Settings<'_>) -> Answer<Self> {
        let (path, cache) = (settings.directory.join("store"), settings.budget_bytes() / 2);
        let write = connect(&path, settings.durability == Durability::Power, cache)?;
        write.execute_batch(
            "CREATE TABLE IF NOT EXISTS pairs (key BLOB PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID",
        )?;
        let (write_synced, read) = (connect(&path, true, 1 << 20)?, connect(&path, false, cache)?);
        Ok(Sqlite {
            write: Mutex::new(write),
            write_synced: Mutex::new(write_synced),
            read: Mutex::new(read),
        })
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Answer<()> {
        put(&self.write, key, value)
    }

    fn put_batch<'p>(&self, mut pairs: impl Iterator<Item = (&'p [u8], &'p [u8])>) -> Answer<()> {
        let mut connection = lock(&self.write);
        let transaction = connection.transaction()?;
        {
            let mut statement = transaction.prepare_cached(PUT)?;
            pairs.try_for_each(|(key, value)| statement.execute(params![key, value]).map(drop))?;
        }
        Ok(transaction.commit()?)
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Answer<()> {
        put(&self.write_synced, key, value)
    }

    fn reader(&self) -> Answer<Connected<'_>> {
        Ok(Connected { connection: lock(&self.read), reads: 0 })
    }

    fn scan_all(&self, way: Way, see: impl FnMut(&[u8], &[u8])) -> Answer<()> {
        let query = match way {
            Way::Forward => "SELECT key, value FROM pairs ORDER BY key",
            Way::Backward => "SELECT key, value FROM pairs ORDER BY key DESC",
        };
        show(&mut lock(&self.read).prepare_cached(query)?, [], see)
    }

    fn compact(&mut self) -> Answer<bool> {
        let connection = lock(&self.write);
        connection.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")?;
        Ok(true)
    }
}

/// The connection that reads.
pub(crate) struct Connected<'s> {
    connection: MutexGuard<'s, Connection>,
    /// How many times it did; from the second on in a transaction.
    reads: u64,
}

impl Connected<'_> {
    /// The connection, for one more read.
    fn for_read(&mut self) -> Answer<&Connection> {
        self.reads += 1;
        if self.reads == 2 {
            self.connection.prepare_cached("BEGIN")?.execute([])?;
        }
        Ok(&self.connection)
    }
}

impl Drop for Connected<'_> {
    fn drop(&mut self) {
        if !self.connection.is_autocommit() {
            // It only read. If it does not end, the next BEGIN fails.
            let _ = self.connection.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([]));
        }
    }
}

impl Reader for Connected<'_> {
    fn get(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Answer<bool> {
        let mut statement = self.for_read()?.prepare_cached(GET)?;
        let mut rows = statement.query(params![key])?;
        let Some(row) = rows.next()? else { return Ok(false) };
        see(row.get_ref(0)?.as_blob()?);
        Ok(true)
    }

    fn seek(&mut self, key: &[u8], see: impl FnOnce(&[u8], &[u8])) -> Answer<()> {
        let mut see = Some(see);
        self.scan(key, 1, |key, value| {
            if let Some(see) = see.take() {
                see(key, value);
            }
        })
    }

    fn scan(&mut self, key: &[u8], pairs: usize, see: impl FnMut(&[u8], &[u8])) -> Answer<()> {
        show(&mut self.for_read()?.prepare_cached(SCAN)?, params![key, pairs as i64], see)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_keeps_one_transaction() {
        let directory = tempfile::tempdir().unwrap();
        let store =
            Sqlite::open(&Settings::shared_out(directory.path(), 64 << 20, Durability::Process)).unwrap();
        let read = |reader: &mut Connected<'_>| {
            let mut found = Vec::new();
            assert!(reader.get(b"key", |value| found = value.to_vec()).unwrap());
            String::from_utf8(found).unwrap()
        };
        store.put(b"key", b"old").unwrap();
        let mut reader = store.reader().unwrap();
        assert_eq!(read(&mut reader), "old");
        assert!(reader.connection.is_autocommit(), "one read needs no transaction");
        assert_eq!(read(&mut reader), "old");
        store.put(b"key", b"new").unwrap();
        assert_eq!(read(&mut reader), "old", "it reads in one state");
        reader.scan(b"", 1, |_, value| assert_eq!(value, b"old")).unwrap();
        drop(reader);
        let mut reader = store.reader().unwrap();
        assert_eq!(read(&mut reader), "new");
    }
}

//! Forrest as an engine of crud-bench, on disk.
//!
//! As with most embedded engines there, each operation runs where it is called, without a pool of threads. Rows are
//! what crud-bench encodes, under its keys. Scans with a condition need indexes of rows, which a key-value store does
//! not have; they are reported as not supported, as for the other embedded engines.

#![cfg(feature = "forrest")]

use crate::benchmark::NOT_SUPPORTED_ERROR;
use crate::engine::{BenchmarkClient, BenchmarkEngine, ScanContext};
use crate::memory::Config;
use crate::value::BenchValue;
use crate::valueprovider::Columns;
use crate::{Benchmark, KeyType, Projection, Scan};
use anyhow::{Context, Result, bail};
use forrest::{Db, Durability, WriteBatch};
use std::hint::black_box;
use std::ops::Bound;
use std::time::Duration;

const DIRECTORY: &str = "forrest";

pub(crate) struct ForrestProvider(Db);

impl BenchmarkEngine<ForrestClient> for ForrestProvider {
    fn wait_timeout(&self) -> Option<Duration> {
        None
    }

    async fn setup(_kt: KeyType, _columns: Columns, options: &Benchmark) -> Result<Self> {
        std::fs::remove_dir_all(DIRECTORY).ok();
        // The same share of the memory as the other engines take.
        let cache_bytes = Config::new().cache_gb << 30;
        let durability = if options.sync { Durability::Sync } else { Durability::Buffered };
        let builder = Db::builder().cache_bytes(cache_bytes as usize).memtable_bytes(256 << 20);
        Ok(ForrestProvider(builder.durability(durability).open(DIRECTORY)?))
    }

    async fn create_client(&self) -> Result<ForrestClient> {
        Ok(ForrestClient(self.0.clone()))
    }
}

pub(crate) struct ForrestClient(Db);

impl ForrestClient {
    fn set(&self, key: Vec<u8>, row: BenchValue) -> Result<()> {
        Ok(self.0.set(key, row.encode()?)?)
    }

    fn get(&self, key: Vec<u8>) -> Result<BenchValue> {
        decoded(self.0.get(key)?)
    }

    fn delete(&self, key: Vec<u8>) -> Result<()> {
        Ok(self.0.delete(key).map(|_| ())?)
    }

    fn set_all(&self, rows: impl Iterator<Item = (Vec<u8>, BenchValue)>) -> Result<()> {
        let mut batch = WriteBatch::new();
        for (key, row) in rows {
            batch.set(key, row.encode()?);
        }
        Ok(self.0.write(batch)?)
    }

    fn get_all(&self, keys: impl Iterator<Item = Vec<u8>>) -> Result<()> {
        let keys: Vec<Vec<u8>> = keys.collect();
        for value in self.0.multi_get(&keys)? {
            black_box(decoded(value)?);
        }
        Ok(())
    }

    fn delete_all(&self, keys: impl Iterator<Item = Vec<u8>>) -> Result<()> {
        let mut batch = WriteBatch::new();
        keys.for_each(|key| _ = batch.delete(key));
        Ok(self.0.write(batch)?)
    }

    fn scan(&self, scan: &Scan) -> Result<usize> {
        if scan.condition.is_some() {
            bail!(NOT_SUPPORTED_ERROR);
        }
        let (from, most) = (scan.start.unwrap_or(0), scan.limit.unwrap_or(usize::MAX));
        let projection = scan.projection()?;
        if let (Projection::Count, 0, usize::MAX) = (&projection, from, most) {
            return Ok(self.0.count(..)? as usize);
        }
        let mut first = Bound::Unbounded;
        if from > 0 {
            // A cursor skips without reading values.
            let mut cursor = self.0.cursor().keys_only();
            if !cursor.first()? || !cursor.skip(from as u64)? {
                return Ok(0);
            }
            first = Bound::Included(cursor.key().unwrap_or_default().to_vec());
        }
        let (range, mut count) = (self.0.range((first, Bound::Unbounded)), 0);
        if let Projection::Full = projection {
            for entry in range.take(most) {
                black_box(entry?.value_bytes()?);
                count += 1;
            }
        } else {
            for key in range.keys().take(most) {
                black_box(&*key?);
                count += 1;
            }
        }
        Ok(count)
    }
}

/// The row of a value that must be there.
fn decoded(value: Option<impl AsRef<[u8]>>) -> Result<BenchValue> {
    Ok(black_box(BenchValue::decode(value.context("a row is missing")?.as_ref())?))
}

fn number(key: u32) -> Vec<u8> {
    key.to_ne_bytes().to_vec()
}

impl BenchmarkClient for ForrestClient {
    type ReadRow = BenchValue;

    async fn shutdown(&self) -> Result<()> {
        std::fs::remove_dir_all(DIRECTORY).ok();
        Ok(())
    }

    async fn compact(&self) -> Result<()> {
        Ok(self.0.compact()?)
    }

    async fn create_u32(&self, key: u32, val: BenchValue) -> Result<()> {
        self.set(number(key), val)
    }

    async fn create_string(&self, key: String, val: BenchValue) -> Result<()> {
        self.set(key.into_bytes(), val)
    }

    async fn read_u32(&self, key: u32) -> Result<BenchValue> {
        self.get(number(key))
    }

    async fn read_string(&self, key: String) -> Result<BenchValue> {
        self.get(key.into_bytes())
    }

    async fn update_u32(&self, key: u32, val: BenchValue) -> Result<()> {
        self.set(number(key), val)
    }

    async fn update_string(&self, key: String, val: BenchValue) -> Result<()> {
        self.set(key.into_bytes(), val)
    }

    async fn delete_u32(&self, key: u32) -> Result<()> {
        self.delete(number(key))
    }

    async fn delete_string(&self, key: String) -> Result<()> {
        self.delete(key.into_bytes())
    }

    async fn scan_u32(&self, scan: &Scan, _ctx: ScanContext) -> Result<usize> {
        self.scan(scan)
    }

    async fn scan_string(&self, scan: &Scan, _ctx: ScanContext) -> Result<usize> {
        self.scan(scan)
    }

    async fn batch_create_u32(&self, rows: impl Iterator<Item = (u32, BenchValue)> + Send) -> Result<()> {
        self.set_all(rows.map(|(key, row)| (number(key), row)))
    }

    async fn batch_create_string(
        &self,
        rows: impl Iterator<Item = (String, BenchValue)> + Send,
    ) -> Result<()> {
        self.set_all(rows.map(|(key, row)| (key.into_bytes(), row)))
    }

    async fn batch_read_u32(&self, keys: impl Iterator<Item = u32> + Send) -> Result<()> {
        self.get_all(keys.map(number))
    }

    async fn batch_read_string(&self, keys: impl Iterator<Item = String> + Send) -> Result<()> {
        self.get_all(keys.map(String::into_bytes))
    }

    async fn batch_update_u32(&self, rows: impl Iterator<Item = (u32, BenchValue)> + Send) -> Result<()> {
        self.set_all(rows.map(|(key, row)| (number(key), row)))
    }

    async fn batch_update_string(
        &self,
        rows: impl Iterator<Item = (String, BenchValue)> + Send,
    ) -> Result<()> {
        self.set_all(rows.map(|(key, row)| (key.into_bytes(), row)))
    }

    async fn batch_delete_u32(&self, keys: impl Iterator<Item = u32> + Send) -> Result<()> {
        self.delete_all(keys.map(number))
    }

    async fn batch_delete_string(&self, keys: impl Iterator<Item = String> + Send) -> Result<()> {
        self.delete_all(keys.map(String::into_bytes))
    }
}

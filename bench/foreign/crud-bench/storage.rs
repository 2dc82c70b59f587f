//! Stands for crud-bench's client that stores results in SurrealDB. Without it the benchmark builds without that
//! database.

use crate::result::BenchmarkResult;
use anyhow::{Result, bail};

pub struct StorageClient;

impl StorageClient {
    pub async fn connect(_endpoint: &str) -> Result<Self> {
        bail!("this build has no SurrealDB to store results in")
    }

    pub async fn store_result(&self, _result: &BenchmarkResult) -> Result<()> {
        Ok(())
    }
}

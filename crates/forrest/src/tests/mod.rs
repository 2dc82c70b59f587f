//! The gates of transactions, blobs and values that expire in memory, which mutants must fail (`cargo xtask mutants`,
//! docs/testing.md).

mod blobs;
#[cfg(feature = "memory")]
mod expiry;
mod histories;
mod limits;
mod transactions;

use crate::Db;
use forrest_base::random;
use tempfile::TempDir;

/// An empty store. A store on disk is removed with it.
struct Home {
    db: Db,
    _directory: Option<TempDir>,
}

/// A store of each home that is compiled in.
fn homes() -> Vec<Home> {
    let mut homes = Vec::new();
    #[cfg(feature = "memory")]
    homes.push(Home { db: Db::open("memory:").expect("a store in memory"), _directory: None });
    #[cfg(feature = "disk")]
    {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("store");
        // Small, so that the test writes tables and merges them.
        let builder = Db::builder().memtable_bytes(16 << 10).table_bytes(32 << 10).cache_bytes(64 << 10);
        let db = builder.open(path.to_str().expect("it is text")).expect("a store on disk");
        homes.push(Home { db, _directory: Some(directory) });
    }
    #[cfg(feature = "llds-user")]
    {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let url = format!("llds-user:gate {}", NUMBER.fetch_add(1, Ordering::Relaxed));
        homes.push(Home { db: Db::open(url).expect("a store of this process"), _directory: None });
    }
    homes
}

fn name(db: &Db) -> &'static str {
    db.capabilities().home()
}

fn counter(number: i64) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

fn number(bytes: &[u8]) -> Option<i64> {
    bytes.try_into().ok().map(i64::from_be_bytes)
}

/// Random numbers that a seed replays.
struct Random(random::Random);

impl Random {
    fn new(seed: u64) -> Random {
        Random(random::Random(seed))
    }

    fn below(&mut self, end: usize) -> usize {
        self.0.index(end)
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

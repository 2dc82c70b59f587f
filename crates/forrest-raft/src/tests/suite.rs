//! openraft's own tests of a storage, in memory and on disk, with and without checkpoints, and on the simulated disk.

use crate::{Log, State, Store, Types};
use forrest::simulated::{self, Simulated};
use forrest::{Db, Pages};
use openraft::StorageError;
use openraft::testing::log::{StoreBuilder, Suite};
use tempfile::TempDir;

/// What the stores are made of.
enum Home {
    Memory,
    MemoryInline,
    Disk,
    Checkpoints,
    Simulated,
}

impl Home {
    fn open(&self) -> (TempDir, Store) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("store");
        let builder = Db::builder().pages(Pages::Plain).memtable_bytes(64 << 10).cache_bytes(1 << 20);
        let disk = || builder.open(path.to_str().expect("UTF-8")).expect("a new store");
        let memory = || Db::open("memory:").expect("a new store");
        let store = match self {
            Home::Memory => Store::open(memory()),
            Home::MemoryInline => Store::open_inline(memory()),
            Home::Disk => Store::open(disk()),
            Home::Checkpoints => Store::with_checkpoints(disk(), directory.path().join("checkpoints")),
            Home::Simulated => {
                Store::open_inline(simulated::open(Simulated::new(), &builder).expect("a new store"))
            }
        };
        (directory, store.expect("a new store"))
    }
}

impl StoreBuilder<Types, Log, State, (TempDir, Store)> for Home {
    async fn build(&self) -> Result<((TempDir, Store), Log, State), StorageError<Types>> {
        let (directory, store) = self.open();
        let (log, state) = store.group(7).expect("a new group");
        Ok(((directory, store), log, state))
    }
}

/// Runs them with a clock that leaps over every wait.
fn run(home: Home) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let tests = Suite::test_all(home);
    runtime.expect("a runtime").block_on(tests).expect("every test passes");
}

#[test]
fn in_memory() {
    run(Home::Memory);
}

pub(super) fn in_memory_in_one_thread() {
    run(Home::MemoryInline);
}

#[test]
fn in_memory_without_a_thread() {
    in_memory_in_one_thread();
}

#[test]
fn on_disk() {
    run(Home::Disk);
}

#[test]
fn on_disk_with_checkpoints() {
    run(Home::Checkpoints);
}

#[test]
fn on_a_simulated_disk() {
    run(Home::Simulated);
}

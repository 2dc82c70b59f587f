//! Stores on disk: one small trait, and a file for each store.
//!
//! | module | what it has |
//! |---|---|
//! | steps.rs | the steps of an arm, and the checks of their results |
//! | pressure.rs, pressure/ | the scenarios of `kvbench pressure` |
//! | lap.rs | measuring a series of operations; waiting until a store is at rest |
//! | steady.rs | warming a store up until its rate is steady |
//! | store.rs | the trait |
//! | pairs.rs | the pairs, and random keys |
//! | file_keys.rs | the keys of a file |
//! | forrest.rs, rocksdb.rs, leveldb.rs, fjall.rs, redb.rs, lmdb.rs, sqlite.rs | the stores |
//!
//! The peers are compiled with the features `stores`, `leveldb` and `rocksdb` only.

pub(crate) mod file_keys;
#[cfg(feature = "stores")]
mod fjall;
mod forrest;
mod lap;
#[cfg(feature = "leveldb")]
mod leveldb;
#[cfg(feature = "stores")]
mod lmdb;
pub(crate) mod pairs;
mod pressure;
#[cfg(feature = "stores")]
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
#[cfg(feature = "stores")]
mod sqlite;
mod steady;
mod steps;
#[cfg(test)]
mod steps_tests;
mod store;
#[cfg(all(test, feature = "stores", target_os = "linux"))]
mod sync_tests;
#[cfg(test)]
mod testing;

pub(crate) use store::{Answer, Fault, MEMTABLES};
use store::{Pressed, Store};

use crate::cap;
use crate::job::{Durability, Job, Orders, Outcome, PressureOrders, Report, Task};
use crate::lock_file;
use file_keys::FileKeys;

/// What the build script found.
const LINKED_ROCKSDB: Option<&str> = option_env!("KVBENCH_ROCKSDB");

/// The name of this project's own.
pub(crate) const FORREST: &str = "forrest";
/// The same with encrypted files.
pub(crate) const ENCRYPTED: &str = "forrest-encrypted";

/// A store as the command line knows it.
pub(crate) struct StoreEntry {
    /// The name.
    pub(crate) name: &'static str,
    /// The package that it comes from, for its version; `None` if it is the system's.
    pub(crate) package: Option<&'static str>,
    /// One line: what it is.
    pub(crate) about: &'static str,
    /// The function of an arm, or the feature that compiles it in.
    pub(crate) run: Result<Run, &'static str>,
}

/// The function of an arm, and the durabilities that its store offers.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    /// [`Store::OFFERS`].
    offers: &'static [Durability],
    /// [`Store::COMPRESSES`].
    pub(crate) compresses: bool,
    arm: fn(&Job, &Orders, Option<FileKeys>, Report<'_>) -> Outcome,
    /// The same for scenarios, of stores that have all that they need.
    pressure: Option<fn(&Job, &PressureOrders, Report<'_>) -> Outcome>,
}

impl Run {
    const fn of<S: Store>() -> Self {
        Run { offers: S::OFFERS, compresses: S::COMPRESSES, arm: steps::run::<S>, pressure: None }
    }

    const fn pressed<S: Pressed>() -> Self {
        Run { pressure: Some(pressure::run::<S>), ..Run::of::<S>() }
    }

    /// What the store offers where this is asked for: that, or the next weaker, or else the next stronger.
    pub(crate) fn offered(self, asked: Durability) -> Durability {
        let weaker = self.offers.iter().rev().find(|offered| **offered <= asked);
        weaker.or_else(|| self.offers.first()).copied().unwrap_or(asked)
    }
}

macro_rules! peer {
    ($feature:literal, $of:ident, $store:ty) => {{
        #[cfg(feature = $feature)]
        let run = Ok(Run::$of::<$store>());
        #[cfg(not(feature = $feature))]
        let run = Err($feature);
        run
    }};
}

/// Every store, in the order of the tables.
pub(crate) const ENTRIES: &[StoreEntry] = &[
    StoreEntry {
        name: FORREST,
        package: Some("forrest-db"),
        about: "this project's engine on disk",
        run: Ok(Run::pressed::<forrest::Forrest>()),
    },
    StoreEntry {
        name: ENCRYPTED,
        package: Some("forrest-db"),
        about: "the same with encrypted files, only if it is named",
        run: peer!("encryption", of, forrest::Forrest<true>),
    },
    StoreEntry {
        name: "rocksdb",
        package: Some("librocksdb-sys"),
        about: "RocksDB: log-structured, levels, Bloom filters of 10 bits",
        run: peer!("rocksdb", pressed, rocksdb::Rocks),
    },
    StoreEntry {
        name: "leveldb",
        package: None,
        about: "LevelDB, the system's: log-structured, levels, Bloom filters of 10 bits",
        run: peer!("leveldb", of, leveldb::Level),
    },
    StoreEntry {
        name: "fjall",
        package: Some("fjall"),
        about: "log-structured, levels, Bloom filters as it comes",
        run: peer!("stores", pressed, fjall::Fjall),
    },
    StoreEntry {
        name: "redb",
        package: Some("redb"),
        about: "copy-on-write B-tree; commits that are not synced are in its memory",
        run: peer!("stores", pressed, redb::Redb),
    },
    StoreEntry {
        name: "lmdb",
        package: Some("heed"),
        about: "LMDB through heed: copy-on-write B+-tree in a map",
        run: peer!("stores", pressed, lmdb::Lmdb),
    },
    StoreEntry {
        name: "sqlite",
        package: Some("libsqlite3-sys"),
        about: "SQLite through rusqlite: B-tree, write-ahead log",
        run: peer!("stores", of, sqlite::Sqlite),
    },
];

impl StoreEntry {
    /// The entry of a name.
    pub(crate) fn find(name: &str) -> Option<&'static StoreEntry> {
        ENTRIES.iter().find(|entry| entry.name == name)
    }

    /// The measured version, from the lock file or from the system's library; the file name of a RocksDB that the build
    /// was made to link (`ROCKSDB_LIB_DIR`).
    pub(crate) fn version(&self) -> Option<String> {
        match self.package {
            Some("librocksdb-sys") if LINKED_ROCKSDB.is_some() => LINKED_ROCKSDB.map(str::to_owned),
            Some(package) => lock_file::version(package).map(str::to_owned),
            None => {
                #[cfg(feature = "leveldb")]
                return Some(leveldb::version());
                #[cfg(not(feature = "leveldb"))]
                None
            }
        }
    }
}

/// Does a job in this process.
pub(crate) fn dispatch(job: &Job, report: Report<'_>) -> Outcome {
    let run = match StoreEntry::find(&job.subject).map(|entry| entry.run) {
        Some(Ok(run)) => run,
        Some(Err(feature)) => return Outcome::Left(not_compiled(feature)),
        None => return Outcome::Left("there is no such store".to_owned()),
    };
    // Before the memory is limited: they are not the store's.
    let keys =
        match job.data.as_ref().map(|file| FileKeys::load(file, job.margin_bytes, job.seed)).transpose() {
            Ok(keys) => keys,
            Err(error) => return Outcome::Failed(error.to_string()),
        };
    if let Some(Err(error)) = job.group.as_deref().map(cap::join) {
        return Outcome::Left(format!("its memory cannot be limited: {error}"));
    }
    match (&job.task, run.pressure) {
        (Task::Store(orders), _) => (run.arm)(job, orders, keys, report),
        (Task::Pressure(orders), Some(pressure)) => pressure(job, orders, report),
        _ => Outcome::Left("not a job for this store".to_owned()),
    }
}

/// Why a store is not measured that this program was compiled without.
pub(crate) fn not_compiled(feature: &str) -> String {
    format!("compiled without the feature \"{feature}\"; `cargo xtask bench` compiles it in")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_the_lock_file() {
        assert!(ENTRIES.iter().all(|entry| entry.version().is_some() || entry.run.is_err()));
    }

    #[test]
    fn what_is_not_offered_is_told_as_what_is() {
        use Durability::{Memory, Power, Process};
        let offers = |offers: &'static [Durability]| {
            let run = Run {
                offers,
                compresses: false,
                arm: |_, _, _, _| Outcome::Left(String::new()),
                pressure: None,
            };
            [Memory, Process, Power].map(|asked| run.offered(asked))
        };
        assert_eq!(offers(&[Memory, Process, Power]), [Memory, Process, Power]);
        assert_eq!(offers(&[Memory, Power]), [Memory, Memory, Power]);
        assert_eq!(offers(&[Process, Power]), [Process, Process, Power]);
        assert_eq!(offers(&[Power]), [Power, Power, Power]);
    }
}

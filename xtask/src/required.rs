//! The tests and documents that must exist.
//!
//! A gate that silently runs nothing is worse than none, so each step demands the files that it depends on, and fails
//! if one is missing.

use crate::workspace::Workspace;

/// Models of a package's lock-free protocols. The head of the file names their weakened mutants.
pub(crate) struct Loom {
    pub(crate) package: &'static str,
    pub(crate) file: &'static str,
    /// The module of the crate that has the models as unit tests, with the feature `loom`.
    pub(crate) module: &'static str,
}

/// All of them.
pub(crate) const LOOM: &[Loom] = &[
    Loom {
        package: "forrest-machine",
        file: "crates/forrest-machine/src/frames/models.rs",
        module: "frames::models",
    },
    Loom { package: "forrest-index", file: "crates/forrest-index/src/models.rs", module: "models" },
    Loom { package: "llds", file: "crates/llds/src/models.rs", module: "models" },
    Loom { package: "remixdb", file: "crates/remixdb/src/models.rs", module: "models" },
];
/// Stress test of the frames of a cache.
pub(crate) const STRESS_MACHINE: &str = "crates/forrest-machine/tests/stress.rs";
/// Stress test of the index.
pub(crate) const STRESS_INDEX: &str = "crates/forrest-index/tests/stress.rs";
/// Stress test of the library.
pub(crate) const CONCURRENCY_FORREST: &str = "crates/forrest/tests/it/concurrency.rs";
/// Tests of the library with the kernel home's engine.
pub(crate) const LLDS_FORREST: &str = "crates/forrest/tests/it/llds.rs";
/// Every call of the C library, in C.
pub(crate) const API_C: &str = "crates/forrest-c/tests/c/api.c";
/// Programs in C, which are built against the installed libraries.
pub(crate) const EXAMPLES_C: &[&str] = &[EXAMPLE_C, EXAMPLE_LEVELDB, EXAMPLE_LLDS, EXAMPLE_REMIXDB];
pub(crate) const EXAMPLE_C: &str = "crates/forrest-c/examples/first.c";
pub(crate) const EXAMPLE_LEVELDB: &str = "crates/forrest-leveldb/examples/first.c";
pub(crate) const EXAMPLE_LLDS: &str = "crates/forrest-c/examples/llds.c";
/// A project of CMake, which is built against them as well, and the files by which CMake finds them.
pub(crate) const EXAMPLE_CMAKE: &str = "crates/forrest-c/examples/cmake";
pub(crate) const CMAKE: [&str; 2] =
    ["crates/forrest-c/cmake/ForrestConfig.cmake", "crates/forrest-c/cmake/ForrestConfigVersion.cmake.in"];
pub(crate) const EXAMPLE_REMIXDB: &str = "crates/remixdb-c/examples/demo.c";
/// The guides of the libraries for C, which are followed there.
pub(crate) const GUIDES_C: &[&str] =
    &["crates/forrest-c/README.md", "crates/forrest-c/CPP.md", "crates/remixdb-c/README.md"];
/// The Python package's tests, and what they are run with.
pub(crate) const PYTHON: &[&str] = &[
    "crates/forrest-py/tests/requirements.txt",
    "crates/forrest-py/tests/test_api.py",
    "crates/forrest-py/tests/test_arrays.py",
    "crates/forrest-py/tests/test_closing.py",
    "crates/forrest-py/tests/test_cpython.py",
    "crates/forrest-py/tests/test_dbm.py",
    "crates/forrest-py/tests/test_docs.py",
    "crates/forrest-py/tests/test_fork.py",
    "crates/forrest-py/tests/test_model.py",
    "crates/forrest-py/tests/test_plyvel.py",
    "crates/forrest-py/tests/test_processes.py",
    "crates/forrest-py/tests/test_threads.py",
    "crates/forrest-py/tests/test_typed.py",
];
/// The Go modules: the package, and then the adapters, whose tests run those of other projects.
pub(crate) const GO: &[&str] =
    &["go/go.mod", "go/ethdb/go.mod", "go/datastore/go.mod", "go/avalanche/go.mod", "go/raft/go.mod"];
/// The npm package: its manifests, and its tests, of which the first is the suite of abstract-level.
pub(crate) const NODE: &[&str] = &[
    "js/package.json",
    "js/package-lock.json",
    "js/tsconfig.json",
    "js/test/suite.js",
    "js/test/model.test.js",
    "js/test/processes.test.js",
    "js/test/store.test.js",
    "js/test/types.ts",
];
/// Kafka's integration tests on stores over Forrest.
pub(crate) const JAVA_SUITES: &[&str] = &[
    "java/suites/pom.xml",
    "java/suites/src/test/java/org/apache/kafka/streams/state/BuiltInDslStoreSuppliers.java",
    "java/suites/src/test/java/org/apache/kafka/streams/state/internals/RocksDBKeyValueBytesStoreSupplier.java",
];

/// The Java packages, and the tests that run Kafka's own.
pub(crate) const JAVA: &[&str] = &[
    "java/pom.xml",
    "java/forrest/src/test/java/forrest/LibraryTest.java",
    "java/forrest/src/test/java/forrest/StoreTest.java",
    "java/kafka/src/test/java/org/apache/kafka/streams/state/internals/ForrestKeyValueStoreTest.java",
    "java/kafka/src/test/java/org/apache/kafka/streams/state/internals/ForrestSessionStoreTest.java",
    "java/kafka/src/test/java/org/apache/kafka/streams/state/internals/ForrestVersionedStoreTest.java",
    "java/kafka/src/test/java/org/apache/kafka/streams/state/internals/ForrestWindowStoreTest.java",
    "java/kafka/src/test/java/org/apache/kafka/streams/state/internals/VersionedDifferentialTest.java",
    "java/kafka/src/test/java/forrest/kafka/VersionedStoreTest.java",
    "java/kafka/src/test/java/forrest/kafka/BadInputTest.java",
    "java/kafka/src/test/java/forrest/kafka/StateStoreTest.java",
    "java/kafka/src/test/java/forrest/kafka/TransactionalStoreTest.java",
];
/// The example of Kafka Streams, and its test on a cluster.
pub(crate) const CLUSTER: &[&str] = &[
    "java/example/pom.xml",
    "java/cluster/pom.xml",
    "java/cluster/src/main/java/forrest/cluster/Cluster.java",
];
/// The library with LevelDB's functions: every call of it, and misuse, in C; and what has plyvel's interface.
pub(crate) const LEVELDB: &[&str] = &[
    "crates/forrest-leveldb/tests/c/all.c",
    "crates/forrest-leveldb/tests/c/misuse.c",
    "crates/forrest-py/python/forrest/plyvel.py",
];
/// Random operations against a model, on the index and on the library: what `portable` runs beside unit tests.
pub(crate) const MODELS: &[&str] =
    &["crates/forrest-index/tests/model.rs", "crates/forrest/tests/it/model.rs"];
/// The gates of the store on disk.
pub(crate) const GATES: &str = "crates/remixdb/src/tests/crash.rs";
/// The gates of transactions, and the program that checks their histories.
pub(crate) const GATES_TRANSACTIONS: &str = "crates/forrest/src/tests/transactions.rs";
pub(crate) const HISTORIES: &str = "crates/forrest/src/tests/histories.rs";
pub(crate) const CHECKER: &str = "crates/forrest/tests/histories/main.go";
/// The gates of the storage for Raft.
pub(crate) const GATES_RAFT: &str = "crates/forrest-raft/src/tests/power.rs";
/// Clusters of forrest-raft, simulated and as processes.
pub(crate) const RAFT: &[&str] = &[
    "crates/forrest-raft/examples/node/main.rs",
    "crates/forrest-raft/tests/it/processes.rs",
    "crates/forrest-raft/tests/it/simulator/mod.rs",
];
/// The server for Redis's clients, and what its tests read.
pub(crate) const REDIS: &[&str] = &[
    "crates/forrest-redis/tests/it/hostile.rs",
    "crates/forrest-redis/tests/clients.py",
    REDIS_PYTHON,
    REDIS_SKIPPED,
];
pub(crate) const REDIS_PYTHON: &str = "crates/forrest-redis/tests/requirements.txt";
pub(crate) const REDIS_SKIPPED: &str = "crates/forrest-redis/tests/valkey-skipped.txt";
/// The same commands under many option sets.
pub(crate) const OPTIONS: &str = "crates/forrest/tests/it/options.rs";
/// A store on disk for a long time.
pub(crate) const SOAK: &str = "crates/forrest/examples/soak.rs";
/// The front page.
pub(crate) const README: &str = "README.md";

/// The kernel module, and the checks of its test machine.
pub(crate) const MODULE: &[&str] = &[
    "kernel/llds/Kbuild",
    "kernel/llds/device.c",
    "kernel/llds/uapi/llds.h",
    "kernel/llds/tests/init",
    "kernel/llds/tests/check.c",
    "kernel/llds/tests/client",
];
/// What a kernel in user mode has.
pub(crate) const PROCESS_CONFIG: &str = "kernel/llds/tests/process.config";
/// What that of the debug machine has beside.
pub(crate) const DEBUG_CONFIG: &str = "kernel/llds/tests/debug.config";

/// Demands that a file (relative to the root) is there.
pub(crate) fn demand(workspace: &Workspace, path: &str) -> Result<(), String> {
    if workspace.root.join(path).exists() { Ok(()) } else { Err(format!("{path} is missing")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_required_is_there() {
        let workspace = Workspace::find().expect("this test runs in it");
        let files = [
            STRESS_MACHINE,
            STRESS_INDEX,
            CONCURRENCY_FORREST,
            LLDS_FORREST,
            API_C,
            GATES,
            GATES_TRANSACTIONS,
            GATES_RAFT,
            HISTORIES,
            CHECKER,
            OPTIONS,
            SOAK,
            README,
            EXAMPLE_CMAKE,
            PROCESS_CONFIG,
            DEBUG_CONFIG,
        ];
        let lists = [
            &files,
            &CMAKE[..],
            MODELS,
            MODULE,
            PYTHON,
            GO,
            NODE,
            JAVA,
            CLUSTER,
            LEVELDB,
            RAFT,
            REDIS,
            EXAMPLES_C,
            GUIDES_C,
        ]
        .into_iter()
        .flatten();
        for path in lists.chain(LOOM.iter().map(|loom| &loom.file)) {
            assert_eq!(demand(&workspace, path), Ok(()));
        }
        assert_eq!(demand(&workspace, "no/such/file"), Err("no/such/file is missing".to_owned()));
    }
}

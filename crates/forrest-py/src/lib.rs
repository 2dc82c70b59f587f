//! `forrest._forrest`: the native part of the Python package `forrest`. python/forrest/__init__.py has the
//! public classes, which derive from these and from Python's mapping classes. _forrest.pyi next to it has the
//! types.
//!
//! It is a thin layer: each method converts its arguments, calls the library, and converts the result.
//!
//! | module | content |
//! |---|---|
//! | blobs.rs | `Blobs`: values of any length, in pieces |
//! | transaction.rs | `Transaction`: reads and changes at one instant; its `TransactionRange` |
//! | batch.rs | `Batch`: changes that are applied together |
//! | snapshot.rs | `Snapshot`: one state of all keyspaces |
//! | db.rs | `Db`: opening and closing, and operations on the whole store |
//! | events.rs | `Event`: what happens in a store, passed to a function |
//! | changes.rs | `Changes`: what has happened to a store |
//! | rows.rs | many pairs of a fixed length, for arrays |
//! | keyspace.rs | `Keyspace`: all changes |
//! | view.rs | `View`: all reads |
//! | range.rs | `Range`: iterations |
//! | reader.rs | values that are read in pieces |
//! | backup.rs | directories of backups of a store |
//! | salvage.rs | what is intact of a damaged store; repairing and removing one; moving a log |
//! | watch.rs | the progress of long work |
//! | options.rs | options with named values, and URLs |
//! | argument.rs | conversion of bytes and ranges of keys |
//! | scope.rs | closing a store with everything that belongs to it; when calls release the interpreter |
//! | failure.rs | errors, as exceptions |
//!
//! From top to bottom; `docs/layers.txt` has the exact order.

#![forbid(unsafe_code)]

mod argument;
mod backup;
mod batch;
mod blobs;
mod changes;
mod db;
mod events;
mod failure;
mod keyspace;
mod options;
mod range;
mod reader;
mod rows;
mod salvage;
mod scope;
mod snapshot;
mod transaction;
mod view;
mod watch;

/// The native part of the package forrest. Use the package, not this module.
#[pyo3::pymodule]
mod _forrest {
    /// The version of the package.
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the name that Python programs look for")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
    #[pymodule_export]
    use crate::backup::{backups, prune, restore, verify_backup};
    #[pymodule_export]
    use crate::batch::Batch;
    #[pymodule_export]
    use crate::blobs::{BlobReader, BlobWriter, Blobs};
    #[pymodule_export]
    use crate::changes::{Change, Changes};
    #[pymodule_export]
    use crate::db::Db;
    #[pymodule_export]
    use crate::events::{Event, Events};
    #[pymodule_export]
    use crate::keyspace::Keyspace;
    #[pymodule_export]
    use crate::range::Range;
    #[pymodule_export]
    use crate::reader::ValueReader;
    #[pymodule_export]
    use crate::rows::{get_rows, put_rows, scan_rows};
    #[pymodule_export]
    use crate::salvage::{destroy, is_store, move_log, repair, salvage};
    #[pymodule_export]
    use crate::snapshot::Snapshot;
    #[pymodule_export]
    use crate::transaction::{Transaction, TransactionRange};
    #[pymodule_export]
    use crate::view::View;
}

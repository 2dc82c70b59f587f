//! `forrest._forrest`: what the Python package `forrest` does natively. python/forrest/__init__.py gives these classes
//! their places among Python's mappings, and is what users see; _forrest.pyi beside it has their types.
//!
//! A thin layer: each method takes what came from Python apart, calls the library, and makes Python objects of the
//! answer.
//!
//! | module | what it has |
//! |---|---|
//! | transaction.rs | `Transaction`: reads and changes at one instant |
//! | batch.rs | `Batch`: changes made together |
//! | snapshot.rs | `Snapshot`: one state of all keyspaces |
//! | db.rs | `Db`: opening and closing, and the store as a whole |
//! | keyspace.rs | `Keyspace`: all changing |
//! | view.rs | `View`: all reading |
//! | range.rs | `Range`: iterations |
//! | options.rs | words that choose, and how homes are named |
//! | argument.rs | bytes and ranges of keys, as they come |
//! | scope.rs | what is closed with what; when Python's other threads go on |
//! | failure.rs | errors, as exceptions |
//!
//! From top to bottom; `docs/layers.txt` has the exact order.

#![forbid(unsafe_code)]

mod argument;
mod batch;
mod db;
mod failure;
mod keyspace;
mod options;
mod range;
mod scope;
mod snapshot;
mod transaction;
mod view;

/// What the package forrest does natively; use the package.
#[pyo3::pymodule]
mod _forrest {
    #[pymodule_export]
    use crate::batch::Batch;
    #[pymodule_export]
    use crate::db::Db;
    #[pymodule_export]
    use crate::keyspace::Keyspace;
    #[pymodule_export]
    use crate::range::Range;
    #[pymodule_export]
    use crate::snapshot::Snapshot;
    #[pymodule_export]
    use crate::transaction::Transaction;
    #[pymodule_export]
    use crate::view::View;
}

//! The integration tests of the library, in one binary.

mod ancestor;
mod api;
mod asynchronous;
mod backup;
mod checkpoint;
mod command;
mod concurrency;
#[cfg(feature = "llds-user")]
#[path = "concurrency.rs"]
#[expect(clippy::duplicate_mod, reason = "the same tests, on another home")]
mod concurrency_in_kernel;
#[path = "concurrency.rs"]
#[expect(clippy::duplicate_mod, reason = "the same tests, on another home")]
mod concurrency_on_disk;
mod drive;
mod examples;
mod fuzzed;
mod golden;
mod golden_damage;
mod golden_make;
mod idle;
mod limits;
mod line;
#[cfg(feature = "llds-user")]
mod llds;
mod merge;
mod metrics_file;
mod model;
mod open_files;
mod options;
mod power;
mod random;
mod reopening;
mod salvage;
mod script;
mod set_options;
mod transaction;
mod ttl;
mod world;

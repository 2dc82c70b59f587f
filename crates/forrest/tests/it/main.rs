//! The integration tests of the library, in one binary.

mod ancestor;
mod api;
mod command;
mod concurrency;
#[path = "concurrency.rs"]
#[expect(clippy::duplicate_mod, reason = "the same tests, on another home")]
mod concurrency_on_disk;
mod drive;
mod examples;
mod fuzzed;
mod limits;
mod line;
mod model;
mod open_files;
mod options;
mod random;
mod script;
mod world;

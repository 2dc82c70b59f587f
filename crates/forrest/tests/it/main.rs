//! The integration tests of the library, in one binary.

mod api;
mod command;
mod concurrency;
mod drive;
mod examples;
mod fuzzed;
mod limits;
mod line;
mod model;
mod random;
mod script;
mod world;

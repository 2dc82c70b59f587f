//! The integration tests of the library, in one binary.

mod command;
mod model;
mod random;
mod script;
mod world;

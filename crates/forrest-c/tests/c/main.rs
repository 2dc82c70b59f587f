//! The tests of the C library, in one binary: its header, and programs in C and C++ that are compiled against it,
//! linked with it, and run.

mod fork;
mod header;
mod programs;
mod symbols;
mod tools;

/// The library that is tested.
const LIBRARY: &str = "forrest";

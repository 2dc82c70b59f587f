//! The tests of the C library, in one binary. They check its header, and compile, link and run programs in C
//! and C++.

mod fork;
mod header;
mod programs;
mod symbols;
mod tools;

/// The library under test.
const LIBRARY: &str = "forrest";

//! The command driven as a user would: through pipes, in a terminal, with bad arguments, with Ctrl-C.
//!
//! | module | what it has |
//! |---|---|
//! | scripts.rs | readable sessions in `scripts/`, compared word for word |
//! | arguments.rs | bad arguments: code 2, standard error, nothing on standard output |
//! | help.rs | every help has examples that work, and fits 80 columns |
//! | formats.rs | any bytes through dump and load, in every format and home |
//! | foreign.rs | the dumps of RocksDB and LMDB, with their own programs |
//! | disk.rs | stores on disk: made, kept, refused, verified |
//! | process.rs | broken pipes, full devices, Ctrl-C |
//! | reports.rs | `stat` and `doctor`, for people and for programs |
//! | terminal.rs | the prompt, the bars, the width, on the screen of a terminal |
//! | demo.rs | the tour on trees of all kinds |
//! | bench.rs | each benchmark, by what it leaves and counts |
//! | checks.rs | `stress`, and `crash` as far as nobody is killed |
//! | kill.rs | writers killed at random moments: what was acknowledged is there |
//! | harness.rs | what they share |
#![forbid(unsafe_code)]

mod arguments;
mod bench;
mod checkpoint;
mod checks;
mod demo;
mod disk;
mod foreign;
mod formats;
mod harness;
mod help;
mod kill;
mod process;
mod reports;
mod scripts;
mod terminal;

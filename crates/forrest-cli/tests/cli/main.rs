//! The command driven as a user would: through pipes, in a terminal, with bad arguments, with Ctrl-C.
//!
//! | module | content |
//! |---|---|
//! | scripts.rs | readable sessions in `scripts/`, compared word for word |
//! | arguments.rs | bad arguments: code 2, standard error, nothing on standard output |
//! | help.rs | every help has examples that work, and fits 80 columns |
//! | formats.rs | any bytes through dump and load, in every format and home |
//! | foreign.rs | the dumps of RocksDB and LMDB, with their own programs |
//! | disk.rs | stores on disk: made, kept, refused, verified |
//! | log_directory.rs | `--log-directory` and `move-log` |
//! | opening.rs | stores on read-only and full file systems |
//! | process.rs | broken pipes, full devices, Ctrl-C |
//! | reports.rs | `stat` and `doctor`, for people and for programs |
//! | terminal.rs | the prompt, the bars, the width, on the screen of a terminal |
//! | demo.rs | the tour on trees of all kinds |
//! | beside.rs | readers beside a writer, all of them killed |
//! | bench.rs | each benchmark, by its counts and the resulting store |
//! | checks.rs | `stress`, and `crash` without kills |
//! | backup.rs | directories of backups |
//! | tail.rs | the changes of a store, loaded into another one |
//! | salvage.rs | damaged stores copied, and what is lost |
//! | top.rs | a store of another process, live |
//! | serve.rs | a store for Redis's clients, killed and stopped |
//! | kill.rs | writers killed at random moments: acknowledged pairs are there |
//! | harness.rs | shared functions |
#![forbid(unsafe_code)]

mod arguments;
mod backup;
mod bench;
mod beside;
mod checkpoint;
mod checks;
mod demo;
mod disk;
mod foreign;
mod formats;
mod harness;
mod help;
mod kill;
mod log_directory;
mod opening;
mod process;
mod reports;
mod salvage;
mod scripts;
mod serve;
mod tail;
mod terminal;
mod top;
mod web;

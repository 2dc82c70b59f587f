//! The command driven as a user would: through pipes, in a terminal, with bad arguments, with Ctrl-C.
//!
//! | module | what it has |
//! |---|---|
//! | scripts.rs | readable sessions in `scripts/`, compared word for word |
//! | arguments.rs | bad arguments: code 2, standard error, nothing on standard output |
//! | help.rs | every help has examples that work, and fits 80 columns |
//! | formats.rs | any bytes through dump and load, in every format |
//! | process.rs | broken pipes, full devices, Ctrl-C |
//! | reports.rs | `stat` and `doctor`, for people and for programs |
//! | terminal.rs | the prompt, the bars, the width, on the screen of a terminal |
//! | demo.rs | the tour on trees of all kinds |
//! | harness.rs | what they share |
#![forbid(unsafe_code)]

mod arguments;
mod demo;
mod formats;
mod harness;
mod help;
mod process;
mod reports;
mod scripts;
mod terminal;

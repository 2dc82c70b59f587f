//! The `forrest` command: an ordered key-value store at the shell.
//!
//! It uses the library as any program would, and `forrest-machine` for `doctor`. Answers go to standard
//! output and everything else to standard error; `--help` lists the exit codes.
//!
//! | module | what it has |
//! |---|---|
//! | main.rs | from arguments to exit code |
//! | args.rs, help.rs | what can be asked for, and the help that teaches it |
//! | shell.rs | many commands on one store |
//! | commands.rs | the commands on a store; load.rs, dump.rs, stat.rs the longer ones |
//! | demo/ | the tour on real files: walk.rs, meta.rs, ask.rs, measure.rs |
//! | doctor.rs | what the machine offers |
//! | session.rs | the open store, and standard output |
//! | diff.rs | what tells two ordered ranges apart |
//! | codec/ | the formats of pairs |
//! | term.rs, progress.rs | fitting output to where it goes |
//! | interrupt.rs, failure.rs | Ctrl-C, errors and exit codes |
#![forbid(unsafe_code)]

mod args;
mod codec;
mod commands;
mod demo;
mod diff;
mod doctor;
mod dump;
mod failure;
mod help;
mod interrupt;
mod load;
mod progress;
mod session;
mod shell;
mod stat;
mod term;

use args::{Cli, Command};
use clap::Parser;
use failure::Failure;
use session::{Answer, Session};
use std::fmt::Arguments;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    match Cli::try_parse().map_err(Failure::Arguments).and_then(run) {
        Ok(Answer::Done) => ExitCode::SUCCESS,
        Ok(Answer::NotFound) => ExitCode::from(failure::NOT_FOUND),
        Err(failure) => failure.exit(),
    }
}

fn run(cli: Cli) -> Result<Answer, Failure> {
    interrupt::install()?;
    let Cli { store, command } = cli;
    if matches!(command, Command::Doctor) && (!store.load.is_empty() || store.dump.is_some()) {
        return Err(Failure::usage(
            "doctor looks at the machine and not at a store: --load and --dump mean nothing",
        ));
    }
    let uses_store = !matches!(command, Command::Doctor | Command::Demo(_) | Command::Shell(_));
    let mut session = Session::open(&store)?;
    let answer = commands::run(&mut session, command);
    // What was printed before a failure still counts.
    session.flush()?;
    let answer = answer?;
    session.close(store.dump.as_deref(), uses_store)?;
    Ok(answer)
}

/// Says something on standard error, in lines that fit where that is a terminal; nobody can be told if that
/// fails.
pub(crate) fn say(text: Arguments<'_>) {
    let mut err = std::io::stderr().lock();
    let text = format!("forrest: {text}");
    let _ = match term::columns(&err) {
        Some(columns) if term::width(&text) > columns && !text.contains('\n') => {
            writeln!(err, "{}", term::wrap(&text, columns.saturating_sub(2)).join("\n  "))
        }
        _ => writeln!(err, "{text}"),
    };
}

//! The `forrest` command: an ordered key-value store at the shell.
//!
//! It uses the library as any program would, and `forrest-machine` for `doctor`. Answers go to standard
//! output and everything else to standard error; `--help` lists the exit codes.
//!
//! | module | what it has |
//! |---|---|
//! | main.rs | from arguments to exit code |
//! | args.rs, help.rs | what can be asked for, and the help that teaches it |
//! | shell.rs | many commands on one store; editor.rs: the line of its prompt, history, completion |
//! | commands.rs | the commands on a store; load.rs, dump.rs, stat.rs, verify.rs the longer ones |
//! | demo/ | the tour on real files: walk.rs, meta.rs, ask.rs, measure.rs |
//! | bench/ | what db_bench measures: work.rs |
//! | stress/ | threads against each other: truth.rs, work.rs |
//! | crash/ | runs that end without closing the store: plan.rs, verify.rs |
//! | llds.rs | the stores in the kernel as a whole |
//! | doctor.rs, pages.rs | what the machine offers; manual pages and completions |
//! | session.rs | the open store, and standard output; home.rs: which store that is |
//! | diff.rs | what tells two ordered ranges apart |
//! | codec/ | the formats of pairs |
//! | random.rs, clock.rs | numbers that follow from a seed; what timing needs |
//! | term.rs, progress.rs | fitting output to where it goes |
//! | interrupt.rs, failure.rs | Ctrl-C, errors and exit codes |
#![forbid(unsafe_code)]

mod args;
mod bench;
mod clock;
mod codec;
mod commands;
mod crash;
mod demo;
mod diff;
mod doctor;
mod dump;
mod editor;
mod failure;
mod help;
mod home;
mod interrupt;
mod llds;
mod load;
mod pages;
mod progress;
mod session;
mod shell;
mod stat;
mod stress;
mod term;
mod verify;

use args::{Cli, Command, StoreArgs};
use clap::Parser;
use failure::Failure;
use home::Home;
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
    let home = home_of(&command, &store)?;
    let has_its_own = match command {
        Command::Doctor => Some("doctor looks at the machine and not at a store"),
        Command::Pages(_) => Some("pages writes what is installed beside the command"),
        Command::Llds(_) => Some("llds looks at all the stores in the kernel"),
        Command::Bench(_) => Some("bench fills and reads its own keyspace"),
        Command::Stress(_) => Some("stress fills and reads its own keyspace"),
        Command::Crash(_) => Some("crash fills and reads its own keyspace"),
        _ => None,
    };
    if let Some(why) = has_its_own
        && (!store.load.is_empty() || store.dump.is_some() || store.keyspace.is_some())
    {
        return Err(Failure::usage(format!("{why}: --load, --dump and --keyspace mean nothing")));
    }
    let uses_store = matches!(command, Command::Store(_));
    let mut session = Session::open(&store, home)?;
    let answer = commands::run(&mut session, command);
    // What was changed and what was printed before a failure still count.
    session.sync_changes()?;
    session.flush()?;
    let answer = answer?;
    session.close(store.dump.as_deref(), uses_store)?;
    Ok(answer)
}

/// The store that a command works on.
fn home_of(command: &Command, store: &StoreArgs) -> Result<Home, Failure> {
    match command {
        Command::Doctor | Command::Llds(_) | Command::Pages(_) => Ok(Home::at(home::MEMORY, true)),
        // Neither in the store that the environment names: nobody wants it filled with this.
        Command::Demo(_) => store.db.as_deref().map_or_else(Home::temporary, |url| Ok(Home::at(url, true))),
        Command::Bench(_) => {
            let home = store.db.as_deref().map_or_else(Home::temporary, |url| Ok(Home::at(url, true)))?;
            Ok(home.durable(store.sync))
        }
        Command::Shell(_) => Home::named(store.db.as_deref(), true),
        Command::Stress(args) => {
            // Not what the environment names: nobody wants that in a store that is used otherwise.
            let home = match once(store.db.as_deref(), args.dir.as_deref())? {
                Some(url) => Home::at(url, true),
                None => Home::temporary()?,
            };
            Ok(home.sized(&args.sizes))
        }
        Command::Crash(args) => {
            let home = Home::at(once(store.db.as_deref(), Some(&args.dir))?.unwrap_or_default(), true);
            Ok(home.sized(&args.sizes).durable(store.sync))
        }
        Command::Store(command) => {
            let db = once(store.db.as_deref(), command.path())?;
            Home::named(db, command.makes() || !store.load.is_empty())
        }
    }
}

/// The store, which may be named in one place only.
fn once<'a>(db: Option<&'a str>, path: Option<&'a str>) -> Result<Option<&'a str>, Failure> {
    match (db, path) {
        (Some(_), Some(path)) => Err(Failure::usage(format!("two stores are named: --db, and {path}"))),
        _ => Ok(path.or(db)),
    }
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

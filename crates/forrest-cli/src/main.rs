//! The `forrest` command: an ordered key-value store at the shell.
//!
//! It uses the library as any program would, and `forrest-machine` for `doctor`. Results go to standard output and
//! everything else to standard error; `--help` lists the exit codes.
//!
//! | module | content |
//! |---|---|
//! | main.rs | from arguments to exit code |
//! | args.rs, help.rs | the arguments, and their help |
//! | shell.rs | many commands on one store; editor.rs: the line of its prompt, history, completion |
//! | web.rs | a page in the browser |
//! | serve.rs | the store for programs that speak Redis's protocol |
//! | top.rs | what a store does that another process has open |
//! | commands.rs | the commands on a store; load.rs, dump.rs, stat.rs, tail.rs, verify.rs the longer ones |
//! | blob.rs | values of any length, as files |
//! | demo/ | the tour on real files: walk.rs, meta.rs, ask.rs, measure.rs |
//! | bench/ | the benchmarks of db_bench: work.rs |
//! | stress/ | threads against each other: truth.rs, work.rs |
//! | crash/ | runs that end without closing the store: plan.rs, verify.rs |
//! | llds.rs | the stores in the kernel as a whole |
//! | salvage.rs | what is intact of a damaged store |
//! | backup.rs | directories of backups |
//! | doctor.rs, pages.rs | checks of the machine; manual pages and completions |
//! | session.rs | the open store, and standard output; home.rs: the choice of the store |
//! | diff.rs | the differences between two ordered ranges |
//! | codec/ | the formats of pairs |
//! | clock.rs | timing |
//! | term.rs, progress.rs | fitting output to the terminal |
//! | interrupt.rs, failure.rs | Ctrl-C, errors and exit codes |
#![forbid(unsafe_code)]

mod args;
mod backup;
mod bench;
mod blob;
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
mod salvage;
mod serve;
mod session;
mod shell;
mod stat;
mod stress;
mod tail;
mod term;
mod top;
mod verify;
mod web;

use args::{BackupCommand, Cli, Command, KeyCommand, LldsCommand, StoreArgs, StoreCommand, StoreOptions};
use clap::{CommandFactory, Parser};
use failure::Failure;
use forrest::EncryptionKey;
use home::Home;
use session::{Answer, Session};
use std::process::ExitCode;

fn main() -> ExitCode {
    match Cli::try_parse().map_err(Failure::Arguments).and_then(run) {
        Ok(Answer::Done) => ExitCode::SUCCESS,
        Ok(Answer::NotFound) => ExitCode::from(failure::NOT_FOUND),
        Err(failure) => failure.exit(),
    }
}

fn run(cli: Cli) -> Result<Answer, Failure> {
    interrupt::install().map_err(|error| Failure::io("cannot watch for Ctrl-C", error))?;
    let Cli { store, command } = cli;
    let home =
        home_of(&command, &store)?.with_log(store.log_directory.as_deref())?.with_options(&store.options);
    // Those read directories of their own.
    let takes_key = matches!(command, Command::Backup(_) | Command::Salvage(_));
    let home = home.with_key(store.key_file.as_deref(), takes_key)?;
    let has_its_own = match command {
        Command::Doctor => Some("doctor looks at the machine and not at a store"),
        Command::Pages(_) => Some("pages writes what is installed beside the command"),
        Command::Llds(_) => Some("llds looks at all the stores in the kernel"),
        Command::Salvage(_) => Some("salvage reads the files of the store that it names"),
        Command::Web(_) if store.dump.is_some() => Some("web changes nothing"),
        Command::Top(_) => Some("top reads what the process writes that has the store open"),
        Command::Backup(_) => Some("backup works on the store and the directories that it names"),
        Command::Key(_) => Some("key works on the store that it names"),
        Command::MoveLog(_) => Some("move-log works on the files of the store that it names"),
        Command::Serve(_) => Some("serve has a keyspace of its own"),
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
    let without_db = without_db(&command);
    if let Some(why) = has_its_own
        && without_db.is_some()
        && store.options != StoreOptions::default()
    {
        return Err(Failure::usage(format!("{why}: options of a store such as --memory-bytes mean nothing")));
    }
    if let (Some(url), Some(how)) = (&store.db, without_db) {
        return Err(Failure::usage(format!("{how}: --db {url} means nothing")));
    }
    if let Command::Store(StoreCommand::Load(args)) = &command {
        let inputs = store.load.iter().chain(&args.files);
        load::check_refused(args.skip_errors.as_deref(), inputs, store.dump.as_deref())?;
    }
    if let Command::Store(command) = &command
        && command.puts()
        && home.is_unnamed()
        && store.dump.is_none()
        && store.load.is_empty()
    {
        return Err(Failure::usage(
            "no store is named, and the pair would be lost: name one by --db URL or FORREST_URL",
        ));
    }
    let uses_store = matches!(command, Command::Store(_));
    let is_made = matches!(command, Command::Shell(_)) && home.is_missing();
    let mut session = Session::open(&store, home)?;
    if is_made {
        session.note(format_args!("made a new store at {}", session.home.url));
    }
    let loaded = store.load.iter().try_for_each(|path| {
        let format = session.format.of_file(path);
        load::load(&mut session, path, format, None).map(drop)
    });
    session.was_changed = false;
    let answer = loaded.and_then(|()| dispatch(&mut session, command));
    // Changes and output before a failure still count.
    session.sync_changes()?;
    session.flush()?;
    let answer = answer?;
    if let Some(path) = &store.dump {
        dump::dump(&mut session, path)?;
    }
    session.close(uses_store)?;
    Ok(answer)
}

/// Runs a command of the command line.
fn dispatch(session: &mut Session, command: Command) -> Result<Answer, Failure> {
    match command {
        Command::Store(command) => match commands::run_on_store(session, command)? {
            (answer, None) => Ok(answer),
            (answer, Some(args)) => Ok(answer.and(shell::run(session, args.script.as_deref())?)),
        },
        Command::Shell(args) => shell::run(session, args.script.as_deref()),
        Command::Demo(args) => demo::run(session, &args),
        Command::Bench(args) => bench::run(session, &args),
        Command::Stress(args) => stress::run(session, &args),
        Command::Crash(args) => crash::run(session, &args),
        Command::Llds(command) => llds::run(session, &command),
        Command::Salvage(args) => salvage::run(session, &args),
        Command::Top(args) => top::run(session, &args),
        Command::Web(args) => web::run(session, &args),
        Command::Serve(args) => serve::run(session, &args),
        Command::Backup(command) => backup::run(session, &command),
        Command::Key(command) => key(session, &command),
        Command::MoveLog(args) => match forrest::move_log(&args.store, args.to.as_deref()) {
            Ok(()) => Ok(Answer::Done),
            Err(error) => Err(Failure::Opening(args.store, error)),
        },
        Command::Doctor => doctor::run(session),
        Command::Pages(args) => match pages::write(&Cli::command(), &args.directory) {
            Ok(()) => Ok(Answer::Done),
            Err(error) => Err(Failure::io(format!("cannot write to {}", args.directory.display()), error)),
        },
    }
}

/// How the command names its store, if not by `--db`.
fn without_db(command: &Command) -> Option<&'static str> {
    match command {
        Command::Doctor => Some("doctor looks at the machine and not at a store"),
        Command::Pages(_) => Some("pages writes what is installed beside the command"),
        Command::Llds(LldsCommand::List) => Some("llds list lists all the stores in the kernel"),
        Command::Llds(LldsCommand::Destroy(_)) => Some("name the stores after llds destroy"),
        Command::Llds(LldsCommand::Save(_)) => Some("name the store after llds save"),
        Command::Llds(LldsCommand::Restore(_)) => Some("name the new store after the file for llds restore"),
        Command::Salvage(_) => Some("name both stores after salvage"),
        Command::Top(_) => Some("name the store after top"),
        Command::MoveLog(_) => Some("name the store after move-log"),
        // It may be named in either place.
        Command::Backup(BackupCommand::Create(_)) => None,
        Command::Backup(_) => Some("name the directory of backups after the command"),
        _ => None,
    }
}

/// Replaces a key of an encrypted store.
fn key(session: &Session, command: &KeyCommand) -> Result<Answer, Failure> {
    let replaced = match command {
        KeyCommand::Rotate(args) => {
            session.db.rotate_key(&EncryptionKey::from_file(&args.new).map_err(Failure::Store)?)
        }
        KeyCommand::RotateData(_) => session.db.rotate_data_key(),
    };
    replaced.map(|()| Answer::Done).map_err(|error| session.home.failed(error))
}

/// The store that a command works on.
fn home_of(command: &Command, store: &StoreArgs) -> Result<Home, Failure> {
    if store.read_only && !matches!(command, Command::Store(_) | Command::Shell(_)) {
        return Err(Failure::usage("--read-only is for the commands on a store and for the shell"));
    }
    match command {
        Command::Backup(BackupCommand::Create(args)) => {
            let store = once(store.db.as_deref(), Some(&args.store))?.unwrap_or_default();
            Ok(Home::at(store, false).reading(false, true))
        }
        Command::Key(command) => {
            let store = once(store.db.as_deref(), Some(command.store()))?.unwrap_or_default();
            Ok(Home::at(store, false))
        }
        Command::Web(args) => {
            let named = once(store.db.as_deref(), args.store.as_deref())?;
            let home = Home::named(named, false)?;
            // A store in memory has no other process that writes to it.
            let is_shared = home.url != home::MEMORY;
            Ok(home.reading(is_shared, true))
        }
        Command::Doctor
        | Command::Top(_)
        | Command::Backup(_)
        | Command::Llds(_)
        | Command::Pages(_)
        | Command::Salvage(_)
        | Command::MoveLog(_) => Ok(Home::at(home::MEMORY, true)),
        // Not the store of the environment, which users keep for other data. This holds for `bench` too.
        Command::Demo(_) => store.db.as_deref().map_or_else(Home::temporary, |url| Ok(Home::at(url, true))),
        Command::Bench(_) => {
            let home = store.db.as_deref().map_or_else(Home::temporary, |url| Ok(Home::at(url, true)))?;
            Ok(home.durable(store.sync))
        }
        // The server itself makes changes durable, for many clients at once.
        Command::Serve(_) => {
            Ok(Home::named(store.db.as_deref(), true)?.deferring().with_batches_of(serve::BATCH_OPS_MAX))
        }
        Command::Shell(_) => Ok(Home::named(store.db.as_deref(), true)?.reading(store.read_only, false)),
        Command::Stress(args) => {
            // Not the store of the environment, which users keep for other data.
            let home = match once(store.db.as_deref(), args.dir.as_deref())? {
                Some(url) => Home::at(url, true),
                None => Home::temporary()?,
            };
            Ok(home.small())
        }
        Command::Crash(args) => {
            let home = Home::at(once(store.db.as_deref(), Some(&args.dir))?.unwrap_or_default(), true);
            Ok(home.small().durable(store.sync))
        }
        Command::Store(command) => {
            let db = once(store.db.as_deref(), command.path())?;
            let home = Home::named(db, command.makes() || !store.load.is_empty())?;
            // A process that writes to the store keeps its changes; this one only looks at them.
            let always = store.read_only || matches!(command, StoreCommand::Tail(_));
            Ok(home.reading(always, command.only_reads() && store.load.is_empty()))
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

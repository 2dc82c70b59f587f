//! `backup`: directories of backups of a store on disk.

use crate::args::{
    BackupCommand, BackupCreateArgs, BackupListArgs, BackupPruneArgs, BackupRestoreArgs, BackupRotateKeyArgs,
    BackupVerifyArgs,
};
use crate::clock::utc;
use crate::codec::{Format, write_json_field};
use crate::failure::Failure;
use crate::interrupt;
use crate::progress;
use crate::session::{Answer, Session};
use crate::term;
use forrest::encrypted::{backups, prune, restore, rotate_key, verify_backup};
use forrest::{Backup, BackupOptions, EncryptionKey, Error, ErrorKind, Keep};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY: u64 = 24 * 3600;

pub(crate) fn run(session: &mut Session, command: &BackupCommand) -> Result<Answer, Failure> {
    match command {
        BackupCommand::Create(args) => create(session, args),
        BackupCommand::List(args) => list(session, args),
        BackupCommand::Verify(args) => verify(session, args),
        BackupCommand::Restore(args) => make(session, args),
        BackupCommand::Prune(args) => remove(session, args),
        BackupCommand::RotateKey(args) => rotate(session, args),
    }
}

/// An error of the directory of backups, unless Ctrl-C ended the call.
fn failed(directory: &Path, error: Error) -> Failure {
    match interrupt::check() {
        Ok(()) => Failure::Opening(directory.to_owned(), error),
        Err(interrupted) => interrupted.into(),
    }
}

fn create(session: &mut Session, args: &BackupCreateArgs) -> Result<Answer, Failure> {
    let mut options = BackupOptions::default();
    options.other_store = args.other_store;
    let mut watch = progress::watching(&session.term, session.quiet);
    let made = session.db.backup_with(&args.directory, &options, |now| watch(now.done, now.whole));
    drop(watch);
    let backup = made.map_err(|error| failed(&args.directory, error))?;
    print(session, &backup, |session, backup| {
        session.line(format_args!("{}", backup.id))?;
        session.note(format_args!(
            "backup {} of {} in {}: {}, of which {} are new",
            backup.id,
            args.store,
            args.directory.display(),
            term::size(backup.bytes),
            term::size(backup.new_bytes)
        ));
        Ok(())
    })
}

fn list(session: &mut Session, args: &BackupListArgs) -> Result<Answer, Failure> {
    let key = session.home.key.clone();
    for backup in backups(&args.directory, key.as_ref()).map_err(|error| failed(&args.directory, error))? {
        if let Some(damage) = &backup.damage {
            print_damage(session, backup.id, damage)?;
            continue;
        }
        print(session, &backup, |session, Backup { id, time, bytes, new_bytes, .. }| {
            session.line(format_args!("{id}\t{}\t{bytes}\t{new_bytes}", utc(*time)))
        })?;
    }
    Ok(Answer::Done)
}

fn verify(session: &mut Session, args: &BackupVerifyArgs) -> Result<Answer, Failure> {
    let key = session.home.key.clone();
    let key = key.as_ref();
    let ids = match args.id {
        Some(id) => vec![id],
        None => {
            let all = backups(&args.directory, key).map_err(|error| failed(&args.directory, error))?;
            all.iter().map(|backup| backup.id).collect()
        }
    };
    let (count, mut failures) = (ids.len(), Vec::new());
    for id in ids {
        let mut watch = progress::watching(&session.term, session.quiet);
        let read = verify_backup(&args.directory, key, Some(id), |now| watch(now.done, now.whole));
        drop(watch);
        match read {
            Ok(backup) => {
                print(session, &backup, |session, backup| {
                    session.line(format_args!("{}\twhole\t{}", backup.id, term::size(backup.bytes)))
                })?;
            }
            // The others may be whole.
            Err(error) if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Io) => {
                interrupt::check()?;
                print_damage(session, id, &error.to_string())?;
                failures.push(Failure::Opening(args.directory.clone(), error));
            }
            Err(error) => return Err(failed(&args.directory, error)),
        }
    }
    if failures.len() > 1 {
        let (directory, failed) = (args.directory.display(), failures.len());
        return Err(Failure::Wrong(format!("{directory}: {failed} of {count} backups are damaged")));
    }
    failures.into_iter().next().map_or(Ok(Answer::Done), Err)
}

/// Prints that a backup is damaged, as `list` does.
fn print_damage(session: &mut Session, id: u64, damage: &str) -> Result<(), Failure> {
    if session.format != Format::Jsonl {
        return session.line(format_args!("{id}\tdamaged: {damage}"));
    }
    let mut out = format!("{{\"id\": {id}, ").into_bytes();
    write_json_field("damage", damage.as_bytes(), &mut out);
    out.extend_from_slice(b"}\n");
    session.write(&out)
}

fn make(session: &mut Session, args: &BackupRestoreArgs) -> Result<Answer, Failure> {
    let mut watch = progress::watching(&session.term, session.quiet);
    let key = session.home.key.as_ref();
    let made = restore(&args.directory, key, args.id, &args.to, |now| watch(now.done, now.whole));
    drop(watch);
    let backup = made.map_err(|error| failed(&args.directory, error))?;
    print(session, &backup, |session, backup| {
        session.note(format_args!(
            "{} is backup {} of {}, {}",
            args.to.display(),
            backup.id,
            utc(backup.time),
            term::size(backup.bytes)
        ));
        Ok(())
    })
}

fn rotate(session: &Session, args: &BackupRotateKeyArgs) -> Result<Answer, Failure> {
    let Some(key) = &session.home.key else {
        return Err(Failure::usage("backup rotate-key replaces the key in --key-file, which is missing"));
    };
    let new = EncryptionKey::from_file(&args.new).map_err(Failure::Store)?;
    rotate_key(&args.directory, key, &new).map_err(|error| failed(&args.directory, error))?;
    Ok(Answer::Done)
}

fn remove(session: &mut Session, args: &BackupPruneArgs) -> Result<Answer, Failure> {
    let keep = match (args.keep, args.days) {
        (Some(count), _) => Keep::Newest(count),
        (None, days) => {
            let age = Duration::from_secs(days.unwrap_or(0) * DAY);
            Keep::Since(SystemTime::now().checked_sub(age).unwrap_or(UNIX_EPOCH))
        }
    };
    let pruned = prune(&args.directory, session.home.key.as_ref(), keep)
        .map_err(|error| failed(&args.directory, error))?;
    if session.format == Format::Jsonl {
        let ids: Vec<_> = pruned.removed.iter().map(u64::to_string).collect();
        let line = format!("{{\"removed\": [{}], \"bytes\": {}}}\n", ids.join(", "), pruned.bytes);
        session.write(line.as_bytes())?;
    } else {
        for id in &pruned.removed {
            session.line(format_args!("{id}"))?;
        }
        session.note(format_args!(
            "{} removed, {} freed",
            term::plural(pruned.removed.len() as u64, "backup", "backups"),
            term::size(pruned.bytes)
        ));
    }
    Ok(Answer::Done)
}

/// Prints a backup: as JSON, or as `text` does.
fn print(
    session: &mut Session,
    backup: &Backup,
    text: impl FnOnce(&mut Session, &Backup) -> Result<(), Failure>,
) -> Result<Answer, Failure> {
    if session.format != Format::Jsonl {
        return text(session, backup).map(|()| Answer::Done);
    }
    let Backup { id, time, bytes, new_bytes, files, .. } = backup;
    let mut out = format!("{{\"id\": {id}, ").into_bytes();
    write_json_field("time", utc(*time).as_bytes(), &mut out);
    let rest = format!(", \"bytes\": {bytes}, \"new_bytes\": {new_bytes}, \"files\": {files}}}\n");
    out.extend_from_slice(rest.as_bytes());
    session.write(&out)?;
    Ok(Answer::Done)
}

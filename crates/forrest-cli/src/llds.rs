//! `llds`: the stores in the kernel as a whole: list them, destroy one, save one in a file and restore it.

use crate::args::{DestroyArgs, LldsCommand, RestoreArgs, SaveArgs};
use crate::codec::{Format, text, write_json_field};
use crate::failure::Failure;
use crate::home::KERNEL;
use crate::interrupt;
use crate::progress;
use crate::session::{Answer, Session};
use crate::term::{self, Style};
use ::llds::raw::{group_name, user_name};
use forrest::llds::{self, Listed, Saved};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Runs one of its commands.
pub(crate) fn run(session: &mut Session, command: &LldsCommand) -> Result<Answer, Failure> {
    match command {
        LldsCommand::List => list(session),
        LldsCommand::Destroy(args) => destroy(session, args),
        LldsCommand::Save(args) => save(session, args),
        LldsCommand::Restore(args) => restore(session, args),
    }
}

/// The name of a store as an argument has it: as the list prints it, or as a URL has it.
fn name_of(session: &Session, word: &OsStr) -> Result<Vec<u8>, Failure> {
    let word = word.as_bytes();
    session.format.read_argument("name", word.strip_prefix(KERNEL.as_bytes()).unwrap_or(word))
}

fn save(session: &mut Session, args: &SaveArgs) -> Result<Answer, Failure> {
    let name = name_of(session, &args.name)?;
    let watch = progress::watching(&session.term, session.quiet);
    let saved = ended(llds::save(&name, &args.file, watch))?;
    report(session, "saved", &saved)
}

fn restore(session: &mut Session, args: &RestoreArgs) -> Result<Answer, Failure> {
    let name = args.name.as_deref().map(|word| name_of(session, word)).transpose()?;
    let watch = progress::watching(&session.term, session.quiet);
    let saved = ended(llds::restore(&args.file, name.as_deref(), watch))?;
    report(session, "restored", &saved)
}

/// The result of a call that Ctrl-C may have ended.
fn ended(called: forrest::Result<Saved>) -> Result<Saved, Failure> {
    called.or_else(|error| {
        interrupt::check()?;
        Err(error.into())
    })
}

/// Says what was saved or restored: a note, or an object.
fn report(session: &mut Session, done: &str, saved: &Saved) -> Result<Answer, Failure> {
    if session.format == Format::Jsonl {
        let mut out = vec![b'{'];
        write_json_field("name", &saved.name, &mut out);
        let Saved { keys, uid, gid, mode, .. } = saved;
        let rest = format!(", \"keys\": {keys}, \"uid\": {uid}, \"gid\": {gid}, \"mode\": {mode}}}\n");
        out.extend_from_slice(rest.as_bytes());
        session.write(&out)?;
    } else {
        session.note(format_args!(
            "{done} {}: {} of the user {}, group {}, mode {:04o}",
            text::escape(&saved.name),
            term::plural(saved.keys, "key", "keys"),
            user_name(saved.uid),
            group_name(saved.gid),
            saved.mode
        ));
    }
    Ok(Answer::Done)
}

fn list(session: &mut Session) -> Result<Answer, Failure> {
    let stores = llds::list()?;
    if session.format == Format::Jsonl {
        return stores.iter().try_for_each(|store| session.write(&json(store))).map(|()| Answer::Done);
    }
    if stores.is_empty() {
        session.note(format_args!("there are no stores in the kernel that this user may use"));
    }
    for store in &stores {
        let name = text::escape(&store.name);
        let term = session.term;
        session.line(format_args!("{}", term.paint(Style::Bold, name)))?;
        for line in lines(store) {
            session.line(format_args!("  {line}"))?;
        }
    }
    Ok(Answer::Done)
}

/// The two lines below a store's name.
fn lines(store: &Listed) -> [String; 2] {
    let keys = term::plural(store.keys, "key", "keys");
    let (pairs, taken, most) =
        (term::size(store.pair_bytes), term::size(store.bytes), term::size(store.bytes_max));
    let (owner, group) = (user_name(store.uid), group_name(store.gid));
    let opens = term::plural(store.opens.into(), "time", "times");
    [
        format!("{keys} with {pairs}; takes {taken} of {most} at most"),
        format!("owner {owner}, group {group}, mode {:04o}; open {opens}", store.mode),
    ]
}

fn json(store: &Listed) -> Vec<u8> {
    let mut out = vec![b'{'];
    write_json_field("name", &store.name, &mut out);
    let fields = [
        ("keys", store.keys),
        ("pair_bytes", store.pair_bytes),
        ("bytes", store.bytes),
        ("bytes_max", store.bytes_max),
        ("uid", store.uid.into()),
        ("gid", store.gid.into()),
        ("mode", store.mode.into()),
        ("opens", store.opens.into()),
    ];
    for (name, value) in fields {
        out.extend_from_slice(format!(", \"{name}\": {value}").as_bytes());
    }
    out.extend_from_slice(b"}\n");
    out
}

fn destroy(session: &mut Session, args: &DestroyArgs) -> Result<Answer, Failure> {
    let mut answer = Answer::Done;
    for word in &args.names {
        let name = name_of(session, word)?;
        if !llds::destroy(&name)? {
            session.note(format_args!("not found: {}", text::escape(&name)));
            answer = Answer::NotFound;
        }
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_are_told_in_two_lines_and_as_an_object() {
        let Ok(stores) = llds::list() else {
            println!("skipped: the kernel module is not there");
            return;
        };
        for store in &stores {
            assert!(lines(store).iter().all(|line| line.len() < 78));
            let object: serde_json::Value = serde_json::from_slice(&json(store)).expect("it is JSON");
            assert_eq!(object["keys"], store.keys);
        }
    }
}

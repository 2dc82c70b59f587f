//! The commands on a store: each takes its arguments and a [`Session`], and prints its answer.

use crate::args::{
    AddArgs, Bounds, CasArgs, CountArgs, DeleteArgs, DeleteRangeArgs, DumpArgs, ExpiresArgs, GetArgs,
    KeyspaceCommand, LoadArgs, ScanArgs, SetArgs, ShellArgs, StoreCommand, Then, ThenCommand,
};
use crate::clock::{self, utc};
use crate::codec::{self, Format, Shown, text};
use crate::failure::Failure;
use crate::load::Refused;
use crate::session::{Answer, Session};
use crate::{blob, dump, interrupt, load, stat, tail, term, verify};
use clap::Parser;
use forrest::{Approximate, Expires, Op, Outcome, Swap};
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// Runs a command that the command line and the shell share; also returns the shell that is to follow, which `load` may
/// ask for outside of one.
pub(crate) fn run_on_store(
    session: &mut Session,
    command: StoreCommand,
) -> Result<(Answer, Option<ShellArgs>), Failure> {
    if command.path().is_some_and(|path| path != session.home.url) {
        return Err(Failure::usage(format!(
            "the store in use is {}; this command takes no other",
            session.home.url
        )));
    }
    let answer = match command {
        StoreCommand::Get(args) => get(session, &args),
        StoreCommand::Set(args) => set(session, &args),
        StoreCommand::Add(args) => add(session, &args),
        StoreCommand::Cas(args) => cas(session, &args),
        StoreCommand::Delete(args) => delete(session, &args),
        StoreCommand::DeleteRange(args) => delete_range(session, &args),
        StoreCommand::Scan(args) => scan(session, &args),
        StoreCommand::Count(args) => count(session, &args),
        StoreCommand::Expires(args) => expires(session, &args),
        StoreCommand::Keyspace(command) => keyspace(session, &command),
        StoreCommand::Keyspaces => keyspaces(session),
        StoreCommand::Load(args) => return load_files(session, args),
        StoreCommand::Dump(DumpArgs { file }) => {
            dump::dump(session, file.as_deref().unwrap_or(Path::new("-"))).map(|()| Answer::Done)
        }
        StoreCommand::Blob(command) => blob::run(session, &command),
        StoreCommand::Stat(args) => stat::run(session, &args),
        StoreCommand::Tail(args) => tail::run(session, &args),
        StoreCommand::Verify(_) => verify::verify(session),
        StoreCommand::Checkpoint(args) => verify::checkpoint(session, &args.path),
        StoreCommand::Compact(_) => verify::compact(session),
    }?;
    Ok((answer, None))
}

/// Applies one change to the keyspace in use and prints its outcome.
pub(crate) fn perform(session: &mut Session, op: Op<&[u8]>) -> Result<Answer, Failure> {
    let key = op.key();
    let mut out = Vec::new();
    match session.apply(op)? {
        Some(Outcome::Added(sum)) => session.format.write_value_line(key, Shown::Integer(sum), &mut out),
        Some(Outcome::Swapped(Swap::Mismatch(Some(found)))) => {
            session.note(format_args!("not as expected: {}", text::escape(key)));
            session.format.write_value_line(key, Shown::Bytes(&found), &mut out);
            session.write(&out)?;
            return Ok(Answer::NotFound);
        }
        Some(Outcome::ComparedRange(Swap::Mismatch(Some(differs)))) => {
            session.note(format_args!("not as expected: {}", text::escape(&differs)));
            return Ok(Answer::NotFound);
        }
        Some(Outcome::Deleted(false) | Outcome::Swapped(Swap::Mismatch(None))) => {
            session.not_found(key);
            return Ok(Answer::NotFound);
        }
        _ => {}
    }
    session.write(&out)?;
    Ok(Answer::Done)
}

fn get(session: &mut Session, args: &GetArgs) -> Result<Answer, Failure> {
    let mut answer = Answer::Done;
    let mut out = Vec::new();
    for word in &args.keys {
        let key = session.key(word)?;
        let Some(value) = session.space.get(&key)? else {
            session.not_found(&key);
            answer = Answer::NotFound;
            continue;
        };
        out.clear();
        if !args.raw {
            session.format.check_pair(&key, &value)?;
        }
        let shown = Shown::new(&value, args.int);
        match () {
            () if args.raw => out.extend_from_slice(&value),
            () if args.keys.len() == 1 => session.format.write_value_line(&key, shown, &mut out),
            () => session.format.write_pair(None, &key, shown, &mut out),
        }
        session.write(&out)?;
    }
    Ok(answer)
}

fn set(session: &mut Session, args: &SetArgs) -> Result<Answer, Failure> {
    let key = session.key(&args.key)?;
    let value = match (&args.value, &args.from_file) {
        (Some(value), _) => session.argument("value", value)?,
        (None, Some(path)) => read_whole(session, path)?,
        (None, None) => return Err(Failure::usage("set needs a value")),
    };
    perform(
        session,
        match args.ttl {
            Some(ttl) => Op::SetUntil { key: &key, value: &value, expires: Expires::after(ttl) },
            None => Op::Set { key: &key, value: &value },
        },
    )
}

fn read_whole(session: &mut Session, path: &Path) -> Result<Vec<u8>, Failure> {
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        session
            .take_stdin()?
            .read_to_end(&mut bytes)
            .map_err(|e| Failure::io("cannot read standard input", e))?;
        return Ok(bytes);
    }
    std::fs::read(path).map_err(|e| Failure::io(format!("cannot read {}", path.display()), e))
}

fn add(session: &mut Session, args: &AddArgs) -> Result<Answer, Failure> {
    let key = session.key(&args.key)?;
    perform(session, Op::Add { key: &key, delta: args.delta })
}

fn cas(session: &mut Session, args: &CasArgs) -> Result<Answer, Failure> {
    let key = session.key(&args.key)?;
    let value = |value: &Option<_>| value.as_deref().map(|v| session.argument("value", v)).transpose();
    let (expected, new) = (value(&args.expect)?, value(&args.set)?);
    perform(session, Op::CompareAndSwap { key: &key, expected: expected.as_deref(), new: new.as_deref() })
}

fn delete(session: &mut Session, args: &DeleteArgs) -> Result<Answer, Failure> {
    let mut answer = Answer::Done;
    for word in &args.keys {
        let key = session.key(word)?;
        answer = answer.and(perform(session, Op::Delete { key: &key })?);
    }
    Ok(answer)
}

fn delete_range(session: &mut Session, args: &DeleteRangeArgs) -> Result<Answer, Failure> {
    let Bounds { prefix, from, to } = &args.bounds;
    if !args.all && prefix.is_empty() && from.is_none() && to.is_none() {
        return Err(Failure::usage("delete-range needs --prefix, --from or --to; --all removes all keys"));
    }
    let op = Op::delete_range(session.range(&args.bounds)?);
    perform(session, op.borrowed())
}

fn print_count(session: &mut Session, count: u64) -> Result<(), Failure> {
    match session.format {
        Format::Jsonl => session.line(format_args!("{{\"count\": {count}}}")),
        _ => session.line(format_args!("{count}")),
    }
}

fn scan(session: &mut Session, args: &ScanArgs) -> Result<Answer, Failure> {
    if args.bounds.prefix.len() > 1 {
        return scan_prefixes(session, args);
    }
    let range = session.space.range(session.range(&args.bounds)?);
    let limit = args.limit.unwrap_or(u64::MAX);
    match (args.keys, args.reverse) {
        (true, false) => print_keys(session, range.keys(), limit),
        (true, true) => print_keys(session, range.keys().rev(), limit),
        (false, false) => print_pairs(session, range, limit, args),
        (false, true) => print_pairs(session, range.rev(), limit, args),
    }
}

fn print_keys(
    session: &mut Session,
    keys: impl Iterator<Item = forrest::Result<forrest::Key>>,
    limit: u64,
) -> Result<Answer, Failure> {
    let mut out = Vec::new();
    let mut left = limit;
    for key in keys {
        let Some(less) = left.checked_sub(1) else { break };
        left = less;
        print_key(session, &key?, &mut out)?;
    }
    Ok(Answer::Done)
}

fn print_key(session: &mut Session, key: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
    interrupt::check()?;
    out.clear();
    session.format.check_pair(key, b"")?;
    session.format.write_key_line(key, out);
    session.write(out)
}

fn print_pairs(
    session: &mut Session,
    range: impl Iterator<Item = forrest::Result<forrest::Entry>>,
    limit: u64,
    args: &ScanArgs,
) -> Result<Answer, Failure> {
    let mut out = Vec::new();
    let mut left = limit;
    for entry in range {
        let Some(less) = left.checked_sub(1) else { break };
        left = less;
        let entry = entry?;
        print_pair(session, (entry.key(), &entry.value()?), args, &mut out)?;
    }
    Ok(Answer::Done)
}

fn print_pair(
    session: &mut Session,
    (key, value): (&[u8], &[u8]),
    args: &ScanArgs,
    out: &mut Vec<u8>,
) -> Result<(), Failure> {
    interrupt::check()?;
    out.clear();
    session.format.check_pair(key, value)?;
    let value = Shown::new(value, args.int);
    match args.values {
        true => session.format.write_value_line(key, value, out),
        false => session.format.write_pair(None, key, value, out),
    }
    session.write(out)
}

/// Prints the ranges of several prefixes, whose waits for the device overlap.
fn scan_prefixes(session: &mut Session, args: &ScanArgs) -> Result<Answer, Failure> {
    if args.reverse {
        return Err(Failure::usage("--reverse goes with one --prefix; give a scan for each"));
    }
    let ranges = session.ranges(&args.bounds)?;
    let limit = args.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let (space, mut out, mut printed) = (session.space.clone(), Vec::new(), Ok(()));
    let flow = |printed: &Result<(), Failure>| match printed {
        Ok(()) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()),
    };
    if args.keys {
        space.multi_scan_keys(&ranges, limit, |_, key| {
            printed = print_key(session, key, &mut out);
            flow(&printed)
        })?;
    } else {
        space.multi_scan(&ranges, limit, |_, key, value| {
            printed = print_pair(session, (key, value), args, &mut out);
            flow(&printed)
        })?;
    }
    printed.map(|()| Answer::Done)
}

fn count(session: &mut Session, args: &CountArgs) -> Result<Answer, Failure> {
    let range = session.range(&args.bounds)?;
    if args.approximate {
        let Approximate { keys, bytes } = session.space.approximate(range)?;
        match session.format {
            Format::Jsonl => session.line(format_args!("{{\"count\": {keys}, \"bytes\": {bytes}}}"))?,
            _ => session.line(format_args!("{keys}\t{bytes}"))?,
        }
    } else {
        let count = session.space.count(range)?;
        print_count(session, count)?;
    }
    Ok(Answer::Done)
}

fn expires(session: &mut Session, args: &ExpiresArgs) -> Result<Answer, Failure> {
    let mut answer = Answer::Done;
    let mut out = Vec::new();
    for word in &args.keys {
        let key = session.key(word)?;
        let time = session.space.expires(&key)?;
        if time.is_none() && !session.space.contains(&key)? {
            session.not_found(&key);
            answer = Answer::NotFound;
            continue;
        }
        out.clear();
        if session.format == Format::Jsonl {
            let ms = time.and_then(|at| Some(at.duration_since(UNIX_EPOCH).ok()?.as_millis()));
            let ms = ms.map_or("null".to_owned(), |ms| ms.to_string());
            out.push(b'{');
            codec::write_json_field("key", &key, &mut out);
            out.extend_from_slice(format!(", \"expires_ms\": {ms}}}\n").as_bytes());
        } else {
            if args.keys.len() > 1 {
                session.format.check_pair(&key, b"")?;
                session.format.write_key_line(&key, &mut out);
                out.pop();
                out.push(b'\t');
            }
            out.extend_from_slice(time.map_or("never".to_owned(), utc).as_bytes());
            out.push(b'\n');
        }
        session.write(&out)?;
    }
    Ok(answer)
}

fn keyspace(session: &mut Session, command: &KeyspaceCommand) -> Result<Answer, Failure> {
    if command.chooses() {
        if session.batch.is_some() {
            return Err(Failure::usage("what a keyspace has is not part of a batch; end the batch first"));
        }
        match command {
            KeyspaceCommand::Ttl { ttl } => session.space.set_ttl(ttl.flatten())?,
            KeyspaceCommand::MergeOperator { name } => {
                session.space.set_merge_operator(name.as_deref().unwrap_or_default())?;
            }
            KeyspaceCommand::Compression { method } => {
                session.space.set_compression(method.unwrap_or_default())?;
            }
        }
        session.changed();
        return Ok(Answer::Done);
    }
    let space = &session.space;
    // Its name in JSON and its value there, if there is one, and as text.
    let (name, json, text) = match command {
        KeyspaceCommand::Ttl { .. } => {
            let ttl = space.ttl();
            ("ttl_ms", ttl.map(|ttl| ttl.as_millis().to_string()), ttl.map(clock::ttl))
        }
        KeyspaceCommand::MergeOperator { .. } => {
            let operator = space.merge_operator();
            ("merge_operator", operator.as_ref().map(|name| serde_json::json!(name).to_string()), operator)
        }
        KeyspaceCommand::Compression { .. } => {
            let method = space.compression().as_str();
            ("compression", Some(format!("\"{method}\"")), Some(method.to_owned()))
        }
    };
    match session.format {
        Format::Jsonl => {
            session.line(format_args!("{{\"{name}\": {}}}", json.as_deref().unwrap_or("null")))?
        }
        _ => {
            let text = text.map_or("none".to_owned(), |text| text::escape(text.as_bytes()));
            session.line(format_args!("{text}"))?;
        }
    }
    Ok(Answer::Done)
}

fn keyspaces(session: &mut Session) -> Result<Answer, Failure> {
    let mut out = Vec::new();
    for name in session.db.keyspaces()? {
        let count = session.db.keyspace(&name)?.count(..)?;
        out.clear();
        match session.format {
            Format::Jsonl => {
                out.push(b'{');
                codec::write_json_field("keyspace", name.as_bytes(), &mut out);
                out.extend_from_slice(format!(", \"keys\": {count}}}\n").as_bytes());
            }
            _ => out.extend_from_slice(format!("{}\t{count}\n", text::escape(name.as_bytes())).as_bytes()),
        }
        session.write(&out)?;
    }
    Ok(Answer::Done)
}

fn load_files(session: &mut Session, args: LoadArgs) -> Result<(Answer, Option<ShellArgs>), Failure> {
    // Parse the command first, so that a typing error is reported before the files are loaded.
    if session.in_shell && !args.then.is_empty() {
        return Err(Failure::usage("within the shell, a command after load goes on a line of its own"));
    }
    let then = match args.then.is_empty() {
        true => None,
        false => Some(Then::try_parse_from(args.then).map_err(Failure::Arguments)?.command),
    };
    load::check_refused(args.skip_errors.as_deref(), &args.files, None)?;
    let mut answer = Answer::Done;
    let mut changes = 0;
    let mut refused = args.skip_errors.as_deref().map(Refused::create).transpose()?;
    let loaded = args.files.iter().try_for_each(|file| -> Result<(), Failure> {
        let format = session.format.of_file(file);
        let loaded = load::load(session, file, format, refused.as_mut())?;
        answer = answer.and(loaded.answer);
        changes += loaded.changes;
        Ok(())
    });
    // Also those before a failure.
    let refused = refused.map_or(Ok(()), |refused| refused.finish(session));
    loaded.and(refused)?;
    match then {
        Some(ThenCommand::Store(command)) => {
            let (then, shell) = run_on_store(session, command)?;
            Ok((answer.and(then), shell))
        }
        Some(ThenCommand::Shell(args)) => Ok((answer, Some(args))),
        None => {
            session.changed();
            session.note(format_args!("{} loaded", term::plural(changes, "pair", "pairs")));
            // The pairs are in the store whether or not this succeeds.
            if let Err(error) = session.db.settle() {
                session.note(format_args!(
                    "the first scan will be slow, because background work is left: {error}"
                ));
            }
            Ok((answer, None))
        }
    }
}

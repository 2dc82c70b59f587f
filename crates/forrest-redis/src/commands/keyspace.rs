//! Keys of any type: whether they exist, when they expire, their names.

use super::strings::database;
use super::{Context, integer, is};
use crate::data::Found;
use crate::fault::{Done, Fault, NO_KEY, SYNTAX};
use crate::glob::Pattern;
use crate::keys::{self, Kind, RECORD_BYTES, Record};
use crate::number;
use std::ops::ControlFlow;

/// Bytes of pairs after which a copy writes what it has read.
const COPIED_AT_ONCE: usize = 64 << 10;

pub(crate) fn del(context: &mut Context, args: &[&[u8]]) -> Done {
    if args.len() > 2 {
        context.server.data.read_own_writes();
    }
    let mut count = 0;
    for key in &args[1..] {
        if let Some(found) = context.find(key)? {
            context.delete(key, &found.record)?;
            count += 1;
        }
    }
    context.reply.integer(count);
    Ok(())
}

pub(crate) fn exists(context: &mut Context, args: &[&[u8]]) -> Done {
    let mut count = 0;
    for key in &args[1..] {
        count += i64::from(context.find(key)?.is_some());
    }
    context.reply.integer(count);
    Ok(())
}

pub(crate) fn type_of(context: &mut Context, args: &[&[u8]]) -> Done {
    let name = context.find(args[1])?.map_or("none", |found| found.record.kind.name());
    context.reply.simple(name);
    Ok(())
}

/// Gives a key another time at which it expires; 0 for none.
fn set_expiry(context: &mut Context, key: &[u8], found: &Found, expires: u64) -> Done {
    let slot = context.slot();
    let record = Record { expires, ..found.record };
    context.server.data.set(slot, key, Some(&found.record), &record, found.string())?;
    context.touch(key);
    Ok(())
}

#[derive(Default)]
struct Conditions {
    only_without: bool,
    only_with: bool,
    only_later: bool,
    only_earlier: bool,
}

fn conditions(args: &[&[u8]]) -> Result<Conditions, Fault> {
    let mut found = Conditions::default();
    for arg in args {
        if is(arg, "NX") {
            found.only_without = true;
        } else if is(arg, "XX") {
            found.only_with = true;
        } else if is(arg, "GT") {
            found.only_later = true;
        } else if is(arg, "LT") {
            found.only_earlier = true;
        } else {
            return Err(Fault::new(format!("ERR Unsupported option {}", String::from_utf8_lossy(arg))));
        }
    }
    if found.only_without && (found.only_with || found.only_later || found.only_earlier) {
        return Err(Fault::new("ERR NX and XX, GT or LT options at the same time are not compatible"));
    }
    if found.only_later && found.only_earlier {
        return Err(Fault::new("ERR GT and LT options at the same time are not compatible"));
    }
    Ok(found)
}

fn expire_at(
    context: &mut Context,
    args: &[&[u8]],
    is_seconds: bool,
    is_relative: bool,
    command: &str,
) -> Done {
    let conditions = conditions(&args[3..])?;
    let invalid = || Fault::new(format!("ERR invalid expire time in '{command}' command"));
    let number = integer(args[2])?;
    let ms = if is_seconds { number.checked_mul(1000).ok_or_else(invalid)? } else { number };
    let now = context.server.now_ms();
    let ms = ms.checked_add(if is_relative { now as i64 } else { 0 }).ok_or_else(invalid)?;
    let Some(found) = context.find(args[1])? else {
        context.reply.bool(false);
        return Ok(());
    };
    let before = found.record.expires;
    let expires = u64::try_from(ms).unwrap_or(0);
    let goes = !(conditions.only_without && before != 0
        || conditions.only_with && before == 0
        || conditions.only_later && (before == 0 || expires <= before)
        || conditions.only_earlier && before != 0 && expires >= before);
    if goes && expires <= now {
        context.delete(args[1], &found.record)?;
        context.server.counts.expired += 1;
    } else if goes {
        set_expiry(context, args[1], &found, expires)?;
    }
    context.reply.bool(goes);
    Ok(())
}

pub(crate) fn expire(context: &mut Context, args: &[&[u8]]) -> Done {
    expire_at(context, args, true, true, "expire")
}

pub(crate) fn pexpire(context: &mut Context, args: &[&[u8]]) -> Done {
    expire_at(context, args, false, true, "pexpire")
}

pub(crate) fn expireat(context: &mut Context, args: &[&[u8]]) -> Done {
    expire_at(context, args, true, false, "expireat")
}

pub(crate) fn pexpireat(context: &mut Context, args: &[&[u8]]) -> Done {
    expire_at(context, args, false, false, "pexpireat")
}

pub(crate) fn persist(context: &mut Context, args: &[&[u8]]) -> Done {
    let found = context.find(args[1])?.filter(|found| found.record.expires != 0);
    if let Some(found) = &found {
        set_expiry(context, args[1], found, 0)?;
    }
    context.reply.bool(found.is_some());
    Ok(())
}

/// When a key expires, by a function of that time; -1 if it does not, -2 if there is none.
fn time_of(context: &mut Context, key: &[u8], time: impl FnOnce(u64) -> u64) -> Done {
    let time = match context.find(key)? {
        None => -2,
        Some(found) if found.record.expires == 0 => -1,
        Some(found) => i64::try_from(time(found.record.expires)).unwrap_or(i64::MAX),
    };
    context.reply.integer(time);
    Ok(())
}

pub(crate) fn ttl(context: &mut Context, args: &[&[u8]]) -> Done {
    let now = context.server.now_ms();
    time_of(context, args[1], |ms| (ms.saturating_sub(now) + 500) / 1000)
}

pub(crate) fn pttl(context: &mut Context, args: &[&[u8]]) -> Done {
    let now = context.server.now_ms();
    time_of(context, args[1], |ms| ms.saturating_sub(now))
}

pub(crate) fn expiretime(context: &mut Context, args: &[&[u8]]) -> Done {
    time_of(context, args[1], |ms| ms.saturating_add(500) / 1000)
}

pub(crate) fn pexpiretime(context: &mut Context, args: &[&[u8]]) -> Done {
    time_of(context, args[1], |ms| ms)
}

fn rename_to(context: &mut Context, args: &[&[u8]], only_new: bool) -> Result<bool, Fault> {
    let (from, to) = (args[1], args[2]);
    let found = context.find(from)?.ok_or(NO_KEY)?;
    if from == to {
        return Ok(!only_new);
    }
    let other = context.find(to)?;
    if only_new && other.is_some() {
        return Ok(false);
    }
    let slot = context.slot();
    // The members stay where they are.
    context.server.data.forget(slot, from, &found.record)?;
    let other = other.as_ref().map(|other| &other.record);
    context.server.data.set(slot, to, other, &found.record, found.string())?;
    context.touch(from);
    context.touch(to);
    Ok(true)
}

pub(crate) fn rename(context: &mut Context, args: &[&[u8]]) -> Done {
    rename_to(context, args, false)?;
    context.reply.ok();
    Ok(())
}

pub(crate) fn renamenx(context: &mut Context, args: &[&[u8]]) -> Done {
    let renamed = rename_to(context, args, true)?;
    context.reply.bool(renamed);
    Ok(())
}

/// Copies a key with its members to a key of a database.
fn copy_to(context: &mut Context, found: &Found, key: &[u8], database: usize, old: Option<&Record>) -> Done {
    let slot = context.server.data.slot(database);
    let mut record = found.record;
    if record.kind != Kind::String {
        record.generation = context.server.data.new_generation()?;
        let from = keys::members(context.slot(), found.record.generation);
        let to = keys::members(slot, record.generation);
        let end = keys::after(from);
        let mut start = from.to_vec();
        loop {
            let (mut pairs, mut bytes) = (Vec::new(), 0);
            context.server.data.scan((&start, &end), false, |key, value| {
                pairs.push(([&to[..], &key[from.len()..]].concat(), value.to_vec()));
                bytes += key.len() + value.len();
                if bytes < COPIED_AT_ONCE { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            let Some((last, _)) = pairs.last() else { break };
            start = [&from[..], &last[to.len()..], &[0]].concat();
            for (key, value) in &pairs {
                context.server.data.put(key, value)?;
            }
        }
    }
    context.server.data.set(slot, key, old, &record, found.string())?;
    context.server.touch(database, key);
    Ok(())
}

pub(crate) fn copy(context: &mut Context, args: &[&[u8]]) -> Done {
    let (mut to, mut replaces) = (context.client.database, false);
    let mut rest = args[3..].iter();
    while let Some(word) = rest.next() {
        if is(word, "REPLACE") {
            replaces = true;
        } else if is(word, "DB") {
            to = database(context, rest.next().ok_or(SYNTAX)?)?;
        } else {
            return Err(SYNTAX);
        }
    }
    if to == context.client.database && args[1] == args[2] {
        return Err(Fault::new("ERR source and destination objects are the same"));
    }
    let found = context.find(args[1])?;
    let old = context.find_in(to, args[2])?;
    let goes = found.is_some() && (old.is_none() || replaces);
    if let Some(found) = found.filter(|_| goes) {
        copy_to(context, &found, args[2], to, old.as_ref().map(|old| &old.record))?;
    }
    context.reply.bool(goes);
    Ok(())
}

pub(crate) fn move_to(context: &mut Context, args: &[&[u8]]) -> Done {
    let to = database(context, args[2])?;
    if to == context.client.database {
        return Err(Fault::new("ERR source and destination objects are the same"));
    }
    let found = context.find(args[1])?;
    let goes = found.is_some() && context.find_in(to, args[1])?.is_none();
    if let Some(found) = found.filter(|_| goes) {
        copy_to(context, &found, args[1], to, None)?;
        context.delete(args[1], &found.record)?;
    }
    context.reply.bool(goes);
    Ok(())
}

pub(crate) fn keys(context: &mut Context, args: &[&[u8]]) -> Done {
    let mut pattern = Pattern::new(args[1]);
    let slot = context.slot();
    let start = [&keys::records(slot), pattern.prefix()].concat();
    let end = super::members::end_of(&start);
    let now = context.server.now_ms();
    let server = &mut *context.server;
    let mut complex = None;
    context.reply.sequence(|reply| {
        let mut count = 0;
        server.data.scan((&start, &end), false, |key, value| {
            let key = &key[RECORD_BYTES..];
            let is_there = Record::of(value).is_some_and(|(record, _)| !record.is_expired(|| now));
            match pattern.matches(key) {
                Ok(true) if is_there => {
                    reply.bulk(key);
                    count += 1;
                }
                Ok(_) => {}
                Err(error) => complex = Some(error),
            }
            if reply.is_over() || complex.is_some() {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
        Ok::<_, Fault>(count)
    })?;
    complex.map_or(Ok(()), |error| Err(error.into()))
}

pub(crate) fn dbsize(context: &mut Context, _: &[&[u8]]) -> Done {
    let records = keys::records(context.slot());
    let count = context.server.data.count_about(&records, &keys::after(records))?;
    context.reply.count(count);
    Ok(())
}

pub(crate) fn randomkey(context: &mut Context, _: &[&[u8]]) -> Done {
    let records = keys::records(context.slot());
    // One that has expired is removed, and another one is looked for.
    for _ in 0..100 {
        let Some(key) = super::members::random(context, &records, None)? else { break };
        let key = &key[RECORD_BYTES..];
        if context.find(key)?.is_some() {
            context.reply.bulk(key);
            return Ok(());
        }
        context.server.data.commit()?;
    }
    context.reply.null();
    Ok(())
}

fn flush(context: &mut Context, args: &[&[u8]], databases: std::ops::Range<usize>) -> Done {
    match &args[1..] {
        [] => {}
        [how] if is(how, "SYNC") || is(how, "ASYNC") => {}
        _ => return Err(SYNTAX),
    }
    context.server.touch_all(|database| databases.contains(&database), &[])?;
    for database in databases {
        let slot = context.server.data.slot(database);
        context.server.data.clear(slot)?;
    }
    context.reply.ok();
    Ok(())
}

pub(crate) fn flushdb(context: &mut Context, args: &[&[u8]]) -> Done {
    let database = context.client.database;
    flush(context, args, database..database + 1)
}

pub(crate) fn flushall(context: &mut Context, args: &[&[u8]]) -> Done {
    let databases = context.server.settings.databases;
    flush(context, args, 0..databases)
}

pub(crate) fn swapdb(context: &mut Context, args: &[&[u8]]) -> Done {
    let read = |arg, which| {
        number::integer(arg).ok_or(Fault::new(format!("ERR invalid {which} DB index"))).map(|_| arg)
    };
    let (a, b) = (read(args[1], "first")?, read(args[2], "second")?);
    let (a, b) = (database(context, a)?, database(context, b)?);
    if context.client.in_exec {
        return Err(Fault::new("ERR SWAPDB within MULTI is not supported"));
    }
    if a != b {
        context.server.touch_all(|database| database == a || database == b, &[a, b])?;
        context.server.data.swap(a, b)?;
    }
    context.reply.ok();
    Ok(())
}

pub(crate) fn touch(context: &mut Context, args: &[&[u8]]) -> Done {
    exists(context, args)
}

pub(crate) fn object(context: &mut Context, args: &[&[u8]]) -> Done {
    if is(args[1], "HELP") {
        context.reply.array(1);
        context.reply.simple("OBJECT ENCODING|REFCOUNT|IDLETIME key");
        return Ok(());
    }
    let [_, word, key] = args else { return Err(SYNTAX) };
    let Some(found) = context.find(key)? else {
        context.reply.null();
        return Ok(());
    };
    if is(word, "ENCODING") {
        context.reply.bulk(encoding(&found).as_bytes());
    } else if is(word, "REFCOUNT") {
        context.reply.integer(1);
    } else if is(word, "IDLETIME") {
        context.reply.integer(0);
    } else if is(word, "FREQ") {
        return Err(Fault::new("ERR no frequencies are kept: the maxmemory policy is noeviction"));
    } else {
        return Err(Fault::new(format!("ERR unknown subcommand '{}'", String::from_utf8_lossy(word))));
    }
    Ok(())
}

/// The name of an encoding of Redis, for clients that ask. The store has one encoding for each type.
fn encoding(found: &Found) -> &'static str {
    match found.record.kind {
        Kind::String if number::integer(found.string()).is_some() => "int",
        Kind::String if found.string().len() <= 44 => "embstr",
        Kind::String => "raw",
        Kind::Hash | Kind::Set => "hashtable",
        Kind::SortedSet => "skiplist",
        Kind::List => "quicklist",
    }
}

//! Strings and counters.

use super::{Context, float, integer, is, slice};
use crate::fault::{Done, Fault, NOT_INTEGER, SYNTAX, WRONG_TYPE};
use crate::keys::{Kind, Record};
use crate::number;
use crate::server::Server;

/// What `SET` and its relatives may say.
#[derive(Default)]
struct SetOptions<'a> {
    /// 0 if there is none.
    expires: u64,
    keeps: bool,
    only_new: bool,
    only_old: bool,
    only_equal: Option<&'a [u8]>,
    gets: bool,
    /// It has already expired.
    is_past: bool,
}

/// When a key expires, of the argument of an option or command.
pub(crate) fn expiry_of(
    server: &Server,
    arg: &[u8],
    is_seconds: bool,
    is_relative: bool,
    command: &str,
) -> Result<u64, Fault> {
    let number = integer(arg)?;
    let invalid = || Fault::new(format!("ERR invalid expire time in '{command}' command"));
    if number <= 0 {
        return Err(invalid());
    }
    let ms = if is_seconds { number.checked_mul(1000).ok_or_else(invalid)? } else { number };
    let now = if is_relative { server.now_ms() as i64 } else { 0 };
    ms.checked_add(now).map(|ms| ms as u64).ok_or_else(invalid)
}

/// An option that says when a key expires: how to read its argument.
fn expiry_option(word: &[u8]) -> Option<(bool, bool)> {
    let options = [("EX", true, true), ("PX", false, true), ("EXAT", true, false), ("PXAT", false, false)];
    options.into_iter().find(|(name, ..)| is(word, name)).map(|(_, seconds, relative)| (seconds, relative))
}

fn set_options<'a>(server: &Server, args: &[&'a [u8]]) -> Result<SetOptions<'a>, Fault> {
    let mut options = SetOptions::default();
    let mut has_expiry = false;
    let mut args = args.iter();
    while let Some(word) = args.next() {
        let conditions = usize::from(options.only_new)
            + usize::from(options.only_old)
            + usize::from(options.only_equal.is_some());
        if let Some((is_seconds, is_relative)) = expiry_option(word) {
            let arg = args.next().filter(|_| !has_expiry).ok_or(SYNTAX)?;
            has_expiry = true;
            options.expires = expiry_of(server, arg, is_seconds, is_relative, "set")?;
            options.is_past = !is_relative && options.expires <= server.now_ms();
        } else if is(word, "KEEPTTL") && !has_expiry {
            (has_expiry, options.keeps) = (true, true);
        } else if is(word, "NX") && conditions == 0 {
            options.only_new = true;
        } else if is(word, "XX") && conditions == 0 {
            options.only_old = true;
        } else if is(word, "IFEQ") && conditions == 0 {
            options.only_equal = Some(args.next().ok_or(SYNTAX)?);
        } else if is(word, "GET") {
            options.gets = true;
        } else {
            return Err(SYNTAX);
        }
    }
    Ok(options)
}

pub(crate) fn set(context: &mut Context, args: &[&[u8]]) -> Done {
    let (key, value) = (args[1], args[2]);
    let old = context.find(key)?;
    if args.len() == 3 {
        context.set_string(key, old.as_ref().map(|old| &old.record), value, 0)?;
        context.reply.ok();
        return Ok(());
    }
    let options = set_options(context.server, &args[3..])?;
    if (options.gets || options.only_equal.is_some())
        && old.as_ref().is_some_and(|old| old.record.kind != Kind::String)
    {
        return Err(WRONG_TYPE);
    }
    let string = old.as_ref().filter(|old| old.record.kind == Kind::String).map(|old| old.string());
    if options.gets {
        context.reply.bulk_or_null(string);
    }
    let goes = !(options.only_new && old.is_some() || options.only_old && old.is_none())
        && options.only_equal.is_none_or(|equal| string == Some(equal));
    if !goes {
        if !options.gets {
            context.reply.null();
        }
        return Ok(());
    }
    if options.is_past {
        if let Some(old) = &old {
            context.delete(key, &old.record)?;
        }
    } else {
        let record = old.as_ref().map(|old| &old.record);
        let kept = record.filter(|_| options.keeps).map_or(0, |record| record.expires);
        context.set_string(key, record, value, if options.keeps { kept } else { options.expires })?;
    }
    if !options.gets {
        context.reply.ok();
    }
    Ok(())
}

fn set_for(context: &mut Context, args: &[&[u8]], is_seconds: bool, command: &str) -> Done {
    let expires = expiry_of(context.server, args[2], is_seconds, true, command)?;
    let old = context.find(args[1])?;
    context.set_string(args[1], old.as_ref().map(|old| &old.record), args[3], expires)?;
    context.reply.ok();
    Ok(())
}

pub(crate) fn setex(context: &mut Context, args: &[&[u8]]) -> Done {
    set_for(context, args, true, "setex")
}

pub(crate) fn psetex(context: &mut Context, args: &[&[u8]]) -> Done {
    set_for(context, args, false, "psetex")
}

pub(crate) fn setnx(context: &mut Context, args: &[&[u8]]) -> Done {
    let is_new = context.find(args[1])?.is_none();
    if is_new {
        context.set_string(args[1], None, args[2], 0)?;
    }
    context.reply.bool(is_new);
    Ok(())
}

#[inline]
pub(crate) fn get(context: &mut Context, args: &[&[u8]]) -> Done {
    let found = context.look(args[1], Kind::String)?;
    context.reply.bulk_or_null(found.as_ref().map(|found| found.string()));
    Ok(())
}

pub(crate) fn getset(context: &mut Context, args: &[&[u8]]) -> Done {
    let old = context.find_kind(args[1], Kind::String)?;
    context.set_string(args[1], old.as_ref().map(|old| &old.record), args[2], 0)?;
    context.reply.bulk_or_null(old.as_ref().map(|old| old.string()));
    Ok(())
}

pub(crate) fn getdel(context: &mut Context, args: &[&[u8]]) -> Done {
    let old = context.look(args[1], Kind::String)?;
    if let Some(old) = &old {
        context.delete(args[1], &old.record)?;
    }
    context.reply.bulk_or_null(old.as_ref().map(|old| old.string()));
    Ok(())
}

pub(crate) fn getex(context: &mut Context, args: &[&[u8]]) -> Done {
    let expires = match &args[2..] {
        [] => None,
        [word] if is(word, "PERSIST") => Some(0),
        [word, arg] => {
            let (is_seconds, is_relative) = expiry_option(word).ok_or(SYNTAX)?;
            Some(expiry_of(context.server, arg, is_seconds, is_relative, "getex")?)
        }
        _ => return Err(SYNTAX),
    };
    let found = context.look(args[1], Kind::String)?;
    context.reply.bulk_or_null(found.as_ref().map(|found| found.string()));
    if let (Some(found), Some(expires)) = (found, expires)
        && expires != found.record.expires
    {
        if expires != 0 && expires <= context.server.now_ms() {
            context.delete(args[1], &found.record)?;
        } else {
            context.set_string(args[1], Some(&found.record), found.string(), expires)?;
        }
    }
    Ok(())
}

pub(crate) fn mget(context: &mut Context, args: &[&[u8]]) -> Done {
    context.reply.array(args.len() - 1);
    for key in &args[1..] {
        match context.find(key)? {
            Some(found) if found.record.kind == Kind::String => context.reply.bulk(found.string()),
            _ => context.reply.null(),
        }
        if context.reply.is_over() {
            break;
        }
    }
    Ok(())
}

fn set_all(context: &mut Context, pairs: &[&[u8]]) -> Done {
    if pairs.len() > 2 {
        context.server.data.read_own_writes();
    }
    for pair in pairs.chunks_exact(2) {
        let old = context.find(pair[0])?;
        context.set_string(pair[0], old.as_ref().map(|old| &old.record), pair[1], 0)?;
    }
    Ok(())
}

fn check_pairs(args: &[&[u8]], command: &str) -> Done {
    if args.len() % 2 == 1 {
        return Ok(());
    }
    Err(Fault::new(format!("ERR wrong number of arguments for '{command}' command")))
}

pub(crate) fn mset(context: &mut Context, args: &[&[u8]]) -> Done {
    check_pairs(args, "mset")?;
    set_all(context, &args[1..])?;
    context.reply.ok();
    Ok(())
}

pub(crate) fn msetnx(context: &mut Context, args: &[&[u8]]) -> Done {
    check_pairs(args, "msetnx")?;
    for pair in args[1..].chunks_exact(2) {
        if context.find(pair[0])?.is_some() {
            context.reply.bool(false);
            return Ok(());
        }
    }
    set_all(context, &args[1..])?;
    context.reply.bool(true);
    Ok(())
}

fn add(context: &mut Context, key: &[u8], delta: i64) -> Done {
    let old = context.find_kind(key, Kind::String)?;
    let (record, number) = match &old {
        Some(old) => (Some(&old.record), integer(old.string())?),
        None => (None, 0),
    };
    let sum = number.checked_add(delta);
    let sum = sum.ok_or(Fault::new("ERR increment or decrement would overflow"))?;
    let mut digits = Vec::with_capacity(20);
    number::push_integer(&mut digits, sum);
    context.set_string(key, record, &digits, record.map_or(0, |record| record.expires))?;
    context.reply.integer(sum);
    Ok(())
}

pub(crate) fn incr(context: &mut Context, args: &[&[u8]]) -> Done {
    add(context, args[1], 1)
}

pub(crate) fn decr(context: &mut Context, args: &[&[u8]]) -> Done {
    add(context, args[1], -1)
}

pub(crate) fn incrby(context: &mut Context, args: &[&[u8]]) -> Done {
    add(context, args[1], integer(args[2])?)
}

pub(crate) fn decrby(context: &mut Context, args: &[&[u8]]) -> Done {
    let delta = integer(args[2])?.checked_neg();
    add(context, args[1], delta.ok_or(Fault::new("ERR decrement would overflow"))?)
}

pub(crate) fn incrbyfloat(context: &mut Context, args: &[&[u8]]) -> Done {
    let old = context.find_kind(args[1], Kind::String)?;
    let number = old.as_ref().map_or(Ok(0.0), |old| float(old.string()))?;
    let sum = number + float(args[2])?;
    if !sum.is_finite() {
        return Err(Fault::new("ERR increment would produce NaN or Infinity"));
    }
    let text = number::sum_text(sum);
    let record = old.as_ref().map(|old| &old.record);
    context.set_string(args[1], record, text.as_bytes(), record.map_or(0, |record| record.expires))?;
    context.reply.bulk(text.as_bytes());
    Ok(())
}

/// Replaces the string of a key, which keeps its time to live.
pub(super) fn rewrite(context: &mut Context, key: &[u8], old: Option<&Record>, value: &[u8]) -> Done {
    context.set_string(key, old, value, old.map_or(0, |old| old.expires))
}

pub(crate) fn append(context: &mut Context, args: &[&[u8]]) -> Done {
    let old = context.find_kind(args[1], Kind::String)?;
    let string = old.as_ref().map_or(&[][..], |old| old.string());
    context.check_string(string.len() as u64 + args[2].len() as u64)?;
    let value = [string, args[2]].concat();
    rewrite(context, args[1], old.as_ref().map(|old| &old.record), &value)?;
    context.reply.count(value.len() as u64);
    Ok(())
}

pub(crate) fn strlen(context: &mut Context, args: &[&[u8]]) -> Done {
    let found = context.look(args[1], Kind::String)?;
    context.reply.count(found.map_or(0, |found| found.string().len() as u64));
    Ok(())
}

pub(crate) fn setrange(context: &mut Context, args: &[&[u8]]) -> Done {
    let offset = integer(args[2])?;
    let offset = u64::try_from(offset).map_err(|_| Fault::new("ERR offset is out of range"))?;
    let old = context.find_kind(args[1], Kind::String)?;
    let string = old.as_ref().map_or(&[][..], |old| old.string());
    if args[3].is_empty() {
        context.reply.count(string.len() as u64);
        return Ok(());
    }
    let end = offset.saturating_add(args[3].len() as u64);
    context.check_string(end)?;
    let (offset, end) = (offset as usize, end as usize);
    let mut value = string.to_vec();
    value.resize(value.len().max(end), 0);
    value[offset..end].copy_from_slice(args[3]);
    rewrite(context, args[1], old.as_ref().map(|old| &old.record), &value)?;
    context.reply.count(value.len() as u64);
    Ok(())
}

pub(crate) fn getrange(context: &mut Context, args: &[&[u8]]) -> Done {
    let (start, stop) = (integer(args[2])?, integer(args[3])?);
    let found = context.look(args[1], Kind::String)?;
    let string = found.as_ref().map_or(&[][..], |found| found.string());
    // As Redis has it, an end before the first byte is the first byte, unless it is before the start too.
    let is_none = start < 0 && stop < 0 && start > stop;
    let first = -i64::try_from(string.len()).unwrap_or(i64::MAX);
    let part = if is_none { 0..0 } else { slice(start, stop.max(first), string.len() as u64) };
    context.reply.bulk(&string[part.start as usize..part.end as usize]);
    Ok(())
}

/// The number of a string, for commands that take one.
pub(crate) fn database(context: &Context, arg: &[u8]) -> Result<usize, Fault> {
    let number = number::integer(arg).ok_or(NOT_INTEGER)?;
    let databases = context.server.settings.databases;
    let number = usize::try_from(number).ok().filter(|number| *number < databases);
    number.ok_or(Fault::new("ERR DB index is out of range"))
}
